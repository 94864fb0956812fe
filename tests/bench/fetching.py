#!/usr/bin/env python3
"""fetching.py - what it costs that shards lie behind a web server: nginx on another host.

    meson setup build && ninja -C build
    tests/bench/fetching.py                          as root: a link of 1 Gbit/s, and answers that wait 20 ms
    tests/bench/fetching.py --megabytes 2000 --rate_mbit 10000 --latency_ms 0
    tests/bench/fetching.py --json figures.json      the same, and every figure in a file

Files of Criteo's form are made below --folder and removed in the end. They lie on a host that is a network
namespace of this machine, behind nginx, and a link of the given rate; before every answer pass --latency_ms (nginx
asks a little server that sleeps). Measured are, in MB per second: the bare transfer of all files (curl, all at once),
and, from this host's disk and from the server in turn, the pass that finds rows (dtrain check) and a single process
that trains on them by a model that is almost nothing, in the order of the files and shuffled. What the server gives is held
against the bare transfer or against the disk's, whichever is less: no stream is faster than its rows are made. Then the click
model of run.py trains on the files over 2 ps + 2 workers, from the disk and from the server in turn.

Nothing else should run on the machine. The exit code is 0 when everything was measured, whether or
not a goal was met.
"""
import contextlib
import getpass
import http.server
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time

sys.dont_write_bytecode = True  # the folder is part of the source

import program
import reading
from program.hosts import Hosts
from measure import Failed

NGINX = shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
PORT, SLEEPER_PORT = 8080, 8081  # on a host of its own
CONFIGURATION = """
daemon off; master_process off; user {user}; pid {folder}/nginx.pid; error_log {folder}/error.log;
events {{ worker_connections 256; }}
http {{
    access_log off; root {folder}/www; sendfile on; keepalive_requests 100000;
    client_body_temp_path {folder}/a; proxy_temp_path {folder}/b; fastcgi_temp_path {folder}/c;
    uwsgi_temp_path {folder}/d; scgi_temp_path {folder}/e;
    server {{ listen {address}:{port};
              location / {{ {wait} }}
              location = /wait {{ internal; proxy_pass http://127.0.0.1:{sleeper}; }} }}
}}
"""
BARE_AT_ONCE = 8
STREAM_GOAL = 0.8
CLICKS_GOAL = 0.9
POOL_ROWS = 1 << 15  # so that what is read before the first step counts for little


class Sleeper(http.server.BaseHTTPRequestHandler):
    """Says yes after a while."""

    latency_s = 0

    def do_GET(self):
        time.sleep(self.latency_s)
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_):
        pass


class Sleepers(http.server.ThreadingHTTPServer):
    request_queue_size = 128


class Server:
    """nginx on the other host, whose files are those of the folder `www`."""

    def __init__(self, folder, hosts, latency_ms):
        self.url = f"http://{Hosts.ADDRESSES[1]}:{PORT}"
        Sleeper.latency_s = latency_ms / 1000
        with hosts.sockets(1):
            self.sleeper = Sleepers(("127.0.0.1", SLEEPER_PORT), Sleeper)
        threading.Thread(target=self.sleeper.serve_forever, daemon=True).start()
        path = os.path.join(folder, "nginx.conf")
        with open(path, "w", encoding="utf-8") as file:
            file.write(CONFIGURATION.format(
                user=getpass.getuser(), folder=folder, address=Hosts.ADDRESSES[1], port=PORT, sleeper=SLEEPER_PORT,
                wait="auth_request /wait;" if latency_ms else ""))
        hosts.start(1, [NGINX, "-c", path, "-e", os.path.join(folder, "error.log")])

    def close(self):
        self.sleeper.shutdown()
        self.sleeper.server_close()


class Fetching(reading.Bench):
    def __init__(self, options, folder, hosts, server):
        www = os.path.join(folder, "www")
        os.mkdir(www)
        super().__init__(options, www)
        self.hosts = hosts
        self.before = hosts.inside(0)
        self.urls = [f"{server.url}/{os.path.basename(path)}" for path in self.paths]
        self.bare_rate = 0

    def start(self, command, **how):
        return self.hosts.start(0, command, **how)

    def bare_seconds(self):
        words = ["curl", "-Z", "--parallel-max", str(BARE_AT_ONCE), "-s", "-f", "--retry-connrefused", "--retry", "50",
                 "--retry-delay", "1"]
        for url in self.urls:
            words += ["-o", os.devnull, url]
        began = time.monotonic()
        if subprocess.run([*self.before, *words], check=False, stderr=subprocess.DEVNULL).returncode:
            raise Failed("curl did not get the files")
        return time.monotonic() - began

    def bare(self):
        self.bare_seconds()  # until the server is there, and the files are in the page cache
        rates = [self.bytes / self.bare_seconds() / 1e6 for _ in range(self.options.turns)]
        self.bare_rate = statistics.median(rates)
        self.record("bare transfer", mb_per_second=self.bare_rate)

    def find_rate(self, source):
        self.write_spec(reading.spec_of({**source, "stream": "always"}, 1))
        return self.bytes / self.dtrain("check", "spec.json")[1] / 1e6

    def train_rate(self, source, shuffle):
        spec = reading.spec_of({**source, "stream": "always", "readers": self.options.readers,
                                "shuffle_rows": POOL_ROWS}, self.options.steps)
        return self.train_by(program.changed(spec, {"data.shuffle": shuffle}))[0] * self.row_bytes / 1e6

    def compare(self, name, rate, *more):
        """From the disk and from the server, in turn."""
        disk, server = [], []
        for _ in range(self.options.turns):
            disk.append(rate({"file": self.paths}, *more))
            server.append(rate({"file": self.urls}, *more))
        disk, server = statistics.median(disk), statistics.median(server)
        share = server / min(disk, self.bare_rate)
        self.record(name, disk=disk, server=server, of_bare=server / self.bare_rate, of_what_can_be=share,
                    goal="ok" if share >= STREAM_GOAL else "NOT")

    def clicks(self):
        disk, server = [], []
        for _ in range(self.options.turns):
            for rates, files in ((disk, self.paths), (server, self.urls)):
                rates += self.click_rates({"file": files, "stream": "always", "readers": self.options.readers})
        of_disk = statistics.median(server) / statistics.median(disk)
        self.record("click model", disk=statistics.median(disk), server=statistics.median(server), of_disk=of_disk,
                    goal="ok" if of_disk >= CLICKS_GOAL else "NOT")

    def run(self):
        self.bare()
        self.compare("rows found", self.find_rate)
        self.compare("in order", self.train_rate, False)
        self.compare("shuffled", self.train_rate, True)
        self.clicks()


def read_options(arguments):
    parser = reading.make_parser(__doc__, megabytes=1000, steps=1000)
    parser.add_argument("--readers", type=int, default=0, help="threads; 0: as many as dtrain takes (%(default)s)")
    parser.add_argument("--rate_mbit", type=int, default=1000, help="of the link (%(default)s)")
    parser.add_argument("--latency_ms", type=int, default=20, help="before each answer (%(default)s)")
    return parser.parse_args(arguments)


def main(arguments):
    options = read_options(arguments)
    program.BINARY = os.path.abspath(options.dtrain)
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(dir=options.folder))
        hosts = stack.enter_context(Hosts(options.rate_mbit))
        server = stack.enter_context(contextlib.closing(Server(folder, hosts, options.latency_ms)))
        return reading.measure_all(Fetching(options, folder, hosts, server))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
