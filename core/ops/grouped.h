/* grouped.h - convolution in groups: channel g in + i of an image goes into channels g out ..
 * g out + out - 1 of the result alone, by the kernel [ky, kx, in, groups out]. With in 1 it is
 * depthwise, and the kernel may as well be called [ky, kx, groups, out].
 *
 * All of it is folds (kernels/kernels.h) over an image that has its zeros around it.
 */
#ifndef CORE_OPS_GROUPED_H
#define CORE_OPS_GROUPED_H

#include "core/graph/op.h"

struct grouped {
    struct window2d window;
    int64_t groups, in, out; /* channels of a group */
    float *padded;           /* grouped_room(); what forward leaves there is read by backward */
};

struct tensor grouped_room(const struct window2d *, int64_t channels);

void grouped_forward(struct device *, const struct grouped *, float *y, const float *x,
                     const float *kernel);
/* After forward, and in this order, if both */
void grouped_back_kernel(struct device *, const struct grouped *, float *dkernel, const float *dy,
                         const float *x, bool add);
void grouped_back_data(struct device *, const struct grouped *, float *dx, const float *dy,
                       const float *kernel, bool add);

#endif
