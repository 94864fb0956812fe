#!/usr/bin/env python3
"""The arithmetic of recover.py, and a small whole run of each part.

    DTRAIN_BINARY=build/cmd/dtrain recover_test.py
"""
import contextlib
import io
import json
import os
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True  # the folder is part of the source

import recover
import program
from program import BINARY



class Recover(unittest.TestCase):
    def run_bench(self, *arguments):
        """Exit code, figures and what was printed."""
        with tempfile.TemporaryDirectory() as folder:
            path, printed = os.path.join(folder, "figures"), io.StringIO()
            with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
                code = recover.main(["--dtrain", BINARY, "--json", path, *arguments])
            if not os.path.exists(path):
                return code, None, printed.getvalue()
            with open(path, encoding="utf-8") as file:
                return code, json.load(file), printed.getvalue()

    def test_a_percentile_is_the_value_that_so_many_do_not_exceed(self):
        values = list(range(200, 0, -1))
        self.assertEqual(recover.percentile(values, 0.99), 198)
        self.assertEqual(recover.percentile(values, 0.5), 100)
        self.assertEqual(recover.percentile([7], 0.99), 7)

    def test_step_times_leave_out_the_first_step(self):
        points = [(5.0, 1), (6.0, 2), (6.5, 3), (6.75, 4)]
        self.assertEqual(recover.step_times(points), [0.5, 0.25])

    def test_a_death_of_every_kind_is_measured(self):
        code, found, printed = self.run_bench("--parts", "deaths", "--mode", "sync",
                                              "--repeats", "1")
        self.assertEqual((code, found["failures"]), (0, []), printed)
        self.assertEqual([record["victim"] for record in found["deaths"]],
                         list(recover.VICTIMS))
        for record in found["deaths"]:
            self.assertGreater(record["median"], 0)
            self.assertIn(record["victim"], printed)

    def test_saving_is_measured_beside_none(self):
        code, found, printed = self.run_bench("--parts", "saving", "--mode", "sync", "--only",
                                              "softmax", "--seconds", "1.5")
        self.assertEqual((code, found["failures"]), (0, []), printed)
        without, saving = found["saving"]
        self.assertEqual(without["pauses"], [])
        self.assertTrue(saving["pauses"], printed)
        for record in (without, saving):
            self.assertLessEqual(record["median"], record["p99"])
            self.assertLessEqual(record["p99"], record["most"])
            self.assertGreaterEqual(record["steps"], recover.STEPS_MIN - 1)

    def test_a_program_that_is_not_there_is_named(self):
        code = recover.main(["--dtrain", "/nowhere/dtrain"])
        self.assertEqual(code, 2)


if __name__ == "__main__":
    program.main()
