"""The rows of all cases, in every format, and the spec and command line of a case."""
import gzip
import json
import math
import random
import struct
import subprocess

import features

ROWS, EVAL_ROWS, BATCH, CLASSES, SIDE = 192, 40, 8, 4, 6
EPOCHS = 1
WORDS = ["ant", "bee", "cat", "dog", "elk"]
PIXELS = SIDE * SIDE
CRITEO_NUMBERS, CRITEO_WORDS = 13, 26


# Rows

def make_rows(count, seed):
    """Cells by name: numbers, words, ids and lists of ids, and labels of all kinds that depend on them."""
    draw = random.Random(seed)
    rows = []
    for _ in range(count):
        numbers = [round(draw.gauss(0, 1), 4) for _ in range(4)]
        word, number = draw.randrange(len(WORDS)), draw.randrange(12)
        ids = draw.sample(range(20), draw.randrange(1, 4))
        logit = numbers[0] - 0.5 * numbers[1] + (word - 2) * 0.8 + (number % 3 - 1) * 0.5
        rows.append({
            "x0": numbers[0], "x1": numbers[1], "x2": numbers[2], "x3": numbers[3], "word": WORDS[word], "number": number,
            "ids": " ".join(map(str, ids)), "weighted": " ".join(f"{i}:{draw.randrange(1, 5) * 0.5}" for i in ids),
            "weight": draw.choice([0.5, 1, 2]), "click": int(draw.random() < 1 / (1 + math.exp(-logit))),
            "kind": (word + number) % CLASSES, "amount": round(logit + draw.gauss(0, 0.1), 4)})
    return rows


def crc_table():
    table = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
        table.append(value)
    return table


CRC = crc_table()


def masked_crc(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ CRC[(crc ^ byte) & 255]
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def tagged(field, data):
    """A field of protobuf that has bytes."""
    length, out = len(data), b""
    while length > 127:
        out += bytes([length & 127 | 128])
        length >>= 7
    return bytes([field << 3 | 2]) + out + bytes([length]) + data


def varint(value):
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def listed(row):
    """A row of a format that has lists: what is one cell between spaces elsewhere."""
    return {**row, "ids": [int(one) for one in row["ids"].split()], "weighted": row["weighted"].split()}


def example(row):
    """tf.Example: words as bytes_list, whole numbers as int64_list, others as float_list."""
    cells = b""
    for name, cell in listed(row).items():
        values = cell if isinstance(cell, list) else [cell]
        if isinstance(values[0], str):
            feature = tagged(1, b"".join(tagged(1, one.encode()) for one in values))
        elif isinstance(values[0], int):
            feature = tagged(3, tagged(1, b"".join(map(varint, values))))
        else:
            feature = tagged(2, tagged(1, struct.pack("<f", cell)))
        cells += tagged(1, tagged(1, name.encode()) + tagged(2, feature))
    return tagged(1, cells)


def record(data):
    head = struct.pack("<Q", len(data))
    return head + struct.pack("<I", masked_crc(head)) + data + struct.pack("<I", masked_crc(data))


def as_csv(rows):
    names = list(rows[0])
    return "".join(",".join(map(str, line)) + "\n" for line in [names, *([row[n] for n in names] for row in rows)]).encode()


def as_criteo(rows):
    lines = []
    for row in rows:
        numbers = [str(abs(row["number"]) + i) for i in range(CRITEO_NUMBERS)]
        words = [f"{row['word']}{(row['number'] + i) % 7}" for i in range(CRITEO_WORDS)]
        lines.append("\t".join([str(row["click"]), *numbers, *words]) + "\n")
    return "".join(lines).encode()


def as_libsvm(rows):
    return "".join(f"{row['kind']} " + " ".join(f"{i + 1}:{row[f'x{i}']}" for i in range(4)) + "\n" for row in rows).encode()


def as_slots(rows):
    lines = []
    for row in rows:
        cells = [(name, cell if isinstance(cell, list) else [cell]) for name, cell in listed(row).items()]
        lines.append(" ".join(f"{name}:{value}" for name, values in cells for value in values) + "\n")
    return "".join(lines).encode()


def pixels(row):
    return [(int(abs(row["x0"]) * 40) + i * (1 + row["kind"]) * 7) % 256 for i in range(PIXELS)]


def idx(data, shape):
    return struct.pack(">BBBB", 0, 0, 8, len(shape)) + b"".join(struct.pack(">I", d) for d in shape) + bytes(data)


def pack(data, packing):
    if packing == "gzip":
        return gzip.compress(data, mtime=0)
    if packing == "zstd":
        return subprocess.run(["zstd", "-q", "-c"], input=data, stdout=subprocess.PIPE, check=True).stdout
    return data


ENDING = {"plain": "", "gzip": ".gz", "zstd": ".zst"}
AS = {"csv": as_csv, "criteo": as_criteo, "libsvm": as_libsvm, "slots": as_slots,
      "jsonl": lambda rows: "".join(json.dumps(listed(row)) + "\n" for row in rows).encode(),
      "tfrecord": lambda rows: b"".join(record(example(row)) for row in rows)}


class Files:
    """Of one case, in a folder: two files of rows to train on, one to measure with."""

    def __init__(self, folder, case):
        self.folder, self.case = folder, case

    def write(self, name, data):
        name += ENDING[self.case["packing"]]
        (self.folder / name).write_bytes(pack(data, self.case["packing"]))
        return name

    def source(self, name, rows):
        """The source of these rows, without its label."""
        kind = self.case["format"]
        if kind in AS:
            half = len(rows) // 2
            for part, some in enumerate((rows[:half], rows[half:])):
                self.write(f"{name}-{part}.{kind}", AS[kind](some))
            return {"format": kind, "file": f"{name}-*"}
        features_data, labels = [p for row in rows for p in pixels(row)], [row["kind"] for row in rows]
        if kind == "idx":
            return {"format": "idx", "features": self.write(f"{name}.images", idx(features_data, (len(rows), SIDE, SIDE))),
                    "labels": self.write(f"{name}.labels", idx(labels, (len(rows),)))}
        if kind == "records":
            size = SIDE * SIDE
            records = b"".join(bytes([label, *features_data[i * size:][:size]]) for i, label in enumerate(labels))
            return {"format": "records", "shape": [SIDE, SIDE, 1], "file": self.write(f"{name}.records", records),
                    **({} if self.case["packing"] == "plain" else {"rows": len(rows)})}
        return {"format": "raw", "shape": [SIDE, SIDE, 1], "dtype": "uint8", "label_dtype": "uint8",
                "file": self.write(f"{name}.rows", bytes(features_data)), "labels": self.write(f"{name}.labels", bytes(labels)),
                **({} if self.case["packing"] == "plain" else {"rows": len(rows)})}


def source(case, files, name, count, seed):
    kind = case["format"]
    if kind == "random":
        return {"format": "random", "rows": count, "shape": [SIDE, SIDE, 1], "classes": CLASSES, "seed": seed}
    if kind == "digits":
        return {"format": "digits", "rows": count, "split": name if name == "train" else "test"}
    if kind == "clicks":
        return {"format": "clicks", "rows": count, "buckets": 20, "seed": seed}
    told = files.source(name, make_rows(count, seed))
    if kind in features.CELLS:
        if case["loss"] in features.CLASS:
            told |= {"label": "kind"}
        elif case["loss"] in features.BINARY:
            told |= {"label": "click", "label_type": "number"}
        else:
            told |= {"label": "amount", "label_type": "number"}
    if kind == "libsvm":
        told |= {"features": 4}
    return told


# Columns and models

CELL = {  # of a column: where it is found in our rows, in made clicks, in Criteo's
    "hash": ("word", "c1", "C1"), "identity": ("number", "c2", "I1"), "vocabulary": ("word", None, None),
    "date": ("number", "c2", "I1"), "bucketized": ("x2", "n1", "I2"), "crossed": ("word", "c3", "C3"), "ids": ("ids", None, None),
    "weighted_ids": ("weighted", None, None)}


def cell(case, column):
    at = {"clicks": 1, "criteo": 2}.get(case["format"], 0)
    return CELL[column][at]


def id_column(case, column, name):
    told = {"column": column, "name": name, "source": cell(case, column)}
    dynamic = case["table"] != "static"
    if column == "hash":
        told |= {"buckets": None if dynamic else 16}
    elif column == "identity":
        told |= {"buckets": 64, "default": 0}
    elif column == "date":
        told |= {"part": "hour"}
    elif column == "vocabulary":
        told |= {"words": WORDS[:4], "oov_buckets": 2}
    elif column == "bucketized":
        told |= {"boundaries": [-1, 0, 1]}
    elif column == "crossed":
        del told["source"]
        told |= {"keys": [cell(case, "hash"), cell(case, "identity")], "buckets": 32}
    else:
        told |= {"column": "ids", "max": 4, "rows": None if dynamic else 20}
        told |= {"weights": True} if column == "weighted_ids" else {}
    return told


def numbers_of(case):
    return {"clicks": ["n1", "n2"], "criteo": ["I1", "I2"]}.get(case["format"], ["x0", "x1", "x2", "x3"])


SECOND = {True: "identity", False: "hash"}  # of the other ids: a table that grows takes any


def columns(case):
    told = [{"column": "numeric", "name": f"in{i}", "source": name} for i, name in enumerate(numbers_of(case))]
    if case["format"] == "criteo":
        told = [{**one, "default": 0, "min": 0, "log1p": True} for one in told]
    if case["weight"] == "column":
        told.append({"column": "numeric", "name": "weight"})
    if case["metric"] == "gauc":
        told.append({"column": "hash", "name": "of", "source": cell(case, "hash")})
    if case["model"] in features.TABLES:
        told.append(id_column(case, case["column"], "id0"))
        told.append(id_column(case, case["column"] if case["model"] == "shared" else SECOND[case["table"] == "static"], "id1"))
    return told


def initializer(case):
    return {"type": case["initializer"], **({"value": 0.1} if case["initializer"] == "constant" else {}),
            **({"stddev": 0.2} if case["initializer"] in ("random_normal", "truncated_normal") else {})}


def regularizer(case):
    return {} if case["regularizer"] == "none" else {case["regularizer"]: 0.01}


def dense(case, name, units, activation, **more):
    return {"op": "dense", "name": name, "units": units, "activation": activation, "kernel_initializer": initializer(case),
            "kernel_regularizer": regularizer(case), **more}


def tables(case):
    told = {}
    if case["table"] != "static":
        told = {"capacity": "dynamic"}
        told |= {"admit_after": 2} if case["table"] in ("admitted", "counted") else {}
        told |= {"admit_by": "occurrences"} if case["table"] == "counted" else {}
        told |= {"evict_after_steps": 4} if case["table"] == "evicted" else {}
    return told


def normal(case):
    return [{"op": "batch_normalization", "name": "normal", "momentum": 0.9}] if case["normal"] == "batch" else []


def penalty(case, more):
    """On rows of the batch; of a table that another node has, that says it."""
    return {"regularizer": regularizer(case)} if case["regularizer"] != "none" and "table" not in more else {}


def embedding(case, name, inputs, **more):
    return {"op": "embedding", "name": name, "inputs": inputs, "dimension": 4, "combiner": "mean", **penalty(case, more), **tables(case), **more}


def outputs(case):
    return CLASSES if case["loss"] in features.CLASS else 1


def last_units(case):
    return 10 if case["format"] == "digits" else outputs(case)


# From "hidden", 8 wide, through each op that moves or joins numbers: what it reads is above 0 where it must be
ALGEBRA = [
    {"op": "clip_by_norm", "name": "short", "norm": 2}, {"op": "l2_normalize", "name": "unit"},
    {"op": "split", "name": "front", "inputs": ["unit"], "parts": 2, "part": 0}, {"op": "split", "name": "back", "inputs": ["unit"], "parts": 2, "part": 1},
    {"op": "concat", "name": "swapped", "inputs": ["back", "front"]}, {"op": "reshape", "name": "pairs", "shape": [4, 2]},
    {"op": "transpose", "name": "turned", "perm": [2, 1]}, {"op": "tile", "name": "tiled", "multiples": [2, 1]},
    {"op": "pad", "name": "padded", "before": [0, 1], "after": [0, 0]}, {"op": "slice", "name": "part", "begin": [0, 1], "size": [-1, 4]},
    {"op": "matmul", "name": "gram", "inputs": ["part", "turned"], "transpose_b": True},
    {"op": "reduce", "name": "mean", "reduction": "mean", "axes": [1]},
    {"op": "reduce", "name": "top", "inputs": ["gram"], "reduction": "max", "axes": [1]},
    {"op": "subtract", "name": "less", "inputs": ["top", "mean"]}, {"op": "square"}, {"op": "scale", "name": "above", "factor": 0.5, "offset": 1},
    {"op": "sqrt", "name": "root"}, {"op": "log"}, {"op": "exp"}, {"op": "divide", "name": "over", "inputs": ["mean", "above"]},
    {"op": "maximum", "name": "larger", "inputs": ["over", "exp"]}, {"op": "minimum", "name": "smaller", "inputs": ["larger", "root"]},
    {"op": "clip", "min": -2, "max": 2}, {"op": "prelu"}, {"op": "abs", "inputs": ["less"]}, {"op": "softsign"}, {"op": "selu"},
    {"op": "log_softmax"}, {"op": "stack", "name": "rows", "inputs": ["prelu", "log_softmax", "selu"]}, {"op": "flatten", "name": "flat"}]


def model(case):
    act, units, kind = case["activation"], last_units(case), case["model"]
    inputs = [f"in{i}" for i in range(len(numbers_of(case)))] if case["format"] in features.NAMED else ["features"]
    joined = {"op": "concat", "name": "joined", "inputs": inputs} if len(inputs) > 1 else None
    body = []
    if kind == "dense":
        body = [joined or {"op": "flatten", "inputs": inputs}, dense(case, "hidden", 8, act), *normal(case), dense(case, "out", units, "linear")]
    elif kind == "chain":
        op = {"linear": "dropout", "gelu_tanh": "gelu"}.get(act, act)
        body = [joined or {"op": "flatten", "inputs": inputs}, dense(case, "hidden", 6, "linear"), {"op": op, "name": "after"},
                {"op": "softmax", "name": "soft"}, {"op": "add", "name": "sum", "inputs": ["soft", "after"]},
                {"op": "multiply", "name": "product", "inputs": ["sum", "after"]}, dense(case, "out", units, "linear")]
    elif kind == "algebra":
        deep = {"op": "mlp", "name": "deep", "units": [8, 8], "activation": "tanh", "kernel_initializer": initializer(case)}
        body = [joined or {"op": "flatten", "inputs": inputs}, deep, dense(case, "hidden", 8, act), *ALGEBRA, dense(case, "out", units, "linear")]
    elif kind == "image":
        side = 28 if case["format"] == "digits" else SIDE
        body = [{"op": "reshape", "inputs": inputs, "shape": [side, side, 1] if case["format"] != "libsvm" else [2, 2, 1]},
                {"op": "augment", "pad": 1, "flip": True, "brightness": 0.1, "contrast": [0.8, 1.2]},
                {"op": "augment", "area": [0.5, 1]}, {"op": "standardize"},
                {"op": "conv2d", "name": "conv", "filters": 2, "kernel_size": 2, "padding": "same", "activation": act,
                 "kernel_initializer": initializer(case), "kernel_regularizer": regularizer(case)},
                {"op": "batch_normalization", "name": "normal", "momentum": 0.9}, {"op": "lrn", "depth_radius": 1}, {"op": "dice"},
                {"op": "depthwise_conv2d", "kernel_size": 2, "padding": "same"},
                {"op": "separable_conv2d", "filters": 2, "kernel_size": 2, "padding": "same"},
                {"op": "conv2d_transpose", "filters": 2, "kernel_size": 2, "padding": "same"},
                {"op": "max_pool", "pool_size": 2, "strides": 1},
                {"op": "avg_pool", "name": "small", "pool_size": 2, "strides": 2, "padding": "same"},
                {"op": "flatten", "name": "flat"}, {"op": "global_avg_pool", "inputs": ["small"], "name": "mean"},
                {"op": "global_max_pool", "inputs": ["small"], "name": "most"},
                {"op": "concat", "inputs": ["flat", "mean", "most"]}, dense(case, "out", units, "linear")]
    elif kind == "linear":
        body = [{"op": "linear", "name": "wide", "inputs": ["id0", "id1"], "units": units, **tables(case)}]
    elif kind == "embedding":
        body = [embedding(case, "e0", ["id0"], initializer=initializer(case)), {"op": "concat", "name": "joined", "inputs": [*inputs, "e0"]},
                dense(case, "hidden", 8, act), *normal(case), dense(case, "out", units, "linear")]
    elif kind == "sampled":
        body = [embedding(case, "e0", ["id0"]), {"op": "concat", "name": "joined", "inputs": [*inputs, "e0"]}, dense(case, "hidden", 6, act),
                {"op": "negative_sampling", "rate": 0.5}, {"op": "sampled_logits", "name": "out", "classes": CLASSES, "sampled": 3, "sampler": "unigram", "unigrams": [4, 1, 2, 3],
                 "remove_accidental_hits": case["loss"] != "nce"}]
    elif kind == "two_towers":
        body = [embedding(case, "e0", ["id0"]), dense(case, "item", 4, act), embedding(case, "e1", ["id1"]),
                {"op": "concat", "name": "joined", "inputs": [*inputs, "e1"]}, dense(case, "query", 4, act),
                {"op": "in_batch_logits", "name": "out", "inputs": ["query", "item"], "ids": "id0", "block": 4}]
    elif kind == "shared":
        ones = [{"op": "indicator", "name": "ones", "inputs": ["id1"]}] if case["table"] == "static" else []
        body = [embedding(case, "e0", ["id0"]), {"op": "embedding", "name": "e1", "inputs": ["id1"], "dimension": 4, "combiner": "mean", "table": "e0"},
                *ones, {"op": "concat", "name": "joined", "inputs": [*inputs, "e0", "e1", *(one["name"] for one in ones)]}, dense(case, "hidden", 8, act),
                dense(case, "out", units, "linear")]
    elif kind == "interaction":
        body = [embedding(case, "e0", ["id0"]), embedding(case, "e1", ["id1"]),
                {"op": "factorization_machine", "name": "fm", "inputs": ["e0", "e1"]},
                {"op": "dot_interaction", "name": "dots", "inputs": ["e0", "e1"]},
                {"op": "concat", "name": "joined", "inputs": [*inputs, "fm", "dots"]}, dense(case, "hidden", 8, act),
                dense(case, "out", units, "linear")]
    elif kind == "sequence":
        body = [embedding(case, "steps", ["id0"], combiner="none"), {"op": "mask", "name": "there", "inputs": ["id0"]},
                {"op": "positional_embedding", "name": "placed", "inputs": ["steps"]}, {"op": "layer_normalization", "name": "even"},
                {"op": "conv1d", "name": "window", "filters": 4, "kernel_size": 2, "padding": "causal"},
                {"op": "multi_head_attention", "name": "self", "units": 4, "heads": 2, "mask": "there"},
                {"op": "attention", "name": "near", "inputs": ["even", "self", "steps"], "heads": 2, "causal": True, "mask": "there"},
                {"op": "lstm", "name": "read", "units": 3, "mask": "there"},
                {"op": "reduce", "name": "scores", "reduction": "sum", "axes": [-1]}, {"op": "softmax", "name": "weights", "mask": "there"},
                {"op": "gru", "name": "last", "inputs": ["read"], "units": 3, "attention": "weights", "mask": "there", "output": "last"},
                {"op": "reduce", "name": "mean", "inputs": ["steps"], "reduction": "mean", "axes": [1], "mask": "there"},
                embedding(case, "other", ["id1"]),
                {"op": "target_attention", "name": "taken", "inputs": ["other", "steps"], "units": [3], "mask": "there"},
                {"op": "compare", "name": "pairs", "inputs": ["other", "steps"]}, {"op": "cin", "name": "crossed", "units": [2]},
                {"op": "experts", "name": "many", "inputs": ["other"], "experts": 2, "units": [3]},
                {"op": "gate", "name": "some", "inputs": ["other", "many"], "experts": 2},
                {"op": "cross_mixture", "name": "mixed", "width": 3, "rank": 2, "experts": 2},
                {"op": "concat", "name": "joined", "inputs": [*inputs, "last", "mean", "other", "taken", "crossed", "mixed"]},
                dense(case, "hidden", 8, act), dense(case, "out", units, "linear")]
    else:
        body = [joined, {"op": "cross_layer", "name": "cross", "inputs": ["joined"], "kernel_initializer": initializer(case),
                         "kernel_regularizer": regularizer(case)}, dense(case, "hidden", 8, act), dense(case, "out", units, "linear")]
    return body + ([{"op": "sigmoid", "name": "p"}] if case["loss"] == "log_loss" else [])


# The rest of a spec

METRIC = {"pr": {"op": "auc", "curve": "PR"}, "ranking": {"op": "auc", "summation_method": "ranking"}, "in_top_k": {"op": "in_top_k", "k": 2},
          "gauc": {"op": "gauc", "by": "of"}}
SCHEDULE = {
    "constant": {}, "piecewise_constant": {"boundaries": [3, 7], "values": [0.1, 0.05, 0.02]},
    "exponential_decay": {"decay_steps": 5, "decay_rate": 0.9}, "natural_exp_decay": {"decay_steps": 5, "decay_rate": 0.1},
    "inverse_time_decay": {"decay_steps": 5, "decay_rate": 0.5}, "polynomial_decay": {"decay_steps": 10, "end_learning_rate": 0.01},
    "cosine_decay": {"decay_steps": 20}, "cosine_decay_restarts": {"first_decay_steps": 4}, "linear_cosine_decay": {"decay_steps": 20},
    "noisy_linear_cosine_decay": {"decay_steps": 20}, "cyclical": {"maximal_learning_rate": 0.1, "step_size": 3}}
CLIP = {"none": None, "value": {"type": "value", "min": -0.01, "max": 0.01}, "norm": {"type": "norm", "norm": 0.05},
        "global_norm": {"type": "global_norm", "norm": 0.05}}
PARTITIONER = {"none": {}, "balanced": {}, "fixed_size": {"num_shards": 2}, "variable_axis_size": {"max_shard_bytes": 64},
               "min_max_variable": {"max_partitions": 3, "min_slice_size": 16}}


EPOCHS_OF = {"decay_steps": "decay_epochs", "first_decay_steps": "first_decay_epochs", "step_size": "epoch_size",
             "boundaries": "boundary_epochs"}


def in_epochs(told, steps_per_epoch):
    """The same lengths of a schedule; their nearest steps are what they were."""
    def epochs(steps):
        return [epochs(one) for one in steps] if isinstance(steps, list) else steps / steps_per_epoch
    return {EPOCHS_OF.get(key, key): epochs(value) if key in EPOCHS_OF else value for key, value in told.items()}


def slowed(told):
    """The same schedule of a tenth of the rates."""
    def tenth(value):
        return [tenth(one) for one in value] if isinstance(value, list) else value / 10
    return {key: tenth(value) if key == "values" or key.endswith("learning_rate") else value for key, value in told.items()}


def optimizer(case):
    """Where the order of updates is nobody's, rates are so small that no order makes a loss infinite."""
    is_slow = case["mode"] == "async" and workers(case) > 1
    rate = 0.02
    if case["schedule"] != "number":
        lengths = SCHEDULE[case["schedule"]]
        rate = {"type": case["schedule"], **(in_epochs(lengths, steps(case)) if case["lengths"] == "epochs" else lengths)}
        if case["schedule"] != "piecewise_constant":
            rate["learning_rate"] = 0.02
    if is_slow:
        rate = slowed(rate) if isinstance(rate, dict) else rate / 10
    told = {"type": case["optimizer"], "learning_rate": rate, "clip": CLIP[case["clip"]]}
    return told | ({"momentum": 0.5} if case["optimizer"] in ("momentum", "lazy_momentum") else {})


def hook(case):
    kind = case["hook"]
    more = {"step_counter": {"every_n_steps": 2}, "summary_saver": {"save_steps": 2, "gradients": True, "parameters": True},
            "checkpoint_saver": {"save_steps": 3}, "evaluation": {"every_n_steps": 3}, "nan": {},
            "logging": {"every_n_iter": 2, "at_end": True}, "early_stopping": {"max_steps_without_decrease": 1000},
            "final_evaluation": {"path": "final.json"}, "global_step_waiter": {"wait_until_step": 0}, "time_limit": {"secs": 100000},
            "command": {"at": ["start", "checkpoint", "end"], "command": "true"}, "profiler": {"save_steps": 3, "output_dir": "profile"}}
    return [] if kind == "none" else [{"type": kind, **more[kind]}]


def workers(case):
    return 1 if case["cluster"] == "single" else int(case["cluster"].split("x")[1])


def steps(case):
    """Of the run: of one epoch where that ends it."""
    gradients = workers(case) * (2 if case["replicas"] == "twice" else 1) if case["mode"] == "sync" else 1
    return ROWS // (BATCH * case["accumulate"]) // gradients


AVERAGE = {"none": {}, "fixed": {"average_decay": 0.9, "average_num_updates": False}, "growing": {"average_decay": 0.99}}
DECAY = {"all": {"rate": 0.05}, "spares": {"rate": 0.05, "except": ["*bias*"]}}


def train(case):
    told = {"mode": case["mode"], "log_every_steps": 4, "checkpoint_dir": "run", "wire": case["wire"],
            "wire_values": case["wire_values"], "replication": case["replication"], "hooks": hook(case),
            "replicas_to_aggregate": workers(case) * 2 if case["replicas"] == "twice" else 0,
            "save_checkpoint_steps": 4 if case["saving"] == "steps" else 0, "save_checkpoint_secs": 0, "save_summaries_steps": 0}
    if not case["follow"]:  # which ends when all that is there was used
        told |= {"epochs": EPOCHS} if case["end"] == "epochs" else {case["end"]: steps(case)}
    names = {"linear": "*id0*", "sequence": "steps/*"}.get(case["model"], "e0/*")
    told |= {"freeze": {"none": [], "dense": ["*bias*"], "table": [names]}[case["frozen"]]}
    told |= {"weight_decay": DECAY[case["decay"]]} if case["decay"] != "none" else {}
    told |= AVERAGE[case["average"]]
    told |= {"max_staleness": 2} if case["staleness"] == "bounded" else {}
    told |= {"publish": {"every_secs": 0.1}} if case["publish"] else {}
    told |= {"daily": True} if case["daily"] else {}
    told |= {"kept": {"keep_best": 2}, "restored": {"restore_best": True}}.get(case["best"], {})
    told |= {"accumulate": 2} if case["accumulate"] == 2 else {}
    told |= {"towers": 2} if case["towers"] == 2 else {}
    told |= {"evaluate_every_steps": 4} if case["evaluation"] == "during" else {}
    return told


def placement(case):
    kind = case["partitioner"]
    told = {"strategy": "greedy" if case["placement"] == "greedy" else "round_robin"}
    told |= {"pins": [{"match": "*bias", "ps": 0}]} if case["placement"] == "pinned" else {}
    told |= {"partition_strategy": "mod", "partitioner": {"type": "fixed_size", "num_shards": 3}} if kind == "mod" else {}
    told |= {"partitioner": {"type": kind, **PARTITIONER[kind]}} if kind in PARTITIONER else {}
    return told


def spec(case, folder):
    files = Files(folder, case)
    learnt = source(case, files, "train", ROWS, 1)
    if case["format"] not in features.MADE:
        learnt |= {"stream": case["stream"]}
    if case["follow"]:
        learnt |= {"follow": True, "settle_secs": 0}
        (folder / "_SUCCESS").write_bytes(b"")
    measured = source(case, files, "eval", EVAL_ROWS, 2) if case["evaluation"] != "none" else None
    metric = METRIC.get(case["metric"], case["metric"])
    loss = {"op": case["loss"], **({"pos_weight": 2} if case["loss"] == "weighted_cross_entropy" else {}),
            **({"reduction": "sum"} if case["reduction"] == "sum" else {})}
    data = {"train": learnt, "eval": measured, "batch_size": BATCH, "shuffle": case["shuffle"], "prefetch": case["prefetch"]}
    if case["format"] in features.NAMED:
        data |= {"columns": columns(case), "weight": "weight" if case["weight"] == "column" else None}
    elif case["format"] in ("idx", "raw", "records", "digits"):
        data |= {"scale": 1 / 255}
    return {"data": data, "model": model(case), **objectives(case, loss, metric), "optimizer": optimizer(case),
            "placement": placement(case), "train": train(case), "precision": case["precision"]}


def objectives(case, loss, metric):
    """Of two heads the second one counts half, and measures what the first one does not."""
    if case["heads"] == "one":
        return {"loss": loss, "metrics": [metric]}
    return {"heads": [{"name": "first", "loss": loss, "metrics": [metric]}, {"name": "second", "loss": loss, "weight": 0.5}]}


def flags(case):
    """Of the cluster, without which it is one process."""
    if case["cluster"] == "single":
        return []
    ps, count = case["cluster"].split("x")
    return [f"--local_ps={ps}", f"--local_workers={count}", f"--transport={case['transport']}", f"--parts={case['parts']}"]
