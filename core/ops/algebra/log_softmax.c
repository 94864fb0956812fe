/* log_softmax: x - log(sum of e^x) over the last axis. */
#include "core/ops/algebra/loops.h"
#include "core/ops/elementwise.h"

/* saved: one number per row */
static err infer(struct node *node, struct arena *arena)
{
    struct shape rows = node->input[0]->shape;
    TRY(expect_columns(&rows));
    node->output.shape = rows;
    rows.dim[rows.rank - 1] = 1;
    node->saved[0] = (struct tensor){.dtype = FLOAT32, .shape = rows};
    return OK;
}

/* rows = the sum, or the maximum, of f(from) in each row */
static void fold_rows(const struct node *node, struct device *d, enum fold_of of, bool is_max,
                      const float *from)
{
    const struct tensor *rows = &node->saved[0];
    const int64_t count = shape_count(&rows->shape);
    const int64_t columns = shape_count(&node->output.shape) / count;
    struct fold f = {of, is_max, .scale = 1, .y = rows->value, .a = from};
    fold_axis(&f, count, 1, columns, 0, 0);
    fold_axis(&f, columns, 0, 1, 0, 0);
    d->kernels->fold(d, &f);
}

static void forward(const struct node *node, struct device *d)
{
    const struct tensor *x = node->input[0], *y = &node->output, *rows = &node->saved[0];
    fold_rows(node, d, FOLD_A, true, x->value);
    broadcast(d, FOLD_SUBTRACT, y, x, rows);
    fold_rows(node, d, FOLD_EXP, false, y->value);
    broadcast(d, FOLD_LOG, rows, rows, NULL);
    broadcast(d, FOLD_SUBTRACT, y, y, rows);
}

/* dx = dy - e^y sum of dy */
static void backward(const struct node *node, struct device *d)
{
    const struct tensor *y = &node->output, *rows = &node->saved[0];
    if (!node->input[0]->gradient) return;
    fold_rows(node, d, FOLD_A, false, y->gradient);
    broadcast_back(node, d, 0, &(struct back){FOLD_A, .a_value = y->gradient, .scale = 1});
    broadcast_back(node, d, 0,
                   &(struct back){FOLD_EXP_TIMES, y, rows, .scale = -1, .is_more = true});
}

static const struct op_case cases[] = {
    {"{}", 1, {{2, {4, 5}}}},
    {"{}", 1, {{3, {2, 3, 17}}}},
    {0},
};

const struct op op_log_softmax = {
    .object = {"log_softmax", "logarithms of the probabilities over the last axis"},
    .inputs_min = 1,
    .inputs_max = 1,
    .reads_output = true,
    .infer = infer,
    .forward = forward,
    .backward = backward,
    .cases = cases,
};
