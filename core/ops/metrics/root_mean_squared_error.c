/* root_mean_squared_error: the root of the mean of (prediction - label)^2 over all elements. */
#include <math.h>

#include "core/ops/metrics/answers.h"

static void add(const struct metric_node *node, struct answer answer, double *state)
{
    const double difference = (double)answer.said - answer.label;
    state[0] += answer.weight * difference * difference;
    state[1] += answer.weight;
}

static void update(const struct metric_node *node, struct device *d, int64_t rows, double *state)
{
    answers_each(node, d, rows, add, state);
}

static double result(const struct metric_node *node, double *state)
{
    return state[1] > 0 ? sqrt(state[0] / state[1]) : 0;
}

const struct metric metric_root_mean_squared_error = {
    .object = {"root_mean_squared_error", "root of the mean squared difference from the labels"},
    .better = BETTER_LESS,
    .infer = answers_infer_numbers,
    .update = update,
    .result = result,
};
