/* ps_wait.c - who leads, as ps/0 decides by leases and terms; which workers are waited for, how
 * long, and what happens then. */
#include <stdio.h>

#include "core/base/replicas.h"
#include "core/cluster/role/ps_role_inside.h"
#include "core/cluster/role/verdict.h"

/* ---- who leads ---- */

enum { DOUBLINGS_MAX = 3 };

void ps_say_term(struct ps_role *p, int worker, struct outbox *out)
{
    struct message *m = ps_send(p, worker, MESSAGE_LEADS, out);
    m->leads.term = p->lead.term;
    m->leads.gone = p->lead.gone;
}

void ps_renew_lease(struct ps_role *p, uint64_t for_ms)
{
    const uint64_t least_ms = p->patience.now_ms + p->options.limits.chief_ms;
    const uint64_t until_ms = p->patience.now_ms + for_ms;
    if (for_ms || p->lead.lease_ms < least_ms)
        p->lead.lease_ms = until_ms > least_ms ? until_ms : least_ms;
}

/* It may stand still, and nobody is to wait for its gradients as if it were here. */
static void hang_up(struct ps_role *p, int worker, struct outbox *out)
{
    if (!member_is_here(&p->members[worker])) return;
    outbox_log(out, "hangs up on worker/%d, which leads no more", worker);
    outbox_add_hang_up(out, (struct action_hang_up){worker});
    ps_forget_link(p, worker, out);
}

/* Notes the new term, and with it the new chief, and says so to all workers that are here. What the
 * chief of an earlier term has begun comes to nothing. from: who says so; NOBODY: ps/0. */
static void begin_term(struct ps_role *p, uint64_t term, int from, struct outbox *out)
{
    const int old = ps_chief(p);
    p->lead.term = term;
    p->lead.term_ms = p->patience.now_ms;
    if (old != from && old != ps_chief(p)) hang_up(p, old, out);
    for (int w = 0; w < p->options.workers; w++) p->members[w].lead.claims = false;
    ps_resume(p, out);
    p->lead.lease_ms = p->patience.now_ms + p->options.limits.chief_ms;
    for (int w = 0; w < p->options.workers; w++)
        if (member_is_here(&p->members[w])) ps_say_term(p, w, out);
}

/* What it has missed, on its new link or as another one led. */
static void welcome_chief(struct ps_role *p, int worker, struct outbox *out)
{
    p->members[worker].lead.claims = true;
    if (p->lead.term) ps_say_state(p, worker, out);
    if (p->stopping.is_on) ps_ask_chief_to_stop(p, out);
}

/* Then there is no other term than the one that this ps knows. A chief has looked at all ps before
 * it says for the first time that it leads, or has heard of its term: where another ps knows of a
 * later one, it bids more than that (worker_recover.c). Where no other worker ever leads, nobody
 * has given one out. */
static bool gives_terms(const struct ps_role *p)
{
    if (p->options.task != 0) return false;
    if (!p->options.limits.chief_ms) return true;
    return ps_chief_is_here(p) && (p->phase == SERVING || p->members[ps_chief(p)].lead.claims);
}

/* Only ps/0 gives out terms, and another ps hears of them from workers, of which one may lie. Then
 * the chief before has ps/0 give out a later one of its own (worker_recover.c, outbid): whoever has
 * named one in between is not believed at once the next time. */
static void note_name(struct ps_role *p, int worker, uint64_t term)
{
    const struct wait_limits *limits = &p->options.limits;
    const uint64_t limit_ms = limits->chief_ms ? limits->chief_ms : limits->restart_ms;
    const uint64_t now_ms = p->patience.now_ms;
    const bool has_lasted = ps_chief_is_here(p) && now_ms - p->lead.term_ms >= limit_ms;
    if (has_lasted) p->lead.lasting = ps_chief(p);
    for (int w = 0; w < p->options.workers; w++) {
        struct member *m = &p->members[w];
        const bool is_outbid =
            m->lead.has_named && term_chief(term, p->options.workers) == p->lead.lasting;
        if (is_outbid && !has_lasted) {
            m->lead.outbid += m->lead.outbid < DOUBLINGS_MAX;
            m->lead.unbelieved_ms = now_ms + (limit_ms << m->lead.outbid);
        }
        if (is_outbid || has_lasted) m->lead.has_named = false;
    }
    p->members[worker].lead.has_named = worker != p->lead.lasting;
}

/* Whether a later term that this worker names is believed at once. Where the chief is not here,
 * there may well be another one. */
static bool is_believed(struct ps_role *p, int worker)
{
    return p->options.task == 0 || !ps_chief_is_here(p) ||
           p->patience.now_ms >= p->members[worker].lead.unbelieved_ms;
}

static void hear_late_terms(struct ps_role *p, struct outbox *out)
{
    for (int w = 0; w < p->options.workers; w++) {
        const struct message late = p->members[w].lead.late_term;
        if (!late.type || !is_believed(p, w)) continue;
        p->members[w].lead.late_term = (struct message){0};
        ps_heard_term(p, w, &late, out);
    }
}

/* It waits, instead of what waited before. */
static void hear_later(struct ps_role *p, int worker, const struct message *m, struct outbox *out)
{
    struct member *member = &p->members[worker];
    outbox_breach(out, false,
                  "worker/%d speaks of term %llu, as it did of others that ps/0 did not give out",
                  worker, (unsigned long long)m->leads.term);
    member->lead.late_term = *m;
    member->lead.late_term.body = NULL;
    member->lead.late_term.body_bytes = 0;
}

/* ps/0 came back empty, and whoever leads in a term that it had given out before came only after
 * another one led anew: two would lead, and each have the other's checkpoints refused. The one that
 * leads here gets a term that is later than both, unless workers would take that for a lie. Once is
 * enough: whoever names one again and again waits longer each time, up to 8 times --chief_timeout.
 */
static void outbid(struct ps_role *p, int worker, uint64_t term, struct outbox *out)
{
    struct member_lead *lead = &p->members[worker].lead;
    const uint64_t limit_ms = p->options.limits.chief_ms;
    const uint64_t next = term_after(term, ps_chief(p), p->options.workers);
    if (!limit_ms || p->patience.now_ms < lead->unbelieved_ms) return;
    if (next > p->lead.term + TERMS_AHEAD_MAX) return;
    lead->unbelieved_ms = p->patience.now_ms + (limit_ms << lead->outbid);
    lead->outbid += lead->outbid < DOUBLINGS_MAX;
    begin_term(p, next, NOBODY, out);
}

/* The chief has found that what they hold is held by others. All workers hear of it from ps/0
 * alone, so that none pushes to a ps that another one has given up. */
static void do_without(struct ps_role *p, const struct message *m, struct outbox *out)
{
    const uint64_t said = m->leads.gone | p->lead.gone;
    const uint64_t all = replicas_spared(said, p->config.homes, p->config.ps_count);
    const bool is_of_now = p->phase == SERVING && m->generation == p->config.generation;
    if (!is_of_now || said == p->lead.gone || p->options.task != 0) return;
    if (said & ~all)
        outbox_breach(out, false, "worker/%d would do without what no other ps holds", ps_chief(p));
    if (!(all & ~p->lead.gone)) return;
    p->lead.gone |= all;
    for (int w = 0; w < p->options.workers; w++)
        if (member_is_here(&p->members[w])) ps_say_term(p, w, out);
}

void ps_heard_term(struct ps_role *p, int worker, const struct message *m, struct outbox *out)
{
    if (m->generation && !p->was_set_up) p->goes_on = true;
    p->members[worker].lead.can_lead = true;
    if (m->leads.term < p->lead.term) {
        ps_say_term(p, worker, out);
        return;
    }
    if (m->leads.term > p->lead.term && gives_terms(p) && worker != ps_chief(p)) {
        outbox_breach(
            out, false, "worker/%d speaks of term %llu while worker/%d leads in term %llu", worker,
            (unsigned long long)m->leads.term, ps_chief(p), (unsigned long long)p->lead.term);
        if (m->leads.claims == LEADS_CLAIMS) outbid(p, worker, m->leads.term, out);
        return;
    }
    if (m->leads.term > p->lead.term && !is_believed(p, worker)) {
        hear_later(p, worker, m, out);
        return;
    }
    if (m->leads.term > p->lead.term) {
        note_name(p, worker, m->leads.term);
        begin_term(p, m->leads.term, worker, out);
    }
    if (m->leads.claims != LEADS_CLAIMS || worker != ps_chief(p)) return;
    ps_renew_lease(p, m->leads.lease_ms);
    do_without(p, m, out);
    if (!p->members[worker].lead.claims) welcome_chief(p, worker, out);
}

/* The next term whose worker is here and could lead; the present term: no other worker can. */
static uint64_t next_term(const struct ps_role *p)
{
    for (int i = 1; i < p->options.workers; i++) {
        const uint64_t next = p->lead.term + (uint64_t)i;
        if (p->members[term_chief(next, p->options.workers)].lead.can_lead) return next;
    }
    return p->lead.term;
}

/* Since it was heard last, lost or named; 0: it has said that it will be silent for longer. */
static uint64_t chief_silent_ms(const struct ps_role *p)
{
    const uint64_t renewed_ms = p->patience.now_ms + p->options.limits.chief_ms;
    return renewed_ms > p->lead.lease_ms ? renewed_ms - p->lead.lease_ms : 0;
}

/* A job that is to end waits for a chief that is gone no longer than for any worker. One that is
 * here and says nothing may compute a step that it has begun before, as others may; one that was
 * heard since has none left to compute. Another one then still has time for the last checkpoint. */
static bool is_lease_over(const struct ps_role *p)
{
    const struct wait_limits *limits = &p->options.limits;
    const uint64_t now_ms = p->patience.now_ms, away_ms = limits->stop_ms / PS_STOP_PARTS;
    const bool is_here = ps_chief_is_here(p);
    const uint64_t stop_ms = is_here ? ps_silence_limit_ms(limits, true) : away_ms;
    if (now_ms >= p->lead.lease_ms) return true;
    return p->stopping.is_on && now_ms - p->stopping.since_ms >= stop_ms &&
           chief_silent_ms(p) >= (is_here ? limits->stop_ms / 2 : away_ms);
}

/* ps/0 alone gives out terms. The first chief is waited for until it has come (limits.start_ms),
 * unless others know that the job continues. */
static void watch_lease(struct ps_role *p, struct outbox *out)
{
    const uint64_t limit_ms = p->options.limits.chief_ms, next = next_term(p);
    const bool has_come = p->goes_on || p->members[ps_chief(p)].presence != NOT_YET;
    if (p->options.task != 0 || !limit_ms || !has_come || !is_lease_over(p)) return;
    if (next == p->lead.term) return;
    if (p->patience.now_ms < p->lead.lease_ms)
        outbox_log(out, "the chief, worker/%d, is %s, and the job is to end: worker/%d leads",
                   ps_chief(p), ps_chief_is_here(p) ? "silent" : "gone",
                   term_chief(next, p->options.workers));
    else
        outbox_log(
            out, "the chief, worker/%d, is gone for %llu s (--chief_timeout): worker/%d leads",
            ps_chief(p), (unsigned long long)limit_ms / 1000, term_chief(next, p->options.workers));
    begin_term(p, next, NOBODY, out);
}

/* ---- workers that are gone ---- */

static int counted_on(const struct ps_role *p)
{
    int count = 0;
    for (int w = 0; w < p->options.workers; w++) count += p->members[w].standing != EVICTED;
    return count;
}

/* One that may come again is none, however late. */
static bool cannot_come(const struct member *m)
{
    return !member_is_here(m) && m->life.why_absent[0];
}

/* To a ps that comes back to a job that continues, who is not there is lost, and not late. */
static bool was_there(const struct ps_role *p, const struct member *m)
{
    return m->presence != NOT_YET || p->goes_on;
}

static uint64_t absence_limit_ms(const struct ps_role *p, const struct member *m)
{
    const uint64_t lost_ms = p->config.worker_timeout_ms;
    uint64_t limit = was_there(p, m) ? lost_ms : p->options.limits.start_ms;
    if (m->life.has_left) return 0;
    if (p->leaving.code && m == &p->members[ps_chief(p)]) return UINT64_MAX; /* on_tick() ends */
    if (cannot_come(m) && lost_ms < limit) limit = lost_ms; /* it has come, and said so */
    uint64_t stop = p->options.limits.stop_ms / PS_STOP_PARTS;
    bool is_hurried = p->stopping.is_on && ps_chief_is_here(p);
    return is_hurried && stop < limit ? stop : limit;
}

/* Rounds, cuts and the end of the job do. */
static void go_on_without(struct ps_role *p, int worker, struct outbox *out)
{
    ps_leave_batches(p, worker);
    ps_apply_ready_rounds(p, out);
    if (ps_all_finished(p)) ps_finished(p, ps_chief(p), 0, out);
    ps_try_snapshot(p, out);
}

/* It reads rows that nobody else reads. */
static bool has_share(const struct ps_role *p)
{
    return p->config.needs_everybody || p->config.takes_all;
}

/* Synchronous: its gradient of the last round. */
static bool has_brought_share(const struct ps_role *p, int worker)
{
    const struct ledger *l = &p->members[worker].ledger;
    if (!p->config.is_sync) return !ps_is_in_share(p, worker);
    return l->taken && l->taken_step + 1 >= p->config.last_step;
}

/* All its rows are wanted, however soon the others are done with theirs. */
static bool is_missed(const struct ps_role *p, int worker)
{
    return p->config.needs_everybody && !p->stopping.is_on && !has_brought_share(p, worker);
}

/* It cannot come, and there is nothing left that it could bring. One that is only slow to start is
 * waited for: it would find nobody, and wait for long. */
static bool is_too_late(const struct ps_role *p, int worker)
{
    if (!cannot_come(&p->members[worker]) || is_missed(p, worker)) return false;
    if (p->members[ps_chief(p)].standing != FINISHED) return false;
    for (int w = 0; w < p->options.workers; w++) {
        const struct member *m = &p->members[w];
        if (m->standing == COUNTED_ON && was_there(p, m) && !cannot_come(m)) return false;
    }
    return true;
}

/* The others do its part, and are enough. */
static bool is_dispensable(const struct ps_role *p, const struct member *m)
{
    const int least = p->config.min_workers > 1 ? p->config.min_workers : 1;
    return cannot_come(m) && !has_share(p) && counted_on(p) > least;
}

/* Half of the rows are not all of them. */
static bool is_job_in_vain(const struct ps_role *p, int worker)
{
    const struct member *m = &p->members[worker];
    if (m->life.has_left || p->stopping.is_on || has_brought_share(p, worker)) return false;
    return cannot_come(m) ? has_share(p) : p->config.needs_everybody && !was_there(p, m);
}

static void end_in_vain(struct ps_role *p, int worker, uint64_t waited_s, struct outbox *out)
{
    char text[ACTION_TEXT_MAX];
    const struct member *m = &p->members[worker];
    if (cannot_come(m))
        snprintf(text, sizeof text,
                 "worker/%d cannot take part, and nobody else reads its share of the rows: %s",
                 worker, m->life.why_absent);
    else
        snprintf(
            text, sizeof text,
            "worker/%d did not come within %llu s (--start_timeout), and nobody else reads its "
            "share of the rows, all of which train.epochs wants",
            worker, (unsigned long long)waited_s);
    ps_end(p, cannot_come(m) ? EXIT_INPUT : EXIT_TIMEOUT, text, NOBODY, out);
}

static void set_evicted(struct ps_role *p, struct member *m)
{
    if (m->standing != EVICTED) p->counters.evicted++;
    member_set_standing(m, EVICTED);
}

static void evict(struct ps_role *p, int worker, struct outbox *out)
{
    struct member *m = &p->members[worker];
    uint64_t waited_s = (p->patience.now_ms - m->lost_ms) / 1000;
    const char *flag = m->life.has_left    ? "it has left"
                       : p->stopping.is_on ? "the job ends"
                       : cannot_come(m)    ? "it cannot take part"
                       : was_there(p, m)   ? "train.worker_timeout_secs"
                                           : "--start_timeout";
    if (is_job_in_vain(p, worker)) {
        end_in_vain(p, worker, waited_s, out);
        return;
    }
    set_evicted(p, m);
    ps_renew_wait(p, worker);
    int left = counted_on(p);
    const bool ends_well = p->stopping.is_on && (left > 0 || ps_chief_is_here(p));
    if (!ends_well && (left < p->config.min_workers || left == 0)) {
        char text[ACTION_TEXT_MAX];
        snprintf(text, sizeof text,
                 "worker/%d is gone for %llu s (%s), and %d worker%s are fewer than %d "
                 "(train.min_workers)",
                 worker, (unsigned long long)waited_s, flag, left, left == 1 ? "" : "s",
                 p->config.min_workers > 1 ? p->config.min_workers : 1);
        ps_end(p, EXIT_LOST_PEER, text, NOBODY, out);
        return;
    }
    outbox_log(out, "continues without worker/%d, gone for %llu s (%s)", worker,
               (unsigned long long)waited_s, flag);
    if (p->config.is_sync) m->ticket.is_held = false;
    go_on_without(p, worker, out);
}

uint64_t ps_silence_limit_ms(const struct wait_limits *limits, bool has_pushed)
{
    enum { UNPROVEN_PARTS = 5 * PS_STOP_PARTS };
    return has_pushed ? limits->stop_ms - limits->stop_ms / PS_STOP_PARTS
                      : limits->stop_ms / UNPROVEN_PARTS;
}

/* It is here, and the job that is to end waits for its push. */
static bool is_too_silent(const struct ps_role *p, int worker)
{
    const struct member *m = &p->members[worker];
    if (!p->stopping.is_on || worker == ps_chief(p) || !ps_chief_is_here(p)) return false;
    if (!member_is_here(m) || m->standing != COUNTED_ON || m->push.fate == PUSH_WAITS) return false;
    if (m->window.turn) return false; /* its push is here, and is not read yet */
    return p->patience.now_ms - p->stopping.since_ms >=
           ps_silence_limit_ms(&p->options.limits, m->life.has_pushed);
}

static void hang_up_on_silent(struct ps_role *p, int worker, uint64_t since_ms, const char *what,
                              struct outbox *out)
{
    outbox_log(out, "hangs up on worker/%d, which is silent for %llu s while %s", worker,
               (unsigned long long)(p->patience.now_ms - since_ms) / 1000, what);
    outbox_add_hang_up(out, (struct action_hang_up){worker});
    ps_forget_link(p, worker, out);
}

/* If it lives, it comes back, and brings what others have of its push already. */
static void end_without_silent(struct ps_role *p, int worker, struct outbox *out)
{
    hang_up_on_silent(p, worker, p->stopping.since_ms, "the job ends", out);
    evict(p, worker, out);
}

uint64_t ps_snapshot_limit_ms(const struct wait_limits *limits, bool has_pushed)
{
    enum { PARTS = 4, UNPROVEN_PARTS = 5 * PARTS };
    return limits->save_ms / (has_pushed ? PARTS : UNPROVEN_PARTS);
}

bool ps_role_snapshot_awaits(const struct role *role, int worker, uint64_t *ret_ms)
{
    const struct ps_role *p = (const struct ps_role *)role;
    *ret_ms = p->patience.now_ms - p->snapshot.since_ms;
    return worker != ps_chief(p) && ps_snapshot_awaits(p, worker);
}

/* All others are kept waiting. A step that takes so long is not lost: whoever computes it comes
 * back and brings it. */
static bool keeps_snapshot(const struct ps_role *p, int worker)
{
    const bool has_pushed = p->members[worker].life.has_pushed;
    const uint64_t limit_ms = ps_snapshot_limit_ms(&p->options.limits, has_pushed);
    uint64_t waited_ms;
    return ps_role_snapshot_awaits(&p->role, worker, &waited_ms) && limit_ms &&
           waited_ms >= limit_ms;
}

/* What ps/0 has of its push others may lack: the first time it is to come back and bring that, and
 * the checkpoint is given up. Of one that does not, the shards say what each has. */
static void snapshot_without(struct ps_role *p, int worker, struct outbox *out)
{
    struct member *m = &p->members[worker];
    if (p->options.task != 0 && m->life.kept_snapshot) set_evicted(p, m);
    m->life.kept_snapshot = true;
    hang_up_on_silent(p, worker, p->snapshot.since_ms, "a checkpoint waits", out);
}

static void end_without(struct ps_role *p, int worker, struct outbox *out)
{
    outbox_log(out, "nothing is left to do for worker/%d, which cannot take part", worker);
    set_evicted(p, &p->members[worker]);
    go_on_without(p, worker, out);
}

static void evict_absent(struct ps_role *p, struct outbox *out)
{
    for (int w = 0; w < p->options.workers && p->phase == SERVING; w++) {
        const struct member *m = &p->members[w];
        if (is_too_silent(p, w)) end_without_silent(p, w, out);
        if (keeps_snapshot(p, w)) snapshot_without(p, w, out);
        if (member_is_here(m) || m->standing != COUNTED_ON) continue;
        const uint64_t gone_ms = p->patience.now_ms - m->lost_ms;
        if (is_too_late(p, w))
            end_without(p, w, out);
        else if (gone_ms >= absence_limit_ms(p, m) || is_dispensable(p, m))
            evict(p, w, out);
    }
}

/* ---- a worker that leaves ---- */

static int others_here(const struct ps_role *p, int worker)
{
    int count = 0;
    for (int w = 0; w < p->options.workers; w++)
        count += w != worker && member_is_here(&p->members[w]) && !p->members[w].life.has_left;
    return count;
}

bool ps_role_cannot_begin_without(const struct role *role, int worker)
{
    const struct ps_role *p = (const struct ps_role *)role;
    return worker == ps_chief(p) && !p->was_set_up && !p->goes_on;
}

/* Enough are left for the job to go on, and somebody to lead it. Before it has begun the chief is
 * needed to begin it. */
static bool may_leave(const struct ps_role *p, int worker)
{
    const int least = p->config.min_workers > 1 ? p->config.min_workers : 1;
    const bool has_begun = p->was_set_up || p->goes_on, is_chief = worker == ps_chief(p);
    if (!has_begun) return !ps_role_cannot_begin_without(&p->role, worker);
    if (p->stopping.is_on || others_here(p, worker) < least) return false;
    return !is_chief || (p->options.limits.chief_ms && next_term(p) != p->lead.term);
}

/* What it pushed before stays counted; it pushes no more, and has no use for a ticket. */
static void sign_off(struct ps_role *p, int worker, bool is_between_steps, struct outbox *out)
{
    struct member *m = &p->members[worker];
    m->life.has_left = true;
    if (is_between_steps) ps_return_ticket(p, worker);
    if (p->config.is_sync) m->ticket.is_held = false;
    m->lead.can_lead = m->wants.values = m->makes_good = false;
    m->late_join = (struct message){0};
    ps_forget_ahead(p, worker, out);
    if (p->phase != SERVING) return; /* nobody is waited for yet, nor is this one then */
    outbox_log(out, "worker/%d leaves the job, which continues without it", worker);
    p->round.applying_count = 0;
    member_set_standing(m, EVICTED); /* nobody has had to wait for it: it does not count */
    ps_renew_wait(p, worker);
    go_on_without(p, worker, out);
}

/* The other ps have been told, or the link has ended: another one leads. */
void ps_hand_over(struct ps_role *p, int worker, struct outbox *out)
{
    const uint64_t next = next_term(p);
    const bool has_led = p->options.task == 0 && worker == ps_chief(p);
    if (!has_led || !p->members[worker].life.has_left || next == p->lead.term) return;
    outbox_log(out, "the chief, worker/%d, has left: worker/%d leads", worker,
               term_chief(next, p->options.workers));
    begin_term(p, next, worker, out);
}

void ps_leave(struct ps_role *p, int worker, const struct message *m, struct outbox *out)
{
    const bool is_first = !p->members[worker].life.has_left;
    const bool asks = m->leave.what == LEAVE_ASKED || m->leave.what == LEAVE_ABSENT;
    if (asks && p->options.task == 0) {
        const bool is_granted = !is_first || may_leave(p, worker);
        ps_send(p, worker, MESSAGE_LEAVE, out)->leave.what =
            is_granted ? LEAVE_GRANTED : LEAVE_REFUSED;
        if (is_granted && is_first) sign_off(p, worker, m->leave.what == LEAVE_ASKED, out);
    } else if (m->leave.what == LEAVE_GONE) {
        if (is_first) sign_off(p, worker, false, out);
        ps_hand_over(p, worker, out);
    }
}

/* Only the chief can end the job well. */
static void watch_chief(struct ps_role *p, struct outbox *out)
{
    const struct member *m = &p->members[ps_chief(p)];
    uint64_t limit_ms = p->options.limits.restart_ms;
    if (m->presence != AWAY || p->patience.now_ms - m->lost_ms < limit_ms) return;
    char text[ACTION_TEXT_MAX];
    snprintf(text, sizeof text, "the chief, worker/%d, is gone for %llu s (--restart_timeout)",
             ps_chief(p), (unsigned long long)limit_ms / 1000);
    ps_end(p, EXIT_LOST_PEER, text, NOBODY, out);
}

/* ---- somebody is here and waits for somebody else ---- */

void ps_renew_wait(struct ps_role *p, int worker)
{
    struct member *m = &p->members[worker];
    if (!m->has_renewed) patience_renew(&p->patience);
    m->has_renewed = true;
}

static bool is_done(const struct member *m)
{
    return m->push.fate == PUSH_WAITS || m->standing != COUNTED_ON;
}

/* Who has neither pushed nor finished while others have: "worker/1 (gone), worker/4". ret_here: how
 * many of them are here. */
static int name_missing(const struct ps_role *p, char *text, size_t size, int *ret_here)
{
    int missing = 0;
    size_t used = 0;
    text[0] = '\0';
    *ret_here = 0;
    for (int w = 0; w < p->options.workers; w++) {
        const struct member *m = &p->members[w];
        if (is_done(m)) continue;
        if (used + TASK_NAME_MAX < size)
            used += (size_t)snprintf(text + used, size - used, "%sworker/%d%s", used ? ", " : "", w,
                                     member_is_here(m) ? ""
                                     : cannot_come(m)  ? " (cannot take part)"
                                                       : " (gone)");
        missing++;
        *ret_here += member_is_here(m);
    }
    return missing;
}

static bool somebody_waits(const struct ps_role *p)
{
    for (int w = 0; w < p->options.workers; w++) {
        const struct member *m = &p->members[w];
        if (member_is_here(m) && (m->push.fate == PUSH_WAITS || m->standing == FINISHED))
            return true;
    }
    return false;
}

static void watch_wait(struct ps_role *p, const struct awaited *a, struct outbox *out)
{
    char text[ACTION_TEXT_MAX];
    if (patience_is_over(&p->patience, a, out, text)) ps_end(p, EXIT_TIMEOUT, text, NOBODY, out);
}

void ps_watch(struct ps_role *p, struct outbox *out)
{
    hear_late_terms(p, out);
    watch_lease(p, out);
    if (p->phase == READY || p->phase == SERVING) watch_chief(p, out);
    if (p->phase != SERVING) return;
    evict_absent(p, out);
    if (p->phase != SERVING) return;
    if (!somebody_waits(p)) {
        patience_renew(&p->patience);
        return;
    }
    char missing[TASKS_TEXT_MAX], what[ACTION_TEXT_MAX];
    int here;
    if (!name_missing(p, missing, sizeof missing, &here)) {
        snprintf(what, sizeof what, "worker/%d to save and to evaluate (--end_timeout)",
                 ps_chief(p));
        watch_wait(p, &(struct awaited){what, p->options.limits.end_ms, true}, out);
        return;
    }
    bool is_slow = here > 0; /* else all are gone, and are evicted before this limit */
    snprintf(what, sizeof what, "%s at step %llu (%s)", missing, (unsigned long long)p->step + 1,
             is_slow ? "--step_timeout" : "--start_timeout, and train.worker_timeout_secs");
    const uint64_t absent_ms = p->options.limits.start_ms + p->config.worker_timeout_ms;
    watch_wait(p, &(struct awaited){what, is_slow ? p->options.limits.step_ms : absent_ms, false},
               out);
}

/* ---- for people ---- */

static const char *member_text(const struct member *m)
{
    if (m->standing == EVICTED) return "gone, not waited for";
    if (!member_is_here(m)) return m->presence == AWAY ? "gone" : "not here yet";
    if (m->standing == FINISHED) return "has finished";
    if (m->push.fate == PUSH_WAITS) return "has pushed, waits for the others";
    if (m->wants.values) return "waits for values";
    return m->ticket.is_held ? "computes" : "is here";
}

void ps_state(const struct role *role, char ret[ACTION_TEXT_MAX])
{
    static const char *const phases[] = {[EMPTY] = "empty, waits for the chief",
                                         [READY] = "set up, waits for values",
                                         [SERVING] = "serving",
                                         [ENDED] = "ended"};
    const struct ps_role *p = (const struct ps_role *)role;
    snprintf(ret, ACTION_TEXT_MAX, "%s%s", phases[p->phase],
             p->snapshot.writing ? ", writes a checkpoint" : "");
}

void ps_report(const struct role *role, struct outbox *out)
{
    const struct ps_role *p = (const struct ps_role *)role;
    char state[ACTION_TEXT_MAX];
    ps_state(role, state);
    outbox_log(out,
               "%s, generation %016llx, step %llu of %llu, %llu applied, %llu stale, %llu not "
               "next",
               state, (unsigned long long)p->config.generation, (unsigned long long)p->step,
               (unsigned long long)p->config.last_step, (unsigned long long)p->counters.applied,
               (unsigned long long)p->counters.dropped_stale,
               (unsigned long long)p->counters.dropped_repeated);
    for (int w = 0; w < p->options.workers; w++)
        outbox_log(out, "worker/%d %s, %llu pushes", w, member_text(&p->members[w]),
                   (unsigned long long)p->members[w].ledger.received);
}
