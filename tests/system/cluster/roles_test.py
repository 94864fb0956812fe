"""What a certificate is for: tasks take part, writers change what they visit, readers look on, and who has another one, or
none, is heard by nobody. Certificates that change while a job runs are taken for the connections that come then."""
import os
import shutil
import subprocess
import unittest

import program
from program.cluster import ENDLESS, ClusterCase, Plan

BAD_INPUT, LOST, LATE = 2, 128, 129
FIRST_S = 1  # that a visitor whom nobody hears asks for at first
NEW = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes"
ROLES = {"task": "URI:dtrain:task", "writer": "URI:dtrain:writer", "reader": "URI:dtrain:reader", "any": "DNS:host.example",
         "both": "DNS:host.example,URI:dtrain:reader,URI:dtrain:writer", "odd": "URI:dtrain:admin"}
LOOKS = {"var ls": ["var", "ls"], "var get": ["var", "get", "logits/bias"], "status": ["status"], "logs": ["logs"],
         "profile": ["profile", "--steps=1", "--out=timeline.json"]}
CHANGES = {"var set": ["var", "set", "logits/bias[0]", "0.5"], "var add": ["var", "add", "logits/bias[0]", "0.5"],
           "var set, one of its own": ["var", "set", "mine", "7"], "set": ["set", "last_step", str(ENDLESS + 1)],
           "scale": ["scale", "--workers=1"], "save": ["save"], "drain": ["drain", "worker/1"], "stop": ["stop"]}


@unittest.skipUnless(program.has_tls() and shutil.which("openssl"), "built without TLS, or there is no openssl")
class Roles(ClusterCase):
    def run_openssl(self, words):
        subprocess.run(f"umask 077 && openssl {words}", shell=True, cwd=str(self.folder), check=True, capture_output=True,
                       timeout=program.LIMIT_S)

    def make_authority(self, name):
        self.run_openssl(f"req -x509 {NEW} -subj /CN={name} -keyout {name}.key -out {name}.pem")

    def make(self, name, names, authority="ca"):
        self.run_openssl(f"req {NEW} -subj /O={name} -keyout {name}.key -out {name}.csr")
        with open(os.path.join(self.folder, "names"), "w", encoding="ascii") as file:
            file.write(f"subjectAltName={names}\n")
        self.run_openssl(f"x509 -req -in {name}.csr -CA {authority}.pem -CAkey {authority}.key -CAcreateserial "
                         f"-out {name}.pem -extfile names")

    def setUp(self):
        super().setUp()
        self.make_authority("ca")
        for name, names in ROLES.items():
            self.make(name, names)

    def proof(self, name, authority="ca"):
        def path(end):
            return os.path.join(self.folder, end)
        return [f"--tls_cert={path(name + '.pem')}", f"--tls_key={path(name + '.key')}",
                f"--tls_ca={path(authority + '.pem')}"]

    def plan(self, role_of=(), **more):
        role_of = dict(role_of)
        tasks = Plan(**more)
        flags_of = {name: [*tasks.flags_of.get(name, []), *self.proof(role_of.get(name, "task"))] for name in tasks.names()}
        return Plan(**{**more, "flags": ["--transport=tcp", *tasks.flags], "flags_of": flags_of})

    def ask(self, cluster, name, words, seconds=program.LIMIT_S):
        hosts = "--ps_hosts=" + ",".join(cluster.hosts["ps"])
        return program.run([*words, hosts, f"--timeout={seconds}", *self.proof(name)], cluster.folder)

    def test_readers_look_and_writers_change(self):
        cluster = self.start_endless(self.plan(changes={"train.checkpoint_dir": "run"}))
        for about, words in LOOKS.items():
            for name in ("reader", "writer", "task", "any"):
                with self.subTest(about, name=name):
                    said = self.ask(cluster, name, words)
                    self.assertEqual(said.returncode, 0, said.stderr)
        for about, words in CHANGES.items():
            with self.subTest(about, name="reader"):
                said = self.ask(cluster, "reader", words)
                self.assertEqual(said.returncode, BAD_INPUT, said.stderr)
                self.assertIn("a visitor that changes nothing (URI:dtrain:reader)", said.stderr)
        for name in ("writer", "both", "any"):
            with self.subTest(name):
                said = self.ask(cluster, name, CHANGES["var add"])
                self.assertEqual(said.returncode, 0, said.stderr)
        self.assertFalse(any(task.has_ended() for task in cluster.tasks.values()), cluster.story())
        said = self.ask(cluster, "writer", CHANGES["stop"])
        self.assertEqual(said.returncode, 0, said.stderr)
        cluster.wait()

    def test_a_role_that_nobody_knows_is_none(self):
        cluster = self.start_endless(self.plan())
        said = self.ask(cluster, "odd", LOOKS["var ls"])
        self.assertEqual(said.returncode, BAD_INPUT, said.stderr)
        self.assertIn("its certificate is not that of a visitor", said.stderr)

    def assert_takes_no_part(self, changes):
        """Of worker/1, which the others do without."""
        changes = {**changes, "train.mode": "async"}
        for name in ("reader", "writer", "odd"):
            with self.subTest(name):
                cluster = self.start(self.plan({"worker/1": name}, changes=changes),
                                     lambda c: c.tasks["worker/1"].has_ended() or c.tasks["worker/0"].has_ended())
                self.assertEqual(cluster.tasks["worker/1"].code(), BAD_INPUT, cluster.story())
                self.assert_says(cluster, "worker/1", r"not that of a task \(URI:dtrain:task\)")
                self.assertNotIn("step 1 ", cluster.tasks["worker/1"].text())

    def test_a_visitor_is_no_worker(self):
        self.assert_takes_no_part({"train.last_step": ENDLESS})

    def test_a_visitor_is_no_ps(self):
        """Whoever has its address and its certificate: the workers wait for another one."""
        for name in ("reader", "writer", "odd"):
            with self.subTest(name):
                why = "its certificate is not that of a task"
                soon = {f"worker/{i}": ["--start_timeout=3"] for i in range(2)}  # the ps is there until they have ended
                cluster = self.start(self.plan({"ps/1": name}, flags_of=soon), lambda c: all(
                    c.tasks[f"worker/{i}"].has_ended() for i in range(2)))
                for worker in ("worker/0", "worker/1"):
                    self.assertEqual(cluster.tasks[worker].code(), LATE, cluster.story())
                    self.assert_says(cluster, worker, why)

    def test_certificates_are_renewed_while_the_job_runs(self):
        """Of another authority: visitors of the old one are not heard any more, those of the new one are."""
        cluster = self.start_endless(self.plan())
        self.assertEqual(self.ask(cluster, "reader", LOOKS["status"]).returncode, 0)
        self.make_authority("next")
        self.make("new", ROLES["task"], "next")
        self.make("looks", ROLES["reader"], "next")
        for old, new in (("task.key", "new.key"), ("task.pem", "new.pem"), ("ca.pem", "next.pem")):
            shutil.copy(os.path.join(self.folder, new), os.path.join(self.folder, "moved"))
            os.replace(os.path.join(self.folder, "moved"), os.path.join(self.folder, old))

        def is_renewed():
            hosts = "--ps_hosts=" + ",".join(cluster.hosts["ps"])
            return program.run(["status", hosts, f"--timeout={FIRST_S}", *self.proof("looks", "next")],
                               cluster.folder).returncode == 0
        cluster.wait_until(is_renewed, "the new certificates")
        self.assert_says(cluster, "ps/0", "has changed and was read again")
        self.assertNotEqual(self.ask(cluster, "reader", LOOKS["status"], FIRST_S).returncode, 0)
        self.assertFalse(any(task.has_ended() for task in cluster.tasks.values()), cluster.story())


if __name__ == "__main__":
    program.main()
