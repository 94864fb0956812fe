/* dot_interaction: the dot products of all pairs of an example's vectors: (1, 0), (2, 0), (2, 1),
 * (3, 0) ..., the triangle below the diagonal row by row. */
#include "core/ops/interactions/interaction.h"

static err infer(struct node *node, struct arena *arena)
{
    TRY(interaction_infer(node, arena));
    const struct interaction v = interaction_of(node);
    node->output.shape = (struct shape){2, {v.batch, interaction_pairs(&v)}};
    return OK;
}

static void forward(const struct node *node, struct device *d)
{
    const struct interaction v = interaction_of(node);
    d->kernels->dot_interaction(d, &v, node->output.value);
}

static void backward(const struct node *node, struct device *d)
{
    const struct interaction v = interaction_of(node);
    d->kernels->dot_interaction_back(d, &v, node->output.gradient);
}

const struct op op_dot_interaction = {
    .object = {"dot_interaction",
               "dot products of an example's vectors: 1 and 0, 2 and 0, 2 and 1, ..."},
    .inputs_min = 1,
    .inputs_max = INTERACTION_SOURCES_MAX,
    .reads_input = true,
    .infer = infer,
    .forward = forward,
    .backward = backward,
    .cases = interaction_cases,
};
