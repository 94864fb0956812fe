/* moments.h - shared by adam and its variants: the running means m of the gradient and v of its
 * square, and the step rate_t * m / (sqrt(v) + epsilon) with rate_t = rate * sqrt(1 - beta2^t) / (1
 * - beta1^t).
 *
 * epsilon is added to the uncorrected root ("epsilon hat" of the paper), as TensorFlow does. The
 * powers beta^t are shared by all variables; in asynchronous training they advance with every
 * applied gradient of any worker.
 */
#ifndef CORE_TRAIN_VARIABLES_OPTIMIZERS_MOMENTS_H
#define CORE_TRAIN_VARIABLES_OPTIMIZERS_MOMENTS_H

#include "kernels/rule.h"

struct moments_constants {
    float rate, beta1, beta2, epsilon; /* rate_t */
};

/* Updates m and v, slot[0] and slot[1], by the gradient g; returns the step. */
ELEMENT float moments_step(const struct moments_constants *k, float g, float *slot)
{
    const float m = slot[0] + (g - slot[0]) * (1.0f - k->beta1);
    const float v = slot[1] + (g * g - slot[1]) * (1.0f - k->beta2);
    slot[0] = m;
    slot[1] = v;
    return k->rate * m / (sqrtf(v) + k->epsilon);
}

#ifndef RULE_ONLY
#include "core/train/variables/optimizer.h"

struct moments { /* the attributes of each begin with this */
    struct schedule_spec learning_rate;
    double beta1, beta2; /* decays of m and v */
    double epsilon;
};

/* Fields for attributes that begin with a struct moments. 1 - beta must not round to 0 in a float:
 * it divides the rate. With epsilon 0, elements without a gradient so far would be 0 / 0. */
#define MOMENTS_ROWS(epsilon_fallback)                                                             \
    LEARNING_RATE(struct moments, learning_rate, "0.001"),                                         \
        FIELD_OF("beta1", FLOAT, struct moments, beta1, .fallback = "0.9", .min = 0,               \
                 .max = 0.999999, .help = "decay of the mean of the gradients"),                   \
        FIELD_OF("beta2", FLOAT, struct moments, beta2, .fallback = "0.999", .min = 0,             \
                 .max = 0.999999, .help = "decay of the mean of the squared gradients"),           \
        FIELD_OF("epsilon", FLOAT, struct moments, epsilon, .fallback = epsilon_fallback,          \
                 .min = 1e-30, .max = 1e30,                                                        \
                 .help = "added to the root of the mean square, so that it never divides by zero")

extern const struct field moments_fields[]; /* with the defaults of adam */
float moments_beta1(const void *attributes);
float moments_beta2(const void *attributes);

/* powers: beta1^t, beta2^t */
struct moments_constants moments_derive(const struct moments *, const struct juncture *);
#endif

#endif
