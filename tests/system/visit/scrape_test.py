"""What Prometheus and Grafana get: /metrics held against promtool where it is installed, the alerts and the dashboard of
examples/deploy against the table of counters, and each alert against the fault that it is for."""
import json
import os
import re
import shutil
import subprocess
import unittest
import urllib.request

import program
from program import FIXTURES, LIMIT_S, ROOT
from program.cluster import ClusterCase, Plan

DEPLOY = ROOT / "examples" / "deploy"
CHROMIUM = shutil.which("chromium")
PROMTOOL = os.environ.get("PROMTOOL") or shutil.which("promtool")


def promtool(*words, folder=None, stdin=None):
    return subprocess.run([PROMTOOL, *words], cwd=folder, input=stdin, capture_output=True, text=True, timeout=LIMIT_S,
                          check=False)


class ScrapeTest(ClusterCase):
    def test_alerts_and_dashboard_name_what_is_counted(self):
        known = set(re.findall(r"\bdtrain_\w+", program.run(["help", "counters"], None).stdout))
        self.assertIn("dtrain_global_step", known)
        board = json.loads((DEPLOY / "grafana.json").read_text())
        told = "\n".join(target["expr"] for panel in board["panels"] for target in panel["targets"])
        self.assertEqual(len({panel["id"] for panel in board["panels"]}), len(board["panels"]))
        for text in (told, (DEPLOY / "alerts.yaml").read_text()):
            named = set(re.findall(r"\bdtrain_\w+", text))
            self.assertTrue(named)
            bare = {re.sub("_(sum|count)$", "", name) for name in named}
            self.assertEqual(bare - known, set())

    @unittest.skipUnless(PROMTOOL, "promtool is not installed (Debian: prometheus)")
    def test_each_alert_is_given_for_its_fault_and_none_of_a_healthy_job(self):
        for path in (DEPLOY / "alerts.yaml", FIXTURES / "alerts.test.yaml"):
            shutil.copy(path, self.folder)
        tried = set(re.findall(r"alertname: (\w+)", (FIXTURES / "alerts.test.yaml").read_text()))
        self.assertEqual(tried, set(re.findall(r"alert: (\w+)", (DEPLOY / "alerts.yaml").read_text())))
        for words in (["check", "rules", "alerts.yaml"], ["test", "rules", "alerts.test.yaml"]):
            done = promtool(*words, folder=self.folder)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    @unittest.skipUnless(PROMTOOL, "promtool is not installed (Debian: prometheus)")
    def test_metrics_are_as_prometheus_wants_them(self):
        flags = {"worker/0": ["--http=0", "--ready_file=worker.json"], "ps/0": ["--http=0", "--ready_file=ps.json"]}
        cluster = self.start_endless(Plan(ps=1, workers=1, flags_of=flags))
        for name in ("worker", "ps"):
            port = json.loads(cluster.read(name + ".json")).get("http_port")
            if not port:
                self.skipTest("libmicrohttpd is not installed")
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=LIMIT_S) as answer:
                done = promtool("check", "metrics", stdin=answer.read().decode())
            self.assertEqual((done.returncode, done.stdout + done.stderr), (0, ""))

    @unittest.skipUnless(CHROMIUM, "chromium is not installed")
    def test_the_page_shows_the_job_in_a_browser_that_complains_of_nothing(self):
        flags = {"worker/0": ["--http=0", "--ready_file=worker.json"]}
        cluster = self.start_endless(Plan(ps=1, workers=1, flags_of=flags))
        port = json.loads(cluster.read("worker.json")).get("http_port")
        if not port:
            self.skipTest("libmicrohttpd is not installed")
        said = []

        def is_shown():
            done = subprocess.run([CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr",
                                   f"--user-data-dir={self.folder}/browser", "--virtual-time-budget=5000", "--dump-dom",
                                   f"http://localhost:{port}/"], capture_output=True, text=True, timeout=LIMIT_S, check=False,
                                  env={**os.environ, "HOME": str(self.folder), "TMPDIR": str(self.folder), "XDG_CACHE_HOME": str(self.folder)})
            said[:] = [done.stdout, done.stderr]
            self.assertNotIn("CONSOLE", done.stderr)
            words = "worker/0 leads", "<td>ps/0</td>", "<td>hidden/kernel</td>", "answers HTTP at port"
            return all(word in done.stdout for word in words)
        cluster.wait_until(is_shown, "a page")


if __name__ == "__main__":
    program.main()
