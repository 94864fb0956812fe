"""serving_beside.py - what serving.py holds `dtrain serve` against, in a Python that has TensorFlow and onnxruntime.

    serving_beside.py server FOLDER      answers POST of {"instances": [...]} by the SavedModel in FOLDER, at the
                                         port that it prints, as a server of few lines does
    serving_beside.py onnx FILE ROWS SECONDS
                                         rows per second by onnxruntime in this process, from arrays
"""
import http.server
import json
import sys
import time

import numpy as np


def answer_by(folder):
    import tensorflow as tf  # pylint: disable=import-outside-toplevel
    loaded = tf.saved_model.load(folder)
    serve = loaded.signatures["serving_default"]
    inputs = serve.structured_input_signature[1]

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):  # pylint: disable=invalid-name
            rows = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["instances"]
            said = serve(**{name: tf.constant([row[name] for row in rows], one.dtype) for name, one in inputs.items()})
            body = json.dumps({"predictions": next(iter(said.values())).numpy().tolist()}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format, *args):  # pylint: disable=redefined-builtin
            pass

    return Handler


def serve_forever(folder):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), answer_by(folder))
    server.daemon_threads = True
    print(server.server_address[1], flush=True)
    server.serve_forever()


def measure_onnx(path, rows, seconds):
    import onnxruntime  # pylint: disable=import-outside-toplevel
    session = onnxruntime.InferenceSession(path)
    draw = np.random.default_rng(1)
    fed = {one.name: draw.integers(0, 100, rows) for one in session.get_inputs()}
    session.run(None, fed)
    count, end = 0, time.monotonic() + seconds
    while time.monotonic() < end:
        session.run(None, fed)
        count += rows
    print(count / seconds)


if __name__ == "__main__":
    if sys.argv[1] == "server":
        serve_forever(sys.argv[2])
    else:
        measure_onnx(sys.argv[2], int(sys.argv[3]), float(sys.argv[4]))
