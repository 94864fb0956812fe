"""Floods of strangers: a job keeps at least half of its speed.

Steps are counted in short phases by turns, in which the same processes do the same either to the ps or to a stand-in that
nobody trains with: what they take of the machine is the same, so that what differs is what the ps does for them.
"""
import json
import multiprocessing
import os
import random
import socket
import ssl
import time
import unittest

import program
from program import has_tls, wire
from program.cluster import ClusterCase, ENDLESS, Plan

PHASE_S = 0.3
PAIRS_MIN, PAIRS_MAX = 8, 60  # of phases: an answer that is no after the first may be the machine's
HALF = 0.5
FLOODERS = 2
WAIT_S = 2  # of a flooder for anything
SPEC = {"model": [{"op": "flatten"}, {"op": "dense", "name": "softmax", "units": 10}], "train.last_step": ENDLESS,
        "train.log_every_steps": 10, "train.mode": "async"}
ASKS = wire.message("ASK", b'{"do": "get", "name": "softmax/kernel"}') * 200


def client_hello():
    """What a client of TLS says first, as often as one likes."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    out = ssl.MemoryBIO()
    try:
        context.wrap_bio(ssl.MemoryBIO(), out).do_handshake()
    except ssl.SSLWantReadError:
        pass
    return out.read()


def noise(draw):
    return bytes(draw.randrange(256) for _ in range(2000))


# What is said, in one piece, by each connection; None: it only comes
SAID = {
    "connections": lambda draw: None,
    "greetings": lambda draw: wire.message("HELLO", b"{}"),
    "long greetings": lambda draw: wire.message("HELLO", b"[" * 60000),
    "noise": noise,
    "kinds out of turn": lambda draw: wire.message(draw.choice(list(wire.NUMBERS)), length=draw.getrandbits(64)),
    "visitors": lambda draw: wire.message("HELLO", wire.greeting_of_visitor()) + ASKS,
    "handshakes": lambda draw: client_hello(),
}


def flood(kind, addresses, which, seed):
    """One connection after the other, to the address that is the one now."""
    draw = random.Random(seed)
    said = SAID[kind](draw)
    while True:
        try:
            with socket.create_connection(addresses[which.value], WAIT_S) as stranger:
                if said:
                    stranger.sendall(said)
                    stranger.recv(1 << 16)
        except OSError:
            time.sleep(0.001)


def stand_in(listener):
    while True:
        with listener.accept()[0] as stranger:
            stranger.settimeout(0.01)
            try:
                stranger.recv(1 << 16)
            except OSError:
                pass


class Flood(ClusterCase):
    def process(self, *words):
        one = multiprocessing.get_context("fork").Process(target=words[0], args=words[1:], daemon=True)
        one.start()
        self.addCleanup(one.join)
        self.addCleanup(one.kill)

    def last_step(self, cluster):
        path = os.path.join(cluster.folder, "metrics.jsonl")
        with open(path, "rb") as file:
            file.seek(max(0, os.path.getsize(path) - 4096))
            lines = file.read().split(b"\n")
        return json.loads(lines[-2])["step"] if len(lines) > 2 else 0

    def rate(self, cluster):
        first, began = self.last_step(cluster), time.monotonic()
        time.sleep(PHASE_S)
        return (self.last_step(cluster) - first) / (time.monotonic() - began)

    def keeps_half(self, kind, *flags):
        plan = Plan(ps=1, changes=SPEC, flags=["--transport=tcp", *flags],
                    flags_of={"worker/0": ["--metrics_file=metrics.jsonl"]})
        cluster = self.start(plan, lambda c: all(" of " in c.tasks[name].text() for name in ("worker/0", "worker/1")))
        listener = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listener.close)
        host, port = cluster.address("ps/0").rsplit(":", 1)
        which = multiprocessing.Value("i", 0)
        self.process(stand_in, listener)
        for seed in range(FLOODERS):
            self.process(flood, kind, [listener.getsockname(), (host, int(port))], which, seed)
        counts = [0, 0]
        for pair in range(PAIRS_MAX):
            for which.value in (0, 1):
                counts[which.value] += self.rate(cluster)
            if pair >= PAIRS_MIN and counts[1] >= HALF * counts[0] > 0:
                break
        self.assertGreater(counts[0], 0, cluster.story()[-2000:])
        self.assertGreaterEqual(counts[1], HALF * counts[0], kind)
        self.assertFalse(any(task.has_ended() for task in cluster.tasks.values()), cluster.story()[-2000:])
        cluster.kill()

    def test_a_job_without_a_key(self):
        for kind in SAID:
            if kind != "handshakes":
                with self.subTest(kind):
                    self.keeps_half(kind)

    @unittest.skipUnless(has_tls(), "this dtrain was built without TLS")
    def test_a_job_with_a_key(self):
        key = self.folder / "job.key"
        key.write_bytes(os.urandom(32))
        key.chmod(0o600)
        for kind in ("connections", "greetings", "noise", "handshakes"):
            with self.subTest(kind):
                self.keeps_half(kind, f"--key_file={key}")


if __name__ == "__main__":
    program.main()
