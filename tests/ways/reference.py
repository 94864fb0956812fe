"""The same training in plain Python and float64: rows to columns, forward, loss, backward, clipping, optimizer, metrics.

Written from the formulas (TensorFlow 1's, as the program's help names them), not from the program's code. A case that
`covers` accepts is trained from the values of its checkpoint of step 0, with its rows in their order.
"""
import fnmatch
import math

import features
import made

# What this page knows; hash and crossed need TensorFlow's fingerprint, dropout and orthogonal draws are the program's own
LEVELS = {
    "format": features.CELLS, "model": ["dense", "linear", "embedding", "interaction", "shared", "cross"],
    "column": ["identity", "vocabulary", "bucketized", "ids", "weighted_ids"], "table": ["static"],
    "schedule": [one for one in features.FACTORS["schedule"] if one != "noisy_linear_cosine_decay"],
    "metric": [one for one in features.FACTORS["metric"] if one != "pr"],
    # ones make outputs so large that probabilities are 1 in float32
    "initializer": [one for one in features.INITIALIZERS if one != "ones"],
    "mode": ["sync"], "replicas": ["each"], "wire": ["float32"], "wire_values": ["float32"], "shuffle": [False],
    "cluster": ["single"], "replication": ["between_graph"], "follow": [False], "evaluation": ["end"], "end": ["epochs"],
    "hook": ["none"], "staleness": ["any"], "transport": ["auto"], "parts": ["auto"], "partitioner": ["default"],
    "placement": ["round_robin"], "packing": ["plain"], "saving": ["end"], "towers": [1], "prefetch": [4],
    "normal": ["none"], "heads": ["one"], "precision": ["float32"], "daily": [False], "publish": [False], "best": ["none"]}
FACTORS = {name: LEVELS.get(name, levels) for name, levels in features.FACTORS.items()}


# Activations: of x, value and slope

def sigmoid(x):
    return 1 / (1 + math.exp(-x)) if x >= 0 else math.exp(x) / (1 + math.exp(x))


def gelu(x):
    density = math.exp(-x * x / 2) / math.sqrt(2 * math.pi)
    below = 0.5 * (1 + math.erf(x / math.sqrt(2)))
    return x * below, below + x * density


def gelu_tanh(x):
    k = math.sqrt(2 / math.pi)
    t = math.tanh(k * (x + 0.044715 * x ** 3))
    return 0.5 * x * (1 + t), 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * k * (1 + 3 * 0.044715 * x * x)


ACTIVATION = {
    "linear": lambda x: (x, 1), "relu": lambda x: (max(x, 0), float(x > 0)),
    "relu6": lambda x: (min(max(x, 0), 6), float(0 < x < 6)), "elu": lambda x: (x, 1) if x > 0 else (math.expm1(x), math.exp(x)),
    "leaky_relu": lambda x: (x, 1) if x > 0 else (0.2 * x, 0.2), "sigmoid": lambda x: (sigmoid(x), sigmoid(x) * (1 - sigmoid(x))),
    "tanh": lambda x: (math.tanh(x), 1 - math.tanh(x) ** 2), "softplus": lambda x: (max(x, 0) + math.log1p(math.exp(-abs(x))), sigmoid(x)),
    "swish": lambda x: (x * sigmoid(x), sigmoid(x) * (1 + x * (1 - sigmoid(x)))), "gelu": gelu, "gelu_tanh": gelu_tanh}


# Nodes. forward(net, row) gives a list of numbers; backward(net, row, gradient) adds to net.gradients and hands on.

class Net:
    """Values: {variable: [row][column]}; gradients alike; of tables those of the rows that were touched."""

    def __init__(self, values):
        self.values = values
        self.clear()

    def clear(self):
        self.gradients, self.touched = {}, {}

    def add(self, name, i, j, value):
        self.gradients.setdefault(name, {})
        self.gradients[name][i, j] = self.gradients[name].get((i, j), 0.0) + value

    def touch(self, name, row):
        self.touched.setdefault(name, set()).add(row)


class Dense:
    def __init__(self, node, tanks):
        self.node, self.source = node, tanks[node["inputs"][0]]

    def forward(self, net, row):
        x, kernel, bias = self.source(row), net.values[self.node["name"] + "/kernel"], net.values[self.node["name"] + "/bias"]
        self.x = x
        sums = [bias[0][j] + sum(x[i] * kernel[i][j] for i in range(len(x))) for j in range(len(bias[0]))]
        self.told = [ACTIVATION[self.node["activation"]](one) for one in sums]
        return [value for value, _ in self.told]

    def backward(self, net, row, upstream):
        kernel, gone = net.values[self.node["name"] + "/kernel"], [0.0] * len(self.x)
        for j, (_, slope) in enumerate(self.told):
            g = upstream[j] * slope
            net.add(self.node["name"] + "/bias", 0, j, g)
            for i, x in enumerate(self.x):
                net.add(self.node["name"] + "/kernel", i, j, g * x)
                gone[i] += g * kernel[i][j]
        return {self.node["inputs"][0]: gone}


class Cross:
    """x0 (x kernel + bias) + x, of one input."""

    def __init__(self, node, tanks):
        self.node, self.source = node, tanks[node["inputs"][0]]

    def forward(self, net, row):
        self.x = x = self.source(row)
        kernel, bias = net.values[self.node["name"] + "/kernel"], net.values[self.node["name"] + "/bias"]
        self.sums = [bias[0][j] + sum(x[i] * kernel[i][j] for i in range(len(x))) for j in range(len(x))]
        return [x[j] * self.sums[j] + x[j] for j in range(len(x))]

    def backward(self, net, row, upstream):
        x, kernel, name = self.x, net.values[self.node["name"] + "/kernel"], self.node["name"]
        gone = [g * (s + 1) for g, s in zip(upstream, self.sums)]
        for j, x_j in enumerate(x):
            g = upstream[j] * x_j
            net.add(name + "/bias", 0, j, g)
            for i, x_i in enumerate(x):
                net.add(name + "/kernel", i, j, g * x_i)
                gone[i] += g * kernel[i][j]
        return {self.node["inputs"][0]: gone}


class Embedding:
    def __init__(self, node, tanks):
        self.node, self.source = node, tanks[node["inputs"][0]]
        self.table = f"{node.get('table') or node['name']}/embedding_weights"

    def shares(self, row):
        """[(id, share)] of the mean."""
        ids = self.source(row)
        total = sum(weight for _, weight in ids)
        return [(i, weight / total) for i, weight in ids] if total else []

    def forward(self, net, row):
        table = net.values[self.table]
        return [sum(share * table[i][j] for i, share in self.shares(row)) for j in range(self.node["dimension"])]

    def backward(self, net, row, upstream):
        for i, share in self.shares(row):
            net.touch(self.table, i)
            for j, g in enumerate(upstream):
                net.add(self.table, i, j, g * share)
        return {}


class Indicator:
    def __init__(self, node, tanks):
        self.source = tanks[node["inputs"][0]]

    def forward(self, net, row):
        sums = [0.0] * self.source.ids
        for i, weight in self.source(row):
            sums[i] += weight
        return sums

    def backward(self, net, row, upstream):
        return {}


class Linear:
    def __init__(self, node, tanks):
        self.node, self.tanks = node, tanks

    def forward(self, net, row):
        name = self.node["name"]
        return [net.values[name + "/bias"][0][j] + sum(weight * net.values[f"{name}/{column}/weights"][i][j]
                for column in self.node["inputs"] for i, weight in self.tanks[column](row)) for j in range(self.node["units"])]

    def backward(self, net, row, upstream):
        name = self.node["name"]
        for j, g in enumerate(upstream):
            net.add(name + "/bias", 0, j, g)
            for column in self.node["inputs"]:
                for i, weight in self.tanks[column](row):
                    net.touch(f"{name}/{column}/weights", i)
                    net.add(f"{name}/{column}/weights", i, j, g * weight)
        return {}


class Concat:
    def __init__(self, node, tanks):
        self.node, self.tanks = node, tanks

    def forward(self, net, row):
        self.sizes = [(name, self.tanks[name](row)) for name in self.node["inputs"]]
        return [one for _, values in self.sizes for one in values]

    def backward(self, net, row, upstream):
        gone, at = {}, 0
        for name, values in self.sizes:
            gone[name] = upstream[at:at + len(values)]
            at += len(values)
        return gone


class Product:
    """Of two vectors: factorization_machine and dot_interaction of two inputs are both their dot product."""

    def __init__(self, node, tanks):
        self.node, self.tanks = node, tanks

    def forward(self, net, row):
        self.a, self.b = (self.tanks[name](row) for name in self.node["inputs"])
        return [sum(x * y for x, y in zip(self.a, self.b))]

    def backward(self, net, row, upstream):
        one, other = self.node["inputs"]
        return {one: [upstream[0] * y for y in self.b], other: [upstream[0] * x for x in self.a]}


class Sigmoid:
    def __init__(self, node, tanks):
        self.node, self.source = node, tanks[node["inputs"][0]]

    def forward(self, net, row):
        self.p = [sigmoid(x) for x in self.source(row)]
        return self.p

    def backward(self, net, row, upstream):
        return {self.node["inputs"][0]: [g * p * (1 - p) for g, p in zip(upstream, self.p)]}


NODE = {"dense": Dense, "cross_layer": Cross, "embedding": Embedding, "linear": Linear, "indicator": Indicator, "concat": Concat, "sigmoid": Sigmoid,
        "factorization_machine": Product, "dot_interaction": Product}


# Columns: of a row, a list of numbers or of (id, weight)

def column(told):
    source = told.get("source", told["name"])
    if told["column"] == "numeric":
        return lambda row: [row[source]]
    if told["column"] == "identity":
        return lambda row: [(row[source] if 0 <= row[source] < told["buckets"] else told["default"], 1)]
    if told["column"] == "bucketized":
        return lambda row: [(sum(row[source] >= at for at in told["boundaries"]), 1)]
    if told["column"] == "vocabulary":
        return lambda row: [(told["words"].index(row[source]), 1)]
    if told.get("weights"):
        return lambda row: [(int(i), float(w)) for i, w in (one.split(":") for one in row[source].split())]
    return lambda row: [(int(one), 1) for one in row[source].split()]


def ids_of(told):
    """How many there are; 0: it has none."""
    if told["column"] == "vocabulary":
        return len(told["words"]) + told.get("oov_buckets", 0)
    return told.get("buckets") or told.get("rows") or 0


class Graph:
    """The nodes of a spec over its columns."""

    def __init__(self, spec, values):
        self.net = Net(values)
        self.columns = {told["name"]: column(told) for told in spec["data"]["columns"]}
        for told in spec["data"]["columns"]:
            self.columns[told["name"]].ids = ids_of(told)
        self.nodes, self.value = {}, {}
        sources = dict(self.columns)
        last = None
        for told in spec["model"]:
            node = {**told, "inputs": told.get("inputs") or [last]}
            last = node["name"]
            self.nodes[last] = NODE[node["op"]](node, sources)
            sources[last] = lambda row, name=last: self.value[name]
        self.last = last

    def forward(self, row):
        for name, node in self.nodes.items():
            self.value[name] = node.forward(self.net, row)
        return self.value[self.last]

    def backward(self, row, upstream):
        waiting = {self.last: upstream}
        for name in reversed(self.nodes):
            for source, gone in self.nodes[name].backward(self.net, row, waiting[name]).items():
                if source in self.nodes:
                    waiting[source] = [a + b for a, b in zip(waiting.get(source, [0.0] * len(gone)), gone)]


# Losses: of outputs and label, value and gradient

def softmax(z):
    top = max(z)
    powers = [math.exp(one - top) for one in z]
    return [one / sum(powers) for one in powers]


def softmax_cross_entropy(z, label):
    p = softmax(z)
    return -math.log(p[label]), [one - (k == label) for k, one in enumerate(p)]


def sigmoid_cross_entropy(z, label):
    x = z[0]
    return max(x, 0) - x * label + math.log1p(math.exp(-abs(x))), [sigmoid(x) - label]


def weighted_cross_entropy(z, label, pos_weight=2):
    x, share = z[0], 1 + (pos_weight - 1) * label
    value = (1 - label) * x + share * (math.log1p(math.exp(-abs(x))) + max(-x, 0))
    return value, [(1 - label) - share * (1 - sigmoid(x))]


def log_loss(p, label, epsilon=1e-7):
    value = -label * math.log(p[0] + epsilon) - (1 - label) * math.log(1 - p[0] + epsilon)
    return value, [-label / (p[0] + epsilon) + (1 - label) / (1 - p[0] + epsilon)]


def hinge(z, label):
    sign = 2 * label - 1
    missing = 1 - sign * z[0]
    return max(missing, 0), [-sign if missing > 0 else 0.0]


def mean_squared_error(y, label):
    return (y[0] - label) ** 2, [2 * (y[0] - label)]


def huber(y, label, delta=1):
    e = y[0] - label
    return (e * e / 2, [e]) if abs(e) <= delta else (delta * (abs(e) - delta / 2), [math.copysign(delta, e)])


def absolute_difference(y, label):
    e = y[0] - label
    return abs(e), [(e > 0) - (e < 0)]


LOSS = {"softmax_cross_entropy": softmax_cross_entropy, "sigmoid_cross_entropy": sigmoid_cross_entropy,
        "weighted_cross_entropy": weighted_cross_entropy, "log_loss": log_loss, "hinge": hinge,
        "mean_squared_error": mean_squared_error, "huber": huber, "absolute_difference": absolute_difference}


# Schedules, of the step before its update

def rate_of(told, s, batch=made.BATCH):
    if not isinstance(told, dict):
        return told
    per_epoch = made.ROWS / batch
    for steps, epochs in made.EPOCHS_OF.items():
        if epochs in told:
            length = told[epochs]
            told = told | {steps: [round(one * per_epoch) for one in length] if isinstance(length, list) else round(length * per_epoch)}
    kind, lr, steps = told["type"], told.get("learning_rate"), told.get("decay_steps")
    if kind == "constant":
        return lr
    if kind == "piecewise_constant":
        return told["values"][sum(s > at for at in told["boundaries"])]
    if kind == "exponential_decay":
        return lr * told["decay_rate"] ** (s / steps)
    if kind == "natural_exp_decay":
        return lr * math.exp(-told["decay_rate"] * s / steps)
    if kind == "inverse_time_decay":
        return lr / (1 + told["decay_rate"] * s / steps)
    if kind == "polynomial_decay":
        return (lr - told["end_learning_rate"]) * (1 - min(s, steps) / steps) + told["end_learning_rate"]
    if kind == "cosine_decay":
        return lr * 0.5 * (1 + math.cos(math.pi * min(s, steps) / steps))
    if kind == "cosine_decay_restarts":  # t_mul 2, m_mul 1
        f = s / told["first_decay_steps"]
        i = math.floor(math.log2(1 + f))
        return lr * 0.5 * (1 + math.cos(math.pi * (f - (2 ** i - 1)) / 2 ** i))
    if kind == "linear_cosine_decay":
        s = min(s, steps)
        return lr * ((steps - s) / steps * 0.5 * (1 + math.cos(math.pi * s / steps)) + 0.001)
    cycle = math.floor(1 + s / (2 * told["step_size"]))
    x = abs(s / told["step_size"] - 2 * cycle + 1)
    return lr + (told["maximal_learning_rate"] - lr) * max(0, 1 - x)


# Optimizers: of one element. slots(): their first values; update(w, g, slots, rate, t): the new w. t: steps from 1

def shrunk(v, by):
    return math.copysign(max(abs(v) - by, 0), v)


def ada_delta(w, g, s, rate, t):
    s[0] = 0.95 * s[0] + 0.05 * g * g
    u = math.sqrt(s[1] + 1e-8) / math.sqrt(s[0] + 1e-8) * g
    s[1] = 0.95 * s[1] + 0.05 * u * u
    return w - rate * u


def ada_grad(w, g, s, rate, t):
    s[0] += g * g
    return w - rate * g / math.sqrt(s[0])


def adagrad_da(w, g, s, rate, t):
    s[0] += g
    s[1] += g * g
    return -rate * s[0] / math.sqrt(s[1])


def adam(w, g, s, rate, t):
    s[0] += (g - s[0]) * 0.1
    s[1] += (g * g - s[1]) * 0.001
    return w - rate * math.sqrt(1 - 0.999 ** t) / (1 - 0.9 ** t) * s[0] / (math.sqrt(s[1]) + 1e-8)


def adamw(w, g, s, rate, t):
    w -= 0.004 * rate * w
    s[0] += (g - s[0]) * 0.1
    s[1] += (g * g - s[1]) * 0.001
    return w - rate * math.sqrt(1 - 0.999 ** t) / (1 - 0.9 ** t) * s[0] / (math.sqrt(s[1]) + 1e-7)


def ftrl(w, g, s, rate, t):
    if rate == 0:  # the formula divides by it: nothing changes
        return w
    after = s[0] + g * g
    s[1] += g - (math.sqrt(after) - math.sqrt(s[0])) / rate * w
    s[0] = after
    return -s[1] / (math.sqrt(after) / rate)


def momentum(w, g, s, rate, t):
    s[0] = 0.5 * s[0] + g
    return w - rate * s[0]


def rmsprop(w, g, s, rate, t):
    s[0] += (g * g - s[0]) * 0.1
    return w - rate * g / math.sqrt(s[0] + 1e-10)


def descent(w, g, s, rate, t):
    return w - rate * g


OPTIMIZER = {  # its formula, what its slots begin with, whether all rows of a table move
    "adadelta": (ada_delta, [0, 0], False), "adagrad": (ada_grad, [0.1], False), "adagrad_da": (adagrad_da, [0, 0.1], False),
    "adam": (adam, [0, 0], True), "adamw": (adamw, [0, 0], True), "ftrl": (ftrl, [0.1, 0], False),
    "gradient_descent": (descent, [], False), "lazy_adam": (adam, [0, 0], False), "lazy_momentum": (momentum, [0], False),
    "momentum": (momentum, [0], False), "proximal_adagrad": (ada_grad, [0.1], False),
    "proximal_gradient_descent": (descent, [], False), "rmsprop": (rmsprop, [1], False)}


class Trainer:
    def __init__(self, spec, case, values):
        self.spec, self.case = spec, case
        self.graph = Graph(spec, values)
        self.slots, self.step = {}, 0
        self.averages = {name: [list(line) for line in told] for name, told in values.items() if self.has_average(name)}
        self.batch = made.BATCH * case["accumulate"]
        self.loss = LOSS[case["loss"]]
        self.label = spec["data"]["train"]["label"]

    def weight(self, row):
        return row["weight"] if self.case["weight"] == "column" else 1

    def is_frozen(self, name):
        return any(fnmatch.fnmatch(name, one) for one in self.spec["train"]["freeze"])

    def has_average(self, name):
        return self.case["average"] != "none" and not self.is_table(name) and not self.is_frozen(name)

    def follow(self):
        decay = {"fixed": 0.9, "growing": min(0.99, (1 + self.step) / (10 + self.step))}[self.case["average"]]
        for name, lines in self.averages.items():
            for line, now in zip(lines, self.graph.net.values[name]):
                line[:] = [a - (a - w) * (1 - decay) for a, w in zip(line, now)]

    def is_table(self, name):
        return name.endswith("/weights") or name.endswith("/embedding_weights")

    def gradients(self, rows):
        """Of the mean over rows that count, or the sum, and of what large weights cost."""
        net, count = self.graph.net, sum(self.weight(row) != 0 for row in rows) if self.case["reduction"] == "mean" else self.case["accumulate"]
        net.clear()
        for row in rows:
            outputs = self.graph.forward(row)
            upstream = self.loss(outputs, row[self.label])[1]
            self.graph.backward(row, [g * self.weight(row) / count for g in upstream])
        for name, values in net.values.items():
            if (name.endswith("/kernel") or name.endswith("/embedding_weights")) and self.case["regularizer"] != "none":
                for i, line in enumerate(values):
                    if self.is_table(name) and i not in net.touched.get(name, ()):
                        continue
                    for j, w in enumerate(line):
                        sign = (w > 0) - (w < 0)
                        net.add(name, i, j, 0.01 * sign if self.case["regularizer"] == "l1" else 0.02 * w)
        return self.clipped(net.gradients)

    def clipped(self, gradients):
        gradients = {name: told for name, told in gradients.items() if not self.is_frozen(name)}
        if self.case["clip"] == "value":
            return {name: {at: min(max(g, -0.01), 0.01) for at, g in told.items()} for name, told in gradients.items()}
        norms = {name: math.sqrt(sum(g * g for g in told.values())) for name, told in gradients.items()}
        if self.case["clip"] == "global_norm":
            norms = dict.fromkeys(norms, math.sqrt(sum(norm * norm for norm in norms.values())))
        if self.case["clip"] == "none":
            return gradients
        return {name: {at: g * 0.05 / max(norms[name], 0.05) for at, g in told.items()} for name, told in gradients.items()}

    def update(self, rows):
        rule, first, moves_all = OPTIMIZER[self.case["optimizer"]]
        gradients, net = self.gradients(rows), self.graph.net
        rate = rate_of(self.spec["optimizer"]["learning_rate"], self.step, self.batch)
        self.step += 1
        decay = self.spec["train"].get("weight_decay", {"rate": 0})
        for name, values in net.values.items():
            if self.is_frozen(name):
                continue
            share = 0 if any(fnmatch.fnmatch(name, one) for one in decay.get("except", [])) else decay["rate"]
            is_lazy = self.is_table(name) and not moves_all
            for i, line in enumerate(values):
                if is_lazy and i not in net.touched.get(name, ()):
                    continue
                for j, w in enumerate(line):
                    slots = self.slots.setdefault((name, i, j), list(first))
                    line[j] = rule(w - rate * share * w, gradients.get(name, {}).get((i, j), 0.0), slots, rate, self.step)
        if self.averages:
            self.follow()

    def train(self, rows, batch):
        for at in range(0, len(rows) - batch + 1, batch):
            self.update(rows[at:at + batch])

    def evaluate(self, rows):
        """The mean loss, and the metric of the case: (least, most), as outputs that lie next to each other, or next to a
        threshold, come in either order in float32."""
        trained = dict(self.graph.net.values)
        self.graph.net.values.update(self.averages)
        told = [(self.graph.forward(row), row[self.label], self.weight(row)) for row in rows]
        self.graph.net.values.update(trained)
        total = sum(w for _, _, w in told)
        loss = sum(w * self.loss(outputs, label)[0] for outputs, label, w in told) / sum(w != 0 for _, _, w in told)
        metric = METRIC[self.case["metric"]]
        ways = (-NEXT, 0, NEXT) if metric in BY_ORDER else (0,)
        case = {**self.case, "words": [row["word"] for row in rows]}
        told_so = [metric([nudged(one, by, case) for one in told], total, case) for by in ways]
        return loss, (min(told_so), max(told_so))


# Metrics, of [(outputs, label, weight)]

NEXT = 1e-5  # outputs that are nearer than twice that are next to each other


def nudged(told, by, case):
    """Towards its label, or away from it."""
    outputs, label, weight = told
    at, by = (label, by) if case["loss"] == "softmax_cross_entropy" else (0, by if label else -by)
    return [z + by if i == at else z for i, z in enumerate(outputs)], label, weight


def probability(outputs, case):
    return outputs[0] if case["loss"] == "log_loss" else sigmoid(outputs[0])


def accuracy(told, total, case):
    if case["loss"] == "softmax_cross_entropy":
        return sum(w * (max(range(len(z)), key=z.__getitem__) == label) for z, label, w in told) / total
    return sum(w * ((probability(z, case) > 0.5) == (label != 0)) for z, label, w in told) / total


def auc(told, total, case):
    answers = [(probability(z, case), label != 0, w) for z, label, w in told]
    yes, no = (sum(w for _, is_yes, w in answers if is_yes == which) for which in (True, False))
    points = []
    for at in [-1e-7, *(k / 199 for k in range(1, 199)), 1 + 1e-7]:
        tp, fp = (sum(w for p, is_yes, w in answers if is_yes == which and p > at) for which in (True, False))
        points.append(((fp) / (no + 1e-6), (tp + 1e-6) / (yes + 1e-6)))
    return sum((x0 - x1) * (y0 + y1) / 2 for (x0, y0), (x1, y1) in zip(points, points[1:]))


def ranking(told, total, case):
    answers = [(probability(z, case), label != 0, w) for z, label, w in told]
    pairs = [(p, w, q, v) for p, a, w in answers if a for q, b, v in answers if not b]
    return sum(w * v * (1 if p > q else 0.5 if p == q else 0) for p, w, q, v in pairs) / sum(w * v for _, w, _, v in pairs)


def gauc(told, total, case):
    """Of the rows of each word; those of one label have none."""
    parts = [[one for one, word in zip(told, case["words"]) if word == of] for of in made.WORDS]
    parts = [part for part in parts if len({label != 0 for _, label, _ in part}) == 2]
    shares = [sum(w for _, _, w in part) for part in parts]
    return sum(ranking(part, None, case) * share for part, share in zip(parts, shares)) / sum(shares)


def calibration(told, total, case):
    return sum(w * probability(z, case) for z, _, w in told) / sum(w * label for _, label, w in told)


def calibration_error(told, total, case):
    buckets = [0.0] * 10
    for z, label, w in told:
        buckets[min(int(probability(z, case) * 10), 9)] += w * (probability(z, case) - label)
    return sum(map(abs, buckets)) / total


def log_loss_metric(told, total, case):
    return sum(-w * math.log(p if label else 1 - p) for p, label, w in
               ((probability(z, case), label, w) for z, label, w in told)) / total


def share_of_yes(told, case, of_predicted):
    answers = [(probability(z, case) > 0.5, label != 0, w) for z, label, w in told]
    among = sum(w for said, is_yes, w in answers if (said if of_predicted else is_yes))
    return sum(w for said, is_yes, w in answers if said and is_yes) / among if among else 0.0


def in_top_2(told, total, case):
    return sum(w * (sum(one > z[label] for one in z) < 2) for z, label, w in told) / total


def mean_loss(told, total, case):
    return sum(w * LOSS[case["loss"]](z, label)[0] for z, label, w in told) / sum(w != 0 for _, _, w in told)


METRIC = {
    "accuracy": accuracy, "auc": auc, "ranking": ranking, "gauc": gauc, "calibration": calibration, "calibration_error": calibration_error, "log_loss": log_loss_metric, "in_top_k": in_top_2,
    "loss": mean_loss, "perplexity": lambda told, total, case: math.exp(mean_loss(told, total, case)),
    "precision": lambda told, total, case: share_of_yes(told, case, True), "recall": lambda told, total, case: share_of_yes(told, case, False),
    "mean_absolute_error": lambda told, total, case: sum(w * abs(z[0] - label) for z, label, w in told) / total,
    "root_mean_squared_error": lambda told, total, case: math.sqrt(sum(w * (z[0] - label) ** 2 for z, label, w in told) / total)}


BY_ORDER = {accuracy, auc, gauc, ranking, in_top_2, calibration_error, METRIC["precision"], METRIC["recall"]}  # and by thresholds


def spec_of(case, folder):
    """That of the case, but every word is in its vocabulary: what is done with others needs the fingerprint."""
    spec = made.spec(case, folder)
    for told in spec["data"]["columns"]:
        if told["column"] == "vocabulary":
            told["words"] = made.WORDS
    return spec


def train(spec, case, values):
    """From these values, which change; (mean loss, (least, most) of the metric) of the evaluation's rows at the end."""
    trainer = Trainer(spec, case, values)
    trainer.train(made.make_rows(made.ROWS, 1), trainer.batch)
    return trainer.evaluate(made.make_rows(made.EVAL_ROWS, 2))
