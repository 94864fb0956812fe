/* runner_worker.h - a worker (and the chief) on the real loop: connections to every ps, the session
 * that computes, and the hooks. */
#ifndef CORE_CLUSTER_RUNNER_RUNNER_WORKER_H
#define CORE_CLUSTER_RUNNER_RUNNER_WORKER_H

#include "core/cluster/runner/task.h"
#include "core/train/hooks/hook.h"

struct runner_worker;
struct feeder;       /* feed/feeder.h */
struct remote_input; /* feed/remote_input.h */

struct runner_worker_options {
    struct task_options task;
    struct spec *spec;     /* `dtrain set` changes it */
    struct device *device; /* borrowed; shared with the ps in a single process */
    struct tower_devices towers;
    struct own_hook own_hook; /* in addition to those of the spec */
    /* Borrowed: the last step of the run as found in earlier memberships; 0: not found yet. NULL:
     * there were no earlier ones */
    uint64_t *last_step;
    /* In-graph replication, borrowed: feeder of the chief, remote_input of a worker that it feeds;
     * NULL: the worker reads its own data */
    struct feeder *feeder;
    struct remote_input *remote_input;
};

/* Opens data, graph, plan and hooks, and begins to connect. */
err runner_worker_open(const struct runner_worker_options *, struct runner_worker **ret);
/* After tasks_run: runs the hooks of the end. */
err runner_worker_end(struct runner_worker *);
void runner_worker_close(struct runner_worker *); /* NULL is fine */
struct task *runner_worker_task(struct runner_worker *);

#endif
