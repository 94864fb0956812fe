/* polynomial_decay: (rate - end) * (1 - min(step, D) / D)^power + end. */
#include <math.h>

#include "core/train/variables/schedule.h"

struct polynomial {
    double learning_rate;
    int64_t decay_steps; /* D */
    double decay_epochs;
    double end_learning_rate, power;
    bool cycle; /* D becomes the next multiple of itself that step has not passed */
};

static const struct field fields[] = {
    FIELD_OF("learning_rate", FLOAT, struct polynomial, learning_rate, .min = 0, .max = RATE_MAX,
             .help = "the rate of step 0"),
    DURATION_FIELDS("decay_steps", offsetof(struct polynomial, decay_steps), "decay_epochs",
                    offsetof(struct polynomial, decay_epochs),
                    "the step at which end_learning_rate is reached"),
    FIELD_OF("end_learning_rate", FLOAT, struct polynomial, end_learning_rate, .fallback = "0.0001",
             .min = 0, .max = RATE_MAX, .help = "the rate from decay_steps on"),
    FIELD_OF("power", FLOAT, struct polynomial, power, .fallback = "1.0", .min = 0, .max = 1000,
             .help = "exponent of the curve; 1: linear"),
    FIELD_OF("cycle", BOOL, struct polynomial, cycle, .fallback = "false",
             .help = "restart the decay after decay_steps, each time with a later end"),
    {0},
};

static double rate(const void *attributes, int64_t step)
{
    const struct polynomial *a = attributes;
    double s = (double)step, end = (double)a->decay_steps;
    if (a->cycle) {
        end *= fmax(ceil(s / end), 1.0); /* step 0 belongs to the first cycle */
    } else {
        s = fmin(s, end);
    }
    return (a->learning_rate - a->end_learning_rate) * pow(1.0 - s / end, a->power) +
           a->end_learning_rate;
}

const struct schedule schedule_polynomial_decay = {
    .object = {.name = "polynomial_decay",
               .summary = "from learning_rate to end_learning_rate in decay_steps, "
                          "as (1 - step / decay_steps) ^ power",
               .fields = fields,
               .size = sizeof(struct polynomial)},
    .rate = rate,
    .duration = DURATION(struct polynomial, decay_steps, decay_epochs),
};
