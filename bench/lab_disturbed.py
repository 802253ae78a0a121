#!/usr/bin/env python3
"""How much of their speed the laboratory's threads keep when another process takes one of the cores.

Usage: lab_disturbed.py CULPRIT [--rounds N] [-- FLAGS OF culprit lab run]

Runs the same decode undisturbed, beside a process that spins on no core in particular, and beside one that spins on each
core in turn; interleaved, medians of tokens/s. A second program that computes on the machine spoils it: look at `uptime` first.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys

DEFAULT = ["--preset", "llama-3.1-8b", "--layers", "4", "--scheme", "q8_0", "--prompt-length", "8", "--new", "48"]
SPIN = ["sh", "-c", "while :; do :; done"]


def tokens_per_s(culprit, flags):
    done = subprocess.run([culprit, "lab", "run", "--json", *flags], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)["decode"]["tokens_per_s"]


def beside(core, measure):
    """measure() while a process spins: on `core`, or wherever the scheduler puts it."""
    command = SPIN if core is None else ["taskset", "-c", str(core), *SPIN]
    spinning = subprocess.Popen(command)
    try:
        return measure()
    finally:
        spinning.kill()
        spinning.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("culprit")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("flags", nargs="*")
    options = parser.parse_args()
    flags = options.flags or DEFAULT
    cores = sorted(os.sched_getaffinity(0))
    measure = lambda: tokens_per_s(options.culprit, flags)  # noqa: E731
    cases = {"undisturbed": measure, "a process anywhere": lambda: beside(None, measure)}
    for core in cores:
        cases[f"a process on core {core}"] = lambda core=core: beside(core, measure)
    rates = {name: [] for name in cases}
    for _ in range(options.rounds):
        for name, run in cases.items():
            rates[name].append(run())
    whole = statistics.median(rates["undisturbed"])
    for name, values in rates.items():
        median = statistics.median(values)
        print(f"{name:24} {median:8.2f} tokens/s  {median / whole:5.0%}  ({min(values):.2f} to {max(values):.2f})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
