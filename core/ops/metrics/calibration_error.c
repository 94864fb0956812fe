/* calibration_error: the distance between probabilities and the frequency of yes, bucket by bucket.
 *
 * Answers go to buckets of equal width by their probability. In each the sum of the probabilities
 * is compared with that of the labels; the result is the sum of the distances divided by all
 * weights (expected calibration error). A model may be right on the whole, calibration 1, and wrong
 * in every bucket.
 */
#include <math.h>

#include "core/ops/metrics/answers.h"

enum { BUCKETS_DEFAULT = 10, BUCKETS_MAX = 1 << 20 };

struct attributes {
    int64_t buckets;
};

static const struct field fields[] = {
    FIELD_OF("buckets", INT, struct attributes, buckets, .fallback = "10", .min = 1,
             .max = BUCKETS_MAX, .help = "number of equal buckets of probabilities from 0 to 1"),
    {0},
};

static err infer(struct metric_node *node, struct arena *arena)
{
    const struct attributes *a = node->attributes;
    TRY(answers_infer_yes_or_no(node, arena));
    if (a->buckets != BUCKETS_DEFAULT)
        node->name = arena_format(arena, "%s_%lld", node->name, (long long)a->buckets);
    return OK;
}

/* The sum of the weights, then for each bucket the sum of probabilities minus labels */
static int64_t state_count(const struct metric_node *node, int64_t rows)
{
    return 1 + ((const struct attributes *)node->attributes)->buckets;
}

/* NaN goes to the first bucket, and makes the result NaN. */
static void add(const struct metric_node *node, struct answer answer, double *state)
{
    const struct attributes *a = node->attributes;
    const double probability = answers_probability(node->loss, answer.said);
    const double place = fmin(fmax(probability, 0) * (double)a->buckets, (double)a->buckets - 1);
    state[0] += answer.weight;
    state[1 + (int64_t)place] += answer.weight * (probability - answer.label);
}

static void update(const struct metric_node *node, struct device *d, int64_t rows, double *state)
{
    answers_each(node, d, rows, add, state);
}

static double result(const struct metric_node *node, double *state)
{
    const struct attributes *a = node->attributes;
    double sum = 0;
    for (int64_t i = 1; i <= a->buckets; i++) sum += fabs(state[i]);
    return state[0] > 0 ? sum / state[0] : metric_undefined(ALL_WEIGHTS_ARE_0);
}

const struct metric metric_calibration_error = {
    .object = {"calibration_error",
               "expected calibration error: mean difference between probability and fraction of "
               "positives, over buckets of probabilities; 0 is best",
               fields, sizeof(struct attributes)},
    .better = BETTER_LESS,
    .infer = infer,
    .state_count = state_count,
    .update = update,
    .result = result,
};
