/* cosine_decay: rate * ((1 - alpha) * C(min(step, D) / D) + alpha), with C of decay.h. */
#include <math.h>

#include "core/train/variables/schedules/decay.h"

struct cosine {
    double learning_rate;
    int64_t decay_steps;
    double decay_epochs;
    double alpha;
};

static const struct field fields[] = {
    FIELD_OF("learning_rate", FLOAT, struct cosine, learning_rate, .min = 0, .max = RATE_MAX,
             .help = "the rate of step 0"),
    DURATION_FIELDS("decay_steps", offsetof(struct cosine, decay_steps), "decay_epochs",
                    offsetof(struct cosine, decay_epochs),
                    "the step at which the lowest rate is reached"),
    FIELD_OF("alpha", FLOAT, struct cosine, alpha, .fallback = "0.0", .min = 0, .max = 1,
             .help = "the lowest rate, as a share of learning_rate"),
    {0},
};

static double rate(const void *attributes, int64_t step)
{
    const struct cosine *a = attributes;
    const double p = fmin((double)step / (double)a->decay_steps, 1.0);
    return a->learning_rate * ((1.0 - a->alpha) * half_cosine(p) + a->alpha);
}

const struct schedule schedule_cosine_decay = {
    .object = {.name = "cosine_decay",
               .summary = "falls along half a cosine in decay_steps",
               .fields = fields,
               .size = sizeof(struct cosine)},
    .rate = rate,
    .duration = DURATION(struct cosine, decay_steps, decay_epochs),
};
