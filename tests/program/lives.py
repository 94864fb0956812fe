"""Clusters whose tasks are killed and restarted.

A task keeps its name and port through all its lives; each life has a log of its own.

Moments are counted in lines of progress, so that they mean the same on fast and slow machines.
Within a step they are random.
"""
import contextlib
import dataclasses
import json
import os
import re
import signal
import subprocess
import tempfile
import time

import program
from program.cluster import Cluster, ClusterCase, Plan

LIMIT_S = 250  # of every wait of a task; a wait that comes here is a failure
END_S = 100  # for a job that was told to end, on a busy machine
LEARNT = 0.6  # accuracy; a guess has 0.1
SHORTER = 1 if program.SANITIZER == "none" else 2  # are runs, of which a step takes as much longer; see Over
ATTEMPTS_MAX = 8  # to disturb a run before it is over
STILL_LOOKS = 10  # after so many without a word nothing moves any more
PROGRESS = re.compile(r"step (\d+) of \d+, loss")
KILLED = -signal.SIGKILL
CHIEF = "worker/0"
LEADS = "leads from now on"
LIMITS = [f"--{name}_timeout={LIMIT_S}" for name in ("start", "step", "restart", "end", "save")]
# A step takes about as long as a kill and the look that triggers it.
MODEL = {
    "data.train": {"format": "digits", "rows": 1200},
    "data.batch_size": 100,
    "model": [{"op": "flatten"},
              {"op": "dense", "name": "hidden", "units": 128, "activation": "relu"},
              {"op": "dense", "name": "more", "units": 64, "activation": "relu"},
              {"op": "dense", "name": "logits", "units": 10}],
    "optimizer.learning_rate": 0.005,  # four times that diverges now and then with stale gradients
    "train.checkpoint_dir": "run",
    "train.save_checkpoint_steps": 20,
}


class Over(AssertionError):
    """A run came to its end, and a good one, before it was disturbed: whoever disturbs it stood still. Or its chief did,
    so that another one leads."""


def pause():
    """Pauses between two polls."""
    time.sleep(program.LOOK_S)


def plan_of(mode, last_step, changes=None, **options):
    """2 ps and 3 workers that train for so many steps and save every 20."""
    flags = LIMITS + options.pop("flags", [])
    flags_of = {name: list(more) for name, more in options.pop("flags_of", {}).items()}
    flags_of.setdefault(CHIEF, []).append("--result=result.json")
    changes = {**MODEL, "train.mode": mode, "train.last_step": last_step, **(changes or {})}
    return Plan(ps=2, workers=3, changes=changes, flags=flags, flags_of=flags_of, **options)


class Progress:
    """The steps that a life of a worker has told of so far; its log is read once."""

    def __init__(self, path):
        self.path, self.offset, self.count, self.step = path, 0, 0, 0

    def look(self):
        with open(self.path, "rb") as log:
            log.seek(self.offset)
            whole = log.read().rpartition(b"\n")[0]
        self.offset += len(whole)
        steps = PROGRESS.findall(whole.decode(errors="replace"))
        if steps:
            self.count, self.step = self.count + len(steps), int(steps[-1])
        return self


class LivingCluster(Cluster):
    """The tasks of a plan; `tasks` has the latest life of each, `lives` all of them. The chief comes
    last: none of the others can be late for asynchronous steps that one alone would soon have done.
    """

    def __init__(self, folder, plan):
        chief_last = sorted(plan.names(), key=lambda name: name == CHIEF)
        super().__init__(folder, dataclasses.replace(plan, order=chief_last))
        self.lives = {}
        self.told = {}  # log of a life of a worker: Progress

    def before(self, name):
        """Words of a command that becomes the task."""
        return ()

    def start(self, name, *more, label=None):
        lives = self.lives.setdefault(name, [])
        label = label or f"{name}-life-{len(lives) + 1}"
        task = super().start(name, *more, label=label, before=self.before(name))
        self.tasks[name] = self.tasks.pop(label)
        lives.append(task)
        if name in self.workers():
            self.told[task.path] = Progress(task.path)
        return task

    def workers(self):
        return [f"worker/{i}" for i in range(self.plan.workers)]

    def servers(self):
        return [f"ps/{i}" for i in range(self.plan.ps)]

    def kill_task(self, name):
        """As the system does when memory is short."""
        self.kill_tasks([name])

    def kill_tasks(self, names):
        for name in names:
            self.tasks[name].process.send_signal(signal.SIGKILL)
        for name in names:
            self.tasks[name].process.wait(LIMIT_S)
            self.assert_ended_by([name], KILLED)

    def hold_up(self, name):
        """It stands still."""
        task = self.tasks[name]
        task.process.send_signal(signal.SIGSTOP)
        self.wait_until(lambda: task.has_ended() or task.is_held_up(), f"{name} to stand still")
        self.assert_ended_by([name])

    def go_on(self, name):
        """After it was held up."""
        self.tasks[name].process.send_signal(signal.SIGCONT)

    @contextlib.contextmanager
    def standstill(self):
        """What happens inside takes no step of the run, however long it lasts: every step needs ps/1."""
        self.hold_up("ps/1")
        yield
        self.go_on("ps/1")

    def start_until_here(self, name):
        """Until ps/0, which says so with --log_level=debug, has seen it."""
        def count():
            return self.text_of("ps/0").count(f"{name} is here")
        was = count()
        self.start(name)
        self.wait_until(lambda: count() > was, f"{name} to be there")

    def restart(self, names):
        """All of them die, then all of them live again, as a supervisor would have it."""
        self.kill_tasks(names)
        for name in names:
            self.start(name)

    def assert_ended_by(self, names, *codes):
        """Those that have ended."""
        found = {name: self.tasks[name].process.poll() for name in names}
        others = {name: code for name, code in found.items() if code not in (None, *codes)}
        if others:
            kind = AssertionError if any(others.values()) else Over
            raise kind(f"ended too early: {others}\n{self.story()}")

    def kill(self):
        for lives in self.lives.values():
            for task in lives:
                task.kill()
        super().kill()

    def text_of(self, name):
        """Of all its lives."""
        return "".join(task.text() for task in self.lives[name])

    def steps_of(self, name):
        """The global steps that it told of, in the order of its words, in all its lives."""
        return [int(step) for step in PROGRESS.findall(self.text_of(name))]

    def progress(self):
        """How many steps were told of, by all workers in all their lives."""
        return sum(told.look().count for told in self.told.values())

    def step(self):
        """The newest that a living worker has told of."""
        return max(self.told[self.tasks[name].path].look().step for name in self.workers())

    def assert_alive(self):
        self.assert_ended_by(self.tasks, KILLED)

    def wait_until_alive(self, is_true, what):
        """The same as wait_until, but nobody may end meanwhile."""
        def look():
            found = is_true()
            if not found:
                self.assert_alive()
            return found
        self.wait_until(look, what)

    def wait_for_progress(self, lines, limit_step=None):
        """So many more lines of steps, or until the run comes to the step."""
        goal = self.progress() + lines
        self.wait_until_alive(
            lambda: self.progress() >= goal or (limit_step and self.step() >= limit_step),
            f"{lines} lines of progress")

    def wait_for_step(self, step):
        self.wait_until_alive(lambda: self.step() >= step, f"step {step}")

    def wait_for_line(self, name, pattern):
        """In any of its lives; returns the match."""
        found = []

        def look():
            found[:] = [match for match in [re.search(pattern, self.text_of(name))] if match]
            return found
        self.wait_until(look, f"{pattern!r} of {name}")
        return found[0]

    def checkpoint_steps(self):
        folder = os.path.join(self.folder, "run")
        names = os.listdir(folder) if os.path.isdir(folder) else []
        return sorted(int(name[len("model.ckpt-"):-len(".index")]) for name in names
                      if name.startswith("model.ckpt-") and name.endswith(".index"))

    def look(self):
        """What changes while a run gets on."""
        return self.progress(), [task.has_ended() for task in self.tasks.values()]

    def wait(self):
        """A busy machine may be slow, as long as it gets on: the limit is on standing still."""
        seen = self.look()
        while not all(seen[1]):
            self.wait_until(lambda was=seen: self.look() != was, "a step more, or all to end")
            seen = self.look()
        return self.codes()

    def story(self):
        return "\n".join(f"--- {name}, life {life}, code {task.code()}:\n{task.text()[-6000:]}"
                         for name, lives in sorted(self.lives.items())
                         for life, task in enumerate(lives, 1))


def dtrain(cluster, *words):
    """A command of the binary, in the folder of the cluster: code, and what it printed."""
    ended = program.run(words, cluster.folder, stderr=subprocess.STDOUT)
    return ended.returncode, ended.stdout


def leftovers(cluster):
    """What a dead run could leave in the folder: shards that nobody joined, files half written. The
    token of a chief that was killed stays until the next one ends."""
    known = re.compile(r"checkpoint|\.ended|(?:measured|last_spec|settings)\.json|model\.ckpt-\d+\.(index|data-\d{5}-of-\d{5})|events\.out\..*|eval")
    found = [name for name in sorted(os.listdir(os.path.join(cluster.folder, "run")))
             if not known.fullmatch(name)]
    was_killed = cluster.lives[CHIEF][-1].code() == KILLED
    return [name for name in found if not (was_killed and name == ".token")]


class Life(ClusterCase):
    """A test with clusters that are disturbed."""

    cluster_of = LivingCluster
    references = {}  # spec: the folder of an undisturbed run

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="dtrain-test-")
        cls.addClassCleanup(folder.cleanup)
        cls.addClassCleanup(cls.references.clear)
        cls.shared = folder.name

    def begin(self, plan, folder=None, have_stepped=all):
        """A cluster of which every worker has made a step, or any."""
        cluster = self.cluster_of(folder or self.folder, plan)
        self.addCleanup(cluster.kill)
        cluster.start_planned()
        cluster.wait_until(lambda: have_stepped(map(cluster.steps_of, cluster.workers())) or
                           any(task.has_ended() for task in cluster.tasks.values()), "first steps")
        return cluster

    def disturb(self, plan, blow):
        """A cluster that has made its first checkpoint and 50 steps, and then blow(cluster)."""
        for _ in range(ATTEMPTS_MAX):
            cluster = self.begin(plan)
            try:
                cluster.wait_for_step(50)
                cluster.wait_until(lambda: any(word in cluster.text_of(CHIEF) for word in ("saved ", LEADS)),
                                   "a first checkpoint of the chief")
                if LEADS in cluster.text_of(CHIEF):
                    raise Over(f"there is another chief\n{cluster.story()}")
                blow(cluster)
                return cluster
            except Over as over:
                was = over
                cluster.kill()
        raise was

    def restart(self, plan, names):
        """Such a cluster of which these died and live again. Without a worker the others continue, asynchronously: they
        wait until it is back, so that there is something left to do for it."""
        def blow(cluster):
            workers = [name for name in names if name in cluster.workers()]
            if plan.changes["train.mode"] != "async" or workers != names:
                return cluster.restart(names)
            cluster.kill_tasks(names)
            with cluster.standstill():
                for name in names:
                    cluster.start(name)
                    cluster.wait_until(lambda: cluster.tasks[name].has_ended() or
                                       f"{name} is back, in another life" in cluster.text_of("ps/0"), f"{name} to be back")
                    cluster.assert_ended_by([name])  # at once, where the job was over when it was killed
        return self.disturb(plan, blow)

    def assert_ends(self, cluster, code=0):
        """All by themselves, with this code, and soon after one another."""
        codes = cluster.wait()
        self.assertEqual(codes, dict.fromkeys(codes, code), cluster.story())
        ends = [task.ended_at for task in cluster.tasks.values()]
        self.assertLess(max(ends) - min(ends), END_S, cluster.story())

    def assert_checkpoint(self, cluster, step):
        """The newest one is whole, of this step, and nothing lies beside it."""
        code, text = dtrain(cluster, "checkpoint", "verify", "run")
        self.assertEqual(code, 0, text + cluster.story())
        self.assertRegex(text, rf"model\.ckpt-{step}: ok, global step {step},", cluster.story())
        self.assertEqual(leftovers(cluster), [], cluster.story())

    def assert_done(self, cluster):
        """A run that went to its last step, whatever happened to it."""
        last_step = cluster.plan.changes["train.last_step"]
        self.assert_ends(cluster)
        self.assert_checkpoint(cluster, last_step)
        result = cluster.result()
        self.assertEqual((result["code"], result["step"]), (0, last_step), cluster.story())
        self.assert_rows(cluster, result["rows"])
        return result

    def assert_rows(self, cluster, rows):
        """Each was used once, as far as nobody was done without and nothing dropped."""
        changes, spec = cluster.plan.changes, json.loads(cluster.read("spec.json"))
        is_sync = changes["train.mode"] == "sync"
        drops = {"train.replicas_to_aggregate", "train.max_staleness"} & set(changes)
        pushes = changes["train.last_step"] * (cluster.plan.workers if is_sync else 1)
        wanted = pushes * spec["data"]["batch_size"]
        self.assertEqual(rows["twice"], 0, cluster.story())
        if "continues without" in cluster.story() or drops:
            self.assertLessEqual(rows["used"], wanted, cluster.story())
        else:
            self.assertEqual(rows["used"], wanted, cluster.story())
            if is_sync:  # else a worker may be more epochs behind than are kept open
                self.assertEqual((rows["lost"], rows["late"]), (0, 0), cluster.story())

    def reference(self, plan):
        """The folder of the checkpoints of the same run without any trouble."""
        key = json.dumps(plan.changes, sort_keys=True)
        if key not in self.references:
            cluster = self.begin(dataclasses.replace(plan, flags=LIMITS), self.shared)
            self.assert_done(cluster)
            self.references[key] = os.path.join(cluster.folder, "run")
        return self.references[key]

    def differences(self, cluster, reference):
        """Variables, slots and step that are not the reference's bit for bit. Ledgers name lives,
        which are never the same."""
        code, text = dtrain(cluster, "checkpoint", "diff", "run", reference)
        self.assertIn(code, (0, 1), text)
        return [line for line in text.splitlines()
                if not line.startswith(("dtrain/ledger/", "equal:"))]
