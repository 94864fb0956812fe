/* adamw: Adam, and in addition w -= rate * weight_decay * w (decoupled decay, Loshchilov & Hutter).
 *
 * As in tf.keras.optimizers.AdamW the decay is multiplied by the rate of the step (the schedule's,
 * not rate_t), uses the value before the step, and applies to all variables; defaults are those of
 * Keras. It is not part of the gradient, so m, v and clipping do not include it. It is added to the
 * step before subtracting, because alone it is often smaller than a value's last digit.
 */
#include "core/train/variables/optimizers/moments.h"

struct adamw_constants {
    struct moments_constants moments;
    float decay; /* share of a value that is subtracted from it */
};

RULE(adamw, 2) /* m, v */
{
    *value -= k->decay * *value + moments_step(&k->moments, g, slot);
}

#ifndef RULE_ONLY

struct adamw {
    struct moments moments;
    double weight_decay;
};

static const struct field fields[] = {
    MOMENTS_ROWS("1e-7"),
    FIELD_OF("weight_decay", FLOAT, struct adamw, weight_decay, .fallback = "0.004", .min = 0,
             .max = 1e6,
             .help = "decoupled weight decay: each step subtracts this fraction of every weight, "
                     "times the learning rate"),
    {0},
};

static void derive(const void *attributes, const struct juncture *now, void *ret)
{
    const struct adamw *a = attributes;
    struct adamw_constants *k = ret;
    *k = (struct adamw_constants){
        .moments = moments_derive(&a->moments, now),
        .decay = (float)((double)now->rate * a->weight_decay),
    };
}

const struct optimizer optimizer_adamw = {
    .object = {.name = "adamw",
               .summary =
                   "adam with decoupled weight decay; every row of a table moves at each step",
               .fields = fields,
               .size = sizeof(struct adamw)},
    .rule = &rule_adamw,
    .power_count = 2,
    .slot = {{"AdamW"}, {"AdamW_1"}}, /* m, v */
    .power = {{"beta1_power", moments_beta1}, {"beta2_power", moments_beta2}},
    .sweeps = true,
    .refuses_decay = "has a weight_decay of its own, of all its variables: say adam",
    .derive = derive,
};

#endif
