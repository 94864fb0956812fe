"""A folder that version 0.1.0 has left (tests/fixtures/kept, by `dtrain spec.json` there): every later version with the
same major number evaluates it and resumes from it. It is never made anew; what a later version adds gets a folder beside it."""
import json
import shutil

import program

STEP, LOSS = 60, 0.1890  # as that version said at its end


class Kept(program.FolderCase):
    def setUp(self):
        super().setUp()
        shutil.copytree(program.ROOT / "tests/fixtures/kept", self.folder, dirs_exist_ok=True)

    def said(self, *words):
        done = program.run(words, self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout + done.stderr

    def test_it_is_whole_and_evaluated(self):
        self.assertIn(f"ok, global step {STEP}, ", self.said("checkpoint", "verify", "run"))
        self.said("eval", "--checkpoint=run", "--result=eval.json", "spec.json")
        told = json.loads((self.folder / "eval.json").read_text())
        self.assertEqual(told["step"], STEP)
        self.assertAlmostEqual(told["metrics"]["loss"], LOSS, delta=0.001)

    def test_a_run_resumes_from_it(self):
        said = self.said(f"--steps={STEP + 10}", "--result=run.json", "spec.json")
        self.assertRegex(said, rf"begins from \S+/model\.ckpt-{STEP}, step {STEP}\n")
        told = json.loads((self.folder / "run.json").read_text())
        self.assertEqual((told["step"], told["trained"]), (STEP + 10, 10))
        self.assertEqual(told["rows"]["lost"], 0)
        self.assertLess(told["metrics"]["loss"], 1.2 * LOSS)


if __name__ == "__main__":
    program.main()
