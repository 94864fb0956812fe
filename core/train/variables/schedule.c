/* schedule.c - the table of schedules, and warm-up, which is common to all. */
#include "core/train/variables/schedule.h"

#include "core/train/variables/schedule_list.h"

static const struct kind table[] = {
    {&schedule_constant.object, &schedule_constant},
    {&schedule_piecewise_constant.object, &schedule_piecewise_constant},
    {&schedule_exponential_decay.object, &schedule_exponential_decay},
    {&schedule_natural_exp_decay.object, &schedule_natural_exp_decay},
    {&schedule_inverse_time_decay.object, &schedule_inverse_time_decay},
    {&schedule_polynomial_decay.object, &schedule_polynomial_decay},
    {&schedule_cosine_decay.object, &schedule_cosine_decay},
    {&schedule_cosine_decay_restarts.object, &schedule_cosine_decay_restarts},
    {&schedule_linear_cosine_decay.object, &schedule_linear_cosine_decay},
    {&schedule_noisy_linear_cosine_decay.object, &schedule_noisy_linear_cosine_decay},
};

static const struct kind *at(int index)
{
    return index < (int)(sizeof table / sizeof table[0]) ? &table[index] : NULL;
}

static const struct field fields[] = {
    {.name = "warmup_steps",
     .type = FIELD_INT,
     .offset = offsetof(struct schedule_spec, warmup_steps),
     .fallback = "0",
     .min = 0,
     .max = STEPS_MAX,
     .help = "so many first steps climb evenly from 0 to the schedule's first rate"},
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

const struct kinds schedule_kinds = {.key = "type",
                                     .noun = "schedule",
                                     .at = at,
                                     .number_kind = "constant",
                                     .number_field = "learning_rate"};

const struct object schedule_spec_object = {.name = "learning_rate",
                                            .summary = "the learning rate of each step",
                                            .fields = fields,
                                            .size = sizeof(struct schedule_spec)};
