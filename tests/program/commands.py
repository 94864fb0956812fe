"""Commands of the program, in a folder with a spec and a few broken files, and what they started."""
import json
import os
import re
import subprocess
import tempfile
import threading

import program
from program import LIMIT_S

SPEC = {
    "name": "digits",
    "data": {"train": {"format": "digits", "rows": 400}, "batch_size": 20, "scale": 0.0039},
    "model": [{"op": "flatten"}, {"op": "dense", "name": "softmax", "units": 10}],
    "loss": {"op": "softmax_cross_entropy"},
    "metrics": ["accuracy"],
    "optimizer": {"type": "gradient_descent", "learning_rate": 0.1},
    "train": {"last_step": 20},
}

THREADS = 17  # where /proc/PID/stat has their number, behind the name

FILES = {
    "spec.json": json.dumps(SPEC),
    "broken.json": "{\n",
    "list.json": "[]",
    "twice.json": '{"name": "a", "name": "b"}',
    "empty.json": "",
}


def succeeds(*words):
    """Whether the command exists and is permitted."""
    try:
        return subprocess.run(words, capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def mounting():
    """A command in front of one that may mount; None: we have no right to."""
    for words in (["unshare", "-m"], ["unshare", "-rm"]):
        with tempfile.TemporaryDirectory() as folder:
            if succeeds(*words, "mount", "-t", "tmpfs", "none", folder):
                return words
    return None


MOUNTING = mounting()
NO_MOUNT = "may not mount here"


class CommandCase(program.FolderCase):
    def setUp(self):
        super().setUp()
        for name, text in FILES.items():
            (self.folder / name).write_text(text)

    def run_dtrain(self, *words, **options):
        return program.run(words, self.folder, **options)


class Running:
    """A running program whose output is collected line by line."""

    def __init__(self, arguments, cwd, command=None, env=None):
        self.process = subprocess.Popen(
            (command or []) + [program.BINARY] + arguments, cwd=cwd, env=program.environment(env),
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.lines = []
        self.changed = threading.Condition()
        self.reader = threading.Thread(target=self.read)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            with self.changed:
                self.lines.append(line.rstrip("\n"))
                self.changed.notify_all()

    def wait_for(self, word):
        self.wait_for_match(re.escape(word))

    def wait_for_match(self, pattern, count=1):
        """Waits until this many lines match; returns the matches."""
        def is_there():
            return len(self.matches(pattern)) >= count
        with self.changed:
            if not self.changed.wait_for(is_there, LIMIT_S):
                raise AssertionError(f"no {count} times {pattern!r} in {self.lines}")
            return self.matches(pattern)

    def matches(self, pattern):
        return [match for match in (re.search(pattern, line) for line in self.lines) if match]

    def end(self):
        code = self.process.wait(LIMIT_S)
        self.reader.join(LIMIT_S)
        self.process.stdout.close()
        return code


def children_of(launcher):
    """Also those that have not become a task yet."""
    with open(f"/proc/{launcher}/task/{launcher}/children", encoding="ascii") as file:
        return file.read().split()


def tasks_of(launcher):
    """The children of a process by name: {"ps/0": pid, ...}."""
    found = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
                parent = int(file.read().rpartition(")")[2].split()[1])
            with open(f"/proc/{pid}/cmdline", encoding="utf-8") as file:
                words = file.read().split("\0")
        except OSError:
            continue  # ended meanwhile
        if parent == launcher:
            flags = dict(word[2:].split("=", 1) for word in words if "=" in word)
            found[f'{flags.get("job_name")}/{flags.get("task_index")}'] = int(pid)
    return found


def is_running(pid):
    """Until its last thread has ended, which may still be amid a call when the first has."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            words = file.read().rpartition(")")[2].split()
            return words[0] not in "ZX" or int(words[THREADS]) > 1
    except OSError:
        return False


def wait_until_gone(pids):
    program.wait_until(lambda: not any(map(is_running, pids)),
                       lambda: f"the end of {[pid for pid in pids if is_running(pid)]}")
