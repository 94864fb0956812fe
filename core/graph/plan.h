/* plan.h - where every buffer of a step lies, and the step itself.
 *
 * All outputs, gradients, saved tensors and losses of a graph are placed once in one block by their
 * lifetimes: node i runs forward at time i and backward at time 2n - i, and two buffers may share
 * memory when their lifetimes do not meet. Nothing is allocated afterwards.
 */
#ifndef CORE_GRAPH_PLAN_H
#define CORE_GRAPH_PLAN_H

#include "core/base/trace.h"
#include "core/graph/graph.h"

struct plan_size {                   /* bytes */
    size_t values, gradients, saved; /* each buffer counted alone */
    size_t block;                    /* what is really taken, after sharing */
    size_t workspace;                /* what nodes and loss take for themselves */
};

struct plan {
    struct graph *graph;
    struct device *device;
    void *block;
    float *features; /* in the block: for a batch that is not aligned, has fewer rows, or lies in
                        the host's memory where the device has its own */
    void *labels;    /* beside it: only where the device has memory of its own */
    uint64_t *draw;  /* of the device: the number of this step's random draws */
    int prepared_count;
    struct plan_size size;
    struct trace *trace; /* borrowed: each node's time goes there; NULL: nobody asks */
};

/* The same placement for that device, no memory taken. */
err plan_measure(struct graph *, struct device *, struct plan_size *ret);

/* Places, allocates, sets every tensor's addresses, prepares the nodes. Params are bound
 * separately. */
err plan_open(struct graph *, struct device *, struct plan **ret);
void plan_close(struct plan *); /* NULL is fine */

/* One pass. features and labels as the batch has them, in the host's memory, of which `rows` rows
 * are read (1 to the graph's batch); draw numbers the random draws of this step. Forward fills
 * loss.losses[rows] (and, when training, the gradient of the mean). Logits and losses stay until
 * the next step. */
void plan_forward(struct plan *, const void *features, const void *labels, int64_t rows,
                  uint64_t draw);

/* Every param gradient complete afterwards, regularizers included; finished(context, node) is
 * called after each node whose param gradients are complete, of nodes that have any (may be NULL).
 * add: add to the param gradients. */
void plan_backward(struct plan *, bool add, void (*finished)(void *, const struct node *),
                   void *context);

/* After plan_forward: the mean loss of the rows, without regularization. */
double plan_loss(struct plan *, int64_t rows);

#endif
