"""Whatever code a task is told to end with, the one that it ends with is documented."""
import socket

import program
from program import wire
from program.cluster import ENDLESS, Cluster, ClusterCase, Plan, is_listened_on

DOCUMENTED = sorted(wire.read_enums(wire.read_source("core/cluster/role/verdict.h"))[
    "exit_code"].values())
FOREIGN = (4, 8, 127, 132, 255, 256, 300, 2 ** 31, 2 ** 32 - 1)
TEXT = b"the words of a stranger"


class FakePs:
    """Welcomes whoever calls, and says one thing."""

    def __init__(self, listener, hosts):
        self.listener, self.hosts = listener, hosts
        self.listener.settimeout(program.LIMIT_S)

    def tell(self, kind, code):
        """The next who calls; returns when the other side has hung up."""
        end, _ = self.listener.accept()
        with wire.Connection(end, program.LIMIT_S) as worker:
            if not worker.hear_kind("HELLO"):
                raise AssertionError("no HELLO came")
            worker.send("WELCOME", wire.greeting(self.hosts, "ps", 0))
            worker.send(kind, TEXT, exit_code=code)
            while worker.hear():
                pass


class Verdict(ClusterCase):
    def test_the_documented_codes_are_those_of_the_readme(self):
        readme = wire.read_source("README.md")
        table = readme[readme.index("| code | meaning |"):].split("\n\n")[0]
        rows = [row.split("|")[1].strip() for row in table.splitlines()]
        self.assertEqual(sorted(int(cell) for cell in rows if cell.isdigit()), DOCUMENTED)

    def be_told(self, code):
        """The code of a worker whose ps says this one."""
        cluster = Cluster(self.folder, Plan(ps=1, workers=1, flags=["--transport=tcp"]))
        self.addCleanup(cluster.kill)
        listener = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listener.close)
        cluster.hosts["ps"] = [f"127.0.0.1:{listener.getsockname()[1]}"]
        cluster.start("worker/0")
        FakePs(listener, cluster.hosts).tell("VERDICT", code)
        return cluster.wait()["worker/0"], cluster

    def test_a_worker_that_is_told_a_documented_code_ends_with_it(self):
        for code in DOCUMENTED:
            with self.subTest(code=code):
                self.assertEqual(self.be_told(code)[0], code)

    def test_a_worker_that_is_told_a_foreign_code_ends_with_a_documented_one(self):
        for code in FOREIGN:
            with self.subTest(code=code):
                found, cluster = self.be_told(code)
                self.assertIn(found, DOCUMENTED, cluster.story())
                self.assertNotEqual(found, 0, cluster.story())
                self.assert_says(cluster, "worker/0", TEXT.decode())

    def tell_ps(self, kind, code):
        """A ps that is told so by somebody instead of worker/0, and nobody else."""
        cluster = self.start(
            Plan(ps=1, workers=1, absent=["worker/0"]),
            lambda c: is_listened_on(c.address("ps/0")) or c.tasks["ps/0"].has_ended())
        with wire.Connection(cluster.address("ps/0"), program.LIMIT_S) as worker:
            worker.send("HELLO", wire.greeting(cluster.hosts, "worker", 0))
            self.assertEqual(worker.hear().kind, "WELCOME", cluster.story())
            worker.send(kind, TEXT, exit_code=code)
            self.assertIn(cluster.wait()["ps/0"], DOCUMENTED, cluster.story())
        return cluster

    def test_a_ps_that_is_told_a_foreign_code_ends_with_a_documented_one(self):
        for code in FOREIGN:
            with self.subTest(code=code):
                cluster = self.tell_ps("VERDICT", code)
                self.assertNotEqual(cluster.codes()["ps/0"], 0, cluster.story())

    def test_a_job_that_is_stopped_with_a_foreign_code_ends_with_a_documented_one(self):
        changes = {"train.mode": "sync", "train.last_step": ENDLESS}
        for code in (8, 300, 2 ** 32 - 1):
            with self.subTest(code=code):
                cluster = self.start(
                    Plan(changes=changes, absent=["worker/1"], flags=["--stop_timeout=1"]),
                    lambda c: "step 1 of" in c.tasks["worker/0"].text() or
                    any(t.has_ended() for t in c.tasks.values()))
                with wire.Connection(cluster.address("ps/0"), program.LIMIT_S) as worker:
                    worker.send("HELLO", wire.greeting(cluster.hosts, "worker", 1))
                    self.assertIsNotNone(worker.hear_kind("STATE"), cluster.story())
                    worker.send("STOP", TEXT, exit_code=code)
                for name, found in cluster.wait().items():
                    self.assertIn(found, DOCUMENTED, f"{name}\n{cluster.story()}")


if __name__ == "__main__":
    program.main()
