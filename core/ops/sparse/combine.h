/* combine.h - what ops share that read ids: tables of rows, of which each example names some. */
#ifndef CORE_OPS_SPARSE_COMBINE_H
#define CORE_OPS_SPARSE_COMBINE_H

#include "core/graph/op.h"

/* Declares the table [buckets of the input, width], called so; or takes that of the node that
 * shares its own, which must be such a one. */
err combine_add_table(struct node *, struct arena *, int input, const struct param *,
                      int64_t width);

/* Input i, ids [batch, ...], and table i: y [batch, width] (+)= its rows; the table's gradient. */
void combine_forward(const struct node *, struct device *, int i, enum combiner, bool add);
void combine_backward(const struct node *, struct device *, int i, enum combiner);

#endif
