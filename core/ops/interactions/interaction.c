/* interaction.c - see interaction.h. */
#include "core/ops/interactions/interaction.h"

#include "core/ops/elementwise.h"

struct interaction interaction_of(const struct node *node)
{
    const struct shape *x = &node->input[0]->shape;
    const bool is_one = node->input_count == 1;
    struct interaction v = {.batch = x->dim[0],
                            .vectors = is_one ? x->dim[1] : node->input_count,
                            .width = x->dim[x->rank - 1],
                            .sources = node->input_count};
    for (int i = 0; i < node->input_count; i++) {
        v.x[i] = node->input[i]->value;
        v.dx[i] = node->input[i]->gradient;
        v.add[i] = node->add[i];
    }
    return v;
}

err interaction_infer(struct node *node, struct arena *arena)
{
    const struct shape *x = &node->input[0]->shape;
    char text[SHAPE_TEXT_MAX];
    if (x->rank != (node->input_count == 1 ? 3 : 2))
        return fail(ERR_INPUT,
                    "wants one input of [batch, vectors, width] or several of [batch, width], got "
                    "%d of %s",
                    node->input_count, shape_text(x, text));
    TRY(elementwise_infer(node, arena));
    if (node->input_count == 1 && (x->dim[1] < 2 || x->dim[1] > INT32_MAX))
        return fail(ERR_INPUT, "wants 2 vectors or more, below 2^31, got %s", shape_text(x, text));
    return OK;
}

const struct op_case interaction_cases[] = {
    {"{}", 1, {{3, {3, 5, 4}}}},
    {"{}", 1, {{3, {2, 2, 17}}}},
    {"{}", 2, {{2, {4, 3}}, {2, {4, 3}}}},
    {"{}", 4, {{2, {2, 9}}, {2, {2, 9}}, {2, {2, 9}}, {2, {2, 9}}}},
    {0},
};
