"""Visitors of a ps, by hand."""
import json
import struct

from program import LIMIT_S, wire
from program.cluster import ClusterCase, Plan, is_listened_on

VISITORS_MAX = 64
STEP = '{"do": "get", "name": "global_step"}'


class Visitor(wire.Connection):
    """One, and its place in a test that ends it."""

    def __init__(self, address):
        super().__init__(address, LIMIT_S)

    def greet(self, protocol=wire.VERSION):
        self.send("HELLO", wire.greeting_of_visitor(protocol))
        return self.hear()

    def ask(self, text, number=1):
        self.send("ASK", text.encode(), number=number)
        return self.hear()

    def step(self):
        """The global step of the ps."""
        text, _, numbers = self.ask(STEP).body.partition(b"\0")
        if json.loads(text)["kind"] != "step":
            raise AssertionError(text)
        return int(struct.unpack("<d", numbers)[0])


class VisitCase(ClusterCase):
    def lone(self):
        """The address of a ps that no chief has set up."""
        plan = Plan(ps=1, workers=1, absent=["worker/0"])
        self.cluster = self.start(plan, lambda c: is_listened_on(c.address("ps/0")))
        return self.cluster.address("ps/0")

    def visitor(self, address, greets=True):
        """A visitor who is there until the test ends."""
        visitor = Visitor(address)
        self.addCleanup(visitor.close)
        if greets:
            self.assertEqual(visitor.greet().kind, "WELCOME")
        return visitor

    def assert_well(self, address):
        """The ps is there and answers."""
        with Visitor(address) as visitor:
            self.assertEqual(visitor.greet().kind, "WELCOME")
            answer = visitor.ask(STEP, 7)
            self.assertEqual((answer.kind, answer.values["number"]), ("ANSWER", 7))
            self.assertEqual(json.loads(answer.body.partition(b"\0")[0])["kind"], "step")
