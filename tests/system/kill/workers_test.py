"""Workers that die, live again, stay away or stand still: the others go on."""
from program import lives, main
from program.lives import CHIEF, LEARNT, SHORTER, Life, plan_of

LAST_STEP = 300 // SHORTER
LOST = 128
SOON = {"train.worker_timeout_secs": 0.5}


class Workers(Life):
    def restart_one(self, mode):
        cluster = self.restart(plan_of(mode, LAST_STEP), ["worker/1"])
        result = self.assert_done(cluster)
        self.assertGreater(result["metrics"]["accuracy"], LEARNT)
        for name in cluster.servers():
            self.assert_says(cluster, name, "lost worker/1")
            self.assert_says(cluster, name, "worker/1 is back, in another life")
            self.assertEqual(len(cluster.lives[name]), 1)
        return cluster

    def test_a_killed_worker_is_just_started_again_in_async(self):
        cluster = self.restart_one("async")
        self.assert_rises(cluster.steps_of(CHIEF))

    def test_a_killed_worker_is_just_started_again_in_sync(self):
        cluster = self.restart_one("sync")
        self.assertEqual(sorted(set(cluster.steps_of(CHIEF))), list(range(1, LAST_STEP + 1)))

    def assert_rises(self, steps):
        self.assertEqual(steps, sorted(set(steps)))

    def leave_one(self, mode):
        def blow(cluster):
            cluster.kill_task("worker/1")
            with cluster.standstill():  # the others would soon be done
                cluster.wait_for_line("ps/0", "continues without worker/1")
        cluster = self.disturb(plan_of(mode, LAST_STEP, SOON), blow)
        cluster.tasks.pop("worker/1")
        self.assert_done(cluster)
        self.assert_says(cluster, "ps/0", r"continues without worker/1, gone for \d+ s "
                                          r"\(train\.worker_timeout_secs\)")
        return cluster

    def test_a_worker_that_stays_away_is_done_without_in_sync(self):
        cluster = self.leave_one("sync")
        self.assertEqual(cluster.steps_of(CHIEF), list(range(1, LAST_STEP + 1)))

    def test_a_worker_that_stays_away_is_done_without_in_async(self):
        cluster = self.leave_one("async")
        self.assert_rises(cluster.steps_of(CHIEF))

    def test_fewer_workers_than_wanted_end_the_job_for_a_retry(self):
        cluster = self.begin(plan_of("sync", 10 ** 6, {**SOON, "train.min_workers": 3}))
        cluster.wait_for_progress(60)
        cluster.kill_task("worker/2")
        cluster.tasks.pop("worker/2")
        self.assert_ends(cluster, LOST)
        for name in cluster.tasks:
            self.assert_says(cluster, name, r"2 workers are fewer than 3 \(train\.min_workers\) \(exit code 128\)")
        self.retry(cluster)

    def retry(self, cluster):
        """All anew, from where they were."""
        saved = cluster.checkpoint_steps()[-1]
        last_step = f"--set=train.last_step={saved + 20}"
        for name in cluster.servers():
            cluster.start(name)
        for name in cluster.workers():
            cluster.start(name, last_step)
        self.assert_ends(cluster)
        self.assert_checkpoint(cluster, saved + 20)
        self.assert_says(cluster, CHIEF, rf"begins from .*/run/model\.ckpt-{saved}, step {saved}")

    def test_tasks_that_stand_still_for_a_while_change_nothing(self):
        plan = plan_of("sync", LAST_STEP)
        reference = self.reference(plan)

        def hold_up_all(cluster):
            for name in ("worker/1", "ps/1", CHIEF, "ps/0"):
                cluster.wait_for_progress(30)
                self.hold_up(cluster, name)
        cluster = self.disturb(plan, hold_up_all)
        self.assert_done(cluster)
        self.assertEqual(self.differences(cluster, reference), [])

    def hold_up(self, cluster, name):
        """Until the others have run into it: nobody tells of a step any more."""
        cluster.hold_up(name)
        said, still = cluster.progress(), 0
        while still < lives.STILL_LOOKS:
            lives.pause()
            now = cluster.progress()
            said, still = now, still + 1 if now == said else 0
        cluster.go_on(name)


if __name__ == "__main__":
    main()
