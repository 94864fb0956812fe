"""dtrain status names what is wrong with a job: each fault is made on purpose, and looked for until it is told."""
import os
import signal
import socket
import threading
import time
import unittest

import program
from program.cluster import ENDLESS, ClusterCase, Plan, by_flags

DELAY_S = 0.05  # of each piece that a slow link carries, or more
TRIFLE_S = 0.004  # more of a step than any log takes
STAND_MAX_S = 20
DELAY_STEPS = 4  # so many steps of the others, as they are now
PIECE_BYTES = 1 << 16
CLOCK_OFF_S = 4000
# The date alone is off: what lasts how long is not.
SHIM = """
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
int clock_gettime(clockid_t clock, struct timespec *ret)
{
    const int failed = (int)syscall(SYS_clock_gettime, clock, ret);
    if (!failed && clock == CLOCK_REALTIME) ret->tv_sec += OFF_S;
    return failed;
}
"""
STEPPED = f" of {ENDLESS}, loss"


class SlowLink:
    """Stands before a ps: what comes is carried on, later where that is said; or nothing any more."""

    def __init__(self, address):
        self.delay_s = 0  # of connections that are made once it is not 0
        host, port = address.rsplit(":", 1)
        self.to = host, int(port)
        self.server = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self.server.getsockname()[1]}"
        self.ends = []
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                near = self.server.accept()[0]
            except OSError:
                return
            try:
                far = socket.create_connection(self.to)
            except OSError:  # the ps does not listen yet
                near.close()
                continue
            self.ends += [(near, self.delay_s), (far, self.delay_s)]
            for source, sink in ((near, far), (far, near)):
                threading.Thread(target=self.carry, args=(source, sink, bool(self.delay_s)), daemon=True).start()

    def carry(self, source, sink, is_slow):
        try:
            while data := source.recv(PIECE_BYTES):
                if is_slow:
                    time.sleep(self.delay_s)  # this is the fault
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def break_off(self, of_slow=False):
        """For good; of_slow: of those connections alone that are."""
        for end in [self.server, *[end for end, delay_s in self.ends if delay_s or not of_slow]]:
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            end.close()


class Faults(ClusterCase):
    def assert_named(self, cluster, rule, *words, meanwhile=lambda told: None):
        """meanwhile: what is done with each status, in which nothing is found while nobody has told anything."""
        last = set()

        def is_named():
            told = self.status(cluster)
            meanwhile(told)
            last.clear()
            last.update((one["rule"], one["text"]) for one in told["findings"])
            return any(found == rule and all(word in text for word in words) for found, text in last)
        cluster.wait_until(is_named, lambda: f"{rule}: {words}; found last: {last}")

    def begin_behind(self, mode="async"):
        """Workers who reach the ps through a proxy: two at once, and the last one over a slow link."""
        def told(task, hosts, spec):
            if task == "ps/0":
                self.link = SlowLink(hosts["ps"][0])
                self.addCleanup(self.link.break_off)
            words, env = by_flags(task, {**hosts, "ps": [self.link.address]}, spec)
            return words + ([f"--bind={hosts['ps'][0]}"] if task == "ps/0" else []), env
        first = ("worker/0", "worker/1")
        plan = Plan(ps=1, workers=3, told=told, flags=["--transport=tcp", "--log_level=debug"], absent=["worker/2"], changes={
            "train.mode": mode, "train.last_step": ENDLESS, "train.log_every_steps": ENDLESS})
        cluster = self.start(plan, lambda c: all("ps/0 is here" in c.tasks[name].text() if mode == "sync" else
                                                 STEPPED in c.tasks[name].text() for name in first))
        self.link.delay_s = DELAY_S
        cluster.start("worker/2")
        cluster.wait_for("worker/2", STEPPED)
        return cluster

    def delay_by(self, told, counts):
        """So many steps of the others, who are slow themselves where the machine is; counts: of their seconds."""
        recent = [task["recent"] for task in told["tasks"] if task["task"] in ("worker/0", "worker/1") and "recent" in task]
        took = [counts(one) / one["counters"]["steps_total"] for one in recent if one["counters"].get("steps_total")]
        self.link.delay_s = max([DELAY_S, *[DELAY_STEPS * step_s for step_s in took]])

    def test_a_slow_link(self):
        cluster = self.begin_behind()
        self.assert_named(cluster, "slow_worker", "worker/2 is ", "it is answered late",
                          meanwhile=lambda told: self.delay_by(told, lambda one: one["secs"]))

    def test_a_slow_link_that_all_wait_for(self):
        cluster = self.begin_behind("sync")
        own = lambda one: sum(seconds for name, seconds in one["counters"].items()  # noqa: E731
                              if name.startswith("step_seconds_total") and "others" not in name)
        self.assert_named(cluster, "late_worker", "worker/2 is waited for ", meanwhile=lambda told: self.delay_by(told, own))

    def test_a_lost_link(self):
        cluster = self.begin_behind()
        self.link.break_off(of_slow=True)
        self.assert_named(cluster, "missing", "ps/0 is not connected to 1 of 3 workers")

    def test_a_slow_worker(self):
        """It stands still while the others are looked at, and continues until it has taken a step or more: for each
        of them so long as the others take for a few, and at least as long as is no trifle."""
        flags = {"worker/1": ["--metrics_file=slow.jsonl", "--set=train.log_every_steps=1"]}
        cluster = self.start_endless(Plan(ps=1, workers=3, flags_of=flags, changes={"train.mode": "async"}))
        slow, path = cluster.tasks["worker/1"].process, os.path.join(cluster.folder, "slow.jsonl")

        def lines():
            with open(path, "rb") as file:
                return file.read().count(b"\n")

        def stand(told):
            before = lines()
            slow.send_signal(signal.SIGCONT)
            cluster.wait_until(lambda: lines() > before, lambda: "a step")
            slow.send_signal(signal.SIGSTOP)
            others = [task["recent"] for task in told["tasks"] if task["task"] in ("worker/0", "worker/2") and "recent" in task]
            took = [one["secs"] / one["counters"]["steps_total"] for one in others if one["counters"].get("steps_total")]
            each_s = max([TRIFLE_S, *[DELAY_STEPS * step_s for step_s in took]])
            time.sleep(min((lines() - before) * each_s, STAND_MAX_S))  # this is the fault
        self.addCleanup(lambda: slow.send_signal(signal.SIGCONT))
        self.assert_named(cluster, "slow_worker", "worker/1 is ", meanwhile=stand)

    @unittest.skipIf(program.SANITIZER != "none", "a sanitizer has calls of its own")
    def test_a_clock_that_is_off(self):
        preloaded = self.preloaded(SHIM.replace("OFF_S", str(CLOCK_OFF_S)))

        def told(task, hosts, spec):
            words, env = by_flags(task, hosts, spec)
            return words, {**env, **preloaded} if task == "worker/1" else env
        cluster = self.start_endless(Plan(ps=1, workers=2, told=told))
        self.assert_named(cluster, "clocks", "the clock of worker/1 is ", " s ahead of the others'")

    def test_a_ps_that_is_too_full(self):
        cluster = self.start_endless(Plan(ps=2, workers=1, changes={
            "model": [{"op": "flatten"}, {"op": "dense", "name": "hidden", "units": 1000}, {"op": "dense", "name": "logits", "units": 10}],
            "placement": {"pins": [{"match": "*", "ps": 1}]}}))
        self.assert_named(cluster, "unequal_ps", "ps/1 holds 100 % of the bytes of 2 ps")

    def test_a_reader_that_is_stuck(self):
        new = self.folder / "new"
        new.mkdir()
        (new / "a.csv").write_text("x,y\n" + "".join(f"{i % 7},{i % 2}\n" for i in range(4000)))
        cluster = self.start(Plan(ps=1, workers=1, changes={
            "data.train": {"format": "csv", "file": str(new / "*.csv"), "label": "y", "follow": True}, "data.eval": None,
            "data.scale": None, "train.last_step": None, "train.checkpoint_dir": "run",
            "model": [{"op": "dense", "name": "logits", "units": 2}]}), lambda c: "step 150" in c.tasks["worker/0"].text())
        self.assert_named(cluster, "starved", "workers wait for data")
        (worker,) = [task["counters"] for task in self.status(cluster)["tasks"] if task["task"] == "worker/0"]
        self.assertEqual([worker[f"data_{name}"] for name in ("files", "file", "rows")], [1, 1, 4000])

    def test_a_disk_that_takes_nothing(self):
        cluster = self.start_endless(Plan(ps=1, workers=1, changes={
            "train.checkpoint_dir": "run", "train.save_checkpoint_secs": 1}))
        run = os.path.join(cluster.folder, "run")
        cluster.wait_until(lambda: os.path.isdir(run) and os.listdir(run), "a folder")
        os.rename(run, run + ".away")
        with open(run, "w", encoding="ascii"):
            pass
        self.assert_named(cluster, "checkpoints", "checkpoints have failed")


if __name__ == "__main__":
    program.main()
