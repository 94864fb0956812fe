/* test_bf16.c - products and convolutions in bfloat16 on the CPU: what they make of their operands
 * is what rounding makes of these, to the bit, whatever the shape. test_gemm and test_image look at
 * the sums. */
#include <stdlib.h>
#include <string.h>

#include "kernels/cpu_bf16.h"
#include "kernels/elements.h"
#include "tests/kernels/support.h"

/* Skips where there is no bfloat16 at all. */
static void rounds(struct device *d)
{
    if (device_cpu_bf16(d) == OK) return;
    device_close(d);
    skip();
}

static float *rounded(struct device *d, const float *x, int64_t n)
{
    float *y = copy_floats(d, x, n);
    for (int64_t i = 0; i < n; i++) y[i] = element_from_bf16(element_to_bf16(x[i]));
    return y;
}

static void assert_other(const float *a, const float *b, int64_t n)
{
    int64_t same = 0;
    for (int64_t i = 0; i < n; i++) same += a[i] == b[i];
    assert_true(same * 2 < n);
}

static void check_product(struct device *d, int choice)
{
    struct gemm g = {.transpose_a = choice & 1,
                     .transpose_b = choice & 2,
                     .add = choice & 4,
                     .m = 97,
                     .n = 130,
                     .k = 171};
    float *a = random_floats(d, g.m * g.k, -1, 1, 1), *b = random_floats(d, g.k * g.n, -1, 1, 2);
    float *a2 = rounded(d, a, g.m * g.k), *b2 = rounded(d, b, g.k * g.n);
    float *c = random_floats(d, g.m * g.n, -1, 1, 3), *c2 = copy_floats(d, c, g.m * g.n);
    float *c3 = copy_floats(d, c, g.m * g.n);
    struct device plain;
    g.a = a, g.b = b, g.c = c;
    d->kernels->gemm(d, &g);
    g.a = a2, g.b = b2, g.c = c2;
    d->kernels->gemm(d, &g);
    assert_same_bits(c, c2, g.m * g.n, "a product of rounded operands");

    assert_int_equal(device_open_cpu(1, NULL, &plain), OK);
    g.a = a, g.b = b, g.c = c3;
    plain.kernels->gemm(&plain, &g);
    device_close(&plain);
    assert_other(c, c3, g.m * g.n);
    float *const all[] = {a, b, a2, b2, c, c2, c3};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) free_floats(d, all[i]);
}

static void each_product(struct device *d)
{
    rounds(d);
    for (int choice = 0; choice < 8; choice++) check_product(d, choice);
}

static void products_round_their_operands_to_the_nearest(void **state)
{
    on_every_device(each_product);
}

struct convolved {
    float *y, *dx, *dkernel;
};

enum { INPUTS = 2 * 9 * 8 * 12, RESULTS = 2 * 9 * 8 * 20, WEIGHTS = 3 * 3 * 12 * 20 };

static struct convolved convolve(struct device *d, const float *x, const float *dy,
                                 const float *kernel)
{
    const struct conv2d shape = {{.batch = 2,
                                  .in_y = 9,
                                  .in_x = 8,
                                  .out_y = 9,
                                  .out_x = 8,
                                  .kernel_y = 3,
                                  .kernel_x = 3,
                                  .stride_y = 1,
                                  .stride_x = 1,
                                  .dilation_y = 1,
                                  .dilation_x = 1,
                                  .pad_top = 1,
                                  .pad_left = 1,
                                  .pad_bottom = 1,
                                  .pad_right = 1},
                                 12,
                                 20};
    struct convolved ret = {new_floats(d, RESULTS), new_floats(d, INPUTS), new_floats(d, WEIGHTS)};
    struct conv2d_plan *plan;
    assert_int_equal(d->kernels->conv2d_open(d, &shape, &plan), OK);
    d->kernels->conv2d_forward(d, plan, ret.y, x, kernel, NULL, NULL, ACTIVATION_LINEAR, 0);
    d->kernels->conv2d_back_data(d, plan, ret.dx, dy, kernel, false);
    d->kernels->conv2d_back_kernel(d, plan, ret.dkernel, dy, x, false);
    d->kernels->conv2d_close(d, plan);
    return ret;
}

static void check_convolution(struct device *d)
{
    rounds(d);
    float *x = random_floats(d, INPUTS, -1, 1, 4), *dy = random_floats(d, RESULTS, -1, 1, 5);
    float *kernel = random_floats(d, WEIGHTS, -1, 1, 6);
    float *x2 = rounded(d, x, INPUTS), *dy2 = rounded(d, dy, RESULTS);
    float *kernel2 = rounded(d, kernel, WEIGHTS);
    struct device plain;
    assert_int_equal(device_open_cpu(1, NULL, &plain), OK);
    const struct convolved other = convolve(&plain, x, dy, kernel);
    device_close(&plain);
    const struct convolved got = convolve(d, x, dy, kernel), again = convolve(d, x2, dy2, kernel2);
    assert_same_bits(got.y, again.y, RESULTS, "y");
    assert_same_bits(got.dx, again.dx, INPUTS, "dx");
    assert_same_bits(got.dkernel, again.dkernel, WEIGHTS, "dkernel");
    assert_other(got.y, other.y, RESULTS);
    assert_other(got.dx, other.dx, INPUTS);
    assert_other(got.dkernel, other.dkernel, WEIGHTS);
    float *const all[] = {x,       dy,       kernel,       x2,      dy2,      kernel2,
                          got.y,   got.dx,   got.dkernel,  again.y, again.dx, again.dkernel,
                          other.y, other.dx, other.dkernel};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) free_floats(d, all[i]);
}

static void convolutions_round_their_operands_to_the_nearest(void **state)
{
    on_every_device(check_convolution);
}

/* More shapes than are kept: what has to be made anew does the same. */
static void many_shapes(struct device *d)
{
    enum { SHAPES = 140, M = 128, N = 128, K = 128 };
    rounds(d);
    float *a = random_floats(d, (M + SHAPES) * K, -1, 1, 7), *b = random_floats(d, K * N, -1, 1, 8);
    float *first = new_floats(d, M * N), *c = new_floats(d, (M + SHAPES) * N);
    struct gemm g = {.m = M, .n = N, .k = K, .a = a, .b = b, .c = first};
    d->kernels->gemm(d, &g);
    g.c = c;
    for (int i = SHAPES - 1; i >= 0; i--) {
        g.m = M + i;
        d->kernels->gemm(d, &g);
        assert_same_bits(first, c, M * N, "the first rows");
    }
    free_floats(d, a);
    free_floats(d, b);
    free_floats(d, first);
    free_floats(d, c);
}

static void shapes_that_were_given_up_are_made_anew(void **state)
{
    on_every_device(many_shapes);
}

/* The next row must not be read into this one, even where it is not a number. */
static void one_spoilt_row(struct device *d)
{
    rounds(d);
    assert_spoilt_row_is_alone(d, 97, 130, 171);
}

static void a_row_that_is_not_a_number_spoils_itself_alone(void **state)
{
    on_every_device(one_spoilt_row);
}

/* Too small, or with too few uses of each number: as in float32, to the bit */
static void small_products(struct device *d)
{
    static const int64_t sizes[][3] = {{60, 60, 500}, {3000, 31, 40}, {300, 300, 31}};
    rounds(d);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const int64_t m = sizes[i][0], n = sizes[i][1], k = sizes[i][2];
        float *a = random_floats(d, m * k, -1, 1, 11), *b = random_floats(d, k * n, -1, 1, 12);
        float *c = new_floats(d, m * n), *c2 = new_floats(d, m * n);
        struct device plain = {0};
        struct gemm g = {.m = m, .n = n, .k = k, .a = a, .b = b, .c = c};
        const char *isa = strrchr(d->kernels->name, ' ') + 1;
        assert_int_equal(device_open_cpu(d->threads, isa, &plain), OK);
        d->kernels->gemm(d, &g);
        g.c = c2;
        plain.kernels->gemm(&plain, &g);
        assert_same_bits(c, c2, m * n, "a small product");
        device_close(&plain);
        free_floats(d, a);
        free_floats(d, b);
        free_floats(d, c);
        free_floats(d, c2);
    }
}

static void small_products_stay_as_they_are(void **state)
{
    on_every_device(small_products);
}

static void other_words_are_refused(void **state)
{
    struct device d;
    assert_int_equal(device_open_cpu(1, NULL, &d), OK);
    setenv("DTRAIN_CPU_BF16", "sometimes", 1);
    assert_int_equal(device_cpu_bf16(&d), ERR_INPUT);
    assert_non_null(strstr(error_text(), "expected always, got \"sometimes\""));
    setenv("DTRAIN_CPU_BF16", "always", 1);
    device_close(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_round_their_operands_to_the_nearest),
        cmocka_unit_test(convolutions_round_their_operands_to_the_nearest),
        cmocka_unit_test(shapes_that_were_given_up_are_made_anew),
        cmocka_unit_test(a_row_that_is_not_a_number_spoils_itself_alone),
        cmocka_unit_test(small_products_stay_as_they_are),
        cmocka_unit_test(other_words_are_refused),
    };
    setenv("DTRAIN_CPU_BF16", "always", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
