#!/usr/bin/env python3
"""defects.py - what tests do not see: breaks the program on purpose, again and again.

    tests/defects.py                        100 defects, drawn from all areas; by hand, an hour or so
    tests/defects.py --quick                20 of them, and only the tests that take a moment
    tests/defects.py --areas roles,data --count 50 --seed 7
    tests/defects.py --only core/data/formats/csv.c:120:negate     one of them again

A defect is one changed line: a statement dropped, a condition negated, a bound that is off by one,
"and" for "or". Each is made in a copy of the tree, never in the tree itself, built there, and
handed to the tests of its area, shortest first, until one fails. What survives all of them is
printed with its line, to be judged by a person: either nothing depends on the line, or a test is
missing. Lines that only say something are left alone. The exit code is 0, whatever survives.
"""
import argparse
import dataclasses
import difflib
import filecmp
import fnmatch
import glob
import json
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import law

ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir))
COUNT, QUICK_COUNT = 100, 20
QUICK_S = 3  # a test that takes longer is left out by --quick
SLOWER_MAX, SPARE_S = 5, 60  # a test that takes so many times as long as it did, and more, hangs
BUSY_MAX = 20  # seconds that a second of work may take beside others
BUILD_S = 900
SKIPPED = 77
SPARED = ("--twice",)  # words of tests: what they make sure of no defect changes
TAIL = 3  # lines of a test that failed

# What to break, and the suites that are to see it
AREAS = {
    "roles": (("core/cluster/role/*.c",),
              ("roles", "cluster", "simulate", "visit", "kill")),
    "runner": (("core/cluster/runner/*.c", "core/cluster/runner/feed/*.c", "core/cluster/runner/trace/*.c",
                "core/cluster/description/*.c"),
               ("cluster", "simulate", "visit", "profiler", "life", "kill")),
    "sessions": (("core/train/session/*.c",), ("train", "simulate", "tools", "life")),
    "checkpoints": (("core/train/checkpoint/*.c", "core/train/checkpoint/bundle/*.c"),
                    ("checkpoint", "simulate", "tools", "life", "kill")),
    "hooks": (("core/train/hooks/*.c",), ("hooks", "simulate", "tools", "life")),
    "data": (("core/data/*.c", "core/data/columns/*.c", "core/data/formats/*.c"),
             ("data", "train", "cmd", "cluster", "simulate")),
    "streams": (("core/data/stream/*.c", "core/data/follow/*.c", "core/data/packing/*.c"),
                ("data", "simulate", "life")),
}

STATEMENT = re.compile(r"(\s+)[\w*(][^;{}]*;$")
WHOLE_BEFORE = re.compile(r"([;{}:]|\*/|^)\s*$|^\s*(if|for|while) \(.*\)$|^\s*else$")
KEPT = re.compile(r"\s+(return|break|continue|goto|case|default|assert|static|const|struct|enum|"
                  r"uint\w+|int|char|size_t|bool|err|void|float|double|unsigned)\b")
WORDS_ONLY = re.compile(r"\b(log_line|outbox_log|fail|fail_prefix|snprintf|assert)\(")
CONDITION = re.compile(r"^(\s*(?:\} else )?if )\((.*)\)((?: \{| [^{}]*;)?)$")
CLAIM = re.compile(r"^(\s*return )(.*(?:&&|\|\||[<>]=?|==|!=).*)(;)$")
SWAPS = (  # name, pattern, what stands there instead
    ("bound", re.compile(r" < "), " <= "), ("bound", re.compile(r" <= "), " < "),
    ("bound", re.compile(r" > "), " >= "), ("bound", re.compile(r" >= "), " > "),
    ("equal", re.compile(r" == "), " != "), ("equal", re.compile(r" != "), " == "),
    ("and", re.compile(r" && "), " || "), ("and", re.compile(r" \|\| "), " && "),
    ("one", re.compile(r" \+ 1\b"), ""), ("one", re.compile(r" - 1\b"), ""),
    ("truth", re.compile(r"= true\b"), "= false"), ("truth", re.compile(r"= false\b"), "= true"),
)


@dataclasses.dataclass
class Defect:
    area: str
    path: str
    line: int  # from 1
    kind: str
    text: str  # the line as it becomes

    def name(self):
        return f"{self.path}:{self.line}:{self.kind}"


def is_balanced(text):
    return text.count("(") == text.count(")")


def dropped(line, before):
    """A statement that stands on one line, and is not needed for what follows to compile."""
    found = STATEMENT.match(line)
    if found and is_balanced(line) and not KEPT.match(line) and WHOLE_BEFORE.search(before):
        yield "drop", found.group(1) + ";"


def negated(line):
    found = CONDITION.match(line)
    if found and is_balanced(found.group(2)):
        yield "negate", f"{found.group(1)}(!({found.group(2)})){found.group(3)}"
    found = CLAIM.match(line)
    if found and is_balanced(found.group(2)):
        yield "negate", f"{found.group(1)}!({found.group(2)}){found.group(3)}"


def swapped(line):
    for kind, pattern, instead in SWAPS:
        for number, found in enumerate(pattern.finditer(line)):
            name = f"{kind}{number or ''}"
            yield name, line[:found.start()] + instead + line[found.end():]


def defects_of(area, path):
    """All that are known how to make, line by line of what is code."""
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        text = file.read()
    lines, code = text.split("\n"), law.without_noise(text).split("\n")
    for number, (line, bare) in enumerate(zip(lines, code)):
        if not line[:1].isspace() or WORDS_ONLY.search(line) or bare.rstrip() != line.rstrip():
            continue
        for kind, broken in (*dropped(line, code[number - 1]), *negated(line), *swapped(line)):
            yield Defect(area, path, number + 1, kind, broken)


def all_defects(areas):
    for area in areas:
        paths = [path for pattern in AREAS[area][0]
                 for path in sorted(glob.glob(pattern, root_dir=ROOT))]
        for path in dict.fromkeys(paths):
            yield from defects_of(area, path)


def drawn(areas, count, rng):
    """As many of each area, whatever its size."""
    pools = {area: list(all_defects([area])) for area in areas}
    for pool in pools.values():
        rng.shuffle(pool)
    for turn in range(count):
        pool = pools[areas[turn % len(areas)]]
        if pool:
            yield pool.pop()


def worked_s():
    """Of all that ended here: what they took of a processor, whatever else it had to do."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


class Limited:
    """A command with a limit, whose children end with it. worked_s: of a processor; took_s: on the clock."""

    def __init__(self, words, folder, limit_s, env=None):
        self.text, self.code = "", None
        began_s, had_worked_s = time.monotonic(), worked_s()
        with tempfile.TemporaryFile("w+", errors="replace") as output:
            with subprocess.Popen(words, cwd=folder, stdin=subprocess.DEVNULL, stdout=output,
                                  stderr=output, start_new_session=True,
                                  env={**os.environ, **(env or {})}) as process:
                try:
                    self.code = process.wait(limit_s)
                except subprocess.TimeoutExpired:
                    pass
                finally:
                    self.end_group(process)
            output.seek(0)
            self.text = output.read()
        self.took_s, self.worked_s = time.monotonic() - began_s, worked_s() - had_worked_s

    def end_group(self, process):
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


@dataclasses.dataclass
class Test:
    name: str
    suites: set
    words: list
    env: dict
    folder: str
    programs: list  # of the build, which it needs
    took_s: float = 0
    worked_s: float = 0

    def run(self, limit_s):
        return Limited(self.words, self.folder, limit_s, self.env)


class Copy:
    """The tree as it stands, in a folder of its own, built."""

    def __init__(self, folder):
        self.root = os.path.join(folder, "tree")
        self.build = os.path.join(self.root, "build")  # as in any tree, so that a cache of compilers serves
        self.fill()
        if not os.path.isdir(self.build):
            self.must(["meson", "setup", self.build, self.root, "-Dtests=enabled", "-Dcuda=disabled"])
        self.must(["ninja", "-C", self.build, "-j2"])
        self.tests = [self.read(test) for test in json.loads(
            self.must(["meson", "introspect", "--tests", self.build]).text)]

    def fill(self):
        """Only what has changed is written, so that only that is built."""
        listed = subprocess.run(["git", "ls-files", "-z", "-co", "--exclude-standard"], cwd=ROOT,
                                check=True, stdout=subprocess.PIPE, text=True).stdout
        for path in filter(None, listed.split("\0")):
            source, sink = os.path.join(ROOT, path), os.path.join(self.root, path)
            os.makedirs(os.path.dirname(sink), exist_ok=True)
            if os.path.islink(source) and not os.path.islink(sink):
                os.symlink(os.readlink(source), sink)
            if not os.path.isfile(source):
                continue
            if not os.path.isfile(sink) or not filecmp.cmp(source, sink, shallow=False):
                shutil.copy(source, sink)

    def must(self, words):
        ended = Limited(words, self.root, BUILD_S)
        if ended.code != 0:
            sys.exit(f"{' '.join(words)}: {ended.text}")
        return ended

    def read(self, test):
        test["cmd"] = [word for word in test["cmd"] if word not in SPARED]
        words = test["cmd"] + list(test["env"].values())
        programs = sorted({os.path.relpath(word, self.build) for word in words
                           if os.path.realpath(word).startswith(self.build + os.sep)})
        return Test(test["name"], {suite.split(":")[-1] for suite in test["suite"]}, test["cmd"],
                    test["env"], test["workdir"] or self.build, programs)

    def measure(self, suites, longest_s):
        """Leaves the tests that pass as it is, shortest first."""
        found = [test for test in self.tests if test.suites & suites]
        self.tests = []
        for test in found:
            ended = test.run(BUSY_MAX * longest_s)
            test.took_s, test.worked_s = ended.took_s, ended.worked_s
            if ended.code == 0 and ended.worked_s <= longest_s:
                self.tests.append(test)
            elif ended.code != SKIPPED:
                what = "fails" if ended.code else "takes too long"
                print(f"{test.name} {what} as it is, and is left out", flush=True)
        self.tests.sort(key=lambda test: test.worked_s)

    def write(self, path, text):
        with open(os.path.join(self.root, path), "w", encoding="utf-8") as file:
            file.write(text)

    def judge(self, defect):
        """What became of it, in words; None where it survived."""
        with open(os.path.join(self.root, defect.path), encoding="utf-8") as file:
            text = file.read()
        lines = text.split("\n")
        lines[defect.line - 1] = defect.text
        self.write(defect.path, "\n".join(lines))
        try:
            return self.try_tests(defect)
        finally:
            self.write(defect.path, text)

    def try_tests(self, defect):
        for test in filter(lambda test: test.suites & set(AREAS[defect.area][1]), self.tests):
            built = Limited(["ninja", "-C", self.build, "-j2", *test.programs], self.root, BUILD_S)
            if built.code != 0:
                return "does not compile"
            ended = test.run(SLOWER_MAX * test.took_s + SPARE_S)
            if ended.code is None:
                return f"caught by {test.name}, which hung"
            if ended.code not in (0, SKIPPED):
                return f"caught by {test.name} in {ended.took_s:.1f} s"
        return None


def describe(defect):
    with open(os.path.join(ROOT, defect.path), encoding="utf-8") as file:
        lines = file.read().split("\n")
    broken = lines.copy()
    broken[defect.line - 1] = defect.text
    shown = difflib.unified_diff(lines, broken, defect.path, defect.path, n=TAIL, lineterm="")
    return "\n".join(shown)


def read_options():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--areas", default=",".join(AREAS), help="of " + ", ".join(AREAS))
    parser.add_argument("--count", type=int, help="how many")
    parser.add_argument("--seed", type=int, help="of the draws; drawn where it is not given")
    parser.add_argument("--only", help="one of them again, or a pattern of names: \"*csv.c:*\"")
    parser.add_argument("--quick", action="store_true", help="few, and short tests only")
    parser.add_argument("--suites", help="only tests of these, of those that the areas have")
    parser.add_argument("--longest", type=float, default=60, help="leave out tests of more seconds of work")
    parser.add_argument("--folder", help="where the copy stands, to be used again; a new one where "
                                         "it is not given")
    options = parser.parse_args()
    options.count = options.count or (QUICK_COUNT if options.quick else COUNT)
    options.longest = QUICK_S if options.quick else options.longest
    return options


def choose(options):
    areas = options.areas.split(",")
    if options.only:
        return [d for d in all_defects(areas) if fnmatch.fnmatch(d.name(), options.only)]
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(2 ** 31)
    print(f"seed {seed}", flush=True)
    return list(drawn(areas, options.count, random.Random(seed)))


def judge_all(copy, chosen):
    survivors = []
    for defect in chosen:
        what = copy.judge(defect)
        print(f"{defect.name()}: {what or 'SURVIVED'}", flush=True)
        if not what:
            survivors.append(defect)
            print(describe(defect), flush=True)
    print(f"{len(survivors)} of {len(chosen)} survived", flush=True)
    for defect in survivors:
        print(f"  {defect.name()}: {defect.text.strip()}")


def main():
    options = read_options()
    chosen = choose(options)
    with tempfile.TemporaryDirectory(prefix="dtrain-defects-") as folder:
        copy = Copy(os.path.abspath(options.folder or folder))
        suites = {suite for defect in chosen for suite in AREAS[defect.area][1]}
        copy.measure(suites & set((options.suites or ",".join(suites)).split(",")), options.longest)
        judge_all(copy, chosen)


if __name__ == "__main__":
    main()
