/* dice (Deep Interest Network): x above the batch's mean, alpha x below it, with a smooth
 * transition: y = p x + (1 - p) alpha x, p = sigmoid(normalized x), alpha trained for each
 * channel. */
#include "core/ops/elementwise.h"
#include "core/ops/algebra/loops.h"
#include "core/ops/normalization/normal.h"

struct attributes {
    double momentum, epsilon;
    struct variant initializer;
};

static const struct field fields[] = {
    FIELD_OF("momentum", FLOAT, struct attributes, momentum, .fallback = "0.99", .max = 0.9999999,
             .help = "momentum of moving_mean and moving_variance, as for batch_normalization"),
    FIELD_OF("epsilon", FLOAT, struct attributes, epsilon, .fallback = "1e-9", .min = 1e-12,
             .max = 1e6, .help = "added to the variance"),
    FIELD_OF("alpha_initializer", VARIANT, struct attributes, initializer, .fallback = "\"zeros\"",
             .kinds = &initializer_kinds, .help = "initializer of the slopes below zero"),
    {0},
};

enum { ALPHA, MOVING_MEAN, MOVING_VARIANCE };
enum { ROOM, SHARES };

static err infer(struct node *node, struct arena *arena)
{
    const struct attributes *a = node->attributes;
    const struct shape *x = &node->input[0]->shape;
    TRY(expect_columns(x));
    const int64_t channels = x->dim[x->rank - 1];
    node->output.shape = *x;
    node->saved[ROOM] = normal_room(channels);
    node->saved[SHARES] = (struct tensor){.dtype = FLOAT32, .shape = *x};
    const struct param alpha = {.name = "alpha", .shape = {1, {channels}}};
    TRY(node_add_initialized(node, arena, &alpha, &a->initializer));
    return normal_add_moving(
        node, arena, channels, a->momentum,
        &(struct moving_initializers){initializer_named("zeros"), initializer_named("ones")});
}

static struct normal normal_of(const struct node *node)
{
    const struct tensor *x = node->input[0];
    const int64_t channels = x->shape.dim[x->shape.rank - 1];
    return (struct normal){
        .x = x,
        .rows = shape_count(&x->shape) / channels,
        .channels = channels,
        .epsilon = (float)((const struct attributes *)node->attributes)->epsilon,
        .mean = &node->param[MOVING_MEAN],
        .variance = &node->param[MOVING_VARIANCE],
        .room = &node->saved[ROOM],
    };
}

/* Which operand of the fold is alpha, which has one number per channel */
enum alpha_at { NOWHERE, AS_Y, AS_B };

static void run(const struct node *node, struct device *d, struct fold f, enum alpha_at alpha)
{
    const struct shape *x = &node->input[0]->shape;
    const int64_t w = x->dim[x->rank - 1], rows = shape_count(x) / w;
    fold_axis(&f, rows, alpha == AS_Y ? 0 : w, w, alpha == AS_B ? 0 : w, w);
    fold_axis(&f, w, 1, 1, 1, 1);
    d->kernels->fold(d, &f);
}

static void forward(const struct node *node, struct device *d)
{
    const struct normal n = normal_of(node);
    float *p = node->saved[SHARES].value;
    normal_forward(node, d, &n, p);
    d->kernels->activate(d, p, p, ACTIVATION_SIGMOID, 0, shape_count(&node->output.shape));
    run(node, d,
        (struct fold){FOLD_DICE, .scale = 1, .y = node->output.value, .a = n.x->value,
                      .b = node->param[ALPHA].value, .c = p},
        AS_B);
}

/* dp = dy x (1 - alpha); the gradient of the sigmoid's argument, dp p (1 - p), overwrites dy */
static void backward(const struct node *node, struct device *d)
{
    const struct normal n = normal_of(node);
    const float *p = node->saved[SHARES].value, *alpha = node->param[ALPHA].value;
    float *dy = node->output.gradient, *dx = node->input[0]->gradient;
    run(node, d,
        (struct fold){FOLD_DICE_SLOPE, .add = node->add_params, .scale = 1,
                      .y = node->param[ALPHA].gradient, .a = n.x->value, .b = p, .c = dy},
        AS_Y);
    normal_tell(node, d, &n);
    if (!dx) return;
    run(node, d,
        (struct fold){FOLD_DICE, .add = node->add[0], .scale = 1, .y = dx, .a = dy, .b = alpha,
                      .c = p},
        AS_B);
    run(node, d,
        (struct fold){FOLD_DICE_SLOPE, .scale = 1, .y = dy, .a = n.x->value, .b = alpha, .c = dy},
        AS_B);
    run(node, d, (struct fold){FOLD_DICE_SLOPE, .scale = 1, .y = dy, .a = dy, .b = p, .c = p},
        NOWHERE);
    normal_back_sums(d, &n, dy);
    normal_back(d, &n, dx, dy, true);
}

static const struct op_case cases[] = {
    {"{}", 1, {{2, {6, 5}}}},
    {"{\"alpha_initializer\": \"ones\", \"epsilon\": 0.01}", 1, {{3, {3, 4, 17}}}},
    {0},
};

const struct op op_dice = {
    .object = {"dice",
               "x above the batch's mean, alpha x below, with a smooth transition and a trained "
               "alpha per channel",
               fields, sizeof(struct attributes)},
    .inputs_min = 1,
    .inputs_max = 1,
    .reads_input = true,
    .infer = infer,
    .forward = forward,
    .backward = backward,
    .cases = cases,
};
