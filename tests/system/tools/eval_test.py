"""dtrain eval: loss and metrics of a checkpoint, without a ps and without training data."""
import json
import math
import re
import subprocess

import model
import program
from made import DOUBLE, FLOAT, INT32
from program import clicks


class Eval(model.ModelCase):
    def evaluate(self, *words):
        """What it left for scripts."""
        self.run_ok("eval", "spec.json", "--checkpoint=run", "--result=result.json", *words)
        return json.loads((self.folder / "result.json").read_text())

    def refuse(self, *words, code=program.BAD_INPUT):
        return self.run_bad("eval", "spec.json", "--checkpoint=run", *words, code=code)

    def test_loss_and_accuracy_are_those_of_the_values(self):
        rows = [model.softmax(row) for row in model.ROWS]
        loss = -sum(math.log(p[y]) for p, y in zip(rows, model.LABELS)) / len(rows)
        right = sum(p.index(max(p)) == y for p, y in zip(rows, model.LABELS))
        result = self.evaluate()
        self.assertAlmostEqual(result["metrics"]["loss"], loss, delta=1e-6)
        self.assertAlmostEqual(result["metrics"]["accuracy"], right / len(rows), delta=1e-9)
        self.assertTrue(0 < right < len(rows))
        self.assertEqual((result["name"], result["step"], result["evaluation_examples"]),
                         ("small", model.STEP, len(rows)))
        self.assertTrue(result["checkpoint"].endswith("run/model.ckpt-7"))

    def test_averages_are_computed_with_where_the_spec_has_them(self):
        self.write_spec(model.spec(train_average_decay=0.9))
        self.assertRegex(self.refuse(), 'no "out/kernel/ExponentialMovingAverage": it was saved without train.average_decay; '
                         "--set train.average_decay=0 takes the values themselves")
        plain = self.evaluate("--set=train.average_decay=0")["metrics"]
        self.write_values({"out/kernel/ExponentialMovingAverage": (FLOAT, [2, 3], sum(model.KERNEL, [])),
                           "out/bias/ExponentialMovingAverage": (FLOAT, [3], model.BIAS),
                           "out/kernel": (FLOAT, [2, 3], [9.0] * 6), "out/bias": (FLOAT, [3], [9.0] * 3)})
        self.assertEqual(self.evaluate()["metrics"], plain)
        self.assertNotEqual(self.evaluate("--set=train.average_decay=0")["metrics"], plain)

    def test_it_prints_as_a_run_ends(self):
        text = self.run_ok("eval", "--checkpoint", "run/model.ckpt-7.index", "spec.json")
        self.assertRegex(text, r"\Astep 7, test loss \d\.\d{4}, test accuracy 0\.\d{4} "
                               r"\(5 examples\), \d+\.\d\d s, [\d,]+ examples/s\n\Z")

    def test_batches_do_not_change_the_result(self):
        whole = self.evaluate("--set=data.eval_batch_size=5")["metrics"]
        for rows in (1, 2, 3):
            parts = self.evaluate(f"--set=data.eval_batch_size={rows}")["metrics"]
            self.assertAlmostEqual(parts["loss"], whole["loss"], delta=1e-6)
            self.assertEqual(parts["accuracy"], whole["accuracy"])

    def test_the_placement_of_a_cluster_has_no_meaning_here(self):
        plain = self.evaluate()["metrics"]
        self.write_spec(model.spec(placement={
            "pins": [{"match": "out/*", "ps": 3}],
            "partitioner": {"type": "fixed_size", "num_shards": 2}}))
        self.assertEqual(self.evaluate()["metrics"], plain)

    def test_a_checkpoint_in_slices_gives_the_same(self):
        plain = self.evaluate()["metrics"]
        self.run_ok("checkpoint", "reshard", "run", "--ps=2", "cut")
        self.assertEqual(self.evaluate("--checkpoint=cut")["metrics"], plain)

    def test_set_changes_the_spec(self):
        self.assertEqual(self.evaluate("--set=data.eval.take=2")["evaluation_examples"], 2)

    def test_the_global_step_may_be_short(self):
        self.write_values({"global_step": (INT32, [], [9])})
        self.assertEqual(self.evaluate()["step"], 9)

    def test_variables_that_do_not_fit_are_named(self):
        for changes, words in (
                ({"out/kernel": None, "out/kernel/Momentum": None, "out/kernal": (FLOAT, [1], [1])},
                 r'no variable "out/kernel" \(did you mean "out/kernal"\?\)'),
                ({"out/bias": (FLOAT, [4], [1] * 4)}, r"out/bias has shape \[4\] there, \[3\] here"),
                ({"out/bias": (DOUBLE, [3], [1] * 3)}, r"out/bias is float64 there, float32 here"),
                ({"global_step": None}, r'no tensor "global_step"')):
            self.write_values(changes)
            self.assertRegex(self.refuse(), words)

    def test_values_that_are_no_numbers_are_an_error(self):
        self.write_values({"out/bias": (FLOAT, [3], [float("nan")] * 3)})
        self.assertIn("the loss is not a number", self.refuse(code=3))

    def test_a_loss_that_is_none_is_null_in_the_result(self):
        self.write_values({"out/bias": (FLOAT, [3], [float("nan")] * 3)})
        self.refuse("--result=result.json", code=3)
        result = json.loads((self.folder / "result.json").read_text())
        self.assertIsNone(result["metrics"]["loss"])
        self.assertIsInstance(result["metrics"]["accuracy"], float)

    def test_a_label_out_of_range_is_named(self):
        self.write_table("table.csv", model.ROWS, [0, 1, 2, 3, 0])
        self.assertRegex(self.refuse(), r"data.eval: .*row 4: .*label 3 is out of range")

    def test_a_label_that_is_neither_yes_nor_no_is_named_before_a_run(self):
        kinds = {"loss": "sigmoid_cross_entropy", "metrics": [], "model": [
            {"op": "dense", "name": "out", "units": 1}]}
        data = {name: {"format": "csv", "file": name + ".csv", "label": "y"}
                for name in ("train", "eval")}
        self.write_spec({**model.spec(), **kinds, "data": {**data, "batch_size": 2}})
        for wrong, right in (("train", "eval"), ("eval", "train")):
            self.write_table(f"{wrong}.csv", model.ROWS, [1, 0, 1, -1, 1])
            self.write_table(f"{right}.csv", model.ROWS, [1, 0, 1, 0, 1])
            self.assertRegex(self.run_bad("--device=cpu", "spec.json"),
                             rf"^spec.json: data.{wrong}: \S*{wrong}.csv: row 4: label -1 is out of "
                             r"range; sigmoid_cross_entropy takes 0 \(no\), 1 \(yes\)")

    def test_without_evaluation_data_there_is_nothing_to_do(self):
        self.write_spec(model.spec(data_eval=None))
        self.assertIn("data.eval: there is none", self.refuse())

    def test_wrong_words(self):
        self.assertEqual(self.run_bad("eval", "spec.json"), "eval: --checkpoint is required")
        self.assertEqual(self.run_bad("eval", "--checkpoint=run"), "eval: no SPEC.json was named")
        self.assertIn('did you mean --checkpoint', self.refuse("--checkpiont=run"))
        self.assertIn("no checkpoint there", self.refuse("--checkpoint=nowhere"))
        self.assertIn("--result=none/r.json: No such file", self.refuse("--result=none/r.json"))

    def test_a_result_that_cannot_be_written_is_an_error(self):
        ended = self.dtrain("eval", "spec.json", "--checkpoint=run", "--result=/dev/full")
        self.assertEqual(ended.returncode, 1)
        self.assertIn("--result=/dev/full: No space left", ended.stderr)

    def test_help_has_the_flags(self):
        text = self.run_ok("help", "eval")
        for flag in ("--checkpoint=", "--set=", "--data_dir=", "--result=", "--threads="):
            self.assertIn(flag, text)


class Tables(model.ModelCase):
    """Their rows are read when a batch names them."""

    def setUp(self):
        super().setUp()
        train = {"mode": "sync", "last_step": 50, "checkpoint_dir": "tables"}
        self.write_spec({"name": "clicks", **clicks.CLICKS, **clicks.SHARED_TABLE, "train": train,
                         "optimizer": {"type": "gradient_descent", "learning_rate": 0.5}})
        self.trained = self.dtrain("--local_ps=2", "--local_workers=1", "spec.json")
        self.assertEqual(self.trained.returncode, 0, self.trained.stderr)

    def result(self, text):
        return re.search(r"step 50, test loss [0-9.]*, test auc [0-9.]* \(4000 examples\)", text)[0]

    def test_a_checkpoint_gives_what_the_run_ended_with(self):
        trained = self.result(self.trained.stdout)
        self.run_ok("checkpoint", "reshard", "tables", "--ps=3", "cut")
        for folder in ("tables", "cut"):
            for rows in (1, 7, 100, 4000):
                text = self.run_ok("eval", "spec.json", f"--checkpoint={folder}",
                                   f"--set=data.eval_batch_size={rows}")
                self.assertEqual(self.result(text), trained)

    def test_predictions_do_not_depend_on_the_cut(self):
        self.run_ok("checkpoint", "reshard", "tables", "--ps=3", "cut")
        for folder in ("tables", "cut"):
            self.run_ok("predict", "spec.json", f"--checkpoint={folder}", f"--out={folder}.csv")
        got = [(self.folder / f"{folder}.csv").read_text() for folder in ("tables", "cut")]
        self.assertEqual(got[0], got[1])
        self.assertEqual(len(got[0].splitlines()), 4001)

    def test_tables_cut_by_turns_give_the_same(self):
        ended = self.dtrain("--local_ps=3", "--local_workers=1", "spec.json",
                            "--set=train.checkpoint_dir=turns",
                            "--set=placement.partitioner={\"type\": \"fixed_size\", "
                            "\"num_shards\": 3}", "--set=placement.partition_strategy=mod")
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertIn("deep/c1/embedding_weights/part_2 ",
                      self.run_ok("checkpoint", "show", "turns"))
        self.run_ok("checkpoint", "reshard", "turns", "--ps=2", "cut")
        for folder in ("turns", "cut"):
            text = self.run_ok("eval", "spec.json", f"--checkpoint={folder}")
            self.assertEqual(self.result(text), self.result(self.trained.stdout))
        (self.folder / "turns/measured.json").unlink()  # else it is told what c2 was
        self.assertIn("deep/c2/embedding_weights/part_0: of a table of 43 rows, whose ids go by "
                      "turns to 3 parts, part 0 is 15 x 5 floats",
                      self.run_bad("eval", "spec.json", "--checkpoint=turns",
                                   "--set=data.columns[1].buckets=43"))

    def test_damage_is_found_before_a_row_is_believed(self):
        """Without slots, which nobody reads."""
        (data,) = (self.folder / "tables").glob("model.ckpt-50.data-00000-*")
        for at in (0, data.stat().st_size // 2):
            content = bytearray(data.read_bytes())
            content[at] ^= 1
            data.write_bytes(content)
            self.assertIn("checksum differs",
                          self.run_bad("eval", "spec.json", "--checkpoint=tables"))
            content[at] ^= 1
            data.write_bytes(content)

    def test_tables_that_do_not_fit_are_named(self):
        """Where nobody has kept what features mean: a checkpoint of another program, or of an older one."""
        (self.folder / "tables/measured.json").unlink()
        self.assertIn("deep/c2/embedding_weights has shape [40, 5] there, [41, 5] here",
                      self.run_bad("eval", "spec.json", "--checkpoint=tables",
                                   "--set=data.columns[1].buckets=41"))

    def test_tables_that_grow_are_read_as_the_run_reads_them(self):
        """With ids that have no row yet, no longer, and never had one, and of any number of ps."""
        train = {"mode": "sync", "last_step": 60}
        data = {**clicks.GROWING["data"],
                **{part: {**clicks.GROWING["data"][part], "buckets": buckets}
                   for part, buckets in (("train", 3000), ("eval", 5000))}}
        self.write_spec({"name": "clicks", **clicks.CLICKS, **clicks.GROWING, "data": data,
                         "train": train})
        for ps in (1, 3):
            with self.subTest(ps=ps):
                folder = f"growing{ps}"
                found = []
                for words in ([f"--local_ps={ps}", "--local_workers=2"],
                              ["eval", f"--checkpoint={folder}"]):
                    done = self.dtrain(*words, "--result=grown.json", "spec.json",
                                       *([] if words[0] == "eval" else
                                         [f"--set=train.checkpoint_dir={folder}"]))
                    self.assertEqual(done.returncode, 0, done.stderr)
                    found.append(json.loads((self.folder / "grown.json").read_text())["metrics"])
                self.assertEqual(found[0], found[1])
        rows = self.run_ok("predict", "spec.json", "--checkpoint=growing3", "--out=-")
        self.assertEqual(len(rows.splitlines()), 4001)

    def test_keys_of_tables_that_grow_are_held_against_their_checksums(self):
        self.write_spec({"name": "clicks", **clicks.CLICKS, **clicks.GROWING,
                         "train": {"last_step": 5, "checkpoint_dir": "growing"}})
        trained = self.dtrain("--local_ps=1", "--local_workers=1", "spec.json")
        self.assertEqual(trained.returncode, 0, trained.stderr)
        (data,) = (self.folder / "growing").glob("model.ckpt-5.data-00000-*")
        content = bytearray(data.read_bytes())
        said = ""
        for at in range(0, len(content), len(content) // 40):
            content[at] ^= 1
            data.write_bytes(content)
            content[at] ^= 1
            ended = self.dtrain("eval", "spec.json", "--checkpoint=growing")
            self.assertIn(ended.returncode, (0, program.BAD_INPUT), ended.stderr)
            said += ended.stderr
        for part in ("keys", "rows"):
            self.assertRegex(said, f"embedding_weights/part_00000/{part}: .*checksum differs")

    def test_a_table_that_grows_is_none_of_fixed_rows(self):
        columns = [{"column": "identity", "name": "c1"}]
        about = {**clicks.CLICKS, **clicks.TABLES_ONLY, "name": "clicks",
                 "data": {**clicks.CLICKS["data"], "columns": columns},
                 "train": {"last_step": 5, "checkpoint_dir": "open"}}
        self.write_spec({**about, "model": [{**about["model"][0], "capacity": "dynamic"}]})
        self.assertEqual(self.dtrain("spec.json").returncode, 0)
        fixed = {**about, "data": {**about["data"],
                                   "columns": [{**columns[0], "buckets": 20}]}}
        self.write_spec({**fixed, "train": {**about["train"], "checkpoint_dir": "fixed"}},
                        "fixed.json")
        self.assertEqual(self.dtrain("fixed.json").returncode, 0)
        table = "logit/embedding_weights"
        for folder, spec, said in (
                ("fixed", "spec.json",
                 'has fixed rows there, and grows here ("capacity": "dynamic")'),
                ("open", "fixed.json",
                 'grows there ("capacity": "dynamic"), and has fixed rows here')):
            for words in (["eval", spec, f"--checkpoint={folder}"],
                          [spec, f"--checkpoint_dir={folder}", "--steps=9"],
                          [spec, "--checkpoint_dir=other", f"--set=train.warm_start.checkpoint={folder}"]):
                with self.subTest(words):
                    ended = self.dtrain(*words)
                    self.assertEqual(ended.returncode, program.BAD_INPUT, ended.stderr)
                    self.assertIn(f"model.ckpt-5: {table} {said}", ended.stderr)
                    # A key of train.warm_start is advised to nobody but who writes one
                    self.assertEqual("warm_start" in words[-1], '"skip" leaves' in ended.stderr, ended.stderr)
                skip = {"checkpoint": folder, "skip": [table]}
                ended = self.dtrain(spec, f"--checkpoint_dir={folder}-skipped",
                                    f"--set=train.warm_start={json.dumps(skip)}")
                self.assertEqual(ended.returncode, 0, ended.stderr)

    def test_what_is_read_is_leased(self):
        """Who writes to a pipe that is full, and not read, is not done."""
        reading = subprocess.Popen(
            [program.BINARY, "predict", "spec.json", "--checkpoint=tables", "--out=-",
             "--set=data.eval.rows=40000"], cwd=self.folder, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=program.environment())
        with reading.stdout:
            reading.stdout.readline()
            self.assertEqual(len(list((self.folder / "tables").glob(".lease-*"))), 1)
            reading.stdout.read()
        self.assertEqual(reading.wait(program.LIMIT_S), 0)
        self.assertEqual(list((self.folder / "tables").glob(".lease-*")), [])


if __name__ == "__main__":
    program.main()
