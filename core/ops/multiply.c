/* multiply: the elementwise product of inputs, broadcast as numpy does. */
#include "core/ops/algebra/loops.h"

/* With more than two inputs, backward computes the product of all others in saved[0]. */
static err infer(struct node *node, struct arena *arena)
{
    TRY(broadcast_infer(node, arena));
    if (node->training && node->input_count > 2)
        node->saved[0] = (struct tensor){.dtype = FLOAT32, .shape = node->output.shape};
    return OK;
}

/* Multiplies from left to right, in y. */
static void forward(const struct node *node, struct device *d)
{
    const struct tensor *y = &node->output;
    broadcast(d, FOLD_MULTIPLY, y, node->input[0], node->input[1]);
    for (int i = 2; i < node->input_count; i++) broadcast(d, FOLD_MULTIPLY, y, y, node->input[i]);
}

/* The product of all inputs but one. */
static const struct tensor *others(const struct node *node, struct device *d, int but)
{
    const int first = but == 0, second = but <= 1 ? 2 : 1;
    if (node->input_count == 2) return node->input[first];

    const struct tensor *product = &node->saved[0];
    broadcast(d, FOLD_MULTIPLY, product, node->input[first], node->input[second]);
    for (int i = second + 1; i < node->input_count; i++)
        if (i != but) broadcast(d, FOLD_MULTIPLY, product, product, node->input[i]);
    return product;
}

/* dx_i = dy times all other inputs; several inputs may be the same tensor. */
static void backward(const struct node *node, struct device *d)
{
    const float *dy = node->output.gradient;
    for (int i = 0; i < node->input_count; i++)
        if (node->input[i]->gradient)
            broadcast_back(
                node, d, i,
                &(struct back){FOLD_MULTIPLY, .a_value = dy, .b = others(node, d, i), .scale = 1});
}

/* Two inputs need no scratch memory; three and four do. */
static const struct op_case cases[] = {
    {"{}", 2, {{2, {3, 4}}, {2, {3, 4}}}},
    {"{}", 3, {{2, {3, 5}}, {2, {3, 5}}, {2, {3, 5}}}},
    {"{}", 4, {{3, {2, 3, 6}}, {3, {2, 3, 6}}, {3, {2, 3, 6}}, {3, {2, 3, 6}}}},
    {"{}", 2, {{3, {2, 5, 1}}, {3, {2, 5, 6}}}},
    {"{}", 3, {{2, {3, 4}}, {2, {3, 1}}, {3, {3, 2, 1}}}},
    {0},
};

const struct op op_multiply = {
    .object = {"multiply", "the elementwise product of inputs, broadcast as in numpy"},
    .inputs_min = 2,
    .inputs_max = INPUTS_MAX,
    .reads_input = true,
    .infer = infer,
    .forward = forward,
    .backward = backward,
    .cases = cases,
};
