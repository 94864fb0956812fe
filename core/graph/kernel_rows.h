/* kernel_rows.h - which rows of a layer's kernel belong to which input: the columns and nodes that
 * are concatenated in what the layer reads.
 *
 * A warm start from another model finds the rows of a kernel by these names, wherever they were in
 * it.
 */
#ifndef CORE_GRAPH_KERNEL_ROWS_H
#define CORE_GRAPH_KERNEL_ROWS_H

#include "core/graph/graph.h"

struct kernel_part {
    /* of a column, of a node, or of a column of the data file within "features"; a node without
     * variables and without a name in the spec is described by its op and inputs instead:
     * "reshape(price)" */
    const char *name;
    int64_t rows;
};
struct kernel_parts {
    struct kernel_part *at;
    int count; /* 0: not such a kernel, or more than KERNEL_PARTS_MAX */
};
enum { KERNEL_PARTS_MAX = 1 << 16, KERNEL_PART_NAME_MAX = 256 };

/* Whether the name is such a description. It omits the nodes' attributes: several equal ones may be
 * of different nodes. */
bool kernel_part_is_described(const char *name);
/* Whether it is a description that was cut off for its length, which identifies nothing. */
bool kernel_part_is_unknown(const char *name);

/* For dense, recurrent and cross layers with variables of their own, and for normalization layers.
 * Splits what is concatenated along the first axis of an example (for a sequence: along its last
 * axis), also by stack, and looks for that through flatten, reshape, dropout, activations, batch
 * normalization, sums, products and cross layers. Any other node's output is one part, as is the
 * state of a recurrent layer, which has the layer's name. feature_names: those of the columns in
 * "features", in order; count 0: unknown. */
struct kernel_parts kernel_parts_of(const struct graph *, const struct node *,
                                    const struct strings *feature_names, struct arena *);
int64_t kernel_parts_rows(const struct kernel_parts *); /* sum over all parts */
/* Whether the rows of this param of the node are split into these parts. */
bool kernel_has_parts(const struct node *, const struct param *, const struct kernel_parts *);
/* Whether its columns belong to the same inputs as its rows. */
bool kernel_is_square(const struct graph *, const struct param *);

#endif
