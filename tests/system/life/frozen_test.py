"""Variables that train.freeze names: they keep their bits, whatever else a run does, and nothing else is disturbed by that of
their gradients which does not travel."""
import life
from life import LifeCase

MODEL = [
    {"op": "flatten"},
    {"op": "dense", "name": "hidden", "units": 16, "activation": "relu"},
    {"op": "batch_normalization", "name": "n", "momentum": 0.5},
    {"op": "dense", "name": "logits", "units": 10},
]
TCP = ["--transport=tcp"]
WAYS = (  # ps, flags, changes
    (0, [], {}),
    (2, [], {"train__wire": "bf16"}),  # windows in shared memory
    (2, TCP, {"train__wire": "bf16", "train__wire_values": "fp16"}),
    (3, [*TCP, "--parts=always"], {"train__wire": "fp16"}),
    (1, TCP, {"train__mode": "async", "train__wire": "bf16"}),
    (2, TCP, {"train__weight_decay": {"rate": 0.01, "except": ["*bias"]}}),
)


class Frozen(LifeCase):
    def trained(self, freeze, ps, flags, **changes):
        """The values at the start, and those at the end; they go on in the middle from a checkpoint."""
        for folder in self.folder.glob("run*"):
            life.shutil.rmtree(folder)
        options = {"ps": ps, "flags": flags, "model": MODEL, "train__freeze": freeze, **changes}
        self.from_step_0(lambda: self.attempt(1, **options))
        first = self.arrays("run/model.ckpt-0")
        for last_step in (10, 20):
            ended = self.attempt(last_step, **options)
            self.assertEqual(ended.returncode, 0, ended.stdout)
            self.assertIn("begins from ", ended.stdout)
        return first, self.arrays("run")

    def test_they_keep_their_bits_and_all_others_move(self):
        for freeze, kept in ((["*bias", "n/moving_*"], {"hidden/bias", "logits/bias", "n/moving_mean", "n/moving_variance"}),
                             (["hidden/*", "n/*", "logits/bias"], {"hidden/kernel", "hidden/bias", "n/gamma", "n/beta", "n/moving_mean",
                                                                   "n/moving_variance", "logits/bias"})):
            for ps, flags, changes in WAYS:
                with self.subTest(freeze=freeze, ps=ps, flags=flags, **changes):
                    first, last = self.trained(freeze, ps, flags, **changes)
                    variables = {name for name in first if name.startswith(("hidden/", "n/", "logits/")) and "Adam" not in name}
                    self.assertEqual(len(variables), 8)
                    self.assertEqual({name for name in variables if first[name] == last[name]}, kept)


if __name__ == "__main__":
    life.program.main()
