/* worker_replicas.c - a ps that may die, since another one holds the same (worker_role.h,
 * "Replicas"). */
#include "core/base/replicas.h"

#include "core/cluster/role/worker_role_inside.h"

/* The other one that holds the same; NOBODY: none does. */
static int other_of(const struct worker_role *w, int ps)
{
    return replicas_other(w->options.homes, w->options.ps_count, ps);
}

/* Which ps/0 says that it is of; 0: this chief begins another one. */
static uint64_t generation_of(const struct worker_role *w)
{
    const uint64_t said = w->servers[0].said.generation;
    const bool begins = w->phase == DESCRIBING || w->phase == STARTING;
    return begins && said != w->generation ? 0 : said;
}

/* What a generation was done without ends with it. */
uint64_t worker_gone(const struct worker_role *w)
{
    return w->lead.gone.generation == generation_of(w) ? w->lead.gone.ps : 0;
}

bool worker_is_without(const struct worker_role *w, int ps)
{
    return replicas_have(worker_gone(w), ps);
}

bool worker_stands_in(const struct worker_role *w, int ps)
{
    return ps >= w->options.homes && worker_is_without(w, other_of(w, ps));
}

static bool serves(const struct worker_role *w, int ps, uint64_t generation)
{
    const struct server *s = &w->servers[ps];
    return s->said.state == PS_SERVING && s->said.generation == generation;
}

/* It has nothing of what the others serve. */
static bool is_empty(const struct worker_role *w, int ps)
{
    const struct server *s = &w->servers[ps];
    return s->contact == KNOWN && s->said.generation != w->servers[0].said.generation;
}

/* As far as they have said: one whose link is lost may still do so when it is back. */
static bool is_held_by_other(const struct worker_role *w, int ps)
{
    const int other = other_of(w, ps);
    const uint64_t generation = generation_of(w);
    return other != NOBODY && generation && generation != w->outlived &&
           !worker_is_without(w, other) && serves(w, 0, generation) && serves(w, other, generation);
}

bool worker_is_spared(const struct worker_role *w, int ps)
{
    return worker_is_without(w, ps) || (is_empty(w, ps) && is_held_by_other(w, ps));
}

bool worker_role_is_without(const struct role *role, int ps)
{
    return worker_is_without((const struct worker_role *)role, ps);
}

/* ---- the chief finds that one is gone ---- */

/* A ps that came back empty is none of the generation any more. Before all values of that have come
 * it may only not have said yet that it serves, as the others have. */
static bool is_to_be_spared(const struct worker_role *w, int ps)
{
    const struct server *s = &w->servers[ps];
    const uint64_t limit_ms = w->options.limits.ps_ms, now_ms = w->patience.now_ms;
    const bool may_serve_yet = !worker_is_absent(w, ps) && w->participation != IN_CURRENT &&
                               now_ms - w->patience.since_ms < limit_ms;
    if (worker_is_without(w, ps) || !is_held_by_other(w, ps)) return false;
    if (w->servers[0].contact != KNOWN || w->servers[other_of(w, ps)].contact != KNOWN)
        return false;
    if (is_empty(w, ps)) return w->phase >= JOINING && !may_serve_yet;
    return s->contact == GONE && now_ms - s->lost_ms >= limit_ms;
}

/* By ps/0, which says it to all: so that none of them goes on with a ps that others have given up.
 */
static void propose(struct worker_role *w, uint64_t gone, struct outbox *out)
{
    const struct wait_limits *limits = &w->options.limits;
    struct message *m = worker_send(w, 0, MESSAGE_LEADS, out);
    m->generation = w->servers[0].said.generation;
    m->leads.claims = LEADS_CLAIMS;
    m->leads.term = w->lead.term;
    m->leads.gone = gone;
    m->leads.lease_ms = w->phase == EVALUATING ? limits->end_ms : limits->chief_ms;
}

/* All are here again: a checkpoint is made at which everybody is held, and they begin again from
 * it.
 */
static void take_in_again(struct worker_role *w, struct outbox *out)
{
    const bool is_time = w->patience.now_ms >= w->lead.gone.again_ms;
    if (!worker_gone(w) || !w->options.saves || !is_time || worker_is_ending(w)) return;
    if (w->changing.is_asked || w->resizing.is_asked) return;
    if (!worker_save_held(w, HELD_TO_TAKE_IN, out)) return;
    w->lead.gone.again_ms = w->patience.now_ms + w->options.limits.ps_ms; /* where this one fails */
}

void worker_watch_replicas(struct worker_role *w, struct outbox *out)
{
    uint64_t gone = 0;
    if (!w->lead.is_ours || w->options.homes == w->options.ps_count) return;
    for (int ps = 1; ps < w->options.ps_count; ps++)
        if (is_to_be_spared(w, ps)) gone |= UINT64_C(1) << ps;
    if (gone)
        propose(w, gone, out);
    else
        take_in_again(w, out);
}

/* ---- a generation begins without one that is gone ---- */

/* What is begun from is the checkpoint that all were held for. */
bool worker_begins_where_it_was(const struct worker_role *w)
{
    return w->outlived && (!w->served || w->served == w->outlived);
}

static bool may_be_absent(const struct worker_role *w, int ps)
{
    const struct server *s = &w->servers[ps];
    const int other = other_of(w, ps);
    const bool is_gone =
        s->contact == GONE && w->patience.now_ms - s->lost_ms >= w->options.limits.ps_ms;
    return worker_begins_where_it_was(w) && is_gone && other != NOBODY &&
           w->servers[other].contact == KNOWN;
}

bool worker_can_begin(const struct worker_role *w)
{
    for (int ps = 0; ps < w->options.ps_count; ps++)
        if (w->servers[ps].contact != KNOWN && !may_be_absent(w, ps)) return false;
    return true;
}

/* One that stays away long enough is no news. */
void worker_watch_beginning(struct worker_role *w, struct outbox *out)
{
    const bool waits = w->phase == HOLDING && !w->saving.awaits_folder && !worker_knows_all(w);
    if (w->lead.is_ours && waits && worker_can_begin(w)) worker_settle(w, out);
}

bool worker_is_absent(const struct worker_role *w, int ps)
{
    return replicas_have(w->lead.gone.absent, ps);
}

void worker_note_absent(struct worker_role *w)
{
    w->lead.gone.absent = 0;
    for (int ps = 1; ps < w->options.ps_count; ps++)
        if (may_be_absent(w, ps)) w->lead.gone.absent |= UINT64_C(1) << ps;
}

/* ---- all hear of it ---- */

static void say_news(const struct worker_role *w, int ps, struct outbox *out)
{
    outbox_log(out, "goes on without ps/%d, what it held is at ps/%d: no step is lost", ps,
               other_of(w, ps));
}

void worker_heard_gone(struct worker_role *w, int ps, const struct message *m, struct outbox *out)
{
    if (ps != 0 || !m->generation || w->options.homes == w->options.ps_count) return;
    if (m->generation != w->lead.gone.generation) w->lead.gone.ps = w->lead.gone.again_ms = 0;
    w->lead.gone.generation = m->generation;
    const uint64_t said = m->leads.gone | w->lead.gone.ps;
    const uint64_t all = replicas_spared(said, w->options.homes, w->options.ps_count);
    const uint64_t news = all & ~w->lead.gone.ps;
    if (said & ~all) outbox_breach(out, false, "ps/0 does without what no other ps holds");
    w->lead.gone.ps |= news;
    if (!news) return;
    for (int i = 0; i < w->options.ps_count; i++)
        if (replicas_have(news, i)) say_news(w, i, out);
    if (m->generation == w->generation) worker_go_on_without(w, news, out);
    worker_settle(w, out);
}
