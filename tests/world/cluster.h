/* cluster.h - a job on the machine: its tasks, each on a host of its own, their lives, and what
 * befalls them. */
#ifndef TESTS_WORLD_CLUSTER_H
#define TESTS_WORLD_CLUSTER_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "tests/world/aim.h"
#include "tests/world/faults.h"
#include "tests/world/machine.h"
#include "tests/world/tensors.h"
#include "tests/world/visits.h"

enum { PS_MOST = 3, WORKERS_MOST = 4, TASKS_MOST = PS_MOST + WORKERS_MOST + 1, MISHAPS_MOST = 8 };

enum { COUNTS_BATCH = 4 }; /* of MODEL_COUNTS */
enum { ROWS = 48 };        /* of the table of MODEL_COUNTS, unless it is large */
#define TABLE "rows/embedding_weights"

enum model_kind {
    MODEL_COUNTS, /* a value says how many gradients it had, a row how often it was used */
    MODEL_DIGITS, /* a net whose bits depend on the order of all sums */
    MODEL_KINDS
};

enum mishap_kind {
    MISHAP_KILL,  /* and another life later */
    MISHAP_STAND, /* SIGSTOP, and SIGCONT later */
    MISHAP_RESET, /* connections between two hosts */
    MISHAP_CUT,   /* the way between two hosts, for a while */
    MISHAP_ALONE, /* all ways of a host, for a while */
    MISHAP_DARK,  /* all power is lost, and files that were not synced */
    MISHAP_SLOW,  /* disks, for a while */
    MISHAP_ASK,   /* SIGTERM, and another life later */
    MISHAP_DISK,  /* and what is from here on: the faults of faults.h, in their order */
    MISHAP_STORE = MISHAP_DISK + DISK_FAULTS, /* the server of a URL fails, for a while */
    MISHAP_COORDINATOR,                       /* is down or silent for a while, or forgets */
    MISHAP_FREEZE, /* SIGSTOP to all, and SIGCONT later, as to a host that sleeps */
    MISHAP_LACK,   /* a host has no data for a while, and who starts there ends with 2 */
    MISHAP_LAST,   /* whoever leads stands still amid the last checkpoint, as MISHAP_STAND */
    MISHAP_GONE, /* a worker with its host, as a push of it comes to a ps; there is no other life */
    MISHAP_HELD, /* as MISHAP_KILL, of one of two ps that hold the same, and of no other task */
    MISHAP_KINDS
};

/* How tasks find each other. */
enum { FOUND_BY_LISTS, FOUND_BY_ZOOKEEPER, FOUND_BY_ETCD };

struct mishap {
    enum mishap_kind kind;
    int task, other;
    uint64_t at_ns, lasts_ns; /* from the start of the job */
    bool is_everywhere;       /* a disk that fails for all hosts */
    int share;                /* of 1024 calls to it so many fail */
};

enum { AVERAGE_NONE, AVERAGE_FIXED, AVERAGE_GROWING }; /* what it keeps of itself */
enum { WIRE_FLOAT32, WIRE_BF16, WIRE_FP16, WIRES };
enum { FROZEN_NONE, FROZEN_SOME, FROZEN_ALL, FROZEN }; /* all: of MODEL_COUNTS, but not its table */

/* How it trains, where not as ever. */
struct training_plan {
    int epochs;           /* the job ends after so many; 0: after last_step */
    int replicas;         /* replicas_to_aggregate; 0: as many as there are workers */
    int accumulate;       /* batches of a gradient */
    int staleness;        /* max_staleness, or -1 */
    int worker_timeout_s; /* 0: never within a run */
    int limit_s;          /* of every wait */
    bool stops_job;       /* --on_sigterm=stop */
    bool evaluates_much;  /* of which each batch asks for rows: for seconds */
    int publish_ms;       /* 0: nothing is published */
    int average;          /* of variables: AVERAGE_... */
    int files;            /* that come while it trains, and are followed; 0: data that are there */
    int wire;             /* of gradients, and of values: WIRE_... */
    int frozen;           /* dense variables that keep their values: FROZEN_... */
    bool lacks_for_good;  /* MISHAP_LACK: nobody brings the data */
    bool is_held_twice;   /* ps_replicas */
};

struct job_plan {
    struct training_plan training;
    int ps, workers;
    bool is_sync, evaluates, has_evaluator;
    bool grows, is_streamed, is_in_graph; /* the table; the data, from files or by the chief */
    bool is_url, is_large; /* where checkpoints are; a table is more than a part of an upload */
    int hosts;             /* tasks share them, and their memory; 0: each has its own */
    bool is_alone;         /* one process, and no cluster */
    int towers;            /* of each worker; 0: none */
    int keep_best;         /* checkpoints */
    int parts;             /* auto, always, never */
    enum model_kind model;
    int last_step, save_steps, chief_timeout_s;
    int mishap_count;
    struct mishap mishaps[MISHAPS_MOST];
    int blow_count;
    struct blow blows[BLOWS_MOST];
    int coordinator;  /* FOUND_BY_... */
    bool has_indices; /* each task says its own; else a life has the lowest that is free */
    int first_ps, first_workers; /* that take part at first; 0: all */
    int visit_count;
    struct visit visits[VISITS_MOST];
};

/* only: so many mishaps, all of this kind; MISHAP_KINDS: as the seed says. is_found: by a
 * coordinator, whatever the seed says. has_rows: what MISHAP_HELD befalls holds a table. */
void job_plan_draw(struct job_plan *, enum mishap_kind only, bool is_found, bool has_rows);
extern const char *const mishap_names[];                           /* [MISHAP_KINDS] */
enum mishap_kind mishap_find(const char *name);                    /* MISHAP_KINDS: there is none */
const char *job_folder(const struct job_plan *, const char *name); /* until the next call but one */
bool job_plan_has_disks(const struct job_plan *);
bool job_plan_has(const struct job_plan *, enum mishap_kind);
bool job_plan_asks(const struct job_plan *);
bool job_plan_has_epochs(const struct job_plan *);
bool job_plan_follows(const struct job_plan *); /* files that come */
/* num_steps for last_step: at least as many, as all that begins again from files counts anew */
bool job_plan_counts_from_start(const struct job_plan *);
/* A worker never has its data, and nothing else befalls the job: the worker, or NULL. */
const struct mishap *job_plan_lack(const struct job_plan *);
/* Each step has the same gradients in every run, whatever befalls it. */
bool job_plan_is_steady(const struct job_plan *);
int job_plan_gradients(const struct job_plan *);           /* of batches, in a step */
const char *job_plan_coordinator(const struct job_plan *); /* its URL */
void job_put(const struct job_plan *, const char *folder); /* FOLDER.json, and data */
/* The next file of those that come; the last one brings the marker with it. */
void job_put_file(const struct job_plan *, const char *folder, int number);
void job_plan_print(const struct job_plan *, FILE *);

enum task_job { TASK_PS, TASK_WORKER, TASK_EVALUATOR };

struct cluster_task {
    char name[NAME_BYTES];
    int host, port, index;
    enum task_job job;
    struct process *life; /* the latest */
    bool is_due;          /* another life begins later */
    int lives, failures;
    struct process *asked;          /* the life that was asked to end */
    uint64_t asked_ns, unheard_ns;  /* when, and until when it could not hear */
    const struct process *place_of; /* the life that has found its place, */
    char place[NAME_BYTES], address[NAME_BYTES];
    uint64_t found_ns; /* when it has found it */
    size_t looked;     /* for it, in what was said */
};

struct cluster {
    const struct job_plan *plan;
    const char *folder; /* of the checkpoints: the last word of its path */
    bool is_calm;       /* nothing of the plan befalls it */
    struct cluster_task tasks[TASKS_MOST];
    int count;
    struct blow blows[BLOWS_MOST]; /* those of the plan, as they fall */
    struct visit visits[VISITS_MOST];
    uint64_t started_ns, done_ns; /* when the first one has ended well */
    uint64_t calm_ns;             /* when all that befalls it is over */
    bool is_over;                 /* nothing befalls what is left */
    int files_put;                /* of those that come */
    uint64_t frozen_ns;           /* until when all stand */
    uint64_t troubled_ns;         /* and what keeps tasks from the coordinator, */
    uint64_t hampered_ns;         /* and some of them more than others; 0: nothing has */
};

/* Until all have ended, or machine_fail(). */
void cluster_run(struct cluster *);
/* Of what is left when it has ended. */
void cluster_check(const struct cluster *);
/* It has ended because nothing in the folder is whole, and a disk that failed has made it so. */
bool cluster_is_torn(const struct cluster *, const struct process *life);
/* Of MODEL_COUNTS: each variable has the gradients of so many steps, and its average followed. */
void counts_check_dense(const struct job_plan *, const struct tensors *, int step);
/* Whether two runs are equal, bit for bit. */
bool cluster_says(const struct cluster *, const char *words); /* a process of its time */
void cluster_compare(const struct cluster *, const struct cluster *);

/* Another command of the program; what it says, until the next one. */
const char *cluster_ask(int *ret_code, int count, const char *const *words);

#endif
