/* names.h - names of the nodes of a model. */
#ifndef CORE_GRAPH_NAMES_H
#define CORE_GRAPH_NAMES_H

#include "core/graph/batch.h"
#include "core/graph/op.h"

enum { NAME_LENGTH_MAX = 128 };

/* What nodes can read: nodes of the model, and columns of a batch except labels. */
struct readable {
    const char *const *nodes; /* [node_count] names; NULL: not assigned yet */
    int node_count;
    const struct column *columns;
    int column_count;
};

/* Sets ret_names[node_count]: the spec's name, or else the op's name, with _1, _2 ... if that is
 * taken, as tf.layers counts. ERR_INPUT: a bad or duplicate name, or that of a column. */
err names_assign(const struct node_spec *, const struct readable *, struct arena *,
                 const char **ret_names);

/* The index of the node or the column of this name; the other is -1. ERR_INPUT suggests the nearest
 * name. */
err names_find(const char *name, const struct readable *, int *ret_node, int *ret_column);

#endif
