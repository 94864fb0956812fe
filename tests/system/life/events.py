"""Event files as TensorBoard reads them: scalars of each tag, and where a run started over."""
import struct

HEADER_BYTES, TRAILER_BYTES = 12, 4  # length and its checksum; the data's checksum
VARINT, REAL64, CONTENT, REAL32 = 0, 1, 2, 5
STEP, SUMMARY, SESSION_LOG = 2, 5, 7  # fields of Event
VALUE, TAG, SIMPLE_VALUE = 1, 1, 2  # of Summary, and of its values
STATUS, START = 1, 1  # of SessionLog


def records(path):
    data = path.read_bytes()
    at = 0
    while at < len(data):
        length = struct.unpack_from("<Q", data, at)[0]
        at += HEADER_BYTES
        yield data[at:at + length]
        at += length + TRAILER_BYTES
    assert at == len(data), f"{path}: its last record is cut off"


def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        at, shift = at + 1, shift + 7
        if data[at - 1] < 128:
            return value, at


def fields(message):
    """(number, value) of a protocol buffer."""
    at = 0
    while at < len(message):
        key, at = varint(message, at)
        kind = key & 7
        if kind == VARINT:
            value, at = varint(message, at)
        elif kind == CONTENT:
            length, at = varint(message, at)
            value, at = message[at:at + length], at + length
        else:
            code, length = {REAL64: ("<d", 8), REAL32: ("<f", 4)}[kind]
            value, at = struct.unpack_from(code, message, at)[0], at + length
        yield key >> 3, value


def begins(event):
    return dict(fields(event.get(SESSION_LOG, b""))).get(STATUS) == START


def curves(folder):
    """{tag: [(step, value), ...]}. As TensorBoard does it, a new beginning takes away what had been
    recorded of later steps."""
    found = {}
    for path in sorted(folder.glob("events.out.tfevents.*"), key=lambda p: p.stat().st_mtime_ns):
        for record in records(path):
            event = dict(fields(record))
            step = event.get(STEP, 0)
            if begins(event):
                found = {tag: [point for point in points if point[0] < step]
                         for tag, points in found.items()}
            for number, value in fields(event.get(SUMMARY, b"")):
                value = dict(fields(value)) if number == VALUE else {}
                if SIMPLE_VALUE in value:
                    points = found.setdefault(value[TAG].decode(), [])
                    points.append((step, value[SIMPLE_VALUE]))
    return found


def tags(folder):
    """Of every value in it, whatever its kind."""
    found = set()
    for path in folder.glob("events.out.tfevents.*"):
        for record in records(path):
            summary = dict(fields(record)).get(SUMMARY, b"")
            found |= {dict(fields(value))[TAG].decode() for number, value in fields(summary) if number == VALUE}
    return found
