"""dtrain continues from what TensorFlow's own cluster saved: values, slots, powers and step are those of
the fixture, and the next updates of its optimizer are those that follow from them."""
import json
import math
import shutil

import program
from life import LifeCase

ROWS = [([0.5, -1.0, 2.0], 0), ([1.5, 0.25, -0.5], 2), ([-1.0, 1.0, 0.75], 3), ([0.0, 2.0, 1.0], 1)]
RATE, BETA1, BETA2, EPSILON = 0.01, 0.9, 0.999, 1e-8
L1, L2 = 0.05, 0.1
CLASSES, STEPS = 4, 5
OWN = ("hidden/kernel", "hidden/bias")


def softmax_gradients(kernel, bias):
    """Of the mean cross-entropy of all rows; kernel [3, 4] in one list."""
    to_kernel, to_bias = [0.0] * len(kernel), [0.0] * CLASSES
    for features, label in ROWS:
        logits = [bias[k] + sum(x * kernel[i * CLASSES + k] for i, x in enumerate(features))
                  for k in range(CLASSES)]
        total = sum(map(math.exp, logits))
        for k in range(CLASSES):
            error = (math.exp(logits[k]) / total - (k == label)) / len(ROWS)
            to_bias[k] += error
            for i, x in enumerate(features):
                to_kernel[i * CLASSES + k] += error * x
    return {"hidden/kernel": to_kernel, "hidden/bias": to_bias}


def adam(state):
    """One step, as TensorFlow describes it; state: lists by TensorFlow's names."""
    power1, power2 = state["beta1_power"][0], state["beta2_power"][0]
    rate = RATE * math.sqrt(1 - power2) / (1 - power1)
    for name, gradient in softmax_gradients(*(state[name] for name in OWN)).items():
        for i, g in enumerate(gradient):
            m = state[name + "/Adam"][i] = BETA1 * state[name + "/Adam"][i] + (1 - BETA1) * g
            v = state[name + "/Adam_1"][i] = BETA2 * state[name + "/Adam_1"][i] + (1 - BETA2) * g * g
            state[name][i] -= rate * m / (math.sqrt(v) + EPSILON)
    state["beta1_power"], state["beta2_power"] = [power1 * BETA1], [power2 * BETA2]


def ftrl(state):
    """The same, with l1 and l2."""
    for name, gradient in softmax_gradients(*(state[name] for name in OWN)).items():
        values, squares, linear = (state[name + slot] for slot in ("", "/Ftrl", "/Ftrl_1"))
        for i, g in enumerate(gradient):
            root, before = math.sqrt(squares[i] + g * g), math.sqrt(squares[i])
            squares[i] += g * g
            linear[i] += g - (root - before) / RATE * values[i]
            pull = max(abs(linear[i]) - L1, 0)
            values[i] = -math.copysign(pull, linear[i]) / (root / RATE + 2 * L2)


class TensorFlow:
    """FIXTURE: the cluster's folder, 3 steps; hidden/kernel [3, 4] and more."""

    def setUp(self):
        super().setUp()
        fixture = program.FIXTURES / self.FIXTURE
        shutil.copytree(fixture, self.folder / "run")
        (self.folder / "run" / "expected.json").unlink()
        variables = json.loads((fixture / "expected.json").read_text())["variables"]
        self.expected = {name: list(value["data"]) if isinstance(value, dict) else [value]
                         for name, value in variables.items() if not name.startswith("words/")}
        lines = [",".join(map(str, [*features, label])) for features, label in ROWS]
        (self.folder / "rows.csv").write_text("a,b,c,label\n" + "\n".join(lines) + "\n")

    def go_on(self, last_step, ps, parts=None):
        data = {"train": {"format": "csv", "file": "rows.csv", "label": "label", "header": True},
                "batch_size": len(ROWS), "shuffle": False}
        return self.train(last_step, ps=ps, workers=1, data=data,
                          model=[{"op": "dense", "name": "hidden", "units": CLASSES}], metrics=[],
                          optimizer={**self.OPTIMIZER, "learning_rate": RATE},
                          placement__partitioner=parts)

    def assert_near(self, found):
        self.assertLessEqual(set(self.expected), set(found))
        for name, wanted in self.expected.items():
            for got, value in zip(found[name], wanted, strict=True):
                self.assertAlmostEqual(got, value, delta=2e-6 * max(1, abs(value)), msg=name)

    def check(self, ps, parts=None):
        """Nothing was trained yet, and so many steps more."""
        text = self.go_on(3, ps, parts)
        self.assertRegex(text, r"begins from \S+/run/model.ckpt-3, step 3\n")
        self.go_on(3 + STEPS, ps, parts)
        self.assertEqual(self.named_steps(), [0, 3, 3 + STEPS])
        for _ in range(STEPS):
            self.update(self.expected)
            self.expected["global_step"][0] += 1
        self.assert_near(self.arrays(f"run/model.ckpt-{3 + STEPS}"))
        self.verify("run")

    def test_a_cluster_goes_on(self):
        self.check(2)

    def test_with_more_ps_and_parts(self):
        self.check(3, {"type": "fixed_size", "num_shards": 3})

    def test_a_single_process_goes_on(self):
        self.check(0)


class Adam(TensorFlow, LifeCase):
    FIXTURE = "cluster_adam"  # of 2 ps
    OPTIMIZER = {"type": "adam", "beta1": BETA1, "beta2": BETA2, "epsilon": EPSILON}
    update = staticmethod(adam)


class Ftrl(TensorFlow, LifeCase):
    FIXTURE = "cluster_ftrl"  # of 3 ps
    OPTIMIZER = {"type": "ftrl", "l1": L1, "l2": L2}
    update = staticmethod(ftrl)


if __name__ == "__main__":
    program.main()
