/* precision: the fraction of predictions of yes whose label is yes. */
#include "core/ops/metrics/answers.h"

static void add(const struct metric_node *node, struct answer answer, double *state)
{
    if (!answers_is_yes(node, answer.said)) return;
    state[0] += answers_wants_yes(answer.label) ? answer.weight : 0;
    state[1] += answer.weight;
}

static void update(const struct metric_node *node, struct device *d, int64_t rows, double *state)
{
    answers_each(node, d, rows, add, state);
}

const struct metric metric_precision = {
    .object = {"precision",
               "fraction of predicted positives that are positive (labels other than 0)",
               answers_threshold_fields, sizeof(struct answers_threshold)},
    .better = BETTER_MORE,
    .infer = answers_infer_threshold,
    .update = update,
};
