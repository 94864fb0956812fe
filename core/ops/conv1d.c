/* conv1d: y[b, i, o] = activation(sum over u, c of x[b, i s + u r - p, c] kernel[u, c, o] +
 * bias[o]), with stride s, dilation r and padding p (zeros).
 *
 * Sequences [batch, time, channel] are treated as images of one row; the kernel is [time, in, out].
 * Causal: all of the padding comes before, so that an output depends on no later input.
 */
#include <inttypes.h>

#include "core/ops/convolution.h"
#include "core/ops/layer.h"
#include "core/ops/window.h"

enum { CAUSAL = 2 * PADDING_COUNT }; /* index in `paddings` */
static const char *const paddings[] = {"valid", "same", "VALID", "SAME", "causal", NULL};

struct attributes {
    struct layer layer;
    int64_t filters, kernel, stride, dilation;
    int padding;
};

static const struct field fields[] = {
    FILTERS_FIELD(struct attributes, filters),
    FIELD_OF("kernel_size", INT, struct attributes, kernel, .min = 1, .max = WINDOW_SIDE_MAX,
             .help = "steps of the window"),
    FIELD_OF("strides", INT, struct attributes, stride, .fallback = "1", .min = 1,
             .max = WINDOW_SIDE_MAX, .help = "steps from window to window"),
    FIELD_OF("dilation_rate", INT, struct attributes, dilation, .fallback = "1", .min = 1,
             .max = WINDOW_SIDE_MAX, .help = "distance between elements of the window"),
    FIELD_OF(
        "padding", ENUM, struct attributes, padding, .fallback = "\"valid\"", .choices = paddings,
        .help = "valid: windows lie inside; same: zeros around, so that stride 1 keeps the size; "
                "causal: zeros before, so that no step sees what comes after it"),
    LAYER_FIELDS,
    {0},
};

/* The window; causal padding is computed as an image with more zeros in front */
static err window_of(const struct node *node, struct window2d *ret)
{
    const struct attributes *a = node->attributes;
    const struct shape *x = &node->input[0]->shape;
    int64_t kernel[] = {1, a->kernel}, strides[] = {1, a->stride}, dilation[] = {1, a->dilation};
    const int64_t before = a->padding == CAUSAL ? (a->kernel - 1) * a->dilation : 0;
    const struct window_spec spec = {{kernel, 2},
                                     {strides, 2},
                                     {dilation, 2},
                                     a->padding == CAUSAL ? PADDING_VALID : a->padding};
    TRY(window_make(&spec, &(struct shape){4, {x->dim[0], 1, x->dim[1] + before, x->dim[2]}}, ret));
    ret->in_x -= before;
    ret->pad_left += before;
    return OK;
}

/* y [batch, out, filters] */
static err infer(struct node *node, struct arena *arena)
{
    const struct attributes *a = node->attributes;
    const struct shape *x = &node->input[0]->shape;
    char text[SHAPE_TEXT_MAX];
    struct window2d w;
    if (x->rank != 3)
        return fail(ERR_INPUT, "wants sequences of [batch, time, channel], got %s",
                    shape_text(x, text));
    if (a->padding % PADDING_COUNT == PADDING_VALID && a->padding != CAUSAL &&
        (a->kernel - 1) * a->dilation + 1 > x->dim[1])
        return fail(ERR_INPUT, "a window of %" PRId64 " steps does not fit into %s",
                    (a->kernel - 1) * a->dilation + 1, shape_text(x, text));
    TRY(window_of(node, &w));
    node->output.shape = (struct shape){3, {w.batch, w.out_x, a->filters}};
    return layer_infer(node, arena, &(struct shape){3, {a->kernel, x->dim[2], a->filters}});
}

static err convolution_of(const struct node *node, struct conv2d *ret)
{
    const struct attributes *a = node->attributes;
    *ret = (struct conv2d){.in_channels = node->input[0]->shape.dim[2], .out_channels = a->filters};
    return window_of(node, &ret->window);
}

static size_t prepared_bytes(const struct node *node, struct device *d)
{
    return convolution_bytes(node, d, convolution_of);
}

static err prepare(struct node *node, struct device *d)
{
    return convolution_prepare(node, d, convolution_of);
}

/* Every padding, with strides and dilations; a kernel wider than the sequence */
static const struct op_case cases[] = {
    {"{\"filters\": 3, \"kernel_size\": 3}", 1, {{3, {2, 7, 4}}}},
    {"{\"filters\": 2, \"kernel_size\": 4, \"strides\": 2, \"padding\": \"same\"}",
     1,
     {{3, {2, 7, 3}}}},
    {"{\"filters\": 17, \"kernel_size\": 2, \"dilation_rate\": 2, \"padding\": \"causal\", "
     "\"activation\": \"tanh\"}",
     1,
     {{3, {2, 6, 9}}}},
    {"{\"filters\": 2, \"kernel_size\": 5, \"strides\": 2, \"padding\": \"causal\", \"use_bias\": "
     "false}",
     1,
     {{3, {3, 3, 2}}}},
    {0},
};

const struct op op_conv1d = {
    .object = {"conv1d",
               "convolution over the steps of [batch, time, channel], bias and activation", fields,
               sizeof(struct attributes)},
    .inputs_min = 1,
    .inputs_max = 1,
    .reads_input = true,
    .reads_output = true,
    .infer = infer,
    .prepare = prepare,
    .prepared_bytes = prepared_bytes,
    .release = convolution_release,
    .forward = convolution_forward,
    .backward = convolution_backward,
    .cases = cases,
};
