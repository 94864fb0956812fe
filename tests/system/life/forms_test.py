"""Whatever the program reads by a name lies there in another form: as a pipe that nobody writes, a socket, a folder, a link
to nothing, to itself, to a device or to a process' memory, as a file of 1 TB that is empty, one without rights, without
bytes, or of NUL bytes. No command waits for it, takes its memory or dies of it, and who cannot go on names it."""
import ctypes
import json
import os
import resource
import shutil
import signal
import socket
import subprocess
import time
import unittest

import program

SPEC = {
    "name": "forms",
    "seed": 3,
    "data": {"train": {"format": "digits", "rows": 400}, "eval": {"format": "digits", "rows": 40},
             "batch_size": 20, "scale": 0.0039},
    "model": [{"op": "flatten"}, {"op": "dense", "name": "softmax", "units": 10}],
    "loss": "softmax_cross_entropy",
    "metrics": ["accuracy"],
    "optimizer": {"type": "adam", "learning_rate": 0.1},
    "train": {"last_step": 20, "save_checkpoint_steps": 10, "save_summaries_steps": 10, "checkpoint_dir": "run"},
}
ROWS = {
    "name": "rows",
    "seed": 3,
    "data": {"train": {"format": "csv", "file": "rows.csv", "label": "label"},
             "eval": {"format": "csv", "file": "rows.csv", "label": "label", "take": 40},
             "batch_size": 20, "columns": [{"column": "hash", "name": "word", "buckets": 30}]},
    "model": [{"op": "embedding", "name": "deep", "inputs": ["word"], "dimension": 2},
              {"op": "dense", "name": "logit", "units": 1}],
    "loss": "sigmoid_cross_entropy",
    "optimizer": {"type": "adagrad", "learning_rate": 0.1},
    "train": {"last_step": 20, "checkpoint_dir": "run", "evaluate_every_steps": 20, "keep_best": 1,
              "publish": {"every_secs": 1000, "to": "served"}, "save_summaries_steps": 0},
}
TEXT = {
    **ROWS,
    "data": {"train": {"format": "text", "file": "text.txt", "time": 8}, "batch_size": 4},
    "model": [{"op": "embedding", "name": "letter", "dimension": 4}, {"op": "dense", "name": "next", "units": 10}],
    "loss": "softmax_cross_entropy",
    "train": {"last_step": 5},
}
MEMORY_MAX = 1 << 30  # of any command: a sanitizer takes most of it
CPU_MAX_S = 60 * program.SLOWER
TERABYTE = 1 << 40
PR_CAPBSET_DROP, RIGHTS_OF_ROOT = 24, (1, 2)  # to read what nobody may
OF_THE_SYSTEM = ("memory", "link to itself")
IN_FOLDERS = ("pipe", "link to itself", "endless device", "terabyte", "NUL bytes")
DONE_OR_NAMED, FAILED_OR_NAMED = (0, 2), (0, 1, 2)  # that a read fails is the system's
CDLL = ctypes.CDLL(None)


def make_socket(at):
    folder = os.open(at.parent, os.O_DIRECTORY)  # by a short way: the names of sockets are
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"/proc/self/fd/{folder}/{at.name}")
    os.close(folder)


def make_large(at):
    with open(at, "wb") as file:
        file.truncate(TERABYTE)


def make_unreadable(at):
    at.write_bytes(b"{}")
    at.chmod(0)


FORMS = {
    "pipe": os.mkfifo,
    "socket": make_socket,
    "folder": lambda at: at.mkdir(),
    "link to nothing": lambda at: at.symlink_to("nothing"),
    "link to itself": lambda at: at.symlink_to(at.name),
    "endless device": lambda at: at.symlink_to("/dev/zero"),
    "memory": lambda at: at.symlink_to("/proc/self/mem"),
    "terabyte": make_large,
    "unreadable": make_unreadable,
    "empty": lambda at: at.write_bytes(b""),
    "NUL bytes": lambda at: at.write_bytes(b"\0" * (1 << 16)),
}


def end_pipe(pid, at):
    """As a writer that has nothing to say, once the process has opened it without one."""
    try:
        if any(os.readlink(each.path) == str(at) for each in os.scandir(f"/proc/{pid}/fd")):
            os.close(os.open(at, os.O_WRONLY | os.O_NONBLOCK))
    except OSError:
        pass  # it is over, or has closed the pipe meanwhile


def remove(at):
    if at.is_dir() and not at.is_symlink():
        shutil.rmtree(at)
    else:
        at.unlink(missing_ok=True)


def in_the_child():
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_MAX_S, CPU_MAX_S))
    for right in RIGHTS_OF_ROOT:
        CDLL.prctl(PR_CAPBSET_DROP, right, 0, 0, 0)  # fails where we are not root, who lacks them


def peak_bytes(pid):
    try:
        with open(f"/proc/{pid}/status", encoding="ascii") as file:
            return sum(int(line.split()[1]) * 1024 for line in file if line.startswith("VmHWM"))
    except OSError:
        return 0


class Forms(program.FolderCase):
    def setUp(self):
        super().setUp()
        (self.folder / "spec.json").write_text(json.dumps(SPEC))
        (self.folder / "hosts").write_text("127.0.0.1 slots=2\n")
        (self.folder / "models.json").write_text(json.dumps(
            {"models": [{"name": "m", "spec": "spec.json", "checkpoint": "run"}]}))
        (self.folder / "job.key").write_text("k" * 64)
        (self.folder / "job.key").chmod(0o600)
        (self.folder / "ready.json").write_text("{}")
        self.said = self.folder / "said"

    def run_limited(self, words, at):
        """Code and what it printed; a process that is still there at its limits has failed."""
        with open(self.said, "wb") as said, \
                subprocess.Popen([program.BINARY, *words], cwd=self.folder, stdin=subprocess.DEVNULL, stdout=said,
                                 stderr=said, env=program.environment(), preexec_fn=in_the_child) as child:
            until, peak = time.monotonic() + program.LIMIT_S / 2, 0
            while child.poll() is None:
                peak = max(peak, peak_bytes(child.pid))
                if at.is_fifo():
                    end_pipe(child.pid, at)
                if time.monotonic() > until or peak > MEMORY_MAX:
                    child.kill()
                    child.wait()
                    self.fail(f"{words}: is still there, {peak >> 20} MiB: {self.text()}")
                time.sleep(program.LOOK_S)
        self.assertNotEqual(child.returncode, -signal.SIGXCPU, (words, self.text()))
        program.no_crash(child.returncode, f"{words}: {self.text()}")
        return child.returncode

    def text(self):
        with open(self.said, "rb") as file:
            return file.read(1 << 16).decode(errors="replace")

    def try_forms(self, name, words, forms=tuple(FORMS)):
        at = self.folder / name
        keep = self.folder / "kept"
        shutil.rmtree(keep, ignore_errors=True)
        keep.mkdir()
        for each in self.folder.iterdir():
            if each not in (keep, self.said):
                (shutil.copytree if each.is_dir() else shutil.copy2)(each, keep / each.name)
        for form in forms:
            remove(at)
            FORMS[form](at)
            with self.subTest(name=name, form=form, words=words):
                code = self.run_limited(words, at)
                self.assertIn(code, FAILED_OR_NAMED if form in OF_THE_SYSTEM else DONE_OR_NAMED, self.text())
                if code:
                    self.assertIn(at.name, self.text())
            for each in self.folder.iterdir():
                if each not in (keep, self.said):
                    remove(each)
            shutil.copytree(keep, self.folder, dirs_exist_ok=True)
        shutil.rmtree(keep)

    def train(self, *words):
        self.assertEqual(program.run([*words, "spec.json"], self.folder).returncode, 0)

    def test_what_a_command_line_names(self):
        self.train("--result=result.json", "--metrics_file=metrics.jsonl")
        for name, words in {
            "spec.json": ["check", "spec.json"],
            "hosts": ["--ssh=ssh", "--hostfile=hosts", "--ps=1", "spec.json"],
            "models.json": ["serve", "--models=models.json"],
            "job.key": ["--job_name=worker", "--task_index=0", "--ps_hosts=127.0.0.1:1", "--worker_hosts=127.0.0.1:2",
                        "--start_timeout=1", "--key_file=job.key", "spec.json"],
            "result.json": ["plan", "--record=result.json", "spec.json"],
            "ready.json": ["status", "--ready_file=ready.json"],
        }.items():
            self.try_forms(name, words)
        for name in ("result.json", "metrics.jsonl"):
            self.try_forms(name, ["why", name])
            self.try_forms(name, ["why", "."])

    def test_what_lies_in_a_folder_of_checkpoints(self):
        self.train()
        for name in ("checkpoint", "model.ckpt-20.index", "model.ckpt-20.data-00000-of-00001"):
            self.try_forms(f"run/{name}", ["eval", "--checkpoint=run", "spec.json"], IN_FOLDERS)
        self.try_forms("run/.token", ["--restart_timeout=1", "--set", "train.last_step=21", "spec.json"], IN_FOLDERS)

    def write_rows(self):
        (self.folder / "spec.json").write_text(json.dumps(ROWS))
        (self.folder / "rows.csv").write_text("label,word\n" + "".join(f"{i % 2},w{i % 31}\n" for i in range(400)))

    def test_what_data_lie_in(self):
        self.write_rows()
        self.try_forms("rows.csv", ["check", "spec.json"])
        self.try_forms("rows.csv", ["stats", "spec.json"], ("pipe", "endless device", "terabyte"))
        (self.folder / "spec.json").write_text(json.dumps(TEXT))
        self.try_forms("text.txt", ["check", "spec.json"], ("pipe", "endless device", "terabyte"))

    def test_what_a_run_keeps_beside_its_checkpoints(self):
        self.write_rows()
        self.train()
        goes_on = ["--set", "train.last_step=40", "spec.json"]
        exports = ["export", "--delta", "--checkpoint=served", "--format=c", "--out=out", "spec.json"]
        self.try_forms("run/best/best.json", goes_on, IN_FOLDERS)
        self.try_forms("run/measured.json", goes_on, IN_FOLDERS)
        for name in ("published.json", "checkpoint", "measured.json"):
            self.try_forms(f"served/{name}", exports, IN_FOLDERS)
        for name in ("published.json", "model.ckpt-40.index"):
            self.try_forms(f"served/{name}", goes_on, IN_FOLDERS)


if __name__ == "__main__":
    unittest.main()
