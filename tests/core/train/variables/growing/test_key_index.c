/* test_key_index.c - keys of growing tables, what is known of them, and what gathers found. */
#include "tests/core/train/fixture.h"

#include <stdlib.h>

#include "core/base/random.h"
#include "core/train/variables/growing/found.h"
#include "core/train/variables/growing/key_index.h"
#include "core/train/variables/growing/keys.h"

static void every_id_has_a_key_of_its_own(void **state)
{
    const int64_t some[] = {0, 1, 2, 1 << 20, INT64_C(1) << 62, ANY_ID - 2, ANY_ID - 1};
    for (size_t i = 0; i < sizeof some / sizeof some[0]; i++) {
        const int64_t key = key_of_id(some[i]);
        assert_true(key >= 0 && key < KEYS);
        assert_int_equal(id_of_key(key), some[i]);
    }
    for (uint64_t i = 0; i < 100000; i++) {
        const int64_t id = (int64_t)(random_mix(i) % (uint64_t)ANY_ID);
        assert_int_equal(id_of_key(key_of_id(id)), id);
        assert_int_equal(key_of_id(id_of_key(id)), id);
    }
    (void)state;
}

static void check_index(const struct key_index *x, int64_t count)
{
    int64_t from = 0, found = 0;
    struct key_place place;
    struct entry next, same;
    for (; key_index_from(x, from, &next); from = next.key + 1, found++) {
        assert_true(next.key >= from);
        assert_true(key_index_find(x, next.key, &place, &same));
        assert_int_equal(same.state, next.state);
        assert_int_equal(same.period, next.period);
    }
    assert_int_equal(found, count);
    assert_int_equal(x->count, count);
}

static void add_key(struct key_index *x, int64_t key)
{
    struct key_place place;
    struct entry entry;
    assert_false(key_index_find(x, key, &place, &entry));
    if (key_index_is_full(x)) assert_int_equal(key_index_make_room(x, false), OK);
    entry = (struct entry){.key = key, .state = ENTRY_SEEN};
    assert_int_equal(key_index_add(x, &entry, &place), OK);
    entry.state = (uint32_t)(key & 0xffff);
    entry.period = (uint8_t)key;
    assert_int_equal(key_index_set(x, &place, &entry), OK);
}

static uint32_t state_of(const struct key_index *x, int64_t key)
{
    struct key_place place;
    struct entry entry;
    assert_true(key_index_find(x, key, &place, &entry));
    assert_int_equal(entry.period, (uint8_t)key);
    return entry.state;
}

static void set_state(struct key_index *x, int64_t key, uint32_t state)
{
    struct key_place place;
    struct entry entry;
    assert_true(key_index_find(x, key, &place, &entry));
    entry.state = state;
    assert_int_equal(key_index_set(x, &place, &entry), OK);
}

static void an_index_is_in_the_order_of_its_keys(void **state)
{
    enum { COUNT = 50000 };
    struct key_index x;
    struct key_place place;
    struct entry entry;
    assert_int_equal(key_index_open(0, KEYS, &x), OK);
    for (int64_t i = 0; i < COUNT; i++) add_key(&x, key_of_id(i));
    check_index(&x, COUNT);
    assert_true(x.crowd.count > 0);
    assert_true(key_index_bytes(&x) <= (size_t)INDEX_ROW_BYTES * COUNT + (64 << 10));
    for (int64_t i = 0; i < COUNT; i++)
        assert_int_equal(state_of(&x, key_of_id(i)), key_of_id(i) & 0xffff);
    assert_false(key_index_find(&x, key_of_id(COUNT), &place, &entry));
    key_index_close(&x);
    (void)state;
}

/* Sights and numbers of any size, of which few fit in a line of a small index */
static void what_is_known_of_a_key_may_be_any_number(void **state)
{
    enum { COUNT = 1000 };
    static const uint32_t most = ENTRY_SEEN - 1;
    struct key_index x;
    assert_int_equal(key_index_open(KEYS / 2, KEYS / 2, &x), OK);
    for (int64_t i = 0; i < COUNT; i++) add_key(&x, KEYS / 2 + key_of_id(i) / 2);
    for (int64_t i = 0; i < COUNT; i++)
        set_state(&x, KEYS / 2 + key_of_id(i) / 2, i % 2 ? most - (uint32_t)i : ENTRY_SEEN | most);
    for (int again = 0; again < 2; again++) {
        for (int64_t i = 0; i < COUNT; i++)
            assert_int_equal(state_of(&x, KEYS / 2 + key_of_id(i) / 2),
                             i % 2 ? most - (uint32_t)i : ENTRY_SEEN | most);
        assert_int_equal(key_index_make_room(&x, false), OK);
    }
    key_index_close(&x);
    (void)state;
}

/* What whoever knows how keys are spread could send */
static void keys_that_crowd_at_the_end_find_a_place(void **state)
{
    enum { COUNT = 5000 };
    struct key_index x;
    assert_int_equal(key_index_open(0, KEYS, &x), OK);
    for (int64_t i = 1; i <= COUNT; i++) add_key(&x, KEYS - i);
    check_index(&x, COUNT);
    key_index_close(&x);
    (void)state;
}

static void what_is_not_seen_goes_where_it_may(void **state)
{
    enum { COUNT = 3000 };
    struct key_index x;
    assert_int_equal(key_index_open(0, KEYS, &x), OK);
    for (int64_t i = 0; i < COUNT; i++) {
        const int64_t key = key_of_id(i);
        add_key(&x, key);
        if (i % 2) set_state(&x, key, ENTRY_SEEN);
    }
    assert_int_equal(key_index_make_room(&x, true), OK);
    check_index(&x, COUNT / 2);
    key_index_close(&x);
    (void)state;
}

/* Places between a key's own and where it lies, at most: what looking it up and adding walk over */
static int64_t longest_walk(const struct crowd *x)
{
    int64_t longest = 0;
    for (int64_t i = 0; i < x->end; i++) {
        if (!x->at[i].mark) continue;
        const int64_t walk = i - crowd_home(x, x->at[i].mark - 1);
        if (walk > longest) longest = walk;
    }
    return longest;
}

static int by_key(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* As a checkpoint has them, and a large push */
static void keys_in_their_order_take_no_longer_the_more_there_are(void **state)
{
    enum { BEFORE = 5000, COUNT = 200000, LOOK = 4000, WALK_MAX = 200 };
    int64_t *keys = malloc(COUNT * sizeof *keys);
    struct key_index x;
    assert_non_null(keys);
    assert_int_equal(key_index_open(0, KEYS, &x), OK);
    for (int64_t i = 0; i < BEFORE; i++) add_key(&x, key_of_id(COUNT + i));
    for (int64_t i = 0; i < COUNT; i++) keys[i] = key_of_id(i);
    qsort(keys, COUNT, sizeof *keys, by_key);
    assert_int_equal(key_index_reserve(&x, COUNT, true), OK);
    const int64_t lines = x.line_count, homes = x.crowd.homes;
    for (int64_t i = 0; i < COUNT; i++) {
        add_key(&x, keys[i]);
        if (i % LOOK == 0) assert_in_range(longest_walk(&x.crowd), 0, WALK_MAX);
    }
    assert_int_equal(x.line_count, lines); /* nothing was made once more on the way */
    assert_int_equal(x.crowd.homes, homes);
    check_index(&x, BEFORE + COUNT);
    key_index_close(&x);
    free(keys);
    (void)state;
}

/* ---- what gathers found ---- */

static void find(struct found *f, const int64_t *keys, int64_t count, int64_t number)
{
    int64_t *numbers = found_begin(f, keys, count);
    assert_non_null(numbers);
    for (int64_t i = 0; i < count; i++) numbers[i] = number + i;
}

static void assert_taken(struct found *f, const int64_t *keys, int64_t count, const int64_t *wanted)
{
    int64_t numbers[8];
    bool is_all = true;
    for (int64_t i = 0; i < count; i++) is_all = is_all && wanted[i] >= 0;
    assert_int_equal(found_take(f, keys, count, numbers), is_all);
    for (int64_t i = 0; i < count; i++) assert_int_equal(numbers[i], wanted[i]);
}

static void what_a_gather_found_is_for_one_update_of_the_same_keys(void **state)
{
    const int64_t some[] = {2, 5, 9}, others[] = {2, 6, 9}, none[] = {-1, -1, -1};
    struct found f = {0};
    find(&f, some, 3, 10);
    find(&f, others, 3, 20);
    find(&f, some, 3, 30);
    assert_taken(&f, some, 2, none);
    assert_taken(&f, some, 3, (int64_t[]){30, 31, 32});
    assert_taken(&f, some, 3, (int64_t[]){10, 11, 12});
    assert_taken(&f, some, 3, none);
    for (int i = 0; i < GATHERS_MAX; i++) find(&f, some, 3, 40 + i);
    assert_taken(&f, others, 3, none); /* the oldest went */
    found_forget(&f);
    assert_taken(&f, some, 3, none);
    found_close(&f);
    (void)state;
}

static void an_update_of_several_takes_what_each_of_them_found(void **state)
{
    const int64_t one[] = {2, 5, 9}, two[] = {1, 5}, next[] = {3, 7}, all[] = {1, 2, 5, 6, 9};
    struct found f = {0};
    find(&f, one, 3, 10);
    find(&f, next, 2, 20);
    find(&f, two, 2, 11);
    f.at[2].numbers[1] = 11; /* of key 5, as in the other */
    assert_taken(&f, all, 5, (int64_t[]){11, 10, 11, -1, 12});
    assert_taken(&f, all, 5, (int64_t[]){-1, -1, -1, -1, -1});
    assert_taken(&f, next, 2, (int64_t[]){20, 21});
    found_close(&f);
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_id_has_a_key_of_its_own),
        cmocka_unit_test(an_index_is_in_the_order_of_its_keys),
        cmocka_unit_test(what_is_known_of_a_key_may_be_any_number),
        cmocka_unit_test(keys_that_crowd_at_the_end_find_a_place),
        cmocka_unit_test(what_is_not_seen_goes_where_it_may),
        cmocka_unit_test(keys_in_their_order_take_no_longer_the_more_there_are),
        cmocka_unit_test(what_a_gather_found_is_for_one_update_of_the_same_keys),
        cmocka_unit_test(an_update_of_several_takes_what_each_of_them_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
