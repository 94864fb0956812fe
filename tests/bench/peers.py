"""peers.py - the same workloads by others: TensorFlow's parameter servers, PyTorch's all-reduce, and
bare servers in C.

Each is a program that the caller has: none is part of the project, none is needed.
"""
import json
import os
import re
import signal
import statistics
import subprocess
import tempfile

import environment
from measure import FOLDER, Failed
from workloads import PS, WORKERS

TENSORFLOW_LIMIT_S = 300  # its workers may look 30 s apart whether the chief is ready
TORCH_LIMIT_S = 300
BARE_LIMIT_S = 120
BARE_SPIN_US = 50
DDP_LIMIT_S = 300
DDP_PORT = 2500
DDP = os.path.join(FOLDER, "torch_ddp.py")
BARE_RATE = re.compile(r"ex/s (\d+)")
# Instruction sets that OpenBLAS wants for the kernels that it calls SkylakeX.
SKYLAKE_FLAGS = {"avx512f", "avx512bw", "avx512dq", "avx512vl"}


def run(command, limit_s, **variables):
    """What the program prints; it is ended when it takes too long."""
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True, start_new_session=True,
                               env=environment.clean(**variables))
    try:
        text, _ = process.communicate(timeout=limit_s)
    except BaseException as trouble:  # whoever ends us ends it too
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        if isinstance(trouble, subprocess.TimeoutExpired):
            raise Failed(f"{' '.join(command)}: not done after {limit_s} s") from None
        raise
    if process.returncode != 0:
        raise Failed(f"{' '.join(command)}: exit code {process.returncode}\n{text[-2000:]}")
    return text


def tensorflow(python, script, workload, mode, timing):
    """Examples/s, seconds to the first step, MiB of a ps, and the version."""
    with tempfile.TemporaryDirectory(prefix="dtrain-bench-") as folder:
        answer = os.path.join(folder, "answer")
        command = [python, script, *workload.tensorflow_options, "-b", str(workload.batch),
                   "--ps", str(PS), "--workers", str(WORKERS), "--windows", str(timing.windows),
                   "--secs", str(timing.window_s), "--json", answer]
        run(command + (["--sync"] if mode == "sync" else []), TENSORFLOW_LIMIT_S)
        with open(answer, encoding="utf-8") as file:
            found = json.loads(file.readline())
    return {"examples_per_second": found["wins"], "median": statistics.median(found["wins"]),
            "first_step_s": found["t_first"], "ps_mib": found["ps_mib"], "version": found["tf"]}


def torch(python, script, workload, timing):
    """Examples/s of PyTorch at its best here: one process of several threads, or several processes."""
    best = 0.0
    for option, processes in ("-t", 1), ("-p", WORKERS):
        with tempfile.TemporaryDirectory(prefix="dtrain-bench-") as folder:
            answer = os.path.join(folder, "answer")
            run([python, script, *workload.bounds.torch_options, "-b", str(workload.batch), option,
                 str(WORKERS), "--runs", "1", "--windows", str(timing.windows), "--secs",
                 str(timing.window_s), "--json", answer], TORCH_LIMIT_S)
            with open(answer, encoding="utf-8") as file:
                first = json.loads(file.readline())["runs"][0][0]
        best = max(best, statistics.median(first["steps_per_s"]) * processes * workload.batch)
    return best


def torch_ddp(python, hosts, spec, threads, timing):
    """Seconds of a step of PyTorch's DistributedDataParallel, a process on each of two hosts."""
    with tempfile.TemporaryDirectory(prefix="dtrain-bench-") as folder:
        answer = os.path.join(folder, "answer")
        variables = {"GLOO_SOCKET_IFNAME": hosts.DEVICE, "OMP_NUM_THREADS": str(threads)}
        first, second = ([python, "-B", DDP, spec, "--rank", str(rank), "--ranks", "2",
                          "--meet", f"{hosts.ADDRESSES[0]}:{DDP_PORT}", "--threads", str(threads),
                          "--warmup", str(timing.warmup), "--steps", str(timing.steps),
                          "--json", answer] for rank in range(2))
        hosts.start(1, second, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL, env=environment.clean(**variables))
        run([*hosts.inside(0), *first], DDP_LIMIT_S, **variables)
        with open(answer, encoding="utf-8") as file:
            return json.load(file)["step_s"]


def bare(program, transport, workload, mode, timing):
    """Examples/s of a bare server, one figure per run of one window."""
    name = workload.bare_names[transport]
    tail = [str(WORKERS), mode, str(BARE_SPIN_US), str(timing.window_s)]
    arguments = [name, str(PS), *tail] if transport == "shm" else [name, *tail, "reno"]
    variables = {"YIELD": "1"}
    if SKYLAKE_FLAGS <= processor_flags():
        variables["OPENBLAS_CORETYPE"] = "SkylakeX"
    rates = []
    for _ in range(timing.windows):
        found = BARE_RATE.search(run([program, *arguments], BARE_LIMIT_S, **variables))
        if not found:
            raise Failed(f"{program} {' '.join(arguments)}: printed no \"ex/s N\"")
        rates.append(float(found.group(1)))
    return rates


def processor_flags():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        for line in file:
            if line.startswith(("flags", "Features")):
                return set(line.split(":", 1)[1].split())
    return set()
