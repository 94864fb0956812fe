/* momentum: see momentum.h. Table rows without a gradient stay unchanged, as in TensorFlow. */
#include "core/train/variables/optimizers/momentum.h"

RULE(momentum, 1) /* a */
{
    *value -= momentum_step(k, g, slot);
}

#ifndef RULE_ONLY

const struct field momentum_fields[] = {
    LEARNING_RATE(struct momentum, learning_rate, NULL),
    FIELD_OF("momentum", FLOAT, struct momentum, momentum, .min = 0, .max = 1,
             .help = "decay of the accumulated gradient, usually 0.9"),
    FIELD_OF("nesterov", BOOL, struct momentum, nesterov, .fallback = "false",
             .help = "look one step ahead along the momentum (TensorFlow's use_nesterov)"),
    {0},
};

struct momentum_constants momentum_derive(const struct momentum *a, const struct juncture *now)
{
    return (struct momentum_constants){now->rate, (float)a->momentum, a->nesterov};
}

static void derive(const void *attributes, const struct juncture *now, void *ret)
{
    struct momentum_constants *k = ret;
    *k = momentum_derive(attributes, now);
}

const struct optimizer optimizer_momentum = {
    .object = {.name = "momentum",
               .summary = "gradient descent along a decaying sum of gradients; updates only the "
                          "rows of a table that the batch uses",
               .fields = momentum_fields,
               .size = sizeof(struct momentum)},
    .rule = &rule_momentum,
    .slot = {{"Momentum"}}, /* a */
    .derive = derive,
};

#endif
