/* softmax: exp(x) / sum exp(x) over the last axis. */
#include "core/ops/elementwise.h"

/* All axes but the last count as rows. */
static err infer(struct node *node, struct arena *arena)
{
    const struct shape *x = &node->input[0]->shape;
    TRY(expect_columns(x));
    node->output.shape = *x;
    node->output.is_shares = true;
    return OK;
}

static void forward(const struct node *node, struct device *d)
{
    const struct shape *x = &node->input[0]->shape;
    const int64_t columns = x->dim[x->rank - 1];
    d->kernels->softmax(d, node->output.value, node->input[0]->value, shape_count(x) / columns,
                        columns);
}

/* dx = y (dy - sum of dy y) per row */
static void backward(const struct node *node, struct device *d)
{
    const struct tensor *x = node->input[0], *y = &node->output;
    const int64_t columns = x->shape.dim[x->shape.rank - 1];
    if (!x->gradient) return;
    d->kernels->softmax_back(d, x->gradient, y->gradient, y->value,
                             shape_count(&x->shape) / columns, columns, node->add[0]);
}

/* More than two axes, and a row that is no multiple of a vector register. */
static const struct op_case cases[] = {
    {"{}", 1, {{2, {4, 5}}}},
    {"{}", 1, {{3, {2, 3, 17}}}},
    {0},
};

const struct op op_softmax = {
    .object = {"softmax", "probabilities over the last axis"},
    .inputs_min = 1,
    .inputs_max = 1,
    .reads_output = true,
    .infer = infer,
    .forward = forward,
    .backward = backward,
    .cases = cases,
};
