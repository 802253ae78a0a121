#!/usr/bin/env python3
"""Holds recorded traces against the schema of Kineto's fields, and against what a schema cannot say: links, nesting, order.

Usage: validate_trace.py TRACE...      plain or in gzip; exit 1 if any trace is wrong.
"""
import gzip
import json
import pathlib
import re
import sys

import jsonschema

SCHEMA = pathlib.Path(__file__).resolve().parent.parent / "docs/schema/kineto.schema.json"
WORK = ("kernel", "gpu_memcpy", "gpu_memset")
# Every time in the text: three digits behind the point, as Kineto writes them since 2024.
TIME = re.compile(r'"(?:ts|dur)": ?(-?[0-9.eE+-]+)')


def strict(text):
    """The document of a text that is JSON to the letter: no NaN, no key twice."""
    def unique(pairs):
        keys = [key for key, _ in pairs]
        if len(keys) != len(set(keys)):
            raise ValueError(f"a key comes twice: {keys}")
        return dict(pairs)

    def constant(word):
        raise ValueError(f"{word} is no JSON")
    return json.loads(text, object_pairs_hook=unique, parse_constant=constant)


def nanos(event, key):
    return round(event[key] * 1000)


def begin(event):
    return nanos(event, "ts")


def end(event):
    return begin(event) + nanos(event, "dur")


def place(event):
    return event["pid"], event["tid"]


def of(events, *categories):
    return [event for event in events if event.get("cat") in categories]


def schema_problems(document):
    schema = json.loads(SCHEMA.read_text())
    errors = jsonschema.Draft202012Validator(schema).iter_errors(document)
    for error in sorted(errors, key=lambda e: list(map(str, e.absolute_path))):
        yield "".join(f"[{p!r}]" for p in error.absolute_path) + f": {error.message[:300]}"


def nesting_problems(events):
    """Spans of one host thread nest: of any two, one holds the other, or they are apart. Times are rounded to 1 ns."""
    threads = {}
    for event in of(events, "cpu_op", "user_annotation", "cuda_runtime", "cuda_driver", "python_function"):
        threads.setdefault(place(event), []).append(event)
    for spans in threads.values():
        around = []
        for span in sorted(spans, key=lambda s: (begin(s), -end(s))):
            while around and end(around[-1]) <= begin(span) + 1:
                around.pop()
            if around and end(span) > end(around[-1]) + 1:
                yield f"{span['name']!r} at {span['ts']} overlaps {around[-1]['name']!r} without lying in it"
            around.append(span)


def link_problems(events):
    calls = {}
    for call in of(events, "cuda_runtime", "cuda_driver"):
        if calls.setdefault(call["args"]["correlation"], call) is not call:
            yield f"two calls have correlation {call['args']['correlation']}"
    ops = {}
    for op in of(events, "cpu_op"):
        if ops.setdefault(op["args"]["External id"], op) is not op:
            yield f"two operators have External id {op['args']['External id']}"
        if len(op["args"].get("Input Dims", [])) != len(op["args"].get("Input type", [])):
            yield f"{op['name']!r} has more shapes than types, or fewer"
    for call in calls.values():
        op = ops.get(call["args"].get("External id"))
        if "External id" in call["args"] and (op is None or not begin(op) <= begin(call) <= end(call) <= end(op) + 1):
            yield f"{call['name']!r} at {call['ts']} is not within the operator that it names"
    worked = set()
    for work in of(events, *WORK):
        call = calls.get(work["args"]["correlation"])
        if call is None:
            yield f"{work['name']!r} at {work['ts']} has no launch"
            continue
        worked.add(work["args"]["correlation"])
        if begin(work) < begin(call):
            yield f"{work['name']!r} at {work['ts']} begins before its launch"
        if work["args"].get("External id") != call["args"].get("External id"):
            yield f"{work['name']!r} at {work['ts']} and its launch name two operators"
        if place(work) != (work["args"]["device"], work["args"]["stream"]):
            yield f"{work['name']!r} at {work['ts']} is drawn on another device or stream than its own"
    for call in calls.values():
        if "Launch" in call["name"] and call["args"]["correlation"] not in worked:
            yield f"{call['name']!r} at {call['ts']} has no work"


def stream_problems(events):
    streams = {}
    for work in of(events, *WORK):
        streams.setdefault(place(work), []).append(work)
    for stream, works in streams.items():
        works.sort(key=begin)
        for before, after in zip(works, works[1:]):
            if begin(after) < end(before) - 1:
                yield f"{after['name']!r} at {after['ts']} overlaps {before['name']!r} on stream {stream}"


def step_problems(events):
    steps = sorted((e for e in of(events, "user_annotation") if e["name"].startswith("step[")), key=begin)
    if not steps:
        yield "no step is marked"
    for before, after in zip(steps, steps[1:]):
        if begin(after) < end(before):
            yield f"the step at {after['ts']} begins within the one before"
    calls = {call["args"]["correlation"]: call for call in of(events, "cuda_runtime", "cuda_driver")}
    marks = of(events, "gpu_user_annotation")
    for step in steps:
        for work in of(events, *WORK):
            call = calls.get(work["args"]["correlation"])
            if call is None or not begin(step) <= begin(call) < end(step):
                continue
            if not any(m["name"] == step["name"] and place(m) == place(work) and begin(m) - 1 <= begin(work) and
                       end(work) <= end(m) + 3 for m in marks):
                yield f"{work['name']!r} at {work['ts']} lies in no device mark of its step"


def frame_problems(events):
    frames = {}
    for frame in of(events, "python_function"):
        if frames.setdefault(frame["args"]["Python id"], frame) is not frame:
            yield f"two frames have Python id {frame['args']['Python id']}"
    for frame in frames.values():
        parent = frames.get(frame["args"]["Python parent id"])
        if parent is None:
            continue
        if not (place(parent) == place(frame) and begin(parent) <= begin(frame) and end(frame) <= end(parent) + 1):
            yield f"{frame['name']!r} at {frame['ts']} is not within its parent"
        called = frame["args"].get("CallFrom")
        if called and not parent["name"].startswith(called.rsplit(":", 1)[0] + "("):
            yield f"{frame['name']!r} is called from {called}, and its parent is {parent['name']!r}"


def name_problems(events):
    named = {(e["name"], e["pid"], e["tid"]) for e in events if e["ph"] == "M"}
    for event in of(events, "cpu_op", "user_annotation", *WORK):
        for what, tid in (("process_name", 0), ("thread_name", event["tid"])):
            if (what, event["pid"], tid) not in named:
                yield f"no {what} for {event['pid']}, {tid}"
                return
    if events[-1].get("name") != "Record Window End":
        yield "the last event is not Record Window End"


def problems(text):
    """Every fault of one trace, as text; empty when it is right."""
    try:
        document = strict(text)
    except ValueError as error:
        return [f"not strict JSON: {error}"]
    found = list(schema_problems(document))
    if found:  # what follows needs the shape
        return found
    odd = [time for time in TIME.findall(text) if not re.fullmatch(r"\d+\.\d{3}", time)]
    events = document["traceEvents"]
    return [*(f"a time is written {time}" for time in odd[:5]), *nesting_problems(events), *link_problems(events), *stream_problems(events),
            *step_problems(events), *frame_problems(events), *name_problems(events)]


def read(path):
    data = pathlib.Path(path).read_bytes()
    return (gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data).decode("utf-8")


def main(*paths):
    wrong = 0
    for path in paths:
        found = problems(read(path))
        wrong += bool(found)
        for problem in found[:20]:
            print(f"{path}: {problem}")
    return 1 if wrong or not paths else 0


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
