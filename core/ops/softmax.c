/* softmax: exp(x) / sum exp(x) over the last axis, or over those of its positions that a mask
 * includes. */
#include "core/ops/elementwise.h"
#include "core/ops/mask.h"

struct attributes {
    const char *mask;
};

static const struct field fields[] = {
    MASK_FIELD(offsetof(struct attributes, mask)),
    {0},
};

/* Its exponential is 0 relative to that of any realistic number. */
static const float NOT_THERE = -1e30f;

static int64_t columns_of(const struct node *node)
{
    const struct shape *x = &node->input[0]->shape;
    return x->dim[x->rank - 1];
}

/* All axes but the last count as rows. */
static err infer(struct node *node, struct arena *arena)
{
    const struct shape *x = &node->input[0]->shape;
    TRY(expect_columns(x));
    TRY(mask_check(node, columns_of(node)));
    node->output.shape = *x;
    node->output.is_shares = true;
    return OK;
}

/* If the mask excludes all positions, all are 0. */
static void forward(const struct node *node, struct device *d)
{
    const struct shape *x = &node->input[0]->shape;
    const int64_t columns = columns_of(node), rows = shape_count(x) / columns;
    float *y = node->output.value;
    const struct fold hide = {FOLD_IF_ABOVE, .low = NOT_THERE, .y = y, .a = node->input[0]->value};
    const struct fold clear = {FOLD_MULTIPLY, .y = y, .a = y};
    if (mask_of(node)) mask_apply(node, d, &hide, x, x->rank - 1);
    d->kernels->softmax(d, y, mask_of(node) ? y : hide.a, rows, columns);
    if (mask_of(node)) mask_apply(node, d, &clear, x, x->rank - 1);
}

/* dx = y (dy - sum of dy y) per row; 0 where y is 0 */
static void backward(const struct node *node, struct device *d)
{
    const struct tensor *x = node->input[0], *y = &node->output;
    const int64_t columns = columns_of(node);
    mask_backward(node, d);
    if (!x->gradient) return;
    d->kernels->softmax_back(d, x->gradient, y->gradient, y->value,
                             shape_count(&x->shape) / columns, columns, node->add[0]);
}

/* More than two axes, and a row that does not fill vector registers; masked */
static const struct op_case cases[] = {
    {"{}", 1, {{2, {4, 5}}}},
    {"{}", 1, {{3, {2, 3, 17}}}},
    {"{\"mask\": \"input_1\"}", 2, {{2, {6, 5}}, {2, {6, 5}}}},
    {"{\"mask\": \"input_1\"}", 2, {{4, {3, 2, 3, 19}}, {2, {3, 19}}}},
    {0},
};

static const char *const named[] = {"mask", NULL};

const struct op op_softmax = {
    .object = {"softmax", "probabilities over the last axis", fields, sizeof(struct attributes)},
    .inputs_min = 1,
    .inputs_max = 1,
    .named_inputs = named,
    .reads_output = true,
    .infer = infer,
    .forward = forward,
    .backward = backward,
    .cases = cases,
};
