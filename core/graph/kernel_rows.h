/* kernel_rows.h - which rows of a layer's kernels belong to which input: the columns and nodes that
 * stand side by side in what the layer reads.
 *
 * A run that begins with values of another model finds rows by these names, wherever they stood.
 */
#ifndef CORE_GRAPH_KERNEL_ROWS_H
#define CORE_GRAPH_KERNEL_ROWS_H

#include "core/graph/graph.h"

struct kernel_part {
    /* of a column, of a node, or of one of the cells that "features" are; a node without values
     * whose name was made up is described, as "reshape(price)": its name is its place */
    const char *name;
    int64_t rows;
};
struct kernel_parts {
    struct kernel_part *at;
    int count; /* 0: it is no such kernel, or has more than KERNEL_PARTS_MAX */
};
enum { KERNEL_PARTS_MAX = 1 << 16, KERNEL_PART_NAME_MAX = 256 };

/* A description does not say all of a node: several that are the same may be of different ones. */
bool kernel_part_is_described(const char *name);
/* One that would be too long says nothing. */
bool kernel_part_is_unknown(const char *name);

/* Of the kernels that a dense, a recurrent or a cross layer has for itself, and of what normalizes
 * channels. What is joined along the first axis of an example, or of a sequence along the last,
 * also by a stack, is taken apart, also behind flatten, reshape, dropout, activations, batch
 * normalization, sums, products and cross layers; what else nodes make is one part, and so is the
 * state of a recurrent layer, called as the layer is. feature_names: of the cells, in their order;
 * none: not known. */
struct kernel_parts kernel_parts_of(const struct graph *, const struct node *,
                                    const struct strings *feature_names, struct arena *);
int64_t kernel_parts_rows(const struct kernel_parts *); /* of all of them */
/* Which of the node's params are such kernels. */
bool kernel_has_parts(const struct node *, const struct param *, const struct kernel_parts *);
/* Its columns are those of the same inputs as its rows. */
bool kernel_is_square(const struct graph *, const struct param *);

#endif
