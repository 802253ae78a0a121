#!/usr/bin/env python3
"""A fleet answers as its folder does, with the same bytes from any number of processes; what is finished is kept when a process is
killed; what cannot be read is left out and told; the database says what the answer says."""
import contextlib
import json
import os
import pathlib
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent.parent / "tools"))
import validate_json  # noqa: E402

CULPRIT = pathlib.Path(os.environ["CULPRIT"])
SCHEMA = json.loads(pathlib.Path(os.environ["CULPRIT_SCHEMA"]).read_text())
HAS_MPI = shutil.which("mpirun") is not None and (CULPRIT.parent / "libculprit_mpi.so").exists()
# What Open MPI keeps to its end is no leak of ours.
ENVIRONMENT = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0", "LC_ALL": "C", "OMPI_ALLOW_RUN_AS_ROOT": "1",
               "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
MPIRUN = ["mpirun", "--oversubscribe", "--bind-to", "none", "-n"]


def run(*words, **more):
    return subprocess.run([str(w) for w in words], text=True, capture_output=True, timeout=300, check=False, env=ENVIRONMENT, **more)


def fleet(folder, out, *flags, processes=0):
    launcher = [*MPIRUN, processes] if processes else []
    return run(*launcher, CULPRIT, "fleet", folder, "-o", out, *flags)


def good(done):
    if done.returncode != 0:
        raise AssertionError(f"exit {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done


def forged(folder, *flags):
    good(run(CULPRIT, "forge", "ranks", "--rank", "all", "--no-stacks", "-o", folder, *flags))


def rows(database, query):
    with contextlib.closing(sqlite3.connect(database)) as open_database:
        return open_database.execute(query).fetchall()


def summaries(out):
    return {p.name: (p.stat().st_ino, p.stat().st_mtime_ns) for p in pathlib.Path(out, "summaries").glob("*.summary")}


def children(pid):
    with contextlib.suppress(FileNotFoundError):
        return [int(child) for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return []


class Fleet(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        holder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(holder.cleanup)
        cls.folder = pathlib.Path(holder.name)
        cls.traces = cls.folder / "run"
        forged(cls.traces, "--fault", "slow-host", "--clocks", "--steps", "6")

    def out(self, name):
        return self.folder / f"{self.id().rsplit('.', 1)[1]}-{name}"

    def test_answers_as_the_folder_does(self):
        whole = json.loads(good(run(CULPRIT, self.traces, "--json")).stdout)
        done = good(fleet(self.traces, self.out("a"), "--json"))
        answer = json.loads(done.stdout)
        self.assertEqual(validate_json.problems(SCHEMA, answer), [])
        self.assertEqual(answer["kind"], "fleet")
        self.assertEqual(answer["suspects"][0]["cause"], "idle-host-launch")
        told = answer.pop("fleet")
        del answer["kind"]
        self.assertEqual(answer, whole)
        self.assertEqual(told["collectives"], told["collectives_related"])
        self.assertGreater(told["collectives"], 8 * 6)
        self.assertEqual((self.out("a") / "fleet.json").read_text(), done.stdout)
        self.assertEqual(good(fleet(self.traces, self.out("a"))).stdout, good(run(CULPRIT, self.traces)).stdout)

    @unittest.skipUnless(HAS_MPI, "mpirun or libculprit_mpi.so is not there")
    def test_any_number_of_processes_gives_the_same_bytes(self):
        alone = good(fleet(self.traces, self.out(0), "--json"))
        text = good(fleet(self.traces, self.out(0)))
        for processes in (1, 2, 4):
            with self.subTest(processes=processes):
                out = self.out(processes)
                done = good(fleet(self.traces, out, "--json", processes=processes))
                self.assertEqual(done.stdout, alone.stdout)
                self.assertEqual((out / "fleet.json").read_bytes(), (self.out(0) / "fleet.json").read_bytes())
                self.assertEqual((out / "fleet.sqlite").read_bytes(), (self.out(0) / "fleet.sqlite").read_bytes())
                for name in summaries(out):
                    self.assertEqual((out / "summaries" / name).read_bytes(), (self.out(0) / "summaries" / name).read_bytes())
                again = good(fleet(self.traces, out, processes=processes))
                self.assertEqual(again.stdout, text.stdout)
                self.assertEqual(again.stderr.count("8 of 8 traces were summarized before"), 1)

    def killed(self, out, processes):
        """Summaries that were there when one process was killed, and whether that was midway."""
        launcher = [*MPIRUN, str(processes)] if processes else []
        command = [*launcher, str(CULPRIT), "fleet", str(self.traces), "-o", str(out), "--threads", "1"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENVIRONMENT) as top:
            deadline = time.monotonic() + 60
            while not summaries(out) and time.monotonic() < deadline:
                time.sleep(0.002)
            victim = children(top.pid)[-1] if processes else top.pid
            os.kill(victim, signal.SIGKILL)
            top.communicate(timeout=60)
        self.assertNotEqual(top.returncode, 0)
        return summaries(out)

    def check_restart(self, processes):
        wanted = good(fleet(self.traces, self.out("whole"), "--json"))
        for attempt in range(8):  # a machine with much to do may finish before it is killed
            out = self.out(attempt)
            kept = self.killed(out, processes)
            if 0 < len(kept) < 8:
                break
        self.assertTrue(0 < len(kept) < 8, f"never killed midway: {len(kept)} summaries")
        done = good(fleet(self.traces, out, "--json", processes=processes))
        self.assertIn(f"{len(kept)} of 8 traces were summarized before", done.stderr)
        self.assertEqual(done.stdout, wanted.stdout)
        now = summaries(out)
        self.assertEqual(len(now), 8)
        self.assertEqual({name: now[name] for name in kept}, kept)  # not written again
        self.assertEqual([p for p in out.rglob("*.part")], [])

    def test_what_is_finished_is_kept_when_it_is_killed(self):
        self.check_restart(0)

    @unittest.skipUnless(HAS_MPI, "mpirun or libculprit_mpi.so is not there")
    def test_what_is_finished_is_kept_when_one_of_several_is_killed(self):
        self.check_restart(2)

    def test_only_what_changed_is_summarized_again(self):
        folder = self.out("run")
        shutil.copytree(self.traces, folder)
        out = self.out("a")
        first = good(fleet(folder, out, "--json"))
        self.assertNotIn("before", first.stderr)
        before = summaries(out)
        changed = sorted(folder.iterdir())[2]
        os.utime(changed, ns=(1, 1))
        second = good(fleet(folder, out, "--json"))
        self.assertIn("7 of 8 traces were summarized before", second.stderr)
        self.assertEqual(second.stdout, first.stdout)
        after = summaries(out)
        self.assertEqual(set(after), set(before))
        self.assertEqual(len([name for name in after if after[name] != before[name]]), 1)
        self.assertNotIn("before", good(fleet(folder, out, "--steps", "1..3")).stderr)  # other flags, other summaries

    def test_a_trace_that_cannot_be_read_is_left_out(self):
        folder = self.out("run")
        shutil.copytree(self.traces, folder)
        names = sorted(folder.iterdir())
        names[5].write_bytes(b'{"traceEvents": "none of them"}')
        names[6].write_bytes(b"\x1f\x8b\x08\x00 not gzip")
        done = good(fleet(folder, self.out("a"), "--json"))
        self.assertIn("warning: 2 of 8 traces left out", done.stderr)
        self.assertIn("[trace-skipped]", done.stderr)
        answer = json.loads(done.stdout)
        self.assertEqual(validate_json.problems(SCHEMA, answer), [])
        self.assertEqual([s["path"] for s in answer["fleet"]["skipped"]], [str(names[5]), str(names[6])])
        self.assertEqual(answer["suspects"][0]["cause"], "idle-host-launch")  # rank 3 is there
        note = next(n for n in answer["quality"]["notes"] if n["code"] == "trace-skipped")
        self.assertEqual((note["severity"], note["count"]), ("data-loss", 2))
        self.assertIn("ranks-missing", [n["code"] for n in answer["quality"]["notes"]])
        self.assertIn(names[6].name, good(fleet(folder, self.out("a"), "--all")).stdout)
        strict = fleet(folder, self.out("a"), "--strict")
        self.assertEqual((strict.returncode, strict.stdout), (2, ""))
        self.assertEqual(rows(self.out("a") / "fleet.sqlite", "SELECT count(*) FROM traces WHERE state = 'skipped' AND why IS NOT NULL"), [(2,)])

    def test_nothing_but_broken_traces_is_no_answer(self):
        folder = self.out("run")
        folder.mkdir()
        for rank in range(3):
            (folder / f"rank{rank}.json").write_text("{")
        done = fleet(folder, self.out("a"), "--json")
        self.assertEqual(done.returncode, 2)
        self.assertIn("none of 3 traces is that of a rank", done.stderr)
        answer = json.loads(done.stdout)
        self.assertEqual(validate_json.problems(SCHEMA, answer), [])
        self.assertFalse(answer["quality"]["usable"])
        self.assertEqual(len(answer["fleet"]["skipped"]), 3)

    def test_strangers_and_second_copies_are_left_out(self):
        folder = self.out("run")
        shutil.copytree(self.traces, folder / "node0")
        (folder / ".hidden").mkdir()
        shutil.copy(sorted(self.traces.iterdir())[0], folder / ".hidden")
        shutil.copy(sorted(self.traces.iterdir())[4], folder / "zz-again.json")
        good(run(CULPRIT, "forge", "glm5", "--world", "8", "--rank", "1", "--steps", "2", "--no-stacks", "-o", folder / "aa-other.json"))
        done = good(fleet(folder, folder / "out", "--json"))
        again = good(fleet(folder, folder / "out", "--json"))  # its own folder is no input
        self.assertEqual(again.stdout, done.stdout)
        answer = json.loads(done.stdout)
        self.assertEqual(validate_json.problems(SCHEMA, answer), [])
        self.assertEqual(answer["fleet"]["traces"], 10)
        skipped = {pathlib.Path(s["path"]).name: (s["code"], s["why"]) for s in answer["fleet"]["skipped"]}
        self.assertEqual(set(skipped), {"aa-other.json", "zz-again.json"})
        self.assertIn("kernel time is in kernels", skipped["aa-other.json"][1])
        self.assertIn("it is rank 4, and so is", skipped["zz-again.json"][1])
        self.assertEqual(answer["suspects"][0]["cause"], "idle-host-launch")

    def test_the_database_says_what_the_answer_says(self):
        out = self.out("a")
        answer = json.loads(good(fleet(self.traces, out, "--json")).stdout)
        database = out / "fleet.sqlite"
        found = rows(database, "SELECT rank, mean_ns, wait_ns_per_step, clock_offset_ns, last_to, late_because, headline FROM traces ORDER BY rank")
        self.assertEqual(found, [(r["rank"], r["mean_ns"], r["wait_ns_per_step"], r["clock_offset_ns"], r["last_to"], r["late_because"],
                                  int(r["headline"])) for r in answer["ranks"]])
        self.assertEqual([row[0] for row in rows(database, "SELECT rank FROM traces WHERE late_because = 'idle-host-launch'")], [3])
        budgets = rows(database, "SELECT rank, sum(ns_per_step) FROM traces JOIN budget ON trace = id GROUP BY id ORDER BY rank")
        self.assertEqual(budgets, [(r["rank"], r["mean_ns"]) for r in answer["ranks"]])
        self.assertEqual(rows(database, "SELECT sum(calls) FROM collectives"), [(answer["fleet"]["collectives"],)])
        self.assertEqual(rows(database, "SELECT DISTINCT count(*) FROM steps WHERE used GROUP BY trace"), [(answer["steps"]["used"],)])
        self.assertEqual(rows(database, "SELECT count(DISTINCT trace) FROM kernels"), [(8,)])
        self.assertIn(("host-launch",), rows(database, "SELECT suspects.id FROM suspects JOIN traces ON trace = traces.id WHERE rank = 3"))
        self.assertEqual(rows(database, "PRAGMA integrity_check"), [("ok",)])

    def test_usage(self):
        for words, what in (([], "no folder given"), (["a", "b"], "2 folders given"), ([self.traces / "missing"], "no such file"),
                            ([sorted(self.traces.iterdir())[0]], "is no folder")):
            done = run(CULPRIT, "fleet", *words, cwd=self.folder)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertIn(what, done.stderr)


if __name__ == "__main__":
    unittest.main()
