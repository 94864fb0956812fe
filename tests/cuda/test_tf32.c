/* test_tf32.c - products and convolutions in TF32 against the same in float32, on one GPU: near,
 * not the same, and the same bits each time. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/kernels/support.h"

enum { EXACT, TF32, DEVICES };

/* One device of each kind, and the same operands on both */
struct pair {
    struct device d[DEVICES];
    float *a[DEVICES], *b[DEVICES], *c[DEVICES];
    int64_t a_count, b_count, c_count;
};

static void open_pair(struct pair *p)
{
    for (int i = 0; i < DEVICES; i++) {
        const struct gpu_options options = {.is_watched = true, .allows_tf32 = i == TF32};
        if (device_open_gpu(&options, &p->d[i])) fail_msg("%s", error_text());
        p->a[i] = random_floats(&p->d[i], p->a_count, -1, 1, 1);
        p->b[i] = random_floats(&p->d[i], p->b_count, -1, 1, 2);
        p->c[i] = random_floats(&p->d[i], p->c_count, -1, 1, 3);
    }
}

static void close_pair(struct pair *p)
{
    for (int i = 0; i < DEVICES; i++) {
        free_floats(&p->d[i], p->a[i]);
        free_floats(&p->d[i], p->b[i]);
        free_floats(&p->d[i], p->c[i]);
        assert_int_equal(p->d[i].kernels->synchronize(&p->d[i]), OK);
        device_close(&p->d[i]);
    }
}

/* Operands below 1 are cut to 11 bits: each of the terms is off by 2^-11 at most, as chance has it.
 */
static void assert_tf32(const float *want, const float *got, int64_t count, int64_t terms,
                        const char *what)
{
    const struct tolerance t = {0, 1e-3 * sqrt((double)terms) + 1e-6};
    int64_t different = 0;
    for (int64_t i = 0; i < count; i++) {
        assert_near(got[i], want[i], t, what, i);
        different += got[i] != want[i];
    }
    if (different * 2 < count) fail_msg("%s: as if TF32 were not allowed", what);
}

static void check_gemm(int64_t m, int64_t n, int64_t k, int choice)
{
    struct pair p = {.a_count = m * k, .b_count = k * n, .c_count = m * n};
    char what[64];
    snprintf(what, sizeof what, "gemm %lldx%lldx%lld choice %d", (long long)m, (long long)n,
             (long long)k, choice);
    open_pair(&p);
    for (int i = 0; i < DEVICES; i++)
        p.d[i].kernels->gemm(&p.d[i], &(struct gemm){.transpose_a = choice & 1,
                                                     .transpose_b = choice & 2,
                                                     .add = choice & 4,
                                                     .m = m,
                                                     .n = n,
                                                     .k = k,
                                                     .a = p.a[i],
                                                     .b = p.b[i],
                                                     .c = p.c[i]});
    assert_tf32(p.c[EXACT], p.c[TF32], m * n, k, what);
    close_pair(&p);
}

/* Around the sizes of tiles, and of the blocks that a tensor core multiplies */
static void products_in_tf32_are_near_those_in_float32(void **state)
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

static struct pair open_convolution(struct conv2d_plan *plan[DEVICES])
{
    struct pair p = {.a_count = PIXELS * IN, .b_count = CELLS * IN * OUT, .c_count = PIXELS * OUT};
    open_pair(&p);
    for (int i = 0; i < DEVICES; i++)
        assert_int_equal(p.d[i].kernels->conv2d_open(&p.d[i], &shape, &plan[i]), OK);
    return p;
}

static void close_convolution(struct pair *p, struct conv2d_plan *plan[DEVICES])
{
    for (int i = 0; i < DEVICES; i++) p->d[i].kernels->conv2d_close(&p->d[i], plan[i]);
    close_pair(p);
}

static void convolutions_in_tf32_are_near_those_in_float32(void **state)
{
    struct conv2d_plan *plan[DEVICES];
    struct pair p = open_convolution(plan);
    for (int i = 0; i < DEVICES; i++)
        p.d[i].kernels->conv2d_forward(&p.d[i], plan[i], p.c[i], p.a[i], p.b[i], NULL, NULL,
                                       ACTIVATION_LINEAR, 0);
    assert_tf32(p.c[EXACT], p.c[TF32], p.c_count, CELLS * IN, "conv2d_forward");
    close_convolution(&p, plan);
}

static void gradients_in_tf32_are_near_those_in_float32(void **state)
{
    struct conv2d_plan *plan[DEVICES];
    struct pair p = open_convolution(plan);
    for (int i = 0; i < DEVICES; i++) {
        float *kernel = copy_floats(&p.d[i], p.b[i], p.b_count);
        p.d[i].kernels->conv2d_back_kernel(&p.d[i], plan[i], p.b[i], p.c[i], p.a[i], false);
        p.d[i].kernels->conv2d_back_data(&p.d[i], plan[i], p.a[i], p.c[i], kernel, true);
        free_floats(&p.d[i], kernel);
    }
    assert_tf32(p.b[EXACT], p.b[TF32], p.b_count, PIXELS, "conv2d_back_kernel");
    assert_tf32(p.a[EXACT], p.a[TF32], p.a_count, CELLS * OUT, "conv2d_back_data");
    close_convolution(&p, plan);
}

static void tf32_gives_the_same_bits_each_time(void **state)
{
    struct conv2d_plan *plan[DEVICES];
    struct pair p = open_convolution(plan);
    struct device *d = &p.d[TF32];
    float *first = new_floats(d, p.b_count);
    for (int i = 0; i < 3; i++) {
        d->kernels->conv2d_back_kernel(d, plan[TF32], p.b[TF32], p.c[TF32], p.a[TF32], false);
        if (i == 0) memcpy(first, p.b[TF32], (size_t)p.b_count * sizeof *first);
        assert_same_bits(p.b[TF32], first, p.b_count, "conv2d_back_kernel");
    }
    free_floats(d, first);
    close_convolution(&p, plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_in_tf32_are_near_those_in_float32),
        cmocka_unit_test(convolutions_in_tf32_are_near_those_in_float32),
        cmocka_unit_test(gradients_in_tf32_are_near_those_in_float32),
        cmocka_unit_test(tf32_gives_the_same_bits_each_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
