/* test_plan_cost.c - how long a step takes, by hand. */
#include "cmd/plan/cost.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

enum { PS = 2 };

static void is(double value, double wanted)
{
    assert_true(fabs(value - wanted) <= 1e-6 * wanted);
}

/* 2 ps with 1 GB and 0.5 GB each way, links of 1 GB/s */
static const struct plan_bytes dense[PS] = {{1e9, 1e9, 0, 0}, {5e8, 5e8, 0, 0}};

static struct plan_case even(void)
{
    return (struct plan_case){
        .ps = PS,
        .workers = 4,
        .batch = 10,
        .is_sync = true,
        .overlaps = true,
        .link_bytes_s = 1e9,
        .bytes = dense,
        .costs = {true, 1, 0.3},
    };
}

static void synchronous_steps_wait_for_the_fullest_link(void **state)
{
    struct plan_case c = even();
    struct plan_time t = plan_time_of(&c);
    assert_int_equal(t.bound, BOUND_PS_LINK);
    assert_int_equal(t.ps, 0);
    is(t.step_s, 4 + 0.2); /* 4 workers' gigabyte, two thirds of updates */
    is(t.examples_s, 40 / 4.2);
    c.workers = 1;
    t = plan_time_of(&c);
    assert_int_equal(t.bound, BOUND_WORKER_LINK);
    is(t.step_s, 1.5 + 0.2);
    c.costs.computing = 7;
    t = plan_time_of(&c);
    assert_int_equal(t.bound, BOUND_COMPUTING);
    is(t.step_s, 7 + 0.2);
}

/* A ps and a worker on each of two hosts: half of what a worker sends stays there. */
static void what_stays_within_a_host_passes_no_link(void **state)
{
    static const struct plan_bytes halves[PS] = {{1e9, 1e9, 0, 0}, {1e9, 1e9, 0, 0}};
    static const int in_turn[] = {0, 1, 0, 1}, first[] = {0, 0, 0, 0};
    struct plan_case c = even();
    c.bytes = halves;
    c.workers = 2;
    c.costs = (struct plan_costs){true, 0.5, 0};
    c.host_count = 2;
    c.ps_host = c.worker_host = in_turn;
    struct plan_time t = plan_time_of(&c);
    assert_int_equal(t.bound, BOUND_SHARED_LINK);
    is(t.step_s, 2); /* its own gradients leave, and values for the other */
    c.workers = 4;
    is(plan_time_of(&c).step_s, 4);
    c.overlaps = false;
    is(plan_time_of(&c).step_s, 0.5 + 2 + 2); /* one after the other: up, then down */
    c.round_trip_s = 0.25;
    is(plan_time_of(&c).step_s, 0.5 + 2 + 2 + 0.25);
    c.ps_host = c.worker_host = first;
    is(plan_time_of(&c).step_s, 0.5); /* all on one of them */
    c = even();
    c.bytes = halves; /* the ps alone on two hosts, all workers on a third */
    c.host_count = 3;
    c.ps_host = in_turn;
    c.worker_host = (const int[]){2, 2, 2, 2};
    t = plan_time_of(&c);
    assert_int_equal(t.bound, BOUND_WORKER_LINK);
    is(t.step_s, 8 + 0.3 / 2);
    c.is_sync = false;
    is(plan_time_of(&c).step_s, 8);
}

static void hosts_of_their_own_are_as_if_none_were_said(void **state)
{
    static const int ps_host[] = {0, 1}, worker_host[] = {2, 3, 4, 5};
    for (int is_sync = 0; is_sync < 2; is_sync++)
        for (int overlaps = 0; overlaps < 2; overlaps++) {
            struct plan_case c = even();
            c.is_sync = is_sync;
            c.overlaps = overlaps;
            const struct plan_time own = plan_time_of(&c);
            c.host_count = 6;
            c.ps_host = ps_host;
            c.worker_host = worker_host;
            const struct plan_time said = plan_time_of(&c);
            assert_memory_equal(&own, &said, sizeof own);
        }
}

static void what_does_not_overlap_is_done_in_turn(void **state)
{
    static const struct plan_bytes rows[1] = {{1e9, 1e9, 2e8, 1e8}};
    struct plan_case c = even();
    c.overlaps = false;
    c.workers = 1;
    is(plan_time_of(&c).step_s, 1 + 1.5 + 1.5 + 0.2);
    c = even();
    c.ps = c.workers = 1;
    c.bytes = rows;
    c.round_trip_s = 0.01;
    is(plan_time_of(&c).step_s, 1 + 0.2 + 0.1 + 0.3 + 0.01);
}

static void asynchronous_workers_share_what_a_ps_lets_pass(void **state)
{
    struct plan_case c = even();
    c.is_sync = false;
    c.overlaps = false;
    c.workers = 1;
    is(plan_time_of(&c).step_s, 1 + 3 + 0.2);
    c.workers = 8;
    struct plan_time t = plan_time_of(&c);
    assert_int_equal(t.bound, BOUND_PS_LINK);
    is(t.step_s, 8);
    is(t.examples_s, 10);
    c.link_bytes_s = 1e15;
    c.costs.computing = 0.1;
    t = plan_time_of(&c);
    assert_int_equal(t.bound, BOUND_UPDATING);
    is(t.step_s, 8 * 0.2);
}

static void more_of_anything_is_never_worse(void **state)
{
    for (int is_sync = 0; is_sync < 2; is_sync++)
        for (int overlaps = 0; overlaps < 2; overlaps++)
            for (int workers = 1; workers < 64; workers *= 2) {
                struct plan_case c = even();
                c.is_sync = is_sync;
                c.overlaps = overlaps;
                c.workers = workers;
                const struct plan_time now = plan_time_of(&c);
                assert_true(now.step_s >= c.costs.computing);
                c.link_bytes_s *= 2;
                assert_true(plan_time_of(&c).step_s <= now.step_s);
                c = even();
                c.is_sync = is_sync;
                c.overlaps = overlaps;
                c.workers = 2 * workers;
                assert_true(plan_time_of(&c).examples_s >= now.examples_s * (1 - 1e-12) || is_sync);
            }
}

static void nothing_known_and_nothing_sent_is_no_step(void **state)
{
    static const struct plan_bytes none[1];
    const struct plan_case c = {
        .ps = 1, .workers = 1, .batch = 1, .link_bytes_s = 1, .bytes = none};
    const struct plan_time t = plan_time_of(&c);
    assert_true(t.step_s == 0 && t.examples_s == 0);
    for (int i = 0; i < BOUND_COUNT; i++) assert_non_null(plan_bound_name((enum plan_bound)i));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(synchronous_steps_wait_for_the_fullest_link),
        cmocka_unit_test(what_stays_within_a_host_passes_no_link),
        cmocka_unit_test(hosts_of_their_own_are_as_if_none_were_said),
        cmocka_unit_test(what_does_not_overlap_is_done_in_turn),
        cmocka_unit_test(asynchronous_workers_share_what_a_ps_lets_pass),
        cmocka_unit_test(more_of_anything_is_never_worse),
        cmocka_unit_test(nothing_known_and_nothing_sent_is_no_step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
