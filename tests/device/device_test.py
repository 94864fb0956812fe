"""The binary without a GPU, or where all are hidden: what --device and "device" mean, who says so,
and what `dtrain devices` lists."""
import re
import unittest

from program.commands import CommandCase

NO_GPU = re.compile(r"no GPU: \S.*")
FAILED, INPUT = 1, 2
ALWAYS = {"DTRAIN_CPU_BF16": "always"}  # bf16, whether it is faster or not


class Device(CommandCase):
    def reasons(self, done):
        return NO_GPU.findall(done.stderr)

    def test_auto_says_once_why_there_is_no_gpu_and_goes_on(self):
        done = self.run_dtrain("spec.json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len(self.reasons(done)), 1, done.stderr)

    def test_of_a_local_cluster_one_task_says_it(self):
        done = self.run_dtrain("--local_ps=2", "--local_workers=3", "spec.json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len(self.reasons(done)), 1, done.stderr)

    def test_who_asks_for_the_cpu_is_told_nothing(self):
        for words in (["--device=cpu"], ["--set", "device=cpu"]):
            done = self.run_dtrain(*words, "spec.json")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertNotIn("GPU", done.stderr)

    def test_a_gpu_that_must_be_there_is_an_error_before_anything_starts(self):
        for words in (["--device=gpu"], ["--device=gpu:1"], ["--set", "device=gpu"],
                      ["--device=gpu", "--local_workers=2"],
                      ["check", "--device=gpu"]):
            done = self.run_dtrain(*words, "spec.json")
            self.assertEqual(done.returncode, FAILED, done.stderr)
            self.assertRegex(done.stderr, r"\Adtrain: no GPU: \S.*\n\Z")
            self.assertEqual(done.stdout, "")

    def test_the_flag_beats_the_spec(self):
        done = self.run_dtrain("--device=cpu", "--set", "device=gpu", "spec.json")
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_wrong_words_are_refused(self):
        done = self.run_dtrain("--device=gpux", "spec.json")
        self.assertEqual(done.returncode, INPUT)
        self.assertIn('--device: expected auto, cpu, gpu or gpu:N', done.stderr)
        done = self.run_dtrain("--set", "device=tpu", "spec.json")
        self.assertEqual(done.returncode, INPUT)
        self.assertIn('device: expected auto, cpu, gpu or gpu:N', done.stderr)
        done = self.run_dtrain("--set", "precision=fp8", "spec.json")
        self.assertEqual(done.returncode, INPUT)
        self.assertIn("precision", done.stderr)

    def test_precision_that_a_cpu_does_not_have_has_no_effect_which_is_said(self):
        older = {"ONEDNN_MAX_CPU_ISA": "AVX2"}
        plain = self.run_dtrain("--device=cpu", "spec.json")
        self.assertNotIn("precision", plain.stderr)
        for name, why, env in (("tf32", "", {}), ("bf16", ": this processor has no AMX", older),
                               ("bf16", ": this processor has no AVX-512", {**older, **ALWAYS})):
            words = ["--device=cpu", "--set", "precision=" + name, "spec.json"]
            said = f"precision {name} has no effect on a CPU, which computes in float32{why}\n"
            done = self.run_dtrain(*words, env=env)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(said, done.stderr)
            self.assertIn("\ndevice: CPU\n" + said,
                          self.run_dtrain("check", *words, env=env).stdout)

    def test_bf16_is_said_where_it_is_computed_in(self):
        words = ["--device=cpu", "--set", "precision=bf16", "spec.json"]
        done = self.run_dtrain(*words, env=ALWAYS)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stderr, "large products and convolutions are in bf16|no AVX-512")
        refused = self.run_dtrain(*words, env={"DTRAIN_CPU_BF16": "yes"})
        self.assertEqual(refused.returncode, INPUT)
        self.assertIn('DTRAIN_CPU_BF16: expected always, got "yes"', refused.stderr)

    def test_check_says_which_device_a_run_would_use(self):
        self.assertRegex(self.run_dtrain("check", "spec.json").stdout,
                         r"\ndevice: CPU, no GPU: \S.*\n")
        self.assertIn("\ndevice: CPU\n",
                      self.run_dtrain("check", "--device=cpu", "spec.json").stdout)

    def test_devices_lists_the_cpu_and_its_libraries(self):
        done = self.run_dtrain("devices")
        self.assertEqual(done.returncode, 0)
        self.assertRegex(done.stdout, r"\ACPU: \S.*, \d+ of \d+ cores, \w+")
        self.assertRegex(done.stdout, r"\n     OpenBLAS \S+ \S+, oneDNN ")
        self.assertRegex(done.stdout, r"\nno GPU: \S")

    def test_devices_takes_no_words(self):
        done = self.run_dtrain("devices", "all")
        self.assertEqual(done.returncode, INPUT)
        self.assertEqual(done.stderr, 'dtrain: devices: unexpected argument "all"\n')

    def test_help_tells_of_flag_and_key(self):
        self.assertIn("--device=", self.run_dtrain("help", "flags").stdout)
        self.assertRegex(self.run_dtrain("help", "spec").stdout, r"\n +device +string ")
        self.assertRegex(self.run_dtrain("help", "spec").stdout, r"\n +precision +word ")
        self.assertIn("dtrain devices", self.run_dtrain("help").stdout)


if __name__ == "__main__":
    unittest.main(verbosity=2)
