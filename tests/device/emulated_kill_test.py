"""Workers on an emulated GPU whose windows go and come while they train: a task is killed and
started again, and the run ends with the bits of one that nobody disturbed.

The emulated GPU ends a worker that lets go of memory that it still has pinned, or copies to or from
memory that it has not.
"""
import dataclasses
import signal

from program import main
from program.lives import CHIEF, Life, plan_of

LAST_STEP = 150
EARLY = 25  # steps before somebody dies: everything is recorded
ATTEMPTS = 8
SMALL = {
    "data.train": {"format": "digits", "rows": 400},
    "data.batch_size": 10,
    "model": [{"op": "flatten"},
              {"op": "dense", "name": "hidden", "units": 12, "activation": "relu"},
              {"op": "dense", "name": "logits", "units": 10}],
}
TRANSPORTS = {
    "tcp": ["--transport=tcp"],
    "parts": ["--transport=tcp", "--parts=always"],  # gradients travel on as they come from the GPU
    "shm": ["--transport=shm"],
    "auto": ["--transport=auto"],
}


class Windows(Life):
    def plan(self, transport, mode="sync", last_step=LAST_STEP):
        plan = plan_of(mode, last_step, SMALL, flags=TRANSPORTS[transport])
        return dataclasses.replace(plan, workers=2)

    def run_with_dead(self, plan, victim):
        cluster = self.begin(plan)
        cluster.wait_for_step(EARLY)
        cluster.wait_for_line(CHIEF, "saved ")
        cluster.restart([victim])
        self.assert_done(cluster)
        for name in cluster.workers():
            self.assert_says(cluster, name, "computes on GPU 0 ")
        return cluster

    def assert_same_bits(self, plan, victim):
        """A worker may die between two messages of one push, which is documented to change bits: not every time."""
        reference = self.reference(plan)
        for _ in range(ATTEMPTS):
            cluster = self.run_with_dead(plan, victim)
            found = self.differences(cluster, reference)
            if not found:
                return
        self.fail(f"{found}\n{cluster.story()}")

    def test_gradients_travel_on_as_they_come_from_the_gpu(self):
        plan = self.plan("parts")
        cluster = self.begin(plan)
        chief = cluster.tasks[CHIEF]

        def has_told():
            chief.process.send_signal(signal.SIGUSR1)
            return "gradients onward as they come from the device" in chief.text() or chief.has_ended()
        cluster.wait_until(has_told, "what overlaps in a step")
        self.assert_says(cluster, CHIEF, "overlap of a step: .*gradients onward as they come from the device")
        self.assert_done(cluster)
        self.assertFalse(self.differences(cluster, self.reference(self.plan("tcp"))), cluster.story())

    def test_a_worker_that_dies_takes_up_its_windows_again(self):
        for transport in TRANSPORTS:
            for victim in (CHIEF, "worker/1"):
                with self.subTest(transport=transport, victim=victim):
                    self.assert_same_bits(self.plan(transport), victim)

    def test_a_ps_that_dies_takes_its_windows_along_and_brings_others(self):
        for transport in TRANSPORTS:
            for mode in ("sync", "async"):
                with self.subTest(transport=transport, mode=mode):
                    cluster = self.run_with_dead(self.plan(transport, mode), "ps/1")
                    self.assert_says(cluster, CHIEF, "begins from ")


if __name__ == "__main__":
    main()
