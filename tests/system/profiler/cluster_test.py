#!/usr/bin/env python3
"""Timelines of clusters of real processes: what they show, and that all clocks are one.

A cluster trains without end until the timelines that a test wants are there, so nothing hangs on
how fast it is.
"""
import collections
import json
import os
import signal

import program
from program.cluster import SPEC, ClusterCase, Plan

TASKS = ["worker/0", "worker/1", "ps/0", "ps/1"]  # in the order of their rows
WORKERS, PS = TASKS[:2], TASKS[2:]
STEPS = 5  # of a timeline
NODES = ["hidden", "logits"]  # that compute; what only looks at another's values takes no time
ROUNDING_US = 0.0015  # of two times, each to a thousandth

Span = collections.namedtuple("Span", "task category name begin end args")


def plan_of(mode, **profiler):
    hook = {"type": "profiler", "steps": STEPS, "output_dir": "lines", **profiler}
    return Plan(changes={"train.mode": mode, "train.hooks": [hook]})


class Timeline:
    """One file, read back."""

    def __init__(self, path):
        with open(path, encoding="utf-8") as file:
            self.json = json.load(file)
        self.about = self.json["otherData"]
        self.missing = [one["task"] for one in self.about["missing"]]
        self.error = {one["task"]: one["error_us"] for one in self.about["tasks"]}
        events = self.json["traceEvents"]
        self.rows = {event["pid"]: event["args"]["name"] for event in events
                     if event["name"] == "process_name"}
        self.spans = [Span(self.rows[e["pid"]], e["cat"], e["name"], e["ts"], e["ts"] + e["dur"],
                           e["args"]) for e in events if e["ph"] == "X"]

    def of(self, task, category, **args):
        return [s for s in self.spans if s.task == task and s.category == category and
                all(s.args.get(key) == value for key, value in args.items())]

    def between(self, task, other):
        """By how much times of the two may be wrong against each other."""
        return self.error[task] + self.error[other] + ROUNDING_US

    def steps(self, task):
        return {span.args["step"]: span for span in self.of(task, "step")}


class ProfilerCase(ClusterCase):
    def paths(self, cluster):
        folder = os.path.join(cluster.folder, "lines")
        names = os.listdir(folder) if os.path.isdir(folder) else []
        whole = [name for name in names if name.endswith(".json")]
        whole.sort(key=lambda name: int(name[len("timeline-"):-len(".json")]))
        return [os.path.join(folder, name) for name in whole]

    def wait_for_timeline(self, cluster, is_it, what):
        """The first one that is so; files never change once they are there."""
        looked_at, found = set(), []

        def look():
            for path in self.paths(cluster):
                if path not in looked_at:
                    looked_at.add(path)
                    timeline = Timeline(path)
                    if is_it(timeline):
                        found.append(timeline)
            return found or cluster.tasks["worker/0"].has_ended()

        cluster.wait_until(look, what)
        self.assertTrue(found, f"ended without {what}\n{cluster.story()}")
        return found[0]

    def first_timeline(self, mode):
        """Of all tasks of a cluster that then ends well. Asynchronous, the chief may be through
        with one before another worker has joined; synchronous, the first one has everybody."""
        cluster = self.start_endless(plan_of(mode, save_steps=50))
        timeline = self.wait_for_timeline(cluster, lambda t: mode == "sync" or not t.missing,
                                          "a timeline of all")
        cluster.tasks["ps/0"].process.send_signal(signal.SIGTERM)
        self.assert_codes(cluster, 128 + signal.SIGTERM)
        self.assertEqual(timeline.missing, [], cluster.story())
        return timeline

    # ---- what holds in both modes ----

    def check_rows(self, timeline):
        self.assertEqual(list(timeline.rows.values()), TASKS)
        self.assertEqual([one["task"] for one in timeline.about["tasks"]], TASKS)
        self.assertEqual([one["dropped"] for one in timeline.about["tasks"]], [0] * len(TASKS))
        self.assertEqual(timeline.error["worker/0"], 0)
        for task in TASKS[1:]:
            self.assertGreater(timeline.error[task], 0)

    def check_window(self, timeline):
        window = timeline.about["window_us"]
        self.assertGreater(window, 0)
        for span in timeline.spans:
            error = timeline.error[span.task] + max(timeline.error.values()) + ROUNDING_US
            self.assertGreaterEqual(span.end, span.begin, span)
            self.assertGreaterEqual(span.begin, -error, span)
            self.assertLessEqual(span.end, window + error, span)

    def check_steps(self, timeline):
        """What a worker does for a step lies within it; its steps follow each other."""
        for task in WORKERS:
            steps = timeline.steps(task)
            self.assertEqual(len(timeline.of(task, "step")), STEPS)
            self.assertEqual(len(steps), STEPS)
            self.assertGreaterEqual(min(steps), timeline.about["first_step"])
            ordered = [steps[number] for number in sorted(steps)]
            for earlier, later in zip(ordered, ordered[1:]):
                self.assertLessEqual(earlier.end, later.begin + ROUNDING_US)
            for span in timeline.spans:
                if span.task == task:
                    step = steps[span.args["step"]]
                    self.assertGreaterEqual(span.begin, step.begin - ROUNDING_US, span)
                    self.assertLessEqual(span.end, step.end + ROUNDING_US, span)

    def check_computation(self, timeline):
        """Every node once forward and once backward, in this order, after the batch has come.

        A worker that gives a step up before it computes waits for its batch again."""
        names = NODES + ["loss"] + NODES[::-1]
        for task in WORKERS:
            for number in timeline.steps(task):
                spans = [s for category in ("data", "forward", "backward")
                         for s in timeline.of(task, category, step=number)]
                seen = [s.name for s in sorted(spans, key=lambda s: s.begin)]
                self.assertEqual(seen[-len(names):], names)
                self.assertEqual(set(seen[:-len(names)]), {"wait for the batch"})
                self.assertEqual({s.args.get("op") for s in spans if s.name in NODES}, {"dense"})

    def exchanges(self, timeline):
        """Every push with its wait: (worker, ps, step number, push, wait)."""
        for worker in WORKERS:
            for number in timeline.steps(worker):
                for ps in PS:
                    pushes = timeline.of(worker, "push", step=number, ps=ps)
                    waits = timeline.of(worker, "wait", step=number, ps=ps)
                    self.assertEqual((len(pushes), len(waits)), (1, 1), (worker, number, ps))
                    yield worker, ps, number, pushes[0], waits[0]

    def check_exchange(self, timeline):
        for worker, ps, number, push, wait in self.exchanges(timeline):
            self.assertGreater(push.args["bytes"], 0)
            self.assertAlmostEqual(push.end, wait.begin, delta=ROUNDING_US)
            self.assertLess(push.end, wait.end)
            spans = timeline.of(ps, "receive", worker=worker, bytes=push.args["bytes"])
            self.assertTrue(self.those_between(timeline, spans, push, wait), (worker, ps, number))

    def those_between(self, timeline, spans, push, wait):
        """As far as the clocks are known."""
        return [span for span in spans
                if span.begin >= push.begin - timeline.between(push.task, span.task) and
                span.end <= wait.end + timeline.between(push.task, span.task)]

    def check_timeline(self, timeline):
        self.check_rows(timeline)
        self.check_window(timeline)
        self.check_steps(timeline)
        self.check_computation(timeline)
        self.check_exchange(timeline)


class Timelines(ProfilerCase):
    def test_synchronous_updates_lie_between_every_push_and_its_answer(self):
        timeline = self.first_timeline("sync")
        self.check_timeline(timeline)
        self.assertEqual(timeline.about["first_step"] % 50, 0)
        for _, ps, number, push, wait in self.exchanges(timeline):
            applied = timeline.of(ps, "apply", step=number)
            self.assertEqual([span.args["gradients"] for span in applied], [len(WORKERS)])
            received = timeline.of(ps, "receive", worker=push.task, step=number)
            self.assertEqual(len(received), 1, (push, received))
            for span in (received[0], applied[0]):
                self.assertTrue(self.those_between(timeline, [span], push, wait),
                                (push, wait, span))

    def test_asynchronous_updates_lie_between_the_push_and_its_answer(self):
        timeline = self.first_timeline("async")
        self.check_timeline(timeline)
        for worker, ps, _, push, wait in self.exchanges(timeline):
            spans = timeline.of(ps, "apply", worker=worker, gradients=1)
            self.assertTrue(self.those_between(timeline, spans, push, wait), (push, wait, spans))

    def test_all_workers_take_the_same_synchronous_steps(self):
        timeline = self.first_timeline("sync")
        first = timeline.about["first_step"]
        for task in WORKERS:
            self.assertEqual(sorted(timeline.steps(task)), list(range(first, first + STEPS)))

    def test_over_tcp_it_is_the_same(self):
        plan = plan_of("sync", save_steps=50)
        plan.flags = ["--transport=tcp"]
        cluster = self.start_endless(plan)
        self.check_timeline(self.wait_for_timeline(cluster, lambda t: True, "a timeline"))

    def test_a_worker_that_is_fed_waits_within_its_step(self):
        plan = plan_of("sync", save_steps=50)
        plan.changes["train.replication"] = "in_graph"
        timeline = self.wait_for_timeline(self.start_endless(plan), lambda t: True, "a timeline")
        self.check_window(timeline)
        self.check_steps(timeline)
        self.check_computation(timeline)

    def test_the_way_of_every_part_shows(self):
        plan = plan_of("sync", save_steps=50)
        plan.flags = ["--transport=tcp", "--parts=always"]
        flatten, hidden, logits = SPEC["model"]
        plan.changes["model"] = [flatten, {**hidden, "units": 128}, logits]  # 400 KB on ps/0 or 1
        timeline = self.wait_for_timeline(self.start_endless(plan), lambda t: True, "a timeline")
        self.check_timeline(timeline)
        parts = 0
        for worker, ps, number, _, wait in self.exchanges(timeline):
            moments = timeline.of(worker, "part", step=number, ps=ps)
            left = [span for span in moments if span.name == f"part to {ps}"]
            back = [span for span in moments if span.name == f"values from {ps}"]
            taken = timeline.of(ps, "part", step=number, worker=worker)
            self.assertEqual(sorted(span.args["bytes"] for span in taken),
                             sorted(span.args["bytes"] for span in left))
            self.assertTrue(all(span.begin <= wait.end + ROUNDING_US for span in left + back))
            parts += len(left) if back else 0
        self.assertGreater(parts, 0)

    def test_the_cut_of_a_checkpoint_shows(self):
        plan = plan_of("sync", save_steps=50, steps=45)
        plan.changes.update({"train.checkpoint_dir": "saved", "train.save_checkpoint_steps": 100})
        cluster = self.start_endless(plan)
        timeline = self.wait_for_timeline(
            cluster, lambda t: any(t.of(ps, "checkpoint") for ps in PS), "a timeline with a cut")
        self.check_window(timeline)

    def test_the_chief_says_what_its_steps_are_made_of(self):
        cluster = self.start_endless(plan_of("sync", save_steps=50))
        self.wait_for_timeline(cluster, lambda t: True, "a timeline")
        cluster.wait_for("worker/0", "hooks")  # the line is written after the file
        self.assert_says(cluster, "worker/0",
                         r"lines/timeline-\d+\.json: 5 steps in \d+\.\d\d ms: compute \d+ %, "
                         r"data \d+ %, push \d+ %, wait \d+ %, hooks \d+ %; "
                         r"hidden 0 % of the exchange\n")


class Losses(ProfilerCase):
    def test_a_worker_that_dies_is_named_and_takes_part_when_it_is_back(self):
        cluster = self.start_endless(plan_of("async", save_steps=50, steps=49))
        self.wait_for_timeline(cluster, lambda t: not t.missing, "a timeline of all")
        cluster.tasks["worker/1"].kill()
        timeline = self.wait_for_timeline(cluster, lambda t: t.missing, "a timeline without it")
        self.assertEqual(timeline.missing, ["worker/1"], cluster.story())
        self.assertEqual(list(timeline.rows.values()), ["worker/0"] + PS)
        self.check_window(timeline)
        cluster.wait_for("worker/0", "worker/1 is missing: its spans did not come in time")
        before = timeline.about["first_step"]
        cluster.start("worker/1", label="worker/1 again")
        self.wait_for_timeline(cluster, lambda t: not t.missing and t.about["first_step"] > before,
                               "a timeline of all again")

    def test_after_a_recovery_timelines_go_on(self):
        plan = plan_of("sync", save_steps=50, steps=49)
        plan.changes.update({"train.checkpoint_dir": "saved", "train.save_checkpoint_steps": 500})
        cluster = self.start_endless(plan)
        self.wait_for_timeline(cluster, lambda t: not t.missing, "a timeline of all")
        cluster.tasks["ps/1"].kill()
        cluster.start("ps/1", label="ps/1 again")
        cluster.wait_for("worker/0", "came back empty")
        came = len(self.paths(cluster))
        cluster.wait_until(lambda: len(self.paths(cluster)) > came + 1, "timelines after it")
        self.assertEqual(Timeline(self.paths(cluster)[-1]).missing, [], cluster.story())


if __name__ == "__main__":
    program.main()
