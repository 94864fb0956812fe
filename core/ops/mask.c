/* mask.c - see mask.h. */
#include "core/ops/mask.h"

#include <inttypes.h>

const struct tensor *mask_of(const struct node *node)
{
    return node_named(node, MASK_INPUT);
}

err mask_check(const struct node *node, int64_t places)
{
    const struct tensor *mask = mask_of(node);
    char text[SHAPE_TEXT_MAX];
    if (!mask) return OK;
    if (mask->shape.rank == 2 && mask->shape.dim[1] == places) return OK;
    return fail(ERR_INPUT,
                "mask: expected [batch, %" PRId64 "], a number for each place of the axis: \"%s\" "
                "is %s",
                places, mask->name, shape_text(&mask->shape, text));
}

struct steps mask_steps(const struct shape *x, int axis)
{
    struct steps steps = {{0}};
    steps.at[0] = x->dim[axis];
    steps.at[axis] = 1;
    return steps;
}

void mask_apply(const struct node *node, struct device *d, const struct fold *of,
                const struct shape *x, int axis)
{
    struct fold f = *of;
    const struct steps own = steps_of(x, x), mask = mask_steps(x, axis);
    f.b = mask_of(node)->value;
    f.scale = 1;
    for (int i = 0; i < x->rank; i++) fold_axis(&f, x->dim[i], own.at[i], own.at[i], mask.at[i], 0);
    d->kernels->fold(d, &f);
}

void mask_backward(const struct node *node, struct device *d)
{
    const struct tensor *mask = mask_of(node);
    if (mask && mask->gradient && !node->add[node->named[MASK_INPUT]])
        d->kernels->fill(d, mask->gradient, 0.0f, shape_count(&mask->shape));
}
