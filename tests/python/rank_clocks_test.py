#!/usr/bin/env python3
"""Clocks of forged ranks, off by up to 50 ms and drifting by up to 50 ppm, are recovered; and in drawn deployments the late rank and the
reason are named, whatever the draw, while nobody is accused where none is late."""
import json
import os
import re
import subprocess
import tempfile
import unittest

CULPRIT = os.environ["CULPRIT"]
CAUSES = {"slow-clock": "slow-kernels", "more-work": "more-work", "slow-host": "idle-host-launch", "gc": "gc"}
OFFSET_NS = 2_000
DRIFT_PPM = 12  # over 60 ms, with ends that scatter by 3 us


def forged(folder, *flags):
    done = subprocess.run([CULPRIT, "forge", "ranks", "--rank", "all", "-o", folder, *flags], capture_output=True, text=True, check=True)
    clocks = re.findall(r"rank \d+: clock ([+-]\d+) ns, ([+-]\d+) ppb", done.stderr)
    return [(int(offset), int(drift)) for offset, drift in clocks]


def answer(folder):
    return json.loads(subprocess.run([CULPRIT, folder, "--json"], capture_output=True, check=True).stdout)


class Ranks(unittest.TestCase):
    def test_clocks_are_recovered(self):
        for seed in ("1", "2", "3"):
            with tempfile.TemporaryDirectory() as folder:
                truth = forged(folder, "--clocks", "--seed", seed, "--steps", "12", "--no-stacks", "--healthy")
                self.assertEqual(len(truth), 8)
                for (offset, drift), rank in zip(truth, answer(folder)["ranks"]):
                    with self.subTest(seed=seed, rank=rank["rank"]):
                        self.assertLess(abs(rank["clock_offset_ns"] - (offset - truth[0][0])), OFFSET_NS)
                        self.assertLess(abs(rank["clock_drift_ppm"] - (drift - truth[0][1]) / 1000), DRIFT_PPM)
                        self.assertLess(rank["clock_residual_ns"], OFFSET_NS)

    def test_late_ranks_are_named_in_every_draw(self):
        for draw in (2, 3, 4):
            for fault, cause in CAUSES.items():
                with self.subTest(draw=draw, fault=fault), tempfile.TemporaryDirectory() as folder:
                    stacks = [] if fault == "gc" else ["--no-stacks"]
                    forged(folder, "--clocks", "--draw", str(draw), "--fault", fault, "--steps", "6", *stacks)
                    found = answer(folder)
                    top = found["suspects"][0]
                    self.assertEqual((top["id"], top["cause"]), ("straggler", cause))
                    self.assertRegex(top["claim"], rf"^rank {draw * 3 % 8} ")

    def test_predicted_step_is_that_of_the_twin(self):
        for draw in (2, 3, 4):
            with tempfile.TemporaryDirectory() as folder:
                forged(folder, "--draw", str(draw), "--healthy", "--steps", "8", "--no-stacks")
                healthy = answer(folder)
                self.assertNotIn("straggler", [s["id"] for s in healthy["suspects"]])
                twin = healthy["steps"]["mean_ns"]
            for fault in ("slow-clock", "more-work"):
                with self.subTest(draw=draw, fault=fault), tempfile.TemporaryDirectory() as folder:
                    forged(folder, "--draw", str(draw), "--fault", fault, "--steps", "8", "--no-stacks")
                    gain = answer(folder)["suspects"][0]["gain"]
                    self.assertLess(abs(gain["step_ns_after"]["expected"] - twin), 0.02 * twin)


if __name__ == "__main__":
    unittest.main()
