"""The Adult example from TFRecords that are read as a stream: loss by loss what it is from CSV in memory."""
import json
import random
import struct

import made
import program
from made import field

ROWS, STEPS, BATCH = 3000, 90, 50
WORDS = {"workclass": ["Private", "State-gov", "?"], "education": ["Bachelors", "HS-grad", "Masters"],
         "marital_status": ["Never-married", "Divorced"], "occupation": ["Sales", "Craft-repair", "?"],
         "relationship": ["Husband", "Own-child"], "race": ["White", "Black"], "sex": ["Male", "Female"],
         "native_country": ["United-States", "Cuba", "?"], "income": ["<=50K", ">50K"]}
NUMBERS = {"age": 90, "fnlwgt": 400000, "education_num": 16, "capital_gain": 9000, "capital_loss": 2000,
           "hours_per_week": 80}


def feature(value):
    if isinstance(value, str):
        return field(1, field(1, value.encode()))
    return field(2, field(1, struct.pack("<f", value)))


class Records(program.FolderCase):
    def setUp(self):
        super().setUp()
        draw = random.Random(1)
        self.spec = json.loads((program.ROOT / "examples" / "adult_wide_deep.json").read_text())
        names = self.spec["data"]["train"]["names"]
        rows = [{name: draw.choice(WORDS[name]) if name in WORDS else draw.randrange(NUMBERS[name])
                 for name in names} for _ in range(ROWS)]
        lines = [", ".join(str(row[name]) for name in names) + "\n" for row in rows]
        (self.folder / "adult.data").write_text("".join(lines))
        for part in range(3):
            records = [made.record({name: feature(value) for name, value in row.items()})
                       for row in rows[part * ROWS // 3:(part + 1) * ROWS // 3]]
            (self.folder / f"adult-{part}.tfrecord").write_bytes(b"".join(records))

    def losses(self, **source):
        self.spec["data"] |= {"eval": None, "shuffle": False, "batch_size": BATCH}
        self.spec["data"]["train"] = source
        self.spec["train"] = {"last_step": STEPS, "log_every_steps": 1}
        (self.folder / "spec.json").write_text(json.dumps(self.spec))
        ended = program.run(["--metrics_file=metrics", "spec.json"], self.folder)
        self.assertEqual(ended.returncode, 0, ended.stdout + ended.stderr)
        lines = (self.folder / "metrics").read_text().splitlines()
        return [json.loads(line)["loss"] for line in lines], ended.stdout + ended.stderr

    def test_records_make_the_curve_of_the_table(self):
        table, _ = self.losses(**self.spec["data"]["train"])
        records, said = self.losses(format="tfrecord", file="adult-*.tfrecord", label="income",
                                    positive=">50K", stream="always", shuffle_rows=500)
        self.assertIn("a stream of 3 files, shuffle buffers of 500 rows", said)
        self.assertEqual(len(table), STEPS)
        self.assertEqual(table, records)


if __name__ == "__main__":
    program.main()
