#!/usr/bin/env python3
"""The house rules that a program can check; every rule is one function below.

    law.py ROOT [COMPILER]    checks the tree, prints what breaks a rule, exits 1 if anything does

Who may include whom is the law of the house: a folder sees only what stands above it in the top
meson.build. tests/law_test.py shows each rule a tree that breaks it.
"""
import os
import re
import shutil
import subprocess
import sys

FOLDERS = ("cmd", "core", "kernels", "net", "tests", "examples")
TOP_FILES = ("meson.build", "meson_options.txt", "LICENSE", "README.md")
CODE = (".c", ".h", ".cu", ".cuh", ".c.in", ".h.in")
FUNCTION_LINES_MAX = 70
STRUCT_MEMBERS_MAX = 25
COMPILE_SECONDS_MAX = 300

# Room: the prefixes of what it may include besides its own. The longest room that a path begins with
# counts. cmd and tests may include everything. What the build makes is not looked at: kernels/rules.h
# has the files of the optimizers, down to where their rules end.
BELOW_TRAIN = ["core/base/", "kernels/device.h", "kernels/kernels.h", "kernels/note.h", "kernels/async.h", "core/graph/"]
ALLOWED = {
    "core/base/": [],
    "kernels/": ["core/base/error.h"],
    "net/": ["core/base/"],
    "core/graph/": BELOW_TRAIN,
    "core/ops/": BELOW_TRAIN,
    "core/data/": BELOW_TRAIN,
    "core/train/": BELOW_TRAIN + ["core/ops/", "core/data/"],
    "core/train/variables/optimizers/": BELOW_TRAIN + ["core/train/", "kernels/rule.h"],
    "core/cluster/role/": ["core/base/", "net/message.h"],
    "core/cluster/": BELOW_TRAIN + ["core/ops/", "core/data/", "core/train/", "net/message.h",
                                    "net/loop.h", "net/transport.h"],
}

# A role is told the time and never asks for it, nor for anything else of the world.
ROLE = "core/cluster/role/"
WORLD = re.compile(r"core/base/clock\.h|time\.h|unistd\.h|fcntl\.h|sys/.*|pthread\.h")

# tests/cuda/ holds what stands in for CUDA where there is no GPU.
CUDA_FOLDERS = ("kernels/cuda/", "tests/cuda/")

# What a pattern names in an #include: folders or files where it may stand, and its name.
SYSTEM = [
    (re.compile(r"sys/(socket|epoll|un)\.h|netinet/.*|arpa/.*|netdb\.h|net/if\.h"),
     ("net/", "tests/"), "sockets and epoll"),
    (re.compile(r"curl/.*"), ("net/http.c",), "libcurl"),
    (re.compile(r"microhttpd\.h"), ("net/http_server.c",), "libmicrohttpd"),
    (re.compile(r"f?cblas\w*\.h|openblas.*|oneapi/.*|dnnl.*"), ("kernels/cpu/", "tests/"),
     "BLAS and oneDNN"),
    (re.compile(r"cuda.*|cublas.*|cudnn.*|nvrtc.*|nccl.*"), CUDA_FOLDERS, "CUDA"),
    (re.compile(r"jansson\.h"),
     ("core/base/", "core/train/spec/", "core/train/hooks/final_evaluation.c",
      "core/train/checkpoint/best_checkpoints.c", "core/train/checkpoint/publication.c", "core/data/formats/jsonl.c", "core/data/formats/json_cells.", "core/cluster/",
      "net/coordinator/", "net/web/", "cmd/",
      "tests/"),
     "jansson"),
]
CUDA_NAME = re.compile(r"\b(cuda[A-Z]\w*|cublas\w+|cudnn\w+|cu[A-Z][a-z]\w+|__global__|__device__)\b")
JSON_CALL = re.compile(r"\bjson_(?:load\w*|v?unpack\w*|\w+_(?:get|value)|is_\w+)\s*\(")
JSON_FIELD = re.compile(r"\bFIELD_JSON\b|\bFIELD_OF\([^,]*,\s*JSON\b")
JSON_FOLDERS = SYSTEM[-1][1]

INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)', re.MULTILINE)
HEADERS = (".h", ".cuh")
TAG = re.compile(r"^\s*(?:static )?(?:const )?(?:struct|enum|union) (\w+)(?= \{)", re.MULTILINE)
STRUCT = re.compile(r"^(?:static )?(?:const )?struct (\w+ )?\{", re.MULTILINE)
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
CITED = re.compile(r"[\w./-]*\w\.(?:c|h|cu|cuh|py|sh|md)\b")
PAGE = "core/README.md"
PAGE_FUNCTION = re.compile(r"`([a-z]\w*)\(\)`")
PAGE_PATH = re.compile(r"`((?:core|cmd|kernels|net|tests)/[\w./]+)`")
CALLED = re.compile(r"\b(\w+)\(")
MADE = {"op_tables.c", "rules.h", "revision.h", "hook_table.c", "formats.c", "column_kinds.c"}  # by the build
NAMED = re.compile(r"/\* (\w+\.(?:c|h|cu|cuh|def)) - ")
UNFINISHED = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X)\b")
NOISE = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.DOTALL)


def without_noise(text):
    """The code with comments and literals emptied; lines stay where they are."""
    return NOISE.sub(lambda found: "\n" * found.group().count("\n"), text)


class Source:
    """One file: its path from the root, its text, and the text without comments and literals."""

    def __init__(self, root, path):
        self.path = path
        with open(os.path.join(root, path), encoding="utf-8") as file:
            self.text = file.read()
        self.is_code = path.endswith(CODE)
        self.code = without_noise(self.text) if self.is_code else ""

    def room(self):
        """Of the law of includes; "" where everything may be included."""
        return max((room for room in ALLOWED if self.path.startswith(room)), key=len, default="")

    def includes(self):
        """Pairs of a line number and the name; ours in quotes, the system's in brackets."""
        for found in INCLUDE.finditer(self.text):
            line = self.text.count("\n", 0, found.start(1 if found.group(1) else 2)) + 1
            yield line, found.group(1), found.group(2)


def may_include(source, name):
    room = source.room()
    return not room or name.startswith((room, *ALLOWED[room]))


def check_own_includes(source):
    for line, own, _ in source.includes():
        if own and not may_include(source, own):
            yield f"{source.path}:{line}: {source.room()} must not know {own}"
        inside = own and own.endswith("_inside.h") and not source.path.startswith("tests/")
        if inside and not source.path.startswith(os.path.dirname(own) + "/"):
            yield f"{source.path}:{line}: {own} is for its own folder"


def check_system_includes(source):
    for line, own, system in source.includes():
        for pattern, places, name in SYSTEM:
            if pattern.fullmatch(system or "") and not source.path.startswith(places):
                yield f"{source.path}:{line}: {name} belong in {', '.join(places)}"
        if source.path.startswith(ROLE) and WORLD.fullmatch(own or system):
            yield f"{source.path}:{line}: a role must not know {own or system}"


def check_own_name(source):
    found = NAMED.match(source.text) if not source.path.endswith(".in") else None
    if found and found.group(1) != os.path.basename(source.path):
        yield f"{source.path}:1: its first comment is that of {found.group(1)}"


def check_names(source):
    for number, line in enumerate(source.code.split("\n"), 1):
        found = CUDA_NAME.search(line)
        if found and not source.path.startswith(CUDA_FOLDERS):
            yield f"{source.path}:{number}: {found.group()} belongs in kernels/cuda/"
        # Who has a field of type JSON in a table may read it.
        found = JSON_CALL.search(line)
        if found and not source.path.startswith(JSON_FOLDERS) and not JSON_FIELD.search(source.code):
            yield f"{source.path}:{number}: JSON is read by field tables, not here"


def check_unfinished(source):
    for number, line in enumerate(source.text.split("\n"), 1):
        if UNFINISHED.search(line):
            yield f"{source.path}:{number}: unfinished: {line.strip()}"


def functions(code):
    """First line, last line and signature of what has its braces in the first column."""
    lines = code.split("\n")
    begin = None
    for number, line in enumerate(lines, 1):
        if line.rstrip() == "{":
            begin = number - 1
            while begin > 1 and re.match(r"[^#;}]*[^#;}\s]\s*$", lines[begin - 2]):
                begin -= 1
        elif begin and line.startswith("}"):
            yield begin, number, lines[begin - 1].strip()
            begin = None


def check_function_lengths(source):
    for first, last, signature in functions(source.code):
        if last - first + 1 > FUNCTION_LINES_MAX:
            yield (f"{source.path}:{first}: {last - first + 1} lines, {FUNCTION_LINES_MAX} at most: "
                   f"{signature}")


def structs(code):
    """First line, name and number of members of each struct that begins in the first column."""
    for found in STRUCT.finditer(code):
        at, depth, inside, members = found.end(), 1, 0, 0
        while depth and at < len(code):
            depth += {"{": 1, "}": -1}.get(code[at], 0)
            inside += {"(": 1, "[": 1, ")": -1, "]": -1}.get(code[at], 0)
            members += depth == 1 and not inside and code[at] in ",;"
            at += 1
        yield code.count("\n", 0, found.start()) + 1, (found.group(1) or "").strip(), members


def check_struct_members(source):
    """Of the product: what has more holds a few named parts instead."""
    if source.path.startswith("tests/"):
        return
    for line, name, members in structs(source.code):
        if members > STRUCT_MEMBERS_MAX:
            yield (f"{source.path}:{line}: {members} members, {STRUCT_MEMBERS_MAX} at most: "
                   f"struct {name}")


def check_top_folder(paths):
    for top in sorted({path.split("/")[0] for path in paths}):
        if top not in FOLDERS + TOP_FILES and not top.startswith("."):
            yield f"{top}: only {', '.join(FOLDERS + TOP_FILES)} stand at the top"


# Of an op, a column or a hook what its configuration gives, of a hook what it keeps, of a device its plan: one
# meaning, in each file that registers one; and of the sides of a product of the GPU's. A .c.in is a program of its own.
TAGS_OF_MANY = {"attributes", "state", "conv2d_plan", "Term"}


def check_tags(sources):
    """A tag names one thing in the product, in headers and sources."""
    places = {}
    for source in sources:
        if source.is_code and not source.path.startswith(("tests/", "examples/")) and not source.path.endswith(".in"):
            for tag in set(TAG.findall(source.code)) - TAGS_OF_MANY:
                places.setdefault(tag, []).append(source.path)
    for tag, paths in sorted(places.items()):
        if len(paths) > 1:
            yield f"{' and '.join(paths)}: one tag, two things: {tag}"


def tails(path):
    """a/b/c: a/b/c, b/c and c."""
    parts = path.split("/")
    return ["/".join(parts[i:]) for i in range(len(parts))]


def check_citations(sources, paths):
    """A comment names no file that is not here."""
    known = {tail for path in paths for tail in tails(path)} | MADE
    for source in sources:
        for found in COMMENT.finditer(source.text) if source.is_code else ():
            for name in CITED.findall(found.group()):
                if name not in known:
                    line = source.text.count("\n", 0, found.start()) + 1
                    yield f"{source.path}:{line}: a comment names {name}, which is not here"


def check_page(root, sources):
    """The page by which a stranger finds the way names functions and files that are there."""
    try:
        with open(os.path.join(root, PAGE), encoding="utf-8") as file:
            text = file.read()
    except FileNotFoundError:
        return
    functions = {name for source in sources for name in CALLED.findall(source.code)}
    for name in sorted(set(PAGE_FUNCTION.findall(text)) - functions):
        yield f"{PAGE}: there is no {name}()"
    for path in sorted(set(PAGE_PATH.findall(text))):
        if "NAME" not in path and not os.path.exists(os.path.join(root, path)):
            yield f"{PAGE}: there is no {path}"


def check_changelog(root):
    """Its newest entry is of the version that is built, and names the protocol that this speaks."""
    said = []
    for path, pattern in (("meson.build", r"version: '([^']+)'"), ("net/message.h", r"PROTOCOL_VERSION = (\d+)"),
                          ("examples/CHANGELOG.md", r"\A(?:(?!## ).*\n)*## (\S+).*\n(?:(?!## |Protocol ).*\n)*(?:Protocol (\d+):)?")):
        try:
            with open(os.path.join(root, path), encoding="utf-8") as file:
                found = re.search(pattern, file.read(), re.MULTILINE)
        except FileNotFoundError:
            return
        said.append(found.groups("none") if found else ("nothing",))
    built, written = said[0] + said[1], said[2]
    if built != written:
        yield (f"examples/CHANGELOG.md: its newest entry is of {' with protocol '.join(written)}, "
               f"the program of {' with protocol '.join(built)}")


def check_headers_compile(root, headers, compiler):
    """Each header alone. The two names stand for an instruction set, which meson gives."""
    if not headers:
        return
    flags = ["-fsyntax-only", "-x", "c", "-std=gnu2x", "-D_GNU_SOURCE", "-I.", "-w",
             "-DISA_NAME=generic", "-DISA_LANES=4", "-DDTRAIN_VERSION=\"0\""]
    done = subprocess.run(compiler.split() + flags + headers, cwd=root, capture_output=True,
                          text=True, timeout=COMPILE_SECONDS_MAX, check=False)
    if done.returncode != 0:
        yield f"a header does not compile alone:\n{done.stderr.strip()}"


def tracked_paths(root):
    """What git knows of; of a tree without git every file in our folders."""
    if os.path.exists(os.path.join(root, ".git")) and shutil.which("git"):
        done = subprocess.run(["git", "-c", f"safe.directory={os.path.abspath(root)}", "ls-files"],
                              cwd=root, capture_output=True, text=True, check=False)
        if done.returncode == 0:
            found = done.stdout.split("\n")
            return [path for path in found if path and os.path.isfile(os.path.join(root, path))]
    paths = []
    for folder in FOLDERS:
        for at, _, files in os.walk(os.path.join(root, folder)):
            paths += [os.path.relpath(os.path.join(at, name), root) for name in files]
    return sorted(paths)


CHECKED = CODE + (".py", ".sh", ".build", ".txt")
RULES = (check_own_includes, check_system_includes, check_own_name, check_names, check_unfinished,
         check_function_lengths, check_struct_members)


def check(root, compiler):
    """All complaints about the tree."""
    paths = tracked_paths(root)
    complaints = list(check_top_folder(paths))
    sources = [Source(root, path) for path in paths
               if path.endswith(CHECKED) and path.startswith(FOLDERS)]
    for source in sources:
        for rule in RULES:
            complaints += rule(source)
    complaints += [*check_tags(sources), *check_citations(sources, paths), *check_page(root, sources), *check_changelog(root)]
    # CUDA's own headers need not be there, and its compiler sees these.
    headers = [path for path in paths if path.endswith(".h") and path.startswith(FOLDERS)
               and not path.startswith(CUDA_FOLDERS)]
    return complaints + list(check_headers_compile(root, headers, compiler))


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    complaints = check(sys.argv[1], sys.argv[2] if len(sys.argv) == 3 else "cc")
    print("\n".join(complaints) or "the law holds")
    sys.exit(1 if complaints else 0)


if __name__ == "__main__":
    main()
