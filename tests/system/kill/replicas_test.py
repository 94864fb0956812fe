"""Parameter servers that die and have a follower (train.ps_replicas): no step is lost, and nobody else is restarted."""
import dataclasses
import re

from program import main
from program.clicks import CLICKS, GROWING
from program.clicks import LEARNT as CLICKS_LEARNT
from program.lives import CHIEF, LEARNT, SHORTER, Life, dtrain, plan_of

LAST_STEP = 300 // SHORTER
ROWS_STEP = 500 // SHORTER  # of which each takes less
PIECES = {"placement": {"partitioner": {"type": "fixed_size", "num_shards": 2}}}
FAR = ["--transport=tcp", "--parts=always"]
INPUT = 2
GONE = r"goes on without {}, what it held is at {}: no step is lost"
BACK = r"all continue from step \d+ with all ps"
HAS_ALL = "has the values of step"


def held_twice(mode, changes=None, last_step=LAST_STEP, **options):
    plan = plan_of(mode, last_step, {"train.ps_replicas": 1, **(changes or {})}, **options)
    return dataclasses.replace(plan, ps=3, flags=plan.flags + ["--ps_timeout=0.2"])


class Replicas(Life):
    def assert_nothing_lost(self, cluster):
        self.assert_done(cluster)
        for name in cluster.workers():
            self.assertEqual(len(cluster.lives[name]), 1, cluster.story())
        for name in cluster.lives:
            self.assertNotIn("go back to step", cluster.text_of(name), cluster.story())

    def die_for_good(self, plan, victim, other):
        """It stays away."""
        def blow(cluster):
            cluster.kill_task(victim)
            cluster.tasks.pop(victim)
            cluster.wait_until_alive(lambda: re.search(GONE.format(victim, other), cluster.text_of(CHIEF)),
                                     f"what {victim} held to be at {other}")
        cluster = self.disturb(plan, blow)
        self.assert_nothing_lost(cluster)
        for name in cluster.workers():
            self.assert_says(cluster, name, GONE.format(victim, other))
        return cluster

    def test_without_a_ps_the_bits_are_the_same_in_sync(self):
        plan = held_twice("sync")
        cluster = self.die_for_good(plan, "ps/1", "ps/2")
        self.assertEqual(self.differences(cluster, self.reference(plan)), [], cluster.story())

    def test_what_is_rounded_on_its_way_is_the_same_for_both(self):
        plan = held_twice("sync", {"train.wire_values": "bf16"})
        plan.flags.append("--transport=tcp")
        cluster = self.die_for_good(plan, "ps/1", "ps/2")
        self.assertEqual(self.differences(cluster, self.reference(plan)), [], cluster.story())

    def test_rows_of_tables_have_the_same_bits_in_sync(self):
        for about, rows, victim, other, flags in (
                ("cut", PIECES, "ps/1", "ps/2", []), ("cut, over tcp", PIECES, "ps/2", "ps/1", FAR),
                ("growing", GROWING, "ps/2", "ps/1", []), ("growing, over tcp", GROWING, "ps/1", "ps/2", FAR)):
            with self.subTest(about):
                plan = held_twice("sync", {**CLICKS, **rows}, ROWS_STEP, flags=flags)
                cluster = self.die_for_good(plan, victim, other)
                self.assertEqual(self.differences(cluster, self.reference(plan)), [], cluster.story())

    def test_rows_of_one_that_comes_back_are_those_of_the_other_one(self):
        for about, rows in (("cut", PIECES), ("growing", GROWING)):
            with self.subTest(about):
                plan = held_twice("sync", {**CLICKS, **rows}, 10 * ROWS_STEP)
                cluster = self.disturb(plan, self.one_after_the_other)
                self.assert_nothing_lost(cluster)
                self.assertEqual(self.differences(cluster, self.reference(plan)), [], cluster.story())

    def test_no_row_of_a_table_is_lost_in_async(self):
        plan = held_twice("async", {**CLICKS, **PIECES}, 3 * ROWS_STEP)
        cluster = self.die_for_good(plan, "ps/1", "ps/2")
        self.assertGreater(cluster.result()["metrics"]["auc"], CLICKS_LEARNT)

    def test_a_follower_may_die_as_well(self):
        plan = held_twice("sync")
        cluster = self.die_for_good(plan, "ps/2", "ps/1")
        self.assertEqual(self.differences(cluster, self.reference(plan)), [], cluster.story())

    def test_no_row_is_lost_in_async(self):
        cluster = self.die_for_good(held_twice("async"), "ps/1", "ps/2")
        self.assertGreater(cluster.result()["metrics"]["accuracy"], LEARNT)

    @staticmethod
    def one_after_the_other(cluster):
        cluster.restart(["ps/1"])
        cluster.wait_until_alive(lambda: re.search(BACK, cluster.text_of(CHIEF)), "all to continue with all ps")
        cluster.wait_for_line("ps/1", r"serving from step \d+ on")
        cluster.kill_task("ps/2")
        cluster.tasks.pop("ps/2")

    def test_one_that_comes_back_is_filled_and_the_other_one_may_die_then(self):
        plan = held_twice("sync")
        cluster = self.disturb(plan, self.one_after_the_other)
        self.assert_nothing_lost(cluster)
        self.assertEqual(self.differences(cluster, self.reference(plan)), [], cluster.story())
        for name, reads in (("ps/0", False), ("ps/1", True), ("ps/2", False)):
            self.assertEqual(HAS_ALL not in cluster.text_of(name), reads, f"{name} reads\n{cluster.story()}")

    def test_both_at_once_are_restored_from_the_last_checkpoint(self):
        plan = held_twice("sync")
        cluster = self.restart(plan, ["ps/1", "ps/2"])
        self.assert_done(cluster)
        self.assert_says(cluster, CHIEF, "came back empty: all go back to step")
        self.assertEqual(self.differences(cluster, self.reference(plan)), [], cluster.story())

    def test_so_many_ps_as_cannot_be_held_twice_are_refused(self):
        cluster = self.begin(plan_of("sync", 1), have_stepped=any)
        for ps in (1, 2, 4):
            code, text = dtrain(cluster, f"--local_ps={ps}", "--local_workers=1", "--set", "train.ps_replicas=1",
                                "spec.json")
            self.assertEqual(code, INPUT, text)
            self.assertRegex(text, rf"train.ps_replicas: .* an odd number of ps, .* there (is|are) {ps}")


if __name__ == "__main__":
    main()
