/* lower_moves.c - ops that move numbers and compute nothing. */
#include <string.h>

#include "cmd/export/lower.h"

/* The attribute `axis`; negative ones count from the end of `rank` axes. */
static int axis_of(const struct node *node, int rank)
{
    const int64_t axis = lower_int(node, "axis");
    return (int)(axis < 0 ? axis + rank : axis);
}

static err lower_join(struct lowering *l, int *ret)
{
    struct program *p = l->program;
    const struct shape *y = &l->node->output.shape;
    const int axis = axis_of(l->node, y->rank);
    const bool stacks = strcmp(l->node->op->object.name, "stack") == 0;
    struct shape each = *y;
    int inputs[INPUTS_MAX];
    each.dim[axis] = 1;
    for (int i = 0; i < l->node->input_count; i++) {
        TRY(lower_input(l, i, &inputs[i]));
        if (stacks) inputs[i] = program_reshape(p, inputs[i], &each);
    }
    *ret = program_concat(p, inputs, l->node->input_count, axis);
    return OK;
}

static void lower_begin(const struct ints *from, struct program_value *y)
{
    for (int i = 0; i < from->count; i++) y->axes[i + 1] = from->at[i];
}

/* Repeats one axis after the other. -1: more copies than one concat takes, and no multiple of it */
static int lower_tile(struct lowering *l, int x)
{
    const struct ints *multiples = lower_ints(l->node, "multiples");
    for (int i = 0; i < multiples->count; i++) {
        int same[PROGRAM_INPUTS_MAX];
        for (int64_t left = multiples->at[i]; left > 1;) {
            const int count = left < PROGRAM_INPUTS_MAX ? (int)left : PROGRAM_INPUTS_MAX;
            if (left % count) return -1;
            for (int k = 0; k < count; k++) same[k] = x;
            x = program_concat(l->program, same, count, i + 1);
            left /= count;
        }
    }
    return x;
}

/* A crop, which is random in training, takes the middle here; an axis that becomes longer gets
 * zeros on both sides. */
static int lower_middle(struct lowering *l, int x)
{
    struct program *p = l->program;
    const struct shape from = p->values[x].shape, *to = &l->node->output.shape;
    struct program_value inner = {
        .primitive = PRIMITIVE_SLICE, .input_count = 1, .inputs = {x}, .shape = from};
    for (int i = 1; i < from.rank; i++) {
        if (to->dim[i] >= from.dim[i]) continue;
        inner.axes[i] = (from.dim[i] - to->dim[i]) / 2;
        inner.shape.dim[i] = to->dim[i];
    }
    if (!shape_equal(&inner.shape, &from)) x = program_add(p, &inner);
    struct program_value outer = {
        .primitive = PRIMITIVE_PAD, .input_count = 1, .inputs = {x}, .shape = *to};
    for (int i = 1; i < from.rank; i++)
        if (to->dim[i] > from.dim[i]) outer.axes[i] = (to->dim[i] - from.dim[i]) / 2;
    return shape_equal(&inner.shape, to) ? x : program_add(p, &outer);
}

err lower_moves(struct lowering *l, int *ret)
{
    const char *op = l->node->op->object.name;
    struct program_value y = {
        .primitive = PRIMITIVE_TRANSPOSE, .input_count = 1, .shape = l->node->output.shape};
    if (strcmp(op, "concat") == 0 || strcmp(op, "stack") == 0) return lower_join(l, ret);
    TRY(lower_input(l, 0, &y.inputs[0]));
    if (strcmp(op, "flatten") == 0 || strcmp(op, "reshape") == 0) {
        *ret = lower_shape(l, y.inputs[0]);
        return OK;
    }
    if (strcmp(op, "tile") == 0) {
        *ret = lower_tile(l, y.inputs[0]);
        return *ret < 0 ? lower_refuse("an axis is repeated too often") : OK;
    }
    if (strcmp(op, "augment") == 0) {
        *ret = lower_middle(l, y.inputs[0]);
        return OK;
    }
    if (strcmp(op, "transpose") == 0) lower_begin(lower_ints(l->node, "perm"), &y);
    if (strcmp(op, "slice") == 0) {
        y.primitive = PRIMITIVE_SLICE;
        lower_begin(lower_ints(l->node, "begin"), &y);
    }
    if (strcmp(op, "split") == 0) {
        const int axis = axis_of(l->node, y.shape.rank);
        y.primitive = PRIMITIVE_SLICE;
        y.axes[axis] = lower_int(l->node, "part") * y.shape.dim[axis];
    }
    if (strcmp(op, "pad") == 0) {
        y.primitive = PRIMITIVE_PAD;
        y.number = (float)lower_float(l->node, "value");
        lower_begin(lower_ints(l->node, "before"), &y);
    }
    *ret = program_add(l->program, &y);
    return OK;
}
