/* normal.h - numbers of a batch made to have mean 0 and variance 1, channel by channel: the last
 * axis is the channel, all that stands before it are rows.
 *
 * While a node trains they are normalized by their own mean and variance, and these go to whoever
 * keeps the moving ones, instead of gradients (op.h, struct param). Else by the moving ones.
 */
#ifndef CORE_OPS_NORMALIZATION_NORMAL_H
#define CORE_OPS_NORMALIZATION_NORMAL_H

#include "core/graph/op.h"

struct normal {
    const struct tensor *x;
    int64_t rows, channels;
    float epsilon;
    const float *gamma, *beta;           /* [channels]; NULL: 1 and 0 */
    const struct param *mean, *variance; /* the moving ones */
    const struct tensor *room;           /* what infer has saved: normal_room() */
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

/* What a channel's gradients are sums over: of dy, and of dy (x - mean) / sqrt(variance + epsilon),
 * which are the gradients of beta and of gamma. */
struct normal_sums {
    const float *beta, *gamma;
};
struct normal_sums normal_back_sums(struct device *, const struct normal *, const float *dy);
/* After these: dx (+)= what dy makes of it. */
void normal_back(struct device *, const struct normal *, float *dx, const float *dy, bool add);
/* The batch's mean and variance, to who keeps the moving ones. */
void normal_tell(const struct node *, struct device *, const struct normal *);

#endif
