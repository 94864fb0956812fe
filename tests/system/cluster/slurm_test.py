"""Tasks that srun starts: as it says in the environment, and by a real Slurm where there is one."""
import json
import os
import shutil
import socket
import subprocess

import program
from program import LIMIT_S
from program.cluster import SPEC, free_ports, hold_addresses

DAEMONS = ("munged", "slurmctld", "slurmd", "srun", "sinfo")
STEPS = 40
CONFIGURATION = """
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.sock
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/linear
MpiDefault=none
ReturnToService=2
MpiParams=ports={ports[2]}-{ports[23]}
NodeName=localhost NodeHostname={host} NodeAddr=127.0.0.1 CPUs=2
PartitionName=all Nodes=ALL Default=YES State=UP OverSubscribe=FORCE:4
"""


def find(name):
    return shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")


class Slurm(program.FolderCase):
    def setUp(self):
        super().setUp()
        spec = program.changed(SPEC, {"train.last_step": STEPS})
        (self.folder / "spec.json").write_text(json.dumps(spec))
        self.words = [os.path.abspath(program.BINARY), "--slurm=ps=2", "--result=result.json",
                      "--metrics_file=metrics.jsonl", "spec.json"]

    def check_result(self):
        text = (self.folder / "result.json").read_text()
        self.assertEqual(json.loads(text)["step"], STEPS)
        lines = (self.folder / "metrics.jsonl").read_text().splitlines()
        steps = [json.loads(line)["step"] for line in lines]
        self.assertEqual(steps, sorted(set(steps)))  # of one writer

    def test_tasks_find_each_other_by_what_srun_says(self):
        sockets, addresses = hold_addresses(5)
        ports = ",".join(address.rpartition(":")[2] for address in addresses)
        said = {"SLURM_NTASKS": "5", "SLURM_STEP_NODELIST": "localhost", "SLURM_JOB_ID": "7",
                "SLURM_STEP_TASKS_PER_NODE": "5", "SLURM_STEP_RESV_PORTS": ports}
        tasks = [subprocess.Popen(self.words, cwd=self.folder, stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                  env=program.environment({**said, "SLURM_PROCID": str(rank)}))
                 for rank in range(5)]
        for task in tasks:
            self.addCleanup(task.kill)
        told = [task.communicate(timeout=LIMIT_S)[0] for task in tasks]
        self.assertEqual([task.returncode for task in tasks], [0] * 5, "\n".join(told))
        for one in sockets:
            one.close()
        for rank, name in enumerate(("ps/0", "ps/1", "worker/0", "worker/1", "worker/2")):
            self.assertIn(f" {name}: ", told[rank])
        self.assertNotIn("is not used", "".join(told))
        self.check_result()

    def start(self, name, words):
        log = open(self.folder / f"{name}.log", "wb")
        self.addCleanup(log.close)
        process = subprocess.Popen([find(name), *words], cwd=self.folder, stdin=subprocess.DEVNULL,
                                   stdout=log, stderr=log, env=self.environment())
        self.addCleanup(process.wait)
        self.addCleanup(process.terminate)

    def environment(self):
        return program.environment({"SLURM_CONF": str(self.folder / "slurm.conf"),
                                    "PATH": f"{self.folder}:{os.environ['PATH']}"})

    def ran(self, *words):
        return subprocess.run([find(words[0]), *words[1:]], cwd=self.folder, check=False, text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, env=self.environment(), timeout=LIMIT_S)

    def logs(self):
        return "\n".join(path.read_text(errors="replace") for path in self.folder.glob("*.log"))

    def start_slurm(self):
        missing = [name for name in DAEMONS if not find(name)]
        if missing or os.getuid() != 0:
            self.skipTest(f"{', '.join(missing)} missing" if missing else "only root starts Slurm")
        self.folder.chmod(0o755)
        (self.folder / "state").mkdir()
        (self.folder / "spool").mkdir()
        (self.folder / "key").write_bytes(os.urandom(1024))
        (self.folder / "key").chmod(0o600)
        (self.folder / "slurm.conf").write_text(CONFIGURATION.format(
            host=socket.gethostname().partition(".")[0], folder=self.folder, ports=free_ports(24)))
        self.start("munged", ["--foreground", "--force", f"--key-file={self.folder}/key",
                              f"--socket={self.folder}/munge.sock", f"--pid-file={self.folder}/pid",
                              f"--seed-file={self.folder}/seed", "--num-threads=2",
                              f"--log-file={self.folder}/munge.log"])
        program.wait_until((self.folder / "munge.sock").exists, lambda: "munged to listen")
        self.start("slurmctld", ["-D", "-i"])
        self.start("slurmd", ["-D", "-N", "localhost"])
        program.wait_until(lambda: "idle" in self.ran("sinfo", "--noheader").stdout,
                           self.logs)

    def test_a_step_of_slurm_is_a_cluster(self):
        self.start_slurm()
        for more in ([], ["--resv-ports=4"], ["-m", "cyclic"]):
            with self.subTest(more):
                done = self.ran("srun", "-n", "4", "--overcommit", *more, *self.words)
                self.assertEqual(done.returncode, 0, done.stdout + self.logs())
                for name in ("ps/0", "ps/1", "worker/0", "worker/1"):
                    self.assertIn(f" {name}: ", done.stdout)
                self.check_result()

    def test_a_job_of_the_page_is_queued_again_until_it_is_done(self):
        self.start_slurm()
        (self.folder / "dtrain").symlink_to(os.path.abspath(program.BINARY))
        endless = program.changed(SPEC, {"train.last_step": 10**9})
        (self.folder / "spec.json").write_text(json.dumps(endless))
        told = self.ran("sbatch", "--nodes=1", "--ntasks=4", "--cpus-per-task=1", "--overcommit",
                        str(program.ROOT / "examples" / "deploy" / "dtrain.sbatch"), "spec.json").stdout
        job = told.split()[-1]
        output = self.folder / f"slurm-{job}.out"

        def has_said(words):
            return output.exists() and words in output.read_text()

        def logs():
            return told + self.logs() + (output.read_text() if output.exists() else "")

        program.wait_until(lambda: has_said("step 1 of "), logs)
        self.ran("scancel", "--signal=TERM", job)  # as --signal=TERM@120 has it, of the steps alone
        program.wait_until(lambda: job in self.ran("squeue", "--noheader", "--states=PENDING").stdout, logs)
        ended = program.changed(SPEC, {"train.last_step": STEPS})
        (self.folder / "spec.json").write_text(json.dumps(ended))
        self.ran("scontrol", "update", f"JobId={job}", "StartTime=now")  # Slurm would wait for minutes
        program.wait_until(lambda: has_said("begins from") and not self.ran("squeue", "--noheader").stdout, logs)
        self.assertIn("worker/0: stopped by SIGTERM (exit code 143)", output.read_text())
        self.assertIn(" JobState=COMPLETED ", self.ran("scontrol", "show", "job", job).stdout, logs())
        self.assertEqual(list(self.folder.glob(".dtrain-*.key")), [])


if __name__ == "__main__":
    program.main()
