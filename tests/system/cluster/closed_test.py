"""What other tests here do to an open cluster, to one that is closed by a key, by who has none: nothing of it is heard. A task
answers with the alert of TLS, or with the end of the connection, and its job ends well."""
import os
import socket
import unittest

import breaches_test
import garbage_test
import program
from program import memory, wire

ALERT = bytes.fromhex("15030300020246")  # fatal: protocol_version
OTHER_ALERT = b"\x15\x03"  # of what begins as TLS does
SOME = 5
WORDS = 200  # what is said in one connection, where nobody is heard
VISITS = (["var", "ls"], ["var", "set", "logits/bias[0]", "1"], ["status"], ["logs"], ["scale", "--workers=1"], ["save"],
          ["set", "last_step", "1"], ["drain", "worker/1"], ["stop"], ["profile"])


def greetings(hosts):
    """As workers, visitors and a chief that feeds others are greeted, and what comes after it."""
    yield wire.message("HELLO", wire.greeting(hosts, "worker", garbage_test.WORKER))
    yield wire.message("HELLO", wire.greeting(hosts, "worker", 0))
    yield wire.message("HELLO", wire.greeting_of_visitor()) + wire.message("ASK", b'{"do": "list"}', number=1)
    yield wire.message("HELLO", wire.greeting_of_visitor()) + wire.message("ASK", b'{"do": "stop"}', number=1)


@unittest.skipUnless(program.has_tls(), "this dtrain was built without TLS")
class Closed(memory.Grows, garbage_test.Strangers):
    def assert_unheard(self, address, words):
        """Whatever is answered, no message of ours is among it."""
        heard = b""
        with self.call(address) as stranger:
            try:
                stranger.socket.sendall(words)
                stranger.socket.shutdown(socket.SHUT_WR)
                while more := stranger.socket.recv(1 << 16):
                    heard += more
            except ConnectionError:
                pass
        self.assertTrue(heard in (b"", ALERT) or heard.startswith(OTHER_ALERT), heard[:64])
        self.assertNotIn(wire.MAGIC.to_bytes(4, "little"), heard)

    def all_words(self, hosts):
        yield from greetings(hosts)
        for words, _ in garbage_test.SAYINGS.values():
            yield words
        lies = [wire.message(kind, body, **header) for kind, header, body in breaches_test.all_lies(set())]
        for lie in lies[::SOME]:
            yield lie
        for hello in greetings(hosts):
            for first in range(0, len(lies), WORDS):
                yield hello + b"".join(lies[first:first + WORDS])

    def test_nothing_is_heard_of_who_has_no_key(self):
        path = os.path.join(self.folder, "key")
        with open(path, "w", encoding="ascii") as file:
            file.write("what all tasks of the job have")
        os.chmod(path, 0o600)
        key = f"--key_file={path}"
        self.changes = {"train.replication": "in_graph"}
        cluster = self.start_half(["--transport=tcp", key])
        before = {name: memory.resident_mb(task) for name, task in cluster.tasks.items()}
        for words in self.all_words(cluster.hosts):
            for name in ("ps/0", "ps/1", "worker/0"):
                self.assert_unheard(cluster.address(name), words)
        for words in VISITS:
            said = program.run([*words, "--ps_hosts=" + ",".join(cluster.hosts["ps"]), "--timeout=0.2"], cluster.folder)
            self.assertNotEqual(said.returncode, 0, (words, said.stdout))
        for name, task in cluster.tasks.items():
            self.assertFalse(task.has_ended(), cluster.story())
            self.assertLess(os.path.getsize(task.path), breaches_test.LOG_BYTES_MAX, name)
            self.assert_grown_little(task, before[name])
        self.finish(cluster)


if __name__ == "__main__":
    program.main()
