#!/usr/bin/env python3
"""Whether speed and memory hold from 500 MB to 5 GB: two traces of one kind, read as file, gzip file and from standard input.

Prints seconds, GB/s of JSON and peak resident memory as a share of the JSON, and the ratios that must hold. Needs 6 GB of disk.

Usage: bench/large.py BUILD_FOLDER [--data FOLDER] [--rounds N]
"""
import argparse
import pathlib
import statistics
import subprocess

from compare import cpu_name, run

EVENTS = {"500 MB": 1_700_000, "5 GB": 17_000_000}


def forge(culprit, path, events):
    """A trace with stacks, an event a line; its plain and its gzip form."""
    if not path.exists():
        size = f"{events * 0.00029:.0f}MB"  # frames fill it up to there
        run([culprit, "forge", "glm5", "--preset", "stacks-pretty", "--layout", "lines", "--events", str(events), "--size", size,
             "-o", str(path)])
        subprocess.run(f"gzip -1 -c {path} > {path}.gz", shell=True, check=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", help="a build folder with culprit")
    parser.add_argument("--data", default=None, help="where the forged traces go (default: BUILD_FOLDER/bench-data)")
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    build = pathlib.Path(args.build)
    data = pathlib.Path(args.data) if args.data else build / "bench-data"
    data.mkdir(parents=True, exist_ok=True)
    culprit = str(build / "culprit")
    print(f"Machine: {cpu_name()}; medians of {args.rounds} rounds\n")
    print("| trace | read as | s | GB/s of JSON | peak memory MB | of the JSON |\n|---|---|---|---|---|---|")
    speed, most = {}, 0
    for name, events in EVENTS.items():
        path = data / f"large-{events}.json"
        forge(culprit, path, events)
        size = path.stat().st_size
        ways = {"file": ([culprit, str(path)], None), ".gz": ([culprit, f"{path}.gz"], None),
                "stdin": ([culprit, "-"], str(path)), ".gz on stdin": ([culprit, "-"], f"{path}.gz")}
        for way, (command, stdin) in ways.items():
            rounds = [run(command, stdin) for _ in range(args.rounds)]
            seconds, peak = statistics.median(r[0] for r in rounds), max(r[1] for r in rounds)
            speed[name, way] = size / seconds
            if name == "5 GB":
                most = max(most, peak / size)
            print(f"| {name}, {events:,} events | {way} | {seconds:.2f} | {size / seconds / 1e9:.2f} | {peak / 1e6:.0f} | {peak / size:.3f} |")
    slowest = min(speed["5 GB", way] / speed["500 MB", way] for way in ways)
    print(f"\n- peak memory of 5 GB <= 0.3 x JSON: {most:.3f} {'holds' if most <= 0.3 else 'MISSED'}")
    print(f"- speed at 5 GB >= 0.8 x that at 500 MB, in every way: {slowest:.2f} {'holds' if slowest >= 0.8 else 'MISSED'}")


if __name__ == "__main__":
    main()
