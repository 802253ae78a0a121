#!/usr/bin/env python3
"""Holds answers of culprit --json against the schema, and against what a schema cannot say: sums, order, references.

Usage: validate_json.py SCHEMA ANSWER...      "-" is standard input; exit 1 if any answer is wrong.
"""
import json
import pathlib
import sys

import jsonschema


def place(error):
    return "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in error.absolute_path) or "."


def schema_problems(schema, answer):
    errors = jsonschema.Draft202012Validator(schema).iter_errors(answer)
    return [f"{place(error)}: {error.message[:300]}" for error in sorted(errors, key=lambda e: list(map(str, e.absolute_path)))]


def step_problems(steps):
    if steps["used"] is not None and steps["used"] > steps["count"]:
        yield f".steps: {steps['used']} used of {steps['count']}"
    for name in ("excluded", "outliers"):
        for entry in steps[name]:
            if entry["index"] >= (steps["count"] or 0):
                yield f".steps.{name}: index {entry['index']} of {steps['count']} steps"


def budget_problems(answer):
    total = sum(row["ns_per_step"] for row in answer["budget"])
    mean = answer["steps"]["mean_ns"]
    if answer["budget"] and total != mean:
        yield f".budget: adds up to {total} ns, the mean step is {mean} ns"
    owners = [row["owner"] for row in answer["budget"]]
    if len(owners) != len(set(owners)):
        yield ".budget: an owner has two rows"


def suspect_problems(answer):
    facts = {fact["id"] for fact in answer["facts"]}
    names = {kernel["name"] for kernel in answer["kernels"]}
    for index, suspect in enumerate(answer["suspects"]):
        here = f".suspects[{index}]"
        if suspect["rank"] != index + 1:
            yield f"{here}: rank {suspect['rank']}"
        if suspect["exposed_ns_per_step"] > suspect["ns_per_step"]:
            yield f"{here}: exposed for longer than it was at work"
        for missing in [f for f in suspect["facts"] if f not in facts]:
            yield f"{here}: cites {missing}, which is no fact"
        for missing in [k for k in suspect["kernels"] if k not in names]:
            yield f"{here}: names a kernel that is not listed: {missing[:80]}"
        after = (suspect["gain"] or {}).get("step_ns_after")
        if after and not after["low"] <= after["expected"] <= after["high"]:
            yield f"{here}: gain is not low <= expected <= high"
    for index, ruled in enumerate(answer["ruled_out"]):
        for missing in [f for f in ruled["facts"] if f not in facts]:
            yield f".ruled_out[{index}]: cites {missing}, which is no fact"


def floor_problems(floor, mean):
    step = floor["step_ns"] or 0
    for name, total, wanted in (("by", sum(part["ns"] for part in floor["by"]), step),
                                ("distance", sum(row["floor_ns"] for row in floor["distance"]), step),
                                ("distance", sum(row["measured_ns"] for row in floor["distance"]), mean)):
        if floor[name] and total != wanted:
            yield f".floor.{name}: adds up to {total} ns, not {wanted}"
    owners = [owner for row in floor["distance"] for owner in row["owners"]]
    if len(owners) != len(set(owners)):
        yield ".floor.distance: an owner has two rows"


def floor_document_problems(schema, document):
    """A document of `culprit floor`: its own schema lies beside that of answers, its member floor is theirs."""
    own = json.loads((pathlib.Path(__file__).resolve().parent.parent / "docs/schema/floor.schema.json").read_text())
    member = {**schema["properties"]["floor"], "$defs": schema["$defs"]}
    found = schema_problems(own, document) or [f".floor{p}" for p in schema_problems(member, document["floor"])]
    return found or list(floor_problems(document["floor"], document["measured_step_ns"]))


def comparison_problems(document):
    """What the schema of `culprit compare` cannot say."""
    known = document["quality"]["usable"]
    for side in ("before", "after"):
        mean, total = document[side]["steps"]["mean_ns"], sum(row[f"{side}_ns"] for row in document["budget"])
        if known and total != mean:
            yield f".budget: {side} adds up to {total} ns, the mean step is {mean} ns"
        yield from (f".{side}{p}" for p in step_problems(document[side]["steps"]))
    if known and sum(row["delta_ns"] for row in document["budget"]) != document["delta_ns_per_step"]:
        yield ".budget: the differences do not add up to delta_ns_per_step"
    facts = {fact["id"] for fact in document["facts"]}
    for index, kernel in enumerate(document["kernels"]):
        delta = sum(sign * (kernel[side]["ns_per_step"] if kernel[side] else 0) for side, sign in (("before", -1), ("after", 1)))
        if kernel["delta_ns"] != delta or not (kernel["before"] or kernel["after"]):
            yield f".kernels[{index}]: delta_ns {kernel['delta_ns']}, the sides differ by {delta}"
    for index, suspect in enumerate(document["suspects"]):
        if suspect["rank"] != index + 1 or abs(suspect["exposed_ns_per_step"]) > abs(suspect["ns_per_step"]):
            yield f".suspects[{index}]: rank {suspect['rank']}, {suspect['exposed_ns_per_step']} of {suspect['ns_per_step']} ns exposed"
    for index, finding in enumerate([*document["suspects"], *document["ruled_out"]]):
        for missing in [f for f in finding["facts"] if f not in facts]:
            yield f"finding {index}: cites {missing}, which is no fact"
    if document["ranks"] and sum(rank["headline"] for rank in document["ranks"]) != 1:
        yield ".ranks: not one headline"


def comparison_document_problems(document):
    own = json.loads((pathlib.Path(__file__).resolve().parent.parent / "docs/schema/compare.schema.json").read_text())
    return schema_problems(own, document) or list(comparison_problems(document))


def rows_document_problems(schema, document):
    """A document of `culprit sql`; its notes are those of answers."""
    own = json.loads((pathlib.Path(__file__).resolve().parent.parent / "docs/schema/sql.schema.json").read_text())
    found = schema_problems(own, document)
    if found:
        return found
    member = {**schema["$defs"]["note"], "$defs": schema["$defs"]}
    found = [f".quality.notes[{i}]{p}" for i, note in enumerate(document["quality"]["notes"]) for p in schema_problems(member, note)]
    width = len(document["columns"])
    return found + [f".rows[{i}]: {len(row)} values for {width} columns" for i, row in enumerate(document["rows"]) if len(row) != width]


def fleet_document_problems(schema, document):
    """A document of `culprit fleet`: an answer with the members kind and fleet, which have a schema of their own."""
    own = json.loads((pathlib.Path(__file__).resolve().parent.parent / "docs/schema/fleet.schema.json").read_text())
    found = schema_problems(own, document)
    if found:
        return found
    fleet, answer = document["fleet"], {name: value for name, value in document.items() if name not in ("kind", "fleet")}
    if fleet["collectives_related"] > fleet["collectives"]:
        found.append(f".fleet: {fleet['collectives_related']} of {fleet['collectives']} collectives related")
    used = len(document["inputs"])
    if document["quality"]["usable"] and used + len(fleet["skipped"]) + fleet["captures"] != fleet["traces"]:
        found.append(f".fleet: {used} used, {len(fleet['skipped'])} skipped and {fleet['captures']} captures of {fleet['traces']} traces")
    return found + problems(schema, answer)


def problems(schema, answer):
    """Every fault of one answer, as text; empty when it is right. `schema` is that of answers, whatever the document."""
    if answer.get("kind") == "floor":
        return floor_document_problems(schema, answer)
    if answer.get("kind") == "compare":
        return comparison_document_problems(answer)
    if answer.get("kind") == "sql":
        return rows_document_problems(schema, answer)
    if answer.get("kind") == "fleet":
        return fleet_document_problems(schema, answer)
    found = schema_problems(schema, answer)
    if found:  # what follows needs the shape
        return found
    return [*step_problems(answer["steps"]), *budget_problems(answer), *suspect_problems(answer),
            *floor_problems(answer["floor"], answer["steps"]["mean_ns"])]


def main(schema_path, *paths):
    schema = json.loads(pathlib.Path(schema_path).read_text())
    wrong = 0
    for path in paths:
        text = sys.stdin.read() if path == "-" else pathlib.Path(path).read_text()
        found = problems(schema, json.loads(text))
        wrong += bool(found)
        for problem in found:
            print(f"{path}: {problem}")
    return 1 if wrong or not paths else 0


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
