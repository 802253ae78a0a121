#!/usr/bin/env python3
"""Holds culprit's answer about real ranks of one run against a reading of the same files with the standard library alone.

NCCL kernels are paired by their order, clocks are taken as apart by the median difference of their ends, the last one to begin starts the
transfer, and what goes beyond twice the lower quartile of a kind's transfers is waiting for ranks that are not in the files.

Usage: ranks.py CULPRIT FOLDER   Exit 77: the folder is absent.
"""
import gzip
import json
import pathlib
import statistics
import subprocess
import sys

PAIRS = [
    # files, who is late, why
    (("transformers/megatron-tp8-rank0.json.gz", "transformers/megatron-tp8-rank1.json.gz"), 0, "idle-host-work"),
    (("other/dlrm-worker0.json.gz", "other/dlrm-worker1.json.gz"), 0, "idle-host-launch"),
]
NEAR = 0.005  # of the step
CLOCKS_NS = 10_000  # the files have whole microseconds, and ends scatter by some


def kernels(path):
    events = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
    found = [e for e in events if e.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")]
    return sorted(([e["ts"] * 1000, (e["ts"] + e["dur"]) * 1000, e["name"], e["args"].get("grid", [0])[0]] for e in found), key=lambda k: k[0])


def is_comm(kernel):
    return kernel[2].startswith("nccl")


def union(spans):
    out = []
    for begin, end in sorted(spans):
        if out and begin <= out[-1][1]:
            out[-1][1] = max(out[-1][1], end)
        else:
            out.append([begin, end])
    return out


def without(span, covers):
    """Length of span outside the sorted, disjoint covers."""
    return span[1] - span[0] - sum(max(0, min(span[1], e) - max(span[0], b)) for b, e in covers if b < span[1] and e > span[0])


def read(files):
    """Per rank: waiting and waiting for absent ranks, exposed, ns; and the difference of the clocks."""
    ranks = [kernels(f) for f in files]
    comm = [[k for k in rank if is_comm(k)] for rank in ranks]
    assert len(comm[0]) == len(comm[1]), "the ranks have other numbers of collectives"
    apart = statistics.median(b[1] - a[1] for a, b in zip(*comm))
    usual = {}
    for a, b in zip(*comm):
        assert a[2:] == b[2:], "the collectives come in another order"
        usual.setdefault((a[2], a[3]), []).append(min(a[1], b[1] - apart) - max(a[0], b[0] - apart))
    usual = {kind: sorted(times)[int(0.25 * len(times))] for kind, times in usual.items()}
    waits, absent, last = [0, 0], [0, 0], [0, 0]
    work = [union([k[0], k[1]] for k in rank if not is_comm(k)) for rank in ranks]
    for a, b in zip(*comm):
        begins = (a[0], b[0] - apart)
        came, left = max(begins), min(a[1], b[1] - apart)
        last[begins.index(came)] += 1
        started = came
        if left - came > 2 * usual[(a[2], a[3])]:
            started = left - usual[(a[2], a[3])]
        for r, kernel in enumerate((a, b)):
            first = kernel[0]
            there = min(kernel[1], first + max(0, came - begins[r]))
            until = min(kernel[1], first + max(0, started - begins[r]))
            waits[r] += without((first, until), work[r])
            absent[r] += without((there, until), work[r]) if until > there else 0
    return {"wait": waits, "absent": absent, "apart": apart, "collectives": len(comm[0])}


def check(culprit, files, late, why):
    mine = read(files)
    answer = json.loads(subprocess.run([culprit, *map(str, files), "--json"], capture_output=True, check=True).stdout)
    ranks = answer["ranks"]
    problems = []

    def near(what, got, want, tolerance):
        if abs(got - want) > tolerance:
            problems.append(f"{what}: culprit says {got}, this script {want}")

    for r, rank in enumerate(ranks):
        slack = NEAR * rank["mean_ns"]
        near(f"rank {r} wait", rank["wait_ns_per_step"], mine["wait"][r], slack)
        near(f"rank {r} absent", rank["absent_wait_ns_per_step"], mine["absent"][r], slack)
        near(f"rank {r} collectives", rank["collectives"], mine["collectives"], 0)
    near("clock", ranks[1]["clock_offset_ns"], mine["apart"], CLOCKS_NS)
    rows = [s for s in answer["suspects"] if s["id"] == "straggler"]
    if not rows or not rows[0]["claim"].startswith(f"rank {late} ") or rows[0]["cause"] != why:
        problems.append(f"straggler: {[(s['claim'], s['cause']) for s in rows]}, not rank {late} for {why}")
    if [r["rank"] for r in ranks if r["headline"]] != [late]:
        problems.append("the answer is about another rank")
    print(f"{files[0].name}: waits {[round(w / 1e6, 2) for w in mine['wait']]} ms, of it for ranks outside "
          f"{[round(w / 1e6, 2) for w in mine['absent']]} ms, clocks apart by {mine['apart'] / 1000:.1f} us")
    return problems


def main():
    culprit, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    if not folder.is_dir():
        print(f"skipped: {folder} is not there")
        return 77
    problems = []
    for names, late, why in PAIRS:
        problems += [f"{names[0]}: {p}" for p in check(culprit, [folder / n for n in names], late, why)]
    print("\n".join(problems) or "culprit agrees")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
