/* factorization_machine: the sum of the dot products of all pairs of an example's vectors: half of
 * (the square of their sum - the sum of their squares). */
#include "core/ops/interactions/interaction.h"

static err infer(struct node *node, struct arena *arena)
{
    TRY(interaction_infer(node, arena));
    node->output.shape = (struct shape){2, {node->input[0]->shape.dim[0], 1}};
    return OK;
}

static void forward(const struct node *node, struct device *d)
{
    const struct interaction v = interaction_of(node);
    d->kernels->factorization_machine(d, &v, node->output.value);
}

static void backward(const struct node *node, struct device *d)
{
    const struct interaction v = interaction_of(node);
    d->kernels->factorization_machine_back(d, &v, node->output.gradient);
}

const struct op op_factorization_machine = {
    .object = {"factorization_machine",
               "sum of the dot products of all pairs of an example's vectors"},
    .inputs_min = 1,
    .inputs_max = INTERACTION_SOURCES_MAX,
    .reads_input = true,
    .infer = infer,
    .forward = forward,
    .backward = backward,
    .cases = interaction_cases,
};
