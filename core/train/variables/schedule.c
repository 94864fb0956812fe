/* schedule.c - common to all schedules: warm-up, and lengths in epochs. */
#include "core/train/variables/schedule.h"

#include <math.h>
#include <string.h>

static const struct field fields[] = {
    FIELD_OF("warmup_steps", INT, struct schedule_spec, warmup_steps, .fallback = "0", .min = 0,
             .max = STEPS_MAX, .group = "warmup",
             .help = "number of first steps in which the rate climbs linearly from 0 to the "
                     "schedule's first rate"),
    FIELD_OF("warmup_epochs", FLOAT, struct schedule_spec, warmup_epochs, .fallback = "0", .min = 0,
             .max = EPOCHS_MAX, .group = "warmup",
             .help = "warmup_steps in epochs of the training data"),
    {0},
};

static const struct schedule *schedule_of(const struct schedule_spec *spec)
{
    return spec->schedule.kind->descriptor;
}

static int64_t *steps_of(void *attributes, const struct duration *duration)
{
    return (int64_t *)((char *)attributes + duration->steps);
}

static double epochs_of(const void *attributes, const struct duration *duration)
{
    double epochs;
    memcpy(&epochs, (const char *)attributes + duration->epochs, sizeof epochs);
    return epochs;
}

static err check_duration(void *attributes, const struct duration *duration, const char *path)
{
    if (!duration->steps_name) return OK;
    const bool has_steps = *steps_of(attributes, duration) > 0,
               has_epochs = epochs_of(attributes, duration) > 0;
    if (has_steps != has_epochs) return OK;
    return fail(ERR_INPUT, "%s: expected one of %s and %s, got %s", path, duration->steps_name,
                duration->epochs_name, has_steps ? "both" : "none");
}

err schedule_check(const struct schedule_spec *spec, const char *path)
{
    const struct schedule *schedule = schedule_of(spec);
    if (spec->warmup_steps > 0 && spec->warmup_epochs > 0)
        return fail(ERR_INPUT, "%s: expected one of warmup_steps and warmup_epochs, got both",
                    path);
    TRY(check_duration(spec->schedule.attributes, &schedule->duration, path));
    return schedule->check ? schedule->check(spec->schedule.attributes, path) : OK;
}

static bool counts(const struct schedule_spec *spec, double steps_per_epoch)
{
    const struct schedule *schedule = schedule_of(spec);
    void *attributes = spec->schedule.attributes;
    const struct duration *duration = &schedule->duration;
    if (schedule->count_epochs) return schedule->count_epochs(attributes, steps_per_epoch);
    return duration->steps_name && epochs_of(attributes, duration) > 0;
}

bool schedule_has_epochs(const struct schedule_spec *spec)
{
    return spec->warmup_epochs > 0 || counts(spec, 0);
}

static err count_duration(double epochs, double steps_per_epoch, const char *path, const char *name,
                          int64_t *ret)
{
    const double steps = round(epochs * steps_per_epoch);
    if (!(epochs > 0)) return OK;
    if (!(steps <= STEPS_MAX))
        return fail(ERR_INPUT, "%s.%s: %g epochs are %.0f steps, and there are %d at most", path,
                    name, epochs, steps, STEPS_MAX);
    *ret = steps < 1 ? 1 : (int64_t)steps;
    return OK;
}

err schedule_count_epochs(struct schedule_spec *spec, const char *path, double steps_per_epoch)
{
    const struct duration *duration = &schedule_of(spec)->duration;
    void *attributes = spec->schedule.attributes;
    counts(spec, steps_per_epoch);
    TRY(count_duration(spec->warmup_epochs, steps_per_epoch, path, "warmup_epochs",
                       &spec->warmup_steps));
    if (duration->steps_name)
        TRY(count_duration(epochs_of(attributes, duration), steps_per_epoch, path,
                           duration->epochs_name, steps_of(attributes, duration)));
    return OK;
}

double schedule_rate(const struct schedule_spec *spec, int64_t step)
{
    const struct schedule *schedule = schedule_of(spec);
    const void *attributes = spec->schedule.attributes;
    if (step >= spec->warmup_steps) return schedule->rate(attributes, step);
    return schedule->rate(attributes, 0) * (double)step / (double)spec->warmup_steps;
}

bool schedule_base(const struct schedule_spec *spec, double *ret)
{
    const double *rate = fields_find(&schedule_of(spec)->object, spec->schedule.attributes,
                                     "learning_rate", FIELD_FLOAT);
    if (rate) *ret = *rate;
    return rate;
}

const struct object schedule_spec_object = {.name = "learning_rate",
                                            .summary = "the learning rate of each step",
                                            .fields = fields,
                                            .size = sizeof(struct schedule_spec)};
