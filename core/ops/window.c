/* window.c - positions of windows in an image, by TensorFlow's rules of padding. */
#include "core/ops/window.h"

#include <inttypes.h>

const char *const padding_names[] = {"valid", "same", "VALID", "SAME", NULL};

/* A window in one direction. */
struct side {
    int64_t in, kernel, stride, dilation; /* given */
    int64_t out, before, after;           /* computed */
};

/* The number for direction 0 (y) or 1 (x) in a list of at most two. */
static int64_t pick(const struct ints *list, int direction, int64_t fallback)
{
    if (list->count == 0) return fallback;
    return list->at[list->count == 1 ? 0 : direction];
}

/* Without strides windows do not overlap, as in pooling. */
static struct side side_of(const struct window_spec *spec, int64_t in, int direction)
{
    const int64_t kernel = pick(&spec->kernel, direction, 1);
    return (struct side){
        .in = in,
        .kernel = kernel,
        .stride = pick(&spec->strides, direction, kernel),
        .dilation = pick(&spec->dilation, direction, 1),
    };
}

/* SAME: every input is in a window; if the padding is odd, the extra one comes after. */
static void complete(struct side *s, enum padding padding)
{
    const int64_t extent = (s->kernel - 1) * s->dilation + 1;
    if (padding == PADDING_VALID) {
        s->out = s->in < extent ? 0 : (s->in - extent) / s->stride + 1;
        return;
    }
    s->out = (s->in + s->stride - 1) / s->stride;
    const int64_t missing = (s->out - 1) * s->stride + extent - s->in;
    const int64_t total = missing > 0 ? missing : 0;
    s->before = total / 2;
    s->after = total - s->before;
}

int64_t window_image_side(const struct window_spec *spec, int64_t windows, int direction)
{
    const int64_t kernel = pick(&spec->kernel, direction, 1);
    const int64_t stride = pick(&spec->strides, direction, kernel);
    const bool is_valid = spec->padding % PADDING_COUNT == PADDING_VALID;
    return windows * stride + (is_valid && kernel > stride ? kernel - stride : 0);
}

err window_make(const struct window_spec *spec, const struct shape *shape, struct window2d *ret)
{
    char text[SHAPE_TEXT_MAX];
    shape_text(shape, text);
    if (shape->rank == 3)
        return fail(ERR_INPUT,
                    "wants images of [batch, y, x, channel], got %s: put {\"op\": \"reshape\", "
                    "\"shape\": [%" PRId64 ", %" PRId64 ", 1]} before it",
                    text, shape->dim[1], shape->dim[2]);
    if (shape->rank != 4)
        return fail(ERR_INPUT, "wants images of [batch, y, x, channel], got %s", text);

    const enum padding padding = (enum padding)(spec->padding % PADDING_COUNT);
    struct side y = side_of(spec, shape->dim[1], 0), x = side_of(spec, shape->dim[2], 1);
    complete(&y, padding);
    complete(&x, padding);
    if (y.out < 1 || x.out < 1)
        return fail(ERR_INPUT, "a window of %" PRId64 " x %" PRId64 " does not fit into %s",
                    (y.kernel - 1) * y.dilation + 1, (x.kernel - 1) * x.dilation + 1, text);

    *ret = (struct window2d){
        .batch = shape->dim[0],
        .in_y = y.in,
        .in_x = x.in,
        .out_y = y.out,
        .out_x = x.out,
        .kernel_y = y.kernel,
        .kernel_x = x.kernel,
        .stride_y = y.stride,
        .stride_x = x.stride,
        .dilation_y = y.dilation,
        .dilation_x = x.dilation,
        .pad_top = y.before,
        .pad_left = x.before,
        .pad_bottom = y.after,
        .pad_right = x.after,
    };
    return OK;
}
