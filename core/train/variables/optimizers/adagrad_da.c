/* adagrad_da (dual averaging): s += g; a += g^2; w = -sign(s) * rate * max(|s| - T * l1, 0) /
 * (sqrt(a) + T * rate * l2), with T the global step after this update.
 *
 * The value is computed from the sums only: its old value, and so its initial value, has no effect.
 */
#include "core/train/variables/optimizers/penalties.h"

struct adagrad_da_constants {
    float rate, l1, l2; /* T * l1, T * rate * l2 */
};

RULE(adagrad_da, 2) /* s, a */
{
    const float sum = slot[0] + g, a = slot[1] + g * g;
    slot[0] = sum;
    slot[1] = a;
    *value = -k->rate * penalties_shrink(sum, k->l1) / (sqrtf(a) + k->l2);
}

#ifndef RULE_ONLY

struct adagrad_da {
    struct schedule_spec learning_rate;
    double initial_accumulator; /* of a, for every weight */
    struct penalties penalties;
};

static const struct field fields[] = {
    LEARNING_RATE(struct adagrad_da, learning_rate, NULL),
    /* a sum of zero would divide zero by zero */
    FIELD_OF("initial_gradient_squared_accumulator_value", FLOAT, struct adagrad_da,
             initial_accumulator, .fallback = "0.1", .min = 1e-30, .max = 1e30,
             .help = "initial value of the sum of squared gradients"),
    PENALTIES(struct adagrad_da, penalties),
    {0},
};

static float initial_accumulator(const void *attributes)
{
    const struct adagrad_da *a = attributes;
    return (float)a->initial_accumulator;
}

static void derive(const void *attributes, const struct juncture *now, void *ret)
{
    const struct adagrad_da *a = attributes;
    const double steps = (double)now->step + 1.0;
    struct adagrad_da_constants *k = ret;
    *k = (struct adagrad_da_constants){
        .rate = now->rate,
        .l1 = (float)(steps * a->penalties.l1),
        .l2 = (float)(steps * (double)now->rate * a->penalties.l2),
    };
}

const struct optimizer optimizer_adagrad_da = {
    .object = {.name = "adagrad_da",
               .summary = "adagrad with dual averaging: weights follow from the sum of all "
                          "gradients, exact zeros with l1; initial values have no effect",
               .fields = fields,
               .size = sizeof(struct adagrad_da)},
    .rule = &rule_adagrad_da,
    .slot = {{"AdagradDA"}, {"AdagradDA_1", initial_accumulator}}, /* s, a */
    .refuses_decay = "computes values anew from sums of gradients: it has l2",
    .derive = derive,
};

#endif
