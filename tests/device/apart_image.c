/* apart_image.c - the wall around convolution and pooling. */
#include "tests/device/apart_inside.h"

/* ---- convolution ---- */

/* As if a convolution took a number for each pixel of its output */
static size_t wall_conv2d_bytes(struct device *d, const struct conv2d *shape)
{
    const struct window2d *w = &shape->window;
    return (size_t)(w->batch * w->out_y * w->out_x) * sizeof(float);
}

static err wall_conv2d_open(struct device *d, const struct conv2d *shape, struct conv2d_plan **ret)
{
    struct apart *a = d->state;
    void *workspace;
    TRY(d->kernels->allocate(d, wall_conv2d_bytes(d, shape), &workspace));
    struct device *inner = apart_enter(d, "conv2d_open");
    const err e = inner->kernels->conv2d_open(inner, shape, ret);
    apart_leave(d);
    for (int i = 0; i < PLANS_MAX && !e; i++) {
        if (a->plans[i].plan) continue;
        a->plans[i] = (struct known_plan){*ret, *shape, workspace};
        return OK;
    }
    d->kernels->release(d, workspace);
    return e ? e : fail(ERR_MEMORY, "more than %d convolutions", PLANS_MAX);
}

static struct known_plan *known(struct device *d, const struct conv2d_plan *plan)
{
    struct apart *a = d->state;
    for (int i = 0; i < PLANS_MAX; i++)
        if (a->plans[i].plan == plan) return &a->plans[i];
    return NULL;
}

static void wall_conv2d_close(struct device *d, struct conv2d_plan *plan)
{
    struct known_plan *found = known(d, plan);
    struct device *inner = apart_enter(d, "conv2d_close");
    inner->kernels->conv2d_close(inner, plan);
    apart_leave(d);
    if (found) d->kernels->release(d, found->workspace);
    if (found) *found = (struct known_plan){0};
}

/* x [batch, y, x, in], y [batch, y, x, out], kernel [ky, kx, in, out] */
static void has_images(struct device *d, const struct conv2d_plan *plan, const float *x,
                       const float *y, const float *kernel)
{
    const struct conv2d *c = &known(d, plan)->shape;
    const struct window2d *w = &c->window;
    apart_has(d, x, w->batch * w->in_y * w->in_x * c->in_channels);
    apart_has(d, y, w->batch * w->out_y * w->out_x * c->out_channels);
    apart_has(d, kernel, w->kernel_y * w->kernel_x * c->in_channels * c->out_channels);
}

static int64_t results(struct device *d, const struct conv2d_plan *plan)
{
    const struct conv2d *c = &known(d, plan)->shape;
    return c->window.batch * c->window.out_y * c->window.out_x * c->out_channels;
}

static void wall_conv2d_forward(struct device *d, struct conv2d_plan *plan, float *y,
                                const float *x, const float *kernel, const float *bias, float *pre,
                                enum activation activation, float alpha)
{
    struct device *inner = apart_enter(d, "conv2d_forward");
    has_images(d, plan, x, y, kernel);
    apart_maybe(d, bias, known(d, plan)->shape.out_channels);
    apart_maybe(d, pre, results(d, plan));
    inner->kernels->conv2d_forward(inner, plan, y, x, kernel, bias, pre, activation, alpha);
    apart_leave(d);
}

static void wall_conv2d_back_data(struct device *d, struct conv2d_plan *plan, float *dx,
                                  const float *dy, const float *kernel, bool add)
{
    struct device *inner = apart_enter(d, "conv2d_back_data");
    has_images(d, plan, dx, dy, kernel);
    inner->kernels->conv2d_back_data(inner, plan, dx, dy, kernel, add);
    apart_leave(d);
}

static void wall_conv2d_back_kernel(struct device *d, struct conv2d_plan *plan, float *dkernel,
                                    const float *dy, const float *x, bool add)
{
    struct device *inner = apart_enter(d, "conv2d_back_kernel");
    has_images(d, plan, x, dy, dkernel);
    inner->kernels->conv2d_back_kernel(inner, plan, dkernel, dy, x, add);
    apart_leave(d);
}

/* ---- pooling ---- */

static void has_pool(struct device *d, const struct pool2d *p, const float *x, const float *y)
{
    const struct window2d *w = &p->window;
    apart_is_host(d, p, sizeof *p);
    apart_has(d, x, w->batch * w->in_y * w->in_x * p->channels);
    apart_has(d, y, w->batch * w->out_y * w->out_x * p->channels);
}

static void wall_max_pool(struct device *d, const struct pool2d *p, float *y, const float *x)
{
    struct device *inner = apart_enter(d, "max_pool");
    has_pool(d, p, x, y);
    inner->kernels->max_pool(inner, p, y, x);
    apart_leave(d);
}

static void wall_avg_pool(struct device *d, const struct pool2d *p, float *y, const float *x)
{
    struct device *inner = apart_enter(d, "avg_pool");
    has_pool(d, p, x, y);
    inner->kernels->avg_pool(inner, p, y, x);
    apart_leave(d);
}

static void wall_max_pool_back(struct device *d, const struct pool2d *p, float *dx, const float *dy,
                               const float *y, const float *x, bool add)
{
    struct device *inner = apart_enter(d, "max_pool_back");
    has_pool(d, p, dx, dy);
    has_pool(d, p, x, y);
    inner->kernels->max_pool_back(inner, p, dx, dy, y, x, add);
    apart_leave(d);
}

static void wall_avg_pool_back(struct device *d, const struct pool2d *p, float *dx, const float *dy,
                               bool add)
{
    struct device *inner = apart_enter(d, "avg_pool_back");
    has_pool(d, p, dx, dy);
    inner->kernels->avg_pool_back(inner, p, dx, dy, add);
    apart_leave(d);
}

void apart_fill_image(struct kernels *table)
{
    table->conv2d_open = wall_conv2d_open;
    table->conv2d_bytes = wall_conv2d_bytes;
    table->conv2d_close = wall_conv2d_close;
    table->conv2d_forward = wall_conv2d_forward;
    table->conv2d_back_data = wall_conv2d_back_data;
    table->conv2d_back_kernel = wall_conv2d_back_kernel;
    table->max_pool = wall_max_pool;
    table->avg_pool = wall_avg_pool;
    table->max_pool_back = wall_max_pool_back;
    table->avg_pool_back = wall_avg_pool_back;
}
