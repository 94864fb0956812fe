/* test_denormals.c - numbers too small for a normal float are zero in whatever thread computes: in
 * the one that opened the device, in those that share a loop with it, and in those that are
 * started later.
 */
#include <pthread.h>
#include <stdlib.h>

#include "tests/kernels/support.h"

enum { THREADS = 4, N = 1 << 20, SIDE = 64 };

static const float tiny = 1e-39f; /* an array of these is denormal in memory */

static float *many(int64_t n, float value)
{
    float *x = malloc((size_t)n * sizeof *x);
    assert_non_null(x);
    for (int64_t i = 0; i < n; i++) x[i] = value;
    return x;
}

static void assert_zeros(const float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++) assert_true(x[i] == 0.0f);
}

static struct device open_threads(void)
{
    struct device d;
    assert_int_equal(device_open_cpu(THREADS, NULL, &d), OK);
    return d;
}

/* Read: tiny is zero. */
static void inputs_are_zero_in_every_thread_of_a_loop(void **state)
{
    float *y = many(N, tiny);
    struct device d = open_threads();
    d.kernels->scale(&d, y, 1e3f, N);
    assert_int_equal(d.kernels->synchronize(&d), OK);
    assert_zeros(y, N);
    device_close(&d);
    free(y);
}

/* Written: a normal number that would become one. */
static void results_are_zero_in_every_thread_of_a_loop(void **state)
{
    struct device d = open_threads();
    float *y = many(N, 1e-30f);
    d.kernels->scale(&d, y, 1e-9f, N);
    assert_int_equal(d.kernels->synchronize(&d), OK);
    assert_zeros(y, N);
    device_close(&d);
    free(y);
}

static void products_take_them_for_zero(void **state)
{
    float *a = many(SIDE * SIDE, tiny), *b = many(SIDE * SIDE, 1e6f), *c = many(SIDE * SIDE, 1.0f);
    struct device d = open_threads();
    const struct gemm g = {.m = SIDE, .n = SIDE, .k = SIDE, .a = a, .b = b, .c = c};
    d.kernels->gemm(&d, &g);
    assert_int_equal(d.kernels->synchronize(&d), OK);
    assert_zeros(c, SIDE * SIDE);
    device_close(&d);
    free(a);
    free(b);
    free(c);
}

static void *half_of(void *at)
{
    volatile float *x = at;
    *x = *x * 0.5f;
    return NULL;
}

static void a_thread_begins_as_the_one_that_started_it(void **state)
{
    struct device d = open_threads();
    float x = 1.2e-38f; /* normal; half of it is not */
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, half_of, &x), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(x == 0.0f);
    device_close(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(inputs_are_zero_in_every_thread_of_a_loop),
        cmocka_unit_test(results_are_zero_in_every_thread_of_a_loop),
        cmocka_unit_test(products_take_them_for_zero),
        cmocka_unit_test(a_thread_begins_as_the_one_that_started_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
