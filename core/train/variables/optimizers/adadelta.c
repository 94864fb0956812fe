/* adadelta: a = rho * a + (1 - rho) g^2; u = sqrt(d + epsilon) / sqrt(a + epsilon) * g;
 * w -= rate * u; d = rho * d + (1 - rho) u^2.
 *
 * The default rate is TensorFlow's; the paper's is 1.
 */
#include "kernels/rule.h"

struct adadelta_constants {
    float rate, rho, epsilon;
};

RULE(adadelta, 2) /* a, d */
{
    const float a = slot[0] * k->rho + g * g * (1.0f - k->rho);
    const float step = sqrtf(slot[1] + k->epsilon) / sqrtf(a + k->epsilon) * g;
    slot[0] = a;
    slot[1] = slot[1] * k->rho + step * step * (1.0f - k->rho);
    *value -= k->rate * step;
}

#ifndef RULE_ONLY
#include "core/train/variables/optimizer.h"

struct adadelta {
    struct schedule_spec learning_rate;
    double rho;     /* kept share of both means per step */
    double epsilon; /* inside both roots */
};

static const struct field fields[] = {
    LEARNING_RATE(struct adadelta, learning_rate, "0.001"),
    FIELD_OF("rho", FLOAT, struct adadelta, rho, .fallback = "0.95", .min = 0, .max = 1,
             .help = "decay of the mean squares of gradients and steps"),
    /* from a mean square of zero there would never be a step */
    FIELD_OF("epsilon", FLOAT, struct adadelta, epsilon, .fallback = "1e-8", .min = 1e-30,
             .max = 1e30, .help = "added to both mean squares under the root"),
    {0},
};

static void derive(const void *attributes, const struct juncture *now, void *ret)
{
    const struct adadelta *a = attributes;
    struct adadelta_constants *k = ret;
    *k = (struct adadelta_constants){now->rate, (float)a->rho, (float)a->epsilon};
}

const struct optimizer optimizer_adadelta = {
    .object = {.name = "adadelta",
               .summary = "gradients scaled by the ratio of the last steps to the last gradients; "
                          "the paper's learning_rate is 1",
               .fields = fields,
               .size = sizeof(struct adadelta)},
    .rule = &rule_adadelta,
    .slot = {{"Adadelta"}, {"Adadelta_1"}}, /* a, d */
    .derive = derive,
};

#endif
