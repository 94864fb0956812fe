/* elementwise.h - shape rules of ops: several inputs of one shape; rows and columns. */
#ifndef CORE_OPS_ELEMENTWISE_H
#define CORE_OPS_ELEMENTWISE_H

#include "core/graph/op.h"

/* All inputs must have one shape, which the output gets. ERR_INPUT */
err elementwise_infer(struct node *, struct arena *);

/* The last axis is columns, all others are rows. ERR_INPUT: an example has no axis. */
err expect_columns(const struct shape *);

#endif
