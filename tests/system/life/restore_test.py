"""A run that is ended and started again is the run that was never ended, whoever held what: any
number of ps, any partitioning, a single process."""
import json
import os
import shutil
import tempfile

import life
import program
from program.clicks import CLICKS, GROWING
from life import LifeCase

PARTS = "placement__partitioner"
HALF, WHOLE = 30, 60  # steps; an epoch has 10 or 20


def in_parts(count):
    """The option that cuts every variable that is large enough; count may be a partitioner."""
    if isinstance(count, int):
        return {PARTS: {"type": "fixed_size", "num_shards": count}} if count else {}
    return {PARTS: count}


class Servers(LifeCase):
    """All steps at once, and half and half with others in between."""

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="dtrain-test-")
        cls.addClassCleanup(folder.cleanup)
        cls.wholes, cls.runs = folder.name, {}

    def whole(self, **changes):
        """The folder of all steps at once; the same run once."""
        key = json.dumps(changes, sort_keys=True)
        if key not in self.runs:
            folder = os.path.join(self.wholes, str(len(self.runs)))
            self.train(WHOLE, ps=2, train__checkpoint_dir=folder, **changes)
            self.runs[key] = folder
        return self.runs[key]

    def compare(self, first, second, **changes):
        """Each: (ps, parts); ps 0 is a single process."""
        shutil.rmtree(self.folder / "run", ignore_errors=True)
        changes["workers"] = 1 if 0 in (first[0], second[0]) else 2
        whole = self.whole(**changes)
        self.train(HALF, ps=first[0], **in_parts(first[1]), **changes)
        text = self.train(WHOLE, ps=second[0], **in_parts(second[1]), **changes)
        self.assertRegex(text, rf"begins from \S+/run/model.ckpt-{HALF}, step {HALF}\n")
        self.assertRegex(text, rf"step {HALF + 1} of {WHOLE}, loss ")
        self.assert_same(whole, "run")
        self.assertEqual(self.later_steps(), [HALF, WHOLE])
        self.assert_clean()

    def test_more(self):
        self.compare((1, 0), (3, 0))

    def test_a_partitioner_comes(self):
        self.compare((2, 0), (3, 3))

    def test_fewer_and_a_partitioner_goes(self):
        self.compare((3, 2), (2, 0))

    def test_large_variables_are_cut_and_become_whole(self):
        flatten, hidden, *others = life.SPEC["model"]
        large = {"model": [flatten, {**hidden, "units": 400}, *others]}
        self.compare((2, "none"), (3, "balanced"), **large)
        self.compare((2, "balanced"), (0, 0), **large)
        show = self.dtrain("checkpoint", "show", f"run/model.ckpt-{HALF}").stdout
        self.assertRegex(show, r"hidden/kernel +float32 +\[784, 400\] +2 +1 0\n")

    def test_more_ps_than_variables(self):
        self.compare((1, 3), (6, 0))

    def test_a_single_process_goes_on_where_a_cluster_ended(self):
        self.compare((3, 2), (0, 0))

    def test_a_cluster_goes_on_where_a_single_process_ended(self):
        self.compare((0, 0), (2, 3))

    def test_a_single_process_goes_on_where_it_ended(self):
        self.compare((0, 0), (0, 0))

    def test_every_optimizer_goes_on(self):
        for types in (({"type": "adagrad"}, {"type": "gradient_descent"}, {"type": "rmsprop", "momentum": 0.5}),
                      ({"type": "adagrad_da"}, {"type": "momentum", "momentum": 0.9}, {"type": "ftrl", "l1": 0.001})):
            several = [{**one, "learning_rate": 0.02} for one in types]
            several[0]["match"], several[1]["match"] = "hidden/*", "*/bias"
            with self.subTest(several):
                self.compare((2, 2), (1, 0), optimizer=None, optimizers=several)

    def test_several_optimizers_go_on(self):
        several = {"optimizer": None, "optimizers": [
            {"match": "hidden/*", "type": "ftrl", "learning_rate": 0.05, "l1": 0.0001},
            {"match": "*/bias", "type": "adam", "learning_rate": 0.01},
            {"type": "adam", "learning_rate": 0.005, "beta1": 0.8}]}
        self.compare((2, 3), (3, 0), **several)
        names = set(self.arrays(f"run/model.ckpt-{WHOLE}"))
        self.assertEqual({name for name in names if not name.startswith("dtrain/")}, {
            "global_step", "beta1_power", "beta2_power", "beta1_power_1", "beta2_power_1",
            "hidden/kernel", "hidden/kernel/Ftrl", "hidden/kernel/Ftrl_1",
            "hidden/bias", "hidden/bias/Ftrl", "hidden/bias/Ftrl_1",
            "logits/kernel", "logits/kernel/Adam", "logits/kernel/Adam_1",
            "logits/bias", "logits/bias/Adam", "logits/bias/Adam_1"})

    def test_tables_cut_by_turns_go_on(self):
        mod = {"placement__partition_strategy": "mod"}
        self.compare((3, 3), (2, 0), **CLICKS, **mod)
        parts = self.arrays(f"run/model.ckpt-{HALF}")
        for part, rows in enumerate((14, 13, 13)):
            for slot in ("", "/Adagrad"):
                name = f"deep/c1/embedding_weights/part_{part}{slot}"
                self.assertEqual(len(parts[name]), rows * 5)
        self.compare((2, 5), (0, 0), **CLICKS, **mod)

    def test_tables_cut_by_turns_are_read_by_other_numbers_of_parts(self):
        mod = {**CLICKS, "placement__partition_strategy": "mod"}
        for folder, parts in (("same", (3, 3)), ("other", (2, 5))):
            for step, count in ((HALF, parts[0]), (WHOLE, parts[1])):
                self.train(step, ps=2, train__checkpoint_dir=folder, **in_parts(count), **mod)
            self.train(WHOLE + 1, ps=2, train__checkpoint_dir=folder, **CLICKS)
        self.assert_same("same", "other")

    def test_growing_tables_go_on(self):
        for first in ((1, 0), (0, 0)):
            with self.subTest(first=first):
                self.compare(first, (2, 0), **{**CLICKS, **GROWING})

    def test_backup_workers_and_asynchronous_runs_end_at_their_step(self):
        for changes in ({"train__replicas_to_aggregate": 1}, {"train__mode": "async", "train__max_staleness": 0}):
            with self.subTest(changes):
                folder = {"train__checkpoint_dir": f"run-{len(changes)}-{sorted(changes)[-1]}"}
                self.train(HALF, ps=3, workers=3, **changes, **folder)
                self.train(WHOLE, ps=2, workers=3, **changes, **folder)
                for step in self.steps(folder["train__checkpoint_dir"]):
                    self.verify(f"{folder['train__checkpoint_dir']}/model.ckpt-{step}")


class Workers(LifeCase):
    """Their number is not part of what is saved."""

    def go_on(self, before, after, **changes):
        self.train(HALF, workers=before, **changes)
        middle = self.result()["metrics"]["loss"]
        text = self.train(WHOLE, workers=after, **changes)
        self.assertRegex(text, rf"step {HALF + 1} of {WHOLE}, loss ")
        if changes.get("train__mode") == "async":  # batches are handed out to whoever comes
            self.assertNotIn("left out", text)
            self.assertEqual(self.result()["rows"]["lost"], 0)
        else:
            self.assertRegex(text, rf"the checkpoint is of {before} workers? with batches of \d+ of "
                                   rf"\d+ rows .*, this run has {after} workers? with .*: it continues "
                                   r"with epoch \d+")
        self.assertLess(self.result()["metrics"]["loss"], middle)
        self.verify("run")
        self.assertRegex(self.checkpoint("show", "run", "dtrain/ledger/ps_00000"),
                         rf"int64 \[{after}, \d\]")
        return self.result()

    def test_more_workers_share_the_steps_that_are_left(self):
        self.assertEqual(self.go_on(1, 3)["own_steps"], WHOLE - HALF)

    def test_where_nothing_is_left_to_train_no_row_is_lost(self):
        self.train(HALF, workers=2)
        rows = self.result()["rows"]
        text = self.train(HALF, workers=3, data__batch_size=7)
        self.assertIn("nothing was trained", text)
        self.assertNotIn("left out", text)
        self.assertEqual(self.result()["rows"], rows)

    def test_fewer_workers_go_on(self):
        self.assertEqual(self.go_on(3, 1)["own_steps"], WHOLE - HALF)

    def test_fewer_and_more_asynchronously(self):
        self.go_on(3, 2, train__mode="async")
        self.train(WHOLE + HALF, workers=4, train__mode="async")
        self.verify("run")


class Length(LifeCase):
    def test_a_run_that_was_at_its_end_ends_at_once(self):
        self.train(60)
        text = self.train(60)
        self.assertRegex(text, r"model.ckpt-60, step 60\n")
        self.assertEqual((self.result()["own_steps"], self.later_steps()), (0, [60]))

    def test_num_steps_counts_from_where_the_run_begins(self):
        steps = {"train__last_step": None, "train__num_steps": 40}
        for end in (40, 80):
            ended = self.attempt(0, **steps)
            self.assertEqual((ended.returncode, self.result()["step"]), (0, end), ended.stdout)

    def test_a_checkpoint_beyond_the_last_step_is_not_trained_on(self):
        self.train(60)
        ended = self.attempt(40)
        self.assertEqual(ended.returncode, 0, ended.stdout)
        self.assertEqual((self.result()["own_steps"], self.later_steps()), (0, [60]))

    def test_epochs_go_on_from_the_middle_of_one(self):
        self.train(50, train__checkpoint_dir="whole", train__last_step=50)
        self.train(25)
        epochs = {"train__last_step": None, "train__epochs": 5}  # of 10 steps
        ended = self.attempt(0, **epochs)
        self.assertEqual((ended.returncode, self.result()["step"]), (0, 50), ended.stdout)
        self.assert_same("whole", "run")

    def test_a_checkpoint_of_another_model_is_refused(self):
        self.train(40)
        flat = life.SPEC["model"][0]
        for name, words in (("logits", r"logits/kernel has shape \[16, 10\] there, \[784, 10\] here"),
                            ("logit", r'no variable "logit/(\w+)" \(did you mean "logits/\1"')):
            model = [flat, {"op": "dense", "name": name, "units": 10}]
            ended = self.attempt(80, model=model)
            self.assertEqual(ended.returncode, program.BAD_INPUT, ended.stdout)
            self.assertRegex(ended.stdout, rf"cannot restore \S+/run/model.ckpt-40: {words}")
            self.assertEqual(self.later_steps(), [40])


if __name__ == "__main__":
    program.main()
