#!/usr/bin/env python3
"""Holds culprit against what tests/traces/expected.json says about each real trace.

    check.py CULPRIT_BINARY TRACES_DIR [--only TEXT]

Runs `culprit --json FILE` for each file, prints a table and every miss. Exit 0: all agree; 1: a miss; 77: the folder of
traces is not there (they belong to others and are not part of the project: docs/trace-support.md says where they are from).
"""
import argparse
import json
import pathlib
import re
import subprocess
import sys

SKIPPED = 77
TIMEOUT_S = 120
# `graph`: inside a replay, where no recorded kernel ran; the device may have worked, but nothing says so.
IDLE_OWNER = re.compile(r"idle-|graph$|unexplained$")


def dig(document, path):
    """document["a"]["b"] for "a.b"; None where a part is missing."""
    for key in path.split("."):
        if not isinstance(document, dict):
            return None
        document = document.get(key)
    return document


def any_of(expected):
    return expected if isinstance(expected, list) else [expected]


def within(value, low, high, slack):
    return isinstance(value, (int, float)) and low - slack <= value <= high + slack


class Misses(list):
    def equal(self, what, expected, found):
        if found not in any_of(expected):
            self.append(f"{what}: expected {' or '.join(map(str, any_of(expected)))}, found {found}")

    def between(self, what, limits, found, slack=0):
        if not within(found, *limits, slack):
            self.append(f"{what}: expected {limits[0]} to {limits[1]}, found {found}")


# ---------------------------------------------------------------------------------------------------------------------
# What is compared

def check_notes(entry, forbidden_if_answered, document, misses):
    notes = {note.get("code"): note for note in dig(document, "quality.notes") or []}
    forbidden = set(entry["notes_forbidden"]) | set(forbidden_if_answered if entry["exit"] == 0 else [])
    misses += [f"note {code} is missing" for code in entry["notes_required"] if code not in notes]
    misses += [f"note {code} must not be there" for code in sorted(forbidden & set(notes))]
    for code, count in entry.get("note_counts", {}).items():
        if code in notes:
            misses.equal(f"count of note {code}", count, notes[code].get("count"))


def check_device(entry, document, misses):
    device, expected = dig(document, "device") or {}, entry.get("device", {})
    if "sms" in expected:
        misses.equal("device.sms", expected["sms"], device.get("sms"))
    if "arch" in expected:
        misses.equal("device.arch", expected["arch"].replace("_", ""), str(device.get("arch")).replace("_", ""))
    if "name_has" in expected and expected["name_has"] not in str(device.get("name")):
        misses.append(f"device.name: expected {expected['name_has']} in it, found {device.get('name')}")


def check_steps(entry, document, misses):
    for what, field in (("kind", "steps.kind"), ("how", "steps.how"), ("steps", "steps.count"), ("layers", "layers.count")):
        if what in entry:
            misses.equal(field, entry[what], dig(document, field))
    if "batch" in entry:
        batches = [group.get("batch") for group in dig(document, "steps.groups") or []]
        if entry["batch"] not in batches:
            misses.append(f"steps.groups[].batch: expected {entry['batch']}, found {batches}")
    slack = entry.get("tolerance_ns", 0)
    misses.between("steps.device_span_ns", entry["device_span_ns"], dig(document, "steps.device_span_ns"), slack)
    misses.between("steps.device_busy", entry["device_busy"], dig(document, "steps.device_busy"), 0.001)
    if "step_ns" in entry:
        # The tool may leave out partial steps and outliers, so the mean of several lies between the extremes.
        limits = (min(entry["step_ns"]), max(entry["step_ns"]))
        misses.between("steps.mean_ns", limits, dig(document, "steps.mean_ns"), slack)
        misses.between("steps.median_ns", limits, dig(document, "steps.median_ns"), slack)
    if "op_share" in entry:
        found = dig(document, "quality.gpu_time_attributed.op")
        misses.between("quality.gpu_time_attributed.op", entry["op_share"], 0 if found is None else found, 0.001)


def check_budget(entry, document, misses):
    """The budget partitions the step: of one step we know its length and the union of its device activity, to the ns."""
    budget = {row.get("owner"): row.get("ns_per_step", 0) for row in dig(document, "budget") or []}
    if len(entry.get("step_ns", [])) == 1:
        slack = entry.get("tolerance_ns", 0)
        busy = sum(ns for owner, ns in budget.items() if not IDLE_OWNER.match(owner))
        misses.between("sum of budget", entry["step_ns"] * 2, sum(budget.values()), slack)
        misses.between("sum of budget where the device worked", entry["step_busy_ns"] * 2, busy, slack)
    for rule in entry.get("budget", []):
        limits = (rule.get("at_least_ns", 0), rule.get("at_most_ns", sum(budget.values())))
        misses.between(f"budget of {' + '.join(rule['owners'])}", limits, sum(budget.get(o, 0) for o in rule["owners"]))


def check_suspects(entry, document, misses):
    suspects = dig(document, "suspects") or []
    for suspect in suspects:
        if suspect.get("verdict") == "culprit" and suspect.get("id") in entry.get("culprits_forbidden", []):
            misses.append(f"{suspect['id']} must not be the culprit")
    wanted = entry.get("suspects_any", [])
    if wanted and not {suspect.get("id") for suspect in suspects} & set(wanted):
        misses.append(f"suspects: expected one of {', '.join(wanted)}, found {[s.get('id') for s in suspects]}")


def check_refusal(entry, document, stderr, misses):
    for field in ("suspects", "kernels", "ruled_out"):
        if dig(document, field):
            misses.append(f"{field} must be empty")
    if not stderr.strip():
        misses.append("nothing on stderr")
    misses += [f"stderr does not speak of /{words}/" for words in entry.get("stderr", [])
               if not re.search(words, stderr, re.IGNORECASE)]


def check(entry, forbidden_if_answered, exit_code, stdout, stderr):
    misses = Misses()
    misses.equal("exit", entry["exit"], exit_code)
    try:
        document = json.loads(stdout)
    except ValueError as error:
        misses.append(f"stdout is not one JSON document: {error}")
        return misses, {}
    misses.equal("quality.usable", entry["exit"] == 0, dig(document, "quality.usable"))
    if "events" in entry:
        misses.equal("inputs[].events", entry["events"], sum(i.get("events") or 0 for i in dig(document, "inputs") or []))
    check_notes(entry, forbidden_if_answered, document, misses)
    if entry["exit"] == 0:
        check_device(entry, document, misses)
        check_steps(entry, document, misses)
        check_budget(entry, document, misses)
        check_suspects(entry, document, misses)
    else:
        check_refusal(entry, document, stderr, misses)
    return misses, document


# ---------------------------------------------------------------------------------------------------------------------
# Command line

def run(culprit, path):
    try:
        done = subprocess.run([culprit, "--mapping", "none", "--json", path], capture_output=True, timeout=TIMEOUT_S,
                              check=False)
    except subprocess.TimeoutExpired:
        return None, "", f"no answer within {TIMEOUT_S} s"
    return done.returncode, done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("culprit", type=pathlib.Path, metavar="CULPRIT_BINARY")
    parser.add_argument("traces", type=pathlib.Path, metavar="TRACES_DIR")
    parser.add_argument("--only", default="", metavar="TEXT", help="only files whose path holds TEXT")
    options = parser.parse_args()
    if not options.traces.is_dir():
        print(f"SKIP: no traces folder at {options.traces}")
        return SKIPPED

    expected = json.loads(pathlib.Path(__file__).with_name("expected.json").read_text(encoding="utf-8"))
    entries = [entry for entry in expected["files"] if options.only in entry["path"]]
    failed = 0
    for entry in entries:
        exit_code, stdout, stderr = run(options.culprit, options.traces / entry["path"])
        misses, document = check(entry, expected["notes_forbidden"], exit_code, stdout, stderr)
        failed += bool(misses)
        steps = dig(document, "steps") or {}
        print(f"{'miss' if misses else 'ok':4}  {entry['path']:58} exit {exit_code}  "
              f"{steps.get('count', '-')} {steps.get('kind', '-')} {steps.get('how', '-')}")
        for miss in misses:
            print(f"      - {miss}")
    print(f"{len(entries) - failed} of {len(entries)} files agree")
    return 1 if failed or not entries else 0


if __name__ == "__main__":
    sys.exit(main())
