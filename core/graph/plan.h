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
#include "kernels/async.h"

struct plan_size {                   /* bytes */
    size_t values, gradients, saved; /* each buffer counted alone */
    size_t block;                    /* what is really taken, after sharing */
    size_t workspace;                /* what nodes and loss take for themselves */
};

/* What goes to the device with each batch and is none of its columns */
struct step_numbers {
    uint64_t draw;          /* the number of this step's random draws */
    float scale[HEADS_MAX]; /* of each head's gradient; the device has as many as there are heads */
};

struct plan {
    struct graph *graph;
    struct device *device;
    void *block;
    /* Of each input, for a batch that is not aligned, has fewer rows, or lies in the host's memory
     * where the device has its own: what nodes read in the block; beside it, and only where the
     * device has its own memory, what the loss reads. NULL: none, used where it lies. */
    void **inputs;
    struct step_numbers *numbers; /* of the device */
    struct inlet *inlet;          /* NULL: batches come when they are wanted */
    struct inlet_part *parts;     /* of it: [inputs, and one] */
    struct batch loaded;          /* by plan_load, the last one, and its draw */
    uint64_t loaded_draw;
    /* Where in the stream the batch is that nodes carry something to, and that which was sent;
     * rows 0: none yet */
    struct batch carried_to, sent;
    struct loss_counts sent_counts[HEADS_MAX];
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

size_t plan_numbers_bytes(const struct graph *);
/* Of what a plan takes for inputs beside its block */
size_t plan_inputs_bytes(const struct graph *, const struct device *);

/* The batch of the next pass: 1 to the graph's batch rows of the columns that the graph was made
 * for; draw numbers its random draws. Where the device sees the host's memory it is used where it
 * lies, and stays there until the pass is over. */
void plan_load(struct plan *, const struct batch *, uint64_t draw);
/* That batch once more: nodes may have written where it was copied to. */
void plan_load_again(struct plan *);

/* The same in two parts, by way of an inlet of the plan's own: a batch is sent while another is
 * worked on (the caller's memory is free again at once), and taken for the next pass. One at a
 * time. */
size_t plan_inlet_bytes(const struct graph *, const struct device *); /* 0: no use here */
err plan_open_inlet(struct plan *);
void plan_send(struct plan *, const struct batch *, uint64_t draw);
void plan_take(struct plan *, int64_t rows); /* as many as were sent */

/* Before a node that has params is run forward; false: not now. */
typedef bool plan_needed(void *context, const struct node *);

/* The nodes from `first` on forward, over the rows that were loaded, as far as needed() lets them
 * (may be NULL). Returns the first that was not run: where this continues. */
int plan_compute(struct plan *, int first, plan_needed *needed, void *context);
/* After all nodes: fills losses[rows] of each head (and, when training, the gradient). Logits
 * and losses stay until the next pass. */
void plan_judge(struct plan *, int64_t rows);

/* plan_load, and all of a forward pass */
void plan_forward(struct plan *, const struct batch *, uint64_t draw);

/* Every param gradient complete afterwards, regularizers included; finished(context, node) is
 * called after each node whose param gradients are complete, of nodes that have any, and where the
 * host computes also amid one (may be NULL). add: add to the param gradients. */
void plan_backward(struct plan *, bool add, finished_with *finished, void *context);

/* After a forward pass: the mean or the sum of the losses of the rows, without regularization; of
 * all heads, each times its factor, or of one alone. beside: NULL, or what else is summed, for
 * which nobody waits again. */
double plan_loss(struct plan *, int64_t rows, const struct summed *beside, double *ret_beside);
double plan_head_loss(struct plan *, int head, int64_t rows);

#endif
