#!/usr/bin/env python3
"""Runs of the laboratory, recorded and diagnosed blind: faults are named by shapes, types and counts, their twins are not accused.

Times are a busy machine's business: what depends on them is tried again a few times, what does not is asserted at once."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent.parent / "tools"))
import validate_trace  # noqa: E402

CULPRIT = os.environ["CULPRIT"]
STEPS, LAYERS, POOL, ROW = 6, 3, 16384, 288  # tiny-glm-5: 256 latent values and 32 rotated ones
TRIES = 4


def record(path, *flags):
    """What `lab run` prints of a run of tiny-glm-5 that is recorded to `path`. On one thread: the host keeps a core of its own."""
    command = [CULPRIT, "lab", "run", "--preset", "tiny-glm-5", "--threads", "1", "--prompt-length", "8", "--new", str(STEPS + 4), "--quiet",
               "--profile", str(path), "--profile-warmup", "3", "--profile-steps", str(STEPS), *flags]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


class Run:
    """One recorded run: its events, and what culprit says of it."""

    def __init__(self, *flags):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "t.trace.json.gz"
            self.printed = record(path, *flags)
            self.text = validate_trace.read(path)
            answer = subprocess.run([CULPRIT, str(path), "--json"], check=True, capture_output=True, text=True)
        self.events = json.loads(self.text)["traceEvents"]
        self.device = json.loads(self.text)["deviceProperties"][0]
        self.answer = json.loads(answer.stdout)
        self.suspects = {s["id"]: s for s in self.answer["suspects"]}

    def count(self, category, name=""):
        return sum(1 for e in self.events if e.get("cat") == category and name in e["name"])


def fp8(strategy, *flags):
    return Run("--kv-dtype", "fp8", "--pool-tokens", str(POOL), "--strategy", strategy, *flags)


class LabTrace(unittest.TestCase):
    def right(self, run):
        self.assertEqual(validate_trace.problems(run.text), [])
        self.assertEqual(run.answer["steps"]["count"], STEPS)
        self.assertEqual(run.answer["steps"]["kind"], "decode")
        self.assertEqual(run.answer["steps"]["groups"][0]["batch"], 1)
        codes = {note["code"] for note in run.answer["quality"]["notes"]}
        self.assertFalse(codes & {"kernels-missing", "launches-missing", "overlap-legal", "partial-step", "bad-event"}, codes)
        self.assertIn(f"{STEPS} steps behind the first 3", run.printed)

    def named(self, suspects, *flags):
        """A run of which culprit names one of the suspects, among a few."""
        for _ in range(TRIES):
            run = Run(*flags)
            self.right(run)
            if suspects & set(run.suspects):
                break
        self.assertTrue(suspects & set(run.suspects), [s["claim"] for s in run.suspects.values()])
        return run

    def test_the_whole_pool_is_cast(self):
        run = fp8("pool-cast")
        self.right(run)
        suspect = run.suspects["whole-pool-cast"]
        rows = POOL + 1  # and the slot for what nobody reads
        self.assertEqual(suspect["confidence"], "certain")
        self.assertEqual(suspect["tensor"]["shape"], [rows, 1, ROW])
        self.assertEqual(suspect["tensor"]["dtype"], "fp8_e4m3")
        self.assertEqual(suspect["tensor"]["elements"], rows * ROW)
        self.assertIn(f"in each of {LAYERS} layers", suspect["claim"])
        source = suspect["where"][0]
        self.assertEqual((source["file"], source["function"], source["exact"]), ("lab/engine/attention.cc", "cast_pool", True))
        lines = (pathlib.Path(__file__).resolve().parent.parent.parent / source["file"]).read_text().splitlines()
        call = lines[source["line"] - 3:source["line"]]  # of its lines, compilers take the first or the last
        self.assertTrue(any('"aten::copy_"' in line for line in call), call)
        casts = [e for e in run.events if e.get("cat") == "kernel" and "<e4m3, bf16>" in e["name"]]
        self.assertEqual(len(casts), STEPS * LAYERS)
        self.assertEqual({e["args"]["bytes"] for e in casts}, {3 * rows * ROW})
        # The diagnosis is blind: no name says what is wrong.
        self.assertNotIn("pool-cast", run.text)
        self.assertNotIn("pool_cast", run.text)

    def test_its_twins_are_not_accused(self):
        for strategy in ("gather-cast", "fused"):
            with self.subTest(strategy):
                run = fp8(strategy)
                self.right(run)
                self.assertFalse(set(run.suspects) & {"whole-pool-cast", "whole-pool-copy", "batch-cast", "weight-dequant"})

    def test_a_healthy_run_is_accused_of_nothing_but_waiting(self):
        # These belong to the machine: whose host is late, or whose step stands still, while others use its cores.
        waiting = {"host-sync", "host-launch", "host-work", "step-stall"}
        for _ in range(TRIES):
            run = Run()
            self.right(run)
            if set(run.suspects) <= waiting:
                break
        self.assertLessEqual(set(run.suspects), waiting)
        self.assertEqual(run.count("cuda_runtime", "cudaStreamSynchronize"), STEPS)
        self.assertEqual(run.count("gpu_memcpy", "HtoD"), STEPS)
        self.assertEqual(run.count("gpu_memcpy", "DtoH"), STEPS)
        attributed = run.answer["quality"]["gpu_time_attributed"]
        self.assertEqual((attributed["op"], attributed["source"], attributed["step"]), (1, 1, 1))
        self.assertEqual(run.answer["device"]["peak_source"], "trace")
        self.assertGreater(run.device["memoryBandwidth"], 10**8)
        self.assertIn("reads", run.device["name"])
        self.assertIn("copies", run.device["name"])
        self.assertEqual({k["kind"] for k in run.answer["kernels"]} & {"other-kernel", "elementwise"}, set())

    def test_a_graph_is_one_launch(self):
        run = Run("--launch", "graph")
        self.right(run)
        self.assertEqual(run.count("cuda_runtime", "cudaGraphLaunch"), STEPS)
        self.assertEqual(run.count("cuda_runtime", "cudaLaunchKernel"), STEPS)  # sampling stands behind it
        self.assertEqual(run.count("kernel"), Run("--launch", "eager").count("kernel"))

    def test_a_host_that_launches_late(self):
        # Where others take the host's core between its calls, that time is work of the host's own, and longer.
        crowded = os.getloadavg()[0] > 2 * len(os.sched_getaffinity(0))
        run = self.named({"host-launch"} | ({"host-work"} if crowded else set()), "--fault", "host-delay=300")
        self.assertEqual(run.count("cuda_runtime", "cudaStreamSynchronize"), STEPS)

    def test_a_host_that_waits_in_each_layer(self):
        run = self.named({"host-sync"}, "--fault", "sync-per-layer")
        self.assertEqual(run.count("cuda_runtime", "cudaStreamSynchronize"), STEPS * (LAYERS + 1))


if __name__ == "__main__":
    unittest.main()
