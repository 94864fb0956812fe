/* names.h - what the nodes of a model are called. */
#ifndef CORE_GRAPH_NAMES_H
#define CORE_GRAPH_NAMES_H

#include "core/graph/batch.h"
#include "core/graph/op.h"

enum { NAME_LENGTH_MAX = 128 };

/* What nodes read: those of the model, and the columns of a batch but for the labels. */
struct readable {
    const char *const *nodes; /* [node_count] names, as they are assigned */
    int node_count;
    const struct column *columns;
    int column_count;
};

/* One name per node: the spec's own, or the op's name with _1, _2 ... where that is taken, as
 * tf.layers counts. ERR_INPUT for a bad or doubled name, and for that of a column. */
err names_assign(const struct node_spec *, const struct readable *, struct arena *,
                 const char **ret_names);

/* Of the node, or of the column: the other is -1. ERR_INPUT with the nearest name when there is
 * none. */
err names_find(const char *name, const struct readable *, int *ret_node, int *ret_column);

#endif
