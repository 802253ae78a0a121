#!/usr/bin/env python3
"""An independent look at a trace: its main figures as one JSON document.

    look.py FILE...                        figures of each file, one document
    look.py --verify EXPECTED.json FOLDER  exit 1 where the expectations are not what the look finds, 77 without FOLDER

The look shares no code, name table or constant with culprit: it is what the tool is held against, so it is kept
plain. It reads a whole file at once (about 60 MB of JSON per second) and needs the standard library alone.

Input: Kineto Chrome JSON of every era (plain or gzip; object or array) and Nsight Systems SQLite exports.
Times are integer nanoseconds; they come from the decimal text and never pass through a float.
Definitions (step, busy, launch, each note): docs/trace-support.md.
"""
import argparse
import bisect
import collections
import decimal
import json
import pathlib
import re
import sqlite3
import sys
import zlib
from typing import NamedTuple

# Categories of 2021 and what they are called since.
OLD_CATEGORIES = {"Kernel": "kernel", "Memcpy": "gpu_memcpy", "Memset": "gpu_memset",
                  "Runtime": "cuda_runtime", "Operator": "cpu_op"}
DEVICE_ACTIVITY = ("kernel", "gpu_memcpy", "gpu_memset")
SKIPPED = 77  # exit code
LAUNCH_CALL = re.compile(r"Launch(Cooperative)?Kernel|GraphLaunch")
CAPTURE_CALL = re.compile(r"Stream(Begin|End)Capture|GraphInstantiate")
CAPTURE_MARK = re.compile(r"capture_\d+")
BACKWARD_OP = re.compile(r"^autograd::engine::evaluate_function|Backward\d*$")
BACKWARD_KERNEL = re.compile(r"backward|_bwd_|_wrw_|wgrad|dgrad")

PROFILER_STEP = re.compile(r"ProfilerStep#\d+")
SGLANG_STEP = re.compile(r"step\[(\w+)(?: .*?\bbs=(\d+))?.*\]")
VLLM_STEP = re.compile(r"execute_(?:\d+_)?context_(\d+)\(.*?\)_generation_(\d+)\(.*\)")
SGLANG_KINDS = {"DECODE": "decode", "EXTEND": "prefill", "MIXED": "mixed",
                "TARGET_VERIFY": "verify", "DRAFT_EXTEND": "draft", "DRAFT_LOOP": "draft"}


class Span(NamedTuple):
    begin: int  # ns
    end: int    # ns
    category: str
    name: str
    pid: object
    tid: object
    args: dict


class Mark(NamedTuple):
    begin: int
    end: int
    name: str
    kind: str          # of the step it marks
    batch: "int | None"  # sequences in the step


def in_order(spans):
    return sorted(spans, key=lambda span: (span.begin, span.end))


# ---------------------------------------------------------------------------------------------------------------------
# Reading

def inflate(data):
    """gzip members one after another; a cut file gives what it holds."""
    out = []
    while data[:2] == b"\x1f\x8b":
        member = zlib.decompressobj(wbits=31)
        out.append(member.decompress(data))
        data = member.unused_data
    return b"".join(out)


def parse_json(data):
    """Numbers with a point stay text, so that to_ns sees the digits; stray bytes become replacement characters."""
    return json.loads(data.decode("utf-8", "replace"), parse_float=str, strict=False)


def to_ns(microseconds):
    """Microseconds as an integer or as decimal text -> nanoseconds, exact: a double holds no epoch time to the ns."""
    return int(decimal.Decimal(microseconds).scaleb(3).to_integral_value())


def spans_of(events):
    for event in events:
        if event.get("ph") == "X" and "dur" in event:
            begin = to_ns(event["ts"])
            category = event.get("cat", "")
            yield Span(begin, begin + to_ns(event["dur"]), OLD_CATEGORIES.get(category, category),
                       event.get("name", ""), event.get("pid"), event.get("tid"), event.get("args") or {})


# ---------------------------------------------------------------------------------------------------------------------
# Figures of a Kineto trace

def union_ns(spans):
    """Time in which at least one of the spans was there. O(n log n)."""
    busy, covered_to = 0, None
    for span in in_order(spans):
        if covered_to is None or span.begin > covered_to:
            covered_to = span.begin
        busy += max(0, span.end - covered_to)
        covered_to = max(covered_to, span.end)
    return busy


def share(part, whole):
    return round(part / whole, 4) if whole else None


def extent(spans):
    return min(span.begin for span in spans), max(span.end for span in spans)


def device_figures(activities):
    """One entry per device, the busiest first."""
    by_device = collections.defaultdict(list)
    for activity in activities:
        by_device[activity.args.get("device", activity.pid)].append(activity)
    figures = []
    for device, spans in by_device.items():
        begin, end = extent(spans)
        kinds = collections.Counter(span.category for span in spans)
        figures.append({
            "device": device, "kernels": kinds["kernel"], "memcpys": kinds["gpu_memcpy"], "memsets": kinds["gpu_memset"],
            "device_activities": len(spans), "streams": len({span.tid for span in spans}),
            "begin_ns": begin, "span_ns": end - begin, "busy_ns": union_ns(spans),
            "kernel_sum_ns": sum(span.end - span.begin for span in spans if span.category == "kernel"),
            "same_stream_overlaps": same_stream_overlaps(spans)})
    return sorted(figures, key=lambda entry: -entry["busy_ns"])


def same_stream_overlaps(spans):
    """Pairs of neighbours on one stream of which the second begins before the first ends."""
    streams = collections.defaultdict(list)
    for span in in_order(spans):
        streams[span.tid].append(span)
    overlaps = [a.end - b.begin for row in streams.values() for a, b in zip(row, row[1:]) if a.end > b.begin]
    return {"count": len(overlaps), "longest_ns": max(overlaps, default=0)}


def correlation(span):
    return span.args.get("correlation")


def link_figures(activities, calls):
    """Launch <-> device activity, joined by correlation alone."""
    call_of = {correlation(call): call for call in calls}
    work_of = collections.Counter(correlation(activity) for activity in activities)
    launches = in_order(call for call in calls if LAUNCH_CALL.search(call.name))
    copies = [call for call in calls if re.search(r"Mem(cpy|set)", call.name)]
    graphs = [call for call in launches if "Graph" in call.name]
    orphans = [activity for activity in activities if correlation(activity) not in call_of]
    lead = [call_of[correlation(a)].begin - a.begin for a in activities if correlation(a) in call_of]
    return {
        "launches": len(launches),
        "launches_without_activity": sum(1 for call in launches if not work_of[correlation(call)]),
        "copy_calls": len(copies),
        "copy_calls_without_activity": sum(1 for call in copies if not work_of[correlation(call)]),
        "kernels_without_launch": sum(1 for span in orphans if span.category == "kernel"),
        "activities_without_launch": len(orphans),
        "activities_before_their_launch": sum(1 for ns in lead if ns > 0),
        "before_their_launch_by_at_most_ns": max([ns for ns in lead if ns > 0], default=0),
        "graph_launches": len(graphs),
        "activities_per_graph_launch": sorted(work_of[correlation(call)] for call in graphs),
        "capture_calls": sum(1 for call in calls if CAPTURE_CALL.search(call.name)),
    }


def idle_figures(activities, calls):
    """Idle of the device between its first and last activity, split where the call that launched what comes next began.

    Before that point the host was late. After it the work was queued: launch latency, a wait for an event, or work that
    the file does not show.
    """
    launched = {correlation(call): call.begin for call in calls}
    idle = collections.Counter(before_launch_ns=0, after_launch_ns=0, launch_unknown_ns=0)
    longest_queued, covered_to = 0, None
    for activity in in_order(activities):
        if covered_to is not None and activity.begin > covered_to:
            gap, launch = activity.begin - covered_to, launched.get(correlation(activity))
            if launch is None:
                idle["launch_unknown_ns"] += gap
            else:
                late = min(max(launch - covered_to, 0), gap)
                idle["before_launch_ns"] += late
                idle["after_launch_ns"] += gap - late
                longest_queued = max(longest_queued, gap - late)
        covered_to = max(covered_to or activity.end, activity.end)
    return dict(idle) | {"longest_after_launch_ns": longest_queued}


def op_figures(ops, activities, calls):
    """Device time whose launch lies within an operator on the launching thread, and what "External id" means here.

    From 2022 to early 2024 the id on kernels and launches repeats the correlation: it names no operator, and where it
    equals the id of one, that is chance.
    """
    call_of = {correlation(call): call for call in calls}
    threads = collections.defaultdict(list)  # (pid, tid) -> disjoint stretches within operators, in order
    for op in in_order(op for op in ops if not step_mark(op)):
        stretches = threads[op.pid, op.tid]
        if stretches and op.begin <= stretches[-1][1]:
            stretches[-1][1] = max(stretches[-1][1], op.end)
        else:
            stretches.append([op.begin, op.end])

    def within_op(call):
        stretches = threads[call.pid, call.tid]
        i = bisect.bisect_right(stretches, call.begin, key=lambda stretch: stretch[0]) - 1
        return i >= 0 and call.begin < stretches[i][1]

    launched = [(a.end - a.begin, call_of[correlation(a)]) for a in activities if correlation(a) in call_of]
    within_ns = sum(ns for ns, call in launched if within_op(call))
    ids = [span.args.get("External id", span.args.get("external id")) for span in activities]
    same = sum(1 for span, external in zip(activities, ids) if external is not None and external == correlation(span))
    return {"share_of_device_time": share(within_ns, sum(a.end - a.begin for a in activities)),
            "share_of_launched_time": share(within_ns, sum(ns for ns, _ in launched)),
            "activities_with_external_id": sum(1 for external in ids if external is not None),
            "external_id_is_correlation": 2 * same > len(activities)}


# ---------------------------------------------------------------------------------------------------------------------
# Steps and layers

def step_mark(span):
    """The step that a host annotation marks, or None."""
    if PROFILER_STEP.fullmatch(span.name):
        return Mark(span.begin, span.end, span.name, "unknown", None)
    if match := SGLANG_STEP.fullmatch(span.name):
        kind = SGLANG_KINDS.get(match[1])
        return kind and Mark(span.begin, span.end, span.name, kind, int(match[2]) if match[2] else None)
    if match := VLLM_STEP.fullmatch(span.name):
        context, generation = int(match[1]), int(match[2])
        kind = "mixed" if context and generation else "prefill" if context else "decode"
        return Mark(span.begin, span.end, span.name, kind, context + generation)
    return None


def outer_marks(spans):
    """Step marks in order of time; of nested marks the outer one, which takes kind and batch from within if it has none."""
    marks = [mark for span in spans if span.category in ("user_annotation", "cpu_op") and (mark := step_mark(span))]
    outer = []
    for mark in sorted(marks, key=lambda m: (m.begin, -m.end)):
        if outer and mark.end <= outer[-1].end:
            if outer[-1].kind == "unknown":
                outer[-1] = outer[-1]._replace(kind=mark.kind, batch=mark.batch)
        else:
            outer.append(mark)
    return outer


def launched_under(marks, activities, calls):
    """Device activities of each mark, by the time of their launch on whatever thread."""
    call_of = {correlation(call): call for call in calls}
    linked = [(call_of[correlation(a)].begin, a) for a in activities if correlation(a) in call_of]
    return [[a for launched, a in linked if mark.begin <= launched < mark.end] for mark in marks]


def step_figures(marks, activities, calls):
    """Steps by the rule of docs/trace-support.md; a mark under which nothing was launched makes no step."""
    found = [(mark, work) for mark, work in zip(marks, launched_under(marks, activities, calls)) if work]
    begins = [min(a.begin for a in work) for _, work in found]
    steps = []
    for i, (mark, work) in enumerate(found):
        last = i + 1 == len(found)
        end = max(max(a.end for a in work), mark.end) if last else begins[i + 1]
        inside = [a._replace(begin=max(a.begin, begins[i]), end=min(a.end, end))
                  for a in activities if a.end > begins[i] and a.begin < end]
        low, high = extent(inside)
        own_end = extent(work)[1]
        steps.append({"mark": mark.name[:60], "kind": mark.kind, "batch": mark.batch, "ns": end - begins[i],
                      "kernels": sum(1 for a in work if a.category == "kernel"),
                      "device_activities": len(work),
                      "device_span_ns": high - low, "busy_ns": union_ns(inside),
                      "own_device_span_ns": own_end - begins[i], "own_busy_ns": union_ns(work)})
    return steps, [work for _, work in found]


def layer_figures(work):
    """Layers from the calls per step of each kernel (name + grid), without a model config.

    The largest count L of 8 or more such that kernels called kL, kL + 1 or kL - 1 times make up 90 % of the calls of
    all repeated kernels. The most common count alone misleads: with two norms per layer and one after the last layer,
    more kernels run 2L + 1 times than L times.
    """
    calls = collections.Counter((a.name, str(a.args.get("grid"))) for a in work if a.category == "kernel")
    histogram = collections.Counter(calls.values())
    repeated = {count: count * kernels for count, kernels in histogram.items() if count > 1}
    fits = [layers for layers in repeated if layers >= 8 and 10 * sum(
        total for count, total in repeated.items() if min(count % layers, -count % layers) <= 1 and count >= layers - 1
    ) >= 9 * sum(repeated.values())]
    return {"count": max(fits, default=None), "kernels_by_calls": {str(c): histogram[c] for c in sorted(histogram)}}


# ---------------------------------------------------------------------------------------------------------------------
# The documents

def device_of(document, figures):
    """Properties of the device that did the work."""
    properties = document.get("deviceProperties") or [] if isinstance(document, dict) else []
    if not properties:
        return None
    used = figures[0]["device"] if figures else None
    chosen = next((entry for entry in properties if entry.get("id") == used), properties[0])
    keys = {"name": "name", "numSms": "sms", "totalGlobalMem": "memory_bytes",
            "computeMajor": "compute_major", "computeMinor": "compute_minor"}
    return {ours: chosen.get(theirs) for theirs, ours in keys.items()} | {"count": len(properties)}


def note_codes(figures):
    """Notes that follow from the figures alone, with their counts; docs/trace-support.md has the rules."""
    links, devices, notes = figures["links"], figures["devices"], {}
    if not devices:
        return {"no-device-activity": None}
    missing, launches = links["launches_without_activity"], links["launches"]
    hints = links["capture_calls"] + sum(n for mark, n in figures["marks"].items() if CAPTURE_MARK.match(mark))
    if 2 * missing > launches and hints:
        notes["capture-trace"] = missing
    elif missing:
        notes["kernels-missing"] = missing
    if links["kernels_without_launch"]:
        notes["launches-missing"] = links["kernels_without_launch"]
    if links["activities_before_their_launch"]:
        notes["clock-skew"] = links["activities_before_their_launch"]
    if not figures["cpu_ops"]:
        notes["ops-missing"] = None
    if not figures["cpu_ops_with_shapes"]:
        notes["no-shapes"] = None
    if not figures["python_functions"] and not figures["cpu_ops_with_call_stack"]:
        notes["no-stacks"] = None
    if figures["steps"]["how"] == "whole-trace":
        notes["no-steps"] = None
    return notes


def look_at_events(document, events):
    events = [event for event in events if isinstance(event, dict)]
    spans = list(spans_of(events))
    activities = [span for span in spans if span.category in DEVICE_ACTIVITY]
    calls = [span for span in spans if span.category in ("cuda_runtime", "cuda_driver")]
    ops = [span for span in spans if span.category == "cpu_op"]
    marks = outer_marks(spans)
    steps, work_of_step = step_figures(marks, activities, calls)
    backward = (sum(1 for op in ops if BACKWARD_OP.search(op.name))
                + sum(1 for a in activities if BACKWARD_KERNEL.search(a.name)))
    kinds = {step["kind"] for step in steps} or {"unknown"}
    kind = kinds.pop() if len(kinds) == 1 else sorted(kinds)
    if kind == "unknown" and backward:
        kind = "training"

    figures = {
        "format": "kineto-json" if activities or calls or ops else "chrome-json",
        "events": len(events),
        "phases": dict(collections.Counter(event.get("ph") for event in events)),
        "categories": dict(collections.Counter(span.category for span in spans)),
        "decimals": max((len(str(e["ts"]).partition(".")[2]) for e in events if "ts" in e), default=0),
        "devices": device_figures(activities),
        "links": link_figures(activities, calls),
        "idle": idle_figures(activities, calls),
        "marks": dict(collections.Counter(s.name[:80] for s in spans if s.category == "user_annotation").most_common(20)),
        "step_marks": len(marks),
        "backward_ops_and_kernels": backward,
        "steps": {"kind": kind, "how": "marked" if steps else "whole-trace", "count": len(steps), "each": steps},
        "layers": layer_figures(work_of_step[len(steps) // 2] if steps else activities),
        "cpu_ops": len(ops),
        "op_attribution": op_figures(ops, activities, calls),
        "cpu_ops_with_shapes": sum(1 for op in ops if "Input Dims" in op.args or "Input dims" in op.args),
        "cpu_ops_with_call_stack": sum(1 for op in ops if op.args.get("Call stack")),
        "python_functions": sum(1 for span in spans if span.category == "python_function"),
    }
    figures["device"] = device_of(document, figures["devices"])
    figures["notes"] = note_codes(figures)
    return figures


def look_at_json(data):
    try:
        document = parse_json(data)
    except ValueError as error:
        return {"format": "damaged", "error": str(error), "notes": {}}
    events = document if isinstance(document, list) else document.get("traceEvents")
    if isinstance(events, list) and any(isinstance(event, dict) and "ph" in event for event in events):
        return look_at_events(document, events)
    kind = "pytorch-execution-trace" if {"schema", "nodes"} <= set(document) else "json"
    return {"format": kind, "keys": sorted(document)[:20] if isinstance(document, dict) else None,
            "notes": {"not-a-trace": None}}


# ---------------------------------------------------------------------------------------------------------------------
# Nsight Systems SQLite

BUSY_SQL = """
    SELECT device, COUNT(*), MIN(start), MAX(end) - MIN(start),
           SUM(MAX(0, end - MAX(start, IFNULL(covered_to, start)))), SUM(is_kernel), SUM(is_kernel * (end - start))
    FROM (SELECT *, MAX(end) OVER (PARTITION BY device ORDER BY start, end
                                   ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS covered_to
          FROM ({rows}))
    GROUP BY device ORDER BY device"""


def look_at_sqlite(path):
    db = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro&immutable=1", uri=True)
    # Names written on Windows are not always UTF-8.
    db.text_factory = lambda raw: raw.decode("utf-8", "replace")
    tables = {row[0] for row in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    meta = next((t for t in ("META_DATA_EXPORT", "EXPORT_META_DATA") if t in tables), None)
    if meta is None:
        return {"format": "sqlite", "tables": sorted(tables), "notes": {"not-a-trace": None}}
    about = dict(db.execute(f"SELECT name, value FROM {meta}"))
    counts = {name: db.execute(f"SELECT COUNT(*) FROM {name}").fetchone()[0] if name in tables else None
              for name in ("CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_MEMCPY", "CUPTI_ACTIVITY_KIND_MEMSET",
                           "CUPTI_ACTIVITY_KIND_RUNTIME", "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
                           "CUPTI_ACTIVITY_KIND_GRAPH_TRACE", "NVTX_EVENTS")}
    figures = {"format": "nsys-sqlite", "schema": about.get("EXPORT_SCHEMA_VERSION"),
               "product": about.get("EXPORT_PRODUCT_VERSION"), "rows": counts, "events": sum(n or 0 for n in counts.values()),
               "device": gpu_names(db, tables), "devices": sqlite_devices(db, tables), "notes": {}}
    if not figures["devices"]:
        figures["notes"]["no-device-activity"] = None
    if counts["CUPTI_ACTIVITY_KIND_KERNEL"]:
        figures |= sqlite_kernels(db)
        busiest = max(figures["devices"], key=lambda device: device["kernel_sum_ns"])["device"]
        if without := figures["kernels_without_launch"].get(busiest):
            figures["notes"]["launches-missing"] = without
    if len(figures["devices"]) > 1:
        figures["notes"]["other-devices"] = len(figures["devices"]) - 1
    return figures


def gpu_names(db, tables):
    if "TARGET_INFO_GPU" not in tables:
        return None
    return [name for (name,) in db.execute("SELECT name FROM TARGET_INFO_GPU ORDER BY id")]


def sqlite_devices(db, tables):
    rows = " UNION ALL ".join(
        f"SELECT deviceId AS device, start, end, {int(name == 'KERNEL')} AS is_kernel FROM CUPTI_ACTIVITY_KIND_{name}"
        for name in ("KERNEL", "MEMCPY", "MEMSET") if f"CUPTI_ACTIVITY_KIND_{name}" in tables)
    keys = ("device", "device_activities", "begin_ns", "span_ns", "busy_ns", "kernels", "kernel_sum_ns")
    return [dict(zip(keys, row)) for row in db.execute(BUSY_SQL.format(rows=rows))] if rows else []


def sqlite_kernels(db):
    columns = {row[1] for row in db.execute("PRAGMA table_info(CUPTI_ACTIVITY_KIND_KERNEL)")}
    # Correlation ids are unique within a process only; minimal exports leave the process out.
    same_process = "AND (r.globalTid >> 24) = (k.globalPid >> 24)" if "globalPid" in columns else ""
    without = db.execute(f"""SELECT deviceId, COUNT(*) FROM CUPTI_ACTIVITY_KIND_KERNEL k WHERE NOT EXISTS (
        SELECT 1 FROM CUPTI_ACTIVITY_KIND_RUNTIME r WHERE r.correlationId = k.correlationId {same_process}) GROUP BY 1""")
    early = db.execute(f"""SELECT COUNT(*) FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN CUPTI_ACTIVITY_KIND_RUNTIME r
        ON r.correlationId = k.correlationId {same_process} WHERE k.start < r.start""")
    launches = db.execute("""SELECT COUNT(*) FROM CUPTI_ACTIVITY_KIND_RUNTIME r JOIN StringIds s ON s.id = r.nameId
        WHERE s.value LIKE '%Launch%Kernel%' OR s.value LIKE '%GraphLaunch%'""")
    top = db.execute("""SELECT s.value, COUNT(*), SUM(k.end - k.start) AS ns FROM CUPTI_ACTIVITY_KIND_KERNEL k
        LEFT JOIN StringIds s ON s.id = k.demangledName GROUP BY s.value ORDER BY ns DESC, s.value LIMIT 10""")
    return {"launches": launches.fetchone()[0], "kernels_without_launch": dict(without.fetchall()),
            "kernels_before_their_launch": early.fetchone()[0],
            "kernels_in_graphs": db.execute("SELECT COUNT(graphNodeId) FROM CUPTI_ACTIVITY_KIND_KERNEL").fetchone()[0]
            if "graphNodeId" in columns else None,
            "top_kernels": [{"name": name, "calls": calls, "ns": ns} for name, calls, ns in top]}


# ---------------------------------------------------------------------------------------------------------------------
# Command line

def look(path):
    data = path.read_bytes()
    figures = {"path": str(path), "bytes": len(data)}
    if data.startswith(b"SQLite format 3\x00"):
        return figures | look_at_sqlite(path)
    return figures | look_at_json(inflate(data) if data[:2] == b"\x1f\x8b" else data)


def summary(figures):
    """The figures that tests/traces/expected.json repeats, under its names."""
    devices, steps = figures.get("devices") or [], figures.get("steps") or {}
    out = {"events": figures.get("events"), "schema": figures.get("schema")}
    counts = ("kernels", "device_activities", "kernel_sum_ns", "span_ns", "busy_ns")
    if figures["format"] == "nsys-sqlite":
        out["devices"] = [{name: device[name] for name in counts} for device in devices]
    elif devices:
        out |= {name: devices[0][name] for name in counts}
    if each := steps.get("each"):
        # Two readings of a step's device span: what ran in its time, and what it launched. They differ where steps overlap.
        spans = [(step[own + "busy_ns"], step[own + "device_span_ns"]) for step in each for own in ("", "own_")]
        out |= {"steps": len(each), "batch": each[0]["batch"], "step_ns": [step["ns"] for step in each],
                "step_busy_ns": [step["busy_ns"] for step in each],
                "device_span_ns": [min(ns for _, ns in spans), max(ns for _, ns in spans)],
                "device_busy": [min(share(*span) for span in spans), max(share(*span) for span in spans)]}
    elif devices and steps:
        out |= {"device_span_ns": [out["span_ns"]] * 2, "device_busy": [share(out["busy_ns"], out["span_ns"])] * 2}
    return out | {"layers": (figures.get("layers") or {}).get("count")}


def agrees(expected, found):
    return expected == found or isinstance(expected, list) and not isinstance(found, list) and found in expected


def verify(expected_path, folder):
    """Every figure that the expectations repeat must be what the look finds, and no forbidden note may follow from it."""
    expected = json.loads(expected_path.read_text(encoding="utf-8"))
    problems = []
    for entry in expected["files"]:
        figures = look(folder / entry["path"])
        # Where more than one answer is right for the tool, the expectation lists them.
        problems += [f"{entry['path']}: {name} is {entry[name]}, the look finds {value}"
                     for name, value in summary(figures).items() if name in entry and not agrees(entry[name], value)]
        wanted = entry.get("note_counts", {})
        problems += [f"{entry['path']}: note {code} with count {count}, the look finds {figures['notes'].get(code)}"
                     for code, count in wanted.items() if figures["notes"].get(code) != count]
        forbidden = set(entry.get("notes_forbidden", [])) | set(expected["notes_forbidden"] if entry["exit"] == 0 else [])
        problems += [f"{entry['path']}: note {code} is forbidden, the look finds it"
                     for code in figures["notes"] if code in forbidden]
    print("\n".join(problems) or f"{len(expected['files'])} files are what the look finds")
    return 1 if problems else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--verify", type=pathlib.Path, metavar="EXPECTED.json", help="compare with the look at FOLDER")
    parser.add_argument("paths", nargs="+", type=pathlib.Path, metavar="FILE", help="traces, or the FOLDER to verify in")
    options = parser.parse_args()
    if options.verify:
        if not options.paths[0].is_dir():
            print(f"SKIP: no traces folder at {options.paths[0]}")
            return SKIPPED
        return verify(options.verify, options.paths[0])
    documents = [look(path) for path in options.paths]
    json.dump(documents[0] if len(documents) == 1 else documents, sys.stdout, indent=1)
    print()
    return 0


if __name__ == "__main__":
    sys.exit(main())
