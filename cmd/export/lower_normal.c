/* lower_normal.c - normalization, and functions with constants from the spec. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/export/lower.h"

static int with(struct program *p, enum primitive primitive, int x, float number)
{
    return program_two(p, primitive, x, program_number(p, number));
}

/* ---- moving averages ---- */

/* (x - mean) / sqrt(variance + epsilon) * gamma + beta, as x * scale + offset per channel. of:
 * gamma, beta (-1: none), mean, variance */
static int lower_channels(struct program *p, int x, const int of[4], float epsilon)
{
    const struct program_value mean = p->values[of[2]], variance = p->values[of[3]];
    const int64_t channels = shape_count(&mean.shape);
    float *scale = arena_array(p->arena, (size_t)channels, sizeof *scale);
    float *offset = arena_array(p->arena, (size_t)channels, sizeof *offset);
    for (int64_t i = 0; i < channels; i++) {
        const float gamma = of[0] < 0 ? 1 : p->values[of[0]].data[i];
        const float beta = of[1] < 0 ? 0 : p->values[of[1]].data[i];
        scale[i] = (float)(gamma / sqrt((double)variance.data[i] + epsilon));
        offset[i] = (float)(beta - (double)mean.data[i] * scale[i]);
    }
    const int by = program_constant(p, "", &mean.shape, scale);
    const int plus = program_constant(p, "", &mean.shape, offset);
    return program_two(p, PRIMITIVE_ADD, program_two(p, PRIMITIVE_MULTIPLY, x, by), plus);
}

static err lower_batch(struct lowering *l, int x, int *ret)
{
    const int count = l->node->param_count;
    const bool scales = lower_bool(l->node, "scale"), centers = lower_bool(l->node, "center");
    int of[4] = {-1, -1};
    if (scales) TRY(lower_param(l, 0, &of[0]));
    if (centers) TRY(lower_param(l, scales, &of[1]));
    TRY(lower_param(l, count - 2, &of[2]));
    TRY(lower_param(l, count - 1, &of[3]));
    *ret = lower_channels(l->program, x, of, (float)lower_float(l->node, "epsilon"));
    return OK;
}

/* p x + (1 - p) alpha x, where p is the sigmoid of normalized x */
static err lower_dice(struct lowering *l, int x, int *ret)
{
    struct program *p = l->program;
    int alpha, of[4] = {-1, -1};
    TRY(lower_param(l, 0, &alpha));
    TRY(lower_param(l, 1, &of[2]));
    TRY(lower_param(l, 2, &of[3]));
    const int normal = lower_channels(p, x, of, (float)lower_float(l->node, "epsilon"));
    const int share = program_one(p, PRIMITIVE_SIGMOID, normal);
    const int rest = program_two(p, PRIMITIVE_SUBTRACT, program_number(p, 1), share);
    const int factor =
        program_two(p, PRIMITIVE_ADD, share, program_two(p, PRIMITIVE_MULTIPLY, rest, alpha));
    *ret = program_two(p, PRIMITIVE_MULTIPLY, x, factor);
    return OK;
}

/* ---- statistics of one example ---- */

/* x minus its mean over the axes in `goes`; *ret_variance: its variance */
static int lower_centered(struct program *p, int x, const bool goes[RANK_MAX], int *ret_variance)
{
    const int mean = program_reduce(p, PRIMITIVE_MEAN, x, goes);
    const int centered = program_two(p, PRIMITIVE_SUBTRACT, x, mean);
    const int square = program_two(p, PRIMITIVE_MULTIPLY, centered, centered);
    *ret_variance = program_reduce(p, PRIMITIVE_MEAN, square, goes);
    return centered;
}

static err lower_layer_norm(struct lowering *l, int x, int *ret)
{
    struct program *p = l->program;
    bool goes[RANK_MAX] = {false};
    int gamma, beta, variance;
    goes[p->values[x].shape.rank - 1] = true;
    TRY(lower_param(l, 0, &gamma));
    TRY(lower_param(l, 1, &beta));
    const int centered = lower_centered(p, x, goes, &variance);
    const int more = with(p, PRIMITIVE_ADD, variance, (float)lower_float(l->node, "epsilon"));
    const int root = program_one(p, PRIMITIVE_SQRT, more);
    const int normal = program_two(p, PRIMITIVE_DIVIDE, centered, root);
    const int scaled = program_two(p, PRIMITIVE_MULTIPLY, normal, gamma);
    *ret = program_two(p, PRIMITIVE_ADD, scaled, beta);
    return OK;
}

static int lower_standardize(struct lowering *l, int x)
{
    struct program *p = l->program;
    const struct shape shape = p->values[x].shape;
    const float least = (float)(1 / sqrt((double)shape_count(&shape)));
    bool goes[RANK_MAX] = {false};
    int variance;
    for (int i = 1; i < shape.rank; i++) goes[i] = true;
    const int centered = lower_centered(p, x, goes, &variance);
    const int root = program_one(p, PRIMITIVE_SQRT, variance);
    return program_two(p, PRIMITIVE_DIVIDE, centered, with(p, PRIMITIVE_MAXIMUM, root, least));
}

static int lower_length(struct lowering *l, int x)
{
    struct program *p = l->program;
    const int64_t axis = lower_int(l->node, "axis");
    bool goes[RANK_MAX] = {false};
    goes[axis < 0 ? axis + p->values[x].shape.rank : axis] = true;
    const int square = program_two(p, PRIMITIVE_MULTIPLY, x, x);
    const int sum = program_reduce(p, PRIMITIVE_SUM, square, goes);
    if (strcmp(l->node->op->object.name, "clip_by_norm") == 0) {
        const float norm = (float)lower_float(l->node, "norm");
        const int root = program_one(p, PRIMITIVE_SQRT, sum);
        const int share = with(p, PRIMITIVE_DIVIDE, with(p, PRIMITIVE_MAXIMUM, root, norm), norm);
        return program_two(p, PRIMITIVE_DIVIDE, x, share);
    }
    const int least = with(p, PRIMITIVE_MAXIMUM, sum, (float)lower_float(l->node, "epsilon"));
    return program_two(p, PRIMITIVE_DIVIDE, x, program_one(p, PRIMITIVE_SQRT, least));
}

/* ---- neighbouring channels ---- */

/* lrn: sums over neighbours are a product with a band matrix of ones; the power is
 * exp(beta log(x)). */
static int lower_neighbours(struct lowering *l, int x)
{
    struct program *p = l->program;
    const int64_t channels = p->values[x].shape.dim[p->values[x].shape.rank - 1];
    const int64_t radius = lower_int(l->node, "depth_radius");
    float *ones = arena_array(p->arena, (size_t)(channels * channels), sizeof *ones);
    for (int64_t i = 0; i < channels * channels; i++)
        ones[i] = llabs(i / channels - i % channels) <= radius;
    const int band = program_constant(p, "", &(struct shape){2, {channels, channels}}, ones);
    const int sums = program_matmul(p, program_two(p, PRIMITIVE_MULTIPLY, x, x), band);
    const int scaled = with(p, PRIMITIVE_MULTIPLY, sums, (float)lower_float(l->node, "alpha"));
    const int more = with(p, PRIMITIVE_ADD, scaled, (float)lower_float(l->node, "bias"));
    const int power = with(p, PRIMITIVE_MULTIPLY, program_one(p, PRIMITIVE_LOG, more),
                           (float)lower_float(l->node, "beta"));
    return program_two(p, PRIMITIVE_DIVIDE, x, program_one(p, PRIMITIVE_EXP, power));
}

/* ---- others ---- */

static err lower_places(struct lowering *l, int x, int *ret)
{
    int embeddings;
    TRY(lower_param(l, 0, &embeddings));
    *ret = program_two(l->program, PRIMITIVE_ADD, x, embeddings);
    return OK;
}

/* Ops whose only parameters are constants of the spec */
static int lower_numbers(struct lowering *l, const char *op, int x)
{
    struct program *p = l->program;
    if (strcmp(op, "clip") == 0) {
        x = with(p, PRIMITIVE_MAXIMUM, x, (float)lower_float(l->node, "min"));
        return with(p, PRIMITIVE_MINIMUM, x, (float)lower_float(l->node, "max"));
    }
    if (strcmp(op, "scale") == 0) {
        x = with(p, PRIMITIVE_MULTIPLY, x, (float)lower_float(l->node, "factor"));
        return with(p, PRIMITIVE_ADD, x, (float)lower_float(l->node, "offset"));
    }
    if (strcmp(op, "standardize") == 0) return lower_standardize(l, x);
    if (strcmp(op, "lrn") == 0) return lower_neighbours(l, x);
    return lower_length(l, x);
}

/* x - max(x) - log(sum(exp(x - max(x)))) */
static int lower_log_softmax(struct program *p, int x)
{
    bool goes[RANK_MAX] = {false};
    goes[p->values[x].shape.rank - 1] = true;
    const int largest = program_reduce(p, PRIMITIVE_LARGEST, x, goes);
    const int less = program_two(p, PRIMITIVE_SUBTRACT, x, largest);
    const int sum = program_reduce(p, PRIMITIVE_SUM, program_one(p, PRIMITIVE_EXP, less), goes);
    return program_two(p, PRIMITIVE_SUBTRACT, less, program_one(p, PRIMITIVE_LOG, sum));
}

err lower_normal(struct lowering *l, int *ret)
{
    const char *op = l->node->op->object.name;
    int x;
    TRY(lower_input(l, 0, &x));
    if (strcmp(op, "batch_normalization") == 0) return lower_batch(l, x, ret);
    if (strcmp(op, "dice") == 0) return lower_dice(l, x, ret);
    if (strcmp(op, "layer_normalization") == 0) return lower_layer_norm(l, x, ret);
    if (strcmp(op, "positional_embedding") == 0) return lower_places(l, x, ret);
    *ret =
        strcmp(op, "log_softmax") == 0 ? lower_log_softmax(l->program, x) : lower_numbers(l, op, x);
    return OK;
}
