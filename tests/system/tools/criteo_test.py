"""examples/criteo_dlrm.json trains on rows of Criteo's form, in whichever form they are given."""
import json
import pathlib
import random

import program
import tool

EXAMPLE = pathlib.Path(__file__).parents[3] / "examples" / "criteo_dlrm.json"
NUMBERS = [f"I{i}" for i in range(1, 14)]
WORDS = [f"C{i}" for i in range(1, 27)]


def make_row(draw):
    """Its label says something of the first words, so that there is something to learn."""
    numbers = ["" if draw.random() < 0.2 else str(draw.randrange(-2, 100)) for _ in NUMBERS]
    words = [draw.randrange(8) for _ in WORDS]
    label = int(words[0] + words[1] > 7)
    return [str(label), *numbers, *("" if word == 7 else f"{word * 0x1234567:08x}" for word in words)]


class Criteo(tool.ToolCase):
    def setUp(self):
        super().setUp()
        draw = random.Random(1)
        rows = [make_row(draw) for _ in range(600)]
        for first, name in ((0, "day_0"), (300, "day_1")):
            lines = ["\t".join(row) + "\n" for row in rows[first:first + 300]]
            (self.folder / name).write_text("".join(lines))
        with open(self.folder / "rows.jsonl", "w", encoding="utf-8") as file:
            for row in rows:
                cells = dict(zip(["label", *NUMBERS, *WORDS], row, strict=True))
                file.write(json.dumps({name: cell or None for name, cell in cells.items()}) + "\n")

    def train(self, **source):
        """The result of the example with small tables and few rows."""
        spec = json.loads(EXAMPLE.read_text())
        for column in spec["data"]["columns"]:
            if column["column"] == "hash":
                column["buckets"] = 50
        spec["data"]["train"] = {**source, "take": 500}
        spec["data"]["eval"] = {**source, "skip": 500}
        spec["data"]["batch_size"] = 50
        spec["optimizer"] = {"type": "adagrad", "learning_rate": 0.1}
        spec["train"] = {"last_step": 120}
        (self.folder / "spec.json").write_text(json.dumps(spec))
        ended = self.dtrain("--threads=1", "--result=run.json", "spec.json")
        self.assertEqual(ended.returncode, 0, ended.stderr)
        return json.loads((self.folder / "run.json").read_text())["metrics"]

    def test_the_same_rows_in_three_forms(self):
        metrics = self.train(format="criteo", file=["day_0", "day_1"])
        self.assertGreater(metrics["auc"], 0.6)
        names = ["label", *NUMBERS, *WORDS]
        self.assertEqual(metrics, self.train(format="csv", file="day_*", header=False, delimiter="\t",
                                             label="label", names=names))
        self.assertEqual(metrics, self.train(format="jsonl", file="rows.jsonl", label="label"))

    def test_the_example_as_it_stands(self):
        """But for the rows, of which there are not millions here."""
        self.run_ok("check", f"--data_dir={self.folder}", "--set=data.train.file=day_0",
                    "--set=data.eval.file=day_1", "--set=data.train.skip=0", "--set=data.train.take=0",
                    "--set=data.eval.take=0", str(EXAMPLE))


if __name__ == "__main__":
    program.main()
