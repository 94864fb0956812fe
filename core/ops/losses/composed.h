/* composed.h - what losses share that are put together from kernels of vectors: they have memory
 * for two numbers beside each prediction. */
#ifndef CORE_OPS_LOSSES_COMPOSED_H
#define CORE_OPS_LOSSES_COMPOSED_H

#include "core/ops/losses/pairwise.h"

size_t composed_bytes(const struct loss_node *, struct device *);
err composed_prepare(struct loss_node *, struct device *);
void composed_release(struct loss_node *, struct device *);

/* Memory for the first and the second number of each prediction, [batch, columns] */
float *composed_first(const struct loss_node *);
float *composed_second(const struct loss_node *);

/* n numbers times the scale of the gradient, where they lie */
void composed_scale(const struct loss_node *, struct device *, float *numbers, int64_t n);

/* losses[rows]: the sums over an example's terms, of which those below 0 count as 0 */
void composed_sum(const struct loss_node *, struct device *, int64_t rows, const float *terms);

#endif
