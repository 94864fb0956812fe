#!/usr/bin/env python3
"""cifar10_rows.py FOLDER [ROWS]: files of the form of CIFAR-10's binary version, for a try without them: five of ROWS images
(1000) to train on, and one to measure with. Each image has one of ten figures in a colour, at a place and before a ground that
are drawn."""
import argparse
import pathlib
import random

SIDE = 32
FIGURES = [  # from -1 to 1 in both directions: is it there?
    lambda x, y: x * x + y * y < 0.8, lambda x, y: abs(x) < 0.8 and abs(y) < 0.8, lambda x, y: abs(x) + abs(y) < 0.9,
    lambda x, y: 0.4 < x * x + y * y < 0.9, lambda x, y: abs(y) < 0.3, lambda x, y: abs(x) < 0.3,
    lambda x, y: min(abs(x), abs(y)) < 0.25, lambda x, y: abs(abs(x) - abs(y)) < 0.3, lambda x, y: y > abs(x) * 1.6 - 0.8,
    lambda x, y: (int(x * 3 + 9) + int(y * 3 + 9)) % 2 == 0]


def row(draw):
    label = draw.randrange(10)
    ground, ink = ([draw.randrange(256) for _ in range(3)] for _ in range(2))
    while sum(abs(a - b) for a, b in zip(ground, ink)) < 200:
        ink = [draw.randrange(256) for _ in range(3)]
    size, left, top = draw.uniform(8, 13), draw.uniform(-4, 4), draw.uniform(-4, 4)
    planes = [bytearray(SIDE * SIDE) for _ in range(3)]
    for at in range(SIDE * SIDE):
        x, y = (at % SIDE - 15.5 - left) / size, (at // SIDE - 15.5 - top) / size
        colour = ink if max(abs(x), abs(y)) <= 1 and FIGURES[label](x, y) else ground
        for plane, value in zip(planes, colour):
            plane[at] = min(255, max(0, value + draw.randrange(-20, 21)))
    return bytes([label]) + b"".join(planes)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path, metavar="FOLDER")
    parser.add_argument("rows", type=int, nargs="?", default=1000, metavar="ROWS")
    asked = parser.parse_args()
    if asked.rows < 1:
        parser.error("ROWS: expected 1 or more")
    folder, rows = asked.folder, asked.rows
    folder.mkdir(parents=True, exist_ok=True)
    for i, name in enumerate([f"data_batch_{k}.bin" for k in range(1, 6)] + ["test_batch.bin"]):
        draw = random.Random(i)
        (folder / name).write_bytes(b"".join(row(draw) for _ in range(rows)))


if __name__ == "__main__":
    main()
