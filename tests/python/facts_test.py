#!/usr/bin/env python3
"""Every fact's query, run as printed, gives the fact's value again. Needs jq; skips without it."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

CULPRIT = os.environ["CULPRIT"]
RUNS = [["glm5", "--steps", "3"], ["host-bound", "--steps", "3"], ["gaps", "--steps", "3"]]


def shell(command, folder):
    done = subprocess.run(["bash", "-c", command], cwd=folder, capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout, done.stderr


def check(run, folder):
    trace = folder / "run.json"
    subprocess.run([CULPRIT, "forge", *run, "-o", trace], check=True, capture_output=True)
    document = json.loads(subprocess.run([CULPRIT, trace, "--json"], check=True, capture_output=True, text=True).stdout)
    queries = {}
    for fact in document["facts"]:
        queries.setdefault(fact["query"], []).append(fact)
    assert len(document["facts"]) > 20, "too few facts to be the whole list"
    wrong = 0
    for query, facts in queries.items():
        code, out, err = shell("set -o pipefail; " + query.replace("TRACE", "run.json", 1), folder)
        for fact in facts:
            # Shares are printed with six digits elsewhere in the document.
            if code != 0 or abs(float(out) - fact["value"]) > 2e-6 * max(1.0, abs(fact["value"])):
                wrong += 1
                print(f"{run[0]}: {fact['id']} {fact['name']} = {fact['value']}, but {query}\n  gives {out.strip()} {err.strip()}")
    print(f"{run[0]}: {len(document['facts'])} facts, {wrong} wrong")
    return wrong


def main():
    if shutil.which("jq") is None:
        print("SKIP: no jq")
        return 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        os.environ["PATH"] = f"{pathlib.Path(CULPRIT).resolve().parent}:{os.environ['PATH']}"
        return 1 if sum(check(run, folder) for run in RUNS) else 0


if __name__ == "__main__":
    sys.exit(main())
