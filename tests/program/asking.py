"""Random HTTP requests, as a hostile or faulty client sends them.

They follow from a seed: request lines, headers, lengths, chunks, encodings, other protocols, pipelined requests, changed
bytes, slow sending, and ends in the middle. The server must answer with HTTP or close the connection.
"""
import gzip
import random
import socket
import struct
import threading
import time
import zlib

ENDLESS_BYTES = 32 << 20  # sent at most of an endless request, if the server accepts it
TAKEN_BYTES = 1 << 20  # read at most of an answer; then the client stops reading
AT_ONCE = 8  # clients
MOMENT_S = 0.2
DRIPS = 300  # moments: longer than a client may take
METHODS = ["GET", "POST", "HEAD", "PUT", "DELETE", "OPTIONS", "TRACE", "CONNECT", "PATCH", "", "get", "G" * 9000, "\0", "PRI", "GET\t"]
VERSIONS = ["HTTP/1.1", "HTTP/1.0", "HTTP/0.9", "HTTP/2.0", "HTTP/9.9", "HTTP/1.", "http/1.1", "", "HTTP/1.1 HTTP/1.1", "x" * 3000]
NUMBERS = ["-1", "0", "1", "+5", " 7", "0x10", "1e3", "", "x", "5, 5", str(2 ** 31), str(2 ** 63 - 1), str(2 ** 63), str(2 ** 64), "9" * 400]
ENCODINGS = ["chunked", "gzip, chunked", "chunked, chunked", "identity", "x", " chunked", "chunked\x0b", "xchunked", "CHUNKED"]
VALUES = ["", "x", "x" * 15000, "\0", "\x7f\xff", "%s%n", "close", "keep-alive", "Upgrade", "h2c", "websocket", "100-continue", "bytes=0-5",
          "gzip", "deflate", "br", "*/*", "a:b@c", "../..", "\tx\r\n y"]
NAMES = ["Host", "Connection", "Upgrade", "Expect", "Range", "Content-Encoding", "Accept", "Accept-Encoding", "Cookie", "X", "", " X", "X ",
         "X\0", "A" * 2000, "Content-Type", "HTTP2-Settings", "Trailer", "TE"]
PATHS = ["/", "", "*", "//", "/../../etc/passwd", "/%", "/%00%ff", "/%2e%2e/", "/" + "a" * 40000, "http://other/", "other:443", "/\xff",
         "/?" + "a=b&" * 3000, "/a b", "/v1/models/%73mall", "/v1/models//:predict"]


def head(method, path, version, headers):
    lines = [f"{method} {path} {version}", *(f"{name}: {value}" for name, value in headers), "", ""]
    return "\r\n".join(lines).encode("latin-1")


class Client:
    """Requests of a seed. paths: valid ones. body: a valid one for a POST to the first path; None: it accepts none."""

    def __init__(self, seed, paths, body=None):
        self.seed, self.draw, self.paths, self.body = seed, random.Random(seed), paths, body

    def path(self):
        return self.draw.choice(self.paths if self.draw.random() < 0.7 else PATHS)

    def headers(self, most=4):
        return [("Host", "x")] + [(self.draw.choice(NAMES), self.draw.choice(VALUES)) for _ in range(self.draw.randrange(most))]

    def right(self):
        if self.body is None or self.draw.random() < 0.3:
            return head("GET", self.draw.choice(self.paths), "HTTP/1.1", [("Host", "x")])
        return head("POST", self.paths[0], "HTTP/1.1", [("Host", "x"), ("Content-Length", len(self.body))]) + self.body

    def posted(self, *headers):
        """The head of a request with a body, whether or not the path accepts one."""
        return head(self.draw.choice(["POST", "POST", "GET"]), self.paths[0], "HTTP/1.1", [*self.headers(2), *headers])

    # ---- requests: generators of the bytes to send ----

    def lines(self):
        yield head(self.draw.choice(METHODS), self.path(), self.draw.choice(VERSIONS), self.headers())

    def many_headers(self):
        yield head("GET", self.path(), "HTTP/1.1", self.headers() * self.draw.choice([1, 50, 5000]))

    def header_without_end(self):
        yield b"GET / HTTP/1.1\r\nHost: x\r\nX: "
        yield from self.endless(b"y")

    def lengths(self):
        said = [("Content-Length", self.draw.choice(NUMBERS)) for _ in range(self.draw.choice([1, 1, 2]))]
        if self.draw.random() < 0.3:
            said.append(("Transfer-Encoding", self.draw.choice(ENCODINGS)))
        self.draw.shuffle(said)
        yield self.posted(*said) + (self.body or b"{}") * self.draw.choice([0, 1, 1, 40])

    def chunks(self):
        yield self.posted(("Transfer-Encoding", self.draw.choice(ENCODINGS if self.draw.random() < 0.3 else ["chunked"])))
        whole = self.body or b"{}"
        for _ in range(self.draw.randrange(4)):
            size = self.draw.choice([b"%x" % len(whole), b"0", b"-1", b"ffffffffffffffff", b"7fffffffffffffff", b"fffffffff", b"", b"zz",
                                     b"%x;" % len(whole) + b"x" * 20000, b"00000000000000000000005", b" 5", b"5 "])
            yield size + self.draw.choice([b"\r\n", b"\n", b""]) + whole + b"\r\n"
        yield self.draw.choice([b"0\r\n\r\n", b"0\r\nX: y\r\n\r\n", b"0\r\n" + b"X: y\r\n" * 20000, b"", b"0\r\n"])

    def chunks_without_end(self):
        yield self.posted(("Transfer-Encoding", "chunked"))
        yield from self.endless(self.draw.choice([b"1\r\nx\r\n", b"1000\r\n" + b" " * 4096 + b"\r\n", b"1;" + b"y" * 500 + b"\r\n \r\n"]))

    def body_without_end(self):
        yield self.posted(("Content-Length", self.draw.choice([8 << 20, 2 ** 62])))
        yield from self.endless(b"[")

    def packed(self):
        whole = self.body or b"{}"
        right = gzip.compress(whole)
        body = self.draw.choice([right[:-5], right + right, right + b"x", gzip.compress(right), zlib.compress(whole), b"\x1f\x8b\x08\x08" + b"n" * 70000,
                                 gzip.compress(bytes(64 << 20), 9), b"", right[:-4] + b"\xff" * 4])
        yield self.posted(("Content-Encoding", self.draw.choice(["gzip", "gzip", "x-gzip", "deflate", "gzip, gzip"])), ("Content-Length", len(body)))
        yield body

    def deep(self):
        body = self.draw.choice([b"[" * 2000000, b'{"instances":' * 200000, b'{"instances": [' + b"[]," * 500000 + b"0]}", b"\xff" * 100000,
                                 b'{"instances": [[' + b"1," * 500000 + b"1]]}", b"-" + b"9" * 1000000])
        yield self.posted(("Content-Length", len(body)))
        yield body

    def other_protocols(self):
        yield self.draw.choice([b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(9) * 100, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(500),
                                b"HELO x\r\n", b"\x05\x01\x00", b"\x04dtr1", head("GET", "/", "HTTP/1.1", [
                                    ("Host", "x"), ("Connection", "Upgrade, HTTP2-Settings"), ("Upgrade", "h2c"), ("HTTP2-Settings", "AAMAAABk")]),
                                head("GET", "/", "HTTP/1.1", [("Host", "x"), ("Upgrade", "websocket"), ("Connection", "Upgrade"),
                                                              ("Sec-WebSocket-Key", "x"), ("Sec-WebSocket-Version", "13")]) + bytes(100)])

    def behind_each_other(self):
        for _ in range(self.draw.choice([2, 30, 300])):
            yield self.right()

    def never_read(self):
        """Requests with more answers than the system buffers, which the client does not read."""
        for _ in range(20000):
            yield self.right()
        yield "reset"

    def changed(self):
        said = bytearray(self.right() * self.draw.choice([1, 1, 2]))
        for _ in range(self.draw.randint(1, 8)):
            at, many = self.draw.randrange(len(said)), self.draw.choice([0, 1, 1, 3, 300])
            said[at:at + self.draw.choice([0, 1, 5])] = bytes(self.draw.choice([0, 10, 13, 32, 58, 255, self.draw.randrange(256)])
                                                              for _ in range(many))
            said = said or bytearray(b"\n")
        yield bytes(said)

    def cut(self):
        said = self.right()
        yield said[:self.draw.randrange(len(said))]
        if self.draw.random() < 0.5:
            yield "reset"

    def noise(self):
        yield self.draw.randbytes(self.draw.choice([0, 1, 100, 60000]))

    def endless(self, piece):
        piece *= -(-65536 // len(piece))
        for _ in range(ENDLESS_BYTES // len(piece)):
            yield piece

    def slow(self):
        """Sends a head, a body, or requests slowly, piece by piece."""
        begin, piece = self.draw.choice([(b"GET / HTTP/1.1\r\nX: ", b"y"), (b"", b"\r\n"), (self.posted(("Content-Length", 4000)), b" "),
                                         (self.posted(("Transfer-Encoding", "chunked")), b"1\r\n \r\n")])
        yield begin
        for _ in range(DRIPS):
            yield "a moment"
            yield piece
        raise AssertionError("who says a byte now and then is not hung up on")

    QUICK = [lines, lines, many_headers, header_without_end, lengths, lengths, chunks, chunks, chunks_without_end, body_without_end, packed, deep,
             other_protocols, behind_each_other, never_read, changed, changed, changed, cut, noise]

    def say(self, address, limit_s, what=None):
        """The answer; None: the client left."""
        what = what or self.draw.choice(self.QUICK)
        with socket.create_connection(address, timeout=limit_s) as end:
            try:
                for piece in what(self):
                    if piece == "reset":
                        end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                        return None
                    if piece == "a moment":
                        time.sleep(MOMENT_S)
                    else:
                        end.sendall(piece)
                end.shutdown(socket.SHUT_WR)
            except TimeoutError as error:
                raise AssertionError(f"{what.__name__}: neither heard nor hung up on") from error
            except OSError:
                pass  # it hung up
            return self.hear(end, what)

    def hear(self, end, what):
        came = b""
        try:
            while len(came) < TAKEN_BYTES:
                more = end.recv(1 << 16)
                if not more:
                    break
                came += more
        except TimeoutError as error:
            raise AssertionError(f"{what.__name__}: neither answered nor hung up on: {came[:200]}") from error
        except OSError:
            pass  # it hung up
        return came


class Attack:
    """Runs clients for all seeds against a port of this host: one by one, then several at once, one of them slow."""

    def __init__(self, port, seeds, paths, limit_s, body=None):
        self.address, self.clients, self.limit_s = ("127.0.0.1", port), [Client(seed, paths, body) for seed in seeds], limit_s
        self.failures, self.answered = [], 0
        self.lock = threading.Lock()
        threads = [threading.Thread(target=self.run_slow)] + [threading.Thread(target=self.run) for _ in range(AT_ONCE)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def next(self):
        with self.lock:
            return self.clients.pop() if self.clients else None

    def run_slow(self):
        self.let(self.next(), Client.slow)

    def run(self):
        while client := self.next():
            self.let(client)

    def let(self, client, what=None):
        try:
            came = client.say(self.address, self.limit_s, what)
        except ConnectionError:
            came = None  # there are too many
        except Exception as error:  # else it would end the thread unseen
            came = repr(error).encode()
        with self.lock:
            self.answered += bool(came)
            if came and not came.startswith(b"HTTP/1."):
                self.failures.append(f"seed {client.seed}: {came[:200]}")
