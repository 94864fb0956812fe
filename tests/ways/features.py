"""What a spec and its command line may say: factors, their levels, and which may stand together.

Levels of what the program lists (ops, losses, optimizers, ...) are held against its schema, so that what is added to
the program is missing here until it has a level. `may_stand` knows what cannot be said at all; what can be said and is
refused stands in REFUSALS with the words of its message.
"""
import itertools

ACTIVATIONS = ["linear", "relu", "relu6", "elu", "leaky_relu", "sigmoid", "tanh", "softplus", "swish", "gelu", "gelu_tanh"]
INITIALIZERS = ["zeros", "ones", "constant", "random_normal", "truncated_normal", "random_uniform", "variance_scaling",
                "glorot_uniform", "glorot_normal", "he_uniform", "he_normal", "lecun_uniform", "lecun_normal", "orthogonal"]
CELLS = ["csv", "jsonl", "tfrecord", "slots"]  # formats whose rows have cells of names that we choose
NAMED = CELLS + ["criteo", "clicks"]  # formats whose rows have named cells
MADE = ["random", "digits", "clicks"]  # formats without files
LISTED = ["csv", "jsonl", "tfrecord", "criteo", "libsvm", "slots"]  # formats of lists of files
TABLES = ["linear", "embedding", "interaction", "shared", "sequence", "sampled", "two_towers"]  # models with tables of rows
BINARY = ["sigmoid_cross_entropy", "weighted_cross_entropy", "log_loss", "hinge"]
CLASS = ["softmax_cross_entropy", "sampled_softmax", "nce"]
NUMBER = ["mean_squared_error", "huber", "absolute_difference"]

FACTORS = {
    "format": ["csv", "jsonl", "tfrecord", "slots", "libsvm", "raw", "records", "idx", "random", "digits", "clicks", "criteo"],
    "packing": ["plain", "gzip", "zstd"],
    "model": ["dense", "chain", "algebra", "image", "linear", "embedding", "interaction", "shared", "sequence", "sampled",
              "two_towers", "cross"],
    "column": ["hash", "identity", "vocabulary", "bucketized", "crossed", "date", "ids", "weighted_ids"],
    "table": ["static", "dynamic", "admitted", "counted", "evicted"],
    "normal": ["none", "batch"],  # batch_normalization behind the hidden layer
    "activation": ACTIVATIONS,
    "loss": [*CLASS, *BINARY, *NUMBER],
    "heads": ["one", "two"],
    "reduction": ["mean", "sum"],
    "metric": ["accuracy", "auc", "pr", "ranking", "calibration", "calibration_error", "gauc", "in_top_k", "log_loss", "loss", "mean_absolute_error",
               "perplexity", "precision", "recall", "root_mean_squared_error"],
    "optimizer": ["adadelta", "adagrad", "adagrad_da", "adam", "adamw", "ftrl", "gradient_descent", "lazy_adam",
                  "lazy_momentum", "momentum", "proximal_adagrad", "proximal_gradient_descent", "rmsprop"],
    "schedule": ["number", "constant", "piecewise_constant", "exponential_decay", "natural_exp_decay", "inverse_time_decay",
                 "polynomial_decay", "cosine_decay", "cosine_decay_restarts", "linear_cosine_decay",
                 "noisy_linear_cosine_decay", "cyclical"],
    "lengths": ["steps", "epochs"],  # of the schedule
    "clip": ["none", "value", "norm", "global_norm"],
    "initializer": INITIALIZERS,
    "regularizer": ["none", "l1", "l2"],
    "partitioner": ["default", "none", "balanced", "fixed_size", "variable_axis_size", "min_max_variable", "mod"],
    "placement": ["round_robin", "greedy", "pinned"],
    "frozen": ["none", "dense", "table"],  # what train.freeze names
    "decay": ["none", "all", "spares"],
    "average": ["none", "fixed", "growing"],  # how much of itself an average keeps
    "precision": ["float32", "bf16"],
    "mode": ["sync", "async"],
    "replicas": ["each", "twice"],
    "staleness": ["any", "bounded"],
    "wire": ["float32", "bf16", "fp16"],
    "wire_values": ["float32", "bf16", "fp16"],
    "replication": ["between_graph", "in_graph"],
    "towers": [1, 2],
    "accumulate": [1, 2],
    "cluster": ["single", "1x1", "1x2", "2x3", "3x2"],
    "transport": ["auto", "shm", "tcp"],
    "parts": ["auto", "always", "never"],
    "stream": ["never", "always"],
    "shuffle": [True, False],
    "weight": ["none", "column"],
    "prefetch": [1, 4],
    "end": ["epochs", "last_step", "num_steps"],
    "daily": [False, True],
    "saving": ["end", "steps"],
    "publish": [False, True],
    "best": ["none", "kept", "restored"],
    "evaluation": ["none", "end", "during"],
    "hook": ["none", "step_counter", "summary_saver", "checkpoint_saver", "evaluation", "nan", "logging", "early_stopping",
             "final_evaluation", "global_step_waiter", "time_limit", "command", "profiler"],
    "follow": [False, True],
}

# Levels that are no word of the program's lists
EXTRA = {"metric": {"pr", "ranking"}, "schedule": {"number"}, "clip": {"none"}, "hook": {"none"},
         "partitioner": {"default", "mod"}}
OPS = {  # of some model in made.py
    "add", "avg_pool", "concat", "conv2d", "dense", "dropout", "flatten", "max_pool", "multiply", "reshape", "softmax",
    "relu", "relu6", "elu", "leaky_relu", "sigmoid", "tanh", "softplus", "swish", "gelu", "cross_layer", "dot_interaction",
    "factorization_machine", "embedding", "linear", "selu", "softsign", "square", "sqrt", "exp", "log", "abs", "subtract", "divide",
    "maximum", "minimum", "clip", "scale", "l2_normalize", "clip_by_norm", "log_softmax", "matmul", "slice", "stack", "transpose", "tile", "pad",
    "prelu", "reduce", "mlp", "global_avg_pool", "global_max_pool", "batch_normalization", "dice", "lrn", "depthwise_conv2d", "separable_conv2d",
    "conv2d_transpose", "augment", "standardize", "mask", "layer_normalization", "lstm", "gru", "attention", "positional_embedding",
    "multi_head_attention", "target_attention", "experts", "gate", "cin", "cross_mixture",
    "compare", "conv1d", "indicator", "split", "sampled_logits", "in_batch_logits", "negative_sampling"}
ALONE = {"format": {"text"}}  # tried by tests of their own: their rows are nothing that other models read
COLUMNS = {"bucketized", "crossed", "date", "hash", "identity", "ids", "image", "numeric", "vocabulary"}


def never(*conditions):
    """These levels, each (factor, level or levels), never stand together."""
    told = []
    for name, levels in conditions:
        told.append((name, set(levels) if isinstance(levels, (list, set, tuple)) else {levels}))
    return told


def others(name, *levels):
    return name, [level for level in FACTORS[name] if level not in levels]


# What cannot be said, or means nothing
APART = [
    never(("format", MADE), others("packing", "plain")),
    never(("format", MADE), ("stream", "always")),
    never(("format", ["raw", "records", "idx"]), ("stream", "always"), ("packing", ["zstd"])),
    never(others("format", *NAMED), ("model", TABLES + ["cross"])),
    never(("format", NAMED), ("model", ["image"])),
    never(others("model", *TABLES), others("column", "hash")),
    never(others("model", *TABLES), others("table", "static")),
    never(others("table", "static"), others("column", "hash", "ids")),
    never(others("model", "dense", "embedding"), ("normal", "batch")),
    never(("model", ["sampled", "two_towers"]), ("heads", "two")),
    never(("model", "linear"), others("activation", "linear")),
    never(("model", "linear"), others("initializer", "glorot_uniform")),
    never(("model", "linear"), others("regularizer", "none")),
    never(("model", "shared"), ("column", ["bucketized", "crossed"])),
    never(("column", ["ids", "weighted_ids", "vocabulary"]), ("format", ["clicks", "criteo"])),
    never(others("format", *CELLS), ("weight", "column")),
    never(others("format", *LISTED), ("follow", True)),
    never(("follow", True), ("end", ["last_step", "num_steps"])),
    never(("follow", True), ("shuffle", True)),
    never(("follow", True), ("stream", "never")),
    never(("format", ["clicks", "criteo"]), ("loss", [*CLASS, *NUMBER])),
    never(("format", ["digits", "idx", "libsvm", "random", "raw", "records"]), ("loss", BINARY + NUMBER)),
    never(others("model", "sampled"), ("loss", ["sampled_softmax", "nce"])),
    never(("model", "sampled"), ("loss", BINARY + NUMBER)),
    never(("model", "two_towers"), others("loss", "softmax_cross_entropy")),
    never(("model", "two_towers"), ("column", ["ids", "weighted_ids"])),
    never(("model", ["sampled", "two_towers"]), ("format", ["clicks", "criteo"])),
    never(("loss", CLASS), others("metric", "accuracy", "in_top_k", "loss", "perplexity")),
    never(("loss", BINARY), ("metric", ["in_top_k", "perplexity", "mean_absolute_error", "root_mean_squared_error"])),
    never(("loss", NUMBER), others("metric", "loss", "mean_absolute_error", "root_mean_squared_error")),
    never(("metric", "gauc"), others("format", *NAMED)),
    never(("schedule", ["number", "constant"]), ("lengths", "epochs")),
    never(others("model", *TABLES), ("frozen", "table")),
    never(("frozen", "table"), others("table", "static"), ("optimizer", ["adam", "adamw"])),
    never(("cluster", "single"), others("transport", "auto")),
    never(("cluster", "single"), others("parts", "auto")),
    never(("cluster", "single"), ("replication", "in_graph")),
    never(("cluster", "single"), ("replicas", "twice")),
    never(("transport", ["shm"]), others("parts", "auto")),
    never(("mode", "async"), ("replicas", "twice")),
    never(("mode", "sync"), ("staleness", "bounded")),
    never(("evaluation", "none"), ("hook", ["evaluation", "early_stopping", "final_evaluation"])),
    never(("partitioner", "mod"), others("model", *TABLES)),
]

# What can be said and is refused, with the words of the refusal
REFUSED = [
    (never(others("evaluation", "during"), ("hook", "early_stopping")), "needs evaluations while training"),
    (never(others("evaluation", "during"), ("best", ["kept", "restored"])), "needs evaluations"),
    (never(("format", MADE), ("daily", True)), "train.daily: data.train: its rows come from no file"),
    (never(("follow", True), ("daily", True)), "data.train is followed, and continues by itself"),
    (never(others("end", "epochs"), ("daily", True)), "train.daily: needs train.epochs"),
    (never(("lengths", "epochs"), ("daily", True)), "with train.daily an epoch has another length each day"),
    (never(("mode", "sync"), ("hook", "global_step_waiter")), "has a meaning with mode async only"),
    (never(("model", "embedding"), ("initializer", "orthogonal")), "a table is made row by row"),
    (never(("towers", 2), ("accumulate", 2)), "train.accumulate: not beside train.towers"),
    (never(("follow", True), ("lengths", "epochs")), "data.train is followed and has no epochs"),
    (never(("follow", True), ("replication", "in_graph")), "each worker reads for itself"),
    (never(("model", TABLES), ("replicas", "twice")), "a worker cannot sum 2 batches into one push"),
    (never(("follow", True), ("replicas", "twice"), ("prefetch", 1), others("model", *TABLES)), "expected the 2 batches of a push"),
    (never(others("table", "static"), ("optimizer", ["adam", "adamw"])), "changes all rows at each step"),
    (never(others("decay", "none"), ("optimizer", ["adamw", "ftrl", "adagrad_da"])), "train.weight_decay: "),
]


RULES = {name: [told for told in APART + [told for told, _ in REFUSED] if any(name == one for one, _ in told)] for name in FACTORS}


def may_stand(case, name=None):
    """Of a case that is whole or has some of its factors: no more can make good what is apart. name: all but that is known
    to stand."""
    return not any(holds(told, case) for told in RULES[name]) if name else can_be_said(case) and not refusals(case)


def can_be_said(case):
    return not any(holds(told, case) for told in APART)


def holds(told, case):
    return all(case.get(name) in levels for name, levels in told)


def refusals(case):
    """The words by which the program refuses it, of each reason."""
    return [words for told, words in REFUSED if holds(told, case)]


def refused():
    """(levels, the words of their refusal): of each reason all the levels that it has, where they can be said."""
    for told, words in REFUSED:
        names = [name for name, _ in told]
        for levels in itertools.product(*(sorted(levels, key=str) for _, levels in told)):
            begin = dict(zip(names, levels))
            if can_be_said(begin):
                yield begin, words


def missing_in(schema):
    """Words of the program's lists that no level has."""
    def words(definition, key):
        return {one["properties"][key]["const"] for one in schema["$defs"][definition]["anyOf"] if "const" in one.get("properties", {}).get(key, {})}
    lists = {"format": words("data_format", "format"), "loss": words("loss", "op"), "metric": words("metric", "op"),
             "optimizer": words("optimizer", "type"), "schedule": words("schedule", "type"), "clip": words("clipping", "type"),
             "initializer": words("initializer", "type"), "partitioner": words("partitioner", "type"),
             "hook": words("hook", "type")}
    lacking = {name: told - set(FACTORS[name]) for name, told in lists.items()}
    lacking["op"] = words("op", "op") - OPS
    lacking["column"] = words("column", "column") - COLUMNS
    return {name: told - ALONE.get(name, set()) for name, told in lacking.items() if told - ALONE.get(name, set())}
