"""dtrain predict: rows and what the model says of them."""
import ast
import csv
import itertools
import json
import math
import random
import struct

import model
import program
from made import FLOAT


class Predict(model.ModelCase):
    def lines(self, *words, out="out.jsonl"):
        text = self.run_ok("predict", "spec.json", "--checkpoint=run", f"--out={out}", *words)
        lines = [json.loads(line) for line in (self.folder / out).read_text().splitlines()]
        self.assertEqual(text, f"{out}: {len(lines)} rows at step {model.STEP}\n")
        return lines

    def refuse(self, *words):
        return self.run_bad("predict", "spec.json", "--checkpoint=run", *words)

    def assert_near(self, got, wanted):
        self.assertEqual(len(got), len(wanted))
        for x, y in zip(got, wanted):
            self.assertAlmostEqual(x, y, delta=1e-6)

    def assert_softmax(self, lines, rows, first=0):
        self.assertEqual([line["row"] for line in lines], list(range(first, first + len(rows))))
        for line, row in zip(lines, rows):
            wanted = model.softmax(row)
            self.assert_near(line["probabilities"], wanted)
            self.assertEqual(line["class"], wanted.index(max(wanted)))


class Classes(Predict):
    def test_a_class_and_its_probabilities(self):
        self.assert_softmax(self.lines(), model.ROWS)

    def test_csv_has_the_same_numbers(self):
        lines = self.lines()
        self.run_ok("predict", "spec.json", "--checkpoint=run", "--out=out.csv")
        with open(self.folder / "out.csv", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual(list(rows[0]), ["row", "class", "probability_0", "probability_1",
                                         "probability_2"])
        for row, line in zip(rows, lines, strict=True):
            self.assertEqual([int(row["row"]), int(row["class"])], [line["row"], line["class"]])
            self.assertEqual([float(row[f"probability_{k}"]) for k in range(3)],
                             line["probabilities"])

    def test_standard_output(self):
        text = self.run_ok("predict", "spec.json", "--checkpoint=run", "--out=-", "--format=csv")
        self.assertEqual(len(text.splitlines()), 1 + len(model.ROWS))

    def test_rows_of_a_stream(self):
        spec = model.spec()
        spec["data"]["columns"] = [{"column": "numeric", "name": name} for name in "ab"]
        spec["data"]["eval"]["stream"] = "always"
        spec["model"].insert(0, {"op": "concat", "inputs": ["a", "b"]})
        self.write_spec(spec)
        self.assert_softmax(self.lines(), model.ROWS)
        self.assert_softmax(self.lines("--set=data.eval.skip=2", "--set=data.eval.take=2"),
                            model.ROWS[2:4], first=2)

    def test_rows_that_the_source_skips_are_counted(self):
        self.assert_softmax(self.lines("--set=data.eval.skip=2", "--set=data.eval.take=2"),
                            model.ROWS[2:4], first=2)

    def test_large_logits_do_not_overflow(self):
        self.write_values({"out/bias": (FLOAT, [3], [1000.0, -1000.0, 0.0])})
        for line in self.lines():
            self.assertEqual(line["probabilities"], [1, 0, 0])

    def test_no_number_is_null(self):
        self.write_values({"out/bias": (FLOAT, [3], [float("nan"), 0, 0])})
        self.assertEqual(self.lines()[0]["probabilities"], [None] * 3)


class Other(Predict):
    def one_unit(self, loss):
        self.write_spec(model.spec(
            model=[{"op": "dense", "name": "out", "units": 1}], loss={"op": loss}, metrics=[]))
        self.write_values({"out/kernel": (FLOAT, [2, 1], [1.0, -2.0]), "out/bias": (FLOAT, [1], [0.5]),
                           "out/kernel/Momentum": None, "out/bias/Momentum": None})
        return [a - 2 * b + 0.5 for a, b in model.ROWS]

    def test_a_logit_becomes_a_probability(self):
        logits = self.one_unit("sigmoid_cross_entropy")
        for line, logit in zip(self.lines(), logits, strict=True):
            self.assert_near([line["probability"]], [1 / (1 + math.exp(-logit))])
            self.assertEqual(line["class"], int(logit > 0))
        self.run_ok("predict", "spec.json", "--checkpoint=run", "--out=out.csv")
        self.assertEqual((self.folder / "out.csv").read_text().splitlines()[0],
                         "row,class,probability")

    def test_files_of_a_pattern_and_never_the_output(self):
        self.one_unit("mean_squared_error")
        text = (self.folder / "rows.csv").read_text() if (self.folder / "rows.csv").exists() else "a,b\n1,2\n"
        for name in ("part-1.csv", "part-2.csv"):
            (self.folder / name).write_text(text)
        self.run_ok("predict", "spec.json", "--checkpoint=run", "--data=part-*.csv", "--out=out.csv")
        self.assertEqual(len((self.folder / "out.csv").read_text().splitlines()), 1 + 2 * (len(text.strip().split("\n")) - 1))
        told = self.run_bad("predict", "spec.json", "--checkpoint=run", "--data=part-*.csv", "--out=part-2.csv")
        self.assertIn("is a file of the data", told)
        self.assertEqual((self.folder / "part-2.csv").read_text(), text)

    def test_no_output_over_what_the_model_is_made_of(self):
        self.one_unit("mean_squared_error")
        (self.folder / "link.csv").symlink_to("spec.json")
        spec = (self.folder / "spec.json").read_text()
        for name, told in (("spec.json", "is the spec"), ("link.csv", "is the spec"), ("run/model.ckpt-7.index", "belongs to the checkpoints"),
                           ("run/model.ckpt-7.data-00000-of-00001", "belongs to the checkpoints")):
            self.assertIn(told, self.run_bad("predict", "spec.json", "--checkpoint=run", "--format=csv", f"--out={name}"))
        self.assertEqual((self.folder / "spec.json").read_text(), spec)
        self.run_ok("predict", "spec.json", "--checkpoint=run", "--out=out.csv")

    def test_no_output_over_what_the_spec_reads(self):
        (self.folder / "words.csv").write_text("red\nblue\n")
        (self.folder / "rows.csv").write_text("colour,y\nred,1\nblue,0\n")
        (self.folder / "new.csv").write_text("colour\nred\n")
        source = {"format": "csv", "file": ["r*.csv"], "label": "y"}
        self.write_spec({"data": {"train": source, "batch_size": 2, "columns": [{"column": "vocabulary", "name": "colour", "file": "words.csv"}]},
                         "model": [{"op": "linear", "inputs": ["colour"]}], "loss": "sigmoid_cross_entropy",
                         "optimizer": {"type": "adam"}, "train": {"last_step": 2, "checkpoint_dir": "words"}})
        self.assertEqual(program.run(["spec.json"], self.folder).returncode, 0)
        for name, told in (("words.csv", "is a file of a column"), ("rows.csv", "is a file of the data")):
            text = (self.folder / name).read_text()
            self.assertIn(told, self.run_bad("predict", "spec.json", "--checkpoint=words", "--data=new.csv", f"--out={name}"))
            self.assertEqual((self.folder / name).read_text(), text)
            for words in (["spec.json", f"--result={name}"], ["spec.json", f"--metrics_file={name}"],
                          ["--local_ps=1", "spec.json", f"--result={name}"], ["eval", "--checkpoint=words", "spec.json", f"--result={name}"]):
                self.assertIn(told, self.run_bad(*words))
                self.assertEqual((self.folder / name).read_text(), text)
        for name in ("measured.json", "checkpoint", "day.json", "best.json", "model.ckpt-2.index", "model.ckpt-9.data-00000-of-00001"):
            kept = self.folder / "words" / name
            before = kept.read_bytes() if kept.exists() else None
            for words in (["spec.json", f"--result=words/{name}"], ["spec.json", f"--metrics_file={kept}"],
                          ["eval", "--checkpoint=words/model.ckpt-2", "spec.json", f"--result=words/{name}"],
                          ["predict", "--checkpoint=words", "--data=new.csv", "--format=csv", "spec.json", f"--out=words/{name}"]):
                self.assertIn("belongs to the checkpoints", self.run_bad(*words))
            self.assertEqual(kept.read_bytes() if kept.exists() else None, before)
        self.run_ok("eval", "--checkpoint=words", "--set=data.eval=" + json.dumps(source), "spec.json", "--result=words/result.json")
        (self.folder / "rows.csv.ps-1").symlink_to("rows.csv")
        self.assertIn("is a file of the data", self.run_bad("--local_ps=2", "--record=rows.csv", "spec.json"))
        (self.folder / "rows.csv").unlink()
        self.run_ok("predict", "spec.json", "--checkpoint=words", "--data=new.csv", "--out=out.csv")

    def write_colours(self, file):
        """A spec whose data are there."""
        (self.folder / "words.txt").write_text("red\nblue\n")
        (self.folder / "rows.csv").write_text("colour,y\nred,1\nblue,0\n")
        self.write_spec({"data": {"train": {"format": "csv", "file": file, "label": "y"}, "batch_size": 2,
                                  "columns": [{"column": "vocabulary", "name": "colour", "file": "words.txt"}]},
                         "model": [{"op": "linear", "inputs": ["colour"]}], "loss": "sigmoid_cross_entropy",
                         "optimizer": {"type": "adam"}, "train": {"last_step": 2}})

    def test_no_output_over_lists_of_names_and_old_words(self):
        self.write_colours("@names.txt")
        (self.folder / "names.txt").write_text("rows.csv\n")
        (self.folder / "old.txt").write_text("red\n")
        warm = '--set=train.warm_start={"checkpoint": "old", "vocabularies": {"colour": "old.txt"}}'
        for name, told in (("names.txt", "is a file of the data"), ("rows.csv", "is a file of the data"), ("old.txt", "is a file of a column")):
            self.assertIn(told, self.run_bad(warm, "spec.json", f"--result={name}"))

    def test_a_folder_that_is_yet_to_be_made_is_not_the_one_around_it(self):
        self.write_colours("rows.csv")
        for words in ([], ['--set=train.publish={"to": "published"}']):
            ended = program.run(["spec.json", *words, f"--checkpoint_dir=new-{len(words)}", "--result=settings.json"], self.folder)
            self.assertEqual(ended.returncode, 0, ended.stderr)
        for checkpoint in ("new-0", "new-0/model.ckpt-2", "new-0/model.ckpt-2.index", "new-0/model.ckpt-5"):
            warm = '--set=train.warm_start={"checkpoint": "%s"}' % checkpoint
            self.assertIn("belongs to the checkpoints", self.run_bad("spec.json", warm, "--result=new-0/settings.json"))

    def test_a_full_disk_leaves_what_was_there(self):
        """A limit on the size of files plays it."""
        self.one_unit("mean_squared_error")
        (self.folder / "many.csv").write_text("a,b\n" + "1,2\n" * 1000)
        small = ["sh", "-c", 'trap "" XFSZ; ulimit -f 1 && exec "$0" "$@"']
        for name, before in itertools.product(("out.csv", "out.jsonl", "out.npy"), (None, "precious")):
            out = self.folder / name
            if before:
                out.write_text(before)
            ended = program.run(["predict", "spec.json", "--checkpoint=run", "--data=many.csv", f"--out={name}"], self.folder, before=small)
            self.assertEqual((ended.returncode, ended.stderr), (1, f"dtrain: --out={name}: File too large\n"))
            self.assertEqual(out.read_text() if out.exists() else None, before)
            self.assertEqual([path.name for path in self.folder.glob("*.partial*")], [])

    def test_numbers_stay_what_they_are(self):
        values = self.one_unit("mean_squared_error")
        for line, value in zip(self.lines(), values, strict=True):
            self.assertEqual(set(line), {"row", "values"})
            self.assert_near(line["values"], [value])
        self.run_ok("predict", "spec.json", "--checkpoint=run", "--out=out.csv")
        self.assertEqual((self.folder / "out.csv").read_text().splitlines()[0], "row,value_0")

    def test_several_logits_have_no_class(self):
        self.write_spec(model.spec(loss={"op": "sigmoid_cross_entropy"}, metrics=[]))
        for line, row in zip(self.lines(), model.ROWS, strict=True):
            self.assertEqual(set(line), {"row", "probabilities"})
            self.assert_near(line["probabilities"],
                             [1 / (1 + math.exp(-x)) for x in model.logits(row)])


class Data(Predict):
    OTHERS = [[5.0, 1.0], [-3.0, 2.0], [0.5, 0.5]]

    def test_another_file_in_the_form_of_the_spec(self):
        self.write_table("other.csv", self.OTHERS, [0, 1, 2])
        self.assert_softmax(self.lines("--data=other.csv", "--set=data.eval.skip=1"), self.OTHERS)

    def test_labels_need_not_be_there_nor_make_sense(self):
        self.write_table("other.csv", self.OTHERS)
        self.assert_softmax(self.lines("--data=other.csv"), self.OTHERS)
        self.write_table("other.csv", self.OTHERS, ["?", "no", 99])
        self.assert_softmax(self.lines("--data=other.csv"), self.OTHERS)

    def test_the_form_of_the_training_data_where_there_are_no_others(self):
        self.write_spec(model.spec(data_eval=None))
        self.write_table("other.csv", self.OTHERS)
        self.assert_softmax(self.lines("--data=other.csv"), self.OTHERS)
        self.assertIn("the spec has no data.eval: name a file with --data",
                      self.refuse("--out=out.csv"))

    def test_a_file_where_the_training_data_are_followed(self):
        spec = model.spec(data_eval=None)
        spec["data"]["train"].update(file="absent/*.csv", follow=True)
        self.write_spec(spec)
        self.write_table("other.csv", self.OTHERS)
        self.assert_softmax(self.lines("--data=other.csv"), self.OTHERS)

    def test_idx_needs_the_features_only(self):
        self.write_spec(model.spec(data_eval={"format": "idx", "features": "x", "labels": "absent"}))
        header = struct.pack(">BBBBII", 0, 0, 0x0d, 2, len(self.OTHERS), 2)
        (self.folder / "x").write_bytes(header + struct.pack(">6f", *sum(self.OTHERS, [])))
        self.assert_softmax(self.lines(), self.OTHERS)
        self.assert_softmax(self.lines(f"--data={self.folder}/x"), self.OTHERS)
        self.assertIn("absent", self.run_bad("eval", "spec.json", "--checkpoint=run"))

    def test_raw_needs_the_features_only(self):
        self.write_spec(model.spec(data_eval={"format": "raw", "file": "x", "shape": [2],
                                              "labels": "absent"}))
        (self.folder / "x").write_bytes(struct.pack("<6f", *sum(self.OTHERS, [])))
        self.assert_softmax(self.lines(), self.OTHERS)

    def test_made_data_come_from_no_file(self):
        self.write_spec(model.spec(data_eval={"format": "random", "rows": 4, "shape": [2],
                                              "classes": 1000}))
        self.assertEqual(len(self.lines()), 4)
        self.assertIn("--data: the spec's random data come from no file",
                      self.refuse("--out=out.csv", "--data=table.csv"))

    def test_files_that_do_not_fit(self):
        (self.folder / "wide.csv").write_text("a,b,c\n1,2,3\n")
        self.assertRegex(self.refuse("--out=o.csv", "--data=wide.csv"),
                         r"wide.csv: 3 feature columns, the model wants 2: \S+: out/kernel has "
                         r"shape \[2, 3\] there, \[3, 3\] here")
        (self.folder / "word.csv").write_text("a,b\nhigh,2\n1,2\n")
        self.assertRegex(self.refuse("--out=o.csv", "--data=word.csv"),
                         r"word.csv: line 2: column 0 \(a\): expected a number \(.*\), got \"high\"")
        self.assertIn("--data=none.csv: No such file", self.refuse("--out=o.csv", "--data=none.csv"))

    def test_rows_have_their_numbers_in_the_file_and_cells_beside_them(self):
        rng = random.Random(5)
        kinds = {
            "csv": ("id,a,y,b", lambda i, a, b: f"n{i},{a},0,{b}"),
            "jsonl": (None, lambda i, a, b: json.dumps({"id": f"n{i}", "a": a, "b": b, "y": 0})),
            "escaped.jsonl": (None, lambda i, a, b: (
                f' {{ "q" :["{{\\"id\\":[","]}}", ","] , "\\u0069d": "n{i}","a":{json.dumps(a)} ,"t":"\\"id\\":{{",'
                f'"b" : {b},"y":0 }} ')),
        }
        for (kind, (head, line)), stream in itertools.product(kinds.items(), ("never", "always")):
            with self.subTest(kind=kind, stream=stream):
                bad, number, names = set(), 0, []
                for part in ("one", "two", "three"):
                    lines = [head] if head else []
                    for _ in range(9):
                        is_bad = rng.random() < 0.4
                        bad |= {number} if is_bad else set()
                        lines.append(line(number, "oops" if is_bad else rng.random(), 1.5))
                        number += 1
                    names.append(f"{part}.{kind}")
                    (self.folder / names[-1]).write_text("\n".join(lines) + "\n")
                spec = model.spec(data_eval={
                    "format": kind.split(".")[-1], "file": names, "label": "y", "bad_rows": 99, "skip": 2,
                    "stream": stream})
                spec["data"]["columns"] = [{"column": "numeric", "name": name} for name in "ab"]
                spec["model"].insert(0, {"op": "concat", "inputs": ["a", "b"]})
                self.write_spec(spec)
                ended = self.dtrain("predict", "spec.json", "--checkpoint=run", "--out=o.jsonl",
                                    "--with=id")
                self.assertEqual(ended.returncode, 0, ended.stderr)
                lines = [json.loads(line) for line in (self.folder / "o.jsonl").read_text().splitlines()]
                good = [row for row in range(number) if row not in bad]
                self.assertEqual([line["row"] for line in lines], good[2:])
                self.assertEqual([line["id"] for line in lines], [f"n{row}" for row in good[2:]])

    def test_ids_stand_beside_with_their_weights(self):
        """As in the file, whatever they are as ids."""
        (self.folder / "x.libsvm").write_text("0 1:0.25 2:1.50\n1 2:1e-1\n1 2:3#4:5\n0\n")
        self.write_spec(model.spec(data_eval={"format": "libsvm", "file": "x.libsvm", "features": 2}))
        self.assertEqual([line["features"] for line in self.lines("--with=features")], ["1:0.25 2:1.50", "2:1e-1", "2:3", None])

    def test_cells_that_cannot_stand_beside_are_refused(self):
        self.assertRegex(self.refuse("--out=o.csv", "--with=aa"),
                         r'--with: \S*table.csv has no cell "aa"')
        for name in ("row", "class", "probability_0"):
            self.assertIn("another value of a row has this name",
                          self.refuse("--out=o.csv", f"--with={name}"))

    def test_standard_output_is_csv_unless_said_otherwise(self):
        words = ("predict", "spec.json", "--checkpoint=run", "--data=plain.csv", "--out=-")
        (self.folder / "plain.csv").write_text("a,b\n1,2\n")
        self.assertTrue(self.dtrain(*words).stdout.startswith("row,class,"))
        self.assertTrue(self.dtrain(*words, "--format=jsonl").stdout.startswith('{"row": 0'))

    def test_each_head_says_its_own(self):
        spec = model.spec()
        labels = [{"name": "kind", "cell": "y"}, {"name": "early", "cell": "b", "threshold": 0.6}]
        for source in spec["data"].values():
            if isinstance(source, dict):
                source.pop("label")
                source["labels"] = labels
        spec["data"]["columns"] = [{"column": "numeric", "name": name} for name in "ab"]
        spec["model"].insert(0, {"op": "concat", "inputs": ["a", "b"]})
        spec["model"].append({"op": "slice", "name": "first", "begin": [0], "size": [1]})
        spec["heads"] = [
            {"name": "kind", "logits": "out", "label": "kind", "loss": spec.pop("loss"),
             "metrics": spec.pop("metrics")},
            {"name": "early", "logits": "first", "label": "early", "weight": 0.5,
             "loss": "sigmoid_cross_entropy"}]
        self.write_spec(spec)
        lines = self.lines()
        for line, row in zip(lines, model.ROWS):
            self.assert_near(line["kind"]["probabilities"], model.softmax(row))
            self.assert_near([line["early"]["probability"]],
                             [1 / (1 + math.exp(-model.logits(row)[0]))])
        text = self.run_ok("predict", "spec.json", "--checkpoint=run", "--out=-")
        self.assertEqual(text.splitlines()[0],
                         "row,kind/class,kind/probability_0,kind/probability_1,kind/probability_2,"
                         "early/class,early/probability")
        self.run_ok("eval", "spec.json", "--checkpoint=run", "--result=result.json")
        metrics = json.loads((self.folder / "result.json").read_text())["metrics"]
        self.assertEqual(list(metrics), ["loss", "loss/kind", "accuracy/kind", "loss/early"])
        self.assertAlmostEqual(metrics["loss"], metrics["loss/kind"] + metrics["loss/early"] / 2, 6)

    def test_what_only_losses_and_metrics_read_need_not_be_there(self):
        """A weight of rows, the ids of a metric, of a head too, and a key of a cross that only these read; not what nodes read."""
        spec = model.spec(metrics=["accuracy", {"op": "gauc", "by": "both"}])
        spec["data"]["columns"] = [
            {"column": "numeric", "name": "a"}, {"column": "numeric", "name": "w"}, {"column": "hash", "name": "user", "buckets": 7},
            {"column": "crossed", "name": "both", "keys": ["user", "day"]}, {"column": "numeric", "name": "b"}]
        spec["loss"] = {"op": "sigmoid_cross_entropy"}
        spec["model"] = [{"op": "concat", "inputs": ["a", "b"]}, {"op": "dense", "name": "out", "units": 3},
                         {"op": "slice", "name": "first", "begin": [0], "size": [1]}]
        heads = {**spec, "heads": [{"name": "it", "loss": spec["loss"], "row_weight": "w", "metrics": spec["metrics"]}]}
        del heads["loss"], heads["metrics"]
        wanted = [1 / (1 + math.exp(-model.logits(row)[0])) for row in model.ROWS]
        for name, lines in {"few.csv": ["b,a", *(f"{b},{a}" for a, b in model.ROWS)],
                            "all.csv": ["a,b,user,day,w,y", *(f"{a},{b},u{i},1,1,1" for i, (a, b) in enumerate(model.ROWS))]}.items():
            (self.folder / name).write_text("\n".join(lines) + "\n")
        for (has_heads, form), name in itertools.product(enumerate(({**spec, "data": {**spec["data"], "weight": "w"}}, heads)),
                                                         ("few.csv", "all.csv")):
            with self.subTest(heads=has_heads, file=name):
                self.write_spec(form)
                lines = self.lines(f"--data={name}", *(["--with=user,w"] if name == "all.csv" else []))
                self.assert_near([(line["it"] if has_heads else line)["probability"] for line in lines], wanted)
        (self.folder / "few.csv").write_text("a,w\n1,2\n")
        self.assertRegex(self.refuse("--out=o.csv", "--data=few.csv"), r'columns\[4\] \(numeric "b"\): source: .* has no cell "b"')

    def vectors(self):
        """A model of several nodes, whose values are known: out is behind hidden."""
        spec = model.spec(data_eval={"format": "csv", "file": "table.csv", "label": "y", "bad_rows": 9})
        spec["model"] = [{"op": "scale", "name": "twice", "factor": 2},
                         {"op": "slice", "name": "first", "inputs": ["twice"], "begin": [0], "size": [1]},
                         {"op": "slice", "name": "rest", "inputs": ["twice"], "begin": [1], "size": [1]},
                         {"op": "concat", "name": "both", "inputs": ["first", "rest"]},
                         {"op": "scale", "name": "half", "factor": 0.5},
                         {"op": "reshape", "name": "square", "shape": [2, 1]}, {"op": "flatten"},
                         {"op": "dense", "name": "out", "units": 3}, {"op": "scale", "name": "again"}]
        self.write_spec(spec)

    def test_any_node_is_written_as_it_is(self):
        self.vectors()
        lines = self.lines("--outputs=twice,square", "--outputs=first,probabilities", "--with=y,a")
        for line, row, label in zip(lines, model.ROWS, model.LABELS, strict=True):
            self.assertEqual(list(line), ["row", "y", "a", "twice", "square", "first", "class", "probabilities"])
            self.assertEqual((line["y"], float(line["a"])), (str(label), row[0]))
            self.assertEqual(line["twice"], [2 * x for x in row])
            self.assertEqual(line["square"], [[x] for x in row])
            self.assertEqual(line["first"], 2 * row[0])
            self.assert_near(line["probabilities"], model.softmax(row))
        text = self.run_ok("predict", "spec.json", "--checkpoint=run", "--out=-", "--outputs=out,first", "--with=b")
        self.assertEqual(text.splitlines()[0], "row,b,out_0,out_1,out_2,first")
        for line, row in zip(text.splitlines()[1:], model.ROWS, strict=True):
            self.assert_near([float(cell) for cell in line.split(",")[2:]], [*model.logits(row), 2 * row[0]])

    def matrix(self, name):
        data = (self.folder / name).read_bytes()
        self.assertEqual(data[:8], b"\x93NUMPY\x01\0")
        begin = 10 + struct.unpack("<H", data[8:10])[0]
        self.assertEqual(begin % 64, 0)
        head = ast.literal_eval(data[10:begin].decode())
        self.assertEqual((head["descr"], head["fortran_order"]), ("<f4", False))
        rows, columns = head["shape"]
        numbers = struct.unpack(f"<{rows * columns}f", data[begin:])
        return [list(numbers[i * columns:(i + 1) * columns]) for i in range(rows)]

    def test_numbers_alone_are_a_matrix_of_numpy(self):
        self.vectors()
        with open(self.folder / "table.csv", "a", encoding="utf-8") as file:
            file.write("1,0,oops\n7,1,8\n")  # one row is left out
        for stream in ("never", "always"):
            self.dtrain("predict", "spec.json", "--checkpoint=run", "--out=v.npy", "--outputs=twice,out",
                        f"--set=data.eval.stream={stream}")
            rows = [*model.ROWS, [7, 8]]
            for got, row in zip(self.matrix("v.npy"), rows, strict=True):
                self.assert_near(got, [2 * row[0], 2 * row[1], *model.logits(row)])
        self.dtrain("predict", "spec.json", "--checkpoint=run", "--out=p", "--format=npy")
        for got, row in zip(self.matrix("p"), rows, strict=True):
            self.assert_near(got, model.softmax(row))

    def test_outputs_that_there_are_not(self):
        self.vectors()
        self.assertIn('no head and no node has this name (did you mean "twice"?)', self.refuse("--out=o.csv", "--outputs=twic"))
        self.assertIn("named twice", self.refuse("--out=o.csv", "--outputs=out,out"))
        self.assertIn("an empty name", self.refuse("--out=o.csv", "--outputs=out,"))
        self.assertIn("another value of a row has this name", self.refuse("--out=o.csv", "--outputs=out", "--with=out_1"))
        self.assertIn("csv and jsonl take cells", self.refuse("--out=o.npy", "--with=a"))
        self.assertIn("name a file", self.refuse("--out=-", "--format=npy"))
        self.assertFalse((self.folder / "o.csv").exists())

    def test_no_two_values_of_a_row_have_one_name(self):
        """A node of two numbers is two columns; whoever reads a table by its names would lose one."""
        spec = model.spec()
        spec["model"] = [{"op": "scale", "name": "first", "factor": 2},
                         {"op": "slice", "name": "first_1", "inputs": ["first"], "begin": [0], "size": [1]},
                         {"op": "slice", "name": "class", "inputs": ["first"], "begin": [1], "size": [1]},
                         {"op": "concat", "inputs": ["first_1", "class"]}, {"op": "dense", "name": "out", "units": 3}]
        self.write_spec(spec)
        both = "--outputs=first,first_1"
        self.assertIn('two values of a row have the name "first_1"', self.refuse("--out=o.csv", both))
        self.assertEqual(list(self.lines(both)[0]), ["row", "first", "first_1"])
        self.assertIn('two values of a row have the name "class"', self.refuse("--out=o.jsonl", "--outputs=class,probabilities"))
        self.assertEqual(list(self.lines("--outputs=class")[0]), ["row", "class"])
        self.assertFalse((self.folder / "o.csv").exists())

    def test_output_that_cannot_be_written(self):
        self.assertIn("neither .csv, .json, .jsonl nor .npy", self.refuse("--out=out.txt"))
        self.assertIn("predict: --out is required", self.refuse())
        self.assertIn("--out=none/o.csv: No such file", self.refuse("--out=none/o.csv"))
        self.assertIn("No space left", self.run_bad("predict", "spec.json", "--checkpoint=run",
                                                    "--out=/dev/full", "--format=csv", code=1))

    def test_what_is_replaced_keeps_its_link_and_its_rights(self):
        real, link = self.folder / "real.csv", self.folder / "out.csv"
        real.write_text("old")
        real.chmod(0o640)
        link.symlink_to("real.csv")
        self.run_ok("predict", "spec.json", "--checkpoint=run", "--out=out.csv")
        self.assertTrue(link.is_symlink())
        self.assertEqual((real.read_text()[:4], real.stat().st_mode & 0o777), ("row,", 0o640))

    def test_a_wrong_call_leaves_the_output_as_it_was(self):
        (self.folder / "out.csv").write_text("precious")
        self.refuse("--out=out.csv", "--checkpoint=nowhere")
        self.assertEqual((self.folder / "out.csv").read_text(), "precious")


if __name__ == "__main__":
    program.main()
