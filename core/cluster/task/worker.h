/* worker.h - a worker (and the chief) on the real loop: connecting to every ps, the session that
 * computes, and the hooks that hear of it. */
#ifndef CORE_CLUSTER_TASK_WORKER_H
#define CORE_CLUSTER_TASK_WORKER_H

#include "core/cluster/task/task.h"
#include "core/train/hooks/hook.h"

struct worker_task;
struct feeder; /* feed/feeder.h */
struct fed;    /* feed/fed.h */

struct worker_task_options {
    struct task_options task;
    const struct spec *spec;
    struct device *device; /* borrowed; with TRANSPORT_INPROC the ps' too */
    struct tower_devices towers;
    struct own_hook own_hook; /* beside those of the spec */
    /* Borrowed: where the run ends, as lives of the task in earlier rosters have found; 0: they
     * have not. NULL: there were none */
    uint64_t *last_step;
    /* In-graph replication, borrowed: the chief's, and that of a worker whose data it reads; NULL:
     * it reads its own */
    struct feeder *feeder;
    struct fed *fed;
};

/* Opens data, graph, plan and hooks, and begins to connect. */
err worker_task_open(const struct worker_task_options *, struct worker_task **ret);
/* After tasks_run: hooks hear of the end. */
err worker_task_end(struct worker_task *);
void worker_task_close(struct worker_task *); /* NULL is fine */
struct task *worker_task_task(struct worker_task *);

#endif
