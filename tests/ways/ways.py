#!/usr/bin/env python3
"""Every pair of features that may stand together, in whole runs of the program that must agree with each other.

    ways.py                      all pairs, as the tests run them
    ways.py --random 500 --seed 7     cases drawn at random, by hand
    ways.py --case 17 [--keep DIR]    one of them again, and its files

DTRAIN_BINARY names the program. A case (made.py) is a small spec and a cluster. Its run must end with 0, have used each
row of its epoch once, and come to
  - the values that another layout comes to with as many workers: other numbers of ps, another transport, parts of a push
    that travel early or do not, one process instead of one worker (in sync, and of one worker);
  - the values of a run that was stopped half way and resumed (the same);
  - the numbers that `dtrain eval` finds in its last checkpoint.
What reference.py knows is trained there, too, in float64. What is refused must be refused by the words that features.py has for it.
"""
import argparse
import concurrent.futures
import json
import math
import re
import shutil
import struct
import sys
import tempfile
import zipfile
from pathlib import Path

import features
import made
import pairs
import program
import reference

JOBS = 2
NEAR = 3e-3  # float32 after an epoch beside float64
PART = re.compile(r"/part_\d+/(keys|rows)$")  # of a growing table


class Wrong(Exception):
    """What a case has come to, and should not have."""


def is_certain(case):
    """Does the seed alone decide what comes? Not where gradients are applied as they come."""
    return case["mode"] == "sync" or made.workers(case) == 1


def has_rounding(case):
    """Of gradients or values on their way, of which one process has none."""
    return case["wire"] != "float32" or case["wire_values"] != "float32"


def run(folder, *words):
    ended = program.run(words, folder)
    if ended.returncode != 0:
        raise Wrong(f"dtrain {' '.join(map(str, words))}: {ended.returncode}\n{ended.stderr[-2000:]}")
    return ended


def train(folder, name, *words):
    """A run whose checkpoints lie in folder/name; what its result says."""
    run(folder, *words, f"--checkpoint_dir={name}", f"--result={name}.json", "spec.json")
    return json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))


def values(folder, name):
    """{tensor: its bytes} of the newest checkpoint, without what the program keeps of its own there."""
    run(folder, "checkpoint", "export", name, f"{name}.npz")
    with zipfile.ZipFile(folder / f"{name}.npz") as exported:
        return joined({entry[:-len(".npy")]: exported.read(entry) for entry in exported.namelist()
                       if not entry.startswith("dtrain/")})


def npy(data):
    """Rows of a numpy array as bytes."""
    head, = struct.unpack_from("<H", data, 8)
    begin, shape = 10 + head, re.search(r"'shape': \((\d+)", data[10:10 + head].decode())
    count = int(shape.group(1))
    size = (len(data) - begin) // max(1, count)
    return [data[begin + i * size:begin + (i + 1) * size] for i in range(count)]


def joined(tensors):
    """Rows of growing tables, in parts as many as there are ps, as one: in the order of their keys."""
    whole = {name: data for name, data in tensors.items() if not PART.search(name)}
    for name in sorted(tensors):
        part = PART.search(name)
        if part and part.group(1) == "rows":
            table = next(f"{above}" for above in above_of(name[:part.start()]) if f"{above}{name[part.start():-4]}keys" in tensors)
            keys = npy(tensors[f"{table}{name[part.start():-4]}keys"])
            whole.setdefault(name[:part.start()], []).extend(zip(keys, npy(tensors[name])))
    return {name: sorted(data) if isinstance(data, list) else data for name, data in whole.items()}


def above_of(name):
    """a/b/c: a/b/c, then a/b, then a: a slot's rows have the keys of its variable."""
    return ["/".join(name.split("/")[:count]) for count in range(name.count("/") + 1, 0, -1)]


def assert_same(what, one, other):
    if one.keys() != other.keys():
        raise Wrong(f"{what}: other tensors: {sorted(one.keys() ^ other.keys())}")
    differing = [name for name in one if one[name] != other[name]]
    if differing:
        raise Wrong(f"{what}: other values of {', '.join(differing)}")


def assert_counted(case, result):
    """Every row of the epoch once; what was too old was dropped, and told."""
    rows = result.get("rows")
    if result["verdict"] != "done" or not rows:
        raise Wrong(f"verdict {result['verdict']}, rows {rows}")
    may_lose = case["staleness"] == "bounded" and case["mode"] == "async"
    is_whole = case["end"] == "epochs" and not case["follow"] and not may_lose
    if rows["twice"] or rows["lost"] and not may_lose or (is_whole and rows["used"] != made.ROWS):
        raise Wrong(f"rows of the epoch: {rows}")


def other_layout(case):
    """Words of a cluster of as many workers that shares nothing else with that of the case."""
    if case["cluster"] == "single":
        return ["--local_ps=2", "--local_workers=1", "--transport=tcp", "--parts=always"]
    if case["cluster"] == "1x1" and not has_rounding(case) and case["replication"] == "between_graph":
        return []
    ps = 2 if case["cluster"].startswith("1") else 1
    transport = "shm" if case["transport"] == "tcp" else "tcp"
    parts = "never" if case["parts"] == "always" or transport == "shm" else "always"
    return [f"--local_ps={ps}", f"--local_workers={made.workers(case)}", f"--transport={transport}", f"--parts={parts}"]


def depends_on_ps(case):
    """The norm of a gradient is summed part by part, so that bits follow the parts (examples/README.md), and with one ps or
    balanced the parts follow the number of ps."""
    return case["clip"] in ("norm", "global_norm") and case["partitioner"] in ("default", "balanced", "mod")


def compare_layouts(case, folder, expected):
    if has_rounding(case) and case["cluster"] == "single" or depends_on_ps(case) or case["best"] == "restored":
        return  # which checkpoints are among the best depends on how long writing one takes
    train(folder, "other", *other_layout(case))
    assert_same("another layout", expected, values(folder, "other"))


def compare_resumed(case, folder, expected, result):
    """Stopped half way and resumed. Residuals of rounding are not in checkpoints."""
    half = result["step"] // 2
    is_of_one_life = case["follow"] or case["daily"] or case["best"] == "restored"  # a day has its epochs; for best as above
    if half == 0 or is_of_one_life or case["wire"] != "float32":
        return
    stop = ["--set=train.epochs=0", "--set=train.num_steps=0"]
    train(folder, "again", *made.flags(case), *stop, f"--set=train.last_step={half}")
    rest = [*stop, f"--set=train.last_step={result['step']}"] if case["end"] == "num_steps" else []
    resumed = train(folder, "again", *made.flags(case), *rest)
    assert_counted(case, resumed)
    if resumed["step"] != result["step"]:
        raise Wrong(f"resumed: ends at step {resumed['step']}, not {result['step']}")
    assert_same("stopped and resumed", expected, values(folder, "again"))


def compare_evaluated(case, folder, result):
    rounds = case["wire_values"] != "float32"  # of which the run measures the rounded values
    is_near_only = case["best"] == "restored" and case["mode"] == "async"  # saved within a few updates of what was evaluated
    if case["evaluation"] == "none" or rounds or is_near_only:
        return
    run(folder, "eval", "--checkpoint=run", "--result=eval.json", "spec.json")
    found = json.loads((folder / "eval.json").read_text(encoding="utf-8"))["metrics"]
    told = result["metrics"]
    is_right = found["loss"] <= told["loss"] if case["best"] == "restored" else found == told  # the run tells its last values
    if not is_right:
        raise Wrong(f"eval of the checkpoint: {found}, the run itself: {told}")


def matrices(tensors):
    """{variable: [row][column]} of float32 arrays of one or two axes."""
    told = {}
    for name, data in tensors.items():
        shape = [int(one) for one in re.search(r"'shape': \(([\d, ]*)\)", data[10:200].decode("latin1")).group(1).split(",") if one.strip()]
        if b"'<f4'" in data[:64] and 1 <= len(shape) <= 2:
            columns = shape[-1]
            floats = struct.unpack(f"<{math.prod(shape)}f", data[10 + struct.unpack_from("<H", data, 8)[0]:])
            told[name] = [list(floats[at:at + columns]) for at in range(0, len(floats), columns)]
    return told


def is_near(one, other):
    return abs(one - other) <= NEAR * (1 + abs(other))


def try_reference(case, folder):
    """Raises Wrong where float32 and the program come to something else than float64 and reference.py."""
    spec = reference.spec_of(case, folder)
    (folder / "spec.json").write_text(json.dumps(spec, indent=1), encoding="utf-8")
    result = train(folder, "run")
    first = matrices(values(folder, "run/model.ckpt-0"))
    got = matrices(values(folder, f"run/model.ckpt-{result['step']}"))
    names = [name for name in first if name.split("/")[-1] in ("kernel", "bias", "weights", "embedding_weights")]
    wanted = {name: first[name] for name in names}
    loss, (least, most) = reference.train(spec, case, wanted)
    for name in names:
        for got_row, wanted_row in zip(got[name], wanted[name]):
            if not all(map(is_near, got_row, wanted_row)):
                raise Wrong(f"float64: {name}: {got_row}, expected {wanted_row}")
    told = [value for name, value in result["metrics"].items() if name != "loss"] or [result["metrics"]["loss"]]
    if not is_near(result["metrics"]["loss"], loss) or not is_near(told[0], min(max(told[0], least), most)):
        raise Wrong(f"float64: {result['metrics']}, expected loss {loss}, {case['metric']} {least} to {most}")


def try_case(case, folder):
    """Raises Wrong."""
    (folder / "spec.json").write_text(json.dumps(made.spec(case, folder), indent=1), encoding="utf-8")
    result = train(folder, "run", *made.flags(case))
    assert_counted(case, result)
    compare_evaluated(case, folder, result)
    if is_certain(case):
        expected = values(folder, "run")
        compare_layouts(case, folder, expected)
        compare_resumed(case, folder, expected, result)


def try_refusal(begin, words, folder):
    """A case that has these levels, and may stand in all else, is refused so."""
    def may_stand(case, name=None):
        return features.can_be_said(case) and not [other for other in features.refusals(case) if other != words]
    case = pairs.random_cases(features.FACTORS, may_stand, 1, 1, begin)[0]
    (folder / "spec.json").write_text(json.dumps(made.spec(case, folder)), encoding="utf-8")
    ended = program.run(["check", *made.flags(case), "spec.json"], folder)
    if ended.returncode != program.BAD_INPUT or words not in ended.stderr:
        raise Wrong(f"not refused by {words!r}: {ended.returncode}\n{ended.stderr[-1000:]}")


TRIES = {"case": try_case, "float64": try_reference, "refusal": try_refusal}


def attempt(number, what, keep):
    """None, or what went wrong in it."""
    folder = Path(tempfile.mkdtemp(prefix="dtrain-test-"))
    try:
        TRIES[what[0]](*what[1:], folder)
        return None
    except (Wrong, AssertionError) as wrong:
        return f"case {number}: {what[0]} {what[1:]}\n{wrong}\n"
    finally:
        if keep:
            shutil.copytree(folder, keep, dirs_exist_ok=True)
        shutil.rmtree(folder, ignore_errors=True)


def assert_all_known():
    """Nothing that the program lists is without a level here."""
    with tempfile.TemporaryDirectory() as folder:
        lacking = features.missing_in(json.loads(run(folder, "schema").stdout))
    if lacking:
        sys.exit(f"ways.py: features.py has no level for {lacking}")


def run_all(chosen, jobs, keep):
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        wrong = [told for told in pool.map(lambda one: attempt(*one, keep), chosen) if told]
    print(*wrong, sep="\n")
    print(f"{len(chosen) - len(wrong)} passed, {len(wrong)} failed")
    return 1 if wrong else 0


def chosen_cases(told):
    """(which kind of try, what of it), ..."""
    if told.random:
        drawn = pairs.random_cases(features.FACTORS, features.may_stand, told.random, told.seed)
        return [("case", case) for case in drawn]
    cover = pairs.Cover(features.FACTORS, features.may_stand, told.seed)
    cases = {"case": cover.cases(), "float64": pairs.Cover(reference.FACTORS, features.may_stand, told.seed).cases()}
    print(f"{len(cover.wanted)} pairs of {len(features.FACTORS)} factors in {len(cases['case'])} cases; "
          f"{len(cover.apart)} more stand nowhere beside a third, {len(list(features.refused()))} are refused")
    return [(kind, case) for kind, some in cases.items() for case in some] + \
           [("refusal", begin, words) for begin, words in features.refused()]


def main():
    words = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    words.add_argument("--random", type=int, default=0, help="so many cases drawn at random")
    words.add_argument("--seed", type=int, default=1)
    words.add_argument("--case", type=int, help="this one alone")
    words.add_argument("--keep", help="where the files of the case stay")
    words.add_argument("--jobs", type=int, default=JOBS)
    words.add_argument("--part", default="0/1", help="K/N: each N-th case, from the K-th")
    told = words.parse_args()
    program.need_binary()
    assert_all_known()
    cases = list(chosen_cases(told))
    part, parts = map(int, told.part.split("/"))
    chosen = [one for one in enumerate(cases) if one[0] % parts == part]
    sys.exit(run_all([one for one in chosen if told.case in (None, one[0])], told.jobs, told.keep))


if __name__ == "__main__":
    main()
