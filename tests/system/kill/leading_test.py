"""Another worker leads where the chief is gone or stands still: nothing begins again, and one alone
publishes."""
import re
import signal
import sys
from pathlib import Path

from program import main
from program.cluster import ENDLESS
from program.lives import CHIEF, LEADS, LEARNT, SHORTER, Life, plan_of

sys.path.append(str(Path(__file__).resolve().parents[1] / "life"))
import events  # noqa: E402

LAST_STEP = 300 // SHORTER
LAST_OF_ASYNC = 500 // SHORTER
STOP_S = 6  # in which another worker leads and saves
TERMINATED = 143
SILENT_S = 5  # so long no chief is silent that is there
SOON = {"train.worker_timeout_secs": 0.5}  # until then nobody saves where one ps alone has the chief's last push
SUMMARIES = {"train.save_summaries_steps": 10}
RESULT = "--result=result.json"
HEIR = "worker/1"


def plan(mode, changes=None):
    last_step = LAST_STEP if mode == "sync" else LAST_OF_ASYNC
    found = plan_of(mode, last_step, {**SUMMARIES, **(changes or {})},
                    flags=[f"--chief_timeout={SILENT_S}"])
    for name in (HEIR, "worker/2"):
        found.flags_of[name] = [RESULT]
    found.flags_of["ps/0"] = ["--log_level=debug"]
    return found


def replace_chief(cluster):
    """All steps that are left are those of the other one, of whom there may be few on a fast machine."""
    with cluster.standstill():
        cluster.kill_task(CHIEF)
        cluster.wait_for_line(HEIR, LEADS)


class LeadingCase(Life):
    """A chief that is disturbed while it saves, and what holds of the worker that leads then."""

    def assert_led_by(self, cluster, name):
        """To the end, and nothing was rolled back."""
        result = self.assert_done(cluster)
        self.assertGreater(result["metrics"]["accuracy"], LEARNT, cluster.story())
        self.assert_says(cluster, name, r"(?m)^step \d+, test loss")
        self.assert_says(cluster, name, "saved ")
        self.assertNotIn("go back", cluster.story())
        for server in cluster.servers():
            self.assertEqual(cluster.text_of(server).count("serving"), 1, cluster.story())

    def assert_whole_curves(self, cluster):
        """Of the chief and of the one after it; what both told of is there once."""
        folder = Path(cluster.folder) / "run"
        self.assertEqual(len(list(folder.glob("events.out.*"))), 2, cluster.story())
        steps = [step for step, _ in events.curves(folder)["loss"]]
        self.assertEqual(steps, sorted(set(steps)), cluster.story())
        last_step = cluster.plan.changes["train.last_step"]
        self.assertLess(last_step - steps[-1], 2 * SUMMARIES["train.save_summaries_steps"])

    def assert_published_by_one(self, cluster):
        """After the words by which it learns of the other it publishes nothing."""
        after = re.split(LEADS, cluster.text_of(CHIEF), maxsplit=1)[1]
        self.assertNotIn("saved ", after, cluster.story())
        self.assertNotIn("test loss", after, cluster.story())


class Leading(LeadingCase):
    def test_a_chief_that_is_gone_for_good_is_replaced(self):
        for mode in ("sync", "async"):
            with self.subTest(mode):
                cluster = self.disturb(plan(mode, SOON), replace_chief)
                cluster.tasks.pop(CHIEF)
                self.assert_led_by(cluster, HEIR)
                self.assert_whole_curves(cluster)
                self.assert_says(cluster, "ps/0", rf"the chief, worker/0, is gone for {SILENT_S} s "
                                                  r"\(--chief_timeout\): worker/1 leads")

    def stand_still(self, chosen, until):
        """The chief, until its heir says so."""
        def hold_up_chief(cluster):
            with cluster.standstill():
                cluster.hold_up(CHIEF)
                cluster.wait_for_line(HEIR, LEADS)
            cluster.wait_for_line(HEIR, until)
            with cluster.standstill():
                cluster.go_on(CHIEF)
                cluster.wait_for_line(CHIEF, f"worker/1 {LEADS}")
        cluster = self.disturb(chosen, hold_up_chief)
        self.assert_led_by(cluster, HEIR)
        self.assert_published_by_one(cluster)
        return cluster

    def test_a_chief_that_stood_still_is_a_worker_and_no_bit_changes_in_sync(self):
        reference = self.reference(plan("sync"))
        cluster = self.stand_still(plan("sync"), LEADS)
        self.assertEqual(self.differences(cluster, reference), [], cluster.story())

    def test_a_chief_that_stood_still_is_a_worker_in_async(self):
        self.stand_still(plan("async", SOON), "saved ")

    def test_a_chief_that_stood_still_to_the_end_tells_of_the_whole_job(self):
        cluster = self.disturb(plan("async", SOON), lambda c: c.hold_up(CHIEF))
        chief = cluster.tasks.pop(CHIEF)
        self.assert_ends(cluster)
        told = cluster.result()
        cluster.tasks[CHIEF] = chief
        cluster.go_on(CHIEF)
        result = self.assert_done(cluster)
        self.assert_says(cluster, CHIEF, r"no other task answers, and \S+ says how the job ended")
        self.assertLess(result["own_steps"], LAST_OF_ASYNC)
        self.assertEqual(*({key: one["rows"][key] for key in ("per_epoch", "used", "twice", "lost")} for one in (told, result)))

    def test_a_chief_that_stood_still_while_the_job_was_told_to_end_ends_with_it(self):
        def end_without_chief(cluster):
            cluster.hold_up(CHIEF)
            cluster.tasks["ps/0"].process.send_signal(signal.SIGTERM)
        endless = plan("async", {**SOON, "train.last_step": ENDLESS, "train.save_checkpoint_steps": 4})  # amid a save, often
        endless.flags.append(f"--stop_timeout={STOP_S}")
        cluster = self.disturb(endless, end_without_chief)
        chief = cluster.tasks.pop(CHIEF)
        self.assert_ends(cluster, TERMINATED)
        told = cluster.result()
        cluster.tasks[CHIEF] = chief
        cluster.go_on(CHIEF)
        self.assertEqual(cluster.wait()[CHIEF], TERMINATED, cluster.story())
        self.assert_says(cluster, CHIEF, r"no other task answers, and \S+ says how the job ended")
        result = cluster.result()
        self.assertEqual((result["code"], result["step"]), (told["code"], told["step"]), cluster.story())

    def test_a_chief_that_is_started_again_too_late_is_a_worker(self):
        def come_too_late(cluster):
            with cluster.standstill():
                cluster.kill_task(CHIEF)
                cluster.wait_for_line(HEIR, LEADS)
                cluster.start_until_here(CHIEF)
        cluster = self.disturb(plan("async"), come_too_late)
        self.assert_led_by(cluster, HEIR)
        life = cluster.tasks[CHIEF].text()
        self.assertRegex(life, "takes part again at step", cluster.story())
        for word in ("saved ", "begins from", "test loss", LEADS):
            self.assertNotIn(word, life, cluster.story())

    def test_a_second_chief_that_is_kept_out_does_not_touch_the_folder(self):
        cluster = self.disturb(plan("async"), lambda c: c.hold_up("ps/1"))  # nobody gets on without it
        token = Path(cluster.folder) / "run" / ".token"
        was = token.read_bytes()
        second = cluster.start(CHIEF, "--bind=127.0.0.1:0")
        cluster.tasks[CHIEF], kept_out = cluster.lives[CHIEF][0], second
        cluster.wait_until(lambda: "worker/0 is already here" in cluster.text_of("ps/0"), "a refusal")
        cluster.go_on("ps/1")
        self.assertEqual(token.read_bytes(), was)
        kept_out.kill()
        cluster.lives[CHIEF].remove(kept_out)
        self.assert_done(cluster)

    def test_whoever_leads_then_can_be_lost_too(self):
        def kill_two(cluster):
            cluster.hold_up("ps/1")
            for name, heir in ((CHIEF, HEIR), (HEIR, "worker/2")):
                cluster.kill_task(name)
                cluster.tasks.pop(name)
                cluster.wait_for_line(heir, LEADS)
            cluster.restart(["ps/1"])
        cluster = self.disturb(plan("async", SOON), kill_two)
        cluster.wait_for_line("worker/2", r"begins from .*/run/model\.ckpt-\d+, step \d+")
        self.assert_done(cluster)

    def test_nobody_takes_the_place_of_a_chief_that_reads_for_all(self):
        chosen = plan("async", {"train.replication": "in_graph", "data.shuffle": True})
        chosen.flags.append("--restart_timeout=2")
        cluster = self.disturb(chosen, lambda c: c.kill_task(CHIEF))
        cluster.tasks.pop(CHIEF)
        self.assert_ends(cluster, 128)
        self.assertNotIn("leads", cluster.story())


if __name__ == "__main__":
    main()
