/* moves.c - ops that only move elements: slice, split, stack, transpose, tile, pad.
 *
 * Each is described as loops with a stride on each side; forward copies from x to y, backward from
 * dy to dx, summed where the stride of x is 0.
 */
#include "core/ops/algebra/loops.h"
#include "core/ops/elementwise.h"

#include <inttypes.h>

extern const struct op op_slice, op_split, op_stack, op_transpose, op_tile, op_pad;

/* Loops between an input and the output; gaps: some elements are not reached */
struct move {
    int count;
    int64_t n[FOLD_LOOPS_MAX], y[FOLD_LOOPS_MAX], x[FOLD_LOOPS_MAX];
    int64_t y_first, x_first;
    bool x_has_gaps, y_has_gaps;
};

static void add_loop(struct move *m, int64_t n, int64_t y, int64_t x)
{
    m->n[m->count] = n;
    m->y[m->count] = y;
    m->x[m->count++] = x;
}

static int64_t step_of(const struct shape *shape, int axis)
{
    return shape_count_from(shape, axis + 1);
}

/* ---- slice ---- */

struct slice_attributes {
    struct ints begin, size;
};

static const struct field slice_fields[] = {
    FIELD_OF("begin", INTS, struct slice_attributes, begin, .max = (double)(INT64_C(1) << 40),
             .count_max = RANK_MAX - 1, .help = "first index along each axis of an example"),
    FIELD_OF("size", INTS, struct slice_attributes, size, .min = -1,
             .max = (double)(INT64_C(1) << 40), .count_max = RANK_MAX - 1,
             .help = "length along each axis of an example; -1: up to the end"),
    {0},
};

static err expect_axes(const char *what, const struct ints *list, const struct shape *x)
{
    if (list->count == x->rank - 1) return OK;
    return fail(ERR_INPUT, "%s: expected %d, one for each axis of an example, got %d", what,
                x->rank - 1, list->count);
}

static err infer_slice(struct node *node, struct arena *arena)
{
    const struct slice_attributes *a = node->attributes;
    const struct shape *x = &node->input[0]->shape;
    TRY(expect_axes("begin", &a->begin, x));
    TRY(expect_axes("size", &a->size, x));
    node->output.shape = *x;
    node->output.is_shares = node->input[0]->is_shares;
    for (int i = 1; i < x->rank; i++) {
        const int64_t begin = a->begin.at[i - 1], size = a->size.at[i - 1];
        const int64_t left = x->dim[i] - begin, taken = size < 0 ? left : size;
        if (taken < 1 || taken > left)
            return fail(ERR_INPUT,
                        "axis %d: %" PRId64 " from %" PRId64 " on are not there: it is %" PRId64
                        " long",
                        i, taken, begin, x->dim[i]);
        node->output.shape.dim[i] = taken;
    }
    return OK;
}

static struct move slice_of(const struct node *node)
{
    const struct slice_attributes *a = node->attributes;
    const struct shape *x = &node->input[0]->shape, *y = &node->output.shape;
    struct move m = {.x_has_gaps = !shape_equal(x, y)};
    for (int i = 0; i < y->rank; i++) {
        add_loop(&m, y->dim[i], step_of(y, i), step_of(x, i));
        if (i > 0) m.x_first += a->begin.at[i - 1] * step_of(x, i);
    }
    return m;
}

/* ---- split ---- */

struct split {
    int64_t parts, part, axis;
};

static const struct field split_fields[] = {
    FIELD_OF("parts", INT, struct split, parts, .min = 1, .max = 1 << 20,
             .help = "number of equal parts that the axis is divided into"),
    FIELD_OF("part", INT, struct split, part, .max = 1 << 20,
             .help = "which of them this node is, from 0"),
    FIELD_OF("axis", INT, struct split, axis, .fallback = "-1", .min = -RANK_MAX,
             .max = RANK_MAX - 1,
             .help = "the axis, counting the batch as 0; negative: from the end"),
    {0},
};

static err infer_split(struct node *node, struct arena *arena)
{
    const struct split *a = node->attributes;
    const struct shape *x = &node->input[0]->shape;
    int axis;
    TRY(axis_of("axis", a->axis, x, &axis));
    if (x->dim[axis] % a->parts)
        return fail(ERR_INPUT, "parts: axis %d is %" PRId64 " long: no %" PRId64 " equal parts",
                    axis, x->dim[axis], a->parts);
    if (a->part >= a->parts)
        return fail(ERR_INPUT, "part: expected 0 to %" PRId64 ", got %" PRId64, a->parts - 1,
                    a->part);
    node->output.shape = *x;
    node->output.shape.dim[axis] /= a->parts;
    node->output.is_shares = node->input[0]->is_shares;
    return OK;
}

static struct move split_of(const struct node *node)
{
    const struct split *a = node->attributes;
    const struct shape *x = &node->input[0]->shape, *y = &node->output.shape;
    const int axis = (int)(a->axis < 0 ? a->axis + x->rank : a->axis);
    struct move m = {.x_has_gaps = a->parts > 1,
                     .x_first = a->part * y->dim[axis] * step_of(x, axis)};
    for (int i = 0; i < y->rank; i++) add_loop(&m, y->dim[i], step_of(y, i), step_of(x, i));
    return m;
}

/* ---- stack ---- */

struct stack_attributes {
    int64_t axis;
};

static const struct field stack_fields[] = {
    FIELD_OF("axis", INT, struct stack_attributes, axis, .fallback = "1", .min = -RANK_MAX,
             .max = RANK_MAX - 1,
             .help = "the new axis, counting the batch as 0; negative: from the end of the output"),
    {0},
};

static int stack_axis(const struct node *node)
{
    const struct stack_attributes *a = node->attributes;
    return (int)(a->axis < 0 ? a->axis + node->input[0]->shape.rank + 1 : a->axis);
}

static err infer_stack(struct node *node, struct arena *arena)
{
    const struct stack_attributes *a = node->attributes;
    const struct shape *x = &node->input[0]->shape;
    struct shape *y = &node->output.shape;
    int axis;
    TRY(elementwise_infer(node, arena));
    node->output.is_shares = true;
    for (int i = 0; i < node->input_count; i++)
        node->output.is_shares = node->output.is_shares && node->input[i]->is_shares;
    if (x->rank == RANK_MAX) return fail(ERR_INPUT, "inputs have %d axes already", RANK_MAX);
    *y = (struct shape){x->rank + 1, {0}};
    TRY(axis_of("axis", a->axis, y, &axis));
    for (int i = 0; i < y->rank; i++)
        y->dim[i] = i == axis ? node->input_count : x->dim[i < axis ? i : i - 1];
    return OK;
}

static struct move stack_of(const struct node *node, int input)
{
    const struct shape *x = &node->input[input]->shape, *y = &node->output.shape;
    const int axis = stack_axis(node);
    struct move m = {.y_first = input * step_of(y, axis)};
    for (int i = 0; i < x->rank; i++)
        add_loop(&m, x->dim[i], step_of(y, i < axis ? i : i + 1), step_of(x, i));
    return m;
}

/* ---- transpose ---- */

struct transpose {
    struct ints perm;
};

static const struct field transpose_fields[] = {
    FIELD_OF("perm", INTS, struct transpose, perm, .min = 1, .max = RANK_MAX - 1,
             .count_max = RANK_MAX - 1,
             .help = "axis of the input that becomes each axis of the output, from 1, without the "
                     "batch, as in tf.keras.layers.Permute"),
    {0},
};

static err infer_transpose(struct node *node, struct arena *arena)
{
    const struct transpose *a = node->attributes;
    const struct shape *x = &node->input[0]->shape;
    bool is_there[RANK_MAX] = {false};
    TRY(expect_axes("perm", &a->perm, x));
    node->output.shape = *x;
    node->output.is_shares = node->input[0]->is_shares;
    for (int i = 1; i < x->rank; i++) {
        const int64_t from = a->perm.at[i - 1];
        if (from >= x->rank || is_there[from])
            return fail(ERR_INPUT, "perm: expected each of 1 to %d once", x->rank - 1);
        is_there[from] = true;
        node->output.shape.dim[i] = x->dim[from];
    }
    return OK;
}

static struct move transpose_of(const struct node *node)
{
    const struct transpose *a = node->attributes;
    const struct shape *x = &node->input[0]->shape, *y = &node->output.shape;
    struct move m = {0};
    for (int i = 0; i < y->rank; i++)
        add_loop(&m, y->dim[i], step_of(y, i), step_of(x, i ? (int)a->perm.at[i - 1] : 0));
    return m;
}

/* ---- tile ---- */

struct tile_attributes {
    struct ints multiples;
};

static const struct field tile_fields[] = {
    FIELD_OF("multiples", INTS, struct tile_attributes, multiples, .min = 1, .max = 1 << 20,
             .count_max = RANK_MAX - 1,
             .help = "number of repetitions along each axis of an example"),
    {0},
};

static err infer_tile(struct node *node, struct arena *arena)
{
    const struct tile_attributes *a = node->attributes;
    const struct shape *x = &node->input[0]->shape;
    TRY(expect_axes("multiples", &a->multiples, x));
    node->output.shape = *x;
    node->output.is_shares = node->input[0]->is_shares;
    for (int i = 1; i < x->rank; i++) node->output.shape.dim[i] *= a->multiples.at[i - 1];
    return OK;
}

/* Each axis is two loops: over its copies, where x has stride 0, and within a copy. */
static struct move tile_of(const struct node *node)
{
    const struct tile_attributes *a = node->attributes;
    const struct shape *x = &node->input[0]->shape, *y = &node->output.shape;
    struct move m = {0};
    add_loop(&m, x->dim[0], step_of(y, 0), step_of(x, 0));
    for (int i = 1; i < x->rank; i++) {
        add_loop(&m, a->multiples.at[i - 1], x->dim[i] * step_of(y, i), 0);
        add_loop(&m, x->dim[i], step_of(y, i), step_of(x, i));
    }
    return m;
}

/* ---- pad ---- */

struct pad {
    struct ints before, after;
    double value;
};

static const struct field pad_fields[] = {
    FIELD_OF("before", INTS, struct pad, before, .max = 1 << 30, .count_max = RANK_MAX - 1,
             .help = "elements added before each axis of an example"),
    FIELD_OF("after", INTS, struct pad, after, .max = 1 << 30, .count_max = RANK_MAX - 1,
             .help = "elements added behind each axis of an example"),
    FIELD_OF("value", FLOAT, struct pad, value, .fallback = "0", .min = -1e30, .max = 1e30,
             .help = "value of the added elements"),
    {0},
};

static err infer_pad(struct node *node, struct arena *arena)
{
    const struct pad *a = node->attributes;
    const struct shape *x = &node->input[0]->shape;
    TRY(expect_axes("before", &a->before, x));
    TRY(expect_axes("after", &a->after, x));
    node->output.shape = *x;
    node->output.is_shares = node->input[0]->is_shares && a->value >= 0 && a->value <= 1;
    for (int i = 1; i < x->rank; i++)
        node->output.shape.dim[i] += a->before.at[i - 1] + a->after.at[i - 1];
    return OK;
}

static struct move pad_of(const struct node *node)
{
    const struct pad *a = node->attributes;
    const struct shape *x = &node->input[0]->shape, *y = &node->output.shape;
    struct move m = {.y_has_gaps = !shape_equal(x, y)};
    for (int i = 0; i < x->rank; i++) {
        add_loop(&m, x->dim[i], step_of(y, i), step_of(x, i));
        if (i > 0) m.y_first += a->before.at[i - 1] * step_of(y, i);
    }
    return m;
}

/* ---- common ---- */

static struct move move_of(const struct node *node, int input)
{
    return node->op == &op_slice       ? slice_of(node)
           : node->op == &op_split     ? split_of(node)
           : node->op == &op_stack     ? stack_of(node, input)
           : node->op == &op_transpose ? transpose_of(node)
           : node->op == &op_tile      ? tile_of(node)
                                       : pad_of(node);
}

static void forward(const struct node *node, struct device *d)
{
    for (int i = 0; i < node->input_count; i++) {
        const struct move m = move_of(node, i);
        float *y = node->output.value;
        const float *x = node->input[i]->value;
        struct fold f = {FOLD_A, .scale = 1, .y = y + m.y_first, .a = x + m.x_first};
        for (int k = 0; k < m.count; k++) fold_axis(&f, m.n[k], m.y[k], m.x[k], 0, 0);
        if (m.y_has_gaps) {
            const float value = (float)((const struct pad *)node->attributes)->value;
            d->kernels->fill(d, y, value, shape_count(&node->output.shape));
        }
        d->kernels->fold(d, &f);
    }
}

static void backward(const struct node *node, struct device *d)
{
    for (int i = 0; i < node->input_count; i++) {
        const struct move m = move_of(node, i);
        float *dx = node->input[i]->gradient;
        if (!dx) continue;
        const bool clears = m.x_has_gaps && !node->add[i];
        if (clears) d->kernels->fill(d, dx, 0.0f, shape_count(&node->input[i]->shape));
        struct fold f = {FOLD_A, .add = node->add[i] || clears, .scale = 1, .y = dx + m.x_first,
                         .a = node->output.gradient + m.y_first};
        for (int k = 0; k < m.count; k++) fold_axis(&f, m.n[k], m.x[k], m.y[k], 0, 0);
        d->kernels->fold(d, &f);
    }
}

static const struct op_case slice_cases[] = {
    {"{\"begin\": [1], \"size\": [3]}", 1, {{2, {3, 5}}}},
    {"{\"begin\": [0, 2], \"size\": [-1, 2]}", 1, {{3, {2, 3, 6}}}},
    {0},
};

static const struct op_case split_cases[] = {
    {"{\"parts\": 3, \"part\": 1}", 1, {{2, {3, 6}}}},
    {"{\"parts\": 2, \"part\": 1, \"axis\": 1}", 1, {{3, {2, 4, 3}}}},
    {"{\"parts\": 1, \"part\": 0}", 1, {{2, {3, 5}}}},
    {0},
};

static const struct op_case stack_cases[] = {
    {"{}", 3, {{2, {2, 5}}, {2, {2, 5}}, {2, {2, 5}}}},
    {"{\"axis\": -1}", 2, {{3, {2, 3, 4}}, {3, {2, 3, 4}}}},
    {0},
};

static const struct op_case transpose_cases[] = {
    {"{\"perm\": [2, 1]}", 1, {{3, {2, 3, 5}}}},
    {"{\"perm\": [2, 3, 1]}", 1, {{4, {2, 3, 4, 5}}}},
    {0},
};

static const struct op_case tile_cases[] = {
    {"{\"multiples\": [3]}", 1, {{2, {3, 5}}}},
    {"{\"multiples\": [2, 1, 3]}", 1, {{4, {2, 3, 4, 1}}}},
    {0},
};

static const struct op_case pad_cases[] = {
    {"{\"before\": [1], \"after\": [2]}", 1, {{2, {3, 5}}}},
    {"{\"before\": [0, 2], \"after\": [1, 0], \"value\": 7}", 1, {{3, {2, 3, 4}}}},
    {0},
};

const struct op op_slice = {
    .object = {"slice", "a range of an example along its axes", slice_fields,
               sizeof(struct slice_attributes)},
    .inputs_min = 1,
    .inputs_max = 1,
    .infer = infer_slice,
    .forward = forward,
    .backward = backward,
    .cases = slice_cases,
};

const struct op op_split = {
    .object = {"split", "one of the equal parts of an axis", split_fields, sizeof(struct split)},
    .inputs_min = 1,
    .inputs_max = 1,
    .infer = infer_split,
    .forward = forward,
    .backward = backward,
    .cases = split_cases,
};

const struct op op_stack = {
    .object = {"stack", "inputs of one shape side by side along a new axis", stack_fields,
               sizeof(struct stack_attributes)},
    .inputs_min = 1,
    .inputs_max = INPUTS_MAX,
    .infer = infer_stack,
    .forward = forward,
    .backward = backward,
    .cases = stack_cases,
};

const struct op op_transpose = {
    .object = {"transpose", "permutes the axes of an example", transpose_fields,
               sizeof(struct transpose)},
    .inputs_min = 1,
    .inputs_max = 1,
    .infer = infer_transpose,
    .forward = forward,
    .backward = backward,
    .cases = transpose_cases,
};

const struct op op_tile = {
    .object = {"tile", "repeats an example along its axes", tile_fields,
               sizeof(struct tile_attributes)},
    .inputs_min = 1,
    .inputs_max = 1,
    .infer = infer_tile,
    .forward = forward,
    .backward = backward,
    .cases = tile_cases,
};

const struct op op_pad = {
    .object = {"pad", "adds elements before and behind along the axes of an example", pad_fields,
               sizeof(struct pad)},
    .inputs_min = 1,
    .inputs_max = 1,
    .infer = infer_pad,
    .forward = forward,
    .backward = backward,
    .cases = pad_cases,
};
