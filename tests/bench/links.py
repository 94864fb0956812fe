#!/usr/bin/env python3
"""links.py - what a step costs between hosts: 2 ps + 2 workers on two hosts with a link between them.

    tests/bench/links.py                              all of it as root, about half an hour
    tests/bench/links.py --quick --only mlp_sgd       a first look
    tests/bench/links.py --binary OLD --binary NEW    two programs in turn, each of which is measured
    tests/bench/links.py --torch-python PYTHON        beside PyTorch

Hosts are network namespaces of this machine; each rate is that of the link, each way, in Gbit/s.
mixed: a ps and a worker on each host; apart: all ps on one, all workers on the other. Variables are
cut into two parts, so that each ps has half of the bytes. A worker has the threads that it has where
both are on one host. A step is a batch of every worker: in asynchronous mode two global steps.

Beside the time of a step stand those of the same step on one host (over mapped memory), and over a
link that is not limited, and the time in which a bare socket brings the bytes of one step across,
one way: all gradients and values that go in the direction that has more of them. A step should
take little more than the longer of the last two. All are medians of runs that were made in turn.

Where all ps are apart, the step is also held against what dtrain plan says of it, which measures
what a step computes with one ps and one worker; of a link that two tasks share it is told the half.

The peer is PyTorch's DistributedDataParallel over gloo, a process on each host, with as many
threads. What a program does not know (train.wire, train.wire_values) is not measured.

The exit code is 0 when everything was measured, whether or not a goal was met.
"""
import argparse
import functools
import itertools
import json
import os
import signal
import statistics
import subprocess
import sys
from dataclasses import dataclass

sys.dont_write_bytecode = True  # the folder is part of the source

import environment
import gpu_measure
import lines
import measure
import peers
from program.hosts import Hosts, start_with_us
from run import machine, positive, version, words
from workloads import MODES, PS, WORKERS, WORKLOADS

ONE_HOST = ("shm", "tcp")
TWO_HOSTS = ("mixed", "apart")
LAYOUTS = ("shm", *TWO_HOSTS)  # unless asked for others
NOT_LIMITED = "none"
RATES = ("10", "2.5", "1", NOT_LIMITED)
NUMBER_BYTES = {"float32": 4, "bf16": 2, "fp16": 2}  # on its way
WIRES = {  # what gradients travel as, and values
    "float32": ("float32", "float32"), "bf16": ("bf16", "float32"), "fp16": ("fp16", "float32"),
    "bf16+values": ("bf16", "bf16"), "fp16+values": ("fp16", "fp16"),
}
NARROW_RATE = "1"  # Gbit/s, where numbers of fewer bytes and the peer have goals
STEPS = {"cnn": 40, "mlp_sgd": 200}  # that are measured in a run; a quarter as many come before
LOG_EVERY_STEPS = 4
STEP_LIMIT_S = 5
FIRST_PORT = {"ps": 2221, "worker": 2321}
PARTS = {"type": "fixed_size", "num_shards": PS}

PLAN_GOAL = 1.2  # times what was planned, or that times the step
STEP_GOALS = {"mixed": 1.15, "apart": 1.2}  # times the longer of what a step is made of
TORCH_GOAL = 1.9  # times its examples/s
# Numbers of fewer bytes, times the step with float32; two runs of one program are as far apart as
# NOT_SLOWER.
NOT_SLOWER = 1.02
WIRE_GOALS = {"mixed": NOT_SLOWER, "apart": 0.8}


@dataclass(frozen=True)
class Timing:
    steps: int
    warmup: int


@dataclass(frozen=True)
class Case:
    """What one figure is of; rate is None on one host."""

    workload: object
    mode: str
    layout: str
    rate: str = None
    wire: str = "float32"

    def names(self):
        return {"workload": self.workload.name, "mode": self.mode, "layout": self.layout,
                "rate": self.rate, "wire": self.wire}

    def spec(self):
        return os.path.join(measure.SPECS, self.workload.name + ".json")

    def settings(self):
        chosen = {"train.mode": self.mode, "train.log_every_steps": LOG_EVERY_STEPS,
                  "placement.partitioner": json.dumps(PARTS)}
        for key, number in zip(("train.wire", "train.wire_values"), WIRES[self.wire]):
            if number != "float32":
                chosen[key] = number
        return [word for key, value in chosen.items() for word in ("--set", f"{key}={value}")]

    def batches(self):
        """That are one global step."""
        return WORKERS if self.mode == "sync" else 1


def rate_mbit(rate):
    """Of a link; None: not limited."""
    return None if rate == NOT_LIMITED else round(float(rate) * 1000)


def side(layout, job, index):
    """On which of two hosts a task is."""
    return index % 2 if layout == "mixed" else int(job == "worker")


def bytes_one_way(layout, shares, wire):
    """Of a step of every worker, in the direction that has more of them; shares: bytes by ps."""
    across = [0, 0]
    gradient, value = (NUMBER_BYTES[number] for number in WIRES[wire])
    for (ps, share), worker in itertools.product(enumerate(shares), range(WORKERS)):
        of_ps, of_worker = side(layout, "ps", ps), side(layout, "worker", worker)
        if of_ps != of_worker:
            across[of_worker] += share * gradient // NUMBER_BYTES["float32"]
            across[of_ps] += share * value // NUMBER_BYTES["float32"]
    return max(across)


def step_seconds(points, timing, batches):
    """A step of every worker after the warm-up; None: there are too few points yet."""
    per_step = WORKERS // batches  # global steps
    warm = [point for point in points if point[1] >= timing.warmup * per_step]
    late = [point for point in warm if point[1] >= warm[0][1] + timing.steps * per_step]
    if not late:
        return None
    return (late[0][0] - warm[0][0]) / (late[0][1] - warm[0][1]) * per_step


def held(figure, of, at_most=None, at_least=None):
    """A figure, what it is a ratio to, and whether it reaches its goal (None: it has none)."""
    is_ok = None
    if at_most is not None:
        is_ok = figure <= at_most
    elif at_least is not None:
        is_ok = figure >= at_least
    return {"figure": figure, "of": of, "at_most": at_most, "at_least": at_least, "is_ok": is_ok}


def judge(case, step_s, beside):
    """What the step is held against; beside: seconds of the others, by name, None: not measured."""
    found = []
    is_narrow, is_plain = case.rate == NARROW_RATE, case.wire == "float32"
    if case.layout in TWO_HOSTS and case.rate != NOT_LIMITED:
        goal = STEP_GOALS[case.layout] if is_plain else None
        if beside["free"] and beside["transfer"]:
            longer = max(beside["free"], beside["transfer"])
            found.append(held(step_s / longer, "the longer", at_most=goal))
    if beside["plan"]:
        found.append(held(max(step_s / beside["plan"], beside["plan"] / step_s),
                          f"the plan ({1e3 * beside['plan']:.1f} ms)", at_most=PLAN_GOAL))
    if beside["torch"]:
        goal = TORCH_GOAL if is_narrow and case.mode == "sync" else None
        found.append(held(beside["torch"] / step_s, "PyTorch", at_least=goal))
    if not is_plain and beside["float32"]:
        found.append(held(step_s / beside["float32"], "float32",
                          at_most=WIRE_GOALS.get(case.layout) if is_narrow else None))
    if beside["first"]:
        found.append(held(step_s / beside["first"], "the first program",
                          at_most=NOT_SLOWER if case.layout in ONE_HOST else None))
    return found


class Cluster(measure.Running):
    """A cluster on two hosts, of which the chief is what measure.Running waits for.

    counts: of ps and workers; more: words for every worker.
    """

    def __init__(self, dtrain, hosts, case, threads, counts=(PS, WORKERS), more=()):
        def tasks(job, count):
            return ",".join(f"{hosts.ADDRESSES[side(case.layout, job, i)]}:{FIRST_PORT[job] + i}"
                            for i in range(count))

        def start(job, index, command, **how):
            flags = [f"--job_name={job}", f"--task_index={index}"]
            return hosts.start(side(case.layout, job, index), [*command, *flags, *lists], **how)

        ps, workers = counts
        lists = [f"--ps_hosts={tasks('ps', ps)}", f"--worker_hosts={tasks('worker', workers)}"]
        worker_words = [f"--threads={threads}", *case.settings(), *more, case.spec()]
        super().__init__(dtrain, worker_words, functools.partial(start, "worker", 0))
        for index in range(ps):
            start("ps", index, [dtrain], **self.how)
        for index in range(1, workers):
            start("worker", index, [dtrain, *worker_words], **self.how)

    def __exit__(self, *others):
        self.process.kill()  # and nobody waits for the verdict of the job
        super().__exit__(*others)


class Bench(measure.Attempts):
    """One run: what was asked for, and what was found so far."""

    def __init__(self, options):
        self.options = options
        self.threads = max(1, len(os.sched_getaffinity(0)) // WORKERS)
        self.torch = gpu_measure.Torch(options.torch_python, "cpu")
        self.found = {"machine": machine(), "dtrain": [version(name) for name in options.binary],
                      "torch": self.torch.version or self.torch.reason, "steps": [],
                      "failures": []}
        several = len(options.binary) > 1
        self.letters = {name: chr(ord("A") + i) if several else ""
                        for i, name in enumerate(options.binary)}
        self.samples = {}  # (what, case): seconds of a step

    def timing(self, workload):
        steps = self.options.steps or STEPS[workload.name] // (4 if self.options.quick else 1)
        return Timing(steps, max(1, steps // 4))

    def knows(self, case):
        """Whether all programs take the case's settings."""
        done = [subprocess.run([name, "check", *case.settings(), case.spec()], check=False,
                               capture_output=True, timeout=measure.START_LIMIT_S,
                               env=environment.clean()) for name in self.options.binary]
        return all(one.returncode == 0 for one in done)

    def cases(self, workload, mode):
        """In the order in which they are measured; what they are held against is among them."""
        one_host = [layout for layout in ONE_HOST if layout in (*self.options.layouts, "shm")]
        found = [Case(workload, mode, layout) for layout in one_host]
        rates = dict.fromkeys((NOT_LIMITED, *self.options.rates))
        wires = [wire for wire in self.options.wires
                 if self.knows(Case(workload, mode, "shm", wire=wire))]
        for layout, rate, wire in itertools.product(TWO_HOSTS, rates, wires):
            if layout in self.options.layouts and (wire == "float32" or rate == NARROW_RATE):
                found.append(Case(workload, mode, layout, rate, wire))
        return found

    def shares(self, case):
        """Bytes of values by ps."""
        done = subprocess.run([self.options.binary[0], "check", f"--local_ps={PS}",
                               *case.settings(), case.spec()], capture_output=True, check=True,
                              timeout=measure.START_LIMIT_S, env=environment.clean())
        return [int(count) for _, count in measure.SHARE.findall(done.stdout)]

    # ---- samples ----

    def sample(self, what, case, body, *arguments):
        seconds = self.attempt(body, *arguments)
        if seconds is not None:
            self.samples.setdefault((what, case), []).append(seconds)

    def median(self, what, case):
        """Of the samples so far; None: there are none."""
        found = self.samples.get((what, case))
        return statistics.median(found) if found else None

    def wait(self, running, case):
        timing = self.timing(case.workload)
        limit_s = measure.START_LIMIT_S + STEP_LIMIT_S * (timing.warmup + timing.steps)
        return running.wait_until(
            lambda: step_seconds(running.points(), timing, case.batches()), limit_s,
            f"{timing.warmup + timing.steps} steps")

    def on_one_host(self, dtrain, case):
        flags = [f"--local_ps={PS}", f"--local_workers={WORKERS}", f"--transport={case.layout}"]
        words_of_case = [*flags, *case.settings(), case.spec()]
        with measure.Running(dtrain, words_of_case, start_with_us) as running:
            return self.wait(running, case)

    def on_two_hosts(self, dtrain, case):
        with Hosts(rate_mbit(case.rate)) as hosts, \
                Cluster(dtrain, hosts, case, self.threads) as running:
            return self.wait(running, case)

    def transfer(self, case):
        with Hosts(rate_mbit(case.rate)) as hosts:
            size = bytes_one_way(case.layout, self.shares(case), case.wire)
            return hosts.transfer_seconds(size)

    def peer(self, case):
        with Hosts(rate_mbit(case.rate)) as hosts:
            return peers.torch_ddp(self.options.torch_python, hosts, case.spec(), self.threads,
                                   self.timing(case.workload))

    def planned(self, case):
        link = float(case.rate) / WORKERS
        done = subprocess.run([self.options.binary[0], "plan", "--json", f"--ps={PS}",
                               f"--workers={WORKERS}", f"--link={link}",
                               f"--measure={self.timing(case.workload).steps}",
                               f"--threads={self.threads}", *case.settings(), case.spec()],
                              capture_output=True, check=True, timeout=measure.START_LIMIT_S,
                              env=environment.clean())
        return json.loads(done.stdout)["layout"]["step_seconds"]

    def turn(self, cases):
        """Each once."""
        for case in cases:
            is_between = case.layout in TWO_HOSTS
            measured = self.on_two_hosts if is_between else self.on_one_host
            for name in self.options.binary:
                self.sample(name, case, measured, name, case)
            if is_between:
                self.sample("transfer", case, self.transfer, case)
            if case.layout == "apart" and case.rate != NOT_LIMITED:
                self.sample("plan", case, self.planned, case)
            if self.has_peer(case):
                self.sample("torch", case, self.peer, case)

    def has_peer(self, case):
        return (not self.torch.reason and case.layout == "mixed" and case.mode == "sync"
                and case.wire == "float32")

    # ---- what comes of them ----

    def beside(self, name, case):
        """Seconds of everything that the program's step is held against."""
        def other(**changes):
            return Case(case.workload, **{**changed, **changes})

        changed = {key: value for key, value in case.names().items() if key != "workload"}
        first = self.options.binary[0]
        return {"one_host": self.median(name, Case(case.workload, case.mode, "shm")),
                "free": self.median(name, other(rate=NOT_LIMITED, wire="float32")),
                "transfer": self.median("transfer", case),
                "plan": self.median("plan", case),
                "torch": self.median("torch", other(mode="sync", wire="float32")),
                "float32": self.median(name, other(wire="float32")),
                "first": self.median(first, case) if name != first else None}

    def keep(self, case):
        for name in self.options.binary:
            step_s = self.median(name, case)
            if step_s is None:
                continue
            beside = self.beside(name, case)
            record = {**case.names(), "program": self.letters[name], "samples": self.samples[name, case],
                      "step_s": step_s, "beside": beside,
                      "examples_per_second": WORKERS * case.workload.batch / step_s,
                      "goals": judge(case, step_s, beside)}
            self.found["steps"].append(record)
            print(lines.step(record), flush=True)

    def run(self):
        chosen = [workload for workload in WORKLOADS if workload.name in self.options.only]
        for workload, mode in itertools.product(chosen, self.options.mode):
            cases = self.cases(workload, mode)
            for _ in range(self.options.repeats):
                self.turn(cases)
            print(lines.STEP_HEAD, flush=True)
            for case in cases:
                self.keep(case)
        goals = [goal["is_ok"] for record in self.found["steps"] for goal in record["goals"]
                 if goal["is_ok"] is not None]
        print(f"{sum(goals)} of {len(goals)} goals met, {len(self.found['failures'])} failures")


def rates(text):
    """An argparse type: Gbit/s, comma-separated."""
    found = tuple(text.split(","))
    for rate in found:
        try:
            is_good = rate == NOT_LIMITED or 0.01 <= float(rate) <= 1000
        except ValueError:
            is_good = False
        if not is_good:
            raise argparse.ArgumentTypeError(f"{rate!r}: expected Gbit/s from 0.01 to 1000, or none")
    return found


def default_binary():
    root = os.path.dirname(os.path.dirname(measure.FOLDER))
    return os.path.join(root, "build", "cmd", "dtrain")


def read_options(arguments):
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    names, layouts = tuple(STEPS), (*ONE_HOST, *TWO_HOSTS)
    add = parser.add_argument
    add("--binary", action="append", metavar="PATH", help="the program; several: each in turn")
    add("--only", type=words(names), default=names, metavar=",".join(names))
    add("--mode", type=words(MODES), default=("sync", "async"), metavar=",".join(MODES))
    add("--layouts", type=words(layouts), default=LAYOUTS, metavar=",".join(layouts))
    add("--rates", type=rates, default=RATES, metavar=",".join(RATES))
    add("--wires", type=words(tuple(WIRES)), default=("float32", "bf16", "bf16+values"),
        metavar=",".join(WIRES), help=f"others than float32 at {NARROW_RATE} Gbit/s alone")
    add("--steps", type=positive(int), help=f"of each run: {STEPS}")
    add("--repeats", type=positive(int), help="runs of each: 3, quick 1")
    add("--quick", action="store_true", help="one run of a quarter of the steps")
    add("--torch-python", metavar="PYTHON", default=gpu_measure.default_python())
    add("--json", metavar="FILE", help="all figures, as one object")
    options = parser.parse_args(arguments)
    options.binary = options.binary or [default_binary()]
    options.repeats = options.repeats or (1 if options.quick else 3)
    return options


def announce(bench):
    found = bench.found
    print(f"{found['machine']['processor']}, {found['machine']['cores']} cores, load "
          f"{found['machine']['load']:.2f}; {PS} ps + {WORKERS} workers of {bench.threads} threads")
    for name, said in zip(bench.options.binary, found["dtrain"]):
        print(f"{bench.letters[name]} {name}: {'; '.join(said)}".strip())
    print(f"PyTorch: {found['torch']}")
    if environment.left_out():
        print("left out of the environment: " + ", ".join(environment.left_out()))


def main(arguments):
    options = read_options(arguments)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # removes its folders, as for ^C
    try:
        with Hosts(None):
            bench = Bench(options)
    except (OSError, subprocess.SubprocessError, measure.Failed) as trouble:
        print(f"links.py: {trouble}", file=sys.stderr)
        return 2
    announce(bench)
    bench.run()
    bench.write()
    return 1 if bench.found["failures"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
