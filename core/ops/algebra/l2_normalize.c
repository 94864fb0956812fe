/* l2_normalize: x / root of the sum of its squares along an axis, as tf.math.l2_normalize;
 * clip_by_norm: x norm / root if the root is larger than the norm, as tf.clip_by_norm. Both are x
 * norm / max(root, least). */
#include "core/ops/algebra/loops.h"

#include <math.h>

extern const struct op op_clip_by_norm;

struct attributes {
    int64_t axis;
    double bound; /* epsilon, or the norm */
};

#define AXIS_FIELD                                                                                 \
    {                                                                                              \
        .name = "axis", .type = FIELD_INT, .offset = offsetof(struct attributes, axis),            \
        .fallback = "-1", .min = -RANK_MAX, .max = RANK_MAX - 1,                                   \
        .help = "axis, counting the batch as 0; negative: from the end"                            \
    }

static const struct field fields[] = {
    AXIS_FIELD,
    FIELD_OF("epsilon", FLOAT, struct attributes, bound, .fallback = "1e-12", .min = 1e-30,
             .max = 1, .help = "lower bound of the sum of squares"),
    {0},
};

/* These limits keep squares within float32. */
static const struct field clip_fields[] = {
    AXIS_FIELD,
    FIELD_OF("norm", FLOAT, struct attributes, bound, .min = 1e-9, .max = 1e9,
             .help = "the largest Euclidean norm; what has a larger one is scaled down to it"),
    {0},
};

/* saved: the factor of each sum of squares; and sums in backward */
enum { INVERSE, SUMS };

static err infer(struct node *node, struct arena *arena)
{
    const struct attributes *a = node->attributes;
    struct shape sums = node->input[0]->shape;
    int axis;
    TRY(axis_of("axis", a->axis, &sums, &axis));
    node->output.shape = sums;
    sums.dim[axis] = 1;
    node->saved[INVERSE] = (struct tensor){.dtype = FLOAT32, .shape = sums};
    if (node->training) node->saved[SUMS] = node->saved[INVERSE];
    return OK;
}

/* Norm of the result */
static float norm_of(const struct node *node)
{
    const struct attributes *a = node->attributes;
    return node->op == &op_clip_by_norm ? (float)a->bound : 1;
}

/* Lower limit on the sum of squares */
static float least(const struct node *node)
{
    const struct attributes *a = node->attributes;
    return (float)(node->op == &op_clip_by_norm ? a->bound * a->bound : a->bound);
}

/* to = the sums of a b along the axis; a and b are of x's shape */
static void sum_products(const struct node *node, struct device *d, const struct tensor *to,
                         const float *a, const float *b)
{
    const struct shape *x = &node->output.shape;
    struct fold f = {FOLD_MULTIPLY, .scale = 1, .y = to->value, .a = a, .b = b};
    const struct steps own = steps_of(x, x), sums = steps_of(&to->shape, x);
    for (int i = 0; i < x->rank; i++) fold_axis(&f, x->dim[i], sums.at[i], own.at[i], own.at[i], 0);
    d->kernels->fold(d, &f);
}

static void forward(const struct node *node, struct device *d)
{
    const struct tensor *x = node->input[0], *inverse = &node->saved[INVERSE];
    sum_products(node, d, inverse, x->value, x->value);
    struct fold root = {FOLD_INVERSE_ROOT, .scale = norm_of(node), .low = least(node),
                        .y = inverse->value, .a = inverse->value};
    fold_axis(&root, shape_count(&inverse->shape), 1, 1, 0, 0);
    d->kernels->fold(d, &root);
    broadcast(d, FOLD_MULTIPLY, &node->output, x, inverse);
}

/* dx = (dy - y sum of dy y / norm^2) norm / root; where the sum of squares is below the limit, the
 * root is constant: dx = dy norm / root */
static void backward(const struct node *node, struct device *d)
{
    const struct tensor *inverse = &node->saved[INVERSE], *sums = &node->saved[SUMS];
    const struct tensor *y = &node->output;
    const float norm = norm_of(node);
    if (!node->input[0]->gradient) return;
    sum_products(node, d, sums, y->gradient, y->value);
    struct fold product = {
        FOLD_PRODUCT_BELOW, .scale = 1,          .high = norm * (1.0f / sqrtf(least(node))),
        .y = sums->value,   .a = inverse->value, .b = sums->value};
    fold_axis(&product, shape_count(&sums->shape), 1, 1, 1, 0);
    d->kernels->fold(d, &product);

    broadcast_back(node, d, 0,
                   &(struct back){FOLD_MULTIPLY, .a_value = y->gradient, .b = inverse, .scale = 1});
    broadcast_back(
        node, d, 0,
        &(struct back){FOLD_MULTIPLY, y, sums, .scale = -1 / (norm * norm), .is_more = true});
}

static const struct op_case cases[] = {
    {"{}", 1, {{2, {4, 6}}}},
    {"{\"axis\": 1}", 1, {{3, {2, 3, 17}}}},
    {"{\"epsilon\": 1}", 1, {{2, {3, 2}}}},
    {0},
};

const struct op op_l2_normalize = {
    .object = {"l2_normalize", "divides by the Euclidean norm along an axis", fields,
               sizeof(struct attributes)},
    .inputs_min = 1,
    .inputs_max = 1,
    .reads_output = true,
    .infer = infer,
    .forward = forward,
    .backward = backward,
    .cases = cases,
};

static const struct op_case clip_cases[] = {
    {"{\"norm\": 2}", 1, {{2, {7, 6}}}},
    {"{\"norm\": 0.5, \"axis\": 1}", 1, {{3, {2, 3, 17}}}},
    {"{\"norm\": 50}", 1, {{2, {3, 2}}}},
    {0},
};

const struct op op_clip_by_norm = {
    .object =
        {"clip_by_norm",
         "scales down to a Euclidean norm what has a larger one along an axis; of rows that an "
         "embedding looks up, TensorFlow's max_norm",
         clip_fields, sizeof(struct attributes)},
    .inputs_min = 1,
    .inputs_max = 1,
    .reads_output = true,
    .infer = infer,
    .forward = forward,
    .backward = backward,
    .cases = clip_cases,
};
