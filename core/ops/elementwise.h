/* elementwise.h - shape rules of ops: several inputs of one shape, rows of columns. */
#ifndef CORE_OPS_ELEMENTWISE_H
#define CORE_OPS_ELEMENTWISE_H

#include "core/graph/op.h"

/* The output has the shape that all inputs must have. */
err elementwise_infer(struct node *, struct arena *);

/* All axes but the last are rows. ERR_INPUT: an example has no axis. */
err expect_columns(const struct shape *);

#endif
