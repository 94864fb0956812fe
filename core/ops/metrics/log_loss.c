/* log_loss: the mean of -z log p - (1 - z) log(1 - p) for probabilities p and labels z, whatever
 * smoothing or weights the loss has. */
#include <math.h>

#include "core/ops/metrics/answers.h"

/* For logits the formula does not overflow; for probabilities TensorFlow's epsilon keeps the
 * logarithms finite. */
static void add(const struct metric_node *node, struct answer answer, double *state)
{
    const double x = answer.said, z = answer.label, epsilon = 1e-7;
    double loss = fmax(x, 0) - x * z + log1p(exp(-fabs(x)));
    if (node->loss->loss->predicts == PREDICTS_PROBABILITY)
        loss = -z * log(x + epsilon) - (1 - z) * log(1 - x + epsilon);
    state[0] += answer.weight * loss;
    state[1] += answer.weight;
}

static void update(const struct metric_node *node, struct device *d, int64_t rows, double *state)
{
    answers_each(node, d, rows, add, state);
}

const struct metric metric_log_loss = {
    .object = {"log_loss", "mean binary cross-entropy, in nats"},
    .better = BETTER_LESS,
    .infer = answers_infer_yes_or_no,
    .update = update,
};
