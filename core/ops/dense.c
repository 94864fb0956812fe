/* dense: y = activation(x kernel + bias), on the last axis of x as tf.layers.dense.
 *
 * x [rows, columns], kernel [columns, units], bias [units], y [rows, units]. All axes of x but the
 * last are rows, so [batch, time, columns] works too.
 */
#include "core/ops/elementwise.h"
#include "core/ops/layer.h"

/* A row of outputs of 64 MiB: more is probably a mistake. */
enum { UNITS_MAX = 1 << 24 };

struct attributes {
    struct layer layer;
    int64_t units;
};

static const struct field fields[] = {
    FIELD_OF("units", INT, struct attributes, units, .min = 1, .max = UNITS_MAX,
             .help = "outputs per example"),
    LAYER_FIELDS,
    {0},
};

/* The kernel is [columns of x, units]; all other axes of x are rows. */
static err infer(struct node *node, struct arena *arena)
{
    const struct attributes *a = node->attributes;
    const struct shape *x = &node->input[0]->shape;
    TRY(expect_columns(x));
    const int64_t columns = x->dim[x->rank - 1];
    node->output.shape = *x;
    node->output.shape.dim[x->rank - 1] = a->units;
    return layer_infer(node, arena, &(struct shape){2, {columns, a->units}});
}

/* For a linear layer without bias, the product is the output. */
static void forward(const struct node *node, struct device *d)
{
    layer_multiply(node, d, node->output.value);
    layer_finish(node, d, node->output.value);
}

static void backward(const struct node *node, struct device *d)
{
    const float *dy = layer_backward(node, d);
    layer_multiply_back(node, d, dy, node->add[0]);
}

/* With and without bias, on more than two axes, wider than a vector register, and every activation,
 * since each has its own backward. */
static const struct op_case cases[] = {
    {"{\"units\": 3}", 1, {{2, {4, 5}}}},
    {"{\"units\": 2, \"use_bias\": false}", 1, {{3, {2, 3, 4}}}},
    {"{\"units\": 4, \"use_bias\": false, \"activation\": \"tanh\"}", 1, {{2, {3, 2}}}},
    {"{\"units\": 20, \"activation\": \"relu\"}", 1, {{2, {5, 17}}}},
    {"{\"units\": 3, \"activation\": \"relu6\"}", 1, {{2, {4, 5}}}},
    {"{\"units\": 3, \"activation\": \"elu\"}", 1, {{2, {4, 5}}}},
    {"{\"units\": 3, \"activation\": \"leaky_relu\"}", 1, {{2, {4, 5}}}},
    {"{\"units\": 3, \"activation\": \"sigmoid\"}", 1, {{2, {4, 5}}}},
    {"{\"units\": 3, \"activation\": \"tanh\"}", 1, {{2, {4, 5}}}},
    {"{\"units\": 3, \"activation\": \"softplus\"}", 1, {{2, {4, 5}}}},
    {"{\"units\": 3, \"activation\": \"swish\"}", 1, {{2, {4, 5}}}},
    {"{\"units\": 3, \"activation\": \"gelu\"}", 1, {{2, {4, 5}}}},
    {"{\"units\": 3, \"activation\": \"gelu_tanh\"}", 1, {{2, {4, 5}}}},
    {"{\"units\": 3, \"activation\": \"selu\"}", 1, {{2, {4, 5}}}},
    {"{\"units\": 3, \"activation\": \"softsign\"}", 1, {{2, {4, 5}}}},
    {0},
};

const struct op op_dense = {
    .object = {"dense", "activation(x kernel + bias)", fields, sizeof(struct attributes)},
    .inputs_min = 1,
    .inputs_max = 1,
    .reads_input = true,
    .reads_output = true,
    .infer = infer,
    .forward = forward,
    .backward = backward,
    .cases = cases,
};
