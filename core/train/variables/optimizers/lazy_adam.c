/* lazy_adam: adam that changes only the table rows of the batch. Moments of other rows do not decay
 * (LazyAdamOptimizer of TensorFlow's contrib, whose slots have the names of Adam's). Dense
 * variables are updated as by adam. */
#include "core/train/variables/optimizers/moments.h"

struct lazy_adam_constants {
    struct moments_constants moments;
};

RULE(lazy_adam, 2) /* m, v */
{
    *value -= moments_step(&k->moments, g, slot);
}

#ifndef RULE_ONLY

static void derive(const void *attributes, const struct juncture *now, void *ret)
{
    struct lazy_adam_constants *k = ret;
    k->moments = moments_derive(attributes, now);
}

const struct optimizer optimizer_lazy_adam = {
    .object = {.name = "lazy_adam",
               .summary = "adam that updates only the rows of a table that the batch uses",
               .fields = moments_fields,
               .size = sizeof(struct moments)},
    .rule = &rule_lazy_adam,
    .power_count = 2,
    .slot = {{"Adam"}, {"Adam_1"}}, /* m, v */
    .power = {{"beta1_power", moments_beta1}, {"beta2_power", moments_beta2}},
    .derive = derive,
};

#endif
