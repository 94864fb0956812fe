"""Visitors that do not keep to the rules, and too many of them: a ps takes no harm."""
import json
import os
import re
import socket
import struct
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "cluster"))

import support  # pylint: disable=wrong-import-position
from support import LIMIT_S, Plan  # pylint: disable=wrong-import-position

with open(os.path.join(HERE, "..", "..", "net", "message.h"), encoding="utf-8") as HEADER:
    TEXT = HEADER.read()
VERSION = int(re.search(r"PROTOCOL_VERSION = (\d+)", TEXT)[1])
MAGIC = int(re.search(r"MESSAGE_MAGIC = (\w+)", TEXT)[1], 0)
NAMES = re.findall(r"^    MESSAGE_([A-Z]+)\b", TEXT[TEXT.index("enum message_type"):], re.M)
TYPE = {name: number for number, name in enumerate(NAMES, 1)}
HEADER_BYTES = 80
VISITORS_MAX = 64


def message(kind, body=b"", sequence=0, length=0):
    return struct.pack("<6I6Q2I", MAGIC, TYPE[kind], 0, 0, 2, len(body), 0, sequence, 0, 0, 0,
                       length, VERSION, 0) + body


class Visitor:
    """A visitor by hand."""

    def __init__(self, address):
        host, port = address.split(":")
        self.socket = socket.create_connection((host, int(port)), LIMIT_S)
        self.socket.settimeout(LIMIT_S)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.socket.close()

    def send(self, *words, **header):
        self.socket.sendall(message(*words, **header))

    def greet(self, protocol=VERSION):
        self.send("HELLO", json.dumps({"protocol": protocol, "job": "visitor"}).encode())
        return self.hear()

    def ask(self, text, sequence=1):
        self.send("ASK", text.encode(), sequence=sequence)
        return self.hear()

    def read(self, count):
        data = b""
        while len(data) < count:
            more = self.socket.recv(count - len(data))
            if not more:
                return data
            data += more
        return data

    def hear(self):
        """The name of a message, its sequence and its body; None where the ps has hung up."""
        try:
            header = self.read(HEADER_BYTES)
        except ConnectionResetError:
            return None
        if len(header) < HEADER_BYTES:
            return None
        fields = struct.unpack("<6I6Q2I", header)
        return NAMES[fields[1] - 1], fields[7], self.read(fields[5]).decode()


class Wild(support.ClusterCase):
    def setUp(self):
        super().setUp()
        self.cluster = self.start(Plan(ps=1, workers=1, absent=["worker/0"]), lambda c: all(
            support.is_listened_on(address) for address in c.hosts["ps"]))
        self.address = self.cluster.hosts["ps"][0]

    def assert_well(self):
        """The ps is there and answers."""
        with Visitor(self.address) as visitor:
            self.assertEqual(visitor.greet()[0], "WELCOME")
            kind, sequence, body = visitor.ask('{"do": "get", "name": "global_step"}', 7)
            self.assertEqual((kind, sequence), ("ANSWER", 7))
            self.assertEqual(json.loads(body)["kind"], "step")

    def test_what_a_visitor_may_not_say_ends_its_visit(self):
        for kind in ("PUSH", "SETUP", "INIT", "JOIN", "VERDICT", "WELCOME", "ANSWER"):
            with self.subTest(kind=kind), Visitor(self.address) as visitor:
                self.assertEqual(visitor.greet()[0], "WELCOME")
                visitor.send(kind, b"{}")
                self.assertIsNone(visitor.hear())
        self.assert_well()

    def test_who_has_not_greeted_is_not_answered(self):
        with Visitor(self.address) as visitor:
            kind, _, body = visitor.ask('{"do": "list"}')
            self.assertEqual((kind, body), ("REFUSED", "the first message is not HELLO"))
        self.assert_well()

    def test_another_version_of_the_protocol_is_refused(self):
        with Visitor(self.address) as visitor:
            kind, _, body = visitor.greet(protocol=VERSION + 1)
            self.assertEqual(kind, "REFUSED")
            self.assertRegex(body, "protocol version differs")
        self.assert_well()

    def test_nonsense_is_answered_and_the_visit_goes_on(self):
        with Visitor(self.address) as visitor:
            visitor.greet()
            for number, text in enumerate(("", "{", "[]", "[" * 100000, '{"do": 1}', "\x00\xff",
                                           '{"do": "get", "name": "\\ud800"}',
                                           '{"do": "list", "from": 1e400}')):
                with self.subTest(text=text[:20]):
                    kind, sequence, body = visitor.ask(text, number)
                    self.assertEqual((kind, sequence), ("ANSWER", number))
                    self.assertEqual(json.loads(body)["code"], 2)
        self.assert_well()

    def test_there_is_room_for_so_many_visitors_and_again_when_they_leave(self):
        visitors = [Visitor(self.address) for _ in range(VISITORS_MAX)]
        for visitor in visitors:
            self.addCleanup(visitor.socket.close)
            self.assertEqual(visitor.greet()[0], "WELCOME")
        with Visitor(self.address) as late:
            kind, _, body = late.greet()
            self.assertEqual((kind, body), ("REFUSED", "64 visitors are here already"))
        visitors[3].socket.close()

        def is_let_in():
            with Visitor(self.address) as late:
                return late.greet()[0] == "WELCOME"

        self.cluster.wait_until(is_let_in, "room for one more")


if __name__ == "__main__":
    support.main()
