"""Builds small Kineto traces for test cases: `from kineto import Trace` in a case's Python.

Times are µs from the trace's start. Shares nothing with src or forge. Events are plain dicts: change or delete
any of them before write(); what JSON cannot say (inf, raw bytes, cut text) is edited in text(), which is a str.
"""
import gzip
import json
import pathlib

BASE = 1_750_000_000_000_000  # µs of the epoch, about 2025
HOST = 4001


class Trace:
    def __init__(self, host=HOST, device=0, rank=None, base=BASE):
        self.host, self.device, self.base = host, device, base
        self.events, self.header = [], {"schemaVersion": 1}
        self.correlation = 0
        self.ends = {}  # stream -> end of its last kernel
        if rank is not None:
            self.header["distributedInfo"] = {"backend": "nccl", "rank": rank, "world_size": rank + 1}

    def gpu(self, name, sms, memory=80_000_000_000, major=9, minor=0):
        self.header["deviceProperties"] = [{"id": self.device, "name": name, "totalGlobalMem": memory, "computeMajor": major,
                                            "computeMinor": minor, "warpSize": 32, "numSms": sms}]

    def event(self, cat, name, ts, dur, pid=None, tid=None, **args):
        """An X event at `ts`, appended and returned."""
        event = {"ph": "X", "cat": cat, "name": name, "pid": self.host if pid is None else pid,
                 "tid": (self.host if pid is None else pid) if tid is None else tid, "ts": self.base + ts, "dur": dur}
        if args:
            event["args"] = args
        self.events.append(event)
        return event

    def call(self, name, ts, dur, correlation=None, tid=None, cat="cuda_runtime", **args):
        """A runtime call on the host; takes the next correlation unless given one."""
        if correlation is None:
            self.correlation += 1
            correlation = self.correlation
        return self.event(cat, name, ts, dur, tid=tid, correlation=correlation, **args)

    def on_device(self, cat, name, ts, dur, stream=7, correlation=None, **args):
        """A kernel, copy or set without its launch. ts None: right behind the last one on the stream."""
        if ts is None:
            ts = self.ends.get(stream, 0)
        self.ends[stream] = ts + dur
        if correlation is not None:
            args["correlation"] = correlation
        return self.event(cat, name, ts, dur, pid=self.device, tid=stream, device=self.device, stream=stream, **args)

    def kernel(self, name, dur, ts=None, stream=7, launch_at=None, launch_dur=2, grid=(1, 1, 1), block=(128, 1, 1), op=None,
               dims=None, types=None, api="cudaLaunchKernel"):
        """A kernel and its launch (20 µs before it unless told), under an operator where named. Returns the kernel's event."""
        if ts is None:
            ts = self.ends.get(stream, 0)
        launch_at = ts - 20 if launch_at is None else launch_at
        call = self.call(api, launch_at, launch_dur)
        number = call["args"]["correlation"]
        if op:
            args = {"External id": number}
            if dims is not None:
                args |= {"Input Dims": dims, "Input type": types or []}
            self.event("cpu_op", op, launch_at - 1, launch_dur + 2, **args)
            call["args"]["External id"] = number
        return self.on_device("kernel", name, ts, dur, stream, number, grid=list(grid), block=list(block))

    def replay(self, kernels, launch_at, ts, stream=7, api="cudaGraphLaunch", launch_dur=10):
        """A graph launch with its kernels [(name, µs)], back to back from `ts`: one correlation, no grid, no operator."""
        number = self.call(api, launch_at, launch_dur)["args"]["correlation"]
        for name, dur in kernels:
            self.on_device("kernel", name, ts, dur, stream, number)
            ts += dur
        return ts

    def mark(self, name, ts, dur, tid=None):
        return self.event("user_annotation", name, ts, dur, tid=tid)

    def frame(self, name, ts, dur, tid=None, **args):
        return self.event("python_function", name, ts, dur, tid=tid, **args)

    def text(self):
        head = json.dumps(self.header)[:-1]
        lines = ",\n".join(json.dumps(e) for e in self.events)
        return f'{head}, "traceEvents": [\n{lines}\n]}}\n'

    def write(self, path, text=None):
        """`text` (str or bytes) replaces text(); a path that ends in .gz is compressed."""
        data = self.text() if text is None else text
        data = data.encode() if isinstance(data, str) else data
        pathlib.Path(path).write_bytes(gzip.compress(data) if str(path).endswith(".gz") else data)


def merged(traces):
    """One trace of {label: Trace}, as SGLang's profile merger makes it: pids become "[label] pid", ids stay as they are."""
    traces = dict(traces)
    one = Trace()
    one.header["deviceProperties"] = []
    for label, trace in traces.items():
        one.header["deviceProperties"] += trace.header.get("deviceProperties", [])
        for event in trace.events:
            one.events.append(event | {"pid": f"[{label}] {event['pid']}"})
    return one


def joined(traces):
    """One trace with the events of several, unchanged and in time order: ranks that nothing labels."""
    one = Trace()
    one.events = sorted((event for trace in traces for event in trace.events), key=lambda event: event["ts"])
    return one
