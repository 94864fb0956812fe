#!/usr/bin/env python3
"""run.py - how fast dtrain is here: 2 ps + 2 workers, beside TensorFlow and bare servers.

    meson setup build && ninja -C build
    tests/bench/run.py                            everything of dtrain's own, about three minutes
    tests/bench/run.py --quick --only softmax     a first look: windows of 0.3 s
    tests/bench/run.py --json figures.json        the same, and every figure in a file

Measured are examples/s of all workers (the median of windows, after a warm-up, from the steps and
times that the chief writes), the time from launch to the end of the first step (the median of
several runs), and the memory of a parameter server. Data are random and in memory; all tasks share
the cores of this machine, so nothing else should run on it.

Peers, each measured in the same run where it is given:

--tensorflow-python PYTHON --tensorflow-bench SCRIPT
    TensorFlow's own parameter servers. An environment that can be thrown away afterwards:
        python3 -m venv /tmp/tf && /tmp/tf/bin/pip install tensorflow-cpu
        tests/bench/run.py --tensorflow-python /tmp/tf/bin/python --tensorflow-bench SCRIPT
    SCRIPT is called with -w softmax|mlp|cnn [-o adam] -b BATCH --ps 2 --workers 2 --windows N
    --secs S [--sync] --json FILE and appends a line to FILE: {"wins": [examples/s, ...],
    "t_first": seconds from launch to first step, "ps_mib": memory of a ps, "tf": version}.
    Where it is not given, the reference figures in workloads.py stand in, and the lines say so.

--torch-python PYTHON --torch-bench SCRIPT
    PyTorch, for the click models: one process of two threads, and two processes; the better counts. SCRIPT
    is called with -w ctr [--zipf SKEW] -b BATCH -t 2|-p 2 --runs 1 --windows N --secs S --json FILE and
    appends a line to FILE: {"runs": [[{"steps_per_s": [...]}, ...]]}.

--minishm PROGRAM, --minips PROGRAM
    The least that a parameter server can be, over mapped memory and over TCP: bounds, not
    products. Called as PROGRAM WORKLOAD 2 2 MODE SPIN_US SECONDS, and PROGRAM WORKLOAD 2 MODE
    SPIN_US SECONDS CONGESTION_CONTROL (with one server); they print "ex/s N".

The exit code is 0 when everything was measured, whether or not a goal was met.
"""
import argparse
import itertools
import os
import platform
import statistics
import subprocess
import sys
from dataclasses import asdict, dataclass

sys.dont_write_bytecode = True  # the folder is part of the source

import environment
import lines
import measure
import peers
from workloads import (FIRST_STEP_GOAL_S, MODES, PS, PS_MARGIN_BYTES, TENSORFLOW_FIRST_STEP_S,
                       TENSORFLOW_PS_MIB, TRANSPORTS, WORKERS, WORKLOADS)

PARTS = ("throughput", "start", "memory")
MEMORY_WORKLOADS = ("mlp_sgd", "mlp_adam")


@dataclass(frozen=True)
class Timing:
    windows: int
    window_s: float
    warmup_s: float
    starts: int


class Bench(measure.Attempts):
    """One run of the harness: what was asked for, and what was found so far."""

    def __init__(self, options):
        self.options = options
        window_s = options.seconds or (0.3 if options.quick else 1.0)
        self.timing = Timing(options.windows, window_s, window_s, options.starts)
        self.measured = {}
        self.found = {"machine": machine(), "dtrain": version(options.dtrain),
                      "timing": asdict(self.timing), "throughput": [], "start": [], "memory": [],
                      "peers": [], "failures": []}

    def keep(self, part, record):
        self.found[part].append(record)
        print(getattr(lines, part)(record), flush=True)

    def tensorflow(self, workload, mode):
        """TensorFlow's figures of this run, or None."""
        python, script = self.options.tensorflow_python, self.options.tensorflow_bench
        if not script:
            return None
        found = self.attempt(peers.tensorflow, python, script, workload, mode, self.timing)
        if found:
            self.keep("peers", {"workload": workload.name, "mode": mode, **found})
        return found

    def bare(self, workload, mode, transport):
        """Examples/s of the bare server for this transport, or None."""
        program = self.options.minishm if transport == "shm" else self.options.minips
        if not program or transport not in workload.bare_names:
            return None
        rates = self.attempt(peers.bare, program, transport, workload, mode, self.timing)
        return statistics.median(rates) if rates else None

    def throughput(self, case, tensorflow):
        rates = self.attempt(measure.throughput, self.options.dtrain, case, self.timing)
        if not rates:
            return
        rate, goal = statistics.median(rates), case.workload.goals[case.transport, case.mode]
        peer = tensorflow["median"] if tensorflow else case.workload.tensorflow[case.mode]
        bare = self.bare(case.workload, case.mode, case.transport)
        bounds = self.bounds(case)
        self.keep("throughput", {
            **case.names(), "examples_per_second": rates, "median": rate, "tensorflow": peer,
            "origin": origin(tensorflow), "ratio": rate / peer, "goal": goal, **bounds,
            "is_met": rate >= least(goal * peer, **bounds), "bare": bare})

    def once(self, what, workload, body, *arguments):
        """What body gives for a workload: measured the first time that it is asked for."""
        if (what, workload) not in self.measured:
            self.measured[what, workload] = self.attempt(body, *arguments)
        return self.measured[what, workload]

    def bounds(self, case):
        """Examples/s: at most that of what TensorFlow's goal says, and at least so many; None: not known."""
        workload, bounds, options = case.workload, case.workload.bounds, self.options
        at_most = at_least = None
        if bounds:
            alone = self.once("arithmetic", workload, measure.arithmetic, options.dtrain, workload,
                              self.timing)
            at_most = alone and alone * bounds.part * bounds.on(case.transport)
        if bounds and options.torch_bench:
            torch = self.once("torch", workload, peers.torch, options.torch_python,
                              options.torch_bench, workload, self.timing)
            at_least = torch and torch * bounds.torch_times * bounds.on(case.transport)
        return {"at_most": at_most, "at_least": at_least}

    def start(self, case, tensorflow):
        runs = [self.attempt(measure.first_step, self.options.dtrain, case)
                for _ in range(self.timing.starts)]
        seconds = [run for run in runs if run is not None]
        if not seconds:
            return
        middle = statistics.median(seconds)
        peer = tensorflow["first_step_s"] if tensorflow else TENSORFLOW_FIRST_STEP_S[case.mode]
        self.keep("start", {
            **case.names(), "seconds": seconds, "median": middle, "tensorflow": peer,
            "origin": origin(tensorflow), "goal": FIRST_STEP_GOAL_S,
            "is_met": middle <= FIRST_STEP_GOAL_S})

    def memory(self, case, tensorflow):
        if case.workload.name not in MEMORY_WORKLOADS:
            return
        held = self.attempt(measure.ps_memory, self.options.dtrain, case, self.timing)
        peer_mib = tensorflow["ps_mib"] if tensorflow else TENSORFLOW_PS_MIB
        for ps, memory in enumerate(held or []):
            goal = memory["state"] + PS_MARGIN_BYTES
            self.keep("memory", {
                **case.names(), "ps": ps, **memory, "tensorflow_mib": peer_mib,
                "origin": origin(tensorflow), "goal": goal, "is_met": memory["peak"] <= goal})

    def run(self):
        chosen = [workload for workload in WORKLOADS if workload.name in self.options.only]
        for workload, mode in itertools.product(chosen, self.options.mode):
            tensorflow = self.tensorflow(workload, mode)
            for part, transport in itertools.product(self.options.parts, self.options.transport):
                getattr(self, part)(measure.Case(workload, mode, transport), tensorflow)
        goals = [record["is_met"] for part in PARTS for record in self.found[part]]
        print(f"{sum(goals)} of {len(goals)} goals met, {len(self.found['failures'])} failures")


def least(goal, at_most, at_least):
    return max(min(goal, at_most or goal), at_least or 0)


def origin(measured):
    return "measured" if measured else "reference"


def machine():
    model = ""
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        for line in file:
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
                break
    return {"processor": model or platform.machine(), "cores": len(os.sched_getaffinity(0)),
            "load": os.getloadavg()[0], "kernel": platform.release()}


def version(dtrain):
    return subprocess.run([dtrain, "--version"], capture_output=True, text=True, timeout=30,
                          check=True, env=environment.clean()).stdout.splitlines()


def words(known):
    """An argparse type: a comma-separated choice of the known words."""
    def parse(text):
        chosen = tuple(text.split(","))
        for word in chosen:
            if word not in known:
                raise argparse.ArgumentTypeError(f"{word!r} is none of {', '.join(known)}")
        return chosen
    return parse


def positive(kind):
    def parse(text):
        if not 0 < (value := kind(text)) <= 1000:
            raise argparse.ArgumentTypeError("expected from above 0 to 1000")
        return value
    return parse


def read_options(arguments):
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    names = tuple(workload.name for workload in WORKLOADS)
    root = os.path.dirname(os.path.dirname(measure.FOLDER))
    add = parser.add_argument
    add("--dtrain", default=os.path.join(root, "build", "cmd", "dtrain"), help="the program")
    add("--only", type=words(names), default=names, metavar=",".join(names))
    add("--mode", type=words(MODES), default=MODES, metavar=",".join(MODES))
    add("--transport", type=words(TRANSPORTS), default=TRANSPORTS, metavar=",".join(TRANSPORTS))
    add("--parts", type=words(PARTS), default=PARTS, metavar=",".join(PARTS))
    add("--windows", type=positive(int), default=5, help="of each figure")
    add("--seconds", type=positive(float), help="of a window and of the warm-up: 1")
    add("--starts", type=positive(int), default=5, help="runs for the first step")
    add("--quick", action="store_true", help="windows of 0.3 s")
    add("--json", metavar="FILE", help="all figures, as one object")
    for name in ("tensorflow-python", "tensorflow-bench", "torch-python", "torch-bench", "minishm",
                 "minips"):
        add("--" + name, metavar="PATH")
    options = parser.parse_args(arguments)
    for peer in "tensorflow", "torch":
        if bool(getattr(options, peer + "_python")) != bool(getattr(options, peer + "_bench")):
            parser.error(f"--{peer}-python and --{peer}-bench go together")
    return options


def announce(bench):
    options, found = bench.options, bench.found
    print(f"{found['machine']['processor']}, {found['machine']['cores']} cores, load "
          f"{found['machine']['load']:.2f}; {'; '.join(found['dtrain'])}")
    print(f"{PS} ps + {WORKERS} workers, medians of {bench.timing.windows} windows of "
          f"{bench.timing.window_s} s after {bench.timing.warmup_s} s")
    if environment.left_out():
        print("left out of the environment: " + ", ".join(environment.left_out()))
    missing = [name for name, path in (("TensorFlow (reference figures stand in)",
                                        options.tensorflow_bench),
                                       ("PyTorch", options.torch_bench),
                                       ("minishm", options.minishm), ("minips", options.minips))
               if not path]
    if missing:
        print("not measured, not given: " + ", ".join(missing))


def main(arguments):
    options = read_options(arguments)
    try:
        bench = Bench(options)
    except (OSError, subprocess.SubprocessError) as trouble:
        print(f"{options.dtrain}: {trouble} (build first, or name it with --dtrain)",
              file=sys.stderr)
        return 2
    announce(bench)
    bench.run()
    bench.write()
    return 1 if bench.found["failures"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
