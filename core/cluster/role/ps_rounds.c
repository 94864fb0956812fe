/* ps_rounds.c - gradients in, values out: joining, tickets, when a round ends, and which gradients
 * are dropped as stale or late. */
#include <stdio.h>

#include "core/cluster/role/ps_role_inside.h"
#include "core/cluster/role/verdict.h"

void ps_share(struct ps_role *p, int worker, struct outbox *out)
{
    struct member *m = &p->members[worker];
    if (m->presence != HERE) return;
    outbox_add_share(out, (struct action_share){worker, m->wants_fresh});
    member_set_presence(m, HAS_WINDOWS);
    m->wants_fresh = false;
}

/* ---- tickets ---- */

/* Gives the worker a ticket with its answer, if it may compute one more step. has_batch: there is a
 * batch for it. */
static bool give_ticket(struct ps_role *p, int worker, bool has_batch)
{
    struct member *m = &p->members[worker];
    m->ticket.step = p->step;
    m->ticket.has_returned = false;
    if (p->config.is_sync) return m->ticket.is_held = p->step < p->config.last_step;
    if (p->options.task != 0) return false;
    const bool is_any = p->tickets < p->config.last_step || m->ticket.completes_push;
    const bool is_given = ps_has_turns(p) ? ps_has_turn(p, worker) : is_any;
    if (!m->ticket.is_held && has_batch && is_given) {
        p->tickets++;
        m->ticket.is_held = true;
        ps_commit_batch(p, worker, true);
    }
    m->ticket.completes_push = false;
    return m->ticket.is_held;
}

/* Plans the worker's batch before its ticket is given. */
static bool prepare_ticket(struct ps_role *p, int worker, struct outbox *out)
{
    const struct member *m = &p->members[worker];
    if (ps_has_turns(p))
        return m->ticket.is_held || (ps_has_turn(p, worker) && ps_plan(p, worker, out));
    const bool is_any =
        m->ticket.is_held || m->ticket.completes_push || p->tickets < p->config.last_step;
    return is_any && ps_plan(p, worker, out);
}

bool ps_all_finished(const struct ps_role *p)
{
    for (int w = 0; w < p->options.workers; w++)
        if (p->members[w].standing == COUNTED_ON) return false;
    return p->members[ps_chief(p)].standing == FINISHED;
}

bool ps_gives_values(const struct ps_role *p, int worker)
{
    return !p->config.follows || p->members[worker].reads;
}

void ps_send_parts(struct ps_role *p, int worker, uint64_t parts, struct outbox *out)
{
    while (parts) {
        const struct range last = parts_take_last(&p->block, &parts);
        ps_send_ahead(p, worker, out)->range = last;
    }
}

static struct message *send_values_message(struct ps_role *p, int worker, uint32_t flags,
                                           struct outbox *out)
{
    struct message *m = ps_send(p, worker, MESSAGE_VALUES, out);
    m->values = (struct message_values){flags, p->members[worker].ledger.received, p->step,
                                        p->counters.applied};
    return m;
}

static void send_values(struct ps_role *p, int worker, struct outbox *out)
{
    struct member *m = &p->members[worker];
    m->wants.values = false;
    if (!member_is_here(m)) return; /* it joins again when it is back */
    ps_open_turn(p, worker);
    ps_take_back(p, out);
    uint64_t left = ps_gives_values(p, worker) ? parts_all(&p->block) & ~m->given : 0;
    const struct range front = parts_take_front(&p->block, &left);
    ps_send_parts(p, worker, left, out);
    m->given = 0;
    const bool has_batch = prepare_ticket(p, worker, out);
    uint32_t flags = 0;
    if (m->push.fate == PUSH_DROPPED) flags |= VALUES_DROPPED;
    bool is_last = worker == ps_chief(p) && ps_all_finished(p);
    if (is_last && (p->config.is_sync || !give_ticket(p, worker, has_batch)))
        flags |= VALUES_FINAL;
    else if (give_ticket(p, worker, has_batch)) /* asynchronous: may be one that was returned */
        flags |= VALUES_TICKET;
    if (m->ticket.is_held && m->standing == FINISHED) member_set_standing(m, COUNTED_ON);
    if (p->stopping.is_on) flags |= VALUES_STOPS;
    if (p->round.overlap & OVERLAP_ADVANCE) flags |= VALUES_WANTS_PARTS;
    if (p->round.overlap & OVERLAP_WHOLE_PUSHES) flags |= VALUES_WANTS_WHOLE;
    send_values_message(p, worker, flags, out)->range = front;
}

/* Holds the worker until a snapshot ends. If ps/0 decides which pushes are taken, the other ps
 * cannot make their snapshots before they have those, and the worker sends them only after the
 * decision. */
static void hold(struct ps_role *p, int worker, struct outbox *out)
{
    struct member *m = &p->members[worker];
    m->wants.values = true;
    m->wants.step = 0;
    ps_note_held(p, out);
    if (!ps_config_drops(&p->config) || m->ticket.is_told || !member_is_here(m)) return;
    send_values_message(p, worker,
                        VALUES_HELD | (m->push.fate == PUSH_DROPPED ? VALUES_DROPPED : 0), out);
    m->ticket.is_told = true;
}

/* Answers with the current values. If the worker gets a copy, that is made first. During a snapshot
 * the worker waits, except, in asynchronous mode, one with a ticket that lacks only values lost
 * with its link: for that the snapshot waits. A worker that was evicted and is back, with an
 * earlier push in the round, has not joined again: it is answered when it does. */
static void answer(struct ps_role *p, int worker, struct outbox *out)
{
    const struct member *m = &p->members[worker];
    bool is_awaited =
        p->snapshot.phase == SNAPSHOT_COMING && m->ticket.is_held && !p->config.is_sync;
    if (m->standing == EVICTED) return;
    if (!ps_turn_is_answered_now(p, worker)) {
        p->members[worker].wants.values = true;
        p->members[worker].wants.step = 0;
        return;
    }
    if (ps_is_holding(p, worker) && !is_awaited) {
        hold(p, worker, out);
        return;
    }
    ps_share(p, worker, out);
    if (!p->config.takes_all && member_is_here(m))
        outbox_add_refresh(out, (struct action_refresh){worker});
    send_values(p, worker, out);
}

/* Answers the workers that wait for a step that has been reached. */
void ps_answer_waiting(struct ps_role *p, struct outbox *out)
{
    if (p->phase != SERVING) return;
    for (int w = 0; w < p->options.workers; w++) {
        const struct member *m = &p->members[w];
        if (m->wants.values && member_is_here(m) && p->step >= m->wants.step) answer(p, w, out);
    }
}

/* Takes back a ticket for which no push will come. */
void ps_return_ticket(struct ps_role *p, int worker)
{
    struct member *m = &p->members[worker];
    if (!m->ticket.is_held) return;
    m->ticket.is_held = false;
    if (p->config.is_sync || p->options.task != 0) return;
    p->tickets--;
    ps_commit_batch(p, worker, false);
}

/* A lost worker with a ticket may have pushed to another ps. So its ticket is kept for it, and is
 * given to another one when all else is done. */
static void return_lost_tickets(struct ps_role *p)
{
    for (int w = 0; w < p->options.workers; w++)
        if (p->members[w].standing == EVICTED) ps_return_ticket(p, w);
}

/* No more tickets: the steps being computed are the last ones. */
void ps_stop_tickets(struct ps_role *p, struct outbox *out)
{
    if (ps_has_turns(p)) return; /* the record has the last ones */
    if (!p->config.is_sync) {
        return_lost_tickets(p);
        p->config.last_step = p->tickets;
        return;
    }
    uint64_t last = p->step;
    for (int w = 0; w < p->options.workers; w++)
        if (p->members[w].ticket.is_held || p->members[w].push.fate == PUSH_WAITS)
            last = p->step + 1;
    if (last < p->config.last_step) p->config.last_step = last;
}

/* ---- joining ---- */

/* The gradient of an earlier incarnation was not applied, and comes again. */
static void give_back(struct ps_role *p, int worker, const struct message *m, struct outbox *out)
{
    struct member *member = &p->members[worker];
    bool is_earlier = m->join.push < member->ledger.received;
    bool is_decided = ps_config_drops(&p->config) && p->options.task == 0;
    if (member->push.fate != PUSH_WAITS || !is_earlier || is_decided) return;
    if (member->push.is_folded) {
        ps_unfold(p, worker, out);
        return;
    }
    member_set_push(member, PUSH_TAKEN);
    member->ledger = member->push.before;
    ps_pool_release(p, worker);
}

/* Whether VALUES must tell the worker if there is still a ticket for a push that was lost. */
static bool is_to_say_whether(const struct ps_role *p)
{
    return p->options.task == 0 && !p->config.is_sync && !ps_config_drops(&p->config);
}

/* Answers with the worker's ledger, so that it pushes the rest. A push that waits for its round is
 * answered with the round, unless it is undone; a lost push comes again. */
void ps_join(struct ps_role *p, int worker, const struct message *m, struct outbox *out)
{
    struct member *member = &p->members[worker];
    if (p->phase != SERVING || member->life.has_left) return;
    bool comes_again = m->join.push > member->ledger.received;
    if (p->options.task == 0 && p->snapshot.phase == SNAPSHOT_MADE && comes_again &&
        !p->config.is_sync) {
        /* the push would cross the snapshot */
        member->late_join = (struct message){.type = MESSAGE_JOIN, .join = m->join};
        ps_note_held(p, out);
        return;
    }
    member->joins++;
    if (!comes_again) ps_turn_joins(p, worker);
    member->ticket.completes_push =
        m->join.what == JOIN_COMPLETES && !p->config.is_sync && p->options.task == 0;
    member->makes_good = m->join.what == JOIN_TAKES_BACK || member->ticket.completes_push;
    if (m->join.what == JOIN_TAKES_BACK) give_back(p, worker, m, out);
    if (member->ticket.completes_push && !member->ticket.is_held) ps_reclaim_batch(p, worker);
    ps_forget_ahead(p, worker, out);
    if (member->standing == EVICTED) outbox_log(out, "worker/%d is counted on again", worker);
    member_set_standing(member, COUNTED_ON);
    if (m->join.what == JOIN_UNUSED && !comes_again) {
        member->ticket.has_returned |= member->ticket.is_held;
        ps_return_ticket(p, worker);
        ps_leave_batches(p, worker); /* batches that others gave back can be used now */
    }
    /* Windows first: a lost push follows the LEDGER. A push of an earlier incarnation stays in the
     * old windows until its round; the new one pushes nothing before. */
    if (member->push.fate != PUSH_WAITS || !member->wants_fresh) ps_share(p, worker, out);
    struct message *answer = ps_send(p, worker, MESSAGE_LEDGER, out);
    answer->ledger.push = member->ledger.received;
    answer->ledger.step = p->step;
    answer->ledger.join = m->join.number;
    ledger_pack(&member->ledger, 1, member->numbers);
    answer->body = member->numbers;
    answer->body_bytes = sizeof member->numbers;
    ps_say_plan(p, worker, out);
    if (comes_again && !is_to_say_whether(p)) return;
    member->wants.values = true;
    member->wants.step = m->join.step;
    if (member->push.fate == PUSH_WAITS && member->wants.step <= member->push.step)
        member->wants.step = member->push.step + 1;
    ps_apply_ready_rounds(p, out); /* a worker that wants a later step does not push for this one */
    ps_answer_waiting(p, out);
    ps_try_snapshot(p, out); /* it may have waited for a ticket that was returned */
}

/* ---- rounds ---- */

bool ps_is_in_round(const struct ps_role *p, int worker)
{
    return p->members[worker].push.fate == PUSH_WAITS && p->members[worker].push.step == p->step;
}

static void begin_round(struct ps_role *p)
{
    p->round.gradients = 0;
    for (int w = 0; w < p->options.workers; w++)
        if (ps_is_in_round(p, w)) p->round.gradients += p->members[w].push.gradients;
}

bool ps_is_past_round(const struct ps_role *p, int worker)
{
    const struct member *m = &p->members[worker];
    return m->standing != COUNTED_ON || m->push.fate == PUSH_WAITS || ps_brings_later(p, m) ||
           (m->wants.values && m->wants.step > p->step);
}

static bool all_past_round(const struct ps_role *p)
{
    for (int w = 0; w < p->options.workers; w++)
        if (!ps_is_past_round(p, w)) return false;
    return true;
}

/* With takes_all: all workers that are counted on have pushed or are past this round. Else:
 * replicas_to_aggregate gradients have come, or as many as workers that are counted on can push:
 * late workers are not waited for. */
static bool is_round_full(const struct ps_role *p)
{
    uint32_t left = 0; /* gradients that have come, or may still come from workers that are counted
                          on */
    uint32_t come = 0; /* those that have come */
    for (int w = 0; w < p->options.workers; w++) {
        const struct member *m = &p->members[w];
        const uint32_t gradients = ps_config_gradients(&p->config, p->options.workers, w);
        if (m->standing == COUNTED_ON || ps_is_in_round(p, w)) left += gradients;
        if (ps_is_in_round(p, w)) come += gradients;
    }
    if (p->round.gradients == 0) return false;
    if (p->config.takes_all) return all_past_round(p);
    uint32_t wanted = p->config.replicas_to_aggregate;
    return (come && come >= (wanted < left ? wanted : left)) ||
           (p->options.task != 0 && all_past_round(p));
}

/* The gradient for the round was lost with a worker that had pushed it to other ps only, and a
 * worker, or the last snapshot, waits for a later round. */
static bool is_round_void(const struct ps_role *p)
{
    if (p->round.gradients > 0 || !all_past_round(p)) return false;
    bool has_snapshot = p->snapshot.phase == SNAPSHOT_COMING && p->options.task != 0;
    if (has_snapshot && p->step < p->snapshot.step && ps_all_finished(p)) return true;
    for (int w = 0; w < p->options.workers; w++) {
        const struct member *m = &p->members[w];
        const bool is_past = m->wants.values && m->wants.step > p->step;
        if (m->push.fate == PUSH_WAITS || is_past || ps_brings_later(p, m)) return true;
    }
    return false;
}

/* The previous step is over. */
static void begin_step(struct ps_role *p)
{
    p->step++;
    for (int w = 0; w < p->options.workers; w++) p->members[w].has_renewed = false;
    patience_renew(&p->patience);
}

static void skip_round(struct ps_role *p, struct outbox *out)
{
    outbox_log(out, "step %llu changes nothing here: the gradients were lost with a worker",
               (unsigned long long)p->step + 1);
    ps_take_back(p, out);
    begin_step(p);
    ps_begin_sum(p);
    begin_round(p);
    ps_answer_waiting(p, out);
}

static void apply_round(struct ps_role *p, struct outbox *out)
{
    int count = 0, *applying = p->round.applying + p->round.applying_count;
    for (int w = 0; w < p->options.workers; w++)
        if (ps_is_in_round(p, w)) applying[count++] = w;
    p->round.applying_count += count;
    ps_keep_advance(p, applying, count, out);
    outbox_add_apply(out, (struct action_apply){applying, count, p->round.gradients, p->step});
    begin_step(p);
    p->counters.applied++;
    ps_begin_sum(p);
    for (int i = 0; i < count; i++) {
        member_set_push(&p->members[applying[i]], PUSH_TAKEN);
        p->members[applying[i]].push.is_folded = false;
        ps_pool_release(p, applying[i]);
        ps_cover(p, applying[i], out);
    }
    for (int i = 0; i < count; i++) answer(p, applying[i], out);
    begin_round(p);
    ps_answer_waiting(p, out);
}

/* At most one round per worker can be full, and as many void. ps/0 does not continue while others
 * reach the step of its snapshot. */
void ps_apply_ready_rounds(struct ps_role *p, struct outbox *out)
{
    const bool is_behind_snapshot = p->options.task == 0 && p->snapshot.phase == SNAPSHOT_MADE;
    if (!p->config.is_sync || is_behind_snapshot) return;
    begin_round(p);
    for (int i = 0; i < 2 * p->options.workers; i++) {
        if (is_round_full(p))
            apply_round(p, out);
        else if (is_round_void(p))
            skip_round(p, out);
        else
            break;
    }
    ps_fold(p, out);
}

/* ---- pushes ---- */

/* Drops a gradient that is stale, late, without a ticket or beyond the last step: counts it, and
 * answers with values. */
static void drop(struct ps_role *p, int worker, bool had_ticket, struct outbox *out)
{
    p->counters.dropped_stale++;
    if (!p->config.is_sync && p->options.task == 0 && had_ticket) {
        p->tickets--;
        ps_take_batch(p, worker, true);
    }
    member_set_push(&p->members[worker], PUSH_DROPPED);
    answer(p, worker, out);
}

static void take(struct member *m, const struct message *push)
{
    m->ledger.taken = push->push.push;
    m->ledger.taken_step = push->push.step;
}

/* ps/0 has applied this gradient in a round that this ps has finished without it. The other workers
 * push nothing for that round, and may be held for a snapshot; each has its own copy of values. */
static void apply_late(struct ps_role *p, int worker, const struct message *m, struct outbox *out)
{
    take(&p->members[worker], m);
    p->round.applying[0] = worker;
    outbox_add_apply(out,
                     (struct action_apply){p->round.applying, 1, m->push.gradients, m->push.step});
    p->counters.applied++;
    answer(p, worker, out);
}

static void push_sync(struct ps_role *p, int worker, const struct message *m,
                      const struct ledger *before, struct outbox *out)
{
    struct member *member = &p->members[worker];
    const bool decides = p->options.task == 0, is_late = m->push.step < p->step;
    const uint64_t round = is_late ? p->step : m->push.step;
    if (is_late && !decides && ps_config_drops(&p->config)) {
        apply_late(p, worker, m, out);
        return;
    }
    if ((is_late && decides) || round >= p->config.last_step) {
        drop(p, worker, false, out);
        return;
    }
    take(member, m);
    member_set_push(member, PUSH_WAITS);
    member->push.before = *before;
    member->push.step = round;
    member->push.gradients = m->push.gradients;
    ps_apply_ready_rounds(p, out);
    if (p->snapshot.phase == SNAPSHOT_COMING) ps_answer_waiting(p, out); /* as needed for it */
    ps_advance(p, out);
}

static void push_async(struct ps_role *p, int worker, const struct message *m, struct outbox *out)
{
    struct member *member = &p->members[worker];
    uint64_t staleness = p->counters.applied - m->push.updates;
    bool decides = p->options.task == 0, had_ticket = member->ticket.is_held;
    member->ticket.is_held = false;
    if (decides && (!had_ticket || (p->config.max_staleness >= 0 &&
                                    staleness > (uint64_t)p->config.max_staleness))) {
        ps_note_turn(p, TURN_DROPPED, worker, m, out);
        drop(p, worker, had_ticket, out);
        return;
    }
    take(member, m);
    ps_note_turn(p, TURN_TAKEN, worker, m, out);
    ps_take_batch(p, worker, false);
    int *const applying = &p->round.applying[p->round.applying_count++ % p->options.workers];
    *applying = worker; /* at most one of each worker, until they are applied */
    outbox_add_apply(out, (struct action_apply){applying, 1, m->push.gradients, p->step});
    begin_step(p);
    p->counters.applied++;
    ps_cover(p, worker, out);
    if (ps_is_holding(p, worker) || !ps_turn_is_answered_now(p, worker))
        answer(p, worker, out);
    else
        send_values(p, worker, out); /* APPLY of one gradient also refreshes the copy */
    ps_answer_waiting(p, out);
}

/* Pushes must come in order, each once. If ps/0 drops some, other ps see gaps. */
static bool is_next(const struct ps_role *p, const struct member *m, const struct message *push)
{
    if (m->push.fate == PUSH_WAITS) return false;
    if (ps_config_drops(&p->config) && p->options.task != 0)
        return push->push.push > m->ledger.received;
    return push->push.push == m->ledger.received + 1;
}

void ps_push(struct ps_role *p, int worker, const struct message *m, struct outbox *out)
{
    struct member *member = &p->members[worker];
    if (p->phase != SERVING || !is_next(p, member, m)) {
        p->counters.dropped_repeated++;
        outbox_breach(out, false, "a push of worker/%d that is not its next one was not applied",
                      worker);
        return;
    }
    if (ps_turn_defers(p, worker, m)) return;
    char text[ACTION_TEXT_MAX], what[ACTION_TEXT_MAX / 2];
    if (m->push.gradients == 0) { /* the worker reports a gradient that is not finite */
        ps_note_turn(p, TURN_BAD, worker, m, out);
        member->turn.is_open = false;
        snprintf(what, sizeof what, "%.*s", (int)m->body_bytes, m->body ? (char *)m->body : "");
        snprintf(text, sizeof text,
                 "worker/%d pushed a gradient that is not finite at step %llu%s%s", worker,
                 (unsigned long long)m->push.step + 1, what[0] ? ": " : "", what);
        ps_end(p, EXIT_NUMBER, text, NOBODY, out);
        return;
    }
    const struct ledger before = member->ledger;
    if (parts_in(&p->moved, m->range) & member->ahead.parts)
        ps_forget_ahead(p, worker, out); /* computed anew */
    member->ahead = (struct ahead){0};
    member->ledger.received = m->push.push;
    member->turn.is_open = false;
    member->joins = 0;
    member->life.has_pushed = true;
    member->life.kept_snapshot = false;
    member_set_push(member, PUSH_TAKEN); /* unless it is dropped or waits */
    if (member->standing == FINISHED) member_set_standing(member, COUNTED_ON);
    member->ticket.is_told = member->makes_good = false;
    ps_renew_wait(p, worker);
    if (p->config.is_sync) {
        member->ticket.is_held = false;
        push_sync(p, worker, m, &before, out);
    } else {
        push_async(p, worker, m, out);
    }
}

/* The chief gets the final values when no more updates can come. */
void ps_finished(struct ps_role *p, int worker, uint32_t code, struct outbox *out)
{
    struct member *m = &p->members[worker];
    if (p->phase != SERVING) return;
    if (code & FINISHED_UNUSED) ps_return_ticket(p, worker);
    if (code & FINISHED_UNUSED) ps_leave_batches(p, worker);
    if (m->ticket.is_held && !p->config.is_sync && p->options.task == 0) {
        answer(p, worker, out); /* its ticket was lost with its link */
        return;
    }
    member_set_standing(m, FINISHED);
    m->ticket.is_held = m->wants.values = false;
    ps_forget_ahead(p, worker, out); /* parts that came ahead have no push */
    ps_renew_wait(p, worker);
    ps_apply_ready_rounds(p, out);
    if (!ps_all_finished(p)) return;
    return_lost_tickets(p);
    const bool is_end = !ps_has_batches(p); /* else the chief computes batches that others have left
                                             */
    if (is_end && code & FINISHED_UNUSED && p->options.task == 0) ps_stop_tickets(p, out);
    if (is_end) ps_tell_coverage(p, out);
    answer(p, ps_chief(p), out);
}
