#!/usr/bin/env python3
"""Holds culprit against plain SQL over the real Nsight Systems exports: kernels, copies, busy time, processes.

    nsight.py CULPRIT_BINARY TRACES_DIR
    nsight.py --show TRACES_DIR             the figures of SQL alone, as tests/traces/expected.json repeats them

Takes from culprit only where the steps are; what ran in them is computed here, and must be the same to the nanosecond.
Exit 0: all agree; 1: a miss; 77: the folder of traces is not there.
"""
import json
import pathlib
import sqlite3
import subprocess
import sys

SKIPPED = 77
TIMEOUT_S = 120
WORK = ("KERNEL", "MEMCPY", "MEMSET")
IDLE = ("idle-", "unexplained", "graph")
SHOWN = 3
COPIES = {1: "HtoD", 2: "DtoH", 8: "DtoD", 10: "PtoP"}
MEMORY = ("Pageable", "Pinned", "Device")

KERNELS = """
    SELECT s.value, gridX, gridY, gridZ, blockX, blockY, blockZ, COUNT(*), SUM(k.end - k.start)
    FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN temp.step ON k.start >= step.first AND k.start < step.last
    LEFT JOIN StringIds s ON s.id = k.demangledName WHERE deviceId = ? GROUP BY 1, 2, 3, 4, 5, 6, 7"""
COPIED = """
    SELECT copyKind, srcKind, dstKind, COUNT(*), SUM(k.end - k.start), SUM(bytes)
    FROM CUPTI_ACTIVITY_KIND_MEMCPY k JOIN temp.step ON k.start >= step.first AND k.start < step.last
    WHERE deviceId = ? GROUP BY 1, 2, 3"""
SET = """
    SELECT memKind, COUNT(*), SUM(k.end - k.start) FROM CUPTI_ACTIVITY_KIND_MEMSET k
    JOIN temp.step ON k.start >= step.first AND k.start < step.last WHERE deviceId = ? GROUP BY 1"""
BUSY = """
    SELECT SUM(MAX(0, last - MAX(first, IFNULL(covered, first)))) FROM (
        SELECT *, MAX(last) OVER (PARTITION BY number ORDER BY first, last ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS covered
        FROM (SELECT step.number, MAX(work.start, step.first) AS first, MIN(work.end, step.last) AS last
              FROM ({work}) work JOIN temp.step ON work.start < step.last AND work.end > step.first))"""


class Export:
    def __init__(self, path):
        self.db = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro&immutable=1", uri=True)
        self.db.text_factory = lambda raw: raw.decode("utf-8", "replace")
        self.tables = {row[0] for row in self.db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}

    def query(self, sql, *values):
        return self.db.execute(sql, values).fetchall()

    def columns(self, table):
        return {row[1] for row in self.query(f"PRAGMA table_info({table})")}

    def has_kernels(self):
        return "CUPTI_ACTIVITY_KIND_KERNEL" in self.tables and bool(self.query("SELECT 1 FROM CUPTI_ACTIVITY_KIND_KERNEL LIMIT 1"))

    def device(self, answer):
        """The one that the answer says it is about."""
        devices = [row[0] for row in self.query("SELECT DISTINCT deviceId FROM CUPTI_ACTIVITY_KIND_KERNEL")]
        return next((rank["device"] for rank in answer["ranks"] if rank["headline"]), devices[0])

    def work(self, device):
        return " UNION ALL ".join(f"SELECT start, end FROM CUPTI_ACTIVITY_KIND_{kind} WHERE deviceId = {device}"
                                  for kind in WORK if f"CUPTI_ACTIVITY_KIND_{kind}" in self.tables)

    def span(self, device):
        return self.query(f"SELECT MIN(start), MAX(end) FROM ({self.work(device)})")[0]

    def choose(self, steps):
        """What later queries are about: [(first, last)] in ns."""
        self.db.execute("CREATE TEMP TABLE IF NOT EXISTS step (number INTEGER, first INTEGER, last INTEGER)")
        self.db.execute("DELETE FROM temp.step")
        self.db.executemany("INSERT INTO temp.step VALUES (?, ?, ?)", [(n, *step) for n, step in enumerate(steps)])

    def kernels(self, device):
        """{(name, grid, block): (calls, ns)}"""
        return {(row[0], row[1:4], row[4:7]): row[7:9] for row in self.query(KERNELS, device)}

    def copies(self, device):
        """{name: (calls, ns, bytes)}"""
        if not {"srcKind", "dstKind", "copyKind"} <= self.columns("CUPTI_ACTIVITY_KIND_MEMCPY"):
            return {}
        return {f"Memcpy {COPIES[kind]} ({MEMORY[source]} -> {MEMORY[target]})": rest
                for kind, source, target, *rest in self.query(COPIED, device)}

    def sets(self, device):
        """{name: (calls, ns)}"""
        if "CUPTI_ACTIVITY_KIND_MEMSET" not in self.tables:
            return {}
        return {f"Memset ({MEMORY[kind]})": rest for kind, *rest in self.query(SET, device)}

    def busy(self, device):
        return self.query(BUSY.format(work=self.work(device)))[0][0]

    def rows(self):
        """Rows of the tables that are read."""
        kinds = ("KERNEL", "MEMCPY", "MEMSET", "RUNTIME", "SYNCHRONIZATION", "GRAPH_TRACE")
        tables = [f"CUPTI_ACTIVITY_KIND_{kind}" for kind in kinds] + ["NVTX_EVENTS"]
        return sum(self.query(f"SELECT COUNT(*) FROM {table}")[0][0] for table in tables if table in self.tables)

    def linked(self, device):
        """Kernel time with a launch in the file, by correlation and process."""
        same = "AND r.globalTid >> 24 = k.globalPid >> 24" if "globalPid" in self.columns("CUPTI_ACTIVITY_KIND_KERNEL") else ""
        return self.query(f"""SELECT COUNT(*) FROM CUPTI_ACTIVITY_KIND_KERNEL k WHERE deviceId = ? AND NOT EXISTS (
            SELECT 1 FROM CUPTI_ACTIVITY_KIND_RUNTIME r WHERE r.correlationId = k.correlationId {same})""", device)[0][0]

    def top(self, device):
        """Of the whole file: the device's kernels with the most time."""
        first, last = self.span(device)
        self.choose([(first, last + 1)])
        rows = sorted(self.kernels(device).items(), key=lambda item: (-item[1][1], item[0]))[:SHOWN]
        return [{"name": name, "grid": list(grid), "calls": calls, "ns": ns} for (name, grid, _), (calls, ns) in rows]


def run(culprit, *arguments):
    done = subprocess.run([culprit, *arguments], capture_output=True, timeout=TIMEOUT_S, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"exit {done.returncode}: {done.stderr.decode('utf-8', 'replace')}")
    return json.loads(done.stdout)


def mean(total, steps):
    return (total + steps // 2) // steps


def check(culprit, path):
    """What does not agree, as text."""
    export, answer = Export(path), run(culprit, "steps", str(path), "--json")
    device = export.device(answer)
    begin, end = export.span(device)
    used = [(begin + row["begin_ns"], begin + row["begin_ns"] + row["ns"]) for row in answer["table"]["rows"] if row["used"] == "yes"]
    export.choose([(first, last + (last == end)) for first, last in used])
    steps = len(used)
    if answer["steps"]["used"] != steps:
        yield f"steps.used is {answer['steps']['used']}, the table has {steps}"
    if answer["inputs"][0]["events"] != export.rows():
        yield f"events: {answer['inputs'][0]['events']}, SQL has {export.rows()}"
    mine, engine = export.kernels(device), export.copies(device) | export.sets(device)
    for kernel in answer["kernels"]:
        key = (kernel["name"], tuple(kernel["grid"] or ()), tuple(kernel["block"] or ()))
        found = (round(kernel["calls_per_step"] * steps), kernel["ns_per_step"])
        calls, ns, *size = engine.pop(kernel["name"], None) or mine.pop(key, None) or (0, 0)
        if found != (calls, mean(ns, steps)):
            yield f"{key}: {found} calls and ns per step, SQL has {calls} and {mean(ns, steps)}"
    yield from (f"{key} is missing" for key in [*mine, *engine])
    busy = sum(row["ns_per_step"] for row in answer["budget"] if not row["owner"].startswith(IDLE))
    # Kernels that the tool limited would show here; the rows of a budget are rounded to whole ns.
    if abs(busy - export.busy(device) / steps) > len(answer["budget"]):
        yield f"busy time per step: {busy}, SQL has {export.busy(device) / steps}"
    missing = next((note["count"] for note in answer["quality"]["notes"] if note["code"] == "launches-missing"), 0)
    if missing != export.linked(device):
        yield f"kernels without a launch: {missing}, SQL has {export.linked(device)}"


def main():
    show, folder = sys.argv[1] == "--show", pathlib.Path(sys.argv[-1])
    if not folder.is_dir():
        print(f"SKIP: no traces folder at {folder}")
        return SKIPPED
    expected = json.loads(pathlib.Path(__file__).with_name("expected.json").read_text(encoding="utf-8"))
    files = [path for path in sorted((folder / "nsys").glob("*.sqlite")) if Export(path).has_kernels()]
    entries = {entry["path"]: entry for entry in expected["files"]}
    failed = 0
    for path in files:
        if show:
            devices = [row[0] for row in Export(path).query("SELECT DISTINCT deviceId FROM CUPTI_ACTIVITY_KIND_KERNEL")]
            print(path.name, json.dumps({"events": Export(path).rows(),
                                         "top_kernels": {device: Export(path).top(device) for device in devices}}))
            continue
        misses = list(check(sys.argv[1], path))
        answer = run(sys.argv[1], "steps", str(path), "--json")
        if entries[f"nsys/{path.name}"]["top_kernels"] != Export(path).top(Export(path).device(answer)):
            misses.append("expected.json has other top_kernels than SQL")
        failed += bool(misses)
        print(f"{'miss' if misses else 'ok':4}  {path.name}", *misses, sep="\n      - ")
    return int(failed > 0 or not files)


if __name__ == "__main__":
    sys.exit(main())
