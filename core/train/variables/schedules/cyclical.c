/* cyclical: rate + (maximal - rate) * gamma^(c - 1) * (1 - |s / S - 2 c + 1|), with S = step_size
 * and cycle c = 1, 2, ...: up a straight line in S steps and down again in S, over and over (Smith
 * 2015).
 *
 * gamma 1 is tfa.optimizers.TriangularCyclicalLearningRate, 0.5 Triangular2CyclicalLearningRate.
 */
#include <math.h>

#include "core/train/variables/schedule.h"

struct cyclical {
    double learning_rate, maximal_learning_rate;
    int64_t step_size; /* of half a cycle */
    double epoch_size;
    double gamma;
};

static const struct field fields[] = {
    FIELD_OF("learning_rate", FLOAT, struct cyclical, learning_rate, .min = 0, .max = RATE_MAX,
             .help = "the rate of step 0, and where every cycle ends"),
    FIELD_OF("maximal_learning_rate", FLOAT, struct cyclical, maximal_learning_rate, .min = 0,
             .max = RATE_MAX, .help = "the rate in the middle of the first cycle"),
    DURATION_FIELDS("step_size", offsetof(struct cyclical, step_size), "epoch_size",
                    offsetof(struct cyclical, epoch_size), "steps of half a cycle"),
    FIELD_OF("gamma", FLOAT, struct cyclical, gamma, .fallback = "1.0", .min = 0, .max = 1,
             .help = "factor between the heights of consecutive cycles"),
    {0},
};

static double rate(const void *attributes, int64_t step)
{
    const struct cyclical *a = attributes;
    const int64_t cycles = step / a->step_size / 2; /* that are over */
    const double s = (double)step / (double)a->step_size - 2.0 * (double)cycles;
    const double climb =
        (a->maximal_learning_rate - a->learning_rate) * pow(a->gamma, (double)cycles);
    return a->learning_rate + climb * (1.0 - fabs(s - 1.0));
}

const struct schedule schedule_cyclical = {
    .object = {.name = "cyclical",
               .summary = "from learning_rate to maximal_learning_rate and back, over and over",
               .fields = fields,
               .size = sizeof(struct cyclical)},
    .rate = rate,
    .duration = DURATION(struct cyclical, step_size, epoch_size),
};
