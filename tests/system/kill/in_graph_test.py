"""A chief that reads for all, and workers that it feeds, die: nothing is lost that must not be."""
from program import main
from program.clicks import CLICKS
from program.lives import CHIEF, SHORTER, Life, plan_of

LAST_STEP = 300 // SHORTER  # so many that few end before somebody is killed, in whose stead another begins
LAST_CLICK = 1000  # the same of steps that take less
IN_GRAPH = {"train.replication": "in_graph", "data.shuffle": True}
ATTEMPTS = 8
LEARNT = {"accuracy": 0.6, "auc": 0.58}


class InGraph(Life):
    def run_with_dead(self, plan, names):
        cluster = self.restart(plan, names)
        return cluster, self.assert_done(cluster)

    def test_whoever_is_killed_goes_on_where_the_stream_was(self):
        """One that dies between two messages of one push changes bits: not every time. The
        reference is one of workers that read themselves."""
        for changes, names in (({}, ["worker/1"]), (CLICKS, [CHIEF])):
            with self.subTest(names):
                last_step = LAST_CLICK if changes else LAST_STEP
                own = plan_of("sync", last_step, {**changes, "data.shuffle": True})
                plan = plan_of("sync", last_step, {**changes, **IN_GRAPH})
                reference = self.reference(own)
                for _ in range(ATTEMPTS):
                    cluster, _ = self.run_with_dead(plan, names)
                    found = self.differences(cluster, reference)
                    if not found:
                        break
                else:
                    self.fail(f"{found}\n{cluster.story()}")

    def test_in_async_too(self):
        for changes, names in ((CLICKS, [CHIEF]), ({}, [CHIEF, "worker/1"])):
            with self.subTest(names):
                plan = plan_of("async", LAST_CLICK if changes else LAST_STEP, {**changes, **IN_GRAPH},
                               flags=["--transport=tcp", "--parts=always"])
                cluster, result = self.run_with_dead(plan, names)
                for name, learnt in LEARNT.items():
                    if name in result["metrics"]:
                        self.assertGreater(result["metrics"][name], learnt, cluster.story())

    def test_a_chief_that_stays_away_ends_the_job_for_a_retry(self):
        cluster = self.begin(plan_of("async", 10 ** 6, IN_GRAPH, flags=["--restart_timeout=1"]))
        cluster.wait_for_step(20)
        cluster.kill_task(CHIEF)
        cluster.tasks.pop(CHIEF)
        self.assert_ends(cluster, 128)


if __name__ == "__main__":
    main()
