/* loops.c - see loops.h. */
#include "core/ops/algebra/loops.h"

#include <inttypes.h>

/* The axis of x aligned with an axis of y; 0: none, or the batch, with which no other axis is
 * aligned. */
static int axis_under(const struct shape *x, const struct shape *y, int axis)
{
    const int own = axis - (y->rank - x->rank);
    return axis == 0 || own < 1 ? 0 : own;
}

struct steps steps_of(const struct shape *x, const struct shape *y)
{
    struct steps steps = {{0}};
    for (int i = 0; i < y->rank; i++) {
        const int own = axis_under(x, y, i);
        const bool is_there = (i == 0 || own > 0) && x->dim[own] > 1;
        steps.at[i] = is_there ? shape_count_from(x, own + 1) : 0;
    }
    return steps;
}

err axis_of(const char *what, int64_t axis, const struct shape *shape, int *ret)
{
    const int64_t at = axis < 0 ? axis + shape->rank : axis;
    if (at < 1 || at >= shape->rank)
        return fail(ERR_INPUT, "%s: expected 1 to %d (or from -%d to -1), got %" PRId64, what,
                    shape->rank - 1, shape->rank - 1, axis);
    *ret = (int)at;
    return OK;
}

/* Broadcasts *y with x: in each axis both sizes are equal, or one is 1. false: they do not
 * match. */
static bool stretch(struct shape *y, const struct shape *x)
{
    struct shape longer = y->rank >= x->rank ? *y : *x;
    const struct shape *other = y->rank >= x->rank ? x : y;
    if (y->dim[0] != x->dim[0]) return false;
    for (int i = 1; i < longer.rank; i++) {
        const int own = axis_under(other, &longer, i);
        if (own == 0 || other->dim[own] == longer.dim[i] || other->dim[own] == 1) continue;
        if (longer.dim[i] != 1) return false;
        longer.dim[i] = other->dim[own];
    }
    *y = longer;
    return true;
}

err broadcast_infer(struct node *node, struct arena *arena)
{
    struct shape *y = &node->output.shape;
    *y = node->input[0]->shape;
    node->output.is_shares = node->input[0]->is_shares;
    for (int i = 1; i < node->input_count; i++) {
        const struct tensor *other = node->input[i];
        char a[SHAPE_TEXT_MAX], b[SHAPE_TEXT_MAX];
        shape_text(y, a);
        node->output.is_shares = node->output.is_shares && other->is_shares;
        if (!stretch(y, &other->shape))
            return fail(ERR_INPUT,
                        "inputs must have one shape, or axes of 1 that stretch to the other's, "
                        "counted from the last: \"%s\" is %s, \"%s\" is %s",
                        node->input[i - 1]->name, a, other->name, shape_text(&other->shape, b));
    }
    return shape_check(y);
}

void broadcast(struct device *d, enum fold_of of, const struct tensor *y, const struct tensor *a,
               const struct tensor *b)
{
    struct fold f = {of, .scale = 1, .y = y->value, .a = a->value, .b = b ? b->value : NULL};
    const struct steps own = steps_of(&y->shape, &y->shape), of_a = steps_of(&a->shape, &y->shape);
    const struct steps of_b = b ? steps_of(&b->shape, &y->shape) : (struct steps){{0}};
    for (int i = 0; i < y->shape.rank; i++)
        fold_axis(&f, y->shape.dim[i], own.at[i], of_a.at[i], of_b.at[i], 0);
    d->kernels->fold(d, &f);
}

void broadcast_back(const struct node *node, struct device *d, int i, const struct back *back)
{
    const struct shape *y = &node->output.shape;
    struct fold f = {back->of, .add = node->add[i] || back->is_more, .scale = back->scale};
    f.y = node->input[i]->gradient;
    if (!f.y) return;
    const struct steps to = steps_of(&node->input[i]->shape, y), own = steps_of(y, y);
    const struct steps of_a = back->a ? steps_of(&back->a->shape, y) : own;
    const struct steps of_b = back->b ? steps_of(&back->b->shape, y) : own;
    f.a = back->a ? back->a->value : back->a_value;
    f.b = back->b ? back->b->value : back->b_value;
    f.c = back->c;
    for (int k = 0; k < y->rank; k++)
        fold_axis(&f, y->dim[k], to.at[k], of_a.at[k], f.b ? of_b.at[k] : 0, f.c ? own.at[k] : 0);
    d->kernels->fold(d, &f);
}
