#!/usr/bin/env python3
"""The page of --http as a C array: page.py PAGE.html PAGE.c"""
import sys

LINE = 24


def main():
    with open(sys.argv[1], "rb") as file:
        page = file.read()
    with open(sys.argv[2], "w", encoding="ascii") as out:
        out.write('#include "cmd/run/page.h"\n\nconst char page_html[] = {\n')
        for at in range(0, len(page), LINE):
            out.write("    " + ", ".join(str(byte - 256 * (byte > 127)) for byte in page[at:at + LINE]) + ",\n")
        out.write("};\nconst size_t page_bytes = sizeof page_html;\n")


if __name__ == "__main__":
    main()
