#!/usr/bin/env python3
"""The schema and the checks beside it: an answer of the real program is right, and each way to spoil it is seen."""
import copy
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent.parent / "tools"))
import validate_json  # noqa: E402

EVENTS = [
    {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#1", "pid": 9, "tid": 9, "ts": 0, "dur": 100},
    {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 9, "tid": 9, "ts": 1, "dur": 2, "args": {"correlation": 1}},
    {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 90, "dur": 10, "args": {"correlation": 1, "device": 0, "stream": 7}},
]


def remove(path):
    def spoil(answer):
        target = answer
        for key in path[:-1]:
            target = target[key]
        del target[path[-1]]
    return spoil


def put(path, value):
    def spoil(answer):
        target = answer
        for key in path[:-1]:
            target = target[key]
        target[path[-1]] = value
    return spoil


SUSPECT = {"id": "host-launch", "rank": 1, "verdict": "culprit", "confidence": "likely", "claim": "c", "ns_per_step": 5,
           "exposed_ns_per_step": 5, "share": 0.5, "kernels": [], "where": [], "tensor": None, "live_fraction": None,
           "facts": ["F999999"], "disproved_if": "d", "fix": {"summary": "s", "alternatives": []}, "gain": None}
GAIN = {"step_ns_now": 9, "step_ns_after": {"low": 5, "expected": 4, "high": 9}, "tokens_per_s_after": None, "bound_by_after": None,
        "method": "bound"}

SPOILED = {
    "a member is missing": remove(["steps", "mean_ns"]),
    "a member of ours is misspelt": put(["device", "smss"], 1),
    "a time is no integer": put(["steps", "mean_ns"], 1.5),
    "a share is above one": put(["budget", 0, "share"], 1.2),
    "an owner that is not in the list": put(["budget", 0, "owner"], "magic"),
    "a note code that is not in the list": put(["quality", "notes", 0, "code"], "oops"),
    "the budget does not add up": put(["budget", 0, "ns_per_step"], 1),
    "more steps used than found": put(["steps", "used"], 99),
    "an unusable answer accuses": put(["quality", "usable"], False),
    "a suspect cites no fact": put(["suspects"], [SUSPECT]),
    "a suspect is unknown": put(["suspects"], [{**SUSPECT, "id": "someone"}]),
    "ranks do not count": put(["suspects"], [{**SUSPECT, "rank": 2}]),
    "a gain out of order": put(["suspects"], [{**SUSPECT, "gain": GAIN}]),
    "exposed for longer than at work": put(["suspects"], [{**SUSPECT, "ns_per_step": 4}]),
}


class Validate(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.schema = json.loads(pathlib.Path(os.environ["CULPRIT_SCHEMA"]).read_text())
        with tempfile.TemporaryDirectory() as folder:
            trace = pathlib.Path(folder) / "t.json"
            trace.write_text(json.dumps({"traceEvents": EVENTS}))
            done = subprocess.run([os.environ["CULPRIT"], "--json", str(trace)], capture_output=True, check=True)
        cls.answer = json.loads(done.stdout)

    def test_the_real_answer_is_right(self):
        self.assertEqual(validate_json.problems(self.schema, self.answer), [])

    def test_every_fault_is_seen(self):
        for what, spoil in SPOILED.items():
            answer = copy.deepcopy(self.answer)
            spoil(answer)
            with self.subTest(what):
                self.assertNotEqual(validate_json.problems(self.schema, answer), [])


if __name__ == "__main__":
    unittest.main()
