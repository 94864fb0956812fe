/* graph_def_inside.h - a list of nodes while it is made: names are given once. */
#ifndef CORE_TRAIN_SUMMARY_GRAPH_DEF_INSIDE_H
#define CORE_TRAIN_SUMMARY_GRAPH_DEF_INSIDE_H

#include "core/base/word_place.h"
#include "core/train/summary/graph_def.h"

/* Between-graph replication: every worker has this graph, so no task of the job is named. */
extern const char WORKER_DEVICE[];

struct graph_nodes {
    struct arena *arena;
    struct graph_node *at;
    int count, capacity;
    struct word *taken; /* [taken_size] places of their names (core/base/word_place.h) */
    int taken_size;
};

/* Copies the node and its list of inputs; returns its name, with _1, _2 ... where that is taken. */
const char *graph_nodes_add(struct graph_nodes *, const struct graph_node *);

/* TensorFlow's name of an op, a loss, a metric or an optimizer of ours: MatMul, Conv2D, Relu. Where
 * it has no such thing, ours in its spelling. */
const char *tensorflow_name(struct arena *, const char *ours);

const char *ps_device(struct arena *, int ps); /* "/job:ps/task:0" */

/* What the forward half leaves to the training half. */
struct graph_maker {
    const struct graph *graph;
    const struct layout *layout;
    struct graph_nodes nodes;
    const char **outputs; /* [graph->node_count] who makes the output of each node of the model */
    const char **wholes;  /* [layout->variable_count] who makes the whole variable */
    const char **slices;  /* [layout->slice_count] who holds each slice */
    const char **inputs;  /* [graph->input_count] who brings each column */
    const char *loss;
};

/* A name at the top that no node of the model has in front: "train", or "train_1" ... */
const char *graph_scope(struct graph_maker *, const char *name);

void graph_def_add_training(struct graph_maker *, const struct optimizers *);

#endif
