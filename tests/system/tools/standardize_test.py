"""Columns that are standardized by the training data: the same numbers in every task, kept beside the checkpoints."""
import json
import math
import random
import statistics

import program
import tool
from program.lives import LIMITS

KEPT = "measured.json"


class Standardize(tool.ToolCase):
    def setUp(self):
        super().setUp()
        draw = random.Random(3)
        self.ages = [draw.randrange(18, 90) for _ in range(240)]
        pairs = [(draw.gauss(1000, 5), draw.random()) for _ in self.ages]
        rows = [f"{age},{a:.4f} {b:.4f},{int(age > 50)}\n"
                for age, (a, b) in zip(self.ages, pairs, strict=True)]
        (self.folder / "rows.csv").write_text("age,pair,y\n9999,0 0,0\n" + "".join(rows))

    def columns(self, standard):
        """By the training data, or by numbers that are given."""
        own = {"standardize": True, **standard.get("age", {})}
        pair = {"standardize": True, **standard.get("pair", {})}
        return [{"column": "numeric", "name": "age", **own},
                {"column": "numeric", "name": "pair", "separator": " ", "max": 2, "scale": 0.5, **pair}]

    def write_spec(self, folder, standard=None, **train):
        source = {"format": "csv", "file": "rows.csv", "label": "y"}
        (self.folder / "spec.json").write_text(json.dumps({
            "data": {"train": {**source, "skip": 1, "take": 200}, "eval": {**source, "skip": 201},
                     "columns": self.columns(standard or {}), "batch_size": 10},
            "model": [{"op": "concat", "inputs": ["age", "pair"]}, {"op": "dense", "units": 2}],
            "loss": "softmax_cross_entropy", "metrics": ["accuracy"],
            "optimizer": {"type": "gradient_descent", "learning_rate": 0.1},
            "train": {"mode": "sync", "last_step": 40, "checkpoint_dir": folder, **train}}))

    def train(self, folder, *flags, standard=None, **train):
        """The result, and the numbers that were kept, as text."""
        self.write_spec(folder, standard, **train)
        ended = self.dtrain(*flags, "--result=run.json", "spec.json")
        self.assertEqual(ended.returncode, 0, ended.stderr)
        result = json.loads((self.folder / "run.json").read_text())
        return result["metrics"], (self.folder / folder / KEPT).read_text()

    def by_name(self, kept):
        columns = {column.pop("name"): column for column in json.loads(kept)["columns"]}
        self.assertEqual(list(columns), ["age", "pair"])
        return columns

    def test_the_training_rows_have_mean_0_and_deviation_1(self):
        """Neither the rows before nor those to evaluate by are looked at."""
        metrics, kept = self.train("run")
        kept = self.by_name(kept)
        self.assertAlmostEqual(kept["age"]["mean"][0], statistics.mean(self.ages[:200]), places=9)
        self.assertAlmostEqual(kept["age"]["deviation"][0], statistics.pstdev(self.ages[:200]), places=9)
        self.assertEqual(len(kept["pair"]["mean"]), 2)
        self.assertGreater(metrics["accuracy"], 0.9)
        again, _ = self.train("given", standard=kept)
        self.assertEqual(again, metrics)
        without, _ = self.train("plain", standard={
            "age": {"mean": [0], "deviation": [1]}, "pair": {"mean": [0, 0], "deviation": [1, 1]}})
        self.assertNotEqual(without, metrics)

    def test_times_in_seconds_are_standardized(self):
        """Means and deviations of numbers that a float does not tell apart; and data.offset of a table of numbers."""
        rows = [(1700000000 + i, i % 3) for i in range(9)]
        (self.folder / "times.csv").write_text("t,y\n" + "".join(f"{t},{y}\n" for t, y in rows))
        source = {"format": "csv", "file": "times.csv", "label": "y", "label_type": "number"}
        identity = [{"op": "dense", "name": "o", "units": 1, "use_bias": False,
                     "kernel_initializer": "ones"}]
        spec = {"data": {"train": source, "batch_size": 9}, "model": identity, "loss": "mean_squared_error",
                "optimizer": {"type": "gradient_descent", "learning_rate": 0},
                "train": {"last_step": 1, "checkpoint_dir": "times"}}
        mean, deviation = statistics.mean(t for t, _ in rows), statistics.pstdev(t for t, _ in rows)
        for data, model, wanted in (
                ({"columns": [{"column": "numeric", "name": "t", "standardize": True}]},
                 [{**identity[0], "inputs": ["t"]}], [(t - mean) / deviation for t, _ in rows]),
                ({"offset": -1700000000}, identity, [t - 1700000000 for t, _ in rows]),
                ({"offset": -1700000000 * 0.001, "scale": 0.001}, identity,
                 [0.001 * t - 1700000000 * 0.001 for t, _ in rows])):
            with self.subTest(data=data):
                (self.folder / "spec.json").write_text(json.dumps({**spec, "data": {**spec["data"], **data}, "model": model}))
                ended = self.dtrain("--changed_features=accept", "--steps=1", "spec.json")
                self.assertEqual(ended.returncode, 0, ended.stderr)
                ended = self.dtrain("predict", "--checkpoint=times", "--data=times.csv", "--out=-",
                                    "--changed_features=accept", "spec.json")
                got = [float(line.split(",")[1]) for line in ended.stdout.split()[1:]]
                for a, b in zip(got, wanted, strict=True):
                    self.assertAlmostEqual(a, b, places=5)

    def test_what_is_missing_may_be_the_mean(self):
        """Of the numbers that are there; so it is 0 where the others have mean 0 and deviation 1."""
        there = [3, 9, 30, 42]
        rows = [f"{x},{i % 2}" for i, x in enumerate([*there, "", ""])]
        (self.folder / "rows.csv").write_text("\n".join(["x,y", *rows]) + "\n")
        for log1p in (False, True):
            column = {"column": "numeric", "name": "x", "standardize": True, "log1p": log1p, "default": "mean"}
            self.write_identity(column, "log" if log1p else "plain")
            numbers = [math.log1p(x) if log1p else x for x in there]
            mean, deviation = statistics.mean(numbers), statistics.pstdev(numbers)
            ended = self.dtrain("spec.json")
            self.assertEqual(ended.returncode, 0, ended.stderr)
            said = self.run_ok("predict", f"--checkpoint={'log' if log1p else 'plain'}", "--data=rows.csv", "--out=-", "spec.json")
            got = [float(line.split(",")[1]) for line in said.split()[1:]]
            for a, b in zip(got, [(x - mean) / deviation for x in numbers] + [0, 0], strict=True):
                self.assertAlmostEqual(a, b, places=5)

    def test_a_default_that_is_far_from_the_mean_is_warned_of(self):
        rows = "".join(f"{30 + i % 20},{i % 2}\n" for i in range(40))
        (self.folder / "rows.csv").write_text("x,y\n" + rows + ",0\n")
        for i, (settings, far) in enumerate([({"default": 0}, True), ({"default": 40}, False), ({"default": "mean"}, False),
                                             ({"default": 0, "min": 30}, False)]):
            self.write_identity({"column": "numeric", "name": "x", "standardize": True, **settings}, f"run-{i}")
            said = self.dtrain("spec.json")
            self.assertEqual((said.returncode, 'column "x": a row without a value counts as 0' in said.stderr), (0, far), said.stderr)
            said = self.dtrain("predict", f"--checkpoint=run-{i}", "--data=rows.csv", "--out=-", "spec.json")
            self.assertNotIn("a row without a value", said.stderr)

    def write_identity(self, column, folder):
        """A model that says what the column is."""
        (self.folder / "spec.json").write_text(json.dumps({
            "data": {"train": {"format": "csv", "file": "rows.csv", "label": "y", "label_type": "number"}, "columns": [column],
                     "batch_size": 2},
            "model": [{"op": "dense", "name": "o", "inputs": ["x"], "units": 1, "use_bias": False, "kernel_initializer": "ones"}],
            "loss": "mean_squared_error", "optimizer": {"type": "gradient_descent", "learning_rate": 0},
            "train": {"last_step": 1, "checkpoint_dir": folder}}))

    def test_a_cluster_has_the_same_bits(self):
        _, alone = self.train("run")
        cluster = ("--local_ps=2", "--local_workers=2", *LIMITS)
        metrics, kept = self.train("cluster", *cluster)
        self.assertEqual(kept, alone)
        given, _ = self.train("given", *cluster, standard=self.by_name(kept))
        self.assertEqual(given, metrics)

    def test_a_checkpoint_needs_no_training_data(self):
        metrics, kept = self.train("run")
        self.run_ok("eval", "--checkpoint=run", "--result=eval.json", "spec.json")
        evaluated = json.loads((self.folder / "eval.json").read_text())["metrics"]
        self.assertEqual(evaluated, metrics)
        lines = (self.folder / "rows.csv").read_text().splitlines()
        (self.folder / "new.csv").write_text("\n".join([lines[0], *lines[202:]]) + "\n")
        words = ("predict", "--checkpoint=run", "--out=-", "--data=new.csv", "spec.json")
        before = self.run_ok(*words)
        (self.folder / "rows.csv").unlink()
        self.assertEqual(self.run_ok(*words), before)
        (self.folder / "run" / KEPT).unlink()
        self.assertRegex(self.run_bad(*words), r'run/measured\.json: No such file or directory: the run '
                         'that made the checkpoint has kept there what column "age" is standardized by')
        for text, why in (("{", "measured.json: line 1, column 1"),
                          (kept.replace("age", "aged"), 'mean and deviation of the 1 numbers of column "age"'),
                          (kept.replace("deviation", "deviance"), "measured.json: columns[0]")):
            (self.folder / "run" / KEPT).write_text(text)
            self.assertIn(why, self.run_bad(*words))

    def test_rows_that_are_left_out_count_for_nothing(self):
        """Whichever column or label is broken, and in front of those that are skipped."""
        good = [f"{age},{age} 1,{age % 2}\n" for age in range(40, 60)]
        bad = ["x,1 2,0\n", "7000,1,0\n", "7000,1 2,no\n"]
        (self.folder / "rows.csv").write_text("age,pair,y\n" + "".join(
            bad[:1] + good[:1] + bad[1:] + good[1:]))
        self.write_spec("run")
        ended = self.dtrain("--set=data.train.bad_rows=3", "--set=data.train.skip=2", "--set=data.train.take=10",
                            "--set=data.eval.bad_rows=3", "--set=data.eval.skip=12", "spec.json")
        self.assertEqual(ended.returncode, 0, ended.stderr)
        kept = self.by_name((self.folder / "run" / KEPT).read_text())
        self.assertEqual(kept["age"]["mean"], [statistics.mean(range(42, 52))])

    def test_a_checkpoint_that_is_cut_anew_keeps_them(self):
        _, kept = self.train("run")
        self.run_ok("checkpoint", "reshard", "run", "--ps=2", "cut")
        self.assertEqual(json.loads((self.folder / "cut" / KEPT).read_text()), json.loads(kept))
        self.run_ok("eval", "--checkpoint=cut", "spec.json")

    def test_a_run_goes_on_by_the_same_numbers(self):
        _, kept = self.train("run")
        text = (self.folder / "rows.csv").read_text()
        (self.folder / "rows.csv").write_text(text.replace("\n2", "\n7"))
        _, later = self.train("run", last_step=60)
        self.assertEqual(later, kept)
        _, other = self.train("other")
        self.assertNotEqual(other, kept)

    def test_a_number_that_never_changes_is_left_as_it_is(self):
        (self.folder / "rows.csv").write_text("age,pair,y\n" + "3,1 2,0\n" * 240)
        _, kept = self.train("run")
        self.assertEqual(self.by_name(kept)["age"], {"mean": [3], "deviation": [1]})

    def test_what_cannot_be_is_told(self):
        for standard, why in ((None, None), ({"age": {"mean": [1]}}, "expected 1 numbers each"),
                              ({"age": {"standardize": False, "mean": [1]}}, "for standardize only"),
                              ({"pair": {"mean": [1], "deviation": [1]}}, "expected 2 numbers each"),
                              ({"age": {"deviation": [0]}}, "deviation"),
                              ({"age": {"default": "median"}}, 'default: expected a number of at most 3.4e38, "mean" or null'),
                              ({"age": {"default": "mean", "standardize": False}}, "of one number that is standardized"),
                              ({"pair": {"default": "mean"}}, "of one number that is standardized"),
                              ({"age": {"source": "aged"}}, 'has no cell "aged"'),
                              ({"age": {"source": "y"}}, '"y" is the label'),
                              ({"age": {"source": "pair"}}, "rows.csv: line 3: column \"age\" (cell \"pair\"): expected a number")):
            self.write_spec("run", standard)
            if why:
                self.assertIn(why, self.run_bad("check", "spec.json"))
            else:
                self.run_ok("check", "spec.json")
        self.assertFalse((self.folder / "run").exists())


if __name__ == "__main__":
    program.main()
