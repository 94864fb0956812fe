"""gpu_workloads.py - what is measured on a GPU, and the goals."""
import json
import os
from dataclasses import dataclass

FOLDER = os.path.dirname(os.path.abspath(__file__))
EXAMPLES = os.path.join(os.path.dirname(os.path.dirname(FOLDER)), "examples")

BUSY_GOAL = 0.9  # of the time, where a step is large
LOSS_GOAL = 0.01  # how far less precision may be from float32, of its loss
PRECISIONS = ("float32", "tf32", "bf16")


@dataclass(frozen=True)
class Workload:
    name: str
    file: str  # a spec of this folder
    changes: tuple = ()  # of the spec: (key, value), keys as --set has them
    is_large: bool = False  # enough work in a step that the GPU has no reason to wait

    def spec(self, **more):
        """The spec as it is measured: `more` are keys of its top."""
        with open(os.path.join(FOLDER, "specs", self.file), encoding="utf-8") as file:
            spec = {**json.load(file), **more}
        for key, value in self.changes:
            *path, last = key.split(".")
            place = spec
            for name in path:
                place = place[name]
            place[last] = value
        return spec

    def batch(self):
        return self.spec()["data"]["batch_size"]


LARGE_BATCH = (("data.batch_size", 1024), ("data.train.rows", 8192))
WORKLOADS = (
    Workload("softmax", "softmax.json"),
    Workload("mlp_sgd", "mlp_sgd.json"),
    Workload("mlp_adam", "mlp_adam.json"),
    Workload("cnn", "cnn.json"),
    Workload("cnn1024", "cnn.json", LARGE_BATCH, is_large=True),
    Workload("cnn12", "cnn12.json", is_large=True),
)
CLUSTER_WORKLOADS = ("mlp_adam", "cnn")
BITS_WORKLOADS = ("mlp_adam", "cnn", "cnn12")


@dataclass(frozen=True)
class Example:
    name: str  # of a spec of examples/
    data: str = ""  # a folder of data; "": it needs none


EXAMPLE_RUNS = (Example("digits"), Example("mnist_softmax", "mnist"), Example("mnist_mlp", "mnist"),
                Example("mnist_cnn", "mnist"), Example("fashion_cnn", "fashion-mnist"))
