/* test_roles_lost.c - what ps and worker decide when one of them, or a link, is lost: at every
 * moment that a seed can find. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include "core/cluster/role/verdict.h"
#include "tests/core/cluster/role/play.h"

#include <cmocka.h> /* last: it has a macro named fail */

enum { LAST_STEP = 20, CUTS = 40 };

/* ---- workers ---- */

static void a_sync_round_waits_for_a_lost_worker_and_its_next_life_brings_its_gradient(void **state)
{
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        const struct stage_options o = sync_options(1 + (int)(seed % 3), 3, LAST_STEP, seed);
        struct stage s;
        begin(&s, &o);
        stage_run(&s, (int)seed);
        stage_kill(&s, &s.workers[seed % 3]);
        settle(&s);
        nobody_ended(&s);
        stage_restart(&s, &s.workers[seed % 3]);
        end_with(&s, EXIT_DONE);
        all_rounds_are_whole(&s, LAST_STEP);
        stage_close(&s);
    }
}

static bool lacks_a_push(const struct actor *ps, const struct actor *other, int worker)
{
    return ps_role_ledger(ps->role, worker)->received !=
           ps_role_ledger(other->role, worker)->received;
}

static void what_a_dead_worker_brought_to_one_ps_its_next_life_brings_to_the_others(void **state)
{
    int partial = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        const struct stage_options o = async_options(2, 3, 60, seed);
        struct stage s;
        begin(&s, &o);
        stage_run(&s, 20 + (int)seed);
        stage_kill(&s, &s.workers[1]);
        partial += lacks_a_push(&s.ps[0], &s.ps[1], 1);
        stage_restart(&s, &s.workers[1]);
        end_with(&s, EXIT_DONE);
        all_ps_applied(&s, 60);
        stage_close(&s);
    }
    assert_true(partial > 0);
}

/* One of the two showed its gradient to some ps only, the other to others. */
static bool wait_for_each_other(const struct stage *s)
{
    bool has_first = false, has_second = false;
    for (int ps = 0; ps < s->world.profile.ps_count; ps++) {
        uint64_t first = ps_role_ledger(s->ps[ps].role, 0)->received;
        uint64_t second = ps_role_ledger(s->ps[ps].role, 1)->received;
        has_first |= first > second;
        has_second |= second > first;
    }
    return has_first && has_second;
}

static void two_workers_that_died_between_two_ps_do_not_wait_for_each_other(void **state)
{
    int crossed = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        const struct stage_options o = sync_options(3, 3, LAST_STEP, seed);
        struct stage s;
        begin(&s, &o);
        stage_run(&s, 50 + (int)seed);
        stage_kill(&s, &s.workers[0]);
        stage_kill(&s, &s.workers[1]);
        crossed += wait_for_each_other(&s);
        settle(&s);
        stage_restart(&s, &s.workers[1]);
        stage_restart(&s, &s.workers[0]);
        end_with(&s, EXIT_DONE);
        all_rounds_are_whole(&s, LAST_STEP);
        stage_close(&s);
    }
    assert_true(crossed > 0);
}

static void a_dead_worker_does_no_harm_where_gradients_are_dropped(void **state)
{
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct stage_options stale = async_options(3, 4, 40, seed);
        struct stage_options backup = sync_options(3, 4, 40, seed);
        stale.profile.config.max_staleness = 1;
        backup.profile.config.replicas_to_aggregate = 2;
        backup.profile.config.takes_all = false;
        stale.profile.drops_gradients = backup.profile.drops_gradients = true;
        struct stage s;
        begin(&s, seed % 2 ? &stale : &backup);
        stage_run(&s, 20 + (int)seed);
        stage_kill(&s, &s.workers[1]);
        stage_run(&s, (int)stage_draw(&s, 20));
        stage_restart(&s, &s.workers[1]);
        end_with(&s, EXIT_DONE);
        all_ps_applied(&s, 40);
        stage_close(&s);
    }
}

static void async_workers_take_over_the_steps_of_one_that_does_not_come_back(void **state)
{
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        const struct stage_options o = async_options(1, 3, LAST_STEP, seed);
        struct stage s;
        begin(&s, &o);
        run_until_applied(&s, 1);
        stage_run(&s, (int)(seed % 40));
        stage_kill(&s, &s.workers[2]);
        settle(&s);
        stage_pass_time(&s, WORKER_TIMEOUT_MS);
        end_with(&s, EXIT_DONE);
        all_ps_applied(&s, LAST_STEP);
        stage_close(&s);
    }
}

static void a_sync_round_goes_on_without_a_worker_that_is_gone_too_long(void **state)
{
    struct stage_options o = sync_options(2, 3, LAST_STEP, 5);
    struct stage s;
    begin(&s, &o);
    run_until_applied(&s, 3);
    stage_kill(&s, &s.workers[2]);
    settle(&s);
    int before = stage_updates(&s, 0);
    stage_pass_time(&s, WORKER_TIMEOUT_MS - 1);
    settle(&s);
    nobody_ended(&s);
    assert_int_equal(stage_updates(&s, 0), before);
    stage_pass_time(&s, 1);
    assert_non_null(strstr(s.ps[1].said, "continues without worker/2"));
    end_with(&s, EXIT_DONE);
    assert_int_equal(stage_updates(&s, 0), LAST_STEP);
    assert_int_equal(stage_update(&s, 1, LAST_STEP - 1).gradients, 2);
    stage_close(&s);
}

static void say_absent(struct stage *s, int worker)
{
    for (int ps = 0; ps < s->world.profile.ps_count; ps++)
        ps_role_note_absent(s->ps[ps].role, worker, "no such file", &s->ps[ps].outbox);
    stage_pass_time(s, 1);
}

/* The last of the workers never comes. */
static void begin_without_the_last(struct stage *s, const struct stage_options *o)
{
    const int absent = o->profile.workers - 1;
    stage_open(s, o);
    stage_kill(s, &s->workers[absent]);
    for (int ps = 0; ps < o->profile.ps_count; ps++)
        for (int w = 0; w < absent; w++) stage_connect(s, ps, w);
    settle(s);
}

/* Its steps are the others'. */
static void who_cannot_come_is_not_waited_for(void **state)
{
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        const struct stage_options o = async_options(2, 3, LAST_STEP, seed);
        struct stage s;
        begin_without_the_last(&s, &o);
        assert_int_equal(stage_updates(&s, 0), LAST_STEP);
        stage_pass_time(&s, 1);
        nobody_ended(&s); /* it may come yet */
        say_absent(&s, 2);
        end_with(&s, EXIT_DONE);
        stage_close(&s);
    }
}

/* Neither is one that was here, and was started again as somebody else. */
static void who_cannot_come_back_is_not_waited_for(void **state)
{
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        const struct stage_options o = async_options(2, 3, LAST_STEP, seed);
        struct stage s;
        begin(&s, &o);
        run_until_computing(&s, 2);
        stage_kill(&s, &s.workers[2]);
        settle(&s);
        nobody_ended(&s);
        say_absent(&s, 2);
        end_with(&s, EXIT_DONE);
        assert_int_equal(stage_updates(&s, 0), LAST_STEP);
        stage_close(&s);
    }
}

/* A synchronous one's rows are read by nobody else: it has the time that one who is lost has to be
 * back, and then all end by its reason; whether it took part before or never did. */
static void a_share_of_one_who_cannot_come_ends_the_job(void **state)
{
    for (uint64_t seed = 0; seed < 2 * SEEDS; seed++) {
        const struct stage_options o = sync_options(2, 3, LAST_STEP, seed);
        const bool was_here = seed % 2;
        struct stage s;
        if (was_here) {
            begin(&s, &o);
            run_until_computing(&s, 2);
            stage_kill(&s, &s.workers[2]);
            settle(&s);
        } else {
            begin_without_the_last(&s, &o);
            stage_pass_time(&s, STAGE_LIMIT_MS / 3);
        }
        say_absent(&s, 2);
        stage_pass_time(&s, WORKER_TIMEOUT_MS - 2);
        nobody_ended(&s);
        stage_pass_time(&s, 1);
        end_with(&s, EXIT_INPUT);
        assert_non_null(strstr(s.ps[0].text, "worker/2 cannot take part, and nobody else reads its "
                                             "share of the rows: no such file"));
        stage_close(&s);
    }
}

/* No longer than for one that says nothing */
static void who_says_that_it_cannot_come_is_not_waited_for_any_longer(void **state)
{
    struct stage_options o = sync_options(2, 3, LAST_STEP, 1);
    struct stage s;
    o.profile.config.worker_timeout_ms = 10 * STAGE_LIMIT_MS;
    begin_without_the_last(&s, &o);
    say_absent(&s, 2);
    nobody_ended(&s);
    stage_pass_time(&s, STAGE_LIMIT_MS);
    end_with(&s, EXIT_INPUT);
    stage_close(&s);
}

/* Whose workers have fixed shares of rows that are all wanted, and need not wait for each other. */
static struct stage_options shared_options(bool is_sync, uint64_t seed)
{
    static const struct data_share share = {.rows = 80, .batch = 4, .workers = 3, .replicas = 1};
    struct stage_options o =
        is_sync ? sync_options(2, 3, LAST_STEP, seed) : async_options(2, 3, LAST_STEP, seed);
    o.profile.config.needs_everybody = true;
    if (is_sync) {
        o.profile.config.replicas_to_aggregate = 2;
        o.profile.config.takes_all = false;
        o.profile.drops_gradients = true;
    } else {
        coverage_begin(&o.profile.config.coverage, &share, NULL);
    }
    return o;
}

/* However soon the others are done with theirs. */
static void a_share_that_is_wanted_ends_the_job_though_others_can_finish(void **state)
{
    for (uint64_t seed = 0; seed < 2 * SEEDS; seed++) {
        const struct stage_options o = shared_options(seed % 2, seed);
        struct stage s;
        begin_without_the_last(&s, &o);
        say_absent(&s, 2);
        nobody_ended(&s);
        stage_pass_time(&s, STAGE_LIMIT_MS);
        end_with(&s, EXIT_INPUT);
        assert_non_null(strstr(s.ps[0].text, "worker/2 cannot take part, and nobody else reads its "
                                             "share of the rows: no such file"));
        stage_close(&s);
    }
}

/* However late the others are done with theirs. */
static void who_cannot_come_back_and_has_brought_its_share_ends_nothing(void **state)
{
    enum { SHARE = LAST_STEP / 3 };
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        const struct stage_options o = shared_options(false, seed);
        struct stage s;
        begin(&s, &o);
        run_until_computing(&s, 1);
        stage_hang(&s, &s.workers[1]);
        for (int ps = 0; ps < 2; ps++)
            while (ps_role_ledger(s.ps[ps].role, 2)->received < SHARE) assert_true(stage_step(&s));
        stage_kill(&s, &s.workers[2]);
        settle(&s);
        say_absent(&s, 2);
        stage_pass_time(&s, WORKER_TIMEOUT_MS);
        nobody_ended(&s);
        stage_go_on(&s, &s.workers[1]);
        end_with(&s, EXIT_DONE);
        assert_int_equal(stage_updates(&s, 0), LAST_STEP);
        stage_close(&s);
    }
}

static void a_reason_is_told_once(void **state)
{
    static const char *const reasons[] = {
        "", "", "no such file", "ps/0 said: no such file", "the spec differs", "no such file", ""};
    const struct stage_options o = sync_options(1, 3, LAST_STEP, 1);
    struct stage s;
    begin_without_the_last(&s, &o);
    const struct outbox *out = &s.ps[0].outbox;
    const int before = out->count;
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++) {
        ps_role_note_absent(s.ps[0].role, 2, reasons[i], &s.ps[0].outbox);
        assert_int_equal(out->count, before + 1); /* its line */
    }
    stage_pass_time(&s, STAGE_LIMIT_MS);
    end_with(&s, EXIT_INPUT);
    assert_non_null(strstr(s.ps[0].text, "share of the rows: no such file"));
    stage_close(&s);
}

/* Nobody else reads its rows, and all are wanted: half of them would not be what was asked for. */
static void a_share_that_nobody_reads_ends_the_job(void **state)
{
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct stage_options o = sync_options(2, 3, LAST_STEP, seed);
        struct stage s;
        o.profile.config.needs_everybody = true;
        begin_without_the_last(&s, &o);
        nobody_ended(&s);
        stage_pass_time(&s, STAGE_LIMIT_MS);
        end_with(&s, EXIT_TIMEOUT);
        assert_int_equal(stage_updates(&s, 0), 0);
        assert_non_null(strstr(s.ps[0].text, "worker/2 did not come"));
        stage_close(&s);
    }
}

/* Of an epoch that is shared out nobody goes beyond the end, however slow another one is. */
static void an_asynchronous_share_ends_where_the_epochs_do(void **state)
{
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct stage_options o = async_options(2, 3, 20, seed);
        struct stage s;
        const struct data_share share = {.rows = 80, .batch = 4, .workers = 3, .replicas = 1};
        o.profile.config.needs_everybody = true;
        coverage_begin(&o.profile.config.coverage, &share, NULL);
        begin(&s, &o);
        run_until_computing(&s, 1);
        stage_hang(&s, &s.workers[1]); /* for as long as the others have something to do */
        settle(&s);
        nobody_ended(&s);
        stage_go_on(&s, &s.workers[1]);
        end_with(&s, EXIT_DONE);
        for (int w = 0; w < 3; w++)
            assert_int_equal(ps_role_ledger(s.ps[0].role, w)->taken, w < 2 ? 7 : 6);
        stage_close(&s);
    }
}

/* As a made-up checkpoint has it: of 2^53 batches none is open, which are more epochs than anybody
 * could close one by one. */
static void a_queue_that_is_far_ahead_of_its_epochs_stops_nobody(void **state)
{
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct stage_options o = async_options(2, 3, 20, seed);
        struct stage s;
        const struct data_share share = {.rows = 80, .batch = 4, .workers = 1};
        struct batch_queue queue;
        int64_t numbers[QUEUE_NUMBERS_MAX];
        assert_true(batch_queue_open(&queue, 3, 1));
        queue.front = UINT64_C(1) << 53;
        batch_queue_numbers(&queue, numbers);
        coverage_begin(&o.profile.config.coverage, &share, NULL);
        o.profile.config.queue = numbers;
        o.profile.config.queue_numbers = batch_queue_count(&queue);
        begin(&s, &o);
        end_with(&s, EXIT_DONE);
        assert_int_equal(stage_updates(&s, 0), 20);
        stage_close(&s);
        batch_queue_free(&queue);
    }
}

static void a_worker_that_comes_back_late_is_counted_on_again(void **state)
{
    const struct stage_options o = sync_options(2, 3, 40, 6);
    struct stage s;
    begin(&s, &o);
    run_until_applied(&s, 3);
    stage_kill(&s, &s.workers[2]);
    settle(&s);
    int evicted_from = stage_updates(&s, 0);
    stage_pass_time(&s, WORKER_TIMEOUT_MS);
    run_until_applied(&s, evicted_from + 3);
    stage_restart(&s, &s.workers[2]);
    end_with(&s, EXIT_DONE);
    assert_int_equal(stage_updates(&s, 0), 40);
    assert_int_equal(stage_update(&s, 0, evicted_from).worker_count, 2);
    assert_int_equal(stage_update(&s, 0, 39).worker_count, 3);
    nothing_twice(&s, 0);
    nothing_twice(&s, 1);
    stage_close(&s);
}

/* The others bring theirs only when it was evicted and another life of it is there, which may hear
 * of the ps before it has joined; what it had pushed is in their round. */
static void the_push_of_an_evicted_worker_does_not_answer_its_next_life(void **state)
{
    int waiting = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        const struct stage_options o = sync_options(2, 3, LAST_STEP, seed);
        struct stage s;
        begin(&s, &o);
        run_until_applied(&s, 3);
        for (int w = 0; w < 2; w++) stage_hang(&s, &s.workers[w]);
        settle(&s);
        waiting += ps_role_ledger(s.ps[0].role, 2)->received > (uint64_t)stage_updates(&s, 0);
        stage_kill(&s, &s.workers[2]);
        stage_pass_time(&s, WORKER_TIMEOUT_MS);
        assert_non_null(strstr(s.ps[0].said, "continues without worker/2"));
        for (int w = 0; w < 2; w++) stage_go_on(&s, &s.workers[w]);
        stage_run(&s, (int)seed % 8);
        stage_restart(&s, &s.workers[2]);
        end_with(&s, EXIT_DONE);
        assert_int_equal(stage_updates(&s, 0), LAST_STEP);
        nothing_twice(&s, 0);
        nothing_twice(&s, 1);
        stage_close(&s);
    }
    assert_true(waiting > 0);
}

static void a_worker_that_never_comes_is_evicted_after_the_time_of_the_start(void **state)
{
    const struct stage_options o = sync_options(1, 2, LAST_STEP, 3);
    struct stage s;
    stage_open(&s, &o);
    stage_kill(&s, &s.workers[1]);
    stage_connect(&s, 0, 0);
    settle(&s);
    assert_int_equal(stage_updates(&s, 0), 0);
    stage_pass_time(&s, STAGE_LIMIT_MS);
    end_with(&s, EXIT_DONE);
    assert_int_equal(stage_updates(&s, 0), LAST_STEP);
    stage_close(&s);
}

static void with_too_few_workers_left_the_job_ends_retryably_and_says_so(void **state)
{
    struct stage_options o = sync_options(2, 3, LAST_STEP, 7);
    o.profile.config.min_workers = 3;
    struct stage s;
    begin(&s, &o);
    run_until_applied(&s, 3);
    stage_kill(&s, &s.workers[1]);
    settle(&s);
    stage_pass_time(&s, WORKER_TIMEOUT_MS);
    end_with(&s, EXIT_LOST_PEER);
    assert_non_null(strstr(s.workers[2].text, "worker/1 is gone for 2 s"));
    assert_non_null(strstr(s.workers[2].text, "fewer than 3 (train.min_workers)"));
    stage_close(&s);
}

static void without_a_chief_others_go_on_and_its_next_life_takes_nothing_back(void **state)
{
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        const struct stage_options o = async_options(2, 3, LAST_STEP, seed);
        struct stage s;
        begin(&s, &o);
        run_until_applied(&s, 3);
        stage_kill(&s, &s.workers[0]);
        settle(&s);
        nobody_ended(&s);
        assert_true(stage_updates(&s, 0) >= LAST_STEP - 1); /* but for its own ticket */
        int generations = s.world.counters.generations;
        stage_restart(&s, &s.workers[0]);
        end_with(&s, EXIT_DONE);
        assert_int_equal(s.world.counters.generations, generations);
        all_ps_applied(&s, LAST_STEP);
        assert_int_equal(s.world.counters.evaluated, 1);
        stage_close(&s);
    }
}

static void a_chief_that_stays_away_ends_the_job_retryably(void **state)
{
    const struct stage_options o = async_options(2, 3, LAST_STEP, 8);
    struct stage s;
    begin(&s, &o);
    run_until_applied(&s, 3);
    stage_kill(&s, &s.workers[0]);
    settle(&s);
    for (int ms = 0; ms < STAGE_RESTART_LIMIT_MS; ms += STAGE_LIMIT_MS / 2) {
        nobody_ended(&s);
        stage_pass_time(&s, STAGE_LIMIT_MS / 2);
        settle(&s);
    }
    end_with(&s, EXIT_LOST_PEER);
    assert_non_null(strstr(s.workers[1].text, "the chief, worker/0, is gone for 5 s"));
    stage_close(&s);
}

/* ---- ps ---- */

static void a_ps_that_comes_back_empty_takes_all_back_and_nobody_else_begins_anew(void **state)
{
    int again = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        const struct stage_options o = sync_options(2, 3, LAST_STEP, seed);
        struct stage s;
        begin(&s, &o);
        stage_run(&s, (int)seed);
        stage_kill(&s, &s.ps[seed % 2]);
        settle(&s);
        nobody_ended(&s);
        stage_restart(&s, &s.ps[seed % 2]);
        end_with(&s, EXIT_DONE);
        all_rounds_are_whole(&s, LAST_STEP);
        again += s.workers[2].adopted == 2;
        stage_close(&s);
    }
    assert_true(again > SEEDS / 2);
}

static void ps_and_workers_that_are_lost_together_come_together_again(void **state)
{
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        const struct stage_options o = sync_options(3, 3, LAST_STEP, seed);
        struct stage s;
        begin(&s, &o);
        stage_run(&s, (int)seed);
        for (int i = 0; i < 3; i++) {
            if (seed >> i & 1) stage_kill(&s, &s.ps[i]);
            if (seed >> (3 + i) & 1) stage_kill(&s, &s.workers[i]);
        }
        stage_run(&s, (int)(seed % 7));
        for (int i = 0; i < 3; i++) {
            if (!s.workers[i].is_alive) stage_restart(&s, &s.workers[i]);
            if (!s.ps[i].is_alive) stage_restart(&s, &s.ps[i]);
        }
        end_with(&s, EXIT_DONE);
        all_rounds_are_whole(&s, LAST_STEP);
        stage_close(&s);
    }
}

static void a_ps_that_is_lost_while_the_generation_begins_begins_another(void **state)
{
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        const struct stage_options o = async_options(3, 2, LAST_STEP, seed);
        struct stage s;
        begin(&s, &o);
        for (int i = 0; i < 5; i++) { /* of few events each */
            stage_run(&s, (int)stage_draw(&s, 12));
            stage_kill(&s, &s.ps[seed % 3]);
            stage_run(&s, (int)stage_draw(&s, 4));
            stage_restart(&s, &s.ps[seed % 3]);
        }
        end_with(&s, EXIT_DONE);
        all_ps_applied(&s, LAST_STEP);
        stage_close(&s);
    }
}

/* One that holds nothing has no part in the save, and yet all begin again without it. */
static void what_all_begin_with_is_saved_though_an_empty_ps_is_lost_meanwhile(void **state)
{
    int abandoned = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct stage_options o = async_options(3, 2, LAST_STEP, seed);
        o.profile.saves = true;
        o.profile.has_variables[2] = false;
        struct stage s;
        begin(&s, &o);
        while (!s.workers[CHIEF].save_generation) assert_true(stage_step(&s));
        stage_run(&s, (int)(seed % 40));
        stage_kill(&s, &s.ps[2]);
        stage_restart(&s, &s.ps[2]);
        end_with(&s, EXIT_DONE);
        assert_int_equal(s.world.folder.at[stage_published(&s, 0)].step, 0);
        abandoned += s.world.counters.abandoned;
        stage_close(&s);
    }
    assert_true(abandoned > 0 && abandoned < SEEDS);
}

/* ---- links ---- */

static void over_a_new_link_a_lost_push_comes_again_and_is_never_applied_twice(void **state)
{
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        const struct stage_options o = sync_options(2, 3, 60, seed);
        struct stage s;
        begin(&s, &o);
        for (int i = 0; i < CUTS; i++) cut_somewhere(&s, 25);
        end_with(&s, EXIT_DONE);
        all_rounds_are_whole(&s, 60);
        stage_close(&s);
    }
}

static void cut_links_cost_no_step_in_asynchronous_mode(void **state)
{
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct stage_options o = async_options(3, 3, 100, seed);
        o.profile.config.max_staleness = seed % 2 ? 1 : -1;
        o.profile.drops_gradients = seed % 2;
        struct stage s;
        begin(&s, &o);
        run_until_adopted(&s, 0); /* before that a snapshot may begin another generation */
        for (int i = 0; i < CUTS; i++) cut_somewhere(&s, 25);
        end_with(&s, EXIT_DONE);
        all_ps_applied(&s, 100);
        assert_int_equal(s.workers[1].adopted, 1);
        stage_close(&s);
    }
}

/* ---- the start ---- */

/* What the chief does when its one ps is there, newly or again, and says what it has: the
 * generation that it asks to go back to. */
static uint64_t choose_after(struct role *chief, uint32_t state, uint64_t generation)
{
    struct outbox out = {0};
    const struct message m = {
        .type = MESSAGE_STATE, .state.state = state, .generation = generation};
    chief->ops->peer_up(chief, JOB_PS, 0, 7, &out);
    chief->ops->message(chief, JOB_PS, 0, &m, &out);
    assert_int_equal(out.count > 0 ? out.at[out.count - 1].type : ACTION_END, ACTION_CHOOSE);
    const uint64_t wanted = out.at[out.count - 1].choose.generation;
    outbox_empty(&out);
    worker_role_chosen(
        chief, &(struct choice){.text = "", .generation = generation + 1, .arrays = 1}, &out);
    outbox_free(&out);
    return wanted;
}

static void lose_ps(struct role *chief)
{
    struct outbox out = {0};
    chief->ops->peer_lost(chief, JOB_PS, 0, "closed the connection", &out);
    outbox_free(&out);
}

/* Before anybody was told to serve there are no steps to go back for, with or without a
 * checkpoint. */
static void a_start_whose_link_is_lost_begins_anew(void **state)
{
    static const int64_t floats[1] = {1};
    const struct worker_options o = {
        .ps_count = 1, .workers = 1, .incarnation = 1, .block_floats = floats};
    struct role *chief = worker_role_new(&o);
    struct outbox out = {0};
    chief->ops->start(chief, 1, &out);
    assert_int_equal(choose_after(chief, PS_EMPTY, 0), 0);
    lose_ps(chief);
    assert_int_equal(choose_after(chief, PS_READY, 1), 0);
    const struct message ready = {
        .type = MESSAGE_READY, .ready.outcome = READY_RESTORED, .generation = 2};
    chief->ops->message(chief, JOB_PS, 0, &ready, &out);
    outbox_free(&out);
    lose_ps(chief);
    assert_int_equal(choose_after(chief, PS_EMPTY, 0), 2);
    worker_role_free(chief);
}

/* A chief may have ended as it told the ps what to hold, before any of them served. */
static void a_job_is_in_progress_where_a_ps_is_of_a_generation(void **state)
{
    static const int64_t floats[1] = {1};
    const struct worker_options o = {
        .ps_count = 1, .workers = 1, .incarnation = 1, .block_floats = floats};
    const uint32_t states[] = {PS_EMPTY, PS_READY, PS_SERVING};
    for (int i = 0; i < 3; i++) {
        struct role *chief = worker_role_new(&o);
        struct outbox out = {0};
        const struct message m = {
            .type = MESSAGE_STATE, .state.state = states[i], .generation = (uint64_t)i};
        chief->ops->start(chief, 1, &out);
        assert_false(worker_role_is_in_progress(chief));
        chief->ops->peer_up(chief, JOB_PS, 0, 7, &out);
        chief->ops->message(chief, JOB_PS, 0, &m, &out);
        assert_int_equal(worker_role_is_in_progress(chief), i > 0);
        lose_ps(chief);
        assert_false(worker_role_is_in_progress(chief));
        outbox_free(&out);
        worker_role_free(chief);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_job_is_in_progress_where_a_ps_is_of_a_generation),
        cmocka_unit_test(a_start_whose_link_is_lost_begins_anew),
        cmocka_unit_test(
            a_sync_round_waits_for_a_lost_worker_and_its_next_life_brings_its_gradient),
        cmocka_unit_test(what_a_dead_worker_brought_to_one_ps_its_next_life_brings_to_the_others),
        cmocka_unit_test(two_workers_that_died_between_two_ps_do_not_wait_for_each_other),
        cmocka_unit_test(a_dead_worker_does_no_harm_where_gradients_are_dropped),
        cmocka_unit_test(async_workers_take_over_the_steps_of_one_that_does_not_come_back),
        cmocka_unit_test(a_sync_round_goes_on_without_a_worker_that_is_gone_too_long),
        cmocka_unit_test(a_worker_that_comes_back_late_is_counted_on_again),
        cmocka_unit_test(an_asynchronous_share_ends_where_the_epochs_do),
        cmocka_unit_test(a_queue_that_is_far_ahead_of_its_epochs_stops_nobody),
        cmocka_unit_test(who_cannot_come_is_not_waited_for),
        cmocka_unit_test(who_cannot_come_back_is_not_waited_for),
        cmocka_unit_test(a_share_of_one_who_cannot_come_ends_the_job),
        cmocka_unit_test(who_says_that_it_cannot_come_is_not_waited_for_any_longer),
        cmocka_unit_test(a_share_that_is_wanted_ends_the_job_though_others_can_finish),
        cmocka_unit_test(who_cannot_come_back_and_has_brought_its_share_ends_nothing),
        cmocka_unit_test(a_reason_is_told_once),
        cmocka_unit_test(a_share_that_nobody_reads_ends_the_job),
        cmocka_unit_test(the_push_of_an_evicted_worker_does_not_answer_its_next_life),
        cmocka_unit_test(a_worker_that_never_comes_is_evicted_after_the_time_of_the_start),
        cmocka_unit_test(with_too_few_workers_left_the_job_ends_retryably_and_says_so),
        cmocka_unit_test(without_a_chief_others_go_on_and_its_next_life_takes_nothing_back),
        cmocka_unit_test(a_chief_that_stays_away_ends_the_job_retryably),
        cmocka_unit_test(a_ps_that_comes_back_empty_takes_all_back_and_nobody_else_begins_anew),
        cmocka_unit_test(ps_and_workers_that_are_lost_together_come_together_again),
        cmocka_unit_test(a_ps_that_is_lost_while_the_generation_begins_begins_another),
        cmocka_unit_test(what_all_begin_with_is_saved_though_an_empty_ps_is_lost_meanwhile),
        cmocka_unit_test(over_a_new_link_a_lost_push_comes_again_and_is_never_applied_twice),
        cmocka_unit_test(cut_links_cost_no_step_in_asynchronous_mode),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
