"""dtrain doctor: this host, a spec and its folders, and the tasks of a cluster, as seen from here."""
import json
import os
import socket
import subprocess
import threading

import program
from program.cluster import SPEC, ClusterCase, Plan, hold_addresses


class Doctor(ClusterCase):
    def doctor(self, *words, code=0, env=None):
        """What it found: subject -> (health, text)."""
        done = program.run(["doctor", "--json", *words], self.folder, env=env)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        found = json.loads(done.stdout)
        self.assertEqual(found["bad"] > 0, code == 1)
        told = {}
        for one in found["findings"]:
            told.setdefault(one["subject"], []).append((one["health"], one["text"]))
        return told

    def write_spec(self, **changes):
        (self.folder / "spec.json").write_text(json.dumps(program.changed(SPEC, changes)))

    def test_a_host_alone_is_described(self):
        told = self.doctor()
        for subject in ("dtrain", "processor", "cores", "memory", "open files", "temporary files", "clock"):
            self.assertIn(subject, told)
            self.assertNotEqual(told[subject][0][0], "bad")
        done = program.run(["doctor"], self.folder)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertRegex(done.stdout.splitlines()[-1], r"^(nothing is wrong|0 bad, \d+ warnings?)$")

    def test_what_a_task_may_not_use_is_told(self):
        self.assertEqual(self.doctor(env={"TMPDIR": "/nowhere"})["temporary files"][0][0], "warning")
        words = ["--job_name=ps", "--task_index=0", "--ps_hosts=127.0.0.1:0",
                 "--worker_hosts=" + ",".join(f"127.0.0.1:{port}" for port in range(20001, 20061)), "--answer_timeout=0.1"]
        done = program.run(["doctor", "--json", *words], self.folder, before=["sh", "-c", 'ulimit -n 100 && exec "$0" "$@"'])
        findings = {one["subject"]: one for one in json.loads(done.stdout)["findings"]}
        self.assertEqual((done.returncode, findings["open files"]["health"]), (1, "bad"))

    def test_a_spec_and_its_folders(self):
        self.write_spec(**{"train.checkpoint_dir": "run/deep"})
        told = self.doctor("spec.json")
        self.assertRegex(told["spec"][0][1], "fingerprint [0-9a-f]{16}")
        self.assertRegex(told["train.checkpoint_dir"][0][1], r"run/deep \(will be made\): \d+ MB/s")
        self.assertEqual(sorted(os.listdir(self.folder)), ["spec.json"])  # it leaves nothing
        (self.folder / "file").write_text("")
        self.write_spec(**{"train.checkpoint_dir": "file/run"})
        self.assertEqual(self.doctor("spec.json", code=1)["train.checkpoint_dir"][0][0], "bad")
        (self.folder / "spec.json").write_text("{")
        self.assertEqual(self.doctor("spec.json", code=1)["spec"][0][0], "bad")
        self.assertEqual(self.doctor("nosuch.json", code=1)["spec"][0][0], "bad")

    def test_the_tasks_of_a_job(self):
        cluster = self.start_endless(Plan(ps=2, workers=1))
        told = self.doctor(f"--ps_hosts={','.join(cluster.hosts['ps'])}", f"--worker_hosts={cluster.hosts['worker'][0]}")
        for ps in ("ps/0", "ps/1"):
            self.assertEqual([health for health, _ in told[ps]], ["ok", "ok"], told)
            self.assertIn("it is a ps", told[ps][1][1])
        own = self.doctor("--job_name=ps", "--task_index=1", f"--ps_hosts={','.join(cluster.hosts['ps'])}",
                          f"--worker_hosts={cluster.hosts['worker'][0]}")
        self.assertRegex(own["ps/1"][0][1], "cannot listen there: .*in use")
        self.assertEqual([own["key"][0][0], told["key"][0][0]], ["note", "note"])
        (self.folder / "job.key").write_text("k" * 64)
        (self.folder / "job.key").chmod(0o600)
        keyed = self.doctor("--job_name=evaluator", f"--ps_hosts={cluster.hosts['ps'][0]}", "--key_file=job.key",
                            "--worker_hosts=127.0.0.1:9")
        self.assertEqual((keyed["key"][0][0], keyed["ps/0"][1][0]), ("ok", "warning"))

    def test_who_is_no_task_and_who_is_not_there(self):
        with socket.create_server(("127.0.0.1", 0)) as web, socket.create_server(("127.0.0.1", 0)) as gone:
            at = [f"127.0.0.1:{server.getsockname()[1]}" for server in (web, gone)]
            gone.close()

            def answer():
                while True:
                    try:
                        link = web.accept()[0]
                    except OSError:
                        return
                    with link:
                        link.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

            thread = threading.Thread(target=answer, daemon=True)
            thread.start()
            told = self.doctor("--job_name=evaluator", f"--ps_hosts={at[0]},{at[1]},no.such.invalid:1",
                               "--worker_hosts=127.0.0.1:9", "--answer_timeout=20", code=1)
            web.shutdown(socket.SHUT_RDWR)
        self.assertIn(("warning", 'sent something else than a message: "HTTP/1.1 400 Bad Request"'), told["ps/0"])
        self.assertEqual([health for health, _ in told["ps/1"]], ["note"])
        self.assertEqual([health for health, _ in told["ps/2"]], ["bad"])

    def test_links_between_hosts_are_measured_by_all_at_once(self):
        sockets, at = hold_addresses(3)
        for one in sockets:
            self.addCleanup(one.close)
        hosts = [f"--ps_hosts={at[0]}", f"--worker_hosts={at[1]},{at[2]}"]

        def begin(job, index, seconds):
            return subprocess.Popen([program.BINARY, "doctor", "--json", f"--links={seconds}", f"--job_name={job}",
                                     f"--task_index={index}", *hosts], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                    env=program.environment(), cwd=self.folder, text=True)
        running = [begin(job, index, 60) for job, index in (("ps", 0), ("worker", 0))]
        others = {"ps/0": "worker/0", "worker/0": "ps/0"}
        for task, (own, other) in zip(running, others.items()):
            found = {one["subject"]: one for one in json.loads(task.communicate(timeout=program.LIMIT_S)[0])["findings"]}
            self.assertEqual(task.returncode, 0)
            self.assertRegex(found[f"{own} to {other}"]["text"], r"[\d.]+ ms there and back, [\d.e+]+ Gbit/s")
            self.assertIn("nothing is measuring there", found[f"{own} to worker/1"]["text"])
        self.assertIn("links", self.doctor("--links=1", "--job_name=evaluator", *hosts))

    def test_words_that_are_none_are_refused(self):
        for words in (["--jsn"], ["--answer_timeout=0"], ["a.json", "b.json"], ["--job_name=ps"]):
            done = program.run(["doctor", *words], self.folder)
            self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
            self.assertRegex(done.stderr, "^dtrain: .+\n$")


if __name__ == "__main__":
    program.main()
