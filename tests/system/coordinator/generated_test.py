"""Coordinators whose answers are drawn (program/lying.py): etcd's from what a server of the tests' own would say, ZooKeeper's
within its wire format (tests/net/test_zookeeper.c breaks that, too). A task that asks ends within its limit, says why, and does not crash.

    GENERATED_SEEDS=100..2000 python3 tests/system/coordinator/generated_test.py"""
import base64
import json
import os
import random
import socketserver
import struct
import threading
from http import server as http_server

import program
from program import lying

FIRST, LAST = map(int, os.environ.get("GENERATED_SEEDS", "1..3").split(".."))
SEEDS = range(FIRST, LAST + 1)
RATE = 0.3
MEMORY_KIB = 400 << 10  # of a task
PASSWORD, TOKEN = "x9Fq-hidden", "token-of-me.7788"
USER = {"ETCDCTL_USER": "me", "ETCDCTL_PASSWORD": PASSWORD}
TASKS = "ps=1,worker=1"
SPEC = {
    "name": "asked",
    "data": {"train": {"format": "digits", "rows": 400}, "batch_size": 20, "scale": 0.0039},
    "model": [{"op": "flatten"}, {"op": "dense", "name": "softmax", "units": 10}],
    "loss": "softmax_cross_entropy",
    "optimizer": {"type": "gradient_descent", "learning_rate": 0.1},
    "train": {"last_step": 20},
}


class EtcdHonest(http_server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"{}")
        with self.server.lock:
            answer = self.answer(self.path.removeprefix("/v3/"), asked)
        self.send(200, json.dumps(answer).encode(), {"Content-Type": "application/json"}, None)

    def answer(self, what, asked):
        keys = self.server.keys
        if what == "auth/authenticate":
            return {"token": TOKEN}
        if what == "lease/grant":
            self.server.leases += 1
            return {"ID": str(self.server.leases), "TTL": asked["TTL"]}
        if what == "lease/keepalive":
            return {"result": {"ID": asked["ID"], "TTL": "10"}}
        if what == "kv/range":
            first, end = (base64.b64decode(asked[name]) for name in ("key", "range_end"))
            return {"kvs": [kv for key, kv in sorted(keys.items()) if first <= base64.b64decode(key) < end]}
        if what == "kv/put":
            keys[asked["key"]] = asked
        if what == "kv/txn":
            put = asked["success"][0]["requestPut"]
            if put["key"] in keys:
                return {"succeeded": False, "responses": [{"response_range": {"kvs": [keys[put["key"]]]}}]}
            keys[put["key"]] = put
            return {"succeeded": True, "responses": [{"response_put": {}}]}
        return {}

    def send(self, status, body, headers, _):
        self.send_response(status)
        for name, value in {**headers, "Content-Length": len(body)}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


class Etcd(lying.Lying, EtcdHonest):
    pass


class EtcdForgetful(EtcdHonest):
    """Each other lease has ended before anything is hung on it, as when a server comes back without what it knew."""

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"{}")
        what = self.path.removeprefix("/v3/")
        lease = asked.get("ID") or (asked["success"][0]["requestPut"] if what == "kv/txn" else asked).get("lease", "0")
        is_over = int(lease) % 2 == 1
        with self.server.lock:
            answer = {"result": {"ID": lease}} if is_over and what == "lease/keepalive" else self.answer(what, asked)
            if is_over and what in ("kv/txn", "kv/put"):
                self.server.refused += 1
                answer = {"code": 5, "message": "etcdserver: requested lease not found"}
                self.server.keys.pop((asked["success"][0]["requestPut"] if what == "kv/txn" else asked)["key"], None)
                return self.send(404, json.dumps(answer).encode(), {"Content-Type": "application/json"}, None)
        self.send(200, json.dumps(answer).encode(), {"Content-Type": "application/json"}, None)


def jute(*parts):
    """As ZooKeeper writes numbers of 32 bits, and bytes behind their number."""
    return b"".join(struct.pack(">i", part) if isinstance(part, int) else struct.pack(">i", len(part)) + part for part in parts)


class ZooKeeper(socketserver.BaseRequestHandler):
    """Draws what it says: other codes, values, names and lists than there are, sessions that are over, and ends in the middle."""

    CREATE, EXISTS, GET, SET, LIST, PING = 1, 3, 4, 5, 8, 11

    def handle(self):
        with self.server.lock:
            self.server.lied += 1
            self.draw = random.Random(f"{self.server.seed} {self.server.lied}")
        try:
            self.taken()
            over = self.draw.random() < 0.1
            self.tell(struct.pack(">iiq", 0, 0 if over else 10000, 0 if over else self.draw.randrange(1, 1 << 62)) + jute(bytes(16)))
            while True:
                number, what = struct.unpack_from(">ii", self.taken())
                code = 0 if what == self.PING else self.draw.choice([0, 0, 0, -101, -110, -112, -4, -102, 77])
                if self.draw.random() < 0.05 and what != self.PING:
                    raise ConnectionError
                self.tell(struct.pack(">iqi", number, 1, code) + (b"" if code else self.said(what)))
        except OSError:
            pass

    def said(self, what):
        stat = struct.pack(">qqqqiiiqiiq", *(self.draw.choice([0, 1, -1, 7]) for _ in range(11)))
        text = str(self.draw.choice(lying.TEXTS)).encode()[:self.draw.choice([3, 6000])]
        names = [self.draw.choice([b"ps", b"0", b"..", b"", b"a/b", b"x" * 3000, b"\xff\n", text]) for _ in range(self.draw.choice([0, 1, 3, 4000]))]
        value = self.draw.choice([text, b"127.0.0.1:1 ps=1,worker=1", b"{}", bytes(5000)])
        return {self.CREATE: jute(text), self.EXISTS: stat, self.GET: jute(value) + stat, self.SET: stat,
                self.LIST: jute(len(names), *names)}.get(what, b"")

    def taken(self):
        def some(count):
            data = b""
            while len(data) < count:
                piece = self.request.recv(count - len(data))
                if not piece:
                    raise ConnectionError
                data += piece
            return data
        return some(struct.unpack(">i", some(4))[0] % (1 << 20))

    def tell(self, answer):
        self.request.sendall(jute(answer))


class Threads(socketserver.ThreadingTCPServer):
    daemon_threads = allow_reuse_address = True

    def handle_error(self, request, client_address):
        pass


class Generated(program.FolderCase):
    def serve(self, handler):
        self.server = Threads(("127.0.0.1", 0), handler)
        self.server.lock, self.server.keys, self.server.leases = threading.Lock(), {}, 0
        self.server.rate, self.server.lied = RATE, 0
        self.thief = lying.Thief()
        self.addCleanup(self.thief.stop)
        self.server.thief = self.thief.url
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()
        self.addCleanup(self.server.server_close)
        self.addCleanup(self.server.shutdown)
        return f"127.0.0.1:{self.server.server_address[1]}/tests"

    def ask(self, url, seed):
        """A visitor, then both tasks of a job."""
        (self.folder / "spec.json").write_text(json.dumps(SPEC))
        where = [f"--coordinator={url}", "--cluster=small"]
        self.check(program.run(["var", "ls", *where, "--timeout=1"], self.folder, env=USER), seed)
        limits = ["--start_timeout=3", "--restart_timeout=3", "--end_timeout=3", "--step_timeout=3"]
        done = []

        def task(job, *spec):
            done.append(program.run([*where, *limits, f"--tasks={TASKS}", f"--job_name={job}", *spec], self.folder,
                                    env=USER))
        threads = [threading.Thread(target=task, args=("ps",)), threading.Thread(target=task, args=("worker", "spec.json"))]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
        self.assertEqual(len(done), 2, seed)
        for one in done:
            self.check(one, seed)

    def check(self, done, seed):
        said = done.stdout + done.stderr
        self.assertIn(done.returncode, range(256), (seed, said))
        self.assertTrue(done.returncode == 0 or "dtrain: " in said or "ERROR" in said, (seed, done.returncode, said))
        self.assertEqual(self.thief.seen, [], seed)
        for secret in (PASSWORD, TOKEN):
            self.assertNotIn(secret, said, seed)
        self.assert_took_at_most(MEMORY_KIB, seed)

    def test_etcd(self):
        url = "etcd://" + self.serve(Etcd)
        for seed in SEEDS:
            self.server.seed, self.server.lies = seed, (lying.BROKEN, lying.FALSE, lying.MALFORMED)[seed % 3]
            self.server.keys.clear()
            self.ask(url, seed)

    def test_a_lease_that_has_ended_is_asked_for_again(self):
        where = [f"--coordinator=etcd://{self.serve(EtcdForgetful)}", "--cluster=small", f"--tasks={TASKS}"]
        self.server.refused = 0
        (self.folder / "spec.json").write_text(json.dumps(SPEC))
        done = {}
        threads = [threading.Thread(target=lambda job=job, spec=spec: done.update(
            {job: program.run([*where, f"--job_name={job}", *spec], self.folder)}))
            for job, spec in (("ps", []), ("worker", ["spec.json"]))]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
        for one in done.values():
            self.assertEqual(one.returncode, 0, one.stderr)
        self.assertGreater(self.server.refused, 0)

    def test_zookeeper(self):
        url = "zookeeper://" + self.serve(ZooKeeper)
        for seed in SEEDS[:max(2, len(SEEDS) // 4)]:  # a session takes seconds
            self.server.seed = seed
            self.ask(url, seed)


if __name__ == "__main__":
    program.main()
