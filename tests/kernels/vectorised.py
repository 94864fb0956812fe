#!/usr/bin/env python3
"""vectorised.py OBJDUMP LIBRARY...: no function of these archives of kernels computes with one number after the other alone.
What keeps a loop scalar (a load under a condition, a loop that is unrolled first) breaks no result and makes a kernel several
times slower, so the instructions are looked at: products with a sum, quotients and roots, of single numbers and of several."""
import re
import subprocess
import sys

FEW = 8  # constants, a last place
SCATTERS = ["augment_back_range"]  # to places that may be the same
OBJECT = re.compile(r"^(\S+):\s+file format ")
FUNCTION = re.compile(r"^[0-9a-f]+ <(.*)>:")
ARITHMETIC = re.compile(r"\tv(?:fn?m(?:add|sub)\d+|div|sqrt)(s|p)[sd] ")


def counts_of(objdump, library):
    """{"object: function": {"s": how many instructions of one number, "p": of several}}"""
    text = subprocess.run([objdump, "-d", "--no-show-raw-insn", library], check=True, capture_output=True, text=True,
                          timeout=120).stdout
    counts, here, name = {}, {}, ""
    for line in text.splitlines():
        if member := OBJECT.match(line):
            name = member[1]
        elif function := FUNCTION.match(line):
            here = counts.setdefault(f"{name}: {function[1]}", {"s": 0, "p": 0})
        elif found := ARITHMETIC.search(line):
            here[found[1]] += 1
    return counts


def main():
    objdump, *libraries = sys.argv[1:]
    for library in libraries:
        counts = counts_of(objdump, library)
        assert sum(count["p"] > 0 for count in counts.values()) > 50, f"{library}: these are no kernels"
        for function, count in counts.items():
            if count["s"] > FEW and count["p"] == 0 and not function.endswith(tuple(SCATTERS)):
                sys.exit(f"{library}: {function}: {count['s']} of single numbers, none of several")


if __name__ == "__main__":
    main()
