"""What these tests share: a small run, started, ended, and started again, and what it left behind.

Runs are clusters of the launcher (--local_ps, --local_workers) or single processes; both end by
themselves. In synchronous mode the values at the end are a function of the spec and of the number of
workers alone, so runs are compared bit for bit.
"""
import ast
import json
import re
import shutil
import struct
import subprocess
import zipfile

import program

ATTEMPTS_MAX = 20
NEVER = 1000000000  # steps

# Everything that a restart must carry on is in it: an epoch's order, dropout, slots, powers.
SPEC = {
    "name": "life",
    "seed": 3,
    "data": {
        "train": {"format": "digits", "rows": 400},
        "eval": {"format": "digits", "rows": 100, "split": "test"},
        "batch_size": 20,
        "scale": 0.0039,
        "shuffle": True,
    },
    "model": [
        {"op": "flatten"},
        {"op": "dense", "name": "hidden", "units": 16, "activation": "relu"},
        {"op": "dropout", "rate": 0.3},
        {"op": "dense", "name": "logits", "units": 10},
    ],
    "loss": {"op": "softmax_cross_entropy"},
    "metrics": ["accuracy"],
    "optimizer": {"type": "adam", "learning_rate": 0.005},
    "train": {
        "mode": "sync",
        "log_every_steps": NEVER,
        "checkpoint_dir": "run",
        "save_checkpoint_steps": 0,
        "save_summaries_steps": 0,
        "log_step_count_steps": 0,
    },
}


def spec_with(changes):
    return program.changed(SPEC, changes)


def read_arrays(path):
    """Of a file as numpy saves it: {name: values as they are stored}."""
    arrays = {}
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            data = archive.read(name)
            end = 10 + struct.unpack_from("<H", data, 8)[0]
            header = ast.literal_eval(data[10:end].decode())
            code = {"<f4": "f", "<i8": "q"}[header["descr"]]
            count = (len(data) - end) // struct.calcsize(code)
            arrays[name[:-len(".npy")]] = struct.unpack_from(f"<{count}{code}", data, end)
    return arrays


class LifeCase(program.FolderCase):
    def write_spec(self, changes, name="spec.json"):
        (self.folder / name).write_text(json.dumps(spec_with(changes)))

    def dtrain(self, *words, before=(), **environment):
        """before: words of a command that starts it."""
        return program.run(words, self.folder, environment, before, stderr=subprocess.STDOUT)

    def attempt(self, last_step, ps=2, workers=2, before=(), flags=(), **changes):
        """A run, however it ends. ps 0: a single process. Dots of keys are written as __."""
        changes = {key.replace("__", "."): value for key, value in changes.items()}
        self.write_spec({"train.last_step": last_step, **changes})
        local = [f"--local_ps={ps}", f"--local_workers={workers}"] if ps else []
        return self.dtrain(*local, *flags, "--result=result.json", "spec.json", before=before)

    def train(self, last_step, **options):
        """A run that ends well; what it printed."""
        ended = self.attempt(last_step, **options)
        self.assertEqual(ended.returncode, 0, ended.stdout)
        self.assertEqual(self.result()["step"], last_step, ended.stdout)
        return ended.stdout

    def from_step_0(self, start, folder="run"):
        """What start() returns, started over where a busy machine made the first checkpoint, which is
        asked for at step 0, a step later."""
        for _ in range(ATTEMPTS_MAX):
            ended = start()
            if not (self.folder / folder / "checkpoint").exists() or 0 in self.steps(folder):
                return ended
            shutil.rmtree(self.folder / folder)
        return self.fail(f"no checkpoint of step 0 in {ATTEMPTS_MAX} attempts")

    def later_steps(self, folder="run"):
        """Of all checkpoints but that of the start."""
        return self.steps(folder)[1:]

    def result(self):
        return json.loads((self.folder / "result.json").read_text())

    def checkpoint(self, *words):
        ended = self.dtrain("checkpoint", *words)
        self.assertEqual(ended.returncode, 0, ended.stdout)
        return ended.stdout

    def verify(self, path):
        """All checksums are right, and all shards are of one moment."""
        self.assertIn(": ok, ", self.checkpoint("verify", path))

    def assert_same(self, one, other):
        """Bit for bit, but for the ledgers: whose pushes are counted where is no value."""
        ended = self.dtrain("checkpoint", "diff", one, other)
        self.assertIn(ended.returncode, (0, 1), ended.stdout)
        differences = [line for line in ended.stdout.splitlines()
                       if not re.match(r"dtrain/ledger/|equal: \d+ tensors", line)]
        self.assertEqual(differences, [])
        self.verify(one)
        self.verify(other)

    def arrays(self, path):
        self.checkpoint("export", path, "arrays.npz")
        return read_arrays(self.folder / "arrays.npz")

    def steps(self, folder="run"):
        """Of all checkpoints that lie there."""
        names = [path.name for path in (self.folder / folder).glob("model.ckpt-*.index")]
        return sorted(int(name[len("model.ckpt-"):-len(".index")]) for name in names)

    def named_steps(self, folder="run"):
        """Of those that the state file names, oldest first."""
        text = (self.folder / folder / "checkpoint").read_text()
        return [int(step) for step in
                re.findall(r'^all_model_checkpoint_paths: "model.ckpt-(\d+)"$', text, re.M)]

    def assert_clean(self, folder="run"):
        """No litter: nothing but checkpoints, the state file and summaries."""
        known = re.compile(r"checkpoint|\.ended|(?:measured|last_spec)\.json|model\.ckpt-\d+\.(index|data-\d{5}-of-\d{5})|events\..*|eval")
        names = sorted(path.name for path in (self.folder / folder).iterdir())
        self.assertEqual([name for name in names if not known.fullmatch(name)], [])
