/* test_row_area.c - where a worker and a ps find what they tell each other of rows, and that a ps
 * believes no front that does not fit. */
#include "tests/core/train/fixture.h"

#include <stdlib.h>
#include <string.h>

#include "core/train/variables/row_area.h"

enum { TABLES = 2 };

static const struct area_slice slices[TABLES] = {
    {.start = 10, .length = 90, .width = 3, .most = 8},
    {.start = 0, .length = 7, .width = 1, .most = 5},
};

struct world {
    struct arena arena;
    struct row_area area;
    struct area_counts counts, read;
    void *window;
};

static void open_world(struct world *w, int tables)
{
    *w = (struct world){0};
    row_area_open(tables, &w->arena, &w->area);
    for (int i = 0; i < tables; i++) assert_int_equal(row_area_add(&w->area, &slices[i]), OK);
    area_counts_open(&w->area, &w->arena, &w->counts);
    area_counts_open(&w->area, &w->arena, &w->read);
    w->window = aligned_alloc(AREA_ALIGN, w->area.bytes + AREA_ALIGN);
    assert_non_null(w->window);
    memset(w->window, 0, w->area.bytes);
}

static void close_world(struct world *w)
{
    free(w->window);
    arena_free(&w->arena);
}

static void count(struct world *w, const int64_t pushed[TABLES], const int64_t wanted[TABLES])
{
    memcpy(w->counts.pushed, pushed, TABLES * sizeof *pushed);
    memcpy(w->counts.wanted, wanted, TABLES * sizeof *wanted);
    area_counts_sum(&w->area, &w->counts);
    area_write_counts(&w->area, &w->counts, w->window);
}

static size_t read_front(struct world *w, size_t used)
{
    return (size_t)area_read_counts(&w->area, w->window, used, true, &w->read);
}

/* ---- where things lie ---- */

static void the_most_that_there_can_be_fits(void **state)
{
    static const int64_t most[TABLES] = {8, 5};
    struct world w;
    open_world(&w, TABLES);
    count(&w, most, most);
    assert_int_equal(w.area.rows, 8 + 5);
    assert_int_equal(w.area.floats, 8 * 3 + 5);
    assert_true(area_front_bytes(&w.area, &w.counts, true) <= w.area.front);
    assert_int_equal(w.area.front % AREA_ALIGN, 0);
    assert_true(w.area.bytes >= w.area.front + (8 * 3 + 5) * sizeof(float));
    assert_ptr_equal(area_rows(&w.area, w.window), (char *)w.window + w.area.front);
    close_world(&w);
}

/* Counts, ids, gradients: one behind the other, and none in another's place. */
static void what_is_told_lies_in_this_order(void **state)
{
    static const int64_t pushed[TABLES] = {2, 1}, wanted[TABLES] = {0, 4};
    struct world w;
    open_world(&w, TABLES);
    count(&w, pushed, wanted);
    assert_int_equal(w.counts.pushed_rows, 3);
    assert_int_equal(w.counts.pushed_floats, 2 * 3 + 1);
    assert_int_equal(w.counts.wanted_rows, 4);
    assert_int_equal(w.counts.wanted_floats, 4);
    int64_t *front = w.window;
    const int64_t told[] = {2, 1, 0, 4};
    assert_memory_equal(front, told, sizeof told);
    assert_ptr_equal(area_wanted_ids(&w.area, &w.counts, w.window), front + 4);
    const char *gradients = (char *)area_gradients(&w.area, &w.counts, w.window);
    assert_int_equal((gradients - (char *)w.window) % AREA_ALIGN, 0);
    assert_true(gradients >= (char *)(front + 4 + 4));
    assert_int_equal(area_front_bytes(&w.area, &w.counts, false),
                     (size_t)(gradients - (char *)w.window) + 7 * sizeof(float));
    const char *ids = (char *)area_pushed_ids(&w.area, &w.counts, w.window);
    assert_int_equal((ids - (char *)w.window) % AREA_ALIGN, 0);
    assert_true(ids >= gradients + 7 * sizeof(float));
    assert_int_equal(area_front_bytes(&w.area, &w.counts, true),
                     (size_t)(ids - (char *)w.window) + 3 * sizeof(int64_t));
    close_world(&w);
}

/* How often rows occurred, of the slices that count it, travels even where their ids do not. */
static void times_lie_between_gradients_and_ids(void **state)
{
    static const int64_t pushed[TABLES] = {2, 5}, wanted[TABLES] = {1, 4};
    for (int counting = 1; counting < 1 << TABLES; counting++) {
        struct world w = {0};
        int64_t counted = 0;
        row_area_open(TABLES, &w.arena, &w.area);
        for (int i = 0; i < TABLES; i++) {
            struct area_slice slice = slices[i];
            slice.counts = counting >> i & 1;
            counted += slice.counts ? pushed[i] : 0;
            assert_int_equal(row_area_add(&w.area, &slice), OK);
        }
        area_counts_open(&w.area, &w.arena, &w.counts);
        area_counts_open(&w.area, &w.arena, &w.read);
        w.window = calloc(1, w.area.bytes);
        count(&w, pushed, wanted);
        const char *begin = w.window;
        const char *gradients = (char *)area_gradients(&w.area, &w.counts, w.window);
        const char *times = (char *)area_times(&w.area, &w.counts, w.window);
        const char *ids = (char *)area_pushed_ids(&w.area, &w.counts, w.window);
        assert_true(times >= gradients + (2 * 3 + 5) * sizeof(float));
        assert_true(ids >= times + counted * (int64_t)sizeof(int64_t));
        const size_t brought = area_front_bytes(&w.area, &w.counts, false);
        assert_int_equal(brought, (size_t)(times - begin) + (size_t)counted * sizeof(int64_t));
        assert_int_equal(area_read_counts(&w.area, w.window, brought, false, &w.read), OK);
        assert_int_equal(read_front(&w, area_front_bytes(&w.area, &w.counts, true)), OK);
        assert_true(area_front_bytes(&w.area, &w.counts, true) <= w.area.front);
        close_world(&w);
    }
}

static void counts_arrive(void **state)
{
    static const int64_t cases[][2][TABLES] = {
        {{0, 0}, {0, 0}}, {{8, 5}, {8, 5}}, {{0, 5}, {8, 0}}, {{1, 0}, {0, 1}}};
    struct world w;
    open_world(&w, TABLES);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        count(&w, cases[i][0], cases[i][1]);
        assert_int_equal(read_front(&w, area_front_bytes(&w.area, &w.counts, true)), OK);
        assert_memory_equal(w.read.pushed, cases[i][0], sizeof cases[i][0]);
        assert_memory_equal(w.read.wanted, cases[i][1], sizeof cases[i][1]);
        assert_int_equal(w.read.pushed_rows, w.counts.pushed_rows);
        assert_int_equal(w.read.wanted_floats, w.counts.wanted_floats);
    }
    close_world(&w);
}

/* ---- what is refused ---- */

/* And nobody goes by counts that were refused. */
static void refuse(struct world *w, size_t used)
{
    static const int64_t none[TABLES];
    assert_int_equal(read_front(w, used), ERR_PROTOCOL);
    assert_memory_equal(w->read.pushed, none, sizeof none);
    assert_memory_equal(w->read.wanted, none, sizeof none);
    assert_int_equal(w->read.pushed_rows + w->read.wanted_rows, 0);
    assert_int_equal(w->read.pushed_floats + w->read.wanted_floats, 0);
}

static void counts_that_cannot_be_are_refused(void **state)
{
    static const int64_t bad[] = {-1, INT64_MIN, 9, INT64_C(1) << 40, INT64_MAX};
    struct world w;
    open_world(&w, TABLES);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        for (int at = 0; at < 2 * TABLES; at++) {
            count(&w, (int64_t[]){2, 2}, (int64_t[]){2, 2});
            const size_t used = area_front_bytes(&w.area, &w.counts, true);
            assert_int_equal(read_front(&w, used), OK);
            memcpy((int64_t *)w.window + at, &bad[i], sizeof *bad);
            refuse(&w, used);
        }
    close_world(&w);
}

static void bytes_that_are_not_what_the_counts_take_are_refused(void **state)
{
    struct world w;
    open_world(&w, TABLES);
    count(&w, (int64_t[]){2, 2}, (int64_t[]){2, 2});
    const size_t right = area_front_bytes(&w.area, &w.counts, true);
    const size_t wrong[] = {0,
                            1,
                            2 * TABLES * sizeof(int64_t) - 1,
                            right - 1,
                            right + 1,
                            right + sizeof(float),
                            w.area.front,
                            w.area.front + 1,
                            w.area.bytes,
                            SIZE_MAX};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) refuse(&w, wrong[i]);
    assert_int_equal(read_front(&w, right), OK);
    const size_t without = area_front_bytes(&w.area, &w.counts, false);
    assert_int_equal(area_read_counts(&w.area, w.window, without, false, &w.read), OK);
    assert_int_equal(w.read.pushed_rows, 4);
    assert_int_equal(area_read_counts(&w.area, w.window, right, false, &w.read), ERR_PROTOCOL);
    close_world(&w);
}

static void without_tables_there_is_no_window(void **state)
{
    struct world w;
    open_world(&w, 0);
    assert_int_equal(w.area.bytes, 0);
    assert_int_equal(w.area.front, 0);
    area_counts_sum(&w.area, &w.counts);
    assert_int_equal(area_front_bytes(&w.area, &w.counts, true), 0);
    assert_int_equal(read_front(&w, 0), OK);
    assert_int_equal(read_front(&w, 8), ERR_PROTOCOL);
    close_world(&w);
}

static void rows_that_take_too_much_are_an_error_of_the_input(void **state)
{
    struct arena arena = {0};
    struct row_area area;
    row_area_open(1, &arena, &area);
    assert_int_equal(
        row_area_add(&area, &(struct area_slice){.length = 1, .width = 1 << 20, .most = 1 << 26}),
        ERR_INPUT);
    arena_free(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_most_that_there_can_be_fits),
        cmocka_unit_test(what_is_told_lies_in_this_order),
        cmocka_unit_test(times_lie_between_gradients_and_ids),
        cmocka_unit_test(counts_arrive),
        cmocka_unit_test(counts_that_cannot_be_are_refused),
        cmocka_unit_test(bytes_that_are_not_what_the_counts_take_are_refused),
        cmocka_unit_test(without_tables_there_is_no_window),
        cmocka_unit_test(rows_that_take_too_much_are_an_error_of_the_input),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
