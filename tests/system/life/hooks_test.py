"""Hooks and summaries as a person asks for them in a spec, on a cluster and over restarts."""
import json

import events
import life
import program
from life import LifeCase

STANDING = {"type": "gradient_descent", "learning_rate": 1e-12}  # nothing gets better
HEADS = [{"name": name, "logits": f"of_{name}", "label": name, "loss": "sigmoid_cross_entropy", "metrics": metrics}
         for name, metrics in (("click", ["auc", {"op": "auc", "curve": "PR"}]), ("buy", ["auc"]), ("seen", []))]
COMMAND = {"type": "command", "at": ["start", "checkpoint", "evaluation", "end"],
           "command": "echo $DTRAIN_EVENT,$DTRAIN_STEP,$DTRAIN_CHECKPOINT,$DTRAIN_CODE >> told"}
SUMMARIES = {"train__save_summaries_steps": 10, "train__log_step_count_steps": 20,
             "train__evaluate_every_steps": 20}
TAGS = {"loss", "accuracy", "learning_rate", "global_step/sec", "examples/sec"}


class Hooks(LifeCase):
    def test_early_stopping_is_a_good_end(self):
        stopping = {"type": "early_stopping", "metric": "accuracy", "mode": "increase",
                    "max_steps_without_decrease": 60}
        for ps in (2, 0):
            folder = f"run-{ps}"
            ended = self.attempt(life.NEVER, ps=ps, optimizer=STANDING, train__hooks=[stopping],
                                 train__evaluate_every_steps=20, train__checkpoint_dir=folder)
            self.assertEqual(ended.returncode, 0, ended.stdout)
            self.assertRegex(ended.stdout, r"no increase of accuracy for \d+ steps: the best is "
                                           r"0.1 of step 20; training is stopped\n")
            step = self.result()["step"]
            self.assertTrue(80 <= step < 200, step)
            self.assertEqual(self.named_steps(folder), [self.steps(folder)[0], step])
            self.verify(folder)

    def test_a_command_hears_what_happens(self):
        self.train(60, train__hooks=[COMMAND], train__evaluate_every_steps=30)
        told = [line.split(",") for line in (self.folder / "told").read_text().splitlines()]
        self.assertEqual(told[0], ["start", "0", "", ""])
        self.assertEqual(told[-1], ["end", "60", f"{self.folder}/run/model.ckpt-60", "0"])
        saved = [(step, path) for event, step, path, _ in told if event == "checkpoint"]
        self.assertEqual(saved, [(str(step), f"{self.folder}/run/model.ckpt-{step}")
                                 for step in self.steps()])
        evaluated = [int(step) for event, step, *_ in told if event == "evaluation"]
        self.assertTrue(30 <= evaluated[0] < 60 and evaluated[-1] == 60, evaluated)

    def test_a_command_may_end_the_job(self):
        failing = {"type": "command", "at": ["checkpoint"], "command": "exit 3",
                   "on_failure": "stop"}
        ended = self.attempt(life.NEVER, train__hooks=[failing])
        self.assertEqual(ended.returncode, program.BAD_HOST, ended.stdout)
        self.assertRegex(ended.stdout, "the command at checkpoint .*3")

    def test_the_final_evaluation_is_that_of_the_result(self):
        hook = {"type": "final_evaluation", "path": "final.json"}
        self.train(60, train__hooks=[hook])
        final, result = json.loads((self.folder / "final.json").read_text()), self.result()
        self.assertEqual((final["step"], final["rows"]), (60, result["evaluation_examples"]))
        self.assertEqual({"loss": final["loss"], **final["metrics"]}, result["metrics"])

    def test_the_end_restores_the_best(self):
        """Growing rates: the last values are far from the best."""
        rate = {"type": "piecewise_constant", "boundaries": [100], "values": [0.3, 500.0]}
        for ps in (2, 0):
            best = {"optimizer": {"type": "gradient_descent", "learning_rate": rate},
                    "train__restore_best": True, "train__evaluate_every_steps": 10,
                    "train__mode": "sync", "train__checkpoint_dir": f"run-{ps}"}
            self.train(100, ps=ps, **best)
            text = self.train(200, ps=ps, **best)
            kept = json.loads((self.folder / f"run-{ps}/best/best.json").read_text())["best"][0]
            self.assertLessEqual(kept["step"], 100, kept)
            self.assertRegex(text, r"the last checkpoint, of step 200, has the values of the best")
            self.verify(f"run-{ps}")
            again = self.train(200, ps=ps, **best)
            self.assertIn("step 200 of 200 is there already", again)
            self.assertAlmostEqual(self.result()["metrics"]["loss"], kept["value"], 6)

    def test_placement_is_logged_as_tensorflow_does_it(self):
        text = self.train(3, train__log_device_placement=True)
        for line in ("hidden/kernel: (variable): /job:ps/task:1/device:CPU:0",
                     "global_step: (variable): /job:ps/task:0/device:CPU:0",
                     "logits: (dense): /job:worker/task:0/device:CPU:0"):
            self.assertIn(f"worker/0: {line}\n", text)


class Summaries(LifeCase):
    def check(self, found, last_step):
        """Strictly increasing, without a gap where a run was ended."""
        self.assertLessEqual(TAGS, set(found))
        for tag, points in found.items():
            steps = [step for step, _ in points]
            self.assertEqual(steps, sorted(set(steps)), tag)
            self.assertLessEqual(steps[-1], last_step, tag)
        steps = [step for step, _ in found["loss"]]
        self.assertLessEqual(max(b - a for a, b in zip(steps, steps[1:])), 20)
        self.assertGreater(steps[-1], last_step - 20)

    def test_a_restart_continues_the_curves(self):
        for last_step in (60, 120, 180):
            self.train(last_step, ps=last_step // 60, **SUMMARIES)
            self.check(events.curves(self.folder / "run"), last_step)
        curve = events.curves(self.folder / "run" / "eval")
        self.assertEqual(set(curve), {"loss", "accuracy"})
        self.assertEqual(curve["loss"][-1][0], 180)
        self.assertAlmostEqual(curve["loss"][-1][1], self.result()["metrics"]["loss"], 5)
        self.assertLess(curve["loss"][-1][1], curve["loss"][0][1])

    def test_each_head_has_a_curve_of_precision_and_recall(self):
        (self.folder / "rows.csv").write_text("x,click,buy,seen\n" + "0.1,0,1,1\n0.7,1,0,1\n" * 20)
        table = {"format": "csv", "file": "rows.csv",
                 "labels": [{"name": head["name"], "cell": head["name"]} for head in HEADS]}
        model = [{"op": "dense", "name": head["logits"], "units": 1, "inputs": ["x"]} for head in HEADS]
        data = {"train": table, "eval": table, "columns": [{"column": "numeric", "name": "x"}], "batch_size": 10}
        self.train(40, data=data, model=model, heads=HEADS, loss=None, metrics=None, **SUMMARIES)
        drawn = {tag for tag in events.tags(self.folder / "run/eval") if tag.endswith("/pr_curve")}
        self.assertEqual(drawn, {"auc/click/pr_curve", "auc/buy/pr_curve"})

    def test_a_run_that_goes_back_takes_its_later_points_back(self):
        for last_step in (40, 100):
            self.train(last_step, **SUMMARIES)
        newest = self.folder / "run" / "model.ckpt-100.data-00001-of-00002"
        newest.write_bytes(newest.read_bytes()[:-1])
        self.train(80, train__on_corrupt="previous", **SUMMARIES)
        self.check(events.curves(self.folder / "run"), 80)

    def test_they_may_have_a_folder_of_their_own(self):
        self.train(40, train__summary_dir="curves", **SUMMARIES)
        self.check(events.curves(self.folder / "curves"), 40)
        self.assertEqual(list((self.folder / "run").glob("events.*")), [])


if __name__ == "__main__":
    program.main()
