/* test_vector.c - kernels on plain vectors, and reductions, against loops in double. */
#include "tests/kernels/support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/random.h"

/* One kernel on y, a and b, and what it must do to an element */
struct elementwise {
    const char *name;
    void (*run)(struct device *, float *y, const float *a, const float *b, int64_t n);
    double (*want)(double y, double a, double b);
};

static void run_fill(struct device *d, float *y, const float *a, const float *b, int64_t n)
{
    d->kernels->fill(d, y, 2.5f, n);
}

static double want_fill(double y, double a, double b)
{
    return 2.5;
}

static void run_copy(struct device *d, float *y, const float *a, const float *b, int64_t n)
{
    d->kernels->copy(d, y, a, n);
}

static double want_copy(double y, double a, double b)
{
    return a;
}

static void run_axpy(struct device *d, float *y, const float *a, const float *b, int64_t n)
{
    d->kernels->axpy(d, y, -0.3f, a, n);
}

static double want_axpy(double y, double a, double b)
{
    return y + (double)-0.3f * a;
}

static void run_scale(struct device *d, float *y, const float *a, const float *b, int64_t n)
{
    d->kernels->scale(d, y, 0.7f, n);
}

static double want_scale(double y, double a, double b)
{
    return y * (double)0.7f;
}

static void run_add(struct device *d, float *y, const float *a, const float *b, int64_t n)
{
    d->kernels->add(d, y, a, b, n);
}

static double want_add(double y, double a, double b)
{
    return a + b;
}

static void run_add_in_place(struct device *d, float *y, const float *a, const float *b, int64_t n)
{
    d->kernels->add(d, y, y, b, n);
}

static double want_add_in_place(double y, double a, double b)
{
    return y + b;
}

static void run_multiply(struct device *d, float *y, const float *a, const float *b, int64_t n)
{
    d->kernels->multiply(d, y, a, b, n);
}

static double want_multiply(double y, double a, double b)
{
    return a * b;
}

static void run_multiply_add(struct device *d, float *y, const float *a, const float *b, int64_t n)
{
    d->kernels->multiply_add(d, y, a, b, n);
}

static double want_multiply_add(double y, double a, double b)
{
    return y + a * b;
}

static void run_clamp(struct device *d, float *y, const float *a, const float *b, int64_t n)
{
    d->kernels->clamp(d, y, -0.5f, 0.25f, n);
}

static double want_clamp(double y, double a, double b)
{
    return fmin(fmax(y, -0.5), 0.25);
}

static void run_regularize(struct device *d, float *y, const float *a, const float *b, int64_t n)
{
    d->kernels->regularize(d, y, a, 0.125f, 0.5f, n);
}

static double want_regularize(double y, double a, double b)
{
    return y + 0.125 * (a > 0 ? 1 : a < 0 ? -1 : 0) + 0.5 * a;
}

static void run_sum_ordered(struct device *d, float *y, const float *a, const float *b, int64_t n)
{
    const float *sources[] = {y, a, b, a};
    d->kernels->sum_ordered(d, y, sources, 4, 0.25f, n);
}

static double want_sum_ordered(double y, double a, double b)
{
    return 0.25 * (y + a + b + a);
}

static const struct elementwise kernels_of_elements[] = {
    {"fill", run_fill, want_fill},
    {"copy", run_copy, want_copy},
    {"axpy", run_axpy, want_axpy},
    {"scale", run_scale, want_scale},
    {"add", run_add, want_add},
    {"add in place", run_add_in_place, want_add_in_place},
    {"multiply", run_multiply, want_multiply},
    {"multiply_add", run_multiply_add, want_multiply_add},
    {"clamp", run_clamp, want_clamp},
    {"regularize", run_regularize, want_regularize},
    {"sum_ordered", run_sum_ordered, want_sum_ordered},
};

static void check_elementwise(struct device *d, const struct elementwise *k, int64_t n)
{
    const struct tolerance t = {1e-6, 3e-7};
    float *y = random_floats(d, n + 1, -1, 1, 1), *before = copy_floats(d, y, n + 1);
    float *a = random_floats(d, n, -1, 1, 2), *b = random_floats(d, n, -1, 1, 3);
    a[n / 2] = 0;
    k->run(d, y, a, b, n);
    for (int64_t i = 0; i < n; i++)
        assert_near(y[i], k->want(before[i], a[i], b[i]), t, k->name, i);
    assert_true(y[n] == before[n]); /* nothing is written behind the end */
    free_floats(d, y);
    free_floats(d, before);
    free_floats(d, a);
    free_floats(d, b);
}

static void each_elementwise(struct device *d)
{
    for (size_t k = 0; k < sizeof kernels_of_elements / sizeof *kernels_of_elements; k++)
        for (int i = 0; i < LENGTHS; i++) check_elementwise(d, &kernels_of_elements[k], lengths[i]);
}

static void vectors_are_combined_element_by_element(void **state)
{
    on_every_device(each_elementwise);
}

static void nan_survives_clamp(struct device *d)
{
    float *y = new_floats(d, 40);
    y[7] = NAN;
    d->kernels->clamp(d, y, -1, 1, 40);
    assert_true(isnan(y[7]));
    free_floats(d, y);
}

static void a_clamp_does_not_hide_nan(void **state)
{
    on_every_device(nan_survives_clamp);
}

static void check_strided(struct device *d, int64_t rows, int64_t columns)
{
    const int64_t to = columns + 3, from = columns + 8;
    float *dst = random_floats(d, rows * to, -1, 1, 4), *before = copy_floats(d, dst, rows * to);
    float *src = random_floats(d, rows * from, -1, 1, 5);
    struct strided s = {rows, columns, to, from, dst, src};
    d->kernels->add_strided(d, &s);
    for (int64_t i = 0; i < rows * to; i++) {
        int64_t row = i / to, column = i % to;
        float want = before[i] + (column < columns ? src[row * from + column] : 0);
        assert_near(dst[i], want, exact, "add_strided", i);
    }
    d->kernels->copy_strided(d, &s);
    for (int64_t i = 0; i < rows * to; i++) {
        int64_t row = i / to, column = i % to;
        float want = column < columns ? src[row * from + column] : before[i];
        assert_near(dst[i], want, exact, "copy_strided", i);
    }
    free_floats(d, dst);
    free_floats(d, before);
    free_floats(d, src);
}

static void each_strided(struct device *d)
{
    const int64_t shapes[][2] = {{1, 1}, {1, 17}, {5, 3}, {17, 10}, {100, 1000}, {2000, 64}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        check_strided(d, shapes[i][0], shapes[i][1]);
}

static void rows_at_a_distance_are_copied_and_added(void **state)
{
    on_every_device(each_strided);
}

static void check_dropout(struct device *d, int64_t n, bool add, int64_t first)
{
    const float rate = 0.3f;
    const uint64_t key = 0x123456789abcdefu, number = 0xfedcba987654321u;
    float *x = random_floats(d, n, -1, 1, 6), *y = random_floats(d, n, -1, 1, 7);
    float *before = copy_floats(d, y, n);
    void *draw;
    assert_int_equal(d->kernels->allocate(d, sizeof number, &draw), OK);
    d->kernels->upload(d, draw, &number, sizeof number);
    d->kernels->dropout(d, &(struct dropout){y, x, rate, key, draw, add, first}, n);
    for (int64_t i = 0; i < n; i++) {
        bool is_kept = random_uniform(random_u64(key, number), (uint64_t)(first + i)) >= rate;
        double want = (is_kept ? (double)x[i] / (1 - (double)rate) : 0) + (add ? before[i] : 0);
        assert_near(y[i], want, close_by, "dropout", i);
    }
    free_floats(d, x);
    free_floats(d, y);
    free_floats(d, before);
    d->kernels->release(d, draw);
}

static void each_dropout(struct device *d)
{
    for (int i = 0; i < LENGTHS; i++) {
        check_dropout(d, lengths[i], false, 0);
        check_dropout(d, lengths[i], true, 0);
        check_dropout(d, lengths[i], false, 1000003);
    }
}

static void dropout_keeps_what_the_random_numbers_of_its_key_say(void **state)
{
    on_every_device(each_dropout);
}

static double sum_abs(struct device *d, const float *x, int64_t n)
{
    double sum;
    d->kernels->sums(d, &(struct summed){x, n, SUM_ABS}, 1, &sum);
    return sum;
}

static double sum_squares(struct device *d, const float *x, int64_t n)
{
    double sum;
    d->kernels->sums(d, &(struct summed){x, n, SUM_SQUARE}, 1, &sum);
    return sum;
}

static double count_not_finite(struct device *d, const float *x, int64_t n)
{
    double sum;
    d->kernels->sums(d, &(struct summed){x, n, SUM_NOT_FINITE}, 1, &sum);
    return sum;
}

static void check_sums(struct device *d, int64_t n)
{
    const struct tolerance t = {1e-12, 1e-9};
    float *x = random_floats(d, n, -1, 1, 8);
    double sum = 0, abs_sum = 0, squares = 0;
    for (int64_t i = 0; i < n; i++) {
        sum += x[i];
        abs_sum += fabsf(x[i]);
        squares += (double)x[i] * x[i];
    }
    assert_near(kernels_sum(d, x, n), sum, t, "sum", n);
    assert_near(sum_abs(d, x, n), abs_sum, t, "sum_abs", n);
    assert_near(sum_squares(d, x, n), squares, t, "sum_squares", n);
    free_floats(d, x);
}

static void each_sum(struct device *d)
{
    for (int i = 0; i < LENGTHS; i++) check_sums(d, lengths[i]);
    assert_true(kernels_sum(d, NULL, 0) == 0);
    check_sums(d, 300000);
    check_sums(d, 262144 + 1);
}

static void reductions_are_taken_in_double(void **state)
{
    on_every_device(each_sum);
}

enum { MANY = 1200 }; /* more than one copy of a GPU brings */

/* Vectors of 0 to 6 floats, one behind the other, and a long one among them: each has its own sum.
 */
static void each_of_many(struct device *d)
{
    static struct summed of[MANY];
    static double sums[MANY];
    float *x = random_floats(d, LENGTH_MAX, -1, 1, 10);
    for (int i = 0; i < MANY; i++)
        of[i] = (struct summed){x + 3 * i, i == MANY / 2 ? LENGTH_MAX - 3 * i : i % 7,
                                (enum summed_term)(i % (SUM_NOT_FINITE + 1))};
    d->kernels->sums(d, of, MANY, sums);
    for (int i = 0; i < MANY; i++) {
        double alone;
        d->kernels->sums(d, &of[i], 1, &alone);
        assert_true(sums[i] == alone);
    }
    free_floats(d, x);
}

static void sums_of_many_vectors_are_those_of_each(void **state)
{
    on_every_device(each_of_many);
}

/* The sums of the first device, which all others must repeat bit by bit */
static double first_sums[3];
static bool have_first_sums;

static void repeat_sums(struct device *d)
{
    float *x = random_floats(d, LENGTH_MAX, -1e3f, 1e3f, 9);
    double sums[3] = {kernels_sum(d, x, LENGTH_MAX), sum_abs(d, x, LENGTH_MAX),
                      sum_squares(d, x, LENGTH_MAX)};
    if (!have_first_sums) memcpy(first_sums, sums, sizeof sums);
    have_first_sums = true;
    assert_memory_equal(first_sums, sums, sizeof sums);
    free_floats(d, x);
}

static void sums_do_not_depend_on_threads_or_instructions(void **state)
{
    have_first_sums = false;
    on_every_device(repeat_sums);
}

static void find_each_bad_number(struct device *d)
{
    const float bad[] = {NAN, INFINITY, -INFINITY};
    for (int i = 0; i < LENGTHS; i++) {
        int64_t n = lengths[i];
        float *x = random_floats(d, n, -1e38f, 1e38f, 10);
        assert_true(d->kernels->all_finite(d, x, n));
        assert_true(count_not_finite(d, x, n) == 0);
        for (int64_t at = 0; at < n; at += 1 + n / 7) {
            float before = x[at];
            x[at] = bad[at % 3];
            assert_false(d->kernels->all_finite(d, x, n));
            assert_true(count_not_finite(d, x, n) == 1);
            x[at] = before;
        }
        x[n - 1] = NAN;
        assert_false(d->kernels->all_finite(d, x, n));
        x[0] = -INFINITY;
        assert_true(count_not_finite(d, x, n) == (n > 1 ? 2 : 1));
        free_floats(d, x);
    }
}

static void one_bad_number_anywhere_is_found(void **state)
{
    on_every_device(find_each_bad_number);
}

static void move_memory(struct device *d)
{
    float host[100], back[100];
    for (int i = 0; i < 100; i++) host[i] = (float)i;
    float *x = new_floats(d, 100);
    assert_int_equal((uintptr_t)x % 64, 0);
    for (int i = 0; i < 100; i++) assert_true(x[i] == 0);
    d->kernels->upload(d, x, host, sizeof host);
    d->kernels->download(d, back, x, sizeof back);
    assert_memory_equal(host, back, sizeof host);
    free_floats(d, x);
    void *never;
    assert_int_equal(d->kernels->allocate(d, SIZE_MAX - 10, &never), ERR_MEMORY);
}

/* Several huge pages and a part of one, also where somebody else has written before. */
static void reuse_memory(struct device *d)
{
    const int64_t n = (5 << 20) / sizeof(float) + 1;
    for (int round = 0; round < 3; round++) {
        float *x = new_floats(d, n);
        assert_int_equal((uintptr_t)x % 64, 0);
        for (int64_t i = 0; i < n; i++)
            if (x[i] != 0) fail_msg("float %lld of %lld is not 0", (long long)i, (long long)n);
        d->kernels->fill(d, x, 1, n);
        free_floats(d, x);
    }
}

static void much_memory_is_zeroed_too(void **state)
{
    on_every_device(reuse_memory);
}

static void memory_is_zeroed_aligned_and_refused_where_there_is_none(void **state)
{
    on_every_device(move_memory);
}

static void devices_that_cannot_be_opened_say_why(void **state)
{
    struct device d;
    assert_int_equal(device_open_cpu(1, "mmx", &d), ERR_INPUT);
    assert_non_null(strstr(error_text(), "mmx"));
    assert_int_equal(device_open_cpu(0, NULL, &d), ERR_INPUT);
    assert_non_null(strstr(error_text(), "threads"));
    assert_non_null(strstr(cpu_description(), "OpenBLAS 0."));
}

/* An empty one is none; a wrong one is not passed over. */
static void the_environment_chooses_where_nobody_else_does(void **state)
{
    struct device d;
    if (device_open_cpu(1, "sse2", &d)) skip(); /* no x86 */
    device_close(&d);
    const char *set = getenv("DTRAIN_CPU_KERNELS");
    char *before = set ? strdup(set) : NULL;

    setenv("DTRAIN_CPU_KERNELS", "mmx", 1);
    assert_int_equal(device_open_cpu(1, NULL, &d), ERR_INPUT);
    assert_non_null(strstr(error_text(), "DTRAIN_CPU_KERNELS: unknown instruction set \"mmx\""));
    assert_int_equal(device_open_cpu(1, "sse2", &d), OK);
    device_close(&d);
    setenv("DTRAIN_CPU_KERNELS", "sse2", 1);
    assert_int_equal(device_open_cpu(1, NULL, &d), OK);
    device_close(&d);
    assert_non_null(strstr(cpu_description(), "kernels sse2"));
    setenv("DTRAIN_CPU_KERNELS", "", 1);
    assert_int_equal(device_open_cpu(1, NULL, &d), OK);
    device_close(&d);

    unsetenv("DTRAIN_CPU_KERNELS");
    if (before) setenv("DTRAIN_CPU_KERNELS", before, 1);
    free(before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(vectors_are_combined_element_by_element),
        cmocka_unit_test(a_clamp_does_not_hide_nan),
        cmocka_unit_test(rows_at_a_distance_are_copied_and_added),
        cmocka_unit_test(dropout_keeps_what_the_random_numbers_of_its_key_say),
        cmocka_unit_test(reductions_are_taken_in_double),
        cmocka_unit_test(sums_of_many_vectors_are_those_of_each),
        cmocka_unit_test(sums_do_not_depend_on_threads_or_instructions),
        cmocka_unit_test(one_bad_number_anywhere_is_found),
        cmocka_unit_test(much_memory_is_zeroed_too),
        cmocka_unit_test(memory_is_zeroed_aligned_and_refused_where_there_is_none),
        cmocka_unit_test(devices_that_cannot_be_opened_say_why),
        cmocka_unit_test(the_environment_chooses_where_nobody_else_does),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
