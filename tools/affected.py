#!/usr/bin/env python3
"""Prints the sources (.cc) that what changed since a list was written can affect: those changed, and those that include what
was, however deep. A list holds the content hash of each source, so that no history is needed.

Usage: affected.py LIST FOLDER...            all sources, where there is no list or the checks themselves changed
       affected.py --write LIST FOLDER...    writes it anew
"""
import pathlib
import re
import subprocess
import sys

INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)
CHECKS = ".clang-tidy"


def git(*arguments, text=None):
    return subprocess.run(["git", *arguments], input=text, capture_output=True, text=True, check=True).stdout.split()


def main():
    write = sys.argv[1] == "--write"
    path, *folders = sys.argv[2 if write else 1:]
    files = [CHECKS] + [f for f in git("ls-files", "--", *folders) if f.endswith((".cc", ".h"))]
    now = dict(zip(files, git("hash-object", "--stdin-paths", text="\n".join(files))))
    if write:
        pathlib.Path(path).write_text("".join(f"{hash} {file}\n" for file, hash in now.items()))
        return
    lines = pathlib.Path(path).read_text().splitlines() if pathlib.Path(path).exists() else []
    then = {file: hash for hash, file in (line.split(" ", 1) for line in lines)}
    affected = {f for f in files if then.get(f) != now[f]}
    if CHECKS in affected:
        affected = set(files)
    includes = {f: set(INCLUDE.findall(pathlib.Path(f).read_text())) for f in files}
    while True:
        more = {f for f in files if f not in affected
                and any(header.endswith("/" + name) or header == name for header in affected for name in includes[f])}
        if not more:
            break
        affected |= more
    for file in sorted(affected):
        if file.endswith(".cc"):
            print(file)


if __name__ == "__main__":
    main()
