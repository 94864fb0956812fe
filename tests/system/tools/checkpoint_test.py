"""dtrain checkpoint: what the verbs print, find wrong, and write."""
import ast
import json
import os
import random
import shutil
import struct
import zipfile

import made
import program
import tool
from made import DOUBLE, FLOAT, INT32, INT64, STRING

TABLE = "words/embedding_weights"  # of the fixture
COLUMNS = 3  # of a ledger: received, taken, for which step
VERBS = ("show", "verify", "diff", "reshard", "export", "rows")
EXPECTED = json.loads((tool.ADAM / "expected.json").read_text())["variables"]
FORMATS = {"<f4": "f", "<f8": "d", "<i4": "i", "<i8": "q", "|u1": "B"}


def read_npy(data):
    """Type, shape and elements of a .npy member of version 1.0."""
    assert data[:8] == b"\x93NUMPY\x01\x00"
    length, = struct.unpack("<H", data[8:10])
    assert (10 + length) % 64 == 0 and data[10 + length - 1:10 + length] == b"\n"
    header = ast.literal_eval(data[10:10 + length].decode())
    assert header["fortran_order"] is False
    elements = data[10 + length:]
    code = FORMATS[header["descr"]]
    count = len(elements) // struct.calcsize(code)
    return header["descr"], header["shape"], list(struct.unpack(f"<{count}{code}", elements))


class Checkpoint(tool.ToolCase):
    def checkpoint(self, verb, *words):
        return self.run_ok("checkpoint", verb, *words)

    def refuse(self, verb, *words, code=program.BAD_INPUT):
        return self.run_bad("checkpoint", verb, *words, code=code)

    def copy(self, source=tool.ADAM, name="copy"):
        return shutil.copytree(source, self.folder / name)

    def write(self, name, tensors):
        """A made bundle with a global step of 5, beside what is given."""
        prefix = self.folder / name
        made.write_bundle(prefix, {"global_step": (INT64, [], [5]), **tensors})
        return prefix

    def rows(self, *words):
        """The table of show: {tensor: [type, shape, slices, shards]}."""
        lines = self.checkpoint("show", *words).splitlines()
        self.assertEqual(lines[0].split(), ["tensor", "type", "shape", "slices", "shard"])
        rows = {}
        for line in lines[1:]:
            name, dtype, rest = line.split(None, 2)
            shape, _, rest = rest.rpartition("]")
            slices, *shards = rest.split()
            rows[name] = [dtype, json.loads(shape + "]"), int(slices), [int(k) for k in shards]]
        return rows


class Looking(Checkpoint):
    def test_ls_lists_steps_in_order_and_marks_the_newest(self):
        lines = self.checkpoint("ls", tool.ADAM).splitlines()
        self.assertEqual(lines[0].split(), ["step", "time", "shards", "bytes", "variables"])
        self.assertEqual([line.split()[0] for line in lines[1:]], ["0", "3"])
        for line, end in zip(lines[1:], ("model.ckpt-0", "model.ckpt-3, newest")):
            self.assertRegex(line, rf" \d+-\d\d-\d\d \d\d:\d\d:\d\d +2 +604 +3  {end}$")

    def test_what_is_seen_is_json_too(self):
        def ask(verb, *words):
            return json.loads(self.checkpoint(verb, "--json", *words))
        rows = ask("ls", tool.ADAM)["checkpoints"]
        self.assertEqual([[row["step"], row["newest"]] for row in rows], [[0, False], [3, True]])
        self.assertEqual(rows[1]["checkpoint"], str(tool.ADAM / "model.ckpt-3"))
        tensors = {row["name"]: row for row in ask("show", tool.ADAM)["tensors"]}
        self.assertEqual(list(tensors), list(self.rows(tool.ADAM)))
        one = ask("show", tool.ADAM, "words/embedding_weights")
        self.assertEqual({key: one[key] for key in tensors[one["name"]]}, tensors[one["name"]])
        self.assertLess(one["least"], one["mean"])
        verified = ask("verify", tool.ADAM)
        self.assertEqual((verified["step"], verified["tensors"]), (3, len(tensors)))
        self.assertEqual(ask("diff", tool.ADAM, tool.ADAM), {"equal": True, "differences": []})
        ended = self.dtrain("checkpoint", "diff", "--json", tool.ADAM / "model.ckpt-0", tool.ADAM)
        found = json.loads(ended.stdout)
        self.assertEqual((ended.returncode, found["equal"]), (1, False))
        changed = {row["name"]: row for row in found["differences"]}
        self.assertEqual(changed["global_step"],
                         {"name": "global_step", "elements": 1, "different": 1, "by_at_most": 3.0})

    def test_ls_shows_those_that_no_state_file_names(self):
        folder = self.copy()
        made.write_state(folder, "model.ckpt-3")
        lines = self.checkpoint("ls", folder).splitlines()
        self.assertTrue(lines[1].endswith("model.ckpt-0, kept"), lines)
        (folder / "checkpoint").unlink()
        lines = self.checkpoint("ls", folder).splitlines()
        self.assertRegex(lines[0], r"^no newest one: .*checkpoint")
        self.assertTrue(lines[3].endswith("model.ckpt-3"), lines)

    def test_ls_shows_leases(self):
        folder = self.copy()
        (folder / ".lease-model.ckpt-3.evaluator").touch()
        old = folder / ".lease-model.ckpt-0.gone"
        old.touch()
        os.utime(old, (1000, 1000))
        lines = self.checkpoint("ls", folder).splitlines()
        self.assertRegex(lines[1], r"model.ckpt-0, stale lease by gone, renewed \d+ s ago$")
        self.assertRegex(lines[2], r"newest, leased by evaluator, renewed \d+ s ago$")

    def test_ls_says_which_one_is_damaged(self):
        folder = self.copy()
        os.truncate(folder / "model.ckpt-0.data-00000-of-00002", 3)
        ended = self.dtrain("checkpoint", "ls", folder)
        self.assertEqual(ended.returncode, program.BAD_INPUT)
        lines = ended.stdout.splitlines()
        self.assertRegex(lines[1], r"^ +0 .*model\.ckpt-0.*truncated")
        self.assertTrue(lines[2].endswith("model.ckpt-3, newest"), lines)

    def test_ls_of_nothing(self):
        self.assertIn("No such file", self.refuse("ls", self.folder / "nowhere"))
        self.assertIn("no checkpoint there", self.refuse("ls", self.folder))

    def test_show_lists_every_tensor(self):
        rows = self.rows(tool.ADAM)
        self.assertEqual(set(rows), set(EXPECTED))
        self.assertEqual(rows["global_step"], ["int64", [], 1, [0]])
        self.assertEqual(rows["words/embedding_weights"][:3], ["float32", [11, 3], 2])
        self.assertEqual(sorted(rows["words/embedding_weights"][3]), [0, 1])

    def test_show_measures_one_tensor(self):
        values = [1.5, -2.0, 0.0, float("nan"), 0.0, 4.5]
        prefix = self.write("made", {"a/x": (DOUBLE, [2, 3], values), "none": (FLOAT, [0], [])})
        self.assertEqual(self.checkpoint("show", prefix, "a/x").splitlines(), [
            "a/x: float64 [2, 3]",
            "stored in shard 0 at byte 0, 48 bytes",
            "6 elements, 2 zero, 1 not finite",
            "from -2 to 4.5, mean 0.8, standard deviation 2.15870331",
            "first values: 1.5 -2 0 nan 0 4.5"])
        self.assertTrue(self.checkpoint("show", prefix, "none").endswith(
            "0 elements, 0 zero, 0 not finite\n"))

    def test_show_gives_the_slices_and_the_first_values(self):
        text = self.checkpoint("show", tool.ADAM, "words/embedding_weights")
        self.assertRegex(text, r"stored in shard \d at byte \d+, 72 bytes: elements 0 to 5, 0 to 2")
        self.assertRegex(text, r"stored in shard \d at byte \d+, 60 bytes: elements 6 to 10, 0 to")
        first = EXPECTED["words/embedding_weights"]["data"][:10]
        self.assertIn("first values: " + " ".join(f"{x:.9g}" for x in first) + " ...", text)

    def test_show_names_the_nearest_tensor(self):
        self.assertRegex(self.refuse("show", tool.ADAM, "hidden/kernal"),
                         r'no tensor "hidden/kernal" \(did you mean "hidden/kernel"\?\)')

    def test_a_type_that_cannot_be_read_is_listed_only(self):
        text = bytes.fromhex("0200031b428bca61627879 7a".replace(" ", ""))
        prefix = self.write("made", {"words": (STRING, [3], text)})
        self.assertEqual(self.rows(prefix)["words"], ["string", [3], 1, [0]])
        self.assertIn("type string cannot be read", self.refuse("diff", prefix, prefix))
        self.assertIn("type string cannot be read",
                      self.refuse("reshard", prefix, "--ps=2", self.folder / "out"))
        ended = self.dtrain("checkpoint", "export", prefix, "out.npz")
        self.assertEqual(ended.returncode, 0)
        self.assertRegex(ended.stderr, "WARNING: words is left out: elements of type string")


class Verifying(Checkpoint):
    def ledgers(self, *ledgers):
        return self.write("made", {f"dtrain/ledger/ps_{ps:05d}": (INT64, [len(rows), COLUMNS],
                                                                  sum(rows, []))
                                   for ps, rows in ledgers})

    def test_the_fixtures_are_whole(self):
        self.assertRegex(self.checkpoint("verify", tool.ADAM),
                         r"model.ckpt-3: ok, global step 3, 12 tensors, 604 bytes in 2 shards, 0 l")
        for name in ("model.ckpt-0", "model.ckpt-3.index"):
            self.assertIn(": ok, ", self.checkpoint("verify", tool.FTRL / name))

    def test_a_flipped_byte_anywhere_is_found(self):
        folder = self.copy()
        for path in sorted(folder.glob("model.ckpt-3.*")):
            whole = path.read_bytes()
            for at in range(0, len(whole), 41):
                path.write_bytes(whole[:at] + bytes([whole[at] ^ 4]) + whole[at + 1:])
                if b"\0" * 8 in whole[max(at - 8, 0):at + 8] and path.suffix == ".index":
                    continue  # the padding of the footer means nothing
                self.assertIn("model.ckpt-3", self.refuse("verify", folder), (path, at))
            path.write_bytes(whole)
        self.checkpoint("verify", folder)

    def test_a_file_that_is_cut_off_or_absent_is_found(self):
        folder = self.copy()
        for path in sorted(folder.glob("model.ckpt-3.*")):
            whole = path.read_bytes()
            path.write_bytes(whole[:-1])
            self.assertIn("model.ckpt-3", self.refuse("verify", folder))
            path.unlink()
            self.assertIn("model.ckpt-3", self.refuse("verify", folder))
            path.write_bytes(whole)

    def test_ledgers_that_agree(self):
        rows = [[9, 5, 5], [5, 5, 4]]
        text = self.checkpoint("verify", self.ledgers((0, rows), (1, rows)))
        self.assertRegex(text, "global step 5, 3 tensors, .* 2 ledgers")

    def test_only_what_was_received_and_for_which_step_may_differ(self):
        self.checkpoint("verify", self.ledgers((0, [[9, 5, 5]]), (1, [[5, 5, 5]])))
        self.checkpoint("verify", self.ledgers((0, [[5, 5, 5]]), (1, [[5, 5, 4]])))

    def test_a_gradient_that_one_ps_lacks_is_told_and_is_no_fault(self):
        text = self.checkpoint("verify", self.ledgers((0, [[5, 5, 5]]), (1, [[5, 4, 5]])))
        self.assertRegex(text, "note: .*ps_00001, worker 0: gradient 4 was the last, of another ps 5")

    def test_a_ps_without_variables_has_no_ledger(self):
        self.checkpoint("verify", self.ledgers((0, [[5, 5, 5]]), (2, [[5, 5, 5]])))

    def test_ledgers_that_do_not_agree(self):
        row = [5, 5, 5]
        wrong = [
            ([(0, [row, row]), (1, [row])], "ps_00001 tells of 1 workers, another ledger of 2"),
            ([(0, [row, [3, 4, 4]])], "worker 1: more gradients taken than received"),
            ([(0, [[6, 6, 6]])], "a gradient taken for a step after the global step"),
            ([(0, [[1, -1, 1]])], "a count below zero"),
            ([(1, [row])], "ps_00001 is there, the ledger of ps 0 is not"),
        ]
        for ledgers, words in wrong:
            self.assertRegex(self.refuse("verify", self.ledgers(*ledgers)), words)

    def test_what_is_no_ledger(self):
        prefix = self.write("made", {"dtrain/ledger/ps_00000": (INT64, [3, 2], [0] * 6)})
        self.assertIn("is no ledger", self.refuse("verify", prefix))

    def test_the_global_step_must_be_a_number(self):
        for tensor, words in (((FLOAT, [], [1.0]), "expected one int64"),
                              ((INT64, [2], [1, 2]), "expected one int64"),
                              ((INT64, [], [-1]), "a global step of -1")):
            self.assertIn(words, self.refuse("verify", self.write("m", {"global_step": tensor})))
        self.checkpoint("verify", self.write("m", {"global_step": (INT32, [], [5])}))


class Comparing(Checkpoint):
    def test_a_checkpoint_is_equal_to_itself(self):
        self.assertEqual(self.checkpoint("diff", tool.ADAM, tool.ADAM / "model.ckpt-3.index"),
                         "equal: 12 tensors, bit for bit\n")

    def diff(self, left, right):
        a, b = self.write("a", left), self.write("b", right)
        ended = self.dtrain("checkpoint", "diff", a, b)
        self.assertEqual((ended.returncode, ended.stderr), (1, ""), ended.stdout)
        return ended.stdout.replace(str(self.folder) + "/", "").splitlines()

    def test_values_that_differ_are_counted(self):
        self.assertEqual(
            self.diff({"x": (FLOAT, [4], [1, 2, 3, 4]), "same": (FLOAT, [1], [1])},
                      {"x": (FLOAT, [4], [1, 2.5, 3, 3]), "same": (FLOAT, [1], [1])}),
            ["x: 2 of 4 elements differ, by 1 at most"])

    def test_bits_are_compared_not_numbers(self):
        nan = float("nan")
        self.assertEqual(self.diff({"x": (FLOAT, [2], [0.0, nan])}, {"x": (FLOAT, [2], [-0.0, nan])}),
                         ["x: 1 of 2 elements differ, by 0 at most"])
        self.assertEqual(self.diff({"x": (FLOAT, [2], [nan, 7])}, {"x": (FLOAT, [2], [1, 9])}),
                         ["x: 2 of 2 elements differ, by nan at most"])

    def test_names_shapes_and_types_that_differ(self):
        self.assertEqual(
            self.diff({"l": (FLOAT, [1], [1]), "s": (FLOAT, [2], [1, 2]), "t": (INT32, [1], [1])},
                      {"r": (FLOAT, [1], [1]), "s": (FLOAT, [1, 2], [1, 2]), "t": (FLOAT, [1], [1])}),
            ["l: only in a", "s: float32 [2] and float32 [1, 2]", "t: int32 [1] and float32 [1]",
             "r: only in b"])

    def test_what_cannot_be_read_is_an_error(self):
        self.assertIn("no checkpoint there", self.refuse("diff", tool.ADAM, self.folder / "b"))
        self.assertIn("no checkpoint there", self.refuse("diff", self.folder / "a", tool.ADAM))


class Resharding(Checkpoint):
    def reshard(self, source, ps, name):
        out = self.folder / name
        self.checkpoint("reshard", source, f"--ps={ps}", out)
        self.assertEqual(self.dtrain("checkpoint", "diff", source, out).returncode, 0)
        self.checkpoint("verify", out)
        return out

    def test_any_number_of_shards_holds_the_same_bits(self):
        for source in (tool.ADAM, tool.FTRL):
            before = source
            for ps in (1, 2, 3, 5, 11, 13):
                before = self.reshard(before, ps, f"{source.name}-{ps}")
            self.assertEqual(self.dtrain("checkpoint", "diff", before, source).returncode, 0)

    def test_partitioned_tensors_have_a_part_in_every_shard(self):
        rows = self.rows(self.reshard(tool.ADAM, 3, "out"))
        for slot in ("", "/Adam", "/Adam_1"):
            self.assertEqual(rows["words/embedding_weights" + slot][2:], [3, [0, 1, 2]])
        text = self.checkpoint("show", self.folder / "out", "words/embedding_weights")
        for part in ("0: elements 0 to 3", "1: elements 4 to 7", "2: elements 8 to 10"):
            self.assertRegex(text, part.replace(":", " at byte .*:"))

    def test_slots_lie_beside_their_variable_and_bytes_are_shared_out(self):
        sizes = {"a": 40, "b/c": 30, "b/d": 20, "e": 10, "f": 1}
        tensors = {}
        for name, size in sizes.items():
            for slot in ("", "/Adam", "/Adam_1"):
                tensors[name + slot] = (FLOAT, [size], list(range(size)))
        tensors["beta1_power"] = (FLOAT, [], [0.5])
        rows = self.rows(self.reshard(self.write("made", tensors), 2, "out"))
        shards = {name: row[3] for name, row in rows.items()}
        for name in sizes:
            self.assertEqual(shards[name + "/Adam"], shards[name])
            self.assertEqual(shards[name + "/Adam_1"], shards[name])
        load = [sum(size for name, size in sizes.items() if shards[name] == [k]) for k in (0, 1)]
        self.assertEqual(sorted(load), [50, 51])
        self.assertEqual(shards["beta1_power"], shards["a"])
        self.assertEqual(shards["global_step"], [0])

    def test_ledgers_are_kept(self):
        rows = {f"dtrain/ledger/ps_{ps:05d}": (INT64, [1, COLUMNS], [5, 5, 5]) for ps in range(3)}
        out = self.rows(self.reshard(self.write("made", rows), 2, "out"))
        self.assertEqual([out[name][3] for name in sorted(rows)], [[0], [1], [0]])

    def test_the_result_is_a_folder_to_go_on_from(self):
        out = self.reshard(tool.ADAM, 2, "deep/er/out")
        self.assertRegex(self.checkpoint("ls", out).splitlines()[1], r"^ +3 .*model.ckpt-3, newest")
        self.assertEqual(sorted(path.name for path in out.iterdir()), [
            "checkpoint", "model.ckpt-3.data-00000-of-00002", "model.ckpt-3.data-00001-of-00002",
            "model.ckpt-3.index"])

    def test_a_folder_with_checkpoints_is_left_alone(self):
        folder = self.copy()
        before = {path.name: path.read_bytes() for path in folder.iterdir()}
        self.assertIn("there is a checkpoint already", self.refuse("reshard", tool.FTRL, "--ps=2",
                                                                   folder))
        self.assertEqual(before, {path.name: path.read_bytes() for path in folder.iterdir()})

    def test_what_it_wants(self):
        self.assertIn("--ps is required", self.refuse("reshard", tool.ADAM, "out"))
        self.assertIn("--ps: expected an integer from 1", self.refuse("reshard", tool.ADAM, "--ps=0",
                                                                      "out"))
        self.assertIn("expected dtrain checkpoint reshard CKPT --ps=N DIR",
                      self.refuse("reshard", tool.ADAM, "--ps=2"))

    def test_a_damaged_checkpoint_leaves_nothing_behind(self):
        folder = self.copy()
        path = folder / "model.ckpt-3.data-00001-of-00002"
        data = path.read_bytes()
        path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
        self.refuse("reshard", folder, "--ps=2", self.folder / "out")
        self.assertEqual(list((self.folder / "out").iterdir()), [])


class Exporting(Checkpoint):
    def export(self, source):
        self.checkpoint("export", source, "out.npz")
        with zipfile.ZipFile(self.folder / "out.npz") as archive:
            self.assertIsNone(archive.testzip())
            return {name: read_npy(archive.read(name)) for name in archive.namelist()}

    def test_the_arrays_are_what_tensorflow_reads(self):
        arrays = self.export(tool.ADAM)
        self.assertEqual(set(arrays), {name + ".npy" for name in EXPECTED})
        for name, wanted in EXPECTED.items():
            dtype, shape, values = arrays[name + ".npy"]
            if not isinstance(wanted, dict):
                wanted = {"dtype": "int64" if name == "global_step" else "float32", "shape": [],
                          "data": [wanted]}
            self.assertEqual(dtype, {"float32": "<f4", "int64": "<i8"}[wanted["dtype"]])
            self.assertEqual(list(shape), wanted["shape"])
            code = "f" if dtype == "<f4" else "q"
            self.assertEqual(values, [struct.unpack(code, struct.pack(code, x))[0]
                                      for x in wanted["data"]], name)

    def test_all_types_and_forms(self):
        arrays = self.export(self.write("made", {
            "d": (DOUBLE, [1], [0.1]), "i": (INT32, [2, 1], [-1, 2]), "n": (FLOAT, [0, 3], []),
            "l": (INT64, [1], [-2 ** 62])}))
        self.assertEqual(arrays["d.npy"], ("<f8", (1,), [0.1]))
        self.assertEqual(arrays["i.npy"], ("<i4", (2, 1), [-1, 2]))
        self.assertEqual(arrays["n.npy"], ("<f4", (0, 3), []))
        self.assertEqual(arrays["l.npy"], ("<i8", (1,), [-2 ** 62]))

    def test_the_same_checkpoint_gives_the_same_bytes(self):
        self.export(tool.ADAM)
        first = (self.folder / "out.npz").read_bytes()
        self.export(tool.ADAM)
        self.assertEqual((self.folder / "out.npz").read_bytes(), first)

    def test_what_cannot_be_written_leaves_nothing(self):
        self.assertIn("none/out.npz: No such file",
                      self.refuse("export", tool.ADAM, "none/out.npz", code=1))
        (self.folder / "taken").mkdir()
        self.refuse("export", tool.ADAM, "taken", code=1)
        self.assertEqual([path.name for path in self.folder.iterdir()], ["taken"])


class Rows(Checkpoint):
    """One table: of any form, in any form."""
    GROWN = 12345678901234567  # an id, which fits no double

    def table(self, source, name, out="out.csv", *words):
        self.checkpoint("rows", source, name, out, *words)
        lines = (self.folder / out).read_text().splitlines()
        return lines[0], [line.split(",") for line in lines[1:]]

    def growing(self, *keys):
        """Two ids that have a row each, and one that was seen once and has none; in two parts."""
        return self.write("grows", {
            "t/part_00000/keys": (INT64, [len(keys), 3], [x for key in keys for x in key]),
            "t/part_00000/rows": (FLOAT, [1, 2], [1, 2]),
            "t/part_00001/keys": (INT64, [0, 3], []),
            "t/part_00001/rows": (FLOAT, [0, 2], [])})

    def test_rows_of_a_matrix_are_numbered(self):
        wanted = EXPECTED[TABLE]
        head, rows = self.table(tool.ADAM, TABLE)
        rank = wanted["shape"][1]
        self.assertEqual(head, ",".join(["id"] + [f"v{k}" for k in range(rank)]))
        self.assertEqual([row[0] for row in rows], [str(k) for k in range(wanted["shape"][0])])
        values = [float(cell) for row in rows for cell in row[1:]]
        self.assertEqual(len(values), len(wanted["data"]))
        for value, expected in zip(values, wanted["data"]):
            self.assertAlmostEqual(value, expected, delta=1e-7 * abs(expected))

    def test_ids_went_to_parts_by_turns(self):
        source = self.write("turns", {"t/part_0": (FLOAT, [2, 1], [0, 2]),
                                      "t/part_1": (FLOAT, [1, 1], [1])})
        self.assertEqual(self.table(source, "t"), ("id,v0", [["0", "0"], ["2", "2"], ["1", "1"]]))

    def test_a_table_that_grows_has_the_rows_that_were_admitted(self):
        seen, admitted = [7, 1, 3], [self.GROWN, 0, 3]
        outcomes = []
        for keys in ([seen, admitted], [admitted, seen]):  # one of them is the order of keys
            source = self.growing(*keys)
            ended = self.dtrain("checkpoint", "rows", source, "t", "out.csv")
            outcomes.append(ended.returncode)
            if ended.returncode:
                self.assertIn("not in the order of their keys", ended.stderr)
            else:
                self.assertEqual(self.table(source, "t")[1], [[str(self.GROWN), "1", "2"]])
        self.assertEqual(sorted(outcomes), [0, program.BAD_INPUT])

    def test_numpy_has_rows_and_ids(self):
        self.checkpoint("rows", tool.ADAM, TABLE, "out.npy")
        dtype, shape, values = read_npy((self.folder / "out.npy").read_bytes())
        self.assertEqual((dtype, list(shape)), ("<f4", EXPECTED[TABLE]["shape"]))
        self.assertEqual(len(values), len(EXPECTED[TABLE]["data"]))
        rows = shape[0]
        self.assertEqual(read_npy((self.folder / "out.ids.npy").read_bytes()),
                         ("<i8", (rows,), list(range(rows))))

    def test_the_projector_finds_its_files(self):
        words = self.folder / "words.txt"
        words.write_text("one\n\n two\twords \r\n")
        for _ in range(2):
            self.checkpoint("rows", tool.ADAM, TABLE, "shown", f"--vocabulary={words}")
        self.assertEqual([path.stat().st_size for path in (self.folder / "shown").glob("events.out.tfevents.*")],
                         [40])  # the format's version alone: a run for TensorBoard, once
        names = (self.folder / "shown/metadata.tsv").read_text().splitlines()
        self.assertEqual(names[:3], ["one", "two words", "2"])
        vectors = (self.folder / "shown/vectors.tsv").read_text().splitlines()
        self.assertEqual(len(vectors), len(names))
        self.assertEqual(len(vectors[0].split("\t")), EXPECTED[TABLE]["shape"][1])
        config = (self.folder / "shown/projector_config.pbtxt").read_text()
        self.assertIn(f'tensor_name: "{TABLE}"', config)
        self.assertIn('tensor_path: "vectors.tsv"', config)

    def test_words_are_quoted_where_they_must_be(self):
        words = self.folder / "words.txt"
        words.write_text('a,b\n"c"\n')
        self.checkpoint("rows", tool.ADAM, TABLE, "out.csv", f"--vocabulary={words}")
        lines = (self.folder / "out.csv").read_text().splitlines()
        self.assertTrue(lines[0].startswith("word,v0"))
        self.assertTrue(lines[1].startswith('"a,b",'))
        self.assertTrue(lines[2].startswith('"""c""",'))

    def test_what_is_refused_leaves_nothing(self):
        short = self.growing([7, 1, 3])
        wrong = {"nothing.csv": (tool.ADAM, "nothing"), "bias.csv": (tool.ADAM, "global_step"),
                 "short.csv": (short, "t")}
        before = sorted(path.name for path in self.folder.iterdir())
        said = [self.refuse("rows", *words, out) for out, words in wrong.items()]
        for text, expected in zip(said, ('no table "nothing"', "a matrix of floats",
                                         "other keys than rows")):
            self.assertIn(expected, text)
        self.assertIn('did you mean "words/embedding_weights"',
                      self.refuse("rows", tool.ADAM, "words/embedding_weight", "x.csv"))
        self.assertIn("a path of this host", self.refuse("rows", tool.ADAM, TABLE, "s3://a/b.csv"))
        self.assertIn("No such file",
                      self.refuse("rows", tool.ADAM, TABLE, "none/out.csv", code=1))
        self.assertIn("--vocabulary: gone",
                      self.refuse("rows", tool.ADAM, TABLE, "x.csv", "--vocabulary=gone"))
        self.assertEqual(sorted(path.name for path in self.folder.iterdir()), before)


class Garbage(Checkpoint):
    def try_all(self, path):
        for verb in VERBS:
            more = {"diff": [path], "reshard": ["--ps=2", self.folder / "out"],
                    "export": ["out.npz"], "rows": [TABLE, "out.csv"]}.get(verb, [])
            ended = self.dtrain("checkpoint", verb, path, *more)
            self.assertIn(ended.returncode, (0, program.BAD_INPUT), (verb, ended.stderr))
            self.assertNotIn("Sanitizer", ended.stderr)
            shutil.rmtree(self.folder / "out", ignore_errors=True)

    def test_bytes_that_mean_nothing(self):
        draw = random.Random(1)
        prefix = self.folder / "bad"
        for size in (0, 1, 47, 48, 400):
            for end in (b"", made.MAGIC):
                data = bytes(draw.randrange(256) for _ in range(size)) + end
                (self.folder / "bad.index").write_bytes(data)
                self.try_all(prefix)

    def test_an_index_with_any_byte_changed(self):
        draw = random.Random(2)
        folder = self.copy()
        path = folder / "model.ckpt-3.index"
        whole = path.read_bytes()
        for _ in range(12):
            data = bytearray(whole)
            data[draw.randrange(len(data))] = draw.randrange(256)
            path.write_bytes(bytes(data))
            self.try_all(folder)


class Words(Checkpoint):
    def test_wrong_words(self):
        wrong = [
            ([], "checkpoint: do what? See `dtrain help checkpoint`"),
            (["lst"], 'checkpoint: unknown "lst" (did you mean "ls"?); see `dtrain help checkpoint`'),
            (["show"], "checkpoint show: expected dtrain checkpoint show CKPT [NAME]"),
            (["diff", "a"], "checkpoint diff: expected dtrain checkpoint diff A B"),
            (["verify", "a", "b"], 'checkpoint verify: unexpected argument "b": 1 at most'),
            (["verify", "--ps=2", "a"],
             'checkpoint verify: unknown flag "ps": no flag has a similar name'),
        ]
        for words, text in wrong:
            self.assertEqual(self.run_bad("checkpoint", *words), text)

    def test_help_names_every_verb(self):
        text = self.run_ok("help", "checkpoint")
        for verb in VERBS + ("ls",):
            self.assertIn(f"dtrain checkpoint {verb}", text)


if __name__ == "__main__":
    program.main()
