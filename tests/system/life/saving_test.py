"""When checkpoints are made, and which stay."""
import os
import signal
import subprocess

import life
import program
from life import LifeCase

HOUR_S = 3600


class Keep(LifeCase):
    def save_often(self, last_step, **changes):
        self.train(last_step, train__save_checkpoint_steps=5, **changes)

    def test_the_newest_stay_over_a_restart_too(self):
        for last_step in (60, 120, 180):
            self.save_often(last_step, train__keep_checkpoint_max=2)
            self.assertEqual(len(self.steps()), 2)
            self.assertEqual(self.named_steps(), self.steps())
            self.assertEqual(self.steps()[-1], last_step)
        for step in self.steps():
            self.verify(f"run/model.ckpt-{step}")
        self.assert_clean()

    def test_with_0_all_stay_and_the_newest_is_named(self):
        before = []
        for last_step in (60, 120):
            self.save_often(last_step, train__keep_checkpoint_max=0)
            self.assertGreater(len(self.steps()), len(before))
            self.assertEqual(self.steps()[:len(before)], before)
            self.assertEqual(self.named_steps(), [last_step])
            before = self.steps()

    def test_a_smaller_number_lets_older_ones_go(self):
        for last_step in (20, 40, 60, 80):
            self.train(last_step)
        self.train(100, train__keep_checkpoint_max=3)
        self.assertEqual((self.steps(), self.named_steps()), ([60, 80, 100], [60, 80, 100]))

    def test_one_per_so_many_hours_stays_for_good(self):
        """0.001 s here, so that each of another start does."""
        for last_step in (20, 40, 60, 80):
            self.train(last_step, train__keep_checkpoint_max=1,
                       train__keep_checkpoint_every_n_hours=0.0036 / HOUR_S)
        self.assertEqual(self.named_steps(), [80])
        self.assertLessEqual({40, 60, 80}, set(self.steps()))
        for step in self.steps():
            self.verify(f"run/model.ckpt-{step}")


class When(LifeCase):
    def test_seconds(self):
        process = self.start(save_checkpoint_secs=0.001, save_checkpoint_steps=None)
        self.wait_for(process, 4)
        self.train(400, ps=0, train__checkpoint_dir="rare", train__save_checkpoint_secs=1000,
                   train__save_checkpoint_steps=None)
        self.assertEqual(self.later_steps("rare"), [400])

    def test_workers_in_step_are_saved_at_the_steps_that_are_asked_for(self):
        """One that is asked for while the last is written is left out; the first may be a step late."""
        for ps, workers in ((0, 0), (1, 1), (2, 2)):
            with self.subTest(ps=ps, workers=workers):
                folder = f"run{ps}"
                self.train(200, ps=ps, workers=workers, train__checkpoint_dir=folder,
                           train__save_checkpoint_steps=20, train__keep_checkpoint_max=0)
                self.assertEqual({step % 20 for step in self.steps(folder) if step >= 20}, {0})

    def test_seconds_and_steps_at_once_are_a_mistake(self):
        ended = self.attempt(20, train__save_checkpoint_secs=1, train__save_checkpoint_steps=10)
        self.assertEqual(ended.returncode, program.BAD_INPUT)
        self.assertIn("expected save_checkpoint_secs or save_checkpoint_steps, got both",
                      ended.stdout)

    def test_a_hook_of_the_list_takes_the_place_of_the_keys(self):
        hook = {"type": "checkpoint_saver", "save_steps": 10}
        self.wait_for(self.start(hooks=[hook], save_checkpoint_steps=life.NEVER), 4)

    def start(self, **train):
        """A single process that trains until it is stopped."""
        changes = {f"train.{key}": value for key, value in train.items()}
        self.write_spec({"train.last_step": life.NEVER, **changes})
        with open(self.folder / "log", "wb") as log:
            process = subprocess.Popen([program.BINARY, "spec.json"], cwd=self.folder, stdout=log,
                                       stderr=log, stdin=subprocess.DEVNULL,
                                       env=program.environment())
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def wait_for(self, process, count):
        """Until so many checkpoints have been made."""
        text = (self.folder / "log").read_text
        program.wait_until(lambda: text().count(" saved ") >= count or process.poll() is not None, text)
        self.assertIsNone(process.poll(), text())

    def test_a_folder_that_is_removed_is_made_again(self):
        process = self.start(save_checkpoint_secs=0.05, save_checkpoint_steps=None)
        self.wait_for(process, 3)
        os.rename(self.folder / "run", self.folder / "gone")
        self.wait_for(process, (self.folder / "log").read_text().count(" saved ") + 3)
        process.terminate()
        self.assertEqual(process.wait(program.LIMIT_S), 128 + signal.SIGTERM)
        self.assertEqual(self.named_steps(), self.steps())
        self.assertGreater(self.steps()[0], self.steps("gone")[-1])
        self.verify(f"run/model.ckpt-{self.steps()[-1]}")

    def test_a_signal_asks_for_one_and_another_ends_with_one(self):
        process = self.start()
        for count in (1, 2, 3):  # the first is that of the start
            self.wait_for(process, count)
            if count < 3:
                process.send_signal(signal.SIGUSR2)
        process.terminate()
        self.assertEqual(process.wait(program.LIMIT_S), 128 + signal.SIGTERM)
        self.assertEqual(len(self.steps()), 4)
        self.assertEqual(self.named_steps(), self.steps())
        last_step = self.steps()[-1] + 10
        text = self.train(last_step, ps=0)
        self.assertIn(f"model.ckpt-{last_step - 10}, step {last_step - 10}\n", text)
        os.rename(self.folder / "run", self.folder / "stopped")
        self.train(last_step, ps=0)
        self.assert_same("stopped", "run")


if __name__ == "__main__":
    program.main()
