"""`dtrain stats`: what is in the data of a spec, as a table, as JSON, and as files that a spec can name."""
import gzip
import json
import statistics

import program
import tool

MODEL = {"model": [{"op": "dense", "units": 2}], "loss": "softmax_cross_entropy",
         "optimizer": {"type": "adam", "learning_rate": 0.1}, "train": {"last_step": 4}}


class Stats(tool.ToolCase):
    def spec(self, train, **data):
        (self.folder / "spec.json").write_text(json.dumps(
            {**MODEL, "data": {"train": train, "batch_size": 4, **data}}))

    def cells(self, *flags):
        """By name, as --json has them."""
        told = json.loads(self.run_ok("stats", "--json", *flags, "spec.json"))
        return told["rows"], {cell["name"]: cell for cell in told["cells"]}

    def table(self):
        rows = [(age, job, age % 2) for age in range(20, 60) for job in ("clerk", "?", "a b", "clerk")]
        text = "age,job,y\n" + "".join(f"{age},{job},{y}\n" for age, job, y in rows) + ",,0\n"
        (self.folder / "rows.csv").write_text(text)
        self.spec({"format": "csv", "file": "rows.csv", "label": "y", "except": ["job"]})
        return [age for age, _, _ in rows]

    def test_files_without_a_spec(self):
        """All cells of them, words for missing ones by name; counts of words on demand."""
        (self.folder / "p-1.csv").write_text('key,colour,x\n1,red,NA\n2,"blue, dark",3\n3,red,\\N\n')
        (self.folder / "p-2.csv").write_text("key,colour,x\n4,red,1\n")
        told = json.loads(self.run_ok("stats", "--json", "p-*.csv"))
        self.assertEqual([(cell["name"], cell["missing"], cell["distinct"]) for cell in told["cells"]],
                         [("key", 0, 4), ("colour", 0, 2), ("x", 2, 2)])
        self.run_ok("stats", "--out=counted", "--counts", "p-1.csv")
        self.assertEqual((self.folder / "counted/colour.counts.txt").read_text(), "2\tred\n1\tblue, dark\n")
        self.assertEqual((self.folder / "counted/colour.words.txt").read_text(), "red\nblue, dark\n")
        self.assertIn('red 2, "blue, dark" 1\n', self.run_ok("stats", "p-1.csv"))
        (self.folder / "q.csv").write_text('x\n"a ""b"", c"\n"an ""e"""\n')
        self.assertIn('"a ""b"", c" 1, an "e" 1\n', self.run_ok("stats", "q.csv"))
        (self.folder / "p.jsonl").write_text('{"a": 1, "b": "u"}\n{"a": 2}\n')
        told = json.loads(self.run_ok("stats", "--json", "p.jsonl"))
        self.assertEqual([(cell["name"], cell["missing"]) for cell in told["cells"]], [("a", 0), ("b", 1)])

    def test_a_folder_is_what_lies_in_it(self):
        (self.folder / "rows").mkdir()
        for name, line in (("p-1", '{"a": 1}\n'), ("p-2", '{"a": 4}\n')):
            (self.folder / f"rows/{name}.jsonl").write_text(line)
        (self.folder / "rows/_SUCCESS").write_text("")
        elsewhere = f"--data_dir={self.folder}"
        for words in (["rows"], ["rows/"], ["rows/p*"], [elsewhere, "rows"], [str(self.folder / "rows")]):
            told = json.loads(self.run_ok("stats", "--json", *words))
            self.assertEqual((told["rows"], [cell["name"] for cell in told["cells"]]), (2, ["a"]), words)

    def test_what_the_names_of_files_in_a_folder_tell(self):
        """Tabs where they end in .tsv, packed or not; the folder's name is none of a pattern."""
        for folder in ("data[1]", "a*b?", "[x]"):
            (self.folder / folder).mkdir()
            (self.folder / folder / "_about.jsonl").write_text('{"c": 1}\n')
            (self.folder / folder / "p-1.tsv").write_text("a\tb\n1,5\t2\n")
            self.assert_has_two_cells(folder)
            self.assert_has_two_cells(folder.replace("[", "[[]") + "/*.tsv")
            (self.folder / folder / "p-1.tsv").unlink()
            (self.folder / folder / "p-1.tsv.gz").write_bytes(gzip.compress(b"a\tb\n1,5\t2\n"))
            self.assert_has_two_cells(f"--data_dir={self.folder}", folder + "/")
        (self.folder / "names").write_text("data[[]1]/p-*\n")
        self.assert_has_two_cells("@names")

    def test_beside_data_in_a_folder_lie_other_files(self):
        (self.folder / "job/words").mkdir(parents=True)
        (self.folder / "job/README.md").write_text("# Data\n")
        (self.folder / "job/p-1.csv").write_text("a,b\n1,2\n")
        (self.folder / "job/spec.json").write_text("{}\n")
        self.assert_has_two_cells("job")

    def test_a_text_or_an_archive_beside_data_decides_nothing(self):
        """Files of another format are left out, and that is said."""
        (self.folder / "job").mkdir()
        for name, text in (("README.txt", "# Data\n"), ("all.zip", "PK\3\4"), ("rows.jsonl", '{"a": 1, "b": 2}\n')):
            (self.folder / "job" / name).write_text(text)
        self.assert_is_told_of_one("job: 2 of its files are left out, which are no jsonl by their names: job/README.txt is "
                                   "the first")
        (self.folder / "job/rows.jsonl").unlink()
        (self.folder / "job/rows.csv").write_text("a,b\n1,2\n")
        self.assert_is_told_of_one("job: 2 of its files are left out, which are no csv by their names")
        (self.folder / "job/rows.csv").rename(self.folder / "job/README.txt")
        (self.folder / "job/all.zip").unlink()
        self.assert_has_two_cells("job")

    def assert_is_told_of_one(self, left_out):
        told = self.dtrain("stats", "--json", "job")
        self.assertEqual((told.returncode, json.loads(told.stdout)["rows"]), (0, 1), told.stderr)
        self.assertIn(left_out, told.stderr)

    def test_a_folder_has_any_number_of_files(self):
        (self.folder / "parts").mkdir()
        for i in range(5000):
            (self.folder / f"parts/p-{i}.csv").write_text(f"a\n{i}\n")
        self.assertEqual(json.loads(self.run_ok("stats", "--json", "parts"))["rows"], 5000)

    def test_a_cell_of_numbers_that_has_another_value_says_where(self):
        rows = "".join(f"{i},w{i % 3},0\n" for i in range(30))
        (self.folder / "p-1.csv").write_text("a,b,y\n" + rows)
        (self.folder / "p-2.csv").write_text("a,b,y\n" + rows + '"1,5",1,yes\noff,NA,0\n')
        told = self.run_ok("stats", "p-*.csv").splitlines()[5:]
        self.assertEqual(told, ['a: 2 of 62 values are no numbers, the first "1,5" in p-2.csv, line 32; decimals are '
                                'written with a point, and nothing between thousands',
                                'y: 1 of 62 values is no number, "yes" in p-2.csv, line 32'])
        cells = json.loads(self.run_ok("stats", "--json", "p-*.csv"))["cells"]
        self.assertEqual([cell.get("first_no_number", "")[:5] for cell in cells], ['"1,5"', "", '"yes"'])

    def test_data_of_any_name_are_no_spec(self):
        (self.folder / "rows").write_text("a,b\n1,2\n")
        self.assertIn("(where it is data: --format=csv)", self.run_bad("stats", "rows"))
        (self.folder / "rows").write_text('{"a": 1}\n{"a": 2}\n')
        self.assertIn("(where it is data: ", self.run_bad("stats", "rows"))
        (self.folder / "job").write_text('{"data": {"train": {"format": "cvs"}}}\n')
        self.assertNotIn("where it is data", self.run_bad("stats", "job"))

    def test_flags_that_would_change_nothing_are_refused(self):
        (self.folder / "p-1.csv").write_text("a;b\n1;2\n")
        self.spec({"format": "csv", "file": "p-1.csv", "label": "b", "delimiter": ";"})
        self.assertIn("files of data have no keys", self.run_bad("stats", "--set=data.train.take=1", "p-1.csv"))
        self.assertIn("--set data.train.delimiter", self.run_bad("stats", "--delimiter=;", "spec.json"))
        self.assertIn("--set data.train.header=false", self.run_bad("stats", "--header=false", "spec.json"))

    def test_a_spec_among_data_is_named(self):
        (self.folder / "p-1.csv").write_text("a,b\n1,2\n")
        self.spec({"format": "csv", "file": "p-1.csv", "label": "b"})
        for words in (["spec.json", "p-1.csv"], ["p-1.csv", "spec.json"]):
            self.assertIn("spec.json is a spec, whose data.train is looked at: name it alone", self.run_bad("stats", *words))

    def test_a_tab_is_written_as_a_shell_has_it(self):
        (self.folder / "p-1.csv").write_text("a\tb\n1\t2\n")
        self.assert_has_two_cells("--delimiter=\\t", "p-1.csv")

    def test_files_that_are_not_there_are_looked_for_here(self):
        self.assertIn("none.csv: No such file or directory (relative paths begin at the current folder; --data_dir names "
                      "another folder)", self.run_bad("stats", "none.csv"))

    def assert_has_two_cells(self, *words):
        told = json.loads(self.run_ok("stats", "--json", *words))
        self.assertEqual((told["rows"], [cell["name"] for cell in told["cells"]]), (1, ["a", "b"]), words)

    def test_files_of_other_programs_are_called_what_they_are(self):
        for name, head, told in (("p.csv.bz2", b"BZh91AY&SY", "packed by bzip2"), ("p.zip", b"PK\3\4", "a zip archive"),
                                 ("p.parquet", b"PAR1", "a Parquet file"), ("p.csv", b"a\0,\0b\0\n\0", "text in UTF-16")):
            (self.folder / name).write_bytes(head + bytes(32))
            self.assertIn(told, self.run_bad("stats", name))

    def test_numbers_words_and_what_is_missing(self):
        ages = self.table()
        rows, cells = self.cells()
        age, job, label = cells["age"], cells["job"], cells["y"]
        self.assertEqual((rows, age["rows"], age["missing"], age["numbers"]), (161, 161, 1, 160))
        self.assertAlmostEqual(age["mean"], statistics.mean(ages), places=9)
        self.assertAlmostEqual(age["deviation"], statistics.pstdev(ages), places=9)
        self.assertEqual((age["min"], age["quartiles"], age["max"], age["rank_error"]),
                         (20, [30, 40, 49], 59, 0))
        self.assertEqual((job["missing"], job["numbers"], job["words"]),
                         (1, 0, [["clerk", 80], ["?", 40], ["a b", 40]]))
        self.assertEqual((label["is_label"], label["words"]), (True, [["0", 81], ["1", 80]]))
        self.assertNotIn("mean", job)

    def test_a_table_for_people(self):
        self.table()
        told = self.run_ok("stats", "spec.json").splitlines()
        self.assertEqual(told[0], "rows.csv: 161 rows")
        self.assertEqual(told[2].split()[:8], ["age", "161", "1", "160", "39.5", "11.543", "20", "30"])
        self.assertTrue(told[3].endswith(" 3  clerk 80, ? 40, a b 40"), told[3])
        self.assertTrue(told[4].endswith(" 2  0 81, 1 80 (label)"), told[4])
        self.assertEqual(len(told), 5)

    def test_rows_left_out_and_taken(self):
        self.table()
        rows, cells = self.cells("--set=data.train.skip=4", "--set=data.train.take=4")
        self.assertEqual((rows, cells["age"]["words"]), (4, [["21", 4]]))
        self.assertIn("leaves none of the", self.run_bad("stats", "--set=data.train.skip=500", "spec.json"))

    def test_what_is_written_can_be_named_by_a_spec(self):
        self.table()
        told = self.run_ok("stats", "--out=made", "--buckets=4", "spec.json")
        self.assertIn("wrote made/job.words.txt\n", told)
        self.assertEqual((self.folder / "made" / "job.words.txt").read_text(), "clerk\n?\na b\n")
        self.assertEqual((self.folder / "made" / "age.boundaries.txt").read_text(), "30\n40\n49\n")
        self.assertEqual(len(list((self.folder / "made").iterdir())), 3)  # few numbers are words, too
        self.spec({"format": "csv", "file": "rows.csv", "label": "y", "take": 160}, columns=[
            {"column": "vocabulary", "name": "job", "file": "made/job.words.txt"},
            {"column": "bucketized", "name": "age", "file": "made/age.boundaries.txt"}])
        spec = json.loads((self.folder / "spec.json").read_text())
        spec["model"] = [{"op": "linear", "name": "out", "inputs": ["job", "age"], "units": 2}]
        (self.folder / "spec.json").write_text(json.dumps(spec))
        ended = self.dtrain("spec.json")
        self.assertEqual(ended.returncode, 0, ended.stderr)

    def test_lists_are_cut_as_the_columns_cut_them(self):
        (self.folder / "rows.csv").write_text("tags,y\na|b|a,0\n,1\n b ,1\n")
        self.spec({"format": "csv", "file": "rows.csv", "label": "y"}, columns=[
            {"column": "hash", "name": "t", "source": "tags", "separator": "|", "max": 3, "buckets": 9}])
        tags = self.cells()[1]["tags"]
        self.assertEqual((tags["missing"], tags["values"], tags["words"]), (1, 4, [["a", 2], ["b", 2]]))

    def test_a_word_that_no_line_can_be_is_told(self):
        (self.folder / "rows.csv").write_text('a/b,y\n"x\ny",0\nz,1\n')
        self.spec({"format": "csv", "file": "rows.csv", "label": "y"})
        self.assertIn("made/a_b.words.txt: 1 words that no line can be are not in it",
                      self.run_ok("stats", "--out=made", "spec.json"))
        self.assertEqual((self.folder / "made" / "a_b.words.txt").read_text(), "z\n")
        self.assertIn(r"x\x0ay 1, z 1", self.run_ok("stats", "spec.json"))

    def test_no_two_cells_share_a_file(self):
        (self.folder / "rows.csv").write_text("a/b,a_b,a_b-1,y\nu,v,w,0\nu,v,w,1\n")
        self.spec({"format": "csv", "file": "rows.csv", "label": "y", "except": ["a/b", "a_b", "a_b-1"]})
        self.run_ok("stats", "--out=made", "spec.json")
        made = sorted(path.read_text() for path in (self.folder / "made").glob("*.words.txt"))
        self.assertEqual(made, ["u\n", "v\n", "w\n"])

    def test_names_of_cells_are_made_safe(self):
        (self.folder / "rows.csv").write_bytes(b"caf\xe9,a\x1b[31m,y\n1,2,0\n2,3,1\n")
        self.spec({"format": "csv", "file": "rows.csv", "label": "y"})
        told = self.dtrain("stats", "--json", "spec.json")
        self.assertEqual([cell["name"] for cell in json.loads(told.stdout)["cells"]], ["caf\\xe9", "a\\x1b[31m", "y"])
        self.assertIn('rows.csv: line 1: "caf\\xe9" is no UTF-8', told.stderr)
        self.assertNotIn("\x1b", told.stderr + self.dtrain("stats", "spec.json").stdout)

    def test_more_words_than_are_counted_at_a_time(self):
        lines = "".join(f"w{i},0\nfrequent,1\n" for i in range(3000))
        (self.folder / "rows.csv").write_text("word,y\n" + lines)
        self.spec({"format": "csv", "file": "rows.csv", "label": "y"})
        word = self.cells("--words=1000")[1]["word"]
        self.assertEqual(word["words"][0][0], "frequent")
        self.assertGreaterEqual(word["words"][0][1] + word["short_by"], 3000)
        self.assertEqual(word["distinct"] + word["forgotten"], 3001)
        self.assertIn("word: more than 1000 words", self.run_ok("stats", "--words=1000", "spec.json"))

    def test_other_formats(self):
        (self.folder / "rows").write_text("1 3:0.5 7:2\n-1 3:1.5\n")
        self.spec({"format": "libsvm", "file": "rows"})
        _, cells = self.cells()
        self.assertEqual((cells["features"]["words"], cells["features"]["mean"]),
                         ([["2", 2], ["6", 1]], 4 / 3))
        self.assertEqual(cells["labels"]["rows"], 2)
        for i in range(2):
            with gzip.open(self.folder / f"part{i}", "wt") as file:
                file.write(json.dumps({"a": i, "w": ["x", "y"], "label": 1}) + "\n")
        self.spec({"format": "jsonl", "file": "part*", "label": "label"})
        told, cells = self.cells()
        self.assertEqual((told, cells["a"]["mean"], cells["w"]["values"]), (2, 0.5, 4))
        self.spec({"format": "clicks", "rows": 100})
        self.assertEqual(self.cells()[0], 100)

    def test_broken_rows_and_data_without_cells(self):
        (self.folder / "rows.csv").write_text("a,y\n1,0\n2\n3,1\n")
        self.spec({"format": "csv", "file": "rows.csv", "label": "y"})
        self.assertIn("rows.csv: line 3: expected 2 cells", self.run_bad("stats", "spec.json"))
        self.spec({"format": "csv", "file": "rows.csv", "label": "y", "bad_rows": 1})
        ended = self.dtrain("stats", "spec.json")
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertIn("rows.csv: 2 rows", ended.stdout)
        self.spec({"format": "random", "rows": 10, "shape": [3]})
        self.assertIn("its rows have no cells with names", self.run_bad("stats", "spec.json"))
        self.assertEqual(self.run_bad("stats"), "stats: no SPEC.json and no file of data was named")


if __name__ == "__main__":
    program.main()
