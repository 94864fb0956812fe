/* apart_vector.c - the wall around kernels on plain vectors. */
#include "tests/device/apart_inside.h"

static void wall_fill(struct device *d, float *y, float value, int64_t n)
{
    struct device *inner = apart_enter(d, "fill");
    apart_has(d, y, n);
    inner->kernels->fill(inner, y, value, n);
    apart_leave(d);
}

static void wall_copy(struct device *d, float *y, const float *x, int64_t n)
{
    struct device *inner = apart_enter(d, "copy");
    apart_has(d, y, n);
    apart_has(d, x, n);
    inner->kernels->copy(inner, y, x, n);
    apart_leave(d);
}

static void wall_axpy(struct device *d, float *y, float a, const float *x, int64_t n)
{
    struct device *inner = apart_enter(d, "axpy");
    apart_has(d, y, n);
    apart_has(d, x, n);
    inner->kernels->axpy(inner, y, a, x, n);
    apart_leave(d);
}

static void wall_scale(struct device *d, float *y, float a, int64_t n)
{
    struct device *inner = apart_enter(d, "scale");
    apart_has(d, y, n);
    inner->kernels->scale(inner, y, a, n);
    apart_leave(d);
}

static void wall_add(struct device *d, float *y, const float *a, const float *b, int64_t n)
{
    struct device *inner = apart_enter(d, "add");
    apart_has(d, y, n);
    apart_has(d, a, n);
    apart_has(d, b, n);
    inner->kernels->add(inner, y, a, b, n);
    apart_leave(d);
}

static void wall_multiply(struct device *d, float *y, const float *a, const float *b, int64_t n)
{
    struct device *inner = apart_enter(d, "multiply");
    apart_has(d, y, n);
    apart_has(d, a, n);
    apart_has(d, b, n);
    inner->kernels->multiply(inner, y, a, b, n);
    apart_leave(d);
}

static void wall_multiply_add(struct device *d, float *y, const float *a, const float *b, int64_t n)
{
    struct device *inner = apart_enter(d, "multiply_add");
    apart_has(d, y, n);
    apart_has(d, a, n);
    apart_has(d, b, n);
    inner->kernels->multiply_add(inner, y, a, b, n);
    apart_leave(d);
}

static void wall_clamp(struct device *d, float *y, float low, float high, int64_t n)
{
    struct device *inner = apart_enter(d, "clamp");
    apart_has(d, y, n);
    inner->kernels->clamp(inner, y, low, high, n);
    apart_leave(d);
}

static void wall_regularize(struct device *d, float *gradient, const float *w, float l1, float l2,
                            int64_t n)
{
    struct device *inner = apart_enter(d, "regularize");
    apart_has(d, gradient, n);
    apart_has(d, w, n);
    inner->kernels->regularize(inner, gradient, w, l1, l2, n);
    apart_leave(d);
}

/* The last row has no gap behind it. */
static int64_t span(int64_t rows, int64_t columns, int64_t stride)
{
    return rows > 0 ? (rows - 1) * stride + columns : 0;
}

static void has_strided(struct device *d, const struct strided *s)
{
    apart_is_host(d, s, sizeof *s);
    apart_has(d, s->dst, span(s->rows, s->columns, s->dst_stride));
    apart_has(d, s->src, span(s->rows, s->columns, s->src_stride));
}

static void wall_copy_strided(struct device *d, const struct strided *s)
{
    struct device *inner = apart_enter(d, "copy_strided");
    has_strided(d, s);
    inner->kernels->copy_strided(inner, s);
    apart_leave(d);
}

static void wall_add_strided(struct device *d, const struct strided *s)
{
    struct device *inner = apart_enter(d, "add_strided");
    has_strided(d, s);
    inner->kernels->add_strided(inner, s);
    apart_leave(d);
}

static double wall_sum(struct device *d, const float *x, int64_t n)
{
    struct device *inner = apart_enter(d, "sum");
    apart_has(d, x, n);
    const double result = inner->kernels->sum(inner, x, n);
    apart_leave(d);
    return result;
}

static void wall_sums(struct device *d, const struct summed *of, int count, double *ret_sums)
{
    struct device *inner = apart_enter(d, "sums");
    for (int i = 0; i < count; i++) apart_has(d, of[i].x, of[i].n);
    inner->kernels->sums(inner, of, count, ret_sums);
    apart_leave(d);
}

static bool wall_all_finite(struct device *d, const float *x, int64_t n)
{
    struct device *inner = apart_enter(d, "all_finite");
    apart_has(d, x, n);
    const bool result = inner->kernels->all_finite(inner, x, n);
    apart_leave(d);
    return result;
}

/* The list itself is the host's. */
static void has_sources(struct device *d, const float *const sources[], int count, int64_t n)
{
    apart_is_host(d, sources, (size_t)count * sizeof *sources);
    for (int i = 0; i < count; i++) apart_has(d, sources[i], n);
}

static void wall_sum_ordered(struct device *d, float *y, const float *const sources[], int count,
                             float scale, int64_t n)
{
    struct device *inner = apart_enter(d, "sum_ordered");
    apart_has(d, y, n);
    has_sources(d, sources, count, n);
    inner->kernels->sum_ordered(inner, y, sources, count, scale, n);
    apart_leave(d);
}

void apart_fill_vector(struct kernels *table)
{
    table->fill = wall_fill;
    table->copy = wall_copy;
    table->axpy = wall_axpy;
    table->scale = wall_scale;
    table->add = wall_add;
    table->multiply = wall_multiply;
    table->multiply_add = wall_multiply_add;
    table->clamp = wall_clamp;
    table->regularize = wall_regularize;
    table->copy_strided = wall_copy_strided;
    table->add_strided = wall_add_strided;
    table->sum = wall_sum;
    table->sums = wall_sums;
    table->all_finite = wall_all_finite;
    table->sum_ordered = wall_sum_ordered;
}
