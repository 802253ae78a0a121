#!/usr/bin/env python3
"""A recording of the example passes a strict parser and the schema of Kineto's fields, and each way to spoil it is seen."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent.parent / "tools"))
import validate_trace  # noqa: E402

STEPS = 3


def record(folder, **environment):
    """The text of a recording of the example."""
    path = pathlib.Path(folder) / environment.pop("output", "t.json")
    environment = {"CULPRIT_PROFILE_DECODE": "1", "CULPRIT_PROFILE_WARMUP": "2", "CULPRIT_PROFILE_STEPS": str(STEPS),
                   "CULPRIT_PROFILE_OUTPUT": str(path), **environment}
    subprocess.run([os.environ["CULPRIT_EXAMPLE"], "--steps", str(STEPS + 3)], env={**os.environ, **environment}, check=True,
                   capture_output=True)
    return validate_trace.read(path)


def first(document, category):
    return next(e for e in document["traceEvents"] if e.get("cat") == category)


def change(category, key, value):
    """Sets a key of the first event of the category, or of its args."""
    def spoil(document):
        event = first(document, category)
        (event["args"] if key in event.get("args", {}) else event)[key] = value
    return spoil


def remove(category, key):
    def spoil(document):
        event = first(document, category)
        (event["args"] if key in event.get("args", {}) else event).pop(key)
    return spoil


def drop(category):
    def spoil(document):
        document["traceEvents"].remove(first(document, category))
    return spoil


def drop_names(document):
    document["traceEvents"] = [e for e in document["traceEvents"] if e["ph"] != "M"]


def repeat(category):
    def spoil(document):
        document["traceEvents"].insert(0, dict(first(document, category)))
    return spoil


SPOILED = {
    "no schemaVersion": lambda d: d.pop("schemaVersion"),
    "a device without a name": lambda d: d["deviceProperties"][0].pop("name"),
    "a base time that is no whole second": lambda d: d.update(baseTimeNanoseconds=d["baseTimeNanoseconds"] + 1),
    "an unknown category": change("kernel", "cat", "kernels"),
    "a kernel without correlation": remove("kernel", "correlation"),
    "a kernel whose launch is another": change("kernel", "correlation", 10**9),
    "a kernel on another row": change("kernel", "tid", 99),
    "a kernel on another stream": change("kernel", "stream", 99),
    "a kernel before its launch": change("kernel", "ts", 0.0),
    "a kernel of another operator": change("kernel", "External id", 10**9),
    "a kernel twice": repeat("kernel"),
    "a launch without its kernel": drop("kernel"),
    "a kernel without its launch": drop("cuda_runtime"),
    "a launch twice": repeat("cuda_runtime"),
    "an operator twice": repeat("cpu_op"),
    "an operator without id": remove("cpu_op", "External id"),
    "an operator with a type too many": lambda d: first(d, "cpu_op")["args"]["Input type"].append("float"),
    "a shape that is no number": change("cpu_op", "Input Dims", [["8"], [8]]),
    "shapes without types": remove("cpu_op", "Input type"),
    "an operator that does not nest": change("cpu_op", "dur", 10.0**6),
    "a frame that names no line": change("python_function", "name", "decode_loop.cc: layer"),
    "a frame without id": remove("python_function", "Python id"),
    "a call from another file": lambda d: next(e for e in d["traceEvents"] if "CallFrom" in e.get("args", {}))["args"].update(
        CallFrom="other.cc:7"),
    "a negative duration": change("cpu_op", "dur", -1.0),
    "a time as text": change("cpu_op", "ts", "1.0"),
    "a step without its mark on the device": drop("gpu_user_annotation"),
    "steps that overlap": change("user_annotation", "dur", 10.0**9),
    "nothing has a name": drop_names,
    "no end of the window": lambda d: d["traceEvents"].pop(),
}
SPOILED_TEXT = {
    "a comma too many": lambda t: t.replace("}\n]", "},\n]"),
    "a bare word": lambda t: t.replace('"numSms": 1', '"numSms": NaN'),
    "a key twice": lambda t: t.replace('"schemaVersion": 1', '"schemaVersion": 1, "schemaVersion": 1'),
    "a time of two digits": lambda t: t.replace('"dur": ', '"dur": 0.12, "was": ', 1),
    "cut off": lambda t: t[:-20],
}


class Recording(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as folder:
            cls.text = record(folder)

    def test_it_is_right(self):
        self.assertEqual(validate_trace.problems(self.text), [])

    def test_it_holds_what_ran(self):
        events = json.loads(self.text)["traceEvents"]
        count = {c: len(validate_trace.of(events, c)) for c in
                 ("user_annotation", "gpu_user_annotation", "cpu_op", "python_function", "cuda_runtime", "kernel")}
        # Per step: 8 layers of 3 operators, launches and kernels; sampling; the wait for the stream.
        self.assertEqual(count, {"user_annotation": STEPS, "gpu_user_annotation": STEPS, "cpu_op": 25 * STEPS,
                                 "python_function": 50 * STEPS, "cuda_runtime": 25 * STEPS, "kernel": 24 * STEPS})

    def test_gzip_holds_the_same_form(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(validate_trace.problems(record(folder, output="t.trace.json.gz")), [])
            self.assertEqual((pathlib.Path(folder) / "t.trace.json.gz").read_bytes()[:2], b"\x1f\x8b")

    def test_every_fault_is_seen(self):
        for what, spoil in SPOILED.items():
            document = json.loads(self.text)
            spoil(document)
            with self.subTest(what):
                # Times as the recorder writes them, so that nothing but the fault is wrong.
                text = validate_trace.TIME.sub(lambda m: m[0].replace(m[1], f"{float(m[1]):.3f}"), json.dumps(document))
                self.assertNotEqual(validate_trace.problems(text), [])

    def test_every_fault_of_the_text_is_seen(self):
        for what, spoil in SPOILED_TEXT.items():
            with self.subTest(what):
                self.assertNotEqual(spoil(self.text), self.text)
                self.assertNotEqual(validate_trace.problems(spoil(self.text)), [])

    def test_the_unspoiled_document_passes_the_same_way(self):
        text = validate_trace.TIME.sub(lambda m: m[0].replace(m[1], f"{float(m[1]):.3f}"), json.dumps(json.loads(self.text)))
        self.assertEqual(validate_trace.problems(text), [])


if __name__ == "__main__":
    unittest.main()
