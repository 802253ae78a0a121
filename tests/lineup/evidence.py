"""What each suspect needs to be named, written from its rule and not from what the tool answers.

`rule` is what `culprit list suspects` said under "needs" when the row was written. A variant is a recording of the planted run: with
shapes or not, with stacks or not, eager or as a graph, and the model's files given or not. The kernels of a graph have no operators, so no
shapes and no stacks either, whatever the recording asked for. `level` is the least confidence that the rule allows then; None: the evidence
is missing, so that "possible" or silence is right and any firmer word is wrong.
"""
import collections

Variant = collections.namedtuple("Variant", "shapes stacks graph model")
Row = collections.namedtuple("Row", "id rule needs level exists", defaults=[lambda v: True])

CERTAIN, LIKELY, POSSIBLE = "certain", "likely", "possible"
STRENGTH = {POSSIBLE: 1, LIKELY: 2, CERTAIN: 3}


def dims(v):
    """Whether the kernels of the model have shapes."""
    return v.shapes and not v.graph


def always(v):
    return LIKELY


ROWS = [
    Row("whole-pool-cast", "kernel names and grids; shapes, --model and --kv-dtype make it certain", "a grid",
        lambda v: CERTAIN if dims(v) else LIKELY),
    Row("whole-pool-copy", "shapes, or --model with --pool-tokens or --server-info, which make it certain", "shapes or the model",
        lambda v: CERTAIN if v.model else LIKELY if dims(v) else None),
    Row("batch-cast", "kernel names and layers; grids and the batch in the marks make it likely, shapes certain", "a grid and the batch",
        lambda v: CERTAIN if dims(v) else LIKELY),
    Row("weight-dequant", "a telling kernel name, or a cast with shapes or --model", "a kernel's name", always),
    Row("layout-copy", "kernel names and layers; operators make it likely, shapes certain", "operators",
        lambda v: None if v.graph else CERTAIN if v.shapes else LIKELY),
    Row("low-occupancy", "the grid and the number of multiprocessors; --model and --active-tokens make it certain", "a grid", always),
    Row("single-block", "the grid", "a grid", always),
    Row("repeated-read", "kernel names and times; shapes or --model make it likely, both certain", "shapes or the model",
        lambda v: (CERTAIN if v.model else LIKELY) if dims(v) else LIKELY if v.model else None),
    Row("gemm-inefficient", "shapes, and the GPU's peaks", "shapes", lambda v: LIKELY if dims(v) else None),
    Row("small-kernels", "kernel names and times", "kernel names", always),
    Row("oversized-grid", "the grid, and the batch in the step marks", "a grid and the batch in the step marks", always),
    Row("comm-latency", "kernel names; sizes of the collectives make it likely", "sizes of the collectives",
        lambda v: None if v.graph else LIKELY),
    Row("exposed-comm", "kernel names and the sizes of the collectives", "sizes of the collectives",
        lambda v: None if v.graph else LIKELY),
    Row("host-launch", "launches in the trace", "launches", always, lambda v: not v.graph),
    Row("host-sync", "the host's API calls in the trace", "API calls", always),
    Row("blocking-copy", "copies in the trace", "copies", always),
    Row("graph-missing", "steps of both ways; batches in the marks make it certain", "steps of both ways, batches in the marks",
        lambda v: CERTAIN, lambda v: v.graph),
    Row("graph-launch", "launches in the trace", "launches", always, lambda v: v.graph),
    Row("host-work", "the host's API calls; Python frames or operators name the work", "API calls",
        lambda v: CERTAIN if v.stacks else LIKELY),
    Row("outside-process", "a file that holds both processes", "a file of both processes, which all of these are", always),
    Row("prefill-interference", "step marks that tell prefill from decode", "step marks", lambda v: CERTAIN),
    Row("step-stall", "several steps; Python frames or calls name the cause", "several steps",
        lambda v: CERTAIN if v.stacks else LIKELY),
]


def variants(row):
    yes_no = (True, False)
    for graph in (False, True):
        for v in (Variant(s, t, graph, m) for s in yes_no for t in yes_no for m in yes_no):
            if row.exists(v):
                yield v
