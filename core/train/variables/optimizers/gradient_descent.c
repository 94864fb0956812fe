/* gradient_descent: w -= rate * g.
 *
 * It keeps nothing beside the values: no slots, no powers, nothing of it in a checkpoint.
 */
#include "kernels/rule.h"

struct gradient_descent_constants {
    float rate;
};

RULE(gradient_descent, 0, 0)
{
    *value -= k->rate * g;
}

#ifndef RULE_ONLY
#include "core/train/variables/optimizer.h"

struct gradient_descent {
    struct schedule_spec learning_rate;
};

static const struct field fields[] = {
    {.name = "learning_rate",
     .type = FIELD_VARIANT,
     .offset = offsetof(struct gradient_descent, learning_rate),
     .object = &schedule_spec_object,
     .kinds = &schedule_kinds,
     .help = "step size: a number, or a schedule"},
    {0},
};

static void derive(const void *attributes, float rate, const float *powers, void *ret)
{
    struct gradient_descent_constants *k = ret;
    k->rate = rate;
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
