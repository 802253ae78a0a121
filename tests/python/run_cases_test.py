#!/usr/bin/env python3
"""The case runner itself: it passes right cases, fails wrong ones, and fails when it has none."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

RUNNER = pathlib.Path(__file__).resolve().parent.parent / "run_cases.py"
# Stands in for the program: prints its arguments' last file, and complains on stderr.
PROGRAM = '#!/bin/sh\necho "said: $1" >&2\nfor last; do :; done\ncat "$last"\n'


class RunCases(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.root = pathlib.Path(self.folder.name)
        self.program = self.root / "program"
        self.program.write_text(PROGRAM)
        self.program.chmod(0o755)
        (self.root / "cases").mkdir()

    def tearDown(self):
        self.folder.cleanup()

    def run_case(self, text, *options):
        case = self.root / "cases" / "one.case"
        if text is not None:
            case.write_text(text)
        done = subprocess.run([sys.executable, str(RUNNER), str(self.program), *options, str(self.root / "cases")],
                              capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr, case

    def passes(self, text):
        status, output, _ = self.run_case(text)
        self.assertEqual(status, 0, output)

    def fails(self, text, saying):
        status, output, _ = self.run_case(text)
        self.assertEqual(status, 1, output)
        self.assertIn(saying, output)

    def test_right_output_and_status(self):
        self.passes("# comment\n--- FILE a.txt\nhello\n--- run\nculprit x a.txt\n--- stdout\nhello\n--- stderr-contains\nsaid: x\n--- exit 0\n")

    def test_wrong_output_shows_the_difference(self):
        self.fails("--- FILE a.txt\nhello\n--- run\nculprit a.txt\n--- stdout\nhallo\n--- exit 0\n", "-hallo\n+hello")

    def test_wrong_status(self):
        self.fails("--- run\nexit 3\n--- exit 0\n", "exit status 3, not 0")

    def test_missing_and_unwanted_text(self):
        self.fails("--- run\necho one\n--- stdout-contains\ntwo\n--- exit 0\n", "'two' is missing")
        self.fails("--- run\necho one\n--- stdout-lacks\none\n--- exit 0\n", "'one' is there")

    def test_values_of_the_document(self):
        document = '--- FILE a.json\n{"a": {"b": [1, 2.5]}, "rows": [{"id": "x", "n": 7}]}\n--- run\nculprit a.json\n'
        self.passes(document + '--- json a.b[1] = 2.5\n--- json rows[id=x].n >= 7\n--- json a.b.length = 2\n'
                               '--- json rows[0].id ~ "^x$"\n--- exit 0\n')
        self.fails(document + "--- json a.b[0] = 2\n--- exit 0\n", "it is 1")
        self.fails(document + "--- json rows[id=y].n = 7\n--- exit 0\n", "no such value")
        self.fails("--- run\necho no\n--- json a = 1\n--- exit 0\n", "no document on stdout")

    def test_a_case_that_checks_nothing_known_is_wrong(self):
        self.fails("--- run\ntrue\n--- stdotu\n--- exit 0\n", "unknown section")
        self.fails("--- run\ntrue\n", "one `--- exit N`")

    def test_no_case_is_a_failure(self):
        self.assertEqual(self.run_case(None)[0], 1)

    def test_update_writes_what_came_out(self):
        status, _, case = self.run_case("--- run\necho new; exit 4\n--- stdout\nold\n--- exit 0\n", "--update")
        self.assertEqual(status, 0)
        self.assertEqual(case.read_text(), "--- run\necho new; exit 4\n--- stdout\nnew\n--- exit 4\n")


if __name__ == "__main__":
    unittest.main()
