"""Tables, of which a step touches few rows: the same bits however they are cut and reached."""
import collections
import json
import os
import re

from program import main, run, wait_until
from program.cluster import ClusterCase, Plan, Task, with_files
from program.clicks import CELLS, CLICKS, GROWING, LEARNT, SHARED_TABLE, TABLES_ONLY

TCP, PARTS = ["--transport=tcp"], ["--transport=tcp", "--parts=always"]
FAR = {"worker/1": ["--transport=tcp"]}
STEPS, MANY_STEPS = 20, 600
OPTIMIZERS = {
    "gradient_descent": {"type": "gradient_descent", "learning_rate": 0.5},
    "momentum": {"type": "momentum", "learning_rate": 0.05, "momentum": 0.9},
    "adam": {"type": "adam", "learning_rate": 0.01},  # sweeps
    "lazy_adam": {"type": "lazy_adam", "learning_rate": 0.01},
    "ftrl": {"type": "ftrl", "learning_rate": 0.1, "l1": 0.001},
}
BY_NAME = {"optimizer": None, "optimizers": [
    {"match": "wide/*", "type": "ftrl", "learning_rate": 0.1, "l1": 0.001},
    {"match": "deep/c2/*", "type": "adam", "learning_rate": 0.01},
    {"type": "adagrad", "learning_rate": 0.1, "clip": {"type": "global_norm", "norm": 0.5}}]}


def pieces(shards, strategy="div"):
    return {"placement": {"partitioner": {"type": "fixed_size", "num_shards": shards},
                          "partition_strategy": strategy}}


PLACEMENTS = {
    "greedy": {"placement": {"strategy": "greedy"}},
    "2 pieces": pieces(2),
    "5 pieces by turns": pieces(5, "mod"),
    "balanced": {"placement": {"partitioner": {"type": "balanced"}}},
    "pinned": {"placement": {"pins": [{"match": "deep/*/embedding_weights", "ps": 1}]}},
}


class Tables(ClusterCase):
    def plan(self, *changes, mode="sync", **options):
        all_changes = {**CLICKS, "train.mode": mode, "train.last_step": STEPS}
        for one in changes:
            all_changes.update(one)
        return with_files(Plan(changes=all_changes, **options))

    def bits(self, plan):
        """Every loss of every worker as it was written, and the evaluation."""
        cluster = self.run_to_end(plan)
        losses = [[line["step"], line["loss"], line["auc"]]
                  for worker in range(plan.workers) for line in cluster.metrics(worker)]
        self.assertEqual(len(losses), cluster.result()["step"] * plan.workers)
        return losses, cluster.result()["metrics"]

    def assert_same_bits(self, plans):
        """Of all plans, the first of which is the measure."""
        expected = None
        for about, plan in plans.items():
            with self.subTest(about):
                bits = self.bits(plan)
                expected = expected or bits
                self.assertEqual(bits, expected)

    def test_number_of_ps_changes_no_bit(self):
        self.assert_same_bits({
            "1 ps": self.plan(ps=1),
            **{f"{ps} ps, {strategy}": self.plan(pieces(ps, strategy), ps=ps)
               for ps, strategy in ((2, "mod"), (3, "div"), (5, "mod"))}})

    def test_placement_changes_no_bit(self):
        self.assert_same_bits({"1 ps": self.plan(ps=1), **{
            f"3 ps, {about}": self.plan(placement, ps=3)
            for about, placement in PLACEMENTS.items()}})

    def test_transport_changes_no_bit(self):
        self.assert_same_bits({
            "shm": self.plan(flags=["--transport=shm"]),
            "tcp": self.plan(flags=[*TCP, "--parts=never"]),
            "mixed": self.plan(flags_of=FAR),
            "in parts": self.plan(flags=PARTS),
            "in parts, 3 ps, by turns": self.plan(pieces(3, "mod"), ps=3, flags=PARTS),
            "mixed, 3 ps, 2 pieces": self.plan(pieces(2), ps=3, flags=PARTS[1:], flags_of=FAR),
        })

    def test_evaluations_between_steps_change_no_bit(self):
        often = {"train.evaluate_every_steps": 3}
        self.assert_same_bits({
            "at the end": self.plan(),
            "often, in parts": self.plan(often, flags=PARTS),
            "often, in large batches": self.plan(often, {"data.eval_batch_size": 512}, ps=3),
        })

    def test_a_single_process_that_evaluates_often_has_the_bits_of_a_cluster(self):
        often = {"train.evaluate_every_steps": 3}
        for about, changes in {
                "growing": [GROWING, often], "tables only": [TABLES_ONLY, often],
                "every step, with checkpoints": [{
                    "train.evaluate_every_steps": 1, "train.save_checkpoint_steps": 2,
                    "train.checkpoint_dir": "often"}],
                "in towers": [often, {"train.towers": 2}],
                "async": [often, {"train.mode": "async"}]}.items():
            with self.subTest(about):
                self.assert_single_process_has_bits_of(self.plan(*changes, ps=1, workers=1))

    def assert_single_process_has_bits_of(self, plan):
        cluster = self.run_to_end(plan)
        single = Task(cluster.folder, "single", [
            "--result=single.json", "--metrics_file=single.jsonl", "--set",
            "train.checkpoint_dir=single", "spec.json"], {})
        self.addCleanup(single.kill)
        wait_until(single.has_ended, single.text)
        self.assertEqual(single.code(), 0, single.text())
        self.assertNotIn("did not arrive", single.text())
        self.assertEqual(self.evaluations(single), self.evaluations(cluster.tasks["worker/0"]))
        with open(os.path.join(cluster.folder, "single.json"), encoding="utf-8") as file:
            self.assertEqual(json.load(file)["metrics"], cluster.result()["metrics"])

    def evaluations(self, task):
        """Steps, losses and metrics, without times."""
        return re.findall(r"step \d+, test loss [^(]*", task.text())

    def test_batches_that_do_not_divide_the_rows_change_no_bit(self):
        odd = {"data.batch_size": 51, "data.eval_batch_size": 47}
        self.assert_same_bits({
            f"{ps} ps {' '.join(flags)}": self.plan(odd, pieces(2), ps=ps, flags=flags)
            for ps, flags in ((1, []), (2, []), (3, PARTS))})

    def test_a_model_of_tables_only(self):
        self.assert_same_bits({
            f"{ps} ps {' '.join(flags)}": self.plan(TABLES_ONLY, ps=ps, flags=flags)
            for ps, flags in ((1, []), (2, []), (3, PARTS))})

    def test_a_table_that_columns_share(self):
        self.assert_same_bits({
            f"{ps} ps {' '.join(flags)}": self.plan(SHARED_TABLE, *changes, ps=ps, flags=flags)
            for ps, flags, changes in ((1, [], []), (3, PARTS, [pieces(3, "mod")]),
                                       (2, TCP, [{"train.evaluate_every_steps": 3}]))})

    def test_every_optimizer_has_the_same_bits_however_tables_lie(self):
        for name, optimizer in OPTIMIZERS.items():
            with self.subTest(name):
                self.assert_same_bits({
                    f"{ps} ps {strategy} {' '.join(flags)}": self.plan(
                        {"optimizer": optimizer}, pieces(2, strategy), ps=ps, workers=3,
                        flags=flags)
                    for ps, strategy, flags in ((1, "div", []), (3, "mod", PARTS))})

    def test_optimizers_by_name_have_the_same_bits_however_tables_lie(self):
        self.assert_same_bits({
            f"{ps} ps {' '.join(flags)}": self.plan(BY_NAME, pieces(3), ps=ps, flags=flags)
            for ps, flags in ((1, []), (2, PARTS), (3, []))})

    def test_asynchronously_one_worker_has_the_bits_of_a_synchronous_one(self):
        self.assert_same_bits({
            "sync": self.plan(ps=1, workers=1),
            "async": self.plan(ps=1, workers=1, mode="async"),
            "async, in parts": self.plan(pieces(2), ps=2, workers=1, mode="async", flags=PARTS),
        })

    def test_growing_tables_have_the_same_bits_however_they_lie(self):
        self.assert_same_bits({
            f"{ps} ps {' '.join(flags)}": self.plan(GROWING, {"train.last_step": 60}, ps=ps,
                                                    flags=flags)
            for ps, flags in ((1, []), (2, []), (3, PARTS))})

    def test_growing_tables_have_the_same_bits_when_pinned_and_evaluated_often(self):
        pins = {"placement": {"pins": [{"match": "deep/*/embedding_weights", "ps": 1}]}}
        self.assert_same_bits({
            "on all": self.plan(GROWING, ps=3),
            "pinned, evaluated": self.plan(GROWING, pins, {"train.evaluate_every_steps": 3}, ps=2)})

    def test_growing_tables_that_admit_at_once_are_static_ones(self):
        def weights(about, capacity):
            columns = [{"column": "identity", "name": cell, **about} for cell in CELLS]
            data = {**CLICKS["data"], "columns": columns}
            model = [{"op": "linear", "name": "logit", "inputs": [*CELLS], "capacity": capacity}]
            return self.plan({"data": data, "model": model})
        self.assert_same_bits({
            "static": weights({"buckets": 20}, "static"),
            "dynamic": weights({}, "dynamic")})

    def counted(self, by, admit):
        return {"model": [{**node, "admit_after": admit, "admit_by": by} if "capacity" in node
                          else node for node in GROWING["model"]]}

    def test_growing_tables_that_count_occurrences_have_the_same_bits_however_they_lie(self):
        short = {"train.last_step": 40}
        self.assert_same_bits({
            f"{ps} ps {' '.join(flags)}": self.plan(
                GROWING, self.counted("occurrences", 6), short, ps=ps, flags=flags)
            for ps, flags in ((1, []), (3, PARTS))})
        once = {by: self.bits(self.plan(GROWING, self.counted(by, 1), short, ps=2))
                for by in ("steps", "occurrences")}
        self.assertEqual(once["steps"], once["occurrences"])
        often = {by: self.bits(self.plan(GROWING, self.counted(by, 6), short, ps=2))
                 for by in ("steps", "occurrences")}
        self.assertNotEqual(often["steps"], often["occurrences"])

    def test_ids_without_a_row_are_the_same_for_everybody_who_evaluates(self):
        """Few of them were seen often enough; the others are in no checkpoint."""
        for admit in (1, 4):
            with self.subTest(admit_after=admit):
                model = [{**node, "admit_after": admit} if "capacity" in node else node
                         for node in GROWING["model"]]
                plan = self.plan(GROWING, {"model": model, "data.eval.buckets": 2000,
                                           "train.last_step": 5, "train.checkpoint_dir": "seen",
                                           "train.evaluate_every_steps": 4}, ps=3)
                cluster = self.run_to_end(plan)
                expected = cluster.result()["metrics"]
                evaluated = run(["eval", "--checkpoint=seen", "--result=eval.json", "spec.json"],
                                cluster.folder)
                self.assertEqual(evaluated.returncode, 0, evaluated.stderr)
                self.assert_metrics(cluster, "eval.json", expected)
                predicted = run(["predict", "--checkpoint=seen", "--out=-", "spec.json"],
                                cluster.folder)
                said = collections.Counter(line.split(",")[2] for line in predicted.stdout.split())
                self.assertGreater(said.most_common(1)[0][1], 100)  # rows of none but such ids
                for flags in (["--local_ps=2", "--local_workers=2"], []):
                    again = run([*flags, "--result=again.json", "spec.json"], cluster.folder)
                    self.assertEqual(again.returncode, 0, again.stderr)
                    self.assert_metrics(cluster, "again.json", expected)

    def assert_metrics(self, cluster, name, expected):
        with open(os.path.join(cluster.folder, name), encoding="utf-8") as file:
            found = json.load(file)["metrics"]
        for key, value in expected.items():
            self.assertAlmostEqual(found[key], value, delta=1e-6, msg=(name, key))

    def test_growing_tables_learn(self):
        self.learn(GROWING, mode="async", flags=PARTS)

    def mean_losses(self, cluster):
        of_workers = [[line["loss"] for line in cluster.metrics(worker)]
                      for worker in range(cluster.plan.workers)]
        return [sum(step) / len(step) for step in zip(*of_workers)]

    def test_workers_equal_one_with_the_batches_of_all(self):
        def losses(workers):
            cluster = self.run_to_end(self.plan({"data.batch_size": 96 // workers},
                                                workers=workers))
            return self.mean_losses(cluster) + list(cluster.result()["metrics"].values())
        expected = losses(1)
        for value, wanted in zip(losses(4), expected, strict=True):
            self.assertAlmostEqual(value, wanted, delta=1e-5 * abs(wanted))

    def learn(self, *changes, workers=3, **options):
        """Ends at the last step, with what there is to learn."""
        cluster = self.run_to_end(self.plan({"train.last_step": MANY_STEPS}, *changes,
                                            workers=workers, **options))
        self.assertEqual(cluster.result()["step"], MANY_STEPS)
        self.assertGreater(cluster.result()["metrics"]["auc"], LEARNT, cluster.story())
        return cluster

    def test_asynchronous_workers_end_at_the_last_step_and_learn(self):
        for about, changes, flags in (
                ("tcp", {}, PARTS), ("stale, pieces", {"train.max_staleness": 1, **pieces(2)}, [])):
            with self.subTest(about):
                self.learn(changes, mode="async", flags=flags)

    def test_backup_workers_end_at_the_last_step_and_learn(self):
        self.learn({"train.replicas_to_aggregate": 2}, flags=PARTS)

    def test_a_push_of_several_batches_is_refused(self):
        """Its rows would be those of all of them, and windows are made for one."""
        cluster = self.start(self.plan({"train.replicas_to_aggregate": 4}, workers=2),
                             lambda c: c.tasks["worker/0"].has_ended())
        self.assertEqual(cluster.tasks["worker/0"].code(), 2, cluster.story())
        self.assert_says(cluster, "worker/0", "cannot sum 2 batches into one push where the model "
                         "has tables of rows: at most one per worker; a data.batch_size of 2 times")


if __name__ == "__main__":
    main()
