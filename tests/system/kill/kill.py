#!/usr/bin/env python3
"""kill.py - tasks die at random, and nothing is lost that must not be.

    tests/system/kill/kill.py --kills 50                  as the test suite does it, a minute or two
    tests/system/kill/kill.py --kills 1000 --seed 7       by hand; the seed is printed where none is given
    tests/system/kill/kill.py --kills 1000 --keep         continues after a failure, and counts them

Rounds follow one another, each a cluster of its own: 2 ps and 3 workers, a mode, a transport and a
few blows: SIGKILL of a task or of several, which are started again at once as a supervisor would,
or SIGSTOP with SIGCONT a little later. When a blow falls is drawn in lines of progress, plus a
random part of a step. What is checked when the round is over:

- every task has ended by itself, with exit code 0, soon after one another, at the last step exactly
- the last checkpoint is whole, its step is right, and nothing lies beside it
- the model has learnt
- sync, and no worker but all at once was killed: the same bits as a run without blows
- async, and no ps was killed: the global step never fell
- whoever was killed alone is told of in the logs of the others; nobody else was restarted
"""
import random
import signal
import sys
import time

sys.dont_write_bytecode = True  # the folder is part of the source

import rounds
from program.lives import CHIEF, KILLED, LEARNT, Over, plan_of

LAST_STEP = 240
BLOWS_MAX = 4  # of one round
GAP_LINES = (10, 60)  # between two blows
STEP_S = 0.005  # about a step: the part of it after which a blow falls
STILL_S = (0.01, 0.3)
LAST_BLOW_STEP = LAST_STEP - 60  # later, the run may be over before the dead live again
VICTIMS = ("ps/0", "ps/1", "worker/0", "worker/1", "worker/2")
# What may be hit: (weight, tasks); None: anything of VICTIMS
TARGETS = ((3, ("ps/0",)), (3, ("ps/1",)), (1, ("ps/0", "ps/1")), (3, (CHIEF,)),
           (3, ("worker/1",)), (1, ("worker/1", "worker/2")), (1, (CHIEF, "ps/1")),
           (2, VICTIMS))
PAUSES = 4  # one blow of so many only holds a task up


def draw_round(seed):
    """What happens in one round; the same for the same seed."""
    rng = random.Random(seed)
    mode = rng.choice(("sync", "async"))
    flags = rng.choice(([], ["--transport=tcp", "--parts=always"]))
    blows = []
    for _ in range(rng.randint(1, BLOWS_MAX)):
        targets = rng.choices([t for _, t in TARGETS], [w for w, _ in TARGETS])[0]
        is_pause = rng.randrange(PAUSES) == 0
        blows.append({
            "lines": rng.randint(*GAP_LINES), "delay_s": rng.random() * STEP_S,
            "targets": [rng.choice(VICTIMS)] if is_pause else list(targets),
            "still_s": rng.uniform(*STILL_S) if is_pause else 0})
    return mode, flags, blows


class Round:
    def __init__(self, case, seed):
        self.case, self.seed = case, seed
        self.mode, flags, self.blows = draw_round(seed)
        self.plan = plan_of(self.mode, LAST_STEP, flags=flags)
        self.flags = flags
        self.cluster = None
        self.dead = []  # lists of names that died together

    def describe(self):
        blows = "; ".join(f"{'+'.join(b['targets'])}{' held up' if b['still_s'] else ''}"
                          for b in self.blows)
        return f"round {self.seed}: {self.mode} {' '.join(self.flags) or 'auto'}: {blows}"

    def count(self):
        return sum(map(len, self.dead))

    def strike(self, blow):
        time.sleep(blow["delay_s"])  # of no meaning but where in a step it falls
        if not blow["still_s"]:
            self.cluster.restart(blow["targets"])
            self.dead.append(blow["targets"])
            return
        task = self.cluster.tasks[blow["targets"][0]]
        task.process.send_signal(signal.SIGSTOP)
        time.sleep(blow["still_s"])
        task.process.send_signal(signal.SIGCONT)

    def run(self):
        reference = self.case.reference(self.plan) if self.mode == "sync" else None
        self.cluster = self.case.begin(self.plan)
        for blow in self.blows:
            self.cluster.wait_for_progress(blow["lines"], LAST_BLOW_STEP)
            if self.cluster.step() >= LAST_BLOW_STEP or not self.has_struck(blow):
                break
        if KILLED not in [task.code() for task in self.cluster.tasks.values()]:
            self.check(reference)

    def has_struck(self, blow):
        """False: we stood still, and the run is over. Of several victims some may have been killed before its end: they
        are not started again, and the round says nothing."""
        try:
            self.strike(blow)
            return True
        except Over:
            return False

    def check(self, reference):
        case, cluster = self.case, self.cluster
        result = case.assert_done(cluster)
        case.assertGreater(result["metrics"]["accuracy"], LEARNT, cluster.story())
        lives = {name: 1 + sum(name in names for names in self.dead) for name in VICTIMS}
        case.assertEqual({name: len(cluster.lives[name]) for name in VICTIMS}, lives)
        if reference and all(is_exact(names) for names in self.dead):
            case.assertEqual(case.differences(cluster, reference), [], cluster.story())
        if self.mode == "async" and not any(name in ("ps/0", "ps/1")
                                            for names in self.dead for name in names):
            for name in cluster.workers():
                steps = cluster.steps_of(name)
                case.assertEqual(steps, sorted(set(steps)), cluster.story())
        self.check_words()

    def check_words(self):
        """One death at a time: who lives on names the dead."""
        if len(self.dead) != 1 or len(self.dead[0]) != 1:
            return
        victim = self.dead[0][0]
        others = self.cluster.workers() if victim.startswith("ps/") else self.cluster.servers()
        for name in others:
            self.case.assert_says(self.cluster, name, f"lost {victim}")


def is_exact(names):
    """Whether such deaths change no bit: a worker that dies alone may have pushed to one ps."""
    return all(name.startswith("ps/") for name in names) or set(names) == set(VICTIMS)


if __name__ == "__main__":
    sys.exit(rounds.main(Round, __doc__, "kills", 50))
