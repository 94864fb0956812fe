/* test_breaches.c - each kind of message, with each of its numbers at and outside the ends of its
 * range, said to a ps, a worker and the chief in each state that they say of themselves: whatever
 * the lists (net/messages.def) name is tried. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include "core/cluster/role/verdict.h"
#include "tests/core/cluster/role/play.h"

#include <cmocka.h> /* last: it has a macro named fail */

enum {
#ifdef __SANITIZE_ADDRESS__
    EVERY = 7, /* of so many is said: a sanitizer is slow, and the plain build says all */
#else
    EVERY = 1,
#endif
    MIDDLE = 160,     /* events that a test looks ahead */
    TIMES_MAX = 3,    /* that a state is come to, at most */
    ENDS_SHARE = 4,   /* of this many states, one hears a number that may be right */
    LAST_STEP = 12,   /* of the job */
    WORKER = 1,       /* in whose place somebody lies to a ps; and whom a false ps lies to */
    BODY_NUMBERS = 9, /* of a body */
};

/* Fields beside those that have ranges */
enum { GENERATION = MESSAGE_PLACES, BEGIN, END, TASK, JOB, BODY, FIELDS };

/* ---- states ---- */

static void be_saved(struct stage *s)
{
    stage_save(s);
}

static void be_resized(struct stage *s)
{
    assert_null(stage_scale(s, 1));
}

static void depart(struct stage *s)
{
    stage_depart(s, &s->workers[WORKER]);
}

enum hearer { A_PS, A_WORKER, THE_CHIEF };

static const struct state {
    enum hearer hearer;
    const char *says;              /* within what it says of itself */
    void (*bring)(struct stage *); /* about, once the job trains */
    bool ends_otherwise;           /* than at its last step */
} states[] = {
    {A_PS, "empty"},
    {A_PS, "set up"},
    {A_PS, "serving"},
    {A_PS, "serving", be_saved},
    {A_PS, "writes a checkpoint", be_saved},
    {A_PS, "serving", be_resized, true},
    {A_PS, "writes a checkpoint", be_resized, true},
    {A_PS, "serving", depart, true},
    {A_WORKER, "holds"},
    {A_WORKER, "joins"},
    {A_WORKER, "waits for ps/0 to take"},
    {A_WORKER, "waits for values"},
    {A_WORKER, "computes"},
    {A_WORKER, "asks whether it may leave", depart, true},
    {A_WORKER, "has finished"},
    {THE_CHIEF, "holds"},
    {THE_CHIEF, "sets the ps up"},
    {THE_CHIEF, "waits for the ps to serve"},
    {THE_CHIEF, "joins"},
    {THE_CHIEF, "waits for ps/0 to take"},
    {THE_CHIEF, "waits for values"},
    {THE_CHIEF, "computes"},
    {THE_CHIEF, "a checkpoint is being made", be_saved},
    {THE_CHIEF, "a checkpoint is being made", be_resized, true},
    {THE_CHIEF, "has finished"},
    {THE_CHIEF, "has the last checkpoint made"},
    {THE_CHIEF, "evaluates"},
};
enum { STATES = sizeof states / sizeof *states };

static int heard_in[STATES]; /* lies */

static bool is_in(const struct state *state, const struct actor *actor)
{
    char text[ACTION_TEXT_MAX];
    if (!actor_is_running(actor)) return false;
    actor->role->ops->state(actor->role, text);
    return strstr(text, state->says);
}

/* ---- lies ---- */

struct lie {
    uint32_t type;
    int field;
    uint64_t number;
    uint64_t seed;
    const struct state *state;
};

static bool is_to_ps(const struct lie *lie)
{
    return lie->state->hearer == A_PS;
}

/* Of those to a ps */
static bool is_of_chief(const struct lie *lie)
{
    return is_to_ps(lie) && lie->seed / 3 % 2;
}

static struct stage_options options_of(uint64_t seed)
{
    const bool is_sync = seed % 2;
    const int ps = 1 + (int)(seed / 2 % 2), workers = 2 + (int)(seed / 4 % 2);
    struct stage_options o = (is_sync ? sync_options : async_options)(ps, workers, LAST_STEP, seed);
    o.profile.saves = true;
    if (seed / 8 % 3 == 0) { /* ps/0 may drop what is pushed */
        o.profile.drops_gradients = true;
        o.profile.config.takes_all = false;
        o.profile.config.replicas_to_aggregate = is_sync ? (uint32_t)workers - 1 : 1;
        o.profile.config.max_staleness = is_sync ? -1 : 2;
    }
    return o;
}

static void set(struct message *m, const struct lie *lie, uint64_t body[BODY_NUMBERS])
{
    for (int i = 0; i < BODY_NUMBERS; i++) body[i] = lie->number;
    switch (lie->field) {
    case GENERATION:
        m->generation = lie->number;
        break;
    case BEGIN:
        m->range.begin = (int64_t)lie->number;
        break;
    case END:
        m->range.end = (int64_t)lie->number;
        break;
    case TASK:
        m->task = (uint32_t)lie->number;
        break;
    case JOB:
        m->job = (uint32_t)lie->number;
        break;
    case BODY:
        m->body = body;
        m->body_bytes = (uint32_t)(8 * (lie->seed % (BODY_NUMBERS + 1)));
        break;
    default:
        message_set_number(m, lie->field, lie->number);
    }
}

static struct actor *receiver(struct stage *s, const struct lie *lie)
{
    if (is_to_ps(lie)) return &s->ps[lie->seed % (uint64_t)s->world.profile.ps_count];
    return &s->workers[lie->state->hearer == THE_CHIEF ? CHIEF : WORKER];
}

static int liar(const struct stage *s, const struct lie *lie)
{
    if (is_to_ps(lie)) return is_of_chief(lie) ? CHIEF : WORKER;
    return (int)(lie->seed % (uint64_t)s->world.profile.ps_count);
}

/* As it could be, but for the lie. */
static struct message said(const struct stage *s, const struct lie *lie, uint64_t *body)
{
    const struct role *worker = s->workers[WORKER].role;
    const uint64_t step = ps_role_step(s->ps[0].role);
    struct message m = {
        .type = lie->type,
        .task = WORKER,
        .job = is_to_ps(lie) ? JOB_WORKER : JOB_PS,
        .generation = worker_role_generation(worker),
    };
    const uint64_t numbers[] = {1, ps_role_ledger(s->ps[0].role, WORKER)->received + 1, step};
    for (int place = 0; place < 3; place++) message_set_number(&m, place, numbers[place]);
    set(&m, lie, body);
    return m;
}

/* Of others a ps does not tell where it may come of an earlier life of the values. */
static bool is_for_it_to_say(const struct lie *lie, const struct message *m)
{
    const unsigned of_worker = is_of_chief(lie) ? FROM_WORKER | FROM_CHIEF : FROM_WORKER;
    return !message_fault(m, is_to_ps(lie) ? of_worker : FROM_PS);
}

/* One that hears the liar is in that state, once more or again; false: it does not come to that. */
static bool begin_lying(struct stage *s, const struct lie *lie)
{
    const struct stage_options o = options_of(lie->seed);
    begin(s, &o);
    if (lie->state->bring) run_until_computing(s, WORKER);
    if (lie->state->bring) lie->state->bring(s);
    const struct actor *hears = receiver(s, lie);
    for (uint64_t times = 1 + stage_draw(s, TIMES_MAX);; times--) {
        while (!is_in(lie->state, hears) || !hears->links[liar(s, lie)])
            if (!stage_step(s)) return false;
        if (times == 1 || !stage_step(s)) break;
    }
    heard_in[lie->state - states]++;
    return true;
}

/* Whoever was hung up on comes again. */
static void meet(struct stage *s)
{
    for (int ps = 0; ps < s->world.profile.ps_count; ps++)
        for (int w = 0; w < s->world.profile.workers; w++) stage_connect(s, ps, w);
}

static void go_on_to_the_end(struct stage *s)
{
    meet(s);
    end_with(s, EXIT_DONE);
    for (int ps = 0; ps < s->world.profile.ps_count; ps++) nothing_twice(s, ps);
    assert_int_equal(stage_updates(s, 0), LAST_STEP);
    assert_int_not_equal(s->world.folder.newest, NOTHING);
    assert_int_equal(s->world.folder.at[s->world.folder.newest].step, LAST_STEP);
}

static void fail_lie(const struct lie *lie, const char *wrong)
{
    fail_msg("seed %llu, \"%s\": %s with number %llu in field %d: %s",
             (unsigned long long)lie->seed, lie->state->says, message_name(lie->type),
             (unsigned long long)lie->number, lie->field, wrong);
}

static void a_breach_is_told_of_and_counts_for_nothing(const struct lie *lie)
{
    struct stage s;
    uint64_t body[BODY_NUMBERS];
    if (begin_lying(&s, lie)) {
        const int breaches = s.world.breaches;
        const struct message m = said(&s, lie, body);
        stage_lie(&s, receiver(&s, lie), liar(&s, lie), &m);
        if (s.world.breaches == breaches && is_for_it_to_say(lie, &m))
            fail_lie(lie, "was not told of");
    }
    if (lie->state->ends_otherwise) {
        meet(&s);
        settle(&s);
    } else {
        go_on_to_the_end(&s);
    }
    stage_close(&s);
}

/* Whatever it does: what comes of it is not carried out. */
static void the_role_stays_sound(const struct lie *lie)
{
    struct stage s;
    uint64_t body[BODY_NUMBERS];
    if (begin_lying(&s, lie)) {
        struct actor *hears = receiver(&s, lie);
        const struct message m = said(&s, lie, body);
        const enum job job = is_to_ps(lie) ? JOB_WORKER : JOB_PS;
        hears->role->ops->message(hears->role, job, liar(&s, lie), &m, &hears->outbox);
        const char *wrong = (is_to_ps(lie) ? ps_role_check : worker_role_check)(hears->role);
        if (wrong) fail_lie(lie, wrong);
    }
    stage_close(&s);
}

static bool ends_the_job(const struct lie *lie)
{
    return lie->type == MESSAGE_SETUP && is_to_ps(lie) && !is_of_chief(lie);
}

static void say_in_states(void (*say)(const struct lie *), struct lie lie, uint64_t share)
{
    static uint64_t all, seed;
    for (int i = 0; i < STATES; i++) {
        if (all++ % (EVERY * share)) continue;
        lie.seed = ++seed;
        lie.state = &states[i];
        if (!ends_the_job(&lie)) say(&lie);
    }
}

static void for_each_field(void (*try)(uint32_t type, int field), int fields)
{
    for (uint32_t type = MESSAGE_WINDOWS + 1; type < MESSAGE_TYPES; type++)
        for (int field = 0; field < fields; field++)
            if (field >= MESSAGE_PLACES || message_field(type, field)->name) try(type, field);
}

static void lie_with(void (*say)(const struct lie *), uint32_t type, int field, uint64_t number)
{
    const bool is_narrow = field == 0 || field == TASK || field == JOB;
    const bool may_be_right = say == the_role_stays_sound;
    if (is_narrow && number > UINT32_MAX) return;
    say_in_states(say, (struct lie){.type = type, .field = field, .number = number},
                  may_be_right ? ENDS_SHARE : 1);
}

static void lie_beyond(uint32_t type, int field)
{
    const uint64_t most = message_ends_of_all.at[message_field(type, field)->range].most;
    const uint64_t largest = field == 0 ? UINT32_MAX : UINT64_MAX;
    if (most >= largest) return;
    lie_with(a_breach_is_told_of_and_counts_for_nothing, type, field, most + 1);
    lie_with(a_breach_is_told_of_and_counts_for_nothing, type, field, largest);
}

static void a_number_beyond_its_range_is_a_breach(void **state)
{
    for_each_field(lie_beyond, MESSAGE_PLACES);
}

static void lie_at_the_ends(uint32_t type, int field)
{
    static const uint64_t numbers[] = {
        0,         1, 2, 7, INT32_MAX, UINT32_MAX, MESSAGE_COUNT_MAX, INT64_MAX, UINT64_MAX - 1,
        UINT64_MAX};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        lie_with(the_role_stays_sound, type, field, numbers[i]);
    if (field >= MESSAGE_PLACES) return;
    const uint64_t most = message_ends_of_all.at[message_field(type, field)->range].most;
    lie_with(the_role_stays_sound, type, field, most);
    lie_with(the_role_stays_sound, type, field, most - 1);
}

static void no_number_makes_a_role_unsound(void **state)
{
    for_each_field(lie_at_the_ends, FIELDS);
}

static void all_states_are_come_to(void **state)
{
    for (int i = 0; i < STATES; i++)
        if (heard_in[i] < LAST_STEP)
            fail_msg("\"%s\" (%d): %d lies", states[i].says, i, heard_in[i]);
}

/* ---- what a ps has agreed on ---- */

static struct message next_push(const struct stage *s, int ps, int worker)
{
    const struct role *role = s->ps[ps].role;
    return (struct message){
        .type = MESSAGE_PUSH,
        .generation = worker_role_generation(s->workers[worker].role),
        .push = {s->world.profile.gradients_per_push[worker],
                 ps_role_ledger(role, worker)->received + 1, ps_role_step(role)},
        .range = {0, PIECES * PIECE_FLOATS},
    };
}

static void check_push(uint64_t seed, int field, uint64_t more, uint32_t type)
{
    struct stage s;
    const struct stage_options o = options_of(seed);
    begin(&s, &o);
    run_until_computing(&s, WORKER);
    struct message m = next_push(&s, 0, WORKER);
    m.push.updates = ps_role_counters(s.ps[0].role).applied;
    m.type = type; /* a PART has the fields of a PUSH but for the last one, in the same places */
    message_set_number(&m, field, message_number(&m, field) + more);
    stage_lie(&s, &s.ps[0], WORKER, &m);
    assert_int_equal(s.world.breaches, 1);
    go_on_to_the_end(&s);
    stage_close(&s);
}

static void a_push_of_what_was_not_agreed_is_a_breach(void **state)
{
    static const uint64_t more[] = {1, 1000, UINT32_MAX - 1, UINT64_C(1) << 61};
    for (uint64_t seed = 1; seed <= SEEDS; seed++)
        for (int field = 0; message_field(MESSAGE_PUSH, field)->name; field++)
            check_push(seed, field, more[seed / 24 % (field == 0 ? 3 : 4)],
                       !message_field(MESSAGE_PART, field)->name || seed % 3 ? MESSAGE_PUSH
                                                                             : MESSAGE_PART);
}

static void run_until_set_up(struct stage *s)
{
    for (int i = 0; i < 4 * MIDDLE && !ps_role_is_set_up(s->ps[0].role); i++) stage_run(s, 1);
    assert_true(ps_role_is_set_up(s->ps[0].role));
}

/* While a ps is filled, too, both ends know how many arrays its block has. */
static void an_array_that_a_block_has_not_is_a_breach(void **state)
{
    int filling = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct stage s;
        const struct stage_options o = options_of(seed);
        begin(&s, &o);
        run_until_set_up(&s);
        const uint64_t generation = worker_role_generation(s.workers[CHIEF].role);
        const uint64_t beyond = STAGE_ARRAYS + 1 + stage_draw(&s, 1000);
        const struct message init = {
            .type = MESSAGE_INIT, .generation = generation, .init.array = (uint32_t)beyond};
        const struct message ready = {
            .type = MESSAGE_READY, .generation = generation, .ready = {READY_WANTS, beyond}};
        filling += !ps_role_is_serving(s.ps[0].role);
        stage_lie(&s, &s.workers[CHIEF], 0, &ready);
        stage_lie(&s, &s.ps[0], CHIEF, &init);
        assert_int_equal(s.world.breaches, 2);
        go_on_to_the_end(&s);
        stage_close(&s);
    }
    assert_true(filling > SEEDS / 2);
}

/* Where ps/0 decides, a worker brings the others fewer pushes: how many fewer, they have heard. */
static void a_push_far_ahead_of_another_ps_is_a_breach(void **state)
{
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct stage s;
        struct stage_options o = options_of(24 * seed + 2 + seed % 2); /* two ps, which follow */
        begin(&s, &o);
        run_until_computing(&s, WORKER);
        struct message m = next_push(&s, 1, WORKER);
        m.push.push += seed % 2 ? 1000 : MESSAGE_COUNT_MAX / 2;
        stage_lie(&s, &s.ps[1], WORKER, &m);
        assert_int_equal(s.world.breaches, 1);
        go_on_to_the_end(&s);
        stage_close(&s);
    }
}

static void speak_of_a_later_term(struct stage *s, int ps)
{
    const struct message m = {.type = MESSAGE_LEADS,
                              .generation = worker_role_generation(s->workers[WORKER].role),
                              .leads = {LEADS_CLAIMS,
                                        1 + stage_draw(s, TERMS_AHEAD_MAX - WORKERS_MAX),
                                        .lease_ms = 1000}};
    stage_lie(s, &s->ps[ps], WORKER, &m);
}

/* Whoever is not ps/0's chief hears of terms from it. */
static void a_term_that_was_not_given_out_is_overheard(void **state)
{
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct stage s;
        const struct stage_options o = options_of(seed);
        begin(&s, &o);
        run_until_computing(&s, WORKER);
        speak_of_a_later_term(&s, 0);
        assert_int_equal(s.world.breaches, 1);
        assert_int_equal(ps_role_term(s.ps[0].role), 0);
        go_on_to_the_end(&s);
        stage_close(&s);
    }
}

/* Another ps may not know that it is none: until the chief hears of it. */
static void a_term_that_ps_0_has_not_given_out_is_outbid(void **state)
{
    uint64_t outbid = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct stage s;
        const struct stage_options o = options_of(seed | 2); /* two ps */
        begin(&s, &o);
        run_until_computing(&s, WORKER);
        stage_run(&s, (int)stage_draw(&s, MIDDLE / 2));
        if (seed % 3 == 0) stage_cut(&s, 1, CHIEF);
        if (s.ps[1].links[WORKER]) speak_of_a_later_term(&s, 1);
        stage_run(&s, (int)stage_draw(&s, MIDDLE / 8));
        stage_connect(&s, 1, CHIEF);
        stage_connect(&s, 1, WORKER);
        settle(&s);
        for (int w = 0; w < s.world.profile.workers; w++) stage_connect(&s, 0, w);
        go_on_to_the_end(&s);
        outbid += ps_role_term(s.ps[0].role) > 0;
        assert_int_equal(ps_role_chief(s.ps[0].role), CHIEF);
        stage_close(&s);
    }
    assert_true(outbid > SEEDS / 2);
}

static bool name_a_term(struct stage *s, uint64_t more)
{
    const struct role *ps = s->ps[1].role;
    const uint64_t term = ps_role_term(ps) + more;
    const struct message m = {.type = MESSAGE_LEADS,
                              .generation = worker_role_generation(s->workers[WORKER].role),
                              .leads = {LEADS_CLAIMS, term, .lease_ms = 1000}};
    stage_connect(s, 1, WORKER);
    stage_lie(s, &s->ps[1], WORKER, &m);
    return ps_role_term(ps) == term;
}

static void run_until_outbid(struct stage *s)
{
    for (int i = 0; i < 4 * MIDDLE && !ps_role_obeys(s->ps[1].role, CHIEF); i++) {
        stage_connect(s, 1, CHIEF);
        stage_run(s, 1);
    }
}

/* What is being saved is given up each time, and the next time it is not believed at once. */
static void who_goes_on_naming_terms_is_believed_once(void **state)
{
    enum { TIMES = 30 };
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct stage s;
        const struct stage_options o = options_of(seed | 2); /* two ps */
        int believed = 0;
        begin(&s, &o);
        run_until_computing(&s, WORKER);
        stage_hang(&s, &s.workers[WORKER]);
        for (int i = 0; i < TIMES; i++) {
            believed += name_a_term(&s, 1 + stage_draw(&s, WORKERS_MAX));
            run_until_outbid(&s);
        }
        assert_int_equal(believed, 1);
        assert_true(ps_role_obeys(s.ps[1].role, CHIEF));
        stage_close(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_number_beyond_its_range_is_a_breach),
        cmocka_unit_test(no_number_makes_a_role_unsound),
        cmocka_unit_test(all_states_are_come_to),
        cmocka_unit_test(a_push_of_what_was_not_agreed_is_a_breach),
        cmocka_unit_test(an_array_that_a_block_has_not_is_a_breach),
        cmocka_unit_test(a_push_far_ahead_of_another_ps_is_a_breach),
        cmocka_unit_test(a_term_that_was_not_given_out_is_overheard),
        cmocka_unit_test(a_term_that_ps_0_has_not_given_out_is_outbid),
        cmocka_unit_test(who_goes_on_naming_terms_is_believed_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
