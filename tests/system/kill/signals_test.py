"""What signals ask for: the end with a last checkpoint, a checkpoint, a report."""
import re
import signal
import time
from pathlib import Path

from program import lives, main
from program.cluster import Task
from program.lives import CHIEF, Life, plan_of

TERMINATED, INTERRUPTED = 143, 130
ENDLESS = 10 ** 6
SAVED = r"saved \S+/run/model\.ckpt-(\d+) in "
STOPS = ["--on_sigterm=stop"]
SELDOM = {"train.save_checkpoint_steps": ENDLESS}


class Signals(Life):
    def begin_endless(self, mode, **options):
        cluster = self.begin(plan_of(mode, ENDLESS, SELDOM, **options))
        cluster.wait_for_step(30)
        cluster.wait_until_alive(lambda: all(cluster.steps_of(name)[1:]
                                             for name in cluster.workers()),
                                 "two steps of every worker")
        cluster.wait_for_line(CHIEF, SAVED)  # one at a time
        return cluster

    def end_by(self, name, mode, signo, code, *flags):
        cluster = self.begin_endless(mode, flags_of={name: list(flags)})
        step, since = cluster.step(), time.monotonic()
        cluster.tasks[name].process.send_signal(signo)
        self.assert_ends(cluster, code)
        self.assert_prompt(cluster, since, lives.END_S)
        first, saved = cluster.checkpoint_steps()
        self.assertLess(first, saved)
        self.assertGreaterEqual(saved, step, cluster.story())
        self.assert_checkpoint(cluster, saved)
        for other in cluster.tasks:
            whose = "" if other == name == CHIEF else f"{name}: "
            self.assert_says(cluster, other, rf"{whose}stopped by {signo.name} "
                                             rf"\(exit code {code}\)")

    def test_a_job_that_is_terminated_saves_first(self):
        for name, mode in ((CHIEF, "sync"), ("ps/0", "async"), ("worker/2", "async")):
            with self.subTest(f"{name}, {mode}"):
                flags = STOPS if name.startswith("worker") else []
                self.end_by(name, mode, signal.SIGTERM, TERMINATED, *flags)

    def leave(self, name, mode):
        cluster = self.begin_endless(mode)
        gone, chief = cluster.tasks[name], "worker/1" if name == CHIEF else CHIEF
        gone.process.send_signal(signal.SIGTERM)
        gone.process.wait(lives.LIMIT_S)
        cluster.assert_ended_by([name], TERMINATED)
        self.assertIn("leaves the job, which continues without it", gone.text())
        self.assertFalse((Path(cluster.folder) / "run/.ended").exists(), cluster.story())
        if name == CHIEF:
            cluster.wait_for_line(chief, "leads from now on")
        step = cluster.steps_of(chief)[-1]
        cluster.wait_until(lambda: cluster.steps_of(chief)[-1] > step + 20, "20 more steps")
        cluster.start(name)
        cluster.wait_for_line("ps/0", rf"{name} is back, in another life")
        cluster.tasks["ps/0"].process.send_signal(signal.SIGTERM)
        self.assert_ends(cluster, TERMINATED)
        for line in ("came back empty", "continues without worker", "--chief_timeout"):
            self.assertNotIn(line, "".join(map(cluster.text_of, cluster.tasks)), cluster.story())

    def test_a_worker_that_is_terminated_leaves_and_the_others_go_on_at_once(self):
        for name, mode in ((CHIEF, "async"), ("worker/1", "sync")):
            with self.subTest(f"{name}, {mode}"):
                self.leave(name, mode)

    def test_the_last_worker_that_is_terminated_ends_the_job(self):
        cluster = self.begin_endless("sync")
        for name in cluster.workers():
            cluster.tasks[name].process.send_signal(signal.SIGTERM)
        self.assert_ends(cluster, TERMINATED)
        first, saved = cluster.checkpoint_steps()
        self.assertLess(first, saved)

    def test_a_job_that_is_interrupted_saves_first(self):
        self.end_by(CHIEF, "async", signal.SIGINT, INTERRUPTED)

    def test_a_job_whose_terminal_goes_away_saves_first(self):
        self.end_by("ps/1", "async", signal.SIGHUP, TERMINATED)

    def test_a_stop_that_cannot_be_had_ends_at_its_limit(self):
        cluster = self.begin_endless("sync", flags=["--stop_timeout=0.5"],
                                     flags_of={CHIEF: STOPS, "worker/2": ["--restart_timeout=1"]})  # nobody comes again
        cluster.tasks["worker/2"].process.send_signal(signal.SIGSTOP)  # no round is full any more
        since = time.monotonic()
        cluster.tasks[CHIEF].process.send_signal(signal.SIGTERM)
        held_up = cluster.tasks.pop("worker/2")
        self.assert_ends(cluster, TERMINATED)
        self.assert_prompt(cluster, since, lives.END_S)
        held_up.process.send_signal(signal.SIGCONT)
        held_up.process.wait(lives.LIMIT_S)
        self.assertGreaterEqual(held_up.code(), 128, cluster.story())

    def test_a_job_that_is_stopped_while_its_chief_is_away_saves_when_that_is_back(self):
        cluster = self.begin_endless("async", flags=[f"--stop_timeout={3 * lives.LIMIT_S}"])
        step = cluster.step()
        cluster.kill_task(CHIEF)
        visitor = Task(cluster.folder, "visitor", ["stop", "--ps_hosts=" + cluster.address("ps/0")])
        self.addCleanup(visitor.kill)
        cluster.wait_for_line("ps/0", "worker/0, which leads and makes the last checkpoint, is away")
        cluster.start(CHIEF)
        self.assert_ends(cluster, TERMINATED)
        visitor.process.wait(lives.LIMIT_S)
        self.assertEqual(visitor.code(), 0, visitor.text())
        self.assertRegex(visitor.text(), r"WARNING: worker/0, which leads .* is away: ps/0 waits 750 s for it, or for "
                                         r"another one \(--stop_timeout\)\n(.*\n)*the job has ended\n\Z")
        saved = cluster.checkpoint_steps()[-1]
        self.assertGreaterEqual(saved, step, cluster.story())
        self.assert_checkpoint(cluster, saved)

    def test_the_chief_saves_when_it_is_told_to(self):
        cluster = self.begin_endless("async")
        step = cluster.step()
        cluster.tasks[CHIEF].process.send_signal(signal.SIGUSR2)
        said = cluster.wait_for_line(CHIEF, rf"(?s){SAVED}.*{SAVED}")
        saved = int(said.group(2))
        self.assertGreaterEqual(saved, step, cluster.story())
        cluster.wait_for_step(saved + 20)
        self.assert_checkpoint_while_running(cluster, saved)

    def assert_checkpoint_while_running(self, cluster, step):
        code, text = lives.dtrain(cluster, "checkpoint", "verify", "run")
        self.assertEqual(code, 0, text)
        self.assertIn(f"global step {step},", text)

    def test_every_task_reports_when_it_is_asked_to(self):
        cluster = self.begin_endless("async")
        cluster.wait_for_step(30 + len(cluster.workers()))  # a push of each may be on its way to a ps
        for name, task in cluster.tasks.items():
            task.process.send_signal(signal.SIGUSR1)
        for name in cluster.servers():
            said = cluster.wait_for_line(name, r"serving, generation [0-9a-f]{16}, step (\d+) of")
            self.assertGreaterEqual(int(said.group(1)), 30)
            for worker in cluster.workers():
                cluster.wait_for_line(name, rf"{worker} [a-z ,]+, \d+ pushes")
                cluster.wait_for_line(name, rf"{worker}: here over (tcp|shm)")
        for name in cluster.workers():
            said = cluster.wait_for_line(name, r", step (\d+), generation ([0-9a-f]{16})")
            self.assertGreaterEqual(int(said.group(1)), 1)
            for server in cluster.servers():
                cluster.wait_for_line(name, rf"{server}: here over (tcp|shm)")
        cluster.assert_alive()
        text = "".join(map(cluster.text_of, cluster.tasks))
        self.assertEqual(len(set(re.findall("generation ([0-9a-f]{16})", text))), 1, text)


if __name__ == "__main__":
    main()
