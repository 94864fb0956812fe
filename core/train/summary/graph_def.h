/* graph_def.h - a model as TensorFlow's GraphDef, for TensorBoard's graph page.
 *
 * Nodes only, made by hand: name ("conv1/kernel": slashes make boxes), op, inputs by name, device
 * ("/job:ps/task:0") and shape. It is for looking at, not for running.
 */
#ifndef CORE_TRAIN_SUMMARY_GRAPH_DEF_H
#define CORE_TRAIN_SUMMARY_GRAPH_DEF_H

#include <stddef.h>

#include "core/base/arena.h"
#include "core/graph/graph.h"
#include "core/train/variables/layout.h"
#include "core/train/spec/spec.h"

/* TensorFlow's numbers; a global step is of a type that no tensor of a model has. */
enum graph_dtype { GRAPH_FLOAT = 1, GRAPH_INT32 = 3, GRAPH_UINT8 = 4, GRAPH_INT64 = 9 };

struct graph_node {
    const char *name, *op, *device; /* device NULL: none */
    const char *const *inputs; /* names of nodes; "^name": runs after it, reads nothing of it */
    int input_count;
    struct shape shape; /* of its output */
    enum graph_dtype dtype;
    const struct object
        *object;            /* how attributes are read: what the spec says of the node is shown */
    const void *attributes; /* NULL: none */
};

struct graph_def {
    const struct graph_node *nodes;
    int node_count;
};

/* The model as a reader expects it: features and labels, every node with its variables under it
 * (kernel -> read by the node, on the device of its ps; a part per slice where it is partitioned),
 * loss, metrics, and under train what makes a step: gradients from the loss, clipping, learning
 * rate, one update per slice (train/<type>/<variable>, on its ps) with the slots it reads, and
 * train/<type>, which counts global_step. The graph is one for training, the layout's
 * variables are its params. In the arena; attributes are borrowed from the graph and the optimizer.
 */
void graph_def_make(const struct graph *, const struct layout *, const struct optimizers *,
                    struct arena *, struct graph_def *ret);

/* The serialized message, freed with free(); NULL: no memory. */
void *graph_def_serialize(const struct graph_def *, size_t *ret_bytes);

#endif
