#!/usr/bin/env python3
"""Writes docs/json.md, the reference of the --json documents, from their schemas; --check says whether it is up to date.

Usage: json_reference.py [--check]
"""
import json
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
DOCUMENTS = [("answer.schema.json", "The answer about a trace: `culprit TRACE --json`"),
             ("compare.schema.json", "A comparison: `culprit compare BEFORE AFTER --json`"),
             ("floor.schema.json", "A floor: `culprit floor --json`")]
NAME_LISTS = ("owner", "late_cause")  # long lists that stand in many places
HEAD = """# The JSON documents

<!-- Made by tools/json_reference.py from docs/schema; edit the schemas. -->

`--json` writes one UTF-8 document, also with exit 2: then `quality.usable` is false and what could not be found out is null or empty, never absent.
Times are integer nanoseconds in members that end in `_ns` or hold `ns_`; otherwise the unit is in the name. A value that is not known is `null`, never 0.
Shares are of the mean step's wall time. Members may be added within a `schema_version`; none is renamed. The document holds no command line, thread
count, time of day or host: the same input gives the same bytes.

Below, `[]` is each element of an array and `?` a member that may be absent. The schemas themselves are in [schema/](schema/).
"""


def type_of(node, name=""):
    if "const" in node:
        return f"`{json.dumps(node['const'])}`"
    if "enum" in node and name in NAME_LISTS:
        return f"a name of [{name}](#names)" + (" or `null`" if None in node["enum"] else "")
    if "enum" in node:
        return ", ".join(f"`{json.dumps(value)}`" for value in node["enum"])
    kinds = node.get("type", [])
    text = " or ".join([kinds] if isinstance(kinds, str) else kinds)
    for key in ("oneOf", "anyOf"):
        if key in node:
            text = " or ".join(type_of(inner) for inner in node[key])
    if "pattern" in node:
        text += f" like `{node['pattern']}`"
    return text or "any"


def resolved(node, schema, seen):
    """(node without references, the name of the definition it is, or "")"""
    name = ""
    while "$ref" in node:
        path = node["$ref"].removeprefix("#/").split("/")
        name, target = path[-1], schema
        for part in path:
            target = target[part]
        node = {**target, **{key: value for key, value in node.items() if key != "$ref"}}
        if name in seen:
            return {"type": node.get("type", "object")}, name
    return node, name


def rows(node, schema, path, seen, required=True):
    """(path, type, meaning) of a node and everything in it."""
    node, name = resolved(node, schema, seen)
    seen = seen | {name} if name else seen
    kind = node.get("type", "")
    meaning = node.get("description", "").replace("|", "\\|")
    items = node.get("items", {})
    holds = "properties" in node or "$ref" in items or "properties" in items
    shape = kind in ("object", "array") and holds and not meaning  # what follows shows it
    if path and not shape:
        yield f"`{path}`{'' if required else ' ?'}", type_of(node, name).replace("|", "\\|"), meaning
    branches = [node, *node.get("oneOf", []), *node.get("anyOf", [])]
    for branch in branches:
        branch, _ = resolved(branch, schema, seen)
        for member, inner in branch.get("properties", {}).items():
            yield from rows(inner, schema, f"{path}.{member}" if path else member, seen, member in branch.get("required", []))
        if isinstance(branch.get("additionalProperties"), dict):
            yield from rows(branch["additionalProperties"], schema, f"{path}.*", seen)
        if isinstance(branch.get("items"), dict) and ("array" in kind or branch is not node):
            items, _ = resolved(branch["items"], schema, seen)
            inner = list(rows(branch["items"], schema, f"{path}[]", seen))
            yield from inner if len(inner) > 1 or "enum" in items else []


def reference():
    text = HEAD
    for file, title in DOCUMENTS:
        schema = json.loads((ROOT / "docs/schema" / file).read_text())
        text += f"\n## {title}\n\n{schema.get('description', '')}\n\n| member | type | meaning |\n|---|---|---|\n".replace("\n\n\n", "\n")
        for path, kind, meaning in rows(schema, schema, "", frozenset()):
            text += f"| {path} | {kind} | {meaning} |\n"
    answer = json.loads((ROOT / "docs/schema/answer.schema.json").read_text())
    text += "\n## Names\n\n"
    for name in NAME_LISTS:
        text += f"- *{name}*: {type_of(answer['$defs'][name])}\n"
    return text


def main():
    out = ROOT / "docs/json.md"
    text = reference()
    if "--check" not in sys.argv[1:]:
        out.write_text(text)
        return 0
    if out.read_text() == text:
        print(f"docs/json.md: up to date, {text.count(chr(10))} lines")
        return 0
    print("docs/json.md is not what the schemas say: run tools/json_reference.py")
    return 1


if __name__ == "__main__":
    sys.exit(main())
