/* add: the sum of inputs, broadcast as numpy does. */
#include "core/ops/algebra/loops.h"

enum { AT_ONCE = 64 };

static bool have_one_shape(const struct node *node)
{
    for (int i = 0; i < node->input_count; i++)
        if (!shape_equal(&node->output.shape, &node->input[i]->shape)) return false;
    return true;
}

/* In the order of the inputs, so that the rounding is always the same. */
static void forward(const struct node *node, struct device *d)
{
    const struct tensor *y = &node->output;
    const float *sources[1 + AT_ONCE] = {
        y->value}; /* the sum so far, then the inputs to be added to it */
    if (have_one_shape(node)) {
        for (int done = 0, first = 1; done < node->input_count; first = 0) {
            int count = 0;
            while (count < AT_ONCE && done < node->input_count)
                sources[1 + count++] = node->input[done++]->value;
            d->kernels->sum_ordered(d, y->value, sources + first, count + !first, 1.0f,
                                    shape_count(&y->shape));
        }
        return;
    }
    broadcast(d, FOLD_A, y, node->input[0], NULL);
    for (int i = 1; i < node->input_count; i++) broadcast(d, FOLD_ADD, y, y, node->input[i]);
}

static err infer(struct node *node, struct arena *arena)
{
    TRY(broadcast_infer(node, arena));
    node->output.is_shares = false;
    return OK;
}

/* Every input gets dy, summed over the axes along which it was broadcast. */
static void backward(const struct node *node, struct device *d)
{
    const struct back dy = {FOLD_A, .a_value = node->output.gradient, .scale = 1};
    for (int i = 0; i < node->input_count; i++) broadcast_back(node, d, i, &dy);
}

/* Any number of inputs of one shape; a bias, and both broadcast */
static const struct op_case cases[] = {
    {"{}", 2, {{2, {3, 4}}, {2, {3, 4}}}},
    {"{}", 3, {{4, {2, 3, 4, 2}}, {4, {2, 3, 4, 2}}, {4, {2, 3, 4, 2}}}},
    {"{}", 3, {{2, {3, 4}}, {2, {3, 1}}, {3, {3, 2, 1}}}},
    {0},
};

const struct op op_add = {
    .object = {"add", "the sum of inputs, broadcast as in numpy"},
    .inputs_min = 2,
    .inputs_max = INPUTS_MAX,
    .infer = infer,
    .forward = forward,
    .backward = backward,
    .cases = cases,
};
