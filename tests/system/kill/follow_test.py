"""Files that come while a cluster trains on them, whose tasks die: the values are those of a run
that had all of the files from the beginning, so that every row was used once."""
import dataclasses
import os
import time

from program import BAD_INPUT, main
from program.cluster import Cluster
from program.lives import CHIEF, END_S, LIMITS, Life, Plan, dtrain, leftovers

ROWS = 200  # of a file
BATCH = 20
WORKERS = 2
STEPS_OF_FILE = ROWS // BATCH // WORKERS
ENDLESS = 10 ** 6


def line_of(row):
    return f"{row % 89 / 89},word {row * row % 97},{row % 3}\n"


class Follow(Life):
    def setUp(self):
        super().setUp()
        self.files = 0
        os.mkdir(self.folder / "in")

    def add_file(self):
        """Under a name that nobody takes, and then under its own. Its time is of long ago, so that
        it is the renaming alone that says that it is whole."""
        rows = range(self.files * ROWS, (self.files + 1) * ROWS)
        path = self.folder / "in" / f"part-{self.files:03}.csv"
        written = path.with_name(path.name + ".tmp")
        written.write_text("x,word,y\n" + "".join(map(line_of, rows)))
        os.rename(written, path)
        self.files += 1

    def end(self):
        (self.folder / "in" / "_SUCCESS").touch()

    def plan(self, mode, last_step=ENDLESS, **source):
        pattern = str(self.folder / "in" / "*.csv")
        changes = {
            "data.train": {"format": "csv", "file": pattern, "label": "y", **source},
            "data.eval": None,
            "data.columns": [{"column": "numeric", "name": "x"},
                             {"column": "hash", "name": "word", "buckets": 50}],
            "data.batch_size": BATCH,
            "data.shuffle": False,
            "data.scale": 1,
            "model": [{"op": "embedding", "name": "words", "inputs": ["word"], "dimension": 4},
                      {"op": "concat", "inputs": ["words", "x"]},
                      {"op": "dense", "name": "logits", "units": 3}],
            "train.mode": mode,
            "train.last_step": last_step,
            "train.checkpoint_dir": "run",
            "train.save_checkpoint_steps": 4,
        }
        return Plan(ps=2, workers=WORKERS, changes=changes, flags=LIMITS,
                    flags_of={CHIEF: ["--result=result.json"]})

    def begin_following(self, mode, **changes):
        """Asynchronously one worker may take all there is."""
        self.add_file()
        plan = self.plan(mode, follow=True, settle_secs=0.1)
        plan.changes.update(changes)
        return self.begin(plan, have_stepped=all if mode == "sync" else any)

    def train_on_next(self, cluster):
        """A file more; until its last steps are told of. Asynchronously a step is told of by its
        number as of when it was computed."""
        self.add_file()
        is_sync = cluster.plan.changes["train.mode"] == "sync"
        steps = self.files * STEPS_OF_FILE
        cluster.wait_for_step(steps if is_sync else WORKERS * (steps - 1))

    def assert_rows_are_told(self, cluster):
        """Of all files, those that lives before the last one used as well."""
        rows = self.files * ROWS
        self.assertIn(f"of those that came: {rows} of {rows} rows, 0 twice, 0 lost\n",
                      cluster.story())
        self.assertEqual(cluster.result()["rows"], {"per_epoch": rows, "epochs": 1, "used": rows,
                                                    "twice": 0, "lost": 0, "late": 0})

    def disturb(self, cluster):
        self.train_on_next(cluster)
        for names in (["worker/1"], [CHIEF], list(cluster.tasks)):
            cluster.restart(names)
            self.train_on_next(cluster)
        self.add_file()
        self.end()
        self.assert_ends(cluster)
        self.assert_rows_are_told(cluster)

    def test_what_has_no_meaning_is_refused(self):
        self.add_file()
        cluster = Cluster(self.folder, self.plan("sync", follow=True))
        self.addCleanup(cluster.kill)
        for change, words in (
                ("train.epochs=2", "data.train is followed and has no epochs"),
                ("data.train.take=5", "has no meaning with skip and take"),
                ("train.replication=in_graph", "each worker reads for itself")):
            with self.subTest(change):
                code, text = dtrain(cluster, f"--set={change}", "spec.json")
                self.assertEqual(code, BAD_INPUT, text)
                self.assertRegex(text, words)
        code, text = dtrain(cluster, "check", "--set=train.last_step=0", "spec.json")
        self.assertEqual(code, 0, text)
        self.assertIn("training data: rows that come, of 2 columns", text)
        self.assertFalse(os.path.exists(os.path.join(cluster.folder, "run")))

    def test_rows_are_used_once_in_sync(self):
        cluster = self.begin_following("sync")
        self.disturb(cluster)
        steps = self.files * STEPS_OF_FILE
        self.assertEqual(cluster.result()["step"], steps, cluster.story())
        plan = dataclasses.replace(self.plan("sync", steps), order=None)
        reference = self.begin(plan)
        self.assert_ends(reference)
        self.assertEqual(self.differences(cluster, os.path.join(reference.folder, "run")), [])
        self.assertEqual([name for name in leftovers(cluster) if name != "followed"], [])

    def test_all_batches_are_pushed_in_async(self):
        cluster = self.begin_following("async")
        self.disturb(cluster)
        steps = self.files * STEPS_OF_FILE * WORKERS
        self.assertEqual(cluster.result()["step"], steps, cluster.story())

    def test_what_a_lost_worker_had_is_used_in_async(self):
        """It is gone for good, and others use what it had not come to."""
        cluster = self.begin_following("async", **{"train.worker_timeout_secs": 0.5})
        self.train_on_next(cluster)
        cluster.kill_task("worker/1")
        del cluster.tasks["worker/1"]
        self.add_file()
        self.end()
        self.assert_ends(cluster)
        self.assert_rows_are_told(cluster)

    def test_a_checkpoint_by_time_is_made_while_no_file_comes(self):
        for mode in ("sync", "async"):
            with self.subTest(mode):
                self.files = 0
                self.add_file()
                plan = self.plan(mode, follow=True, settle_secs=0.1)
                plan.changes.update({"train.save_checkpoint_steps": 0,
                                     "train.save_checkpoint_secs": 0.2})
                cluster = self.begin(plan, have_stepped=all if mode == "sync" else any)
                for _ in range(2):
                    self.train_on_next(cluster)
                    steps = self.files * STEPS_OF_FILE * (WORKERS if mode == "async" else 1)
                    cluster.wait_until_alive(
                        lambda: steps in cluster.checkpoint_steps(), f"a checkpoint of {steps}")
                self.end()
                self.assert_ends(cluster)
                for path in (self.folder / "in").iterdir():
                    path.unlink()

    def test_who_waits_for_a_file_can_be_stopped(self):
        for mode in ("sync", "async"):
            with self.subTest(mode):
                cluster = self.begin_following(mode)
                self.train_on_next(cluster)
                since = time.monotonic()
                cluster.tasks["ps/0"].process.terminate()
                self.assert_ends(cluster, 143)
                self.assert_prompt(cluster, since, END_S)
                steps = self.files * STEPS_OF_FILE
                least = steps if mode == "sync" else WORKERS * (steps - 1)
                self.assertGreaterEqual(cluster.checkpoint_steps()[-1], least, cluster.story())
                self.files = 0
                for path in (self.folder / "in").iterdir():
                    path.unlink()


if __name__ == "__main__":
    main()
