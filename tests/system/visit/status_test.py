"""dtrain status, save, drain and stop: a living job, seen and asked from outside."""
import json
import os
import pathlib
import signal
import subprocess

import program
from program import BINARY, LIMIT_S, logged
from program.cluster import ClusterCase, Plan

TIMEOUT = f"--timeout={LIMIT_S}"
SAVES = {"train.checkpoint_dir": "run", "train.save_checkpoint_secs": 100000}


class Status(ClusterCase):
    def ask(self, cluster, *words, hosts=True, code=0):
        """What a command says; of standard error where it fails."""
        where = ["--ps_hosts=" + ",".join(cluster.hosts["ps"])] if hosts else []
        done = subprocess.run([BINARY, *words, *where], env=program.environment(), stdin=subprocess.DEVNULL,
                              cwd=cluster.folder, capture_output=True, text=True, timeout=LIMIT_S, check=False)
        self.assertEqual(done.returncode, code, done.stderr + cluster.story())
        return done.stderr if code else done.stdout

    def told(self, cluster):
        said = self.status(cluster)
        return {task["task"]: task for task in said["tasks"]}, said["findings"]

    def wait_told(self, cluster):
        """Until ps/0 has heard of steps of every worker, and so of the chief."""
        workers = [name for name in cluster.plan.names() if name.startswith("worker")]
        cluster.wait_until(lambda: all(self.told(cluster)[0].get(name, {}).get("counters", {}).get("steps_total")
                                       for name in workers), "counters of all workers")

    def test_a_job_is_shown_saved_drained_and_stopped(self):
        cluster = self.start_endless(Plan(workers=3, changes={**SAVES, "train.mode": "async"}))
        self.wait_told(cluster)
        tasks, _ = self.told(cluster)
        self.assertEqual(set(tasks), set(cluster.plan.names()))
        self.assertEqual(tasks["worker/0"]["counters"]["is_chief"], 1)
        screen = self.ask(cluster, "status", TIMEOUT)
        for words in ["2 ps, 3 workers, worker/0 leads", "\nps/1 ", "\nworker/2 ", "compute%"]:
            self.assertIn(words, screen)
        self.look_at_a_worker(cluster)
        self.assertRegex(self.ask(cluster, "save", TIMEOUT), r"\Asaved at step \d+\n\Z")
        self.assertTrue(any(name.startswith("model.ckpt-") for name in os.listdir(os.path.join(cluster.folder, "run"))))
        self.assertEqual(self.ask(cluster, "drain", "worker/2", TIMEOUT), "it has left; the job continues\n")
        cluster.wait_until(cluster.tasks["worker/2"].has_ended, "its end")
        self.assertEqual(cluster.tasks["worker/2"].code(), 143)
        for worker, words in ("worker/7", "there is no such worker"), ("worker/2", "that worker is not here"):
            self.assertIn(f"drain {worker}: ps/0: {words}", self.ask(cluster, "drain", worker, TIMEOUT, code=128))
        tasks, findings = self.told(cluster)
        self.assertNotIn("evictions_total", tasks["ps/0"]["counters"])
        self.assertFalse([finding for finding in findings if "gone for too long" in finding["text"]])
        self.assertFalse([finding for finding in findings if finding["rule"] == "missing"])
        self.assertEqual((tasks["worker/2"]["state"], tasks["worker/2"]["counters"].get("steps_per_second", 0)), ("has left", 0))
        self.assertEqual(self.ask(cluster, "stop", TIMEOUT), "the job has ended\n")
        self.assert_codes(cluster, 143)
        self.assertRegex(cluster.tasks["worker/0"].text(), r"stopped by a visitor \(")
        self.assertNotIn("lost worker/", cluster.story())
        for asked in ("worker/0 to save a checkpoint", "worker/2 to leave"):
            self.assertRegex(cluster.tasks["ps/0"].text(), rf" a visitor \(127\.0\.0\.1:\d+\) asks {asked}\n")
        self.assertNotIn("sent COUNTERS", cluster.story())

    def look_at_a_worker(self, cluster):
        """What is found at another address than that of a ps is told."""
        def told():
            done = subprocess.run([BINARY, "status", "--timeout=1", "--ps_hosts=" + cluster.hosts["worker"][0]], env=program.environment(),
                                  cwd=cluster.folder, capture_output=True, text=True, timeout=LIMIT_S, check=False)
            self.assertEqual(done.returncode, 129, done.stderr)
            return "is that the address of a ps, and not of a worker?" in done.stderr

        cluster.wait_until(told, "a word of the worker")

    def test_a_ps_that_stands_still_is_a_row_and_a_finding(self):
        """The others are shown, and nothing has failed."""
        cluster = self.start_endless(Plan(workers=2))
        self.wait_told(cluster)
        os.kill(cluster.tasks["ps/1"].process.pid, signal.SIGSTOP)
        cluster.wait_until(cluster.tasks["ps/1"].is_held_up, "its stop")
        seen = {}

        def look(*words):
            """ps/0 may be late, too."""
            done = subprocess.run([BINARY, "status", "--timeout=3", "--ps_hosts=" + ",".join(cluster.hosts["ps"]), *words],
                                  env=program.environment(), cwd=cluster.folder, capture_output=True, text=True,
                                  timeout=LIMIT_S, check=False)
            seen[words] = done.stdout
            return done.returncode == 0 and "ps/0" in done.stdout

        cluster.wait_until(look, "ps/0 beside it")
        cluster.wait_until(lambda: look("--json"), "the same as JSON")
        self.assertRegex(seen[()], r"\nps/1 +does not answer( \(\d+ s\))?\n")
        said = json.loads(seen[("--json",)])
        self.assertEqual([u["task"] for u in said["unanswered"]], ["ps/1"])
        self.assertIn("no_answer", [finding["rule"] for finding in said["findings"]])
        os.kill(cluster.tasks["ps/1"].process.pid, signal.SIGCONT)
        self.ask(cluster, "stop", TIMEOUT)
        self.assert_codes(cluster, 143)

    def test_a_job_is_found_by_the_file_of_ps_0(self):
        flags = {f"ps/{i}": [f"--ready_file=ps-{i}.json"] for i in range(2)}
        cluster = self.start_endless(Plan(flags_of=flags))
        look = lambda: self.ask(cluster, "status", "--ready_file=ps-0.json", TIMEOUT, hosts=False)
        cluster.wait_until(lambda: "\nps/0 " in look(), "what ps/0 counts")
        self.assertNotIn("\nps/1 ", look())
        self.assertIn("is of ps/1, not of ps/0",
                      self.ask(cluster, "status", "--ready_file=ps-1.json", hosts=False, code=2))
        pathlib.Path(cluster.folder, "log").write_text("12:00:00.000 serving\n")
        for words, said in ((("--ready_file=log",), "--ready_file=log: expected what ps/0 has written there"),
                            ((), "status needs --ps_hosts, or --coordinator and --cluster, or --ready_file"),
                            (("--worker_hosts=a:1",), 'status: unknown flag "worker_hosts"')):
            self.assertIn(said, self.ask(cluster, "status", *words, hosts=False, code=2))
        for line, said in (('{"task": "worker/0", "pid": 1}', "is of worker/0, not of ps/0: a process that trains alone has none"),
                           ('{"pid": 1}', "expected what ps/0 has written there"), ("[]", "expected what ps/0 has written there")):
            pathlib.Path(cluster.folder, "other.json").write_text(line)
            self.assertIn(said, self.ask(cluster, "status", "--ready_file=other.json", hosts=False, code=2))
        self.assertIn("nosuch: No such file or directory",
                      self.ask(cluster, "status", "--ready_file=nosuch", hosts=False, code=2))
        self.assertIn("saves no checkpoints", self.ask(cluster, "save", TIMEOUT, code=2))
        self.ask(cluster, "stop", TIMEOUT)
        self.assert_codes(cluster, 143)

    def test_a_ps_that_follows_another_is_shown_as_such(self):
        cluster = self.start_endless(Plan(ps=3, workers=1, changes={"train.ps_replicas": 1}))
        cluster.wait_until(lambda: self.told(cluster)[0].get("ps/2", {}).get("counters", {}).get("follows_ps") == 1,
                           lambda: "its follower")
        tasks, _ = self.told(cluster)
        self.assertFalse([name for name in ("ps/0", "ps/1") if "follows_ps" in tasks[name]["counters"]])
        screen = self.ask(cluster, "status", TIMEOUT)
        self.assertIn("\n3 ps (1 of them followers), 1 worker, worker/0 leads", screen)
        self.assertRegex(screen, r"\nps/2 .*  follows ps/1: ")

    def test_the_lines_of_all_tasks_are_shown_by_their_times(self):
        cluster = self.start_endless(Plan(workers=2))
        self.wait_told(cluster)
        whole = self.ask(cluster, "logs", "--lines=500", TIMEOUT)
        for name, task in cluster.tasks.items():
            own = [line.split(f"{name}: ", 1)[1] for line in whole.splitlines() if f" {name}: " in line]
            written = [line.split(f"{name}: ", 1)[1] for line in task.text().splitlines() if f" {name}: " in line]
            self.assertTrue(own)
            self.assertEqual(own, written[:len(own)])
        one = self.ask(cluster, "logs", "--json", "--task=worker/1", "--lines=2", TIMEOUT)
        self.assertEqual([line["task"] for line in logged.check_all(self, one)], ["worker/1"] * 2)
        self.assertIn("--task=worker/9: the job knows of no such task",
                      self.ask(cluster, "logs", "--task=worker/9", TIMEOUT, code=2))
        words = [BINARY, "logs", "-f", TIMEOUT, "--ps_hosts=" + ",".join(cluster.hosts["ps"])]
        follower = subprocess.Popen(words, env=program.environment(), stdout=subprocess.PIPE, stdin=subprocess.DEVNULL,
                                    text=True)
        self.addCleanup(follower.kill)
        self.assertRegex(follower.stdout.readline(), r"\A\d{4}-\d\d-\d\dT\S+ (ps|worker)/\d: ")
        self.ask(cluster, "stop", TIMEOUT)
        text, _ = follower.communicate(timeout=LIMIT_S)
        self.assertIn("the job has ended", text.splitlines()[-1])
        self.assertEqual(follower.returncode, 0)
        self.assert_codes(cluster, 143)

    def test_a_worker_that_stands_still_keeps_nobody_from_the_lines_of_others(self):
        cluster = self.start_endless(Plan(workers=2, changes={"train.mode": "async"}))
        self.wait_told(cluster)
        stuck = cluster.tasks["worker/1"].process
        stuck.send_signal(signal.SIGSTOP)
        self.addCleanup(lambda: stuck.send_signal(signal.SIGCONT))
        seconds, done = 0.5, None

        def others_are_shown():  # with a limit that is long enough for them, however slow the machine
            nonlocal seconds, done
            seconds *= 2
            words = [BINARY, "logs", f"--timeout={seconds}", "--ps_hosts=" + ",".join(cluster.hosts["ps"])]
            done = subprocess.run(words, env=program.environment(), stdin=subprocess.DEVNULL, capture_output=True,
                                  text=True, timeout=LIMIT_S, check=False)
            return done.returncode == 0 and " worker/0: " in done.stdout
        cluster.wait_until(others_are_shown, "lines of worker/0")
        self.assertIn("WARNING: worker/1: no answer within", done.stderr)
        self.assertIn(" ps/1: ", done.stdout)

    def test_all_lines_of_a_worker_that_begins_anew_are_followed(self):
        cluster = self.start_endless(Plan(workers=2, changes={"train.mode": "async"}))
        self.wait_told(cluster)
        words = [BINARY, "logs", "-f", "--lines=1", TIMEOUT, "--ps_hosts=" + ",".join(cluster.hosts["ps"])]
        path = pathlib.Path(cluster.folder, "followed")
        with open(path, "w", encoding="utf-8") as file:
            follower = subprocess.Popen(words, env=program.environment(), stdout=file, stdin=subprocess.DEVNULL)
        self.addCleanup(follower.wait)
        self.addCleanup(follower.kill)
        cluster.wait_until(lambda: " worker/1: " in path.read_text(), "its last line")
        cluster.tasks["worker/1"].kill()
        cluster.start("worker/1", label="again")
        cluster.wait_for("again", " of 1000000")
        written = [line.split("worker/1: ", 1)[1] for line in cluster.tasks["again"].text().splitlines()
                   if " worker/1: " in line]
        cluster.wait_until(lambda: f"worker/1: {written[-1]}" in path.read_text(), "its new lines")
        followed = path.read_text()
        for line in written:
            self.assertIn(f"worker/1: {line}", followed)

    def test_where_the_time_of_steps_goes(self):
        for mode in "sync", "async":
            with self.subTest(mode):
                cluster = self.start_endless(Plan(workers=2, changes={"train.mode": mode}))
                self.wait_told(cluster)
                path = os.path.join(cluster.folder, "timeline.json")
                text = self.ask(cluster, "profile", "--steps=3", f"--out={path}", TIMEOUT)
                self.assertRegex(text, r"\A3 steps from step \d+ on\n\nworker +step +compute +data +push +wait +hooks")
                for words in "\nworker/1 ", "\nps/1 ", "\nnode ", f"\nthe timeline is in {path}\n":
                    self.assertIn(words, text)
                with open(path, encoding="utf-8") as file:
                    events = json.load(file)["traceEvents"]
                steps = [event for event in events if event.get("cat") == "step"]
                self.assertEqual(len(steps), 3 * 2)
                said = json.loads(self.ask(cluster, "profile", "--json", TIMEOUT))
                self.assertEqual(said["steps"], 5)
                self.assertEqual([task["task"] for task in said["tasks"]], ["worker/0", "worker/1", "ps/0", "ps/1"])
                self.assertFalse(said["missing"])
                for task in said["tasks"][:2]:
                    self.assertGreater(task["ms_a_step"], 0)
                    self.assertLessEqual(task["ms"]["compute"], task["ms_a_step"])
                self.assertGreater(sum(node["backward_ms"] for node in said["nodes"]), 0)
                self.assertIn("steps", self.ask(cluster, "profile", "--steps=101", code=2))
                self.ask(cluster, "stop", TIMEOUT)
                self.assert_codes(cluster, 143)

    def test_one_timeline_is_asked_for_at_a_time(self):
        cluster = self.start_endless(Plan(workers=2))
        self.wait_told(cluster)
        stopped = cluster.tasks["worker/1"].process
        stopped.send_signal(signal.SIGSTOP)  # no step ends meanwhile
        self.addCleanup(stopped.send_signal, signal.SIGCONT)
        words = [BINARY, "profile", TIMEOUT, "--ps_hosts=" + ",".join(cluster.hosts["ps"])]
        both = [subprocess.Popen(words, env=program.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                 stdin=subprocess.DEVNULL, text=True) for _ in range(2)]
        for asking in both:
            self.addCleanup(asking.kill)
        cluster.wait_until(lambda: any(asking.poll() is not None for asking in both), "the refusal of one")
        first, second = sorted(both, key=lambda asking: asking.poll() is None)
        self.assertIn("another timeline is being made", first.communicate(timeout=LIMIT_S)[1])
        self.assertIsNone(second.poll())
        stopped.send_signal(signal.SIGCONT)
        text, errors = second.communicate(timeout=LIMIT_S)
        self.assertEqual((first.returncode, second.returncode), (128, 0), errors)
        self.assertRegex(text, r"\A5 steps from step ")
        self.ask(cluster, "stop", TIMEOUT)
        self.assert_codes(cluster, 143)

    def test_watching_ends_with_the_job(self):
        cluster = self.start_endless(Plan(ps=1, workers=1))
        words = [BINARY, "status", "--watch", "--every=0.1", TIMEOUT, "--ps_hosts=" + cluster.hosts["ps"][0]]
        watcher = subprocess.Popen(words, env=program.environment(), stdout=subprocess.PIPE, stdin=subprocess.DEVNULL,
                                   text=True)
        self.addCleanup(watcher.kill)
        self.assertTrue(watcher.stdout.readline().startswith("step "))
        self.ask(cluster, "stop", TIMEOUT)
        text, _ = watcher.communicate(timeout=LIMIT_S)
        self.assertRegex(text, r"the job has ended: .*stopped by a visitor")
        self.assertEqual(watcher.returncode, 0)
        self.assert_codes(cluster, 143)


if __name__ == "__main__":
    program.main()
