/* flatten: [batch, ...] as [batch, product of the rest]. A view. */
#include "core/graph/op.h"

/* [batch] becomes [batch, 1], as with tf.layers.flatten. */
static err infer(struct node *node, struct arena *arena)
{
    const struct shape *x = &node->input[0]->shape;
    node->output.shape = (struct shape){2, {x->dim[0], shape_count_from(x, 1)}};
    node->is_view = true;
    return OK;
}

/* From more than two, two and fewer dimensions. */
static const struct op_case cases[] = {
    {"{}", 1, {{4, {2, 3, 4, 5}}}},
    {"{}", 1, {{2, {3, 4}}}},
    {"{}", 1, {{1, {5}}}},
    {0},
};

const struct op op_flatten = {
    .object = {"flatten", "reshapes each example to one vector"},
    .inputs_min = 1,
    .inputs_max = 1,
    .infer = infer,
    .cases = cases,
};
