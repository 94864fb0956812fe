/* worker_role.h - what a worker, and the chief, decides.
 *
 * Life: GREETING until every ps is there; the chief then describes to each ps its share (SETUP),
 * and sends the initial values (INIT); every worker asks each ps to JOIN and gets VALUES as soon as
 * they are there. Then steps: with a ticket of ps/0, COMPUTE, PUSH to every ps, wait for the VALUES
 * of every ps. Without a ticket: FINISHED to every ps, and wait for the job's verdict. The chief
 * instead waits for the final values, which come when every worker has finished, evaluates and
 * sends the verdict.
 *
 * Where ps/0 may drop a gradient (drops_gradients), it is pushed to ps/0 first; the other ps get it
 * when it was taken, and are otherwise asked for their values of the step that ps/0 has reached.
 *
 * A ps without variables is asked for nothing but the global step, if it is ps/0.
 */
#ifndef CORE_CLUSTER_WORKER_ROLE_H
#define CORE_CLUSTER_WORKER_ROLE_H

#include "core/cluster/role.h"

struct worker_options {
    int task, ps_count;
    uint64_t incarnation;
    const uint64_t *block_bytes; /* [ps_count]; copied */
    uint32_t gradients_per_push;
    bool drops_gradients; /* backup workers, or max_staleness */
    uint64_t start_timeout_ms, step_timeout_ms, end_timeout_ms;
};

struct role *worker_role_new(const struct worker_options *);
void worker_role_free(struct role *);
uint64_t worker_role_global_step(const struct role *); /* as ps/0 said last */

#endif
