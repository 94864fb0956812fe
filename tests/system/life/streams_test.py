"""Data that are read as a stream: the values that memory gives, and a run that is ended and started
again is the run that was never ended."""
import shutil

import program
from life import LifeCase

ROWS = 6000
PARTS = 3
STREAM = {"stream": "always", "shuffle_rows": 700}


def source(**more):
    return {"format": "csv", "file": "part-*.csv", "label": "y", **more}


def run_of_numbers(**more):
    """The same without columns of cells: of the numbers alone."""
    return {
        "data": {
            "train": source(columns=["x"], **more),
            "eval": source(columns=["x"], take=100),
            "batch_size": 20,
        },
        "model": [{"op": "dense", "name": "logits", "units": 3}],
    }


def run_of(**more):
    """The changes that make a model of words and a number out of life's."""
    return {
        "data": {
            "train": source(**more),
            "eval": source(take=100),
            "columns": [{"column": "numeric", "name": "x"},
                        {"column": "hash", "name": "word", "buckets": 50}],
            "batch_size": 20,
        },
        "model": [
            {"op": "embedding", "name": "words", "inputs": ["word"], "dimension": 4},
            {"op": "concat", "inputs": ["words", "x"]},
            {"op": "dense", "name": "logits", "units": 3},
        ],
    }


class Streams(LifeCase):
    def setUp(self):
        super().setUp()
        for part in range(PARTS):
            rows = range(part, ROWS, PARTS)
            lines = [f"{i / ROWS},word {i * i % 97},{i % 3}\n" for i in rows]
            (self.folder / f"part-{part}.csv").write_text("x,word,y\n" + "".join(lines))

    def compare(self, first_ps, second_ps, workers, changes):
        for folder in ("whole", "run"):
            shutil.rmtree(self.folder / folder, ignore_errors=True)
        self.train(400, ps=2 if workers > 1 else 0, workers=workers, train__checkpoint_dir="whole",
                   **changes)
        self.train(130, ps=first_ps, workers=workers, **changes)
        text = self.train(400, ps=second_ps, workers=workers, **changes)
        self.assertRegex(text, r"a stream of 3 files, shuffle buffers of 700 rows")
        self.assertRegex(text, r"begins from \S+/run/model.ckpt-130, step 130\n")
        self.assert_same("whole", "run")

    def test_a_process_goes_on_where_it_ended(self):
        self.compare(0, 0, workers=1, changes=run_of(**STREAM))

    def test_workers_go_on_with_any_number_of_ps(self):
        self.compare(1, 3, workers=2, changes=run_of(**STREAM))

    def test_numbers_without_columns_are_streams_too(self):
        self.compare(1, 2, workers=2, changes=run_of_numbers(**STREAM))

    def test_indexes_lie_beside_the_checkpoints(self):
        self.train(10, ps=0, workers=1, **run_of(**STREAM))
        self.train(20, ps=0, workers=1, **run_of(**STREAM))
        self.assertEqual(len(list((self.folder / "run").glob("rows-*"))), PARTS)

    def test_rows_in_order_are_those_of_memory(self):
        self.compare_with_memory(run_of())

    def test_rows_of_numbers_in_order_are_those_of_memory(self):
        self.compare_with_memory(run_of_numbers())

    def compare_with_memory(self, changes):
        changes["data"]["shuffle"] = False
        self.train(400, ps=0, workers=1, train__checkpoint_dir="whole", **changes)
        changes["data"]["train"].update(STREAM)
        self.train(400, ps=0, workers=1, **changes)
        self.assert_same("whole", "run")

    def test_a_row_that_is_broken_ends_the_run_with_its_place(self):
        with open(self.folder / "part-1.csv", "a", encoding="utf-8") as file:
            file.write("none,word,1\n")
        ended = self.attempt(400, ps=0, workers=1, **run_of(**STREAM))
        self.assertEqual(ended.returncode, program.BAD_INPUT)
        self.assertRegex(ended.stdout, r"part-1.csv: line 2002: column \"x\": expected a number")


if __name__ == "__main__":
    program.main()
