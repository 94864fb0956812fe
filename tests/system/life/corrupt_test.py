"""What a damaged checkpoint means at the start: the end with a clear word, or the one before it."""
import shutil
import tempfile
from pathlib import Path

import program
from life import LifeCase

STEPS = [0, 20, 40, 60]


def flip(path, at):
    whole = path.read_bytes()
    at %= len(whole)
    path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1:])


class Corrupt(LifeCase):
    """A run of 60 steps, which is damaged and continues to 80."""

    made = None  # the run, which every test gets a copy of

    def setUp(self):
        super().setUp()
        if not Corrupt.made:
            made = tempfile.TemporaryDirectory(prefix="dtrain-test-")
            self.addClassCleanup(made.cleanup)
            self.from_step_0(lambda: self.train(STEPS[1], **self.saving()))
            for step in STEPS[2:]:  # an end always saves
                self.train(step, **self.saving())
            shutil.copytree(self.folder, made.name, dirs_exist_ok=True)
            Corrupt.made = Path(made.name)
        shutil.copytree(Corrupt.made, self.folder, dirs_exist_ok=True)
        self.assertEqual(self.named_steps(), STEPS)

    def saving(self, **more):
        return {"train__keep_checkpoint_max": 10, **more}

    def newest(self, ending):
        """ending: of the file's name."""
        return self.folder / "run" / f"model.ckpt-60.{ending}"

    def start(self, policy, **more):
        return self.attempt(80, **self.saving(train__on_corrupt=policy, **more))

    def refuse(self, words, **more):
        """By default a person is asked; nothing is touched."""
        ended = self.start("error", **more)
        self.assertEqual(ended.returncode, program.BAD_INPUT, ended.stdout)
        self.assertRegex(ended.stdout, rf"ERROR: cannot restore \S+/run/model.ckpt-60: .*{words}")
        self.assertRegex(ended.stdout, r"--set train.on_corrupt=previous continues from model.ckpt-40")
        self.assertEqual(self.steps(), STEPS)

    def pass_over(self, words, **more):
        """The damaged one stays for whoever wants to look at it, in the list before the new one."""
        ended = self.start("previous", **more)
        self.assertEqual(ended.returncode, 0, ended.stdout)
        self.assertRegex(ended.stdout,
                         rf"WARNING: cannot restore \S+/run/model.ckpt-60: .*{words}")
        self.assertRegex(ended.stdout, r"begins from \S+/run/model.ckpt-40, step 40\n")
        self.assertEqual(self.named_steps(), STEPS + [80])
        for step in (0, 20, 40, 80):
            self.verify(f"run/model.ckpt-{step}")
        self.assert_same("run", self.undisturbed())
        self.assert_clean()

    def undisturbed(self):
        """The same 80 steps of a run that nothing was done to."""
        self.train(80, train__checkpoint_dir="whole")
        return "whole"

    def check(self, words, **more):
        self.refuse(words, **more)
        self.pass_over(words, **more)

    def test_a_flipped_byte_of_data(self):
        flip(self.newest("data-00001-of-00002"), 5000)
        made = self.result()
        self.refuse("checksum")
        self.assertEqual([self.result()[key] for key in ("step", "rows")], [made["step"], made["rows"]])
        self.pass_over("checksum")

    def test_a_flipped_byte_of_a_ledger(self):
        flip(self.newest("data-00000-of-00002"), -1)
        self.check("checksum")

    def test_a_flipped_byte_of_the_index(self):
        flip(self.newest("index"), 40)
        self.check("")

    def test_an_index_that_is_cut_off(self):
        path = self.newest("index")
        path.write_bytes(path.read_bytes()[:-20])
        self.check("")

    def test_an_empty_index(self):
        self.newest("index").write_bytes(b"")
        self.check("")

    def test_data_that_are_cut_off(self):
        path = self.newest("data-00001-of-00002")
        path.write_bytes(path.read_bytes()[:-100])
        self.check("")

    def test_data_that_are_gone(self):
        self.newest("data-00001-of-00002").unlink()
        self.check("No such file or directory")

    def test_a_single_process_does_the_same(self):
        flip(self.newest("data-00001-of-00002"), 5000)
        self.refuse("checksum", ps=0)
        ended = self.start("previous", ps=0)
        self.assertEqual(ended.returncode, 0, ended.stdout)
        self.assertRegex(ended.stdout, r"begins from \S+/run/model.ckpt-40, step 40\n")
        self.assertEqual(self.named_steps(), STEPS + [80])
        self.verify("run")

    def test_several_bad_ones_are_passed_over(self):
        for step in (20, 40, 60):
            flip(self.folder / "run" / f"model.ckpt-{step}.data-00001-of-00002", 7)
        ended = self.start("previous")
        self.assertEqual(ended.returncode, 0, ended.stdout)
        for step in (60, 40, 20):
            self.assertIn(f"/run/model.ckpt-{step}: ", ended.stdout)
        self.assertRegex(ended.stdout, r"begins from \S+/run/model.ckpt-0, step 0\n")
        self.verify("run")

    def test_where_all_are_bad_nothing_begins_anew_in_silence(self):
        for step in STEPS:
            flip(self.folder / "run" / f"model.ckpt-{step}.data-00001-of-00002", 7)
        for policy in ("error", "previous"):
            ended = self.start(policy)
            self.assertEqual(ended.returncode, program.BAD_INPUT, ended.stdout)
        self.assertRegex(ended.stdout, "model.ckpt-0: .*; there is none before it")
        self.assertEqual(self.steps(), STEPS)

    def test_an_index_that_is_gone(self):
        """What there still is of that checkpoint stays, though it leaves the list."""
        left = sorted((self.folder / "run").glob("model.ckpt-60.data-*"))
        self.newest("index").unlink()
        ended = self.start("error")
        self.assertEqual(ended.returncode, program.BAD_INPUT, ended.stdout)
        self.assertRegex(ended.stdout, r"ERROR: cannot restore \S+/run/model.ckpt-60: .*No such file or directory; "
                                       r"--set train.on_corrupt=previous continues from model.ckpt-40")
        text = self.train(80, **self.saving(train__on_corrupt="previous"))
        self.assertRegex(text, r"WARNING: cannot restore \S+/run/model.ckpt-60: .*No such file or directory")
        self.assertRegex(text, r"begins from \S+/run/model.ckpt-40, step 40\n")
        self.assertEqual(self.named_steps(), [0, 20, 40, 80])
        self.assertEqual(sorted((self.folder / "run").glob("model.ckpt-60.*")), left)
        self.assert_same("run", self.undisturbed())

    def test_the_next_start_goes_on_from_the_new_one_though_its_step_is_smaller(self):
        flip(self.newest("data-00001-of-00002"), 5000)
        self.train(50, **self.saving(train__on_corrupt="previous"))
        self.assertEqual(self.named_steps(), STEPS + [50])
        self.assertRegex(self.train(80, **self.saving()), r"model.ckpt-50, step 50\n")
        self.assert_same("run", self.undisturbed())

    def test_garbage_in_the_state_file_means_a_search(self):
        for garbage in (b"\0\xff garbage \"", b"", b"model_checkpoint_path: \"model.ckpt-60\n" * 3):
            (self.folder / "run" / "checkpoint").write_bytes(garbage)
            text = self.train(self.result()["step"] + 20, **self.saving())
            self.assertRegex(text, r"WARNING: \S+/run/checkpoint: .*; resumes from the newest of \d checkpoints that are in the "
                                   r"folder, model.ckpt-\d+; none of them is ever removed or replaced")
            self.assertRegex(text, r"begins from \S+/run/model.ckpt-\d+, step \d+\n")
        self.assertEqual(self.named_steps(), STEPS + [80, 100, 120])

    def test_so_does_a_state_file_that_is_gone(self):
        (self.folder / "run" / "checkpoint").unlink()
        text = self.train(80, **self.saving(train__keep_checkpoint_max=1))
        self.assertRegex(text, r"WARNING: \S+/run: no state file \(checkpoint\); resumes from the newest of 4 checkpoints")
        self.assertRegex(text, r"begins from \S+/run/model.ckpt-60, step 60\n")
        self.assertEqual(self.named_steps(), [80])
        self.assertEqual(self.steps(), STEPS + [80])  # what this run did not save it does not remove
        self.assert_same("run", self.undisturbed())

    def test_a_folder_that_has_moved_is_resumed_from_though_its_state_file_has_absolute_paths(self):
        state = self.folder / "run" / "checkpoint"
        state.write_text(state.read_text().replace('"model.ckpt', '"/old/place/model.ckpt'))
        self.verify("run")
        text = self.train(80, **self.saving())
        self.assertRegex(text, r"begins from \S+/run/model.ckpt-60, step 60\n")
        self.assertEqual(self.named_steps(), STEPS + [80])
        self.assert_same("run", self.undisturbed())

    def test_where_all_are_gone_the_run_does_not_start_over(self):
        for path in (self.folder / "run").glob("model.ckpt-*"):
            path.unlink()
        for policy in ("error", "previous"):
            ended = self.start(policy)
            self.assertEqual(ended.returncode, program.BAD_INPUT, ended.stdout)
            self.assertRegex(ended.stdout, r"ERROR: cannot restore \S+/run/model.ckpt-\d+: .*No such file or directory; "
                                           r"there is none before it; -o OTHER_DIR starts over")


if __name__ == "__main__":
    program.main()
