/* adamw: Adam, and beside its step w -= rate * weight_decay * w (decoupled decay, Loshchilov &
 * Hutter).
 *
 * As in tf.keras.optimizers.AdamW the decay is multiplied by the rate of the step (the schedule's,
 * not rate_t), is of the value before the step, and of all variables; defaults are those of Keras.
 * It is no part of the gradient, so neither m nor v nor clipping sees it. It is added to the step
 * before either is taken, since alone it is often less than a value's last digit.
 */
#include "kernels/rule.h"

struct adamw_constants {
    float rate, beta1, beta2, epsilon; /* rate_t of adam */
    float decay;                       /* share of a value that is taken from it */
};

RULE(adamw, 2, 2) /* m, v */
{
    const float m = slot[0] + (g - slot[0]) * (1.0f - k->beta1);
    const float v = slot[1] + (g * g - slot[1]) * (1.0f - k->beta2);
    slot[0] = m;
    slot[1] = v;
    *value -= k->decay * *value + k->rate * m / (sqrtf(v) + k->epsilon);
}

#ifndef RULE_ONLY
#include <math.h>

#include "core/train/variables/optimizer.h"

struct adamw {
    struct schedule_spec learning_rate;
    double beta1, beta2; /* decays of m and v */
    double epsilon, weight_decay;
};

static const struct field fields[] = {
    {.name = "learning_rate",
     .type = FIELD_VARIANT,
     .offset = offsetof(struct adamw, learning_rate),
     .fallback = "0.001",
     .object = &schedule_spec_object,
     .kinds = &schedule_kinds,
     .help = "step size: a number, or a schedule"},
    {.name = "beta1",
     .type = FIELD_FLOAT,
     .offset = offsetof(struct adamw, beta1),
     .fallback = "0.9",
     .min = 0,
     .max = 0.999999, /* 1 - beta must not vanish in a float: it divides the rate */
     .help = "decay of the mean of the gradients"},
    {.name = "beta2",
     .type = FIELD_FLOAT,
     .offset = offsetof(struct adamw, beta2),
     .fallback = "0.999",
     .min = 0,
     .max = 0.999999,
     .help = "decay of the mean of the squared gradients"},
    {.name = "epsilon",
     .type = FIELD_FLOAT,
     .offset = offsetof(struct adamw, epsilon),
     .fallback = "1e-7",
     .min = 1e-30, /* zero would divide zero by zero where no gradient has come yet */
     .max = 1e30,
     .help = "added to the root of the mean square, so that it never divides by zero"},
    {.name = "weight_decay",
     .type = FIELD_FLOAT,
     .offset = offsetof(struct adamw, weight_decay),
     .fallback = "0.004",
     .min = 0,
     .max = 1e6,
     .help = "share of every weight that is taken from it in a step, times the learning rate"},
    {0},
};

static float zero(const void *attributes)
{
    return 0.0f;
}

static float beta1(const void *attributes)
{
    const struct adamw *a = attributes;
    return (float)a->beta1;
}

static float beta2(const void *attributes)
{
    const struct adamw *a = attributes;
    return (float)a->beta2;
}

/* In double, as adam does. */
static void derive(const void *attributes, float rate, const float *powers, void *ret)
{
    const struct adamw *a = attributes;
    struct adamw_constants *k = ret;
    const double correction = sqrt(1.0 - (double)powers[1]) / (1.0 - (double)powers[0]);
    *k = (struct adamw_constants){
        .rate = (float)((double)rate * correction),
        .beta1 = (float)a->beta1,
        .beta2 = (float)a->beta2,
        .epsilon = (float)a->epsilon,
        .decay = (float)((double)rate * a->weight_decay),
    };
}

const struct optimizer optimizer_adamw = {
    .object = {.name = "adamw",
               .summary = "adam with a decay of the weights that is no part of the gradient",
               .fields = fields,
               .size = sizeof(struct adamw)},
    .rule = &rule_adamw,
    .power_count = 2,
    .slot = {{"AdamW", zero}, {"AdamW_1", zero}}, /* m, v */
    .power = {{"beta1_power", beta1}, {"beta2_power", beta2}},
    .derive = derive,
};

#endif
