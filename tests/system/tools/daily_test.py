"""A folder that is trained on day by day: each list of files once, from the values of the day before."""
import json
import shutil

import program
import tool
from program.lives import LIMITS

CLUSTER = ("--local_ps=2", "--local_workers=2", *LIMITS)


class Daily(tool.ToolCase):
    def day(self, name, rows=40, first=0):
        (self.folder / name).write_text(
            "a,b,y\n" + "".join(f"{i % 7},{(i + first) % 5},{i % 7 + 2 * ((i + first) % 5)}\n" for i in range(rows)))

    def write(self, file, daily=True, **train):
        source = {"format": "csv", "file": file, "label": "y", "label_type": "number"}
        (self.folder / "spec.json").write_text(json.dumps({
            "data": {"train": source, "batch_size": 10, **({"shuffle": False} if train.get("ordered") else {})},
            "model": [{"op": "dense", "units": 1}],
            "loss": "mean_squared_error", "optimizer": {"type": "adagrad", "learning_rate": 0.1},
            "train": {"mode": "sync", "epochs": 1, "checkpoint_dir": "run", **({"daily": True} if daily else {}),
                      **{key: value for key, value in train.items() if key != "ordered"}}}))

    def train(self, *flags, code=0):
        ended = self.dtrain("--result=run.json", *flags, "spec.json")
        self.assertEqual(ended.returncode, code, ended.stderr)
        self.said = ended.stdout + ended.stderr
        return json.loads((self.folder / "run.json").read_text())

    def assert_day(self, result, step, trained, used):
        self.assertEqual((result["step"], result["trained"], result["rows"]["used"]), (step, trained, used), self.said)

    def test_a_run_that_trains_nothing_says_so(self):
        """Yesterday's folder, today's file, and no daily mode."""
        for flags in ((), CLUSTER):
            with self.subTest(flags=flags):
                self.write("day-1.csv", daily=False, checkpoint_dir=f"run{len(flags)}")
                self.day("day-1.csv")
                self.day("day-2.csv")
                self.assertGreater(self.train(*flags)["trained"], 0)
                self.assertNotIn("nothing was trained", self.said)
                self.assertEqual(self.train(*flags, "--set=data.train.file=day-2.csv")["trained"], 0)
                self.assertIn("; nothing was trained: the checkpoint is of the last step already\n", self.said)

    def test_the_best_of_a_day_are_not_compared_with_those_of_another(self):
        """The first day is easy; of the second no evaluation comes as near."""
        self.day("day-1.csv", 60)
        self.day("day-2.csv", 60, 1)
        noisy = (self.folder / "day-2.csv").read_text().splitlines()
        (self.folder / "day-2.csv").write_text("\n".join([noisy[0], *(f"{row.rsplit(',', 1)[0]},{5 + 9 * (i % 2)}" for i, row in enumerate(noisy[1:]))]) + "\n")
        for flags in ((), CLUSTER):
            with self.subTest(flags=flags):
                folder = f"best{len(flags)}"
                for day in "12":
                    self.write(f"day-{day}.csv", checkpoint_dir=folder, epochs=8, evaluate_every_steps=6, restore_best=True)
                    spec = json.loads((self.folder / "spec.json").read_text())
                    spec["data"]["eval"] = spec["data"]["train"]
                    (self.folder / "spec.json").write_text(json.dumps(spec))
                    self.assertGreater(self.train(*flags)["trained"], 0)
                best = json.loads((self.folder / folder / "best" / "best.json").read_text())["best"]
                begun = json.loads((self.folder / folder / "day.json").read_text())["step"]
                self.assertEqual([entry["step"] > begun for entry in best], [True], self.said)
                names = sorted(path.name for path in (self.folder / folder / "best").glob("*.index"))
                self.assertEqual(names, [f"{best[0]['checkpoint']}.index"])
                self.run_ok("eval", f"--checkpoint={folder}", "--result=eval.json", "spec.json")
                loss = json.loads((self.folder / "eval.json").read_text())["metrics"]["loss"]
                self.assertAlmostEqual(loss, best[0]["value"], places=4)

    def test_where_a_day_was_to_end_is_no_end_of_the_next(self):
        """As `dtrain set last_step` keeps it beside the checkpoints."""
        for i in range(2):
            self.day(f"day-{i + 1}.csv", 40, i)
        for flags, per_step in (((), 10), (CLUSTER, 20)):
            with self.subTest(flags=flags):
                folder = f"set{len(flags)}"
                steps = 40 // per_step
                self.write("day-1.csv", checkpoint_dir=folder)
                self.train(*flags)
                change = {"key": "train.last_step", "value": str(steps + 1), "instead_of": "[null,null,1]", "step": steps,
                          "time": 1.5, "by": "somebody", "generation": "0" * 16}
                (self.folder / folder / "settings.json").write_text(json.dumps({"changes": [change]}))
                self.train(*flags)
                self.assertIn(f"train.last_step is {steps + 1} since step {steps}", self.said)
                self.write("day-2.csv", checkpoint_dir=folder)
                self.assert_day(self.train(*flags), 2 * steps + 1, steps, 40)
                self.assertIn("train.last_step was set while other files were trained on", self.said)
                self.assertEqual(self.train(*flags)["trained"], 0)

    def test_where_a_day_is_to_end_holds_before_its_first_checkpoint(self):
        """All begin again from the checkpoint of the day before, behind which it was set."""
        for i in range(2):
            self.day(f"day-{i + 1}.csv", 40, i)
        for flags, per_step in (((), 10), (CLUSTER, 20)):
            with self.subTest(flags=flags):
                folder, steps = f"begun{len(flags)}", 40 // per_step
                self.write("day-1.csv", checkpoint_dir=folder)
                self.train(*flags)
                shutil.copytree(self.folder / folder, self.folder / "ahead")
                self.write("day-2.csv", checkpoint_dir="ahead")
                self.train(*flags)
                shutil.copy(self.folder / "ahead/day.json", self.folder / folder)  # as if these files were begun there
                shutil.rmtree(self.folder / "ahead")
                change = {"key": "train.last_step", "value": str(steps + 1), "instead_of": "[null,null,1]", "step": steps,
                          "time": 1.5, "by": "somebody", "generation": "0" * 16}
                (self.folder / folder / "settings.json").write_text(json.dumps({"changes": [change]}))
                self.write("day-2.csv", checkpoint_dir=folder)
                self.assertEqual(self.train(*flags)["step"], steps + 1, self.said)
                self.assertIn("has none of its rows", self.said)
                self.assertNotIn("was set while other files", self.said)

    def test_each_day_is_trained_on_once(self):
        """Of as many rows, more, fewer, and several files; a list that is told again is not trained on again."""
        for i, rows in enumerate((40, 40, 60, 20, 20)):
            self.day(f"day-{i + 1}.csv", rows, i)
        for flags, per_step in (((), 10), (CLUSTER, 20)):
            with self.subTest(flags=flags):
                step = 0
                folder = f"run{len(flags)}"
                for files, rows in ((["day-1.csv"], 40), (["day-2.csv"], 40), (["day-3.csv"], 60),
                                    (["day-4.csv", "day-5.csv"], 40)):
                    self.write(files, checkpoint_dir=folder)
                    step += rows // per_step
                    self.assert_day(self.train(*flags), step, rows // per_step, rows)
                    self.assertEqual(self.train(*flags)["trained"], 0)
                    self.assertIn("nothing was trained", self.said)

    def test_values_slots_and_step_go_on(self):
        """Two days are the same bits as one run over both files."""
        self.day("day-1.csv")
        self.day("day-2.csv", first=3)
        self.write(["day-1.csv", "day-2.csv"], daily=False, ordered=True, checkpoint_dir="whole")
        self.train()
        for day in (1, 2):
            self.write(f"day-{day}.csv", ordered=True)
            self.train()
        differ = self.dtrain("checkpoint", "diff", "run", "whole").stdout.splitlines()
        self.assertEqual([line for line in differ if not line.startswith("dtrain/ledger/")], [])

    def test_a_restart_in_the_middle_goes_on_there(self):
        """Stopped after some steps of a day, with other workers afterwards; nothing comes twice."""
        for day in (1, 2):
            self.day(f"day-{day}.csv", 80, day)
        self.write("day-1.csv")
        self.assert_day(self.train(), 8, 8, 80)
        self.write("day-2.csv")
        partial = self.dtrain("--set=train.epochs=0.5", "--result=run.json", "spec.json")
        self.assertEqual(partial.returncode, 0, partial.stderr)
        self.said = partial.stderr
        self.assert_day(json.loads((self.folder / "run.json").read_text()), 12, 4, 40)
        self.assert_day(self.train(*CLUSTER), 14, 2, 80)
        self.assertRegex(self.said, "80 of 80 rows, 0 twice, 0 lost")
        self.day("day-3.csv", 80, 3)
        self.write("day-3.csv")
        self.assert_day(self.train(), 22, 8, 80)

    def test_files_that_lie_elsewhere_are_the_same(self):
        self.day("day-1.csv")
        self.write("day-1.csv")
        self.train()
        (self.folder / "moved").mkdir()
        (self.folder / "day-1.csv").rename(self.folder / "moved/day-1.csv")
        self.assertEqual(self.train("--data_dir=moved")["trained"], 0)
        self.day("moved/day-1.csv", first=1)
        self.assertEqual(self.train("--data_dir=moved")["trained"], 4)

    def test_what_has_no_day_is_refused(self):
        self.day("day-1.csv")
        self.write("day-1.csv", epochs=0, last_step=10)
        self.assertIn("train.daily: needs train.epochs", self.run_bad("spec.json"))
        self.write("day-1.csv", checkpoint_dir=None)
        self.assertIn("train.daily: needs train.checkpoint_dir", self.run_bad("spec.json"))
        self.write("day-1.csv")
        made = "--set=data.train={\"format\": \"random\", \"rows\": 10, \"shape\": [2], \"classes\": 2}"
        for words in [[made, "spec.json"], ["check", made, "spec.json"]]:
            self.assertIn("train.daily: data.train: its rows come from no file", self.run_bad(*words))


if __name__ == "__main__":
    program.main()
