"""environment.py - the environment in which programs are measured: without what would steer them.

What arithmetic libraries are told by variables, and which task of which cluster a process is, must
come from the programs themselves, else the figures are of a setting that users do not have.
"""
import os

from program import VARIABLES

PREFIXES = ("OPENBLAS_", "OMP_", "GOMP_", "DNNL_", "ONEDNN_", "MKL_", "DTRAIN_ENVIRONMENT_", "DTRAIN_CPU_")


def is_steering(name):
    return name.startswith(PREFIXES) or name in VARIABLES


def clean(**added):
    kept = {name: value for name, value in os.environ.items() if not is_steering(name)}
    return {**kept, **added}


def left_out():
    return sorted(filter(is_steering, os.environ))
