/* cosine_decay_restarts: cosine_decay over period i, whose first rate is m_mul^i times the first.
 */
#include <math.h>

#include "core/train/variables/schedules/decay.h"

struct restarts {
    double learning_rate;
    int64_t first_decay_steps; /* length of period 0 */
    double first_decay_epochs;
    double t_mul, m_mul, alpha; /* growth of length and of height per period; the floor */
};

static const struct field fields[] = {
    FIELD_OF("learning_rate", FLOAT, struct restarts, learning_rate, .min = 0, .max = RATE_MAX,
             .help = "the rate of step 0"),
    DURATION_FIELDS("first_decay_steps", offsetof(struct restarts, first_decay_steps),
                    "first_decay_epochs", offsetof(struct restarts, first_decay_epochs),
                    "length of the first period"),
    /* shorter and shorter periods would end at a step beyond which there is no rate */
    FIELD_OF("t_mul", FLOAT, struct restarts, t_mul, .fallback = "2.0", .min = 1, .max = 1000,
             .help = "factor by which each period is longer than the previous one"),
    FIELD_OF("m_mul", FLOAT, struct restarts, m_mul, .fallback = "1.0", .min = 0, .max = 1000,
             .help = "factor between the first rates of consecutive periods"),
    FIELD_OF("alpha", FLOAT, struct restarts, alpha, .fallback = "0.0", .min = 0, .max = 1,
             .help = "the lowest rate, as a share of learning_rate"),
    {0},
};

/* Period i is t_mul^i times as long as the first, so it begins at (1 - t_mul^i) / (1 - t_mul) of
 * the first one's length. */
static double rate(const void *attributes, int64_t step)
{
    const struct restarts *a = attributes;
    double f = (double)step / (double)a->first_decay_steps, period;
    if (a->t_mul == 1.0) {
        period = floor(f);
        f -= period;
    } else {
        /* the quotient of two logarithms may lie one rounding below the whole number it stands for
         */
        period = floor(log(1.0 - f * (1.0 - a->t_mul)) / log(a->t_mul) + 1e-9);
        const double growth = pow(a->t_mul, period);
        f = (f - (1.0 - growth) / (1.0 - a->t_mul)) / growth;
    }
    const double top = pow(a->m_mul, period);
    return a->learning_rate * ((1.0 - a->alpha) * top * half_cosine(f) + a->alpha);
}

const struct schedule schedule_cosine_decay_restarts = {
    .object = {.name = "cosine_decay_restarts",
               .summary = "half cosines one after the other, each t_mul times as long as the last",
               .fields = fields,
               .size = sizeof(struct restarts)},
    .rate = rate,
    .duration = DURATION(struct restarts, first_decay_steps, first_decay_epochs),
};
