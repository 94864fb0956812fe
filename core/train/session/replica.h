/* replica.h - one device and what computes on it: a graph, its plan and stepper, and the memory
 * that its parameters are bound to.
 *
 * A replica owns no parameters. Values and gradients lie in one block per ps (layout.h), bound from
 * outside: windows of the cluster's links, or a store's in a single process. What is bound for
 * gradients has the size of the floats, of which rounded ones take the front; for values that of
 * the numbers that come. A variable that is one slice is used where the device sees its block of
 * floats: the bound one, what that is widened to, or its mirror where that is the host's memory and
 * the device has its own. A partitioned variable has a buffer of its own on the
 * device, gathered before a pass and scattered after it. A replica may also bind nothing and share
 * the values of another one on its device: an evaluation beside training.
 *
 * Which batches are fed, and what is made of losses and gradients, is its owner's business
 * (session.h).
 */
#ifndef CORE_TRAIN_SESSION_REPLICA_H
#define CORE_TRAIN_SESSION_REPLICA_H

#include "core/graph/stepper.h"
#include "core/train/session/ascent.h"
#include "core/train/session/rounding.h"

/* Who brings values while forward continues, and takes gradients away while backward does: with a
 * mirror those that have come down from the device. */
struct exchange {
    /* Returns when the values of this range are where they are bound; false: they will not come,
     * and nothing comes of the pass. Then nothing leaves, and nothing is owed (rounding.h). */
    bool (*await)(void *context, int ps, struct range);
    void (*leave)(void *context, int ps, struct range); /* where it is bound, it is final */
    /* Ahead of a pass: whether values of this range are there, though they may be taken back. */
    bool (*is_there)(void *context, int ps, struct range);
    /* Whether what leaves by a mirror is worth being told of: some of it travels at once. */
    bool (*takes)(void *context);
    void *context;
};

struct replica {
    struct device *device; /* borrowed */
    struct graph *graph;   /* borrowed */
    struct plan *plan;     /* of the graph; NULL until the owner opens it */
    struct stepper stepper;
    const struct layout *layout;             /* borrowed; NULL: it shares another one's values */
    float **values, **gradients;             /* [ps_count] blocks, bound; NULL: none */
    float **whole_values, **whole_gradients; /* [variables] of the device; NULL: used in place */
    struct mirror mirror;
    struct ascent ascent;            /* of its values */
    struct rounding rounding;        /* of what leaves, where that is not float32 */
    struct widening widening;        /* of what comes, the same */
    const struct exchange *exchange; /* borrowed; NULL: none */
    struct buckets buckets;          /* of the mirror, or for the exchange */
    bool awaits_values;  /* of the exchange: each node's in the next pass, before its forward */
    bool is_void;        /* some did not come */
    bool follows_values; /* the same of those that go up to the mirror */
    bool wants_penalty;  /* of them: regularizers' terms */
    double penalty;
};

struct replica_options { /* all borrowed */
    struct device *device;
    struct graph *graph;
    const struct layout *layout; /* of the blocks */
    /* Those that will be bound are the host's memory, and the device has its own; then there is no
     * exchange, and replica_hand_on() tells what has come down. */
    bool mirrors;
    const struct exchange *exchange;  /* NULL: none; then: */
    bool leaves_within_node;          /* gradients of a node, while the rest of it is computed */
    enum number number, value_number; /* what gradients leave as, and values come */
};

/* Lists live in the arena, memory of the device until replica_close. */
err replica_open(const struct replica_options *, struct arena *, struct replica *ret);
void replica_close(struct replica *); /* a zeroed one is fine; what was half opened, too */

void replica_bind(struct replica *, int ps, void *values, float *gradients);
void replica_unbind(struct replica *, int ps); /* no pass until others come */
/* The values of all parameters are those of `of`, whose graph has the same ones. */
void replica_share(struct replica *, const struct replica *of);

/* Of tables it has memory of its own, for the rows of its batches; before replica_share. */
err replica_hold_tables(struct replica *, struct arena *);

/* Values to where the graph reads them, before a pass; and gradients from where it wrote them. */
void replica_gather_values(struct replica *);
/* The same where passes follow, which wait for each node's values on their way to the device, where
 * that can be. */
void replica_send_values(struct replica *);
void replica_scatter_gradients(struct replica *);
/* Where gradients leave rounded, this brings them to where they are bound, unless the pass did. */
void replica_round_gradients(struct replica *);

/* Nodes of the next pass, over the rows that were loaded, as far as values are there; again, it
 * continues from there. Returns how many have been run by now. Such a pass awaits values. */
int replica_speculate(struct replica *);

/* A pass over the rows that were loaded or taken; add: to the gradients that are there. leaves: the
 * gradients of each node go to where they are bound as soon as they are finished. */
void replica_run(struct replica *, int64_t rows, bool add, bool leaves);

/* Of gradients that leave by a mirror in the pass that is under way: one after the other, as they
 * come down. */
void replica_hand_on(const struct replica *, const struct exchange *);

/* All gradients become zero, and what is bound as well. */
void replica_clear_gradients(struct replica *);

/* The name of the first parameter, in creation order, whose value or else whose gradient is not
 * finite; NULL: none. */
const char *replica_not_finite(const struct replica *, bool *ret_is_gradient);

/* Memory of the device: zero. */
err device_floats(struct device *, int64_t floats, float **ret);

#endif
