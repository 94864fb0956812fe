/* test_roles_void.c - what a role says and does not say on a new link, and to messages that come
 * twice, late or for nothing: one role and what its peers send, word by word. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include "core/cluster/role/verdict.h"
#include "tests/core/cluster/role/play.h"
#include "tests/core/cluster/role/scene.h"

#include <cmocka.h> /* last: it has a macro named fail */

enum { GENERATION = 7, BLOCK_FLOATS = 16, PS_COUNT = 2, WORKERS = 2, TICK_MS = 100 };

/* ---- a worker ---- */

static uint64_t generation = GENERATION; /* of all that its ps say */

static void say_state(struct scene *s, int ps)
{
    say(s, ps,
        &(struct message){
            .type = MESSAGE_STATE, .state.state = PS_SERVING, .generation = generation});
}

static void say_ledger_at(struct scene *s, int ps, uint64_t received, uint64_t join, uint64_t step)
{
    const struct ledger ledger = {received, received, 0};
    uint64_t numbers[LEDGER_NUMBERS];
    ledger_pack(&ledger, 1, numbers);
    say(s, ps,
        &(struct message){.type = MESSAGE_LEDGER,
                          .generation = generation,
                          .ledger = {received, step, join},
                          .body = numbers,
                          .body_bytes = sizeof numbers});
}

static void say_ledger(struct scene *s, int ps, uint64_t received, uint64_t join)
{
    say_ledger_at(s, ps, received, join, 0);
}

static void say_values_with(struct scene *s, int ps, uint32_t flags, uint64_t received,
                            uint64_t step)
{
    say(s, ps,
        &(struct message){.type = MESSAGE_VALUES,
                          .generation = generation,
                          .values = {flags, received, step},
                          .range = {0, BLOCK_FLOATS}});
}

static void say_values(struct scene *s, int ps, uint64_t received, uint64_t step)
{
    say_values_with(s, ps, VALUES_TICKET, received, step);
}

/* The number of the JOIN in the answer. */
static uint64_t joined(const struct scene *s, int ps)
{
    int at = find_sent(s, ps, MESSAGE_JOIN);
    assert_true(at >= 0);
    return s->out.at[at].send.message.join.number;
}

/* Both ps are here, and asked; ret_joins: the numbers of its JOINs. */
static uint64_t save_ms; /* of those that are opened */

static void open_joining(struct scene *s, int task, bool is_sync, bool drops,
                         uint64_t ret_joins[PS_COUNT])
{
    const int64_t block_floats[PS_COUNT] = {BLOCK_FLOATS, BLOCK_FLOATS};
    const struct worker_options o = {
        .task = task,
        .ps_count = PS_COUNT,
        .workers = WORKERS,
        .block_floats = block_floats,
        .gradients_per_push = 1,
        .is_sync = is_sync,
        .drops_gradients = drops,
        .saves = task == 0,
        .limits = {.save_ms = save_ms, .stop_ms = save_ms},
    };
    *s = (struct scene){.role = worker_role_new(&o), .peers = JOB_PS};
    s->role->ops->start(s->role, 0, &s->out);
    for (int ps = 0; ps < PS_COUNT; ps++) meet(s, ps);
    for (int ps = 0; ps < PS_COUNT; ps++) say_state(s, ps);
    for (int ps = 0; ps < PS_COUNT; ps++) ret_joins[ps] = joined(s, ps);
}

/* It has values of both ps, and computes; drops: gradients are shown to ps/0 first. */
static void open_computing(struct scene *s, bool drops)
{
    uint64_t joins[PS_COUNT];
    open_joining(s, 1, true, drops, joins);
    for (int ps = 0; ps < PS_COUNT; ps++) {
        say_ledger(s, ps, 0, joins[ps]);
        say_values(s, ps, 0, 0);
    }
    assert_true(find(s, ACTION_COMPUTE) >= 0);
}

static void compute(struct scene *s)
{
    outbox_empty(&s->out);
    s->role->ops->done(s->role, ACTION_COMPUTE, OK, "", &s->out);
}

static uint64_t come_back(struct scene *s, int ps)
{
    lose(s, ps);
    meet(s, ps);
    say_state(s, ps);
    return joined(s, ps);
}

static void a_push_that_was_lost_comes_again_after_the_ledger_of_its_new_link(void **state)
{
    struct scene s;
    open_computing(&s, false);
    compute(&s);
    assert_true(find_sent(&s, 1, MESSAGE_PUSH) >= 0);
    const uint64_t join = come_back(&s, 1);
    assert_int_equal(find_sent(&s, 1, MESSAGE_PUSH), -1); /* no windows yet */
    say_ledger(&s, 1, 0, join);
    assert_true(find_sent(&s, 1, MESSAGE_PUSH) >= 0);
    close_scene(&s);
}

static void a_push_that_becomes_due_on_a_new_link_waits_for_its_ledger(void **state)
{
    struct scene s;
    open_computing(&s, true);
    compute(&s);
    assert_int_equal(find_sent(&s, 1, MESSAGE_PUSH), -1); /* ps/0 decides */
    const uint64_t join = come_back(&s, 1);
    say_values(&s, 0, 1, 1);
    assert_int_equal(find_sent(&s, 1, MESSAGE_PUSH), -1);
    say_ledger(&s, 1, 0, join);
    assert_true(find_sent(&s, 1, MESSAGE_PUSH) >= 0);
    close_scene(&s);
}

static void a_ledger_counts_once_and_only_for_the_last_join(void **state)
{
    struct scene s;
    open_computing(&s, false);
    compute(&s);
    const uint64_t first = come_back(&s, 1), second = come_back(&s, 1);
    assert_int_not_equal(first, second);
    say_ledger(&s, 1, 0, first);
    assert_int_equal(find_sent(&s, 1, MESSAGE_PUSH), -1);
    say_ledger(&s, 1, 0, second);
    assert_true(find_sent(&s, 1, MESSAGE_PUSH) >= 0);
    say_ledger(&s, 1, 0, second);
    assert_int_equal(s.out.count, 0);
    close_scene(&s);
}

static void values_that_come_before_the_ledger_are_not_the_answer(void **state)
{
    struct scene s;
    open_computing(&s, false);
    compute(&s);
    say_values(&s, 0, 1, 1);
    const uint64_t join = come_back(&s, 1);
    say_values(&s, 1, 1, 1);
    assert_int_equal(find(&s, ACTION_COMPUTE), -1);
    say_ledger(&s, 1, 1, join);
    say_values(&s, 1, 1, 1);
    assert_true(find(&s, ACTION_COMPUTE) >= 0);
    close_scene(&s);
}

/* The chief of a job that has ended, and everybody has finished: it asks for the last save. */
static void open_last_save(struct scene *s)
{
    uint64_t joins[PS_COUNT];
    open_joining(s, 0, true, false, joins);
    for (int ps = 0; ps < PS_COUNT; ps++) {
        say_ledger(s, ps, 9, joins[ps]);
        say_values_with(s, ps, 0, 9, 9);
    }
}

static void say_final(struct scene *s, uint64_t updates)
{
    for (int ps = 0; ps < PS_COUNT; ps++)
        say(s, ps,
            &(struct message){.type = MESSAGE_VALUES,
                              .generation = generation,
                              .values = {VALUES_FINAL, 9, 9, updates},
                              .range = {0, BLOCK_FLOATS}});
}

static void say_final_values(struct scene *s)
{
    assert_true(find_sent(s, 0, MESSAGE_FINISHED) >= 0);
    say_final(s, 0);
}

static const struct message *surely_sent(const struct scene *s, int peer, enum message_type type)
{
    const struct message *m = sent(s, peer, type);
    assert_non_null(m);
    return m;
}

static void refuse_to_save(struct scene *s)
{
    const uint64_t tag = surely_sent(s, 0, MESSAGE_SAVE)->save.tag;
    say(s, 0,
        &(struct message){.type = MESSAGE_SNAPSHOT,
                          .generation = generation,
                          .snapshot = {EXIT_FAILED, tag},
                          .body = "not now",
                          .body_bytes = 7});
}

/* Both ps, as they are asked to; ret: what the SAVE was called. */
static uint64_t make_snapshots(struct scene *s, uint64_t updates)
{
    const uint64_t tag = surely_sent(s, 0, MESSAGE_SAVE)->save.tag;
    const struct ledger ledgers[WORKERS] = {{9, 9, 0}};
    uint64_t numbers[WORKERS * LEDGER_NUMBERS];
    ledger_pack(ledgers, WORKERS, numbers);
    for (int ps = 0; ps < PS_COUNT; ps++)
        say(s, ps,
            &(struct message){.type = MESSAGE_SNAPSHOT,
                              .generation = generation,
                              .snapshot = {0, tag, 9, updates},
                              .body = numbers,
                              .body_bytes = sizeof numbers});
    return tag;
}

static void fail_to_write(struct scene *s)
{
    const uint64_t tag = make_snapshots(s, 0);
    say(s, 1,
        &(struct message){.type = MESSAGE_SAVED,
                          .generation = generation,
                          .saved = {EXIT_FAILED, tag},
                          .body = "no room",
                          .body_bytes = 7});
}

static void save_all(struct scene *s, uint64_t updates)
{
    const uint64_t tag = make_snapshots(s, updates);
    for (int ps = 0; ps < PS_COUNT; ps++)
        say(s, ps,
            &(struct message){.type = MESSAGE_SAVED, .generation = generation, .saved = {0, tag}});
    assert_true(find(s, ACTION_PUBLISH) >= 0);
    outbox_empty(&s->out);
    s->role->ops->done(s->role, ACTION_PUBLISH, OK, "", &s->out);
}

/* By ticks: one that comes late counts as little more than one. */
static void pass_time(struct scene *s, uint64_t ms)
{
    outbox_empty(&s->out);
    for (const uint64_t until_ms = s->now_ms + ms; s->now_ms < until_ms;) {
        s->now_ms += TICK_MS;
        s->role->ops->tick(s->role, s->now_ms, &s->out);
    }
}

/* A new chief: its disk may be slow, which is no failure. */
static void nothing_is_saved_before_the_folder_is_open(void **state)
{
    struct scene s;
    open_last_save(&s);
    assert_true(worker_role_can_save(s.role));
    worker_role_folder_opens(s.role);
    assert_false(worker_role_can_save(s.role));
    assert_false(worker_role_save(s.role, &s.out));
    say_final_values(&s);
    for (int ps = 0; ps < PS_COUNT; ps++) { /* it waits, and asks nobody again and again */
        assert_int_equal(find_sent(&s, ps, MESSAGE_SAVE), -1);
        assert_int_equal(find_sent(&s, ps, MESSAGE_FINISHED), -1);
    }
    assert_int_equal(find(&s, ACTION_EVALUATE), -1);
    outbox_empty(&s.out);
    worker_role_folder_is_open(s.role, &s.out);
    assert_true(find_sent(&s, 0, MESSAGE_SAVE) >= 0);
    close_scene(&s);
}

static void a_last_save_that_is_refused_is_asked_for_again_but_not_for_ever(void **state)
{
    enum { REFUSALS = 20 };
    struct scene s;
    open_last_save(&s);
    for (int i = 0; i < REFUSALS; i++) {
        say_final_values(&s);
        refuse_to_save(&s);
        assert_int_equal(find(&s, ACTION_EVALUATE), -1);
    }
    say_final_values(&s);
    refuse_to_save(&s);
    assert_true(find(&s, ACTION_EVALUATE) >= 0);
    outbox_empty(&s.out);
    s.role->ops->done(s.role, ACTION_EVALUATE, OK, "", &s.out);
    int end = find(&s, ACTION_END);
    assert_int_equal(s.out.at[end].end.code, EXIT_TIMEOUT);
    assert_string_equal(s.out.at[end].end.text,
                        "the last checkpoint failed for 0 s (--save_timeout): ps/0: not now");
    close_scene(&s);
}

/* Storage that is away, or a full disk */
static void a_last_save_that_fails_is_tried_again_until_its_limit(void **state)
{
    enum { REFUSALS = 20, LIMIT_MS = 10000 };
    struct scene s;
    int tries = 0;
    save_ms = LIMIT_MS;
    open_last_save(&s);
    save_ms = 0;
    for (int i = 0; i <= REFUSALS; i++) {
        say_final_values(&s);
        refuse_to_save(&s);
    }
    while (find(&s, ACTION_EVALUATE) < 0) { /* ends: with the limit */
        assert_in_range(s.now_ms, 0, LIMIT_MS);
        pass_time(&s, TICK_MS);
        if (find_sent(&s, 0, MESSAGE_SAVE) < 0) continue;
        tries++;
        refuse_to_save(&s);
    }
    assert_in_range(tries, 5, 20);
    assert_in_range(s.now_ms, LIMIT_MS / 2, LIMIT_MS);
    outbox_empty(&s.out);
    s.role->ops->done(s.role, ACTION_EVALUATE, OK, "", &s.out);
    assert_int_equal(s.out.at[find(&s, ACTION_END)].end.code, EXIT_TIMEOUT);
    close_scene(&s);
}

/* Behind one that was written, or behind the limit, where a worker has brought more. */
static void a_last_save_that_fails_later_has_its_whole_time_again(void **state)
{
    enum { LIMIT_MS = 10000, PAUSE_MS = 2000 };
    struct scene s;
    uint64_t updates = 0;
    save_ms = LIMIT_MS;
    open_last_save(&s);
    save_ms = 0;
    say_final_values(&s);
    fail_to_write(&s);
    pass_time(&s, PAUSE_MS);
    save_all(&s, updates);
    for (bool is_over = false;; is_over = true) { /* ends: the second time */
        pass_time(&s, LIMIT_MS);
        say_final(&s, ++updates);
        for (int tried = 0; tried < 3; tried++) {
            fail_to_write(&s);
            assert_int_equal(find(&s, ACTION_EVALUATE), -1);
            assert_int_equal(find(&s, ACTION_END), -1);
            pass_time(&s, PAUSE_MS);
        }
        if (is_over) break;
        for (fail_to_write(&s); find(&s, ACTION_EVALUATE) < 0; fail_to_write(&s)) /* the limit */
            pass_time(&s, PAUSE_MS);
        say_values_with(&s, 0, VALUES_FINAL, 9, 9);
    }
    close_scene(&s);
}

static void take_part(struct scene *s, const uint64_t joins[PS_COUNT])
{
    for (int ps = 0; ps < PS_COUNT; ps++) {
        say_ledger(s, ps, 9, joins[ps]);
        say_values(s, ps, 9, 9);
    }
    assert_true(find(s, ACTION_COMPUTE) >= 0);
}

/* Of the same step: another chief began it, perhaps from an earlier checkpoint. */
static void what_was_saved_in_a_generation_is_not_in_the_next(void **state)
{
    struct scene s;
    uint64_t joins[PS_COUNT];
    open_joining(&s, 0, true, false, joins);
    take_part(&s, joins);
    outbox_empty(&s.out);
    assert_true(worker_role_save(s.role, &s.out));
    save_all(&s, 9);
    outbox_empty(&s.out);
    assert_true(worker_role_save(s.role, &s.out)); /* it is there */
    assert_int_equal(find_sent(&s, 0, MESSAGE_SAVE), -1);
    generation++;
    for (int ps = 0; ps < PS_COUNT; ps++) {
        lose(&s, ps);
        meet(&s, ps);
    }
    for (int ps = 0; ps < PS_COUNT; ps++) say_state(&s, ps);
    for (int ps = 0; ps < PS_COUNT; ps++) joins[ps] = joined(&s, ps);
    take_part(&s, joins);
    outbox_empty(&s.out);
    assert_true(worker_role_save(s.role, &s.out));
    assert_true(find_sent(&s, 0, MESSAGE_SAVE) >= 0);
    generation = GENERATION;
    close_scene(&s);
}

static void answer_compute(struct scene *s, err result)
{
    outbox_empty(&s->out);
    s->role->ops->done(s->role, ACTION_COMPUTE, result, "no batch", &s->out);
}

static void who_has_no_batch_yet_gives_the_ticket_back_and_gets_another(void **state)
{
    struct scene s;
    open_computing(&s, false);
    answer_compute(&s, ERR_PEER);
    uint64_t joins[PS_COUNT];
    for (int ps = 0; ps < PS_COUNT; ps++) {
        assert_int_equal(surely_sent(&s, ps, MESSAGE_JOIN)->join.what, JOIN_UNUSED);
        joins[ps] = joined(&s, ps);
    }
    for (int ps = 0; ps < PS_COUNT; ps++) {
        say_ledger(&s, ps, 0, joins[ps]);
        say_values_with(&s, ps, VALUES_TICKET | VALUES_STOPS, 0, 0);
    }
    assert_true(find(&s, ACTION_COMPUTE) >= 0);
    assert_true(worker_role_is_stopping(s.role));
    close_scene(&s);
}

static void who_will_have_no_batch_has_finished_and_says_so_on_a_new_link(void **state)
{
    struct scene s;
    open_computing(&s, false);
    assert_false(worker_role_is_stopping(s.role));
    answer_compute(&s, ERR_STOPPED);
    for (int ps = 0; ps < PS_COUNT; ps++)
        assert_int_equal(surely_sent(&s, ps, MESSAGE_FINISHED)->finished.flags, FINISHED_UNUSED);
    lose(&s, 1);
    meet(&s, 1);
    say_state(&s, 1);
    assert_int_equal(surely_sent(&s, 1, MESSAGE_FINISHED)->finished.flags, FINISHED_UNUSED);
    close_scene(&s);
}

/* ps/0 may hold it for a snapshot that ps/1 cannot make without what it brings. */
static void whose_last_life_died_between_two_ps_says_so_to_the_first(void **state)
{
    for (int mode = 0; mode < 4; mode++) {
        struct scene s;
        uint64_t joins[PS_COUNT];
        open_joining(&s, 1, mode & 1, mode & 2, joins);
        say_ledger(&s, 0, 5, joins[0]);
        say_ledger(&s, 1, 4, joins[1]);
        assert_int_equal(surely_sent(&s, 0, MESSAGE_JOIN)->join.what, JOIN_TAKES_BACK);
        const uint64_t again = joined(&s, 0);
        say_values(&s, 1, 4, 4);
        say_ledger(&s, 0, 5, again);
        assert_int_equal(find_sent(&s, 0, MESSAGE_JOIN), -1); /* once */
        say_values(&s, 0, 5, 5);
        assert_true(find(&s, ACTION_COMPUTE) >= 0);
        compute(&s);
        assert_int_equal(find_sent(&s, 0, MESSAGE_PUSH), -1);
        assert_true(find_sent(&s, 1, MESSAGE_PUSH) >= 0);
        close_scene(&s);
    }
}

/* Which may hold it for a snapshot behind the round that the others would wait for it in. */
static void who_brings_the_first_what_others_had_before_tells_them(void **state)
{
    struct scene s;
    uint64_t joins[PS_COUNT];
    open_joining(&s, 1, true, false, joins);
    say_ledger_at(&s, 0, 4, joins[0], 9);
    say_values(&s, 0, 4, 9);
    say_ledger_at(&s, 1, 5, joins[1], 9);
    say_ledger_at(&s, 1, 5, joined(&s, 1), 9); /* nothing was to be taken back */
    say_values(&s, 1, 5, 9);
    assert_true(find(&s, ACTION_COMPUTE) >= 0);
    compute(&s);
    assert_true(find_sent(&s, 0, MESSAGE_PUSH) >= 0);
    assert_int_equal(find_sent(&s, 1, MESSAGE_PUSH), -1);
    const int at = find_sent(&s, 1, MESSAGE_JOIN);
    assert_true(at >= 0);
    assert_int_equal(s.out.at[at].send.message.join.step, 10);
    close_scene(&s);
}

/* That has evicted it, and does not answer before the end of a snapshot. */
static void who_is_behind_one_ps_tells_the_others_before_that_has_answered(void **state)
{
    struct scene s;
    uint64_t joins[PS_COUNT];
    open_joining(&s, 1, true, false, joins);
    say_ledger_at(&s, 1, 4, joins[1], 4);
    say_values(&s, 1, 4, 4);
    say_ledger_at(&s, 0, 4, joins[0], 5);
    const int at = find_sent(&s, 1, MESSAGE_JOIN);
    assert_true(at >= 0);
    assert_int_equal(s.out.at[at].send.message.join.step, 5);
    assert_int_equal(find_sent(&s, 0, MESSAGE_JOIN), -1);
    say_ledger_at(&s, 1, 4, joined(&s, 1), 4);
    assert_int_equal(find_sent(&s, 1, MESSAGE_JOIN), -1); /* once */
    say_values(&s, 1, 4, 5);
    assert_int_equal(find(&s, ACTION_COMPUTE), -1);
    say_values(&s, 0, 4, 5);
    assert_true(find(&s, ACTION_COMPUTE) >= 0);
    close_scene(&s);
}

/* ---- a ps ---- */

static void open_serving_as(struct scene *s, bool is_sync)
{
    const struct ps_options o = {.task = 0, .workers = WORKERS};
    const struct setup_result r = {
        .text = "",
        .config = {.generation = GENERATION,
                   .is_sync = is_sync,
                   .takes_all = true,
                   .max_staleness = -1,
                   .last_step = 10,
                   .replicas_to_aggregate = WORKERS,
                   .is_restored = true,
                   .min_workers = 1},
    };
    *s = (struct scene){.role = ps_role_new(&o), .peers = JOB_WORKER};
    s->role->ops->start(s->role, 0, &s->out);
    for (int w = 0; w < WORKERS; w++) meet(s, w);
    say(s, 0, &(struct message){.type = MESSAGE_SETUP, .generation = GENERATION});
    ps_role_set_up(s->role, &r, &s->out);
    say(s, 0, &(struct message){.type = MESSAGE_SERVE, .generation = GENERATION});
    assert_true(ps_role_is_serving(s->role));
}

static void open_serving(struct scene *s)
{
    open_serving_as(s, true);
}

static void say_join(struct scene *s, int worker, enum join_code code)
{
    say(s, worker,
        &(struct message){.type = MESSAGE_JOIN, .join.what = code, .generation = GENERATION});
}

static void say_finished(struct scene *s, int worker)
{
    say(s, worker,
        &(struct message){
            .type = MESSAGE_FINISHED, .finished.flags = FINISHED_UNUSED, .generation = GENERATION});
}

static void a_job_whose_workers_have_no_more_ends_before_its_last_step(void **state)
{
    for (int is_sync = 0; is_sync < 2; is_sync++) {
        struct scene s;
        open_serving_as(&s, is_sync);
        for (int w = 0; w < WORKERS; w++) {
            say_join(&s, w, JOIN_PLAIN);
            assert_true(surely_sent(&s, w, MESSAGE_VALUES)->values.flags & VALUES_TICKET);
        }
        say_finished(&s, 0);
        assert_int_equal(find_sent(&s, 0, MESSAGE_VALUES), -1);
        say_finished(&s, 1);
        assert_true(surely_sent(&s, 0, MESSAGE_VALUES)->values.flags & VALUES_FINAL);
        close_scene(&s);
    }
}

static void say_save(struct scene *s)
{
    const uint64_t shards = PS_COUNT;
    say(s, 0,
        &(struct message){.type = MESSAGE_SAVE,
                          .generation = GENERATION,
                          .save.tag = 1,
                          .body = &shards,
                          .body_bytes = sizeof shards});
}

static void an_asynchronous_snapshot_does_not_wait_for_a_ticket_that_was_given_back(void **state)
{
    struct scene s;
    open_serving_as(&s, false);
    for (int w = 0; w < WORKERS; w++) say_join(&s, w, JOIN_PLAIN);
    say_save(&s);
    say_join(&s, 0, JOIN_UNUSED);
    assert_int_equal(find(&s, ACTION_SNAPSHOT), -1);
    say_join(&s, 1, JOIN_UNUSED);
    assert_true(find(&s, ACTION_SNAPSHOT) >= 0);
    close_scene(&s);
}

static void say_resume(struct scene *s, enum resume_code code)
{
    say(s, 0,
        &(struct message){.type = MESSAGE_RESUME, .resume.stays = code, .generation = GENERATION});
}

/* Until all have made their snapshots; then it waits like others. */
static void a_snapshot_does_not_hold_who_brings_the_others_what_they_wait_for(void **state)
{
    for (int is_sync = 0; is_sync < 2; is_sync++) {
        struct scene s;
        open_serving_as(&s, is_sync);
        say_save(&s);
        assert_true(find(&s, ACTION_SNAPSHOT) >= 0);
        say_join(&s, 1, JOIN_PLAIN);
        assert_int_equal(find_sent(&s, 1, MESSAGE_VALUES), -1);
        say_join(&s, 1, JOIN_TAKES_BACK);
        assert_true(surely_sent(&s, 1, MESSAGE_VALUES)->values.flags & VALUES_TICKET);
        say_resume(&s, RESUME_STAY);
        say_join(&s, 1, JOIN_TAKES_BACK);
        assert_int_equal(find_sent(&s, 1, MESSAGE_VALUES), -1);
        say_resume(&s, RESUME_GO);
        assert_true(find_sent(&s, 1, MESSAGE_VALUES) >= 0);
        close_scene(&s);
    }
}

static void a_shard_of_a_checkpoint_that_is_given_up_is_dropped_and_no_other(void **state)
{
    struct scene s;
    open_serving_as(&s, true);
    say_save(&s);
    const int made = find(&s, ACTION_SNAPSHOT);
    assert_true(made >= 0);
    const uint64_t tag = s.out.at[made].snapshot.tag;
    say_resume(&s, RESUME_GO);
    assert_int_equal(find(&s, ACTION_DROP), -1);
    /* all had made theirs, and one could not write it */
    say(&s, 0,
        &(struct message){.type = MESSAGE_RESUME,
                          .resume = {.tag = tag, .stays = RESUME_DROP},
                          .generation = GENERATION});
    const int dropped = find(&s, ACTION_DROP);
    assert_true(dropped >= 0);
    assert_int_equal(s.out.at[dropped].drop.tag, tag);
    close_scene(&s);
}

/* Others compute the same step, and the round is to end. */
static void a_coming_snapshot_does_not_hold_another_life_of_who_had_a_ticket(void **state)
{
    struct scene s;
    open_serving(&s);
    for (int w = 0; w < WORKERS; w++) say_join(&s, w, JOIN_PLAIN);
    lose(&s, 1);
    say_save(&s);
    meet_life(&s, 1, 2);
    say_join(&s, 1, JOIN_PLAIN);
    assert_true(surely_sent(&s, 1, MESSAGE_VALUES)->values.flags & VALUES_TICKET);
    close_scene(&s);
}

static void windows_come_before_the_ledger_and_once_on_a_link(void **state)
{
    struct scene s;
    open_serving(&s);
    const struct message join = {.type = MESSAGE_JOIN, .generation = GENERATION, .join.number = 3};
    for (int link = 0; link < 2; link++) {
        say(&s, 1, &join);
        int shared = find(&s, ACTION_SHARE), told = find_sent(&s, 1, MESSAGE_LEDGER);
        assert_true(shared >= 0 && told > shared);
        assert_int_equal(s.out.at[told].send.message.ledger.join, join.join.number);
        say(&s, 1, &join);
        assert_int_equal(find(&s, ACTION_SHARE), -1);
        assert_true(find_sent(&s, 1, MESSAGE_LEDGER) >= 0);
        lose(&s, 1);
        meet(&s, 1);
    }
    close_scene(&s);
}

static void a_worker_that_comes_back_after_the_end_is_told_the_verdict(void **state)
{
    struct scene s;
    open_serving(&s);
    lose(&s, 1);
    say(&s, 0, &(struct message){.type = MESSAGE_VERDICT, .body = "well done", .body_bytes = 9});
    assert_int_equal(find_sent(&s, 1, MESSAGE_VERDICT), -1);
    meet(&s, 1);
    int at = find_sent(&s, 1, MESSAGE_VERDICT);
    assert_int_equal(at, 0);
    assert_int_equal(s.out.count, 1);
    assert_int_equal(s.out.at[at].send.message.verdict.exit_code, EXIT_DONE);
    assert_string_equal(s.out.at[at].send.message.body, "well done");
    close_scene(&s);
}

/* ---- both ---- */

static void connections_that_are_lost_one_by_one_cost_nothing_with_backup_workers(void **state)
{
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct stage_options o = sync_options(3, 3, 40, seed);
        o.profile.config.replicas_to_aggregate = 2;
        o.profile.config.takes_all = false;
        o.profile.drops_gradients = true;
        struct stage s;
        begin(&s, &o);
        run_until_adopted(&s, 0); /* before that a snapshot may begin another generation */
        for (int i = 0; i < 40; i++) cut_somewhere(&s, 25);
        end_with(&s, EXIT_DONE);
        all_ps_applied(&s, 40);
        stage_close(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_push_that_was_lost_comes_again_after_the_ledger_of_its_new_link),
        cmocka_unit_test(a_push_that_becomes_due_on_a_new_link_waits_for_its_ledger),
        cmocka_unit_test(a_ledger_counts_once_and_only_for_the_last_join),
        cmocka_unit_test(values_that_come_before_the_ledger_are_not_the_answer),
        cmocka_unit_test(nothing_is_saved_before_the_folder_is_open),
        cmocka_unit_test(a_last_save_that_is_refused_is_asked_for_again_but_not_for_ever),
        cmocka_unit_test(a_last_save_that_fails_is_tried_again_until_its_limit),
        cmocka_unit_test(a_last_save_that_fails_later_has_its_whole_time_again),
        cmocka_unit_test(what_was_saved_in_a_generation_is_not_in_the_next),
        cmocka_unit_test(who_has_no_batch_yet_gives_the_ticket_back_and_gets_another),
        cmocka_unit_test(who_will_have_no_batch_has_finished_and_says_so_on_a_new_link),
        cmocka_unit_test(whose_last_life_died_between_two_ps_says_so_to_the_first),
        cmocka_unit_test(who_brings_the_first_what_others_had_before_tells_them),
        cmocka_unit_test(who_is_behind_one_ps_tells_the_others_before_that_has_answered),
        cmocka_unit_test(a_job_whose_workers_have_no_more_ends_before_its_last_step),
        cmocka_unit_test(an_asynchronous_snapshot_does_not_wait_for_a_ticket_that_was_given_back),
        cmocka_unit_test(a_shard_of_a_checkpoint_that_is_given_up_is_dropped_and_no_other),
        cmocka_unit_test(a_snapshot_does_not_hold_who_brings_the_others_what_they_wait_for),
        cmocka_unit_test(a_coming_snapshot_does_not_hold_another_life_of_who_had_a_ticket),
        cmocka_unit_test(windows_come_before_the_ledger_and_once_on_a_link),
        cmocka_unit_test(a_worker_that_comes_back_after_the_end_is_told_the_verdict),
        cmocka_unit_test(connections_that_are_lost_one_by_one_cost_nothing_with_backup_workers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
