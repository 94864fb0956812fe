/* test_roles_resize.c - a job that is resized, or continues as it is: what ps and
 * chief decide. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include "core/cluster/role/verdict.h"
#include "tests/core/cluster/role/play.h"

#include <cmocka.h> /* last: it has a macro named fail */

enum { LAST_STEP = 60, ASKED_AT = 20, MIDDLE = 60, TICKS_MS = 200 };

static struct stage_options moving(bool is_sync, uint64_t seed)
{
    const int ps = 1 + (int)(seed % 3), workers = 1 + (int)(seed / 3 % 4);
    struct stage_options o = (is_sync ? sync_options : async_options)(ps, workers, LAST_STEP, seed);
    o.profile.saves = true;
    return o;
}

static bool has_moved(const struct actor *actor)
{
    return actor->has_ended && actor->resizes_to.count[JOB_PS] > 0;
}

static int count_moved(const struct stage *s)
{
    int moved = 0;
    for (int i = 0; i < s->world.profile.ps_count; i++) moved += has_moved(&s->ps[i]);
    for (int i = 0; i < s->world.profile.workers; i++) moved += has_moved(&s->workers[i]);
    return moved;
}

static int count_tasks(const struct stage *s)
{
    return s->world.profile.ps_count + s->world.profile.workers;
}

/* Every shard of the step that the job is resized at. */
static void moves_from_one_moment(const struct stage *s)
{
    const struct checkpoint *c = &s->world.folder.at[s->world.folder.newest];
    for (int ps = 0; ps < s->world.profile.ps_count; ps++)
        assert_int_equal(node_of(&s->world, c->shards[ps].node)->updates, c->step);
}

/* And nothing has been applied since. */
static void moves_from_all_that_was_done(const struct stage *s)
{
    const struct checkpoint *c = &s->world.folder.at[s->world.folder.newest];
    moves_from_one_moment(s);
    for (int ps = 0; ps < s->world.profile.ps_count; ps++)
        assert_int_equal(stage_updates(s, ps), c->step);
}

/* What a greeting tells who was away when the others moved. */
static void greet_with(struct stage *s, struct actor *actor, const struct membership *membership)
{
    if (!actor_is_running(actor)) return;
    actor->role->ops->resize(actor->role, membership, &actor->outbox);
    stage_flush(s);
    assert_true(has_moved(actor));
}

static void all_meet(struct stage *s)
{
    const struct membership membership = {
        1, {s->world.profile.ps_count, s->world.profile.workers + 2}};
    for (int i = 0; i < s->world.profile.ps_count; i++) greet_with(s, &s->ps[i], &membership);
    for (int i = 0; i < s->world.profile.workers; i++) greet_with(s, &s->workers[i], &membership);
}

/* Or nobody was resized, and the job continues; where a worker must bring a push again that one ps
 * has and another lacks, when the checkpoint is given up, or when that ps has hung up on it: it
 * comes back. */
static void all_move_or_nobody(struct stage *s)
{
    settle(s);
    if (!count_moved(s)) {
        stage_pass_time(s, STAGE_SAVE_LIMIT_MS);
        stage_greet(s);
    }
    settle(s);
    if (count_moved(s)) {
        moves_from_one_moment(s);
        all_meet(s);
    } else {
        end_with(s, EXIT_DONE);
        all_ps_applied(s, LAST_STEP);
    }
}

static void begin_moving(struct stage *s, const struct stage_options *o)
{
    begin(s, o);
    run_until_applied(s, ASKED_AT);
    assert_null(stage_scale(s, 2));
}

static void for_all(void (*check)(bool is_sync, uint64_t seed))
{
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        check(true, seed);
        check(false, seed);
    }
}

static void check_all_move(bool is_sync, uint64_t seed)
{
    struct stage s;
    const struct stage_options o = moving(is_sync, seed);
    begin_moving(&s, &o);
    settle(&s);
    assert_int_equal(count_moved(&s), count_tasks(&s));
    for (int w = 0; w < o.profile.workers; w++) {
        assert_int_equal(s.workers[w].resizes_to.resizes, 1);
        assert_int_equal(s.workers[w].resizes_to.count[JOB_WORKER], o.profile.workers + 2);
        assert_int_equal(s.workers[w].resizes_to.count[JOB_PS], o.profile.ps_count);
    }
    moves_from_all_that_was_done(&s);
    assert_int_equal(s.ps[0].refused, 0);
    stage_close(&s);
}

static void everybody_moves_from_all_that_was_done(void **state)
{
    for_all(check_all_move);
}

static void check_failed_save(bool is_sync, uint64_t seed)
{
    struct stage s;
    const struct stage_options o = moving(is_sync, seed);
    begin(&s, &o);
    run_until_applied(&s, ASKED_AT);
    s.world.disk_fails_until_us = UINT64_MAX;
    assert_null(stage_scale(&s, 1));
    assert_string_equal(stage_scale(&s, 1), "it is being resized already");
    while (!s.ps[0].refused) assert_true(stage_step(&s));
    s.world.disk_fails_until_us = 0;
    end_with(&s, EXIT_DONE);
    assert_int_equal(count_moved(&s), 0);
    all_ps_applied(&s, LAST_STEP);
    nothing_twice(&s, 0);
    stage_close(&s);
}

static void a_job_that_cannot_save_goes_on(void **state)
{
    for_all(check_failed_save);
}

static struct actor *draw_actor(struct stage *s)
{
    const int at = (int)stage_draw(s, (uint64_t)count_tasks(s));
    const int ps_count = s->world.profile.ps_count;
    return at < ps_count ? &s->ps[at] : &s->workers[at - ps_count];
}

static void check_death(bool is_sync, uint64_t seed)
{
    struct stage s;
    const struct stage_options o = moving(is_sync, seed);
    begin_moving(&s, &o);
    stage_run(&s, (int)stage_draw(&s, MIDDLE));
    struct actor *victim = draw_actor(&s);
    stage_kill(&s, victim);
    stage_pass_time(&s, TICKS_MS);
    if (s.world.first_ended == NOTHING) stage_restart(&s, victim); /* nobody was resized yet */
    all_move_or_nobody(&s);
    stage_close(&s);
}

static void a_death_in_the_middle_moves_all_or_nobody(void **state)
{
    for_all(check_death);
}

/* Between two looks at the clock: whoever asked hears of it all the same, and may ask again. */
static void check_chief_back(bool is_sync, uint64_t seed)
{
    struct stage s;
    const struct stage_options o = moving(is_sync, seed);
    begin_moving(&s, &o);
    struct actor *chief = &s.workers[CHIEF];
    stage_run(&s, (int)stage_draw(&s, 4));
    const bool dies = seed % 2;
    if (count_moved(&s) == 0) {
        if (dies)
            stage_kill(&s, chief);
        else
            stage_cut(&s, 0, CHIEF);
        assert_true(s.ps[0].refused || count_moved(&s));
        if (dies)
            stage_restart(&s, chief);
        else
            stage_connect(&s, 0, CHIEF);
    }
    all_move_or_nobody(&s);
    stage_close(&s);
}

static void a_chief_that_is_back_at_once_has_not_been_asked(void **state)
{
    for_all(check_chief_back);
}

static void check_lost_link(bool is_sync, uint64_t seed)
{
    struct stage s;
    const struct stage_options o = moving(is_sync, seed);
    begin_moving(&s, &o);
    cut_somewhere(&s, MIDDLE);
    all_move_or_nobody(&s);
    stage_close(&s);
}

static void a_link_that_is_lost_moves_all_or_nobody(void **state)
{
    for_all(check_lost_link);
}

static void who_is_about_to_end_does_not_move(void **state)
{
    struct stage s;
    const struct stage_options o = moving(false, 7);
    begin(&s, &o);
    assert_string_equal(stage_scale(&s, 1), "it has not begun to train, or begins again");
    run_until_applied(&s, ASKED_AT);
    stage_leave(&s, &s.ps[0], EXIT_TERMINATED, "stopped");
    assert_string_equal(stage_scale(&s, 1), "it is to end");
    end_with(&s, EXIT_TERMINATED);
    assert_int_equal(count_moved(&s), 0);
    stage_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everybody_moves_from_all_that_was_done),
        cmocka_unit_test(a_job_that_cannot_save_goes_on),
        cmocka_unit_test(a_death_in_the_middle_moves_all_or_nobody),
        cmocka_unit_test(a_chief_that_is_back_at_once_has_not_been_asked),
        cmocka_unit_test(a_link_that_is_lost_moves_all_or_nobody),
        cmocka_unit_test(who_is_about_to_end_does_not_move),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
