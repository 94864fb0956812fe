/* test_roles_parts.c - pushes that come in parts: values go ahead of their round, and what has gone
 * ahead is taken back when the round turns out to be another one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include "core/cluster/role/verdict.h"
#include "tests/core/cluster/role/play.h"

#include <cmocka.h> /* last: it has a macro named fail */

enum { LAST_STEP = 20, PATIENCE_EVENTS = 2000 };

static struct stage_options parts_options(int ps, int workers, uint64_t seed)
{
    struct stage_options o = sync_options(ps, workers, LAST_STEP, seed);
    o.profile.has_parts = o.profile.advances = true;
    return o;
}

/* Until ps/0 has values of a round that is not whole; false: it ended first. */
static bool run_until_advanced(struct stage *s)
{
    for (int i = 0; i < PATIENCE_EVENTS && !s->ps[0].advanced; i++)
        if (!stage_step(s)) return false;
    return s->ps[0].advanced > 0;
}

/* Somebody who has not pushed the whole of it yet. */
static int find_unfinished(const struct stage *s)
{
    const int updates = stage_updates(s, 0);
    for (int w = 0; w < s->world.profile.workers; w++)
        if (ps_role_ledger(s->ps[0].role, w)->received <= (uint64_t)updates) return w;
    return NOBODY;
}

/* So many events on, a round that is not whole, of which values have gone ahead: somebody who has
 * not pushed the whole of it; NOBODY: it ended first, or all have. */
static int begin_amid_round(struct stage *s, const struct stage_options *o, int events)
{
    begin(s, o);
    stage_run(s, events);
    return run_until_advanced(s) ? find_unfinished(s) : NOBODY;
}

static bool worker_is_amid_step(const struct stage *s, int worker)
{
    return actor_is_at(&s->workers[worker], ACTION_COMPUTE);
}

static void values_go_ahead_and_every_round_is_whole(void **state)
{
    int advanced = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        const struct stage_options o = parts_options(1 + (int)(seed % 3), 3, seed);
        struct stage s;
        begin(&s, &o);
        while (run_until_advanced(&s)) {
            advanced++;
            while (s.ps[0].advanced && stage_step(&s)) {
            }
        }
        end_with(&s, EXIT_DONE);
        all_rounds_are_whole(&s, LAST_STEP);
        stage_close(&s);
    }
    assert_in_range(advanced, SEEDS, SEEDS * LAST_STEP * 2); /* not every round, but many */
}

static void a_worker_that_dies_between_two_parts_has_changed_nothing(void **state)
{
    int found = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        const struct stage_options o = parts_options(2, 3, seed);
        struct stage s;
        const int worker = begin_amid_round(&s, &o, 60 + (int)seed);
        const int updates = stage_updates(&s, 0);
        if (worker != NOBODY) {
            found++;
            stage_kill(&s, &s.workers[worker]);
            assert_int_equal(s.ps[0].advanced, 0);
            assert_int_equal(stage_updates(&s, 0), updates);
            settle(&s);
            assert_int_equal(s.ps[0].advanced, 0); /* nobody can go on without it */
            stage_restart(&s, &s.workers[worker]);
        }
        end_with(&s, EXIT_DONE);
        all_rounds_are_whole(&s, LAST_STEP);
        stage_close(&s);
    }
    assert_in_range(found, SEEDS / 2, SEEDS);
}

static void who_is_evicted_is_left_out_of_what_has_advanced(void **state)
{
    int found = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        const struct stage_options o = parts_options(1, 3, seed);
        struct stage s;
        const int worker = begin_amid_round(&s, &o, 60 + (int)seed);
        if (worker > CHIEF) {
            found++;
            stage_kill(&s, &s.workers[worker]);
            settle(&s);
            stage_pass_time(&s, WORKER_TIMEOUT_MS);
            end_with(&s, EXIT_DONE);
            nothing_twice(&s, 0);
            assert_int_equal(stage_updates(&s, 0), LAST_STEP);
        }
        stage_close(&s);
    }
    assert_in_range(found, SEEDS / 4, SEEDS);
}

static void a_push_whose_parts_came_over_another_link_comes_whole(void **state)
{
    int found = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        const struct stage_options o = parts_options(1 + (int)(seed % 2), 2, seed);
        struct stage s;
        const int worker = begin_amid_round(&s, &o, 40 + (int)seed);
        if (worker != NOBODY) {
            found++;
            stage_cut(&s, 0, worker);
            assert_int_equal(s.ps[0].advanced, 0);
            stage_run(&s, (int)(seed % 8));
            stage_connect(&s, 0, worker);
        }
        end_with(&s, EXIT_DONE);
        all_rounds_are_whole(&s, LAST_STEP);
        stage_close(&s);
    }
    assert_in_range(found, SEEDS / 2, SEEDS);
}

/* It computes for so long that it is evicted, and is back before the round is over. */
static void what_an_evicted_worker_computes_from_does_not_change_under_it(void **state)
{
    int found = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        const struct stage_options o = parts_options(1, 3, seed);
        struct stage s;
        begin(&s, &o);
        stage_run(&s, 40 + (int)seed);
        run_until_computing(&s, 1);
        for (int w = 0; w < 3; w++) stage_hang(&s, &s.workers[w]);
        stage_cut(&s, 0, 1);
        stage_pass_time(&s, WORKER_TIMEOUT_MS);
        stage_go_on(&s, &s.workers[0]);
        stage_go_on(&s, &s.workers[2]);
        stage_run(&s, (int)(seed % 16)); /* of the same round, and perhaps not all of it */
        found += worker_is_amid_step(&s, 0) || worker_is_amid_step(&s, 2);
        stage_hang(&s, &s.workers[0]);
        stage_hang(&s, &s.workers[2]);
        stage_connect(&s, 0, 1);
        stage_go_on(&s, &s.workers[1]);
        settle(&s);
        stage_go_on(&s, &s.workers[0]);
        stage_go_on(&s, &s.workers[2]);
        end_with(&s, EXIT_DONE);
        nothing_twice(&s, 0);
        stage_close(&s);
    }
    assert_in_range(found, SEEDS / 4, SEEDS);
}

static void plan(struct stage *s, bool is_looked_at)
{
    const struct overlap_rounds facts = {
        .is_wanted = true, .is_looked_at = is_looked_at, .can_undo = true};
    ps_role_plan_overlap(s->ps[0].role, &facts, &s->ps[0].outbox);
}

/* A visitor comes, who is to see the values of one step. */
static void values_are_whole_while_somebody_looks_at_them(void **state)
{
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        const struct stage_options o = parts_options(1, 3, seed);
        struct stage s;
        begin(&s, &o);
        assert_true(run_until_advanced(&s));
        const int updates = stage_updates(&s, 0);
        plan(&s, true);
        stage_flush(&s);
        for (int i = 0; i < PATIENCE_EVENTS && stage_updates(&s, 0) < updates + 3; i++) {
            assert_int_equal(s.ps[0].advanced, 0);
            assert_true(stage_step(&s));
        }
        plan(&s, false);
        assert_true(run_until_advanced(&s));
        end_with(&s, EXIT_DONE);
        all_rounds_are_whole(&s, LAST_STEP);
        stage_close(&s);
    }
}

static void where_rounds_do_not_take_all_nothing_advances(void **state)
{
    for (uint64_t seed = 0; seed < SEEDS / 4; seed++) {
        struct stage_options o =
            seed % 2 ? async_options(2, 3, LAST_STEP, seed) : parts_options(2, 3, seed);
        o.profile.has_parts = o.profile.advances = true;
        if (o.profile.config.is_sync) {
            o.profile.config.replicas_to_aggregate = 2;
            o.profile.config.takes_all = false;
            o.profile.drops_gradients = true;
        }
        struct stage s;
        begin(&s, &o);
        assert_false(run_until_advanced(&s));
        end_with(&s, EXIT_DONE);
        nothing_twice(&s, 0);
        stage_close(&s);
    }
}

/* What was sound before it stays as it is: the push itself will end the job. */
static void a_part_that_is_not_finite_changes_nothing(void **state)
{
    int found = 0;
    for (uint64_t seed = 0; seed < SEEDS / 4; seed++) {
        const struct stage_options o = parts_options(1, 2, seed);
        struct stage s;
        begin(&s, &o);
        assert_true(run_until_advanced(&s));
        const int worker = find_unfinished(&s);
        const uint64_t advanced = s.ps[0].advanced;
        struct message spoiled = {
            .type = MESSAGE_PART,
            .job = JOB_WORKER,
            .task = (uint32_t)worker,
            .generation = s.ps[0].config.generation,
            .part = {.push = ps_role_ledger(s.ps[0].role, worker)->received + 1,
                     .step = (uint64_t)stage_updates(&s, 0)},
        };
        const uint64_t ahead = ps_role_ahead(s.ps[0].role, worker, spoiled.part.push);
        int piece = 1;
        while (piece < PIECES && ahead >> piece & 1) piece++;
        spoiled.range = (struct range){piece * PIECE_FLOATS, (piece + 1) * PIECE_FLOATS};
        if (piece < PIECES) {
            found++;
            s.ps[0].role->ops->message(s.ps[0].role, JOB_WORKER, worker, &spoiled, &s.ps[0].outbox);
            stage_flush(&s);
            assert_int_equal(s.ps[0].advanced, advanced);
            assert_int_equal(ps_role_ahead(s.ps[0].role, worker, spoiled.part.push),
                             ahead | UINT64_C(1) << piece);
        }
        stage_close(&s);
    }
    assert_in_range(found, 1, SEEDS / 4);
}

/* What is no part that can come is looked at by nobody, and harms nobody. */
static void parts_that_belong_to_nothing_are_void(void **state)
{
    for (uint64_t seed = 0; seed < SEEDS / 4; seed++) {
        const struct stage_options o = parts_options(1, 2, seed);
        struct stage s;
        begin(&s, &o);
        run_until_computing(&s, 1);
        const uint64_t next = ps_role_ledger(s.ps[0].role, 1)->received + 1;
        const struct message part = {
            .type = MESSAGE_PART,
            .job = JOB_WORKER,
            .task = 1,
            .generation = s.ps[0].config.generation,
            .part = {.gradients = 1, .push = next},
            .range = {PIECE_FLOATS, 2 * PIECE_FLOATS},
        };
        struct message past = part, front = part, torn = part, beyond = part;
        past.part.push = next - 1;
        front.range = (struct range){0, PIECE_FLOATS};
        torn.range.end -= PIECE_FLOATS / 2;
        beyond.range.end = (PIECES + 1) * PIECE_FLOATS;
        const uint64_t before = ps_role_ahead(s.ps[0].role, 1, next);
        stage_send_to_ps(&s, 0, 1, &past);
        stage_send_to_ps(&s, 0, 1, &front);
        stage_send_to_ps(&s, 0, 1, &torn);
        stage_send_to_ps(&s, 0, 1, &beyond);
        assert_int_equal(ps_role_ahead(s.ps[0].role, 1, next), before);
        end_with(&s, EXIT_DONE);
        all_rounds_are_whole(&s, LAST_STEP);
        stage_close(&s);
    }
}

static void a_step_whose_values_do_not_all_come_is_computed_anew(void **state)
{
    int starved = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        const bool is_sync = seed % 2;
        struct stage_options o = is_sync ? parts_options(1 + (int)(seed % 3), 3, seed)
                                         : async_options(2, 3, LAST_STEP, seed);
        struct stage s;
        o.profile.starved_percent = 30;
        begin(&s, &o);
        if (seed % 4 < 2) cut_somewhere(&s, 400);
        end_with(&s, EXIT_DONE);
        if (is_sync)
            all_rounds_are_whole(&s, LAST_STEP);
        else
            all_ps_applied(&s, LAST_STEP);
        nothing_twice(&s, 0);
        starved += s.world.counters.starved;
        stage_close(&s);
    }
    assert_in_range(starved, SEEDS * 5, SEEDS * LAST_STEP * 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_go_ahead_and_every_round_is_whole),
        cmocka_unit_test(a_worker_that_dies_between_two_parts_has_changed_nothing),
        cmocka_unit_test(who_is_evicted_is_left_out_of_what_has_advanced),
        cmocka_unit_test(a_push_whose_parts_came_over_another_link_comes_whole),
        cmocka_unit_test(what_an_evicted_worker_computes_from_does_not_change_under_it),
        cmocka_unit_test(values_are_whole_while_somebody_looks_at_them),
        cmocka_unit_test(where_rounds_do_not_take_all_nothing_advances),
        cmocka_unit_test(a_part_that_is_not_finite_changes_nothing),
        cmocka_unit_test(parts_that_belong_to_nothing_are_void),
        cmocka_unit_test(a_step_whose_values_do_not_all_come_is_computed_anew),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
