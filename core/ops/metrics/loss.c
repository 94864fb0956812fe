/* loss: the mean loss, without regularization. Its name is "mean_loss", as "loss" is the training
 * loss. */
#include "core/graph/op.h"

/* Any loss will do. */
static err infer(struct metric_node *node, struct arena *arena)
{
    node->name = "mean_loss";
    return OK;
}

/* The forward pass has computed the losses of the rows. */
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
