"""A job that is resized to more places than it began with, or to fewer, and tasks that come later."""
import signal

import program
from program import named
from program.cluster import ENDLESS


class Moved(named.NamedCase):
    """What holds of each kind of server."""

    def begin(self, mode="sync"):
        """With two workers and two ps."""
        self.write_spec(last_step=ENDLESS, checkpoint_dir="run", mode=mode)
        self.start_all()
        self.wait_for_places()
        self.wait_for_steps(self.holder("worker/0"), 1)

    def move(self, *words, told):
        self.assertRegex(self.answer(self.ask("scale", *words)), rf"^resized to {told} at step \d+$")

    def wait_for_work(self, task):
        """It takes steps from now on; its process."""
        program.wait_until(lambda: self.holder(task), self.log)
        name = self.holder(task)
        self.wait_for_steps(name, self.steps(name) + 1)
        return name

    def again(self, *tasks):
        """Lost at once, and started again by the words of the beginning."""
        for task in tasks:
            self.processes.pop(self.holder(task)).kill()
        for number, task in enumerate(tasks):
            job = task.partition("/")[0]
            self.start(f"again-{job}-{number}", job)
        program.wait_until(lambda: all(map(self.holder, tasks)), self.log)

    def end(self):
        self.processes[self.holder("ps/0")].terminate()
        codes = {name: self.ended(name) for name in self.processes}
        self.assertEqual(set(codes.values()), {128 + signal.SIGTERM}, self.log())

    def test_workers_come_before_and_after_their_places(self):
        self.begin()
        self.start("early", "worker")
        self.wait_for("early", "all 2 places of a worker are taken (dtrain help scale)")
        self.move("--workers=4", told="4 workers, 2 ps")
        self.wait_for("early", " worker/2: found all ps of cluster small, which was resized to 4 workers, 2 ps; listens at")
        self.start("late", "worker")
        self.assertEqual(self.wait_for_work("worker/3"), "late")
        self.wait_for(self.holder("worker/0"), "from here on a step is the mean of 4 gradients of 4 workers")
        for task in ("worker/0", "worker/1", "worker/2"):
            self.wait_for_work(task)
        self.end()


class Kinds(Moved):
    def test_who_is_lost_after_a_move_comes_back_by_its_old_words(self):
        self.begin()
        self.move("--workers=3", told="3 workers, 2 ps")
        self.start("late", "worker")
        self.wait_for_work("worker/2")
        lost = ("worker/2", "ps/0", "worker/0")
        self.again(*lost)
        for task in lost:
            self.wait_for(self.holder(task), "which was resized to 3 workers, 2 ps")
        for task in ("worker/0", "worker/1", "worker/2"):
            self.wait_for_work(task)
        self.end()

    def test_who_is_lost_after_others_left_does_not_wait_for_them(self):
        self.begin()
        left = self.holder("worker/1")
        self.move("--workers=1", told="1 worker, 2 ps")
        self.assertEqual(self.ended(left), 0, self.log())
        del self.processes[left]
        self.wait_for_work("worker/0")
        self.start("spare", "worker")
        self.wait_for("spare", "all 1 places of a worker are taken")
        self.processes.pop(self.holder("worker/0")).kill()
        self.again("ps/0")
        self.assertEqual(self.wait_for_work("worker/0"), "spare")
        self.end()

    def test_ps_come_later_too(self):
        self.begin(mode="async")
        self.start("early", "ps")
        self.wait_for("early", "all 2 places of a ps are taken")
        self.move("--ps=4", told="2 workers, 4 ps")
        self.wait_for("early", "waits for ps/3")
        self.start("late", "ps")
        self.wait_for("late", " ps/3: found all ps of cluster small")
        self.wait_for_work("worker/0")
        holders = [row.split()[-1] for row in self.answer(self.visit("ls")).splitlines()[1:]]
        self.assertEqual({ps for held in holders for ps in held.split(",")}, {"0", "1", "2", "3"})
        self.end()

    def test_a_place_that_is_said_is_waited_for(self):
        self.begin()
        self.start("said", "worker", "--task_index=3")
        self.wait_for("said", "worker/3 takes no part, there are 2 (dtrain help scale)")
        self.start("late", "worker")
        self.move("--workers=4", told="4 workers, 2 ps")
        self.wait_for_work("worker/2")
        self.assertEqual(self.wait_for_work("worker/3"), "said")
        self.end()

    def test_all_that_are_started_again_begin_as_they_are_told(self):
        self.begin()
        left = self.holder("worker/1")
        self.move("--workers=1", told="1 worker, 2 ps")
        self.assertEqual(self.ended(left), 0, self.log())
        del self.processes[left]
        while self.processes:
            self.processes.popitem()[1].kill()
        for number, job in enumerate(("worker", "worker", "ps", "ps")):
            self.start(f"again-{number}", job)
        self.wait_for_places()
        self.wait_for_work("worker/1")
        self.end()


class Etcd(named.Etcd, Kinds):
    pass


class ZooKeeper(named.ZooKeeper, Moved):
    """What a coordinator is asked for beyond that is the same for each kind (tasks_test.py)."""


del Moved, Kinds  # they are no tests by themselves

if __name__ == "__main__":
    program.main()
