/* names.h - what the nodes of a model are called. */
#ifndef CORE_GRAPH_NAMES_H
#define CORE_GRAPH_NAMES_H

#include "core/graph/batch.h"
#include "core/graph/op.h"

enum { NAME_LENGTH_MAX = 128 };

/* One name per node: the spec's own, or the op's name with _1, _2 ... where that is taken, as
 * tf.layers counts. ERR_INPUT for a bad or doubled name, and for FEATURES_NAME. */
err names_assign(const struct node_spec *, int count, struct arena *, const char **ret_names);

/* Index of the node, -1 for FEATURES_NAME. ERR_INPUT with the nearest name when there is none. */
err names_find(const char *name, const char *const *names, int count, int *ret_index);

#endif
