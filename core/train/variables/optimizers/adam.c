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

static const struct field fields[] = {
    LEARNING_RATE(struct moments, learning_rate, "0.001"),
    {.name = "beta1",
     .type = FIELD_FLOAT,
     .offset = offsetof(struct moments, beta1),
     .fallback = "0.9",
     .min = 0,
     .max = 0.999999, /* 1 - beta must not vanish in a float: it divides the rate */
     .help = "decay of the mean of the gradients"},
    {.name = "beta2",
     .type = FIELD_FLOAT,
     .offset = offsetof(struct moments, beta2),
     .fallback = "0.999",
     .min = 0,
     .max = 0.999999,
     .help = "decay of the mean of the squared gradients"},
    {.name = "epsilon",
     .type = FIELD_FLOAT,
     .offset = offsetof(struct moments, epsilon),
     .fallback = "1e-8",
     .min = 1e-30, /* zero would divide zero by zero where no gradient has come yet */
     .max = 1e30,
     .help = "added to the root of the mean square, so that it never divides by zero"},
    {0},
};

static void derive(const void *attributes, const struct juncture *now, void *ret)
{
    struct adam_constants *k = ret;
    k->moments = moments_derive(attributes, now);
}

const struct optimizer optimizer_adam = {
    .object = {.name = "adam",
               .summary = "steps of a size of their own for each weight, from running means of the "
                          "gradient and its square",
               .fields = fields,
               .size = sizeof(struct moments)},
    .rule = &rule_adam,
    .power_count = 2,
    .slot = {{"Adam"}, {"Adam_1"}}, /* m, v */
    .power = {{"beta1_power", moments_beta1}, {"beta2_power", moments_beta2}},
    .sweeps = true,
    .derive = derive,
};

#endif
