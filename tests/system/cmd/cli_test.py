"""Command lines: the wrong ones with their exit code and their exact message, and the words that
explain."""
import datetime
import json
import os
import re
import shutil
import socket
import time
import unittest

import program
from program import commands, logged
from program.commands import CommandCase

PROMPT_S = 0.3  # less than what is given to links at the end (TASK_LINGER_MS)
PS = "--ps_hosts=127.0.0.1:1,127.0.0.1:2"
WORKERS = "--worker_hosts=127.0.0.1:3,127.0.0.1:4"
NO_SPEC = "no SPEC.json was named (only a ps can do without)"
LOCAL = "--local_ps and --local_workers start tasks of their own: "

# arguments, environment, what follows "dtrain: " on standard error; the exit code is always 2
EVAL = '--set=data.eval={"format": "digits", "rows": 40}'
WRONG = [
    # words
    (["helo"], {}, '"helo" is neither a command nor a file (did you mean "help"?)'),
    (["chekc", "spec.json"], {}, '"chekc" is neither a command nor a file (did you mean "check"?)'),
    (["frobnicate"], {}, '"frobnicate" is neither a command nor a file; see `dtrain help` (to '
     'train: dtrain SPEC.json)'),
    (["-x"], {}, 'unknown flag "-x": flags begin with --, files with ./'),
    (["-orun", "spec.json"], {}, 'unknown flag "-orun": -o and its value are two words'),
    (["-o=run", "spec.json"], {}, 'unknown flag "-o=run": -o and its value are two words'),
    (["-optimizer=sgd", "spec.json"], {},
     'unknown flag "-optimizer=sgd" (did you mean --optimizer?)'),
    (["devices", "-json"], {}, 'devices: unknown flag "-json" (did you mean --json?)'),
    (["spec.json", "more.json"], {}, 'unexpected argument "more.json": 1 at most'),
    (["missing.json"], {}, "missing.json: cannot be opened: No such file or directory"),
    (["check", "/"], {}, "/: cannot be read: Is a directory"),
    (["check"], {}, NO_SPEC),
    (["check", "--graph=png", "spec.json"], {},
     '--graph: expected one of none, dot, mermaid, got "png"'),
    (["devices", "x"], {}, 'devices: unexpected argument "x"'),
    (["schema", "x"], {}, 'schema: unexpected argument "x"'),
    (["version", "x"], {}, 'version: unexpected argument "x"'),
    (["help", "optimiser"], {},
     'help: unknown topic "optimiser" (did you mean "optimizer"?); dtrain help lists them'),
    (["help", "adma"], {},
     'help: unknown topic "adma" (did you mean "adam"?); dtrain help lists them'),
    (["help", "AdamOptimizer"], {},
     'help: unknown topic "AdamOptimizer" (did you mean "adam"?); dtrain help lists them'),
    (["help", "lr"], {},
     'help: unknown topic "lr" (did you mean "learning_rate"?); dtrain help lists them'),
    (["help", "lunched"], {}, 'help: unknown topic "lunched"; dtrain help lists them'),
    (["help", "plaecment"], {},
     'help: unknown topic "plaecment" (did you mean "placement"?); dtrain help lists them'),
    (["help", "op", "conv2x"], {},
     'help: unknown op "conv2x" (did you mean "conv2d"?); dtrain help op lists them'),
    (["help", "flags", "job_name"], {}, 'help: flags has no "job_name"'),
    (["checkpoint", PS], {},
     f"checkpoint: expected a verb, got {PS}; dtrain save has a running job save a checkpoint, and `dtrain help checkpoint` has the verbs"),
    # flags
    (["--job_nam=ps"], {}, 'unknown flag "job_nam" (did you mean --job_name?)'),
    (["--job_name"], {}, "--job_name: the value is missing: expected a string"),
    (["--last_step=5", "spec.json"], {},
     'unknown flag "last_step": it is a key of the spec (--set train.last_step=5)'),
    (["check", "--shuffle", "5", "spec.json"], {},
     'unknown flag "shuffle": it is a key of the spec (--set data.shuffle=...)'),
    (["--learning_rate=1", "spec.json"], {},
     'unknown flag "learning_rate": it is a key of the spec (--set optimizer.learning_rate=1)'),
    (["--max_to_keep=3", "spec.json"], {},
     'unknown flag "max_to_keep": it is a key of the spec (--set train.keep_checkpoint_max=3)'),
    (["--sync_replicas=True", "spec.json"], {},
     'unknown flag "sync_replicas": it is a key of the spec (--set train.mode=...)'),
    (["--init_checkpoint=old", "spec.json"], {},
     'unknown flag "init_checkpoint": it is a key of the spec (--set train.warm_start=...)'),
    (["--save_checkpoints_steps=9", "spec.json"], {},
     'unknown flag "save_checkpoints_steps": it is a key of the spec (--set '
     'train.save_checkpoint_steps=9)'),
    (["--placement=greedy", "spec.json"], {},
     'unknown flag "placement": it belongs in the spec; see dtrain help placement'),
    (["--clip=5", "spec.json"], {},
     'unknown flag "clip": it belongs in the spec; see dtrain help clip'),
    (["--spec=spec.json"], {},
     'unknown flag "spec": the spec is an argument without a flag (dtrain [FLAGS] SPEC.json)'),
    (["--local_ps=1", "--model", "spec.json"], {},
     'unknown flag "model": the spec is an argument without a flag (dtrain [FLAGS] SPEC.json)'),
    (["check", "--model_spec=spec.json"], {},
     'unknown flag "model_spec": the spec is an argument without a flag (dtrain check [FLAGS] SPEC.json)'),
    (["eval", "--checkpoint=run", "--config", "spec.json"], {},
     'unknown flag "config": the spec is an argument without a flag (dtrain eval [FLAGS] SPEC.json)'),
    (["serve", "--spec_file=spec.json"], {},
     'unknown flag "spec_file": the spec is an argument without a flag (dtrain serve [FLAGS] SPEC.json)'),
    (["stats", "--spec=spec.json"], {},
     'unknown flag "spec": the spec is an argument without a flag (dtrain stats [FLAGS] SPEC|FILE...)'),
    (["status", "--spec=spec.json"], {}, 'status: unknown flag "spec": no flag has a similar name'),
    (["--dropout", "0.5", "spec.json"], {},
     'unknown flag "dropout": it belongs in the spec; see dtrain help dropout'),
    (["--steps", "spec.json"], {},
     'no SPEC.json was named: "spec.json" is the value of --steps here'),
    (["-o", "spec.json"], {}, 'no SPEC.json was named: "spec.json" is the value of -o here'),
    (["--workers=2", "spec.json"], {}, "--ps and --workers say how many of the tasks that are listed take part "
                                       "(did you mean --local_ps and --local_workers?)"),
    (["--set=loss=mse", "spec.json"], {},
     'spec.json: loss: unknown loss "mse" (did you mean "mean_squared_error"?); known are '
     "softmax_cross_entropy, sampled_softmax, nce, sigmoid_cross_entropy, weighted_cross_entropy, log_loss, "
     "hinge, mean_squared_error, huber, absolute_difference"),
    (["--steps=many", "spec.json"], {},
     'spec.json: train.last_step: expected an integer from 0 to 2000000000, got "many"'),
    (["spec.json", "-o"], {}, "--checkpoint_dir: the value is missing: expected a string"),
    (["--seed=-2", "spec.json"], {},
     "--seed: expected an integer from -1 to 9007199254740992, got -2"),
    (["--cpu_kernels=neon", "spec.json"], {},
     '--cpu_kernels: unknown instruction set "neon"; known are avx512, avx2, sse2'),
    (["spec.json"], {"DTRAIN_CPU_KERNELS": "neon"},
     'DTRAIN_CPU_KERNELS: unknown instruction set "neon"; known are avx512, avx2, sse2'),
    (["--local_ps=0", "--local_workers=1", "spec.json"], {},
     "--local_ps=0: a cluster has at least 1 of them"),
    (["--local_ps=2", "--local_workers", "0", "spec.json"], {},
     "--local_workers=0: a cluster has at least 1 of them"),
    # settings without an effect
    (["--keep_best=1", "spec.json"], {}, "--keep_best goes with --job_name=evaluator only; a run itself keeps the best by train.keep_best and train.best_metric of the spec"),
    (["--local_ps=1", "--best_metric=loss", "spec.json"], {},
     "--best_metric goes with --job_name=evaluator only; a run itself keeps the best by train.keep_best and train.best_metric of the spec"),
    (["--set=train.save_checkpoint_steps=5", "spec.json"], {},
     "spec.json: train.save_checkpoint_steps: needs train.checkpoint_dir"),
    (["check", '--set=train.hooks=[{"type": "early_stopping", "metric": "acuracy", "max_steps_without_decrease": 9}]',
      "--set=train.evaluate_every_steps=5", EVAL, "spec.json"], {},
     'spec.json: train.hooks[0]: early_stopping: metric: unknown metric "acuracy" (did you mean "accuracy"?); known are loss, accuracy'),
    (["check", '--set=train.hooks=[{"type": "logging", "values": ["los"], "every_n_iter": 9}]', "spec.json"], {},
     'spec.json: train.hooks[0]: logging: values[0]: unknown value "los" (did you mean "loss"?); known are global_step, '
     "gradient_norm, learning_rate, loss, push_seconds, staleness, accuracy"),
    (["check", "--set=train.restore_best=true", "--set=train.best_metric=acc", "--set=train.evaluate_every_steps=5",
      "-o", "run", EVAL, "spec.json"], {},
     'spec.json: train.best_metric: unknown metric "acc"; known are loss, accuracy'),
    (["check", "--set=train.save_checkpoint_secs=5", "spec.json"], {},
     "spec.json: train.save_checkpoint_secs: needs train.checkpoint_dir"),
    (["--job_name=worker", "--task_index=0", PS, WORKERS, "--set=train.save_checkpoint_secs=5",
      "spec.json"], {}, "spec.json: train.save_checkpoint_secs: needs train.checkpoint_dir"),
    (["--local_workers=2", "--set=train.min_workers=3", "spec.json"], {},
     "spec.json: train.min_workers: 3, but the cluster has 2 workers"),
    (["--job_name=worker", "--task_index=1", PS, WORKERS, "--set=train.min_workers=3",
      "spec.json"], {}, "spec.json: train.min_workers: 3, but the cluster has 2 workers"),
    (["--task_index=x"], {}, '--task_index: expected an integer from -1 to 4095, got "x"'),
    (["--task_index=4096"], {}, "--task_index: expected an integer from -1 to 4095, got 4096"),
    (["--transport=udp", "spec.json"], {},
     '--transport: expected one of auto, tcp, shm, got "udp"'),
    (["--start_timeout=0", "spec.json"], {},
     "--start_timeout: expected a number from 0.001 to 8640000, got 0"),
    (["--threads=many", "spec.json"], {},
     '--threads: expected an integer from 0 to 1024, or auto, got "many"'),
    (["--log_level=loud", "spec.json"], {},
     '--log_level: expected one of error, warning, info, debug, got "loud"'),
    (["--result=/nowhere/result.json", "spec.json"], {},
     "--result: cannot write /nowhere/result.json: No such file or directory"),
    (["--metrics_file=/", "spec.json"], {}, "--metrics_file: / is a folder"),
    (["--metrics_file=spec.json", "spec.json"], {},
     "--metrics_file=spec.json: is the spec and would be lost: name another file"),
    (["--local_ps=1", "--result=./spec.json", "spec.json"], {},
     "--result=./spec.json: is the spec and would be lost: name another file"),
    (["--set=train.checkpoint_dir=.", "--result=model.ckpt-3.index", "spec.json"], {},
     "--result=model.ckpt-3.index: belongs to the checkpoints and would be lost: name another file"),
    (["--local_ps=1", "--ready_file=x", "spec.json"], {}, LOCAL + "--ready_file does not go with them"),
    (["--job_name=ps", "--task_index=0", PS, WORKERS, "--ready_file=/nowhere/ready.json"], {},
     "--ready_file: cannot write /nowhere/ready.json: No such file or directory"),
    (["--job_name=ps", "--task_index=0", PS, WORKERS, "--ready_file=http://host/ready.json"], {},
     "--ready_file: a file that goes with its task cannot be behind a URL"),
    (["--job_name=ps", "--task_index=0", PS, WORKERS, "--ready_file=/dev/full"], {},
     "--ready_file: /dev/full is there, and no file"),
    (["--bind=127.0.0.1:1", "spec.json"], {},
     "--bind needs --job_name: a single process listens nowhere"),
    (["--set", "nothing", "spec.json"], {},
     'spec.json: "nothing": expected path=value, such as train.last_step=200 or model[0].units=20'),
    # which task of which cluster
    (["--job_name=ps"], {},
     "--job_name=ps needs --task_index, --ps_hosts and --worker_hosts"),
    (["--job_name=worker", "--task_index", "0", WORKERS], {}, "--job_name=worker needs --ps_hosts"),
    (["--job_name=worker", "--task_index=0", PS], {}, "--job_name=worker needs --worker_hosts"),
    (["--job_name=ps", PS, WORKERS], {}, "--job_name=ps needs --task_index"),
    ([PS, WORKERS, "spec.json"], {}, "--ps_hosts needs --job_name (ps or worker)"),
    (["--task_index=1", "spec.json"], {}, "--task_index needs --job_name (ps or worker)"),
    (["--job_name=boss", "--task_index=0", PS, WORKERS], {},
     '--job_name: expected ps, worker or evaluator, got "boss"'),
    (["--job_name=ps", "--task_index=2", PS, WORKERS], {},
     "task_index 2 but ps_hosts names 2 tasks"),
    (["--job_name=worker", "--task_index=0", PS, WORKERS], {}, NO_SPEC),
    ([], {"JOB_NAME": "ps", "TASK_INDEX": "0", "PS_HOSTS": "a:1"},
     "JOB_NAME=ps in the environment needs --worker_hosts"),
    ([PS], {"JOB_NAME": "ps", "TASK_INDEX": "first"},
     'TASK_INDEX in the environment: expected an integer from -1 to 4095, got "first"'),
    ([PS, WORKERS, "--task_index=2"], {"JOB_NAME": "ps", "TASK_INDEX": "0"},
     "task_index 2 but ps_hosts names 2 tasks"),
    ([PS, WORKERS], {"JOB_NAME": "ps", "TASK_INDEX": "2"},
     "TASK_INDEX 2 in the environment but ps_hosts names 2 tasks"),
    ([WORKERS], {"JOB_NAME": "ps", "TASK_INDEX": "0", "PS_HOSTS": "a:1,b"},
     'PS_HOSTS in the environment: ps_hosts[1]: address "b": expected host:port or [v6 '
     "address]:port"),
    ([PS, WORKERS], {"JOB_NAME": "build-42", "TASK_INDEX": "0"},
     'JOB_NAME in the environment: expected ps, worker or evaluator, got "build-42"'),
    (["spec.json"], {"PS_HOSTS": "a:1"}, "PS_HOSTS in the environment needs --job_name (ps or "
                                         "worker)"),
    # addresses
    (["--job_name=ps", "--task_index=0", "--ps_hosts=localhost", WORKERS], {},
     'ps_hosts[0]: address "localhost": expected host:port or [v6 address]:port'),
    (["--job_name=ps", "--task_index=0", "--ps_hosts=a:1,b:x", WORKERS], {},
     'ps_hosts[1]: address "b:x": expected a port from 0 to 65535, got "x"'),
    (["--job_name=ps", "--task_index=0", "--ps_hosts=a:1,,b:2", WORKERS], {},
     'ps_hosts[1]: address "": expected host:port or [v6 address]:port'),
    (["--job_name=ps", "--task_index=0", "--ps_hosts=a:0", WORKERS], {},
     "ps/0 at a:0 chooses its port when it starts: it needs --ready_file, where it says which"),
    (["--job_name=worker", "--task_index=0", "--worker_hosts=a:0,b:0", PS,
      "--set=train.replication=in_graph", "spec.json"], {},
     "worker/0 at a:0 chooses its port when it starts: it needs --ready_file, where it says which"),
    (["--job_name=worker", "--task_index=1", "--worker_hosts=a:0,b:0", PS,
      "--set=train.replication=in_graph", "spec.json"], {},
     "worker/0 at a:0 chooses its port when it starts, and a worker that it reads for must know it: "
     "start it first, with --ready_file, and say the address that it writes there"),
    (["var", "ls", "--ps_hosts=a:0"], {},
     "ps/0 at a:0 chooses its port when it starts, and dtrain var ls must know it: start it first, "
     "with --ready_file, and say the address that it writes there"),
    (["--job_name=ps", "--task_index=0", "--ps_hosts=a:1", "--worker_hosts=b:1,a:1"], {},
     'the same address twice: "a:1" is ps/0 and worker/1'),
    # TF_CONFIG
    (["spec.json"], {"TF_CONFIG": "[]"}, "TF_CONFIG: expected a JSON object"),
    (["spec.json"], {"TF_CONFIG": '{"cluster": {"ps": ["a:1"]}}'},
     'TF_CONFIG.cluster: names no "chief" and no "worker"'),
    (["spec.json"], {"TF_CONFIG": '{"cluster": {"chief": ["a:1"], "master": ["b:1"]}}'},
     'TF_CONFIG.cluster: both "chief" and "master" (its old name)'),
    (["spec.json"], {"TF_CONFIG": '{"task": {"type": "ps", "index": 0}}'},
     'TF_CONFIG: task ps/0 needs a "cluster"'),
    (["spec.json"], {"TF_CONFIG": '{"task": {"type": "evaluator", "index": 0}}'},
     'TF_CONFIG: task evaluator/0 needs a "cluster"'),
    # local clusters
    (["--local_ps=2", "--job_name=ps", "spec.json"], {},
     LOCAL + "--job_name does not go with them"),
    (["--local_workers=2", "--bind=a:1", "spec.json"], {}, LOCAL + "--bind does not go with them"),
    (["--local_ps=200", "spec.json"], {}, "--local_ps: expected an integer from 0 to 128, got 200"),
    (["--local_workers=2"], {}, NO_SPEC),
    # specs, as far as opening them goes
    (["broken.json"], {},
     "broken.json: line 2, column 0: string or '}' expected near end of file"),
    (["list.json"], {}, "list.json: expected a JSON object, got a list"),
    (["twice.json"], {},
     "twice.json: line 1, column 20: duplicate object key near '\"name\"'"),
    (["--set=model[1].name=a", "--set=model[0].name=a", "--log_level=error", "spec.json"], {},
     'spec.json: model[1] (dense "a"): the name is taken by model[0]'),
    (["--log_level=error", "--set=metrics=[{\"op\": \"in_top_k\", \"k\": 99}]", "spec.json"], {},
     "spec.json: metrics[0] (in_top_k): k: must be less than the 10 classes, got 99"),
    (["--log_level=error", "--set=placement.pins=[{\"match\": \"no/*\", \"ps\": 0}]", "spec.json"], {},
     'spec.json: placement.pins[0].match: no variable is called "no/*"'),
    (["--log_level=error", "--set=optimizers=[{\"type\": \"adam\", \"match\": \"no/*\"}]", "spec.json"], {},
     'spec.json: optimizers[0].match: no variable is called "no/*"'),
    (["--log_level=error", "--set=optimizers=[{\"type\": \"adam\", \"match\": \"*/bias\"}]", "spec.json"], {},
     'spec.json: optimizers: none matches the variable "softmax/kernel" ("match": "*" does)'),
    (["--local_ps=1", "broken.json"], {},
     "broken.json: line 2, column 0: string or '}' expected near end of file"),
]

RIGHT = [
    (["help"], "topics of dtrain help:"),
    (["--help"], "usage: dtrain [FLAGS] SPEC.json"),
    (["spec.json", "-h"], "usage: dtrain [FLAGS] SPEC.json"),
    (["help", "spec"], "batch_size"),
    (["help", "flags"], "--job_name=string"),
    (["help", "exit-codes"], "128  another task was lost or refused"),
    (["help", "exit-codes"], "131  a GPU broke while it worked"),
    (["help", "cluster"], "TF_CONFIG"),
    (["help", "TF_CONFIG"], "cluster: how the tasks of a cluster are started"),
    (["help", "timeouts"], "--restart_timeout=number"),
    (["help", "signals"], "SIGUSR1"),
    (["help", "environment"], "WORKER_HOSTS          as --worker_hosts"),
    (["help", "exit-codes"], "dtrain help timeouts"),
    (["help", "op"], "conv2d"),
    (["help", "op", "conv2d"], "dilation_rate"),
    (["help", "conv2d"], "dilation_rate"),
    (["help", "loss", "huber"], "loss huber: "),
    (["help", "loss", "hinge"], "reduction"),
    (["help", "metric", "in_top_k"], "metric in_top_k: "),
    (["help", "initializer", "orthogonal"], "initializer orthogonal: "),
    (["help", "regularizer"], "l2"),
    (["help", "optimizer", "adam"], "beta1"),
    (["help", "schedule", "exponential_decay"], "decay_rate"),
    (["help", "clip"], "norm"),
    (["help", "partitioner"], "min_max_variable"),
    (["help", "data", "format", "idx"], "data format idx: "),
    (["help", "format", "csv"], "data format csv: "),
    (["help", "data"], "batch_size  integer"),
    (["help", "train"], "checkpoint_dir"),
    (["help", "epochs"], 'epochs: a key of "train"'),
    (["help", "steps"], "steps: a flag of a run"),
    (["help", "batch_size"], "batch_size: a flag of a run"),
    (["help", "batch_size"], 'batch_size: a key of "data"'),
    (["help", "start_timeout"], "--start_timeout=number"),
    (["help", "units"], "units: a key of these (dtrain help NAME says more)\n\n  op dense\n"),
    (["help", "check"], "dtrain check [FLAGS] SPEC.json"),
    (["help", "schema"], "dtrain schema"),
    (["check", "--help"], "dtrain check [FLAGS] SPEC.json"),
    (["eval", "--help"], "dtrain eval --checkpoint=CKPT"),
    (["predict", "spec.json", "-h"], "--out=string"),
    (["--threads=1", "eval", "--help"], "dtrain eval --checkpoint=CKPT"),
    (["checkpoint", "ls", "--help"], "dtrain checkpoint reshard"),
    (["checkpoint", "help"], "dtrain checkpoint reshard"),
    (["var", "help"], "dtrain var watch NAME"),
    (["devices", "--help"], "dtrain devices"),
    (["help", "--help"], "topics of dtrain help:"),
    (["--threads=1", "check", "spec.json"], "batch size 20"),
    (["--threads", "1", "--set=data.batch_size=25", "check", "spec.json"], "batch size 25"),
    (["--version"], "libraries: jansson"),
    (["version"], "arithmetic: "),
]


class CommandLine(CommandCase):
    def test_wrong_command_lines_are_explained(self):
        for arguments, env, message in WRONG:
            with self.subTest(arguments=arguments, env=env):
                ended = self.run_dtrain(*arguments, env=env)
                self.assertEqual(ended.stderr, f"dtrain: {message}\n")
                self.assertEqual((ended.returncode, ended.stdout), (2, ""))

    def test_help_comes_from_the_tables(self):
        for arguments, words in RIGHT:
            with self.subTest(arguments=arguments):
                ended = self.run_dtrain(*arguments)
                self.assertIn(words, ended.stdout)
                self.assertEqual((ended.returncode, ended.stderr), (0, ""))

    def test_help_as_json_has_all_that_help_says(self):
        """Every row of every table, of kinds and of what is nested, too."""
        def rows(part):
            for row in part.get("flags", []) + part.get("fields", []) + part.get("kinds", []):
                yield row
                yield from rows(row)

        found = json.loads(self.run_dtrain("help", "--json").stdout)
        overview = self.run_dtrain("help").stdout
        self.assertIn("".join(part["text"] for part in found["usage"]), overview)
        for command in found["commands"]:
            self.assertIn(f"dtrain {command['name']} ", overview)
        for topic in found["topics"]:
            self.assertIn(f"  {topic['name']} ", overview)
            said = " ".join(self.run_dtrain("help", *topic["name"].split()).stdout.split())
            for part in [topic, *topic.get("parts", [])]:
                for kind in part.get("kinds", []):
                    said += " ".join(self.run_dtrain("help", *topic["name"].split(), kind["name"]).stdout.split())
                for row in rows(part):
                    self.assertIn(row["name"], said)
                    self.assertIn(" ".join(row.get("text", row.get("summary")).split()), said)
                self.assertIn(" ".join(part.get("text", "").split()), said)

    def test_without_arguments_there_is_a_short_usage(self):
        for env in ({}, {"JOB_NAME": "build-42"}):
            ended = self.run_dtrain(env=env)
            self.assertTrue(ended.stderr.startswith("usage: dtrain"), ended.stderr)
            self.assertLess(len(ended.stderr.splitlines()), 33)
            self.assertEqual((ended.returncode, ended.stdout), (2, ""))

    def test_no_line_of_help_is_wider_than_100_columns(self):
        known = json.loads(self.run_dtrain("help", "--json").stdout)
        words = [[]] + [topic["name"].split() for topic in known["topics"]]
        words += [topic["name"].split() + [kind["name"]]
                  for topic in known["topics"] for kind in topic.get("kinds", [])]
        for arguments in words:
            for line in self.run_dtrain("help", *arguments).stdout.splitlines():
                self.assertLessEqual(len(line), 100, f"help {' '.join(arguments)}: {line}")

    def test_every_flag_is_in_the_help(self):
        words = self.run_dtrain("help", "flags").stdout
        for flag in ("job_name", "task_index", "ps_hosts", "worker_hosts", "local_ps", "seed",
                     "local_workers", "set", "data_dir", "result", "metrics_file", "transport",
                     "threads", "cpu_kernels", "bind", "start_timeout", "step_timeout",
                     "end_timeout", "log_level"):
            self.assertIn(f"--{flag}=", words)
        for name in ("JOB_NAME", "TASK_INDEX", "PS_HOSTS", "WORKER_HOSTS"):
            self.assertIn(f"environment {name}", " ".join(words.split()))
        self.assertNotIn("launched", words)  # the launcher's own

    def test_short_words_say_what_set_says(self):
        """In every task of a cluster, too; whatever stands last counts."""
        short = ["--set=train.last_step=9", "--steps=7", "--batch_size", "10", "--optimizer=adam",
                 "-o", "5"]
        for words in (short, short + ["--local_ps=2", "--local_workers=1"]):
            ended = self.run_dtrain(*words, "spec.json")
            self.assertEqual(ended.returncode, 0, ended.stderr)
            self.assertIn("adam", ended.stderr)
            self.assertRegex(ended.stdout, r"(?m)^(worker/0: )?step 7, ")
            self.assertTrue((self.folder / "5" / "model.ckpt-7.index").exists())
            shutil.rmtree(self.folder / "5")
        self.assertIn("batch size 10", self.run_dtrain("check", *short, "spec.json").stdout)
        words = " ".join(self.run_dtrain("help", "flags").stdout.split())
        self.assertIn("(or -o string; the same as --set train.checkpoint_dir=...)", words)
        self.assertIn("(the same as --set train.last_step=...)", words)

    def test_errors_alone_leave_no_table(self):
        """A file that is named like a command is meant before it."""
        (self.folder / "check").write_text(json.dumps(commands.SPEC))
        for words in (["--log_level=error", "spec.json"], ["--log_level=error", "check"]):
            ended = self.run_dtrain(*words)
            self.assertEqual((ended.returncode, ended.stderr), (0, ""))
            self.assertEqual(len(ended.stdout.splitlines()), 1, ended.stdout)

    def test_the_schema_is_json_and_names_what_the_spec_has(self):
        ended = self.run_dtrain("schema")
        self.assertEqual((ended.returncode, ended.stderr), (0, ""))
        schema = json.loads(ended.stdout)
        self.assertEqual(schema["title"], "dtrain spec")
        self.assertEqual(schema["$schema"], "https://json-schema.org/draft/2020-12/schema")
        for name in commands.SPEC:
            self.assertIn(name, schema["properties"])
        self.assertEqual(schema["allOf"], [
            {"oneOf": [{"required": [one]}, {"required": [other]}]}
            for one, other in (("loss", "heads"), ("optimizer", "optimizers"))])
        vocabulary = [kind for kind in schema["$defs"]["column"]["anyOf"]
                      if kind.get("properties", {}).get("column") == {"const": "vocabulary"}]
        self.assertEqual(vocabulary[0]["oneOf"], [{"required": ["words"]}, {"required": ["file"]}])

    def test_check_prints_the_plan(self):
        ended = self.run_dtrain("check", "--local_ps=2", "--local_workers=2", "spec.json")
        self.assertEqual((ended.returncode, ended.stderr), (0, ""))
        words = ended.stdout
        self.assertIn("training data: 400 rows of [28, 28, 1] uint8", words)
        self.assertRegex(words, r"softmax +dense +\[20, 10\] +7850\n")
        self.assertIn("parameters: 7850, 31400 bytes\n", words)
        self.assertIn("optimizer: gradient_descent, 0 slots, 0 bytes\n", words)
        self.assertRegex(words, r"softmax/kernel +\[784, 10\] +31360 +1\n")
        self.assertNotIn("warning", words)  # it is small
        self.assertIn("async, 2 ps, 2 workers, batch size 20, 20 steps per epoch, last step 20\n",
                      words)
        self.assertEqual(words.splitlines()[-1], "ok")

    def test_check_says_where_a_decay_ends(self):
        """A decay in steps that is right for one worker is half done with two; one in epochs is not."""
        def rates(workers, decay):
            schedule = '{"type": "polynomial_decay", "learning_rate": 0.5, "end_learning_rate": 0, %s}' % decay
            ended = self.run_dtrain("check", f"--local_workers={workers}", "--local_ps=1", "--set",
                                    f"optimizer.learning_rate={schedule}", "--set", "train.mode=sync", "--set",
                                    "train.num_steps=null", "--set", "train.epochs=2", "spec.json")
            self.assertEqual((ended.returncode, ended.stderr), (0, ""))
            return [line for line in ended.stdout.splitlines() if line.startswith("learning rate")]
        self.assertEqual(rates(1, '"decay_steps": 40'), ["learning rate: 0.5 at the first step, 0.0125 at the last"])
        self.assertEqual(rates(2, '"decay_steps": 40'), ["learning rate: 0.5 at the first step, 0.263 at the last"])
        self.assertEqual(rates(2, '"decay_epochs": 2'), ["learning rate: 0.5 at the first step, 0.025 at the last"])

    def test_check_draws_the_model(self):
        with open(os.path.join(self.folder, "two.json"), "w", encoding="utf-8") as file:
            model = [{"op": "flatten"}, {"op": "dense", "name": "ab", "units": 10},
                     {"op": "add", "inputs": ["ab", "ab"]}]
            json.dump({**commands.SPEC, "model": model}, file)
        drawn = {form: self.run_dtrain("check", f"--graph={form}", "two.json")
                 for form in ("dot", "mermaid")}
        for ended in drawn.values():
            self.assertEqual((ended.returncode, ended.stderr), (0, ""))
        dot = drawn["dot"].stdout.splitlines()
        self.assertEqual((dot[0], dot[-1]), ("digraph model {", "}"))
        self.assertIn('  n1 [label="ab\\ndense [20, 10]"];', dot)
        self.assertEqual([line for line in dot if "->" in line],
                         ["  c0 -> n0;", "  n0 -> n1;", "  n1 -> n2;", "  n1 -> n2;", "  n2 -> l0;"])
        mermaid = drawn["mermaid"].stdout.splitlines()
        self.assertEqual((mermaid[0], mermaid[1]),
                         ("flowchart TD", '  c0["features<br>[20, 28, 28, 1]"]'))
        self.assertIn('  l0["softmax_cross_entropy<br>loss"]', mermaid)
        self.assertEqual(len([line for line in mermaid if "-->" in line]), 5)

    def test_a_plan_is_json_too(self):
        ended = self.run_dtrain("check", "--json", "--local_ps=2", "spec.json")
        self.assertEqual((ended.returncode, ended.stderr), (0, ""))
        plan = json.loads(ended.stdout)
        self.assertEqual((plan["name"], plan["ps"], plan["workers"], plan["rows"], plan["last_step"]),
                         ("digits", 2, 1, 400, 20))
        self.assertEqual(plan["variables"], [
            {"name": "softmax/kernel", "shape": [784, 10], "ps": plan["variables"][0]["ps"]},
            {"name": "softmax/bias", "shape": [10], "ps": plan["variables"][1]["ps"]}])
        self.assertEqual(sum(plan["ps_bytes"]), 4 * plan["parameters"])
        self.assertEqual(plan["growing"], [])
        for memory, held in zip(plan["ps_memory"], plan["ps_bytes"]):
            self.assertEqual(memory["values"], held)
            self.assertEqual(memory["save"], memory["values"] + memory["slots"])
            self.assertGreaterEqual(memory["windows_of_a_worker"], 2 * held)  # asynchronous: its values, too
        more = json.loads(self.run_dtrain("check", "--json", "--local_ps=2", "--local_workers=3",
                                          "--set=train.mode=sync", "spec.json").stdout)
        for memory, held in zip(more["ps_memory"], more["ps_bytes"]):
            self.assertEqual(memory["windows"], 3 * memory["windows_of_a_worker"])
            self.assertLess(memory["windows_of_a_worker"], 2 * held)
        devices = json.loads(self.run_dtrain("devices", "--json").stdout)
        self.assertTrue(devices["cpu"]["instruction_sets"])
        self.assertEqual(devices["gpus"], [])

    def test_check_says_that_a_loss_of_probabilities_gets_other_numbers(self):
        changes = ['--set=data.train={"format": "random", "rows": 100, "shape": [4], "classes": 2}',
                   "--set=loss=log_loss", "spec.json"]
        for activation, expected in (("linear", True), ("sigmoid", False)):
            guess = {"op": "dense", "name": "guess", "units": 1, "activation": activation}
            ended = self.run_dtrain("check", f"--set=model={json.dumps([guess])}", *changes)
            self.assertEqual((ended.returncode, ended.stderr), (0, ""))
            warning = 'warning: log_loss takes probabilities, and "guess" makes any numbers'
            self.assertEqual(warning in ended.stdout, expected, ended.stdout)

    def test_check_warns_of_a_sweep_over_a_large_table(self):
        large = [f"--set=data.columns[{i}].buckets=100000" for i in (0, 2)]
        few = ["--set=data.train.rows=2000", "--set=data.eval=null"]
        for optimizer, columns, words in (
                ("adam", large, "adam changes all rows of 2 tables, 3.2 MB, in every step: lazy_adam"),
                ("adamw", large[:1], "adamw changes all rows of 1 table, 1.6 MB, in every step"),
                ("adam", [], None), ("lazy_adam", large, None), ("adagrad", large, None)):
            ended = self.run_dtrain("check", f'--set=optimizer={{"type": "{optimizer}", "learning_rate": 0.1}}',
                                    *few, *columns, program.ROOT / "examples" / "clicks_dlrm.json")
            self.assertEqual((ended.returncode, ended.stderr), (0, ""))
            if words:
                self.assertIn("warning: " + words, ended.stdout)
            else:
                self.assertNotIn("warning", ended.stdout)

    def test_tables_are_part_of_a_plan_and_counted_by_a_ps(self):
        spec = program.ROOT / "examples" / "clicks_dlrm.json"
        few = ["--set=data.train.rows=2000", "--set=data.eval=null", "--set=train.last_step=1"]
        plan = json.loads(self.run_dtrain("check", "--json", "--local_ps=3", *few,
                                          "--set=data.columns[0].buckets=100000", spec).stdout)
        (table,) = [one for one in plan["variables"] if one["shape"][0] == 100000]
        self.assertEqual(sorted(table["ps"]), [0, 1, 2])
        self.assertIn("holds 8 variables in 0.06 MB, 26 tables of up to 0.01 MB, adam",
                      self.run_dtrain(*few, spec).stderr)

    def test_the_examples_of_clicks_train_without_files(self):
        for name in ("clicks_dlrm", "clicks_deepfm"):
            short = ["--set=data.train.rows=2000", "--set=data.eval.rows=2100", "--set=data.eval.skip=2000"]
            ended = self.run_dtrain(*short, program.ROOT / "examples" / f"{name}.json")
            self.assertEqual(ended.returncode, 0, ended.stdout + ended.stderr)
            self.assertRegex(ended.stdout, r"step 4, test loss [\d.]+, test auc_ranking [\d.]+")

    def test_check_says_what_is_cut_and_why(self):
        units = "--set=model[1].units=1000"
        warning = "warning: ps 1 carries 2.0 times its share\n"
        reason = ("1 variable is cut: else ps 1 would hold 2.0 times its share "
                  '(see "partitioner")\n')
        hosts = ["--job_name=worker", "--task_index=0", "--ps_hosts=a:1,b:1", "--worker_hosts=c:1,d:1"]
        cut = self.run_dtrain("check", *hosts, units, "spec.json").stdout
        self.assertRegex(cut, r"softmax/kernel +\[784, 1000\] +3136000 +1 0 \(2 parts\)\n")
        self.assertIn(reason, cut)
        self.assertNotIn("warning", cut)
        whole = [self.run_dtrain("check", "--local_ps=2", "--local_workers=1", units, "spec.json"),
                 self.run_dtrain("check", *hosts, units, "--set=placement.partitioner=none",
                                 "spec.json")]
        for ended in whole:
            self.assertRegex(ended.stdout, r"softmax/kernel +\[784, 1000\] +3136000 +1\n")
            self.assertIn(warning, ended.stdout)
            self.assertNotIn("cut", ended.stdout)

    def test_check_counts_slots_and_synchronous_steps(self):
        ended = self.run_dtrain("check", "--local_workers=4", "--set=train.mode=sync",
                                "--set=optimizer.type=adam", "spec.json")
        self.assertEqual((ended.returncode, ended.stderr), (0, ""))
        self.assertIn("optimizer: adam, 2 slots, 62800 bytes\n", ended.stdout)
        self.assertIn("sync, 1 ps, 4 workers, batch size 20, 5 steps per epoch", ended.stdout)

    def test_check_takes_the_flags_of_a_task(self):
        ended = self.run_dtrain("check", "--job_name=ps", "--task_index=1", PS, WORKERS,
                                "spec.json")
        self.assertEqual((ended.returncode, ended.stderr), (0, ""))
        self.assertIn("async, 2 ps, 2 workers", ended.stdout)

    def test_which_columns_of_a_table_are_used_is_told(self):
        with open(os.path.join(self.folder, "table.csv"), "w", encoding="utf-8") as file:
            file.write("id,a,b,class\nx1,1,2,0\nx2,3,4,1\n")
        train = {"format": "csv", "file": "table.csv", "label": "class", "except": ["id"]}
        words = ["--set=data.train=" + json.dumps(train), "--set=data.batch_size=2", "spec.json"]
        use = "label class; 2 features: a, b; left out: id"
        self.assertIn(f"table.csv\n  {use}\n", self.run_dtrain("check", *words).stdout)
        self.assertIn(f"data.train: table.csv: {use}\n", self.run_dtrain(*words).stderr)

    def test_files_of_examples_that_are_not_there_can_be_had(self):
        for name, where in (("mnist_mlp", "ossci-datasets"), ("mnist_softmax", "ossci-datasets"),
                            ("mnist_cnn", "ossci-datasets"), ("fashion_cnn", "fashion-mnist.s3")):
            path = os.path.join(program.ROOT, "examples", name + ".json")
            for words in ([path], ["--data_dir=.", path]):
                ended = self.run_dtrain("check", *words)
                self.assertEqual((ended.returncode, ended.stdout), (2, ""))
                self.assertRegex(ended.stderr, r"train-images-idx3-ubyte.gz: No such file or directory \(relative paths "
                                               r"begin at [^;]+; --data_dir names another folder\); the data are the four files of ")
                self.assertIn("//" + where, ended.stderr)

    def test_check_finds_what_a_run_would_find(self):
        ended = self.run_dtrain("check", "--set=model[1].unit=7", "spec.json")
        self.assertEqual((ended.returncode, ended.stdout), (2, ""))
        self.assertIn('spec.json: model[1]: unknown key "unit" (did you mean "units"?)',
                      ended.stderr)

    def write(self, name, text):
        with open(os.path.join(self.folder, name), "w", encoding="utf-8") as file:
            file.write(text)

    def test_what_is_left_out_is_said_once_however_many_passes_there_are(self):
        """Means and words of labels are found before the rows are read to train on."""
        self.write("rows.csv", "a,w,y\n1,cat,yes\nx,cat,no\n3,dog,yes\n4,dog,no\n")
        self.write("none.csv", "a,w,y\n")
        train = {"format": "csv", "file": "*.csv", "label": "y", "label_type": "word", "bad_rows": 1}
        columns = [{"column": "numeric", "name": "a", "standardize": True, "default": "mean"}]
        model = [{"op": "dense", "name": "o", "inputs": ["a"], "units": 2}]
        self.write("once.json", json.dumps({"data": {"train": train, "columns": columns, "batch_size": 1}, "model": model,
                                            "loss": "softmax_cross_entropy", "train": {"last_step": 1},
                                            "optimizer": {"type": "gradient_descent", "learning_rate": 0.1}}))
        for stream in ("never", "always"):
            ended = self.run_dtrain("check", f'--set=data.train.stream="{stream}"', "once.json")
            self.assertEqual(ended.returncode, 0, ended.stderr)
            for said in ("1 of 2 files have no row of data: none.csv", 'row left out: rows.csv: line 3: column "a"',
                         "1 of 4 rows are broken and left out"):
                self.assertEqual(ended.stderr.count(said), 1, ended.stderr)

    def test_what_followed_files_are_measured_for_is_said_where_there_are_none(self):
        train = {"format": "csv", "file": "come-*.csv", "label": "y", "follow": True}
        spec = {"data": {"train": train, "batch_size": 1, "columns": [{"column": "numeric", "name": "a", "standardize": True}]},
                "model": [{"op": "dense", "name": "o", "inputs": ["a"], "units": 2}], "loss": "softmax_cross_entropy",
                "optimizer": {"type": "gradient_descent", "learning_rate": 0.1}, "train": {"checkpoint_dir": "followed"}}
        self.write("follow.json", json.dumps(spec))
        said = [('what column "a" is standardized by', []), ("the words that labels are", ["--set=data.train.label_type=word"])]
        for text, why in ((None, 'no file fits "come-*.csv"'), ("a,y\n", "no row of data")):
            if text:
                self.write("come-1.csv", text)
            for wanting, words in said:
                ended = self.run_dtrain(*words, "follow.json")
                self.assertEqual(ended.returncode, 2, ended.stderr)
                self.assertIn(f"data.train: {wanting}: from the files that are there at the start: csv data: ", ended.stderr)
                self.assertIn(why, ended.stderr)

    def test_what_rows_do_not_decide_is_found_before_they_are_read(self):
        """All rows but the first are broken, or more than memory has: whoever reads on says that instead."""
        self.write("rows.csv", "a,b,y\n1,2,0\nx\n")
        self.write("rows.jsonl", '{"a": 1, "b": 2, "y": 0}\nx\n')
        self.write("rows.svm", "0 1:1 2:2\nx\n")
        cells = [{"column": "numeric", "name": "a"}, {"column": "numeric", "name": "b"}]
        sources = [({"format": "clicks", "rows": 10 ** 12}, [{**cells[0], "source": "n1"}, {**cells[1], "source": "n2"}])]
        for stream in ("never", "always"):
            sources += [({"format": "csv", "file": "rows.csv", "label": "y", "stream": stream}, cells),
                        ({"format": "csv", "file": "rows.csv", "label": "y", "stream": stream}, []),
                        ({"format": "jsonl", "file": "rows.jsonl", "label": "y", "names": ["a", "b"], "stream": stream}, cells),
                        ({"format": "libsvm", "file": "rows.svm", "features": 2, "stream": stream}, [])]
        mistakes = [("data.batch_size=3", ": train.towers: 2 towers cannot share batches of 3 examples evenly"),
                    ('model[0].inputs=["c"]', ': inputs: no node is called "c"'),
                    ('metrics=["in_top_k"]', ": metrics[0] (in_top_k): wants a loss over classes"),
                    ('placement.pins=[{"match":"c","ps":0}]', ': placement.pins[0].match: no variable is called "c"'),
                    ('train.hooks=[{"type":"logging","every_n_iter":1,"values":["c"]}]', ': train.hooks[0]: logging'),
                    ('train.warm_start={"checkpoint":"none","skip":["c"]}', ': train.warm_start: skip[0]')]
        for source, columns in sources:
            inputs = ["a"] if columns else ["features"]
            self.write("early.json", json.dumps({
                "data": {"train": source, "columns": columns, "batch_size": 2}, "loss": "sigmoid_cross_entropy",
                "model": [{"op": "dense", "name": "out", "units": 1, "inputs": inputs}], "optimizer": "adam",
                "placement": {}, "train": {"last_step": 1, "towers": 2}}))
            for mistake, words in mistakes:
                with self.subTest(source=source, mistake=mistake):
                    for check in (["check"], []):
                        ended = self.run_dtrain(*check, "--set", mistake, "early.json")
                        self.assertEqual(ended.returncode, 2)
                        self.assertIn(words, ended.stderr)

    def test_the_end_that_is_set_displaces_that_of_the_file(self):
        path = os.path.join(self.folder, "epochs.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump({**commands.SPEC, "train": {"epochs": 50}}, file)
        ended = self.run_dtrain("--set=train.last_step=7", "epochs.json")
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertRegex(ended.stdout, r"(?m)^step 7, ")

    def test_the_environment_of_a_build_server_makes_no_task(self):
        """Jenkins sets JOB_NAME, arrays of schedulers TASK_INDEX."""
        ended = program.run(["spec.json"], self.folder,
                            {"JOB_NAME": "build-42", "TASK_INDEX": "first"})
        self.assertEqual(ended.returncode, 0, ended.stderr)
        told = "JOB_NAME=build-42 in the environment is not used: no hosts are given"
        self.assertEqual(ended.stderr.count(told), 1)
        self.assertRegex(ended.stdout, r"(?m)^step 20, ")

    def test_variables_of_other_launchers_are_told(self):
        """One process of several, each of which would train the whole by itself."""
        for name, launcher in (("SLURM_NTASKS", "Slurm"), ("OMPI_COMM_WORLD_SIZE", "Open MPI"),
                               ("PMI_SIZE", "MPICH"), ("WORLD_SIZE", "torchrun")):
            for value, count in (("4", 1), ("1", 0)):
                told = f"{name}={value} of {launcher} is not used: this process trains by itself"
                for words in (["check", "spec.json"], ["spec.json"]):
                    ended = program.run(words, self.folder, {name: value})
                    self.assertEqual(ended.returncode, 0, ended.stderr)
                    self.assertEqual(ended.stderr.count(told), count)
        ended = program.run(["check", "--job_name=worker", "--task_index=0", PS, WORKERS, "spec.json"],
                            self.folder, {"SLURM_NTASKS": "4"})
        self.assertEqual((ended.returncode, ended.stderr), (0, ""))

    def test_lines_of_the_log_may_be_dated_or_json(self):
        dated = self.run_dtrain("--log_format=dated", "spec.json")
        self.assertEqual(dated.returncode, 0, dated.stderr)
        for line in dated.stderr.splitlines():
            datetime.datetime.fromisoformat(line.split()[0]).utcoffset().total_seconds()
        for words in ([], ["--local_ps=2", "--local_workers=1"]):
            ended = self.run_dtrain("--log_format=json", "--set=train.log_device_placement=true", *words, "spec.json")
            self.assertEqual(ended.returncode, 0, ended.stderr)
            self.assertEqual(ended.stdout, "")
            lines = logged.check_all(self, ended.stderr)
            self.assertTrue(any(line["text"].startswith("step 20, ") for line in lines), ended.stderr)
            self.assertTrue(any(line["text"].startswith("ps 0: ") for line in lines), ended.stderr)
            self.assertTrue(any("(variable): /job:ps/task:" in line["text"] for line in lines), ended.stderr)
            self.assertEqual({tuple(line) for line in lines}, {("time", "level", "task", "text")})
            self.assertEqual({line["task"] for line in lines},
                             {"", "ps/0", "ps/1", "worker/0"} if words else {""})
        unknown = self.run_dtrain("--nosuch=1", "--log_format=json", "spec.json")
        self.assertEqual(logged.check(self, unknown.stderr)["text"],
                         'unknown flag "nosuch": no flag has a similar name')
        wrong = self.run_dtrain("--log_format=json", 'a"b\\c.json')
        line = logged.check(self, wrong.stderr)
        self.assertEqual((line["level"], line["text"]),
                         ("error", 'a"b\\c.json: cannot be opened: No such file or directory'))

    def test_the_log_says_how_long_it_takes_still(self):
        ended = self.run_dtrain("--set=train.log_every_steps=5", "spec.json")
        steps = re.findall(r"step (\d+) of 20, .*?(\d+ s left)?\n", ended.stderr)
        self.assertEqual([(step, bool(left)) for step, left in steps],
                         [("1", False), ("5", True), ("10", True), ("15", True), ("20", False)])

    def test_a_spec_comes_from_standard_input(self):
        ended = self.run_dtrain("check", "-", stdin=json.dumps(commands.SPEC))
        self.assertEqual((ended.returncode, ended.stderr), (0, ""))

    def test_a_port_in_use_is_named_with_its_owner(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            address = f"127.0.0.1:{taken.getsockname()[1]}"
            for job, hosts in (("ps", f"--ps_hosts={address}"),
                               ("worker", f"--worker_hosts={address}")):
                other = WORKERS if job == "ps" else PS
                ended = self.run_dtrain(f"--job_name={job}", "--task_index=0", hosts, other,
                                        "--start_timeout=0.1", "spec.json")
                self.assertIn(f"{address}: address already in use by pid {os.getpid()} (",
                              ended.stderr)
                self.assertEqual(ended.returncode, 129)

    @unittest.skipIf(program.SANITIZER != "none", "its start alone takes as long")
    def test_a_run_ends_when_it_is_done(self):
        """Nobody waits for a worker that left in the millisecond of the end. A busy machine is slow, but not each time."""
        def is_prompt():
            since = time.monotonic()
            self.assertEqual(self.run_dtrain("spec.json").returncode, 0)
            return time.monotonic() - since < PROMPT_S
        program.wait_until(is_prompt, lambda: f"a run of {PROMPT_S} s")

    def test_a_run_that_has_nothing_left_to_do_says_so(self):
        for count in (0, 1):
            ended = self.run_dtrain("--set=train.checkpoint_dir=run", "spec.json")
            self.assertEqual(ended.returncode, 0, ended.stderr)
            self.assertEqual(ended.stderr.count("step 20 of 20 is there already"), count)

    def test_a_checkpoint_that_does_not_fit_is_not_called_damaged(self):
        """Older ones do not fit either: they are neither offered nor tried."""
        first = self.run_dtrain("--set=train.checkpoint_dir=run", "spec.json")
        self.assertEqual(first.returncode, 0, first.stderr)
        for policy in ("error", "previous"):
            ended = self.run_dtrain("--set=train.checkpoint_dir=run", "--set=model[1].units=11",
                                    f"--set=train.on_corrupt={policy}", "spec.json")
            self.assertEqual(ended.returncode, 2, ended.stderr)
            self.assertRegex(ended.stderr, r"ERROR: cannot restore \S+/run/model.ckpt-20: softmax/kernel "
                             r"has shape \[784, 10\] there, \[784, 11\] here; it is not damaged; "
                             "-o OTHER_DIR starts over")
            self.assertNotIn("model.ckpt-0", ended.stderr)


if __name__ == "__main__":
    program.main()
