"""dtrain export: what a compiled model says is what predict says, row by row."""
import csv
import datetime
import json
import os
import random
import shutil
import struct
import subprocess

import program
import tool

CC = os.environ.get("CC", "cc").split()
CXX = os.environ.get("CXX", "c++").split()
COLUMNS = [
    {"column": "hash", "name": "job", "buckets": 50},
    {"column": "hash", "name": "whole", "source": "pair", "max": 2, "buckets": 1000},
    {"column": "hash", "name": "tags", "separator": "|", "max": 3, "truncate": "last", "buckets": 20},
    {"column": "vocabulary", "name": "city", "words": ["bern", "k\"öln", "oslo"], "oov_buckets": 3},
    {"column": "vocabulary", "name": "town", "source": "city", "words": ["rom", "bern"]},
    {"column": "bucketized", "name": "age_b", "source": "age", "boundaries": [18, 25.5, 40]},
    {"column": "identity", "name": "zone", "buckets": 9, "default": 0},
    {"column": "ids", "name": "list", "rows": 30, "max": 4, "truncate": "first"},
    {"column": "crossed", "name": "x1", "keys": ["job", "list"], "buckets": 100},
    {"column": "crossed", "name": "x2", "keys": ["age_b", "city", "zone", "word-cell"], "buckets": 100},
    {"column": "numeric", "name": "age", "standardize": True},
    {"column": "numeric", "name": "gain", "min": 0, "log1p": True, "scale": 0.1, "default": 2},
    {"column": "numeric", "name": "earned", "source": "gain", "min": 0, "log1p": True, "standardize": True, "default": "mean"},
    {"column": "numeric", "name": "some", "source": "tags_n", "separator": "|", "max": 3, "log1p": True, "padding": -1},
    {"column": "numeric", "name": "pair", "separator": " ", "max": 2, "scale": 0.5, "offset": 1},
]
CELLS = ["job", "tags", "city", "age", "zone", "list", "gain", "pair", "word-cell", "tags_n"]
# Ops of ids, of vectors, of kernels and of normalization; the end is one logit.
CLICKS = [
    {"op": "linear", "name": "wide", "inputs": ["job", "tags", "x1", "x2", "list", "whole"]},
    {"op": "embedding", "name": "e1", "inputs": ["tags"], "dimension": 4},
    {"op": "embedding", "name": "e2", "inputs": ["list"], "dimension": 4, "combiner": "sqrtn"},
    {"op": "embedding", "name": "e3", "inputs": ["city"], "dimension": 4, "combiner": "sum"},
    {"op": "embedding", "name": "e4", "inputs": ["age_b"], "dimension": 4},
    {"op": "embedding", "name": "e5", "inputs": ["zone"], "dimension": 4},
    {"op": "embedding", "name": "e6", "inputs": ["town"], "dimension": 4},
    {"op": "embedding", "name": "each", "inputs": ["tags"], "dimension": 4, "combiner": "none", "table": "e1"},
    {"op": "mask", "name": "there", "inputs": ["tags"]},
    {"op": "reduce", "name": "most", "inputs": ["each"], "reduction": "max", "axes": [1]},
    {"op": "transpose", "name": "turned", "inputs": ["each"], "perm": [2, 1]},
    {"op": "matmul", "name": "squares", "inputs": ["turned", "each"]},
    {"op": "slice", "name": "corner", "inputs": ["squares"], "begin": [1, 0], "size": [2, -1]},
    {"op": "pad", "name": "padded", "inputs": ["corner"], "before": [1, 0], "after": [0, 2], "value": 0.5},
    {"op": "flatten", "name": "flat", "inputs": ["padded"]},
    {"op": "split", "name": "half", "inputs": ["squares"], "parts": 2, "part": 1, "axis": 1},
    {"op": "flatten", "name": "low"},
    {"op": "indicator", "name": "which", "inputs": ["city"]},
    {"op": "indicator", "name": "how", "inputs": ["list"]},
    {"op": "stack", "name": "stacked", "inputs": ["e1", "e2", "e3", "e4", "e5", "e6"]},
    {"op": "dot_interaction", "name": "dots", "inputs": ["stacked"]},
    {"op": "factorization_machine", "name": "fm", "inputs": ["e1", "e2", "e3"]},
    {"op": "target_attention", "name": "near", "inputs": ["e1", "stacked"], "units": [3]},
    {"op": "tile", "name": "twice", "inputs": ["fm"], "multiples": [2]},
    {"op": "concat", "name": "all", "inputs": ["age", "gain", "earned", "pair", "some", "dots", "twice", "flat", "there", "most", "near", "e6", "low", "which", "how"]},
    {"op": "cross_layer", "name": "crossing", "inputs": ["all"]},
    {"op": "l2_normalize", "name": "unit"},
    {"op": "clip_by_norm", "name": "short", "norm": 0.9},
    {"op": "dense", "name": "first", "units": 12},
    {"op": "batch_normalization", "name": "normal", "momentum": 0.5},
    {"op": "swish"},
    {"op": "dropout", "rate": 0.3},
    {"op": "dense", "name": "second", "units": 8, "activation": "gelu"},
    {"op": "layer_normalization"},
    {"op": "prelu", "alpha_initializer": {"type": "constant", "value": 0.3}},
    {"op": "dice"},
    {"op": "clip", "min": -2, "max": 2},
    {"op": "softsign"},
    {"op": "dense", "name": "last", "units": 1},
    {"op": "add", "name": "sum", "inputs": ["wide", "last"]},
]
MAIN = r"""
#include <math.h>
#include <stdio.h>
#include "%(name)s.h"

int main(void)
{
    static const %(name)s_row rows[] = {
%(rows)s
    };
    float said[%(name)s_OUTPUTS];
    %(open)s
    for (unsigned long i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (isnan(%(name)s_predict(&rows[i], said)))
            printf("bad cell %%s", %(name)s_bad_cell(&rows[i]));
        else
            for (int k = 0; k < %(name)s_OUTPUTS; k++) printf("%%.9g ", said[k]);
        printf("\n");
    }
    return 0;
}
"""


def quoted(text):
    return '"' + "".join(f"\\{byte:03o}" for byte in text.encode()) + '"'


# Nothing is said before the file is open, and none is that is not the model's.
OPEN = """if (!isnan(NAME_predict(&rows[0], said))) return 2;
    if (!NAME_open("none") || !NAME_open("spec.json") || !NAME_open("other.weights")) return 3;
    if (NAME_open("FOLDER/NAME.weights")) return 4;"""


class Export(tool.ToolCase):
    def train(self, model, data, steps=40, loss="sigmoid_cross_entropy", optimizer=None, heads=None):
        spec = {"name": "a-model", "seed": 3, "data": data, "model": model, **({"heads": heads} if heads else {"loss": loss}),
                "optimizer": optimizer or {"type": "adam", "learning_rate": 0.02},
                "train": {"last_step": steps, "checkpoint_dir": "run"}}
        (self.folder / "spec.json").write_text(json.dumps(spec), encoding="utf-8")
        ended = self.dtrain("spec.json")
        self.assertEqual(ended.returncode, 0, ended.stderr)

    def compiled(self, rows, *flags, folder="c"):
        """Of each row, as text of C: a line of what the exported model prints."""
        told = self.run_ok("export", "spec.json", "--checkpoint=run", "--format=c", f"--out={folder}", *flags)
        self.assertRegex(told, r"\Ac\S*/a_model\.c: step \d+, \d+ operations, \d+ numbers")
        main = self.folder / folder / "main.c"
        beside = self.folder / folder / "a_model.weights"
        self.assertEqual(beside.exists(), "--tables_beside=true" in flags)
        code = OPEN.replace("NAME", "a_model").replace("FOLDER", folder) if beside.exists() else ""
        if code:
            data = bytearray(beside.read_bytes())
            data[8] ^= 1  # of the checksum
            (self.folder / "other.weights").write_bytes(data)
        main.write_text(MAIN % {"name": "a_model", "rows": ",\n".join(rows), "open": code})
        subprocess.run([*CC, "-std=c11", "-O1", "-Wall", "-Wextra", "-Werror", "-o", folder + "/main",
                        str(main), f"{folder}/a_model.c", "-lm"], cwd=self.folder, check=True)
        return subprocess.run([f"{folder}/main"], cwd=self.folder, check=True, capture_output=True,
                              text=True).stdout.splitlines()

    def link_from_cpp(self):
        """The header is one of C++, too, where there is a compiler."""
        if not shutil.which(CXX[0]):
            return
        (self.folder / "c/user.cc").write_text('#include "a_model.h"\n'
                                               "int main() { a_model_row row{}; return !a_model_bad_cell(&row); }\n")
        subprocess.run([*CC, "-c", "-o", "c/a_model.o", "c/a_model.c"], cwd=self.folder, check=True)
        subprocess.run([*CXX, "-Wall", "-Werror", "-o", "c/user", "c/user.cc", "c/a_model.o", "-lm"], cwd=self.folder, check=True)

    def predicted(self, *outputs):
        self.run_ok("predict", "spec.json", "--checkpoint=run", "--out=p.csv", *(f"--outputs={name}" for name in outputs))
        with open(self.folder / "p.csv", encoding="utf-8") as file:
            return [[float(value) for name, value in row.items() if name.startswith(("prob", "value", *outputs))]
                    for row in csv.DictReader(file)]

    def assert_rows(self, lines, wanted):
        self.assertEqual(len(lines), len(wanted))
        for line, row in zip(lines, wanted):
            said = [float(word) for word in line.split()]
            self.assertEqual(len(said), len(row))
            for x, y in zip(said, row):
                self.assertAlmostEqual(x, y, delta=1e-5)


class Rows(Export):
    """Cells of all kinds"""

    def write_rows(self):
        draw = random.Random(5)
        self.rows = [[draw.choice(["clerk", "a longer title than most", "", "x" * 70, "y" * 40]),
                      "|".join(draw.choice(["a", "b", "cc", "long tag"]) for _ in range(draw.randrange(6))),
                      draw.choice(["bern", "oslo", "k\"öln", "rom", ""]),
                      draw.choice(["17", "18", "25.5", "3e1", "99"]), draw.choice(["3", "8", "77", "", "-1", "1e0"]),
                      " ".join(str(draw.randrange(-1, 30)) for _ in range(draw.randrange(5))),
                      draw.choice(["", "-3", "12.5", "1e3", "0.1"]), f"{draw.random():.3f} {draw.randrange(5)}",
                      draw.choice(["", "one", "two"]), draw.choice(["", "1", "2|3", "1|0.5|4"])] for _ in range(150)]
        with open(self.folder / "rows.csv", "w", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow([*CELLS, "y"])
            writer.writerows([*row, draw.randrange(2)] for row in self.rows)

    def setUp(self):
        super().setUp()
        self.write_rows()
        source = {"format": "csv", "file": "rows.csv", "label": "y"}
        self.data = {"train": source, "eval": source, "columns": COLUMNS, "batch_size": 20}


class Cells(Rows):
    def as_c(self, rows, names=tuple(CELLS)):
        return ["{" + ", ".join(f".{name.replace('-', '_')} = {quoted(cell)}" for name, cell in zip(CELLS, row) if name in names) + "}"
                for row in rows]

    def test_cells_and_ops_of_click_models(self):
        self.train(CLICKS, self.data)
        wanted = self.predicted()
        self.assertGreater(max(wanted)[0] - min(wanted)[0], 0.1)
        self.assert_rows(self.compiled(self.as_c(self.rows)), wanted)
        self.assert_rows(self.compiled(self.as_c(self.rows), "--optimize", folder="c2"), wanted)
        self.assert_rows(self.compiled(self.as_c(self.rows), "--tables_beside=true", folder="c4"), wanted)
        bad = [list(self.rows[0]) for _ in range(4)]
        for row, (cell, text) in zip(bad, (("age", "old"), ("zone", "z"), ("pair", "1"), ("list", "30"))):
            row[CELLS.index(cell)] = text
        self.assertEqual(self.compiled(self.as_c(bad), folder="c3"),
                         ["bad cell age", "bad cell zone", "bad cell pair", "bad cell list"])

    def test_words_that_stand_for_none_and_long_separators(self):
        draw = random.Random(6)
        rows = [[draw.choice(["clerk", "NA", "-", " NA "]), draw.choice(["", "-", "NA", "a - b", "-5 - a-b - NA", "b"]), draw.choice(["NA", "1", "-", "0.5"])]
                for _ in range(60)]
        (self.folder / "rows.csv").write_text("\n".join(["job,tags,age,y", *(f"{','.join(row)},{i % 2}" for i, row in enumerate(rows))]))
        source = {"format": "csv", "file": "rows.csv", "label": "y", "missing": ["NA", "-"]}
        columns = [{"column": "hash", "name": "job", "buckets": 50}, {"column": "hash", "name": "tags", "separator": " - ", "max": 3, "buckets": 90},
                   {"column": "numeric", "name": "age", "default": 7}, {"column": "crossed", "name": "both", "keys": ["job", "tags"], "buckets": 99}]
        self.train([*({"op": "embedding", "name": f"e_{name}", "inputs": [name], "dimension": 3} for name in ("job", "tags", "both")),
                    {"op": "concat", "inputs": ["e_job", "e_tags", "e_both", "age"]}, {"op": "dense", "units": 1}],
                   {"train": source, "eval": source, "columns": columns, "batch_size": 20})
        as_c = ["{" + ", ".join(f".{name} = {quoted(cell)}" for name, cell in zip(("job", "tags", "age"), row)) + "}" for row in rows]
        self.assert_rows(self.compiled(as_c), self.predicted())

    def write_times(self, columns, rows):
        """Of a table whose first columns are times, and a model of them"""
        (self.folder / "rows.csv").write_text("\n".join(["when,ms,y", *(f"{','.join(row)},{i % 2}" for i, row in enumerate(rows))]))
        ids = [column["name"] for column in columns if column["part"] != "seconds"]
        self.train([*({"op": "embedding", "name": f"e_{name}", "inputs": [name], "dimension": 3} for name in ids),
                    {"op": "concat", "inputs": [*(f"e_{name}" for name in ids),
                                                *(column["name"] for column in columns if column["part"] == "seconds")]},
                    {"op": "dense", "units": 1}], {**self.data, "columns": columns}, steps=20)

    def test_times(self):
        draw = random.Random(9)
        forms = ["%Y-%m-%d", "%Y/%m/%d", "%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%d %H:%M:%S.5", "%Y-%m-%dT%H:%M+02:00",
                 "%Y-%m-%d %H:%M:%S -0530", "%Y-%m-%dT%H:%M:%S-11"]
        epoch = datetime.datetime(1970, 1, 1)
        days = [epoch + datetime.timedelta(seconds=draw.randrange(-3 * 10**9, 10**10)) for _ in range(150)]
        days += [datetime.datetime(year, month, day, 23, 59) for year, month, day in
                 ((2000, 2, 29), (1900, 2, 28), (1900, 3, 1), (2100, 2, 28), (1969, 12, 31), (2026, 12, 31), (1, 1, 2))]
        rows = [[day.strftime(draw.choice(forms)).rjust(10, "0"), str(draw.randrange(-10**12, 10**13))] for day in days]
        rows += [[text, "0"] for text in ("2026-03- 1  9:05", "2026- 3-31 10: 5: 7.25 +2", "2026/ 3/31T 9:05Z", "2026-03-31  +02:00",
                                          "2016-12-31 23:59:60.5", "2026-3-1 7:5")]
        rows += [["1711900800", ""], ["-86400.5", "1"], ["", "-1"]]
        scale = {"scale": 1e-10, "offset": 0.25, "default": 86400}
        columns = [{"column": "date", "name": part, "source": "when", "part": part} for part in ("hour", "weekday", "day", "month")]
        columns += [{"column": "date", "name": "s", "source": "when", "part": "seconds", **scale},
                    {"column": "date", "name": "sm", "source": "ms", "part": "seconds", "format": "milliseconds", **scale},
                    {"column": "date", "name": "m", "source": "ms", "part": "month", "format": "milliseconds", "default": 5e6}]
        self.write_times(columns, rows)
        as_c = [f"{{.when = {quoted(row[0])}, .ms = {quoted(row[1])}}}" for row in rows]
        self.assert_rows(self.compiled(as_c), self.predicted())
        bad = ["2026-02-30", "2026-13-01", "2026-03-31 24:00", "2026-03-31 10:00 +2", "20260331", "1e13", "soon", "2026-03-31T",
               "2026-03-31 10:30.5", "2026-03-31 10:30:", "2026-02-30 10:00:60", "2026-03-31 10:00+ 2", "2026-03-31 10:00++2", "2026-03-31 10:00+02:"]
        said = self.compiled([f'{{.when = {quoted(text)}, .ms = "1"}}' for text in bad], folder="c2")
        self.assertEqual(said[:3] + said[4:], ["bad cell when"] * (len(bad) - 1))
        for form, left in (("saved_model", "hour, weekday, day, month, s"), ("onnx", "s, sm")):
            told = self.run_ok("export", "spec.json", "--checkpoint=run", f"--format={form}", f"--out={form}")
            self.assertIn(f"seconds since 1970 are given of the times of these columns: {left}\n", told)
        for text in bad[8:]:
            (self.folder / "rows.csv").write_text(f"when,ms,y\n{text},1,0\n")
            self.assertIn("expected a time such as", self.run_bad("predict", "spec.json", "--checkpoint=run", "--out=-"), text)

    def test_names_of_cells_that_c_does_not_take(self):
        names = ["default", "a*/b", "a__b", "a??b", "a__b_1", "a++b", "9th", "_X", "class"]
        with open(self.folder / "rows.csv", "w", encoding="utf-8") as file:
            file.write("\n".join([",".join([*names, "y"]), *(f"{i},1,2,3,4,5,{i % 3},7,{i % 5},{i % 2}" for i in range(30))]))
        columns = [{"column": "numeric", "name": f"n{i}", "source": name} for i, name in enumerate(names)]
        self.train([
            {"op": "concat", "inputs": [column["name"] for column in columns]}, {"op": "dense", "units": 1}],
            {**self.data, "columns": columns}, steps=5)
        members = [".c_default", ".a__b", ".a__b_1", ".a__b_2", ".a__b_1_1", ".a__b_3", ".c_9th", ".c__X", ".c_class"]
        rows = ["{" + ", ".join(f'{member} = "{cell}"' for member, cell in zip(
            members, (i, 1, 2, 3, 4, 5, i % 3, 7, i % 5))) + "}" for i in range(30)]
        self.assert_rows(self.compiled(rows), self.predicted())
        self.link_from_cpp()

    def test_what_cannot_be_exported_is_named(self):
        carried = [{"op": "embedding", "name": "e", "inputs": ["tags"], "dimension": 3, "combiner": "none"},
                   {"op": "gru", "name": "steps", "units": 2, "state": "carried"}, {"op": "flatten"},
                   {"op": "dense", "units": 1}]
        self.train(carried, {**self.data, "shuffle": False}, steps=1)
        told = self.run_bad("export", "spec.json", "--checkpoint=run", "--format=c", "--out=c")
        self.assertIn('node "steps" (gru): cannot be exported: its state is carried', told)
        self.assertFalse((self.folder / "c").exists())
        self.assert_rows(self.compiled(self.as_c(self.rows[:1], ["tags"]), "--outputs=e"), self.predicted("e")[:1])  # before it
        told = self.run_bad("export", "spec.json", "--checkpoint=run", "--format=c", "--out=c2", "--outputs=f")
        self.assertIn('--outputs=f: no head and no node has this name', told)

    def test_indicators_of_many_ids(self):
        columns = [{"column": "hash", "name": "tags", "separator": "|", "max": 3, "truncate": "last", "buckets": 5000},
                   {"column": "ids", "name": "list", "rows": 3000, "max": 4, "truncate": "first"}]
        self.train([{"op": "indicator", "name": "how", "inputs": ["tags"]}, {"op": "indicator", "name": "which", "inputs": ["list"]},
                    {"op": "concat", "inputs": ["how", "which"]}, {"op": "dense", "units": 1}], {**self.data, "columns": columns})
        wanted = self.predicted()
        self.assertGreater(max(wanted)[0] - min(wanted)[0], 0.1)
        self.assert_rows(self.compiled(self.as_c(self.rows, ["tags", "list"])), wanted)
        self.assert_rows(self.compiled(self.as_c(self.rows[:20], ["list"]), "--outputs=which", folder="c2"), self.predicted("which")[:20])
        for form in ("saved_model", "onnx"):
            self.run_ok("export", "spec.json", "--checkpoint=run", f"--format={form}", f"--out={form}")

    def test_towers_are_said_where_rows_are_compared(self):
        towers = [*({"op": "embedding", "name": f"e_{name}", "inputs": [name], "dimension": 3} for name in ("job", "zone")),
                  {"op": "dense", "name": "user", "inputs": ["e_job"], "units": 4},
                  {"op": "l2_normalize", "name": "item", "inputs": ["e_zone"]},
                  {"op": "dense", "name": "what", "units": 4},
                  {"op": "in_batch_logits", "inputs": ["user", "what"], "ids": "zone", "block": 5}]
        self.train(towers, self.data, loss="softmax_cross_entropy")
        wanted = self.predicted("user", "what")
        self.assertGreater(max(wanted)[0] - min(wanted)[0], 0.1)
        self.assert_rows(self.compiled(self.as_c(self.rows, ["job", "zone"])), wanted)
        header = (self.folder / "c/a_model.h").read_text()
        self.assertIn(" * user: ret[0] to ret[3]\n * what: ret[4] to ret[7]\n", header)
        alone = self.compiled(self.as_c(self.rows, ["zone"]), "--outputs=item,what", folder="c2")
        self.assert_rows(alone, self.predicted("item", "what"))
        self.assertNotIn("*job;", (self.folder / "c2/a_model.h").read_text())
        for form in ("saved_model", "onnx"):
            self.run_ok("export", "spec.json", "--checkpoint=run", f"--format={form}", f"--out={form}")

    def test_two_outputs_of_one_name_are_refused(self):
        heads = [{"op": "embedding", "name": "e", "inputs": ["job"], "dimension": 3},
                 {"op": "dense", "name": "click/probability", "units": 2, "inputs": ["e"]},
                 {"op": "dense", "name": "logit", "units": 1, "inputs": ["click/probability"]}]
        self.train(heads, {**self.data, "columns": COLUMNS[:1]}, steps=1,
                   heads=[{"name": "click", "logits": "logit", "loss": "sigmoid_cross_entropy"}])
        for form in ("c", "onnx", "saved_model"):
            told = self.run_bad("export", "spec.json", "--checkpoint=run", f"--format={form}", f"--out={form}",
                                "--outputs=click,click/probability")
            self.assertIn('two outputs are called "click/probability": rename the node', told)
            self.assertFalse((self.folder / form).exists())
        self.run_ok("export", "spec.json", "--checkpoint=run", "--format=c", "--out=c", "--outputs=click/probability")

    def test_layers_of_many_classes_say_all_of_them(self):
        draw = random.Random(2)
        rows = [[draw.randrange(12), draw.randrange(9)] for _ in range(120)]
        (self.folder / "rows.csv").write_text("word,y\n" + "".join(f"{word},{label}\n" for word, label in rows))
        data = {**self.data, "columns": [{"column": "identity", "name": "word", "buckets": 12}]}
        as_c = [f'{{.word = "{word}"}}' for word, _ in rows]
        for loss, more in (("sampled_softmax", {}), ("nce", {"bias": False})):
            shutil.rmtree(self.folder / "run", ignore_errors=True)
            self.train([{"op": "embedding", "name": "e", "inputs": ["word"], "dimension": 5},
                        {"op": "sampled_logits", "classes": 9, "sampled": 4, **more}], data, loss=loss)
            wanted = self.predicted()
            self.assertGreater(max(wanted)[0] - min(wanted)[0], 0.1)
            self.assertEqual(len(wanted[0]), 9)
            self.assert_rows(self.compiled(as_c, folder=f"c_{loss}"), wanted)
            for form in ("saved_model", "onnx"):
                self.run_ok("export", "spec.json", "--checkpoint=run", f"--format={form}", f"--out={loss}_{form}")

    def test_words_of_a_text_are_ids(self):
        draw = random.Random(6)
        words = [draw.choice("abcdefgh") for _ in range(300)]
        (self.folder / "text").write_text(" ".join(words))
        source = {"format": "text", "file": "text", "unit": "words", "words": 6, "order": "skip_gram", "window": 1}
        self.train([{"op": "embedding", "name": "e", "dimension": 4}, {"op": "dense", "units": 7}],
                   {"train": source, "eval": {**source, "take": 50}, "batch_size": 20}, loss="softmax_cross_entropy")
        said = self.compiled([f"{{.features = {{{id}}}}}" for id in range(7)])
        self.assertEqual(sorted({tuple(float(f"{float(x):.4g}") for x in line.split()) for line in said}),
                         sorted({tuple(float(f"{x:.4g}") for x in row) for row in self.predicted()}))
        bad = self.compiled([f"{{.features = {{{id}}}}}" for id in ("7", "-2", "1.5", "NAN")], folder="c2")
        self.assertEqual(bad, ["bad cell features"] * 4)


class Sequences(Export):
    """Lists whose places have an order, masks of those that are there, and ids with weights"""
    CELLS = ["items", "liked", "counts", "target"]
    COLUMNS = [
        {"column": "ids", "name": "items", "rows": 30, "max": 6, "truncate": "last"},
        {"column": "ids", "name": "liked", "rows": 25, "max": 5, "weights": True, "truncate": "last"},
        {"column": "numeric", "name": "counts", "separator": "|", "max": 5, "padding": 0},
        {"column": "hash", "name": "target", "buckets": 20}]
    MODEL = [
        {"op": "embedding", "name": "each", "inputs": ["items"], "dimension": 8, "combiner": "none"},
        {"op": "mask", "name": "there", "inputs": ["items"]},
        {"op": "embedding", "name": "aim", "inputs": ["target"], "dimension": 8},
        *({"op": "embedding", "name": f"liked_{combiner}", "inputs": ["liked"], "dimension": 4, "combiner": combiner}
          for combiner in ("mean", "sqrtn", "sum", "none")),
        {"op": "embedding", "name": "counted", "inputs": ["liked"], "dimension": 4, "weights": "counts"},
        {"op": "linear", "name": "wide", "inputs": ["liked", "target"]},
        {"op": "lstm", "name": "l1", "inputs": ["each"], "units": 5, "mask": "there"},
        {"op": "lstm", "name": "l2", "units": 4, "output": "last", "mask": "there", "forget_bias": 0.5, "use_bias": False},
        {"op": "dense", "name": "begin", "inputs": ["aim"], "units": 3, "activation": "tanh"},
        {"op": "lstm", "name": "l3", "inputs": ["each"], "units": 3, "initial_state": "begin", "initial_cell": "begin",
         "output": "last"},
        {"op": "gru", "name": "g1", "inputs": ["each"], "units": 4},
        {"op": "flatten", "name": "flat", "inputs": ["each"]},
        {"op": "dense", "name": "near", "units": 6, "activation": "sigmoid"},
        {"op": "gru", "name": "g2", "inputs": ["g1"], "units": 3, "attention": "near", "mask": "there", "use_bias": False,
         "output": "last", "initial_state": "begin"},
        {"op": "gru", "name": "g3", "inputs": ["each"], "units": 4, "mask": "there"},
        {"op": "multi_head_attention", "name": "heads", "inputs": ["each"], "units": 8, "heads": 2, "mask": "there"},
        {"op": "multi_head_attention", "name": "before", "inputs": ["each"], "units": 8, "heads": 4, "causal": True},
        {"op": "attention", "name": "one", "inputs": ["each", "heads", "each"], "mask": "there", "causal": True},
        {"op": "softmax", "name": "shares", "inputs": ["near"], "mask": "there"},
        {"op": "reduce", "name": "mean", "inputs": ["heads"], "reduction": "mean", "axes": [1], "mask": "there"},
        {"op": "reduce", "name": "most", "inputs": ["before"], "reduction": "max", "axes": [1], "mask": "there"},
        {"op": "reduce", "name": "kept", "inputs": ["one"], "reduction": "sum", "axes": [-2], "mask": "there",
         "keep_dims": True},
        {"op": "flatten", "name": "sum"},
        {"op": "conv1d", "name": "c1", "inputs": ["each"], "filters": 3, "kernel_size": 3, "dilation_rate": 2,
         "padding": "causal", "activation": "relu"},
        {"op": "conv1d", "name": "c2", "filters": 2, "kernel_size": 2, "strides": 2, "padding": "same", "use_bias": False},
        {"op": "flatten", "name": "flat_c"},
        {"op": "flatten", "name": "flat_liked", "inputs": ["liked_none"]},
        {"op": "flatten", "name": "flat_g3", "inputs": ["g3"]},
        {"op": "concat", "inputs": ["liked_mean", "liked_sqrtn", "liked_sum", "flat_liked", "counted", "l2", "l3", "g2",
                                    "flat_g3", "flat_c", "shares", "mean", "most", "sum", "aim"]},
        {"op": "dense", "units": 8, "activation": "tanh"},
        {"op": "dense", "name": "last", "units": 1},
        {"op": "add", "inputs": ["wide", "last"]}]

    def test_recurrent_ops_attention_masks_and_weights(self):
        draw = random.Random(3)
        weight = lambda: draw.choice(["", ":0.5", ":2", ":-1", ":1e-1", ":0"])  # noqa: E731
        rows = [[" ".join(str(draw.randrange(30)) for _ in range(draw.randrange(8))),
                 " ".join(f"{draw.randrange(25)}{weight()}" for _ in range(draw.randrange(7))),
                 "|".join(f"{draw.random():.2f}" for _ in range(5)), draw.choice(["a", "b", "cc", "dd"])] for _ in range(120)]
        text = "".join(f"{','.join(row)},{draw.randrange(2)}\n" for row in rows)
        (self.folder / "rows.csv").write_text(",".join(self.CELLS) + ",y\n" + text)
        source = {"format": "csv", "file": "rows.csv", "label": "y"}
        self.train(self.MODEL, {"train": source, "eval": source, "columns": self.COLUMNS, "batch_size": 20}, steps=12)
        as_c = ["{" + ", ".join(f".{name} = {quoted(cell)}" for name, cell in zip(self.CELLS, row)) + "}" for row in rows]
        wanted = self.predicted()
        self.assertGreater(max(wanted)[0] - min(wanted)[0], 0.1)
        self.assert_rows(self.compiled(as_c), wanted)
        self.assert_rows(self.compiled(as_c, "--optimize", folder="c2"), wanted)
        for form in ("saved_model", "onnx"):
            self.run_ok("export", "spec.json", "--checkpoint=run", f"--format={form}", f"--out={form}")


class Lists(Export):
    """Of JSON lines, which need no separator"""

    def test_lists_are_texts(self):
        draw = random.Random(4)
        rows = [{"seen": [draw.randrange(-1, 20) for _ in range(draw.randrange(4))], "words": [f"w {draw.randrange(9)}" for _ in range(draw.randrange(3))],
                 "sizes": [draw.randrange(9) / 4 for _ in range(3)], "y": draw.randrange(2)} for _ in range(80)]
        (self.folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        source = {"format": "jsonl", "file": "rows.jsonl", "label": "y"}
        columns = [{"column": "identity", "name": "seen", "buckets": 20, "max": 3},
                   {"column": "identity", "name": "last", "source": "seen", "buckets": 20, "max": 2, "truncate": "last"},
                   {"column": "hash", "name": "words", "buckets": 30, "max": 2}, {"column": "numeric", "name": "sizes", "max": 3},
                   {"column": "crossed", "name": "pairs", "keys": ["words", "seen"], "buckets": 50}]
        model = [{"op": "embedding", "name": "e1", "inputs": ["seen"], "dimension": 3}, {"op": "embedding", "name": "e2", "inputs": ["words"], "dimension": 3},
                 {"op": "embedding", "name": "e3", "inputs": ["last"], "dimension": 3}, {"op": "embedding", "name": "e4", "inputs": ["pairs"], "dimension": 3},
                 {"op": "concat", "inputs": ["e1", "e2", "e3", "e4", "sizes"]}, {"op": "dense", "units": 1}]
        self.train(model, {"train": source, "eval": source, "columns": columns, "batch_size": 20}, optimizer={"type": "adagrad", "learning_rate": 0.5})
        as_c = ["{" + ", ".join(f".{name} = {quoted(between.join(map(str, row[name])))}" for name, between in
                                (("seen", " "), ("words", chr(9)), ("sizes", " "))) + "}" for row in rows]
        self.assert_rows(self.compiled(as_c), self.predicted())

    def test_words_of_several_values(self):
        """A separator means the same in a word of JSON as in a cell of CSV; words that stand for none are none in a list, too."""
        draw = random.Random(8)
        rows = [{"tags": draw.choice(["a|b", "a", ["a|b", "c"], ["NA", "c"], [], "NA", "a|NA", ["NA|c", "b"]]), "ids": draw.choice(["3:0.5 4", ["3", "4"], [3, 4], ""]), "y": i % 2}
                for i in range(60)]
        (self.folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        source = {"format": "jsonl", "file": "rows.jsonl", "label": "y", "missing": ["NA"]}
        columns = [{"column": "hash", "name": "tags", "separator": "|", "max": 3, "buckets": 50}, {"column": "ids", "name": "ids", "rows": 9, "max": 2, "weights": True}]
        self.train([{"op": "embedding", "name": "e1", "inputs": ["tags"], "dimension": 3, "combiner": "sum"}, {"op": "embedding", "name": "e2", "inputs": ["ids"], "dimension": 3},
                    {"op": "concat", "inputs": ["e1", "e2"]}, {"op": "dense", "units": 1}],
                   {"train": source, "eval": source, "columns": columns, "batch_size": 20}, optimizer={"type": "adagrad", "learning_rate": 0.5})
        text = lambda value, between: quoted(between.join(map(str, value)) if isinstance(value, list) else value)  # noqa: E731
        as_c = [f'{{.tags = {text(row["tags"], "|")}, .ids = {text(row["ids"], " ")}}}' for row in rows]
        wanted = self.predicted()
        self.assert_rows(self.compiled(as_c), wanted)
        alike = [{json.dumps(row) for row, said in zip(rows, wanted) if said == one} for one in wanted]
        self.assertGreater(len({frozenset(same) for same in alike}), 5)


class Growing(Export):
    """Tables whose rows are named by keys"""

    def test_rows_are_found_by_their_keys(self):
        draw = random.Random(1)
        rows = [[draw.choice([f"u{draw.randrange(40)}", ""]),
                 "|".join(f"t{draw.randrange(30)}" for _ in range(draw.randrange(4))),
                 " ".join(str(draw.choice([draw.randrange(50), draw.randrange(1 << 40), 0, (1 << 63) - draw.randrange(3), (1 << 64) - draw.randrange(1, 9)]))
                          for _ in range(draw.randrange(4)))] for _ in range(200)]
        text = "".join(f"{','.join(row)},{draw.randrange(2)}\n" for row in rows)
        (self.folder / "rows.csv").write_text("user,tags,any,y\n" + text)
        source = {"format": "csv", "file": "rows.csv", "label": "y"}
        columns = [{"column": "hash", "name": "user"}, {"column": "hash", "name": "tags", "separator": "|", "max": 4},
                   {"column": "ids", "name": "any", "max": 4}]
        table = {"op": "embedding", "dimension": 3, "capacity": "dynamic"}
        model = [{**table, "name": "e1", "inputs": ["user"]},
                 {**table, "name": "e2", "inputs": ["tags"], "combiner": "none", "admit_after": 2},
                 {**table, "name": "e3", "inputs": ["any"]}, {"op": "flatten", "name": "flat", "inputs": ["e2"]},
                 {"op": "concat", "inputs": ["e1", "flat", "e3"]}, {"op": "dense", "units": 1}]
        self.train(model, {"train": {**source, "take": 150}, "eval": source, "columns": columns, "batch_size": 20},
                   steps=30, optimizer={"type": "adagrad", "learning_rate": 0.5})
        as_c = ["{" + ", ".join(f".{name} = {quoted(cell)}" for name, cell in zip(["user", "tags", "any"], row)) + "}"
                for row in rows]
        wanted = self.predicted()
        self.assertGreater(max(wanted)[0] - min(wanted)[0], 0.1)
        self.assert_rows(self.compiled(as_c, "--tables_beside=true"), wanted)
        self.assert_rows(self.compiled(as_c), wanted)  # in the same folder, where no weights are left
        other = self.folder / "c/a_model.weights"
        other.write_bytes(b"of another program")
        self.run_ok("export", "spec.json", "--checkpoint=run", "--format=c", "--out=c")
        self.assertEqual(other.read_bytes(), b"of another program")


class Images(Export):
    MODEL = [
        {"op": "reshape", "shape": [6, 6, 2]},
        {"op": "augment", "crop": [5, 8], "pad": 2, "flip": True, "brightness": 0.1},
        {"op": "standardize"},
        {"op": "conv2d", "name": "a", "filters": 4, "kernel_size": 3, "padding": "same", "strides": 2, "groups": 2},
        {"op": "batch_normalization", "name": "n1"},
        {"op": "relu6"},
        {"op": "lrn", "depth_radius": 1, "bias": 0.8, "alpha": 0.3, "beta": 0.75},
        {"op": "separable_conv2d", "name": "b", "filters": 6, "kernel_size": 2, "padding": "same", "activation": "elu"},
        {"op": "conv2d", "name": "c", "filters": 6, "kernel_size": [2, 1], "dilation_rate": 2, "padding": "same",
         "use_bias": False},
        {"op": "batch_normalization", "name": "n2", "scale": False},
        {"op": "leaky_relu", "alpha": 0.1},
        {"op": "avg_pool", "name": "p", "pool_size": 2, "strides": 1, "padding": "same"},
        {"op": "max_pool", "pool_size": 2, "padding": "same"},
        {"op": "depthwise_conv2d", "kernel_size": 2, "padding": "same", "depth_multiplier": 2, "activation": "selu"},
        {"op": "global_avg_pool"},
        {"op": "dense", "units": 3},
    ]

    def test_images_as_they_are_stored(self):
        draw = random.Random(7)
        rows = [[draw.randrange(256) for _ in range(72)] for _ in range(40)]
        text = "".join(f"{','.join(map(str, row))},{sum(row) % 3}\n" for row in rows)
        (self.folder / "rows.csv").write_text(text)
        source = {"format": "csv", "file": "rows.csv", "header": False, "label": -1}
        self.train(self.MODEL, {"train": source, "eval": source, "batch_size": 8, "scale": 0.00392156863, "offset": -0.5},
                   loss="softmax_cross_entropy")
        as_c = ["{.features = {" + ", ".join(map(str, row)) + "}}" for row in rows]
        wanted = self.predicted()
        self.assert_rows(self.compiled(as_c), wanted)
        self.assert_rows(self.compiled(as_c, "--optimize", folder="c2"), wanted)

    def test_transposed_convolutions(self):
        draw = random.Random(8)
        rows = [[draw.randrange(256) for _ in range(24)] for _ in range(40)]
        text = "".join(f"{','.join(map(str, row))},{sum(row) % 3}\n" for row in rows)
        (self.folder / "rows.csv").write_text(text)
        source = {"format": "csv", "file": "rows.csv", "header": False, "label": -1}
        model = [{"op": "reshape", "shape": [3, 4, 2]},
                 {"op": "conv2d_transpose", "name": "a", "filters": 3, "kernel_size": 3, "strides": 2, "padding": "same", "activation": "relu"},
                 {"op": "conv2d_transpose", "name": "b", "filters": 4, "kernel_size": [3, 2], "strides": [1, 2]},
                 {"op": "batch_normalization"},
                 {"op": "conv2d_transpose", "name": "c", "filters": 2, "kernel_size": 2, "strides": 3, "use_bias": False},
                 {"op": "conv2d_transpose", "name": "d", "filters": 2, "kernel_size": 4},
                 {"op": "max_pool", "pool_size": 4}, {"op": "dense", "name": "e", "units": 2}, {"op": "flatten"}, {"op": "dense", "units": 3}]
        self.train(model, {"train": source, "eval": source, "batch_size": 8, "scale": 0.00392156863, "offset": -0.5}, loss="softmax_cross_entropy")
        as_c = ["{.features = {" + ", ".join(map(str, row)) + "}}" for row in rows]
        wanted = self.predicted()
        self.assert_rows(self.compiled(as_c), wanted)
        self.assert_rows(self.compiled(as_c, "--optimize", folder="c2"), wanted)
        self.assert_rows(self.compiled(as_c, "--outputs=d", folder="c3"), self.predicted("d"))


def fields(message):
    """Of a protocol buffer: number and content of each field."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            value |= (message[at] & 127) << shift
            at, shift = at + 1, shift + 7
            if message[at - 1] < 128:
                return value
    while at < len(message):
        key = varint()
        size = {0: None, 1: 8, 2: -1, 5: 4}[key & 7]
        if size is None:
            yield key >> 3, varint()
            continue
        size = varint() if size < 0 else size
        yield key >> 3, message[at:at + size]
        at += size


def listed(message, number):
    return [value for field, value in fields(message) if field == number]


def mapped(message, number):
    """The entries of a map, keys as text"""
    return {listed(entry, 1)[0].decode(): listed(entry, 2)[0] for entry in listed(message, number)}


def strings(node):
    """Of a Const of texts"""
    return [text.decode() for text in listed(listed(mapped(node, 5)["value"], 8)[0], 8)]


class SavedModel(Export):
    """Its form; that TensorFlow says the same is what tests/fixtures/make_saved_model.py has found, and
    tests/interop/saved_model_check.py finds of any model."""

    def exported(self, *flags, out="m"):
        told = self.run_ok("export", "spec.json", "--checkpoint=run", "--format=saved_model", f"--out={out}", *flags)
        self.assertRegex(told, rf"\A{out}/\d+: step \d+, \d+ operations, \d+ numbers")
        (folder,) = (self.folder / out).iterdir()
        return folder

    def check_graph(self, folder):
        """Each node by its name; all that is named is there, before it is read."""
        (meta,) = listed((folder / "saved_model.pb").read_bytes(), 2)
        nodes = {}
        for node in listed(listed(meta, 2)[0], 1):
            for name in listed(node, 3):
                self.assertIn(name.decode().lstrip("^").split(":")[0], nodes)
            name = listed(node, 1)[0].decode()
            self.assertNotIn(name, nodes)
            nodes[name] = node
        signatures = mapped(meta, 5)
        for signature in signatures.values():
            for tensors in (mapped(signature, 1), mapped(signature, 2)):
                for tensor in tensors.values():
                    self.assertIn(listed(tensor, 1)[0].decode().split(":")[0], nodes)
        (restore,) = [node for node in nodes.values() if listed(node, 2) == [b"RestoreV2"]]
        names = strings(nodes[listed(restore, 3)[1].decode().split(":")[0]])
        shown = self.run_ok("checkpoint", "show", str(folder / "variables/variables"))
        self.assertEqual(sorted(names), [line.split()[0] for line in shown.splitlines()[1:]])
        return signatures

    def test_the_graph_is_the_one_that_tensorflow_has_run(self):
        fixture = program.FIXTURES / "saved_model"
        shutil.copytree(fixture, self.folder, dirs_exist_ok=True)
        folder = self.exported()
        self.assertEqual(folder.name, "20")
        self.assertEqual((folder / "saved_model.pb").read_bytes(), (fixture / "saved_model.pb").read_bytes())
        self.check_graph(folder)
        said = json.loads((fixture / "said.json").read_text())
        self.assert_rows([str(x) for x in said], self.predicted())
        tables = [self.table(prefix, "zones/embedding_weights") for prefix in ("run", f"{folder}/variables/variables")]
        # rows lie as they come, part behind part
        self.assertEqual([row[1:] for row in tables[0]], [row[1:] for row in tables[1]])
        self.assertEqual([row[0] for row in tables[1]], [str(i) for i in range(11)])

    def table(self, prefix, name):
        self.run_ok("checkpoint", "rows", prefix, name, "rows_of.csv")
        return [line.split(",") for line in (self.folder / "rows_of.csv").read_text().splitlines()[1:]]

    def test_signatures_of_cells_and_of_features(self):
        shutil.copytree(program.FIXTURES / "saved_model", self.folder, dirs_exist_ok=True)
        signatures = self.check_graph(self.exported("--optimize", out="deep/er/m"))
        types = {name: listed(tensor, 2)[0] for name, tensor in mapped(signatures["serving_default"], 1).items()}
        self.assertEqual(types, {"user": 7, "zone": 9, "city": 7, "tags": 7, "near": 7, "seen": 7, "age": 2})
        self.assertEqual(list(mapped(signatures["parse_example"], 1)), ["examples"])
        for signature in signatures.values():
            self.assertEqual(list(mapped(signature, 2)), ["probability"])

    def test_a_version_is_never_replaced_and_nothing_is_left(self):
        shutil.copytree(program.FIXTURES / "saved_model", self.folder, dirs_exist_ok=True)
        folder = self.exported()
        told = self.run_bad("export", "spec.json", "--checkpoint=run", "--format=saved_model", "--out=m")
        self.assertIn("m/20: this version is there already", told)
        self.assertEqual([path.name for path in folder.parent.iterdir()], ["20"])
        (self.folder / "file").write_text("")
        told = self.run_bad("export", "spec.json", "--checkpoint=run", "--format=saved_model", "--out=file", code=1)
        self.assertIn("file", told)
        told = self.run_bad("export", "spec.json", "--checkpoint=run", "--format=saved_model", "--out=-")
        self.assertIn("several files are written: name a folder", told)


class Onnx(Rows):
    """Its form; tests/interop/onnx_check.py holds what onnxruntime says against predict."""
    COLUMNS = [column for column in COLUMNS if column["column"] != "crossed"]
    MODEL = [{**CLICKS[0], "inputs": ["job", "tags", "list"]}, *CLICKS[1:]]
    TYPES = {"job": 7, "tags": 7, "city": 7, "town": 7, "age_b": 11, "zone": 7, "list": 7, "age": 11, "gain": 11, "earned": 11, "pair": 11,
             "some": 11}

    def exported(self, *flags, out="m"):
        told = self.run_ok("export", "spec.json", "--checkpoint=run", "--format=onnx", f"--out={out}", *flags)
        self.assertRegex(told, rf"\A{out}/a_model.onnx: step \d+, \d+ operations, \d+ numbers")
        return told, (self.folder / out / "a_model.onnx").read_bytes()

    def check_graph(self, model):
        """Inputs with their types; all that is named is there, before it is read."""
        (graph,) = listed(model, 7)
        tensors, there = {}, {name for given in listed(graph, 11) for name in listed(given, 1)}
        for tensor in listed(graph, 5):
            there |= set(listed(tensor, 8))
            tensors[listed(tensor, 8)[0]] = tensor
        for node in listed(graph, 1):
            self.assertLessEqual(set(listed(node, 1)), there)
            self.assertFalse(set(listed(node, 2)) & there)
            there |= set(listed(node, 2))
        for said in listed(graph, 12):
            self.assertIn(listed(said, 1)[0], there)
        types = {listed(given, 1)[0].decode(): listed(listed(listed(given, 2)[0], 1)[0], 1)[0]
                 for given in listed(graph, 11)}
        return types, tensors

    def test_inputs_are_columns_and_tables_may_lie_beside(self):
        self.train(self.MODEL, {**self.data, "columns": self.COLUMNS}, steps=3)
        told, model = self.exported()
        self.assertIn("left to the client: job (hash), tags (hash), city (vocabulary), town (vocabulary)\n", told)
        types, tensors = self.check_graph(model)
        self.assertEqual(types, self.TYPES)
        _, beside = self.exported("--tables_beside=true", out="apart")
        _, other = self.check_graph(beside)
        data = (self.folder / "apart/a_model.onnx.data").read_bytes()
        places = {}
        for name, tensor in other.items():
            entries = {listed(entry, 1)[0].decode(): listed(entry, 2)[0].decode() for entry in listed(tensor, 13)}
            if entries:
                self.assertEqual((entries["location"], listed(tensor, 14)), ("a_model.onnx.data", [1]))
                places[name] = (int(entries["offset"]), int(entries["length"]))
        self.assertEqual(len(places), 9)  # tables
        self.assertEqual(sum(length for _, length in places.values()), len(data))
        for name, (offset, length) in places.items():
            self.assertEqual(data[offset:offset + length], listed(tensors[name], 9)[0])
        self.exported(out="apart")
        self.assertEqual([path.name for path in (self.folder / "apart").iterdir()], ["a_model.onnx"])

    def test_layers_of_many_classes_lie_beside_too(self):
        model = [{"op": "embedding", "name": "e", "inputs": ["zone"], "dimension": 8},
                 {"op": "sampled_logits", "name": "s", "classes": 10000, "sampled": 4}]
        self.train(model, {**self.data, "columns": self.COLUMNS}, loss="sampled_softmax", steps=1)
        self.exported("--tables_beside=true")
        floats = struct.unpack("<80072f", (self.folder / "m/a_model.onnx.data").read_bytes())
        self.run_ok("checkpoint", "rows", "run", "s/weights", "rows_of.csv")
        rows = [[float(x) for x in line.split(",")] for line in (self.folder / "rows_of.csv").read_text().splitlines()[1:]]
        for i, *row in (rows[0], rows[1], rows[-1]):
            for k, x in enumerate(row):
                self.assertAlmostEqual(floats[72 + k * 10000 + int(i)], x, delta=1e-6)  # behind the 9 rows of zones

    def test_keys_of_tables_that_grow_ascend(self):
        shutil.copytree(program.FIXTURES / "saved_model", self.folder, dirs_exist_ok=True)
        self.run_ok("export", "spec.json", "--checkpoint=run", "--format=onnx", "--out=m")
        _, tensors = self.check_graph((self.folder / "m/exported.onnx").read_bytes())
        table = sorted(int(row[0]) for row in self.table("run", "users/embedding_weights"))
        listed_numbers = [struct.unpack(f"<{len(listed(tensor, 9)[0]) // 8}q", listed(tensor, 9)[0])
                          for tensor in tensors.values() if listed(tensor, 2) == [7] and listed(tensor, 9)]
        self.assertIn(tuple(table), listed_numbers)

    def table(self, prefix, name):
        self.run_ok("checkpoint", "rows", prefix, name, "rows_of.csv")
        return [line.split(",") for line in (self.folder / "rows_of.csv").read_text().splitlines()[1:]]


if __name__ == "__main__":
    program.main()
