/* in_top_k: the share of examples whose label is among the k largest logits. */
#include "core/ops/metrics/answers.h"

#include <inttypes.h>

enum { K_MAX = 1 << 24 };

struct attributes {
    int64_t k;
};

static const struct field fields[] = {
    FIELD_OF("k", INT, struct attributes, k, .fallback = "5", .min = 1, .max = K_MAX,
             .help = "number of largest logits that count"),
    {0},
};

/* With k at least the number of classes the result would always be 1. */
static err infer(struct metric_node *node, struct arena *arena)
{
    const struct attributes *a = node->attributes;
    const struct loss *loss = node->loss->loss;
    if (loss->predicts != PREDICTS_CLASS)
        return fail(ERR_INPUT, "wants a loss over classes, as softmax_cross_entropy; %s is none",
                    loss->object.name);
    const struct shape *logits = &node->loss->logits->shape;
    const int64_t classes = logits->dim[logits->rank - 1];
    if (a->k >= classes)
        return fail(ERR_INPUT, "k: must be less than the %" PRId64 " classes, got %" PRId64,
                    classes, a->k);
    node->name = arena_format(arena, "in_top_%" PRId64, a->k);
    return OK;
}

/* Ties count for the label, as in tf.nn.in_top_k. */
static void update(const struct metric_node *node, struct device *d, int64_t rows, double *state)
{
    const struct attributes *a = node->attributes;
    answers_in_top(node, d, rows, a->k, false, state);
}

const struct metric metric_in_top_k = {
    .object = {"in_top_k", "fraction of labels among the k largest logits", fields,
               sizeof(struct attributes)},
    .better = BETTER_MORE,
    .infer = infer,
    .update = update,
};
