/* multiply: the elementwise product of 2 to 8 inputs of one shape. */
#include "core/ops/elementwise.h"

/* With more than two inputs, backward forms the product of all others in saved[0]. */
static err infer(struct node *node, struct arena *arena)
{
    TRY(elementwise_infer(node, arena));
    if (node->training && node->input_count > 2)
        node->saved[0] = (struct tensor){.dtype = FLOAT32, .shape = node->output.shape};
    return OK;
}

/* From left to right, in y. */
static void forward(const struct node *node, struct device *d)
{
    float *y = node->output.value;
    const int64_t count = shape_count(&node->output.shape);
    d->kernels->multiply(d, y, node->input[0]->value, node->input[1]->value, count);
    for (int i = 2; i < node->input_count; i++)
        d->kernels->multiply(d, y, y, node->input[i]->value, count);
}

/* The product of all inputs but one. */
static const float *others(const struct node *node, struct device *d, int but)
{
    const int first = but == 0, second = but <= 1 ? 2 : 1;
    if (node->input_count == 2) return node->input[first]->value;

    float *product = node->saved[0].value;
    const int64_t count = shape_count(&node->output.shape);
    d->kernels->multiply(d, product, node->input[first]->value, node->input[second]->value, count);
    for (int i = second + 1; i < node->input_count; i++)
        if (i != but) d->kernels->multiply(d, product, product, node->input[i]->value, count);
    return product;
}

/* dx_i = dy times all other inputs; the inputs may be one and the same tensor. */
static void backward(const struct node *node, struct device *d)
{
    const float *dy = node->output.gradient;
    const int64_t count = shape_count(&node->output.shape);
    for (int i = 0; i < node->input_count; i++) {
        float *dx = node->input[i]->gradient;
        if (!dx) continue;
        if (node->add[i])
            d->kernels->multiply_add(d, dx, dy, others(node, d, i), count);
        else
            d->kernels->multiply(d, dx, dy, others(node, d, i), count);
    }
}

/* Two inputs need no scratch; three and four do, and have more than one "other". */
static const struct op_case cases[] = {
    {"{}", 2, {{2, {3, 4}}, {2, {3, 4}}}},
    {"{}", 3, {{2, {3, 5}}, {2, {3, 5}}, {2, {3, 5}}}},
    {"{}", 4, {{3, {2, 3, 6}}, {3, {2, 3, 6}}, {3, {2, 3, 6}}, {3, {2, 3, 6}}}},
    {0},
};

const struct op op_multiply = {
    .object = {"multiply", "the elementwise product of inputs of one shape"},
    .inputs_min = 2,
    .inputs_max = INPUTS_MAX,
    .reads_input = true,
    .infer = infer,
    .forward = forward,
    .backward = backward,
    .cases = cases,
};
