/* batch_norm.cu - batch normalization per channel, as folds over rows. */
#include "kernels/cuda/launch.cuh"

/* a, and with c_is_wide c, have a value per row and channel; y: one per channel, over all rows */
static void over_rows(struct device *d, const struct batch_norm *v, struct fold f, bool c_is_wide)
{
    if (v->channels == 0) return;
    fold_axis(&f, v->rows, 0, v->channels, 0, c_is_wide ? v->channels : 0);
    fold_axis(&f, v->channels, 1, 1, 1, 1);
    cuda_fold(d, &f);
}

/* y has a value per row and channel */
static void all(struct device *d, const struct batch_norm *v, struct fold f)
{
    fold_axis(&f, v->rows, v->channels, v->channels, 0, 0);
    fold_axis(&f, v->channels, 1, 1, 1, 1);
    cuda_fold(d, &f);
}

static struct fold fold_of_values(enum fold_of of, float scale, float *y, const float *a, const float *b, const float *c)
{
    struct fold f;
    memset(&f, 0, sizeof f);
    f.of = of;
    f.scale = scale;
    f.y = y;
    f.a = a;
    f.b = b;
    f.c = c;
    return f;
}

void cuda_batch_norm_moments(struct device *d, const struct batch_norm *v)
{
    const float share = (float)(1.0 / (double)v->rows);
    over_rows(d, v, fold_of_values(FOLD_A, share, v->mean, v->x, NULL, NULL), false);
    over_rows(d, v, fold_of_values(FOLD_DISTANCE, share, v->variance, v->x, v->mean, NULL), false);
}

void cuda_batch_norm_sums(struct device *d, const struct batch_norm *v)
{
    over_rows(d, v, fold_of_values(FOLD_A, 1, v->sum, v->dy, NULL, NULL), false);
    over_rows(d, v, fold_of_values(FOLD_BEYOND, 1, v->product, v->x, v->mean, v->dy), true);
}

void cuda_batch_norm_back(struct device *d, const struct batch_norm *v)
{
    struct fold first = fold_of_values(FOLD_MULTIPLY_ADD, 1, v->dx, v->dy, v->scale, v->offset);
    struct fold second = fold_of_values(FOLD_BEYOND, 1, v->dx, v->x, v->mean, v->slope);
    first.add = v->add;
    second.add = true;
    all(d, v, first);
    all(d, v, second);
}
