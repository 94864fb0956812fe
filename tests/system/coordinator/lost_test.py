"""Places that are lost while the coordinator is hard to reach: tasks find etcd behind a gate, which a test closes for
some of what they ask."""
import base64
import http.server
import json
import signal
import threading
import urllib.error
import urllib.parse
import urllib.request

import program
from program import LIMIT_S, named
from program.cluster import ENDLESS

LOST_PEER = 128
CLAIM, LEASE, LEAVE = "/v3/kv/txn", "/v3/lease/grant", "/v3/lease/revoke"


class Gate(http.server.ThreadingHTTPServer):
    """Passes on what etcd is asked and answers."""
    daemon_threads = True

    def __init__(self, etcd):
        self.etcd = etcd
        self.is_closed = lambda path: False
        self.may_leave = threading.Event()
        self.may_leave.set()
        self.asked, self.leases = [], []  # paths; those that were given
        super().__init__(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, *_):
        """Who has asked was killed."""

    def claims(self):
        return self.asked.count(CLAIM)

    def pass_on(self, path, body):
        """(status, answer)"""
        self.asked.append(path)
        if self.is_closed(path):
            return 503, b"{}"
        if path == LEAVE:
            self.may_leave.wait(LIMIT_S)
        try:
            with urllib.request.urlopen(f"{self.etcd}{path}", body, timeout=LIMIT_S) as answer:
                said = answer.read()
        except urllib.error.HTTPError as refusal:
            return refusal.code, refusal.read()
        if path == LEASE:
            self.leases.append(json.loads(said)["ID"])
        return 200, said


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        status, said = self.server.pass_on(self.path, self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(status)
        self.send_header("Content-Length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)

    def log_message(self, *_):
        pass


class Lost(named.Etcd, named.NamedCase):
    def setUp(self):
        super().setUp()
        self.etcd = self.server_url.replace("etcd://", "http://")
        self.gate = Gate(self.etcd)
        self.addCleanup(self.gate.server_close)
        self.addCleanup(self.gate.shutdown)
        self.folder_there = urllib.parse.urlsplit(f"{self.url}/small/").path.encode()

    def ask_etcd(self, what, **asks):
        with urllib.request.urlopen(f"{self.etcd}/v3/{what}", json.dumps(asks).encode(), timeout=LIMIT_S) as answer:
            return json.loads(answer.read())

    def start_behind_gate(self, *more):
        """All tasks, of which one worker asks the gate; its name here and in the cluster."""
        self.write_idle_spec()
        for number, job in enumerate(("ps", "ps", "worker")):
            self.start(f"{job}-{number}", job)
        self.url = self.url.replace(self.etcd.partition("//")[2], f"127.0.0.1:{self.gate.server_port}")
        self.start("gated", "worker", *more)
        self.wait_for_places()
        task = next(task for task in named.TASKS if self.holder(task) == "gated")
        self.key = self.key_of(task)
        program.wait_until(lambda: list(map(self.has_joined, self.places().values())) == [True] * 4, self.log)
        return task

    @staticmethod
    def has_joined(value):
        return base64.b64decode(value).endswith(b" joined")

    def value(self):
        """At its key; None: nobody has it."""
        found = self.ask_etcd("kv/range", key=self.key).get("kvs")
        return found[0]["value"] if found else None

    def lose(self):
        """Its lease, as one that ran out."""
        self.ask_etcd("lease/revoke", ID=self.gate.leases[-1])

    def test_a_claim_without_an_answer_is_made_again(self):
        task = self.start_behind_gate()
        value, claims = self.value(), self.gate.claims()
        self.gate.is_closed = lambda path: path == CLAIM
        self.lose()
        program.wait_until(lambda: self.gate.claims() > claims, self.log)
        self.assertIsNone(self.value())
        self.gate.is_closed = lambda path: False
        program.wait_until(lambda: self.value() == value, self.log)
        self.wait_for("gated", f"the place of {task} was lost at the coordinator, and is taken again")

    def places(self):
        """What stands in the cluster's folder, by key, but for what a task claims beside a place that it had lost."""
        end = self.folder_there[:-1] + bytes([self.folder_there[-1] + 1])
        self.all = {"key": base64.b64encode(self.folder_there).decode(), "range_end": base64.b64encode(end).decode()}
        return {one["key"]: one["value"] for one in self.ask_etcd("kv/range", **self.all).get("kvs", [])
                if not base64.b64decode(one["key"]).endswith(b".held")}

    def test_what_somebody_has_removed_is_written_again(self):
        self.start_behind_gate()
        before = self.places()
        self.assertEqual(len(before), len(named.TASKS))
        self.ask_etcd("kv/deleterange", **self.all)
        program.wait_until(lambda: self.places() == before, self.log)
        for name in self.processes:
            self.assertNotIn("was lost", self.text(name))

    def leave_behind(self, value):
        """At its key, without its lease."""
        self.ask_etcd("kv/put", key=self.key, value=value)
        self.lose()

    def test_what_it_left_there_itself_is_waited_for(self):
        task = self.start_behind_gate()
        value, claims = self.value(), self.gate.claims()
        self.leave_behind(value)
        program.wait_until(lambda: self.gate.claims() > claims, self.log)
        self.ask_etcd("kv/deleterange", key=self.key)
        program.wait_until(lambda: self.value() == value, self.log)
        self.wait_for("gated", f"the place of {task} was lost at the coordinator, and is taken again")
        self.assertNotIn("to another one", self.text("gated"))

    def leave_another_there(self, more=b""):
        self.leave_behind(base64.b64encode(b"127.0.0.1:1 ps=2,worker=2" + more).decode())

    def test_whose_place_another_one_has_ends_and_the_others_go_on(self):
        task = self.start_behind_gate()
        self.leave_another_there(b" joined")
        self.assertEqual(self.ended("gated"), LOST_PEER, self.log())
        self.assertIn(f"the place of {task} was lost at the coordinator to another one", self.text("gated"))
        self.assertIn("this task has lost its place at the coordinator to another one", self.text("gated"))
        del self.processes["gated"]
        self.ask_etcd("kv/deleterange", key=self.key)
        self.start("next", "worker")
        self.wait_for("next", f" {task}: found all tasks")
        self.check_all_run()

    def test_whose_place_a_task_has_that_has_not_joined_waits_for_it(self):
        task = self.start_behind_gate()
        value, claims = self.value(), self.gate.claims()
        self.leave_another_there()
        program.wait_until(lambda: self.gate.claims() > claims, self.log)
        self.ask_etcd("kv/deleterange", key=self.key)
        program.wait_until(lambda: self.value() == value, self.log)
        self.wait_for("gated", f"the place of {task} was lost at the coordinator, and is taken again")
        self.check_all_run()

    def key_of(self, task):
        return base64.b64encode(self.folder_there + task.encode()).decode()

    def test_who_took_the_place_of_a_task_that_lives_gives_it_back_and_takes_the_one_that_is_free(self):
        task = self.start_behind_gate()
        value, other = self.value(), {"worker/0": "worker/1", "worker/1": "worker/0"}[task]
        self.processes.pop(self.holder(other)).kill()
        program.wait_until(lambda: self.key_of(other) not in self.places(), self.log)
        self.ask_etcd("kv/put", key=self.key_of(other), value=base64.b64encode(b"nobody").decode())
        self.gate.is_closed = lambda path: path == CLAIM
        self.lose()
        self.url = self.url.replace(f"127.0.0.1:{self.gate.server_port}", self.etcd.partition("//")[2])
        self.start("new", "worker")
        program.wait_until(lambda: self.value() not in (None, value), self.log)
        self.ask_etcd("kv/deleterange", key=self.key_of(other))
        self.wait_for("new", f"waits for {other}")
        self.gate.is_closed = lambda path: False
        self.wait_for("new", f" {other}: found all tasks")
        program.wait_until(lambda: self.value() == value, self.log)
        self.check_all_run()

    def check_all_run(self):
        for name, process in self.processes.items():
            self.assertIsNone(process.poll(), self.text(name))

    def test_who_comes_when_keys_were_removed_takes_no_place_of_a_task_that_lives(self):
        self.start_behind_gate()
        before = self.places()
        self.gate.is_closed = lambda path: path == CLAIM  # so that the newcomer is the first to claim
        self.ask_etcd("kv/deleterange", **self.all)
        self.start("new", "worker")
        self.wait_for("new", "cluster small: ")
        self.gate.is_closed = lambda path: False
        program.wait_until(lambda: self.places() == before, self.log)
        self.wait_for("new", "all 2 places of a worker are taken")
        self.check_all_run()

    def test_who_comes_after_a_move_when_keys_were_removed_takes_no_place_that_is_none(self):
        self.write_spec(last_step=ENDLESS, checkpoint_dir="run")
        self.start_all()
        self.wait_for_places()
        self.wait_for_steps(self.holder("worker/0"), 1)
        left = self.holder("worker/1")
        self.answer(self.ask("scale", "--workers=1"))
        self.assertEqual(self.ended(left), 0, self.log())
        del self.processes[left]
        program.wait_until(lambda: len([1 for value in self.places().values() if b" resizes=1" in base64.b64decode(value)]) == 3,
                           self.log)
        before = set(self.places())
        self.ask_etcd("kv/deleterange", **self.all)
        self.start("spare", "worker")
        program.wait_until(lambda: set(self.places()) >= before, self.log)
        self.wait_for("spare", "all 1 places of a worker are taken")
        self.assertNotIn("found all", self.text("spare"))
        self.check_all_run()

    def test_a_signal_while_a_place_is_left_leaves_the_file_of_another_life(self):
        self.start_behind_gate("--ready_file=ready.json")
        ready = self.folder / "ready.json"
        program.wait_until(ready.exists, self.log)
        (self.folder / "another.json").hardlink_to(ready)  # a new file often has the number of one that went
        self.addCleanup(self.gate.may_leave.set)
        self.gate.may_leave.clear()
        gated = self.processes["gated"]
        gated.terminate()
        program.wait_until(lambda: LEAVE in self.gate.asked, self.log)
        self.assertFalse(ready.exists())
        (self.folder / "another.json").rename(ready)
        gated.terminate()
        self.assertEqual(self.ended("gated"), 128 + signal.SIGTERM, self.log())
        self.assertTrue(ready.exists())


class Wiped(named.ZooKeeper, named.NamedCase):
    def test_a_coordinator_that_has_lost_everything_is_joined_anew(self):
        self.write_idle_spec()
        self.start_all()
        self.wait_for_places()
        self.server.kill()
        self.server.wait()
        self.spawn_empty()
        for task in named.TASKS:
            self.wait_for(self.holder(task), f"the place of {task} was lost at the coordinator, and is taken again")
        self.start("more", "worker")
        self.wait_for("more", "all 2 places of a worker are taken")


if __name__ == "__main__":
    program.main()
