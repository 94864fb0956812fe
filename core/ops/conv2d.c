/* conv2d: y[b, i, j, o] = activation(sum over u, v, c of x[b, i s + u r - p, j s + v r - p, c]
 * kernel[u, v, c, o] + bias[o]), with stride s, dilation r and padding p (zeros).
 *
 * Images are [batch, y, x, channel], the kernel is [y, x, in, out].
 */
#include <inttypes.h>

#include "core/ops/convolution.h"
#include "core/ops/grouped.h"
#include "core/ops/layer.h"
#include "core/ops/window.h"

enum { SUMS, PADDED }; /* saved: by the layer; with groups only */

struct attributes {
    struct layer layer;
    int64_t filters, groups;
    struct window_spec window;
};

static const struct field fields[] = {
    FILTERS_FIELD(struct attributes, filters),
    WINDOW_FIELDS(struct attributes, window),
    DILATION_FIELD(struct attributes, window),
    FIELD_OF(
        "groups", INT, struct attributes, groups, .fallback = "1", .min = 1, .max = FILTERS_MAX,
        .help = "number of groups that input and output channels are split into, each convolved "
                "separately"),
    LAYER_FIELDS,
    {0},
};

/* y [batch, out_y, out_x, filters] */
static err infer(struct node *node, struct arena *arena)
{
    const struct attributes *a = node->attributes;
    const struct shape *x = &node->input[0]->shape;
    struct window2d w;
    TRY(window_make(&a->window, x, &w));
    node->output.shape = (struct shape){4, {w.batch, w.out_y, w.out_x, a->filters}};
    if (x->dim[3] % a->groups || a->filters % a->groups)
        return fail(ERR_INPUT,
                    "groups: %" PRId64 " divides not both %" PRId64 " channels of the input and "
                    "%" PRId64 " filters",
                    a->groups, x->dim[3], a->filters);
    if (a->groups > 1) node->saved[PADDED] = grouped_room(&w, x->dim[3]);
    return layer_infer(
        node, arena,
        &(struct shape){4, {w.kernel_y, w.kernel_x, x->dim[3] / a->groups, a->filters}});
}

/* Whether the convolution is in groups; then sets *ret */
static bool grouped_of(const struct node *node, struct grouped *ret)
{
    const struct attributes *a = node->attributes;
    const struct shape *x = &node->input[0]->shape;
    *ret = (struct grouped){.groups = a->groups,
                            .in = x->dim[3] / a->groups,
                            .out = a->filters / a->groups,
                            .padded = node->saved[PADDED].value};
    return a->groups > 1 && !window_make(&a->window, x, &ret->window);
}

static err convolution_of(const struct node *node, struct conv2d *ret)
{
    const struct attributes *a = node->attributes;
    const struct shape *x = &node->input[0]->shape;
    struct conv2d conv = {.in_channels = x->dim[3], .out_channels = a->filters};
    TRY(window_make(&a->window, x, &conv.window));
    *ret = conv;
    return OK;
}

static size_t prepared_bytes(const struct node *node, struct device *d)
{
    struct grouped parts;
    return grouped_of(node, &parts) ? 0 : convolution_bytes(node, d, convolution_of);
}

static err prepare(struct node *node, struct device *d)
{
    struct grouped parts;
    return grouped_of(node, &parts) ? OK : convolution_prepare(node, d, convolution_of);
}

static void forward(const struct node *node, struct device *d)
{
    struct grouped parts;
    if (!grouped_of(node, &parts)) {
        convolution_forward(node, d);
        return;
    }
    grouped_forward(d, &parts, node->output.value, node->input[0]->value, layer_kernel(node));
    layer_finish(node, d, node->output.value);
}

static void backward(const struct node *node, struct device *d)
{
    const struct tensor *x = node->input[0];
    struct grouped parts;
    if (!grouped_of(node, &parts)) {
        convolution_backward(node, d);
        return;
    }
    const float *dy = layer_backward(node, d);
    grouped_back_kernel(d, &parts, node->param[0].gradient, dy, x->value, node->add_params);
    if (x->gradient)
        grouped_back_data(d, &parts, x->gradient, dy, layer_kernel(node), node->add[0]);
}

/* Both paddings, strides and dilations of one and of two numbers, channel counts that do not fill a
 * vector register, and every activation. */
static const struct op_case cases[] = {
    {"{\"filters\": 3, \"kernel_size\": 3}", 1, {{4, {2, 5, 6, 2}}}},
    {"{\"filters\": 2, \"kernel_size\": [3, 2], \"strides\": [2, 1], \"padding\": \"same\"}",
     1,
     {{4, {2, 5, 4, 3}}}},
    {"{\"filters\": 2, \"kernel_size\": 3, \"dilation_rate\": 2, \"padding\": \"SAME\"}",
     1,
     {{4, {1, 6, 5, 2}}}},
    {"{\"filters\": 2, \"kernel_size\": 3, \"dilation_rate\": [1, 2], \"strides\": 2}",
     1,
     {{4, {1, 6, 7, 2}}}},
    {"{\"filters\": 4, \"kernel_size\": 1, \"use_bias\": false}", 1, {{4, {2, 3, 3, 3}}}},
    {"{\"filters\": 6, \"kernel_size\": 3, \"groups\": 2, \"padding\": \"same\", \"strides\": 2}",
     1,
     {{4, {2, 5, 4, 4}}}},
    {"{\"filters\": 3, \"kernel_size\": 2, \"groups\": 3, \"activation\": \"swish\"}",
     1,
     {{4, {2, 4, 4, 6}}}},
    {"{\"filters\": 17, \"kernel_size\": 3, \"activation\": \"relu\"}", 1, {{4, {2, 4, 4, 9}}}},
    {"{\"filters\": 3, \"kernel_size\": 2, \"activation\": \"relu6\"}", 1, {{4, {2, 4, 3, 2}}}},
    {"{\"filters\": 3, \"kernel_size\": 2, \"activation\": \"elu\"}", 1, {{4, {2, 4, 3, 2}}}},
    {"{\"filters\": 3, \"kernel_size\": 2, \"activation\": \"leaky_relu\"}",
     1,
     {{4, {2, 4, 3, 2}}}},
    {"{\"filters\": 3, \"kernel_size\": 2, \"activation\": \"sigmoid\"}", 1, {{4, {2, 4, 3, 2}}}},
    {"{\"filters\": 3, \"kernel_size\": 2, \"activation\": \"tanh\"}", 1, {{4, {2, 4, 3, 2}}}},
    {"{\"filters\": 3, \"kernel_size\": 2, \"activation\": \"softplus\"}", 1, {{4, {2, 4, 3, 2}}}},
    {"{\"filters\": 3, \"kernel_size\": 2, \"activation\": \"swish\"}", 1, {{4, {2, 4, 3, 2}}}},
    {"{\"filters\": 3, \"kernel_size\": 2, \"activation\": \"gelu\"}", 1, {{4, {2, 4, 3, 2}}}},
    {"{\"filters\": 3, \"kernel_size\": 2, \"activation\": \"gelu_tanh\"}", 1, {{4, {2, 4, 3, 2}}}},
    {"{\"filters\": 3, \"kernel_size\": 2, \"activation\": \"selu\"}", 1, {{4, {2, 4, 3, 2}}}},
    {"{\"filters\": 3, \"kernel_size\": 2, \"activation\": \"softsign\"}", 1, {{4, {2, 4, 3, 2}}}},
    {0},
};

const struct op op_conv2d = {
    .object = {"conv2d", "2-D convolution, bias and activation", fields, sizeof(struct attributes)},
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
