/* kernel_rows.h - which rows of a layer's kernels belong to which input: the columns and nodes that
 * stand side by side in what the layer reads.
 *
 * A run that begins with values of another model finds rows by these names, wherever they stood.
 */
#ifndef CORE_GRAPH_KERNEL_ROWS_H
#define CORE_GRAPH_KERNEL_ROWS_H

#include "core/graph/graph.h"

struct kernel_part {
    const char *name; /* of a column, of a node, or of one of the cells that "features" are */
    int64_t rows;
};
struct kernel_parts {
    struct kernel_part *at;
    int count; /* 0: it is no such kernel, or has more than KERNEL_PARTS_MAX */
};
enum { KERNEL_PARTS_MAX = 1 << 16 };

/* Of the kernels that a dense or a recurrent layer has for itself. What is joined along the first
 * axis of an example, or of a sequence along the last, is taken apart, also behind flatten,
 * reshape, dropout and activations; what else nodes make is one part, and so is the state of a
 * recurrent layer, called as the layer is. feature_names: of the cells, in their order; none: not
 * known. */
struct kernel_parts kernel_parts_of(const struct graph *, const struct node *,
                                    const struct strings *feature_names, struct arena *);
/* Which of the node's params are such kernels. */
bool kernel_has_parts(const struct param *, const struct kernel_parts *);

#endif
