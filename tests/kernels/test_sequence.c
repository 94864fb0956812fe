/* test_sequence.c - attention, layer normalization and products of many matrices, in double. (What
 * recurrent cells compute is compared with TensorFlow's, and their gradients with differences, by
 * the tests of ops.) */
#include "tests/kernels/support.h"

#include <math.h>
#include <stdlib.h>

/* Queries, keys, heads, widths: one of all, beside the width of a tile, and more */
static const struct attention shapes[] = {
    {.batch = 1, .heads = 1, .queries = 1, .keys = 1, .width = 1},
    {.batch = 3, .heads = 2, .queries = 5, .keys = 64, .width = 17},
    {.batch = 2, .heads = 3, .queries = 65, .keys = 65, .width = 8, .is_causal = true},
    {.batch = 1, .heads = 2, .queries = 130, .keys = 130, .width = 33, .is_causal = true},
    {.batch = 2, .heads = 1, .queries = 2, .keys = 200, .width = 256},
};

static bool sees(const struct attention *a, int64_t example, int64_t query, int64_t key)
{
    return (!a->is_causal || key <= query) && (!a->mask || a->mask[example * a->keys + key] > 0);
}

static int64_t row_of(const struct attention *a, int64_t rows, int64_t example, int64_t i,
                      int64_t head)
{
    return ((example * rows + i) * a->heads + head) * a->width;
}

static double dot(const float *x, const float *y, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += (double)x[i] * y[i];
    return sum;
}

/* The share that each key has of a query */
static void find_shares(const struct attention *a, int64_t example, int64_t query, int64_t head,
                        double *ret)
{
    const float *q = a->q + row_of(a, a->queries, example, query, head);
    double sum = 0;
    for (int64_t j = 0; j < a->keys; j++) {
        const float *k = a->k + row_of(a, a->keys, example, j, head);
        ret[j] = sees(a, example, query, j) ? exp(a->scale * dot(q, k, a->width)) : 0;
        sum += ret[j];
    }
    for (int64_t j = 0; j < a->keys; j++) ret[j] = sum > 0 ? ret[j] / sum : 0;
}

struct wanted {
    double *y, *dq, *dk, *dv;
};

static void want_query(const struct attention *a, int64_t example, int64_t query, int64_t head,
                       const double *share, struct wanted *w)
{
    const int64_t own = row_of(a, a->queries, example, query, head);
    double taken = 0;
    for (int64_t j = 0; j < a->keys; j++) {
        const int64_t at = row_of(a, a->keys, example, j, head);
        for (int64_t c = 0; c < a->width; c++) {
            w->y[own + c] += share[j] * a->v[at + c];
            w->dv[at + c] += share[j] * a->dy[own + c];
        }
        taken += share[j] * dot(a->dy + own, a->v + at, a->width);
    }
    for (int64_t j = 0; j < a->keys; j++) {
        const int64_t at = row_of(a, a->keys, example, j, head);
        const double slope = a->scale * share[j] * (dot(a->dy + own, a->v + at, a->width) - taken);
        for (int64_t c = 0; c < a->width; c++) {
            w->dq[own + c] += slope * a->k[at + c];
            w->dk[at + c] += slope * a->q[own + c];
        }
    }
}

static void check_all(const float *got, const double *want, double before, int64_t n,
                      const char *what)
{
    const struct tolerance t = {2e-5, 2e-5};
    for (int64_t i = 0; i < n; i++) assert_near(got[i], want[i] + before, t, what, i);
}

static double *new_doubles(int64_t n)
{
    double *x = calloc((size_t)n, sizeof *x);
    assert_non_null(x);
    return x;
}

static void check_attention(struct device *d, const struct attention *shape, bool is_masked)
{
    struct attention a = *shape;
    const int64_t queries = a.batch * a.queries * a.heads * a.width;
    const int64_t keys = a.batch * a.keys * a.heads * a.width, rows = a.batch * a.heads * a.queries;
    float *q = random_floats(d, queries, -1, 1, 1), *k = random_floats(d, keys, -1, 1, 2);
    float *v = random_floats(d, keys, -1, 1, 3), *dy = random_floats(d, queries, -1, 1, 4);
    float *mask = random_floats(d, a.batch * a.keys, -1, 1, 5), *out = new_floats(d, queries);
    float *sums = new_floats(d, rows), *deltas = new_floats(d, rows);
    float *dq = new_floats(d, queries), *dk = new_floats(d, keys), *dv = new_floats(d, keys);
    for (int64_t i = 0; i < a.batch * a.keys; i++) mask[i] = i >= a.keys && mask[i] > 0;
    for (int64_t i = 0; i < keys; i++) dk[i] = 1; /* which is added to */
    struct wanted w = {new_doubles(queries), new_doubles(queries), new_doubles(keys),
                       new_doubles(keys)};
    double *share = new_doubles(a.keys);
    a = (struct attention){a.batch,
                           a.heads,
                           a.queries,
                           a.keys,
                           a.width,
                           0.4f,
                           a.is_causal,
                           .q = q,
                           .k = k,
                           .v = v,
                           .mask = is_masked ? mask : NULL,
                           .y = out,
                           .log_sums = sums,
                           .deltas = deltas,
                           .dy = dy,
                           .dq = dq,
                           .dk = dk,
                           .dv = dv,
                           .add_k = true};
    d->kernels->attention(d, &a);
    d->kernels->attention_back_queries(d, &a);
    d->kernels->attention_back_keys(d, &a);
    assert_int_equal(d->kernels->synchronize(d), OK);
    for (int64_t i = 0; i < rows; i++) {
        const int64_t query = i % a.queries, head = i / a.queries % a.heads;
        find_shares(&a, i / a.queries / a.heads, query, head, share);
        want_query(&a, i / a.queries / a.heads, query, head, share, &w);
    }
    check_all(out, w.y, 0, queries, "attention");
    check_all(dq, w.dq, 0, queries, "gradient of queries");
    check_all(dk, w.dk, 1, keys, "gradient of keys");
    check_all(dv, w.dv, 0, keys, "gradient of values");
    float *all[] = {q, k, v, dy, mask, out, sums, deltas, dq, dk, dv};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) free_floats(d, all[i]);
    double *wanted[] = {w.y, w.dq, w.dk, w.dv, share};
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) free(wanted[i]);
}

static void each_attention(struct device *d)
{
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int is_masked = 0; is_masked < 2; is_masked++)
            if (is_feasible(d, shapes[i].queries * shapes[i].keys * shapes[i].width))
                check_attention(d, &shapes[i], is_masked);
}

static void attention_is_right_and_so_are_its_gradients(void **state)
{
    on_every_device(each_attention);
}

static void check_norm(struct device *d, int64_t rows, int64_t columns)
{
    const int64_t n = rows * columns;
    float *x = random_floats(d, n, -1, 3, 1), *gamma = random_floats(d, columns, -1, 1, 2);
    float *beta = random_floats(d, columns, -1, 1, 3), *y = new_floats(d, n);
    float *normal = new_floats(d, n), *inverse = new_floats(d, rows);
    d->kernels->layer_norm(
        d, &(struct layer_norm){rows, columns, 0.01f, x, gamma, beta, y, normal, inverse});
    assert_int_equal(d->kernels->synchronize(d), OK);
    for (int64_t row = 0; row < rows; row++) {
        double mean = 0, variance = 0;
        for (int64_t i = 0; i < columns; i++) mean += x[row * columns + i] / (double)columns;
        for (int64_t i = 0; i < columns; i++)
            variance += pow(x[row * columns + i] - mean, 2) / (double)columns;
        for (int64_t i = 0; i < columns; i++) {
            const double hat = (x[row * columns + i] - mean) / sqrt(variance + 0.01);
            const struct tolerance t = {1e-5, 1e-5};
            assert_near(y[row * columns + i], hat * gamma[i] + beta[i], t, "layer_norm", i);
        }
    }
    float *all[] = {x, gamma, beta, y, normal, inverse};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) free_floats(d, all[i]);
}

static void each_norm(struct device *d)
{
    static const int64_t columns[] = {1, 5, 16, 33, 128, 700};
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++)
        if (is_feasible(d, 37 * columns[i])) check_norm(d, 37, columns[i]);
}

static void rows_have_mean_0_and_deviation_1(void **state)
{
    on_every_device(each_norm);
}

/* Each way to turn them; small ones and, beside them, large ones */
static void check_products(struct device *d, int64_t m, int64_t n, int64_t k, int turns)
{
    enum { COUNT = 5 };
    float *a = random_floats(d, COUNT * m * k, -1, 1, 1),
          *b = random_floats(d, COUNT * k * n, -1, 1, 2);
    float *c = random_floats(d, COUNT * m * n, -1, 1, 3), *one = copy_floats(d, c, COUNT * m * n);
    struct gemm g = {turns & 1, turns & 2, turns & 4, m, n, k, a, b, c};
    d->kernels->gemm_each(d, &g, COUNT);
    assert_int_equal(d->kernels->synchronize(d), OK);
    for (int64_t i = 0; i < COUNT * m * n; i++) {
        const int64_t p = i / (m * n), y = i / n % m, x = i % n;
        double want = g.add ? one[i] : 0;
        for (int64_t j = 0; j < k; j++)
            want += (double)a[p * m * k + (g.transpose_a ? j * m + y : y * k + j)] *
                    b[p * k * n + (g.transpose_b ? x * k + j : j * n + x)];
        assert_near(c[i], want, (struct tolerance){1e-5, 1e-4}, "gemm_each", i);
    }
    float *all[] = {a, b, c, one};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) free_floats(d, all[i]);
}

static void each_product(struct device *d)
{
    for (int turns = 0; turns < 8; turns++) {
        check_products(d, 3, 5, 7, turns);
        check_products(d, 1, 4, 9, turns);
        if (is_feasible(d, 5 * 104 * 104 * 104)) check_products(d, 104, 104, 104, turns);
    }
}

static void many_products_are_those_of_each(void **state)
{
    on_every_device(each_product);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(attention_is_right_and_so_are_its_gradients),
        cmocka_unit_test(rows_have_mean_0_and_deviation_1),
        cmocka_unit_test(many_products_are_those_of_each),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
