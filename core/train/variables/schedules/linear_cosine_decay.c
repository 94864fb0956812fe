/* linear_cosine_decay: rate * ((alpha + (D - s) / D) * C(2 num_periods s / D) + beta), with
 * s = min(step, D) and C of decay.h. */
#include <math.h>

#include "core/train/variables/schedules/decay.h"

static const struct field fields[] = {
    FIELD_OF("learning_rate", FLOAT, struct linear_cosine, learning_rate, .min = 0, .max = RATE_MAX,
             .help = "base rate that the schedule scales"),
    DURATION_FIELDS("decay_steps", offsetof(struct linear_cosine, decay_steps), "decay_epochs",
                    offsetof(struct linear_cosine, decay_epochs),
                    "the step at which the linear part reaches 0"),
    FIELD_OF("num_periods", FLOAT, struct linear_cosine, num_periods, .fallback = "0.5", .min = 0,
             .max = 1000, .help = "periods of the cosine in decay_steps"),
    FIELD_OF("alpha", FLOAT, struct linear_cosine, alpha, .fallback = "0.0", .min = 0, .max = 1,
             .help = "added to the linear part"),
    FIELD_OF("beta", FLOAT, struct linear_cosine, beta, .fallback = "0.001", .min = 0, .max = 1,
             .help = "added to the product, so that the rate never reaches 0"),
    {0},
};

static double rate(const void *attributes, int64_t step)
{
    const struct linear_cosine *a = attributes;
    return linear_cosine(a, fmin((double)step, (double)a->decay_steps), 0.0);
}

const struct schedule schedule_linear_cosine_decay = {
    .object = {.name = "linear_cosine_decay",
               .summary = "a straight line times a cosine",
               .fields = fields,
               .size = sizeof(struct linear_cosine)},
    .rate = rate,
    .duration = DURATION(struct linear_cosine, decay_steps, decay_epochs),
};
