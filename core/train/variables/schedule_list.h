/* schedule_list.h - every schedule; schedule.c makes the table from it. */
#ifndef CORE_TRAIN_VARIABLES_SCHEDULE_LIST_H
#define CORE_TRAIN_VARIABLES_SCHEDULE_LIST_H

#include "core/train/variables/schedule.h"

/* A bound that no real rate reaches, so that a rate in wrong units is noticed. */
enum { RATE_MAX = 1000000 };

/* schedule_plain.c */
extern const struct schedule schedule_constant, schedule_piecewise_constant,
    schedule_exponential_decay, schedule_natural_exp_decay, schedule_inverse_time_decay,
    schedule_polynomial_decay;

/* schedule_cosine.c */
extern const struct schedule schedule_cosine_decay, schedule_cosine_decay_restarts,
    schedule_linear_cosine_decay, schedule_noisy_linear_cosine_decay;

#endif
