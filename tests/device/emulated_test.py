"""The binary with an emulated GPU: who computes on it, who says so, and that what comes out is near
what the CPU makes of it."""
import json
import os
import re
import shutil
import unittest

import program
from program.commands import CommandCase

ON_GPU = re.compile(r"computes on GPU (\d+) \(cuda emulated, .*; \d+\.\d GB free\)")
CALLS_MAX = 200  # of one kind in a run of three steps
AT_OPENING = 2  # launches
FAILED, INPUT, LOST_DEVICE = 1, 2, 131
# CUDA's errors
OUT_OF_MEMORY, UNSUPPORTED_PTX, ILLEGAL_ADDRESS, LAUNCH_FAILURE, UNKNOWN = 2, 222, 700, 719, 999


class Emulated(CommandCase):
    def run_ok(self, *words):
        done = program.run(list(words), self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def loss(self, *words):
        """Of the evaluation of the run's last checkpoint."""
        self.run_ok("eval", "--checkpoint=run", "--result=eval.json", "--set", "data.eval=" +
                    json.dumps({"format": "digits", "rows": 100}), *words, "spec.json")
        with open(os.path.join(self.folder, "eval.json"), encoding="utf-8") as file:
            return json.load(file)["metrics"]["loss"]

    def test_auto_computes_on_the_gpu_and_says_so(self):
        self.assertEqual(ON_GPU.findall(self.run_ok("spec.json").stderr), ["0"])

    def test_cpu_does_not(self):
        self.assertNotIn("GPU", self.run_ok("--device=cpu", "spec.json").stderr)

    def test_workers_of_a_cluster_compute_on_it_and_no_ps(self):
        said = self.run_ok("--local_ps=2", "--local_workers=2", "spec.json")
        lines = [line for line in (said.stdout + said.stderr).splitlines() if "computes on" in line]
        self.assertEqual(sorted(line.split(":")[0] for line in lines), ["worker/0", "worker/1"])

    def test_a_gpu_of_another_number_is_bad_input(self):
        for words in (["--device=gpu:1"], ["--device=gpu:1", "--local_workers=2"]):
            done = program.run(words + ["spec.json"], self.folder)
            self.assertEqual(done.returncode, INPUT)
            self.assertEqual(done.stderr,
                             "dtrain: --device: there is no GPU 1: 1 can be seen, from 0 on\n")

    def run_broken(self, call, after, error, *words):
        return program.run([*words, "spec.json"], self.folder,
                           {"EMULATED_BREAK": f"{call},{after},{error}"})

    def test_a_gpu_that_breaks_ends_the_task_as_worth_another_try(self):
        for call, after, error in (("cudaLaunchKernelEx", 20, LAUNCH_FAILURE), ("cudaGraphLaunch", 3, UNKNOWN),
                                   ("cudaEventQuery", 5, UNKNOWN)):
            for words in ([], ["--local_ps=1", "--local_workers=2"]):
                done = self.run_broken(call, after, error, *words)
                self.assertEqual(done.returncode, LOST_DEVICE, done.stderr)
                self.assertRegex(done.stderr, rf"ERROR: .*GPU 0: {call}: .*, last kernel: \w+")

    def break_everywhere(self, call, *words):
        """Breaks the first of these calls, the second and so on until none is left to break."""
        count = 0
        for after in range(CALLS_MAX):
            done = self.run_broken(call, after, LAUNCH_FAILURE, "--set", "train.last_step=3", *words)
            shutil.rmtree(os.path.join(self.folder, "run"), ignore_errors=True)
            if f"emulated GPU: breaks in {call}\n" not in done.stderr:
                self.assertEqual(done.returncode, 0, done.stderr)
                return count
            if "computes on the CPU" not in done.stderr:
                self.assertEqual(done.returncode, LOST_DEVICE, f"{call} {after}: {done.stderr}")
                self.assertRegex(done.stderr, r"GPU 0: \w+: ")
                count += 1
        self.fail(f"{call}: more than {CALLS_MAX} times")

    def test_wherever_a_gpu_breaks_the_run_is_worth_another_try(self):
        saves = ["--set", "train.checkpoint_dir=run"]
        self.assertGreater(self.break_everywhere("cudaLaunchKernelEx"), 20)
        self.assertGreater(self.break_everywhere("cudaLaunchKernelEx", *saves), 20)
        self.assertGreater(self.break_everywhere("cudaMemcpyAsync", *saves), 10)
        for call in ("cudaMalloc", "cudaGraphLaunch", "cudaEventRecord"):
            self.assertGreater(self.break_everywhere(call), 0)

    def test_who_only_evaluates_ends_so_too(self):
        """The evaluator does not go on to the next checkpoint; no ps need be there for that."""
        self.run_ok("--set", "train.checkpoint_dir=run", "spec.json")
        data = ["--set", "data.eval=" + json.dumps({"format": "digits", "rows": 100}),
                "--set", "train.checkpoint_dir=run"]
        for words in (["eval", "--checkpoint=run"], ["predict", "--checkpoint=run", "--out=out.csv"],
                      ["--job_name=evaluator", "--ps_hosts=localhost:1", "--worker_hosts=localhost:2",
                       "--start_timeout=30"]):
            done = self.run_broken("cudaLaunchKernelEx", AT_OPENING + 1, LAUNCH_FAILURE, *words, *data)
            self.assertEqual(done.returncode, LOST_DEVICE, done.stderr)
            self.assertIn("GPU 0: cudaLaunchKernelEx: ", done.stderr)

    def test_a_mistake_in_a_kernel_and_a_gpu_that_is_broken_at_the_start_are_not(self):
        done = self.run_broken("cudaLaunchKernelEx", 20, ILLEGAL_ADDRESS)
        self.assertEqual(done.returncode, FAILED, done.stderr)
        done = self.run_broken("cudaStreamCreateWithFlags", 0, UNKNOWN, "--device=gpu")
        self.assertEqual(done.returncode, FAILED, done.stderr)
        self.assertIn("cudaStreamCreateWithFlags", done.stderr)
        for call, error in (("cudaStreamCreateWithFlags", UNKNOWN), ("cudaLaunchKernelEx", UNSUPPORTED_PTX)):
            done = self.run_broken(call, 0, error)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertRegex(done.stderr, f"WARNING: computes on the CPU: .*{call}")

    def test_what_is_wrong_with_a_gpu_is_told_with_its_number(self):
        done = self.run_broken("cudaMalloc", 0, OUT_OF_MEMORY, "--device=gpu")
        self.assertEqual(done.returncode, FAILED)
        self.assertIn("\ndtrain: GPU 0 (emulated): cudaMalloc: out of memory\n", done.stderr)

    def test_gpus_that_the_driver_cannot_get_at_are_a_warning(self):
        done = self.run_broken("cudaGetDeviceCount", 0, UNKNOWN)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stderr, "WARNING: computes on the CPU: no GPU: cudaGetDeviceCount: ")
        done = self.run_broken("cudaGetDeviceCount", 0, UNKNOWN, "--device=gpu")
        self.assertEqual(done.returncode, FAILED, done.stderr)

    def test_devices_says_what_is_wrong_with_one(self):
        for call, described in (("cudaSetDevice", r"\d+\.\d GB, 0\.0 GB free, .*; "),
                                ("cudaGetDeviceProperties", "")):
            done = program.run(["devices"], self.folder, {"EMULATED_BREAK": f"{call},0,{UNKNOWN}"})
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertRegex(done.stdout, rf"\nGPU 0: \w+, {described}cannot be used: {call}: ")

    def test_a_ps_is_checked_as_it_runs(self):
        said = self.run_ok("check", "--job_name=ps", "--task_index=0", "--ps_hosts=localhost:1",
                           "--worker_hosts=localhost:2", "--device=gpu", "spec.json")
        self.assertIn("\ndevice: CPU\n", said.stdout)

    def test_a_wrong_word_for_the_cpu_is_wrong_here_too(self):
        done = program.run(["--cpu_kernels=avx1024", "spec.json"], self.folder)
        self.assertEqual(done.returncode, INPUT, done.stderr)

    def test_check_and_devices_name_it(self):
        self.assertRegex(self.run_ok("check", "spec.json").stdout, r"\ndevice: GPU 0 \(cuda emulated, ")
        self.assertRegex(self.run_ok("devices").stdout,
                         r"\nGPU 0: emulated, \d+\.\d GB, .*, compute capability 9.0, PCI 0001:3b:02.0\n"
                         r"     driver emulated, CUDA ")

    def test_a_run_ends_near_where_the_cpu_ends(self):
        losses = []
        for device in ("cpu", "gpu"):
            flag = f"--device={device}"
            self.run_ok(flag, "--set", "train.checkpoint_dir=run", "spec.json")
            losses.append(self.loss(flag))
            self.run_ok("checkpoint", "verify", "run")
            for name in os.listdir(os.path.join(self.folder, "run")):
                path = os.path.join(self.folder, "run", name)
                if os.path.isfile(path):
                    os.remove(path)
        self.assertAlmostEqual(losses[0], losses[1], delta=1e-4 * losses[0])

    def test_bf16_is_another_computation_on_it(self):
        model = [{"op": "conv2d", "filters": 4, "kernel_size": 5, "strides": 4},
                 {"op": "conv2d", "filters": 8, "kernel_size": 3}, {"op": "flatten"},
                 {"op": "dense", "units": 10}]
        words = ["--set", "train.log_every_steps=1", "--set", "model=" + json.dumps(model)]
        plain = self.run_ok(*words, "spec.json").stderr
        bf16 = self.run_ok(*words, "--set", "precision=bf16", "spec.json").stderr
        self.assertNotIn("no effect", bf16)
        losses = [re.findall(r"loss (\d\.\d+), acc", text) for text in (plain, bf16)]
        self.assertEqual(len(losses[0]), 20)
        self.assertNotEqual(losses[0], losses[1])

    def test_variables_of_a_single_process_are_placed_on_it(self):
        said = self.run_ok("--set", "train.log_device_placement=true", "spec.json").stdout
        self.assertRegex(said, r"softmax/kernel: \(variable\): /job:ps/task:0/device:GPU:0\n")
        self.assertRegex(said, r"softmax: \(dense\): /job:worker/task:0/device:GPU:0\n")

    def test_summaries_with_histograms_are_written(self):
        hook = [{"type": "summary_saver", "save_steps": 5, "parameters": True, "gradients": True,
                 "gradient_norm": True}]
        self.run_ok("--set", "train.summary_dir=summaries", "--set",
                    "train.hooks=" + json.dumps(hook), "spec.json")
        sizes = [os.path.getsize(os.path.join(self.folder, "summaries", name))
                 for name in os.listdir(os.path.join(self.folder, "summaries"))]
        self.assertGreater(max(sizes), 1000)


class TwoGpus(CommandCase):
    TOWERS = ["--set", 'train.towers=["gpu:0","gpu:1"]']

    def run_towers(self, *words, gpus="2"):
        return program.run([*words, *self.TOWERS, "spec.json"], self.folder, {"EMULATED_GPUS": gpus})

    def losses(self, done):
        self.assertEqual(done.returncode, 0, done.stderr)
        return [float(loss) for loss in re.findall(r"loss (\d\.\d+), acc", done.stderr)]

    def test_towers_train_as_one_replica_on_the_cpu(self):
        each = ["--set", "train.log_every_steps=1"]
        wanted = self.losses(program.run([*each, "--device=cpu", "spec.json"], self.folder))
        for words in ([], ["--local_ps=1", "--local_workers=1"]):
            done = self.run_towers(*each, "--set", "train.log_device_placement=true", *words)
            found = self.losses(done)
            self.assertEqual(len(found), 20, done.stderr)
            for one, other in zip(found, wanted):
                self.assertAlmostEqual(one, other, delta=2e-4)
            for gpu in (0, 1):
                self.assertRegex(done.stdout, rf"tower_{gpu}/softmax: \(dense\): "
                                              rf"/job:worker/task:0/device:GPU:{gpu}\n")

    def test_towers_need_not_be_in_the_order_of_their_gpus(self):
        done = program.run(["--set", 'train.towers=["gpu:1","cpu","gpu:0"]', "--set", "data.batch_size=21",
                            "--set", "train.log_device_placement=true", "spec.json"], self.folder,
                           {"EMULATED_GPUS": "2"})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(re.findall(r"tower_\d/softmax: .*/device:(\w+:\d)\n", done.stdout),
                         ["GPU:1", "CPU:0", "GPU:0"])

    def test_check_names_each_towers_gpu(self):
        said = self.run_towers("check").stdout
        for gpu in (0, 1):
            self.assertRegex(said, rf"\ntower {gpu}: 10 of 20 rows on GPU {gpu} \(cuda emulated.*\), \d+ bytes")

    def test_a_gpu_that_is_not_there_is_named_with_its_tower(self):
        done = self.run_towers(gpus="1")
        self.assertEqual(done.returncode, INPUT, done.stderr)
        self.assertIn("train.towers: tower 1: device: there is no GPU 1: 1 can be seen, from 0 on", done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
