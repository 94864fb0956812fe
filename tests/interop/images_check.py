#!/usr/bin/env python3
"""Do TensorFlow and dtrain train a network of images alike, its moving values included?

    images_check.py --dtrain=build/cmd/dtrain

Run by hand, in a virtual environment with TensorFlow (pip install tensorflow-cpu). dtrain trains 120 steps of a network with
batch normalisation of images and of rows, depthwise convolution and lrn; TensorFlow begins with its
first checkpoint, sees the same batches, and must have come to the values of its last one. Prints a table; exits 1 where
something differs.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

# pylint: disable=wrong-import-position
import numpy as np
import tensorflow

tf = tensorflow.compat.v1
tf.disable_eager_execution()
tf.logging.set_verbosity(tf.logging.ERROR)

ROWS, BATCH, STEPS, SHAPE, CLASSES = 640, 32, 120, [6, 6, 2], 3
ERROR_MAX = 5e-6  # of the largest value of a variable, or of 1
LIMIT_S = 300
MODEL = [{"op": "conv2d", "name": "c", "filters": 4, "kernel_size": 3, "padding": "same"},
         {"op": "batch_normalization", "name": "bn", "momentum": 0.9}, {"op": "relu"},
         {"op": "depthwise_conv2d", "name": "dw", "kernel_size": 3}, {"op": "lrn"}, {"op": "flatten"},
         {"op": "dense", "name": "h", "units": 5}, {"op": "batch_normalization", "name": "bn2"},
         {"op": "dense", "name": "o", "units": CLASSES}]


def train(dtrain, folder, images, labels):
    images.tofile(folder / "images")
    labels.tofile(folder / "labels")
    spec = {"data": {"train": {"format": "raw", "file": "images", "labels": "labels", "shape": SHAPE}, "batch_size": BATCH,
                     "shuffle": False},
            "model": MODEL, "loss": "softmax_cross_entropy",
            "optimizer": {"type": "momentum", "learning_rate": 0.05, "momentum": 0.9},
            "train": {"last_step": STEPS, "checkpoint_dir": str(folder / "run"), "save_checkpoint_steps": 10 * STEPS}}
    (folder / "spec.json").write_text(json.dumps(spec))
    subprocess.run([dtrain, folder / "spec.json"], check=True, timeout=LIMIT_S, stdout=subprocess.DEVNULL)
    return [tensorflow.train.load_checkpoint(str(folder / "run" / f"model.ckpt-{step}")) for step in (0, STEPS)]


class Network:
    def __init__(self, first):
        names = [name for name in first.get_variable_to_shape_map()
                 if not name.startswith("dtrain/") and not name.endswith("/Momentum") and name != "global_step"]
        self.v = {name: tf.Variable(first.get_tensor(name), trainable="moving" not in name) for name in names}
        self.images, self.labels = tf.placeholder(tf.float32, [BATCH, *SHAPE]), tf.placeholder(tf.int32, [BATCH])
        self.updates = []
        loss = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=self.labels, logits=self.logits())
        self.updates.append(tf.train.MomentumOptimizer(0.05, 0.9).minimize(tf.reduce_mean(loss)))

    def normalize(self, x, name, momentum):
        gamma, beta = self.v[f"{name}/gamma"], self.v[f"{name}/beta"]
        if len(x.shape) == 4:
            y, mean, variance = tf.nn.fused_batch_norm(x, gamma, beta, epsilon=1e-3, is_training=True)[:3]
        else:
            mean, variance = tf.nn.moments(x, [0])
            y = tf.nn.batch_normalization(x, mean, variance, beta, gamma, 1e-3)
        for moving, measured in ((self.v[f"{name}/moving_mean"], mean), (self.v[f"{name}/moving_variance"], variance)):
            self.updates.append(tf.assign_sub(moving, (moving - measured) * (1 - momentum)))
        return y

    def logits(self):
        v = self.v
        x = tf.nn.conv2d(self.images, v["c/kernel"], [1, 1, 1, 1], "SAME") + v["c/bias"]
        x = tf.nn.relu(self.normalize(x, "bn", 0.9))
        x = tf.nn.depthwise_conv2d(x, v["dw/depthwise_kernel"], [1, 1, 1, 1], "VALID") + v["dw/bias"]
        x = tf.reshape(tf.nn.lrn(x, 5, 1.0, 1.0, 0.5), [BATCH, -1])
        return self.normalize(x @ v["h/kernel"] + v["h/bias"], "bn2", 0.99) @ v["o/kernel"] + v["o/bias"]


def main():
    words = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    words.add_argument("--dtrain", required=True)
    dtrain = str(Path(words.parse_args().dtrain).resolve())
    draw = np.random.RandomState(1)
    images = draw.randn(ROWS, *SHAPE).astype("float32")
    labels = draw.randint(CLASSES, size=ROWS).astype("int32")
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        first, last = train(dtrain, Path(folder), images, labels)
        network = Network(first)
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            for step in range(STEPS):
                at = step * BATCH % ROWS
                session.run(network.updates, {network.images: images[at:at + BATCH], network.labels: labels[at:at + BATCH]})
            for name, variable in sorted(network.v.items()):
                theirs = session.run(variable)
                error = np.abs(theirs - last.get_tensor(name)).max() / max(1, np.abs(theirs).max())
                failed |= not error <= ERROR_MAX
                print(f"{name:24} {error:.1e} {'ok' if error <= ERROR_MAX else 'differs'}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
