#!/usr/bin/env python3
"""feeding.py - what it costs that the chief reads the data for all workers, beside each reading its own.

    meson setup build && ninja -C build
    tests/bench/feeding.py                    about three minutes
    tests/bench/feeding.py --mode sync --transport tcp --pairs 9

Measured are examples/s of all workers, of pairs of runs that differ in train.replication alone. A run
between graphs and one in graph follow each other, the first of them in turn; the ratio of a pair is
held against the goal by the median of all pairs, since a machine is faster at one time than at another.

Nothing else should run on the machine. The exit code is 0 when everything was measured, whether or
not a goal was met.
"""
import argparse
import itertools
import statistics
import sys
from dataclasses import replace

sys.dont_write_bytecode = True  # the folder is part of the source

import lines
import links
import measure
from run import Timing, positive, words
from workloads import MODES, TRANSPORTS, WORKLOADS

RATIO_GOAL = 0.9
REPLICATIONS = ("between_graph", "in_graph")


def case_of(workload, mode, transport, replication):
    settings = {**workload.settings, "train.replication": replication}
    return measure.Case(replace(workload, settings=settings), mode, transport)


class Bench(measure.Attempts):
    def __init__(self, options):
        self.options = options
        self.timing = Timing(options.windows, options.seconds, options.seconds, 0)
        self.found = {"pairs": options.pairs, "cases": [], "failures": []}

    def rate(self, *case):
        return statistics.median(measure.throughput(self.options.binary, case_of(*case), self.timing))

    def pair(self, number, *case):
        """By replication: examples/s."""
        order = REPLICATIONS if number % 2 == 0 else REPLICATIONS[::-1]
        return {replication: self.rate(*case, replication) for replication in order}

    def measure(self, workload, mode, transport):
        pairs = [self.pair(number, workload, mode, transport) for number in range(self.options.pairs)]
        between, fed = ([pair[name] for pair in pairs] for name in REPLICATIONS)
        ratios = [one / other for one, other in zip(fed, between)]
        goal = links.held(statistics.median(ratios), "between graphs", at_least=RATIO_GOAL)
        self.found["cases"].append({"workload": workload.name, "mode": mode, "transport": transport,
                                    "between_graph": between, "in_graph": fed, "goals": [goal]})
        print(f"{workload.name:8} {mode:5} {transport}: {statistics.median(fed):12,.0f} examples/s, between "
              f"graphs {statistics.median(between):12,.0f}; pairs {min(ratios):.2f} to {max(ratios):.2f}; "
              f"{lines.goal(goal)}", flush=True)


def read_options(arguments):
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    names = [workload.name for workload in WORKLOADS]
    add = parser.add_argument
    add("--binary", default=links.default_binary(), metavar="PATH", help="the program")
    add("--only", choices=names, default="mlp_sgd")
    add("--mode", type=words(MODES), default=MODES, metavar=",".join(MODES))
    add("--transport", type=words(TRANSPORTS), default=TRANSPORTS, metavar=",".join(TRANSPORTS))
    add("--pairs", type=positive(int), default=5, help="of runs, of each case")
    add("--windows", type=positive(int), default=3, help="of each run")
    add("--seconds", type=positive(float), default=1.0, help="of a window and of the warm-up")
    add("--json", metavar="FILE", help="all figures, as one object")
    return parser.parse_args(arguments)


def main(arguments):
    options = read_options(arguments)
    bench = Bench(options)
    workload = next(one for one in WORKLOADS if one.name == options.only)
    for mode, transport in itertools.product(options.mode, options.transport):
        bench.attempt(bench.measure, workload, mode, transport)
    bench.write()
    return 1 if bench.found["failures"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
