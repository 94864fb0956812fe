#!/usr/bin/env python3
"""din_rows.py FOLDER [ROWS]: din_train.csv of ROWS rows (100000) and din_eval.csv of 10000: an item, its group, the items that
somebody looked at before and their groups, and whether the item is clicked: of 80 % of the rows where the history has an item of
its group, and of 10 % of the others. Nothing else matters, so whoever knows the rule has an AUC of 0.855."""
import argparse
import pathlib
import random

ITEMS, GROUPS, HISTORY = 2000, 200, (5, 20)


def row(draw):
    history = [draw.randrange(ITEMS) for _ in range(draw.randrange(HISTORY[0], HISTORY[1] + 1))]
    item = draw.randrange(ITEMS)
    if draw.random() < 0.5:  # one like those of the history
        item = draw.choice(history) % GROUPS + GROUPS * draw.randrange(ITEMS // GROUPS)
    groups = [one % GROUPS for one in history]
    click = draw.random() < (0.8 if item % GROUPS in groups else 0.1)
    return f"{item},{item % GROUPS},{' '.join(map(str, history))},{' '.join(map(str, groups))},{int(click)}\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path, metavar="FOLDER")
    parser.add_argument("rows", type=int, nargs="?", default=100000, metavar="ROWS")
    asked = parser.parse_args()
    if asked.rows < 1:
        parser.error("ROWS: expected 1 or more")
    folder, rows = asked.folder, asked.rows
    folder.mkdir(parents=True, exist_ok=True)
    for seed, (name, count) in enumerate([("din_train.csv", rows), ("din_eval.csv", 10000)], 1):
        draw = random.Random(seed)
        text = "item,group,items,groups,click\n" + "".join(row(draw) for _ in range(count))
        (folder / name).write_text(text)


if __name__ == "__main__":
    main()
