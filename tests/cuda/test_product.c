/* test_product.c - our own products and convolutions in float32, whose numbers are fetched by fours
 * where memory allows: the same bits however they are fetched. */
#include <string.h>

#include "tests/kernels/support.h"

static struct device open_gpu(void)
{
    struct device d;
    const struct gpu_options options = {.is_watched = true, .is_bare = true};
    if (device_open_gpu(&options, &d)) fail_msg("%s", error_text());
    return d;
}

static void close_gpu(struct device *d)
{
    assert_int_equal(d->kernels->synchronize(d), OK);
    device_close(d);
}

/* Numbers that begin `by` floats behind where memory does, which is a multiple of 16 bytes */
struct shifted {
    float *memory, *numbers;
    int64_t count;
};

static struct shifted shifted(struct device *d, int64_t count, int by, uint64_t seed)
{
    struct shifted s = {new_floats(d, count + by), NULL, count};
    float *plain = random_floats(d, count, -1, 1, seed);
    s.numbers = s.memory + by;
    memcpy(s.numbers, plain, (size_t)count * sizeof *plain);
    free_floats(d, plain);
    return s;
}

enum { OPERANDS = 3 }; /* of a product: both, and the result */

/* What is done to a device's operands */
typedef void run_body(struct device *, const void *what, float *const operands[OPERANDS]);

/* The last operand, after its run with the one of that index (-1: none) shifted by one float */
static struct shifted result_of(struct device *d, run_body *run, const void *what,
                                const int64_t counts[OPERANDS], int moved)
{
    struct shifted s[OPERANDS];
    float *operands[OPERANDS];
    for (int i = 0; i < OPERANDS; i++) {
        s[i] = shifted(d, counts[i], i == moved, (uint64_t)i);
        operands[i] = s[i].numbers;
    }
    run(d, what, operands);
    for (int i = 0; i < OPERANDS - 1; i++) free_floats(d, s[i].memory);
    return s[OPERANDS - 1];
}

static void assert_same_however_fetched(struct device *d, run_body *run, const void *what,
                                        const int64_t counts[OPERANDS])
{
    const struct shifted by_quads = result_of(d, run, what, counts, -1);
    for (int moved = -1; moved < OPERANDS; moved++) {
        const struct shifted other = result_of(d, run, what, counts, moved);
        assert_same_bits(by_quads.numbers, other.numbers, other.count, "a shifted operand");
        free_floats(d, other.memory);
    }
    free_floats(d, by_quads.memory);
}

static void run_gemm(struct device *d, const void *what, float *const operands[OPERANDS])
{
    struct gemm g = *(const struct gemm *)what;
    g.a = operands[0], g.b = operands[1], g.c = operands[2];
    d->kernels->gemm(d, &g);
}

/* All dimensions are whole quads. The last are shared out in slices, the first of these turned. */
static void products_have_the_same_bits_however_their_operands_are_fetched(void **state)
{
    static const int64_t sizes[][3] = {
        {8, 12, 20}, {64, 64, 36}, {132, 136, 40}, {48, 132, 520}, {128, 8, 264}};
    struct device d = open_gpu();
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int choice = 0; choice < 8; choice++) {
            const struct gemm g = {.transpose_a = choice & 1,
                                   .transpose_b = choice & 2,
                                   .add = choice & 4,
                                   .m = sizes[i][0],
                                   .n = sizes[i][1],
                                   .k = sizes[i][2]};
            const int64_t counts[] = {g.m * g.k, g.k * g.n, g.m * g.n};
            assert_same_however_fetched(&d, run_gemm, &g, counts);
        }
    close_gpu(&d);
}

/* A convolution; operands: x, kernel, y, in the order that ends with what is written */
static void run_forward(struct device *d, const void *what, float *const operands[OPERANDS])
{
    struct conv2d_plan *plan;
    assert_int_equal(d->kernels->conv2d_open(d, what, &plan), OK);
    d->kernels->conv2d_forward(d, plan, operands[2], operands[0], operands[1], NULL, NULL,
                               ACTIVATION_RELU, 0);
    d->kernels->conv2d_close(d, plan);
}

static void run_back_data(struct device *d, const void *what, float *const operands[OPERANDS])
{
    struct conv2d_plan *plan;
    assert_int_equal(d->kernels->conv2d_open(d, what, &plan), OK);
    d->kernels->conv2d_back_data(d, plan, operands[2], operands[0], operands[1], true);
    d->kernels->conv2d_close(d, plan);
}

static void run_back_kernel(struct device *d, const void *what, float *const operands[OPERANDS])
{
    struct conv2d_plan *plan;
    assert_int_equal(d->kernels->conv2d_open(d, what, &plan), OK);
    d->kernels->conv2d_back_kernel(d, plan, operands[2], operands[0], operands[1], true);
    d->kernels->conv2d_close(d, plan);
}

/* Strides, dilation and padding that is not the same on both sides; channels of one tile, of
 * several, and so many that the terms are shared out */
static void convolutions_have_the_same_bits_however_their_operands_are_fetched(void **state)
{
    static const struct conv2d shapes[] = {
        {{2, 9, 7, 5, 7, 3, 3, 2, 1, 1, 1, 1, 1, 1, 1}, 4, 12},
        {{1, 8, 6, 6, 6, 3, 3, 1, 1, 2, 1, 2, 1, 0, 1}, 68, 8},
        {{2, 4, 5, 4, 5, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0}, 8, 132},
    };
    struct device d = open_gpu();
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        const struct conv2d *c = &shapes[i];
        const struct window2d *w = &c->window;
        const int64_t x = w->batch * w->in_y * w->in_x * c->in_channels;
        const int64_t y = w->batch * w->out_y * w->out_x * c->out_channels;
        const int64_t kernel = w->kernel_y * w->kernel_x * c->in_channels * c->out_channels;
        assert_same_however_fetched(&d, run_forward, c, (const int64_t[]){x, kernel, y});
        assert_same_however_fetched(&d, run_back_data, c, (const int64_t[]){y, kernel, x});
        assert_same_however_fetched(&d, run_back_kernel, c, (const int64_t[]){y, x, kernel});
    }
    close_gpu(&d);
}

/* So few results that their terms are shared out among blocks, and what they were is added to. */
static void slices_are_added_to_what_was_there(void **state)
{
    enum { M = 3, N = 5, K = 4096 };
    struct device d = open_gpu();
    float *a = new_floats(&d, M * K), *b = new_floats(&d, K * N), *c = new_floats(&d, M * N);
    for (int i = 0; i < M * K; i++) a[i] = 1;
    for (int i = 0; i < K * N; i++) b[i] = 0.5f;
    for (int i = 0; i < M * N; i++) c[i] = (float)i;
    const struct gemm g = {.add = true, .m = M, .n = N, .k = K, .a = a, .b = b, .c = c};
    d.kernels->gemm(&d, &g);
    for (int i = 0; i < M * N; i++) assert_true(c[i] == (float)i + K / 2);
    free_floats(&d, a);
    free_floats(&d, b);
    free_floats(&d, c);
    close_gpu(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_have_the_same_bits_however_their_operands_are_fetched),
        cmocka_unit_test(convolutions_have_the_same_bits_however_their_operands_are_fetched),
        cmocka_unit_test(slices_are_added_to_what_was_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
