#!/usr/bin/env python3
"""One stage of all tests: `meson test` in one build folder, and a test that failed once more, alone.

    stage.py REPORT BUILD [WORDS OF MESON TEST...]
    stage.py --left-out 'BUILD WORDS...' 'BUILD WORDS...'      fails where a test is in none of these stages

A machine that is shared can make a test of real processes fail which is sound: if it passes alone, the stage continues
and the test is named in REPORT, where whoever reads the end of the run finds it and mends it. What a sanitizer, the
simulator or a check of the sources finds does not depend on the machine and is never tried again. Sanitizers write what
they find into a folder of the stage, so that it counts whichever process it was in and whatever became of that.
Appended to REPORT: `shaky: NAME` lines, and `stage: WORDS: PASSED passed, FAILED failed, SKIPPED skipped, SECONDS`.
"""
import json
import os
import subprocess
import sys
import time
from pathlib import Path

AGAIN_MAX = 5  # more that fail are no chance
FINAL = {"law", "simulate", "ways", "world", "seeds"}  # suites whose outcome is a function of the sources
WRONG = ("FAIL", "TIMEOUT", "ERROR", "INTERRUPT", "UNEXPECTEDPASS")
FOUND = "Sanitizer:"
FINDING_LINES = 60
BY_HAND = {"gpu"}  # suites that no stage has: tests/gpu.sh


class Test:
    """One line of meson's log of tests."""

    def __init__(self, line):
        told = json.loads(line)
        suites, _, self.name = told["name"].rpartition(" / ")
        self.suites = set(suites.rpartition(":")[2].split("+"))
        self.result = told["result"]
        self.said = told.get("stdout", "") + told.get("stderr", "")

    def is_final(self):
        return bool(self.suites & FINAL) or FOUND in self.said


def log_of(build, words):
    """Where meson writes it: of another set-up another file."""
    setup = words[words.index("--setup") + 1] if "--setup" in words else None
    return build / "meson-logs" / (f"testlog-{setup}.json" if setup else "testlog.json")


def environment(findings):
    """Sanitizers stop a program at the first thing that is wrong, and leave it in the folder. What is undefined is told
    by a trap (SIGILL, SIGTRAP)."""
    stops = "halt_on_error=1:abort_on_error=1:print_summary=1"
    return {**os.environ,
            "ASAN_OPTIONS": f"{stops}:handle_sigill=1:handle_sigtrap=1:log_path={findings}/asan",
            # a handler runs in a thread that does nothing but wait for signals, and may do what others may not
            "TSAN_OPTIONS": f"{stops}:report_signal_unsafe=0:log_path={findings}/tsan"}


def meson(build, words, env):
    """Builds what these tests need, and runs them."""
    subprocess.run(["meson", "test", "-C", str(build), "--print-errorlogs", *words], env=env,
                   stdin=subprocess.DEVNULL, check=False)
    log = log_of(build, words)
    return [Test(line) for line in log.read_text(encoding="utf-8").splitlines()] if log.is_file() else []


def setup_words(words):
    """What runs a single test in the same way."""
    kept = []
    for name in ("--setup", "--timeout-multiplier"):
        if name in words:
            kept += [name, words[words.index(name) + 1]]
    return kept


def passes_alone(build, words, test, env):
    print(f"stage: {test.name} failed: once more, alone", flush=True)
    after = meson(build, [*setup_words(words), test.name], env)
    return bool(after) and all(one.result not in WRONG for one in after)


def final_findings(findings):
    """Without warnings that find nothing, and leaks: whoever fails leaves memory behind, and else a leak fails its test."""
    texts = {file.name: file.read_text(errors="replace") for file in sorted(findings.iterdir())}
    return {name: text for name, text in texts.items() if "SUMMARY:" in text and "LeakSanitizer" not in text}


def show_findings(findings):
    told = final_findings(findings)
    for name, text in told.items():
        print(f"stage: {name}:", *text.splitlines()[:FINDING_LINES], sep="\n")
    return len(told)


def tests_of(build):
    told = subprocess.run(["meson", "introspect", "--tests", str(build)], stdout=subprocess.PIPE, check=True).stdout
    for test in json.loads(told):
        if not BY_HAND & {suite.rpartition(":")[2] for suite in test["suite"]}:
            yield test["name"]


def listed(build, words):
    told = subprocess.run(["meson", "test", "-C", build, "--list", "--no-rebuild", *words], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, check=True, text=True).stdout
    return {line.rpartition(" / ")[2] for line in told.splitlines()}


def left_out(stages):
    """A test whose suites are in no stage would look like one that passes."""
    run_here = set().union(*(listed(build, words) for build, *words in stages))
    missing = sorted({name for build, *_ in stages for name in tests_of(build)} - run_here)
    for name in missing:
        print(f"stage: IN NO STAGE {name}")
    return 1 if missing else 0


def run(report, build, words):
    findings = build / "findings"
    findings.mkdir(exist_ok=True)
    for old in findings.iterdir():
        old.unlink()
    env, begin = environment(findings), time.monotonic()
    tests = meson(build, words, env)
    wrong = [test for test in tests if test.result in WRONG]
    shaky = []
    if len(wrong) <= AGAIN_MAX and not final_findings(findings):
        shaky = [test for test in wrong if not test.is_final() and passes_alone(build, words, test, env)]
    failed = [test for test in wrong if test not in shaky]
    skipped = sum(test.result == "SKIP" for test in tests)
    line = f"{len(tests) - skipped - len(failed)} passed, {len(failed)} failed, {skipped} skipped"
    with open(report, "a", encoding="utf-8") as file:
        file.writelines(f"shaky: {test.name}\n" for test in shaky)
        file.write(f"stage: {build.name} {' '.join(words)}: {line}, {time.monotonic() - begin:.0f} s\n")
    for test in failed:
        print(f"stage: FAILED {test.name}")
    return 0 if tests and not failed and not show_findings(findings) else 1


if __name__ == "__main__":
    if sys.argv[1] == "--left-out":
        sys.exit(left_out([stage.split() for stage in sys.argv[2:]]))
    sys.exit(run(Path(sys.argv[1]), Path(sys.argv[2]).resolve(), sys.argv[3:]))
