#!/usr/bin/env python3
"""The queries of all facts of the answers about the real traces give their values again.

    queries.py CULPRIT_BINARY TRACES_DIR

Exit 0: all agree; 1: a miss; 77: no traces.
"""
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
from queries import wrong_facts  # noqa: E402

SKIPPED = 77


def main():
    culprit, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    if not folder.is_dir():
        print(f"SKIP: no folder {folder}")
        return SKIPPED
    expected = json.loads((pathlib.Path(__file__).parent / "expected.json").read_text())
    asked = missed = 0
    for entry in expected["files"]:
        if entry["exit"] != 0:
            continue
        facts, wrong = wrong_facts(culprit, [folder / entry["path"]])
        asked += len(facts)
        missed += bool(wrong)
        print(f"{'MISS' if wrong else 'ok':4}  {entry['path']}: {len(facts)} facts")
        for complaint in wrong[:5]:
            print(f"      {complaint}")
    print(f"{asked} facts, {missed} files with misses")
    return 1 if missed or not asked else 0


if __name__ == "__main__":
    sys.exit(main())
