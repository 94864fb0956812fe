"""A ps that lies to its visitors: whatever it answers, and whenever, each command ends within its limit, says why, and
writes nothing to the terminal that is not text.

    FALSE_SEEDS=100..2000 python3 tests/system/visit/false_ps_test.py"""
import json
import os
import random
import socket
import struct
import threading

import program
from program import lying, wire

FIRST, LAST = map(int, os.environ.get("FALSE_SEEDS", "1..4").split(".."))
MEMORY_KIB = 400 << 10  # of a command
# Not dtrain scale, which waits for as long as the checkpoint of a resize may take, and says so
COMMANDS = [["status"], ["status", "--json"], ["logs"], ["profile", "--steps=2"], ["save"], ["set"], ["set", "learning_rate", "0.1"],
            ["drain", "worker/0"], ["stop"], ["var", "ls"], ["var", "get", "w"], ["var", "stats", "w"],
            ["var", "set", "w", "1"], ["var", "watch", "w"]]
ODD = "a\x1b[2J\x07\x00\u202e\ud800b"
LARGEST = 2 ** 64 - 1


def answers(draw, asked):
    """Bodies of what answers an ASK of this text: near to one that could be, or far."""
    name = draw.choice(["w", ODD, "x" * 5000, "", 7, None])
    number = draw.choice(lying.NUMBERS)
    texts = [
        {"code": draw.choice([0, 1, 2, number, "x"]), "text": draw.choice([ODD, "x" * 5000, 7, None])},
        {"code": 0, "kind": draw.choice(["step", "list", "value", "stats", "status", number]), "name": name, "step": number, "shape": draw.choice([
            [2, 2], [number], [-1], [2 ** 31, 2 ** 31], [2 ** 62, 4], "x", []]), "count": number, "from": number, "next": number},
        {"code": 0, "variables": [{"name": name, "shape": [number], "trainable": number}] * draw.choice([1, 3000]), "next": number},
        {"code": 0, "tasks": [{"task": name, "state": ODD, "counters": {ODD: number}, "age": number}] * draw.choice([1, 300]), "next": number},
        {"code": 0, "lines": [{"text": ODD * 100, "level": number, "time": number, "number": number}] * draw.choice([1, 1000]), "next": number},
        {"code": 0, "settings": {"learning_rate": number, ODD: name}, "findings": [{"rule": ODD, "text": ODD}]},
    ]
    text = json.dumps(draw.choice(texts)).encode()
    text = draw.choice([text, text, lying.mutated(draw, text), b"[" * 100000, b"{" * 3, b'{"code": 0, "x": [' + b"{}," * 2000000 + b"{}]}", b"", asked])
    numbers = draw.choice([b"", b"", struct.pack("<3d", 1, float("nan"), 1e308), bytes(draw.choice([1, 7, 8, 4096, 4 << 20]))])
    return text + (b"\0" + numbers if numbers else b"")


class Liar(threading.Thread):
    """The ps: who greets it is welcomed, most of the time."""

    def __init__(self, seed):
        super().__init__(daemon=True)
        self.draw = random.Random(f"{seed}")
        self.server = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self.server.getsockname()[1]}"
        self.start()

    def run(self):
        while True:
            try:
                end = self.server.accept()[0]
            except OSError:
                return
            try:
                with wire.Connection(end, program.LIMIT_S) as visitor:
                    self.meet(visitor)
            except (OSError, ValueError, AttributeError):
                pass

    def meet(self, visitor):
        draw = self.draw
        visitor.hear()
        body = draw.choice([wire.greeting({"ps": [self.address], "worker": ["127.0.0.1:1"]}, "ps", 0)] * 9 + [b"{}"])
        visitor.send(draw.choice(["WELCOME"] * 9 + ["REFUSED"]), body)
        while heard := visitor.hear():
            for _ in range(draw.choice([1, 1, 1, 0, 3])):
                kind = draw.choice(["ANSWER"] * 20 + ["REFUSED", "STATE", "WINDOWS", 4711, "ASK"])
                number = draw.choice([heard.values.get("number", 0)] * 9 + [0, LARGEST])
                header = {"number": number} if kind == "ANSWER" else {}
                if draw.random() < 0.05:
                    header["body_bytes"] = draw.choice([wire.BODY_MAX, wire.BODY_MAX + 1, 2 ** 32 - 1])
                visitor.send(kind, answers(draw, heard.body), **header)
            if draw.random() < 0.05:
                return


class FalsePs(program.FolderCase):
    def test_whatever_it_answers(self):
        for seed in range(FIRST, LAST + 1):
            ps = Liar(seed)
            for words in COMMANDS:
                done = program.run([*words, f"--ps_hosts={ps.address}", "--timeout=1"], self.folder, encoding="utf-8", errors="surrogateescape")
                said = done.stdout + done.stderr
                with self.subTest(seed=seed, words=words):
                    self.assertIn(done.returncode, range(130), said[-2000:])
                    self.assertTrue(done.returncode == 0 or "dtrain: " in said, said[-2000:])
                    for letter in "\x1b", "\x07", "\0":
                        self.assertNotIn(letter, said)
                    self.assert_took_at_most(MEMORY_KIB, words)
            ps.server.close()


if __name__ == "__main__":
    program.main()
