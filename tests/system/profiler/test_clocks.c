/* test_clocks.c - how far clocks are apart, and what the messages of a timeline may hold. */
#include "core/base/random.h"
#include "core/cluster/runner/trace/trace.h"
#include "core/train/session/towers.h"

#include <endian.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { TRIPS = 200, CLOCKS = 50, MS = 1000000 };

static const struct trace_limits limits = {.nodes = 5, .ps_count = 2, .workers = 3};

/* ---- clocks ---- */

static uint64_t draw(uint64_t *seed, uint64_t below)
{
    *seed = random_mix(*seed + 1);
    return *seed % below;
}

/* A trip whose two ways take from 0 to 2 ms, to a clock that is `ahead_ns` ahead. */
static struct round_trip trip_to(int64_t ahead_ns, uint64_t *seed)
{
    struct round_trip t = {.sent_ns = 3600000 * (uint64_t)MS + draw(seed, 1000 * MS)};
    const uint64_t heard_ns = t.sent_ns + draw(seed, 2 * MS);
    const uint64_t answered_ns = heard_ns + draw(seed, 5 * MS);
    t.heard_ns = heard_ns + (uint64_t)ahead_ns;
    t.answered_ns = answered_ns + (uint64_t)ahead_ns;
    t.back_ns = answered_ns + draw(seed, 2 * MS);
    return t;
}

static int64_t ahead_by(uint64_t *seed)
{
    return (int64_t)draw(seed, 2000000 * (uint64_t)MS) - 1000000 * (int64_t)MS;
}

static struct clock_bounds bounds_of(int64_t ahead_ns, int trips, uint64_t *seed)
{
    struct clock_bounds b = {0};
    for (int i = 0; i < trips; i++) {
        const struct round_trip trip = trip_to(ahead_ns, seed);
        clock_bounds_add(&b, &trip);
    }
    return b;
}

static void assert_contains(const struct clock_bounds *b, int64_t ahead_ns)
{
    const int64_t off_ns = clock_bounds_middle_ns(b) - ahead_ns;
    assert_true(b->is_known);
    assert_in_range((uint64_t)(off_ns < 0 ? -off_ns : off_ns), 0, clock_bounds_error_ns(b));
}

static void the_error_that_is_stated_is_never_exceeded(void **state)
{
    uint64_t seed = 1;
    for (int i = 0; i < CLOCKS; i++) {
        const int64_t ahead_ns = ahead_by(&seed);
        for (int trips = 1; trips <= TRIPS; trips *= 3) {
            const struct clock_bounds b = bounds_of(ahead_ns, trips, &seed);
            assert_contains(&b, ahead_ns);
            assert_in_range(clock_bounds_error_ns(&b), 1, 2 * MS + 1);
        }
    }
}

static void more_trips_make_the_error_smaller(void **state)
{
    uint64_t seed = 7;
    const struct clock_bounds few = bounds_of(123456789, 1, &seed);
    const struct clock_bounds many = bounds_of(123456789, TRIPS, &seed);
    assert_true(clock_bounds_error_ns(&many) * 4 < clock_bounds_error_ns(&few));
}

static void clocks_are_compared_by_way_of_a_third(void **state)
{
    uint64_t seed = 3;
    for (int i = 0; i < CLOCKS; i++) {
        const int64_t ps_ns = ahead_by(&seed), worker_ns = ahead_by(&seed);
        const struct clock_bounds chief = bounds_of(ps_ns, 5, &seed);
        const struct clock_bounds worker = bounds_of(ps_ns - worker_ns, 5, &seed);
        const struct clock_bounds back = clock_bounds_turn(&worker);
        const struct clock_bounds sum = clock_bounds_chain(&chief, &back);
        assert_contains(&sum, worker_ns);
    }
}

static void nothing_is_known_by_way_of_a_clock_that_is_unknown(void **state)
{
    const struct clock_bounds known = {1, 2, true}, unknown = {0};
    assert_false(clock_bounds_chain(&known, &unknown).is_known);
    assert_false(clock_bounds_chain(&unknown, &known).is_known);
}

static void times_that_cannot_be_are_left_out(void **state)
{
    static const struct round_trip bad[] = {
        {.sent_ns = 10, .heard_ns = 5, .answered_ns = 6, .back_ns = 9},
        {.sent_ns = 10, .heard_ns = 7, .answered_ns = 6, .back_ns = 20},
        {.sent_ns = 10, .heard_ns = 5, .answered_ns = UINT64_MAX, .back_ns = 20},
        {.sent_ns = 10, .heard_ns = 5, .answered_ns = 6, .back_ns = UINT64_MAX},
    };
    struct clock_bounds b = {0};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) clock_bounds_add(&b, &bad[i]);
    assert_false(b.is_known);
}

static void bounds_that_cross_are_as_wrong_as_they_disagree(void **state)
{
    const struct clock_bounds crossed = {.low_ns = 300, .high_ns = 100, .is_known = true};
    assert_int_equal(clock_bounds_middle_ns(&crossed), 200);
    assert_in_range(clock_bounds_error_ns(&crossed), 100, 101);
}

static void a_clock_message_says_what_was_packed(void **state)
{
    uint64_t numbers[TRACE_CLOCK_NUMBERS];
    struct round_trip got;
    trace_clock_pack(&(struct round_trip){1, 2, UINT64_MAX, 4}, numbers);
    const struct message m = {.body = numbers, .body_bytes = sizeof numbers};
    assert_true(trace_clock_unpack(&m, &got));
    assert_true(got.sent_ns == 1 && got.heard_ns == 2 && got.answered_ns == UINT64_MAX);
}

static void a_clock_message_of_another_length_is_none(void **state)
{
    uint64_t numbers[TRACE_CLOCK_NUMBERS + 1] = {0};
    struct round_trip got;
    for (uint32_t bytes = 0; bytes <= sizeof numbers; bytes++) {
        const struct message m = {.body = numbers, .body_bytes = bytes};
        assert_true(trace_clock_unpack(&m, &got) ==
                    (bytes == TRACE_CLOCK_NUMBERS * sizeof *numbers));
    }
    assert_false(trace_clock_unpack(&(struct message){.body_bytes = 24}, &got));
}

/* ---- parts ---- */

enum { SPANS = 3, PART_BYTES_MAX = 4096 };

static struct span a_span(enum span_kind kind, uint32_t subject)
{
    struct span span = {.begin_ns = 1000,
                        .end_ns = 2000,
                        .step = 100,
                        .bytes = UINT64_C(1) << 40,
                        .subject = subject,
                        .kind = (uint16_t)kind,
                        .count = 65535};
    if (span_tower(&span)) span.count = TOWERS_MAX - 1;
    return span;
}

/* A message with these spans; the body is the caller's. */
static struct message message_of(struct span *spans, int count, char body[PART_BYTES_MAX])
{
    const struct trace trace = {.spans = spans, .count = count, .dropped = 9};
    const struct clock_bounds clock = {.low_ns = -5, .high_ns = 7, .is_known = true};
    assert_true(trace_part_bytes(count) <= PART_BYTES_MAX);
    trace_part_pack(&trace, &clock, body);
    return (struct message){.body = body, .body_bytes = (uint32_t)trace_part_bytes(count)};
}

static err unpack(struct span span)
{
    char body[PART_BYTES_MAX];
    struct trace_part part;
    const struct message m = message_of(&span, 1, body);
    TRY(trace_part_unpack(&m, &limits, TRACE_SPANS_MAX, &part));
    free(part.spans);
    return OK;
}

static void a_part_arrives_as_it_left(void **state)
{
    struct span spans[SPANS] = {a_span(SPAN_FORWARD, 4), a_span(SPAN_PUSH, 1),
                                a_span(SPAN_APPLY, 2)};
    char body[PART_BYTES_MAX];
    struct trace_part part;
    const struct message m = message_of(spans, SPANS, body);
    assert_int_equal(trace_part_unpack(&m, &limits, TRACE_SPANS_MAX, &part), OK);
    assert_int_equal(part.count, SPANS);
    assert_int_equal(part.dropped, 9);
    assert_true(part.clock.low_ns == -5 && part.clock.high_ns == 7 && part.clock.is_known);
    assert_memory_equal(part.spans, spans, sizeof spans);
    free(part.spans);
}

static void what_is_over_the_limit_is_counted(void **state)
{
    struct span spans[SPANS] = {a_span(SPAN_STEP, 0), a_span(SPAN_DATA, 0), a_span(SPAN_LOSS, 0)};
    char body[PART_BYTES_MAX];
    struct trace_part part;
    const struct message m = message_of(spans, SPANS, body);
    assert_int_equal(trace_part_unpack(&m, &limits, 1, &part), OK);
    assert_int_equal(part.count, 1);
    assert_int_equal(part.dropped, 9 + 2);
    free(part.spans);
}

static void a_part_of_another_length_is_none(void **state)
{
    struct span span = a_span(SPAN_STEP, 0);
    char body[PART_BYTES_MAX];
    struct trace_part part;
    struct message m = message_of(&span, 1, body);
    const uint32_t whole = m.body_bytes, head = (uint32_t)trace_part_bytes(0);
    for (uint32_t bytes = 0; bytes < whole; bytes++) {
        m.body_bytes = bytes;
        if (bytes == head) continue;
        assert_int_equal(trace_part_unpack(&m, &limits, TRACE_SPANS_MAX, &part), ERR_PROTOCOL);
    }
    m = (struct message){.body_bytes = whole};
    assert_int_equal(trace_part_unpack(&m, &limits, TRACE_SPANS_MAX, &part), ERR_PROTOCOL);
}

static void a_part_of_more_spans_than_a_task_has_is_none(void **state)
{
    const size_t bytes = trace_part_bytes(TRACE_SPANS_MAX + 1);
    void *body = calloc(1, bytes);
    struct trace_part part;
    const struct message m = {.body = body, .body_bytes = (uint32_t)bytes};
    assert_int_equal(trace_part_unpack(&m, &limits, TRACE_SPANS_MAX, &part), ERR_PROTOCOL);
    free(body);
}

static void subjects_that_are_not_there_are_refused(void **state)
{
    static const struct {
        enum span_kind kind;
        uint32_t first_bad;
    } cases[] = {{SPAN_FORWARD, 5}, {SPAN_BACKWARD, 5}, {SPAN_PUSH, 2}, {SPAN_WAIT, 2},
                 {SPAN_PART, 2},    {SPAN_BACK, 2},     {SPAN_TAKE, 3}, {SPAN_RECEIVE, 3},
                 {SPAN_APPLY, 3},   {SPAN_REFRESH, 3},  {SPAN_STEP, 1}, {SPAN_HOLD, 1},
                 {SPAN_ADVANCE, 1}, {SPAN_AWAIT, 2}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(unpack(a_span(cases[i].kind, cases[i].first_bad - 1)), OK);
        assert_int_equal(unpack(a_span(cases[i].kind, cases[i].first_bad)), ERR_PROTOCOL);
        assert_int_equal(unpack(a_span(cases[i].kind, UINT32_MAX)), ERR_PROTOCOL);
    }
}

static void towers_that_are_not_there_are_refused(void **state)
{
    for (int kind = SPAN_FORWARD; kind <= SPAN_BACKWARD; kind++) {
        struct span span = a_span((enum span_kind)kind, 0);
        span.count = TOWERS_MAX;
        assert_int_equal(unpack(span), ERR_PROTOCOL);
    }
}

static void kinds_that_are_none_are_refused(void **state)
{
    assert_int_equal(unpack(a_span(SPAN_KINDS - 1, 0)), OK);
    assert_int_equal(unpack(a_span(SPAN_KINDS, 0)), ERR_PROTOCOL);
    assert_int_equal(unpack(a_span(UINT16_MAX, 0)), ERR_PROTOCOL);
}

static void spans_that_end_before_they_begin_are_refused(void **state)
{
    struct span backwards = a_span(SPAN_STEP, 0), far = a_span(SPAN_STEP, 0);
    backwards.begin_ns = backwards.end_ns + 1;
    far.end_ns = UINT64_MAX;
    assert_int_equal(unpack(backwards), ERR_PROTOCOL);
    assert_int_equal(unpack(far), ERR_PROTOCOL);
}

static void a_clock_that_cannot_be_is_refused(void **state)
{
    struct span span = a_span(SPAN_STEP, 0);
    char body[PART_BYTES_MAX];
    struct trace_part part;
    const struct message m = message_of(&span, 1, body);
    const uint64_t far[] = {htole64(INT64_MAX), htole64((uint64_t)INT64_MIN)};
    for (size_t number = 0; number < 2; number++) { /* the lower bound, the upper bound */
        const struct message fresh = message_of(&span, 1, body);
        assert_int_equal(fresh.body_bytes, m.body_bytes);
        memcpy(body + number * sizeof far[0], &far[number], sizeof far[0]);
        assert_int_equal(trace_part_unpack(&m, &limits, TRACE_SPANS_MAX, &part), ERR_PROTOCOL);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_error_that_is_stated_is_never_exceeded),
        cmocka_unit_test(more_trips_make_the_error_smaller),
        cmocka_unit_test(clocks_are_compared_by_way_of_a_third),
        cmocka_unit_test(nothing_is_known_by_way_of_a_clock_that_is_unknown),
        cmocka_unit_test(times_that_cannot_be_are_left_out),
        cmocka_unit_test(bounds_that_cross_are_as_wrong_as_they_disagree),
        cmocka_unit_test(a_clock_message_says_what_was_packed),
        cmocka_unit_test(a_clock_message_of_another_length_is_none),
        cmocka_unit_test(a_part_arrives_as_it_left),
        cmocka_unit_test(what_is_over_the_limit_is_counted),
        cmocka_unit_test(a_part_of_another_length_is_none),
        cmocka_unit_test(a_part_of_more_spans_than_a_task_has_is_none),
        cmocka_unit_test(subjects_that_are_not_there_are_refused),
        cmocka_unit_test(towers_that_are_not_there_are_refused),
        cmocka_unit_test(kinds_that_are_none_are_refused),
        cmocka_unit_test(spans_that_end_before_they_begin_are_refused),
        cmocka_unit_test(a_clock_that_cannot_be_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
