/* stepper.h - training passes of a plan: forward, loss and backward as one.
 *
 * If the device can record work (async.h), a kind of pass is recorded the second time and replayed
 * from then on. What differs from step to step is in device memory: the batch, the draw, the
 * values.
 *
 * If it cannot, nodes of the next pass may be run ahead, before it is known whether their values
 * will be used; the pass continues from there, or starts over.
 */
#ifndef CORE_GRAPH_STEPPER_H
#define CORE_GRAPH_STEPPER_H

#include "core/graph/plan.h"

struct pass {
    int64_t rows;
    bool add; /* add to the param gradients */
    /* Called before the nodes whenever the pass is queued, which happens twice if recording failed;
     * NULL: none */
    void (*begin)(void *);
    plan_needed *needed; /* see plan_compute; if the pass is recorded it must not wait, and must
                            always be the same */
    /* See plan_backward. Must always be the same function and context; work that it queues is part
     * of the pass, and it must not wait. */
    finished_with *finished;
    void *context;
};

enum { PASS_KINDS = 4 }; /* add or not, times finished or NULL */

struct stepper {
    struct plan *plan; /* borrowed */
    struct {
        bool is_known; /* one was queued before, so all kernels are loaded */
        struct recording *recording;
    } kind[PASS_KINDS];
    bool records_nothing; /* the device cannot record, or failed to */
    int ahead;            /* how many nodes of the next pass were run ahead */
    bool was_ahead; /* nodes were run ahead in vain: the batch, which they may have overwritten, is
                       loaded again */
};

void stepper_open(struct plan *, struct stepper *ret);
/* Queues the whole pass; the batch must have been loaded or taken. */
void stepper_run(struct stepper *, const struct pass *);
/* Runs nodes of the next pass until needed() returns false; a further call continues from there.
 * Returns how many have been run so far. The batch must be loaded, and stay valid. */
int stepper_run_ahead(struct stepper *, plan_needed *needed, void *context);
void stepper_forget_ahead(struct stepper *); /* the next pass starts over */
/* Drops the recordings, which is necessary when addresses of params, or what `finished` does, have
 * changed. */
void stepper_forget(struct stepper *); /* a zeroed one is fine */

#endif
