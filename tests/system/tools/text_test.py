"""Text: language models learn from it, alone and as a cluster, and go on in the middle of an epoch as if nothing had been."""
import json
import random

import program
from tool import ToolCase

BATCH, TIME, STEPS = 8, 6, 40
WORDS = "the cat sat on a mat and saw the dog that ran to the old red house".split()


def text():
    draw = random.Random(1)
    return "".join(draw.choice(WORDS) + draw.choice([" ", " ", ".\n"]) for _ in range(700))


def model(classes, state="zero"):
    return [{"op": "embedding", "name": "letters", "dimension": 6, "combiner": "none"},
            {"op": "lstm", "units": 10, "state": state}, {"op": "gru", "units": 9, "state": state},
            {"op": "dense", "name": "logits", "units": classes}]


SPEC = {"seed": 5,
        "data": {"train": {"format": "text", "file": "text.txt", "time": TIME}, "batch_size": BATCH},
        "model": model(20),
        "loss": "softmax_cross_entropy", "metrics": ["accuracy", "perplexity"],
        "optimizer": {"type": "adam", "learning_rate": 0.01},
        "train": {"mode": "sync", "last_step": STEPS, "save_checkpoint_steps": 0}}
IN_LANES = SPEC["data"]["train"] | {"order": "lanes", "lanes": BATCH}
LANES = {"data.train": IN_LANES, "data.eval": IN_LANES, "data.shuffle": False, "model": model(20, "carried")}


class Text(ToolCase):
    def setUp(self):
        super().setUp()
        (self.folder / "text.txt").write_text(text())

    def train(self, folder, changes, *flags):
        spec = program.changed(SPEC, changes | {"train.checkpoint_dir": folder})
        (self.folder / "spec.json").write_text(json.dumps(spec))
        return self.dtrain(*flags, "spec.json")

    def train_ok(self, folder, changes, *flags):
        ended = self.train(folder, changes, *flags)
        self.assertEqual(ended.returncode, 0, ended.stdout + ended.stderr)

    def refused(self, changes, *parts):
        ended = self.train("bad", changes)
        self.assertEqual(ended.returncode, program.BAD_INPUT, ended.stdout)
        for part in parts:
            self.assertIn(part, ended.stderr)
        return ended.stderr

    def test_a_cluster_and_a_run_that_is_resumed_come_to_the_same_bits(self):
        changes = {"data.shuffle": True}
        self.train_ok("whole", changes)
        self.train_ok("sharded", changes, "--local_ps=2", "--local_workers=1")
        self.train_ok("halves", changes | {"train.last_step": STEPS // 2 + 1})
        self.train_ok("halves", changes)
        self.run_ok("checkpoint", "diff", "whole", "halves")
        self.assertEqual(self.dtrain("checkpoint", "diff", "whole", "sharded").stdout,
                         f"dtrain/ledger/ps_00001: only in sharded/model.ckpt-{STEPS}\n")

    def perplexity(self, folder):
        """Over the lanes of the text, with the state that is carried or without"""
        self.run_ok("eval", f"--checkpoint={folder}", "--result=said.json", "spec.json")
        return json.loads((self.folder / "said.json").read_text())["metrics"]["perplexity"]

    def test_lanes_of_two_workers_are_those_of_one(self):
        self.train_ok("two", LANES | {"data.batch_size": BATCH // 2}, "--local_ps=2", "--local_workers=2")
        self.train_ok("zero", LANES | {"model": model(20)})
        self.train_ok("one", LANES)
        one, two, zero = (self.perplexity(folder) for folder in ("one", "two", "zero"))
        self.assertAlmostEqual(one, two, delta=1e-3)
        self.assertNotAlmostEqual(one, zero, delta=1e-3)

    def test_what_would_carry_a_state_to_other_rows_is_refused(self):
        where = 'lstm "lstm" carries its state from batch to batch'
        self.refused(LANES | {"data.shuffle": True}, where, "data.shuffle")
        self.refused(LANES | {"data.batch_size": BATCH // 2}, where, "lanes: expected 4", "got 8")
        self.refused(LANES | {"data.train.take": 12}, where, "take: expected a multiple of the 8 lanes")
        self.refused(LANES | {"data.eval_batch_size": 16}, where, "data.eval: lanes: expected 16")

    def test_both_sources_have_one_vocabulary(self):
        (self.folder / "other.txt").write_text("other letters: xyz " * 20)
        changes = {"data.eval": SPEC["data"]["train"] | {"file": "other.txt"}}
        self.refused(changes, "data.eval", "vocabulary")
        (self.folder / "all.txt").write_text(text() + "other letters: xyz")
        changes["data.eval"]["vocabulary"] = changes["data.train.vocabulary"] = "all.txt"
        self.train_ok("both", changes | {"model": model(30)})

    def test_a_label_beyond_the_classes_is_named(self):
        self.refused({"model": model(12)}, "text.txt", "label", "out of range", "or -1: none")


if __name__ == "__main__":
    program.main()
