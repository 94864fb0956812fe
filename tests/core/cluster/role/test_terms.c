/* test_terms.c - who leads: one role and what its peers say, word by word. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "core/cluster/role/parts.h"
#include "core/cluster/role/ps_role.h"
#include "core/cluster/role/verdict.h"
#include "core/cluster/role/worker_role.h"
#include "tests/core/cluster/role/scene.h"

#include <cmocka.h> /* last: it has a macro named fail */

enum {
    GENERATION = 7,
    BLOCK_FLOATS = 1 << 20, /* in parts */
    PS_COUNT = 2,
    WORKERS = 3,
    LEASE_MS = 900,
    LIMIT_MS = 60000,
    TICK_MS = 100,
};

static const struct wait_limits limits = {
    .start_ms = LIMIT_MS,
    .step_ms = LIMIT_MS,
    .end_ms = LIMIT_MS,
    .restart_ms = LIMIT_MS,
    .chief_ms = LEASE_MS,
    .stop_ms = LIMIT_MS,
    .save_ms = LIMIT_MS,
};

static void say_term(struct scene *s, int peer, uint64_t term, enum leads_code code)
{
    say(s, peer, &(struct message){.type = MESSAGE_LEADS, .leads = {code, term}});
}

/* Tick after tick, or until somebody else leads. */
static bool pass(struct scene *s, uint64_t for_ms)
{
    const uint64_t term = ps_role_term(s->role), until_ms = s->now_ms + for_ms;
    outbox_empty(&s->out);
    while (s->now_ms < until_ms && ps_role_term(s->role) == term) {
        s->now_ms += TICK_MS;
        s->role->ops->tick(s->role, s->now_ms, &s->out);
    }
    return ps_role_term(s->role) != term;
}

/* ---- ps/0 ---- */

static void open_ps_of(struct scene *s, struct wait_limits l, bool is_launched)
{
    const struct ps_options o = {
        .task = 0, .workers = WORKERS, .limits = l, .is_launched = is_launched};
    *s = (struct scene){.role = ps_role_new(&o), .peers = JOB_WORKER};
    s->role->ops->start(s->role, 0, &s->out);
}

static void open_ps(struct scene *s)
{
    open_ps_of(s, limits, false);
}

/* It serves, and knows that the others could lead. */
static void open_serving_of(struct scene *s, struct wait_limits l, bool is_launched)
{
    const struct setup_result r = {
        .text = "",
        .config = {.generation = GENERATION,
                   .last_step = 10,
                   .max_staleness = -1,
                   .is_restored = true,
                   .replicas_to_aggregate = 1,
                   .worker_timeout_ms = LIMIT_MS,
                   .min_workers = 1},
    };
    open_ps_of(s, l, is_launched);
    for (int w = 0; w < WORKERS; w++) {
        meet(s, w);
        say_term(s, w, 0, w ? LEADS_HEARD : LEADS_CLAIMS);
    }
    say(s, 0, &(struct message){.type = MESSAGE_SETUP, .generation = GENERATION});
    ps_role_set_up(s->role, &r, &s->out);
    say(s, 0, &(struct message){.type = MESSAGE_SERVE, .generation = GENERATION});
    assert_true(ps_role_is_serving(s->role));
}

static void open_serving(struct scene *s)
{
    open_serving_of(s, limits, false);
}

static void say_save(struct scene *s, int worker)
{
    static const uint64_t shards = 1;
    say(s, worker,
        &(struct message){.type = MESSAGE_SAVE,
                          .generation = GENERATION,
                          .save.tag = 1,
                          .body = &shards,
                          .body_bytes = sizeof shards});
}

static void a_silent_chief_is_hung_up_on_and_the_next_worker_leads(void **state)
{
    struct scene s;
    open_serving(&s);
    assert_true(pass(&s, LEASE_MS + TICK_MS));
    assert_int_equal(ps_role_chief(s.role), 1);
    assert_int_equal(s.out.at[find(&s, ACTION_HANG_UP)].hang_up.worker, 0);
    for (int w = 1; w < WORKERS; w++) assert_int_equal(sent(&s, w, MESSAGE_LEADS)->leads.term, 1);
    assert_false(ps_role_obeys(s.role, 1)); /* before it says so itself */
    say_term(&s, 1, 1, LEADS_CLAIMS);
    assert_true(ps_role_obeys(s.role, 1));
    assert_int_equal(sent(&s, 1, MESSAGE_STATE)->state.claim, 2);
    assert_true(pass(&s, LEASE_MS + TICK_MS));
    assert_int_equal(ps_role_chief(s.role), 2); /* worker/0 is not here */
    close_scene(&s);
}

static void what_a_chief_of_an_older_term_says_is_void(void **state)
{
    struct scene s;
    open_serving(&s);
    assert_true(pass(&s, LEASE_MS + TICK_MS));
    meet(&s, 0);
    assert_int_equal(sent(&s, 0, MESSAGE_LEADS)->leads.term, 1);
    say_term(&s, 0, 0, LEADS_CLAIMS);
    assert_int_equal(sent(&s, 0, MESSAGE_LEADS)->leads.term, 1);
    say_save(&s, 0);
    assert_int_equal(find(&s, ACTION_SNAPSHOT), -1);
    assert_int_equal(sent(&s, 0, MESSAGE_SNAPSHOT)->snapshot.exit_code, EXIT_FAILED);
    say(&s, 0, &(struct message){.type = MESSAGE_SETUP, .generation = GENERATION + 1});
    assert_int_equal(find(&s, ACTION_SETUP), -1);
    say(&s, 0, &(struct message){.type = MESSAGE_STOP, .stop = {EXIT_TERMINATED, .claim = 1}});
    assert_int_equal(s.out.count, 0);
    say(&s, 0, &(struct message){.type = MESSAGE_VERDICT, .verdict.claim = 1});
    assert_int_equal(s.out.count, 0);
    say_term(&s, 1, 1, LEADS_CLAIMS);
    say_save(&s, 1);
    assert_true(find(&s, ACTION_SNAPSHOT) >= 0);
    close_scene(&s);
}

static void a_chief_that_speaks_keeps_the_lead(void **state)
{
    struct scene s;
    open_serving(&s);
    for (int i = 0; i < 5; i++) {
        assert_false(pass(&s, LEASE_MS - TICK_MS));
        say_term(&s, 0, 0, LEADS_CLAIMS);
    }
    say(&s, 0, /* before an evaluation */
        &(struct message){.type = MESSAGE_LEADS,
                          .leads = {LEADS_CLAIMS, .lease_ms = 10 * LEASE_MS}});
    assert_false(pass(&s, 10 * LEASE_MS - TICK_MS));
    assert_true(pass(&s, 2 * TICK_MS));
    close_scene(&s);
}

static void leave(struct scene *s)
{
    outbox_empty(&s->out);
    s->role->ops->leave(s->role, EXIT_TERMINATED, "stopped", false, &s->out);
}

/* Before the lease of the one that is gone is over, and in time for a last checkpoint. */
static void of_a_job_that_is_to_end_another_worker_leads_soon(void **state)
{
    struct wait_limits l = limits;
    struct scene s;
    l.chief_ms = 10 * LIMIT_MS;
    open_serving_of(&s, l, false);
    lose(&s, 0);
    leave(&s);
    assert_int_equal(find(&s, ACTION_END), -1);
    assert_false(pass(&s, LIMIT_MS / PS_STOP_PARTS - TICK_MS));
    assert_true(pass(&s, 2 * TICK_MS));
    assert_int_equal(ps_role_chief(s.role), 1);
    say_term(&s, 1, 1, LEADS_CLAIMS);
    assert_int_equal(sent(&s, 1, MESSAGE_STOP)->stop.exit_code, EXIT_TERMINATED);
    close_scene(&s);
}

/* It stands still: the link is there. */
static void of_a_job_that_is_to_end_another_worker_leads_where_the_chief_is_silent(void **state)
{
    struct wait_limits l = limits;
    struct scene s;
    l.chief_ms = 10 * LIMIT_MS;
    open_serving_of(&s, l, false);
    leave(&s);
    assert_false(pass(&s, LIMIT_MS / 4));
    meet(&s, 1); /* again: it had pushed nothing */
    say_term(&s, 1, 0, LEADS_HEARD);
    say_term(&s, 0, 0, LEADS_CLAIMS); /* it still lives */
    assert_false(pass(&s, LIMIT_MS / 2 - TICK_MS));
    assert_true(pass(&s, 2 * TICK_MS));
    assert_int_equal(ps_role_chief(s.role), 1);
    say_term(&s, 1, 1, LEADS_CLAIMS);
    assert_int_equal(sent(&s, 1, MESSAGE_STOP)->stop.exit_code, EXIT_TERMINATED);
    close_scene(&s);
}

/* As other workers may, where one does, too. */
static void a_chief_may_compute_for_long_the_step_that_a_job_is_to_end_with(void **state)
{
    struct wait_limits l = limits;
    struct scene s;
    l.chief_ms = 10 * LIMIT_MS;
    open_serving_of(&s, l, false);
    say_term(&s, 0, 0, LEADS_CLAIMS);
    leave(&s);
    assert_false(pass(&s, LIMIT_MS / 4));
    meet(&s, 1); /* again: it had pushed nothing */
    say_term(&s, 1, 0, LEADS_HEARD);
    assert_false(pass(&s, ps_silence_limit_ms(&l, true) - LIMIT_MS / 4 - TICK_MS));
    assert_true(pass(&s, 2 * TICK_MS));
    assert_int_equal(ps_role_chief(s.role), 1);
    close_scene(&s);
}

/* As an evaluation has it be. */
static void a_chief_that_says_it_will_be_silent_leads_a_job_that_is_to_end(void **state)
{
    struct wait_limits l = limits;
    struct scene s;
    l.chief_ms = 10 * LIMIT_MS;
    open_serving_of(&s, l, false);
    say(&s, 0,
        &(struct message){.type = MESSAGE_LEADS,
                          .leads = {LEADS_CLAIMS, .lease_ms = 20 * LIMIT_MS}});
    leave(&s);
    assert_false(pass(&s, LIMIT_MS - TICK_MS));
    close_scene(&s);
}

static void of_a_job_that_goes_on_nobody_leads_before_the_lease_is_over(void **state)
{
    struct wait_limits l = limits;
    struct scene s;
    l.chief_ms = 10 * LIMIT_MS;
    open_serving_of(&s, l, false);
    lose(&s, 0);
    assert_false(pass(&s, LIMIT_MS - TICK_MS));
    close_scene(&s);
}

/* It is not started again. */
static void a_chief_that_was_launched_and_is_gone_is_not_waited_for_to_end(void **state)
{
    struct scene s;
    open_serving_of(&s, limits, true);
    lose(&s, 0);
    leave(&s);
    assert_true(find(&s, ACTION_END) >= 0);
    close_scene(&s);
}

static void time_in_which_the_ps_itself_stood_still_does_not_count(void **state)
{
    struct scene s;
    open_serving(&s);
    s.now_ms += 100 * LEASE_MS;
    assert_false(pass(&s, LEASE_MS - TICK_MS));
    assert_true(pass(&s, 2 * TICK_MS));
    close_scene(&s);
}

static void a_chief_that_has_never_come_is_waited_for_unless_the_job_goes_on(void **state)
{
    struct scene s;
    open_ps(&s);
    meet(&s, 1);
    say_term(&s, 1, 0, LEADS_HEARD);
    assert_false(pass(&s, 10 * LEASE_MS));
    say(&s, 1, &(struct message){.type = MESSAGE_LEADS, .generation = GENERATION});
    assert_true(pass(&s, 2 * TICK_MS));
    close_scene(&s);
}

static void nobody_leads_who_does_not_say_that_it_could(void **state)
{
    struct scene s;
    open_ps(&s);
    for (int w = 0; w < WORKERS; w++) meet(&s, w);
    assert_false(pass(&s, 10 * LEASE_MS));
    close_scene(&s);
}

/* Of a ps/0 that came back empty, whose chief has not said yet that it leads, anybody may be right.
 */
static void no_term_is_believed_beside_a_chief_that_leads_before_the_ps_serves(void **state)
{
    const struct setup_result r = {.text = "", .config = {.generation = GENERATION, .arrays = 1}};
    for (int said = 0; said < 4; said++) {
        struct scene s;
        open_ps(&s);
        for (int w = 0; w < WORKERS; w++) meet(&s, w);
        if (said > 0) say_term(&s, 0, 0, LEADS_CLAIMS);
        if (said > 1)
            say(&s, 0, &(struct message){.type = MESSAGE_SETUP, .generation = GENERATION});
        if (said > 2) ps_role_set_up(s.role, &r, &s.out);
        say_term(&s, 1, 1, LEADS_CLAIMS);
        assert_int_equal(ps_role_chief(s.role), said > 0 ? 0 : 1);
        assert_int_equal(find(&s, ACTION_HANG_UP) >= 0, said == 0);
        say_term(&s, 0, 3, LEADS_HEARD); /* its own: it has heard of one that is none */
        assert_int_equal(ps_role_term(s.role), said > 0 ? 3 : 1);
        close_scene(&s);
    }
}

/* A ps/0 that came back empty is led anew before the one that leads in a term which it has
 * forgotten is here: two lead, until it gives out a later term. */
static void a_chief_whose_term_is_forgotten_is_outbid_once(void **state)
{
    struct scene s;
    open_serving(&s);
    say_term(&s, 1, 1, LEADS_HEARD); /* it has only heard of it */
    assert_int_equal(ps_role_term(s.role), 0);
    say_term(&s, 1, TERMS_AHEAD_MAX, LEADS_CLAIMS); /* a later one nobody would believe ps/0 */
    assert_int_equal(ps_role_term(s.role), 0);
    say_term(&s, 1, 1, LEADS_CLAIMS);
    assert_int_equal(ps_role_term(s.role), WORKERS);
    assert_int_equal(ps_role_chief(s.role), 0);
    assert_int_equal(find(&s, ACTION_HANG_UP), -1);
    for (int w = 0; w < WORKERS; w++)
        assert_int_equal(sent(&s, w, MESSAGE_LEADS)->leads.term, WORKERS);
    say_term(&s, 0, WORKERS, LEADS_CLAIMS);
    assert_true(ps_role_obeys(s.role, 0));
    say_term(&s, 1, WORKERS + 1, LEADS_CLAIMS); /* nobody gave it out: it lies */
    assert_int_equal(ps_role_term(s.role), WORKERS);
    assert_null(sent(&s, 0, MESSAGE_LEADS));
    close_scene(&s);
}

static void where_nobody_else_ever_leads_no_term_is_believed(void **state)
{
    struct wait_limits l = limits;
    struct scene s;
    l.chief_ms = 0;
    open_ps_of(&s, l, false);
    for (int w = 1; w < WORKERS; w++) meet(&s, w);
    say(&s, 1, &(struct message){.type = MESSAGE_LEADS, .generation = GENERATION, .leads.term = 1});
    assert_int_equal(ps_role_chief(s.role), 0);
    close_scene(&s);
}

/* ---- a worker ---- */

static void open_worker(struct scene *s, int task)
{
    const int64_t block_floats[PS_COUNT] = {BLOCK_FLOATS, BLOCK_FLOATS};
    const struct worker_options o = {
        .task = task,
        .ps_count = PS_COUNT,
        .workers = WORKERS,
        .block_floats = block_floats,
        .gradients_per_push = 1,
        .is_sync = true,
        .lends_windows = true,
        .saves = true,
        .limits = limits,
    };
    *s = (struct scene){.role = worker_role_new(&o), .peers = JOB_PS};
    s->role->ops->start(s->role, 0, &s->out);
}

static void hear(struct scene *s, int ps, uint64_t term, enum ps_state state, uint64_t claimed)
{
    say_term(s, ps, term, LEADS_HEARD);
    say(s, ps,
        &(struct message){.type = MESSAGE_STATE,
                          .generation = state == PS_EMPTY ? 0 : GENERATION,
                          .state = {state, .claim = claimed}});
}

static void worker_0_leads_when_all_ps_know_of_nobody_else(void **state)
{
    for (uint64_t term = 0; term < 2; term++) {
        struct scene s;
        open_worker(&s, 0);
        for (int ps = 0; ps < PS_COUNT; ps++) meet(&s, ps);
        hear(&s, 0, 0, PS_EMPTY, 0); /* it came back empty */
        assert_int_equal(find(&s, ACTION_LEAD), -1);
        hear(&s, 1, term, PS_EMPTY, 0);
        assert_int_equal(find(&s, ACTION_LEAD) >= 0, term == 0);
        assert_int_equal(find(&s, ACTION_CHOOSE) >= 0, term == 0);
        assert_int_equal(worker_role_leads(s.role), term == 0);
        close_scene(&s);
    }
}

static void a_new_chief_chooses_nothing_before_every_ps_has_answered_its_claim(void **state)
{
    struct scene s;
    open_worker(&s, 1);
    for (int ps = 0; ps < PS_COUNT; ps++) {
        meet(&s, ps);
        hear(&s, ps, 0, PS_EMPTY, 0);
    }
    say_term(&s, 0, 1, LEADS_HEARD);
    assert_true(find(&s, ACTION_LEAD) >= 0);
    hear(&s, 0, 1, PS_SERVING, 2);
    hear(&s, 1, 1, PS_EMPTY, 0); /* of before the claim came */
    assert_int_equal(find(&s, ACTION_CHOOSE), -1);
    hear(&s, 1, 1, PS_SERVING, 2);
    assert_int_equal(find(&s, ACTION_CHOOSE), -1);
    assert_non_null(sent(&s, 0, MESSAGE_JOIN));
    close_scene(&s);
}

/* What the chief says of what it begins with, where it has just come and hears this of the ps. */
static void assert_chief_says(const enum ps_state states[PS_COUNT], bool is_saved, const char *text)
{
    struct scene s;
    open_worker(&s, 0);
    for (int ps = 0; ps < PS_COUNT; ps++) meet(&s, ps);
    for (int ps = 0; ps < PS_COUNT; ps++) hear(&s, ps, 0, states[ps], 0);
    assert_true(find(&s, ACTION_CHOOSE) >= 0);
    const struct choice choice = {
        .text = "", .generation = GENERATION + 1, .arrays = 1, .is_saved = is_saved, .step = 7};
    outbox_empty(&s.out);
    worker_role_chosen(s.role, &choice, &s.out);
    const int said = find(&s, ACTION_LOG);
    assert_int_equal(said >= 0, text != NULL);
    if (text) assert_string_equal(s.out.at[said].log.text, text);
    close_scene(&s);
}

static void a_chief_that_comes_back_says_which_ps_was_lost_meanwhile(void **state)
{
    assert_chief_says((enum ps_state[]){PS_EMPTY, PS_EMPTY}, false, NULL);
    assert_chief_says((enum ps_state[]){PS_EMPTY, PS_EMPTY}, true, NULL);
    assert_chief_says((enum ps_state[]){PS_SERVING, PS_EMPTY}, true,
                      "ps/1 came back empty: all go back to step 7");
    assert_chief_says((enum ps_state[]){PS_EMPTY, PS_SERVING}, false,
                      "ps/0 came back empty: all go back to step 7; there is no checkpoint");
}

static void open_leading(struct scene *s)
{
    open_worker(s, 0);
    for (int ps = 0; ps < PS_COUNT; ps++) {
        meet(s, ps);
        hear(s, ps, 0, PS_SERVING, 0);
    }
    assert_true(worker_role_leads(s->role));
}

/* Which gives out a later one, of the same chief. */
static void what_another_ps_says_of_terms_is_for_ps_0_to_say(void **state)
{
    struct scene s;
    open_leading(&s);
    say_term(&s, 1, 5, LEADS_HEARD);
    assert_int_equal(find(&s, ACTION_YIELD), -1);
    assert_int_equal(sent(&s, 0, MESSAGE_LEADS)->leads.term, 6);
    assert_int_equal(sent(&s, 0, MESSAGE_LEADS)->leads.claims,
                     LEADS_HEARD); /* no claim before it has */
    say_term(&s, 0, 6, LEADS_HEARD);
    assert_true(worker_role_leads(s.role));
    for (int ps = 0; ps < PS_COUNT; ps++) {
        const struct action *claim = &s.out.at[find(&s, ACTION_CLAIM) + ps];
        assert_int_equal(claim->type, ACTION_CLAIM);
        assert_int_equal(claim->claim.message.leads.term, 6);
    }
    close_scene(&s);
    open_worker(&s, 1);
    for (int ps = 0; ps < PS_COUNT; ps++) {
        meet(&s, ps);
        hear(&s, ps, 0, PS_SERVING, 0);
    }
    say_term(&s, 1, 1, LEADS_HEARD); /* its own */
    assert_int_equal(s.out.count, 0);
    close_scene(&s);
}

/* What it said on a link that was lost it says once more on the next one, of a ps/0 that may know
 * of no term at all. */
static void a_term_is_outbid_until_ps_0_has_heard_of_it(void **state)
{
    struct scene s;
    open_leading(&s);
    s.role->ops->peer_lost(s.role, JOB_PS, 0, "it died", &s.out);
    say_term(&s, 1, 2, LEADS_HEARD);
    assert_true(worker_role_leads(s.role));
    assert_null(sent(&s, 0, MESSAGE_LEADS));
    meet(&s, 0);
    hear(&s, 0, 0, PS_EMPTY, 0);
    assert_int_equal(sent(&s, 0, MESSAGE_LEADS)->leads.term, 3);
    say_term(&s, 0, 3, LEADS_HEARD);
    assert_true(worker_role_leads(s.role));
    s.role->ops->peer_lost(s.role, JOB_PS, 0, "it died", &s.out);
    meet(&s, 0);
    hear(&s, 0, 0, PS_EMPTY, 0);
    assert_null(sent(&s, 0, MESSAGE_LEADS)); /* but that it leads */
    assert_int_equal(s.out.at[find(&s, ACTION_CLAIM)].claim.message.leads.term, 3);
    say_term(&s, 1, 5, LEADS_HEARD);
    say_term(&s, 0, 5, LEADS_HEARD); /* ps/0 has given it out */
    assert_false(worker_role_leads(s.role));
    close_scene(&s);
}

static void a_chief_that_hears_of_another_one_yields_and_tells_who_does_not_know(void **state)
{
    struct scene s;
    open_worker(&s, 0);
    for (int ps = 0; ps < PS_COUNT; ps++) {
        meet(&s, ps);
        hear(&s, ps, 0, PS_EMPTY, 0);
    }
    assert_true(worker_role_leads(s.role));
    say_term(&s, 0, 1, LEADS_HEARD);
    assert_true(find(&s, ACTION_YIELD) >= 0);
    assert_false(worker_role_leads(s.role));
    say_term(&s, 1, 0, LEADS_HEARD);
    assert_int_equal(sent(&s, 1, MESSAGE_LEADS)->leads.term, 1);
    assert_int_equal(sent(&s, 1, MESSAGE_LEADS)->leads.claims, LEADS_HEARD);
    close_scene(&s);
}

/* ---- a link that is not read ---- */

static void finish_step(struct scene *s, err result)
{
    outbox_empty(&s->out);
    s->role->ops->done(s->role, ACTION_COMPUTE, result, "", &s->out);
}

/* It is in a generation, and computes. */
static void open_computing(struct scene *s, int task)
{
    const uint64_t nothing[LEDGER_NUMBERS] = {0};
    open_worker(s, task);
    for (int ps = 0; ps < PS_COUNT; ps++) meet(s, ps);
    for (int ps = 0; ps < PS_COUNT; ps++) hear(s, ps, 0, PS_SERVING, 0);
    for (int ps = 0; ps < PS_COUNT; ps++) {
        say(s, ps,
            &(struct message){.type = MESSAGE_LEDGER,
                              .generation = GENERATION,
                              .body = nothing,
                              .body_bytes = sizeof nothing,
                              .ledger.join = 1});
        say(s, ps,
            &(struct message){
                .type = MESSAGE_VALUES, .generation = GENERATION, .values.flags = VALUES_TICKET});
    }
    assert_true(find(s, ACTION_COMPUTE) >= 0);
}

/* Before what is said to that ps on its old link. */
static bool remakes(const struct scene *s, int ps)
{
    for (int i = 0; i < s->out.count; i++)
        if (s->out.at[i].type == ACTION_REMAKE && s->out.at[i].remake.ps == ps) return true;
    return false;
}

static void a_chief_to_be_does_not_wait_behind_its_push_of_a_step_that_is_lost(void **state)
{
    for (int is_elected_first = 0; is_elected_first < 2; is_elected_first++) {
        struct scene s;
        open_computing(&s, 1);
        finish_step(&s, OK);
        assert_non_null(sent(&s, 1, MESSAGE_PUSH));
        if (is_elected_first) say_term(&s, 0, 1, LEADS_HEARD);
        assert_false(remakes(&s, 1)); /* its step is under way */
        s.role->ops->peer_lost(s.role, JOB_PS, 0, "it died", &s.out);
        meet(&s, 0);
        hear(&s, 0, 0, PS_EMPTY, 0);
        assert_int_equal(remakes(&s, 1), is_elected_first);
        if (!is_elected_first) say_term(&s, 0, 1, LEADS_HEARD);
        assert_true(remakes(&s, 1));
        assert_false(remakes(&s, 0));
        meet(&s, 1);
        hear(&s, 1, 0, PS_SERVING, 0);
        assert_true(find(&s, ACTION_CLAIM) >= 0);
        close_scene(&s);
    }
}

static void what_was_answered_was_read(void **state)
{
    struct scene s;
    open_computing(&s, 1);
    finish_step(&s, OK);
    say(&s, 1,
        &(struct message){
            .type = MESSAGE_VALUES, .generation = GENERATION, .values = {.push = 1, .step = 1}});
    s.role->ops->peer_lost(s.role, JOB_PS, 0, "it died", &s.out);
    meet(&s, 0);
    say_term(&s, 0, 1, LEADS_HEARD);
    hear(&s, 0, 1, PS_EMPTY, 0);
    assert_false(remakes(&s, 1));
    close_scene(&s);
}

static void a_step_that_is_given_up_leaves_no_part_in_the_way(void **state)
{
    struct scene s;
    open_computing(&s, 2);
    outbox_empty(&s.out);
    worker_role_part(s.role, 1, parts_last(worker_role_left(s.role, 1)), &s.out);
    assert_non_null(sent(&s, 1, MESSAGE_PART));
    finish_step(&s, ERR_PEER);
    assert_true(remakes(&s, 1));
    assert_false(remakes(&s, 0));
    assert_int_equal(sent(&s, 0, MESSAGE_JOIN)->join.what, JOIN_UNUSED);
    meet(&s, 1);
    hear(&s, 1, 0, PS_SERVING, 0);
    assert_non_null(sent(&s, 1, MESSAGE_JOIN));
    close_scene(&s);
}

static void a_verdict_does_not_wait_behind_a_push(void **state)
{
    struct scene s;
    open_computing(&s, 2);
    finish_step(&s, OK);
    say(&s, 0, &(struct message){.type = MESSAGE_VERDICT, .verdict.exit_code = EXIT_TIMEOUT});
    assert_true(remakes(&s, 1));
    assert_false(remakes(&s, 0)); /* it has said so itself */
    assert_int_equal(sent(&s, 0, MESSAGE_VERDICT)->verdict.exit_code, EXIT_TIMEOUT);
    assert_true(worker_role_awaits(s.role, 1));
    meet(&s, 1);
    assert_int_equal(sent(&s, 1, MESSAGE_VERDICT)->verdict.exit_code, EXIT_TIMEOUT);
    close_scene(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_silent_chief_is_hung_up_on_and_the_next_worker_leads),
        cmocka_unit_test(what_a_chief_of_an_older_term_says_is_void),
        cmocka_unit_test(a_chief_that_speaks_keeps_the_lead),
        cmocka_unit_test(of_a_job_that_is_to_end_another_worker_leads_soon),
        cmocka_unit_test(of_a_job_that_is_to_end_another_worker_leads_where_the_chief_is_silent),
        cmocka_unit_test(a_chief_may_compute_for_long_the_step_that_a_job_is_to_end_with),
        cmocka_unit_test(a_chief_that_says_it_will_be_silent_leads_a_job_that_is_to_end),
        cmocka_unit_test(of_a_job_that_goes_on_nobody_leads_before_the_lease_is_over),
        cmocka_unit_test(a_chief_that_was_launched_and_is_gone_is_not_waited_for_to_end),
        cmocka_unit_test(time_in_which_the_ps_itself_stood_still_does_not_count),
        cmocka_unit_test(a_chief_that_has_never_come_is_waited_for_unless_the_job_goes_on),
        cmocka_unit_test(what_another_ps_says_of_terms_is_for_ps_0_to_say),
        cmocka_unit_test(nobody_leads_who_does_not_say_that_it_could),
        cmocka_unit_test(no_term_is_believed_beside_a_chief_that_leads_before_the_ps_serves),
        cmocka_unit_test(a_chief_whose_term_is_forgotten_is_outbid_once),
        cmocka_unit_test(where_nobody_else_ever_leads_no_term_is_believed),
        cmocka_unit_test(a_term_is_outbid_until_ps_0_has_heard_of_it),
        cmocka_unit_test(worker_0_leads_when_all_ps_know_of_nobody_else),
        cmocka_unit_test(a_new_chief_chooses_nothing_before_every_ps_has_answered_its_claim),
        cmocka_unit_test(a_chief_that_comes_back_says_which_ps_was_lost_meanwhile),
        cmocka_unit_test(a_chief_that_hears_of_another_one_yields_and_tells_who_does_not_know),
        cmocka_unit_test(a_chief_to_be_does_not_wait_behind_its_push_of_a_step_that_is_lost),
        cmocka_unit_test(what_was_answered_was_read),
        cmocka_unit_test(a_step_that_is_given_up_leaves_no_part_in_the_way),
        cmocka_unit_test(a_verdict_does_not_wait_behind_a_push),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
