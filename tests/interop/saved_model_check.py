"""Loads what `dtrain export --format=saved_model` wrote with TensorFlow, and holds each row of its data
against what `dtrain predict` says of it: by cells, by serialized Examples, and as TensorFlow 1 loads it.

    python3 saved_model_check.py DTRAIN FOLDER [--flag of export ...]

FOLDER has spec.json, its data.eval a CSV file with a label, JSON lines, or TFRecords of images that have the size of their
columns, and the checkpoint of a run in FOLDER/run.
"""
import csv
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import tensorflow as tf

NEAR = 1e-5


def images_of(folder, spec):
    """Pixels by the names of their columns"""
    columns = [column for column in spec["data"]["columns"] if column["column"] == "image"]
    rows = {column["name"]: [] for column in columns}
    for record in tf.data.TFRecordDataset(str(folder / spec["data"]["eval"]["file"])):
        features = tf.train.Example.FromString(record.numpy()).features.feature
        for column in columns:
            (cell,) = features[column.get("source", column["name"])].bytes_list.value
            decoded = np.frombuffer(cell, np.uint8) if column.get("raw") else tf.io.decode_png(cell).numpy()
            rows[column["name"]].append(decoded.reshape([column["size"], column["size"], -1]))
    return rows


def read_rows(folder, spec):
    """Cells by their names, or numbers without columns"""
    source = spec["data"]["eval"]
    if source["format"] == "tfrecord":
        return images_of(folder, spec), None
    with open(folder / source["file"], encoding="utf-8") as file:
        if source["format"] == "jsonl":
            lines = [json.loads(line) for line in file]
            return {name: [line.get(name) for line in lines] for name in lines[0]}, None
        rows = list(csv.reader(file))
    if source.get("header", True):
        names, rows = rows[0], rows[1:]
        return {name: [row[i] for row in rows] for i, name in enumerate(names)}, None
    label = source["label"] % len(rows[0])
    return None, np.array([[float(x) for i, x in enumerate(row) if i != label] for row in rows])


def value_of(cell, kind):
    """In the type that the signature has; None and "" are no value"""
    if kind == tf.string:
        return (cell or "").encode()
    if cell in (None, ""):
        return -1 if kind == tf.int64 else float("nan")
    return int(float(cell)) if kind == tf.int64 else float(cell)


def values_of(cells, spec):
    if len(spec.shape) == 4:
        return cells
    if len(spec.shape) == 1:
        return [value_of(cell, spec.dtype) for cell in cells]
    most = max(len(cell) for cell in cells)
    return [[value_of(x, spec.dtype) for x in [*cell, *[None] * (most - len(cell))]] for cell in cells]


def example(cells, inputs, times, row):
    features = {}
    for name, spec in inputs.items():
        cell = cells[name][row]
        if len(spec.shape) == 4:
            features[name] = tf.train.Feature(bytes_list=tf.train.BytesList(value=[cell.tobytes()]))
            continue
        values = [value_of(x, spec.dtype) for x in (cell if isinstance(cell, list) else [cell])]
        if name in times and spec.dtype == tf.float64:
            if values[0] == values[0]:
                features[name] = tf.train.Feature(int64_list=tf.train.Int64List(value=[int(values[0])]))
        elif spec.dtype == tf.string:
            features[name] = tf.train.Feature(bytes_list=tf.train.BytesList(value=values))
        elif spec.dtype == tf.int64 and values != [-1]:
            features[name] = tf.train.Feature(int64_list=tf.train.Int64List(value=values))
        elif spec.dtype == tf.float64 and not any(x != x for x in values):
            features[name] = tf.train.Feature(float_list=tf.train.FloatList(value=values))
    return tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString()


def predicted(dtrain, folder, out, flags):
    """By --outputs of export, whose names TensorFlow sorts"""
    flags = sorted(flag for flag in flags if flag.startswith("--outputs="))
    subprocess.run([dtrain, "predict", "spec.json", "--checkpoint=run", f"--out={out}/p.npy", *flags], cwd=folder, check=True,
                   stdout=subprocess.DEVNULL)
    return np.load(out / "p.npy")


def joined(outputs):
    return np.concatenate([np.asarray(outputs[name]).reshape(len(outputs[name]), -1) for name in sorted(outputs)], axis=1)


def report(what, got, wanted):
    worst = np.max(np.abs(got - wanted))
    print(f"{what}: {len(got)} rows, largest difference {worst:.2e}")
    return got.shape == wanted.shape and worst < NEAR


def check_session(path, feeds, wanted):
    """As TensorFlow Serving loads it"""
    with tf.compat.v1.Session(graph=tf.Graph()) as session:
        graph = tf.compat.v1.saved_model.load(session, ["serve"], str(path))
        signature = graph.signature_def["serving_default"]
        outputs = {name: info.name for name, info in signature.outputs.items()}
        fed = {signature.inputs[name].name: value for name, value in feeds.items()}
        return report("session", joined(session.run(outputs, fed)), wanted)


def main():
    dtrain, folder, *flags = sys.argv[1:]
    folder, dtrain = pathlib.Path(folder), str(pathlib.Path(dtrain).resolve())
    spec = json.loads((folder / "spec.json").read_text())
    with tempfile.TemporaryDirectory() as out:
        out = pathlib.Path(out)
        print(subprocess.run([dtrain, "export", "spec.json", "--checkpoint=run", "--format=saved_model", f"--out={out}/m",
                              *flags], cwd=folder, check=True, capture_output=True, text=True).stdout, end="")
        wanted = predicted(dtrain, folder, out, flags)
        (path,) = (out / "m").iterdir()
        loaded = tf.saved_model.load(str(path))
        serve = loaded.signatures["serving_default"]
        inputs = serve.structured_input_signature[1]
        cells, stored = read_rows(folder, spec)
        if cells is None:
            feeds = {"features": stored.reshape([-1, *inputs["features"].shape[1:]]).astype(np.float32)}
        else:
            feeds = {name: np.array(values_of(cells[name], given), object if given.dtype == tf.string else None)
                     for name, given in inputs.items()}
        tensors = {name: tf.constant(value, inputs[name].dtype) for name, value in feeds.items()}
        is_right = report("serving_default", joined(serve(**tensors)), wanted)
        is_right &= check_session(path, feeds, wanted)
        if cells is not None:
            columns = spec["data"].get("columns", [])
            times = {column.get("source", column["name"]) for column in columns if column["column"] == "date"}
            examples = [example(cells, inputs, times, row) for row in range(len(wanted))]
            said = loaded.signatures["parse_example"](examples=tf.constant(examples))
            is_right &= report("parse_example", joined(said), wanted)
    sys.exit(not is_right)


if __name__ == "__main__":
    main()
