/* apart_rows.c - the wall around matrices, activations, losses, metrics and optimizers. */
#include "tests/device/apart_inside.h"

static void wall_gemm(struct device *d, const struct gemm *g)
{
    struct device *inner = apart_enter(d, "gemm");
    apart_has(d, g->a, g->m * g->k);
    apart_has(d, g->b, g->k * g->n);
    apart_has(d, g->c, g->m * g->n);
    inner->kernels->gemm(inner, g);
    apart_leave(d);
}

static void wall_bias_activate(struct device *d, float *y, const float *bias, float *pre,
                               enum activation activation, float alpha, int64_t rows,
                               int64_t columns)
{
    struct device *inner = apart_enter(d, "bias_activate");
    apart_has(d, y, rows * columns);
    apart_maybe(d, bias, columns);
    apart_maybe(d, pre, rows * columns);
    inner->kernels->bias_activate(inner, y, bias, pre, activation, alpha, rows, columns);
    apart_leave(d);
}

static void wall_sum_rows(struct device *d, float *sums, const float *x, int64_t rows,
                          int64_t columns, bool add)
{
    struct device *inner = apart_enter(d, "sum_rows");
    apart_has(d, sums, columns);
    apart_has(d, x, rows * columns);
    inner->kernels->sum_rows(inner, sums, x, rows, columns, add);
    apart_leave(d);
}

static void wall_activate(struct device *d, float *y, const float *x, enum activation activation,
                          float alpha, int64_t n)
{
    struct device *inner = apart_enter(d, "activate");
    apart_has(d, y, n);
    apart_has(d, x, n);
    inner->kernels->activate(inner, y, x, activation, alpha, n);
    apart_leave(d);
}

static void wall_activate_back(struct device *d, float *dx, const float *dy, const float *y,
                               const float *x, enum activation activation, float alpha, int64_t n,
                               bool add)
{
    struct device *inner = apart_enter(d, "activate_back");
    apart_has(d, dx, n);
    apart_has(d, dy, n);
    apart_has(d, y, n);
    apart_maybe(d, x, n);
    inner->kernels->activate_back(inner, dx, dy, y, x, activation, alpha, n, add);
    apart_leave(d);
}

static void wall_softmax(struct device *d, float *y, const float *x, int64_t rows, int64_t columns)
{
    struct device *inner = apart_enter(d, "softmax");
    apart_has(d, y, rows * columns);
    apart_has(d, x, rows * columns);
    inner->kernels->softmax(inner, y, x, rows, columns);
    apart_leave(d);
}

static void wall_softmax_back(struct device *d, float *dx, const float *dy, const float *y,
                              int64_t rows, int64_t columns, bool add)
{
    struct device *inner = apart_enter(d, "softmax_back");
    apart_has(d, dx, rows * columns);
    apart_has(d, dy, rows * columns);
    apart_has(d, y, rows * columns);
    inner->kernels->softmax_back(inner, dx, dy, y, rows, columns, add);
    apart_leave(d);
}

static void wall_dropout(struct device *d, const struct dropout *v, int64_t n)
{
    struct device *inner = apart_enter(d, "dropout");
    apart_has(d, v->y, n);
    apart_has(d, v->x, n);
    apart_has(d, v->draw, sizeof *v->draw / sizeof(float));
    inner->kernels->dropout(inner, v, n);
    apart_leave(d);
}

static void has_entropy(struct device *d, const struct cross_entropy *c)
{
    const int64_t n = c->rows * c->classes;
    apart_is_host(d, c, sizeof *c);
    apart_has(d, c->logits, n);
    apart_has(d, c->losses, c->rows);
    apart_maybe(d, c->gradient, n);
}

static void wall_softmax_cross_entropy(struct device *d, const struct cross_entropy *c)
{
    struct device *inner = apart_enter(d, "softmax_cross_entropy");
    has_entropy(d, c);
    apart_has(d, c->labels, c->rows);
    apart_maybe(d, c->class_weights, c->classes);
    inner->kernels->softmax_cross_entropy(inner, c);
    apart_leave(d);
}

static void wall_sigmoid_cross_entropy(struct device *d, const struct cross_entropy *c)
{
    struct device *inner = apart_enter(d, "sigmoid_cross_entropy");
    has_entropy(d, c);
    apart_has(d, c->targets, c->rows * c->classes);
    inner->kernels->sigmoid_cross_entropy(inner, c);
    apart_leave(d);
}

static void has_regression(struct device *d, const struct regression *r)
{
    const int64_t n = r->rows * r->columns;
    apart_is_host(d, r, sizeof *r);
    apart_has(d, r->predictions, n);
    apart_has(d, r->targets, n);
    apart_has(d, r->losses, r->rows);
    apart_maybe(d, r->gradient, n);
}

static void wall_squared_error(struct device *d, const struct regression *r)
{
    struct device *inner = apart_enter(d, "squared_error");
    has_regression(d, r);
    inner->kernels->squared_error(inner, r);
    apart_leave(d);
}

static void wall_huber(struct device *d, const struct regression *r)
{
    struct device *inner = apart_enter(d, "huber");
    has_regression(d, r);
    inner->kernels->huber(inner, r);
    apart_leave(d);
}

static int64_t wall_count_in_top(struct device *d, const float *logits, const int32_t *labels,
                                 int64_t rows, int64_t classes, int64_t k, bool first_wins)
{
    struct device *inner = apart_enter(d, "count_in_top");
    apart_has(d, logits, rows * classes);
    apart_has(d, labels, rows);
    const int64_t result =
        inner->kernels->count_in_top(inner, logits, labels, rows, classes, k, first_wins);
    apart_leave(d);
    return result;
}

static int64_t wall_count_threshold(struct device *d, const float *prediction, const float *target,
                                    float threshold, int64_t n)
{
    struct device *inner = apart_enter(d, "count_threshold");
    apart_has(d, prediction, n);
    apart_has(d, target, n);
    const int64_t result = inner->kernels->count_threshold(inner, prediction, target, threshold, n);
    apart_leave(d);
    return result;
}

static void wall_update(struct device *d, const struct update *u, int64_t n)
{
    struct device *inner = apart_enter(d, u->rule->name);
    apart_is_host(d, u->constants, CONSTANTS_BYTES_MAX);
    apart_has(d, u->value, n);
    apart_has(d, u->gradient, n);
    for (int i = 0; i < u->slots; i++) apart_has(d, u->slot[i], n);
    inner->kernels->update(inner, u, n);
    apart_leave(d);
}

void apart_fill_rows(struct kernels *table)
{
    table->gemm = wall_gemm;
    table->bias_activate = wall_bias_activate;
    table->sum_rows = wall_sum_rows;
    table->activate = wall_activate;
    table->activate_back = wall_activate_back;
    table->softmax = wall_softmax;
    table->softmax_back = wall_softmax_back;
    table->dropout = wall_dropout;
    table->softmax_cross_entropy = wall_softmax_cross_entropy;
    table->sigmoid_cross_entropy = wall_sigmoid_cross_entropy;
    table->squared_error = wall_squared_error;
    table->huber = wall_huber;
    table->count_in_top = wall_count_in_top;
    table->count_threshold = wall_count_threshold;
    table->update = wall_update;
}
