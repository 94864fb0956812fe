"""dtrain why: how runs ended and what lost their time, by what they have left; each cause by a deliberate fault."""
import json
import os
import re
import signal

import program
from program import ROOT
from program.cluster import ClusterCase, Plan, with_files

LINES = ROOT / "cmd" / "why" / "lines.def"
SOURCES = [path for folder in ("core", "cmd", "net") for path in (ROOT / folder).rglob("*.c")]
CLOCK = "12:00:00.000 "


def metrics(steps, seconds=lambda step: step * 0.1, loss=lambda step: 1 / step):
    return "".join(json.dumps({"step": step, "loss": loss(step), "learning_rate": 0.1, "examples_per_second": 10.0,
                               "seconds": seconds(step)}) + "\n" for step in steps)


class WhyTest(ClusterCase):
    def why(self, *words, code=0):
        """Its findings as (rule, level) -> text."""
        done = program.run(["why", "--json", *words], self.folder)
        self.assertEqual(done.returncode, code, done.stderr)
        if code:
            return done.stderr
        return {(one["rule"], one["level"]): one["text"] for one in json.loads(done.stdout)["findings"]}

    def write(self, name, text):
        (self.folder / name).write_text(text)
        return name

    def test_a_run_that_is_done(self):
        cluster = self.run_to_end(with_files(Plan(changes={"train.checkpoint_dir": "run", "train.last_step": 60})))
        folder = os.path.basename(cluster.folder)
        found = self.why(folder, folder + "/run")
        self.assertIn("it was done at step 60", found["end", "note"])
        self.assertIn("of step 60: it continues from there", found["kept", "note"])
        self.assertIn("computing was", found["shares", "note"])
        of_speed = {"lines", "outside", "stood_still", "status", "slow_worker", "late_worker", "starved"}  # the machine's
        self.assertEqual([rule for rule, level in found if level == "warning" and rule not in of_speed], [])

    def test_a_loss_that_is_none(self):
        plan = with_files(Plan(changes={"train.mode": "sync", "data.scale": 1e30}))
        cluster = self.start(plan, lambda c: all([t.has_ended() for t in c.tasks.values()]))
        found = self.why(os.path.basename(cluster.folder))
        self.assertRegex(found["end", "warning"], r"the first of \d errors?: .*loss is NaN")
        result = self.why(os.path.basename(cluster.folder) + "/result.json")
        self.assertRegex(result["end", "warning"], r"ended with code 3, the loss is not a number.*step 2: the loss is NaN")

    def test_a_task_that_is_killed(self):
        cluster = self.start_endless(Plan(ps=1, workers=2, changes={"train.mode": "async", "train.min_workers": 1}))
        cluster.tasks["worker/1"].process.kill()
        cluster.wait_until(lambda: "lost worker/1" in cluster.tasks["ps/0"].text(), "the loss")
        cluster.tasks["ps/0"].process.send_signal(signal.SIGTERM)
        cluster.wait()
        found = self.why(os.path.basename(cluster.folder))
        self.assertIn("worker-1.log", found["cut", "warning"])
        self.assertIn("lost worker/1", found["lines", "warning"])
        alone = self.why(os.path.basename(cluster.folder) + "/worker-1.log")
        self.assertIn("no log tells of an end", alone["end", "warning"])

    def test_time_that_is_lost_between_steps(self):
        found = self.why(self.write("m.jsonl", metrics(range(1, 50), lambda step: step * 0.1 + 60 * (step > 20))))
        self.assertRegex(found["stood_still", "warning"], r"for 60 s there were 1 steps.*m\.jsonl, line 21")
        even = self.why(self.write("even.jsonl", metrics(range(1, 50))))
        self.assertEqual(even, {})
        again = self.why(self.write("again.jsonl", metrics(range(1, 41)) + metrics(range(31, 60))))
        self.assertIn("9 steps were made again after 1 restart", again["again", "warning"])
        worse = self.why(self.write("worse.jsonl", metrics(range(1, 9), loss=lambda step: step)))
        self.assertIn("the loss rose from 1 to 8", worse["loss", "warning"])

    def test_time_outside_of_steps_and_in_counters(self):
        counters = {"steps_total": 100, 'step_seconds_total{part="compute"}': 10, 'step_seconds_total{part="data"}': 30}
        self.write("r.json", json.dumps({
            "code": 0, "verdict": "done", "step": 100, "trained": 100, "seconds": 40.0, "wall_seconds": 100.0,
            "rows": {"twice": 0, "lost": 7}, "tasks": [{"task": "worker/0", "age_secs": 0, "state": "", "counters": counters}]}))
        found = self.why("r.json")
        self.assertIn("60 of 100 s were before the first step", found["outside", "warning"])
        self.assertIn("workers wait for data 75 %", found["starved", "warning"])
        self.assertIn("waiting for data 75 %", found["shares", "note"].replace("was ", ""))
        self.assertIn("7 rows are missing", found["rows", "warning"])

    def test_steps_behind_a_checkpoint(self):
        cluster = self.run_to_end(with_files(Plan(changes={"train.checkpoint_dir": "run"})))
        run = os.path.basename(cluster.folder) + "/run"
        found = self.why(run, self.write("m.jsonl", metrics(range(1, 50))))
        self.assertIn("of step 30: 19 steps are lost", found["kept", "warning"])
        for name in os.listdir(self.folder / run):
            if name.startswith("model.ckpt-30."):
                (self.folder / run / name).write_bytes(b"")
        self.assertIn(("kept", "warning"), self.why(run))

    def test_each_line_is_one_of_the_program(self):
        """A log of such lines alone is told, and its words stand in the sources."""
        rows = re.findall(r'^LINE\((\w+), "([^"]+)"', LINES.read_text(), re.M)
        text = "".join(re.sub(r'"\s*"', "", path.read_text()) for path in SOURCES if "why" not in path.parts)
        text = text.replace("worker/%d", "worker/").replace("ps/%d", "ps/")
        for name, words in rows:
            self.assertTrue(words in text or words.rstrip() in text, name)
            said = f"{words}3 failed: no space" if name == "CHECKPOINT_FAILED" else f"{words}3, 10 s of 12 s"
            found = self.why(self.write("one.log", f"{CLOCK}ps/0: {said}\n{CLOCK}ps/0: ended (exit code 129)\n"))
            self.assertEqual([rule for rule, _ in found], ["lines"], name)

    def test_logs_of_all_formats(self):
        last = "ps/0 did not come within 12 s (exit code 129)"
        for text in (f"{CLOCK}worker/0: ERROR: {last}\n", f"worker/0: 2026-11-23T12:26:00.695+01:00 ERROR: {last}\n",
                     json.dumps({"time": "2026-11-23T12:26:00.695+01:00", "level": "error", "task": "worker/0", "text": last})):
            found = self.why(self.write("a.log", text))
            self.assertIn(last, found["end", "warning"])
        evil = self.why(self.write("a.log", f"{CLOCK}ERROR: \x1b[31m (exit code 1)\n"))
        self.assertNotIn("\x1b", evil["end", "warning"])

    def test_what_stands_between_the_lines_of_a_log(self):
        """Lines of other programs, long ones, bytes that are no text: no line of the run is lost behind them."""
        begin, end = f"{CLOCK}worker/0: ERROR: it is lost\n", f"{CLOCK}worker/0: ended (exit code 129)\n"
        for between in ("x" * 1_100_000 + "\n", "a\0b\n", "\0" * 9000 + "\n", "x" * 8191 + "\n", "x" * 8192 + "\n"):
            found = self.why(self.write("a.log", begin + between + end))
            self.assertEqual(list(found), [("end", "warning")])
            self.assertIn("it is lost (a.log, line 1)", found["end", "warning"])
            found = self.why(self.write("a.log", between[:9000].rstrip("\n") + "\n" + begin + between + end))
            self.assertIn("it is lost (a.log, line 2)", found["end", "warning"])
        found = self.why(self.write("a.log", "".join(f"init {i}\n" for i in range(5000)) + begin + end))
        self.assertIn("it is lost (a.log, line 5001)", found["end", "warning"])

    def test_a_log_that_is_not_read_to_its_end(self):
        said = f"{CLOCK}worker/0: begun\n"
        found = self.why(self.write("a.log", said + ("x" * (40 << 20) + "\n") * 2 + f"{CLOCK}ended (exit code 129)\n"))
        self.assertEqual(list(found), [("unread", "warning")])
        self.assertIn("a.log, line 2: read up to there only", found["unread", "warning"])
        self.assertIn("nothing in it", self.why(self.write("a.log", ("x" * 63 + "\n") * (2 << 20) + said), code=2))

    def test_what_no_run_leaves_is_refused(self):
        self.write("none.txt", "hello\n")
        self.write("none.json", "{}")
        os.mkdir(self.folder / "empty")
        for word in ("none.txt", "none.json", "empty"):
            self.assertIn("nothing in it that a run leaves", self.why(word, code=2))
        self.assertIn("No such file", self.why("nosuch", code=2))
        self.assertIn("which run?", self.why(code=2))
        two = json.dumps({"code": 0, "verdict": "done"})
        self.assertIn("one run at a time", self.why(self.write("1.json", two), self.write("2.json", two), code=2))


if __name__ == "__main__":
    program.main()
