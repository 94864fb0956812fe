"""The password of a URL is for its server alone: neither what a run says nor what it writes has it."""
import base64
import json
import unittest.mock

import hdfs_server
import program
import read_test
import server

PASSWORD = "x9Fq-hidden"


class Leading(server.Handler):
    """What it does not have is where the server leads to; who asks is written down."""

    def answer(self, body, fault):
        self.server.proofs.append(self.headers.get("Authorization"))
        if self.server.leads_to:
            return 302, b"", {"Location": self.server.leads_to + self.path}
        return super().answer(body, fault)


class Secrets(read_test.UrlCase):
    def setUp(self):
        super().setUp()
        self.served = self.serve()
        self.served.files["/rows.csv"] = read_test.rows(300)
        self.rows = self.with_password(self.served.url) + "/rows.csv"
        self.hadoop = hdfs_server.NameNode()
        self.addCleanup(self.hadoop.stop)
        self.folder_there = self.with_password(self.hadoop.url.replace("http:", "hdfs:")) + "/bucket"
        data = read_test.data(self.rows)["data"]
        hooks = [{"type": "profiler", "save_steps": 10, "output_dir": "profile"},
                 {"type": "final_evaluation", "path": "final.json"}]
        self.spec = program.changed(read_test.SPEC, {
            "data.train": data["train"], "data.eval": data["train"], "data.columns": read_test.COLUMNS,
            "model": read_test.MODEL, "train.last_step": 30, "train.save_summaries_steps": 10, "train.hooks": hooks})

    def with_password(self, url):
        return url.replace("://", f"://me:{PASSWORD}@")

    def run_it(self, words, code=0):
        """Its words, which have no password."""
        (self.folder / "spec.json").write_text(json.dumps(self.spec))
        done = program.run(words, self.folder, env=self.env(self.served, HADOOP_USER_NAME="me"))
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertNotIn(PASSWORD, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def assert_no_file_has_it(self):
        here = {str(path): path.read_bytes() for path in self.folder.rglob("*") if path.is_file()}
        del here[str(self.folder / "spec.json")]
        files = {**here, **self.hadoop.files}
        self.assertEqual([name for name, data in files.items() if PASSWORD.encode() in data], [])
        return files

    def test_what_a_run_says_and_writes(self):
        run = ["--log_level=debug", "--result=result.json", "--metrics_file=metrics.json", "spec.json"]
        for folder in ("run", self.folder_there + "/run"):
            self.assertIn("saved", self.run_it(["--cache_dir=cache", "-o", folder, *run]))
        self.run_it(["--local_ps=1", "--local_workers=2", "-o", "cluster", *run])
        files = self.assert_no_file_has_it()
        events = [data for name, data in files.items() if "tfevents" in name and "/eval/" not in name]
        self.assertEqual(len(events), 3)
        shown = self.rows.replace(f"me:{PASSWORD}@", "").encode()
        self.assertTrue(all(shown in data for data in events))
        self.look_at(self.folder_there + "/run")
        self.assert_no_file_has_it()

    def look_at(self, run):
        for words in (["ls"], ["ls", "--json"], ["show", "--json"], ["verify"], ["verify", "--json"]):
            self.run_it(["checkpoint", *words, run])
        self.run_it(["checkpoint", "export", run, "run.npz"])
        self.run_it(["checkpoint", "reshard", run, "--ps=2", self.folder_there + "/two"])
        self.run_it(["eval", "--checkpoint", run, "--result=eval.json", "spec.json"])
        self.run_it(["predict", "--checkpoint", run, "--data", self.rows, "--out", self.folder_there + "/out.csv",
                     "spec.json"])

    def test_what_is_said_of_mistakes(self):
        bad = program.BAD_INPUT
        for words in (["--set", f"data.train={self.rows}", "spec.json"], [f"--threads={self.rows}", "spec.json"],
                      ["spec.json", self.rows], [f"--cache_dir={self.rows}", "spec.json"], ["plot", self.rows],
                      ["checkpoint", "ls", self.folder_there], ["check", "--set", f"data.train.file=@{self.rows}-",
                                                               "spec.json"]):
            self.assertIn("127.0.0.1", self.run_it(words, bad))

    def test_a_server_that_quotes_what_it_was_asked_makes_nobody_tell_it(self):
        proof = base64.b64encode(f"me:{PASSWORD}".encode()).decode()
        self.served.fault = lambda number, request: 403
        with unittest.mock.patch.object(server.Handler, "refuse", lambda handler, status, code, message: handler.send(
                status, str(handler.headers.get("Authorization")).encode(), {}, None)):
            said = self.run_it(["stats", "--set", f"data.train.file={self.rows}", "spec.json"], program.BAD_INPUT)
        self.assertIn("Basic ****", said)
        self.assertNotIn(proof[8:], said)

    def test_another_server_is_not_told_it(self):
        first, second = self.serve(handler=Leading), self.serve(handler=Leading)
        for led, to in ((first, second.url), (second, None)):
            led.leads_to, led.proofs = to, []
        second.files["/rows.csv"] = self.served.files["/rows.csv"]
        self.run_it(["stats", "--set", f"data.train.file={self.with_password(first.url)}/rows.csv", "spec.json"])
        self.assertTrue(first.proofs and all(proof.startswith("Basic ") for proof in first.proofs))
        self.assertTrue(second.proofs)
        self.assertEqual(set(second.proofs), {None})


if __name__ == "__main__":
    program.main()
