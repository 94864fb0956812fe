/* calibration: the mean probability over the mean label; 1 is best. */
#include "core/ops/metrics/answers.h"

static void add(const struct metric_node *node, struct answer answer, double *state)
{
    state[0] += answer.weight * answers_probability(node->loss, answer.said);
    state[1] += answer.weight * answer.label;
}

static void update(const struct metric_node *node, struct device *d, int64_t rows, double *state)
{
    answers_each(node, d, rows, add, state);
}

const struct metric metric_calibration = {
    .object = {"calibration", "mean probability over mean label, 0 without any yes"},
    .better = BETTER_NEAR_ONE,
    .infer = answers_infer_yes_or_no,
    .update = update,
};
