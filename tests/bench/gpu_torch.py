#!/usr/bin/env python3
"""gpu_torch.py - the training step of a spec by PyTorch: a peer for gpu.py, by whose Python it is
found. Needs PyTorch alone.

    python3 gpu_torch.py --check                     the version, or why it cannot be compared with
    python3 gpu_torch.py SPEC.json --json FILE       steps per second, window by window

A step is what dtrain's is: a batch from the host's memory, forward, backward, the optimizer.
PyTorch gets what makes it fast: images with channels last, pinned batches, fused optimizers, the
search of cuDNN, and of three ways to run a step the fastest counts: a CUDA graph of the whole, its
compiler, and call by call.
"""
import argparse
import json
import sys
import time
import traceback

SKIPPED = 77
WAYS = ("calls", "graph", "compiler")
BATCHES_MAX = 16  # that are kept on the host and gone through in turn
WARMUP_STEPS = 12  # cuDNN's search and the compiler are done by then
RALLY_STEPS = 5  # by which the length of a window is estimated


def check(device):
    """Why PyTorch cannot be measured on the device, or ""."""
    try:
        import torch  # pylint: disable=import-outside-toplevel
    except (ImportError, OSError) as trouble:
        return f"no PyTorch: {trouble}"
    if device == "cuda" and not torch.cuda.is_available():
        return f"PyTorch {torch.__version__} sees no GPU"
    return ""


def pair(value):
    """A size of a spec: one number, or [y, x]."""
    numbers = value if isinstance(value, list) else [value]
    return (numbers[0], numbers[-1])


class Builder:
    """Makes PyTorch's layers of a spec's nodes, and knows the shape between them, without batch."""

    def __init__(self, torch, shape):
        self.torch = torch
        # [y, x, channel] of a spec is [channel, y, x] here
        self.shape = (shape[2], shape[0], shape[1]) if len(shape) == 3 else tuple(shape)
        self.layers = []

    def count(self):
        count = 1
        for extent in self.shape:
            count *= extent
        return count

    def conv2d(self, node):
        is_same = node.get("padding", "valid").lower() == "same"
        if not is_same or pair(node.get("strides") or 1) != (1, 1):
            raise ValueError("only convolutions that keep the size are compared")
        channels, y, x = self.shape
        self.layers.append(self.torch.nn.Conv2d(channels, node["filters"],
                                                pair(node["kernel_size"]), padding="same"))
        self.shape = (node["filters"], y, x)

    def max_pool(self, node):
        size = pair(node["pool_size"])
        channels, y, x = self.shape
        if node.get("strides") or y % size[0] or x % size[1]:
            raise ValueError("only pools that divide the image are compared")
        self.layers.append(self.torch.nn.MaxPool2d(size))
        self.shape = (channels, y // size[0], x // size[1])

    def flatten(self, _):
        self.layers.append(self.torch.nn.Flatten())
        self.shape = (self.count(),)

    def dense(self, node):
        self.layers.append(self.torch.nn.Linear(self.count(), node["units"]))
        self.shape = (node["units"],)

    def model(self, nodes):
        makers = {"conv2d": self.conv2d, "max_pool": self.max_pool, "flatten": self.flatten,
                  "dense": self.dense}
        for node in nodes:
            makers[node["op"]](node)
            if node.get("activation", "linear") == "relu":
                self.layers.append(self.torch.nn.ReLU(inplace=True))
        return self.torch.nn.Sequential(*self.layers)


def make_optimizer(torch, settings, parameters, on_gpu):
    """The spec's, with TensorFlow's defaults; all parameters in one kernel."""
    rate = settings["learning_rate"]
    if settings["type"] == "adam":
        return torch.optim.Adam(parameters, lr=rate, fused=True, capturable=on_gpu)
    decay = settings["momentum"] if settings["type"] == "momentum" else 0
    if settings["type"] not in ("momentum", "gradient_descent"):
        raise ValueError(f"{settings['type']} is not compared")
    return torch.optim.SGD(parameters, lr=rate, momentum=decay, fused=True)


class Trainer:
    """A model, its optimizer, batches on the host, and the one on the device that is trained on."""

    def __init__(self, torch, spec, options):
        source, batch = spec["data"]["train"], spec["data"]["batch_size"]
        device = options.device
        self.torch, self.device, self.is_bf16 = torch, device, options.precision == "bf16"
        on_gpu = device == "cuda"
        builder = Builder(torch, source["shape"])
        shape = (batch, *builder.shape)
        self.model = builder.model(spec["model"]).to(device)
        if len(shape) == 4:
            self.model = self.model.to(memory_format=torch.channels_last)
        self.optimizer = make_optimizer(torch, spec["optimizer"], self.model.parameters(), on_gpu)
        count = max(1, min(BATCHES_MAX, source["rows"] // batch))
        self.host = [self.batch(shape, source["classes"], on_gpu) for _ in range(count)]
        self.x = self.host[0][0].to(device)
        self.labels = self.host[0][1].to(device)
        self.taken = 0

    def batch(self, shape, classes, is_pinned):
        torch = self.torch
        x = torch.rand(shape)
        if len(shape) == 4:
            x = x.contiguous(memory_format=torch.channels_last)
        labels = torch.randint(classes, (shape[0],))
        return (x.pin_memory(), labels.pin_memory()) if is_pinned else (x, labels)

    def load(self):
        x, labels = self.host[self.taken % len(self.host)]
        self.taken += 1
        self.x.copy_(x, non_blocking=True)
        self.labels.copy_(labels, non_blocking=True)

    def learn(self, model):
        torch = self.torch
        with torch.autocast(self.device, torch.bfloat16, enabled=self.is_bf16):
            loss = torch.nn.functional.cross_entropy(model(self.x), self.labels)
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)

    def wait(self):
        if self.device == "cuda":
            self.torch.cuda.synchronize()

    # ---- ways to run a step: each gives a function that makes one ----

    def by_calls(self):
        def step():
            self.load()
            self.learn(self.model)
        return step

    def by_compiler(self):
        model = self.torch.compile(self.model, mode="reduce-overhead")

        def step():
            self.load()
            self.learn(model)
        return step

    def by_graph(self):
        """Recorded after some steps on another stream, as PyTorch wants it."""
        torch = self.torch
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(WARMUP_STEPS):
                self.learn(self.model)
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self.learn(self.model)

        def step():
            self.load()
            graph.replay()
        return step


def seconds_of(trainer, step, count):
    trainer.wait()
    start = time.perf_counter()
    for _ in range(count):
        step()
    trainer.wait()
    return time.perf_counter() - start


def rates_of(trainer, step, windows, window_s):
    """Steps per second, window by window."""
    seconds_of(trainer, step, WARMUP_STEPS)
    one_s = seconds_of(trainer, step, RALLY_STEPS) / RALLY_STEPS
    count = max(1, round(window_s / one_s))
    return [count / seconds_of(trainer, step, count) for _ in range(windows)]


def allow_tf32(torch, is_allowed):
    torch.set_float32_matmul_precision("high" if is_allowed else "highest")
    torch.backends.cudnn.allow_tf32 = is_allowed
    torch.backends.cudnn.benchmark = True


def measure(options, spec):
    """By way: the rates, or why there are none."""
    import torch  # pylint: disable=import-outside-toplevel
    allow_tf32(torch, options.precision != "float32")
    found = {"version": torch.__version__, "ways": {}, "troubles": {}}
    ways = options.ways.split(",") if options.device == "cuda" else [WAYS[0]]
    for way in ways:
        try:
            torch.manual_seed(1)
            trainer = Trainer(torch, spec, options)
            step = getattr(trainer, "by_" + way)()
            found["ways"][way] = rates_of(trainer, step, options.windows, options.seconds)
        except Exception as trouble:  # pylint: disable=broad-except
            # PyTorch's compiler alone has dozens of kinds; the other ways are still measured.
            found["troubles"][way] = f"{type(trouble).__name__}: {trouble}"[:500]
            traceback.print_exc()
    return found


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("spec", nargs="?")
    add("--check", action="store_true")
    add("--device", choices=("cuda", "cpu"), default="cuda")
    add("--precision", choices=("float32", "tf32", "bf16"), default="float32",
        help="bf16 by PyTorch's autocast")
    add("--windows", type=int, default=5)
    add("--seconds", type=float, default=1.0)
    add("--ways", default=",".join(WAYS))
    add("--json", metavar="FILE")
    options = parser.parse_args(arguments)
    reason = check(options.device)
    if reason:
        print(reason)
        return SKIPPED
    if options.check:
        import torch  # pylint: disable=import-outside-toplevel
        print(torch.__version__)
        return 0
    if not options.spec or not options.json:
        parser.error("expected SPEC.json and --json FILE")
    with open(options.spec, encoding="utf-8") as file:
        found = measure(options, json.load(file))
    with open(options.json, "w", encoding="utf-8") as file:
        json.dump(found, file)
    return 0 if found["ways"] else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
