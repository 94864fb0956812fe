/* loops.h - folds (kernels/kernels.h) over the axes of shapes, with numpy's broadcasting. */
#ifndef CORE_OPS_ALGEBRA_LOOPS_H
#define CORE_OPS_ALGEBRA_LOOPS_H

#include "core/graph/op.h"

/* By how many floats a tensor goes on along each axis of y, to whose shape it is broadcast: the
 * batch along the batch, and an example's axes from the last one on; 0 where it has one number for
 * all of y's. */
struct steps {
    int64_t at[RANK_MAX];
};
struct steps steps_of(const struct shape *x, const struct shape *y);

/* "axis" of a spec, counted from the front; ERR_INPUT where it is none of an example */
err axis_of(const char *what, int64_t axis, const struct shape *, int *ret);

/* The shape that all inputs are broadcast to; all of them say that they are shares: so is the
 * output */
err broadcast_infer(struct node *, struct arena *);

/* y = f(a, b) of the shape of y, which a and b are broadcast to */
void broadcast(struct device *, enum fold_of, const struct tensor *y, const struct tensor *a,
               const struct tensor *b);

/* The gradient of input i, which y's shape was made from: += or = the sum of f over where it was
 * broadcast. Operands are of y's shape or broadcast to it; scale: of all. is_more: another term of
 * the gradient is there already. */
struct back {
    enum fold_of of;
    const struct tensor *a, *b;
    const float *a_value, *b_value, *c; /* c: of y's shape; NULL */
    float scale;
    bool is_more;
};
void broadcast_back(const struct node *, struct device *, int i, const struct back *);

#endif
