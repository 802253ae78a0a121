#!/usr/bin/env python3
"""Properties of `culprit compare`: a recording compared with itself does not differ; sides swapped, every difference changes
its sign and nothing else; the same bytes come out at any number of threads."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "tests/lib")]
import mirror  # noqa: E402
import validate_json  # noqa: E402

CULPRIT = os.environ["CULPRIT"]
SCHEMA = json.loads(pathlib.Path(os.environ["CULPRIT_SCHEMA"]).read_text())
PAIRS = ["pool", "pool kind=cast", "replaced", "replaced role=gemm", "replaced role=comm slower=4", "oversized", "clock", "clock permille=-40",
         "fusion", "fusion place=0 pieces=5", "graph", "host", "communication", "suspect", "batches", "one_step", "stalls steps=60 every=30",
         "replaced healthy=1", "clock healthy=1", "stalls steps=60 healthy=1"]
FORGED = ["whole-pool-copy", "layout-copy", "host-sync", "small-kernels", "gemm-inefficient", "comm-latency", "oversized-grid", "step-stall"]


def compare(before, after, *flags):
    done = subprocess.run([CULPRIT, "compare", str(before), str(after), "--json", "--quiet", *flags], capture_output=True, check=True, timeout=120)
    document = json.loads(done.stdout)
    assert not validate_json.problems(SCHEMA, document), validate_json.problems(SCHEMA, document)
    return document, done.stdout


class Compare(unittest.TestCase):
    def hold(self, before, after):
        there, text = compare(before, after)
        back, _ = compare(after, before)
        self.assertEqual(list(mirror.differences(there, back)), [])
        for side in (before, after):
            same, _ = compare(side, side)
            self.assertEqual(list(mirror.itself(same)), [])
        self.assertEqual(text, compare(before, after, "--threads", "1")[1])

    def test_pairs_with_one_difference(self):
        for pair in PAIRS:
            with self.subTest(pair=pair), tempfile.TemporaryDirectory() as folder:
                subprocess.run([sys.executable, "-m", "pairs", *pair.split()], cwd=folder, check=True,
                               env={**os.environ, "PYTHONPATH": str(ROOT / "tests/lib")})
                here = pathlib.Path(folder)
                names = ("before", "after") if (here / "before").is_dir() else ("before.json", "after.json")
                self.hold(*(here / name for name in names))

    def test_forged_faults_and_their_twins(self):
        for fault in FORGED:
            with self.subTest(fault=fault), tempfile.TemporaryDirectory() as folder:
                for name, more in (("healthy", ["--healthy"]), ("faulty", [])):
                    subprocess.run([CULPRIT, "forge", fault, "--draw", "5", "--no-stacks", *more, "-o", f"{folder}/{name}.json"],
                                   check=True, capture_output=True)
                self.hold(f"{folder}/healthy.json", f"{folder}/faulty.json")

    def test_the_shared_definitions_are_those_of_the_answer(self):
        own = json.loads((ROOT / "docs/schema/compare.schema.json").read_text())["$defs"]
        for name in ("note", "source", "gain", "owner"):
            self.assertEqual(own[name], SCHEMA["$defs"][name], name)


if __name__ == "__main__":
    unittest.main()
