/* test_precision.c - products and convolutions in TF32 and in bf16 against the same in float32, on
 * one GPU: near, and the same bits each time. With GPU_BARE in the environment no library of
 * NVIDIA's is used, and convolutions must not be the same as in float32, as products are: a library
 * may leave small ones to float32 though it need not.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/kernels/support.h"

enum { EXACT = PRECISION_FLOAT32, DEVICES = PRECISION_BF16 + 1 };

static bool is_bare(void)
{
    return getenv("GPU_BARE") != NULL;
}

/* A device of each precision, for all tests: a library takes long to be opened */
static struct device devices[DEVICES];

static int open_devices(void **state)
{
    for (int i = 0; i < DEVICES; i++) {
        const struct gpu_options options = {
            .is_watched = true, .precision = (enum precision)i, .is_bare = is_bare()};
        if (device_open_gpu(&options, &devices[i])) fail_msg("%s", error_text());
    }
    return 0;
}

static int close_devices(void **state)
{
    for (int i = 0; i < DEVICES; i++) device_close(&devices[i]);
    return 0;
}

/* The same operands on all of them */
struct group {
    float *a[DEVICES], *b[DEVICES], *c[DEVICES];
    int64_t a_count, b_count, c_count;
};

static void open_group(struct group *p)
{
    for (int i = 0; i < DEVICES; i++) {
        p->a[i] = random_floats(&devices[i], p->a_count, -1, 1, 1);
        p->b[i] = random_floats(&devices[i], p->b_count, -1, 1, 2);
        p->c[i] = random_floats(&devices[i], p->c_count, -1, 1, 3);
    }
}

static void close_group(struct group *p)
{
    for (int i = 0; i < DEVICES; i++) {
        free_floats(&devices[i], p->a[i]);
        free_floats(&devices[i], p->b[i]);
        free_floats(&devices[i], p->c[i]);
        assert_int_equal(devices[i].kernels->synchronize(&devices[i]), OK);
    }
}

/* Of an operand below 1: half of its last bit, and what products of two such may be off by */
static const double product_error[DEVICES] = {[PRECISION_TF32] = 1e-3, [PRECISION_BF16] = 8e-3};

/* results: of `count` sums of `terms` products, whose errors add up as chance has it */
static void assert_rounded(float *const results[DEVICES], int64_t count, int64_t terms,
                           const char *what)
{
    for (int kind = EXACT + 1; kind < DEVICES; kind++) {
        const struct tolerance t = {0, product_error[kind] * sqrt((double)terms) + 1e-6};
        int64_t different = 0;
        for (int64_t i = 0; i < count; i++) {
            assert_near(results[kind][i], results[EXACT][i], t, what, i);
            different += results[kind][i] != results[EXACT][i];
        }
        const bool is_product = strncmp(what, "gemm", 4) == 0; /* of our own: in float32 */
        if (is_bare() && (is_product ? different > 0 : different * 2 < count))
            fail_msg("%s: precision %d is %s", what, kind,
                     is_product ? "not float32" : "as float32");
    }
}

static void check_gemm(int64_t m, int64_t n, int64_t k, int choice)
{
    struct group p = {.a_count = m * k, .b_count = k * n, .c_count = m * n};
    char what[64];
    snprintf(what, sizeof what, "gemm %lldx%lldx%lld choice %d", (long long)m, (long long)n,
             (long long)k, choice);
    open_group(&p);
    for (int i = 0; i < DEVICES; i++)
        devices[i].kernels->gemm(&devices[i], &(struct gemm){.transpose_a = choice & 1,
                                                             .transpose_b = choice & 2,
                                                             .add = choice & 4,
                                                             .m = m,
                                                             .n = n,
                                                             .k = k,
                                                             .a = p.a[i],
                                                             .b = p.b[i],
                                                             .c = p.c[i]});
    assert_rounded(p.c, m * n, k, what);
    close_group(&p);
}

/* Around the sizes of tiles, and of the blocks that a tensor core multiplies */
static void products_of_rounded_numbers_are_near_those_in_float32(void **state)
{
    static const int64_t sizes[][3] = {{16, 8, 8},    {17, 9, 7},     {128, 32, 16}, {100, 10, 784},
                                       {150, 70, 33}, {130, 128, 40}, {300, 129, 5}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int choice = 0; choice < 8; choice++)
            check_gemm(sizes[i][0], sizes[i][1], sizes[i][2], choice);
}

/* 3 images of 9 x 7, 3 x 3 cells, everything padded by one; a, b, c: x, kernel, y */
static const struct conv2d shape = {{3, 9, 7, 9, 7, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1}, 20, 40};
enum { PIXELS = 3 * 9 * 7, CELLS = 9, IN = 20, OUT = 40 };

static struct group open_convolution(struct conv2d_plan *plan[DEVICES])
{
    struct group p = {.a_count = PIXELS * IN, .b_count = CELLS * IN * OUT, .c_count = PIXELS * OUT};
    open_group(&p);
    for (int i = 0; i < DEVICES; i++)
        assert_int_equal(devices[i].kernels->conv2d_open(&devices[i], &shape, &plan[i]), OK);
    return p;
}

static void close_convolution(struct group *p, struct conv2d_plan *plan[DEVICES])
{
    for (int i = 0; i < DEVICES; i++) devices[i].kernels->conv2d_close(&devices[i], plan[i]);
    close_group(p);
}

static void convolutions_of_rounded_numbers_are_near_those_in_float32(void **state)
{
    struct conv2d_plan *plan[DEVICES];
    struct group p = open_convolution(plan);
    for (int i = 0; i < DEVICES; i++)
        devices[i].kernels->conv2d_forward(&devices[i], plan[i], p.c[i], p.a[i], p.b[i], NULL, NULL,
                                           ACTIVATION_LINEAR, 0);
    assert_rounded(p.c, p.c_count, CELLS * IN, "conv2d_forward");
    close_convolution(&p, plan);
}

static void gradients_of_rounded_numbers_are_near_those_in_float32(void **state)
{
    struct conv2d_plan *plan[DEVICES];
    struct group p = open_convolution(plan);
    for (int i = 0; i < DEVICES; i++) {
        float *kernel = copy_floats(&devices[i], p.b[i], p.b_count);
        devices[i].kernels->conv2d_back_kernel(&devices[i], plan[i], p.b[i], p.c[i], p.a[i], false);
        devices[i].kernels->conv2d_back_data(&devices[i], plan[i], p.a[i], p.c[i], kernel, true);
        free_floats(&devices[i], kernel);
    }
    assert_rounded(p.b, p.b_count, PIXELS, "conv2d_back_kernel");
    assert_rounded(p.a, p.a_count, CELLS * OUT, "conv2d_back_data");
    close_convolution(&p, plan);
}

/* To the nearest, ties to even */
static float bf16(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    bits = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Nothing else is rounded: with operands that are bf16 numbers already, the sums are float32's. */
static void convolutions_in_bf16_sum_products_of_bf16_numbers(void **state)
{
    const int kinds[] = {EXACT, PRECISION_BF16};
    const struct tolerance t = {0, 2e-6 * sqrt((double)CELLS * IN)};
    struct conv2d_plan *plan[DEVICES];
    struct group p = open_convolution(plan);
    for (int i = 0; i < p.a_count; i++) p.a[EXACT][i] = bf16(p.a[EXACT][i]);
    for (int i = 0; i < p.b_count; i++) p.b[EXACT][i] = bf16(p.b[EXACT][i]);
    for (int k = 0; k < 2; k++) {
        const int i = kinds[k];
        devices[i].kernels->conv2d_forward(&devices[i], plan[i], p.c[i], p.a[i], p.b[i], NULL, NULL,
                                           ACTIVATION_LINEAR, 0);
    }
    for (int64_t i = 0; i < p.c_count; i++)
        assert_near(p.c[PRECISION_BF16][i], p.c[EXACT][i], t, "conv2d_forward", i);
    close_convolution(&p, plan);
}

/* One pixel, a quad of channels: infinities and NaN must be seen in the result. A GPU writes NaN
 * with all bits set, where rounding up would make a zero of it. */
static void numbers_that_are_none_stay_none(void **state)
{
    const struct conv2d point = {{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0}, 4, 4};
    const uint32_t numbers[] = {0x7f800000, 0xff800000, 0x7fc00000, 0x7fffffff, 0xffffffff};
    struct group p = {.a_count = 4, .b_count = 16, .c_count = 4};
    open_group(&p);
    for (int i = 0; i < DEVICES; i++) {
        struct conv2d_plan *plan;
        assert_int_equal(devices[i].kernels->conv2d_open(&devices[i], &point, &plan), OK);
        for (size_t j = 0; j < sizeof numbers / sizeof *numbers; j++) {
            memcpy(p.a[i], &numbers[j], sizeof numbers[j]);
            for (int b = 0; b < p.b_count; b++) p.b[i][b] = 1;
            devices[i].kernels->conv2d_forward(&devices[i], plan, p.c[i], p.a[i], p.b[i], NULL,
                                               NULL, ACTIVATION_LINEAR, 0);
            assert_false(isfinite(*p.c[i]));
            assert_int_equal(isnan(*p.c[i]) != 0, isnan(*p.a[i]) != 0);
        }
        devices[i].kernels->conv2d_close(&devices[i], plan);
    }
    close_group(&p);
}

static void less_precision_gives_the_same_bits_each_time(void **state)
{
    struct conv2d_plan *plan[DEVICES];
    struct group p = open_convolution(plan);
    for (int kind = EXACT + 1; kind < DEVICES; kind++) {
        struct device *d = &devices[kind];
        float *first = new_floats(d, p.b_count);
        for (int i = 0; i < 3; i++) {
            d->kernels->conv2d_back_kernel(d, plan[kind], p.b[kind], p.c[kind], p.a[kind], false);
            if (i == 0) memcpy(first, p.b[kind], (size_t)p.b_count * sizeof *first);
            assert_same_bits(p.b[kind], first, p.b_count, "conv2d_back_kernel");
        }
        free_floats(d, first);
    }
    close_convolution(&p, plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_of_rounded_numbers_are_near_those_in_float32),
        cmocka_unit_test(convolutions_of_rounded_numbers_are_near_those_in_float32),
        cmocka_unit_test(gradients_of_rounded_numbers_are_near_those_in_float32),
        cmocka_unit_test(convolutions_in_bf16_sum_products_of_bf16_numbers),
        cmocka_unit_test(numbers_that_are_none_stay_none),
        cmocka_unit_test(less_precision_gives_the_same_bits_each_time),
    };
    return cmocka_run_group_tests(tests, open_devices, close_devices);
}
