/* moments.c - see moments.h. */
#include "core/train/variables/optimizers/moments.h"

#include <math.h>

const struct field moments_fields[] = {
    LEARNING_RATE(struct moments, learning_rate, "0.001"),
    /* 1 - beta must not vanish in a float: it divides the rate */
    FIELD_OF("beta1", FLOAT, struct moments, beta1, .fallback = "0.9", .min = 0, .max = 0.999999,
             .help = "decay of the mean of the gradients"),
    FIELD_OF("beta2", FLOAT, struct moments, beta2, .fallback = "0.999", .min = 0, .max = 0.999999,
             .help = "decay of the mean of the squared gradients"),
    /* zero would divide zero by zero where no gradient has come yet */
    FIELD_OF("epsilon", FLOAT, struct moments, epsilon, .fallback = "1e-8", .min = 1e-30,
             .max = 1e30,
             .help = "added to the root of the mean square, so that it never divides by zero"),
    {0},
};

float moments_beta1(const void *attributes)
{
    const struct moments *a = attributes;
    return (float)a->beta1;
}

float moments_beta2(const void *attributes)
{
    const struct moments *a = attributes;
    return (float)a->beta2;
}

/* The corrections are taken in double from float powers: 1 - 0.999 loses no digit that way, and
 * the one rounding comes last. */
struct moments_constants moments_derive(const struct moments *a, const struct juncture *now)
{
    const double correction = sqrt(1.0 - (double)now->powers[1]) / (1.0 - (double)now->powers[0]);
    return (struct moments_constants){
        .rate = (float)((double)now->rate * correction),
        .beta1 = (float)a->beta1,
        .beta2 = (float)a->beta2,
        .epsilon = (float)a->epsilon,
    };
}
