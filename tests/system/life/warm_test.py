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


OLD = ["ant", "bee", "cat", "dog"]
NEW = ["fox", "cat", "ant", "bee", "dog", "eel"]
BY_TURNS = {"partitioner": {"type": "fixed_size", "num_shards": 2}, "partition_strategy": "mod"}
CUT = {"partitioner": {"type": "fixed_size", "num_shards": 2, "axis": 0}}


def animals(words, inputs, folder, placement=None, **train):
    """A spec of a vocabulary and numbers, which stand beside each other in the order of `inputs`."""
    columns = [{"column": "vocabulary", "name": "w", **words}]
    columns += [{"column": "numeric", "name": name} for name in inputs if name != "e"]
    return {"seed": 3, "data": {"train": {"format": "csv", "file": "rows.csv", "label": "y"},
                                "columns": columns, "batch_size": 20},
            "model": [{"op": "embedding", "name": "e", "inputs": ["w"], "dimension": 4},
                      {"op": "concat", "name": "c", "inputs": inputs}, {"op": "dropout", "rate": 0.1},
                      {"op": "dense", "name": "h", "units": 6, "activation": "relu"},
                      {"op": "dense", "name": "l", "units": 2}],
            "loss": "softmax_cross_entropy", "optimizer": {"type": "adagrad", "learning_rate": 0.1},
            "placement": placement or {},
            "train": {"last_step": 20, "checkpoint_dir": folder, **train}}


class Change(LifeCase):
    """A model that has changed: other words, other inputs, another layer."""

    def setUp(self):
        super().setUp()
        rows = [f"{NEW[i % 6]},{i % 7 / 7:.3f},{i % 5 / 5:.3f},{i % 3 / 3:.3f},{i % 2}" for i in range(200)]
        (self.folder / "rows.csv").write_text("\n".join(["w,x,z,q,y", *rows]) + "\n")

    def run_spec(self, spec, ps, refused=None):
        (self.folder / "spec.json").write_text(json.dumps(spec))
        local = [f"--local_ps={ps}", "--local_workers=1"] if ps else []
        ended = self.dtrain(*local, "spec.json")
        self.assertEqual(ended.returncode, program.BAD_INPUT if refused else 0, ended.stdout)
        if refused:
            self.assertIn(refused, ended.stdout)
            self.assertIn(refused, self.dtrain("check", "spec.json").stdout)
        return ended.stdout

    def rows(self, arrays, name, width):
        """Of a matrix, also of one that went by turns to parts."""
        if f"{name}/part_0" not in arrays:
            numbers = arrays[name]
            return [numbers[at:at + width] for at in range(0, len(numbers), width)]
        cut = [arrays[f"{name}/part_{part}"] for part in range(2)]
        count = sum(map(len, cut)) // width
        return [cut[i % 2][i // 2 * width:(i // 2 + 1) * width] for i in range(count)]

    def begin(self, old, new, ps=0, **warm):
        """What the first run ended with, and what the second and one without a past begin with."""
        shutil.rmtree(self.folder / "old", ignore_errors=True)
        self.run_spec({**old, "train": {**old["train"], "checkpoint_dir": "old"}}, ps)
        found = [self.arrays("old")]
        for folder, train in (("new", {"warm_start": {"checkpoint": "old", **warm}}), ("cold", {})):
            train = {**new["train"], "last_step": 1, "checkpoint_dir": folder, **train}
            shutil.rmtree(self.folder / folder, ignore_errors=True)
            text = self.from_step_0(lambda: self.run_spec({**new, "train": train}, ps), folder)  # noqa: B023
            found.append(self.arrays(f"{folder}/model.ckpt-0"))
            self.said = text if folder == "new" else self.said
        return found

    def test_rows_of_a_table_follow_their_words(self):
        """However the table was cut, and is; buckets of unknown words come along where they are as many."""
        new = animals({"words": NEW, "oov_buckets": 2}, ["e", "x"], "new")
        for ps, there, here in ((0, {}, {}), (2, CUT, BY_TURNS), (2, BY_TURNS, CUT), (2, BY_TURNS, BY_TURNS)):
            for slots in (False, True):
                with self.subTest(ps=ps, there=there, here=here, slots=slots):
                    old = animals({"words": OLD, "oov_buckets": 2}, ["e", "x"], "old", placement=there)
                    arrays = self.begin(old, {**new, "placement": here}, ps, slots=slots)
                    was, now, cold = (self.rows(a, "e/embedding_weights", 4) for a in arrays)
                    wanted = [was[OLD.index(word)] if word in OLD else cold[i] for i, word in enumerate(NEW)]
                    self.assertEqual(now, wanted + was[4:])
                    self.assertIn('e/embedding_weights: rows of 4 of 6 words of column "w" and of unknown words; '
                                  "2 rows keep their initial values", self.said)

    def test_slots_of_rows_come_along(self):
        old = animals({"words": OLD}, ["e", "x"], "old")
        new = animals({"words": NEW}, ["x", "z", "e"], "new")
        was, now, cold = self.begin(old, new, slots=True)
        for name, width in (("e/embedding_weights", 4), ("h/kernel", 6)):
            was_rows, now_rows, cold_rows = (self.rows(a, name + "/Adagrad", width) for a in (was, now, cold))
            where = ([-1, 2, 0, 1, 3, -1] if width == 4 else [4, -1, 0, 1, 2, 3])
            self.assertEqual(now_rows, [was_rows[k] if k >= 0 else cold_rows[i] for i, k in enumerate(where)])
            self.assertNotEqual(was_rows[0], cold_rows[0])

    def test_rows_of_a_kernel_follow_their_inputs(self):
        """One is new, one is gone, and the others stand elsewhere; on ps that hold parts of it, too."""
        old = animals({"words": OLD}, ["q", "e", "x"], "old")
        new = animals({"words": OLD}, ["x", "z", "e"], "new")
        for ps, axis in ((0, None), (2, 0), (2, 1)):
            with self.subTest(ps=ps, axis=axis):
                cut = {"partitioner": {"type": "fixed_size", "num_shards": 2, "axis": axis}} if ps else {}
                was, now, cold = self.begin({**old, "placement": {}}, {**new, "placement": cut}, ps)
                was_rows, now_rows, cold_rows = (self.rows(a, "h/kernel", 6) for a in (was, now, cold))
                self.assertEqual(now_rows, [was_rows[5], cold_rows[1], *was_rows[1:5]])
                self.assertEqual(now["h/bias"], was["h/bias"])
                self.assertIn("h/kernel: 5 of 6 rows, by inputs; initial values for those of z\n", self.said)

    def test_channels_follow_their_inputs_through_crosses_and_normalization(self):
        """A number for each of them, matrices that cross them, and what reads them behind sums and products."""
        def crossed(inputs, name):
            model = animals({"words": OLD}, inputs, name)
            model["model"] = [*model["model"][:2], {"op": "batch_normalization", "name": "n", "momentum": 0.5},
                              {"op": "cross_layer", "name": "one"}, {"op": "cross_layer", "name": "two", "inputs": ["n", "one"]},
                              {"op": "dense", "name": "weight", "units": 1}, {"op": "multiply", "name": "m", "inputs": ["n", "weight"]},
                              {"op": "add", "name": "x1", "inputs": ["m", "n"]}, {"op": "layer_normalization", "name": "ln"},
                              {"op": "dice", "name": "d", "inputs": ["x1"]},
                              {"op": "dense", "name": "l", "units": 2, "inputs": ["d"]}, {"op": "dense", "name": "k", "units": 2, "inputs": ["ln"]},
                              {"op": "add", "inputs": ["l", "k"]}]
            return model

        model_of = {"old": crossed(["q", "e", "x"], "old"), "new": crossed(["x", "z", "e"], "new")}
        where = [5, -1, 1, 2, 3, 4]
        for ps, cut in ((0, {}), (2, {}), (2, CUT), (2, {"partitioner": {**CUT["partitioner"], "axis": 1}})):
            with self.subTest(ps=ps, cut=cut):
                was, now, cold = arrays = self.begin({**model_of["old"], "placement": {}}, {**model_of["new"], "placement": cut}, ps)
                for name in ("n/gamma", "n/beta", "n/moving_mean", "n/moving_variance", "one/bias", "two/bias", "ln/gamma", "ln/beta",
                             "d/alpha", "d/moving_mean", "d/moving_variance"):
                    self.assertEqual(list(now[name]), [was[name][k] if k >= 0 else cold[name][i] for i, k in enumerate(where)], name)
                for name, width in (("weight/kernel", 1), ("l/kernel", 2)):
                    self.assert_followed(arrays, name, width, where)
                for name in ("one/kernel", "two/kernel"):
                    there, here, fresh = (self.rows(a, name, 6) for a in arrays)
                    self.assertEqual([list(row) for row in here],
                                     [[there[a][b] if min(a, b) >= 0 else fresh[i][k] for k, b in enumerate(where)] for i, a in enumerate(where)], name)
                self.assertIn("one/kernel: 5 of 6 rows and columns, by inputs; initial values for those of z\n", self.said)

    def test_rows_of_kernels_of_sequences_follow_their_inputs(self):
        """Of recurrent layers, whose own state comes along, and of a dense layer of each step."""
        def sequences(inputs, name):
            model = animals({"words": OLD}, ["e", "x"], name)
            each = [{"op": "embedding", "name": f"{k}s", "inputs": ["w"], "dimension": 2, "combiner": "none"} for k in "abc" if f"{k}s" in inputs]
            layers = [{"op": "lstm", "name": "l", "units": 2}, {"op": "gru", "name": "g", "units": 2}, {"op": "dense", "name": "d", "units": 2}]
            for layer in layers:
                layer["inputs"] = ["joined"]
            model["model"] = [*each, {"op": "concat", "name": "all", "inputs": inputs, "axis": -1},
                              {"op": "tanh", "name": "joined"}, *layers,
                              {"op": "add", "inputs": ["l", "g", "d"]}, {"op": "flatten"}, {"op": "dense", "name": "h", "units": 2}]
            return model

        new = sequences(["cs", "bs"], "new")
        was, now, cold = self.begin(sequences(["as", "bs"], "old"), new, 0, absent="initial")
        for kernel, width in (("l/kernel", 8), ("g/gates/kernel", 4), ("g/candidate/kernel", 2), ("d/kernel", 2)):
            was_rows, now_rows, cold_rows = (self.rows(a, kernel, width) for a in (was, now, cold))
            self.assertEqual(now_rows, cold_rows[:2] + was_rows[2:], kernel)
            self.assertNotEqual(now_rows, was_rows)
            self.assertRegex(self.said, f"{kernel}: \\d of \\d rows, by inputs; initial values for those of cs\n")
        self.assertEqual(now["l/bias"], was["l/bias"])

    def lists(self, made, joined, layers, name):
        """Of columns of two numbers each; the nodes `made` have no names of their own."""
        (self.folder / "rows.csv").write_text("\n".join(
            ["x,z,q,y", *(f"{i % 7 / 7:.3f} {i % 2},{i % 5 / 5:.3f} {i % 3},{i % 3 / 3:.3f} 1,{i % 2}" for i in range(200))]) + "\n")
        spec = animals({"words": OLD}, [], name)
        spec["data"]["columns"] = [{"column": "numeric", "name": column, "separator": " ", "max": 2} for column in "xzq"]
        spec["model"] = [*made, {"name": "c", **joined}, *layers, {"op": "flatten"}, {"op": "dense", "name": "h", "units": 2}]
        return spec

    def assert_followed(self, arrays, kernel, width, where):
        """-1: begun anew"""
        was, now, cold = (self.rows(a, kernel, width) for a in arrays)
        self.assertEqual(now, [was[k] if k >= 0 else cold[i] for i, k in enumerate(where)], self.said)

    def test_inputs_that_are_stacked_into_steps_are_found(self):
        lstm = [{"op": "lstm", "name": "l", "units": 2}]

        def stacked(inputs, name):
            return self.lists([], {"op": "stack", "inputs": inputs, "axis": -1}, lstm, name)

        def reshaped(inputs, name):
            return self.lists([{"op": "reshape", "inputs": [i], "shape": [2, 1]} for i in inputs],
                              {"op": "concat", "inputs": ["reshape", *(f"reshape_{i}" for i in range(1, len(inputs)))], "axis": -1}, lstm, name)

        for model, before, after, where in ((stacked, "xz", "qx", [-1, 0, 2, 3]), (reshaped, "xz", "qxz", [-1, 0, 1, 2, 3]),
                                            (reshaped, "xzq", "zx", [1, 0, 3, 4])):
            with self.subTest(model=model.__name__, before=before, after=after):
                arrays = self.begin(model([*before], "old"), model([*after], "new"))
                self.assert_followed(arrays, "l/kernel", 8, where)

    def test_nodes_without_names_are_known_by_what_they_are_made_of(self):
        """Their own names are places: one more before them would give each the rows of its neighbour. Of several that look
        the same nobody knows which is which."""
        def products(pairs, name):
            return self.lists([{"op": "multiply", "inputs": [*pair]} for pair in pairs],
                              {"op": "concat", "inputs": ["multiply", *(f"multiply_{i}" for i in range(1, len(pairs)))]}, [], name)

        def slices(places, name):
            return self.lists([{"op": "slice", "inputs": ["x"], "begin": [i], "size": [1]} for i in places],
                              {"op": "concat", "inputs": ["slice", *(f"slice_{i}" for i in range(1, len(places))), "z"]}, [], name)

        arrays = self.begin(products(["xz", "zq"], "old"), products(["qx", "xz", "zq"], "new"))
        self.assert_followed(arrays, "h/kernel", 2, [-1, -1, 0, 1, 2, 3])
        self.assertIn("h/kernel: 4 of 6 rows, by inputs; initial values for those of multiply(q, x)\n", self.said)
        arrays = self.begin(slices([0, 1], "old"), slices([1, 0, 1], "new"))
        self.assert_followed(arrays, "h/kernel", 2, [-1, -1, -1, 2, 3])
        arrays = self.begin(slices([0, 1], "old"), slices([0, 1], "new"))
        self.assert_followed(arrays, "h/kernel", 2, [0, 1, 2, 3])

    def test_the_same_words_and_inputs_in_another_order_are_not_taken_as_they_stand(self):
        old = animals({"words": OLD}, ["x", "e"], "old")
        was, now, _ = self.begin(old, animals({"words": OLD[::-1]}, ["e", "x"], "new"))
        self.assertEqual(self.rows(now, "e/embedding_weights", 4), self.rows(was, "e/embedding_weights", 4)[::-1])
        kernel = self.rows(was, "h/kernel", 6)
        self.assertEqual(self.rows(now, "h/kernel", 6), kernel[1:] + kernel[:1])

    def test_renamed_inputs_are_found_by_the_map(self):
        old = animals({"words": OLD}, ["x", "e"], "old")
        new = animals({"words": OLD}, ["e", "x"], "new")
        new = json.loads(json.dumps(new).replace('"e"', '"f"'))
        was, now, _ = self.begin(old, new, map=[["e/*", "f/*"]])
        self.assertEqual(now["f/embedding_weights"], was["e/embedding_weights"])
        kernel = self.rows(was, "h/kernel", 6)
        self.assertEqual(self.rows(now, "h/kernel", 6), kernel[1:] + kernel[:1])

    def test_an_input_that_stands_twice_is_found_each_time(self):
        """By its name as often as that is there, and then by the one that the map has for it."""
        old = animals({"words": OLD}, ["e", "e", "e"], "old")
        old["model"].insert(0, {**old["model"][0], "name": "f"})
        old["model"][2]["inputs"] = ["f", "e", "e"]
        new = json.loads(json.dumps(animals({"words": OLD}, ["e", "e"], "new")).replace('"e"', '"f"'))
        was, now, _ = self.begin(old, new, map=[["e/*", "f/*"]])
        kernel = self.rows(was, "h/kernel", 6)
        self.assertEqual(self.rows(now, "h/kernel", 6), kernel[:4] + kernel[8:])

    def test_cells_without_columns_have_names_too(self):
        old = animals({}, ["e"], "old")
        old["data"] = {"train": {"format": "csv", "file": "rows.csv", "label": "y", "columns": ["x", "q"]},
                       "batch_size": 20}
        old["model"] = old["model"][3:]
        new = json.loads(json.dumps(old))
        new["data"]["train"]["columns"] = ["z", "q", "x"]
        was, now, cold = self.begin(old, new)
        was, now, cold = (self.rows(a, "h/kernel", 6) for a in (was, now, cold))
        names = json.loads((self.folder / "new" / "measured.json").read_text())["features"]["names"]
        before = json.loads((self.folder / "old" / "measured.json").read_text())["features"]["names"]
        self.assertEqual(now, [was[before.index(name)] if name in before else cold[i] for i, name in enumerate(names)])

    def test_a_new_layer_keeps_its_initial_values_where_that_is_wanted(self):
        old = animals({"words": OLD}, ["e", "x"], "old")
        new = animals({"words": OLD}, ["e", "x"], "new")
        new["model"].insert(4, {"op": "dense", "name": "more", "units": 6})
        was, now, cold = self.begin(old, new, absent="initial", slots=True)
        self.assertEqual(now["more/kernel"], cold["more/kernel"])
        self.assertEqual(now["l/kernel"], was["l/kernel"])
        self.assertIn("more/kernel is not in the checkpoint and keeps its initial values\n", self.said)
        shutil.rmtree(self.folder / "new")
        new["train"].update(warm_start={"checkpoint": "old"}, checkpoint_dir="new")
        self.run_spec(new, 0, refused='"absent": "initial" all that are not there')

    def test_a_table_that_grows_there_is_there(self):
        """What leaves out variables that are not there would not help."""
        old = animals({"words": OLD}, ["e", "x"], "old")
        new = animals({"words": OLD}, ["e", "x"], "new")
        table = next(layer for layer in old["model"] if layer["op"] == "embedding")
        table["capacity"] = "dynamic"
        old["data"]["columns"][0] = {"column": "hash", "name": "w", "source": "q"}
        self.run_spec(old, 3)
        new["train"].update(warm_start={"checkpoint": "old"}, checkpoint_dir="new")
        said = self.run_spec(new, 0, refused='grows there ("capacity": "dynamic"), and has fixed rows here; '
                                             '"skip" leaves variables as they begin')
        self.assertNotIn('"absent"', said)

    def test_larger_numbers_are_new_rows(self):
        old = animals({"words": OLD}, ["e", "x"], "old")
        old["data"]["columns"][0] = {"column": "identity", "name": "w", "source": "q", "buckets": 3}
        (self.folder / "rows.csv").write_text("q,x,y\n" + "".join(f"{i % 3},{i % 7},{i % 2}\n" for i in range(99)))
        new = json.loads(json.dumps(old))
        new["data"]["columns"][0]["buckets"] = 5
        was, now, cold = self.begin(old, new)
        was, now, cold = (self.rows(a, "e/embedding_weights", 4) for a in (was, now, cold))
        self.assertEqual(now, was + cold[3:])

    def test_old_words_come_from_where_they_still_are(self):
        """A list in the last spec, a file that it names, a file that is named: as their digest says."""
        (self.folder / "one.txt").write_text("\n".join(OLD))
        (self.folder / "two.txt").write_text("\n".join(NEW))
        old = animals({"file": "one.txt"}, ["e", "x"], "old")
        new = animals({"file": "two.txt"}, ["e", "x"], "new")
        was, now, _ = self.begin(old, new)
        self.assertEqual(self.rows(now, "e/embedding_weights", 4)[1], self.rows(was, "e/embedding_weights", 4)[2])
        (self.folder / "one.txt").rename(self.folder / "kept.txt")
        shutil.rmtree(self.folder / "new")
        new["train"].update(warm_start={"checkpoint": "old"}, checkpoint_dir="new")
        self.run_spec(new, 0, refused='"vocabularies": {"w": "old_words.txt"}')
        new["train"]["warm_start"]["vocabularies"] = {"w": "two.txt"}
        self.run_spec(new, 0, refused="two.txt has other words than column")
        new["train"]["warm_start"]["vocabularies"] = {"w": "kept.txt"}
        self.run_spec(new, 0)
        self.assertEqual(self.rows(self.arrays("new/model.ckpt-0"), "e/embedding_weights", 4)[1],
                         self.rows(was, "e/embedding_weights", 4)[2])

    def test_an_input_of_another_width_is_refused(self):
        old = animals({"words": OLD}, ["x", "e"], "old")
        new = animals({"words": OLD}, ["e", "x"], "new")
        new["data"]["columns"][1] = {"column": "numeric", "name": "x", "max": 2, "separator": "|", "padding": 0}
        self.run_spec({**old, "train": {**old["train"], "checkpoint_dir": "old"}}, 0)
        new["train"].update(warm_start={"checkpoint": "old"}, checkpoint_dir="new")
        self.run_spec(new, 0, refused='h/kernel: input "x" is 2 numbers, and was 1 there; "skip" gives the kernel')


if __name__ == "__main__":
    program.main()
