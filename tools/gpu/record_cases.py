#!/usr/bin/env python3
"""Records decode steps with planted faults, and their fixes, on the GPU of this machine.

    python3 tools/gpu/record_cases.py --out DIR --deadline 420      everything, most valuable first
    python3 tools/gpu/record_cases.py --out DIR --smoke             tiny sizes, within 60 s

A supervisor (this file) runs the cases in a worker process. When the worker dies, the case it was in
is marked failed and a new worker goes on with the next; at the deadline what was recorded is packed.
Exit code: 0 all recorded (or skipped for want of a feature), 1 some not, 2 nothing recorded.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time

import pack

GRACE_SECONDS = 12  # between the worker's own deadline and its end by force


def parse_arguments(argv):
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--out", help="folder for the packed files; made if missing")
    p.add_argument("--deadline", type=float, metavar="SECONDS", help="all in all, packing included")
    p.add_argument("--pack-seconds", type=float, help="of the deadline, kept for packing (default: 1/6)")
    p.add_argument("--smoke", action="store_true", help="tiny sizes, 4 + 4 steps, deadline 60")
    p.add_argument("--cases", help="only these, comma-separated")
    p.add_argument("--warmup", type=int, help="steps before the measured ones (20)")
    p.add_argument("--steps", type=int, help="captured steps (12)")
    p.add_argument("--sizes", choices=("auto", "full", "tiny"), default="auto", help="auto: full on a GPU")
    p.add_argument("--device", choices=("auto", "cuda", "cpu"), default="auto")
    p.add_argument("--budget-mib", type=float, default=15.5, help="of compressed traces, to commit")
    p.add_argument("--scratch", help="folder for raw traces; kept (default: temporary)")
    p.add_argument("--list", action="store_true", help="name the cases and stop")
    p.add_argument("--rehearsal", choices=("failing", "endless", "hanging"),
                   help="add cases that fail on purpose in this way")
    p.add_argument("--worker", nargs=2, metavar=("AT", "SKIP"), help=argparse.SUPPRESS)
    args = p.parse_args(argv)
    if not args.list and not args.worker and not args.out:
        p.error("--out is needed")
    args.warmup = args.warmup if args.warmup is not None else (4 if args.smoke else 20)
    args.steps = args.steps if args.steps is not None else (4 if args.smoke else 12)
    if args.smoke and args.deadline is None:
        args.deadline = 60.0
    if args.warmup < 4 or args.steps < 4:
        p.error("--warmup and --steps must be 4 or more: stalls sit in step 2")
    return args


def case_list(rehearsal):
    import cases
    listed = list(cases.all_cases())
    if rehearsal:
        import cases_rehearsal
        listed = cases_rehearsal.insert_into(listed, rehearsal)
    return listed


def new_manifest(order, case, features, args, full):
    return {"schema": 1, "order": order, "case": case.name, "suspect": case.suspects[0], "cause": case.cause,
            "planted": case.planted, "fix": case.fix, "status": "running", "reason": None,
            "sizes": "full" if full else "tiny", "seed": case.seed(),
            "compare_by": "mean" if case.mean_counts else "median", "result_tolerance": case.tolerance,
            "warmup_steps": args.warmup, "machine": features.describe(), "stand_ins": features.stand_ins(),
            "variants": {v.name: {"what": v.what, "runs": {}, "no_run": {
                m: v.why_not for m in ("eager", "graph") if m not in v.modes}} for v in case.variants}}


def work(args, deadline_at, skip):
    """The worker: records every case that is not in `skip` until the deadline."""
    import gc
    import torch
    import bandwidth
    import measure
    from features import Features
    torch.set_grad_enabled(False)
    gc.disable()  # a collection in a measured step would be a fault that nobody planted
    device = args.device if args.device != "auto" else ("cuda" if torch.cuda.is_available() else "cpu")
    features = Features(device)
    full = args.sizes == "full" or (args.sizes == "auto" and device == "cuda" and not args.smoke)
    deadline = measure.Deadline(deadline_at)
    listed = case_list(args.rehearsal)
    wanted = set(args.cases.split(",")) if args.cases else {case.name for case in listed}
    unknown = wanted - {case.name for case in listed}
    if unknown:
        sys.exit(f"unknown case: {', '.join(sorted(unknown))}; --list names them all")
    recorder = measure.Recorder(features, full, args.scratch, deadline, args.warmup, args.steps)
    if not os.path.exists(os.path.join(args.scratch, "environment.json")):
        pack.write_json(os.path.join(args.scratch, "environment.json"), {
            "machine": features.describe(), "stand_ins": features.stand_ins(),
            "profiler_residue": measure.profiler_residue(features)})
    for order, case in enumerate(listed):
        if case.name in skip or case.name not in wanted:
            continue
        if deadline.left() <= 0:
            return
        begin = time.monotonic()
        manifest = new_manifest(order, case, features, args, full)
        recorder.save(case, manifest)
        recorder.record(case, manifest)
        manifest["seconds"] = round(time.monotonic() - begin, 1)
        recorder.save(case, manifest)
        print(f"{case.name}: {manifest['status']} in {manifest['seconds']} s", flush=True)
    if not args.cases and deadline.left() > 0:
        rows = bandwidth.measure(features, full, deadline)
        pack.write_json(os.path.join(args.scratch, "bandwidth.json"),
                           {"machine": features.describe(), "stand_ins": features.stand_ins(), "rows": rows})


def worker_environment():
    environment = dict(os.environ, PYTHONUNBUFFERED="1", PYTHONDONTWRITEBYTECODE="1")
    # CUDA graphs do not survive a profiler that unloads its driver hooks between runs.
    environment.update(TEARDOWN_CUPTI="0", DISABLE_CUPTI_LAZY_REINIT="1")
    # A cached compilation would not stall.
    environment.update(TORCHINDUCTOR_FORCE_DISABLE_CACHES="1")
    return environment


def close_open_manifests(scratch, exit_code):
    """Marks the case that a dead worker left running; returns the names of all cases that are done."""
    done = set()
    for name, manifest in pack.read_manifests(scratch):
        if manifest["status"] == "running":
            manifest.update(status="failed", reason=f"the recording process ended with code {exit_code}")
            pack.write_json(os.path.join(scratch, name, "manifest.json"), manifest)
        done.add(name)
    return done


def supervise(args, argv, log):
    """Runs workers until one ends by itself or the time is over."""
    begin = time.monotonic()
    stop_at, reserve = None, 0.0
    if args.deadline is not None:
        reserve = args.pack_seconds if args.pack_seconds is not None else args.deadline / 6
        stop_at = begin + args.deadline - reserve
    done = set()
    while True:
        command = [sys.executable, os.path.abspath(__file__), *argv, "--scratch", args.scratch,
                   "--worker", repr(stop_at), ",".join(sorted(done))]
        worker = subprocess.Popen(command, env=worker_environment(), stdout=log, stderr=log)
        try:
            code = worker.wait(None if stop_at is None else
                               max(stop_at + min(GRACE_SECONDS, reserve / 2) - time.monotonic(), 1))
        except subprocess.TimeoutExpired:
            worker.kill()
            code = worker.wait()
        known = close_open_manifests(args.scratch, code)
        late = stop_at is not None and time.monotonic() >= stop_at
        if code == 0 or late or known == done:  # no progress: the worker cannot even start a case
            return code
        done = known


def print_table(manifests):
    """One line per fix and mode: TPOT without the profiler; one more for what went wrong."""
    print(f"{'case':22} {'variant':11} {'mode':6} {'before ms':>10} {'after ms':>10}  status")
    for name, m in manifests:
        by = m["compare_by"] + "_ns"
        before = m["variants"]["before"]["runs"]
        for variant, entry in m["variants"].items():
            for mode, run in entry["runs"].items():
                if variant == "before" or "tpot" not in run:
                    continue
                base = before.get(mode) or next(iter(before.values()), {})
                left = f"{base['tpot'][by] / 1e6:10.3f}" if "tpot" in base else f"{'-':>10}"
                print(f"{name:22} {variant:11} {mode:6} {left} {run['tpot'][by] / 1e6:10.3f}  {m['status']}")
        errors = [f"{v} {mode}: {run['error']}" for v, e in m["variants"].items()
                  for mode, run in e["runs"].items() if "error" in run]
        if m["reason"] or errors:
            print(f"{name:22} {m['status']}: {'; '.join(filter(None, [m['reason'], *errors]))[:300]}")


def main(argv):
    args = parse_arguments(argv)
    if args.list:
        for case in case_list(args.rehearsal):
            print(f"{case.name:24} {case.suspects[0]:22} {case.planted}")
        return 0
    if args.worker:
        at, skip = args.worker
        work(args, None if at == "None" else float(at), set(filter(None, skip.split(","))))
        return 0
    begin = time.monotonic()
    os.makedirs(args.out, exist_ok=True)
    temporary = args.scratch is None
    args.scratch = args.scratch or tempfile.mkdtemp(prefix="record-")
    os.makedirs(args.scratch, exist_ok=True)
    with open(os.path.join(args.out, "log.txt"), "w") as log:
        supervise(args, argv, log)
    time_left = None if args.deadline is None else args.deadline - (time.monotonic() - begin)
    summary = pack.pack(args.scratch, args.out, int(args.budget_mib * 2**20), time_left)
    if temporary:
        shutil.rmtree(args.scratch, ignore_errors=True)
    return report(args.out, summary, time.monotonic() - begin)


def report(out, summary, seconds):
    """Prints what was recorded; the exit code."""
    manifests = list(pack.read_json(os.path.join(out, "manifests.json")).items())
    if not manifests:
        with open(os.path.join(out, "log.txt")) as log:
            print(log.read()[-2000:], file=sys.stderr)
        return 2
    print_table(manifests)
    failures = sum(m["status"] not in ("recorded", "skipped") for _, m in manifests)
    print(f"{len(manifests)} cases, {failures} not recorded; {summary['traces']} traces, "
          f"{summary['committed_bytes'] / 2**20:.1f} MiB to commit; {seconds:.0f} s")
    return int(failures > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
