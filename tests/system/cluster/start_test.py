"""A cluster comes together in any order and however its tasks are told who they are, and it ends
by itself."""
import random

import program
from program.cluster import ClusterCase, Plan, by_environment, by_flags, by_tf_config, is_listened_on

SEEDS = range(2)
LAST_STEP = 30


class Start(ClusterCase):
    def assert_whole_job(self, cluster):
        self.assert_says(cluster, "worker/0", rf"(?m)^step {LAST_STEP}, test loss .*, test acc")
        self.assert_prompt(cluster, cluster.tasks["worker/0"].ended_at)

    def start_orders(self):
        names = Plan().names()
        yield list(reversed(names))  # workers first
        for seed in SEEDS:
            yield random.Random(seed).sample(names, len(names))

    def test_tasks_may_start_in_any_order(self):
        for order in self.start_orders():
            for mode in ("sync", "async"):
                with self.subTest(order=order, mode=mode):
                    plan = Plan(order=order, changes={"train.mode": mode})
                    self.assert_whole_job(self.run_to_end(plan))

    def test_all_at_once_on_every_transport(self):
        for transport in ("auto", "tcp", "shm"):
            with self.subTest(transport=transport):
                plan = Plan(flags=[f"--transport={transport}"], ps=3, workers=3)
                self.assert_whole_job(self.run_to_end(plan))

    def test_environment_variables_say_who_a_task_is(self):
        self.assert_whole_job(self.run_to_end(Plan(told=by_environment)))

    def test_tf_config_with_a_chief_says_who_a_task_is(self):
        cluster = self.run_to_end(Plan(told=by_tf_config, workers=3))
        self.assert_whole_job(cluster)
        self.assert_says(cluster, "worker/2", r"worker/2: done, \d+ steps here")

    def test_a_flag_beats_the_environment(self):
        wrong = {"JOB_NAME": "ps", "TASK_INDEX": "5", "PS_HOSTS": "x:1", "WORKER_HOSTS": "x:2"}

        def told(task, hosts, spec):
            return by_flags(task, hosts, spec)[0], wrong
        self.assert_whole_job(self.run_to_end(Plan(told=told)))

    def test_on_each_host_one_worker_tells_of_its_gpu_or_of_none(self):
        """Where there are GPUs each tells of its own. Another address is another host."""
        def told(task, hosts, spec):
            far = [address.replace("127.0.0.1", "127.0.0.2") for address in hosts["worker"]]
            return by_flags(task, {**hosts, "worker": far[:1] + hosts["worker"][1:]}, spec)
        cluster = self.run_to_end(Plan(told=told, workers=3))
        for worker in ("worker/0", "worker/1"):
            self.assert_says(cluster, worker, rf"{worker}: (no GPU: |computes on GPU )")
        self.assertNotIn("no GPU", cluster.tasks["worker/2"].text())

    def test_a_ps_may_have_the_spec_too(self):
        plan = Plan(flags_of={"ps/0": ["spec.json"]})
        self.assert_whole_job(self.run_to_end(plan))

    def test_a_chief_that_comes_last_releases_the_others_at_once(self):
        cluster = self.start(Plan(absent=["worker/0"]), lambda c: all(
            is_listened_on(c.address(name)) for name in c.tasks))
        chief = cluster.start("worker/0")
        self.assert_codes(cluster, 0)
        self.assert_prompt(cluster, chief.ended_at)

    def test_one_that_is_started_again_says_what_it_takes_part_in(self):
        for mode in ("sync", "async"):
            with self.subTest(mode=mode):
                cluster = self.start_endless(Plan(changes={"train.mode": mode}))
                for name, words in (("worker/0", r"again at step \d+; nothing is rolled back\n"),
                                    ("worker/1", r"again at step \d+\n")):
                    self.assertNotIn("takes part", cluster.tasks[name].text())
                    cluster.tasks[name].kill()
                    cluster.start(name, label=f"{name} again")
                    del cluster.tasks[name]
                    cluster.wait_for(f"{name} again", "takes part")
                    self.assert_says(cluster, f"{name} again", rf"takes part {words}")
                cluster.kill()

    def test_more_ps_than_variables(self):
        cluster = self.run_to_end(Plan(ps=6, workers=1))
        self.assert_whole_job(cluster)


if __name__ == "__main__":
    program.main()
