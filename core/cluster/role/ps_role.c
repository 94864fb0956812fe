/* ps_role.c - see ps_role.h: the life of a ps and what it does with each message. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/replicas.h"
#include "core/cluster/role/ps_role_inside.h"
#include "core/cluster/role/verdict.h"

struct message *ps_send(struct ps_role *p, int worker, enum message_type type, struct outbox *out)
{
    const struct message m = {
        .type = type,
        .task = (uint32_t)p->options.task,
        .job = JOB_PS,
        .generation = p->config.generation,
    };
    return &outbox_add_send(out, (struct action_send){worker, m})->message;
}

int ps_chief(const struct ps_role *p)
{
    return term_chief(p->lead.term, p->options.workers);
}

/* It is here, and leads. Before term 0 nobody has led, whose words could be on their way. */
static bool obeys(const struct ps_role *p, int worker)
{
    const struct member *m = &p->members[worker];
    return worker == ps_chief(p) && member_is_here(m) && (m->lead.claims || p->lead.term == 0);
}

bool ps_chief_is_here(const struct ps_role *p)
{
    return obeys(p, ps_chief(p));
}

struct message *ps_tell_chief(struct ps_role *p, enum message_type type, struct outbox *out)
{
    return ps_send(p, ps_chief(p), type, out);
}

static void tell_verdict(struct ps_role *p, int worker, struct outbox *out)
{
    message_say_verdict(ps_send(p, worker, MESSAGE_VERDICT, out), p->verdict.code,
                        p->verdict.from == NOBODY ? p->name : "", p->verdict.text, out);
}

void ps_end(struct ps_role *p, int code, const char *text, int from, struct outbox *out)
{
    if (p->phase == ENDED) return;
    if (from != NOBODY) p->members[from].knows_end = true;
    ps_take_back(p, out);
    ps_note_turns_end(p, code, text, from, out);
    ps_set_phase(p, ENDED);
    p->verdict.from = from;
    p->verdict.code = code;
    snprintf(p->verdict.text, sizeof p->verdict.text, "%s", text);
    for (int w = 0; w < p->options.workers; w++)
        if (member_is_here(&p->members[w])) tell_verdict(p, w, out); /* `from`: it was heard */
    outbox_end(out, code, text);
}

bool ps_config_drops(const struct ps_config *c)
{
    return c->is_sync ? !c->takes_all : c->max_staleness >= 0;
}

int64_t ps_config_moved(const struct ps_config *c)
{
    return c->moved_floats ? c->moved_floats : c->block_floats;
}

uint32_t ps_config_gradients(const struct ps_config *c, int workers, int worker)
{
    const struct data_share share = {.workers = (uint64_t)workers,
                                     .replicas = c->replicas_to_aggregate};
    return data_share_gradients(&share, worker);
}

void ps_say_state(struct ps_role *p, int worker, struct outbox *out)
{
    static const enum ps_state states[] = {
        [EMPTY] = PS_EMPTY, [READY] = PS_READY, [SERVING] = PS_SERVING};
    struct message *m = ps_send(p, worker, MESSAGE_STATE, out);
    m->state = (struct message_state){states[p->phase],
                                      p->members[worker].lead.claims ? 1 + p->lead.term : 0,
                                      p->step, p->config.last_step, 0};
    memcpy(&m->state.rate_factor, &p->config.rate_factor, sizeof m->state.rate_factor);
}

static void tell_state(struct ps_role *p, struct outbox *out)
{
    for (int w = 0; w < p->options.workers; w++)
        if (member_is_here(&p->members[w])) ps_say_state(p, w, out);
}

/* ---- from nothing to serving ---- */

/* Nothing of the last generation counts any more; links and lives go on. */
static void forget(struct ps_role *p, struct outbox *out)
{
    ps_snapshot_reset(p, out);
    ps_set_phase(p, EMPTY);
    p->config = (struct ps_config){0};
    p->arrays = 0;
    p->round.gradients = 0;
    p->tickets = p->step = p->counters.applied = p->round.advanced = 0;
    p->turns.next = 0;
    p->stopping.is_on = false;
    p->lead.gone = 0;
    p->data.coverage = (struct coverage){0};
    p->data.waiting.count = 0;
    batch_queue_free(&p->data.queue);
    for (int w = 0; w < p->options.workers; w++) {
        struct member *m = &p->members[w];
        *m = (struct member){
            .presence = m->presence,
            .wants_fresh = m->wants_fresh,
            .lost_ms = p->patience.now_ms,
            .life = m->life,
            .lead = m->lead,
            .window = m->window,
        };
        m->life.kept_snapshot = false;
    }
    ps_pool_forget(p);
}

static void setup(struct ps_role *p, const struct message *m, struct outbox *out)
{
    forget(p, out);
    outbox_add_setup(out, (struct action_setup){*m});
}

static void send_ready(struct ps_role *p, enum ready_code code, struct outbox *out)
{
    struct message *m = ps_tell_chief(p, MESSAGE_READY, out);
    m->ready = (struct message_ready){code, (uint64_t)p->arrays, p->step};
}

/* As many batches as there are steps, shared out evenly, whoever is the fastest. */
static uint64_t end_of_shares(const struct ps_role *p)
{
    const uint64_t last = p->config.last_step, left = last > p->step ? last - p->step : 0;
    uint64_t batches = left;
    for (int w = 0; w < p->options.workers; w++) batches += p->members[w].ledger.received;
    return batches;
}

/* Plans are no longer than a part of an epoch, so that none is left behind for long; but as long as
 * it pays to read what lies together. */
static bool open_queue(struct ps_role *p, const struct ps_config *c)
{
    const struct data_share *s = &c->coverage.share;
    const uint64_t parts = 4 * (uint64_t)p->options.workers, least = 4, most = PLAN_BATCHES_MAX;
    if (p->options.task != 0 || c->is_sync || !data_share_is_queue(s)) return true;
    const uint64_t ahead = s->rows == DATA_ROWS_ENDLESS ? least : s->rows / s->batch / parts;
    if (!batch_queue_open(&p->data.queue, p->options.workers,
                          (int)(ahead < least  ? least
                                : ahead > most ? most
                                               : ahead)))
        return false;
    if (c->stretch) batch_queue_hand_out_stretches(&p->data.queue, c->stretch);
    return !c->queue_numbers || batch_queue_read(&p->data.queue, c->queue, c->queue_numbers);
}

void ps_role_set_up(struct role *role, const struct setup_result *r, struct outbox *out)
{
    struct ps_role *p = (struct ps_role *)role;
    if (p->phase != EMPTY) return;
    if (r->result && !r->is_bad_checkpoint) {
        ps_end(p, exit_code_of(r->result), r->text, NOBODY, out);
        return;
    }
    p->config = r->config;
    p->block = parts_of(r->config.block_floats);
    p->moved = parts_front(p->block, ps_config_moved(&r->config));
    p->pool.count = r->config.windows;
    ps_plan_overlap(p);
    if (!r->result && !open_queue(p, &r->config)) {
        ps_end(p, EXIT_FAILED, "no memory for the batches that are handed out", NOBODY, out);
        return;
    }
    if (r->result) {
        struct message *m = ps_tell_chief(p, MESSAGE_READY, out);
        m->ready = (struct message_ready){READY_FAILED, .step = p->step};
        message_say(m, r->text, out);
        return;
    }
    ps_set_phase(p, READY);
    p->was_set_up = true;
    p->step = p->tickets = r->config.step;
    if (ps_has_turns(p)) p->config.last_step = ps_turns_last_step(p);
    for (int w = 0; w < p->options.workers && r->config.ledger; w++)
        p->members[w].ledger = r->config.ledger[w];
    const struct data_share *share = &r->config.coverage.share;
    const bool is_ours =
        data_share_is_queue(share) || share->workers == (uint64_t)p->options.workers;
    if (p->options.task == 0 && is_ours) p->data.coverage = r->config.coverage;
    if (p->config.needs_everybody) p->data.share_end = end_of_shares(p);
    p->config.ledger = NULL;
    p->config.queue = NULL;
    tell_state(p, out);
    ps_share(p, ps_chief(p), out);
    send_ready(p, r->config.is_restored || !r->config.block_floats ? READY_RESTORED : READY_WANTS,
               out);
}

static void initialize(struct ps_role *p, const struct message *m, struct outbox *out)
{
    bool is_next = m->init.array == (uint32_t)p->arrays && p->arrays < p->config.arrays;
    if (p->phase != READY || !is_next) return;
    outbox_add_initialize(out, (struct action_initialize){ps_chief(p), p->arrays++});
    send_ready(p, READY_WANTS, out);
}

static bool is_filled(const struct ps_role *p)
{
    return p->config.is_restored || !p->config.block_floats || p->arrays == p->config.arrays;
}

static void serve(struct ps_role *p, struct outbox *out)
{
    if (p->phase != READY || !is_filled(p)) return;
    ps_set_phase(p, SERVING);
    patience_renew(&p->patience);
    for (int w = 0; w < p->options.workers; w++) p->members[w].lost_ms = p->patience.now_ms;
    if (p->step)
        outbox_log(out, "serving from step %llu on", (unsigned long long)p->step);
    else
        outbox_log(out, "serving");
    tell_state(p, out);
}

/* ---- the end ---- */

void ps_ask_chief_to_stop(struct ps_role *p, struct outbox *out)
{
    struct message *m = ps_tell_chief(p, MESSAGE_STOP, out);
    m->stop.exit_code = (uint32_t)p->stopping.code;
    message_say(m, p->stopping.text, out);
}

/* Somebody wants the job to end well: no more steps, and the chief sees to the rest. */
static void stop_well(struct ps_role *p, int code, const char *text, int from, struct outbox *out)
{
    if (p->options.task == 0 && p->phase == SERVING) ps_stop_tickets(p, out);
    if (!p->stopping.is_on) p->stopping.since_ms = p->patience.now_ms;
    p->stopping.is_on = p->phase == SERVING;
    p->stopping.code = code;
    snprintf(p->stopping.text, sizeof p->stopping.text, "%s", text);
    /* one that is away is asked when it leads (welcome_chief) */
    if (from != ps_chief(p) && p->phase != ENDED) ps_ask_chief_to_stop(p, out);
}

/* Of a chief that others have taken the place of. */
static bool is_outdated(const struct ps_role *p, int worker, uint64_t claim)
{
    return claim && claim <= p->lead.term && worker != ps_chief(p);
}

static void verdict(struct ps_role *p, int worker, const struct message *m, struct outbox *out)
{
    char text[ACTION_TEXT_MAX];
    if (is_outdated(p, worker, m->verdict.claim)) return;
    const int code = message_verdict(m, m->verdict.exit_code, text);
    ps_end(p, code, text, worker, out);
}

static void stop_message(struct ps_role *p, int worker, const struct message *m, struct outbox *out)
{
    char text[ACTION_TEXT_MAX];
    if (is_outdated(p, worker, m->stop.claim) || ps_has_turns(p)) return;
    const int code = message_verdict(m, m->stop.exit_code, text);
    stop_well(p, code, text, worker, out);
}

/* ---- events ---- */

/* The worker may not send this message. A SETUP would undo the job's work, and ends the job where
 * nobody but worker/0 has ever led; later it may be of a chief that has not heard of the next one.
 * A SAVE is answered: it may be of the chief, of whom a ps that came back empty knows nothing, and
 * which must not wait for its checkpoint. */
static void refuse(struct ps_role *p, int worker, const struct message *m, const char *fault,
                   struct outbox *out)
{
    if (m->type == MESSAGE_SETUP && p->lead.term == 0)
        ps_end(p, EXIT_LOST_PEER, "SETUP from a task that is not the chief", NOBODY, out);
    else if (m->generation == p->config.generation)
        outbox_breach(out, false, "worker/%d sent %s (%u), %s", worker, message_name(m->type),
                      m->type, fault);
    if (m->type == MESSAGE_SAVE) ps_refuse_save(p, worker, m->save.tag, "another one leads", out);
}

/* Narrows the ranges to what this ps has agreed on with the worker, and has given out. Where ps/0
 * decides what is taken, a worker may name steps that this ps has not reached, and leave out
 * pushes, for each of which it has joined again. */
static void narrow(const struct ps_role *p, int worker, struct message_ends *ends)
{
    const struct member *m = &p->members[worker];
    const bool follows = ps_config_drops(&p->config) && p->options.task != 0;
    const uint32_t agreed = ps_config_gradients(&p->config, p->options.workers, worker);
    const uint64_t ahead = p->config.is_sync ? (uint64_t)p->options.workers : p->config.last_step;
    ends->at[RANGE_GRADIENTS] = (struct message_end){agreed, agreed};
    ends->at[RANGE_PUSHES].most = m->ledger.received + 1 + (follows ? m->joins : 0);
    ends->at[RANGE_GIVEN].most = p->step + (follows ? ahead : 0);
    ends->at[RANGE_UPDATES].most = p->counters.applied;
    ends->at[RANGE_GONE].most =
        p->options.task ? 0 : replicas_most(p->config.homes, p->config.ps_count);
}

/* Who breaks what was agreed is not counted on: its place may be taken by who keeps to it. */
static bool is_breach(struct ps_role *p, int worker, const struct message *m, struct outbox *out)
{
    struct message_ends ends = message_ends_of_all;
    char text[MESSAGE_BREACH_MAX];
    const bool is_of_now = p->phase != EMPTY && m->generation == p->config.generation;
    ends.at[RANGE_TERMS].most = p->lead.term + TERMS_AHEAD_MAX;
    if (is_of_now)
        ends.at[RANGE_ARRAYS].most = p->config.arrays ? (uint64_t)p->config.arrays - 1 : 0;
    if (is_of_now && p->phase == SERVING) narrow(p, worker, &ends);
    if (message_is_within(m, &ends, text)) return false;
    outbox_breach(out, true, "hangs up on worker/%d, which sent %s (%u), %s", worker,
                  message_name(m->type), m->type, text);
    outbox_add_hang_up(out, (struct action_hang_up){worker});
    ps_forget_link(p, worker, out);
    return true;
}

/* What only a task of the same generation may say. */
static void on_current(struct ps_role *p, int worker, const struct message *m, struct outbox *out)
{
    switch (m->type) {
    case MESSAGE_INIT:
        initialize(p, m, out);
        break;
    case MESSAGE_SERVE:
        serve(p, out);
        break;
    case MESSAGE_JOIN:
        ps_join(p, worker, m, out);
        break;
    case MESSAGE_PUSH:
        ps_push(p, worker, m, out);
        break;
    case MESSAGE_PART:
        ps_part(p, worker, m, out);
        break;
    case MESSAGE_READS:
        p->members[worker].reads = true;
        break;
    case MESSAGE_FINISHED:
        ps_note_data_end(p, m->finished.data_end);
        ps_finished(p, worker, m->finished.flags, out);
        break;
    case MESSAGE_SAVE:
        ps_save(p, m, out);
        break;
    case MESSAGE_RESUME:
        if (m->resume.stays == RESUME_DROP)
            outbox_add_drop(out, (struct action_drop){m->resume.tag});
        (m->resume.stays == RESUME_STAY ? ps_stay : ps_resume)(p, out);
        break;
    case MESSAGE_SCALED:
        ps_scaled(p, m, out);
        break;
    default:
        break;
    }
    ps_take_turns(p, out);
    if (p->phase == SERVING) ps_try_snapshot(p, out);
}

static void hear(struct ps_role *p, enum job job, int worker, const struct message *m,
                 struct outbox *out)
{
    if (p->phase == ENDED && m->type == MESSAGE_VERDICT) p->members[worker].knows_end = true;
    if (p->phase == ENDED || job != JOB_WORKER || !member_is_here(&p->members[worker])) return;
    p->members[worker].life.has_spoken = true;
    const unsigned sender = obeys(p, worker) ? FROM_WORKER | FROM_CHIEF : FROM_WORKER;
    const char *fault = message_fault(m, sender);
    p->round.applying_count = 0;
    if (obeys(p, worker)) ps_renew_lease(p, 0);
    if (fault)
        refuse(p, worker, m, fault, out);
    else if (is_breach(p, worker, m, out))
        return;
    else if (m->type == MESSAGE_LEADS)
        ps_heard_term(p, worker, m, out);
    else if (m->type == MESSAGE_SETUP)
        setup(p, m, out);
    else if (m->type == MESSAGE_VERDICT)
        verdict(p, worker, m, out);
    else if (m->type == MESSAGE_STOP)
        stop_message(p, worker, m, out);
    else if (m->type == MESSAGE_LEAVE)
        ps_leave(p, worker, m, out);
    else if (m->type == MESSAGE_RESIZE && !is_outdated(p, worker, m->resize.claim))
        ps_heard_resize(p, m, out);
    else if (m->generation == p->config.generation && p->phase != EMPTY)
        on_current(p, worker, m, out);
    else if (m->type == MESSAGE_PUSH)
        p->counters.dropped_repeated++; /* of an earlier generation */
}

static void on_message(struct role *role, enum job job, int worker, const struct message *m,
                       struct outbox *out)
{
    struct ps_role *p = (struct ps_role *)role;
    hear(p, job, worker, m, out);
    ps_pool_heard(p, worker, m);
}

static void on_done(struct role *role, enum action_type done, err result, const char *text,
                    struct outbox *out)
{
    struct ps_role *p = (struct ps_role *)role;
    if (done == ACTION_SNAPSHOT && p->phase != ENDED) ps_snapshot_written(p, result, text, out);
}

static void on_start(struct role *role, uint64_t now_ms, struct outbox *out)
{
    struct ps_role *p = (struct ps_role *)role;
    patience_begin(&p->patience, now_ms);
    ps_renew_lease(p, 0);
}

/* What was said on the link may be lost, and nothing comes on it any more. */
void ps_forget_link(struct ps_role *p, int worker, struct outbox *out)
{
    struct member *m = &p->members[worker];
    member_set_presence(m, AWAY);
    ps_forget_ahead(p, worker, out);
    ps_pool_forget_link(p, worker);
    m->wants.values = m->reads = false;
    m->turn.late_push = (struct message){0};
    m->lead.claims = m->lead.can_lead = false;
    m->lead.late_term = (struct message){0};
    m->lost_ms = p->patience.now_ms;
    if (worker == ps_chief(p)) p->lead.lease_ms = p->patience.now_ms + p->options.limits.chief_ms;
    ps_watch_scaling(p, out);
    ps_hand_over(p, worker, out);
    if (p->phase != SERVING) return;
    if (worker == ps_chief(p)) ps_resume(p, out);
    ps_try_snapshot(p, out);
}

void ps_role_note_absent(struct role *role, int worker, const char *why, struct outbox *out)
{
    struct ps_role *p = (struct ps_role *)role;
    struct member *m = &p->members[worker];
    if (member_is_here(m)) return; /* another process that would be it */
    const bool is_news = !m->life.why_absent[0];
    if (is_news && m->presence == NOT_YET) m->lost_ms = p->patience.now_ms;
    /* No news either: the worker repeats what this ps has told it, with more around it. */
    if (!is_news && (!*why || strstr(why, m->life.why_absent))) return;
    snprintf(m->life.why_absent, sizeof m->life.why_absent, "%s",
             *why ? why : "it does not say why");
    if (is_news) outbox_log(out, "worker/%d cannot take part: %s", worker, m->life.why_absent);
}

static void on_peer_up(struct role *role, enum job job, int worker, uint64_t incarnation,
                       struct outbox *out)
{
    struct ps_role *p = (struct ps_role *)role;
    struct member *m = &p->members[worker];
    bool is_back = m->presence == AWAY;
    p->round.applying_count = 0;
    if (p->phase == ENDED) { /* its link was lost just before */
        if (!member_is_here(m)) member_set_presence(m, HERE);
        (ps_has_resized(p) ? ps_tell_resize : tell_verdict)(p, worker, out);
        return;
    }
    if (member_is_here(m)) ps_forget_link(p, worker, out); /* it has made a better one */
    if (m->presence == AWAY && m->life.incarnation != incarnation) {
        m->wants_fresh = true;
        if (p->phase == SERVING) ps_note_turn(p, TURN_BREAK, worker, NULL, out);
        if (p->config.is_sync) m->ticket.is_held = false; /* it does not compute */
    }
    if (is_back && p->phase == SERVING)
        outbox_log(out, "worker/%d is back%s", worker,
                   m->life.incarnation == incarnation ? "" : ", in another life");
    member_set_presence(m, HERE);
    m->ticket.is_told = m->life.has_left = false;
    m->life.why_absent[0] = '\0';
    m->life.has_pushed = m->life.has_pushed && m->life.incarnation == incarnation;
    m->life.has_spoken = m->life.has_spoken && m->life.incarnation == incarnation;
    m->life.incarnation = incarnation;
    ps_renew_wait(p, worker);
    if (worker == ps_chief(p)) ps_renew_lease(p, 0);
    ps_say_term(p, worker, out);
    ps_say_state(p, worker, out);
}

static void on_peer_lost(struct role *role, enum job job, int worker, const char *why,
                         struct outbox *out)
{
    struct ps_role *p = (struct ps_role *)role;
    if (!member_is_here(&p->members[worker])) return;
    if (p->phase == ENDED) {
        member_set_presence(&p->members[worker], AWAY);
        return;
    }
    p->round.applying_count = 0;
    if (!p->members[worker].life.has_left) outbox_log(out, "lost worker/%d: %s", worker, why);
    ps_forget_link(p, worker, out);
}

static void on_stop(struct role *role, int code, const char *why, struct outbox *out)
{
    ps_end((struct ps_role *)role, code, why, NOBODY, out);
}

/* One that is away is back soon, or another one leads: unless it was launched with the others, and
 * ended. */
static bool can_end_well(const struct ps_role *p)
{
    return p->phase == SERVING && (ps_chief_is_here(p) || !p->options.is_launched);
}

uint64_t ps_role_awaits_chief(const struct role *role, char ret_text[ACTION_TEXT_MAX])
{
    const struct ps_role *p = (const struct ps_role *)role;
    const uint64_t limit_ms = p->options.limits.stop_ms;
    const uint64_t waited_ms = p->patience.now_ms - p->leaving.since_ms;
    if (p->phase != SERVING || !p->leaving.code || ps_chief_is_here(p)) return 0;
    snprintf(ret_text, ACTION_TEXT_MAX,
             "worker/%d, which leads and makes the last checkpoint, is away: %s waits %.3g s for "
             "it, or for another one (--stop_timeout)",
             ps_chief(p), p->name, (double)limit_ms / 1000);
    return waited_ms < limit_ms ? limit_ms - waited_ms : 0;
}

static void on_leave(struct role *role, int code, const char *why, bool only_me, struct outbox *out)
{
    struct ps_role *p = (struct ps_role *)role;
    if (p->phase == ENDED || p->leaving.code) return;
    if (!can_end_well(p)) {
        ps_end(p, code, why, NOBODY, out);
        return;
    }
    p->leaving.since_ms = p->patience.now_ms;
    p->leaving.code = code;
    snprintf(p->leaving.text, sizeof p->leaving.text, "%s", why);
    char text[ACTION_TEXT_MAX];
    snprintf(text, sizeof text, "%s: %s", p->name, why);
    stop_well(p, code, text, NOBODY, out);
    if (ps_role_awaits_chief(role, text)) outbox_warn(out, "%s", text);
}

/* The time for a good end (--stop_timeout) is over. */
static void end_badly(struct ps_role *p, struct outbox *out)
{
    char text[ACTION_TEXT_MAX + 128] = "";
    if (p->phase == SERVING && !ps_chief_is_here(p))
        snprintf(text, sizeof text,
                 "%s, without a last checkpoint: worker/%d, which leads, was away for %.3g s "
                 "(--stop_timeout)",
                 p->leaving.text, ps_chief(p), (double)p->options.limits.stop_ms / 1000);
    ps_end(p, p->leaving.code, *text ? text : p->leaving.text, NOBODY, out);
}

static void on_tick(struct role *role, uint64_t now_ms, struct outbox *out)
{
    struct ps_role *p = (struct ps_role *)role;
    patience_tick(&p->patience, now_ms);
    p->round.applying_count = 0;
    if (p->phase == ENDED) return;
    if (p->leaving.code && p->patience.now_ms - p->leaving.since_ms >= p->options.limits.stop_ms) {
        end_badly(p, out);
        return;
    }
    ps_tell_waiting_coverage(p, out);
    ps_watch_scaling(p, out);
    ps_watch(p, out);
}

static void on_resize(struct role *role, const struct membership *membership, struct outbox *out)
{
    struct ps_role *p = (struct ps_role *)role;
    ps_resize(p, membership, p->step, out);
}

static const struct role_ops ops = {
    .name = "ps",
    .start = on_start,
    .peer_up = on_peer_up,
    .peer_lost = on_peer_lost,
    .message = on_message,
    .done = on_done,
    .leave = on_leave,
    .resize = on_resize,
    .stop = on_stop,
    .tick = on_tick,
    .report = ps_report,
    .state = ps_state,
};

struct role *ps_role_new(const struct ps_options *options)
{
    struct ps_role *p = calloc(1, sizeof *p);
    if (!p) return NULL;
    size_t workers = (size_t)options->workers;
    p->role.ops = &ops;
    p->options = *options;
    task_name(JOB_PS, options->task, p->name);
    p->members = calloc(workers, sizeof *p->members);
    /* an APPLY and a FOLD each, and one ADVANCE */
    p->round.applying = calloc(3 * workers, sizeof *p->round.applying);
    p->snapshot.target = calloc(workers, sizeof *p->snapshot.target);
    p->snapshot.as_of = calloc(workers, sizeof *p->snapshot.as_of);
    p->snapshot.numbers = calloc(workers * LEDGER_NUMBERS, sizeof *p->snapshot.numbers);
    if (p->members && p->round.applying && p->snapshot.target && p->snapshot.as_of &&
        p->snapshot.numbers)
        return &p->role;
    ps_role_free(&p->role);
    return NULL;
}

void ps_role_free(struct role *role)
{
    struct ps_role *p = (struct ps_role *)role;
    if (!p) return;
    free(p->members);
    free(p->round.applying);
    free(p->snapshot.target);
    free(p->snapshot.as_of);
    free(p->snapshot.numbers);
    free(p->snapshot.queue);
    batch_queue_free(&p->data.queue);
    free(p);
}

struct ps_counters ps_role_counters(const struct role *role)
{
    return ((const struct ps_role *)role)->counters;
}

bool ps_role_is_set_up(const struct role *role)
{
    return ((const struct ps_role *)role)->was_set_up;
}

uint64_t ps_role_term(const struct role *role)
{
    return ((const struct ps_role *)role)->lead.term;
}

int ps_role_chief(const struct role *role)
{
    return ps_chief((const struct ps_role *)role);
}

bool ps_role_obeys(const struct role *role, int worker)
{
    return obeys((const struct ps_role *)role, worker);
}

bool ps_role_awaits(const struct role *role, int worker)
{
    const struct ps_role *p = (const struct ps_role *)role;
    const struct member *m = &p->members[worker];
    /* or will be, unless it has looked in and gone again, as one that a signal ends at once */
    const bool is_told = member_is_here(m) || (m->standing != EVICTED && m->life.has_spoken);
    return p->phase == ENDED && !ps_has_resized(p) && !m->knows_end && !m->life.has_left && is_told;
}

uint64_t ps_role_received(const struct role *role, int worker)
{
    return ((const struct ps_role *)role)->members[worker].ledger.received;
}

bool ps_role_has_left(const struct role *role, int worker)
{
    return ((const struct ps_role *)role)->members[worker].life.has_left;
}

bool ps_role_has_pushed(const struct role *role, int worker)
{
    return ((const struct ps_role *)role)->members[worker].life.has_pushed;
}

bool ps_role_is_serving(const struct role *role)
{
    return ((const struct ps_role *)role)->phase == SERVING;
}

const struct ledger *ps_role_ledger(const struct role *role, int worker)
{
    const struct ps_role *p = (const struct ps_role *)role;
    return p->snapshot.writing ? &p->snapshot.as_of[worker] : &p->members[worker].ledger;
}

const struct coverage *ps_role_coverage(const struct role *role)
{
    const struct ps_role *p = (const struct ps_role *)role;
    return p->snapshot.writing ? &p->snapshot.covers : &p->data.coverage;
}

const int64_t *ps_role_queue(const struct role *role, int *ret_count)
{
    const struct ps_role *p = (const struct ps_role *)role;
    *ret_count = p->snapshot.queue_count;
    return p->snapshot.queue;
}

uint64_t ps_role_step(const struct role *role)
{
    return ((const struct ps_role *)role)->step;
}
