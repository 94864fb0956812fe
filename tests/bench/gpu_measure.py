"""gpu_measure.py - runs of dtrain on a GPU, and of its peer."""
import json
import os
import re
import statistics
import subprocess
import sys

import environment
import measure
import peers
from workloads import PS, WORKERS

RALLY_STEPS = 60  # of a run by which the speed is estimated
LINE_EVERY_S = 0.1  # how often the chief writes its step and time
RUN_LIMIT_S = 1200  # of a run that ends by itself
PEER_LIMIT_S = 900  # PyTorch's compiler takes its time
SHARES = re.compile(r"\d+ steps? in [0-9.]+ ms: (compute .*hooks \d+ %)")
PROFILE_EVERY_S, PROFILE_STEPS = 1.0, 10
TORCH = os.path.join(measure.FOLDER, "gpu_torch.py")


def write_spec(folder, spec):
    path = os.path.join(folder, "spec.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(spec, file)
    return path


def cluster_words(mode):
    return [f"--local_ps={PS}", f"--local_workers={WORKERS}", "--set", f"train.mode={mode}"]


def completed(dtrain, words, look):
    """Runs dtrain to its end; what look(running) gives."""
    with measure.Running(dtrain, words) as running:
        code = running.wait(RUN_LIMIT_S)
        if code != 0:
            running.fail(f"ended with exit code {code}")
        return look(running)


def rally(dtrain, words):
    """Steps per second, as well as a short run can tell; its beginning does not count."""
    settings = [f"train.last_step={RALLY_STEPS}", f"train.log_every_steps={RALLY_STEPS // 3}"]
    points = completed(dtrain, sets(settings) + words, lambda running: running.points())
    (start_s, start), (end_s, end) = points[-2:]
    return (end - start) / max(end_s - start_s, 1e-6)


def sets(settings):
    return [word for setting in settings for word in ("--set", setting)]


def step_rates(dtrain, words, timing, watch):
    """Global steps per second, window by window; watch is entered while they pass."""
    every = max(1, round(rally(dtrain, words) * LINE_EVERY_S))
    limit_s = measure.START_LIMIT_S + 8 * (timing.warmup_s + timing.windows * timing.window_s)

    def rates():
        found = measure.window_rates(running.points(), timing.warmup_s, timing.window_s)
        return found if len(found) >= timing.windows else None

    def is_warm():
        points = running.points()
        return points and points[-1][0] - points[0][0] >= timing.warmup_s

    with measure.Running(dtrain, sets([f"train.log_every_steps={every}"]) + words) as running:
        running.wait_until(is_warm, limit_s, "warm-up")
        with watch:
            found = running.wait_until(rates, limit_s, f"{timing.windows} windows")
    return found[:timing.windows]


def time_shares(dtrain, words, folder):
    """What the chief's steps were made of, in its own words, once the run was under way."""
    hook = [{"type": "profiler", "save_secs": PROFILE_EVERY_S, "steps": PROFILE_STEPS,
             "output_dir": folder}]

    def second():
        found = SHARES.findall(running.printed().decode(errors="replace"))
        return found[1] if len(found) > 1 else None

    with measure.Running(dtrain, sets(["train.hooks=" + json.dumps(hook)]) + words) as running:
        return running.wait_until(second, measure.START_LIMIT_S, "second timeline")


def losses(dtrain, words):
    """The mean of all losses on the way, and the loss on the evaluation data at the end."""
    def look(running):
        with open(running.metrics_path, encoding="utf-8") as file:
            curve = [json.loads(line)["loss"] for line in file]
        return {"curve": statistics.fmean(curve), "final": running.result()["metrics"]["loss"]}

    return completed(dtrain, words, look)


def same_bits(dtrain, words, folder, steps):
    """Whether two runs end with equal checkpoints, bit for bit; else what differs."""
    for name in ("first", "second"):
        settings = [f"train.checkpoint_dir={folder}/{name}", f"train.last_step={steps}"]
        completed(dtrain, sets(settings) + words, lambda running: None)
    done = subprocess.run([dtrain, "checkpoint", "diff", f"{folder}/first", f"{folder}/second"],
                          capture_output=True, text=True, timeout=RUN_LIMIT_S, check=False,
                          env=environment.clean())
    if done.returncode not in (0, 1):
        raise measure.Failed(f"checkpoint diff: exit code {done.returncode}\n{done.stderr}")
    return done.returncode == 0, done.stdout.strip().split("\n")[0]


class Torch:
    """PyTorch of one Python, if it has one that can be compared with."""

    def __init__(self, python, device, ways=()):
        self.command = [python, "-B", TORCH, "--device", device]
        self.ways = ["--ways", ",".join(ways)] if ways else []
        self.reason = self.version = ""
        try:
            done = subprocess.run([*self.command, "--check"], capture_output=True, text=True,
                                  timeout=PEER_LIMIT_S, check=False,
                                  stdin=subprocess.DEVNULL, env=environment.clean())
        except (OSError, subprocess.TimeoutExpired) as trouble:
            self.reason = f"{python}: {trouble}"
            return
        said = (done.stdout.strip().split("\n") or [""])[-1]
        if done.returncode == 0:
            self.version = said
        else:
            self.reason = said or f"{python}: {done.stderr.strip()[-200:]}"

    def rates(self, spec_path, folder, precision, timing):
        """By way: steps per second, window by window; and what went wrong in other ways."""
        answer = os.path.join(folder, "torch.json")
        peers.run([*self.command, spec_path, "--precision", precision, "--json", answer,
                   "--windows", str(timing.windows), "--seconds", str(timing.window_s),
                   *self.ways], PEER_LIMIT_S)
        with open(answer, encoding="utf-8") as file:
            found = json.load(file)
        return found["ways"], found["troubles"]


def default_python():
    return sys.executable or "python3"
