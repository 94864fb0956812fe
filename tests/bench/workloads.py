"""workloads.py - what is measured, and what is expected of it.

A workload is a spec of the folder `specs`. Figures of TensorFlow are those of its own parameter servers
(version 2.21, 2 ps + 2 workers, all on a machine with 2 cores): they stand in where TensorFlow is
not measured in the same run.
"""
from dataclasses import dataclass, field, replace

MODES = ("async", "sync")
TRANSPORTS = ("shm", "tcp")
PS = 2
WORKERS = 2

# A ps may hold its values, its slots and this much: libraries, code, buffers.
PS_MARGIN_BYTES = 16 << 20
FIRST_STEP_GOAL_S = 0.1


@dataclass(frozen=True, eq=False)
class Workload:
    name: str
    batch: int  # examples of one worker's step
    slots: int  # of the optimizer: floats per value beside the value
    tensorflow: dict  # mode: examples/s
    goals: dict  # (transport, mode): times TensorFlow
    log_every_steps: dict  # mode: global steps that take about 0.1 s
    tensorflow_options: tuple  # of the peer script
    bare_names: dict  # transport: as the bare server calls it, where it has such a workload
    settings: dict = field(default_factory=dict)  # of the spec: key: value
    spec: str = ""  # where it is not called as the workload is
    bounds: "Bounds | None" = None
    first_steps: int = 0  # that are not measured, beside the warm-up: those in which rows are made

    def spec_name(self):
        return (self.spec or self.name) + ".json"

    def examples_per_step(self, mode):
        """A global step of a synchronous run is a batch of every worker."""
        return self.batch * (WORKERS if mode == "sync" else 1)


@dataclass(frozen=True)
class Bounds:
    """What else is expected where arithmetic takes most of the time, over mapped memory; over TCP
    so much less.

    What TensorFlow's goal asks for need not be more than `part` of the arithmetic alone, which is
    the spec `arithmetic` in as many lone processes as there are workers, without tables and ps.
    """
    arithmetic: str
    part: float
    torch_times: float  # of PyTorch's best, which its peer script is told by
    torch_options: tuple
    over_tcp: float

    def on(self, transport):
        return self.over_tcp if transport == "tcp" else 1


def goals(tcp, shm):
    """Each pair is (async, sync)."""
    table = {"tcp": tcp, "shm": shm}
    return {(t, m): table[t][i] for t in TRANSPORTS for i, m in enumerate(MODES)}


# 26 ids, a table of a million rows of 16 numbers, 416-256-128-1, as the peers have it. A first layer of one input stands in for the
# rows in the arithmetic, so that gradients go as far back.
CLICKS = Bounds("clicks_mlp", 0.7, 3.5, ("-w", "ctr"), 0.75)
CLICKS_ZIPF = replace(CLICKS, torch_options=(*CLICKS.torch_options, "--zipf", "1.05"))
CLICKS_TENSORFLOW = {"async": 70400, "sync": 59700}

WORKLOADS = (
    Workload("softmax", 100, 0, {"async": 73500, "sync": 38500}, goals((20, 40), (45, 90)),
             {"async": 4000, "sync": 2000}, ("-w", "softmax"),
             {"shm": "softmax", "tcp": "softmax"}),
    Workload("mlp_sgd", 100, 0, {"async": 29000, "sync": 15500}, goals((1.7, 3), (3, 5.5)),
             {"async": 100, "sync": 50}, ("-w", "mlp"),
             {"shm": "mlp-sgd", "tcp": "mlp-sgd"}),
    Workload("mlp_adam", 100, 2, {"async": 24800, "sync": 17000}, goals((1.6, 2.4), (3, 4.4)),
             {"async": 100, "sync": 50}, ("-w", "mlp", "-o", "adam"),
             {"shm": "mlp-adam"}),
    Workload("cnn", 50, 2, {"async": 3360, "sync": 1730}, goals((1.2, 2.2), (1.4, 2.7)),
             {"async": 8, "sync": 4}, ("-w", "cnn"), {}),
    Workload("clicks", 1024, 1, CLICKS_TENSORFLOW, goals((3, 3), (4, 4)),
             {"async": 8, "sync": 4}, ("-w", "ctr"), {}, bounds=CLICKS,
             first_steps=130),
    Workload("clicks_zipf", 1024, 1, CLICKS_TENSORFLOW, goals((3, 3), (4, 4)),
             {"async": 8, "sync": 4}, ("-w", "ctr"), {}, {"data.train.skew": 1.05}, "clicks",
             CLICKS_ZIPF, 130),
)
# Launch to the end of the first step, seconds, and resident MiB of a ps: of the MLP with SGD.
TENSORFLOW_FIRST_STEP_S = {"async": 3.7, "sync": 4.9}
TENSORFLOW_PS_MIB = 590
