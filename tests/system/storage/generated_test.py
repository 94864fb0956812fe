"""Servers of files whose answers are drawn (program/lying.py): whatever they are, what is read is what lies there, or it is
said why not, and nothing crashes, waits without an end, or takes what nobody asked for.

    GENERATED_SEEDS=100..2000 python3 tests/system/storage/generated_test.py"""
import base64
import json
import os

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
RATE, OFTEN = 0.15, 0.3  # often: of the few answers that are texts
MEMORY_KIB = 400 << 10  # of a command: the largest answer that is taken at once has 32 MiB, and a quarter of it in values
TOKEN, PROOF, IDENTITY = "a/token+of-a-session", "proof-of-a-machine", "header.claims-of-a-pod.signature"
PASSWORD = "x9Fq-hidden"
HASTE = {"DTRAIN_URL_TRIES": "3", "DTRAIN_URL_TIMEOUT": "1"}
LIMITS = [f"--{name}_timeout=2" for name in ("start", "restart", "save")]  # storage is asked again for so long


class Http(lying.Lying, server.Handler):
    pass


class Gs(lying.Lying, gs_server.Handler):
    pass


class NameNode(lying.Lying, hdfs_server.Handler):
    pass


class Generated:
    """Beside a case of a service, whose files it has: `pattern` names them."""

    secrets = (read_test.SECRET,)

    def liars(self):
        """Who answers, in turns of seeds who of them lies"""
        return [self.served]

    def lie(self, seed, lies):
        if not hasattr(self, "thief"):
            self.thief = lying.Thief()
            self.addCleanup(self.thief.stop)
        for liar in {self.served, *self.liars()}:
            liar.seed, liar.lies, liar.rate, liar.lied, liar.most_told = seed, lies, 0, 0, 0
            liar.thief = self.thief.url
        liars = self.liars()
        liars[seed % len(liars)].rate = 0 if not lies else OFTEN if lies is lying.MALFORMED else RATE

    def hidden(self):
        """What only who is asked may see"""
        return self.secrets

    def check(self, done, seed):
        """It ended by itself, says why not where it has not done all, and proved who asks to nobody else."""
        self.assertIn(done.returncode, range(130), (seed, done.stderr))  # 128, 129: a limit on waiting; else a signal
        self.assertTrue(done.returncode == 0 or "dtrain: " in done.stderr or "ERROR" in done.stderr, (seed, done.stderr))
        for secret in self.hidden():
            self.assertNotIn(secret, done.stderr + done.stdout, seed)
            self.assertFalse([seen for seen in self.thief.seen if secret in seen], seed)
        for liar in self.liars():
            self.assertLess(liar.most_told, lying.TAKEN_BYTES, seed)
            self.assertFalse(getattr(liar, "outlasted", False), seed)
        self.assert_took_at_most(MEMORY_KIB, seed)

    def read(self, seed):
        done = program.run(["stats", "--json", "read.json"], self.folder, env=self.env(self.served, **HASTE))
        self.check(done, seed)
        return done

    def test_what_is_read_is_what_lies_there(self):
        done = 0
        for form, pattern in (("csv", self.pattern), ("jsonl", self.pattern.replace("/d/", "/lines/").replace("csv", "jsonl"))):
            self.lie(0, [])  # of an empty file of lines nobody sees that it has no head
            self.write("read.json", read_test.SPEC, program.changed(read_test.data(pattern), {"data.train.format": form}))
            right = self.read(0)
            self.assertEqual(right.returncode, 0, right.stderr)
            for seed in SEEDS:
                for lies in (lying.BROKEN, lying.MALFORMED):
                    self.lie(seed, lies)
                    found = self.read(seed)
                    if found.returncode == 0:
                        self.assertEqual(found.stdout, right.stdout, seed)
                        done += 1
                if form == "csv":
                    self.lie(seed, lying.FALSE)
                    self.read(seed)
        self.assertGreater(done, 0)  # else nothing was seen of what lies there

    def save(self, seed, folder, last_step, limits=(), **haste):
        self.write("spec.json", checkpoint_test.SPEC, {
            "train.checkpoint_dir": f"{self.saves_to}/{folder}", "train.last_step": last_step, "train.save_checkpoint_steps": 2})
        done = program.run([*limits, "spec.json"], self.folder, env=self.env(self.served, **haste))
        self.check(done, (seed, folder, last_step))
        return done

    def test_what_is_written_ends_whatever_is_answered(self):
        """In a new folder, and from what is in it then."""
        if not self.saves_to:
            return
        self.lie(0, [])
        right = self.save(0, "right", 4)
        self.assertEqual(right.returncode, 0, right.stderr)  # else nothing is ever saved
        lied_to = 0
        for seed in SEEDS:
            for kind, lies in (("broken", lying.BROKEN), ("malformed", lying.MALFORMED), ("false", lying.FALSE)):
                for last_step in (4, 8):
                    self.lie(seed, lies)
                    self.save(seed, f"{kind}{seed}", last_step, LIMITS, **HASTE)
                    lied_to += any(liar.most_told for liar in self.liars())
        self.assertGreater(lied_to, 0)

    def write(self, name, spec, changes):
        (self.folder / "rows.csv").write_bytes(read_test.rows(500))
        (self.folder / name).write_text(json.dumps(program.changed(spec, changes)))


def as_lines(table):
    names, *lines = (line.split(",") for line in table.decode().splitlines())
    return "".join(json.dumps(dict(zip(names, cells))) + "\n" for cells in lines).encode()


def tables():
    of_csv = {f"d/part-{i}.csv": read_test.rows(9000 if i == 1 else 40 + i, seed=i) for i in range(4)}
    return {**of_csv, **{name.replace("d/", "lines/").replace("csv", "jsonl"): as_lines(table)
                         for name, table in of_csv.items()}}


class S3(Generated, read_test.UrlCase):
    secrets = (read_test.SECRET, TOKEN)
    pattern, saves_to = "s3://bucket/d/part-*.csv", "s3://bucket/run"

    def setUp(self):
        super().setUp()
        self.served = self.serve(keys={"AKID": read_test.SECRET}, is_s3=True, handler=Http)
        self.served.files.update({"/bucket/" + name: table for name, table in tables().items()})
        self.served.token = TOKEN

    def env(self, served, **more):
        return super().env(served, **{"AWS_SESSION_TOKEN": TOKEN, **more})


class Lender(lying.Lying, server.Handler):
    """Of keys for a while: server.lent has them by "METHOD path"."""

    def answer(self, body, fault):
        answer = self.server.lent.get(f"{self.command} {self.path}")
        return (404, b"no", {}) if answer is None else (200, answer.encode(), {})


class Lent(S3):
    """Keys come from a server that lies: of a machine, a container, or for the token of a pod."""
    saves_to = None
    secrets = (read_test.SECRET, TOKEN, PROOF, IDENTITY)

    def setUp(self):
        super().setUp()
        self.lender = self.serve(handler=Lender)
        role = "/latest/meta-data/iam/security-credentials/"
        keys = {"AccessKeyId": "AKID", "SecretAccessKey": read_test.SECRET}
        until = {"Expiration": "2100-01-01T00:00:00Z"}
        lent = json.dumps({"Code": "Success", **keys, "Token": TOKEN, **until})
        texts = "".join(f"<{name}>{text}</{name}>" for name, text in {**keys, "SessionToken": TOKEN, **until}.items())
        self.lender.lent = {
            "PUT /latest/api/token": PROOF, f"GET {role}": "trainer", f"GET {role}trainer": lent, "GET /keys": lent,
            "POST /": f"<AssumeRoleWithWebIdentityResponse><Credentials>{texts}</Credentials></AssumeRoleWithWebIdentityResponse>"}
        (self.folder / "identity").write_text(IDENTITY)
        self.places = [
            {"AWS_EC2_METADATA_SERVICE_ENDPOINT": self.lender.url},
            {"AWS_CONTAINER_CREDENTIALS_FULL_URI": self.lender.url + "/keys", "AWS_CONTAINER_AUTHORIZATION_TOKEN": PROOF},
            {"AWS_ROLE_ARN": "arn", "AWS_WEB_IDENTITY_TOKEN_FILE": str(self.folder / "identity"),
             "AWS_ENDPOINT_URL_STS": self.lender.url + "/"}]

    def liars(self):
        return [self.lender]

    def env(self, served, **more):
        nobody = {"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "AWS_SESSION_TOKEN": ""}
        return super().env(served, **nobody, **self.places[self.lender.seed % len(self.places)], **more)


class Web(Generated, read_test.UrlCase):
    saves_to = None
    secrets = (PASSWORD, base64.b64encode(b"me:" + PASSWORD.encode()).decode())

    def setUp(self):
        super().setUp()
        self.served = self.serve(handler=Http)
        table = read_test.rows(100000)
        self.served.files.update({"/d/part.csv": table, "/lines/part.jsonl": as_lines(table)})
        self.pattern = self.served.url.replace("://", f"://me:{PASSWORD}@") + "/d/part.csv"


class Google(Generated, gs_test.GsCase):
    pattern, saves_to = "gs://bucket/d/part-*.csv", "gs://bucket/run"

    def hidden(self):
        return [token.removeprefix("Bearer ") for token in self.served.tokens] + ["/session/", "PRIVATE"]

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
