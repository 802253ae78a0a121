#!/usr/bin/env python3
"""Checks on real traces what culprit lends from a graph's capture to its replay (--mapping).

    mapping.py CULPRIT_BINARY TRACES_DIR

The joins are worked out here from the files alone, without culprit: the kernel names that the capture's launches carry must
be the replay's, in order; each launch's innermost operator is found by time. culprit must attribute the same operators to
the same kernels, and nothing where the companion is another model's, or cut. Exit 77: the folder of traces is not there.
"""
import collections
import gzip
import json
import pathlib
import subprocess
import sys
import tempfile

SKIPPED = 77
PAIRS = ["serving/sglang-qwen3-8b-decode-mi300x", "serving/vllm-decode-full-graph-noname304cu"]
AT_LEAST = 0.95


def load(path):
    return json.loads(gzip.decompress(path.read_bytes()))


def events(document, *categories):
    return [e for e in document["traceEvents"] if e.get("ph") == "X" and e.get("cat") in categories]


def replayed(document):
    """[(name, ns)] of the kernels of the only graph launch, in time order."""
    launches = [e["args"]["correlation"] for e in events(document, "cuda_runtime") if "GraphLaunch" in e["name"]]
    kernels = [e for e in events(document, "kernel") if e["args"].get("correlation") == launches[0]]
    return [(e["name"], round(e["dur"] * 1000)) for e in sorted(kernels, key=lambda e: e["ts"])]


def captured(document):
    """[(kernel name, innermost operator)] of the launches between the begin and the end of the capture, in order."""
    calls = sorted(events(document, "cuda_runtime"), key=lambda e: e["ts"])
    begin = next(e["ts"] for e in calls if "BeginCapture" in e["name"])
    end = next(e["ts"] for e in calls if "EndCapture" in e["name"])
    ops = sorted(events(document, "cpu_op"), key=lambda e: e["ts"])
    launches, open_ops, following = [], [], 0
    for call in calls:
        if not begin <= call["ts"] < end or "kernel" not in call["args"]:
            continue
        while following < len(ops) and ops[following]["ts"] <= call["ts"]:
            open_ops.append(ops[following])
            following += 1
        around = [o for o in open_ops if o["ts"] + o["dur"] > call["ts"] and o["tid"] == call["tid"]]
        open_ops = around
        innermost = max(around, key=lambda o: (o["ts"], -o["dur"]), default=None)
        launches.append((call["args"]["kernel"], innermost["name"] if innermost else None))
    return launches


def culprit(binary, *arguments):
    done = subprocess.run([binary, *map(str, arguments), "--json"], capture_output=True, timeout=120, check=False)
    return json.loads(done.stdout)


def notes(answer):
    return {note["code"]: note for note in answer["quality"]["notes"]}


def check_pair(binary, folder, pair):
    """What is wrong with one pair, as text."""
    run, capture = folder / f"{pair}.json.gz", folder / f"{pair}.capture.json.gz"
    kernels, launches = replayed(load(run)), captured(load(capture))
    if [name for name, _ in kernels] != [name for name, _ in launches]:
        yield "the files themselves do not pair: the names of launches and kernels differ"
        return
    expected = collections.Counter()
    for (_, ns), (_, op) in zip(kernels, launches):
        expected[op] += ns

    answer = culprit(binary, "ops", run, "--mapping", capture)
    lent = answer["quality"]["mapping"][0]
    total = sum(ns for _, ns in kernels)
    if lent["kernels"] != len(kernels) or lent["total_ns"] != total:
        yield f"lent to {lent['kernels']} kernels of {lent['total_ns']} ns, expected {len(kernels)} of {total}"
    shares = answer["quality"]["gpu_time_attributed"]
    if shares["op"] < AT_LEAST or shares["source"] < AT_LEAST:
        yield f"attributed: {shares}"
    without = {row["op"]: row["ns_per_step"] for row in culprit(binary, "ops", run, "--mapping", "none")["table"]["rows"]}
    found = {row["op"]: row["ns_per_step"] for row in answer["table"]["rows"]}
    for op, ns in expected.items():
        if op is not None and abs(found.get(op, 0) - without.get(op, 0) - ns) > 1:
            yield f"{op}: {found.get(op, 0) - without.get(op, 0)} ns from the replay, expected {ns}"

    alone = culprit(binary, run, "--mapping", "none")
    if any(kernel["op"] for kernel in alone["kernels"] if kernel["launch"] and "GraphLaunch" in kernel["launch"]["api"]):
        yield "without a mapping a replayed kernel has an operator"
    if alone["layers"]["count"] is None:
        yield "without a mapping the layers are unknown"
    if culprit(binary, run)["quality"]["mapping"][0]["found"] != "beside":
        yield "the capture beside the trace is not found"


def check_wrong(binary, folder, pair, other):
    """Another model's capture lends nothing; one that lost its second half lends no more than it has."""
    run = folder / f"{pair}.json.gz"
    answer = culprit(binary, run, "--mapping", folder / f"{other}.capture.json.gz")
    if answer["quality"]["mapping"][0]["kernels"] != 0 or "not-mapped" not in notes(answer):
        yield f"the capture of {other} lends {answer['quality']['mapping'][0]}"
    document = load(folder / f"{pair}.capture.json.gz")
    calls = sorted(e["ts"] for e in events(document, "cuda_runtime") if "kernel" in e["args"])
    middle = calls[len(calls) // 2]
    document["traceEvents"] = [e for e in document["traceEvents"] if e.get("ts", 0) < middle]
    with tempfile.TemporaryDirectory() as place:
        cut = pathlib.Path(place) / "cut.json"
        cut.write_text(json.dumps(document), encoding="utf-8")
        answer = culprit(binary, run, "--mapping", cut)
    kernels = len(replayed(load(run)))
    lent = answer["quality"]["mapping"][0]["kernels"]
    if not 0.4 * kernels < lent < 0.6 * kernels or notes(answer)["not-mapped"]["count"] != kernels - lent:
        yield f"a capture cut in its middle lends to {lent} of {kernels}"


def main():
    binary, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    if not folder.is_dir():
        print(f"SKIP: no traces folder at {folder}")
        return SKIPPED
    misses = 0
    for pair, other in zip(PAIRS, reversed(PAIRS)):
        found = [*check_pair(binary, folder, pair), *check_wrong(binary, folder, pair, other)]
        misses += len(found)
        print("miss" if found else "ok  ", pair)
        for miss in found:
            print("     -", miss)
    return 1 if misses else 0


if __name__ == "__main__":
    sys.exit(main())
