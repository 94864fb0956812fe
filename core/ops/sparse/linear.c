/* linear: y [batch, units] = bias + the weights of all ids of an example, from one table for each
 * column: the wide part of a model. */
#include "core/ops/sparse/combine.h"

#include <string.h>

enum { UNITS_MAX = 1 << 20 };

struct attributes {
    int64_t units;
    struct row_regularizer regularizer;
    struct capacity capacity;
};

static const struct field fields[] = {
    FIELD_OF("units", INT, struct attributes, units, .fallback = "1", .min = 1, .max = UNITS_MAX,
             .help = "outputs per example"),
    ROW_REGULARIZER_FIELD(offsetof(struct attributes, regularizer)),
    CAPACITY_FIELDS(offsetof(struct attributes, capacity)),
    {0},
};

/* Each table of weights is named after its column. */
static err infer_weights(struct node *node, struct arena *arena, int i, const struct param *zeros)
{
    const struct attributes *a = node->attributes;
    for (int k = 0; k < i; k++)
        if (strcmp(node->input[k]->name, node->input[i]->name) == 0)
            return fail(ERR_INPUT, "inputs: \"%s\" is there twice", node->input[i]->name);
    struct param weights = *zeros;
    row_regularizer_apply(&a->regularizer, &weights);
    TRY(capacity_growth(&a->capacity, &weights.growth));
    weights.name = arena_format(arena, "%s/weights", node->input[i]->name);
    return combine_add_table(node, arena, i, &weights, a->units);
}

static err infer(struct node *node, struct arena *arena)
{
    const struct attributes *a = node->attributes;
    node->output.shape = (struct shape){2, {node->input[0]->shape.dim[0], a->units}};
    const struct param zeros = {.name = "bias",
                                .shape = {1, {a->units}},
                                .initializer = initializer_named("zeros").kind->descriptor};
    for (int i = 0; i < node->input_count; i++) TRY(infer_weights(node, arena, i, &zeros));
    return node_add_param(node, arena, &zeros);
}

static void forward(const struct node *node, struct device *d)
{
    const struct shape *y = &node->output.shape;
    for (int i = 0; i < node->input_count; i++) combine_forward(node, d, i, COMBINER_SUM, i > 0);
    d->kernels->bias_activate(d, node->output.value, node->param[node->input_count].value, NULL,
                              ACTIVATION_LINEAR, 0, y->dim[0], y->dim[1]);
}

static void backward(const struct node *node, struct device *d)
{
    const struct shape *y = &node->output.shape;
    for (int i = 0; i < node->input_count; i++) combine_backward(node, d, i, COMBINER_SUM);
    d->kernels->sum_rows(d, node->param[node->input_count].gradient, node->output.gradient,
                         y->dim[0], y->dim[1], node->add_params);
}

/* One column; several, of one id and more; with weights */
static const struct op_case cases[] = {
    {"{}", 1, {{2, {5, 1}}}, 4},
    {"{}", 3, {{2, {5, 1}}, {2, {5, 3}}, {2, {5, 2}}}, 4},
    {"{\"units\": 3}", 2, {{2, {6, 3}}, {2, {6, 3}}}, 5, true},
    {0},
};

const struct op op_linear = {
    .object = {"linear", "sum of the weights of an example's ids over all columns, and a bias",
               fields, sizeof(struct attributes)},
    .inputs_min = 1,
    .inputs_max = INPUTS_MAX,
    .reads_ids = true,
    .reads_input = true,
    .infer = infer,
    .forward = forward,
    .backward = backward,
    .cases = cases,
};
