"""dtrain scale: a local cluster that continues with another number of workers and ps, in the same processes."""
import json
import re
import shutil
import signal

import program
from program import commands

SAMPLES = 400  # rows of an epoch of the spec, 20 in a batch
MOVED = r"^resized to (\d+) workers?, (\d+) ps at step (\d+)\n$"


class Scale(commands.CommandCase):
    def start(self, *changes, ps=2, workers=2, folder="run"):
        self.ps, self.workers = ps, workers
        keeps = [f"--checkpoint_dir={folder}"] if folder else []
        words = [f"--local_ps={ps}", f"--local_workers={workers}", "--result=result.json", *keeps,
                 "--set=train.last_step=1000000000", *[f"--set={change}" for change in changes], "spec.json"]
        running = commands.Running(words, self.folder)
        self.addCleanup(running.process.kill)
        self.hosts = running.wait_for_match(r"started .* --ps_hosts=(\S+)$")[0].group(1)
        for worker in range(workers):
            self.wait_for_step(running, worker)
        return running

    def wait_for_step(self, running, worker, since=0, word=""):
        """Until it takes part; since: a number of lines; word: what it says before that."""
        def takes_part():
            own = [line for line in running.lines[since:] if line.startswith(f"worker/{worker}: ")]
            return re.search(rf"{word}.* step \d+ of 1000000000, ", "\n".join(own), re.DOTALL)
        program.wait_until(takes_part, lambda: f"worker/{worker} to take part: {running.lines[-40:]}")

    def ask(self, *words):
        return self.run_dtrain("scale", f"--ps_hosts={self.hosts}", *words)

    def move(self, running, **counts):
        """Where the job continues, with everybody who is to take part."""
        since, stay = len(running.lines), range(self.workers)
        asked = self.ask(*[f"--{job}={count}" for job, count in counts.items()])
        moved = re.search(MOVED, asked.stdout)
        self.assertTrue(moved, asked.stderr + "\n".join(running.lines[-20:]))
        self.ps, self.workers = counts.get("ps", self.ps), counts.get("workers", self.workers)
        self.assertEqual((int(moved[1]), int(moved[2]), asked.returncode), (self.workers, self.ps, 0))
        for worker in range(self.workers):
            self.wait_for_step(running, worker, since, f"resized to [^\n]* at step {moved[3]}\n" if worker in stay else "")
        running.wait_for_match(rf"^ps/0: .* serving from step {moved[3]} on$")
        return int(moved[3])

    def end(self, running):
        """Its result, as it is asked to end."""
        running.process.send_signal(signal.SIGTERM)
        self.assertEqual(running.end(), 143, "\n".join(running.lines[-30:]))
        return json.loads((self.folder / "result.json").read_text())

    def test_workers_come_and_go_between_two_steps_and_no_row_is_lost(self):
        running = self.start("train.mode=sync")
        before = commands.tasks_of(running.process.pid)
        first = self.move(running, workers=4)
        grown = commands.tasks_of(running.process.pid)
        self.assertEqual({name: grown[name] for name in before}, before, "a task did not stay")
        self.assertEqual(len(grown), 6)
        second = self.move(running, workers=3)
        running.wait_for("worker/3: ")
        running.wait_for_match(r"^worker/3: .* ends: the job goes on with 3 workers, 2 ps$")
        running.wait_for("from here on a step is the mean of 3 gradients of 3 workers")
        result = self.end(running)
        rows = result["rows"]
        self.assertEqual((rows["twice"], rows["lost"], rows["late"]), (0, 0, 0))
        pushes = 2 * first + 4 * (second - first) + 3 * (result["step"] - second)
        self.assertEqual(rows["used"], 20 * pushes)
        self.assertEqual(len(running.matches(r"continues with epoch \d+, 0 rows are left out$")), 2)

    def test_asynchronous_workers_come_and_go_and_no_row_is_lost(self):
        running = self.start("train.mode=async")
        self.move(running, workers=1)
        self.move(running, workers=5)
        result = self.end(running)
        rows = result["rows"]
        self.assertEqual(rows["used"], 20 * result["step"])
        self.assertEqual((rows["twice"], rows["lost"], rows["late"]), (0, 0, 0))
        self.assertEqual(running.matches("left out"), [])

    def test_variables_move_to_other_ps(self):
        for mode in ("sync", "async"):
            running = self.start(f"train.mode={mode}", folder=mode)
            self.move(running, ps=4)
            self.move(running, ps=1, workers=3)
            tasks = {"ps/0", "worker/0", "worker/1", "worker/2"}
            program.wait_until(lambda: set(commands.tasks_of(running.process.pid)) == tasks, lambda: "ps to leave")
            self.move(running, ps=3)
            self.assert_addresses_are_told(running, [(2, 2), (4, 2), (1, 3), (3, 3)])
            result = self.end(running)
            self.assertEqual((result["rows"]["twice"], result["rows"]["used"] % 20), (0, 0))

    def assert_addresses_are_told(self, running, memberships):
        """By the launcher, of all ps of each: those that stay keep theirs, and each answers there."""
        told = running.wait_for_match(r"^[\d:.]+ (started|continues with) (\d+) ps and (\d+) workers? on this host, "
                                      r"--ps_hosts=(\S+)$", len(memberships))
        self.assertEqual([(int(found[2]), int(found[3])) for found in told], memberships)
        hosts = [found[4].split(",") for found in told]
        self.assertEqual([len(each) for each in hosts], [ps for ps, _ in memberships])
        self.assertTrue(all(each == max(hosts, key=len)[:len(each)] for each in hosts), hosts)
        seen = self.run_dtrain("var", "ls", f"--ps_hosts={','.join(hosts[-1])}")
        self.assertEqual(seen.returncode, 0, seen.stderr)

    def test_steps_from_the_beginning_are_counted_through_a_move(self):
        running = self.start("train.num_steps=1000000000", "train.last_step=0")
        self.move(running, workers=3)
        self.end(running)

    def refused(self, running, error, *words, code=2):
        asked = self.ask(*words)
        self.assertEqual((asked.stdout, asked.returncode), ("", code), asked.stderr)
        self.assertRegex(asked.stderr, rf"^dtrain: {error}\n$")
        step = int(running.wait_for_match(r"step (\d+) of 1000000000, ")[-1].group(1))
        running.wait_for_match(rf"step (?!{step} )\d{{{len(str(step))},}} of 1000000000, ")
        self.assertFalse(running.matches("resized to"))

    def test_a_job_that_cannot_move_goes_on_as_it_is(self):
        running = self.start()
        pids = commands.tasks_of(running.process.pid)
        no = "the job is not resized: "
        self.refused(running, no + "there are so many already", "--workers=2")
        self.refused(running, no + "9 workers: 1 to 8 are possible, by the lists of hosts", "--workers=9")
        self.refused(running, no + "9 ps: 1 to 8 are possible, by the lists of hosts", "--ps=9", "--workers=1")
        shutil.rmtree(self.folder / "run")
        (self.folder / "run").write_text("")
        self.refused(running, no + "no checkpoint could be made to resize with: .*", "--workers=3", code=1)
        self.assertEqual(commands.tasks_of(running.process.pid), pids)
        running.process.kill()
        running.end()

    def test_what_a_job_must_have_to_move_is_told(self):
        running = self.start(folder=None)
        self.refused(running, "the job is not resized: a job is resized through a checkpoint: it needs a train.checkpoint_dir",
                     "--workers=3")
        self.end(running)
        running = self.start("train.min_workers=2", folder="few")
        self.refused(running, r"the job is not resized: .*train.min_workers \(2\).*", "--workers=1")
        self.end(running)

    def test_words_that_say_nothing_are_told(self):
        for words, error in [((), "how many --workers or --ps should there be?"),
                             (("--workers=3",), "scale needs --ps_hosts, or --coordinator and --cluster"),
                             (("--ps=x",), "--ps: expected an integer"), (("three",), 'unexpected argument "three"')]:
            asked = self.run_dtrain("scale", *words, env={"PS_HOSTS": ""})
            self.assertEqual(asked.returncode, 2)
            self.assertIn(error, asked.stderr)
        asked = self.run_dtrain("scale", "--workers=3", "--ps_hosts=127.0.0.1:1", "--timeout=0.2")
        self.assertEqual(asked.returncode, 129)


if __name__ == "__main__":
    program.main()
