#!/usr/bin/env python3
"""Tests of shorten.py and of the packing arithmetic; needs no PyTorch."""

import json
import unittest

import pack
import shorten


def event(name, ts, dur, cat, **args):
    return {"ph": "X", "cat": cat, "name": name, "pid": 1, "tid": 1, "ts": ts, "dur": dur, "args": args}


def kineto_text(steps):
    """`steps` steps of 100 us; each launches a kernel that starts 90 us later, in the next step."""
    base = 4913578943210.125  # 13 digits and a fraction, as relative Kineto times have
    events = [{"ph": "M", "name": "process_name", "ts": 0, "args": {"name": "python"}},
              event("main", base - 50, 100 * steps + 100, "python_function")]
    for i in range(steps):
        t = base + 100 * i
        events.append(event(f"ProfilerStep#{i}", t, 99, "user_annotation"))
        events.append(event(f"ProfilerStep#{i}", t + 90, 99, "gpu_user_annotation"))
        events.append({"ph": "f", "id": i, "cat": "ac2g", "name": "ac2g", "ts": t + 90, "bp": "e"})
        events.append({"ph": "s", "id": i, "cat": "ac2g", "name": "ac2g", "ts": t + 1})
        events.append(event("cudaLaunchKernel", t + 1, 3, "cuda_runtime", correlation=i))
        events.append(event("a \"quoted\" kernel", t + 105, 40, "kernel", correlation=i))
    events.append({"ph": "i", "name": "Record Window End", "ts": base + 100 * steps})
    return json.dumps({"schemaVersion": 1, "deviceProperties": [{"id": 0}], "traceEvents": events}, indent=2)


class FirstSteps(unittest.TestCase):
    def setUp(self):
        self.text = shorten.Trace(kineto_text(6)).first_steps(4)
        self.events = json.loads(self.text)["traceEvents"]

    def names(self, cat):
        return [e["name"] for e in self.events if e.get("cat") == cat]

    def test_keeps_the_first_steps_only(self):
        self.assertEqual(self.names("user_annotation"), [f"ProfilerStep#{i}" for i in range(4)])
        self.assertEqual(shorten.Trace(self.text).steps, 4)

    def test_keeps_a_kernel_that_runs_after_the_cut_but_was_launched_before(self):
        kernels = [e["args"]["correlation"] for e in self.events if e.get("cat") == "kernel"]
        self.assertEqual(kernels, [0, 1, 2, 3])

    def test_keeps_flows_in_pairs(self):
        starts = [e["id"] for e in self.events if e["ph"] == "s"]
        ends = [e["id"] for e in self.events if e["ph"] == "f"]
        self.assertEqual((starts, ends), ([0, 1, 2, 3], [0, 1, 2, 3]))

    def test_times_keep_every_digit(self):
        self.assertIn('"ts": 4913578943211.125', self.text)

    def test_ends_outer_frames_at_the_cut(self):
        frame = next(e for e in self.events if e.get("cat") == "python_function")
        self.assertEqual((frame["ts"], frame["ts"] + frame["dur"]), (4913578943160.125, 4913578943610.125))
        self.assertIn('"ts": 4913578943610.125', self.text)  # the window's end

    def test_keeps_a_short_trace_as_it_is(self):
        whole = kineto_text(3)
        self.assertEqual(shorten.Trace(whole).first_steps(4), whole)

    def test_refuses_what_is_no_trace(self):
        for text in ("", "{}", '{"traceEvents": [{"ph": "X"}', "[{]"):
            with self.assertRaises(shorten.NotATrace):
                shorten.Trace(text)


class Packing(unittest.TestCase):
    def test_share_limit_fills_the_budget(self):
        for sizes, budget in (([10, 20, 30], 100), ([50, 50, 50], 90), ([1, 100, 100], 101), ([7], 3)):
            limit = pack.share_limit(sizes, budget)
            total = sum(min(s, limit) for s in sizes)
            self.assertLessEqual(total, budget)
            self.assertTrue(total == sum(sizes) or budget - total < len(sizes))

    def test_compression_is_reproducible(self):
        self.assertEqual(pack.compress("trace"), pack.compress("trace"))

    def test_redaction_takes_the_longest_name_first(self):
        text = shorten.redact("/a/b/c.py /a/d.py", {"/a/": "A/", "/a/b/": "B/"})
        self.assertEqual(text, "B/c.py A/d.py")


if __name__ == "__main__":
    unittest.main()
