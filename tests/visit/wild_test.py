"""Visitors that do not keep to the rules, and too many of them: a ps takes no harm."""
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "cluster"))

import support  # pylint: disable=wrong-import-position
from support import LIMIT_S, Plan  # pylint: disable=wrong-import-position
import wire  # pylint: disable=wrong-import-position

VISITORS_MAX = 64


class Visitor(wire.Connection):
    """A visitor by hand."""

    def __init__(self, address):
        super().__init__(address, LIMIT_S)

    def greet(self, protocol=wire.VERSION):
        self.send("HELLO", wire.greeting_of_visitor(protocol))
        return self.hear()

    def ask(self, text, sequence=1):
        self.send("ASK", text.encode(), sequence=sequence)
        return self.hear()


class Wild(support.ClusterCase):
    def setUp(self):
        super().setUp()
        self.cluster = self.start(Plan(ps=1, workers=1, absent=["worker/0"]), lambda c: all(
            support.is_listened_on(address) for address in c.hosts["ps"]))
        self.address = self.cluster.hosts["ps"][0]

    def assert_well(self):
        """The ps is there and answers."""
        with Visitor(self.address) as visitor:
            self.assertEqual(visitor.greet().kind, "WELCOME")
            answer = visitor.ask('{"do": "get", "name": "global_step"}', 7)
            self.assertEqual((answer.kind, answer.values["sequence"]), ("ANSWER", 7))
            self.assertEqual(json.loads(answer.body)["kind"], "step")

    def test_what_a_visitor_may_not_say_ends_its_visit(self):
        for kind in ("PUSH", "SETUP", "INIT", "JOIN", "VERDICT", "WELCOME", "ANSWER"):
            with self.subTest(kind=kind), Visitor(self.address) as visitor:
                self.assertEqual(visitor.greet().kind, "WELCOME")
                visitor.send(kind, b"{}")
                self.assertIsNone(visitor.hear())
        self.assert_well()

    def test_who_has_not_greeted_is_not_answered(self):
        with Visitor(self.address) as visitor:
            answer = visitor.ask('{"do": "list"}')
            self.assertEqual((answer.kind, answer.text()),
                             ("REFUSED", "the first message is not HELLO"))
        self.assert_well()

    def test_another_version_of_the_protocol_is_refused(self):
        with Visitor(self.address) as visitor:
            answer = visitor.greet(protocol=wire.VERSION + 1)
            self.assertEqual(answer.kind, "REFUSED")
            self.assertRegex(answer.text(), "protocol version differs")
        self.assert_well()

    def test_nonsense_is_answered_and_the_visit_goes_on(self):
        with Visitor(self.address) as visitor:
            self.assertEqual(visitor.greet().kind, "WELCOME")
            for number, text in enumerate(("", "{", "[]", "[" * 100000, '{"do": 1}', "\x00\xff",
                                           '{"do": "get", "name": "\\ud800"}',
                                           '{"do": "list", "from": 1e400}')):
                with self.subTest(text=text[:20]):
                    answer = visitor.ask(text, number)
                    self.assertEqual((answer.kind, answer.values["sequence"]), ("ANSWER", number))
                    self.assertEqual(json.loads(answer.body)["code"], 2)
        self.assert_well()

    def test_there_is_room_for_so_many_visitors_and_again_when_they_leave(self):
        visitors = [Visitor(self.address) for _ in range(VISITORS_MAX)]
        for visitor in visitors:
            self.addCleanup(visitor.close)
            self.assertEqual(visitor.greet().kind, "WELCOME")
        with Visitor(self.address) as late:
            answer = late.greet()
            self.assertEqual((answer.kind, answer.text()),
                             ("REFUSED", "64 visitors are here already"))
        visitors[3].close()

        def is_let_in():
            with Visitor(self.address) as late:
                return late.greet().kind == "WELCOME"

        self.cluster.wait_until(is_let_in, "room for one more")


if __name__ == "__main__":
    support.main()
