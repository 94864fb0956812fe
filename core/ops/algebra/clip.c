/* clip.c - clip and scale: elementwise functions with constants from the spec. */
#include "core/ops/algebra/loops.h"

struct clip_attributes {
    double min, max;
};

struct scale_attributes {
    double factor, offset;
};

static const struct field clip_fields[] = {
    FIELD_OF("min", FLOAT, struct clip_attributes, min, .min = -1e38, .max = 1e38,
             .help = "lower bound"),
    FIELD_OF("max", FLOAT, struct clip_attributes, max, .min = -1e38, .max = 1e38,
             .help = "upper bound"),
    {0},
};

static const struct field scale_fields[] = {
    FIELD_OF("factor", FLOAT, struct scale_attributes, factor, .fallback = "1", .min = -1e30,
             .max = 1e30, .help = "factor of each element"),
    FIELD_OF("offset", FLOAT, struct scale_attributes, offset, .fallback = "0", .min = -1e30,
             .max = 1e30, .help = "added after the factor"),
    {0},
};

static err infer_clip(struct node *node, struct arena *arena)
{
    const struct clip_attributes *a = node->attributes;
    if (a->min > a->max) return fail(ERR_INPUT, "min: %g is more than max, %g", a->min, a->max);
    node->output.shape = node->input[0]->shape;
    node->output.is_shares = node->input[0]->is_shares || (a->min >= 0 && a->max <= 1);
    return OK;
}

static struct fold clip_of(const struct node *node, enum fold_of of)
{
    const struct clip_attributes *a = node->attributes;
    return (struct fold){of, .scale = 1, .low = (float)a->min, .high = (float)a->max,
                         .a = node->input[0]->value};
}

static void forward_clip(const struct node *node, struct device *d)
{
    struct fold f = clip_of(node, FOLD_CLIP);
    f.y = node->output.value;
    fold_axis(&f, shape_count(&node->output.shape), 1, 1, 0, 0);
    d->kernels->fold(d, &f);
}

/* As in TensorFlow, clipped elements get no gradient, those equal to a limit all of it. */
static void back_clip(const struct node *node, struct device *d)
{
    struct fold f = clip_of(node, FOLD_IF_WITHIN);
    f.y = node->input[0]->gradient;
    f.c = node->output.gradient;
    f.add = node->add[0];
    fold_axis(&f, shape_count(&node->output.shape), 1, 1, 0, 1);
    if (f.y) d->kernels->fold(d, &f);
}

static err infer_scale(struct node *node, struct arena *arena)
{
    node->output.shape = node->input[0]->shape;
    return OK;
}

static void forward_scale(const struct node *node, struct device *d)
{
    const struct scale_attributes *a = node->attributes;
    const int64_t count = shape_count(&node->output.shape);
    d->kernels->fill(d, node->output.value, (float)a->offset, count);
    d->kernels->axpy(d, node->output.value, (float)a->factor, node->input[0]->value, count);
}

static void back_scale(const struct node *node, struct device *d)
{
    const struct scale_attributes *a = node->attributes;
    const int64_t count = shape_count(&node->output.shape);
    float *dx = node->input[0]->gradient;
    if (dx && !node->add[0]) d->kernels->fill(d, dx, 0.0f, count);
    if (dx) d->kernels->axpy(d, dx, (float)a->factor, node->output.gradient, count);
}

static const struct op_case clip_cases[] = {
    {"{\"min\": -2, \"max\": 3}", 1, {{2, {3, 6}}}},
    {"{\"min\": -0.5, \"max\": 100}", 1, {{3, {2, 5, 7}}}},
    {0},
};

static const struct op_case scale_cases[] = {
    {"{\"factor\": 0.125}", 1, {{2, {3, 6}}}},
    {"{\"factor\": -2, \"offset\": 1}", 1, {{3, {2, 5, 7}}}},
    {0},
};

const struct op op_clip = {
    .object = {"clip", "limits x to min .. max", clip_fields, sizeof(struct clip_attributes)},
    .inputs_min = 1,
    .inputs_max = 1,
    .reads_input = true,
    .infer = infer_clip,
    .forward = forward_clip,
    .backward = back_clip,
    .cases = clip_cases,
};

const struct op op_scale = {
    .object = {"scale", "factor x + offset", scale_fields, sizeof(struct scale_attributes)},
    .inputs_min = 1,
    .inputs_max = 1,
    .infer = infer_scale,
    .forward = forward_scale,
    .backward = back_scale,
    .cases = scale_cases,
};
