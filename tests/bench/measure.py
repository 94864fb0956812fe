"""measure.py - runs dtrain on this host and takes its figures.

Every cluster is started by dtrain itself (--local_ps, --local_workers), with its output in a file,
and has ended, or was killed, when a function here returns.
"""
import argparse
import contextlib
import json
import os
import re
import signal
import statistics
import subprocess
import tempfile
import time
from dataclasses import dataclass

import environment
from workloads import PS, WORKERS, Workload

FOLDER = os.path.dirname(os.path.abspath(__file__))
SPECS = os.path.join(FOLDER, "specs")
LOOK_EVERY_S = 0.1  # seldom: looking takes time from what is measured
START_LIMIT_S = 60  # from launch to the first line of figures
START_STEPS = 30  # enough that the chief mostly has one of them, few enough to end at once
STARTS_MAX = 20  # of which one has a step of the chief
END_LIMIT_S = 20  # from the signal to the end
LOG_TAIL_BYTES = 2000
PS_TASK = re.compile(rb"--job_name=ps\0--task_index=(\d+)")
SHARE = re.compile(rb"ps (\d+): \d+ slices?, (\d+) bytes")


class Failed(Exception):
    """A program did not do what is measured; the text says which and how it ended."""


def make_parser(doc):
    """Flags of every bench that makes checkpoints."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dtrain", type=os.path.abspath, default="build/cmd/dtrain", help="the program (%(default)s)")
    parser.add_argument("--folder", help="where checkpoints are written (TMPDIR)")
    parser.add_argument("--json", help="a file for every figure")
    return parser


class Attempts:
    """What a bench tries; what it finds, failures too, is kept in self.found, and written where
    self.options.json says."""

    TROUBLES = (Failed, OSError, ValueError, KeyError)

    def announce(self):
        found = self.found["machine"]
        print(f"{found['processor']}, {found['cores']} cores, load {found['load']:.2f}", flush=True)

    def write(self):
        if not self.options.json:
            return
        with open(self.options.json, "w", encoding="utf-8") as file:
            json.dump(self.found, file, indent=1)
            file.write("\n")

    def attempt(self, body, *arguments):
        """What body gives; a failure is printed and kept, and the run continues without it."""
        try:
            return body(*arguments)
        except self.TROUBLES as trouble:
            self.found["failures"].append(str(trouble))
            print(f"FAILED: {trouble}", flush=True)
            return None


@dataclass(frozen=True)
class Case:
    """What one figure is of."""

    workload: Workload
    mode: str
    transport: str

    def names(self):
        return {"workload": self.workload.name, "mode": self.mode, "transport": self.transport}

    def logging(self):
        return {"log_every_steps": self.workload.log_every_steps[self.mode]}


class Running:
    """dtrain as it runs, with these words after its name; leaving the `with` block ends it.

    start: what makes a process, with subprocess.Popen's options.
    """

    def __init__(self, dtrain, words, start=subprocess.Popen):
        self.folder = tempfile.TemporaryDirectory(prefix="dtrain-bench-")
        self.metrics_path = self.path("metrics")
        self.result_path = self.path("result")
        self.log = open(self.path("log"), "wb")
        command = [dtrain, f"--metrics_file={self.metrics_path}", f"--result={self.result_path}",
                   *words]
        self.started_unix = time.time()
        self.how = {"stdin": subprocess.DEVNULL, "stdout": self.log, "stderr": self.log,
                    "start_new_session": True, "env": environment.clean()}
        self.process = start(command, **self.how)

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        self.wait(END_LIMIT_S)
        self.log.close()
        self.folder.cleanup()

    def wait(self, limit_s):
        """The exit code; one that takes too long is killed, and if it launched tasks they too."""
        try:
            return self.process.wait(limit_s)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()

    def printed(self):
        return read_bytes(self.path("log"))

    def fail(self, what):
        tail = self.printed()[-LOG_TAIL_BYTES:].decode(errors="replace")
        raise Failed(f"{' '.join(self.process.args)}: {what}\n{tail}")

    def wait_until(self, claim, limit_s, what):
        """Until claim() gives something; it must be running until then."""
        deadline = time.monotonic() + limit_s
        while not (found := claim()):
            if self.process.poll() is not None:
                self.fail(f"ended with exit code {self.process.returncode} before {what}")
            if time.monotonic() > deadline:
                self.fail(f"no {what} after {limit_s:.0f} s")
            time.sleep(LOOK_EVERY_S)
        return found

    def points(self):
        """What the chief has written so far: (seconds, global step), in order."""
        try:
            with open(self.metrics_path, encoding="utf-8") as file:
                lines = file.read().split("\n")[:-1]
        except FileNotFoundError:
            return []
        return [(p["seconds"], p["step"]) for p in map(json.loads, lines)]

    def result(self):
        with open(self.result_path, encoding="utf-8") as file:
            return json.load(file)


class LocalCluster(Running):
    """A running local cluster."""

    def __init__(self, dtrain, case, settings, flags=()):
        words = [*flags, f"--local_ps={PS}", f"--local_workers={WORKERS}", f"--transport={case.transport}"]
        for key, value in {"mode": case.mode, **settings}.items():
            words += ["--set", f"train.{key}={value}"]
        for key, value in case.workload.settings.items():
            words += ["--set", f"{key}={value}"]
        super().__init__(dtrain, [*words, os.path.join(SPECS, case.workload.spec_name())])

    def ps_memory(self):
        """By task index: the memory of every parameter server, a child of the launcher."""
        found = {}
        for pid in children(self.process.pid):
            match = PS_TASK.search(read_bytes(f"/proc/{pid}/cmdline"))
            if match:
                found[int(match.group(1))] = resident(pid)
        return found

    def shares(self):
        """By task index: bytes of values of every parameter server, as the chief printed them."""
        return {int(ps): int(count) for ps, count in SHARE.findall(self.printed())}


def read_bytes(path):
    with open(path, "rb") as file:
        return file.read()


def children(parent):
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            stat = read_bytes(f"/proc/{name}/stat")
        except OSError:
            continue  # it has ended meanwhile
        if int(stat.rpartition(b")")[2].split()[1]) == parent:
            found.append(int(name))
    return found


def resident(pid):
    """Bytes of memory of a process: their peak, and what is there now by what it holds."""
    text = read_bytes(f"/proc/{pid}/status").decode(errors="replace")
    fields = dict(line.split(":", 1) for line in text.splitlines())
    names = {"peak": "VmHWM", "anonymous": "RssAnon", "file": "RssFile", "shared": "RssShmem"}
    return {name: int(fields[field].split()[0]) * 1024 for name, field in names.items()}


def window_rates(points, warmup_s, window_s):
    """Steps per second in the windows that follow the warm-up.

    A window ends with the first point that lies at least window_s behind its beginning.
    """
    rates = []
    start = None
    for seconds, step in points:
        if start is None:
            if seconds >= points[0][0] + warmup_s:
                start = (seconds, step)
        elif seconds - start[0] >= window_s:
            rates.append((step - start[1]) / (seconds - start[0]))
            start = (seconds, step)
    return rates


def steps_per_second(running, timing, first_steps=0):
    """One figure per window."""
    limit_s = START_LIMIT_S + 4 * (timing.warmup_s + timing.windows * timing.window_s)

    def rates():
        points = [(seconds, step) for seconds, step in running.points() if step >= first_steps]
        found = window_rates(points, timing.warmup_s, timing.window_s)
        return found if len(found) >= timing.windows else None

    running.wait_until(running.points, START_LIMIT_S, "first step")
    return running.wait_until(rates, limit_s, f"{timing.windows} windows")[:timing.windows]


def throughput(dtrain, case, timing):
    """Examples/s of all workers together, one figure per window."""
    with LocalCluster(dtrain, case, case.logging()) as cluster:
        found = steps_per_second(cluster, timing, case.workload.first_steps)
    examples = case.workload.examples_per_step(case.mode)
    return [rate * examples for rate in found]


def arithmetic(dtrain, workload, timing):
    """Examples/s of lone processes that train the spec without ps, one for every worker, all at once."""
    words = [f"--set=train.log_every_steps={workload.log_every_steps['sync']}",
             os.path.join(SPECS, workload.bounds.arithmetic + ".json")]
    with contextlib.ExitStack() as running:
        lone = [running.enter_context(Running(dtrain, words)) for _ in range(WORKERS)]
        return sum(statistics.median(steps_per_second(one, timing)) for one in lone) * workload.batch


def first_step(dtrain, case):
    """Seconds from the launch of a short run to the end of the chief's first step.

    Of an asynchronous run the other worker may have made steps before that, and all of them on a busy machine: then it
    is run again.
    """
    for _ in range(STARTS_MAX):
        with LocalCluster(dtrain, case, {"last_step": START_STEPS}) as cluster:
            code = cluster.wait(START_LIMIT_S)
            if code != 0:
                cluster.fail(f"ended with exit code {code}")
            result = cluster.result()
            if result["own_steps"]:
                return result["first_step_unix"] - cluster.started_unix
    raise Failed(f"the chief made no step in {STARTS_MAX} runs")


def ps_memory(dtrain, case, timing):
    """Of every ps of a run after the warm-up: its memory, and the bytes of its values and slots."""
    with LocalCluster(dtrain, case, case.logging()) as cluster:
        cluster.wait_until(lambda: window_rates(cluster.points(), 0, timing.warmup_s),
                           START_LIMIT_S, "warm-up")
        held, shares = cluster.ps_memory(), cluster.shares()
        if set(held) != set(range(PS)) or set(shares) != set(held):
            cluster.fail(f"expected {PS} ps, found processes {set(held)} and shares {set(shares)}")
    return [dict(held[ps], state=shares[ps] * (1 + case.workload.slots)) for ps in range(PS)]
