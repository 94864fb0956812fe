/* exponential_decay: rate * decay_rate^p, with p of decay.h. */
#include <math.h>

#include "core/train/variables/schedules/decay.h"

static double rate(const void *attributes, int64_t step)
{
    const struct decay *a = attributes;
    return a->learning_rate * pow(a->decay_rate, decay_count(a, step));
}

const struct schedule schedule_exponential_decay = {
    .object = {.name = "exponential_decay",
               .summary = "learning_rate * decay_rate ^ (step / decay_steps)",
               .fields = decay_fields,
               .size = sizeof(struct decay)},
    .rate = rate,
    .duration = DURATION(struct decay, decay_steps, decay_epochs),
};
