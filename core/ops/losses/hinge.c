/* hinge: the mean over all elements of max(0, 1 - (2 z - 1) x), for logits x and labels z of 0 or
 * 1; where that is 0, the slope is 0. */
#include "core/ops/losses/composed.h"

#include <float.h>
#include <math.h>

#include "core/ops/algebra/loops.h"

/* The derivative of 1 - (2 z - 1) x where that is above 0 */
static void slopes(struct device *d, const struct regression *r, const float *missing,
                   const float *slope)
{
    struct fold f = {.of = FOLD_IF_WITHIN,
                     .scale = 1,
                     .low = FLT_MIN,
                     .high = INFINITY,
                     .y = r->gradient,
                     .a = missing,
                     .c = slope};
    fold_axis(&f, r->rows * r->columns, 1, 1, 0, 1);
    d->kernels->fold(d, &f);
}

static void forward(const struct loss_node *node, struct device *d, int64_t rows)
{
    const struct regression r = pairwise_regression(node, rows, 0);
    const int64_t n = r.rows * r.columns;
    float *slope = composed_first(node), *missing = composed_second(node);
    d->kernels->fill(d, slope, 1, n);
    d->kernels->axpy(d, slope, -2, r.targets, n);
    d->kernels->fill(d, missing, 1, n);
    d->kernels->multiply_add(d, missing, slope, r.predictions, n);
    composed_sum(node, d, rows, missing);
    if (!r.gradient) return;
    slopes(d, &r, missing, slope);
    composed_scale(node, d, r.gradient, n);
}

/* One logit per example, and several */
static const struct op_case cases[] = {
    {"{}", 1, {{2, {5, 1}}}},
    {"{}", 1, {{2, {4, 3}}}},
    {0},
};

const struct loss loss_hinge = {
    .object = {"hinge",
               "binary labels: how far the logit of a 1 is below 1, or that of a 0 above -1"},
    .predicts = PREDICTS_LOGIT,
    .labels = LABELS_SHARES,
    .infer = pairwise_infer,
    .prepare = composed_prepare,
    .prepared_bytes = composed_bytes,
    .release = composed_release,
    .forward = forward,
    .weight = pairwise_weight,
    .cases = cases,
};
