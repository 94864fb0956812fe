"""Checkpoints that TensorFlow trained on MNIST give the loss and accuracy that TensorFlow had. Curves
and images are looked for beside the repository; skipped where they are absent."""
import gzip
import json
import os
import sys
import unittest
from pathlib import Path

import program
import tool

SHARED = program.ROOT.parent / "shared"
DATA = Path(os.environ.get("DTRAIN_DATA", SHARED / "data")) / "mnist"
CURVES = SHARED / "fixtures" / "curves"
IMAGES, LABELS = "t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz"

SOFTMAX = [{"op": "flatten"}, {"op": "dense", "name": "softmax", "units": 10}]
MLP = [{"op": "flatten"},
       {"op": "dense", "name": "hidden1", "units": 100, "activation": "relu"},
       {"op": "dense", "name": "hidden2", "units": 50, "activation": "relu"},
       {"op": "dense", "name": "logits", "units": 10}]
POOL = {"op": "max_pool", "pool_size": 2, "padding": "same"}
CONV = {"op": "conv2d", "kernel_size": 5, "padding": "same", "activation": "relu"}
CNN = [{**CONV, "name": "conv1", "filters": 8}, POOL, {**CONV, "name": "conv2", "filters": 16}, POOL,
       {"op": "flatten"}, {"op": "dense", "name": "hidden", "units": 64, "activation": "relu"},
       {"op": "dense", "name": "logits", "units": 10}]


@unittest.skipUnless((DATA / IMAGES).exists() and CURVES.is_dir(), "no MNIST or no curves here")
class Curves(tool.ToolCase):
    def write_spec(self, model):
        spec = {
            "data": {"train": {"format": "idx", "features": "absent", "labels": "absent"},
                     "eval": {"format": "idx", "features": IMAGES, "labels": LABELS},
                     "scale": 0.00392156863},
            "model": model, "loss": {"op": "softmax_cross_entropy"}, "metrics": ["accuracy"],
            "optimizer": "adam", "train": {"last_step": 1},
        }
        (self.folder / "spec.json").write_text(json.dumps(spec))

    def follow(self, name, model):
        self.write_spec(model)
        self.run_ok("eval", "spec.json", f"--checkpoint={CURVES / name / 'model.ckpt-120'}",
                    f"--data_dir={DATA}", "--result=result.json")
        result = json.loads((self.folder / "result.json").read_text())
        curve = json.loads((CURVES / name / "curve.json").read_text())
        self.assertEqual((result["step"], result["evaluation_examples"]), (120, 10000))
        self.assertAlmostEqual(result["metrics"]["loss"], curve["test_loss"], delta=2e-6)
        self.assertAlmostEqual(result["metrics"]["accuracy"], curve["test_accuracy"], delta=1.5e-4)

    def test_softmax_regression(self):
        self.follow("softmax_sgd", SOFTMAX)

    def test_multilayer_perceptrons(self):
        for name in ("mlp_momentum", "mlp_adam", "mlp_adagrad_decay"):
            self.follow(name, MLP)

    def test_the_convolutional_network(self):
        self.follow("cnn_adam", CNN)

    def test_predictions_have_the_accuracy_of_the_evaluation(self):
        self.write_spec(SOFTMAX)
        prefix = CURVES / "softmax_sgd" / "model.ckpt-120"
        words = ("spec.json", f"--checkpoint={prefix}", f"--data_dir={DATA}")
        self.run_ok("eval", *words, "--result=result.json")
        self.run_ok("predict", *words, f"--data={DATA / IMAGES}", "--out=out.jsonl")
        self.run_ok("predict", *words, "--out=same.jsonl")
        out = (self.folder / "out.jsonl").read_text()
        self.assertEqual(out, (self.folder / "same.jsonl").read_text())
        classes = [json.loads(line)["class"] for line in out.splitlines()]
        self.assertEqual(len(classes), 10000)
        labels = gzip.decompress((DATA / LABELS).read_bytes())[8:]
        right = sum(a == b for a, b in zip(classes, labels))
        accuracy = json.loads((self.folder / "result.json").read_text())["metrics"]["accuracy"]
        self.assertAlmostEqual(right / 10000, accuracy, delta=1e-9)


if __name__ == "__main__":
    program.need_binary()
    ended = unittest.main(exit=False).result
    if ended.wasSuccessful() and len(ended.skipped) == ended.testsRun:
        sys.exit(77)  # meson: skipped
    sys.exit(not ended.wasSuccessful())
