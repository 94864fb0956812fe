"""Rows of a table and the product of one-hot rows with a dense kernel are one model, and train with the same bits. In a
batch no id comes more than twice, so that no sum depends on its order."""
import json
import random

from program import FolderCase, changed, main, run

BATCH, STEPS, UNITS = 24, 20, 5
CELLS = {"every": 12, "some": 60}  # how many ids: a batch names each of them, or some
# To which it is the same whether a row is not named or its gradient is zero. The others change only rows that are named,
# where a kernel's moments decay and its values are penalized at every step.
OF_SOME = {"gradient_descent", "adagrad", "adam", "adamw"}
BEGIN = {"type": "constant", "value": 0.25}
FORMS = {
    "sum": {"op": "embedding", "dimension": UNITS, "combiner": "sum", "initializer": BEGIN},
    "mean": {"op": "embedding", "dimension": UNITS, "combiner": "mean", "initializer": BEGIN},
    "sqrtn": {"op": "embedding", "dimension": UNITS, "combiner": "sqrtn", "initializer": BEGIN},
    "linear": {"op": "linear", "units": UNITS},
}
SETTINGS = {
    "clipped": {"optimizer.clip": {"type": "value", "min": -0.01, "max": 0.01}},
    "accumulated": {"train.accumulate": 2},
    "in towers": {"train.towers": 2},
    "asynchronous": {"train.mode": "async"},
}
CLUSTER = ["--local_ps=2", "--local_workers=1"]


class OneHot(FolderCase):
    def setUp(self):
        super().setUp()
        draw, lines = random.Random(1), []
        for _ in range(STEPS):
            every = draw.sample(2 * [*range(CELLS["every"])], BATCH)
            some = draw.sample(range(CELLS["some"]), BATCH)
            lines += [f"{a},{b},{draw.random() < 0.5:d}\n" for a, b in zip(every, some)]
        (self.folder / "rows.csv").write_text("".join(lines))

    def spec(self, cell, optimizer, form="sum", is_dense=False):
        first = [{**FORMS[form], "name": "first", "inputs": [cell]}]
        if is_dense:
            linear = form == "linear"
            first = [{"op": "indicator", "name": "one_hot", "inputs": [cell]},
                     {"op": "dense", "name": "first", "units": UNITS, "use_bias": linear,
                      "kernel_initializer": "zeros" if linear else BEGIN}]
        rows = {"format": "csv", "file": "rows.csv", "header": False, "names": [*CELLS, "label"], "label": "label"}
        return {
            "name": "one_hot", "seed": 1,
            "data": {"train": rows, "eval": rows,
                     "batch_size": BATCH, "shuffle": False,
                     "columns": [{"column": "identity", "name": cell, "buckets": CELLS[cell]}]},
            "model": [*first, {"op": "dense", "name": "hidden", "units": 8, "activation": "tanh"},
                      {"op": "dense", "name": "logit", "units": 1}],
            "loss": "sigmoid_cross_entropy", "metrics": ["auc"], "optimizer": optimizer,
            "train": {"last_step": STEPS, "log_every_steps": 1},
        }

    def bits(self, spec, flags):
        """Every loss, and the evaluation."""
        (self.folder / "spec.json").write_text(json.dumps(spec))
        ended = run([*flags, "--metrics_file=steps.jsonl", "--result=result.json", "spec.json"], self.folder)
        self.assertEqual(ended.returncode, 0, ended.stdout + ended.stderr)
        lines = [json.loads(line) for line in (self.folder / "steps.jsonl").read_text().splitlines()]
        losses = [(line["step"], line["loss"]) for line in lines if "loss" in line]
        self.assertGreater(len(losses), STEPS / 3)
        self.assertGreater(len({loss for _, loss in losses}), STEPS / 4)  # it learns
        return losses, json.loads((self.folder / "result.json").read_text())["metrics"]

    def assert_same(self, *words, changes=None, flags=()):
        table, product = (self.bits(changed(self.spec(*words, is_dense=is_dense), changes or {}), flags)
                          for is_dense in (False, True))
        self.assertEqual(table, product)

    def optimizers(self):
        """All that the program lists, as they come; a rate where they have none."""
        schema = json.loads(run(["schema"], self.folder).stdout)
        for one in schema["$defs"]["optimizer"]["anyOf"]:
            about = one.get("properties", {})
            if "type" not in about:
                continue  # its name alone
            given = {"type": about["type"]["const"]}
            if "learning_rate" in about:
                given["learning_rate"] = 0.05
            if "momentum" in one["required"]:
                given["momentum"] = 0.9
            yield given

    def test_every_optimizer(self):
        for optimizer in self.optimizers():
            for cell in CELLS if optimizer["type"] in OF_SOME else ["every"]:
                for flags in [], CLUSTER:
                    with self.subTest(optimizer["type"], cell=cell, flags=flags):
                        self.assert_same(cell, optimizer, flags=flags)

    def test_every_form_and_setting(self):
        optimizer = {"type": "adam", "learning_rate": 0.05}
        for form in FORMS:
            with self.subTest(form):
                self.assert_same("some", optimizer, form)
        for about, changes in SETTINGS.items():
            for flags in [], CLUSTER:
                with self.subTest(about, flags=flags):
                    self.assert_same("some", optimizer, changes=changes, flags=flags)


if __name__ == "__main__":
    main()
