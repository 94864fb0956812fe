/* gradient_descent: w -= rate * g.
 *
 * It has no state besides the values: no slots, no powers, nothing in a checkpoint.
 */
#include "kernels/rule.h"

struct gradient_descent_constants {
    float rate;
};

RULE(gradient_descent, 0)
{
    *value -= k->rate * g;
}

#ifndef RULE_ONLY
#include "core/train/variables/optimizer.h"

struct gradient_descent {
    struct schedule_spec learning_rate;
};

static const struct field fields[] = {
    LEARNING_RATE(struct gradient_descent, learning_rate, NULL),
    {0},
};

static void derive(const void *attributes, const struct juncture *now, void *ret)
{
    struct gradient_descent_constants *k = ret;
    k->rate = now->rate;
}

const struct optimizer optimizer_gradient_descent = {
    .object = {.name = "gradient_descent",
               .summary = "plain stochastic gradient descent: w -= rate * g",
               .fields = fields,
               .size = sizeof(struct gradient_descent)},
    .rule = &rule_gradient_descent,
    .derive = derive,
};

#endif
