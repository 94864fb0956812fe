/* normal.c - see normal.h. */
#include "core/ops/normalization/normal.h"

#include "core/ops/algebra/loops.h"

/* Rows of the scratch memory, each with a number per channel; the kernels' scratch follows */
enum { MEAN, VARIANCE, INVERSE, SCALE, OFFSET, SUM, PRODUCT, ROOM_ROWS };

static int64_t room_width(int64_t channels)
{
    return (channels + BATCH_NORM_ALIGN - 1) / BATCH_NORM_ALIGN * BATCH_NORM_ALIGN;
}

struct tensor normal_room(int64_t channels)
{
    const int64_t floats =
        batch_norm_partials(channels) * (int64_t)(sizeof(double) / sizeof(float));
    return (struct tensor){.dtype = FLOAT32,
                           .shape = {1, {ROOM_ROWS * room_width(channels) + floats}}};
}

static float *room(const struct normal *n, int row)
{
    return (float *)n->room->value + row * room_width(n->channels);
}

err normal_add_moving(struct node *node, struct arena *arena, int64_t channels, double momentum,
                      const struct moving_initializers *initializers)
{
    const struct param mean = {
        .name = "moving_mean", .shape = {1, {channels}}, .moving = (float)(1 - momentum)};
    struct param variance = mean;
    variance.name = "moving_variance";
    TRY(node_add_initialized(node, arena, &mean, &initializers->mean));
    return node_add_initialized(node, arena, &variance, &initializers->variance);
}

/* y = f(a, b, c), all with one number per channel */
static void per_channel(struct device *d, const struct normal *n, struct fold f)
{
    fold_axis(&f, n->channels, 1, 1, f.b ? 1 : 0, f.c ? 1 : 0);
    d->kernels->fold(d, &f);
}

static struct batch_norm kernel_of(const struct normal *n)
{
    return (struct batch_norm){
        .rows = n->rows,
        .channels = n->channels,
        .x = n->x->value,
        .mean = room(n, MEAN),
        .variance = room(n, VARIANCE),
        .partial = (double *)room(n, ROOM_ROWS),
        .sum = room(n, SUM),
        .product = room(n, PRODUCT),
        .scale = room(n, SCALE),
    };
}

/* As tf.nn.batch_normalization: x times a scale plus an offset */
void normal_forward(const struct node *node, struct device *d, const struct normal *n, float *y)
{
    const float *mean = n->mean->value, *variance = n->variance->value;
    float *inverse = room(n, INVERSE), *scale = room(n, SCALE), *offset = room(n, OFFSET);
    if (node->training) {
        const struct batch_norm measured = kernel_of(n);
        d->kernels->batch_norm_moments(d, &measured);
        mean = room(n, MEAN);
        variance = room(n, VARIANCE);
    }
    per_channel(
        d, n,
        (struct fold){FOLD_SUM_ROOT, .scale = 1, .low = n->epsilon, .y = inverse, .a = variance});
    per_channel(d, n,
                (struct fold){n->gamma ? FOLD_MULTIPLY : FOLD_A, .scale = 1, .y = scale,
                              .a = inverse, .b = n->gamma});
    per_channel(d, n,
                (struct fold){FOLD_MULTIPLY, .scale = -1, .y = offset, .a = mean, .b = scale});
    if (n->beta)
        per_channel(d, n,
                    (struct fold){FOLD_A, .add = true, .scale = 1, .y = offset, .a = n->beta});
    struct fold f = {FOLD_MULTIPLY_ADD, .scale = 1, .y = y,
                     .a = n->x->value,  .b = scale, .c = offset};
    fold_axis(&f, n->rows, n->channels, n->channels, 0, 0);
    fold_axis(&f, n->channels, 1, 1, 1, 1);
    d->kernels->fold(d, &f);
}

struct normal_sums normal_back_sums(struct device *d, const struct normal *n, const float *dy)
{
    float *sum = room(n, SUM), *product = room(n, PRODUCT), *inverse = room(n, INVERSE);
    struct batch_norm summed = kernel_of(n);
    summed.dy = dy;
    d->kernels->batch_norm_sums(d, &summed);
    per_channel(d, n,
                (struct fold){FOLD_MULTIPLY, .scale = 1, .y = product, .a = product, .b = inverse});
    return (struct normal_sums){sum, product};
}

/* dx = scale (dy - sum / rows - (x - mean) inverse product / rows); overwrites the sums and the
 * offset in the scratch memory. */
void normal_back(struct device *d, const struct normal *n, float *dx, const float *dy, bool add)
{
    float *sum = room(n, SUM), *product = room(n, PRODUCT), *scale = room(n, SCALE);
    const float share = (float)(-1.0 / (double)n->rows);
    per_channel(d, n, (struct fold){FOLD_MULTIPLY, .scale = share, .y = sum, .a = sum, .b = scale});
    per_channel(
        d, n, (struct fold){FOLD_MULTIPLY, .scale = share, .y = product, .a = product, .b = scale});
    per_channel(d, n,
                (struct fold){FOLD_MULTIPLY, .scale = 1, .y = product, .a = product,
                              .b = room(n, INVERSE)});
    struct batch_norm back = kernel_of(n);
    back.dy = dy;
    back.slope = product;
    back.offset = sum;
    back.dx = dx;
    back.add = add;
    d->kernels->batch_norm_back(d, &back);
}

/* For images, TensorFlow's fused kernel takes the unbiased variance: divided by N - 1 instead of
 * N. */
void normal_tell(const struct node *node, struct device *d, const struct normal *n)
{
    const bool is_fused = n->x->shape.rank == 4, add = node->add_params;
    const double rows = (double)n->rows, less = n->rows > 1 ? rows - 1 : 1;
    const double share = 1.0 / node_param_users(node);
    per_channel(d, n,
                (struct fold){FOLD_A, .add = add, .scale = (float)share, .y = n->mean->gradient,
                              .a = room(n, MEAN)});
    per_channel(d, n,
                (struct fold){FOLD_A, .add = add,
                              .scale = (float)(is_fused ? share * rows / less : share),
                              .y = n->variance->gradient, .a = room(n, VARIANCE)});
}
