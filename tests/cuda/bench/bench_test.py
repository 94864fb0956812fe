"""The kernels' bench on the emulated GPU, scaled down, beside libraries in the places of cuBLAS and
cuDNN: which figures there are, that each says what it is held against, and that like is
compared with like.

    BENCH=build/tests/cuda/bench_emulated BENCH_CUDNN=build/tests/cuda/libbench_fake_dnn.so \\
        LD_LIBRARY_PATH=build/tests/cuda/fake bench_test.py
"""
import json
import os
import re
import subprocess
import tempfile
import unittest

BENCH = os.environ["BENCH"]
LIMIT_S = 400
GOALS = {"product": 0.95, "convolution": 0.8, "vector": 0.85, "optimizer": 0.85, "rows": 0.7}
OPTIMIZERS = ["gradient_descent", "momentum", "momentum nesterov", "adagrad", "adam", "rmsprop",
              "rmsprop centered"]


def run_bench(*words, **variables):
    """All figures, as the file has them, and the lines that were printed."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "figures.json")
        done = subprocess.run([BENCH, "--json", path, *words, "64"], capture_output=True, text=True,
                              timeout=LIMIT_S, check=False, env={**os.environ, **variables})
        if done.returncode != 0:
            raise AssertionError(done.stdout + done.stderr)
        with open(path, encoding="utf-8") as file:
            return json.load(file), done.stdout.splitlines()


class Bench(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.found, cls.lines = run_bench()
        cls.figures = cls.found["figures"]

    def of(self, group):
        return [figure for figure in self.figures if figure["group"] == group]

    def test_every_figure_has_its_goal_and_says_whether_it_is_met(self):
        for figure in self.figures:
            self.assertGreater(figure["us"], 0)
            self.assertGreater(figure["ratio"], 0)
            if figure["group"] == "reduction" or figure["name"].endswith(" bf16"):
                self.assertEqual((figure["goal"], figure["is_met"]), (None, None), figure)
                continue
            self.assertEqual(figure["goal"], GOALS[figure["group"]], figure)
            self.assertEqual(figure["is_met"], figure["ratio"] >= figure["goal"], figure)

    def test_every_figure_is_a_line_too(self):
        for figure in self.figures:
            end = f"{figure['ratio']:.2f} of {figure['peer']}"
            if figure["goal"]:
                said = "met" if figure["is_met"] else "missed"
                end += f", goal {figure['goal']:.2f}: {said}"
            found = [line for line in self.lines if line.startswith(figure["name"] + " ")
                     and line.endswith(end)]
            self.assertTrue(found, figure)

    def test_products_and_convolutions_are_measured_in_every_precision(self):
        for group, count in (("product", 4), ("convolution", 5 * 3)):
            for precision in ("float32", "tf32", "bf16"):
                found = [f for f in self.of(group) if f["name"].endswith(" " + precision)]
                self.assertEqual(len(found), count)
        self.assertEqual({figure["peer"] for figure in self.of("product")}, {"cuBLAS"})

    def test_convolutions_are_held_against_the_faster_order_of_axes(self):
        for figure in self.of("convolution"):
            layout = "NHWC" if " forward " in figure["name"] else "NCHW"
            self.assertTrue(figure["peer"].startswith(f"cuDNN {layout} "), figure)

    def test_float32_is_not_held_against_tf32(self):
        for figure in self.of("convolution"):
            plain, default = "algorithm 3", "algorithm 2"
            expected = plain if figure["name"].endswith(" float32") else default
            self.assertTrue(figure["peer"].endswith(expected), figure)

    def test_all_optimizers_and_losses_are_there(self):
        self.assertEqual([figure["name"] for figure in self.of("optimizer")], OPTIMIZERS)
        self.assertEqual(len(self.of("rows")), 6 * 3)
        self.assertEqual({figure["peer"] for figure in self.of("rows")}, {"a copy"})

    def test_it_says_which_library_it_compares_with(self):
        self.assertIn("convolutions are compared with cuDNN 91234", self.lines)
        self.assertIn("cuBLAS 13.4.2", self.found["device"])

    def test_without_the_libraries_products_and_convolutions_stand_alone(self):
        found, lines = run_bench(FAKE_CUBLAS_BROKEN="create", FAKE_CUDNN_BROKEN="yes")
        for figure in found["figures"]:
            is_alone = figure["group"] in ("product", "convolution")
            self.assertEqual(figure["ratio"] is None, is_alone, figure)
            if is_alone:
                self.assertIsNone(figure["is_met"])
        self.assertIn("convolutions are compared with nothing: cuDNN 91234 cannot be used here",
                      lines)
        self.assertTrue([line for line in lines if line.endswith("no cuBLAS to compare with")])

    def test_kernels_of_our_own_are_held_against_the_libraries(self):
        found, lines = run_bench("--bare", "--parts", "products")
        self.assertIn("own products: no library is wanted", found["device"])
        self.assertEqual({figure["group"] for figure in found["figures"]}, {"product"})
        self.assertEqual({figure["peer"] for figure in found["figures"] if figure["ratio"]}, {"cuBLAS"})
        self.assertEqual(len(found["figures"]), 4 * 3, lines)

    def test_the_machine_is_measured_where_that_is_asked_for(self):
        found, lines = run_bench("--parts", "machine")
        self.assertEqual(found["figures"], [])
        for start, unit in (("a kernel is queued and waited for ", "us"), ("the same, each waited for ", "us"),
                            ("memory of the host, pinned     down ", "GB/s"), ("a window to be read ", "GB/s")):
            self.assertTrue([line for line in lines if line.startswith(start) and line.endswith(unit)], lines)

    def test_what_is_no_scale_and_no_part_is_refused(self):
        for words in (["0"], ["65"], ["1", "2"], ["--parts", "rows,columns"], ["--parts"]):
            done = subprocess.run([BENCH, *words], capture_output=True, text=True, timeout=LIMIT_S,
                                  check=False)
            self.assertNotEqual(done.returncode, 0)
            self.assertRegex(done.stderr, re.escape("usage: bench_gpu [--json FILE]"))


if __name__ == "__main__":
    unittest.main()
