"""Messages between tasks, as bytes, for tests that speak the protocol themselves.

Kinds and fields are read from net/messages.def, codes, limits and the version from net/message.h, offsets of header
fields from net/wire.c, so that no test can keep using an old protocol.
"""
import dataclasses
import json
import re
import socket

from program import ROOT

ENUM = re.compile(r"\benum(?:\s+(\w+))?\s*\{([^}]*)\}")
COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
MEMBER = re.compile(r"(\w+)(?:\s*=\s*(\w+)(?:\s*<<\s*(\w+))?)?")
PUT = re.compile(r"put(32|64)\(ret_header(?: \+ (\d+))?, (?:\(uint32_t\))?(?:message->)?(message_number\(message, \d\)|\w+)\);")
PLACE = "message_number(message, {})"  # of a field that differs from kind to kind
PLACES = 5  # the last one is `offset` where a kind has none there
ZERO = "0"  # what net/wire.c calls the last field
KIND = re.compile(r"^MESSAGE\((\w+), \w+, [^,]*, \w+,(.*?)\)\n\n", re.MULTILINE | re.DOTALL)
FIELD = re.compile(r"FIELD\(\w+, (\w+), (\w+),|SKIP\(")
RANGE = re.compile(r"^RANGE\((\w+), (.*)\)$", re.MULTILINE)


def read_source(path):
    return COMMENT.sub("", (ROOT / path).read_text(encoding="utf-8"))


def read_enums(text):
    """{name of the enum or "": {member: number}}"""
    enums = {}
    for name, body in ENUM.findall(text):
        following = 0
        for member, value, shift in MEMBER.findall(body):
            number = int(value, 0) << int(shift or "0", 0) if value else following
            enums.setdefault(name, {})[member] = number
            following = number + 1
    return enums


def read_fields(text):
    """{name: (its first byte, how many)}"""
    fields = {name: (int(at or "0"), int(bits) // 8) for bits, at, name in PUT.findall(text)}
    covered = sorted(byte for at, count in fields.values() for byte in range(at, at + count))
    if covered != list(range(HEADER_BYTES)):
        raise ValueError(f"net/wire.c: the fields {fields} are not {HEADER_BYTES} bytes")
    return fields


ENUMS = read_enums(read_source("net/message.h"))
VERSION = ENUMS[""]["PROTOCOL_VERSION"]
MAGIC = ENUMS[""]["MESSAGE_MAGIC"]
HEADER_BYTES = ENUMS[""]["MESSAGE_HEADER_BYTES"]
BODY_MAX = ENUMS[""]["MESSAGE_BODY_MAX"]
CODES = {name: number for kind, members in ENUMS.items() if kind != "message_type"
         for name, number in members.items()}  # "PS_SERVING", "VALUES_FINAL", ...
MESSAGES = KIND.findall(read_source("net/messages.def"))
NUMBERS = {name: number for number, (name, _) in enumerate(MESSAGES)}
NAMES = {number: name for name, number in NUMBERS.items()}
KINDS = {name: number for name, number in NUMBERS.items() if name != "WINDOWS"}  # which is the transports' own
RANGES = dict(RANGE.findall(read_source("net/messages.def")))  # {name: its largest number, as an expression of C}
FIELDS_OF = {name: FIELD.findall(fields) for name, fields in MESSAGES}  # {kind: [(name, range), ...]}, ("", "") where it has none
FIELDS = read_fields(read_source("net/wire.c"))


def places_of(kind):
    """{name of a field of this kind: the place's name in FIELDS}"""
    return {name: PLACE.format(place) if place < PLACES - 1 else "offset"
            for place, (name, _) in enumerate(FIELDS_OF.get(kind, ())) if name}


def message(kind, body=b"", **header):
    """The bytes of a message. kind: a name, or any number. Header fields that are not given are valid, or 0."""
    values = {"MESSAGE_MAGIC": MAGIC, "PROTOCOL_VERSION": VERSION, ZERO: 0,
              "type": NUMBERS.get(kind, kind), "body_bytes": len(body)}
    values.update({name: 0 for name in FIELDS if name not in values})
    places = places_of(kind)
    header = {places.get(name, name): number for name, number in header.items()}
    unknown = set(header) - set(values)
    if unknown:
        raise KeyError(f"{kind} has no {unknown}")
    values.update(header)
    packed = bytearray(HEADER_BYTES)
    for name, (at, count) in FIELDS.items():
        mask = (1 << 8 * count) - 1  # -1 is the largest
        packed[at:at + count] = (values[name] & mask).to_bytes(count, "little")
    return bytes(packed) + body


@dataclasses.dataclass
class Heard:
    """A received message. `values`: its header, by names of net/message.h and net/messages.def."""
    kind: str
    values: dict
    body: bytes

    def text(self):
        return self.body.decode()


def read_header(packed):
    values = {name: int.from_bytes(packed[at:at + count], "little")
              for name, (at, count) in FIELDS.items()}
    if (values["MESSAGE_MAGIC"], values["PROTOCOL_VERSION"]) != (MAGIC, VERSION):
        raise ValueError(f"no message of version {VERSION}: {packed.hex()}")
    values.update({name: values[place] for name, place in places_of(NAMES.get(values["type"])).items()})
    return values


def take_messages(data):
    """Removes the complete messages at the front: (kind, bytes of the stretch, all bytes) of each."""
    messages, at = [], 0
    while at + HEADER_BYTES <= len(data):
        values = read_header(bytes(data[at:at + HEADER_BYTES]))
        stretch = values["length"]
        end = at + HEADER_BYTES + values["body_bytes"] + stretch
        if end > len(data):
            break
        messages.append((NAMES[values["type"]], stretch, bytes(data[at:end])))
        at = end
    del data[:at]
    return messages


class Connection:
    """A connection. limit_s: of every wait."""

    def __init__(self, end, limit_s):
        """end: an address to connect to, or a connected socket."""
        if isinstance(end, str):
            host, port = end.rsplit(":", 1)
            end = socket.create_connection((host, int(port)), limit_s)
        end.settimeout(limit_s)
        self.socket = end

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.close()

    def close(self):
        self.socket.close()

    def send(self, kind, body=b"", **header):
        self.socket.sendall(message(kind, body, **header))

    def read(self, count):
        """Reads so many bytes; fewer if the peer has closed."""
        data = bytearray()
        while len(data) < count:
            more = self.socket.recv(count - len(data))
            if not more:
                break
            data += more
        return bytes(data)

    def hear(self):
        """The next message; None: the peer has closed."""
        try:
            header = self.read(HEADER_BYTES)
        except ConnectionError:
            return None
        if len(header) < HEADER_BYTES:
            return None
        values = read_header(header)
        kind = NAMES.get(values["type"], str(values["type"]))
        return Heard(kind, values, self.read(values["body_bytes"] + values["length"]))

    def hear_kind(self, kind):
        """The next message of a kind, skipping others; None: the peer has closed."""
        heard = self.hear()
        while heard and heard.kind != kind:
            heard = self.hear()
        return heard


def greeting(hosts, job, task, **changes):
    """The body of a HELLO or WELCOME. hosts: {"ps": [...], "worker": [...]}"""
    me = {"protocol": VERSION, "job": job, "task": task, "incarnation": "1",
          "ps_hosts": hosts["ps"], "worker_hosts": hosts["worker"]}
    return json.dumps({**me, **changes}).encode()


def greeting_of_visitor(protocol=VERSION):
    return json.dumps({"protocol": protocol, "job": "visitor"}).encode()
