/* penalties.h - shared by the optimizers that make weights exactly zero: l1 and l2, which apply to
 * the value after a step and are not part of the gradient. (The "regularizer" of a layer or a table
 * is part of the gradient: core/graph/plan.c.) */
#ifndef CORE_TRAIN_VARIABLES_OPTIMIZERS_PENALTIES_H
#define CORE_TRAIN_VARIABLES_OPTIMIZERS_PENALTIES_H

#include "kernels/rule.h"

/* Soft thresholding: moves the value towards zero by `by`, but not beyond. */
ELEMENT float penalties_shrink(float value, float by)
{
    const float size = mathf_abs(value) - by;
    return mathf_copy_sign(size < 0.0f ? 0.0f : size, value);
}

#ifndef RULE_ONLY
#include "core/train/variables/optimizer.h"

struct penalties {
    double l1, l2;
};

#define PENALTIES(attributes, member)                                                              \
    {.name = "l1",                                                                                 \
     .type = FIELD_FLOAT,                                                                          \
     .offset = offsetof(attributes, member.l1),                                                    \
     .fallback = "0.0",                                                                            \
     .min = 0,                                                                                     \
     .max = 1e30,                                                                                  \
     .help = "L1 strength; weights with a smaller pull become exactly zero"},                      \
    {                                                                                              \
        .name = "l2", .type = FIELD_FLOAT, .offset = offsetof(attributes, member.l2),              \
        .fallback = "0.0", .min = 0, .max = 1e30, .help = "L2 strength; shrinks all weights"       \
    }
#endif

#endif
