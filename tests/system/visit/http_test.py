"""--http: what a task says of itself, whoever asks and however wrongly."""
import contextlib
import http.client
import json
import os
import re
import signal
import socket

import program
from program import asking, memory
from program.cluster import Cluster, ClusterCase, ENDLESS, Plan, Task

VERSION = "libmicrohttpd    not built in"
SAMPLE = re.compile(r'dtrain_[a-z0-9_]+\{task="(ps|worker)/\d+"(,[a-z]+="[^"]*")*\} (-?[0-9.e+-]+|NaN|[+-]Inf)')
FAMILY = re.compile(r"# TYPE (dtrain_[a-z0-9_]+) (counter|gauge|histogram)")
SLOW = 16
AT_ONCE = 9  # clients of one host: more would be refused
LINES_MAX = 60  # of a task's log
PATHS = ["/metrics", "/", "/healthz", "/readyz", "/status.json", "/logs.json", "/placement.json"]
SEEDS = range(160 // program.SLOWER)
# What no client should send
WRONG = [
    b"", b"\r\n", b"\0" * 1000, b"GET", b"GET /metrics", b"GET /metrics HTTP/1.1\r\nHost:", b"GET / HTTP/9.9\r\n\r\n",
    b"GET /" + b"a" * 100000 + b" HTTP/1.1\r\nHost: a\r\n\r\n",
    b"GET /metrics HTTP/1.1\r\n" + b"".join(b"X-%d: %s\r\n" % (i, b"y" * 100) for i in range(2000)) + b"\r\n",
    b"POST /metrics HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999\r\n\r\n" + b"x" * 1000,
    b"GET /metrics HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n" + b"x" * 100000,
    b"GET /metrics HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n",
    b"GET /metrics HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nfffffffff\r\n" + b"x" * 100000,
    b"DELETE /status.json HTTP/1.1\r\nHost: a\r\n\r\n", b"GET /../../etc/passwd HTTP/1.1\r\nHost: a\r\n\r\n",
    b"GET /%00%ff HTTP/1.1\r\nHost: a\r\n\r\n", b"HELLO \x01\x02\x03", b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n" * 50,
]


def is_built_in():
    return VERSION not in program.run(["version"], None).stdout


class Http(memory.Grows, ClusterCase):
    def setUp(self):
        super().setUp()
        if not is_built_in():
            self.skipTest("this build has no libmicrohttpd")

    def begin(self, plan):
        """An endless cluster, each task of which answers; ports by name."""
        cluster = Cluster(self.folder, Plan(ps=plan.ps, workers=plan.workers, changes={
            **plan.changes, "train.last_step": ENDLESS, "train.log_every_steps": ENDLESS}))
        self.addCleanup(cluster.kill)
        for name in plan.names():
            cluster.start(name, "--http=localhost:0", f"--ready_file={name.replace('/', '-')}.json")
        return cluster, {name: self.told(cluster, name)["http_port"] for name in cluster.tasks}

    def told(self, cluster, name):
        """By its --ready_file"""
        path = os.path.join(cluster.folder, name.replace("/", "-") + ".json")
        cluster.wait_until(lambda: os.path.exists(path) or cluster.tasks[name].has_ended(), path)
        with open(path, encoding="utf-8") as file:
            return json.load(file)

    def get(self, port, path, method="GET"):
        connection = http.client.HTTPConnection("localhost", port, timeout=program.LIMIT_S)
        with contextlib.closing(connection):
            connection.request(method, path)
            answer = connection.getresponse()
            return answer.status, answer.read().decode(), answer.headers

    def wait_ready(self, cluster, ports):
        for port in ports.values():
            cluster.wait_until(lambda p=port: self.get(p, "/readyz")[0] == 200, "a task that is ready")

    def wait_status(self, cluster, port, is_so):
        cluster.wait_until(lambda: is_so({task["task"]: task for task in json.loads(
            self.get(port, "/status.json")[1])["tasks"]}), "a status")

    def end(self, cluster):
        cluster.tasks["ps/0"].process.send_signal(signal.SIGTERM)
        self.assert_codes(cluster, 143)

    def check_metrics(self, text):
        """As Prometheus reads it: each family once, said before its samples."""
        families, now = set(), None
        for line in text.splitlines():
            found = FAMILY.fullmatch(line)
            if found:
                now = found.group(1)
                self.assertNotIn(now, families)
                families.add(now)
                self.assertEqual(now.endswith("_total"), found.group(2) == "counter")
            elif not line.startswith("# HELP "):
                self.assertRegex(line, rf"\A{SAMPLE.pattern}\Z")
                self.assertTrue(now and line.startswith(now), line)
        self.assertIn("dtrain_global_step", families)

    def test_every_task_says_what_it_counts(self):
        cluster, ports = self.begin(Plan())
        self.wait_ready(cluster, ports)
        for name, port in ports.items():
            with self.subTest(name):
                status, text, headers = self.get(port, "/metrics")
                self.assertEqual(status, 200)
                self.assertTrue(headers["Content-Type"].startswith("text/plain; version=0.0.4"))
                self.check_metrics(text)
                self.assertIn(f'task="{name}"', text)
                self.assertEqual(self.get(port, "/healthz")[:2], (200, "ok\n"))
                self.assertEqual(self.get(port, "/nothing")[0], 404)
                status, page, headers = self.get(port, "/")
                self.assertEqual((status, headers["Content-Type"]), (200, "text/html; charset=utf-8"))
                self.assertTrue(page.startswith("<!doctype html>") and page.endswith("</html>\n"))
                self.assertNotRegex(page, r'(src|href)="(https?:)?//')  # nothing from outside
                self.assertEqual(self.get(port, "/metrics", "DELETE")[0], 405)
                self.assertEqual(self.get(port, "/metrics", "HEAD")[:2], (200, ""))
        self.end(cluster)

    def test_a_process_that_trains_alone_tells_its_port(self):
        cluster = Cluster(self.folder, Plan(ps=0, workers=0, changes={"train.last_step": ENDLESS, "train.log_every_steps": ENDLESS}))
        self.addCleanup(cluster.kill)
        task = Task(cluster.folder, "alone", ["--http=localhost:0", "--ready_file=alone.json", "spec.json"])
        cluster.tasks["alone"] = task
        said = self.told(cluster, "alone")
        port = said.pop("http_port")
        self.assertEqual(said, {"task": "worker/0", "pid": task.process.pid})
        self.wait_ready(cluster, {"worker/0": port})
        cluster.wait_until(lambda: 'task="worker/0"' in self.get(port, "/metrics")[1], "a metric of the worker")

    def test_the_chief_hears_of_all_and_ps_0_of_the_workers(self):
        cluster, ports = self.begin(Plan())
        all_tasks = set(cluster.plan.names())
        self.wait_status(cluster, ports["worker/0"], lambda tasks: set(tasks) == all_tasks and all(
            tasks[name]["counters"].get("steps_total", 0) > 1 for name in ("worker/0", "worker/1")))
        self.wait_status(cluster, ports["ps/0"], lambda tasks: set(tasks) == all_tasks - {"ps/1"})
        for name in "worker/0", "ps/0":  # which does not hear of ps/1, and misses nobody
            self.assertNotIn("nothing is known of", self.get(ports[name], "/status.json")[1])
        self.wait_status(cluster, ports["worker/1"], lambda tasks: set(tasks) == {"worker/1"})
        self.end(cluster)

    def send_all(self, port, wrongs):
        """Each by a client of its own, who waits until it is hung up on."""
        clients = [socket.create_connection(("localhost", port), timeout=program.LIMIT_S) for _ in wrongs]
        for client, wrong in zip(clients, wrongs):
            with contextlib.suppress(OSError):  # it hung up
                client.sendall(wrong)
                client.shutdown(socket.SHUT_WR)
        for client in clients:
            with client, contextlib.suppress(OSError):
                while client.recv(65536):
                    pass

    def wait_for_metrics(self, cluster, port):
        """Once those who were there before are gone."""
        answers = []

        def answers_again():
            with contextlib.suppress(OSError, http.client.HTTPException):
                answers.append(self.get(port, "/metrics")[1])
            return answers
        cluster.wait_until(answers_again, "an answer")
        return answers[0]

    def test_nothing_that_a_client_sends_hurts(self):
        cluster, ports = self.begin(Plan(ps=1, workers=1))
        self.wait_ready(cluster, ports)
        held = []
        for port in ports.values():
            for first in range(0, len(WRONG), AT_ONCE):
                self.send_all(port, WRONG[first:first + AT_ONCE])
            for _ in range(100):  # more than it takes, who say nothing
                held.append(socket.create_connection(("localhost", port), timeout=program.LIMIT_S))
            for one in held:
                one.close()
            held.clear()
            self.check_metrics(self.wait_for_metrics(cluster, port))
        for task in cluster.tasks.values():
            self.assertLess(len(task.text().splitlines()), LINES_MAX, cluster.story())
        self.end(cluster)

    def step(self, port):
        return float(re.search(r"^dtrain_global_step\S* (\S+)$", self.get(port, "/metrics")[1], re.M)[1])

    def test_each_client_is_answered_or_hung_up_on_and_training_goes_on(self):
        cluster, ports = self.begin(Plan(ps=1, workers=1))
        self.wait_ready(cluster, ports)
        for name, port in ports.items():
            task = cluster.tasks[name]
            step, before = self.step(port), memory.resident_mb(task)
            attack = asking.Attack(port, SEEDS, PATHS, program.LIMIT_S)
            self.assertEqual(attack.failures, [], cluster.story())
            self.assertGreater(attack.answered, len(SEEDS) // 4)
            self.check_metrics(self.wait_for_metrics(cluster, port))
            cluster.wait_until(lambda p=port, s=step: self.step(p) > s, "steps")
            self.assertLess(len(task.text().splitlines()), LINES_MAX, cluster.story())
            self.assert_grown_little(task, before)
        self.end(cluster)

    def test_who_says_a_byte_now_and_then_keeps_no_place(self):
        """As many as one host may be: until they are hung up on, nobody else is heard."""
        _, ports = self.begin(Plan(ps=1, workers=1))
        slow = [socket.create_connection(("localhost", ports["ps/0"]), program.LIMIT_S) for _ in range(SLOW)]
        for connection in slow:
            self.addCleanup(connection.close)

        def are_gone():
            for connection in list(slow):
                try:
                    connection.send(b"x")
                except ConnectionError:
                    slow.remove(connection)
            return not slow
        program.wait_until(are_gone, lambda: "all of them to be hung up on")
        self.assertEqual(self.get(ports["ps/0"], "/healthz")[0], 200)

    def test_a_port_that_is_taken_and_words_that_are_none_are_told(self):
        with socket.create_server(("127.0.0.1", 0)) as other:
            port = other.getsockname()[1]
            for flag, text in [(f"127.0.0.1:{port}", f"Address already in use by pid {os.getpid()} ("), ("no", "neither PORT nor HOST:PORT"),
                               ("70000", "neither PORT nor HOST:PORT"), (":", "neither PORT nor HOST:PORT"),
                               ("-1", "neither PORT nor HOST:PORT")]:
                with self.subTest(flag):
                    cluster = Cluster(self.folder, Plan(ps=1, workers=1))
                    self.addCleanup(cluster.kill)
                    task = cluster.start("ps/0", f"--http={flag}")
                    cluster.wait_until(task.has_ended, "its end")
                    self.assertRegex(task.text(), f"--http: .*{re.escape(text)}")
                    self.assertIn(task.code(), (program.BAD_HOST, program.BAD_INPUT))


if __name__ == "__main__":
    program.main()
