/* mask.h - shared by ops with a mask: "mask" names an input [batch, n] with 1 for the positions of
 * an axis of n that are present, and 0 for the others. It gets no gradient. It is the first of the
 * named inputs. */
#ifndef CORE_OPS_MASK_H
#define CORE_OPS_MASK_H

#include "core/ops/algebra/loops.h"

enum { MASK_INPUT };

/* A row of the field table of such an op; at: offset of a const char *. */
#define MASK_FIELD(at)                                                                             \
    {                                                                                              \
        .name = "mask", .type = FIELD_STRING, .offset = at, .fallback = "null",                    \
        .help = "a node of [batch, places], as mask makes one: where it is 0, a place counts as "  \
                "not there; null: all are there"                                                   \
    }

/* NULL: none */
const struct tensor *mask_of(const struct node *);
/* ERR_INPUT: a mask that is not [batch, places]. */
err mask_check(const struct node *, int64_t places);
/* The mask's strides, in floats, along the axes of x; its positions are those of `axis` */
struct steps mask_steps(const struct shape *x, int axis);
/* y = f(x, mask), of x's shape; the fold's high and low as its formula needs them */
void mask_apply(const struct node *, struct device *, const struct fold *, const struct shape *x,
                int axis);
/* For backward: sets the mask's gradient, if it has one, to 0. */
void mask_backward(const struct node *, struct device *);

#endif
