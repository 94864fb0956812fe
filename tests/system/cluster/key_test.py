"""A cluster that is closed by a key: who has it trains and looks on, who has another or none does not."""
import dataclasses
import os
import socket
import unittest

import program
from program.clicks import CLICKS
from program.cluster import ClusterCase, Plan, with_files

LAST_STEP = 30
FIRST_S = 1  # that a visitor without the key asks for at first


@unittest.skipUnless(program.has_tls(), "this dtrain was built without TLS")
class Key(ClusterCase):
    def key(self, name, text, mode=0o600):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(path, mode)
        return path

    def setUp(self):
        super().setUp()
        self.ours = "--key_file=" + self.key("ours", "what all tasks of the job have")
        self.other = "--key_file=" + self.key("other", "what tasks of another job have")

    def plan(self, *flags, **more):
        return Plan(flags=["--transport=tcp", self.ours, *flags], **more)

    def numbers(self, plan):
        cluster = self.run_to_end(with_files(plan))
        return [(line["step"], line["loss"]) for line in cluster.metrics()]

    def test_training_has_the_same_bits(self):
        for about, changes in (("digits", {}), ("tables", CLICKS), ("in graph", {"train.replication": "in_graph"})):
            with self.subTest(about):
                plan = self.plan(changes={**changes, "train.mode": "sync"})
                clear = dataclasses.replace(plan, flags=["--transport=tcp"])
                found = self.numbers(plan)
                self.assertEqual(found[-1][0], LAST_STEP)
                self.assertEqual(found, self.numbers(clear))

    def visit(self, cluster, *flags):
        words = ["var", "ls", "--ps_hosts=" + ",".join(cluster.hosts["ps"]), *flags]
        return program.run(words, self.folder)

    def test_visitors_need_the_key(self):
        cluster = self.start_endless(self.plan())
        said = self.visit(cluster, self.ours)
        self.assertEqual(said.returncode, 0, said.stderr)
        self.assertIn("trained", said.stdout)
        self.assert_kept_out(cluster, [], "speaks TLS", "does not speak TLS")
        stranger = "does not prove that it belongs to the job"
        self.assert_kept_out(cluster, [self.other], stranger, stranger)

    def assert_kept_out(self, cluster, flags, why, at_ps):
        """It and ps/0 say why, as soon as its limit is long enough for both to hear of that."""
        seconds, said = FIRST_S / 2, None

        def is_told():
            nonlocal seconds, said
            seconds *= 2
            said = self.visit(cluster, f"--timeout={seconds}", *flags)
            self.assertNotEqual(said.returncode, 0)
            return why in said.stderr and at_ps in cluster.tasks["ps/0"].text()
        cluster.wait_until(is_told, lambda: f"{why!r} of a visitor, who said last: {said}")

    def test_a_visitor_gives_up_on_who_never_proves_who_it_is(self):
        """What is freed holds something else at once, so that nothing of it is used any more unseen."""
        with socket.create_server(("127.0.0.1", 0)) as silent:
            hosts = f"--ps_hosts=127.0.0.1:{silent.getsockname()[1]}"
            for words in (["var", "ls"], ["status"], ["scale", "--workers=2"], ["stop"], ["logs"]):
                with self.subTest(words):
                    said = program.run([*words, hosts, self.ours, f"--timeout={FIRST_S / 4}"], self.folder,
                                       {"MALLOC_PERTURB_": "165"})
                    self.assertEqual(said.returncode, 129, said.stderr)
                    self.assertIn("did not come within 0.25 s (--timeout)", said.stderr)

    def test_a_worker_with_another_key_does_not_train(self):
        """However often it asks."""
        plan = Plan(workers=1, flags=["--transport=tcp"],
                    flags_of={"ps/0": [self.ours], "ps/1": [self.ours], "worker/0": [self.other]})
        cluster = self.start(plan, lambda c: c.tasks["ps/0"].text().count("does not prove that it belongs") >= 3)
        self.assertFalse(cluster.tasks["worker/0"].has_ended(), cluster.story())
        self.assertNotIn("step 1 ", cluster.tasks["worker/0"].text())

    def test_who_listens_to_other_hosts_has_a_key(self):
        """Or says that it shall do without."""
        task = ["--job_name=ps", "--task_index=0", "--ps_hosts=127.0.0.1:0", "--worker_hosts=127.0.0.1:0",
                "--ready_file=ready", "--start_timeout=0.2"]
        for bind, flags, code in (("0.0.0.0", [], 2), ("[::]", [], 2), ("127.0.0.1", [], 129), ("0.0.0.0", [self.ours], 129),
                                  ("0.0.0.0", ["--insecure"], 129)):
            with self.subTest(bind, flags=flags):
                said = program.run([*task, f"--bind={bind}", *flags], self.folder)
                self.assertEqual(said.returncode, code, said.stderr)
                if code == 2:
                    self.assertRegex(said.stderr, r"can be reached from other hosts, and there is no key: openssl rand -hex 32 "
                                                  r"> job.key && chmod 600 job.key makes one, --key_file=job.key gives it to")

    def test_what_is_wrong_with_the_files_is_said_with_the_flag(self):
        opened = self.key("open", "what everybody can read", 0o644)
        task = ["--job_name=ps", "--task_index=0", "--ps_hosts=127.0.0.1:1", "--worker_hosts=127.0.0.1:2"]
        for flags, why in (([f"--key_file={opened}"], "--key_file: .*open: others may read"),
                           (["--key_file=/no/file"], "--key_file: /no/file: No such file"),
                           ([self.ours, "--tls_cert=x"], "--key_file: there is a certificate, too"),
                           (["--tls_cert=x"], "--tls_key is missing")):
            with self.subTest(why):
                said = program.run([*task, *flags], self.folder)
                self.assertEqual(said.returncode, 2)
                self.assertRegex(said.stderr, why)


if __name__ == "__main__":
    program.main()
