/* schedule.c - warm-up, which is common to all schedules. */
#include "core/train/variables/schedule.h"

static const struct field fields[] = {
    {.name = "warmup_steps",
     .type = FIELD_INT,
     .offset = offsetof(struct schedule_spec, warmup_steps),
     .fallback = "0",
     .min = 0,
     .max = STEPS_MAX,
     .help = "number of first steps in which the rate climbs linearly from 0 to the schedule's "
             "first rate"},
    {0},
};

static const struct schedule *schedule_of(const struct schedule_spec *spec)
{
    return spec->schedule.kind->descriptor;
}

err schedule_check(const struct schedule_spec *spec, const char *path)
{
    const struct schedule *schedule = schedule_of(spec);
    return schedule->check ? schedule->check(spec->schedule.attributes, path) : OK;
}

double schedule_rate(const struct schedule_spec *spec, int64_t step)
{
    const struct schedule *schedule = schedule_of(spec);
    const void *attributes = spec->schedule.attributes;
    if (step >= spec->warmup_steps) return schedule->rate(attributes, step);
    return schedule->rate(attributes, 0) * (double)step / (double)spec->warmup_steps;
}

const struct object schedule_spec_object = {.name = "learning_rate",
                                            .summary = "the learning rate of each step",
                                            .fields = fields,
                                            .size = sizeof(struct schedule_spec)};
