/* test_combine.c - rows of a table by ids and their gradients, in double. */
#include "tests/kernels/support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct shape {
    int64_t batch, places, rows, width;
};

/* One id and many, most of them more than once; more rows than ids; around the widths of registers;
 * nothing at all; threads, and rows that are wider than a GPU's block has them */
static const struct shape shapes[] = {
    {1, 1, 1, 1},   {7, 1, 5, 1},     {5, 3, 4, 17},      {33, 2, 1000, 8},   {0, 3, 5, 2},
    {64, 5, 9, 33}, {900, 4, 50, 31}, {300, 2, 20000, 5}, {2000, 20, 300, 1}, {20, 2, 30, 300}};
enum { SHAPES = sizeof shapes / sizeof *shapes };

/* From -1 to rows, of which the first and the last are none; seldom the later ones */
static int64_t *new_ids(struct device *d, const struct shape *s)
{
    const int64_t n = s->batch * s->places;
    int64_t *ids = (int64_t *)new_floats(d, 2 * n);
    float *draws = random_floats(d, n, 0, 1, 400);
    for (int64_t i = 0; i < n; i++)
        ids[i] = (int64_t)floorf((float)(s->rows + 2) * draws[i] * draws[i]) - 1;
    free_floats(d, draws);
    return ids;
}

static double weight_at(const struct combine *c, int64_t place)
{
    const double weight = c->weights ? c->weights[place] : 1;
    if (c->ids[place] < 0 || c->ids[place] >= c->rows) return 0;
    return c->combiner == COMBINER_SUM || weight > 0 ? weight : 0;
}

static double divisor(const struct combine *c, int64_t example)
{
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < c->places; i++) {
        const double weight = weight_at(c, example * c->places + i);
        sum += weight;
        squares += weight * weight;
    }
    const double all = c->combiner == COMBINER_MEAN ? sum : sqrt(squares);
    return c->combiner == COMBINER_SUM || all == 0 ? 1 : all;
}

/* to[k] += the term, and size[k] what it may be wrong by, of each place and each k: forward to
 * examples from rows, back the other way */
static void accumulate(const struct combine *c, const float *from, bool back, double *to,
                       double *size)
{
    for (int64_t place = 0; place < c->batch * c->places; place++) {
        const int64_t example = place / c->places;
        const double factor = weight_at(c, place) / divisor(c, example);
        if (factor == 0) continue;
        const int64_t write = (back ? c->ids[place] : example) * c->width;
        const int64_t read = (back ? example : c->ids[place]) * c->width;
        for (int64_t k = 0; k < c->width; k++) {
            to[write + k] += factor * from[read + k];
            size[write + k] += fabs(factor * from[read + k]);
        }
    }
}

/* before: NULL, or what the results were added to */
static void check(const struct combine *c, const float *from, bool back, const float *got,
                  const float *before)
{
    const int64_t n = (back ? c->rows : c->batch) * c->width;
    double *want = calloc((size_t)n + 1, sizeof *want), *size = calloc((size_t)n + 1, sizeof *size);
    assert_true(want && size);
    accumulate(c, from, back, want, size);
    for (int64_t i = 0; i < n; i++) {
        const double old = before ? before[i] : 0;
        const struct tolerance t = {0, 1e-6 + 1e-5 * (size[i] + fabs(old))};
        assert_near(got[i], old + want[i], t, back ? "rows_combine_back" : "rows_combine", i);
    }
    free(want);
    free(size);
}

static void check_both(struct device *d, const struct combine *c, bool add)
{
    float *table = random_floats(d, c->rows * c->width, -1, 1, 401);
    float *dtable = random_floats(d, c->rows * c->width, -1, 1, 402);
    float *y = random_floats(d, c->batch * c->width, -1, 1, 403);
    float *dy = random_floats(d, c->batch * c->width, -1, 1, 404);
    float *old_y = copy_floats(d, y, c->batch * c->width);
    float *old_dtable = copy_floats(d, dtable, c->rows * c->width);
    d->kernels->rows_combine(d, c, y, table, add);
    d->kernels->rows_combine_back(d, c, dtable, dy, add);
    assert_int_equal(d->kernels->synchronize(d), OK);
    check(c, table, false, y, add ? old_y : NULL);
    check(c, dy, true, dtable, add ? old_dtable : NULL);
    float *all[] = {table, dtable, y, dy, old_y, old_dtable};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) free_floats(d, all[i]);
}

static void check_shape(struct device *d, const struct shape *s)
{
    int64_t *ids = new_ids(d, s);
    float *weights = random_floats(d, s->batch * s->places, -0.5f, 2, 405);
    for (int combiner = COMBINER_SUM; combiner <= COMBINER_SQRTN; combiner++)
        for (int variant = 0; variant < 2; variant++) {
            const struct combine c = {s->batch,
                                      s->places,
                                      s->rows,
                                      s->width,
                                      (enum combiner)combiner,
                                      ids,
                                      variant ? weights : NULL};
            check_both(d, &c, (variant + combiner) % 2 == 0);
        }
    free_floats(d, weights);
    free_floats(d, (float *)ids);
}

static void each_shape(struct device *d)
{
    for (int i = 0; i < SHAPES; i++)
        if (is_feasible(d, shapes[i].batch * shapes[i].places)) check_shape(d, &shapes[i]);
}

static void rows_and_their_gradients_are_right(void **state)
{
    on_every_device(each_shape);
}

/* The gradient of one row from all of a batch, with one thread and with two */
static void check_order(struct device *d)
{
    enum { BATCH = 1000, ROWS = 3000, WIDTH = 20 };
    int64_t *ids = new_ids(d, &(struct shape){BATCH, 1, ROWS, WIDTH});
    float *dy = random_floats(d, BATCH * WIDTH, -1, 1, 406);
    float *one = new_floats(d, ROWS * WIDTH), *two = new_floats(d, ROWS * WIDTH);
    const struct combine c = {BATCH, 1, ROWS, WIDTH, COMBINER_SUM, ids, NULL};
    struct device alone = *d;
    alone.threads = 1;
    d->kernels->rows_combine_back(&alone, &c, one, dy, false);
    d->kernels->rows_combine_back(d, &c, two, dy, false);
    assert_int_equal(d->kernels->synchronize(d), OK);
    assert_same_bits(one, two, ROWS * WIDTH, "threads");
    free_floats(d, one);
    free_floats(d, two);
    free_floats(d, dy);
    free_floats(d, (float *)ids);
}

static void gradients_do_not_depend_on_threads(void **state)
{
    on_every_device(check_order);
}

static void check_mask(struct device *d)
{
    const struct shape s = {300, 7, 40, 1};
    int64_t *ids = new_ids(d, &s);
    float *y = random_floats(d, s.batch * s.places, 2, 3, 407);
    if (is_feasible(d, s.batch * s.places)) {
        d->kernels->ids_mask(d, y, ids, s.batch * s.places);
        assert_int_equal(d->kernels->synchronize(d), OK);
        for (int64_t i = 0; i < s.batch * s.places; i++) assert_true(y[i] == (ids[i] >= 0));
    }
    free_floats(d, y);
    free_floats(d, (float *)ids);
}

static void a_mask_is_1_where_there_is_an_id(void **state)
{
    on_every_device(check_mask);
}

static void check_count(struct device *d)
{
    const struct shape s = {300, 7, 40, 1};
    int64_t *ids = new_ids(d, &s);
    float *weights = random_floats(d, s.batch * s.places, -1, 2, 409);
    float *y = random_floats(d, s.batch * s.rows, 2, 3, 410);
    for (int weighs = 0; weighs < 2 && is_feasible(d, s.batch * s.rows); weighs++) {
        const struct combine c = {
            s.batch, s.places, s.rows, 1, COMBINER_SUM, ids, weighs ? weights : NULL};
        d->kernels->ids_count(d, &c, y);
        assert_int_equal(d->kernels->synchronize(d), OK);
        for (int64_t i = 0; i < s.batch * s.rows; i++) {
            float sum = 0;
            for (int64_t at = i / s.rows * s.places; at < (i / s.rows + 1) * s.places; at++)
                if (ids[at] == i % s.rows) sum += weighs ? weights[at] : 1;
            assert_true(y[i] == sum);
        }
    }
    free_floats(d, y);
    free_floats(d, weights);
    free_floats(d, (float *)ids);
}

static void ids_are_counted_with_their_weights(void **state)
{
    on_every_device(check_count);
}

/* Of blocks of three rows, and of a matrix that is part of a wider one */
static void check_same(struct device *d)
{
    enum { ROWS = 6, COLUMNS = 3, STEP = 5 };
    static const int64_t rows[ROWS] = {4, 7, -1, 2, 2, 9}, columns[ROWS] = {4, 4, -1, 9, 2, 2};
    int64_t *of_rows = new_ids(d, &(struct shape){ROWS, 1, 9, 1});
    int64_t *of_columns = new_ids(d, &(struct shape){ROWS, 1, 9, 1});
    float *y = random_floats(d, ROWS * STEP, 2, 3, 408);
    memcpy(of_rows, rows, sizeof rows);
    memcpy(of_columns, columns, sizeof columns);
    for (int spares = 0; spares < 2; spares++) {
        struct same_ids s = {ROWS, COLUMNS, 3, STEP, spares, 0, of_rows, of_columns, y};
        s.value = spares ? -5 : 5;
        d->kernels->same_ids(d, &s);
        assert_int_equal(d->kernels->synchronize(d), OK);
        for (int i = 0; i < ROWS * STEP; i++) {
            const int row = i / STEP, column = i % STEP;
            const int64_t id = column < COLUMNS ? columns[row / 3 * 3 + column] : 100;
            const bool is_own = spares && column == row % 3;
            const bool is_set = id < 0 || id == rows[row];
            if (is_set && !is_own) assert_true(y[i] == s.value);
            if (!is_set) assert_true(y[i] >= 2 && y[i] <= 3);
            if (is_set && is_own) assert_true(y[i] == 5);
        }
    }
    free_floats(d, y);
    free_floats(d, (float *)of_rows);
    free_floats(d, (float *)of_columns);
}

static void places_of_the_same_ids_are_set(void **state)
{
    on_every_device(check_same);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_and_their_gradients_are_right),
        cmocka_unit_test(gradients_do_not_depend_on_threads),
        cmocka_unit_test(a_mask_is_1_where_there_is_an_id),
        cmocka_unit_test(ids_are_counted_with_their_weights),
        cmocka_unit_test(places_of_the_same_ids_are_set),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
