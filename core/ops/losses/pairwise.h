/* pairwise.h - shared by losses that compare each prediction with a label of its own. */
#ifndef CORE_OPS_LOSSES_PAIRWISE_H
#define CORE_OPS_LOSSES_PAIRWISE_H

#include "core/graph/op.h"

/* Labels are float32 in the shape of the predictions, or [batch] if an example has one. */
err pairwise_infer(struct loss_node *, struct arena *);

/* Predictions per example. */
int64_t pairwise_columns(const struct loss_node *);

/* Divisor of the mean, which is over all elements: rows times pairwise_columns(). */
double pairwise_weight(const struct loss_node *, const void *labels, int64_t rows);

/* Arguments for a regression kernel. */
struct regression pairwise_regression(const struct loss_node *, int64_t rows, double delta);

extern const struct op_case pairwise_cases[];

#endif
