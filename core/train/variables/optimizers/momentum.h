/* momentum.h - shared by momentum and lazy_momentum: a = momentum * a + g; w -= rate * a, or with
 * nesterov w -= rate * (g + momentum * a).
 *
 * As in TensorFlow the rate is not inside the accumulator, so a change of the rate takes effect at
 * once.
 */
#ifndef CORE_TRAIN_VARIABLES_OPTIMIZERS_MOMENTUM_H
#define CORE_TRAIN_VARIABLES_OPTIMIZERS_MOMENTUM_H

#include "kernels/rule.h"

struct momentum_constants {
    float rate, decay;
    bool nesterov;
};

/* Updates a, slot[0], by the gradient g; returns the step. */
ELEMENT float momentum_step(const struct momentum_constants *k, float g, float *slot)
{
    const float a = slot[0] * k->decay + g;
    slot[0] = a;
    return k->rate * (k->nesterov ? g + k->decay * a : a);
}

#ifndef RULE_ONLY
#include "core/train/variables/optimizer.h"

struct momentum {
    struct schedule_spec learning_rate;
    double momentum; /* kept share of the accumulator per step */
    bool nesterov;   /* named so in spec files; use_nesterov in TensorFlow's constructor */
};

extern const struct field momentum_fields[];
struct momentum_constants momentum_derive(const struct momentum *, const struct juncture *);
#endif

#endif
