"""The folder of the checkpoints: one that is full, that cannot be written, that a ps does not see."""
import os
import re
import shutil
import unittest
from pathlib import Path
from unittest import mock

import life
import program
from life import LifeCase
from program import cluster
from program.cluster import ClusterCase, Plan, by_flags
from program.commands import MOUNTING, NO_MOUNT, Running

FAILED = r"WARNING: the checkpoint of step \d+ failed: (.*) \((\d+) failed since the start\)"
TIMEOUT = 129
FILE_BYTES = 100000  # a shard has more, an index or a piece of memory for two tasks may have too
AGAIN = ["--save_timeout=10"]  # for so long the last save is tried again
LAST_STEP = 1600  # so many that some saves begin after another one has failed, on a busy machine too


def on_tmpfs(options):
    """What is started sees an empty file system at `run`, which is copied to `left` at its end."""
    script = (f"mount -t tmpfs -o {options} none run || exit 99\n"
              '"$@"; code=$?; cp -r run left; exit $code')
    return [*MOUNTING, "sh", "-c", script, "sh"]


# The folder becomes one for reading when there is a file `ro`, and one for writing again when there is `rw`; the job is
# asked to end when there is `end`.
CHANGES = """mount -t tmpfs none run || exit 99
until_there() { until [ -e "$1" ]; do sleep 0.05; done; }
"$@" & job=$!
(until_there ro; mount --bind run run; mount -o remount,bind,ro run; until_there rw; umount -l run
until_there end; kill -TERM $job) > /dev/null 2>&1 & changes=$!
wait $job; code=$?; kill $changes; cp -r run left; exit $code
"""


class ReadOnly(LifeCase):
    @unittest.skipUnless(MOUNTING, NO_MOUNT)
    def test_a_folder_that_is_for_reading_for_a_while_costs_checkpoints_alone(self):
        for tasks in (["--local_ps=2", "--local_workers=2"], []):
            with self.subTest(tasks):
                self.become_read_only(tasks)

    def end_changes(self, running):
        """Whatever has failed: the shell would leave the job behind."""
        for name in ("ro", "rw", "end"):
            (self.folder / name).touch()
        running.process.wait(program.LIMIT_S)

    def become_read_only(self, tasks):
        for name in ("ro", "rw", "end"):
            (self.folder / name).unlink(missing_ok=True)
        shutil.rmtree(self.folder / "left", ignore_errors=True)
        (self.folder / "run").mkdir(exist_ok=True)
        self.write_spec({"train.last_step": 10 ** 9, "train.save_checkpoint_steps": None, "train.save_checkpoint_secs": 1,
                         "train.log_every_steps": 10 ** 6})
        running = Running([*tasks, "spec.json"], self.folder, command=[*MOUNTING, "sh", "-c", CHANGES, "sh"])
        self.addCleanup(running.process.kill)
        self.addCleanup(self.end_changes, running)
        running.wait_for("saved ")
        (self.folder / "ro").touch()
        running.wait_for_match(FAILED, 2)
        self.assertIn("Read-only file system", running.matches(FAILED)[-1][1])
        saved = len(running.matches("saved "))
        (self.folder / "rw").touch()
        running.wait_for_match("saved ", saved + 1)
        (self.folder / "end").touch()
        self.assertEqual(running.end(), 143, running.lines)
        self.assertEqual(running.matches("ERROR"), [])
        self.verify("left")
        self.assert_clean("left")


class Full(LifeCase):
    def goes_on(self, ended, reason):
        """To the last step, which cannot be saved; whoever waits for the result is told so. There may be room later."""
        self.assertEqual(ended.returncode, TIMEOUT, ended.stdout)
        failed = re.findall(FAILED, ended.stdout)
        self.assertIn(reason, failed[0][0])
        counts = [int(count) for _, count in failed]  # five, then ever more seldom
        self.assertEqual(counts, [n for n in range(1, counts[-1] + 1) if n <= 5 or n & (n - 1) == 0])
        self.assertGreater(len(failed), 1)
        of_checkpoints = [line for line in ended.stdout.splitlines()
                          if "WARNING" in line and reason in line and "model.ckpt" in line]
        self.assertLessEqual(len(of_checkpoints), len(failed), of_checkpoints)  # each is told by one task
        self.assertRegex(ended.stdout, rf"ERROR: the last checkpoint failed for 10 s \(--save_timeout\): .*{reason}")
        self.assertEqual(self.result()["step"], LAST_STEP)

    @unittest.skipUnless(MOUNTING, NO_MOUNT)
    def test_training_goes_on_when_the_disk_is_full(self):
        (self.folder / "run").mkdir()
        ended = self.attempt(LAST_STEP, before=on_tmpfs("size=512k"), flags=AGAIN, train__save_checkpoint_steps=40,
                             train__keep_checkpoint_max=20)
        self.goes_on(ended, "No space left on device")
        self.assertIn("saved ", ended.stdout)
        self.assertEqual(self.named_steps("left"), self.steps("left"))
        self.assertLess(self.steps("left")[-1], LAST_STEP)
        for step in self.steps("left"):
            self.verify(f"left/model.ckpt-{step}")
        self.assert_clean("left")
        self.train(LAST_STEP, train__checkpoint_dir="left")

    @unittest.skipUnless(shutil.which("prlimit"), "there is no prlimit")
    def test_training_goes_on_where_files_may_not_grow(self):
        """The last good one stays, and the run continues from there where there is room again."""
        self.train(20)
        before = self.steps()
        ended = self.attempt(LAST_STEP, before=["prlimit", f"--fsize={FILE_BYTES}"],
                             flags=AGAIN, train__save_checkpoint_steps=40)
        self.goes_on(ended, "File too large")
        self.assertEqual((self.steps(), self.named_steps()), (before, before))
        self.verify("run")
        self.assert_clean()
        self.assertRegex(self.train(LAST_STEP), r"model.ckpt-20, step 20\n")
        self.train(LAST_STEP, train__checkpoint_dir="whole")
        self.assert_same("run", "whole")

    @unittest.skipUnless(shutil.which("prlimit"), "there is no prlimit")
    def test_so_it_does_in_a_single_process(self):
        ended = self.attempt(LAST_STEP, ps=0, before=["prlimit", f"--fsize={FILE_BYTES}"],
                             flags=AGAIN, train__save_checkpoint_steps=40)
        self.goes_on(ended, "File too large")
        self.assertFalse((self.folder / "run" / "checkpoint").exists())
        self.assert_clean()

    @unittest.skipUnless(shutil.which("prlimit"), "there is no prlimit")
    def test_where_no_memory_can_be_shared_tasks_use_tcp(self):
        """A piece of shared memory is a file too."""
        self.train(60, before=["prlimit", "--fsize=20000"], train__checkpoint_dir=None)
        losses = self.result()["metrics"]
        self.train(60, train__checkpoint_dir=None)
        self.assertEqual(self.result()["metrics"], losses)


class NotWritable(LifeCase):
    """That is an error at the start, not at the first checkpoint."""

    def refuse(self, words, code=program.BAD_HOST, **options):
        for ps in (2, 0):
            ended = self.attempt(60, ps=ps, **options)
            self.assertEqual(ended.returncode, code, ended.stdout)
            self.assertRegex(ended.stdout, rf"dtrain: train.checkpoint_dir: {words}\n")
            self.assertNotIn(" of 60, loss ", ended.stdout)

    def test_a_folder_below_a_file(self):
        self.refuse(r"cannot make the folder spec.json/run: Not a directory",
                    train__checkpoint_dir="spec.json/run")

    def test_a_folder_where_a_file_of_the_run_is_to_be(self):
        """Nobody waits for that to pass, though the job seems to have begun there."""
        for name in ("checkpoint", ".token", ".ended", "measured.json", "last_spec.json"):
            with self.subTest(name):
                (self.folder / "run" / name).mkdir(parents=True)
                self.refuse(rf"\S+/run/{name}: a folder, where a file of the run is to be: move it away",
                            program.BAD_INPUT)
                shutil.rmtree(self.folder / "run")

    @unittest.skipIf(os.geteuid() == 0, "root may write everywhere")
    def test_a_folder_of_somebody_else(self):
        (self.folder / "run").mkdir(mode=0o500)
        self.refuse(r"cannot write into the folder \S+/run: Permission denied")

    @unittest.skipUnless(MOUNTING, NO_MOUNT)
    def test_a_file_system_for_reading(self):
        (self.folder / "run").mkdir()
        self.refuse(r"cannot write into the folder \S+/run: Read-only file system",
                    before=on_tmpfs("ro"))


# Some ps have a file system for reading only where the chief has its folder.
HIDING = """#!/bin/sh
case "$*" in
{tasks}) exec {mounting} sh -c 'mount -t tmpfs -o ro none {run} && exec "$@"' sh {binary} "$@" ;;
esac
exec {binary} "$@"
"""


@unittest.skipUnless(MOUNTING, NO_MOUNT)
class Hidden(ClusterCase, LifeCase):
    def setUp(self):
        super().setUp()
        for name in ("run", "tmp"):
            (self.folder / name).mkdir()

    def cluster(self, hidden, last_step, **changes):
        """hidden: the ps that do not see the folder."""
        tasks = "|".join(f"*--job_name=ps*--task_index={ps}*" for ps in hidden)
        hiding = self.folder / "hiding"
        hiding.write_text(HIDING.format(tasks=tasks, mounting=" ".join(MOUNTING),
                                         run=self.folder / "run", binary=program.BINARY))
        hiding.chmod(0o700)
        spec = life.spec_with({"train.last_step": last_step,
                               "train.checkpoint_dir": str(self.folder / "run"), **changes})
        environment = {"TMPDIR": str(self.folder / "tmp")}
        plan = Plan(ps=3, told=lambda *task: (by_flags(*task)[0], environment))
        with mock.patch.object(program, "BINARY", str(hiding)), \
             mock.patch.object(cluster, "SPEC", spec):
            return self.run_to_end(plan)

    def compare(self, hidden, **changes):
        self.train(60, ps=3, train__checkpoint_dir="whole",
                   **{key.replace(".", "__"): value for key, value in changes.items()})
        for last_step in (30, 60):
            cluster = self.cluster(hidden, last_step, **changes)
        self.assert_says(cluster, "worker/0", r"begins from \S+/run/model.ckpt-30, step 30\n")
        self.assert_same("whole", "run")
        self.assertEqual(self.later_steps(), [30, 60])
        self.assert_clean()
        self.assertEqual(list((self.folder / "tmp").iterdir()), [])

    def test_one_ps_sends_its_shard_to_the_chief_and_gets_it_from_there(self):
        self.compare([1])

    def test_all_ps_do(self):
        self.compare([0, 1, 2])

    def test_with_parts(self):
        parts = {"type": "fixed_size", "num_shards": 3}
        self.compare([0, 2], **{"placement.partitioner": parts})

    def test_a_shard_of_several_pieces(self):
        """A piece has 1 MiB; here are 3 MB for the largest variable and its slots."""
        flatten, hidden, *rest = life.SPEC["model"]
        self.compare([0, 1], model=[flatten, {**hidden, "units": 320}, *rest])
        largest = max((self.folder / "run").glob("*.data-*"), key=lambda path: path.stat().st_size)
        self.assertGreater(Path(largest).stat().st_size, 2 << 20)


if __name__ == "__main__":
    program.main()
