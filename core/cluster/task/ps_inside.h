/* ps_inside.h - the inside of a ps on the real loop.
 *
 * ps.c, ps_connections.c: links; ps_store.c: values, windows, updates; ps_pool.c: windows that
 * workers share; ps_values.c: how values travel; ps_cut.c: shards of checkpoints; ps_visit.c:
 * visitors; rows/ps.c: tables; trace/ps.c: its part of timelines.
 */
#ifndef CORE_CLUSTER_TASK_PS_INSIDE_H
#define CORE_CLUSTER_TASK_PS_INSIDE_H

#include "core/base/log.h"
#include "core/cluster/role/ps.h"
#include "core/cluster/role/rows/rows.h"
#include "core/cluster/task/ps.h"
#include "core/cluster/description/setup.h"
#include "core/cluster/visit/visit.h"
#include "core/train/variables/row_area.h"

/* What the chief described; it outlives its generation while a shard of it is being written. */
struct share {
    struct arena arena;
    struct setup setup;
    int users;
};
void share_release(struct share *); /* NULL is fine */

/* What a worker has last named of rows. */
struct rows_named {
    struct rows_told told;
    struct area_counts counts; /* with a push */
    int64_t *pushed, *wanted;  /* [area.rows] ids of it, checked */
    int64_t *brought;          /* [area.count] rows of each slice that were wanted before */
    struct area_counts asked;  /* without */
};

/* Lent to one worker at a time; opened when it is wanted first. */
struct pool_window {
    struct window window;
    int worker; /* NOBODY: free */
};

/* Values as they were at some time, for all workers that were sent them then. */
struct snapshot {
    struct window window;
    int users;
};

/* How long a worker has had something that others wait for. */
struct holding {
    uint64_t moved, idle_ms, held_ms; /* moved: of its link */
};

struct windows {
    struct window gradients, copy; /* copy: this worker's values, where it does not see the store */
    struct pool_window *lent;      /* instead of `gradients`; NULL: none */
    bool is_folded;                /* its gradient is in the store's sum */
    struct holding lends, looks;   /* of the lent window, until it is full, and of the snapshot */
    struct snapshot *seen;         /* instead of `copy`: what is on its way; NULL: nothing */
    uint64_t turn; /* these VALUES wait for a snapshot, behind lower numbers; 0: none */
    struct message waits;
    struct window rows; /* the host's memory (row_area.h) */
    struct rows_named named;
    bool takes_rest; /* the worker has pushed: it computes from values while they come */
};

/* A link, and who is at its other end: nobody known until it has greeted. */
enum { NOBODY_KNOWN = -1 };
struct connection {
    struct ps_task *ps;
    struct link *link;
    int worker, visitor; /* NOBODY_KNOWN: none */
    uint64_t since_ms;
    struct connection *previous, *next;
};

/* A stranger's; NULL: no memory */
struct connection *connection_new(struct ps_task *, struct link *);
bool connection_is_stranger(const struct connection *);
void connection_become_worker(struct connection *, int worker);
void connection_become_visitor(struct connection *, int visitor);
struct connection *connection_of_oldest_stranger(const struct ps_task *);
void connection_refuse(struct connection *, err why); /* with error_text(); hangs up */
/* The link says goodbye and is forgotten; the role is not told. */
void connection_hang_up(struct connection *);
void connection_drop(struct connection *); /* whose link has gone */

struct cut_job;
struct folder_look;
struct ps_trace;
struct trace;

struct ps_task {
    struct task task; /* first */
    struct device *device;
    struct listener *tcp, *shm;
    char shm_name[ADDRESS_MAX];
    struct connection *connections;
    int strangers;
    struct log_limit refused, silent, wrong, unserved; /* lines about peers */
    struct log_budget changes;                         /* and about what visitors change */
    uint64_t written;      /* fingerprint of the spec that it was given itself; 0: none */
    char spec[17];         /* fingerprint that all must have; "" until one is known */
    struct data_said data; /* likewise; of a chief, whose name is */
    char data_of[TASK_NAME_MAX];
    char spec_of[TASK_NAME_MAX];

    struct share *share; /* NULL until the first SETUP */
    struct store store;
    bool has_store, sees_folder;
    bool cannot_advance; /* there is no memory for it */
    struct window values;
    struct window rounded;    /* the same for all workers to look at; none: not needed */
    struct windows *windows;  /* [workers] */
    struct ps_tables *tables; /* NULL: none */
    const void **sources;     /* [workers] gradients of one update */
    struct pool_window *pool; /* [pool_count]; NULL: each worker has a window */
    int pool_count;
    uint64_t pool_ms;           /* the last tick */
    struct snapshot *snapshots; /* [pool_count]; NULL: each worker has a copy */
    struct snapshot *current;   /* of the values as they are; NULL: none */
    uint64_t turns;             /* given out */

    struct folder_look *look; /* whether the folder of a new chief is seen; NULL: none */
    struct cut_job *cut;      /* NULL: nothing is being written */
    uint64_t failed_cuts;
    struct visits *visits;
    struct visit_view shown; /* to visitors */
    bool has_told;           /* them the verdict */
    uint64_t noted_ms;       /* when it was last told who is not here */
    uint64_t held_ns;        /* since when workers wait for a cut; 0: they do not */

    struct ps_trace *trace;  /* NULL until the first timeline */
    struct trace *recording; /* in it; NULL: nothing is recorded */
};

size_t ps_block_bytes(const struct ps_task *);
size_t ps_shown_bytes(const struct ps_task *); /* of the values as workers see them */

void ps_task_setup(struct ps_task *, const struct message *);               /* tells the role */
void ps_task_claimed(struct ps_task *, int worker, const struct message *); /* LEADS */
err ps_task_share(struct ps_task *, int worker, bool is_fresh);
/* false: the worker has windows, and they could only be had as plain memory */
/* rows/ps.c: the slices of tables that the share lists, empty. */
err ps_tables_open(struct ps_task *);
void ps_tables_close(struct ps_task *);
/* For a checkpoint: as they are now, whatever happens, until they are released. NULL: none. */
struct ps_tables *ps_tables_hold(struct ps_task *);
void ps_tables_release(struct ps_tables *);
void ps_tables_describe(const struct ps_task *, struct shard *);
size_t ps_tables_window_bytes(const struct ps_task *); /* 0: there are no tables */
/* A worker's ROWS. ERR_PROTOCOL: it cannot be. */
err ps_tables_heard(struct ps_task *, int worker, const struct message *);
/* The ROWS that belong to this PUSH have come, if there are tables. */
bool ps_tables_have(const struct ps_task *, int worker, const struct message *push);
/* With the update of the block by the same gradients, and before it; ERR_NUMBER: as there. */
err ps_tables_apply(struct ps_task *, const struct action_apply *);
/* Rows that the worker's push has asked for, before its VALUES leave. */
void ps_tables_answer(struct ps_task *, int worker);

bool ps_task_shares_memory(const struct ps_task *, int worker);
/* ps_pool.c */
err ps_pool_open(struct ps_task *, int count); /* 0: none; keeps one that is there */
void ps_pool_close(struct ps_task *);
bool ps_pool_serves(const struct ps_task *, const struct link *); /* its gradients come there */
void *ps_pool_place(void *context, struct link *, const struct message *);
void ps_pool_flushed(struct ps_task *); /* after everything that happened */
void ps_pool_tick(struct ps_task *, uint64_t now_ms);
/* ps_snapshots.c: of values, where rounds do not take every worker. */
err ps_snapshots_open(struct ps_task *); /* as many as there are windows in the pool; outdated */
void ps_snapshots_close(struct ps_task *);
bool ps_snapshots_serve(const struct ps_task *, const struct link *);
void ps_snapshots_outdate(struct ps_task *); /* the values are about to change */
/* The memory of a new one for this worker, which an update fills on the way; NULL: none is free. */
void *ps_snapshots_begin(struct ps_task *, int worker);
/* A snapshot of the values for the worker; NULL: it waits for one with what it is to be sent. */
const void *ps_snapshots_lend(struct ps_task *, int worker, const struct message *values);
void ps_snapshots_forget(struct ps_task *, int worker); /* its link is another one */
void ps_snapshots_pump(struct ps_task *);               /* what was sent is given back */
bool ps_snapshots_are_short(const struct ps_task *);    /* somebody waits */

/* Where this worker's gradient is; NULL: nowhere. */
const void *ps_gradient(const struct ps_task *, int worker);

void ps_task_initialize(struct ps_task *, int worker, int array);
void ps_task_refresh(struct ps_task *, int worker);
/* ERR_NUMBER names the worker and the variable whose gradient is not finite: the values are none
 * any more. */
err ps_task_apply(struct ps_task *, const struct action_apply *);
err ps_task_fold(struct ps_task *, const struct action_fold *);
void ps_task_unfold(struct ps_task *);
err ps_task_advance(struct ps_task *, const struct action_advance *);
void ps_task_take_back(struct ps_task *);
/* Whether values may go ahead of their round: after links, or what visitors wait for, have changed.
 */
void ps_task_consider_advance(struct ps_task *);
void ps_task_store_close(struct ps_task *);

/* Instead of link_send: values leave in parts. */
err ps_task_values_send(struct task *, int worker, const struct message *);
void ps_task_values_heard(struct ps_task *, int worker, const struct message *);

/* The arrays of this ps as a checkpoint names them; step and ledger are the caller's. */
void ps_task_describe_shard(const struct ps_task *, struct shard *ret);
err ps_task_cut(struct ps_task *, const struct action_cut *);
void ps_task_cut_pump(struct ps_task *); /* sends what the chief's disk is to hold */
void ps_task_cut_close(struct ps_task *);

err ps_task_visit_open(struct ps_task *);
err ps_task_visit_greet(struct connection *); /* its HELLO was a visitor's */
/* false: no visitor says that */
bool ps_task_visit_message(struct connection *, const struct message *);
void ps_task_visit_hide(struct ps_task *);     /* before a SETUP */
void ps_task_visit_flushed(struct ps_task *);  /* after everything that happened */
void ps_task_visit_applying(struct ps_task *); /* before and after an update */
void ps_task_visit_applied(struct ps_task *);
void ps_task_visit_pump(
    struct ps_task *); /* in the time of guests, after every look at the links */

#endif
