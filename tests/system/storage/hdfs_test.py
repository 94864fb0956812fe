"""Hadoop's file system by WebHDFS: who asks, what is read and written, against its documented exchange
(hdfs_server.py)."""
import base64
import getpass
import itertools
import json
import re

import checkpoint_test
import hdfs_server
import program
import read_test

TOKEN = base64.urlsafe_b64encode(b"\0\2me\2me\0\x8a\1" + bytes(range(40))).decode().rstrip("=")


def text(data):
    """As Hadoop writes bytes: behind their number, which is a byte, or -113 and one."""
    return (bytes([len(data)]) if len(data) < 128 else bytes([256 - 113, len(data)])) + data


class HdfsCase(read_test.UrlCase):
    def start(self, handler=hdfs_server.Handler):
        served = hdfs_server.NameNode(handler)
        self.addCleanup(served.stop)
        self.host = "hdfs://" + served.url.partition("://")[2]
        self.bucket = self.host + "/bucket"
        return served

    def env(self, served, **more):
        return super().env(served, **{"HADOOP_USER_NAME": "me", "HADOOP_TOKEN": served.token or "",
                                      "HADOOP_TOKEN_FILE_LOCATION": "", **more})

    def put(self, name, data):
        self.served.files[name] = data
        self.served.make_parents(name)


class Reads(HdfsCase):
    def setUp(self):
        super().setUp()
        self.served = self.start()
        for i in range(7):
            self.put(f"/bucket/d/part-{i}.csv", read_test.rows(50 + i, seed=i))
        self.put("/bucket/d/deep/part-9.csv", read_test.rows(10))
        self.put("/bucket/d/deep/er/part-9.csv", read_test.rows(9))
        self.put("/bucket/d/odd +&é.csv", read_test.rows(11))

    def count(self, file, env=None):
        return self.stats(self.served, read_test.data(file), env)["rows"]

    def refused(self, file, env=None, code=program.BAD_INPUT):
        said = self.stats(self.served, read_test.data(file), {"DTRAIN_URL_TRIES": "2", **(env or {})}, code=code)
        self.assertNotIn(TOKEN[:8], said)
        return said

    def test_files_lists_and_patterns(self):
        for _ in range(2):
            self.assertEqual(self.count(self.bucket + "/d/part-3.csv"), 53)
            self.assertEqual(self.count(self.bucket + "/d/part-*.csv"), sum(range(50, 57)))
            self.assertEqual(self.count(self.bucket + "/d/*/part-?.csv"), 10)
            self.assertEqual(self.count(self.bucket + "/d/deep/*/*.csv"), 9)
            self.assertEqual(self.count(self.bucket + "/d/odd +&é.csv"), 11)
            self.assertEqual(self.count(self.bucket + "/d/odd*"), 11)
            self.assertIn(f'no file fits "{self.bucket}/d/none*"', self.refused(self.bucket + "/d/none*"))
            self.assertIn(f'no file fits "{self.bucket}/none/*"', self.refused(self.bucket + "/none/*"))
            self.served.has_batches = False  # of an older server
        self.assertEqual(self.count("web" + self.bucket + "/d/part-3.csv"), 53)
        self.assertIn("expected hdfs://host:port/path", self.refused("hdfs:///bucket/part-3.csv"))
        self.assertIn("/bucket/d: is a folder", self.refused(self.bucket + "/d"))
        self.assertIn(f"{self.bucket}/none.csv: GET 404 Not Found: File does not exist: /bucket/none.csv\n",
                      self.refused(self.bucket + "/none.csv"))

    def test_without_a_port_it_is_that_of_the_web_interface(self):
        for before in ("", "me@", "me:password@"):
            for host in ("name.invalid", "[::1]"):
                self.served.asked.clear()
                self.refused(f"hdfs://{before}{host}/part.csv", {"http_proxy": self.served.url, "no_proxy": ""})
                self.assertEqual(self.served.count(rf"^GET http://{re.escape(host)}:9870/webhdfs/v1/part.csv"), 1)

    def test_large_files_are_read_by_ranges_whatever_fails_once(self):
        table = read_test.rows(200000)
        self.put("/bucket/large.csv", table)
        (self.folder / "rows.csv").write_bytes(table)
        expected = self.stats(self.served)
        for fault in ("drop", 503, 429, "short"):
            self.served.fault = lambda number, _, fault=fault: fault if number % 5 == 0 else None
            self.assertEqual(self.stats(self.served, read_test.data(self.bucket + "/large.csv")), expected)
        self.assertGreater(self.served.count("GET .*op=OPEN.*offset=1048580.*namenoderpcaddress"), 0)
        self.served.fault = lambda *_: 503
        self.assertIn("503 Service Unavailable: asked to fail (2 tries)",
                      self.refused(self.bucket + "/large.csv", code=program.BAD_HOST))

    def test_a_node_that_does_not_lead_yet_is_asked_again(self):
        self.served.exception = "StandbyException"
        self.served.fault = lambda number, _: 403 if number % 3 == 0 else None
        self.assertEqual(self.count(self.bucket + "/d/part-3.csv"), 53)
        self.served.exception = "AccessControlException"
        self.assertIn("/d/part-3.csv: GET 403 Forbidden: asked to fail", self.refused(self.bucket + "/d/part-3.csv"))

    def test_a_file_that_is_replaced_or_removed_is_noticed(self):
        for late, said in ((read_test.rows(30000, seed=9), "another file took its place"), (None, "it is gone")):
            self.put("/bucket/large.csv", read_test.rows(30000))

            def replace(_, request, late=late):
                if "op=OPEN" in request.path and late:
                    self.served.files["/bucket/large.csv"] = late
                elif "op=OPEN" in request.path:
                    self.served.files.pop("/bucket/large.csv", None)
            self.served.fault = replace
            self.assertIn(f"{self.bucket}/large.csv: changed while it is read: {said}",
                          self.refused(self.bucket + "/large.csv"))

    def test_a_token_is_shown_nowhere(self):
        part, self.served.token = self.bucket + "/d/part-3.csv", TOKEN
        self.assertEqual(self.count(part), 53)
        self.served.token = TOKEN + "x"  # the server says which it does not know
        self.assertIn("GET 401 Unauthorized: no such token: ****", self.refused(part, {"HADOOP_TOKEN": TOKEN}))
        self.assertIn("HADOOP_TOKEN: expected a delegation token in base64",
                      self.refused(part, {"HADOOP_TOKEN": TOKEN + "&op=DELETE"}))
        self.served.token = TOKEN
        self.served.leads_to = "http://127.0.0.1:1"
        self.assertIn("127.0.0.1 port 1", self.refused(part, code=program.BAD_HOST))

    def test_a_token_goes_to_no_server_that_only_a_file_names(self):
        """Nor by another scheme to the one that is named. Without a token it is asked, as anybody may."""
        self.served.token = TOKEN
        other = hdfs_server.NameNode()
        self.addCleanup(other.stop)
        (self.folder / "run").mkdir()
        spec = self.folder / "train.json"
        named = read_test.data(self.bucket + "/d/part-*.csv")
        spec.write_text(json.dumps(program.changed(read_test.SPEC, {
            **named, "data.columns": read_test.COLUMNS, "model": read_test.MODEL, "train.checkpoint_dir": "run"})))
        for url in ("hdfs://" + other.url.partition("://")[2], self.host.replace("hdfs", "swebhdfs")):
            (self.folder / "run" / "checkpoint").write_text(
                f'model_checkpoint_path: "{url}/x/model.ckpt-5"\nall_model_checkpoint_paths: "{url}/x/model.ckpt-5"\n')
            for words in (["checkpoint", "verify", "run"], ["train.json"]):
                done = program.run(words, self.folder, env=self.env(self.served))
                self.assertEqual([path for _, path, _ in other.asked if "delegation" in path], [])
                self.assertNotIn(TOKEN, done.stderr)
                self.assertIn("token of this task goes only to servers that its own command line or spec names", done.stderr)
        (self.folder / "run" / "checkpoint").write_text(f'model_checkpoint_path: "hdfs://{other.url[7:]}/x/model.ckpt-5"\n')
        program.run(["checkpoint", "verify", "run"], self.folder, env={**self.env(self.served), "HADOOP_TOKEN": ""})
        self.assertGreater(other.count("user.name=me"), 0)

    def test_a_token_comes_from_a_file_of_hadoop_s(self):
        path, part = self.folder / "tokens", self.bucket + "/d/part-3.csv"
        in_file = {"HADOOP_TOKEN": "", "HADOOP_TOKEN_FILE_LOCATION": str(path)}
        other, token = (text(b"identifier" * 20) + text(b"password") + text(kind) + text(b"127.0.0.1:9870")
                        for kind in (b"YARN_AM_RM_TOKEN", b"HDFS_DELEGATION_TOKEN"))
        whole = b"HDTS\0\2" + text(b"yarn") + other + text(b"hdfs") + token + b"\0"
        path.write_bytes(whole)
        self.served.token = base64.urlsafe_b64encode(token).decode().rstrip("=")
        self.assertEqual(self.count(part, in_file), 53)
        for broken, said in ((whole[:-20], "is broken"), (b"HDTS\0\1" + text(b"yarn") + other, "has no delegation token"),
                             (b"HDTS\0\1\x87\xff", "is broken"), (b"HDTS\1", "expected version 0"),
                             (b"HD", "is no file of Hadoop's tokens"), (b"HDTS\0", "is broken")):
            path.write_bytes(broken)
            self.assertIn(f"HADOOP_TOKEN_FILE_LOCATION={path}: {said}", self.refused(part, in_file))
        path.unlink()
        self.assertIn(f"HADOOP_TOKEN_FILE_LOCATION={path}: No such file", self.refused(part, in_file))

    def test_a_redirect_leads_to_http_and_ends(self):
        part = self.bucket + "/d/part-3.csv"
        self.served.leads_to = "file://"
        self.assertIn("rotocol", self.refused(part))
        self.served.leads_to = self.served.url
        self.assertIn("Maximum (5) redirects followed", self.refused(part, code=program.BAD_HOST))

    def test_the_user_is_given_or_this_process_s(self):
        part = self.bucket + "/d/part-3.csv"
        self.assertIn("401 Unauthorized: you&me is not me", self.refused(part, {"HADOOP_USER_NAME": "you&me"}))
        self.served.user = getpass.getuser()
        self.assertEqual(self.count(part, {"HADOOP_USER_NAME": ""}), 53)

    def test_what_is_no_webhdfs_is_no_absent_file(self):
        web = self.serve()
        url = web.url.replace("http://", "hdfs://") + "/run"
        web.fault = lambda *_: 404
        done = program.run(["checkpoint", "show", url], self.folder, env=self.env(self.served))
        self.assertIn(f"{url}/checkpoint: GET 404 Not Found", done.stderr)

    def test_a_list_that_is_none_is_named(self):
        for broken, said in ((b"{", "is no JSON"), (b"<html>", "is no JSON"), (b'''{"DirectoryListing": {"partialListing":
                {"FileStatuses": {"FileStatus": [{"pathSuffix": "p", "type": "FILE"}]}}, "remainingEntries": 1}}''',
                              "the server's list of files does not end"),
                             *((json.dumps(text).encode(), "the server's list of files is broken") for text in (
                                 {}, {"FileStatuses": {}}, {"FileStatuses": {"FileStatus": [7]}},
                                 {"FileStatuses": {"FileStatus": [{"pathSuffix": "p"}]}},
                                 {"DirectoryListing": {"partialListing": {"FileStatuses": {"FileStatus": []}}}})),
                             (b"[" + b"{}," * (1 << 20) + b"{}]", "lists and objects"), (b"", "is broken")):
            self.served.list_answer = broken
            self.assertIn(said, self.refused(self.bucket + "/d/p*", code=program.BAD_HOST))


class Runs(checkpoint_test.Runs):
    """Their folder is in Hadoop's file system, where folders stay that nobody removes."""

    @staticmethod
    def is_write(request):
        """A name node that redirects has done nothing."""
        return checkpoint_test.Runs.is_write(request) and ("op=DELETE" in request.path or "op=RENAME" in request.path
                                                           or "namenoderpcaddress" in request.path)

    def assert_whole(self, was_killed=False):
        self.assertEqual([name for name in self.served.folders if "_temp_" in name], [])
        return super().assert_whole(was_killed)


class Writes(Runs, HdfsCase, checkpoint_test.CheckpointCase):
    """Runs, also a kill at some of the writes."""

    kill_every, tables = 4, ((20000, True, 1),)

    def wide(self):
        more = [{**checkpoint_test.SPEC["model"][0], "units": 1500}, {"op": "dense", "name": "more", "units": 1500},
                checkpoint_test.SPEC["model"][1]]
        self.write_spec(self.spec(**{"train.checkpoint_dir": self.bucket + "/run", "model": more, "train.last_step": 4,
                                     "train.save_checkpoint_steps": None}))

    def test_large_shards_are_appended_in_parts(self):
        self.wide()
        self.served.fault = lambda number, request: (None, "drop", None, "half", None, "drop after", None, 503)[number % 8] \
            if "namenoderpcaddress" in request.path else (None, "drop", None, None)[number % 4]
        done = self.run_dtrain()
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertGreater(self.served.count("POST .*op=APPEND.*namenoderpcaddress"), 3)
        self.served.fault = lambda *_: None
        self.assertEqual(self.assert_whole()[-1], "model.ckpt-4")

    def test_a_file_whose_last_writer_holds_it_is_waited_for(self):
        self.wide()
        held = itertools.count()
        self.served.exception = "AlreadyBeingCreatedException"
        self.served.fault = lambda _, request: 403 if "op=APPEND" in request.path and next(held) < 3 else None
        done = self.run_dtrain()
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.assert_whole()[-1], "model.ckpt-4")

    def test_what_is_removed_is_asked_for_once_where_a_rename_replaces(self):
        self.assertEqual(self.run_dtrain().returncode, 0)
        asked = [f"{method} {path}" for method, path, _ in self.served.asked]
        first = next(i for i, line in enumerate(asked) if "op=RENAME" in line)
        removed = [line.split("?")[0] for line in asked[first:] if "op=DELETE" in line]
        self.assertGreater(len(removed), 5)
        self.assertEqual([name for name in removed if ".tempstate" in name], [])

    def test_a_folder_that_cannot_be_written_is_told_at_once(self):
        self.served.fault = lambda number, request: 403 if "op=CREATE" in request.path else None
        said = self.dtrain("spec.json", code=program.BAD_INPUT)
        self.assertIn(f"train.checkpoint_dir: {self.bucket}/run/.writable: PUT 403", said)

    def test_a_ps_proves_itself_only_where_its_own_command_line_says(self):
        """A launcher tells it from the spec."""
        self.served.token = TOKEN
        cluster = ["--local_ps=1", "--local_workers=1"]
        self.assertEqual(self.run_dtrain(*cluster).returncode, 0)
        self.assertGreater(self.served.count("PUT .*_temp_.*delegation="), 0)

    def test_a_redirect_without_an_end_is_given_up(self):
        self.served.leads_to = self.served.url
        said = self.dtrain("spec.json", code=program.BAD_INPUT, env={"DTRAIN_URL_TRIES": "1"})
        self.assertIn("/run/.writable: PUT 307 Temporary Redirect", said)
        self.assertEqual(self.served.count("op=CREATE"), 6)


if __name__ == "__main__":
    program.main()
