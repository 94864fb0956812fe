/* add: the sum of 2 to 8 inputs of one shape. */
#include "core/ops/elementwise.h"

/* In the order of the inputs, so that the rounding is always the same. */
static void forward(const struct node *node, struct device *d)
{
    const float *sources[INPUTS_MAX];
    for (int i = 0; i < node->input_count; i++) sources[i] = node->input[i]->value;
    d->kernels->sum_ordered(d, node->output.value, sources, node->input_count, 1.0f,
                            shape_count(&node->output.shape));
}

/* Every input gets dy as it is. */
static void backward(const struct node *node, struct device *d)
{
    const float *dy = node->output.gradient;
    const int64_t count = shape_count(&node->output.shape);
    for (int i = 0; i < node->input_count; i++) {
        float *dx = node->input[i]->gradient;
        if (!dx) continue;
        if (node->add[i])
            d->kernels->axpy(d, dx, 1.0f, dy, count);
        else
            d->kernels->copy(d, dx, dy, count);
    }
}

/* Any number of inputs goes the same way. */
static const struct op_case cases[] = {
    {"{}", 2, {{2, {3, 4}}, {2, {3, 4}}}},
    {"{}", 3, {{4, {2, 3, 4, 2}}, {4, {2, 3, 4, 2}}, {4, {2, 3, 4, 2}}}},
    {0},
};

const struct op op_add = {
    .object = {"add", "the sum of inputs of one shape"},
    .inputs_min = 2,
    .inputs_max = INPUTS_MAX,
    .infer = elementwise_infer,
    .forward = forward,
    .backward = backward,
    .cases = cases,
};
