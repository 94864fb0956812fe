/* conv.cu - convolution as a matrix product whose left operand is never written down.
 *
 *                rows             columns           terms
 *     forward    output pixel     output channel    kernel cell, input channel
 *     data       input pixel      input channel     kernel cell, output channel
 *     kernel     kernel cell,     output channel    output pixel
 *                input channel
 *
 * Channels are neighbours in memory, so what says where a number lies is found out once for four.
 * A kernel has few rows and columns and very many terms: those of any product that has too few
 * tiles are shared out in slices (product.cuh).
 */
#include <stdlib.h>

#include "kernels/cuda/product/matrix.cuh"

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

/* A cell of the kernel, as far from where a window begins, and a channel */
struct kernel_cell {
    int y, x, channel;
};

ON_GPU struct kernel_cell cell_of(const struct geometry &g, int n, const struct divisor &channels)
{
    const int index = quotient(channels, n), ky = quotient(g.kernel_x, index);
    const int kx = index - ky * (int)g.kernel_x.by;
    const struct window2d &w = g.shape.window;
    return {ky * (int)w.dilation_y, kx * (int)w.dilation_x, n - index * (int)channels.by};
}

/* Where a window begins, or how far from there a number under it lies: both together say where it
 * is. Either alone may lie beside the image, but the pixel of both is right modulo 2^32, which no
 * batch has. */
struct reach {
    uint32_t pixel; /* counted through the batch */
    int y, x, channel;
};

/* The numbers of images under windows: of [window, cell and channel], or turned */
template <bool IS_ALONG_TERMS> struct windows {
    enum { ALONG_TERMS = IS_ALONG_TERMS };
    typedef struct reach Place, Term;
    struct geometry g;
    const float *x;
    int window_count, cell_count;

    /* n: as outputs are counted */
    __device__ struct reach window(int n) const
    {
        const struct window2d &w = g.shape.window;
        const struct spot out = spot_of(n, g.out_x, g.out_y);
        const int first_y = out.y * (int)w.stride_y - (int)w.pad_top;
        const int first_x = out.x * (int)w.stride_x - (int)w.pad_left;
        const uint32_t row = out.image * g.in_y.by + first_y;
        return {row * g.in_x.by + first_x, first_y, first_x, 0};
    }

    /* n: as kernels lie in memory without the last axis */
    __device__ struct reach cell(int n) const
    {
        const struct kernel_cell c = cell_of(g, n, g.in_channels);
        return {c.y * g.in_x.by + c.x, c.y, c.x, c.channel};
    }

    __device__ Place place(int i) const
    {
        const int count = ALONG_TERMS ? window_count : cell_count, n = i < count ? i : 0;
        return ALONG_TERMS ? window(n) : cell(n);
    }

    __device__ Term term(int k) const
    {
        struct reach reach = ALONG_TERMS ? cell(k) : window(k);
        reach.y = k < (ALONG_TERMS ? cell_count : window_count) ? reach.y : NOWHERE;
        return reach;
    }

    __device__ struct source at(const Place &a, const Term &b) const
    {
        const bool is_inside =
            (uint32_t)(a.y + b.y) < g.in_y.by && (uint32_t)(a.x + b.x) < g.in_x.by;
        const uint64_t pixel = a.pixel + b.pixel;
        const uint64_t number = pixel * g.in_channels.by + (a.channel + b.channel);
        return {x + (is_inside ? number : 0), is_inside};
    }
};

/* Gradients of the outputs whose windows have a pixel under a cell: [pixel, cell and channel] */
struct outputs_above {
    enum { ALONG_TERMS = 1 };
    typedef struct spot Place; /* a pixel, from the corner of the padding */
    typedef struct kernel_cell Term;
    struct geometry g;
    const float *dy;
    int pixels, cell_count;

    __device__ Place place(int i) const
    {
        const struct window2d &w = g.shape.window;
        const struct spot in = spot_of(i < pixels ? i : 0, g.in_x, g.in_y);
        return {in.image, in.y + (int)w.pad_top, in.x + (int)w.pad_left};
    }

    __device__ Term term(int k) const
    {
        struct kernel_cell cell = cell_of(g, k, g.out_channels);
        cell.y = k < cell_count ? cell.y : -NOWHERE;
        return cell;
    }

    /* Strides leave some pixels without an output. */
    __device__ struct source at(const Place &p, const Term &t) const
    {
        const int down = p.y - t.y, right = p.x - t.x;
        const uint32_t y = quotient(g.stride_y, down), x = quotient(g.stride_x, right);
        const uint32_t row = p.image * g.out_y.by + y;
        const uint64_t pixel = row * g.out_x.by + x;
        const bool is_output = (down | right) >= 0 && y * g.stride_y.by == (uint32_t)down &&
                               x * g.stride_x.by == (uint32_t)right && y < g.out_y.by &&
                               x < g.out_x.by;
        const uint64_t number = pixel * g.out_channels.by + t.channel;
        return {dy + (is_output ? number : 0), is_output};
    }
};

/* The kernel with its last two axes turned: [input channel, cell and output channel] */
struct turned_kernel {
    enum { ALONG_TERMS = 1 };
    typedef const float *Place; /* the first number of an input channel */
    struct Term {
        int64_t offset; /* floats from there */
        bool is_there;
    };
    const float *kernel;
    struct divisor out_channels;
    int in_channels, cell_count;

    __device__ Place place(int column) const
    {
        return kernel + (column < in_channels ? (int64_t)column * out_channels.by : 0);
    }

    __device__ Term term(int k) const
    {
        const bool is_there = k < cell_count;
        const uint32_t n = is_there ? k : 0, index = quotient(out_channels, n);
        const int64_t row = index * (uint32_t)in_channels;
        return {row * out_channels.by + (n - index * out_channels.by), is_there};
    }

    __device__ struct source at(Place first, const Term &k) const
    {
        return {first + k.offset, k.is_there};
    }
};

struct forward_operands {
    enum { ROUNDS = true };
    typedef windows<true> Left;
    typedef matrix<false> Right;
    Left left;
    Right right;
    int rows, columns, terms;
    const float *bias;
    float *y, *pre;
    bool is_relu;

    forward_operands plain(float *sums) const
    {
        return {left, right, rows, columns, terms, NULL, sums, NULL, false};
    }

    template <int COUNT> __device__ void store(int row, int column, const float *sums) const
    {
        const int64_t at = (int64_t)row * columns + column;
        alignas(16) float biased[COUNT], result[COUNT];
#pragma unroll
        for (int i = 0; i < COUNT; i++) {
            biased[i] = bias ? sums[i] + bias[column + i] : sums[i];
            result[i] = is_relu ? element_activate(ACTIVATION_RELU, 0, biased[i]) : biased[i];
        }
        if (pre) move_together<COUNT>(pre + at, biased);
        move_together<COUNT>(y + at, result);
    }
};

/* Both gradients: a matrix that is overwritten or added to */
template <typename LeftSide, typename RightSide> struct gradient_operands {
    enum { ROUNDS = true };
    typedef LeftSide Left;
    typedef RightSide Right;
    Left left;
    Right right;
    int rows, columns, terms;
    float *gradient;
    bool adds;

    gradient_operands plain(float *sums) const
    {
        return {left, right, rows, columns, terms, sums, false};
    }

    template <int COUNT> __device__ void store(int row, int column, const float *sums) const
    {
        store_together<COUNT>(gradient + (int64_t)row * columns + column, sums, adds);
    }
};

struct own_conv2d {
    struct geometry g;
    float *sums; /* of the slices of any of its products, of the device, owned; NULL: no slices */
};

/* --- making a plan --- */

/* Rows of the kernel as a matrix, whose columns are the output channels */
static int64_t kernel_rows(const struct conv2d *c)
{
    return c->window.kernel_y * c->window.kernel_x * c->in_channels;
}

/* The same of the turned one, whose rows are the input channels */
static int64_t kernel_columns(const struct conv2d *c)
{
    return c->window.kernel_y * c->window.kernel_x * c->out_channels;
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

static bool fits_product(double count)
{
    return count <= PRODUCT_SIZE_MAX;
}

/* Through doubles, since the products may not fit an int64_t either */
static bool is_countable(const struct conv2d *c)
{
    const struct window2d *w = &c->window;
    const double cells = (double)w->kernel_y * (double)w->kernel_x;
    return c->in_channels > 0 && c->out_channels > 0 && w->batch >= 0 &&
           fits_product((double)w->batch * (double)w->in_y * (double)w->in_x) &&
           fits_product((double)w->batch * (double)w->out_y * (double)w->out_x) &&
           fits_product(cells * (double)c->in_channels) &&
           fits_product(cells * (double)c->out_channels);
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

static void close_plan(struct device *d, struct own_conv2d *p)
{
    if (!p) return;
    if (p->sums) d->kernels->release(d, p->sums);
    free(p);
}

/* What the slices of its products take, which follow each other: as much as the largest */
static size_t sums_bytes(const struct conv2d *c)
{
    const int64_t inputs = window_inputs(&c->window), outputs = window_outputs(&c->window);
    const int64_t forward = product_sums(outputs, c->out_channels, kernel_rows(c));
    const int64_t data = product_sums(inputs, c->in_channels, kernel_columns(c));
    const int64_t kernel = product_sums(kernel_rows(c), c->out_channels, outputs);
    const int64_t larger = data > kernel ? data : kernel;
    return (size_t)(forward > larger ? forward : larger) * sizeof(float);
}

/* A shape that cannot be is refused when it is opened. */
static size_t plan_bytes(struct device *d, const struct conv2d *shape)
{
    return check(shape) ? 0 : sums_bytes(shape);
}

static err open_plan(struct device *d, const struct conv2d *shape, struct own_conv2d **ret)
{
    TRY(check(shape));
    struct own_conv2d *p = (struct own_conv2d *)calloc(1, sizeof *p);
    if (!p) return fail(ERR_MEMORY, "no memory for a convolution");
    p->g = geometry_of(shape);
    void *sums = NULL;
    const size_t bytes = sums_bytes(shape);
    const err e = bytes > 0 ? d->kernels->allocate(d, bytes, &sums) : OK;
    if (e) {
        free(p);
        return e;
    }
    p->sums = (float *)sums;
    *ret = p;
    return OK;
}

/* --- running it --- */

/* Channels stand together in memory: the numbers of both sides come and go in quads of them. */
template <typename Operands>
static void run(struct device *d, const struct own_conv2d *p, const char *name, const Operands &o,
                bool is_wide, bool stores_quads)
{
    const int64_t slices = product_slices(o.rows, o.columns, o.terms);
    const bool sums_quads = has_quads(p->sums, o.columns);
    product(d, {name, is_wide, slices > 1 ? sums_quads : stores_quads, slices, p->sums}, o);
}

/* Relu is part of the product; other functions follow it. */
static void forward(struct device *d, struct own_conv2d *p, float *y, const float *x,
                    const float *kernel, const float *bias, float *pre, enum activation kind,
                    float alpha)
{
    const struct conv2d *c = &p->g.shape;
    const int rows = (int)window_outputs(&c->window), columns = (int)c->out_channels;
    const int terms = (int)kernel_rows(c);
    const bool is_fused = kind == ACTIVATION_RELU || kind == ACTIVATION_LINEAR;
    float *out = pre && !is_fused ? pre : y, *before = is_fused ? pre : NULL;
    const forward_operands o = {
        {p->g, x, rows, terms}, {kernel, columns, terms}, rows, columns, terms, bias, out, before,
        kind == ACTIVATION_RELU};
    run(d, p, "conv2d_forward", o, has_quads(x, c->in_channels) && has_quads(kernel, columns),
        has_quads(out, columns) && has_quads(before, columns));
    if (!is_fused) d->kernels->activate(d, y, out, kind, alpha, (int64_t)rows * columns);
}

static void back_data(struct device *d, struct own_conv2d *p, float *dx, const float *dy,
                      const float *kernel, bool add)
{
    const struct conv2d *c = &p->g.shape;
    const int rows = (int)window_inputs(&c->window), columns = (int)c->in_channels;
    const int terms = (int)kernel_columns(c);
    const gradient_operands<outputs_above, turned_kernel> o = {
        {p->g, dy, rows, terms},
        {kernel, p->g.out_channels, columns, terms},
        rows,
        columns,
        terms,
        dx,
        add};
    run(d, p, "conv2d_back_data", o,
        has_quads(dy, c->out_channels) && has_quads(kernel, c->out_channels),
        has_quads(dx, columns));
}

static void back_kernel(struct device *d, struct own_conv2d *p, float *dkernel, const float *dy,
                        const float *x, bool add)
{
    const struct conv2d *c = &p->g.shape;
    const int rows = (int)kernel_rows(c), columns = (int)c->out_channels;
    const int terms = (int)window_outputs(&c->window);
    const gradient_operands<windows<false>, matrix<false>> o = {
        {p->g, x, terms, rows}, {dy, columns, terms}, rows, columns, terms, dkernel, add};
    run(d, p, "conv2d_back_kernel", o, has_quads(x, c->in_channels) && has_quads(dy, columns),
        has_quads(dkernel, columns));
}

const struct own_convolution cuda_own_convolution = {open_plan, plan_bytes, close_plan,
                                                     forward,   back_data,  back_kernel};
