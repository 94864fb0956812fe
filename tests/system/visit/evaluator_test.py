"""The evaluator beside clusters of real processes: it evaluates what they save and ends with them."""
import json
import os
import re
import signal
from pathlib import Path

import program
from program import logged
from program.cluster import ENDLESS, SPEC, START_S, Cluster, ClusterCase, Plan, Task, is_listened_on

LINE = re.compile(r"^step (\d+), eval loss (\S+), eval accuracy (\S+) \(100 examples\)$", re.M)
TERMINATED, TIMEOUT, INPUT, NUMBER = 143, 129, 2, 3
SAVES = {"train.checkpoint_dir": "run", "train.save_checkpoint_steps": 10}
HEAVY = [{"op": "flatten"}, {"op": "dense", "name": "hidden", "units": 1024, "activation": "relu"},
         {"op": "dense", "name": "logits", "units": 10}]


def by_tf_config(hosts):
    chief, *workers = hosts["worker"]
    cluster = {"chief": [chief], "worker": workers, "ps": hosts["ps"]}
    return {"TF_CONFIG": json.dumps({"cluster": cluster,
                                     "task": {"type": "evaluator", "index": 0}})}


class Evaluator(ClusterCase):
    def evaluator(self, cluster, *flags, spec="spec.json", label="evaluator"):
        words = ["--job_name=evaluator", "--ps_hosts=" + ",".join(cluster.hosts["ps"]),
                 "--worker_hosts=" + ",".join(cluster.hosts["worker"]), "--log_level=debug",
                 *flags, spec]
        return self.add(cluster, Task(cluster.folder, label, words, {}))

    def add(self, cluster, task):
        cluster.tasks["evaluator"] = task
        return task

    def with_ps(self, changes):
        """Only the ps are there: whoever is started now sees the run from its beginning."""
        plan = Plan(changes={**SAVES, **changes}, absent=["worker/0", "worker/1"])
        return self.start(plan, lambda c: all(is_listened_on(c.address(name))
                                              for name in ("ps/0", "ps/1")))

    def workers(self, cluster):
        """Once the evaluator is there: it would wait in vain for ps of a job that is done."""
        if "evaluator" in cluster.tasks:
            cluster.wait_for("evaluator", "ps/0 is here")
        cluster.start("worker/0")
        cluster.start("worker/1")

    def events(self, cluster):
        folder = os.path.join(cluster.folder, "run", "eval")
        for name in sorted(os.listdir(folder)):
            if name.startswith("events.out.tfevents."):
                with open(os.path.join(folder, name), "rb") as events:
                    yield events.read()

    def lines(self, task):
        return [(int(step), float(loss), float(accuracy))
                for step, loss, accuracy in LINE.findall(task.text())]

    def test_it_evaluates_the_last_checkpoint_and_ends_with_the_job(self):
        for mode in ("sync", "async"):
            with self.subTest(mode=mode):
                cluster = self.with_ps({"train.mode": mode, "train.last_step": 60})
                task = self.evaluator(cluster)
                self.workers(cluster)
                self.assert_codes(cluster, 0)
                lines = self.lines(task)
                self.assertEqual(lines[-1][0], 60, cluster.story())
                self.assertEqual([line[0] for line in lines], sorted({line[0] for line in lines}))
                said = re.search(r"test loss (\S+), test accuracy (\S+) ",
                                 cluster.tasks["worker/0"].text())
                self.assertEqual(lines[-1][1:], (float(said[1]), float(said[2])))
                content = b"".join(self.events(cluster))
                self.assertIn(b"loss", content)
                self.assertIn(b"accuracy", content)

    def test_a_last_evaluation_without_a_number_is_its_end(self):
        for name, label in (("good", 1), ("bad", "3e30")):
            with open(os.path.join(self.folder, f"{name}.csv"), "w", encoding="utf-8") as file:
                file.write("x,y\n" + f"1,{label}\n" * 4)
        source = {"format": "csv", "file": os.path.join(self.folder, "good.csv"), "label": "y",
                  "label_type": "number"}
        cluster = self.with_ps({
            "data": {"train": source, "eval": source, "batch_size": 2}, "metrics": [],
            "model": [{"op": "dense", "units": 1}], "loss": "mean_squared_error",
            "train.last_step": 20})
        task = self.evaluator(cluster, f"--set=data.eval.file={self.folder}/bad.csv")
        self.workers(cluster)
        codes = cluster.wait()
        self.assertEqual(codes.pop("evaluator"), NUMBER, cluster.story())
        self.assertEqual(set(codes.values()), {0}, cluster.story())
        self.assertRegex(task.text(), r"the last evaluation: step 20: the loss is (not a number|infinite)")

    def test_one_that_is_started_again_goes_on_where_it_was(self):
        cluster = self.with_ps({"train.last_step": ENDLESS, "train.log_every_steps": 1000000,
                                "train.save_checkpoint_steps": None,
                                "train.save_checkpoint_secs": 0.2,
                                "train.keep_checkpoint_max": 1000})
        first = self.evaluator(cluster, "--keep_best=1")
        self.workers(cluster)
        cluster.wait_until(lambda: len(self.lines(first)) >= 3, "evaluations")
        first.kill()
        second = self.evaluator(cluster, "--keep_best=1", label="second")
        cluster.wait_until(lambda: self.lines(second), "a further evaluation")
        second.kill()
        done = [line[0] for line in self.lines(first) + self.lines(second)]
        third = self.evaluator(cluster, "--keep_best=2", "--log_level=debug", label="third")
        cluster.wait_for("evaluator", "ps/0 is here")
        cluster.tasks["ps/0"].process.send_signal(signal.SIGTERM)
        self.assert_codes(cluster, TERMINATED)
        # killed between the line and the note of it, at most one comes twice
        self.assertLessEqual(len(done) - len(set(done)), 1, cluster.story())
        self.assertEqual(self.lines(third)[0][0], done[0], cluster.story())

    def test_one_that_falls_behind_says_so(self):
        cluster = self.with_ps({"train.last_step": ENDLESS, "train.log_every_steps": ENDLESS, "train.keep_checkpoint_max": 2,
                                "train.save_checkpoint_steps": None, "train.save_checkpoint_secs": 0.05})
        self.evaluator(cluster, "--set=data.eval.rows=40000")
        self.workers(cluster)
        cluster.wait_for("evaluator", "removed before it came to")

    def test_it_is_told_by_tf_config(self):
        cluster = self.with_ps({"train.last_step": 20})
        task = self.add(cluster, Task(cluster.folder, "evaluator", ["--log_level=debug", "spec.json"],
                                      by_tf_config(cluster.hosts)))
        self.workers(cluster)
        self.assert_codes(cluster, 0)
        self.assertEqual(self.lines(task)[-1][0], 20)

    def test_a_job_that_is_stopped_ends_it_with_the_same_code(self):
        cluster = self.with_ps({"train.last_step": ENDLESS, "train.log_every_steps": 1000,
                                "train.save_checkpoint_steps": 200})
        task = self.evaluator(cluster)
        self.workers(cluster)
        cluster.wait_for("evaluator", "eval loss")
        cluster.tasks["ps/0"].process.send_signal(signal.SIGTERM)
        self.assert_codes(cluster, TERMINATED)
        newest = re.search(r'model_checkpoint_path: "\D*(\d+)"', cluster.read("run/checkpoint"))
        self.assertEqual(self.lines(task)[-1][0], int(newest[1]), cluster.story())

    def test_a_job_that_ends_while_it_cannot_hear_ends_it_with_the_same_code(self):
        """ps/0 has had another life meanwhile, so that no link brings its last words. The folder tells of an end before."""
        Path(self.folder, "run").mkdir()
        Path(self.folder, "run/.ended").write_text("00000000000000ab 3 another job\n")
        changes = {"train.last_step": ENDLESS, "train.log_every_steps": 1000, "train.save_checkpoint_steps": 200,
                   "train.checkpoint_dir": os.path.join(self.folder, "run")}
        cluster = self.with_ps(changes)
        task = self.evaluator(cluster)
        self.workers(cluster)
        cluster.wait_for("evaluator", "eval loss")
        os.kill(task.process.pid, signal.SIGSTOP)
        program.wait_until(task.is_held_up, lambda: "the evaluator to be held up")
        cluster.tasks["ps/0"].kill()
        cluster.start("ps/0")
        cluster.wait_for("worker/0", "begins from")
        cluster.tasks["ps/0"].process.send_signal(signal.SIGTERM)
        del cluster.tasks["evaluator"]
        self.assert_codes(cluster, TERMINATED)
        os.kill(task.process.pid, signal.SIGCONT)
        self.add(cluster, task)
        self.assert_codes(cluster, TERMINATED)
        self.assert_says(cluster, "evaluator", r"no other task answers, and \S+/run says how the job ended")
        self.assert_says(cluster, "evaluator", r"asked to end|SIGTERM")

    def test_all_that_it_prints_may_be_json(self):
        cluster = self.with_ps({"train.last_step": 60})
        task = self.evaluator(cluster, "--log_format=json")
        self.workers(cluster)
        self.assert_codes(cluster, 0)
        texts = [line["text"] for line in logged.check_all(self, task.text())]
        self.assertTrue(any(re.search(LINE, f"{text}\n") for text in texts), texts)

    def test_it_says_what_it_waits_for(self):
        cluster = self.with_ps({"train.last_step": 60})
        task = self.evaluator(cluster, "--log_level=debug")
        program.wait_until(lambda: "ps/0 is here" in task.text(), cluster.story)
        task.process.send_signal(signal.SIGUSR1)
        program.wait_until(lambda: "waits for a first checkpoint in" in task.text(), cluster.story)
        self.assertRegex(task.text(), r"evaluator: evaluator, [0-9.]+ MiB resident\n")
        self.workers(cluster)
        self.assert_codes(cluster, 0)

    def test_the_best_are_kept_when_the_run_has_let_them_go(self):
        cluster = self.with_ps({"train.last_step": ENDLESS, "train.log_every_steps": 1000,
                                "train.save_checkpoint_steps": 100,
                                "train.keep_checkpoint_max": 1})
        task = self.evaluator(cluster, "--keep_best=2", "--best_metric=accuracy")
        self.workers(cluster)
        cluster.wait_until(lambda: len(self.lines(task)) >= 6 or task.has_ended(), "evaluations")
        cluster.tasks["ps/0"].process.send_signal(signal.SIGTERM)
        self.assert_codes(cluster, TERMINATED)
        lines = self.lines(task)
        best = json.loads(cluster.read("run/best/best.json"))
        # the run may remove one in the moment in which the evaluator takes its lease
        gone = {int(step) for step in re.findall(r"model\.ckpt-(\d+)\.index: No such file", task.text())}
        wanted = sorted((line for line in lines if line[0] not in gone), key=lambda line: (-line[2], line[0]))[:2]
        self.assertEqual(best["metric"], "accuracy")
        self.assertEqual([entry["step"] for entry in best["best"]], [line[0] for line in wanted],
                         cluster.story())
        state = re.findall(r'"(\S+)"', cluster.read("run/best/checkpoint"))
        names = [f"model.ckpt-{line[0]}" for line in wanted]
        self.assertEqual(state, [names[0], names[1], names[0]])
        kept = {name.split(".index")[0] for name in os.listdir(f"{cluster.folder}/run/best")
                if name.endswith(".index")}
        self.assertEqual(kept, set(names))
        tool = Task(cluster.folder, "tool", ["eval", "--checkpoint=run/best", "spec.json"], {})
        program.wait_until(tool.has_ended, lambda: "eval")
        self.assertIn(f"test accuracy {wanted[0][2]:.4f}", tool.text())

    def test_the_best_of_a_day_are_not_compared_with_those_of_another(self):
        """train.daily: of the second day's rows no evaluation comes as near."""
        for day, noise in ((1, 0), (2, 9)):
            with open(os.path.join(self.folder, f"day-{day}.csv"), "w", encoding="utf-8") as file:
                file.write("x,y\n" + "".join(f"{i % 7},{i % 7 + noise * (i % 2)}\n" for i in range(64)))
            source = {"format": "csv", "file": os.path.join(self.folder, f"day-{day}.csv"), "label": "y", "label_type": "number"}
            cluster = self.with_ps({
                "data": {"train": source, "eval": source, "batch_size": 4}, "metrics": [],
                "model": [{"op": "dense", "units": 1}], "loss": "mean_squared_error", "train.last_step": None,
                "optimizer": {"type": "gradient_descent", "learning_rate": 0.001},
                "train.epochs": 4, "train.daily": True, "train.checkpoint_dir": os.path.join(self.folder, "days")})
            self.evaluator(cluster, "--keep_best=1")
            self.workers(cluster)
            self.assert_codes(cluster, 0)
            begun, best = (json.loads(Path(self.folder, "days", name).read_text()) for name in ("day.json", "best/best.json"))
            self.assertEqual([entry["step"] > begun["step"] for entry in best["best"]], [True], cluster.story())
        self.assertGreater(begun["step"], 0)

    def test_a_checkpoint_that_it_reads_is_not_removed(self):
        """Evaluations that take a while are stopped in the middle, while the run saves others."""
        cluster = self.with_ps({"train.last_step": ENDLESS, "train.log_every_steps": 1000,
                                "train.save_checkpoint_steps": 20, "model": HEAVY,
                                "data.eval": {"format": "random", "rows": 8000, "shape": [784],
                                              "classes": 10},
                                "data.train": {"format": "random", "rows": 400, "shape": [784],
                                               "classes": 10},
                                "train.keep_checkpoint_max": 1})
        task = self.evaluator(cluster)
        self.workers(cluster)
        folder = os.path.join(cluster.folder, "run")

        def leased():
            names = os.listdir(folder) if os.path.isdir(folder) else []
            found = [re.match(r"\.lease-(model\.ckpt-\d+)\.", name) for name in names]
            return next((one[1] for one in found if one), None)

        def is_held():
            if not leased():
                return False
            os.kill(task.process.pid, signal.SIGSTOP)
            program.wait_until(task.is_held_up, lambda: "the evaluator to be held up")
            if leased() and os.path.exists(os.path.join(folder, leased() + ".index")):
                return True
            os.kill(task.process.pid, signal.SIGCONT)
            return False

        cluster.wait_until(is_held, "a lease")
        name = leased()
        saved = cluster.tasks["worker/0"].text().count("saved ")
        cluster.wait_until(lambda: cluster.tasks["worker/0"].text().count("saved ") >= saved + 3,
                           "three more checkpoints")
        self.assertTrue(os.path.exists(os.path.join(folder, name + ".index")), cluster.story())
        kept = [one for one in os.listdir(folder) if one.endswith(".index")]
        self.assertLessEqual(len(kept), 3, kept)  # it, the newest, perhaps the one before
        os.kill(task.process.pid, signal.SIGCONT)
        cluster.wait_for("evaluator", f"step {name.split('-')[1]}, eval loss")
        cluster.tasks["ps/0"].process.send_signal(signal.SIGTERM)
        self.assert_codes(cluster, TERMINATED)

    def test_a_ps_that_does_not_come_is_waited_for_no_longer_than_said(self):
        cluster = Cluster(self.folder, Plan(changes=SAVES))
        self.evaluator(cluster, f"--start_timeout={START_S}")  # within which it has asked once, at least
        self.assert_codes(cluster, TIMEOUT)
        self.assert_says(cluster, "evaluator", rf"(?m)^dtrain: ps/0 at \S+ did not come within {START_S} s "
                                               r"\(--start_timeout\): .*refused")

    def test_a_ps_that_is_lost_is_waited_for_too(self):
        cluster = self.with_ps({})
        task = self.evaluator(cluster, "--restart_timeout=0.3", "--log_level=debug")
        cluster.wait_for("evaluator", "ps/0 is here")
        cluster.tasks["ps/0"].kill()
        cluster.wait_until(task.has_ended, "the evaluator to end")
        self.assertEqual(task.code(), TIMEOUT, cluster.story())
        self.assert_says(cluster, "evaluator", r"--restart_timeout")

    def test_a_model_that_is_another_is_an_error_in_the_end(self):
        cluster = self.with_ps({"train.last_step": 20})
        other = program.changed(SPEC, {**SAVES, "train.last_step": 20})
        other["model"][1]["units"] = 17
        with open(os.path.join(cluster.folder, "other.json"), "w", encoding="utf-8") as file:
            json.dump(other, file)
        task = self.evaluator(cluster, spec="other.json")
        self.workers(cluster)
        cluster.wait()
        self.assertEqual((task.code(), cluster.tasks["worker/0"].code()), (INPUT, 0),
                         cluster.story())
        self.assert_says(cluster, "evaluator", r"not evaluated: \S+model.ckpt-20: .*hidden")

    def test_what_it_cannot_do_without_is_named(self):
        for changes, flags, words in (
                ({}, (), "an evaluator needs train.checkpoint_dir"),
                (SAVES, ("--best_metric=acuracy",),
                 '--best_metric=acuracy: the spec has no such metric (did you mean "accuracy"?)')):
            with self.subTest(words=words):
                cluster = Cluster(self.folder, Plan(changes=changes))
                self.evaluator(cluster, *flags)
                self.assert_codes(cluster, INPUT)
                self.assertIn(words, cluster.tasks["evaluator"].text())


if __name__ == "__main__":
    program.main()
