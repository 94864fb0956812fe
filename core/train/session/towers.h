/* towers.h - several replicas that compute one batch together, each a part of its rows.
 *
 * Tower k of n has rows k B / n to (k + 1) B / n - 1 of every batch, a device, and on it a graph of
 * that many rows, its plan, and a thread; the first one computes in the caller's. All read the same
 * values. The gradient of the batch is the mean of theirs, summed in the order of towers:
 *
 *     g = ((g0 + g1) + g2 ...) / n
 *
 * or, where rows count differently (the loss has weights, or a batch is not full), the sum of
 * (weight of the tower / weight of all) gk: what one replica would compute of the whole batch, but
 * for the order of summation, which the same number of towers always repeats to the bit. Terms of
 * regularizers and what dropout leaves out are those of one replica, too.
 *
 * A tower on the session's own device reads values where they lie; another device has copies of
 * them, by way of the host's memory, before each pass.
 */
#ifndef CORE_TRAIN_SESSION_TOWERS_H
#define CORE_TRAIN_SESSION_TOWERS_H

#include <pthread.h>

#include "core/graph/stepper.h"

enum { TOWERS_MAX = 64 };

struct tower_devices {        /* borrowed */
    struct device *const *at; /* [count] */
    int count;                /* 2 to TOWERS_MAX; 0: no towers */
};

/* Memory of the host for all params, by which one device passes on what others read */
struct hosted {
    float **at; /* [params]; NULL: there is none */
    void *block;
    bool is_pinned;
};

struct towers;

struct tower {
    struct towers *all;
    int index;
    struct device *device; /* borrowed */
    struct graph *graph;
    struct plan *plan;
    struct stepper stepper;
    float **values;    /* [params] of its device; NULL: it reads the session's */
    float **gradients; /* [params] of its device; NULL: the session's, as the first tower's are */
    struct hosted hosted; /* of a device of its own: its gradients */
    float **copies;     /* [params] the same on the session's device; NULL: that sees the host's */
    struct batch batch; /* its part of the present batch */
    struct column *columns;
    double loss, weight; /* of its rows of the present batch */
    struct trace trace;
    bool has_thread;
    pthread_t thread;
    err result;
    char text[ERROR_TEXT_MAX];
};

struct towers {
    int count; /* 0: none, the session's replica computes all */
    /* 0; or with one tower: it computes each batch in this many pieces, one after the other, whose
     * gradients are summed in that order. Each piece has random draws of its own. */
    int pieces;
    struct tower *at;
    struct device *device;     /* borrowed: the session's */
    const struct graph *whole; /* borrowed: of whole batches, whose params are bound */
    struct hosted values; /* the values of the session's device, where another device needs them */
    const float **parts;  /* [count] scratch */
    uint64_t draw;        /* of the present batch */
    double loss;          /* mean of the batch */
    pthread_mutex_t lock;
    pthread_cond_t wake, done; /* a pass begins; a tower has finished */
    uint64_t passes;           /* passes that have begun */
    int working;               /* towers with a thread that still compute in this pass */
    bool is_locked, ends;      /* lock and conditions are initialized; threads are to end */
};

struct towers_options {    /* all borrowed */
    struct device *device; /* the session's */
    struct tower_devices towers;
    int pieces;                /* 2 or more: instead of towers */
    const struct graph *whole; /* of whole batches */
    /* Makes a graph for these rows of the batch. */
    err (*make)(void *context, int64_t first, int64_t rows, struct arena *, struct graph **ret);
    void *context;
};

/* ERR_INPUT: that many towers cannot share a batch of this many rows. */
err towers_check(int count, int64_t batch);
/* ERR_INPUT: the batch cannot be cut evenly. Lists live in the arena, where `ret` stays as well. */
err towers_open(const struct towers_options *, struct arena *, struct towers *ret);
void towers_close(struct towers *); /* a zeroed or partly opened one is fine */

/* Called when the params are bound elsewhere: what depends on where they were is dropped. */
void towers_forget(struct towers *);

/* One pass over the batch: writes the gradient of its mean loss to where the params of the whole
 * graph are bound. trace: gets each node's time; NULL: not wanted. Fails with the error of the
 * first tower that has one. */
err towers_run(struct towers *, const struct batch *, uint64_t draw, struct trace *);

#endif
