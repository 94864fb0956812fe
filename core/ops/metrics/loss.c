/* loss: the mean loss, without regularization. The loss that is trained has its name wherever
 * values stand by their names. */
#include "core/graph/op.h"

/* Any loss will do. */
static err infer(struct metric_node *node, struct arena *arena)
{
    node->name = "mean_loss";
    return OK;
}

/* The losses of the rows are there from the forward pass. */
static void update(const struct metric_node *node, struct device *d, int64_t rows, double *state)
{
    const struct loss_node *loss = node->loss;
    state[0] += kernels_sum(d, loss->losses, rows);
    state[1] += loss->counts.counted;
}

const struct metric metric_loss = {
    .object = {"loss", "the mean loss without regularization, as \"mean_loss\""},
    .better = BETTER_LESS,
    .infer = infer,
    .update = update,
};
