/* ps_ahead.c - updates by parts, before a round is complete.
 *
 * A push may come in parts (PART), in any order, the first of the block with the PUSH itself. If
 * every round takes every worker, a part that has come from all of them is summed, its values are
 * updated at once, and sent (AHEAD): both directions of a link are busy at the same time. Such
 * values do not count before the round's VALUES; they are undone as soon as somebody needs the old
 * ones, or the round is of other workers. Then the remaining parts are summed again, so the result
 * does not depend on any of this.
 *
 * A worker may see advanced values in the memory that it computes from, but only of parts that it
 * has pushed, whose old values it needs no more.
 */
#include "core/cluster/role/ps_role_inside.h"

struct message *ps_send_ahead(struct ps_role *p, int worker, struct outbox *out)
{
    struct message *m = ps_send(p, worker, MESSAGE_AHEAD, out);
    m->ahead.step = p->step;
    return m;
}

static void give_no_more(struct ps_role *p, int worker, struct outbox *out)
{
    struct member *m = &p->members[worker];
    if (m->given && m->presence == HAS_WINDOWS) ps_send_ahead(p, worker, out);
    m->given = 0;
}

void ps_take_back(struct ps_role *p, struct outbox *out)
{
    if (!p->round.advanced) return;
    outbox_add_take_back(out, (struct action_take_back){p->round.advanced});
    p->round.advanced = 0;
    for (int w = 0; w < p->options.workers; w++) {
        p->members[w].push.is_in_advance = false;
        give_no_more(p, w, out);
    }
}

void ps_forget_ahead(struct ps_role *p, int worker, struct outbox *out)
{
    struct member *m = &p->members[worker];
    m->ahead = (struct ahead){0};
    give_no_more(p, worker, out);
    if (m->push.is_in_advance && m->push.fate != PUSH_WAITS) ps_take_back(p, out);
}

/* ---- whose round is it ---- */

/* The workers of the round, and the parts that have come from all of them. */
struct party {
    int *workers;
    int count;
    uint32_t gradients;
    uint64_t parts;
};

static void invite(struct ps_role *p, int worker, struct party *party)
{
    const struct member *m = &p->members[worker];
    const bool is_whole = m->push.fate == PUSH_WAITS, is_of_this = m->ahead.step == p->step;
    if (ps_is_past_round(p, worker) && !ps_is_in_round(p, worker)) return;
    party->gradients += is_whole ? m->push.gradients : m->ahead.gradients;
    party->workers[party->count++] = worker;
    if (!is_whole) party->parts &= is_of_this ? m->ahead.sound : 0;
}

static bool is_same_party(const struct ps_role *p, const struct party *party)
{
    int members = 0;
    for (int w = 0; w < p->options.workers; w++) members += p->members[w].push.is_in_advance;
    for (int i = 0; i < party->count; i++)
        if (!p->members[party->workers[i]].push.is_in_advance) return false;
    return members == party->count && party->gradients == p->round.advanced_gradients;
}

void ps_keep_advance(struct ps_role *p, int *workers, int count, struct outbox *out)
{
    const struct party party = {workers, count, p->round.gradients, 0};
    if (!is_same_party(p, &party)) ps_take_back(p, out);
    p->round.advanced = 0; /* the next APPLY continues from there */
    for (int w = 0; w < p->options.workers; w++) p->members[w].push.is_in_advance = false;
}

/* ---- onward ---- */

static void give_ahead(struct ps_role *p, int worker, uint64_t parts, struct outbox *out)
{
    struct member *m = &p->members[worker];
    if (m->presence != HAS_WINDOWS || m->given != p->round.advanced || !ps_gives_values(p, worker))
        return;
    m->given |= parts;
    ps_send_parts(p, worker, parts, out);
}

static void advance(struct ps_role *p, const struct party *party, struct outbox *out)
{
    uint64_t left = party->parts;
    while (left) {
        const struct range part = parts_take_last(&p->block, &left);
        outbox_add_advance(out, (struct action_advance){party->workers, party->count,
                                                        party->gradients, p->step, part});
    }
    for (int i = 0; i < party->count; i++) {
        p->members[party->workers[i]].push.is_in_advance = true;
        give_ahead(p, party->workers[i], party->parts, out);
    }
    p->round.advanced |= party->parts;
    p->round.advanced_gradients = party->gradients;
}

/* An evicted worker may still compute from the values that it was given, and return before the
 * round is over. */
static bool is_watched_by_evicted(const struct ps_role *p)
{
    for (int w = 0; w < p->options.workers; w++) {
        const struct member *m = &p->members[w];
        if (m->standing == EVICTED && m->ticket.step == p->step) return true;
    }
    return false;
}

void ps_advance(struct ps_role *p, struct outbox *out)
{
    struct party party = {.workers = p->round.applying + p->round.applying_count,
                          .parts = UINT64_MAX};
    if (!(p->round.overlap & OVERLAP_ADVANCE)) return;
    if (is_watched_by_evicted(p)) {
        ps_take_back(p, out);
        return;
    }
    for (int w = 0; w < p->options.workers; w++) invite(p, w, &party);
    if (!is_same_party(p, &party)) ps_take_back(p, out);
    party.parts &= ~p->round.advanced;
    if (party.parts & FIRST_PART || !party.parts) return; /* the first part comes with PUSH */
    p->round.applying_count += party.count;
    advance(p, &party, out);
}

void ps_plan_overlap(struct ps_role *p)
{
    p->round.facts.takes_all = p->config.takes_all;
    p->round.facts.lends = p->pool.count;
    p->round.overlap = overlap_of_rounds(&p->round.facts);
}

void ps_role_plan_overlap(struct role *role, const struct overlap_rounds *facts, struct outbox *out)
{
    struct ps_role *p = (struct ps_role *)role;
    p->round.facts = *facts;
    ps_plan_overlap(p);
    if (!(p->round.overlap & OVERLAP_ADVANCE)) ps_take_back(p, out);
}

unsigned ps_role_overlap(const struct role *role)
{
    return ((const struct ps_role *)role)->round.overlap;
}

/* A part that comes again is of a gradient that was computed again. */
void ps_part(struct ps_role *p, int worker, const struct message *m, struct outbox *out)
{
    struct member *member = &p->members[worker];
    struct ahead *a = &member->ahead;
    if (p->phase != SERVING || member->push.fate == PUSH_WAITS) return;
    const uint64_t parts = parts_in(&p->moved, m->range);
    if (m->part.push <= member->ledger.received || !parts || parts & FIRST_PART) return;
    if (m->part.push != a->push || parts & a->parts) ps_forget_ahead(p, worker, out);
    a->push = m->part.push;
    a->step = m->part.step;
    a->parts |= parts;
    if (m->part.gradients) a->gradients = m->part.gradients; /* 0: of parts that are not sound */
    if (m->part.gradients) a->sound |= parts;
    ps_advance(p, out);
}

uint64_t ps_role_ahead(const struct role *role, int worker, uint64_t push)
{
    const struct ahead *a = &((const struct ps_role *)role)->members[worker].ahead;
    return a->push == push ? a->parts : 0;
}
