/* proximal_adagrad: a += g^2; r = rate / sqrt(a); v = w - r * g; w = sign(v) * max(|v| - r * l1, 0)
 * / (1 + r * l2).
 */
#include "core/train/variables/optimizers/penalties.h"

struct proximal_adagrad_constants {
    float rate, l1, l2;
};

RULE(proximal_adagrad, 1) /* a */
{
    const float a = slot[0] + g * g, rate = k->rate / sqrtf(a);
    slot[0] = a;
    *value = penalties_shrink(*value - rate * g, rate * k->l1) / (1.0f + rate * k->l2);
}

#ifndef RULE_ONLY

struct proximal_adagrad {
    struct schedule_spec learning_rate;
    double initial_accumulator_value; /* of a, for every weight */
    struct penalties penalties;
};

static const struct field fields[] = {
    LEARNING_RATE(struct proximal_adagrad, learning_rate, NULL),
    /* a sum of zero would divide zero by zero */
    FIELD_OF("initial_accumulator_value", FLOAT, struct proximal_adagrad, initial_accumulator_value,
             .fallback = "0.1", .min = 1e-30, .max = 1e30,
             .help = "initial value of the sum of squared gradients"),
    PENALTIES(struct proximal_adagrad, penalties),
    {0},
};

static float initial_accumulator(const void *attributes)
{
    const struct proximal_adagrad *a = attributes;
    return (float)a->initial_accumulator_value;
}

static void derive(const void *attributes, const struct juncture *now, void *ret)
{
    const struct proximal_adagrad *a = attributes;
    struct proximal_adagrad_constants *k = ret;
    *k = (struct proximal_adagrad_constants){now->rate, (float)a->penalties.l1,
                                             (float)a->penalties.l2};
}

const struct optimizer optimizer_proximal_adagrad = {
    .object = {.name = "proximal_adagrad",
               .summary = "adagrad whose l1 makes weights exactly zero",
               .fields = fields,
               .size = sizeof(struct proximal_adagrad)},
    .rule = &rule_proximal_adagrad,
    .slot = {{"ProximalAdagrad", initial_accumulator}}, /* a */
    .derive = derive,
};

#endif
