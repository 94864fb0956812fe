"""Synchronous training gives the same bits however it is spread out, and the numbers of one worker
with the whole batch."""
import dataclasses
import random
import signal
import time

import program
from program.cluster import ClusterCase, Plan, Task, by_flags, with_files

SYNC = {"train.mode": "sync"}
ROUND_ROBIN = {"strategy": "round_robin"}
GREEDY = {"strategy": "greedy"}
PIECES = {"strategy": "round_robin", "partitioner": {"type": "fixed_size", "num_shards": 3}}
PINNED = {"strategy": "greedy", "pins": [{"match": "hidden/*", "ps": 1}]}
COINS = {"format": "random", "rows": 130, "shape": [5], "classes": 2}
YES_OR_NO = {
    "data.train": COINS, "data.eval": COINS, "data.scale": 1,
    "model": [{"op": "dense", "units": 1}], "loss": "sigmoid_cross_entropy",
    "metrics": ["accuracy", "auc", "precision", {"op": "recall", "threshold": 0.4}, "log_loss",
                {"op": "auc", "curve": "PR", "summation_method": "ranking"}, "calibration"],
}
CLOSE = 1e-6  # relative
LARGE = {  # blocks of 400 KB: over a network gradients leave and values come in parts
    "model": [{"op": "flatten"},
              {"op": "dense", "name": "hidden", "units": 128, "activation": "relu",
               "kernel_regularizer": {"l2": 0.001}},
              {"op": "dropout", "rate": 0.2},
              {"op": "dense", "name": "more", "units": 64, "activation": "relu"},
              {"op": "dense", "name": "logits", "units": 10}],
    "optimizer": {"type": "adam"},
}
NEAR = 0.01  # relative, of losses after rounded gradients, or with rounded values
ROUNDED_VALUES = {
    "bf16": {"train.wire_values": "bf16"},
    "both fp16": {"train.wire": "fp16", "train.wire_values": "fp16"},
}
PAUSES_MAX = 60
PAUSE_LOOKS_MAX = 5


def as_four_hosts(task, hosts, spec):
    """Every task has another name of this host."""
    names = iter(["127.0.0.1", "localhost", "127.1", "127.0.1"])
    hosts = {job: [at.replace("127.0.0.1", next(names)) for at in list] for job, list in hosts.items()}
    return by_flags(task, hosts, spec)


CONVOLUTIONS = {  # two convolutions and a product that are large enough for bf16
    "precision": "bf16", "data.batch_size": 50,
    "model": [{"op": "conv2d", "name": "one", "filters": 8, "kernel_size": 5, "strides": 4},
              {"op": "conv2d", "name": "two", "filters": 16, "kernel_size": 3, "activation": "relu"},
              {"op": "flatten"},
              {"op": "dense", "name": "hidden", "units": 128, "activation": "relu"},
              {"op": "dense", "name": "logits", "units": 10}],
}


def with_bf16(task, hosts, spec):
    """Also where AVX-512 does it; without that all is in float32, and has the same bits, too."""
    words, env = by_flags(task, hosts, spec)
    return words, {**(env or {}), "DTRAIN_CPU_BF16": "always"}


class Sync(ClusterCase):
    def plan(self, placement=None, **options):
        changes = {**SYNC, "placement": placement or ROUND_ROBIN, **options.pop("changes", {})}
        return with_files(Plan(changes=changes, **options))

    def bits(self, cluster):
        """Every loss of every worker as it was written, and the evaluation."""
        losses = [[line["step"], line["loss"], line["accuracy"], line["learning_rate"]]
                  for worker in range(cluster.plan.workers) for line in cluster.metrics(worker)]
        return losses, cluster.result()["metrics"]

    def run_bits(self, plan):
        return self.bits(self.run_to_end(plan))

    def assert_same_bits(self, plans):
        """Of all plans, the first of which is the measure."""
        expected = None
        for about, plan in plans.items():
            with self.subTest(about):
                bits = self.run_bits(plan)
                self.assertEqual(len(bits[0]), 30 * plan.workers)
                expected = expected or bits
                self.assertEqual(bits, expected)

    def test_placement_and_number_of_ps_change_no_bit(self):
        self.assert_same_bits({
            "1 ps": self.plan(ps=1),
            "2 ps": self.plan(ps=2),
            "3 ps": self.plan(ps=3),
            "2 ps, greedy": self.plan(GREEDY, ps=2),
            "3 ps, greedy": self.plan(GREEDY, ps=3),
            "2 ps, pieces": self.plan(PIECES, ps=2),
            "3 ps, pieces": self.plan(PIECES, ps=3),
            "3 ps, pinned": self.plan(PINNED, ps=3),
        })

    def test_transport_and_repetition_change_no_bit(self):
        self.assert_same_bits({
            "shm": self.plan(flags=["--transport=shm"]),
            "tcp": self.plan(flags=["--transport=tcp"]),
            "mixed": self.plan(flags_of={"worker/1": ["--transport=tcp"]}),
            "again": self.plan(),
        })

    def test_pushes_that_come_in_parts_change_no_bit(self):
        far, always, changes = {"worker/1": ["--transport=tcp"]}, ["--parts=always"], LARGE
        self.assert_same_bits({
            "shm": self.plan(flags=["--transport=shm"], changes=changes),
            "tcp, no parts": self.plan(flags=["--transport=tcp", "--parts=never"], changes=changes),
            "tcp": self.plan(flags=["--transport=tcp", *always], changes=changes),
            "mixed": self.plan(flags=always, flags_of=far, changes=changes),
            "tcp, 1 ps": self.plan(ps=1, flags=["--transport=tcp", *always], changes=changes),
            "mixed, 3 ps, pieces": self.plan(PIECES, ps=3, flags=always, flags_of=far,
                                             changes=changes),
        })

    def test_values_that_come_while_a_pass_goes_on_change_no_bit(self):
        """Asynchronous, where none come ahead; of one worker, which is as good as synchronous."""
        changes = {**LARGE, "train.mode": "async"}
        self.assert_same_bits({
            name: self.plan(*pieces, ps=ps, workers=1, flags=flags, changes=changes)
            for name, ps, flags, *pieces in (
                ("shm", 1, ["--transport=shm"]),
                ("tcp", 1, ["--transport=tcp", "--parts=always"]),
                ("tcp, 2 ps", 2, ["--transport=tcp", "--parts=always"]),
                ("tcp, 2 ps, pieces", 2, ["--transport=tcp", "--parts=always"], PIECES))
        })

    def test_what_is_cut_for_the_links_of_hosts_changes_no_bit(self):
        changes = {"model": [{"op": "flatten"},
                             {"op": "dense", "name": "hidden", "units": 400, "activation": "relu"},
                             {"op": "dense", "name": "logits", "units": 10}]}
        here, apart = [self.run_to_end(self.plan(changes=changes, told=told))
                       for told in (by_flags, as_four_hosts)]
        self.assertEqual(self.bits(here), self.bits(apart))
        self.assertNotIn("parts", here.tasks["worker/0"].text())
        self.assertRegex(apart.tasks["worker/0"].text(),
                         r"hidden/kernel +\[784, 400\] +1254400 +1 0 \(2 parts\)\n")

    def test_towers_have_the_same_bits_everywhere_and_the_numbers_of_one_replica(self):
        changes = {**LARGE, "train.towers": 2}
        threads = ["--threads=2"]
        towers = self.plan(changes=changes, flags=threads)
        self.assert_same_bits({
            "shm": towers,
            "tcp, 1 ps": self.plan(ps=1, flags=[*threads, "--transport=tcp"], changes=changes),
            "pieces, 3 ps": self.plan(PIECES, ps=3, flags=threads, changes=changes),
        })
        with_towers, without = [self.mean_losses(self.run_to_end(plan))
                                for plan in (towers, self.plan(changes=LARGE))]
        self.assert_close(with_towers, without, 1e-4)

    def test_rounded_gradients_have_the_same_bits_everywhere(self):
        far, always = {"worker/1": ["--transport=tcp"]}, ["--parts=always"]
        for wire in ("bf16", "fp16"):
            changes = {"train.wire": wire, "optimizer": {"type": "adam"}}
            self.assert_same_bits({
                f"{wire}, shm": self.plan(flags=["--transport=shm"], changes=changes),
                f"{wire}, tcp": self.plan(flags=["--transport=tcp", *always], changes=changes),
                f"{wire}, mixed, 3 ps, pieces": self.plan(PIECES, ps=3, flags=always, flags_of=far,
                                                          changes=changes),
            })

    def test_rounded_values_have_the_same_bits_everywhere(self):
        far, always = {"worker/1": ["--transport=tcp"]}, ["--parts=always"]
        for name, wires in ROUNDED_VALUES.items():
            changes = {**LARGE, **wires}
            self.assert_same_bits({
                f"{name}, shm": self.plan(flags=["--transport=shm"], changes=changes),
                f"{name}, tcp, 1 ps": self.plan(ps=1, flags=["--transport=tcp", "--parts=never"],
                                                changes=changes),
                f"{name}, tcp": self.plan(flags=["--transport=tcp", *always], changes=changes),
                f"{name}, mixed, 3 ps, pieces": self.plan(PIECES, ps=3, flags=always, flags_of=far,
                                                          changes=changes),
            })

    def test_bf16_has_the_same_bits_everywhere(self):
        def plan(*pieces, **options):
            return self.plan(*pieces, told=with_bf16, changes=CONVOLUTIONS, **options)
        self.assert_same_bits({
            "shm": plan(flags=["--transport=shm"]),
            "tcp, 1 ps": plan(ps=1, flags=["--transport=tcp"]),
            "mixed, 3 ps, pieces": plan(PIECES, ps=3, flags=["--parts=always"],
                                        flags_of={"worker/1": ["--transport=tcp"]}),
        })
        said = self.run_to_end(plan()).tasks["worker/0"].text()
        self.assertRegex(said, "are in bf16|precision bf16 has no effect on a CPU")

    def test_rounded_values_that_a_worker_has_a_copy_of_are_the_same(self):
        """Asynchronous; of one worker, which is as good as synchronous."""
        changes = {**LARGE, "train.wire_values": "bf16"}
        self.assert_same_bits({
            f"{mode}, {transport}": self.plan(
                workers=1, flags=[f"--transport={transport}", "--parts=always"],
                changes={**changes, "train.mode": mode})
            for mode, transport in (("sync", "shm"), ("async", "shm"), ("async", "tcp"))})

    def test_rounded_numbers_lead_to_the_same_losses(self):
        def last_loss(wires):
            cluster = self.run_to_end(self.plan(changes={**wires, "train.last_step": 100}))
            return sum(self.mean_losses(cluster)[-10:]) / 10
        expected = last_loss({})
        for wires in ROUNDED_VALUES.values():
            loss = last_loss(wires)
            self.assertNotEqual(loss, expected)
            self.assertLess(abs(loss - expected), NEAR * expected)

    def test_order_of_arrival_changes_no_bit(self):
        names = Plan(workers=3).names()
        plans = {"all at once": self.plan(workers=3)}
        for seed in range(2):
            order = random.Random(seed).sample(names, len(names))
            plans[", ".join(order)] = self.plan(workers=3, order=order)
        self.assert_same_bits(plans)

    def disturb(self, cluster, seed):
        """Holds up one task after another for a moment, then lets them end."""
        draw = random.Random(seed)
        for _ in range(PAUSES_MAX):
            task = cluster.tasks[draw.choice(sorted(cluster.tasks))]
            if not task.has_ended():
                task.process.send_signal(signal.SIGSTOP)
                for _ in range(draw.randint(0, PAUSE_LOOKS_MAX)):
                    time.sleep(program.LOOK_S)
                task.process.send_signal(signal.SIGCONT)
        self.assert_codes(cluster, 0)

    def test_tasks_that_are_held_up_change_no_bit(self):
        plan = self.plan(workers=3, changes={"train.last_step": 300})
        expected = self.run_bits(plan)
        cluster = self.start(plan, lambda c: True)
        self.disturb(cluster, 1)
        self.assertEqual(self.bits(cluster), expected)

    def test_adam_with_clipped_gradients_has_the_same_bits_too(self):
        changes = {
            "optimizer": {"type": "adam", "learning_rate": 0.01,
                          "clip": {"type": "global_norm", "norm": 1.0}},
        }
        self.assert_same_bits({f"{ps} ps": self.plan(PIECES, ps=ps, workers=3, changes=changes)
                               for ps in (1, 3)})

    def test_two_optimizers_have_the_same_bits_however_variables_lie(self):
        changes = {
            "optimizer": None,
            "optimizers": [{"match": "*/bias", "type": "ftrl", "learning_rate": 0.1, "l1": 0.001},
                           {"match": "logits/*", "type": "adam", "learning_rate": 0.01},
                           {"type": "adagrad", "learning_rate": 0.05,
                            "clip": {"type": "global_norm", "norm": 0.5}}],
        }
        far = ["--transport=tcp", "--parts=always"]
        self.assert_same_bits({
            "1 ps": self.plan(ps=1, changes=changes),
            "2 ps": self.plan(ps=2, changes=changes),
            "3 ps, pieces, in parts": self.plan(PIECES, ps=3, flags=far, changes=changes),
        })
        unclipped = {**changes, "optimizers": [
            {key: value for key, value in one.items() if key != "clip"}
            for one in changes["optimizers"]]}
        self.assert_same_bits({
            "1 ps": self.plan(ps=1, changes=unclipped),
            "3 ps, pieces, in parts": self.plan(PIECES, ps=3, flags=far, changes=unclipped),
        })

    def mean_losses(self, cluster):
        of_workers = [[line["loss"] for line in cluster.metrics(worker)]
                      for worker in range(cluster.plan.workers)]
        return [sum(step) / len(step) for step in zip(*of_workers)]

    def assert_close(self, values, expected, relative=CLOSE):
        self.assertEqual(len(values), len(expected))
        for value, wanted in zip(values, expected):
            self.assertLessEqual(abs(value - wanted), relative * abs(wanted))

    def test_two_workers_equal_one_with_twice_the_batch(self):
        for shuffle in (False, True):
            with self.subTest(shuffle=shuffle):
                one, two = (self.run_to_end(self.plan(workers=workers, changes={
                    "data.batch_size": batch, "data.shuffle": shuffle}))
                            for workers, batch in ((1, 100), (2, 50)))
                self.assert_close(self.mean_losses(two), self.mean_losses(one))
                for key, value in one.result()["metrics"].items():
                    self.assert_close([two.result()["metrics"][key]], [value])

    def test_one_worker_that_adds_two_gradients_equals_two_workers(self):
        two = self.run_to_end(self.plan())
        added = self.plan(workers=1, changes={"train.replicas_to_aggregate": 2})
        one = self.run_to_end(added)
        self.assert_close(list(one.result()["metrics"].values()),
                          list(two.result()["metrics"].values()))

    def assert_single_process_has_bits_of(self, plan, flags=()):
        cluster = self.run_to_end(plan)
        single = Task(cluster.folder, "single", [
            "--result=result.json", "--metrics_file=metrics-0.jsonl", *flags, "spec.json"], {})
        self.addCleanup(single.kill)
        expected = self.bits(cluster)
        program.wait_until(single.has_ended, single.text)
        self.assertEqual(single.code(), 0, single.text())
        self.assertEqual(self.bits(cluster), expected)
        return expected

    def test_a_single_process_has_the_bits_of_a_cluster_with_one_worker(self):
        self.assert_single_process_has_bits_of(self.plan(workers=1))

    def test_a_single_process_rounds_nothing(self):
        self.assert_single_process_has_bits_of(self.plan(workers=1), [
            "--set=train.wire=bf16", "--set=train.wire_values=bf16"])

    def test_metrics_of_yes_and_no_are_of_the_whole_evaluation(self):
        whole, in_pieces = (self.assert_single_process_has_bits_of(self.plan(
            workers=1, changes={**YES_OR_NO, "data.eval_batch_size": rows})) for rows in (130, 7))
        self.assertEqual(set(whole[1]), {
            "loss", "accuracy", "auc", "auc_pr_ranking", "precision", "recall_0.4", "log_loss",
            "calibration"})
        self.assert_close(list(in_pieces[1].values()), list(whole[1].values()))

    def test_another_seed_gives_other_bits(self):
        plan = self.plan()
        other = dataclasses.replace(plan, flags_of={
            name: flags + ["--seed=2"] for name, flags in plan.flags_of.items()})
        self.assertNotEqual(self.run_bits(plan), self.run_bits(other))


if __name__ == "__main__":
    program.main()
