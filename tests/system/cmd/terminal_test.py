"""What a terminal, a full disk and a reader that goes away see of a run, and what a terminal that goes
away does to it."""
import os
import pty
import signal
import subprocess
import threading

import program
from program import commands
from program.commands import CommandCase

LOCAL = ["--local_ps=1", "--local_workers=1"]
ENDLESS = ["--set=train.last_step=1000000000", "--set=train.checkpoint_dir=run", "spec.json"]
CLEAR = b"\r\x1b[K"
FULL = "No space left on device"


class Terminal(CommandCase):
    def run_on_terminal(self, arguments, kind):
        """All that a terminal is sent until the program has ended."""
        master, terminal = pty.openpty()
        env = program.environment({"TERM": kind})
        process = subprocess.Popen([program.BINARY] + arguments, cwd=self.folder, env=env,
                                   stdin=subprocess.DEVNULL, stdout=terminal, stderr=terminal)
        os.close(terminal)
        limit = threading.Timer(program.LIMIT_S, process.kill)  # which ends the reading, too
        limit.start()
        seen = b""
        try:
            while piece := os.read(master, 65536):
                seen += piece
        except OSError:  # the last one has closed it
            pass
        limit.cancel()
        os.close(master)
        self.assertEqual(process.wait(program.LIMIT_S), 0, seen)
        return seen

    def test_the_result_stands_on_a_line_of_its_own(self):
        for flags in ([], LOCAL):
            with self.subTest(flags=flags):
                seen = self.run_on_terminal(flags + ["spec.json"], "xterm")
                prefix = b"worker/0: " if flags else b""
                for line in seen.replace(CLEAR, b"\n").splitlines():
                    if b"step 20, " in line:
                        self.assertTrue(line.startswith(prefix + b"step 20, "), seen)
                        break
                else:
                    self.fail(seen)

    def test_a_status_line_is_redrawn_where_that_is_possible(self):
        seen = self.run_on_terminal(["--set=train.last_step=2000", "spec.json"], "xterm")
        self.assertIn(CLEAR + b"step ", seen)

    def test_a_dumb_terminal_gets_lines_as_a_log_does(self):
        for flags in ([], LOCAL):
            for kind in ("dumb", ""):
                with self.subTest(flags=flags, TERM=kind):
                    seen = self.run_on_terminal(flags + ["spec.json"], kind)
                    self.assertNotIn(b"\x1b", seen)
                    self.assertRegex(seen, rb"step 1 of 20, loss")

    def test_what_files_are_called_does_not_talk_to_the_terminal(self):
        evil = "\x1b]0;mine\x07\u009b2J"
        with open(os.path.join(self.folder, evil + ".json"), "w", encoding="utf-8") as file:
            file.write('{"name": "x"}')
        hosts = ["--ps_hosts=" + evil, "--worker_hosts=a:1", "--job_name=ps", "--task_index=0"]
        for arguments, env in (([evil + ".json"], {}), (["help", evil], {}), ([evil], {}),
                               (["check", evil + ".json"], {}), (hosts, {}),
                               (["help", "op", evil], {}), (["checkpoint", "ls", evil], {}),
                               (["check", "--set=model[0].name=" + evil, "spec.json"], {}),
                               (["check", "--set=name=" + evil, "spec.json"], {}),
                               (["spec.json"], {"TF_CONFIG": '{"cluster": {"%s": []}}' % evil}),
                               (["spec.json"], {"TF_CONFIG": evil})):
            with self.subTest(arguments=arguments, env=env):
                ended = program.run(arguments, self.folder, env)
                shown = ended.stdout + ended.stderr
                self.assertTrue(shown)
                for control in "\x1b\x07\u009b":
                    self.assertNotIn(control, shown)


class Written(CommandCase):
    def run_with(self, stdout, arguments):
        return subprocess.run([program.BINARY] + arguments, cwd=self.folder,
                              env=program.environment(), stdin=subprocess.DEVNULL,
                              stdout=stdout, stderr=subprocess.PIPE, text=True,
                              timeout=program.LIMIT_S, check=False)

    def test_a_result_that_cannot_be_written_is_a_failure(self):
        for arguments in (["help"], ["schema"], ["version"], ["check", "spec.json"], ["spec.json"],
                          LOCAL + ["spec.json"]):
            with self.subTest(arguments=arguments):
                with open("/dev/full", "w", encoding="utf-8") as full:
                    ended = self.run_with(full, arguments)
                self.assertEqual(ended.returncode, 1, ended.stderr)
                self.assertIn(f"dtrain: standard output: {FULL}\n", ended.stderr)

    def test_a_result_that_goes_nowhere_is_a_failure(self):
        for arguments in (["version"], ["spec.json"], LOCAL + ["spec.json"]):
            with self.subTest(arguments=arguments):
                ended = subprocess.run(["sh", "-c", 'exec "$0" "$@" >&-', program.BINARY] + arguments,
                                       cwd=self.folder, env=program.environment(),
                                       stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                                       timeout=program.LIMIT_S, check=False)
                self.assertEqual(ended.returncode, 1, ended.stderr)
                self.assertIn("dtrain: standard output: Bad file descriptor\n", ended.stderr)

    def test_a_run_outlives_who_reads_its_result(self):
        for arguments in (["spec.json"], LOCAL + ["spec.json"]):
            with self.subTest(arguments=arguments):
                reader, writer = os.pipe()
                os.close(reader)
                ended = self.run_with(writer, arguments + ["--result=result.json"])
                os.close(writer)
                self.assertEqual(ended.returncode, 1, ended.stderr)
                self.assertIn("dtrain: standard output: Broken pipe\n", ended.stderr)
                self.assertTrue(os.path.exists(os.path.join(self.folder, "result.json")))
                os.remove(os.path.join(self.folder, "result.json"))

    def test_metrics_that_cannot_be_written_are_a_failure(self):
        os.symlink("/dev/full", os.path.join(self.folder, "metrics"))
        for flags in ([], LOCAL):
            with self.subTest(flags=flags):
                ended = self.run_with(subprocess.DEVNULL, flags + ["--metrics_file=metrics", "spec.json"])
                self.assertEqual(ended.returncode, 1, ended.stderr)
                self.assertIn(f"WARNING: --metrics_file=metrics: {FULL}: lines are lost", ended.stderr)
                self.assertIn(f"ERROR: --metrics_file=metrics: {FULL} (exit code 1)\n", ended.stderr)


class HangUp(CommandCase):
    """SIGHUP, as a terminal sends it when it goes away."""

    def start(self, flags, before=()):
        running = commands.Running(flags + ENDLESS, self.folder, list(before))
        self.addCleanup(running.process.kill)
        running.wait_for_match(r"saved .*/model\.ckpt-0 in ")
        running.wait_for("step 100 of 1000000000")
        return running

    def test_it_ends_a_run_with_a_last_checkpoint(self):
        for flags in ([], LOCAL):
            with self.subTest(flags=flags):
                running = self.start(flags)
                running.process.send_signal(signal.SIGHUP)
                self.assertEqual(running.end(), 128 + signal.SIGTERM, running.lines)
                self.assertTrue(running.matches(r"saved .*/model\.ckpt-[1-9]\d* in "), running.lines)
                self.assertTrue(running.matches(r"stopped by SIG(HUP|TERM) \(exit code 143\)"))
                program.run(["checkpoint", "verify", "run"], self.folder).check_returncode()
                subprocess.run(["rm", "-r", "run"], cwd=self.folder, check=True)

    def test_it_is_ignored_where_it_was_ignored_at_the_start(self):
        for flags in ([], LOCAL):
            with self.subTest(flags=flags):
                running = self.start(flags, ["env", "--ignore-signal=HUP"])
                running.process.send_signal(signal.SIGHUP)
                steps = len(running.matches(r"step \d+00 of"))
                running.wait_for_match(r"step \d+00 of", steps + 2)
                running.process.send_signal(signal.SIGTERM)
                self.assertEqual(running.end(), 128 + signal.SIGTERM, running.lines)
                self.assertFalse(running.matches("SIGHUP"))
                subprocess.run(["rm", "-r", "run"], cwd=self.folder, check=True)


if __name__ == "__main__":
    program.main()
