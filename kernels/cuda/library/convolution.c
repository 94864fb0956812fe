/* convolution.c - chooses who computes a convolution, per direction: cuDNN if it was found and
 * supports the shape as required, else our own kernels. */
#include <stdlib.h>

#include "kernels/cuda/library/dnn.h"

struct conv2d_plan {
    struct dnn_convolution dnn;
    struct own_conv2d *own; /* NULL: cuDNN computes all directions */
    int64_t pixels;         /* of the output, in the whole batch */
};

/* Whether cuDNN leaves any direction to us. It leaves all directions of an impossible shape, which
 * our kernels then refuse. */
static bool needs_own(const struct dnn_convolution *dnn)
{
    for (int i = 0; i < DNN_DIRECTIONS; i++)
        if (!dnn->choices[i].convolution) return true;
    return false;
}

/* Asks cuDNN the same as opening will, without allocating memory. */
size_t cuda_conv2d_bytes(struct device *d, const struct conv2d *shape)
{
    struct dnn_convolution dnn;
    dnn_convolution_choose(d, shape, &dnn);
    const size_t own = needs_own(&dnn) ? cuda_own_convolution.bytes(d, shape) : 0;
    const size_t bytes = own + dnn_convolution_bytes(&dnn);
    dnn_convolution_close(d, &dnn);
    return bytes;
}

/* Accepts partly opened ones. */
void cuda_conv2d_close(struct device *d, struct conv2d_plan *p)
{
    if (!p) return;
    cuda_own_convolution.close(d, p->own);
    dnn_convolution_close(d, &p->dnn);
    free(p);
}

static err open_parts(struct device *d, const struct conv2d *shape, struct conv2d_plan *p)
{
    TRY(dnn_convolution_open(d, &p->dnn));
    return needs_own(&p->dnn) ? cuda_own_convolution.open(d, shape, &p->own) : OK;
}

err cuda_conv2d_open(struct device *d, const struct conv2d *shape, struct conv2d_plan **ret)
{
    struct conv2d_plan *p = calloc(1, sizeof *p);
    if (!p) return fail(ERR_MEMORY, "no memory for a convolution");
    dnn_convolution_choose(d, shape, &p->dnn);
    err e = open_parts(d, shape, p);
    if (e) {
        cuda_conv2d_close(d, p);
        return e;
    }
    p->pixels = window_outputs(&shape->window);
    *ret = p;
    return OK;
}

static bool is_by_dnn(const struct conv2d_plan *p, enum dnn_direction direction)
{
    return p->dnn.choices[direction].convolution != NULL;
}

/* cuDNN could add the bias and apply relu itself, but does not specify the result for NaN. */
void cuda_conv2d_forward(struct device *d, struct conv2d_plan *p, float *y, const float *x,
                         const float *kernel, const float *bias, float *pre, enum activation kind,
                         float alpha)
{
    if (!is_by_dnn(p, DNN_FORWARD)) {
        cuda_own_convolution.forward(d, p->own, y, x, kernel, bias, pre, kind, alpha);
        return;
    }
    dnn_forward(d, &p->dnn, y, x, kernel);
    if (bias || pre || kind != ACTIVATION_LINEAR)
        d->kernels->bias_activate(d, y, bias, pre, kind, alpha, p->pixels, p->dnn.out_channels);
}

void cuda_conv2d_back_data(struct device *d, struct conv2d_plan *p, float *dx, const float *dy,
                           const float *kernel, bool add)
{
    if (is_by_dnn(p, DNN_BACK_DATA))
        dnn_back_data(d, &p->dnn, dx, dy, kernel, add);
    else
        cuda_own_convolution.back_data(d, p->own, dx, dy, kernel, add);
}

void cuda_conv2d_back_kernel(struct device *d, struct conv2d_plan *p, float *dkernel,
                             const float *dy, const float *x, bool add)
{
    if (is_by_dnn(p, DNN_BACK_KERNEL))
        dnn_back_kernel(d, &p->dnn, dkernel, dy, x, add);
    else
        cuda_own_convolution.back_kernel(d, p->own, dkernel, dy, x, add);
}
