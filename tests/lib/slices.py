"""What every slice must hold, checked with the standard library alone: `from slices import check_slice`.

A slice is strict JSON; each of its events stands in the trace it was cut from; no launch lost its kernel, no kernel its launch, no arrow
an end; and culprit finds in it the step it was cut from, with the same figures to the nanosecond.
"""
import collections
import gzip
import json
import pathlib
import subprocess

FIGURES = ("mean_ns", "median_ns", "device_span_ns", "busy_ns", "activity_ns", "used")
CALLS = {"cuda_runtime", "cuda_driver", "hip_runtime", "Runtime"}
DEVICE = {"kernel", "gpu_memcpy", "gpu_memset", "Kernel", "Memcpy", "Memset"}


def refuse(word):
    raise ValueError(f"{word} is no JSON")


def strict(data):
    """The document of some bytes; ValueError where a strict reader would refuse them."""
    if data[:2] == b"\x1f\x8b":
        data = gzip.decompress(data)
    return json.loads(data.decode("utf-8"), parse_constant=refuse)


def events_of(document):
    return document["traceEvents"] if isinstance(document, dict) else document


def key(event):
    return json.dumps(event, sort_keys=True)


def linked(events):
    """Correlations of launches and of what they launched, and the ids of arrows that begin and that end."""
    calls, work = collections.Counter(), collections.Counter()
    begins, ends = set(), set()
    for event in events:
        number = (event.get("args") or {}).get("correlation") if isinstance(event.get("args"), dict) else None
        if event.get("cat") in CALLS and number is not None:
            calls[number] += 1
        if event.get("cat") in DEVICE and number is not None:
            work[number] += 1
        if event.get("ph") == "s":
            begins.add(event.get("id"))
        if event.get("ph") == "f":
            ends.add(event.get("id"))
    return calls, work, begins, ends


def check_links(whole, part):
    """Faults of the slice's links, against those of the trace; for traces of one process and device."""
    calls, work, begins, ends = linked(whole)
    own_calls, own_work, own_begins, own_ends = linked(part)
    faults = [f"launch {n} has {own_work[n]} of {work[n]} activities" for n in own_calls if n in work and own_work[n] != work[n]]
    faults += [f"activity {n} lost its launch" for n in own_work if n in calls and n not in own_calls]
    faults += [f"arrow {n} lost its end" for n in own_begins - own_ends if n in ends]
    faults += [f"arrow {n} lost its begin" for n in own_ends - own_begins if n in begins]
    drawn = {n for n in own_work if n in own_calls and n in begins and n in ends}
    faults += [f"launch {n} lost its arrow" for n in drawn - own_begins]
    return faults


def answer(culprit, *words):
    done = subprocess.run([culprit, *map(str, words), "--json", "--quiet"], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, f"{words}: exit {done.returncode}: {done.stderr}"
    return json.loads(done.stdout)


def kernels_of(document):
    found = collections.Counter()
    for k in document["kernels"]:
        for figure in ("ns_per_step", "exposed_ns_per_step", "calls_per_step"):
            found[k["name"], str(k["grid"]), str(k["block"]), figure] += k[figure]
    return found


def check_figures(whole, part):
    """Differences between the answer about one step of the trace and the answer about its slice."""
    faults = [f"steps.{f}: {whole['steps'][f]}, in the slice {part['steps'][f]}" for f in FIGURES if whole["steps"][f] != part["steps"][f]]
    for what in ("kind", "how"):
        if whole["steps"][what] != part["steps"][what]:
            faults.append(f"steps.{what}: {whole['steps'][what]}, in the slice {part['steps'][what]}")
    budgets = [{row["owner"]: (row["ns_per_step"], row["calls_per_step"]) for row in d["budget"]} for d in (whole, part)]
    faults += [f"budget of {owner}: {budgets[0].get(owner)}, in the slice {budgets[1].get(owner)}"
               for owner in sorted(budgets[0].keys() | budgets[1].keys()) if budgets[0].get(owner) != budgets[1].get(owner)]
    a, b = kernels_of(whole), kernels_of(part)
    faults += [f"kernel {k[0][:60]} {k[3]}: {a[k]}, in the slice {b[k]}" for k in a.keys() | b.keys() if a[k] != b[k]]
    return faults


def check_slice(culprit, trace, place, step, flags=(), whole=None, links=True):
    """Cuts `step` (an index, or "A..B") out of `trace` into `place`; returns (faults, events in the slice)."""
    chosen = ["--steps", step] if isinstance(step, str) else ["--step", str(step)]
    done = subprocess.run([culprit, "slice", str(trace), *chosen, "-o", str(place), "--quiet", *flags], capture_output=True, text=True,
                          timeout=120, check=False)
    if done.returncode != 0:
        return [f"exit {done.returncode}: {done.stderr.strip()}"], 0
    part = events_of(strict(pathlib.Path(place).read_bytes()))
    faults = []
    if whole is not None:
        known = {key(event) for event in whole}
        strange = [event for event in part if key(event) not in known]
        faults += [f"{len(strange)} events are not those of the trace, the first {key(strange[0])[:200]}"] if strange else []
        if links:
            faults += check_links(whole, part)
    steps = step if isinstance(step, str) else f"{step}..{step}"
    faults += check_figures(answer(culprit, trace, "--steps", steps, *flags), answer(culprit, place, *flags))
    return faults, len(part)
