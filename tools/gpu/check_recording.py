#!/usr/bin/env python3
"""Checks a recording: packed (evidence.tar and its folder) or unpacked (tests/data/gpu).

    python3 tools/gpu/check_recording.py DIR [--rehearsal]

Every manifest is complete, every trace that it names is there, whole, and has the steps it says,
BEFORE and AFTER compute the same, and nothing is too large. Exit code: 0 sound, 1 not.
"""

import gzip
import json
import os
import sys
import tarfile

import pack
import shorten

FILES, FILE_BYTES, COMMIT_BYTES = 8, 16 * 2**20, 16 * 2**20


def files_of(folder):
    """{relative path: bytes} of what is, or would be, committed."""
    tar_path = os.path.join(folder, "evidence.tar")
    if os.path.exists(tar_path):
        with tarfile.open(tar_path) as tar:
            return {m.name: tar.extractfile(m).read() for m in tar.getmembers()}
    found = {}
    for root, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(root, name)
            with open(path, "rb") as source:
                found[os.path.relpath(path, folder)] = source.read()
    return found


def check_run(label, run, folder, files, cut_short, problems):
    if "error" in run:
        return
    if "trace" not in run or "tpot" not in run:
        if not cut_short:
            problems.append(f"{label}: no trace or no TPOT, and no error")
        return
    for figure in (run["tpot"], run["profiled"]):
        if min(figure["step_ns"]) <= 0 or len(figure["step_ns"]) != figure["steps"]:
            problems.append(f"{label}: impossible step times")
    if run["trace"] is None:
        if not run.get("trace_note"):
            problems.append(f"{label}: the trace is missing without a reason")
        return
    data = files.get(f"{folder}/{run['trace']}")
    if data is None:
        problems.append(f"{label}: {run['trace']} is not there")
        return
    try:
        text = gzip.decompress(data).decode("utf-8", "surrogateescape")
        json.loads(text, strict=False)
        steps = shorten.Trace(text).steps
    except (OSError, ValueError, shorten.NotATrace) as error:
        problems.append(f"{label}: {error}")
        return
    if steps != run["trace_steps"] or steps < pack.FEWEST_STEPS:
        problems.append(f"{label}: {steps} steps in the trace, the manifest says {run['trace_steps']}")


def check_manifest(folder, manifest, files, problems):
    if manifest["status"] == "running":
        problems.append(f"{folder}: still running")
    if manifest["status"] in ("failed", "skipped", "partial"):
        runs = [r for v in manifest["variants"].values() for r in v["runs"].values()]
        if not manifest["reason"] and not any("error" in r for r in runs):
            problems.append(f"{folder}: {manifest['status']} without a reason")
    cut_short = manifest["status"] in ("failed", "partial") and manifest["reason"]
    for name, variant in manifest["variants"].items():
        for mode, run in variant["runs"].items():
            check_run(f"{folder} {name} {mode}", run, folder, files, cut_short, problems)
        difference, tolerance = variant.get("relative_l2_to_before"), manifest["result_tolerance"]
        if difference is not None and tolerance is not None and not difference <= tolerance:
            problems.append(f"{folder} {name}: the result differs from BEFORE by {difference:.3g}, "
                            f"more than {tolerance}")
    if manifest["status"] == "recorded":
        ran = [n for n, v in manifest["variants"].items() if any("tpot" in r for r in v["runs"].values())]
        if ran != list(manifest["variants"]):
            problems.append(f"{folder}: recorded, but only {ran} ran")


def check(folder, rehearsal):
    problems = []
    files = files_of(folder)
    sizes = {n: os.path.getsize(os.path.join(folder, n)) for n in os.listdir(folder)
             if os.path.isfile(os.path.join(folder, n))}
    if "evidence.tar" in sizes and (len(sizes) > FILES or max(sizes.values()) > FILE_BYTES):
        problems.append(f"{len(sizes)} files, the largest of {max(sizes.values())} bytes")
    if sum(len(d) for n, d in files.items()) > COMMIT_BYTES:
        problems.append("more than 16 MiB to commit")
    manifests = {n.split("/")[0]: json.loads(d) for n, d in files.items() if n.endswith("/manifest.json")}
    if not manifests:
        problems.append("no manifest")
    named = set()
    for name, manifest in sorted(manifests.items(), key=lambda pair: pair[1]["order"]):
        check_manifest(name, manifest, files, problems)
        if manifest["stand_ins"] and not rehearsal:
            problems.append(f"{name}: taken with stand-ins, a rehearsal: {', '.join(manifest['stand_ins'])}")
        named |= {f"{name}/{r.get('trace')}" for v in manifest["variants"].values() for r in v["runs"].values()}
    stray = [n for n in files if n.endswith(".json.gz") and n not in named]
    if stray:
        problems.append(f"traces that no manifest names: {', '.join(stray)}")
    return problems, manifests


def main(argv):
    folders = [a for a in argv if not a.startswith("--")]
    if len(folders) != 1:
        print(__doc__, file=sys.stderr)
        return 2
    problems, manifests = check(folders[0], "--rehearsal" in argv)
    print("\n".join(problems) or f"{len(manifests)} cases, sound")
    return int(bool(problems))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
