/* adagrad: a += g^2; w -= rate * g / sqrt(a).
 *
 * There is no epsilon: a starts above zero instead, and never shrinks.
 */
#include "kernels/rule.h"

struct adagrad_constants {
    float rate;
};

RULE(adagrad, 1) /* a */
{
    const float a = slot[0] + g * g;
    slot[0] = a;
    *value -= k->rate * g / sqrtf(a);
}

#ifndef RULE_ONLY
#include "core/train/variables/optimizer.h"

struct adagrad {
    struct schedule_spec learning_rate;
    double initial_accumulator_value; /* of a, for every weight */
};

static const struct field fields[] = {
    LEARNING_RATE(struct adagrad, learning_rate, NULL),
    /* a sum of zero would divide zero by zero */
    FIELD_OF("initial_accumulator_value", FLOAT, struct adagrad, initial_accumulator_value,
             .fallback = "0.1", .min = 1e-30, .max = 1e30,
             .help = "initial value of the sum of squared gradients; TensorFlow's 0.1 lets rare "
                     "ids of tables learn slowly: 0.0001 suits new click models"),
    {0},
};

static float initial_accumulator(const void *attributes)
{
    const struct adagrad *a = attributes;
    return (float)a->initial_accumulator_value;
}

static void derive(const void *attributes, const struct juncture *now, void *ret)
{
    struct adagrad_constants *k = ret;
    k->rate = now->rate;
}

const struct optimizer optimizer_adagrad = {
    .object = {.name = "adagrad",
               .summary = "per-weight rates that shrink with the sum of squared gradients",
               .fields = fields,
               .size = sizeof(struct adagrad)},
    .rule = &rule_adagrad,
    .slot = {{"Adagrad", initial_accumulator}}, /* a */
    .derive = derive,
};

#endif
