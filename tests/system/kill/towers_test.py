"""Workers of several replicas that die: as those of one."""
from program import main
from program.clicks import CLICKS, LEARNT
from program.lives import CHIEF, Life, plan_of

LAST_STEP = 500  # so many that few end before somebody is killed, in whose stead another begins
TOWERS = {"train.towers": 2}
PIECES = {"placement": {"partitioner": {"type": "fixed_size", "num_shards": 2}}}
FAR = ["--transport=tcp", "--parts=always"]
ATTEMPTS = 8


class Towers(Life):
    def plan(self, mode, changes, flags=()):
        return plan_of(mode, LAST_STEP, {**changes, **TOWERS}, flags=list(flags))

    def run_with_dead(self, plan, name):
        cluster = self.restart(plan, [name])
        return cluster, self.assert_done(cluster)

    def test_whoever_is_killed_is_just_started_again(self):
        for name, mode, changes, flags in (
                (CHIEF, "async", CLICKS, FAR), ("ps/1", "sync", {**CLICKS, **PIECES}, FAR)):
            with self.subTest(name, mode=mode):
                cluster, result = self.run_with_dead(self.plan(mode, changes, flags), name)
                self.assertGreater(result["metrics"]["auc"], LEARNT, cluster.story())

    def test_a_killed_worker_changes_no_bit_in_sync(self):
        """One that dies between two messages of one push changes bits: not every time."""
        plan = self.plan("sync", CLICKS)
        reference = self.reference(plan)
        for _ in range(ATTEMPTS):
            cluster, _ = self.run_with_dead(plan, "worker/1")
            found = self.differences(cluster, reference)
            if not found:
                return
        self.fail(f"{found}\n{cluster.story()}")


if __name__ == "__main__":
    main()
