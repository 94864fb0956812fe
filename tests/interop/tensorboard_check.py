#!/usr/bin/env python3
"""Reads a folder of event files as TensorBoard does, and says what is in it.

    tensorboard_check.py LOGDIR

Run by hand, in a virtual environment with tensorboard (pip install tensorboard). A folder to try it
on: build/tests/core/train/summary/summary_sample LOGDIR. Every record of every file is read with its checksums;
then each run is loaded with TensorBoard's own reader and its own conversion to the newer forms. Exits
1 where something cannot be read, where the steps of a tag do not increase, where a histogram's
numbers do not fit each other, or where an edge of a graph leads nowhere.
"""
import os
import struct
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # TensorBoard loads TensorFlow where it is

# pylint: disable=wrong-import-position
from tensorboard import data_compat, dataclass_compat
from tensorboard.backend.event_processing import event_accumulator, event_file_loader, io_wrapper
from tensorboard.compat.proto import graph_pb2
from tensorboard.util import tensor_util

HEADER_BYTES, TRAILER_BYTES = 12, 4
EVERYTHING = {kind: 0 for kind in ("scalars", "histograms", "tensors", "images", "audio",
                                   "compressedHistograms")}


def check_framing(path):
    """TensorBoard's reader passes over a broken end in silence; here it is an error."""
    with open(path, "rb") as file:
        data = file.read()
    at = records = 0
    while at < len(data):
        if at + HEADER_BYTES > len(data):
            yield f"{path}: {len(data) - at} bytes after record {records}"
            return
        at += HEADER_BYTES + struct.unpack_from("<Q", data, at)[0] + TRAILER_BYTES
        records += 1
    if at != len(data):
        yield f"{path}: record {records} is cut off"
    read = sum(1 for _ in event_file_loader.RawEventFileLoader(path).Load())
    if read != records:
        yield f"{path}: TensorBoard reads {read} of {records} records"


def check_steps(run, tag, events):
    steps = [event.step for event in events]
    if any(later <= earlier for earlier, later in zip(steps, steps[1:])):
        yield f"{run}: the steps of {tag} do not increase: {steps}"


def check_scalars(run, accumulator):
    for tag in accumulator.Tags()["scalars"]:
        events = accumulator.Scalars(tag)
        print(f"  scalar {tag}: {len(events)} points, steps {events[0].step} to {events[-1].step}, "
              f"{events[0].value:.6g} to {events[-1].value:.6g}")
        yield from check_steps(run, tag, events)


def check_histogram(run, tag, event):
    value = event.histogram_value
    where = f"{run}: {tag} at step {event.step}"
    if len(value.bucket) != len(value.bucket_limit):
        yield f"{where}: {len(value.bucket)} buckets, {len(value.bucket_limit)} limits"
    if sum(value.bucket) != value.num:
        yield f"{where}: the buckets hold {sum(value.bucket)} of {value.num} values"
    if sorted(value.bucket_limit) != list(value.bucket_limit):
        yield f"{where}: the limits are not sorted"
    if value.num and not value.min * value.num <= value.sum <= value.max * value.num:
        yield f"{where}: the mean is not between minimum and maximum"


def check_histograms(run, accumulator):
    for tag in accumulator.Tags()["histograms"]:
        events = accumulator.Histograms(tag)
        last = events[-1].histogram_value
        print(f"  histogram {tag}: {len(events)} points, the last of {last.num:.0f} values from "
              f"{last.min:.6g} to {last.max:.6g}")
        yield from check_steps(run, tag, events)
        for event in events:
            yield from check_histogram(run, tag, event)


def check_curve(run, tag, curve):
    """True and false positives, true and false negatives, precision, recall, by threshold."""
    print(f"  pr_curve {tag}: {curve.shape[1]} thresholds, recall {curve[5][0]:.6g} to {curve[5][-1]:.6g}")
    if curve.shape[0] != 6 or any(curve[5][1:] > curve[5][:-1]):
        yield f"{run}: {tag} is no curve: shape {curve.shape}"


def check_texts(run, accumulator):
    for tag in accumulator.Tags()["tensors"]:
        plugin = accumulator.SummaryMetadata(tag).plugin_data.plugin_name
        events = accumulator.Tensors(tag)
        yield from check_steps(run, tag, events)
        if plugin == "pr_curves":
            yield from check_curve(run, tag, tensor_util.make_ndarray(events[-1].tensor_proto))
            continue
        if plugin != "text":
            yield f"{run}: {tag} is a tensor of plugin \"{plugin}\""
            continue
        text = tensor_util.make_ndarray(events[-1].tensor_proto).item().decode("utf-8")
        print(f"  text {tag}: {len(events)} points, the last of {len(text)} characters: "
              f"{text.splitlines()[0] if text else ''}")


def check_edges(run, graph):
    names = [node.name for node in graph.node]
    if len(set(names)) != len(names):
        yield f"{run}: two nodes of the graph have one name"
    for node in graph.node:
        for name in node.input:
            if name.lstrip("^").split(":")[0] not in set(names):
                yield f"{run}: {node.name} reads {name}, which is not there"


def check_graph(run, accumulator):
    if not accumulator.Tags()["graph"]:
        return
    graph = graph_pb2.GraphDef.FromString(accumulator.Graph().SerializeToString())
    print(f"  graph: {len(graph.node)} nodes")
    for node in graph.node:
        if node.op == "VariableV2":
            dims = [dim.size for dim in node.attr["shape"].shape.dim]
            print(f"    {node.device} {node.name} {dims}")
    yield from check_edges(run, graph)


def check_conversion(path):
    """What the pages are drawn from: legacy summaries become tensors of known plugins."""
    metadata, values = {}, 0
    for event in event_file_loader.LegacyEventFileLoader(path).Load():
        converted = data_compat.migrate_event(event)
        for migrated in dataclass_compat.migrate_event(converted, metadata):
            values += len(migrated.summary.value)
            for value in migrated.summary.value:
                if not value.HasField("tensor"):
                    yield f"{path}: {value.tag} is not converted"
    print(f"  {os.path.basename(path)}: {values} values for the pages")


def check_run(logdir, folder):
    run = os.path.relpath(folder, logdir)
    print(f"run {run}")
    for name in sorted(os.listdir(folder)):
        if "tfevents" in name:
            path = os.path.join(folder, name)
            yield from check_framing(path)
            yield from check_conversion(path)
    accumulator = event_accumulator.EventAccumulator(folder, size_guidance=EVERYTHING)
    accumulator.Reload()
    for check in (check_scalars, check_histograms, check_texts, check_graph):
        yield from check(run, accumulator)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    folders = sorted(io_wrapper.GetLogdirSubdirectories(sys.argv[1]))
    complaints = [] if folders else [f"{sys.argv[1]}: no event files below"]
    for folder in folders:
        complaints += check_run(sys.argv[1], folder)
    print("\n".join(complaints) or "everything is read")
    sys.exit(1 if complaints else 0)


if __name__ == "__main__":
    main()
