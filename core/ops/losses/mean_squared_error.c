/* mean_squared_error: the mean of (prediction - label)^2 over all elements. */
#include "core/ops/losses/pairwise.h"

static void forward(const struct loss_node *node, struct device *d, int64_t rows)
{
    const struct regression regression = pairwise_regression(node, rows, 0);
    d->kernels->squared_error(d, &regression);
}

const struct loss loss_mean_squared_error = {
    .object = {"mean_squared_error", "mean of the squared differences from the labels"},
    .predicts = PREDICTS_NUMBER,
    .labels = LABELS_ANY,
    .infer = pairwise_infer,
    .forward = forward,
    .weight = pairwise_weight,
    .cases = pairwise_cases,
};
