/* weighted_cross_entropy: the mean over all elements of q z log(1 + exp(-x)) + (1 - z) log(1 +
 * exp(x)), for logits x, labels z of 0 or 1, and q, the weight of a yes. */
#include "core/ops/losses/pairwise.h"

struct attributes {
    double pos_weight;
};

static const struct field fields[] = {
    FIELD_OF("pos_weight", FLOAT, struct attributes, pos_weight, .min = 0, .max = 1e9,
             .help = "weight of positive labels relative to negative ones: above 1 favours recall, "
                     "below 1 precision"),
    {0},
};

static void forward(const struct loss_node *node, struct device *d, int64_t rows)
{
    const struct attributes *a = node->attributes;
    const struct regression regression = pairwise_regression(node, rows, a->pos_weight);
    d->kernels->weighted_cross_entropy(d, &regression);
}

/* q above and below 1; one logit per example, and several */
static const struct op_case cases[] = {
    {"{\"pos_weight\": 3}", 1, {{2, {5, 1}}}},
    {"{\"pos_weight\": 0.25}", 1, {{2, {4, 3}}}},
    {0},
};

const struct loss loss_weighted_cross_entropy = {
    .object = {"weighted_cross_entropy", "sigmoid_cross_entropy with a weight for positive labels",
               fields, sizeof(struct attributes)},
    .predicts = PREDICTS_LOGIT,
    .labels = LABELS_SHARES,
    .infer = pairwise_infer,
    .forward = forward,
    .weight = pairwise_weight,
    .cases = cases,
};
