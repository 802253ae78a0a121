#!/usr/bin/env python3
"""Prints the sources (.cc) that a change since COMMIT can affect: those changed, and those that include what was, however deep.

Usage: affected.py COMMIT FOLDER...      prints all sources of the folders when the commit is not in this clone
"""
import pathlib
import re
import subprocess
import sys

INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)


def git(*arguments):
    done = subprocess.run(["git", *arguments], capture_output=True, text=True)
    return done.stdout.split() if done.returncode == 0 else None


def main():
    commit, folders = sys.argv[1], sys.argv[2:]
    files = [f for f in git("ls-files", "--", *folders) if f.endswith((".cc", ".h"))]
    changed = git("diff", "--name-only", commit)
    if changed is None or ".clang-tidy" in changed:
        affected = set(files)
    else:
        affected = set(changed) & set(files)
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
