/* reduce: the sum, mean or maximum over axes of an example, or over the positions of one axis that
 * a mask includes; and the same over all positions of an image: global_avg_pool and
 * global_max_pool. */
#include "core/ops/mask.h"

#include <inttypes.h>

enum reduction { REDUCE_SUM, REDUCE_MEAN, REDUCE_MAX };

struct attributes {
    int reduction; /* enum reduction */
    struct ints axes;
    bool keep_dims;
    const char *mask;
};

static const char *const reductions[] = {
    [REDUCE_SUM] = "sum", [REDUCE_MEAN] = "mean", [REDUCE_MAX] = "max", NULL};

#define KEEP_DIMS                                                                                  \
    {                                                                                              \
        .name = "keep_dims", .type = FIELD_BOOL, .offset = offsetof(struct attributes, keep_dims), \
        .fallback = "false", .help = "keep reduced axes, with length 1"                            \
    }

static const struct field fields[] = {
    FIELD_OF("reduction", ENUM, struct attributes, reduction, .choices = reductions,
             .help = "sum; mean; max (equal maxima share the gradient)"),
    FIELD_OF("axes", INTS, struct attributes, axes, .fallback = "[]", .min = -RANK_MAX,
             .max = RANK_MAX - 1, .count_max = RANK_MAX - 1,
             .help = "axes to reduce, counting the batch as 0; negative: from the end; []: all "
                     "axes of an example"),
    KEEP_DIMS,
    MASK_FIELD(offsetof(struct attributes, mask)),
    {0},
};

static const struct field global_fields[] = {KEEP_DIMS, {0}};

static const struct attributes *attributes_of(const struct node *node)
{
    return node->attributes;
}

/* Which axes are reduced; infer has checked that they exist. */
static void axes_of(const struct node *node, bool ret_goes[RANK_MAX])
{
    const struct ints *axes = &attributes_of(node)->axes;
    const int rank = node->input[0]->shape.rank;
    for (int i = 0; i < RANK_MAX; i++) ret_goes[i] = axes->count == 0 && i > 0 && i < rank;
    for (int i = 0; i < axes->count; i++)
        ret_goes[axes->at[i] < 0 ? axes->at[i] + rank : axes->at[i]] = true;
}

/* The input's shape with reduced axes of size 1 */
static struct shape kept_shape(const struct node *node)
{
    struct shape shape = node->input[0]->shape;
    bool goes[RANK_MAX];
    axes_of(node, goes);
    for (int i = 0; i < shape.rank; i++)
        if (goes[i]) shape.dim[i] = 1;
    return shape;
}

/* The axis that the mask is for; infer has checked that only one is reduced. */
static int masked_axis(const struct node *node)
{
    bool goes[RANK_MAX];
    int axis = 1;
    axes_of(node, goes);
    while (!goes[axis]) axis++;
    return axis;
}

static err check_mask(const struct node *node)
{
    const struct attributes *a = node->attributes;
    if (!mask_of(node)) return OK;
    if (a->axes.count == 1) return mask_check(node, node->input[0]->shape.dim[masked_axis(node)]);
    return fail(ERR_INPUT, "axes: with a mask expected the one axis that it is of, got %d",
                a->axes.count);
}

/* saved: for a maximum, how many elements equal it, then the share of dy that each gets, and with a
 * mask x without the excluded positions; for a mean with a mask, the weight of each position, and
 * the number of included ones. */
enum { SHARES, SHOWN, COUNTS = SHOWN };

static void set_saved(struct node *node)
{
    const struct attributes *a = node->attributes;
    const struct tensor *mask = mask_of(node);
    const struct tensor like_x = {.dtype = FLOAT32, .shape = node->input[0]->shape};
    if (a->reduction == REDUCE_MAX && node->training)
        node->saved[SHARES] = (struct tensor){.dtype = FLOAT32, .shape = node->output.shape};
    if (!mask || a->reduction == REDUCE_SUM) return;
    if (a->reduction == REDUCE_MAX) {
        node->saved[SHOWN] = like_x;
        return;
    }
    node->saved[SHARES] = (struct tensor){.dtype = FLOAT32, .shape = mask->shape};
    node->saved[COUNTS] = (struct tensor){.dtype = FLOAT32, .shape = {2, {mask->shape.dim[0], 1}}};
}

static err infer(struct node *node, struct arena *arena)
{
    const struct attributes *a = node->attributes;
    const struct shape *x = &node->input[0]->shape;
    struct shape *y = &node->output.shape;
    bool goes[RANK_MAX];
    int axis;
    for (int i = 0; i < a->axes.count; i++) TRY(axis_of("axes", a->axes.at[i], x, &axis));
    if (x->rank < 2) return fail(ERR_INPUT, "an example of one number has no axes");
    TRY(check_mask(node));
    axes_of(node, goes);
    *y = kept_shape(node);
    if (!a->keep_dims) y->rank = 0;
    for (int i = 0; i < x->rank && !a->keep_dims; i++)
        if (!goes[i]) y->dim[y->rank++] = x->dim[i];
    node->output.is_shares = node->input[0]->is_shares && a->reduction != REDUCE_SUM;
    set_saved(node);
    return OK;
}

static float scale_of(const struct node *node)
{
    const int64_t x = shape_count(&node->input[0]->shape), y = shape_count(&node->output.shape);
    if (attributes_of(node)->reduction != REDUCE_MEAN || mask_of(node)) return 1.0f;
    return (float)((double)y / (double)x);
}

/* f->y, of the output's shape, = the fold of x and b; b has the output's shape, or these strides */
static void over_axes(const struct node *node, struct device *d, struct fold *f,
                      const struct steps *b)
{
    const struct shape *x = &node->input[0]->shape, y = kept_shape(node);
    const struct steps to = steps_of(&y, x), own = steps_of(x, x);
    const struct steps *other = b ? b : &to;
    for (int i = 0; i < x->rank; i++)
        fold_axis(f, x->dim[i], to.at[i], own.at[i], f->b ? other->at[i] : 0, 0);
    d->kernels->fold(d, f);
}

/* Less than any realistic number */
static const float NOT_THERE = -1e30f;

/* x, without the positions that a mask excludes */
static const float *shown(const struct node *node)
{
    return mask_of(node) ? node->saved[SHOWN].value : node->input[0]->value;
}

/* If the mask excludes all positions, the maximum is 0. */
static void largest(const struct node *node, struct device *d)
{
    const struct shape *x = &node->input[0]->shape;
    const struct tensor *y = &node->output;
    const struct fold hide = {FOLD_IF_ABOVE, .low = NOT_THERE, .y = node->saved[SHOWN].value,
                              .a = node->input[0]->value};
    if (mask_of(node)) mask_apply(node, d, &hide, x, masked_axis(node));
    over_axes(node, d, &(struct fold){FOLD_A, true, .scale = 1, .y = y->value, .a = shown(node)},
              NULL);
    if (!mask_of(node)) return;
    struct fold found = {FOLD_IF_ABOVE, .scale = 1,    .high = NOT_THERE / 2,
                         .y = y->value, .a = y->value, .b = y->value};
    fold_axis(&found, shape_count(&y->shape), 1, 1, 1, 0);
    d->kernels->fold(d, &found);
}

/* The weight of each position: for a mean 1 / number of included ones */
static const struct tensor *counting(const struct node *node)
{
    return attributes_of(node)->reduction == REDUCE_MEAN ? &node->saved[SHARES] : mask_of(node);
}

static void count_places(const struct node *node, struct device *d)
{
    const struct tensor *mask = mask_of(node), *counts = &node->saved[COUNTS];
    struct fold f = {FOLD_A, .scale = 1, .y = counts->value, .a = mask->value};
    fold_axis(&f, mask->shape.dim[0], 1, mask->shape.dim[1], 0, 0);
    fold_axis(&f, mask->shape.dim[1], 0, 1, 0, 0);
    d->kernels->fold(d, &f);
    broadcast(d, FOLD_DIVIDE_OR_0, &node->saved[SHARES], mask, counts);
}

static void forward(const struct node *node, struct device *d)
{
    const enum reduction reduction = (enum reduction)attributes_of(node)->reduction;
    struct fold f = {FOLD_A, .scale = scale_of(node), .y = node->output.value,
                     .a = node->input[0]->value};
    if (reduction == REDUCE_MAX) {
        largest(node, d);
        return;
    }
    if (!mask_of(node)) {
        over_axes(node, d, &f, NULL);
        return;
    }
    if (reduction == REDUCE_MEAN) count_places(node, d);
    const struct steps steps = mask_steps(&node->input[0]->shape, masked_axis(node));
    f.of = FOLD_MULTIPLY;
    f.b = counting(node)->value;
    over_axes(node, d, &f, &steps);
}

/* SHARES: how many elements equal the maximum, then the share of dy that each gets */
static void share_out(const struct node *node, struct device *d)
{
    const struct tensor *y = &node->output;
    struct tensor dy = {.shape = y->shape, .value = y->gradient}, shares = node->saved[SHARES];
    over_axes(
        node, d,
        &(struct fold){FOLD_EQUAL, .scale = 1, .y = shares.value, .a = shown(node), .b = y->value},
        NULL);
    broadcast(d, FOLD_DIVIDE, &shares, &dy, &shares);
}

/* f->y = the gradient of x, from operands with these strides */
static void to_input(const struct node *node, struct device *d, struct fold *f,
                     const struct steps *a, const struct steps *b, const struct steps *c)
{
    const struct shape *x = &node->input[0]->shape;
    const struct steps own = steps_of(x, x);
    f->add = node->add[0];
    f->scale = scale_of(node);
    f->y = node->input[0]->gradient;
    for (int i = 0; i < x->rank; i++)
        fold_axis(f, x->dim[i], own.at[i], a->at[i], f->b ? b->at[i] : 0, f->c ? c->at[i] : 0);
    d->kernels->fold(d, f);
}

static void backward(const struct node *node, struct device *d)
{
    const struct shape *x = &node->input[0]->shape, y = kept_shape(node);
    const struct steps from = steps_of(&y, x), own = steps_of(x, x);
    mask_backward(node, d);
    if (!node->input[0]->gradient) return;
    if (attributes_of(node)->reduction == REDUCE_MAX) {
        share_out(node, d);
        to_input(node, d,
                 &(struct fold){FOLD_IF_EQUAL, .a = shown(node), .b = node->output.value,
                                .c = node->saved[SHARES].value},
                 &own, &from, &from);
        return;
    }
    const struct steps mask = mask_of(node) ? mask_steps(x, masked_axis(node)) : from;
    struct fold f = {mask_of(node) ? FOLD_MULTIPLY : FOLD_A, .a = node->output.gradient};
    if (mask_of(node)) f.b = counting(node)->value;
    to_input(node, d, &f, &from, &mask, NULL);
}

/* The last axis, a middle one, several, all; longer than a block; with a mask */
static const struct op_case cases[] = {
    {"{\"reduction\": \"sum\", \"axes\": [-1]}", 1, {{3, {2, 3, 5}}}},
    {"{\"reduction\": \"mean\", \"axes\": 1}", 1, {{3, {2, 3, 5}}}},
    {"{\"reduction\": \"mean\", \"axes\": [1, 3], \"keep_dims\": true}", 1, {{4, {2, 3, 4, 5}}}},
    {"{\"reduction\": \"sum\"}", 1, {{3, {2, 7, 50}}}},
    {"{\"reduction\": \"max\", \"axes\": 1}", 1, {{3, {2, 3, 5}}}},
    {"{\"reduction\": \"max\", \"axes\": [-1, 1]}", 1, {{4, {2, 3, 2, 40}}}},
    {"{\"reduction\": \"sum\", \"axes\": 1, \"mask\": \"input_1\"}",
     2,
     {{3, {4, 5, 3}}, {2, {4, 5}}}},
    {"{\"reduction\": \"mean\", \"axes\": [-2], \"mask\": \"input_1\"}",
     2,
     {{3, {4, 5, 3}}, {2, {4, 5}}}},
    {"{\"reduction\": \"mean\", \"axes\": -1, \"keep_dims\": true, \"mask\": \"input_1\"}",
     2,
     {{4, {4, 2, 3, 5}}, {2, {4, 5}}}},
    {"{\"reduction\": \"max\", \"axes\": 1, \"mask\": \"input_1\"}",
     2,
     {{3, {4, 5, 3}}, {2, {4, 5}}}},
    {0},
};

static const char *const named[] = {"mask", NULL};

const struct op op_reduce = {
    .object = {"reduce", "sum, mean or maximum over axes of an example", fields,
               sizeof(struct attributes)},
    .inputs_min = 1,
    .inputs_max = 1,
    .named_inputs = named,
    .reads_input = true,
    .reads_output = true,
    .infer = infer,
    .forward = forward,
    .backward = backward,
    .cases = cases,
};

/* Images are [batch, y, x, channel]. */
static err infer_global(struct node *node, struct arena *arena, enum reduction reduction)
{
    struct attributes *a = arena_new(arena, sizeof *a);
    char text[SHAPE_TEXT_MAX];
    if (node->input[0]->shape.rank != 4)
        return fail(ERR_INPUT, "wants images of [batch, y, x, channel], got %s",
                    shape_text(&node->input[0]->shape, text));
    *a = *attributes_of(node);
    a->reduction = reduction;
    a->axes = (struct ints){arena_array(arena, 2, sizeof(int64_t)), 2};
    a->axes.at[0] = 1;
    a->axes.at[1] = 2;
    node->attributes = a;
    return infer(node, arena);
}

static err infer_avg(struct node *node, struct arena *arena)
{
    return infer_global(node, arena, REDUCE_MEAN);
}

static err infer_max(struct node *node, struct arena *arena)
{
    return infer_global(node, arena, REDUCE_MAX);
}

static const struct op_case global_cases[] = {
    {"{}", 1, {{4, {2, 3, 4, 5}}}},
    {"{\"keep_dims\": true}", 1, {{4, {3, 1, 2, 17}}}},
    {0},
};

const struct op op_global_avg_pool = {
    .object = {"global_avg_pool", "the mean over all positions of an image, per channel",
               global_fields, sizeof(struct attributes)},
    .inputs_min = 1,
    .inputs_max = 1,
    .infer = infer_avg,
    .forward = forward,
    .backward = backward,
    .cases = global_cases,
};

const struct op op_global_max_pool = {
    .object =
        {"global_max_pool",
         "the maximum over all positions of an image, per channel; equal maxima share the gradient",
         global_fields, sizeof(struct attributes)},
    .inputs_min = 1,
    .inputs_max = 1,
    .reads_input = true,
    .reads_output = true,
    .infer = infer_max,
    .forward = forward,
    .backward = backward,
    .cases = global_cases,
};
