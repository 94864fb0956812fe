"""What the pages print: their commands do it. A page's commands run in its order in one folder that has the
examples; of what each prints, the lines on the page are there but for numbers and paths. Left out are commands that
want data from elsewhere, and those of a cluster that the reader has started (tests/visit has them). The four
shells train on digits, too."""
import json
import os
import re
import shutil
import subprocess

import program
from program.cluster import hold_addresses

PAGES = "README.md", "examples/README.md"
ELSEWHERE = re.compile(r"mnist|\$ dtrain (var|scale|status)|\$ export|--http=|\$ curl(?!.*:8501)")
PORT = "8501"  # of `dtrain serve`, in whose place there is a free one
OF_THE_MACHINE = re.compile(r"GPU|^(\S*:\S* )?dtrain \d[\d.]+|^(compiler:|arithmetic:|libraries:)|^ {4}\S+ +(\d|not |installed)|^\.\.\.$")
SMALL = {"data.batch_size": 2, "data.train.rows": 2000, "data.eval.rows": 200, "train.last_step": 200}
DIGITS = "--data_dir=data/mnist examples/mnist_mlp.json", "examples/digits.json"
FEWER = "last_step=2200", "last_step=220"  # steps of the same


def blocks(text):
    """Runs of indented lines, without the indentation."""
    for part in re.split(r"\n(?! {4}|\n)", text):
        lines = [line[4:] for line in part.split("\n") if line.startswith("    ")]
        if lines:
            yield lines


def commands(text):
    """Pairs of a command and the lines printed below it, or of a spec and None."""
    for lines in blocks(text):
        if lines[0] == "{":
            yield "\n".join(lines[:lines.index("}") + 1]), None
        starts = [i for i, line in enumerate(lines) if line.startswith("$ ")]
        for start, end in zip(starts, starts[1:] + [len(lines)]):
            yield lines[start], lines[start + 1:end]


def masked(line):
    """Without what differs from run to run."""
    line = re.sub(r"/\S*/", "/", line)
    return " ".join(re.sub(r"\d[\d.,:e+-]*", "#", line).split())


class Pages(program.FolderCase):
    def setUp(self):
        super().setUp()
        shutil.copytree(program.ROOT / "examples", self.folder / "examples")
        for path in (self.folder / "examples").glob("digits*.json"):
            spec = program.changed(json.loads(path.read_text()), SMALL)
            path.write_text(json.dumps(spec))
        (self.folder / "bin").mkdir()
        (self.folder / "bin" / "dtrain").symlink_to(os.path.abspath(program.BINARY))

        self.served = None

    def begin_to_serve(self, text):
        """As the page says it, at a free port; a command that waits until it is ready."""
        ready = self.folder / "ready.json"
        process = self.start(f"exec {text[2:].split(' > ')[0]} --port=0 --ready_file={ready} > serve.log 2>&1")
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.addCleanup(process.stdout.close)
        program.wait_until(lambda: ready.exists() or process.poll() is not None, lambda: (self.folder / "serve.log").read_text())
        self.served = json.loads(ready.read_text())["http_port"]
        return "$ cat serve.log"

    def environment(self):
        return program.environment({"PATH": f"{self.folder}/bin:{os.environ['PATH']}"})

    def run_command(self, command):
        return subprocess.run(["sh", "-c", command], cwd=self.folder, check=False, text=True,
                              env=self.environment(), stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def check_command(self, command, printed):
        done = self.run_command(command)
        fails = any(line.startswith("dtrain: ") for line in printed)
        self.assertEqual(done.returncode, program.BAD_INPUT if fails else 0, done.stdout)
        said = [masked(line) for line in done.stdout.splitlines()]
        for line in printed:
            if OF_THE_MACHINE.search(line):
                continue
            wanted = masked(line.removesuffix("..."))
            self.assertTrue(any(one.startswith(wanted) for one in said), f"{line}\n{done.stdout}")

    def check_page(self, page):
        """A spec is the file that the next command names, unless that is there; what `cat` prints is a file of the reader."""
        spec, ran = "", 0
        for text, printed in commands((program.ROOT / page).read_text()):
            if printed is None:
                spec = text
                continue
            name = self.folder / (re.findall(r"\S+\.json", text) or ["."])[-1]
            if not name.exists() and not ELSEWHERE.search(text):
                name.write_text(spec)
            shown = re.fullmatch(r"\$ cat (\S+)", text)
            if shown and not (self.folder / shown[1]).exists():
                (self.folder / shown[1]).write_text("\n".join(printed) + "\n")
            if text.startswith("$ dtrain serve"):
                text = self.begin_to_serve(text)
            elif self.served:
                text = text.replace(f"localhost:{PORT}", f"127.0.0.1:{self.served}")
            if not ELSEWHERE.search(text):
                with self.subTest(command=text):
                    self.check_command(text[2:].replace(*FEWER), printed)
                ran += 1
        return ran

    def test_the_commands_of_the_pages_print_what_stands_below_them(self):
        for page in PAGES:
            self.assertGreater(self.check_page(page), 5)

    def start(self, command):
        return subprocess.Popen(["sh", "-c", command], cwd=self.folder, text=True, stdin=subprocess.DEVNULL,
                                env=self.environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def run_shells(self, commands_of_shells):
        """All at once, on free ports, with digits for MNIST."""
        sockets, addresses = hold_addresses(4)
        shells = []
        for command in commands_of_shells:
            for port, address in zip(range(2221, 2225), addresses, strict=True):
                command = command.replace(f"localhost:{port}", address)
            shells.append(self.start(command.replace(*DIGITS)))
            self.addCleanup(shells[-1].kill)
        said = [shell.communicate(timeout=program.LIMIT_S)[0] for shell in shells]
        self.assertEqual([shell.returncode for shell in shells], [0] * 4, said)
        for one in sockets:
            one.close()
        return said

    def test_the_tasks_of_four_shells_train_and_end_together(self):
        """By flags, and with one by variables and one by TF_CONFIG."""
        texts = ["\n".join(lines) for lines in blocks((program.ROOT / "README.md").read_text())]
        shells = re.split(r"\n(?=dtrain )", next(text for text in texts if text.startswith("dtrain --job_name=ps ")))
        self.assertEqual(len(shells), 4)
        of_variables = next(text for text in texts if text.startswith("JOB_NAME=ps "))
        of_tf_config = next(text for text in texts if text.startswith("TF_CONFIG="))
        for tasks in (shells, [of_variables, *shells[1:3], of_tf_config]):
            said = self.run_shells(tasks)
            self.assertIn("\nstep 200, test loss ", said[2])

    def test_every_folder_page_is_reached_from_the_first(self):
        first = (program.ROOT / "README.md").read_text()
        for path in program.ROOT.glob("*/README.md"):
            self.assertIn(f"]({path.relative_to(program.ROOT)})", first)

    def test_links_of_pages_lead_somewhere(self):
        for page in [program.ROOT / "README.md", *program.ROOT.glob("*/README.md")]:
            for target, anchor in re.findall(r"\]\((?!http)([^)#]*)#?([^)]*)\)", page.read_text()):
                there = page.parent / target if target else page
                self.assertTrue(there.is_file(), f"{page}: {target}")
                heads = re.findall(r"^#+ (.*)", there.read_text(), re.MULTILINE)
                anchors = [re.sub(r"[^\w -]", "", head).lower().replace(" ", "-") for head in heads]
                self.assertTrue(not anchor or anchor in anchors, f"{page}: {target}#{anchor}")


if __name__ == "__main__":
    program.main()
