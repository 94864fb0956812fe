/* early_stopping.h - the metric by which the hook of this name stops, for keeping the best
 * checkpoints. */
#ifndef CORE_TRAIN_HOOKS_EARLY_STOPPING_H
#define CORE_TRAIN_HOOKS_EARLY_STOPPING_H

#include "core/train/spec/spec.h"

/* "loss" or a metric; NULL: the spec has no such hook. */
const char *early_stopping_metric(const struct spec *);

#endif
