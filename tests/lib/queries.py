"""Every fact's query gives the fact's value again: `from queries import wrong_facts`."""
import json
import re
import subprocess

QUERY = re.compile(r'culprit sql TRACE "(SELECT [^"$`\\]*)"')
AT_ONCE = 500  # columns of one statement


def run(command, text=None):
    done = subprocess.run(list(map(str, command)), input=text, capture_output=True, text=True, timeout=120, check=False)
    return done.returncode, done.stdout, done.stderr


def differs(fact, value):
    return value is None or abs(float(value) - fact["value"]) > 1e-12 * max(1.0, abs(fact["value"]))


def as_printed(culprit, traces, flags, fact):
    """What the query prints in a shell, as somebody would paste it."""
    words = " ".join(f"'{word}'" for word in [*map(str, traces), *flags])
    code, out, err = run(["bash", "-c", fact["query"].replace("culprit sql TRACE", f"'{culprit}' sql {words} --quiet", 1)])
    lines = out.strip().splitlines()
    return (lines[-1].strip(), err) if code == 0 and len(lines) == 3 else (None, err or out)


def wrong_facts(culprit, traces, flags=()):
    """(facts, complaints): each kind of query is run as printed, and all of them in as few runs as can be."""
    code, out, err = run([culprit, *traces, *flags, "--json", "--quiet"])
    if code != 0:
        return [], [f"exit {code}: {err.strip()}"]
    facts = json.loads(out)["facts"]
    wrong = [f"{f['name']}: no query: {f['query']}" for f in facts if not QUERY.fullmatch(f["query"] or "")]
    asked = [f for f in facts if QUERY.fullmatch(f["query"] or "")]
    for at in range(0, len(asked), AT_ONCE):
        some = asked[at:at + AT_ONCE]
        select = "SELECT " + ",\n".join(f"({QUERY.fullmatch(f['query'])[1]})" for f in some)
        code, out, err = run([culprit, "sql", *traces, "-", *flags, "--json", "--quiet"], select)
        values = json.loads(out)["rows"][0] if code == 0 else [None] * len(some)
        wrong += [f"{f['name']} = {f['value']}, but {f['query']} gives {v} {err.strip()}" for f, v in zip(some, values) if differs(f, v)]
    kinds = {re.sub(r"'[^']*'|\d+", "_", f["query"]): f for f in asked}
    for fact in kinds.values():
        value, err = as_printed(culprit, traces, flags, fact)
        if differs(fact, value):
            wrong.append(f"{fact['name']} = {fact['value']}, but as printed {fact['query']} gives {value} {err.strip()}")
    return facts, wrong
