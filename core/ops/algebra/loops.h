/* loops.h - folds (kernels/kernels.h) over the axes of shapes, with numpy's broadcasting. */
#ifndef CORE_OPS_ALGEBRA_LOOPS_H
#define CORE_OPS_ALGEBRA_LOOPS_H

#include "core/graph/op.h"

/* Strides of a tensor, in floats, along each axis of y, to whose shape it is broadcast: the batch
 * is aligned with the batch, and an example's axes from the last one on; 0 where it is
 * broadcast. */
struct steps {
    int64_t at[RANK_MAX];
};
struct steps steps_of(const struct shape *x, const struct shape *y);

/* A spec's "axis", counted from the front. ERR_INPUT: not an axis of an example */
err axis_of(const char *what, int64_t axis, const struct shape *, int *ret);

/* Sets the output's shape, to which all inputs are broadcast, and is_shares if all of them have it.
 * ERR_INPUT */
err broadcast_infer(struct node *, struct arena *);

/* y = f(a, b); a and b are broadcast to y's shape */
void broadcast(struct device *, enum fold_of, const struct tensor *y, const struct tensor *a,
               const struct tensor *b);

/* The gradient of input i, from which y was made: sums scale * f over the axes along which the
 * input was broadcast. Operands have y's shape or are broadcast to it. is_more: adds to another
 * term of the gradient, which is already there. */
struct back {
    enum fold_of of;
    const struct tensor *a, *b;
    const float *a_value, *b_value, *c; /* c: of y's shape; NULL */
    float scale;
    bool is_more;
};
void broadcast_back(const struct node *, struct device *, int i, const struct back *);

#endif
