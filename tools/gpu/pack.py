"""Packs a recording: manifests and traces, shortened where needed, into at most 8 files of <= 16 MiB.

evidence.tar holds what is committed: CASE/manifest.json and CASE/VARIANT-MODE.json.gz within the
budget. full-N.tar hold, most valuable first, the whole traces of those that were shortened.
Figures are never dropped; a trace is, last of all, and its manifest says so.
"""

import gzip
import io
import json
import multiprocessing
import os
import re
import socket
import sys
import sysconfig
import tarfile
import time

import shorten

FILE_BYTES = 16 * 2**20 - 65536  # of one packed file, tar blocks included
FULL_FILES = 4
FEWEST_STEPS = 4  # a stall in step 2 keeps a neighbour on both sides


def as_json(value):
    """Indented, but lists of numbers on one line."""
    text = json.dumps(value, indent=1)
    return re.sub(r"\[\s+([-\d.,\s]+?)\s+\]", lambda m: "[" + " ".join(m[1].split()) + "]", text) + "\n"


def write_json(path, value):
    """Writes whole or not at all: a reader never meets half a manifest."""
    with open(path + ".tmp", "w") as out:
        out.write(as_json(value))
    os.replace(path + ".tmp", path)


def read_json(path):
    with open(path) as source:
        return json.load(source)


def read_manifests(folder):
    """(case, manifest) in the order of value."""
    found = []
    for name in os.listdir(folder):
        path = os.path.join(folder, name, "manifest.json")
        if os.path.exists(path):
            found.append((name, read_json(path)))
    return sorted(found, key=lambda pair: (pair[1]["order"], pair[0]))


def stand_ins_for_paths():
    """Nothing of the recording machine's folders and name goes into a committed file."""
    here = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    names = {here + "/": "", sysconfig.get_paths()["purelib"] + "/": "site-packages/",
             sysconfig.get_paths()["stdlib"] + "/": "python/", sys.prefix + "/": "python/",
             os.path.expanduser("~") + "/": "home/"}
    host = socket.gethostname()
    if len(host) >= 4:
        names[f'"{host}"'] = '"host"'
    return {name: text for name, text in names.items() if len(name) > 3}


def compress(text):
    return gzip.compress(text.encode("utf-8", "surrogateescape"), 6, mtime=0)


def read_trace(path, names):
    with open(path, encoding="utf-8", errors="surrogateescape") as source:
        return shorten.redact(source.read(), names)


def pack_whole(job):
    """(key, compressed bytes, steps or None, error or None) of one raw trace."""
    key, path, names = job
    try:
        text = read_trace(path, names)
        try:
            return key, compress(text), shorten.Trace(text).steps, None
        except shorten.NotATrace as error:
            return key, compress(text), None, str(error)
    except Exception as error:
        return key, b"", None, f"{type(error).__name__}: {error}"[:200]


def pack_short(job):
    """The longest prefix of at least FEWEST_STEPS steps whose compressed size is within `limit`."""
    key, path, names, steps, size, limit = job
    try:
        trace = shorten.Trace(read_trace(path, names))
        keep = max(FEWEST_STEPS, int(steps * limit / size))
        while True:
            data = compress(trace.first_steps(keep))
            if len(data) <= limit or keep <= FEWEST_STEPS:
                return key, data, min(keep, trace.steps), None
            keep -= 1
    except Exception as error:
        return key, b"", 0, f"{type(error).__name__}: {error}"[:200]


def share_limit(sizes, budget):
    """The largest L with sum(min(size, L)) <= budget."""
    left, remaining = budget, sorted(sizes)
    while remaining:
        share = left // len(remaining)
        if remaining[0] > share:
            return share
        left -= remaining.pop(0)
    return budget


def in_parallel(function, jobs, time_left):
    """Results in the order of jobs; those not ready in time are None."""
    results = [None] * len(jobs)
    until = None if time_left is None else time.monotonic() + max(time_left, 1)
    with multiprocessing.Pool(max(1, min(len(jobs), (os.cpu_count() or 2) - 1, 12))) as pool:
        waiting = [pool.apply_async(function, (job,)) for job in jobs]
        for i, result in enumerate(waiting):
            try:
                results[i] = result.get(None if until is None else max(until - time.monotonic(), 0))
            except multiprocessing.TimeoutError:
                pass
        pool.terminate()
    return results


def traces_of(folder, manifests):
    for case, manifest in manifests:
        for variant, entry in manifest["variants"].items():
            for mode, run in entry["runs"].items():
                path = os.path.join(folder, case, run.get("trace") or "")
                if os.path.isfile(path):
                    yield (case, variant, mode), path, run


def compress_all(folder, manifests, budget, time_left):
    """Committed bytes and full bytes by trace; writes what became of each trace into its manifest."""
    names = stand_ins_for_paths()
    listed = list(traces_of(folder, manifests))
    begin = time.monotonic()
    whole = {}
    share_of_time = None if time_left is None else 0.5 * time_left
    for (key, _, run), result in zip(listed, in_parallel(
            pack_whole, [(k, p, names) for k, p, _ in listed], share_of_time)):
        if result is None or not result[1]:
            run.update(trace=None, trace_note=result[3] if result else "no time was left to compress it")
            continue
        _, whole[key], run["trace_steps"], note = result
        run.update(trace=run["trace"] + ".gz", **({"trace_note": note} if note else {}))
    limit = share_limit([len(d) for d in whole.values()], budget)
    jobs, runs = [], []
    for key, path, run in listed:
        if key in whole and len(whole[key]) > limit:
            runs.append((key, run))
            jobs.append((key, path, names, run["trace_steps"] or 1, len(whole[key]), limit))
    committed, full = dict(whole), {}
    left = None if time_left is None else 0.8 * time_left - (time.monotonic() - begin)
    for (key, run), result in zip(runs, in_parallel(pack_short, jobs, left)):
        full[key] = whole[key]
        run["full_trace_steps"] = run["trace_steps"]
        if result is not None and result[1]:
            committed[key], run["trace_steps"] = result[1], result[2]
            run["trace_note"] = f"the first {result[2]} of {run['full_trace_steps']} captured steps"
        else:
            del committed[key]
            run.update(trace=None, trace_steps=0, trace_note=result[3] if result else "no time to shorten it")
    drop_over_budget(listed, committed, budget)
    return committed, full


def drop_over_budget(listed, committed, budget):
    """The least valuable traces go while the rest is over the budget."""
    runs = {key: run for key, _, run in listed}
    for key in reversed([k for k, _, _ in listed]):
        if sum(map(len, committed.values())) <= budget:
            return
        if key in committed:
            del committed[key]
            runs[key].update(trace=None, trace_steps=0, trace_note="over the budget of committed traces")


def add_bytes(tar, name, data):
    info = tarfile.TarInfo(name)
    info.size, info.mode = len(data), 0o644
    tar.addfile(info, io.BytesIO(data))


def pack(scratch, out, budget, time_left=None):
    """Writes the packed files into `out`; counts of traces and bytes."""
    manifests = read_manifests(scratch)
    # The figures first: they must be out whatever happens to the traces.
    write_json(os.path.join(out, "manifests.json"), dict(manifests))
    committed, full = compress_all(scratch, manifests, budget, time_left)
    extras = {}
    for name in ("environment.json", "bandwidth.json"):
        path = os.path.join(scratch, name)
        if os.path.exists(path):
            with open(path, "rb") as source:
                extras[name] = source.read()
    with tarfile.open(os.path.join(out, "evidence.tar"), "w") as tar:
        for name, data in extras.items():
            add_bytes(tar, name, data)
        for case, manifest in manifests:
            add_bytes(tar, f"{case}/manifest.json", as_json(manifest).encode())
        for (case, variant, mode), data in committed.items():
            add_bytes(tar, f"{case}/{variant}-{mode}.json.gz", data)
    write_json(os.path.join(out, "manifests.json"), dict(manifests))
    write_full(out, full)
    return {"traces": len(committed), "committed_bytes": sum(map(len, committed.values()))}


def write_full(out, full):
    """Whole traces, first come first served, into FULL_FILES files; those of an earlier run go."""
    room = {}
    for n in range(1, FULL_FILES + 1):
        path = os.path.join(out, f"full-{n}.tar")
        if os.path.exists(path):
            os.remove(path)
    for (case, variant, mode), data in full.items():
        for n in range(1, FULL_FILES + 1):
            tar, used = room.get(n, (None, 0))
            if used + len(data) + 2048 > FILE_BYTES:
                continue
            tar = tar or tarfile.open(os.path.join(out, f"full-{n}.tar"), "w")
            add_bytes(tar, f"{case}/{variant}-{mode}.json.gz", data)
            room[n] = (tar, used + len(data) + 2048)
            break
    for tar, _ in room.values():
        tar.close()
