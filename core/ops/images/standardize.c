/* standardize: each example normalized to mean 0 and variance 1, as
 * tf.image.per_image_standardization: the standard deviation is at least 1 / sqrt(number of
 * elements). */
#include <math.h>

#include "core/ops/algebra/loops.h"
#include "core/ops/elementwise.h"

/* saved, one number of each per example */
enum { MEAN, INVERSE, SUMS };

static err infer(struct node *node, struct arena *arena)
{
    const struct shape *x = &node->input[0]->shape;
    TRY(expect_columns(x));
    node->output.shape = *x;
    for (int i = 0; i < SAVED_MAX; i++)
        node->saved[i] = (struct tensor){.dtype = FLOAT32, .shape = {2, {x->dim[0], 1}}};
    return OK;
}

/* Which operands are of x's shape; the others have one number per example */
struct wide {
    bool y, a, b, c;
};

static void run(const struct node *node, struct device *d, struct fold f, struct wide wide)
{
    const struct shape *x = &node->output.shape;
    const int64_t n = shape_count_from(x, 1);
    const int64_t b = !f.b ? 0 : wide.b ? n : 1, c = !f.c ? 0 : wide.c ? n : 1;
    fold_axis(&f, x->dim[0], wide.y ? n : 1, wide.a ? n : 1, b, c);
    if (wide.y || wide.a) fold_axis(&f, n, wide.y, wide.a, wide.b, wide.c);
    d->kernels->fold(d, &f);
}

static float share(const struct node *node)
{
    return (float)(1.0 / (double)shape_count_from(&node->output.shape, 1));
}

static void forward(const struct node *node, struct device *d)
{
    const float *x = node->input[0]->value;
    float *mean = node->saved[MEAN].value, *inverse = node->saved[INVERSE].value;
    run(node, d, (struct fold){FOLD_A, .scale = share(node), .y = mean, .a = x},
        (struct wide){.a = true});
    run(node, d,
        (struct fold){FOLD_DISTANCE, .scale = share(node), .y = inverse, .a = x, .b = mean},
        (struct wide){.a = true});
    run(node, d,
        (struct fold){FOLD_INVERSE_ROOT, .scale = 1, .low = share(node), .y = inverse,
                      .a = inverse},
        (struct wide){.a = false});
    run(node, d,
        (struct fold){FOLD_BEYOND, .scale = 1, .y = node->output.value, .a = x, .b = mean,
                      .c = inverse},
        (struct wide){.y = true, .a = true});
}

/* dx = inverse (dy - mean of dy - y mean of (dy y)); without the last term where the standard
 * deviation is at its lower limit */
static void backward(const struct node *node, struct device *d)
{
    const float *dy = node->output.gradient, *y = node->output.value;
    float *mean = node->saved[MEAN].value, *inverse = node->saved[INVERSE].value;
    float *sums = node->saved[SUMS].value, *dx = node->input[0]->gradient;
    if (!dx) return;
    run(node, d, (struct fold){FOLD_A, .scale = share(node), .y = mean, .a = dy},
        (struct wide){.a = true});
    run(node, d, (struct fold){FOLD_MULTIPLY, .scale = share(node), .y = sums, .a = dy, .b = y},
        (struct wide){.a = true, .b = true});
    run(node, d,
        (struct fold){FOLD_PRODUCT_BELOW, .scale = 1, .high = 1.0f / sqrtf(share(node)), .y = sums,
                      .a = inverse, .b = sums},
        (struct wide){.a = false});
    run(node, d,
        (struct fold){FOLD_BEYOND, .add = node->add[0], .scale = 1, .y = dx, .a = dy, .b = mean,
                      .c = inverse},
        (struct wide){.y = true, .a = true});
    run(node, d, (struct fold){FOLD_MULTIPLY, .add = true, .scale = -1, .y = dx, .a = y, .b = sums},
        (struct wide){.y = true, .a = true});
}

static const struct op_case cases[] = {
    {"{}", 1, {{4, {3, 4, 5, 2}}}},
    {"{}", 1, {{2, {4, 7}}}},
    {0},
};

const struct op op_standardize = {
    .object = {"standardize", "scales each example to mean 0 and variance 1"},
    .inputs_min = 1,
    .inputs_max = 1,
    .reads_output = true,
    .infer = infer,
    .forward = forward,
    .backward = backward,
    .cases = cases,
};
