"""The program, as tests start it: where it is, what it inherits, and what every test of it shares.

cluster.py starts tasks, lives.py lets them die and live again, named.py those that find each other by a name,
commands.py runs commands and looks at what they started, hosts.py makes two hosts of one, wire.py speaks to tasks by hand,
asking.py is a hostile client of HTTP, lying.py a hostile server.

meson names the program (DTRAIN_BINARY), how it was built (DTRAIN_SANITIZER) and, by PYTHONPATH, the folder of
this package; links in folders whose scripts people start by hand do the last for them.
"""
import copy
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

BINARY = os.environ.get("DTRAIN_BINARY", "dtrain")
SANITIZER = os.environ.get("DTRAIN_SANITIZER", "none")
ROOT = next(folder for folder in Path(__file__).resolve().parents if (folder / "LICENSE").is_file())
FIXTURES = ROOT / "tests" / "fixtures"
SLOWER = 1 if SANITIZER == "none" else 3  # a sanitizer makes everything so, and limits that must not run out as much longer
LIMIT_S = 300  # for anything that is waited for; nothing here takes more than a second or two on an idle machine
LOOK_S, LOOK_MAX_S = 0.002, 0.02  # between two looks at what is waited for: at first, and later
BAD_HOST, BAD_INPUT = 1, 2  # exit codes
CRASHES = {-signo for signo in (signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGABRT)}
VARIABLES = ("JOB_NAME", "TASK_INDEX", "PS_HOSTS", "WORKER_HOSTS", "TF_CONFIG",  # which task one is
             "SLURM_NTASKS", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "WORLD_SIZE")  # told as not used
# What the program sets and then starts anew for (kernels/cpu/environment.c), which takes a sanitized one as long again
PREPARED = {} if SANITIZER == "none" else {"OPENBLAS_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive", "GOMP_SPINCOUNT": "1000"}

# Whoever runs the tests may be without a terminal and ignore SIGHUP, which the programs would then
# ignore, too. A handler of ours becomes the default in them.
if signal.getsignal(signal.SIGHUP) == signal.SIG_IGN:
    signal.signal(signal.SIGHUP, lambda *_: None)


def environment(more=None):
    """Ours without what tells a task who it is. Where there is a GPU it is hidden, which tests/gpu.sh
    is for: many tests run at once, and a single process on it does not have the bits of a cluster,
    which updates on the CPU."""
    kept = {name: value for name, value in os.environ.items() if name not in VARIABLES}
    return {**kept, "CUDA_VISIBLE_DEVICES": "", **PREPARED, **(more or {})}


def changed(spec, changes):
    """The spec with other values: {"train.mode": "sync", ...}; None takes a key away."""
    spec = copy.deepcopy(spec)
    for path, value in changes.items():
        *folders, key = path.split(".")
        at = spec
        for folder in folders:
            at = at.setdefault(folder, {})
        at[key] = copy.deepcopy(value)  # a later change of it is of this spec alone
        if value is None:
            del at[key]
    return spec


def no_crash(code, story):
    """Whatever a test asks, the program never ends by a fault of its own: such an end fails every test."""
    if code in CRASHES:
        raise AssertionError(f"ended by {signal.Signals(-code).name}\n{story}")


def run(words, folder, env=None, before=(), stdin=None, **streams):
    """Until it ends. before: words of a command that starts it; stdin: what it reads there."""
    reads = {"stdin": subprocess.DEVNULL} if stdin is None else {"input": stdin}
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **streams, **reads}
    ended = subprocess.run([*before, BINARY, *map(str, words)], cwd=folder, env=environment(env),
                           text=True, timeout=LIMIT_S, check=False, **streams)
    no_crash(ended.returncode, f"{ended.stdout}{ended.stderr}")
    return ended


def wait_until(is_true, what):
    """Looks become rarer, so that who is waited for has the processor."""
    began = time.monotonic()
    while not is_true():
        waited = time.monotonic() - began
        if waited > LIMIT_S:
            raise AssertionError(f"waited {LIMIT_S} s for {what()}")
        time.sleep(min(max(waited / 10, LOOK_S), LOOK_MAX_S))


class FolderCase(unittest.TestCase):
    """A test with a folder of its own."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="dtrain-test-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def assert_took_at_most(self, kib, what):
        """Memory of each program that has ended so far; a sanitizer takes more."""
        if SANITIZER == "none":
            self.assertLess(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, kib, what)

    def preloaded(self, source):
        """The environment of a program in which functions of this source in C take the places of the libraries'."""
        compiler, shim = os.environ.get("CC", "cc").split(), self.folder / "shim.so"
        (self.folder / "shim.c").write_text(source)
        subprocess.run([*compiler, "-shared", "-fPIC", "-o", shim, self.folder / "shim.c"], check=True)
        first = []  # a sanitizer has to be
        if "address" in SANITIZER:
            first = [subprocess.check_output([*compiler, "-print-file-name=libasan.so"], text=True).strip()]
        return {"LD_PRELOAD": " ".join([*first, str(shim)])}


def has_tls():
    """Was this program built with it?"""
    return re.search(r"libssl +\d", run(["version"], None).stdout) is not None


def need_binary():
    if not os.access(BINARY, os.X_OK):
        sys.exit(f"DTRAIN_BINARY={BINARY}: no such program")


def main():
    need_binary()
    unittest.main()
