/* batch_normalization: mean 0 and variance 1 in every channel of a batch, then scale and offset, as
 * tf.layers.batch_normalization on the last axis. */
#include "core/ops/elementwise.h"
#include "core/ops/normalization/normal.h"

struct attributes {
    double momentum, epsilon;
    bool center, scale;
    struct variant beta_initializer, gamma_initializer, mean_initializer, variance_initializer;
    struct regularizer beta_regularizer, gamma_regularizer;
};

#define INITIALIZER(word, member, without, of)                                                     \
    {                                                                                              \
        .name = word, .type = FIELD_VARIANT, .offset = offsetof(struct attributes, member),        \
        .fallback = without, .kinds = &initializer_kinds, .help = "initializer of " of             \
    }
#define REGULARIZER(word, member, of)                                                              \
    {                                                                                              \
        .name = word, .type = FIELD_OBJECT, .offset = offsetof(struct attributes, member),         \
        .fallback = "{}", .object = &regularizer_object, .help = "a penalty on " of                \
    }

static const struct field fields[] = {
    {.name = "momentum",
     .type = FIELD_FLOAT,
     .offset = offsetof(struct attributes, momentum),
     .fallback = "0.99",
     .max = 0.9999999,
     .help = "momentum of moving_mean and moving_variance, which evaluation and prediction use: "
             "with each push the ps applies value -= (value - batch's) * (1 - momentum). batch's "
             "is that of a worker's batch in asynchronous training; in synchronous training, with "
             "towers and with in-graph replication it is the mean over all batches of a step, each "
             "of which is normalized by its own (in TensorFlow towers update one after the other, "
             "or only the first)"},
    {.name = "epsilon",
     .type = FIELD_FLOAT,
     .offset = offsetof(struct attributes, epsilon),
     .fallback = "0.001",
     .min = 1e-12,
     .max = 1e6,
     .help = "added to the variance"},
    {.name = "center",
     .type = FIELD_BOOL,
     .offset = offsetof(struct attributes, center),
     .fallback = "true",
     .help = "add a trained offset, beta"},
    {.name = "scale",
     .type = FIELD_BOOL,
     .offset = offsetof(struct attributes, scale),
     .fallback = "true",
     .help = "multiply by a trained scale, gamma"},
    INITIALIZER("beta_initializer", beta_initializer, "\"zeros\"", "beta"),
    INITIALIZER("gamma_initializer", gamma_initializer, "\"ones\"", "gamma"),
    INITIALIZER("moving_mean_initializer", mean_initializer, "\"zeros\"", "moving_mean"),
    INITIALIZER("moving_variance_initializer", variance_initializer, "\"ones\"", "moving_variance"),
    REGULARIZER("beta_regularizer", beta_regularizer, "beta"),
    REGULARIZER("gamma_regularizer", gamma_regularizer, "gamma"),
    {0},
};

static const struct attributes *attributes_of(const struct node *node)
{
    return node->attributes;
}

/* Index of gamma among the params; -1: none. Params are in TensorFlow's order of creation. */
static int gamma_of(const struct node *node)
{
    return attributes_of(node)->scale ? 0 : -1;
}

static int beta_of(const struct node *node)
{
    const struct attributes *a = node->attributes;
    return a->center ? a->scale : -1;
}

static err add_trained(struct node *node, struct arena *arena, int64_t channels)
{
    const struct attributes *a = node->attributes;
    const struct param gamma = {
        .name = "gamma", .shape = {1, {channels}}, .regularizer = a->gamma_regularizer};
    const struct param beta = {
        .name = "beta", .shape = {1, {channels}}, .regularizer = a->beta_regularizer};
    if (a->scale) TRY(node_add_initialized(node, arena, &gamma, &a->gamma_initializer));
    return a->center ? node_add_initialized(node, arena, &beta, &a->beta_initializer) : OK;
}

static err infer(struct node *node, struct arena *arena)
{
    const struct attributes *a = node->attributes;
    const struct shape *x = &node->input[0]->shape;
    TRY(expect_columns(x));
    const int64_t channels = x->dim[x->rank - 1];
    node->output.shape = *x;
    node->saved[0] = normal_room(channels);
    TRY(add_trained(node, arena, channels));
    return normal_add_moving(
        node, arena, channels, a->momentum,
        &(struct moving_initializers){a->mean_initializer, a->variance_initializer});
}

static struct normal normal_of(const struct node *node)
{
    const struct tensor *x = node->input[0];
    const int64_t channels = x->shape.dim[x->shape.rank - 1];
    const int gamma = gamma_of(node), beta = beta_of(node), moving = node->param_count - 2;
    return (struct normal){
        .x = x,
        .rows = shape_count(&x->shape) / channels,
        .channels = channels,
        .epsilon = (float)attributes_of(node)->epsilon,
        .gamma = gamma < 0 ? NULL : node->param[gamma].value,
        .beta = beta < 0 ? NULL : node->param[beta].value,
        .mean = &node->param[moving],
        .variance = &node->param[moving + 1],
        .room = &node->saved[0],
    };
}

static void forward(const struct node *node, struct device *d)
{
    const struct normal n = normal_of(node);
    normal_forward(node, d, &n, node->output.value);
}

static void give(const struct node *node, struct device *d, int param, const float *sums)
{
    if (param < 0) return;
    const int64_t channels = node->param[param].shape.dim[0];
    if (node->add_params)
        d->kernels->axpy(d, node->param[param].gradient, 1.0f, sums, channels);
    else
        d->kernels->copy(d, node->param[param].gradient, sums, channels);
}

static void backward(const struct node *node, struct device *d)
{
    const struct normal n = normal_of(node);
    const struct normal_sums sums = normal_back_sums(d, &n, node->output.gradient);
    float *dx = node->input[0]->gradient;
    give(node, d, gamma_of(node), sums.gamma);
    give(node, d, beta_of(node), sums.beta);
    normal_tell(node, d, &n);
    if (dx) normal_back(d, &n, dx, node->output.gradient, node->add[0]);
}

/* Rows, images, with and without gamma and beta, more channels than a block has */
static const struct op_case cases[] = {
    {"{}", 1, {{2, {6, 5}}}},
    {"{\"epsilon\": 0.1}", 1, {{4, {2, 3, 4, 17}}}},
    {"{\"scale\": false}", 1, {{3, {4, 3, 2}}}},
    {"{\"center\": false}", 1, {{2, {7, 3}}}},
    {"{\"center\": false, \"scale\": false}", 1, {{2, {5, 300}}}},
    {0},
};

const struct op op_batch_normalization = {
    .object = {"batch_normalization",
               "normalizes each channel to mean 0 and variance 1 over the batch, then applies a "
               "trained scale and offset",
               fields, sizeof(struct attributes)},
    .inputs_min = 1,
    .inputs_max = 1,
    .reads_input = true,
    .infer = infer,
    .forward = forward,
    .backward = backward,
    .cases = cases,
};
