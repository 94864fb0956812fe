"""Whatever a visitor asks, at each moment of a ps: each verb with each member, right, wrong and at the ends of its range,
as core/cluster/visit/ask.c lists them, so that a new one is tried by itself. Each is answered, the job continues, and what it
saves begins another run."""
import json
import os
import re
import signal
import struct

import program
from program import ROOT
from program.cluster import ENDLESS, Plan
from visitors import STEP, VisitCase

SOURCE = (ROOT / "core/cluster/visit/ask.c").read_text(encoding="utf-8")
VERBS = re.findall(r'"(\w+)"', re.search(r"verbs\[VERB_COUNT\] = \{(.*?)\};", SOURCE, re.DOTALL).group(1))
MEMBERS = re.findall(r'"(\w+)",\s+&m\.', SOURCE[SOURCE.index("json_unpack_ex("):])
NAMES = ("none", "w", "global_step", "logits/bias", "")
ODD = (0, 1, 2, -1, 2 ** 31 - 1, 2 ** 31, 2 ** 53, 2 ** 63 - 1, -2 ** 63, 2 ** 64, 1.5, "x", "w" * 300, None, True, [], [1], [0] * 7,
       [2 ** 62, -1], {}, [[1]])
NUMBERS = (b"", bytes(8), b"\0" * 7, struct.pack("<d", float("nan")), struct.pack("<3d", 1e300, float("inf"), -1.0))
SAVES = 5000
ENDS = {"stop"}  # of the job, if it is meant
WORKERS = 2
FEWER = 13  # than all, of jobs that train
TERMINATED = 128 + signal.SIGTERM
LOG_BYTES_MAX = 256 << 10


def is_meant(ask):
    """It would change who takes part, as it should: their own tests do."""
    return ask["do"] == "leave" and ask.get("worker", 0) in range(WORKERS) or ask["do"] == "scale" and any(
        isinstance(ask.get(job), int) and 0 < ask[job] <= WORKERS for job in ("ps", "workers"))


def asks():
    for verb in VERBS + ["", "no", 7]:
        right = {"do": verb, "name": "logits/bias", "shape": []} if verb in ("set", "add", "get") else {"do": verb}
        yield right
        for member in (*MEMBERS, "what"):
            for odd in (*ODD, *(NAMES if member == "name" else ())):
                if member != "do":
                    yield {**right, member: odd}


class Asks(VisitCase):
    def ask_all(self, address, which=slice(None)):
        visitor, number = self.visitor(address), 0
        for ask in list(asks())[which]:
            if ask["do"] in ENDS or is_meant(ask):
                continue
            number += 2
            body = json.dumps(ask).encode() + b"\0" + NUMBERS[number // 2 % len(NUMBERS)]
            visitor.send("ASK", body, number=number)
            visitor.send("ASK", STEP.encode(), number=number + 1)  # takes back what waits
            heard = visitor.hear()
            while heard and heard.values["number"] == number:
                heard = visitor.hear()
            self.assertIsNotNone(heard, ask)
            self.assertEqual((heard.kind, heard.values["number"]), ("ANSWER", number + 1), ask)
            text = json.loads(heard.body.partition(b"\0")[0])
            self.assertEqual(text["kind"], "step", ask)
        visitor.close()
        return number

    def test_a_ps_that_waits_for_its_chief(self):
        address = self.lone()
        self.assertGreater(self.ask_all(address), 2000)
        self.assert_well(address)

    def test_a_ps_that_serves_and_one_whose_worker_is_not_there(self):
        changes = {"train.mode": "sync", "train.last_step": ENDLESS, "train.checkpoint_dir": os.path.join(str(self.folder), "kept"),
                   "train.worker_timeout_secs": 3600, "train.log_every_steps": ENDLESS}
        plan = Plan(ps=2, workers=WORKERS, changes=changes, absent=["worker/1"])
        cluster = self.start(plan, lambda c: "step 1 of" in c.tasks["worker/0"].text())
        for name in ("ps/0", "ps/1"):  # in the middle of a round
            self.ask_all_of(cluster, name, slice(0, None, FEWER))
        cluster.start("worker/1")
        cluster.wait_for("worker/1", "step ")
        for name in ("ps/0", "ps/1"):
            self.ask_all_of(cluster, name, slice(1, None, FEWER))
        with self.visitor(cluster.address("ps/0")) as visitor:
            before = visitor.step()
            cluster.wait_until(lambda: visitor.step() > before + 3, "steps")
            for number in range(SAVES):  # each is asked of the chief
                self.assertEqual(json.loads(visitor.ask('{"do": "save"}', number).body), {"asked": True})
        cluster.tasks["ps/0"].process.send_signal(signal.SIGTERM)
        self.assert_codes(cluster, TERMINATED)
        for task in cluster.tasks.values():
            self.assertLess(os.path.getsize(task.path), LOG_BYTES_MAX, (task.name, task.text()[-2000:]))
        self.start(Plan(ps=2, workers=WORKERS, changes=changes),
                   lambda c: re.search("begins from(.|\n)*step ", c.tasks["worker/0"].text()))

    def ask_all_of(self, cluster, name, which):
        """ps/1 knows no step, and answers so."""
        if name == "ps/0":
            self.ask_all(cluster.address(name), which)
        else:
            self.ask_and_list(cluster.address(name), which)
        self.assertFalse(any(task.has_ended() for task in cluster.tasks.values()), cluster.story())

    def ask_and_list(self, address, which):
        visitor = self.visitor(address)
        for number, ask in enumerate(list(asks())[which]):
            if ask["do"] in ENDS or is_meant(ask):
                continue  # a stop it takes, as a signal; the rest it has nobody to tell to
            visitor.send("ASK", json.dumps(ask).encode() + b"\0" + NUMBERS[number % len(NUMBERS)], number=2 * number)
            visitor.send("ASK", b'{"do": "list"}', number=2 * number + 1)
            heard = visitor.hear()
            while heard and heard.values["number"] == 2 * number:
                heard = visitor.hear()
            self.assertIsNotNone(heard, ask)
            self.assertIn("variables", json.loads(heard.body.partition(b"\0")[0]), ask)
        visitor.close()


if __name__ == "__main__":
    program.main()
