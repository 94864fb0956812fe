/* constant: the rate, whatever the step. */
#include "core/train/variables/schedule.h"

struct constant {
    double learning_rate;
};

static const struct field fields[] = {
    FIELD_OF("learning_rate", FLOAT, struct constant, learning_rate, .min = 0, .max = RATE_MAX,
             .help = "the rate of every step"),
    {0},
};

static double rate(const void *attributes, int64_t step)
{
    const struct constant *a = attributes;
    return a->learning_rate;
}

const struct schedule schedule_constant = {
    .object = {.name = "constant",
               .summary = "a constant rate; a bare number means the same",
               .fields = fields,
               .size = sizeof(struct constant)},
    .rate = rate,
};
