/* test_replicas.c - a ps that another one holds the same as: one role and what its peers say, word
 * by word. */
#include <endian.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/replicas.h"
#include "core/cluster/role/ps_role.h"
#include "core/cluster/role/verdict.h"
#include "core/cluster/role/worker_role.h"
#include "tests/core/cluster/role/scene.h"
#include "tests/fuzz/lies.h"

#include <cmocka.h> /* last: it has a macro named fail */

enum {
    GENERATION = 7,
    BLOCK_FLOATS = 64,
    PS_COUNT = 3, /* ps/2 follows ps/1 */
    HOMES = 2,
    WORKERS = 2,
    LIMIT_MS = 60000,
    GONE_MS = 1000,
    TICK_MS = 100,
    LAST_STEP = 10,
#ifdef __SANITIZE_ADDRESS__
    EVERY = 7, /* of so many lies one is said: a sanitizer is slow, and the plain build says all */
#else
    EVERY = 1,
#endif
};
#define ONLY(ps) (UINT64_C(1) << (ps))

static const struct wait_limits limits = {
    .start_ms = LIMIT_MS,
    .step_ms = LIMIT_MS,
    .end_ms = LIMIT_MS,
    .restart_ms = LIMIT_MS,
    .chief_ms = LIMIT_MS,
    .ps_ms = GONE_MS,
    .stop_ms = LIMIT_MS,
    .save_ms = LIMIT_MS,
};

/* What is said again at each tick is said of what is so by then. */
static const struct message *last_sent(const struct scene *s, int peer, enum message_type type)
{
    const struct message *last = NULL;
    for (int i = 0; i < s->out.count; i++) {
        const struct action *a = &s->out.at[i];
        if (a->type == ACTION_SEND && a->send.peer == peer && a->send.message.type == type)
            last = &a->send.message;
    }
    return last;
}

static void pass(struct scene *s, uint64_t for_ms)
{
    outbox_empty(&s->out);
    for (const uint64_t until_ms = s->now_ms + for_ms; s->now_ms < until_ms;) {
        s->now_ms += TICK_MS;
        s->role->ops->tick(s->role, s->now_ms, &s->out);
    }
}

/* ---- a worker ---- */

static void say_state(struct scene *s, int ps, enum ps_state state)
{
    say(s, ps,
        &(struct message){.type = MESSAGE_STATE,
                          .generation = state == PS_EMPTY ? 0 : GENERATION,
                          .state = {.state = state, .last_step = LAST_STEP}});
}

static void say_gone(struct scene *s, uint64_t gone)
{
    say(s, 0,
        &(struct message){
            .type = MESSAGE_LEADS, .generation = GENERATION, .leads = {.gone = gone}});
}

/* Of the last JOIN that it got; what was said before holds. */
static void answer(struct scene *s, int ps, uint64_t step)
{
    static const uint64_t none[LEDGER_NUMBERS];
    const struct message *join = last_sent(s, ps, MESSAGE_JOIN);
    assert_non_null(join);
    const struct message ledger = {.type = MESSAGE_LEDGER,
                                   .generation = GENERATION,
                                   .ledger = {.step = step, .join = join->join.number},
                                   .body = none,
                                   .body_bytes = sizeof none};
    const struct message values = {
        .type = MESSAGE_VALUES, .generation = GENERATION, .values = {VALUES_TICKET, 0, step, 0}};
    s->role->ops->message(s->role, JOB_PS, ps, &ledger, &s->out);
    s->role->ops->message(s->role, JOB_PS, ps, &values, &s->out);
}

static void open_lending(struct scene *s, int task, bool lends_windows)
{
    static const int64_t floats[PS_COUNT] = {BLOCK_FLOATS, BLOCK_FLOATS, BLOCK_FLOATS};
    const struct worker_options o = {.task = task,
                                     .ps_count = PS_COUNT,
                                     .homes = HOMES,
                                     .workers = WORKERS,
                                     .incarnation = 1,
                                     .block_floats = floats,
                                     .gradients_per_push = 1,
                                     .is_sync = true,
                                     .lends_windows = lends_windows,
                                     .saves = true,
                                     .limits = limits,
                                     .worker_timeout_ms = LIMIT_MS};
    *s = (struct scene){.role = worker_role_new(&o), .peers = JOB_PS};
    s->role->ops->start(s->role, 0, &s->out);
    for (int ps = 0; ps < PS_COUNT; ps++) meet(s, ps);
}

static void open_greeted(struct scene *s, int task)
{
    open_lending(s, task, false);
}

static void open_worker(struct scene *s, int task)
{
    open_greeted(s, task);
    for (int ps = 0; ps < PS_COUNT; ps++) say_state(s, ps, PS_SERVING);
}

/* It computes its first step. */
static void open_computing(struct scene *s, int task)
{
    open_worker(s, task);
    for (int ps = 0; ps < PS_COUNT; ps++) answer(s, ps, 0);
    assert_true(find(s, ACTION_COMPUTE) >= 0);
}

static void a_push_goes_to_both_that_hold_the_same(void **state)
{
    struct scene s;
    open_computing(&s, 0);
    outbox_empty(&s.out);
    s.role->ops->done(s.role, ACTION_COMPUTE, OK, "", &s.out);
    for (int ps = 0; ps < PS_COUNT; ps++) assert_non_null(last_sent(&s, ps, MESSAGE_PUSH));
    close_scene(&s);
}

static void the_chief_has_ps_0_say_that_one_is_gone_and_goes_on_when_it_has(void **state)
{
    for (int victim = 1; victim < PS_COUNT; victim++) {
        struct scene s;
        open_worker(&s, 0);
        lose(&s, victim);
        pass(&s, GONE_MS - TICK_MS);
        const struct message *renewal = last_sent(&s, 0, MESSAGE_LEADS);
        assert_true(!renewal || !renewal->leads.gone);
        pass(&s, 2 * TICK_MS);
        assert_int_equal(last_sent(&s, 0, MESSAGE_LEADS)->leads.gone, ONLY(victim));
        assert_int_equal(last_sent(&s, 0, MESSAGE_LEADS)->generation, GENERATION);
        assert_false(worker_role_is_without(s.role, victim));
        say_gone(&s, ONLY(victim));
        assert_true(worker_role_is_without(s.role, victim));
        assert_int_equal(s.out.at[find(&s, ACTION_STAND_IN)].stand_in.gone, ONLY(victim));
        close_scene(&s);
    }
}

static void one_that_comes_back_empty_is_gone_at_once(void **state)
{
    struct scene s;
    open_computing(&s, 0);
    lose(&s, 1);
    meet(&s, 1);
    say_state(&s, 1, PS_EMPTY);
    assert_int_equal(last_sent(&s, 0, MESSAGE_LEADS)->leads.gone, ONLY(1));
    assert_int_equal(find(&s, ACTION_CHOOSE), -1);
    close_scene(&s);
}

/* As a chief that was started again with it finds it */
static void one_that_is_empty_before_all_take_part_is_gone_when_that_lasts(void **state)
{
    struct scene s;
    open_greeted(&s, 0);
    say_state(&s, 0, PS_SERVING);
    say_state(&s, 2, PS_SERVING);
    say_state(&s, 1, PS_EMPTY);
    answer(&s, 0, 0);
    answer(&s, 2, 0);
    pass(&s, GONE_MS - TICK_MS);
    const struct message *renewal = last_sent(&s, 0, MESSAGE_LEADS);
    assert_true(!renewal || !renewal->leads.gone);
    pass(&s, TICK_MS);
    assert_int_equal(last_sent(&s, 0, MESSAGE_LEADS)->leads.gone, ONLY(1));
    say_gone(&s, ONLY(1));
    answer(&s, 2, 0);
    assert_true(find(&s, ACTION_COMPUTE) >= 0);
    close_scene(&s);
}

/* It is to begin again with all of them. */
static void what_is_set_waits_for_one_that_is_done_without(void **state)
{
    struct scene s;
    open_computing(&s, 0);
    lose(&s, 1);
    say_gone(&s, ONLY(1));
    outbox_empty(&s.out);
    assert_null(worker_role_change(s.role, &s.out));
    assert_null(last_sent(&s, 0, MESSAGE_SAVE));
    meet(&s, 1);
    say_state(&s, 1, PS_EMPTY);
    pass(&s, TICK_MS);
    assert_non_null(last_sent(&s, 0, MESSAGE_SAVE));
    close_scene(&s);
}

static void who_leaves_does_not_wait_for_one_that_is_done_without(void **state)
{
    struct scene s;
    open_worker(&s, 1);
    answer(&s, 0, 0);
    lose(&s, 1);
    say_gone(&s, ONLY(1));
    s.role->ops->leave(s.role, EXIT_LOST_PEER, "a signal", true, &s.out);
    answer(&s, 2, 0);
    assert_non_null(last_sent(&s, 0, MESSAGE_LEAVE));
    say(&s, 0,
        &(struct message){
            .type = MESSAGE_LEAVE, .generation = GENERATION, .leave = {LEAVE_GRANTED}});
    assert_true(find(&s, ACTION_END) >= 0);
    close_scene(&s);
}

static void a_worker_that_does_not_lead_waits_for_ps_0(void **state)
{
    struct scene s;
    open_worker(&s, 1);
    lose(&s, 1);
    pass(&s, 10 * GONE_MS);
    assert_null(last_sent(&s, 0, MESSAGE_LEADS));
    say_gone(&s, ONLY(1));
    assert_true(worker_role_is_without(s.role, 1));
    close_scene(&s);
}

static void a_follower_is_read_from_then_on_and_the_step_is_computed(void **state)
{
    struct scene s;
    open_worker(&s, 1);
    answer(&s, 0, 0);
    lose(&s, 1);
    say_gone(&s, ONLY(1));
    assert_non_null(last_sent(&s, 2, MESSAGE_READS));
    assert_null(last_sent(&s, 1, MESSAGE_JOIN));
    assert_int_equal(find(&s, ACTION_COMPUTE), -1);
    answer(&s, 2, 0);
    assert_true(find(&s, ACTION_COMPUTE) >= 0);
    outbox_empty(&s.out);
    s.role->ops->done(s.role, ACTION_COMPUTE, OK, "", &s.out);
    assert_null(last_sent(&s, 1, MESSAGE_PUSH));
    assert_non_null(last_sent(&s, 2, MESSAGE_PUSH));
    close_scene(&s);
}

static void what_one_that_is_done_without_says_counts_for_nothing(void **state)
{
    struct scene s;
    open_worker(&s, 1);
    say_gone(&s, ONLY(1));
    say(&s, 1,
        &(struct message){
            .type = MESSAGE_VERDICT, .generation = GENERATION, .verdict.exit_code = EXIT_TIMEOUT});
    assert_int_equal(s.out.count, 0);
    assert_int_equal(find(&s, ACTION_END), -1);
    close_scene(&s);
}

/* As from a ps/0 that lies */
static void never_are_both_gone_nor_ps_0_nor_at_the_word_of_another_ps(void **state)
{
    struct scene s;
    open_worker(&s, 1);
    static const uint64_t none_of_two[] = {ONLY(0), ONLY(1) | ONLY(2), ONLY(1) | ONLY(3),
                                           ~UINT64_C(0)};
    for (size_t i = 0; i < sizeof none_of_two / sizeof *none_of_two; i++) {
        say_gone(&s, none_of_two[i]);
        assert_true(find(&s, ACTION_BREACH) >= 0);
        for (int ps = 0; ps < PS_COUNT; ps++) assert_false(worker_role_is_without(s.role, ps));
    }
    say(&s, 2,
        &(struct message){
            .type = MESSAGE_LEADS, .generation = GENERATION, .leads = {.gone = ONLY(1)}});
    assert_true(find(&s, ACTION_BREACH) >= 0);
    assert_false(worker_role_is_without(s.role, 1));
    say_gone(&s, ONLY(1));
    assert_int_equal(find(&s, ACTION_BREACH), -1);
    say_gone(&s, ONLY(2));
    assert_true(find(&s, ACTION_BREACH) >= 0);
    assert_true(worker_role_is_without(s.role, 1));
    assert_false(worker_role_is_without(s.role, 2));
    close_scene(&s);
}

static void come_back_empty(struct scene *s)
{
    for (int ps = 1; ps < PS_COUNT; ps++) lose(s, ps);
    for (int ps = 1; ps < PS_COUNT; ps++) meet(s, ps);
    for (int ps = 1; ps < PS_COUNT; ps++) say_state(s, ps, PS_EMPTY);
}

static void when_both_have_come_back_empty_all_begin_again(void **state)
{
    struct scene s;
    open_computing(&s, 0);
    come_back_empty(&s);
    assert_true(find(&s, ACTION_CHOOSE) >= 0);
    close_scene(&s);
}

/* It is begun from a checkpoint of this step. */
static void choose(struct scene *s, uint64_t generation, uint64_t step)
{
    const struct choice choice = {
        .text = "", .generation = generation, .step = step, .is_saved = true, .arrays = 1};
    outbox_empty(&s->out);
    worker_role_chosen(s->role, &choice, &s->out);
}

static bool is_described(const struct scene *s, int ps)
{
    for (int i = 0; i < s->out.count; i++)
        if (s->out.at[i].type == ACTION_DESCRIBE && s->out.at[i].describe.ps == ps) return true;
    return false;
}

static void one_that_dies_as_all_begin_again_where_they_were_is_done_without(void **state)
{
    enum { FIRST = GENERATION + 1, SECOND };
    for (int victim = 1; victim < PS_COUNT; victim++) {
        const int other = PS_COUNT - victim, here[] = {0, other};
        struct scene s;
        open_computing(&s, 0);
        outbox_empty(&s.out);
        assert_true(worker_role_outlive(s.role, GENERATION, &s.out));
        assert_true(find(&s, ACTION_CHOOSE) >= 0);
        choose(&s, FIRST, 0);
        for (int ps = 0; ps < PS_COUNT; ps++) assert_true(is_described(&s, ps));
        lose(&s, victim);
        pass(&s, GONE_MS - TICK_MS);
        assert_int_equal(find(&s, ACTION_CHOOSE), -1);
        pass(&s, TICK_MS);
        assert_true(find(&s, ACTION_CHOOSE) >= 0);
        choose(&s, SECOND, 0);
        for (int ps = 0; ps < PS_COUNT; ps++) assert_int_equal(is_described(&s, ps), ps != victim);
        for (int i = 0; i < 2; i++)
            say(&s, here[i],
                &(struct message){
                    .type = MESSAGE_READY, .generation = SECOND, .ready.outcome = READY_RESTORED});
        assert_non_null(last_sent(&s, 0, MESSAGE_SERVE));
        assert_non_null(last_sent(&s, other, MESSAGE_SERVE));
        assert_null(last_sent(&s, victim, MESSAGE_SERVE));
        for (int i = 0; i < 2; i++)
            say(&s, here[i],
                &(struct message){.type = MESSAGE_STATE,
                                  .generation = SECOND,
                                  .state = {.state = PS_SERVING, .last_step = LAST_STEP}});
        assert_int_equal(last_sent(&s, 0, MESSAGE_LEADS)->leads.gone, ONLY(victim));
        say(&s, 0,
            &(struct message){
                .type = MESSAGE_LEADS, .generation = SECOND, .leads = {.gone = ONLY(victim)}});
        assert_true(worker_role_is_without(s.role, victim));
        assert_non_null(last_sent(&s, other, MESSAGE_JOIN));
        assert_int_equal(s.out.at[find(&s, ACTION_STAND_IN)].stand_in.gone, ONLY(victim));
        close_scene(&s);
    }
}

/* The other one may still serve: what this worker has pushed stays as it is until ps/0 says so. */
static void a_push_stays_out_while_ps_0_is_away_and_one_comes_back_empty(void **state)
{
    for (int away = 0; away < PS_COUNT; away += 2) {
        struct scene s;
        open_computing(&s, 1);
        s.role->ops->done(s.role, ACTION_COMPUTE, OK, "", &s.out);
        lose(&s, away);
        lose(&s, 1);
        meet(&s, 1);
        say_state(&s, 1, PS_EMPTY);
        meet(&s, away);
        say_state(&s, away, PS_SERVING);
        assert_int_equal(last_sent(&s, away, MESSAGE_JOIN)->join.push, 1);
        close_scene(&s);
    }
}

/* What a ps has said before it heard of the new generation comes late. */
static void a_chief_that_begins_a_generation_does_not_go_back_to_the_last(void **state)
{
    struct scene s;
    open_greeted(&s, 0);
    say_state(&s, 0, PS_SERVING);
    say_state(&s, 1, PS_READY);
    say_state(&s, 2, PS_EMPTY);
    assert_true(find(&s, ACTION_CHOOSE) >= 0);
    choose(&s, GENERATION + 1, 0);
    say(&s, 2,
        &(struct message){
            .type = MESSAGE_STATE, .generation = GENERATION + 1, .state.state = PS_READY});
    say_state(&s, 1, PS_SERVING);
    for (int ps = 0; ps < PS_COUNT; ps++) assert_null(last_sent(&s, ps, MESSAGE_JOIN));
    assert_int_equal(worker_role_generation(s.role), GENERATION + 1);
    assert_null(worker_role_check(s.role));
    close_scene(&s);
}

static void say_saved(struct scene *s, int ps, uint64_t tag)
{
    const uint64_t numbers[WORKERS * LEDGER_NUMBERS] = {htole64(1), htole64(1)};
    s->role->ops->message(s->role, JOB_PS, ps,
                          &(struct message){.type = MESSAGE_SNAPSHOT,
                                            .generation = GENERATION,
                                            .snapshot = {.tag = tag, .step = 1},
                                            .body = numbers,
                                            .body_bytes = sizeof numbers},
                          &s->out);
    s->role->ops->message(
        s->role, JOB_PS, ps,
        &(struct message){.type = MESSAGE_SAVED, .generation = GENERATION, .saved = {.tag = tag}},
        &s->out);
}

/* ps/0 would go on without it, and all lose what comes of that. */
static void a_chief_keeps_its_link_to_a_ps_whose_snapshot_has_its_push(void **state)
{
    struct scene s;
    open_lending(&s, 0, true);
    for (int ps = 0; ps < PS_COUNT; ps++) say_state(&s, ps, PS_SERVING);
    for (int ps = 0; ps < PS_COUNT; ps++) answer(&s, ps, 0);
    s.role->ops->done(s.role, ACTION_COMPUTE, OK, "", &s.out);
    lose(&s, 1);
    say_gone(&s, ONLY(1));
    meet(&s, 1);
    say_state(&s, 1, PS_EMPTY);
    const uint64_t tag = last_sent(&s, 0, MESSAGE_SAVE)->save.tag;
    say_saved(&s, 0, tag);
    say_saved(&s, 2, tag);
    assert_true(find(&s, ACTION_PUBLISH) >= 0);
    s.role->ops->done(s.role, ACTION_PUBLISH, OK, "", &s.out);
    assert_true(find(&s, ACTION_CHOOSE) >= 0);
    assert_int_equal(find(&s, ACTION_REMAKE), -1);
    close_scene(&s);
}

/* It may be back with the steps that they would lose. */
static void one_that_dies_as_all_go_back_is_waited_for(void **state)
{
    struct scene s;
    open_computing(&s, 0);
    come_back_empty(&s);
    choose(&s, GENERATION + 1, 0);
    lose(&s, 2);
    pass(&s, 10 * GONE_MS);
    assert_int_equal(find(&s, ACTION_CHOOSE), -1);
    close_scene(&s);
}

/* ---- a ps ---- */

static void open_ps(struct scene *s, int task, bool follows)
{
    const struct ps_options o = {.task = task, .workers = WORKERS, .limits = limits};
    const struct setup_result r = {
        .text = "",
        .config = {.generation = GENERATION,
                   .is_sync = true,
                   .takes_all = true,
                   .last_step = LAST_STEP,
                   .max_staleness = -1,
                   .is_restored = true,
                   .replicas_to_aggregate = WORKERS,
                   .worker_timeout_ms = LIMIT_MS,
                   .block_floats = BLOCK_FLOATS,
                   .arrays = 1,
                   .follows = follows,
                   .homes = HOMES,
                   .ps_count = PS_COUNT,
                   .min_workers = 1},
    };
    *s = (struct scene){.role = ps_role_new(&o), .peers = JOB_WORKER};
    s->role->ops->start(s->role, 0, &s->out);
    for (int w = 0; w < WORKERS; w++) meet(s, w);
    say(s, 0, &(struct message){.type = MESSAGE_LEADS, .leads = {LEADS_CLAIMS}});
    say(s, 0, &(struct message){.type = MESSAGE_SETUP, .generation = GENERATION});
    ps_role_set_up(s->role, &r, &s->out);
    say(s, 0, &(struct message){.type = MESSAGE_SERVE, .generation = GENERATION});
    assert_true(ps_role_is_serving(s->role));
}

/* The chief takes it in when it can, which may be never. */
static void one_that_is_back_hears_that_others_train(void **state)
{
    const struct ps_options o = {.task = 1, .workers = WORKERS, .limits = limits};
    struct scene s = {.role = ps_role_new(&o), .peers = JOB_WORKER};
    s.role->ops->start(s.role, 0, &s.out);
    meet(&s, 0);
    say(&s, 0, &(struct message){.type = MESSAGE_LEADS, .leads = {LEADS_CLAIMS}});
    assert_false(ps_role_is_passed_by(s.role));
    say(&s, 0,
        &(struct message){
            .type = MESSAGE_LEADS, .generation = GENERATION, .leads = {LEADS_CLAIMS}});
    assert_true(ps_role_is_passed_by(s.role));
    close_scene(&s);
    open_ps(&s, 1, false);
    assert_false(ps_role_is_passed_by(s.role));
    close_scene(&s);
}

static void propose(struct scene *s, int worker, uint64_t generation, uint64_t gone)
{
    say(s, worker,
        &(struct message){.type = MESSAGE_LEADS,
                          .generation = generation,
                          .leads = {LEADS_CLAIMS, .gone = gone}});
}

static void ps_0_tells_all_what_the_chief_says_and_forgets_it_with_the_generation(void **state)
{
    struct scene s;
    open_ps(&s, 0, false);
    propose(&s, 1, GENERATION, ONLY(1)); /* who does not lead */
    assert_null(last_sent(&s, 0, MESSAGE_LEADS));
    propose(&s, 0, GENERATION - 1, ONLY(1));
    assert_null(last_sent(&s, 1, MESSAGE_LEADS));
    propose(&s, 0, GENERATION, ONLY(1));
    for (int w = 0; w < WORKERS; w++) {
        assert_int_equal(last_sent(&s, w, MESSAGE_LEADS)->leads.gone, ONLY(1));
        assert_int_equal(last_sent(&s, w, MESSAGE_LEADS)->generation, GENERATION);
    }
    meet(&s, 1);
    assert_int_equal(last_sent(&s, 1, MESSAGE_LEADS)->leads.gone, ONLY(1));
    say(&s, 0, &(struct message){.type = MESSAGE_SETUP, .generation = GENERATION + 1});
    meet(&s, 1);
    assert_int_equal(last_sent(&s, 1, MESSAGE_LEADS)->leads.gone, 0);
    close_scene(&s);
}

/* As of who has taken the chief's place. */
static void ps_0_does_without_no_ps_that_nobody_else_holds(void **state)
{
    static const uint64_t none_of_two[] = {ONLY(0), ONLY(1) | ONLY(2), ONLY(1) | ONLY(3), ONLY(62),
                                           ~UINT64_C(0)};
    for (size_t i = 0; i < sizeof none_of_two / sizeof *none_of_two; i++) {
        struct scene s;
        open_ps(&s, 0, false);
        propose(&s, 0, GENERATION, none_of_two[i]);
        assert_true(find(&s, ACTION_BREACH) >= 0);
        meet(&s, 1);
        assert_int_equal(last_sent(&s, 1, MESSAGE_LEADS)->leads.gone, 0);
        meet(&s, 0);
        propose(&s, 0, GENERATION, ONLY(2));
        propose(&s, 0, GENERATION, ONLY(1)); /* who has not heard yet that the other one is */
        assert_true(find(&s, ACTION_BREACH) >= 0);
        meet(&s, 1);
        assert_int_equal(last_sent(&s, 1, MESSAGE_LEADS)->leads.gone, ONLY(2));
        close_scene(&s);
    }
}

static void another_ps_does_without_nobody(void **state)
{
    for (int ps = 1; ps < PS_COUNT; ps++) {
        struct scene s;
        open_ps(&s, ps, ps >= HOMES);
        propose(&s, 0, GENERATION, ONLY(1));
        assert_true(find(&s, ACTION_BREACH) >= 0);
        close_scene(&s);
    }
}

static void a_follower_gives_its_values_to_those_that_read_them(void **state)
{
    const struct message join = {.type = MESSAGE_JOIN, .generation = GENERATION};
    const struct message reads = {.type = MESSAGE_READS, .generation = GENERATION};
    struct scene s;
    open_ps(&s, 2, true);
    say(&s, 1, &join);
    assert_true(range_is_empty(last_sent(&s, 1, MESSAGE_VALUES)->range));
    say(&s, 1, &reads);
    say(&s, 1, &join);
    assert_int_equal(range_count(last_sent(&s, 1, MESSAGE_VALUES)->range), BLOCK_FLOATS);
    say(&s, 0, &join);
    assert_true(range_is_empty(last_sent(&s, 0, MESSAGE_VALUES)->range));
    meet(&s, 1); /* on another link it says so again */
    say(&s, 1, &join);
    assert_true(range_is_empty(last_sent(&s, 1, MESSAGE_VALUES)->range));
    close_scene(&s);
}

/* ---- each lie of net/messages.def ---- */

enum moment { JOINS, COMPUTES, SAVES, WAITS, STANDS_IN, TAKES_IN, MOMENTS };

/* Of whoever leads: ps/0 has made its snapshot, the others are to. */
static void save(struct scene *s)
{
    static const uint64_t numbers[WORKERS * LEDGER_NUMBERS];
    assert_true(worker_role_save(s->role, &s->out));
    say(s, 0,
        &(struct message){.type = MESSAGE_SNAPSHOT,
                          .generation = GENERATION,
                          .snapshot.tag = last_sent(s, 0, MESSAGE_SAVE)->save.tag,
                          .body = numbers,
                          .body_bytes = sizeof numbers});
    assert_non_null(last_sent(s, 1, MESSAGE_SAVE));
}

static void open_at(struct scene *s, enum moment moment, int task)
{
    (moment == JOINS ? open_worker : open_computing)(s, task);
    if (moment == SAVES && task == 0) save(s);
    if (moment >= WAITS) s->role->ops->done(s->role, ACTION_COMPUTE, OK, "", &s->out);
    if (moment < STANDS_IN) return;
    lose(s, 1);
    say_gone(s, ONLY(1));
    if (moment != TAKES_IN) return;
    meet(s, 1);
    say_state(s, 1, PS_EMPTY);
    pass(s, TICK_MS);
}

static void fail_lie(const struct lie *lie, int peer, const char *wrong)
{
    char text[LIE_TEXT_MAX];
    fail_msg("%s, by %d: %s", lie_show(lie, text), peer, wrong);
}

/* It is told of, and then the role goes on as long as it takes to miss one. */
static void lie_to(struct scene *s, const struct lie *lie, int peer, unsigned sender,
                   const char *(*check)(const struct role *))
{
    struct message m = {
        .type = lie->type, .task = (uint32_t)peer, .job = s->peers, .generation = GENERATION};
    const bool is_told_of = lie->field < MESSAGE_PLACES && !lie_is_allowed(lie, sender);
    const char *wrong;
    lie_into(&m, lie);
    say(s, peer, &m);
    if (is_told_of && find(s, ACTION_BREACH) < 0 && find(s, ACTION_END) < 0)
        fail_lie(lie, peer, "is not told of");
    if ((wrong = check(s->role))) fail_lie(lie, peer, wrong);
    pass(s, 2 * GONE_MS);
    if ((wrong = check(s->role))) fail_lie(lie, peer, wrong);
}

static void no_lie_of_a_ps_makes_a_worker_unsound(void **state)
{
    uint64_t all = 0;
    for (struct lie lie = {0}; lies_next(&lie);)
        for (int i = 0; i < MOMENTS * PS_COUNT * WORKERS; i++) {
            struct scene s;
            const int ps = i / MOMENTS % PS_COUNT;
            if (all++ % EVERY || (i % MOMENTS >= STANDS_IN && ps == 1))
                continue; /* it is not heard */
            open_at(&s, (enum moment)(i % MOMENTS), i / MOMENTS / PS_COUNT);
            lie_to(&s, &lie, ps, FROM_PS, worker_role_check);
            close_scene(&s);
        }
}

static void no_lie_of_a_worker_makes_a_ps_unsound(void **state)
{
    uint64_t all = 0;
    for (struct lie lie = {0}; lies_next(&lie);)
        for (int i = 0; i < PS_COUNT * WORKERS; i++) {
            struct scene s;
            const int ps = i % PS_COUNT, worker = i / PS_COUNT;
            if (all++ % EVERY) continue;
            open_ps(&s, ps, ps >= HOMES);
            lie_to(&s, &lie, worker, worker ? FROM_WORKER : FROM_WORKER | FROM_CHIEF,
                   ps_role_check);
            close_scene(&s);
        }
}

static void each_other_ps_than_ps_0_is_one_of_two(void **state)
{
    for (int ps_count = 1; ps_count < 2 * REPLICAS_PS_MAX; ps_count++) {
        const bool fits = ps_count % 2 && ps_count >= 3 && ps_count <= REPLICAS_PS_MAX;
        const int homes = replicas_homes(ps_count, fits);
        assert_int_equal(replicas_fit(ps_count), fits);
        assert_int_equal(replicas_other(homes, ps_count, 0), -1);
        for (int ps = 1; ps < ps_count && fits; ps++) {
            const int other = replicas_other(homes, ps_count, ps);
            assert_true(other > 0 && other < ps_count && other != ps);
            assert_int_equal(replicas_other(homes, ps_count, other), ps);
            assert_int_equal(replicas_home(homes, ps), ps < other ? ps : other);
        }
        for (int ps = 0; ps < ps_count && !fits; ps++) {
            assert_int_equal(replicas_home(homes, ps), ps);
            assert_int_equal(replicas_other(homes, ps_count, ps), -1);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_push_goes_to_both_that_hold_the_same),
        cmocka_unit_test(the_chief_has_ps_0_say_that_one_is_gone_and_goes_on_when_it_has),
        cmocka_unit_test(one_that_comes_back_empty_is_gone_at_once),
        cmocka_unit_test(one_that_is_empty_before_all_take_part_is_gone_when_that_lasts),
        cmocka_unit_test(what_is_set_waits_for_one_that_is_done_without),
        cmocka_unit_test(who_leaves_does_not_wait_for_one_that_is_done_without),
        cmocka_unit_test(a_worker_that_does_not_lead_waits_for_ps_0),
        cmocka_unit_test(a_follower_is_read_from_then_on_and_the_step_is_computed),
        cmocka_unit_test(what_one_that_is_done_without_says_counts_for_nothing),
        cmocka_unit_test(never_are_both_gone_nor_ps_0_nor_at_the_word_of_another_ps),
        cmocka_unit_test(when_both_have_come_back_empty_all_begin_again),
        cmocka_unit_test(one_that_dies_as_all_begin_again_where_they_were_is_done_without),
        cmocka_unit_test(a_push_stays_out_while_ps_0_is_away_and_one_comes_back_empty),
        cmocka_unit_test(a_chief_that_begins_a_generation_does_not_go_back_to_the_last),
        cmocka_unit_test(a_chief_keeps_its_link_to_a_ps_whose_snapshot_has_its_push),
        cmocka_unit_test(one_that_dies_as_all_go_back_is_waited_for),
        cmocka_unit_test(one_that_is_back_hears_that_others_train),
        cmocka_unit_test(ps_0_tells_all_what_the_chief_says_and_forgets_it_with_the_generation),
        cmocka_unit_test(ps_0_does_without_no_ps_that_nobody_else_holds),
        cmocka_unit_test(another_ps_does_without_nobody),
        cmocka_unit_test(a_follower_gives_its_values_to_those_that_read_them),
        cmocka_unit_test(no_lie_of_a_ps_makes_a_worker_unsound),
        cmocka_unit_test(no_lie_of_a_worker_makes_a_ps_unsound),
        cmocka_unit_test(each_other_ps_than_ps_0_is_one_of_two),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
