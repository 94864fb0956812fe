/* proximal_gradient_descent: v = w - rate * g; w = sign(v) * max(|v| - rate * l1, 0) / (1 + rate *
 * l2).
 */
#include "core/train/variables/optimizers/penalties.h"

struct proximal_gradient_descent_constants {
    float rate, l1, divisor; /* rate * l1, 1 + rate * l2 */
};

RULE(proximal_gradient_descent, 0)
{
    *value = penalties_shrink(*value - k->rate * g, k->l1) / k->divisor;
}

#ifndef RULE_ONLY

struct proximal_gradient_descent {
    struct schedule_spec learning_rate;
    struct penalties penalties;
};

static const struct field fields[] = {
    LEARNING_RATE(struct proximal_gradient_descent, learning_rate, NULL),
    PENALTIES(struct proximal_gradient_descent, penalties),
    {0},
};

static void derive(const void *attributes, const struct juncture *now, void *ret)
{
    const struct proximal_gradient_descent *a = attributes;
    struct proximal_gradient_descent_constants *k = ret;
    *k = (struct proximal_gradient_descent_constants){
        .rate = now->rate,
        .l1 = now->rate * (float)a->penalties.l1,
        .divisor = 1.0f + (float)a->penalties.l2 * now->rate,
    };
}

const struct optimizer optimizer_proximal_gradient_descent = {
    .object = {.name = "proximal_gradient_descent",
               .summary = "gradient descent whose l1 makes weights exactly zero",
               .fields = fields,
               .size = sizeof(struct proximal_gradient_descent)},
    .rule = &rule_proximal_gradient_descent,
    .derive = derive,
};

#endif
