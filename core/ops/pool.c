/* pool.c - attributes, shape rule and test cases of pooling.
 *
 * Each channel is pooled separately: x [batch, y, x, channel] -> [batch, out_y, out_x, channel].
 */
#include "core/ops/pool.h"

#include <assert.h>

const struct field pool_fields[] = {
    FIELD_OF("pool_size", INTS, struct window_spec, kernel, .min = 1, .max = WINDOW_SIDE_MAX,
             .count_min = 1, .count_max = 2, .help = "size of the window: one number, or [y, x]"),
    FIELD_OF("strides", INTS, struct window_spec, strides, .fallback = "[]", .min = 1,
             .max = WINDOW_SIDE_MAX, .count_max = 2,
             .help = "stride of the window: one number, or [y, x]; none: pool_size"),
    FIELD_OF("padding", ENUM, struct window_spec, padding, .fallback = "\"valid\"",
             .choices = padding_names,
             .help = "valid: windows lie inside; same: every pixel is in a window"),
    {0},
};

/* Windows side by side; overlapping over a padded border; stride 1; and with remaining elements in
 * no window. */
const struct op_case pool_cases[] = {
    {"{\"pool_size\": 2}", 1, {{4, {2, 4, 6, 3}}}},
    {"{\"pool_size\": 3, \"strides\": 2, \"padding\": \"same\"}", 1, {{4, {2, 7, 6, 2}}}},
    {"{\"pool_size\": [2, 3], \"strides\": 1}", 1, {{4, {1, 4, 5, 17}}}},
    {"{\"pool_size\": 3, \"strides\": [2, 3], \"padding\": \"VALID\"}", 1, {{4, {2, 7, 8, 2}}}},
    {0},
};

/* With padding a window may extend beyond the image, but never lies wholly outside it. */
err pool_infer(struct node *node, struct arena *arena)
{
    const struct shape *x = &node->input[0]->shape;
    struct window2d w;
    TRY(window_make(node->attributes, x, &w));
    node->output.shape = (struct shape){4, {w.batch, w.out_y, w.out_x, x->dim[3]}};
    return OK;
}

/* The window is computed again in every pass, which is cheap and needs no state. */
struct pool2d pool_of(const struct node *node)
{
    const struct shape *x = &node->input[0]->shape;
    struct pool2d pool = {.channels = x->dim[3]};
    const err e = window_make(node->attributes, x, &pool.window);
    assert(!e); /* infer has accepted it */
    return pool;
}
