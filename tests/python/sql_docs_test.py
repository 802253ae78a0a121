#!/usr/bin/env python3
"""docs/sql.md holds the schema that culprit has, and its examples run. `--update` writes the schema into it."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
CULPRIT = os.environ.get("CULPRIT", str(ROOT / "build/dev/culprit"))
PAGE = ROOT / "docs/sql.md"
BEGIN, END = "<!-- schema: tests/python/sql_docs_test.py --update -->\n", "<!-- end of schema -->\n"
TABLE = re.compile(r"^-- ([^\n]*)\nCREATE TABLE (\w+)\(\n(.*?)^\);$", re.M | re.S)
COLUMN = re.compile(r"^  (\w+) (INTEGER|REAL|TEXT),?(?:\s+-- (.*))?$", re.M)
EXAMPLE = re.compile(r"^```sql\n(.*?)^```$", re.M | re.S)


def culprit(*words):
    return subprocess.run([CULPRIT, *map(str, words)], capture_output=True, text=True, timeout=120, check=False)


def schema():
    text = ""
    for about, name, columns in TABLE.findall(culprit("sql", ".schema").stdout):
        text += f"### {name}\n\n{about}\n\n| column | type | |\n|---|---|---|\n"
        text += "".join(f"| `{column}` | {kind} | {meaning} |\n" for column, kind, meaning in COLUMN.findall(columns)) + "\n"
    return text


class Docs(unittest.TestCase):
    def test_the_schema_is_that_of_the_program(self):
        page = PAGE.read_text()
        self.assertGreater(schema().count("###"), 10)
        self.assertEqual(page[page.index(BEGIN) + len(BEGIN):page.index(END)], schema(), "sql_docs_test.py --update writes it")

    def test_every_example_runs(self):
        examples = EXAMPLE.findall(PAGE.read_text())
        self.assertGreater(len(examples), 5)
        with tempfile.TemporaryDirectory() as folder:
            trace = pathlib.Path(folder) / "run.json"
            subprocess.run([CULPRIT, "forge", "glm5", "--steps", "3", "-o", trace], check=True, capture_output=True)
            for example in examples:
                with self.subTest(example=example):
                    done = culprit("sql", trace, example, "--csv", "--quiet")
                    self.assertEqual(done.returncode, 0, done.stderr)
                    self.assertGreater(len(done.stdout.splitlines()), 1, "no rows")


if __name__ == "__main__":
    if "--update" in sys.argv[1:]:
        text = PAGE.read_text()
        PAGE.write_text(text[:text.index(BEGIN) + len(BEGIN)] + schema() + text[text.index(END):])
    else:
        unittest.main()
