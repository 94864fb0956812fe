"""Tasks that find each other by their cluster's name, and the servers at which they do: etcd and ZooKeeper, from
Debian's packages. What a machine lacks is skipped."""
import itertools
import json
import os
import shutil
import socket
import subprocess
import tempfile
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


ASKED_S = 1  # then a server is asked again whether it is there: of a first connection it may know nothing
NO_ANSWER = "no answer in "  # of a server that is slow: whoever wants to know asks again


class NamedCase(program.FolderCase):
    """A cluster of tasks without lists; a class beside this one says what its server is. All tests of a class have one,
    each a folder of its own there."""

    numbers = itertools.count()
    tasks = "ps=2,worker=2"
    who = {}  # variables of the environment that say who asks

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="dtrain-test-")
        cls.addClassCleanup(folder.cleanup)
        cls.at_server = Path(folder.name)
        cls.server_url = cls.start_server()

    def setUp(self):
        super().setUp()
        self.url = f"{self.server_url}/tests/of-dtrain-{next(self.numbers)}"
        self.processes = {}

    @staticmethod
    def spawn_in(folder, add_cleanup, words, log, env=None):
        with open(folder / log, "ab") as out:
            process = subprocess.Popen(words, cwd=folder, stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                                       env=program.environment(env))
        add_cleanup(process.wait)
        add_cleanup(process.kill)
        return process

    @classmethod
    def spawn_server(cls, words, log, is_healthy):
        cls.server = cls.spawn_in(cls.at_server, cls.addClassCleanup, words, log)
        program.wait_until(is_healthy, lambda: (cls.at_server / log).read_text(errors="replace"))

    @classmethod
    def hold(cls, count):
        """Addresses until the class ends."""
        sockets, addresses = hold_addresses(count)
        for one in sockets:
            cls.addClassCleanup(one.close)
        return addresses

    def write_spec(self, more=None, **changes):
        spec = program.changed(SPEC, {**(more or {}), **{f"train.{key}": value for key, value in changes.items()}})
        (self.folder / "spec.json").write_text(json.dumps(spec))

    def write_idle_spec(self):
        """Of an endless job whose workers wait for rows, so that those who wait for a lease to end have the processor."""
        (self.folder / "in").mkdir()
        (self.folder / "in" / "rows.csv").write_text("x,y\n" + "0,0\n1,1\n" * 40)
        self.write_spec({"data.train": {"format": "csv", "file": "in/*.csv", "label": "y", "follow": True}, "data.eval": None,
                         "data.scale": None, "model": [{"op": "dense", "name": "logits", "units": 2}]}, last_step=ENDLESS,
                        checkpoint_dir="run")

    def start(self, name, job, *more, tasks=tasks):
        words = [os.path.abspath(program.BINARY), f"--coordinator={self.url}", "--cluster=small", f"--tasks={tasks}",
                 f"--job_name={job}", "--result=result.json", *more]
        self.processes[name] = self.spawn_in(self.folder, self.addCleanup, words + ["spec.json"] * (job != "ps"), name,
                                             self.who)

    def start_all(self, *more):
        for number, job in enumerate(("worker", "ps", "worker", "ps")):
            self.start(f"{job}-{number}", job, *more)

    def text(self, name):
        return (self.folder / name).read_text(errors="replace")

    def log(self):
        return "\n".join(f"{name}:\n{self.text(name)}" for name in self.processes)

    def ended(self, name):
        try:
            return self.processes[name].wait(LIMIT_S)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{name} has not ended\n{self.log()}") from None

    def steps(self, name):
        """How many a worker has told of."""
        return self.text(name).count(f" of {ENDLESS}, loss")

    def wait_for_steps(self, name, count):
        program.wait_until(lambda: self.steps(name) >= count, self.log)

    def wait_for(self, name, text):
        program.wait_until(lambda: text in self.text(name), lambda: f"{text!r} of {name}:\n{self.log()}")

    def holder(self, task):
        """Which process has the place: the name of its log."""
        found = [name for name in self.processes if f" {task}: found all " in self.text(name)]
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

    @classmethod
    def start_server(cls, *more):
        client, peer = cls.hold(2)
        url = f"http{'s' if cls.tls else ''}://{client}"
        cls.spawn_server(
            ["etcd", f"--data-dir={cls.at_server}/etcd", f"--listen-client-urls={url}", f"--advertise-client-urls={url}",
             f"--listen-peer-urls=http://{peer}", f"--initial-advertise-peer-urls=http://{peer}",
             f"--initial-cluster=default=http://{peer}", *more], "etcd.log", lambda: cls.is_healthy(url))
        return f"{cls.scheme}://{client}"

    @classmethod
    def is_healthy(cls, url):
        try:
            with urllib.request.urlopen(f"{url}/health", timeout=ASKED_S, context=cls.tls) as answer:
                return b"true" in answer.read()
        except (OSError, urllib.error.URLError):
            return False


@unittest.skipUnless(shutil.which("java") and JAR.exists(), "there is no ZooKeeper")
class ZooKeeper:
    @classmethod
    def start_server(cls):
        address, = cls.hold(1)
        host, _, port = address.rpartition(":")
        (cls.at_server / "zoo.cfg").write_text(ZOOKEEPER.format(folder=cls.at_server / "zookeeper", port=port))
        cls.at_address = host, int(port)
        cls.spawn_empty()
        return f"zookeeper://{address}"

    @classmethod
    def spawn_empty(cls):
        """One that knows nothing, also of what was there before."""
        shutil.rmtree(cls.at_server / "zookeeper", ignore_errors=True)
        (cls.at_server / "zookeeper").mkdir()
        cls.spawn_server(["java", "-Xmx128m", "-cp", str(JAR), "org.apache.zookeeper.server.quorum.QuorumPeerMain",
                          "zoo.cfg"], "zookeeper.log", lambda: cls.is_healthy(cls.at_address))

    @staticmethod
    def is_healthy(address):
        try:
            with socket.create_connection(address, ASKED_S) as asking:
                asking.sendall(b"srvr")
                return b"Mode: " in asking.makefile("rb").read()
        except OSError:
            return False
