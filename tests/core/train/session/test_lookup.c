/* test_lookup.c - the different ids of a batch, and each one's place among them. */
#include "tests/core/train/fixture.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/random.h"
#include "core/train/session/lookup.h"

enum { CELLS = 200, ROUNDS = 63 };

static const int64_t LARGEST = (INT64_C(1) << 62) + 1;
static const struct lookup_order plain = {0};

/* Without a sort: how many ids are smaller, each counted once. */
static int64_t place_of(const int64_t *ids, int64_t cells, int64_t id)
{
    int64_t place = 0;
    for (int64_t i = 0; i < cells; i++) {
        bool is_new = ids[i] >= 0 && ids[i] < id;
        for (int64_t j = 0; j < i && is_new; j++) is_new = ids[j] != ids[i];
        place += is_new;
    }
    return place;
}

static void check_places(const struct lookup *l, const int64_t *ids, int64_t cells)
{
    for (int64_t i = 0; i < cells; i++) {
        const int64_t place = l->places[i];
        assert_true(place == (ids[i] < 0 ? -1 : place_of(ids, cells, ids[i])));
        if (place >= 0) assert_true(place < l->count && l->ids[place] == ids[i]);
    }
    for (int64_t i = cells; i < l->cells; i++) assert_true(l->places[i] == -1);
}

/* All are named by somebody: with check_places, there is none too many. */
static void check_ids(const struct lookup *l, const int64_t *ids, int64_t cells)
{
    assert_true(l->count == place_of(ids, cells, INT64_MAX));
    for (int64_t i = 1; i < l->count; i++) assert_true(l->ids[i - 1] < l->ids[i]);
    for (int64_t i = 0; i < l->count; i++) {
        assert_true(lookup_place(l, l->ids[i]) == i);
        assert_true(lookup_place(l, l->ids[i] + 1) == i + 1);
        int64_t times = 0;
        for (int64_t c = 0; c < cells; c++) times += ids[c] == l->ids[i];
        assert_true(l->times[i] == times);
    }
    assert_true(lookup_place(l, 0) == 0);
    assert_true(lookup_place(l, INT64_MAX) == l->count);
}

static void check(struct lookup *l, const int64_t *ids, int64_t cells)
{
    lookup_begin(l);
    lookup_add(l, ids, cells / 2, 0);
    lookup_add(l, ids + cells / 2, cells - cells / 2, cells / 2);
    lookup_find(l);
    check_places(l, ids, cells);
    check_ids(l, ids, cells);
}

static void ids_are_found_each_once_and_ascending(void **state)
{
    static const int64_t none[] = {-1, -1, -7, INT64_MIN}, one[] = {5}, first[] = {0, 0},
                         same[] = {9, 9, 9, 9}, descending[] = {7, 5, -1, 3, 5, 1},
                         large[] = {LARGEST, 1, LARGEST - 1, LARGEST, INT64_MAX - 1, -1};
    struct arena arena = {0};
    struct lookup l;
    lookup_open(6, plain, &arena, &l);
    check(&l, none, 4);
    assert_int_equal(l.count, 0);
    check(&l, none, 0);
    check(&l, one, 1);
    check(&l, first, 2);
    check(&l, same, 4);
    assert_int_equal(l.count, 1);
    check(&l, descending, 6);
    check(&l, large, 6);
    assert_int_equal(l.count, 4);
    arena_free(&arena);
}

static void a_batch_without_cells_has_no_ids(void **state)
{
    struct arena arena = {0};
    struct lookup l;
    lookup_open(0, plain, &arena, &l);
    check(&l, NULL, 0);
    arena_free(&arena);
}

/* Ids of so many bits: few, so that they come often, or up to 2^62. */
static int64_t draw_id(uint64_t key, int64_t i, int bits)
{
    const uint64_t drawn = random_u64(key, (uint64_t)i);
    return drawn % 8 == 0 ? -1 : (int64_t)(drawn >> (64 - bits));
}

/* One after the other in the same lookup: nothing is left of the batch before. */
static void ids_of_any_size_are_found(void **state)
{
    struct arena arena = {0};
    struct lookup l;
    int64_t ids[CELLS];
    lookup_open(CELLS, plain, &arena, &l);
    for (int round = 0; round < ROUNDS; round++) {
        const int bits = 1 + round % 62;
        const int64_t cells = (int64_t)(random_u64(1, (uint64_t)round) % (CELLS + 1));
        for (int64_t i = 0; i < cells; i++) ids[i] = draw_id((uint64_t)round + 2, i, bits);
        check(&l, ids, cells);
    }
    arena_free(&arena);
}

/* Ids 0 .. 7 by turns over three parts are 0 3 6, 1 4 7, 2 5. */
static void ids_that_go_to_parts_by_turns_are_in_the_order_of_these(void **state)
{
    static const int64_t ids[] = {7, 2, -1, 0, 7, 5, 6, 4}, rows[] = {0, 2, 4, 5, 6, 7},
                         places[] = {3, 4, -1, 0, 3, 5, 1, 2};
    struct arena arena = {0};
    struct lookup l;
    lookup_open(8, (struct lookup_order){.rows = 8, .mod = 3}, &arena, &l);
    lookup_begin(&l);
    lookup_add(&l, ids, 8, 0);
    lookup_find(&l);
    assert_int_equal(l.count, 6);
    assert_memory_equal(l.ids, rows, sizeof rows);
    assert_memory_equal(l.places, places, sizeof places);
    arena_free(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ids_are_found_each_once_and_ascending),
        cmocka_unit_test(a_batch_without_cells_has_no_ids),
        cmocka_unit_test(ids_that_go_to_parts_by_turns_are_in_the_order_of_these),
        cmocka_unit_test(ids_of_any_size_are_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
