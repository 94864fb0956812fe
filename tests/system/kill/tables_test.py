"""Tasks that die and connections that break while tables are trained: as with dense variables."""
from links import ProxiedCluster
from program import main
from program.clicks import CLICKS, GROWING, LEARNT
from program.lives import CHIEF, Life, plan_of

LAST_STEP = {"sync": 500, "async": 1500}  # so many that few end before somebody is killed
LINKS_STEP = 120
ENDS = 12  # of connections, of one run
ATTEMPTS = 8
PIECES = {"placement": {"partitioner": {"type": "fixed_size", "num_shards": 2}}}
BY_TURNS = {"placement": {"partitioner": {"type": "fixed_size", "num_shards": 3},
                          "partition_strategy": "mod"}}
FAR = ["--transport=tcp", "--parts=always"]


class Tables(Life):
    def plan(self, mode, last_step=None, flags=(), more=PIECES):
        changes = {**CLICKS, **more}
        return plan_of(mode, last_step or LAST_STEP[mode], changes, flags=list(flags))

    def run_with_dead(self, mode, names, flags=(), more=PIECES):
        cluster = self.restart(self.plan(mode, flags=flags, more=more), names)
        result = self.assert_done(cluster)
        self.assertGreater(result["metrics"]["auc"], LEARNT, cluster.story())
        return cluster

    def test_whoever_is_killed_is_just_started_again(self):
        for name, mode, flags in (("worker/1", "async", []), (CHIEF, "async", FAR), ("ps/1", "sync", FAR)):
            with self.subTest(name, mode=mode):
                self.run_with_dead(mode, [name], flags)

    def check_killed_chief(self, more):
        """One that dies between two messages of one push changes bits: not every time."""
        reference = self.reference(self.plan("sync", more=more))
        for _ in range(ATTEMPTS):
            cluster = self.run_with_dead("sync", [CHIEF], more=more)
            found = self.differences(cluster, reference)
            if not found:
                return
        self.fail(f"{found}\n{cluster.story()}")

    def test_a_killed_chief_changes_no_bit_of_tables_cut_by_turns_in_sync(self):
        self.check_killed_chief(BY_TURNS)

    def test_tables_cut_by_turns_outlive_a_killed_ps(self):
        self.run_with_dead("async", ["ps/1"], more=BY_TURNS)

    def test_a_killed_chief_changes_no_bit_of_growing_tables_in_sync(self):
        self.check_killed_chief(GROWING)

    def test_growing_tables_outlive_whoever_is_killed(self):
        for name, mode, flags in (("ps/1", "sync", FAR), (CHIEF, "async", [])):
            with self.subTest(name, mode=mode):
                self.run_with_dead(mode, [name], flags, GROWING)

    def test_connections_that_break_change_no_bit_in_sync(self):
        plan = self.plan("sync", LINKS_STEP, [*FAR, "--log_level=debug"])
        reference = self.reference(plan)
        for seed in range(2):
            with self.subTest(seed=seed):
                plan.flags_of = {name: list(flags) for name, flags in plan.flags_of.items()
                                 if not name.startswith("ps/")}
                cluster = ProxiedCluster(self.folder, plan, seed, ENDS)
                self.addCleanup(cluster.kill)
                cluster.start_planned()
                self.assert_done(cluster)
                self.assertEqual(cluster.proxy.trouble, [], cluster.story())
                self.assertEqual(self.differences(cluster, reference), [], cluster.story())


if __name__ == "__main__":
    main()
