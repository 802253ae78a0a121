"""Builds small Nsight Systems SQLite exports for test cases: `from nsight import Export` in a case's Python.

Times are µs from the recording's start. Shares nothing with src or forge. `tables` maps a table's name to its rows, which are
dicts: change or delete any of them, or whole columns with drop(), before write(). from_kineto() turns a Kineto JSON trace of
the forge into the export that nsys would have made of the same run.
"""
import decimal
import json
import pathlib
import re
import sqlite3

PID = 4001
COPY_KINDS = {"HtoD": 1, "DtoH": 2, "DtoD": 8, "PtoP": 10}
MEMORY_KINDS = {"Pageable": 0, "Pinned": 1, "Device": 2, "Array": 3, "Managed": 4}
PUSH_POP, START_END, MARK = 59, 60, 34
ACTIVITY = "start INTEGER, end INTEGER, deviceId INTEGER, contextId INTEGER, streamId INTEGER, correlationId INTEGER, globalPid INTEGER"
SCHEMA = {
    "StringIds": "id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL",
    "CUPTI_ACTIVITY_KIND_RUNTIME": "start INTEGER, end INTEGER, eventClass INTEGER, globalTid INTEGER, correlationId INTEGER, "
                                   "nameId INTEGER, returnValue INTEGER, callchainId INTEGER",
    "CUPTI_ACTIVITY_KIND_KERNEL": ACTIVITY + ", demangledName INTEGER, shortName INTEGER, mangledName INTEGER, gridX INTEGER, "
                                  "gridY INTEGER, gridZ INTEGER, blockX INTEGER, blockY INTEGER, blockZ INTEGER, graphNodeId INTEGER",
    "CUPTI_ACTIVITY_KIND_MEMCPY": ACTIVITY + ", bytes INTEGER, copyKind INTEGER, srcKind INTEGER, dstKind INTEGER, "
                                  "srcDeviceId INTEGER, dstDeviceId INTEGER, graphNodeId INTEGER",
    "CUPTI_ACTIVITY_KIND_MEMSET": ACTIVITY + ", value INTEGER, bytes INTEGER, memKind INTEGER, graphNodeId INTEGER",
    "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION": ACTIVITY + ", syncType INTEGER, eventId INTEGER",
    "CUPTI_ACTIVITY_KIND_GRAPH_TRACE": ACTIVITY + ", graphId INTEGER, graphExecId INTEGER",
    "NVTX_EVENTS": "start INTEGER, end INTEGER, eventType INTEGER, rangeId INTEGER, text TEXT, globalTid INTEGER, "
                   "endGlobalTid INTEGER, textId INTEGER, domainId INTEGER",
    "CUDA_CALLCHAINS": "id INTEGER, symbol INTEGER, module INTEGER, unresolved INTEGER, originalIP INTEGER, stackDepth INTEGER",
    "TARGET_INFO_GPU": "id INTEGER, name TEXT, totalMemory INTEGER, memoryBandwidth INTEGER, smCount INTEGER, "
                       "computeMajor INTEGER, computeMinor INTEGER, cuDevice INTEGER",
    "TARGET_INFO_CUDA_DEVICE": "gpuId INTEGER, cudaId INTEGER, pid INTEGER",
    "DIAGNOSTIC_EVENT": "timestamp INTEGER, severity INTEGER, text TEXT",
    "META_DATA_EXPORT": "name TEXT, value TEXT",
}


def ns(us):
    return round(us * 1000)


def spelling(name):
    """A kernel's name of a Kineto trace as Nsight's demangler writes it."""
    for pattern, text in ((r"\{lambda\(([^)]*)\)#(\d+)\}", r"[lambda(\1) (instance \2)]"), (r"operator\(\)", "operator ()"),
                          (r"\b(\d+)ul\b", r"(unsigned long)\1"), (r"(?<=[<,] )(\d+)(?=[,>])|(?<=<)(\d+)(?=[,>])", r"(int)\1\2"),
                          (r"(?<=\w)([&*])", r" \1"), (r"> >", ">>")):
        name = re.sub(pattern, text, name)
    return name


class Export:
    def __init__(self, pid=PID, device=0):
        self.pid, self.device = pid, device
        self.tables = {"META_DATA_EXPORT": [{"name": "EXPORT_SCHEMA_VERSION", "value": "3.25.0"}]}
        self.schema = dict(SCHEMA)
        self.strings, self.correlations, self.ends = {}, {}, {}

    def name(self, text):
        """The StringIds id of a text."""
        return self.strings.setdefault(text, len(self.strings) + 1)

    def row(self, table, **values):
        self.tables.setdefault(table, []).append(values)
        return values

    def global_pid(self, pid=None):
        return (1 << 48) | ((self.pid if pid is None else pid) << 24)

    def global_tid(self, tid=None, pid=None):
        pid = self.pid if pid is None else pid
        return self.global_pid(pid) | (pid if tid is None else tid)

    def gpu(self, name, sms=0, memory=0, bandwidth=0, major=0, minor=0, gpu=0, cuda=None):
        return self.row("TARGET_INFO_GPU", id=gpu, name=name, totalMemory=memory, memoryBandwidth=bandwidth, smCount=sms,
                        computeMajor=major, computeMinor=minor, cuDevice=gpu if cuda is None else cuda)

    def call(self, name, ts, dur, correlation=None, tid=None, pid=None, version="_v7000"):
        """A runtime call; takes the next correlation of its process unless given one."""
        if correlation is None:
            correlation = self.correlations[pid] = self.correlations.get(pid, 0) + 1
        return self.row("CUPTI_ACTIVITY_KIND_RUNTIME", start=ns(ts), end=ns(ts + dur), eventClass=0, globalTid=self.global_tid(tid, pid),
                        correlationId=correlation, nameId=self.name(name + version), returnValue=0, callchainId=None)

    def activity(self, table, ts, dur, correlation=None, stream=7, pid=None, device=None, **own):
        """ts None: right behind the last one on the stream."""
        ts = self.ends.get((pid, stream), 0) if ts is None else ts
        self.ends[pid, stream] = ts + dur
        return self.row("CUPTI_ACTIVITY_KIND_" + table, start=ns(ts), end=ns(ts + dur), deviceId=self.device if device is None else device,
                        contextId=1, streamId=stream, correlationId=correlation, globalPid=self.global_pid(pid), **own)

    def on_device(self, name, ts, dur, correlation=None, grid=(1, 1, 1), block=(128, 1, 1), node=None, **where):
        """A kernel without its launch."""
        return self.activity("KERNEL", ts, dur, correlation, demangledName=self.name(name), shortName=self.name(name.split("<")[0]),
                             gridX=grid[0], gridY=grid[1], gridZ=grid[2], blockX=block[0], blockY=block[1], blockZ=block[2],
                             graphNodeId=node, **where)

    def kernel(self, name, dur, ts=None, launch_at=None, launch_dur=2, tid=None, pid=None, stream=7, api="cudaLaunchKernel", **own):
        """A kernel and its launch, 20 µs before it unless told."""
        ts = self.ends.get((pid, stream), 0) if ts is None else ts
        call = self.call(api, ts - 20 if launch_at is None else launch_at, launch_dur, tid=tid, pid=pid)
        return self.on_device(name, ts, dur, call["correlationId"], stream=stream, pid=pid, **own)

    def copy(self, kind, source, target, size, ts, dur, **where):
        return self.activity("MEMCPY", ts, dur, bytes=size, copyKind=COPY_KINDS[kind], srcKind=MEMORY_KINDS[source],
                             dstKind=MEMORY_KINDS[target], **where)

    def set(self, size, ts, dur, **where):
        return self.activity("MEMSET", ts, dur, value=0, bytes=size, memKind=MEMORY_KINDS["Device"], **where)

    def graph(self, ts, dur, launch_at, graph=1, launch_dur=10, pid=None, **where):
        """A whole replay as one row, as --cuda-graph-trace=graph writes it, and its launch."""
        number = self.call("cudaGraphLaunch", launch_at, launch_dur, pid=pid, version="_v10000")["correlationId"]
        return self.activity("GRAPH_TRACE", ts, dur, number, pid=pid, graphId=graph, graphExecId=graph + 1, **where)

    def range(self, text, ts, dur, tid=None, pid=None, kind=PUSH_POP, registered=False):
        """An NVTX range; dur None: never ended; registered: its text stands in StringIds."""
        return self.row("NVTX_EVENTS", start=ns(ts), end=None if dur is None else ns(ts + dur), eventType=kind, domainId=0,
                        text=None if registered else text, textId=self.name(text) if registered else None,
                        globalTid=self.global_tid(tid, pid))

    def drop(self, table, *columns):
        """The table without those columns; without any: no such table."""
        if not columns:
            self.tables.pop(table, None)
        kept = [c for c in self.schema[table].split(", ") if c.split()[0] not in columns]
        self.schema[table] = ", ".join(kept)

    def write(self, path, page_size=4096):
        path = pathlib.Path(path)
        path.unlink(missing_ok=True)
        tables = dict(self.tables)
        if self.strings and "StringIds" not in tables:
            tables["StringIds"] = [{"id": number, "value": text} for text, number in self.strings.items()]
        db = sqlite3.connect(path)
        db.execute(f"PRAGMA page_size={page_size}")
        for table, rows in tables.items():
            db.execute(f"CREATE TABLE {table} ({self.schema[table]})")
            names = [c.split()[0] for c in self.schema[table].split(", ")]
            marks = ", ".join("?" * len(names))
            db.executemany(f"INSERT INTO {table} ({', '.join(names)}) VALUES ({marks})", [[row.get(n) for n in names] for row in rows])
        db.commit()
        db.close()


def from_kineto(source, operators=False):
    """The export of the run that a Kineto JSON trace with relative times records; `operators`: as emit_nvtx writes them."""
    trace = json.loads(pathlib.Path(source).read_text(), parse_float=decimal.Decimal)
    export = Export()
    for device in trace.get("deviceProperties", []):
        export.gpu(device["name"], device.get("numSms", 0), device.get("totalGlobalMem", 0), 0, device.get("computeMajor", 0),
                   device.get("computeMinor", 0), gpu=device["id"])
    first = min(e["ts"] for e in trace["traceEvents"] if e.get("ph") == "X") - 1000
    for event in trace["traceEvents"]:
        if event.get("ph") != "X":
            continue
        args, ts, dur = event.get("args", {}), event["ts"] - first, event["dur"]
        on_device = {"correlation": args.get("correlation"), "stream": args.get("stream"), "device": args.get("device")}
        match event["cat"]:
            case "kernel":
                export.on_device(spelling(event["name"]), ts, dur, grid=args.get("grid", (0, 0, 0)), block=args.get("block", (0, 0, 0)), **on_device)
            case "gpu_memcpy":
                kind, origin, target = re.fullmatch(r"Memcpy (\w+) \((\w+) -> (\w+)\)", event["name"]).groups()
                export.copy(kind, origin, target, args.get("bytes"), ts, dur, **on_device)
            case "gpu_memset":
                export.set(args.get("bytes"), ts, dur, **on_device)
            case "cuda_runtime" | "cuda_driver":
                export.call(event["name"], ts, dur, args.get("correlation"), tid=event["tid"] & 0xFFFFFF,
                            version="_v7000" if event["cat"] == "cuda_runtime" else "")
            case "user_annotation":
                export.range(event["name"], ts, dur, tid=event["tid"] & 0xFFFFFF)
            case "cpu_op" if operators:
                sizes = f", sizes = {args['Input Dims']}" if "Input Dims" in args else ""
                export.range(f"{event['name']}, op_id = {len(export.tables.get('NVTX_EVENTS', ())) + 1}{sizes}", ts, dur, tid=event["tid"] & 0xFFFFFF)
    return export
