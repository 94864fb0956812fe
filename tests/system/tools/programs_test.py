"""Every spec of examples/programs is one that `dtrain check` takes, and trains, on a few rows made for it."""
import gzip
import json
import math
import random
import shutil
import struct
from pathlib import Path

import images_test
import program
import tool

PROGRAMS = Path(__file__).resolve().parents[3] / "examples" / "programs"
ROWS, LINES_MAX = 8, 60
STEPS, BATCH, BUCKETS = 2, 4, 1000  # of a run
WORDS = 70001  # more than any program keeps
WORDS_OF_PTB = 9999  # and ends of lines


def criteo(draw):
    return "\t".join([str(draw.randrange(2))] + [str(draw.randrange(9)) for _ in range(13)] + ["%08x" % draw.randrange(99) for _ in range(26)])


def review(draw):
    seen = range(draw.randrange(1, 5))
    return json.dumps({"click": draw.randrange(2), "item": draw.randrange(99), "group": draw.randrange(9),
                       "items": [draw.randrange(99) for _ in seen], "groups": [draw.randrange(9) for _ in seen]})


def images(draw):
    return b"".join(bytes([draw.randrange(10)]) + draw.randbytes(32 * 32 * 3) for _ in range(ROWS))


def idx(draw, *shape):
    head = struct.pack(f">BBBB{len(shape)}I", 0, 0, 8, len(shape), *shape)
    return gzip.compress(head + bytes(draw.randrange(10) for _ in range(math.prod(shape))))


def framed(draw, source):
    """tf.Examples of one image each, as their own column names it."""
    cell = "image/encoded" if source["label"] == "image/class/label" else "image_raw"
    image = images_test.png(draw.randbytes(30 * 40 * 3), 30, 40) if cell == "image/encoded" else draw.randbytes(28 * 28)
    return b"".join(images_test.record({cell: image, source["label"]: 1 + i}) for i in range(ROWS))


MADE = {
    "jsonl": lambda draw: [review(draw) for _ in range(ROWS)],
    "criteo": lambda draw: [criteo(draw) for _ in range(ROWS)],
    "rows.csv": lambda draw: [",".join(["click", "buy", *(f"x{i}" for i in range(1, 9)), *(f"C{i}" for i in range(1, 9))])] +
                             [",".join([str(i % 2), str(i % 3 % 2), *(str(draw.random()) for _ in range(8)), *(str(draw.randrange(9)) for _ in range(8))])
                              for i in range(ROWS)],
    "::": lambda draw: [f"{draw.randrange(1, 9)}::{draw.randrange(1, 9)}::{draw.randrange(1, 6)}::978300760" for _ in range(ROWS)],
    "libsvm": lambda draw: [f"{i % 2} 1:0.5 {draw.randrange(2, 99)}:1" for i in range(ROWS)],
    "slots": lambda draw: [f"{i % 2}:1 " + " ".join(f"{draw.randrange(1 << 64)}:{slot}" for slot in range(2, 302)) for i in range(ROWS)],
}


def make(source, folder, draw):
    """The files of a source."""
    if source["format"] == "idx":
        (folder / source["features"]).write_bytes(idx(draw, ROWS, 28, 28))
        (folder / source["labels"]).write_bytes(idx(draw, ROWS))
        return
    name = source["file"].replace("*", "0")
    if source["format"] == "tfrecord":
        (folder / name).write_bytes(framed(draw, source))
        return
    if source["format"] == "records":
        (folder / name).write_bytes(images(draw))
        return
    if source["format"] == "text":
        count = WORDS if "words" in source else WORDS_OF_PTB
        (folder / name).write_text(" ".join(f"w{i}" for i in range(count)) + "\n", encoding="utf-8")
        return
    lines = MADE.get(source["format"]) or MADE[source.get("delimiter", name)]
    (folder / name).write_text("\n".join(lines(draw)) + "\n", encoding="utf-8")


def shortened(spec):
    """The same model, of few rows, that is trained for a moment; lanes of a text are a batch."""
    short = json.loads(json.dumps(spec))
    for column in short["data"].get("columns", []):
        if isinstance(column.get("buckets"), int):  # and not a name
            column["buckets"] = min(column["buckets"], BUCKETS)
    if short["data"]["train"]["format"] != "text":
        short["data"]["batch_size"] = BATCH
    short["train"].pop("epochs", None)
    short["train"]["last_step"] = STEPS
    return short


class Programs(tool.ToolCase):
    def train(self, spec):
        (self.folder / "short.json").write_text(json.dumps(shortened(spec)), encoding="utf-8")
        ended = self.dtrain("--result=result.json", "short.json")
        self.assertEqual(ended.returncode, 0, ended.stderr)
        result = json.loads((self.folder / "result.json").read_text(encoding="utf-8"))
        self.assertEqual((result["verdict"], result["step"], result["trained"]), ("done", STEPS, STEPS))
        self.assertEqual(bool(result["metrics"]), "eval" in spec["data"])
        for name, value in (result["metrics"] or {}).items():
            self.assertTrue(value is None or math.isfinite(value), name)

    def test_every_program_is_taken_and_trains(self):
        specs = sorted(PROGRAMS.glob("*.json"))
        page = (PROGRAMS / "README.md").read_text(encoding="utf-8")
        self.assertTrue(specs)
        for path in specs:
            with self.subTest(spec=path.name):
                text = path.read_text(encoding="utf-8")
                if "image/encoded" in text and not images_test.reads_png(self):
                    continue
                self.assertLessEqual(len(text.splitlines()), LINES_MAX)
                self.assertIn(f"`{path.name}`", page)
                spec = json.loads(text)
                for part in ("train", "eval"):
                    if part in spec["data"]:
                        make(spec["data"][part], self.folder, random.Random(3))
                shutil.copy(path, self.folder)
                ended = self.dtrain("check", path.name)
                self.assertEqual((ended.returncode, ended.stdout[-4:]), (0, "\nok\n"), ended.stderr)
                self.train(spec)


if __name__ == "__main__":
    program.main()
