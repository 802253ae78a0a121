"""Runs one case: builds each variant, times it without the profiler, records it with, writes the manifest.

Cost of a variant and mode: 2 x (warm-up + steps) decode steps and one export. The manifest is
rewritten after each run, so that what was measured outlives whatever ends the process next.
"""

import gc
import os
import statistics
import time
import traceback

import torch

from pack import write_json
from program import Context


class DeadlineReached(Exception):
    pass


class DeviceLost(Exception):
    """The device fails even the simplest call: only a new process can go on."""


class Deadline:
    """`at` is a value of time.monotonic(); None: none. Asked before each step and each build."""

    def __init__(self, at):
        self.at = at

    def left(self):
        return float("inf") if self.at is None else self.at - time.monotonic()

    def check(self):
        if self.left() <= 0:
            raise DeadlineReached()


def summarise(step_ns):
    ordered = sorted(step_ns)
    return {"steps": len(step_ns), "mean_ns": round(statistics.fmean(step_ns)),
            "median_ns": round(statistics.median(step_ns)), "min_ns": ordered[0], "max_ns": ordered[-1],
            "step_ns": step_ns}


def relative_l2(before, after):
    return float((after - before).norm() / before.norm().clamp(min=1e-30))


class Recorder:
    """Measures cases with `warmup` and `steps` (captured, and at least as many timed) steps each."""

    def __init__(self, features, full, folder, deadline, warmup, steps):
        self.features = features
        self.context = Context(features, full)
        self.folder = folder
        self.deadline = deadline
        self.warmup = warmup
        self.steps = steps

    def steps_loop(self, program, body, first, last):
        """Runs steps first..last-1; wall ns of each, the read of its token included."""
        taken = []
        for step in range(first, last):
            self.deadline.check()
            begin = time.perf_counter_ns()
            program.run_step(step, body)
            taken.append(time.perf_counter_ns() - begin)
        return taken

    def timed_run(self, program, body, longer):
        """TPOT without a profiler; `longer`: up to 30 steps, as many as fit in a second."""
        program.begin_run()
        warm = self.steps_loop(program, body, -self.warmup, 0)
        affordable = int(1e9 / max(statistics.median(warm), 1))
        count = max(self.steps, min(30, affordable)) if longer else self.steps
        self.features.synchronize()
        return summarise(self.steps_loop(program, body, 0, count))

    def profiled_run(self, program, body, path, detailed, stacks):
        """Captures `steps` marked steps into a Chrome trace; `detailed`: shapes, and stacks if wanted."""
        from torch.profiler import ProfilerActivity, profile
        activities = [ProfilerActivity.CPU] + ([ProfilerActivity.CUDA] if self.features.cuda else [])
        profiler = profile(activities=activities, record_shapes=detailed, with_stack=detailed and stacks)
        program.begin_run()
        cold = self.warmup - self.warmup // 5
        self.steps_loop(program, body, -self.warmup, -self.warmup + cold)
        if self.features.has("kineto"):
            profiler.prepare_trace()  # the last warm-up steps pay for the profiler's own start
            self.steps_loop(program, body, -self.warmup + cold, 0)
            self.features.synchronize()
            profiler.start_trace()
        else:
            self.steps_loop(program, body, -self.warmup + cold, 0)
            profiler.start()
        try:
            taken = self.steps_loop(program, body, 0, self.steps)
            self.features.synchronize()
        finally:
            profiler.stop_trace() if self.features.has("kineto") else profiler.stop()
        self.deadline.check()
        profiler.export_chrome_trace(path + ".tmp.json")
        os.replace(path + ".tmp.json", path)
        return summarise(taken)

    def record(self, case, manifest):
        """Fills `manifest` and the case's folder; raises DeviceLost alone."""
        missing = [n for n in case.needs if not self.features.has(n)]
        if missing:
            manifest.update(status="skipped", reason="needs " + ", ".join(missing))
            return self.save(case, manifest)
        reference = None
        try:
            for variant in case.variants:
                result = self.record_variant(case, variant, manifest)
                if variant is case.variants[0]:
                    reference = result
                elif reference is not None and result is not None:
                    manifest["variants"][variant.name]["relative_l2_to_before"] = relative_l2(reference, result)
                self.save(case, manifest)
            failed = any("error" in run for v in manifest["variants"].values() for run in v["runs"].values())
            manifest["status"] = "failed" if failed else "recorded"
        except DeadlineReached:
            manifest.update(status="partial", reason="deadline")
        self.save(case, manifest)

    def record_variant(self, case, variant, manifest):
        """Result of the first step as float32 on the host; None where the variant did not run."""
        entry = manifest["variants"][variant.name]
        program = result = None
        try:
            self.deadline.check()
            torch.manual_seed(case.seed())
            program = variant.build(self.context)
            entry["tensors"] = list(program.inventory.values())
            program.begin_run()
            program.run_step(-1, program.body)
            result = program.result().float().cpu()
            for mode in variant.modes:
                self.record_mode(case, variant, program, mode, entry["runs"].setdefault(mode, {}), manifest)
        except (DeadlineReached, DeviceLost):
            raise
        except Exception as error:
            entry["runs"].setdefault("build", {})["error"] = self.describe(error)
        finally:
            if program is not None:
                self.note_peak_memory(entry)
                program.close()
            program = None
            gc.collect()
            self.features.free_memory()
        return result

    def record_mode(self, case, variant, program, mode, run, manifest):
        trace = f"{variant.name}-{mode}.json"
        planted = variant is case.variants[0]
        run["expect"] = list(case.suspects) if planted else []  # any of these names the cause
        run["innocent"] = [] if planted else list(case.suspects[:1])  # must not be accused
        try:
            body = program.body if mode == "eager" else self.features.capture(program.body)
            run["tpot"] = self.timed_run(program, body, self.context.full and not case.mean_counts)
            self.save(case, manifest)
            run["profiled"] = self.profiled_run(program, body, os.path.join(self.case_folder(case), trace),
                                                mode == "eager", case.stacks)
            run["trace"] = trace
            self.save(case, manifest)
        except DeadlineReached:
            run["error"] = "deadline"
            raise
        except Exception as error:
            run["error"] = self.describe(error)
            self.save(case, manifest)
            self.require_device()

    def describe(self, error):
        """The error as text; its frames are dropped, since they hold tensors."""
        where = traceback.extract_tb(error.__traceback__)[-1]
        text = f"{type(error).__name__}: {error}"[:600]
        traceback.clear_frames(error.__traceback__)
        error.__traceback__ = error.__context__ = None
        return f"{text} ({os.path.basename(where.filename)}:{where.lineno})"

    def require_device(self):
        try:
            self.features.synchronize()
            torch.zeros(1, device=self.features.device).item()
        except RuntimeError as error:
            raise DeviceLost(str(error)) from None

    def note_peak_memory(self, entry):
        if self.features.cuda:
            entry["peak_memory_bytes"] = torch.cuda.max_memory_allocated()
            torch.cuda.reset_peak_memory_stats()

    def case_folder(self, case):
        folder = os.path.join(self.folder, case.name)
        os.makedirs(folder, exist_ok=True)
        return folder

    def save(self, case, manifest):
        write_json(os.path.join(self.case_folder(case), "manifest.json"), manifest)


def profiler_residue(features):
    """ns per small launch before and after the first use of the profiler in this process.

    Once loaded, the profiler's driver hooks stay; this says what the later runs without it pay.
    """
    from torch.profiler import profile
    x = torch.zeros(64, device=features.device)
    before = [features.time_launches(lambda k: x.add_(1), 500) for _ in range(5)]
    with profile():
        x.add_(1)
        features.synchronize()
    after = [features.time_launches(lambda k: x.add_(1), 500) for _ in range(5)]
    return {"launch_ns_before": round(statistics.median(before)),
            "launch_ns_after": round(statistics.median(after))}
