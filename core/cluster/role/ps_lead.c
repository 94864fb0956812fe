/* ps_lead.c - who leads: ps/0 decides by leases and terms, and the other ps hear of it. */
#include "core/base/replicas.h"
#include "core/cluster/role/ps_role_inside.h"

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

/* Only ps/0 gives out terms, and other ps hear of them from workers, of which one may lie. The
 * chief before then gets a later term from ps/0 (worker_recover.c, outbid), and the worker that
 * named the false one is not believed at once the next time. */
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

/* ps/0 came back empty and forgot a term that it had given out; another worker leads by now, and
 * the chief of the forgotten term comes back. Two would lead, and each have the other's checkpoints
 * refused. The one that leads here gets a term that is later than both, unless workers would take
 * that for a lie. Once is enough: whoever names such a term again and again waits longer each time,
 * up to 8 times --chief_timeout. */
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

bool ps_has_other_to_lead(const struct ps_role *p)
{
    return next_term(p) != p->lead.term;
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

void ps_watch_lead(struct ps_role *p, struct outbox *out)
{
    hear_late_terms(p, out);
    watch_lease(p, out);
}
