/* reshape: the same elements with another shape per example, as tf.keras.layers.Reshape: "shape"
 * does not include the batch. A view. */
#include "core/graph/op.h"

#include <inttypes.h>

struct attributes {
    struct ints shape; /* of one example, with at most one -1; 0: as in the input */
};

static const struct field fields[] = {
    FIELD_OF("shape", INTS, struct attributes, shape, .min = -1, .max = (double)(INT64_C(1) << 40),
             .count_max = RANK_MAX - 1,
             .help = "new shape of one example, without the batch; 0: the input's length of this "
                     "axis; -1, once: inferred from the rest"),
    {0},
};

/* Size of dimension i of an example, or -1; 0: the input has no such dimension. */
static int64_t dim_at(const struct ints *shape, int i, const struct shape *x)
{
    return shape->at[i] ? shape->at[i] : i + 1 < x->rank ? x->dim[i + 1] : 0;
}

/* Product of the known dimensions, and the index of the one that is -1 (-1: none). ERR_INPUT: the
 * product is more than the input has. */
static err read_shape(const struct ints *shape, const struct shape *x, int64_t *ret_known,
                      int *ret_open)
{
    const int64_t elements = shape_count_from(x, 1);
    int64_t known = 1;
    int open = -1;
    for (int i = 0; i < shape->count; i++) {
        const int64_t dim = dim_at(shape, i, x);
        if (dim == 0)
            return fail(ERR_INPUT, "shape[%d]: 0 is as large as the input's, which has %d axes", i,
                        x->rank - 1);
        if (dim < 0 && open >= 0) return fail(ERR_INPUT, "shape: only one dimension can be -1");
        if (dim < 0)
            open = i;
        else if (dim > elements / known)
            return fail(ERR_INPUT, "shape: more than the %" PRId64 " elements of an example",
                        elements);
        else
            known *= dim;
    }
    *ret_known = known;
    *ret_open = open;
    return OK;
}

/* The batch is unchanged; the open dimension is the elements of an example divided by the known
 * ones. */
static err infer(struct node *node, struct arena *arena)
{
    const struct attributes *a = node->attributes;
    const struct shape *x = &node->input[0]->shape;
    const int64_t elements = shape_count_from(x, 1);
    int64_t known = 1;
    int open = -1;
    TRY(read_shape(&a->shape, x, &known, &open));
    if (open >= 0 ? elements % known != 0 : elements != known)
        return fail(ERR_INPUT, "shape: %" PRId64 " elements do not make %" PRId64, elements, known);

    struct shape *y = &node->output.shape;
    *y = (struct shape){a->shape.count + 1, {x->dim[0]}};
    for (int i = 0; i < a->shape.count; i++)
        y->dim[i + 1] = i == open ? elements / known : dim_at(&a->shape, i, x);
    node->is_view = true;
    return OK;
}

/* Without an open dimension, with one, with one after a 0, and to no dimension at all. */
static const struct op_case cases[] = {
    {"{\"shape\": [4, 3]}", 1, {{2, {2, 12}}}},
    {"{\"shape\": [2, -1, 2]}", 1, {{3, {3, 4, 5}}}},
    {"{\"shape\": [0, -1]}", 1, {{4, {3, 4, 5, 2}}}},
    {"{\"shape\": []}", 1, {{2, {3, 1}}}},
    {0},
};

const struct op op_reshape = {
    .object = {"reshape", "changes the shape of each example", fields, sizeof(struct attributes)},
    .inputs_min = 1,
    .inputs_max = 1,
    .infer = infer,
    .cases = cases,
};
