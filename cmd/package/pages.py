#!/usr/bin/env python3
"""pages.py BINARY VERSION FOLDER: writes man pages and completions of the program into the folder."""
import sys
from pathlib import Path

sys.dont_write_bytecode = True  # the folder is part of the source

import completion
import man
from help import Help


def main():
    binary, version, folder = sys.argv[1:]
    dtrain = Help(binary)
    pages = {"dtrain.1": man.commands_page(dtrain, f"dtrain {version}"),
             "dtrain-spec.5": man.spec_page(dtrain, f"dtrain {version}"),
             "dtrain": completion.bash(dtrain), "_dtrain": completion.zsh(dtrain),
             "dtrain.fish": completion.fish(dtrain)}
    for name, text in pages.items():
        (Path(folder) / name).write_text(text)


if __name__ == "__main__":
    main()
