"""Data from URLs are kept on this host: what is kept is what lies there, whole, and no more than was said."""
import concurrent.futures
import json
import random

import program
import read_test

MEGABYTE = 1 << 20


def wide_rows(seed=1):
    """3 MB of rows with a long word each, which is read faster than many numbers."""
    drawn = random.Random(seed)
    lines = (f"{drawn.random():.6f},{drawn.choice('rgb') * 3000},{drawn.randrange(2)}\n" for _ in range(1100))
    return ("x,word,y\n" + "".join(lines)).encode()


class Cache(read_test.UrlCase):
    def setUp(self):
        super().setUp()
        self.served = self.serve()
        self.table = wide_rows()
        self.put("rows.csv", self.table)
        self.kept = self.folder / "kept"
        self.expected = self.stats(self.served)

    def put(self, name, content):
        self.served.files["/d/" + name] = content
        (self.folder / name).write_bytes(content)

    def read(self, *words, name="rows.csv"):
        """What is said of the rows by way of the cache."""
        self.served.asked.clear()
        return self.stats(self.served, read_test.data(f"{self.served.url}/d/{name}"),
                          words=[f"--cache_dir={self.kept}", *words])

    def assert_only_looked(self):
        """A file was opened, and no more of it was read than that takes."""
        self.assertEqual({range_ for _, _, range_ in self.served.asked}, {"bytes=0-65535"})

    def pieces(self):
        return sorted(self.kept.iterdir())

    def test_what_was_read_is_not_read_again(self):
        self.assertEqual(self.read(), self.expected)
        self.assertEqual(len(self.pieces()), 4)
        self.assertEqual(self.read(), self.expected)
        self.assert_only_looked()

    def test_another_state_of_the_file_is_read(self):
        self.read()
        self.put("rows.csv", wide_rows(seed=2))
        expected = self.stats(self.served)
        self.assertNotEqual(expected, self.expected)
        self.assertEqual(self.read(), expected)

    def test_what_is_broken_or_another_s_is_read_again(self):
        self.read()
        first, second, third, last = self.pieces()
        content = bytearray(first.read_bytes())
        content[1000] ^= 1
        first.write_bytes(content)
        second.write_bytes(second.read_bytes()[:-1])
        third.write_bytes(last.read_bytes())
        last.write_bytes(b"")
        self.assertEqual(self.read(), self.expected)
        self.assertGreater(len(self.served.asked), 3)
        self.assertEqual(self.read(), self.expected)
        self.assert_only_looked()

    def test_several_tasks_share_it(self):
        spec = {**read_test.SPEC, **read_test.data(self.served.url + "/d/rows.csv")}
        (self.folder / "spec.json").write_text(json.dumps(spec))
        words = ["stats", "--json", f"--cache_dir={self.kept}", "spec.json"]
        with concurrent.futures.ThreadPoolExecutor() as pool:
            tasks = [pool.submit(program.run, words, self.folder, self.env(self.served)) for _ in range(4)]
        self.assertEqual([json.loads(task.result().stdout)["cells"] for task in tasks], [self.expected["cells"]] * 4)
        self.assertEqual(len(self.pieces()), 4)
        self.assertEqual(self.read(), self.expected)
        self.assert_only_looked()

    def test_it_stays_as_small_as_was_said(self):
        for name in ("a.csv", "b.csv", "c.csv"):
            self.put(name, wide_rows(seed=ord(name[0])))
            expected = self.stats(self.served, read_test.data(name))
            self.assertEqual(self.read("--cache_mb=4", name=name), expected)
            self.assertLessEqual(sum(path.stat().st_size for path in self.pieces()), 4 * MEGABYTE)
        (self.kept / "mine").write_bytes(b"x" * MEGABYTE)
        self.read("--cache_mb=1")
        self.assertTrue((self.kept / "mine").exists())
        self.assertLessEqual(sum(path.stat().st_size for path in self.pieces()), 2 * MEGABYTE)

    def test_what_has_no_state_is_not_kept(self):
        self.served.has_tags = False
        self.assertEqual(self.read(), self.expected)
        self.assertEqual(self.pieces(), [])

    def test_a_stream_is_what_it_is_without(self):
        stream = {"data.train.stream": "always", "data.train.shuffle_rows": 2000, "data.train.readers": 3}
        expected = self.train(self.served, stream)
        stream["data.train.file"] = self.served.url + "/d/rows.csv"
        for _ in range(2):
            self.served.asked.clear()
            self.assertEqual(self.train(self.served, stream, words=[f"--cache_dir={self.kept}"]), expected)
        self.assert_only_looked()

    def test_a_folder_that_cannot_be_made_is_named(self):
        for folder, told in (("none/deeper", "cannot be made: No such file or directory"),
                             ("s3://bucket/deeper", "expected a folder of this host")):
            done = program.run(["stats", f"--cache_dir={folder}", "spec.json"], self.folder)
            self.assertEqual(done.returncode, program.BAD_INPUT)
            self.assertIn(f"cache_dir: {folder}: {told}", done.stderr)


if __name__ == "__main__":
    program.main()
