"""The examples on real data, the four-shell way: 2 ps and 2 workers with explicit flags must reach what is known to be
reachable. Data are looked for in $DTRAIN_DATA or beside the repository; a set that is absent is skipped."""
import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import program
from program.cluster import by_flags, hold_addresses

ROOT = Path(__file__).resolve().parents[3]
DATA = Path(os.environ.get("DTRAIN_DATA", ROOT.parent / "shared" / "data"))
LIMIT_S = 1800  # for one run; minutes on two old cores
NAMES = ("ps/0", "ps/1", "worker/0", "worker/1")


class Real(unittest.TestCase):
    def start(self, spec, flags, folder, addresses):
        """The four tasks, told by flags; the chief leaves its result."""
        hosts = {"ps": addresses[:2], "worker": addresses[2:]}
        tasks = []
        for name in NAMES:
            words, _ = by_flags(name, hosts, [] if name.startswith("ps") else [str(spec)])
            extra = [f"--result={folder}/result.json"] if name == "worker/0" else []
            with open(f"{folder}/{name.replace('/', '-')}.log", "wb") as log:
                tasks.append(subprocess.Popen([program.BINARY, *flags, *extra, *words], stdout=log,
                                              stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL))
        return tasks

    def run_cluster(self, spec, flags, folder):
        sockets, addresses = hold_addresses(len(NAMES))
        tasks = self.start(spec, flags, folder, addresses)
        try:
            return [task.wait(LIMIT_S) for task in tasks]
        finally:
            for task in tasks:
                task.kill()
                task.wait()
            for held in sockets:
                held.close()

    def metrics(self, example, data, *changes):
        if not (DATA / data).is_dir():
            self.skipTest(f"{DATA / data} is absent")
        flags = [f"--data_dir={DATA / data}"] + [f"--set={change}" for change in changes]
        with tempfile.TemporaryDirectory() as folder:
            codes = self.run_cluster(ROOT / "examples" / example, flags, folder)
            logs = "\n".join(log.read_text() for log in sorted(Path(folder).glob("*.log")))
            self.assertEqual(codes, [0, 0, 0, 0], logs)
            with open(f"{folder}/result.json", encoding="utf-8") as result:
                return json.load(result)["metrics"]

    def accuracy(self, example, data, *changes):
        return self.metrics(example, data, *changes)["accuracy"]

    def test_softmax_regression_asynchronous(self):
        self.assertGreaterEqual(self.accuracy("mnist_softmax.json", "mnist"), 0.915)

    def test_softmax_regression_synchronous(self):
        self.assertGreaterEqual(
            self.accuracy("mnist_softmax.json", "mnist", "train.mode=sync"), 0.915)

    def test_a_multilayer_perceptron(self):
        self.assertGreaterEqual(self.accuracy("mnist_mlp.json", "mnist"), 0.975)

    def test_the_deep_network(self):
        self.assertGreaterEqual(self.accuracy("mnist_cnn.json", "mnist"), 0.99)

    def test_the_deep_network_on_fashion(self):
        """The same network: an epoch of the four after which it has 0.90."""
        self.assertGreaterEqual(self.accuracy("fashion_cnn.json", "fashion-mnist", "train.epochs=1"), 0.84)

    def test_logistic_regression_by_ftrl(self):
        found = self.metrics("a9a_ftrl.json", "libsvm-a9a")
        self.assertGreaterEqual(found["auc"], 0.902)
        self.assertLessEqual(found["log_loss"], 0.325)

    def test_wide_and_deep(self):
        found = self.metrics("adult_wide_deep.json", "adult")
        self.assertGreaterEqual(found["auc"], 0.905)
        self.assertGreaterEqual(found["accuracy"], 0.853)


if __name__ == "__main__":
    result = unittest.main(exit=False).result
    if result.wasSuccessful() and len(result.skipped) == result.testsRun:
        sys.exit(77)  # meson: skipped
    sys.exit(not result.wasSuccessful())
