"""The program, as tests start it: where it is, its environment, and helpers that all tests share.

cluster.py starts tasks, lives.py kills and restarts them, named.py starts tasks that find each other by a name,
commands.py runs commands and inspects what they started, hosts.py makes two hosts of one, wire.py speaks the protocol,
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
SLOWER = 1 if SANITIZER == "none" else 3  # factor for a build with a sanitizer, by which time limits grow, too
LIMIT_S = 300  # of every wait; on an idle machine none takes more than a second or two
LOOK_S, LOOK_MAX_S = 0.002, 0.02  # pause between two polls: at first, and later
BAD_HOST, BAD_INPUT = 1, 2  # exit codes
CRASHES = {-signo for signo in (signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGABRT)}
VARIABLES = ("JOB_NAME", "TASK_INDEX", "PS_HOSTS", "WORKER_HOSTS", "TF_CONFIG",  # tell which task a process is
             "SLURM_NTASKS", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "WORLD_SIZE")  # reported as unused
# Else the program sets these and executes itself again (kernels/cpu/environment.c), which with a sanitizer is slow.
PREPARED = {} if SANITIZER == "none" else {"OPENBLAS_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive", "GOMP_SPINCOUNT": "1000"}

# Without a terminal SIGHUP may be ignored here, and then in the programs, too. A signal with a handler gets its default
# action in them.
if signal.getsignal(signal.SIGHUP) == signal.SIG_IGN:
    signal.signal(signal.SIGHUP, lambda *_: None)


def environment(more=None):
    """This environment without variables that tell a task its role. Hides GPUs (tests/gpu.sh tests them):
    many tests run at once, and a single process on a GPU does not compute the same bits as a cluster,
    which updates on the CPU."""
    kept = {name: value for name, value in os.environ.items() if name not in VARIABLES}
    return {**kept, "CUDA_VISIBLE_DEVICES": "", **PREPARED, **(more or {})}


def changed(spec, changes):
    """The spec with other values: {"train.mode": "sync", ...}; None removes a key."""
    spec = copy.deepcopy(spec)
    for path, value in changes.items():
        *folders, key = path.split(".")
        at = spec
        for folder in folders:
            at = at.setdefault(folder, {})
        at[key] = copy.deepcopy(value)  # so that later changes of it affect only this spec
        if value is None:
            del at[key]
    return spec


def no_crash(code, story):
    """Fails if the program crashed, which it must not whatever a test expects."""
    if code in CRASHES:
        raise AssertionError(f"ended by {signal.Signals(-code).name}\n{story}")


def run(words, folder, env=None, before=(), stdin=None, **streams):
    """Runs the program until it ends. before: arguments of a command that starts it; stdin: its standard input."""
    reads = {"stdin": subprocess.DEVNULL} if stdin is None else {"input": stdin}
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **streams, **reads}
    ended = subprocess.run([*before, BINARY, *map(str, words)], cwd=folder, env=environment(env),
                           text=True, timeout=LIMIT_S, check=False, **streams)
    no_crash(ended.returncode, f"{ended.stdout}{ended.stderr}")
    return ended


def wait_until(is_true, what):
    """Polls less and less often, so that the processor is free for what is waited for."""
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
        """Checks the peak memory of every program that has ended so far; not with a sanitizer, which needs more."""
        if SANITIZER == "none":
            self.assertLess(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, kib, what)

    def preloaded(self, source):
        """Environment variables for a program in which functions of this C source replace those of libraries."""
        compiler, shim = os.environ.get("CC", "cc").split(), self.folder / "shim.so"
        (self.folder / "shim.c").write_text(source)
        subprocess.run([*compiler, "-shared", "-fPIC", "-o", shim, self.folder / "shim.c"], check=True)
        first = []  # a sanitizer's library has to come first
        if "address" in SANITIZER:
            first = [subprocess.check_output([*compiler, "-print-file-name=libasan.so"], text=True).strip()]
        return {"LD_PRELOAD": " ".join([*first, str(shim)])}


def has_tls():
    """Whether the program was built with TLS."""
    return re.search(r"libssl +\d", run(["version"], None).stdout) is not None


def need_binary():
    if not os.access(BINARY, os.X_OK):
        sys.exit(f"DTRAIN_BINARY={BINARY}: no such program")


def main():
    need_binary()
    unittest.main()
