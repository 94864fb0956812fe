"""Specs and checkpoints behind URLs: read by every command that reads them, written by runs."""
import itertools
import json
import re
import subprocess
import threading
import urllib.parse

import program
import read_test
import server

SPEC = {
    "name": "urls",
    "data": {"train": {"format": "csv", "file": "rows.csv", "label": "y", "except": ["word"]}, "batch_size": 20},
    "model": [{"op": "dense", "name": "hidden", "units": 300}, {"op": "dense", "name": "logits", "units": 2}],
    "loss": "softmax_cross_entropy",
    "metrics": ["accuracy"],
    "optimizer": {"type": "adam", "learning_rate": 0.01},
    "train": {"last_step": 40, "checkpoint_dir": "run", "save_checkpoint_steps": 10},
}


class CheckpointCase(read_test.UrlCase):
    def setUp(self):
        super().setUp()
        self.served = self.start()
        (self.folder / "rows.csv").write_bytes(read_test.rows(500))
        self.write_spec(self.spec())

    def start(self):
        return self.serve(keys={"AKID": read_test.SECRET}, is_s3=True)

    @staticmethod
    def spec(**changes):
        spec = program.changed(SPEC, {"data.eval": SPEC["data"]["train"]})
        return program.changed(spec, changes)

    def write_spec(self, spec):
        (self.folder / "spec.json").write_text(json.dumps(spec))

    def dtrain(self, *words, code=0, env=None):
        done = program.run(words, self.folder, env=self.env(self.served, **(env or {})))
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertNotIn(read_test.SECRET, done.stdout + done.stderr)
        return done.stderr if code else done.stdout

    def upload(self, folder="run"):
        for path in (self.folder / folder).rglob("*"):
            if path.is_file():
                self.served.files[f"/bucket/{path.relative_to(self.folder)}"] = path.read_bytes()


class Reads(CheckpointCase):
    def setUp(self):
        super().setUp()
        self.dtrain("spec.json")
        self.upload()

    def test_checkpoints_are_looked_at(self):
        here = json.loads(self.dtrain("checkpoint", "ls", "--json", "run"))["checkpoints"]
        there = json.loads(self.dtrain("checkpoint", "ls", "--json", "s3://bucket/run"))["checkpoints"]
        self.assertEqual([row["checkpoint"].replace("s3://bucket/", "") for row in there],
                         [row["checkpoint"][len(str(self.folder)) + 1:] if row["checkpoint"][0] == "/"
                          else row["checkpoint"] for row in here])
        self.assertEqual([row["bytes"] for row in there], [row["bytes"] for row in here])
        self.assertIn("model.ckpt-40, newest", self.dtrain("checkpoint", "ls", "s3://bucket/run/"))
        for path in ("s3://bucket/run", "s3://bucket/run/model.ckpt-40", "s3://bucket/run/model.ckpt-40.index"):
            self.assertIn("hidden/kernel", self.dtrain("checkpoint", "show", path))
        self.dtrain("checkpoint", "verify", "s3://bucket/run")
        self.assertEqual(self.dtrain("checkpoint", "diff", "s3://bucket/run", "run"),
                         self.dtrain("checkpoint", "diff", "run", "run"))

    def test_what_is_not_there_or_not_answered_is_said(self):
        said = self.dtrain("checkpoint", "show", "s3://bucket/none", code=program.BAD_INPUT)
        self.assertIn("s3://bucket/none: no checkpoint there", said)
        self.served.fault = lambda number, _: 503
        said = self.dtrain("checkpoint", "show", "s3://bucket/run", code=program.BAD_HOST,
                           env={"DTRAIN_URL_TRIES": "1"})
        self.assertIn("503", said)
        said = self.dtrain("check", "--restart_timeout=3", "--set=train.checkpoint_dir=s3://bucket/run", "spec.json",
                           code=program.BAD_HOST, env={"DTRAIN_URL_TRIES": "1"})
        self.assertIn("503", said)
        self.assertNotIn("tries again", said)  # no job waits for it

    def test_of_a_list_only_what_was_asked_for_is_looked_at(self):
        said = self.dtrain("checkpoint", "ls", "s3://bucket/run")
        self.served.stray_keys = ["r", "other/model.ckpt-50.index", "x" * 20]
        self.assertEqual(self.dtrain("checkpoint", "ls", "s3://bucket/run"), said)

    def test_a_slip_among_the_keys_is_no_absent_checkpoint(self):
        said = self.dtrain("checkpoint", "show", "s3://bucket/run", code=program.BAD_INPUT,
                           env={"AWS_SECRET_ACCESS_KEY": ""})
        self.assertIn("only the first is there", said)

    def test_eval_and_predict_and_warm_start(self):
        self.assertEqual(self.dtrain("eval", "--checkpoint=s3://bucket/run", "spec.json").split()[:8],
                         self.dtrain("eval", "--checkpoint=run", "spec.json").split()[:8])
        self.assertEqual(self.dtrain("predict", "--checkpoint=s3://bucket/run", "--out=-", "spec.json"),
                         self.dtrain("predict", "--checkpoint=run", "--out=-", "spec.json"))
        warm = {"train.checkpoint_dir": None, "train.save_checkpoint_steps": None, "train.last_step": 1}
        values = []
        for place in ("s3://bucket/run", str(self.folder / "run")):
            self.write_spec(self.spec(**warm, **{"train.warm_start": {"checkpoint": place}}))
            done = program.run(["spec.json"], self.folder, env=self.env(self.served))
            self.assertEqual(done.returncode, 0, done.stderr)
            values.append(re.findall(r"loss [\d.]+", done.stderr))
        self.assertEqual(values[0], values[1])

    def test_a_spec_behind_a_url_has_its_data_beside_it(self):
        self.served.files["/bucket/d/spec.json"] = json.dumps(self.spec(**{"train.last_step": 50})).encode()
        self.served.files["/bucket/d/rows.csv"] = (self.folder / "rows.csv").read_bytes()
        (self.folder / "rows.csv").unlink()
        self.dtrain("s3://bucket/d/spec.json")
        self.assertIn("model.ckpt-50, newest", self.dtrain("checkpoint", "ls", "run"))
        self.served.files["/bucket/d/broken.json"] = b"{,"
        self.assertIn("s3://bucket/d/broken.json: line 1", self.dtrain("s3://bucket/d/broken.json",
                                                                       code=program.BAD_INPUT))
        said = self.dtrain("s3://bucket/d/none.json", code=program.BAD_INPUT)
        self.assertIn("dtrain: s3://bucket/d/none.json: GET 404", said)


class Runs:
    """Runs whose folder is in a bucket of a server, of whatever kind."""

    bucket = "s3://bucket"
    writes_min = 10
    tables = ((60, False, 1), (20000, False, 1), (60, True, 1), (20000, True, 1), (60, True, 1000))  # buckets, grows, admit
    kill_every = 1  # so many writes: what a service alone does is in some of them

    @staticmethod
    def is_write(request):
        return request.command != "GET"

    def setUp(self):
        super().setUp()
        self.verified = set()
        self.write_spec(self.spec(**{"train.checkpoint_dir": self.bucket + "/run"}))

    def names(self, folder="run"):
        beginning = f"/bucket/{folder}/"
        return sorted(path[len(beginning):] for path in self.served.files if path.startswith(beginning))

    def run_dtrain(self, *words, env=None):
        done = program.run([*words, "spec.json"], self.folder, env=self.env(self.served, **(env or {})))
        self.assertNotIn(read_test.SECRET, done.stdout + done.stderr)
        return done

    def newest(self):
        found = re.search(r'model_checkpoint_path: "(.*)"', self.served.files["/bucket/run/checkpoint"].decode())
        return found[1]

    def verify(self, name):
        """The same bytes once."""
        files = frozenset((path, data) for path, data in self.served.files.items() if f"/run/{name}." in path)
        if files not in self.verified:
            self.dtrain("checkpoint", "verify", f"{self.bucket}/run/{name}")
            self.verified.add(files)

    def assert_whole(self, was_killed=False):
        """The state file names the checkpoints that are there, all of which are whole; and there is nothing else.
        After a kill it may name what is gone but for the newest, until the next checkpoint comes."""
        state = self.served.files["/bucket/run/checkpoint"].decode()
        named = re.findall(r'all_model_checkpoint_paths: "(.*)"', state)
        there = [name[:-len(".index")] for name in self.names() if name.endswith(".index")]
        self.assertIn(named[-1], there)
        if not was_killed:
            self.assertEqual(sorted(named), there)
        for name in there:
            self.verify(name)
        pattern = r"checkpoint|\.ended|(?:measured|last_spec)\.json|.*tfevents.*|(" + "|".join(named) + r")\.(index|data-\d{5}-of-\d{5})"
        self.assertEqual([name for name in self.names() if not re.fullmatch(pattern, name)], [])
        self.assertEqual(self.served.uploads, {})
        return named

    def test_a_run_saves_goes_on_and_lets_go(self):
        tasks = ["--local_ps=2", "--local_workers=1"]
        for last_step, more in ((40, []), (60, tasks), (80, tasks), (100, [])):
            done = self.run_dtrain("--set", "train.keep_checkpoint_max=2", "--set", f"train.last_step={last_step}",
                                   *more)
            self.assertEqual(done.returncode, 0, done.stderr)
            named = self.assert_whole()
            self.assertEqual(named[-1], f"model.ckpt-{last_step}")
            self.assertLessEqual(len(named), 2)
        here = self.dtrain("eval", f"--checkpoint={self.bucket}/run", "spec.json")
        (self.folder / "copy").mkdir()
        for name in self.names():
            (self.folder / "copy" / name).parent.mkdir(exist_ok=True)
            (self.folder / "copy" / name).write_bytes(self.served.files[f"/bucket/run/{name}"])
        self.assertEqual(self.dtrain("eval", "--checkpoint=copy", "spec.json").split()[:8], here.split()[:8])

    @staticmethod
    def export(form, out):
        return ["export", "spec.json", "--checkpoint=here", f"--format={form}", f"--out={out}"]

    def test_an_export_is_whole_or_is_not_there(self):
        self.write_spec(self.spec(**{"train.checkpoint_dir": "here"}))
        self.dtrain("spec.json")
        for form, last in (("c", "urls.h"), ("onnx", "urls.onnx"), ("saved_model", "40/saved_model.pb")):
            there = self.export(form, f"{self.bucket}/{form}")
            self.dtrain(*self.export(form, form))
            here = {str(path.relative_to(self.folder / form)): path.read_bytes()
                    for path in (self.folder / form).rglob("*") if path.is_file()}
            first = len(self.served.asked)
            self.assertIn(f"{self.bucket}/{form}/", self.dtrain(*there[:-1], there[-1] + "/"))
            self.assertEqual({name: self.served.files[f"/bucket/{form}/{name}"] for name in self.names(form)}, here)
            for k in range(len(self.served.asked) - first):  # all is refused from there on
                self.served.files.clear()
                begun = itertools.count()
                self.served.fault = lambda *_, begun=begun, k=k: 403 if next(begun) >= k else None
                done = program.run(there, self.folder, env=self.env(self.served))
                self.served.fault = lambda *_: None
                self.assertIn(done.returncode, (program.BAD_HOST, program.BAD_INPUT))
                self.assertIn(f"/{form}/", done.stderr)
                self.assertIn("403", done.stderr)
                self.assertNotIn(last, self.names(form))
                self.assertEqual([name for name in self.names(form)
                                  if self.served.files[f"/bucket/{form}/{name}"] != here.get(name) and ".tempstate" not in name], [])
            self.dtrain(*there)  # what could not be removed before may stay
            self.assertEqual([name for name in self.names(form) if ".tempstate" not in name], sorted(here))
        self.assertIn("this version is there already", self.dtrain(*there, code=program.BAD_INPUT))
        said = self.dtrain(*self.export("c", "http://127.0.0.1:1/x"), code=program.BAD_INPUT)
        self.assertIn("nothing can be written there", said)

    def loss_of(self, folder):
        return float(re.search(r"loss (\S+?),", self.dtrain("eval", f"--checkpoint={folder}", "spec.json"))[1])

    def test_the_best_are_kept_and_the_last_gets_their_values(self):
        words = ["--set", "train.keep_best=2", "--set", "train.restore_best=true", "--set", "train.evaluate_every_steps=10",
                 "--set", "train.keep_checkpoint_max=1", "--set", "optimizer.learning_rate=0.3"]
        for more in ([], ["--local_ps=2", "--local_workers=1"]):
            with self.subTest(more):
                self.served.files.clear()
                done = self.run_dtrain(*words, *more)
                self.assertEqual(done.returncode, 0, done.stderr)
                best = json.loads(self.served.files["/bucket/run/best/best.json"])["best"]
                self.assertEqual([one["value"] for one in best], sorted(one["value"] for one in best))
                for one in best:
                    self.assertAlmostEqual(self.loss_of(f"{self.bucket}/run/best/{one['checkpoint']}"), one["value"], 4)
                self.assertAlmostEqual(self.loss_of(f"{self.bucket}/run"), best[0]["value"], 4)
                kept = {name.rpartition("/")[2].partition(".data")[0].removesuffix(".index")
                        for name in self.served.files if "/best/model" in name}
                self.assertEqual(kept, {one["checkpoint"] for one in best})
                self.assertEqual([name for name in self.served.files if "lease" in name], [])
                self.assertEqual(self.served.uploads, {})

    def test_tables_are_the_same_bytes_as_here_and_are_restored(self):
        """Fixed and growing ones, less than a stretch with their slots and more than one of each, and no row at all."""
        for buckets, grows, admit in self.tables:
            column = {"column": "identity", "name": "c1"} | ({} if grows else {"buckets": buckets})
            table = {"op": "embedding", "name": "c1_embedding", "inputs": ["c1"], "dimension": 16} | (
                {"capacity": "dynamic", "admit_after": admit} if grows else {})
            data = {"train": {"format": "clicks", "rows": 12000, "buckets": buckets}, "columns": [column], "batch_size": 600}
            changes = {"data": data, "model": [table, {"op": "dense", "name": "logits", "units": 1}], "metrics": [],
                       "loss": "sigmoid_cross_entropy", "optimizer.type": "adagrad", "train.save_checkpoint_steps": None,
                       "train.keep_checkpoint_max": 1}
            name = f"t{buckets}-{grows}-{admit}"
            with self.subTest(name):
                for last_step in 10, 20:
                    for folder in name, f"{self.bucket}/{name}":
                        self.write_spec(program.changed(SPEC, {**changes, "train.checkpoint_dir": folder,
                                                               "train.last_step": last_step}))
                        done = self.run_dtrain()
                        self.assertEqual(done.returncode, 0, done.stderr)
                    data = f"model.ckpt-{last_step}.data-00000-of-00001"
                    self.assertEqual(self.served.files[f"/bucket/{name}/{data}"], (self.folder / name / data).read_bytes())

    def test_what_is_published_lies_on_either_side_of_a_url(self):
        self.dtrain("spec.json", "--set", "train.checkpoint_dir=other")
        wanted = self.dtrain("checkpoint", "diff", "other", "other")
        for place, to in ((f"{self.bucket}/run", "servers"), ("run", f"{self.bucket}/servers")):
            said = self.dtrain("spec.json", "--set", f"train.checkpoint_dir={place}", "--set", "train.publish.every_secs=60",
                               "--set", f"train.publish.to={to}")
            self.assertNotIn("WARNING", said)
            self.dtrain("checkpoint", "verify", to)
            self.assertEqual(self.dtrain("checkpoint", "diff", "other", to), wanted)

    @staticmethod
    def is_of_servers(request):
        """A checkpoint's file, in the path or, while it is written to gs, among its parameters"""
        return "servers/model" in urllib.parse.unquote(request.path)

    def servers(self):
        return self.spec(**{"train.checkpoint_dir": "run", "train.publish": {"every_secs": 60, "to": f"{self.bucket}/servers"}})

    def test_how_long_a_copy_takes_is_no_part_of_a_checkpoint(self):
        """Checkpoints come while it is under way, and the end waits for the last one's."""
        is_back = threading.Event()
        self.served.fault = lambda _, request: None if is_back.is_set() or not self.is_of_servers(request) else is_back
        self.write_spec(self.servers())
        with open(self.folder / "log", "w+", encoding="utf-8") as log:
            process = subprocess.Popen([program.BINARY, "--set", "train.keep_checkpoint_max=1", "spec.json"], cwd=self.folder,
                                       stdout=log, stderr=log, env=program.environment(self.env(self.served)))
            try:
                text = (self.folder / "log").read_text
                program.wait_until(lambda: "run/model.ckpt-40 in" in text() or process.poll() is not None, text)
                self.assertIsNone(process.poll(), text())
                is_back.set()
                self.assertEqual(process.wait(program.LIMIT_S), 0, text())
            finally:
                is_back.set()
                process.kill()
                process.wait()
        self.assertNotIn("WARNING", text())
        self.assertEqual(self.dtrain("checkpoint", "diff", "run", f"{self.bucket}/servers"), self.dtrain("checkpoint", "diff", "run", "run"))

    def test_what_is_not_copied_is_said(self):
        self.write_spec(self.servers())
        self.served.fault = lambda _, request: 503 if self.is_of_servers(request) else None
        done = self.run_dtrain("--publish_timeout=3", env={"DTRAIN_URL_TRIES": "1"})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stderr, r"WARNING: train.publish: model.ckpt-40 is not copied to .*/servers: to: .*")
        self.assertIn("of 3 s (--publish_timeout)", done.stderr)
        self.served.fault = lambda *_: None
        self.dtrain("checkpoint", "verify", "run")

    def test_the_best_is_what_servers_have(self):
        best = {"train.keep_best": 2, "train.restore_best": True, "train.evaluate_every_steps": 1000}
        for to in (f"{self.bucket}/servers", "servers", None):
            with self.subTest(to):
                self.write_spec(program.changed(self.servers(), {**best, "train.publish.to": to, "train.checkpoint_dir": f"of{to is None}{to == 'servers'}"}))
                self.dtrain("spec.json", "--set", "train.last_step=5")
                done = self.run_dtrain("--set", "optimizer.learning_rate=30", "--set", "train.last_step=10")
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn("has the values of the best now", done.stderr)
                run = json.loads((self.folder / "spec.json").read_text())["train"]["checkpoint_dir"]
                self.assertEqual(self.dtrain("checkpoint", "diff", run, to or run), self.dtrain("checkpoint", "diff", run, run))
                said = json.loads(self.served.files["/bucket/servers/published.json"] if to and "//" in to
                                  else (self.folder / (to or run) / "published.json").read_bytes())
                newest = re.search(r"(model.ckpt-\d+), newest", self.dtrain("checkpoint", "ls", to or run))
                self.assertEqual((said["checkpoint"]["name"], said["deltas"]), (newest[1], []))

    def test_training_goes_on_while_the_storage_does_not_answer(self):
        """Neither saves nor summaries nor copies of the best hold it up, and the last checkpoint is waited for."""
        is_back = threading.Event()
        self.served.fault = lambda *_: None if is_back.is_set() or "/bucket/run/checkpoint" not in self.served.files \
            else is_back
        words = ["--set", "train.save_summaries_steps=1", "--set", "train.log_every_steps=1",
                 "--set", "train.keep_best=1", "--set", "train.evaluate_every_steps=5", "spec.json"]
        with open(self.folder / "log", "w+", encoding="utf-8") as log:
            process = subprocess.Popen([program.BINARY, *words], cwd=self.folder, stdout=log, stderr=log,
                                       env=program.environment(self.env(self.served)))
            try:
                text = (self.folder / "log").read_text
                program.wait_until(lambda: "step 40 of 40" in text() or process.poll() is not None, text)
                self.assertIsNone(process.poll(), text())
                is_back.set()
                self.assertEqual(process.wait(program.LIMIT_S), 0, text())
            finally:
                is_back.set()
                process.kill()
                process.wait()
        self.served.uploads.clear()  # whose answers did not come
        self.assertEqual(self.newest(), "model.ckpt-40")
        self.assertIn("/bucket/run/best/best.json", self.served.files)

    def test_a_lease_that_nobody_can_see_holds_its_checkpoint(self):
        steps = ("--set", "train.keep_checkpoint_max=1", "--set", "train.last_step=5")
        self.assertEqual(self.run_dtrain(*steps).returncode, 0)
        lease = "/bucket/run/.lease-model.ckpt-5.evaluator"
        self.served.files[lease] = b""
        self.served.fault = lambda _, request: 503 if ".lease" in request.path and request.command != "PUT" else None
        few = {"DTRAIN_URL_TRIES": "2"}
        self.assertEqual(self.run_dtrain(*steps[:-1], "train.last_step=8", env=few).returncode, 0)
        self.served.fault = lambda *_: None
        self.assertIn(lease, self.served.files)
        self.dtrain("checkpoint", "verify", f"{self.bucket}/run/model.ckpt-5")

    def test_a_kill_at_any_write_leaves_whole_checkpoints(self):
        first = ("--set", "train.last_step=5", "--set", "train.keep_checkpoint_max=1")
        self.assertEqual(self.run_dtrain(*first).returncode, 0)
        before = dict(self.served.files)
        number, is_killed = 0, True
        while is_killed:
            self.served.files, self.served.uploads = dict(before), {}
            is_killed = self.run_killed(number)
            number += self.kill_every
            if is_killed:  # as the kill left it
                newest = self.newest()
                self.assertIn(newest, ("model.ckpt-5", "model.ckpt-10"), number)
                self.verify(newest)
        self.assertGreater(number, self.writes_min)
        self.assertEqual(self.assert_whole(), ["model.ckpt-10"])

    def run_killed(self, number):
        """Killed when the write of this number was done, which is also before the next one; then started again, which must
        go well. False: there were fewer writes."""
        writes = itertools.count()
        words = ["--set", "train.last_step=10", "--set", "train.keep_checkpoint_max=1", "--set",
                 "train.save_checkpoint_steps=1000", "spec.json"]
        has_come = threading.Event()

        def fault(_, request):
            if has_come.is_set():
                return "drop"
            if not self.is_write(request) or next(writes) < number:
                return None
            has_come.set()
            return "drop after"
        self.served.fault = fault
        process = subprocess.Popen([program.BINARY, *words], cwd=self.folder, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL, env=program.environment(self.env(self.served)))
        program.wait_until(lambda: has_come.is_set() or process.poll() is not None, lambda: "a request, or the end")
        with self.served.lock:  # the write is done
            process.kill()
        is_killed = process.wait(program.LIMIT_S) != 0
        self.served.fault = lambda *_: None
        if is_killed:
            killed = dict(self.served.files)
            done = self.run_dtrain(*words[:-1])
            self.assertEqual(done.returncode, 0, done.stderr)
            self.served.uploads.clear()  # of the killed one, which a bucket's rule removes
            self.assertIn(self.assert_whole(True)[-1], ("model.ckpt-10", "model.ckpt-010"))  # it was saved again
            self.served.files = killed
        return is_killed


class Writes(Runs, CheckpointCase):
    """What S3 alone is asked for."""

    def test_summaries_and_results(self):
        result = "s3://bucket/out/result.json"
        done = self.run_dtrain("--set", "train.summary_dir=s3://bucket/events", "--set",
                               "train.save_summaries_steps=5", f"--result={result}")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(json.loads(self.served.files["/bucket/out/result.json"])["step"], 40)
        for name in self.names("events"):
            (self.folder / "events" / name).parent.mkdir(exist_ok=True, parents=True)
            (self.folder / "events" / name).write_bytes(self.served.files[f"/bucket/events/{name}"])
        self.dtrain("plot", "events")
        self.dtrain("eval", "--checkpoint=s3://bucket/run", "--result=s3://bucket/out/eval.json", "spec.json")
        self.assertEqual(json.loads(self.served.files["/bucket/out/eval.json"])["step"], 40)
        self.dtrain("predict", "--checkpoint=s3://bucket/run", "--out=s3://bucket/out/rows.csv", "spec.json")
        self.assertEqual(self.served.files["/bucket/out/rows.csv"].count(b"\n"), 501)
        said = self.dtrain("--result=http://127.0.0.1/x.json", "spec.json", code=program.BAD_INPUT)
        self.assertIn("nothing can be written behind such a URL", said)
        self.served.fault = lambda number, request: 403 if "/out/" in request.path else None
        said = self.dtrain("eval", "--checkpoint=s3://bucket/run", f"--result={result}", "spec.json",
                           code=program.BAD_HOST)
        self.assertIn(f"--result={result}: PUT 403", said)

    def test_a_bucket_that_cannot_be_written_is_told_at_once(self):
        self.served.fault = lambda number, request: 403 if request.command == "PUT" else None
        said = self.dtrain("spec.json", code=program.BAD_INPUT)
        self.assertIn("train.checkpoint_dir: s3://bucket/run/.writable: PUT 403", said)
        self.write_spec(self.spec(**{"train.checkpoint_dir": self.served.url + "/run"}))
        self.assertIn("nothing can be written there", self.dtrain("spec.json", code=program.BAD_INPUT))

    def test_who_may_not_list_the_folder_saves_there(self):
        """Names are known without. What would have to be looked for stays: older checkpoints, as nobody sees their leases."""
        keeps = ["--set", "train.keep_checkpoint_max=1", "--save_timeout=20"]
        self.assertEqual(self.run_dtrain().returncode, 0)
        self.served.fault = lambda number, request: 403 if "list-type" in request.path else None
        for last_step, tasks in ((50, []), (60, ["--local_ps=2", "--local_workers=1"])):
            done = self.run_dtrain("--set", f"train.last_step={last_step}", *keeps, *tasks)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(self.newest(), f"model.ckpt-{last_step}")
        self.served.fault = lambda *_: None
        self.assertEqual([name for name in self.names() if "_temp_" in name], [])
        self.assertEqual(self.assert_whole()[-1], "model.ckpt-60")

    def test_large_shards_are_sent_in_parts(self):
        wide = [{**SPEC["model"][0], "units": 1500}, {"op": "dense", "name": "more", "units": 1500}, SPEC["model"][1]]
        self.write_spec(self.spec(**{"train.checkpoint_dir": "s3://bucket/run", "model": wide, "train.last_step": 4,
                                     "train.save_checkpoint_steps": None}))
        self.served.fault = server.some(lambda number, _: (None, "drop", None, "drop after", None, 503)[number % 6])
        done = self.run_dtrain()
        self.assertEqual(done.returncode, 0, done.stderr)
        self.served.fault = lambda number, _: None
        self.assertGreater(self.served.count("PUT .*partNumber=3"), 0)
        self.served.uploads.clear()  # begun, but the answer was lost: a bucket's rule removes such
        self.assertEqual(self.assert_whole()[-1], "model.ckpt-4")

    def test_a_store_that_fails_now_and_then_is_named(self):
        self.served.fault = server.some(lambda number, _: 503 if number % 4 == 0 else None)
        done = self.run_dtrain("--result=result.json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stderr, "asks again: s3://bucket/run.*503")
        told = json.loads((self.folder / "result.json").read_text())["tasks"]
        self.assertGreater(min(task["counters"]["retries_total"] for task in told), 0)
        (self.folder / "run.log").write_text(done.stderr)
        why = json.loads(program.run(["why", "--json", "result.json", "run.log"], self.folder).stdout)["findings"]
        said = {one["rule"]: one["text"] for one in why}
        self.assertIn("had to ask storage or the coordinator again", said["retries"])
        self.assertIn("storage failed or was late, and was asked again", said["lines"])

    def test_an_end_that_was_not_heard_of_is_one(self):
        wide = [{**SPEC["model"][0], "units": 1500}, {"op": "dense", "name": "more", "units": 1500}, SPEC["model"][1]]
        self.write_spec(self.spec(**{"train.checkpoint_dir": "s3://bucket/run", "model": wide, "train.last_step": 1,
                                     "train.save_checkpoint_steps": None}))
        self.served.fault = lambda number, request: "drop after" if request.command == "POST" \
            and "uploadId" in request.path and request.path not in [path for _, path, _ in self.served.asked[:-1]] else None
        done = self.run_dtrain()
        self.assertEqual(done.returncode, 0, done.stderr)
        self.served.fault = lambda *_: None
        self.assertEqual(self.assert_whole()[-1], "model.ckpt-1")

    def test_parts_that_the_server_fails_to_put_together_are_tried_again(self):
        wide = [{**SPEC["model"][0], "units": 1500}, {"op": "dense", "name": "more", "units": 1500}, SPEC["model"][1]]
        self.write_spec(self.spec(**{"train.checkpoint_dir": "s3://bucket/run", "model": wide, "train.last_step": 1,
                                     "train.save_checkpoint_steps": None}))

        def fails(times):
            number = itertools.count()
            return lambda _, request: "error inside" if request.command == "POST" and "uploadId" in request.path \
                and next(number) < times else None
        self.served.fault = fails(2)
        done = self.run_dtrain()
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.assert_whole()[-1], "model.ckpt-1")
        self.served.fault = fails(1000)
        done = self.run_dtrain("--save_timeout=10", "--set", "train.last_step=2", env={"DTRAIN_URL_TRIES": "2"})
        self.assertEqual(done.returncode, 129, done.stderr)
        self.assertIn("ERROR: the last checkpoint failed for 10 s (--save_timeout): ", done.stderr)
        self.assertIn("POST 200", done.stderr)
        self.assertIn("try again", done.stderr)
        self.served.fault = lambda *_: None
        self.served.files.pop("/bucket/run/.token", None)  # who could not save to its end does not wait to remove it
        self.assertEqual(self.assert_whole()[-1], "model.ckpt-1")


if __name__ == "__main__":
    program.main()
