"""train.publish and dtrain serve --follow: what is served is, to the bit, the model of one step, whoever dies."""
import json
import os
import subprocess
import tempfile
import unittest

import program
import serve_test
from program import commands
from serve_test import BATCH

NEVER = 1000000000


class Publishing(serve_test.Serving):
    """A run that ends when it is killed, its server, and the same run once more to the step that is served."""

    SPEC = {"mode": "sync", "last_step": NEVER, "checkpoint_dir": "life", "save_checkpoint_secs": NEVER,
            "save_summaries_steps": 0, "log_step_count_steps": 0, "log_every_steps": NEVER}
    COLUMNS = [column if column["name"] != "tags" else {"column": "hash", "name": "tags", "max": 4, "truncate": "first"}
               for column in serve_test.Cells.COLUMNS]
    MODEL = [{**node, "capacity": "dynamic", "admit_after": 2, "evict_after_steps": 50} if node["name"] == "tag" else node
             for node in serve_test.Cells.MODEL]
    rows = serve_test.Cells.rows

    def setUp(self):
        super().setUp()
        self.place = "life"
        self.instances = self.write_rows()
        self.write_run({}, "run.json")

    def write_rows(self):
        rows = [{**row, "tags": [f"{i % 50}", f"{i * i % 90}"]} for i, row in enumerate(self.rows(512))]
        (self.folder / "clicks.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        return rows[:BATCH]

    def write_run(self, train, name):
        source = {"format": "jsonl", "file": "clicks.jsonl", "label": "click", "missing": ["NA"]}
        spec = {"name": "clicks", "data": {"train": source, "eval": {**source, "take": BATCH}, "columns": self.COLUMNS, "batch_size": 32},
                "model": self.MODEL, "loss": "sigmoid_cross_entropy", "metrics": ["auc"],
                "optimizer": {"type": "adagrad", "learning_rate": 0.1},
                "train": {**self.SPEC, "publish": {"every_secs": 0.1}, **train}}
        self.write_spec(spec, name)

    def begin(self):
        """A cluster of two ps and two workers"""
        log = self.folder / "run.log"
        command = [program.BINARY, "--local_ps=2", "--local_workers=2", "run.json"]
        with log.open("a", encoding="utf-8") as file:
            run = subprocess.Popen(command, cwd=self.folder, env=program.environment(), stdin=subprocess.DEVNULL, stdout=file, stderr=file)
        self.addCleanup(lambda: (run.kill(), run.wait()))
        return run

    def kill(self, run):
        """All of its tasks, which write into the folder until they are gone"""
        tasks = commands.children_of(run.pid)
        run.kill()
        run.wait()
        commands.wait_until_gone(tasks)

    def published(self):
        path = self.folder / self.place / "published.json"
        return json.loads(path.read_text()) if path.exists() else {"checkpoint": {"step": -1}, "deltas": []}

    def wait_for_deltas(self, run, count, after=-1):
        """So many follow a checkpoint of a later step."""
        def has_come():
            said = self.published()
            return run.poll() is not None or (said["checkpoint"]["step"] > after and len(said["deltas"]) >= count)
        program.wait_until(has_come, (self.folder / "run.log").read_text)
        self.assertIsNone(run.poll(), (self.folder / "run.log").read_text())

    def follow(self):
        return self.serve("run.json", f"--checkpoint={self.place}", f"--max_batch={BATCH}", "--poll_secs=0.05", "--follow")

    def metric(self, server, name):
        lines = server.ask("GET", "/metrics")[1].splitlines()
        return float(next(line.split()[1] for line in lines if line.startswith(f"dtrain_serve_{name} ")))

    def wait_for_metric(self, server, name, value):
        program.wait_until(lambda: self.metric(server, name) == value, server.story)

    def kill_and_catch_up(self, run, server):
        """The step that was published last, and is served"""
        self.kill(run)
        said = self.published()
        step = (said["deltas"] or [said["checkpoint"]])[-1]["step"]
        self.wait_for_metric(server, "step", step)
        return step

    def assert_serves(self, server, step):
        """What a run says that ends there"""
        self.write_run({"last_step": step, "checkpoint_dir": f"to{step}", "publish": None}, "again.json")
        ended = self.dtrain("--local_ps=1", "--local_workers=2", "again.json")
        self.assertEqual(ended.returncode, 0, ended.stderr)
        wanted = [{key: line[key] for key in ("class", "probability")}
                  for line in self.predict("again.json", f"--checkpoint=to{step}")]
        self.assertEqual(server.post("predict", {"instances": self.instances}, "clicks"), (200, {"predictions": wanted}))

    def assert_exports(self, step):
        """With the deltas of the checkpoint the same as of a run that ended at their step, by assert_serves"""
        said = self.published()
        name = said["checkpoint"]["name"]
        for place, flags in ((f"{self.place}/{name}", ("--delta",)), (f"to{step}", ())):
            printed = self.run_ok("export", f"--checkpoint={place}", "--format=c", f"--out=out{len(flags)}", *flags, "run.json")
            self.assertIn(f"step {step}", printed)
            for table in ("tag", "pairs"):
                self.run_ok("checkpoint", "rows", *flags, place, f"{table}/embedding_weights", f"{table}{len(flags)}.tsv")
        self.assertIn(f"with {len(said['deltas'])} deltas", self.run_ok(
            "export", f"--checkpoint={self.place}/{name}", "--format=saved_model", "--out=model", "--delta", "run.json"))
        self.assertTrue((self.folder / "model" / str(step)).is_dir())
        self.assertEqual((self.folder / "out0/clicks.c").read_text(), (self.folder / "out1/clicks.c").read_text())
        for table in ("tag", "pairs"):
            self.assertEqual(*(sorted((self.folder / f"{table}{i}.tsv").read_text().splitlines()) for i in (0, 1)))


class Fresh(Publishing):
    def test_it_is_of_one_step_in_every_life_of_the_run(self):
        run = self.begin()
        self.wait_for_deltas(run, 1)
        server = self.follow()
        self.wait_for_deltas(run, 3)
        step = self.kill_and_catch_up(run, server)
        self.assert_serves(server, step)
        self.assert_exports(step)
        self.assertGreater(self.metric(server, "deltas_total"), 0)
        self.assertEqual(self.metric(server, "deltas_lost_total"), 0)
        before = self.published()["checkpoint"]["step"]
        run = self.begin()  # from the checkpoint, an older step
        self.wait_for_deltas(run, 2, before)
        step = self.kill_and_catch_up(run, server)
        self.assert_serves(server, step)
        self.assertEqual(self.metric(server, "deltas_lost_total"), 0)
        self.assertEqual(server.end(), 0)

    def test_one_that_is_lost(self):
        run = self.begin()
        self.wait_for_deltas(run, 3)
        self.kill(run)
        said = self.published()
        lost = self.folder / "life" / f"{said['deltas'][1]['name']}.index"
        lost.write_bytes(lost.read_bytes()[:-1] + b"x")
        server = self.follow()
        self.wait_for_metric(server, "deltas_lost_total", 1)
        self.assertEqual(self.metric(server, "step"), said["deltas"][0]["step"])
        self.assert_serves(server, said["deltas"][0]["step"])
        self.assertIn("is not what published.json says", server.story())
        run = self.begin()
        self.wait_for_deltas(run, 1, said["checkpoint"]["step"])
        step = self.kill_and_catch_up(run, server)
        self.assert_serves(server, step)
        self.assertEqual(self.metric(server, "deltas_lost_total"), 1)
        for wrong in ("{", "[]", '{"checkpoint": {}, "deltas": []}'):
            (self.folder / "life" / "published.json").write_text(wrong)
            self.assertEqual(server.post("predict", {"instances": self.instances}, "clicks")[0], 200)
        self.assertEqual(server.end(), 0)

    def publish_to(self, place):
        self.place = place
        self.write_run({"publish": {"every_secs": 0.1, "to": place}}, "run.json")

    def test_another_folder(self):
        """Who serves needs that folder alone; it comes again where somebody removes it."""
        self.publish_to("for/servers")
        run = self.begin()
        self.wait_for_deltas(run, 1)
        server = self.follow()
        self.assert_serves(server, self.kill_and_catch_up(run, server))
        self.assertFalse(list((self.folder / "life").glob("*delta*")) + list((self.folder / "life").glob("published.json")))
        before = self.published()["checkpoint"]["step"]
        run = self.begin()
        self.wait_for_deltas(run, 1, before)
        os.rename(self.folder / "for", self.folder / "gone")  # at once, whatever is written there meanwhile
        program.wait_until(lambda: run.poll() is not None or list((self.folder / self.place).glob("model.ckpt*-*[0-9].index")),
                           (self.folder / "run.log").read_text)
        self.wait_for_deltas(run, 1)
        self.assert_serves(server, self.kill_and_catch_up(run, server))
        left = {path.name.split(".data")[0].removesuffix(".index") for path in (self.folder / self.place).glob("model*")}
        self.assertLessEqual(len([name for name in left if "delta" not in name]), 3, left)
        self.assertEqual(server.end(), 0)

    @unittest.skipUnless(os.access("/dev/shm", os.W_OK), "no /dev/shm here")
    def test_another_file_system(self):
        with tempfile.TemporaryDirectory(dir="/dev/shm") as place:
            if os.stat(place).st_dev == os.stat(self.folder).st_dev:
                self.skipTest("/dev/shm is the file system of this test, too")
            self.publish_to(place)
            run = self.begin()
            self.wait_for_deltas(run, 2)
            server = self.follow()
            self.assert_serves(server, self.kill_and_catch_up(run, server))
            self.assertEqual(server.end(), 0)

    def test_another_folder_that_cannot_be(self):
        (self.folder / "file").write_text("")
        for place, code, words in (("life", 2, "train.publish.to: life: is train.checkpoint_dir"), ("./life/", 2, "is train.checkpoint_dir"),
                                   ("file/within", 1, "train.publish.to: "), ("", 2, "train.publish.to: expected a path")):
            self.write_run({"publish": {"to": place}}, "run.json")
            ended = self.dtrain("--local_ps=1", "--local_workers=1", "run.json")
            self.assertEqual(ended.returncode, code)
            self.assertIn(words, ended.stderr)

    def test_there_is_a_folder_for_it(self):
        self.write_run({"checkpoint_dir": None}, "run.json")
        self.assertIn("train.publish: needs train.checkpoint_dir", self.run_bad("check", "run.json"))

    def test_averages(self):
        """What is served of a run with averages of its variables is them, in deltas as in checkpoints."""
        self.SPEC = {**self.SPEC, "average_decay": 0.9}
        self.write_run({}, "run.json")
        run = self.begin()
        self.wait_for_deltas(run, 1)
        server = self.follow()
        step = self.kill_and_catch_up(run, server)
        self.assert_serves(server, step)
        self.assert_exports(step)
        self.run_ok("export", f"--checkpoint=to{step}", "--format=c", "--out=raw", "--set", "train.average_decay=0", "run.json")
        self.assertNotEqual((self.folder / "raw/clicks.c").read_text(), (self.folder / "out0/clicks.c").read_text())
        self.assertEqual(self.metric(server, "deltas_lost_total"), 0)
        self.assertEqual(server.end(), 0)

    def test_many_requests_meanwhile(self):
        """Rows of a request that is computed in several batches are all of one step."""
        run = self.begin()
        self.wait_for_deltas(run, 1)
        server = self.serve("run.json", "--checkpoint=life", "--max_batch=4", "--poll_secs=0.05", "--follow")
        while self.metric(server, "deltas_total") < 3:
            status, said = server.post("predict", {"instances": self.instances[:1] * 30}, "clicks")
            self.assertEqual(status, 200, said)
            values = [one["probability"] for one in said["predictions"]]
            self.assertLess(max(values) - min(values), 1e-6)
        self.kill(run)
        self.assertEqual(server.end(), 0)


if __name__ == "__main__":
    program.main()
