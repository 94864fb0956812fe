#!/usr/bin/env python3
"""kill.py - tasks die at random, and nothing is lost that must not be.

    tests/kill/kill.py --kills 50                  as the test suite does it, a minute or two
    tests/kill/kill.py --kills 1000 --seed 7       by hand; the seed is printed where none is given
    tests/kill/kill.py --kills 1000 --keep         goes on after a failure, and counts them

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

A round whose failure may be repeated prints its seed: --round gives the same draws again. The
exit code is 0 when nothing failed.
"""
import argparse
import os
import random
import signal
import sys
import tempfile
import time

sys.dont_write_bytecode = True  # the folder is part of the source

import ground
from ground import CHIEF, LEARNT, plan_of

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
ROUNDS_PER_KILL_MAX = 4  # a round without a kill is one of pauses, or over too soon
PAUSES = 4  # one blow of so many only holds a task up


class Mix(ground.Life):
    """Not run by the loader of tests: its assertions serve the rounds."""

    def runTest(self):
        """For unittest, which wants a test of this name; main() calls round() instead."""


def draw_round(seed):
    """What happens in one round; the same for the same seed."""
    rng = random.Random(seed)
    mode = rng.choice(("sync", "async"))
    flags = rng.choice(([], ["--transport=tcp"]))
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

    def kills(self):
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
            if self.cluster.step() >= LAST_BLOW_STEP:
                break
            self.strike(blow)
        self.check(reference)
        return self.kills()

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


def run_round(seed):
    """Kills, and the text of a failure or None."""
    case = Mix()
    folder = tempfile.TemporaryDirectory(prefix="dtrain-kill-")
    case.folder = folder.name
    one = Round(case, seed)
    try:
        one.run()
        return one.kills(), None
    except (AssertionError, OSError) as trouble:
        return one.kills(), f"{one.describe()}\n{trouble}"
    finally:
        case.doCleanups()
        folder.cleanup()


def read_options():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--kills", type=int, default=50, help="end after so many")
    parser.add_argument("--seed", type=int, help="of the draws; drawn where it is not given")
    parser.add_argument("--round", type=int, help="the seed of one round, to see it again")
    parser.add_argument("--keep", action="store_true", help="go on after a failure")
    return parser.parse_args()


def seeds_of(options):
    if options.round is not None:
        yield options.round
        return
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(2 ** 31)
    print(f"seed {seed}", flush=True)
    rng = random.Random(seed)
    for _ in range(options.kills * ROUNDS_PER_KILL_MAX):
        yield rng.randrange(2 ** 31)


def main():
    options = read_options()
    if not os.access(ground.BINARY, os.X_OK):
        sys.exit(f"DTRAIN_BINARY={ground.BINARY}: no such program")
    Mix.setUpClass()
    kills = rounds = failures = 0
    began_s = time.monotonic()
    try:
        for seed in seeds_of(options):
            count, failure = run_round(seed)
            kills, rounds = kills + count, rounds + 1
            if failure:
                failures += 1
                print(f"FAILED {failure}", flush=True)
            if kills >= options.kills or (failure and not options.keep):
                break
    finally:
        Mix.doClassCleanups()
    print(f"{kills} kills in {rounds} rounds, {time.monotonic() - began_s:.0f} s: "
          f"{failures} failures", flush=True)
    return 1 if failures or (kills < options.kills and options.round is None) else 0


if __name__ == "__main__":
    sys.exit(main())
