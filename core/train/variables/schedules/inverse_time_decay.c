/* inverse_time_decay: rate / (1 + decay_rate * p), with p of decay.h. */
#include "core/train/variables/schedules/decay.h"

static double rate(const void *attributes, int64_t step)
{
    const struct decay *a = attributes;
    return a->learning_rate / (1.0 + a->decay_rate * decay_count(a, step));
}

const struct schedule schedule_inverse_time_decay = {
    .object = {.name = "inverse_time_decay",
               .summary = "learning_rate / (1 + decay_rate * step / decay_steps)",
               .fields = decay_fields,
               .size = sizeof(struct decay)},
    .rate = rate,
    .duration = DURATION(struct decay, decay_steps, decay_epochs),
};
