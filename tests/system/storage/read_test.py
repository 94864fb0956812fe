"""Data behind URLs: what is read is what lies there, whatever the server does in between, and what is said where it
cannot be read."""
import gzip
import http.server
import json
import random
import re
import signal
import threading
import time
import unittest.mock
import urllib.parse

import program
import server
from program import commands

SPEC = {
    "name": "urls",
    "data": {"train": {"format": "csv", "file": "rows.csv", "label": "y"}, "batch_size": 20},
    "model": [{"op": "dense", "name": "logits", "units": 2}],
    "loss": "softmax_cross_entropy",
    "optimizer": {"type": "adam", "learning_rate": 0.01},
    "train": {"last_step": 300},
}
COLUMNS = [{"column": "numeric", "name": "x"}]
MODEL = [{"op": "dense", "name": "logits", "units": 2, "inputs": ["x"]}]
HEAD_BYTES = 1 << 16  # that tell what a file is
SECRET = "wJalrXUtnFEMI/K7MDENG"


def rows(count, seed=1):
    drawn = random.Random(seed)
    lines = (f"{drawn.random():.6f},{drawn.choice(['red', 'green', 'blue'])},{drawn.randrange(2)}\n"
             for _ in range(count))
    return ("x,word,y\n" + "".join(lines)).encode()


class UrlCase(program.FolderCase):
    def serve(self, **options):
        served = server.Server(**options)
        self.addCleanup(served.stop)
        return served

    def env(self, served, **more):
        """Nothing of the machine's own settings."""
        hidden = {"HOME": str(self.folder), "AWS_SESSION_TOKEN": "", "AWS_PROFILE": "", "AWS_REGION": "eu-north-1",
                  "AWS_ENDPOINT_URL_S3": "", "AWS_ENDPOINT_URL": served.url, "no_proxy": "*",
                  "AWS_ACCESS_KEY_ID": "AKID", "AWS_SECRET_ACCESS_KEY": SECRET,
                  "AWS_SHARED_CREDENTIALS_FILE": "", "AWS_CONFIG_FILE": ""}
        return {**hidden, **more}

    def stats(self, served, spec=None, env=None, code=0, words=()):
        """What `dtrain stats` says of all rows, or what it says where it cannot."""
        (self.folder / "spec.json").write_text(json.dumps({**SPEC, **(spec or {})}))
        done = program.run(["stats", "--json", *words, "spec.json"], self.folder, env=self.env(served, **(env or {})))
        self.assertEqual(done.returncode, code, done.stderr)
        if code == 0:
            return {name: value for name, value in json.loads(done.stdout).items() if name != "data"}
        self.assertNotIn(SECRET, done.stderr + done.stdout)
        return done.stderr

    def train(self, served, changes, env=None, words=()):
        """The losses of a run."""
        spec = program.changed(SPEC, {"data.columns": COLUMNS, "data.shuffle": True, "train.log_every_steps": 50,
                                      "model": MODEL, **changes})
        (self.folder / "spec.json").write_text(json.dumps(spec))
        done = program.run([*words, "spec.json"], self.folder, env=self.env(served, **(env or {})))
        self.assertEqual(done.returncode, 0, done.stderr)
        found = re.findall(r"step \d+ of \d+, loss [\d.]+", done.stderr)
        self.assertGreater(len(found), 3)
        return found


def data(file, **more):
    return {"data": {"train": {"format": "csv", "file": file, "label": "y", **more}, "batch_size": 20}}


class Http(UrlCase):
    def setUp(self):
        super().setUp()
        self.served = self.serve()
        self.table = rows(30000)
        self.served.files["/d/rows.csv"] = self.table
        (self.folder / "rows.csv").write_bytes(self.table)
        self.url = self.served.url + "/d/rows.csv"
        self.expected = self.stats(self.served)

    def test_a_file_is_what_it_is_here(self):
        self.assertEqual(self.stats(self.served, data(self.url)), self.expected)
        self.served.files["/d/rows.csv.gz"] = gzip.compress(self.table)
        self.assertEqual(self.stats(self.served, data(self.url + ".gz")), self.expected)

    def test_a_server_without_ranges_is_read_whole(self):
        plain = self.serve(has_ranges=False, has_tags=False)
        plain.files["/rows.csv"] = self.table
        self.assertEqual(self.stats(plain, data(plain.url + "/rows.csv")), self.expected)

    def test_idx_and_raw_are_read_whole(self):
        pixels, labels = random.Random(2).randbytes(28 * 28 * 500), random.Random(3).randbytes(500)
        labels = bytes(label % 2 for label in labels)
        files = {"f.idx.gz": gzip.compress(b"\0\0\x08\x03" + b"\0\0\x01\xf4" + b"\0\0\0\x1c" * 2 + pixels),
                 "l.idx": b"\0\0\x08\x01" + b"\0\0\x01\xf4" + labels, "f.raw": pixels, "l.raw": labels}
        for name, content in files.items():
            (self.folder / name).write_bytes(content)
            self.served.files["/d/" + name] = content
        idx = {"format": "idx", "features": "f.idx.gz", "labels": "l.idx"}
        raw = {"format": "raw", "file": "f.raw", "shape": [784], "dtype": "uint8", "labels": "l.raw",
               "label_dtype": "uint8"}
        for source in (idx, raw):
            spec = program.changed(SPEC, {"data.train": source, "train.last_step": 60,
                                          "model": [{"op": "flatten"}, *SPEC["model"]]})
            (self.folder / "spec.json").write_text(json.dumps(spec))
            said = [program.run([*words, "spec.json"], self.folder, env=self.env(self.served))
                    for words in ([], [f"--data_dir={self.served.url}/d"])]
            self.assertEqual([done.returncode for done in said], [0, 0], said[1].stderr)
            losses = [re.findall(r"step \d+ of \d+, loss [\d.]+", done.stderr) for done in said]
            self.assertEqual(losses[0], losses[1])
            self.assertTrue(losses[0])

    def test_lists_and_names_in_a_file(self):
        self.served.files["/d/more.csv"] = rows(100, seed=2)
        self.served.files["/d/names.txt"] = b"# both\nrows.csv\nmore.csv\n"
        several = self.stats(self.served, data([self.url, self.served.url + "/d/more.csv"]))
        self.assertEqual(several["rows"], 30100)
        (self.folder / "names.txt").write_text(f"{self.url}\n{self.served.url}/d/more.csv\n")
        self.assertEqual(self.stats(self.served, data("@names.txt")), several)
        (self.folder / "spec.json").write_text(json.dumps({**SPEC, **data("@names.txt")}))
        done = program.run(["stats", "--json", f"--data_dir={self.served.url}/d", "spec.json"], self.folder,
                           env=self.env(self.served))
        self.assertEqual(json.loads(done.stdout)["cells"], several["cells"])

    def test_every_request_may_fail_once(self):
        """Each kind of fault, at every second request, changes nothing."""
        for fault in ("drop", 500, 503, 429, "half a head", "short", "range"):
            with self.subTest(fault=fault):
                self.served.asked.clear()
                self.served.fault = server.some(lambda number, _, fault=fault: fault if number % 2 == 0 else None)
                self.assertEqual(self.stats(self.served, data(self.url)), self.expected)
                self.assertGreater(len(self.served.asked), 3)

    def test_a_fault_that_stays_is_named(self):
        few = {"DTRAIN_URL_TRIES": "2"}
        self.served.fault = lambda number, _: 503
        said = self.stats(self.served, data(self.url), few, code=program.BAD_HOST)
        self.assertIn(f"{self.url}: GET 503 Service Unavailable: asked to fail (2 tries)", said)
        self.served.fault = lambda number, _: "range"
        said = self.stats(self.served, data(self.url), few, code=program.BAD_HOST)
        self.assertIn("asked for 65536 bytes from 0, the answer has 1 to 65535 (2 tries)", said)
        self.served.fault = lambda number, _: "half a head"
        said = self.stats(self.served, data(self.url), few, code=program.BAD_HOST)
        self.assertIn("the answer ends before its headers do (2 tries)", said)
        self.served.fault = lambda number, _: "size"
        said = self.stats(self.served, data(self.url), few, code=program.BAD_HOST)
        self.assertIn("supports range requests but does not say how large the file is", said)
        self.served.fault = lambda number, _: "silence"
        said = self.stats(self.served, data(self.url), {"DTRAIN_URL_TRIES": "1", "DTRAIN_URL_TIMEOUT": "1"},
                          code=program.BAD_HOST)
        self.assertIn("(1 try)", said)
        self.assertIn("Operation too slow", said)

    def test_what_is_not_there_is_named(self):
        missing = self.served.url + "/d/none.csv"
        self.assertIn(f"{missing}: GET 404 Not Found: The specified key does not exist.",
                      self.stats(self.served, data(missing), code=program.BAD_INPUT))
        self.assertIn("none*.csv: GET 404", self.stats(self.served, data(self.served.url + "/none*.csv"), code=program.BAD_INPUT))
        said = self.stats(self.served, data("gopher://host/rows.csv"), code=program.BAD_INPUT)
        self.assertIn("gopher://host/rows.csv: unknown scheme; known are gs://, hdfs://, swebhdfs://, webhdfs://, http://, https://, s3://", said)
        self.served.files["/d/empty.csv"] = b""
        self.assertIn("empty.csv: the file is empty",
                      self.stats(self.served, data(self.served.url + "/d/empty.csv"), code=program.BAD_INPUT))

    def test_secrets_of_a_url_are_not_shown(self):
        port = self.served.url.rpartition(":")[2]
        for password, reason in ((SECRET.replace("/", "%2F"), "GET 404"), (SECRET, "URL ")):
            url = f"http://user:{password}@127.0.0.1:{port}/none.csv?part=1&X-Amz-Signature={SECRET}&b=2"
            said = self.stats(self.served, data(url), code=program.BAD_INPUT)
            self.assertIn(f"http://127.0.0.1:{port}/none.csv?part=1&X-Amz-Signature=***&b=2: {reason}", said)
            self.assertNotIn(password, said)

    def test_a_file_that_is_replaced_is_noticed(self):
        def replace(number, request):
            if not request.headers["Range"].startswith("bytes=0-"):
                self.served.files["/d/rows.csv"] = rows(30000, seed=9)
        self.served.fault = replace
        said = self.stats(self.served, data(self.url), code=program.BAD_INPUT)
        self.assertIn(f"{self.url}: changed while it is read: another file took its place", said)

    def test_a_stream_is_what_it_is_here(self):
        stream = {"data.train.stream": "always", "data.train.shuffle_rows": 2000, "data.train.readers": 3}
        expected = self.train(self.served, stream)
        self.assertEqual(self.train(self.served, {**stream, "data.train.file": self.url}), expected)
        self.served.fault = server.some(lambda number, _: "drop" if number % 3 == 0 else None)
        self.assertEqual(self.train(self.served, {**stream, "data.train.file": self.url}), expected)

    def test_a_stream_of_many_files_stays_with_those_that_it_has_open(self):
        """Of 24 blocks of 3 files, in any order, each file is opened a few times."""
        for name in "abc":
            self.served.files[f"/d/{name}.csv"] = rows(130000, seed=ord(name))
        urls = [f"{self.served.url}/d/{name}.csv" for name in "abc"]
        self.served.asked.clear()
        self.train(self.served, {"data.train.stream": "always", "data.train.shuffle_rows": 1 << 20,
                                 "data.train.readers": 3, "data.train.file": urls})
        opened = sum(asked[2] == f"bytes=0-{HEAD_BYTES - 1}" for asked in self.served.asked)
        self.assertLessEqual(opened, 20, self.served.asked)

    def test_as_many_blocks_are_under_way_as_hide_a_far_server(self):
        for count, file in ((16, self.url), (2, "rows.csv")):
            self.assertIn(f", {count} readers, ", self.told({"data.train.stream": "always", "data.train.file": file}))

    def told(self, changes):
        spec = program.changed(SPEC, {"data.columns": COLUMNS, "model": MODEL, **changes})
        (self.folder / "spec.json").write_text(json.dumps(spec))
        return program.run(["check", "spec.json"], self.folder, env=self.env(self.served)).stdout

    def test_the_index_of_rows_is_kept_while_the_file_is_the_same(self):
        stream = {"data.train.stream": "always", "train.checkpoint_dir": "run", "train.last_step": 300,
                  "data.train.file": self.url}
        (self.folder / "run").mkdir()
        self.train(self.served, stream)
        kept = list((self.folder / "run").glob("rows-*"))
        self.assertEqual(len(kept), 1)
        written = kept[0].stat().st_mtime_ns
        for path in (self.folder / "run").iterdir():
            if path not in kept:
                path.unlink()
        self.train(self.served, stream)
        self.assertEqual(kept[0].stat().st_mtime_ns, written)
        self.served.files["/d/rows.csv"] = rows(30000, seed=5)
        for path in (self.folder / "run").iterdir():
            if path not in kept:
                path.unlink()
        self.train(self.served, stream)
        self.assertNotEqual(kept[0].stat().st_mtime_ns, written)


class Odd(server.Handler):
    """server.odd: what there is of a file in place of it, and of all of it where that is asked for: status, bytes, headers"""

    def get(self, data, fault):
        return self.server.odd if self.path == "/odd.jsonl" else super().get(data, fault)


class NoFile(UrlCase):
    """What is no file, or not all of it, is not one of few rows, or of none."""

    def test_it_is_named(self):
        served = self.serve(handler=Odd)
        line = b'{"x": 1, "word": "red", "y": 1}\n'
        served.files.update({"/odd.jsonl": line, "/good.jsonl": line * 3})
        spec = data([served.url + "/good.jsonl", served.url + "/odd.jsonl"], format="jsonl")
        few = {"DTRAIN_URL_TRIES": "2"}
        long = line * (2 * HEAD_BYTES // len(line))
        for odd, text in (((204, b"", {}), "204 No Content"), ((205, b"", {}), "gave no file"), ((202, line, {}), "gave no file"),
                          ((416, b"", {"Content-Range": "bytes */99"}), "none is there, and that there are 99 in all"),
                          ((206, line, {"Content-Range": f"bytes 0-{len(line) - 1}/*"}), "the answer has 0 to 31")):
            served.odd = odd
            self.assertIn(text, self.stats(served, spec, few, code=program.BAD_HOST))
        served.odd = 416, b"", {"Content-Range": "bytes */0"}
        self.assertEqual(self.stats(served, spec, few)["rows"], 3)
        wholes = iter([(200, long, {}), (206, line, {"Content-Range": f"bytes 0-{len(line) - 1}/{len(long)}"})] * 2)
        with unittest.mock.patch.object(Odd, "get", lambda handler, content, fault: next(wholes) if handler.path == "/odd.jsonl"
                                        else server.Handler.get(handler, content, fault)):
            self.assertIn("gave no file, or not all of it", self.stats(served, spec, few, code=program.BAD_HOST))


class S3(UrlCase):
    def setUp(self):
        super().setUp()
        self.served = self.serve(keys={"AKID": SECRET, "FILED": "other"}, is_s3=True)
        for i in range(7):
            self.served.files[f"/bucket/d/part-{i}.csv"] = rows(50 + i, seed=i)
        self.served.files["/bucket/d/deep/part-9.csv"] = rows(10)
        self.served.files["/bucket/d/odd +&é.csv"] = rows(11)

    def count(self, file, env=None):
        return self.stats(self.served, data(file), env)["rows"]

    def test_files_lists_and_patterns(self):
        self.assertEqual(self.count("s3://bucket/d/part-3.csv"), 53)
        self.assertEqual(self.count(["s3://bucket/d/part-3.csv", "s3://bucket/d/part-0.csv"]), 103)
        self.assertEqual(self.count("s3://bucket/d/part-*.csv"), sum(range(50, 57)))
        self.assertEqual(self.count("s3://bucket/d/part-[0-1].csv"), 101)
        self.assertEqual(self.count("s3://bucket/d/*/part-?.csv"), 10)
        self.assertEqual(self.count("s3://bucket/d/odd +&é.csv"), 11)
        self.assertEqual(self.count("s3://bucket/d/odd*"), 11)
        self.assertIn('no file fits "s3://bucket/d/none*"',
                      self.stats(self.served, data("s3://bucket/d/none*"), code=program.BAD_INPUT))
        self.assertIn("expected s3://bucket/key", self.stats(self.served, data("s3://bucket"), code=program.BAD_INPUT))

    def test_no_server_is_asked_which_files_an_output_must_not_replace(self):
        """Nothing of what is there can be it, whether the folder, a line of a list, or the list is behind a URL."""
        self.served.files["/bucket/d/names.txt"] = b"part-*.csv\n"
        (self.folder / "names.txt").write_text("s3://bucket/d/part-*.csv\n")
        for file, folder in (("part-*.csv", "s3://bucket/d"), ("@names.txt", "s3://bucket/d"), ("@names.txt", "."),
                             ("s3://bucket/d/part-*.csv", ".")):
            spec = program.changed(SPEC, {"data": data(file)["data"], "data.columns": COLUMNS, "model": MODEL, "train.last_step": 2})
            (self.folder / "spec.json").write_text(json.dumps(spec))
            asked, words = [], [f"--data_dir={folder}", "--metrics_file=metrics.jsonl", "spec.json"]
            for _ in range(2):  # the file is there the second time
                self.served.asked.clear()
                done = program.run(words, self.folder, env=self.env(self.served))
                self.assertEqual(done.returncode, 0, done.stderr)
                asked.append((self.served.count("list-type"), self.served.count(r"names\.txt")))
            self.assertEqual(*asked, (file, folder))
            (self.folder / "metrics.jsonl").unlink()

    def test_keys_from_the_environment_and_from_files(self):
        part = "s3://bucket/d/part-3.csv"
        nothing = {"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": ""}
        self.assertIn("403 Forbidden: no proof", self.stats(self.served, data(part), nothing, code=program.BAD_INPUT))
        self.assertIn("another signature",
                      self.stats(self.served, data(part), {"AWS_SECRET_ACCESS_KEY": "wrong"}, code=program.BAD_INPUT))
        self.assertIn("only the first is there",
                      self.stats(self.served, data(part), {"AWS_SECRET_ACCESS_KEY": ""}, code=program.BAD_INPUT))
        aws = self.folder / ".aws"
        aws.mkdir()
        (aws / "credentials").write_text("# mine\n[default]\naws_access_key_id = FILED\n"
                                         "aws_secret_access_key=other\n[work]\naws_access_key_id = WORK\n")
        (aws / "config").write_text(f"[profile work]\naws_secret_access_key = more\nendpoint_url = {self.served.url}\n"
                                    "s3 =\n  endpoint_url = none\n")
        self.assertEqual(self.count(part, nothing), 53)
        work = {**nothing, "AWS_PROFILE": "work", "AWS_ENDPOINT_URL": ""}
        self.assertIn("unknown key", self.stats(self.served, data(part), work, code=program.BAD_INPUT))
        self.assertIn('there is no profile "play"',
                      self.stats(self.served, data(part), {**nothing, "AWS_PROFILE": "play"}, code=program.BAD_INPUT))
        self.assertEqual(self.count(part, {**nothing, "AWS_SESSION_TOKEN": "of no key here"}), 53)
        self.served.token = "a/token+"
        self.assertEqual(self.count(part, {"AWS_SESSION_TOKEN": "a/token+"}), 53)

    def lend(self, answers):
        """A server of what `answers` has for "METHOD /path": a text, a status, or what makes one of headers and body."""
        class Lender(http.server.BaseHTTPRequestHandler):
            asked = []

            def log_message(self, *_):
                pass

            def do(self):
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
                self.asked.append(f"{self.command} {self.path}")
                answer = answers.get(self.asked[-1])
                answer = answer(self.headers, body) if callable(answer) else answer or 404
                text = answer.encode() if isinstance(answer, str) else b""
                self.send_response(200 if text else answer or 404)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            do_GET = do_PUT = do_POST = do
        lender = server.Server(handler=Lender)
        self.addCleanup(lender.stop)
        return lender.url, Lender.asked

    def until(self, seconds):
        return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + seconds))

    def lent(self, seconds=3600):
        return json.dumps({"Code": "Success", "AccessKeyId": "AKID", "SecretAccessKey": SECRET, "Token": "a/token+",
                           "Expiration": self.until(seconds)})

    def test_keys_of_the_role_of_a_machine(self):
        part, role = "s3://bucket/d/part-3.csv", "/latest/meta-data/iam/security-credentials/"
        nobody = {"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": ""}
        self.served.token = "a/token+"

        def checked(text):
            return lambda headers, _: text if headers["X-aws-ec2-metadata-token"] == "proof" else ""
        url, asked = self.lend({"PUT /latest/api/token": lambda headers, _:
                                "proof" if headers["X-aws-ec2-metadata-token-ttl-seconds"] else "",
                                f"GET {role}": checked("trainer\n"), f"GET {role}trainer": checked(self.lent())})
        machine = {**nobody, "AWS_EC2_METADATA_SERVICE_ENDPOINT": url}
        self.assertEqual(self.count(part, machine), 53)
        self.assertEqual(asked, ["PUT /latest/api/token", f"GET {role}", f"GET {role}trainer"])
        self.assertIn("no proof", self.stats(self.served, data(part), {**machine, "AWS_EC2_METADATA_DISABLED": "true"},
                                             code=program.BAD_INPUT))
        self.assertEqual(len(asked), 3)
        url, asked = self.lend({"PUT /latest/api/token": "proof", f"GET {role}": "trainer",
                                f"GET {role}trainer": self.lent(310)})  # until it must be asked again
        self.assertEqual(self.count(part, {**nobody, "AWS_EC2_METADATA_SERVICE_ENDPOINT": url + "/"}), 53)
        url, _ = self.lend({})
        said = self.stats(self.served, data(part), {**nobody, "AWS_EC2_METADATA_SERVICE_ENDPOINT": url},
                          code=program.BAD_INPUT)
        self.assertIn("no proof", said)
        self.assertIn("(not signed: no keys in the environment or in files, nor has this machine a role: "
                      f"{url}/latest/api/token: PUT 404", said)

    def test_a_busy_machine_is_asked_for_keys_again(self):
        """It never said that it has no role."""
        part, role = "s3://bucket/d/part-3.csv", "/latest/meta-data/iam/security-credentials/"
        self.served.token = "a/token+"
        busy = iter([503, 429])
        url, asked = self.lend({"PUT /latest/api/token": lambda *_: next(busy, "proof"), f"GET {role}": "trainer",
                                f"GET {role}trainer": lambda *_: self.lent() if asked.count(asked[-1]) > 1 else 500})
        machine = {"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "AWS_EC2_METADATA_SERVICE_ENDPOINT": url}
        self.assertEqual(self.count(part, machine), 53)
        self.assertEqual(asked.count("PUT /latest/api/token"), 3)
        url, asked = self.lend({"PUT /latest/api/token": 503})
        said = self.stats(self.served, data(part), {**machine, "AWS_EC2_METADATA_SERVICE_ENDPOINT": url,
                                                    "DTRAIN_URL_TRIES": "2"}, code=program.BAD_HOST)
        self.assertIn("/latest/api/token: PUT 503", said)
        self.assertIn("(2 tries)", said)
        self.assertNotIn("not signed", said)

    def test_a_container_that_gives_no_answer_is_asked_again(self):
        """Meanwhile it is told, and signals are heard."""
        self.served.token = "a/token+"
        answers = threading.Event()
        self.addCleanup(answers.set)
        url, _ = self.lend({"GET /keys": lambda *_: answers.wait() and self.lent()})
        env = self.env(self.served, AWS_ACCESS_KEY_ID="", AWS_SECRET_ACCESS_KEY="", DTRAIN_URL_TRIES="100",
                       AWS_CONTAINER_CREDENTIALS_FULL_URI=url + "/keys")
        (self.folder / "spec.json").write_text(json.dumps({**SPEC, **data("s3://bucket/d/part-3.csv", **{"except": ["word"]})}))
        waits = r"tries again, \d+ s so far: http://[0-9.:]+/keys: .* tr(y|ies)\)"
        for signal_sent, code in ((signal.SIGTERM, 143), (None, 0)):
            running = commands.Running(["spec.json"], self.folder, env=env)
            self.addCleanup(running.process.kill)
            running.wait_for_match(waits)
            if signal_sent:
                running.process.send_signal(signal_sent)
            else:
                answers.set()
            self.assertEqual(running.end(), code, running.lines)

    def test_keys_of_the_role_of_a_container(self):
        part, nobody = "s3://bucket/d/part-3.csv", {"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": ""}
        self.served.token = "a/token+"
        url, _ = self.lend({"GET /keys": lambda headers, _: self.lent() if headers["Authorization"] == "mine" else ""})
        container = {**nobody, "AWS_CONTAINER_CREDENTIALS_FULL_URI": url + "/keys"}
        self.assertEqual(self.count(part, {**container, "AWS_CONTAINER_AUTHORIZATION_TOKEN": "mine"}), 53)
        (self.folder / "token").write_text("mine\n")
        filed = {**container, "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": str(self.folder / "token")}
        self.assertEqual(self.count(part, filed), 53)
        self.assertIn(f"{url}/keys: GET 404", self.stats(self.served, data(part), container, code=program.BAD_INPUT))

    def test_keys_of_the_role_of_a_pod(self):
        part = "s3://bucket/d/part-3.csv"
        self.served.token = "a/token+"
        (self.folder / "token").write_text("header.claims.signature")

        def assume(_, body):
            asked = dict(urllib.parse.parse_qsl(body))
            if asked != {"Action": "AssumeRoleWithWebIdentity", "Version": "2011-06-15", "RoleSessionName": "dtrain",
                         "RoleArn": "arn:aws:iam::1:role/a b", "WebIdentityToken": "header.claims.signature"}:
                return ""
            return ('<AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><Result>'
                    f"<Credentials><AccessKeyId>AKID</AccessKeyId><SecretAccessKey>{SECRET}</SecretAccessKey>"
                    f"<SessionToken>a/token&#43;</SessionToken><Expiration>{self.until(900)}</Expiration>"
                    "</Credentials></Result></AssumeRoleWithWebIdentityResponse>")
        url, asked = self.lend({"POST /": assume})
        pod = {"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "AWS_ENDPOINT_URL_STS": url + "/",
               "AWS_ROLE_ARN": "arn:aws:iam::1:role/a b", "AWS_WEB_IDENTITY_TOKEN_FILE": str(self.folder / "token")}
        self.assertEqual(self.count(part, pod), 53)
        self.assertEqual(asked, ["POST /"])
        self.assertEqual(self.count(part, {**pod, "AWS_ACCESS_KEY_ID": "AKID", "AWS_SECRET_ACCESS_KEY": SECRET,
                                           "AWS_SESSION_TOKEN": "a/token+"}), 53)
        self.assertEqual(asked, ["POST /"])  # keys that are said count
        refused = self.stats(self.served, data(part), {**pod, "AWS_ROLE_ARN": "another"}, code=program.BAD_INPUT)
        self.assertIn(f"{url}/: POST 404", refused)
        self.assertNotIn("header.claims", refused)
        gone = self.stats(self.served, data(part), {**pod, "AWS_WEB_IDENTITY_TOKEN_FILE": "none"}, code=program.BAD_INPUT)
        self.assertIn("AWS_WEB_IDENTITY_TOKEN_FILE: none: ", gone)

    def test_an_endpoint_may_have_a_path(self):
        part = "s3://bucket/d/part-3.csv"
        self.served.files["/below/it/bucket/d/part-3.csv"] = self.served.files["/bucket/d/part-3.csv"]
        self.assertEqual(self.count(part, {"AWS_ENDPOINT_URL": self.served.url + "/below/it/"}), 53)

    def test_every_request_may_fail_once(self):
        self.served.fault = server.some(lambda number, _: 503 if number % 2 == 0 else None)
        self.assertEqual(self.count("s3://bucket/d/part-*.csv"), sum(range(50, 57)))

    def test_a_list_that_is_none_is_named(self):
        self.served.is_s3 = False
        self.served.files["/bucket"] = b"<html>"
        said = self.stats(self.served, data("s3://bucket/d/part-*.csv"), code=program.BAD_HOST)
        self.assertIn("the server's list of files is broken", said)
        for page, text in ((b"<IsTruncated>maybe</IsTruncated>", "does not say whether it ends"),
                           (b"<Contents><Size>7</Size></Contents>", "has one without a name")):
            self.served.files["/bucket"] = b"<ListBucketResult>" + page + b"</ListBucketResult>"
            self.assertIn(text, self.stats(self.served, data("s3://bucket/d/part-*.csv"), code=program.BAD_HOST))

    def test_a_server_that_quotes_what_it_was_asked_makes_nobody_tell_a_token(self):
        refuse = server.Handler.refuse

        def quote(handler, status, code, message):
            refuse(handler, status, code, f"{handler.headers.get('x-amz-security-token')} {message}")
        self.served.fault = lambda *_: 403
        with unittest.mock.patch.object(server.Handler, "refuse", quote):
            said = self.stats(self.served, data("s3://bucket/d/part-3.csv"), {"AWS_SESSION_TOKEN": "a/secret+token"},
                              code=program.BAD_INPUT)
        self.assertIn("403 Forbidden: ***", said)
        self.assertNotIn("secret+", said)

    def test_a_list_without_an_end_is_given_up(self):
        self.served.is_s3 = False
        self.served.files["/bucket"] = (b"<ListBucketResult><IsTruncated>true</IsTruncated>"
                                        b"<NextContinuationToken>more</NextContinuationToken></ListBucketResult>")
        said = self.stats(self.served, data("s3://bucket/d/part-*.csv"), code=program.BAD_HOST)
        self.assertIn("s3://bucket/d/part-*: the server's list of files does not end", said)
        self.assertLess(self.served.count("GET /bucket"), 10)


if __name__ == "__main__":
    program.main()
