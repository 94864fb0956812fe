/* recall: the fraction of labels of yes for which yes is predicted. */
#include "core/ops/metrics/answers.h"

static void add(const struct metric_node *node, struct answer answer, double *state)
{
    if (!answers_wants_yes(answer.label)) return;
    state[0] += answers_is_yes(node, answer.said) ? answer.weight : 0;
    state[1] += answer.weight;
}

static void update(const struct metric_node *node, struct device *d, int64_t rows, double *state)
{
    answers_each(node, d, rows, add, state);
}

const struct metric metric_recall = {
    .object = {"recall", "fraction of positives (labels other than 0) that are predicted positive",
               answers_threshold_fields, sizeof(struct answers_threshold)},
    .better = BETTER_MORE,
    .infer = answers_infer_threshold,
    .update = update,
};
