#!/usr/bin/env python3
"""The lineup: every planted fault in every recording of it, beside its healthy twin. Does the tool name the right one?

Each cell is one suspect in one variant (shapes or not, stacks or not, eager or graph, model given or not), planted in a deployment that is
drawn for this run. Its verdict is held against the table in evidence.py, which was written from the rules.

Usage: lineup.py CULPRIT [--seed N] [--draws N] [--only ID[,ID]] [--reduced] [--doc FILE] [--quiet] [--keep DIR]
Exit 1 if any cell is wrong.
"""
import argparse
import collections
import concurrent.futures
import datetime
import json
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import time

import evidence

Cell = collections.namedtuple("Cell", "id variant outcome said accused draw")
RIGHT, ALLOWED, SILENT, UNSURE, TOO_SURE, WRONG, NO_JUDGE = (
    "right", "allowed", "silent", "unsure", "too sure", "wrong", "no judge")
BAD = {SILENT, UNSURE, TOO_SURE, WRONG}
FIRM = {"certain", "likely"}
OUTCOMES = [(RIGHT, "named right"), (ALLOWED, "evidence missing: possible or silent"), (WRONG, "named another"),
            (SILENT, "silent"), (UNSURE, "named, less sure than the rule"), (TOO_SURE, "surer than the rule"),
            (NO_JUDGE, "no judge yet")]


def run(command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"exit {done.returncode}: {' '.join(map(str, command))}\n{done.stderr}")
    return done.stdout


def rules_of(culprit):
    """Suspect: what it needs, as `culprit list suspects` says."""
    rules, name = {}, None
    text = re.sub(r"\n {20}", " ", run([culprit, "list", "suspects"]))
    for line in text.splitlines():
        match = re.match(r"  ([a-z-]+) +.*? needs: (.*?) disproved by: ", line)
        if match:
            rules[match[1]] = match[2]
    return rules


# Without a change, retiming gives the recorded step again to 1 %, and leaves at most 2 % of it unexplained.
LARGEST_ERROR, LARGEST_RESIDUAL = 0.01, 0.02


def judge_fault(row, variant, suspects, has_judge):
    top = suspects[0] if suspects else None
    said = f"{top['id']}, {top['confidence']}" if top else "nobody"
    if not has_judge:
        return NO_JUDGE, said
    level = row.level(variant)
    named = top is not None and top["id"] == row.id
    if level is None:
        if named:
            return (ALLOWED if top["confidence"] == evidence.POSSIBLE else TOO_SURE), said
        firm = top is not None and top["confidence"] in FIRM and top["verdict"] != "minor"
        return (WRONG if firm else ALLOWED), said
    if named:
        sure = evidence.STRENGTH[top["confidence"]] >= evidence.STRENGTH[level]
        return (RIGHT if sure else UNSURE), said
    return (SILENT if top is None else WRONG), said


def judge_twin(row, suspects):
    """Who is accused without reason: the planted suspect, or anybody as the culprit."""
    return [f"{s['id']}, {s['verdict']}, {s['share']:.0%}" for s in suspects
            if s["verdict"] == "culprit" or (s["id"] == row.id and s["verdict"] == "contributor")]


class Lineup:
    def __init__(self, culprit, folder, keep):
        self.culprit, self.folder, self.keep = culprit, folder, keep
        self.rules = rules_of(culprit)
        self.retimings = []  # (share of the step that the unchanged graph is off, or waits unexplained; recording)

    def suspects(self, row, variant, models, draw, healthy):
        """The suspects of one recording, by whether the model is given."""
        name = "-".join([row.id, *(f for f, on in zip(variant._fields, variant) if on), "twin" if healthy else "fault"])
        trace, config = self.folder / f"{name}.json", self.folder / f"{name}.config"
        looks = random.Random(draw)
        run([self.culprit, "forge", row.id, "-o", trace, "--draw", draw, "--seed", draw % 1000, "--emit-config", config,
             "--marks", looks.choice(["sglang", "vllm"]), "--layout", looks.choice(["lines", "lines", "pretty"]),
             *(["--healthy"] if healthy else []), *(["--graph"] if variant.graph else []),
             *([] if variant.shapes else ["--no-shapes"]), *([] if variant.stacks else ["--no-stacks"])])
        known = {True: ["--model", config / "config.json", "--server-info", config / "server_info.json"], False: []}
        answers = {}
        for model in models:
            answer = json.loads(run([self.culprit, trace, "--json", *known[model]]))
            answers[model] = answer["suspects"]
            retiming = answer["retiming"]
            if not retiming["off"]:
                off = max(retiming["reproduces_step_within"] / LARGEST_ERROR, retiming["residual_ns"] / answer["steps"]["mean_ns"] / LARGEST_RESIDUAL)
                self.retimings.append((off, f"{name}, --draw {draw}"))
        if not self.keep:
            trace.unlink()
        return answers

    def recording(self, job):
        """The cells of one recording: a fault, its twin, with and without the model."""
        row, variant, models, draw = job
        fault = self.suspects(row, variant, models, draw, False)
        twin = self.suspects(row, variant, models, draw, True)
        cells = []
        for model in models:
            mine = variant._replace(model=model)
            outcome, said = judge_fault(row, mine, fault[model], row.id in self.rules)
            cells.append(Cell(row.id, mine, outcome, said, judge_twin(row, twin[model]), draw))
        return cells


def jobs_of(options):
    draws = random.Random(options.seed)
    jobs = []
    for row in evidence.ROWS:
        recordings = sorted({v._replace(model=None) for v in evidence.variants(row)}, key=str, reverse=True)
        if options.reduced:  # one recording of each suspect, another in each run
            recordings = [draws.choice(recordings)]
        for variant in recordings:
            for _ in range(options.draws):
                draw = draws.randrange(1, 2**31)
                models = [draws.choice([True, False])] if options.reduced else [True, False]
                if not options.only or row.id in options.only:
                    jobs.append((row, variant, models, draw))
    return jobs


def all_cells(lineup, jobs, quiet):
    cells, started = [], time.monotonic()
    show = sys.stderr.isatty() and not quiet
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for done, more in enumerate(pool.map(lineup.recording, jobs), 1):
            cells += more
            if show:
                print(f"\r{done}/{len(jobs)} recordings, {time.monotonic() - started:.0f} s ", end="", file=sys.stderr)
    if show:
        print("\r\033[K", end="", file=sys.stderr)
    return cells


def describe(variant):
    words = ["shapes" if variant.shapes else "no shapes", "stacks" if variant.stacks else "no stacks",
             "graph" if variant.graph else "eager", "model" if variant.model else "no model"]
    return ", ".join(words)


def matrix(cells):
    """Markdown: a line for each suspect, a column for each outcome that came up or must not."""
    columns = [(o, title) for o, title in OUTCOMES]
    lines = ["| planted | cells | " + " | ".join(title for _, title in columns) + " | twin accused |",
             "|---|" + "---:|" * (len(columns) + 2)]
    by_id = collections.defaultdict(list)
    for cell in cells:
        by_id[cell.id].append(cell)
    rows = [(f"`{name}`", mine) for name, mine in by_id.items()] + [("**all**", cells)]
    for name, mine in rows:
        counts = collections.Counter(cell.outcome for cell in mine)
        accused = sum(1 for cell in mine if cell.accused)
        figures = [counts[o] for o, _ in columns] + [accused]
        lines.append(f"| {name} | {len(mine)} | " + " | ".join(str(n) if n else "" for n in figures) + " |")
    return lines


def complaints(cells):
    lines = []
    for cell in cells:
        where = f"`{cell.id}` ({describe(cell.variant)}; --draw {cell.draw})"
        if cell.outcome in BAD:
            lines.append(f"- {where}: {cell.outcome}; the tool says {cell.said}")
        if cell.accused:
            lines.append(f"- {where}: the twin is accused: {'; '.join(cell.accused)}")
    return lines


def evidence_table(rules):
    names = {evidence.CERTAIN: "certain", evidence.LIKELY: "likely", evidence.POSSIBLE: "possible", None: "missing"}
    lines = ["| suspect | its rule needs | so it takes | eager, shapes | eager, no shapes | graph |", "|---|---|---|---|---|---|"]
    for row in evidence.ROWS:
        levels = []
        for shapes, graph in ((True, False), (False, False), (True, True)):
            found = {names[row.level(v)] for v in evidence.variants(row) if v.graph == graph and (graph or v.shapes == shapes)}
            order = [n for n in ("missing", "possible", "likely", "certain") if n in found]
            levels.append(" or ".join(order) if found else "cannot be")
        rule = row.rule if row.rule else "(no rule yet)" if row.id not in rules else rules[row.id]
        lines.append(f"| `{row.id}` | {rule} | {row.needs} | " + " | ".join(levels) + " |")
    return lines


def missing_share():
    cells = [(row, v) for row in evidence.ROWS for v in evidence.variants(row)]
    return sum(1 for row, v in cells if row.level(v) is None), len(cells)


def document(options, cells, rules):
    missing, total = missing_share()
    bad = complaints(cells)
    repeat = f"python3 tests/lineup/lineup.py build/dev/culprit --seed {options.seed}"
    return "\n".join([
        "# The lineup", "",
        "`make lineup` plants every suspect that one rank's trace can show, in deployments drawn for the run, records each with and without",
        "shapes, stacks, graph and model, and asks `culprit` who it was; every fault has a healthy twin of the same draw. This page is written by",
        "it; `tests/lineup/evidence.py` holds the table below and was written from the rules, before the run. The rows of `batch-cast`,",
        "`repeated-read` and `whole-pool-copy` were written anew with their rules, which had left a fifth of all cells without evidence.", "",
        f"Run of {datetime.date.today().isoformat()}, seed {options.seed}: `{repeat}`", "",
        *matrix(cells), "",
        "A twin is accused when the planted suspect stands as culprit or contributor in it, or anybody as the culprit.", "",
        *(["## Wrong cells", "", *bad, ""] if bad else []),
        "## What each suspect needs", "",
        f"Evidence is missing in {missing} of {total} cells ({missing / total:.0%}). \"certain\" and \"likely\" are the least that is asked; a model's files may",
        "raise one to the other. Kernels of a graph have no operators, hence no shapes.", "",
        *evidence_table(rules), ""])


def main():
    parser = argparse.ArgumentParser(description="Plants every suspect and asks the tool who it was.")
    parser.add_argument("culprit", type=pathlib.Path)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1, 10**6))
    parser.add_argument("--draws", type=int, default=1, help="deployments for each recording")
    parser.add_argument("--only", type=lambda text: text.split(","), help="these suspects")
    parser.add_argument("--reduced", action="store_true", help="one recording of each suspect")
    parser.add_argument("--doc", type=pathlib.Path, help="write the page there")
    parser.add_argument("--quiet", action="store_true", help="no progress")
    parser.add_argument("--keep", type=pathlib.Path, help="leave the traces there")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.keep or pathlib.Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        lineup = Lineup(options.culprit.resolve(), folder, options.keep is not None)
        cells = all_cells(lineup, jobs_of(options), options.quiet)
    print("\n".join(matrix(cells)))
    for row in evidence.ROWS:
        rule = lineup.rules.get(row.id, "")
        if rule and rule != row.rule:
            print(f"note: {row.id} now needs \"{rule}\": see that its row in evidence.py still holds", file=sys.stderr)
    bad = complaints(cells)
    bad += [f"- {where}: retiming is off by {off:.1f} times what it may" for off, where in lineup.retimings if off > 1]
    print(f"\nseed {options.seed}: {len(cells)} cells, {len(lineup.retimings)} retimed answers, {len(bad)} wrong")
    if bad:
        print("\n".join(bad))
    if options.doc:
        options.doc.write_text(document(options, cells, lineup.rules))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
