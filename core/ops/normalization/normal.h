/* normal.h - normalizing a batch to mean 0 and variance 1, channel by channel: the last axis is the
 * channel, all others are rows.
 *
 * In training, by the batch's own mean and variance, which are passed on in place of gradients to
 * whoever keeps the moving averages (op.h, param.moving). Otherwise by the moving averages.
 */
#ifndef CORE_OPS_NORMALIZATION_NORMAL_H
#define CORE_OPS_NORMALIZATION_NORMAL_H

#include "core/graph/op.h"

struct normal {
    const struct tensor *x;
    int64_t rows, channels;
    float epsilon;
    const float *gamma, *beta;           /* [channels]; NULL: 1 and 0 */
    const struct param *mean, *variance; /* the moving averages */
    const struct tensor *room;           /* scratch memory, saved by infer: normal_room() */
};

/* Adds the params moving_mean and moving_variance. */
struct moving_initializers {
    struct variant mean, variance;
};
err normal_add_moving(struct node *, struct arena *, int64_t channels, double momentum,
                      const struct moving_initializers *);
struct tensor normal_room(int64_t channels);

/* y = (x - mean) / sqrt(variance + epsilon) gamma + beta, of x's shape */
void normal_forward(const struct node *, struct device *, const struct normal *, float *y);

/* Sums for each channel, of dy and of dy (x - mean) / sqrt(variance + epsilon): the gradients of
 * beta and of gamma. */
struct normal_sums {
    const float *beta, *gamma;
};
struct normal_sums normal_back_sums(struct device *, const struct normal *, const float *dy);
/* After normal_back_sums: dx (+)= the gradient that follows from dy. */
void normal_back(struct device *, const struct normal *, float *dx, const float *dy, bool add);
/* Puts the batch's mean and variance where the moving averages' gradients are expected. */
void normal_tell(const struct node *, struct device *, const struct normal *);

#endif
