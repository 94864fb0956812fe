/* worker.h - a worker (and the chief) on the real loop: connecting to every ps, and the
 * session that computes. */
#ifndef CORE_CLUSTER_TASK_WORKER_H
#define CORE_CLUSTER_TASK_WORKER_H

#include "core/cluster/task/task.h"
#include "core/train/session/session.h"
#include "core/train/summary/timeline.h"

struct worker_task;

/* What whoever runs the worker wants to hear. Each may be NULL. An error of those that return one
 * ends the job. When values and gradients may be looked at: core/train/hooks/hook.h. */
struct worker_events {
    void (*placed)(void *context, const struct session *); /* before the first step */
    /* values of a generation are there, of global step `step`; is_first: of this process */
    err (*adopted)(void *context, uint64_t step, bool is_first);
    err (*before)(void *context, uint64_t step); /* the values are of this global step */
    /* the number that the step has as a global step (from 1), and its loss */
    err (*computed)(void *context, uint64_t step, double loss);
    err (*stepped)(void *context, uint64_t step, double loss);
    /* prefix of a new checkpoint; NULL: it failed, and why */
    err (*saved)(void *context, uint64_t step, const char *prefix, const char *why);
    err (*evaluated)(void *context, uint64_t global_step, const struct evaluation *);
    err (*traced)(void *context, const struct timeline *); /* the chief alone; it was asked for */
};

struct worker_task_options {
    struct task_options task;
    const struct spec *spec;
    struct device *device; /* borrowed; with TRANSPORT_INPROC the ps' too */
    struct worker_events events;
    void *context;
};

/* Opens data, graph and plan, and begins to connect. */
err worker_task_open(const struct worker_task_options *, struct worker_task **ret);
void worker_task_close(struct worker_task *); /* NULL is fine */
struct task *worker_task_task(struct worker_task *);
struct session *worker_task_session(struct worker_task *);
/* Where the run stops. With num_steps the chief that chose the beginning knows it, as soon as
 * values are there; 0: unknown. */
uint64_t worker_task_last_step(const struct worker_task *);

/* For hooks. */
void worker_task_begin_at(struct worker_task *, uint64_t step); /* before tasks_run */
void worker_task_save(struct worker_task *);
void worker_task_finish(struct worker_task *, int code, const char *why);
/* Of the chief: `steps` steps from first_step on, of all tasks, told by `traced`. Before a step of
 * its own. false: another one is being made, or there is no memory. */
bool worker_task_trace(struct worker_task *, uint64_t first_step, int steps);
void worker_task_trace_finish(struct worker_task *); /* after tasks_run: with what has come */
uint64_t worker_task_staleness(const struct worker_task *);
double worker_task_push_seconds(const struct worker_task *); /* of the last answered push */

#endif
