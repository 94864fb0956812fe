"""What a run saves is what the tools make of it: whole, of one moment, and as good as the run said."""
import json

import program
import tool
from program.lives import LIMITS

SPEC = {
    "name": "run",
    "data": {"train": {"format": "digits", "rows": 600},
             "eval": {"format": "digits", "rows": 200, "split": "test"}, "batch_size": 20,
             "scale": 0.0039},
    "model": [{"op": "flatten"},
              {"op": "dense", "name": "hidden", "units": 16, "activation": "relu"},
              {"op": "dense", "name": "logits", "units": 10}],
    "loss": {"op": "softmax_cross_entropy"},
    "metrics": ["accuracy"],
    "optimizer": {"type": "adam", "learning_rate": 0.01},
    "placement": {"partitioner": {"type": "fixed_size", "num_shards": 2}},
}
SAVING = {"last_step": 60, "save_checkpoint_steps": 20, "log_every_steps": 1000}


class Run(tool.ToolCase):
    def train(self, **changes):
        """Its result; checkpoints lie in run."""
        spec = {**SPEC, "train": {**SAVING, "checkpoint_dir": str(self.folder / "run"), **changes}}
        (self.folder / "spec.json").write_text(json.dumps(spec))
        ended = self.dtrain("--local_ps=3", "--local_workers=2", *LIMITS, "--result=run.json",
                            "spec.json")
        self.assertEqual(ended.returncode, 0, ended.stderr)
        return json.loads((self.folder / "run.json").read_text())

    def evaluate(self, checkpoint):
        self.run_ok("eval", "spec.json", f"--checkpoint={checkpoint}", "--result=eval.json")
        return json.loads((self.folder / "eval.json").read_text())

    def check(self, **changes):
        result = self.train(**changes)
        for index in sorted((self.folder / "run").glob("*.index")):
            self.assertRegex(self.run_ok("checkpoint", "verify", index),
                             r": ok, global step \d+, 20 tensors, \d+ bytes in 3 shards, 3 ledgers")
        self.assertIn("model.ckpt-60, newest", self.run_ok("checkpoint", "ls", "run"))
        evaluated = self.evaluate("run")
        self.assertEqual((evaluated["step"], evaluated["metrics"]),
                         (result["step"], result["metrics"]))

    def test_synchronous(self):
        self.check(mode="sync")

    def test_asynchronous(self):
        self.check(mode="async")

    def test_with_gradients_that_are_dropped(self):
        self.check(mode="async", max_staleness=0)

    def test_with_backup_workers(self):
        self.check(mode="sync", replicas_to_aggregate=1)

    def test_cut_for_another_number_of_ps(self):
        metrics = self.train(mode="sync")["metrics"]
        self.run_ok("checkpoint", "reshard", "run", "--ps=2", "cut")
        self.assertEqual(self.run_ok("checkpoint", "diff", "run", "cut"),
                         "equal: 20 tensors, bit for bit\n")
        self.assertEqual(self.evaluate("cut")["metrics"], metrics)


if __name__ == "__main__":
    program.main()
