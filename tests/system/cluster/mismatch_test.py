"""Tasks that do not fit together, that are there twice or not at all: who is refused, with what
words, and that the job of the others continues."""
import dataclasses
import os
import re
import signal
import socket
import unittest

import program
from program.cluster import START_S, Cluster, ClusterCase, Plan, Task, by_flags, is_listened_on
from program.commands import MOUNTING, NO_MOUNT

SYNC = {"train.mode": "sync"}
TAKEN = rf"already in use by pid {os.getpid()} \(python3?[.\d]*\)"
LATER = "a" * 64  # a label that no resolver would ask anybody for
NOBODY = f"{LATER}:1"
LONGER_S = 4 * START_S  # than whoever gives up
ABSENT_S = 60  # for one that cannot come; all others have come long before
INPUT, LOST, TIMEOUT, TERMINATED = 2, 128, 129, 143
SPECS_DIFFER = (r"refused this worker: the spec differs: worker/1 has fingerprint ([0-9a-f]{16}), "
                r"worker/0 has ([0-9a-f]{16})")


def told_by(task, change):
    """Flags as they should be, but for what is changed in the hosts of one task."""
    def told(name, hosts, spec):
        return by_flags(name, change(hosts) if name == task else hosts, spec)
    return told


class Mismatch(ClusterCase):
    def assert_ended(self, cluster, name, code, pattern):
        task = cluster.tasks[name]
        cluster.wait_until(task.has_ended, f"{name} to end")
        self.assertEqual(task.code(), code, cluster.story())
        self.assert_says(cluster, name, pattern)

    def go_on_without(self, cluster, wrong):
        """The job waits for the task, which comes as it should be, and all ends well."""
        cluster.plan = dataclasses.replace(cluster.plan, flags_of={}, told=by_flags)
        cluster.start(wrong, label=f"{wrong} again")
        codes = cluster.wait()
        del codes[wrong]
        self.assertEqual(codes, dict.fromkeys(codes, 0), cluster.story())

    def refuse_spec(self, order):
        plan = Plan(changes=SYNC, order=order, flags_of={"worker/1": ["--seed=2"]})
        cluster = self.start(plan, lambda c: c.tasks["worker/1"].has_ended())
        self.assert_ended(cluster, "worker/1", INPUT, SPECS_DIFFER)
        one, other = re.search(SPECS_DIFFER, cluster.tasks["worker/1"].text()).groups()
        self.assertNotEqual(one, other)
        self.go_on_without(cluster, "worker/1")

    def test_another_spec_is_refused_and_the_job_goes_on(self):
        for order in (["ps/0", "ps/1", "worker/0", "worker/1"],
                      ["worker/1", "worker/0", "ps/1", "ps/0"],
                      ["ps/0", "worker/1", "ps/1", "worker/0"]):
            with self.subTest(order=order):
                self.refuse_spec(order)

    def test_a_ps_with_the_same_spec_takes_all_though_it_opens_no_data(self):
        with open(os.path.join(self.folder, "rows.csv"), "w", encoding="utf-8") as file:
            file.write("x,y\n" + "".join(f"{x},{x % 2}\n" for x in range(40)))
        source = {"format": "csv", "file": os.path.join(self.folder, "rows.csv"), "label": "y"}
        for about, changes in {"digits": {}, "csv": {
                "data.train": source, "data.eval": source, "data.batch_size": 4,
                "model": [{"op": "dense", "units": 2}]}}.items():
            with self.subTest(about):
                self.run_to_end(Plan(changes=changes, flags_of={
                    f"ps/{ps}": ["spec.json"] for ps in range(2)}))

    def test_a_ps_with_another_spec_refuses_all(self):
        plan = Plan(flags_of={"ps/0": ["--seed=2", "spec.json"]})
        cluster = self.start(plan, lambda c: c.tasks["worker/0"].has_ended() and
                             c.tasks["worker/1"].has_ended())
        for name in ("worker/0", "worker/1"):
            self.assert_ended(cluster, name, INPUT, f"the spec differs: {name} has fingerprint "
                              r"[0-9a-f]{16}, ps/0 has [0-9a-f]{16}")

    def refuse_files(self, rows, other, pattern, **of_source):
        """Each worker reads a folder of its own: worker/1 other rows than the chief. It may come again with the
        same ones."""
        flags_of = {}
        for name, lines in (("worker/0", rows), ("worker/1", other)):
            folder = self.folder / f"data-{name[-1]}"
            folder.mkdir(exist_ok=True)
            (folder / "rows.csv").write_text("a,y\n" + "".join(lines))
            flags_of[name] = [f"--data_dir={folder}"]
        source = {"format": "csv", "file": "rows.csv", "label": "y", **of_source}
        column = {"column": "numeric", "name": "a", "standardize": len(rows) == 100}
        plan = Plan(changes={**SYNC, "data": {"train": source, "columns": [column], "batch_size": 10},
                             "model": [{"op": "dense", "inputs": ["a"], "units": 2}], "metrics": []},
                    order=["ps/0", "ps/1", "worker/0", "worker/1"], flags_of=flags_of)
        cluster = self.start(plan, lambda c: c.tasks["worker/1"].has_ended())
        self.assert_ended(cluster, "worker/1", INPUT, pattern)
        cluster.plan = dataclasses.replace(plan, flags_of={"worker/1": flags_of["worker/0"]})
        cluster.start("worker/1", label="worker/1 again")
        codes = cluster.wait()
        del codes["worker/1"]
        self.assertEqual(codes, dict.fromkeys(codes, 0), cluster.story())

    def test_other_files_are_refused_and_called_that(self):
        """Also where what is measured of them makes the spec another one."""
        rows = [f"{k},{k % 2}\n" for k in range(100)]
        few = rows[:60]
        fewer = r"refused this worker: data\.train differs: worker/1 has 50 rows, worker/0 has 60; "
        others = (r"refused this worker: data\.train differs: worker/1 and worker/0 have \d+ rows each, "
                  r"but not the same ones, or in another order; ")
        measured = r"refused this worker: data\.train differs: worker/1 and worker/0 have measured other numbers"
        for why, one, other, pattern, of_source in (
                ("a copy that is not whole", few, few[:50], fewer, {}),
                ("its part", few, rows[40:], others, {}),
                ("another order", few, few[::-1], others, {}),
                ("a copy of a stream that is not whole", few, few[:50], fewer, {"stream": "always"}),
                ("another mean", rows, [f"{k + 1},{k % 2}\n" for k in range(100)], measured, {})):
            with self.subTest(why):
                self.refuse_files(one, other, pattern, **of_source)

    def lacking(self, mode, why, epochs, workers):
        """Worker 1 has another spec, other files or none; the others wait for it no longer than they
        themselves may take to come."""
        rows = [f"{k / 80},{k % 2}\n" for k in range(120)]
        flags_of = {name: [f"--start_timeout={ABSENT_S}"] for name in Plan(workers=workers).names()}
        for w in range(workers):
            folder = self.folder / f"data-{why}-{epochs}-{w}"
            folder.mkdir(exist_ok=True)
            (folder / "rows.csv").unlink(missing_ok=True)
            if w != 1 or why != "no file":
                (folder / "rows.csv").write_text("a,y\n" + "".join(rows[:100] if w == 1 and why == "files" else rows))
            flags_of[f"worker/{w}"].append(f"--data_dir={folder}")
        if why == "spec":
            flags_of["worker/1"].append("--seed=2")
        end = {"train.epochs": 3, "train.last_step": 0} if epochs else {"train.last_step": 40}
        end["train.worker_timeout_secs"] = ABSENT_S
        return Plan(workers=workers, flags_of=flags_of, changes={
            "train.mode": mode, **end, "metrics": [], "model": [{"op": "dense", "units": 2}],
            "data": {"train": {"format": "csv", "file": "rows.csv", "label": "y"}, "batch_size": 10}})

    WHY = {"spec": "the spec differs: worker/1 has", "files": "data.train differs: worker/1 has 100 rows",
           "no file": "rows.csv: No such file or directory"}

    def test_a_share_that_nobody_reads_ends_the_job_and_says_why(self):
        """Each says who cannot take part, and the reason. All at once, as they wait for long."""
        waiting = [(self.start(self.lacking("sync", why, epochs, workers), lambda c: True), why, epochs)
                   for why, epochs, workers in (("spec", False, 2), ("no file", True, 3), ("files", True, 2),
                                                ("no file", False, 2))]
        for cluster, why, epochs in waiting:
            with self.subTest(why=why, epochs=epochs):
                self.assert_codes(cluster, INPUT)
                for name in ("ps/0", "worker/0"):
                    self.assert_says(cluster, name, r"ERROR: (ps/\d: )?worker/1 cannot take part, and nobody else reads "
                                     r"its share of the rows: .*\(exit code 2\)")
                self.assert_says(cluster, "ps/0", f"worker/1 cannot take part: .*{re.escape(self.WHY[why])}")

    def test_rows_of_who_cannot_take_part_are_read_by_the_others(self):
        """All of them, and nobody is waited for behind the last one."""
        for why, epochs, workers in (("spec", False, 3), ("no file", True, 2), ("files", True, 3), ("no file", False, 2)):
            with self.subTest(why=why, epochs=epochs, workers=workers):
                plan = self.lacking("async", why, epochs, workers)
                for flags in plan.flags_of.values():
                    flags[0] = "--start_timeout=600"
                cluster = self.start(plan, lambda c: c.tasks["worker/1"].has_ended())
                codes = cluster.wait()
                self.assertEqual(codes.pop("worker/1"), INPUT, cluster.story())
                self.assertEqual(codes, dict.fromkeys(codes, 0), cluster.story())
                # whichever is first: a look of ps/0 at who is away, or the end of the short run
                self.assert_says(cluster, "ps/0", r"continues without worker/1, gone for \d+ s \(it cannot take part\)|"
                                 r"nothing is left to do for worker/1, which cannot take part")
                if epochs:
                    self.assert_says(cluster, "worker/0", "epochs 1 to 3: each 120 of 120 rows, 0 twice, 0 lost")

    def test_of_a_chief_that_cannot_come_the_others_hear_why(self):
        """Also where what it names is no UTF-8."""
        plan = self.lacking("async", "no file", False, 2)
        empty = self.folder / os.fsdecode(b"donn\xe9es")
        empty.mkdir()
        plan.flags_of["worker/0"][1] = f"--data_dir={empty}"
        plan.flags_of["worker/1"][1] = f"--data_dir={self.folder / 'data-no file-False-0'}"
        plan.order = ["ps/0", "ps/1", "worker/1", "worker/0"]
        cluster = self.start(plan, lambda c: c.tasks["worker/0"].has_ended())
        self.assertEqual(cluster.tasks["worker/0"].code(), INPUT, cluster.story())
        for name in ("ps/0", "ps/1"):
            cluster.wait_for(name, "worker/0 cannot take part: ")
            self.assert_says(cluster, name, re.escape(self.WHY["no file"]))

    def test_who_tells_why_it_ends_is_ended_at_once(self):
        """There is a ps that is not there to be told; of some lives one is asked to end while it waits for that."""
        plan = Plan(changes=SYNC, flags_of={"worker/1": ["--seed=2"]}, absent=["ps/1", "worker/1"])
        cluster = self.start(plan, lambda c: True)
        for life in range(20):
            task = cluster.start("worker/1", label=f"worker/1, {life}")
            cluster.wait_until(lambda t=task: "(exit code 2)" in t.text() or t.has_ended(), "a refusal")
            task.process.send_signal(signal.SIGINT)
            cluster.wait_until(task.has_ended, "the end")
            if task.code() == 130:
                return
        self.fail(cluster.story())

    def refuse_hosts(self, change, pattern):
        plan = Plan(changes=SYNC, told=told_by("worker/1", change))
        cluster = self.start(plan, lambda c: c.tasks["worker/1"].has_ended())
        self.assert_ended(cluster, "worker/1", INPUT, pattern)
        self.go_on_without(cluster, "worker/1")

    def test_another_order_of_hosts_is_refused(self):
        self.refuse_hosts(
            lambda hosts: {**hosts, "ps": hosts["ps"][::-1]},
            r"ps_hosts\[0\] differs: worker/1 has 127\.0\.0\.1:\d+, this task has 127\.0\.0\.1:\d+")

    def test_another_number_of_hosts_is_refused(self):
        self.refuse_hosts(
            lambda hosts: {**hosts, "worker": hosts["worker"] + ["127.0.0.1:1"]},
            r"worker_hosts differ: worker/1 has 3, this task has 2")

    def test_a_second_life_of_a_worker_waits_in_vain_while_the_first_runs_on(self):
        cluster = self.start_endless(Plan(changes=SYNC))
        first = cluster.tasks["worker/1"].process.pid
        cluster.start("worker/1", "--start_timeout=0.2", label="same port")
        self.assert_ended(cluster, "same port", TIMEOUT, r"gave up after 0\.2 s "
                          r"\(--start_timeout\): cannot listen on 127\.0\.0\.1:\d+: "
                          rf"address already in use by pid {first} \(dtrain\)")
        cluster.tasks["worker/0"].process.send_signal(signal.SIGSTOP)  # no step is taken meanwhile, which would be many
        cluster.start("worker/1", "--bind=127.0.0.1:0", f"--start_timeout={START_S}", label="other port")
        self.assert_ended(cluster, "other port", TIMEOUT, rf"ps/[01] at \S+ did not come within {START_S} s "
                          rf"\(--start_timeout\): worker/1 is already here \(.*pid {first}\)")
        cluster.tasks["worker/0"].process.send_signal(signal.SIGCONT)
        self.assertFalse(any(cluster.tasks[name].has_ended() for name in Plan().names()),
                         cluster.story())
        cluster.tasks["ps/0"].process.send_signal(signal.SIGTERM)
        cluster.wait()
        self.assertEqual([cluster.tasks[name].code() for name in Plan().names()],
                         [TERMINATED] * 4, cluster.story())

    def take(self, cluster, name):
        """Somebody else listens at the address of a task."""
        taken = socket.socket()
        self.addCleanup(taken.close)
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        host, port = cluster.address(name).split(":")
        taken.bind((host, int(port)))
        taken.listen()
        return taken

    def prepare(self, plan):
        cluster = Cluster(self.folder, plan)
        self.addCleanup(cluster.kill)
        return cluster

    def test_a_port_that_is_let_go_is_waited_for(self):
        for name in ("ps/0", "worker/0"):
            with self.subTest(task=name):
                cluster = self.prepare(Plan())
                taken = self.take(cluster, name)
                cluster.start_planned()
                cluster.wait_for(name, "tries again")
                self.assert_says(cluster, name, TAKEN + r"; tries again, \d+ s of 600 s "
                                 r"\(--start_timeout\)")
                taken.close()
                self.assert_codes(cluster, 0)
                self.assert_says(cluster, name, rf"listens at {cluster.address(name)}")

    def test_a_port_that_stays_in_use_is_given_up_with_its_owner(self):
        for name in ("ps/0", "worker/0"):
            with self.subTest(task=name):
                cluster = self.prepare(Plan())
                self.take(cluster, name)
                cluster.start(name, "--start_timeout=0.2")
                self.assert_ended(cluster, name, TIMEOUT,
                                  rf"gave up after 0\.2 s \(--start_timeout\): .*{TAKEN}")

    def test_a_name_that_does_not_resolve_yet_is_waited_for(self):
        for name in ("ps/0", "worker/0"):
            with self.subTest(task=name):
                cluster = self.prepare(Plan())
                job, index = name.split("/")
                cluster.hosts[job][int(index)] = NOBODY
                cluster.start(name, "--start_timeout=0.2")
                self.assert_ended(cluster, name, TIMEOUT, rf"cannot listen on {NOBODY}: no such "
                                  r"host: ")

    @unittest.skipUnless(MOUNTING, NO_MOUNT)
    def test_a_name_that_resolves_later_is_found_then(self):
        """As that of a pod does. They see a list of hosts of their own."""
        cluster = self.prepare(Plan(ps=1, workers=1))
        known = self.folder / "hosts"
        known.write_text("127.0.0.1 localhost\n")
        before = [*MOUNTING, "sh", "-c", 'mount --bind "$0" /etc/hosts && exec "$@"', str(known)]
        for job in ("ps", "worker"):
            cluster.hosts[job] = [address.replace("127.0.0.1", LATER) for address in cluster.hosts[job]]
        for name in cluster.plan.names():
            cluster.start(name, before=before)
        for name in cluster.plan.names():
            cluster.wait_for(name, "no such host")
        with open(known, "a", encoding="ascii") as hosts:
            hosts.write(f"127.0.0.1 {LATER}\n")
        self.assert_codes(cluster, 0)

    def test_a_task_that_waits_for_its_port_can_be_stopped(self):
        for name in ("ps/0", "worker/0"):
            with self.subTest(task=name):
                cluster = self.prepare(Plan())
                self.take(cluster, name)
                task = cluster.start(name)
                cluster.wait_for(name, "tries again")
                task.process.send_signal(signal.SIGTERM)
                self.assert_ended(cluster, name, TERMINATED, TAKEN)

    def test_an_address_to_bind_to_takes_the_port_of_the_list(self):
        cluster = self.run_to_end(Plan(flags=["--bind=0.0.0.0", "--insecure", "--log_level=debug"]))
        for name in Plan().names():
            port = cluster.address(name).rpartition(":")[2]
            self.assert_says(cluster, name, rf"listens at 0\.0\.0\.0:{port}\n")

    def come_late(self, cluster, name, *flags):
        job, index = name.split("/")
        task = Task(cluster.folder, f"late {job}", [
            f"--job_name={job}", f"--task_index={index}", *(f"--{of}_hosts={','.join(cluster.hosts[of])}"
                                                            for of in ("ps", "worker")),
            "--start_timeout=0.5", *flags, "spec.json"])
        self.addCleanup(task.kill)
        program.wait_until(task.has_ended, task.text)
        return task

    def test_who_comes_after_the_job_has_ended_ends_too(self):
        """As far as the checkpoints tell."""
        cluster = self.run_to_end(Plan(changes={"train.checkpoint_dir": "run"}))
        for name in ("worker/1", "evaluator/0"):
            with self.subTest(task=name):
                task = self.come_late(cluster, name)
                self.assertEqual(task.code(), 0, task.text())
                self.assertRegex(task.text(), r"no other task answers, and run/model\.ckpt-30 is of the last step: "
                                              r"the job is done\n")
                task = self.come_late(cluster, name, "--steps=31")
                self.assertEqual(task.code(), TIMEOUT, task.text())
                self.assertRegex(task.text(), r"ps/0 at \S+ did not come within \S+ s \(--start_timeout\)")
        self.assertIn("step 30, eval loss", task.text())  # the evaluator's
        self.assertEqual(self.come_late(cluster, "worker/0").code(), TIMEOUT)

    def begin_without(self, absent, changes):
        """Whoever is to give up comes when all others are there, who wait for longer. A ps is waited for by workers alone."""
        order = ["ps/0", "worker/1", "worker/0"] if absent == "ps/1" else ["worker/1", "worker/0", "ps/0", "ps/1"]
        order = [name for name in order if name != absent]
        gives_up = ["worker/0"] if absent == "ps/1" else ["ps/0", "ps/1"]
        plan = Plan(absent=[absent], order=order, changes={**SYNC, **changes},
                    flags_of={name: [f"--start_timeout={START_S if name in gives_up else LONGER_S}"] for name in order
                              if name.startswith("worker") or name in gives_up})
        return self.start(plan, lambda c: True)

    def assert_named(self, cluster, code, patterns):
        self.assert_codes(cluster, code)
        address = re.escape(cluster.address(cluster.plan.absent[0]))
        for name, pattern in patterns.items():
            self.assert_says(cluster, name, pattern.replace("ADDRESS", address))

    def test_who_never_comes_is_named_or_done_without(self):
        """All at once, so that the others may have long to come."""
        ps = rf"ps/1 at ADDRESS did not come within {START_S} s \(--start_timeout\): refused"
        chief = r"worker/0 at ADDRESS|by the chief"
        without = r"continues without worker/1, gone for \d+ s \(--start_timeout\)"
        too_few = (r"worker/1 is gone for \d+ s \(--start_timeout\), and 1 worker are fewer "
                   r"than 2 \(train\.min_workers\) \(exit code 128\)")
        waiting = [(self.begin_without(absent, changes), code, patterns) for absent, changes, code, patterns in (
            ("ps/1", {}, TIMEOUT, {"worker/0": ps, "worker/1": ps}),
            ("worker/0", {}, TIMEOUT, {"ps/0": chief, "ps/1": chief, "worker/1": chief}),
            ("worker/1", {}, 0, {"ps/0": without, "ps/1": without, "worker/0": r"(?m)^step 30, test loss"}),
            ("worker/1", {"train.min_workers": 2}, LOST, {"ps/0": too_few, "ps/1": too_few, "worker/0": too_few}))]
        for cluster, code, patterns in waiting:
            with self.subTest(absent=cluster.plan.absent, changes=cluster.plan.changes):
                self.assert_named(cluster, code, patterns)

    def test_a_chief_is_not_blamed_for_the_ps_that_it_waits_for(self):
        """By a ps that was there before it and has waited for longer."""
        plan = Plan(absent=["ps/0", "ps/1"], flags_of={
            "ps/0": [f"--start_timeout={START_S}"],
            **{f"worker/{w}": [f"--start_timeout={START_S + 3}"] for w in range(2)}})
        cluster = self.start(plan, lambda c: all(is_listened_on(c.address(f"worker/{w}")) for w in range(2)))
        cluster.start("ps/0")
        self.assert_codes(cluster, TIMEOUT)
        self.assert_says(cluster, "ps/0", rf"ps/1 at {re.escape(cluster.address('ps/1'))} did not come within")


if __name__ == "__main__":
    program.main()
