"""Columns of images: PNG files and bare pixels in TFRecords make the numbers that the same pixels make as CIFAR-10's records."""
import base64
import json
import random
import struct
import subprocess
import zlib

import made
import program
import tool
from export_test import CC
from made import field, varint
from serve_test import NOT_BUILT_IN, Server

ROWS, SIDE, STEPS, BATCH = 60, 8, 12, 10


def record(cells):
    """A tf.Example of bytes and whole numbers, framed."""
    return made.record({name: field(1, field(1, cell)) if isinstance(cell, bytes) else field(3, field(1, varint(cell)))
                        for name, cell in cells.items()})


def png(pixels, y, x, channels=3):
    """Bytes as [y, x, channel]."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = b"".join(b"\0" + pixels[i * x * channels:(i + 1) * x * channels] for i in range(y))
    head = struct.pack(">IIBBBBB", x, y, 8, 2 if channels == 3 else 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def spec(train, columns, **more):
    name = "image" if columns else "features"
    return {"name": "images", "seed": 3,
            "data": {"train": train, "eval": train, "columns": columns, "batch_size": BATCH, "shuffle": True},
            "model": [{"op": "scale", "inputs": [name], "factor": 0.01, "offset": -1.0}, {"op": "conv2d", "name": "c", "filters": 4, "kernel_size": 3, "activation": "relu"},
                      {"op": "flatten"}, {"op": "dense", "name": "logits", "units": 3}],
            "loss": "softmax_cross_entropy", "metrics": ["accuracy"], "optimizer": {"type": "adam", "learning_rate": 0.01},
            "train": {"mode": "sync", "last_step": STEPS, "checkpoint_dir": "run", "log_every_steps": 1}, **more}


MAIN = """#include <stdio.h>
#include "images.h"
int main(void)
{
    const images_row rows[4] = {%s}, none = {0};
    float said[images_OUTPUTS];
    for (int i = 0; i < 4; i++) {
        images_predict(&rows[i], said);
        for (int k = 0; k < images_OUTPUTS; k++) printf("%%.9g ", said[k]);
        printf("\\n");
    }
    puts(images_bad_cell(&none));
    return 0;
}
"""
COLUMN = {"column": "image", "name": "image", "source": "image/encoded", "size": SIDE}
RECORDS = {"format": "tfrecord", "label": "image/class/label"}


def reads_png(case):
    return "libpng           not built in" not in case.dtrain("version").stdout


class Images(tool.ToolCase):
    environment, before = None, ()  # of its server

    def setUp(self):
        super().setUp()
        if not reads_png(self):
            self.skipTest("built without libpng")
        draw = random.Random(5)
        # Pixels that are blanks stand at both ends of some rows.
        self.images = [bytes(draw.choice([9, 32, 0, draw.randrange(256)]) for _ in range(SIDE * SIDE * 3)) for _ in range(ROWS)]
        self.labels = [draw.randrange(3) for _ in range(ROWS)]
        pairs = list(zip(self.images, self.labels, strict=True))
        (self.folder / "bare.bin").write_bytes(b"".join(bytes([label]) + image for image, label in pairs))
        self.write("files", [png(image, SIDE, SIDE) for image in self.images])
        self.write("raw", self.images)

    def write(self, name, cells):
        rows = [record({"image/encoded": cell, "image/class/label": label}) for cell, label in zip(cells, self.labels, strict=True)]
        (self.folder / name).write_bytes(b"".join(rows))

    def losses(self, told, *words):
        told["train"].pop("checkpoint_dir", None)
        (self.folder / "spec.json").write_text(json.dumps(told))
        ended = self.dtrain("--metrics_file=metrics", *words, "spec.json")
        self.assertEqual(ended.returncode, 0, ended.stdout + ended.stderr)
        return [json.loads(line)["loss"] for line in (self.folder / "metrics").read_text().splitlines()]

    def test_files_and_bare_pixels_make_the_same_curve(self):
        bare = self.losses(spec({"format": "records", "file": "bare.bin", "shape": [SIDE, SIDE, 3], "channels_first": False}, []))
        self.assertEqual(len(bare), STEPS)
        self.assertEqual(self.losses(spec({**RECORDS, "file": "files"}, [COLUMN])), bare)
        raw = spec({**RECORDS, "file": "raw"}, [{**COLUMN, "raw": True}])
        self.assertEqual(self.losses(raw), bare)
        self.assertEqual(self.losses(raw, "--local_ps=2", "--local_workers=1"), bare)
        self.assertEqual(self.losses(raw, "--set", "train.replication=in_graph", "--local_ps=1", "--local_workers=1"), bare)

    def test_a_stream_has_the_rows_of_memory(self):
        told = spec({**RECORDS, "file": "files"}, [COLUMN])
        told["data"]["shuffle"] = False
        memory = self.losses(told)
        self.assertEqual(self.losses(told, "--set", "data.train.stream=always"), memory)

    def test_what_is_no_image_names_its_row(self):
        told = spec({**RECORDS, "file": "files"}, [COLUMN])
        (self.folder / "spec.json").write_text(json.dumps(told))
        cells = [png(image, SIDE, SIDE) for image in self.images]
        for changed, words in [(cells[4][:-20], r'files: record 5.*: column "image" \(cell "image/encoded"\): PNG: '),
                               (b"BM what", "expected a JPEG or PNG file, got 7 bytes of something else"),
                               (png(self.images[4][:6 * 8 * 3], 6, 8), r'expected an image of 8 x 8 pixels, got 6 x 8 \("resize" says')]:
            self.write("files", cells[:4] + [changed] + cells[5:])
            self.assertRegex(self.refused(), words)
        ended = self.dtrain("--set", "data.train.bad_rows=1", "--set", "data.eval=null", "spec.json")
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertIn("1 of 60 rows are broken and left out", ended.stderr)
        self.assertEqual(len(self.losses(spec({**RECORDS, "file": "files"}, [{**COLUMN, "resize": "crop"}]))), STEPS)
        self.write("raw", [b"short", *self.images[1:]])
        (self.folder / "run").rename(self.folder / "run of files")  # whose features are others
        (self.folder / "spec.json").write_text(json.dumps(spec({**RECORDS, "file": "raw"}, [{**COLUMN, "raw": True}])))
        self.assertIn("expected 192 bytes for [8, 8, 3], got 5", self.refused())

    def refused(self):
        ended = self.dtrain("spec.json")
        self.assertEqual(ended.returncode, program.BAD_INPUT, ended.stdout + ended.stderr)
        return ended.stderr

    def test_a_model_predicts_serves_and_is_exported_to_read_pixels(self):
        for name, column, cells in [("files", COLUMN, [png(image, SIDE, SIDE) for image in self.images[:4]]),
                                    ("raw", {**COLUMN, "raw": True}, self.images[:4])]:
            (self.folder / "spec.json").write_text(json.dumps(spec({**RECORDS, "file": name}, [column])))
            ended = self.dtrain(f"--checkpoint_dir={name}_run", "spec.json")
            self.assertEqual(ended.returncode, 0, ended.stdout + ended.stderr)
            rows = self.run_ok("predict", f"--checkpoint={name}_run", f"--data={name}", "--out=-", "spec.json").splitlines()[1:5]
            wanted = [[float(value) for value in row.split(",")[2:]] for row in rows]
            for got, row in zip(self.served(f"{name}_run", cells), wanted, strict=True):
                for a, b in zip(got["probabilities"], row, strict=True):
                    self.assertAlmostEqual(a, b, delta=1e-5)
            for form in ("onnx", "saved_model"):
                told = self.run_ok("export", f"--checkpoint={name}_run", f"--format={form}", f"--out={name}_{form}", "spec.json")
                self.assertIn('of "image" the pixels are given, [8, 8, 3] from 0 to 255\n', told)
            for said, row in zip(self.compiled(name), wanted, strict=True):
                for a, b in zip(said, row, strict=True):
                    self.assertAlmostEqual(a, b, delta=1e-5)

    def test_a_cell_of_an_export_is_not_called_as_its_image(self):
        column = {"column": "hash", "name": "file", "source": "image", "buckets": 9}
        told = spec({**RECORDS, "file": "named"}, [COLUMN, column])
        told["model"] = [*told["model"][:-1], {"op": "embedding", "name": "e", "inputs": ["file"], "dimension": 2},
                         {"op": "concat", "inputs": ["flatten", "e"]}, told["model"][-1]]
        rows = [record({"image/encoded": png(image, SIDE, SIDE), "image": b"x", "image/class/label": label})
                for image, label in zip(self.images, self.labels, strict=True)]
        (self.folder / "named").write_bytes(b"".join(rows))
        (self.folder / "spec.json").write_text(json.dumps(told))
        self.assertEqual(self.dtrain("spec.json").returncode, 0)
        self.assertIn('column "file" (hash) cannot be exported: its cell has the name of a column of images',
                      self.run_bad("export", "--checkpoint=run", "--format=c", "--out=c", "spec.json"))

    def compiled(self, name):
        """What the exported source says of the first four images; without pixels a row is bad"""
        self.run_ok("export", f"--checkpoint={name}_run", "--format=c", f"--out={name}_c", "spec.json")
        folder = self.folder / f"{name}_c"
        rows = ", ".join("{.image = (const unsigned char[]){" + ", ".join(map(str, image)) + "}}" for image in self.images[:4])
        (folder / "main.c").write_text(MAIN % rows)
        subprocess.run([*CC, "-std=c11", "-Wall", "-Wextra", "-Werror", "-o", "main", "main.c", "images.c", "-lm"], cwd=folder, check=True)
        told = subprocess.run(["./main"], cwd=folder, check=True, capture_output=True, text=True).stdout.splitlines()
        self.assertEqual(told.pop(), "image")
        return [[float(word) for word in line.split()] for line in told]

    def test_a_few_bytes_of_a_client_are_no_large_images(self):
        """Of one colour they are a thousand times smaller; and what stands in a context is of every row."""
        told = {**spec({**RECORDS, "file": "files"}, [{**COLUMN, "resize": "stretch"}])}
        (self.folder / "spec.json").write_text(json.dumps(told))
        self.assertEqual(self.dtrain("--checkpoint_dir=run", "spec.json").returncode, 0)
        server = self.serve("run")
        cell = lambda side: {"image/encoded": {"b64": base64.b64encode(png(bytes(side * side), side, side, 1)).decode()}}  # noqa: E731
        self.assertEqual(server.post("predict", {"instances": [cell(1000)]}, "images")[0], 200)
        for asked in (("predict", {"instances": [cell(2000)] * 30}), ("classify", {"context": cell(1000), "examples": [{}] * 4000})):
            status, said = server.post(*asked, "images")
            self.assertEqual(status, 400, said)
            self.assertRegex(said["error"], r'instances: row \d+: .*"image".*PNG: \d+ x \d+ pixels, where \d+ are left')
        self.assertEqual(server.end(), 0)

    def serve(self, checkpoint):
        if NOT_BUILT_IN in self.dtrain("version").stdout:
            self.skipTest("this build has no libmicrohttpd")
        return Server(self, "spec.json", f"--checkpoint={checkpoint}")

    def served(self, checkpoint, cells):
        server = self.serve(checkpoint)
        rows = [{"image/encoded": {"b64": base64.b64encode(cell).decode()}} for cell in cells]
        status, said = server.post("predict", {"instances": rows}, "images")
        self.assertEqual(status, 200, said)
        self.assertEqual(server.end(), 0)
        return said["predictions"]


if __name__ == "__main__":
    program.main()
