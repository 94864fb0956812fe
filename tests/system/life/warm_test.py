"""A run that begins with values of another one: which, under which names, and what stays its own."""
import json
import shutil

import life
import program
from life import LifeCase
from program.clicks import CLICKS, GROWING

MODEL = [
    {"op": "flatten"},
    {"op": "dense", "name": "body", "units": 16, "activation": "relu"},
    {"op": "dense", "name": "head", "units": 10},
]
ALL = [["hidden/*", "body/*"], ["logits/*", "head/*"]]
VARIABLES = {"body/kernel": "hidden/kernel", "body/bias": "hidden/bias",
             "head/kernel": "logits/kernel", "head/bias": "logits/bias"}


class Warm(LifeCase):
    """`old` was trained for 60 steps by 3 ps in parts; what `run` begins with is model.ckpt-0."""

    def setUp(self):
        super().setUp()
        parts = {"type": "fixed_size", "num_shards": 2}
        self.from_step_0(lambda: self.train(60, ps=3, train__checkpoint_dir="old",
                                            placement__partitioner=parts), "old")
        self.old = self.arrays("old")

    def begin(self, warm_start, **changes):
        """A run of one step; its model has other names."""
        warm = {"checkpoint": "old", **warm_start}
        changes = {"model": MODEL, **changes, "train__warm_start": warm}
        return self.from_step_0(lambda: self.attempt(1, **changes))

    def first(self, warm_start, **changes):
        ended = self.begin(warm_start, **changes)
        self.assertEqual(ended.returncode, 0, ended.stdout)
        self.assertRegex(ended.stdout, r"begins with values of old/model.ckpt-60\n")
        self.verify("run/model.ckpt-0")
        return self.arrays("run/model.ckpt-0")

    def cold(self):
        self.from_step_0(lambda: self.attempt(1, model=MODEL, train__checkpoint_dir="cold"), "cold")
        return self.arrays("cold/model.ckpt-0")

    def refuse(self, warm_start, words, **changes):
        ended = self.begin(warm_start, **changes)
        self.assertEqual(ended.returncode, program.BAD_INPUT, ended.stdout)
        self.assertRegex(ended.stdout, words)
        self.assertFalse((self.folder / "run" / "checkpoint").exists())

    def test_values_are_those_of_the_other_run(self):
        first = self.first({"map": ALL})
        for own, other in VARIABLES.items():
            self.assertEqual(first[own], self.old[other], own)

    def test_a_star_may_stand_anywhere(self):
        """The rest of the name is changed for all that match: "idde" is what stays here."""
        model = [MODEL[0], {**MODEL[1], "name": "biddey"}, MODEL[2]]
        stars = [["h*n/kernel", "b*y/kernel"], ["h*n/bias", "b*y/bias"]]
        first = self.first({"map": stars + ALL[1:]}, model=model)
        self.assertEqual(first["biddey/kernel"], self.old["hidden/kernel"])
        self.assertEqual(first["biddey/bias"], self.old["hidden/bias"])

    def test_the_step_and_the_optimizer_begin_anew(self):
        first, cold = self.first({"map": ALL}), self.cold()
        self.assertEqual(self.old["global_step"], (60,))
        for name in set(cold) - set(VARIABLES):
            self.assertEqual(first[name], cold[name], name)

    def test_slots_and_powers_come_along_where_that_is_wanted(self):
        first = self.first({"map": ALL, "slots": True})
        for own, other in VARIABLES.items():
            for slot in ("", "/Adam", "/Adam_1"):
                self.assertEqual(first[own + slot], self.old[other + slot], own + slot)
        for name in ("beta1_power", "beta2_power"):
            self.assertEqual(first[name], self.old[name])
        self.assertEqual(first["global_step"], (0,))

    def test_what_is_skipped_keeps_its_initial_values(self):
        first, cold = self.first({"map": ALL[:1], "skip": ["head/*"], "slots": True}), self.cold()
        self.assertEqual(first["body/kernel"], self.old["hidden/kernel"])
        for name in ("head/kernel", "head/bias", "head/kernel/Adam", "head/kernel/Adam_1"):
            self.assertEqual(first[name], cold[name], name)

    def test_a_power_may_be_skipped(self):
        first, cold = self.first({"map": ALL, "skip": ["beta1*"], "slots": True}), self.cold()
        self.assertEqual(first["beta1_power"], cold["beta1_power"])
        self.assertEqual(first["beta2_power"], self.old["beta2_power"])

    def test_the_same_names_need_no_map(self):
        first = self.first({}, model=life.SPEC["model"])
        self.assertEqual(first["hidden/kernel"], self.old["hidden/kernel"])

    def test_a_single_process_begins_with_the_same_values(self):
        first = self.first({"map": ALL}, ps=0)
        for own, other in VARIABLES.items():
            self.assertEqual(first[own], self.old[other], own)

    def test_parts_of_other_sizes_are_put_together(self):
        parts = {"type": "fixed_size", "num_shards": 3}
        first = self.first({"map": ALL, "slots": True}, ps=2, placement__partitioner=parts)
        self.assertEqual(first["body/kernel/Adam"], self.old["hidden/kernel/Adam"])

    def test_a_checkpoint_may_be_named_itself(self):
        ended = self.begin({"map": ALL, "checkpoint": "old/model.ckpt-0"})
        self.assertRegex(ended.stdout, r"begins with values of old/model.ckpt-0\n")

    def test_a_run_that_has_a_checkpoint_goes_on_from_its_own(self):
        self.first({"map": ALL})
        ended = self.begin({"map": ALL}, train__last_step=2)
        self.assertNotIn("begins with values", ended.stdout)
        self.assertRegex(ended.stdout, r"begins from \S+/run/model.ckpt-1, step 1\n")
        self.assertEqual(self.result()["step"], 2)

    def test_a_variable_that_is_not_there_is_named_with_the_nearest_one(self):
        self.refuse({"map": [["hiden/*", "body/*"], ALL[1]]},
                    r'no variable "hiden/(\w+)" for "body/\1" \(did you mean "hidden/\1"\?\)')
        self.refuse({"map": ALL[:1]}, r'no variable "head/(kernel|bias)"')

    def test_a_slot_that_is_not_there_is_named(self):
        momentum = {"type": "momentum", "learning_rate": 0.1, "momentum": 0.9}
        self.refuse({"map": ALL, "slots": True}, r'no slot "(hidden|logits)/\w+/Momentum"',
                    optimizer=momentum)
        self.assertEqual(self.first({"map": ALL}, optimizer=momentum)["body/bias"],
                         self.old["hidden/bias"])

    def test_both_shapes_are_named_where_they_differ(self):
        wide = [MODEL[0], {**MODEL[1], "units": 24}, MODEL[2]]
        self.refuse({"map": ALL[:1], "skip": ["head/*"]},
                    r"hidden/(kernel has shape \[784, 16\] there, \[784, 24\]|"
                    r"bias has shape \[16\] there, \[24\]) here", model=wide)

    def test_a_pattern_about_nothing_is_an_error(self):
        for warm_start, words in (
                ({"map": [["hidden/*", "boddy/*"]]},
                 r'map\[0\]: no variable is called "boddy/\*" \(did you mean "body/\*"\?\)'),
                ({"map": ALL, "skip": ["head/*", "*/biass"]},
                 r'skip\[1\]: no variable is called "\*/biass" \(did you mean "\*/bias"\?\)'),
                ({"map": ALL, "skip": ["*/Momentum"]},
                 r'skip\[0\]: no variable is called "\*/Momentum"')):
            with self.subTest(words=words):
                self.refuse(warm_start, "train.warm_start: " + words)

    def test_where_nothing_is_found_that_is_said(self):
        self.refuse({"checkpoint": "nowhere"}, r"train.warm_start: nowhere: ")
        self.refuse({"map": [["a/*", "b"]]}, r"train.warm_start.map\[0\]: expected one star in both")



class Tables(LifeCase):
    """Rows of another run, which one of other numbers of ps, parts and names begins with."""

    def begin(self, slots, new, old):
        """What `old` has after 60 steps, and what `run` begins with, where "deep" is "tower"."""
        renamed = json.loads(json.dumps(new["model"]).replace("deep/", "tower/"))
        warm = {"checkpoint": "old", "map": [["deep/*", "tower/*"]], "slots": slots}
        for folder in ("old", "run"):
            shutil.rmtree(self.folder / folder, ignore_errors=True)
        self.train(60, ps=3, train__checkpoint_dir="old", **old)
        self.from_step_0(lambda: self.train(1, ps=2, **{
            **new, "model": renamed, "train__warm_start": warm}))
        return self.arrays("old"), self.arrays("run/model.ckpt-0")

    def rows(self, arrays, table, slot=""):
        """Of a table that grows: {id: its row}."""
        ids, rows = [], []
        for part in range(4):
            keys = arrays.get(f"{table}/part_{part:05d}/keys", ())
            ids += [keys[i] for i in range(0, len(keys), 3) if keys[i + 1] == 0]
            rows += arrays.get(f"{table}{slot}/part_{part:05d}/rows", ())
        width = len(rows) // len(ids)
        return {one: rows[i * width:(i + 1) * width] for i, one in enumerate(ids)}

    def test_growing_tables_begin_with_the_rows_of_others(self):
        for slots in (False, True):
            with self.subTest(slots=slots):
                growing = {**CLICKS, **GROWING}
                old, first = self.begin(slots, growing, growing)
                for cell in ("c1", "c2", "c3", "c4"):
                    names = [f"{node}/{cell}/embedding_weights" for node in ("deep", "tower")]
                    found = [self.rows(old, names[0]), self.rows(first, names[1])]
                    self.assertGreater(len(found[0]), 5)
                    self.assertEqual(found[0], found[1])
                    found = [self.rows(old, names[0], "/Adagrad"),
                             self.rows(first, names[1], "/Adagrad")]
                    self.assertEqual(found[0] == found[1], slots)

    def test_tables_begin_with_the_rows_of_those_cut_by_turns(self):
        by_turns = {**CLICKS, "placement": {
            "partitioner": {"type": "fixed_size", "num_shards": 3}, "partition_strategy": "mod"}}
        old, first = self.begin(True, CLICKS, by_turns)
        for slot in ("", "/Adagrad"):
            parts = [old[f"deep/c1/embedding_weights/part_{part}{slot}"] for part in range(3)]
            rows = [parts[i % 3][i // 3 * 5:i // 3 * 5 + 5] for i in range(40)]
            self.assertEqual(first["tower/c1/embedding_weights" + slot],
                             tuple(number for row in rows for number in row))


if __name__ == "__main__":
    program.main()
