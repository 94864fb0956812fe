"""In-graph replication: the chief reads the data, and workers that have none train on them."""
import dataclasses
import json
import os
import random
import struct

import program
from program import wire
from program.clicks import CLICKS, GROWING, LEARNT
from program.cluster import Cluster, ClusterCase, Plan, with_files
from program.wire import VERSION, greeting

IN_GRAPH = {"train.replication": "in_graph"}
NOWHERE = "--data_dir=/nowhere"
SHUFFLED = {"data.shuffle": True}
ROWS = 420
TABLE = {  # what the data say of themselves must reach those who have none, too
    "data": {
        "train": {"format": "csv", "file": "table.csv", "label": "bought",
                  "label_type": "word"},
        "eval": {"format": "csv", "file": "table.csv", "label": "bought",
                  "label_type": "word"},
        "batch_size": 20, "shuffle": True, "weight": "weight",
        "columns": [{"column": "numeric", "name": "age", "standardize": True},
                    {"column": "numeric", "name": "weight"},
                    {"column": "hash", "name": "city", "buckets": 30},
                    {"column": "vocabulary", "name": "kind", "file": "kinds.txt"}]},
    "model": [
        {"op": "embedding", "name": "cities", "inputs": ["city"], "dimension": 4},
        {"op": "embedding", "name": "kinds", "inputs": ["kind"], "dimension": 3},
        {"op": "concat", "name": "all", "inputs": ["cities", "kinds", "age"]},
        {"op": "dense", "name": "logits", "units": 2}],
}
IDX = {"data.train": {"format": "idx", "features": "images", "labels": "labels"},
       "data.eval": {"format": "idx", "features": "images", "labels": "labels"}}
MANNERS = {"an invalid greeting": b"{}", "a greeting that is not JSON": b"\xff\xfe{",
           "a greeting of 0 bytes": b""}


def write_table(folder):
    rng = random.Random(3)
    kinds = ["book", "pen", "cup"]
    with open(os.path.join(folder, "kinds.txt"), "w", encoding="utf-8") as file:
        file.write("\n".join(kinds) + "\n")
    with open(os.path.join(folder, "table.csv"), "w", encoding="utf-8") as file:
        file.write("age,weight,city,kind,bought\n")
        for _ in range(ROWS):
            age, city, kind = rng.randint(18, 90), rng.choice("abcdefgh"), rng.choice(kinds)
            bought = "yes" if age + 4 * ord(city) > 460 else "no"
            file.write(f"{age},{rng.random():.3f},{city},{kind},{bought}\n")


def write_images(folder):
    rng = random.Random(4)
    for name, shape, largest in (("images", (ROWS, 7, 7), 255), ("labels", (ROWS,), 9)):
        count = ROWS * 49 if name == "images" else ROWS
        with open(os.path.join(folder, name), "wb") as file:
            file.write(struct.pack(f">BBBB{len(shape)}I", 0, 0, 8, len(shape), *shape))
            file.write(bytes(rng.randint(0, largest) for _ in range(count)))


class Fed(ClusterCase):
    def data(self):
        """A folder that only the chief is told of."""
        folder = os.path.join(str(self.folder), "data")
        if not os.path.isdir(folder):
            os.mkdir(folder)
            write_table(folder)
            write_images(folder)
        return folder

    def plan(self, mode, changes, workers, flags=()):
        changes = {**changes, "train.mode": mode}
        here = f"--data_dir={self.data()}"
        flags_of = {f"worker/{i}": [here] for i in range(workers)}
        return with_files(Plan(workers=workers, changes=changes, flags=list(flags), flags_of=flags_of))

    def fed(self, plan):
        """The same, and only the chief finds the data."""
        flags_of = {name: [NOWHERE if w.startswith("--data_dir=") and name != "worker/0" else w
                           for w in words] for name, words in plan.flags_of.items()}
        return dataclasses.replace(plan, changes={**plan.changes, **IN_GRAPH}, flags_of=flags_of)


class InGraph(Fed):
    def bits(self, plan):
        cluster = self.run_to_end(plan)
        lines = [[(m["step"], m["loss"]) for m in cluster.metrics(worker)]
                 for worker in range(plan.workers)]
        return lines, cluster.result()["metrics"]

    def assert_same(self, changes, workers, flags=()):
        plan = self.plan("sync", changes, workers, flags)
        expected, found = self.bits(plan), self.bits(self.fed(plan))
        self.assertEqual(len(expected[0][0]), 30)
        self.assertEqual(found, expected)

    def test_who_reads_changes_no_bit_in_sync(self):
        for about, changes, workers in (
                ("digits, one worker", {}, 1), ("digits", SHUFFLED, 2),
                ("a table", TABLE, 3), ("images", IDX, 2), ("clicks", CLICKS, 2),
                ("tables that grow", {**CLICKS, **GROWING}, 2)):
            with self.subTest(about):
                self.assert_same(changes, workers)

    def test_nor_does_it_with_towers_sums_streams_and_large_batches(self):
        stream = {**TABLE, "data": {**TABLE["data"], "train": {
            **TABLE["data"]["train"], "stream": "always", "shuffle_rows": 100}}}
        for about, changes in (
                ("towers", {**SHUFFLED, "train.towers": 2}), ("a stream", stream),
                ("sums of batches", {"train.replicas_to_aggregate": 6, "data.prefetch": 1}),
                ("batches of many parts", {"data.batch_size": 1000, "data.prefetch": 2})):
            with self.subTest(about):
                self.assert_same(changes, 2, ["--transport=tcp"])

    def test_nor_does_it_with_however_few_batches_of_a_push_ready(self):
        for count, prefetch in ((2, 2), (3, 5), (6, 1)):
            with self.subTest(count=count, prefetch=prefetch):
                self.assert_same({"train.replicas_to_aggregate": 2 * count,
                                  "data.prefetch": prefetch}, 2)

    def test_async_learns(self):
        changes = {**CLICKS, "train.last_step": 1200, "train.log_every_steps": 100}
        cluster = self.run_to_end(self.fed(self.plan("async", changes, 3)))
        self.assertGreater(cluster.result()["metrics"]["auc"], LEARNT, cluster.story())
        self.assert_says(cluster, "worker/0", "reads the data of all 3 workers")

    def test_a_worker_waits_for_its_chief(self):
        plan = dataclasses.replace(self.fed(self.plan("sync", {}, 2, ["--start_timeout=1"])),
                                   absent=["worker/0", "ps/0", "ps/1"])
        cluster = self.start(plan, lambda c: all(t.has_ended() for t in c.tasks.values()))
        self.assert_says(cluster, "worker/1", r"worker/0 at .*, which reads the data, did not "
                                              r"come within 1 s \(--start_timeout\)")

    def test_check_says_who_reads(self):
        cluster = Cluster(self.folder, self.fed(self.plan("sync", {}, 2)))
        self.addCleanup(cluster.kill)
        said = program.run(["check", f"--data_dir={self.data()}", "--local_workers=3", "spec.json"],
                           cluster.folder)
        self.assertIn("worker 0 reads them for all 3 workers, up to 4 batches ahead", said.stdout)

    def test_another_spec_is_told_of(self):
        plan = self.fed(self.plan("sync", {}, 2))
        plan.flags_of["worker/1"].append("--set=data.batch_size=21")
        cluster = self.start(plan, lambda c: c.tasks["worker/1"].has_ended())
        self.assert_says(cluster, "worker/1", "the spec differs: worker/1 has fingerprint")


class Strangers(Fed):
    """At the chief's port, while it trains alone with worker/1 absent."""

    def start_half(self):
        plan = dataclasses.replace(self.fed(self.plan("sync", {}, 2)), absent=["worker/1"])
        return self.start(plan, lambda c: "step 1 of" in c.tasks["worker/0"].text() or
                          c.tasks["worker/0"].has_ended())

    def call(self, cluster):
        caller = wire.Connection(cluster.address("worker/0"), program.LIMIT_S)
        self.addCleanup(caller.close)
        return caller

    def be_fed(self, cluster):
        caller = self.call(cluster)
        caller.send("HELLO", greeting(cluster.hosts, "worker", 1))
        self.assertEqual(caller.hear().kind, "WELCOME")
        data = caller.hear()
        self.assertEqual((data.kind, json.loads(data.body)["rows"]), ("DATA", 400))
        return caller

    def assert_refused(self, caller, pattern):
        heard = caller.hear_kind("REFUSED")
        self.assertIsNotNone(heard)
        self.assertRegex(heard.text(), pattern)
        self.assertIsNone(caller.hear())
        caller.close()

    def test_the_chief_takes_no_harm(self):
        cluster = self.start_half()
        for answer, words in MANNERS.items():
            caller = self.call(cluster)
            caller.send("HELLO", words)
            self.assert_refused(caller, answer)
        for hello, answer in ((greeting(cluster.hosts, "worker", 0), "reads the data itself"),
                              (greeting(cluster.hosts, "worker", 7), "is no worker"),
                              (greeting(cluster.hosts, "ps", 0), "is no worker"),
                              (greeting(cluster.hosts, "worker", 1, protocol=VERSION + 1),
                               "protocol version differs")):
            caller = self.call(cluster)
            caller.send("HELLO", hello)
            self.assert_refused(caller, answer)
        caller = self.call(cluster)
        caller.send("FEED", first=0, end=1, request_id=1)
        self.assert_refused(caller, "FEED before a greeting")
        caller = self.call(cluster)
        caller.socket.sendall(random.Random(1).randbytes(4096))
        self.assertIsNone(caller.hear())
        largest, most = 2 ** 64 - 1, 2 ** 62  # of a number, and of a batch
        for asking, answer in (({"end": 1}, "does not ask for batches"),
                               ({"request_id": 1, "end": 1000}, "at most 65"),
                               ({"request_id": 1, "first": 5, "end": 4}, "at most 65"),
                               ({"request_id": 1, "first": largest, "end": largest}, "is right"),
                               ({"request_id": 1, "first": largest - 1, "end": 0}, "is right"),
                               ({"request_id": 1, "first": most, "end": most}, "beyond"),
                               ({"request_id": 1, "first": most - 1, "end": 0}, "at most 65")):
            caller = self.be_fed(cluster)
            caller.send("FEED", **asking)
            self.assert_refused(caller, answer)
        caller = self.be_fed(cluster)
        caller.send("PUSH")
        self.assert_refused(caller, "sent PUSH, which does not ask for batches")
        caller = self.be_fed(cluster)
        caller.send("FEED", first=3, end=5, request_id=9)
        first = caller.hear()
        self.assertEqual((first.kind, first.values["number"], first.values["request_id"]),
                         ("BATCH", 3, 9))
        caller.socket.sendall(wire.message("FEED")[:40])  # and is gone
        caller.close()
        cluster.start("worker/1")
        self.assert_codes(cluster, 0)

    def test_whoever_takes_no_part_is_refused_however_often_the_job_has_moved(self):
        listed = 5
        plan = dataclasses.replace(self.fed(self.plan("sync", {}, listed)),
                                   absent=[f"worker/{i}" for i in range(1, listed)])
        plan.flags += ["--workers=2", "--ps=2"]
        cluster = self.start(plan, lambda c: "step 1 of" in c.tasks["worker/0"].text() or
                             c.tasks["worker/0"].has_ended())
        for moves in (0, 7, 2 ** 62):
            for task in range(2, listed):
                caller = self.call(cluster)
                membership = {"resizes": moves, "ps": 2, "workers": listed if moves else 2}
                caller.send("HELLO", greeting(cluster.hosts, "worker", task, membership=membership))
                self.assert_refused(caller, f"worker/{task} does not take part: there are 2")
        caller = self.call(cluster)
        caller.send("HELLO", greeting(cluster.hosts, "worker", 1,
                                      membership={"resizes": 7, "ps": 2, "workers": 2}))
        self.assert_refused(caller, "is of a job that was resized 7 times")
        cluster.start("worker/1")
        self.assert_codes(cluster, 0)

    def test_a_place_is_given_away_when_its_worker_is_gone(self):
        cluster = self.start_half()
        first = self.be_fed(cluster)
        other = self.call(cluster)
        other.send("HELLO", greeting(cluster.hosts, "worker", 1, incarnation="99"))
        self.assert_refused(other, "worker/1 is already here")
        first.send("FEED", first=0, end=1, request_id=1)
        self.assertEqual(first.hear().kind, "BATCH")
        again = self.be_fed(cluster)  # the same life on a better link
        while first.hear():
            pass
        again.close()
        first.close()
        cluster.start("worker/1")
        self.assert_codes(cluster, 0)

    def test_a_worker_takes_no_harm_of_a_chief(self):
        columns = [{"name": "labels", "dtype": "int32", "shape": [], "buckets": 0,
                    "weighted": False},
                   {"name": "features", "dtype": "uint8", "shape": [28, 28, 1], "buckets": 0,
                    "weighted": False}]
        nothing = {"classes": [], "columns": []}
        data = {"rows": 400, "columns": columns, "measured": nothing}
        deep = {**columns[1], "shape": [2 ** 40, 2 ** 40]}
        sayings = {
            "that is not JSON": [("DATA", b"{", {})],
            "instead of DATA": [("BATCH", b"x", {})],
            "a description of data": [("DATA", json.dumps({**data, "rows": 0}).encode(), {})],
            "the first column is no labels":
                [("DATA", json.dumps({**data, "columns": columns[1:]}).encode(), {})],
            r"columns\[1\]": [("DATA", json.dumps({**data, "columns": [columns[0], deep]}).encode(),
                               {})],
            "columns": [("DATA", json.dumps({**data, "columns": columns * 5000}).encode(), {})],
            "refuses to feed": [("REFUSED", b"no", {"exit_code": 2})],
        }
        for pattern, words in sayings.items():
            with self.subTest(pattern):
                self.assert_worker_says(pattern, words)

    def test_another_version_of_the_protocol_ends_a_worker_in_words(self):
        version = VERSION + 1
        self.assert_worker_says(f"worker/0 at .*: speaks protocol version {version}, this program",
                                [("DATA", b"{}", {"PROTOCOL_VERSION": version})])

    def assert_worker_says(self, pattern, words):
        plan = self.fed(self.plan("sync", {}, 2))
        plan = dataclasses.replace(plan, absent=list(plan.names()))
        cluster = Cluster(self.folder, plan)
        self.addCleanup(cluster.kill)
        held = cluster.sockets[plan.ps]
        held.listen()
        cluster.start("worker/1")
        held.settimeout(program.LIMIT_S)
        end, _ = held.accept()
        with wire.Connection(end, program.LIMIT_S) as chief:
            self.assertEqual(chief.hear().kind, "HELLO")
            chief.send("WELCOME", greeting(cluster.hosts, "worker", 0))
            for kind, body, header in words:
                chief.send(kind, body, **header)
            cluster.wait()
        self.assertNotEqual(cluster.tasks["worker/1"].code(), 0)
        self.assertGreater(cluster.tasks["worker/1"].code(), 0, cluster.story())
        self.assert_says(cluster, "worker/1", pattern)


if __name__ == "__main__":
    program.main()
