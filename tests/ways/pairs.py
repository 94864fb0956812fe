"""Few cases in which every pair of features stands together at least once.

A factor has a name and levels; a case has one level of each factor. Greedy, as in AETG (Cohen et al., 1997): each new
case is the best of a few candidates, each of which begins with a pair that no case has yet and gets level by level what
covers most. Everything is drawn from a seed, so the same factors give the same cases.
"""
import itertools
import random

CANDIDATES = 4  # per case; more make slightly fewer cases
LOOKS_MAX = 200000  # levels that are tried until a pair has a case, or has none
CASES_MAX = 10000
DRAWS_MAX = 1000  # for a case; most take one to three


class Cover:
    """factors: {name: [levels]}; may_stand(case so far, the name that was added last): whether these levels may stand
    together, whatever is added."""

    def __init__(self, factors, may_stand, seed=1):
        self.factors, self.may_stand = factors, may_stand
        self.order = list(factors)
        self.random = random.Random(seed)
        self.wanted, self.apart = set(), set()  # pairs that cases are to have; that no case can have, for what else it needs
        self.apart_from = dict.fromkeys(factors, 0)  # how many levels of others each factor does not stand beside
        self.partners = {}  # of (factor, level): those with which no case has it yet

    def want_all_pairs(self):
        for (a, levels), (b, others) in itertools.combinations(self.factors.items(), 2):
            for x, y in itertools.product(levels, others):
                if self.may_stand({a: x}, a) and self.may_stand({b: y}, b) and self.may_stand({a: x, b: y}, b):
                    self.wanted.add(frozenset([(a, x), (b, y)]))
                    self.partners.setdefault((a, x), set()).add((b, y))
                    self.partners.setdefault((b, y), set()).add((a, x))
                else:
                    self.apart_from[a] += 1
                    self.apart_from[b] += 1

    def level_of(self, name, case):
        """The level that covers most with what is there, of those that may stand beside it."""
        there = set(case.items())
        levels = list(self.factors[name])
        self.random.shuffle(levels)
        levels.sort(key=lambda level: -len(self.partners.get((name, level), set()) & there))
        return next((level for level in levels if self.may_add(case, name, level)), None)

    def may_add(self, case, name, level):
        case[name] = level
        may = self.may_stand(case, name)
        del case[name]
        return may

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

    def complete(self, case, left):
        """As candidate() does, but whatever has to be taken back for it; None: there is no such case."""
        rest = [name for name in self.order if name not in case]
        if not rest:
            return case
        left[0] -= 1
        if left[0] < 0:
            raise RuntimeError(f"no case with {case} was found, nor that there is none")
        open_levels = {name: [level for level in self.factors[name] if self.may_add(case, name, level)] for name in rest}
        if not all(open_levels.values()):
            return None
        name, there = max(rest, key=self.apart_from.get), set(case.items())
        for level in sorted(open_levels[name], key=lambda one: -len(self.partners.get((name, one), set()) & there)):
            whole = self.complete({**case, name: level}, left)
            if whole:
                return whole
        return None

    def next_case(self):
        one = self.random.choice(sorted(self.partners, key=str))
        other = self.random.choice(sorted(self.partners[one], key=str))
        candidates = [case for case in (self.candidate(dict([one, other])) for _ in range(CANDIDATES)) if case]
        if not candidates:
            whole = self.complete(dict([one, other]), [LOOKS_MAX])
            if not whole:  # each pair of them may stand, but not all
                self.cut(one, other)
                self.wanted.discard(frozenset([one, other]))
                self.apart.add(frozenset([one, other]))
                return None
            candidates = [whole]
        best = max(candidates, key=self.gain)
        for a, b in itertools.combinations(best.items(), 2):
            self.cut(a, b)
        return {name: best[name] for name in self.order}

    def cases(self):
        self.want_all_pairs()
        made = []
        while self.partners and len(made) < CASES_MAX:
            case = self.next_case()
            if case:
                made.append(case)
        return made


def random_cases(factors, may_stand, count, seed, begin=None):
    """Any levels that may stand together, all of which begin with these."""
    cover = Cover(factors, may_stand, seed)  # of which no pair is wanted: levels are drawn
    cases, draws = [], 0
    while len(cases) < count:
        case = cover.candidate(begin or {})
        draws += 1
        if case:
            cases.append({name: case[name] for name in cover.order})
        elif draws > DRAWS_MAX * count:
            raise RuntimeError(f"{draws} draws gave {len(cases)} cases with {begin}")
    return cases
