#!/usr/bin/env python3
"""Whether a fleet's answer is the same for any number of processes, and its memory for any number of traces.

Forges the eight ranks of a run and makes --traces of them (256), of one world: every one by a copy of a healthy rank but number 3, which has
a slow clock. Runs `culprit fleet` over a quarter of them and over all, with 1, 2 and 4 processes. Prints seconds and peak resident memory of
the largest process as Markdown. Needs --traces x --size of disk (256 x 21 MB = 5.4 GB), which it gives back.

Usage: bench/fleet.py BUILD_FOLDER [--data FOLDER] [--traces N] [--size SIZE] [--processes 1,2,4]
"""
import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

from compare import cpu_name

LATE, LATE_DRAW = 3, 1  # which rank of that draw is late
ENVIRONMENT = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def forge(culprit, folder, size, *flags):
    subprocess.run([culprit, "forge", "ranks", "--rank", "all", "--steps", "12", "--size", size, "-o", str(folder), *flags], check=True,
                   stderr=subprocess.DEVNULL)
    return [path.read_bytes() for path in sorted(folder.iterdir())]


def as_rank(text, was, rank, world):
    """The recording of rank `was` as that of another rank of a larger world: its header, and the group of each collective."""
    group = ", ".join(map(str, range(8))).encode()
    header = b'"rank": %d, "world_size": 8' % was
    assert text.count(header) == 1 and text.count(b'"Process Group Ranks": "[%s]"' % group) > 10
    text = text.replace(header, b'"rank": %d, "world_size": %d' % (rank, world))
    text = text.replace(b'"Process Group Ranks": "[%s]"' % group, b'"Process Group Ranks": "[0, 1, ..., %d]"' % (world - 1))
    return text.replace(b'"Group size": 8', b'"Group size": %d' % world)


def make_fleet(culprit, data, traces, size):
    """Traces in two folders: the first quarter of the ranks, and all of them. """
    with tempfile.TemporaryDirectory(dir=data) as folder:
        late = forge(culprit, pathlib.Path(folder, "late"), size, "--fault", "slow-clock", "--draw", str(LATE_DRAW))
    worlds = {}
    for world in (traces // 4, traces):
        target = data / f"fleet-{world}"
        target.mkdir()
        for rank in range(world):
            source = LATE if rank == LATE else [r for r in range(8) if r != LATE][rank % 7]
            (target / f"rank{rank}.json").write_bytes(as_rank(late[source], source, rank, world))
        worlds[world] = target
    return worlds


def measured(command, peaks):
    """A process of the run: its peak resident memory goes to a file of its own."""
    process = subprocess.Popen(command)
    _, status, usage = os.wait4(process.pid, 0)
    pathlib.Path(peaks, str(os.getpid())).write_text(str(usage.ru_maxrss * 1024))
    return os.waitstatus_to_exitcode(status)


def run(culprit, folder, out, processes):
    """(seconds, peak bytes of the largest process, document)"""
    with tempfile.TemporaryDirectory() as peaks:
        launcher = ["mpirun", "--oversubscribe", "--bind-to", "none", "-n", str(processes)] if processes > 1 else []
        begin = time.perf_counter()
        done = subprocess.run([*launcher, sys.executable, __file__, "--measured", peaks, culprit, "fleet", str(folder), "-o", str(out), "--json",
                               "--quiet"], env=ENVIRONMENT, stdout=subprocess.PIPE, check=True)
        seconds = time.perf_counter() - begin
        return seconds, max(int(path.read_text()) for path in pathlib.Path(peaks).iterdir()), done.stdout


def main():
    if sys.argv[1:2] == ["--measured"]:
        return measured(sys.argv[3:], sys.argv[2])
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", help="a build folder with culprit")
    parser.add_argument("--data", default=None, help="where the forged traces go (default: BUILD_FOLDER/bench-data)")
    parser.add_argument("--traces", type=int, default=256)
    parser.add_argument("--size", default="21MB")
    parser.add_argument("--processes", default="1,2,4")
    args = parser.parse_args()
    build = pathlib.Path(args.build).resolve()
    data = pathlib.Path(args.data).resolve() if args.data else build / "bench-data"
    data.mkdir(parents=True, exist_ok=True)
    culprit = str(build / "culprit")
    peaks = {}
    with tempfile.TemporaryDirectory(dir=data) as folder:
        worlds = make_fleet(culprit, pathlib.Path(folder), args.traces, args.size)
        print(f"Machine: {cpu_name()}, {os.cpu_count()} cores\n")
        print("| traces | GB | processes | s | peak memory of a process, MB |\n|---|---|---|---|---|")
        for world, traces in worlds.items():
            size = sum(path.stat().st_size for path in traces.iterdir())
            documents = set()
            for processes in map(int, args.processes.split(",")):
                out = pathlib.Path(folder, f"out-{world}-{processes}")
                seconds, peak, document = run(culprit, traces, out, processes)
                documents.add(document)
                peaks.setdefault(processes, []).append(peak)
                print(f"| {world} | {size / 1e9:.2f} | {processes} | {seconds:.1f} | {peak / 1e6:.0f} |", flush=True)
            answer = json.loads(documents.pop())
            assert not documents, "the answer depends on the number of processes"
            late = [rank["rank"] for rank in answer["ranks"] if rank["late_because"]]
            assert late == [LATE] and len(answer["ranks"]) == world, (late, len(answer["ranks"]))
            shutil.rmtree(traces)
    grown = max(of_all / of_some for of_some, of_all in peaks.values())
    print(f"\n- the same bytes with {args.processes} processes, rank {LATE} named: holds")
    print(f"- peak memory of a process, four times the traces: {grown:.2f} x {'holds' if grown <= 1.25 else 'MISSED'} (at most 1.25)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
