#!/usr/bin/env python3
"""Every fact's query, run as printed, gives the fact's value again: on forged runs with a suspect of every kind."""
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests/lib"))
import planted  # noqa: E402
from pages import stalled_trace  # noqa: E402
from queries import wrong_facts  # noqa: E402

CULPRIT = os.environ["CULPRIT"]
RUNS = [["glm5", "--steps", "3"], ["host-bound", "--steps", "3"], ["gaps", "--steps", "3"], ["prefill-mixed", "--steps", "12", "--no-stacks"]]
PLANTED = [planted.graph_missing, planted.graph_launch, planted.hidden_wait, planted.host_work, planted.blocking_copy, planted.small_kernels,
           planted.repeated_read, planted.gemm_inefficient, planted.pool_copy, planted.batch_cast, planted.weight_dequant, planted.pool_cast,
           planted.few_splits, planted.all_reduce, planted.layout_copy, planted.outside_process, planted.oversized_grid]


def check(what, traces, flags=()):
    facts, wrong = wrong_facts(CULPRIT, traces, flags)
    print(f"{what}: {len(facts)} facts, {len(wrong)} wrong")
    for complaint in wrong[:5]:
        print(f"  {complaint}")
    return len(wrong) + (len(facts) < 5)


def main():
    wrong = 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for run in RUNS:
            trace = folder / "run.json"
            subprocess.run([CULPRIT, "forge", *run, "-o", trace], check=True, capture_output=True)
            flags = ["--model", "zai-org/GLM-5", "--tp", "8"] if run[0] == "glm5" else []
            wrong += check(run[0], [trace], flags)
            trace.unlink()
        for plant in PLANTED:
            trace = folder / f"{plant.__name__}.json"
            plant().write(trace)
            wrong += check(plant.__name__, [trace])
        stalled_trace().write(folder / "stalled.json")
        wrong += check("stalled", [folder / "stalled.json"])
        subprocess.run([CULPRIT, "forge", "ranks", "--rank", "all", "--steps", "4", "-o", folder / "ranks"], check=True, capture_output=True)
        wrong += check("ranks", [folder / "ranks"])
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
