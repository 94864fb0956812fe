/* replica.h - one device and what computes on it: a graph, its plan and stepper, and the memory
 * that its parameters are bound to.
 *
 * A replica owns no parameters. Values and gradients are in one block per ps (layout.h), bound from
 * outside: windows of the cluster's links, or a store's in a single process. The memory bound for
 * gradients has the size of float32, of which 16-bit ones use the front; that for values has the
 * size of the format in which they arrive. A variable that is one slice is used in place, in the
 * device's block of floats: the bound one, its float32 copy, or its mirror if that is host memory
 * and the device has its own. A partitioned variable has a buffer of its own on the device,
 * gathered before a pass and scattered after it. A replica may also bind nothing and share the
 * values of another one on its device: an evaluation during training.
 *
 * Which batches are fed, and what happens to losses and gradients, is up to its owner (session.h).
 */
#ifndef CORE_TRAIN_SESSION_REPLICA_H
#define CORE_TRAIN_SESSION_REPLICA_H

#include "core/graph/stepper.h"
#include "core/train/session/ascent.h"
#include "core/train/session/rounding.h"

/* Called during a pass: brings values while forward continues, and takes gradients away while
 * backward does; with a mirror the gradients that have come down from the device. */
struct exchange {
    /* Returns when the values of this range are where they are bound. false: they will not come,
     * and the pass is void: no gradient leaves, and no residual is kept (rounding.h). */
    bool (*await)(void *context, int ps, struct range);
    /* The bound gradients of this range are final. */
    void (*leave)(void *context, int ps, struct range);
    /* Before a pass: whether values of this range are there, though they may still be taken back.
     */
    bool (*is_there)(void *context, int ps, struct range);
    /* Whether it wants to be told of gradients that leave by a mirror: some of them travel at once.
     */
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
    struct rounding rounding;        /* of gradients, where they do not leave as float32 */
    struct widening widening;        /* of values, likewise */
    const struct exchange *exchange; /* borrowed; NULL: none */
    struct buckets buckets;          /* what has left by the mirror, or goes to the exchange */
    bool awaits_values;  /* the next pass asks the exchange for the values of each node */
    bool is_void;        /* some values did not come */
    bool follows_values; /* the same for values that are copied up to the mirror */
    bool wants_penalty;  /* add the regularizers' terms of a node when its values are there */
    double penalty;
};

struct replica_options { /* all borrowed */
    struct device *device;
    struct graph *graph;
    const struct layout *layout; /* of the blocks */
    /* The blocks that will be bound are the host's memory, and the device has its own; then there
     * is no exchange, and replica_hand_on() tells which gradients have come down. */
    bool mirrors;
    const struct exchange *exchange; /* NULL: none; then: */
    bool leaves_within_node; /* gradients of a node leave while the rest of it is computed */
    enum number number, value_number; /* what gradients leave as, and values come */
};

/* Lists live in the arena, device memory until replica_close. */
err replica_open(const struct replica_options *, struct arena *, struct replica *ret);
void replica_close(struct replica *); /* a zeroed or partly opened one is fine */

void replica_bind(struct replica *, int ps, void *values, float *gradients);
void replica_unbind(struct replica *, int ps); /* no pass until others come */
/* All parameters use the values of `of`, whose graph has the same parameters. */
void replica_share(struct replica *, const struct replica *of);

/* Gives it memory of its own for the table rows of its batches; before replica_share. */
err replica_hold_tables(struct replica *, struct arena *);

/* Brings values to where the graph reads them, before a pass; and gradients from where it wrote
 * them. */
void replica_gather_values(struct replica *);
/* As replica_gather_values, for passes that can wait for each node's values while they are copied
 * to the device. */
void replica_send_values(struct replica *);
void replica_scatter_gradients(struct replica *);
/* Where gradients leave rounded, brings them to where they are bound, unless the pass has done so.
 */
void replica_round_gradients(struct replica *);

/* Runs nodes of the next pass over the rows that were loaded, as far as their values are there;
 * called again, it continues. Returns how many nodes have run so far. Such a pass awaits values. */
int replica_speculate(struct replica *);

/* A pass over the rows that were loaded or taken; add: to the gradients that are there. leaves: the
 * gradients of each node go to where they are bound as soon as they are finished. */
void replica_run(struct replica *, int64_t rows, bool add, bool leaves);

/* Tells the exchange of the gradients that leave by a mirror in the present pass, one bucket after
 * the other as they come down. */
void replica_hand_on(const struct replica *, const struct exchange *);

/* Sets all gradients to zero, also those that are bound. */
void replica_clear_gradients(struct replica *);

/* The name of the first parameter, in creation order, whose value or else whose gradient is not
 * finite; NULL: none. */
const char *replica_not_finite(const struct replica *, bool *ret_is_gradient);

/* Memory of the device: zero. */
err device_floats(struct device *, int64_t floats, float **ret);

#endif
