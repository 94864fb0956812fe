"""embed.py OUT FILE...: the files as one text of C, for what an export writes; includes of ours go."""
import sys

lines = []
for path in sys.argv[2:]:
    with open(path, encoding="utf-8") as file:
        lines += [line for line in file.read().split("\n") if not line.startswith('#include "')]
with open(sys.argv[1], "w", encoding="utf-8") as out:
    out.write("extern const char c_runtime[];\nconst char c_runtime[] =\n")
    for line in lines:
        escaped = line.replace("\\", "\\\\").replace('"', '\\"')
        out.write(f'    "{escaped}\\n"\n')
    out.write("    ;\n")
