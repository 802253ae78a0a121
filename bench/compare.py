#!/usr/bin/env python3
"""The whole command against wc, grep and a plain simdjson walk, interleaved in one run.

Forges two GLM-5 traces of 550 MB (mostly Python frames, pretty-printed; mostly operators with shapes, an event a line), checks
every program's answer, then times them in turns. Prints medians, ratios and peak resident memory as Markdown.

Usage: bench/compare.py BUILD_FOLDER [--rounds N] [--data FOLDER] [--size SIZE]
"""
import argparse
import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import time

PRESETS = {"a": "stacks-pretty", "b": "ops-lines"}


def run(command, stdin=None):
    """(seconds, peak resident bytes, stdout) of one process; a shell string runs through sh, and its peak is not the tool's."""
    shell = isinstance(command, str)
    source = open(stdin, "rb") if stdin else subprocess.DEVNULL
    begin = time.perf_counter()
    process = subprocess.Popen(command, shell=shell, stdin=source, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - begin
    if stdin:
        source.close()
    if status != 0:
        sys.exit(f"failed ({status}): {command}")
    return seconds, usage.ru_maxrss * 1024, output


def forge(culprit, data, size):
    files = {}
    for key, preset in PRESETS.items():
        path = data / f"glm5-{preset}.json"
        if not path.exists():
            run([culprit, "forge", "glm5", "--preset", preset, *(["--size", size] if size else []), "-o", str(path)])
            subprocess.run(["gzip", "-k", "-f", str(path)], check=True)
            subprocess.run(["zstd", "-q", "-f", str(path)], check=True)
        files[key] = path
    return files


def check(culprit, walk, path):
    """Every program must agree on what is in the file before it is timed."""
    document = json.loads(run([culprit, "--json", str(path)])[2])
    events, kernels = map(int, run([walk, str(path)])[2].split())
    assert run([walk, str(path), "2"])[2].split() == [b"%d" % events, b"%d" % kernels]
    assert int(run(f"grep -c '\"cat\": \"kernel\"' {path} | cat")[2]) == kernels
    assert document["inputs"][0]["events"] == events, (document["inputs"], events)
    assert document["suspects"][0]["id"] == "whole-pool-cast"
    answers = {run([culprit, "--json", "--threads", str(n), str(path)])[2] for n in (1, 2, 7)}
    assert len(answers) == 1, "the answer depends on the number of threads"
    return events


def commands(culprit, walk, path):
    return {
        "culprit": ([culprit, str(path)], None),
        "culprit, 1 thread": ([culprit, "--threads", "1", str(path)], None),
        "culprit, .gz": ([culprit, f"{path}.gz"], None),
        "culprit, .zst": ([culprit, f"{path}.zst"], None),
        "culprit, stdin": ([culprit, "-"], str(path)),
        "grep -c": (f"grep -c '\"cat\": \"kernel\"' {path} | cat", None),
        "wc -l": (["wc", "-l", str(path)], None),
        "simdjson walk": ([walk, str(path)], None),
        "simdjson walk, chunked, 2 threads": ([walk, str(path), "2"], None),
    }


def cpu_name():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


def report(key, path, events, times, peaks):
    size = path.stat().st_size
    median = {name: statistics.median(values) for name, values in times.items()}
    rounds = len(next(iter(times.values())))
    print(f"\n### ({key}) {path.name}: {size / 1e6:.0f} MB, {events:,} events, medians of {rounds} interleaved rounds\n")
    print("| command | median s | min-max s | × grep | × simdjson walk | GB/s of JSON | peak memory MB | of the JSON |")
    print("|---|---|---|---|---|---|---|---|")
    for name, seconds in median.items():
        spread = f"{min(times[name]):.3f}-{max(times[name]):.3f}"
        print(f"| {name} | {seconds:.3f} | {spread} | {seconds / median['grep -c']:.2f} | {seconds / median['simdjson walk']:.2f} | "
              f"{size / seconds / 1e9:.2f} | {peaks[name] / 1e6:.0f} | {peaks[name] / size:.2f} |")
    goals = [("whole command <= 2 x grep", median["culprit"] / median["grep -c"], 2),
             ("whole command <= 0.6 x simdjson walk", median["culprit"] / median["simdjson walk"], 0.6),
             (".gz <= 1.5 x plain", median["culprit, .gz"] / median["culprit"], 1.5),
             (".zst <= 1.5 x plain", median["culprit, .zst"] / median["culprit"], 1.5),
             ("peak memory <= 0.4 x JSON", max(peaks[n] for n in peaks if n.startswith("culprit")) / size, 0.4)]
    print()
    for text, value, limit in goals:
        print(f"- {text}: {value:.2f} {'holds' if value <= limit else 'MISSED'}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", help="a build folder with culprit and bench/simdjson_walk")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--data", default=None, help="where the forged traces go (default: BUILD_FOLDER/bench-data)")
    parser.add_argument("--size", default=None, help="another size for the forged traces")
    args = parser.parse_args()
    build = pathlib.Path(args.build)
    data = pathlib.Path(args.data) if args.data else build / "bench-data"
    data.mkdir(parents=True, exist_ok=True)
    culprit, walk = str(build / "culprit"), str(build / "bench" / "simdjson_walk")
    print(f"Machine: {cpu_name()}, {os.cpu_count()} cores; {platform.system()} {platform.release()}; load {os.getloadavg()[0]:.1f} at the start.")
    for key, path in forge(culprit, data, args.size).items():
        events = check(culprit, walk, path)
        programs = commands(culprit, walk, path)
        times = {name: [] for name in programs}
        peaks = dict.fromkeys(programs, 0)
        for _ in range(args.rounds):
            for name, (command, stdin) in programs.items():
                seconds, peak, _ = run(command, stdin)
                times[name].append(seconds)
                peaks[name] = max(peaks[name], peak)
        report(key, path, events, times, peaks)


if __name__ == "__main__":
    main()
