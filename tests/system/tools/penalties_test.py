"""Penalties of tables: on the rows that a batch names, each once, or on all rows, as TensorFlow has it when its loss is told so."""
import ast
import json
import struct
import zipfile

import made
import program
import tool
from program import FIXTURES

FIXTURE = json.loads((FIXTURES / "row_penalty.json").read_text(encoding="utf-8"))
OF_TABLE = json.loads((FIXTURES / "table_penalty.json").read_text(encoding="utf-8"))
SHAPES = {"item/embedding_weights": [40, 3], "tags/embedding_weights": [30, 3], "wide/item_id/weights": [40, 1], "wide/bias": [1],
          "deep/kernel": [6, 1], "deep/bias": [1]}


def read(path):
    """{variable: its numbers} of an exported checkpoint."""
    told = {}
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            data = archive.read(name)
            end = 10 + struct.unpack_from("<H", data, 8)[0]
            if ast.literal_eval(data[10:end].decode())["descr"] == "<f4":
                told[name[:-len(".npy")]] = struct.unpack(f"<{(len(data) - end) // 4}f", data[end:])
    return told


def penalty(name, rows):
    l1, l2 = FIXTURE["penalty"][name]
    return {"regularizer": {"l1": l1, "l2": l2, "rows": rows}}


def spec(batch, rows="batch", **train):
    return {
        "name": "penalty",
        "data": {"train": {"format": "jsonl", "file": "rows.jsonl", "label": "y"}, "batch_size": batch, "shuffle": False,
                 "columns": [{"column": "identity", "name": "item_id", "source": "item", "buckets": 40},
                             {"column": "identity", "name": "tag_ids", "source": "tags", "buckets": 30, "max": 3}]},
        "model": [{"op": "embedding", "name": "item", "inputs": ["item_id"], "dimension": 3, **penalty("item", rows)},
                  {"op": "embedding", "name": "tags", "inputs": ["tag_ids"], "dimension": 3, **penalty("tags", rows)},
                  {"op": "concat", "inputs": ["item", "tags"]}, {"op": "dense", "name": "deep", "units": 1},
                  {"op": "linear", "name": "wide", "inputs": ["item_id"], **penalty("wide", rows)}, {"op": "add", "inputs": ["deep", "wide"]}],
        "loss": "sigmoid_cross_entropy", "optimizer": {"type": "adagrad", "learning_rate": FIXTURE["rate"]},
        "train": {"mode": "sync", "last_step": len(FIXTURE["losses"]), "checkpoint_dir": "run", "log_every_steps": 1,
                  "save_summaries_steps": 0, "warm_start": {"checkpoint": "first"}, **train}}


class Penalties(tool.ToolCase):
    def setUp(self):
        super().setUp()
        (self.folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in FIXTURE["rows"]))
        (self.folder / "first").mkdir()
        made.write_bundle(self.folder / "first" / "model.ckpt-0",
                          {name: (made.FLOAT, SHAPES[name], values) for name, values in FIXTURE["initial"].items()} |
                          {"global_step": (made.INT64, [], [0])})
        made.write_state(self.folder / "first", "model.ckpt-0")

    def train(self, name, told, *words):
        (self.folder / "spec.json").write_text(json.dumps(told))
        ended = self.dtrain(*words, f"--checkpoint_dir={name}", f"--result={name}.json", "spec.json")
        self.assertEqual(ended.returncode, 0, ended.stdout + ended.stderr)
        self.run_ok("checkpoint", "export", name, f"{name}.npz")
        return read(self.folder / f"{name}.npz"), ended.stdout + ended.stderr

    def test_rows_of_the_batch_follow_tensorflow(self):
        one, text = self.train("one", spec(FIXTURE["batch"]))
        for name, wanted in FIXTURE["final"].items():
            for got, value in zip(one[name], wanted, strict=True):
                self.assertAlmostEqual(got, value, delta=2e-5, msg=name)
        for step in (1, 17, len(FIXTURE["losses"])):
            self.assertIn(f"step {step} of {len(FIXTURE['losses'])}, loss {FIXTURE['losses'][step - 1]:.4f}", text)
        for how in (["--local_ps=2", "--local_workers=1"], ["--local_ps=3", "--local_workers=1", "--transport=tcp"]):
            self.assertEqual(self.train("other" + how[0][-1], spec(FIXTURE["batch"]), *how)[0], one)
        half = spec(FIXTURE["batch"])
        half["train"]["last_step"] = 30
        self.train("again", half)
        self.assertEqual(self.train("again", spec(FIXTURE["batch"]))[0], one)

    def test_all_rows_follow_tensorflow(self):
        told = spec(OF_TABLE["batch"], "table")
        one, text = self.train("one", told)
        for name, wanted in OF_TABLE["final"].items():
            for got, value in zip(one[name], wanted, strict=True):
                self.assertAlmostEqual(got, value, delta=2e-5, msg=name)
        for step in (1, 17, len(OF_TABLE["losses"])):
            self.assertIn(f"step {step} of {len(OF_TABLE['losses'])}, loss {OF_TABLE['losses'][step - 1]:.4f}", text)
        for how in (["--local_ps=2", "--local_workers=1"], ["--local_ps=3", "--local_workers=1", "--transport=tcp"]):
            self.assertEqual(self.train("other" + how[0][-1], told, *how)[0], one)
        told["model"][0]["capacity"] = "dynamic"
        del told["data"]["columns"][0]["buckets"]
        (self.folder / "spec.json").write_text(json.dumps(told))
        self.assertIn("the rows of a dynamic table are those of its ids", self.run_bad("check", "spec.json"))

    def test_towers_count_the_rows_of_the_whole_batch(self):
        towers, _ = self.train("towers", spec(FIXTURE["batch"], towers=2))
        for name, wanted in FIXTURE["final"].items():
            for got, value in zip(towers[name], wanted, strict=True):
                self.assertAlmostEqual(got, value, delta=2e-5, msg=name)

    def test_a_table_of_another_node_has_its_penalty(self):
        told = spec(20, warm_start=None)
        more = {"op": "embedding", "name": "more", "inputs": ["item_id"], "dimension": 3, "table": "item", **penalty("item", "batch")}
        told["model"][4:5] = [more, {"op": "dense", "name": "wide", "units": 1}]
        (self.folder / "spec.json").write_text(json.dumps(told))
        done = self.dtrain("check", "spec.json")
        self.assertEqual(done.returncode, 0, done.stderr)  # the same said twice is the same
        more["regularizer"] = {"l2": 0.75}
        (self.folder / "spec.json").write_text(json.dumps(told))
        self.assertIn('regularizer: the table is that of "item": say it there', self.run_bad("check", "spec.json"))


if __name__ == "__main__":
    program.main()
