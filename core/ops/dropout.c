/* dropout: zeroes a fraction of the elements and scales up the others; the identity outside
 * training. */
#include "core/graph/op.h"

struct attributes {
    double rate;
};

static const struct field fields[] = {
    FIELD_OF("rate", FLOAT, struct attributes, rate, .fallback = "0.5", .max = 1,
             .help = "fraction of the elements to drop, below 1"),
    {0},
};

/* A rate that is 1 as a float would divide by 0. */
static err infer(struct node *node, struct arena *arena)
{
    const struct attributes *a = node->attributes;
    if ((float)a->rate >= 1.0f)
        return fail(ERR_INPUT, "rate: expected a number from 0 to less than 1");
    node->output.shape = node->input[0]->shape;
    node->is_view = !node->training || a->rate == 0;
    return OK;
}

/* Forward and backward of a step use the same draw, so both see the same mask. */
static void mask(const struct node *node, struct device *d, struct dropout of)
{
    const struct attributes *a = node->attributes;
    of.rate = (float)a->rate;
    of.key = node->key;
    of.draw = node->draw;
    of.first = node->first_row * shape_count_from(&node->output.shape, 1);
    d->kernels->dropout(d, &of, shape_count(&node->output.shape));
}

/* y = x mask / (1 - rate): the expected value is kept. */
static void forward(const struct node *node, struct device *d)
{
    mask(node, d, (struct dropout){.y = node->output.value, .x = node->input[0]->value});
}

/* dx = dy mask / (1 - rate), the same call. */
static void backward(const struct node *node, struct device *d)
{
    float *dx = node->input[0]->gradient;
    if (dx)
        mask(node, d, (struct dropout){.y = dx, .x = node->output.gradient, .add = node->add[0]});
}

/* A rate of 0 is a view. */
static const struct op_case cases[] = {
    {"{}", 1, {{2, {5, 7}}}},
    {"{\"rate\": 0.1}", 1, {{3, {3, 4, 5}}}},
    {"{\"rate\": 0}", 1, {{2, {2, 3}}}},
    {0},
};

const struct op op_dropout = {
    .object = {"dropout", "zeroes random elements while training", fields,
               sizeof(struct attributes)},
    .inputs_min = 1,
    .inputs_max = 1,
    .infer = infer,
    .forward = forward,
    .backward = backward,
    .cases = cases,
};
