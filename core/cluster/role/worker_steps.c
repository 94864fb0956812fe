/* worker_steps.c - joining a generation, and its steps. */
#include <assert.h>
#include <stdio.h>

#include "core/base/replicas.h"
#include "core/cluster/role/worker_role_inside.h"

static bool all_answered(const struct worker_role *w)
{
    for (int ps = 0; ps < w->options.ps_count; ps++) {
        const struct server *s = &w->servers[ps];
        if (!worker_is_asked(w, ps)) continue;
        if (!s->push.has_answered || (w->phase == JOINING && s->join.inquiry != ANSWERED))
            return false;
    }
    return true;
}

/* ---- joining ---- */

/* A ps that stands in for one that is gone is asked for values, too. */
static void say_reads(struct worker_role *w, int ps, struct outbox *out)
{
    if (worker_stands_in(w, ps)) worker_send(w, ps, MESSAGE_READS, out);
}

static void join(struct worker_role *w, int ps, enum join_code code, uint64_t step,
                 struct outbox *out)
{
    struct server *s = &w->servers[ps];
    say_reads(w, ps, out);
    struct message *m = worker_send(w, ps, MESSAGE_JOIN, out);
    s->join.code = code;
    s->join.step = step;
    m->join = (struct message_join){code, s->push.number, step, ++s->join.number};
    s->push.ahead = 0; /* the ps forgets it */
    if (s->contact != GONE) server_set_inquiry(s, ASKED);
}

static void join_all_as(struct worker_role *w, enum join_code code, struct outbox *out)
{
    worker_begin_phase(w, JOINING);
    for (int ps = 0; ps < w->options.ps_count; ps++) {
        struct server *s = &w->servers[ps];
        if (worker_is_spared(w, ps)) continue; /* or is asked when it serves, if it does */
        if (worker_is_asked(w, ps))
            join(w, ps, code, w->first_step, out);
        else if (s->contact != GONE)
            server_set_inquiry(s, ASKED);
    }
}

static void join_all(struct worker_role *w, struct outbox *out)
{
    join_all_as(w, JOIN_PLAIN, out);
}

/* The step that was computed is given up, but for the ps that have its push already. */
static void give_up_step(struct worker_role *w)
{
    for (int ps = 0; ps < w->options.ps_count; ps++) w->servers[ps].push.number = 0;
}

/* Does this ps wait for a push that another one has? */
static bool lacks_push(const struct worker_role *w, int ps)
{
    const struct server *first = &w->servers[0], *s = &w->servers[ps];
    if (w->options.drops_gradients) return s->ledger.received < first->ledger.taken;
    for (int i = 0; i < w->options.ps_count; i++)
        if (worker_is_asked(w, i) && s->ledger.received < w->servers[i].ledger.received)
            return true;
    return false;
}

static bool some_lack_push(const struct worker_role *w)
{
    bool is_any = false;
    for (int ps = 0; ps < w->options.ps_count; ps++)
        is_any |= worker_is_asked(w, ps) && lacks_push(w, ps);
    return is_any;
}

/* Its values did not all come, or no batch: nothing has left of the step, which is computed anew. A
 * step that one ps has already keeps its ticket: the others cannot go on without it. */
void worker_ask_again(struct worker_role *w, struct outbox *out)
{
    if (w->phase != COMPUTING) return;
    worker_make_way(w, out);
    join_all_as(w, some_lack_push(w) ? JOIN_PLAIN : JOIN_UNUSED, out);
}

void worker_adopt(struct worker_role *w, uint64_t generation, struct outbox *out)
{
    if (w->generation != generation) w->saving.has_saved = false;
    w->generation = generation;
    w->now.has_ticket = w->is_last_hour = false;
    if (w->participation == IN_CURRENT) worker_set_participation(w, IN_EARLIER);
    for (int ps = 0; ps < w->options.ps_count; ps++) {
        struct server *s = &w->servers[ps];
        s->push.number = s->push.step = s->values.step = s->values.version =
            s->values.saved_version = 0;
        s->ledger = (struct ledger){0};
    }
    if (w->options.homes < w->options.ps_count)
        outbox_add_stand_in(out, (struct action_stand_in){worker_gone(w)});
    join_all(w, out);
    if (worker_stops_job(w)) worker_ask_all_to_stop(w, NOBODY, out);
}

/* The ps is the same, its link is new: what was said on the old one may be lost. */
void worker_rejoin(struct worker_role *w, int ps, struct outbox *out)
{
    struct server *s = &w->servers[ps];
    uint64_t wanted = w->phase == JOINING ? w->first_step : 0;
    if (w->phase == WAITING) wanted = s->push.step;
    server_set_inquiry(s, ASKED);
    if (w->phase == DEPARTING && ps == 0)
        worker_ask_to_leave(w, out);
    else if (w->phase == DEPARTING)
        return; /* it hears what ps/0 decides */
    else if (w->phase == FINISHING)
        worker_say_finished(w, ps, out);
    else if (worker_is_asked(w, ps))
        join(w, ps, JOIN_PLAIN, wanted, out);
    if (worker_stops_job(w)) worker_ask_to_stop(w, ps, out);
}

/* ---- pushing ---- */

static void send_gradient(struct worker_role *w, int ps, enum message_type type, uint64_t push,
                          uint64_t step, struct range range, struct outbox *out)
{
    struct message *m = worker_send(w, ps, type, out);
    const uint32_t gradients = w->options.gradients_per_push;
    if (type == MESSAGE_PUSH)
        m->push = (struct message_push){gradients, push, step, w->servers[ps].values.version};
    else
        m->part = (struct message_part){gradients, push, step};
    m->range = range;
    if (w->options.lends_windows) w->servers[ps].push.unheard = push;
}

/* With what has not left ahead of it. */
static void send_push(struct worker_role *w, int ps, struct outbox *out)
{
    const struct server *s = &w->servers[ps];
    uint64_t left = parts_all(&s->moved) & ~s->push.ahead;
    const struct range front = parts_take_front(&s->moved, &left);
    while (left) {
        const struct range last = parts_take_last(&s->moved, &left);
        send_gradient(w, ps, MESSAGE_PART, s->push.number, s->push.step, last, out);
    }
    send_gradient(w, ps, MESSAGE_PUSH, s->push.number, s->push.step, front, out);
}

uint64_t worker_role_left(const struct role *role, int ps)
{
    const struct worker_role *w = (const struct worker_role *)role;
    const struct server *s = &w->servers[ps];
    const bool is_whole = s->values.overlap & OVERLAP_WHOLE_PUSHES;
    const bool may_leave =
        w->phase == COMPUTING && s->push.is_target && s->join.inquiry == ANSWERED && !is_whole;
    return may_leave ? parts_all(&s->moved) & ~s->push.ahead & ~FIRST_PART : 0;
}

unsigned worker_role_overlap(const struct role *role, int ps)
{
    return ((const struct worker_role *)role)->servers[ps].values.overlap;
}

void worker_role_part(struct role *role, int ps, uint64_t parts, struct outbox *out)
{
    struct worker_role *w = (struct worker_role *)role;
    struct server *s = &w->servers[ps];
    assert(!(parts & ~worker_role_left(role, ps)));
    s->push.ahead |= parts;
    while (parts) {
        const struct range last = parts_take_last(&s->moved, &parts);
        send_gradient(w, ps, MESSAGE_PART, w->now.push, s->values.step, last, out);
    }
}

/* Once ps/0 was lost it may have no ticket for the push any more: it has to say first that it takes
 * it. */
void worker_doubt(struct worker_role *w)
{
    const struct server *first = &w->servers[0];
    const bool is_awaited = w->phase == WAITING && first->push.is_out && !first->push.has_answered;
    const bool decides = !w->options.is_sync && !w->options.drops_gradients;
    if (decides && (w->phase == COMPUTING || is_awaited)) w->now.in_doubt = true;
}

static bool may_leave(const struct worker_role *w, int ps)
{
    return !w->now.in_doubt || (ps > 0 && w->servers[0].ledger.received >= w->now.push);
}

/* What has not left on the links that are; the rest follows the ledgers that are awaited. */
static void send_pushes(struct worker_role *w, struct outbox *out)
{
    for (int ps = 0; ps < w->options.ps_count; ps++) {
        struct server *s = &w->servers[ps];
        const bool is_due = s->push.is_out && !s->push.has_left && s->join.inquiry == ANSWERED;
        if (!is_due || s->push.number <= s->ledger.received || !may_leave(w, ps)) continue;
        s->push.has_left = true;
        send_push(w, ps, out);
    }
}

/* Synchronous: a ps has gone on without this worker while it was away. */
static bool is_passed_over(const struct worker_role *w)
{
    if (!w->options.is_sync || w->options.drops_gradients) return false;
    for (int ps = 0; ps < w->options.ps_count; ps++) {
        const struct server *s = &w->servers[ps];
        const bool is_due = s->push.is_out && !s->push.has_left && s->join.inquiry == ANSWERED;
        if (is_due && s->push.number > s->ledger.received && s->values.round > s->push.step)
            return true;
    }
    return false;
}

/* A ps is past the round that this gradient was computed for: the step is computed again. */
static bool begin_anew(struct worker_role *w, struct outbox *out)
{
    if (!is_passed_over(w)) return false;
    give_up_step(w);
    join_all(w, out);
    return true;
}

static void push_to(struct worker_role *w, int ps, uint64_t step)
{
    struct server *s = &w->servers[ps];
    s->push.number = w->now.push;
    s->push.step = step;
    s->push.is_out = true;
}

/* The last life died between two ps. A gradient of it that waits for its round, while others of the
 * round may wait for this worker at another ps, is taken back, and comes again after what those
 * lack; not where ps/0 decides what counts, which it has. This JOIN also tells ps/0 not to hold the
 * worker for a snapshot, which the other ps make only once they have what they lack. */
static void take_back(struct worker_role *w, struct outbox *out)
{
    for (int ps = 0; ps < (w->options.is_sync ? w->options.ps_count : 1); ps++) {
        struct server *s = &w->servers[ps];
        bool waits = !s->push.has_answered && s->join.code != JOIN_TAKES_BACK && !lacks_push(w, ps);
        if (worker_is_asked(w, ps) && waits) join(w, ps, JOIN_TAKES_BACK, w->first_step, out);
    }
}

/* Synchronous: some ps went on without this worker and others still wait for it. Those are told
 * that it brings nothing for the rounds that the first are past. */
static bool catch_up(struct worker_role *w, struct outbox *out)
{
    uint64_t step = 0;
    bool is_behind = false;
    for (int ps = 0; ps < w->options.ps_count && w->options.is_sync; ps++)
        if (worker_is_asked(w, ps) && w->servers[ps].values.step > step)
            step = w->servers[ps].values.step;
    for (int ps = 0; ps < w->options.ps_count && w->options.is_sync; ps++) {
        struct server *s = &w->servers[ps];
        const bool is_told = s->values.step >= step || s->join.step >= step;
        const bool has_push = s->ledger.taken && s->ledger.taken_step >= s->values.step;
        if (!worker_is_asked(w, ps) || is_told || has_push || lacks_push(w, ps)) continue;
        s->push.has_answered = s->push.is_out = false;
        s->push.step = step; /* if its link is lost meanwhile */
        const bool makes_good = some_lack_push(w) && s->join.code == JOIN_TAKES_BACK;
        join(w, ps, makes_good ? JOIN_TAKES_BACK : JOIN_PLAIN, step, out);
        is_behind = true;
    }
    return is_behind;
}

/* Of a step that is over for this worker, or that it has not begun. */
static bool awaits_values(const struct worker_role *w)
{
    return w->phase == JOINING || w->phase == WAITING;
}

/* What all ps have is known. Values may not come before others have heard of this worker: those of
 * ps/0 where it holds it for a snapshot that they cannot make. */
static void note_ledgers(struct worker_role *w, struct outbox *out)
{
    for (int ps = 0; ps < w->options.ps_count; ps++)
        if (worker_is_asked(w, ps) && w->servers[ps].join.inquiry != ANSWERED) return;
    if (w->phase == JOINING && some_lack_push(w)) take_back(w, out);
    if (awaits_values(w)) catch_up(w, out);
}

/* A push that got lost with its link comes again, and one that found no link comes now. */
void worker_ledger(struct worker_role *w, int ps, const struct message *m, struct outbox *out)
{
    struct server *s = &w->servers[ps];
    bool is_awaited = m->ledger.join == s->join.number && s->join.inquiry == ASKED;
    if (!is_awaited || !ledger_unpack(m, 1, &s->ledger)) return;
    server_set_inquiry(s, ANSWERED);
    s->push.unheard = 0;
    if (awaits_values(w)) s->values.step = m->ledger.step;
    s->values.round = m->ledger.step;
    if (begin_anew(w, out)) return;
    send_pushes(w, out);
    note_ledgers(w, out);
}

/* The step that ps reach by the push that they lack and others have: the furthest of them. Behind
 * the last step there is no further round. */
static uint64_t step_behind(const struct worker_role *w)
{
    uint64_t furthest = 0;
    for (int ps = 0; ps < w->options.ps_count; ps++) {
        const struct server *s = &w->servers[ps];
        const bool is_over = s->said.last_step && s->values.step >= s->said.last_step;
        const uint64_t step = is_over ? s->values.step : s->values.step + 1;
        if (s->push.is_target && step > furthest) furthest = step;
    }
    return furthest;
}

/* Synchronous: some ps get a push that others have had before, in the round of this step. The
 * others hear, before the first answer, that nothing comes for that round: a snapshot may wait for
 * it, or be behind it. */
static void pass_round(struct worker_role *w, int ps, uint64_t step, struct outbox *out)
{
    struct server *s = &w->servers[ps];
    s->push.step = step; /* if its link is lost meanwhile */
    if (s->join.inquiry != NOT_ASKED) join(w, ps, JOIN_PLAIN, step, out);
}

void worker_say_finished(struct worker_role *w, int ps, struct outbox *out)
{
    say_reads(w, ps, out);
    struct message *m = worker_send(w, ps, MESSAGE_FINISHED, out);
    m->finished.flags = w->finished.code;
    m->finished.data_end = w->finished.data_end;
}

void worker_say_finished_to_all(struct worker_role *w, struct outbox *out)
{
    for (int ps = 0; ps < w->options.ps_count; ps++) worker_say_finished(w, ps, out);
}

void worker_finish_steps(struct worker_role *w, struct outbox *out)
{
    worker_begin_phase(w, FINISHING);
    worker_say_finished_to_all(w, out);
}

/* Who is to leave asks for that first. */
static void finish(struct worker_role *w, uint32_t code, struct outbox *out)
{
    w->finished.code = code;
    if (w->ending != DEPARTS) {
        worker_finish_steps(w, out);
        return;
    }
    w->finished.code |= FINISHED_UNUSED;
    worker_begin_phase(w, DEPARTING);
    worker_depart(w, out);
}

/* Some ps has the push, or may get it. */
static bool has_been_shown(const struct worker_role *w)
{
    for (int ps = 1; ps < w->options.ps_count; ps++) {
        const struct server *s = &w->servers[ps];
        const bool has_it = s->ledger.received >= w->now.push || s->push.has_left;
        if (worker_is_asked(w, ps) && has_it) return true;
    }
    return false;
}

/* It was given to another worker, when all others had finished. What one ps has, all get. */
static void lose_ticket(struct worker_role *w, struct outbox *out)
{
    if (has_been_shown(w)) {
        join(w, 0, JOIN_COMPLETES, 0, out);
        return;
    }
    give_up_step(w);
    finish(w, 0, out);
}

/* What ps/0 says on its new link of the ticket for the step that is under way. */
static void resolve_doubt(struct worker_role *w, const struct message *m, struct outbox *out)
{
    w->now.has_ticket = m->values.flags & VALUES_TICKET;
    w->now.in_doubt = !w->now.has_ticket;
    if (w->phase != WAITING) return; /* it computes: then nothing has left that could */
    if (w->now.has_ticket)
        send_pushes(w, out);
    else
        lose_ticket(w, out);
}

/* The targets of what was computed are known. What ps/0 has and others lack, it has decided on. */
void worker_push(struct worker_role *w, struct outbox *out)
{
    const bool drops = w->options.drops_gradients;
    bool is_new = w->servers[0].push.is_target, asks = drops && is_new;
    uint64_t taken_step = w->servers[0].ledger.taken_step, next = step_behind(w);
    worker_begin_phase(w, asks ? ASKING : WAITING);
    for (int ps = 0; ps < w->options.ps_count; ps++) {
        struct server *s = &w->servers[ps];
        if (asks && ps > 0) break;
        if (s->push.is_target)
            push_to(w, ps, drops && !is_new ? taken_step : s->values.step);
        else if (w->options.is_sync && !drops && worker_is_asked(w, ps) && s->values.step < next)
            pass_round(w, ps, next, out);
        else
            s->push.has_answered = s->join.inquiry != NOT_ASKED;
    }
    if (begin_anew(w, out)) return;
    send_pushes(w, out);
    if (w->now.in_doubt && !w->now.has_ticket) lose_ticket(w, out);
}

/* ---- what comes next ---- */

void worker_bring_nothing(struct worker_role *w, struct outbox *out)
{
    if (w->phase == COMPUTING) finish(w, FINISHED_UNUSED, out);
}

void worker_role_note_end(struct role *role, uint64_t batches)
{
    ((struct worker_role *)role)->finished.data_end = 1 + batches;
}

bool worker_role_is_stopping(const struct role *role)
{
    const struct worker_role *w = (const struct worker_role *)role;
    const bool is_new = w->servers[0].push.is_target && !some_lack_push(w);
    return is_new && (w->ending != GOES_ON || w->is_last_hour);
}

static void set_targets(struct worker_role *w, bool (*is_target)(const struct worker_role *, int))
{
    for (int ps = 0; ps < w->options.ps_count; ps++)
        w->servers[ps].push.is_target = worker_is_asked(w, ps) && is_target(w, ps);
}

static bool lacks_next(const struct worker_role *w, int ps)
{
    return w->servers[ps].ledger.received < w->now.push;
}

static bool is_any(const struct worker_role *w, int ps)
{
    return true;
}

/* Which push of this worker's stream is the next, and who lacks it? In the ordinary case one after
 * the last, and all. */
static void plan_next(struct worker_role *w)
{
    const struct server *first = &w->servers[0];
    if (w->options.drops_gradients) {
        w->now.push = first->ledger.taken;
        for (int ps = 1; ps < w->options.ps_count; ps++) {
            if (!worker_is_asked(w, ps) || !lacks_next(w, ps)) continue;
            set_targets(w, lacks_next);
            return;
        }
        w->now.push = first->ledger.received + 1;
        set_targets(w, is_any);
        return;
    }
    uint64_t least = first->ledger.received;
    for (int ps = 1; ps < w->options.ps_count; ps++)
        if (worker_is_asked(w, ps) && w->servers[ps].ledger.received < least)
            least = w->servers[ps].ledger.received;
    w->now.push = least + 1;
    set_targets(w, lacks_next);
}

static void note_adopted(struct worker_role *w, struct outbox *out)
{
    if (w->participation == IN_CURRENT) return;
    const struct action_adopted adopted = {w->global_step, .is_first = w->participation == IN_NONE};
    outbox_add_adopted(out, adopted);
    worker_set_participation(w, IN_CURRENT);
}

/* Some ps have the push of a life that was lost, or cut off, before it had brought it to all. */
static void note_making_good(const struct worker_role *w, struct outbox *out)
{
    char text[TASKS_TEXT_MAX] = "";
    size_t used = 0;
    bool is_any_there = false;
    for (int ps = 0; ps < w->options.ps_count; ps++) {
        is_any_there |= worker_is_asked(w, ps) && !w->servers[ps].push.is_target;
        if (w->servers[ps].push.is_target && used + TASK_NAME_MAX < sizeof text)
            used +=
                (size_t)snprintf(text + used, sizeof text - used, "%sps/%d", used ? ", " : "", ps);
    }
    const bool has_bits = w->options.is_sync && !w->options.drops_gradients;
    if (is_any_there)
        outbox_log(out, "brings push %llu to %s: the other ps had it before this worker was lost%s",
                   (unsigned long long)w->now.push, text,
                   has_bits ? "; from here on the bits are not those of an undisturbed run" : "");
}

static void compute(struct worker_role *w, struct outbox *out)
{
    note_making_good(w, out);
    worker_begin_phase(w, COMPUTING);
    w->now.values_step = w->global_step;
    for (int ps = 0; ps < w->options.ps_count; ps++) w->servers[ps].push.ahead = 0;
    const struct action_compute step = {w->global_step, .batch = w->now.push - 1};
    outbox_add_compute(out, step);
}

/* For what other ps have and ps/0 has not. */
static void demand_ticket(struct worker_role *w, struct outbox *out)
{
    worker_begin_phase(w, JOINING);
    for (int ps = 1; ps < w->options.ps_count; ps++)
        w->servers[ps].push.has_answered = w->servers[ps].join.inquiry == ANSWERED;
    join(w, 0, JOIN_COMPLETES, 0, out);
}

/* All values of a step are there. */
static void go_on(struct worker_role *w, struct outbox *out)
{
    if (!all_answered(w)) return;
    if (w->phase == FINISHING) {
        worker_save_last(w, out);
        return;
    }
    if (catch_up(w, out)) return;
    note_adopted(w, out);
    plan_next(w);
    const bool departs = w->ending == DEPARTS && w->servers[0].push.is_target && !some_lack_push(w);
    if (!departs && (w->now.has_ticket || !w->servers[0].push.is_target))
        compute(w, out);
    else if (!w->options.is_sync && some_lack_push(w))
        demand_ticket(w, out);
    else
        finish(w, 0, out);
}

/* ps/0 has taken the gradient or dropped it: now the others. */
static void turn_to_others(struct worker_role *w, bool is_dropped, struct outbox *out)
{
    worker_begin_phase(w, WAITING);
    for (int ps = 1; ps < w->options.ps_count; ps++) {
        if (!worker_is_asked(w, ps)) continue;
        /* asynchronous: it may never get there, if a worker died between ps/0 and it */
        uint64_t wanted = w->options.is_sync ? w->global_step : 0;
        w->servers[ps].push.step = wanted;
        if (is_dropped)
            join(w, ps, JOIN_PLAIN, wanted, out);
        else
            push_to(w, ps, w->now.values_step);
    }
    send_pushes(w, out);
}

static void pass_on(struct worker_role *w, bool is_dropped, struct outbox *out)
{
    if (is_dropped && !w->now.has_ticket) {
        finish(w, 0, out);
        return;
    }
    turn_to_others(w, is_dropped, out);
    w->servers[0].push.has_answered = true;
    go_on(w, out);
}

/* What became of the push, as far as this ps is concerned. */
static void note_answer(struct server *s, const struct message *m)
{
    s->push.has_answered = true;
    if (m->values.push >= s->push.unheard) s->push.unheard = 0;
    s->values.step = s->values.round = m->values.step;
    s->values.version = m->values.updates;
    s->values.overlap = (m->values.flags & VALUES_WANTS_PARTS ? OVERLAP_ADVANCE : 0) |
                        (m->values.flags & VALUES_WANTS_WHOLE ? OVERLAP_WHOLE_PUSHES : 0);
    if (!s->push.is_out) return;
    s->ledger.received = s->push.number;
    if (m->values.flags & VALUES_DROPPED) return;
    s->ledger.taken = s->push.number;
    s->ledger.taken_step = s->push.step;
}

/* ps/0 makes a snapshot, for which the others need what it took. Its values come later. */
static void held(struct worker_role *w, int ps, const struct message *m, struct outbox *out)
{
    struct server *s = &w->servers[ps];
    if (w->phase != ASKING || ps != 0 || s->push.has_answered || m->values.push < s->push.number)
        return;
    note_answer(s, m);
    w->global_step = m->values.step;
    turn_to_others(w, m->values.flags & VALUES_DROPPED, out);
}

static bool is_expected(const struct worker_role *w, int ps)
{
    if (w->servers[ps].push.has_answered || w->servers[ps].join.inquiry != ANSWERED) return false;
    return w->phase == JOINING || w->phase == WAITING || (w->phase == ASKING && ps == 0);
}

/* Of the values that are awaited there: behind the round that gets the push, or was passed. */
static uint64_t step_awaited(const struct server *s)
{
    return s->push.is_out ? s->push.step + 1 : s->push.step;
}

/* Synchronous: ps/0 gets the push, or is passed, in a later round than this one, which has got it,
 * and may hold this worker for a snapshot behind that: the rounds between bring nothing of it here.
 */
static bool is_behind_first(const struct worker_role *w, int ps)
{
    const struct server *first = &w->servers[0];
    const bool is_awaited = w->phase == WAITING && !first->push.has_answered;
    return ps > 0 && w->options.is_sync && is_awaited &&
           w->servers[ps].values.step < step_awaited(first);
}

void worker_values(struct worker_role *w, int ps, const struct message *m, struct outbox *out)
{
    struct server *s = &w->servers[ps];
    bool is_final = w->phase == FINISHING && (m->values.flags & VALUES_FINAL) && worker_is_chief(w);
    bool is_more_work = w->phase == FINISHING && ps == 0 && (m->values.flags & VALUES_TICKET);
    const bool is_news = m->values.flags & VALUES_FINAL && m->values.updates != s->values.version;
    if (w->phase == EVALUATING && is_news) {
        worker_save_again(w, out);
        return;
    }
    if (m->values.flags & VALUES_HELD) {
        held(w, ps, m, out);
        return;
    }
    if (is_more_work) { /* another worker's, which is gone */
        join_all(w, out);
        return;
    }
    if (ps == 0 && w->now.in_doubt && s->join.inquiry == ANSWERED && m->values.push < w->now.push) {
        resolve_doubt(w, m, out);
        return;
    }
    if (!is_final && !is_expected(w, ps)) return;
    if (s->push.is_out && m->values.push < s->push.number) return; /* said before the push came */
    if (ps == 0 && s->push.is_out && m->values.updates > s->values.version)
        w->staleness = m->values.updates - s->values.version - 1;
    note_answer(s, m);
    if (is_behind_first(w, ps)) {
        s->push.has_answered = false;
        pass_round(w, ps, step_awaited(&w->servers[0]), out);
        return;
    }
    if (ps == 0) {
        w->global_step = m->values.step;
        w->now.has_ticket = m->values.flags & VALUES_TICKET;
        w->is_last_hour = m->values.flags & VALUES_STOPS;
    }
    if (w->phase == ASKING)
        pass_on(w, m->values.flags & VALUES_DROPPED, out);
    else
        go_on(w, out);
}

/* Nothing that this ps was told, or was to answer, counts any more. */
static void leave_out(struct worker_role *w, int ps, struct outbox *out)
{
    struct server *s = &w->servers[ps];
    server_set_inquiry(s, NOT_ASKED);
    s->push.is_target = s->push.is_out = s->push.has_answered = s->push.has_left = false;
    s->push.unheard = 0;
    if (s->shard_phase != NO_SHARD) worker_abandon(w, "a ps was lost", out);
}

/* It is asked for its values as after its link was made anew. */
static void read_from(struct worker_role *w, int ps, struct outbox *out)
{
    struct server *s = &w->servers[ps];
    if (s->join.inquiry == NOT_ASKED) return; /* it is asked when it is there */
    s->push.has_answered = false;
    if (w->phase > FINISHING)
        worker_say_finished(w, ps, out);
    else
        worker_rejoin(w, ps, out);
}

void worker_go_on_without(struct worker_role *w, uint64_t gone, struct outbox *out)
{
    for (int ps = 0; ps < w->options.ps_count; ps++)
        if (replicas_have(gone, ps)) leave_out(w, ps, out);
    w->saving.last.tag = 0;        /* who stands in has not made that snapshot */
    if (w->phase == ENDED) return; /* without the last checkpoint */
    if (w->phase < JOINING) return;
    outbox_add_stand_in(out, (struct action_stand_in){worker_gone(w)});
    for (int ps = 0; ps < w->options.ps_count; ps++)
        if (worker_stands_in(w, ps) && replicas_have(gone, replicas_home(w->options.homes, ps)))
            read_from(w, ps, out);
    if (awaits_values(w)) note_ledgers(w, out);
    if (awaits_values(w) || (w->phase == FINISHING && worker_is_chief(w))) go_on(w, out);
}

bool worker_role_awaits_next(const struct role *role)
{
    const struct worker_role *w = (const struct worker_role *)role;
    return w->phase == WAITING && w->options.is_sync;
}
