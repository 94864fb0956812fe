/* dot_interaction: the dot products of an example's vectors, each pair of two once: (1, 0), (2, 0),
 * (2, 1), (3, 0) ..., the triangle below the diagonal row by row. */
#include "core/ops/elementwise.h"

_Static_assert((int)INPUTS_MAX <= (int)INTERACTION_SOURCES_MAX);

/* Gradients are in it where the node has any. */
static struct interaction interaction_of(const struct node *node)
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

static err infer(struct node *node, struct arena *arena)
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

/* Of one input and of several; a single pair; widths beside those of registers */
static const struct op_case cases[] = {
    {"{}", 1, {{3, {3, 5, 4}}}},
    {"{}", 1, {{3, {2, 2, 17}}}},
    {"{}", 2, {{2, {4, 3}}, {2, {4, 3}}}},
    {"{}", 4, {{2, {2, 9}}, {2, {2, 9}}, {2, {2, 9}}, {2, {2, 9}}}},
    {0},
};

const struct op op_dot_interaction = {
    .object = {"dot_interaction",
               "dot products of an example's vectors: 1 and 0, 2 and 0, 2 and 1, ..."},
    .inputs_min = 1,
    .inputs_max = INPUTS_MAX,
    .reads_input = true,
    .infer = infer,
    .forward = forward,
    .backward = backward,
    .cases = cases,
};
