/* absolute_difference: the mean of |prediction - label| over all elements; where they are equal,
 * the slope is 0. */
#include "core/ops/losses/composed.h"

static void forward(const struct loss_node *node, struct device *d, int64_t rows)
{
    const struct regression r = pairwise_regression(node, rows, 0);
    const int64_t n = r.rows * r.columns;
    float *difference = composed_first(node), *size = composed_second(node);
    d->kernels->copy(d, difference, r.predictions, n);
    d->kernels->axpy(d, difference, -1, r.targets, n);
    d->kernels->activate(d, size, difference, ACTIVATION_ABS, 0, n);
    composed_sum(node, d, rows, size);
    if (!r.gradient) return;
    d->kernels->fill(d, r.gradient, 0, n);
    d->kernels->regularize(d, r.gradient, difference, 1, 0, n); /* the sign */
    composed_scale(node, d, r.gradient, n);
}

const struct loss loss_absolute_difference = {
    .object = {"absolute_difference",
               "mean absolute difference from the labels, less sensitive to outliers"},
    .predicts = PREDICTS_NUMBER,
    .labels = LABELS_ANY,
    .infer = pairwise_infer,
    .prepare = composed_prepare,
    .prepared_bytes = composed_bytes,
    .release = composed_release,
    .forward = forward,
    .weight = pairwise_weight,
    .cases = pairwise_cases,
};
