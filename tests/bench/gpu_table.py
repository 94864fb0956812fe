#!/usr/bin/env python3
"""gpu_table.py - one table of all figures of a GPU, each beside its goal.

    gpu_table.py LOGS                 reads bench*.json and gpu-*.json there, writes figures.json

A file that is not there is a part that was not measured; its own log says why.
"""
import glob
import json
import os
import sys

WIDTHS = (12, 48, 34, 34)


def of_kernel(figure):
    """A figure of the kernels' bench, as a row."""
    against = f"{figure['ratio']:.2f} of {figure['peer']}" if figure["ratio"] else ""
    goal = f"at least {figure['goal']:.2f}" if figure["goal"] else ""
    return {**figure, "measured": f"{figure['us']:.1f} us, {figure['rate']:.2f} {figure['unit']}",
            "against": against or f"no {figure['peer']} here", "goal_text": goal}


def verdict(figure):
    if figure["is_met"] is None:
        return ""
    return "met" if figure["is_met"] else "MISSED"


def line(figure):
    cells = (figure["group"], figure["name"], figure["measured"], figure["against"])
    text = " ".join(f"{cell:{width}}" for cell, width in zip(cells, WIDTHS))
    goal = f"{figure['goal_text']}: {verdict(figure)}" if verdict(figure) else ""
    return f"{text} {goal}".rstrip()


def read(folder):
    figures, failures, device = [], [], ""
    for path in (sorted(glob.glob(os.path.join(glob.escape(folder), "bench*.json"))) +
                 sorted(glob.glob(os.path.join(glob.escape(folder), "gpu-*.json")))):
        try:
            with open(path, encoding="utf-8") as file:
                found = json.load(file)
        except FileNotFoundError:
            continue
        except ValueError as trouble:  # its program was ended while it wrote
            failures.append(f"{path}: {trouble}")
            continue
        is_kernels = os.path.basename(path).startswith("bench")
        figures += map(of_kernel, found["figures"]) if is_kernels else found["figures"]
        failures += found.get("failures", [])
        device = found.get("device", device)
    return {"device": device, "figures": figures, "failures": failures}


def main(arguments):
    if len(arguments) != 1:
        sys.exit(__doc__)
    found = read(arguments[0])
    figures, failures = found["figures"], found["failures"]
    print(found["device"])
    for figure in figures:
        print(line(figure))
    judged = [figure["is_met"] for figure in figures if figure["is_met"] is not None]
    print(f"{sum(judged)} of {len(judged)} goals met, {len(figures) - len(judged)} figures without "
          f"a goal or something to compare with, {len(failures)} failures")
    for failure in failures:
        print("FAILED: " + failure.split("\n")[0])
    with open(os.path.join(arguments[0], "figures.json"), "w", encoding="utf-8") as file:
        json.dump(found, file, indent=1)
        file.write("\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
