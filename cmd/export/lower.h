/* lower.h - what the files that lower ops to primitives share. */
#ifndef CMD_EXPORT_LOWER_H
#define CMD_EXPORT_LOWER_H

#include "cmd/export/program.h"

struct lowering {
    struct program *program;
    const struct graph *graph;
    const struct node *node;        /* being lowered */
    int *of_node;                   /* [nodes] */
    int of_input[GRAPH_INPUTS_MAX]; /* -1: not yet lowered */
};

/* Attributes by the names of their fields, which must exist. */
double lower_float(const struct node *, const char *name);
int64_t lower_int(const struct node *, const char *name);
int lower_enum(const struct node *, const char *name);
bool lower_bool(const struct node *, const char *name);
const struct ints *lower_ints(const struct node *, const char *name);

err lower_input(struct lowering *, int input, int *ret); /* of `node` */
/* The node's named_inputs[named]; *ret -1: not given */
err lower_named(struct lowering *, int named, int *ret);
/* The weights of the ids of an input; *ret -1: all are 1 */
err lower_weights(struct lowering *, int input, int *ret);
/* A whole variable or table */
err lower_param(struct lowering *, int param, int *ret);
/* A whole table, transposed: [width, rows] */
err lower_turned(struct lowering *, int param, int *ret);
/* A constant that is not a variable; nodes that use the same name share it. */
int lower_constant(struct lowering *, const char *name, const struct shape *, const float *data);
err lower_refuse(const char *why); /* ERR_INPUT */

err lower_layer_end(struct lowering *, int *x); /* bias and activation */
int lower_shape(struct lowering *, int x);      /* reshaped to the shape of the node's output */

/* Translates one op */
typedef err lowers(struct lowering *, int *ret);
lowers lower_layers, lower_windows, lower_sparse, lower_vectors, lower_moves, lower_normal;
lowers lower_masked, lower_attention, lower_steps;
#endif
