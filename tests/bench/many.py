#!/usr/bin/env python3
"""many.py - many workers on one ps behind one link: who gets how much of it, and whether it is used.

    tests/bench/many.py                      as root, about two minutes
    tests/bench/many.py --workers 16 --rate 0.5

The ps is on one host and all workers are on the other (program/hosts.py). Both modes are measured: beside
the time of a global step stands the time in which a bare socket brings across, one way, the bytes
that it needs, and how many steps the least of the workers made beside the most, which are even in
synchronous mode by its meaning.

The exit code is 0 when everything was measured, whether or not a goal was met.
"""
import argparse
import re
import signal
import statistics
import subprocess
import sys

sys.dont_write_bytecode = True  # the folder is part of the source

import lines
import links
import measure
from program.hosts import Hosts
from run import positive, words
from workloads import MODES, WORKLOADS

STEP_GOAL = 1.2  # times the transfer alone
SHARE_GOAL = 0.8  # of the worker that made most steps
ROUNDS = 60  # in which every worker makes a step
END_LIMIT_S = measure.START_LIMIT_S + links.STEP_LIMIT_S * ROUNDS
STEPS_HERE = re.compile(rb"worker/\d+: done, (\d+) steps? here")  # which the chief has in its result


def shares(running, started, workers):
    """Steps of each worker, least first, when all that was started has ended."""
    codes = [process.wait(END_LIMIT_S) for process in started]
    if any(codes):
        running.fail(f"ended with exit codes {codes}")
    found = [running.result()["own_steps"], *map(int, STEPS_HERE.findall(running.printed()))]
    if len(found) != workers:
        running.fail(f"{len(found)} of {workers} workers said how many steps they made")
    return sorted(found)


def step_seconds(points):
    """A global step, in the later half of them, when every worker has long been there."""
    late = points[len(points) // 2:]
    if len(late) < 2:
        raise measure.Failed(f"{len(points)} lines of metrics are too few")
    return (late[-1][0] - late[0][0]) / (late[-1][1] - late[0][1])


def judge(mode, step_s, transfer_s, steps):
    goals = [links.held(step_s / transfer_s, "the transfer", at_most=STEP_GOAL)]
    if mode == "async":
        goals.append(links.held(steps[0] / steps[-1], "the most steps of a worker",
                                at_least=SHARE_GOAL))
    return goals


class Bench(measure.Attempts):
    def __init__(self, options):
        self.options = options
        self.found = {"workers": options.workers, "rate": options.rate, "runs": [], "failures": []}

    def case(self, mode):
        chosen = next(one for one in WORKLOADS if one.name == self.options.only)
        return links.Case(chosen, mode, "apart", self.options.rate)

    def run_once(self, case):
        """(seconds of a global step, steps of each worker)."""
        workers = self.options.workers
        last_step = ROUNDS * (workers if case.mode == "async" else 1)
        settings = ["--set", f"train.last_step={last_step}"]
        with Hosts(links.rate_mbit(case.rate)) as hosts, \
                links.Cluster(self.options.binary, hosts, case, 1, (1, workers), settings) as running:
            steps = shares(running, hosts.started, workers)
            return step_seconds(running.points()), steps

    def transfer(self, case):
        """Seconds for the gradients of one global step: values go the other way meanwhile."""
        done = subprocess.run([self.options.binary, "check", "--local_ps=1", case.spec()],
                              capture_output=True, check=True, timeout=measure.START_LIMIT_S)
        size = int(measure.SHARE.search(done.stdout).group(2))
        with Hosts(links.rate_mbit(case.rate)) as hosts:
            return hosts.transfer_seconds(size * (self.options.workers if case.mode == "sync" else 1))

    def measure(self, mode):
        case = self.case(mode)
        runs = [self.run_once(case) for _ in range(self.options.repeats)]
        step_s = statistics.median(seconds for seconds, _ in runs)
        steps = sorted((steps for _, steps in runs), key=lambda one: one[0] / one[-1])[len(runs) // 2]
        transfer_s = self.transfer(case)
        goals = judge(mode, step_s, transfer_s, steps)
        self.found["runs"].append({**case.names(), "step_s": step_s, "transfer_s": transfer_s,
                                   "steps": steps, "goals": goals})
        print(f"{case.workload.name:7} {mode:5} {1e3 * step_s:8.2f} ms a step, transfer "
              f"{1e3 * transfer_s:.2f}; steps of a worker {steps[0]} to {steps[-1]}; "
              f"{'; '.join(map(lines.goal, goals))}", flush=True)


def read_options(arguments):
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--binary", default=links.default_binary(), metavar="PATH", help="the program")
    add("--workers", type=positive(int), default=8, metavar="N")
    add("--rate", default="1", metavar="GBIT", help="of the link, each way")
    add("--only", choices=tuple(links.STEPS), default="mlp_sgd")
    add("--mode", type=words(MODES), default=("sync", "async"), metavar=",".join(MODES))
    add("--repeats", type=positive(int), default=3, help="runs of each")
    add("--json", metavar="FILE", help="all figures, as one object")
    return parser.parse_args(arguments)


def main(arguments):
    options = read_options(arguments)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    bench = Bench(options)
    for mode in options.mode:
        bench.attempt(bench.measure, mode)
    bench.write()
    return 1 if bench.found["failures"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
