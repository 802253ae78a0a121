#!/usr/bin/env python3
"""Slices of forged traces in many forms: strict JSON, events as they stood, links whole, figures equal to the nanosecond."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests/lib"))
from kineto import Trace  # noqa: E402
from pages import hostile_trace, stalled_trace  # noqa: E402
from slices import answer, check_slice, events_of, strict  # noqa: E402

CULPRIT = os.environ["CULPRIT"]
# Recipe, flags, and the steps that are cut out.
FORGED = [
    (["glm5", "--steps", "4"], [0, 2, 3, "1..2"]),
    (["glm5", "--steps", "3", "--graph", "--marks", "none"], [1]),
    (["host-bound", "--steps", "3", "--no-stacks", "--layout", "lines"], [0, 1, 2]),
    (["gaps", "--steps", "3", "--layout", "array", "--era", "relative"], [1]),
    (["dense", "--steps", "4", "--marks", "vllm", "--header", "last", "--era", "absolute-ns"], [2]),
    (["dense", "--steps", "5", "--marks", "none", "--no-stacks"], [1]),
    (["prefill-mixed", "--steps", "12", "--no-stacks"], [9, "8..10"]),
]


class Slices(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.place = pathlib.Path(self.folder.name)

    def run_culprit(self, *words):
        return subprocess.run([CULPRIT, *map(str, words)], capture_output=True, text=True, timeout=120, check=False)

    def test_forged_runs_in_every_form(self):
        for recipe, steps in FORGED:
            trace = self.place / "run.json"
            trace.unlink(missing_ok=True)
            subprocess.run([CULPRIT, "forge", *recipe, "-o", trace], check=True, capture_output=True)
            whole = events_of(strict(trace.read_bytes()))
            for step in steps:
                with self.subTest(recipe=" ".join(recipe), step=step):
                    faults, events = check_slice(CULPRIT, trace, self.place / "part.json", step, whole=whole)
                    self.assertEqual(faults, [])
                    self.assertGreater(events, 20)
                    self.assertLess(events, len(whole))

    def test_packed_input_and_output(self):
        trace = self.place / "run.json"
        subprocess.run([CULPRIT, "forge", "dense", "--steps", "4", "-o", trace], check=True, capture_output=True)
        subprocess.run(["gzip", "-k", trace], check=True)
        subprocess.run(["zstd", "-q", trace], check=True)
        plain = self.place / "part.json"
        check_slice(CULPRIT, trace, plain, 1)
        for form in ("run.json.gz", "run.json.zst"):
            faults, _ = check_slice(CULPRIT, self.place / form, self.place / "part.json.gz", 1)
            self.assertEqual(faults, [])
            one, other = strict(plain.read_bytes()), strict((self.place / "part.json.gz").read_bytes())
            self.assertEqual(one["traceEvents"], other["traceEvents"])

    def test_a_slice_of_a_slice_is_the_same_step(self):
        trace = self.place / "run.json"
        subprocess.run([CULPRIT, "forge", "dense", "--steps", "5", "-o", trace], check=True, capture_output=True)
        check_slice(CULPRIT, trace, self.place / "some.json", "1..3")
        faults, _ = check_slice(CULPRIT, self.place / "some.json", self.place / "one.json", 1)
        self.assertEqual(faults, [])
        self.assertEqual(answer(CULPRIT, self.place / "one.json")["steps"]["mean_ns"],
                         answer(CULPRIT, trace, "--steps", "2..2")["steps"]["mean_ns"])

    def test_the_head_is_kept(self):
        trace = self.place / "run.json"
        subprocess.run([CULPRIT, "forge", "glm5", "--steps", "3", "-o", trace], check=True, capture_output=True)
        check_slice(CULPRIT, trace, self.place / "part.json", 1)
        whole, part = strict(trace.read_bytes()), strict((self.place / "part.json").read_bytes())
        for name in whole.keys() - {"traceEvents"}:
            self.assertEqual(part[name], whole[name])
        self.assertIn("deviceProperties", part)
        names = [e for e in whole["traceEvents"] if e["ph"] == "M"]
        self.assertEqual([e for e in part["traceEvents"] if e["ph"] == "M"], names)

    def test_hostile_and_damaged_events_become_strict_json(self):
        t = hostile_trace()
        for event in t.events:
            if event["cat"] == "kernel":
                event["args"]["est. achieved occupancy %"] = float("inf")
        trace = self.place / "hostile.json"
        # Raw control characters, an unescaped quote, and half of a UTF-8 character inside names.
        text = t.text().replace("\\u0007", "\a").replace("aten::mm", 'aten::"mm"', 3).encode("utf-8", "surrogatepass")
        trace.write_bytes(text.replace(b"gemm", b"ge\xc3mm", 5))
        faults, events = check_slice(CULPRIT, trace, self.place / "part.json", 2)
        self.assertEqual(faults, [])
        self.assertGreater(events, 8 * 4)
        strict((self.place / "part.json").read_bytes())

    def test_a_launch_long_before_its_step(self):
        t = Trace()
        for step in range(6):
            t.mark("step[DECODE bs=1]", 1_000 * step, 900)
            for k in range(4):  # the host is five steps ahead of the device
                t.kernel("gemm_kernel", 1_000, ts=5_000 + 4_000 * step + 1_000 * k, launch_at=1_000 * step + 100 * k, op="aten::mm")
        t.write(self.place / "ahead.json")
        faults, _ = check_slice(CULPRIT, self.place / "ahead.json", self.place / "part.json", 4, whole=t.events)
        self.assertEqual(faults, [])

    def test_around_a_stall_is_its_step(self):
        t = stalled_trace()
        t.write(self.place / "stalled.json")
        done = self.run_culprit("slice", self.place / "stalled.json", "--around", "step-stall", "-o", self.place / "part.json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("step 11 of stalled.json", done.stderr)
        self.assertGreater(answer(CULPRIT, self.place / "part.json")["steps"]["mean_ns"], 30_000_000)

    def test_a_layer_is_that_part_of_the_step(self):
        trace = self.place / "run.json"
        subprocess.run([CULPRIT, "forge", "glm5", "--steps", "4", "-o", trace], check=True, capture_output=True)
        rows = json.loads(self.run_culprit("sql", trace, "SELECT begin_ns, dur_ns FROM layers WHERE step = 1 AND layer = 40",
                                           "--json").stdout)["rows"]
        done = self.run_culprit("slice", trace, "--step", 1, "--layer", 40, "-o", self.place / "layer.json")
        self.assertEqual(done.returncode, 0, done.stderr)
        layer = answer(CULPRIT, self.place / "layer.json")
        self.assertEqual(layer["steps"]["mean_ns"], rows[0][1])
        self.assertEqual([n["message"] for n in layer["quality"]["notes"] if n["code"] == "sliced"],
                         ["the file is a slice of a longer recording: layer 40 of step 1 of run.json"])

    def test_refusals(self):
        trace = self.place / "run.json"
        subprocess.run([CULPRIT, "forge", "dense", "--steps", "3", "-o", trace], check=True, capture_output=True)
        out = self.place / "part.json"
        for words, part in ((["--step", "7"], "there is no step 7"), (["--around", "whole-pool-cast"], "no suspect"),
                            (["--layer", "999"], "no layer 999"), ([], "nothing to cut out"),
                            (["--step", "1", "--steps", "0..1"], "give one of them")):
            done = self.run_culprit("slice", trace, *words, "-o", out)
            self.assertEqual((done.returncode, done.stdout), (2, ""), words)
            self.assertIn(part, done.stderr)
            self.assertFalse(out.exists())
        before = trace.read_bytes()
        done = self.run_culprit("slice", trace, "--step", "1", "-o", trace)
        self.assertEqual(done.returncode, 2)
        self.assertEqual(trace.read_bytes(), before, "the trace itself was overwritten")
        with open(trace, "rb") as piped:
            done = subprocess.run([CULPRIT, "slice", "-", "--step", "1", "-o", out], stdin=piped, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn("pipe", done.stderr)


if __name__ == "__main__":
    unittest.main()
