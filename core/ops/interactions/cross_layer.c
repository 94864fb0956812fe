/* cross_layer: y = x0 * (x kernel + bias) + x with an elementwise product, of DCN v2. x0 is the
 * input of the first of several such layers, which reads it as x too.
 *
 * x0, x, y [batch, width], kernel [width, width], bias [width].
 */
#include "core/ops/elementwise.h"
#include "core/ops/layer.h"

static const struct field fields[] = {LAYER_LINEAR_FIELDS, {0}};

/* Backward needs the sums again. */
static err infer(struct node *node, struct arena *arena)
{
    TRY(elementwise_infer(node, arena));
    const struct shape *x = &node->output.shape;
    char text[SHAPE_TEXT_MAX];
    if (x->rank < 2)
        return fail(ERR_INPUT, "wants inputs of [batch, ..., width], got %s", shape_text(x, text));
    const int64_t width = x->dim[x->rank - 1];
    if (node->training) node->saved[0] = (struct tensor){.dtype = FLOAT32, .shape = *x};
    return layer_infer(node, arena, &(struct shape){2, {width, width}});
}

static void forward(const struct node *node, struct device *d)
{
    const struct shape *shape = &node->output.shape;
    const int64_t count = shape_count(shape), width = shape->dim[shape->rank - 1];
    float *y = node->output.value, *sums = node->training ? node->saved[0].value : y;
    layer_multiply(node, d, sums);
    if (layer_bias(node))
        d->kernels->bias_activate(d, sums, layer_bias(node), NULL, ACTIVATION_LINEAR, 0,
                                  count / width, width);
    d->kernels->multiply(d, y, sums, node->input[0]->value, count);
    d->kernels->add(d, y, y, node->input[node->input_count - 1]->value, count);
}

/* dx0 = dy * sums. With one input, x0 is x, and more is added to its gradient. */
static void back_first(const struct node *node, struct device *d)
{
    const float *dy = node->output.gradient, *sums = node->saved[0].value;
    const int64_t count = shape_count(&node->output.shape);
    float *dx = node->input[0]->gradient;
    if (dx && node->add[0])
        d->kernels->multiply_add(d, dx, dy, sums, count);
    else if (dx)
        d->kernels->multiply(d, dx, dy, sums, count);
}

/* The gradient of the sums, dy * x0, overwrites dy; dx = dy + the gradient through the product. */
static void backward(const struct node *node, struct device *d)
{
    const int last = node->input_count - 1;
    const int64_t count = shape_count(&node->output.shape);
    float *dy = node->output.gradient, *dx = node->input[last]->gradient;
    back_first(node, d);
    if (dx && (last == 0 || node->add[last]))
        d->kernels->axpy(d, dx, 1.0f, dy, count);
    else if (dx)
        d->kernels->copy(d, dx, dy, count);
    d->kernels->multiply(d, dy, dy, node->input[0]->value, count);
    layer_multiply_back(node, d, layer_backward(node, d), true);
}

/* The first layer, and a later one; wider than a vector register; without bias */
static const struct op_case cases[] = {
    {"{}", 1, {{2, {4, 5}}}},
    {"{}", 2, {{2, {3, 17}}, {2, {3, 17}}}},
    {"{\"use_bias\": false}", 2, {{3, {2, 3, 4}}, {3, {2, 3, 4}}}},
    {0},
};

const struct op op_cross_layer = {
    .object = {"cross_layer",
               "x0 (x kernel + bias) + x, of inputs x0 and x (one input: it is both)", fields,
               sizeof(struct layer)},
    .inputs_min = 1,
    .inputs_max = 2,
    .reads_input = true,
    .infer = infer,
    .forward = forward,
    .backward = backward,
    .cases = cases,
};
