#!/usr/bin/env python3
"""A small whole run of reading.py.

    DTRAIN_BINARY=build/cmd/dtrain reading_test.py
"""
import contextlib
import io
import json
import os
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True  # the folder is part of the source

import program
import reading
from program import BINARY


class Reading(unittest.TestCase):
    def test_everything_is_measured(self):
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
            path = os.path.join(folder, "figures")
            code = reading.main(["--dtrain", BINARY, "--json", path, "--megabytes", "16",
                                 "--steps", "30", "--turns", "1", "--windows", "1",
                                 "--seconds", "0.1", "--folder", folder])
            with open(path, encoding="utf-8") as file:
                found = json.load(file)
            self.assertEqual(sorted(os.listdir(folder)), ["figures"])
        self.assertEqual(code, 0)
        self.assertEqual([record["name"] for record in found["records"]],
                         ["line ends", "rows found", "one file in memory", "stream",
                          "memory of a stream", "click model"])
        for record in found["records"]:
            self.assertTrue(all(value > 0 for value in record.values()
                                if isinstance(value, float)))
        for record in found["records"][4:]:
            self.assertIn(record["goal"], ("ok", "NOT"))


if __name__ == "__main__":
    program.main()
