/* grouped.h - convolution in groups: channel g in + i of an image contributes only to channels g
 * out .. g out + out - 1 of the result, through the kernel [ky, kx, in, groups out]. With in 1 it
 * is a depthwise convolution, and the kernel is also [ky, kx, groups, out].
 *
 * All work is done by folds (kernels/kernels.h) over a zero-padded copy of the image.
 */
#ifndef CORE_OPS_GROUPED_H
#define CORE_OPS_GROUPED_H

#include "core/graph/op.h"

struct grouped {
    struct window2d window;
    int64_t groups, in, out; /* in, out: channels per group */
    float *padded;           /* memory of grouped_room(); forward fills it, backward reads it */
};

struct tensor grouped_room(const struct window2d *, int64_t channels);

void grouped_forward(struct device *, const struct grouped *, float *y, const float *x,
                     const float *kernel);
/* After forward; if both are called, in this order */
void grouped_back_kernel(struct device *, const struct grouped *, float *dkernel, const float *dy,
                         const float *x, bool add);
void grouped_back_data(struct device *, const struct grouped *, float *dx, const float *dy,
                       const float *kernel, bool add);

#endif
