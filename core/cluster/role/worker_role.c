/* worker_role.c - see worker_role.h: the life of a worker and what it does with each message. */
#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/replicas.h"
#include "core/cluster/role/batch_queue.h"
#include "core/cluster/role/verdict.h"
#include "core/cluster/role/worker_role_inside.h"

bool worker_is_chief(const struct worker_role *w)
{
    return w->lead.is_ours;
}

bool worker_is_asked(const struct worker_role *w, int ps)
{
    return ps == 0 || (w->servers[ps].block.block > 0 && !worker_is_without(w, ps));
}

struct message *worker_send(struct worker_role *w, int ps, enum message_type type,
                            struct outbox *out)
{
    const struct message m = {
        .type = type,
        .task = (uint32_t)w->options.task,
        .job = JOB_WORKER,
        .generation = w->generation,
    };
    return &outbox_add_send(out, (struct action_send){ps, m})->message;
}

static void tell_verdict(struct worker_role *w, int ps, struct outbox *out)
{
    struct message *m = worker_send(w, ps, MESSAGE_VERDICT, out);
    m->verdict.claim = w->lead.is_ours ? 1 + w->lead.term : 0;
    message_say_verdict(m, w->verdict.code, w->verdict.is_relayed ? "" : w->name, w->verdict.text,
                        out);
}

/* Behind a gradient it might not be read: then the ps is told on a new link. */
static void tell_or_remake(struct worker_role *w, int ps, struct outbox *out)
{
    struct server *s = &w->servers[ps];
    if (!s->push.unheard || s->knows_end) {
        tell_verdict(w, ps, out);
        return;
    }
    server_set_contact(s, GONE);
    outbox_add_remake(out, (struct action_remake){ps});
}

void worker_end(struct worker_role *w, int code, const char *text, struct outbox *out)
{
    if (w->phase == ENDED) return;
    worker_set_phase(w, ENDED);
    w->verdict.is_told = true;
    w->verdict.code = code;
    snprintf(w->verdict.text, sizeof w->verdict.text, "%s", text);
    for (int ps = 0; ps < w->options.ps_count; ps++)
        if (w->servers[ps].contact != GONE) tell_or_remake(w, ps, out);
    outbox_end(out, code, text);
}

bool worker_role_awaits(const struct role *role, int ps)
{
    const struct worker_role *w = (const struct worker_role *)role;
    return w->verdict.is_told && !w->servers[ps].knows_end;
}

void worker_begin_phase(struct worker_role *w, enum worker_phase phase)
{
    worker_set_phase(w, phase);
    patience_renew(&w->patience);
    w->now.in_doubt = w->now.in_doubt && phase == WAITING;
    for (int ps = 0; ps < w->options.ps_count; ps++) {
        struct server *s = &w->servers[ps];
        s->push.has_answered = s->push.is_out = s->push.has_left = false;
    }
}

/* ---- do all ps serve the same values? ---- */

bool worker_knows_all(const struct worker_role *w)
{
    for (int ps = 0; ps < w->options.ps_count; ps++)
        if (w->servers[ps].contact != KNOWN) return false;
    return true;
}

/* All that the generation is not done without. */
static bool knows_enough(const struct worker_role *w)
{
    for (int ps = 0; ps < w->options.ps_count; ps++)
        if (w->servers[ps].contact != KNOWN && !worker_is_without(w, ps)) return false;
    return true;
}

/* As far as they have said. */
static bool all_agree(const struct worker_role *w, uint64_t *ret_generation)
{
    const struct server *first = NULL;
    for (int ps = 0; ps < w->options.ps_count; ps++) {
        const struct server *s = &w->servers[ps];
        if (s->contact != KNOWN || worker_is_spared(w, ps)) continue;
        if (w->outlived && s->said.generation == w->outlived) return false;
        if (s->said.state != PS_SERVING || (first && s->said.generation != first->said.generation))
            return false;
        first = s;
    }
    *ret_generation = first ? first->said.generation : 0;
    return true;
}

/* All serve this chief's generation or are about to: nothing needs to begin again. */
static bool all_will_serve(const struct worker_role *w)
{
    for (int ps = 0; ps < w->options.ps_count; ps++) {
        const struct server *s = &w->servers[ps];
        bool will_serve =
            s->said.state == PS_SERVING || (s->said.state == PS_READY && s->setup == WAS_TOLD);
        if (!will_serve || s->said.generation != w->generation) return false;
    }
    return w->outlived != w->generation;
}

static bool is_any_claimed(const struct worker_role *w)
{
    for (int ps = 0; ps < w->options.ps_count; ps++)
        if (w->servers[ps].is_claimed && w->servers[ps].contact != GONE) return true;
    return false;
}

static void rejoin_new_links(struct worker_role *w, struct outbox *out)
{
    for (int ps = 0; ps < w->options.ps_count; ps++) {
        const struct server *s = &w->servers[ps];
        const bool is_new = s->contact == KNOWN && s->join.inquiry == NOT_ASKED;
        if (is_new && !worker_is_spared(w, ps)) worker_rejoin(w, ps, out);
    }
}

void worker_settle(struct worker_role *w, struct outbox *out)
{
    uint64_t generation = 0;
    if (w->phase == ENDED || w->leaving.is_granted) return;
    bool agree = all_agree(w, &generation), know_all = knows_enough(w);
    bool is_mine = agree && generation == w->generation && w->phase >= JOINING;
    if (is_mine) {
        rejoin_new_links(w, out);
        return;
    }
    if (agree && !know_all && generation == 0) return; /* nobody has said anything */
    if (agree && know_all) {
        worker_adopt(w, generation, out);
        return;
    }
    if (w->phase == DESCRIBING || w->phase == STARTING) return;
    if (w->phase != HOLDING) {
        worker_begin_phase(w, HOLDING);
        worker_abandon(w, "a ps was lost", out);
        if (w->lead.is_ours) worker_make_way(w, out);
    }
    if (worker_is_chief(w) && worker_can_begin(w) && !is_any_claimed(w) && !all_will_serve(w))
        worker_recover(w, out);
}

static void hear_signal(struct worker_role *, struct outbox *);

static void state(struct worker_role *w, int ps, const struct message *m, struct outbox *out)
{
    struct server *s = &w->servers[ps];
    if (m->state.state != PS_EMPTY && !m->generation) {
        outbox_breach(out, true, "ps/%d says that it has values of no generation", ps);
        return;
    }
    const bool is_new = s->contact != KNOWN;
    server_set_contact(s, KNOWN);
    s->said.state = (enum ps_state)m->state.state;
    s->said.generation = m->generation;
    s->said.last_step = m->state.last_step;
    s->is_claimed = s->is_claimed && m->state.claim != 1 + w->lead.term;
    if (is_new) worker_say_term(w, ps, out);
    worker_try_lead(w, out);
    worker_watch_replicas(w, out);
    worker_settle(w, out);
    hear_signal(w, out);
    if (w->phase < JOINING) worker_depart(w, out);
}

/* ---- the end ---- */

/* ps/0 gives out no more steps; the others wait less long for who is gone. */
void worker_ask_to_stop(struct worker_role *w, int ps, struct outbox *out)
{
    if ((ps > 0 && !worker_is_chief(w)) || w->servers[ps].contact == GONE) return;
    struct message *m = worker_send(w, ps, MESSAGE_STOP, out);
    m->stop.claim = w->lead.is_ours ? 1 + w->lead.term : 0;
    m->stop.exit_code = (uint32_t)w->stop.code;
    message_say(m, w->stop.text, out);
}

void worker_ask_all_to_stop(struct worker_role *w, int except, struct outbox *out)
{
    for (int ps = 0; ps < w->options.ps_count; ps++)
        if (ps != except) worker_ask_to_stop(w, ps, out);
}

static void plan_stop(struct worker_role *w, enum ending ending, int code, const char *text)
{
    worker_set_ending(w, ending);
    w->stop.code = code;
    snprintf(w->stop.text, sizeof w->stop.text, "%s", text);
}

/* A ps says that the job is to end well. */
static void stop_message(struct worker_role *w, int ps, const struct message *m, struct outbox *out)
{
    char text[ACTION_TEXT_MAX];
    if (worker_stops_job(w) || !worker_is_chief(w)) return;
    const int code = message_verdict(m, m->stop.exit_code, text);
    plan_stop(w, STOPS, code, text);
    w->verdict.is_relayed = true;
    worker_ask_all_to_stop(w, ps, out);
}

void worker_role_finish(struct role *role, int code, const char *why, struct outbox *out)
{
    struct worker_role *w = (struct worker_role *)role;
    if (w->phase == ENDED || w->ending != GOES_ON) return;
    plan_stop(w, STOPS, code, why);
    worker_ask_all_to_stop(w, NOBODY, out);
}

static void verdict(struct worker_role *w, const struct message *m, struct outbox *out)
{
    char text[ACTION_TEXT_MAX];
    const int code = message_verdict(m, m->verdict.exit_code, text);
    w->verdict.is_relayed = true;
    if (code == EXIT_TIMEOUT) worker_tell_wait(w, out);
    worker_end(w, code, text, out);
}

bool worker_stops_job(const struct worker_role *w)
{
    return w->ending == STOPS || w->ending == LEAVES;
}

/* By the term it is this worker that leads, at once or when it has found the ps. */
static bool is_to_lead(const struct worker_role *w)
{
    return worker_chief(w) == w->options.task;
}

/* ret_serves: one of them serves. */
static bool knows_any(const struct worker_role *w, bool *ret_serves)
{
    bool knows = false;
    *ret_serves = false;
    for (int ps = 0; ps < w->options.ps_count; ps++) {
        const struct server *s = &w->servers[ps];
        knows |= s->contact == KNOWN;
        *ret_serves |= s->contact == KNOWN && s->said.state == PS_SERVING;
    }
    return knows;
}

static void ask_job_to_end(struct worker_role *w, int code, const char *why, struct outbox *out)
{
    char text[ACTION_TEXT_MAX];
    w->leaving.since_ms = w->patience.now_ms;
    snprintf(text, sizeof text, "%s: %s", w->name, why);
    plan_stop(w, LEAVES, code, worker_is_chief(w) ? why : text);
    worker_ask_all_to_stop(w, NOBODY, out);
}

static void say_gone_to_all(struct worker_role *w, struct outbox *out)
{
    for (int ps = w->options.ps_count - 1; ps >= 0; ps--)
        if (w->servers[ps].contact != GONE)
            worker_send(w, ps, MESSAGE_LEAVE, out)->leave.what = LEAVE_GONE;
}

/* The job is to end well. While it is served, a worker that takes no part yet may go first, but
 * neither the one that is to lead nor one that may not leave (was_refused). Before that there is
 * nothing to be saved, and all end at once. */
static void stop_job(struct worker_role *w, int code, const char *why, bool was_refused,
                     struct outbox *out)
{
    const struct server *first = &w->servers[0];
    const bool serves = first->contact == KNOWN && first->said.state == PS_SERVING;
    if (w->phase == EVALUATING) { /* the last checkpoint is there */
        worker_end(w, code, why, out);
    } else if ((w->phase >= JOINING && first->contact != GONE) ||
               (serves && (is_to_lead(w) || was_refused))) {
        ask_job_to_end(w, code, why, out);
    } else if (w->phase < JOINING && serves) {
        ask_job_to_end(w, code, why, out);
        say_gone_to_all(w, out);
        worker_set_phase(w, ENDED);
        outbox_end(out, code, why);
    } else {
        worker_end(w, code, why, out);
    }
}

static void end_as_left(struct worker_role *w, struct outbox *out)
{
    worker_abandon(w, "this worker leaves", out);
    worker_set_phase(w, ENDED);
    w->leaving.has_left = true;
    outbox_log(out, "leaves the job%s",
               w->options.workers > 1 ? ", which continues without it" : "");
    outbox_end(out, w->stop.code, w->stop.text);
}

/* Tells the other ps that this worker is gone, then ps/0, which finds another chief. waits: for ps
 * that are not there. */
static void say_gone(struct worker_role *w, bool waits, struct outbox *out)
{
    bool have_all = true;
    for (int ps = 1; ps < w->options.ps_count; ps++) {
        struct server *s = &w->servers[ps];
        if (s->contact != GONE && !s->is_told)
            worker_send(w, ps, MESSAGE_LEAVE, out)->leave.what = LEAVE_GONE;
        s->is_told |= s->contact != GONE;
        have_all = have_all && (s->is_told || worker_is_without(w, ps));
    }
    if (!have_all && waits) return;
    if (w->servers[0].contact != GONE)
        worker_send(w, 0, MESSAGE_LEAVE, out)->leave.what = LEAVE_GONE;
    end_as_left(w, out);
}

void worker_ask_to_leave(struct worker_role *w, struct outbox *out)
{
    w->leaving.has_asked = true;
    worker_send(w, 0, MESSAGE_LEAVE, out)->leave.what =
        w->phase == DEPARTING ? LEAVE_ASKED : LEAVE_ABSENT;
}

/* Its push is whole everywhere, or it takes no part. Before it does, it goes where nobody knows of
 * it yet; who is to lead is needed, and waits until it can say so. */
void worker_depart(struct worker_role *w, struct outbox *out)
{
    const bool is_there = w->servers[0].contact != GONE;
    if (w->ending != DEPARTS || w->leaving.has_asked || w->leaving.is_granted || w->leaving.unheard)
        return;
    if (w->phase == FINISHING)
        worker_begin_phase(w, DEPARTING);
    else if (w->phase >= JOINING && w->phase != DEPARTING)
        return;
    if (is_there)
        worker_ask_to_leave(w, out);
    else if (w->phase < JOINING && !is_to_lead(w))
        say_gone(w, false, out);
}

/* ps/0 has decided. */
static void leave_message(struct worker_role *w, const struct message *m, struct outbox *out)
{
    char why[ACTION_TEXT_MAX];
    if (!w->leaving.has_asked) return;
    w->leaving.has_asked = false;
    if (m->leave.what == LEAVE_GRANTED) {
        w->leaving.is_granted = true;
        say_gone(w, true, out);
        return;
    }
    if (w->leaving.is_granted) return; /* it asked again on another link */
    snprintf(why, sizeof why, "%s", w->stop.text);
    if (w->ending == DEPARTS) stop_job(w, w->stop.code, why, true, out);
    if (w->phase == DEPARTING) worker_finish_steps(w, out);
}

/* Before the job has begun the chief cannot leave it: there is nothing to hand over. */
static void leave_or_stop(struct worker_role *w, int code, const char *why, bool only_me,
                          struct outbox *out)
{
    bool serves;
    const bool knows = knows_any(w, &serves), takes_part = w->phase >= JOINING;
    const bool is_first = is_to_lead(w) && !takes_part && w->participation == IN_NONE;
    const bool stops = !only_me || w->phase >= SAVING_LAST || w->ending == STOPS;
    w->leaving.unheard = NOTHING_UNHEARD;
    w->leaving.since_ms = w->patience.now_ms;
    if (is_first && !knows && w->ending == STOPS) { /* the ps that said so is lost */
        ask_job_to_end(w, code, why, out);
    } else if (is_first && !knows) {
        w->leaving.unheard = stops ? STOP_UNHEARD : LEAVE_UNHEARD;
        plan_stop(w, DEPARTS, code, why);
    } else if (stops || (is_first && !serves)) {
        stop_job(w, code, why, false, out);
    } else {
        plan_stop(w, DEPARTS, code, why);
        worker_depart(w, out);
    }
}

static void on_leave(struct role *role, int code, const char *why, bool only_me, struct outbox *out)
{
    struct worker_role *w = (struct worker_role *)role;
    if (w->phase == ENDED || w->ending >= DEPARTS) return;
    leave_or_stop(w, code, why, only_me, out);
}

static void hear_signal(struct worker_role *w, struct outbox *out)
{
    char why[ACTION_TEXT_MAX];
    if (!w->leaving.unheard || w->phase == ENDED) return;
    snprintf(why, sizeof why, "%s", w->stop.text);
    leave_or_stop(w, w->stop.code, why, w->leaving.unheard == LEAVE_UNHEARD, out);
}

static void on_stop(struct role *role, int code, const char *why, struct outbox *out)
{
    worker_end((struct worker_role *)role, code, why, out);
}

/* ---- events ---- */

static void covered(const struct worker_role *w, int ps, const struct message *m,
                    struct outbox *out)
{
    struct covered covered;
    if (!worker_is_chief(w) || ps != 0 || !covered_unpack(m, &covered)) return;
    outbox_add_covered(out, (struct action_covered){covered, .is_over = m->covered.is_over});
}

/* Ranges, none of which is empty. false: it is no plan. */
static bool read_plan(const struct message *m, uint64_t numbers[PLAN_NUMBERS_MAX], int *ret_count)
{
    const size_t pair = 2 * sizeof *numbers, bytes = PLAN_NUMBERS_MAX * sizeof *numbers;
    if (!m->plan.push || !m->body_bytes || m->body_bytes > bytes || m->body_bytes % pair)
        return false;
    memcpy(numbers, m->body, m->body_bytes);
    *ret_count = (int)(m->body_bytes / pair);
    for (int i = 0; i < 2 * *ret_count; i++) numbers[i] = le64toh(numbers[i]);
    for (int i = 0; i < 2 * *ret_count; i += 2)
        if (numbers[i] >= numbers[i + 1] || numbers[i + 1] > MESSAGE_COUNT_MAX) return false;
    return true;
}

static void plan(int ps, const struct message *m, struct outbox *out)
{
    uint64_t *numbers = arena_array(&out->texts, PLAN_NUMBERS_MAX, sizeof *numbers);
    int count;
    if (ps == 0 && read_plan(m, numbers, &count))
        outbox_add_plan(out, (struct action_plan){m->plan.push - 1, numbers, count});
    else
        outbox_breach(out, true, "ps/%d sent a PLAN that tells of no batches", ps);
}

/* What belongs to the generation that this worker takes part in. */
static void on_current(struct worker_role *w, int ps, const struct message *m, struct outbox *out)
{
    switch (m->type) {
    case MESSAGE_READY:
        worker_ready(w, ps, m, out);
        break;
    case MESSAGE_LEDGER:
        worker_ledger(w, ps, m, out);
        break;
    case MESSAGE_PLAN:
        plan(ps, m, out);
        break;
    case MESSAGE_VALUES:
        worker_values(w, ps, m, out);
        break;
    case MESSAGE_SNAPSHOT:
        worker_snapshot(w, ps, m, out);
        break;
    case MESSAGE_SAVED:
        worker_saved(w, ps, m, out);
        break;
    case MESSAGE_COVERED:
        covered(w, ps, m, out);
        break;
    default:
        break;
    }
}

static void resize(struct worker_role *w, const struct message *m, struct outbox *out)
{
    struct membership membership;
    if (membership_unpack(m, &membership)) worker_heard_resize(w, &membership, m->resize.step, out);
}

static void on_resize(struct role *role, const struct membership *membership, struct outbox *out)
{
    struct worker_role *w = (struct worker_role *)role;
    worker_heard_resize(w, membership, w->global_step, out);
}

/* What a ps that is done without says counts for nothing but that it is there. */
static bool is_heard(const struct worker_role *w, int ps, const struct message *m)
{
    const bool is_of_it = m->type == MESSAGE_STATE || m->type == MESSAGE_RESIZE;
    return is_of_it || !worker_is_without(w, ps);
}

/* It is overheard: who is at the address of a ps is that ps. */
static bool is_breach(const struct worker_role *w, int ps, const struct message *m,
                      struct outbox *out)
{
    struct message_ends ends = message_ends_of_all;
    char text[MESSAGE_BREACH_MAX];
    const char *fault = message_fault(m, FROM_PS);
    ends.at[RANGE_TERMS].most = w->lead.term + TERMS_AHEAD_MAX;
    ends.at[RANGE_GONE].most = ps ? 0 : replicas_most(w->options.homes, w->options.ps_count);
    if (w->arrays && m->generation == w->generation)
        ends.at[RANGE_ARRAYS].most = (uint64_t)w->arrays;
    if (!fault && message_is_within(m, &ends, text)) return false;
    outbox_breach(out, !fault, "ps/%d sent %s (%u), %s", ps, message_name(m->type), m->type,
                  fault ? fault : text);
    return true;
}

static void on_message(struct role *role, enum job job, int ps, const struct message *m,
                       struct outbox *out)
{
    struct worker_role *w = (struct worker_role *)role;
    if (job == JOB_PS && m->type == MESSAGE_VERDICT) w->servers[ps].knows_end = true;
    if (w->phase == ENDED || job != JOB_PS || is_breach(w, ps, m, out)) return;
    if (!is_heard(w, ps, m)) return;
    if (m->type == MESSAGE_LEADS) {
        worker_heard_term(w, ps, m, out);
        worker_heard_gone(w, ps, m, out);
    }
    if (m->type == MESSAGE_STATE)
        state(w, ps, m, out);
    else if (m->type == MESSAGE_VERDICT)
        verdict(w, m, out);
    else if (m->type == MESSAGE_STOP)
        stop_message(w, ps, m, out);
    else if (m->type == MESSAGE_RESIZE)
        resize(w, m, out);
    else if (m->type == MESSAGE_SCALE && ps == 0)
        worker_scale(w, m, out);
    else if (m->type == MESSAGE_LEAVE && ps == 0)
        leave_message(w, m, out);
    else if (m->generation == w->generation)
        on_current(w, ps, m, out);
}

static void on_done(struct role *role, enum action_type done, err result, const char *text,
                    struct outbox *out)
{
    struct worker_role *w = (struct worker_role *)role;
    if (w->phase == ENDED) return;
    if (done == ACTION_PUBLISH)
        worker_published(w, result, text, out);
    else if (done == ACTION_BEGIN)
        worker_abandon(w, text, out); /* only told where it failed */
    else if (done == ACTION_COMPUTE && result == ERR_PEER)
        worker_ask_again(w, out);
    else if (done == ACTION_COMPUTE && result == ERR_STOPPED)
        worker_bring_nothing(w, out);
    else if (result)
        worker_end(w, exit_code_of(result), text, out);
    else if (done == ACTION_COMPUTE && w->phase == COMPUTING)
        worker_push(w, out);
    else if (done == ACTION_EVALUATE && w->phase == EVALUATING)
        worker_end(w, w->stop.code, w->stop.code ? w->stop.text : "", out);
}

static void on_start(struct role *role, uint64_t now_ms, struct outbox *out)
{
    struct worker_role *w = (struct worker_role *)role;
    patience_begin(&w->patience, now_ms);
    for (int ps = 0; ps < w->options.ps_count; ps++) w->servers[ps].lost_ms = w->patience.now_ms;
    worker_begin_phase(w, HOLDING);
}

static void on_peer_up(struct role *role, enum job job, int ps, uint64_t incarnation,
                       struct outbox *out)
{
    struct worker_role *w = (struct worker_role *)role;
    struct server *s = &w->servers[ps];
    if (w->phase == ENDED) { /* its link was lost just before */
        if (w->verdict.is_told) tell_verdict(w, ps, out);
        return;
    }
    server_set_contact(s, FOUND);
    server_set_inquiry(s, NOT_ASKED);
    if (ps == 0) worker_doubt(w);
    s->push.ahead = s->push.unheard = 0;
    s->push.has_left = false;
    if (s->setup == WAS_TOLD) server_set_setup(s, NOT_READY);
    s->is_told = false;
    patience_renew(&w->patience);
    if (ps == 0) w->leaving.has_asked = false;
    if (w->leaving.is_granted && ps == 0)
        worker_ask_to_leave(w, out); /* the new link is not signed off */
    if (w->leaving.is_granted && ps > 0) say_gone(w, true, out);
}

void worker_lose(struct worker_role *w, int ps, struct outbox *out)
{
    struct server *s = &w->servers[ps];
    server_set_contact(s, GONE);
    server_set_inquiry(s, NOT_ASKED);
    s->lost_ms = w->patience.now_ms;
    if (ps == 0) worker_doubt(w);
    s->push.has_answered = s->push.has_left = false;
    s->push.unheard = 0;
    patience_renew(&w->patience);
    if (ps == 0) worker_forget_resize(w); /* which it tells whoever asked for it */
    if ((w->phase == DESCRIBING || w->phase == STARTING) && !worker_is_absent(w, ps))
        worker_begin_phase(w, HOLDING);
    if (s->shard_phase != NO_SHARD) worker_abandon(w, "a ps was lost", out);
}

static void on_peer_lost(struct role *role, enum job job, int ps, const char *why,
                         struct outbox *out)
{
    struct worker_role *w = (struct worker_role *)role;
    if (w->phase == ENDED || w->servers[ps].contact == GONE) return;
    outbox_log(out, "lost ps/%d: %s", ps, why);
    worker_lose(w, ps, out);
}

/* Who only waits for somebody to hear that it is gone has a part of the limit for that; who has met
 * nobody yet, as long as a ps that is there may take to be met. */
static bool leave_is_over(const struct worker_role *w)
{
    enum { GONE_PARTS = 3, UNHEARD_MS = 2000 };
    uint64_t limit_ms = w->options.limits.stop_ms;
    if (w->leaving.is_granted) limit_ms /= GONE_PARTS;
    if (w->leaving.unheard && limit_ms > UNHEARD_MS) limit_ms = UNHEARD_MS;
    return w->patience.now_ms - w->leaving.since_ms >= limit_ms;
}

/* Though nobody has granted that: another one can lead. */
static bool can_be_spared(const struct worker_role *w)
{
    return w->leaving.is_granted || !is_to_lead(w) ||
           (w->options.limits.chief_ms && !w->options.keeps_chief);
}

static void on_tick(struct role *role, uint64_t now_ms, struct outbox *out)
{
    struct worker_role *w = (struct worker_role *)role;
    patience_tick(&w->patience, now_ms);
    if (w->phase == ENDED) return;
    if (w->ending >= DEPARTS && leave_is_over(w)) {
        if (w->ending == DEPARTS && !w->leaving.unheard && can_be_spared(w))
            say_gone(w, false, out);
        else
            worker_end(w, w->stop.code, w->stop.text, out);
        return;
    }
    worker_watch_lease(w, out);
    worker_watch_save(w, out);
    worker_watch_resize(w, out);
    worker_watch_change(w, out);
    worker_watch_replicas(w, out);
    worker_watch_beginning(w, out);
    worker_watch(w, out);
}

static const struct role_ops ops = {
    .name = "worker",
    .start = on_start,
    .peer_up = on_peer_up,
    .peer_lost = on_peer_lost,
    .message = on_message,
    .done = on_done,
    .leave = on_leave,
    .resize = on_resize,
    .stop = on_stop,
    .tick = on_tick,
    .report = worker_report,
    .state = worker_state,
};

struct role *worker_role_new(const struct worker_options *options)
{
    struct worker_role *w = calloc(1, sizeof *w);
    if (!w) return NULL;
    w->role.ops = &ops;
    w->options = *options;
    if (!options->homes) w->options.homes = options->ps_count;
    task_name(JOB_WORKER, options->task, w->name);
    w->servers = calloc((size_t)options->ps_count, sizeof *w->servers);
    w->saving.numbers =
        calloc(1 + (size_t)options->workers * LEDGER_NUMBERS, sizeof *w->saving.numbers);
    w->saving.ledgers = calloc(2 * (size_t)options->workers, sizeof *w->saving.ledgers);
    w->saving.torn = calloc((size_t)options->workers, sizeof *w->saving.torn);
    if (!w->servers || !w->saving.numbers || !w->saving.ledgers || !w->saving.torn) {
        worker_role_free(&w->role);
        return NULL;
    }
    for (int ps = 0; ps < options->ps_count; ps++) {
        const int64_t *const of =
            options->moved_floats ? options->moved_floats : options->block_floats;
        w->servers[ps].block = parts_of(options->block_floats[ps]);
        w->servers[ps].moved = parts_front(w->servers[ps].block, of[ps]);
    }
    return &w->role;
}

void worker_role_free(struct role *role)
{
    struct worker_role *w = (struct worker_role *)role;
    if (!w) return;
    free(w->servers);
    free(w->saving.numbers);
    free(w->saving.ledgers);
    free(w->saving.torn);
    free(w);
}

uint64_t worker_role_global_step(const struct role *role)
{
    return ((const struct worker_role *)role)->global_step;
}

uint64_t worker_role_generation(const struct role *role)
{
    return ((const struct worker_role *)role)->generation;
}

bool worker_role_is_evaluating(const struct role *role)
{
    return ((const struct worker_role *)role)->phase == EVALUATING;
}

uint64_t worker_role_saving_ms(const struct role *role)
{
    const struct worker_role *w = (const struct worker_role *)role;
    return w->saving.phase == SAVE_IDLE ? 0 : w->patience.now_ms - w->saving.since_ms;
}

uint64_t worker_role_term(const struct role *role)
{
    return ((const struct worker_role *)role)->lead.term;
}

bool worker_role_leads(const struct role *role)
{
    return ((const struct worker_role *)role)->lead.is_ours;
}

bool worker_role_is_in_progress(const struct role *role)
{
    const struct worker_role *w = (const struct worker_role *)role;
    bool ret = false;
    for (int ps = 0; ps < w->options.ps_count; ps++)
        ret |= w->servers[ps].contact == KNOWN && w->servers[ps].said.generation;
    return ret;
}

bool worker_role_has_left(const struct role *role)
{
    return ((const struct worker_role *)role)->leaving.has_left;
}

uint64_t worker_role_staleness(const struct role *role)
{
    return ((const struct worker_role *)role)->staleness;
}

void worker_role_begin_at(struct role *role, uint64_t first_step)
{
    ((struct worker_role *)role)->first_step = first_step;
}
