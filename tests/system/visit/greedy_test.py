"""Strangers and visitors that come, say and ask as much as they can: training continues, and ends when it is told to.

How much of a job's speed messages take, tests/fuzz/test_floods.c counts by turns, and whether guests get more than their
share, tests/net/test_guests.c. How much greetings and TLS take of a ps is not counted.
"""
import json
import os
import random
import signal
import ssl
import threading
import unittest

import program
from program import has_tls, wire
from program.cluster import Plan
from visitors import VisitCase, Visitor

STEPS = 100
EACH = 2  # of a kind at once
WAIT_S = 0.1  # it blocks soon: nobody hears it
LARGE = {"model": [{"op": "flatten"},
                   {"op": "dense", "name": "hidden", "units": 76, "activation": "relu"},
                   {"op": "dense", "name": "logits", "units": 10}]}
ASK = '{"do": "get", "name": "hidden/kernel"}'  # 784 * 76 numbers
CHANGE = b'{"do": "add", "name": "hidden/kernel", "shape": []}\0' + bytes(8)
SAVES = {"train.checkpoint_dir": "run", "train.save_checkpoint_secs": 100000}
FLAGS = ["--metrics_file=metrics.jsonl", "--set=train.log_every_steps=1"]
TERMINATED = 143


class Crowd:
    """Threads that do something to a ps again and again until they are told to stop."""

    def __init__(self, visit, count=EACH):
        self.has_ended = threading.Event()
        self.visit = visit
        self.threads = [threading.Thread(target=self.run) for _ in range(count)]
        for thread in self.threads:
            thread.start()

    def run(self):
        while not self.has_ended.is_set():
            try:
                self.visit(self.has_ended.is_set)
            except OSError:
                pass  # turned away, or the ps has gone

    def stop(self):
        self.has_ended.set()
        for thread in self.threads:
            thread.join()


def client_hello():
    """What a client of TLS says first."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    out = ssl.MemoryBIO()
    try:
        context.wrap_bio(ssl.MemoryBIO(), out).do_handshake()
    except ssl.SSLWantReadError:
        pass
    return out.read()


# What strangers say, in one piece, on each of their connections
SAID = {
    "nothing": b"",
    "greetings": wire.message("HELLO", b"{}"),
    "long greetings": wire.message("HELLO", b"[" * 60000),
    "noise": random.Random(1).randbytes(2000),
    "kinds out of turn": b"".join(wire.message(kind, length=2 ** 40) for kind in random.Random(1).sample(sorted(wire.NUMBERS), 9)),
    "handshakes": client_hello(),
}


class Greedy(VisitCase):
    def say(self, words):
        def visit(is_over):
            with wire.Connection(self.address, program.LIMIT_S) as stranger:
                if words:
                    stranger.socket.sendall(words)
                    stranger.socket.recv(1 << 16)
        return visit

    def ask_and_never_read(self, is_over):
        with Visitor(self.address) as visitor:
            visitor.greet()
            visitor.socket.settimeout(WAIT_S)
            while not is_over():
                try:
                    visitor.send("ASK", ASK.encode())
                except TimeoutError:
                    pass

    def ask_and_read(self, is_over):
        with Visitor(self.address) as visitor:
            visitor.greet()
            while not is_over() and visitor.ask(ASK):
                pass

    def change(self, is_over):
        with Visitor(self.address) as visitor:
            visitor.greet()
            while not is_over():
                visitor.send("ASK", CHANGE)
                if not visitor.hear():
                    return

    def last_step(self):
        path = os.path.join(self.cluster.folder, "metrics.jsonl")
        with open(path, "rb") as file:
            file.seek(max(0, os.path.getsize(path) - 4096))
            lines = file.read().split(b"\n")
        return json.loads(lines[-2])["step"] if len(lines) > 2 else 0

    def goes_on_and_ends(self, crowds, *flags):
        """Steps are made while each crowd is there; and with all of them at once the job ends well."""
        self.cluster = self.start_endless(Plan(ps=1, workers=1, changes={**LARGE, **SAVES}, flags=["--transport=tcp", *flags],
                                               flags_of={"worker/0": FLAGS}))
        self.address = self.cluster.address("ps/0")
        for about, visit in crowds.items():
            with self.subTest(about):
                first, crowd = self.last_step(), Crowd(visit)
                try:
                    self.cluster.wait_until(lambda f=first: self.last_step() >= f + STEPS, f"{STEPS} steps beside {about}")
                finally:
                    crowd.stop()
        for visit in crowds.values():
            self.addCleanup(Crowd(visit, 1).stop)
        self.cluster.tasks["worker/0"].process.send_signal(signal.SIGTERM)
        self.assert_codes(self.cluster, TERMINATED)
        self.assert_says(self.cluster, "worker/0", r"saved .*model\.ckpt-[1-9]")

    def test_a_job_without_a_key(self):
        said = {about: self.say(words) for about, words in SAID.items() if about != "handshakes"}
        self.goes_on_and_ends({**said, "asks that are not read": self.ask_and_never_read, "asks": self.ask_and_read,
                               "changes": self.change})

    @unittest.skipUnless(has_tls(), "this dtrain was built without TLS")
    def test_a_job_with_a_key(self):
        key = self.folder / "job.key"
        key.write_bytes(os.urandom(32))
        key.chmod(0o600)
        said = {about: self.say(SAID[about]) for about in ("nothing", "greetings", "noise", "handshakes")}
        self.goes_on_and_ends(said, f"--key_file={key}")


if __name__ == "__main__":
    program.main()
