"""Tasks that find each other by their cluster's name, and the servers at which they do: etcd and ZooKeeper, from
Debian's packages. What a machine lacks is skipped."""
import json
import os
import shutil
import subprocess
import unittest
import urllib.error
import urllib.request
from pathlib import Path

import program
from program import LIMIT_S
from program.cluster import ENDLESS, SPEC, hold_addresses

TASKS = ("ps/0", "ps/1", "worker/0", "worker/1")
JAR = Path("/usr/share/java/zookeeper.jar")
ZOOKEEPER = "tickTime=500\ndataDir={folder}\nclientPort={port}\nclientPortAddress=127.0.0.1\nadmin.enableServer=false\n"


class NamedCase(program.FolderCase):
    """A cluster of tasks without lists; a class beside this one says what its server is."""

    tasks = "ps=2,worker=2"
    who = {}  # variables of the environment that say who asks

    def setUp(self):
        super().setUp()
        self.url = f"{self.start_server()}/tests/of dtrain".replace(" ", "-")
        self.processes = {}

    def spawn(self, words, log, env=None):
        with open(self.folder / log, "ab") as out:
            process = subprocess.Popen(words, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                                       env=program.environment(env))
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def write_spec(self, **changes):
        spec = program.changed(SPEC, {f"train.{key}": value for key, value in changes.items()})
        (self.folder / "spec.json").write_text(json.dumps(spec))

    def start(self, name, job, *more, tasks=tasks):
        words = [os.path.abspath(program.BINARY), f"--coordinator={self.url}", "--cluster=small", f"--tasks={tasks}",
                 f"--job_name={job}", "--result=result.json", *more]
        self.processes[name] = self.spawn(words + ["spec.json"] * (job != "ps"), name, self.who)

    def start_all(self, *more):
        for number, job in enumerate(("worker", "ps", "worker", "ps")):
            self.start(f"{job}-{number}", job, *more)

    def text(self, name):
        return (self.folder / name).read_text(errors="replace")

    def log(self):
        return "\n".join(f"{name}:\n{self.text(name)}" for name in self.processes)

    def ended(self, name):
        return self.processes[name].wait(LIMIT_S)

    def steps(self, name):
        """How many a worker has told of."""
        return self.text(name).count(f" of {ENDLESS}, loss")

    def wait_for_steps(self, name, count):
        program.wait_until(lambda: self.steps(name) >= count, self.log)

    def wait_for(self, name, text):
        program.wait_until(lambda: text in self.text(name), lambda: f"{text!r} of {name}:\n{self.log()}")

    def holder(self, task):
        """Which process has the place: the name of its log."""
        found = [name for name in self.processes if f" {task}: found all tasks" in self.text(name)]
        return found[-1] if found else None

    def wait_for_places(self):
        program.wait_until(lambda: all(map(self.holder, TASKS)), self.log)

    def newest_step(self):
        return max((int(path.stem.rpartition("-")[2]) for path in self.folder.glob("run/*.index")), default=0)

    def check_ends(self):
        codes = {name: self.ended(name) for name in self.processes}
        self.assertEqual(set(codes.values()), {0}, self.log())

    def ask(self, command, *words):
        """From outside the cluster."""
        process = subprocess.Popen([os.path.abspath(program.BINARY), command, *words, f"--coordinator={self.url}",
                                    "--cluster=small"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True, env=program.environment(self.who))
        self.addCleanup(process.kill)
        return process

    def visit(self, *words):
        return self.ask("var", *words)

    def answer(self, visitor):
        out, error = visitor.communicate(timeout=LIMIT_S)
        self.assertEqual(visitor.returncode, 0, f"{error}\n{self.log()}")
        return out.rstrip("\n")


@unittest.skipUnless(shutil.which("etcd"), "there is no etcd")
class Etcd:
    scheme = "etcd"
    tls = None  # an ssl.SSLContext

    def start_server(self, *more):
        sockets, (client, peer) = hold_addresses(2)
        for one in sockets:
            self.addCleanup(one.close)
        url = f"http{'s' if self.tls else ''}://{client}"
        self.server = self.spawn(
            ["etcd", f"--data-dir={self.folder}/etcd", f"--listen-client-urls={url}", f"--advertise-client-urls={url}",
             f"--listen-peer-urls=http://{peer}", f"--initial-advertise-peer-urls=http://{peer}",
             f"--initial-cluster=default=http://{peer}", *more], "etcd.log")
        program.wait_until(lambda: self.is_healthy(url), lambda: self.text("etcd.log"))
        return f"{self.scheme}://{client}"

    def is_healthy(self, url):
        try:
            with urllib.request.urlopen(f"{url}/health", timeout=LIMIT_S, context=self.tls) as answer:
                return b"true" in answer.read()
        except (OSError, urllib.error.URLError):
            return False


@unittest.skipUnless(shutil.which("java") and JAR.exists(), "there is no ZooKeeper")
class ZooKeeper:
    def start_server(self):
        sockets, (address,) = hold_addresses(1)
        self.addCleanup(sockets[0].close)
        (self.folder / "zookeeper").mkdir()
        (self.folder / "zoo.cfg").write_text(ZOOKEEPER.format(folder=self.folder / "zookeeper",
                                                              port=address.rpartition(":")[2]))
        self.server = self.spawn(["java", "-Xmx128m", "-cp", str(JAR),
                                  "org.apache.zookeeper.server.quorum.QuorumPeerMain", "zoo.cfg"], "zookeeper.log")
        return f"zookeeper://{address}"
