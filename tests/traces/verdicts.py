#!/usr/bin/env python3
"""Holds the verdicts on the real serving traces against figures of an independent look, reasoned in docs/real-traces.md.

    verdicts.py CULPRIT_BINARY TRACES_DIR [--figures]

Reads each trace with the standard library alone, sorts its kernels by a name table of its own, and decides by itself
which idle time the host caused. --figures prints what it finds. Exit 0: all agree; 1: a miss; 77: no traces.
"""
import argparse
import decimal
import gzip
import json
import pathlib
import re
import subprocess
import sys

SKIPPED = 77
DEVICE = {"kernel", "gpu_memcpy", "gpu_memset"}

# The first pattern that is found decides. Names as they are in these files, read by hand.
KINDS = [("moe-gemm", r"^_matmul_ogs|^bmm_.*MxE2m1"), ("attention", r"paged_attention|FmhaBatchPrefill|unified_attention|reduce_segments|^fmhaSm100"),
         ("comm", r"nccl|multimem_all_reduce"), ("gemm", r"^Cijk_|^nvjet"), ("norm", r"rms_?norm|Rmsnorm2d"), ("rope", r"rotary_embedding"),
         ("kv-store", r"store_kvcache|reshape_and_cache"), ("activation", r"act_and_mul"), ("quantize", r"quantize_with|fp8_quant"),
         ("router", r"routing|_topk_forward|bitmatrix|finalize")]

# What each trace must be told: the culprit (None: nobody), and shares of the step that carry the reasoning.
EXPECTED = {
    "sglang-qwen3-8b-decode-mi300x": {"culprit": None, "busy": (0.0205, 0.0208), "queued": (0.976, 0.979)},
    "sglang-qwen3-8b-prefill-decode-mi300x": {"culprit": None, "busy": (0.498, 0.500), "queued": (0.498, 0.501)},
    "vllm-decode-full-graph-noname304cu": {"culprit": None, "busy": (0.997, 0.999), "moe-gemm": (0.65, 0.66)},
    "vllm-eager-context-b200": {"culprit": "host-launch", "busy": (0.136, 0.138), "host": (0.85, 0.87)},
    "vllm-prefill-decode-piecewise-noname304cu": {"culprit": None, "busy": (0.997, 0.999), "moe-gemm": (0.78, 0.79)},
}
LONGEST_REACH_NS = 100_000  # a launch reaches an idle device far sooner
LARGEST_DIFFERENCE = 0.005  # of the step, between the look and the tool


def ns(microseconds):
    return int(decimal.Decimal(str(microseconds)) * 1000)


def read(path):
    document = json.loads(gzip.open(path).read(), parse_float=decimal.Decimal)
    events = document["traceEvents"] if isinstance(document, dict) else document
    spans = [e for e in events if e.get("ph") == "X" and "dur" in e]
    device = sorted(((ns(e["ts"]), ns(e["ts"]) + ns(e["dur"]), e) for e in spans if e.get("cat") in DEVICE), key=lambda s: s[:2])
    calls = {e["args"]["correlation"]: (ns(e["ts"]), ns(e["ts"]) + ns(e["dur"])) for e in spans
             if e.get("cat") in ("cuda_runtime", "cuda_driver") and "correlation" in e.get("args", {})}
    return device, calls


def kind_of(event):
    if event["cat"] != "kernel":
        return "copy-engine"
    return next((kind for kind, pattern in KINDS if re.search(pattern, event["name"])), "small")


def idle_of(device, calls):
    """Idle time by who caused it: the host, whose launch came later than the gap's begin; a graph; or nobody: it was queued."""
    idle = {"host": 0, "graph": 0, "queued": 0}
    busy_until, last = device[0][1], device[0][2]
    for begin, end, event in device[1:]:
        if begin > busy_until:
            number, before = event["args"].get("correlation"), last["args"].get("correlation")
            launched = calls[number][1] if number in calls else busy_until
            waited = begin - launched > LONGEST_REACH_NS  # behind its launch: for another stream, or another process
            host = max(0, (launched if waited else begin) - busy_until) if launched > busy_until else 0
            idle["graph" if number == before else "host"] += begin - busy_until if number == before else host
            idle["queued"] += 0 if number == before else begin - busy_until - host
        if end > busy_until:
            busy_until, last = end, event
    return idle


def look(path):
    device, calls = read(path)
    figures = {"span": max(end for _, end, _ in device) - device[0][0]}
    busy, until = 0, device[0][0]
    for begin, end, event in device:
        own = max(0, end - max(begin, until))  # who came first has the overlap
        busy, until = busy + own, max(until, end)
        figures[kind_of(event)] = figures.get(kind_of(event), 0) + own
    return figures | {"busy": busy} | idle_of(device, calls)


def misses_of(name, figures, answer):
    step = answer["steps"]["mean_ns"]
    budget = {row["owner"]: row["ns_per_step"] for row in answer["budget"]}
    told = budget | {"busy": answer["steps"]["busy_ns"], "queued": budget.get("unexplained", 0),
                     "host": sum(value for owner, value in budget.items() if owner.startswith("idle-host"))}
    for what in [kind for kind, _ in KINDS] + ["busy", "host", "queued"]:
        difference = abs(told.get(what, 0) - figures.get(what, 0)) / step
        if difference > LARGEST_DIFFERENCE:
            yield f"{what}: the look finds {figures.get(what, 0)} ns, culprit {told.get(what, 0)} ns"
    expected = EXPECTED[name]
    for what, (low, high) in ((k, v) for k, v in expected.items() if k != "culprit"):
        if not low <= told.get(what, 0) / step <= high:
            yield f"{what}: {told.get(what, 0) / step:.4f} of the step, expected {low} to {high}"
    culprits = [s["id"] for s in answer["suspects"] if s["verdict"] == "culprit"]
    if culprits != ([expected["culprit"]] if expected["culprit"] else []):
        yield f"culprit: {culprits}, expected {expected['culprit']}"
    unknown = budget.get("other-kernel", 0) / told["busy"]
    if unknown > 0.03:
        yield f"{unknown:.1%} of the GPU's time has no kind"
    retiming = answer["retiming"]
    if not retiming["off"] and not (retiming["reproduces_step_within"] <= 0.03 and retiming["residual_ns"] <= 0.02 * step):
        yield f"retiming: {retiming}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("culprit")
    parser.add_argument("traces", type=pathlib.Path)
    parser.add_argument("--figures", action="store_true")
    options = parser.parse_args()
    if not (options.traces / "serving").is_dir():
        print(f"skipped: no traces in {options.traces}")
        return SKIPPED
    wrong = 0
    for name in EXPECTED:
        path = options.traces / "serving" / f"{name}.json.gz"
        figures = look(path)
        answer = json.loads(subprocess.run([options.culprit, str(path), "--json"], capture_output=True, check=True, timeout=120).stdout)
        misses = list(misses_of(name, figures, answer))
        print(f"{name}: {'agrees' if not misses else 'MISSES'}")
        for miss in misses:
            print(f"  {miss}")
        if options.figures:
            print("  " + ", ".join(f"{what} {value / 1e6:.3f} ms" for what, value in sorted(figures.items(), key=lambda f: -f[1])))
        wrong += bool(misses)
    print(f"{len(EXPECTED) - wrong} of {len(EXPECTED)} agree")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
