/* lazy_momentum: momentum under a name that says what it does to a table, like lazy_adam: the
 * accumulators of rows that no batch names do not decay. */
#include "core/train/variables/optimizers/momentum.h"

struct lazy_momentum_constants {
    struct momentum_constants momentum;
};

RULE(lazy_momentum, 1) /* a */
{
    *value -= momentum_step(&k->momentum, g, slot);
}

#ifndef RULE_ONLY

static void derive(const void *attributes, const struct juncture *now, void *ret)
{
    struct lazy_momentum_constants *k = ret;
    k->momentum = momentum_derive(attributes, now);
}

const struct optimizer optimizer_lazy_momentum = {
    .object =
        {.name = "lazy_momentum",
         .summary =
             "another name of momentum, which updates only the rows of a table that the batch uses",
         .fields = momentum_fields,
         .size = sizeof(struct momentum)},
    .rule = &rule_lazy_momentum,
    .slot = {{"Momentum"}}, /* a */
    .derive = derive,
};

#endif
