"""Rounds of clusters that are disturbed at random, one after another, until so many blows have
fallen: what kill.py and links.py have in common.

A round whose failure may be repeated prints its seed: --round gives the same draws again. The exit
code is 0 when nothing failed.
"""
import argparse
import random
import tempfile
import time

import program
from program import lives

ROUNDS_PER_BLOW_MAX = 4  # a round without a blow is one of pauses, or over too soon


class Case(lives.Life):
    """Not run by the loader of tests: its assertions serve the rounds."""

    def runTest(self):
        """For unittest, which wants a test of this name; main() calls rounds instead."""


def run_round(kind, seed):
    """Its blows, and the text of a failure or None. kind: a class whose objects, made of a case and
    a seed, can run(), count() blows and describe() themselves."""
    case = Case()
    folder = tempfile.TemporaryDirectory(prefix="dtrain-kill-")
    case.folder = folder.name
    one = kind(case, seed)
    try:
        one.run()
        return one.count(), None
    except (AssertionError, OSError) as trouble:
        return one.count(), f"{one.describe()}\n{trouble}"
    finally:
        case.doCleanups()
        folder.cleanup()


def read_options(about, blows, default):
    parser = argparse.ArgumentParser(description=about.split("\n", maxsplit=1)[0])
    parser.add_argument(f"--{blows}", dest="blows", type=int, default=default,
                        help="end after so many")
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
    for _ in range(options.blows * ROUNDS_PER_BLOW_MAX):
        yield rng.randrange(2 ** 31)


def main(kind, about, blows, default):
    """blows: what a kind of round counts ("kills"), and the name of the option that limits them."""
    options = read_options(about, blows, default)
    program.need_binary()
    Case.setUpClass()
    total = rounds = failures = 0
    began_s = time.monotonic()
    try:
        for seed in seeds_of(options):
            count, failure = run_round(kind, seed)
            total, rounds = total + count, rounds + 1
            if failure:
                failures += 1
                print(f"FAILED {failure}", flush=True)
            if total >= options.blows or (failure and not options.keep):
                break
    finally:
        Case.doClassCleanups()
    print(f"{total} {blows} in {rounds} rounds, {time.monotonic() - began_s:.0f} s: "
          f"{failures} failures", flush=True)
    return 1 if failures or (total < options.blows and options.round is None) else 0
