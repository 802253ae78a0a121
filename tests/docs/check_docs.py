#!/usr/bin/env python3
"""Runs the console examples of the documents and compares their output; checks that the files they name are there.

A code block whose first line starts with "$ " is an example: each "$ culprit ..." is run in one temporary folder, and what follows must
be its standard output, to the letter. In ARCHITECTURE.md and CONTRIBUTING.md every back-quoted path of the tree must exist.

Usage: check_docs.py CULPRIT [--update]
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
EXAMPLES = ["README.md"]
PATHS = ["ARCHITECTURE.md", "CONTRIBUTING.md", "README.md", "docs/decisions.md"]
BLOCK = re.compile(r"^```[a-z]*\n(\$ .*?)^```$", re.M | re.S)
PATH = re.compile(r"[`(]((?:src|forge|tests|tools|bench|docs|scripts|app|profile|examples)/[A-Za-z0-9_./-]+)[`)]")


def run_block(block, culprit, folder):
    """The block as it should read: every command followed by what it prints now."""
    environment = {**os.environ, "PATH": f"{culprit.parent}:{os.environ['PATH']}", "COLUMNS": "80", "LC_ALL": "C.UTF-8"}
    out = ""
    for line in block.splitlines():
        if not line.startswith("$ "):
            continue
        done = subprocess.run(line[2:], shell=True, cwd=folder, env=environment, text=True, capture_output=True, timeout=120)
        out += f"{line}\n{done.stdout}"
        if done.returncode != 0:
            out += f"(exit {done.returncode}) {done.stderr}"
    return out


def main():
    culprit = pathlib.Path(sys.argv[1]).resolve()
    update = "--update" in sys.argv[2:]
    faults = examples = 0
    for name in EXAMPLES:
        text = (ROOT / name).read_text()
        with tempfile.TemporaryDirectory() as folder:
            for block in BLOCK.findall(text):
                examples += 1
                now = run_block(block, culprit, folder)
                if now == block:
                    continue
                if update:
                    (ROOT / name).write_text((ROOT / name).read_text().replace(block, now))
                else:
                    faults += 1
                    print(f"{name}: the example does not print this any more:\n{block}\n--- it prints:\n{now}")
    for name in PATHS:
        for path in PATH.findall((ROOT / name).read_text()):
            if not (ROOT / path).exists() and "<" not in path:
                faults += 1
                print(f"{name}: {path} is not in the tree")
    if examples == 0:
        faults += 1
        print("no example was found")
    print(f"documents: {examples} examples, {faults} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
