"""Labels that are words: the same classes in every task, kept beside the checkpoints, named by predict."""
import csv
import io
import json
import random

import program
import tool
from program.lives import LIMITS

KEPT = "measured.json"
SORTED = ["Birch", "ash", "oak, red"]  # by their bytes


class Labels(tool.ToolCase):
    def setUp(self):
        super().setUp()
        draw = random.Random(5)
        self.rows = [(draw.gauss(k, 0.1), draw.gauss(-k, 0.1), SORTED[k]) for k in (2, 0, 1) for _ in range(50)]
        draw.shuffle(self.rows)
        self.write_csv("rows.csv", self.rows)

    def write_csv(self, name, rows):
        (self.folder / name).write_text("a,b,tree\n" + "".join(f'{a:.4f},{b:.4f},"{tree}"\n' for a, b, tree in rows))

    def source(self, **changes):
        return {"format": "csv", "file": "rows.csv", "label": "tree", "label_type": "word", **changes}

    def write_spec(self, folder="run", train=None, evaluation=None, model=None, **data):
        (self.folder / "spec.json").write_text(json.dumps({
            "data": {"train": train or self.source(take=100), "eval": evaluation or self.source(skip=100),
                     "batch_size": 10, **data},
            "model": model or [{"op": "dense", "units": 3}], "loss": "softmax_cross_entropy", "metrics": ["accuracy"],
            "optimizer": {"type": "adam", "learning_rate": 0.1},
            "train": {"mode": "sync", "last_step": 100, "checkpoint_dir": folder}}))

    def train(self, *flags):
        ended = self.dtrain(*flags, "--result=run.json", "spec.json")
        self.assertEqual(ended.returncode, 0, ended.stderr)
        return json.loads((self.folder / "run.json").read_text())["metrics"]

    def kept(self, folder="run"):
        return json.loads((self.folder / folder / KEPT).read_text())["classes"]

    def predict(self, *flags):
        return self.run_ok("predict", "--checkpoint=run", "--out=-", *flags, "spec.json")

    def test_the_words_are_sorted_and_named(self):
        self.write_spec()
        self.assertGreater(self.train()["accuracy"], 0.9)
        self.assertEqual(self.kept(), SORTED)
        (self.folder / "rows.csv").unlink()
        (self.folder / "new.csv").write_text("a,b\n0,0\n2,-2\n")
        table = list(csv.DictReader(io.StringIO(self.predict("--data=new.csv"))))
        self.assertEqual(list(table[0]), ["row", "class", *(f"probability_{tree}" for tree in SORTED)])
        lines = [json.loads(line) for line in self.predict("--data=new.csv", "--format=jsonl").splitlines()]
        for row, line, tree in zip(table, lines, ("Birch", "oak, red"), strict=True):
            self.assertEqual((row["class"], line["class"]), (tree, tree))
            self.assertEqual(max(line["probabilities"], key=line["probabilities"].get), tree)
        (self.folder / "run" / KEPT).unlink()
        self.assertIn("has kept there the words that labels are",
                      self.run_bad("predict", "--checkpoint=run", "--data=new.csv", "--out=-", "spec.json"))

    def test_a_cluster_has_the_same_classes_in_whatever_files_they_lie(self):
        self.write_spec()
        self.train()
        for i in range(2):
            self.write_csv(f"part{i}.csv", self.rows[100 * i:][:100])
        parts = self.source(file=["part1.csv", "part0.csv"])
        self.write_spec("cluster", train=parts)
        self.train("--local_ps=2", "--local_workers=2", *LIMITS)
        self.assertEqual(self.kept("cluster"), self.kept())

    def test_words_that_are_listed_have_that_order(self):
        listed = list(reversed(SORTED))
        self.write_spec(train=self.source(classes=listed))
        metrics = self.train()
        self.assertEqual(self.kept(), listed)
        self.run_ok("eval", "--checkpoint=run", "--result=eval.json", "spec.json")
        self.assertEqual(json.loads((self.folder / "eval.json").read_text())["metrics"], metrics)

    def test_a_run_goes_on_with_its_classes(self):
        self.write_spec()
        self.train()
        self.write_csv("rows.csv", [(a, b, "zz" if tree == "ash" else tree) for a, b, tree in self.rows])
        ended = self.dtrain("spec.json")
        self.assertEqual(ended.returncode, program.BAD_INPUT)
        self.assertRegex(ended.stderr, r'rows\.csv: line \d+: column 2 \(tree\): expected a word that is a class, got "zz"')
        self.run_ok("checkpoint", "reshard", "run", "--ps=2", "cut")
        self.assertEqual(self.kept("cut"), SORTED)

    def test_two_words_are_no_and_yes(self):
        self.write_csv("rows.csv", [(a, b, "yes" if a > 1 else "no") for a, b, _ in self.rows])
        self.write_spec(model=[{"op": "dense", "units": 1}])
        self.train("--set=loss=sigmoid_cross_entropy")
        (self.folder / "new.csv").write_text("a,b\n0,0\n2,-2\n")
        words = ("--data=new.csv", "--set=loss=sigmoid_cross_entropy")
        table = list(csv.DictReader(io.StringIO(self.predict(*words))))
        self.assertEqual(list(table[0]), ["row", "class", "probability_yes"])
        self.assertEqual([row["class"] for row in table], ["no", "yes"])

    def test_words_of_json_lines_and_of_streams(self):
        (self.folder / "rows.jsonl").write_text("".join(
            json.dumps({"a": a, "b": b, "tree": [tree] if a > 1 else tree}) + "\n" for a, b, tree in self.rows))
        columns = [{"column": "numeric", "name": name} for name in "ab"]
        model = [{"op": "concat", "inputs": ["a", "b"]}, {"op": "dense", "units": 3}]
        for name, source in (("jsonl", {"format": "jsonl", "file": "rows.jsonl"}), ("stream", {"stream": "always"})):
            self.write_spec(name, train=self.source(take=100, **source), evaluation=self.source(skip=100, **source),
                            model=model, columns=columns)
            self.assertGreater(self.train()["accuracy"], 0.9, name)
            self.assertEqual(self.kept(name), SORTED)

    def test_words_of_libsvm(self):
        """Of the data, listed, in several files, and of the columns of its rows; stats counts them."""
        half = len(self.rows) // 2
        for name, rows in (("one.svm", self.rows[:half]), ("two.svm", self.rows[half:])):
            (self.folder / name).write_text("# rows\n" + "".join(f"{tree[:3]} 1:{a} 2:{b}\n" for a, b, tree in rows))
        source = {"format": "libsvm", "file": ["one.svm", "two.svm"], "features": 2, "label_type": "word"}
        for folder, changes in (("found", {}), ("listed", {"classes": ["oak", "ash", "Bir"]})):
            self.write_spec(folder, train={**source, **changes}, evaluation=source)
            self.assertGreater(self.train()["accuracy"], 0.9)
            self.assertEqual(self.kept(folder), changes.get("classes", ["Bir", "ash", "oak"]))
        self.assertRegex(self.run_ok("stats", "spec.json"), r"labels .* 3  (oak|ash|Bir) 50, ")

    def test_a_row_counts_in_each_head_what_that_says(self):
        """As in a model of that head alone where its column is the weight of all."""
        draw = random.Random(7)
        lines = [f"{draw.random():.3f},{draw.random():.3f},{draw.randrange(2)},{draw.randrange(2)},{draw.randrange(3)}\n" for _ in range(200)]
        (self.folder / "rows.csv").write_text("x,y,buy,click,w\n" + "".join(lines))
        source = {"format": "csv", "file": "rows.csv", "labels": [{"name": "buy"}, {"name": "click"}]}
        columns = [{"column": "numeric", "name": name} for name in "xyw"]
        inputs = {"op": "concat", "name": "both", "inputs": ["x", "y"]}
        rest = {"optimizer": {"type": "adam", "learning_rate": 0.1}, "train": {"mode": "sync", "last_step": 30}}

        def metrics(heads, data, *flags):
            model = [inputs] + [{"op": "dense", "name": one["logits"], "inputs": ["both"], "units": 1} for one in heads]
            spec = {"data": {"train": source, "eval": source, "columns": columns, "batch_size": 20, **data}, "model": model,
                    "heads": heads, **rest}
            (self.folder / "spec.json").write_text(json.dumps(spec))
            return self.train(*flags)

        def head(label, **more):
            return {"name": label, "logits": f"of_{label}", "label": label, "loss": "sigmoid_cross_entropy",
                    "metrics": ["accuracy"], **more}

        alone = {name: metrics([head("buy")], {"weight": name}) for name in ("w", "x")}
        for flags in ([], ["--local_ps=2", "--local_workers=1"]):
            for name, wanted in alone.items():
                got = metrics([head("click"), head("buy", row_weight=name)], {}, *flags)
                for key in ("loss/buy", "accuracy/buy"):
                    self.assertAlmostEqual(got[key], wanted[key], 6)
        (self.folder / "spec.json").write_text(json.dumps({
            "data": {"train": source, "columns": columns, "batch_size": 20}, "model": [inputs, {
                "op": "dense", "name": "of_buy", "units": 1}], "heads": [head("buy", row_weight="nosuch")], **rest}))
        self.assertIn('row_weight: expected the name of a numeric column of one number, got "nosuch"',
                      self.dtrain("check", "spec.json").stderr)
        metrics([head("click"), head("buy", row_weight="w")], {})
        for key in ("accumulate", "towers"):
            self.assertIn(f'train.{key}: heads[1] ("buy") weighs rows by another column than heads[0]',
                          self.dtrain(f"--set=train.{key}=2", "spec.json").stderr)

    def test_what_cannot_be_is_told(self):
        numbers = self.source()
        del numbers["label_type"]
        self.write_csv("few.csv", [row for row in self.rows if row[2] != "ash"])
        self.write_csv("none.csv", [*self.rows[:1], (1, 2, "")])
        (self.folder / "latin.csv").write_bytes("a,b,tree\n1,2,Ã¼\n1,2,\xfc\n".encode("latin-1"))
        for train, evaluation, why in (
                (numbers, numbers, r'rows\.csv: line 2: column 2 \(tree\): expected a class \(a whole number; or a '
                                   r'word, with "label_type": "word" or "positive": "..."\), got "'),
                (None, numbers, "data.eval: .*expected a class"),
                (numbers, None, "data.eval: its labels are words and those of data.train are not"),
                (self.source(file="few.csv"), None, 'data.eval: .*expected a word that is a class, got "ash"'),
                (self.source(file="none.csv"), None, 'none.csv: line 3: .*expected a word that is a class, got ""'),
                (self.source(file="latin.csv"), None, "not UTF-8"),
                (self.source(classes=["ash", "ash"]), None, 'data.train: "classes" has "ash" twice'),
                (self.source(classes=["ash"], positive="ash"), None, 'data.train: expected "classes" or "positive"'),
                ({**self.source(), "positive": "ash"}, None, "data.eval: its labels are words and those of data.train"),
                (self.source(label="wood"), None, 'no column "wood"')):
            self.write_spec(train=train, evaluation=evaluation)
            ended = self.dtrain("check", "spec.json")
            self.assertEqual(ended.returncode, program.BAD_INPUT, why)
            self.assertRegex(ended.stderr, why)
        self.write_spec(train=self.source(file="gone.csv"), origin="the trees of the park")
        self.assertRegex(self.run_bad("check", "spec.json"), "gone.csv: No such file .*; the data are the trees of the park")


if __name__ == "__main__":
    program.main()
