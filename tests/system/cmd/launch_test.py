"""A whole cluster on this host from one command: what it prints, how it ends, and that nothing
outlives it."""
import json
import os
import pty
import re
import signal
import subprocess
import threading
import time
import unittest

import program
from program import commands
from program.commands import CommandCase

LOCAL = ["--local_ps=2", "--local_workers=2"]
ENDLESS = LOCAL + ["--set=train.last_step=1000000000", "spec.json"]
TASK = re.compile(r"(ps|worker)/[01]: ")
TASKS = {"ps/0", "ps/1", "worker/0", "worker/1"}
SAVED = r"^worker/0: .* saved .*/model\.ckpt-(\d+) in "
KILLED_S = 100  # from the death of one task to the end of all


AS_PROCESS_1 = ["unshare", "--fork", "--pid", "--kill-child", "--mount-proc"]
UNHEARD = ["env", "--ignore-signal=INT"]  # as a shell without job control starts what is in its background


def ignores(pid, signo):
    """A signal that would be lost now; one that is held back is not."""
    try:
        with open(f"/proc/{pid}/status", encoding="ascii") as file:
            masks = dict(line.split(":\t") for line in file if line.startswith("Sig"))
    except OSError:
        return False  # ended meanwhile
    lost = int(masks["SigIgn"], 16) & ~int(masks["SigBlk"], 16)
    return bool(lost >> (signo - 1) & 1)


def can_have_a_process_1():
    probe = [*AS_PROCESS_1, "true"]
    try:
        return subprocess.run(probe, capture_output=True, check=False).returncode == 0
    except OSError:
        return False


class Launch(CommandCase):
    def run_cluster(self, *arguments, **options):
        return program.run(LOCAL + list(arguments), self.folder, **options)

    def start(self, arguments, command=None):
        """Until every worker has taken a step."""
        running = commands.Running(arguments, self.folder, command)
        self.addCleanup(running.process.kill)
        for worker in ("worker/0: ", "worker/1: "):
            running.wait_for(worker)
        running.wait_for("step 1 of 1000000000")
        return running

    def test_a_cluster_trains_and_ends_by_itself(self):
        ended = self.run_cluster("spec.json")
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertRegex(ended.stdout, r"worker/0: softmax/kernel +\[784, 10\] +31360 +1\n")
        self.assertRegex(ended.stdout, r"worker/0: step 20, ")

    def test_a_limit_on_files_that_is_too_low_is_told_at_once(self):
        few = ["sh", "-c", 'ulimit -n 20 && exec "$0" "$@"', program.BINARY]
        ended = subprocess.run([*few, *LOCAL, "spec.json"], cwd=self.folder, check=False, text=True,
                               capture_output=True, env=program.environment(), timeout=KILLED_S)
        self.assertEqual((ended.returncode, ended.stderr), (
            1, "dtrain: ulimit -n allows 20 open files and connections; a cluster of 2 ps and 2 "
               "workers on this host needs 38\n"))

    def test_a_stack_that_is_too_small_is_told(self):
        small = ["sh", "-c", 'ulimit -s 64 && exec "$0" "$@"', program.BINARY]
        ended = subprocess.run([*small, "help"], check=False, text=True, capture_output=True,
                               env=program.environment(), timeout=KILLED_S)
        self.assertEqual((ended.returncode, ended.stderr), (
            1, "dtrain: ulimit -s allows a stack of 64 KB, and 256 KB are needed\n"))

    def test_every_line_has_the_name_of_its_task(self):
        ended = self.run_cluster("--log_level=debug", "spec.json")
        named = [line for line in ended.stderr.splitlines() if TASK.match(line)]
        other = [line for line in ended.stderr.splitlines() if not TASK.match(line)]
        self.assertGreaterEqual(len(named), 4)
        self.assertRegex(other.pop(0), r"^[0-9:.]+ dtrain \d+\.\d+\.\S+$")
        self.assertRegex(other[0], r"^[0-9:.]+ started 2 ps and 2 workers on this host, --ps_hosts=[0-9.:]+,[0-9.:]+$")
        for line in other[1:]:
            self.assertRegex(line, r"^[0-9:.]+ (ps|worker)/[01] ended with exit code 0: done$")
        for line in ended.stdout.splitlines():
            self.assertRegex(line, TASK)
        for line in named:
            self.assertEqual(len(TASK.findall(line)), 1, "the task's own prefix is there too")

    def test_the_result_is_written_once_by_the_chief(self):
        ended = self.run_cluster("--result=result.json", "--metrics_file", "metrics.jsonl",
                                 "--set=train.log_every_steps=5", "spec.json")
        self.assertEqual(ended.returncode, 0, ended.stderr)
        with open(os.path.join(self.folder, "result.json"), encoding="utf-8") as file:
            self.assertEqual(json.load(file)["step"], 20)
        with open(os.path.join(self.folder, "metrics.jsonl"), encoding="utf-8") as file:
            self.assertTrue(all("loss" in json.loads(line) for line in file))

    def test_the_workers_read_a_spec_from_standard_input(self):
        ended = self.run_cluster("--set", "train.last_step=7", "-", stdin=json.dumps(commands.SPEC))
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertRegex(ended.stdout, r"worker/0: step 7, ")

    def test_the_environment_of_another_task_does_no_harm(self):
        env = {"JOB_NAME": "ps", "TASK_INDEX": "9", "PS_HOSTS": "x", "TF_CONFIG": "{"}
        ended = self.run_cluster("spec.json", env=env)
        self.assertEqual(ended.returncode, 0, ended.stderr)

    def test_one_ps_or_one_worker_are_the_rest_of_a_cluster(self):
        for flag in ("--local_ps=1", "--local_workers=1"):
            ended = program.run([flag, "spec.json"], self.folder)
            self.assertEqual(ended.returncode, 0, ended.stderr)
            self.assertIn("started 1 ps and 1 worker on this host", ended.stderr)

    def test_what_only_a_task_can_find_wrong_gives_the_job_its_code(self):
        missing = '{"format": "idx", "features": "missing", "labels": "missing"}'
        ended = self.run_cluster(f"--set=data.train={missing}", "spec.json")
        self.assertEqual(ended.returncode, 2, ended.stderr)
        self.assertRegex(ended.stderr, r"ERROR: worker/[01] ended with exit code 2: ")
        self.assertRegex(ended.stderr, r"worker/[01]: dtrain: spec.json: data.train: .*missing.*"
                                       "No such file or directory")

    def end_by_signal(self, running, signo):
        tasks = commands.tasks_of(running.process.pid)
        self.assertEqual(set(tasks), TASKS)
        running.process.send_signal(signo)
        code = running.end()
        commands.wait_until_gone(tasks.values())
        return code

    def test_signals_end_all_of_it(self):
        for signo, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 143)):
            with self.subTest(signal=signo):
                self.assertEqual(self.end_by_signal(self.start(ENDLESS), signo), code)

    def test_an_end_that_was_asked_for_is_no_error(self):
        running = self.start(ENDLESS)
        hosts = running.matches("started 2 ps and 2 workers on this host, (--ps_hosts=.*)")[0][1]
        asked = program.run(["stop", f"--timeout={program.LIMIT_S}", hosts], self.folder)
        self.assertEqual(asked.returncode, 0, asked.stderr)
        self.assertEqual(running.end(), 143)
        self.assertTrue(running.matches("stopped by a visitor"), running.lines)
        self.assertEqual([line for line in running.lines if "ERROR" in line], [])

    def test_a_cluster_in_the_background_of_a_script_hears_sigint_from_its_first_moment_on(self):
        fifo = self.folder / "fifo.json"
        os.mkfifo(fifo)
        running = commands.Running(LOCAL + [fifo.name], self.folder, UNHEARD)
        self.addCleanup(running.process.kill)
        with open(fifo, "w", encoding="utf-8"):  # the launcher reads it, and has started nobody
            running.process.send_signal(signal.SIGINT)
            self.assertEqual(running.end(), 130, running.lines)

    def test_no_task_is_ever_deaf_to_sigint(self):
        running = commands.Running(ENDLESS, self.folder, UNHEARD)
        self.addCleanup(running.process.kill)
        tasks, deaf = {}, []
        while len(tasks) < len(TASKS) or not running.matches("step 1 of 1000000000"):
            tasks = tasks if len(tasks) == len(TASKS) else commands.children_of(running.process.pid)
            deaf += [pid for pid in tasks if ignores(pid, signal.SIGINT)]
            self.assertIsNone(running.process.poll(), running.lines)
        self.assertEqual(deaf, [])
        self.assertEqual(self.end_by_signal(running, signal.SIGINT), 130)

    def test_no_task_outlives_a_killed_launcher(self):
        code = self.end_by_signal(self.start(ENDLESS), signal.SIGKILL)
        self.assertEqual(code, -signal.SIGKILL)

    def test_a_killed_task_is_named_and_ends_the_job(self):
        for name in ("worker/1", "ps/0"):
            with self.subTest(task=name):
                running = self.start(["--stop_timeout=3"] + ENDLESS)
                tasks = commands.tasks_of(running.process.pid)
                since = time.monotonic()
                os.kill(tasks[name], signal.SIGKILL)
                self.assertEqual(running.end(), 128 + signal.SIGKILL)
                self.assertLess(time.monotonic() - since, KILLED_S, running.lines)
                commands.wait_until_gone(tasks.values())
                killed = f"ERROR: {name} was killed by signal 9 (Killed)"
                self.assertEqual(len([l for l in running.lines if killed in l]), 1, running.lines)

    def test_a_stopped_task_is_killed_after_the_limit(self):
        running = self.start(["--stop_timeout=0.2"] + ENDLESS)
        tasks = commands.tasks_of(running.process.pid)
        os.kill(tasks["worker/1"], signal.SIGSTOP)
        self.assertEqual(self.end_by_signal(running, signal.SIGTERM), 143)

    def start_saving(self, *flags):
        """Until more has been learnt than the first checkpoint has; returns its step too."""
        running = self.start([*flags, "--set=train.checkpoint_dir=run"] + ENDLESS)
        first = running.wait_for_match(SAVED)[0]
        running.wait_for_match(r"^worker/0: .* step [1-9]\d\d+ of")
        return running, int(first[1])

    def assert_saved_since(self, running, first):
        last = int(running.matches(SAVED)[-1][1])
        self.assertGreater(last, first, running.lines)
        with open(os.path.join(self.folder, "run", "checkpoint"), encoding="utf-8") as file:
            self.assertIn(f'"model.ckpt-{last}"', file.readline())

    def test_a_signal_leaves_time_for_the_last_checkpoint(self):
        running, first = self.start_saving()
        self.assertEqual(self.end_by_signal(running, signal.SIGTERM), 143)
        self.assert_saved_since(running, first)

    def test_the_death_of_a_worker_leaves_time_for_the_last_checkpoint(self):
        running, first = self.start_saving()
        os.kill(commands.tasks_of(running.process.pid)["worker/1"], signal.SIGKILL)
        self.assertEqual(running.end(), 128 + signal.SIGKILL)
        self.assert_saved_since(running, first)

    def test_reports_and_checkpoints_can_be_asked_for(self):
        running, first = self.start_saving()
        running.process.send_signal(signal.SIGUSR1)
        for task in TASKS:
            running.wait_for_match(rf"^{task}: .* MiB resident$")
            running.wait_for_match(rf"^{task}: .*: here over \w+, \d+ bytes queued, overlap: ")
        for task in ("worker/0", "worker/1"):
            running.wait_for_match(rf"^{task}: .* \d+ batches are ready \(prefetch 4\)$")
        running.process.send_signal(signal.SIGUSR2)
        self.assertGreater(int(running.wait_for_match(SAVED, count=2)[1][1]), first)
        self.assertEqual(self.end_by_signal(running, signal.SIGTERM), 143)

    def test_what_the_chief_cannot_write_ends_all_tasks_with_its_code(self):
        for flag in ("--metrics_file", "--result"):
            ended = self.run_cluster(f"{flag}=/dev/full", "spec.json")
            self.assertEqual(ended.returncode, 1, ended.stderr)
            why = re.escape(f"{flag}=/dev/full: No space left on device (exit code 1)")
            for task in TASKS - {"worker/0"}:
                self.assertRegex(ended.stderr, rf"(?m)^{task}: .* ERROR: worker/0: {why}$")

    @unittest.skipUnless(can_have_a_process_1(), "no right to make a process namespace")
    def test_it_works_as_process_1(self):
        running = commands.Running(LOCAL + ["spec.json"], self.folder, AS_PROCESS_1)
        self.assertEqual(running.end(), 0, running.lines)

    @unittest.skipUnless(can_have_a_process_1(), "no right to make a process namespace")
    def test_every_command_reaps_what_others_leave_to_process_1(self):
        """Of a task as of a launcher: whoever ends without a parent is gone, and signals and codes are the program's."""
        fifo = self.folder / "fifo"
        os.mkfifo(fifo)
        orphan = 'sh -c "cat fifo &"; exec "$0" "$@"'  # its parent has ended before it does
        for words in (["--set=train.last_step=1000000000", "spec.json"], ENDLESS):
            with self.subTest(words=words):
                running = commands.Running(words, self.folder, [*AS_PROCESS_1, "sh", "-c", orphan])
                self.addCleanup(running.process.kill)
                running.wait_for("step 1 of 1000000000")
                inside = commands.children_of(running.process.pid)
                self.assertEqual(len(inside), 1)
                first = int(next(iter(inside)))
                self.assertEqual(len(commands.children_of(first)), 2)  # the program and the orphan
                with open(fifo, "w", encoding="ascii"):  # which ends it
                    pass
                program.wait_until(lambda: len(commands.children_of(first)) == 1, lambda: "the orphan's end")
                os.kill(first, signal.SIGTERM)
                self.assertEqual(running.end(), 143, running.lines)

    def test_on_a_terminal_the_status_line_of_the_chief_is_redrawn(self):
        master, terminal = pty.openpty()
        process = subprocess.Popen([program.BINARY] + ENDLESS, cwd=self.folder,
                                   env=program.environment({"TERM": "xterm"}),
                                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                   stderr=terminal)
        os.close(terminal)
        self.addCleanup(process.wait, program.LIMIT_S)
        self.addCleanup(process.kill)
        limit = threading.Timer(program.LIMIT_S, process.kill)  # which ends the reading, too
        limit.start()
        self.addCleanup(limit.cancel)
        seen = b""
        while b"\r\x1b[Kworker/0: " not in seen:
            piece = os.read(master, 65536)
            self.assertTrue(piece, seen)
            seen += piece
        self.assertNotIn(b"\r\x1b[Kworker/1: step", seen)
        os.close(master)


if __name__ == "__main__":
    program.main()
