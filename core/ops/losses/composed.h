/* composed.h - shared by losses that are composed of vector kernels: they have memory for two
 * numbers per prediction. */
#ifndef CORE_OPS_LOSSES_COMPOSED_H
#define CORE_OPS_LOSSES_COMPOSED_H

#include "core/ops/losses/pairwise.h"

size_t composed_bytes(const struct loss_node *, struct device *);
err composed_prepare(struct loss_node *, struct device *);
void composed_release(struct loss_node *, struct device *);

/* Memory for the first and the second number per prediction, [batch, columns] */
float *composed_first(const struct loss_node *);
float *composed_second(const struct loss_node *);

/* Multiplies n numbers by the scale of the gradient, in place */
void composed_scale(const struct loss_node *, struct device *, float *numbers, int64_t n);

/* Sets losses[rows]: the sums over an example's terms; terms below 0 count as 0 */
void composed_sum(const struct loss_node *, struct device *, int64_t rows, const float *terms);

#endif
