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

    def test_ids_that_stand_for_other_letters_are_refused(self):
        """A text with one letter more has others behind it at other ids."""
        self.train_ok("run", {"model": model(30)})
        (self.folder / "text.txt").write_text(text() + "Zebra")
        for words in (("--steps=50",), ("--steps=50", "--local_ps=1", "--local_workers=2"), ("eval", "--checkpoint=run"),
                      ("sample", "--checkpoint=run", "--prompt=a")):
            more = ("--set=data.eval.file=text.txt", "--set=data.eval.format=text", f"--set=data.eval.time={TIME}") if words[0] == "eval" else ()
            ended = self.dtrain(*words, *more, "spec.json")
            self.assertEqual(ended.returncode, program.BAD_INPUT, ended.stdout + ended.stderr)
            self.assertIn('"ids of the text" was "digest ', ended.stderr)
        (self.folder / "text.txt").write_text(text()[::-1])  # another text of the same letters
        self.train_ok("run", {"model": model(30), "train.last_step": 50})

    def test_what_it_learned_is_written(self):
        (self.folder / "text.txt").write_text("a cat sat on the mat " * 400)
        learned = {"model": model(11), "data.train.time": 16, "train.last_step": 300, "optimizer.learning_rate": 0.02}
        self.train_ok("zero", learned)
        for temperature in 0, 0.1:
            words = ["sample", "--checkpoint=zero", "--prompt=a ca", "--length=27", f"--temperature={temperature}", "spec.json"]
            self.assertEqual(self.run_ok(*words), "a cat sat on the mat a cat sat \n")
        self.train_ok("carried", LANES | {"model": model(11, "carried"), "train.last_step": 20})
        drawn = [self.run_ok("sample", "--checkpoint=carried", "--prompt=mat", "--temperature=50", f"--seed={seed}", "spec.json")
                 for seed in (1, 1, 2)]
        self.assertEqual(drawn[0], drawn[1])
        self.assertNotEqual(drawn[0], drawn[2])
        self.assertEqual(len(drawn[0].encode()), len("mat") + 500 + 1)
        self.assertIn('does not know "X"', self.run_bad("sample", "--checkpoint=carried", "--prompt=caXt", "spec.json"))
        self.assertIn("expected a text", self.run_bad("sample", "--checkpoint=carried", "--prompt=", "spec.json"))

    def test_what_is_no_model_of_a_text_writes_none(self):
        spec = {"data": {"train": {"format": "digits", "rows": 40}, "batch_size": 10, "scale": 0.0039},
                "model": [{"op": "flatten"}, {"op": "dense", "units": 10}], "loss": "softmax_cross_entropy",
                "optimizer": "adam", "train": {"last_step": 4, "checkpoint_dir": "digits"}}
        (self.folder / "spec.json").write_text(json.dumps(spec))
        self.dtrain("spec.json")
        self.assertIn("no ids of a text", self.run_bad("sample", "--checkpoint=digits", "--prompt=1", "spec.json"))

    def test_words_that_stand_alike_are_near(self):
        draw = random.Random(2)
        lines = [f"the {draw.choice(['cat', 'dog'])} eats {draw.choice(['fish', 'meat'])} ." for _ in range(500)]
        (self.folder / "text.txt").write_text("\n".join(lines))
        changes = {"data.train.unit": "words", "model": model(7), "train.last_step": 300}
        self.train_ok("words", changes)
        table = ["words", "letters/embedding_weights"]
        said = self.run_ok("similar", "--count=1", "--spec=spec.json", *table, "cat", "meat").split()
        self.assertEqual((said[0], said[2], said[3], said[5]), ("cat", "dog", "meat", "fish"))
        words = sorted(set(" ".join(lines).split()), key=lambda word: (-" ".join(lines).split().count(word), word))
        (self.folder / "vocabulary").write_text("\n".join(words))
        same = self.run_ok("similar", "--count=1", "--vocabulary=vocabulary", *table, "cat", "meat").split()
        self.assertEqual(said, same)
        by_id = self.run_ok("similar", *table, str(words.index("cat"))).split()
        self.assertEqual(len(by_id), 1 + 2 * (len(words) - 1))
        self.assertEqual((by_id[1], by_id[2]), (said[1], str(words.index("dog"))))
        self.assertIn("not among the 7 words", self.run_bad("similar", "--spec=spec.json", *table, "bird"))
        self.assertIn("no id", self.run_bad("similar", *table, "cat"))
        self.assertIn("no row of 99", self.run_bad("similar", *table, "99"))
        self.assertIn("letters", self.run_bad("similar", "words", "letter", "1"))
        self.assertIn("expected dtrain similar", self.run_bad("similar", "words", "letters"))

    def test_a_label_beyond_the_classes_is_named(self):
        self.refused({"model": model(12)}, "text.txt", "label", "out of range", "or -1: none")


if __name__ == "__main__":
    program.main()
