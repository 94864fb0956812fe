"""A folder of checkpoints into which somebody else may write, too: under every name that the program makes there he leaves
a link to a file or to a folder, a pipe, or a socket. What lies outside of the folder stays as it is, and nothing waits."""
import ctypes
import json
import os
import re
import shutil
import socket
import struct
import unittest

import program

SPEC = {
    "name": "links",
    "seed": 3,
    "data": {"train": {"format": "digits", "rows": 400}, "eval": {"format": "digits", "rows": 40},
             "batch_size": 20, "scale": 0.0039},
    "model": [{"op": "flatten"}, {"op": "dense", "name": "softmax", "units": 10}],
    "loss": "softmax_cross_entropy",
    "metrics": ["accuracy"],
    "optimizer": {"type": "adam", "learning_rate": 0.1},
    "train": {"last_step": 20, "save_checkpoint_steps": 10, "save_summaries_steps": 10, "checkpoint_dir": "run",
              "keep_checkpoint_max": 1,
              "hooks": [{"type": "profiler", "save_steps": 10}, {"type": "final_evaluation", "path": "run/last.json"}]},
}
IN_CREATE, IN_MOVED_TO, IN_OPEN = 0x100, 0x80, 0x20
EVENT_BYTES = 16
RANDOM = [(r"_temp_[0-9a-f]{16}", "_temp_0123456789abcdef"), (r"\.tempstate\d+", ".tempstate4711"),
          (r"tfevents\.\d+", "tfevents.0000000000"), (r"-\d{6,}", "-123456")]
KEPT = b"a file of another place\n" * 20


class Watch:
    """The names that are made or opened in a folder from now on (inotify)."""

    def __init__(self, folder):
        libc = ctypes.CDLL(None, use_errno=True)
        self.fd = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        libc.inotify_add_watch(self.fd, os.fsencode(folder), IN_CREATE | IN_MOVED_TO | IN_OPEN)

    def names(self):
        found = set()
        while True:
            try:
                events = os.read(self.fd, 1 << 16)
            except BlockingIOError:
                break
            while events:
                length = struct.unpack_from("iIII", events)[3]
                name = events[EVENT_BYTES:EVENT_BYTES + length].rstrip(b"\0").decode()
                events = events[EVENT_BYTES + length:]
                for pattern, other in RANDOM:
                    name = re.sub(pattern, other, name)
                found |= {name} - {""}
        os.close(self.fd)
        return sorted(found)


def make_socket(at):
    """By a short way: the names of sockets are."""
    folder = os.open(at.parent, os.O_DIRECTORY)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"/proc/self/fd/{folder}/{at.name}")
    os.close(folder)


class Links(program.FolderCase):
    def setUp(self):
        super().setUp()
        self.run_folder, self.victims = self.folder / "run", self.folder / "victims"
        (self.folder / "spec.json").write_text(json.dumps(SPEC))

    def make_victims(self):
        shutil.rmtree(self.victims, ignore_errors=True)
        self.victims.mkdir()
        for name in ("file", "part-00000-of-00001", "model.ckpt-10.index", "best.json", "checkpoint"):
            (self.victims / name).write_bytes(KEPT)

    def ways(self, at):
        yield lambda: at.symlink_to(self.victims / "file")
        yield lambda: at.symlink_to(self.victims, target_is_directory=True)
        yield lambda: os.mkfifo(at)
        yield lambda: make_socket(at)

    def train(self):
        return program.run(["spec.json"], self.folder)

    def evaluate(self):
        return program.run(["--job_name=evaluator", "--ps_hosts=127.0.0.1:1", "--worker_hosts=127.0.0.1:2",
                            "--start_timeout=1", "--keep_best=1", "spec.json"], self.folder)

    def leave_nothing_outside(self, below, prepare, run, only=None):
        """One name after the other, in each way."""
        prepare()
        (self.run_folder / below).mkdir(exist_ok=True, parents=True)
        watch = Watch(self.run_folder / below)
        self.assertEqual((done := run()).returncode, 0, done.stderr)
        names = watch.names()
        if only:
            self.assertIn(only, names)
            names = [only]
        else:
            self.assertGreater(len(names), 3)
        for name in names:
            for way in self.ways(self.run_folder / below / name):
                prepare()
                self.make_victims()
                at = self.run_folder / below / name
                at.parent.mkdir(exist_ok=True, parents=True)
                if at.is_dir():
                    shutil.rmtree(at)
                at.unlink(missing_ok=True)
                way()
                done = run()  # ends, or fails here at the limit of all commands
                self.assertIn(done.returncode, range(128), (name, done.stderr))
                left = {file.name: file.read_bytes() for file in self.victims.iterdir()}
                self.assertEqual(left, dict.fromkeys(left, KEPT), (name, done.stderr))
                self.assertEqual(len(left), 5, (name, done.stderr))

    def test_of_a_run(self):
        self.leave_nothing_outside("", lambda: shutil.rmtree(self.run_folder, ignore_errors=True), self.train)

    def test_of_a_run_that_goes_on(self):
        """Its folder is that of a life before, of which less steps are left."""
        self.train()
        kept = self.folder / "kept"
        self.run_folder.rename(kept)
        (self.folder / "spec.json").write_text(json.dumps(program.changed(SPEC, {"train.last_step": 40})))

        def prepare():
            shutil.rmtree(self.run_folder, ignore_errors=True)
            shutil.copytree(kept, self.run_folder)
        self.leave_nothing_outside("", prepare, self.train)

    def test_of_an_evaluator(self):
        self.train()

        def prepare():
            shutil.rmtree(self.run_folder / "best", ignore_errors=True)
            for left in self.run_folder.glob("eval*"):
                shutil.rmtree(left)
        self.leave_nothing_outside("best", prepare, self.evaluate)
        self.leave_nothing_outside("", prepare, self.evaluate, only="eval")


if __name__ == "__main__":
    unittest.main()
