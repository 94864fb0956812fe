/* flags.c - the flags of `dtrain [flags] SPEC.json`. */
#include "cmd/run/best_checkpoints.h"
#include "cmd/cmd.h"

enum { THREADS_MAX = 1024, SECONDS_MAX = 100 * 24 * 3600 };

/* In the order of enum transport_choice, enum parts_choice, enum log_level, enum log_format and
 * enum launched. */
static const char *const transports[] = {"auto", "tcp", "shm", NULL};
static const char *const parts[] = {"auto", "always", "never", NULL};
static const char *const levels[] = {"error", "warning", "info", "debug", NULL};
static const char *const formats[] = {"text", "dated", "json", NULL};
static const char *const launched[] = {"no", "yes", "terminal", NULL};

/* Without them the words of the environment are somebody else's. */
static const char *const hosts_variables[] = {"PS_HOSTS", "WORKER_HOSTS", "TF_CONFIG", NULL};

#define TIMEOUT(NAME, SECONDS, HELP)                                                               \
    {                                                                                              \
        .name = #NAME "_timeout", .type = FIELD_SECONDS,                                           \
        .offset = offsetof(struct run_flags, limits.NAME##_ms), .fallback = #SECONDS,              \
        .min = 0.001, .max = SECONDS_MAX, .help = HELP                                             \
    }

static const struct field fields[] = {
    {.name = "job_name",
     .type = FIELD_STRING,
     .offset = offsetof(struct run_flags, cluster.job_name),
     .fallback = "null",
     .environment = "JOB_NAME",
     .environment_beside = hosts_variables,
     .takers = RUN_TASKS | RUN_EVALUATOR,
     .help = "job of this task: ps, worker, or evaluator, which evaluates the checkpoints of the "
             "others; without it one process trains alone"},
    {.name = "task_index",
     .type = FIELD_INT,
     .offset = offsetof(struct run_flags, cluster.task_index),
     .fallback = "-1",
     .min = -1,
     .max = WORKERS_MAX - 1,
     .environment = "TASK_INDEX",
     .environment_beside = hosts_variables,
     .takers = RUN_TASKS | RUN_EVALUATOR,
     .help = "which task of its job this is, from 0; worker 0 is the chief"},
    {.name = "ps_hosts",
     .type = FIELD_STRING,
     .offset = offsetof(struct run_flags, cluster.ps_hosts),
     .fallback = "null",
     .environment = "PS_HOSTS",
     .takers = RUN_TASKS | RUN_EVALUATOR,
     .help = "addresses of the parameter servers, host:port,host:port,... in the order of their "
             "indices"},
    {.name = "worker_hosts",
     .type = FIELD_STRING,
     .offset = offsetof(struct run_flags, cluster.worker_hosts),
     .fallback = "null",
     .environment = "WORKER_HOSTS",
     .takers = RUN_TASKS | RUN_EVALUATOR,
     .help = "addresses of the workers, in the same way"},
    {.name = "slurm",
     .type = FIELD_STRING,
     .offset = offsetof(struct run_flags, cluster.slurm),
     .fallback = "null",
     .takers = RUN_TASKS,
     .help =
         "ps=N: this is one of the tasks that srun has started, of which the first N are "
         "parameter servers and the others workers; hosts and ports follow from what Slurm says"},
    {.name = "base_port",
     .type = FIELD_INT,
     .offset = offsetof(struct run_flags, cluster.base_port),
     .fallback = "0",
     .max = 65535,
     .takers = RUN_TASKS,
     .help =
         "slurm: the port of the first task of each node, then come those of the others; 0: the "
         "ports of srun --resv-ports, or else some that depend on the job"},
    {.name = "local_ps",
     .type = FIELD_INT,
     .offset = offsetof(struct run_flags, local_ps),
     .fallback = "0",
     .max = LOCAL_TASKS_MAX,
     .takers = RUN_LAUNCHER,
     .help = "start a whole cluster on this host with so many parameter servers"},
    {.name = "local_workers",
     .type = FIELD_INT,
     .offset = offsetof(struct run_flags, local_workers),
     .fallback = "0",
     .max = LOCAL_TASKS_MAX,
     .takers = RUN_LAUNCHER,
     .help = "and so many workers (1 where only local_ps is given, and the other way round)"},
    {.name = "set",
     .type = FIELD_STRINGS,
     .offset = offsetof(struct run_flags, set),
     .fallback = "[]",
     .help = "change a value of the spec, as in --set train.last_step=200; may be repeated"},
    {.name = "checkpoint_dir",
     .type = FIELD_STRING,
     .stands_for = "train.checkpoint_dir",
     .letter = 'o',
     .help = "folder of the checkpoints; a run whose folder has some goes on from there"},
    {.name = "steps",
     .type = FIELD_INT,
     .stands_for = "train.last_step",
     .help = "the global step after which training ends"},
    {.name = "batch_size",
     .type = FIELD_INT,
     .stands_for = "data.batch_size",
     .help = "examples of a step of one worker"},
    {.name = "optimizer",
     .type = FIELD_STRING,
     .stands_for = "optimizer.type",
     .help = "which one; its other settings stay those of the spec"},
    {.name = "data_dir",
     .type = FIELD_STRING,
     .offset = offsetof(struct run_flags, data_dir),
     .fallback = "null",
     .help = "folder of the data files with relative paths, instead of the folder of the spec"},
    {.name = "seed",
     .type = FIELD_INT,
     .offset = offsetof(struct run_flags, seed),
     .fallback = "-1",
     .min = -1,
     .max = 0x1p53, /* results are JSON, whose integers many programs read as doubles */
     .help = "seed of the run instead of the one in the spec"},
    {.name = "result",
     .type = FIELD_STRING,
     .offset = offsetof(struct run_flags, result),
     .fallback = "null",
     .takers = RUN_ALONE | RUN_LAUNCHER | RUN_CHIEF,
     .help = "write how the run ended to this file, as one JSON object (chief only)"},
    {.name = "metrics_file",
     .type = FIELD_STRING,
     .offset = offsetof(struct run_flags, metrics_file),
     .fallback = "null",
     .takers = RUN_ALONE | RUN_LAUNCHER | RUN_CHIEF,
     .help = "write loss, metrics and speed to this file, one JSON object per line (chief only)"},
    {.name = "transport",
     .type = FIELD_ENUM,
     .offset = offsetof(struct run_flags, transport),
     .fallback = "\"auto\"",
     .choices = transports,
     .help = "how tasks talk: shm within one host, tcp; auto takes shm where it can"},
    {.name = "parts",
     .type = FIELD_ENUM,
     .offset = offsetof(struct run_flags, parts),
     .fallback = "\"auto\"",
     .choices = parts,
     .help = "when gradients leave before their step is over, and values come before all gradients "
             "are there: auto: between hosts; always: over tcp within one host as well (where it "
             "leads to a tunnel, say)"},
    {.name = "threads",
     .type = FIELD_INT,
     .offset = offsetof(struct run_flags, threads),
     .fallback = "0",
     .max = THREADS_MAX,
     .help = "threads for arithmetic; 0 shares the cores among the workers of this host"},
    {.name = "cpu_kernels",
     .type = FIELD_STRING,
     .offset = offsetof(struct run_flags, cpu_kernels),
     .fallback = "null",
     .help = "instruction set for arithmetic: avx512, avx2 or sse2, instead of the best there is; "
             "environment DTRAIN_CPU_KERNELS"},
    {.name = "device",
     .type = FIELD_STRING,
     .offset = offsetof(struct run_flags, device),
     .fallback = "null",
     .help = "where to compute, instead of \"device\" of the spec: auto, cpu, gpu or gpu:N; a ps "
             "never uses a GPU"},
    {.name = "bind",
     .type = FIELD_STRING,
     .offset = offsetof(struct run_flags, bind),
     .fallback = "null",
     .takers = RUN_TASKS | RUN_EVALUATOR,
     .help = "listen on this address instead of the own one of the hosts, at the port of that one "
             "if it has none, as in 0.0.0.0; fd:N takes an inherited socket"},
    WAIT_LIMITS(TIMEOUT),
    {.name = "keep_best",
     .type = FIELD_INT,
     .offset = offsetof(struct run_flags, keep_best),
     .fallback = "0",
     .max = BEST_MAX,
     .takers = RUN_EVALUATOR,
     .help = "evaluator: keep so many of the best checkpoints in checkpoint_dir/best"},
    {.name = "best_metric",
     .type = FIELD_STRING,
     .offset = offsetof(struct run_flags, best_metric),
     .fallback = "\"loss\"",
     .takers = RUN_EVALUATOR,
     .help = "evaluator: by which number of the evaluation; whether more or less is better "
             "follows"},
    {.name = "log_level",
     .type = FIELD_ENUM,
     .offset = offsetof(struct run_flags, log_level),
     .fallback = "\"info\"",
     .choices = levels,
     .help = "which lines to print: error, warning, info or debug and everything before it"},
    {.name = "log_format",
     .type = FIELD_ENUM,
     .offset = offsetof(struct run_flags, log_format),
     .fallback = "\"text\"",
     .choices = formats,
     .help = "how lines look on standard error: text; dated: with date and zone; json: one object "
             "per line, which then has what else would go to standard output"},
    {.name = "launched",
     .type = FIELD_ENUM,
     .offset = offsetof(struct run_flags, launched),
     .fallback = "\"no\"",
     .choices = launched,
     .takers = RUN_ALONE | RUN_TASKS},
    {0},
};

const struct object run_flags_object = {
    .name = "dtrain",
    .summary = "Trains the model of SPEC.json",
    .fields = fields,
    .size = sizeof(struct run_flags),
};
