/* worker_inside.h - the inside of a worker on the real loop.
 *
 * worker.c: steps; worker_exchange.c, rows/worker.c: what comes and leaves
 * meanwhile; worker_hooks.c: who hears of
 * them; worker_links.c: connecting; worker_chief.c: what the ps begin from; worker_save.c:
 * checkpoints; trace/worker.c, trace/worker_gather.c: timelines.
 */
#ifndef CORE_CLUSTER_TASK_WORKER_INSIDE_H
#define CORE_CLUSTER_TASK_WORKER_INSIDE_H

#include "core/cluster/description/setup.h"
#include "core/cluster/task/job.h"
#include "core/cluster/role/worker.h"
#include "core/cluster/task/worker.h"
#include "core/train/checkpoint/checkpoints.h"

struct worker_trace;

/* While a step waits for what a ps is to bring */
enum {
    AWAIT_MS = 10000,          /* for a byte */
    AWAIT_LOOKS_MAX = 1 << 20, /* in a row, each of which moved something */
};

/* One attempt at a connection; the link's context. */
struct attempt {
    struct worker_task *worker;
    struct link *link; /* NULL: none */
    int ps;
    uint64_t given_up; /* shm: the life of the ps that shares no memory with this process; 0 */
};

/* What a generation begins from. */
struct origin {
    struct arena arena;            /* of one recovery */
    struct setup_plan plan;        /* restore: its prefix, NULL: initial values */
    const struct ledger **ledgers; /* [ps_count], each [workers]; NULL: none */
    bool is_counted;               /* of ledgers: plan.coverage is the checkpoint's */
    float powers[ALL_POWERS_MAX];
    struct bundle *bundle; /* restore, or the warm start's; NULL: none */
    int bad;               /* checkpoints, from the newest, that could not be restored */
    /* of the ps that is filled by INIT */
    int filling; /* NOBODY's: -1 */
    float *arrays[1 + SLOTS_MAX];
};

/* The checkpoint that is being made. */
struct saving_files {
    struct task_job publishing;
    char folder[CHECKPOINT_PATH_MAX], prefix[CHECKPOINT_PATH_MAX];
    uint64_t step, tag, began_ns;
    int shards;
    err result; /* of writing what came from afar */
    char why[ACTION_TEXT_MAX];
    uint64_t failures; /* since the start */
    bool has_litter;   /* a ps may have written for a checkpoint that was given up */
};

/* Of the values that a ps has said last. */
struct arrival {
    uint64_t from; /* bytes of its block from here on are there */
    bool has_rest; /* and what is in front of them comes */
};

/* Rows of a ps */
struct rows_asked {
    uint64_t sequence; /* of the last asking */
    bool is_answered, is_refused;
    uint64_t came; /* 1 + number of the batch whose rows came since the last VALUES; 0: none */
    char *kept;    /* the front of a window that is gone, with `kept` gradients; NULL: none */
};

struct worker_task {
    struct task task; /* first */
    struct worker_task_options options;
    struct session session;
    struct exchange exchange;
    struct row_source rows_from;
    struct rows_asked *rows;  /* [ps] */
    struct arrival *arrivals; /* [ps] */
    bool lacks_values;        /* the step that is computed has waited for some in vain */
    bool is_computing;        /* a step: the loop is lent but for what this task does with it */
    bool cannot_lend;
    int evaluations; /* of the end that have waited for rows in vain, one after the other */
    uint64_t evaluates_again; /* 1 + the step, once more has been heard; 0: no */
    uint64_t evaluates_by_ms; /* and all windows are there, or not any more then */
    uint32_t gradients_per_push;
    uint64_t last_step;
    bool has_last_step; /* num_steps: once the first generation is chosen */
    uint64_t noted_ms;
    bool has_state;     /* ps/0 has said in which state this process found it */
    bool found_serving; /* which was this one */
    bool has_past;      /* and it knew pushes of this worker */
    bool has_chosen;    /* chief: what a generation begins from */
    bool has_adopted;
    bool has_stepped; /* a step that hooks have not been told of yet */
    uint64_t step;
    double loss;
    uint64_t pushed_ns; /* when the last gradients left */
    double push_seconds;
    struct attempt *tcp, *shm; /* [ps] */
    float **kept;              /* [ps] gradients whose link is lost; NULL: none */

    struct checkpoints *checkpoints; /* chief; NULL: no checkpoint_dir */
    bool is_asked_to_save;           /* by a signal, and has not begun */
    uint64_t token;
    struct origin origin;
    struct saving_files saving;

    struct worker_trace *trace; /* NULL until the first timeline */

    struct run_view view; /* of hooks */
    struct arena arena;   /* of the view */
};

uint64_t worker_block_bytes(const struct task *, int ps);
bool worker_leads(const struct worker_task *); /* it is the chief */

/* NULL: values come and gradients leave between steps only. */
const struct exchange *worker_open_exchange(struct worker_task *);
/* While a step is computed a thread moves bytes between hosts. Both do nothing where they need not.
 */
void worker_lend_loop(struct worker_task *);
void worker_reclaim_loop(struct worker_task *);
void worker_note_values(struct worker_task *, int ps, const struct message *); /* VALUES, */
void worker_note_rest(struct worker_task *, int ps, const struct message *);   /* REST */
/* While a step is computed. ERR_PEER: some of its values will not come, so that nothing comes of
 * it.
 */
err worker_await_all(struct worker_task *);

/* rows/worker.c: of tables. What they bring is asked for, where it did not come with values. */
const struct row_source *worker_open_rows(struct worker_task *);
void worker_rows_heard(struct worker_task *, int ps, const struct message *); /* ROWS */
void worker_rows_values(struct worker_task *, int ps);                        /* VALUES */
void worker_rows_push(struct worker_task *, int ps, const struct message *);  /* before PUSH */
void worker_rows_keep(struct worker_task *, int ps); /* the window is about to go */
void worker_rows_bind(struct worker_task *, int ps, void *window);

void worker_connect(struct worker_task *, int ps);
void worker_tick_links(struct task *, uint64_t now_ms);
void worker_hang_up(struct task *);

err worker_open_checkpoints(struct worker_task *);
void worker_choose(struct worker_task *, const struct action_choose *);
err worker_describe(struct worker_task *, int ps);
err worker_fill(struct worker_task *, int ps, int array);
void worker_origin_close(struct worker_task *); /* what a generation began from is needed no more */

void worker_begin_files(struct worker_task *, const struct action_begin *);
void worker_publish_files(struct worker_task *);
void worker_abandon_files(struct worker_task *, const struct action_abandon *);
void worker_take_shard(struct worker_task *, int ps, const struct message *);
void worker_close_checkpoints(struct worker_task *);

void worker_save(struct worker_task *); /* a checkpoint, where there is a folder for it */

/* Hooks are told of what happens at a global step. worker_told: an error ends the job. */
err worker_tell(struct worker_task *, uint64_t step, const struct occasion *);
void worker_told(struct worker_task *, err);
err worker_open_hooks(struct worker_task *);
uint64_t worker_last_step(const struct worker_task *); /* 0: not known yet, or never */

#endif
