"""Google Cloud Storage: who asks, what is read and written, against its documented exchange (gs_server.py), and where
it is installed gcp-storage-emulator (PyPI)."""
import json
import shutil
import subprocess
import unittest
import unittest.mock

import checkpoint_test
import gs_server
import program
import read_test
import server
from program import lying

OPENSSL = shutil.which("openssl")
SERVICE = {"type": "service_account", "client_email": "me@project"}
try:
    from gcp_storage_emulator.server import create_server
except ImportError:
    create_server = None


def new_key():
    """A key in PEM, and its modulus."""
    pem = subprocess.run([OPENSSL, "genpkey", "-quiet", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"],
                         check=True, capture_output=True, timeout=program.LIMIT_S).stdout
    said = subprocess.run([OPENSSL, "rsa", "-noout", "-modulus"], input=pem, check=True, capture_output=True,
                          timeout=program.LIMIT_S).stdout
    return pem.decode(), int(said.decode().strip().partition("=")[2], 16)


@unittest.skipUnless(OPENSSL, "there is no openssl to make a key with")
class GsCase(read_test.UrlCase):
    def start(self, handler=gs_server.Handler):
        pem, modulus = new_key()
        served = gs_server.start(modulus, handler)
        self.addCleanup(served.stop)
        self.key = {**SERVICE, "private_key": pem, "token_uri": served.url + "/token"}
        (self.folder / "key.json").write_text(json.dumps(self.key))
        return served

    def env(self, served, **more):
        return super().env(served, **{"GOOGLE_APPLICATION_CREDENTIALS": str(self.folder / "key.json"),
                                      "CLOUDSDK_API_ENDPOINT_OVERRIDES_STORAGE": served.url + "/storage/v1/",
                                      "STORAGE_EMULATOR_HOST": "", "GCE_METADATA_HOST": "127.0.0.1:1", **more})


class Reads(GsCase):
    def setUp(self):
        super().setUp()
        self.served = self.start()
        for i in range(7):
            self.served.files[f"/bucket/d/part-{i}.csv"] = read_test.rows(50 + i, seed=i)
        self.served.files["/bucket/d/deep/part-9.csv"] = read_test.rows(10)
        self.served.files["/bucket/d/odd +&é.csv"] = read_test.rows(11)

    def count(self, file, env=None):
        return self.stats(self.served, read_test.data(file), env)["rows"]

    def refused(self, file, env=None, code=program.BAD_INPUT):
        said = self.stats(self.served, read_test.data(file), {"DTRAIN_URL_TRIES": "2", **(env or {})}, code=code)
        for secret in (*self.served.tokens, "ya29", "PRIVATE"):
            self.assertNotIn(secret, said)
        return said

    def test_files_lists_and_patterns(self):
        self.assertEqual(self.count("gs://bucket/d/part-3.csv"), 53)
        self.assertEqual(self.count("gs://bucket/d/part-*.csv"), sum(range(50, 57)))
        self.assertEqual(self.count("gs://bucket/d/*/part-?.csv"), 10)
        self.assertEqual(self.count("gs://bucket/d/odd +&é.csv"), 11)
        self.assertEqual(self.count("gs://bucket/d/odd*"), 11)
        self.assertIn('no file fits "gs://bucket/d/none*"', self.refused("gs://bucket/d/none*"))
        self.assertIn("expected gs://bucket/key", self.refused("gs://bucket"))
        self.assertIn("gs://bucket/none.csv: GET 404 Not Found: No such object: bucket/none.csv",
                      self.refused("gs://bucket/none.csv"))

    def test_large_files_are_read_by_ranges_whatever_fails_once(self):
        table = read_test.rows(200000)
        self.served.files["/bucket/large.csv"] = table
        (self.folder / "rows.csv").write_bytes(table)
        expected = self.stats(self.served)
        for fault in ("drop", 503, 429, "short"):
            self.served.fault = server.some(lambda number, _, fault=fault: fault if number % 2 == 0 else None)
            self.assertEqual(self.stats(self.served, read_test.data("gs://bucket/large.csv")), expected)
        self.served.fault = lambda *_: 503
        self.assertIn("503 Service Unavailable: asked to fail (2 tries)",
                      self.refused("gs://bucket/large.csv", code=program.BAD_HOST))

    def test_one_token_is_asked_for_and_renewed_before_its_end(self):
        self.count("gs://bucket/d/part-*.csv")
        self.assertEqual(len(self.served.tokens), 1)
        self.served.lives_s = 299  # it is renewed 300 s before its end
        self.count("gs://bucket/d/part-*.csv")
        self.assertGreater(len(self.served.tokens), 3)

    def test_a_key_that_is_none_or_refused_is_named(self):
        part, path = "gs://bucket/d/part-3.csv", self.folder / "key.json"
        for key, said in (({**self.key, "private_key": "-----BEGIN"}, "its private_key is no RSA key in PEM"),
                          ({"type": "authorized_user"}, "expected client_id, client_secret and refresh_token"),
                          ({"type": "external_account"}, "expected the key of a service account"),
                          ({**self.key, "client_email": "else@where"},
                           f"{self.served.url}/token: POST 400 Bad Request: Invalid JWT Signature.")):
            path.write_text(json.dumps(key))
            self.assertIn(said, self.refused(part, code=program.BAD_INPUT if "POST" not in said else program.BAD_HOST))
        path.write_text("{")
        self.assertIn("expected the key of a service account", self.refused(part))
        path.unlink()
        self.assertIn("key.json", self.refused(part))

    def test_a_person_s_refresh_token_is_asked_with(self):
        self.served.person = "id", "se+cret", "1//refresh&token"
        person = {"type": "authorized_user", "client_id": "id", "client_secret": "se+cret",
                  "refresh_token": "1//refresh&token", "token_uri": self.served.url + "/token"}
        (self.folder / "key.json").write_text(json.dumps(person))
        self.assertEqual(self.count("gs://bucket/d/part-3.csv"), 53)
        gcloud = self.folder / ".config" / "gcloud"  # where gcloud keeps it
        gcloud.mkdir(parents=True)
        (self.folder / "key.json").rename(gcloud / "application_default_credentials.json")
        nothing = {"GOOGLE_APPLICATION_CREDENTIALS": ""}
        self.assertEqual(self.count("gs://bucket/d/part-3.csv", nothing), 53)
        self.served.person = "id", "secret", "another"
        said = self.refused("gs://bucket/d/part-3.csv", nothing, code=program.BAD_HOST)
        self.assertIn("POST 400 Bad Request: Bad Request: ****", said)
        self.assertNotIn("1//refresh", said)

    def test_a_machine_of_googles_gives_its_token(self):
        host = self.served.url.partition("://")[2]
        nothing = {"GOOGLE_APPLICATION_CREDENTIALS": ""}
        self.assertEqual(self.count("gs://bucket/d/part-3.csv", {**nothing, "GCE_METADATA_HOST": host}), 53)
        self.assertIn("GOOGLE_APPLICATION_CREDENTIALS is not set",
                      self.refused("gs://bucket/d/part-3.csv", nothing, code=program.BAD_HOST))

    def test_an_emulator_is_told_no_token(self):
        self.served.has_tokens = False
        emulator = {"STORAGE_EMULATOR_HOST": self.served.url.partition("://")[2]}
        self.assertEqual(self.count("gs://bucket/d/part-3.csv", emulator), 53)
        self.assertEqual(self.served.tokens, [])

    def test_a_server_that_quotes_what_it_was_asked_makes_nobody_tell_a_token(self):
        refuse = self.served.RequestHandlerClass.refuse

        def quote(handler, status, code, message):
            refuse(handler, status, code, f"{handler.headers.get('Authorization')} {message}")
        self.served.fault = lambda _, request: None if request.path == "/token" else 403
        with unittest.mock.patch.object(self.served.RequestHandlerClass, "refuse", quote):
            self.assertIn("Bearer ***", self.refused("gs://bucket/d/part-3.csv"))

    def test_a_list_that_is_none_is_named(self):
        for broken in (b"[]", b"{", b"<html>", b'{"items": 7}', b'{"items": [{"nam": "d/p"}]}', b'{"items": [7]}',
                       b'{"prefixes": {"d/": 1}}', b'{"items": [{"name": "d/p"}], "nextPageToken": 7}',
                       b'{"items": [' + b"{}," * (1 << 20) + b"{}]}"):
            self.served.list_answer = broken
            self.assertIn("the server's list of files is broken",
                          self.refused("gs://bucket/d/p*", code=program.BAD_HOST))
        self.served.list_answer = b'{"items": [{"name": "d/p"}], "nextPageToken": "again"}'
        self.assertIn("gs://bucket/d/p*: the server's list of files does not end",
                      self.refused("gs://bucket/d/p*", code=program.BAD_HOST))


class Writes(checkpoint_test.Runs, GsCase, checkpoint_test.CheckpointCase):
    """Runs whose folder is in a bucket of Google's: also a kill at every write."""

    bucket = "gs://bucket"
    kill_every, tables = 4, ((20000, True, 1),)

    def test_large_shards_are_sent_in_parts(self):
        wide = [{**checkpoint_test.SPEC["model"][0], "units": 1500}, {"op": "dense", "name": "more", "units": 1500},
                checkpoint_test.SPEC["model"][1]]
        self.write_spec(self.spec(**{"train.checkpoint_dir": "gs://bucket/run", "model": wide, "train.last_step": 4,
                                     "train.save_checkpoint_steps": None}))
        self.served.keeps_some = 3
        self.served.fault = lambda number, _: (None, "drop", None, "drop after", None, 503)[number % 6]
        done = self.run_dtrain()
        self.assertEqual(done.returncode, 0, done.stderr)
        self.served.fault = lambda *_: None
        self.assertEqual(self.served.keeps_some, 0)
        self.served.uploads.clear()  # begun, but the answer was lost: it ends after a week
        self.assertEqual(self.assert_whole()[-1], "model.ckpt-4")

    def test_an_upload_stays_with_the_server_that_was_asked(self):
        """Its path is a proof of who asks, and the parts are what is trained."""
        thief = lying.Thief()
        self.addCleanup(thief.stop)
        wide = [{**checkpoint_test.SPEC["model"][0], "units": 1500}, {"op": "dense", "name": "more", "units": 1500},
                checkpoint_test.SPEC["model"][1]]
        for leads_to in (thief.url, "//" + thief.url.partition("//")[2], "ftp://other"):
            self.served.leads_to = leads_to
            self.served.files.clear()
            self.write_spec(self.spec(**{"train.checkpoint_dir": "gs://bucket/run", "model": wide, "train.last_step": 2,
                                         "train.save_checkpoint_steps": None}))
            done = self.run_dtrain()
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("/bucket/run/model.ckpt-2.index", self.served.files)
        self.assertEqual(thief.seen, [])

    def test_a_bucket_that_cannot_be_written_is_told_at_once(self):
        self.served.fault = lambda number, request: 403 if "/upload/" in request.path else None
        said = self.dtrain("spec.json", code=program.BAD_INPUT)
        self.assertIn("train.checkpoint_dir: gs://bucket/run/.writable: POST 403", said)


@unittest.skipUnless(create_server, "there is no gcp-storage-emulator")
class Emulator(read_test.UrlCase):
    def test_a_run_saves_and_is_read(self):
        emulator = create_server("127.0.0.1", 0, in_memory=True, default_bucket="bucket")
        emulator.start()
        self.addCleanup(emulator.stop)
        # pylint: disable-next=protected-access
        env = {"STORAGE_EMULATOR_HOST": f"http://127.0.0.1:{emulator._api._httpd.server_port}"}
        spec = program.changed(checkpoint_test.SPEC, {"train.checkpoint_dir": "gs://bucket/run"})
        (self.folder / "rows.csv").write_bytes(read_test.rows(500))
        (self.folder / "spec.json").write_text(json.dumps(spec))
        done = program.run(["spec.json"], self.folder, env=env)
        self.assertEqual(done.returncode, 0, done.stderr)
        said = program.run(["checkpoint", "ls", "gs://bucket/run"], self.folder, env=env).stdout
        self.assertIn("model.ckpt-40, newest", said)


if __name__ == "__main__":
    program.main()
