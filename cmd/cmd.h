/* cmd.h - the commands of the binary and what they share.
 *
 * `dtrain [flags] SPEC.json` runs a task, a local cluster or a single process (run.c decides);
 * every other command is a subcommand, a constant of its own that main.c lists.
 */
#ifndef CMD_CMD_H
#define CMD_CMD_H

#include "cmd/cache_flags.h"
#include "cmd/changed_features.h"
#include "core/cluster/description/host_file.h"
#include "core/base/fields/fields.h"
#include "core/cluster/description/cluster_spec.h"
#include "core/cluster/runner/task.h"
#include "core/cluster/role/verdict.h"
#include "core/train/spec/spec.h"

enum { LOCAL_TASKS_MAX = 128 }; /* of one job in a local cluster: three descriptors each */

/* The role of a process, by its flags. The table of flags says which roles take each flag. */
enum run_kind {
    RUN_ALONE = 1 << 0,
    RUN_LAUNCHER = 1 << 1, /* of a cluster on this host, or by ssh */
    RUN_PS = 1 << 2,
    RUN_CHIEF = 1 << 3,
    RUN_WORKER = 1 << 4, /* another */
    RUN_EVALUATOR = 1 << 5,
    RUN_TASKS = RUN_PS | RUN_CHIEF | RUN_WORKER,
};

struct run_flags { /* one table: run_flags_object */
    struct cluster_flags cluster;
    int64_t local_ps, local_workers; /* a whole cluster on this host, or by ssh */
    const char *ssh, *ssh_command;   /* cmd/launch/remote.h; ssh NULL: on this host */
    struct strings set;              /* --set train.last_step=200, repeatable */
    const char *data_dir;
    struct cache_flags cache;
    int changed_features; /* enum changed_features */
    int64_t seed;         /* -1: the spec's */
    const char *result, *metrics_file;
    struct {
        const char *to, *from; /* core/cluster/runner/record.h; NULL: none */
        int64_t to_step;       /* the replay ends here; 0: with the record */
    } record;
    int transport;           /* 0: auto; else 1 + which of transports[] (net/transport.h) */
    int parts;               /* enum parts_choice, there too */
    int64_t threads;         /* 0: cores of this task divided by the workers here */
    const char *cpu_kernels; /* NULL: best */
    const char *device;      /* device_choice.h; NULL: as the spec says */
    const char *storage;     /* NULL: none; looked at by url_servers_note() alone */
    struct {
        const char *at;         /* NULL: the task's own address; "fd:N": an inherited socket */
        const char *ready_file; /* written once it listens (cmd/launch/ready.h), or NULL */
        const char *http;       /* address of its HTTP server (cmd/run/http.h), or NULL */
    } listening;
    struct wait_limits limits;
    struct {
        int64_t count;      /* checkpoints to keep */
        const char *metric; /* name of the number of an evaluation to rank by */
    } best;                 /* evaluator */
    struct {
        int level;         /* enum log_level */
        double every_secs; /* -1: not given */
        int format;        /* enum log_format */
    } log;
    int on_sigterm; /* enum on_sigterm */
    int launched;   /* enum launched */
};
/* What SIGTERM to a worker does: the worker leaves, or the job stops. */
enum on_sigterm { SIGTERM_LEAVES, SIGTERM_STOPS };
/* Whether run_local started this task: then it prints lines without its name, which the launcher
 * adds; TERMINAL: and the launcher's output is a terminal, so it also draws a status line. */
enum launched { LAUNCHED_NO, LAUNCHED_YES, LAUNCHED_TERMINAL };
extern const struct object run_flags_object;

struct run {
    struct run_flags flags;
    struct cluster_spec cluster; /* of --ssh: how many there are, and may be, alone */
    const char *spec_path;       /* NULL where none was given */
    struct spec spec;            /* loaded where has_spec (a ps may do without) */
    bool has_spec;
    bool is_local;             /* launches: flags.local_ps and local_workers are at least 1 */
    struct host_slots slots;   /* of --ssh */
    struct registry *registry; /* of --coordinator: cmd/registry/registry.h */
    struct tls_keys *keys;     /* of --key_file or --tls_cert; NULL: none */
    struct task_http *http;    /* cmd/run/http.h */
    struct ready *ready;       /* tells others that this task listens */
    int argc;
    char **argv;
    struct arena arena;
};

/* Flags and environment, checked together; no file is read but --hostfile. argv[0] is
 * skipped. */
err run_open(struct run *, int argc, char **argv);
err run_read_flags(struct run *, int argc, char **argv); /* the same, of whom a spec is optional */
enum run_kind run_kind(const struct run *);
err run_load_spec(struct run *);               /* also logs ignored environment variables */
bool run_has_remote_input(const struct run *); /* a worker whose data the chief reads */
err run_open_loop(const struct run *, struct loop **ret); /* with these keys */
err run_measure(struct run *); /* spec_measure, for whoever opens the data */
void run_close(struct run *);

/* One constant `command_NAME`, in the command's file; main.c lists them. */
struct command {
    const char *name, *arguments, *summary;
    /* Returns an exit code, having printed its own errors to standard error. argv[1] is the
     * command's name. */
    int (*run)(int argc, char **argv);
    const char *topic;              /* its summary as a topic of `dtrain help`; NULL: no topic */
    void (*print_help)(FILE *);     /* of the topic */
    const char *(*verb)(int index); /* names of verbs, NULL after the last; optional */
    bool takes_run_flags;
};
extern const struct command *const commands[];        /* NULL at the end */
const struct command *find_command(const char *name); /* NULL: there is none */

const char *version_text(void); /* "0.1.0+git861.b85447dff1a5" */

int cmd_run(int argc, char **argv); /* no name: the flags begin at argv[1] */

/* What `dtrain COMMAND --help` says; NULL: `dtrain --help`. Returns an exit code. */
int help_command(const struct command *);
bool help_knows(const char *word); /* `dtrain help WORD` has something to say */

int run_single(struct run *); /* one process, no network */
int run_ps(struct run *);
int run_worker(struct run *);
int run_evaluator(struct run *); /* beside a cluster */
int run_local(struct run *);     /* launches itself local_ps + local_workers times */

/* A short synopsis. */
void print_usage(FILE *);

void print_timeouts(FILE *);
void print_signals(FILE *);
void print_counters(FILE *);
void print_environment(FILE *);

/* For a process that trains alone: logs which variables of a launcher it ignores. */
void environment_report_unused(const struct run *);

/* Makes the task use the socket of LISTEN_FDS (systemd) instead of its own. ERR_INPUT: it names
 * several. */
err environment_take_socket(struct run *);

/* "dtrain: <error text>" on standard error; returns the exit code of the kind (verdict.h). */
int report_error(err);

#endif
