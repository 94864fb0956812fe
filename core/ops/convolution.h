/* convolution.h - shared by ops that are a convolution of the kernels: its plan, forward and
 * backward. */
#ifndef CORE_OPS_CONVOLUTION_H
#define CORE_OPS_CONVOLUTION_H

#include "core/graph/op.h"

/* Describes the node's convolution, once its shapes are known. */
typedef err convolution_of_node(const struct node *, struct conv2d *ret);

/* Plans depend only on shapes: node->state holds the plan from prepare to release. */
size_t convolution_bytes(const struct node *, struct device *, convolution_of_node *of);
err convolution_prepare(struct node *, struct device *, convolution_of_node *of);
void convolution_release(struct node *, struct device *);

/* For a layer whose input and output are those of the plan. Bias and activation are part of the
 * convolution. Backward computes dkernel from dy and x and, unless x is data, dx from dy and
 * kernel. */
void convolution_forward(const struct node *, struct device *);
void convolution_backward(const struct node *, struct device *);

#endif
