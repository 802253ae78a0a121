#!/usr/bin/env python3
"""Holds the note codes of the sources against `culprit list notes` and the schema: each code that can be emitted is documented,
and each documented one can be emitted, unless it is reserved for what is not measured yet."""
import json
import os
import pathlib
import re
import subprocess
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
RESERVED = set()  # in the contract, and not emitted yet

CODE = r'"([a-z]+(?:-[a-z]+)*)"'
EMITTED = [
    rf"add_note\(\s*\w+,\s*{CODE}",                      # of a run
    rf"note_excluded\(\s*\w+,\s*{CODE}",
    rf"notes\w*\.add\(\s*\{{\s*{CODE}",                      # of a reader
    rf"\{{{CODE},\s*(?:store::)?Severity::",               # tables of wordings
    rf"SourceFault(?:| \w+)\(?.*\{{\s*{CODE}",                # compressed data
    rf"note_code = {CODE}",                                # errors by name
    rf"return unusable\((?:.|\n){{1,500}}?{CODE}\);",     # errors in order of their members
    rf"Error\{{Error::Code::kUnusable,(?:.|\n){{1,500}}?{CODE}\}};",
    rf"code = [^;\n]*\? {CODE} : {CODE};",                 # what stands for an error without a code
]


def emitted():
    codes = set()
    for path in sorted((ROOT / "src").rglob("*.cc")):
        text = path.read_text()
        for pattern in EMITTED:
            for found in re.findall(pattern, text):
                codes |= {found} if isinstance(found, str) else set(found)
    return codes


def documented():
    text = subprocess.run([os.environ["CULPRIT"], "list", "notes"], capture_output=True, text=True, check=True).stdout
    return set(re.findall(r"^ {2}([a-z]+(?:-[a-z]+)*) {2,}[A-Z]", text, re.MULTILINE))


class Notes(unittest.TestCase):
    def test_every_code_that_can_be_emitted_is_documented(self):
        self.assertGreater(len(emitted()), 25, "the patterns find too few codes to prove anything")
        self.assertEqual(emitted() - documented(), set())

    def test_every_documented_code_can_be_emitted_or_is_reserved(self):
        self.assertEqual(documented() - emitted() - RESERVED, set())

    def test_reserved_codes_are_not_emitted_yet(self):
        self.assertEqual(RESERVED & emitted(), set())

    def test_the_schema_names_the_same_codes(self):
        schema = json.loads(pathlib.Path(os.environ["CULPRIT_SCHEMA"]).read_text())
        self.assertEqual(set(schema["$defs"]["note"]["properties"]["code"]["enum"]), documented())


if __name__ == "__main__":
    unittest.main()
