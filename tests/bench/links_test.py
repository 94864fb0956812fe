#!/usr/bin/env python3
"""What links.py computes, and the order of its runs; no hosts are made, which root alone may.

    DTRAIN_BINARY=build/cmd/dtrain links_test.py
"""
import argparse
import contextlib
import io
import json
import os
import sys
import tempfile
import unittest
from unittest import mock

sys.dont_write_bytecode = True  # the folder is part of the source

import lines
import links
import many
import measure
import program
from program.hosts import Hosts
from links import Case, Timing
from program import BINARY
from workloads import WORKLOADS

CNN = next(workload for workload in WORKLOADS if workload.name == "cnn")
NOTHING = {"one_host": None, "free": None, "transfer": None, "plan": None, "torch": None,
           "float32": None, "first": None}


def goals(case, step_s, **beside):
    return links.judge(case, step_s, {**NOTHING, **beside})


class Links(unittest.TestCase):
    def test_rates_are_numbers_or_none(self):
        self.assertEqual(links.rates("1,2.5,none"), ("1", "2.5", "none"))
        self.assertEqual([links.rate_mbit(rate) for rate in ("1", "2.5", "none")],
                         [1000, 2500, None])
        for wrong in ("", "1,", "fast", "0", "-1", "nan", "2000"):
            with self.assertRaises(argparse.ArgumentTypeError):
                links.rates(wrong)

    def test_tasks_are_mixed_or_apart(self):
        def sides(layout):
            return [links.side(layout, job, i) for job in ("ps", "worker") for i in range(2)]
        self.assertEqual(sides("mixed"), [0, 1, 0, 1])
        self.assertEqual(sides("apart"), [0, 0, 1, 1])

    def test_bytes_are_those_of_the_fuller_direction(self):
        # gradients to the other ps, and values of the own one to the other worker
        self.assertEqual(links.bytes_one_way("mixed", [600, 400], "float32"), 1000)
        self.assertEqual(links.bytes_one_way("mixed", [600, 400], "bf16"), 800)
        # values to both workers, against gradients of both
        self.assertEqual(links.bytes_one_way("apart", [600, 400], "float32"), 2000)
        self.assertEqual(links.bytes_one_way("apart", [600, 400], "bf16"), 2000)
        self.assertEqual(links.bytes_one_way("apart", [600, 400], "bf16+values"), 1000)

    def test_a_case_sets_what_it_does_not_leave_as_float32(self):
        def said(wire):
            return [word for word in Case(CNN, "sync", "apart", "1", wire).settings()
                    if word.startswith("train.wire")]
        self.assertEqual([said(wire) for wire in ("float32", "bf16", "fp16+values")], [
            [], ["train.wire=bf16"], ["train.wire=fp16", "train.wire_values=fp16"]])

    def test_a_step_is_one_of_every_worker(self):
        points = [(1.0, 4), (3.0, 10), (4.0, 14), (5.0, 18), (8.0, 30)]
        timing = Timing(steps=4, warmup=8)
        self.assertEqual(links.step_seconds(points, timing, batches=2), 1 / 4)
        self.assertEqual(links.step_seconds(points, timing, batches=1), 2 * 3 / 12)
        self.assertIsNone(links.step_seconds(points[:2], timing, batches=2))
        self.assertIsNone(links.step_seconds([], timing, batches=2))

    def test_a_step_is_held_against_the_longer_of_what_it_is_made_of(self):
        case = Case(CNN, "sync", "mixed", "2.5")
        found, = goals(case, 0.23, free=0.1, transfer=0.2)
        self.assertAlmostEqual(found["figure"], 1.15)
        self.assertEqual((found["at_most"], found["is_ok"]), (1.15, found["figure"] <= 1.15))
        found, = goals(case, 0.12, free=0.1, transfer=0.05)
        self.assertEqual((round(found["figure"], 2), found["is_ok"]), (1.2, False))
        found, = goals(Case(CNN, "async", "apart", "10"), 0.119, free=0.1, transfer=0.05)
        self.assertEqual((found["at_most"], found["is_ok"]), (1.2, True))

    def test_nothing_is_held_against_what_was_not_measured(self):
        self.assertEqual(goals(Case(CNN, "sync", "mixed", "1"), 0.2, free=0.1), [])
        self.assertEqual(goals(Case(CNN, "sync", "mixed", "none"), 0.2, free=0.2, transfer=0.1), [])
        self.assertEqual(goals(Case(CNN, "sync", "shm"), 0.2, one_host=0.2), [])

    def test_the_peer_has_a_goal_on_the_narrow_link_in_synchronous_mode(self):
        for mode, rate, is_ok in (("sync", "1", True), ("async", "1", None), ("sync", "10", None)):
            found, = goals(Case(CNN, mode, "mixed", rate), 0.1, torch=0.2)
            self.assertEqual((found["figure"], found["is_ok"]), (2, is_ok))
        found, = goals(Case(CNN, "sync", "mixed", "1"), 0.1, torch=0.18)
        self.assertIs(found["is_ok"], False)

    def test_narrow_numbers_are_held_against_float32(self):
        for layout, limit in (("mixed", links.NOT_SLOWER), ("apart", 0.8)):
            for wire in ("bf16", "bf16+values"):
                found, = goals(Case(CNN, "sync", layout, "1", wire), 0.9, float32=1)
                self.assertEqual((found["at_most"], found["is_ok"]), (limit, layout == "mixed"))

    def test_a_step_is_held_against_its_plan_either_way(self):
        for planned, is_ok in ((1.0, True), (1.19, True), (0.85, True), (1.3, False), (0.7, False)):
            found, = goals(Case(CNN, "sync", "apart", "1"), 1.0, plan=planned)
            self.assertIs(found["is_ok"], is_ok)

    def test_a_second_program_is_held_against_the_first_on_one_host(self):
        found, = goals(Case(CNN, "sync", "shm"), 1.1, first=1)
        self.assertIs(found["is_ok"], False)
        found, = goals(Case(CNN, "sync", "mixed", "none"), 1.1, first=1)
        self.assertIsNone(found["is_ok"])

    def test_a_line_has_what_was_measured_and_each_goal(self):
        case = Case(CNN, "sync", "mixed", "1")
        beside = {**NOTHING, "free": 0.1, "transfer": 0.105}
        line = lines.step({**case.names(), "program": "", "step_s": 0.2, "beside": beside,
                           "examples_per_second": 500.0, "goals": links.judge(case, 0.2, beside)})
        self.assertRegex(line, r"^ +cnn +sync +mixed +1 Gbit/s float32 +200\.00 +- +100\.00 +105\.00"
                               r" +500  1\.90 of the longer, at most 1\.15: NOT$")

    def test_figures_are_medians_of_programs_and_cases_in_turn(self):
        made = []

        def measured(_, name, case):
            made.append((name, case.layout, case.rate))
            return float(len(made)) * (2 if name == "new" else 1)

        with contextlib.ExitStack() as stack:
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            path, printed = os.path.join(folder, "figures"), io.StringIO()
            for name, body in (("on_one_host", measured), ("on_two_hosts", measured),
                               ("transfer", lambda *_: 1.5), ("knows", lambda _, case: True),
                               ("shares", lambda *_: [1, 1])):
                stack.enter_context(mock.patch.object(links.Bench, name, body))
            stack.enter_context(mock.patch.object(links, "version", lambda name: [name]))
            stack.enter_context(mock.patch.object(Hosts, "__enter__", lambda hosts: hosts))
            stack.enter_context(contextlib.redirect_stdout(printed))
            code = links.main(["--binary", "old", "--binary", "new", "--only", "cnn", "--mode",
                               "sync", "--layouts", "mixed", "--rates", "1", "--wires", "float32",
                               "--repeats", "3", "--torch-python", "/nowhere", "--json", path])
            with open(path, encoding="utf-8") as file:
                found = json.load(file)
        turn = [(name, layout, rate)
                for layout, rate in (("shm", None), ("mixed", "none"), ("mixed", "1"))
                for name in ("old", "new")]
        self.assertEqual((code, made), (0, turn * 3), printed.getvalue())
        steps = {(step["program"], step["rate"]): step for step in found["steps"]}
        self.assertEqual(steps["A", "none"]["samples"], [3, 9, 15])
        self.assertEqual(steps["B", "1"]["step_s"], 24)
        self.assertEqual(steps["B", "1"]["beside"], {**NOTHING, "one_host": 16, "free": 20,
                                                     "transfer": 1.5, "first": 11, "float32": 24})
        self.assertIn("of the first program", printed.getvalue())

    def test_a_local_run_measures_a_step(self):
        with contextlib.redirect_stdout(io.StringIO()):
            bench = links.Bench(links.read_options(
                ["--binary", BINARY, "--steps", "4", "--torch-python", "/nowhere"]))
        case = Case(next(w for w in WORKLOADS if w.name == "mlp_sgd"), "async", "shm")
        self.assertGreater(bench.on_one_host(BINARY, case), 0)
        self.assertEqual(sum(bench.shares(case)), 4 * (784 * 512 + 512 + 512 * 512 + 512 + 5130))
        self.assertTrue(bench.knows(case))
        self.assertGreater(bench.planned(Case(case.workload, "sync", "apart", "1")), 0.0428)


class Many(unittest.TestCase):
    def test_a_step_is_that_of_the_later_half(self):
        points = [(0, 0), (9, 1), (10, 2), (11, 4), (12, 6)]
        self.assertEqual(many.step_seconds(points), 0.5)
        with self.assertRaisesRegex(measure.Failed, "0 lines"):
            many.step_seconds([])

    def test_shares_are_those_of_all_workers_once_all_have_ended(self):
        running = mock.Mock()
        running.result.return_value = {"own_steps": 8}
        running.printed.return_value = b"worker/1: done, 9 steps here\nworker/2: done, 1 step here\n"
        running.fail.side_effect = measure.Failed
        ended, broken = (mock.Mock(**{"wait.return_value": code}) for code in (0, 3))
        self.assertEqual(many.shares(running, [ended], 3), [1, 8, 9])
        for started, workers in (([ended], 4), ([ended, broken], 3)):
            with self.assertRaises(measure.Failed):
                many.shares(running, started, workers)

    def test_only_where_nobody_waits_for_others_must_shares_be_even(self):
        self.assertEqual([held["is_ok"] for held in many.judge("sync", 1.3, 1, [1, 2])], [False])
        self.assertEqual([held["is_ok"] for held in many.judge("async", 1.1, 1, [8, 10])], [True, True])
        self.assertEqual([held["is_ok"] for held in many.judge("async", 1.1, 1, [7, 10])], [True, False])


if __name__ == "__main__":
    program.main()
