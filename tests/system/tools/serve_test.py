"""dtrain serve: TensorFlow Serving's REST interface; the same numbers as `dtrain predict`, whatever clients send."""
import base64
import contextlib
import gzip
import http.client
import json
import os
import random
import re
import resource
import signal
import socket
import struct
import subprocess
import threading
import unittest

import made
import model
import program
from made import FLOAT, INT64
from program import asking

NOT_BUILT_IN = "libmicrohttpd    not built in"
BATCH = 64  # rows of a batch, of both commands, so that all bits are the same
LARGEST = 8 << 20  # bytes of a body
# No thread starts while a file is there.
SHIM = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *context)
{
    static int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    if (!real) *(void **)&real = dlsym(RTLD_NEXT, "pthread_create");
    static int begun;
    int most = 0;
    FILE *full = fopen("FULL", "r");
    if (full && fscanf(full, "%d", &most) != 1) most = 0;
    const int can_begin = !full || begun < most;
    if (full) fclose(full);
    begun++;
    return can_begin ? real(thread, attributes, run, context) : EAGAIN;
}
"""


class Server:
    """The process, and requests to it."""

    def __init__(self, case, *words):
        self.ready = case.folder / "ready.json"
        self.ready.unlink(missing_ok=True)
        self.log = (case.folder / "serve.log").open("w+", encoding="utf-8")
        command = [*case.before, program.BINARY, "serve", "--port=0", f"--ready_file={self.ready}", *map(str, words)]
        self.process = subprocess.Popen(command, cwd=case.folder, env=program.environment(case.environment), stdin=subprocess.DEVNULL,
                                        stdout=self.log, stderr=self.log)
        case.addCleanup(self.kill)
        program.wait_until(lambda: self.ready.exists() or self.process.poll() is not None, self.story)
        if self.process.poll() is not None:
            raise AssertionError(self.story())
        self.port = json.loads(self.ready.read_text())["http_port"]

    def story(self):
        with open(self.log.name, encoding="utf-8") as file:
            return file.read()

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.log.close()

    def end(self):
        """By SIGTERM; the exit code"""
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(program.LIMIT_S)
        program.no_crash(code, self.story())
        return code

    def connect(self):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=program.LIMIT_S)

    def ask(self, method, path, body=None, connection=None, **headers):
        """Status and what was answered, as JSON where it is."""
        with contextlib.closing(connection or self.connect()) if not connection else contextlib.nullcontext(connection) as c:
            c.request(method, path, body if isinstance(body, (bytes, str, type(None))) else json.dumps(body),
                      {name.replace("_", "-"): value for name, value in headers.items()})
            answer = c.getresponse()
            text = answer.read().decode()
            is_json = answer.headers["Content-Type"] == "application/json"
            return answer.status, json.loads(text) if is_json else text

    def post(self, verb, body, name="small", connection=None):
        return self.ask("POST", f"/v1/models/{name}:{verb}", body, connection)


class Serving(model.ModelCase):
    environment = None
    before = ()

    def setUp(self):
        super().setUp()
        if NOT_BUILT_IN in program.run(["version"], None).stdout:
            self.skipTest("this build has no libmicrohttpd")

    def serve(self, *words):
        return Server(self, *words)

    def serve_small(self, *words):
        return self.serve("spec.json", "--checkpoint=run", "--poll_secs=0.05", *words)

    def predict(self, spec, *words):
        """What the other command says of the rows of data.eval."""
        self.run_ok("predict", spec, "--out=out.jsonl", f"--set=data.eval_batch_size={BATCH}", *words)
        return [json.loads(line) for line in (self.folder / "out.jsonl").read_text().splitlines()]

    def write_files(self, step, bias):
        tensors = {"out/kernel": (FLOAT, [2, 3], sum(model.KERNEL, [])), "out/bias": (FLOAT, [3], bias),
                   "global_step": (INT64, [], [step])}
        made.write_bundle(self.folder / "run" / f"model.ckpt-{step}", tensors)

    def publish(self, step):
        new = self.folder / "run" / "new"
        new.mkdir(exist_ok=True)
        made.write_state(new, f"model.ckpt-{step}")
        os.rename(new / "checkpoint", self.folder / "run" / "checkpoint")

    def write_version(self, step, bias):
        """As a run publishes it."""
        self.write_files(step, bias)
        self.publish(step)

    def wait_for_version(self, server, step):
        program.wait_until(lambda: server.ask("GET", f"/v1/models/small/versions/{step}")[0] == 200, server.story)

    def assert_no_base64(self, server, model, **more):
        status, said = server.post("predict", {"instances": [{"b64": "!!!"}], **more}, model)
        self.assertEqual(status, 400, said)
        self.assertIn('instances: row 1: {"b64": "!!!"}: no base64', said["error"])


class Interface(Serving):
    def test_rows_and_columns(self):
        server = self.serve_small()
        wanted = [{key: line[key] for key in ("class", "probabilities")} for line in self.predict("spec.json", "--checkpoint=run")]
        for row, one in zip(model.ROWS, wanted):
            for name, probability in zip(range(3), one["probabilities"]):
                self.assertAlmostEqual(model.softmax(row)[name], probability, delta=1e-6)
        forms = [model.ROWS, [{"features": row} for row in model.ROWS], [[[x] for x in row] for row in model.ROWS],
                 [{"b": b, "a": a} for a, b in model.ROWS], [{"a": a, "b": [b], "y": 1} for a, b in model.ROWS]]
        for rows in forms:
            with self.subTest(rows=rows[0]):
                self.assertEqual(server.post("predict", {"instances": rows, "signature_name": "serving_default"}),
                                 (200, {"predictions": wanted}))
        columns = {"class": [one["class"] for one in wanted], "probabilities": [one["probabilities"] for one in wanted]}
        a, b = zip(*model.ROWS)
        for inputs in (model.ROWS, {"features": model.ROWS}, {"b": b, "a": a}, {"a": [[x] for x in a], "b": b}):
            with self.subTest(inputs=str(inputs)):
                self.assertEqual(server.post("predict", {"inputs": inputs}), (200, {"outputs": columns}))
        results = [[[str(k), p] for k, p in enumerate(one["probabilities"])] for one in wanted]
        self.assertEqual(server.post("classify", {"examples": [{"a": a, "b": b} for a, b in model.ROWS]}),
                         (200, {"results": results}))
        same = server.post("classify", {"context": {"a": 1.0}, "examples": [{"b": 2.0}]})
        self.assertEqual(same, (200, {"results": results[1:2]}))
        self.assertEqual(server.post("regress", {"examples": [{"a": 1, "b": 2}]})[0], 400)
        path = f"/v1/models/small/versions/{model.STEP}:predict"
        self.assertEqual(server.ask("POST", path, {"instances": model.ROWS}), (200, {"predictions": wanted}))

    def test_what_there_is(self):
        server = self.serve_small()
        version = {"version": str(model.STEP), "state": "AVAILABLE", "status": {"error_code": "OK", "error_message": ""}}
        for path in ("/v1/models/small", f"/v1/models/small/versions/{model.STEP}"):
            self.assertEqual(server.ask("GET", path), (200, {"model_version_status": [version]}))
        status, said = server.ask("GET", "/v1/models/small/metadata")
        self.assertEqual((status, said["model_spec"]["version"]), (200, str(model.STEP)))
        signature = said["metadata"]["signature_def"]["signature_def"]["serving_default"]
        self.assertEqual(signature["inputs"]["features"]["dtype"], "DT_FLOAT")
        self.assertEqual([dim["size"] for dim in signature["inputs"]["features"]["tensor_shape"]["dim"]], ["-1", "2"])
        self.assertEqual(set(signature["outputs"]), {"class", "probabilities"})
        self.assertEqual(server.ask("GET", "/healthz"), (200, "ok\n"))
        self.assertEqual(server.ask("GET", "/readyz"), (200, "ready\n"))
        server.post("predict", {"instances": model.ROWS})
        said = server.ask("GET", "/metrics")[1]
        self.assertIn('dtrain_serve_requests_total{answer="ok"} 1\n', said)
        self.assertIn(f"dtrain_serve_rows_total {len(model.ROWS)}\n", said)
        self.assertIn(f"dtrain_serve_version {model.STEP}\n", said)
        self.assertEqual(server.end(), 0)
        self.assertFalse(server.ready.exists())

    def test_what_there_is_not(self):
        server = self.serve_small("--model_name=other")
        rows = {"instances": model.ROWS}
        for method, path, body, status, text in [
                ("GET", "/v1/models/small", None, 404, "Could not find any versions of model small"),
                ("GET", "/v1/models/other/versions/8", None, 404, "Could not find version 8 of model other"),
                ("POST", "/v1/models/small:predict", rows, 404, "Servable not found for request: Latest(small)"),
                ("POST", "/v1/models/other/versions/8:predict", rows, 404,
                 "Servable not found for request: Specific(other, 8)"),
                ("GET", "/v1/models/small/metadata", None, 404, "Servable not found for request: Latest(small)"),
                ("GET", "/v1/models/", None, 400, "Malformed request: GET /v1/models/"),
                ("GET", "/v1/models", None, 400, "Missing model name in request"),
                ("POST", "/v1/models/other:predict", {**rows, "signature_name": "predict"}, 400,
                 'Serving signature name: "predict" not found in signature def: there is only "serving_default"'),
                ("POST", "/v1/models/other:predict", {**rows, "signature_name": 3}, 400, "signature_name: expected a word, got a number"),
                ("POST", "/v1/models/other:classify", {}, 400, 'the body: expected "examples", got none'),
                ("POST", "/v1/models/other:predict", {}, 400, 'the body: expected "instances" or "inputs", got neither'),
                ("GET", "/v1/models/other/versions/x", None, 400, "Malformed request"),
                ("GET", "/v1/models/other/versions/99999999999999999999", None, 400, "Malformed request"),
                ("POST", "/v1/models/other:reclassify", rows, 400, "Malformed request"),
                ("GET", "/v1/models/other:predict", None, 405, "Method Not Allowed"),
                ("POST", "/v1/models/other", rows, 405, "Method Not Allowed"),
                ("POST", "/metrics", rows, 405, "Method Not Allowed"),
                ("DELETE", "/v1/models/other", None, 405, "GET, HEAD and POST only"),
                ("GET", "/v2/models/other", None, 404, "there are /v1/models/NAME")]:
            with self.subTest(method=method, path=path):
                got, said = server.ask(method, path, body)
                self.assertEqual(got, status, said)
                self.assertIn(text, said["error"])

    def test_several_models(self):
        self.write_spec(model.spec(loss={"op": "mean_squared_error"}, model=[{"op": "dense", "name": "out", "units": 1}],
                                   metrics=[]), "sum.json")
        (self.folder / "other").mkdir()
        made.write_bundle(self.folder / "other/model.ckpt-3", {
            "out/kernel": (FLOAT, [2, 1], [0.5, 2.0]), "out/bias": (FLOAT, [1], [0.25]), "global_step": (INT64, [], [3])})
        made.write_state(self.folder / "other", "model.ckpt-3")
        models = [{"name": "small", "spec": "spec.json", "checkpoint": "run"},
                  {"name": "sum", "spec": "sum.json", "checkpoint": "other", "set": ["name=unread"]}]
        (self.folder / "models").mkdir()
        (self.folder / "models/all.json").write_text(json.dumps(
            {"models": [{**one, **{key: f"../{one[key]}" for key in ("spec", "checkpoint")}} for one in models]}))
        server = self.serve("--models=models/all.json", "--poll_secs=0.05")
        self.assertEqual(server.post("predict", {"instances": [[1, 2]]}, "sum"), (200, {"predictions": [[4.75]]}))
        self.assertEqual(server.post("predict", {"instances": model.ROWS})[0], 200)
        self.assertEqual(server.ask("GET", "/v1/models/sum/versions/3")[0], 200)
        self.assertEqual(server.post("predict", {"instances": [[1, 2]]}, "unread")[0], 404)
        said = server.ask("GET", "/metrics")[1]
        for line in ('requests_total{model="sum",answer="ok"} 1', 'requests_total{model="small",answer="ok"} 1',
                     f'rows_total{{model="small"}} {len(model.ROWS)}', 'version{model="sum"} 3'):
            self.assertIn(f"dtrain_serve_{line}\n", said)
        self.assertEqual(said.count("# TYPE dtrain_serve_version gauge\n"), 1)
        made.write_bundle(self.folder / "other/model.ckpt-4", {"out/kernel": (FLOAT, [3], [1.0] * 3), "global_step": (INT64, [], [4])})
        made.write_state(self.folder / "other", "model.ckpt-4")
        program.wait_until(lambda: 'dtrain_serve_versions_failed_total{model="sum"} 1\n' in server.ask("GET", "/metrics")[1],
                           server.story)
        self.write_version(9, [0.0, 0.0, 0.0])
        self.wait_for_version(server, 9)
        self.assertEqual(server.post("predict", {"instances": [[1, 2]]}, "sum"), (200, {"predictions": [[4.75]]}))
        self.assertIn('dtrain_serve_versions_failed_total{model="small"} 0\n', server.ask("GET", "/metrics")[1])
        self.assertEqual(server.end(), 0)
        for text, told in [('{"models": []}', "expected one model or more"), ("{", "line 1"),
                           (json.dumps({"models": [models[0], models[0]]}), 'models[1].name: models[0] is "small", too'),
                           (json.dumps({"models": [{**models[0], "name": "a/b"}]}), 'models[0].name: "a/b" cannot stand in'),
                           (json.dumps({"models": [{**models[0], "name": "a\nb"}]}), "cannot stand in"),
                           (json.dumps({"models": [{**models[0], "name": "a" * 128}]}), "is too long"),
                           (json.dumps({"models": [{**models[0], "spec": "-"}]}), "models[0].spec: it is read again"),
                           (json.dumps({"models": [{**models[0], "name": f"m{k}"} for k in range(65)]}), "64"),
                           (json.dumps({"models": [models[0], {**models[1], "checkpoint": "absent"}]}), 'model "sum"')]:
            with self.subTest(text=text):
                (self.folder / "all.json").write_text(text)
                ended = self.dtrain("serve", "--models=all.json", "--port=0", f"--ready_file={self.folder}/r")
                self.assertEqual(ended.returncode, 2, ended.stderr)
                self.assertIn(told, ended.stderr)

    def test_versions_with_labels(self):
        """Two of one model at a time: the newest, and one that stays."""
        for step, bias in ((1, 0.0), (2, 1.0)):
            made.write_bundle(self.folder / f"run/model.ckpt-{step}", {
                "out/kernel": (FLOAT, [2, 3], [0.0] * 6), "out/bias": (FLOAT, [3], [bias, 0, 0]), "global_step": (INT64, [], [step])})
        made.write_state(self.folder / "run", "model.ckpt-1", "model.ckpt-2")
        labels = [{"label": "stable", "checkpoint": "run/model.ckpt-1"}, {"label": "next", "checkpoint": "run"}]
        small = {"name": "small", "spec": "spec.json", "checkpoint": "run", "version_labels": labels}
        (self.folder / "all.json").write_text(json.dumps({"models": [small]}))
        server = self.serve("--models=all.json", "--poll_secs=0.05")

        def ask(of, row=(0, 0)):
            status, said = server.ask("POST", f"/v1/models/small{of}:predict", {"instances": [row]})
            return said["predictions"][0]["probabilities"][0] if status == 200 else (status, said["error"])

        old, new = 1 / 3, model.math.e / (model.math.e + 2)
        for of, probability in (("", new), ("/labels/stable", old), ("/versions/1", old), ("/versions/2", new), ("/labels/next", new)):
            self.assertAlmostEqual(ask(of), probability, 6, of)
        self.assertEqual(ask("/labels/other"), (400, "Unrecognized servable version label: other"))
        self.assertEqual(ask("/labels/"), (400, "Malformed request: POST /v1/models/small/labels/:predict"))
        self.assertEqual(ask("/versions/3"), (404, "Servable not found for request: Specific(small, 3)"))
        versions = lambda of: [one["version"] for one in server.ask("GET", f"/v1/models/small{of}")[1]["model_version_status"]]
        self.assertEqual([versions(""), versions("/labels/stable"), versions("/versions/1")], [["2", "1"], ["1"], ["1"]])
        self.assertEqual(server.ask("GET", "/v1/models/small/labels/other")[0], 400)
        self.assertEqual(server.ask("GET", "/v1/models/none/labels/stable")[0], 404)
        self.assertEqual(server.ask("GET", "/v1/models/small/labels/stable/metadata")[1]["model_spec"]["version"], "1")
        said = server.ask("GET", "/metrics")[1]
        self.assertIn('dtrain_serve_version{model="small",label="stable"} 1\n', said)
        self.assertIn('dtrain_serve_version{model="small"} 2\n', said)
        self.write_version(9, [0.0, 0.0, 0.0])
        program.wait_until(lambda: versions("/labels/next") == ["9"], server.story)
        self.assertAlmostEqual(ask("/labels/stable"), old, 6)
        self.assertEqual(server.end(), 0)
        for wrong, told in [([labels[0]] * 2, 'models[0].version_labels[1].label: version_labels[0] is "stable", too'),
                            ([{**labels[0], "label": "a/b"}], 'version_labels[0].label: "a/b" cannot stand in'),
                            ([{**labels[0], "label": f"l{k}"} for k in range(64)], "65 with their labelled versions: at most 64"),
                            ([{**labels[0], "checkpoint": "absent"}], 'model "small", label "stable": ')]:
            with self.subTest(told=told):
                (self.folder / "all.json").write_text(json.dumps({"models": [{**small, "version_labels": wrong}]}))
                ended = self.dtrain("serve", "--models=all.json", "--port=0", f"--ready_file={self.folder}/r")
                self.assertEqual(ended.returncode, 2, ended.stderr)
                self.assertIn(told, ended.stderr)

    def test_numbers_and_yes(self):
        spec = model.spec(model=[{"op": "dense", "name": "out", "units": 1}], metrics=[],
                          loss={"op": "mean_squared_error"})
        self.write_spec(spec)
        self.write_values({"out/kernel": (FLOAT, [2, 1], [0.5, 2.0]), "out/kernel/Momentum": None,
                           "out/bias": (FLOAT, [1], [0.25]), "out/bias/Momentum": None})
        server = self.serve_small()
        self.assertEqual(server.post("predict", {"instances": [[1, 2], [0, 0]]}), (200, {"predictions": [[4.75], [0.25]]}))
        self.assertEqual(server.post("predict", {"inputs": [[1, 2]]}), (200, {"outputs": [[4.75]]}))
        self.assertEqual(server.post("regress", {"examples": [{"a": 1, "b": 2}]}), (200, {"results": [4.75]}))
        self.assertEqual(server.post("classify", {"examples": [{"a": 1, "b": 2}]})[0], 400)
        server.kill()
        self.write_spec({**spec, "loss": {"op": "sigmoid_cross_entropy"}})
        server = self.serve_small()
        status, said = server.post("predict", {"instances": [[0, -0.125]]})
        self.assertEqual((status, said), (200, {"predictions": [{"class": 0, "probability": 0.5}]}))
        self.assertEqual(server.post("classify", {"examples": [{"a": 0, "b": -0.125}]}),
                         (200, {"results": [[["0", 0.5], ["1", 0.5]]]}))

    def test_a_call_that_is_wrong(self):
        for words, text in [(["--checkpoint=absent"], "no checkpoint there"), (["--port=0", "--checkpoint=run"], "--ready_file"),
                            (["--checkpoint=run", "--host=nobody.invalid", "--port=1"], "nobody.invalid"),
                            (["--checkpoint=run", "--max_batch=0"], "max_batch"), ([], "--checkpoint is missing"),
                            (["--models=all.json"], "no SPEC.json, --checkpoint")]:
            with self.subTest(words=words):
                ended = self.dtrain("serve", "spec.json", *words)
                self.assertNotEqual(ended.returncode, 0)
                program.no_crash(ended.returncode, ended.stderr)
                self.assertIn(text, ended.stderr)


class Wrong(Serving):
    """Whatever a client sends, it is told what is wrong, and the next one is served."""

    def test_bodies(self):
        server = self.serve_small("--max_rows=100")
        deep = "[" * 100000 + "]" * 100000
        bad = [
            "", "{", "[]", "null", "7", '"instances"', "{}", '{"instances": 1}', '{"instances": []}', '{"instances": {}}',
            '{"instances": [[1, 2]], "inputs": [[1, 2]]}', '{"instances": [[1, 2]], "signature_name": "other"}',
            '{"instances": [[1, 2]], "instances": [[1, 2]]}', '{"examples": [[1, 2]]}', '{"instances": [[1, 2]]} x',
            '{"instances": [[1]]}', '{"instances": [[1, 2, 3]]}', '{"instances": [1]}', '{"instances": [[1, "2"]]}',
            '{"instances": [[1, null]]}', '{"instances": [[1, true]]}', '{"instances": [null]}', '{"instances": [{}]}',
            '{"instances": [{"a": 1}]}', '{"instances": [{"a": 1, "b": 2, "c": 3}]}', '{"instances": [{"a": 1, "b": [2, 3]}]}',
            '{"instances": [{"features": [1, 2], "a": 1}]}', '{"instances": [{"features": [1], "a": 1}]}',
            '{"instances": [{"b": 1, "features": [1]}]}', '{"instances": [{"a": 1, "a": 2, "b": 1}]}',
            '{"instances": [[NaN, 1]]}', '{"instances": [[1e999, 1]]}', '{"instances": [[1e300, 1]]}', '{"instances": [[-Infinity, 1]]}',
            '{"instances": [[' + "9" * 100000 + ", 1]]}", '{"instances": [[0x10, 1]]}', '{"instances": [[01, 1]]}',
            '{"inputs": {"a": [1]}}', '{"inputs": {"a": [1], "b": [1, 2]}}', '{"inputs": {"a": 1, "b": 2}}', '{"inputs": {}}',
            '{"inputs": {"a": [1], "b": [2], "c": [3]}}', '{"inputs": 5}', '{"inputs": [5]}', '{"inputs": {"a": [[]], "b": [[]]}}',
            '{"instances": [' + deep + "]}", deep, '{"a":' * 100000, '{"instances": [[[[[[[[[[[1]]]]]]]]]], 2]}',
            '{"instances": "\ud7ff\\ud800"}', '{"instances": [{"\\u0000": 1}]}', '{"instances": [{"é": 1}]}', "\ufeff{}",
        ]
        for body in bad:
            with self.subTest(body=body[:60]):
                status, said = server.post("predict", body.encode("utf-8", "surrogatepass"))
                self.assertEqual(status, 400, said)
                self.assertTrue(said["error"])
        for body in (b'{"instances": [{"a": 1\0, "b": 2}]}', b'{"instances": [[1, 2\0]]}', b"\xff\xfe", b'{"instances": [{"\xff": 1}]}', b"\0" * 1000, b'{"instances": [[1, 2]]}\0'):
            self.assertEqual(server.post("predict", body)[0], 400, body)
        status, said = server.post("classify", {"examples": [{}] * 100, "context": {"a": [1] * (1 << 19)}})
        self.assertEqual(status, 400)
        self.assertIn("context: ", said["error"])
        status, said = server.post("predict", {"instances": [[1, 2]] * 101})
        self.assertEqual((status, said), (413, {"error": "101 rows: at most 100 (--max_rows)"}))
        many = "{" + ",".join(f'"{i}":[]' for i in range(1 << 17)) + "}"
        self.assertEqual(server.post("predict", '{"instances": [' + many + "]}")[0], 400)
        self.assertEqual(server.post("predict", '{"instances": [' + ",".join(["[]"] * (1 << 20)) + "]}")[0], 400)
        for verb in ("classify", "regress"):
            for body in ('{"context": {"a": 1}, "examples": [{"a": 1}]}', '{"context": {"b": 1}, "examples": [[5]]}', '{"context": {"features": [1]}, "examples": [{"a": 1}]}',
                         '{"instances": [[1, 2]]}', '{"examples": [{"a": 1, "b": 2}], "context": 5}', '{"examples": 5}'):
                self.assertEqual(server.post(verb, body)[0], 400, body)
        self.assert_serves(server)

    def test_where_it_is_wrong(self):
        server = self.serve_small()
        for rows, text in [([[1, 2], [1, "x"]], "instances: row 2: expected a number, got a word"),
                           ([{"a": 1, "b": 2}, {"a": "x", "b": 1}], 'instances: row 2: "a": expected a number, got a word'),
                           ([{"a": 1, "bb": 2}], 'instances: row 1: the data have no number "bb"')]:
            self.assertEqual(server.post("predict", {"instances": rows}), (400, {"error": text}))

    def test_bodies_that_are_too_long(self):
        server = self.serve_small("--max_body_mb=1")
        told = "the body is too long: at most 1048576 bytes (--max_body_mb)"
        self.assertEqual(server.post("predict", b"[" * (2 << 20)), (413, {"error": told}))
        with contextlib.closing(server.connect()) as connection:  # no length is said
            connection.request("POST", "/v1/models/small:predict", iter([b" " * (1 << 19)] * 3), encode_chunked=True,
                               headers={"Transfer-Encoding": "chunked"})
            self.assertEqual(connection.getresponse().status, 413)
        self.assert_serves(server)

    def test_bodies_that_are_packed(self):
        """As TensorFlow Serving reads them."""
        server = self.serve_small("--max_body_mb=1")
        path, rows = "/v1/models/small:predict", json.dumps({"instances": model.ROWS}).encode()
        wanted = server.ask("POST", path, rows)
        ask = lambda body, how: server.ask("POST", path, body, Content_Encoding=how)  # noqa: E731
        for body, how in ((gzip.compress(rows), "gzip"), (gzip.compress(rows), "X-GZIP"), (rows, "identity"),
                          (gzip.compress(rows + b" " * ((1 << 20) - len(rows))), "gzip")):
            self.assertEqual(ask(body, how), wanted)
        told = "the body is not what gzip packs, as Content-Encoding says"
        packed = gzip.compress(rows)
        for body in (rows, b"", packed[:-1], packed[:-12] + packed[-8:], packed + packed, packed[:-4] + b"\0\0\0\0"):
            self.assertEqual(ask(body, "gzip"), (400, {"error": told}))
        bomb = gzip.compress(bytes(1 << 20) + rows)
        for body in (bomb, bomb[:-4] + len(rows).to_bytes(4, "little")):  # which lies of its size
            self.assertEqual(ask(body, "gzip"), (413, {"error": "the body is too long: at most 1048576 bytes (--max_body_mb)"}))
        for how in ("br", "deflate", "gzip, gzip"):
            self.assertEqual(ask(packed, how)[0], 415)
        with contextlib.closing(server.connect()) as connection:  # what bodies take is given back
            for _ in range(20):
                self.assertEqual(server.ask("POST", path, bomb, connection, Content_Encoding="gzip")[0], 413)
                self.assertEqual(server.ask("POST", path, gzip.compress(bytes(1 << 20)), connection, Content_Encoding="gzip")[0], 400)
        self.assert_serves(server)

    def test_bytes_that_are_no_request(self):
        server = self.serve_small("--max_clients=8", "--silence_secs=1")
        head = b"POST /v1/models/small:predict HTTP/1.1\r\nHost: a\r\n"
        for wrong in [b"", b"\r\n", b"\0" * 1000, b"POST", head, head + b"Content-Length: 100\r\n\r\n{",
                      head + b"Content-Length: -1\r\n\r\n", head + b"Content-Length: 99999999999999999999\r\n\r\n" + b"x" * 1000,
                      head + b"Transfer-Encoding: chunked\r\n\r\nfffffffff\r\n" + b"x" * 10000,
                      b"POST /" + b"a" * 100000 + b" HTTP/1.1\r\n\r\n", b"GET /v1/models/%00%ff:predict HTTP/1.1\r\nHost: a\r\n\r\n"]:
            with socket.create_connection(("127.0.0.1", server.port), timeout=program.LIMIT_S) as client:
                with contextlib.suppress(OSError):  # it hung up
                    client.sendall(wrong)
                    client.shutdown(socket.SHUT_WR)
                    while client.recv(65536):
                        pass
        held = [socket.create_connection(("127.0.0.1", server.port), timeout=program.LIMIT_S) for _ in range(30)]
        program.wait_until(lambda: self.can_ask(server), server.story)
        for one in held:
            one.close()

    def test_each_client_is_answered_or_hung_up_on(self):
        server = self.serve_small("--max_clients=16", "--silence_secs=3", "--max_body_mb=1")
        seeds = range(300 // program.SLOWER)
        attack = asking.Attack(server.port, seeds, ["/v1/models/small:predict", "/v1/models/small", "/healthz", "/metrics"],
                               program.LIMIT_S, json.dumps({"instances": model.ROWS}).encode())
        self.assertEqual(attack.failures, [], server.story())
        self.assertGreater(attack.answered, len(seeds) // 4)
        program.wait_until(lambda: self.can_ask(server), server.story)
        self.assertLess(len(server.story()), 1 << 16)
        self.assert_serves(server)
        self.assert_took_at_most(512 << 10, "serve")

    def test_as_many_clients_as_may_be(self):
        """Whatever ulimit -n allows at first: they take no file from who reads the next checkpoint."""
        self.before = ["sh", "-c", 'ulimit -S -n 64 && ulimit -H -n 400 && exec "$0" "$@"']
        server = self.serve_small("--max_clients=200", "--silence_secs=600")
        self.assertEqual(resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE), (400, 400))  # models open together, too
        with contextlib.ExitStack() as stack:
            clients = [stack.enter_context(contextlib.closing(server.connect())) for _ in range(200)]
            for client in clients:
                self.assertEqual(server.ask("GET", "/healthz", connection=client), (200, "ok\n"))
            self.write_version(9, [0.0, 0.0, 0.0])
            program.wait_until(lambda: server.ask("GET", "/v1/models/small/versions/9", connection=clients[0])[0] == 200,
                               server.story)
        self.assertEqual(server.end(), 0)
        self.assertNotIn("WARNING", server.story())
        ended = program.run(["serve", "spec.json", "--checkpoint=run", "--max_clients=300", "--port=0", "--ready_file=r"], self.folder,
                            before=self.before)
        self.assertEqual(ended.returncode, 2, ended.stderr)
        self.assertIn("--max_clients=300: ulimit -n allows 400 open files and connections, and 428 are needed", ended.stderr)

    def can_ask(self, server):
        with contextlib.suppress(OSError, http.client.HTTPException):
            return server.post("predict", {"instances": model.ROWS})[0] == 200
        return False

    def test_random_bodies(self):
        """Parts of right requests, put together at random."""
        server = self.serve_small()
        numbers = random.Random(1)
        parts = ["{", "}", "[", "]", ":", ",", '"instances"', '"inputs"', '"features"', '"a"', '"b"', "1", "-2.5e3", "null", "true",
                 '"x"', '"\\u00e9"', '"\\ud83d\\ude00"', " ", "\n", "[1, 2]", '{"a": 1, "b": 2}', '"y"', "1e400", "NaN", "\\", '"']
        with contextlib.closing(server.connect()) as connection:
            for _ in range(300):
                body = "".join(numbers.choices(parts, k=numbers.randrange(1, 20)))
                if numbers.random() < 0.7:
                    body = '{"instances": [' + body + "]}"
                status, said = server.post("predict", body, connection=connection)
                self.assertIn(status, (200, 400), said)
        self.assert_serves(server)

    def assert_serves(self, server):
        self.assertEqual(server.post("predict", {"instances": model.ROWS})[0], 200)
        self.assertEqual(server.end(), 0)


class Versions(Serving):
    """A new checkpoint is taken while requests go on."""

    BIASES = [[float(k), 0.5, -0.25] for k in range(5)]

    def probabilities(self, bias):
        logits = [x + b - c for x, b, c in zip(model.logits([1.0, 2.0]), bias, model.BIAS)]
        powers = [model.math.exp(x) for x in logits]
        return [power / sum(powers) for power in powers]

    def ask_on(self, server, count, is_over, answers, failures):
        wanted = [self.probabilities(bias) for bias in self.BIASES]
        with contextlib.closing(server.connect()) as connection:
            while not is_over.is_set():
                try:
                    status, said = server.post("predict", {"instances": [[1.0, 2.0]] * count}, connection=connection)
                    rows = [row["probabilities"] for row in said["predictions"]]
                except (OSError, http.client.HTTPException, KeyError) as error:
                    failures.append(repr(error))
                    return
                near = [k for k, one in enumerate(wanted) if all(abs(x - y) < 1e-6 for row in rows for x, y in zip(row, one))]
                if status != 200 or len(near) != 1:  # all rows of a request are of one version
                    failures.append(f"{status} {rows}")
                answers.append(near[0] if near else -1)

    def test_no_request_is_lost(self):
        self.write_version(1, self.BIASES[0])
        server = self.serve_small("--max_batch=4")
        is_over, answers, failures = threading.Event(), [], []
        clients = [threading.Thread(target=self.ask_on, args=(server, count, is_over, answers, failures))
                   for count in (1, 1, 3, 11)]
        for client in clients:
            client.start()
        for k in range(1, len(self.BIASES)):
            self.write_version(k + 1, self.BIASES[k])
            self.wait_for_version(server, k + 1)
            program.wait_until(lambda k=k: k in answers[-50:] or failures, server.story)
        is_over.set()
        for client in clients:
            client.join()
        self.assertEqual(failures, [])
        self.assertEqual(set(answers), set(range(len(self.BIASES))))
        said = server.ask("GET", "/metrics")[1]
        self.assertIn(f"dtrain_serve_versions_total {len(self.BIASES)}\n", said)
        self.assertEqual(server.ask("GET", "/v1/models/small/versions/1")[0], 404)
        self.assertEqual(server.end(), 0)

    def make_threads_scarce(self, full):
        """While the file is there no more threads can start than the number in it; none: none."""
        self.environment = self.preloaded(SHIM.replace("FULL", str(full)))

    @unittest.skipIf(program.SANITIZER == "thread", "it starts a thread of its own")
    def test_a_thread_that_cannot_start(self):
        """Of a newer checkpoint: the one before is served on, and the next look takes it."""
        full = self.folder / "full"
        self.make_threads_scarce(full)
        self.write_version(1, self.BIASES[0])
        server = self.serve_small()
        self.wait_for_version(server, 1)
        full.touch()
        self.write_version(2, self.BIASES[1])
        program.wait_until(lambda: "the previous version stays in service: " in server.story(), server.story)
        full.unlink()
        self.wait_for_version(server, 2)
        failed = re.search(r"\ndtrain_serve_versions_failed_total (\d+)\n", server.ask("GET", "/metrics")[1])
        self.assertGreater(float(failed[1]), 0)
        self.assertEqual(server.end(), 0)

    @unittest.skipIf(program.SANITIZER == "thread", "it starts a thread of its own")
    def test_threads_that_cannot_start_before_anything_is_served(self):
        """It ends with an error, whichever thread is the first one that cannot."""
        full = self.folder / "full"
        self.make_threads_scarce(full)
        for most in range(50):
            full.write_text(f"{most}")
            try:
                server = self.serve_small()
            except AssertionError as ended:
                self.assertRegex(str(ended), "(?m)^dtrain: .*(thread|memory)|^OpenBLAS blas_thread_init: ")
                continue
            self.assertGreater(most, 1)
            self.assertEqual(server.end(), 0)
            return
        self.fail("it serves with no number of threads")

    def test_one_that_is_broken(self):
        self.write_version(1, self.BIASES[0])
        server = self.serve_small()
        self.write_version(2, self.BIASES[1][:2] + [1.0, 2.0])  # of another shape
        program.wait_until(lambda: "the previous version stays in service: " in server.story(), server.story)
        self.assertNotIn("dtrain_serve_versions_failed_total 0\n", server.ask("GET", "/metrics")[1])
        self.assertEqual(server.ask("GET", "/v1/models/small/versions/1")[0], 200)
        data = self.folder / "run" / "model.ckpt-3.data-00000-of-00001"
        self.write_version(3, self.BIASES[2])
        program.wait_until(lambda: server.ask("GET", "/v1/models/small/versions/3")[0] == 200, server.story)
        data.write_bytes(b"x" * data.stat().st_size)  # what is served is in memory
        self.assertEqual(server.post("predict", {"instances": model.ROWS})[0], 200)
        self.write_version(4, self.BIASES[3])
        self.wait_for_version(server, 4)
        (self.folder / "run" / "checkpoint").unlink()
        self.assertEqual(server.post("predict", {"instances": model.ROWS})[0], 200)
        self.assertEqual(server.end(), 0)

    def write_half(self, step):
        """As somebody copies a folder: its data are still coming. What completes them."""
        self.write_files(step, self.BIASES[step])
        data = self.folder / "run" / f"model.ckpt-{step}.data-00000-of-00001"
        whole = data.read_bytes()
        data.write_bytes(whole[:len(whole) // 2])
        self.publish(step)
        return lambda: data.write_bytes(whole)

    def name_all(self, *steps):
        made.write_state(self.folder / "run", *[f"model.ckpt-{step}" for step in steps])

    def test_one_that_is_half_copied(self):
        """What is whole is served meanwhile, also by a server that begins then."""
        self.write_version(1, self.BIASES[1])
        server = self.serve_small()
        complete = self.write_half(2)
        program.wait_until(lambda: "the previous version stays in service: " in server.story(), server.story)
        complete()
        self.wait_for_version(server, 2)
        self.assertEqual(server.end(), 0)
        complete = self.write_half(3)
        (self.folder / "run/model.ckpt-1.index").unlink()
        self.name_all(2, 1, 3)
        server = self.serve_small()
        self.assertEqual(server.ask("GET", "/v1/models/small/versions/2")[0], 200)
        self.assertIn("tries the checkpoint before it, run/model.ckpt-2", server.story())
        complete()
        self.wait_for_version(server, 3)
        self.assertEqual(server.end(), 0)

    def test_where_nothing_is_whole(self):
        self.write_half(1)
        self.write_half(2)
        self.name_all(1, 2)
        ended = self.dtrain("serve", "spec.json", "--checkpoint=run", "--port=0", "--ready_file=ready.json")
        self.assertEqual(ended.returncode, 2, ended.stderr)
        self.assertIn("model.ckpt-2.data-00000-of-00001: truncated", ended.stderr.splitlines()[-1])

    def test_what_has_begun_ends(self):
        """SIGTERM comes while a body is on its way."""
        server = self.serve_small()
        body = json.dumps({"instances": model.ROWS}).encode()
        with socket.create_connection(("127.0.0.1", server.port), timeout=program.LIMIT_S) as client, \
                contextlib.closing(server.connect()) as other:
            client.sendall(b"POST /v1/models/small:predict HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % len(body) + body[:9])
            server.ask("GET", "/healthz", connection=other)  # the first has surely been read, or is next
            self.wait_for_begun(client, server)
            server.process.send_signal(signal.SIGTERM)
            self.wait_for_end(other, server)
            client.sendall(body[9:])
            answer = http.client.HTTPResponse(client)
            answer.begin()
            self.assertEqual(answer.status, 200)
            self.assertEqual(len(json.loads(answer.read())["predictions"]), len(model.ROWS))
            self.assertEqual(answer.headers["Connection"], "close")
        self.assertEqual(server.process.wait(program.LIMIT_S), 0)

    def wait_for_end(self, connection, server):
        """The signal has come to the server: whoever asks is told that this was the last answer."""

        def is_told():
            connection.request("GET", "/healthz")
            answer = connection.getresponse()
            answer.read()
            return answer.headers["Connection"] == "close"

        program.wait_until(is_told, server.story)

    def wait_for_begun(self, client, server):
        """The kernel has given all bytes of it to the server."""
        port = f"{client.getsockname()[1]:04X}"

        def is_read():
            with open("/proc/net/tcp", encoding="ascii") as file:
                for words in map(str.split, file):
                    if words[2].endswith(f":{port}") and words[1].endswith(f":{server.port:04X}"):
                        return words[4].split(":")[1] == "00000000"
            return False
        program.wait_until(is_read, server.story)


class Cells(Serving):
    """A click model with columns of all kinds and tables: what a client sends are the cells of a file."""

    COLUMNS = [
        {"column": "numeric", "name": "age", "default": 30.0, "scale": 0.01},
        {"column": "numeric", "name": "income", "standardize": True},
        {"column": "bucketized", "name": "age_group", "source": "age", "boundaries": [20, 40]},
        {"column": "hash", "name": "city", "buckets": 50},
        {"column": "vocabulary", "name": "colour", "words": ["red", "green"], "oov_buckets": 2},
        {"column": "hash", "name": "tags", "buckets": 40, "max": 4, "truncate": "first"},
        {"column": "identity", "name": "device", "buckets": 8},
        {"column": "crossed", "name": "pair", "keys": ["city", "colour"], "buckets": 100},
    ]
    MODEL = [
        {"op": "embedding", "name": "cities", "inputs": ["city"], "dimension": 4},
        {"op": "embedding", "name": "colours", "inputs": ["colour"], "dimension": 4},
        {"op": "embedding", "name": "tag", "inputs": ["tags"], "dimension": 4},
        {"op": "embedding", "name": "groups", "inputs": ["age_group"], "dimension": 4},
        {"op": "embedding", "name": "devices", "inputs": ["device"], "dimension": 4},
        {"op": "embedding", "name": "pairs", "inputs": ["pair"], "dimension": 4},
        {"op": "concat", "name": "all", "inputs": ["cities", "colours", "tag", "groups", "devices", "pairs", "age", "income"]},
        {"op": "dense", "name": "hidden", "units": 8, "activation": "relu"},
        {"op": "dense", "name": "logit", "units": 1},
    ]

    def rows(self, count):
        numbers = random.Random(7)
        rows = []
        for _ in range(count):
            row = {"age": numbers.choice([17, 25.5, 61, "33", None, "NA"]), "income": numbers.uniform(0, 1e5),
                   "city": numbers.choice(["Oslo", "Rīga", "São Paulo", "a b", 7, "007", "1e3", 12345678901234567890]),
                   "colour": numbers.choice(["red", "green", "blue", "", None]),
                   "tags": numbers.choice([["x", "y"], ["z"], [], "x", None, [1, 2, 3, 4, 5]]),
                   "device": numbers.choice([0, 3, 7, "2", None]), "click": numbers.randrange(2)}
            rows.append({name: value for name, value in row.items() if value is not None or numbers.random() < 0.5})
        return rows

    def train(self, more=None):
        rows = self.rows(256)
        (self.folder / "clicks.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        source = {"format": "jsonl", "file": "clicks.jsonl", "label": "click", "missing": ["NA"]}
        spec = {"name": "clicks", "data": {"train": source, "eval": {**source, "take": BATCH}, "columns": self.COLUMNS, "batch_size": 32},
                "model": self.MODEL, "loss": "sigmoid_cross_entropy", "metrics": ["auc"],
                "optimizer": {"type": "adagrad", "learning_rate": 0.1}, "train": {"last_step": 20, "checkpoint_dir": "clicks"}}
        self.write_spec({**spec, **(more or {})}, "clicks.json")
        ended = self.dtrain("clicks.json")
        self.assertEqual(ended.returncode, 0, ended.stderr)
        return rows[:BATCH]

    def test_the_same_numbers_as_predict(self):
        rows = self.train()
        wanted = [{key: line[key] for key in ("class", "probability")}
                  for line in self.predict("clicks.json", "--checkpoint=clicks")]
        self.assertGreater(len({one["probability"] for one in wanted}), 10)
        (self.folder / "clicks.jsonl").unlink()  # nobody needs it any more
        server = self.serve("clicks.json", "--checkpoint=clicks", f"--max_batch={BATCH}")
        self.assertEqual(server.post("predict", {"instances": rows}, "clicks"), (200, {"predictions": wanted}))
        names = [column["name"] for column in self.COLUMNS if column["column"] not in ("crossed", "bucketized")]
        columns = {name: [row.get(name) for row in rows] for name in names}
        status, said = server.post("predict", {"inputs": columns}, "clicks")
        self.assertEqual((status, said), (200, {"outputs": {key: [one[key] for one in wanted] for key in wanted[0]}}))
        for row, one in zip(rows, wanted):  # one by one: other sums, nearly the same numbers
            status, said = server.post("predict", {"instances": [row]}, "clicks")
            self.assertAlmostEqual(said["predictions"][0]["probability"], one["probability"], delta=1e-6)
        as_bytes = lambda value: {"b64": base64.b64encode(value.encode()).decode()}  # noqa: E731
        coded = [{name: as_bytes(value) if isinstance(value, str) else
                  [as_bytes(word) for word in value] if name == "tags" and value and isinstance(value[0], str) else value
                  for name, value in row.items()} for row in rows]
        self.assertEqual(server.post("predict", {"instances": coded}, "clicks"), (200, {"predictions": wanted}))
        many = server.post("predict", {"instances": rows * 5}, "clicks")[1]["predictions"]  # in several batches
        for one, other in zip(many, wanted * 5, strict=True):
            self.assertAlmostEqual(one["probability"], other["probability"], delta=1e-6)
        status, said = server.ask("GET", "/v1/models/clicks/metadata")
        inputs = said["metadata"]["signature_def"]["signature_def"]["serving_default"]["inputs"]
        self.assertEqual({name: (one["dtype"], len(one["tensor_shape"]["dim"])) for name, one in inputs.items()}, {
            "age": ("DT_DOUBLE", 1), "income": ("DT_DOUBLE", 1), "city": ("DT_STRING", 1), "colour": ("DT_STRING", 1),
            "tags": ("DT_STRING", 2), "device": ("DT_INT64", 1)})  # as an export has them
        self.assertEqual(said["metadata"]["signature_def"]["signature_def"]["parse_example"]["inputs"]["examples"]["dtype"], "DT_STRING")
        self.assert_examples(server, rows)
        self.assert_no_ids(server)
        self.assert_not_numbers(server)
        self.assert_refusals(server)
        self.assertEqual(server.end(), 0)

    def test_cells_as_they_stand_in_a_table(self):
        """Values of a cell between separators, and words that stand for none, are those of the spec."""
        draw = random.Random(9)
        rows = [[draw.choice(["x", "NA", "y"]), draw.choice(["a;b", "b", "NA", ""]), draw.choice(["3:0.5 4", "1", ""])] for _ in range(BATCH)]
        (self.folder / "rows.csv").write_text("\n".join(["job,tags,ids,y", *(f"{','.join(row)},{i % 2}" for i, row in enumerate(rows))]))
        source = {"format": "csv", "file": "rows.csv", "label": "y", "missing": ["NA"]}
        columns = [{"column": "hash", "name": "job", "buckets": 50}, {"column": "hash", "name": "tags", "separator": ";", "max": 2, "buckets": 50},
                   {"column": "ids", "name": "ids", "rows": 9, "max": 2, "weights": True}]
        self.write_spec({"name": "cells", "data": {"train": source, "eval": source, "columns": columns, "batch_size": BATCH},
                         "model": [*({"op": "embedding", "name": f"e_{name}", "inputs": [name], "dimension": 3} for name in ("job", "tags", "ids")),
                                   {"op": "concat", "inputs": ["e_job", "e_tags", "e_ids"]}, {"op": "dense", "units": 1}],
                         "loss": "sigmoid_cross_entropy", "optimizer": {"type": "adam", "learning_rate": 0.1},
                         "train": {"last_step": 20, "checkpoint_dir": "cells"}}, "cells.json")
        self.assertEqual(self.dtrain("cells.json").returncode, 0)
        wanted = [{key: line[key] for key in ("class", "probability")} for line in self.predict("cells.json", "--checkpoint=cells")]
        server = self.serve("cells.json", "--checkpoint=cells", f"--max_batch={BATCH}")
        instances = [dict(zip(("job", "tags", "ids"), row)) for row in rows]
        self.assertEqual(server.post("predict", {"instances": instances}, "cells"), (200, {"predictions": wanted}))
        lists = [{**row, "tags": row["tags"].split(";"), "ids": row["ids"].split()} for row in instances]
        self.assertEqual(server.post("predict", {"instances": lists}, "cells"), (200, {"predictions": wanted}))
        self.assertEqual(server.end(), 0)

    def test_rows_that_are_compared_are_not_served(self):
        source = {"format": "csv", "file": "rows.csv", "label": "y"}
        (self.folder / "rows.csv").write_text("u,i,y\n" + "".join(f"{i % 5},{i % 3},0\n" for i in range(20)))
        self.write_spec({"name": "pairs", "data": {"train": source, "eval": source, "batch_size": 20,
                                                   "columns": [{"column": "identity", "name": name, "buckets": 9} for name in "ui"]},
                         "model": [{"op": "embedding", "name": "user", "inputs": ["u"], "dimension": 3}, {"op": "embedding", "name": "item", "inputs": ["i"], "dimension": 3},
                                   {"op": "in_batch_logits", "inputs": ["user", "item"], "ids": "i"}],
                         "loss": "softmax_cross_entropy", "optimizer": {"type": "adam", "learning_rate": 0.1},
                         "train": {"last_step": 2, "checkpoint_dir": "pairs"}}, "pairs.json")
        self.assertEqual(self.dtrain("pairs.json").returncode, 0)
        ended = self.dtrain("serve", "--checkpoint=pairs", "--port=0", "--ready_file=ready", "pairs.json")
        self.assertEqual(ended.returncode, program.BAD_INPUT, ended.stderr)
        self.assertIn("pairs.json: model[2] (in_batch_logits) compares the rows of a batch with each other, and says nothing of one alone: dtrain export --outputs=NODE", ended.stderr)

    def test_a_cell_called_b64(self):
        """An object of it alone is a row, and no value of one."""
        words = ["QUJD", "red", "green"]
        columns = [{"column": "hash", "name": "b64", "buckets": 50}]
        model = [{"op": "embedding", "inputs": ["b64"], "dimension": 4}, {"op": "dense", "units": 1}]
        source = {"format": "jsonl", "file": "words.jsonl", "label": "y"}
        (self.folder / "words.jsonl").write_text("".join(json.dumps({"b64": word, "y": len(word) % 2}) + "\n" for word in words))
        self.write_spec({"name": "words", "data": {"train": source, "eval": source, "columns": columns, "batch_size": 3}, "model": model,
                         "loss": "sigmoid_cross_entropy", "optimizer": {"type": "adam", "learning_rate": 0.1},
                         "train": {"last_step": 20, "checkpoint_dir": "words"}}, "words.json")
        self.assertEqual(self.dtrain("words.json").returncode, 0)
        wanted = [{key: line[key] for key in ("class", "probability")} for line in self.predict("words.json", "--checkpoint=words")]
        self.assertEqual(len({one["probability"] for one in wanted}), 3)
        server = self.serve("words.json", "--checkpoint=words", f"--max_batch={BATCH}")
        coded = [{"b64": base64.b64encode(word.encode()).decode()} for word in words]
        for rows in ([{"b64": word} for word in words], [{"b64": one} for one in coded]):
            self.assertEqual(server.post("predict", {"instances": rows}, "words"), (200, {"predictions": wanted}))
        outputs = {key: [one[key] for one in wanted] for key in wanted[0]}
        for cells in (words, coded):
            self.assertEqual(server.post("predict", {"inputs": {"b64": cells}}, "words"), (200, {"outputs": outputs}))
        self.assertEqual(server.post("predict", {"instances": [{"b64": {"b64": "!"}}]}, "words")[0], 400)
        status, said = server.post("classify", {"context": {"b64": words[0]}, "examples": [{}]}, "words")
        self.assertEqual((status, said["results"][0][1][1]), (200, wanted[0]["probability"]), said)
        examples = [{"b64": base64.b64encode(made.example({"b64": self.feature(word)})).decode()} for word in words]
        status, said = server.post("predict", {"signature_name": "parse_example", "instances": examples}, "words")
        self.assertEqual((status, said), (200, {"predictions": wanted}))
        self.assertEqual(server.end(), 0)

    @staticmethod
    def feature(value):
        """Of tf.Example: numbers of 32 bits, whole numbers of 64, words"""
        values = value if isinstance(value, list) else [value]
        if values and isinstance(values[0], float):
            return made.field(2, made.field(1, struct.pack(f"<{len(values)}f", *values)))
        if values and isinstance(values[0], int) and values[0] < 1 << 63:
            return made.field(3, made.field(1, b"".join(map(made.varint, values))))
        return made.field(1, b"".join(made.field(1, str(one).encode()) for one in values))

    def assert_examples(self, server, rows):
        """The signature parse_example, as an export has it: the same cells"""
        rows = [{**row, "income": struct.unpack("<f", struct.pack("<f", row["income"]))[0]} for row in rows]
        wanted = server.post("predict", {"instances": rows}, "clicks")
        coded = [{"b64": base64.b64encode(made.example({name: self.feature(value) for name, value in {**row, "nobody": 5}.items()
                                                        if value is not None})).decode()} for row in rows]
        post = lambda body, verb="predict": server.post(verb, {"signature_name": "parse_example", **body}, "clicks")  # noqa: E731
        self.assertEqual((post({"instances": coded}), wanted[0]), (wanted, 200))
        self.assertEqual(post({"instances": [{"examples": one} for one in coded]}), wanted)
        names = {name for row in rows for name in row}
        columns = server.post("predict", {"inputs": {name: [row.get(name) for row in rows] for name in names}}, "clicks")
        for inputs in (coded, {"examples": coded}):
            self.assertEqual(post({"inputs": inputs}), columns)
        for wrong in ({"instances": [coded[0], {"b64": "/w=="}]}, {"instances": [coded[0], 5]}, {"instances": [coded[0], {"age": 5}]},
                      {"inputs": {"examples": [coded[0], []]}}, {"inputs": [coded[0], {"examples": 5}]}):
            status, said = post(wrong)
            self.assertEqual((status, said["error"][:18]), (400, "instances: row 2: "), said)
        for wrong in ({"inputs": 5}, {"inputs": {"example": coded}}, {"instances": []}, {"instances": {"b64": "QQ=="}}, {}):
            self.assertEqual(post(wrong)[0], 400)
        self.assertEqual(post({"examples": coded}, "classify")[0], 400)
        age = base64.b64encode(made.example({"age": self.feature("old")})).decode()
        self.assertEqual(post({"instances": [{"b64": age}]}), (400, {"error": 'instances: row 1: column "age": expected a number, got "old"'}))

    def assert_no_ids(self, server):
        """As TensorFlow's columns have them."""
        row = {"age": 20, "income": 5.0, "city": "Oslo"}
        said = [server.post("predict", {"instances": [{**row, "device": value}]}, "clicks") for value in (None, -1, "-1", -1.0)]
        self.assertEqual((said[0][0], said), (200, said[:1] * 4))

    def assert_not_numbers(self, server):
        """No value, as clients write it that make JSON of a table."""
        row = {"age": 20, "income": 5.0, "city": "NaN", "colour": 'a "NaN" \\'}
        for age in (float("nan"), None):
            said = [server.post("predict", {"instances": [{**row, "age": value}, row]}, "clicks") for value in (age, "NA")]
            self.assertEqual(said[0], said[1])
            self.assertEqual(said[0][0], 200)
        for body in ('{"instances": [{"age": nan, "income": 5}]}', '{"instances": [{"age": -NaN, "income": 5}]}',
                     '{"instances": [{NaN: 1}]}', '{"instances": [{"age": Infinity, "income": 5}]}', '{"instances": [{"age": NaN', 'NaN',
                     '{"instances": [{"age": NaN, "income": NaN}]}', '{"instances": [{"tags": ["NaN", NaN], "income": 5}]}'):
            self.assertEqual(server.post("predict", body, "clicks")[0], 400, body)

    def assert_refusals(self, server):
        right = {"age": 20, "income": 5.0, "city": "Oslo"}
        for cells, text in [({"age": "old"}, 'instances: row 2: column "age": expected a number, got "old"'),
                            ({"age": {"b64": "QQ=="}}, 'instances: row 2: column "age": expected a number, got "A"'),
                            ({"city": {"b64": "QQ="}}, 'instances: row 2: "city": {"b64": "QQ="}: no base64, which has four of'),
                            ({"city": {"b64": "Q=Q="}}, 'instances: row 2: "city": {"b64": "Q=Q="}: no base64'),
                            ({"city": {"b64": "QQA="}}, 'instances: row 2: "city": a zero byte'),
                            ({"tags": [{"b64": "eA=="}, {"b64": 5}]}, 'instances: row 2: "tags": {"b64": ...}: expected base64 in a string'),
                            ({"age": [[1]]}, 'instances: row 2: "age": expected numbers, words, booleans'),
                            ({"income": None}, 'instances: row 2: column "income"'),
                            ({"device": 8}, 'instances: row 2: column "device"'),
                            ({"device": -2}, 'instances: row 2: column "device"'),
                            ({"citty": "Oslo"}, '"citty": no column reads a cell of this name (did you mean "city"?)'),
                            ({"tags": ["x", 1]}, 'instances: row 2: "tags"')]:
            with self.subTest(cells=cells):
                status, said = server.post("predict", {"instances": [right, {**right, **cells}]}, "clicks")
                self.assertEqual(status, 400, said)
                self.assertIn(text, said["error"])
        said = server.post("classify", {"context": {"age": 5}, "examples": [{"income": 5.0}, right]}, "clicks")
        self.assertEqual(said, (400, {"error": 'instances: row 2: "age" is in the context, too'}))
        for rows in ([5], ["x"], [[1, 2]], [None]):
            status, said = server.post("predict", {"instances": rows}, "clicks")
            self.assertEqual(status, 400, said)
            self.assertIn("instances: row 1: expected an object of cells", said["error"])
        self.assert_no_base64(server, "clicks")
        self.assert_no_base64(server, "clicks", signature_name="parse_example")


class Stored(Serving):
    """Bytes of images, scaled by the spec: a client sends them as they are stored."""

    def test_bytes_of_images(self):
        numbers = random.Random(3)
        pixels = bytes(numbers.randrange(256) for _ in range(BATCH * 36))
        (self.folder / "x.raw").write_bytes(pixels)
        (self.folder / "y.raw").write_bytes(bytes(numbers.randrange(4) for _ in range(BATCH)))
        source = {"format": "raw", "file": "x.raw", "labels": "y.raw", "dtype": "uint8", "label_dtype": "uint8", "shape": [6, 6, 1]}
        self.write_spec({"name": "images", "data": {"train": source, "eval": source, "batch_size": 16, "scale": 0.00392156863},
                         "model": [{"op": "conv2d", "name": "conv", "filters": 4, "kernel_size": 3}, {"op": "flatten"},
                                   {"op": "dense", "name": "logits", "units": 4}],
                         "loss": "softmax_cross_entropy", "metrics": [], "optimizer": "adam",
                         "train": {"last_step": 10, "checkpoint_dir": "images"}}, "images.json")
        ended = self.dtrain("images.json")
        self.assertEqual(ended.returncode, 0, ended.stderr)
        wanted = [{key: line[key] for key in ("class", "probabilities")}
                  for line in self.predict("images.json", "--checkpoint=images")]
        server = self.serve("images.json", "--checkpoint=images", f"--max_batch={BATCH}")
        flat = [list(pixels[36 * i:36 * (i + 1)]) for i in range(BATCH)]
        shaped = [[[[row[6 * y + x]] for x in range(6)] for y in range(6)] for row in flat]
        for rows in (flat, shaped):
            self.assertEqual(server.post("predict", {"instances": rows}, "images"), (200, {"predictions": wanted}))
        self.assertEqual(server.post("predict", {"inputs": shaped}, "images")[0], 200)
        coded = [{"b64": base64.b64encode(bytes(row)).decode()} for row in flat]
        for body in (coded, [{"features": row} for row in coded], [[row] for row in coded]):
            self.assertEqual(server.post("predict", {"instances": body}, "images"), (200, {"predictions": wanted}))
        short = {"b64": base64.b64encode(bytes(35)).decode()}
        self.assertIn("expected 36 numbers, got 35", server.post("predict", {"instances": [short]}, "images")[1]["error"])
        self.assert_no_base64(server, "images")
        for value in (0.5, 256, -1):
            status, said = server.post("predict", {"instances": [[value] * 36]}, "images")
            self.assertEqual(status, 400)
            self.assertIn("expected a whole number from 0 to 255, as in the data", said["error"])
        self.assertEqual(server.end(), 0)


if __name__ == "__main__":
    program.main()
