"""A cluster of the hosts of a file, started by ssh: what it prints, how it ends, and that nothing
outlives it. The server is a real sshd with keys of its own; the hosts are addresses of this one."""
import json
import os
import pwd
import re
import shutil
import signal
import socket
import subprocess
import unittest

import program
from program import commands
from program.commands import CommandCase

HOSTS = "# two of them\n127.0.0.1 slots=2\n\n127.0.0.2 slots=2 # workers\n"
HAS_TLS = program.has_tls()
NAMES = ("ps/0", "ps/1", "worker/0", "worker/1")
TRIES = 5
SERVER = """
Port {port}
ListenAddress 127.0.0.1
ListenAddress 127.0.0.2
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/own_key.pub
PidFile {folder}/sshd.pid
StrictModes no
UsePAM no
PasswordAuthentication no
"""
CLIENT = """
Host *
Port {port}
IdentityFile {folder}/own_key
IdentitiesOnly yes
UserKnownHostsFile {folder}/known_hosts
StrictHostKeyChecking accept-new
"""


def find(name):
    return shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as one:
        return one.getsockname()[1]


def processes():
    """Id, parent, folder and words of each."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
                parent = int(file.read().rpartition(")")[2].split()[1])
            with open(f"/proc/{pid}/cmdline", encoding="utf-8", errors="replace") as file:
                yield int(pid), parent, os.readlink(f"/proc/{pid}/cwd"), file.read().split("\0")
        except OSError:
            continue  # ended meanwhile


class Files(CommandCase):
    """Mistakes, for which no server is needed."""

    def check(self, words, said):
        ended = self.run_dtrain(*words)
        self.assertEqual((ended.returncode, ended.stderr), (2, f"dtrain: {said}\n"))

    def check_file(self, text, said):
        (self.folder / "hosts").write_text(text)
        self.check(["--ssh=ps=1", "--hostfile=hosts", "--base_port=20000", "spec.json"], said)

    def test_lines_that_are_wrong_are_named(self):
        self.check_file("# nobody\n", "hosts: there is no host in it")
        self.check_file("a\nb slot=2\n",
                        'hosts:2: expected slots=N or max-slots=N with N from 1 to 4096, got "slot=2"')
        self.check_file("a slots=0\n",
                        'hosts:1: expected slots=N or max-slots=N with N from 1 to 4096, got "slots=0"')
        self.check_file("a slots=4000\nb slots=97\n", "hosts:2: more than 4096 slots")
        self.check_file("-oProxyCommand=x\n",
                        'hosts:1: expected a host or user@host, got "-oProxyCommand=x"')
        self.check_file("me@\n", 'hosts:1: expected a host or user@host, got "me@"')
        self.check_file("a slots=2 b\n",
                        'hosts:1: expected slots=N or max-slots=N with N from 1 to 4096, got "b"')
        self.check_file("a:x\n", 'hosts:1: expected host:N with N slots, from 1 to 4096, got "a:x"')
        self.check_file("[::1]:0\n", 'hosts:1: expected host:N with N slots, from 1 to 4096, got "[::1]:0"')
        self.check_file("[::1]x\n", 'hosts:1: expected host:N with N slots, from 1 to 4096, got "[::1]x"')
        self.check_file("a slots=3 max-slots=2\n", "hosts:1: slots=3 is more than max-slots=2")
        self.check_file("a" * 600, "hosts:1: longer than 510 characters")
        self.check_file("a/b slots=2\n",
                        'hosts: address "a/b:20000": "a/b" is not the name of a host')
        self.check_file("a\n", "--ssh=ps=1: of 1 tasks none is left to be a worker")
        self.check_file("a,b slots=2\n", 'hosts:1: expected one host on a line, got "a,b"')
        self.check_file("a:3 slots=2\n", "hosts:1: a:3 has 3 slots, slots=2 says others: leave one out")
        self.check_file("a max-slots=4000\nb slots=97\n", "hosts:2: more than 4096 slots")
        for order in ("le", "be"):
            (self.folder / "hosts").write_bytes("\ufeffa slots=2".encode(f"utf-16-{order}"))
            self.check(["--ssh=ps=1", "--hostfile=hosts", "spec.json"], "hosts: text in UTF-16: save it as UTF-8")

    def test_flags_that_do_not_go_together_are_named(self):
        (self.folder / "hosts").write_text(HOSTS)
        both = ["--ssh=ps=2", "--hostfile=hosts"]
        self.check(["--ssh=ps=2", "spec.json"], "--ssh needs --hostfile, which names the hosts")
        self.check(["--hostfile=hosts", "spec.json"], "--hostfile goes with --ssh or --ranks")
        self.check(["--ssh_command=rsh", "spec.json"], "--ssh_command goes with --ssh")
        self.check(["--local_ps=1", "--base_port=20000", "spec.json"],
                   "--base_port goes with --ssh, --slurm or --ranks")
        self.check(["--local_ps=1", "--workers=1", "spec.json"], "--workers goes with --ssh or lists of hosts")
        self.check([*both, "--workers=3", "spec.json"],
                   "--ps, --workers: 3 workers: 1 to 2 are possible, by the lists of hosts")
        self.check([*both, "--local_ps=2", "spec.json"],
                   "--local_ps and --local_workers are for this host; --ssh has its own")
        self.check([*both, "--bind=0.0.0.0", "spec.json"],
                   "--ssh starts tasks of its own: --bind does not go with it")
        self.check(["--ssh=2", "--hostfile=hosts", "spec.json"],
                   '--ssh: expected ps=N, how many of the tasks are ps, got "2"')
        self.check(["--ssh=ps=2", "--hostfile=none", "spec.json"],
                   "--hostfile: none: No such file or directory")
        self.check([*both, "--base_port=65535", "spec.json"],
                   "hosts: --base_port: the tasks of 127.0.0.1 have no room below port 65536")

    def test_a_plan_is_made_of_the_file(self):
        (self.folder / "hosts").write_text(HOSTS)
        ended = self.run_dtrain("check", "--json", "--ssh=ps=1", "--hostfile=hosts", "spec.json")
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertEqual(json.loads(ended.stdout)["workers"], 3)
        ended = self.run_dtrain("check", "--json", "--ssh=ps=1", "--hostfile=hosts", "--workers=2", "spec.json")
        self.assertEqual(json.loads(ended.stdout)["workers"], 2)

    def test_a_command_that_is_not_there_ends_it(self):
        (self.folder / "hosts").write_text(HOSTS)
        ended = self.run_dtrain("--ssh=ps=2", "--hostfile=hosts", "--ssh_command=./none",
                                "spec.json")
        self.assertEqual(ended.returncode, 1, ended.stderr)
        self.assertRegex(ended.stderr, r"ps/0: .*cannot start \./none: No such file")


class Ssh(CommandCase):
    def setUp(self):
        super().setUp()
        missing = [name for name in ("sshd", "ssh", "ssh-keygen") if not find(name)]
        if missing or os.getuid() != 0:
            self.skipTest(f"{', '.join(missing)} missing" if missing else "only root starts sshd")
        os.makedirs("/run/sshd", exist_ok=True)
        for key in ("host_key", "own_key"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.folder / key],
                           check=True)
        for _ in range(TRIES):  # somebody may take the port meanwhile
            if self.start_server():
                break
        else:
            self.fail((self.folder / "sshd.log").read_text())
        (self.folder / "hosts").write_text(HOSTS)
        self.words = ["--ssh=ps=2", f"--hostfile={self.folder}/hosts",
                      f"--ssh_command=ssh -F {self.folder}/client"]

    def start_server(self):
        """Whether it listens; its children belong to nobody else."""
        names = {"folder": self.folder, "port": free_port()}
        (self.folder / "server").write_text(SERVER.format(**names))
        (self.folder / "client").write_text(CLIENT.format(**names))
        with open(self.folder / "sshd.log", "wb") as log:
            server = subprocess.Popen([find("sshd"), "-D", "-e", "-f", self.folder / "server"],
                                      stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.addCleanup(server.wait)
        self.addCleanup(server.terminate)
        def said():
            return (self.folder / "sshd.log").read_text()
        program.wait_until(lambda: said().count("Server listening") == 2 or
                           server.poll() is not None or "Cannot bind" in said(), said)
        return server.poll() is None and "Cannot bind" not in said()

    def run_cluster(self, *words, **options):
        return program.run([*self.words, *words], self.folder, **options)

    def start(self, *words):
        """Until both workers have taken a step."""
        running = commands.Running([*self.words, "--set=train.last_step=1000000000", *words,
                                    "spec.json"], self.folder)
        self.addCleanup(running.process.kill)
        for worker in ("worker/0", "worker/1"):
            running.wait_for_match(rf"^{worker}: .*step \d+ of 1000000000")
        return running

    def tasks(self):
        """Their ids by name."""
        found = {}
        for pid, _, folder, words in processes():
            is_task = "--launched=yes" in words and "keep-task" not in words
            if is_task and folder == os.path.realpath(self.folder):
                said = dict(word[2:].split("=", 1) for word in words if "=" in word)
                found[f"{said['job_name']}/{said['task_index']}"] = pid
        return found

    def test_a_cluster_trains_and_ends_by_itself(self):
        ended = self.run_cluster("--result=it's.json", "spec.json")
        self.assertEqual(ended.returncode, 0, ended.stderr)
        said = re.search(r"started 2 ps and 2 workers by ssh on 2 hosts, ports from \d+ on, (--key_file=(\S+) )?"
                         r"--ps_hosts=127\.0\.0\.1:\d+,127\.0\.0\.1:\d+\n", ended.stderr)
        self.assertTrue(said, ended.stderr)
        self.assertEqual(bool(said[1]), HAS_TLS)
        self.assertFalse(said[1] and os.path.exists(os.path.dirname(said[2])))  # it goes with the launcher
        self.assertRegex(ended.stdout, r"worker/0: softmax/kernel +\[784, 10\] +31360 +1\n")
        self.assertRegex(ended.stdout, r"worker/0: step 20, ")
        for name in NAMES:
            self.assertRegex(ended.stderr + ended.stdout, rf"(?m)^{name}: ")
        self.assertEqual(json.loads((self.folder / "it's.json").read_text())["step"], 20)

    def test_a_user_may_be_named(self):
        name = pwd.getpwuid(os.getuid()).pw_name
        (self.folder / "hosts").write_text(f"{name}@127.0.0.1\n{name}@127.0.0.2\n")
        ended = program.run(["--ssh=ps=1", *self.words[1:], "spec.json"], self.folder)
        self.assertEqual(ended.returncode, 0, ended.stderr)

    def test_signals_end_all_of_it(self):
        for signo, code in ((signal.SIGINT, 130), (signal.SIGKILL, -9)):
            with self.subTest(signal=signo):
                running = self.start(f"--set=train.checkpoint_dir=run{code}")
                tasks = self.tasks()
                self.assertEqual(set(tasks), set(NAMES))
                running.process.send_signal(signo)
                self.assertEqual(running.end(), code, running.lines)
                commands.wait_until_gone(tasks.values())
                if signo != signal.SIGKILL:
                    self.assertGreater(len(running.matches(r"^worker/0: .* saved ")), 1)

    def test_a_killed_task_is_named_and_ends_the_job(self):
        running = self.start("--stop_timeout=3")
        tasks = self.tasks()
        os.kill(tasks["ps/0"], signal.SIGKILL)
        self.assertEqual(running.end(), 128 + signal.SIGKILL, running.lines)
        commands.wait_until_gone(tasks.values())
        self.assertEqual(len(running.matches(r"ERROR: ps/0 was killed by signal 9")), 1, running.lines)

    def test_a_connection_that_is_lost_ends_the_job(self):
        running = self.start("--stop_timeout=3")
        tasks = self.tasks()
        connections = [pid for pid, parent, _, words in processes()
                       if parent == running.process.pid and
                       "'--job_name=worker' '--task_index=1'" in words[-2]]
        self.assertEqual(len(connections), 1)
        os.kill(connections[0], signal.SIGKILL)
        self.assertEqual(running.end(), 128 + signal.SIGKILL, running.lines)
        commands.wait_until_gone(tasks.values())

    def test_a_stopped_task_is_killed_after_the_limit(self):
        running = self.start("--stop_timeout=0.2")
        tasks = self.tasks()
        os.kill(tasks["worker/1"], signal.SIGSTOP)
        running.process.send_signal(signal.SIGTERM)
        self.assertEqual(running.end(), 143, running.lines)
        commands.wait_until_gone(tasks.values())

    def test_reports_can_be_asked_for(self):
        running = self.start()
        running.process.send_signal(signal.SIGUSR1)
        for name in NAMES:
            running.wait_for_match(rf"^{name}: .* MiB resident$")
        running.process.send_signal(signal.SIGTERM)
        self.assertEqual(running.end(), 143)

    def scale(self, running, *words):
        said = running.wait_for_match(r"on, (?:(--key_file=\S+) )?(--ps_hosts=\S+)$")[0].groups()
        return self.run_dtrain("scale", *filter(None, said), *words)

    @unittest.skipUnless(HAS_TLS, "this dtrain was built without TLS")
    def test_a_key_is_made_and_shown_to_nobody(self):
        given = self.folder / "given.key"
        given.write_text("a key that the user has made")
        given.chmod(0o600)
        for flags in ([], [f"--key_file={given}"]):
            running = self.start(*flags)
            said = running.wait_for_match(r"on, (?:--key_file=(\S+) )?(--ps_hosts=\S+)$")[0]
            path = said[1] or str(given)
            self.assertEqual(os.stat(path).st_mode & 0o777, 0o600)
            with open(path, encoding="ascii") as file:
                key = file.read()
            for pid in self.tasks().values():
                for name in ("cmdline", "environ"):
                    with open(f"/proc/{pid}/{name}", encoding="utf-8", errors="replace") as file:
                        self.assertNotIn(key, file.read())
            self.assertNotIn(key, "\n".join(running.lines))
            asked = self.run_dtrain("var", "get", "global_step", said[2], "--timeout=20")
            self.assertIn("speaks TLS", asked.stderr)
            asked = self.run_dtrain("var", "get", "global_step", said[2], f"--key_file={path}")
            self.assertEqual(asked.returncode, 0, asked.stderr)
            running.process.send_signal(signal.SIGTERM)
            self.assertEqual(running.end(), 143, running.lines)
            self.assertEqual(os.path.exists(path), path == str(given))

    def test_it_moves_within_the_slots_of_the_file(self):
        running = self.start("--checkpoint_dir=run", "--set=train.mode=sync")
        first = self.tasks()
        for move, (words, names) in enumerate(((["--workers=1"], NAMES[:3]), (["--ps=1"], ("ps/0", "worker/0")),
                                               (["--ps=2", "--workers=2"], NAMES))):
            asked = self.scale(running, *words)
            self.assertEqual(asked.returncode, 0, asked.stderr + "\n".join(running.lines[-20:]))
            running.wait_for_match(r"^ps/0: .* serving from step \d+ on$", move + 1)
            program.wait_until(lambda names=names: set(self.tasks()) == set(names), lambda: "\n".join(running.lines))
        running.wait_for_match(r"^worker/1: .* ends: the job goes on with 1 worker, 2 ps$")
        last = self.tasks()
        self.assertEqual([name for name in NAMES if last[name] == first[name]], ["ps/0", "worker/0"])
        for words, said in ((["--workers=3"], "3 workers: 1 to 2 are possible, by the lists of hosts"),
                            (["--ps=3"], "3 ps: 1 to 2 are possible, by the lists of hosts")):
            asked = self.scale(running, *words)
            self.assertEqual((asked.returncode, asked.stderr), (2, f"dtrain: the job is not resized: {said}\n"))
        running.process.send_signal(signal.SIGTERM)
        self.assertEqual(running.end(), 143, running.lines)
        commands.wait_until_gone(last.values())

    def test_slots_may_be_kept_for_later(self):
        (self.folder / "hosts").write_text("127.0.0.1 slots=2\n127.0.0.2 slots=3\n")
        running = self.start("--checkpoint_dir=run", "--ps=1", "--workers=2", "--set=train.mode=sync")
        self.assertEqual(set(self.tasks()), {"ps/0", "worker/0", "worker/1"})
        asked = self.scale(running, "--ps=2", "--workers=3")
        self.assertEqual(asked.returncode, 0, asked.stderr)
        running.wait_for("from here on a step is the mean of 3 gradients of 3 workers")
        running.wait_for_match(r"^worker/2: .*step \d+ of 1000000000")
        self.assertEqual(set(self.tasks()), {*NAMES, "worker/2"})
        running.process.send_signal(signal.SIGTERM)
        self.assertEqual(running.end(), 143, running.lines)

    def test_a_host_that_lets_nobody_in_is_named(self):
        (self.folder / "own_key.pub").write_text("")
        ended = self.run_cluster("spec.json")
        self.assertEqual(ended.returncode, 128, ended.stderr)
        self.assertRegex(ended.stderr, r"ps/0: .*Permission denied")
        self.assertRegex(ended.stderr,
                         r"ERROR: \S+: the connection to 127\.0\.0\.[12] failed or was lost")


if __name__ == "__main__":
    program.main()
