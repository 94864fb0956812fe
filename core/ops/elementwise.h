/* elementwise.h - the shape rule of ops on several inputs of one shape. */
#ifndef CORE_OPS_ELEMENTWISE_H
#define CORE_OPS_ELEMENTWISE_H

#include "core/graph/op.h"

/* The output has the shape that all inputs must have. */
err elementwise_infer(struct node *, struct arena *);

#endif
