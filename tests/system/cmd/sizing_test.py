"""dtrain plan: what it says of bytes and memory is what runs count, and of steps what they have cost."""
import json

import program
import program.cluster
from program.cluster import ClusterCase, Plan, with_files

TABLE = {
    "data.train": {"format": "clicks", "rows": 4000, "buckets": 5000},
    "data.eval": None,
    "data.scale": None,
    "data.batch_size": 500,
    "data.columns": [{"column": "identity", "name": "c1", "buckets": 5000}, {"column": "numeric", "name": "n1"}],
    "model": [{"op": "embedding", "name": "ids", "inputs": ["c1"], "dimension": 32},
              {"op": "concat", "inputs": ["ids", "n1"]}, {"op": "dense", "name": "logits", "units": 1}],
    "loss": "sigmoid_cross_entropy",
    "optimizer": {"type": "adagrad", "learning_rate": 0.01},
    "placement": {"partitioner": {"type": "fixed_size", "num_shards": 2}},
}
STEPS = 200  # so many are counted, and what is told once at the start counts for nothing


class PlanTest(ClusterCase):
    def write(self, **changes):
        (self.folder / "spec.json").write_text(json.dumps(program.changed(program.cluster.SPEC, changes)))

    def plan(self, *words, code=0):
        done = program.run(["plan", "--json", *words, "spec.json"], self.folder)
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stderr if code else json.loads(done.stdout)

    def run_over_tcp(self, changes):
        """The chief's result of two ps and one worker."""
        steps = {"train.last_step": STEPS, "train.log_every_steps": STEPS}
        plan = Plan(ps=2, workers=1, changes={**changes, **steps}, flags=["--transport=tcp"])
        cluster = self.run_to_end(with_files(plan))
        (self.folder / "spec.json").write_text(cluster.read("spec.json"))
        return cluster

    def chief(self, cluster):
        return next(task["counters"] for task in cluster.result()["tasks"] if task["task"] == "worker/0")

    def test_bytes_are_those_that_runs_send(self):
        for name, changes, within in (("dense", {"train.mode": "sync"}, 0.02), ("async", {"train.mode": "async"}, 0.02),
                                      ("wire", {"train.mode": "sync", "train.wire": "bf16", "train.wire_values": "bf16"}, 0.05),
                                      ("frozen", {"train.mode": "sync", "train.freeze": ["hidden/*"]}, 0.25),  # headers, too
                                      ("table", {**TABLE, "train.mode": "sync"}, 0.1)):
            with self.subTest(name):
                counted = self.chief(self.run_over_tcp(changes))
                said = self.plan("--ps=2", "--workers=1")["layout"]
                for key, direction, kind in (("bytes_up", "sent", "gradients"), ("bytes_down", "received", "values")):
                    per_step = sum(counted.get(f'message_bytes_total{{direction="{direction}",kind="{one}"}}', 0)
                                   for one in (kind, "rows")) / counted["steps_total"]
                    self.assertAlmostEqual(said[key] / per_step, 1, delta=within, msg=(key, said[key], per_step))
                if name == "frozen":  # nearly all is
                    self.assertLess(said["bytes_up"], said["bytes_down"] / 10)

    def test_costs_are_those_of_a_record(self):
        tasks = [{"task": "ps/0", "age_secs": 0, "state": "", "counters": {"updates_total": 100, "apply_seconds_total": 0.5}},
                 {"task": "worker/0", "age_secs": 0, "state": "",
                  "counters": {"steps_total": 100, 'step_seconds_total{part="compute"}': 4, 'step_seconds_total{part="data"}': 1,
                               'step_seconds_total{part="others"}': 7}}]
        self.write(**{"train.mode": "sync"})
        (self.folder / "run.json").write_text(json.dumps({"tasks": tasks}))
        said = self.plan("--record=run.json", "--ps=1", "--workers=8", "--link=1000")
        self.assertAlmostEqual(said["computing_seconds"], 0.05)
        self.assertAlmostEqual(said["updating_seconds"], 0.005)
        self.assertEqual(said["layout"]["bound"], "computing")
        self.assertAlmostEqual(said["layout"]["step_seconds"], 0.05 + 0.005 + 0.0001, places=4)
        slow = self.plan("--record=run.json", "--ps=1", "--workers=8", "--link=0.001")
        self.assertEqual(slow["layout"]["bound"], "the link of a ps")
        most = 8 * max(slow["layout"]["bytes_up"], slow["layout"]["bytes_down"])
        self.assertAlmostEqual(slow["layout"]["parts"]["the link of a ps"] / (most * 8 / 1e6), 1538 / 1448)  # headers
        text = program.run(["plan", "--record=run.json", "spec.json"], self.folder).stdout
        for words in ("50 ms to compute a step, 5 ms to update", "bounds it", "examples/s by ps (down)"):
            self.assertIn(words, text)

    def test_a_short_run_measures(self):
        kept = {"checkpoint_dir": "run", "publish": {"every_secs": 1}, "save_checkpoint_steps": 5, "last_step": None, "epochs": 1,
                "daily": True, "evaluate_every_steps": 10, "keep_best": 1, "restore_best": True, "summary_dir": "sum",
                "hooks": [{"type": "command", "at": ["end"], "command": "touch done"}]}
        (self.folder / "rows.csv").write_text("".join(f"{row % 10},{row},{row * 7 % 10}\n" for row in range(400)))
        rows = {"format": "csv", "file": "rows.csv", "header": False, "label": 2}
        self.write(**{"data.train": rows, "data.eval": {**rows, "take": 100}},
                   **{"train." + key: value for key, value in kept.items()})
        said = self.plan("--measure=20", "--ps=1", "--workers=1")
        self.assertTrue(said["costs_known"])
        self.assertGreater(said["computing_seconds"], 0)
        self.assertEqual(sorted(path.name for path in self.folder.iterdir()), ["rows.csv", "spec.json"])
        self.write(**{"data.scale": 1e30})
        self.assertIn("the loss is", self.plan("--measure=20", code=2))

    def test_memory_decides_how_many_ps(self):
        self.write(**{**TABLE, "placement": None, "data.columns": [
            {"column": "identity", "name": "c1", "buckets": 250000000}, {"column": "numeric", "name": "n1"}]})
        said = self.plan("--memory=10", "--workers=4")
        at = said["layout"]
        self.assertEqual((at["ps"], at["fits"]), (10, True))  # 32 GB of values, and as much of slots
        self.assertAlmostEqual(at["ps_memory"]["values"] / 3.2e9, 1, delta=0.01)
        self.assertFalse(self.plan("--memory=10", "--workers=4", "--ps=5")["layout"]["fits"])
        self.assertIn("with none of 1 to 100 ps", self.plan("--memory=0.1", code=2))

    def test_hosts_that_tasks_share(self):
        self.write()
        of = lambda *words: self.plan("--ps=2", "--workers=4", "--link=1", *words)["layout"]  # noqa: E731
        link = lambda said, name: said["parts"][name]  # noqa: E731
        lists = ("--job_name=worker", "--task_index=0", "--ps_hosts=a:1,b:1", "--worker_hosts=a:2,b:2,a:3,b:3")
        alone, shared, one = of(), of("--hosts=2"), of("--hosts=1")
        self.assertEqual(self.plan("--link=1", *lists)["layout"], shared)
        self.assertEqual(self.plan("--link=1", *lists)["hosts"], 2)
        self.assertEqual(of("--hosts=2", *lists), shared)
        self.assertEqual(of("--hosts=100")["ps"], 2)
        self.assertEqual(link(alone, "the link of ps and workers"), 0)
        self.assertEqual((link(shared, "the links of workers"), link(shared, "the link of a ps")), (0, 0))
        self.assertGreater(link(shared, "the link of ps and workers"), 0)
        self.assertLess(shared["step_seconds"], alone["step_seconds"])
        self.assertEqual(one["step_seconds"], 0)  # nothing passes a link, and what is computed is not known

    def test_workers_are_chosen_for_any_number_of_ps(self):
        self.write(**{"train.mode": "sync"})
        for ps in (2, 3):
            layout = self.plan(f"--ps={ps}", "--computing=1000", "--link=25")["layout"]
            self.assertEqual((layout["ps"], layout["workers"]), (ps, 1000))

    def test_averages_are_memory_of_a_ps(self):
        def needs(decay):
            self.write(**{"train.average_decay": decay, "optimizer": {"type": "adam"}})
            return self.plan("--ps=1", "--workers=1")["layout"]["ps_memory"]
        without, averaged = needs(0), needs(0.99)
        self.assertEqual(averaged["slots"] - without["slots"], without["values"])
        self.assertEqual(averaged["save"] - without["save"], without["values"])

    def test_words_that_are_none_are_refused(self):
        self.write()
        (self.folder / "none.json").write_text("{}")
        (self.folder / "short.json").write_text('{"tasks": []}')
        for words, said in ((["--record=none.json"], "expected what --result has written"),
                            (["--record=short.json"], "the run was too short"),
                            (["--record=short.json", "--computing=5"], "stand for each other"),
                            (["--link=0"], "link"), (["--ps=1025"], "ps")):
            self.assertIn(said, self.plan(*words, code=2))
        self.assertIn("No such file", self.plan("--record=nosuch.json", code=2))
        self.assertEqual(program.run(["plan"], self.folder).returncode, 2)


if __name__ == "__main__":
    program.main()
