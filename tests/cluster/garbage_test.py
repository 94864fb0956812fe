"""Strangers at the ports of a cluster that is at work: it takes no harm, and its job ends well."""
import json
import random
import socket
import struct

import support
from support import Plan

MAGIC, VERSION = 0x31745264, 1
HELLO, SETUP, INIT, JOIN, PUSH, FINISHED, VERDICT = 1, 4, 6, 7, 9, 10, 11
BODY_MAX = 16 << 20
IDLE = 200
LARGEST = 2 ** 64 - 1


def message(kind, body=b"", length=0, **header):
    """As net/message.h describes it: a header, and its body."""
    value = {"magic": MAGIC, "version": VERSION, "bytes": len(body), **header}
    return struct.pack("<6I6Q2I", value["magic"], kind, 1, 1, 1, value["bytes"], 1, 1, 0, 0, 0,
                       length, value["version"], 0) + body


def hello(**changes):
    me = {"protocol": VERSION, "job": "worker", "task": 1, "incarnation": "1", "ps_hosts": [],
          "worker_hosts": [], "spec": "0" * 16, "boot_id": "x", "shm": "y"}
    return message(HELLO, json.dumps({**me, **changes}).encode())


def random_bytes(seed):
    return random.Random(seed).randbytes(4096)


SAYINGS = {
    "random bytes": random_bytes(1),
    "random bytes behind a right beginning": struct.pack("<I", MAGIC) + random_bytes(2),
    "a request of another protocol": b"GET / HTTP/1.1\r\nHost: ps\r\n\r\n",
    "half a header": hello()[:40],
    "half a hello": hello()[:120],
    "a hello of another version": message(HELLO, b"{}", version=2),
    "a body beyond the limit": message(HELLO, bytes=BODY_MAX + 1),
    "a body that never comes": message(HELLO, bytes=BODY_MAX),
    "a hello that is no JSON": message(HELLO, b"\xff\xfe{"),
    "a hello that is a list": message(HELLO, b"[1, 2]"),
    "a hello that is empty": message(HELLO),
    "a hello that is deep": message(HELLO, b"[" * 100000),
    "a hello of nobody": message(HELLO, b"{}"),
    "a hello with numbers for words": hello(job=7, incarnation=-1, ps_hosts=3, spec=[]),
    "a hello of a negative task": hello(task=-1),
    "a hello of a huge task": hello(task=2 ** 62),
    "a hello of a ps": hello(job="ps", task=0),
    "a hello with strange hosts": hello(ps_hosts=[None, {}], worker_hosts=["", 7]),
    "a hello with too many hosts": hello(ps_hosts=["h:1"] * 5000),
    "a hello with long words": hello(spec="f" * 100000, boot_id="b" * 100000),
    "a setup of a stranger": message(SETUP, b"{}"),
    "initial values of a stranger": message(INIT, length=LARGEST),
    "a push of a stranger": message(PUSH, length=1 << 40),
    "a wish of a stranger": message(JOIN),
    "an end of a stranger": message(FINISHED),
    "a verdict of a stranger": message(VERDICT, b"end"),
    "an unknown message": message(4711),
}


class Garbage(support.ClusterCase):
    def start_half(self, flags=()):
        """The ps serve and the chief waits for the gradients of worker/1, which is not there."""
        plan = Plan(changes={"train.mode": "sync"}, absent=["worker/1"], flags=list(flags))
        return self.start(plan, lambda c: "step 1 of" in c.tasks["worker/0"].text() or any(
            t.has_ended() for t in c.tasks.values()))

    def call(self, address):
        host, port = address.split(":")
        stranger = socket.create_connection((host, int(port)), support.LIMIT_S)
        self.addCleanup(stranger.close)
        return stranger

    def say(self, address, words, is_heard_out):
        """Is hung up on, or hangs up itself."""
        stranger = self.call(address)
        try:
            stranger.sendall(words)
            if is_heard_out:
                while stranger.recv(4096):
                    pass
        except (ConnectionError, BrokenPipeError):
            pass  # the ps has heard enough
        stranger.close()

    def finish(self, cluster):
        self.assertFalse(any(t.has_ended() for t in cluster.tasks.values()), cluster.story())
        cluster.start("worker/1")
        self.assert_codes(cluster, 0)
        self.assert_says(cluster, "worker/0", r"(?m)^step 30, test loss")
        self.assert_prompt(cluster, cluster.tasks["worker/0"].ended_at)

    def test_strangers_that_say_nonsense_and_leave(self):
        cluster = self.start_half()
        for words in SAYINGS.values():
            for name in ("ps/0", "ps/1", "worker/0"):
                self.say(cluster.address(name), words, is_heard_out=False)
        self.finish(cluster)

    def test_strangers_that_say_nonsense_are_hung_up_on(self):
        cluster = self.start_half()
        waits_for_more = ("half a header", "half a hello", "a body that never comes",
                          "a request of another protocol")
        for about, words in SAYINGS.items():
            if about not in waits_for_more:
                self.say(cluster.address("ps/0"), words, is_heard_out=True)
        self.finish(cluster)

    def test_strangers_that_stay(self):
        cluster = self.start_half()
        for about in ("half a header", "half a hello", "a body that never comes"):
            self.call(cluster.address("ps/0")).sendall(SAYINGS[about])
        self.finish(cluster)

    def test_strangers_that_say_nothing(self):
        cluster = self.start_half(["--transport=tcp"])
        for _ in range(IDLE):
            self.call(cluster.address("ps/0"))
        self.finish(cluster)

    def test_a_hello_in_the_name_of_a_worker_that_is_there(self):
        cluster = self.start_half()
        words = hello(task=0, ps_hosts=cluster.hosts["ps"], worker_hosts=cluster.hosts["worker"])
        self.say(cluster.address("ps/0"), words, is_heard_out=True)
        self.finish(cluster)


if __name__ == "__main__":
    support.main()
