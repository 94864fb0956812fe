"""Servers of files whose answers are drawn (program/lying.py): whatever they are, what is read is what lies there, or it is
said why not, and nothing crashes, waits without an end, or takes what nobody asked for.

    GENERATED_SEEDS=100..2000 python3 tests/system/storage/generated_test.py"""
import json
import os
import resource

import checkpoint_test
import gs_server
import gs_test
import hdfs_server
import hdfs_test
import program
import read_test
import server
from program import lying

FIRST, LAST = map(int, os.environ.get("GENERATED_SEEDS", "1..3").split(".."))
SEEDS = range(FIRST, LAST + 1)
RATE = 0.15
MEMORY_KIB = 1 << 20  # of a command: the largest answer that is taken at once has a tenth of it
HASTE = {"DTRAIN_URL_TRIES": "3", "DTRAIN_URL_TIMEOUT": "1"}


class Http(lying.Lying, server.Handler):
    pass


class Gs(lying.Lying, gs_server.Handler):
    pass


class NameNode(lying.Lying, hdfs_server.Handler):
    pass


class Generated:
    """Beside a case of a service, whose files it has: `pattern` names them."""

    def lie(self, seed, lies):
        self.served.seed, self.served.lies, self.served.rate = seed, lies, RATE
        self.served.lied = self.served.most_told = 0

    def check(self, done, seed):
        """It ended by itself, and says why not where it has not done all."""
        self.assertIn(done.returncode, range(128), (seed, done.stderr))
        self.assertTrue(done.returncode == 0 or "dtrain: " in done.stderr or "ERROR" in done.stderr, (seed, done.stderr))
        self.assertNotIn(read_test.SECRET, done.stderr + done.stdout)
        self.assertLess(self.served.most_told, lying.TAKEN_BYTES, seed)
        self.assertFalse(getattr(self.served, "outlasted", False), seed)
        if program.SANITIZER == "none":
            self.assertLess(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, MEMORY_KIB, seed)

    def read(self, seed):
        done = program.run(["stats", "--json", "read.json"], self.folder, env=self.env(self.served, **HASTE))
        self.check(done, seed)
        return done

    def test_what_is_read_is_what_lies_there(self):
        self.lie(0, [])
        self.served.rate = 0
        self.write("read.json", read_test.SPEC, read_test.data(self.pattern))
        right = self.read(0)
        self.assertEqual(right.returncode, 0, right.stderr)
        done = 0
        for seed in SEEDS:
            self.lie(seed, lying.BROKEN)
            found = self.read(seed)
            if found.returncode == 0:
                self.assertEqual(found.stdout, right.stdout, seed)
                done += 1
            self.lie(seed, lying.FALSE)
            self.read(seed)
        self.assertGreater(done, 0)  # else nothing was seen of what lies there

    def test_what_is_written_ends_whatever_is_answered(self):
        for seed in SEEDS if self.saves_to else []:
            self.write("spec.json", checkpoint_test.SPEC,
                       {"train.checkpoint_dir": self.saves_to, "train.last_step": 6, "train.save_checkpoint_steps": 2})
            for lies in (lying.BROKEN, lying.FALSE):
                self.lie(seed, lies)
                done = program.run(["--save_timeout=20", "spec.json"], self.folder, env=self.env(self.served, **HASTE))
                self.check(done, seed)

    def write(self, name, spec, changes):
        (self.folder / "rows.csv").write_bytes(read_test.rows(500))
        (self.folder / name).write_text(json.dumps(program.changed(spec, changes)))


def tables():
    return {f"d/part-{i}.csv": read_test.rows(9000 if i == 1 else 40 + i, seed=i) for i in range(4)}


class S3(Generated, read_test.UrlCase):
    pattern, saves_to = "s3://bucket/d/part-*.csv", "s3://bucket/run"

    def setUp(self):
        super().setUp()
        self.served = self.serve(keys={"AKID": read_test.SECRET}, is_s3=True, handler=Http)
        self.served.files.update({"/bucket/" + name: table for name, table in tables().items()})


class Web(Generated, read_test.UrlCase):
    saves_to = None

    def setUp(self):
        super().setUp()
        self.served = self.serve(handler=Http)
        self.served.files["/d/part.csv"] = read_test.rows(200000)
        self.pattern = self.served.url + "/d/part.csv"


class Google(Generated, gs_test.GsCase):
    pattern, saves_to = "gs://bucket/d/part-*.csv", "gs://bucket/run"

    def setUp(self):
        super().setUp()
        self.served = self.start(handler=Gs)
        self.served.files.update({"/bucket/" + name: table for name, table in tables().items()})


class Hadoop(Generated, hdfs_test.HdfsCase):
    def setUp(self):
        super().setUp()
        self.served = self.start(handler=NameNode)
        for name, table in tables().items():
            self.put("/bucket/" + name, table)
        self.pattern, self.saves_to = self.bucket + "/d/part-*.csv", self.bucket + "/run"


if __name__ == "__main__":
    program.main()
