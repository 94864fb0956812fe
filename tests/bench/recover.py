#!/usr/bin/env python3
"""recover.py - how long a death costs, and what saving costs those who train: 2 ps + 2 workers.

    meson setup build && ninja -C build
    tests/bench/recover.py                        everything, about two minutes
    tests/bench/recover.py --parts deaths --mode sync --repeats 3
    tests/bench/recover.py --json figures.json    the same, and every figure in a file

deaths: a task of the MLP (random data, a checkpoint every 2 s) is killed and started again at once.
Measured is the time from that start to the next step: of a worker or the chief, the end of the
first step that its new life takes part in; of a ps, the first step of any worker after it serves
again. The median of several deaths, and the longest.

saving: times between the ends of the chief's steps, median and 99th percentile, of the MLP and the
CNN, with a checkpoint every second and without; and how long the workers waited for the cuts, as
ps/0 prints it.

All tasks share the cores of this machine, so nothing else should run on it. The exit code is 0 when
everything was measured, whether or not a goal was met.
"""
import argparse
import json
import math
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True  # the folder is part of the source

import measure
import program
from program import lives
from program.cluster import ENDLESS, Plan
from run import machine, positive, version, words
from workloads import MODES, PS, WORKERS, WORKLOADS

PARTS = ("deaths", "saving")
VICTIMS = ("worker/1", "ps/1", "ps/0", lives.CHIEF)
DEATHS_WORKLOAD = "mlp_sgd"
SAVING_WORKLOADS = ("mlp_sgd", "cnn")
RECOVERY_GOAL_S = 0.5
SAVE_SECS = {"deaths": 2, "saving": 1}
LIMITS_S = 60  # of every wait of a task
BETWEEN_STEPS = 50  # of all workers, between two deaths
PERCENTILE = 0.99
STEPS_MIN = 100  # fewer have no such percentile
PAUSE = re.compile(rb"workers waited ([0-9.]+) ms for the snapshot")


def percentile(values, part):
    """The smallest value that so large a part of all values does not exceed."""
    return sorted(values)[math.ceil(part * len(values)) - 1]


def spec_changes(mode):
    """The workload's own spec, as changes of the one that clusters of tests begin with."""
    with open(os.path.join(measure.SPECS, DEATHS_WORKLOAD + ".json"), encoding="utf-8") as file:
        changes = json.load(file)
    changes["train"] = {"mode": mode, "last_step": ENDLESS, "log_every_steps": 1,
                        "checkpoint_dir": "run", "save_checkpoint_secs": SAVE_SECS["deaths"]}
    return changes


def wait_for_step(cluster, name):
    """Until the life that was started last has made a step, or, of a ps, serves and allowed one."""
    task = cluster.tasks[name]
    if name in cluster.workers():
        cluster.wait_until_alive(lambda: cluster.told[task.path].look().count, f"step of {name}")
        return
    cluster.wait_until_alive(lambda: ": serving" in task.text(), f"{name} to serve")
    cluster.wait_for_progress(1)


def recovery(cluster, name):
    """Seconds from the start of the next life to the next step."""
    cluster.wait_for_progress(BETWEEN_STEPS)
    cluster.kill_task(name)
    started = time.monotonic()
    cluster.start(name)
    wait_for_step(cluster, name)
    return time.monotonic() - started


def deaths(mode, repeats):
    """One record for each kind of victim."""
    flags = [f"--{name}_timeout={LIMITS_S}" for name in ("start", "step", "restart", "end", "save")]
    plan = Plan(ps=PS, workers=WORKERS, changes=spec_changes(mode), flags=flags)
    with tempfile.TemporaryDirectory(prefix="dtrain-bench-") as folder:
        cluster = lives.LivingCluster(folder, plan)
        try:
            cluster.start_planned()
            cluster.wait_until_alive(lambda: all(map(cluster.steps_of, cluster.workers())),
                                     "first steps")
            cluster.wait_for_line(lives.CHIEF, "saved ")
            for name in VICTIMS:
                seconds = [recovery(cluster, name) for _ in range(repeats)]
                median = statistics.median(seconds)
                yield {"workload": DEATHS_WORKLOAD, "mode": mode, "victim": name,
                       "seconds": seconds, "median": median, "goal": RECOVERY_GOAL_S,
                       "is_met": median < RECOVERY_GOAL_S}
        finally:
            cluster.kill()


def step_times(points):
    """Seconds between neighbours, without the first step, which is also the start."""
    return [after[0] - before[0] for before, after in zip(points[1:], points[2:])]


def saving(dtrain, workload, mode, seconds, save_secs):
    """The chief's step times, and what the cuts cost."""
    case = measure.Case(workload, mode, "auto")
    with tempfile.TemporaryDirectory(prefix="dtrain-bench-") as folder:
        settings = {"log_every_steps": 1}
        if save_secs:
            settings.update(checkpoint_dir=folder, save_checkpoint_secs=save_secs)
        with measure.LocalCluster(dtrain, case, settings, ["--log_level=debug"]) as cluster:
            cluster.wait_until(cluster.points, measure.START_LIMIT_S, "first step")
            limit_s = measure.START_LIMIT_S + 4 * seconds
            if save_secs:
                cluster.wait_until(lambda: PAUSE.search(cluster.printed()), limit_s, "checkpoint")
            points = cluster.wait_until(lambda: long_enough(cluster.points(), seconds), limit_s, "figures")
            pauses = [float(ms) / 1e3 for ms in PAUSE.findall(cluster.printed())]
    times = step_times(points)
    return {"workload": workload.name, "mode": mode, "save_secs": save_secs, "steps": len(times),
            "median": statistics.median(times), "p99": percentile(times, PERCENTILE),
            "most": max(times), "pauses": pauses}


def long_enough(points, seconds):
    is_long = len(points) > STEPS_MIN and points[-1][0] - points[0][0] >= seconds
    return points if is_long else None


def death_line(record):
    return (f"{record['workload']:9} {record['mode']:5} {record['victim']:8} "
            f"{record['median'] * 1e3:8.0f} ms to the next step (at most "
            f"{max(record['seconds']) * 1e3:.0f} of {len(record['seconds'])}), goal "
            f"{record['goal'] * 1e3:.0f}: {'met' if record['is_met'] else 'NOT MET'}")


def saving_line(record):
    how = f"saving every {record['save_secs']} s" if record["save_secs"] else "without saving"
    line = (f"{record['workload']:9} {record['mode']:5} {how:18} step "
            f"{record['median'] * 1e3:8.2f} ms, 99th percentile {record['p99'] * 1e3:8.2f}, "
            f"at most {record['most'] * 1e3:8.2f} ({record['steps']} steps)")
    if record["pauses"]:
        line += (f"; {len(record['pauses'])} cuts, workers waited "
                 f"{statistics.median(record['pauses']) * 1e3:.1f} ms, at most "
                 f"{max(record['pauses']) * 1e3:.1f}")
    return line


class Bench:
    """What was asked for, and what was found so far."""

    def __init__(self, options):
        self.options = options
        self.found = {"machine": machine(), "dtrain": version(options.dtrain), "deaths": [],
                      "saving": [], "failures": []}

    def keep(self, part, record, line):
        self.found[part].append(record)
        print(line(record), flush=True)

    def attempt(self, body, *arguments):
        """A failure is printed and kept, and the rest continues without it."""
        try:
            body(*arguments)
        except (AssertionError, measure.Failed, OSError, ValueError, KeyError) as trouble:
            self.found["failures"].append(str(trouble))
            print(f"FAILED: {trouble}", flush=True)

    def deaths(self, mode):
        for record in deaths(mode, self.options.repeats):
            self.keep("deaths", record, death_line)

    def saving(self, workload, mode):
        for save_secs in (None, SAVE_SECS["saving"]):
            self.keep("saving", saving(self.options.dtrain, workload, mode, self.options.seconds,
                                       save_secs), saving_line)

    def run(self):
        for mode in self.options.mode:
            if "deaths" in self.options.parts:
                self.attempt(self.deaths, mode)
        for workload in (w for w in WORKLOADS if w.name in self.options.only):
            for mode in self.options.mode:
                if "saving" in self.options.parts:
                    self.attempt(self.saving, workload, mode)


def read_options(arguments):
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    names = tuple(workload.name for workload in WORKLOADS)
    root = os.path.dirname(os.path.dirname(measure.FOLDER))
    add = parser.add_argument
    add("--dtrain", default=os.path.join(root, "build", "cmd", "dtrain"), help="the program")
    add("--parts", type=words(PARTS), default=PARTS, metavar=",".join(PARTS))
    add("--mode", type=words(MODES), default=MODES, metavar=",".join(MODES))
    add("--only", type=words(names), default=SAVING_WORKLOADS, metavar=",".join(names),
        help="of the part saving")
    add("--repeats", type=positive(int), default=5, help="deaths of each kind")
    add("--seconds", type=positive(float), default=10, help="of each measurement of steps")
    add("--json", metavar="FILE", help="all figures, as one object")
    return parser.parse_args(arguments)


def main(arguments):
    options = read_options(arguments)
    program.BINARY = os.path.abspath(options.dtrain)
    try:
        bench = Bench(options)
    except (OSError, subprocess.SubprocessError) as trouble:
        print(f"{options.dtrain}: {trouble} (build first, or name it with --dtrain)",
              file=sys.stderr)
        return 2
    found = bench.found
    print(f"{found['machine']['processor']}, {found['machine']['cores']} cores, load "
          f"{found['machine']['load']:.2f}; {'; '.join(found['dtrain'])}", flush=True)
    bench.run()
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(found, file, indent=1)
            file.write("\n")
    return 1 if found["failures"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
