/* runner_ps_inside.h - the inside of a ps on the real loop.
 *
 * runner_ps.c, runner_ps_connections.c: links; runner_ps_store.c: values, windows, updates;
 * runner_ps_pool.c: windows that workers share; runner_ps_values.c: how values travel;
 * runner_ps_snapshot.c: shards of checkpoints; runner_ps_visit.c: visitors; runner_ps_rows.c:
 * tables; runner_ps_turns.c: records of turns; runner_ps_averages.c: averages for evaluations;
 * trace/trace_ps.c: its part of timelines.
 */
#ifndef CORE_CLUSTER_RUNNER_RUNNER_PS_INSIDE_H
#define CORE_CLUSTER_RUNNER_RUNNER_PS_INSIDE_H

#include "core/base/log.h"
#include "core/cluster/runner/lateness.h"
#include "core/cluster/runner/greeting.h"
#include "core/cluster/runner/record.h"
#include "core/cluster/role/ps_role.h"
#include "core/cluster/role/row_exchange.h"
#include "core/cluster/runner/runner_ps.h"
#include "core/cluster/description/setup.h"
#include "core/cluster/visit/visit.h"
#include "core/train/variables/row_area.h"

/* What the chief described; it outlives its generation while a shard of it is being written. */
struct share {
    struct arena arena;
    struct setup setup;
    int users, folders;   /* that chiefs have named, and that stay in the arena */
    struct share *before; /* whose descriptions store and tables have; NULL: they have these */
};
void share_release(struct share *); /* NULL is fine */

/* When rows were read for the next push of a worker: at so many updates. */
struct rows_read {
    bool is_any, is_asked; /* is_asked: not with the values */
    uint64_t at;
};

/* What a worker has last named of rows. */
struct rows_named {
    struct rows_read read;
    struct message
        late; /* asks for rows of later values (turns that are given); of no type: none */
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
struct value_copy {
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
    struct holding lends, looks;   /* of the lent window, until it is full, and of the copy */
    struct value_copy *seen;       /* instead of `copy`: what is on its way; NULL: nothing */
    uint64_t turn;                 /* these VALUES wait for a copy, behind lower numbers; 0: none */
    struct message waits;
    struct window rows; /* the host's memory (row_area.h) */
    struct rows_named named;
    bool takes_rest; /* the worker has pushed: it computes from values while they come */
};

/* A link, and who is at its other end: nobody known until it has greeted. */
enum { NOBODY_KNOWN = -1 };
struct connection {
    struct runner_ps *ps;
    struct link *link;
    int worker, visitor; /* NOBODY_KNOWN: none */
    uint64_t since_ms;
    struct connection *previous, *next;
};

/* A stranger's; NULL: no memory */
struct connection *connection_new(struct runner_ps *, struct link *);
bool connection_is_stranger(const struct connection *);
void connection_become_worker(struct connection *, int worker);
void connection_become_visitor(struct connection *, int visitor);
struct connection *connection_of_oldest_stranger(const struct runner_ps *);
void connection_refuse(struct connection *, err why); /* with error_text(); hangs up */
/* The link says goodbye and is forgotten; the role is not told. */
void connection_hang_up(struct connection *);
/* Of a worker, with what it sent in error_text() */
void connection_break_off(struct connection *);
void connection_drop(struct connection *); /* whose link has gone */

struct snapshot_job;
struct folder_look;
struct runner_ps_trace;
struct trace;

/* Where it listens, and who has come there. */
struct listening {
    struct listener *listener, *offered[TRANSPORT_COUNT];
    struct offers offers;
    struct connection *connections;
    int strangers;
};

/* What keeps lines about peers few, and those about what visitors change. */
struct peer_lines {
    struct log_limit refused, silent, wrong, unserved;
    struct log_budget changes;
};

/* What all who greet must have. */
struct agreed {
    uint64_t written; /* fingerprint of the spec that it was given itself; 0: none */
    char spec[17];    /* fingerprint; "" until one is known */
    char spec_of[TASK_NAME_MAX];
    struct data_said data; /* likewise; of a chief, whose name is */
    char data_of[TASK_NAME_MAX];
};

/* Values as workers see them. */
struct seen_values {
    struct window window;
    struct window rounded;  /* the same for all workers to look at; none: not needed */
    struct window averages; /* a copy of them for who shares no memory; none: nobody has asked */
};

/* Windows for gradients that workers share; NULL: each has one. */
struct shared_windows {
    struct pool_window *windows; /* [count] */
    int count;
    uint64_t ticked_ms; /* the last tick */
};

struct value_copies {
    struct value_copy *all;     /* [pool.count]; NULL: each worker has a copy */
    struct value_copy *current; /* of the values as they are; NULL: none */
    uint64_t turns;             /* given out */
};

/* Its shards of checkpoints. */
struct ps_saving {
    struct folder_look *look; /* whether the folder of a new chief is seen; NULL: none */
    bool sees_folder;
    struct snapshot_job *job;    /* NULL: nothing is being written */
    struct snapshot_files *last; /* that were written; NULL: none */
    uint64_t as_of; /* tag of the snapshot that all it holds is still that of; 0: none */
    uint64_t failed;
};

struct ps_visiting {
    struct visits *visits;
    struct visit_view shown; /* to visitors */
    bool has_told;           /* them the verdict */
};

/* Of asynchronous training */
struct ps_turns {
    struct record *record; /* NULL: none is written */
    bool is_replay;
    struct replay replay;
};

struct ps_timeline {
    struct runner_ps_trace *trace; /* NULL until the first one */
    struct trace *recording;       /* in it; NULL: nothing is recorded */
};

struct runner_ps {
    struct task task; /* first */
    struct device *device;
    struct listening listening;
    struct peer_lines logs;
    struct agreed agreed;

    struct share *share; /* NULL until the first SETUP */
    struct store store;
    bool has_store;
    bool cannot_advance; /* there is no memory for it */
    struct seen_values values;
    struct windows *windows;         /* [workers] */
    struct runner_ps_tables *tables; /* NULL: none */
    const void **sources;            /* [workers] gradients of one update */
    struct shared_windows pool;
    struct value_copies copies;

    struct ps_saving saving;
    struct ps_visiting visiting;
    struct ps_turns turns;
    struct ps_timeline timeline;
    struct lateness lateness;
    uint64_t noted_ms;          /* when it was last told who is not here */
    struct visitor *asks_first; /* ps/0, whether this ps takes part still; NULL: it does not ask */
    uint64_t asks_after_ms;     /* not before */
    uint64_t held_ns;           /* since when workers wait for a snapshot; 0: they do not */
};

int64_t runner_ps_block_floats(const struct runner_ps *);
size_t runner_ps_block_bytes(const struct runner_ps *);
size_t runner_ps_shown_bytes(const struct runner_ps *); /* of the values as workers see them */
err runner_ps_open_averages(struct runner_ps *);        /* their copy, where there is none yet */

void runner_ps_setup(struct runner_ps *, const struct message *);               /* tells the role */
void runner_ps_claimed(struct runner_ps *, int worker, const struct message *); /* LEADS */
err runner_ps_share(struct runner_ps *, int worker, bool is_fresh);
/* false: the worker has windows, and they could only be had as plain memory */
/* runner_ps_rows.c: the slices of tables that the share lists, empty. */
err runner_ps_tables_open(struct runner_ps *);
void runner_ps_tables_close(struct runner_ps *);
/* Nothing of what workers have named of rows counts any more. */
void runner_ps_tables_unname(struct runner_ps *);
/* For a checkpoint: as they are now, whatever happens, until they are released. NULL: none. */
struct runner_ps_tables *runner_ps_tables_hold(struct runner_ps *);
void runner_ps_tables_release(struct runner_ps_tables *);
/* Which rows change after the snapshot of this tag is noted. */
void runner_ps_tables_note(struct runner_ps *, uint64_t tag);
/* Those that have changed since the snapshot `since`; noted anew, after that of `tag`. [tables], by
 * runner_ps_changes_free; NULL: there are no tables. ERR_INPUT: it is not known which. */
err runner_ps_tables_take(struct runner_ps *, uint64_t since, uint64_t tag,
                          struct table_changes **ret);
void runner_ps_changes_free(struct table_changes *, int count); /* NULL is fine */
void runner_ps_tables_describe(const struct runner_ps *, struct shard *);
struct tables_size {
    int64_t rows, bytes;
};
struct tables_size runner_ps_tables_size(const struct runner_ps *); /* of all, as they are now */
size_t runner_ps_tables_window_bytes(const struct runner_ps *);     /* 0: there are no tables */
/* A worker's ROWS. ERR_PROTOCOL: it cannot be. */
err runner_ps_tables_heard(struct runner_ps *, int worker, const struct message *);
/* The ROWS that belong to this PUSH have come, if there are tables. */
bool runner_ps_tables_have(const struct runner_ps *, int worker, const struct message *push);
/* With the update of the block by the same gradients, and before it; ERR_NUMBER: as there. */
err runner_ps_tables_apply(struct runner_ps *, const struct action_apply *);
/* Rows that the worker's push has asked for, before its VALUES leave. */
void runner_ps_tables_answer(struct runner_ps *, int worker);

/* runner_ps_place.c: the chief, which is not here, is waited for since then */
void runner_ps_look_for_place(struct runner_ps *, uint64_t since_ms, uint64_t now_ms);
void runner_ps_ask_no_more(struct runner_ps *); /* it does not ask, or no longer */

bool runner_ps_shares_memory(const struct runner_ps *, int worker);
/* runner_ps_pool.c */
err runner_ps_pool_open(struct runner_ps *, int count); /* 0: none; keeps one that is there */
void runner_ps_pool_close(struct runner_ps *);
bool runner_ps_pool_serves(const struct runner_ps *,
                           const struct link *); /* its gradients come there */
void *runner_ps_pool_place(void *context, struct link *, const struct message *);
void runner_ps_pool_flushed(struct runner_ps *); /* after everything that happened */
void runner_ps_pool_tick(struct runner_ps *, uint64_t now_ms);
/* runner_ps_copies.c: of values, where rounds do not take every worker. */
err runner_ps_copies_open(
    struct runner_ps *); /* as many as there are windows in the pool; outdated */
void runner_ps_copies_close(struct runner_ps *);
bool runner_ps_copies_serve(const struct runner_ps *, const struct link *);
void runner_ps_copies_outdate(struct runner_ps *); /* the values are about to change */
/* The memory of a new one for this worker, which an update fills on the way; NULL: none is free. */
void *runner_ps_copies_begin(struct runner_ps *, int worker);
/* A copy of the values for the worker; NULL: it waits for one with what it is to be sent. */
const void *runner_ps_copies_lend(struct runner_ps *, int worker, const struct message *values);
void runner_ps_copies_forget(struct runner_ps *, int worker); /* its link is another one */
void runner_ps_copies_pump(struct runner_ps *);               /* what was sent is given back */
bool runner_ps_copies_are_short(const struct runner_ps *);    /* somebody waits */

/* Where this worker's gradient is; NULL: nowhere. */
const void *runner_ps_gradient(const struct runner_ps *, int worker);

void runner_ps_initialize(struct runner_ps *, int worker, int array);
void runner_ps_refresh(struct runner_ps *, int worker);
/* ERR_NUMBER names the worker and the variable whose gradient is not finite: the values are none
 * any more. */
err runner_ps_apply(struct runner_ps *, const struct action_apply *);
err runner_ps_fold(struct runner_ps *, const struct action_fold *);
void runner_ps_unfold(struct runner_ps *);
err runner_ps_advance(struct runner_ps *, const struct action_advance *);
void runner_ps_take_back(struct runner_ps *);
/* After links, or what visitors wait for, have changed. */
void runner_ps_plan_overlap(struct runner_ps *);
/* Visitors are about to look: nobody sees values some of which are of the next step already. Until
 * it is planned again. */
void runner_ps_settle(struct runner_ps *);
void runner_ps_store_close(struct runner_ps *);

/* Where turns are given: answers who has asked for rows before theirs; or it asks anew. */
void runner_ps_tables_pump(struct runner_ps *);
void runner_ps_tables_give_up(struct runner_ps *, int worker);

/* runner_ps_turns.c */
err runner_ps_turns_open(struct runner_ps *, const struct task_options *,
                         struct ps_options *ret_role);
err runner_ps_turns_check(
    const struct runner_ps *);                  /* of a SETUP. ERR_INPUT: it is not the run's */
void runner_ps_turns_begin(struct runner_ps *); /* a generation */
void runner_ps_turn(struct runner_ps *, const struct action_turn *);
/* It has read some, or none, for its next push. */
void runner_ps_turns_note_rows(struct runner_ps *, int worker, bool is_any, bool is_asked);
void runner_ps_turns_joins(struct runner_ps *, int worker, const struct message *join);
void runner_ps_turns_tick(struct runner_ps *);
void runner_ps_turns_close(struct runner_ps *);

/* runner_ps_averages.c. ERR_PROTOCOL: no worker says so. */
err runner_ps_averages_heard(struct runner_ps *, int worker, const struct message *);

/* Instead of link_send: values leave in parts. */
err runner_ps_values_send(struct task *, int worker, const struct message *);
void runner_ps_values_heard(struct runner_ps *, int worker, const struct message *);

/* The arrays of this ps as a checkpoint names them; step and ledger are the caller's. */
void runner_ps_describe_shard(const struct runner_ps *, struct shard *ret);
err runner_ps_snapshot(struct runner_ps *, const struct action_snapshot *);
void runner_ps_snapshot_pump(struct runner_ps *); /* sends what the chief's disk is to hold */
void runner_ps_snapshot_drop(struct runner_ps *, uint64_t tag);
void runner_ps_snapshot_close(struct runner_ps *);

/* runner_ps_count.c: struct task_ops */
bool runner_ps_count(struct task *, struct counters *);
/* Of this worker COUNTERS have come: the chief is told what this ps counts, and by ps/0 what other
 * workers do. A ps does not begin with it: what comes while the chief asks for rows, as an
 * evaluation does for long, would be in their way. */
void runner_ps_tell_counted(struct runner_ps *, int worker, uint64_t now_ms);

err runner_ps_visit_open(struct runner_ps *);
err runner_ps_visit_greet(struct connection *); /* its HELLO was a visitor's */
/* false: no visitor says that */
bool runner_ps_visit_message(struct connection *, const struct message *);
void runner_ps_visit_hide(struct runner_ps *);     /* before a SETUP */
void runner_ps_visit_flushed(struct runner_ps *);  /* after everything that happened */
void runner_ps_visit_applying(struct runner_ps *); /* before and after an update */
void runner_ps_visit_applied(struct runner_ps *);
void runner_ps_visit_pump(
    struct runner_ps *); /* in the time of guests, after every look at the links */

#endif
