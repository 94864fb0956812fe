"""Tasks that mpirun, mpiexec or torchrun starts: as torchrun says it in the environment, and by a real Open MPI and
MPICH where they are installed."""
import json
import os
import shutil
import subprocess
import unittest

import program
from program import LIMIT_S
from program.cluster import SPEC, free_ports

STEPS = 40
RANKS = 4
OPEN_MPI = ("mpirun.openmpi", "--allow-run-as-root", "--oversubscribe")
MPICH = ("mpirun.mpich",)


class Ranks(program.FolderCase):
    def setUp(self):
        super().setUp()
        spec = program.changed(SPEC, {"train.last_step": STEPS})
        (self.folder / "spec.json").write_text(json.dumps(spec))
        self.words = [os.path.abspath(program.BINARY), "--ranks=ps=2", "--result=result.json", "spec.json"]

    def ran(self, words, more=None):
        return subprocess.run(words, cwd=self.folder, check=False, text=True, timeout=LIMIT_S,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              env=program.environment(more))

    def check_result(self, ended):
        self.assertEqual(ended.returncode, 0, ended.stdout)
        for name in ("ps/0", "ps/1", "worker/0", "worker/1"):
            self.assertIn(f" {name}: ", ended.stdout)
        self.assertEqual(json.loads((self.folder / "result.json").read_text())["step"], STEPS)

    def under(self, launcher):
        if not shutil.which(launcher[0]):
            self.skipTest(f"{launcher[0]} is not installed")
        command = [*launcher, "-np", str(RANKS), *self.words, f"--base_port={free_ports(RANKS)[0]}"]
        self.check_result(self.ran(command))

    def test_open_mpi(self):
        self.under(OPEN_MPI)

    def test_mpich(self):
        self.under(MPICH)

    def test_tasks_find_each_other_by_what_torchrun_says(self):
        base, tasks = free_ports(RANKS)[0], []
        for rank in range(RANKS):
            said = {"RANK": rank, "WORLD_SIZE": RANKS, "LOCAL_RANK": rank, "LOCAL_WORLD_SIZE": RANKS}
            tasks.append(subprocess.Popen(
                [*self.words, f"--base_port={base}"], cwd=self.folder, stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                env=program.environment({name: str(value) for name, value in said.items()})))
            self.addCleanup(tasks[-1].kill)
        told = [task.communicate(timeout=LIMIT_S)[0] for task in tasks]
        self.check_result(subprocess.CompletedProcess([], max(task.returncode for task in tasks),
                                                      "\n".join(told)))

    def test_who_is_refused_is_told_why(self):
        said = {"PMI_RANK": "0", "PMI_SIZE": "4", "MPI_LOCALRANKID": "0", "MPI_LOCALNRANKS": "4"}
        for flags, why in ((["--task_index=1"], "--task_index: --ranks says that already"),
                           (["--slurm=ps=1"], "--slurm and --ranks say where tasks are, each in its own way"),
                           (["--hostfile=none"], "--hostfile: none: No such file or directory")):
            ended = self.ran([*self.words, *flags], said)
            self.assertEqual((ended.returncode, ended.stdout), (2, f"dtrain: {why}\n"))


if __name__ == "__main__":
    program.need_binary()
    unittest.main()
