"""What features mean is kept with a model: names, words, boundaries, numbers of ids and the order of inputs."""
import json

import program
import tool
from program import BAD_INPUT
from program.lives import LIMITS

ROWS = [(0, 0), (0, 1), (1, 0), (1, 1)]
WORDS = ("cat", "dog", "fox")


def table(*names):
    """y = a + 10 b, its columns in this order."""
    values = [{"a": a, "b": b, "p": a, "q": b, "y": a + 10 * b} for a, b in ROWS]
    return "\n".join([",".join(names), *(",".join(str(row[name]) for name in names) for row in values)]) + "\n"


class Features(tool.ToolCase):
    def setUp(self):
        super().setUp()
        for name in ("aby", "bay", "yba", "ba", "pqy", "pq"):
            (self.folder / f"{name}.csv").write_text(table(*name))
        (self.folder / "words.txt").write_text("\n".join(WORDS) + "\n")
        (self.folder / "bounds.txt").write_text("10\n20\n")
        (self.folder / "rows.csv").write_text(
            "w,v,n,t,y\n" + "".join(f"{word},{word}{i},{10 * i},{i}.5,{i}\n" for i, word in enumerate(WORDS)))

    def write(self, spec):
        (self.folder / "spec.json").write_text(json.dumps(spec))

    def linear(self, file="aby.csv"):
        source = {"format": "csv", "file": file, "label": "y", "label_type": "number"}
        return {"data": {"train": source, "eval": dict(source), "batch_size": 4, "shuffle": False},
                "model": [{"op": "dense", "name": "logits", "units": 1}],
                "loss": "mean_squared_error",
                "optimizer": {"type": "gradient_descent", "learning_rate": 0.5},
                "train": {"last_step": 400, "checkpoint_dir": "run", "mode": "sync"}}

    def columns(self):
        source = {"format": "csv", "file": "rows.csv", "label": "y", "label_type": "number"}
        return {"data": {"train": source, "eval": dict(source), "batch_size": 3, "shuffle": False, "columns": [
                    {"column": "vocabulary", "name": "w", "file": "words.txt", "oov_buckets": 1},
                    {"column": "hash", "name": "v", "buckets": 50},
                    {"column": "bucketized", "name": "n", "file": "bounds.txt"},
                    {"column": "numeric", "name": "t", "offset": -1}]},
                "model": [{"op": "embedding", "name": "e", "inputs": ["w"], "dimension": 2},
                          {"op": "embedding", "name": "h", "inputs": ["v"], "dimension": 2},
                          {"op": "embedding", "name": "k", "inputs": ["n"], "dimension": 2},
                          {"op": "concat", "name": "all", "inputs": ["e", "h", "k", "t"]},
                          {"op": "dense", "name": "logits", "units": 1}],
                "loss": "mean_squared_error",
                "optimizer": {"type": "gradient_descent", "learning_rate": 0.1},
                "train": {"last_step": 20, "checkpoint_dir": "run", "mode": "sync"}}

    def train(self, *flags, code=0):
        ended = self.dtrain("--result=run.json", *flags, "spec.json")
        self.assertEqual(ended.returncode, code, ended.stderr)
        return ended.stderr if code else json.loads((self.folder / "run.json").read_text())

    def predicted(self, data):
        lines = self.run_ok("predict", "--checkpoint=run", f"--data={data}", "--out=-", "spec.json").split()
        return [float(line.split(",")[1]) for line in lines[1:]]

    def test_columns_in_another_order_are_found_by_name(self):
        """By predict, eval, data.eval, a run that continues, and files of one source."""
        spec = self.linear()
        spec["data"]["eval"]["file"] = "yba.csv"
        self.write(spec)
        self.assertLess(self.train()["metrics"]["loss"], 1e-6)
        for data in ("ba.csv", "yba.csv"):
            for got, (a, b) in zip(self.predicted(data), ROWS, strict=True):
                self.assertAlmostEqual(got, a + 10 * b, places=3)
        self.run_ok("eval", "--checkpoint=run", "--result=eval.json", "--set=data.eval.file=bay.csv", "spec.json")
        self.assertLess(json.loads((self.folder / "eval.json").read_text())["metrics"]["loss"], 1e-6)
        for tasks in ((), ("--local_ps=2", "--local_workers=2", *LIMITS)):
            self.write(self.linear("bay.csv"))
            last = 401 if not tasks else 402
            result = self.train(*tasks, f"--steps={last}", "--set=optimizer.learning_rate=0")
            self.assertEqual(result["step"], last)
            self.assertLess(result["metrics"]["loss"], 1e-6)

    def test_other_names_are_refused_unless_they_are_accepted(self):
        self.write(self.linear())
        self.train()
        for words in (("predict", "--data=pq.csv", "--out=-"), ("eval", "--set=data.eval.file=pqy.csv")):
            said = self.run_bad(words[0], "--checkpoint=run", *words[1:], "spec.json")
            self.assertRegex(said, "its features are p, q; those of the model are a, b .--changed_features=accept")
            ended = self.dtrain(words[0], "--checkpoint=run", "--changed_features=accept", *words[1:], "spec.json")
            self.assertEqual(ended.returncode, 0, ended.stderr)
            self.assertIn("taken as they stand", ended.stderr)
        self.write(self.linear("pqy.csv"))
        self.assertIn("its features are p, q", self.train("--steps=401", code=BAD_INPUT))
        self.train("--steps=401", "--changed_features=accept")
        self.train("--steps=402")
        self.write(self.linear("aby.csv"))
        self.train("--steps=403", code=BAD_INPUT)

    def test_a_followed_file_has_its_columns_by_name(self):
        spec = self.linear("part-*.csv")
        del spec["data"]["eval"]
        spec["data"]["train"].update(follow=True, settle_secs=0)
        (self.folder / "part-1.csv").write_text(table("a", "b", "y") + "".join(table("a", "b", "y").split("\n", 1)[1] for _ in range(99)))
        (self.folder / "part-2.csv").write_text(table("b", "y", "a"))
        (self.folder / "_SUCCESS").write_text("")
        self.write(spec)
        self.train()
        for got, (a, b) in zip(self.predicted_of_train("ba.csv"), ROWS, strict=True):
            self.assertAlmostEqual(got, a + 10 * b, delta=0.5)

    def predicted_of_train(self, data):
        lines = self.run_ok("predict", "--checkpoint=run", f"--data={data}", "--out=-",
                            "--set=data.train.follow=false", "spec.json").split()
        return [float(line.split(",")[1]) for line in lines[1:]]

    def assert_told(self, spec, *told):
        """By predict, eval, and a run that continues, alone and in a cluster; all of it accepted afterwards."""
        self.write(spec)
        cluster = ("--local_ps=1", "--local_workers=2", *LIMITS)
        for words in (("predict", "--checkpoint=run", "--out=-"), ("eval", "--checkpoint=run"),
                      ("--steps=25",), ("--steps=25", *cluster)):
            ended = self.dtrain(*words, "spec.json")
            self.assertEqual(ended.returncode, BAD_INPUT, ended.stderr)
            for text in (*told, "--changed_features=accept"):
                self.assertIn(text, ended.stderr, words)
        ended = self.dtrain("eval", "--checkpoint=run", "--changed_features=accept", "spec.json")
        self.assertEqual(ended.returncode, 0, ended.stderr)
        for text in told:
            self.assertIn(text, ended.stderr)

    def test_what_has_changed_is_told(self):
        """Each in turn against one checkpoint, with as many words, ids and inputs as before."""
        self.write(self.columns())
        self.train()
        self.run_ok("eval", "--checkpoint=run", "spec.json")
        (self.folder / "words.txt").write_text("dog\ncat\nfox\n")
        self.assert_told(self.columns(), 'column \"w\": \"words\" was \"3, digest')
        (self.folder / "words.txt").write_text("\n".join(WORDS) + "\n")
        (self.folder / "bounds.txt").write_text("10\n15\n")
        self.assert_told(self.columns(), 'column \"n\": \"boundaries\" was \"2, digest')
        (self.folder / "bounds.txt").write_text("10\n20\n")
        spec = self.columns()
        spec["data"]["columns"][1] = {"column": "crossed", "name": "v", "keys": ["w", "v"], "buckets": 50}
        self.assert_told(spec, 'column \"v\": \"column\" was \"hash\", now it is \"crossed\"')
        spec = self.columns()
        spec["data"]["columns"][1]["source"] = "w"
        self.assert_told(spec, 'column \"v\": \"source\" was \"v\", now it is \"w\"')
        spec = self.columns()
        spec["data"]["columns"][3]["offset"] = 0
        self.assert_told(spec, 'column \"t\": \"offset\" was -1.0, now it is 0.0')
        spec = self.columns()
        spec["model"][3]["inputs"] = ["h", "e", "k", "t"]
        self.assert_told(spec, 'inputs of nodes: \"all\" was [\"e\",\"h\",\"k\",\"t\"]')

    def test_what_means_the_same_is_no_change(self):
        """Words in a file or in the spec, defaults that are written out, columns that nobody knew, more values."""
        self.write(self.columns())
        self.train()
        spec = self.columns()
        listed = spec["data"]["columns"]
        del listed[0]["file"]
        listed[0].update(words=list(WORDS), separator=None, source="w")
        del listed[2]["file"]
        listed[2]["boundaries"] = [10, 20.0]
        listed[3].update(scale=1, offset=-1.0, log1p=False)
        listed[1]["max"] = 2
        listed.append({"column": "numeric", "name": "more", "source": "n"})
        listed.reverse()
        self.write(spec)
        self.run_ok("eval", "--checkpoint=run", "spec.json")
        self.assertEqual(self.train("--steps=22")["step"], 22)

    def test_a_word_that_counts_as_1_is_another(self):
        source = {"format": "csv", "file": "rows.csv", "label": "w", "positive": "cat", "except": ["v"]}
        spec = self.linear()
        spec["data"].update(train=source, eval=source, batch_size=3)
        spec.update(loss="sigmoid_cross_entropy")
        self.write(spec)
        self.train()
        source["positive"] = "dog"
        self.write(spec)
        self.assertIn('"positive" was "cat", now it is "dog"', self.run_bad("eval", "--checkpoint=run", "spec.json"))

    def test_a_word_in_the_place_of_numbers_is_another(self):
        """Labels of 0 and 1; 1 as a word means the same."""
        source = {"format": "csv", "file": "numbers.csv", "label": "y"}
        (self.folder / "numbers.csv").write_text("a,y\n" + "".join(f"{i},{i % 2}\n" for i in range(6)))
        spec = self.linear()
        spec["data"].update(train=source, eval=source, batch_size=3)
        spec.update(loss="sigmoid_cross_entropy")
        self.write(spec)
        self.train()
        source["positive"] = "1"
        self.write(spec)
        self.run_ok("eval", "--checkpoint=run", "spec.json")
        kept = self.folder / "run" / "measured.json"  # as it was written before
        kept.write_text(kept.read_text().replace('"positive": null', '"positive": "1"'))
        self.assertIn('"positive": "1"', kept.read_text())
        self.run_ok("eval", "--checkpoint=run", "spec.json")
        kept.write_text(kept.read_text().replace('"positive": "1"', '"positive": null'))
        source["positive"] = "0"
        self.assert_told(spec, '"positive" was null, now it is "0"')

    def words_as_classes(self):
        spec = self.columns()
        for source in ("train", "eval"):
            spec["data"][source] |= {"label": "w", "label_type": "word"}
        spec["data"]["columns"][0]["source"] = "v"
        spec["model"][-1]["units"] = 3
        return spec | {"loss": "softmax_cross_entropy"}

    def test_a_word_is_the_same_class_wherever_it_stands(self):
        self.write(self.words_as_classes())
        self.train()
        other, told = '["dog","cat","fox"]', '"dog" is class 0 by its "classes", and class 1 by those of data.train'
        for words in (["eval", "--checkpoint=run"], ["--steps=21"], ["--steps=21", "--set=data.train.classes=[\"cat\",\"dog\",\"fox\"]"],
                      ["predict", "--checkpoint=run", "--out=out.csv"]):
            self.assertIn(told, self.run_bad(*words, f"--set=data.eval.classes={other}", "spec.json"))
        self.run_ok("eval", "--checkpoint=run", '--set=data.eval.classes=["cat","dog","fox"]', "spec.json")

    def test_the_same_of_one_of_several_labels(self):
        spec = self.words_as_classes()
        for source, classes in (("train", list(WORDS)), ("eval", ["cat", "fox", "dog"])):
            for key in ("label", "label_type"):
                del spec["data"][source][key]
            spec["data"][source]["labels"] = [{"name": "y"}, {"name": "w", "classes": classes}]
        spec["heads"] = [{"name": "kind", "label": "w", "loss": spec.pop("loss")}]
        self.write(spec)
        self.assertIn('"fox" is class 1 by its "classes", and class 2 by those of data.train', self.run_bad("check", "spec.json"))

    def test_the_same_where_one_source_lists_its_label(self):
        own = {"format": "csv", "file": "rows.csv"}
        listed = own | {"labels": [{"name": "kind", "cell": "w", "classes": ["cat", "fox", "dog"]}]}
        own |= {"label": "w", "label_type": "word", "classes": list(WORDS)}
        for train, evaluated in ((own, listed), (listed, own)):
            self.write(program.changed(self.words_as_classes(), {"data.train": train, "data.eval": evaluated}))
            self.assertRegex(self.run_bad("check", "spec.json"), 'is class . by its "classes", and class . by those of data.train')

    def test_what_is_not_given_or_of_another_format_is_not_compared(self):
        spec = self.columns()
        del spec["data"]["eval"]
        spec["data"]["train"]["missing"] = ["-"]
        self.write(spec)
        self.train()
        for words in ([], ["--set=data.eval=null"]):
            self.run_ok("predict", "--checkpoint=run", "--data=rows.csv", "--out=out.csv", *words, "spec.json")
        (self.folder / "rows.jsonl").write_text("".join(
            json.dumps({"w": word, "v": f"{word}{i}", "n": 10 * i, "t": i, "y": i}) + "\n" for i, word in enumerate(WORDS)))
        spec["data"]["eval"] = {"format": "jsonl", "file": "rows.jsonl", "label": "y", "label_type": "number"}
        self.write(spec)
        self.run_ok("eval", "--checkpoint=run", "spec.json")

    def test_what_counts_as_empty_is_a_part_of_it(self):
        spec = self.columns()
        spec["data"]["columns"][3]["default"] = 7
        self.write(spec)
        self.train()
        missing = '["1.5","-"]'
        ended = self.dtrain("eval", "--checkpoint=run", f"--set=data.eval.missing={missing}", "spec.json")
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertIn('data.eval: "missing" is ["-","1.5"], that of data.train is null', ended.stderr)
        both = [f"--set=data.{source}.missing={missing}" for source in ("train", "eval")]
        for words in (["eval", "--checkpoint=run"], ["--steps=21"]):
            self.assertIn('"missing" was null, now it is ["-","1.5"]', self.run_bad(*words, *both, "spec.json"))
        self.train("--steps=21", "--set=data.train.missing=[]")

    def test_cells_without_names_stay_what_they_are(self):
        source = {"format": "csv", "file": "numbers.csv", "header": False, "label": 2, "label_type": "number", "columns": [0, 1]}
        (self.folder / "numbers.csv").write_text("".join(f"{a},{b},{a + 10 * b}\n" for a, b in ROWS))
        spec = self.linear()
        spec["data"].update(train=source, eval=source)
        self.write(spec)
        self.train()
        source["columns"] = [1, 0]
        self.assert_told(spec, '"columns of cells without names" was [0,1], now it is [1,0]')

    def test_names_of_a_header_have_its_order(self):
        """Names that are given replace those of a header: the same ones in another order are a mistake."""
        source = {"format": "csv", "file": "bay.csv", "label": "y", "label_type": "number", "names": ["a", "b", "y"]}
        spec = self.linear()
        spec["data"].update(train=source, eval=source)
        self.write(spec)
        self.assertIn('"names" has "a" as its name 1, in the header it is name 2', self.dtrain("spec.json").stderr)
        source["names"] = ["p", "q", "y"]
        self.write(spec)
        self.train()

    def test_workers_with_other_words_do_not_train_together(self):
        """Two folders of data, of which one has its words in another order."""
        for name, words in (("one", "cat\ndog\nfox\n"), ("two", "dog\ncat\nfox\n")):
            (self.folder / name).mkdir()
            (self.folder / name / "words.txt").write_text(words)
            (self.folder / name / "bounds.txt").write_text("10\n20\n")
            (self.folder / name / "rows.csv").write_text((self.folder / "rows.csv").read_text())
        self.write(self.columns())
        prints = [json.loads(self.run_ok("check", "--json", f"--data_dir={name}", "spec.json"))["fingerprint"]
                  for name in ("one", "two", "one")]
        self.assertEqual(prints[0], prints[2])
        self.assertNotEqual(prints[0], prints[1])


class Checked(tool.ToolCase):
    def spec(self, units=1, **train):
        (self.folder / "rows.csv").write_text(table("a", "b", "y"))
        source = {"format": "csv", "file": "rows.csv", "label": "y", "label_type": "number"}
        (self.folder / "spec.json").write_text(json.dumps({
            "data": {"train": source, "eval": source, "batch_size": 4}, "model": [{"op": "dense", "name": "o", "units": units}],
            "loss": "mean_squared_error", "optimizer": {"type": "gradient_descent", "learning_rate": 0.1},
            "train": {"last_step": 4, **train}}))

    def test_check_looks_at_the_checkpoint_that_a_run_begins_with(self):
        self.spec(checkpoint_dir="first")
        self.assertEqual(self.dtrain("spec.json").returncode, 0)
        self.spec(warm_start={"checkpoint": "first"}, checkpoint_dir="run")
        self.assertEqual(self.dtrain("check", "spec.json").returncode, 0)
        self.assertEqual(self.dtrain("spec.json").returncode, 0)
        for told, warm in (("no checkpoint there", {"checkpoint": "none"}),
                           ('no variable "p/kernel" for "o/kernel"', {"checkpoint": "first", "map": [["p/*", "o/*"]]})):
            self.spec(warm_start=warm, checkpoint_dir="other")
            self.assertIn(told, self.run_bad("check", "spec.json"))
            self.spec(warm_start=warm, checkpoint_dir="run")  # which continues from its own
            self.assertEqual(self.dtrain("check", "spec.json").returncode, 0)

    def test_a_metric_that_there_is_not_is_refused_wherever_it_stands(self):
        self.spec(best_metric="auc", evaluate_every_steps=2)
        for words in (("check",), ()):
            self.assertIn('best_metric: unknown metric "auc"', self.dtrain(*words, "spec.json").stderr)


class Hooks(tool.ToolCase):
    def test_who_trains_nothing_needs_no_folder(self):
        """A spec whose hooks write to the folder that -o names is one for eval, predict and stats, too."""
        (self.folder / "rows.csv").write_text(table("a", "b", "y"))
        source = {"format": "csv", "file": "rows.csv", "label": "y", "label_type": "number"}
        (self.folder / "spec.json").write_text(json.dumps({
            "data": {"train": source, "eval": source, "batch_size": 4},
            "model": [{"op": "dense", "units": 1}], "loss": "mean_squared_error",
            "optimizer": {"type": "gradient_descent", "learning_rate": 0.1},
            "train": {"last_step": 4, "hooks": [
                {"type": "checkpoint_saver", "save_steps": 2}, {"type": "summary_saver", "save_steps": 2},
                {"type": "profiler", "save_steps": 2}]}}))
        self.assertIn("checkpoint_saver: needs train.checkpoint_dir", self.run_bad("spec.json"))
        ended = self.dtrain("-o", "run", "spec.json")
        self.assertEqual(ended.returncode, 0, ended.stderr)
        for words in (("eval", "--checkpoint=run"), ("predict", "--checkpoint=run", "--out=-"), ("stats",)):
            self.run_ok(*words, "spec.json")


if __name__ == "__main__":
    program.main()
