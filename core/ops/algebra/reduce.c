/* reduce: the sum, the mean or the largest over axes of an example; and the same over all positions
 * of an image, global_avg_pool and global_max_pool. */
#include "core/ops/algebra/loops.h"

#include <inttypes.h>

enum reduction { REDUCE_SUM, REDUCE_MEAN, REDUCE_MAX };

struct attributes {
    int reduction; /* enum reduction */
    struct ints axes;
    bool keep_dims;
};

static const char *const reductions[] = {
    [REDUCE_SUM] = "sum", [REDUCE_MEAN] = "mean", [REDUCE_MAX] = "max", NULL};

#define KEEP_DIMS                                                                                  \
    {                                                                                              \
        .name = "keep_dims", .type = FIELD_BOOL, .offset = offsetof(struct attributes, keep_dims), \
        .fallback = "false", .help = "leave axes of 1 in their places"                             \
    }

static const struct field fields[] = {
    {.name = "reduction",
     .type = FIELD_ENUM,
     .offset = offsetof(struct attributes, reduction),
     .choices = reductions,
     .help = "sum; mean; max, whose gradient is shared by all that are the largest"},
    {.name = "axes",
     .type = FIELD_INTS,
     .offset = offsetof(struct attributes, axes),
     .fallback = "[]",
     .min = -RANK_MAX,
     .max = RANK_MAX - 1,
     .count_max = RANK_MAX - 1,
     .help =
         "axes that go, counting the batch as 0, negative: from the end; []: all of an example"},
    KEEP_DIMS,
    {0},
};

static const struct field global_fields[] = {KEEP_DIMS, {0}};

static const struct attributes *attributes_of(const struct node *node)
{
    return node->attributes;
}

/* Which axes go; infer has seen to it that they are there. */
static void axes_of(const struct node *node, bool ret_goes[RANK_MAX])
{
    const struct ints *axes = &attributes_of(node)->axes;
    const int rank = node->input[0]->shape.rank;
    for (int i = 0; i < RANK_MAX; i++) ret_goes[i] = axes->count == 0 && i > 0 && i < rank;
    for (int i = 0; i < axes->count; i++)
        ret_goes[axes->at[i] < 0 ? axes->at[i] + rank : axes->at[i]] = true;
}

/* With the axes that went as 1 */
static struct shape kept_shape(const struct node *node)
{
    struct shape shape = node->input[0]->shape;
    bool goes[RANK_MAX];
    axes_of(node, goes);
    for (int i = 0; i < shape.rank; i++)
        if (goes[i]) shape.dim[i] = 1;
    return shape;
}

/* The number of the largest is kept for backward. */
static err infer(struct node *node, struct arena *arena)
{
    const struct attributes *a = node->attributes;
    const struct shape *x = &node->input[0]->shape;
    struct shape *y = &node->output.shape;
    bool goes[RANK_MAX];
    int axis;
    for (int i = 0; i < a->axes.count; i++) TRY(axis_of("axes", a->axes.at[i], x, &axis));
    if (x->rank < 2) return fail(ERR_INPUT, "an example of one number has no axes");
    axes_of(node, goes);
    *y = kept_shape(node);
    if (!a->keep_dims) y->rank = 0;
    for (int i = 0; i < x->rank && !a->keep_dims; i++)
        if (!goes[i]) y->dim[y->rank++] = x->dim[i];
    node->output.is_shares = node->input[0]->is_shares && a->reduction != REDUCE_SUM;
    if (node->training && a->reduction == REDUCE_MAX)
        node->saved[0] = (struct tensor){.dtype = FLOAT32, .shape = *y};
    return OK;
}

static float scale_of(const struct node *node)
{
    const int64_t x = shape_count(&node->input[0]->shape), y = shape_count(&node->output.shape);
    return attributes_of(node)->reduction == REDUCE_MEAN ? (float)((double)y / (double)x) : 1.0f;
}

/* y, of the output's shape, = the fold of x and b, which is of the output's shape, too */
static void over_axes(const struct node *node, struct device *d, struct fold *f)
{
    const struct shape *x = &node->input[0]->shape, y = kept_shape(node);
    const struct steps to = steps_of(&y, x), own = steps_of(x, x);
    for (int i = 0; i < x->rank; i++)
        fold_axis(f, x->dim[i], to.at[i], own.at[i], f->b ? to.at[i] : 0, 0);
    d->kernels->fold(d, f);
}

static void forward(const struct node *node, struct device *d)
{
    const bool is_max = attributes_of(node)->reduction == REDUCE_MAX;
    over_axes(node, d,
              &(struct fold){FOLD_A, is_max, .scale = scale_of(node), .y = node->output.value,
                             .a = node->input[0]->value});
}

/* saved: how many are the largest, and then what each of them has of dy */
static void share_out(const struct node *node, struct device *d)
{
    const struct tensor *y = &node->output;
    struct tensor dy = {.shape = y->shape, .value = y->gradient}, shares = node->saved[0];
    over_axes(node, d,
              &(struct fold){FOLD_EQUAL, .scale = 1, .y = shares.value, .a = node->input[0]->value,
                             .b = y->value});
    broadcast(d, FOLD_DIVIDE, &shares, &dy, &shares);
}

static void backward(const struct node *node, struct device *d)
{
    const struct tensor *x = node->input[0];
    const bool is_max = attributes_of(node)->reduction == REDUCE_MAX;
    if (!x->gradient) return;
    if (is_max) share_out(node, d);
    struct fold f = {is_max ? FOLD_IF_EQUAL : FOLD_A,
                     .add = node->add[0],
                     .scale = scale_of(node),
                     .y = x->gradient,
                     .a = is_max ? x->value : node->output.gradient,
                     .b = is_max ? node->output.value : NULL,
                     .c = is_max ? node->saved[0].value : NULL};
    const struct shape y = kept_shape(node);
    const struct steps from = steps_of(&y, &x->shape), own = steps_of(&x->shape, &x->shape);
    for (int i = 0; i < x->shape.rank; i++)
        fold_axis(&f, x->shape.dim[i], own.at[i], is_max ? own.at[i] : from.at[i],
                  is_max ? from.at[i] : 0, is_max ? from.at[i] : 0);
    d->kernels->fold(d, &f);
}

/* The last axis, a middle one, several, all; longer than a block */
static const struct op_case cases[] = {
    {"{\"reduction\": \"sum\", \"axes\": [-1]}", 1, {{3, {2, 3, 5}}}},
    {"{\"reduction\": \"mean\", \"axes\": 1}", 1, {{3, {2, 3, 5}}}},
    {"{\"reduction\": \"mean\", \"axes\": [1, 3], \"keep_dims\": true}", 1, {{4, {2, 3, 4, 5}}}},
    {"{\"reduction\": \"sum\"}", 1, {{3, {2, 7, 50}}}},
    {"{\"reduction\": \"max\", \"axes\": 1}", 1, {{3, {2, 3, 5}}}},
    {"{\"reduction\": \"max\", \"axes\": [-1, 1]}", 1, {{4, {2, 3, 2, 40}}}},
    {0},
};

const struct op op_reduce = {
    .object = {"reduce", "the sum, the mean or the largest over axes of an example", fields,
               sizeof(struct attributes)},
    .inputs_min = 1,
    .inputs_max = 1,
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
    .object = {"global_max_pool",
               "the largest of all positions of an image, per channel; its gradient is shared by "
               "all that are the largest",
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
