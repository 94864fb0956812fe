"""Many who say nothing, or announce much: others are let in, and a ps keeps its memory."""
import resource
import select
import subprocess
import time

import program
from program import BINARY, LIMIT_S, SANITIZER, wire
from program.cluster import lines_max
from visitors import VISITORS_MAX, VisitCase

STRANGERS_MAX = 1024  # of core/cluster/runner/task.h
GREETING_MAX = 64 << 10
ANNOUNCERS = 60
RESIDENT_MAX = 200 << 20  # a ps alone has 10 MB; 60 who announced 16 MB each once made it 994
DESCRIPTORS = 4 * STRANGERS_MAX


class Crowd(VisitCase):
    def setUp(self):
        super().setUp()
        self.address = self.lone()

    def assert_var_answers(self):
        done = subprocess.run(
            [BINARY, "var", "get", "global_step", "--ps_hosts=" + self.address],
            env=program.environment(), stdin=subprocess.DEVNULL, capture_output=True,
            text=True, timeout=LIMIT_S, check=False)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "0\n", ""),
                         self.cluster.story())

    def resident(self):
        pid = self.cluster.tasks["ps/0"].process.pid
        with open(f"/proc/{pid}/status", encoding="ascii") as status:
            return [int(line.split()[1]) << 10 for line in status if line.startswith("VmHWM")][0]

    def test_silent_visitors_lose_their_places_to_others(self):
        visitors = [self.visitor(self.address) for _ in range(VISITORS_MAX)]
        self.assert_var_answers()
        sockets = {visitor.socket: visitor for visitor in visitors}
        last = sockets[select.select(sockets, [], [], LIMIT_S)[0][0]]
        self.assertRegex(last.hear().text(), f"all {VISITORS_MAX} places of visitors are taken")
        self.assertIsNone(last.hear())

    def test_visitors_that_never_read_lose_their_places_too(self):
        for _ in range(VISITORS_MAX):
            self.visitor(self.address).send("ASK", b'{"do": "list"}')
        self.assert_var_answers()

    def test_silent_strangers_lose_their_places_to_others(self):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if hard != resource.RLIM_INFINITY and hard < DESCRIPTORS:
            self.skipTest("too few descriptors")
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, DESCRIPTORS), hard))
        since = time.monotonic()
        strangers = [self.visitor(self.address, greets=False) for _ in range(STRANGERS_MAX + 9)]
        last = strangers[0].hear()
        if last:  # else it took longer than a greeting may, and it went without a word
            self.assertEqual((last.kind, last.text()),
                             ("REFUSED", "it sent nothing, and its place is needed for others"))
        self.assert_var_answers()
        said = self.cluster.tasks["ps/0"].text().count("its place is needed for others")
        self.assertLessEqual(said, lines_max(since), self.cluster.story())

    def test_strangers_cannot_fill_the_memory(self):
        for _ in range(ANNOUNCERS):
            stranger = self.visitor(self.address, greets=False)
            body = bytes(wire.BODY_MAX)
            try:
                stranger.send("HELLO", body)
            except ConnectionError:
                pass  # the ps has heard enough
            self.assertIsNone(stranger.hear())
        for _ in range(ANNOUNCERS):  # half of what may be
            stranger = self.visitor(self.address, greets=False)
            stranger.socket.sendall(wire.message("HELLO", bytes(GREETING_MAX))[:GREETING_MAX])
        self.assert_var_answers()
        if SANITIZER == "none":
            self.assertLess(self.resident(), RESIDENT_MAX)


if __name__ == "__main__":
    program.main()
