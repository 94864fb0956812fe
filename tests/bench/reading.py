#!/usr/bin/env python3
"""reading.py - what a stream costs: rows of files that memory does not hold, and the memory itself.

    meson setup build && ninja -C build
    tests/bench/reading.py                            2 GB of made-up rows, about a minute
    tests/bench/reading.py --megabytes 20000 --readers 4
    tests/bench/reading.py --json figures.json        the same, and every figure in a file

Files of Criteo's form are made below --folder and removed in the end. Measured are, in MB of text per
second from the page cache: a bare count of line ends (wc -l), the pass that finds rows (dtrain check),
and a single process that trains on them by a model that is almost nothing, as a stream and, on one of
the files, in memory. The most memory that the process had resident is held against what it says that
it takes and 64 MiB. One of the files is packed by gzip, too: how fast zlib alone unpacks it, and how fast
its rows are found and trained on. Then the click model of run.py trains on that file over 2 ps + 2 workers, from memory
and from the stream in turn: medians of all windows, and the goal is of these.

Nothing else should run on the machine. The exit code is 0 when everything was measured, whether or
not a goal was met.
"""
import argparse
import json
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
import zlib
from dataclasses import dataclass

sys.dont_write_bytecode = True  # the folder is part of the source

import measure
import program
from run import machine, version
from workloads import PS, WORKERS, WORKLOADS

NUMBERS, WORDS = 13, 26
WORDS_IN_ALL = 1 << 20  # as many as the click model's table has rows, or few less
PIECE_ROWS = 20000
FILES = 4
BATCH = 1000
RESIDENT_GOAL_MIB = 64
GZIP_GOAL = 0.95  # of zlib's own speed, rows are found
PACKED_BYTES = 1 << 18  # at once
STREAM_GOAL = 0.9  # of what the click model reaches from memory
CLICKS = next(workload for workload in WORKLOADS if workload.name == "clicks")
STATED = re.compile(r"a stream of \d+ files?, .* (\d+) MiB")


def piece():
    """Rows that every file has again and again."""
    draw = random.Random(1)
    lines = []
    for _ in range(PIECE_ROWS):
        numbers = [str(draw.randrange(10000)) if draw.random() < 0.8 else ""
                   for _ in range(NUMBERS)]
        words = [f"{draw.randrange(WORDS_IN_ALL):08x}" for _ in range(WORDS)]
        lines.append("\t".join([str(draw.randrange(2)), *numbers, *words]))
    return ("\n".join(lines) + "\n").encode()


def make_files(folder, megabytes):
    """FILES of about as many bytes; the names."""
    rows = piece()
    paths = [os.path.join(folder, f"day-{i}") for i in range(FILES)]
    for path in paths:
        with open(path, "wb") as file:
            for _ in range(max(1, megabytes * 1000000 // FILES // len(rows))):
                file.write(rows)
    return paths


def spec_of(source, steps):
    names = [f"I{i + 1}" for i in range(NUMBERS)]
    columns = [{"column": "numeric", "name": name, "default": 0, "log1p": True} for name in names]
    columns += [{"column": "hash", "name": f"C{i + 1}", "buckets": 1000} for i in range(WORDS)]
    return {
        "name": "reading",
        "data": {"train": {"format": "criteo", **source}, "columns": columns, "batch_size": BATCH},
        "model": [{"op": "concat", "name": "numbers", "inputs": names},
                  {"op": "dense", "name": "logits", "units": 1}],
        "loss": "sigmoid_cross_entropy",
        "optimizer": {"type": "gradient_descent", "learning_rate": 0.001},
        "train": {"last_step": steps},
    }


def clicks_spec(source):
    """The workload's, of cells that are hashed instead of ids that are made up."""
    with open(os.path.join(measure.SPECS, CLICKS.spec_name()), encoding="utf-8") as file:
        spec = json.load(file)
    for i, column in enumerate(spec["data"]["columns"]):
        column.update(column="hash", source=f"C{i + 1}")
    return program.changed(spec, {"data.train": {"format": "criteo", **source}, "data.shuffle": True,
                                  "train.log_every_steps": CLICKS.log_every_steps["async"]})


@dataclass(frozen=True)
class Timing:
    windows: int
    window_s: float
    warmup_s: float


class Bench:
    before = ()  # words of a command that becomes the program
    start = staticmethod(subprocess.Popen)

    def __init__(self, options, folder):
        self.options = options
        self.folder = folder
        self.paths = make_files(folder, options.megabytes)
        self.bytes = sum(map(os.path.getsize, self.paths))
        self.row_bytes = len(piece()) / PIECE_ROWS
        self.found = {"machine": machine(), "dtrain": version(program.BINARY),
                      "bytes": self.bytes, "records": []}

    def record(self, name, **figures):
        self.found["records"].append({"name": name, **figures})
        text = ", ".join(f"{key} {value:,.2f}" if isinstance(value, float) else f"{key} {value}"
                         for key, value in figures.items())
        print(f"{name:24} {text}", flush=True)

    def bare(self):
        with open(os.devnull, "wb") as nowhere:
            for _ in range(2):  # the first brings the files into the page cache
                began = time.monotonic()
                subprocess.run(["wc", "-l", *self.paths], stdout=nowhere, check=True)
                seconds = time.monotonic() - began
        self.record("line ends", mb_per_second=self.bytes / seconds / 1e6)

    def dtrain(self, *words):
        """What it printed, its seconds and the most MiB that were resident."""
        began = time.monotonic()
        child = subprocess.Popen([*self.before, program.BINARY, *words], cwd=self.folder, text=True,
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                 env=program.environment())
        text = child.stdout.read()
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        child.stdout.close()
        if child.returncode:
            raise RuntimeError(f"dtrain {' '.join(words)} ended with {child.returncode}: {text}")
        return text, time.monotonic() - began, usage.ru_maxrss / 1024

    def write_spec(self, spec):
        path = os.path.join(self.folder, "spec.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(spec, file)
        return path

    def train(self, source):
        return self.train_by(spec_of(source, self.options.steps))

    def train_by(self, spec):
        """Examples per second after the first steps, what it printed, and its memory."""
        self.write_spec(spec)
        text, _, mib = self.dtrain("--result=result.json", "spec.json")
        with open(os.path.join(self.folder, "result.json"), encoding="utf-8") as file:
            return json.load(file)["examples_per_second"], text, mib

    def find_rows(self):
        self.write_spec(spec_of({"file": self.paths, "stream": "always"}, 1))
        _, seconds, _ = self.dtrain("check", "spec.json")
        self.record("rows found", mb_per_second=self.bytes / seconds / 1e6)

    def bare_inflate(self, path):
        """Seconds that zlib alone needs."""
        with open(path, "rb") as file:
            packed = file.read()
        began = time.monotonic()
        stream = zlib.decompressobj(wbits=31)
        for at in range(0, len(packed), PACKED_BYTES):
            stream.decompress(packed[at:at + PACKED_BYTES])
        return time.monotonic() - began

    def gzip(self):
        """One of the files: zlib's own speed, rows found, and rows trained on by one reader, in turn."""
        path = self.paths[0] + ".gz"
        with open(path, "wb") as file:
            subprocess.run(["gzip", "-1", "-c", self.paths[0]], stdout=file, check=True)
        size = os.path.getsize(self.paths[0]) / 1e6
        source = {"file": path, "stream": "always", "readers": 1}
        bare, found, trained = [], [], []
        for _ in range(self.options.turns):
            bare.append(size / self.bare_inflate(path))
            self.write_spec(spec_of(source, 1))
            found.append(size / self.dtrain("check", "spec.json")[1])
            trained.append(self.train(source)[0] * self.row_bytes / 1e6)
        os.remove(path)
        of_zlib = statistics.median(found) / statistics.median(bare)
        self.record("gzip", zlib=statistics.median(bare), found=statistics.median(found),
                    trained=statistics.median(trained), of_zlib=of_zlib,
                    goal="ok" if of_zlib >= GZIP_GOAL else "NOT")

    def click_rates(self, source):
        """Examples per second of all workers, one figure per window."""
        options = self.options
        path = self.write_spec(clicks_spec({"file": self.paths[:1], **source}))
        timing = Timing(options.windows, options.seconds, options.seconds)
        words = [f"--local_ps={PS}", f"--local_workers={WORKERS}", path]
        with measure.Running(program.BINARY, words, self.start) as running:
            rates = measure.steps_per_second(running, timing, min(CLICKS.first_steps, options.steps))
        return [rate * CLICKS.examples_per_step("async") for rate in rates]

    def clicks(self):
        memory, stream = [], []
        for _ in range(self.options.turns):
            memory += self.click_rates({"stream": "never"})
            stream += self.click_rates({"stream": "always", "readers": 1})
        of_memory = statistics.median(stream) / statistics.median(memory)
        self.record("click model", memory=statistics.median(memory),
                    stream=statistics.median(stream), of_memory=of_memory,
                    goal="ok" if of_memory >= STREAM_GOAL else "NOT")

    def run(self):
        self.bare()
        self.find_rows()
        self.gzip()
        options = self.options
        memory, _, mib = self.train({"file": self.paths[:1], "stream": "never"})
        self.record("one file in memory", examples_per_second=memory, resident_mib=mib)
        stream, text, mib = self.train({"file": self.paths, "stream": "always",
                                        "readers": options.readers})
        stated = int(STATED.search(text)[1])
        self.record("stream", examples_per_second=stream,
                    mb_per_second=stream * self.row_bytes / 1e6, of_memory=stream / memory)
        self.record("memory of a stream", stated_mib=stated, resident_mib=mib,
                    goal="ok" if mib <= stated + RESIDENT_GOAL_MIB else "NOT")
        self.clicks()


def make_parser(text, megabytes, steps):
    parser = argparse.ArgumentParser(description=text,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dtrain", default="build/cmd/dtrain", help="the program (%(default)s)")
    parser.add_argument("--megabytes", type=int, default=megabytes, help="of all files (%(default)s)")
    parser.add_argument("--steps", type=int, default=steps, help="of each run (%(default)s)")
    parser.add_argument("--turns", type=int, default=3, help="of the click model (%(default)s)")
    parser.add_argument("--windows", type=int, default=5, help="of each turn (%(default)s)")
    parser.add_argument("--seconds", type=float, default=1,
                        help="of a window, and of the warm-up (%(default)s)")
    parser.add_argument("--folder", help="where files are made (TMPDIR)")
    parser.add_argument("--json", help="a file for every figure")
    return parser


def measure_all(bench):
    options, found = bench.options, bench.found["machine"]
    print(f"{found['processor']}, {found['cores']} cores, load {found['load']:.2f}", flush=True)
    bench.run()
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(bench.found, file, indent=1)
            file.write("\n")
    return 0


def main(arguments):
    parser = make_parser(__doc__, megabytes=2000, steps=3000)
    parser.add_argument("--readers", type=int, default=2, help="threads (%(default)s)")
    options = parser.parse_args(arguments)
    program.BINARY = os.path.abspath(options.dtrain)
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        return measure_all(Bench(options, folder))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
