"""Visitors that do not keep to the rules, and too many of them: a ps takes no harm."""
import json
import socket
import threading

import program
from program import wire
from visitors import VISITORS_MAX, VisitCase, Visitor


class Forwarder:
    """Takes the first connection and says nothing, as one whose ps lives elsewhere by now; carries on all others."""

    def __init__(self, address):
        host, port = address.rsplit(":", 1)
        self.to = host, int(port)
        self.server = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self.server.getsockname()[1]}"
        self.ends = []
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        try:
            self.ends.append(self.server.accept()[0])
            while True:
                near, far = self.server.accept()[0], socket.create_connection(self.to)
                self.ends += [near, far]
                for ends in ((near, far), (far, near)):
                    threading.Thread(target=self.carry, args=ends, daemon=True).start()
        except OSError:
            pass

    @staticmethod
    def carry(source, sink):
        try:
            while piece := source.recv(1 << 16):
                sink.sendall(piece)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def close(self):
        for end in (self.server, *self.ends):
            end.close()


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

    def test_who_takes_a_link_and_says_nothing_is_asked_again(self):
        forwarder = Forwarder(self.address)
        self.addCleanup(forwarder.close)
        ended = program.run(["var", "ls", f"--ps_hosts={forwarder.address}", f"--timeout={program.LIMIT_S}"], self.cluster.folder)
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertGreaterEqual(len(forwarder.ends), 3)  # the first link is left, of two ends, and another is made

    def test_there_is_room_for_so_many_visitors_and_again_when_they_leave(self):
        visitors = [self.visitor(self.address) for _ in range(VISITORS_MAX)]
        visitors[3].close()

        def is_let_in():
            with Visitor(self.address) as late:
                return late.greet().kind == "WELCOME"

        self.cluster.wait_until(is_let_in, "room for one more")


if __name__ == "__main__":
    program.main()
