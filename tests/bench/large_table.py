#!/usr/bin/env python3
"""large_table.py - a table that fills this machine's memory, beside one that only leaves its caches.

    meson setup build && ninja -C build
    tests/bench/large_table.py                    60 million rows x 16 and Adagrad, 7.7 GB; 10 minutes
    tests/bench/large_table.py --millions 6       a tenth of it
    tests/bench/large_table.py --json figures.json

The click model of specs/clicks.json, 2 ps + 2 workers, asynchronously. Every worker goes through the
same examples again and again, which name almost all rows of the large table and all of the small
one. Measured are the time from launch to the end of the first step, examples per second of both
tables once the rows are made, and the most memory that the ps had when a checkpoint was written while
training went on, beside what they had before.

Nothing else should run on the machine, which needs 12 GB of memory and as much of disk below --folder.
The exit code is 0 when everything was measured, whether or not a goal was met.
"""
import dataclasses
import json
import os
import statistics
import sys
import tempfile

sys.dont_write_bytecode = True  # the folder is part of the source

import measure
from run import machine, positive, version
from workloads import PS, WORKLOADS

CELLS = 26
PASSES = 3  # ids that an example set has for each row: one row of twenty gets none
START_EXAMPLES = 8192  # making examples is no part of the start
GOALS = {"first step": 1.0, "of the small table": 0.9, "more memory": 0.05}
FILL_LIMIT_S = 900
SAVE_LIMIT_S = 600


def workload(rows, examples):
    clicks = next(one for one in WORKLOADS if one.name == "clicks")
    columns = [{"column": "identity", "name": f"c{i + 1}", "buckets": rows} for i in range(CELLS)]
    return dataclasses.replace(clicks, spec="clicks", settings={
        "data.columns": json.dumps(columns), "data.train.buckets": rows,
        "data.train.rows": examples})


class Bench(measure.Attempts):
    def __init__(self, options):
        self.options = options
        self.rows = int(options.millions * 1e6)
        self.found = {"machine": machine(), "dtrain": version(options.dtrain), "rows": self.rows,
                      "figures": [], "failures": []}

    def case(self, rows, examples):
        return measure.Case(workload(rows, examples), "async", "auto")

    def keep(self, name, value, text, is_met=None):
        self.found["figures"].append({"name": name, "value": value, "goal": GOALS.get(name),
                                      "is_met": is_met})
        goal = "" if is_met is None else f", goal {GOALS[name]}: {'met' if is_met else 'NOT MET'}"
        print(f"{name:20} {text}{goal}", flush=True)

    def first_step(self):
        seconds = measure.first_step(self.options.dtrain, self.case(self.rows, START_EXAMPLES))
        self.keep("first step", seconds, f"{seconds:.3f} s", seconds <= GOALS["first step"])

    def fill(self, cluster, case):
        """Until every example has been seen: no row is made any more."""
        steps = case.workload.settings["data.train.rows"] // case.workload.batch + 1
        cluster.wait_until(lambda: cluster.points() and cluster.points()[-1][1] > steps,
                           FILL_LIMIT_S, f"{steps} steps")
        return steps

    def speed(self, cluster, case, steps):
        def rates():
            points = [one for one in cluster.points() if one[1] > steps]
            found = measure.window_rates(points, 0, self.options.seconds) if points else []
            return found if len(found) >= self.options.windows else None

        limit_s = measure.START_LIMIT_S + 4 * self.options.seconds * (self.options.windows + 1)
        return statistics.median(cluster.wait_until(rates, limit_s, "figures")) * case.workload.batch

    def memory(self, cluster):
        """Bytes of all ps: their peaks, and what they hold now, each with what they share and map."""
        held = cluster.ps_memory().values()
        if len(held) != PS:
            cluster.fail(f"expected {PS} ps, found {len(held)}")
        return (sum(one["peak"] for one in held),
                sum(one["anonymous"] + one["file"] + one["shared"] for one in held))

    def rate(self, name, rows):
        case = self.case(rows, PASSES * rows // CELLS)
        with measure.LocalCluster(self.options.dtrain, case, case.logging()) as cluster:
            rate = self.speed(cluster, case, self.fill(cluster, case))
        self.keep(name, rate, f"{rate:,.0f} examples/s")
        return rate

    def speeds(self):
        small = self.rate("small table", int(self.options.small * 1e6))
        large = self.rate("large table", self.rows)
        self.keep("of the small table", large / small, f"{large / small:.2f}",
                  large >= GOALS["of the small table"] * small)

    def save(self, cluster, folder):
        """The bytes that the ps hold, and the most that they had when one more was saved."""
        def index_files():
            return {name for name in os.listdir(folder) if name.endswith(".index")}

        before, (_, held) = index_files(), self.memory(cluster)
        cluster.wait_until(lambda: index_files() - before, SAVE_LIMIT_S, "checkpoint")
        return held, self.memory(cluster)[0]

    def saving(self):
        case = self.case(self.rows, PASSES * self.rows // CELLS)
        with tempfile.TemporaryDirectory(dir=self.options.folder) as folder:
            settings = {**case.logging(), "checkpoint_dir": folder, "keep_checkpoint_max": 1,
                        "save_checkpoint_secs": self.options.save_secs}
            with measure.LocalCluster(self.options.dtrain, case, settings) as cluster:
                self.fill(cluster, case)
                held, peak = self.save(cluster, folder)
        more = peak / held - 1
        self.keep("more memory", more, f"{more:.1%} of {held / 1e9:.2f} GB, while a checkpoint was "
                  "written", more <= GOALS["more memory"])

    def run(self):
        self.attempt(self.first_step)
        self.attempt(self.speeds)
        self.attempt(self.saving)
        self.write()
        return 1 if self.found["failures"] else 0


def read_options(arguments):
    parser = measure.make_parser(__doc__)
    parser.add_argument("--millions", type=positive(float), default=60, help="rows (%(default)s)")
    parser.add_argument("--small", type=positive(float), default=4,
                        help="millions of rows of the other (%(default)s)")
    parser.add_argument("--windows", type=int, default=5, help="of each rate (%(default)s)")
    parser.add_argument("--seconds", type=positive(float), default=2, help="of each (%(default)s)")
    parser.add_argument("--save_secs", type=positive(float), default=120,
                        help="between checkpoints (%(default)s)")
    return parser.parse_args(arguments)


def main(arguments):
    bench = Bench(read_options(arguments))
    bench.announce()
    return bench.run()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
