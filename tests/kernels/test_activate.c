/* test_activate.c - activation functions and their slopes against formulas in double. */
#include "tests/kernels/support.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const float alpha = 0.2f;

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

static double want_value(enum activation kind, double x)
{
    switch (kind) {
    case ACTIVATION_RELU:
        return x > 0 ? x : 0;
    case ACTIVATION_RELU6:
        return fmin(fmax(x, 0), 6);
    case ACTIVATION_ELU:
        return x > 0 ? x : expm1(x);
    case ACTIVATION_LEAKY_RELU:
        return x > 0 ? x : (double)alpha * x;
    case ACTIVATION_SIGMOID:
        return sigmoid(x);
    case ACTIVATION_TANH:
        return tanh(x);
    case ACTIVATION_SOFTPLUS:
        return log1p(exp(x));
    case ACTIVATION_SWISH:
        return x * sigmoid(x);
    case ACTIVATION_GELU:
        return 0.5 * x * (1 + erf(x / sqrt(2)));
    case ACTIVATION_GELU_TANH:
        return 0.5 * x * (1 + tanh(sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
    case ACTIVATION_SELU:
        return 1.0507009873554805 * (x > 0 ? x : 1.6732632423543772 * expm1(x));
    case ACTIVATION_SOFTSIGN:
        return x / (1 + fabs(x));
    case ACTIVATION_SQUARE:
        return x * x;
    case ACTIVATION_SQRT:
        return sqrt(x);
    case ACTIVATION_EXP:
        return exp(x);
    case ACTIVATION_LOG:
        return log(x);
    case ACTIVATION_ABS:
        return fabs(x);
    default:
        return x;
    }
}

/* By difference quotient, which knows no formula; near a kink the sides differ. */
static double want_slope(enum activation kind, double x)
{
    const double h = 1e-5;
    return (want_value(kind, x + h) - want_value(kind, x - h)) / (2 * h);
}

static bool is_near_kink(double x)
{
    return fabs(x) < 1e-3 || fabs(x - 6) < 1e-3;
}

static void check_kind(struct device *d, enum activation kind, int64_t n)
{
    const struct tolerance value = {2e-6, 1e-6}, slope = {1e-5, 2e-6};
    char name[32];
    snprintf(name, sizeof name, "activation %d", kind);
    const bool is_positive = kind == ACTIVATION_SQRT || kind == ACTIVATION_LOG;
    float *x = random_floats(d, n, is_positive ? 0.5f : -9, 9, 50), *y = new_floats(d, n);
    float *dy = random_floats(d, n, -1, 1, 51), *dx = random_floats(d, n, -1, 1, 52);
    float *before = copy_floats(d, dx, n);
    const float *read = activation_reads_x(kind) ? x : NULL;

    d->kernels->activate(d, y, x, kind, alpha, n);
    for (int64_t i = 0; i < n; i++) assert_near(y[i], want_value(kind, x[i]), value, name, i);

    d->kernels->activate_back(d, dx, dy, y, read, kind, alpha, n, true);
    for (int64_t i = 0; i < n; i++)
        if (!is_near_kink(x[i]))
            assert_near(dx[i], before[i] + dy[i] * want_slope(kind, x[i]), slope, name, i);
    d->kernels->activate_back(d, dy, dy, y, read, kind, alpha, n, false);
    for (int64_t i = 0; i < n; i++)
        assert_near(before[i] + dy[i], dx[i], (struct tolerance){1e-6, 3e-7}, name, i);
    free_floats(d, x);
    free_floats(d, y);
    free_floats(d, dy);
    free_floats(d, dx);
    free_floats(d, before);
}

static void each_kind(struct device *d)
{
    for (int kind = 0; kind < ACTIVATION_COUNT; kind++)
        for (int i = 0; i < LENGTHS; i++) check_kind(d, (enum activation)kind, lengths[i]);
}

static void functions_and_slopes_are_right(void **state)
{
    on_every_device(each_kind);
}

static void check_kinks(struct device *d)
{
    float *x = new_floats(d, 3), *y = new_floats(d, 3), *dx = new_floats(d, 3);
    x[0] = 0, x[1] = 6, x[2] = -0.0f;
    float *one = copy_floats(d, (const float[]){1, 1, 1}, 3);
    d->kernels->activate(d, y, x, ACTIVATION_RELU6, 0, 3);
    d->kernels->activate_back(d, dx, one, y, NULL, ACTIVATION_RELU6, 0, 3, false);
    assert_true(dx[0] == 0 && dx[1] == 0 && dx[2] == 0);
    d->kernels->activate(d, y, x, ACTIVATION_RELU, 0, 3);
    d->kernels->activate_back(d, dx, one, y, NULL, ACTIVATION_RELU, 0, 3, false);
    assert_true(dx[0] == 0 && dx[1] == 1 && dx[2] == 0);
    d->kernels->activate_back(d, dx, one, NULL, NULL, ACTIVATION_LINEAR, 0, 3, false);
    assert_true(dx[0] == 1 && dx[1] == 1 && dx[2] == 1);
    free_floats(d, x);
    free_floats(d, y);
    free_floats(d, dx);
    free_floats(d, one);
}

static void the_slope_of_relu_at_zero_is_zero(void **state)
{
    on_every_device(check_kinks);
}

struct bias_case {
    int64_t rows, columns;
    bool has_bias, has_pre;
};

static void check_bias(struct device *d, const struct bias_case *c, enum activation kind)
{
    const struct tolerance t = {2e-6, 1e-6};
    const int64_t n = c->rows * c->columns;
    float *y = random_floats(d, n, -4, 4, 60), *before = copy_floats(d, y, n);
    float *bias = random_floats(d, c->columns, -1, 1, 61), *pre = new_floats(d, n);
    d->kernels->bias_activate(d, y, c->has_bias ? bias : NULL, c->has_pre ? pre : NULL, kind, alpha,
                              c->rows, c->columns);
    for (int64_t i = 0; i < n; i++) {
        float sum = before[i] + (c->has_bias ? bias[i % c->columns] : 0);
        assert_near(y[i], want_value(kind, sum), t, "bias_activate", i);
        assert_true(pre[i] == (c->has_pre ? sum : 0));
    }
    free_floats(d, y);
    free_floats(d, before);
    free_floats(d, bias);
    free_floats(d, pre);
}

static void each_bias(struct device *d)
{
    const int64_t shapes[][2] = {{1, 1}, {1, 17}, {17, 1}, {100, 10}, {7, 3}, {33, 1000}};
    const enum activation kinds[] = {ACTIVATION_LINEAR, ACTIVATION_RELU, ACTIVATION_TANH,
                                     ACTIVATION_GELU};
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
        for (int choice = 0; choice < 4; choice++)
            for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
                check_bias(d,
                           &(struct bias_case){shapes[s][0], shapes[s][1], choice & 1, choice & 2},
                           kinds[k]);
}

static void the_bias_is_added_before_the_activation(void **state)
{
    on_every_device(each_bias);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(functions_and_slopes_are_right),
        cmocka_unit_test(the_slope_of_relu_at_zero_is_zero),
        cmocka_unit_test(the_bias_is_added_before_the_activation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
