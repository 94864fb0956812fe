"""dtrain var: variables of a lone ps and of clusters that train, seen and changed from outside."""
import json
import os
import re
import signal
import subprocess
import threading

import program
from program import BINARY, LIMIT_S
from program.clicks import CLICKS, GROWING
from program.cluster import ClusterCase, Plan, hold_addresses, is_listened_on, socket

CLEAN = program.environment()
TWO_PARTS = {"placement": {"partitioner": {"type": "fixed_size", "num_shards": 2}}}


NEW = r"\S+ \S+ is a new shared variable: nobody had one of this name [^\n]*\n"


class VarCase(ClusterCase):
    def words(self, cluster, words):
        return [BINARY, "var", *words, "--ps_hosts=" + ",".join(cluster.hosts["ps"])]

    def run_var(self, cluster, *words):
        return subprocess.run(self.words(cluster, words), env=CLEAN, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=LIMIT_S, check=False)

    def var(self, cluster, *words):
        """What it prints, without the end of the line."""
        done = self.run_var(cluster, *words)
        note = NEW if words[0] == "set" else ""
        self.assertRegex(done.stderr, rf"\A({note})?\Z", cluster.story())
        self.assertEqual(done.returncode, 0, cluster.story())
        return done.stdout.rstrip("\n")

    def fails(self, cluster, code, error, *words):
        done = self.run_var(cluster, *words)
        self.assertEqual((done.returncode, done.stdout, done.stderr.rstrip("\n")),
                         (code, "", "dtrain: " + error))

    def begin(self, cluster, *words):
        process = subprocess.Popen(self.words(cluster, words), env=CLEAN, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        limit = threading.Timer(LIMIT_S, process.kill)  # so that nothing it prints is waited for longer
        limit.start()
        self.addCleanup(limit.cancel)
        self.addCleanup(process.kill)
        return process

    def lone(self, ps=1):
        """Parameter servers that no chief has set up."""
        return self.start(Plan(ps=ps, workers=1, absent=["worker/0"]), lambda c: all(
            is_listened_on(address) for address in c.hosts["ps"]))

    def end(self, cluster):
        cluster.tasks["ps/0"].process.send_signal(signal.SIGTERM)
        self.assert_codes(cluster, 143)


class LonePs(VarCase):
    def test_values_are_made_changed_and_listed(self):
        cluster = self.lone(ps=3)
        first, again = [self.run_var(cluster, "set", "x", "0.1") for _ in range(2)]
        self.assertEqual([first.stdout, again.stdout, again.stderr], ["0.1\n", "0.1\n", ""])
        self.assertRegex(first.stderr, rf"\A{NEW}\Z")  # it may have been meant for one of a model
        self.assertEqual(self.var(cluster, "add", "x", "0.2"), "0.30000000000000004")
        self.assertEqual(self.var(cluster, "set", "m", "[[1, 2.5], [-3, 4]]"),
                         "[[1, 2.5], [-3, 4]]")
        self.assertEqual(self.var(cluster, "add", "m[1,0]", "-1"), "-4")
        self.assertEqual(self.var(cluster, "get", "m"), "[[1, 2.5], [-4, 4]]")
        self.assertEqual(self.var(cluster, "set", "m", "7"), "[[7, 7], [7, 7]]")
        self.assertEqual(self.var(cluster, "get", "global_step"), "0")
        rows = [line.split() for line in self.var(cluster, "ls").splitlines()]
        self.assertEqual(rows[0], ["variable", "shape", "kind", "ps"])
        self.assertEqual([row[0] for row in rows[1:]], ["global_step", "m", "x"])
        listed = json.loads(self.var(cluster, "ls", "--json"))["variables"]
        self.assertEqual([[row["name"], row["kind"], ",".join(map(str, row["ps"]))] for row in listed],
                         [[row[0], row[-2], row[-1]] for row in rows[1:]])
        self.assertEqual([row["shape"] for row in listed], [[], [2, 2], []])

    def test_what_cannot_be_is_said(self):
        cluster = self.lone()
        self.var(cluster, "set", "counter", "[1, 2]")
        self.fails(cluster, 2, 'no variable "countr" (did you mean "counter"?)', "get", "countr")
        self.fails(cluster, 2, 'no variable "other"; dtrain var ls lists them, and var set makes '
                   'one', "add", "other", "1")
        self.fails(cluster, 2, "ps/0: counter has shape [2]: index 2 is not from 0 to 1", "get",
                   "counter[2]")
        self.fails(cluster, 2, "ps/0: counter has shape [2], the value [3]", "add", "counter",
                   "[1, 2, 3]")
        self.fails(cluster, 2, '"counter[": expected NAME, NAME[3,4] or NAME[3:5]', "get", "counter[")
        self.fails(cluster, 2, 'value: lists of unequal lengths', "set", "counter", "[[1], [2, 3]]")
        self.fails(cluster, 2, "ps/0: global_step is counted by the job and cannot be changed",
                   "set", "global_step", "3")
        self.assertEqual(self.var(cluster, "get", "counter"), "[1, 2]")

    def test_two_visitors_adding_at_once_lose_nothing(self):
        cluster = self.lone(ps=2)
        self.var(cluster, "set", "total", "0")
        loop = 'for i in 1 2 3 4 5 6 7 8; do "$@" || exit; done'
        running = [subprocess.Popen(
            ["sh", "-c", loop, "sh"] + self.words(cluster, ["add", "total", amount]), env=CLEAN,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL) for amount in ("0.5", "0.25")]
        self.assertEqual([one.wait(LIMIT_S) for one in running], [0, 0])
        self.assertEqual(self.var(cluster, "get", "total"), "6")

    def test_a_watcher_prints_every_change_and_ends_with_the_job(self):
        cluster = self.lone()
        self.var(cluster, "set", "x", "0")
        watcher = self.begin(cluster, "watch", "x", "--every=0")
        self.assertEqual(watcher.stdout.readline(), "0\n")
        for value, is_new in (("1", True), ("1", False), ("2.5", True)):
            self.var(cluster, "set", "x", value)
            if is_new:  # looked at before the next one, which would take its place
                self.assertEqual(watcher.stdout.readline(), f"{value}\n")
        self.end(cluster)
        rest, error = watcher.communicate(timeout=LIMIT_S)
        self.assertEqual((watcher.returncode, rest), (143, ""))
        self.assertEqual(error, "dtrain: the job has ended: stopped by SIGTERM\n")

    def test_a_watcher_ends_after_so_many_lines(self):
        cluster = self.lone()
        self.var(cluster, "set", "x", "0")
        watcher = self.begin(cluster, "watch", "x", "--every=0", "--count=2")
        self.assertEqual(watcher.stdout.readline(), "0\n")
        self.var(cluster, "add", "x", "1")
        rest, error = watcher.communicate(timeout=LIMIT_S)
        self.assertEqual((watcher.returncode, rest, error), (0, "1\n", ""))

    def test_who_is_not_there_is_named(self):
        (held,), (address,) = hold_addresses(1)
        self.addCleanup(held.close)
        done = subprocess.run([BINARY, "var", "ls", "--ps_hosts=" + address, "--timeout=0.3"],
                              env=CLEAN, capture_output=True, text=True, timeout=LIMIT_S,
                              check=False)
        self.assertEqual(done.returncode, 129)
        self.assertRegex(done.stderr, rf"ps/0 at {address} did not come within 0.3 s \(--timeout\): .*refused")

    def test_hosts_that_are_not_those_of_the_cluster_are_refused(self):
        cluster = self.lone(ps=2)
        first, second = cluster.hosts["ps"]
        for hosts, error in ((first, "the cluster has 2 ps, --ps_hosts names 1"),
                             (f"{second},{first}", "at another place of --ps_hosts")):
            done = subprocess.run([BINARY, "var", "ls", "--ps_hosts=" + hosts], env=CLEAN,
                                  capture_output=True, text=True, timeout=LIMIT_S, check=False)
            self.assertEqual(done.returncode, 2)
            self.assertIn(error, done.stderr)

    def test_the_shared_values_of_a_ps_survive_the_visit_of_garbage(self):
        cluster = self.lone()
        self.var(cluster, "set", "x", "3")
        host, port = cluster.hosts["ps"][0].split(":")
        for garbage in (b"", b"GET / HTTP/1.1\r\n\r\n", bytes(200)):
            with socket.create_connection((host, int(port)), LIMIT_S) as stranger:
                stranger.sendall(garbage)
        self.assertEqual(self.var(cluster, "get", "x"), "3")


class Training(VarCase):
    def hold_up_within_a_step(self, cluster):
        """worker/1, so that every ps has all else that it needs for the step. Where some ps had its push and others
        had not, worker/0 can push nothing more to those: then worker/1 continues and is held up once more."""
        held = cluster.tasks["worker/1"]

        def report(ps):
            """What it says of worker/0 now."""
            def said(worker):
                return re.findall(rf"{worker} .*, \d+ pushes$", ps.text(), re.M)
            was = len(said("worker/1"))  # the last of its lines
            ps.process.send_signal(signal.SIGUSR1)
            cluster.wait_until(lambda: len(said("worker/1")) > was, f"{ps.name} to report")
            return said("worker/0")[-1]

        def waits_for_it(ps):
            before, now = None, report(ps)
            while now != before:
                before, now = now, report(ps)
            return "has pushed, waits for the others" in now

        def is_held_up():
            held.process.send_signal(signal.SIGSTOP)
            cluster.wait_until(held.is_held_up, "worker/1 to be held up")
            if all(waits_for_it(cluster.tasks[name]) for name in ("ps/0", "ps/1")):
                return True
            held.process.send_signal(signal.SIGCONT)
            return False
        cluster.wait_until(is_held_up, "worker/1 to be held up within a step")
        return held

    def test_values_are_seen_and_steps_counted(self):
        for mode in ("async", "sync"):
            with self.subTest(mode=mode):
                cluster = self.start_endless(Plan(changes={"train.mode": mode, **TWO_PARTS}))
                kernel = json.loads(self.var(cluster, "get", "logits/kernel"))
                self.assertEqual((len(kernel), {len(row) for row in kernel}), (16, {10}))
                self.assertEqual(self.var(cluster, "set", "logits/kernel[15,9]", "0.5"), "0.5")
                steps = self.var(cluster, "watch", "global_step", "--count=3", "--every=0")
                steps = [int(step) for step in steps.splitlines()]
                self.assertEqual(len(steps), 3)
                self.assertEqual(sorted(set(steps)), steps)
                names = [line.split()[0] for line in self.var(cluster, "ls").splitlines()]
                self.assertEqual(names, ["variable", "hidden/bias", "hidden/kernel", "logits/bias",
                                         "logits/kernel", "global_step"])
                self.end(cluster)

    def test_visitors_add_at_once_to_what_is_not_trained(self):
        """A variable behind relu units that never fire has no gradient: what is added stays."""
        for mode, values in (("async", "bf16"), ("sync", "float32")):
            with self.subTest(mode=mode, values=values):
                changes = {"train.mode": mode, "train.wire_values": values,
                           "optimizer": {"type": "gradient_descent", "learning_rate": 0.05}}
                cluster = self.start_endless(Plan(changes=changes))
                self.var(cluster, "set", "hidden/bias", "-1000000")
                loop = 'for i in 1 2 3 4; do "$@" || exit; done'
                running = [subprocess.Popen(
                    ["sh", "-c", loop, "sh"] + self.words(cluster, ["add", "hidden/bias", amount]),
                    env=CLEAN, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
                    for amount in ("1", "2")]
                self.assertEqual([one.wait(LIMIT_S) for one in running], [0, 0])
                self.assertEqual(set(json.loads(self.var(cluster, "get", "hidden/bias"))),
                                 {-999988})
                self.end(cluster)

    def test_a_change_in_synchronous_training_waits_for_all_workers(self):
        """One is held up within a step: until it is through, others see the old values."""
        cluster = self.start_endless(Plan(changes={"train.mode": "sync"}))
        held = self.hold_up_within_a_step(cluster)
        changing = self.begin(cluster, "set", "hidden/bias[3]", "50000")
        self.assertLess(float(self.var(cluster, "get", "hidden/bias[3]")), 1000)
        self.assertIsNone(changing.poll())
        os.kill(held.process.pid, signal.SIGCONT)
        out, error = changing.communicate(timeout=LIMIT_S)
        self.assertEqual((changing.returncode, out, error), (0, "50000\n", ""))
        self.assertGreater(float(self.var(cluster, "get", "hidden/bias[3]")), 1000)
        self.end(cluster)

    def test_a_change_leaves_a_line_that_says_who_and_what(self):
        cluster = self.start_endless(Plan(ps=1, workers=1))
        self.var(cluster, "set", "hidden/bias[3]", "0.5")
        self.var(cluster, "add", "hidden/bias", "0.25")
        self.var(cluster, "set", "counter", "[1, 2]")
        log = cluster.tasks["ps/0"].text()
        for line in (r"set hidden/bias\[3\]: 0\.5", r"added to hidden/bias: 0\.25", "set counter: 2 numbers"):
            self.assertRegex(log, rf" a visitor \(127\.0\.0\.1:\d+\) {line}\n")
        self.end(cluster)

    def test_a_spoiling_change_is_refused(self):
        cluster = self.start_endless(Plan())
        done = self.run_var(cluster, "set", "logits/bias", "1e39")
        self.assertEqual(done.returncode, 2)
        self.assertRegex(done.stderr, r"^dtrain: ps/\d: logits/bias: the result is not a finite "
                                      r"float32\n$")
        self.end(cluster)

    def test_a_watcher_of_a_job_that_is_done_ends_well(self):
        """In synchronous training no step is taken before the second worker comes."""
        plan = Plan(changes={"train.mode": "sync", "train.last_step": 300}, absent=["worker/1"])
        cluster = self.start(plan, lambda c: all(
            is_listened_on(address) for address in c.hosts["ps"]))
        watcher = self.begin(cluster, "watch", "global_step", "--every=0")
        self.assertEqual(watcher.stdout.readline(), "0\n")
        cluster.start("worker/1")
        out, error = watcher.communicate(timeout=LIMIT_S)
        self.assertEqual((watcher.returncode, error), (0, "dtrain: the job has ended\n"),
                         cluster.story())
        self.assertRegex(out, r"^(\d+\n)*$")  # it may have looked at no step but the first
        self.assert_codes(cluster, 0)

    def test_tables_are_listed_and_read_by_rows(self):
        columns = [{**column, "buckets": 100000} if column["name"] == "c2" else column
                   for column in CLICKS["data"]["columns"]]
        cluster = self.start_endless(Plan(changes={
            **CLICKS, **TWO_PARTS, "data": {**CLICKS["data"], "columns": columns}}))
        small, large = "deep/c1/embedding_weights", "deep/c2/embedding_weights"
        rows = {line.split()[0]: line.split()[1:] for line in self.var(cluster, "ls").splitlines()}
        self.assertEqual(rows[large], ["[100000,", "5]", "table", "0,1"])
        whole = json.loads(self.var(cluster, "get", small))
        self.assertEqual((len(whole), {len(row) for row in whole}), (40, {5}))
        last = json.loads(self.var(cluster, "get", large + "[49998:50002]"))  # of both ps
        self.assertEqual([json.loads(self.var(cluster, "get", f"{large}[{row}]"))
                          for row in range(49998, 50002)], last)  # no batch names them
        refused = f"{large} is a table of 100000 x 5 numbers: get up to 13107 rows, as in " \
                  f"{large}[7] or {large}[7:9]; they are not changed from outside"
        self.fails(cluster, 2, "ps/0: " + refused, "get", large)
        self.fails(cluster, 2, f"ps/0: {small} is a table, whose rows are not changed from outside",
                   "set", small + "[3]", "0")
        self.end(cluster)

    def test_rows_of_tables_cut_by_turns_are_read_by_ids(self):
        """Ids that no batch names have their initial values, wherever they lie."""
        columns = [{**column, "buckets": 100000} for column in CLICKS["data"]["columns"]]
        data = {**CLICKS["data"], "columns": columns}
        table, found = "deep/c2/embedding_weights", []
        for strategy in ("div", "mod"):
            placement = {"partitioner": {"type": "fixed_size", "num_shards": 3},
                         "partition_strategy": strategy}
            cluster = self.start_endless(Plan(changes={**CLICKS, "data": data,
                                                       "placement": placement}))
            found.append([json.loads(self.var(cluster, "get", f"{table}{rows}"))
                          for rows in ("[49998:50002]", "[99999]", "[0:2]")])
            self.fails(cluster, 2, f"ps/0: {table} has rows from 0 to 99999", "get",
                       f"{table}[100000]")
            self.end(cluster)
        self.assertEqual(found[0], found[1])
        self.assertEqual(len({tuple(row) for row in found[0][0]}), 4)

    def test_rows_of_tables_that_grow_are_read_by_ids(self):
        cluster = self.start_endless(Plan(changes={**CLICKS, **GROWING}))
        wide = "wide/c1_x_c2/weights"
        rows = {line.split()[0]: line.split()[1:] for line in self.var(cluster, "ls").splitlines()}
        self.assertEqual(rows[wide], ["[?,", "1]", "table", "0,1"])
        listed = json.loads(self.var(cluster, "ls", "--json"))["variables"]
        self.assertIn([None, 1], [one["shape"] for one in listed if one["name"] == wide])
        ids = "deep/c2/embedding_weights"
        several = json.loads(self.var(cluster, "get", ids + "[0:40]"))  # half of them are no cells
        self.assertEqual((len(several), {len(row) for row in several}), (40, {5}))
        self.assertEqual(several[30:], [[0] * 5] * 10)
        self.assertEqual(json.loads(self.var(cluster, "get", ids + "[39]")), [0] * 5)
        self.fails(cluster, 2, f"ps/0: {ids} is a table that grows: get up to 13107 rows by their "
                   f"ids, as in {ids}[7] or {ids}[7:9]; they are not changed from outside",
                   "get", ids)
        self.end(cluster)


if __name__ == "__main__":
    program.main()
