/* test_gemm.c - products of every kind of shape against three loops in double. */
#include "tests/kernels/support.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

struct product {
    int64_t m, n, k;
};

/* Rows 1, columns 1, 3, 10, 17 and 1000, the shapes of the workloads cut down, and what lies just
 * before and behind the limits of our own kernels: on the CPU 16 columns, 8 rows, whole registers;
 * on a GPU quads, tiles of 128 rows by 32, 64 or 128 columns, and terms for several blocks; the
 * last two are among the smallest that a CPU does in bf16. */
static const struct product products[] = {
    {1, 1, 1},       {1, 10, 784},   {100, 10, 784},  {100, 10, 783}, {97, 1, 128},
    {1024, 1, 128},  {8, 3, 17},     {7, 3, 17},      {9, 16, 33},    {64, 17, 100},
    {784, 10, 100},  {65, 10, 7},    {129, 13, 50},   {127, 4, 1},    {63, 5, 19},
    {100, 1000, 17}, {3, 1000, 40},  {100, 64, 10},   {100, 128, 1},  {50, 100, 200},
    {130, 140, 150}, {2, 2, 4100},   {600, 10, 300},  {70, 16, 4090}, {5000, 8, 64},
    {17, 6, 15},     {128, 128, 32}, {132, 136, 36},  {64, 132, 20},  {65, 132, 20},
    {50, 132, 1000}, {36, 68, 260},  {100, 130, 165}, {65, 64, 512},
};

static double element(const struct gemm *g, int64_t row, int64_t column, double *ret_size)
{
    double sum = 0, size = 0;
    for (int64_t i = 0; i < g->k; i++) {
        double a = g->transpose_a ? g->a[i * g->m + row] : g->a[row * g->k + i];
        double b = g->transpose_b ? g->b[column * g->k + i] : g->b[i * g->n + column];
        sum += a * b;
        size += fabs(a * b);
    }
    *ret_size = size;
    return sum;
}

/* The error of a sum grows with the size of its terms, not with the sum. */
static void check_elements(const struct gemm *g, const float *before)
{
    char name[96];
    snprintf(name, sizeof name, "gemm %lldx%lldx%lld ta %d tb %d add %d", (long long)g->m,
             (long long)g->n, (long long)g->k, g->transpose_a, g->transpose_b, g->add);
    for (int64_t row = 0; row < g->m; row++)
        for (int64_t column = 0; column < g->n; column++) {
            int64_t at = row * g->n + column;
            double size, sum = element(g, row, column, &size);
            struct tolerance t = {2e-7, 1e-6 * (size + 1)};
            assert_near(g->c[at], sum + (g->add ? before[at] : 0), t, name, at);
        }
}

static void check_product(struct device *d, const struct product *p, int choice)
{
    struct gemm g = {.transpose_a = choice & 1,
                     .transpose_b = choice & 2,
                     .add = choice & 4,
                     .m = p->m,
                     .n = p->n,
                     .k = p->k};
    float *a = random_floats(d, p->m * p->k, -1, 1, 70);
    float *b = random_floats(d, p->k * p->n, -1, 1, 71);
    float *c = random_floats(d, p->m * p->n + 1, -1, 1, 72);
    float *before = copy_floats(d, c, p->m * p->n + 1),
          *again = copy_floats(d, before, p->m * p->n);
    g.a = a, g.b = b, g.c = c;
    d->kernels->gemm(d, &g);
    check_elements(&g, before);
    assert_true(c[p->m * p->n] == before[p->m * p->n]);

    g.c = again;
    d->kernels->gemm(d, &g);
    assert_same_bits(c, again, p->m * p->n, "a second gemm");
    free_floats(d, a);
    free_floats(d, b);
    free_floats(d, c);
    free_floats(d, before);
    free_floats(d, again);
}

static void each_product(struct device *d)
{
    enum { STEP = KERNELS_ARE_SLOW ? 3 : 1 }; /* then not all of each shape, but all of any */
    for (size_t i = 0; i < sizeof products / sizeof *products; i++)
        for (int choice = (int)i % STEP; choice < 8; choice += STEP)
            check_product(d, &products[i], choice);
}

static void products_are_right_in_every_orientation(void **state)
{
    on_every_device(each_product);
}

static void check_empty(struct device *d)
{
    float *x = random_floats(d, 100, -1, 1, 73), *c = random_floats(d, 100, -1, 1, 74);
    float *before = copy_floats(d, c, 100);
    d->kernels->gemm(d, &(struct gemm){.m = 0, .n = 10, .k = 10, .a = x, .b = x, .c = c});
    d->kernels->gemm(d, &(struct gemm){.m = 10, .n = 0, .k = 10, .a = x, .b = x, .c = c});
    d->kernels->gemm(d, &(struct gemm){.add = true, .m = 10, .n = 10, .a = x, .b = x, .c = c});
    assert_same_bits(c, before, 100, "c");
    d->kernels->gemm(d, &(struct gemm){.m = 10, .n = 10, .k = 0, .a = x, .b = x, .c = c});
    for (int i = 0; i < 100; i++) assert_true(c[i] == 0);
    free_floats(d, x);
    free_floats(d, c);
    free_floats(d, before);
}

static void products_of_nothing_are_zero(void **state)
{
    on_every_device(check_empty);
}

/* What stands behind a row (the next one) must not leak into it, even if it is not a number. */
static void check_neighbours(struct device *d)
{
    assert_spoilt_row_is_alone(d, 20, 10, 37);
}

static void a_row_that_is_not_a_number_spoils_itself_alone(void **state)
{
    on_every_device(check_neighbours);
}

/* What was told of, as it was then */
struct told {
    const struct gemm *g;
    float *rows;
    int64_t count;
    int times;
};

static void take_rows(const void *context, int64_t rows)
{
    struct told *told = (struct told *)context;
    const int64_t n = told->g->n;
    assert_in_range(rows, told->count, told->g->m);
    memcpy(told->rows + told->count * n, told->g->c + told->count * n,
           (size_t)((rows - told->count) * n) * sizeof(float));
    told->count = rows;
    told->times++;
}

/* Every one is large enough for bands, with a rest. */
static void check_bands(struct device *d)
{
    for (int choice = 0; choice < 8; choice += 5) { /* plain; of a transposed, added */
        struct gemm g = {.transpose_a = choice & 1,
                         .transpose_b = choice & 2,
                         .add = choice & 4,
                         .m = 1100,
                         .n = 1030,
                         .k = 3};
        float *a = random_floats(d, g.m * g.k, -1, 1, 77);
        float *b = random_floats(d, g.k * g.n, -1, 1, 78);
        float *c = random_floats(d, g.m * g.n, -1, 1, 79), *before = copy_floats(d, c, g.m * g.n);
        float *rows = new_floats(d, g.m * g.n);
        struct told told = {&g, rows, 0, 0};
        g.a = a, g.b = b, g.c = c, g.made = take_rows, g.context = &told;
        d->kernels->gemm(d, &g);
        check_elements(&g, before);
        if (!d->is_separate) {
            assert_int_equal(told.count, g.m);
            assert_same_bits(rows, c, g.m * g.n, "rows that were told of");
            assert_true(d->threads > 1 ? told.times == 1 : told.times > 1);
        }
        free_floats(d, a);
        free_floats(d, b);
        free_floats(d, c);
        free_floats(d, before);
        free_floats(d, rows);
    }
}

static void a_large_product_is_told_of_in_bands(void **state)
{
    on_every_device(check_bands);
}

/* By code of its own, ours and OpenBLAS's; and none at all. */
static void check_small(struct device *d)
{
    static const struct product few[] = {{20, 10, 30}, {40, 50, 60}, {40, 50, 0}};
    for (size_t i = 0; i < sizeof few / sizeof *few && !d->is_separate; i++) {
        struct gemm g = {.m = few[i].m, .n = few[i].n, .k = few[i].k};
        float *a = random_floats(d, g.m * g.k + 1, -1, 1, 80);
        float *b = random_floats(d, g.k * g.n + 1, -1, 1, 81);
        float *c = new_floats(d, g.m * g.n), *rows = new_floats(d, g.m * g.n);
        struct told told = {&g, rows, 0, 0};
        g.a = a, g.b = b, g.c = c, g.made = take_rows, g.context = &told;
        d->kernels->gemm(d, &g);
        assert_int_equal(told.times, 1);
        assert_int_equal(told.count, g.m);
        assert_same_bits(rows, c, g.m * g.n, "a small product");
        free_floats(d, a);
        free_floats(d, b);
        free_floats(d, c);
        free_floats(d, rows);
    }
}

static void a_small_product_is_told_of_when_it_is_done(void **state)
{
    on_every_device(check_small);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_are_right_in_every_orientation),
        cmocka_unit_test(products_of_nothing_are_zero),
        cmocka_unit_test(a_row_that_is_not_a_number_spoils_itself_alone),
        cmocka_unit_test(a_large_product_is_told_of_in_bands),
        cmocka_unit_test(a_small_product_is_told_of_when_it_is_done),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
