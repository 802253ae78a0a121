#!/usr/bin/env python3
"""What cutting one step out of a 500 MB trace costs, beside diagnosing it: in turns, plain and gzip.

The slice must be strict JSON and hold the step's length. Prints medians and the ratio, which must be 1.2 or less for the plain file.

Usage: bench/slice.py BUILD_FOLDER [--data FOLDER] [--rounds N] [--size SIZE]
"""
import argparse
import json
import pathlib
import statistics
import subprocess

from compare import forge, run


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", help="a build folder with culprit")
    parser.add_argument("--data", default=None, help="where the forged traces go (default: BUILD_FOLDER/bench-data)")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--size", default=None)
    args = parser.parse_args()
    data = pathlib.Path(args.data) if args.data else pathlib.Path(args.build) / "bench-data"
    data.mkdir(parents=True, exist_ok=True)
    culprit = str(pathlib.Path(args.build) / "culprit")
    worst = 0.0
    print(f"Medians of {args.rounds} rounds\n\n| trace | MB | slice, MB | diagnose, s | slice, s | ratio | peak MB, slice / diagnose |\n|---|---|---|---|---|---|---|")
    for path in forge(culprit, data, args.size).values():
        for trace in (path, pathlib.Path(f"{path}.gz")):
            out = data / "slice.json"
            cut = [culprit, "slice", str(trace), "--step", "2", "-o", str(out), "--quiet"]
            subprocess.run(cut, check=True)
            part = json.loads(out.read_text())["culpritSlice"]["steps"][0]
            step = json.loads(run([culprit, str(trace), "--steps", "2..2", "--json", "--quiet"])[2])["steps"]["mean_ns"]
            assert part["end_ns"] - part["begin_ns"] == step == json.loads(run([culprit, str(out), "--json"])[2])["steps"]["mean_ns"]
            rounds = [(run([culprit, str(trace), "--quiet"]), run(cut)) for _ in range(args.rounds)]
            whole, slice_ = (statistics.median(r[i][0] for r in rounds) for i in (0, 1))
            peaks = [max(r[i][1] for r in rounds) / 1e6 for i in (1, 0)]
            if trace == path:
                worst = max(worst, slice_ / whole)
            print(f"| {trace.name} | {trace.stat().st_size / 1e6:.0f} | {out.stat().st_size / 1e6:.1f} | {whole:.2f} | {slice_:.2f} | {slice_ / whole:.2f} "
                  f"| {peaks[0]:.0f} / {peaks[1]:.0f} |")
    print(f"\n- slice <= 1.2 x diagnose, plain: {worst:.2f} {'holds' if worst <= 1.2 else 'MISSED'}")


if __name__ == "__main__":
    main()
