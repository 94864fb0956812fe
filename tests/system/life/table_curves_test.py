"""Models of columns, of lists, of text and of images follow TensorFlow's losses for 120 steps, from the same initial values and on the same
rows, and a synchronous cluster of half batches comes to the same values. Curves and files of real data are looked for beside
the repository; skipped where they are absent. Lists and images are fixtures."""
import json
import os
import sys
import unittest
from pathlib import Path

import events
import life
import program

SHARED = program.ROOT.parent / "shared"
DATA = Path(os.environ.get("DTRAIN_DATA", SHARED / "data"))
CURVES = SHARED / "fixtures" / "curves"
LISTS = program.ROOT / "tests" / "fixtures" / "sequences"
SAMPLED = program.ROOT / "tests" / "fixtures" / "sampled"
NORMALIZED = program.ROOT / "tests" / "fixtures" / "normalized"
STEPS, ROWS = 120, 12000
FLOOR = 2e-5  # relative; else three times the largest distance of TensorFlow's float32 from its float64 so far
# TensorFlow's norm of a table's gradient counts an id that comes twice as two, here it is their sum: from the first clip on
# the two go apart, and come together again as the model learns.
CLIPPED, CLIPPED_FLOOR = 55, 2e-4
APART = 1e-5  # values and slots of a cluster from those of a single process; relative where they are above 1


def of_rows(spec):
    spec["data"]["batch_size"] = 100
    spec["data"]["train"]["take"] = ROWS
    return spec


def a9a():
    """The example, whose one column of weights TensorFlow's graph called otherwise."""
    spec = json.loads((program.ROOT / "examples" / "a9a_ftrl.json").read_text())
    names = [["linear/embedding_weights", "linear/features/weights"], ["*", "*"]]
    return of_rows(spec), DATA / "libsvm-a9a", names


def adult():
    """The example without the buckets of hours, gains and losses that it has beside the fixture's columns."""
    spec = json.loads((program.ROOT / "examples" / "adult_wide_deep.json").read_text())
    more = ("gain", "loss", "hours")
    extra = {f"{name}_buckets" for name in more} | {f"deep/{name}_embedding" for name in more}
    spec["model"] = [node for node in spec["model"] if node["name"] not in extra]
    for node in spec["model"]:
        if "inputs" in node:
            node["inputs"] = [name for name in node["inputs"] if name not in extra]
    return of_rows(spec), DATA / "adult", [["*", "*"]]


def shakespeare():
    spec = {
        "data": {"train": {"format": "text", "file": "input.txt", "time": 24, "order": "lanes", "lanes": 16}, "batch_size": 16},
        "model": [{"op": "embedding", "name": "characters", "dimension": 24, "combiner": "none"},
                  {"op": "lstm", "name": "lstm", "units": 48}, {"op": "dense", "name": "logits", "units": 65}],
        "loss": "softmax_cross_entropy", "metrics": ["accuracy", "perplexity"],
        "optimizer": {"type": "adam", "learning_rate": 0.005, "clip": {"type": "global_norm", "norm": 1}}}
    return spec, DATA / "tinyshakespeare", [["*", "*"]]


def lists(*nodes):
    """A table of items, of which a row has one that is offered and a list of those that were seen before."""
    spec = {
        "data": {"train": {"format": "csv", "file": "train.csv", "label": "click", "label_type": "number"}, "batch_size": 20,
                 "columns": [{"column": "identity", "name": "item", "buckets": 20}, {"column": "ids", "name": "history", "rows": 20, "max": 5}]},
        "model": [{"op": "embedding", "name": "items", "inputs": ["history"], "dimension": 6, "combiner": "none"},
                  {"op": "mask", "name": "there", "inputs": ["history"]},
                  {"op": "embedding", "name": "item_vector", "inputs": ["item"], "dimension": 6, "table": "items"}, *nodes,
                  {"op": "concat", "inputs": ["item_vector", nodes[-1]["name"]]},
                  {"op": "dense", "name": "hidden", "units": 8, "activation": "tanh"}, {"op": "dense", "name": "logit", "units": 1}],
        "loss": "sigmoid_cross_entropy", "optimizer": {"type": "adagrad", "learning_rate": 0.1}}
    return spec, LISTS, [["*", "*"]]


def din():
    return lists({"op": "target_attention", "name": "attention", "inputs": ["item_vector", "items"], "units": [8, 4], "mask": "there"})


def gru():
    return lists({"op": "gru", "name": "interest", "inputs": ["items"], "units": 7, "mask": "there", "output": "last"})


def sampled():
    """Of 50 classes a step computes the label and 8 others, which TensorFlow was given."""
    spec = {
        "data": {"train": {"format": "csv", "file": "train.csv", "label": "next"}, "batch_size": 20,
                 "columns": [{"column": "identity", "name": "word", "buckets": 30}]},
        "model": [{"op": "embedding", "name": "words", "inputs": ["word"], "dimension": 6},
                  {"op": "sampled_logits", "name": "logits", "classes": 50, "sampled": 8}],
        "loss": "sampled_softmax", "optimizer": {"type": "adagrad", "learning_rate": 0.2}}
    return spec, SAMPLED, [["*", "*"]]


def normalized(*nodes):
    """Images of 8 x 8; batch_normalization as tf.layers has it."""
    spec = {
        "data": {"train": {"format": "records", "file": "rows.bin", "shape": [8, 8, 3], "channels_first": False}, "batch_size": 20},
        "model": [{"op": "scale", "factor": 0.01, "offset": -1.28}, *nodes, {"op": "dense", "name": "logits", "units": 4}],
        "loss": "softmax_cross_entropy", "optimizer": {"type": "momentum", "learning_rate": 0.05, "momentum": 0.9}}
    return spec, NORMALIZED, [["*", "*"]]


def norm(name):
    return {"op": "batch_normalization", "name": name, "momentum": 0.9}


def normalized_layers():
    return normalized({"op": "flatten"}, {"op": "dense", "name": "hidden1", "units": 16},
                      norm("norm1"), {"op": "relu"},
                      {"op": "dense", "name": "hidden2", "units": 12, "use_bias": False},
                      norm("norm2"), {"op": "tanh"})


def residual_images():
    return normalized({"op": "conv2d", "name": "first", "filters": 6, "kernel_size": 3, "padding": "same", "use_bias": False},
                      norm("norm1"), {"op": "relu"},
                      {"op": "max_pool", "name": "pooled", "pool_size": 2, "strides": 2, "padding": "same"},
                      {"op": "depthwise_conv2d", "name": "apart", "kernel_size": 3, "padding": "same"},
                      norm("norm2"), {"op": "relu"},
                      {"op": "conv2d", "name": "inner", "filters": 6, "kernel_size": 3, "padding": "same", "use_bias": False},
                      norm("norm3"),
                      {"op": "add", "inputs": ["pooled", "norm3"]}, {"op": "relu"}, {"op": "global_avg_pool"})


class Curves(program.FolderCase):
    def train(self, curve, model, ps, workers=1):
        """Leaves summaries of every step and the last checkpoint in `run` and the number of ps."""
        spec, data, names = model()
        if not data.is_dir() or not curve.is_dir():
            self.skipTest(f"{data} or {curve} is absent")
        spec["data"].pop("eval", None)
        spec["data"] |= {"shuffle": False, "batch_size": spec["data"]["batch_size"] // workers}
        spec["train"] = {"mode": "sync", "last_step": STEPS, "checkpoint_dir": f"run{ps}",
                         "save_checkpoint_steps": 0, "save_summaries_steps": 1,
                         "warm_start": {"checkpoint": str(curve / "model.ckpt-0"), "map": names}}
        (self.folder / "spec.json").write_text(json.dumps(spec))
        cluster = [] if ps == 1 else [f"--local_ps={ps}", f"--local_workers={workers}"]
        ended = program.run([*cluster, f"--data_dir={data}", "spec.json"], self.folder)
        self.assertEqual(ended.returncode, 0, ended.stdout + ended.stderr)

    def losses(self):
        points = events.curves(self.folder / "run1")["loss"]
        self.assertEqual([step for step, _ in points], list(range(1, STEPS + 1)))
        return [loss for _, loss in points]

    def values(self, ps):
        words = ["checkpoint", "export", f"run{ps}/model.ckpt-{STEPS}", "values.npz"]
        self.assertEqual(program.run(words, self.folder).returncode, 0)
        return life.read_arrays(self.folder / "values.npz")

    def follow(self, folder, model, workers=2, clipped=STEPS):
        """Alone, and as a cluster of two ps. Where a clip sees the batch of each worker there is one of them."""
        self.train(folder, model, 1)
        found = self.losses()
        curve = json.loads((folder / "curve.json").read_text())
        widest = 0
        for step, (single, exact) in enumerate(zip(curve["loss"], curve["loss_double"])):
            widest = max(widest, abs(single - exact) / exact)
            floor = FLOOR if step < clipped else CLIPPED_FLOOR
            self.assertLessEqual(abs(found[step] - exact) / exact, max(floor, 3 * widest), f"step {step}")
        self.train(folder, model, 2, workers)
        one, two = self.values(1), self.values(2)
        for variable in (variable for variable in one if not variable.startswith("dtrain/")):
            for a, b in zip(one[variable], two[variable], strict=True):
                self.assertLessEqual(abs(a - b), APART * max(1, abs(a)), variable)

    def test_logistic_regression_by_ftrl(self):
        self.follow(CURVES / "a9a_ftrl", a9a)

    def test_wide_and_deep(self):
        self.follow(CURVES / "adult_wide_deep", adult)

    def test_attention_to_a_list(self):
        self.follow(LISTS / "din", din)

    def test_gates_over_a_list(self):
        self.follow(LISTS / "gru", gru)

    def test_a_sample_of_many_classes(self):
        self.follow(SAMPLED, sampled, workers=1)

    def follow_normalized(self, name, model):
        """A worker normalizes by its own batch, so there is one; and all rows by what moved."""
        self.follow(NORMALIZED / name, model, workers=1)
        curve = json.loads((NORMALIZED / name / "curve.json").read_text())
        values = self.values(1)
        for variable, wanted in curve["moving"].items():
            for a, b in zip(values[variable], wanted, strict=True):
                self.assertLessEqual(abs(a - b), 1e-4 * max(1, abs(b)), variable)
        spec, _, _ = model()
        spec["data"]["eval"] = spec["data"]["train"]
        (self.folder / "eval.json").write_text(json.dumps(spec | {"train": {"last_step": 1}}))
        words = ["eval", "--checkpoint=run1", f"--data_dir={NORMALIZED}", "--result=all.json", "eval.json"]
        ended = program.run(words, self.folder)
        self.assertEqual(ended.returncode, 0, ended.stdout + ended.stderr)
        self.assertLessEqual(abs(json.loads((self.folder / "all.json").read_text())["metrics"]["loss"] - curve["evaluated"]), 1e-4)

    def test_normalized_layers(self):
        self.follow_normalized("dense", normalized_layers)

    def test_normalized_images(self):
        self.follow_normalized("image", residual_images)

    def test_characters_through_an_lstm(self):
        self.follow(CURVES / "shakespeare_lstm", shakespeare, workers=1, clipped=CLIPPED)


if __name__ == "__main__":
    program.need_binary()
    result = unittest.main(exit=False).result
    if result.wasSuccessful() and len(result.skipped) == result.testsRun:
        sys.exit(77)  # meson: skipped
    sys.exit(not result.wasSuccessful())
