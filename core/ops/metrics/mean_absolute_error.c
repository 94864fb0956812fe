/* mean_absolute_error: the mean of |prediction - label| over all elements. */
#include <math.h>

#include "core/ops/metrics/answers.h"

static void add(const struct metric_node *node, struct answer answer, double *state)
{
    state[0] += answer.weight * fabs((double)answer.said - answer.label);
    state[1] += answer.weight;
}

static void update(const struct metric_node *node, struct device *d, int64_t rows, double *state)
{
    answers_each(node, d, rows, add, state);
}

const struct metric metric_mean_absolute_error = {
    .object = {"mean_absolute_error", "mean of the absolute differences from the labels"},
    .better = BETTER_LESS,
    .infer = answers_infer_numbers,
    .update = update,
};
