/* mask: 1 where an example has an id, 0 where there is none; y [batch, ...]. */
#include "core/graph/op.h"

static err infer(struct node *node, struct arena *arena)
{
    node->output.shape = node->input[0]->shape;
    node->output.is_shares = true;
    return OK;
}

static void forward(const struct node *node, struct device *d)
{
    const struct tensor *ids = node->input[0];
    d->kernels->ids_mask(d, node->output.value, ids->value, shape_count(&ids->shape));
}

/* Ids have no gradient. */
static void backward(const struct node *node, struct device *d)
{
}

static const struct op_case cases[] = {
    {"{}", 1, {{2, {5, 1}}}, 4},
    {"{}", 1, {{2, {4, 7}}}, 3},
    {0},
};

const struct op op_mask = {
    .object = {"mask", "1 at positions with an id, 0 behind the end of the list"},
    .inputs_min = 1,
    .inputs_max = 1,
    .reads_ids = true,
    .ids_as_are = true,
    .infer = infer,
    .forward = forward,
    .backward = backward,
    .cases = cases,
};
