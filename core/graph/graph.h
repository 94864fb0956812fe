/* graph.h - a model: nodes in the order in which they run, made from the spec.
 *
 * The same spec gives several graphs: one for training steps, one for evaluation (other batch size,
 * dropout off). They share the values of the parameters, which are bound from outside.
 */
#ifndef CORE_GRAPH_GRAPH_H
#define CORE_GRAPH_GRAPH_H

#include "core/graph/op.h"

struct model_spec {
    struct objects nodes; /* of struct node_spec */
    struct variant loss;
    struct objects metrics; /* of struct variant */
};

struct graph_options {
    struct shape features; /* of one example, without the batch dimension */
    int64_t batch;
    bool training;
    uint64_t seed;
};

struct graph {
    int64_t batch;
    bool training;
    struct tensor
        features; /* [batch, ...] float; value set from the batch; never wants a gradient */
    int node_count;
    struct node *nodes;
    int param_count;
    struct param **params; /* of all nodes, in creation order */
    struct loss_node loss;
    int metric_count;
    struct metric_node *metrics;
    int64_t param_floats;
};

/* Everything lives in the arena. ERR_INPUT names the node: model[2] (dense "hidden"): ... */
err graph_make(const struct model_spec *, const struct graph_options *, struct arena *,
               struct graph **ret);

/* Sum over params of the regularizers' terms at the current values. */
double graph_regularization(const struct graph *, struct device *);
bool graph_has_regularizers(const struct graph *);

#endif
