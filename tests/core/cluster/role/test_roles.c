/* test_roles.c - what ps and worker decide while nobody is lost, for every order of events that a
 * seed can make. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include "core/cluster/role/verdict.h"
#include "tests/core/cluster/role/play.h"

#include <cmocka.h> /* last: it has a macro named fail */

static void async_runs_stop_exactly_at_last_step_on_every_ps(void **state)
{
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        int ps = 1 + (int)(seed % 3), workers = 1 + (int)(seed % 7);
        uint64_t last_step = seed % 23;
        const struct stage_options o = async_options(ps, workers, last_step, seed);
        struct stage s;
        play(&s, &o);
        assert_int_equal(s.world.counters.computed, last_step);
        all_ps_applied(&s, (int)last_step);
        assert_int_equal(s.world.counters.evaluated, 1);
        assert_int_equal(worker_role_global_step(s.workers[0].role), last_step);
        stage_close(&s);
    }
}

static void sync_rounds_have_every_worker_in_order(void **state)
{
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        int ps = 1 + (int)(seed % 4), workers = 1 + (int)(seed % 5);
        const struct stage_options o = sync_options(ps, workers, 9, seed);
        struct stage s;
        play(&s, &o);
        all_rounds_are_whole(&s, 9);
        stage_close(&s);
    }
}

static void backup_workers_are_not_waited_for_and_their_late_gradients_are_dropped(void **state)
{
    uint64_t dropped = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct stage_options o = sync_options(2, 5, 12, seed);
        o.profile.config.replicas_to_aggregate = 3;
        o.profile.config.takes_all = false;
        o.profile.drops_gradients = true;
        struct stage s;
        play(&s, &o);
        all_ps_applied(&s, 12);
        for (int r = 0; r < 12; r++) {
            const struct applied_update a = stage_update(&s, 0, r), b = stage_update(&s, 1, r);
            assert_int_equal(a.worker_count, 3);
            assert_true(a.workers[0] < a.workers[1] && a.workers[1] < a.workers[2]);
            assert_memory_equal(a.workers, b.workers, sizeof a.workers);
        }
        dropped += ps_role_counters(s.ps[0].role).dropped_stale;
        assert_int_equal(ps_role_counters(s.ps[1].role).dropped_stale, 0);
        stage_close(&s);
    }
    assert_true(dropped > 0);
}

static void several_gradients_in_a_push_count_as_several(void **state)
{
    struct stage_options o = sync_options(1, 2, 4, 3);
    for (int w = 0; w < 2; w++) o.profile.gradients_per_push[w] = 3;
    o.profile.config.replicas_to_aggregate = 6;
    struct stage s;
    play(&s, &o);
    all_rounds_are_whole(&s, 4);
    stage_close(&s);
}

static void too_stale_gradients_are_dropped_and_their_steps_taken_again(void **state)
{
    uint64_t dropped = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct stage_options o = async_options(1 + (int)(seed % 3), 6, 40, seed);
        o.profile.config.max_staleness = 2;
        o.profile.drops_gradients = true;
        struct stage s;
        play(&s, &o);
        all_ps_applied(&s, 40);
        dropped += ps_role_counters(s.ps[0].role).dropped_stale;
        stage_close(&s);
    }
    assert_true(dropped > 0);
}

static void a_ps_without_variables_is_legal(void **state)
{
    for (uint64_t seed = 0; seed < 20; seed++) {
        struct stage_options o = sync_options(3, 2, 5, seed);
        o.profile.has_variables[0] = o.profile.has_variables[2] = false;
        struct stage s;
        play(&s, &o);
        all_ps_applied(&s, 5);
        assert_int_equal(stage_updates(&s, 0), 5); /* it has the global step */
        assert_int_equal(stage_updates(&s, 2), 0);
        stage_close(&s);
    }
}

static void a_push_that_is_not_the_next_of_its_generation_is_never_applied(void **state)
{
    const struct stage_options o = async_options(1, 1, 10, 1);
    struct stage s;
    begin(&s, &o);
    run_until_applied(&s, 5);
    struct message m = {.type = MESSAGE_PUSH,
                        .generation = worker_role_generation(s.workers[0].role),
                        .push = {.gradients = 1, .push = 5},
                        .range = {0, PIECES * PIECE_FLOATS}};
    stage_send_to_ps(&s, 0, 0, &m); /* again */
    m.push.push = 6;
    m.generation++;
    stage_send_to_ps(&s, 0, 0, &m); /* of values that are no more */
    end_with(&s, EXIT_DONE);
    all_ps_applied(&s, 10);
    assert_int_equal(ps_role_counters(s.ps[0].role).dropped_repeated, 2);
    stage_close(&s);
}

static void a_gradient_that_is_not_finite_ends_all_with_its_variable_and_worker(void **state)
{
    const struct stage_options o = sync_options(2, 2, 50, 1);
    struct stage s;
    begin(&s, &o);
    run_until_computing(&s, 1);
    const struct message m = {.type = MESSAGE_PUSH,
                              .generation = worker_role_generation(s.workers[1].role),
                              .push.push = 1,
                              .body = "hidden/kernel",
                              .body_bytes = 13};
    struct actor *ps = &s.ps[1];
    ps->role->ops->message(ps->role, JOB_WORKER, 1, &m, &ps->outbox);
    stage_flush(&s);
    end_with(&s, EXIT_NUMBER);
    assert_string_equal(ps->text,
                        "worker/1 pushed a gradient that is not finite at step 1: hidden/kernel");
    assert_int_equal(stage_updates(&s, 1), 0);
    stage_close(&s);
}

static void a_failed_step_is_the_verdict_of_all_with_the_name_of_its_worker(void **state)
{
    const struct stage_options o = sync_options(2, 2, 50, 4);
    struct stage s;
    begin(&s, &o);
    run_until_applied(&s, 3);
    run_until_computing(&s, 1);
    stage_fail_step(&s, 1, ERR_NUMBER, "step 4: the loss is NaN");
    end_with(&s, EXIT_NUMBER);
    assert_string_equal(s.workers[1].text, "step 4: the loss is NaN");
    assert_string_equal(s.workers[0].text, "worker/1: step 4: the loss is NaN");
    stage_close(&s);
}

static void
a_worker_that_stays_silent_is_named_and_not_waited_for_longer_than_the_limit(void **state)
{
    const struct stage_options o = sync_options(1, 3, 50, 4);
    struct stage s;
    begin(&s, &o);
    run_until_applied(&s, 3);
    run_until_computing(&s, 2);
    stage_hang(&s, &s.workers[2]);
    settle(&s);
    stage_pass_time(&s, STAGE_LIMIT_MS - 1);
    nobody_ended(&s);
    stage_pass_time(&s, 1);
    end_with(&s, EXIT_TIMEOUT);
    assert_non_null(strstr(s.ps[0].text, "worker/2"));
    assert_non_null(strstr(s.ps[0].text, "--step_timeout"));
    assert_string_equal(s.workers[0].said, "waited for ps/0 when the job ended");
    assert_string_equal(s.workers[1].said, s.workers[0].said);
    assert_null(strstr(s.workers[2].said, "when the job ended"));
    stage_close(&s);
}

/* ---- a guest instead of a worker that is gone ---- */

enum { GUEST = 2 };

static struct actor *ps_of(struct stage *s)
{
    return &s->ps[0];
}

static void guest_goes(struct stage *s)
{
    struct actor *ps = ps_of(s);
    ps->role->ops->peer_lost(ps->role, JOB_WORKER, GUEST, "the guest goes", &ps->outbox);
    stage_flush(s);
}

static void guest_comes(struct stage *s, uint64_t incarnation)
{
    struct actor *ps = ps_of(s);
    ps->role->ops->peer_up(ps->role, JOB_WORKER, GUEST, incarnation, &ps->outbox);
    stage_flush(s);
}

/* Nothing of it is a breach, and none of it brings anything. */
static void guest_says_something(struct stage *s, uint64_t kinds)
{
    const struct message said[] = {
        {.type = MESSAGE_JOIN},
        {.type = MESSAGE_JOIN, .join.what = (uint32_t)stage_draw(s, JOIN_COMPLETES + 1)},
        {.type = MESSAGE_LEADS, .leads.claims = LEADS_HEARD},
        {.type = MESSAGE_FINISHED, .finished.flags = FINISHED_UNUSED},
    };
    struct message m = said[stage_draw(s, kinds)];
    m.job = JOB_WORKER;
    m.task = GUEST;
    m.generation = worker_role_generation(s->workers[0].role);
    stage_lie(s, ps_of(s), GUEST, &m);
}

static void whoever_comes_and_goes_a_step_is_waited_for_only_so_long(void **state)
{
    enum { ACTS = 200, PAUSE_MS = STAGE_LIMIT_MS / 8, MOST_MS = 2 * STAGE_LIMIT_MS + PAUSE_MS };
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct stage_options o =
            seed % 2 ? sync_options(1, 3, 1000, seed) : async_options(1, 3, 20, seed);
        const uint64_t kinds = 1 + seed / 2 % 4; /* the last one says that it brings no more */
        struct stage s;
        begin(&s, &o);
        run_until_applied(&s, 3);
        stage_kill(&s, &s.workers[GUEST]);
        uint64_t step = 0, since_us = 0;
        for (int i = 0; i < ACTS && !ps_of(&s)->has_ended; i++) {
            stage_run(&s, (int)stage_draw(&s, 50));
            if (ps_role_step(ps_of(&s)->role) != step) since_us = s.world.now_us;
            step = ps_role_step(ps_of(&s)->role);
            assert_true(s.world.now_us - since_us <= (uint64_t)MOST_MS * 1000);
            guest_comes(&s, 1000 + stage_draw(&s, 2));
            for (uint64_t n = stage_draw(&s, 4); n > 0; n--) guest_says_something(&s, kinds);
            if (stage_draw(&s, 3)) stage_pass_time(&s, stage_draw(&s, PAUSE_MS));
            guest_goes(&s);
        }
        if (kinds < 4) assert_non_null(strstr(ps_of(&s)->text, "for worker/2 at step"));
        stage_close(&s);
    }
}

static void what_is_broken_here_ends_the_job_at_once(void **state)
{
    const struct stage_options o = async_options(2, 3, 1000, 9);
    struct stage s;
    begin(&s, &o);
    stage_run(&s, 200);
    struct actor *ps = &s.ps[1];
    ps->role->ops->stop(ps->role, EXIT_FAILED, "no memory for windows", &ps->outbox);
    stage_flush(&s);
    end_with(&s, EXIT_FAILED);
    assert_string_equal(s.workers[0].text, "ps/1: no memory for windows");
    stage_close(&s);
}

static void ledgers_travel_and_what_is_not_so_many_of_them_is_refused(void **state)
{
    const struct ledger ledgers[] = {{3, 2, 17}, {MESSAGE_COUNT_MAX, 1, 0}};
    const struct ledger wrong[] = {
        {MESSAGE_COUNT_MAX + 1, 1, 0}, {2, 3, 0}, {3, 2, MESSAGE_COUNT_MAX + 1}};
    uint64_t numbers[2 * LEDGER_NUMBERS + 1];
    struct ledger got[2];
    ledger_pack(ledgers, 2, numbers);
    struct message m = {.body = numbers, .body_bytes = sizeof numbers - sizeof *numbers};
    assert_true(ledger_unpack(&m, 2, got));
    assert_memory_equal(got, ledgers, sizeof got);
    assert_false(ledger_unpack(&m, 1, got));
    m.body_bytes--;
    assert_false(ledger_unpack(&m, 2, got));
    m.body_bytes = sizeof numbers;
    assert_false(ledger_unpack(&m, 2, got));
    m = (struct message){0};
    assert_false(ledger_unpack(&m, 2, got));
    for (int i = 0; i < 3; i++) {
        ledger_pack(&wrong[i], 1, numbers);
        m = (struct message){.body = numbers, .body_bytes = sizeof wrong[i]};
        assert_false(ledger_unpack(&m, 1, got));
    }
}

static void ledgers_have_the_byte_order_of_the_wire(void **state)
{
    const struct ledger ledger = {0x0102, 0x03, 0x04};
    uint64_t numbers[LEDGER_NUMBERS];
    const unsigned char wanted[sizeof numbers] = {[0] = 2, [1] = 1, [8] = 3, [16] = 4};
    ledger_pack(&ledger, 1, numbers);
    assert_memory_equal(numbers, wanted, sizeof wanted);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(async_runs_stop_exactly_at_last_step_on_every_ps),
        cmocka_unit_test(sync_rounds_have_every_worker_in_order),
        cmocka_unit_test(backup_workers_are_not_waited_for_and_their_late_gradients_are_dropped),
        cmocka_unit_test(several_gradients_in_a_push_count_as_several),
        cmocka_unit_test(too_stale_gradients_are_dropped_and_their_steps_taken_again),
        cmocka_unit_test(a_ps_without_variables_is_legal),
        cmocka_unit_test(a_push_that_is_not_the_next_of_its_generation_is_never_applied),
        cmocka_unit_test(a_gradient_that_is_not_finite_ends_all_with_its_variable_and_worker),
        cmocka_unit_test(a_failed_step_is_the_verdict_of_all_with_the_name_of_its_worker),
        cmocka_unit_test(
            a_worker_that_stays_silent_is_named_and_not_waited_for_longer_than_the_limit),
        cmocka_unit_test(whoever_comes_and_goes_a_step_is_waited_for_only_so_long),
        cmocka_unit_test(what_is_broken_here_ends_the_job_at_once),
        cmocka_unit_test(ledgers_travel_and_what_is_not_so_many_of_them_is_refused),
        cmocka_unit_test(ledgers_have_the_byte_order_of_the_wire),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
