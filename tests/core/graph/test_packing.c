/* test_packing.c - buffers in one block. */
#include "tests/core/graph/bench.h"

#include "core/base/random.h"
#include "core/graph/packing.h"

enum { COUNT = 200 };

static bool lives_meet(const struct packed_buffer *a, const struct packed_buffer *b)
{
    return a->first <= b->last && b->first <= a->last;
}

static bool memory_meets(const struct packed_buffer *a, const struct packed_buffer *b)
{
    return a->offset < b->offset + b->bytes && b->offset < a->offset + a->bytes;
}

static void check(const struct packed_buffer *buffers, int count, size_t block)
{
    for (int i = 0; i < count; i++) {
        assert_int_equal(buffers[i].offset % PACKING_ALIGN, 0);
        assert_true(buffers[i].offset + buffers[i].bytes <= block);
        for (int k = 0; k < i; k++)
            assert_false(lives_meet(&buffers[i], &buffers[k]) &&
                         memory_meets(&buffers[i], &buffers[k]));
    }
}

/* No placement can do with less than what is alive at once. */
static size_t most_alive(const struct packed_buffer *buffers, int count)
{
    size_t most = 0;
    for (int time = 0; time < 3 * COUNT; time++) {
        size_t alive = 0;
        for (int i = 0; i < count; i++)
            if (buffers[i].first <= time && time <= buffers[i].last) alive += buffers[i].bytes;
        if (alive > most) most = alive;
    }
    return most;
}

static void live_buffers_never_overlap(void **state)
{
    for (uint64_t key = 0; key < 50; key++) {
        struct packed_buffer buffers[COUNT], *order[COUNT];
        for (int i = 0; i < COUNT; i++) {
            const uint64_t draw = random_u64(key, (uint64_t)i);
            const int first = (int)(draw % (2 * COUNT));
            buffers[i] = (struct packed_buffer){.bytes = 1 + (draw >> 20) % 5000,
                                                .first = first,
                                                .last = first + (int)((draw >> 40) % COUNT)};
        }
        const size_t block = packing_place(buffers, COUNT, order);
        check(buffers, COUNT, block);
        const size_t least = most_alive(buffers, COUNT);
        assert_true(block >= least);
        assert_true(block <= least * 3 / 2); /* measured: 1.0 to 1.3 */
    }
}

static void buffers_that_follow_each_other_share_memory(void **state)
{
    struct packed_buffer chain[] = {{1000, 0, 1}, {1000, 1, 2}, {1000, 2, 3}, {1000, 3, 4}};
    struct packed_buffer *order[4];
    assert_int_equal(packing_place(chain, 4, order), 2048);
    check(chain, 4, 2048);
    assert_int_equal(chain[0].offset, chain[2].offset);
}

static void a_small_buffer_goes_into_the_lowest_gap(void **state)
{
    struct packed_buffer buffers[] = {{640, 0, 9}, {320, 0, 4}, {192, 5, 9}, {64, 6, 9}};
    struct packed_buffer *order[4];
    assert_int_equal(packing_place(buffers, 4, order), 640 + 320);
    check(buffers, 4, 640 + 320);
    assert_int_equal(buffers[3].offset, 640 + 192);
    assert_int_equal(packing_place(buffers, 0, order), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(live_buffers_never_overlap),
        cmocka_unit_test(buffers_that_follow_each_other_share_memory),
        cmocka_unit_test(a_small_buffer_goes_into_the_lowest_gap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
