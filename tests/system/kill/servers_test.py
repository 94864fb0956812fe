"""Parameter servers that die: the chief fills them again, and no other process is restarted."""
import re

from program import main
from program.lives import CHIEF, LEARNT, PROGRESS, SHORTER, Life, Over, plan_of

LAST_STEP = 300 // SHORTER
ENDLESS = 10 ** 6
LOST, TIMEOUT = 128, 129
BACK = re.compile(r"(ps/\d(?:, ps/\d)*|a ps) came back empty: all go back to step (\d+), "
                  r"(\d+) steps? (?:are|is) lost")
ATTEMPTS = 20


class Servers(Life):
    def restart_servers(self, plan, names):
        cluster = self.restart(plan, names)
        self.assert_done(cluster)
        for name in cluster.workers():
            self.assertEqual(len(cluster.lives[name]), 1, cluster.story())
            for victim in names:
                self.assert_says(cluster, name, f"lost {victim}")
        self.assert_went_back(cluster, names)
        return cluster

    def assert_went_back(self, cluster, names):
        """The chief says who came back, to which step all go and what that costs; every ps continues
        from there."""
        said = BACK.search(cluster.text_of(CHIEF))
        self.assertTrue(said, cluster.story())
        self.assertLessEqual(set(names), set(said.group(1).split(", ")), cluster.story())
        step, lost = int(said.group(2)), int(said.group(3))
        told = PROGRESS.findall(cluster.text_of(CHIEF)[:said.start()])
        answered = int(told[-1]) - 1  # a step is told of when it leaves
        self.assertGreaterEqual(step + lost, answered, cluster.story())
        self.assert_says(cluster, CHIEF, rf"begins from .*/run/model\.ckpt-{step}, step {step}")
        for name in cluster.servers():
            self.assertEqual(cluster.text_of(name).count(": serving"), 2, cluster.story())
            if step:
                self.assert_says(cluster, name, f"serving from step {step} on")

    def restart_with_the_same_bits(self, names, **options):
        plan = plan_of("sync", LAST_STEP, **options)
        reference = self.reference(plan)
        cluster = self.restart_servers(plan, names)
        self.assertEqual(self.differences(cluster, reference), [], cluster.story())

    def test_a_killed_ps_changes_no_bit_in_sync(self):
        self.restart_with_the_same_bits(["ps/1"])

    def test_all_ps_at_once_change_no_bit_in_sync(self):
        self.restart_with_the_same_bits(["ps/0", "ps/1"])

    def test_values_are_rounded_as_before_and_shuffled_batches_come_again_in_the_same_order(self):
        self.restart_with_the_same_bits(["ps/0"], changes={"train.wire_values": "bf16", "data.shuffle": True},
                                        flags=["--transport=tcp"])

    def test_a_killed_ps_is_filled_again_in_async(self):
        cluster = self.restart_servers(plan_of("async", LAST_STEP), ["ps/1"])
        self.assertGreater(cluster.result()["metrics"]["accuracy"], LEARNT)

    def test_before_the_first_checkpoint_all_begin_again(self):
        changes = {"train.save_checkpoint_steps": ENDLESS}
        plan = plan_of("sync", LAST_STEP, changes)
        reference = self.reference(plan)
        cluster = self.restart(plan, ["ps/1"])
        self.assert_done(cluster)
        self.assert_says(cluster, CHIEF, "ps/1 came back empty: all go back to step 0, ")
        self.assertEqual(self.differences(cluster, reference), [], cluster.story())

    def test_without_a_folder_the_job_ends_for_want_of_what_was_lost(self):
        plan = plan_of("async", ENDLESS, {"train.checkpoint_dir": None,
                                          "train.save_checkpoint_steps": None})
        cluster = self.begin(plan)
        cluster.wait_for_step(50)
        cluster.kill_task("ps/1")
        for name in cluster.workers():
            cluster.wait_for_line(name, r"waiting for ps/1 .* s \(--restart_timeout\); nothing is saved \(train\.checkpoint_dir\)")
        cluster.start("ps/1")
        self.assert_ends(cluster, LOST)
        self.assert_says(cluster, CHIEF, "ps/1 came back empty|set train.checkpoint_dir")

    def test_a_ps_that_stays_away_ends_the_job_for_a_retry(self):
        cluster = self.begin(plan_of("sync", ENDLESS, flags=["--restart_timeout=1"]))
        cluster.wait_for_step(20)
        cluster.kill_task("ps/0")
        cluster.tasks.pop("ps/0")
        codes = cluster.wait()
        self.assertLessEqual(set(codes.values()), {LOST, TIMEOUT}, cluster.story())
        for other in cluster.workers():
            self.assert_says(cluster, other, r"ps/0 .*did not come back within 1 s \(--restart_timeout\)")

    def held_near_the_end(self, plan):
        """Its chief stands still, without which nobody can end. It may have ended before that."""
        for _ in range(ATTEMPTS):
            cluster = self.begin(plan)
            try:
                cluster.wait_for_step(LAST_STEP - 20)
                cluster.hold_up(CHIEF)
                return cluster
            except Over:
                cluster.kill()
        raise AssertionError(f"{ATTEMPTS} clusters ended too early\n{cluster.story()}")

    def test_a_ps_that_dies_while_the_last_checkpoint_is_made_is_filled_again(self):
        plan = plan_of("sync", LAST_STEP)
        reference = self.reference(plan)
        cluster = self.held_near_the_end(plan)
        cluster.kill_task("ps/1")
        cluster.go_on(CHIEF)
        cluster.wait_for_line(CHIEF, "lost ps/1")
        cluster.start("ps/1")
        self.assert_done(cluster)
        self.assertEqual(self.differences(cluster, reference), [], cluster.story())


if __name__ == "__main__":
    main()
