"""What these tests share: the binary, run in a folder of its own."""
import program
from program import BAD_INPUT, FIXTURES

ADAM, FTRL = FIXTURES / "cluster_adam", FIXTURES / "cluster_ftrl"


class ToolCase(program.FolderCase):
    def dtrain(self, *words):
        return program.run(words, self.folder)

    def run_ok(self, *words):
        """What it printed; nothing may stand on standard error."""
        ended = self.dtrain(*words)
        self.assertEqual((ended.returncode, ended.stderr), (0, ""), ended.stdout)
        return ended.stdout

    def run_bad(self, *words, code=BAD_INPUT):
        """Its one line of complaint."""
        ended = self.dtrain(*words)
        self.assertEqual(ended.returncode, code, ended.stdout + ended.stderr)
        self.assertRegex(ended.stderr, r"\A(?:\S+ dtrain [^\n]+\n)?dtrain: [^\n]+\n\Z")  # a run says its version first
        return ended.stderr.splitlines()[-1][len("dtrain: "):]