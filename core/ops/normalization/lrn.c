/* lrn: y = x / (bias + alpha sum of the squares of the channels c - r to c + r)^beta, as tf.nn.lrn.
 *
 * The sums over neighbours are folds over rows padded with r zeros on both sides.
 */
#include "core/ops/algebra/loops.h"
#include "core/ops/elementwise.h"

struct attributes {
    int64_t radius;
    double bias, alpha, beta;
};

enum { RADIUS_MAX = 1024 };

#define NUMBER(word, member, without, least, text)                                                 \
    {                                                                                              \
        .name = word, .type = FIELD_FLOAT, .offset = offsetof(struct attributes, member),          \
        .fallback = without, .min = least, .max = 1e6, .help = text                                \
    }

static const struct field fields[] = {
    FIELD_OF("depth_radius", INT, struct attributes, radius, .fallback = "5", .max = RADIUS_MAX,
             .help = "neighbours on either side of a channel"),
    NUMBER("bias", bias, "1", 1e-6, "added to the sum of squares"),
    NUMBER("alpha", alpha, "1", 0, "factor of the sum of squares"),
    NUMBER("beta", beta, "0.5", 0, "power of the divisor"),
    {0},
};

/* saved: zero-padded values; the divisor before its power */
enum { PADDED, SUMS };

static const struct attributes *attributes_of(const struct node *node)
{
    return node->attributes;
}

static err infer(struct node *node, struct arena *arena)
{
    const struct shape *x = &node->input[0]->shape;
    TRY(expect_columns(x));
    struct shape padded = node->output.shape = *x;
    padded.dim[x->rank - 1] += 2 * attributes_of(node)->radius;
    node->saved[PADDED] = (struct tensor){.dtype = FLOAT32, .shape = padded};
    node->saved[SUMS] = (struct tensor){.dtype = FLOAT32, .shape = *x};
    return shape_check(&padded);
}

/* Strides of rows of f.y and f.a in floats, one of which is padded; all else is of x's shape */
struct widths {
    int64_t y, a;
};

static void rows(const struct node *node, struct device *d, struct fold f, struct widths w)
{
    const struct shape *x = &node->output.shape;
    const int64_t channels = x->dim[x->rank - 1];
    fold_axis(&f, shape_count(x) / channels, w.y, w.a, f.b ? channels : 0, 0);
    fold_axis(&f, channels, 1, 1, f.b ? 1 : 0, 0);
    d->kernels->fold(d, &f);
}

/* y += scale times the sums over neighbours of the padded values */
static void add_neighbours(const struct node *node, struct device *d, float *y, float scale)
{
    const struct shape *x = &node->output.shape;
    const int64_t channels = x->dim[x->rank - 1], radius = attributes_of(node)->radius;
    struct fold f = {FOLD_A, .add = true, .scale = scale, .y = y, .a = node->saved[PADDED].value};
    fold_axis(&f, shape_count(x) / channels, channels, channels + 2 * radius, 0, 0);
    fold_axis(&f, channels, 1, 1, 0, 0);
    fold_axis(&f, 2 * radius + 1, 0, 1, 0, 0);
    d->kernels->fold(d, &f);
}

static void plain(struct device *d, const struct node *node, struct fold f)
{
    fold_axis(&f, shape_count(&node->output.shape), 1, 1, f.b ? 1 : 0, 0);
    d->kernels->fold(d, &f);
}

static void forward(const struct node *node, struct device *d)
{
    const struct attributes *a = node->attributes;
    const struct shape *padded = &node->saved[PADDED].shape;
    const int64_t width = padded->dim[padded->rank - 1], channels = width - 2 * a->radius;
    const float *x = node->input[0]->value;
    float *sums = node->saved[SUMS].value, *y = node->output.value;
    d->kernels->fill(d, node->saved[PADDED].value, 0, shape_count(padded));
    rows(node, d,
         (struct fold){FOLD_MULTIPLY, .scale = 1,
                       .y = (float *)node->saved[PADDED].value + a->radius, .a = x, .b = x},
         (struct widths){width, channels});
    d->kernels->fill(d, sums, (float)a->bias, shape_count(&node->output.shape));
    add_neighbours(node, d, sums, (float)a->alpha);
    plain(d, node, (struct fold){FOLD_LOG, .scale = (float)-a->beta, .y = y, .a = sums});
    plain(d, node, (struct fold){FOLD_EXP_TIMES, .scale = 1, .y = y, .a = y, .b = x});
}

/* dx = dy / sums^beta - 2 alpha beta x times the sum over neighbours of dy y / sums. After the
 * first term dy is not needed any more, and that sum overwrites it. */
static void backward(const struct node *node, struct device *d)
{
    const struct attributes *a = node->attributes;
    const struct shape *padded = &node->saved[PADDED].shape;
    const int64_t width = padded->dim[padded->rank - 1], channels = width - 2 * a->radius;
    const int64_t count = shape_count(&node->output.shape);
    float *sums = node->saved[SUMS].value, *inside = (float *)node->saved[PADDED].value + a->radius;
    float *dy = node->output.gradient, *dx = node->input[0]->gradient;
    if (!dx) return;
    rows(node, d,
         (struct fold){FOLD_MULTIPLY, .scale = 1, .y = inside, .a = dy, .b = node->output.value},
         (struct widths){width, channels});
    rows(node, d, (struct fold){FOLD_DIVIDE, .scale = 1, .y = inside, .a = inside, .b = sums},
         (struct widths){width, width});
    plain(d, node, (struct fold){FOLD_LOG, .scale = (float)-a->beta, .y = sums, .a = sums});
    plain(d, node,
          (struct fold){FOLD_EXP_TIMES, .add = node->add[0], .scale = 1, .y = dx, .a = sums,
                        .b = dy});
    d->kernels->fill(d, dy, 0, count);
    add_neighbours(node, d, dy, 1);
    plain(d, node,
          (struct fold){FOLD_MULTIPLY, .add = true, .scale = (float)(-2 * a->alpha * a->beta),
                        .y = dx, .a = dy, .b = node->input[0]->value});
}

static const struct op_case cases[] = {
    {"{}", 1, {{4, {2, 2, 3, 17}}}},
    {"{\"depth_radius\": 1, \"bias\": 2, \"alpha\": 0.1, \"beta\": 0.75}", 1, {{2, {3, 5}}}},
    {"{\"depth_radius\": 0, \"alpha\": 0.5}", 1, {{3, {2, 2, 1}}}},
    {0},
};

const struct op op_lrn = {
    .object = {"lrn",
               "local response normalization: each channel divided by a power of the sum of "
               "squares of its neighbours",
               fields, sizeof(struct attributes)},
    .inputs_min = 1,
    .inputs_max = 1,
    .reads_input = true,
    .reads_output = true,
    .infer = infer,
    .forward = forward,
    .backward = backward,
    .cases = cases,
};
