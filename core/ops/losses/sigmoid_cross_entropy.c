/* sigmoid_cross_entropy: the mean over all elements of max(x, 0) - x z + log(1 + exp(-|x|)), for
 * logits x and labels z of 0 or 1. */
#include "core/ops/losses/pairwise.h"

struct attributes {
    double label_smoothing;
};

static const struct field fields[] = {
    {.name = "label_smoothing",
     .type = FIELD_FLOAT,
     .offset = offsetof(struct attributes, label_smoothing),
     .fallback = "0",
     .max = 1,
     .help = "label smoothing s: a label z becomes z (1 - s) + s / 2"},
    {0},
};

/* Every logit is independent; the kernel's "classes" are just columns here. */
static void forward(const struct loss_node *node, struct device *d, int64_t rows)
{
    const struct attributes *a = node->attributes;
    d->kernels->sigmoid_cross_entropy(d, &(struct cross_entropy){
                                             .rows = rows,
                                             .classes = pairwise_columns(node),
                                             .logits = node->logits->value,
                                             .targets = node->labels.value,
                                             .label_smoothing = (float)a->label_smoothing,
                                             .scale = node->scale,
                                             .losses = node->losses,
                                             .gradient = node->logits->gradient,
                                         });
}

/* The logistic regression, and several smoothed labels per example. */
static const struct op_case cases[] = {
    {"{}", 1, {{2, {5, 1}}}},
    {"{\"label_smoothing\": 0.2}", 1, {{2, {4, 3}}}},
    {0},
};

const struct loss loss_sigmoid_cross_entropy = {
    .object = {"sigmoid_cross_entropy", "independent binary labels: 0 or 1 per logit", fields,
               sizeof(struct attributes)},
    .predicts = PREDICTS_LOGIT,
    .labels = LABELS_SHARES,
    .infer = pairwise_infer,
    .forward = forward,
    .weight = pairwise_weight,
    .cases = cases,
};
