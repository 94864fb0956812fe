/* stepper.h - training passes of a plan: forward, loss and backward as one.
 *
 * Where the device can record work (async.h), a pass that comes again as it was is recorded the
 * second time and then done again as a whole. What differs from step to step lies in the device's
 * memory: the batch, the draw, the values.
 *
 * Where it cannot, nodes of the next pass may be run ahead of it, before it is known whether their
 * values stand; the pass continues from there, or starts over.
 */
#ifndef CORE_GRAPH_STEPPER_H
#define CORE_GRAPH_STEPPER_H

#include "core/graph/plan.h"

struct pass {
    int64_t rows;
    bool add; /* to the param gradients */
    /* Before its nodes, whenever it is queued, which may be twice where it could not be recorded
     * after all; NULL: nothing */
    void (*begin)(void *);
    plan_needed *needed; /* of work that is recorded it may not wait, and is always the same */
    /* As plan_backward has it, and always the same function of the same context; what it queues is
     * part of the pass, and it may not wait. */
    finished_with *finished;
    void *context;
};

enum { PASS_KINDS = 4 }; /* that adds or not; with a function or without */

struct stepper {
    struct plan *plan; /* borrowed */
    struct {
        bool is_known; /* one was queued, so that all code is loaded */
        struct recording *recording;
    } kind[PASS_KINDS];
    bool records_nothing; /* the device cannot, or could not */
    int ahead;            /* nodes that were run ahead of the next pass */
    bool was_ahead;       /* some were, for nothing: what they took for their own is loaded again */
};

void stepper_open(struct plan *, struct stepper *ret);
/* The batch is loaded or taken; queues all of the pass. */
void stepper_run(struct stepper *, const struct pass *);
/* Nodes of the next pass, as far as needed() lets them; again, it continues from there. Returns how
 * many have been run by now. The batch is loaded, and stays. */
int stepper_run_ahead(struct stepper *, plan_needed *needed, void *context);
void stepper_forget_ahead(struct stepper *); /* the next pass starts over */
/* Params have other addresses now, or what `finished` does has changed: nothing is replayed that
 * was recorded before. */
void stepper_forget(struct stepper *); /* a zeroed one is fine */

#endif
