#!/usr/bin/env python3
"""Runs of several processes: they answer as one, start by themselves or under mpirun, and end together. The tool links no MPI."""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

CULPRIT = pathlib.Path(os.environ["CULPRIT"])
RUN = ["lab", "run", "--preset", "tiny-glm-5", "--seed", "7", "--prompt-length", "40", "--batch", "2"]
SKIPPED = 77  # ctest's word for it
# What Open MPI keeps to its end is no leak of ours.
ENVIRONMENT = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0", "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def run(*words, **environment):
    return subprocess.run([str(w) for w in words], text=True, capture_output=True, timeout=120, check=False,
                          env={**ENVIRONMENT, **environment})


def mpirun(ranks, *words):
    return run("mpirun", "--oversubscribe", "--bind-to", "none", "-n", ranks, CULPRIT, *words)


def tokens(done):
    if done.returncode != 0:
        raise AssertionError(f"exit {done.returncode}\n{done.stdout}\n{done.stderr}")
    return [request["tokens"] for request in json.loads(done.stdout)["requests"]]


def children(pid):
    return [int(child) for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


# A recording that does not end by itself for two minutes.
ENDLESS = ["--new", "2500", "--fault", "host-work=50000", "--profile-warmup", "1", "--profile-steps", "900000"]


def steps_in(trace):
    """How many decode steps culprit finds."""
    return json.loads(run(CULPRIT, trace, "--json").stdout)["steps"]["count"]


def ended_by(end, trace, *flags):
    """A recording run that end(process) ends: its exit status, standard error, and (rank, steps kept) as it says."""
    with subprocess.Popen([CULPRIT, *RUN, *ENDLESS, "--profile", trace, *flags], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, env=ENVIRONMENT) as top:
        files = 2 if "--tp" in flags else 1  # begun when the first step is near
        for _ in range(600):
            time.sleep(0.1)
            if len(list(pathlib.Path(trace).parent.glob("*.part"))) == files:
                break
        time.sleep(3)
        end(top)
        out, err = top.communicate(timeout=60)
    kept = re.search(r"(?:-rank(\d))?\.trace\.json\.gz: the (\d+) steps recorded until then are kept", err)
    assert kept and out == "", (out[:200], err)
    return top.returncode, err, (kept[1], int(kept[2]))


class Alone(unittest.TestCase):
    def test_a_recording_that_is_ended_keeps_what_it_has(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            with self.subTest(number.name), tempfile.TemporaryDirectory() as folder:
                trace = pathlib.Path(folder) / "t.trace.json.gz"
                status, err, (_, kept) = ended_by(lambda top, number=number: top.send_signal(number), trace)
                self.assertEqual(status, 128 + number, err)
                self.assertIn(kept - steps_in(trace), (0, 1))  # the last may lack its end on the device

    def test_the_tool_links_no_mpi(self):
        libraries = run("ldd", CULPRIT).stdout
        self.assertIn("libc.so", libraries)
        self.assertNotIn("mpi", libraries)
        self.assertNotIn("pmix", libraries)

    def test_without_the_module_says_what_to_install(self):
        with tempfile.TemporaryDirectory() as folder:
            alone = shutil.copy(CULPRIT, folder)
            done = run(alone, *RUN, "--new", "2", "--tp", "2")
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn("libculprit_mpi.so", done.stderr)
            self.assertIn("openmpi-bin", done.stderr)
            self.assertEqual(done.stdout, "")
            self.assertEqual(run(alone, *RUN, "--new", "2").returncode, 0)

    def test_without_mpirun_says_what_to_install(self):
        done = run(CULPRIT, *RUN, "--new", "2", "--tp", "2", PATH="/nonexistent")
        self.assertEqual(done.returncode, 2)
        self.assertIn("openmpi-bin", done.stderr)


class Together(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.wanted = tokens(run(CULPRIT, *RUN, "--new", "16", "--scheme", "f32", "--json"))

    def test_ranks_under_mpirun_give_the_tokens_of_one(self):
        for ranks, more in ((2, []), (4, []), (4, ["--ep", "2"])):
            done = mpirun(ranks, *RUN, "--new", "16", "--scheme", "f32", "--json", "--tp", str(ranks), *more)
            self.assertEqual(tokens(done), self.wanted)

    def test_mpirun_is_started_where_it_was_not(self):
        for flags in (["--tp", "2"], ["--ep", "4"]):
            done = run(CULPRIT, *RUN, "--new", "16", "--scheme", "f32", "--json", *flags)
            self.assertEqual(tokens(done), self.wanted)

    def test_a_checkpoint_is_shared_as_a_drawn_model(self):
        with tempfile.TemporaryDirectory() as folder:
            for container, path in (("safetensors", folder + "/model"), ("gguf", folder + "/model.gguf")):
                made = run(CULPRIT, "lab", "make-model", "--preset", "tiny-glm-5", "--seed", "7", "--scheme", "f32", "--format", container, "-o", path)
                self.assertEqual(made.returncode, 0, made.stderr)
                text = ["lab", "run", "--model", path, "--tokens", "5,6,7,8,9", "--new", "12", "--json"]
                self.assertEqual(tokens(run(CULPRIT, *text, "--tp", "2")), tokens(run(CULPRIT, *text)))

    def test_bench_shows_what_ranks_tell_each_other(self):
        done = run(CULPRIT, "lab", "bench", "--preset", "tiny-glm-5", "--steps", "4", "--context", "64", "--tp", "2", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        answer = json.loads(done.stdout)
        self.assertEqual(answer["ranks"], {"tp": 2, "ep": 1})
        calls = {k["kernel"]: k["calls_per_step"] for k in answer["runs"][0]["kernels"]}
        self.assertEqual(calls["all-reduce attention"], 3)
        self.assertEqual(calls["all-reduce mlp"], 3)
        self.assertEqual(calls["all-reduce embedding"], 1)
        self.assertEqual(calls["all-gather logits"], 1)

    def test_recordings_of_all_ranks_are_one_run(self):
        with tempfile.TemporaryDirectory() as folder:
            done = run(CULPRIT, *RUN, "--new", "40", "--tp", "2", "--profile", f"{folder}/decode.trace.json.gz",
                       "--profile-warmup", "4", "--profile-steps", "30")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(sorted(os.listdir(folder)), ["decode-rank0.trace.json.gz", "decode-rank1.trace.json.gz"])
            answer = json.loads(run(CULPRIT, folder, "--json").stdout)
            self.assertEqual([rank["rank"] for rank in answer["ranks"]], [0, 1])
            for rank in answer["ranks"]:  # 7 sums and one gathering in each step that is no outlier: they meet, on one machine's clock
                self.assertGreaterEqual(rank["collectives"], 100)
                self.assertLess(abs(rank["clock_offset_ns"]), 1_000_000)
            comm = json.loads(run(CULPRIT, "comm", f"{folder}/decode-rank0.trace.json.gz", "--json").stdout)
            self.assertEqual(sorted({row["collective"] for row in comm["table"]["rows"]}), ["_allgather_base", "allreduce"])

    def test_numbers_of_ranks_that_do_not_fit_are_errors(self):
        for done, word in ((mpirun(2, *RUN, "--tp", "4"), "mpirun started 2 ranks, --tp asks for 4"),
                           (mpirun(2, *RUN), "each of which would do all of it"),
                           (run(CULPRIT, *RUN, "--tp", "3"), 'tensor "model.embed_tokens.weight" cannot be cut for 3 ranks'),
                           (run(CULPRIT, *RUN, "--scheme", "fp8", "--tp", "2"), "whole e4m3 blocks of 128"),
                           (run(CULPRIT, *RUN, "--tp", "2", "--ep", "3"), "--ep divides --tp"),
                           (run(CULPRIT, *RUN, "--tp", "2", "--tp-shard", "0/2"), "--tp-shard")):
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertEqual(done.stderr.count(word), 1, done.stderr)
            self.assertEqual(done.stdout, "")

    def test_a_fault_of_one_rank_at_load_ends_all(self):
        # mpirun's way to give each rank a command of its own: the second one finds no model.
        start = time.monotonic()
        done = run("mpirun", "--oversubscribe", "--bind-to", "none",
                   "-n", "1", CULPRIT, *RUN, "--tp", "2", ":",
                   "-n", "1", CULPRIT, "lab", "run", "--model", "/nowhere", "--prompt-length", "4", "--tp", "2")
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertEqual(done.stderr.count("culprit lab: error: rank 1: /nowhere"), 1, done.stderr)
        self.assertEqual(done.stdout, "")
        self.assertLess(time.monotonic() - start, 20)

    def test_a_fault_of_one_rank_changes_no_token(self):
        plain, faulty = (tokens(run(CULPRIT, *RUN, "--new", "6", "--tp", "2", "--json", *fault))
                         for fault in ([], ["--fault", "pool-copy", "--fault-rank", "1"]))
        self.assertEqual(plain, faulty)

    def test_the_others_recordings_outlive_a_rank(self):
        def kill_one(top):
            ranks = children(children(top.pid)[0])
            os.kill(ranks[-1], signal.SIGKILL)

        with tempfile.TemporaryDirectory() as folder:
            status, err, (rank, kept) = ended_by(kill_one, f"{folder}/t.trace.json.gz", "--tp", "2")
            self.assertEqual(status, 2, err)
            traces = list(pathlib.Path(folder).glob("*.gz"))  # what the killed one had begun is no trace
            self.assertEqual([trace.name for trace in traces], [f"t-rank{rank}.trace.json.gz"])
            self.assertIn(kept - steps_in(traces[0]), (0, 1))

    def test_a_rank_that_is_killed_ends_all(self):
        with subprocess.Popen([CULPRIT, *RUN, *ENDLESS[:4], "--tp", "4"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True, env=ENVIRONMENT) as top:
            ranks = []
            for _ in range(200):  # until all four are there, and have joined
                time.sleep(0.05)
                launcher = children(top.pid)
                ranks = children(launcher[0]) if launcher else []
                if len(ranks) == 4:
                    break
            self.assertEqual(len(ranks), 4)
            time.sleep(1)
            cores = {re.search(r"Cpus_allowed_list:\s*(\S+)", pathlib.Path(f"/proc/{rank}/status").read_text())[1] for rank in ranks}
            self.assertEqual(len(cores), min(len(os.sched_getaffinity(0)), 4))  # each has its own, while there are some
            os.kill(ranks[2], signal.SIGKILL)
            start = time.monotonic()
            out, err = top.communicate(timeout=60)
            self.assertLess(time.monotonic() - start, 20)
        self.assertEqual(top.returncode, 2, err)
        self.assertIn("rank 2", err)
        self.assertIn("signal 9", err)
        self.assertIn("a rank was lost, and the run of 4 ranks ended with it", err)
        self.assertEqual(out, "")
        deadline = time.monotonic() + 20
        while any(pathlib.Path(f"/proc/{rank}").exists() for rank in ranks):
            self.assertLess(time.monotonic(), deadline, "ranks are left behind")
            time.sleep(0.1)


if __name__ == "__main__":
    if shutil.which("mpirun") is None or not (CULPRIT.parent / "libculprit_mpi.so").exists():
        result = unittest.main(argv=[sys.argv[0], "Alone"], exit=False).result
        print("skipped: runs of several processes; mpirun or libculprit_mpi.so is not there")
        sys.exit(SKIPPED if result.wasSuccessful() else 1)
    unittest.main()
