"""Tasks that may open few files and connections (ulimit -n): the job continues as well as it can and
says why; and what strangers do fills no log."""
import os
import re
import resource
import signal
import socket
import time

import program
from program import wire
from program.cluster import START_S, Cluster, ClusterCase, Plan, is_listened_on, lines_max

MORE = 8  # descriptors than a task alone has: enough for all that one peer takes
STRANGERS, LIARS = 60, 300
NO_MEMORY = r"ps/0: tcp, no shared memory: "
ALL_OPEN = r"all \d+ that ulimit -n allows are open, raise it"
NOT_RECEIVED = NO_MEMORY + rf"no descriptor is left for shared memory: {ALL_OPEN}\n"
NOT_MADE = rf"{NO_MEMORY}(no descriptor is left there \(ulimit -n\)|ps/0 says: no descriptor .*: {ALL_OPEN})\n"
LAST = r"(?m)^step 30, test loss"


def hello(task):
    return wire.message("HELLO", wire.greeting({"ps": [], "worker": []}, "worker", task))


def lines_with(text, words):
    return [line for line in text.splitlines() if words in line]


def open_files(task):
    """Without those under /proc, where it only looks for a moment when it is asked how it is."""
    folder, found = f"/proc/{task.process.pid}/fd", set()
    for name in os.listdir(folder):
        try:
            if not os.readlink(f"{folder}/{name}").startswith("/proc/"):
                found.add(int(name))
        except FileNotFoundError:
            pass  # closed meanwhile
    return found


class Limits(ClusterCase):
    def start_alone(self, name):
        """A task that waits for the other one, at work and with all that it opens by itself."""
        other = "worker/0" if name == "ps/0" else "ps/0"
        cluster = Cluster(self.folder, Plan(ps=1, workers=1, absent=[other]))
        self.addCleanup(cluster.kill)
        task = cluster.start(name)
        cluster.wait_until(lambda: is_listened_on(cluster.address(name)) or
                           task.has_ended(), "a task that listens")

        def has_reported():
            task.process.send_signal(signal.SIGUSR1)
            return "resident" in task.text() or task.has_ended()
        cluster.wait_until(has_reported, "a task that is at work")
        return cluster, task

    def run_with(self, victim, limit, *flags):
        """A ps and a worker, of which one may have so many descriptors."""
        cluster = Cluster(self.folder, Plan(ps=1, workers=1, flags=list(flags)))
        self.addCleanup(cluster.kill)
        for name in cluster.plan.names():
            cluster.start(name, descriptors=limit if name == victim else None)
        return cluster

    def limits_of(self, name):
        """From the first with which one connection can be had to those that are enough for all."""
        cluster, task = self.start_alone(name)
        idle = len(open_files(task))
        cluster.kill()
        return range(idle + 1, idle + 1 + MORE)

    def run_with_few(self, victim):
        """All end well, whatever the limit. Returns what was said."""
        said = []
        for limit in self.limits_of(victim):
            cluster = self.run_with(victim, limit, "--log_level=debug")
            self.assert_codes(cluster, 0)
            self.assert_says(cluster, "worker/0", LAST)
            self.assertLessEqual(len(lines_with(cluster.story(), "no shared memory")), 2,
                                 cluster.story())
            said.append(cluster.story())
        return said

    def test_a_worker_that_cannot_take_shared_memory_goes_on_over_tcp(self):
        said = self.run_with_few("worker/0")
        self.assertTrue(any(re.search(NOT_RECEIVED, text) for text in said), said)
        self.assertFalse(re.search(NO_MEMORY, said[-1]), said[-1])

    def test_a_ps_that_cannot_make_shared_memory_goes_on_over_tcp(self):
        said = self.run_with_few("ps/0")
        self.assertTrue(any(re.search(NOT_MADE, text) for text in said), said)
        self.assertFalse(re.search(NO_MEMORY, said[-1]), said[-1])
        for text in said:
            self.assertFalse(re.search(NO_MEMORY + "closed", text), text)
            self.assertTrue("over shm" in text or re.search(NOT_MADE, text), text)

    def test_a_limit_that_is_too_low_is_told_at_the_start(self):
        limit = self.limits_of("worker/0")[-1]
        cluster = self.run_with("worker/0", limit)
        self.assert_codes(cluster, 0)
        self.assert_says(cluster, "worker/0", rf"WARNING: ulimit -n allows {limit} open files")
        self.assertNotIn("ulimit", cluster.tasks["ps/0"].text())

    def test_shared_memory_that_was_asked_for_is_an_error_where_it_cannot_be_had(self):
        limits = self.limits_of("worker/0")
        for limit in (limits[0], limits[MORE // 2 - 1], limits[-1]):
            cluster = self.run_with("worker/0", limit, "--transport=shm")
            task = cluster.tasks["worker/0"]
            cluster.wait_until(task.has_ended, "the worker to end")
            if task.code():
                self.assert_says(cluster, "worker/0", "--transport=shm, but ps/0")
            cluster.kill()
        self.assertEqual(task.code(), 0, cluster.story())

    def call(self, cluster):
        host, port = cluster.address("ps/0").split(":")
        stranger = socket.create_connection((host, int(port)), program.LIMIT_S)
        self.addCleanup(stranger.close)
        return stranger

    def fill(self, task):
        """It may open nothing more; returns what undoes that, and the limit."""
        pid, used = task.process.pid, open_files(task)
        lowest = min(set(range(len(used) + 1)) - used)
        before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (lowest, before[1]))
        return lambda: resource.prlimit(pid, resource.RLIMIT_NOFILE, before), lowest

    def assert_few(self, cluster, words, since):
        """As many lines as the time allows."""
        found = lines_with(cluster.tasks["ps/0"].text(), words)
        self.assertLessEqual(len(found), lines_max(since), cluster.story())
        self.assertGreaterEqual(len(found), 1, cluster.story())

    def test_a_ps_without_descriptors_tells_who_is_turned_away(self):
        cluster, ps = self.start_alone("ps/0")
        undo, limit = self.fill(ps)
        since = time.monotonic()
        for _ in range(STRANGERS):
            said = self.call(cluster).makefile("rb").read()
            self.assertIn(f"left for a connection: all {limit} that".encode(), said)
        self.assert_few(cluster, "turned a connection away", since)
        undo()
        cluster.start("worker/0")
        self.assert_codes(cluster, 0)

    def test_a_worker_that_is_turned_away_says_why_and_comes_again(self):
        cluster, ps = self.start_alone("ps/0")
        undo, limit = self.fill(ps)
        worker = cluster.start("worker/0", f"--start_timeout={START_S}", label="in vain")
        cluster.wait_until(worker.has_ended, "the worker to end")
        self.assertEqual(worker.code(), 129, cluster.story())
        self.assert_says(cluster, "in vain", r"ps/0 at \S+ did not come within .*: no descriptor is "
                         rf"left for a connection: all {limit} that ulimit -n allows are open")
        del cluster.tasks["in vain"]
        undo()
        cluster.start("worker/0")
        self.assert_codes(cluster, 0)

    def test_refusals_fill_no_log_whatever_their_words(self):
        cluster, _ = self.start_alone("ps/0")
        since = time.monotonic()
        for liar in range(LIARS):
            with self.call(cluster) as stranger:
                stranger.sendall(hello(100 + liar))
                while stranger.recv(4096):
                    pass
        self.assert_few(cluster, "WARNING: refused ", since)
        cluster.start("worker/0")
        self.assert_codes(cluster, 0)


if __name__ == "__main__":
    program.main()
