#!/usr/bin/env python3
"""Fails when a file includes upward, is too long, or holds a function that is; and when the library prints or exits.

Usage: check_layers.py [root]
"""
import pathlib
import re
import sys

# Layer: the layers it may include besides itself. The table of ARCHITECTURE.md.
MAY_INCLUDE = {
    "base": "",
    "store": "base",
    "ingest": "store base",
    "known": "base",
    "run": "known store base",
    "evidence": "run known store base",
    "verdict": "evidence run known store base",
    "compare": "verdict evidence run known store base",
    "report": "compare verdict evidence run store known base",
    "query": "report compare verdict evidence run known store base",
    "slice": "verdict evidence run known ingest store base",
    "fleet": "verdict evidence run known store base",
    "cli": "ranks fleet report query slice compare verdict evidence run known ingest store base",
    "ranks": "base",
    "forge": "base",
    "lab/number": "base",
    "lab/model": "lab/number base",
    "lab/files": "lab/model lab/number base",
    "lab/kernels": "lab/number base",
    "lab/oracle": "lab/model lab/number base",
    "lab/engine": "ranks lab/kernels lab/model lab/number profile base",
    "lab/tool": "lab/engine lab/oracle lab/files lab/kernels lab/model lab/number ranks profile base",
    "profile": "",
    "app": "cli forge lab/tool",
}
INSTALLED_AS = {"culprit": "profile"}  # the folder in an #include: the layer
MAX_FILE_LINES = 600
MAX_FUNCTION_LINES = 60
INCLUDE = re.compile(r'^\s*#\s*include\s+"(lab/[a-z_]+|[a-z_]+)/[^"]+"')
PRINTS = re.compile(r"\b(std::cout|std::cerr|std::exit|abort\(|exit\(|printf\(|fputs\(|puts\()")
MAY_PRINT = {"cli", "app", "forge", "lab/tool"}  # and base/term, which is the terminal
# A function's first line: starts in column 0 or one level in, opens a brace, and is no namespace, class or initialiser.
FUNCTION = re.compile(r"^( {0,2})(?!namespace|class|struct|enum|union|extern|constexpr [^(]*=|const [^(]*=|static [^(]*=)"
                      r"[A-Za-z_~].*\)[^;{}=]*\{$")


def layer_of(relative):
    if relative.parts[0] == "lab":
        return "/".join(relative.parts[:2])
    return relative.parts[1] if relative.parts[0] == "src" else relative.parts[0]


def long_functions(lines):
    """(first line, length) of each function over the limit; by clang-format's indentation."""
    for number, line in enumerate(lines, 1):
        match = FUNCTION.match(line)
        if not match or "](" in line:  # a lambda in a call closes with its call
            continue
        closing = match[1] + "}"
        for end in range(number, len(lines)):
            if lines[end].rstrip().rstrip(";") == closing:
                if end + 1 - number + 1 > MAX_FUNCTION_LINES:
                    yield number, end + 1 - number + 1
                break


def check(root):
    files = sorted(p for d in ("src", "ranks", "forge", "lab", "profile", "app") for p in (root / d).rglob("*") if p.suffix in {".h", ".cc"})
    problems = []
    for path in files:
        relative = path.relative_to(root)
        layer = layer_of(relative)
        allowed = {layer, *MAY_INCLUDE[layer].split()}
        lines = path.read_text().splitlines()
        if len(lines) > MAX_FILE_LINES:
            problems.append(f"{relative}:{MAX_FILE_LINES + 1}: {len(lines)} lines; split it (limit {MAX_FILE_LINES})")
        for first, length in long_functions(lines):
            problems.append(f"{relative}:{first}: a function of {length} lines; split it (limit {MAX_FUNCTION_LINES})")
        for number, line in enumerate(lines, 1):
            match = INCLUDE.match(line)
            included = match and INSTALLED_AS.get(match[1], match[1])
            if included in MAY_INCLUDE and included not in allowed:
                problems.append(f"{relative}:{number}: {layer}/ may not include {included}/; "
                                f"allowed: {' '.join(sorted(allowed))}")
            if layer not in MAY_PRINT and path.stem != "term" and PRINTS.search(line.split("//")[0]):
                problems.append(f"{relative}:{number}: the library never prints or exits: {line.strip()}")
    return files, problems


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent.parent)
    files, problems = check(root)
    print("\n".join(problems) or f"layers: {len(files)} files; none includes upward, prints or is too long")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
