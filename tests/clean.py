"""What the programs that tests start inherit: environment and signals."""
import os
import signal

VARIABLES = ("JOB_NAME", "TASK_INDEX", "PS_HOSTS", "WORKER_HOSTS", "TF_CONFIG")

# Whoever runs the tests may be without a terminal and ignore SIGHUP, which the programs would then
# ignore, too. A handler of ours becomes the default in them.
if signal.getsignal(signal.SIGHUP) == signal.SIG_IGN:
    signal.signal(signal.SIGHUP, lambda *_: None)


def environment(more=None):
    """Ours without what tells a task who it is. Where there is a GPU it is hidden, which tests/gpu.sh
    is for: many tests run at once, and a single process on it does not have the bits of a cluster,
    which updates on the CPU."""
    kept = {name: value for name, value in os.environ.items() if name not in VARIABLES}
    return {**kept, "CUDA_VISIBLE_DEVICES": "", **(more or {})}
