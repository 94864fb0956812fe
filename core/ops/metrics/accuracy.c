/* accuracy: the share of right answers. A class is right when its logit is the largest (the first
 * of equal ones), a yes or no when the logit is above zero, or the probability above one half, as
 * the label says. */
#include "core/ops/metrics/answers.h"

/* A regression has no right answers. */
static err infer(struct metric_node *node, struct arena *arena)
{
    const struct loss *loss = node->loss->loss;
    if (loss->predicts == PREDICTS_NUMBER)
        return fail(ERR_INPUT,
                    "%s predicts numbers, which are not right or wrong: use the metric \"loss\"",
                    loss->object.name);
    return OK;
}

static float threshold_of(const struct metric_node *node)
{
    return node->loss->loss->predicts == PREDICTS_LOGIT ? 0.0f : 0.5f;
}

static void add(const struct metric_node *node, struct answer answer, double *state)
{
    const bool is_yes = answer.said > threshold_of(node);
    state[0] += is_yes == (answer.label > 0.5f) ? answer.weight : 0;
    state[1] += answer.weight;
}

/* Yes or no: every logit counts as an answer of its own. */
static void update(const struct metric_node *node, struct device *d, int64_t rows, double *state)
{
    const struct tensor *logits = node->loss->logits, *labels = &node->loss->labels;
    const int64_t columns = shape_count_from(&logits->shape, 1);
    if (node->loss->loss->predicts == PREDICTS_CLASS) {
        answers_in_top(node, d, rows, 1, true, state);
    } else if (loss_is_weighted(node->loss)) {
        answers_each(node, d, rows, add, state);
    } else {
        state[0] += (double)d->kernels->count_threshold(d, logits->value, labels->value,
                                                        threshold_of(node), rows * columns);
        state[1] += (double)(rows * columns);
    }
}

const struct metric metric_accuracy = {
    .object = {"accuracy", "fraction of correct predictions"},
    .better = BETTER_MORE,
    .infer = infer,
    .update = update,
};
