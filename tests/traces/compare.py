#!/usr/bin/env python3
"""`culprit compare` on the real traces: each with itself, pairs with their sides swapped, and the public pair by hand.

    compare.py CULPRIT_BINARY TRACES_DIR [--figures]

The pair diff-control / diff-test is looked at with the standard library alone: steps from its ProfilerStep marks and the kernels launched
under them, sums of durations and calls by full kernel name. culprit's figures must agree. Exit 0: all agree; 1: a miss; 77: no traces.
"""
import argparse
import bisect
import collections
import decimal
import gzip
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/lib"), str(ROOT / "tools")]
import mirror  # noqa: E402
import validate_json  # noqa: E402

SKIPPED = 77
DEVICE = {"kernel", "gpu_memcpy", "gpu_memset"}
PAIRS = [("other/diff-control.json.gz", "other/diff-test.json.gz"), ("other/tb-plugin-2021.json.gz", "other/tb-plugin-2021-array.json.gz"),
         ("transformers/qwen1.5-0.5b-h100.json.gz", "transformers/qwen1.5-0.5b-mi300x.json.gz"),
         ("transformers/megatron-tp8-rank0.json.gz", "transformers/megatron-tp8-rank1.json.gz"),
         ("other/nccl-metadata.json.gz", "other/negative-queue.json.gz"), ("other/dlrm-worker0.json.gz", "other/dlrm-worker1.json.gz")]


def run(culprit, before, after):
    done = subprocess.run([culprit, "compare", str(before), str(after), "--json", "--quiet"], capture_output=True, timeout=300)
    return done.returncode, json.loads(done.stdout) if done.stdout else None


def ns(microseconds):
    return int(decimal.Decimal(str(microseconds)) * 1000)


def read(path):
    return json.loads(gzip.open(path).read(), parse_float=decimal.Decimal)["traceEvents"]


class Look:
    """A trace by hand: the steps' lengths, and per kernel name calls and time, over whole steps."""

    def __init__(self, path):
        spans = [e for e in read(path) if e.get("ph") == "X" and "dur" in e]
        marks = sorted((ns(e["ts"]), ns(e["ts"]) + ns(e["dur"])) for e in spans
                       if re.match(r"ProfilerStep#\d+$", e["name"]) and e.get("cat") in ("user_annotation", "cpu_op"))
        launched = {e["args"]["correlation"]: ns(e["ts"]) for e in spans
                    if e.get("cat") in ("cuda_runtime", "cuda_driver", "Runtime") and "correlation" in e.get("args", {})}
        device = sorted(((ns(e["ts"]), ns(e["ts"]) + ns(e["dur"]), e) for e in spans if e.get("cat", "").lower() in DEVICE),
                        key=lambda row: row[:2])
        begins = []  # of each step: the first activity that was launched under its mark
        for begin, end in marks:
            under = [at for at, _, e in device if begin <= launched.get(e["args"].get("correlation"), -1) < end]
            begins.append(min(under))
        last = max(max(end for _, end, _ in device), marks[-1][1])
        self.lengths = [after - at for at, after in zip(begins, [*begins[1:], last])]
        self.calls, self.time = collections.Counter(), collections.Counter()
        for at, end, e in device:
            if bisect.bisect_right(begins, at) == 0:
                continue
            self.calls[e["name"]] += 1
            self.time[e["name"]] += end - at
        self.steps = len(marks)


def misses_of_pair(look_before, look_after, document):
    for side, look in (("before", look_before), ("after", look_after)):
        mean = round(sum(look.lengths) / look.steps)
        if document[side]["steps"]["mean_ns"] != mean:
            yield f"{side}: {look.steps} steps of {mean} ns by hand, culprit {document[side]['steps']['mean_ns']}"
        told_time, told_calls = collections.Counter(), collections.Counter()
        for row in document["kernels"]:
            if row[side]:
                told_time[row[side]["name"]] += row[side]["ns_per_step"]
                told_calls[row[side]["name"]] += row[side]["calls_per_step"]
        for name in look.time.keys() | told_time.keys():
            rows = sum(1 for row in document["kernels"] if row[side] and row[side]["name"] == name)
            if abs(told_time[name] - look.time[name] / look.steps) > rows or abs(told_calls[name] - look.calls[name] / look.steps) > 1e-6:
                yield (f"{side}: {name[:80]}: {look.time[name] / look.steps:.0f} ns in {look.calls[name] / look.steps:.2f} calls by hand, "
                       f"culprit {told_time[name]} in {told_calls[name]:.2f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("culprit")
    parser.add_argument("traces", type=pathlib.Path)
    parser.add_argument("--figures", action="store_true")
    options = parser.parse_args()
    if not (options.traces / "other").is_dir():
        print(f"skipped: no traces in {options.traces}")
        return SKIPPED
    schema = json.loads((ROOT / "docs/schema/answer.schema.json").read_text())
    misses, compared = [], 0
    for path in sorted(p for p in options.traces.glob("*/*") if p.suffix in {".gz", ".json", ".sqlite"}):
        code, document = run(options.culprit, path, path)
        if code == 2:
            continue
        compared += 1
        misses += [f"{path.name} with itself: {m}" for m in [*mirror.itself(document), *validate_json.problems(schema, document)]]
    for before, after in PAIRS:
        there, back = (run(options.culprit, options.traces / a, options.traces / b)[1] for a, b in ((before, after), (after, before)))
        misses += [f"{before}, {after}: {m}" for m in [*mirror.differences(there, back), *validate_json.problems(schema, there)]]
    before, after = (options.traces / name for name in PAIRS[0])
    looks, document = (Look(before), Look(after)), run(options.culprit, before, after)[1]
    misses += list(misses_of_pair(*looks, document))
    if options.figures:
        figures(*looks)
    for miss in misses[:40]:
        print(miss)
    print(f"{compared} traces compared with themselves, {len(PAIRS)} pairs swapped, one looked at by hand: {len(misses)} misses")
    if compared < 25:
        print("too few traces were compared to prove anything")
    return 1 if misses or compared < 25 else 0


def figures(before, after):
    for side, look in (("before", before), ("after", after)):
        print(f"{side}: {look.steps} steps, mean {sum(look.lengths) / look.steps / 1e6:.3f} ms: {[round(n / 1e6, 1) for n in look.lengths]}")
    moved = {name: after.time[name] / after.steps - before.time[name] / before.steps for name in before.time.keys() | after.time.keys()}
    for name, delta in sorted(moved.items(), key=lambda item: -abs(item[1]))[:16]:
        print(f"{delta / 1e6:+9.3f} ms  {before.calls[name] / before.steps:7.2f} -> {after.calls[name] / after.steps:7.2f} calls  {name[:110]}")


if __name__ == "__main__":
    sys.exit(main())
