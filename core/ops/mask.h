/* mask.h - what ops share that leave out places along an axis: "mask" names [batch, n], of the n
 * places of the axis, with 1 in those that are there and 0 in the others. Nothing is learned
 * through it. It is the first of the named inputs.
 */
#ifndef CORE_OPS_MASK_H
#define CORE_OPS_MASK_H

#include "core/ops/algebra/loops.h"

enum { MASK_INPUT };

/* A row of the field table of such an op; at: of a const char *. */
#define MASK_FIELD(at)                                                                             \
    {                                                                                              \
        .name = "mask", .type = FIELD_STRING, .offset = at, .fallback = "null",                    \
        .help = "a node of [batch, places], as mask makes one: where it is 0, a place counts as "  \
                "not there; null: all are there"                                                   \
    }

/* NULL: none */
const struct tensor *mask_of(const struct node *);
/* ERR_INPUT: there is one, and it is not [batch, places]. */
err mask_check(const struct node *, int64_t places);
/* By how many floats it goes on along the axes of x, whose places along `axis` it is of */
struct steps mask_steps(const struct shape *x, int axis);
/* y = f(x, mask), of x's shape; high, low: as the formula has them */
void mask_apply(const struct node *, struct device *, const struct fold *, const struct shape *x,
                int axis);
/* For backward: no gradient goes to it. */
void mask_backward(const struct node *, struct device *);

#endif
