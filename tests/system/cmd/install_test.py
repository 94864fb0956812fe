"""What `meson install` and cmd/package/deb.sh make: the program runs from there, and its pages say what it does."""
import json
import os
import re
import shlex
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

import program

BUILD = os.environ.get("DTRAIN_BUILD", "build")
INSTALLED = ["bin/dtrain", "share/doc/dtrain/LICENSE", "share/doc/dtrain/examples/CHANGELOG.md", "share/doc/dtrain/examples/SECURITY.md", "share/man/man1/dtrain.1",
             "share/man/man5/dtrain-spec.5", "share/bash-completion/completions/dtrain",
             "share/zsh/site-functions/_dtrain", "share/fish/vendor_completions.d/dtrain.fish", "share/dtrain/examples/digits.json",
             "share/dtrain/examples/hooks/best_loss.c"]
ASK = """. "$1"; shift
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _dtrain; echo "${COMPREPLY[@]}" """
ASKED = [
    (["che"], "check checkpoint"),
    (["--transp"], "--transport="),
    (["--transport", "=", ""], "auto tcp shm"),
    (["--transport", "=", "t"], "tcp"),
    (["--log_level", "w"], "warning"),
    (["eval", "--checkp"], "--checkpoint="),
    (["check", "--local_p"], "--local_ps="),
    (["--seed=1", "checkpoint", "ver"], "verify"),
    (["var", "wat"], "watch"),
    (["help", "flatt"], "flatten"),
    (["--result", "--t"], ""),
    (["nothing.j"], ""),
]


def ran(command, **options):
    return subprocess.run(list(map(str, command)), env=program.environment(options.pop("env", None)), text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          check=False, **options)


class Install(program.FolderCase):
    def need(self, *tools):
        for tool in tools:
            if not shutil.which(tool):
                self.skipTest(f"no {tool} here")

    @classmethod
    def setUpClass(cls):
        if not shutil.which("meson"):
            raise unittest.SkipTest("no meson here")
        place = tempfile.TemporaryDirectory(prefix="dtrain-test-")
        cls.addClassCleanup(place.cleanup)
        done = ran(["meson", "install", "-C", BUILD, "--no-rebuild", "--quiet"], env={"DESTDIR": place.name})
        assert done.returncode == 0, done.stdout
        cls.root = next(Path(place.name).glob("**/bin/dtrain")).parents[1]

    def succeed(self, *command, **options):
        done = ran(command, **options)
        self.assertEqual(done.returncode, 0, f"{command}: {done.stdout}")
        return done.stdout

    def pages(self):
        return [self.root / "share/man" / page for page in ("man1/dtrain.1", "man5/dtrain-spec.5")]

    def said(self):
        """{command: {flag: its words}}, and the names of all keys, kinds and topics of the spec."""
        found = json.loads(self.succeed(self.root / "bin/dtrain", "help", "--json"))
        topics = {topic["name"]: topic for topic in found["topics"]}

        def flags(topic):
            rows = [row for part in topics.get(topic, {}).get("parts", []) for row in part.get("flags", [])]
            return {row["name"]: row.get("choices", []) for row in rows}

        def names(rows):
            return {name for row in rows for name in ({row["name"]} | names(row.get("fields", [])))}

        keys = names(row for topic in topics.values() for row in topic.get("fields", []) + topic.get("kinds", []))
        return {command["name"]: flags(command["name"]) | (flags("flags") if command["takes_run_flags"] else {})
                for command in found["commands"]} | {"": flags("flags")}, keys

    def test_everything_is_there_and_runs(self):
        for path in INSTALLED:
            self.assertTrue((self.root / path).is_file(), path)
        self.assertFalse((self.root / "share/dtrain/examples/setup.sh").exists())
        binary = self.root / "bin/dtrain"
        self.assertRegex(self.succeed(binary, "--version"), r"^dtrain \d+\.\d+\.\d+(\+git\d+\.[0-9a-f]{12}\+?)?\n")
        self.assertIn("\nok\n", self.succeed(binary, "check", self.root / "share/dtrain/examples/digits.json"))

    def test_the_program_is_protected_against_overflows(self):
        """Addresses of functions are read only once it runs; stacks and copies are checked."""
        self.need("readelf")
        symbols = self.succeed("readelf", "--dyn-syms", "-W", self.root / "bin/dtrain")
        if "__asan" in symbols or "__tsan" in symbols:
            self.skipTest("a build of the sanitizers, which are protection enough")
        for symbol in ("__stack_chk_fail", "__memcpy_chk"):
            self.assertIn(symbol, symbols)
        self.assertRegex(self.succeed("readelf", "-d", "-W", self.root / "bin/dtrain"), r"BIND_NOW|Flags: NOW")
        segments = self.succeed("readelf", "-l", "-W", self.root / "bin/dtrain")
        self.assertIn("GNU_RELRO", segments)
        self.assertRegex(segments, r"GNU_STACK .* RW ")

    def test_links_of_the_pages_lead_to_pages_that_are_installed(self):
        first = self.root / "share/doc/dtrain/README.md"
        pages = [first, *first.parent.glob("*/README.md")]
        self.assertEqual(len(pages), 1 + len([*program.ROOT.glob("*/README.md")]))
        for page in pages:
            for target in re.findall(r"\]\((?!http)([^)#]+)", page.read_text()):
                self.assertTrue((page.parent / target).is_file(), f"{page}: {target}")

    def test_man_pages_say_all_and_are_clean(self):
        commands, spec = (page.read_text().replace("\\-", "-") for page in self.pages())
        flags, keys = self.said()
        for flag in {flag for own in flags.values() for flag in own}:
            self.assertIn(f"\\fB--{flag}\\fR", commands)
        self.assertLess({"conv2d", "filters", "adam", "libsvm", "checkpoint_dir", "l2"}, keys)
        for word in keys:
            self.assertRegex(spec, rf'\\fB{word}\\fR|\.SS "{word}"')
        if shutil.which("mandoc"):
            found = ran(["mandoc", "-T", "lint", "-W", "warning", *self.pages()]).stdout.splitlines()
            self.assertEqual([line for line in found if "missing date" not in line], [])
        if shutil.which("groff"):
            for page in self.pages():
                self.assertEqual(self.succeed("groff", "-man", "-Tutf8", "-ww", "-z", page), "")

    def test_bash_completes(self):
        self.need("bash")
        script = self.root / "share/bash-completion/completions/dtrain"
        for words, answer in ASKED:
            with self.subTest(words=words):
                said = self.succeed("bash", "-c", ASK, "bash", script, "dtrain", *words, cwd=self.folder)
                self.assertEqual(said.strip(), answer)
        for command, flags in self.said()[0].items():
            words = [command] if command else []
            offered = self.succeed("bash", "-c", ASK, "bash", script, "dtrain", *words, "--", cwd=self.folder).split()
            self.assertEqual({word.strip("-=") for word in offered} - {"help", "version"}, set(flags), command)
            for flag, choices in flags.items():
                offered = self.succeed("bash", "-c", ASK, "bash", script, "dtrain", *words, "--" + flag, "=", "", cwd=self.folder)
                self.assertEqual(offered.split(), choices, f"{command} --{flag}")

    def test_completions_have_what_help_has(self):
        """Of shells that are not here, too: under each command its own flags alone, and the words that these take."""
        zsh, fish = ((self.root / path).read_text() for path in INSTALLED if "/zsh/" in path or "/fish/" in path)
        of_zsh = dict(re.findall(r"^(\S+)\)\s+_arguments (.*?)\s+;;", zsh, re.S | re.M))
        of_fish = [shlex.split(line) for line in fish.splitlines() if " -l " in line]
        for command, flags in self.said()[0].items():
            words = shlex.split(of_zsh[command or "*"].replace("\\\n", " "))
            rows = [re.fullmatch(r"\*?--([\w-]+)=?\[.*\](?::\w+:(?:_files|\((.*)\)))?", word) for word in words]
            by_zsh = {row[1]: (row[2] or "").split() for row in rows if row}
            condition = f"__fish_seen_subcommand_from {command}"
            mine = [line for line in of_fish if (line[4] == condition if command else line[4].startswith("not "))]
            by_fish = {line[6]: line[line.index("-a") + 1].split() if "-a" in line else [] for line in mine}
            self.assertEqual(by_zsh, flags, f"zsh {command}")
            self.assertEqual(by_fish, flags, f"fish {command}")

    def test_zsh_can_read_its_completion(self):
        self.need("zsh")
        self.succeed("zsh", "-n", self.root / "share/zsh/site-functions/_dtrain")

    def test_fish_completes(self):
        self.need("fish")
        script = self.root / "share/fish/vendor_completions.d/dtrain.fish"
        said = self.succeed("fish", "-c", f"source '{script}'; complete -C 'dtrain --transport '",
                            env={"HOME": str(self.folder)})
        self.assertEqual({line.split("\t")[0] for line in said.splitlines()}, {"auto", "shm", "tcp"})

    def test_its_list_of_libraries_has_each_that_it_is_linked_with(self):
        self.need("readelf")
        listed = json.loads((self.root / "share/doc/dtrain/dtrain.spdx.json").read_text())["packages"]
        names = {package["name"] for package in listed}
        linked = re.findall(r"\(NEEDED\).*\[(\w+)\.so", self.succeed("readelf", "-d", self.root / "bin/dtrain"))
        known_as = {"libopenblas": "OpenBLAS", "libdnnl": "oneDNN", "libz": "zlib", "libzstd": "zstd",
                    "libjansson": "jansson", "libexpat": "expat", "libpng16": "libpng"}
        of_the_system = {"libc", "libm", "libgomp", "libgcc_s", "ld-linux-x86-64"}
        self.assertLessEqual({known_as.get(name, name) for name in linked} - of_the_system, names)
        self.assertLess({"libcurl", "libmicrohttpd"}, names)  # loaded when they are used
        self.assertEqual([p["name"] for p in listed if p["licenseConcluded"] == "NOASSERTION"], [])

    def test_objects_have_the_same_bytes_wherever_they_are_built(self):
        """Of files that log, whose lines know them, and that assert; tests/reproducible.sh has all of the program."""
        self.need("ninja")
        objects = ["net/libnet.a.p/tcp.c.o", "core/graph/libgraph.a.p/graph.c.o"]
        found = []
        for build in (self.folder / "built", self.folder / "built elsewhere/deeper/down"):
            self.succeed("meson", "setup", build, program.ROOT, "-Dtests=disabled", "-Dcuda=disabled")
            self.succeed("ninja", "-C", build, *objects, env={"CCACHE_DISABLE": "1"})
            found.append([(build / path).read_bytes() for path in objects])
        self.assertIn(b"\0net/tcp.c\0", found[0][0])
        self.assertTrue(found[0] == found[1], objects)

    def path_without(self, name):
        tools = self.folder / f"without-{name}"
        tools.mkdir()
        for tool in Path("/usr/bin").iterdir():
            if tool.name != name:
                (tools / tool.name).symlink_to(tool)
        return str(tools)

    def test_a_package_needs_the_same_packages_without_dpkg_dev(self):
        self.need("dpkg-deb", "dpkg-shlibdeps", "readelf")
        found = []
        for path in (os.environ["PATH"], self.path_without("dpkg-shlibdeps")):
            folder = self.folder / f"package-{len(found)}"
            package = self.package(folder, {"PATH": path})
            depends = self.succeed("dpkg-deb", "-f", package, "Depends")
            found.append(sorted(re.sub(r"\(.*?\)", "", depends).replace(" ", "").strip().split(",")))
        self.assertEqual(found[0], found[1])

    def package(self, folder, env, umask=-1):
        folder.mkdir(exist_ok=True)
        return self.succeed("sh", program.ROOT / "cmd/package/deb.sh", BUILD, folder, env=env, umask=umask).splitlines()[-1]

    def test_a_debian_package_has_the_same(self):
        self.need("dpkg-deb", "strip")
        without_git = {"PATH": self.path_without("git")}
        for env in ({}, without_git):
            package = self.package(self.folder / "one", env)
            again = self.package(self.folder / "again", {**env, "TZ": "Asia/Tokyo", "LC_ALL": "C.UTF-8"}, umask=0o077)
            self.assertEqual(Path(package).read_bytes(), Path(again).read_bytes())
        later = self.package(self.folder / "later", {"SOURCE_DATE_EPOCH": "4000000000"})  # than any file
        self.assertEqual(set(re.findall(r" \d{4}-\d\d-\d\d \d\d:\d\d ", self.succeed("dpkg-deb", "--contents", later, env={"TZ": "UTC"}))),
                         {" 2096-10-02 07:06 "})
        version = self.succeed("dpkg-deb", "--field", package, "Version").strip()
        self.assertTrue(self.succeed(self.root / "bin/dtrain", "--version").startswith(f"dtrain {version}\n"))
        if shutil.which("lintian"):
            self.assertEqual(ran(["lintian", "--allow-root", "--fail-on=error,warning", package]).stdout.strip(), "")
        listed = self.succeed("dpkg-deb", "--contents", package)
        for path in ("bin/dtrain", "share/man/man1/dtrain.1.gz", "share/doc/dtrain/copyright"):
            self.assertIn(f"./usr/{path}\n", listed)
        self.assertIn("libjansson4", self.succeed("dpkg-deb", "--field", package, "Depends"))
        for library in ("libcurl4", "libmicrohttpd12"):  # loaded when they are used
            self.assertRegex(self.succeed("dpkg-deb", "--field", package, "Recommends"), rf"\b{library}\b")
        self.succeed("dpkg-deb", "--extract", package, self.folder / "unpacked")
        self.succeed(self.folder / "unpacked/usr/bin/dtrain", "--version")


if __name__ == "__main__":
    program.main()
