"""A small model with known values, its data, and what it must say: all in Python's own arithmetic."""
import json
import math

import made
import tool
from made import FLOAT, INT64

KERNEL = [[0.5, -1.0, 0.25], [2.0, 0.125, -0.5]]  # [features, classes]
BIAS = [0.0, 0.5, -0.25]
ROWS = [[0.0, 0.0], [1.0, 2.0], [-1.0, 0.5], [3.0, -2.0], [0.25, 0.75]]
LABELS = [1, 0, 1, 2, 1]  # four of which the model gets right
STEP = 7


def logits(row):
    return [sum(x * KERNEL[i][k] for i, x in enumerate(row)) + BIAS[k] for k in range(len(BIAS))]


def softmax(row):
    powers = [math.exp(x) for x in logits(row)]
    return [power / sum(powers) for power in powers]


def spec(**changes):
    """A softmax regression on table.csv; data_eval=... changes data.eval."""
    made_spec = {
        "name": "small",
        "data": {"train": {"format": "csv", "file": "absent.csv", "label": "y"},
                 "eval": {"format": "csv", "file": "table.csv", "label": "y"}, "batch_size": 2},
        "model": [{"op": "dense", "name": "out", "units": 3}],
        "loss": {"op": "softmax_cross_entropy"},
        "metrics": ["accuracy"],
        "optimizer": {"type": "momentum", "learning_rate": 0.1, "momentum": 0.9},
        "train": {"last_step": 10},
    }
    for path, value in changes.items():
        *folders, key = path.split("_", 1)
        at = made_spec[folders[0]] if folders else made_spec
        at[key] = value
    return made_spec


class ModelCase(tool.ToolCase):
    """spec.json, table.csv and the checkpoint run/model.ckpt-7 in the test's folder."""

    def setUp(self):
        super().setUp()
        self.write_spec(spec())
        self.write_table("table.csv", ROWS, LABELS)
        self.write_values({})

    def write_spec(self, content, name="spec.json"):
        (self.folder / name).write_text(json.dumps(content))

    def write_table(self, name, rows, labels=None):
        lines = ["a,y,b" if labels else "a,b"]
        for i, (a, b) in enumerate(rows):
            lines.append(f"{a},{labels[i]},{b}" if labels else f"{a},{b}")
        (self.folder / name).write_text("\n".join(lines) + "\n")

    def write_values(self, changes):
        """The variables, the slots of the optimizer, and changes (None: left out)."""
        tensors = {"out/kernel": (FLOAT, [2, 3], sum(KERNEL, [])), "out/bias": (FLOAT, [3], BIAS),
                   "out/kernel/Momentum": (FLOAT, [2, 3], [0.0] * 6),
                   "out/bias/Momentum": (FLOAT, [3], [0.0] * 3), "global_step": (INT64, [], [STEP])}
        tensors.update(changes)
        (self.folder / "run").mkdir(exist_ok=True)
        made.write_bundle(self.folder / "run" / f"model.ckpt-{STEP}",
                          {name: value for name, value in tensors.items() if value})
        made.write_state(self.folder / "run", f"model.ckpt-{STEP}")
