#!/usr/bin/env python3
"""A few cuts and flips of small traces (tests/damage.py does thousands), and the check itself can fail."""
import os
import pathlib
import stat
import subprocess
import sys
import tempfile

TESTS = pathlib.Path(__file__).resolve().parent.parent
CULPRIT = os.environ["CULPRIT"]


def damage(program, *args):
    return subprocess.run([sys.executable, TESTS / "damage.py", program, *args], capture_output=True, text=True, timeout=300)


def main():
    with tempfile.TemporaryDirectory() as folder:
        traces = []
        for name in ("host-bound", "gaps"):
            path = pathlib.Path(folder) / f"{name}.json"
            subprocess.run([CULPRIT, "forge", name, "--steps", "1", "-o", path], check=True, capture_output=True)
            traces.append(path)
        done = damage(CULPRIT, "--cuts", "12", "--flips", "24", *traces)
        print(done.stdout, done.stderr)
        assert done.returncode == 0, "a damaged trace was not answered as it should"

        # A program that answers the first call as it should, and then says of any trace that it is whole, must be caught.
        liar = pathlib.Path(folder) / "liar"
        liar.write_text(f'#!/bin/sh\n"{CULPRIT}" "$@" | sed "s/\\"code\\": \\"truncated\\"/\\"code\\": \\"no-steps\\"/"; exit 0\n')
        liar.chmod(liar.stat().st_mode | stat.S_IXUSR)
        assert damage(liar, "--cuts", "8", "--flips", "0", *traces).returncode == 1, "a silent loss was not caught"
    return 0


if __name__ == "__main__":
    sys.exit(main())
