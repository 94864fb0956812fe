/* lower_windows.c - convolutions and pooling. */
#include <string.h>

#include "cmd/export/lower.h"
#include "core/ops/window.h"

static err window_of(const struct node *node, const char *size, bool has_dilation,
                     struct window2d *ret)
{
    struct window_spec spec = {.kernel = *lower_ints(node, size),
                               .strides = *lower_ints(node, "strides"),
                               .padding = lower_enum(node, "padding")};
    if (has_dilation) spec.dilation = *lower_ints(node, "dilation_rate");
    return window_make(&spec, &node->input[0]->shape, ret);
}

/* A sequence is an image of height 1. Causal: all padding comes before it. */
static err window_of_steps(const struct node *node, struct window2d *ret)
{
    const struct shape *x = &node->input[0]->shape;
    const int padding = lower_enum(node, "padding");
    const bool is_causal = padding == 2 * PADDING_COUNT;
    int64_t kernel[] = {1, lower_int(node, "kernel_size")};
    int64_t strides[] = {1, lower_int(node, "strides")};
    int64_t dilation[] = {1, lower_int(node, "dilation_rate")};
    const int64_t before = is_causal ? (kernel[1] - 1) * dilation[1] : 0;
    const struct window_spec spec = {
        {kernel, 2}, {strides, 2}, {dilation, 2}, is_causal ? PADDING_VALID : padding};
    TRY(window_make(&spec, &(struct shape){4, {1, 1, x->dim[1] + before, x->dim[2]}}, ret));
    ret->in_x -= before;
    ret->pad_left += before;
    return OK;
}

/* x, kernel and y get an axis of size 1, to be a conv2d. */
static err lower_conv1d(struct lowering *l, int x, int *ret)
{
    struct program *p = l->program;
    const struct shape *steps = &p->values[x].shape, *out = &l->node->output.shape;
    struct program_value y = {.primitive = PRIMITIVE_CONV2D,
                              .input_count = 2,
                              .groups = 1,
                              .shape = {4, {1, 1, out->dim[1], out->dim[2]}}};
    int kernel;
    TRY(window_of_steps(l->node, &y.window));
    TRY(lower_param(l, 0, &kernel));
    const struct program_value k = p->values[kernel];
    const struct shape shape = {4, {1, k.shape.dim[0], k.shape.dim[1], k.shape.dim[2]}};
    y.inputs[0] = program_reshape(p, x, &(struct shape){4, {1, 1, steps->dim[1], steps->dim[2]}});
    y.inputs[1] = lower_constant(l, arena_format(p->arena, "%s/line", k.name), &shape, k.data);
    *ret = lower_shape(l, program_add(p, &y));
    return lower_layer_end(l, ret);
}

static err lower_pool(struct lowering *l, enum primitive primitive, int x, int *ret)
{
    struct program_value y = {
        .primitive = primitive, .inputs = {x}, .input_count = 1, .shape = l->node->output.shape};
    TRY(window_of(l->node, "pool_size", false, &y.window));
    *ret = program_add(l->program, &y);
    return OK;
}

/* A depthwise convolution has as many groups as channels. */
static err lower_depthwise(struct lowering *l, int x, int kernel, struct program_value *y)
{
    const struct shape *k = &l->program->values[kernel].shape;
    const struct shape grouped = {4, {k->dim[0], k->dim[1], 1, k->dim[2] * k->dim[3]}};
    y->groups = k->dim[2];
    y->shape.dim[3] = grouped.dim[3];
    y->inputs[0] = x;
    y->inputs[1] = program_constant(l->program, l->program->values[kernel].name, &grouped,
                                    l->program->values[kernel].data);
    return OK;
}

/* Inserts zeros after each pixel: [1, y, x, channels] to [1, y stride_y, x stride_x, channels] */
static int spread(struct program *p, int x, const struct window2d *w)
{
    const struct shape from = p->values[x].shape;
    const int64_t y = from.dim[1], columns = from.dim[2], channels = from.dim[3];
    const int64_t wide = columns * w->stride_x;
    struct program_value pad = {.primitive = PRIMITIVE_PAD, .input_count = 1};
    pad.inputs[0] = program_reshape(p, x, &(struct shape){4, {1, y * columns, 1, channels}});
    pad.shape = (struct shape){4, {1, y * columns, w->stride_x, channels}};
    const int apart = program_add(p, &pad);
    pad.inputs[0] = program_reshape(p, apart, &(struct shape){4, {1, y, 1, wide * channels}});
    pad.shape = (struct shape){4, {1, y, w->stride_y, wide * channels}};
    return program_reshape(p, program_add(p, &pad),
                           &(struct shape){4, {1, y * w->stride_y, wide, channels}});
}

/* [y, x, filters, channels] to [y, x, channels, filters], flipped along y and x */
static int turn_kernel(struct lowering *l, int kernel)
{
    const struct program_value k = l->program->values[kernel];
    const int64_t places = k.shape.dim[0] * k.shape.dim[1], filters = k.shape.dim[2];
    const int64_t channels = k.shape.dim[3];
    const struct shape shape = {4, {k.shape.dim[0], k.shape.dim[1], channels, filters}};
    float *turned = arena_array(l->program->arena, (size_t)shape_count(&k.shape), sizeof *turned);
    for (int64_t i = 0; i < places; i++)
        for (int64_t f = 0; f < filters; f++)
            for (int64_t c = 0; c < channels; c++)
                turned[(i * channels + c) * filters + f] =
                    k.data[((places - 1 - i) * filters + f) * channels + c];
    return lower_constant(l, arena_format(l->program->arena, "%s/turned", k.name), &shape, turned);
}

/* A transposed convolution: the image, spread by the strides, convolved with the flipped kernel */
static err lower_transposed(struct lowering *l, int x, int *ret)
{
    const struct window_spec spec = {.kernel = *lower_ints(l->node, "kernel_size"),
                                     .strides = *lower_ints(l->node, "strides"),
                                     .padding = lower_enum(l->node, "padding")};
    const struct shape *out = &l->node->output.shape;
    struct window2d w;
    int kernel;
    TRY(window_make(&spec, out, &w)); /* from the output to x */
    TRY(lower_param(l, 0, &kernel));
    struct program_value y = {
        .primitive = PRIMITIVE_CONV2D, .input_count = 2, .groups = 1, .shape = *out};
    y.inputs[0] = spread(l->program, x, &w);
    y.inputs[1] = turn_kernel(l, kernel);
    const struct shape *in = &l->program->values[y.inputs[0]].shape;
    y.window = (struct window2d){.batch = 1,
                                 .in_y = in->dim[1],
                                 .in_x = in->dim[2],
                                 .out_y = out->dim[1],
                                 .out_x = out->dim[2],
                                 .kernel_y = w.kernel_y,
                                 .kernel_x = w.kernel_x,
                                 .stride_y = 1,
                                 .stride_x = 1,
                                 .dilation_y = 1,
                                 .dilation_x = 1,
                                 .pad_top = w.kernel_y - 1 - w.pad_top,
                                 .pad_left = w.kernel_x - 1 - w.pad_left};
    y.window.pad_bottom = out->dim[1] + w.kernel_y - 1 - in->dim[1] - y.window.pad_top;
    y.window.pad_right = out->dim[2] + w.kernel_x - 1 - in->dim[2] - y.window.pad_left;
    *ret = program_add(l->program, &y);
    return lower_layer_end(l, ret);
}

err lower_windows(struct lowering *l, int *ret)
{
    const char *op = l->node->op->object.name;
    struct program_value y = {
        .primitive = PRIMITIVE_CONV2D, .input_count = 2, .shape = l->node->output.shape};
    int x, kernel, pointwise;
    TRY(lower_input(l, 0, &x));
    if (strcmp(op, "max_pool") == 0) return lower_pool(l, PRIMITIVE_MAX_POOL, x, ret);
    if (strcmp(op, "avg_pool") == 0) return lower_pool(l, PRIMITIVE_AVG_POOL, x, ret);
    if (strcmp(op, "conv1d") == 0) return lower_conv1d(l, x, ret);
    if (strcmp(op, "conv2d_transpose") == 0) return lower_transposed(l, x, ret);
    TRY(window_of(l->node, "kernel_size", true, &y.window));
    TRY(lower_param(l, 0, &kernel));
    y.inputs[0] = x;
    y.inputs[1] = kernel;
    if (strcmp(op, "conv2d") == 0)
        y.groups = lower_int(l->node, "groups");
    else
        TRY(lower_depthwise(l, x, kernel, &y));
    *ret = program_add(l->program, &y);
    if (strcmp(op, "separable_conv2d") == 0) {
        TRY(lower_param(l, 1, &pointwise));
        const struct shape *k = &l->program->values[pointwise].shape;
        const struct shape matrix = {2, {k->dim[2], k->dim[3]}};
        const struct program_value *of = &l->program->values[pointwise];
        pointwise = program_constant(l->program, of->name, &matrix, of->data);
        *ret = program_matmul(l->program, *ret, pointwise);
    }
    return lower_layer_end(l, ret);
}
