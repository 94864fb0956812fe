"""A folder that version 0.1.0 has left (tests/fixtures/kept, by `dtrain spec.json` there): every later version with the
same major number evaluates it and resumes from it. It is never made anew; what a later version adds gets a folder beside it."""
import json
import shutil

import life
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

    def test_a_run_that_freezes_resumes_from_it(self):
        """What is frozen lies elsewhere on a ps; in the folder it is found by its name."""
        def variables():
            self.said("checkpoint", "export", "run", "arrays.npz")
            return {name: values for name, values in life.read_arrays(self.folder / "arrays.npz").items() if "Adam" not in name}

        kept = variables()
        frozen = {"hidden/kernel", "hidden/bias", "colors/embedding_weights"}
        for local in ([], ["--local_ps=2", "--local_workers=1", "--transport=tcp"]):
            with self.subTest(local=local):
                shutil.copytree(program.ROOT / "tests/fixtures/kept", self.folder, dirs_exist_ok=True)
                said = self.said(f"--steps={STEP + 10}", '--set=train.freeze=["hidden/*", "colors/*"]', "--set=train.mode=sync",
                                 *local, "spec.json")
                self.assertRegex(said, rf"begins from \S+/model\.ckpt-{STEP}, step {STEP}\n")
                now = variables()
                self.assertEqual({name: now[name] for name in frozen}, {name: kept[name] for name in frozen})
                for name in ("logits/kernel", "logits/bias", "days/embedding_weights"):
                    self.assertNotEqual(now[name], kept[name])


if __name__ == "__main__":
    program.main()
