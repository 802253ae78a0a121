#!/usr/bin/env python3
"""Holds culprit against a recording: does it name what was planted, spare the fix, predict AFTER?

    python3 tools/gpu/judge_recording.py --culprit build/.../culprit tests/data/gpu [--table docs/gpu-evidence.md]

Prints a Markdown table; --table also puts it between the markers of that file. BEFORE's step without
the profiler is given to culprit (--tpot); AFTER's never is. Exit code: 0 all causes named, no fix
accused and the median error within the limit; 1 otherwise; 2 nothing to judge.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys

import pack

MEDIAN_ERROR_LIMIT = 0.05
MARKERS = ("<!-- errors: begin -->", "<!-- errors: end -->")
TIMEOUT_SECONDS = 120


def diagnose(culprit, trace, tpot_ns):
    """The JSON answer, or a text that says why there is none."""
    command = [culprit, trace, "--json"] + ([] if tpot_ns is None else ["--tpot", f"{tpot_ns / 1e6:.6f}"])
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_SECONDS)
        return json.loads(done.stdout) if done.returncode == 0 else f"exit code {done.returncode}"
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        return type(error).__name__


def judge_before(answer, run, cause):
    """(verdict text, ok, predicted step in ns or None)."""
    if isinstance(answer, str):
        return answer, False, None
    suspects = answer["suspects"]
    if not suspects:
        return "no suspect", False, None
    first = suspects[0]
    predicted = (first.get("gain") or {}).get("step_ns_after", {}).get("expected")
    if first["id"] not in run["expect"]:
        return f"named `{first['id']}`", False, None
    if cause and first.get("cause") not in (cause, "unknown"):
        return f"cause `{first.get('cause')}`, planted `{cause}`", False, predicted
    return f"`{first['id']}`", True, predicted


def accused(answer, run):
    """Why the answer about a fixed run is wrong, or None."""
    if isinstance(answer, str):
        return answer
    for suspect in answer["suspects"]:
        if suspect["id"] in run["innocent"] and suspect["verdict"] != "minor":
            return f"accuses `{suspect['id']}`"
    return None


def before_run(manifest, mode):
    """The run that a fix of this mode is held against: the same mode, or the only one there is."""
    runs = {m: r for m, r in manifest["variants"]["before"]["runs"].items() if r.get("trace")}
    return runs.get(mode) or (next(iter(runs.values())) if len(runs) == 1 else None)


def judge_case(culprit, folder, name, manifest):
    """Rows (case, mode, fix, verdict, before ns, measured ns, predicted ns, twin, ok) of one case."""
    by = manifest["compare_by"] + "_ns"
    answers = {}

    def ask(run, tpot):
        if run["trace"] not in answers:
            answers[run["trace"]] = diagnose(culprit, os.path.join(folder, name, run["trace"]), tpot)
        return answers[run["trace"]]

    for variant, entry in manifest["variants"].items():
        for mode, run in entry["runs"].items():
            if variant == "before" or not run.get("trace"):
                continue
            before = before_run(manifest, mode)
            if before is None:
                continue
            # A stall weighs more in a short trace than in the mean of the timed steps.
            tpot = None if manifest["cause"] else before["tpot"][by]
            verdict, named, predicted = judge_before(ask(before, tpot), before, manifest["cause"])
            fault = accused(ask(run, None), run)
            # Only the first fix is what the prediction is about.
            predicted = predicted if variant == "after" else None
            yield (name, mode, variant, verdict, before["tpot"][by], run["tpot"][by], predicted,
                   fault or "spared", named and fault is None)


def table(rows):
    lines = ["| case | mode | fix | named | before ms | after ms | predicted ms | error | fixed twin |",
             "|---|---|---|---|---|---|---|---|---|"]
    for name, mode, variant, verdict, before, measured, predicted, twin, _ in rows:
        error = "" if predicted is None else f"{predicted / measured - 1:+.1%}"
        lines.append(f"| {name} | {mode} | {variant} | {verdict} | {before / 1e6:.3f} | {measured / 1e6:.3f} | "
                     f"{'' if predicted is None else f'{predicted / 1e6:.3f}'} | {error} | {twin} |")
    return "\n".join(lines)


def put_between_markers(path, text):
    with open(path) as source:
        document = source.read()
    head, rest = document.split(MARKERS[0], 1)
    tail = rest.split(MARKERS[1], 1)[1]
    with open(path, "w") as out:
        out.write(f"{head}{MARKERS[0]}\n{text}\n{MARKERS[1]}{tail}")


def main(argv):
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("folder")
    p.add_argument("--culprit", required=True)
    p.add_argument("--table", metavar="FILE")
    args = p.parse_args(argv)
    rows = [row for name, manifest in pack.read_manifests(args.folder)
            for row in judge_case(args.culprit, args.folder, name, manifest)]
    if not rows:
        print("nothing to judge: no recorded pair of BEFORE and AFTER", file=sys.stderr)
        return 2
    errors = [abs(predicted / measured - 1) for *_, measured, predicted, _, _ in rows if predicted is not None]
    median = statistics.median(errors) if errors else float("inf")
    text = table(rows) + f"\n\n{sum(r[-1] for r in rows)} of {len(rows)} right; median error " + (
        f"{median:.1%} of {len(errors)} predictions" if errors else "unknown: no prediction")
    print(text)
    if args.table:
        put_between_markers(args.table, text)
    return int(not all(r[-1] for r in rows) or median > MEDIAN_ERROR_LIMIT)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
