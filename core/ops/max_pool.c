/* max_pool: the largest element of each window, per channel; padding never wins. */
#include "core/ops/pool.h"

static void forward(const struct node *node, struct device *d)
{
    const struct pool2d pool = pool_of(node);
    d->kernels->max_pool(d, &pool, node->output.value, node->input[0]->value);
}

/* The window's maximum is found again by comparing x with y; the first of equal ones gets all of
 * dy. */
static void backward(const struct node *node, struct device *d)
{
    const struct tensor *x = node->input[0], *y = &node->output;
    if (!x->gradient) return;
    const struct pool2d pool = pool_of(node);
    d->kernels->max_pool_back(d, &pool, x->gradient, y->gradient, y->value, x->value, node->add[0]);
}

const struct op op_max_pool = {
    .object = {"max_pool", "the largest element of each window", pool_fields,
               sizeof(struct window_spec)},
    .inputs_min = 1,
    .inputs_max = 1,
    .reads_input = true,
    .reads_output = true,
    .infer = pool_infer,
    .forward = forward,
    .backward = backward,
    .cases = pool_cases,
};
