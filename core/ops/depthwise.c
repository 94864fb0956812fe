/* depthwise.c - depthwise_conv2d: each channel is convolved separately, with depth_multiplier
 * kernels; and separable_conv2d: the same followed by a 1 x 1 convolution over all channels, as
 * tf.layers.separable_conv2d. */
#include "core/ops/grouped.h"
#include "core/ops/layer.h"
#include "core/ops/window.h"

enum { MULTIPLIER_MAX = 1 << 16 };
enum { SUMS, PADDED, BETWEEN }; /* saved: by the layer; by grouped.h; for 1 x 1 */
enum { DEPTHWISE, POINTWISE };  /* params */

struct attributes {
    struct layer layer;
    int64_t multiplier, filters; /* filters 0: depthwise_conv2d */
    struct window_spec window;
};

#define COMMON_FIELDS                                                                              \
    {.name = "depth_multiplier",                                                                   \
     .type = FIELD_INT,                                                                            \
     .offset = offsetof(struct attributes, multiplier),                                            \
     .fallback = "1",                                                                              \
     .min = 1,                                                                                     \
     .max = MULTIPLIER_MAX,                                                                        \
     .help = "outputs of the depthwise convolution per input channel"},                            \
        WINDOW_FIELDS(struct attributes, window), DILATION_FIELD(struct attributes, window),       \
        LAYER_FIELDS

static const struct field depthwise_fields[] = {COMMON_FIELDS, {0}};

static const struct field separable_fields[] = {
    FILTERS_FIELD(struct attributes, filters),
    COMMON_FIELDS,
    {0},
};

static struct grouped grouped_of(const struct node *node)
{
    const struct attributes *a = node->attributes;
    const struct shape *x = &node->input[0]->shape;
    struct grouped g = {
        .groups = x->dim[3], .in = 1, .out = a->multiplier, .padded = node->saved[PADDED].value};
    (void)window_make(&a->window, x, &g.window); /* infer has accepted it */
    return g;
}

static err infer(struct node *node, struct arena *arena)
{
    const struct attributes *a = node->attributes;
    const struct shape *x = &node->input[0]->shape;
    struct window2d w;
    TRY(window_make(&a->window, x, &w));
    const int64_t made = x->dim[3] * a->multiplier, outputs = a->filters ? a->filters : made;
    const struct shape kernel = {4, {w.kernel_y, w.kernel_x, x->dim[3], a->multiplier}};
    const struct shape pointwise = {4, {1, 1, made, outputs}};
    node->output.shape = (struct shape){4, {w.batch, w.out_y, w.out_x, outputs}};
    node->saved[PADDED] = grouped_room(&w, x->dim[3]);
    TRY(layer_infer_kernel(node, arena, "depthwise_kernel", &kernel));
    if (a->filters) {
        node->saved[BETWEEN] =
            (struct tensor){.dtype = FLOAT32, .shape = {4, {w.batch, w.out_y, w.out_x, made}}};
        TRY(shape_check(&node->saved[BETWEEN].shape));
        TRY(layer_infer_kernel(node, arena, "pointwise_kernel", &pointwise));
    }
    return layer_infer_bias(node, arena, "bias", outputs);
}

/* The product over all channels: rows are pixels. */
static struct gemm pixels(const struct node *node)
{
    const struct shape *kernel = &node->param[POINTWISE].shape;
    return (struct gemm){.m = shape_count(&node->output.shape) / kernel->dim[3],
                         .n = kernel->dim[3],
                         .k = kernel->dim[2]};
}

static void forward(const struct node *node, struct device *d)
{
    const struct grouped g = grouped_of(node);
    const bool is_separable = node->saved[BETWEEN].shape.rank > 0;
    float *y = node->output.value, *made = is_separable ? node->saved[BETWEEN].value : y;
    grouped_forward(d, &g, made, node->input[0]->value, node->param[DEPTHWISE].value);
    if (is_separable) {
        struct gemm product = pixels(node);
        product.a = made;
        product.b = node->param[POINTWISE].value;
        product.c = y;
        d->kernels->gemm(d, &product);
    }
    layer_finish(node, d, y);
}

/* dpointwise = made' dy; then dmade = dy pointwise', which overwrites `made` */
static const float *back_pixels(const struct node *node, struct device *d, const float *dy)
{
    const struct gemm forward = pixels(node);
    float *made = node->saved[BETWEEN].value;
    d->kernels->gemm(d, &(struct gemm){.transpose_a = true,
                                       .add = node->add_params,
                                       .m = forward.k,
                                       .n = forward.n,
                                       .k = forward.m,
                                       .a = made,
                                       .b = dy,
                                       .c = node->param[POINTWISE].gradient});
    d->kernels->gemm(d, &(struct gemm){.transpose_b = true,
                                       .m = forward.m,
                                       .n = forward.k,
                                       .k = forward.n,
                                       .a = dy,
                                       .b = node->param[POINTWISE].value,
                                       .c = made});
    return made;
}

static void backward(const struct node *node, struct device *d)
{
    const struct grouped g = grouped_of(node);
    const struct tensor *x = node->input[0];
    const float *dy = layer_backward(node, d);
    if (node->saved[BETWEEN].shape.rank > 0) dy = back_pixels(node, d, dy);
    grouped_back_kernel(d, &g, node->param[DEPTHWISE].gradient, dy, x->value, node->add_params);
    if (x->gradient)
        grouped_back_data(d, &g, x->gradient, dy, node->param[DEPTHWISE].value, node->add[0]);
}

static const struct op_case depthwise_cases[] = {
    {"{\"kernel_size\": 3}", 1, {{4, {2, 5, 6, 3}}}},
    {"{\"kernel_size\": [3, 2], \"strides\": [2, 1], \"padding\": \"same\", \"depth_multiplier\": "
     "3}",
     1,
     {{4, {2, 5, 4, 2}}}},
    {"{\"kernel_size\": 2, \"dilation_rate\": 2, \"activation\": \"swish\"}",
     1,
     {{4, {2, 5, 4, 17}}}},
    {0},
};

static const struct op_case separable_cases[] = {
    {"{\"filters\": 4, \"kernel_size\": 3, \"padding\": \"same\"}", 1, {{4, {2, 5, 4, 3}}}},
    {"{\"filters\": 3, \"kernel_size\": 2, \"depth_multiplier\": 2, \"strides\": 2, "
     "\"activation\": "
     "\"gelu\"}",
     1,
     {{4, {2, 5, 4, 2}}}},
    {"{\"filters\": 2, \"kernel_size\": 3, \"use_bias\": false}", 1, {{4, {1, 4, 4, 3}}}},
    {0},
};

const struct op op_depthwise_conv2d = {
    .object = {"depthwise_conv2d", "depthwise 2-D convolution, bias and activation",
               depthwise_fields, sizeof(struct attributes)},
    .inputs_min = 1,
    .inputs_max = 1,
    .reads_output = true,
    .infer = infer,
    .forward = forward,
    .backward = backward,
    .cases = depthwise_cases,
};

const struct op op_separable_conv2d = {
    .object = {"separable_conv2d",
               "depthwise_conv2d followed by a 1 x 1 convolution, bias and activation",
               separable_fields, sizeof(struct attributes)},
    .inputs_min = 1,
    .inputs_max = 1,
    .reads_output = true,
    .infer = infer,
    .forward = forward,
    .backward = backward,
    .cases = separable_cases,
};
