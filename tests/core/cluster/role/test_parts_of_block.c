/* test_parts_of_block.c - sets of parts of a block, for blocks of all sizes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include "core/cluster/role/parts.h"

#include <cmocka.h> /* last: it has a macro named fail */

enum { ALIGN = 64 };

static const uint64_t blocks[] = {ALIGN,
                                  16 << 10,
                                  (16 << 10) + ALIGN,
                                  48 << 10,
                                  1 << 20,
                                  (1 << 20) + ALIGN,
                                  16 << 20,
                                  (16 << 20) + ALIGN,
                                  100000000 / ALIGN *ALIGN,
                                  (uint64_t)1 << 40};
enum { BLOCKS = sizeof blocks / sizeof *blocks };

static int count_of(uint64_t set)
{
    return __builtin_popcountll(set);
}

static void all_parts_are_the_block(void **state)
{
    for (int i = 0; i < BLOCKS; i++) {
        const struct parts p = parts_of(blocks[i]);
        uint64_t all = parts_all(&p), bytes = 0;
        assert_int_equal(p.part % ALIGN, 0);
        assert_in_range(count_of(all), 1, PARTS_MAX);
        assert_int_equal(parts_in(&p, (struct stretch){0, p.block}), all);
        for (uint64_t end = p.block; all;) {
            uint64_t last = parts_last(all);
            all &= ~last;
            const struct stretch s = parts_take_last(&p, &last);
            assert_int_equal(s.offset + s.length, end);
            assert_int_equal(count_of(parts_in(&p, s)), 1);
            assert_int_equal(parts_before(&p, s.offset), all);
            end = s.offset;
            bytes += s.length;
        }
        assert_int_equal(bytes, p.block);
    }
}

static void large_blocks_have_as_many_parts_as_there_can_be(void **state)
{
    const struct parts large = parts_of((uint64_t)1 << 40), small = parts_of(48 << 10);
    const struct parts middle = parts_of(2 << 20), none = parts_of(0);
    assert_int_equal(count_of(parts_all(&large)), PARTS_MAX);
    assert_int_equal(count_of(parts_all(&middle)), 16);
    assert_int_equal(count_of(parts_all(&small)), 3);
    assert_int_equal(parts_all(&none), 0);
    assert_int_equal(parts_in(&none, (struct stretch){0, 0}), 0);
    assert_int_equal(parts_in(&none, (struct stretch){0, 64}), 0);
}

static void what_is_no_part_is_in_no_set(void **state)
{
    const struct parts p = parts_of(100 << 10);
    const struct stretch wrong[] = {{0, 0},
                                    {ALIGN, p.part},
                                    {0, p.part - ALIGN},
                                    {0, p.part + ALIGN},
                                    {p.block, p.part},
                                    {0, p.block + p.part},
                                    {0, UINT64_MAX},
                                    {UINT64_MAX, 1},
                                    {p.part, UINT64_MAX - p.part + 1}};
    for (unsigned i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(parts_in(&p, wrong[i]), 0);
}

static void stretches_touch_the_parts_that_they_reach_into(void **state)
{
    const struct parts p = parts_of(100 << 10); /* seven parts, the last one of 4 KB */
    assert_int_equal(parts_touched(&p, (struct stretch){0, 4}), 1);
    assert_int_equal(parts_touched(&p, (struct stretch){p.part - 4, 8}), 3);
    assert_int_equal(parts_touched(&p, (struct stretch){p.block - 4, 4}), 1 << 6);
    assert_int_equal(parts_touched(&p, (struct stretch){p.part, 0}), 0);
    assert_int_equal(parts_before(&p, p.part - 4), 0);
    assert_int_equal(parts_before(&p, p.block - 4), (1 << 6) - 1);
    assert_int_equal(parts_before(&p, p.block), parts_all(&p));
}

static void runs_are_taken_from_both_ends(void **state)
{
    const struct parts p = parts_of((uint64_t)1 << 40);
    uint64_t set = 0xf0000000000000ff & ~UINT64_C(4);
    struct stretch s = parts_take_front(&p, &set);
    assert_true(s.offset == 0 && s.length == 2 * p.part);
    s = parts_take_last(&p, &set);
    assert_true(s.offset == 60 * p.part && s.length == 4 * p.part);
    s = parts_take_last(&p, &set);
    assert_true(s.offset == 3 * p.part && s.length == 5 * p.part);
    assert_int_equal(set, 0);
    assert_int_equal(parts_take_front(&p, &set).length, 0);
    set = UINT64_MAX;
    assert_int_equal(parts_take_front(&p, &set).length, p.block);
    assert_int_equal(set, 0);
    set = UINT64_MAX;
    assert_int_equal(parts_take_last(&p, &set).length, p.block);
    assert_int_equal(set, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_parts_are_the_block),
        cmocka_unit_test(large_blocks_have_as_many_parts_as_there_can_be),
        cmocka_unit_test(what_is_no_part_is_in_no_set),
        cmocka_unit_test(stretches_touch_the_parts_that_they_reach_into),
        cmocka_unit_test(runs_are_taken_from_both_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
