"""Jobs that move to other numbers of tasks by lists of hosts, where tasks wait for their place, are killed and
live again."""
import json
import re
import signal
import subprocess

import program
from program import BINARY, LIMIT_S, main
from program.cluster import ENDLESS, ClusterCase, Plan

CHANGES = {"train.checkpoint_dir": "run", "train.save_checkpoint_steps": 200, "train.save_checkpoint_secs": 0,
           "train.worker_timeout_secs": 250, "train.last_step": ENDLESS, "train.log_every_steps": 20}
LIMITS = [f"--{name}_timeout=250" for name in ("start", "step", "restart", "end", "save", "chief")]
WAITING = ("ps/2", "worker/2", "worker/3")
VISITED = "a visitor is here"


class Moves(ClusterCase):
    def begin(self, mode):
        """Of 3 ps and 4 workers that are listed and started 2 of each train."""
        plan = Plan(ps=3, workers=4, changes={**CHANGES, "train.mode": mode},
                    flags=LIMITS + ["--ps=2", "--workers=2"],
                    flags_of={"ps/0": ["--log_level=debug"], "worker/0": ["--result=result.json"]})
        cluster = self.start(plan, lambda c: all(
            " waits for a place: 2 of " in c.tasks[name].text() for name in WAITING))
        for name in ("worker/0", "worker/1"):
            self.wait_for_step(cluster, name)
        return cluster

    def wait_for_step(self, cluster, name, step=1):
        """It computes one from there on."""
        def has_come():
            told = re.findall(rf"step (\d+) of {ENDLESS}, ", cluster.tasks[name].text())
            return (told and int(told[-1]) > step) or cluster.tasks[name].has_ended()
        cluster.wait_until(has_come, f"steps of {name}")
        self.assertFalse(cluster.tasks[name].has_ended(), cluster.story())

    def wait_for_more(self, cluster, name):
        """Steps that begin after now: what it is told of first may be an older one."""
        def told():
            return cluster.tasks[name].text().count(f" of {ENDLESS}, ")
        was = told()
        cluster.wait_until(lambda: told() > was + 1 or cluster.tasks[name].has_ended(), f"more steps of {name}")
        self.assertFalse(cluster.tasks[name].has_ended(), cluster.story())

    def ask(self, cluster, *words):
        asking = subprocess.Popen([BINARY, "scale", f"--ps_hosts={cluster.hosts['ps'][0]}", *words],
                                  env=program.environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, text=True)
        self.addCleanup(asking.kill)
        return asking

    def move(self, cluster, *words):
        """The step where it continues."""
        out, error = self.ask(cluster, *words).communicate(timeout=LIMIT_S)
        self.assertRegex(out, r"^resized to ", error + cluster.story())
        return int(out.split()[-1])

    def move_at_last(self, cluster, asking):
        """Refused while all begin again."""
        def has_moved():
            nonlocal asking
            asking.communicate(timeout=LIMIT_S)
            if asking.returncode == 0:
                return True
            asking = self.ask(cluster, "--workers=3", "--timeout=60")
            return False
        cluster.wait_until(has_moved, "a move")

    def restart(self, cluster, name):
        """By the words of its first life."""
        task = cluster.tasks[name]
        task.kill()
        cluster.tasks[f"{name}, before {len(cluster.tasks)}"] = task
        cluster.start(name, label=f"{name}-{len(cluster.tasks)}")
        cluster.tasks[name] = cluster.tasks.pop(f"{name}-{len(cluster.tasks) - 1}")

    def end(self, cluster, *names):
        cluster.tasks["ps/0"].process.send_signal(signal.SIGTERM)
        living = {name: cluster.tasks[name] for name in names}
        cluster.wait_until(lambda: all([task.has_ended() for task in living.values()]), "all to end")
        self.assertEqual({task.code() for task in living.values()}, {143}, cluster.story())
        return json.loads(cluster.read("result.json"))

    def test_who_is_listed_waits_for_its_place_and_leaves_it(self):
        cluster = self.begin("sync")
        step = self.move(cluster, "--ps=3", "--workers=4")
        for name in ("worker/0", "worker/3"):
            self.wait_for_step(cluster, name, step)
        step = self.move(cluster, "--ps=1", "--workers=3")
        for name in ("ps/1", "ps/2", "worker/3"):
            task = cluster.tasks[name]
            cluster.wait_until(task.has_ended, f"{name} to end")
            self.assertEqual(task.code(), 0, cluster.story())
            self.assertIn("ends: the job goes on with 3 workers, 1 ps", task.text())
        self.restart(cluster, "worker/3")
        cluster.wait_for("worker/3", " waits for a place: 3 of 4 workers")
        self.wait_for_step(cluster, "worker/0", step)
        rows = self.end(cluster, "ps/0", "worker/0", "worker/1", "worker/2", "worker/3")["rows"]
        self.assertEqual((rows["twice"], rows["lost"]), (0, 0), cluster.story())

    def test_whoever_is_started_again_finds_the_membership_that_is(self):
        cluster = self.begin("async")
        step = self.move(cluster, "--ps=3", "--workers=3")
        self.wait_for_step(cluster, "worker/0", step)
        for name in ("worker/1", "worker/0", "ps/0", "ps/2", "worker/2"):
            self.restart(cluster, name)
            self.wait_for_more(cluster, "worker/0")
        self.wait_for_more(cluster, "worker/2")
        tasks = [f"ps/{i}" for i in range(3)] + [f"worker/{i}" for i in range(4)]
        rows = self.end(cluster, *tasks)["rows"]
        self.assertEqual(rows["twice"], 0, cluster.story())

    def test_a_ps_without_a_place_by_now_ends_at_once_and_well(self):
        """Its flags say that it takes part. Nobody would come to it, to the end of --start_timeout."""
        cluster = self.begin("async")
        step = self.move(cluster, "--ps=1", "--workers=2")
        self.wait_for_step(cluster, "worker/0", step)
        cluster.wait_until(cluster.tasks["ps/1"].has_ended, "ps/1 to end")
        self.restart(cluster, "ps/1")
        cluster.wait_for("ps/1", "ends: the job goes on with 2 workers, 1 ps")
        cluster.wait_until(cluster.tasks["ps/1"].has_ended, "ps/1 to end again")
        self.assertEqual(cluster.tasks["ps/1"].code(), 0, cluster.story())
        self.wait_for_more(cluster, "worker/0")
        self.end(cluster, "ps/0", "worker/0", "worker/1")

    def hold(self, cluster, names, signo):
        for name in names:
            cluster.tasks[name].process.send_signal(signo)
        if signo == signal.SIGSTOP:
            cluster.wait_until(lambda: all(cluster.tasks[name].is_held_up() for name in names), "all to stand still")

    def test_a_chief_that_leads_as_its_flags_say_hears_of_a_later_membership(self):
        """All ps of its flags and itself are started again; who lives has stood still meanwhile."""
        living = ["worker/1", "worker/2", "worker/3"]
        cluster = self.begin("async")
        step = self.move(cluster, "--ps=1", "--workers=4")
        for name in ["worker/0", *living]:
            self.wait_for_step(cluster, name, step)
        cluster.wait_until(cluster.tasks["ps/1"].has_ended, "ps/1 to end")
        self.hold(cluster, living, signal.SIGSTOP)
        for name in ("ps/0", "ps/1", "worker/0"):
            self.restart(cluster, name)
        self.wait_for_more(cluster, "worker/0")
        self.assertNotIn("resized to", cluster.tasks["worker/0"].text())
        self.hold(cluster, living, signal.SIGCONT)
        for name in ("worker/0", "ps/0"):
            cluster.wait_for(name, "resized to 4 workers, 1 ps")
        for name in ["worker/0", *living]:
            self.wait_for_more(cluster, name)
        rows = self.end(cluster, "ps/0", "worker/0", *living)["rows"]
        self.assertEqual(rows["twice"], 0, cluster.story())

    def test_a_task_that_dies_in_the_middle_of_a_move_is_lost_as_ever(self):
        for victim in ("ps/0", "worker/1"):
            with self.subTest(victim):
                cluster = self.begin("sync")
                cluster.tasks[victim].process.send_signal(signal.SIGSTOP)
                asking = self.ask(cluster, "--workers=3", "--timeout=60")
                if victim != "ps/0":
                    cluster.wait_for("ps/0", VISITED)
                self.restart(cluster, victim)
                self.move_at_last(cluster, asking)
                self.wait_for_step(cluster, "worker/2")
                rows = self.end(cluster, "ps/0", "ps/1", "worker/0", "worker/1", "worker/2", "worker/3")["rows"]
                self.assertEqual(rows["twice"], 0, cluster.story())


if __name__ == "__main__":
    main()
