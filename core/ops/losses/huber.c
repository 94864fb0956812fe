/* huber: with e = prediction - label, the mean of e^2 / 2 where |e| <= delta, and of
 * delta |e| - delta^2 / 2 elsewhere. */
#include "core/ops/losses/pairwise.h"

struct attributes {
    double delta;
};

static const struct field fields[] = {
    FIELD_OF("delta", FLOAT, struct attributes, delta, .fallback = "1", .min = 1e-6, .max = 1e6,
             .help = "error at which the loss changes from quadratic to linear"),
    {0},
};

static void forward(const struct loss_node *node, struct device *d, int64_t rows)
{
    const struct attributes *a = node->attributes;
    const struct regression regression = pairwise_regression(node, rows, a->delta);
    d->kernels->huber(d, &regression);
}

/* as pairwise_cases, and with another delta */
static const struct op_case cases[] = {
    {"{}", 1, {{2, {5, 1}}}},
    {"{\"delta\": 0.7}", 1, {{2, {4, 3}}}},
    {0},
};

const struct loss loss_huber = {
    .object = {"huber", "squared differences, linear for large ones", fields,
               sizeof(struct attributes)},
    .predicts = PREDICTS_NUMBER,
    .labels = LABELS_ANY,
    .infer = pairwise_infer,
    .forward = forward,
    .weight = pairwise_weight,
    .cases = cases,
};
