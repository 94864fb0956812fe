"""examples/deploy: what it says to Kubernetes, systemd and container builders is what the program takes."""
import json
import os
import re
import subprocess
import unittest

import program
from program import LIMIT_S
from program.cluster import SPEC, hold_addresses
from program.commands import succeeds

try:
    import kubernetes_validate
    import yaml
except ImportError:
    kubernetes_validate = None

# As a container has it: process 1, of nobody, a root for reading only, 64 MB of /dev/shm
CONTAINED = """mount --make-rprivate / && mount -t proc proc /proc && mount -t tmpfs -o size=64m none /dev/shm &&
mount -o bind / "$0" && mount -o remount,bind,ro "$0" &&
mount --rbind /dev "$0/dev" && mount --rbind /proc "$0/proc" && exec chroot --userspec=65534:65534 "$0" "$@" """
DEPLOY = program.ROOT / "examples" / "deploy"
VERSIONS = "1.29", "1.37"  # of Kubernetes
PERMANENT = [1, 2, 3]  # exit codes after which the same command would fail again


def text_of(name):
    return (DEPLOY / name).read_text()


class Deploy(program.FolderCase):
    def jobs(self):
        """By name: how many tasks, and their words. The few forms of YAML that the file uses."""
        for part in text_of("kubernetes.yaml").split("kind: Job\n")[1:]:
            count = int(re.search(r"completions: (\d+)", part)[1])
            self.assertEqual(int(re.search(r"parallelism: (\d+)", part)[1]), count)
            words = re.search(r"args: \[(.*)\]", part)
            words = words[1].split(", ") if words else \
                re.findall(r"- (\S+)", re.search(r"args:\n((?: +- .*\n)+)", part)[1])
            yield re.search(r"name: JOB_NAME\n +value: (\w+)", part)[1], count, words

    def test_the_pods_of_the_manifest_are_a_cluster(self):
        text = text_of("kubernetes.yaml")
        jobs = {job: (count, words) for job, count, words in self.jobs()}
        self.assertEqual(set(jobs), {"ps", "worker"})
        lists, sockets = {}, []
        for job, name in (("ps", "PS_HOSTS"), ("worker", "WORKER_HOSTS")):
            hosts = re.search(rf"{name}: (\S+)", text)[1].split(",")
            self.assertEqual(hosts, [f"dtrain-{job}-{i}.dtrain:2222" for i in range(jobs[job][0])])
            held, addresses = hold_addresses(len(hosts))
            sockets += held
            lists[name] = ",".join(addresses)
        spec = program.changed(SPEC, {"train.last_step": 40})
        (self.folder / "spec.json").write_text(json.dumps(spec))
        key = self.folder / "job.key"
        key.write_bytes(os.urandom(32))
        key.chmod(0o600)
        self.assertEqual(re.search(r"DTRAIN_KEY_FILE: (\S+)/job.key", text)[1],
                         re.search(r"name: key\n +mountPath: (\S+)", text)[1])
        lists.update({"DTRAIN_KEY_FILE": str(key)} if program.has_tls() else {"DTRAIN_INSECURE": "true"})
        tasks = []
        for job, (count, words) in jobs.items():
            words = [re.sub(r"^s3://.*\.json$", "spec.json", word) for word in words]
            words = [re.sub(r"=s3://.*", "=run", word) for word in words]
            for index in range(count):
                tasks.append(subprocess.Popen(
                    [program.BINARY, *words], cwd=self.folder, stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                    env=program.environment({**lists, "JOB_NAME": job, "TASK_INDEX": str(index)})))
                self.addCleanup(tasks[-1].kill)
        told = [task.communicate(timeout=LIMIT_S)[0] for task in tasks]
        self.assertEqual([task.returncode for task in tasks], [0] * len(tasks), "\n".join(told))
        for one in sockets:
            one.close()
        self.assertTrue((self.folder / "run" / "checkpoint").exists())

    @unittest.skipUnless(kubernetes_validate, "there is no kubernetes-validate")
    def test_the_manifest_is_what_kubernetes_takes(self):
        """By the schemas that it publishes; those before want conditions in rules by exit codes, which the servers do not."""
        for item in yaml.safe_load(text_of("kubernetes.yaml"))["items"]:
            for version in VERSIONS:
                kubernetes_validate.validate(item, version, strict=True)

    def test_what_is_not_tried_again_would_fail_again(self):
        said = program.run(["help", "exit-codes"], self.folder).stdout
        codes = [int(code) for code in re.findall(r"^ +(\d+)  ", said, re.MULTILINE)]
        self.assertEqual([code for code in codes if 0 < code < 128], PERMANENT)
        listed = re.search(r"FailJob[^\[]*\[(.*)\]", text_of("kubernetes.yaml"))[1]
        self.assertEqual([int(code) for code in listed.split(", ")], PERMANENT)
        listed = re.search(r"RestartPreventExitStatus=(.*)", text_of("dtrain-ps@.service"))[1]
        self.assertEqual([int(code) for code in listed.split()], PERMANENT)

    def contained(self):
        root = self.folder / "root"
        root.mkdir()
        return ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", CONTAINED, str(root)]

    def test_a_cluster_trains_as_process_1_of_nobody_who_can_write_nowhere(self):
        """With more than the container has in /dev/shm: what tasks share is not there."""
        before = self.contained()
        if not succeeds(*before, program.BINARY, "--version"):
            self.skipTest("may not do this here")
        spec = program.changed(SPEC, {"train.last_step": 3, "model": [
            {"op": "flatten"}, {"op": "dense", "units": 12000}, {"op": "dense", "units": 10}]})
        words = ["--local_ps=1", "--local_workers=2", "--transport=shm", "--log_level=debug", "-"]
        ended = program.run(words, self.folder, before=before, stdin=json.dumps(spec))
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertRegex(ended.stderr, r"worker/1: .*ps/0 is here over shm")

    def test_a_service_and_an_image_name_what_is_installed(self):
        for name, pattern in (("dtrain-ps@.service", r"ExecStart=(\S+)"),
                              ("Containerfile", r'ENTRYPOINT \["(\S+)"\]')):
            path = re.search(pattern, text_of(name))[1]
            self.assertEqual(path, "/usr/bin/dtrain")  # of the package
        for path in re.findall(r"/usr/share/dtrain/(\S+\.json)", text_of("Containerfile")):
            self.assertTrue(os.path.exists(program.ROOT / path), path)


if __name__ == "__main__":
    program.main()
