/* perplexity: exp(mean loss over classes): among how many equally likely classes the model still
 * has to guess. */
#include "core/graph/op.h"

#include <math.h>

static err infer(struct metric_node *node, struct arena *arena)
{
    const struct loss *loss = node->loss->loss;
    if (loss->predicts == PREDICTS_CLASS) return OK;
    return fail(ERR_INPUT, "wants a loss over classes, as softmax_cross_entropy; %s is none",
                loss->object.name);
}

/* The forward pass has computed the losses of the rows. */
static void update(const struct metric_node *node, struct device *d, int64_t rows, double *state)
{
    const struct loss_node *loss = node->loss;
    state[0] += kernels_sum(d, loss->losses, rows);
    state[1] += loss->counts.counted;
}

static double result(const struct metric_node *node, double *state)
{
    return state[1] > 0 ? exp(state[0] / state[1]) : 1;
}

const struct metric metric_perplexity = {
    .object = {"perplexity", "e to the mean loss over classes"},
    .better = BETTER_LESS,
    .infer = infer,
    .update = update,
    .result = result,
};
