/* elementwise.c - see elementwise.h. */
#include "core/ops/elementwise.h"

/* No broadcasting: different shapes are probably a mistake. */
err elementwise_infer(struct node *node, struct arena *arena)
{
    const struct shape *first = &node->input[0]->shape;
    for (int i = 1; i < node->input_count; i++) {
        const struct tensor *other = node->input[i];
        char a[SHAPE_TEXT_MAX], b[SHAPE_TEXT_MAX];
        if (!shape_equal(first, &other->shape))
            return fail(ERR_INPUT, "inputs must have one shape: \"%s\" is %s, \"%s\" is %s",
                        node->input[0]->name, shape_text(first, a), other->name,
                        shape_text(&other->shape, b));
    }
    node->output.shape = *first;
    return OK;
}

err expect_columns(const struct shape *x)
{
    char text[SHAPE_TEXT_MAX];
    if (x->rank >= 2) return OK;
    return fail(ERR_INPUT, "wants an input of [batch, ..., columns], got %s", shape_text(x, text));
}
