/* ps_task_inside.h - the inside of a ps on the real loop.
 *
 * ps_task.c, ps_task_line.c: links; ps_task_store.c: values, windows, updates; ps_task_cut.c:
 * shards of checkpoints; ps_task_visit.c: visitors; ps_task_trace.c: its part of timelines.
 */
#ifndef CORE_CLUSTER_PS_TASK_INSIDE_H
#define CORE_CLUSTER_PS_TASK_INSIDE_H

#include "core/base/log_limited.h"
#include "core/cluster/ps_role.h"
#include "core/cluster/ps_task.h"
#include "core/cluster/setup.h"
#include "core/cluster/visit.h"

/* What the chief described; it outlives its generation while a shard of it is being written. */
struct share {
    struct arena arena;
    struct setup setup;
    int users;
};
void share_release(struct share *); /* NULL is fine */

struct windows {
    struct window gradients, copy; /* copy: this worker's values, where it does not see the store */
};

/* A link, and who is at its other end: nobody known until it has greeted. */
enum { LINE_UNKNOWN = -1 };
struct line {
    struct ps_task *ps;
    struct link *link;
    int worker, visitor; /* LINE_UNKNOWN: none */
    uint64_t since_ms;
    struct line *previous, *next;
};

struct line *line_new(struct ps_task *, struct link *); /* a stranger's; NULL: no memory */
bool line_is_stranger(const struct line *);
void line_become_worker(struct line *, int worker);
void line_become_visitor(struct line *, int visitor);
struct line *line_of_oldest_stranger(const struct ps_task *);
void line_refuse(struct line *, err why); /* with error_text(); hangs up */
void line_hang_up(struct line *); /* the link says goodbye and is forgotten; the role is not told */
void line_drop(struct line *);    /* whose link has gone */

struct cut_job;
struct ps_trace;
struct trace;

struct ps_task {
    struct task task; /* first */
    struct device *device;
    struct listener *tcp, *shm;
    char shm_name[ADDRESS_MAX];
    struct line *lines;
    int strangers;
    struct log_limit refused, silent, wrong, unserved; /* lines about peers */
    char spec[17]; /* fingerprint that all must have; "" until one is known */
    char spec_of[TASK_NAME_MAX];

    struct share *share; /* NULL until the first SETUP */
    struct store store;
    bool has_store, sees_folder;
    struct window values;
    struct windows *windows; /* [workers] */
    const float **sources;   /* [workers] gradients of one update */

    struct cut_job *cut; /* NULL: nothing is being written */
    struct visits *visits;
    struct visit_view shown; /* to visitors */
    bool has_told;           /* them the verdict */
    uint64_t held_ns;        /* since when workers wait for a cut; 0: they do not */

    struct ps_trace *trace;  /* NULL until the first timeline */
    struct trace *recording; /* in it; NULL: nothing is recorded */
};

size_t ps_block_bytes(const struct ps_task *);

void ps_task_setup(struct ps_task *, const struct message *); /* tells the role */
err ps_task_share(struct ps_task *, int worker, bool is_fresh);
/* false: the worker has windows, and they could only be had as plain memory */
bool ps_task_shares_memory(const struct ps_task *, int worker);
void ps_task_initialize(struct ps_task *, int worker, int array);
void ps_task_refresh(struct ps_task *, int worker);
void ps_task_apply(struct ps_task *, const struct action *);
/* true: some value of the worker's gradient is not finite; ret_name: the variable's */
bool ps_task_is_spoiled(const struct ps_task *, int worker, const char **ret_name);
void ps_task_store_close(struct ps_task *);

/* The arrays of this ps as a checkpoint names them; step and ledger are the caller's. */
void ps_task_describe_shard(const struct ps_task *, struct shard *ret);
err ps_task_cut(struct ps_task *, const struct action *);
void ps_task_cut_pump(struct ps_task *); /* sends what the chief's disk is to hold */
void ps_task_cut_close(struct ps_task *);

err ps_task_visit_open(struct ps_task *);
err ps_task_visit_greet(struct line *); /* its HELLO was a visitor's */
/* false: no visitor says that */
bool ps_task_visit_message(struct line *, const struct message *);
void ps_task_visit_hide(struct ps_task *);     /* before a SETUP */
void ps_task_visit_flushed(struct ps_task *);  /* after everything that happened */
void ps_task_visit_applying(struct ps_task *); /* before and after an update */
void ps_task_visit_applied(struct ps_task *);
void ps_task_visit_pump(
    struct ps_task *); /* in the time of guests, after every look at the links */

#endif
