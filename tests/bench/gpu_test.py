#!/usr/bin/env python3
"""The programs that measure a GPU, where there is none: on the CPU, with a false driver, a false
PyTorch and a false dtrain where it is their answers that matter; and gpu.sh with false tests.

    DTRAIN_BINARY=build/cmd/dtrain gpu_test.py
"""
import contextlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import types
import unittest
import unittest.mock

sys.dont_write_bytecode = True  # the folder is part of the source

import gpu
import gpu_busy
import gpu_measure
import gpu_table
import gpu_torch
import measure
from gpu_workloads import WORKLOADS
import program
from program import BINARY

SCRIPT = os.path.join(os.path.dirname(measure.FOLDER), "gpu.sh")
LIMIT_S = 60
SHORT = ["--dtrain", BINARY, "--device", "cpu", "--windows", "2", "--seconds", "0.1"]
# Stands for a Python: its words are -B gpu_torch.py --device cpu ...
TORCH = """#!{python}
import json, sys
words = sys.argv[1:]
if "--check" in words:
    print("9.9.9")
    sys.exit(0)
answer = {{"version": "9.9.9", "ways": {{"calls": [1.0, 1.0], "graph": [4.0, 2.0, 3.0]}},
          "troubles": {{"compiler": "Sorry: not today"}}}}
open(words[words.index("--json") + 1], "w").write(json.dumps(answer))
"""
# Losses by precision and device, as a run of an example leaves them
DTRAIN = """#!{python}
import json, sys
words = sys.argv[1:]
flags = dict(word[2:].split("=", 1) for word in words if word.startswith("--") and "=" in word)
changes = dict(word.split("=", 1) for word in words if "=" in word and not word.startswith("--"))
if words == ["--version"]:
    print("dtrain 0")
    sys.exit(0)
if words[:2] == ["checkpoint", "diff"]:
    print("a/kernel: 3 of 4 elements differ")
    sys.exit(1)
loss = {losses}[flags.get("device"), changes.get("precision", "float32")]
if loss is None:
    print("out of luck")
    sys.exit(3)
with open(flags["metrics_file"], "w") as file:
    for part in (0.5, 1.5):
        file.write(json.dumps({{"step": 1, "seconds": 1, "loss": part * loss}}) + "\\n")
with open(flags["result"], "w") as file:
    json.dump({{"metrics": {{"loss": loss}}}}, file)
"""
NEAR = {("gpu:0", "float32"): 1.0, ("cpu", "float32"): 1.005, ("gpu:0", "tf32"): 1.004,
        ("gpu:0", "bf16"): 0.98}
FAR = {**NEAR, ("cpu", "float32"): 1.05}
BROKEN = {**NEAR, ("gpu:0", "bf16"): None}


class FalseDriver:
    """The driver's library: gives these percentages in turn; the broken-th call fails."""

    def __init__(self, percentages, broken=0):
        self.percentages, self.broken, self.calls, self.asked = percentages, broken, 0, None
        self.nvmlErrorString = unittest.mock.Mock(return_value=b"Not Supported")

    def status(self):
        self.calls += 1
        return 3 if self.calls == self.broken else 0

    def nvmlInit_v2(self):
        return self.status()

    def nvmlDeviceGetHandleByIndex_v2(self, index, _):
        self.asked = index.value
        return self.status()

    def nvmlDeviceGetHandleByUUID(self, name, _):
        self.asked = name.value
        return self.status()

    def nvmlDeviceGetUtilizationRates(self, _, found):
        found._obj.gpu = self.percentages[self.calls % len(self.percentages)]
        return self.status()

    def wait_for_calls(self, count):
        deadline = time.monotonic() + LIMIT_S
        while self.calls < count and time.monotonic() < deadline:
            time.sleep(0.01)


class CountingDriver(FalseDriver):
    """Of a GPU with counters: its samples are numbers of looks."""

    def __init__(self, percentages):
        super().__init__(percentages)
        self.looks = self.held = 0

    def nvmlGpmSampleAlloc(self, sample):
        self.held += 1
        sample._obj.value = 1000 * self.held
        return 0

    def nvmlGpmSampleFree(self, _):
        self.held -= 1
        return 0

    def nvmlGpmSampleGet(self, _, sample):
        self.looks += 1
        return 0 if sample.value == 1000 * self.looks else 2

    def nvmlGpmMetricsGet(self, asked):
        found = asked._obj
        if (found.version, found.count, found.first, found.second) != (1, 2, 1000, 2000):
            return 2
        for metric in found.metrics[:2]:
            metric.value = {1: 87.5, 2: 25.0}[metric.name]
        return 0


class Folder(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def replace(self, place, name, value):
        """For this test alone"""
        patch = unittest.mock.patch.object(place, name, value)
        patch.start()
        self.addCleanup(patch.stop)

    def drive(self, driver):
        """The driver's library is this one; None: there is none."""
        def load(name):
            if driver:
                return driver
            raise OSError(f"{name}: not here")
        self.replace(gpu_busy.ctypes, "CDLL", load)

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def program(self, name, text):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(self.path(name), 0o755)
        return self.path(name)


class Figures(Folder):
    def measure(self, *arguments):
        """Exit code, figures and what was printed."""
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            code = gpu.main([*SHORT, "--json", self.path("figures"), *arguments])
        with open(self.path("figures"), encoding="utf-8") as file:
            return code, json.load(file), printed.getvalue()

    def steps(self, *arguments):
        return self.measure("--parts", "steps", "--only", "softmax", *arguments)

    def false_dtrain(self, losses):
        return self.program("dtrain", DTRAIN.format(python=sys.executable, losses=losses))

    def precision(self, losses):
        return self.measure("--dtrain", self.false_dtrain(losses), "--device", "gpu:0", "--parts",
                            "precision", "--examples", "digits", "--seeds", "2")

    def test_every_workload_is_a_valid_spec_of_the_batch_that_is_counted(self):
        for workload in WORKLOADS:
            path = gpu_measure.write_spec(self.folder.name, workload.spec(precision="tf32"))
            done = subprocess.run([BINARY, "check", "--device=cpu", path], capture_output=True,
                                  text=True, timeout=LIMIT_S, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(f"batch size {workload.batch()},", done.stdout)
        self.assertEqual({workload.name for workload in WORKLOADS if workload.is_large},
                         {"cnn1024", "cnn12"})

    def test_steps_are_timed_watched_and_compared_with_the_fastest_way_of_pytorch(self):
        self.drive(FalseDriver([96, 98]))
        code, found, printed = self.steps(
            "--torch-python", self.program("python", TORCH.format(python=sys.executable)))
        self.assertEqual(code, 0, printed)
        steps = [figure for figure in found["figures"] if figure["group"] == "step"]
        self.assertEqual([figure["name"] for figure in steps],
                         ["softmax float32", "softmax tf32", "softmax bf16"])
        for figure in steps:
            self.assertEqual(len(figure["steps_per_second"]), 2)
            self.assertGreater(figure["ratio"], 1)
            self.assertAlmostEqual(figure["ratio"], 1e3 / figure["step_ms"] / 3.0)
            self.assertIn("of PyTorch 9.9.9 (graph)", figure["against"])
        self.assertIn("PyTorch, softmax tf32, compiler: Sorry: not today", printed)
        shares = [figure["share"] for figure in found["figures"] if figure["group"] == "busy"]
        self.assertEqual(len(shares), 3)
        for share in shares:
            self.assertTrue(0.96 <= share <= 0.98, share)

    def test_without_the_drivers_library_and_pytorch_steps_are_still_timed(self):
        self.drive(None)
        code, found, printed = self.steps("--torch-python", self.path("none"))
        self.assertEqual(code, 0, printed)
        step, busy = found["figures"][:2]
        self.assertGreater(step["step_ms"], 0)
        self.assertIsNone(step["ratio"])
        self.assertIn("No such file", step["against"])
        self.assertEqual(busy["measured"], "unknown")
        self.assertEqual(busy["against"], "libnvidia-ml.so.1: not here")

    def test_a_driver_that_does_not_say_is_quoted(self):
        for broken, call in ((1, "nvmlInit_v2"), (2, "nvmlDeviceGetHandleByIndex_v2"),
                             (3, "nvmlDeviceGetUtilizationRates"),
                             (5, "nvmlDeviceGetUtilizationRates")):
            driver = FalseDriver([50], broken)
            self.drive(driver)
            with gpu_busy.Watch("0") as watch:
                driver.wait_for_calls(broken)
            self.assertEqual(watch.busy(), (None, f"{call}: Not Supported"))

    def test_a_gpu_that_counts_is_looked_at_twice(self):
        driver = CountingDriver([50])
        self.drive(driver)
        with gpu_busy.Watch("0") as watch:
            self.assertEqual(driver.looks, 1)
        self.assertEqual((driver.looks, driver.held), (2, 0))
        self.assertEqual(watch.busy(), (0.875, "counted; multiprocessors 25%"))

    def test_a_gpu_that_has_counters_and_no_say_is_asked(self):
        for broken in ("nvmlGpmSampleAlloc", "nvmlGpmSampleGet"):
            driver = CountingDriver([50])
            setattr(driver, broken, lambda *_: 3)
            self.drive(driver)
            with gpu_busy.Watch("0") as watch:
                driver.wait_for_calls(4)
            self.assertEqual(watch.busy()[0], 0.5)
            self.assertEqual(driver.held, 0)

    def test_a_gpu_is_watched_by_the_name_that_cuda_was_given(self):
        for gpu, asked in (("3", 3), ("GPU-af33", b"GPU-af33")):
            driver = FalseDriver([50])
            self.drive(driver)
            with gpu_busy.Watch(gpu) as watch:
                driver.wait_for_calls(4)
            self.assertEqual((driver.asked, watch.busy()[0]), (asked, 0.5))

    def test_a_pytorch_that_fails_is_a_failure_and_the_step_is_kept(self):
        program = self.program("python", "#!/bin/sh\n[ \"$5\" = --check ] && exec echo 9.9.9\n"
                               "echo out of memory\nexit 1\n")
        code, found, _ = self.steps("--torch-python", program)
        self.assertEqual(code, 1)
        self.assertEqual(len(found["figures"]), 6)
        self.assertIn("out of memory", found["failures"][0])

    def test_only_large_steps_are_judged_by_how_busy_the_gpu_is(self):
        bench = gpu.Bench(gpu.read_options(SHORT))
        with contextlib.redirect_stdout(io.StringIO()):
            bench.busy("large", 0.92, "", True)
            bench.busy("large", 0.88, "", True)
            bench.busy("small", 0.2, "", False)
        self.assertEqual([figure["is_met"] for figure in bench.found["figures"]],
                         [True, False, None])

    def test_losses_are_held_against_float32_on_the_same_device(self):
        code, found, printed = self.precision(NEAR)
        self.assertEqual(code, 0, printed)
        self.assertEqual([figure["is_met"] for figure in found["figures"]],
                         [True, True, False, False])
        for figure, off in zip(found["figures"], (0.004, 0.004, -0.02, -0.02)):
            self.assertAlmostEqual(figure["off"], off)
            self.assertAlmostEqual(figure["rounding"], 0.005)

    def test_nothing_is_said_of_the_goal_where_rounding_alone_misses_it(self):
        _, found, _ = self.precision(FAR)
        self.assertEqual([figure["is_met"] for figure in found["figures"]], [None] * 4)

    def test_a_run_that_fails_is_reported_with_its_last_words(self):
        code, found, _ = self.precision(BROKEN)
        self.assertEqual(code, 1)
        self.assertEqual(len(found["figures"]), 2)
        self.assertIn("out of luck", found["failures"][0])

    def test_examples_run_as_they_are(self):
        code, found, printed = self.measure(
            "--parts", "precision", "--examples", "digits", "--seeds", "1",
            "--set", "train.last_step=20", "--set", "data.eval.take=100")
        self.assertEqual(code, 0, printed)
        self.assertEqual(len(found["figures"]), 4)
        for figure in found["figures"]:  # 0, but where this processor has AMX, which rounds as well
            self.assertLess(abs(figure["off"]), 0.01, printed)

    def test_data_that_are_not_there_are_said_and_passed_over(self):
        code, found, printed = self.measure("--parts", "precision", "--examples", "mnist_mlp",
                                            "--data", self.path("none"))
        self.assertEqual((code, found["figures"]), (0, []))
        self.assertIn("mnist_mlp: not measured: " + self.path("none/mnist"), printed)

    def test_a_cluster_is_held_against_one_process_and_says_where_time_goes(self):
        self.replace(gpu_measure, "PROFILE_EVERY_S", 0.2)
        code, found, printed = self.measure("--parts", "cluster", "--only", "mlp_adam")
        self.assertEqual(code, 0, printed)
        alone, *clusters = found["figures"]
        self.assertEqual(len(clusters), 4)
        for figure in clusters:
            self.assertAlmostEqual(figure["ratio"], figure["examples_per_second"] /
                                   alone["examples_per_second"])
        for figure in found["figures"]:
            self.assertRegex(figure["against"], r"^compute \d+ %, data \d+ %, push \d+ %, wait ")

    def test_the_same_run_twice_has_the_same_bits(self):
        self.replace(gpu, "BITS_STEPS", 10)
        code, found, printed = self.measure("--parts", "bits", "--only", "mlp_adam")
        self.assertEqual(code, 0, printed)
        self.assertEqual([figure["is_met"] for figure in found["figures"]], [True] * 4)

    def test_bits_that_differ_are_a_goal_missed(self):
        _, found, printed = self.measure("--dtrain", self.false_dtrain({(None, "float32"): 1,
                                                                        ("cpu", "float32"): 1}),
                                         "--parts", "bits", "--only", "cnn")
        self.assertEqual([figure["is_met"] for figure in found["figures"]], [False] * 4)
        self.assertIn("a/kernel: 3 of 4 elements differ", printed)

    def test_what_it_runs_ends_with_it(self):
        torch = self.program("python", "#!/bin/sh\n[ \"$5\" = --check ] && exec echo 9.9.9\n"
                             "exec sleep 60\n")
        for words, word in ((["--seconds", "50"], b"--metrics_file"),
                            (["--torch-python", torch], b"sleep")):
            program = [sys.executable, "-B", gpu.__file__, *SHORT, "--parts", "steps", "--only",
                       "softmax", *words]
            bench = subprocess.Popen(program, stdout=subprocess.DEVNULL,
                                     env={**os.environ, "TMPDIR": self.folder.name})
            try:
                child = self.wait_for_child(bench.pid, word)
                time.sleep(0.3)  # not while it is only just being started
            finally:
                bench.terminate()
                code = bench.wait(LIMIT_S)
            self.assertEqual(code, 143)
            self.assertFalse(os.path.exists(f"/proc/{child}"))
            self.assertEqual(self.running(self.folder.name.encode()), [])

    def running(self, word, parent=None):
        """The processes that have this in their command line."""
        found = []
        for pid in measure.children(parent) if parent else filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError):  # it has ended meanwhile
                if word in measure.read_bytes(f"/proc/{pid}/cmdline"):
                    found.append(pid)
        return found

    def wait_for_child(self, parent, word):
        """Its id, once one has this in its command line."""
        deadline = time.monotonic() + LIMIT_S
        while time.monotonic() < deadline:
            for child in self.running(word, parent):
                return child
            time.sleep(0.02)
        self.fail(f"no child with {word!r}")

    def test_the_first_gpu_that_is_visible_is_watched(self):
        for visible, name in (("", "0"), ("2,0", "2"), ("GPU-af33", "GPU-af33")):
            os.environ["CUDA_VISIBLE_DEVICES"] = visible
            self.addCleanup(os.environ.pop, "CUDA_VISIBLE_DEVICES", None)
            self.assertEqual(gpu_busy.visible_gpu(), name)


class Table(Folder):
    def test_all_files_become_one_table(self):
        kernels = [{"group": "product", "name": "gemm", "us": 12.5, "rate": 60.2, "ratio": 0.97,
                    "unit": "TFLOP/s", "peer": "cuBLAS", "goal": 0.95, "is_met": True},
                   {"group": "convolution", "name": "conv", "us": 1.0, "rate": 2.0, "ratio": None,
                    "unit": "TFLOP/s", "peer": "cuDNN", "goal": 0.8, "is_met": None}]
        steps = [{"group": "busy", "name": "cnn12", "measured": "80% of the time", "against": "",
                  "goal_text": "at least 90%", "is_met": False}]
        for name, found in (("bench", {"device": "cuda false", "figures": kernels}),
                            ("gpu-steps", {"figures": steps, "failures": ["one\ntwo"]})):
            with open(self.path(name + ".json"), "w", encoding="utf-8") as file:
                json.dump(found, file)
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            self.assertEqual(gpu_table.main([self.folder.name]), 0)
        text = " ".join(printed.getvalue().split())
        for part in ("cuda false product gemm 12.5 us, 60.20 TFLOP/s 0.97 of cuBLAS",
                     "of cuBLAS at least 0.95: met",
                     "conv 1.0 us, 2.00 TFLOP/s no cuDNN here busy",
                     "cnn12 80% of the time at least 90%: MISSED", "1 of 2 goals met, 1 figures",
                     "1 failures FAILED: one"):
            self.assertIn(part, text)
        with open(self.path("figures.json"), encoding="utf-8") as file:
            found = json.load(file)
        self.assertEqual((len(found["figures"]), found["device"]), (3, "cuda false"))


class FalseTorch(types.SimpleNamespace):
    """Layers as PyTorch would be asked for them"""

    def __init__(self):
        def layer(name):
            return lambda *sizes, **_: (name, *sizes)
        names = ("Conv2d", "MaxPool2d", "Flatten", "Linear")
        super().__init__(nn=types.SimpleNamespace(
            **{name: layer(name) for name in names}, ReLU=lambda **_: ("ReLU",),
            Sequential=lambda *layers: layers))


class Torch(Folder):
    def layers(self, name):
        spec = next(workload for workload in WORKLOADS if workload.name == name).spec()
        builder = gpu_torch.Builder(FalseTorch(), spec["data"]["train"]["shape"])
        return builder.model(spec["model"])

    def test_the_deep_cnn_has_the_layers_of_its_spec(self):
        relu = ("ReLU",)
        self.assertEqual(self.layers("cnn"), (
            ("Conv2d", 1, 32, (5, 5)), relu, ("MaxPool2d", (2, 2)),
            ("Conv2d", 32, 64, (5, 5)), relu, ("MaxPool2d", (2, 2)),
            ("Flatten",), ("Linear", 7 * 7 * 64, 1024), relu, ("Linear", 1024, 10)))

    def test_the_cnn_of_twelve_layers_has_twelve(self):
        layers = self.layers("cnn12")
        self.assertEqual(sum(layer[0] == "Conv2d" for layer in layers), 12)
        self.assertEqual(layers[0], ("Conv2d", 3, 64, (3, 3)))
        self.assertEqual(layers[-1], ("Linear", 4 * 4 * 512, 10))

    def test_what_would_not_be_the_same_model_is_refused(self):
        builder = gpu_torch.Builder(FalseTorch(), [28, 28, 1])
        node = {"filters": 8, "kernel_size": 5}
        for wrong in ({"padding": "valid"}, {"padding": "same", "strides": [2]}):
            self.assertRaises(ValueError, builder.conv2d, {**node, **wrong})
        self.assertRaises(ValueError, builder.max_pool, {"pool_size": 3})

    def test_without_pytorch_it_says_so(self):
        done = subprocess.run([sys.executable, "-B", "-S", "-E", gpu_measure.TORCH, "--check"],
                              capture_output=True, text=True, timeout=LIMIT_S, check=False)
        self.assertEqual(done.returncode, gpu_torch.SKIPPED, done.stderr)
        self.assertRegex(done.stdout, "no PyTorch: ")

    @unittest.skipIf(gpu_torch.check("cpu"), "this Python has no PyTorch")
    def test_pytorch_itself_trains_the_models(self):
        torch = gpu_measure.Torch(sys.executable, "cpu")
        self.assertEqual(torch.reason, "")
        for name, precision in (("softmax", "tf32"), ("cnn", "bf16")):
            spec = next(workload for workload in WORKLOADS if workload.name == name).spec()
            path = gpu_measure.write_spec(self.folder.name, spec)
            ways, troubles = torch.rates(path, self.folder.name, precision, gpu.Timing(2, 0.1, 0.1))
            self.assertEqual((list(ways), troubles), (["calls"], {}))
            self.assertGreater(min(ways["calls"]), 0)


# Of a Debian with nothing installed: coreutils, findutils, grep, gzip, sed and tar
BARE_TOOLS = ("cat", "cksum", "date", "dirname", "env", "find", "grep", "gzip", "head", "ln", "mkdir", "rm", "rmdir",
              "sed", "sh", "sort", "tail", "tar", "tee", "timeout")
KERNEL_TESTS = ("activate", "gemm", "image", "one_to_come", "precision")
BARE_TESTS = ("gemm-bare", "image-bare", "precision-bare")
TOOLS = ("memcheck", "initcheck", "racecheck", "synccheck")
FALSE_PYTHON = """#!/bin/sh
case $* in
*gpu_table.py*) exec {python} "$@" ;;
*'--parts steps'*) echo no luck; exit 1 ;;
*) echo "$*" >> {calls} ;;
esac
"""


class Script(Folder):
    def setUp(self):
        super().setUp()
        for test in (*KERNEL_TESTS, "gradients"):
            self.program(f"build/tests/cuda/test_gpu_{test}", "#!/bin/sh\nexit 0\n")
        self.program("build/tests/device/test_gpu_sessions", "#!/bin/sh\nexit 0\n")
        os.mkdir(self.path("build/tests/cuda/test_gpu_gemm.p"))  # as meson leaves them
        self.program("build/tests/cuda/test_gpu_curves", "#!/bin/sh\necho no data; exit 77\n")
        self.program("build/tests/cuda/bench_gpu", "#!/bin/sh\n[ \"$1\" = --json ] || exit 1\n"
                     "echo '{\"figures\": []}' > \"$2\"\n")
        self.program("build/cmd/dtrain", "#!/bin/sh\necho \"libraries beside $VIRTUAL_ENV\"\n")
        self.program("bin/compute-sanitizer", f"#!/bin/sh\necho \"$2\" >> {self.path('tools')}\n")
        self.program("bin/python3", FALSE_PYTHON.format(python=sys.executable,
                                                        calls=self.path("calls")))
        with open(SCRIPT, encoding="utf-8") as file:
            text = file.read()
        self.program("tests/gpu.sh", text.replace("/dev/nvidiactl", self.folder.name))
        os.symlink(measure.FOLDER, self.path("tests/bench"))
        os.mkdir(self.path("bare"))
        for tool in BARE_TOOLS:
            os.symlink(shutil.which(tool), self.path("bare/" + tool))

    def run_script(self, python="/a/python"):
        variables = {**os.environ, "TORCH_PYTHON": python,
                     "PATH": self.path("bin") + os.pathsep + os.environ["PATH"]}
        variables.pop("VIRTUAL_ENV", None)
        return subprocess.run(["sh", self.path("tests/gpu.sh"), self.path("build")], check=False,
                              capture_output=True, text=True, timeout=LIMIT_S, env=variables)

    def test_it_runs_all_tests_all_tools_and_all_parts_and_says_what_failed(self):
        done = self.run_script()
        self.assertEqual(done.returncode, 1, done.stderr)
        sanitized = (*KERNEL_TESTS, "gradients", "sessions")
        for test in (*sanitized, *BARE_TESTS):
            self.assertRegex(done.stdout, rf"\n{test} +ok ")
        for test in sanitized:
            for tool in TOOLS:
                self.assertRegex(done.stdout, rf"\n{test}-{tool} +ok ")
        self.assertRegex(done.stdout, r"\ncurves +skipped +\d s\nno data\n")
        self.assertRegex(done.stdout, r"\ngpu-steps +failed \(1\) +\d s\nno luck\n")
        self.assertRegex(done.stdout, r"\n0 of 0 goals met")
        self.assertRegex(done.stdout, r"\n1 failed; ")
        with open(self.path("tools"), encoding="utf-8") as file:
            tools = [tool for tool in file.read().split() if tool in TOOLS]
        self.assertEqual(sorted(tools), sorted(TOOLS * len(sanitized)))
        with open(self.path("calls"), encoding="utf-8") as file:
            calls = file.read().splitlines()
        self.assertEqual(len(calls), 3)
        for part, call in zip(("bits", "precision", "cluster"), calls):
            self.assertIn(f"/build/cmd/dtrain --parts {part} --torch-python /a/python", call)

    def test_a_test_that_fails_fails_the_whole_and_is_quoted(self):
        self.program("build/tests/cuda/test_gpu_gemm", "#!/bin/sh\necho 3 is not 4; exit 2\n")
        done = self.run_script()
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stdout, r"\ngemm +failed \(2\) +\d s\n3 is not 4\n")
        self.assertRegex(done.stdout, r"\ngemm-bare +failed \(2\) ")
        self.assertRegex(done.stdout, r"\n3 failed; ")

    def test_a_driver_under_which_nothing_runs_is_a_failure(self):
        for test in (*KERNEL_TESTS, "gradients"):
            self.program(f"build/tests/cuda/test_gpu_{test}", "#!/bin/sh\nexit 77\n")
        self.program("build/tests/device/test_gpu_sessions", "#!/bin/sh\nexit 77\n")
        done = self.run_script()
        self.assertEqual(done.returncode, 1)
        self.assertIn("nothing ran on the GPU", done.stdout)

    def test_libraries_are_looked_for_beside_the_python_of_pytorch(self):
        done = self.run_script(sys.executable)
        self.assertIn(f"libraries beside {sys.prefix}\n", done.stdout)

    def test_figures_of_an_earlier_run_do_not_stand_in_the_table(self):
        self.program("build/gpu-logs/gpu-steps.json", "{\"figures\": [{\"name\": \"old\"}]}")
        self.assertRegex(self.run_script().stdout, r"\n0 of 0 goals met")

    def run_quick(self):
        """What was packed elsewhere, on a machine that has nothing else; its logs go where it is told."""
        variables = {**os.environ, "TORCH_PYTHON": "/a/python", "GPU_LOGS": self.path("logs"),
                     "PATH": self.path("bin") + os.pathsep + self.path("bare")}
        return subprocess.run([shutil.which("sh"), self.path("tests/gpu.sh"), "quick"], check=False,
                              capture_output=True, text=True, timeout=LIMIT_S, env=variables)

    def results(self):
        with open(self.path("logs/results.txt"), encoding="utf-8") as file:
            return {line[:28].rstrip(): line[29:57].rstrip() for line in file}

    def pack(self):
        self.program("build/tests/cuda/bench_gpu", "#!/bin/sh\necho \"measured $*\"\n")
        os.makedirs(self.path("build-gpu"), exist_ok=True)
        subprocess.run(["tar", "-C", self.path("build"), "-czf", self.path("build-gpu/gpu-pack.tar.gz"),
                        "."], check=True, timeout=LIMIT_S)
        self.program("bin/compute-sanitizer", "#!/bin/sh\nexit 0\n")

    def set_in_script(self, name, value):
        """Another value of what the script sets at its beginning"""
        with open(self.path("tests/gpu.sh"), encoding="utf-8") as file:
            text, count = re.subn(rf"(?m)^{name}=\d+", f"{name}={value}", file.read())
        self.assertEqual(count, 1)
        self.program("tests/gpu.sh", text)

    def test_the_quick_run_unpacks_and_has_a_line_of_each_thing_as_it_comes(self):
        self.pack()
        done = self.run_quick()
        self.assertEqual(done.returncode, 1, done.stderr)  # steps have no luck
        with open(self.path("logs/results.txt"), encoding="utf-8") as file:
            results = [line.split()[:2] for line in file]
        names = [name for name, _ in results]
        self.assertEqual(names[:2], ["machine", "ways"])
        self.assertEqual(sorted(names[2:2 + len(KERNEL_TESTS) + 1]), sorted((*KERNEL_TESTS, "gradients")))
        self.assertEqual(names[3 + len(KERNEL_TESTS):], [
            "sessions", "products", "products-bare", "convolutions", "convolutions-bare",
            "gpu-steps-mlp_adam", "gpu-steps-cnn", "gpu-steps-cnn12", "gpu-cluster", "gpu-bits",
            *(f"{test}-{tool}" for tool in ("memcheck", "racecheck") for test in ("gemm", "image", "reduce"))])
        self.assertEqual({name for name, result in results if result == "failed"},
                         {name for name in names if name.startswith("gpu-steps")})
        self.assertIn("measured --bare --parts products\n", done.stdout)
        self.assertRegex(done.stdout, r"\n3 failed; all they said is in .*/logs/\n")

    def test_a_pack_that_came_later_is_unpacked_over_the_one_before(self):
        self.pack()
        self.run_quick()
        self.assertEqual(self.results()["gemm"], "ok")
        self.program("build/tests/cuda/test_gpu_gemm", "#!/bin/sh\nexit 2\n")
        self.pack()
        for _ in range(2):
            self.run_quick()
            self.assertEqual(self.results()["gemm"], "failed (2)")
        self.program("build-gpu/tests/cuda/test_gpu_gemm", "#!/bin/sh\nexit 3\n")
        self.run_quick()  # what was built here since is not undone
        self.assertEqual(self.results()["gemm"], "failed (3)")

    def test_a_link_leads_to_here_from_where_it_was_built_while_it_runs(self):
        place = self.path("elsewhere/of/another")
        self.program("build/built-in", place + "\n")
        self.program("build/tests/cuda/test_gpu_gemm", f"#!/bin/sh\n[ -f {place}/tests/gpu.sh ]\n")
        self.pack()
        done = self.run_quick()
        self.assertIn(f"gpu.sh: {place} is a link to here until this ends: ", done.stdout)
        self.assertEqual(self.results()["gemm"], "ok")
        self.assertEqual(done.returncode, 1)  # steps have no luck
        self.assertFalse(os.path.lexists(self.path("elsewhere")))

    def test_a_place_that_is_something_else_is_left_as_it_is(self):
        place = self.path("elsewhere")
        self.program("build/built-in", place + "\n")
        self.pack()
        makers = (os.mkdir, lambda path: os.symlink("/nowhere", path), lambda path: self.program("elsewhere", ""))
        for make, undo in zip(makers, (os.rmdir, os.unlink, os.unlink)):
            make(place)
            done = self.run_quick()
            self.assertEqual(done.returncode, 2, done.stdout)
            self.assertIn(f"in {place}, where they were built, and that is something else here", done.stdout)
            undo(place)
        os.symlink(self.folder.name, place)  # somebody's own, to here
        self.assertEqual(self.run_quick().returncode, 1)
        self.assertTrue(os.path.islink(place))

    def test_what_takes_too_long_is_no_failure(self):
        self.program("bin/python3", "#!/bin/sh\nexit 0\n")
        self.program("build/tests/cuda/test_gpu_gemm", "#!/bin/sh\nexec sleep 1000\n")
        self.pack()
        os.symlink(shutil.which("sleep"), self.path("bare/sleep"))
        self.program("bin/compute-sanitizer", "#!/bin/sh\nexec sleep 1000\n")
        self.set_in_script("minute", 1)
        done = self.run_quick()
        self.assertEqual(self.results()["gemm"], "too long: more than 1 s")
        self.assertEqual(self.results()["sanitizer"], "too long: more than 1 s")
        self.assertNotIn("gemm-memcheck", self.results())
        self.assertRegex(done.stdout, r"\n\d+ not done in the time there is\n")
        self.assertEqual(done.returncode, 124)

    def test_what_the_whole_has_no_time_left_for_is_named(self):
        self.program("bin/python3", "#!/bin/sh\nexit 0\n")
        self.pack()
        self.set_in_script("quick_limit_s", 0)
        done = self.run_quick()
        self.assertEqual(set(self.results().values()), {"too late: not begun"})
        for name in ("machine", *KERNEL_TESTS, "gpu-bits", "reduce-racecheck"):
            self.assertIn(name, self.results())
        self.assertRegex(done.stdout, rf"\n{len(self.results())} not done in the time there is\n")
        self.assertEqual(done.returncode, 124)

    def test_without_a_pack_the_quick_run_says_what_makes_one(self):
        done = self.run_quick()
        self.assertEqual(done.returncode, 2)
        self.assertIn("gpu.sh pack makes it", done.stdout)

    @unittest.skipIf(any(map(os.path.exists, ("/dev/nvidiactl", "/dev/dxg"))), "a GPU is here")
    def test_without_a_gpu_it_is_skipped(self):
        for words in ([self.path("build")], ["quick"], ["full"], []):
            done = subprocess.run(["sh", SCRIPT, *words], capture_output=True, text=True,
                                  timeout=LIMIT_S, check=False)
            self.assertEqual(done.returncode, 77)
            self.assertRegex(done.stdout, r"\Agpu\.sh: skipped: no GPU: ")


if __name__ == "__main__":
    program.main()
