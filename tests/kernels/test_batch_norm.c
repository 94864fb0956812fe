/* test_batch_norm.c - mean, variance and gradients of each channel of a batch, in double. */
#include "tests/kernels/support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { COUNTS = 5 };

/* What a channel's numbers are like: near zero, far from it, alike but for the first of them, and
 * one number alone */
enum likeness { NEAR, FAR, FIRST_APART, ALIKE, LIKENESSES };

static void liken(float *x, int64_t rows, int64_t channels, enum likeness likeness)
{
    for (int64_t i = 0; i < rows * channels; i++) {
        if (likeness == FAR) x[i] += 1000;
        if (likeness == FIRST_APART) x[i] = i < channels ? 0.3f : 1e-6f * x[i];
        if (likeness == ALIKE) x[i] = 0.7f;
    }
}

static void check_moments(const struct batch_norm *v)
{
    for (int64_t c = 0; c < v->channels; c++) {
        double mean = 0, variance = 0;
        for (int64_t row = 0; row < v->rows; row++)
            mean += v->x[row * v->channels + c] / (double)v->rows;
        for (int64_t row = 0; row < v->rows; row++)
            variance += pow(v->x[row * v->channels + c] - mean, 2) / (double)v->rows;
        assert_near(v->mean[c], mean, (struct tolerance){1e-6, 1e-6}, "mean", c);
        /* which an emulated or real GPU takes from the mean as it is kept */
        const double kept = pow(1e-7 * mean, 2);
        assert_near(v->variance[c], variance, (struct tolerance){1e-5, 1e-14 + kept}, "variance",
                    c);
    }
}

static void check_back(const struct batch_norm *v, const float *before)
{
    for (int64_t c = 0; c < v->channels; c++) {
        double sum = 0, product = 0, size = 0;
        for (int64_t row = 0; row < v->rows; row++) {
            const int64_t at = row * v->channels + c;
            const double beyond = (double)v->x[at] - v->mean[c];
            sum += v->dy[at];
            product += beyond * v->dy[at];
            size += fabs(beyond * v->dy[at]);
            const double want = v->dy[at] * v->scale[c] + beyond * v->slope[c] + v->offset[c];
            assert_near(v->dx[at], want + (v->add ? before[at] : 0), (struct tolerance){1e-5, 1e-5},
                        "dx", at);
        }
        assert_near(v->sum[c], sum, (struct tolerance){1e-5, 1e-5 * (double)v->rows}, "sum", c);
        assert_near(v->product[c], product, (struct tolerance){1e-5, 1e-6 * size}, "product", c);
    }
}

/* What moments and sums need. made: [4 * channels] */
static struct batch_norm forward(int64_t rows, int64_t channels, const float *x, const float *dy,
                                 float *made, float *partial)
{
    return (struct batch_norm){.rows = rows,
                               .channels = channels,
                               .x = x,
                               .mean = made,
                               .variance = made + channels,
                               .partial = (double *)partial,
                               .dy = dy,
                               .sum = made + 2 * channels,
                               .product = made + 3 * channels};
}

static void check(struct device *d, int64_t rows, int64_t channels, enum likeness likeness)
{
    const int64_t n = rows * channels;
    float *x = random_floats(d, n, -1, 1, 1), *dy = random_floats(d, n, -1, 1, 2);
    float *dx = random_floats(d, n, -1, 1, 3), *before = copy_floats(d, dx, n);
    float *given = random_floats(d, 3 * channels, -1, 1, 4), *made = new_floats(d, 4 * channels);
    float *partial = new_floats(d, 2 * batch_norm_partials(channels));
    liken(x, rows, channels, likeness);
    struct batch_norm v = forward(rows, channels, x, dy, made, partial);
    v.scale = given;
    v.slope = given + channels;
    v.offset = given + 2 * channels;
    v.dx = dx;
    v.add = likeness == FAR;
    d->kernels->batch_norm_moments(d, &v);
    d->kernels->batch_norm_sums(d, &v);
    d->kernels->batch_norm_back(d, &v);
    assert_int_equal(d->kernels->synchronize(d), OK);
    check_moments(&v);
    check_back(&v, before);
    float *all[] = {x, dy, dx, before, given, made, partial};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) free_floats(d, all[i]);
}

static void each_shape(struct device *d)
{
    static const int64_t rows[] = {1, 2, 37, 1000, 20000}, channels[] = {1, 5, 16, 33, 700};
    for (int r = 0; r < COUNTS; r++)
        for (int c = 0; c < COUNTS; c++)
            for (enum likeness l = NEAR; l < LIKENESSES; l++)
                if (rows[r] * channels[c] <= 700000 && is_feasible(d, rows[r] * channels[c]))
                    check(d, rows[r], channels[c], l);
}

static void channels_are_measured_and_their_gradients_are_right(void **state)
{
    on_every_device(each_shape);
}

/* Of one thread and of two, where rows are many and where they are few */
static void check_threads(struct device *d, int64_t rows, int64_t channels)
{
    struct device alone = *d;
    const int64_t n = rows * channels;
    float *x = random_floats(d, n, -1, 1, 1), *dy = random_floats(d, n, -1, 1, 2);
    float *partial = new_floats(d, 2 * batch_norm_partials(channels));
    float *one = new_floats(d, 4 * channels), *two = new_floats(d, 4 * channels);
    alone.threads = 1;
    for (int i = 0; i < 2; i++) {
        float *made = i == 0 ? one : two;
        struct device *by = i == 0 ? &alone : d;
        const struct batch_norm v = forward(rows, channels, x, dy, made, partial);
        by->kernels->batch_norm_moments(by, &v);
        by->kernels->batch_norm_sums(by, &v);
        assert_int_equal(by->kernels->synchronize(by), OK);
    }
    assert_same_bits(one, two, 4 * channels, "threads");
    float *all[] = {x, dy, partial, one, two};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) free_floats(d, all[i]);
}

static void each_threads(struct device *d)
{
    if (is_feasible(d, LENGTH_MAX)) check_threads(d, LENGTH_MAX / 16, 16);
    check_threads(d, 9, 500);
}

static void sums_do_not_depend_on_threads(void **state)
{
    on_every_device(each_threads);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(channels_are_measured_and_their_gradients_are_right),
        cmocka_unit_test(sums_do_not_depend_on_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
