/* prelu: x above zero, alpha x below, with a trained alpha for each element of the last axis, as
 * tf.keras.layers.PReLU with all other axes shared. */
#include "core/ops/algebra/loops.h"
#include "core/ops/elementwise.h"

struct attributes {
    struct variant initializer;
};

static const struct field fields[] = {
    FIELD_OF("alpha_initializer", VARIANT, struct attributes, initializer, .fallback = "\"zeros\"",
             .kinds = &initializer_kinds, .help = "initializer of the slopes below zero"),
    {0},
};

static err infer(struct node *node, struct arena *arena)
{
    const struct attributes *a = node->attributes;
    const struct shape *x = &node->input[0]->shape;
    TRY(expect_columns(x));
    node->output.shape = *x;
    const struct param alpha = {.name = "alpha", .shape = {1, {x->dim[x->rank - 1]}}};
    return node_add_initialized(node, arena, &alpha, &a->initializer);
}

/* A fold over the rows of x, with alpha the same for each; y has stride 0 over rows where it is
 * their sum. */
static struct fold of_rows(const struct node *node, enum fold_of of)
{
    return (struct fold){of, .scale = 1, .a = node->input[0]->value};
}

static void run(const struct node *node, struct device *d, struct fold *f, bool sums_rows)
{
    const struct shape *x = &node->input[0]->shape;
    const int64_t columns = x->dim[x->rank - 1], rows = shape_count(x) / columns;
    fold_axis(f, rows, sums_rows ? 0 : columns, columns, 0, f->c ? columns : 0);
    fold_axis(f, columns, 1, 1, f->b ? 1 : 0, f->c ? 1 : 0);
    d->kernels->fold(d, f);
}

static void forward(const struct node *node, struct device *d)
{
    struct fold f = of_rows(node, FOLD_PRELU);
    f.b = node->param[0].value;
    f.y = node->output.value;
    run(node, d, &f, false);
}

static void backward(const struct node *node, struct device *d)
{
    struct fold to_x = of_rows(node, FOLD_PRELU_BACK), to_alpha = of_rows(node, FOLD_PRELU_SLOPE);
    to_x.b = node->param[0].value;
    to_x.c = to_alpha.c = node->output.gradient;
    to_x.y = node->input[0]->gradient;
    to_x.add = node->add[0];
    if (to_x.y) run(node, d, &to_x, false);
    to_alpha.y = node->param[0].gradient;
    to_alpha.add = node->add_params;
    run(node, d, &to_alpha, true);
}

static const struct op_case cases[] = {
    {"{}", 1, {{2, {4, 6}}}},
    {"{\"alpha_initializer\": {\"type\": \"constant\", \"value\": 0.25}}", 1, {{3, {2, 3, 17}}}},
    {"{}", 1, {{2, {4, 1}}}},
    {0},
};

const struct op op_prelu = {
    .object = {"prelu", "x above zero, alpha x below, with a trained alpha", fields,
               sizeof(struct attributes)},
    .inputs_min = 1,
    .inputs_max = 1,
    .reads_input = true,
    .infer = infer,
    .forward = forward,
    .backward = backward,
    .cases = cases,
};
