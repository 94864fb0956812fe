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

static double result(const struct metric_node *node, double *state)
{
    (void)node;
    if (state[1] != 0) return state[0] / state[1];
    return metric_undefined(state[0] > 0 ? ALL_LABELS_ARE_0 : ALL_WEIGHTS_ARE_0);
}

const struct metric metric_calibration = {
    .object = {"calibration",
               "mean probability divided by mean label; undefined without positive labels"},
    .better = BETTER_NEAR_ONE,
    .infer = answers_infer_yes_or_no,
    .update = update,
    .result = result,
};
