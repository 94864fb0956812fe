"""Values that come ahead and are taken back: what was computed from them leaves no trace.

Between the workers and each ps stands somebody who says every part of the values that comes ahead of
its step twice: wrong at first, and a moment later as the ps said it.
"""
import asyncio
import dataclasses
import re
import socket

from links import SMALL, ProxiedCluster
from program import main, wire
from program.lives import CHIEF, Life, plan_of
from proxy import DOWN, READ_BYTES_MAX, UP, Passage

LAST_STEP = 20
MOMENT_S, MOMENT_MOST_S = 0.01, 0.5  # at first, and when a busy machine needs longer for a worker to begin a step
USED, VOID = 0, 1  # of what is counted
SPECULATED = re.compile(r"(\d+) steps used their speculative forward pass, which was discarded (\d+) times")


def spoilt(message):
    """Other floats, and finite ones: their signs are turned around."""
    message = bytearray(message)
    for at in range(wire.HEADER_BYTES + 3, len(message), 4):
        message[at] ^= 0x80
    return bytes(message)


class LateValues(Passage):
    """Carries messages, and VALUES a moment later."""
    moment_s = MOMENT_S

    async def carry(self, way):
        loop, data = asyncio.get_running_loop(), bytearray()
        source, sink = self.ends[DOWN if way == UP else UP], self.ends[way]
        while more := await loop.sock_recv(source, READ_BYTES_MAX):
            data += more
            for message in wire.take_messages(data):
                await self.hand_on(loop, sink, *message)
        sink.shutdown(socket.SHUT_WR)

    async def hand_on(self, loop, sink, kind, stretch, message):
        if kind == "VALUES":
            await asyncio.sleep(self.moment_s)
        await loop.sock_sendall(sink, message)


class Doubt(LateValues):
    """Who says it twice."""
    said = 0  # wrong ones, on all connections

    def __init__(self, *about):
        super().__init__(*about)
        self.is_ahead = False  # what comes now is of a step that is not whole

    async def hand_on(self, loop, sink, kind, stretch, message):
        if kind in ("PART", "PUSH"):
            self.is_ahead = True  # the worker had all of the last step
        elif kind == "VALUES":
            self.is_ahead = False
        elif kind == "AHEAD" and stretch and self.is_ahead:
            await loop.sock_sendall(sink, spoilt(message))
            await asyncio.sleep(self.moment_s)
            type(self).said += 1
        await super().hand_on(loop, sink, kind, stretch, message)


class LatePush(LateValues):
    """Carries the last part of a gradient a moment later: those before it are applied, and told of, meanwhile."""

    async def hand_on(self, loop, sink, kind, stretch, message):
        if kind == "PUSH":
            await asyncio.sleep(self.moment_s)
        await loop.sock_sendall(sink, message)


class Foreseen(Life):
    def run_until(self, which, passage, *options, workers=(), **changes):
        """Some steps went on from what was speculated, or some of that was void: with moments that grow until a worker
        comes to begin a step within one."""
        passage.moment_s = MOMENT_S
        self.addCleanup(setattr, passage, "moment_s", MOMENT_S)
        while True:
            Doubt.said = 0
            cluster = self.run_with(passage, *options, **changes)
            if self.count_speculation(cluster, workers)[which] > 0:
                return cluster
            self.assertLess(passage.moment_s, MOMENT_MOST_S, cluster.story())
            passage.moment_s *= 4

    def run_with(self, passage, transport_of_others="tcp", **changes):
        """worker/1 always speaks TCP."""
        plan = plan_of("sync", LAST_STEP, {**SMALL, **changes}, flags=["--parts=always", "--log_level=debug"])
        reference = self.reference(plan)
        flags_of = {name: [f"--transport={'tcp' if name == 'worker/1' else transport_of_others}"]
                    for name in plan.names()}
        flags_of[CHIEF] += plan.flags_of[CHIEF]
        cluster = ProxiedCluster(self.folder, dataclasses.replace(plan, flags_of=flags_of), seed=1, ends_max=0,
                                 passage=passage)
        self.addCleanup(cluster.kill)
        cluster.start_planned()
        self.assert_done(cluster)
        self.assertEqual(cluster.proxy.trouble, [], cluster.story())
        self.assertEqual(self.differences(cluster, reference), [], cluster.story())
        return cluster

    def count_speculation(self, cluster, workers=()):
        """Of some or all: steps that went on from what was speculated, and how often that was void."""
        found = [SPECULATED.search(cluster.text_of(name)) for name in workers or cluster.workers()]
        self.assertTrue(all(found), cluster.story())
        return [sum(int(match[i]) for match in found) for i in (1, 2)]

    def test_speculation_on_other_values_is_discarded(self):
        self.run_until(VOID, Doubt)
        self.assertGreater(Doubt.said, LAST_STEP)

    def test_speculation_on_the_values_that_come_is_used(self):
        for wire_values in ("float32", "bf16"):
            with self.subTest(wire_values=wire_values):
                self.run_until(USED, LateValues, **{"train.wire_values": wire_values})

    def test_who_sees_the_memory_of_a_ps_is_told_of_what_is_there(self):
        cluster = self.run_until(USED, LatePush, "auto", workers=[CHIEF])
        self.assertIn("is here over shm", cluster.text_of(CHIEF))


if __name__ == "__main__":
    main()
