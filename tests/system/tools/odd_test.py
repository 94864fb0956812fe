"""A run's folder in which something is not what it should be: each file and the folder itself, in each way, and lists of deltas
that are drawn. Who reads it (dtrain serve, with and without --follow, export --delta) answers with values that the
run has had, or says why not; it ends, and takes no memory for what is only announced.

    ODD_SEEDS=100..2000 python3 tests/system/tools/odd_test.py"""
import json
import os
import random
import re
import shutil
import socket
import tempfile
from pathlib import Path

import fresh_test
import program
from program import lying
from serve_test import BATCH, Server

FIRST, LAST = map(int, os.environ.get("ODD_SEEDS", "1..20" if program.SANITIZER == "none" else "1..6").split(".."))
MEMORY_KIB = 600 << 10  # of a command
HUGE_BYTES = 1 << 40
DELTAS = 3
SOME = 1 if program.SANITIZER == "none" else 4


def change_bytes(change):
    return lambda path: path.write_bytes(change(path.read_bytes()))


def be_socket(path):
    path.unlink()
    with socket.socket(socket.AF_UNIX) as end:
        here = os.open(path.parent, os.O_RDONLY)
        end.bind(f"/proc/self/fd/{here}/{path.name}")
        os.close(here)


def in_place(make):
    def replace(path):
        path.unlink()
        make(path)
    return replace


# What becomes of a file
FILES = {
    "gone": os.unlink,
    "a folder": in_place(os.mkdir),
    "a pipe": in_place(os.mkfifo),
    "a socket": be_socket,
    "a device": in_place(lambda path: path.symlink_to("/dev/zero")),
    "a link to itself": in_place(lambda path: path.symlink_to(path.name)),
    "a link to nothing": in_place(lambda path: path.symlink_to("nothing")),
    "empty": change_bytes(lambda data: b""),
    "half": change_bytes(lambda data: data[:len(data) // 2]),
    "longer": change_bytes(lambda data: data + data),
    "zeros": change_bytes(lambda data: bytes(len(data))),
    "noise": change_bytes(lambda data: random.Random(1).randbytes(len(data) + 7)),
    "another byte": change_bytes(lambda data: data[:len(data) // 2] + bytes([data[len(data) // 2] ^ 64]) + data[len(data) // 2 + 1:]),
    "huge": lambda path: os.truncate(path, HUGE_BYTES),
    "huge and new": in_place(lambda path: (path.touch(), os.truncate(path, HUGE_BYTES))),
}
# and of the folder
FOLDERS = {
    "gone": lambda path: None,
    "a file": lambda path: path.write_text("model_checkpoint_path: \"x\"\n"),
    "a pipe": os.mkfifo,
    "a link to itself": lambda path: path.symlink_to(path.name),
    "empty": os.mkdir,
    "a device": lambda path: path.symlink_to("/dev/zero"),
}


class Odd(fresh_test.Publishing):
    def setUp(self):
        super().setUp()
        run = self.begin()
        self.wait_for_deltas(run, DELTAS)
        self.kill(run)
        self.life, self.kept = self.folder / "life", self.folder / "kept"
        said = self.published()
        said["deltas"] = said["deltas"][:DELTAS]
        self.name = said["checkpoint"]["name"]
        self.write_list(said)
        os.rename(self.life, self.kept)
        self.said = said
        self.right, self.exported = {}, {}  # of steps what is served, and what is exported
        for count in range(DELTAS + 1):
            self.put_back()
            self.write_list({**said, "deltas": said["deltas"][:count]})
            step = (said["deltas"][count - 1] if count else said["checkpoint"])["step"]
            server = self.follow()
            self.wait_for_metric(server, "step", step)
            self.right[step] = self.predictions(server)
            self.assertEqual(server.end(), 0)
            if step:  # before the first one a table has no row to export
                done = self.export()
                self.assertEqual(done.returncode, 0, done.stderr)
                self.exported[step] = (self.folder / "out/clicks.c").read_text()

    def write_list(self, said):
        (self.life / "published.json").write_text(json.dumps(said))

    def take_away(self):
        """At once: who follows it keeps a lease in it, which is made again where it goes alone."""
        if self.life.is_symlink() or not self.life.is_dir():
            self.life.unlink(missing_ok=True)
            return
        gone = Path(tempfile.mkdtemp(dir=self.folder)) / "life"
        os.rename(self.life, gone)
        shutil.rmtree(gone, ignore_errors=True)

    def put_back(self):
        self.take_away()
        shutil.copytree(self.kept, self.life)

    def predictions(self, server):
        status, said = server.post("predict", {"instances": self.instances}, "clicks")
        self.assertEqual(status, 200, said)
        return said

    def check_served(self, what, is_told=False):
        """From now on; what never served says why not. is_told: the list cannot be followed, and that is said."""
        server = Beginning(self, "run.json", "--checkpoint=life", f"--max_batch={BATCH}", "--poll_secs=0.05", "--follow")
        if server.process.poll() is None:
            if is_told:
                program.wait_until(lambda: "WARNING: " in server.story(), lambda: f"{what}: {server.story()}")
            self.assertIn(self.predictions(server), self.right.values(), (what, server.story()))
            self.assertEqual(server.end(), 0, what)
        else:
            self.assertIn(server.process.returncode, (program.BAD_HOST, program.BAD_INPUT), (what, server.story()))
            self.assertIn("dtrain: ", server.story(), what)
        server.kill()

    def export(self):
        words = ["export", f"--checkpoint=life/{self.name}", "--format=c", "--out=out", "--delta", "run.json"]
        return program.run(words, self.folder)

    def check_exported(self, what):
        """Where it is done, it is of some step."""
        done = self.export()
        self.assertIn(done.returncode, (0, program.BAD_HOST, program.BAD_INPUT), (what, done.stderr))
        self.assertTrue(done.returncode == 0 or "dtrain: " in done.stderr, (what, done.stderr))
        if done.returncode == 0:
            step = int(re.search(r"step (\d+)", done.stdout)[1])
            self.assertEqual((self.folder / "out/clicks.c").read_text(), self.exported.get(step), (what, done.stdout))

    def check_all(self, what, is_told=False):
        self.check_served(what, is_told)
        self.check_exported(what)
        self.assert_took_at_most(MEMORY_KIB, what)

    def files(self):
        deltas = [one["name"] for one in self.said["deltas"]]
        names = [f"{name}{ending}" for name in (self.name, deltas[0], deltas[-1])
                 for ending in (".index", ".data-00000-of-00002", ".data-00001-of-00002")]
        return ["checkpoint", "published.json", *names]

    def test_files(self):
        living = self.follow()
        cases = [(name, how) for name in self.files() for how in FILES]
        for name, how in cases[::SOME]:
            self.put_back()
            FILES[how](self.life / name)
            with self.subTest(name=name, how=how):
                self.check_all(f"{name}: {how}")
                self.assertIn(self.predictions(living), self.right.values(), living.story())
        self.put_back()
        self.assertEqual(living.end(), 0)

    def test_the_folder(self):
        living = self.follow()
        for how, become in FOLDERS.items():
            self.take_away()
            become(self.life)
            with self.subTest(how=how):
                self.check_all(how)
                self.assertIn(self.predictions(living), self.right.values(), living.story())
            self.put_back()
        self.assertEqual(living.end(), 0)

    def test_lists_of_deltas(self):
        """In which something is false: nothing is served that the run has not had."""
        first, second, third = self.said["deltas"]
        lists = [[second, first, third], [second, third], [first, third], [third, second, first], [first, first], [first, second, second],
                 [{**second, "name": first["name"]}], [first, {**third, "name": second["name"]}], [first] * 1000,
                 [{**first, "name": "../life/" + first["name"]}], [{**first, "name": first["name"] + "\x1b[2J"}]]
        for deltas in lists:
            self.put_back()
            self.write_list({**self.said, "deltas": deltas})
            with self.subTest(deltas=str(deltas)[:500]):
                self.check_all(str(deltas)[:2000], is_told=True)
        drawn = [lying.mutated_json(random.Random(seed), self.said) for seed in range(FIRST, LAST + 1)]
        for said in [{**self.said, "checkpoint": third}, {**self.said, "checkpoint": {**third, "step": 2 ** 62}}, *drawn]:
            self.put_back()
            self.write_list(said)
            with self.subTest(said=str(said)[:500]):
                self.check_all(str(said)[:2000])


class Beginning(Server):
    """One that may end before it serves anything."""

    def __init__(self, case, *words):
        try:
            super().__init__(case, *words)
        except AssertionError:
            program.no_crash(self.process.returncode, self.story())


if __name__ == "__main__":
    program.main()
