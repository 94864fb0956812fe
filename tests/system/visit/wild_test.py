"""Visitors that do not keep to the rules, and too many of them: a ps takes no harm."""
import json

import program
from program import wire
from visitors import VISITORS_MAX, VisitCase, Visitor


class Wild(VisitCase):
    def setUp(self):
        super().setUp()
        self.address = self.lone()

    def test_what_a_visitor_may_not_say_ends_its_visit(self):
        for kind in sorted(set(wire.KINDS) - {"ASK"}):
            with self.subTest(kind=kind), Visitor(self.address) as visitor:
                self.assertEqual(visitor.greet().kind, "WELCOME")
                visitor.send(kind, b"{}")
                self.assertIsNone(visitor.hear())
        self.assert_well(self.address)

    def test_who_has_not_greeted_is_not_answered(self):
        with Visitor(self.address) as visitor:
            answer = visitor.ask('{"do": "list"}')
            self.assertEqual((answer.kind, answer.text()),
                             ("REFUSED", "the first message is not HELLO"))
        self.assert_well(self.address)

    def test_another_version_of_the_protocol_is_refused(self):
        with Visitor(self.address) as visitor:
            answer = visitor.greet(protocol=wire.VERSION + 1)
            self.assertEqual(answer.kind, "REFUSED")
            self.assertRegex(answer.text(), "protocol version differs")
        self.assert_well(self.address)

    def test_nonsense_is_answered_and_the_visit_goes_on(self):
        with Visitor(self.address) as visitor:
            self.assertEqual(visitor.greet().kind, "WELCOME")
            for number, text in enumerate(("", "{", "[]", "[" * 100000, '{"do": 1}', "\x00\xff",
                                           '{"do": "get", "name": "\\ud800"}',
                                           '{"do": "list", "from": 1e400}')):
                with self.subTest(text=text[:20]):
                    answer = visitor.ask(text, number)
                    self.assertEqual((answer.kind, answer.values["number"]), ("ANSWER", number))
                    self.assertEqual(json.loads(answer.body)["code"], 2)
        self.assert_well(self.address)

    def test_there_is_room_for_so_many_visitors_and_again_when_they_leave(self):
        visitors = [self.visitor(self.address) for _ in range(VISITORS_MAX)]
        visitors[3].close()

        def is_let_in():
            with Visitor(self.address) as late:
                return late.greet().kind == "WELCOME"

        self.cluster.wait_until(is_let_in, "room for one more")


if __name__ == "__main__":
    program.main()
