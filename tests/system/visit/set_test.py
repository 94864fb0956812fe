"""dtrain set: a living job is changed, and it comes to the very bits that the changed spec comes to."""
import dataclasses
import json
import re
import shutil
import subprocess
import unittest

import program
from program import BINARY
from program.cluster import Cluster, ClusterCase, Plan

RATE = 0.01
SAVES = {"train.mode": "sync", "train.checkpoint_dir": "run", "train.save_checkpoint_secs": 100000,
         "train.keep_checkpoint_max": 0, "data.batch_size": 100}


class Set(ClusterCase):
    def ask(self, cluster, *words, code=0):
        done = self.asked(cluster, *words)
        self.assertEqual(done.returncode, code, done.stderr + cluster.story())
        return done.stderr if code else done.stdout

    def set(self, cluster, key, value):
        """From which step on it holds."""
        said = self.ask(cluster, "set", key, str(value))
        self.assertRegex(said, rf"\A\S*{key} is {value} from step \d+ on\n\Z")
        return int(re.search(r"from step (\d+)", said)[1])

    def counters(self, cluster, task="worker/0"):
        return {t["task"]: t for t in self.status(cluster)["tasks"]}.get(task, {}).get("counters", {})

    def start_again(self, cluster, name):
        cluster.tasks[name].kill()
        cluster.start(name, label=f"{name} again")

    def finish(self, cluster):
        """All that were not killed end well."""
        codes = cluster.wait()
        self.assertEqual({code for name, code in codes.items() if code != -9}, {0}, cluster.story())

    def values(self, cluster, step):
        return [(name, path.read_bytes()) for path in sorted((self.folder / cluster.folder / "run").iterdir())
                if (name := path.name).startswith(f"model.ckpt-{step}.data")]

    def reference(self, begin, end):
        """A job that ends at the step of the change, and one of the changed spec that continues it."""
        cluster = self.run_to_end(Plan(changes={**SAVES, "train.last_step": begin}))
        spec = json.loads(cluster.read("spec.json"))
        changed = program.changed(spec, {"optimizer.learning_rate": RATE, "train.last_step": end})
        with open(cluster.spec_path, "w", encoding="utf-8") as file:
            json.dump(changed, file)
        for name in cluster.plan.names():
            cluster.start(name, label=f"{name} again")
        self.finish(cluster)
        return self.values(cluster, end)

    def test_the_bits_are_those_of_the_changed_spec(self):
        """Also where a ps or the chief dies as soon as it is said that the change holds."""
        for dies in None, "ps/1", "worker/0":
            with self.subTest(dies=dies):
                cluster = self.start_endless(Plan(changes=SAVES))
                begin = self.set(cluster, "learning_rate", RATE)
                if dies:
                    self.start_again(cluster, dies)
                    cluster.wait_until(lambda c=cluster: self.counters(c, "ps/0").get("global_step", 0) > begin + 10,
                                       "steps after the death")
                cluster.wait_until(lambda c=cluster: self.counters(c, "ps/0").get("settings_total") == 1, "a set that is counted")
                end = self.end_soon(cluster)
                self.finish(cluster)
                self.assertEqual(self.values(cluster, end), self.reference(begin, end))
                if not dies:
                    for name in ("ps/0", "ps/1"):
                        self.assertIn(f"already has the values of step {begin}, and reads no checkpoint", cluster.tasks[name].text())

    def test_what_is_set_is_told_and_kept(self):
        plan = Plan(changes={**SAVES, "train.mode": "async"})
        cluster = self.start_endless(plan)
        self.set(cluster, "optimizer.learning_rate", "x0.5")
        cluster.wait_until(lambda: self.counters(cluster).get("learning_rate") == 0.025, "the rate in the counters")
        self.set(cluster, "save_checkpoint_steps", 50)
        cluster.wait_until(lambda: self.counters(cluster).get("checkpoints_total", 0) > 4, "checkpoints by steps")
        said = self.ask(cluster, "set")
        self.assertRegex(said, r"optimizer.learning_rate +x0.5 since step \d+, set by 127.0.0.1\S*; the spec says 0\.05\n")
        self.assertRegex(said, r"train.save_checkpoint_steps +50 since")
        self.assertRegex(cluster.tasks["ps/0"].text(), r"a visitor \(127.0.0.1\S*\) asks to set optimizer.learning_rate to x0.5")
        self.assertRegex(cluster.tasks["worker/0"].text(), r"from step \d+ on optimizer.learning_rate is x0.5 \(dtrain set, by")
        self.ask(cluster, "stop")
        cluster.wait()
        again = Cluster(self.folder, plan)
        self.addCleanup(again.kill)
        again.folder = cluster.folder
        again.start_planned()
        again.wait_until(lambda: self.counters(again).get("learning_rate") == 0.025, "the rate after a restart")
        self.set(again, "learning_rate", "spec")
        again.wait_until(lambda: self.counters(again).get("learning_rate") == 0.05, "the spec's rate")

    def test_what_cannot_be_kept_is_no_failure_of_the_checkpoint(self):
        cluster = self.start_endless(Plan(changes=SAVES))
        in_its_place = self.folder / cluster.folder / "run" / "settings.json"
        (in_its_place / "x").mkdir(parents=True)
        self.assertIn("it could not be kept: ", self.ask(cluster, "set", "learning_rate", str(RATE), code=128))
        cluster.wait_until(lambda: self.counters(cluster).get("checkpoints_total") == 2, "it beside that of step 0")
        self.assertNotRegex(cluster.tasks["worker/0"].text(), "the checkpoint of step .* failed")
        shutil.rmtree(in_its_place)
        self.set(cluster, "learning_rate", RATE)
        cluster.wait_until(lambda: self.counters(cluster).get("learning_rate") == RATE, "the rate in the counters")

    def test_what_cannot_be_set_is_refused(self):
        cluster = self.start_endless(Plan(changes=SAVES))
        for words, said in ((("train.mode", "sync"), '"train.mode" cannot be set while a job runs; these keys can: '
                                                     "optimizer.learning_rate, train.last_step, "),
                            (("learning_rate", "fast"), "optimizer.learning_rate: expected a number"),
                            (("last_step", "1.5"), "train.last_step: expected an integer"),
                            (("last_step",), "to which value?"),
                            (("last_step=7",), "are two words: dtrain set last_step 7")):
            self.assertIn(said, self.ask(cluster, "set", *words, code=2))
        for words, said in ((("last_step", "1"), "already: dtrain stop ends it"),
                            (("train.publish.every_secs", "1"), "started without train.publish")):
            self.assertIn(said, self.ask(cluster, "set", *words, code=2))
        listed = subprocess.run([BINARY, "set"], capture_output=True, text=True, check=True).stdout
        self.assertIn("train.save_checkpoint_secs", listed)
        bare = self.start_endless(dataclasses.replace(Plan(), workers=1, ps=1))
        self.assertIn("the job needs a train.checkpoint_dir", self.ask(bare, "set", "last_step", "999999", code=2))


if __name__ == "__main__":
    unittest.main()
