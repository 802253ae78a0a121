#!/usr/bin/env python3
"""Damages traces at random and checks that the program answers or refuses, and never silently.

Usage: damage.py CULPRIT [--cuts N] [--flips N] [--seed N] TRACE...      a trace is plain or .gz; both forms of it are damaged

A cut drops the end of the file; a flip changes one bit. Each damaged file must be answered (exit 0) or refused with a
message (exit 2) within 10 s, with a JSON document in valid UTF-8 either way. A note must say so, unless the damaged text is
still valid JSON of as many events (then nobody can know), or the answer is that of the whole trace (then it did not matter).
Prints the seed of a damage that fails, and exits 1.
"""
import argparse
import gzip
import json
import pathlib
import random
import subprocess
import sys
import tempfile
import zlib

TIMEOUT_S = 10
DAMAGE = {"truncated", "bad-event", "bad-string", "bad-number", "negative-duration", "duplicate-key", "trailing-data",
          "compression-damaged", "limit", "not-a-trace", "empty", "unsupported", "impossible-duration"}


def events_of(text):
    """The event array of JSON text, or None where it is damaged."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return None
    events = document if isinstance(document, list) else document.get("traceEvents") if isinstance(document, dict) else None
    return events if isinstance(events, list) else None


def text_of(data):
    """What is unpacked from `data`; None where its compression is damaged."""
    if data[:2] != b"\x1f\x8b":
        return data
    try:
        return gzip.decompress(data)
    except (OSError, EOFError, ValueError, zlib.error):
        return None


def damage(data, kind, dice):
    if kind == "cut":
        return data[:dice.randrange(len(data))]
    changed = bytearray(data)
    changed[dice.randrange(len(data))] ^= 1 << dice.randrange(8)
    return bytes(changed)


def figures(answer):
    return {key: value for key, value in answer.items() if key != "inputs"}


def complaint(culprit, whole, sound, scratch, data):
    """What is wrong with the answer to `data`, or None. `whole`: how many events the trace has; `sound`: its answer."""
    scratch.write_bytes(data)
    try:
        done = subprocess.run([culprit, str(scratch), "--json", "--mapping", "none"], capture_output=True, timeout=TIMEOUT_S)
    except subprocess.TimeoutExpired:
        return f"longer than {TIMEOUT_S} s"
    error = done.stderr.decode(errors="replace")
    if done.returncode not in (0, 2):
        return f"exit {done.returncode}: {error[-2000:]}"
    if done.returncode == 2 and "culprit: error: " not in error:
        return "refused without a message"
    try:
        answer = json.loads(done.stdout.decode("utf-8"))
    except ValueError as e:
        return f"no JSON document: {e}"
    if {note["code"] for note in answer["quality"]["notes"]} & DAMAGE:
        return None
    if figures(answer) == figures(sound):
        return None
    text = text_of(data)
    events = None if text is None else events_of(text.decode("utf-8", "surrogateescape"))
    if events is not None and len(events) == whole and answer["inputs"][0]["events"] == whole:
        return None
    read = answer["inputs"][0]["events"] if answer["inputs"] else None
    return f"nothing says that it is damaged: {read} of {whole} events read"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("culprit")
    parser.add_argument("traces", nargs="+", type=pathlib.Path)
    parser.add_argument("--cuts", type=int, default=20)
    parser.add_argument("--flips", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    failures = runs = 0
    with tempfile.TemporaryDirectory() as folder:
        inputs = []
        for path in options.traces:
            plain = text_of(path.read_bytes())
            whole = len(events_of(plain.decode("utf-8", "surrogateescape")))
            sound = json.loads(subprocess.run([options.culprit, str(path), "--json", "--mapping", "none"], capture_output=True, check=True).stdout)
            for file, data in (("plain.json", plain), ("packed.json.gz", gzip.compress(plain, 6, mtime=0))):
                inputs.append((path.name, data, whole, sound, file))
        for kind, count in (("cut", options.cuts), ("flip", options.flips)):
            for i in range(count):
                name, data, whole, sound, file = inputs[i % len(inputs)]
                seed = f"{options.seed} {kind} {i}"
                wrong = complaint(options.culprit, whole, sound, pathlib.Path(folder) / file,
                                  damage(data, kind, random.Random(seed)))
                runs += 1
                if wrong:
                    failures += 1
                    print(f"FAILED {name} as {file}, {kind} {i} of seed {options.seed}: {wrong}")
    print(f"{runs - failures} of {runs} damaged traces answered or refused as they should")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
