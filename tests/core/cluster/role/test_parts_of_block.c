/* test_parts_of_block.c - sets of parts of a block, for blocks of all sizes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include "core/cluster/role/parts.h"

#include <cmocka.h> /* last: it has a macro named fail */

enum { ALIGN = 16 };

static const int64_t blocks[] = {ALIGN,           4 << 10,           (4 << 10) + ALIGN,
                                 12 << 10,        1 << 18,           (1 << 18) + ALIGN,
                                 4 << 20,         (4 << 20) + ALIGN, 25000000 / ALIGN *ALIGN,
                                 (int64_t)1 << 38};
enum { BLOCKS = sizeof blocks / sizeof *blocks };

static int count_of(uint64_t set)
{
    return __builtin_popcountll(set);
}

static void all_parts_are_the_block(void **state)
{
    for (int i = 0; i < BLOCKS; i++) {
        const struct parts p = parts_of(blocks[i]);
        uint64_t all = parts_all(&p);
        int64_t floats = 0;
        assert_int_equal(p.part % ALIGN, 0);
        assert_in_range(count_of(all), 1, PARTS_MAX);
        assert_int_equal(parts_in(&p, (struct range){0, p.block}), all);
        for (int64_t end = p.block; all;) {
            uint64_t last = parts_last(all);
            all &= ~last;
            const struct range s = parts_take_last(&p, &last);
            assert_int_equal(s.end, end);
            assert_int_equal(count_of(parts_in(&p, s)), 1);
            assert_int_equal(parts_before(&p, s.begin), all);
            end = s.begin;
            floats += range_count(s);
        }
        assert_int_equal(floats, p.block);
    }
}

static void large_blocks_have_as_many_parts_as_there_can_be(void **state)
{
    const struct parts large = parts_of((int64_t)1 << 38), small = parts_of(12 << 10);
    const struct parts middle = parts_of(1 << 19), none = parts_of(0);
    assert_int_equal(count_of(parts_all(&large)), PARTS_MAX);
    assert_int_equal(count_of(parts_all(&middle)), 16);
    assert_int_equal(count_of(parts_all(&small)), 3);
    assert_int_equal(parts_all(&none), 0);
    assert_int_equal(parts_in(&none, (struct range){0, 0}), 0);
    assert_int_equal(parts_in(&none, (struct range){0, 16}), 0);
}

static void what_is_no_part_is_in_no_set(void **state)
{
    const struct parts p = parts_of(25 << 10);
    const struct range wrong[] = {{0, 0},
                                  {ALIGN, p.part + ALIGN},
                                  {0, p.part - ALIGN},
                                  {0, p.part + ALIGN},
                                  {p.block, p.block + p.part},
                                  {0, p.block + p.part},
                                  {0, INT64_MAX},
                                  {-1, 0},
                                  {-p.part, p.part},
                                  {INT64_MIN, INT64_MAX},
                                  {INT64_MAX, INT64_MIN},
                                  {p.part, 0}};
    for (unsigned i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(parts_in(&p, wrong[i]), 0);
}

static void ranges_touch_the_parts_that_they_reach_into(void **state)
{
    const struct parts p = parts_of(25 << 10); /* seven parts, the last one of 1024 */
    assert_int_equal(parts_touched(&p, (struct range){0, 1}), 1);
    assert_int_equal(parts_touched(&p, (struct range){p.part - 1, p.part + 1}), 3);
    assert_int_equal(parts_touched(&p, (struct range){p.block - 1, p.block}), 1 << 6);
    assert_int_equal(parts_touched(&p, (struct range){p.part, p.part}), 0);
    assert_int_equal(parts_before(&p, p.part - 1), 0);
    assert_int_equal(parts_before(&p, p.block - 1), (1 << 6) - 1);
    assert_int_equal(parts_before(&p, p.block), parts_all(&p));
}

static void runs_are_taken_from_both_ends(void **state)
{
    const struct parts p = parts_of((int64_t)1 << 38);
    uint64_t set = 0xf0000000000000ff & ~UINT64_C(4);
    struct range s = parts_take_front(&p, &set);
    assert_true(s.begin == 0 && s.end == 2 * p.part);
    s = parts_take_last(&p, &set);
    assert_true(s.begin == 60 * p.part && s.end == 64 * p.part);
    s = parts_take_last(&p, &set);
    assert_true(s.begin == 3 * p.part && s.end == 8 * p.part);
    assert_int_equal(set, 0);
    assert_int_equal(parts_take_front(&p, &set).end, 0);
    set = UINT64_MAX;
    assert_int_equal(parts_take_front(&p, &set).end, p.block);
    assert_int_equal(set, 0);
    set = UINT64_MAX;
    assert_int_equal(range_count(parts_take_last(&p, &set)), p.block);
    assert_int_equal(set, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_parts_are_the_block),
        cmocka_unit_test(large_blocks_have_as_many_parts_as_there_can_be),
        cmocka_unit_test(what_is_no_part_is_in_no_set),
        cmocka_unit_test(ranges_touch_the_parts_that_they_reach_into),
        cmocka_unit_test(runs_are_taken_from_both_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
