/* window.h - windows over images: output sizes and padding as in TensorFlow. */
#ifndef CORE_OPS_WINDOW_H
#define CORE_OPS_WINDOW_H

#include "core/graph/op.h"

enum padding { PADDING_VALID, PADDING_SAME, PADDING_COUNT };

/* Choices of a field: valid and same, in lower and upper case. The index modulo PADDING_COUNT is
 * enum padding. */
extern const char *const padding_names[];

/* Limits on images, which keep window arithmetic far from overflow. */
enum { WINDOW_SIDE_MAX = 65536, FILTERS_MAX = 1 << 20 };

/* As in a spec: one number for both directions, or [y, x]. */
struct window_spec {
    struct ints kernel, strides, dilation; /* no strides: the kernel's size; no dilation: 1 */
    int padding;                           /* index of padding_names */
};

/* Rows of the field table of a convolution; member: its struct window_spec */
#define WINDOW_FIELDS(of, member)                                                                  \
    {.name = "kernel_size",                                                                        \
     .type = FIELD_INTS,                                                                           \
     .offset = offsetof(of, member.kernel),                                                        \
     .min = 1,                                                                                     \
     .max = WINDOW_SIDE_MAX,                                                                       \
     .count_min = 1,                                                                               \
     .count_max = 2,                                                                               \
     .help = "size of the window: one number, or [y, x]"},                                         \
        {.name = "strides",                                                                        \
         .type = FIELD_INTS,                                                                       \
         .offset = offsetof(of, member.strides),                                                   \
         .fallback = "1",                                                                          \
         .min = 1,                                                                                 \
         .max = WINDOW_SIDE_MAX,                                                                   \
         .count_min = 1,                                                                           \
         .count_max = 2,                                                                           \
         .help = "stride of the window: one number, or [y, x]"},                                   \
    {                                                                                              \
        .name = "padding", .type = FIELD_ENUM, .offset = offsetof(of, member.padding),             \
        .fallback = "\"valid\"", .choices = padding_names,                                         \
        .help = "valid: windows lie inside; same: zeros around, so that stride 1 keeps the size"   \
    }
#define FILTERS_FIELD(of, member)                                                                  \
    {                                                                                              \
        .name = "filters", .type = FIELD_INT, .offset = offsetof(of, member), .min = 1,            \
        .max = FILTERS_MAX, .help = "channels of the output"                                       \
    }
#define DILATION_FIELD(of, member)                                                                 \
    {                                                                                              \
        .name = "dilation_rate", .type = FIELD_INTS, .offset = offsetof(of, member.dilation),      \
        .fallback = "1", .min = 1, .max = WINDOW_SIDE_MAX, .count_min = 1, .count_max = 2,         \
        .help = "dilation, the distance between elements of the window: one number, or [y, x]"     \
    }

/* Sets *ret for images of shape [batch, y, x, channel]. ERR_INPUT: another rank, or an image
 * smaller than the window. */
err window_make(const struct window_spec *, const struct shape *, struct window2d *ret);

/* In direction 0 (y) or 1 (x): the size of the image of a transposed convolution with this many
 * windows. With `same` it is windows times stride. */
int64_t window_image_side(const struct window_spec *, int64_t windows, int direction);

#endif
