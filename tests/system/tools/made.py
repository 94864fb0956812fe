"""Checkpoints and TFRecords made here, byte by byte, so that the program's own writer is not its own judge.

The format is TensorFlow's bundle: one block of entries, an empty metaindex, an index of one block,
a footer; and one data file.
"""
import struct

FLOAT, DOUBLE, INT32, STRING, INT64 = 1, 2, 3, 7, 9
CODES = {FLOAT: "f", DOUBLE: "d", INT32: "i", INT64: "q"}
MAGIC = bytes.fromhex("57fb808b247547db")
FOOTER_HANDLES = 40


def make_table():
    table = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
        table.append(value)
    return table


TABLE = make_table()


def masked_crc(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ TABLE[(crc ^ byte) & 255]
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def varint(value):
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes(out + bytes([value]))


def field(number, data):
    return varint(number << 3 | 2) + varint(len(data)) + data


def example(features):
    """A tf.Example of {name: bytes of its Feature}"""
    return field(1, b"".join(field(1, field(1, name.encode()) + field(2, feature)) for name, feature in features.items()))


def record(features):
    """The same, framed."""
    data = example(features)
    length = struct.pack("<Q", len(data))
    return length + struct.pack("<I", masked_crc(length)) + data + struct.pack("<I", masked_crc(data))


def block(entries):
    """Every entry is a restart point: no prefix is shared."""
    body, restarts = b"", []
    for key, value in entries:
        restarts.append(len(body))
        body += varint(0) + varint(len(key)) + varint(len(value)) + key + value
    restarts = restarts or [0]
    body += b"".join(struct.pack("<I", at) for at in restarts)
    return body + struct.pack("<I", len(restarts))


def entry(dtype, shape, offset, data):
    dims = b"".join(b"\x12" + varint(len(dim)) + dim for dim in
                    (b"\x08" + varint(size) if size else b"" for size in shape))
    out = b"\x08" + varint(dtype) + b"\x12" + varint(len(dims)) + dims
    out += b"\x20" + varint(offset) if offset else b""
    out += b"\x28" + varint(len(data)) if data else b""
    return out + b"\x35" + struct.pack("<I", masked_crc(data))


def write_bundle(prefix, tensors):
    """tensors: {name: (dtype, shape, values)}; values of a STRING are its bytes as stored."""
    data, entries = b"", [(b"", bytes.fromhex("08011a020801"))]
    for name in sorted(tensors, key=str.encode):
        dtype, shape, values = tensors[name]
        raw = values if dtype == STRING else struct.pack(f"<{len(values)}{CODES[dtype]}", *values)
        entries.append((name.encode(), entry(dtype, shape, len(data), raw)))
        data += raw
    index = b""
    handles = []
    last = entries[-1][0] + b"\x00"
    for number in range(3):
        body = (block(entries), block([]), block([(last, handles[0])] if handles else []))[number]
        handles.append(varint(len(index)) + varint(len(body)))
        index += body + b"\x00" + struct.pack("<I", masked_crc(body + b"\x00"))
    footer = (handles[1] + handles[2]).ljust(FOOTER_HANDLES, b"\x00")
    with open(f"{prefix}.data-00000-of-00001", "wb") as file:
        file.write(data)
    with open(f"{prefix}.index", "wb") as file:
        file.write(index + footer + MAGIC)


def write_state(folder, *names):
    """Oldest first."""
    lines = [f'model_checkpoint_path: "{names[-1]}"']
    lines += [f'all_model_checkpoint_paths: "{name}"' for name in names]
    with open(f"{folder}/checkpoint", "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
