/* decay.c - see decay.h. */
#include "core/train/variables/schedules/decay.h"

#include <math.h>

const struct field decay_fields[] = {
    FIELD_OF("learning_rate", FLOAT, struct decay, learning_rate, .min = 0, .max = RATE_MAX,
             .help = "the rate of step 0"),
    DURATION_FIELDS("decay_steps", offsetof(struct decay, decay_steps), "decay_epochs",
                    offsetof(struct decay, decay_epochs),
                    "steps in which the rate decays once by decay_rate"),
    FIELD_OF("decay_rate", FLOAT, struct decay, decay_rate, .min = 0, .max = RATE_MAX,
             .help = "decay per decay_steps, see the formula"),
    FIELD_OF("staircase", BOOL, struct decay, staircase, .fallback = "false",
             .help = "decay in steps, once every decay_steps, instead of continuously"),
    {0},
};

double decay_count(const struct decay *a, int64_t step)
{
    const double p = (double)step / (double)a->decay_steps;
    return a->staircase ? floor(p) : p;
}

double half_cosine(double p)
{
    return 0.5 * (1.0 + cos(M_PI * p));
}

double linear_cosine(const struct linear_cosine *a, double step, double noise)
{
    const double end = (double)a->decay_steps;
    const double linear = (end - step) / end + noise;
    const double cosine = half_cosine(2.0 * a->num_periods * step / end);
    return a->learning_rate * ((a->alpha + linear) * cosine + a->beta);
}
