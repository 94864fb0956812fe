"""Rows that come through a pipe, which can be read once: as those of a file."""
import gzip
import json
import os
import subprocess
import threading

import program
from model import ModelCase, spec

ROWS = [(i % 7 / 7, i % 5 / 5) for i in range(400)]
LABELS = [int(a > b) for a, b in ROWS]
NOTHING = "standard input: nothing is sent there (tasks of a local cluster and those in the " \
          "background have none)"


class Pipes(ModelCase):
    def setUp(self):
        super().setUp()
        self.write_table("all.csv", ROWS, LABELS)
        self.bytes = (self.folder / "all.csv").read_bytes()
        content = spec()
        content["data"]["train"] = {**content["data"]["eval"], "file": "all.csv", "take": 300}
        content["data"]["eval"] = {**content["data"]["eval"], "file": "all.csv", "skip": 300}
        content["data"]["shuffle"] = True
        content["data"]["columns"] = [{"column": "numeric", "name": name} for name in "ab"]
        content["model"].insert(0, {"op": "concat", "name": "both", "inputs": ["a", "b"]})
        content["train"] = {"epochs": 3}
        self.write_spec(content, "train.json")

    def result(self, *words, sent=None):
        ended = subprocess.run([program.BINARY, "--result=result.json", *words, "train.json"],
                               cwd=self.folder, input=sent, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, check=False, env=program.environment(),
                               timeout=program.LIMIT_S)
        self.assertEqual(ended.returncode, 0, ended.stdout.decode())
        result = json.loads((self.folder / "result.json").read_text())
        return result["step"], result["metrics"]

    def sets(self, path):
        return [f"--set=data.{use}.file={path}" for use in ("train", "eval")]

    def test_rows_of_standard_input_are_those_of_a_file(self):
        """Read twice, here: for training, and for the evaluation."""
        for streams in ("never", "always"):
            about = [f"--set=data.{use}.stream={streams}" for use in ("train", "eval")]
            expected = self.result(*about)
            for sent in (self.bytes, gzip.compress(self.bytes)):
                with self.subTest(streams, bytes=len(sent)):
                    self.assertEqual(self.result(*about, *self.sets("-"), sent=sent), expected)

    def test_a_folder_for_them_that_cannot_be_written_is_said(self):
        ended = subprocess.run([program.BINARY, *self.sets("-"), "train.json"], cwd=self.folder, input=self.bytes,
                               stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, timeout=program.LIMIT_S, check=True,
                               env=program.environment({"TMPDIR": str(self.folder / "none")}))
        said = [line for line in ended.stderr.decode().splitlines() if "TMPDIR" in line]
        self.assertEqual(len(said), 1)
        self.assertRegex(said[0], r"WARNING: \S*/none \(TMPDIR\): no file can be made there: No such file or directory; ")

    def test_rows_of_a_named_pipe_are_those_of_a_file(self):
        expected = self.result()
        os.mkfifo(self.folder / "pipe")

        def write():
            with open(self.folder / "pipe", "wb") as pipe:  # waits for a reader
                for at in range(0, len(self.bytes), 1000):
                    pipe.write(self.bytes[at:at + 1000])
                    pipe.flush()

        writer = threading.Thread(target=write)
        writer.start()
        self.addCleanup(writer.join)
        self.assertEqual(self.result(*self.sets("pipe")), expected)

    def test_what_is_written_waits_for_no_reader(self):
        """Of a pipe that nobody reads, or of a socket."""
        os.mkfifo(self.folder / "pipe")
        for words in (["--result=pipe", "train.json"], ["--metrics_file=pipe", "train.json"],
                      ["eval", "--result=pipe", "--checkpoint=run", "spec.json"],
                      ["predict", "--out=pipe", "--format=csv", "--data=table.csv", "--checkpoint=run", "spec.json"]):
            ended = program.run(words, self.folder)
            self.assertIn(ended.returncode, (1, program.BAD_INPUT), ended.stderr)
            self.assertIn("pipe: a socket, a pipe that nobody reads, or a device", ended.stderr)

    def test_metrics_go_through_a_pipe_that_is_read(self):
        os.mkfifo(self.folder / "pipe")
        reader = os.open(self.folder / "pipe", os.O_RDONLY | os.O_NONBLOCK)
        self.addCleanup(os.close, reader)
        self.result("--metrics_file=pipe", "--set=train.last_step=5")
        self.assertIn(b'"loss"', os.read(reader, 1 << 16))

    def test_one_pipe_is_not_for_two_workers(self):
        """Nobody writes, so the worker that has it does not end before the other one comes."""
        os.mkfifo(self.folder / "pipe")
        ended = program.run(["--local_ps=1", "--local_workers=2", *self.sets("pipe"), "train.json"],
                            self.folder)
        self.assertEqual(ended.returncode, program.BAD_INPUT, ended.stderr)
        self.assertIn("pipe: another process reads this pipe: each worker wants a pipe of its own",
                      ended.stderr)

    def test_predictions_are_made_of_what_is_sent(self):
        said = []
        for words, sent in ((["--data=table.csv"], None),
                            (["--data=-"], (self.folder / "table.csv").read_text()),
                            (["--data=/dev/stdin"], (self.folder / "table.csv").read_text())):
            ended = program.run(["predict", "spec.json", "--checkpoint=run", "--out=-", *words],
                                self.folder, stdin=sent)
            self.assertEqual((ended.returncode, ended.stderr), (0, ""))
            said.append(ended.stdout)
        self.assertEqual(said, said[:1] * 3)
        self.assertGreater(len(said[0].splitlines()), 1)

    def test_nothing_is_told(self):
        for words in ([], ["--local_workers=2"]):
            ended = program.run([*self.sets("-"), *words, "train.json"], self.folder)
            self.assertEqual(ended.returncode, program.BAD_INPUT, ended.stderr)
            self.assertIn(NOTHING, ended.stderr)
        ended = program.run(["eval", "--set=data.eval.file=-", "--checkpoint=run", "spec.json"],
                            self.folder, stdin="")
        self.assertEqual(ended.returncode, program.BAD_INPUT)
        self.assertIn("standard input: the file is empty", ended.stderr)


if __name__ == "__main__":
    program.main()
