#!/usr/bin/env python3
"""Writes the tables of docs/trace-support.md from expected.json, or tells whether they are up to date.

    table.py DOCUMENT          rewrites what stands between the marks
    table.py --check DOCUMENT  exit 1 where the document differs
"""
import json
import pathlib
import sys

OPEN, CLOSE = "<!-- tables: made by tests/traces/table.py -->\n", "<!-- end of tables -->\n"
TITLES = {"serving": "Serving engines", "transformers": "Transformers outside an engine", "other": "Other PyTorch traces",
          "odd": "Odd files", "nsys": "Nsight Systems SQLite"}


NAME_WIDTH = 90


def milliseconds(ns):
    return f"{ns // 1_000_000:,}.{ns // 1_000 % 1_000:03d}"


def percent(part, whole):
    permille = (1000 * part + whole // 2) // whole
    return f"{permille // 10}.{permille % 10} %"


def words(value):
    return " or ".join(map(str, value)) if isinstance(value, list) else str(value)


def what(entry):
    if entry["exit"]:
        return "refused"
    parts = [words(entry["kind"]), words(entry["how"])]
    if lengths := entry.get("step_ns"):
        shortest, longest = milliseconds(min(lengths)), milliseconds(max(lengths))
        times = f"{len(lengths)} × " if len(lengths) > 1 else ""
        parts.append(f"{times}{shortest if shortest == longest else f'{shortest} to {longest}'} ms")
    if "batch" in entry:
        parts.append(f"batch {entry['batch']}")
    if "layers" in entry:
        parts.append(f"{entry['layers']} layers")
    return ", ".join(parts)


def figures(entry):
    """(kernels, span, busy) as text; of each device where there are several."""
    devices = entry.get("devices", [entry] if "span_ns" in entry else [])
    return tuple(" / ".join(column) or "—" for column in (
        [f"{device['kernels']:,}" for device in devices],
        [milliseconds(device["span_ns"]) for device in devices],
        [percent(device["busy_ns"], device["span_ns"]) for device in devices]))


def row(entry):
    counts = entry.get("note_counts", {})
    notes = " ".join(f"`{code}`" + (f" {counts[code]:,}" if code in counts else "") for code in entry["notes_required"])
    cells = (pathlib.PurePath(entry["path"]).name, str(entry["exit"]), what(entry), *figures(entry), notes, entry["why"])
    return "| " + " | ".join(cells) + " |\n"


def tables(entries):
    text = ""
    for folder, title in TITLES.items():
        text += f"\n### {title}: `{folder}/`\n\n"
        text += "| file | exit | kind, steps | kernels | device span, ms | busy | notes | why |\n|---|---|---|---|---|---|---|---|\n"
        text += "".join(row(entry) for entry in entries if entry["path"].startswith(folder + "/"))
    text += "\nThe largest kernels of each export, by `tests/traces/nsight.py` (plain SQL; busiest device, whole file):\n\n"
    text += "| file | kernel | grid | calls | ns |\n|---|---|---|---|---|\n"
    text += "".join(kernel_row(entry, kernel) for entry in entries for kernel in entry.get("top_kernels", []))
    return text + "\n"


def kernel_row(entry, kernel):
    name = kernel["name"] if len(kernel["name"]) <= NAME_WIDTH else kernel["name"][:NAME_WIDTH - 1] + "…"
    cells = (pathlib.PurePath(entry["path"]).name, f"`{name}`", " × ".join(map(str, kernel["grid"])), f"{kernel['calls']:,}", f"{kernel['ns']:,}")
    return "| " + " | ".join(cells) + " |\n"


def main():
    arguments = sys.argv[1:]
    checking = "--check" in arguments
    document = pathlib.Path(arguments[-1])
    entries = json.loads(pathlib.Path(__file__).with_name("expected.json").read_text(encoding="utf-8"))["files"]
    old = document.read_text(encoding="utf-8")
    before, rest = old.split(OPEN)
    new = before + OPEN + tables(entries) + CLOSE + rest.split(CLOSE)[1]
    if checking:
        print("the tables are up to date" if new == old else f"{document}: run tests/traces/table.py {document}")
        return int(new != old)
    document.write_text(new, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
