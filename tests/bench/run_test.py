#!/usr/bin/env python3
"""The harness itself: its arithmetic, a small whole run, and peers that do not do what they should.

    DTRAIN_BINARY=build/cmd/dtrain run_test.py
"""
import contextlib
import io
import json
import os
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

sys.dont_write_bytecode = True  # the folder is part of the source

import feeding
import measure
import run
import program
from program import BINARY
from workloads import MODES, TRANSPORTS, WORKLOADS

SHORT = ["--dtrain", BINARY, "--only", "softmax", "--transport", "shm", "--windows", "2",
         "--seconds", "0.1", "--starts", "1"]
TENSORFLOW = """
import json, sys
arguments = sys.argv[1:]
answer = {"wins": [10.0, 30.0, 20.0], "t_first": 2.5, "ps_mib": 500.0, "tf": "0.0"}
open(arguments[arguments.index("--json") + 1], "w").write(json.dumps(answer) + "\\n")
"""
TORCH = """
import json, sys
arguments = sys.argv[1:]
rates = [15.0, 20.0, 40.0] if "-p" in arguments else [30.0, 1.0, 2.0]
answer = {"runs": [[{"steps_per_s": rates}]]}
open(arguments[arguments.index("--json") + 1], "w").write(json.dumps(answer) + "\\n")
"""


class Harness(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def program(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(self.path(name), 0o755)
        return self.path(name)

    def run_bench(self, *arguments):
        """Exit code, figures and what was printed."""
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            code = run.main([*SHORT, "--json", self.path("figures"), *arguments])
        if not os.path.exists(self.path("figures")):
            return code, None, printed.getvalue()
        with open(self.path("figures"), encoding="utf-8") as file:
            return code, json.load(file), printed.getvalue()

    def test_windows_begin_after_the_warm_up_and_end_at_a_point(self):
        points = [(0.5, 1), (1.0, 100), (1.25, 500), (2.0, 1100), (2.5, 1500), (3.0, 1850)]
        self.assertEqual(measure.window_rates(points, 0.5, 0.75), [1000, 750])

    def test_no_windows_come_of_too_few_points(self):
        self.assertEqual(measure.window_rates([], 0.5, 1), [])
        self.assertEqual(measure.window_rates([(0.1, 1), (0.7, 9), (1.2, 20)], 0.5, 1), [])

    def test_every_workload_is_a_valid_spec_and_has_every_goal(self):
        for workload in WORKLOADS:
            spec = os.path.join(measure.SPECS, workload.spec_name())
            done = subprocess.run([BINARY, "check", spec], capture_output=True, text=True,
                                  timeout=60, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(f"batch size {workload.batch},", done.stdout)
            self.assertIn("optimizer:", done.stdout)
            self.assertEqual(set(workload.goals), {(t, m) for t in TRANSPORTS for m in MODES})

    def test_a_short_run_measures_speed_and_start(self):
        code, figures, printed = self.run_bench("--parts", "throughput,start")
        self.assertEqual(code, 0, printed)
        self.assertEqual(len(figures["throughput"]), 2)
        self.assertEqual(len(figures["start"]), 2)
        for record in figures["throughput"]:
            self.assertEqual(len(record["examples_per_second"]), 2)
            self.assertGreater(record["median"], 1000)
            self.assertEqual(record["origin"], "reference")
        for record in figures["start"]:
            self.assertGreater(record["median"], 0.001)
            self.assertLess(record["median"], measure.START_LIMIT_S)

    def test_a_ps_is_measured_against_its_own_share(self):
        code, figures, printed = self.run_bench("--parts", "memory", "--only", "mlp_adam",
                                                "--mode", "sync")
        self.assertEqual(code, 0, printed)
        self.assertEqual([record["ps"] for record in figures["memory"]], [0, 1])
        parameters = 784 * 512 + 512 + 512 * 512 + 512 + 512 * 10 + 10
        self.assertEqual(sum(record["state"] for record in figures["memory"]), 3 * 4 * parameters)
        for record in figures["memory"]:
            self.assertGreater(record["peak"], record["anonymous"])
            self.assertGreater(record["shared"] + record["anonymous"], record["state"])

    def test_tensorflow_of_the_same_run_replaces_the_reference(self):
        script = self.program("peer.py", TENSORFLOW)
        code, figures, printed = self.run_bench(
            "--mode", "async", "--parts", "throughput",
            "--tensorflow-python", sys.executable, "--tensorflow-bench", script)
        self.assertEqual(code, 0, printed)
        record = figures["throughput"][0]
        self.assertEqual((record["tensorflow"], record["origin"]), (20.0, "measured"))
        self.assertAlmostEqual(record["ratio"], record["median"] / 20.0)
        self.assertIn("2.50 s to the first step", printed)

    def test_what_arithmetic_and_pytorch_say_of_a_click_model_bounds_its_goal(self):
        torch = self.program("torch.py", TORCH)
        options = run.read_options([*SHORT, "--torch-python", sys.executable, "--torch-bench", torch])
        workload = next(one for one in WORKLOADS if one.name == "clicks")
        bench = run.Bench(options)
        found = {transport: bench.bounds(measure.Case(workload, "sync", transport))
                 for transport in TRANSPORTS}
        self.assertEqual(bench.found["failures"], [])
        self.assertEqual(found["shm"]["at_least"], 3.5 * 2 * 20 * 1024)  # two processes are its best
        self.assertEqual(found["tcp"]["at_least"], 0.75 * found["shm"]["at_least"])
        self.assertEqual(found["tcp"]["at_most"], 0.75 * found["shm"]["at_most"])
        self.assertGreater(found["shm"]["at_most"], 100)
        self.assertEqual(run.least(10, None, None), 10)
        self.assertEqual(run.least(10, 8, None), 8)
        self.assertEqual(run.least(10, 8, 9), 9)

    def test_a_bare_server_is_a_bound_beside_the_figure(self):
        bare = self.program("bare", "#!/bin/sh\necho \"ran $*: ex/s 4000000\"\n")
        _, figures, printed = self.run_bench("--mode", "async", "--parts", "throughput",
                                             "--minishm", bare)
        self.assertEqual(figures["throughput"][0]["bare"], 4000000)
        self.assertIn("of a bare server (4,000,000)", printed)

    def test_what_is_measured_is_not_steered_from_outside(self):
        os.environ["OMP_NUM_THREADS"] = "7"
        self.addCleanup(os.environ.pop, "OMP_NUM_THREADS")
        bare = self.program("bare", "#!/bin/sh\necho \"ex/s ${OMP_NUM_THREADS-4000000}\"\n")
        _, figures, printed = self.run_bench("--mode", "async", "--parts", "throughput",
                                             "--minishm", bare)
        self.assertEqual(figures["throughput"][0]["bare"], 4000000)
        self.assertRegex(printed, "left out of the environment: .*OMP_NUM_THREADS")

    def test_a_peer_that_fails_is_reported_and_the_rest_is_measured(self):
        broken = self.program("broken", "#!/bin/sh\necho no library >&2\nexit 3\n")
        code, figures, printed = self.run_bench("--mode", "async", "--parts", "throughput",
                                                "--minishm", broken)
        self.assertEqual(code, 1)
        self.assertEqual(len(figures["throughput"]), 1)
        self.assertIn("exit code 3", figures["failures"][0])
        self.assertIn("no library", printed)

    def test_a_program_that_ends_early_is_reported_with_its_last_words(self):
        early = self.program("early", "#!/bin/sh\necho dtrain 0\n"
                             "[ \"$1\" = --version ] || { echo out of luck >&2; exit 1; }\n")
        code, figures, printed = self.run_bench("--mode", "sync", "--parts", "throughput,start",
                                                "--dtrain", early)
        self.assertEqual(code, 1)
        self.assertEqual(figures["throughput"] + figures["start"], [])
        self.assertIn("out of luck", printed)

    def test_a_program_that_is_not_there_is_named(self):
        code, figures, printed = self.run_bench("--dtrain", self.path("nothing"))
        self.assertEqual((code, figures), (2, None))
        self.assertIn("build first", printed)


class Feeding(unittest.TestCase):
    def test_runs_come_in_pairs_and_are_held_against_the_goal(self):
        rates = {"between_graph": [100.0, 200.0, 100.0], "in_graph": [95.0, 160.0, 85.0]}
        asked = []

        def throughput(_, case, __):
            asked.append(case.workload.settings["train.replication"])
            return [rates[asked[-1]][(len(asked) - 1) // 2]]
        bench = feeding.Bench(feeding.read_options(["--pairs", "3"]))
        with mock.patch.object(measure, "throughput", throughput), \
                contextlib.redirect_stdout(io.StringIO()):
            bench.measure(WORKLOADS[0], "sync", "tcp")
        between, fed = feeding.REPLICATIONS
        self.assertEqual(asked, [between, fed, fed, between, between, fed])
        goal = bench.found["cases"][0]["goals"][0]
        self.assertEqual((goal["figure"], goal["at_least"], goal["is_ok"]), (0.85, 0.9, False))

    def test_a_short_run_measures(self):
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
            figures = os.path.join(folder, "figures")
            code = feeding.main(["--binary", BINARY, "--only", "softmax", "--mode", "sync", "--transport", "shm",
                                 "--pairs", "1", "--windows", "1", "--seconds", "0.1", "--json", figures])
            self.assertEqual(code, 0)
            with open(figures, encoding="utf-8") as file:
                found = json.load(file)
        self.assertEqual((len(found["cases"]), found["failures"]), (1, []))
        self.assertGreater(found["cases"][0]["in_graph"][0], 1000)


if __name__ == "__main__":
    program.main()
