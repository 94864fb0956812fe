/* moments.c - see moments.h. */
#include "core/train/variables/optimizers/moments.h"

#include <math.h>

const struct field moments_fields[] = {MOMENTS_ROWS("1e-8"), {0}};

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

/* The corrections are computed in double from float powers: 1 - 0.999 loses no digit that way, and
 * is rounded once, at the end. */
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
