"""Strangers at the ports of a cluster that is at work: it takes no harm, and its job ends well.

What they say is right but for the one thing that is tested: every text with which they are refused
is looked at, and who goes deep has been welcomed before.
"""
import dataclasses
import random
import re
import signal
import struct
import time

import program
from program import wire
from program.clicks import CLICKS, TABLES_ONLY
from program.cluster import ENDLESS, ClusterCase, Plan
from program.wire import BODY_MAX, MAGIC, VERSION, greeting, message

IDLE = 200
LARGEST = 2 ** 64 - 1
WORKER = 1  # whose place is free
STEPS = 30
AWAITED_S = 3600  # longer than the guests in its place may take
UNWELCOME = "not welcomed within the limit: "
GUESTS, WORDS = 100, 12  # who say something random, and of how many messages
TERMINATED = 128 + signal.SIGTERM
NOT_JSON, NO_GREETING = "a greeting that is not JSON", "an invalid greeting"
STRANGE = "is no worker of this cluster"
NOT_FIRST = "the first message is not HELLO"
HANGS_UP, WAITS = "hangs up", "waits for more"
LEFT_OUT = {"SETUP", "STOP", "VERDICT",  # end the job, as they should: see their tests
            "LEADS",  # another worker leads, likewise
            "LEAVE"}  # whoever says it is gone, and answered no more


def random_bytes(seed):
    return random.Random(seed).randbytes(4096)


def hello(hosts=None, **changes):
    hosts = hosts or {"ps": [], "worker": []}
    return message("HELLO", greeting(hosts, **{"job": "worker", "task": WORKER, **changes}))


# What a stranger says, and what comes of it: the text of REFUSED, or another end
SAYINGS = {
    "random bytes": (random_bytes(1), HANGS_UP),
    "random bytes behind a right beginning": (struct.pack("<I", MAGIC) + random_bytes(2),
                                              "speaks protocol version"),
    "a request of another protocol": (b"GET / HTTP/1.1\r\nHost: ps\r\n\r\n", WAITS),
    "half a header": (hello()[:wire.HEADER_BYTES // 2], WAITS),
    "half a hello": (hello()[:wire.HEADER_BYTES + 40], WAITS),
    "a body that never comes": (message("HELLO", body_bytes=4096), WAITS),
    "a hello of an older version": (message("HELLO", b"{}", PROTOCOL_VERSION=VERSION - 1),
                                    f"speaks protocol version {VERSION - 1}, this program"),
    "a hello of a newer version": (message("HELLO", b"{}", PROTOCOL_VERSION=VERSION + 1),
                                   f"speaks protocol version {VERSION + 1}, this program"),
    "a body beyond the limit": (message("HELLO", body_bytes=BODY_MAX + 1), HANGS_UP),
    "a hello that is no JSON": (message("HELLO", b"\xff\xfe{"), NOT_JSON),
    "a hello that is a list": (message("HELLO", b"[1, 2]"), NO_GREETING),
    "a hello that is empty": (message("HELLO"), "a greeting of 0 bytes"),
    "a hello that is deep": (message("HELLO", b"[" * 60000), NOT_JSON),
    "a hello of nobody": (message("HELLO", b"{}"), NO_GREETING),
    "a hello that says another version": (hello(protocol=VERSION + 1), "protocol version differs"),
    "a hello with numbers for words": (hello(job=7, incarnation=-1, ps_hosts=3, spec=[]),
                                       NO_GREETING),
    "a hello of a negative task": (hello(task=-1), STRANGE),
    "a hello of a huge task": (hello(task=2 ** 31 - 1), STRANGE),
    "a hello of a ps": (hello(job="ps", task=0), STRANGE),
    "a hello of another cluster": (hello(), "ps_hosts differ"),
    "a hello with strange hosts": (hello(ps_hosts=[None, {}], worker_hosts=["", 7]),
                                   r"ps_hosts\[0\] differs"),
    "a hello with too many hosts": (hello(ps_hosts=["h:1"] * 5000), "ps_hosts differ"),
    "a setup of a stranger": (message("SETUP", b"{}"), NOT_FIRST),
    "initial values of a stranger": (message("INIT", length=LARGEST), HANGS_UP),
    "a push of a stranger": (message("PUSH", length=1 << 40), HANGS_UP),
    "a wish of a stranger": (message("JOIN"), NOT_FIRST),
    "an end of a stranger": (message("FINISHED"), NOT_FIRST),
    "a verdict of a stranger": (message("VERDICT", b"end"), NOT_FIRST),
    "an unknown message": (message(4711), NOT_FIRST),
    "windows of a stranger": (message("WINDOWS", values=8, gradients=8), HANGS_UP),
}


@dataclasses.dataclass
class Guest:
    """Somebody who was welcomed instead of a worker, and has asked for values."""
    connection: wire.Connection
    generation: int
    step: int
    updates: int
    block: int  # bytes of values, and of gradients
    pushes: int  # number of the last one

    def say(self, kind, body=b"", **header):
        """Right, but for what is said."""
        numbers = (1, self.pushes + 1, self.step, self.updates)
        fields = [name for name, _ in wire.FIELDS_OF.get(kind, ())]
        right = {name: number for name, number in zip(fields, numbers) if name}
        self.connection.send(kind, body, **{"generation": self.generation, "task": WORKER, **right, **header})

    def bring(self, kind, sent=None, **header):
        """A stretch. sent: how much of it, where not all."""
        header = {"length": self.block, **header}
        self.say(kind, **header)
        self.connection.socket.sendall(bytes(header["length"] if sent is None else sent))

    def push(self, sent=None, **header):
        self.bring("PUSH", sent, **header)

    def is_heard(self):
        """Whether a question is still answered."""
        try:
            self.say("JOIN", push=0, what=0)
            return self.connection.hear_kind("LEDGER") is not None
        except ConnectionError:
            return False


def say_to_others(guest):
    """Whatever is not for a ps, or not for it now, of who may not say it."""
    for kind in sorted(set(wire.KINDS) - LEFT_OUT - {"PUSH", "INIT", "JOIN", "FINISHED"}):
        for body in (b"", b"{}", bytes(24), random_bytes(3)):
            guest.say(kind, body)
    for kind in (4711, 2 ** 32 - 1):
        guest.say(kind, b"{}")


ALIGNED = 64  # bytes: where rows may begin
PART = 16 << 10  # of a small block


def push_parts_twice(guest):
    guest.bring("PART", offset=PART, length=guest.block - PART)
    guest.push(offset=PART, length=guest.block - PART)


# What a guest does, and whether it is still heard afterwards
DEEDS = {
    "values of a chief": (lambda g: g.bring("INIT"), True),
    "half of them": (lambda g: g.bring("INIT", length=g.block // 2), False),
    "what is for others": (say_to_others, True),
    "a push of another life of the values": (lambda g: g.push(generation=g.generation + 1), True),
    "a push before its time": (lambda g: g.push(push=g.pushes + 2), False),
    "a push of before": (lambda g: g.push(push=g.pushes), True),
    "a push for values that are not yet": (lambda g: g.push(updates=LARGEST), False),
    "a push for a step that is not yet": (lambda g: g.push(step=g.step + 1), False),
    "a push of more gradients than were agreed": (lambda g: g.push(gradients=2), False),
    "a push of so many that a sum wraps": (lambda g: g.push(gradients=LARGEST), False),
    "a part of more gradients than were agreed":
        (lambda g: g.bring("PART", offset=PART, length=g.block - PART, gradients=2), False),
    "a push without a gradient": (lambda g: g.say("PUSH"), False),
    "half a push": (lambda g: g.push(length=g.block // 2), False),
    "a push that begins late": (lambda g: g.push(offset=4, length=g.block - 4), False),
    "a push that is too long": (lambda g: g.push(0, length=g.block + 4), False),
    "a push that begins behind the end": (lambda g: g.push(0, offset=g.block), False),
    "a push that wraps around": (lambda g: g.push(0, offset=LARGEST - 3, length=8), False),
    "a push that is as long as can be": (lambda g: g.push(0, length=LARGEST), False),
    "a push with a body": (lambda g: g.say("PUSH", b"words", length=g.block), False),
    "a part": (lambda g: g.bring("PART", offset=PART, length=g.block - PART), True),
    "some of a part": (lambda g: g.bring("PART", offset=PART, length=ALIGNED), False),
    "the first part": (lambda g: g.bring("PART", length=PART), False),
    "a part of nothing": (lambda g: g.say("PART"), True),
    "a part that is a whole block": (lambda g: g.bring("PART"), False),
    "a part that begins anywhere": (lambda g: g.bring("PART", offset=4, length=ALIGNED), False),
    "a push whose part has not come":
        (lambda g: g.push(length=PART), False),
    "a push of what has come": (push_parts_twice, False),
    "windows": (lambda g: g.say("WINDOWS", values=8, gradients=8), False),
    "a body beyond the limit": (lambda g: g.say("ASK", body_bytes=BODY_MAX + 1), False),
    "another version in the middle": (lambda g: g.say("JOIN", PROTOCOL_VERSION=VERSION + 1), False),
    "random bytes in the middle": (lambda g: g.connection.socket.sendall(random_bytes(4)), False),
    "a push that breaks off": (lambda g: g.push(g.block // 2), None),
}


def random_word(rng, guest):
    """One message: a kind, and fields of which some are right. A stretch that can be is there."""
    kind = rng.choice(sorted(set(wire.KINDS) - LEFT_OUT) + ["WINDOWS", 4711])
    fields = ["generation", "offset", "length", *wire.places_of(kind)]
    strange = rng.sample(fields, rng.randrange(4))
    header = {name: rng.choice((0, 1, 2, 3, 7, guest.block, 2 ** 31, 2 ** 32 - 1, LARGEST))
              for name in strange}
    if kind == "PUSH":
        header["gradients"] = 1  # how many gradients: a sum of them may be as wrong as it likes
        header.setdefault("length", guest.block)
    body = rng.choice((b"", b"", b"{}", bytes(24), bytes(48), rng.randbytes(40)))
    sent = header.get("length", 0)
    guest.say(kind, body, **header)
    guest.connection.socket.sendall(bytes(sent if sent <= guest.block else 0))


PIECE = 20  # rows of the table on each ps, of one float each
MOST = 40  # that a batch can name


def align(data):
    return data.ljust(-(-len(data) // ALIGNED) * ALIGNED, b"\0")


def front(pushed=(), wanted=(), counts=None):
    """Of a window of rows. counts: what it says that it has, where that is not what it has."""
    counts = counts or (len(pushed), len(wanted))
    head = struct.pack(f"<{2 + len(wanted)}q", *counts, *wanted)
    return align(align(head) + bytes(4 * len(pushed))) + struct.pack(f"<{len(pushed)}q", *pushed)


def here(name, *rows):
    """Rows of the piece that lies on this ps: the first is on ps/1, since ps/0 has the global step."""
    return [row + PIECE * (name == "ps/0") for row in rows]


def say_rows(guest, data, sent=None, **header):
    guest.say("ROWS", **{"flags": 0, "length": len(data), **header})
    guest.connection.socket.sendall(data if sent is None else data[:sent])


def ask_rows(guest, rows):
    say_rows(guest, front(wanted=rows), flags=wire.CODES["ROWS_ASKED"])


def push_rows(guest, data, **header):
    say_rows(guest, data, **header)
    guest.push()


def push_again(guest, rows):
    """Numbers that cannot be, behind a push that waits for those of others."""
    push_rows(guest, front(rows))
    say_rows(guest, front(rows, counts=(2 ** 62, 0)))


def deeds_of_rows(name):
    one, two, three = rows = here(name, 1, 2, 19)
    elsewhere = (one + PIECE) % (2 * PIECE)
    deeds = {
        "rows that are asked for": (lambda g: ask_rows(g, rows), True),
        "none that are asked for": (lambda g: ask_rows(g, []), True),
        "rows without a push": (lambda g: say_rows(g, front(rows)), True),
        "a push without rows": (lambda g: g.push(), False),
        "a push with those of another": (lambda g: push_rows(g, front(rows), push=7), False),
        "rows of another life of the values":
            (lambda g: say_rows(g, front(rows), generation=g.generation + 1), True),
        "rows of another life that are asked for": (lambda g: say_rows(
            g, front(wanted=rows), flags=wire.CODES["ROWS_ASKED"], generation=7), True),
        "rows that were brought, and were not": (lambda g: say_rows(
            g, front(rows)[:ALIGNED + 12], flags=wire.CODES["ROWS_BROUGHT"]), False),
        "rows that begin late": (lambda g: say_rows(g, front(rows), offset=64), False),
        "more bytes than rows": (lambda g: say_rows(g, front(rows) + bytes(4)), False),
        "fewer bytes than rows": (lambda g: say_rows(g, front(rows)[:-4]), False),
        "no bytes": (lambda g: say_rows(g, b""), False),
        "as many bytes as can be": (lambda g: say_rows(g, b"", length=LARGEST), False),
        "bytes that wrap around": (lambda g: say_rows(g, b"", offset=LARGEST - 3, length=8), False),
        "rows with a body": (lambda g: g.say("ROWS", b"words", length=0), False),
        "rows that break off": (lambda g: say_rows(g, front(rows), sent=9), None),
    }
    for counts in ((-1, 0), (0, -1), (MOST + 1, 0), (0, MOST + 1), (2 ** 62, 0), (0, 2 ** 62)):
        deeds[f"{counts} rows"] = (
            lambda g, counts=counts: say_rows(g, front(rows, counts=counts)), False)
    for about, bad in {"negative": [-1], "descending": [two, one], "twice": [one, one],
                       "elsewhere": [elsewhere], "nowhere": [2 * PIECE], "huge": [2 ** 62],
                       "behind right ones": [one, three, 2 ** 63 - 1]}.items():
        deeds[f"{about}, asked for"] = (lambda g, bad=bad: ask_rows(g, bad), False)
        deeds[f"{about}, pushed"] = (lambda g, bad=bad: push_rows(g, front(bad)), False)
        deeds[f"{about}, of the next batch"] = (lambda g, bad=bad: say_rows(
            g, front(rows, bad), flags=wire.CODES["ROWS_AND_NEXT"]), False)
    # Last: the round is over then, and the next guest would wait for worker/0.
    deeds["numbers that cannot be behind a push"] = (lambda g: push_again(g, rows), False)
    return deeds


class Strangers(ClusterCase):
    changes = {}

    def start_half(self, flags=(), last_step=STEPS):
        """The ps serve and the chief waits for the gradients of worker/1, which is not there."""
        changes = {**self.changes, "train.mode": "sync", "train.last_step": last_step,
                   "train.worker_timeout_secs": AWAITED_S}
        plan = Plan(changes=changes, absent=["worker/1"], flags=list(flags))
        return self.start(plan, lambda c: "step 1 of" in c.tasks["worker/0"].text() or any(
            t.has_ended() for t in c.tasks.values()))

    def call(self, address):
        stranger = wire.Connection(address, program.LIMIT_S)
        self.addCleanup(stranger.close)
        return stranger

    def try_greeting(self, cluster, name, life):
        """A connection and None, or None and why not."""
        connection = self.call(cluster.address(name))
        connection.socket.sendall(hello(cluster.hosts, incarnation=f"{life:x}"))
        heard = connection.hear()
        if heard and heard.kind == "WELCOME":
            return connection, None
        connection.close()
        return None, heard.text() if heard else "it hung up"

    def welcome(self, cluster, name, life):
        """The one before it may not be missed yet."""
        deadline = time.monotonic() + program.LIMIT_S
        connection, why = self.try_greeting(cluster, name, life)
        while not connection:
            self.assertRegex(why, "is already here", cluster.story())
            self.assertLess(time.monotonic(), deadline, UNWELCOME + cluster.story())
            time.sleep(program.LOOK_S)
            connection, why = self.try_greeting(cluster, name, life)
        return connection

    def be_guest(self, cluster, name, life):
        connection = self.welcome(cluster, name, life)
        state = connection.hear_kind("STATE").values
        self.assertEqual(state["state"], wire.CODES["PS_SERVING"], cluster.story())
        connection.send("JOIN", generation=state["generation"], task=WORKER)
        ledger = connection.hear_kind("LEDGER").values
        values = connection.hear_kind("VALUES").values
        return Guest(connection, state["generation"], values["step"], values["updates"],
                     values["length"], ledger["push"])

    def finish(self, cluster):
        self.assertFalse(any(t.has_ended() for t in cluster.tasks.values()), cluster.story())
        cluster.start("worker/1")
        self.assert_codes(cluster, 0)
        self.assert_says(cluster, "worker/0", rf"(?m)^step {STEPS}, test loss")

    def speak_before_there_are_windows(self, cluster, speak):
        connection = self.welcome(cluster, "ps/0", 1000)
        state = connection.hear_kind("STATE").values
        guest = Guest(connection, state["generation"], 0, 0, 64, 0)
        try:
            speak(guest)
        except ConnectionError:
            pass
        self.assertFalse(guest.is_heard())
        connection.close()

    def try_deeds(self, cluster, deeds_of):
        """deeds_of(ps): {about: (what a guest does there, whether it is still heard afterwards)}"""
        for name in ("ps/0", "ps/1"):
            for life, (about, (do, is_heard)) in enumerate(deeds_of(name).items(), 1):
                with self.subTest(about, name=name):
                    guest = self.be_guest(cluster, name, life)
                    try:
                        do(guest)
                    except ConnectionError:
                        self.assertFalse(is_heard)
                    if is_heard is not None:
                        self.assertEqual(guest.is_heard(), is_heard, cluster.story())
                    guest.connection.close()


class Garbage(Strangers):
    changes = {"placement": {"partitioner": {"type": "fixed_size", "num_shards": 2}}}  # parts of both

    def assert_answer(self, address, words, answer):
        """Is refused with these words, or hung up on, or waited for until it hangs up itself."""
        stranger = self.call(address)
        try:
            stranger.socket.sendall(words)
        except ConnectionError:
            self.assertEqual(answer, HANGS_UP)
        if answer != WAITS:
            heard = stranger.hear()
            self.assertEqual(heard and heard.kind, None if answer == HANGS_UP else "REFUSED")
            if heard:
                self.assertRegex(heard.text(), answer)
                self.assertIsNone(stranger.hear())
        stranger.close()

    def test_a_right_greeting_is_welcomed(self):
        """What all others here rely on."""
        cluster = self.start_half()
        for life, name in enumerate(("ps/0", "ps/1"), 1):
            connection, why = self.try_greeting(cluster, name, life)
            self.assertIsNone(why)
            connection.close()
        self.speak_before_there_are_windows(cluster, lambda guest: guest.push())
        guest = self.be_guest(cluster, "ps/0", 3)
        self.assertGreater(guest.block, 0)
        guest.push()
        self.assertTrue(guest.is_heard())
        guest.connection.close()
        self.finish(cluster)

    def leave(self, cluster):
        for words, _ in SAYINGS.values():
            for name in ("ps/0", "ps/1", "worker/0"):
                try:
                    with self.call(cluster.address(name)) as stranger:
                        stranger.socket.sendall(words)
                except ConnectionError:
                    pass  # it has heard enough

    def stay(self, cluster):
        for words, answer in SAYINGS.values():
            if answer == WAITS:
                self.call(cluster.address("ps/0")).socket.sendall(words)
        for _ in range(IDLE):  # who say nothing
            self.call(cluster.address("ps/0"))

    def leaves_a_line(self, cluster):
        """Once in a while: of those before, the first to be told of may be one that is refused."""
        self.assert_answer(cluster.address("ps/0"), *SAYINGS["random bytes"])
        return re.search(r"hangs up on 127\.0\.0\.1:\d+, which sent ", cluster.tasks["ps/0"].text())

    def test_strangers_that_say_nonsense_are_told_why_or_hung_up_on(self):
        cluster = self.start_half(["--transport=tcp"])
        for about, (words, answer) in SAYINGS.items():
            with self.subTest(about):
                self.assert_answer(cluster.address("ps/0"), words, answer)
        cluster.wait_until(lambda: self.leaves_a_line(cluster), "a line about who sends what is no message")
        self.leave(cluster)
        self.stay(cluster)
        self.finish(cluster)

    def test_a_hello_that_does_not_fit_is_refused(self):
        cluster = self.start_half()
        later = {"resizes": 2 ** 62, "ps": 1, "workers": 1}
        for words, answer in (
                ({"task": 0}, "worker/0 is already here"),
                ({"spec": "f" * 20000, "boot_id": "b" * 20000}, "the spec differs"),
                ({"task": 0, "spec": "", "membership": later}, "which has no checkpoint_dir"),
                ({"spec": "", "membership": later}, "which has no checkpoint_dir"),
                ({"spec": "f" * 16, "membership": later}, "the spec differs")):
            self.assert_answer(cluster.address("ps/0"), hello(cluster.hosts, **words), answer)
        self.finish(cluster)

    def test_a_chief_that_is_here_knows_of_every_move(self):
        self.changes = {**self.changes, "train.checkpoint_dir": "checkpoints"}
        cluster = self.start_half()
        self.assert_answer(cluster.address("ps/1"), hello(
            cluster.hosts, membership={"resizes": 1, "ps": 2, "workers": 1}), "knows nothing")
        self.finish(cluster)

    def test_guests_that_break_the_rules_are_hung_up_on_and_the_others_overheard(self):
        cluster = self.start_half()
        self.try_deeds(cluster, lambda name: DEEDS)
        self.finish(cluster)

    def test_guests_that_say_anything(self):
        """Rounds may go on without the true worker, so that the end is one that is asked for."""
        cluster = self.start_half(["--stop_timeout=1"], last_step=ENDLESS)
        known = {name: self.be_guest(cluster, name, 1) for name in ("ps/0", "ps/1")}
        for first in known.values():
            first.connection.close()
        for life in range(2, 2 + GUESTS):
            rng = random.Random(life)
            name = rng.choice(sorted(known))
            connection = self.welcome(cluster, name, life)
            try:
                connection.send("JOIN", generation=known[name].generation, task=WORKER)
                for _ in range(WORDS):
                    random_word(rng, dataclasses.replace(known[name], connection=connection))
            except ConnectionError:
                pass
            connection.close()
            self.assertFalse(any(t.has_ended() for t in cluster.tasks.values()),
                             f"life {life}\n{cluster.story()}")
        cluster.tasks["ps/0"].process.send_signal(signal.SIGTERM)
        self.assert_codes(cluster, TERMINATED)

    def test_a_guest_that_sets_up_a_ps_ends_the_job_for_a_retry(self):
        cluster = self.start_half()
        guest = self.be_guest(cluster, "ps/1", 1)
        guest.say("SETUP", b"{}")
        self.assert_codes(cluster, 128)
        self.assert_says(cluster, "worker/0", "SETUP from a task that is not the chief")


class GarbageOfRows(Strangers):
    """The one table lies on both ps, half of its rows on each."""
    changes = {**CLICKS, **TABLES_ONLY,
               "placement": {"partitioner": {"type": "fixed_size", "num_shards": 2}}}

    def test_guests_that_break_the_rules_are_hung_up_on_and_the_others_overheard(self):
        cluster = self.start_half()
        self.try_deeds(cluster, deeds_of_rows)
        self.finish(cluster)

    def test_rows_are_answered(self):
        cluster = self.start_half()
        self.speak_before_there_are_windows(
            cluster, lambda guest: push_rows(guest, front(here("ps/0", 0))))
        for life, name in enumerate(("ps/0", "ps/1"), 1):
            guest = self.be_guest(cluster, name, life)
            ask_rows(guest, here(name, 0, 19))
            heard = guest.connection.hear_kind("ROWS").values
            self.assertEqual([heard["flags"], heard["length"], heard["request_id"]],
                             [wire.CODES["ROWS_ASKED"], 2 * 4, guest.step])
            say_rows(guest, front(wanted=here(name, 0)), flags=wire.CODES["ROWS_ASKED"],
                     generation=7)
            self.assertEqual(guest.connection.hear_kind("ROWS").values["flags"],
                             wire.CODES["ROWS_NONE"])
            guest.connection.close()
        self.finish(cluster)


if __name__ == "__main__":
    program.main()
