#!/usr/bin/env python3
"""torch_ddp.py - the training step of a spec by PyTorch's DistributedDataParallel over gloo, on CPUs:
a peer for links.py, by which a process is started on each host. Needs PyTorch alone.

    python3 torch_ddp.py SPEC.json --rank 0 --ranks 2 --meet ADDRESS:PORT --json FILE

Rank 0 writes the seconds of a step. The model is the one of gpu_torch.py.
"""
import argparse
import json
import sys

sys.dont_write_bytecode = True  # the folder is part of the source

import gpu_torch


def read_options(arguments):
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("spec")
    add("--rank", type=int, required=True)
    add("--ranks", type=int, required=True)
    add("--meet", metavar="ADDRESS:PORT", required=True, help="of rank 0")
    add("--threads", type=int, default=1)
    add("--warmup", type=int, default=10)
    add("--steps", type=int, default=40)
    add("--json", metavar="FILE", required=True)
    return parser.parse_args(arguments, argparse.Namespace(device="cpu", precision="float32"))


def main(arguments):
    options = read_options(arguments)
    import torch  # pylint: disable=import-outside-toplevel
    with open(options.spec, encoding="utf-8") as file:
        spec = json.load(file)
    torch.set_num_threads(options.threads)
    torch.manual_seed(1)
    torch.distributed.init_process_group("gloo", f"tcp://{options.meet}", rank=options.rank,
                                         world_size=options.ranks)
    trainer = gpu_torch.Trainer(torch, spec, options)
    model = torch.nn.parallel.DistributedDataParallel(trainer.model)

    def step():
        trainer.load()
        trainer.learn(model)

    gpu_torch.seconds_of(trainer, step, options.warmup)
    torch.distributed.barrier()
    step_s = gpu_torch.seconds_of(trainer, step, options.steps) / options.steps
    torch.distributed.destroy_process_group()
    if options.rank == 0:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"step_s": step_s}, file)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
