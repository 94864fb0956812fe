"""Workers whose data do not come: they say so, hear signals, and continue when the data come again."""
import dataclasses
import signal
import threading

import program
import server
from program.cluster import ClusterCase, Plan

ROWS = 200000  # more than memory_mb holds
PS = ("ps/0", "ps/1")
ATTEMPTS_MAX = 8  # to reach them within the moment that a worker has to tell


class Stuck(ClusterCase):
    def setUp(self):
        super().setUp()
        self.served = server.Server()
        self.addCleanup(self.served.stop)
        self.comes = threading.Event()
        self.addCleanup(self.comes.set)
        lines = [f"{i / ROWS:.8f},{i % 1009 / 1009:.8f},{i % 7 / 7:.8f},{i % 2}\n" for i in range(ROWS)]
        self.served.files["/rows.csv"] = ("a,b,c,y\n" + "".join(lines)).encode()

    def hold(self):
        """From now on no request is answered, until comes is set."""
        self.served.fault = lambda number, request: None if self.comes.is_set() else self.comes

    def states(self, cluster):
        return {task["task"]: task["state"] for task in self.status(cluster)["tasks"]}

    def wait_for_state(self, cluster, workers, is_right):
        cluster.wait_until(lambda: all(is_right(self.states(cluster).get(name, "")) for name in workers),
                           f"the states of {workers}")

    def wait_for_lack(self, cluster, is_sync):
        """A worker lacks data; where they do so by rounds, the other one may wait for its gradient by then."""
        lacks, waits = "waits for data", {"waits for data", *(["waits for values"] if is_sync else [])}
        def is_right():
            states = [self.states(cluster).get(name, "") for name in ("worker/0", "worker/1")]
            return lacks in states and set(states) <= waits
        cluster.wait_until(is_right, "a worker without data")

    def find(self, cluster):
        """Until status says what is wrong."""
        cluster.wait_until(lambda: any(found["rule"] == "starved" for found in self.status(cluster)["findings"]),
                           "what is wrong")

    def source(self):
        return {"format": "csv", "file": self.served.url + "/rows.csv", "columns": ["a", "b", "c"], "label": "y",
                "stream": "always", "memory_mb": 1}

    def plan(self, mode, data, **changes):
        return Plan(ps=1, changes={"train.mode": mode, "data": data | {"batch_size": 500},
                                   "model": [{"op": "dense", "name": "logits", "units": 2}], **changes})

    def check(self, mode):
        cluster = self.start_endless(self.plan(mode, {"train": self.source()}))
        self.hold()
        self.wait_for_lack(cluster, mode == "sync")
        self.find(cluster)
        cluster.tasks["worker/1"].process.send_signal(signal.SIGTERM)
        cluster.wait_until(cluster.tasks["worker/1"].has_ended, "a worker that hears SIGTERM while data lack")
        self.assertEqual(cluster.tasks["worker/1"].code(), 143, cluster.story())
        self.assertFalse(self.comes.is_set())
        self.comes.set()
        self.wait_for_state(cluster, ["worker/0"], lambda state: state not in ("", "waits for data"))
        cluster.tasks["ps/0"].process.send_signal(signal.SIGTERM)
        self.assert_codes(cluster, 143)

    def test_asynchronous_workers_hear_signals_while_no_data_come(self):
        self.check("async")

    def test_synchronous_workers_hear_signals_while_no_data_come(self):
        self.check("sync")

    def check_evaluation(self, mode):
        few = {"format": "csv", "file": self.served.url + "/few.csv", "columns": ["a", "b", "c"], "label": "y"}
        self.served.files["/few.csv"] = self.served.files["/rows.csv"][:40000].rsplit(b"\n", 1)[0] + b"\n"
        cluster = self.start_endless(self.plan(mode, {"train": few, "eval": self.source()},
                                               **{"train.evaluate_every_steps": 50}))
        self.hold()
        self.wait_for_state(cluster, ["worker/0"], lambda state: state == "waits for data")
        cluster.tasks["worker/0"].process.send_signal(signal.SIGTERM)
        cluster.wait_until(cluster.tasks["worker/0"].has_ended, "a chief amid an evaluation that hears SIGTERM")
        self.assertEqual(cluster.tasks["worker/0"].code(), 143, cluster.story())
        self.wait_for_state(cluster, ["worker/1"], lambda state: state == "waits for data")  # it leads now
        self.assertFalse(self.comes.is_set())
        self.comes.set()
        cluster.wait_until(lambda: ", test loss " in cluster.tasks["worker/1"].text(), "an evaluation")
        cluster.tasks["ps/0"].process.send_signal(signal.SIGTERM)
        self.assert_codes(cluster, 143)

    def test_an_asynchronous_chief_hears_signals_while_rows_to_evaluate_do_not_come(self):
        self.check_evaluation("async")

    def test_a_synchronous_chief_hears_signals_while_rows_to_evaluate_do_not_come(self):
        self.check_evaluation("sync")

    def begin_without_data(self):
        """A job that has not begun: its data do not come."""
        source = {"format": "csv", "file": self.served.url + "/rows.csv", "columns": ["a", "b", "c"], "label": "y"}
        before = len(self.served.asked)
        cluster = self.start(dataclasses.replace(self.plan("async", {"train": source}), ps=2),
                             lambda c: len(self.served.asked) >= before + 2)
        for ps in PS:
            cluster.wait_for(ps, "listens at")
        return cluster

    def check_start(self, signo, name):
        """The worker that hears it ends, whoever answers it. A ps that it has told ends too: within its moment it may not
        reach both on a busy machine, so that it is tried with another job."""
        self.hold()
        were_told = False
        for _ in range(ATTEMPTS_MAX):
            cluster = self.begin_without_data()
            cluster.tasks[name].process.send_signal(signo)
            cluster.wait_until(cluster.tasks[name].has_ended, f"the end of {name}")
            self.assertEqual(cluster.tasks[name].code(), 128 + signo, cluster.story())
            if f"{signo.name}: 2 of 2 ps were told" in cluster.tasks[name].text():
                break
            were_told |= f"{signo.name}: 1 of 2 ps were told" in cluster.tasks[name].text()
            cluster.kill()
        else:
            self.assertTrue(were_told, cluster.story())
            self.skipTest(f"{ATTEMPTS_MAX} times not both ps knew within a moment")
        for ps in PS:
            cluster.wait_until(cluster.tasks[ps].has_ended, f"the end of {ps}")
            self.assertEqual(cluster.tasks[ps].code(), 143, cluster.story())  # as by a visitor

    def test_a_signal_to_a_chief_that_reads_its_data_ends_a_job_that_has_not_begun(self):
        self.check_start(signal.SIGTERM, "worker/0")

    def test_an_interrupt_to_a_worker_that_reads_its_data_ends_the_job(self):
        self.check_start(signal.SIGINT, "worker/1")


if __name__ == "__main__":
    program.main()
