/* ftrl ("follow the regularized leader", McMahan et al.), with p = -learning_rate_power:
 *
 *     n = a + g^2; z += g + 2 l2_shrinkage * w - (n^p - a^p) / rate * w; a = n
 *     w = |z| > l1 ? (sign(z) * l1 - z) / (n^p / rate + 2 l2) : 0
 *
 * z begins at zero, so that the first update forgets the initial value. With p = 1/2, the default,
 * the powers are roots. A step whose rate is 0, which a warm-up begins with, changes nothing: the
 * formula divides by the rate.
 */
#include "core/train/variables/optimizers/penalties.h"

struct ftrl_constants {
    float rate, power, l1, l2, shrinkage; /* 2 l2, 2 l2_shrinkage */
};

ELEMENT float ftrl_power(float x, float power, int form)
{
    return form == 1 ? mathf_power(x, power) : sqrtf(x);
}

RULE_OF_TWO(ftrl, 2, 2) /* a, z; form 0: power is 1/2 */
{
    const float a = slot[0] + g * g;
    const float raised = ftrl_power(a, k->power, form);
    const float more = raised - ftrl_power(slot[0], k->power, form);
    const float z = slot[1] + (g + k->shrinkage * *value) - more / k->rate * *value;
    const float w = -penalties_shrink(z, k->l1) / (raised / k->rate + k->l2);
    const bool stays = k->rate == 0.0f, is_zero = mathf_abs(z) <= k->l1; /* 0 / 0 else */
    slot[0] = stays ? slot[0] : a;
    slot[1] = stays ? slot[1] : z;
    *value = stays ? *value : is_zero ? 0.0f : w;
}

#ifndef RULE_ONLY

struct ftrl {
    struct schedule_spec learning_rate;
    double learning_rate_power;
    double initial_accumulator_value; /* of a, for every weight */
    double l2_shrinkage;
    struct penalties penalties;
};

static const struct field fields[] = {
    LEARNING_RATE(struct ftrl, learning_rate, NULL),
    FIELD_OF(
        "learning_rate_power", FLOAT, struct ftrl, learning_rate_power, .fallback = "-0.5",
        .min = -10, .max = 0,
        .help = "exponent by which a weight's rate falls with the sum of its squared gradients; 0: "
                "constant rate"),
    FIELD_OF("initial_accumulator_value", FLOAT, struct ftrl, initial_accumulator_value,
             .fallback = "0.1", .min = 0, .max = 1e30,
             .help = "initial value of the sum of squared gradients"),
    PENALTIES(struct ftrl, penalties),
    FIELD_OF("l2_shrinkage", FLOAT, struct ftrl, l2_shrinkage, .fallback = "0.0", .min = 0,
             .max = 1e30, .help = "l2 of the loss: added to the gradient (l2 is not)"),
    {0},
};

static float initial_accumulator(const void *attributes)
{
    const struct ftrl *a = attributes;
    return (float)a->initial_accumulator_value;
}

static int form(const void *attributes)
{
    const struct ftrl *a = attributes;
    return a->learning_rate_power != -0.5;
}

static void derive(const void *attributes, const struct juncture *now, void *ret)
{
    const struct ftrl *a = attributes;
    struct ftrl_constants *k = ret;
    *k = (struct ftrl_constants){
        .rate = now->rate,
        .power = (float)-a->learning_rate_power,
        .l1 = (float)a->penalties.l1,
        .l2 = 2.0f * (float)a->penalties.l2,
        .shrinkage = 2.0f * (float)a->l2_shrinkage,
    };
}

const struct optimizer optimizer_ftrl = {
    .object = {.name = "ftrl",
               .summary = "for sparse linear models: per-weight rates, exact zeros with l1; the "
                          "first update discards the initial value",
               .fields = fields,
               .size = sizeof(struct ftrl)},
    .rule = &rule_ftrl,
    .form = form,
    .slot = {{"Ftrl", initial_accumulator}, {"Ftrl_1"}}, /* a, z */
    .refuses_decay = "computes values anew from sums of gradients: it has l2",
    .derive = derive,
};

#endif
