/* stage.h - a cluster of roles in one process, without any I/O.
 *
 * Roles act on a virtual clock; their messages wait in one queue per direction of each link, and a
 * seed decides what happens next, so that every order that a network could make can be tried and
 * repeated. Values are not computed: what a ps holds is the list of the updates that it was asked
 * to apply, a checkpoint is how long that list was at the cut, and whoever is restored has its
 * beginning again.
 */
#ifndef TESTS_ROLES_STAGE_H
#define TESTS_ROLES_STAGE_H

#include "core/cluster/role/ps.h"
#include "core/cluster/role/worker.h"

enum {
    STAGE_PS_MAX = 4,
    STAGE_WORKERS_MAX = 8,
    STAGE_APPLIED_MAX = 4096,
    STAGE_GENERATIONS_MAX = 64,
    STAGE_CHECKPOINTS_MAX = 64,
    STAGE_ARRAYS = 2,      /* of a block: values and one slot */
    STAGE_LIMIT_MS = 1000, /* of the start, a step, a checkpoint */
    STAGE_RESTART_LIMIT_MS = 5000,
    STAGE_STOP_LIMIT_MS = 500,
    STAGE_END_LIMIT_MS = 10000,
};

struct stage_options {
    int ps_count, workers;
    struct ps_config config; /* what the spec says; the stage adds what belongs to a generation */
    uint32_t gradients_per_push;
    bool drops_gradients;
    bool saves; /* there is a checkpoint_dir */
    uint64_t seed;
    uint64_t block_bytes[STAGE_PS_MAX]; /* 0: a ps without variables */
};

struct applied { /* one update of one ps */
    uint64_t step;
    uint32_t gradients;
    int workers[STAGE_WORKERS_MAX], worker_count;
    uint64_t sequences[STAGE_WORKERS_MAX]; /* of the pushes in it */
};

struct shard { /* what one ps saved */
    uint64_t tag, step;
    int applied_count;
    struct ledger ledger[STAGE_WORKERS_MAX];
};

struct actor { /* one task */
    struct role *role;
    struct outbox outbox;
    uint64_t incarnation; /* a new one for each life */
    bool is_alive, has_ended;
    int code;
    char text[ACTION_TEXT_MAX];
    char log[ACTION_TEXT_MAX]; /* the last line for people */
    /* ps */
    struct applied *applied; /* in order */
    int applied_count;
    uint64_t pushed[STAGE_WORKERS_MAX]; /* sequence of the push in a worker's window */
    struct shard shard;                 /* the last that was cut */
    bool is_writing;
    bool sees_folder; /* restores for itself; else arrays are brought to it */
    int arrays;       /* that were brought in this generation */
    int held;         /* how often workers waited for a cut */
    bool is_held;
    /* worker */
    bool is_computing, is_evaluating, is_publishing;
    int computed, evaluated;
    int adopted; /* generations that it took part in */
    /* chief */
    uint64_t publish_tag;
    int abandoned; /* checkpoints that were given up */
};

struct checkpoint {
    uint64_t step;
    struct shard shards[STAGE_PS_MAX];
};

struct parcel;
struct stage {
    struct stage_options options;
    struct actor ps[STAGE_PS_MAX], workers[STAGE_WORKERS_MAX];
    bool is_linked[STAGE_PS_MAX][STAGE_WORKERS_MAX];
    bool has_shared[STAGE_PS_MAX][STAGE_WORKERS_MAX];  /* windows, on this link */
    bool has_windows[STAGE_PS_MAX][STAGE_WORKERS_MAX]; /* the worker has heard of them */
    struct parcel
        *first[STAGE_PS_MAX][STAGE_WORKERS_MAX][2]; /* queues: [0] to the worker, [1] to the ps */
    struct checkpoint checkpoints[STAGE_CHECKPOINTS_MAX];
    int checkpoint_count;
    int bad_checkpoints;               /* the newest of them cannot be read */
    int origin[STAGE_GENERATIONS_MAX]; /* which checkpoint a generation begins with; -1: none */
    int generations;
    uint64_t now_ms, draws, lives;
};

void stage_open(struct stage *, const struct stage_options *);
void stage_close(struct stage *);

uint64_t stage_draw(struct stage *, uint64_t below);

/* Greets everybody with everybody, in an order drawn from the seed. */
void stage_greet(struct stage *);

/* One event drawn from the seed: a delivery, or a task that is done with what it does. false:
 * nothing is left to happen. */
bool stage_step(struct stage *);
int stage_run(struct stage *, int events_max); /* returns the events that happened */

void stage_pass_time(struct stage *, uint64_t ms); /* ticks for everybody */

/* The link breaks, what is on its way is lost; both ends hear of it. */
void stage_cut(struct stage *, int ps, int worker);
void stage_connect(struct stage *, int ps, int worker); /* a new link, where there is none */

void stage_kill_worker(struct stage *, int worker);
void stage_kill_ps(struct stage *, int ps);
void stage_restart_worker(struct stage *, int worker); /* another life, linked to all that live */
void stage_restart_ps(struct stage *, int ps);

/* What is told to a role from outside; its actions are carried out. */
void stage_leave(struct stage *, struct actor *, int code, const char *why);
void stage_save(struct stage *);
void stage_fail_step(struct stage *, int worker, err why, const char *text);
void stage_flush(struct stage *); /* whatever was asked of roles directly */

void stage_send_to_ps(struct stage *, int ps, int worker,
                      const struct message *); /* a forged one */

#endif
