/* activate.c - activation functions, alone and with a bias. */
#include "kernels/cpu/isa.h"
#include "kernels/elements.h"

enum { ACTIVATE_GRAIN = SPREAD_GRAIN / 4 }; /* an exp costs more than a load */

/* y = f(x), n elements; y may be x */
struct forward {
    float *y;
    const float *x;
    enum activation kind;
    float alpha;
};

ELEMENT void forward_loop(enum activation kind, const struct forward *f, int64_t begin, int64_t end)
{
    float *y = f->y;
    const float *x = f->x, alpha = f->alpha;
#pragma omp simd
    for (int64_t i = begin; i < end; i++) y[i] = element_activate(kind, alpha, x[i]);
}

/* One loop per kind, in which the kind is a constant. */
static void forward_range(const void *arguments, int64_t begin, int64_t end)
{
    const struct forward *f = arguments;
    switch (f->kind) {
    case ACTIVATION_RELU:
        return forward_loop(ACTIVATION_RELU, f, begin, end);
    case ACTIVATION_RELU6:
        return forward_loop(ACTIVATION_RELU6, f, begin, end);
    case ACTIVATION_ELU:
        return forward_loop(ACTIVATION_ELU, f, begin, end);
    case ACTIVATION_LEAKY_RELU:
        return forward_loop(ACTIVATION_LEAKY_RELU, f, begin, end);
    case ACTIVATION_SIGMOID:
        return forward_loop(ACTIVATION_SIGMOID, f, begin, end);
    case ACTIVATION_TANH:
        return forward_loop(ACTIVATION_TANH, f, begin, end);
    case ACTIVATION_SOFTPLUS:
        return forward_loop(ACTIVATION_SOFTPLUS, f, begin, end);
    case ACTIVATION_SWISH:
        return forward_loop(ACTIVATION_SWISH, f, begin, end);
    case ACTIVATION_GELU:
        return forward_loop(ACTIVATION_GELU, f, begin, end);
    case ACTIVATION_GELU_TANH:
        return forward_loop(ACTIVATION_GELU_TANH, f, begin, end);
    case ACTIVATION_SELU:
        return forward_loop(ACTIVATION_SELU, f, begin, end);
    case ACTIVATION_SOFTSIGN:
        return forward_loop(ACTIVATION_SOFTSIGN, f, begin, end);
    case ACTIVATION_SQUARE:
        return forward_loop(ACTIVATION_SQUARE, f, begin, end);
    case ACTIVATION_SQRT:
        return forward_loop(ACTIVATION_SQRT, f, begin, end);
    case ACTIVATION_EXP:
        return forward_loop(ACTIVATION_EXP, f, begin, end);
    case ACTIVATION_LOG:
        return forward_loop(ACTIVATION_LOG, f, begin, end);
    case ACTIVATION_ABS:
        return forward_loop(ACTIVATION_ABS, f, begin, end);
    default:
        return forward_loop(ACTIVATION_LINEAR, f, begin, end);
    }
}

void ISA(activate)(struct device *d, float *y, const float *x, enum activation kind, float alpha,
                   int64_t n)
{
    if (kind == ACTIVATION_LINEAR && y == x) return;
    spread(d, n, ACTIVATE_GRAIN, forward_range, &(struct forward){y, x, kind, alpha});
}

/* dx (+)= dy f'(x); dx may be dy */
struct backward {
    float *dx;
    const float *dy, *y, *x;
    enum activation kind;
    float alpha;
    bool add;
};

ELEMENT void backward_loop(enum activation kind, const struct backward *b, int64_t begin,
                           int64_t end)
{
    float *dx = b->dx;
    const float *dy = b->dy, *y = b->y, *x = b->x, alpha = b->alpha;
    if (b->add) {
#pragma omp simd
        for (int64_t i = begin; i < end; i++)
            dx[i] +=
                dy[i] * element_slope(kind, alpha, y[i], activation_reads_x(kind) ? x[i] : 0.0f);
        return;
    }
#pragma omp simd
    for (int64_t i = begin; i < end; i++)
        dx[i] = dy[i] * element_slope(kind, alpha, y[i], activation_reads_x(kind) ? x[i] : 0.0f);
}

/* As forward_range */
static void backward_range(const void *arguments, int64_t begin, int64_t end)
{
    const struct backward *b = arguments;
    switch (b->kind) {
    case ACTIVATION_RELU:
        return backward_loop(ACTIVATION_RELU, b, begin, end);
    case ACTIVATION_RELU6:
        return backward_loop(ACTIVATION_RELU6, b, begin, end);
    case ACTIVATION_ELU:
        return backward_loop(ACTIVATION_ELU, b, begin, end);
    case ACTIVATION_LEAKY_RELU:
        return backward_loop(ACTIVATION_LEAKY_RELU, b, begin, end);
    case ACTIVATION_SIGMOID:
        return backward_loop(ACTIVATION_SIGMOID, b, begin, end);
    case ACTIVATION_TANH:
        return backward_loop(ACTIVATION_TANH, b, begin, end);
    case ACTIVATION_SOFTPLUS:
        return backward_loop(ACTIVATION_SOFTPLUS, b, begin, end);
    case ACTIVATION_SWISH:
        return backward_loop(ACTIVATION_SWISH, b, begin, end);
    case ACTIVATION_GELU:
        return backward_loop(ACTIVATION_GELU, b, begin, end);
    case ACTIVATION_GELU_TANH:
        return backward_loop(ACTIVATION_GELU_TANH, b, begin, end);
    case ACTIVATION_SELU:
        return backward_loop(ACTIVATION_SELU, b, begin, end);
    case ACTIVATION_SOFTSIGN:
        return backward_loop(ACTIVATION_SOFTSIGN, b, begin, end);
    case ACTIVATION_SQUARE:
        return backward_loop(ACTIVATION_SQUARE, b, begin, end);
    case ACTIVATION_SQRT:
        return backward_loop(ACTIVATION_SQRT, b, begin, end);
    case ACTIVATION_EXP:
        return backward_loop(ACTIVATION_EXP, b, begin, end);
    case ACTIVATION_LOG:
        return backward_loop(ACTIVATION_LOG, b, begin, end);
    case ACTIVATION_ABS:
        return backward_loop(ACTIVATION_ABS, b, begin, end);
    default:
        return backward_loop(ACTIVATION_LINEAR, b, begin, end);
    }
}

void ISA(activate_back)(struct device *d, float *dx, const float *dy, const float *y,
                        const float *x, enum activation kind, float alpha, int64_t n, bool add)
{
    const float *readable_y = y ? y : dy; /* linear does not read y, which may be NULL */
    spread(d, n, ACTIVATE_GRAIN, backward_range,
           &(struct backward){dx, dy, readable_y, x, kind, alpha, add});
}

struct bias_rows {
    float *y, *pre;    /* [rows, columns] */
    const float *bias; /* [columns] */
    enum activation kind;
    float alpha;
    int64_t columns;
};

/* Bias and relu in one pass over a row; other functions run afterwards, while the row is in the
 * cache. */
static void bias_row(const struct bias_rows *b, float *y)
{
    const float *bias = b->bias;
    if (b->kind == ACTIVATION_RELU && !b->pre) {
#pragma omp simd
        for (int64_t i = 0; i < b->columns; i++)
            y[i] = element_activate(ACTIVATION_RELU, 0.0f, y[i] + bias[i]);
        return;
    }
#pragma omp simd
    for (int64_t i = 0; i < b->columns; i++) y[i] += bias[i];
}

static void bias_activate_rows(const void *arguments, int64_t begin, int64_t end)
{
    const struct bias_rows b = *(const struct bias_rows *)arguments;
    const bool fused = b.bias && b.kind == ACTIVATION_RELU && !b.pre;
    for (int64_t row = begin; row < end; row++) {
        float *y = b.y + row * b.columns;
        if (b.bias) bias_row(&b, y);
        if (b.pre) memcpy(b.pre + row * b.columns, y, (size_t)b.columns * sizeof(float));
        if (b.kind != ACTIVATION_LINEAR && !fused)
            forward_range(&(struct forward){y, y, b.kind, b.alpha}, 0, b.columns);
    }
}

void ISA(bias_activate)(struct device *d, float *y, const float *bias, float *pre,
                        enum activation kind, float alpha, int64_t rows, int64_t columns)
{
    spread(d, rows, ACTIVATE_GRAIN / (columns + 1) + 1, bias_activate_rows,
           &(struct bias_rows){y, pre, bias, kind, alpha, columns});
}
