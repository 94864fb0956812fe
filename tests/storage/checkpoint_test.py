"""Specs and checkpoints behind URLs: read by every command that reads them, written by runs."""
import json
import re

import program
import read_test

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
        self.served = self.serve(keys={"AKID": read_test.SECRET}, is_s3=True)
        (self.folder / "rows.csv").write_bytes(read_test.rows(500))
        self.write_spec(self.spec())

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
        for path in (self.folder / folder).iterdir():
            self.served.files[f"/bucket/{folder}/{path.name}"] = path.read_bytes()


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


if __name__ == "__main__":
    program.main()
