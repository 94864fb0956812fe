"""The run stops exactly at its last step, whoever is fast, late or in excess."""
import re

import program
from program.cluster import ClusterCase, Plan, with_files

LAST_STEP = 200
NEARLY_DONE = re.compile("step (198|199|200) of")  # of the values that a worker had


class LastStep(ClusterCase):
    def plan(self, workers, changes):
        changes = {"train.last_step": LAST_STEP, **changes}
        return with_files(Plan(workers=workers, changes=changes))

    def steps_of_workers(self, cluster):
        """How many steps each worker says that it computed."""
        steps = [cluster.result()["own_steps"]]
        for worker in range(1, cluster.plan.workers):
            said = re.search(r"done, (\d+) steps here", cluster.tasks[f"worker/{worker}"].text())
            self.assertTrue(said, cluster.story())
            steps.append(int(said.group(1)))
        return steps

    def run_exactly(self, plan):
        """Ends at the last step, and no worker reports a later one."""
        cluster = self.run_to_end(plan)
        self.assertEqual(cluster.result()["step"], LAST_STEP)
        for worker in range(plan.workers):
            steps = [line["step"] for line in cluster.metrics(worker)]
            self.assertEqual(steps, sorted(steps))
            self.assertTrue(all(1 <= step <= LAST_STEP for step in steps), steps)
        return self.steps_of_workers(cluster)

    def test_asynchronous_workers_share_out_the_steps(self):
        for workers in (1, 2, 3, 5):
            with self.subTest(workers=workers):
                steps = self.run_exactly(self.plan(workers, {"train.mode": "async"}))
                self.assertEqual(sum(steps), LAST_STEP)

    def test_stale_gradients_are_computed_again(self):
        for staleness in (0, 1, 4):
            with self.subTest(max_staleness=staleness):
                changes = {"train.mode": "async", "train.max_staleness": staleness}
                steps = self.run_exactly(self.plan(3, changes))
                self.assertGreaterEqual(sum(steps), LAST_STEP)

    def test_backup_workers_change_the_last_step_by_nothing(self):
        for replicas in (1, 2):
            with self.subTest(replicas=replicas):
                changes = {"train.mode": "sync", "train.replicas_to_aggregate": replicas}
                steps = self.run_exactly(self.plan(3, changes))
                self.assertGreaterEqual(sum(steps), replicas * LAST_STEP)
                self.assertLessEqual(sum(steps), 3 * LAST_STEP)

    def test_more_gradients_than_workers_make_one_step(self):
        for replicas in (3, 4, 7):
            with self.subTest(replicas=replicas):
                changes = {"train.mode": "sync", "train.replicas_to_aggregate": replicas}
                steps = self.run_exactly(self.plan(2, changes))
                self.assertEqual(steps, [LAST_STEP, LAST_STEP])

    def run_with_a_late_worker(self, changes):
        """The last worker starts when the others have all but come to the last step."""
        plan = self.plan(3, changes)
        plan.absent = ["worker/2"]
        cluster = self.start(plan, lambda c: any(
            t.has_ended() or NEARLY_DONE.search(t.text()) for t in c.tasks.values()))
        cluster.start("worker/2")
        self.assert_codes(cluster, 0)
        self.assertEqual(cluster.result()["step"], LAST_STEP)
        return self.steps_of_workers(cluster)

    def test_nobody_waits_for_a_worker_that_is_not_needed(self):
        backup = {"train.mode": "sync", "train.replicas_to_aggregate": 2}
        for changes in ({"train.mode": "async"}, {"train.max_staleness": 0}, backup):
            with self.subTest(changes=changes):
                self.assertLessEqual(self.run_with_a_late_worker(changes)[2], 3)

    def test_epochs_give_the_last_step(self):
        changes = {"train.last_step": 0, "train.epochs": 3, "train.mode": "sync"}
        cluster = self.run_to_end(self.plan(2, changes))
        self.assertEqual(cluster.result()["step"], 3 * 400 // (2 * 20))


if __name__ == "__main__":
    program.main()
