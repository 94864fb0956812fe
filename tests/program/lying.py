"""Answers of HTTP that are drawn: a server that knows the right answer sends another one now and then.

What a lie is made of comes from a seed: status, headers, lengths, chunks, trailers, redirects, slowness, ends in the
middle, and texts of JSON or XML that are almost right. BROKEN are lies that a client can find out, MALFORMED those whose
bytes came whole and are no such text as was asked for; of FALSE ones they are one, and mean something else. A Thief is a server
that lies lead to: nothing that proves who asks may come to it.
"""
import http.server
import json
import random
import re
import socket
import struct
import threading
import time

ENDLESS_BYTES = 64 << 20  # as much as is sent of what has no end, if it is taken
TAKEN_BYTES = 16 << 20  # of that, most of it by the system's buffers
SLOW_S = 20  # a client that waits for longer than it said is waited for
NUMBERS = [0, -1, 1, 2 ** 31, 2 ** 53, 2 ** 63 - 1, -2 ** 63, 2 ** 64, 10 ** 40, 1e308, -0.5]
TEXTS = ["", "x", "x" * 5000, "../../etc/passwd", "/", "..", "a\nb", "\u0007\u001b[2J", "%s%n", "\ufffd", "true", "-1",
         "18446744073709551616", "file:///etc/passwd", "DIRECTORY", "=" * 8, "A" * 7]
VALUES = [None, True, False, [], {}, [[]], {"": {}}, *NUMBERS, *TEXTS]
STATUSES = [100, 200, 201, 204, 206, 300, 304, 308, 400, 401, 403, 404, 408, 409, 410, 412, 416, 429, 500, 501, 503, 599]
REFUSALS = [400, 401, 403, 404, 408, 409, 410, 412, 416, 429, 500, 502, 503, 504]


def head(status, headers, line="HTTP/1.1 %d Drawn"):
    return (line % status + "\r\n" + "".join(f"{name}: {value}\r\n" for name, value in headers.items()) + "\r\n").encode()


def framed(status, headers, body):
    return [head(status, {**headers, "Content-Length": len(body)}), body]


def chunks(draw, body):
    while body:
        count = draw.randint(1, len(body))
        yield b"%x\r\n" % count + body[:count] + b"\r\n"
        body = body[count:]


def endless(piece):
    for _ in range(ENDLESS_BYTES // len(piece)):
        yield piece


# ---- lies that can be found out: of the right status, headers and body; what they yield is sent ----


def short(draw, status, headers, body):
    yield head(status, {**headers, "Content-Length": len(body)})
    yield body[:draw.randrange(len(body) + 1)][:-1]


def short_in_chunks(draw, status, headers, body):
    """And trailers say that this was all of it."""
    part = body[:draw.randrange(len(body) + 1)][:-1]
    yield head(status, {**headers, "Transfer-Encoding": "chunked"})
    yield from chunks(draw, part)
    first = re.match(r"bytes (\d+)-\d+/(\d+)", headers.get("Content-Range", ""))
    begin, total = (int(first[1]), int(first[2])) if first else (0, len(body))
    total = draw.choice([total, total, len(part), "*"])
    trailer = {"Content-Range": f"bytes {begin}-{begin + len(part) - 1}/{total}"}
    if draw.random() < 0.2:
        trailer.update({"ETag": '"t"', "Content-Length": len(part)})
    yield (b"0\r\n" if draw.random() < 0.7 else b"") + head(206, trailer, draw.choice(["HTTP/1.1 %d OK", "X-%d: y"]))


def other_range(draw, status, headers, body):
    found = re.match(r"bytes (\d+)-(\d+)/(\d+)", headers.get("Content-Range", ""))
    if found:
        first, last, total = (int(number) + draw.choice([0, 0, 1, -1, 4096]) for number in found.groups())
        headers = {**headers, "Content-Range": draw.choice([f"bytes {first}-{last}/{total + 1}", "bytes */7", "bytes 5-1/9",
                                                            "bytes 0-18446744073709551615/18446744073709551615"])}
    yield from framed(status if found else 503, headers, body)


def refused(draw, _status, _headers, body):
    status, text = draw.choice(REFUSALS), draw.choice([b"", b"<Error><Message>no", b'{"message": "', b"x" * 3000, body])
    yield from framed(status, {"Retry-After": draw.choice(["0", "-1", "soon", "9" * 30]) if draw.random() < .1 else "0"}, text)


def refused_without_end(draw, _status, headers, _body):
    yield head(draw.choice(REFUSALS), {**headers, "Connection": "close"})
    yield from endless(b"no, and no, and no\n" * 1000)


def longer(draw, status, headers, body):
    extra = bytes(draw.randrange(256) for _ in range(draw.randint(1, 2000)))
    if draw.random() < 0.5:
        yield head(status, {**headers, "Content-Length": len(body)})
        yield body + extra
    else:
        yield head(draw.choice(REFUSALS), {**headers, "Transfer-Encoding": "chunked"})
        yield from chunks(draw, body + extra)
        yield b"0\r\n\r\n"


def bad_chunks(draw, status, headers, body):
    yield head(status, {**headers, "Transfer-Encoding": "chunked"})
    yield draw.choice([b"ffffffffffffffff\r\n", b"-1\r\n", b"zz\r\n", b"\r\n\r\n", b"5;" + b"x" * 70000]) + body[:100]


def bad_lengths(draw, status, headers, body):
    length = draw.choice(["-1", "abc", str(2 ** 63), str(2 ** 64 + len(body)), f"{len(body) + 5}",
                          f"{len(body)}\r\nContent-Length: {len(body) // 2}", f"{len(body) + 5}\r\nTransfer-Encoding: chunked"])
    yield head(status, {**headers, "Content-Length": length})
    yield body


def another_behind(draw, status, headers, body):
    """On a connection that stays: what was not asked for must not be taken for what is asked next."""
    yield from framed(status, headers, body)
    yield from framed(draw.choice([200, 206, 404]), headers, draw.choice([b"", b"{}", bytes(len(body)), body[::-1]]))
    yield "wait"


def interim(draw, status, headers, body):
    line = b"HTTP/1.1 %d Wait\r\nContent-Range: bytes 0-0/1\r\nETag: \"other\"\r\n\r\n" % draw.choice([100, 101, 102, 103, 199])
    if draw.random() < 0.3:
        yield from endless(line)
    for _ in range(draw.choice([1, 3, 20000])):
        yield line
    yield from framed(status, headers, body)


def many_headers(draw, status, headers, body):
    for i in range(draw.choice([3, 40, 2000])):
        headers = {**headers, f"X-{i}": "y" * draw.choice([1, 1000])}
    yield from framed(status, headers, body)


def redirected(draw, path, thief):
    where = draw.choice([path, path + "x", thief + path, thief + path, "http://127.0.0.1:1/", "file:///etc/passwd", "", "http://[", "//", "x" * 9000, "?"])
    yield head(draw.choice([301, 302, 303, 307]), {"Location": where, "Connection": "close"})
    yield from (endless(b"elsewhere\n" * 1000) if draw.random() < 0.5 else [])


def reset(draw, status, headers, body):
    yield head(status, {**headers, "Content-Length": len(body)}) + body[:draw.randrange(len(body) + 1)]
    yield "reset"


def silent(draw, status, headers, body):
    whole = b"".join(framed(status, headers, body))
    yield whole[:draw.randrange(len(whole))]
    yield "wait"


def slow(draw, status, headers, body):
    """For two minutes, which a client that waits for a second does not: in its body, headers, chunks, or before them."""
    line = {"Content-Length": len(body) + 1000}
    begin, pieces = draw.choice([
        (head(status, {**headers, **line}), lambda i: body[i:i + 1] or b" "),
        (head(status, {**headers, **line})[:-2], lambda i: b"X" if i % 9 else b": y\r\nX"),
        (head(status, {**headers, "Transfer-Encoding": "chunked"}), lambda i: b"1\r\n%c\r\n" % (body[i:i + 1] or b" ")),
        (b"", lambda i: b"HTTP/1.1 102 Wait\r\n\r\n")])
    yield begin
    for i in range(600):
        yield pieces(i)
        yield "a moment"
    yield "outlasted"


def noise(draw, *_):
    yield bytes(draw.randrange(256) for _ in range(draw.choice([0, 1, 100, 5000])))


BROKEN = [short, short_in_chunks, other_range, refused, refused_without_end, longer, another_behind, bad_chunks, bad_lengths,
          interim, many_headers, reset, silent, slow, noise]


# ---- texts that are none of what was asked for ----


def of_another_type(draw, value):
    """With one of its parts, at any depth."""
    if isinstance(value, dict) and value:
        key = draw.choice(list(value))
        return {**value, key: of_another_type(draw, value[key])}
    if isinstance(value, list) and value and draw.random() < 0.8:
        i = draw.randrange(len(value))
        return value[:i] + [of_another_type(draw, value[i])] + value[i + 1:]
    return draw.choice([other for other in (None, True, [], {}, "x", 7, -0.5) if not isinstance(other, type(value))])


def broken_xml(draw, body):
    """In the end of an element, or in what may be one of two words."""
    ends = [found.start() for found in re.finditer(b"</", body)]
    at = draw.choice(ends or [0])
    return draw.choice([body[:at], body[:at] + b"</x" + body[at + 2:], re.sub(b">(true|false)<", b">maybe<", body, count=1)])


def malformed(draw, status, headers, body):
    try:
        body = json.dumps(of_another_type(draw, json.loads(body))).encode()
    except ValueError:
        body = broken_xml(draw, body) if body.startswith(b"<") else body
    yield from framed(status, headers, body)


def bomb(draw, status, headers, _):
    """A few megabytes that would be a gigabyte of values."""
    head, piece, end = draw.choice([(b'{"items": [', b"{},", b"{}]}"), (b"[", b"[],", b"[]]"), (b'{"kvs": [', b"[[]],", b"0]}")])
    yield from framed(status, headers, head + piece * ((6 << 20) // len(piece)) + end)


def entities(levels, text):
    """Each is ten of the one before."""
    lines = [f'<!ENTITY e0 "{text}">'] + [f'<!ENTITY e{i} "{f"&e{i - 1};" * 10}">' for i in range(1, levels)]
    return f"<!DOCTYPE r [{''.join(lines)}]>", f"&e{levels - 1};"


def xml_bomb(draw, status, headers, body):
    """Of entities, of names or of depth; or one that leads elsewhere. It stands where the right answer has a text, or before it."""
    begin, use = draw.choice([entities(9, "a" * 20), entities(2, "a" * (1 << 20)), ('<!DOCTYPE r SYSTEM "file:///etc/passwd">', ""),
                              ('<!DOCTYPE r [<!ENTITY x SYSTEM "file:///etc/passwd">]>', "&x;"),
                              ("", "<" + "n" * (4 << 20) + "/>"), ("", "<d>" * (1 << 20)), ("", "<a " + 'b="c" ' * (1 << 18) + "/>")])
    texts = [found.start(1) for found in re.finditer(rb">()[^<>]+</", body)]
    at = draw.choice(texts) if texts and body.startswith(b"<") else 0
    yield from framed(status, headers, begin.encode() + body[:at] + use.encode() + body[at:])


MALFORMED = [malformed] * 6 + [bomb, xml_bomb]


# ---- and those that cannot be found out ----


def mutated_json(draw, value):
    """With one of its parts, at any depth, replaced, left out or there twice."""
    if isinstance(value, dict) and value and draw.random() < 0.8:
        key = draw.choice(list(value))
        if draw.random() < 0.1:
            return {name: kept for name, kept in value.items() if name != key}
        return {**value, key: mutated_json(draw, value[key])}
    if isinstance(value, list) and value and draw.random() < 0.8:
        i = draw.randrange(len(value))
        return value[:i] + [mutated_json(draw, value[i])] * draw.choice([1, 1, 0, 300]) + value[i + 1:]
    return draw.choice(VALUES)


def mutated_bytes(draw, body):
    for _ in range(draw.randint(1, 4)):
        at = draw.randrange(len(body) + 1)
        body = draw.choice([lambda: body[:at], lambda: body[at:], lambda: body[:at] + body,
                            lambda: body[:at] + bytes([draw.randrange(256)]) * draw.choice([1, 5, 9000]) + body[at:],
                            lambda: body.replace(b">", draw.choice([b"><", b">" + b"9" * 300, b"/>"]), 1),
                            lambda: body.replace(b"false", b"true"), lambda: bytes(reversed(body))])()
    return body


def mutated(draw, body):
    if draw.random() < 0.05:
        return draw.choice([b"[" * 100000, b"<a>" * 100000, b'{"a":' * 5000, b"&a;", b"\0" * 100, b"null", b'"x"', b"1e999"])
    try:
        return json.dumps(mutated_json(draw, json.loads(body))).encode()
    except ValueError:
        return mutated_bytes(draw, body)


def false_body(draw, status, headers, body):
    yield from framed(status, headers, mutated(draw, body))


def false_status(draw, _status, headers, body):
    yield from framed(draw.choice(STATUSES), headers, draw.choice([body, b""]))


def echoed(draw, _status, _headers, asked):
    """A refusal that quotes what was asked, as a proxy may."""
    lines = [line for line in asked.split(b"\n") if line]
    text = b"; ".join(draw.sample(lines, len(lines)))
    yield from framed(draw.choice([400, 403, 404, 503]), {"Retry-After": "0"}, draw.choice(
        [text, b"<Error><Message>" + text.replace(b"<", b"").replace(b"&", b"") + b"</Message></Error>",
         json.dumps({"message": text.decode("latin-1")}).encode()]))


def false_headers(draw, status, headers, body):
    names = [*headers, "ETag", "Last-Modified", "Content-Range", "Range", "Location", "Retry-After"]
    for name in draw.sample(names, 2):
        value = str(draw.choice(VALUES))[:3000].replace("\r", "").replace("\n", "").encode("ascii", "replace").decode()
        headers = {**headers, name: "0" if name == "Retry-After" else value}
    yield from framed(status, headers, body)


FALSE = [false_body] * 4 + [false_status, false_headers, echoed, echoed]


class Thief(http.server.ThreadingHTTPServer):
    """server.seen: all that came, as text"""
    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Taking)
        self.seen, self.url = [], f"http://127.0.0.1:{self.server_port}"
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()

    def handle_error(self, request, client_address):
        pass

    def stop(self):
        self.shutdown()
        self.server_close()


class Taking(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.server.seen.append(f"{self.command} {self.path}\n{self.headers}\n{body.decode('latin-1')}")
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = do


def framed_as_it_is(_, status, headers, body):
    return framed(status, headers, body)


class Lying:
    """Beside a handler of tests/storage, whose answers it knows. server.seed, server.rate, server.lies"""

    def send(self, status, body, headers, fault):
        server = getattr(self.server, "name_node", None) or self.server
        with server.lock:
            server.lied = getattr(server, "lied", 0) + 1
            draw = random.Random(f"{server.seed} {server.lied}")
        is_text = body[:1] in (b"{", b"[", b"<")
        if draw.random() >= server.rate or self.command == "HEAD" or (server.lies is MALFORMED and not is_text):
            return super().send(status, body, headers, fault)
        lie = draw.choice(server.lies + [None] * (server.lies is BROKEN))
        if lie is echoed:
            body = f"{self.command} {self.path}\n{self.headers}".encode("latin-1")
        if lie is false_headers and draw.random() < 0.5 and hasattr(server, "thief"):
            headers = {**headers, "Location": server.thief + draw.choice([self.path, "/session/1"])}
            lie = framed_as_it_is
        if lie is slow and self.command != "GET":
            lie = silent  # what is done may take minutes, in which a server says a byte now and then
        self.close_connection = True
        pieces = lie(draw, status, headers, body) if lie else redirected(draw, self.path, getattr(server, "thief", ""))
        told = 0
        try:
            for piece in pieces:
                self.tell(piece)
                told += len(piece)
                server.most_told = max(getattr(server, "most_told", 0), told)
        except OSError:
            pass  # the client has enough

    def tell(self, piece):
        if piece == "reset":
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        elif piece == "a moment":
            time.sleep(0.2)
        elif piece == "outlasted":
            self.server.outlasted = True
        elif piece == "wait":
            self.connection.settimeout(SLOW_S)
            self.connection.recv(1)
        else:
            self.connection.sendall(piece)
