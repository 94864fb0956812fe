"""A link on which every byte needs a millisecond each way: the same bits, and one round trip a step.

Round trips are counted in messages: a worker that has pushed says nothing more before its next push,
so that each of its steps waits once for what the ps answer. Nobody is to take the chief's place, which it would keep by
a word now and then.
"""
import asyncio
import dataclasses
import socket

from links import SMALL, ProxiedCluster
from program import main, wire
from program.lives import Life, plan_of
from proxy import DOWN, READ_BYTES_MAX, UP, Passage

DELAY_S = 0.001
LAST_STEP = 40
OF_STEPS = {"PART", "PUSH"}
OF_CHECKPOINTS = {"SAVE", "RESUME"}  # the chief's, beside its steps
OF_SECONDS = {"COUNTERS"}  # once in each, and nobody waits for them


def kinds_in(data):
    """Of the whole messages that a task has sent, in their order, but for what it tells beside."""
    return [kind for kind, _, _ in wire.take_messages(bytearray(data)) if kind not in OF_SECONDS]


class LongWay(Passage):
    """Carries as much as any other, later."""
    said = []  # by workers, on each connection

    async def carry(self, way):
        under_way = asyncio.Queue()
        tasks = [asyncio.create_task(self.leave(way, under_way)),
                 asyncio.create_task(self.arrive(way, under_way))]
        try:
            await asyncio.gather(*tasks)
        finally:
            await self.stop(tasks)

    async def leave(self, way, under_way):
        loop, said = asyncio.get_running_loop(), bytearray()
        if way == UP:
            self.said.append(said)
        data = True
        while data:
            data = await loop.sock_recv(self.ends[DOWN if way == UP else UP], READ_BYTES_MAX)
            said += data
            under_way.put_nowait((loop.time() + DELAY_S, data))

    async def arrive(self, way, under_way):
        loop, data = asyncio.get_running_loop(), True
        while data:
            due_s, data = await under_way.get()
            await asyncio.sleep(due_s - loop.time())
            await loop.sock_sendall(self.ends[way], data)
        self.ends[way].shutdown(socket.SHUT_WR)


class Delay(Life):
    def run_far_apart(self, plan):
        LongWay.said.clear()
        cluster = ProxiedCluster(self.folder, plan, seed=1, ends_max=0, passage=LongWay)
        self.addCleanup(cluster.kill)
        cluster.start_planned()
        self.assert_done(cluster)
        self.assertEqual(cluster.proxy.trouble, [], cluster.story())
        return cluster

    def check_round_trips(self):
        pushing = [kinds for kinds in map(kinds_in, LongWay.said) if "PUSH" in kinds]
        self.assertEqual(len(pushing), 6)  # 2 ps, 3 workers
        for kinds in pushing:
            last = len(kinds) - kinds[::-1].index("PUSH")
            step_by_step = kinds[kinds.index("PUSH"):last]
            self.assertEqual(step_by_step.count("PUSH"), LAST_STEP)
            self.assertLessEqual(set(step_by_step), OF_STEPS | OF_CHECKPOINTS)

    def test_a_delay_changes_no_bit_and_a_step_is_one_round_trip(self):
        for parts in ("never", "always"):
            with self.subTest(parts=parts):
                plan = plan_of("sync", LAST_STEP, SMALL,
                               flags=["--transport=tcp", f"--parts={parts}", "--chief_timeout=0"])
                reference = self.reference(plan)
                far = dataclasses.replace(plan, flags_of={**plan.flags_of})
                cluster = self.run_far_apart(far)
                self.assertEqual(self.differences(cluster, reference), [], cluster.story())
                self.check_round_trips()


if __name__ == "__main__":
    main()
