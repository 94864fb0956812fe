"""Tasks whose port nobody chooses: they take a free one and say which, by a file (--ready_file), where systemd
listens (NOTIFY_SOCKET); or they take a socket that was opened for them (LISTEN_FDS)."""
import json
import os
import signal
import socket
import subprocess
import sys

import program
from program.cluster import Cluster, ClusterCase, Plan, Task, by_flags, is_listened_on

OPEN = "127.0.0.1:0"
TERMINATED = 143
IN_GRAPH = {"train.replication": "in_graph"}
# As sd_listen_fds(3) has it: sockets from descriptor 3 on, for the process that is named
HAND_OVER = """
import os, sys
descriptor, count, *words = sys.argv[1:]
os.dup2(int(descriptor), 3)
os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS=count)
os.execv(words[0], words)
"""


def has_v6():
    try:
        with socket.create_server(("::1", 0), family=socket.AF_INET6):
            return True
    except OSError:
        return False


class Ready(ClusterCase):
    def prepare(self, plan, open_jobs=("ps", "worker"), host="127.0.0.1"):
        """A cluster that is not started and has no ports."""
        cluster = Cluster(self.folder, plan)
        self.addCleanup(cluster.kill)
        for job in open_jobs:
            cluster.hosts[job] = [f"{host}:0"] * len(cluster.hosts[job])
        return cluster

    def file_of(self, cluster, name):
        return os.path.join(cluster.folder, name.replace("/", "-") + ".json")

    def start(self, cluster, name, *more):
        return cluster.start(name, f"--ready_file={self.file_of(cluster, name)}", *more)

    def wait_for_file(self, cluster, name):
        """As a scheduler does; what it says, checked."""
        path, task = self.file_of(cluster, name), cluster.tasks[name]
        cluster.wait_until(lambda: os.path.exists(path) or task.has_ended(), f"{path}")
        with open(path, encoding="utf-8") as file:
            said = json.load(file)
        self.assertEqual((said["task"], said["pid"]), (name, task.process.pid))
        self.assertTrue(said["address"].rpartition(":")[2] != "0", said)
        return said["address"]

    def start_ps(self, cluster):
        """All of them, and tells the others where they are."""
        names = [name for name in cluster.plan.names() if name.startswith("ps")]
        for name in names:
            self.start(cluster, name)
        cluster.hosts["ps"] = [self.wait_for_file(cluster, name) for name in names]

    def wait_for_work(self, cluster, task):
        """It has come so far that it answers."""
        def has_reported():
            task.process.send_signal(signal.SIGUSR1)
            return "resident" in task.text() or task.has_ended()
        cluster.wait_until(has_reported, "a task that is at work")

    def assert_files_are_gone(self, cluster):
        self.assertEqual([name for name in os.listdir(cluster.folder)
                          if name.startswith(("ps-", "worker-")) and not name.endswith(".log")], [])

    def test_a_cluster_comes_together_without_a_port_that_anybody_chose(self):
        hosts = ["127.0.0.1", "[::1]"] if has_v6() else ["127.0.0.1"]
        for host in hosts:
            with self.subTest(host=host):
                cluster = self.prepare(Plan(), host=host)
                self.start_ps(cluster)
                self.start(cluster, "worker/1")
                self.assertRegex(self.wait_for_file(cluster, "worker/1"), r"^(127|\[::1\])")
                cluster.start("worker/0")
                self.assert_codes(cluster, 0)
                self.assert_files_are_gone(cluster)

    def test_a_chief_that_reads_for_all_says_where_it_is_before_the_others_start(self):
        cluster = self.prepare(Plan(changes=IN_GRAPH))
        self.start_ps(cluster)
        self.start(cluster, "worker/0")
        cluster.hosts["worker"][0] = self.wait_for_file(cluster, "worker/0")
        cluster.start("worker/1")
        self.assert_codes(cluster, 0)

    def test_a_port_that_was_chosen_is_told_as_it_is_in_the_list(self):
        cluster = self.prepare(Plan(ps=1, workers=1), open_jobs=())
        path = self.file_of(cluster, "ps/0")
        with open(path, "w", encoding="utf-8") as left:
            left.write("of a life before")
        self.start(cluster, "ps/0", "--bind=0.0.0.0", "--insecure")
        cluster.wait_until(lambda: os.path.exists(path) and cluster.read(path)[:1] == "{", path)
        self.assertEqual(self.wait_for_file(cluster, "ps/0"), cluster.address("ps/0"))
        cluster.tasks["ps/0"].process.send_signal(signal.SIGTERM)
        self.assert_codes(cluster, TERMINATED)
        self.assert_files_are_gone(cluster)

    def test_a_file_that_another_task_has_written_since_is_left_to_it(self):
        cluster = self.prepare(Plan(ps=1, workers=1))
        self.start_ps(cluster)
        self.wait_for_work(cluster, cluster.tasks["ps/0"])
        path = self.file_of(cluster, "ps/0")
        with open(path + ".new", "w", encoding="utf-8") as file:
            file.write("another's")
        os.replace(path + ".new", path)
        cluster.tasks["ps/0"].process.send_signal(signal.SIGTERM)
        self.assert_codes(cluster, TERMINATED)
        self.assertEqual(cluster.read(path), "another's")

    def test_a_file_that_cannot_be_written_is_told_before_anything_else(self):
        cluster = self.prepare(Plan(ps=1, workers=1), open_jobs=())
        os.mkdir(self.file_of(cluster, "worker/0") + ".tmp")  # in the way of its temporary name
        worker = self.start(cluster, "worker/0")
        cluster.wait_until(worker.has_ended, "an error")
        self.assertEqual(worker.code(), program.BAD_HOST, worker.text())
        self.assert_says(cluster, "worker/0", r"dtrain: --ready_file: \S+\.tmp: Is a directory\n$")

    def test_systemd_hears_when_a_task_listens(self):
        for name in ("\0dtrain-test-%d" % os.getpid(), str(self.folder / "notify")):
            with self.subTest(name=name), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as heard:
                heard.bind(name)
                heard.settimeout(program.LIMIT_S)
                cluster = self.prepare(Plan(ps=1, workers=1), open_jobs=())
                cluster.plan.told = lambda *of: (
                    by_flags(*of)[0], {"NOTIFY_SOCKET": name.replace("\0", "@")})
                ps = cluster.start("ps/0")
                self.assertEqual(heard.recv(100), b"READY=1")
                self.assertTrue(is_listened_on(cluster.address("ps/0")))
                ps.process.send_signal(signal.SIGTERM)
                self.assert_codes(cluster, TERMINATED)

    def test_nobody_who_hears_is_no_reason_not_to_train(self):
        env = {"NOTIFY_SOCKET": "/nowhere/notify"}
        cluster = self.prepare(Plan(), open_jobs=())
        alone = Task(cluster.folder, "alone", ["spec.json"], env)
        self.addCleanup(alone.kill)
        program.wait_until(alone.has_ended, alone.text)
        self.assertEqual(alone.code(), 0, alone.text())
        self.assertIn("cannot say that it is ready: NOTIFY_SOCKET=/nowhere/notify: No such file",
                      alone.text())

    def hand_over(self, cluster, listening, count):
        words, env = by_flags("ps/0", cluster.hosts, [])
        descriptor = listening.fileno()
        return subprocess.Popen(
            [sys.executable, "-c", HAND_OVER, str(descriptor), str(count), program.BINARY, *words],
            cwd=cluster.folder, env=program.environment(env), pass_fds=[descriptor],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def test_a_socket_that_systemd_has_opened_is_taken(self):
        cluster = self.prepare(Plan(ps=1, workers=1), open_jobs=())
        with socket.create_server(("127.0.0.1", 0)) as listening:
            cluster.hosts["ps"] = ["127.0.0.1:%d" % listening.getsockname()[1]]
            worker = cluster.start("worker/0")  # before the ps is there it is heard, and waits
            ps = self.hand_over(cluster, listening, 1)
        self.addCleanup(ps.kill)
        said = ps.communicate(timeout=program.LIMIT_S)[0]
        self.assertEqual(ps.returncode, 0, said)
        self.assert_codes(cluster, 0)
        self.assertNotIn("refused", worker.text())

    def test_of_several_sockets_one_has_to_be_named(self):
        cluster = self.prepare(Plan(ps=1, workers=1), open_jobs=())
        with socket.create_server(("127.0.0.1", 0)) as listening:
            ps = self.hand_over(cluster, listening, 2)
        said = ps.communicate(timeout=program.LIMIT_S)[0]
        self.assertEqual((ps.returncode, said), (
            program.BAD_INPUT, "dtrain: LISTEN_FDS=2 in the environment: a task has one socket; "
                               "which one is said by --bind=fd:N, from fd:3 on\n"))


if __name__ == "__main__":
    program.main()
