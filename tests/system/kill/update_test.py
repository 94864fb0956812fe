"""A living job moves to another build of the program, one task after the other."""
import os
import re
import signal

import program
from program import main
from program.lives import CHIEF, LEADS, LEARNT, Life, LivingCluster, plan_of

LAST_STEP = 300  # synchronously none is taken while a task is not there
ENDLESS = 10 ** 6
ASKED = 143
ORDER = ["worker/2", "worker/1", "ps/1", "ps/0", CHIEF]


def other_build(path):
    """A copy of the program that has another version; its protocol is the same."""
    version = program.run(["--version"], os.path.dirname(path)).stdout.split()[1]
    other = re.sub(r"\d", "9", version)
    with open(program.BINARY, "rb") as built, open(path, "wb") as file:
        file.write(built.read().replace(version.encode() + b"\0", other.encode() + b"\0"))
    os.chmod(path, 0o755)
    return other


class UpdatedCluster(LivingCluster):
    def __init__(self, folder, plan):
        super().__init__(folder, plan)
        self.other = os.path.join(folder, "dtrain-other")
        self.version = other_build(self.other)
        self.updated = set()

    def before(self, name):
        return ["sh", "-c", 'shift; exec "$0" "$@"', self.other] if name in self.updated else ()

    def leave(self, name):
        """A worker that is asked to; another one leads where it was the chief."""
        self.tasks[name].process.send_signal(signal.SIGTERM)
        self.wait_until(self.tasks[name].has_ended, f"{name} to leave")
        self.assert_ended_by([name], ASKED)
        if name == CHIEF:
            self.wait_until_alive(lambda: any(LEADS in self.text_of(f"worker/{i}") for i in (1, 2)), "an heir")

    def update(self, name, are_asked):
        self.updated.add(name)
        if are_asked and name in self.workers():
            self.leave(name)
            self.start(name)
        else:
            self.restart([name])
        self.wait_until_alive(lambda: f"dtrain {self.version}" in self.tasks[name].text(), f"{name} of the other build")
        if name in self.workers():
            self.wait_until_alive(lambda: self.told[self.tasks[name].path].look().count, f"a step of {name}")
        self.wait_for_progress(3)


class Update(Life):
    cluster_of = UpdatedCluster

    def update_all(self, plan, are_asked=False):
        def blow(cluster):
            for name in ORDER:
                cluster.update(name, are_asked)
        return self.disturb(plan, blow)

    def test_workers_leave_and_come_back_in_async(self):
        cluster = self.update_all(plan_of("async", ENDLESS), are_asked=True)
        last_step = self.end_soon(cluster)
        self.assert_ends(cluster)
        self.assert_checkpoint(cluster, last_step)

    def test_all_tasks_are_killed_in_sync_and_the_bits_stay(self):
        plan = plan_of("sync", LAST_STEP)
        cluster = self.update_all(plan)
        self.assertGreater(self.assert_done(cluster)["metrics"]["accuracy"], LEARNT)
        self.assertEqual(self.differences(cluster, self.reference(plan_of("sync", LAST_STEP))), [], cluster.story())


if __name__ == "__main__":
    main()
