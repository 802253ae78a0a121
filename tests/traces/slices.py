#!/usr/bin/env python3
"""Slices of the real traces: strict JSON, links whole, and the figures of the step they were cut from.

    slices.py CULPRIT_BINARY TRACES_DIR

The middle step of each trace that culprit answers for. Exit 0: all agree; 1: a miss; 77: no traces.
"""
import json
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
from slices import answer, check_slice, events_of, strict  # noqa: E402

SKIPPED = 77


def main():
    culprit, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    if not folder.is_dir():
        print(f"SKIP: no folder {folder}")
        return SKIPPED
    expected = json.loads((pathlib.Path(__file__).parent / "expected.json").read_text())
    entries = [e for e in expected["files"] if e["exit"] == 0 and ".json" in e["path"]]
    missed = sliced = 0
    with tempfile.TemporaryDirectory() as name:
        for entry in entries:
            trace = folder / entry["path"]
            document = answer(culprit, trace, "--mapping", "none")
            if document["steps"]["count"] == 0 or document["ranks"]:
                continue  # of several devices the answer is about one: the mean's place is another
            step = (document["steps"]["count"] - 1) // 2
            try:
                whole = events_of(strict(trace.read_bytes()))
            except ValueError:
                whole = None
            faults, events = check_slice(culprit, trace, pathlib.Path(name) / "part.json", step, ["--mapping", "none"], whole)
            sliced += 1
            missed += bool(faults)
            print(f"{'MISS' if faults else 'ok':4}  {entry['path']}: step {step} of {document['steps']['count']}, {events} events")
            for fault in faults[:8]:
                print(f"      {fault}")
    print(f"{sliced} slices, {missed} misses")
    return 1 if missed or not sliced else 0


if __name__ == "__main__":
    sys.exit(main())
