/* binary.c - elementwise functions of two inputs, each an op of its own; add and multiply, which
 * take more, have their own files. Inputs are broadcast as numpy does. */
#include "core/ops/algebra/loops.h"

extern const struct op op_subtract, op_divide, op_maximum, op_minimum;

static enum fold_of formula_of(const struct node *node)
{
    return node->op == &op_subtract  ? FOLD_SUBTRACT
           : node->op == &op_divide  ? FOLD_DIVIDE
           : node->op == &op_maximum ? FOLD_MAXIMUM
                                     : FOLD_MINIMUM;
}

static err infer(struct node *node, struct arena *arena)
{
    TRY(broadcast_infer(node, arena));
    const bool chooses = node->op == &op_maximum || node->op == &op_minimum;
    node->output.is_shares = node->output.is_shares && chooses;
    return OK;
}

static void forward(const struct node *node, struct device *d)
{
    broadcast(d, formula_of(node), &node->output, node->input[0], node->input[1]);
}

static void back_subtract(const struct node *node, struct device *d)
{
    const float *dy = node->output.gradient;
    broadcast_back(node, d, 0, &(struct back){FOLD_A, .a_value = dy, .scale = 1});
    broadcast_back(node, d, 1, &(struct back){FOLD_A, .a_value = dy, .scale = -1});
}

static void back_divide(const struct node *node, struct device *d)
{
    const float *dy = node->output.gradient;
    const struct tensor *a = node->input[0], *b = node->input[1];
    broadcast_back(node, d, 0, &(struct back){FOLD_DIVIDE, .a_value = dy, .b = b, .scale = 1});
    broadcast_back(node, d, 1, &(struct back){FOLD_DIVIDE_SLOPE, a, b, .c = dy, .scale = 1});
}

/* If both are equal, the first one gets the gradient, as in TensorFlow. */
static void back_maximum(const struct node *node, struct device *d)
{
    const float *dy = node->output.gradient;
    const struct tensor *a = node->input[0], *b = node->input[1];
    broadcast_back(node, d, 0, &(struct back){FOLD_IF_NOT_LESS, a, b, .c = dy, .scale = 1});
    broadcast_back(node, d, 1, &(struct back){FOLD_IF_MORE, b, a, .c = dy, .scale = 1});
}

static void back_minimum(const struct node *node, struct device *d)
{
    const float *dy = node->output.gradient;
    const struct tensor *a = node->input[0], *b = node->input[1];
    broadcast_back(node, d, 0, &(struct back){FOLD_IF_NOT_LESS, b, a, .c = dy, .scale = 1});
    broadcast_back(node, d, 1, &(struct back){FOLD_IF_MORE, a, b, .c = dy, .scale = 1});
}

/* A column and a row broadcast; one axis less; both broadcast; more than a block, and only the
 * middle axis broadcast. The inputs have no number in common. */
static const struct op_case cases[] = {
    {"{}", 2, {{2, {3, 4}}, {2, {3, 1}}}},
    {"{}", 2, {{3, {2, 4, 1}}, {3, {2, 4, 6}}}},
    {"{}", 2, {{3, {2, 4, 5}}, {2, {2, 5}}}},
    {"{}", 2, {{4, {2, 1, 3, 4}}, {3, {2, 3, 1}}}},
    {"{}", 2, {{4, {2, 3, 4, 70}}, {4, {2, 3, 1, 70}}}},
    {0},
};

static const struct op_case divide_cases[] = {
    {"{}", 2, {{2, {3, 4}}, {2, {3, 4}}}, .is_positive = true},
    {"{}", 2, {{3, {2, 4, 5}}, {2, {2, 5}}}, .is_positive = true},
    {"{}", 2, {{3, {2, 1, 5}}, {3, {2, 3, 1}}}, .is_positive = true},
    {0},
};

const struct op op_subtract = {
    .object = {"subtract", "the first input minus the second, broadcast as in numpy"},
    .inputs_min = 2,
    .inputs_max = 2,
    .infer = infer,
    .forward = forward,
    .backward = back_subtract,
    .cases = cases,
};

const struct op op_divide = {
    .object = {"divide", "the first input divided by the second, broadcast as in numpy"},
    .inputs_min = 2,
    .inputs_max = 2,
    .reads_input = true,
    .infer = infer,
    .forward = forward,
    .backward = back_divide,
    .cases = divide_cases,
};

const struct op op_maximum = {
    .object = {"maximum", "the larger of two inputs, element by element, broadcast as in numpy"},
    .inputs_min = 2,
    .inputs_max = 2,
    .reads_input = true,
    .infer = infer,
    .forward = forward,
    .backward = back_maximum,
    .cases = cases,
};

const struct op op_minimum = {
    .object = {"minimum", "the smaller of two inputs, element by element, broadcast as in numpy"},
    .inputs_min = 2,
    .inputs_max = 2,
    .reads_input = true,
    .infer = infer,
    .forward = forward,
    .backward = back_minimum,
    .cases = cases,
};
