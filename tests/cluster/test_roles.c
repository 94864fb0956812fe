/* test_roles.c - what ps and worker decide, for every order of events that a seed can make. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include "core/cluster/verdict.h"
#include "tests/cluster/stage.h"

#include <cmocka.h> /* last: it has a macro named fail */

enum { SEEDS = 200, EVENTS_MAX = 100000 };

static struct stage_options async_options(int ps, int workers, uint64_t last_step, uint64_t seed)
{
    struct stage_options o = {
        .ps_count = ps,
        .workers = workers,
        .config = {.last_step = last_step, .replicas_to_aggregate = 1, .max_staleness = -1},
        .gradients_per_push = 1,
        .seed = seed,
    };
    for (int i = 0; i < ps; i++) o.block_bytes[i] = 64;
    return o;
}

static struct stage_options sync_options(int ps, int workers, uint64_t last_step, uint64_t seed)
{
    struct stage_options o = async_options(ps, workers, last_step, seed);
    o.config.is_sync = o.config.takes_all = true;
    o.config.replicas_to_aggregate = (uint32_t)workers;
    return o;
}

static void play(struct stage *s, const struct stage_options *o)
{
    stage_open(s, o);
    stage_greet(s);
    assert_true(stage_run(s, EVENTS_MAX) < EVENTS_MAX);
}

static void everybody_ended(const struct stage *s, int code)
{
    for (int i = 0; i < s->options.ps_count; i++) {
        if (!s->ps[i].is_alive) continue;
        assert_true(s->ps[i].has_ended);
        assert_int_equal(s->ps[i].code, code);
    }
    for (int i = 0; i < s->options.workers; i++) {
        if (!s->workers[i].is_alive) continue;
        assert_true(s->workers[i].has_ended);
        assert_int_equal(s->workers[i].code, code);
    }
}

/* Each push of each worker is in at most one update. */
static void nothing_twice(const struct actor *ps)
{
    uint64_t newest[STAGE_WORKERS_MAX] = {0};
    for (int i = 0; i < ps->applied_count; i++)
        for (int k = 0; k < ps->applied[i].worker_count; k++) {
            int worker = ps->applied[i].workers[k];
            assert_true(ps->applied[i].sequences[k] > newest[worker]);
            newest[worker] = ps->applied[i].sequences[k];
        }
}

static void async_runs_stop_exactly_at_last_step_on_every_ps(void **state)
{
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        int ps = 1 + (int)(seed % 3), workers = 1 + (int)(seed % 7);
        uint64_t last_step = seed % 23;
        const struct stage_options o = async_options(ps, workers, last_step, seed);
        struct stage s;
        play(&s, &o);
        everybody_ended(&s, EXIT_DONE);
        int computed = 0;
        for (int w = 0; w < workers; w++) computed += s.workers[w].computed;
        assert_int_equal(computed, last_step);
        for (int i = 0; i < ps; i++) {
            assert_int_equal(s.ps[i].applied_count, last_step);
            nothing_twice(&s.ps[i]);
        }
        assert_int_equal(s.workers[0].evaluated, 1);
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
        everybody_ended(&s, EXIT_DONE);
        for (int i = 0; i < ps; i++) {
            assert_int_equal(s.ps[i].applied_count, 9);
            nothing_twice(&s.ps[i]);
            for (int r = 0; r < 9; r++) {
                const struct applied *a = &s.ps[i].applied[r];
                assert_int_equal(a->step, r);
                assert_int_equal(a->gradients, workers);
                assert_int_equal(a->worker_count, workers);
                for (int w = 0; w < workers; w++) {
                    assert_int_equal(a->workers[w], w);
                    assert_int_equal(a->sequences[w], r + 1);
                }
            }
        }
        stage_close(&s);
    }
}

static void backup_workers_are_not_waited_for_and_their_late_gradients_are_dropped(void **state)
{
    uint64_t dropped = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct stage_options o = sync_options(2, 5, 12, seed);
        o.config.replicas_to_aggregate = 3;
        o.config.takes_all = false;
        o.drops_gradients = true;
        struct stage s;
        play(&s, &o);
        everybody_ended(&s, EXIT_DONE);
        for (int i = 0; i < 2; i++) {
            assert_int_equal(s.ps[i].applied_count, 12);
            nothing_twice(&s.ps[i]);
            for (int r = 0; r < 12; r++) {
                const struct applied *a = &s.ps[i].applied[r];
                assert_int_equal(a->worker_count, 3);
                assert_true(a->workers[0] < a->workers[1] && a->workers[1] < a->workers[2]);
                assert_memory_equal(a->workers, s.ps[0].applied[r].workers, sizeof a->workers);
            }
            dropped += ps_role_counters(s.ps[i].role).dropped_stale;
        }
        stage_close(&s);
    }
    assert_true(dropped > 0);
}

static void several_gradients_in_a_push_count_as_several(void **state)
{
    struct stage_options o = sync_options(1, 2, 4, 3);
    o.gradients_per_push = 3;
    o.config.replicas_to_aggregate = 6;
    struct stage s;
    play(&s, &o);
    everybody_ended(&s, EXIT_DONE);
    assert_int_equal(s.ps[0].applied_count, 4);
    assert_int_equal(s.ps[0].applied[0].gradients, 6);
    stage_close(&s);
}

static void too_stale_gradients_are_dropped_and_their_steps_taken_again(void **state)
{
    uint64_t dropped = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct stage_options o = async_options(1 + (int)(seed % 3), 6, 40, seed);
        o.config.max_staleness = 2;
        o.drops_gradients = true;
        struct stage s;
        play(&s, &o);
        everybody_ended(&s, EXIT_DONE);
        for (int i = 0; i < o.ps_count; i++) {
            assert_int_equal(s.ps[i].applied_count, 40);
            nothing_twice(&s.ps[i]);
        }
        dropped += ps_role_counters(s.ps[0].role).dropped_stale;
        stage_close(&s);
    }
    assert_true(dropped > 0);
}

static void a_ps_without_variables_is_legal(void **state)
{
    for (uint64_t seed = 0; seed < 20; seed++) {
        struct stage_options o = sync_options(3, 2, 5, seed);
        o.block_bytes[0] = o.block_bytes[2] = 0;
        struct stage s;
        play(&s, &o);
        everybody_ended(&s, EXIT_DONE);
        assert_int_equal(s.ps[1].applied_count, 5);
        assert_int_equal(s.ps[0].applied_count, 5);
        assert_int_equal(s.ps[2].applied_count, 0);
        stage_close(&s);
    }
}

static void a_repeated_or_skipped_push_is_never_applied(void **state)
{
    const struct stage_options o = async_options(1, 1, 10, 1);
    struct stage s;
    stage_open(&s, &o);
    stage_greet(&s);
    while (s.ps[0].applied_count < 5) assert_true(stage_step(&s));
    struct message m = {
        .type = MESSAGE_PUSH, .incarnation = 200, .sequence = 5, .code = 1, .length = 64};
    stage_send_to_ps(&s, 0, 0, &m); /* again */
    m.sequence = 1000;
    stage_send_to_ps(&s, 0, 0, &m); /* out of order */
    m.sequence = 6;
    m.incarnation = 7;
    stage_send_to_ps(&s, 0, 0, &m); /* of another life */
    stage_run(&s, EVENTS_MAX);
    everybody_ended(&s, EXIT_DONE);
    assert_int_equal(s.ps[0].applied_count, 10);
    assert_int_equal(ps_role_counters(s.ps[0].role).dropped_repeated, 3);
    nothing_twice(&s.ps[0]);
    stage_close(&s);
}

static void a_lost_worker_ends_the_others_with_a_retryable_code_and_its_name(void **state)
{
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        const struct stage_options o = sync_options(2, 3, 50, seed);
        struct stage s;
        stage_open(&s, &o);
        stage_greet(&s);
        stage_run(&s, 30 + (int)(seed % 60));
        stage_kill_worker(&s, 1);
        assert_true(stage_run(&s, EVENTS_MAX) < EVENTS_MAX);
        everybody_ended(&s, EXIT_LOST_PEER);
        assert_non_null(strstr(s.workers[2].text, "lost worker/1: killed"));
        stage_close(&s);
    }
}

static void a_lost_ps_ends_the_others_with_a_retryable_code_and_its_name(void **state)
{
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        const struct stage_options o = async_options(3, 2, 50, seed);
        struct stage s;
        stage_open(&s, &o);
        stage_greet(&s);
        stage_run(&s, 40 + (int)(seed % 60));
        stage_kill_ps(&s, 1);
        assert_true(stage_run(&s, EVENTS_MAX) < EVENTS_MAX);
        everybody_ended(&s, EXIT_LOST_PEER);
        assert_non_null(strstr(s.workers[0].text, "lost ps/1: killed"));
        stage_close(&s);
    }
}

static void a_failed_step_is_the_verdict_of_all_with_the_name_of_its_worker(void **state)
{
    const struct stage_options o = sync_options(2, 2, 50, 4);
    struct stage s;
    stage_open(&s, &o);
    stage_greet(&s);
    stage_run(&s, 60);
    struct actor *w = &s.workers[1];
    while (!w->is_computing) assert_true(stage_step(&s));
    w->is_computing = false;
    w->role->ops->done(w->role, ACTION_COMPUTE, ERR_NUMBER, "step 7: the loss is NaN", &w->outbox);
    stage_pass_time(&s, 1); /* carries its actions out */
    stage_run(&s, EVENTS_MAX);
    everybody_ended(&s, EXIT_NUMBER);
    assert_string_equal(s.workers[1].text, "step 7: the loss is NaN");
    assert_string_equal(s.workers[0].text, "worker/1: step 7: the loss is NaN");
    stage_close(&s);
}

static void
a_worker_that_stays_silent_is_named_and_not_waited_for_longer_than_the_limit(void **state)
{
    const struct stage_options o = sync_options(1, 3, 50, 4);
    struct stage s;
    stage_open(&s, &o);
    stage_greet(&s);
    stage_run(&s, 100);
    while (!s.workers[2].is_computing) assert_true(stage_step(&s));
    s.workers[2].is_computing = false; /* never done */
    stage_run(&s, EVENTS_MAX);
    assert_false(s.ps[0].has_ended);
    stage_pass_time(&s, 1);
    stage_pass_time(&s, 1001);
    stage_run(&s, EVENTS_MAX);
    everybody_ended(&s, EXIT_TIMEOUT);
    assert_non_null(strstr(s.ps[0].text, "worker/2"));
    assert_non_null(strstr(s.ps[0].text, "--step_timeout"));
    stage_close(&s);
}

static void a_stop_signal_is_the_verdict_of_all(void **state)
{
    const struct stage_options o = async_options(2, 3, 1000, 9);
    struct stage s;
    stage_open(&s, &o);
    stage_greet(&s);
    stage_run(&s, 200);
    struct role *role = s.ps[1].role;
    role->ops->stop(role, EXIT_TERMINATED, "ps/1 was stopped by SIGTERM", &s.ps[1].outbox);
    stage_pass_time(&s, 1);
    stage_run(&s, EVENTS_MAX);
    everybody_ended(&s, EXIT_TERMINATED);
    assert_non_null(strstr(s.workers[0].text, "ps/1 was stopped by SIGTERM"));
    stage_close(&s);
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
        cmocka_unit_test(a_repeated_or_skipped_push_is_never_applied),
        cmocka_unit_test(a_lost_worker_ends_the_others_with_a_retryable_code_and_its_name),
        cmocka_unit_test(a_lost_ps_ends_the_others_with_a_retryable_code_and_its_name),
        cmocka_unit_test(a_failed_step_is_the_verdict_of_all_with_the_name_of_its_worker),
        cmocka_unit_test(
            a_worker_that_stays_silent_is_named_and_not_waited_for_longer_than_the_limit),
        cmocka_unit_test(a_stop_signal_is_the_verdict_of_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
