"""A cluster whose storage says no for a while to who was let in before: credentials that end come anew."""
import dataclasses

import program
import read_test
from program import cluster

LAST_STEP = 100000  # it is stopped before
DENIALS = (401, 403)
PS_KEY = "AKPS"  # of ps/1, which can be denied alone


class Credentials(read_test.UrlCase, cluster.ClusterCase):
    def setUp(self):
        super().setUp()
        self.served = self.serve(keys={"AKID": read_test.SECRET, PS_KEY: read_test.SECRET}, is_s3=True)

    def told(self, task, hosts, spec):
        words, env = cluster.by_flags(task, hosts, spec)
        key = {"AWS_ACCESS_KEY_ID": PS_KEY} if task == "ps/1" else {}
        return words, {**self.env(self.served), **key, **env}

    def plan(self, *flags, **changes):
        changes = {"train.checkpoint_dir": "s3://bucket/run/", "train.save_checkpoint_steps": 20,
                   "train.save_checkpoint_secs": None, "train.last_step": LAST_STEP, "train.log_every_steps": LAST_STEP,
                   **changes}
        return cluster.Plan(told=self.told, changes=changes, flags=["--restart_timeout=400", *(flags or ["--chief_timeout=0"])])

    def begin(self, plan):
        return self.start(plan, lambda c: "/bucket/run/checkpoint" in self.served.files or
                          any([t.has_ended() for t in c.tasks.values()]))

    def deny(self, status, key=""):
        self.served.fault = lambda _, request: status if key in request.headers["Authorization"] else None

    def end(self, running, gone=()):
        """Who is left trains on, and ends well when it is asked to."""
        self.served.fault = lambda *_: None
        self.served.files.pop("/bucket/run/checkpoint", None)
        running.wait_until(lambda: "/bucket/run/checkpoint" in self.served.files or
                           any([t.has_ended() for n, t in running.tasks.items() if n not in gone]), "a checkpoint")
        for name, task in running.tasks.items():
            if name not in gone:
                self.assertFalse(task.has_ended(), running.story())

    def test_a_ps_that_comes_back_waits_to_be_let_in(self):
        for status in DENIALS:
            with self.subTest(status):
                self.served.files.clear()
                running = self.begin(self.plan())
                self.deny(status, PS_KEY)
                running.tasks["ps/1"].kill()
                running.start("ps/1", label="ps/1 again")
                running.wait_for("ps/1 again", "; tries again")
                self.end(running, ["ps/1"])
                running.kill()

    def test_a_chief_waits_to_be_let_in(self):
        running = self.begin(self.plan())
        self.deny(403)
        running.tasks["ps/1"].kill()
        running.start("ps/1", label="ps/1 again")
        running.wait_for("worker/0", "; tries again")
        self.end(running, ["ps/1"])

    def test_an_heir_waits_to_be_let_in(self):
        running = self.begin(self.plan("--chief_timeout=1", **{"train.worker_timeout_secs": 1}))
        self.deny(403)
        running.tasks["worker/0"].kill()
        running.wait_for("worker/1", "; tries again")
        self.end(running, ["worker/0"])

    def test_a_chief_that_comes_back_waits_to_be_let_in(self):
        """What it is told first says nothing of the job, which the ps know to be in progress."""
        running = self.begin(self.plan())
        for status in DENIALS:
            with self.subTest(status):
                again = f"worker/0 after {status}"
                self.deny(status)
                running.tasks["worker/0"].kill()
                running.start("worker/0", label=again)
                running.wait_for(again, "unless the job is already in progress")
                running.wait_for(again, "; tries again")
                self.served.fault = lambda *_: None
                running.wait_for(again, "takes part again")
                was, running.tasks["worker/0"] = running.tasks["worker/0"], running.tasks.pop(again)
                was.kill()
        self.end(running)

    def test_who_was_never_let_in_ends_at_once(self):
        self.deny(403)
        plan = dataclasses.replace(self.plan(), absent=["worker/1"], flags=[])
        running = self.start(plan, lambda c: c.tasks["worker/0"].has_ended())
        self.assertEqual(running.tasks["worker/0"].code(), program.BAD_INPUT, running.story())

    def test_what_is_no_denial_ends_a_chief_before_its_ps_are_there(self):
        """A bucket that is not there, of the checkpoints or of what is published, says the same whenever it is asked."""
        for folder in ("/absent/run", "/absent/to"):
            with self.subTest(folder):
                self.served.fault = lambda _, request: 404 if request.path.startswith("/absent") else None
                changes = ({"train.checkpoint_dir": "s3://absent/run/"} if folder.endswith("run") else
                           {"train.publish.every_secs": 1, "train.publish.to": "s3://absent/to/"})
                plan = dataclasses.replace(self.plan("--start_timeout=60", **changes), absent=["ps/0", "ps/1", "worker/1"])
                running = self.start(plan, lambda c: c.tasks["worker/0"].has_ended())
                self.assertEqual(running.tasks["worker/0"].code(), program.BAD_INPUT, running.story())
                running.kill()

    def test_a_ps_that_was_never_let_in_ends_the_job(self):
        """It restores where the job begins: nobody knows that it ever could."""
        first = self.begin(self.plan())
        first.kill()
        self.deny(403, PS_KEY)
        running = self.start(self.plan(), lambda c: all([t.has_ended() for t in c.tasks.values()]))
        self.assert_codes(running, program.BAD_INPUT)
        self.assert_says(running, "worker/0", "403")


if __name__ == "__main__":
    program.main()
