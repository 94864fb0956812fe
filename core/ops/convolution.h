/* convolution.h - a node that is a convolution of the kernels': its plan, and both directions. */
#ifndef CORE_OPS_CONVOLUTION_H
#define CORE_OPS_CONVOLUTION_H

#include "core/graph/op.h"

/* What a node convolves with what, once its shapes are known. */
typedef err convolution_of_node(const struct node *, struct conv2d *ret);

/* The library's primitives depend on shapes only: the plan is node->state from prepare to release.
 */
size_t convolution_bytes(const struct node *, struct device *, convolution_of_node *of);
err convolution_prepare(struct node *, struct device *, convolution_of_node *of);
void convolution_release(struct node *, struct device *);

/* Of a layer whose input and output are those of the plan. Bias and activation are part of the
 * convolution; dkernel comes from dy and x, dx from dy and kernel, but not for the data themselves.
 */
void convolution_forward(const struct node *, struct device *);
void convolution_backward(const struct node *, struct device *);

#endif
