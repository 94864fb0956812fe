"""A ps that lies to its workers: they go on as without one, until a limit that has a name.

Whoever listens at the address of a ps says what it likes, to one worker of the real program.
"""
import contextlib
import dataclasses
import json
import os
import pathlib
import signal
import socket
import struct
import threading

import program
from program import wire
from program.clicks import CLICKS, TABLES_ONLY
from program.cluster import Cluster, ClusterCase, Plan

BOOT_ID = pathlib.Path("/proc/sys/kernel/random/boot_id")
AGAIN = 20
LARGEST = 2 ** 64 - 1
FLAGS = ["--restart_timeout=1", "--stop_timeout=1"]  # what is waited for when the false ps has had its say
WRONG, LOST, TIMEOUT = 2, 128, 129
TERMINATED = 128 + signal.SIGTERM
GENERATION = 77
FLOATS = (784 * 16, 16, 16 * 10, 10)  # of the small spec's variables, each rounded up to a line
LINE = 64
ROWS = 1088  # bytes of the window of rows of a table of 40 rows that are one wide
BLOCK = 4 * sum(-(-n // 16) * 16 for n in FLOATS)


def sizes_in(folder):
    """Of the files that are there; some are removed meanwhile."""
    for at, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                yield os.stat(os.path.join(at, name)).st_size


@dataclasses.dataclass
class Scene:
    cluster: Cluster
    listener: socket.socket
    life: int = 4

    def accept(self):
        """A connection of the worker that has said HELLO."""
        end, _ = self.listener.accept()
        connection = wire.Connection(end, program.LIMIT_S)
        if connection.hear().kind != "HELLO":
            raise AssertionError("the first message is not HELLO")
        return connection

    def welcome(self, **changes):
        self.life += 1
        return wire.message("WELCOME", wire.greeting(self.cluster.hosts, "ps", 0, **{
            "incarnation": f"{self.life:x}", **changes}))

    def code(self):
        return self.cluster.wait()["worker/1"]

    def code_of_terminated(self):
        """It would wait for a ps until a limit of minutes."""
        self.cluster.tasks["worker/1"].process.send_signal(signal.SIGTERM)
        return self.code()


class FalsePs(ClusterCase):
    def begin(self, flags=(), changes=(), name="worker/1"):
        cluster = Cluster(self.folder, Plan(ps=1, workers=2, flags=[*FLAGS, *flags],
                                            changes={**dict(changes), "train.mode": "async"}))
        self.addCleanup(cluster.kill)
        listener = socket.create_server(("127.0.0.1", 0))
        listener.settimeout(program.LIMIT_S)
        self.addCleanup(listener.close)
        cluster.hosts["ps"] = [f"127.0.0.1:{listener.getsockname()[1]}"]
        cluster.start(name)
        return Scene(cluster, listener)

    def test_another_version_of_the_protocol_ends_a_worker_in_words(self):
        """Whatever the message is: its header says who speaks."""
        for version in (wire.VERSION - 1, wire.VERSION + 1):
            for said in (wire.message("REFUSED", b"?", PROTOCOL_VERSION=version),
                         wire.message(4711, PROTOCOL_VERSION=version)):
                scene = self.begin(["--transport=tcp"])
                with scene.accept() as first:
                    first.socket.sendall(said)
                    heard = first.hear_kind("REFUSED")
                    self.assertEqual(heard.values["exit_code"], WRONG)
                    self.assertRegex(heard.text(), f"speaks protocol version {version}, this program")
                    self.assertEqual(scene.code(), WRONG, scene.cluster.story())
                self.assert_says(scene.cluster, "worker/1",
                                 rf"ps/0 at \S+: speaks protocol version {version}, this program")

    def test_another_version_of_the_protocol_ends_a_visitor_in_words(self):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            listener.settimeout(program.LIMIT_S)
            port = listener.getsockname()[1]
            version = wire.VERSION + 1

            def answer():
                end, _ = listener.accept()
                with wire.Connection(end, program.LIMIT_S) as visitor:
                    visitor.hear()
                    visitor.socket.sendall(wire.message("REFUSED", PROTOCOL_VERSION=version))
                    visitor.hear()
            thread = threading.Thread(target=answer)
            thread.start()
            said = program.run(["var", "ls", f"--ps_hosts=127.0.0.1:{port}"], self.folder)
            thread.join()
        self.assertEqual(said.returncode, WRONG)
        self.assertIn(f"speaks protocol version {version}, this program", said.stderr)

    def test_a_list_of_variables_has_an_end(self):
        """A page after the other of one variable each, or one page of too many."""
        row = {"name": "v", "kind": "shared", "shape": []}
        for rows in (1, 1001):
            with self.subTest(rows), socket.create_server(("127.0.0.1", 0)) as listener:
                listener.settimeout(program.LIMIT_S)
                hosts = {"ps": [f"127.0.0.1:{listener.getsockname()[1]}"], "worker": ["127.0.0.1:1"]}

                def list_for_ever(listener=listener, hosts=hosts, rows=rows):
                    end, _ = listener.accept()
                    with wire.Connection(end, program.LIMIT_S) as visitor:
                        visitor.hear()
                        visitor.send("WELCOME", wire.greeting(hosts, "ps", 0))
                        asked = visitor.hear()
                        page = 0
                        while asked:
                            page += 1
                            text = json.dumps({"variables": [row] * rows, "next": page})
                            visitor.send("ANSWER", text.encode(), number=asked.values["number"])
                            asked = visitor.hear()
                thread = threading.Thread(target=list_for_ever)
                thread.start()
                said = program.run(["var", "ls", f"--ps_hosts={hosts['ps'][0]}", "--timeout=600"],
                                   self.folder)
                thread.join()
                self.assertGreater(said.returncode, 0)
                self.assertIn("ps/0: a list of variables without an end", said.stderr)

    def serve_without_rows(self, scene, has_plan):
        """All else comes, but for the plan of batches where it is left out."""
        with scene.accept() as first:
            first.socket.sendall(scene.welcome() + wire.message(
                "STATE", state=wire.CODES["PS_SERVING"], generation=GENERATION, last_step=1000))
            first.hear_kind("JOIN")
            first.send("WINDOWS", values=LINE, gradients=LINE, rows=ROWS)
            heard = wire.Heard("JOIN", {"number": 1}, b"")
            while heard:
                if heard.kind == "JOIN":
                    first.send("LEDGER", struct.pack("<3Q", 0, 0, 0), generation=GENERATION,
                               join=heard.values["number"])
                    if has_plan:
                        first.send("PLAN", struct.pack("<2Q", 0, 50), generation=GENERATION, push=1)
                    first.send("VALUES", flags=wire.CODES["VALUES_TICKET"], generation=GENERATION,
                               length=LINE)
                    first.socket.sendall(bytes(LINE))
                elif heard.kind == "ROWS":
                    first.send("ROWS", flags=wire.CODES["ROWS_NONE"], generation=GENERATION,
                               request_id=heard.values["request_id"])
                heard = first.hear()

    def test_rows_or_batches_that_never_come_end_a_step_at_its_limit(self):
        """The step would be begun again for ever."""
        table = {**CLICKS, **TABLES_ONLY, "train.last_step": 1000}
        for has_plan in (True, False):
            scene = self.begin(["--transport=tcp", "--step_timeout=1"], table)
            self.serve_without_rows(scene, has_plan)
            self.assertEqual(scene.code(), TIMEOUT, scene.cluster.story())
            self.assert_says(scene.cluster, "worker/1", r"rows did not all come, \d{3,} times within \d+ s "
                                                        r"\(--step_timeout\)")
            self.assertLess(scene.cluster.tasks["worker/1"].text().count("rows did not arrive"), 20)

    def test_a_shard_from_afar_has_no_holes(self):
        """A checkpoint that is begun with the first step is given up, and nothing large is written."""
        folder = pathlib.Path(self.folder) / "kept"
        scene = self.begin(["--transport=tcp"], {"train.checkpoint_dir": str(folder)}, "worker/0")
        with scene.accept() as first:
            first.socket.sendall(scene.welcome() + wire.message("STATE", state=wire.CODES["PS_EMPTY"]))
            generation = json.loads(first.hear_kind("SETUP").body)["generation"]
            generation = int(generation, 16) if isinstance(generation, str) else generation
            first.send("READY", outcome=wire.CODES["READY_RESTORED"], generation=generation)
            save = first.hear_kind("SAVE")
            self.assertIsNotNone(save)
            about = {"generation": save.values["generation"], "tag": save.values["tag"]}
            first.send("SNAPSHOT", bytes(8 * 3 * 2), **about)
            self.assertIsNotNone(first.hear_kind("RESUME"))
            first.send("SHARD", b"x", offset=0, **about)
            first.send("SHARD", b"x", offset=2 ** 40, **about)
            first.send("SAVED", **about)
            scene.cluster.wait_for("worker/0", "not from 1 on")
            self.assertLess(max(sizes_in(folder), default=0), 1 << 20)
        scene.listener.close()
        self.assertGreater(scene.cluster.wait()["worker/0"], 0)

    def test_windows_of_a_link_that_is_not_taken_are_refused(self):
        scene = self.begin(["--transport=tcp"])
        with scene.accept() as first:
            first.send("WINDOWS", values=BLOCK, gradients=BLOCK)
            self.assertIsNone(first.hear())
        with scene.accept() as second:
            second.socket.sendall(scene.welcome() + wire.message("STATE", state=wire.CODES["PS_SERVING"],
                                                                 generation=GENERATION, last_step=1000))
            self.assertIsNotNone(second.hear_kind("JOIN"))
        scene.listener.close()
        self.assertEqual(scene.code(), LOST, scene.cluster.story())

    def test_windows_that_are_gone_are_not_read(self):
        """Of the link that was taken, which is lost before anything is computed."""
        scene = self.begin(["--transport=tcp"])
        with scene.accept() as first:
            first.socket.sendall(scene.welcome() + wire.message("STATE", state=wire.CODES["PS_SERVING"],
                                                                generation=GENERATION, last_step=1000))
            self.assertIsNotNone(first.hear_kind("JOIN"))
            first.send("WINDOWS", values=BLOCK, gradients=BLOCK)
            first.send("REFUSED", b"gone", exit_code=2)
            self.assertNotIn(scene.code(), (0, None))

    def offer_memory(self):
        """Where a worker may ask for shared memory, and what WELCOME says of it."""
        name = f"dtrain-false-{self.id()}"
        memory = socket.socket(socket.AF_UNIX)
        memory.bind(b"\0" + name.encode())
        memory.listen(AGAIN)
        memory.settimeout(program.LIMIT_S)
        return memory, {"boot_id": BOOT_ID.read_text(encoding="ascii").strip(), "shm": name}

    def test_a_welcome_that_comes_again_and_again_begins_one_connection(self):
        scene = self.begin()
        memory, offer = self.offer_memory()
        with memory, scene.accept() as first:
            first.socket.sendall(b"".join(scene.welcome(**offer) for _ in range(AGAIN)))
            kept, _ = memory.accept()
            self.assertIsNone(first.hear())
            memory.setblocking(False)
            self.assertRaises(BlockingIOError, memory.accept)
            scene.listener.close()
            self.assertEqual(scene.code_of_terminated(), TERMINATED, scene.cluster.story())
            kept.close()
        self.assert_says(scene.cluster, "worker/1", "ps/0 sent WELCOME again")

    def test_a_move_leaves_no_connection_behind(self):
        scene = self.begin()
        memory, offer = self.offer_memory()
        with memory, scene.accept() as first:
            first.socket.sendall(scene.welcome(**offer))
            kept, _ = memory.accept()
            kept.settimeout(program.LIMIT_S)
            first.send("RESIZE", struct.pack("<3Q", 1, 1, 2))
            with scene.accept():
                while kept.recv(4096):  # its greeting, and then the end
                    pass
            kept.close()
            scene.listener.close()
            self.assertEqual(scene.code_of_terminated(), TERMINATED, scene.cluster.story())


if __name__ == "__main__":
    program.main()
