"""Asynchronous runs that are recorded, and done once more with the same bits."""
import json
import os
import re
import shutil
import struct

import program
from program import changed
from program.clicks import GROWING, CLICKS, TABLES_ONLY
from program.cluster import SPEC

TASKS = ["--local_ps=2", "--local_workers=3"]
DROPS = [*SPEC["model"][:2], {"op": "dropout", "rate": 0.2}, SPEC["model"][2]]
DENSE = changed(SPEC, {"model": DROPS, "data.shuffle": True, "optimizer": {"type": "adam", "learning_rate": 0.003},
                       "train": {"last_step": 140, "save_checkpoint_steps": 50, "log_every_steps": 100}})
TABLES = {**DENSE, **CLICKS, **GROWING}
TAKEN, DROPPED = 1, 2  # kinds of turns (core/cluster/role/turns.h)
ROWS_BEFORE = 3  # of a section that has just begun
OWN = "dtrain/"  # tensors in a checkpoint that say how far data were used, not what was learnt


class Replay(program.FolderCase):
    def run_in(self, *words):
        return program.run(words, self.folder)

    def write(self, spec, name="spec.json"):
        (self.folder / name).write_text(json.dumps(spec))

    def record(self, spec, *words, code=0):
        self.write(spec)
        done = self.run_in(*TASKS, "--record=run", "-o", "first", *words, "spec.json")
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stderr

    def replay(self, *words, code=0, out="again"):
        done = self.run_in("replay", "--record=run", f"--out={out}", *words, "spec.json")
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stderr

    def differing(self, one, other):
        """Names of tensors of what was learnt."""
        done = self.run_in("checkpoint", "diff", one, other)
        names = {line.split(":")[0] for line in done.stdout.splitlines() if not line.startswith("equal: ")}
        return {name for name in names if not name.startswith(OWN)}

    def turns(self, ps):
        """Kind and worker of each, of a record of one section."""
        rows = list(struct.iter_unpack("<4I", (self.folder / f"run.ps-{ps}").read_bytes()))[ROWS_BEFORE:]
        return [(row[0] >> 24 & 0x3f, row[0] & 0xffffff) for row in rows]

    def check_same(self, spec):
        self.record(spec)
        self.replay()
        self.check_equal()

    def check_equal(self):
        self.assertEqual(self.differing("first", "again"), set())

    def test_same_bits(self):
        self.check_same(DENSE)

    def test_same_bits_of_tables_that_grow(self):
        self.check_same(TABLES)

    def check_same_with_drops(self, spec):
        """Whether any are dropped is chance: nearly all runs have some."""
        for i in range(20):
            self.record(spec, "--local_ps=1")
            if any(kind == DROPPED for kind, _ in self.turns(0)):
                break
            shutil.rmtree(self.folder / "first")
            (self.folder / "run.ps-0").unlink()
        else:
            self.fail("no gradient was dropped")
        self.replay()
        self.check_equal()

    def test_same_bits_where_gradients_are_dropped(self):
        self.check_same_with_drops(changed(DENSE, {"train.max_staleness": 1}))

    def test_same_bits_where_gradients_of_few_rows_are_dropped(self):
        """Of many pushes a ps has no rows: those of one that was dropped are not the next one's."""
        self.check_same_with_drops({**changed(TABLES, {"train.max_staleness": 1, "data.batch_size": 1}),
                                    "model": [{**TABLES_ONLY["model"][0], "capacity": "dynamic"}]})

    def files_in(self, *folders):
        paths = [path for folder in folders for path in sorted((self.folder / folder).rglob("*")) if path.is_file()]
        return {str(path): path.read_bytes() for path in paths}

    def test_writes_nowhere_else(self):
        """Where the run publishes and notes, somebody may be reading, and the run may still write."""
        noted = {"type": "final_evaluation", "path": "noted/final.json"}
        (self.folder / "noted").mkdir()
        self.record(changed(DENSE, {"train.publish": {"every_secs": 1, "to": "served"}, "train.summary_dir": "seen",
                                    "train.log_step_count_steps": 10, "train.hooks": [noted], "train.keep_best": 1,
                                    "train.evaluate_every_steps": 50}))
        before = self.files_in("first", "served", "seen", "noted")
        for folder in ("first", "served", "seen", "noted"):
            self.assertTrue(any(f"/{folder}/" in name for name in before), folder)
        self.replay()
        self.assertEqual(self.files_in("first", "served", "seen", "noted"), before)
        self.check_equal()

    def test_to_a_step(self):
        """A checkpoint in the middle is one of the places where all ps have had the same gradients."""
        ends = {"type": "command", "at": ["checkpoint"], "command": "test $DTRAIN_STEP = 0", "on_failure": "stop"}
        self.record(changed(DENSE, {"train.last_step": 10 ** 6, "train.hooks": [ends]}), code=program.BAD_HOST)
        step = min(int(step) for name in os.listdir(self.folder / "first")
                   for step in re.findall(r"^model\.ckpt-(\d+)\.index$", name) if step != "0")
        story = self.replay(f"--to_step={step}")
        self.assertIn(f"replays steps 0 to {step} of 2 ps and 3 workers", story)
        self.assertEqual(self.differing(f"first/model.ckpt-{step}", "again"), set())

    def test_from_a_later_step(self):
        self.record(changed(DENSE, {"train.last_step": 60}))
        self.write(DENSE)
        again = self.folder / "again"
        again.mkdir()
        for path in [self.folder / "first" / "checkpoint", *(self.folder / "first").glob("model.ckpt-60.*")]:
            shutil.copy(path, again)
        self.record(DENSE)
        self.assertIn("copy the checkpoint of that step", self.replay(code=2, out="empty"))
        self.replay()
        self.check_equal()

    def test_number_that_is_not_finite(self):
        """The same worker, step and reason; and of which rows it was."""
        spec = changed(DENSE, {"loss": "mean_squared_error", "model": DROPS[:-1] + [{"op": "dense", "name": "number", "units": 1}],
                               "metrics": [], "optimizer": {"type": "gradient_descent", "learning_rate": 1000}})
        bad = r"step \d+: the (?:loss|gradient) .*\(exit code 3\)"
        first = re.search(bad, self.record(spec, code=3))
        story = self.replay(code=3)
        self.assertIsNotNone(first)
        self.assertRegex(story, bad)
        self.assertRegex(story, r"it came from push \d+ of worker/\d, of batch \d+: rows \d+ to \d+ of the data")

    def test_end_that_is_missing(self):
        """As of a ps that was killed: to the last step that all have."""
        self.record(DENSE)
        path = self.folder / "run.ps-1"
        with path.open("r+b") as file:
            file.truncate(path.stat().st_size // 2 + 5)
        self.assertRegex(self.replay(), r"\d+ steps that were recorded after that are left out")

    def test_refused(self):
        self.write(DENSE)
        self.assertIn("cannot read run.ps-0", self.replay(code=2))
        self.record(DENSE)
        self.assertIn("the record is of another spec", self.replay("--seed=7", code=2, out="seed"))
        self.assertIn("there is a checkpoint already", self.replay(code=2, out="first"))
        (self.folder / "odd").mkdir()
        (self.folder / "odd/checkpoint").write_text("no list\n")
        self.assertIn("odd/checkpoint: line 1: ", self.replay(code=2, out="odd"))
        whole = (self.folder / "run.ps-1").read_bytes()
        with (self.folder / "run.ps-1").open("r+b") as file:
            file.seek(-4, os.SEEK_END)
            file.write(struct.pack("<I", 2 + 3))  # no worker
        self.assertIn(f"run.ps-1: damaged at byte {len(whole) - 16}", self.replay(code=2, out="damaged"))
        with (self.folder / "run.ps-1").open("r+b") as file:
            file.seek(4 * 16)
            file.write(b"\xff" * 16)
        self.assertIn("run.ps-1: damaged at byte 64", self.replay(code=2, out="damaged"))
        with (self.folder / "run.ps-1").open("r+b") as file:
            file.write(whole)
        with (self.folder / "run.ps-0").open("r+b") as file:
            file.seek(2 * 16 + 8)
            file.write(struct.pack("<d", 0.5))
        self.assertIn("put into --out the settings.json", self.replay(code=2, out="rates"))

    def test_records_into_records_alone(self):
        self.write(changed(DENSE, {"train.last_step": 20}))
        words = [*TASKS, "--record=run", "-o", "first", "spec.json"]
        (self.folder / "run.ps-0").write_text("a text that somebody wants to keep\n")
        done = self.run_in(*words)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("run.ps-0 is there, and is no record", done.stderr)
        self.assertEqual((self.folder / "run.ps-0").read_text(), "a text that somebody wants to keep\n")
        (self.folder / "run.ps-0").unlink()
        os.mkfifo(self.folder / "run.ps-0")
        done = self.run_in(*words)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("run.ps-0 is no file", done.stderr)
        done = self.run_in(*TASKS, f"--record={'x/' * 2100}", "-o", "first", "spec.json")
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("too long a path", done.stderr)

    def test_several_ps_that_drop(self):
        """What a worker sends to one ps waits there for what another one says."""
        said = self.record(changed(DENSE, {"train.max_staleness": 1, "train.last_step": 20}))
        self.assertIn("nothing is recorded: with train.max_staleness a run is done again only where it has one ps", said)
        self.assertEqual([(self.folder / f"run.ps-{ps}").stat().st_size for ps in range(2)], [0, 0])

    def test_synchronous(self):
        self.assertIn("nothing is recorded: synchronous training has the same bits in any case",
                      self.record(changed(DENSE, {"train.mode": "sync", "train.last_step": 20})))


if __name__ == "__main__":
    program.main()
