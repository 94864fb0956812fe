"""Few cases in which every pair of features stands together at least once.

A factor has a name and levels; a case has one level of each factor. Greedy, as in AETG (Cohen et al., 1997): each new
case is the best of a few candidates, each of which begins with a pair that no case has yet and gets level by level what
covers most. Everything is drawn from a seed, so the same factors give the same cases.
"""
import itertools
import random

CANDIDATES = 4  # per case; more make slightly fewer cases
CASES_MAX = 10000


class Cover:
    """factors: {name: [levels]}; may_stand(case so far): whether these levels may stand together, whatever is added."""

    def __init__(self, factors, may_stand, seed=1):
        self.factors, self.may_stand = factors, may_stand
        self.order = list(factors)
        self.random = random.Random(seed)
        self.partners = {}  # of (factor, level): those with which no case has it yet
        for (a, levels), (b, others) in itertools.combinations(factors.items(), 2):
            for x, y in itertools.product(levels, others):
                if may_stand({a: x, b: y}):
                    self.partners.setdefault((a, x), set()).add((b, y))
                    self.partners.setdefault((b, y), set()).add((a, x))

    def level_of(self, name, case):
        """The level that covers most with what is there, of those that may stand beside it."""
        there = set(case.items())
        levels = list(self.factors[name])
        self.random.shuffle(levels)
        levels.sort(key=lambda level: -len(self.partners.get((name, level), set()) & there))
        return next((level for level in levels if self.may_stand({**case, name: level})), None)

    def candidate(self, begin):
        case = dict(begin)
        rest = [name for name in self.order if name not in case]
        self.random.shuffle(rest)
        for name in rest:
            level = self.level_of(name, case)
            if level is None:
                return None
            case[name] = level
        return case

    def cut(self, one, other):
        """They stand together now, or cannot."""
        for a, b in ((one, other), (other, one)):
            if a in self.partners:
                self.partners[a].discard(b)
                if not self.partners[a]:
                    del self.partners[a]

    def gain(self, case):
        there = set(case.items())
        return sum(len(self.partners.get(one, set()) & there) for one in there)

    def next_case(self):
        one = self.random.choice(sorted(self.partners, key=str))
        other = self.random.choice(sorted(self.partners[one], key=str))
        candidates = [case for case in (self.candidate(dict([one, other])) for _ in range(CANDIDATES)) if case]
        if not candidates:  # each pair of them may stand, but not all
            self.cut(one, other)
            return None
        best = max(candidates, key=self.gain)
        for a, b in itertools.combinations(best.items(), 2):
            self.cut(a, b)
        return {name: best[name] for name in self.order}

    def cases(self):
        made = []
        while self.partners and len(made) < CASES_MAX:
            case = self.next_case()
            if case:
                made.append(case)
        return made


def random_cases(factors, may_stand, count, seed, begin=None):
    """Any levels that may stand together, all of which begin with these."""
    cover = Cover(factors, may_stand, seed)
    cover.partners = {}  # nothing is gained: levels are drawn
    cases = []
    while len(cases) < count:
        case = cover.candidate(begin or {})
        if case:
            cases.append({name: case[name] for name in cover.order})
    return cases
