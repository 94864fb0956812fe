/* loss: the mean loss, without regularization. */
#include "core/graph/op.h"

/* Any loss will do. */
static err infer(struct metric_node *node, struct arena *arena)
{
    return OK;
}

/* The losses of the rows are there from the forward pass. */
static void update(const struct metric_node *node, struct device *d, int64_t rows, double *total,
                   double *count)
{
    const struct loss_node *loss = node->loss;
    *total += d->kernels->sum(d, loss->losses, rows);
    *count += loss->loss->weight(loss, d, rows);
}

const struct metric metric_loss = {
    .object = {"loss", "the mean loss"},
    .infer = infer,
    .update = update,
};
