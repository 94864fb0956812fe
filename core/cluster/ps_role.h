/* ps_role.h - what a parameter server decides.
 *
 * Life: EMPTY, until the chief's SETUP; READY, until the chief's INIT; SERVING, until every worker
 * has FINISHED; then the chief gets the final values, evaluates and sends the job's VERDICT, which
 * this ps passes on to the other workers before it ends.
 *
 * Synchronous: a round is one global step. It is applied when workers that bring together at least
 * `replicas_to_aggregate` gradients of the current step are here; they are summed in worker order
 * and divided by their number. With as many replicas to aggregate as the workers bring, every round
 * has all of them, and the result has the same bits whatever the order of arrival. With fewer
 * (backup workers) ps/0 decides: a gradient that comes after its round is dropped and counted, its
 * worker gets the fresh values at once.
 *
 * Asynchronous: a gradient is applied as it comes. With max_staleness, ps/0 drops and counts one
 * that was computed from values more than that many updates ago (TensorFlow's
 * DropStaleGradientOptimizer).
 *
 * Where ps/0 may drop a gradient, workers show it to ps/0 first and to the other ps only once it
 * was taken, so that all ps apply the same gradients and hold the same step (worker_role.h).
 *
 * Tickets: ps/0 owns the global step. A worker computes a step only with a ticket, which comes with
 * the values; in asynchronous mode ps/0 gives out exactly last_step of them (a dropped gradient's
 * comes back), so the run stops exactly at last_step and no step is computed in vain.
 *
 * Exactly once: pushes of one worker carry (incarnation, sequence). What is not the next of the
 * incarnation that joined is never applied again.
 */
#ifndef CORE_CLUSTER_PS_ROLE_H
#define CORE_CLUSTER_PS_ROLE_H

#include "core/cluster/role.h"

struct ps_config { /* from the chief's SETUP; set with ps_role_configure before done(SETUP) */
    bool is_sync;
    uint64_t last_step;
    uint32_t replicas_to_aggregate; /* gradients per round */
    bool takes_all;        /* every round needs every worker: values can be used in place */
    int64_t max_staleness; /* -1: unbounded */
};

struct ps_options {
    int task, workers;
    uint64_t incarnation;
    uint64_t step_timeout_ms, end_timeout_ms;
};

struct ps_counters {
    uint64_t applied, dropped_stale, dropped_repeated;
};

struct role *ps_role_new(const struct ps_options *);
void ps_role_free(struct role *);
void ps_role_configure(struct role *, const struct ps_config *);
struct ps_counters ps_role_counters(const struct role *);
bool ps_role_is_set_up(const struct role *); /* the chief has been here */

#endif
