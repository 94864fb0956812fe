/* concat: concatenates 2 or more inputs along one axis, e.g. [batch, 3] and [batch, 5] to [batch,
 * 8]. */
#include "core/graph/op.h"

#include <inttypes.h>

struct attributes {
    int64_t axis;
};

static const struct field fields[] = {
    FIELD_OF("axis", INT, struct attributes, axis, .fallback = "-1", .min = -RANK_MAX,
             .max = RANK_MAX - 1, .help = "axis, counting the batch as 0; negative: from the end"),
    {0},
};

/* The axis counted from the front; outside of the shape if the spec's number is. */
static int axis_of(const struct node *node)
{
    const struct attributes *a = node->attributes;
    return (int)(a->axis < 0 ? a->axis + node->input[0]->shape.rank : a->axis);
}

/* Whether a and b are equal in every dimension but the axis. */
static bool fits(const struct shape *a, const struct shape *b, int axis)
{
    struct shape same = *b;
    if (a->rank != b->rank) return false;
    same.dim[axis] = a->dim[axis];
    return shape_equal(a, &same);
}

/* Not along axis 0, the batch. */
static err infer(struct node *node, struct arena *arena)
{
    const struct shape *first = &node->input[0]->shape;
    const int axis = axis_of(node);
    if (axis < 1 || axis >= first->rank)
        return fail(ERR_INPUT, "axis: expected 1 to %d (or from -%d to -1), got %" PRId64,
                    first->rank - 1, first->rank - 1,
                    ((const struct attributes *)node->attributes)->axis);

    node->output.shape = *first;
    for (int i = 1; i < node->input_count; i++) {
        const struct tensor *other = node->input[i];
        char a[SHAPE_TEXT_MAX], b[SHAPE_TEXT_MAX];
        if (!fits(first, &other->shape, axis))
            return fail(ERR_INPUT,
                        "inputs must be alike but for axis %d: \"%s\" is %s, \"%s\" is %s", axis,
                        node->input[0]->name, shape_text(first, a), other->name,
                        shape_text(&other->shape, b));
        node->output.shape.dim[axis] += other->shape.dim[axis];
    }
    return OK;
}

/* In each row of the output (everything from the axis on) input i has one contiguous part. */
static void forward(const struct node *node, struct device *d)
{
    const int axis = axis_of(node);
    const int64_t width = shape_count_from(&node->output.shape, axis);
    const int64_t rows = shape_count(&node->output.shape) / width;
    float *y = node->output.value;
    for (int i = 0; i < node->input_count; i++) {
        const int64_t columns = shape_count_from(&node->input[i]->shape, axis);
        d->kernels->copy_strided(
            d, &(struct strided){rows, columns, width, columns, y, node->input[i]->value});
        y += columns;
    }
}

/* Copies the same parts back. */
static void backward(const struct node *node, struct device *d)
{
    const int axis = axis_of(node);
    const int64_t width = shape_count_from(&node->output.shape, axis);
    const int64_t rows = shape_count(&node->output.shape) / width;
    const float *dy = node->output.gradient;
    for (int i = 0; i < node->input_count; i++) {
        const int64_t columns = shape_count_from(&node->input[i]->shape, axis);
        const struct strided part = {rows, columns, columns, width, node->input[i]->gradient, dy};
        if (part.dst && node->add[i]) d->kernels->add_strided(d, &part);
        if (part.dst && !node->add[i]) d->kernels->copy_strided(d, &part);
        dy += columns;
    }
}

/* The last axis, a middle one, and a negative one. */
static const struct op_case cases[] = {
    {"{}", 2, {{2, {3, 2}}, {2, {3, 4}}}},
    {"{\"axis\": 1}", 3, {{3, {2, 3, 4}}, {3, {2, 1, 4}}, {3, {2, 2, 4}}}},
    {"{\"axis\": -2}", 2, {{4, {2, 3, 2, 5}}, {4, {2, 3, 4, 5}}}},
    {0},
};

const struct op op_concat = {
    .object = {"concat", "inputs side by side along an axis", fields, sizeof(struct attributes)},
    .inputs_min = 2,
    .inputs_max = INPUTS_MAX,
    .infer = infer,
    .forward = forward,
    .backward = backward,
    .cases = cases,
};
