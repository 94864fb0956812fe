#!/usr/bin/env python3
"""restoring.py - how long a growing table takes to come back, beside the time in which its file is read.

    meson setup build && ninja -C build
    tests/bench/restoring.py                      1, 10 and 60 million rows x 16 and Adagrad; 10 minutes
    tests/bench/restoring.py --millions 1,4       smaller ones

A run makes the table and saves it; then, in turn and after the file has left the memory of the system, the file
is read by this program alone, and a parameter server begins from it. Of each size the medians are
printed, and the time of a row, which is to be the same for all sizes.

Nothing else should run on the machine, which needs 12 GB of memory and twice as much of disk below --folder
as the largest table has (160 bytes a row). The exit code is 0 when everything was measured, whether or not
the goal was met.
"""
import glob
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True  # the folder is part of the source

import measure
from run import machine, positive, version

CELLS = 26
SPARSE = 8  # ids that could be for each that is: hardly any comes twice
BATCH = 4096
GOAL = 0.7
FILL_LIMIT_S = 1800
RESTORE_LIMIT_S = 600
PIECE = 8 << 20
LATER_STEPS = 1000
BEGINS = re.compile(rb"^.*?(\d+):(\d+):(\d+\.\d+) begins from ", re.M)
SERVES = re.compile(rb"^.*?ps/0: (\d+):(\d+):(\d+\.\d+) serving from step ", re.M)
ROWS = re.compile(r"^c1_embedding/embedding_weights/part_00000/rows +float32 +\[(\d+), ", re.M)


def spec(rows, folder):
    """A logistic regression over one table that grows by all ids of the examples."""
    names = [f"c{i + 1}" for i in range(CELLS)]
    shared = [{"table": f"{names[0]}_embedding"}] * (CELLS - 1)
    nodes = [{"op": "embedding", "name": f"{name}_embedding", "inputs": [name], "dimension": 16, **table}
             for name, table in zip(names, [{"capacity": "dynamic"}, *shared])]
    nodes += [{"op": "concat", "name": "all", "inputs": [node["name"] for node in nodes]},
              {"op": "dense", "name": "logit", "units": 1}]
    steps = rows // CELLS // BATCH + 1
    return {"name": "growing", "seed": 1,
            "data": {"train": {"format": "clicks", "rows": steps * BATCH, "buckets": SPARSE * rows, "skew": 0},
                     "columns": [{"column": "identity", "name": name} for name in names],
                     "batch_size": BATCH, "shuffle": False},
            "model": nodes, "loss": "sigmoid_cross_entropy",
            "optimizer": {"type": "adagrad", "learning_rate": 0.01},
            "train": {"last_step": steps, "checkpoint_dir": os.path.join(folder, "run"),
                      "keep_checkpoint_max": 1, "log_every_steps": steps}}


def write(path, made):
    with open(path, "w", encoding="utf-8") as file:
        json.dump(made, file)


def forget(paths):
    """The system reads them from the disk the next time."""
    for path in paths:
        file = os.open(path, os.O_RDONLY)
        os.fsync(file)
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(file)


def read(paths):
    """Seconds for all of their bytes."""
    piece = bytearray(PIECE)
    began = time.monotonic()
    for path in paths:
        with open(path, "rb", buffering=0) as file:
            while file.readinto(piece):
                pass
    return time.monotonic() - began


def moment(match):
    hours, minutes, seconds = match.groups()
    return int(hours) * 3600 + int(minutes) * 60 + float(seconds)


class Bench(measure.Attempts):
    def __init__(self, options):
        self.options = options
        self.found = {"machine": machine(), "dtrain": version(options.dtrain), "figures": [], "failures": []}

    def running(self, path, *words):
        return measure.Running(self.options.dtrain, ["--local_ps=1", "--local_workers=1", *words, path])

    def fill(self, path):
        with self.running(path) as cluster:
            if cluster.wait(FILL_LIMIT_S):
                cluster.fail("did not make the table")

    def rows(self, checkpoints):
        shown = subprocess.run([self.options.dtrain, "checkpoint", "show", checkpoints], check=True,
                               capture_output=True, text=True).stdout
        return int(ROWS.search(shown)[1])

    def restore(self, path):
        """Seconds from when the chief names the checkpoint to when the ps serves its values."""
        with self.running(path) as cluster:
            served = cluster.wait_until(lambda: SERVES.search(cluster.printed()), RESTORE_LIMIT_S,
                                        "values of the checkpoint")
            seconds = moment(served) - moment(BEGINS.search(cluster.printed()))
            os.killpg(cluster.process.pid, signal.SIGKILL)  # or it would save another one
            return seconds if seconds >= 0 else seconds + 24 * 3600  # midnight was between them

    def pair(self, path, files):
        forget(files)
        reading = read(files)
        forget(files)
        return reading, self.restore(path)

    def size(self, millions):
        with tempfile.TemporaryDirectory(dir=self.options.folder) as folder:
            path, longer = os.path.join(folder, "spec.json"), os.path.join(folder, "longer.json")
            made = spec(int(millions * 1e6), folder)
            write(path, made)
            made["train"]["last_step"] += LATER_STEPS
            made["data"]["train"]["rows"] = BATCH  # so that nobody waits for the examples
            write(longer, made)
            self.fill(path)
            rows = self.rows(os.path.join(folder, "run"))
            files = sorted(glob.glob(os.path.join(folder, "run", "model.ckpt-*.data-*")))
            pairs = [self.pair(longer, files) for _ in range(self.options.turns)]
            reading, restoring = (statistics.median(times) for times in zip(*pairs))
            self.keep(rows, sum(map(os.path.getsize, files)), reading, restoring)

    def keep(self, rows, size, reading, restoring):
        share = reading / restoring
        self.found["figures"].append({"rows": rows, "bytes": size, "read_s": reading, "restore_s": restoring,
                                      "of_the_disk": share, "goal": GOAL, "is_met": share >= GOAL})
        print(f"{rows:11,} rows, {size / 1e9:5.2f} GB: read in {reading:.3f} s, restored in {restoring:.3f} s, "
              f"{restoring / rows * 1e9:.0f} ns a row, {share:.2f} of the disk, goal {GOAL}: "
              f"{'met' if share >= GOAL else 'NOT MET'}", flush=True)

    def run(self):
        for millions in self.options.millions:
            self.attempt(self.size, millions)
        self.write()
        return 1 if self.found["failures"] else 0


def sizes(text):
    return [positive(float)(one) for one in text.split(",")]


def read_options(arguments):
    parser = measure.make_parser(__doc__)
    parser.add_argument("--millions", type=sizes, default=[1, 10, 60], help="rows of each table (%(default)s)")
    parser.add_argument("--turns", type=int, default=3, help="measurements of each (%(default)s)")
    return parser.parse_args(arguments)


def main(arguments):
    bench = Bench(read_options(arguments))
    bench.announce()
    return bench.run()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
