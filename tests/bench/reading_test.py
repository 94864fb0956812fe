#!/usr/bin/env python3
"""Small whole runs of reading.py, fetching.py, large_table.py, restoring.py and serving.py.

    DTRAIN_BINARY=build/cmd/dtrain reading_test.py
"""
import contextlib
import io
import json
import os
import shutil
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True  # the folder is part of the source

import fetching
import large_table
import restoring
import program
import reading
import serving
from program import BINARY, hosts


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
                         ["line ends", "rows found", "gzip", "one file in memory", "stream",
                          "memory of a stream", "click model"])
        for record in found["records"]:
            self.assertTrue(all(value > 0 for value in record.values()
                                if isinstance(value, float)))
        for name in ("gzip", "memory of a stream", "click model"):
            goals = [record["goal"] for record in found["records"] if record["name"] == name]
            self.assertIn(goals[0], ("ok", "NOT"))


@unittest.skipUnless(fetching.NGINX and shutil.which("curl") and hosts.can_be_made(),
                     "there is no nginx or no curl, or no network namespace can be made here")
class Fetching(unittest.TestCase):
    def test_everything_is_measured(self):
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
            path = os.path.join(folder, "figures")
            code = fetching.main(["--dtrain", BINARY, "--json", path, "--megabytes", "16", "--steps", "30", "--turns", "1",
                                  "--windows", "1", "--seconds", "0.1", "--latency_ms", "1", "--folder", folder])
            with open(path, encoding="utf-8") as file:
                found = json.load(file)
            self.assertEqual(sorted(os.listdir(folder)), ["figures"])
        self.assertEqual(code, 0)
        self.assertEqual([record["name"] for record in found["records"]],
                         ["bare transfer", "rows found", "in order", "shuffled", "click model"])
        self.assertTrue(all(record["goal"] in ("ok", "NOT") for record in found["records"][1:]))


@unittest.skipIf("libmicrohttpd    not" in program.run(["version"], None).stdout, "there is no libmicrohttpd")
class Serving(unittest.TestCase):
    def test_everything_is_measured(self):
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
            path = os.path.join(folder, "figures")
            code = serving.main(["--dtrain", BINARY, "--json", path, "--folder", folder, "--seconds", "0.5", "--clients", "2",
                                 "--rows", "512", "--fresh_millions", "0.01", "--publish_secs", "0.5"])
            with open(path, encoding="utf-8") as file:
                found = json.load(file)
            self.assertEqual(sorted(os.listdir(folder)), ["figures"])
        self.assertEqual(code, 0)
        self.assertEqual([record["name"] for record in found["records"]], ["one row", "256 rows", "reload", "fresh rows"])
        self.assertEqual([record.get("wrong", record.get("lost")) for record in found["records"]], [0, 0, 0, None])
        for name in ("oldest_s", "delta_mb", "steps_per_s"):
            self.assertGreater(found["records"][3][name], 0, name)


class LargeTable(unittest.TestCase):
    def test_everything_is_measured(self):
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
            path = os.path.join(folder, "figures")
            code = large_table.main(["--dtrain", BINARY, "--json", path, "--folder", folder,
                                     "--millions", "0.02", "--small", "0.01", "--windows", "1",
                                     "--seconds", "0.3", "--save_secs", "0.5"])
            with open(path, encoding="utf-8") as file:
                found = json.load(file)
            self.assertEqual(sorted(os.listdir(folder)), ["figures"])
        self.assertEqual((code, found["failures"]), (0, []))
        self.assertEqual([figure["name"] for figure in found["figures"]],
                         ["first step", "small table", "large table", "of the small table",
                          "more memory"])
        self.assertTrue(all(figure["value"] > 0 for figure in found["figures"][:4]))


class Restoring(unittest.TestCase):
    def test_everything_is_measured(self):
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
            path = os.path.join(folder, "figures")
            code = restoring.main(["--dtrain", BINARY, "--json", path, "--folder", folder,
                                   "--millions", "0.01,0.04", "--turns", "1"])
            with open(path, encoding="utf-8") as file:
                found = json.load(file)
            self.assertEqual(sorted(os.listdir(folder)), ["figures"])
        self.assertEqual((code, found["failures"]), (0, []))
        fewer, more = [figure["rows"] for figure in found["figures"]]
        self.assertGreater(fewer, 10_000)
        self.assertGreater(more, 40_000)
        self.assertTrue(all(figure["restore_s"] > 0 for figure in found["figures"]))


if __name__ == "__main__":
    program.main()
