/* augment: random variations of images: a crop, also of other size and aspect ratio, mirroring,
 * brightness, contrast. The draw is a function of the seed, the node's name and the example's
 * position in the run, so that a resumed run draws the same; an evaluation takes the central
 * crop. */
#include "core/graph/op.h"

#include <inttypes.h>

enum { SIDE_MAX = 65536, PAD_MAX = 4096 };

struct attributes {
    struct ints crop;
    int64_t pad;
    struct floats area, aspect;
    bool flip;
    double brightness;
    struct floats contrast;
};

static const struct field fields[] = {
    FIELD_OF(
        "crop", INTS, struct attributes, crop, .fallback = "[]", .min = 1, .max = SIDE_MAX,
        .count_max = 2,
        .help =
            "size of the crop: one number, or [y, x]; at a random position in training, otherwise "
            "in the middle; smaller images are padded with zeros; []: the size of the image"),
    FIELD_OF("pad", INT, struct attributes, pad, .fallback = "0", .max = PAD_MAX,
             .help = "in training: zeros added on every side before cropping"),
    FIELD_OF("area", FLOATS, struct attributes, area, .fallback = "[]", .max = 1, .count_max = 2,
             .help = "in training: range [lower, upper] of the random fraction of an image's area "
                     "that is cut out, anywhere in it, and resized to crop, bilinearly; []: parts "
                     "of the size of the crop"),
    FIELD_OF("aspect", FLOATS, struct attributes, aspect, .fallback = "[0.75, 1.33333333]",
             .min = 1e-3, .max = 1e3, .count_min = 2, .count_max = 2,
             .help =
                 "with area: range [lower, upper] of the random proportions of the part, width / "
                 "height; a side that would be longer than the image is as long as the image"),
    FIELD_OF("flip", BOOL, struct attributes, flip, .fallback = "false",
             .help = "in training: mirror each image left to right with probability 1/2"),
    FIELD_OF("brightness", FLOAT, struct attributes, brightness, .fallback = "0", .max = 1e6,
             .help = "in training, add one random number from -brightness to brightness to a whole "
                     "image (TensorFlow's max_delta)"),
    FIELD_OF("contrast", FLOATS, struct attributes, contrast, .fallback = "[1, 1]", .max = 1e6,
             .count_min = 2, .count_max = 2,
             .help = "in training: range [lower, upper] of the random contrast factor, which "
                     "scales each channel's distance from its mean"),
    {0},
};

/* Size of the output in direction 0 (y) or 1 (x) */
static int64_t side(const struct node *node, int direction)
{
    const struct attributes *a = node->attributes;
    if (a->crop.count == 0) return node->input[0]->shape.dim[1 + direction];
    return a->crop.at[a->crop.count == 1 ? 0 : direction];
}

static err check_range(const char *name, const struct floats *range)
{
    if (range->at[0] <= range->at[1]) return OK;
    return fail(ERR_INPUT, "%s: expected [lower, upper], got [%g, %g]", name, range->at[0],
                range->at[1]);
}

static err infer(struct node *node, struct arena *arena)
{
    const struct attributes *a = node->attributes;
    const struct shape *x = &node->input[0]->shape;
    char text[SHAPE_TEXT_MAX];
    if (x->rank != 4)
        return fail(ERR_INPUT, "wants images of [batch, y, x, channel], got %s",
                    shape_text(x, text));
    TRY(check_range("contrast", &a->contrast));
    TRY(check_range("aspect", &a->aspect));
    if (a->area.count == 1 || (a->area.count == 2 && a->area.at[0] <= 0))
        return fail(ERR_INPUT, "area: expected [lower, upper], both above 0");
    if (a->area.count) TRY(check_range("area", &a->area));
    if (a->area.count && a->pad)
        return fail(ERR_INPUT, "pad: parts of a random area lie within the image: one of the two");
    for (int i = 0; i < 2; i++)
        if (side(node, i) > x->dim[1 + i] + 2 * a->pad)
            return fail(ERR_INPUT,
                        "crop: %" PRId64 " is more than %s has, with %" PRId64
                        " zeros on either side (pad)",
                        side(node, i), shape_text(x, text), a->pad);
    node->output.shape = (struct shape){4, {x->dim[0], side(node, 0), side(node, 1), x->dim[3]}};
    return OK;
}

static struct augment augment_of(const struct node *node)
{
    const struct attributes *a = node->attributes;
    const struct shape *x = &node->input[0]->shape, *y = &node->output.shape;
    return (struct augment){.batch = x->dim[0],
                            .in_y = x->dim[1],
                            .in_x = x->dim[2],
                            .out_y = y->dim[1],
                            .out_x = y->dim[2],
                            .channels = x->dim[3],
                            .pad = a->pad,
                            .draws = node->training,
                            .resizes = node->training && a->area.count == 2,
                            .area_low = a->area.count ? (float)a->area.at[0] : 0,
                            .area_high = a->area.count ? (float)a->area.at[1] : 0,
                            .aspect_low = (float)a->aspect.at[0],
                            .aspect_high = (float)a->aspect.at[1],
                            .flips = a->flip,
                            .brightness = (float)a->brightness,
                            .contrast_low = (float)a->contrast.at[0],
                            .contrast_high = (float)a->contrast.at[1],
                            .key = node->key,
                            .draw = node->draw,
                            .first = node->first_row};
}

static void forward(const struct node *node, struct device *d)
{
    const struct augment v = augment_of(node);
    d->kernels->augment(d, &v, node->output.value, node->input[0]->value);
}

static void backward(const struct node *node, struct device *d)
{
    const struct augment v = augment_of(node);
    float *dx = node->input[0]->gradient;
    if (dx) d->kernels->augment_back(d, &v, dx, node->output.gradient, node->add[0]);
}

static const struct op_case cases[] = {
    {"{\"crop\": 3, \"flip\": true}", 1, {{4, {3, 5, 4, 2}}}},
    {"{\"crop\": [4, 5], \"pad\": 2, \"brightness\": 0.5, \"contrast\": [0.2, 1.8]}",
     1,
     {{4, {2, 4, 5, 3}}}},
    {"{\"crop\": [3, 4], \"area\": [0.2, 1], \"flip\": true, \"contrast\": [0.2, 1.8]}",
     1,
     {{4, {3, 5, 4, 2}}}},
    {"{}", 1, {{4, {2, 2, 3, 1}}}},
    {0},
};

const struct op op_augment = {
    .object = {"augment", "random crop, size, flip, brightness and contrast of each image", fields,
               sizeof(struct attributes)},
    .inputs_min = 1,
    .inputs_max = 1,
    .infer = infer,
    .forward = forward,
    .backward = backward,
    .cases = cases,
};
