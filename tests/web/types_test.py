#!/usr/bin/env python3
"""The page's sources have no type errors (tsc --strict), stay below 600 lines and never make markup from text."""
import pathlib
import re
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
WEB = HERE.parent.parent / "web"
MAX_LINES = 600
FORBIDDEN = re.compile(r"\b(innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval|new Function|fetch|XMLHttpRequest|WebSocket|import)\s*\(|"
                       r"\.(inner|outer)HTML\b|https?://")


def main():
    sources = sorted(WEB.rglob("src/**/*.ts"))
    assert len(sources) > 10, "the page's sources are not where they were"
    faults = []
    for path in sources:
        lines = path.read_text().splitlines()
        if len(lines) > MAX_LINES:
            faults.append(f"{path.relative_to(WEB)}: {len(lines)} lines")
        faults += [f"{path.relative_to(WEB)}:{n}: {line.strip()}" for n, line in enumerate(lines, 1) if FORBIDDEN.search(line)]
    for fault in faults:
        print(f"not in the page: {fault}")
    if faults:
        return 1
    compiler = HERE / "node_modules/typescript/bin/tsc"
    if not shutil.which("node") or not compiler.exists() or not (WEB / "node_modules/uplot").exists():
        print("skipped: needs node and the packages of web and tests/web (npm ci)")
        return 77
    return subprocess.run(["node", compiler, "-p", WEB / "tsconfig.json"], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
