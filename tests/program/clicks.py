"""A model of clicks: tables of which a batch names few rows, beside dense variables."""

LEARNT = 0.58  # area under the curve of the rows that it saw; a guess has 0.5


def hashed(cell):
    return {"column": "hash", "name": cell, "source": cell, "buckets": 40}


def embedding(cell):
    return {"op": "embedding", "name": f"deep/{cell}", "inputs": [cell], "dimension": 5}


CELLS = ("c1", "c2", "c3", "c4")
CLICKS = {  # of program.cluster.SPEC
    "data": {
        "train": {"format": "clicks", "rows": 4000, "buckets": 20, "strength": 4},
        "eval": {"format": "clicks", "rows": 4000, "buckets": 20, "strength": 4},
        "batch_size": 48,
        "columns": [hashed(cell) for cell in CELLS],
    },
    "model": [
        *map(embedding, CELLS),
        {"op": "linear", "name": "wide", "inputs": list(CELLS)},
        {"op": "concat", "name": "deep/input", "inputs": [f"deep/{cell}" for cell in CELLS]},
        {"op": "dense", "name": "deep/hidden", "units": 8, "activation": "relu"},
        {"op": "dense", "name": "deep/logits", "units": 1},
        {"op": "add", "name": "logit", "inputs": ["wide", "deep/logits"]},
    ],
    "loss": "sigmoid_cross_entropy",
    "metrics": ["auc"],
    "optimizer": {"type": "adagrad", "learning_rate": 0.1},
}
# Two columns in one table of five wide, one of them read for tables of its own, too
SHARED_TABLE = {"model": [{**node, "table": "deep/c1"} if node["name"] == "deep/c3" else node
                          for node in CLICKS["model"]]}
GROWING = {  # the same with tables that grow: rows that come late, and rows that go
    "data": {**CLICKS["data"], "columns": [
        {"column": "hash", "name": "c1"}, {"column": "identity", "name": "c2"},
        {"column": "hash", "name": "c3"}, {"column": "ids", "name": "c4", "max": 2},
        {"column": "crossed", "name": "c1_x_c2", "keys": ["c1", "c2"]}]},
    "model": [
        {**embedding("c1"), "capacity": "dynamic"},
        {**embedding("c2"), "capacity": "dynamic", "admit_after": 3},
        {**embedding("c3"), "capacity": "dynamic", "admit_after": 2, "evict_after_steps": 7},
        {**embedding("c4"), "capacity": "dynamic", "evict_after_steps": 150},
        {"op": "linear", "name": "wide", "inputs": [*CELLS, "c1_x_c2"], "capacity": "dynamic",
         "admit_after": 2, "evict_after_steps": 9},
        *CLICKS["model"][5:],
    ],
}
TABLES_ONLY = {"model": [{"op": "embedding", "name": "logit", "inputs": ["c1"], "dimension": 1}]}
