#!/usr/bin/env python3
"""Tests of judge_recording.py against a stand-in for culprit that answers what each test wants."""

import contextlib
import io
import json
import os
import stat
import sys
import tempfile
import unittest

import judge_recording
import pack

STAND_IN = """#!{python}
import json, os, sys
answers = json.load(open({answers!r}))
name = os.path.basename(sys.argv[1])
json.dump({{"suspects": answers[name], "argv": sys.argv[2:]}}, sys.stdout)
"""


def suspect(name, expected_ns=None, **more):
    return {"id": name, "verdict": "culprit", "gain": {"step_ns_after": {"expected": expected_ns}}, **more}


class Judge(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = temporary.name
        self.cause = None

    def judge(self, before, after):
        """Exit code and output for one case of 10 ms before and 4 ms after."""
        def run(trace, ns, expect, innocent):
            return {"trace": trace, "tpot": {"median_ns": ns}, "expect": expect, "innocent": innocent}
        os.makedirs(os.path.join(self.folder, "a-case"), exist_ok=True)
        pack.write_json(os.path.join(self.folder, "a-case", "manifest.json"), {
            "order": 0, "compare_by": "median", "cause": self.cause, "variants": {
                "before": {"runs": {"eager": run("before-eager.json.gz", 10_000_000, ["whole-pool-cast"], [])}},
                "after": {"runs": {"eager": run("after-eager.json.gz", 4_000_000, [], ["whole-pool-cast"])}}}})
        answers = os.path.join(self.folder, "answers")
        with open(answers, "w") as out:
            json.dump({"before-eager.json.gz": before, "after-eager.json.gz": after}, out)
        program = os.path.join(self.folder, "culprit")
        with open(program, "w") as out:
            out.write(STAND_IN.format(python=sys.executable, answers=answers))
        os.chmod(program, os.stat(program).st_mode | stat.S_IXUSR)
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            code = judge_recording.main(["--culprit", program, self.folder])
        return code, output.getvalue()

    def test_right_name_and_good_prediction(self):
        code, text = self.judge([suspect("whole-pool-cast", 4_100_000)], [])
        self.assertEqual(code, 0, text)
        self.assertIn("+2.5%", text)

    def test_wrong_name(self):
        self.assertEqual(self.judge([suspect("weight-dequant", 4_000_000)], [])[0], 1)

    def test_no_suspect(self):
        self.assertEqual(self.judge([], [])[0], 1)

    def test_accused_twin(self):
        code, text = self.judge([suspect("whole-pool-cast", 4_000_000)], [suspect("whole-pool-cast")])
        self.assertEqual(code, 1)
        self.assertIn("accuses `whole-pool-cast`", text)

    def test_another_suspect_in_the_twin_is_no_fault(self):
        self.assertEqual(self.judge([suspect("whole-pool-cast", 4_000_000)], [suspect("graph-missing")])[0], 0)

    def test_bad_prediction(self):
        self.assertEqual(self.judge([suspect("whole-pool-cast", 5_000_000)], [])[0], 1)

    def test_wrong_cause_of_a_stall(self):
        self.cause = "gc"
        self.assertEqual(self.judge([suspect("whole-pool-cast", 4_000_000, cause="compile")], [])[0], 1)
        self.assertEqual(self.judge([suspect("whole-pool-cast", 4_000_000, cause="gc")], [])[0], 0)

    def test_nothing_recorded(self):
        with contextlib.redirect_stderr(io.StringIO()):
            self.assertEqual(judge_recording.main(["--culprit", "culprit", self.folder]), 2)


if __name__ == "__main__":
    unittest.main()
