/* schedule.h - the learning rate of a step. Formulas: TensorFlow 1.x learning_rate_decay.
 *
 * The rate of a step is computed from the global step before that step's increment (0 for the
 * first). Warm-up: for step < warmup_steps the rate is rate(step) * step / warmup_steps' linear
 * ramp to the first value of the schedule: base * (step / warmup_steps) with base = the schedule's
 * own initial rate.
 */
#ifndef CORE_TRAIN_SCHEDULE_H
#define CORE_TRAIN_SCHEDULE_H

#include "core/base/fields.h"

struct schedule {
    struct object object; /* "constant", "exponential_decay", ... */
    double (*rate)(const void *attributes, int64_t step);
    err (*check)(const void *attributes); /* of members against each other; may be NULL */
};
extern const struct kinds
    schedule_kinds; /* key "type"; a bare number is {"type": "constant", "learning_rate": n} */

struct schedule_spec {
    struct variant schedule;
    int64_t warmup_steps;
};
extern const struct object schedule_spec_object; /* the common part: warmup_steps */

/* ERR_INPUT where members of the schedule do not fit together. */
err schedule_check(const struct schedule_spec *);

double schedule_rate(const struct schedule_spec *, int64_t step);

#endif
