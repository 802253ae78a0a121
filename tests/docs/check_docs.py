#!/usr/bin/env python3
"""Runs the console examples of the documents and compares their output; checks that the files they name are there.

A code block whose first line starts with "$ " is an example: each "$ culprit ..." is run in one temporary folder, and what follows must
be its standard output, to the letter. Every line of a block that begins with "culprit" is a command line whose flags must be flags of
that command. In some documents every back-quoted path of the tree must exist, and in all of them every linked file.

Usage: check_docs.py CULPRIT [--update]
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
EXAMPLES = ["README.md", "docs/guide.md", "docs/how-it-works.md", "docs/add-a-suspect.md"]
PATHS = ["ARCHITECTURE.md", "CONTRIBUTING.md", "README.md", "docs/decisions.md", "docs/add-a-suspect.md", "docs/how-it-works.md"]
BLOCK = re.compile(r"^```[a-z]*\n(\$ .*?)^```$", re.M | re.S)
FENCED = re.compile(r"^```[a-z]*\n(.*?)^```$", re.M | re.S)
LINK = re.compile(r"\]\((?!https?:|#)([^)#\s]+)[^)]*\)")
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


class Flags:
    """The flags of each command, from its help."""

    def __init__(self, culprit):
        self.culprit, self.known = culprit, {}

    def help(self, *words):
        done = subprocess.run([self.culprit, *words], capture_output=True, text=True, check=False)
        return done.stdout if done.returncode == 0 else ""

    def of(self, words):
        """(command, its flags); a first word that is no command belongs to diagnose."""
        command = words[0] if words and re.fullmatch("[a-z-]+", words[0]) else "diagnose"
        if command == "lab" and len(words) > 1 and not words[1].startswith("-"):
            command = f"lab {words[1]}"
        if command not in self.known:
            page = self.help(*command.split(), "--help") if " " in command else self.help("help", command)
            self.known[command] = {flag for pair in re.findall(r"^  (?:(-\w), )?(--?[a-z][a-z-]*)", page, re.M) for flag in pair} | {"-h", "--help"}
        return command, self.known[command]


def wrong_flags(text, flags):
    """(command line, flag) of each flag in the blocks of `text` that its command lacks."""
    lines = [line for block in FENCED.findall(text) for line in block.replace("\\\n", " ").splitlines()]
    for line in lines:
        words = re.split(r"\s", re.split(r"\s#|[|;>]|&&", line.removeprefix("$ ").strip())[0])
        if words[0] != "culprit" or "[" in line.split("#")[0]:
            continue
        command, known = flags.of([word for word in words[1:] if word])
        for word in words[1:]:
            flag = word.split("=")[0]
            if re.fullmatch(r"--?[a-zA-Z][a-z-]*", flag) and flag not in known:
                yield f"culprit {command}", flag


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
    flags, checked = Flags(culprit), 0
    for path in [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")]:
        text, checked = path.read_text(), checked + 1
        for line, flag in wrong_flags(text, flags):
            faults += 1
            print(f"{path.name}: {line} has no flag {flag}")
        for link in LINK.findall(text):
            if not (path.parent / link).exists():
                faults += 1
                print(f"{path.name}: {link} is linked, and not there")
    if examples == 0 or checked == 0:
        faults += 1
        print("no example was found")
    print(f"documents: {examples} examples, {faults} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
