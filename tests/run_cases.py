#!/usr/bin/env python3
"""Runs text cases against the real program: one file holds inputs, the command, and what must come out.

Usage: run_cases.py CULPRIT [--schema FILE] [--program FILE]... [--update] [-j N] PATH...
PATH is a .case file or a folder of them

A case is sections that begin with "--- "; lines before the first are its comment.
  --- FILE name                a file in the case's own folder, written before the run
  --- run                      shell lines; `culprit` is the program under test, each --program is found by its name
  --- stdout                   what stdout must be, exactly (--update rewrites it)
  --- stdout-contains          each line must be found in stdout; likewise stdout-lacks,
  --- stderr-contains          stderr-contains, stderr-lacks
  --- json PATH OP VALUE       a value of the JSON document on stdout: OP is = != < <= > >= or ~ (a regular expression);
                               PATH is like steps.mean_ns, suspects[0].id, budget[owner=cast].share, notes.length;
                               a value in brackets may hold spaces
  --- exit N                   the exit status; every case has it
Every document on stdout is held against the schema as well. The environment is bare: LC_ALL=C, no terminal; Python finds
tests/lib (kineto.py and nsight.py build traces).
"""
import argparse
import concurrent.futures
import difflib
import json
import operator
import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tools"))
import validate_json  # noqa: E402

TIMEOUT_S = 60
TEXT_CHECKS = {"stdout-contains", "stdout-lacks", "stderr-contains", "stderr-lacks"}
COMPARE = {"=": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
           "~": lambda got, want: re.search(want, got) is not None}
JSON_CHECK = re.compile(r"json ((?:[^\s\[]|\[[^\]]*\])+) (=|!=|<=|>=|<|>|~) (.+)")


class BadCase(Exception):
    """The case file itself is wrong."""


def sections(text):
    """[(title, body)] of a case; the body keeps its line breaks."""
    found = []
    for line in text.splitlines(keepends=True):
        if line.startswith("--- "):
            found.append((line[4:].strip(), []))
        elif found:
            found[-1][1].append(line)
        elif line.strip() and not line.startswith("#"):
            raise BadCase(f"text before the first section: {line.strip()}")
    return [(title, "".join(body)) for title, body in found]


def select(document, path):
    """The value at `path`; KeyError where there is none."""
    value = document
    for name, key, wanted, index in re.findall(r"([A-Za-z_0-9-]+)|\[([a-z_]+)=([^\]]+)\]|\[(\d+)\]", path):
        if name == "length" and isinstance(value, list):
            value = len(value)
        elif name:
            value = value[name]
        elif key:
            value = next((item for item in value if str(item[key]) == wanted), None)
            if value is None:
                raise KeyError(f"no {key}={wanted}")
        else:
            value = value[int(index)]
    return value


class Case:
    def __init__(self, path):
        self.path = path
        self.parts = sections(path.read_text())
        titles = [title for title, _ in self.parts]
        for title in titles:
            known = title in TEXT_CHECKS | {"run", "stdout"} or JSON_CHECK.fullmatch(title)
            if not known and not re.fullmatch(r"(FILE \S+|exit \d+)", title):
                raise BadCase(f"unknown section: --- {title}")
        if titles.count("run") != 1 or sum(t.startswith("exit ") for t in titles) != 1:
            raise BadCase("a case has one `--- run` and one `--- exit N`")

    def body(self, title):
        return next(body for t, body in self.parts if t == title)

    def execute(self, culprit, programs=()):
        with tempfile.TemporaryDirectory(prefix="culprit-case-") as folder:
            here = pathlib.Path(folder) / "here"
            tools = pathlib.Path(folder) / "bin"
            here.mkdir()
            tools.mkdir()
            (tools / "culprit").symlink_to(culprit)
            for program in programs:
                (tools / program.name).symlink_to(program)
            for title, body in self.parts:
                if title.startswith("FILE "):
                    file = here / title[5:]
                    file.parent.mkdir(parents=True, exist_ok=True)
                    file.write_text(body)
            environment = {"PATH": f"{tools}:/usr/bin:/bin", "HOME": str(here), "LC_ALL": "C", "TERM": "dumb",
                           "PYTHONPATH": str(pathlib.Path(__file__).resolve().parent / "lib"), "PYTHONDONTWRITEBYTECODE": "1"}
            return subprocess.run(["bash", "-c", self.body("run")], cwd=here, env=environment, stdin=subprocess.DEVNULL,
                                  capture_output=True, timeout=TIMEOUT_S, check=False)

    def check(self, done, schema):
        """Problems, as text."""
        out, err = done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace")
        document = None
        if out.startswith("{"):
            try:
                document = json.loads(out)
            except json.JSONDecodeError as error:
                yield f"stdout looks like JSON and is not: {error}"
        if document is not None and schema and "schema_version" in document:
            yield from (f"schema: {problem}" for problem in validate_json.problems(schema, document))
        for title, body in self.parts:
            if title.startswith("exit ") and done.returncode != int(title[5:]):
                yield f"exit status {done.returncode}, not {title[5:]}"
            elif title == "stdout" and out != body:
                yield "stdout differs:\n" + "".join(difflib.unified_diff(body.splitlines(True), out.splitlines(True), "expected", "got"))
            elif title in TEXT_CHECKS:
                yield from self.text_problems(title, body, out if title.startswith("stdout") else err)
            elif title.startswith("json "):
                yield from self.json_problems(title, document)

    @staticmethod
    def text_problems(title, body, text):
        wanted = "contains" in title
        for line in filter(None, body.splitlines()):
            if (line in text) != wanted:
                yield f"{title}: {line!r} is {'missing' if wanted else 'there'}"

    @staticmethod
    def json_problems(title, document):
        path, op, value = JSON_CHECK.fullmatch(title).groups()
        if document is None:
            yield f"{title}: no document on stdout"
            return
        try:
            got = select(document, path)
            if not COMPARE[op](got, json.loads(value)):
                yield f"{title}: it is {json.dumps(got)}"
        except (KeyError, IndexError, TypeError) as error:
            yield f"{title}: no such value ({error})"

    def update(self, done):
        """Rewrites the exact output and the exit status to what the run gave."""
        text, out = self.path.read_text(), done.stdout.decode()
        for title, body in self.parts:
            if title == "stdout":
                text = text.replace(f"--- stdout\n{body}", f"--- stdout\n{out}")
            elif title.startswith("exit "):
                text = text.replace(f"--- {title}", f"--- exit {done.returncode}")
        self.path.write_text(text)


def run(path, options, schema):
    """(path, problems, output) of one case."""
    try:
        case = Case(path)
        done = case.execute(options.culprit, options.program)
        if options.update:
            case.update(done)
            return path, [], ""
        output = f"  stdout:\n{done.stdout.decode('utf-8', 'replace')[:2000]}\n  stderr:\n{done.stderr.decode('utf-8', 'replace')[:2000]}"
        return path, list(case.check(done, schema)), output
    except BadCase as error:
        return path, [str(error)], ""
    except subprocess.TimeoutExpired:
        return path, [f"took longer than {TIMEOUT_S} s"], ""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("culprit", type=lambda p: str(pathlib.Path(p).resolve()))
    parser.add_argument("--schema", type=pathlib.Path)
    parser.add_argument("--program", type=lambda p: pathlib.Path(p).resolve(), action="append", default=[])
    parser.add_argument("--update", action="store_true")
    parser.add_argument("-j", type=int, default=os.cpu_count())
    parser.add_argument("paths", nargs="+", type=pathlib.Path)
    options = parser.parse_args()
    schema = json.loads(options.schema.read_text()) if options.schema else None
    cases = sorted(c for p in options.paths for c in (p.rglob("*.case") if p.is_dir() else [p]))
    if not cases:
        print("no case found: a run without cases proves nothing")
        return 1
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(options.j) as pool:
        for path, problems, output in pool.map(lambda c: run(c, options, schema), cases):
            failed += bool(problems)
            if problems:
                print(f"FAILED {path}\n  " + "\n  ".join(problems) + f"\n{output}\n")
    print(f"{len(cases) - failed} of {len(cases)} cases passed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
