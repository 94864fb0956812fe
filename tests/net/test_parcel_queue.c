/* test_parcel_queue.c - what overtakes what on its way to a peer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include "net/parcel_queue.h"
#include "net/transport.h"
#include "net/wire.h"

#include <cmocka.h> /* last: it has a macro named fail */

static void add(struct parcel_queue *queue, uint32_t type, uint64_t offset, uint64_t length)
{
    const struct message m = {.type = type, .offset = offset, .length = length};
    struct parcel parcel = {.urgency = message_urgency(&m), .yields = message_yields(&m)};
    wire_pack(&m, parcel.header);
    assert_int_equal(parcel_queue_add(queue, &parcel), OK);
}

static void expect(struct parcel_queue *queue, uint32_t type, uint64_t offset)
{
    struct message m;
    const struct parcel parcel = parcel_queue_take(queue);
    assert_int_equal(wire_unpack(parcel.header, &m), OK);
    assert_int_equal(m.type, type);
    assert_int_equal(m.offset, offset);
}

static void parts_go_from_the_end_of_the_block_down(void **state)
{
    static const uint64_t offsets[] = {64, 128, 320, 192, 256};
    for (uint32_t type = MESSAGE_PUSH; type < MESSAGE_TYPES; type++) {
        if (type != MESSAGE_PART && type != MESSAGE_AHEAD) continue;
        struct parcel_queue queue = {0};
        for (int i = 0; i < 5; i++) add(&queue, type, offsets[i], 64);
        for (uint64_t offset = 320; offset >= 64; offset -= 64) expect(&queue, type, offset);
        assert_int_equal(queue.count, 0);
        parcel_queue_free(&queue);
    }
}

static void what_has_begun_to_leave_goes_on(void **state)
{
    struct parcel_queue queue = {0};
    add(&queue, MESSAGE_PART, 64, 64);
    parcel_queue_at(&queue, 0)->sent = 1;
    add(&queue, MESSAGE_PART, 128, 64);
    add(&queue, MESSAGE_PART, 192, 64);
    expect(&queue, MESSAGE_PART, 64);
    expect(&queue, MESSAGE_PART, 192);
    expect(&queue, MESSAGE_PART, 128);
    parcel_queue_free(&queue);
}

/* What counts comes behind what it counts with, and nothing comes past it. */
static void nothing_else_changes_its_place(void **state)
{
    struct parcel_queue queue = {0};
    add(&queue, MESSAGE_PART, 64, 64);
    add(&queue, MESSAGE_PUSH, 0, 64);
    add(&queue, MESSAGE_PART, 192, 64);
    add(&queue, MESSAGE_JOIN, 0, 0);
    add(&queue, MESSAGE_PART, 256, 64);
    expect(&queue, MESSAGE_PART, 64);
    expect(&queue, MESSAGE_PUSH, 0);
    expect(&queue, MESSAGE_PART, 192);
    expect(&queue, MESSAGE_JOIN, 0);
    expect(&queue, MESSAGE_PART, 256);
    parcel_queue_free(&queue);
}

static void values_and_rows_overtake_what_goes_ahead_but_not_its_taking_back(void **state)
{
    struct parcel_queue queue = {0};
    add(&queue, MESSAGE_AHEAD, 64, 64);
    add(&queue, MESSAGE_AHEAD, 0, 0); /* void */
    add(&queue, MESSAGE_AHEAD, 128, 64);
    add(&queue, MESSAGE_AHEAD, 192, 64);
    add(&queue, MESSAGE_ROWS, 0, 64);
    add(&queue, MESSAGE_VALUES, 0, 64);
    add(&queue, MESSAGE_AHEAD, 256, 64);
    expect(&queue, MESSAGE_AHEAD, 64);
    expect(&queue, MESSAGE_AHEAD, 0);
    expect(&queue, MESSAGE_ROWS, 0);
    expect(&queue, MESSAGE_VALUES, 0);
    expect(&queue, MESSAGE_AHEAD, 256);
    expect(&queue, MESSAGE_AHEAD, 192);
    expect(&queue, MESSAGE_AHEAD, 128);
    parcel_queue_free(&queue);
}

/* Also where the array has wrapped around, and has grown. */
static void places_are_found_in_a_queue_that_goes_round(void **state)
{
    struct parcel_queue queue = {0};
    for (int i = 0; i < 12; i++) add(&queue, MESSAGE_STATE, 0, 0);
    for (int i = 0; i < 12; i++) expect(&queue, MESSAGE_STATE, 0);
    for (uint64_t i = 1; i <= 40; i++) add(&queue, MESSAGE_PART, 64 * (i * 7 % 41), 64);
    for (uint64_t i = 40; i >= 1; i--) expect(&queue, MESSAGE_PART, 64 * i);
    parcel_queue_free(&queue);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_go_from_the_end_of_the_block_down),
        cmocka_unit_test(what_has_begun_to_leave_goes_on),
        cmocka_unit_test(nothing_else_changes_its_place),
        cmocka_unit_test(values_and_rows_overtake_what_goes_ahead_but_not_its_taking_back),
        cmocka_unit_test(places_are_found_in_a_queue_that_goes_round),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
