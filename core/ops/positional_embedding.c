/* positional_embedding: x [batch, positions, ...] plus a trained vector for each position. */
#include "core/ops/algebra/loops.h"

struct attributes {
    struct variant initializer;
};

static const struct field fields[] = {
    FIELD_OF("initializer", VARIANT, struct attributes, initializer,
             .fallback = "{\"type\": \"random_normal\", \"stddev\": 0.02}",
             .kinds = &initializer_kinds, .help = "initializer of the vectors"),
    {0},
};

/* The variable has the shape of one example */
static err infer(struct node *node, struct arena *arena)
{
    const struct attributes *a = node->attributes;
    const struct shape *x = &node->input[0]->shape;
    char text[SHAPE_TEXT_MAX];
    if (x->rank < 3)
        return fail(ERR_INPUT, "inputs: expected [batch, places, numbers], \"%s\" is %s",
                    node->input[0]->name, shape_text(x, text));
    node->output.shape = *x;
    const struct param embeddings = {.name = "embeddings", .shape = shape_from(x, 1)};
    return node_add_initialized(node, arena, &embeddings, &a->initializer);
}

static void forward(const struct node *node, struct device *d)
{
    const struct tensor *x = node->input[0];
    const int64_t n = shape_count_from(&x->shape, 1);
    struct fold f = {FOLD_ADD, .scale = 1, .y = node->output.value, .a = x->value,
                     .b = node->param[0].value};
    fold_axis(&f, x->shape.dim[0], n, n, 0, 0);
    fold_axis(&f, n, 1, 1, 1, 0);
    d->kernels->fold(d, &f);
}

static void backward(const struct node *node, struct device *d)
{
    const struct tensor *x = node->input[0];
    const int64_t n = shape_count_from(&x->shape, 1);
    const float *dy = node->output.gradient;
    d->kernels->sum_rows(d, node->param[0].gradient, dy, x->shape.dim[0], n, node->add_params);
    broadcast_back(node, d, 0, &(struct back){FOLD_A, .a_value = dy, .scale = 1});
}

static const struct op_case cases[] = {
    {"{}", 1, {{3, {4, 3, 5}}}},
    {"{\"initializer\": \"zeros\"}", 1, {{4, {2, 3, 2, 5}}}},
    {0},
};

const struct op op_positional_embedding = {
    .object = {"positional_embedding", "x plus a trained vector for each place of a sequence",
               fields, sizeof(struct attributes)},
    .inputs_min = 1,
    .inputs_max = 1,
    .infer = infer,
    .forward = forward,
    .backward = backward,
    .cases = cases,
};
