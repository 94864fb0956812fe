"""Data behind servers that others wrote: nginx, and S3 as moto has it (PyPI's moto[server]). What a machine lacks is
skipped."""
import getpass
import json
import os
import shutil
import socket
import subprocess
import unittest
import urllib.request

import checkpoint_test
import program
import read_test

NGINX = shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
CONFIGURATION = """
daemon off; user {user}; worker_processes 1; pid {folder}/nginx.pid; error_log {folder}/error.log;
events {{ worker_connections 64; }}
http {{
    access_log off; root {folder}/www;
    client_body_temp_path {folder}/a; proxy_temp_path {folder}/b; fastcgi_temp_path {folder}/c;
    uwsgi_temp_path {folder}/d; scgi_temp_path {folder}/e;
    server {{ listen 127.0.0.1:{port}; location /old/ {{ rewrite ^/old/(.*)$ /$1 redirect; }}
              location /secret/ {{ auth_basic closed; auth_basic_user_file {folder}/users; }} }}
}}
"""

try:
    import boto3
    from moto.server import ThreadedMotoServer
except ImportError:
    ThreadedMotoServer = None


class Served:
    """What read_test wants to know of a server."""

    def __init__(self, url):
        self.url = url


@unittest.skipUnless(NGINX, "there is no nginx")
class Nginx(read_test.UrlCase):
    def setUp(self):
        super().setUp()
        (self.folder / "www" / "secret").mkdir(parents=True)
        for name in ("www/rows.csv", "www/secret/rows.csv", "rows.csv"):
            (self.folder / name).write_bytes(read_test.rows(200000))
        (self.folder / "users").write_text("me:{PLAIN}word\n")
        with socket.create_server(("127.0.0.1", 0)) as listener:  # which it inherits: no port is looked for
            port = listener.getsockname()[1]
            path = self.folder / "nginx.conf"
            path.write_text(CONFIGURATION.format(folder=self.folder, port=port, user=getpass.getuser()))
            fd = listener.fileno()
            # pylint: disable-next=consider-using-with
            server = subprocess.Popen([NGINX, "-c", path, "-e", self.folder / "error.log"], pass_fds=[fd],
                                      env={**os.environ, "NGINX": f"{fd};"})
        self.addCleanup(server.wait)
        self.addCleanup(server.terminate)
        self.port = port
        self.served = Served(f"http://127.0.0.1:{port}")

    def test_rows_are_those_of_the_file(self):
        expected = self.stats(self.served)
        for url in (f"{self.served.url}/rows.csv", f"{self.served.url}/old/rows.csv",
                    f"http://me:word@127.0.0.1:{self.port}/secret/rows.csv"):
            self.assertEqual(self.stats(self.served, read_test.data(url)), expected)
        stream = {"data.train.stream": "always", "data.train.shuffle_rows": 20000, "data.train.readers": 4}
        self.assertEqual(self.train(self.served, {**stream, "data.train.file": f"{self.served.url}/rows.csv"}),
                         self.train(self.served, stream))

    def test_what_it_refuses_is_said(self):
        secret = read_test.data(f"{self.served.url}/secret/rows.csv")
        self.assertIn("/secret/rows.csv: GET 401 Unauthorized",
                      self.stats(self.served, secret, code=program.BAD_INPUT))
        none = read_test.data(f"{self.served.url}/old/none.csv")
        self.assertIn("/old/none.csv: GET 404 Not Found", self.stats(self.served, none, code=program.BAD_INPUT))


@unittest.skipUnless(ThreadedMotoServer, "there is no moto")
class Moto(read_test.UrlCase):
    def setUp(self):
        super().setUp()
        server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
        server.start()
        self.addCleanup(server.stop)
        host, port = server.get_host_and_port()
        self.served = Served(f"http://{host}:{port}")
        self.s3 = boto3.client("s3", endpoint_url=self.served.url, region_name="eu-north-1",
                               aws_access_key_id="a", aws_secret_access_key="b")
        # buckets are the process's, whichever server made them
        urllib.request.urlopen(f"{self.served.url}/moto-api/reset", data=b"", timeout=program.LIMIT_S).close()
        self.s3.create_bucket(Bucket="bucket", CreateBucketConfiguration={"LocationConstraint": "eu-north-1"})
        for i in range(4):
            self.s3.put_object(Bucket="bucket", Key=f"d/part {i}.csv", Body=read_test.rows(50 + i, seed=i))

    def test_objects_and_lists(self):
        for file, rows in (("s3://bucket/d/part 2.csv", 52), ("s3://bucket/d/part*.csv", 206)):
            self.assertEqual(self.stats(self.served, read_test.data(file))["rows"], rows)
        self.assertIn("404", self.stats(self.served, read_test.data("s3://bucket/none.csv"), code=program.BAD_INPUT))
        self.assertIn("bucket does not exist",
                      self.stats(self.served, read_test.data("s3://other/*.csv"), code=program.BAD_INPUT))

    def test_a_run_writes_there(self):
        """Its shard is large enough for parts."""
        (self.folder / "rows.csv").write_bytes(read_test.rows(200))
        spec = program.changed(checkpoint_test.SPEC, {
            "model": [{"op": "dense", "units": 1200}, {"op": "dense", "units": 1200}, checkpoint_test.SPEC["model"][1]],
            "train": {"last_step": 3, "checkpoint_dir": "s3://bucket/run", "keep_checkpoint_max": 1}})
        (self.folder / "spec.json").write_text(json.dumps(spec))
        for words in (["spec.json"], ["--set", "train.last_step=5", "spec.json"],
                      ["checkpoint", "verify", "s3://bucket/run"]):
            done = program.run(words, self.folder, env=self.env(self.served))
            self.assertEqual(done.returncode, 0, done.stderr)
        listed = self.s3.list_objects_v2(Bucket="bucket", Prefix="run/")["Contents"]
        names = [found["Key"] for found in listed if "tfevents" not in found["Key"]]
        self.assertEqual(names, [f"run/{name}" for name in ("checkpoint", "last_spec.json", "measured.json",
                                                            "model.ckpt-5.data-00000-of-00001", "model.ckpt-5.index")])
        self.assertGreater(max(found["Size"] for found in listed), 16 << 20)


if __name__ == "__main__":
    program.main()
