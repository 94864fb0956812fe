/* decay.h - shared by several schedules. Names, arguments and results are those of TensorFlow 1.x
 * (tf.train.*_decay), computed in double. */
#ifndef CORE_TRAIN_VARIABLES_SCHEDULES_DECAY_H
#define CORE_TRAIN_VARIABLES_SCHEDULES_DECAY_H

#include "core/train/variables/schedule.h"

/* exponential, natural exponential, inverse time: they differ in their formula only */
struct decay {
    double learning_rate;
    int64_t decay_steps; /* of one p */
    double decay_epochs;
    double decay_rate;
    bool staircase; /* p is rounded down */
};
extern const struct field decay_fields[];

/* p = step / decay_steps, rounded down where staircase is set */
double decay_count(const struct decay *, int64_t step);

/* C(p) = (1 + cos(pi p)) / 2: half a cosine from 1 at p = 0 to 0 at p = 1 */
double half_cosine(double p);

struct linear_cosine {
    double learning_rate;
    int64_t decay_steps; /* D */
    double decay_epochs;
    double num_periods, alpha, beta;
};

/* noise is added to the linear part, which goes from 1 to 0; step <= decay_steps */
double linear_cosine(const struct linear_cosine *, double step, double noise);

#endif
