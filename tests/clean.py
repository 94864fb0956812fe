"""The environment of the programs that tests start."""
import os

VARIABLES = ("JOB_NAME", "TASK_INDEX", "PS_HOSTS", "WORKER_HOSTS", "TF_CONFIG")


def environment(more=None):
    """Ours without what tells a task who it is. Where there is a GPU it is hidden, which tests/gpu.sh
    is for: many tests run at once, and a single process on it does not have the bits of a cluster,
    which updates on the CPU."""
    kept = {name: value for name, value in os.environ.items() if name not in VARIABLES}
    return {**kept, "CUDA_VISIBLE_DEVICES": "", **(more or {})}
