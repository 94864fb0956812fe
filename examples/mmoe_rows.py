#!/usr/bin/env python3
"""mmoe_rows.py FOLDER [ROWS]: mmoe_train.csv of ROWS rows (100000) and mmoe_eval.csv of 10000: eight numbers, and whether somebody
clicks and whether they then buy, by two rules that have little to do with each other. Whoever knows both has an AUC of 0.942 of
clicks and of 0.947 of buys among all rows."""
import argparse
import math
import pathlib
import random


def share(x):
    return 1 / (1 + math.exp(-x))


def row(draw):
    x = [draw.uniform(-1, 1) for _ in range(8)]
    click = draw.random() < share(6 * math.sin(3 * x[0]) * x[1] + 4 * x[2] - 1)
    buy = click and draw.random() < share(8 * x[3] * x[4] + 4 * math.cos(3 * x[5]) - 2)
    return ",".join(f"{one:.4f}" for one in x) + f",{int(click)},{int(buy)}\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path, metavar="FOLDER")
    parser.add_argument("rows", type=int, nargs="?", default=100000, metavar="ROWS")
    asked = parser.parse_args()
    if asked.rows < 1:
        parser.error("ROWS: expected 1 or more")
    folder, rows = asked.folder, asked.rows
    folder.mkdir(parents=True, exist_ok=True)
    for seed, (name, count) in enumerate([("mmoe_train.csv", rows), ("mmoe_eval.csv", 10000)], 1):
        draw = random.Random(seed)
        text = ",".join([f"x{i}" for i in range(8)] + ["click", "buy"]) + "\n" + "".join(row(draw) for _ in range(count))
        (folder / name).write_text(text)


if __name__ == "__main__":
    main()
