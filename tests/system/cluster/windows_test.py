"""A worker in shared memory whose gradients change all the time while a ps looks at them: what it found finite is what it
applies, so that a checkpoint has numbers, or the job ends and says whose gradient was none."""
import fcntl
import json
import math
import mmap
import os
import random
import select
import signal
import socket
import struct
import time
from pathlib import Path

import garbage_test
import program
from program import wire
from program.cluster import Plan

GREETING = struct.pack("<4I", 0x6D687364, wire.VERSION, 256, 2 * (384 + 256 * 128))  # net/shm/shm.h
SECRET_BYTES = 16
SLOTS, LINE = 256, 128
RING = 3 * LINE + SLOTS * LINE
PAGES = -(-2 * RING // mmap.PAGESIZE) * mmap.PAGESIZE
NOT_A_NUMBER = 3  # exit code
LIVES = 40
PUSHED, WANTED = [1, 2, 19], [3, 4]
NOWHERE = 2 ** 62
FRONTS = [  # of one length, but what is in them
    garbage_test.front(PUSHED, WANTED), garbage_test.front(PUSHED, WANTED),
    garbage_test.front([NOWHERE, 2 ** 63 - 1, 0], [NOWHERE, 3]), garbage_test.front([2, 1, 1], [4, 4]),
    garbage_test.front(PUSHED, WANTED, counts=(2 ** 62, 2 ** 62)), garbage_test.front(PUSHED, WANTED, counts=(2, 3)),
    garbage_test.front([-2 ** 63, 2, 39], [-2 ** 63, 40])]


class Shared:
    """The connecting end of a link in shared memory: rings of headers, bodies and windows over a socket."""

    def __init__(self, offer):
        """offer: a name, and what to say there first."""
        name, _, said = offer.partition("/")
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(program.LIMIT_S)
        self.socket.connect("\0" + name)
        memory = os.memfd_create("test", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(memory, PAGES)
        fcntl.fcntl(memory, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW)
        self.rings = mmap.mmap(memory, PAGES)
        socket.send_fds(self.socket, [GREETING + bytes.fromhex(said)[:SECRET_BYTES]], [memory])
        os.close(memory)
        self.wake = socket.socket(fileno=socket.recv_fds(self.socket, len(GREETING) + SECRET_BYTES, 4)[1][0])
        self.put = self.took = 0
        self.windows = []

    def send(self, kind, body=b"", **header):
        at = 3 * LINE + LINE * (self.put % SLOTS)
        packed = wire.message(kind, body, **header)[:wire.HEADER_BYTES]
        self.rings[at + 8:at + 8 + len(packed)] = packed
        self.put += 1
        self.rings[at:at + 8] = struct.pack("<Q", self.put)
        self.socket.sendall(body)
        self.wake.send(b"x")

    def hear(self):
        """None: it hung up."""
        at = RING + 3 * LINE + LINE * (self.took % SLOTS)
        deadline = time.monotonic() + program.LIMIT_S
        while struct.unpack_from("<Q", self.rings, at)[0] != self.took + 1:
            if self.has_ended() or time.monotonic() > deadline:
                return None
            time.sleep(program.LOOK_S)
        values = wire.read_header(bytes(self.rings[at + 8:at + 8 + wire.HEADER_BYTES]))
        self.took += 1
        self.rings[RING:RING + 8] = struct.pack("<Q", self.took)
        if values["type"] == wire.NUMBERS["WINDOWS"]:
            self.windows = socket.recv_fds(self.socket, 1, 4)[1]
        body = self.socket.recv(values["body_bytes"], socket.MSG_WAITALL) if values["body_bytes"] else b""
        return wire.Heard(wire.NAMES.get(values["type"], "?"), values, body)

    def has_ended(self):
        if not select.select([self.socket], [], [], 0)[0]:
            return False  # recv would wait: a socket with a timeout heeds no MSG_DONTWAIT
        try:
            return self.socket.recv(1, socket.MSG_PEEK) == b""
        except OSError:
            return True

    def hear_kind(self, kind):
        heard = self.hear()
        while heard and heard.kind != kind:
            heard = self.hear()
        return heard

    def close(self):
        self.socket.close()
        self.wake.close()


def scribble(window, numbers):
    """In a process of its own, until it is killed."""
    memory, drawn = mmap.mmap(window, 0), random.Random(1)
    pages = [struct.pack("<1024f", *(drawn.choice(numbers) for _ in range(1024))) for _ in range(16)]
    while True:
        for at in range(0, len(memory) - 4096 + 1, 4096):
            memory[at:at + 4096] = drawn.choice(pages)


def alternate(window, fronts):
    """Likewise: fronts of a window of rows, one over the other."""
    memory = mmap.mmap(window, 0)
    while True:
        for data in fronts:
            memory[:len(data)] = data


class Guests(garbage_test.Strangers):
    def join(self, cluster):
        """As worker/1, at ps/0, in shared memory: the link, STATE, LEDGER and VALUES."""
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="utf-8").strip()
        first = self.call(cluster.address("ps/0"))
        hello = wire.greeting(cluster.hosts, "worker", 1, incarnation="7", boot_id=boot)
        first.socket.sendall(wire.message("HELLO", hello))
        offer = json.loads(first.hear().text())["shm"]
        first.close()
        deadline = time.monotonic() + program.LIMIT_S
        while True:  # the connection before it may not be missed yet
            link = Shared(offer)
            self.addCleanup(link.close)
            link.send("HELLO", hello)
            heard = link.hear()
            if heard and heard.kind == "WELCOME":
                break
            self.assertLess(time.monotonic(), deadline, heard)
        state = link.hear_kind("STATE").values
        link.send("JOIN", generation=state["generation"], task=1)
        return link, state, link.hear_kind("LEDGER").values, link.hear_kind("VALUES").values

    def scribble(self, write, *how):
        """A process that is killed with the test, or by what is returned."""
        child = os.fork()
        if child == 0:
            try:
                write(*how)
            finally:
                os._exit(0)

        def end():
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        return end


class Windows(Guests):
    def play(self, numbers):
        """Returns the cluster, which the scribbling guest has left."""
        cluster = self.start(Plan(changes={"train.mode": "async", "train.last_step": 10 ** 9, "train.checkpoint_dir": "run",
                                           "train.save_checkpoint_secs": 1, "train.log_every_steps": 10 ** 8}, absent=["worker/1"]),
                             lambda c: "step 1 of" in c.tasks["worker/0"].text())
        link, state, ledger, values = self.join(cluster)
        end = self.scribble(scribble, link.windows[1], numbers)
        window = mmap.mmap(link.windows[1], 0)
        program.wait_until(lambda: any(window[:4096]), cluster.story)
        try:
            link.send("PUSH", generation=state["generation"], push=ledger["push"] + 1, step=values["step"],
                      updates=values["updates"], gradients=1, task=1, length=values["length"])
            heard = link.hear_kind("VALUES")
            self.assertTrue(heard or not all(map(math.isfinite, numbers)), cluster.story())
        finally:
            end()
        link.close()
        return cluster

    def test_finite_ones_train_on(self):
        cluster = self.play([0.0, 1e-4, -1e-4, 3e-4])
        program.wait_until(lambda: "saved " in cluster.tasks["worker/0"].text(), cluster.story)
        self.assertFalse(any(task.has_ended() for task in cluster.tasks.values()), cluster.story())

    def test_some_that_are_no_numbers_reach_no_value(self):
        cluster = self.play([1e-4, 1e-4, 1e-4, float("nan")])
        program.wait_until(lambda: all(task.has_ended() for task in cluster.tasks.values()), cluster.story)
        self.assertRegex(cluster.story(), r"worker/1 pushed a gradient that is not finite|the sum of the gradients at step \d+ "
                                          "is not finite")
        for name, task in cluster.tasks.items():
            self.assertEqual(task.code(), NOT_A_NUMBER, (name, cluster.story()))


class WindowsOfRows(Guests):
    """Ids and numbers of rows that are others whenever the ps looks: sound ones are used, or the link ends."""
    changes = garbage_test.GarbageOfRows.changes

    def say(self, link, state, ledger, values, number):
        """Rows that are asked for, or pushed."""
        front, pushes = garbage_test.front(PUSHED, WANTED), number % 2
        about = {"generation": state["generation"], "task": 1, "push": ledger["push"] + 1}
        link.send("ROWS", flags=0 if pushes else wire.CODES["ROWS_ASKED"], length=len(front), **about)
        if pushes:
            link.send("PUSH", step=values["step"], updates=values["updates"], gradients=1, length=values["length"], **about)
        return link.hear_kind("VALUES" if pushes else "ROWS")

    def test_ids_and_counts_that_change(self):
        cluster = self.start(Plan(ps=1, changes={
            **self.changes, "placement": None, "train.mode": "async", "train.last_step": 10 ** 9, "train.checkpoint_dir": "run",
            "train.log_every_steps": 10 ** 8}, absent=["worker/1"]), lambda c: "step 1 of" in c.tasks["worker/0"].text())
        answered = 0
        for number in range(LIVES):
            link, state, ledger, values = self.join(cluster)
            end = self.scribble(alternate, link.windows[2], FRONTS)
            try:
                answered += self.say(link, state, ledger, values, number) is not None
            except OSError:
                pass  # it has hung up
            finally:
                end()
            link.close()
            self.assertFalse(any(task.has_ended() for task in cluster.tasks.values()), cluster.story())
        self.assertGreater(answered, 0)
        cluster.tasks["ps/0"].process.send_signal(signal.SIGTERM)
        self.assert_codes(cluster, garbage_test.TERMINATED)
        self.assert_says(cluster, "worker/0", "saved .*ckpt-[1-9]")


class Pool(garbage_test.Strangers):
    """Ten workers over tcp share eight windows of a ps, and eight of the workers are no good."""
    WORKERS, WINDOWS = 10, 8

    def start_pool(self):
        changes = {"train.mode": "async", "train.last_step": 10 ** 9, "model": [
            {"op": "flatten"}, {"op": "dense", "name": "wide", "units": 3000}, {"op": "dense", "name": "logits", "units": 10}]}
        absent = [f"worker/{i}" for i in range(1, self.WORKERS)]
        return self.start(Plan(ps=1, workers=self.WORKERS, changes=changes, absent=absent, flags=["--transport=tcp"]),
                          lambda c: "step 1 of" in c.tasks["worker/0"].text())

    def join(self, cluster, worker):
        """The link, and the generation that it has asked for values of."""
        link = self.call(cluster.address("ps/0"))
        link.send("HELLO", wire.greeting(cluster.hosts, "worker", worker, incarnation=f"{7 + worker:x}"))
        generation = link.hear_kind("STATE").values["generation"]
        link.send("JOIN", generation=generation, task=worker)
        return link, generation

    def expect_steps(self, cluster):
        """Who is no good is hung up on, and the one that is continues."""
        program.wait_until(lambda: "others wait for memory" in cluster.tasks["ps/0"].text(), cluster.story)
        lines = cluster.tasks["worker/0"].text().count("loss")
        program.wait_until(lambda: cluster.tasks["worker/0"].text().count("loss") > lines + 3, cluster.story)
        self.assertFalse(any(task.has_ended() for task in cluster.tasks.values()), cluster.story())

    def test_gradients_that_are_announced_and_never_come_keep_nobody_waiting(self):
        cluster = self.start_pool()
        for worker in range(1, 1 + self.WINDOWS):
            link, generation = self.join(cluster, worker)
            ledger, values = link.hear_kind("LEDGER").values, link.hear_kind("VALUES").values
            link.send("PUSH", generation=generation, push=ledger["push"] + 1, step=values["step"],
                      updates=values["updates"], gradients=1, task=worker, length=values["length"])  # and not a byte of it
        self.expect_steps(cluster)


if __name__ == "__main__":
    program.main()
