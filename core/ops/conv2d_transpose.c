/* conv2d_transpose: the transposed convolution of tf.layers.conv2d_transpose: its forward pass is
 * the data gradient of a conv2d with the same window, which maps y's shape to x's, and its backward
 * pass that convolution. */
#include "core/ops/convolution.h"
#include "core/ops/layer.h"
#include "core/ops/window.h"

enum { SUMS, ADDED }; /* saved: by the layer; a gradient before it is added */

struct attributes {
    struct layer layer;
    int64_t filters;
    struct window_spec window;
};

static const struct field fields[] = {
    FILTERS_FIELD(struct attributes, filters),
    WINDOW_FIELDS(struct attributes, window),
    LAYER_FIELDS,
    {0},
};

/* The convolution that maps the output's shape to x's; y has rank 4. */
static err convolution_of(const struct node *node, struct conv2d *ret)
{
    const struct attributes *a = node->attributes;
    const int64_t channels = node->input[0]->shape.dim[3];
    *ret = (struct conv2d){.in_channels = a->filters, .out_channels = channels};
    return window_make(&a->window, &node->output.shape, &ret->window);
}

static err infer(struct node *node, struct arena *arena)
{
    const struct attributes *a = node->attributes;
    const struct shape *x = &node->input[0]->shape;
    char text[SHAPE_TEXT_MAX];
    struct conv2d conv;
    if (x->rank != 4)
        return fail(ERR_INPUT, "wants images of [batch, y, x, channel], got %s",
                    shape_text(x, text));
    node->output.shape = (struct shape){4,
                                        {x->dim[0], window_image_side(&a->window, x->dim[1], 0),
                                         window_image_side(&a->window, x->dim[2], 1), a->filters}};
    TRY(shape_check(&node->output.shape));
    TRY(convolution_of(node, &conv));
    if (node->training) node->saved[ADDED] = (struct tensor){.dtype = FLOAT32, .shape = *x};
    const struct window2d *w = &conv.window;
    TRY(layer_infer_kernel(node, arena, "kernel",
                           &(struct shape){4, {w->kernel_y, w->kernel_x, a->filters, x->dim[3]}}));
    return layer_infer_bias(node, arena, "bias", a->filters);
}

static size_t prepared_bytes(const struct node *node, struct device *d)
{
    return convolution_bytes(node, d, convolution_of);
}

static err prepare(struct node *node, struct device *d)
{
    return convolution_prepare(node, d, convolution_of);
}

static void forward(const struct node *node, struct device *d)
{
    d->kernels->conv2d_back_data(d, node->state, node->output.value, node->input[0]->value,
                                 layer_kernel(node), false);
    layer_finish(node, d, node->output.value);
}

static void backward(const struct node *node, struct device *d)
{
    const struct tensor *x = node->input[0];
    const float *dy = layer_backward(node, d);
    float *dx = node->add[0] ? node->saved[ADDED].value : x->gradient;
    d->kernels->conv2d_back_kernel(d, node->state, node->param[0].gradient, x->value, dy,
                                   node->add_params);
    if (!x->gradient) return;
    d->kernels->conv2d_forward(d, node->state, dx, dy, layer_kernel(node), NULL, NULL,
                               ACTIVATION_LINEAR, 0);
    if (node->add[0]) d->kernels->axpy(d, x->gradient, 1.0f, dx, shape_count(&x->shape));
}

static const struct op_case cases[] = {
    {"{\"filters\": 3, \"kernel_size\": 3, \"strides\": 2, \"padding\": \"same\"}",
     1,
     {{4, {2, 3, 4, 2}}}},
    {"{\"filters\": 2, \"kernel_size\": [3, 2], \"strides\": [1, 2]}", 1, {{4, {2, 3, 3, 3}}}},
    {"{\"filters\": 2, \"kernel_size\": 2, \"strides\": 3, \"activation\": \"swish\"}",
     1,
     {{4, {1, 2, 3, 3}}}},
    {"{\"filters\": 4, \"kernel_size\": 4, \"use_bias\": false}", 1, {{4, {2, 2, 2, 17}}}},
    {0},
};

const struct op op_conv2d_transpose = {
    .object = {"conv2d_transpose", "transposed 2-D convolution (upsampling), bias and activation",
               fields, sizeof(struct attributes)},
    .inputs_min = 1,
    .inputs_max = 1,
    .reads_input = true,
    .reads_output = true,
    .infer = infer,
    .prepare = prepare,
    .prepared_bytes = prepared_bytes,
    .release = convolution_release,
    .forward = forward,
    .backward = backward,
    .cases = cases,
};
