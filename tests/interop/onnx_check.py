"""Runs what `dtrain export --format=onnx` wrote with onnxruntime, and holds each row of its data against what
`dtrain predict` says of it. onnx.checker looks at it first.

    python3 onnx_check.py DTRAIN FOLDER [--flag of export ...]        (onnx, onnxruntime, numpy)

FOLDER has spec.json, its data.eval a CSV file with a label or JSON lines, and the checkpoint of a run in
FOLDER/run. Words of at most 16 bytes are hashed here, as any client would; crosses are not made.
"""
import csv
import datetime
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime

NEAR = 1e-5
PRIME_0, PRIME_2, LIMIT = 0xC3A5C85C97CB3127, 0x9AE16A3B2F90404F, (1 << 64) - 1


def turned(x, bits):
    return (x >> bits | x << (64 - bits)) & LIMIT


def folded(x):
    return x ^ x >> 47


def mixed(a, b, factor):
    return folded((b ^ folded((a ^ b) * factor & LIMIT)) * factor & LIMIT) * factor & LIMIT


def fingerprint(word):
    """FarmHash's Fingerprint64 of at most 16 bytes"""
    count, factor = len(word), PRIME_2 + 2 * len(word) & LIMIT
    number = lambda data: int.from_bytes(data, "little")  # noqa: E731
    if count >= 8:
        a, b = number(word[:8]) + PRIME_2 & LIMIT, number(word[-8:])
        return mixed(turned(b, 37) * factor + a & LIMIT, (turned(a, 25) + b) * factor & LIMIT, factor)
    if count >= 4:
        return mixed(count + (number(word[:4]) << 3), number(word[-4:]), factor)
    if not count:
        return PRIME_2
    low, high = word[0] + (word[count // 2] << 8), count + (word[-1] << 2)
    return folded((low * PRIME_2 ^ high * PRIME_0) & LIMIT) * PRIME_2 & LIMIT


def read_cells(folder, source):
    """Cells by their names, or numbers without columns"""
    with open(folder / source["file"], encoding="utf-8") as file:
        if source["format"] == "jsonl":
            lines = [json.loads(line) for line in file]
            return {name: [line.get(name) for line in lines] for name in lines[0]}, None
        rows = list(csv.reader(file))
    if source.get("header", True):
        return {name: [row[i] for row in rows[1:]] for i, name in enumerate(rows[0])}, None
    label = source["label"] % len(rows[0])
    return None, np.array([[float(x) for i, x in enumerate(row) if i != label] for row in rows])


def seconds_of(column, word):
    return float(word) / (1000 if column.get("format") == "milliseconds" else 1)


def part_of(column, word):
    time = datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=seconds_of(column, word))
    return {"hour": time.hour, "weekday": time.weekday(), "day": time.day - 1, "month": time.month - 1}[column["part"]]


def whole_of(word):
    """As dtrain has it: what int64 has no room for is spread over its upper half."""
    number = int(word) if str(word).lstrip("-").isdigit() else int(float(word))
    return number if number < (1 << 63) - 1 else (1 << 62) + fingerprint(number.to_bytes(8, "little")) % ((1 << 62) - 1)


def id_of(column, word):
    kind = column["column"]
    if kind == "date":
        return part_of(column, word)
    if kind in ("identity", "ids"):
        return whole_of(str(word).partition(":")[0])
    if kind == "hash":
        return fingerprint(str(word).encode()) % column.get("buckets", (1 << 63) - 1)
    words, more = column["words"], column.get("oov_buckets", 0)
    return words.index(word) if word in words else len(words) + fingerprint(word.encode()) % more if more else -1


def value_of(column, cell, width):
    """What a client gives of a row"""
    separator = column.get("separator", " " if column["column"] == "ids" else None)
    items = cell if isinstance(cell, list) else str(cell or "").split(separator) if separator else [cell]
    items = [item for item in items if item not in ("", None)]
    if column.get("part") == "seconds":
        values = [seconds_of(column, item) for item in items] + [np.nan]
    elif column["column"] in ("numeric", "bucketized"):
        values = [float(item) for item in items] + [np.nan] * width
    else:
        values = [x for x in (id_of(column, item) for item in items) if x >= 0]
        values = values[-width:] if column.get("truncate") == "last" else values
        values += [-1] * width
    return values[:width] if width > 1 else values[0]


def counted(column, cell, width):
    """What each of the ids counts: "7:0.5"; 1, where nothing is said; 0, where there is none"""
    items = cell if isinstance(cell, list) else str(cell or "").split(column.get("separator", " "))
    values = [float(item.partition(":")[2] or 1) for item in items if item]
    values = values[-width:] if column.get("truncate") == "last" else values
    return (values + [0] * width)[:width]


def fed(session, spec, folder):
    cells, stored = read_cells(folder, spec["data"]["eval"])
    columns = {column["name"]: column for column in spec["data"].get("columns", [])}
    feeds = {}
    for given in session.get_inputs():
        kind = {"tensor(float)": np.float32, "tensor(int64)": np.int64, "tensor(double)": np.float64}[given.type]
        if cells is None:
            feeds[given.name] = stored.reshape([-1, *given.shape[1:]]).astype(kind)
            continue
        name, _, weights = given.name.partition("/")
        column, width = columns[name], given.shape[1] if len(given.shape) > 1 else 1
        values = [(counted if weights else value_of)(column, cell, width) for cell in cells[column.get("source", name)]]
        feeds[given.name] = np.array(values, kind)
    return feeds


def main():
    dtrain, folder, *flags = sys.argv[1:]
    folder, dtrain = pathlib.Path(folder), str(pathlib.Path(dtrain).resolve())
    spec = json.loads((folder / "spec.json").read_text())
    with tempfile.TemporaryDirectory() as out:
        out = pathlib.Path(out)
        print(subprocess.run([dtrain, "export", "spec.json", "--checkpoint=run", "--format=onnx", f"--out={out}/m", *flags],
                             cwd=folder, check=True, capture_output=True, text=True).stdout, end="")
        outputs = [flag for flag in flags if flag.startswith("--outputs=")]
        subprocess.run([dtrain, "predict", "spec.json", "--checkpoint=run", f"--out={out}/p.npy", *outputs], cwd=folder,
                       check=True, stdout=subprocess.DEVNULL)
        wanted = np.load(out / "p.npy")
        (path,) = (out / "m").glob("*.onnx")
        onnx.checker.check_model(str(path), full_check=True)
        session = onnxruntime.InferenceSession(str(path))
        said = session.run(None, fed(session, spec, folder))
        said = np.concatenate([values.reshape(len(values), -1) for values in said], axis=1)
        worst = np.max(np.abs(said - wanted))
        print(f"onnxruntime: {len(said)} rows, largest difference {worst:.2e}")
        sys.exit(not (said.shape == wanted.shape and worst < NEAR))


if __name__ == "__main__":
    main()
