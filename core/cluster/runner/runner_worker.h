/* runner_worker.h - a worker (and the chief) on the real loop: connecting to every ps, the session
 * that computes, and the hooks that hear of it. */
#ifndef CORE_CLUSTER_RUNNER_RUNNER_WORKER_H
#define CORE_CLUSTER_RUNNER_RUNNER_WORKER_H

#include "core/cluster/runner/task.h"
#include "core/train/hooks/hook.h"

struct runner_worker;
struct feeder;       /* feed/feeder.h */
struct remote_input; /* feed/remote_input.h */

struct runner_worker_options {
    struct task_options task;
    struct spec *spec;     /* what is set while the job runs changes it */
    struct device *device; /* borrowed; of tasks in one process the ps' too */
    struct tower_devices towers;
    struct own_hook own_hook; /* beside those of the spec */
    /* Borrowed: where the run ends, as lives of the task in earlier memberships have found; 0: they
     * have not. NULL: there were none */
    uint64_t *last_step;
    /* In-graph replication, borrowed: the chief's, and that of a worker whose data it reads; NULL:
     * it reads its own */
    struct feeder *feeder;
    struct remote_input *remote_input;
};

/* Opens data, graph, plan and hooks, and begins to connect. */
err runner_worker_open(const struct runner_worker_options *, struct runner_worker **ret);
/* After tasks_run: hooks hear of the end. */
err runner_worker_end(struct runner_worker *);
void runner_worker_close(struct runner_worker *); /* NULL is fine */
struct task *runner_worker_task(struct runner_worker *);

#endif
