"""Visitors that ask for as much as they can get: training continues, and ends when it is told to."""
import signal
import threading

import program
from program import wire
from program.cluster import Plan
from visitors import VisitCase, Visitor

STEPS = 100  # whether guests get more than their share, tests/net sees
LARGE = {"model": [{"op": "flatten"},
                   {"op": "dense", "name": "hidden", "units": 76, "activation": "relu"},
                   {"op": "dense", "name": "logits", "units": 10}]}
ASK = '{"do": "get", "name": "hidden/kernel"}'  # 784 * 76 numbers
SAVES = {"train.checkpoint_dir": "run", "train.save_checkpoint_secs": 100000}
TERMINATED = 143


class Crowd:
    """Threads that do something to a ps again and again until they are told to stop."""

    def __init__(self, visit, count):
        self.has_ended = threading.Event()
        self.visit = visit
        self.threads = [threading.Thread(target=self.run) for _ in range(count)]
        for thread in self.threads:
            thread.start()

    def run(self):
        while not self.has_ended.is_set():
            try:
                self.visit(self.has_ended.is_set)
            except OSError:
                pass  # turned away, or the ps has gone

    def stop(self):
        self.has_ended.set()
        for thread in self.threads:
            thread.join()


class Greedy(VisitCase):
    def setUp(self):
        super().setUp()
        self.cluster = self.start_endless(Plan(ps=1, workers=1, changes={**LARGE, **SAVES}))
        self.address = self.cluster.address("ps/0")
        self.polite = self.visitor(self.address)

    def crowd(self, visit, count):
        crowd = Crowd(visit, count)
        self.addCleanup(crowd.stop)

    def assert_goes_on(self):
        """Steps are made while the others are there; and the job ends well."""
        first = self.polite.step()
        self.cluster.wait_until(lambda: self.polite.step() >= first + STEPS, f"{STEPS} steps")
        self.cluster.tasks["worker/0"].process.send_signal(signal.SIGTERM)
        self.assert_codes(self.cluster, TERMINATED)
        self.assert_says(self.cluster, "worker/0", r"saved .*model\.ckpt-[1-9]")

    def test_some_ask_and_never_read(self):
        def ask(is_over):
            with Visitor(self.address) as visitor:
                visitor.greet()
                visitor.socket.settimeout(0.1)  # it blocks soon: nobody hears it
                while not is_over():
                    try:
                        visitor.send("ASK", ASK.encode())
                    except TimeoutError:
                        pass

        self.crowd(ask, 4)
        self.assert_goes_on()

    def test_some_ask_and_read_and_ask(self):
        def ask(is_over):
            with Visitor(self.address) as visitor:
                visitor.greet()
                while not is_over() and visitor.ask(ASK):
                    pass

        self.crowd(ask, 4)
        self.assert_goes_on()

    def test_some_change_what_is_trained(self):
        body = b'{"do": "add", "name": "hidden/kernel", "shape": []}\0' + bytes(8)

        def change(is_over):
            with Visitor(self.address) as visitor:
                visitor.greet()
                while not is_over():
                    visitor.send("ASK", body)
                    if not visitor.hear():
                        return

        self.crowd(change, 4)
        self.assert_goes_on()

    def test_some_come_and_go(self):
        self.crowd(lambda is_over: Visitor(self.address).close(), 2)
        self.assert_goes_on()

    def test_some_greet_in_vain(self):
        def greet(is_over):
            with wire.Connection(self.address, program.LIMIT_S) as stranger:
                stranger.send("HELLO", b"{}")
                stranger.hear()

        self.crowd(greet, 2)
        self.assert_goes_on()


if __name__ == "__main__":
    program.main()
