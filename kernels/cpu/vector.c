/* vector.c - kernels on plain vectors of floats.
 *
 * Each is a pair: a loop over a range, which spread() calls, and the kernel itself, which fills in
 * a struct vector_arguments. `omp simd` promises that vectors do not overlap except element by
 * element (y may be a or b), which the compiler would otherwise test at run time.
 */
#include "kernels/cpu/isa.h"
#include "kernels/elements.h"

/* The arguments of all of them: a result, up to two operands, up to two numbers */
struct vector_arguments {
    float *y;
    const float *a, *b;
    float s, t;
};

static void fill_range(const void *arguments, int64_t begin, int64_t end)
{
    const struct vector_arguments v = *(const struct vector_arguments *)arguments;
    for (int64_t i = begin; i < end; i++) v.y[i] = v.s;
}

void ISA(fill)(struct device *d, float *y, float value, int64_t n)
{
    spread(d, n, SPREAD_GRAIN, fill_range, &(struct vector_arguments){.y = y, .s = value});
}

static void copy_range(const void *arguments, int64_t begin, int64_t end)
{
    const struct vector_arguments v = *(const struct vector_arguments *)arguments;
    memmove(v.y + begin, v.a + begin, (size_t)(end - begin) * sizeof(float));
}

void ISA(copy)(struct device *d, float *y, const float *x, int64_t n)
{
    spread(d, n, SPREAD_GRAIN, copy_range, &(struct vector_arguments){.y = y, .a = x});
}

static void axpy_range(const void *arguments, int64_t begin, int64_t end)
{
    const struct vector_arguments v = *(const struct vector_arguments *)arguments;
#pragma omp simd
    for (int64_t i = begin; i < end; i++) v.y[i] += v.s * v.a[i];
}

void ISA(axpy)(struct device *d, float *y, float a, const float *x, int64_t n)
{
    spread(d, n, SPREAD_GRAIN, axpy_range, &(struct vector_arguments){.y = y, .a = x, .s = a});
}

static void scale_range(const void *arguments, int64_t begin, int64_t end)
{
    const struct vector_arguments v = *(const struct vector_arguments *)arguments;
    for (int64_t i = begin; i < end; i++) v.y[i] *= v.s;
}

void ISA(scale)(struct device *d, float *y, float a, int64_t n)
{
    spread(d, n, SPREAD_GRAIN, scale_range, &(struct vector_arguments){.y = y, .s = a});
}

static void add_range(const void *arguments, int64_t begin, int64_t end)
{
    const struct vector_arguments v = *(const struct vector_arguments *)arguments;
#pragma omp simd
    for (int64_t i = begin; i < end; i++) v.y[i] = v.a[i] + v.b[i];
}

void ISA(add)(struct device *d, float *y, const float *a, const float *b, int64_t n)
{
    spread(d, n, SPREAD_GRAIN, add_range, &(struct vector_arguments){.y = y, .a = a, .b = b});
}

static void multiply_range(const void *arguments, int64_t begin, int64_t end)
{
    const struct vector_arguments v = *(const struct vector_arguments *)arguments;
#pragma omp simd
    for (int64_t i = begin; i < end; i++) v.y[i] = v.a[i] * v.b[i];
}

void ISA(multiply)(struct device *d, float *y, const float *a, const float *b, int64_t n)
{
    spread(d, n, SPREAD_GRAIN, multiply_range, &(struct vector_arguments){.y = y, .a = a, .b = b});
}

static void multiply_add_range(const void *arguments, int64_t begin, int64_t end)
{
    const struct vector_arguments v = *(const struct vector_arguments *)arguments;
#pragma omp simd
    for (int64_t i = begin; i < end; i++) v.y[i] += v.a[i] * v.b[i];
}

void ISA(multiply_add)(struct device *d, float *y, const float *a, const float *b, int64_t n)
{
    spread(d, n, SPREAD_GRAIN, multiply_add_range,
           &(struct vector_arguments){.y = y, .a = a, .b = b});
}

static void clamp_range(const void *arguments, int64_t begin, int64_t end)
{
    const struct vector_arguments v = *(const struct vector_arguments *)arguments;
    for (int64_t i = begin; i < end; i++) v.y[i] = element_clamp(v.y[i], v.s, v.t);
}

void ISA(clamp)(struct device *d, float *y, float low, float high, int64_t n)
{
    spread(d, n, SPREAD_GRAIN, clamp_range,
           &(struct vector_arguments){.y = y, .s = low, .t = high});
}

static void regularize_range(const void *arguments, int64_t begin, int64_t end)
{
    const struct vector_arguments v = *(const struct vector_arguments *)arguments;
#pragma omp simd
    for (int64_t i = begin; i < end; i++) v.y[i] += element_regularize(v.a[i], v.s, v.t);
}

void ISA(regularize)(struct device *d, float *gradient, const float *w, float l1, float l2,
                     int64_t n)
{
    spread(d, n, SPREAD_GRAIN, regularize_range,
           &(struct vector_arguments){.y = gradient, .a = w, .s = l1, .t = l2});
}

static void copy_rows(const void *arguments, int64_t begin, int64_t end)
{
    const struct strided *s = arguments;
    for (int64_t row = begin; row < end; row++)
        memcpy(s->dst + row * s->dst_stride, s->src + row * s->src_stride,
               (size_t)s->columns * sizeof(float));
}

/* Rows that make about SPREAD_GRAIN floats */
static int64_t rows_grain(const struct strided *s)
{
    return SPREAD_GRAIN / (s->columns + 1) + 1;
}

void ISA(copy_strided)(struct device *d, const struct strided *s)
{
    spread(d, s->rows, rows_grain(s), copy_rows, s);
}

static void add_rows(const void *arguments, int64_t begin, int64_t end)
{
    const struct strided s = *(const struct strided *)arguments;
    for (int64_t row = begin; row < end; row++) {
        float *dst = s.dst + row * s.dst_stride;
        const float *src = s.src + row * s.src_stride;
#pragma omp simd
        for (int64_t i = 0; i < s.columns; i++) dst[i] += src[i];
    }
}

void ISA(add_strided)(struct device *d, const struct strided *s)
{
    spread(d, s->rows, rows_grain(s), add_rows, s);
}

static void dropout_range(const void *arguments, int64_t begin, int64_t end)
{
    const struct dropout v = *(const struct dropout *)arguments;
    const uint64_t key = element_random_u64(v.key, *v.draw);
    const float kept = 1.0f / (1.0f - v.rate);
#pragma omp simd
    for (int64_t i = begin; i < end; i++) {
        bool keeps = element_random_uniform(key, (uint64_t)(v.first + i)) >= v.rate;
        float x = keeps ? v.x[i] * kept : 0.0f;
        v.y[i] = v.add ? v.y[i] + x : x;
    }
}

void ISA(dropout)(struct device *d, const struct dropout *v, int64_t n)
{
    /* two rounds of mixing cost as much as eight loads */
    spread(d, n, SPREAD_GRAIN / 8, dropout_range, v);
}

struct ordered {
    float *y;
    const float *const *sources;
    int count;
    float scale;
};

enum { ORDERED_BLOCK = 1024 }; /* floats: the running sum stays in the first cache */

/* The sum is written when it is complete: y may be one of the sources. */
static void sum_ordered_block(const struct ordered *v, int64_t begin, int64_t n)
{
    float sum[ORDERED_BLOCK];
    memcpy(sum, v->sources[0] + begin, (size_t)n * sizeof(float));
    for (int source = 1; source < v->count; source++) {
        const float *x = v->sources[source] + begin;
        for (int64_t i = 0; i < n; i++) sum[i] += x[i];
    }
    for (int64_t i = 0; i < n; i++) v->y[begin + i] = v->scale * sum[i];
}

static void sum_ordered_range(const void *arguments, int64_t begin, int64_t end)
{
    const struct ordered v = *(const struct ordered *)arguments;
    for (int64_t at = begin; at < end; at += ORDERED_BLOCK)
        sum_ordered_block(&v, at, end - at < ORDERED_BLOCK ? end - at : ORDERED_BLOCK);
}

void ISA(sum_ordered)(struct device *d, float *y, const float *const sources[], int count,
                      float factor, int64_t n)
{
    spread(d, n, SPREAD_GRAIN, sum_ordered_range, &(struct ordered){y, sources, count, factor});
}
