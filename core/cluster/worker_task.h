/* worker_task.h - a worker (and the chief) on the real loop: connecting to every ps, and the
 * session that computes. */
#ifndef CORE_CLUSTER_WORKER_TASK_H
#define CORE_CLUSTER_WORKER_TASK_H

#include "core/cluster/task.h"
#include "core/train/session.h"

struct worker_task;

/* What whoever runs the worker wants to hear. Each may be NULL. */
struct worker_events {
    void (*placed)(void *context, const struct session *); /* before the first step */
    /* after each step: the number that it has as a global step (from 1), and its loss */
    void (*stepped)(void *context, struct session *, uint64_t step, double loss);
    void (*evaluated)(void *context, const struct session *, uint64_t global_step,
                      const struct evaluation *);
};

struct worker_task_options {
    struct task_options task;
    const struct spec *spec;
    struct device *device; /* borrowed */
    struct worker_events events;
    void *context;
};

/* Opens data, graph and plan, and begins to connect. */
err worker_task_open(const struct worker_task_options *, struct worker_task **ret);
void worker_task_close(struct worker_task *); /* NULL is fine */
struct task *worker_task_task(struct worker_task *);
struct session *worker_task_session(struct worker_task *);
uint64_t worker_task_last_step(const struct worker_task *); /* where the run stops */

#endif
