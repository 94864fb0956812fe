#!/usr/bin/env python3
"""gpu.py - whole runs of dtrain on this machine's GPU: how fast, how exact, how repeatable.

    tests/gpu.sh                                     runs all of it, and all tests
    tests/bench/gpu.py --parts steps --only cnn12    one part of one workload
    tests/bench/gpu.py --json figures.json           every figure in a file

steps      time of a training step in one process, and the share of that time in which the GPU was
           busy, as the driver has it; beside PyTorch on the same GPU where --torch-python has it,
           its fastest way (graph, compiler, calls).
precision  losses of the examples in tf32 and bf16 against float32: the mean of all losses on the
           way and the one on the evaluation data at the end, each the mean of several seeds. Beside
           them is how far float32 on the CPU is from float32 on the GPU, which is what rounding in
           another order does: where that alone misses the goal nothing is said of the goal.
cluster    examples/s of 2 ps + 2 workers on one GPU, over shared memory and TCP, against one process
           on it, and what the chief's steps were made of.
bits       whether the same spec and seed end with the same bits twice.

Data are random and in memory. Nothing else should run on the GPU or on this machine. The exit code
is 0 when everything was measured, whether or not a goal was met.
"""
import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass

sys.dont_write_bytecode = True  # the folder is part of the source

import gpu_busy
import gpu_measure
import gpu_table
import gpu_torch
import measure
from gpu_workloads import (BITS_WORKLOADS, BUSY_GOAL, CLUSTER_WORKLOADS, EXAMPLES, EXAMPLE_RUNS,
                           LOSS_GOAL, PRECISIONS, WORKLOADS)
from run import machine, positive, version, words
from workloads import MODES, TRANSPORTS, WORKERS

PARTS = ("steps", "precision", "cluster", "bits")
BITS_STEPS = 100
ROOT = os.path.dirname(EXAMPLES)


@dataclass(frozen=True)
class Timing:
    windows: int
    window_s: float
    warmup_s: float


class Bench(measure.Attempts):
    """One run: what was asked for, and what was found so far."""

    TROUBLES = (*measure.Attempts.TROUBLES, subprocess.SubprocessError)

    def __init__(self, options):
        self.options = options
        self.timing = Timing(options.windows, options.seconds, options.seconds)
        self.watch = gpu_busy.Watch(gpu_busy.visible_gpu())
        self.torch = None
        self.found = {"machine": machine(), "dtrain": version(options.dtrain), "figures": [],
                      "failures": []}

    def keep(self, group, name, measured, **more):
        figure = {"group": group, "name": name, "measured": measured, "against": "",
                  "goal_text": "", "is_met": None, **more}
        self.found["figures"].append(figure)
        print(gpu_table.line(figure), flush=True)
        self.write()

    def write(self):
        """What was found so far: a run that is ended half way has measured something."""
        if not self.options.json:
            return
        with open(self.options.json + ".new", "w", encoding="utf-8") as file:
            json.dump(self.found, file, indent=1)
            file.write("\n")
        os.replace(self.options.json + ".new", self.options.json)

    def chosen(self, names):
        return [workload for workload in WORKLOADS
                if workload.name in names and workload.name in self.options.only]

    def words_of(self, folder, workload, precision):
        """What follows dtrain's name for this workload in one process."""
        path = gpu_measure.write_spec(folder, workload.spec(precision=precision))
        return [f"--device={self.options.device}", path]

    # ---- steps ----

    def peer(self, folder, workload, precision):
        """PyTorch's fastest way and its steps per second; None: there is none."""
        if self.torch.reason:
            return None
        ways, troubles = self.torch.rates(os.path.join(folder, "spec.json"), folder, precision,
                                          self.timing)
        for way, trouble in troubles.items():
            print(f"PyTorch, {workload.name} {precision}, {way}: {trouble}".split("\n")[0],
                  flush=True)
        rates = {way: statistics.median(found) for way, found in ways.items()}
        best = max(rates, key=rates.get)
        return best, rates[best]

    def step(self, workload, precision):
        with tempfile.TemporaryDirectory(prefix="dtrain-gpu-") as folder:
            command = self.words_of(folder, workload, precision)
            rates = gpu_measure.step_rates(self.options.dtrain, command, self.timing, self.watch)
            rate = statistics.median(rates)
            busy, how = self.watch.busy()
            peer = self.attempt(self.peer, folder, workload, precision)
        name = f"{workload.name} {precision}"
        against = f"PyTorch: {self.torch.reason or 'failed'}"
        if peer:
            against = f"{rate / peer[1]:.2f} of PyTorch {self.torch.version} ({peer[0]})"
        self.keep("step", name, f"{1e3 / rate:.3f} ms, {rate * workload.batch():,.0f} examples/s",
                  steps_per_second=rates, step_ms=1e3 / rate, against=against,
                  ratio=rate / peer[1] if peer else None)
        if busy is None:
            self.keep("busy", name, "unknown", against=how)
        else:
            self.busy(name, busy, how, workload.is_large)

    def busy(self, name, busy, how, is_judged):
        self.keep("busy", name, f"{busy:.0%} of the time", share=busy, against=how,
                  goal_text=f"at least {BUSY_GOAL:.0%}" if is_judged else "",
                  is_met=busy >= BUSY_GOAL if is_judged else None)

    def steps(self):
        device = "cpu" if self.options.device == "cpu" else "cuda"
        self.torch = gpu_measure.Torch(self.options.torch_python, device, self.options.torch_ways)
        for workload in self.chosen(self.options.only):
            for precision in self.options.precisions:
                self.attempt(self.step, workload, precision)

    # ---- precision ----

    def mean_losses(self, example, device, precision):
        """Means over the seeds."""
        command = [f"--device={device}", "--set", f"precision={precision}",
                   "--set", "train.log_every_steps=10"]
        if example.data:
            command.append(f"--data_dir={self.options.data}/{example.data}")
        spec = os.path.join(EXAMPLES, example.name + ".json")
        settings = gpu_measure.sets(self.options.set)
        found = [gpu_measure.losses(self.options.dtrain,
                                    [*command, f"--seed={seed}", *settings, spec])
                 for seed in range(1, self.options.seeds + 1)]
        return {name: statistics.fmean(one[name] for one in found) for name in found[0]}

    def compare_losses(self, example):
        plain = self.mean_losses(example, self.options.device, "float32")
        rounding = self.mean_losses(example, "cpu", "float32")
        for precision in PRECISIONS[1:]:
            found = self.mean_losses(example, self.options.device, precision)
            for name, title in (("curve", "mean of the curve"), ("final", "at the end")):
                off = found[name] / plain[name] - 1
                noise = rounding[name] / plain[name] - 1
                can_tell = abs(noise) <= LOSS_GOAL
                self.keep("precision", f"{example.name} {precision}, {title}",
                          f"{found[name]:.4f}, {off:+.2%} of float32",
                          against=f"float32 on the CPU: {noise:+.2%}", off=off, rounding=noise,
                          goal_text=f"within {LOSS_GOAL:.0%}" if can_tell else "",
                          is_met=abs(off) <= LOSS_GOAL if can_tell else None)

    def precision(self):
        for example in EXAMPLE_RUNS:
            if example.name not in self.options.examples:
                continue
            folder = os.path.join(self.options.data, example.data)
            if example.data and not os.path.isdir(folder):
                print(f"{example.name}: not measured: {folder} is not there", flush=True)
                continue
            self.attempt(self.compare_losses, example)

    # ---- cluster ----

    def against_cluster(self, workload):
        with tempfile.TemporaryDirectory(prefix="dtrain-gpu-") as folder:
            command = self.words_of(folder, workload, "float32")
            alone = workload.batch() * statistics.median(gpu_measure.step_rates(
                self.options.dtrain, command, self.timing, self.watch))
            self.keep("cluster", f"{workload.name}, one process", f"{alone:,.0f} examples/s",
                      against=gpu_measure.time_shares(self.options.dtrain, command, folder),
                      examples_per_second=alone)
            for mode in MODES:
                for transport in TRANSPORTS:
                    self.cluster_of(workload, (mode, transport), command, alone, folder)

    def cluster_of(self, workload, kind, command, alone, folder):
        mode, transport = kind
        whole = [*gpu_measure.cluster_words(mode), f"--transport={transport}", *command]
        rates = gpu_measure.step_rates(self.options.dtrain, whole, self.timing, self.watch)
        per_step = workload.batch() * (WORKERS if mode == "sync" else 1)
        rate = statistics.median(rates) * per_step
        self.keep("cluster", f"{workload.name}, 2 ps + 2 workers, {mode}, {transport}",
                  f"{rate:,.0f} examples/s, {rate / alone:.2f} of one",
                  against=gpu_measure.time_shares(self.options.dtrain, whole, folder),
                  examples_per_second=rate, ratio=rate / alone)

    def cluster(self):
        for workload in self.chosen(CLUSTER_WORKLOADS):
            self.attempt(self.against_cluster, workload)

    # ---- bits ----

    def twice(self, workload, precision, more):
        with tempfile.TemporaryDirectory(prefix="dtrain-gpu-") as folder:
            command = more + self.words_of(folder, workload, precision)
            is_same, said = gpu_measure.same_bits(self.options.dtrain, command, folder, BITS_STEPS)
        name = f"{workload.name} {precision}, {'2 ps + 2 workers' if more else 'one process'}"
        self.keep("bits", name, "the same" if is_same else "different", against=said,
                  goal_text="the same", is_met=is_same)

    def bits(self):
        for workload in self.chosen(BITS_WORKLOADS):
            for precision in PRECISIONS:
                self.attempt(self.twice, workload, precision, [])
            self.attempt(self.twice, workload, "float32", gpu_measure.cluster_words("sync"))

    def run(self):
        for part in self.options.parts:
            getattr(self, part)()


def read_options(arguments):
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    names = tuple(workload.name for workload in WORKLOADS)
    examples = tuple(example.name for example in EXAMPLE_RUNS)
    add = parser.add_argument
    add("--dtrain", default=os.path.join(ROOT, "build-gpu", "cmd", "dtrain"), help="the program")
    add("--device", choices=("gpu:0", "cpu"), default="gpu:0",
        help="CUDA_VISIBLE_DEVICES says which GPU is the first; cpu only shows that all runs")
    add("--parts", type=words(PARTS), default=PARTS, metavar=",".join(PARTS))
    add("--only", type=words(names), default=names, metavar=",".join(names))
    add("--precisions", type=words(PRECISIONS), default=PRECISIONS, metavar=",".join(PRECISIONS),
        help="of steps")
    add("--examples", type=words(examples), default=examples, metavar=",".join(examples))
    add("--data", default=os.environ.get("DTRAIN_DATA", os.path.join(ROOT, "data")),
        help="folder of the folders mnist and fashion-mnist")
    add("--set", action="append", default=[], metavar="KEY=VALUE", help="changes examples")
    add("--seeds", type=positive(int), default=5, help="of each loss")
    add("--windows", type=positive(int), default=5, help="of each figure")
    add("--seconds", type=positive(float), default=1.0, help="of a window and of the warm-up")
    add("--torch-python", default=gpu_measure.default_python(), help="a Python that has PyTorch")
    add("--torch-ways", type=words(gpu_torch.WAYS), default=gpu_torch.WAYS,
        metavar=",".join(gpu_torch.WAYS), help="its compiler takes longest")
    add("--json", metavar="FILE", help="all figures, as one object")
    return parser.parse_args(arguments)


def end(*_):
    """What runs is in a session of its own: it is ended where its `with` block is left."""
    sys.exit(128 + signal.SIGTERM)


def main(arguments):
    options = read_options(arguments)
    signal.signal(signal.SIGTERM, end)
    os.environ.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")  # the driver counts GPUs so
    try:
        bench = Bench(options)
    except (OSError, subprocess.SubprocessError) as trouble:
        print(f"{options.dtrain}: {trouble} (build first, or name it with --dtrain)",
              file=sys.stderr)
        return 2
    bench.run()
    bench.write()
    return 1 if bench.found["failures"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
