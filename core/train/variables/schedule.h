/* schedule.h - the learning rate of a step. One constant per file in schedules/. Formulas:
 * TensorFlow 1.x learning_rate_decay, where a file does not say otherwise.
 *
 * The rate of a step is computed from the global step before that step's increment (0 for the
 * first). Warm-up: for step < warmup_steps the rate is rate(0) * step / warmup_steps; from then on
 * it is the schedule's own, counted from step 0.
 */
#ifndef CORE_TRAIN_VARIABLES_SCHEDULE_H
#define CORE_TRAIN_VARIABLES_SCHEDULE_H

#include "core/base/fields/fields.h"

/* Of any number of steps in a spec: 60 years of 1 step per second. */
enum { STEPS_MAX = 2000000000 };
/* A bound that no real rate reaches, so that a rate in wrong units is noticed. */
enum { RATE_MAX = 1000000 };

struct schedule {
    struct object object; /* "constant", "exponential_decay", ... */
    double (*rate)(const void *attributes, int64_t step);
    /* Do the members fit together? ERR_INPUT, with path before a member's name. May be NULL. */
    err (*check)(const void *attributes, const char *path);
};
extern const struct kinds
    schedule_kinds; /* key "type"; a bare number is {"type": "constant", "learning_rate": n} */

struct schedule_spec {
    struct variant schedule;
    int64_t warmup_steps;
};
extern const struct object schedule_spec_object; /* the common part: warmup_steps */

/* ERR_INPUT where members of the schedule do not fit together; path: "optimizer.learning_rate". */
err schedule_check(const struct schedule_spec *, const char *path);

double schedule_rate(const struct schedule_spec *, int64_t step);

#endif
