/* graph_def_inside.h - a list of nodes while it is made: names are given once. */
#ifndef CORE_TRAIN_SUMMARY_GRAPH_DEF_INSIDE_H
#define CORE_TRAIN_SUMMARY_GRAPH_DEF_INSIDE_H

#include "core/base/word_place.h"
#include "core/train/summary/graph_def.h"

/* As in between-graph replication, where all workers have this graph: no task is named. */
extern const char WORKER_DEVICE[];

struct graph_nodes {
    struct arena *arena;
    struct graph_node *at;
    int count, capacity;
    struct word *taken; /* [taken_size] places of their names (core/base/word_place.h) */
    int taken_size;
};

/* Copies the node and its list of inputs; returns its name, with _1, _2 ... if it is taken. */
const char *graph_nodes_add(struct graph_nodes *, const struct graph_node *);

/* TensorFlow's name for one of our ops, losses, metrics or optimizers: MatMul, Conv2D, Relu. If it
 * has none, ours in its spelling. */
const char *tensorflow_name(struct arena *, const char *ours);

const char *ps_device(struct arena *, int ps); /* "/job:ps/task:0" */

/* What the forward half hands on to the training half. */
struct graph_maker {
    const struct graph *graph;
    const struct layout *layout;
    struct graph_nodes nodes;
    const char **outputs; /* [graph->node_count] for each node of the model, the node that makes its
                             output */
    const char **wholes;  /* [layout->variable_count] the node that makes the whole variable */
    const char **slices;  /* [layout->slice_count] the node that holds each slice */
    const char **inputs;  /* [graph->input_count] the node of each column */
    const char *loss;
};

/* A name at the top level that no node of the model begins with: "train", or "train_1" ... */
const char *graph_scope(struct graph_maker *, const char *name);

void graph_def_add_training(struct graph_maker *, const struct optimizers *);

#endif
