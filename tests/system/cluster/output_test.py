"""What a run leaves for scripts, and the flags that change it."""
import json
import os
import time

import program
from program.cluster import SPEC, ClusterCase, Plan, Task, with_files

LAST_STEP = 30
ROWS = 400
RESULT = {"name": str, "code": int, "verdict": str, "step": int, "own_steps": int, "trained": int,
          "evaluation_examples": int, "metrics": dict, "rows": dict, "seconds": float, "wall_seconds": float,
          "examples_per_second": float, "first_step_unix": float, "tasks": list}
METRICS = {"step": int, "loss": float, "accuracy": float, "learning_rate": float,
           "examples_per_second": float, "seconds": float}
DECAY = {"type": "exponential_decay", "learning_rate": 0.1, "decay_steps": 10, "decay_rate": 0.5}
NUMBER = 3


class Output(ClusterCase):
    def run_plan(self, **options):
        return self.run_to_end(with_files(Plan(**options)))

    def run_changed(self, **changes):
        """A synchronous cluster, train.last_step written as train_last_step."""
        named = {key.replace("_", ".", 1): value for key, value in changes.items()}
        return self.run_plan(changes={"train.mode": "sync", **named})

    def assert_types(self, value, types):
        """A number that happens to be whole may be written without a point."""
        self.assertEqual(set(value), set(types))
        for key, kind in types.items():
            self.assertIsInstance(value[key], (int, float) if kind is float else kind, key)

    def test_the_result_says_how_the_job_ended(self):
        since = time.time()
        result = self.run_changed().result()
        self.assert_types(result, RESULT)
        self.assertEqual((result["name"], result["code"], result["verdict"]), ("small", 0, "done"))
        self.assertEqual((result["step"], result["own_steps"]), (LAST_STEP, LAST_STEP))
        self.assertEqual(result["evaluation_examples"], 100)
        self.assertEqual(set(result["metrics"]), {"loss", "accuracy"})
        self.assertTrue(since <= result["first_step_unix"] <= time.time())
        self.assertTrue(0 < result["seconds"] <= result["wall_seconds"])
        self.assertAlmostEqual(result["examples_per_second"] * result["seconds"],
                               (LAST_STEP - 1) * 2 * 20, delta=1)
        self.assertEqual(result["rows"], {"per_epoch": ROWS, "epochs": LAST_STEP * 2 * 20 // ROWS,
                                          "used": LAST_STEP * 2 * 20, "twice": 0, "lost": 0,
                                          "late": 0})
        chief = next(task for task in result["tasks"] if task["task"] == "worker/0")
        self.assertEqual(chief["counters"]["steps_total"], LAST_STEP)  # to the last one

    def test_the_result_of_a_failure_has_its_code_and_words(self):
        plan = with_files(Plan(changes={"train.mode": "sync", "data.scale": 1e30}))
        cluster = self.start(plan, lambda c: all([t.has_ended() for t in c.tasks.values()]))
        self.assert_codes(cluster, NUMBER)
        result = cluster.result()
        self.assert_types(result, {key: RESULT[key] for key in RESULT if key != "rows"})
        self.assertEqual(result["code"], NUMBER)
        self.assertRegex(result["verdict"], r"step 2: the loss is NaN")
        self.assertEqual((result["evaluation_examples"], result["metrics"]), (0, {}))
        self.assertEqual((result["step"], result["own_steps"]), (1, 1))

    def test_every_worker_writes_every_step(self):
        cluster = self.run_changed()
        for worker in range(2):
            lines = cluster.metrics(worker)
            self.assertEqual([line["step"] for line in lines], list(range(1, LAST_STEP + 1)))
            for line in lines:
                self.assert_types(line, METRICS)
                self.assertEqual(line["learning_rate"], 0.05)
            seconds = [line["seconds"] for line in lines]
            self.assertEqual(seconds, sorted(seconds))
        self.assertNotEqual(cluster.metrics(0)[0]["loss"], cluster.metrics(1)[0]["loss"])

    def test_steps_between_two_lines_can_be_left_out(self):
        lines = self.run_changed(train_log_every_steps=10).metrics()
        self.assertEqual([line["step"] for line in lines], [1, 10, 20, 30])

    def test_the_learning_rate_follows_its_schedule(self):
        lines = self.run_changed(optimizer_learning_rate=DECAY).metrics()
        for line in lines:
            wanted = 0.1 * 0.5 ** ((line["step"] - 1) / 10)
            self.assertAlmostEqual(line["learning_rate"], wanted, delta=1e-6)

    def test_the_loss_falls(self):
        lines = self.run_changed(train_last_step=100).metrics()
        self.assertLess(lines[-1]["loss"], 0.5 * lines[0]["loss"])

    def test_set_changes_values_of_the_spec(self):
        flags = ["--set=train.last_step=7", "--set", "model[1].units=5",
                 "--set=optimizer.learning_rate=0.01"]
        cluster = self.run_plan(changes={"train.mode": "sync"},
                                flags_of={"worker/0": flags, "worker/1": flags})
        self.assertEqual(cluster.result()["step"], 7)
        self.assertEqual(cluster.metrics()[0]["learning_rate"], 0.01)
        self.assert_says(cluster, "worker/0", r"hidden/kernel +\[784, 5\] +15680 ")

    def losses(self, *flags):
        cluster = self.run_plan(changes={"train.mode": "sync"}, flags_of={
            f"worker/{worker}": list(flags) for worker in range(2)})
        return [line["loss"] for line in cluster.metrics()]

    def test_the_seed_flag_stands_for_the_seed_of_the_spec(self):
        self.assertEqual(self.losses("--seed=7"), self.losses("--set=seed=7"))
        self.assertNotEqual(self.losses("--seed=7"), self.losses())

    def write_rows(self, folder):
        """Two classes that one column tells apart."""
        os.makedirs(folder)
        with open(os.path.join(folder, "rows.csv"), "w", encoding="utf-8") as file:
            for row in range(80):
                file.write(f"{row % 2}.0,{row * 0.01},{row % 2}\n")

    def run_rows(self, flags, spec):
        path = os.path.join(self.folder, "spec.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(spec, file)
        task = Task(self.folder, "single", flags + [path], {})
        self.addCleanup(task.kill)
        program.wait_until(task.has_ended, task.text)
        return task

    def write_numbers(self, label):
        with open(os.path.join(self.folder, "train.csv"), "w", encoding="utf-8") as file:
            file.write("x,y\n" + "".join(f"{x},{x}\n" for x in range(8)))
        with open(os.path.join(self.folder, "eval.csv"), "w", encoding="utf-8") as file:
            file.write(f"x,y\n1,1\n2,{label}\n")
        sources = {name: {"format": "csv", "file": name + ".csv", "label": "y",
                          "label_type": "number"} for name in ("train", "eval")}
        return {"name": "numbers", "data": {**sources, "batch_size": 2},
                "model": [{"op": "dense", "name": "p", "units": 1}], "loss": "mean_squared_error",
                "metrics": ["mean_absolute_error", "loss"],
                "optimizer": {"type": "gradient_descent", "learning_rate": 0.001},
                "train": {"last_step": 6, "evaluate_every_steps": 2}}

    def test_a_last_evaluation_without_a_number_fails_the_job_and_is_null(self):
        spec = self.write_numbers("3e30")
        result = os.path.join(self.folder, "numbers.json")
        for flags in ([], ["--local_ps=1", "--local_workers=2"]):
            with self.subTest(flags):
                task = self.run_rows([f"--result={result}", *flags], spec)
                self.assertEqual(task.code(), NUMBER, task.text())
                self.assertRegex(task.text(), r"step 6, test loss inf, test mean_absolute_error")
                self.assertIn("the last evaluation: the loss is infinite", task.text())
                with open(result, encoding="utf-8") as file:
                    found = json.load(file)
                self.assertEqual((found["code"], found["evaluation_examples"]), (NUMBER, 2))
                self.assertIsNone(found["metrics"]["loss"])
                self.assertGreater(found["metrics"]["mean_absolute_error"], 1e29)

    def test_each_name_of_a_line_is_one_value(self):
        def once(pairs):
            self.assertEqual(len(dict(pairs)), len(pairs), pairs)
            return dict(pairs)
        lines = os.path.join(self.folder, "lines.jsonl")
        result = os.path.join(self.folder, "numbers.json")
        task = self.run_rows([f"--metrics_file={lines}", f"--result={result}"],
                             self.write_numbers("2"))
        self.assertEqual(task.code(), 0, task.text())
        with open(lines, encoding="utf-8") as file:
            for line in file:
                json.loads(line, object_pairs_hook=once)
        with open(result, encoding="utf-8") as file:
            metrics = json.loads(file.read(), object_pairs_hook=once)["metrics"]
        self.assertEqual(set(metrics), {"loss", "mean_loss", "mean_absolute_error"})

    def test_data_files_are_found_beside_the_spec_or_where_data_dir_says(self):
        spec = program.changed(SPEC, {
            "data.train": {"format": "csv", "file": "rows.csv", "label": -1,
                           "header": False},
            "model": [{"op": "dense", "name": "logits", "units": 2}]})
        spec["data"]["eval"] = None  # null says what an absent key says
        elsewhere = os.path.join(self.folder, "elsewhere")
        self.write_rows(elsewhere)
        missing = self.run_rows([], spec)
        self.assertEqual(missing.code(), 2, missing.text())
        self.assertIn(os.path.join(self.folder, "rows.csv"), missing.text())
        found = self.run_rows([f"--data_dir={elsewhere}"], spec)
        self.assertEqual(found.code(), 0, found.text())
        self.assertIn(f"step {LAST_STEP}, ", found.text())


if __name__ == "__main__":
    program.main()
