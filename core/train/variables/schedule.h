/* schedule.h - the learning rate of a step. One constant per file in schedules/. Formulas:
 * TensorFlow 1.x learning_rate_decay, unless a file says otherwise.
 *
 * The rate of a step is computed from the global step before its increment (0 for the first).
 * Warm-up: for step < warmup_steps the rate is rate(0) * step / warmup_steps; after that it is the
 * schedule's own, counted from step 0.
 */
#ifndef CORE_TRAIN_VARIABLES_SCHEDULE_H
#define CORE_TRAIN_VARIABLES_SCHEDULE_H

#include "core/base/fields/fields.h"

/* The largest number of steps in a spec: 60 years at one step per second. */
enum { STEPS_MAX = 2000000000 };
/* Larger than any real rate, so that wrong units are noticed. */
enum { RATE_MAX = 1000000 };
#define EPOCHS_MIN 1e-6
#define EPOCHS_MAX 1e9

/* A length in a schedule's attributes: an int64_t of steps, or a double of epochs of the training
 * data, of which one is given (the other is 0). */
struct duration {
    const char *steps_name, *epochs_name; /* NULL: there is none */
    size_t steps, epochs;                 /* offsets */
};
#define DURATION(attributes, steps_member, epochs_member)                                          \
    {                                                                                              \
        .steps_name = #steps_member, .epochs_name = #epochs_member,                                \
        .steps = offsetof(attributes, steps_member), .epochs = offsetof(attributes, epochs_member) \
    }
#define DURATION_FIELDS(steps_member, steps_at, epochs_member, epochs_at, steps_help)              \
    {.name = steps_member,                                                                         \
     .type = FIELD_INT,                                                                            \
     .offset = steps_at,                                                                           \
     .fallback = "null",                                                                           \
     .min = 1,                                                                                     \
     .max = STEPS_MAX,                                                                             \
     .group = steps_member,                                                                        \
     .group_is_required = true,                                                                    \
     .help = steps_help},                                                                          \
    {                                                                                              \
        .name = epochs_member, .type = FIELD_FLOAT, .offset = epochs_at, .fallback = "null",       \
        .min = EPOCHS_MIN, .max = EPOCHS_MAX, .group = steps_member, .group_is_required = true,    \
        .help = steps_member " in epochs of the training data: the steps that these take"          \
    }

struct schedule {
    struct object object; /* "constant", "exponential_decay", ... */
    double (*rate)(const void *attributes, int64_t step);
    struct duration duration; /* its length that may be given in epochs, if any */
    /* For schedules with another number of such lengths; NULL: none. steps_per_epoch 0: only check.
     * Returns whether any is in epochs. */
    bool (*count_epochs)(void *attributes, double steps_per_epoch);
    /* Checks that members fit together. ERR_INPUT, with `path` before a member's name. May be
     * NULL. */
    err (*check)(const void *attributes, const char *path);
};
extern const struct kinds
    schedule_kinds; /* key "type"; a bare number is {"type": "constant", "learning_rate": n} */

struct schedule_spec {
    struct variant schedule;
    int64_t warmup_steps;
    double warmup_epochs;
};
extern const struct object schedule_spec_object; /* the common part: warmup_steps */

/* ERR_INPUT: members of the schedule do not fit together; path: "optimizer.learning_rate". */
err schedule_check(const struct schedule_spec *, const char *path);

/* Whether a length is in epochs: then schedule_count_epochs must come before schedule_rate. */
bool schedule_has_epochs(const struct schedule_spec *);
/* Converts each length in epochs to steps: the nearest number, at least 1. All tasks compute the
 * same, and again when the number of workers changes. ERR_INPUT: more than STEPS_MAX. */
err schedule_count_epochs(struct schedule_spec *, const char *path, double steps_per_epoch);

double schedule_rate(const struct schedule_spec *, int64_t step);
/* Its attribute learning_rate. false: it has none. */
bool schedule_base(const struct schedule_spec *, double *ret);

#endif
