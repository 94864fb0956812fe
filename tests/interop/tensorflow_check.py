#!/usr/bin/env python3
"""Do TensorFlow and dtrain go on from each other's checkpoints?

    tensorflow_check.py --dtrain=build/cmd/dtrain --data=FOLDER [--curves=FOLDER]

Run by hand, in a virtual environment with TensorFlow (pip install tensorflow-cpu). data: the four
files of MNIST. dtrain trains on two and on three ps, in parts, with Adam; TensorFlow lists and loads
what it saved, restores it with a sharded Saver into a graph of the same variables, and both go on
with the same batches. curves: runs of TensorFlow (NAME/curve.json, its model.ckpt-0 and -120), which
dtrain continues from and ends where TensorFlow did. Prints a table; exits 1 where something differs.
"""
import argparse
import gzip
import json
import os
import shutil
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

BATCH, ROWS = 100, 12000  # what the curves were made with
SCALE = np.float32(0.00392156863)
FIRST_STEP, MORE_STEPS = 60, 20
LOSS_ERROR_MAX = 1e-5  # relative
CURVE_STEPS = 120
REVERSED = Path(__file__).resolve().parents[1] / "fixtures" / "cnn_adam_reversed.json"
LIMIT_S = 300  # for one run
LAYERS = (("hidden1", 100, "relu"), ("hidden2", 50, "relu"), ("logits", 10, "linear"))

SOFTMAX = [{"op": "flatten"}, {"op": "dense", "name": "softmax", "units": 10}]
MLP = [{"op": "flatten"}] + [{"op": "dense", "name": name, "units": units, "activation": activation}
                             for name, units, activation in LAYERS]
POOL = {"op": "max_pool", "pool_size": 2, "padding": "same"}
CONV = {"op": "conv2d", "kernel_size": 5, "padding": "same", "activation": "relu"}
CNN = [{**CONV, "name": "conv1", "filters": 8}, POOL, {**CONV, "name": "conv2", "filters": 16}, POOL,
       {"op": "flatten"}, {"op": "dense", "name": "hidden", "units": 64, "activation": "relu"},
       {"op": "dense", "name": "logits", "units": 10}]
# Model, and how far values, test loss and accuracy may be at the end: the last is chaotic.
CURVES = {"softmax_sgd": (SOFTMAX, 1e-5, 2e-5, 1.5e-4), "mlp_momentum": (MLP, 1e-5, 2e-5, 1.5e-4),
          "mlp_adam": (MLP, 1e-4, 2e-5, 1.5e-4), "mlp_adagrad_decay": (MLP, 1e-5, 2e-5, 1.5e-4),
          "cnn_adam": (CNN, 0.1, 5e-3, 3e-3)}


class Table:
    """What was checked, as it is checked."""

    def __init__(self):
        self.failures = 0

    def row(self, what, found, is_good):
        self.failures += not is_good
        print(f"{what:62} {found:34} {'ok' if is_good else 'DIFFERS'}", flush=True)

    def least(self, what, found, limit):
        self.row(what, f"{found:.2g} (limit {limit:.2g})", bool(found <= limit))


class Run:
    """A run of dtrain in a folder of its own."""

    def __init__(self, options, folder, model, optimizer, partitioner=None):
        self.binary, self.folder = Path(options.dtrain).resolve(), folder
        self.data = Path(options.data).resolve()
        self.spec = {
            "data": {"train": self.source("train", take=ROWS), "eval": self.source("t10k"),
                     "batch_size": BATCH, "scale": float(SCALE), "shuffle": False},
            "model": model, "loss": {"op": "softmax_cross_entropy"}, "metrics": ["accuracy"],
            "optimizer": optimizer, "placement": {"partitioner": partitioner},
            "train": {"mode": "sync", "checkpoint_dir": "run", "save_checkpoint_steps": 0,
                      "log_every_steps": 1, "last_step": 1},
        }

    def source(self, name, **more):
        return {"format": "idx", "features": f"{name}-images-idx3-ubyte.gz",
                "labels": f"{name}-labels-idx1-ubyte.gz", **more}

    def dtrain(self, *words):
        ended = subprocess.run([self.binary, *map(str, words)], cwd=self.folder, text=True,
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, timeout=LIMIT_S, check=False)
        if ended.returncode:
            sys.exit(f"dtrain {' '.join(map(str, words))}: code {ended.returncode}\n{ended.stdout}")
        return ended.stdout

    def train(self, last_step, ps):
        """With one worker; {step: loss}."""
        self.spec["train"]["last_step"] = last_step
        (self.folder / "spec.json").write_text(json.dumps(self.spec))
        metrics = self.folder / "metrics.jsonl"
        metrics.unlink(missing_ok=True)
        self.dtrain(f"--local_ps={ps}", "--local_workers=1", f"--data_dir={self.data}",
                    f"--metrics_file={metrics}", "spec.json")
        lines = map(json.loads, metrics.read_text().splitlines())
        return {line["step"]: line["loss"] for line in lines}

    def export(self, prefix):
        self.dtrain("checkpoint", "export", prefix, "arrays.npz")
        with np.load(self.folder / "arrays.npz") as arrays:
            return dict(arrays)

    def evaluate(self):
        self.dtrain("eval", "spec.json", "--checkpoint=run", f"--data_dir={self.data}",
                    "--result=result.json")
        return json.loads((self.folder / "result.json").read_text())


# ---- TensorFlow continues from dtrain ----


def read_batches(data):
    """Pixels and labels in file order."""
    with gzip.open(Path(data) / "train-images-idx3-ubyte.gz") as file:
        pixels = np.frombuffer(file.read(16 + ROWS * 784), np.uint8, offset=16)
    with gzip.open(Path(data) / "train-labels-idx1-ubyte.gz") as file:
        labels = np.frombuffer(file.read(8 + ROWS), np.uint8, offset=8)
    pixels = pixels.reshape(-1, BATCH, 784).astype(np.float32) * SCALE
    return pixels, labels.reshape(-1, BATCH).astype(np.int64)


def build_graph(parts):
    """The same variables, in parts, and Adam's slots; what a step needs."""
    pixels = tf.placeholder(tf.float32, [None, 784])
    labels = tf.placeholder(tf.int64, [None])
    at, width = pixels, 784
    for name, units, activation in LAYERS:
        with tf.variable_scope(name, partitioner=tf.fixed_size_partitioner(parts)):
            kernel = tf.get_variable("kernel", [width, units])
            bias = tf.get_variable("bias", [units])
        at = tf.matmul(at, tf.convert_to_tensor(kernel)) + tf.convert_to_tensor(bias)
        at = tf.nn.relu(at) if activation == "relu" else at
        width = units
    loss = tf.reduce_mean(
        tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=at))
    step = tf.train.get_or_create_global_step()
    update = tf.train.AdamOptimizer(0.001).minimize(loss, global_step=step)
    return pixels, labels, loss, update


def compare_restored(session, reader):
    """Parts of the graph with the same parts of what the checkpoint holds; how many are equal."""
    equal = 0
    variables = tf.global_variables()
    for variable in variables:
        value = session.run(variable)
        info = variable._get_save_slice_info()  # pylint: disable=protected-access
        whole = reader.get_tensor(info.full_name if info else variable.op.name)
        if info:
            box = tuple(slice(o, o + s) for o, s in zip(info.var_offset, info.var_shape))
            whole = whole[box]
        equal += value.tobytes() == whole.tobytes()
    return equal, len(variables)


def go_on(prefix, parts, batches, table):
    """Losses of TensorFlow's next steps."""
    losses = {}
    with tf.Graph().as_default(), tf.Session() as session:
        pixels, labels, loss, update = build_graph(parts)
        tf.train.Saver(sharded=True).restore(session, prefix)
        equal, count = compare_restored(session, tf.train.load_checkpoint(prefix))
        table.row("  Saver(sharded=True) restores parts, slots, powers, step",
                  f"{equal} of {count} equal bit for bit", equal == count)
        for i in range(FIRST_STEP, FIRST_STEP + MORE_STEPS):
            feed = {pixels: batches[0][i], labels: batches[1][i]}
            losses[i + 1] = session.run([loss, update], feed)[0]
    return losses


def check_listing(prefix, exported, table):
    listed = dict(tf.train.list_variables(prefix))
    shapes = {name: list(value.shape) for name, value in exported.items()}
    table.row("  list_variables", f"{len(listed)} names and shapes", listed == shapes)
    reader = tf.train.load_checkpoint(prefix)
    equal = sum(reader.get_tensor(name).tobytes() == value.tobytes()
                for name, value in exported.items())
    table.row("  load_checkpoint", f"{equal} of {len(exported)} equal bit for bit",
              equal == len(exported))


def relative_error(losses, wanted):
    if not wanted or not set(wanted) <= set(losses):
        return float("inf")
    return max(abs(losses[step] - wanted[step]) / wanted[step] for step in wanted)


def check_from_dtrain(options, folder, ps, table):
    print(f"dtrain with {ps} ps, every variable in {ps} parts, Adam")
    run = Run(options, folder, MLP, {"type": "adam", "learning_rate": 0.001},
              {"type": "fixed_size", "num_shards": ps})
    run.train(FIRST_STEP, ps)
    prefix = str(folder / "run" / f"model.ckpt-{FIRST_STEP}")
    table.row("  latest_checkpoint", f"model.ckpt-{FIRST_STEP}",
              tf.train.latest_checkpoint(str(folder / "run")) == prefix)
    check_listing(prefix, run.export(prefix), table)
    losses = go_on(prefix, ps, read_batches(options.data), table)
    own = run.train(FIRST_STEP + MORE_STEPS, ps)
    table.least(f"  losses of the next {MORE_STEPS} steps, TensorFlow and dtrain",
                relative_error(own, losses), LOSS_ERROR_MAX)


# ---- dtrain continues from TensorFlow ----


def branches(name, curve):
    """In double precision: the losses of TensorFlow, and those it has where one ReLU of the
    convolutional model, whose input is 4e-9, is taken to be on the other side of 0."""
    found = [curve["loss_double"]]
    if name == "cnn_adam":
        found.append(json.loads(REVERSED.read_text())["loss_double"])
    return found


def curve_excess(curve, exact, losses):
    """The largest error of a loss as a part of what is allowed there: 2e-5, or three times what
    float32 made of TensorFlow's own so far."""
    worst = spread = 0.0
    for step, (single, double) in enumerate(zip(curve["loss"], curve["loss_double"]), 1):
        spread = max(spread, abs(single - double) / double)
        error = abs(losses.get(step, float("inf")) - exact[step - 1]) / exact[step - 1]
        worst = max(worst, error / max(2e-5, 3 * spread))
    return worst


def check_end(run, curve, prefix, limits, table):
    values, test_loss, test_accuracy = limits
    reader = tf.train.load_checkpoint(prefix)
    exported = run.export(f"run/model.ckpt-{CURVE_STEPS}")
    names = reader.get_variable_to_shape_map()
    table.row("  global step", str(int(exported["global_step"])),
              int(exported["global_step"]) == int(reader.get_tensor("global_step")))
    absent = sorted(set(names) - set(exported))
    table.row("  names of TensorFlow's variables and slots", f"{len(names)}, {len(absent)} absent",
              not absent)
    table.least("  values and slots at the end, largest difference",
                max(float(np.max(np.abs(reader.get_tensor(name) - exported[name])))
                    for name in set(names) - set(absent)), values)
    metrics = run.evaluate()["metrics"]
    table.least("  dtrain eval, test loss", abs(metrics["loss"] - curve["test_loss"]), test_loss)
    table.least("  dtrain eval, test accuracy",
                abs(metrics["accuracy"] - curve["test_accuracy"]), test_accuracy)


def check_from_tensorflow(options, folder, name, table):
    model, *limits = CURVES[name]
    source = Path(options.curves) / name
    curve = json.loads((source / "curve.json").read_text())
    print(f"{name}, from TensorFlow's model.ckpt-0, 2 ps")
    (folder / "run").mkdir()
    for path in (source / "checkpoint", *source.glob("model.ckpt-0.*")):
        shutil.copyfile(path, folder / "run" / path.name)
    run = Run(options, folder, model, curve["optimizer"])
    losses = run.train(CURVE_STEPS, 2)
    table.least(f"  {CURVE_STEPS} losses, largest error as a part of what is allowed",
                min(curve_excess(curve, exact, losses) for exact in branches(name, curve)), 1)
    check_end(run, curve, str(source / f"model.ckpt-{CURVE_STEPS}"), limits, table)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--dtrain", required=True, help="the program")
    parser.add_argument("--data", required=True, help="the folder of MNIST's four files")
    parser.add_argument("--curves", help="the folder of TensorFlow's runs")
    options = parser.parse_args()
    table = Table()
    with tempfile.TemporaryDirectory(prefix="dtrain-interop-") as folder:
        for ps in (2, 3):
            at = Path(folder) / f"ps-{ps}"
            at.mkdir()
            check_from_dtrain(options, at, ps, table)
        for name in CURVES if options.curves else ():
            at = Path(folder) / name
            at.mkdir()
            check_from_tensorflow(options, at, name, table)
    print(f"TensorFlow {tensorflow.__version__}: "
          f"{table.failures or 'no'} difference{'s' if table.failures != 1 else ''}")
    sys.exit(1 if table.failures else 0)


if __name__ == "__main__":
    main()
