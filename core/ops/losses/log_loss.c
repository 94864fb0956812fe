/* log_loss: the mean over all elements of -z log(p + epsilon) - (1 - z) log(1 - p + epsilon), for
 * probabilities p and labels z of 0 or 1. */
#include "core/ops/losses/pairwise.h"

struct attributes {
    double epsilon;
};

static const struct field fields[] = {
    FIELD_OF("epsilon", FLOAT, struct attributes, epsilon, .fallback = "1e-7", .min = 1e-30,
             .max = 1, .help = "added inside the logarithms, so that log(0) is finite"),
    {0},
};

static void forward(const struct loss_node *node, struct device *d, int64_t rows)
{
    const struct attributes *a = node->attributes;
    const struct regression regression = pairwise_regression(node, rows, a->epsilon);
    d->kernels->log_loss(d, &regression);
}

/* One probability per example, and several, with an epsilon that matters */
static const struct op_case cases[] = {
    {"{}", 1, {{2, {5, 1}}}},
    {"{\"epsilon\": 0.1}", 1, {{2, {4, 3}}}},
    {0},
};

const struct loss loss_log_loss = {
    .object = {"log_loss",
               "binary labels and probabilities; for logits sigmoid_cross_entropy is more exact",
               fields, sizeof(struct attributes)},
    .predicts = PREDICTS_PROBABILITY,
    .labels = LABELS_SHARES,
    .infer = pairwise_infer,
    .forward = forward,
    .weight = pairwise_weight,
    .cases = cases,
};
