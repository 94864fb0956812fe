/* test_roles_save.c - checkpoints, and jobs that are ended: what ps and chief decide. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "core/cluster/role/verdict.h"
#include "tests/core/cluster/role/play.h"

#include <cmocka.h> /* last: it has a macro named fail */

enum { LAST_STEP = 60 };

static struct stage_options saving(struct stage_options o)
{
    o.profile.saves = true;
    return o;
}

static struct checkpoint *newest(const struct stage *s)
{
    assert_int_not_equal(s->world.folder.newest, NOTHING);
    return &s->world.folder.at[s->world.folder.newest];
}

/* Until there are so many, which are asked for; the first comes unasked. */
static void run_until_saved(struct stage *s, int count)
{
    while (s->world.counters.published < count) {
        if (s->world.counters.published) stage_save(s); /* nothing where one is being made */
        assert_true(stage_step(s));
    }
}

/* ---- what is in a checkpoint ---- */

/* Every ps has the same pushes of every worker before its snapshot, the ledger says so, and all are
 * of the global step. */
static void all_shards_are_of_one_moment(const struct stage *s, const struct checkpoint *c)
{
    const struct shard *first = &c->shards[0];
    assert_int_equal(c->count, s->world.profile.ps_count);
    for (int i = 0; i < c->count; i++) {
        const struct shard *shard = &c->shards[i];
        const struct node *node = &s->world.nodes.at[shard->node];
        assert_int_equal(node->updates, c->step);
        for (int w = 0; w < s->world.profile.workers; w++) {
            assert_int_equal(shard->ledger[w].taken, node->sequences[w]);
            assert_int_equal(shard->ledger[w].taken, first->ledger[w].taken);
        }
    }
}

static void all_checkpoints_are_of_one_moment(const struct stage *s)
{
    for (int i = 0; i < s->world.counters.published; i++)
        all_shards_are_of_one_moment(s, &s->world.folder.at[stage_published(s, i)]);
}

static void save_now_and_then(struct stage *s)
{
    for (int i = 0; i < 8; i++) {
        stage_run(s, 30 + (int)stage_draw(s, 60));
        stage_save(s);
    }
}

static void check_saves(struct stage_options o, int *ret_saved)
{
    struct stage s;
    begin(&s, &o);
    save_now_and_then(&s);
    end_with(&s, EXIT_DONE);
    all_ps_applied(&s, LAST_STEP);
    assert_int_equal(s.world.counters.abandoned, 0);
    all_checkpoints_are_of_one_moment(&s);
    assert_int_equal(newest(&s)->step, LAST_STEP);
    const struct checkpoint *first = &s.world.folder.at[stage_published(&s, 0)];
    assert_true(first->step < 5); /* of where all begin, or nearly */
    assert_false(s.ps[0].is_held);
    *ret_saved += s.world.counters.published - 2;
    stage_close(&s);
}

static void an_async_checkpoint_has_every_push_on_all_ps_or_on_none(void **state)
{
    int saved = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++)
        check_saves(saving(async_options(3, 3, LAST_STEP, seed)), &saved);
    assert_true(saved > SEEDS);
}

static void a_sync_checkpoint_is_of_one_round_on_all_ps(void **state)
{
    int saved = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++)
        check_saves(saving(sync_options(3, 3, LAST_STEP, seed)), &saved);
    assert_true(saved > SEEDS);
}

static void a_checkpoint_is_consistent_where_gradients_are_dropped(void **state)
{
    int saved = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct stage_options stale = saving(async_options(3, 3, LAST_STEP, seed));
        struct stage_options backup = saving(sync_options(3, 3, LAST_STEP, seed));
        stale.profile.config.max_staleness = 1;
        backup.profile.config.replicas_to_aggregate = 2;
        backup.profile.config.takes_all = false;
        stale.profile.drops_gradients = backup.profile.drops_gradients = true;
        check_saves(seed % 2 ? stale : backup, &saved);
    }
    assert_true(saved > SEEDS);
}

static void the_last_checkpoint_comes_before_the_evaluation(void **state)
{
    const struct stage_options o = saving(async_options(2, 2, 9, 1));
    struct stage s;
    begin(&s, &o);
    while (!actor_is_at(&s.workers[CHIEF], ACTION_EVALUATE)) assert_true(stage_step(&s));
    assert_int_equal(s.world.counters.published, 2);
    assert_int_equal(newest(&s)->step, 9);
    end_with(&s, EXIT_DONE);
    stage_close(&s);
}

/* ---- what is done with it ---- */

static void after_the_loss_of_a_ps_all_go_on_from_the_last_checkpoint(void **state)
{
    int restored = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        const struct stage_options o = saving(sync_options(2, 3, LAST_STEP, seed));
        struct stage s;
        begin(&s, &o);
        run_until_applied(&s, 1);
        run_until_saved(&s, 2);
        stage_run(&s, (int)(seed % 100));
        stage_kill(&s, &s.ps[seed % 2]);
        stage_run(&s, (int)(seed % 5));
        stage_restart(&s, &s.ps[seed % 2]);
        while (s.workers[2].adopted < 2) assert_true(stage_step(&s));
        restored += s.workers[CHIEF].chosen >= stage_published(&s, 1);
        assert_true(s.world.profile.sees_folder[seed % 2] || s.ps[seed % 2].arrays == STAGE_ARRAYS);
        end_with(&s, EXIT_DONE);
        all_rounds_are_whole(&s, LAST_STEP);
        stage_close(&s);
    }
    assert_int_equal(restored, SEEDS);
}

static void the_chief_says_how_many_steps_were_lost(void **state)
{
    const struct stage_options o = saving(sync_options(2, 2, LAST_STEP, 3));
    struct stage s;
    begin(&s, &o);
    run_until_applied(&s, 10);
    run_until_saved(&s, 2);
    run_until_applied(&s, 20);
    stage_kill(&s, &s.ps[1]);
    settle(&s);
    uint64_t step = worker_role_global_step(s.workers[0].role), kept = newest(&s)->step;
    char wanted[ACTION_TEXT_MAX];
    snprintf(wanted, sizeof wanted,
             "ps/1 came back empty: all go back to step %d, %d steps are lost", (int)kept,
             (int)(step - kept));
    stage_restart(&s, &s.ps[1]);
    while (s.world.counters.generations < 2) assert_true(stage_step(&s));
    assert_string_equal(s.workers[0].said, wanted);
    stage_close(&s);
}

static void a_checkpoint_that_cannot_be_read_is_passed_over_for_the_one_before(void **state)
{
    struct stage_options o = saving(sync_options(2, 2, LAST_STEP, 5)); /* ps/0 sees the folder */
    struct stage s;
    begin(&s, &o);
    for (int i = 1; i <= 2; i++) {
        run_until_applied(&s, 10 * i);
        run_until_saved(&s, 1 + i);
    }
    newest(&s)->is_bad = true;
    stage_kill(&s, &s.ps[0]);
    stage_restart(&s, &s.ps[0]);
    while (s.workers[1].adopted < 2) assert_true(stage_step(&s));
    assert_int_equal(s.world.counters.generations, 3);
    assert_int_equal(s.workers[CHIEF].chosen, stage_published(&s, 1));
    end_with(&s, EXIT_DONE);
    all_rounds_are_whole(&s, LAST_STEP);
    stage_close(&s);
}

/* ---- what goes wrong with it ---- */

static void a_ps_lost_during_a_save_costs_the_checkpoint_and_holds_nobody_up(void **state)
{
    int abandoned = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        const struct stage_options o = async_options(3, 3, LAST_STEP, seed);
        struct stage s;
        begin(&s, &o);
        run_until_adopted(&s, 0);
        stage_save(&s);
        stage_run(&s, (int)(seed % 40));
        stage_kill(&s, &s.ps[2]);
        settle(&s);
        assert_int_equal(s.world.counters.published + s.world.counters.abandoned, 1);
        assert_false(s.ps[0].is_held);
        abandoned += s.world.counters.abandoned;
        stage_restart(&s, &s.ps[2]);
        end_with(&s, EXIT_DONE);
        all_ps_applied(&s, LAST_STEP);
        stage_close(&s);
    }
    assert_true(abandoned > 0 && abandoned < SEEDS);
}

static void run_until_it_can_save(struct stage *s)
{
    const struct role *chief = s->workers[0].role;
    while (!worker_role_can_save(chief) || worker_role_global_step(chief) <= newest(s)->step)
        assert_true(stage_step(s));
}

/* Who was asked for one keeps it in mind until then. */
static void a_chief_can_save_whenever_all_ps_serve_and_none_is_being_made(void **state)
{
    const struct stage_options o = saving(async_options(2, 2, LAST_STEP, 1));
    struct stage s;
    begin(&s, &o);
    const struct role *chief = s.workers[0].role;
    assert_false(worker_role_can_save(chief));
    run_until_saved(&s, 1);
    run_until_it_can_save(&s);
    stage_save(&s);
    assert_false(worker_role_can_save(chief)); /* one is being made */
    run_until_it_can_save(&s);
    stage_kill(&s, &s.ps[1]);
    assert_false(worker_role_can_save(chief));
    stage_restart(&s, &s.ps[1]);
    run_until_it_can_save(&s);
    stage_close(&s);
}

static void a_chief_lost_during_a_save_holds_nobody_up(void **state)
{
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        const struct stage_options o = async_options(2, 3, LAST_STEP, seed);
        struct stage s;
        begin(&s, &o);
        run_until_adopted(&s, 0);
        stage_save(&s);
        stage_run(&s, (int)(seed % 40));
        stage_kill(&s, &s.workers[0]);
        settle(&s);
        assert_false(s.ps[0].is_held);
        assert_true(stage_updates(&s, 0) >= LAST_STEP - 1);
        stage_restart(&s, &s.workers[0]);
        end_with(&s, EXIT_DONE);
        all_ps_applied(&s, LAST_STEP);
        stage_close(&s);
    }
}

static void cut_links_during_saves_leave_every_checkpoint_consistent(void **state)
{
    int saved = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        const struct stage_options o = async_options(3, 3, LAST_STEP, seed);
        struct stage s;
        begin(&s, &o);
        run_until_adopted(&s, 0);
        for (int i = 0; i < 10; i++) {
            stage_save(&s);
            cut_somewhere(&s, 60);
        }
        end_with(&s, EXIT_DONE);
        all_ps_applied(&s, LAST_STEP);
        all_checkpoints_are_of_one_moment(&s);
        saved += s.world.counters.published;
        stage_close(&s);
    }
    assert_true(saved > SEEDS);
}

static void a_save_that_takes_too_long_is_given_up_and_the_next_one_comes(void **state)
{
    const struct stage_options o = async_options(2, 2, LAST_STEP, 2);
    struct stage s;
    begin(&s, &o);
    run_until_applied(&s, 5);
    stage_save(&s);
    while (!s.ps[1].snapshot.is_active) assert_true(stage_step(&s));
    stage_hang(&s, &s.ps[1]);
    run_until_applied(&s, 20);
    stage_pass_time(&s, STAGE_LIMIT_MS);
    assert_int_equal(s.world.counters.abandoned, 1);
    assert_int_equal(s.world.counters.published, 0);
    stage_go_on(&s, &s.ps[1]);
    run_until_applied(&s, 40);
    stage_save(&s);
    end_with(&s, EXIT_DONE);
    assert_int_equal(s.world.counters.published, 1);
    stage_close(&s);
}

/* ---- ends ---- */

static struct actor *task_of(struct stage *s, int number)
{
    return number < s->world.profile.ps_count ? &s->ps[number]
                                              : &s->workers[number - s->world.profile.ps_count];
}

static void a_signal_to_any_task_ends_all_after_the_step_with_a_last_checkpoint(void **state)
{
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        const struct stage_options o =
            saving(seed % 2 ? async_options(2, 3, 1000, seed) : sync_options(2, 3, 1000, seed));
        struct stage s;
        begin(&s, &o);
        run_until_adopted(&s, 0);
        run_until_adopted(&s, 2);
        stage_run(&s, (int)seed);
        stage_leave(&s, task_of(&s, (int)(seed % 5)), EXIT_TERMINATED, "stopped by SIGTERM");
        end_with(&s, EXIT_TERMINATED);
        assert_non_null(strstr(s.workers[0].text, "stopped by SIGTERM"));
        assert_non_null(strstr(s.ps[1].text, "stopped by SIGTERM"));
        assert_int_equal(s.world.counters.evaluated, 0);
        all_ps_applied(&s, (int)newest(&s)->step);
        assert_true(newest(&s)->step < 100); /* the steps that were being computed */
        stage_close(&s);
    }
}

static void a_signal_ends_the_job_in_time_even_where_a_step_does_not_end(void **state)
{
    for (int task = 0; task < 5; task++) {
        const struct stage_options o = async_options(2, 3, 1000, (uint64_t)task);
        struct stage s;
        begin(&s, &o);
        run_until_applied(&s, 10);
        run_until_computing(&s, 1);
        stage_hang(&s, &s.workers[1]);
        stage_leave(&s, task_of(&s, task), EXIT_INTERRUPTED, "stopped by SIGINT");
        settle(&s);
        stage_pass_time(&s, STAGE_STOP_LIMIT_MS);
        for (int ps = 0; ps < 2; ps++) stage_connect(&s, ps, 1); /* it was hung up on */
        end_with(&s, EXIT_INTERRUPTED);
        stage_close(&s);
    }
}

static void a_job_that_ends_waits_a_third_of_its_time_for_a_worker_that_is_gone(void **state)
{
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        const struct stage_options o =
            saving(seed % 2 ? async_options(2, 3, 1000, seed) : sync_options(2, 3, 1000, seed));
        struct stage s;
        begin(&s, &o);
        run_until_applied(&s, 3);
        stage_run(&s, (int)seed);
        stage_kill(&s, &s.workers[2]);
        stage_leave(&s, task_of(&s, (int)(seed % 4)), EXIT_TERMINATED, "stopped by SIGTERM");
        settle(&s);
        stage_pass_time(&s, STAGE_STOP_LIMIT_MS / PS_STOP_PARTS);
        end_with(&s, EXIT_TERMINATED);
        assert_true(newest(&s)->step >= 3);
        stage_close(&s);
    }
}

/* Its link lives, and no push comes on it. */
static void hang_silently(struct stage *s, int worker, bool has_pushed)
{
    do {
        assert_true(stage_step(s));
    } while (!actor_is_at(&s->workers[worker], ACTION_COMPUTE) ||
             (has_pushed && !(ps_role_has_pushed(s->ps[0].role, worker) &&
                              ps_role_has_pushed(s->ps[1].role, worker))));
    stage_hang(s, &s->workers[worker]);
}

static void a_job_that_ends_has_time_for_its_checkpoint_whoever_is_silent(void **state)
{
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        const struct stage_options o =
            saving(seed % 2 ? async_options(2, 3, 1000, seed) : sync_options(2, 3, 1000, seed));
        const bool has_pushed = seed / 2 % 2;
        struct stage s;
        begin(&s, &o);
        hang_silently(&s, 2, has_pushed);
        run_until_applied(&s, seed % 2 ? 3 : has_pushed);
        stage_leave(&s, task_of(&s, (int)(seed % 3)), EXIT_TERMINATED, "stopped by SIGTERM");
        settle(&s);
        const uint64_t limit_ms = ps_silence_limit_ms(&s.world.profile.limits, has_pushed);
        stage_pass_time(&s, limit_ms - 1);
        nobody_ended(&s);
        stage_pass_time(&s, 1);
        settle(&s);
        stage_kill(&s, &s.workers[2]);
        end_with(&s, EXIT_TERMINATED);
        assert_int_equal(newest(&s)->step, ps_role_step(s.ps[0].role));
        assert_true(newest(&s)->step >= 1);
        stage_close(&s);
    }
}

/* As soon as the chief knows of a step that is not saved. */
static void begin_to_save(struct stage *s)
{
    const struct role *chief = s->workers[CHIEF].role;
    while (!worker_role_can_save(chief)) assert_true(stage_step(s));
    for (stage_save(s); worker_role_can_save(chief); stage_save(s)) assert_true(stage_step(s));
}

/* Asynchronous: everybody else waits until it has pushed, or is not waited for. */
static void a_checkpoint_waits_for_a_part_of_its_time_for_who_is_silent(void **state)
{
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        const struct stage_options o = saving(async_options(2, 3, LAST_STEP, seed));
        const bool has_pushed = seed % 2;
        struct stage s;
        begin(&s, &o);
        hang_silently(&s, 2, has_pushed);
        run_until_saved(&s, 1);
        const int before = s.world.counters.published;
        begin_to_save(&s);
        settle(&s);
        const int updates = stage_updates(&s, 0);
        assert_true(updates < LAST_STEP - 1);
        stage_pass_time(&s, ps_snapshot_limit_ms(&s.world.profile.limits, has_pushed));
        settle(&s);
        assert_true(s.world.counters.published > before);
        assert_int_equal(s.world.counters.abandoned, 0);
        all_checkpoints_are_of_one_moment(&s);
        assert_true(stage_updates(&s, 0) > updates); /* the others go on */
        stage_go_on(&s, &s.workers[2]);
        for (int ps = 0; ps < 2; ps++) stage_connect(&s, ps, 2);
        end_with(&s, EXIT_DONE);
        all_ps_applied(&s, LAST_STEP); /* its step was not lost */
        stage_close(&s);
    }
}

static void a_task_that_still_waits_for_the_others_ends_at_once_on_a_signal(void **state)
{
    for (int task = 0; task < 5; task++) {
        const struct stage_options o = async_options(2, 3, 1000, 1);
        struct stage s;
        stage_open(&s, &o);
        stage_leave(&s, task_of(&s, task), EXIT_TERMINATED, "stopped by SIGTERM");
        if (task_of(&s, task) == &s.workers[CHIEF]) stage_pass_time(&s, STAGE_STOP_LIMIT_MS);
        assert_true(task_of(&s, task)->has_ended);
        assert_int_equal(task_of(&s, task)->code, EXIT_TERMINATED);
        stage_close(&s);
    }
}

/* Whether the job was to end or the chief to leave: nobody else could begin it. */
static void a_chief_that_gets_a_signal_before_it_meets_a_ps_tells_all(void **state)
{
    for (int only_me = 0; only_me < 2; only_me++) {
        const struct stage_options o = async_options(2, 3, 1000, 1);
        struct stage s;
        stage_open(&s, &o);
        for (int ps = 0; ps < 2; ps++)
            for (int worker = 1; worker < 3; worker++) stage_connect(&s, ps, worker);
        if (only_me)
            stage_depart(&s, &s.workers[CHIEF]);
        else
            stage_leave(&s, &s.workers[CHIEF], EXIT_TERMINATED, "stopped by SIGTERM");
        assert_false(s.workers[CHIEF].has_ended);
        stage_connect(&s, 1, CHIEF);
        end_with(&s, EXIT_TERMINATED);
        stage_close(&s);
    }
}

/* It is cut off for a moment, or has died and comes again. */
static void a_ps_that_is_to_end_the_job_waits_for_the_chief_that_is_away(void **state)
{
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        const struct stage_options o =
            saving(seed % 2 ? async_options(2, 3, 1000, seed) : sync_options(2, 3, 1000, seed));
        const int ps = seed / 2 % 2;
        const bool dies = seed / 4 % 2;
        char text[ACTION_TEXT_MAX];
        struct stage s;
        begin(&s, &o);
        run_until_applied(&s, 3);
        stage_run(&s, (int)seed);
        if (dies)
            stage_kill(&s, &s.workers[CHIEF]);
        else
            stage_cut(&s, ps, CHIEF);
        stage_leave(&s, &s.ps[ps], EXIT_TERMINATED, "stopped by SIGTERM");
        stage_run(&s, (int)(seed % 20));
        nobody_ended(&s);
        assert_int_equal(ps_role_awaits_chief(s.ps[ps].role, text), STAGE_STOP_LIMIT_MS);
        stage_pass_time(&s, STAGE_STOP_LIMIT_MS / PS_STOP_PARTS);
        if (dies)
            stage_restart(&s, &s.workers[CHIEF]);
        else
            stage_connect(&s, ps, CHIEF);
        end_with(&s, EXIT_TERMINATED);
        all_ps_applied(&s, (int)newest(&s)->step);
        assert_true(newest(&s)->step >= 3);
        stage_close(&s);
    }
}

/* Without it no worker is left, and no checkpoint is made. */
static void the_only_worker_is_waited_for_where_the_job_is_to_end(void **state)
{
    struct stage_options o = saving(async_options(1, 1, 1000, 1));
    struct stage s;
    o.profile.config.worker_timeout_ms = STAGE_STOP_LIMIT_MS / PS_STOP_PARTS;
    begin(&s, &o);
    run_until_applied(&s, 3);
    stage_kill(&s, &s.workers[CHIEF]);
    stage_leave(&s, &s.ps[0], EXIT_TERMINATED, "stopped by SIGTERM");
    stage_pass_time(&s, STAGE_STOP_LIMIT_MS / 2);
    nobody_ended(&s);
    stage_restart(&s, &s.workers[CHIEF]);
    end_with(&s, EXIT_TERMINATED);
    assert_true(newest(&s)->step >= 3);
    stage_close(&s);
}

/* ps/1 has gone on without the chief, which is back, when the other worker pushes nothing. */
static void a_job_that_ends_without_any_worker_but_its_chief_is_not_lost(void **state)
{
    struct stage_options o = saving(sync_options(2, 2, 1000, 1));
    struct stage s;
    o.profile.config.worker_timeout_ms = STAGE_STOP_LIMIT_MS / PS_STOP_PARTS;
    begin(&s, &o);
    run_until_applied(&s, 3);
    stage_hang(&s, &s.workers[1]);
    settle(&s);
    stage_leave(&s, &s.ps[0], EXIT_TERMINATED, "stopped by SIGTERM");
    settle(&s);
    stage_cut(&s, 1, CHIEF);
    stage_pass_time(&s, STAGE_STOP_LIMIT_MS / 2);
    stage_connect(&s, 1, CHIEF);
    stage_pass_time(&s, STAGE_STOP_LIMIT_MS / 2 - 100);
    settle(&s);
    stage_kill(&s, &s.workers[1]);
    stage_pass_time(&s, 100);
    end_with(&s, EXIT_TERMINATED);
    stage_close(&s);
}

static void a_ps_that_is_to_end_the_job_says_that_the_chief_did_not_come(void **state)
{
    const struct stage_options o = saving(async_options(2, 3, 1000, 1));
    struct stage s;
    begin(&s, &o);
    run_until_applied(&s, 3);
    stage_kill(&s, &s.workers[CHIEF]);
    stage_leave(&s, &s.ps[0], EXIT_TERMINATED, "stopped by SIGTERM");
    settle(&s);
    nobody_ended(&s);
    stage_pass_time(&s, STAGE_STOP_LIMIT_MS);
    end_with(&s, EXIT_TERMINATED);
    assert_non_null(strstr(s.workers[1].text, "stopped by SIGTERM, without a last checkpoint: "
                                              "worker/0, which leads, was away for 0.5 s"));
    stage_close(&s);
}

static void a_signal_to_a_worker_that_comes_late_ends_the_job_with_a_last_checkpoint(void **state)
{
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        const struct stage_options o =
            saving(seed % 2 ? async_options(2, 3, 1000, seed) : sync_options(2, 3, 1000, seed));
        struct stage s;
        begin(&s, &o);
        run_until_applied(&s, 5);
        stage_kill(&s, &s.workers[2]);
        stage_restart(&s, &s.workers[2]);
        stage_cut(&s, 1, 2); /* without which it takes no part */
        stage_run(&s, 200 + (int)(seed % 10));
        stage_leave(&s, &s.workers[2], EXIT_TERMINATED, "stopped by SIGTERM");
        assert_true(s.workers[2].has_ended);
        assert_int_equal(s.workers[2].code, EXIT_TERMINATED);
        settle(&s);
        stage_kill(&s, &s.workers[2]);
        stage_pass_time(&s, STAGE_STOP_LIMIT_MS / PS_STOP_PARTS);
        end_with(&s, EXIT_TERMINATED);
        assert_true(newest(&s)->step >= 5);
        stage_close(&s);
    }
}

static void stop_by_hook(struct stage *s, uint64_t seed, int worker, int code)
{
    const struct stage_options o = saving(async_options(2, 3, 1000, seed));
    begin(s, &o);
    struct actor *w = &s->workers[worker];
    run_until_applied(s, 10);
    run_until_computing(s, worker);
    worker_role_finish(w->role, code, "a hook had enough", &w->outbox);
    stage_flush(s);
    end_with(s, code);
    assert_true(newest(s)->step < 100);
    all_ps_applied(s, (int)newest(s)->step);
}

static void a_hook_that_has_enough_ends_the_job_as_if_the_last_step_had_come(void **state)
{
    for (uint64_t seed = 0; seed < 50; seed++) {
        struct stage s;
        stop_by_hook(&s, seed, (int)(seed % 3), EXIT_DONE);
        assert_int_equal(s.world.counters.evaluated, 1);
        stage_close(&s);
    }
}

static void a_hook_that_ends_the_job_with_a_code_gives_it_to_all(void **state)
{
    for (uint64_t seed = 0; seed < 50; seed++) {
        struct stage s;
        stop_by_hook(&s, seed, (int)(seed % 3), EXIT_NUMBER);
        assert_non_null(strstr(s.workers[1].text, "a hook had enough"));
        assert_int_equal(s.world.counters.evaluated, 0);
        stage_close(&s);
    }
}

static void a_job_that_is_ending_survives_the_loss_of_a_ps(void **state)
{
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        const struct stage_options o = saving(sync_options(2, 2, 1000, seed));
        struct stage s;
        begin(&s, &o);
        run_until_applied(&s, 5);
        run_until_saved(&s, 1);
        stage_leave(&s, &s.workers[0], EXIT_TERMINATED, "stopped by SIGTERM");
        stage_run(&s, (int)(seed % 10));
        stage_kill(&s, &s.ps[1]);
        stage_run(&s, (int)(seed % 4));
        stage_restart(&s, &s.ps[1]);
        end_with(&s, EXIT_TERMINATED);
        stage_close(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_async_checkpoint_has_every_push_on_all_ps_or_on_none),
        cmocka_unit_test(a_sync_checkpoint_is_of_one_round_on_all_ps),
        cmocka_unit_test(a_checkpoint_is_consistent_where_gradients_are_dropped),
        cmocka_unit_test(the_last_checkpoint_comes_before_the_evaluation),
        cmocka_unit_test(after_the_loss_of_a_ps_all_go_on_from_the_last_checkpoint),
        cmocka_unit_test(the_chief_says_how_many_steps_were_lost),
        cmocka_unit_test(a_checkpoint_that_cannot_be_read_is_passed_over_for_the_one_before),
        cmocka_unit_test(a_ps_lost_during_a_save_costs_the_checkpoint_and_holds_nobody_up),
        cmocka_unit_test(a_chief_can_save_whenever_all_ps_serve_and_none_is_being_made),
        cmocka_unit_test(a_chief_lost_during_a_save_holds_nobody_up),
        cmocka_unit_test(cut_links_during_saves_leave_every_checkpoint_consistent),
        cmocka_unit_test(a_save_that_takes_too_long_is_given_up_and_the_next_one_comes),
        cmocka_unit_test(a_signal_to_any_task_ends_all_after_the_step_with_a_last_checkpoint),
        cmocka_unit_test(a_signal_ends_the_job_in_time_even_where_a_step_does_not_end),
        cmocka_unit_test(a_job_that_ends_waits_a_third_of_its_time_for_a_worker_that_is_gone),
        cmocka_unit_test(a_job_that_ends_has_time_for_its_checkpoint_whoever_is_silent),
        cmocka_unit_test(a_checkpoint_waits_for_a_part_of_its_time_for_who_is_silent),
        cmocka_unit_test(a_task_that_still_waits_for_the_others_ends_at_once_on_a_signal),
        cmocka_unit_test(a_chief_that_gets_a_signal_before_it_meets_a_ps_tells_all),
        cmocka_unit_test(a_ps_that_is_to_end_the_job_waits_for_the_chief_that_is_away),
        cmocka_unit_test(the_only_worker_is_waited_for_where_the_job_is_to_end),
        cmocka_unit_test(a_job_that_ends_without_any_worker_but_its_chief_is_not_lost),
        cmocka_unit_test(a_ps_that_is_to_end_the_job_says_that_the_chief_did_not_come),
        cmocka_unit_test(a_signal_to_a_worker_that_comes_late_ends_the_job_with_a_last_checkpoint),
        cmocka_unit_test(a_hook_that_has_enough_ends_the_job_as_if_the_last_step_had_come),
        cmocka_unit_test(a_hook_that_ends_the_job_with_a_code_gives_it_to_all),
        cmocka_unit_test(a_job_that_is_ending_survives_the_loss_of_a_ps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
