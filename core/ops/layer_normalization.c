/* layer_normalization: each vector of the last axis, normalized to mean 0 and variance 1, times
 * gamma, plus beta. */
#include "core/ops/algebra/loops.h"
#include "core/ops/elementwise.h"

struct attributes {
    double epsilon;
};

static const struct field fields[] = {
    FIELD_OF("epsilon", FLOAT, struct attributes, epsilon, .fallback = "1e-3", .min = 1e-12,
             .max = 1, .help = "added to the variance (Keras: 1e-3; tf.contrib.layers: 1e-12)"),
    {0},
};

enum { GAMMA, BETA };     /* params */
enum { NORMAL, INVERSE }; /* saved: the normalized x; 1 / standard deviation */

static err infer(struct node *node, struct arena *arena)
{
    const struct shape *x = &node->input[0]->shape;
    TRY(expect_columns(x));
    const int64_t columns = x->dim[x->rank - 1], rows = shape_count(x) / columns;
    const struct variant ones = initializer_named("ones"), zeros = initializer_named("zeros");
    const struct param gamma = {.name = "gamma", .shape = {1, {columns}}};
    const struct param beta = {.name = "beta", .shape = {1, {columns}}};
    TRY(node_add_initialized(node, arena, &gamma, &ones));
    TRY(node_add_initialized(node, arena, &beta, &zeros));
    node->output.shape = *x;
    node->saved[NORMAL] = (struct tensor){.dtype = FLOAT32, .shape = *x};
    node->saved[INVERSE] = (struct tensor){.dtype = FLOAT32, .shape = {1, {rows}}};
    return OK;
}

static struct layer_norm layer_norm_of(const struct node *node)
{
    const struct attributes *a = node->attributes;
    const struct tensor *x = node->input[0], *y = &node->output;
    const int64_t columns = x->shape.dim[x->shape.rank - 1];
    return (struct layer_norm){.rows = shape_count(&x->shape) / columns,
                               .columns = columns,
                               .epsilon = (float)a->epsilon,
                               .x = x->value,
                               .gamma = node->param[GAMMA].value,
                               .beta = node->param[BETA].value,
                               .y = y->value,
                               .normal = node->saved[NORMAL].value,
                               .inverse = node->saved[INVERSE].value,
                               .dy = y->gradient,
                               .dx = x->gradient,
                               .add = node->add[0]};
}

static void forward(const struct node *node, struct device *d)
{
    const struct layer_norm v = layer_norm_of(node);
    d->kernels->layer_norm(d, &v);
}

static void backward(const struct node *node, struct device *d)
{
    const struct layer_norm v = layer_norm_of(node);
    struct fold products = {FOLD_MULTIPLY, .add = node->add_params,
                            .scale = 1,    .y = node->param[GAMMA].gradient,
                            .a = v.dy,     .b = v.normal};
    fold_axis(&products, v.rows, 0, v.columns, v.columns, 0);
    fold_axis(&products, v.columns, 1, 1, 1, 0);
    d->kernels->fold(d, &products);
    d->kernels->sum_rows(d, node->param[BETA].gradient, v.dy, v.rows, v.columns, node->add_params);
    if (v.dx) d->kernels->layer_norm_back(d, &v);
}

static const struct op_case cases[] = {
    {"{}", 1, {{2, {4, 6}}}},
    {"{\"epsilon\": 0.01}", 1, {{3, {2, 3, 37}}}},
    {0},
};

const struct op op_layer_normalization = {
    .object = {"layer_normalization",
               "normalizes each vector of the last axis to mean 0 and standard deviation 1", fields,
               sizeof(struct attributes)},
    .inputs_min = 1,
    .inputs_max = 1,
    .infer = infer,
    .forward = forward,
    .backward = backward,
    .cases = cases,
};
