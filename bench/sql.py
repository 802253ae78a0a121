#!/usr/bin/env python3
"""`culprit sql` against the sqlite3 shell over a native table of the same rows: a group-by over 1.6 million events.

Both answer one after the other, in turns; the answers are compared before any time counts. The time of culprit is that of the query after
reading (stage `query` of -v), that of the shell is its `.timer`: real time of the statement alone. Prints the ratio, which must be 2 or less.

Usage: bench/sql.py BUILD_FOLDER [--data FOLDER] [--events N] [--rounds N]
"""
import argparse
import csv
import io
import pathlib
import re
import statistics
import subprocess

QUERIES = {
    "group by name": "SELECT name, count(*), sum(dur_ns) FROM events GROUP BY name ORDER BY 3 DESC, 1",
    "group by kind and stream": "SELECT kind, stream, count(*), sum(dur_ns), max(dur_ns) FROM events GROUP BY kind, stream ORDER BY 1, 2",
    "sum of kernels": "SELECT count(*), sum(dur_ns) FROM events WHERE kind = 'kernel'",
}
UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0}
STAGE = re.compile(r"^culprit: query\s+([\d.,]+) (ns|us|µs|ms|s)$", re.M)
TIMER = re.compile(r"^Run Time: real ([\d.]+)", re.M)


def run(command, text=None):
    done = subprocess.run([str(word) for word in command], input=text, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{command}: exit {done.returncode}: {done.stderr}")
    return done.stdout, done.stderr


def prepare(culprit, folder, events):
    trace, database = folder / f"sql-{events}.json", folder / f"sql-{events}.db"
    if not trace.exists():
        run([culprit, "forge", "glm5", "--preset", "ops-lines", "--events", events, "-o", trace])
    if not database.exists():
        rows, _ = run([culprit, "sql", trace, "--csv", "--quiet", "SELECT kind, name, begin_ns, dur_ns, pid, tid, stream, correlation FROM events"])
        table = folder / "rows.csv"
        table.write_text(rows)
        columns = "kind TEXT, name TEXT, begin_ns INTEGER, dur_ns INTEGER, pid TEXT, tid TEXT, stream INTEGER, correlation INTEGER"
        run(["sqlite3", database], f"CREATE TABLE events({columns});\n.mode csv\n.import --skip 1 {table} events\n"
            "UPDATE events SET stream = NULL WHERE stream = '';\nUPDATE events SET correlation = NULL WHERE correlation = '';\nVACUUM;\n")
        table.unlink()
    return trace, database


def ours(culprit, trace, query):
    out, err = run([culprit, "sql", trace, query, "--csv", "-v"])
    number, unit = STAGE.search(err).groups()
    return float(number.replace(",", "")) * UNITS[unit], list(csv.reader(io.StringIO(out)))[1:]


def shell(database, query):
    # The first run warms the page cache; the second is timed.
    out, _ = run(["sqlite3", "-csv", database], f"{query};\n.timer on\n{query};\n")
    rows = list(csv.reader(io.StringIO(out[:out.index("Run Time:")])))
    return float(TIMER.search(out)[1]), rows[:len(rows) // 2]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", help="a build folder with culprit")
    parser.add_argument("--data", default=None, help="where the forged trace goes (default: BUILD_FOLDER/bench-data)")
    parser.add_argument("--events", type=int, default=1_640_000)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    build = pathlib.Path(args.build)
    data = pathlib.Path(args.data) if args.data else build / "bench-data"
    data.mkdir(parents=True, exist_ok=True)
    culprit = build / "culprit"
    trace, database = prepare(culprit, data, args.events)
    rows = run([culprit, "sql", trace, "--csv", "--quiet", "SELECT count(*) FROM events"])[0].split()[-1]
    print(f"{int(rows):,} rows, medians of {args.rounds} rounds\n\n| query | culprit sql, s | sqlite3 shell, s | ratio |\n|---|---|---|---|")
    worst = 0.0
    for name, query in QUERIES.items():
        times = []
        for _ in range(args.rounds):
            (a, rows_a), (b, rows_b) = ours(culprit, trace, query), shell(database, query)
            if rows_a != rows_b:
                raise SystemExit(f"{name}: the answers differ")
            times.append((a, b))
        a, b = (statistics.median(column) for column in zip(*times))
        worst = max(worst, a / b)
        print(f"| {name} | {a:.3f} | {b:.3f} | {a / b:.2f} |")
    print(f"\n- culprit sql <= 2 x the shell: {worst:.2f} {'holds' if worst <= 2 else 'MISSED'}")


if __name__ == "__main__":
    main()
