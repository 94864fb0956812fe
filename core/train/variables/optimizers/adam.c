/* adam: w -= the step of its moments (moments.h). */
#include "core/train/variables/optimizers/moments.h"

struct adam_constants {
    struct moments_constants moments;
};

RULE(adam, 2) /* m, v */
{
    *value -= moments_step(&k->moments, g, slot);
}

#ifndef RULE_ONLY

static void derive(const void *attributes, const struct juncture *now, void *ret)
{
    struct adam_constants *k = ret;
    k->moments = moments_derive(attributes, now);
}

const struct optimizer optimizer_adam = {
    .object = {.name = "adam",
               .summary = "per-weight steps from running means of the gradient and its square; "
                          "every row of a table moves at each step",
               .fields = moments_fields,
               .size = sizeof(struct moments)},
    .rule = &rule_adam,
    .power_count = 2,
    .slot = {{"Adam"}, {"Adam_1"}}, /* m, v */
    .power = {{"beta1_power", moments_beta1}, {"beta2_power", moments_beta2}},
    .sweeps = true,
    .derive = derive,
};

#endif
