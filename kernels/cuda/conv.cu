/* conv.cu - convolution as a matrix product whose left operand is never written down.
 *
 *     forward       rows: output pixels, columns: output channels, terms: kernel cell, input
 * channel back data     rows: input pixels,  columns: input channels,  terms: kernel cell, output
 * channel back kernel   rows: kernel cell, input channel, columns: output channels, terms: output
 * pixels
 *
 * Kernels have few rows and columns and very many terms, so the terms are shared out in slices, as
 * many as the shape says, whose sums are added in order.
 */
#include <limits.h>
#include <stdlib.h>

#include "kernels/cuda/product.cuh"

/* Division of a number below 2^31 by one that stays the same: a product and a shift */
struct divisor {
    uint32_t by, multiplier, shift;
};

static struct divisor divisor_of(int64_t by)
{
    struct divisor d = {(uint32_t)by, 0, 0};
    while ((UINT64_C(1) << d.shift) < d.by) d.shift++;
    const uint64_t beyond = (UINT64_C(1) << d.shift) - d.by;
    d.multiplier = (uint32_t)((beyond << 32) / d.by + 1);
    return d;
}

ON_GPU int quotient(const struct divisor &d, int n)
{
    const uint32_t high = (uint32_t)(((uint64_t)(uint32_t)n * d.multiplier) >> 32);
    return (int)((high + (uint32_t)n) >> d.shift);
}

/* The shape with what is divided by. Counts fit an int, which is tested when it is opened. */
struct geometry {
    struct conv2d shape;
    struct divisor in_x, in_y, out_x, out_y, kernel_x, stride_x, stride_y, in_channels,
        out_channels;
};

/* A coordinate that lies in no image, and whose sum with another such still fits an int */
enum { NOWHERE = -(1 << 30) };

/* A pixel, or where a window begins or a cell of a kernel lies in it */
struct spot {
    int image, y, x;
};

/* n: counted through the batch */
ON_GPU struct spot spot_of(int n, const struct divisor &width, const struct divisor &height)
{
    const int row = quotient(width, n), image = quotient(height, row);
    return {image, row - image * (int)height.by, n - row * (int)width.by};
}

/* A cell of the kernel and a channel; cell_channel: as kernels lie in memory without the last axis
 */
struct cell {
    int y, x; /* offset in the image */
    int channel, index;
};

ON_GPU struct cell cell_of(const struct geometry &g, int n, const struct divisor &channels)
{
    const int index = quotient(channels, n), ky = quotient(g.kernel_x, index);
    const int kx = index - ky * (int)g.kernel_x.by;
    const struct window2d &w = g.shape.window;
    return {ky * (int)w.dilation_y, kx * (int)w.dilation_x, n - index * (int)channels.by, index};
}

/* x at a place that may lie beside the image */
ON_GPU float read_x(const struct geometry &g, const float *x, const struct spot &at, int channel)
{
    const struct window2d &w = g.shape.window;
    if ((unsigned)at.y >= (unsigned)w.in_y || (unsigned)at.x >= (unsigned)w.in_x) return 0.0f;
    const int64_t pixel = ((int64_t)at.image * w.in_y + at.y) * w.in_x + at.x;
    return x[pixel * g.shape.in_channels + channel];
}

struct forward_operands {
    enum { LEFT_ALONG_TERMS = 1, RIGHT_ALONG_TERMS = 0 };
    typedef struct spot Row; /* where the window of an output begins */
    struct Term {
        struct cell cell;
        int64_t index;
    };
    struct geometry g;
    const float *x, *kernel, *bias;
    float *y, *pre;
    bool is_relu;
    int64_t rows, columns, terms;

    __device__ Row row(int64_t i) const
    {
        const struct window2d &w = g.shape.window;
        if (i >= rows) return {0, NOWHERE, NOWHERE};
        const struct spot out = spot_of((int)i, g.out_x, g.out_y);
        return {out.image, out.y * (int)w.stride_y - (int)w.pad_top,
                out.x * (int)w.stride_x - (int)w.pad_left};
    }

    __device__ Term term(int64_t k) const
    {
        if (k >= terms) return {{NOWHERE, NOWHERE, 0, 0}, k};
        return {cell_of(g, (int)k, g.in_channels), k};
    }

    __device__ float left(const Row &r, const Term &t) const
    {
        return read_x(g, x, {r.image, r.y + t.cell.y, r.x + t.cell.x}, t.cell.channel);
    }

    __device__ float right(const Term &t, int64_t column) const
    {
        return kernel[t.index * columns + column];
    }

    __device__ void store(int64_t i, int64_t column, int64_t, float sum) const
    {
        const int64_t at = i * columns + column;
        const float biased = bias ? sum + bias[column] : sum;
        if (pre) pre[at] = biased;
        y[at] = is_relu ? element_activate(ACTIVATION_RELU, 0, biased) : biased;
    }
};

struct back_data_operands {
    enum { LEFT_ALONG_TERMS = 1, RIGHT_ALONG_TERMS = 1 };
    typedef struct spot Row;  /* an input pixel, from the corner of the padding */
    typedef struct cell Term; /* with an output channel */
    struct geometry g;
    const float *dy, *kernel;
    float *dx;
    bool add;
    int64_t rows, columns, terms;

    __device__ Row row(int64_t i) const
    {
        const struct window2d &w = g.shape.window;
        if (i >= rows) return {0, NOWHERE, NOWHERE};
        const struct spot in = spot_of((int)i, g.in_x, g.in_y);
        return {in.image, in.y + (int)w.pad_top, in.x + (int)w.pad_left};
    }

    __device__ Term term(int64_t k) const
    {
        if (k >= terms) return {-NOWHERE, -NOWHERE, 0, 0};
        return cell_of(g, (int)k, g.out_channels);
    }

    /* dy of the output whose window has this pixel under this cell; strides leave some without */
    __device__ float left(const Row &r, const Term &t) const
    {
        const struct window2d &w = g.shape.window;
        const int down = r.y - t.y, right = r.x - t.x;
        if (down < 0 || right < 0) return 0.0f;
        const int y = quotient(g.stride_y, down), x = quotient(g.stride_x, right);
        if (y * (int)w.stride_y != down || x * (int)w.stride_x != right) return 0.0f;
        if (y >= w.out_y || x >= w.out_x) return 0.0f;
        const int64_t pixel = ((int64_t)r.image * w.out_y + y) * w.out_x + x;
        return dy[pixel * g.shape.out_channels + t.channel];
    }

    __device__ float right(const Term &t, int64_t column) const
    {
        return kernel[(t.index * columns + column) * g.shape.out_channels + t.channel];
    }

    __device__ void store(int64_t i, int64_t column, int64_t, float sum) const
    {
        float *to = dx + i * columns + column;
        *to = add ? *to + sum : sum;
    }
};

struct back_kernel_operands {
    enum { LEFT_ALONG_TERMS = 0, RIGHT_ALONG_TERMS = 0 };
    typedef struct cell Row; /* with an input channel */
    struct Term {
        struct spot window; /* where that of an output begins */
        int64_t index;
    };
    struct geometry g;
    const float *dy, *x;
    float *partials; /* [slice, rows, columns] */
    int64_t rows, columns, terms;

    __device__ Row row(int64_t i) const
    {
        if (i >= rows) return {NOWHERE, NOWHERE, 0, 0};
        return cell_of(g, (int)i, g.in_channels);
    }

    __device__ Term term(int64_t k) const
    {
        const struct window2d &w = g.shape.window;
        if (k >= terms) return {{0, NOWHERE, NOWHERE}, k};
        const struct spot out = spot_of((int)k, g.out_x, g.out_y);
        return {{out.image, out.y * (int)w.stride_y - (int)w.pad_top,
                 out.x * (int)w.stride_x - (int)w.pad_left},
                k};
    }

    __device__ float left(const Row &r, const Term &t) const
    {
        const struct spot &from = t.window;
        return read_x(g, x, {from.image, from.y + r.y, from.x + r.x}, r.channel);
    }

    __device__ float right(const Term &t, int64_t column) const
    {
        return dy[t.index * columns + column];
    }

    __device__ void store(int64_t i, int64_t column, int64_t slice, float sum) const
    {
        partials[(slice * rows + i) * columns + column] = sum;
    }
};

/* Adds the slices up, the first first. */
struct slice_sums {
    const float *partials; /* [slices, count] */
    float *sums;
    int64_t slices, count;
    bool add;
    __device__ void operator()(int64_t i) const
    {
        float sum = partials[i];
        for (int64_t slice = 1; slice < slices; slice++) sum += partials[slice * count + i];
        sums[i] = add ? sums[i] + sum : sum;
    }
};

struct own_conv2d {
    struct geometry g;
    int64_t slices;
    float *partials; /* [slices, weights] of the device, owned */
};

/* --- making a plan --- */

/* Enough blocks for every multiprocessor of the largest GPU; slices of at least so many terms */
enum { BLOCKS_WANTED = 256, SLICE_TERMS_MIN = 256 };

static int64_t in_pixels(const struct conv2d *c)
{
    return c->window.batch * c->window.in_y * c->window.in_x;
}

static int64_t out_pixels(const struct conv2d *c)
{
    return c->window.batch * c->window.out_y * c->window.out_x;
}

/* Rows of the kernel as a matrix, whose columns are the output channels */
static int64_t kernel_rows(const struct conv2d *c)
{
    return c->window.kernel_y * c->window.kernel_x * c->in_channels;
}

/* Along one direction; no number is below what it may be. */
struct extent {
    int64_t in, out, kernel, stride, dilation, before, after;
};

static bool is_extent(const struct extent *e)
{
    if (e->in < 1 || e->out < 1 || e->kernel < 1 || e->stride < 1 || e->dilation < 1) return false;
    if (e->before < 0 || e->after < 0) return false;
    const int64_t span = (e->kernel - 1) * e->dilation + 1, padded = e->in + e->before + e->after;
    return padded < -NOWHERE && span <= padded && (padded - span) / e->stride + 1 == e->out;
}

static bool fits_int(double count)
{
    return count <= INT_MAX;
}

/* Through doubles, since the products may not fit an int64_t either */
static bool is_countable(const struct conv2d *c)
{
    const struct window2d *w = &c->window;
    const double cells = (double)w->kernel_y * (double)w->kernel_x;
    return c->in_channels > 0 && c->out_channels > 0 && w->batch >= 0 &&
           fits_int((double)w->batch * (double)w->in_y * (double)w->in_x) &&
           fits_int((double)w->batch * (double)w->out_y * (double)w->out_x) &&
           fits_int(cells * (double)c->in_channels) && fits_int(cells * (double)c->out_channels);
}

static err check(const struct conv2d *c)
{
    const struct window2d *w = &c->window;
    const struct extent y = {w->in_y,       w->out_y,   w->kernel_y,  w->stride_y,
                             w->dilation_y, w->pad_top, w->pad_bottom};
    const struct extent x = {w->in_x,       w->out_x,    w->kernel_x, w->stride_x,
                             w->dilation_x, w->pad_left, w->pad_right};
    if (!is_extent(&y) || !is_extent(&x))
        return fail(ERR_DEVICE, "a convolution of impossible extents");
    if (!is_countable(c))
        return fail(ERR_DEVICE, "a convolution of more than 2^31 pixels or cells");
    return OK;
}

static struct geometry geometry_of(const struct conv2d *c)
{
    const struct window2d *w = &c->window;
    struct geometry g = {*c,
                         divisor_of(w->in_x),
                         divisor_of(w->in_y),
                         divisor_of(w->out_x),
                         divisor_of(w->out_y),
                         divisor_of(w->kernel_x),
                         divisor_of(w->stride_x),
                         divisor_of(w->stride_y),
                         divisor_of(c->in_channels),
                         divisor_of(c->out_channels)};
    return g;
}

static int64_t slices_of(const struct conv2d *c)
{
    const int64_t wanted = BLOCKS_WANTED / tile_count(kernel_rows(c), c->out_channels);
    const int64_t most = out_pixels(c) / SLICE_TERMS_MIN;
    const int64_t slices = wanted < most ? wanted : most;
    return slices > 1 ? slices : 1;
}

static void close_plan(struct device *d, struct own_conv2d *p)
{
    if (!p) return;
    d->kernels->release(d, p->partials);
    free(p);
}

static size_t partials_bytes(const struct conv2d *c)
{
    return (size_t)(slices_of(c) * kernel_rows(c) * c->out_channels) * sizeof(float);
}

/* A shape that cannot be is refused when it is opened. */
static size_t plan_bytes(struct device *d, const struct conv2d *shape)
{
    return check(shape) ? 0 : partials_bytes(shape);
}

static err open_plan(struct device *d, const struct conv2d *shape, struct own_conv2d **ret)
{
    TRY(check(shape));
    struct own_conv2d *p = (struct own_conv2d *)calloc(1, sizeof *p);
    if (!p) return fail(ERR_MEMORY, "no memory for a convolution");
    p->g = geometry_of(shape);
    p->slices = slices_of(shape);
    void *partials;
    err e = d->kernels->allocate(d, partials_bytes(shape), &partials);
    if (e) {
        free(p);
        return e;
    }
    p->partials = (float *)partials;
    *ret = p;
    return OK;
}

/* --- running it --- */

/* Relu is part of the product; other functions follow it. */
static void forward(struct device *d, struct own_conv2d *p, float *y, const float *x,
                    const float *kernel, const float *bias, float *pre, enum activation kind,
                    float alpha)
{
    const struct conv2d *c = &p->g.shape;
    const bool is_fused = kind == ACTIVATION_RELU || kind == ACTIVATION_LINEAR;
    float *out = pre && !is_fused ? pre : y;
    forward_operands o = {p->g,
                          x,
                          kernel,
                          bias,
                          out,
                          is_fused ? pre : NULL,
                          kind == ACTIVATION_RELU,
                          out_pixels(c),
                          c->out_channels,
                          kernel_rows(c)};
    product(d, "conv2d_forward", o, 1);
    if (!is_fused) d->kernels->activate(d, y, out, kind, alpha, o.rows * o.columns);
}

static void back_data(struct device *d, struct own_conv2d *p, float *dx, const float *dy,
                      const float *kernel, bool add)
{
    const struct conv2d *c = &p->g.shape;
    const int64_t terms = c->window.kernel_y * c->window.kernel_x * c->out_channels;
    product(d, "conv2d_back_data",
            back_data_operands{p->g, dy, kernel, dx, add, in_pixels(c), c->in_channels, terms}, 1);
}

static void back_kernel(struct device *d, struct own_conv2d *p, float *dkernel, const float *dy,
                        const float *x, bool add)
{
    const struct conv2d *c = &p->g.shape;
    back_kernel_operands o = {p->g,         dy, x, p->partials, kernel_rows(c), c->out_channels,
                              out_pixels(c)};
    const int64_t count = o.rows * o.columns;
    product(d, "conv2d_back_kernel", o, p->slices);
    each(d, "conv2d_sum_slices", slice_sums{p->partials, dkernel, p->slices, count, add}, count);
}

const struct own_convolution cuda_own_convolution = {open_plan, plan_bytes, close_plan,
                                                     forward,   back_data,  back_kernel};
