"""Clusters of the real binary: every task is a process of its own on a port of this host.

A test describes a cluster (Plan) and gets a started one (Cluster), whose tasks print to files. Its
ports are reserved by sockets that are bound but never listen: with SO_REUSEADDR a task can listen
there, each time it is started, and the system gives the port to no one else, not even to an outgoing
connection while the task is down.
"""
import contextlib
import dataclasses
import json
import os
import random
import socket
import subprocess
import tempfile
import time
import unittest

import program
from program import LIMIT_S, SLOWER, wait_until

PROMPT_S = 50  # from the end of the chief to that of the last task, on a busy machine; less than any limit of theirs
START_S = 5 * SLOWER  # for those who are started to be there, where another one is waited for in vain
LOG_EVERY_S = 10  # until the same line is logged again
PENDING = ("SigPnd:", "ShdPnd:")  # of a thread, of the process
AHEAD = 400  # steps that are left to a job that is to end, or more
ENDLESS = 1000000000  # steps
PORTS, PORT_TRIES = (20000, 32000), 100  # below those that the system uses for connections

SPEC = {
    "name": "small",
    "data": {
        "train": {"format": "digits", "rows": 400},
        "eval": {"format": "digits", "rows": 100, "split": "test"},
        "batch_size": 20,
        "scale": 0.0039,
    },
    "model": [
        {"op": "flatten"},
        {"op": "dense", "name": "hidden", "units": 16, "activation": "relu"},
        {"op": "dense", "name": "logits", "units": 10},
    ],
    "loss": {"op": "softmax_cross_entropy"},
    "metrics": ["accuracy"],
    "optimizer": {"type": "momentum", "learning_rate": 0.05, "momentum": 0.9},
    "train": {"last_step": 30, "log_every_steps": 1},
}


def by_flags(task, hosts, spec):
    """How a task is told its role: arguments, and environment variables."""
    job, index = task.split("/")
    return [f"--job_name={job}", f"--task_index={index}", f"--ps_hosts={','.join(hosts['ps'])}",
            f"--worker_hosts={','.join(hosts['worker'])}"] + spec, {}


def by_environment(task, hosts, spec):
    job, index = task.split("/")
    return spec, {"JOB_NAME": job, "TASK_INDEX": index, "PS_HOSTS": ",".join(hosts["ps"]),
                  "WORKER_HOSTS": ",".join(hosts["worker"])}


def by_tf_config(task, hosts, spec):
    """As for TensorFlow's estimators: worker 0 is in a job of its own, "chief"."""
    job, index = task.split("/")
    chief, *workers = hosts["worker"]
    own = {"type": job, "index": int(index)}
    if job == "worker":
        own = {"type": "chief", "index": 0} if index == "0" else {"type": job,
                                                                  "index": int(index) - 1}
    cluster = {"chief": [chief], "worker": workers, "ps": hosts["ps"]}
    return spec, {"TF_CONFIG": json.dumps({"cluster": cluster, "task": own})}


@dataclasses.dataclass
class Plan:
    """What to start. Names of tasks are as messages spell them: "ps/0", "worker/1"."""
    ps: int = 2
    workers: int = 2
    changes: dict = dataclasses.field(default_factory=dict)  # of the small spec
    flags: list = dataclasses.field(default_factory=list)  # of every task
    flags_of: dict = dataclasses.field(default_factory=dict)  # of one: {"ps/0": [...]}
    order: list = None  # of the start, each after the one before it listens; None: all at once
    absent: list = dataclasses.field(default_factory=list)  # not started
    told: object = by_flags

    def names(self):
        return [f"ps/{i}" for i in range(self.ps)] + [f"worker/{i}" for i in range(self.workers)]


def hold_addresses(count):
    """Sockets and their addresses, which are reserved until they are closed."""
    sockets = []
    for _ in range(count):
        one = socket.socket()
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        one.bind(("127.0.0.1", 0))
        sockets.append(one)
    return sockets, [f"127.0.0.1:{one.getsockname()[1]}" for one in sockets]


def free_ports(count):
    """Consecutive ports that are free now, for programs that take port numbers."""
    for _ in range(PORT_TRIES):
        first = random.randrange(*PORTS, count)
        held = []
        try:
            for port in range(first, first + count):
                held.append(socket.create_server(("127.0.0.1", port)))
            return list(range(first, first + count))
        except OSError:
            pass
        finally:
            for one in held:
                one.close()
    raise unittest.SkipTest("no ports are free")


def is_listened_on(address):
    """Looks in the system's socket table, since a connection would disturb the task."""
    wanted = f"0100007F:{int(address.rpartition(':')[2]):04X}"
    with open("/proc/net/tcp", encoding="ascii") as table:
        return any(line.split()[1] == wanted and line.split()[3] == "0A" for line in table)


def lines_max(since):
    """How often the same line may have been logged since then."""
    return 1 + (time.monotonic() - since) / LOG_EVERY_S


def limited(descriptors):
    """Arguments to put before a program's, to limit its open files; None: the same limit as here."""
    return ["sh", "-c", f'ulimit -n {descriptors} && exec "$0" "$@"'] if descriptors else []


class Task:
    """A process that prints to a file. descriptors: how many it may have open; before: arguments of a command that
    executes it."""

    def __init__(self, folder, name, words, env=None, descriptors=None, before=()):
        self.name = name
        self.path = os.path.join(folder, name.replace("/", "-") + ".log")
        self.ended_at = None
        with open(self.path, "ab") as log:
            self.process = subprocess.Popen([*before, *limited(descriptors), program.BINARY, *words],
                                            cwd=folder, env=program.environment(env), stdin=subprocess.DEVNULL,
                                            stdout=log, stderr=log)

    def text(self):
        with open(self.path, encoding="utf-8") as log:
            return log.read()

    def has_ended(self):
        if self.process.poll() is not None and self.ended_at is None:
            self.ended_at = time.monotonic()
        return self.ended_at is not None

    def is_held_up(self):
        """Whether a SIGSTOP has taken effect."""
        with open(f"/proc/{self.process.pid}/stat", encoding="utf-8") as file:
            return file.read().rpartition(")")[2].split()[0] == "T"

    def is_pending(self, signo):
        """Whether a signal is pending."""
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as file:
            pending = [int(line.split()[1], 16) for line in file if line[:7] in PENDING]
        return any(mask >> (signo - 1) & 1 for mask in pending)

    def code(self):
        return self.process.returncode

    def kill(self):
        if not self.has_ended():
            self.process.kill()
            self.process.wait(LIMIT_S)
        program.no_crash(self.code(), f"{self.name}: {self.text()}")


class Cluster:
    """The tasks of a plan, as they run."""

    def __init__(self, folder, plan):
        self.folder = tempfile.mkdtemp(dir=str(folder))
        self.plan = plan
        self.spec_path = os.path.join(self.folder, "spec.json")
        self.sockets, addresses = hold_addresses(plan.ps + plan.workers)
        self.hosts = {"ps": addresses[:plan.ps], "worker": addresses[plan.ps:]}
        self.tasks = {}
        with open(self.spec_path, "w", encoding="utf-8") as file:
            json.dump(program.changed(SPEC, plan.changes), file)

    def address(self, name):
        job, index = name.split("/")
        return self.hosts[job][int(index)]

    def start(self, name, *more, label=None, descriptors=None, before=()):
        """label: another name for its file, if the task is started twice. A ps gets no spec."""
        spec = [] if name.startswith("ps/") else ["spec.json"]
        words, env = self.plan.told(name, self.hosts, spec)
        every_step = ["--log_every_secs=0"] if name.startswith("worker/") else []  # tests count their lines
        words = every_step + self.plan.flags + self.plan.flags_of.get(name, []) + list(more) + words
        task = Task(self.folder, label or name, words, env, descriptors, before)
        self.tasks[label or name] = task
        return task

    def start_planned(self):
        for name in self.plan.order or self.plan.names():
            if name in self.plan.absent:
                continue
            task = self.start(name)
            if self.plan.order:
                self.wait_until(lambda n=name, t=task: is_listened_on(self.address(n)) or
                                t.has_ended(), f"{name} to listen")

    def wait_until(self, is_true, what):
        """what: a text, or a function that returns one at the end."""
        wait_until(is_true, lambda: f"{what() if callable(what) else what}\n{self.story()}")

    def wait_for(self, name, words):
        """Waits until the task prints them, or ends without."""
        task = self.tasks[name]
        self.wait_until(lambda: words in task.text() or task.has_ended(), f"{words!r} of {name}")
        if words not in task.text():
            raise AssertionError(f"{name} ended without {words!r}\n{self.story()}")

    def wait(self):
        """Waits until all have ended; returns their codes."""
        self.wait_until(lambda: all([task.has_ended() for task in self.tasks.values()]),
                        "all tasks to end")
        return self.codes()

    def codes(self):
        return {name: task.code() for name, task in self.tasks.items()}

    def story(self):
        return "\n".join(f"--- {name}, code {task.code()}:\n{task.text()}"
                         for name, task in self.tasks.items())

    def kill(self):
        for held in self.sockets:
            held.close()
        with contextlib.ExitStack() as stack:  # all of them, even if one had crashed
            for task in self.tasks.values():
                stack.callback(task.kill)

    def read(self, name):
        with open(os.path.join(self.folder, name), encoding="utf-8") as file:
            return file.read()

    def result(self):
        return json.loads(self.read("result.json"))

    def metrics(self, worker=0):
        """What the worker wrote at every step: a list of objects."""
        return [json.loads(line) for line in self.read(f"metrics-{worker}.jsonl").splitlines()]


def with_files(plan):
    """The same, and every worker writes its metrics, the chief its result."""
    flags_of = {name: list(flags) for name, flags in plan.flags_of.items()}
    for worker in range(plan.workers):
        flags_of.setdefault(f"worker/{worker}", []).append(
            f"--metrics_file=metrics-{worker}.jsonl")
    flags_of["worker/0"].append("--result=result.json")
    return dataclasses.replace(plan, flags_of=flags_of)


class ClusterCase(program.FolderCase):
    def start(self, plan, is_far_enough):
        """A cluster that has come so far."""
        cluster = Cluster(self.folder, plan)
        self.addCleanup(cluster.kill)
        cluster.start_planned()
        cluster.wait_until(lambda: is_far_enough(cluster), "a start")
        return cluster

    def run_to_end(self, plan):
        """A cluster that has ended, each task with code 0."""
        cluster = self.start(plan, lambda c: all([t.has_ended() for t in c.tasks.values()]))
        self.assert_codes(cluster, 0)
        return cluster

    def start_endless(self, plan):
        """A cluster that trains until it is stopped; every worker has taken a step."""
        changes = {**plan.changes, "train.last_step": ENDLESS, "train.log_every_steps": ENDLESS}
        workers = [name for name in plan.names() if name.startswith("worker")]
        return self.start(dataclasses.replace(plan, changes=changes), lambda c: all(
            f" of {ENDLESS}, loss" in c.tasks[name].text() or c.tasks[name].has_ended()
            for name in workers))

    def asked(self, cluster, *words):
        """What a command from outside says of this job, when it has ended."""
        return program.run([*words, f"--timeout={LIMIT_S}", "--ps_hosts=" + ",".join(cluster.hosts["ps"])], cluster.folder)

    def status(self, cluster):
        done = self.asked(cluster, "status", "--json")
        self.assertEqual(done.returncode, 0, done.stderr + cluster.story())
        return json.loads(done.stdout)

    def end_soon(self, cluster):
        """At which step it is to end: some steps from now, however fast they are."""
        for ahead in (AHEAD * 4**i for i in range(8)):
            step = max(int(task["counters"].get("global_step", 0)) for task in self.status(cluster)["tasks"]) + ahead
            done = self.asked(cluster, "set", "last_step", step)
            if done.returncode == 0:
                return step
            self.assertIn("already", done.stderr)
        return self.fail("it is faster than any number of steps")

    def assert_codes(self, cluster, code):
        self.assertEqual(cluster.wait(), dict.fromkeys(cluster.tasks, code), cluster.story())

    def assert_says(self, cluster, name, pattern):
        self.assertRegex(cluster.tasks[name].text(), pattern, cluster.story())

    def assert_prompt(self, cluster, since, limit_s=PROMPT_S):
        late = {n: t.ended_at - since for n, t in cluster.tasks.items()
                if t.ended_at - since > limit_s}
        self.assertEqual(late, {}, cluster.story())
