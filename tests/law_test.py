#!/usr/bin/env python3
"""The law, tried on small trees: each test is a tree that breaks one rule, or one that may stand."""
import os
import sys
import tempfile
import unittest

import law

COMPILER = "cc"


def write(root, files):
    for path, text in files.items():
        os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
        with open(os.path.join(root, path), "w", encoding="utf-8") as file:
            file.write(text)


def complaints(files):
    with tempfile.TemporaryDirectory() as root:
        write(root, files)
        return law.check(root, COMPILER)


def function(lines):
    return "int f(void)\n{\n" + "    f();\n" * (lines - 3) + "}\n"


class Law(unittest.TestCase):
    def assert_breaks(self, path, text, words):
        found = complaints({path: text})
        self.assertEqual(len(found), 1, found)
        self.assertIn(words, found[0])

    def assert_holds(self, path, text):
        self.assertEqual(complaints({path: text}), [])

    def test_a_room_sees_only_what_is_above_it(self):
        for room, name in (("core/base", "net/loop.h"), ("net", "kernels/kernels.h"),
                           ("kernels", "core/base/arena.h"), ("core/graph", "core/ops/pool.h"),
                           ("core/data", "core/train/spec/spec.h"), ("core/train", "net/message.h"),
                           ("core/ops", "kernels/cpu/cpu.h"), ("core/cluster", "net/link.h"),
                           ("core/cluster/role", "net/loop.h"), ("core/base", "cmd/cmd.h"),
                           ("core/cluster/role", "core/cluster/runner/task.h")):
            self.assert_breaks(f"{room}/a.c", f'#include "{name}"\n', f":1: {room}/ must not")

    def test_what_is_above_and_beside_may_be_seen(self):
        for room, name in (("net", "core/base/log.h"), ("kernels", "core/base/error.h"),
                           ("core/train", "core/data/data.h"), ("core/ops", "core/ops/pool.h"),
                           ("core/cluster/role", "net/message.h"), ("cmd", "net/transport.h"),
                           ("core/cluster/role", "core/cluster/role/role.h"),
                           ("core/cluster/runner", "core/cluster/role/role.h"),
                           ("core/cluster/runner", "net/loop.h"),
                           ("tests/net", "core/cluster/role/role.h")):
            self.assert_holds(f"{room}/a.c", f'#include "{name}"\n')

    def test_roles_have_no_clock(self):
        self.assert_breaks("core/cluster/role/ps_role.c", '#include "core/base/clock.h"\n', "a role")
        self.assert_breaks("core/cluster/role/role.h", "#include <time.h>\n", "a role")
        self.assert_holds("core/cluster/runner/runner_ps.c", '#include "core/base/clock.h"\n')

    def test_inside_headers_stay_inside(self):
        text = '#include "core/base/fields/fields_inside.h"\n'
        self.assert_breaks("core/base/a.c", text, "its own folder")
        for path in ("core/base/fields/a.c", "core/base/fields/more/a.c", "tests/core/base/a.c"):
            self.assert_holds(path, text)

    def test_a_tag_means_one_thing(self):
        one, other = "struct part {\n    int a;\n};\n", "enum part {\n    A\n};\n"
        self.assertEqual(len(complaints({"net/a.h": one, "cmd/b.h": other})), 1)
        self.assertEqual(complaints({"net/a.h": one, "cmd/b.h": "struct part;\n"}), [])
        self.assertEqual(len(complaints({"net/a.c": one, "cmd/b.c": other})), 1)
        self.assertEqual(complaints({"net/a.h": one, "cmd/b.c.in": other, "tests/b.h": other}), [])
        own = "struct attributes {\n    int a;\n};\n"
        self.assertEqual(complaints({"core/ops/a.c": own, "core/ops/b.c": own}), [])

    def test_a_comment_names_what_is_there(self):
        self.assert_breaks("net/a.c", "\n/* see b.h */\n", "net/a.c:2: a comment names b.h")
        self.assertEqual(complaints({"net/a.c": "/* net/b.h */\n", "net/b.h": "int f(void);\n"}), [])
        self.assert_holds("net/a.c", 'const char *name = "b.h";\n')

    def test_the_page_of_the_house_names_what_is_there(self):
        page = "`f()` in `net/a.c`, `kernels/NAME.c`, `g()` in `net/b.c`\n"
        found = complaints({"core/README.md": page, "net/a.c": function(5)})
        self.assertEqual(found, ["core/README.md: there is no g()", "core/README.md: there is no net/b.c"])

    def test_the_first_comment_names_its_own_file(self):
        said = "/* b.c - what it is. */\n"
        found = complaints({"net/a.c": said, "net/b.c": said})
        self.assertEqual(found, ["net/a.c:1: its first comment is that of b.c"])
        self.assert_holds("net/a.c", "/* a.c - what it is. */\n")

    def test_libraries_have_one_place(self):
        for place, elsewhere, header in (("net/a.c", "cmd/a.c", "sys/socket.h"),
                                         ("net/a.c", "core/cluster/runner/a.c", "sys/epoll.h"),
                                         ("kernels/cpu/a.c", "kernels/a.c", "cblas.h"),
                                         ("kernels/cpu/a.c", "core/ops/a.c", "oneapi/dnnl/dnnl.h"),
                                         ("kernels/cuda/a.cu", "kernels/a.c", "cuda_runtime.h"),
                                         ("core/train/spec/a.c", "core/train/a.c", "jansson.h"),
                                         ("net/http.c", "net/tcp.c", "curl/curl.h")):
            self.assert_holds(place, f"#include <{header}>\n")
            self.assert_breaks(elsewhere, f"#include <{header}>\n", "belong in")

    def test_cuda_names_stay_in_their_folder(self):
        for name in ("cudaMalloc", "cublasSgemm", "cuInit", "__global__"):
            self.assert_breaks("kernels/a.c", f"\nint x = {name};\n", f":2: {name}")
            self.assert_holds("tests/cuda/a.c", f"\nint x = {name};\n")
            self.assert_holds("kernels/cuda/a.cu", f"int x = {name};\n")
        self.assert_holds("cmd/a.c", '/* cudaMalloc */ const char *a = "cudaMalloc";\n')

    def test_json_is_read_by_tables(self):
        call = "double f(void)\n{\n    return json_number_value(x);\n}\n"
        self.assert_breaks("core/data/a.c", call, ":3: JSON")
        self.assert_holds("core/data/a.c", "int type = FIELD_JSON;\n" + call)
        self.assert_holds("core/data/a.c", 'FIELD_OF("value", JSON, struct a, value),\n' + call)
        self.assert_holds("core/base/a.c", call)

    def test_nothing_is_left_unfinished(self):
        for word in ("TO" "DO", "FIX" "ME", "XX" "X"):
            self.assert_breaks("cmd/a.c", f"/* {word}: later */\n", ":1: unfinished")
        self.assert_holds("cmd/a.c", 'char name[] = "/tmp/aXXXXXX";\n')

    def test_functions_have_a_length(self):
        self.assert_holds("cmd/a.c", function(70))
        self.assert_breaks("cmd/a.c", function(71), ":1: 71 lines, 70 at most: int f(void)")
        three_lines = "f(int a,\n      int b,\n      int c)"
        self.assert_breaks("cmd/a.c", function(69).replace("f(void)", three_lines), "71 lines")

    def test_structs_have_a_number_of_members(self):
        def struct(members):
            return "struct a {\n" + "    int x[2], (*f)(int a, int b);\n" * (members // 2) + "};\n"
        self.assert_holds("net/a.c", struct(24))
        self.assert_breaks("net/a.c", struct(26), ":1: 26 members, 25 at most: struct a")
        self.assert_breaks("net/a.c", "static " + struct(26), "struct a")
        part = "    struct {\n        int x, y;\n    } p;\n"
        self.assert_holds("net/a.c", struct(24).replace("};\n", part + "};\n"))
        self.assert_holds("tests/a.c", struct(26))

    def test_headers_compile_alone(self):
        self.assert_holds("net/a.h", "#include <stddef.h>\nsize_t f(void);\n")
        self.assert_breaks("net/a.h", "size_t f(void);\n", "does not compile alone")

    def test_the_changelog_names_what_is_built(self):
        tree = {"meson.build": "project('a', version: '0.2.0')\n", "net/message.h": "enum { PROTOCOL_VERSION = 7 };\n"}
        entry = "# Changes\n\n## 0.2.0 (not released yet)\n\nProtocol 7: all.\n\n## 0.1.0\n\nProtocol 6: all.\n"
        with tempfile.TemporaryDirectory() as root:
            for text, words in ((entry, []), (entry.replace("7", "6", 1), ["is of 0.2.0 with protocol 6, the program of 0.2.0 with protocol 7"]),
                                (entry.replace("Protocol 7: all.\n\n", ""), ["is of 0.2.0 with protocol none, the program of"]),
                                (entry.replace("## 0.2.0 ", "## 0.3.0\n\nMore.\n\n## 0.2.0 "), ["is of 0.3.0 with protocol none"]),
                                (entry.replace("0.2.0", "0.3.0"), ["is of 0.3.0 with"]), ("# Changes\n", ["is of nothing"])):
                write(root, {**tree, "examples/CHANGELOG.md": text})
                found = list(law.check_changelog(root))
                self.assertEqual(len(found), len(words), found)
                for one, word in zip(found, words, strict=True):
                    self.assertIn(word, one)

    def test_the_top_has_its_folders_and_no_more(self):
        self.assertEqual(list(law.check_top_folder(["cmd/a.c", "meson.build", ".gitignore"])), [])
        self.assertEqual(len(list(law.check_top_folder(["scripts/a.sh", "Makefile"]))), 2)

    def test_line_numbers_survive_comments(self):
        self.assert_breaks("net/a.c", '/* one\n   two */\n\n#include "cmd/cmd.h"\n', "net/a.c:4:")


if __name__ == "__main__":
    COMPILER = sys.argv.pop() if len(sys.argv) > 1 else COMPILER
    unittest.main()
