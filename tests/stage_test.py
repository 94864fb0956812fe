#!/usr/bin/env python3
"""stage.py, over a meson that plays what it is told: which tests fail, what they say, and what passes alone."""
import contextlib
import io
import json
import os
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import stage

MESON = """#!/usr/bin/env python3
import json, sys
play = json.load(open("play.json"))
if sys.argv[1] == "introspect":
    print(json.dumps([{"name": test["name"].split(" / ")[1], "suite": [test["name"].split(" / ")[0]]} for test in play]))
    sys.exit()
if "--list" in sys.argv:
    print(*[test["name"] for test in play if test["name"].split(" / ")[0] in sys.argv], sep="\\n")
    sys.exit()
alone = [test for test in play if test["name"].endswith(" / " + sys.argv[-1])]
lines = []
for test in alone or play:
    result = test["alone"] if alone else test["result"]
    lines.append(json.dumps({"name": test["name"], "result": result, "stdout": test.get("said", "")}))
    if "finds" in test and not alone:
        open("build/findings/asan.1", "w").write(test["finds"])
open("build/meson-logs/testlog.json", "w").write("".join(line + "\\n" for line in lines))
"""


def played(name, result="OK", alone="OK", **more):
    return {"name": name, "result": result, "alone": alone, **more}


class Stage(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="dtrain-test-")
        self.addCleanup(folder.cleanup)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(folder.name)
        os.makedirs("build/meson-logs")
        os.mkdir("bin")
        Path("bin/meson").write_text(MESON, encoding="utf-8")
        os.chmod("bin/meson", 0o755)
        path = f"{folder.name}/bin:{os.environ['PATH']}"
        patch = mock.patch.dict(os.environ, {"PATH": path})
        patch.start()
        self.addCleanup(patch.stop)

    def run_stage(self, *tests):
        Path("play.json").write_text(json.dumps(tests), encoding="utf-8")
        with contextlib.redirect_stdout(io.StringIO()) as said:
            code = stage.run(Path("report"), Path("build"), [])
        self.said = said.getvalue()
        return code, Path("report").read_text(encoding="utf-8")

    def test_all_pass(self):
        code, report = self.run_stage(played("dtrain:net / ends"), played("dtrain:net / full", "SKIP"))
        self.assertEqual(code, 0)
        self.assertIn("1 passed, 0 failed, 1 skipped", report)

    def test_no_test_at_all_is_no_success(self):
        self.assertEqual(self.run_stage()[0], 1)

    def test_what_passes_alone_is_named(self):
        code, report = self.run_stage(played("dtrain:kill / kill_mix", "TIMEOUT"), played("dtrain:net / ends"))
        self.assertEqual(code, 0)
        self.assertIn("shaky: kill_mix\n", report)
        self.assertIn("2 passed, 0 failed", report)

    def test_what_fails_alone_has_failed(self):
        code, report = self.run_stage(played("dtrain:kill / kill_mix", "FAIL", "FAIL"))
        self.assertEqual(code, 1)
        self.assertNotIn("shaky", report)
        self.assertIn("stage: FAILED kill_mix", self.said)

    def test_what_chance_does_not_decide_is_not_tried_again(self):
        for name, said in (("dtrain:simulate / simulated seeds", ""), ("dtrain:law / law", ""),
                           ("dtrain:net / ends", "ERROR: AddressSanitizer: heap-use-after-free")):
            code, report = self.run_stage(played(name, "FAIL", said=said))
            self.assertEqual(code, 1)
            self.assertNotIn("shaky", report)

    def test_a_finding_counts_though_its_test_passes(self):
        code, _ = self.run_stage(played("dtrain:kill / kill_mix", finds="heap-buffer-overflow\nSUMMARY: AddressSanitizer: heap-buffer-overflow"))
        self.assertEqual(code, 1)
        self.assertIn("heap-buffer-overflow", self.said)

    def test_many_that_fail_are_no_chance(self):
        tests = [played(f"dtrain:kill / {i}", "FAIL") for i in range(stage.AGAIN_MAX + 1)]
        code, report = self.run_stage(*tests)
        self.assertEqual(code, 1)
        self.assertNotIn("shaky", report)

    def test_what_no_stage_has_is_found(self):
        tests = ["dtrain:net / ends", "dtrain:gpu / gpu packs", "dtrain:world / world, a coordinator"]
        Path("play.json").write_text(json.dumps([played(name) for name in tests]), encoding="utf-8")
        net, world = ["build", "dtrain:net"], ["build", "dtrain:world"]
        for stages, code, said in (([net], 1, "stage: IN NO STAGE world, a coordinator\n"), ([net, world], 0, "")):
            with contextlib.redirect_stdout(io.StringIO()) as told:
                self.assertEqual(stage.left_out(stages), code)
            self.assertEqual(told.getvalue(), said)


if __name__ == "__main__":
    unittest.main()
