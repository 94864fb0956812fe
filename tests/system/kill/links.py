#!/usr/bin/env python3
"""links.py - connections break at random, and nothing is lost that must not be.

    tests/system/kill/links.py --ends 200                 as the test suite does it, less than a minute
    tests/system/kill/links.py --ends 1000 --seed 7       by hand; the seed is printed where none is given
    tests/system/kill/links.py --ends 1000 --keep         continues after a failure, and counts them

Rounds follow one another, each a cluster of its own: 2 ps and 3 workers that talk over TCP, through
a proxy that resets, cuts, halves, stalls, delays and splits their connections (proxy.py). No task
is killed. What is checked when the round is over:

- every task has ended by itself, with exit code 0, soon after one another, at the last step exactly
- the last checkpoint is whole, its step is right, and nothing lies beside it
- sync: the same bits as a run without trouble; but where the fastest are enough (--round says
  "backup"), whose gradients are taken is a matter of time
- async: every ps has applied as many pushes as there are steps, of all that the workers have sent
"""
import ast
import dataclasses
import os
import random
import struct
import sys
import zipfile

sys.dont_write_bytecode = True  # the folder is part of the source

import proxy
import rounds
from program import lives
from program.lives import plan_of

LAST_STEP = 120
CALM_STEP = 80  # later, the run may be over before what is broken is whole again
ENDS_MAX = 30  # of one round
STEP_BYTES = 65000  # about what a step of one worker brings to a ps, or back
BYTES_MAX = 8 * STEP_BYTES  # of one connection, at most, before it is ended
SMALL = {
    "data.batch_size": 20,
    "model": [{"op": "flatten"},
              {"op": "dense", "name": "hidden", "units": 16, "activation": "relu"},
              {"op": "dense", "name": "wide", "units": 784, "activation": "relu"},
              {"op": "dense", "name": "logits", "units": 10}],
}
MODES = {  # what is said to the spec
    "sync": {"train.mode": "sync"},
    "backup": {"train.mode": "sync", "train.replicas_to_aggregate": 2},
    "async": {"train.mode": "async"},
    "stale": {"train.mode": "async", "train.max_staleness": 1},
}


def limits_of(plan, ends_max):
    """A step is one worker's in asynchronous mode, and everybody's in the other."""
    workers = plan.workers if plan.changes["train.mode"] == "sync" else 1
    return proxy.Limits(ends=ends_max, bytes_each=BYTES_MAX,
                        bytes_all=CALM_STEP * workers * 2 * plan.ps * STEP_BYTES)


class ProxiedCluster(lives.LivingCluster):
    """Its ps listen behind a proxy, whose addresses everybody was told."""

    def __init__(self, folder, plan, seed, ends_max, passage=proxy.Passage):
        super().__init__(folder, plan)
        self.behind = self.hosts["ps"]
        self.proxy = proxy.Proxy(self.behind, seed, limits_of(plan, ends_max), passage)
        self.hosts["ps"] = self.proxy.addresses
        for ps, address in enumerate(self.behind):
            self.plan.flags_of.setdefault(f"ps/{ps}", []).append(f"--bind={address}")

    def address(self, name):
        job, index = name.split("/")
        return self.behind[int(index)] if job == "ps" else super().address(name)

    def story(self):
        return f"{self.proxy.story()}\n{super().story()}"

    def kill(self):
        super().kill()
        self.proxy.close()


def read_numbers(npz, name):
    """Of a tensor of whole numbers, in a file that numpy could read: shape and numbers."""
    with zipfile.ZipFile(npz) as archive:
        data = archive.read(f"{name}.npy")
    begin = 10 + int.from_bytes(data[8:10], "little")
    about = ast.literal_eval(data[10:begin].decode())
    return about["shape"], struct.unpack(f"<{(len(data) - begin) // 8}q", data[begin:])


class Round:
    def __init__(self, case, seed):
        self.case, self.seed = case, seed
        rng = random.Random(seed)
        self.mode = rng.choice(("sync", "sync", "backup", "async", "async", "stale"))
        self.ends_max = rng.randint(1, ENDS_MAX)
        self.wire = rng.choice(("float32", "bf16"))
        self.wire_values = rng.choice(("float32", "bf16"))
        wires = {"train.wire": self.wire, "train.wire_values": self.wire_values}
        self.plan = plan_of("", LAST_STEP, {**SMALL, **MODES[self.mode], **wires},
                            flags=["--transport=tcp", "--parts=always", "--log_level=debug"])
        self.cluster = None

    def describe(self):
        return (f"round {self.seed}: {self.mode}, {self.wire}, values {self.wire_values}, at most "
                f"{self.ends_max} ends")

    def count(self):
        return self.cluster.proxy.count() if self.cluster else 0

    def run(self):
        reference = self.case.reference(self.plan) if self.mode == "sync" else None
        plan = dataclasses.replace(self.plan, flags_of={**self.plan.flags_of})
        self.cluster = ProxiedCluster(self.case.folder, plan, self.seed, self.ends_max)
        self.case.addCleanup(self.cluster.kill)
        self.cluster.start_planned()
        self.check(reference)

    def check(self, reference):
        case, cluster = self.case, self.cluster
        case.assert_done(cluster)
        case.assertEqual(cluster.proxy.trouble, [], cluster.story())
        if reference:
            case.assertEqual(case.differences(cluster, reference), [], cluster.story())
        if self.mode == "async":
            self.check_pushes()

    def check_pushes(self):
        code, text = lives.dtrain(self.cluster, "checkpoint", "export", "run", "last.npz")
        self.case.assertEqual(code, 0, text)
        for ps in range(self.plan.ps):
            shape, ledgers = read_numbers(os.path.join(self.cluster.folder, "last.npz"),
                                          f"dtrain/ledger/ps_{ps:05}")
            self.case.assertEqual(shape[0], self.plan.workers)
            taken = ledgers[1::shape[1]]
            self.case.assertEqual(sum(taken), LAST_STEP, f"{ledgers}\n{self.cluster.story()}")


if __name__ == "__main__":
    sys.exit(rounds.main(Round, __doc__, "ends", 200))
