"""A living job moves to another build of the program, one task after the other."""
import os
import re

import program
from program import main
from program.lives import CHIEF, LEARNT, Life, LivingCluster, plan_of

LAST_STEP = 1500  # enough for five tasks to be replaced meanwhile
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

    def update(self, name):
        self.updated.add(name)
        self.restart([name])
        self.wait_until_alive(lambda: f"dtrain {self.version}" in self.tasks[name].text(), f"{name} of the other build")
        self.wait_for_progress(3)


class Update(Life):
    cluster_of = UpdatedCluster

    def update_all(self, mode):
        def blow(cluster):
            for name in ORDER:
                cluster.update(name)
        cluster = self.disturb(plan_of(mode, LAST_STEP), blow)
        self.assertGreater(self.assert_done(cluster)["metrics"]["accuracy"], LEARNT)
        return cluster

    def test_all_tasks_are_replaced_in_async(self):
        self.update_all("async")

    def test_all_tasks_are_replaced_in_sync_and_the_bits_stay(self):
        cluster = self.update_all("sync")
        self.assertEqual(self.differences(cluster, self.reference(plan_of("sync", LAST_STEP))), [], cluster.story())


if __name__ == "__main__":
    main()
