"""Each kind of message, with numbers at and outside the ends of its ranges, said to real tasks: a ps that waits, one that
serves and saves again and again, by a worker and by visitors, ps whose job is resized meanwhile, the port of a chief that feeds others, a worker and a chief whose ps is a
false one.

Kinds, fields and ranges are those of net/messages.def: what is added there is tried by itself. Nobody may
crash, take memory for what was announced only, fill its log, or wait for ever; the job continues, and its checkpoint restores.
"""
import itertools
import os
import re
import resource
import signal
import socket
import threading

import garbage_test
import program
from program import memory, wire
from program.cluster import ENDLESS, Cluster, Plan, is_listened_on
from program.wire import greeting

LOG_BYTES_MAX = 256 << 10  # of a task that hears thousands of lies
LARGEST = 2 ** 64 - 1
RARELY = 31
RARE = 50000  # steps
STRANGERS_MAX = 1024  # of core/cluster/runner/task.h
DESCRIPTORS = 4 * STRANGERS_MAX
SOME = 7  # tests/core/cluster/role/test_breaches.c says all of them, to one role
EVER = (1, 2, 7, 2 ** 31, 2 ** 32 - 1, 2 ** 62, 2 ** 62 + 2, 2 ** 63, LARGEST)
OTHERS = {"generation": (0, LARGEST), "task": (2 ** 31, 2 ** 32 - 1), "job": (0, 2, 2 ** 32 - 1),
          "offset": (1, 2 ** 63, LARGEST), "length": (1, 64, 2 ** 40, 2 ** 63, LARGEST)}
BODIES = (b"{}", bytes(8), bytes(24), b"\xff" * 24, b"\xff" * 56, b"[" * 5000, bytes(4096))
# They end a job or a visit by what they mean, whoever says them
ENDS_OF_WORKER = {"SETUP", "STOP", "VERDICT"}
ENDS_OF_PS = {"REFUSED", "VERDICT", "WELCOME", "RESIZE"}
ENDS_OF_GUEST = {"LEAVE"}  # its visit: whoever says it is gone, and answered no more


def number_of(text):
    """What is found of it: a code of net/message.h, or a number."""
    found = re.search(r"\b([A-Z]+_[A-Z_]+)\b", text)
    if found and found.group(1) in wire.CODES:
        return wire.CODES[found.group(1)]
    return None


def lies(kind):
    """Headers, and bodies."""
    for field, name in wire.FIELDS_OF[kind]:
        if not field:
            continue
        end = number_of(wire.RANGES[name])
        for number in sorted({*EVER, *([end - 1, end, end + 1, 2 * end] if end else ())}):
            if number > 0:
                yield {field: number}, b""
    for field, numbers in OTHERS.items():
        for number in numbers:
            yield {field: number}, b""
    for body in BODIES:
        yield {}, body


def all_lies(left_out):
    for kind in sorted(set(wire.KINDS) - left_out):
        for header, body in lies(kind):
            yield kind, header, body
    for kind in (4711, 2 ** 32 - 1):
        yield kind, {}, b"{}"


class Breaches(memory.Grows, garbage_test.Strangers):
    def assert_unharmed(self, cluster, grown_from=None):
        self.assertFalse(any(t.has_ended() for t in cluster.tasks.values()), cluster.story())
        for task in cluster.tasks.values():
            self.assertLess(os.path.getsize(task.path), LOG_BYTES_MAX, task.name)
            if grown_from:
                self.assert_grown_little(task, grown_from[task.name])

    def sizes(self, cluster):
        return {name: memory.resident_mb(task) for name, task in cluster.tasks.items()}

    def lie_as_guest(self, cluster, name, left_out, turn):
        """Instead of worker/1, whose connection is made anew where it was hung up on."""
        life = itertools.count(1)
        guest = None
        for kind, header, body in itertools.islice(all_lies(left_out), turn, None, SOME):
            try:
                guest = guest or self.be_guest(cluster, name, next(life))
                guest.say(kind, body, **header)
                is_left = "length" in header or kind in ENDS_OF_GUEST or not guest.is_heard()
            except ConnectionError:
                is_left = True
            if is_left and guest:
                guest.connection.close()
                guest = None
            self.assertFalse(cluster.tasks[name].has_ended(), f"{kind} {header}\n{cluster.story()}")
        if guest:
            guest.connection.close()

    def lie_as_visitor(self, cluster, name):
        """What no visitor says ends the visit; whoever asks on is answered."""
        visitor = None
        for kind, header, body in all_lies(set()):
            try:
                if not visitor:
                    visitor = self.call(cluster.address(name))
                    visitor.send("HELLO", wire.greeting_of_visitor())
                    self.assertEqual(visitor.hear().kind, "WELCOME")
                visitor.send(kind, body, **header)
                visitor.send("ASK", b'{"do": "list"}', number=LARGEST)
                heard = visitor.hear()
                while heard and "length" not in header and heard.values.get("number") != LARGEST:
                    heard = visitor.hear()
                is_over = not heard or "length" in header
            except ConnectionError:
                is_over = True
            if is_over and visitor:
                visitor.close()
                visitor = None
            self.assertFalse(cluster.tasks[name].has_ended(), f"{kind} {header}\n{cluster.story()}")
        if visitor:
            visitor.close()

    def end_and_restore(self, cluster):
        """The true worker comes, all go on, and what they save begins another run."""
        cluster.start("worker/1")
        cluster.wait_for("worker/1", "step ")
        cluster.tasks["ps/0"].process.send_signal(signal.SIGTERM)
        self.assert_codes(cluster, garbage_test.TERMINATED)
        self.restore()

    def restore(self):
        self.start(Plan(changes={**self.changes, "train.mode": "sync", "train.last_step": ENDLESS}),
                   lambda c: re.search("begins from(.|\n)*step ", c.tasks["worker/0"].text()))

    def test_a_ps_that_serves(self):
        self.changes = {**garbage_test.Garbage.changes, "train.save_checkpoint_secs": 0.1,
                        "train.checkpoint_dir": os.path.join(str(self.folder), "kept")}
        cluster = self.start_half(["--stop_timeout=60"], last_step=ENDLESS)
        before = self.sizes(cluster)
        self.lie_as_visitor(cluster, "ps/0")
        self.lie_as_visitor(cluster, "ps/1")
        self.lie_as_guest(cluster, "ps/0", ENDS_OF_WORKER, 0)
        self.lie_as_guest(cluster, "ps/1", ENDS_OF_WORKER | {"LEADS"}, 1)  # of terms it hears by workers
        self.assert_unharmed(cluster, before)
        self.end_and_restore(cluster)

    def test_a_ps_that_waits_for_its_chief(self):
        cluster = self.start(Plan(absent=["ps/1", "worker/0", "worker/1"]),
                             lambda c: is_listened_on(c.address("ps/0")) or c.tasks["ps/0"].has_ended())
        before = self.sizes(cluster)
        connection = None
        for life, (kind, header, body) in enumerate(all_lies(ENDS_OF_WORKER | {"LEADS"}), 1):
            connection = connection or self.welcome(cluster, "ps/0", life)
            try:
                connection.send(kind, body, **header)
            except ConnectionError:
                connection = None
            if connection and ("length" in header or life % 20 == 0):
                connection.close()
                connection = None
        self.assert_unharmed(cluster, before)

    def lie_on(self, cluster, name, is_over, failures):
        """As worker/1, over one connection after the other. failures: where a thread's are kept"""
        left = itertools.cycle(all_lies(ENDS_OF_WORKER | ENDS_OF_GUEST | {"LEADS"}))
        for life in itertools.count(1):
            try:
                with wire.Connection(cluster.address(name), program.LIMIT_S) as guest:
                    guest.send("HELLO", greeting(cluster.hosts, "worker", garbage_test.WORKER, incarnation=f"{life:x}"))
                    state = guest.hear_kind("STATE")
                    for kind, header, body in itertools.islice(left, SOME if state else 0):
                        guest.send(kind, body, **{"generation": state.values["generation"], "task": garbage_test.WORKER, **header})
            except ConnectionError:
                pass  # it hung up
            except Exception as error:  # one that never answers, too
                failures.append(f"{name}: {error!r}")
                return
            if is_over.wait(program.LOOK_S):
                return

    def test_ps_whose_job_is_resized_meanwhile(self):
        self.changes = {**garbage_test.Garbage.changes, "train.checkpoint_dir": os.path.join(str(self.folder), "kept")}
        changes = {**self.changes, "train.mode": "async", "train.last_step": ENDLESS, "train.log_every_steps": RARE}
        cluster = self.start(Plan(changes=changes, absent=["worker/1"]), lambda c: "step 1 of" in c.tasks["worker/0"].text())
        is_over, failures = threading.Event(), []
        liars = [threading.Thread(target=self.lie_on, args=(cluster, name, is_over, failures)) for name in ("ps/0", "ps/1")]
        for liar in liars:
            liar.start()
        try:
            cluster.wait_until(lambda: re.search("worker/1(, which)? sent ", cluster.tasks["ps/0"].text()), "a lie that ps/0 has found out")
            asked = program.run(["scale", "--workers=1", f"--ps_hosts={','.join(cluster.hosts['ps'])}"], self.folder)
            self.assertRegex(asked.stdout, "^resized to 1 worker, 2 ps at step ", asked.stderr + cluster.story())
            cluster.wait_until(lambda: re.search(r"resized to .*\n(.|\n)*step \d+ of", cluster.tasks["worker/0"].text()),
                               "steps of the smaller job")
        finally:
            is_over.set()
            for liar in liars:
                liar.join()
        self.assertEqual(failures, [], cluster.story())
        self.assert_unharmed(cluster)
        cluster.tasks["ps/0"].process.send_signal(signal.SIGTERM)
        self.assert_codes(cluster, garbage_test.TERMINATED)
        self.restore()

    def test_a_chief_that_feeds_others(self):
        self.changes = {**garbage_test.Garbage.changes, "train.replication": "in_graph",
                        "train.checkpoint_dir": os.path.join(str(self.folder), "kept")}
        cluster = self.start_half(last_step=10)
        before = self.sizes(cluster)
        for life, (kind, header, body) in enumerate(all_lies(set()), 1):
            caller = self.call(cluster.address("worker/0"))
            try:
                if life % 2:
                    caller.send("HELLO", greeting(cluster.hosts, "worker", garbage_test.WORKER))
                caller.send(kind, body, **header)
                if "length" not in header and kind != "HELLO":
                    caller.hear()
            except ConnectionError:
                pass
            caller.close()
        self.assert_unharmed(cluster, before)
        self.assertRegex(cluster.tasks["worker/0"].text(), "hangs up on .*, which |refused .*: sent ")
        cluster.start("worker/1")
        self.assert_codes(cluster, 0)
        self.restore()

    def test_who_is_silent_at_a_chief_that_feeds_others_keeps_nobody_out(self):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if hard != resource.RLIM_INFINITY and hard < DESCRIPTORS:
            self.skipTest("too few descriptors")
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, DESCRIPTORS), hard))
        self.changes = {**garbage_test.Garbage.changes, "train.replication": "in_graph"}
        cluster = self.start_half(last_step=10)
        address = cluster.address("worker/0")
        silent = [self.call(address) for _ in range(STRANGERS_MAX + 9)]
        silent[-1].send("HELLO", greeting(cluster.hosts, "worker", garbage_test.WORKER))
        self.assertEqual(silent[-1].hear().kind, "WELCOME")
        first = silent[0].hear()
        if first:  # else it took longer than a greeting may, and it went without a word
            self.assertEqual((first.kind, first.text()),
                             ("REFUSED", "it sent nothing, and its place is needed for others"))
        silent.pop().close()
        cluster.start("worker/1")
        self.assert_codes(cluster, 0)


class OfPs(garbage_test.Strangers):
    """What a false ps says to a worker that has taken it for its own."""

    def lie_to(self, name, state):
        cluster = Cluster(self.folder, Plan(ps=1, workers=2, flags=["--transport=tcp", "--stop_timeout=1"]))
        self.addCleanup(cluster.kill)
        with socket.create_server(("127.0.0.1", 0)) as listener:
            listener.settimeout(program.LIMIT_S)
            cluster.hosts["ps"] = [f"127.0.0.1:{listener.getsockname()[1]}"]
            cluster.start(name)
            task, connection = cluster.tasks[name], None
            for number, (kind, header, body) in enumerate(all_lies(ENDS_OF_PS)):
                if "length" in header and number % RARELY:
                    continue  # each costs a connection, which is not made anew at once
                connection = connection or self.be_ps(cluster, listener, state)
                try:
                    connection.send(kind, body, **{"generation": 77, **header})
                except ConnectionError:
                    connection = None
                if connection and "length" in header:
                    connection.close()
                    connection = None
                if task.has_ended():
                    break
            self.assertFalse(task.has_ended(), f"{kind} {header}\n{cluster.story()[-3000:]}")
            self.assertLess(os.path.getsize(task.path), LOG_BYTES_MAX)
        if connection:
            connection.close()
        task.process.send_signal(signal.SIGTERM)
        self.assert_codes(cluster, garbage_test.TERMINATED)

    def be_ps(self, cluster, listener, state):
        end, _ = listener.accept()
        connection = wire.Connection(end, program.LIMIT_S)
        self.assertEqual(connection.hear().kind, "HELLO")
        connection.send("WELCOME", greeting(cluster.hosts, "ps", 0, incarnation="5"))
        connection.send("STATE", state=wire.CODES[state], generation=77 if state != "PS_EMPTY" else 0,
                        last_step=1000)
        return connection

    def test_a_worker_that_holds(self):
        self.lie_to("worker/1", "PS_EMPTY")

    def test_a_worker_that_joins(self):
        self.lie_to("worker/1", "PS_SERVING")

    def test_a_chief_that_sets_up(self):
        self.lie_to("worker/0", "PS_EMPTY")

    def test_a_chief_that_joins(self):
        self.lie_to("worker/0", "PS_SERVING")


if __name__ == "__main__":
    program.main()
