"""Tasks that find each other through a coordinator: real servers of etcd and ZooKeeper, from Debian's packages. What a
machine lacks is skipped."""
import http.server
import json
import os
import signal
import subprocess
import threading

import program
from program import LIMIT_S, SLOWER, named
from program.cluster import ENDLESS, SPEC
from program.named import TASKS


class Kinds(named.NamedCase):
    """What holds of each kind of server."""

    def test_tasks_find_each_other(self):
        self.write_spec(last_step=30)
        self.start_all()
        self.check_ends()
        self.assertTrue(all(map(self.holder, TASKS)), self.log())
        self.assertEqual(json.loads(self.text("result.json"))["step"], 30)

    def test_places_are_free_at_once_for_the_next_run(self):
        self.write_spec(last_step=5)
        for _ in range(2):
            self.start_all()
            self.check_ends()
            self.assertEqual(self.free_places(), ["ps/0", "ps/1", "worker/0 and 1 more"])  # before their leases end
            self.processes.clear()

    def test_whoever_is_lost_comes_back_elsewhere(self):
        self.write_spec(last_step=ENDLESS, checkpoint_dir="run", save_checkpoint_steps=20)
        self.start_all()
        self.start("evaluator", "evaluator")
        self.wait_for_places()
        program.wait_until(lambda: self.newest_step() > 0, self.log)
        lost = [self.holder(task) for task in ("ps/0", "worker/0")]
        for name in lost:
            self.processes.pop(name).kill()
        visitor = self.visit("get", "global_step")  # by the place that is still taken, and by where the ps is then
        self.start("ps-again", "ps")
        self.start("worker-again", "worker")
        for task, name in (("ps/0", "ps-again"), ("worker/0", "worker-again")):
            self.wait_for(name, f" {task}: found all tasks")
        for name in (self.holder("worker/1"), "evaluator"):
            self.wait_for(name, "ps/0 is at 127.0.0.1:")
        saved = self.newest_step()
        program.wait_until(lambda: self.newest_step() > saved, self.log)
        self.assertGreaterEqual(int(self.answer(visitor)), 0)
        self.processes[self.holder("ps/0")].terminate()
        codes = {self.ended(name) for name in self.processes}
        self.assertEqual(codes, {128 + signal.SIGTERM}, self.log())

    def test_who_was_cut_off_for_too_long_takes_its_place_again(self):
        self.write_idle_spec()
        self.start_all()
        self.wait_for_places()
        name = self.holder("worker/1")
        self.processes[name].send_signal(signal.SIGSTOP)
        program.wait_until(lambda: self.free_places() == ["worker/1"], self.log)
        self.processes[name].send_signal(signal.SIGCONT)
        self.wait_for(name, "the place of worker/1 was lost at the coordinator, and is taken again")
        self.assertEqual(self.free_places(), [])

    def test_who_is_told_to_end_while_it_waits_leaves_its_place_at_once(self):
        self.write_spec(last_step=5)
        for job in ("ps", "worker"):
            self.start(job, job)
        program.wait_until(lambda: self.free_places() == ["ps/1", "worker/1"], self.log)
        self.processes["worker"].terminate()
        self.assertEqual(self.ended("worker"), 128 + signal.SIGTERM, self.log())
        self.assertEqual(self.free_places(), ["ps/1", "worker/0", "worker/1"])  # before its lease ends
        self.processes["ps"].terminate()
        self.assertEqual(self.ended("ps"), 128 + signal.SIGTERM, self.log())
        self.assertEqual(self.free_places(), ["ps/0", "ps/1", "worker/0 and 1 more"])

    def free_places(self):
        """As a task sees them that finds none. A coordinator that has not answered in time is asked again."""
        probes = []

        def is_answered():
            probes.append(subprocess.run(
                [os.path.abspath(program.BINARY), f"--coordinator={self.url}", "--cluster=small",
                 f"--tasks={self.tasks}", "--job_name=evaluator", "--start_timeout=0.001", "spec.json"],
                cwd=self.folder, env=program.environment(), capture_output=True, text=True, check=False,
                timeout=LIMIT_S))
            return named.NO_ANSWER not in probes[-1].stderr
        program.wait_until(is_answered, lambda: probes[-1].stderr)
        told = probes[-1].stderr.partition("waits for ")[2].partition(" (--start")[0].rpartition(", ")[0]
        return told.split(", ") if told else []

    def test_a_visitor_finds_the_ps_and_takes_no_place(self):
        self.write_spec(last_step=ENDLESS)
        early = self.visit("set", "x", "1")
        self.start_all()
        self.assertEqual(self.answer(early), "1")
        self.assertEqual(self.answer(self.visit("add", "x", "2")), "3")
        holders = [row.split()[-1] for row in self.answer(self.visit("ls")).splitlines()[1:]]
        self.assertEqual({ps for held in holders for ps in held.split(",")}, {"0", "1"})
        self.wait_for_places()  # the visitors have none
        self.wait_for_steps(self.holder("worker/0"), 1)  # a job that has not begun waits for another chief
        self.processes[self.holder("ps/0")].terminate()
        self.assertEqual({self.ended(name) for name in self.processes}, {128 + signal.SIGTERM}, self.log())

    def test_a_visitor_names_the_ps_that_it_lacks(self):
        self.assertEqual(self.lacking(), "waits for its ps")
        self.start("lone", "ps")
        program.wait_until(lambda: self.lacking() == "waits for ps/1", self.log)

    def lacking(self):
        def answered():
            visitor = self.visit("ls", f"--timeout={SLOWER}")
            told.append(visitor.communicate(timeout=LIMIT_S)[1])
            self.assertEqual(visitor.returncode, 129, told)
            return named.NO_ANSWER not in told[-1]
        told = []
        program.wait_until(answered, lambda: told)
        return told[-1].partition(" cluster small: ")[2].partition(f", {SLOWER} s (--timeout)")[0]

    def test_a_job_moves_by_its_name(self):
        self.write_spec(last_step=ENDLESS, checkpoint_dir="run")
        self.start_all()
        self.wait_for_places()
        self.wait_for_steps(self.holder("worker/0"), 1)
        gone = self.holder("worker/1")
        self.assertRegex(self.answer(self.ask("scale", "--workers=1")), r"^resized to 1 worker, 2 ps at step \d+$")
        self.assertEqual(self.ended(self.holder("worker/1")), 0, self.log())
        self.assertIn("ends: the job goes on with 1 worker, 2 ps", self.text(gone))

    def test_a_run_goes_on_without_its_coordinator(self):
        self.write_spec(last_step=ENDLESS)
        self.start_all()
        self.wait_for_places()
        name = self.holder("worker/0")
        self.wait_for_steps(name, 1)
        self.server.send_signal(signal.SIGSTOP)
        self.addCleanup(self.server.send_signal, signal.SIGCONT)
        self.wait_for_steps(name, self.steps(name) + 1)
        self.processes[name].terminate()
        self.assertEqual(self.ended(name), 128 + signal.SIGTERM, self.log())
        self.server.send_signal(signal.SIGCONT)

    def test_another_number_of_tasks_is_refused(self):
        """By whoever looks last."""
        self.write_spec(last_step=30)
        self.start("two", "ps")
        self.start("three", "worker", tasks="ps=2,worker=3")
        program.wait_until(lambda: any(one.poll() is not None for one in self.processes.values()), self.log)
        name = next(name for name, one in self.processes.items() if one.poll() is not None)
        self.assertEqual(self.ended(name), program.BAD_INPUT, self.log())
        own, other = ("2", "3") if name == "two" else ("3", "2")
        self.assertIn(f"says --tasks=ps=2,worker={other}, this task --tasks=ps=2,worker={own}", self.text(name))

    def test_one_that_says_another_number_of_tasks_is_refused_and_not_the_others(self):
        self.write_spec(last_step=30)
        self.start("wrong", "worker", tasks="ps=2,worker=3")
        for number, job in enumerate(("worker", "ps", "ps")):
            self.start(f"{job}-{number}", job)
        self.assertEqual(self.ended("wrong"), program.BAD_INPUT, self.log())
        self.assertIn("says --tasks=ps=2,worker=2, this task --tasks=ps=2,worker=3", self.text("wrong"))
        del self.processes["wrong"]
        self.start("right", "worker")
        self.check_ends()

    def test_who_finds_no_place_says_so(self):
        self.write_idle_spec()
        self.start_all()
        self.wait_for_places()
        for more, told in (([], "all 2 places of a ps are taken"), (["--task_index=1"], "the place of ps/1 is taken")):
            with self.subTest(told):
                self.assertIn(told, self.turned_away(*more))

    def turned_away(self, *more):
        """What one ps too many says. A coordinator that has not answered in time is asked again."""
        for name in (f"third-{number}" for number in range(LIMIT_S)):
            self.start(name, "ps", f"--start_timeout={SLOWER}", *more)
            self.assertNotEqual(self.ended(name), 0)
            if named.NO_ANSWER not in self.text(name):
                return self.text(name)
        self.fail(self.log())


class Etcd(named.Etcd, Kinds):
    def test_the_next_server_is_asked_where_one_is_gone(self):
        gone, = self.hold(1)
        self.url = self.url.replace("etcd://", f"etcd://{gone},")
        self.write_spec(last_step=5)
        self.start_all()
        self.check_ends()


class ZooKeeper(named.ZooKeeper, Kinds):
    pass


class Words(program.FolderCase):
    def check_refused(self, words, told, end="spec.json"):
        done = program.run([*words, end], self.folder)
        self.assertEqual(done.returncode, program.BAD_INPUT, done.stderr)
        self.assertIn(told, done.stderr)
        self.assertNotIn("secret", done.stderr)

    def test_words_of_a_visitor_that_make_no_sense(self):
        url = "--coordinator=etcd://localhost"
        for words, told in (
                ([], "var ls needs --ps_hosts, or --coordinator and --cluster"),
                ([url], "--coordinator needs --cluster=NAME"),
                (["--cluster=a"], "--cluster goes with --coordinator"),
                ([url, "--cluster=a", "--ps_hosts=a:1"], "so that --ps_hosts is in its way"),
                ([url, "--cluster=a/b"], "--cluster: expected up to 100 letters"),
                (["--coordinator=consul://x/", "--cluster=a"], "expected etcd://host:2379/folder (etcds:// by TLS) or zoo")):
            with self.subTest(told):
                self.check_refused(["var", *words], told, end="ls")

    def test_words_that_make_no_sense(self):
        (self.folder / "spec.json").write_text(json.dumps(SPEC))
        whole = ["--coordinator=etcd://localhost", "--cluster=a", "--tasks=ps=1,worker=1", "--job_name=ps"]
        for words, told in (
                (whole[:1], "--coordinator needs --cluster=NAME"),
                (whole[:2], "--coordinator needs --tasks=ps=N,worker=N"),
                (whole[:3], "--coordinator needs --job_name"),
                (whole[1:], "--cluster goes with --coordinator"),
                ([*whole, "--ps_hosts=a:1"], "so that --ps_hosts is in its way"),
                ([*whole, "--ranks=ps=1"], "--ranks and --coordinator say where tasks are"),
                ([*whole, "--task_index=1024"], "--task_index 1024: a cluster has at most 1024 ps"),
                ([*whole, "--workers=2"], "--tasks says how many tasks take part at first, so that --workers is in"),
                ([*whole, "--cluster=a/b"], "--cluster: expected up to 100 letters"),
                ([*whole, "--tasks=ps=1"], "--tasks: expected ps=N,worker=N"),
                ([*whole, "--tasks=ps=1,ps=1"], "--tasks: expected ps=N,worker=N"),
                ([*whole, "--coordinator=consul://x/"], "expected etcd://host:2379/folder (etcds:// by TLS) or zoo"),
                ([*whole, "--coordinator=etcd://me:secret@x/"], "a URL that all can see says no user: ETCDCTL_USER"),
                ([*whole, "--coordinator=etcd://x:port/"], "expected a port from 0 to 65535"),
                ([*whole, "--coordinator=etcd://x/a b"], "a folder is of letters")):
            with self.subTest(told):
                self.check_refused(words, told)


    def test_a_coordinator_that_is_not_there_is_waited_for(self):
        for server, told in (("127.0.0.1:1", "no answer in 0.3 s (--start_timeout): http"),
                             ("nobody.invalid:1", "the coordinator was not reached within 0.3 s (--start_timeout): nobody")):
            done = program.run([f"--coordinator=etcd://{server}/x", "--cluster=a", "--tasks=ps=1,worker=1",
                                "--job_name=ps", "--start_timeout=0.3"], self.folder)
            self.assertEqual(done.returncode, 129, done.stderr)
            self.assertIn(told, done.stderr)

    def test_what_went_wrong_is_said_though_the_lease_cannot_be_given_back(self):
        """Of a server that says no to that alone, and knows no ps."""
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Unrelenting)
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        self.addCleanup(server.server_close)
        self.addCleanup(thread.join)
        self.addCleanup(server.shutdown)
        done = program.run(["var", "ls", f"--coordinator=etcd://127.0.0.1:{server.server_port}/x", "--cluster=a",
                            "--timeout=0.3"], self.folder)
        self.assertEqual(done.returncode, 129, done.stderr)
        self.assertIn("cluster a: waits for its ps, 0.3 s (--timeout)", done.stderr)
        self.assertTrue(Unrelenting.was_asked)


class Unrelenting(http.server.BaseHTTPRequestHandler):
    was_asked = False

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        is_return = self.path.endswith("/lease/revoke")
        Unrelenting.was_asked |= is_return
        body = b'{"ID": "7", "result": {"TTL": "10"}}'
        self.send_response(400 if is_return else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


del Kinds  # it is no test by itself

if __name__ == "__main__":
    program.main()
