#!/usr/bin/env python3
"""serving.py - what `dtrain serve` takes: of one row until its answer, of many rows in a second, and while a
checkpoint is taken.

    meson setup build && ninja -C build
    tests/bench/serving.py                            about a minute
    tests/bench/serving.py --seconds 10 --json figures.json
    tests/bench/serving.py --buckets 320000           a checkpoint of 1 GB
    tests/bench/serving.py --python PYTHON            beside TensorFlow and onnxruntime, which that one has
    tests/bench/serving.py --fresh_millions 60        fresh rows of a table of 3.8 GB, for which 12 GB are needed

A click model (26 ids, an MLP of 256 and 128) is trained for a few steps; its rows are sent by one client per
core, each a process. One row a request: the 99th percentile stands beside that of the same request to a model that
is not there, which libmicrohttpd reads as well and which nobody looks into. 256 rows a request: rows per second
stand beside those of `dtrain eval`. The reload is of the same checkpoint under another step, while clients go
on: no request may be lost, and the slowest is told. Beside the 256 rows stand a Python server of few lines that
answers by the exported SavedModel, and onnxruntime, which gets arrays and no requests. Fresh rows: of a table in which
training touches about 1 % of the rows between two deltas, how long after training they are served, and what of the
steps that costs.

Nothing else should run on the machine. The exit code is 0 when everything was measured, whether or not a
goal was met.
"""
import contextlib
import http.client
import json
import multiprocessing
import os
import random
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True  # the folder is part of the source

import measure
import program
from run import machine, version

IDS, BUCKETS, ROWS = 26, 10000, 20000
MANY = 256  # rows of a request
ADDED_MS_GOAL, SHARE_GOAL, SLOWEST_MS_GOAL = 0.3, 0.7, 50
TIMES_GOAL, FRESH_S_GOAL, LOST_STEPS_GOAL = 3, 15, 0.05
TOUCHED, FRESH_BATCH = 0.01, 1000
BESIDE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "serving_beside.py")
RATE = re.compile(r"([\d,]+) examples/s")


def spec_of(buckets):
    names = [f"C{i + 1}" for i in range(IDS)]
    source = {"format": "jsonl", "file": "rows.jsonl", "label": "click"}
    tables = [{"op": "embedding", "name": f"e{name}", "inputs": [name], "dimension": 16} for name in names]
    return {
        "name": "clicks",
        "data": {"train": source, "eval": source, "batch_size": MANY, "eval_batch_size": MANY,
                 "columns": [{"column": "identity", "name": name, "buckets": buckets} for name in names]},
        "model": [*tables, {"op": "concat", "name": "all", "inputs": [f"e{name}" for name in names]},
                  {"op": "dense", "name": "a", "units": 256, "activation": "relu"},
                  {"op": "dense", "name": "b", "units": 128, "activation": "relu"},
                  {"op": "dense", "name": "logit", "units": 1}],
        "loss": "sigmoid_cross_entropy",
        "optimizer": {"type": "adagrad", "learning_rate": 0.05},
        "train": {"last_step": 20, "checkpoint_dir": "run"},
    }


def make_rows(count):
    draw = random.Random(1)
    return [{"click": draw.randrange(2), **{f"C{i + 1}": draw.randrange(BUCKETS) for i in range(IDS)}} for _ in range(count)]


def ask_for(port, name, bodies, seconds, wanted):
    """Milliseconds of each request, and what was not as it should be."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=program.LIMIT_S)
    taken, wrong = [], 0
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        body = bodies[len(taken) % len(bodies)]
        began = time.perf_counter()
        connection.request("POST", f"/v1/models/{name}:predict", body)
        answer = connection.getresponse()
        answer.read()
        taken.append((time.perf_counter() - began) * 1000)
        wrong += answer.status != wanted
    connection.close()
    return taken, wrong


class Serving:
    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        self.found = {"machine": machine(), "dtrain": version(program.BINARY), "records": []}
        self.clients = options.clients or len(os.sched_getaffinity(0))
        self.rows = make_rows(options.rows)
        with open(os.path.join(folder, "rows.jsonl"), "w", encoding="utf-8") as file:
            file.writelines(json.dumps(row) + "\n" for row in self.rows)
        with open(os.path.join(folder, "spec.json"), "w", encoding="utf-8") as file:
            json.dump(spec_of(options.buckets), file)

    def record(self, name, **figures):
        self.found["records"].append({"name": name, **figures})
        print(f"{name:24} " + ", ".join(f"{key} {value:,.2f}" for key, value in figures.items()), flush=True)

    def run(self, *words):
        ended = program.run(words, self.folder)
        if ended.returncode:
            raise measure.Failed(f"{words[0]}: {ended.stdout}{ended.stderr}")
        return ended.stdout

    def bodies(self, rows):
        starts = range(0, len(self.rows) - rows + 1, rows)
        return [json.dumps({"instances": self.rows[at:at + rows]}) for at in list(starts)[:200]]

    def ask(self, port, name, rows, wanted, beside=None):
        """By all clients at once; beside() is called meanwhile."""
        work = (port, name, self.bodies(rows), self.options.seconds, wanted)
        with multiprocessing.get_context("fork").Pool(self.clients) as pool:
            answers = pool.starmap_async(ask_for, [work] * self.clients)
            if beside:
                beside()
            answers = answers.get()
        taken = sorted(ms for one, _ in answers for ms in one)
        return taken, sum(wrong for _, wrong in answers)

    def one_row(self, port):
        taken, wrong = self.ask(port, "clicks", 1, 200)
        bare, _ = self.ask(port, "absent", 1, 404)
        at = [one[int(0.99 * (len(one) - 1))] for one in (taken, bare)]
        self.record("one row", median_ms=statistics.median(taken), p99_ms=at[0], bare_p99_ms=at[1],
                    added_ms=at[0] - at[1], goal_ms=ADDED_MS_GOAL, wrong=wrong)

    def many_rows(self, port):
        taken, wrong = self.ask(port, "clicks", MANY, 200)
        rate = len(taken) * MANY / self.options.seconds
        said = self.run("eval", "spec.json", "--checkpoint=run")
        evaluated = float(RATE.search(said)[1].replace(",", ""))
        self.record(f"{MANY} rows", rows_per_s=rate, eval_rows_per_s=evaluated, share=rate / evaluated, goal=SHARE_GOAL, wrong=wrong)
        return rate

    def export(self, form):
        self.run("export", "spec.json", "--checkpoint=run", f"--format={form}", f"--out={form}")
        (made,) = [name for name in os.listdir(os.path.join(self.folder, form)) if not name.endswith(".data")]
        return os.path.join(self.folder, form, made)

    def beside(self, rate):
        """The same rows by the same clients, answered by TensorFlow; and onnxruntime without any"""
        python, model = [self.options.python, BESIDE], self.export("saved_model")
        with subprocess.Popen([*python, "server", model], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as server:
            try:
                taken, wrong = self.ask(int(server.stdout.readline()), "clicks", MANY, 200)
            finally:
                server.kill()
        other = len(taken) * MANY / self.options.seconds
        self.record("TensorFlow's SavedModel", rows_per_s=other, times=rate / other, goal=TIMES_GOAL, wrong=wrong)
        said = subprocess.run([*python, "onnx", self.export("onnx"), str(MANY), str(self.options.seconds)], check=True,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
        self.record("onnxruntime, no requests", rows_per_s=float(said), share=rate / float(said))

    def publish(self):
        """The same values under another step, in the middle."""
        time.sleep(self.options.seconds / 2)
        run = os.path.join(self.folder, "run")
        for name in os.listdir(run):
            if name.startswith("model.ckpt-20."):
                shutil.copy(os.path.join(run, name), os.path.join(run, name.replace("-20.", "-21.", 1)))
        with open(os.path.join(run, "new"), "w", encoding="utf-8") as file:
            file.write('model_checkpoint_path: "model.ckpt-21"\nall_model_checkpoint_paths: "model.ckpt-21"\n')
        os.rename(os.path.join(run, "new"), os.path.join(run, "checkpoint"))

    def reload(self, port):
        taken, wrong = self.ask(port, "clicks", 1, 200, self.publish)
        self.record("reload", slowest_ms=taken[-1], goal_ms=SLOWEST_MS_GOAL, requests=len(taken), lost=wrong)

    @contextlib.contextmanager
    def started(self, *words):
        """A task that tells its port for HTTP, until it is stopped"""
        ready = os.path.join(self.folder, f"{words[0]}.ready")
        with open(os.path.join(self.folder, "log"), "ab") as log:
            task = subprocess.Popen([program.BINARY, *words, f"--ready_file={ready}"], cwd=self.folder, env=program.environment(),
                                    stdout=log, stderr=log)
        try:
            program.wait_until(lambda: os.path.exists(ready) or task.poll() is not None, lambda: words)
            with open(ready, encoding="utf-8") as file:
                yield json.load(file)["http_port"]
            task.send_signal(signal.SIGTERM)
            if task.wait(program.LIMIT_S) not in (0, 143):
                raise measure.Failed(f"dtrain {words[0]} ended with {task.returncode}")
        finally:
            task.kill()
            task.wait()
            if os.path.exists(ready):
                os.unlink(ready)

    def counted(self, port, name):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=program.LIMIT_S)
        with contextlib.closing(connection):
            connection.request("GET", "/metrics")
            said = connection.getresponse().read().decode()
        found = re.search(rf"^dtrain_{name}(?:{{[^}}]*}})? (\S+)$", said, re.M)
        return float(found[1]) if found else 0

    def grown(self, port, name, begun):
        """By how much, once it has: counters are put up now and then."""
        program.wait_until(lambda: self.counted(port, name) > begun, lambda: f"more of {name}")
        return self.counted(port, name) - begun

    def steps_per_s(self, port, seconds):
        begun, began = self.grown(port, "steps_total", 0), time.monotonic()
        time.sleep(seconds)
        return self.grown(port, "steps_total", begun) / (time.monotonic() - began)

    def fresh(self):
        """The data name so many of the rows that a delta has its part of them."""
        rows = int(self.options.fresh_millions * 1e6)
        spec = {"name": "fresh", "data": {"train": {"format": "clicks", "rows": int(rows * TOUCHED), "buckets": rows, "skew": 0},
                                          "columns": [{"column": "identity", "name": "c1", "buckets": rows}], "batch_size": FRESH_BATCH},
                "model": [{"op": "embedding", "name": "e", "inputs": ["c1"], "dimension": 16}, {"op": "dense", "name": "logit", "units": 1}],
                "loss": "sigmoid_cross_entropy", "optimizer": {"type": "gradient_descent", "learning_rate": 0.01},
                "train": {"last_step": 2000000000, "checkpoint_dir": "fresh", "log_every_steps": 1000000000, "save_checkpoint_secs": 3600}}
        with open(os.path.join(self.folder, "fresh.json"), "w", encoding="utf-8") as file:
            json.dump(spec, file)
        seconds = max(3 * self.options.publish_secs, self.options.seconds)
        publish = json.dumps({"every_secs": self.options.publish_secs})
        with self.started("fresh.json", "--http=127.0.0.1:0") as port:
            alone = self.steps_per_s(port, seconds)
        with self.started("fresh.json", "--http=127.0.0.1:0", f"--set=train.publish={publish}") as port, \
                self.started("serve", "fresh.json", "--checkpoint=fresh", "--follow", "--port=0", "--poll_secs=0.1") as served:
            program.wait_until(lambda: self.counted(served, "serve_deltas_total") > 0, lambda: "a delta")
            ages, end = [], time.monotonic() + seconds
            begun, began = self.counted(port, "steps_total"), time.monotonic()
            deltas = self.counted(port, "checkpoint_deltas_total"), self.counted(port, "checkpoint_delta_bytes_total")
            while time.monotonic() < end:
                ages.append(self.counted(served, "serve_age_seconds"))
                time.sleep(0.2)
            beside = self.grown(port, "steps_total", begun) / (time.monotonic() - began)
            more = self.grown(port, "checkpoint_deltas_total", deltas[0])
            size = self.grown(port, "checkpoint_delta_bytes_total", deltas[1]) / more
        self.record("fresh rows", oldest_s=max(ages), newest_s=min(ages), goal_s=FRESH_S_GOAL, delta_mb=size / 1e6,
                    steps_lost=1 - beside / alone, goal=LOST_STEPS_GOAL, steps_per_s=alone)

    def all(self):
        self.run("spec.json")
        with self.started("serve", "spec.json", "--checkpoint=run", "--port=0", "--poll_secs=0.1") as port:
            self.one_row(port)
            rate = self.many_rows(port)
            if self.options.python:
                self.beside(rate)
            self.reload(port)
        if self.options.fresh_millions:
            self.fresh()


def main(arguments=None):
    parser = measure.make_parser(__doc__)
    parser.add_argument("--seconds", type=float, default=8, help="of each figure (%(default)s)")
    parser.add_argument("--clients", type=int, default=0, help="at a time; 0: one per core")
    parser.add_argument("--rows", type=int, default=ROWS, help="of the data (%(default)s)")
    parser.add_argument("--buckets", type=int, default=BUCKETS, help="rows of each of the 26 tables (%(default)s)")
    parser.add_argument("--python", help="one that has TensorFlow and onnxruntime")
    parser.add_argument("--fresh_millions", type=float, default=0, help="rows of a table of which deltas are served; 0: none is")
    parser.add_argument("--publish_secs", type=float, default=10, help="between these deltas (%(default)s)")
    options = parser.parse_args(arguments)
    program.BINARY = options.dtrain
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        serving = Serving(options, folder)
        serving.all()
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(serving.found, file, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
