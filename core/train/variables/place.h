/* place.h - the rules of a layout: how many parts a variable is cut into, and which ps gets the
 * next part. layout.c applies them to all variables; tests check them alone. */
#ifndef CORE_TRAIN_VARIABLES_PLACE_H
#define CORE_TRAIN_VARIABLES_PLACE_H

#include "core/train/variables/layout.h"

struct partition {
    int axis;
    int64_t parts; /* 1: not partitioned */
};

/* TensorFlow's partitioners. A variable without the partitioner's axis stays whole, so that kernels
 * can be cut along columns without their biases being an error. */
struct partition partition_of(const struct variant *partitioner, const struct shape *);

/* Whether the partitioner is "balanced" (variables are cut if a ps would hold too much); and how
 * such a variable is cut. */
bool partitioner_balances(const struct variant *partitioner);
struct partition partition_over(int ps_count, const struct shape *);

/* Start of part `part` of `parts` along an axis: the first rows % parts parts have one row more. */
int64_t partition_start(int64_t rows, int64_t parts, int64_t part);

struct placer {
    enum placement_strategy strategy;
    int ps_count;
    int next;       /* round robin */
    int64_t *bytes; /* greedy: [ps_count], bytes placed on each ps so far */
};

struct placer placer_make(enum placement_strategy, int ps_count, struct arena *);
int placer_take(struct placer *, int64_t bytes);         /* the ps of the next variable */
void placer_pin(struct placer *, int ps, int64_t bytes); /* pinned: only adds its bytes */

#endif
