"""`dtrain plot`: curves of metrics files and event files, as text and as SVG."""
import json
import xml.dom.minidom

import program
import tool
from program import commands


def lines(values, first=1):
    return "".join(json.dumps({"step": first + i, "loss": value, "seconds": i}) + "\n"
                   for i, value in enumerate(values))


class Plot(tool.ToolCase):
    def write(self, name, text):
        (self.folder / name).write_text(text)

    def test_a_falling_line_falls(self):
        self.write("a.jsonl", lines(range(40, 0, -1)))
        drawn = self.run_ok("plot", "--columns=51", "a.jsonl").splitlines()
        self.assertEqual(drawn[0], "loss")
        self.assertEqual((drawn[1].split("|"), drawn[12].split("|")[0].strip()),
                         (["       40 ", "**"], "1"))
        self.assertTrue(all(len(line) <= 51 for line in drawn))
        marks = [(line.index("*"), line.rindex("*")) for line in drawn[1:13]]
        self.assertEqual(marks, sorted(marks))  # further down is further right
        self.assertEqual(drawn[13].split(), ["1", "step", "40"])
        self.assertEqual(drawn[-1], "  * a.jsonl")

    def test_runs_have_marks_and_values_can_be_chosen(self):
        self.write("a.jsonl", lines([1, 2]))
        self.write("b.jsonl", lines([2, 1]) + '{"step": 3, "loss": nu')  # it still writes
        drawn = self.run_ok("plot", "a.jsonl", "b.jsonl")
        self.assertEqual(drawn.splitlines()[-2:], ["  * a.jsonl", "  o b.jsonl"])
        self.assertNotIn("seconds", drawn)
        self.assertTrue(self.run_ok("plot", "--value=seconds", "a.jsonl").startswith("seconds\n"))

    def test_a_run_that_went_back_is_drawn_as_it_went_on(self):
        self.write("a.jsonl", lines([9, 9, 9, 5]) + lines([9, 1], first=2) + lines([2], first=5))
        self.assertNotIn("5 |", self.run_ok("plot", "a.jsonl").split("loss")[1].split("|")[0])
        drawn = self.run_ok("plot", "--svg=a.svg", "a.jsonl")
        self.assertEqual(drawn, "")
        line = xml.dom.minidom.parse(str(self.folder / "a.svg")).getElementsByTagName("polyline")[0]
        heights = [float(point.split(",")[1]) for point in line.getAttribute("points").split()]
        self.assertEqual((min(heights), max(heights)), (30, 220))
        self.assertAlmostEqual(heights[-1], 30 + 190 * 7 / 8, delta=0.2)  # 2 of 1 to 9

    def test_what_a_run_leaves_can_be_drawn(self):
        spec = {**commands.SPEC, "name": "<&>"}
        self.write("spec.json", json.dumps(spec))
        ended = self.dtrain("-o", "run", "--metrics_file=a<&.jsonl", "--set=train.log_every_steps=4",
                            "--set=train.save_summaries_steps=5", "spec.json")
        self.assertEqual(ended.returncode, 0, ended.stderr)
        words = self.run_ok("plot", "run", "a<&.jsonl")
        self.assertIn("accuracy\n", words)
        self.assertRegex(words, r"(?m)^ +1 +step 20$")
        self.run_ok("plot", "--svg=all.svg", "run", "a<&.jsonl")
        texts = [node.firstChild.data for node in xml.dom.minidom.parse(
            str(self.folder / "all.svg")).getElementsByTagName("text")]
        for text in ("loss", "accuracy", "run", "a<&.jsonl"):
            self.assertIn(text, texts)
        self.damage(next((self.folder / "run").glob("*tfevents*")))

    def damage(self, events):
        """A byte that is wrong is told; a record that is not whole is of a run that still writes."""
        whole = events.read_bytes()
        for at in range(0, len(whole), max(len(whole) // 50, 1)):
            events.write_bytes(whole[:at] + bytes([whole[at] ^ 0x40]) + whole[at + 1:])
            self.assertRegex(self.run_bad("plot", "run"), "record [0-9]+: a wrong checksum$")
        events.write_bytes(whole[:-3])
        self.run_ok("plot", "run")

    def test_what_cannot_be_drawn_is_told(self):
        self.write("bad.jsonl", lines([1, 2]) + "{\n" + lines([3], first=3))
        self.write("list.jsonl", "[1]\n")
        self.write("empty.jsonl", "")
        many = "".join(f'{{"step": {i}, "name{i}": 1}}\n' for i in range(65))
        self.write("many.jsonl", many)
        for words, complaint in (
                (["bad.jsonl"], "plot: bad.jsonl: line 3: not JSON: "),
                (["list.jsonl"], "plot: list.jsonl: line 1: expected an object with a step"),
                (["empty.jsonl"], "plot: empty.jsonl: nothing to draw: expected a file of "),
                (["."], "plot: .: nothing to draw: "),
                (["none"], "plot: none: No such file or directory"),
                (["many.jsonl"], "plot: many.jsonl: line 65: more than 64 names; --value chooses some"),
                (["--value=x", "many.jsonl"], "plot: many.jsonl: nothing to draw"),
                ([], "plot: no RUN was named; see `dtrain help plot`")):
            with self.subTest(words=words):
                self.assertTrue(self.run_bad("plot", *words).startswith(complaint),
                                self.run_bad("plot", *words))


if __name__ == "__main__":
    program.main()
