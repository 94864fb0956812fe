"""Every spec of examples and examples/programs, trained for three steps on a few rows made for it, served and exported in
every format, and held row by row against `dtrain predict`: HTTP, a C compiler, TensorFlow, onnxruntime.

    python3 families_check.py DTRAIN [SPEC.json ...]        (numpy; tensorflow-cpu, onnx, onnxruntime)

Other specs bring the files that they name, from their folder. Run by hand. Prints a table: the largest difference, or the sentence by which the format is refused. Exits 1 where a
difference is 1e-5 or more (of 1, or of the value where that is larger), or an export ends otherwise.
"""
import json
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

sys.path[:0] = [str(pathlib.Path(__file__).parents[1]), str(pathlib.Path(__file__).parents[1] / "system/tools")]

# pylint: disable=wrong-import-position
import numpy as np
import onnx_check
import programs_test

EXAMPLES = pathlib.Path(__file__).parents[2] / "examples"
NEAR, ROWS, LIMIT_S = 1e-5, 8, 300
OPTIMIZED = "adult_wide_deep.json"  # its C, with its numbers in it; of the others they lie beside, for a compiler takes minutes
ADULT = "39, State-gov, 77516, Bachelors, 13, Never-married, Adm-clerical, Not-in-family, White, Male, 2174, 0, 40, United-States, "
MAIN = """#include <stdio.h>
#include <string.h>
#include "NAME.h"
int main(void)
{
    static const NAME_row rows[] = {ROWS};
    static float said[NAME_OUTPUTS];
    OPEN
    for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
        NAME_predict(&rows[i], said);
        fwrite(said, sizeof *said, NAME_OUTPUTS, stdout);
    }
    return 0;
}
"""


class Refused(Exception):
    pass


def run(*words, cwd):
    ended = subprocess.run([str(word) for word in words], cwd=cwd, capture_output=True, timeout=LIMIT_S, check=False)
    if ended.returncode:
        raise Refused(ended.stderr.decode().strip()[:1500] if ended.stderr else f"ended with {ended.returncode}")
    return ended.stdout


def make_data(path, spec, folder):
    draw = random.Random(3)
    maker = EXAMPLES / f"{path.stem}_rows.py"
    if maker.exists() and path.parent == EXAMPLES:
        return run(sys.executable, maker, folder, cwd=folder)
    for part in ("train", "eval"):
        source = spec["data"].get(part)
        if not source or source["format"] in ("clicks", "digits"):
            continue
        if EXAMPLES not in path.parents:
            shutil.copy(path.parent / source["file"], folder)
            continue
        if source.get("file", "").startswith("adult"):
            lines = ["|1x3 header"] * source["header"] + [ADULT + (">50K" if i % 2 else "<=50K") + ("." if source["header"] else "") for i in range(ROWS)]
            (folder / source["file"]).write_text("\n".join(lines) + "\n")
        elif "positive" in source:
            lines = [f"{'+1' if i % 2 else '-1'} 1:1 {draw.randrange(2, 99)}:1" for i in range(ROWS)]
            (folder / source["file"]).write_text("\n".join(lines) + "\n")
        elif source.get("file", "").startswith("day"):
            (folder / source["file"]).write_text("\n".join(day_lines(spec, draw)) + "\n")
        else:
            source = {**source, "file": source["file"].replace("$file", "input.txt")} if "file" in source else source
            programs_test.make(source, folder, draw)


def day_lines(spec, draw):
    names = sorted({column.get("source", column["name"]) for column in spec["data"]["columns"] if column["column"] != "crossed"})
    return [",".join(["click", *names])] + [",".join([str(i % 2), *(str(draw.randrange(1, 9)) for _ in names)]) for i in range(ROWS)]


def comparisons(spec):
    """Nodes that compare rows of a batch: their two inputs are exported"""
    return [node for node in spec["model"] if isinstance(node, dict) and node.get("op") == "in_batch_logits"]


def make_small(spec):
    """Of few rows: what begins behind many, blocks and lanes of a batch, ranks; a text is predicted from what it is trained on"""
    if spec["data"]["train"]["format"] == "text":
        spec["data"].setdefault("eval", dict(spec["data"]["train"]))
    for source in (spec["data"].get("train", {}), spec["data"].get("eval", {})):
        if source.pop("skip", None):
            source.pop("take", None)
        if "lanes" in source:
            source["lanes"] = 4
    for node in comparisons(spec):
        node["block"] = 4
    for metric in spec.get("metrics", []):
        if isinstance(metric, dict) and "k" in metric:
            metric["k"] = min(metric["k"], 2)


class Family:
    def __init__(self, dtrain, path, folder):
        self.dtrain, self.folder, self.name = dtrain, folder, path.name
        spec = json.loads(path.read_text())
        self.data, self.heads = spec["data"], spec.get("heads", [])
        self.words = spec["model"][0]["name"] if self.data["train"].get("order") == "skip_gram" else None
        if not self.data.get("columns") and self.data["train"]["format"] != "text" and not spec["model"][0].get("inputs"):
            spec["model"].insert(0, {"op": "clip", "name": "as_read", "min": -1e30, "max": 1e30})
        make_small(spec)
        (folder / path.name).write_text(json.dumps(spec))
        make_data(path, spec, folder)
        part = "eval" if "eval" in spec["data"] else "train"
        self.sets = ["--set", f"data.{part}.take={ROWS}"]
        ends = [word for key, value in (("num_steps", "null"), ("epochs", "null"), ("daily", "false")) if key in spec["train"]
                for word in ("--set", f"train.{key}={value}")]
        quick = ["--set", "data.train.take=400"] if spec["data"]["train"]["format"] in ("clicks", "text") else []
        small = [] if comparisons(spec) else ["--set", "data.batch_size=4"]
        run(dtrain, *ends, *quick, "--set", "train.last_step=3", *small, "--set", "train.checkpoint_dir=run",
            "--set", f"data.{part}.take={ROWS}" if part == "eval" else "seed=1", *self.more(spec), path.name, cwd=folder)
        source = spec["data"]["train"]
        file = source.get("file", source.get("features", "")).replace("*", "0")
        self.file = file
        self.data_words = [f"--data={file}"] if part == "train" and file else []
        self.outputs = [name for node in comparisons(spec) for name in node["inputs"]]
        self.wanted = self.predict("wanted.npy", *(f"--outputs={name}" for name in self.outputs))
        self.columns = [one for column in spec["data"].get("columns", []) for one in each_of(defined(column, spec))]

    @staticmethod
    def more(spec):
        return [word for key in ("evaluate_every_steps", "evaluate_every_secs", "summary_dir", "publish", "towers") if key in spec["train"]
                for word in ("--set", f"train.{key}=null")]

    def predict(self, out, *words):
        run(self.dtrain, "predict", "--checkpoint=run", f"--out={out}", *self.sets, *self.data_words, *words, self.name, cwd=self.folder)
        if out.endswith(".npy"):
            said = np.load(self.folder / out)
            return said.reshape(len(said), -1)
        return [json.loads(line) for line in (self.folder / out).read_text().splitlines()]

    def place_of(self, output):
        """TensorFlow sorts outputs by name, and predict has them as the spec has its heads."""
        names = self.outputs or [head["name"] for head in self.heads]
        return names.index(output.split("/")[0]) if names else 0

    def export(self, form, *words):
        run(self.dtrain, "export", "--checkpoint=run", f"--format={form}", f"--out={form}", *words, *self.sets, self.name, cwd=self.folder)
        return self.folder / form

    def cells(self, names):
        """Texts as they stand in the file, of JSON lines their values"""
        rows = [{} for _ in range(len(self.wanted))]
        if self.data["train"]["format"] == "jsonl":
            lines = (self.folder / self.file).read_text().splitlines()[:len(rows)]
            return [{name: json.loads(line).get(name) for name in names} for line in lines]
        for at in range(0, len(names), 60):
            some = self.predict("cells.jsonl", *(f"--with={name}" for name in names[at:at + 60]))
            for row, more in zip(rows, some):
                row |= {name: value for name, value in more.items() if name in names}
        if self.data["train"]["format"] == "libsvm":
            for row in rows:
                row["features"] = re.sub(r"(\d+):", lambda index: f"{int(index[1]) - 1}:", row["features"])
        return rows

    def features(self):
        """Numbers as they are stored: what the node behind the input has, without its scale"""
        if self.words:
            return self.ids_of_words()
        read = self.predict("features.npy", "--outputs=as_read").astype(np.float64)
        return np.round((read - self.data.get("offset", 0)) / self.data.get("scale", 1), 3)

    def ids_of_words(self):
        """Which row of its table each word has"""
        run(self.dtrain, "checkpoint", "rows", "run", f"{self.words}/embedding_weights", "table.csv", cwd=self.folder)
        table = np.loadtxt(self.folder / "table.csv", delimiter=",", skiprows=1)
        rows = self.predict("features.npy", f"--outputs={self.words}")
        return np.array([[table[np.argmin(np.abs(table[:, 1:] - row).sum(axis=1)), 0]] for row in rows])

    def difference(self, said):
        said = np.asarray(said, np.float32).reshape(len(self.wanted), -1)
        if said.shape != self.wanted.shape:
            raise ValueError(f"{said.shape} for {self.wanted.shape}")
        return float(np.max(np.abs(said - self.wanted) / np.maximum(1, np.abs(self.wanted))))

    # ---- HTTP ----

    def serve(self):
        """The largest difference of all forms of an answer"""
        ready = self.folder / "ready"
        with open(self.folder / "serve.log", "w", encoding="utf-8") as log:
            words = ["serve", "--checkpoint=run", "--port=0", "--ready_file=ready", "--model_name=model", *self.sets, self.name]
            with subprocess.Popen([self.dtrain, *words], cwd=self.folder, stdout=log, stderr=log) as server:
                try:
                    until = time.monotonic() + LIMIT_S
                    while not ready.exists() and server.poll() is None and time.monotonic() < until:
                        time.sleep(0.05)
                    if not ready.exists():
                        raise Refused((self.folder / "serve.log").read_text().strip()[-1500:])
                    return self.answers(json.loads(ready.read_text())["http_port"])
                finally:
                    server.terminate()

    def answers(self, port):
        def post(verb, body):
            asked = urllib.request.Request(f"http://127.0.0.1:{port}/v1/models/model:{verb}", json.dumps(body).encode())
            try:
                with urllib.request.urlopen(asked, timeout=LIMIT_S) as answer:
                    return json.load(answer)
            except urllib.error.HTTPError as why:
                raise Refused(f"{verb}: {json.load(why)['error']}") from None

        if self.data["train"]["format"] == "tfrecord":
            raise Refused("bytes of files are sent by a test of images")
        cells = sorted({source for column in self.columns if column["column"] != "crossed" for source in [column.get("source", column["name"])]} |
                       {key for column in self.columns if column["column"] == "crossed" for key in column["keys"]
                        if key not in [other["name"] for other in self.columns]})
        rows = self.cells(cells) if self.columns else self.features().tolist()
        said = self.numbers(post("predict", {"instances": rows})["predictions"])
        if self.columns:
            columnar = post("predict", {"inputs": {name: [row[name] for row in rows] for name in cells}})["outputs"]
        else:
            columnar = post("predict", {"inputs": rows})["outputs"]
        if isinstance(columnar, dict):
            columnar = [dict(zip(columnar, row)) for row in zip(*columnar.values())]
        if not np.array_equal(self.numbers(columnar), said):
            raise ValueError("rows and columns differ")
        examples = rows if self.columns else [{"features": row} for row in rows]
        for verb in ("classify", "regress"):
            try:
                self.hold(verb, post(verb, {"examples": examples})["results"], said)
            except Refused as why:
                if not re.search("has no classes|numbers of a row, not one", str(why)):
                    raise
        return said

    @staticmethod
    def numbers(predictions):
        """Of each row, heads as the spec has them, without classes"""
        def flat(value):
            return [value] if not isinstance(value, list) else [x for one in value for x in flat(one)]
        return np.array([[x for name, value in (row.items() if isinstance(row, dict) else [("", row)])
                          if name.rsplit("/", 1)[-1] != "class" for x in flat(value)] for row in predictions], np.float32)

    @staticmethod
    def hold(verb, results, said):
        """Scores of classes, of one probability that of no before it; or one of a row's numbers"""
        for result, row in zip(results, said, strict=True):
            got = [result] if verb == "regress" else [score for _, score in result]
            if len(got) == 2 and abs(sum(got) - 1) < NEAR:
                got = got[1:]
            if not all(np.min(np.abs(row - x)) < NEAR for x in got):
                raise ValueError(f"{verb} says {got}, predict {list(row)}")

    # ---- formats ----

    def between(self, cell):
        """Of the values of a list"""
        column = next(column for column in self.columns if column.get("source", column["name"]) == cell)
        return column.get("separator", "\t" if column["column"] in ("hash", "vocabulary") else " ")

    def c(self):
        folder = self.export("c", *([] if self.name == OPTIMIZED else ["--tables_beside=true"]))
        (header,) = folder.glob("*.h")
        text, name = header.read_text(), header.stem
        members = re.findall(r'const char \*(\w+); /\* the text of the cell "(.*)"; empty', text)
        if members:
            rows = self.cells([cell for _, cell in members])
            put = ", ".join("{" + ", ".join(quoted(row[cell], self.between(cell)) for _, cell in members) + "}" for row in rows)
        else:
            put = ", ".join("{{" + ", ".join(repr(float(x)) for x in row) + "}}" for row in self.features())
        is_beside = (folder / f"{name}.weights").exists()
        main = MAIN.replace("OPEN", 'if (NAME_open("NAME.weights")) return 1;' if is_beside else "")
        (folder / "main.c").write_text(main.replace("NAME", name).replace("ROWS}", put + "}"))
        run("cc", "-O2" if self.name == OPTIMIZED else "-O0", "-std=c11", "-o", "main", "main.c", f"{name}.c", "-lm", cwd=folder)
        return np.frombuffer(run("./main", cwd=folder), np.float32)

    def saved_model(self):
        import tensorflow as tf  # pylint: disable=import-outside-toplevel
        (folder,) = self.export("saved_model").iterdir()
        loaded = tf.saved_model.load(str(folder))
        serve = loaded.signatures["serving_default"]
        inputs = serve.structured_input_signature[1]
        fed = {}
        if self.columns:
            rows = self.cells(list(inputs))
            fed = {name: tf.constant(tf_values([row[name] for row in rows], spec, tf), spec.dtype) for name, spec in inputs.items()}
        else:
            (name, spec), = inputs.items()
            fed[name] = tf.constant(self.features().reshape([-1, *spec.shape[1:]]), spec.dtype)
        said = serve(**fed)
        return np.concatenate([np.asarray(said[name]).reshape(len(self.wanted), -1) for name in sorted(said, key=self.place_of)], axis=1)

    def without_missing(self, cell):
        missing = self.data["train"].get("missing") or []
        if isinstance(cell, list):
            return [one for one in cell if one not in missing]
        return "" if cell in missing else cell

    def onnx(self):
        import onnx  # pylint: disable=import-outside-toplevel
        import onnxruntime  # pylint: disable=import-outside-toplevel
        (path,) = self.export("onnx").glob("*.onnx")
        onnx.checker.check_model(str(path), full_check=True)
        session = onnxruntime.InferenceSession(str(path))
        columns = {column["name"]: column for column in self.columns}
        fed = {}
        if not self.columns:
            for given in session.get_inputs():
                kind = {"tensor(float)": np.float32, "tensor(int64)": np.int64, "tensor(double)": np.float64}[given.type]
                fed[given.name] = self.features().reshape([-1, *given.shape[1:]]).astype(kind)
        else:
            names = sorted({source for column in self.columns if column["column"] != "crossed" for source in [column.get("source", column["name"])]})
            rows = [{name: self.without_missing(cell) for name, cell in row.items()} for row in self.cells(names)]
            for given in session.get_inputs():
                kind = {"tensor(float)": np.float32, "tensor(int64)": np.int64, "tensor(double)": np.float64}[given.type]
                name, _, weights = given.name.partition("/")
                column, width = columns[name], given.shape[1] if len(given.shape) > 1 else 1
                if column["column"] == "crossed":
                    raise Refused("crosses are the client's, and not made here")
                value = onnx_check.counted if weights else onnx_check.value_of
                fed[given.name] = np.array([value(column, values_of(column, row[column.get("source", name)]), width) for row in rows], kind)
        return np.concatenate([x.reshape(len(self.wanted), -1) for x in session.run(None, fed)], axis=1)


def values_of(column, cell):
    """A list that stands beside a prediction is one text, with blanks between its values."""
    return cell.split() if isinstance(cell, str) and column.get("max", 1) > 1 and "separator" not in column else cell


def defined(column, spec):
    """"$fields" is what the spec defines"""
    return {key: spec["define"][value[1:]] if isinstance(value, str) and value[:1] == "$" else value for key, value in column.items()}


def each_of(column):
    """{"name": "x{0..7}"} is eight of them"""
    stretch = re.search(r"\{(\d+)\.\.(\d+)\}", column["name"])
    if not stretch:
        return [column]
    return [{key: value.replace(stretch.group(), str(i)) if isinstance(value, str) else value for key, value in column.items()}
            for i in range(int(stretch.group(1)), int(stretch.group(2)) + 1)]


def quoted(cell, between=" "):
    return '"' + "".join(f"\\{byte:03o}" for byte in text_of(cell, between).encode()) + '"'


def text_of(cell, between=" "):
    if isinstance(cell, list):
        return between.join(str(x) for x in cell)
    return "" if cell is None else str(cell)


def tf_values(cells, spec, tf):
    if len(spec.shape) == 2:
        lists = [cell if isinstance(cell, list) else text_of(cell).split() for cell in cells]
        width = max(1, *(len(cell) for cell in lists))
        return [[*tf_values(cell, tf.TensorSpec([None], spec.dtype), tf), *[none_of(spec, tf)] * (width - len(cell))] for cell in lists]
    if spec.dtype == tf.string:
        return [text_of(cell).encode() for cell in cells]
    kind = onnx_check.whole_of if spec.dtype == tf.int64 else float
    return [none_of(spec, tf) if cell in (None, "") else kind(cell) for cell in cells]


def none_of(spec, tf):
    return b"" if spec.dtype == tf.string else -1 if spec.dtype == tf.int64 else float("nan")


def outcome(family, form):
    try:
        worst = family.difference(getattr(family, form)())
    except Refused as why:
        return f"refused: {why}", True
    except Exception as why:  # pylint: disable=broad-except
        return f"FAILED: {type(why).__name__}: {str(why).splitlines()[0] if str(why) else ''}", False
    return f"{worst:.1e}" + ("" if worst < NEAR else " DIFFERS"), worst < NEAR


def main():
    dtrain, *paths = sys.argv[1:]
    is_right = True
    for path in [pathlib.Path(path).resolve() for path in paths] or sorted(EXAMPLES.glob("*.json")) + sorted((EXAMPLES / "programs").glob("*.json")):
        with tempfile.TemporaryDirectory() as folder:
            try:
                family = Family(str(pathlib.Path(dtrain).resolve()), path, pathlib.Path(folder))
            except (Refused, KeyError, subprocess.TimeoutExpired) as why:
                if "classes for each of several places" in str(why):
                    print(f"{path.name:36} has no predictions of rows to compare with", flush=True)
                    continue
                print(f"{path.name:36} NOT TRAINED: {why}", flush=True)
                is_right = False
                continue
            for form in ("serve", "c", "saved_model", "onnx"):
                text, is_fine = outcome(family, form)
                is_right &= is_fine
                print(f"{path.name:36} {form:12} {text}", flush=True)
    sys.exit(not is_right)


if __name__ == "__main__":
    main()
