/* adam: m += (g - m)(1 - beta1); v += (g^2 - v)(1 - beta2); w -= rate_t * m / (sqrt(v) + epsilon)
 * with rate_t = rate * sqrt(1 - beta2^t) / (1 - beta1^t).
 *
 * epsilon is added to the uncorrected root ("epsilon hat" of the paper), as TensorFlow does. The
 * powers beta^t are shared by all variables; in asynchronous training they advance with every
 * applied gradient of any worker.
 */
#include "kernels/rule.h"

struct adam_constants {
    float rate, beta1, beta2, epsilon; /* rate_t */
};

RULE(adam, 2, 2) /* m, v */
{
    const float m = slot[0] + (g - slot[0]) * (1.0f - k->beta1);
    const float v = slot[1] + (g * g - slot[1]) * (1.0f - k->beta2);
    slot[0] = m;
    slot[1] = v;
    *value -= k->rate * m / (sqrtf(v) + k->epsilon);
}

#ifndef RULE_ONLY
#include <math.h>

#include "core/train/variables/optimizer.h"

struct adam {
    struct schedule_spec learning_rate;
    double beta1, beta2; /* decays of m and v */
    double epsilon;
};

static const struct field fields[] = {
    {.name = "learning_rate",
     .type = FIELD_VARIANT,
     .offset = offsetof(struct adam, learning_rate),
     .fallback = "0.001",
     .object = &schedule_spec_object,
     .kinds = &schedule_kinds,
     .help = "step size: a number, or a schedule"},
    {.name = "beta1",
     .type = FIELD_FLOAT,
     .offset = offsetof(struct adam, beta1),
     .fallback = "0.9",
     .min = 0,
     .max = 0.999999, /* 1 - beta must not vanish in a float: it divides the rate */
     .help = "decay of the mean of the gradients"},
    {.name = "beta2",
     .type = FIELD_FLOAT,
     .offset = offsetof(struct adam, beta2),
     .fallback = "0.999",
     .min = 0,
     .max = 0.999999,
     .help = "decay of the mean of the squared gradients"},
    {.name = "epsilon",
     .type = FIELD_FLOAT,
     .offset = offsetof(struct adam, epsilon),
     .fallback = "1e-8",
     .min = 1e-30, /* zero would divide zero by zero where no gradient has come yet */
     .max = 1e30,
     .help = "added to the root of the mean square, so that it never divides by zero"},
    {0},
};

static float zero(const void *attributes)
{
    return 0.0f;
}

static float beta1(const void *attributes)
{
    const struct adam *a = attributes;
    return (float)a->beta1;
}

static float beta2(const void *attributes)
{
    const struct adam *a = attributes;
    return (float)a->beta2;
}

/* The corrections are taken in double from float powers: 1 - 0.999 loses no digit that way, and
 * the one rounding comes last. */
static void derive(const void *attributes, float rate, const float *powers, void *ret)
{
    const struct adam *a = attributes;
    struct adam_constants *k = ret;
    const double correction = sqrt(1.0 - (double)powers[1]) / (1.0 - (double)powers[0]);
    *k = (struct adam_constants){
        .rate = (float)((double)rate * correction),
        .beta1 = (float)a->beta1,
        .beta2 = (float)a->beta2,
        .epsilon = (float)a->epsilon,
    };
}

const struct optimizer optimizer_adam = {
    .object = {.name = "adam",
               .summary = "steps of a size of their own for each weight, from running means of the "
                          "gradient and its square",
               .fields = fields,
               .size = sizeof(struct adam)},
    .rule = &rule_adam,
    .power_count = 2,
    .slot = {{"Adam", zero}, {"Adam_1", zero}}, /* m, v */
    .power = {{"beta1_power", beta1}, {"beta2_power", beta2}},
    .derive = derive,
};

#endif
