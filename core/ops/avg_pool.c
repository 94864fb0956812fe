/* avg_pool: the mean of each window's elements that are not padding, per channel. */
#include "core/ops/pool.h"

static void forward(const struct node *node, struct device *d)
{
    const struct pool2d pool = pool_of(node);
    d->kernels->avg_pool(d, &pool, node->output.value, node->input[0]->value);
}

/* dy is distributed evenly over the elements of its window that are not padding; backward needs no
 * values. */
static void backward(const struct node *node, struct device *d)
{
    const struct tensor *x = node->input[0], *y = &node->output;
    if (!x->gradient) return;
    const struct pool2d pool = pool_of(node);
    d->kernels->avg_pool_back(d, &pool, x->gradient, y->gradient, node->add[0]);
}

const struct op op_avg_pool = {
    .object = {"avg_pool", "the mean of each window", pool_fields, sizeof(struct window_spec)},
    .inputs_min = 1,
    .inputs_max = 1,
    .infer = pool_infer,
    .forward = forward,
    .backward = backward,
    .cases = pool_cases,
};
