/* pairwise.c - see pairwise.h. */
#include "core/ops/losses/pairwise.h"

int64_t pairwise_columns(const struct loss_node *node)
{
    return shape_count_from(&node->logits->shape, 1);
}

/* With one number per example labels are [batch], not [batch, 1]. */
err pairwise_infer(struct loss_node *node, struct arena *arena)
{
    node->labels = (struct tensor){.dtype = FLOAT32, .shape = node->logits->shape};
    if (pairwise_columns(node) == 1) node->labels.shape.rank = 1;
    return OK;
}

double pairwise_weight(const struct loss_node *node, const void *labels, int64_t rows)
{
    return (double)(rows * pairwise_columns(node));
}

/* predictions and targets [rows, columns] */
struct regression pairwise_regression(const struct loss_node *node, int64_t rows, double delta)
{
    const int64_t columns = pairwise_columns(node);
    return (struct regression){
        .rows = rows,
        .columns = columns,
        .predictions = node->logits->value,
        .targets = node->labels.value,
        .delta = (float)delta,
        .scale = node->scale,
        .losses = node->losses,
        .gradient = node->logits->gradient,
    };
}

/* One number per example, several, and several axes of them. */
const struct op_case pairwise_cases[] = {
    {"{}", 1, {{2, {5, 1}}}},
    {"{}", 1, {{2, {4, 3}}}},
    {"{}", 1, {{3, {3, 2, 9}}}},
    {0},
};
