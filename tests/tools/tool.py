"""What these tests share: the binary, run in a folder of its own."""
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import clean  # pylint: disable=wrong-import-position

BINARY = os.environ.get("DTRAIN_BINARY", "dtrain")
ROOT = Path(__file__).resolve().parents[2]
FIXTURES = ROOT / "tests" / "fixtures"
ADAM, FTRL = FIXTURES / "cluster_adam", FIXTURES / "cluster_ftrl"
LIMIT_S = 60  # nothing here takes a second
BAD_INPUT = 2


class ToolCase(unittest.TestCase):
    def setUp(self):
        made = tempfile.TemporaryDirectory(prefix="dtrain-test-")
        self.addCleanup(made.cleanup)
        self.folder = Path(made.name)

    def dtrain(self, *words):
        return subprocess.run([BINARY, *map(str, words)], cwd=self.folder, env=clean.environment(),
                              stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=LIMIT_S, check=False)

    def run_ok(self, *words):
        """What it printed; nothing may stand on standard error."""
        ended = self.dtrain(*words)
        self.assertEqual((ended.returncode, ended.stderr), (0, ""), ended.stdout)
        return ended.stdout

    def run_bad(self, *words, code=BAD_INPUT):
        """Its one line of complaint."""
        ended = self.dtrain(*words)
        self.assertEqual(ended.returncode, code, ended.stdout + ended.stderr)
        self.assertRegex(ended.stderr, r"\Adtrain: [^\n]+\n\Z")
        return ended.stderr[len("dtrain: "):-1]


def main():
    if not os.access(BINARY, os.X_OK):
        sys.exit(f"DTRAIN_BINARY={BINARY}: no such program")
    unittest.main()
