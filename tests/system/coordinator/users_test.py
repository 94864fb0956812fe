"""Coordinators that want to know who asks: etcd by TLS with users, ZooKeeper with nodes that are one user's alone."""
import json
import os
import shutil
import ssl
import subprocess
import unittest

import program
from program import named
from program.named import LIMIT_S

SECRET = "dromedary"
# etcd's gateway takes no client whose certificate has a common name
CERTIFICATES = """
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout ca.key -out ca.pem -subj /CN=tests
for name in server client; do
    openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout $name.key -out $name.csr -subj /O=$name
    echo subjectAltName=IP:127.0.0.1 > names
    openssl x509 -req -in $name.csr -CA ca.pem -CAkey ca.key -CAcreateserial -out $name.pem -extfile names
done
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout no.key -out stranger.pem -subj /CN=no
"""
USERS = f"""
etcdctl user add root:root
etcdctl user grant-role root root
etcdctl role add tasks
etcdctl role grant-permission tasks --prefix=true readwrite /tests/
etcdctl user add dtrain:{SECRET}
etcdctl user grant-role dtrain tasks
etcdctl auth enable
"""


class UsersCase(named.NamedCase):
    def test_a_whole_run_by_its_user(self):
        self.write_spec(last_step=20)
        self.start_all("--log_level=debug")
        self.check_ends()
        self.assertEqual(json.loads(self.text("result.json"))["step"], 20)
        self.assertNotIn(SECRET, self.log())

    def check_refused(self, told, code=program.BAD_INPUT, **who):
        """Of a visitor."""
        env = {name: value for name, value in {**self.who, **who}.items() if value is not None}
        done = None

        def is_answered():
            nonlocal done
            done = subprocess.run([os.path.abspath(program.BINARY), "var", "ls", f"--coordinator={self.url}",
                                   "--cluster=small", "--timeout=1"], cwd=self.folder, env=program.environment(env),
                                  capture_output=True, text=True, check=False, timeout=LIMIT_S)
            return told in done.stderr or named.NO_ANSWER not in done.stderr
        program.wait_until(is_answered, lambda: done.stderr)
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertIn(told, done.stderr)
        self.assertNotIn(SECRET, done.stderr)


@unittest.skipUnless(shutil.which("etcdctl") and shutil.which("openssl"), "there is no etcdctl or no openssl")
class Etcd(named.Etcd, UsersCase):
    scheme = "etcds"

    @classmethod
    def start_server(cls):
        cls.do(CERTIFICATES)
        cls.tls = ssl.create_default_context(cafile=cls.at_server / "ca.pem")
        cls.tls.load_cert_chain(cls.at_server / "client.pem", cls.at_server / "client.key")
        url = super().start_server("--cert-file=server.pem", "--key-file=server.key", "--client-cert-auth",
                                   "--trusted-ca-file=ca.pem")
        files = {f"ETCDCTL_{name}": str(cls.at_server / file)
                 for name, file in (("CACERT", "ca.pem"), ("CERT", "client.pem"), ("KEY", "client.key"))}
        patience = {f"ETCDCTL_{what}_TIMEOUT": f"{LIMIT_S}s" for what in ("COMMAND", "DIAL")}
        cls.tool = {**files, **patience, "ETCDCTL_API": "3", "ETCDCTL_ENDPOINTS": url.replace("etcds", "https")}
        cls.do(USERS, cls.tool)
        cls.who = {**files, "ETCDCTL_USER": "dtrain", "ETCDCTL_PASSWORD": SECRET}
        return url

    @classmethod
    def do(cls, script, env=None):
        done = subprocess.run(["sh", "-ec", script], cwd=cls.at_server, env=program.environment(env), text=True, check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=LIMIT_S)
        if done.returncode:
            raise AssertionError(done.stdout)

    def test_who_is_not_let_in_hears_why(self):
        for told, who in (
                ("user dtrain: https://", {"ETCDCTL_PASSWORD": f"no {SECRET}"}),
                ("authentication failed", {"ETCDCTL_USER": f"dtrain:no {SECRET}", "ETCDCTL_PASSWORD": None}),
                ("ETCDCTL_USER=dtrain: expected USER:PASSWORD, or ETCDCTL_PASSWORD", {"ETCDCTL_PASSWORD": None}),
                ("without ETCDCTL_USER: https://", {"ETCDCTL_USER": None}),
                ("certificate problem", {"ETCDCTL_CACERT": str(self.at_server / "stranger.pem")}),
                ("error setting certificate", {"ETCDCTL_CACERT": "/no/such/file"}),
                ("could not load PEM client certificate", {"ETCDCTL_CERT": "/no/such/file"})):
            with self.subTest(told):
                self.check_refused(told, **who)
        self.check_refused("https://127.0.0.1", code=129, ETCDCTL_CERT=None, ETCDCTL_KEY=None)
        self.check_refused("waits for its ps", code=129, ETCDCTL_USER=f"dtrain:{SECRET}", ETCDCTL_PASSWORD=None)
        self.url = self.url.replace("/tests/", "/others/")
        self.check_refused("permission denied")

    def test_who_was_logged_out_logs_in_again(self):
        self.write_spec(last_step=20)
        self.start("ps-0", "ps", "--log_level=debug")
        program.wait_until(lambda: self.places() == 1, self.log)
        self.do(f"echo {SECRET} | etcdctl --user root:root user passwd --interactive=false dtrain", self.tool)
        for name, job in (("ps-1", "ps"), ("worker-0", "worker"), ("worker-1", "worker")):
            self.start(name, job)
        self.check_ends()

    def places(self):
        found = subprocess.run(["etcdctl", "--user", "root:root", "get", "--prefix", "--keys-only",
                                "/tests/" + self.url.rpartition("/")[2]], env=program.environment(self.tool), capture_output=True, text=True, check=True,
                               timeout=LIMIT_S)
        return len(found.stdout.split())


class ZooKeeper(named.ZooKeeper, UsersCase):
    who = {"DTRAIN_ZOOKEEPER_AUTH": f"dtrain:{SECRET}"}

    def test_who_is_not_let_in_hears_why(self):
        self.start("lone", "ps")
        program.wait_until(lambda: self.lacks("ps/1"), self.log)
        for told, user in (("not authenticated: set DTRAIN_ZOOKEEPER_AUTH", None),
                           ("not authenticated", f"dtrain:no {SECRET}"),
                           ("DTRAIN_ZOOKEEPER_AUTH: expected USER:PASSWORD", "dtrain")):
            with self.subTest(told):
                self.check_refused(told, DTRAIN_ZOOKEEPER_AUTH=user)

    def lacks(self, task):
        visitor = self.visit("ls", "--timeout=0.5")
        return f"waits for {task}" in visitor.communicate(timeout=LIMIT_S)[1]


del UsersCase  # it is no test by itself

if __name__ == "__main__":
    program.main()
