/* momentum: a = momentum * a + g; w -= rate * a, or with nesterov w -= rate * (g + momentum * a).
 *
 * As in TensorFlow the rate is not inside the accumulator, so a change of the rate acts at once.
 */
#include "kernels/rule.h"

struct momentum_constants {
    float rate, decay;
    bool nesterov;
};

RULE(momentum, 1) /* a */
{
    const float a = slot[0] * k->decay + g;
    slot[0] = a;
    *value -= k->rate * (k->nesterov ? g + k->decay * a : a);
}

#ifndef RULE_ONLY
#include "core/train/variables/optimizer.h"

struct momentum {
    struct schedule_spec learning_rate;
    double momentum; /* kept share of the accumulator per step */
    bool nesterov;   /* named so in spec files; use_nesterov in TensorFlow's constructor */
};

static const struct field fields[] = {
    LEARNING_RATE(struct momentum, learning_rate, NULL),
    {.name = "momentum",
     .type = FIELD_FLOAT,
     .offset = offsetof(struct momentum, momentum),
     .min = 0,
     .max = 1,
     .help = "share of the accumulated gradient that is kept from step to step, usually 0.9"},
    {.name = "nesterov",
     .type = FIELD_BOOL,
     .offset = offsetof(struct momentum, nesterov),
     .fallback = "false",
     .help = "look one step ahead along the momentum (TensorFlow's use_nesterov)"},
    {0},
};

static void derive(const void *attributes, const struct juncture *now, void *ret)
{
    const struct momentum *a = attributes;
    struct momentum_constants *k = ret;
    *k = (struct momentum_constants){now->rate, (float)a->momentum, a->nesterov};
}

const struct optimizer optimizer_momentum = {
    .object = {.name = "momentum",
               .summary = "gradient descent along a decaying sum of the gradients; of a table, of "
                          "the rows of the batch only",
               .fields = fields,
               .size = sizeof(struct momentum)},
    .rule = &rule_momentum,
    .slot = {{"Momentum"}}, /* a */
    .derive = derive,
};

#endif
