"""How a job ends before its time: everybody with one code, within moments, and with a line that
names the task. Who was killed is waited for; here nobody starts it again."""
import re
import signal
import time
import unittest

import program
from program.cluster import START_S, Cluster, ClusterCase, Plan, Task, is_listened_on

TASKS = ("ps/0", "ps/1", "worker/0", "worker/1")
LOST, TIMEOUT, INTERRUPTED, TERMINATED = 128, 129, 130, 143
NUMBER = 3
LONG_STEPS = {  # half a second at the least
    "data": {"train": {"format": "random", "rows": 8000, "shape": [784], "classes": 10},
             "batch_size": 8000},
    "model": [{"op": "dense", "units": 2048}, {"op": "dense", "units": 2048},
              {"op": "dense", "units": 10}],
}
ATTEMPTS = 5
MOMENTS_S = 100  # for all to end, on a busy machine
STEP_S = 5  # for a step
LIMIT_S = 2  # of one wait for a task that is gone
AWAITED_IN_VAIN = {
    **{name: rf"{name} at \S+ did not come back within \d+ s \(--restart_timeout\)"
       for name in ("ps/0", "ps/1")},
    "worker/0": r"the chief, worker/0, is gone for \d+ s \(--restart_timeout\)",
    "worker/1": r"worker/1 is gone for \d+ s \(train\.worker_timeout_secs\), and 1 worker are fewer "
                r"than 2 \(train\.min_workers\)",
}
HUNG_WORKER = r"waited \d+ s for (worker/[01]) at step \d+ \(--step_timeout\)"
HUNG_PS = r"waited \d+ s for ps/1 to answer \(--step_timeout, "
SYNC = {"train.mode": "sync"}
EXPLODES = {"data.scale": 1e30, "train.mode": "sync"}

STOPS = {name: ["--on_sigterm=stop"] for name in TASKS if name.startswith("worker")}


class Manners(ClusterCase):
    def setUp(self):
        super().setUp()
        self.since = None

    def send(self, cluster, name, signo):
        self.since = time.monotonic()
        cluster.tasks[name].process.send_signal(signo)

    def assert_others(self, cluster, victim, code, pattern):
        """All but one end soon, with the code and a line with these words."""
        cluster.wait()
        for name, task in cluster.tasks.items():
            if name != victim:
                self.assertEqual(task.code(), code, cluster.story())
                self.assert_says(cluster, name, rf"(?m){pattern}.*\(exit code {code}\)$")
        self.assert_prompt(cluster, self.since, MOMENTS_S)

    def end_each(self, end):
        """An endless cluster for every task, which is then ended in this way; in both modes."""
        for index, name in enumerate(TASKS):
            with self.subTest(task=name):
                end(self.start_endless(Plan(changes=SYNC if index % 2 else {}, flags_of=STOPS)), name)

    def ask_to_end(self, cluster, name, signo, code):
        self.send(cluster, name, signo)
        self.assert_others(cluster, None, code, f"{name}: .*stopped by {signo.name}")

    def test_a_task_that_is_terminated_ends_all(self):
        self.end_each(lambda cluster, name: self.ask_to_end(
            cluster, name, signal.SIGTERM, TERMINATED))

    def test_a_task_that_is_interrupted_ends_all(self):
        self.end_each(lambda cluster, name: self.ask_to_end(
            cluster, name, signal.SIGINT, INTERRUPTED))

    def kill(self, name, mode, *flags):
        """Nobody starts it again, and the others cannot do without it."""
        changes = {"train.mode": mode, "train.min_workers": 2, "train.worker_timeout_secs": LIMIT_S}
        cluster = self.start_endless(Plan(changes=changes, flags=[
            f"--restart_timeout={LIMIT_S}", *flags]))
        self.send(cluster, name, signal.SIGKILL)
        self.assert_others(cluster, name, LOST, AWAITED_IN_VAIN[name])

    def test_a_killed_task_that_nobody_starts_again_is_named_by_all_others(self):
        for name in TASKS:
            for mode in ("sync", "async"):
                with self.subTest(task=name, mode=mode):
                    self.kill(name, mode)

    def test_over_tcp_a_killed_task_is_named_too(self):
        self.kill("worker/1", "sync", "--transport=tcp")

    def hold_up(self, cluster, name):
        """False: some had ended before that, since a step took as long on a busy machine."""
        self.send(cluster, name, signal.SIGSTOP)
        held = cluster.tasks[name]
        cluster.wait_until(lambda: held.has_ended() or held.is_held_up(), f"{name} to stand still")
        return not any([task.has_ended() for task in cluster.tasks.values()])

    @unittest.skipIf(program.SANITIZER == "thread",
                     "the thread sanitizer holds signals back until the next system call")
    def signal_twice(self):
        cluster = Cluster(self.folder, Plan(changes=LONG_STEPS))
        task = Task(cluster.folder, "single", ["spec.json"], {})
        self.addCleanup(task.kill)
        program.wait_until(lambda: "serving" in task.text() or task.has_ended(), task.text)
        task.process.send_signal(signal.SIGTERM)
        program.wait_until(lambda: not task.is_pending(signal.SIGTERM), task.text)
        task.process.send_signal(signal.SIGINT)
        program.wait_until(task.has_ended, task.text)
        return task

    def test_the_first_signal_waits_for_the_step_and_the_second_does_not(self):
        for _ in range(ATTEMPTS):
            task = self.signal_twice()
            if task.code() != TERMINATED:  # else the first one came before the step
                break
        self.assertEqual(task.code(), INTERRUPTED, task.text())
        self.assertNotIn("stopped by", task.text())

    def hang(self, name, pattern, *flags):
        """A task that stands still while the others wait for it, until their limit."""
        changes = {**SYNC, "train.worker_timeout_secs": LIMIT_S}
        for _ in range(ATTEMPTS):
            cluster = self.start_endless(Plan(changes=changes, flags=[f"--step_timeout={STEP_S}", *flags]))
            if self.hold_up(cluster, name):
                break
            cluster.kill()
        others = [task for other, task in cluster.tasks.items() if other != name]
        cluster.wait_until(lambda: all([task.has_ended() for task in others]), "a time limit")
        self.send(cluster, name, signal.SIGCONT)
        self.assert_others(cluster, name, TIMEOUT, pattern)
        self.assertIn(cluster.tasks[name].code(), (LOST, TIMEOUT), cluster.story())
        return cluster

    def test_a_worker_that_hangs_is_named_when_the_step_takes_too_long(self):
        self.hang("worker/1", HUNG_WORKER.replace("[01]", "1"))

    def test_a_ps_that_hangs_is_named_when_the_step_takes_too_long(self):
        """It could be waiting for a worker that is not there, so it is given that time too. If it
        had answered one worker and not the other, ps/0 misses the other and knows no more."""
        cluster = self.hang("ps/1", rf"({HUNG_PS}|{HUNG_WORKER})", f"--start_timeout={START_S}")
        if not re.search(HUNG_PS, cluster.story()):
            self.assert_says(cluster, re.search(HUNG_WORKER, cluster.story()).group(1),
                             "(?m)waited for ps/1 when the job ended$")

    def test_a_loss_that_is_no_number_ends_all(self):
        plan = Plan(changes=EXPLODES)
        cluster = self.start(plan, lambda c: True)
        self.since = time.monotonic()
        self.assert_others(cluster, None, NUMBER, r"step \d+: .*the loss is NaN")

    def test_a_local_cluster_tells_where_the_loss_was_no_number(self):
        plan = Plan(absent=Plan().names(), changes=EXPLODES)
        cluster = Cluster(self.folder, plan)
        local = Task(cluster.folder, "local", [
            "--local_ps=2", "--local_workers=2", "spec.json"], {})
        self.addCleanup(local.kill)
        program.wait_until(local.has_ended, local.text)
        self.assertEqual(local.code(), NUMBER, local.text())
        self.assertRegex(local.text(), r"worker/[01]: .*ERROR: .*step \d+: .*the loss is NaN")

    def test_a_task_that_waits_for_the_others_can_be_stopped(self):
        for name in TASKS:
            with self.subTest(task=name):
                absent = [other for other in TASKS if other != name]
                cluster = self.start(Plan(absent=absent), lambda c, n=name: is_listened_on(
                    c.address(n)))
                self.send(cluster, name, signal.SIGTERM)
                self.assert_codes(cluster, TERMINATED)


if __name__ == "__main__":
    program.main()
