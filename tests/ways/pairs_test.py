#!/usr/bin/env python3
"""The cases of tests/ways: every pair that may stand together does in one of them, and no other."""
import itertools
import unittest

import features
import pairs


class Pairs(unittest.TestCase):
    factors = {"a": [1, 2, 3], "b": list(range(5)), "c": ["x", "y"], "d": [False, True], "e": list("pqrs")}

    @staticmethod
    def may_stand(case, name=None):
        return not (case.get("a") == 1 and case.get("b") in (2, 3)) and not (case.get("c") == "x" and case.get("d"))

    def pairs_of(self, cases):
        return {pair for case in cases for pair in itertools.combinations(sorted(case.items()), 2)}

    def test_every_pair_that_may_stand_is_there_and_no_other(self):
        cases = pairs.Cover(self.factors, self.may_stand).cases()
        wanted = set()
        for (a, levels), (b, others) in itertools.combinations(sorted(self.factors.items()), 2):
            wanted |= {((a, x), (b, y)) for x in levels for y in others if self.may_stand({a: x, b: y})}
        self.assertEqual(self.pairs_of(cases), wanted)
        self.assertLess(len(cases), 40)  # of 480

    def test_every_pair_of_features_is_covered_or_stands_nowhere(self):
        cover = pairs.Cover(features.FACTORS, features.may_stand)
        cases = cover.cases()
        for case in cases:
            self.assertTrue(features.may_stand(case), case)
        self.assertEqual(cover.wanted - {frozenset(pair) for pair in self.pairs_of(cases)}, set())
        self.assertGreater(len(cover.wanted), 20 * len(cover.apart))

    def test_every_refusal_is_of_levels_that_can_be_said(self):
        words = {words for _, words in features.refused()}
        self.assertEqual(words, {words for _, words in features.REFUSED})

    def test_the_same_seed_gives_the_same_cases(self):
        self.assertEqual(pairs.Cover(self.factors, self.may_stand, 5).cases(), pairs.Cover(self.factors, self.may_stand, 5).cases())

    def test_what_is_drawn_may_stand(self):
        for case in pairs.random_cases(features.FACTORS, features.may_stand, 50, 3):
            self.assertTrue(features.may_stand(case))
            self.assertEqual(case.keys(), features.FACTORS.keys())

    def test_what_is_apart_names_levels_that_there_are(self):
        told = features.APART + [conditions for conditions, _ in features.REFUSED]
        for name, levels in itertools.chain.from_iterable(told):
            self.assertLessEqual(levels, set(features.FACTORS[name]))


if __name__ == "__main__":
    unittest.main()
