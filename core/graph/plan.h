/* plan.h - the memory of every buffer of a step, and running the step.
 *
 * All outputs, gradients, saved tensors and losses of a graph are placed once in one block by their
 * lifetimes: of n nodes, node i runs forward at time i and backward at time 2n - i, and two buffers
 * may share memory if their lifetimes do not overlap. Nothing is allocated afterwards.
 */
#ifndef CORE_GRAPH_PLAN_H
#define CORE_GRAPH_PLAN_H

#include "core/base/trace.h"
#include "core/graph/graph.h"
#include "kernels/async.h"

struct plan_size {                   /* bytes */
    size_t values, gradients, saved; /* sums over the buffers, without sharing */
    size_t block;                    /* memory actually allocated for them, with sharing */
    size_t workspace; /* what nodes and losses allocate in prepare(), and the step_numbers */
};

/* What goes to the device with each batch beside its columns */
struct step_numbers {
    uint64_t draw;          /* number of this step's random draws */
    float scale[HEADS_MAX]; /* of each head's gradient; on the device only as many as there are
                               heads */
};

struct plan {
    struct graph *graph;
    struct device *device;
    void *block;
    /* The plan's memory for each input. For those that nodes read it is in the block, and used when
     * the batch is not aligned, has fewer rows, or is in host memory that the device cannot read.
     * Those that only losses read have some only on such a device; NULL: none, the batch is read in
     * place. */
    void **inputs;
    struct step_numbers *numbers; /* in device memory */
    struct inlet *inlet;          /* NULL: batches are not sent ahead */
    struct inlet_part *parts;     /* [input_count + 1] scratch for plan_take */
    struct batch loaded;          /* the last batch of plan_load, and its draw */
    uint64_t loaded_draw;
    /* The batch that state carried by nodes (op->advance) was last advanced to, and the batch last
     * sent; rows 0: none yet */
    struct batch carried_to, sent;
    struct loss_counts sent_counts[HEADS_MAX];
    int prepared_count;
    struct plan_size size;
    struct trace *trace; /* borrowed: records the time of each node; NULL: none */
};

/* Sizes of such a plan on that device, without allocating it. ERR_MEMORY */
err plan_measure(struct graph *, struct device *, struct plan_size *ret);

/* Places and allocates the buffers, sets every tensor's addresses and prepares the nodes. The
 * addresses of params are set separately. */
err plan_open(struct graph *, struct device *, struct plan **ret);
void plan_close(struct plan *); /* NULL is fine */

size_t plan_numbers_bytes(const struct graph *);
/* Bytes that a plan allocates for inputs outside its block */
size_t plan_inputs_bytes(const struct graph *, const struct device *);

/* Sets the batch of the next pass: 1 to graph->batch rows, with the columns that the graph was made
 * for; draw is the number of its random draws. A device that shares the host's memory may read it
 * in place: it must stay valid until the pass is over. */
void plan_load(struct plan *, const struct batch *, uint64_t draw);
/* Loads that batch again: nodes may have overwritten its copy. */
void plan_load_again(struct plan *);

/* The same in two steps, through an inlet: plan_send sends a batch while another one is computed
 * (the caller's memory is free again on return), plan_take makes it the batch of the next pass. One
 * batch at a time. */
size_t plan_inlet_bytes(const struct graph *, const struct device *); /* 0: no inlets */
err plan_open_inlet(struct plan *);
void plan_send(struct plan *, const struct batch *, uint64_t draw);
void plan_take(struct plan *, int64_t rows); /* rows: as many as were sent */

/* Called before the forward pass of a node with params of its own; false: do not run it yet. */
typedef bool plan_needed(void *context, const struct node *);

/* Runs nodes forward from index `first` on, over the loaded rows, until needed() returns false
 * (NULL: all). Returns the index of the first node not run, to continue from. */
int plan_compute(struct plan *, int first, plan_needed *needed, void *context);
/* Call after all nodes have run: fills losses[rows] of each head and, when training, the gradient
 * of its logits. Logits and losses stay until the next pass. */
void plan_judge(struct plan *, int64_t rows);

/* plan_load, plan_compute and plan_judge */
void plan_forward(struct plan *, const struct batch *, uint64_t draw);

/* Completes every param gradient, including regularization. finished (may be NULL) is called after
 * each node that owns params, when their gradients are complete, and on the host's device also
 * within a node. add: add to the param gradients. */
void plan_backward(struct plan *, bool add, finished_with *finished, void *context);

/* After a forward pass: the mean or sum of the rows' losses, without regularization: of all heads,
 * each times its factor, or of one head, without its factor. beside: one more sum to compute with
 * them, without another wait for the device; NULL: none. */
double plan_loss(struct plan *, int64_t rows, const struct summed *beside, double *ret_beside);
double plan_head_loss(struct plan *, int head, int64_t rows);

#endif
