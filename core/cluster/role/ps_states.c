/* ps_states.c - the states of a ps role: allowed transitions, invariants, and texts for people. */
#include <stdio.h>

#include "core/cluster/role/ps_role_inside.h"

/* ---- which may follow which ---- */

void ps_set_phase(struct ps_role *p, enum ps_phase phase)
{
    static const uint16_t follows[] = {
        [EMPTY] = MAY(READY) | MAY(ENDED),
        [READY] = MAY(SERVING) | MAY(EMPTY) | MAY(ENDED),
        [SERVING] = MAY(EMPTY) | MAY(ENDED),
        [ENDED] = 0,
    };
    p->phase = state_after(follows, p->phase, phase);
}

void ps_set_snapshot(struct ps_role *p, enum snapshot_phase phase)
{
    static const uint16_t follows[] = {
        [SNAPSHOT_NONE] = MAY(SNAPSHOT_COMING),
        [SNAPSHOT_COMING] = MAY(SNAPSHOT_MADE) | MAY(SNAPSHOT_NONE),
        [SNAPSHOT_MADE] = MAY(SNAPSHOT_NONE),
    };
    p->snapshot.phase = state_after(follows, p->snapshot.phase, phase);
}

void member_set_presence(struct member *m, enum presence presence)
{
    static const uint16_t follows[] = {
        [NOT_YET] = MAY(HERE),
        [AWAY] = MAY(HERE),
        [HERE] = MAY(HAS_WINDOWS) | MAY(AWAY),
        [HAS_WINDOWS] = MAY(AWAY),
    };
    m->presence = state_after(follows, m->presence, presence);
}

void member_set_standing(struct member *m, enum standing standing)
{
    static const uint16_t follows[] = {
        [COUNTED_ON] = MAY(FINISHED) | MAY(EVICTED),
        [FINISHED] = MAY(COUNTED_ON) | MAY(EVICTED),
        [EVICTED] = MAY(COUNTED_ON) | MAY(FINISHED),
    };
    m->standing = state_after(follows, m->standing, standing);
}

void member_set_push(struct member *m, enum push_fate push)
{
    static const uint16_t follows[] = {
        [PUSH_TAKEN] = MAY(PUSH_WAITS) | MAY(PUSH_DROPPED),
        [PUSH_WAITS] = MAY(PUSH_TAKEN),
        [PUSH_DROPPED] = MAY(PUSH_TAKEN),
    };
    m->push.fate = state_after(follows, m->push.fate, push);
}

bool member_is_here(const struct member *m)
{
    return m->presence == HERE || m->presence == HAS_WINDOWS;
}

/* ---- which go together ---- */

static const char *check_push(const struct ps_role *p, const struct member *m)
{
    if (m->ledger.taken > m->ledger.received) return "a push was taken that did not come";
    if (m->ticket.is_told && !ps_config_drops(&p->config))
        return "a worker was told what becomes of its gradient early";
    if (m->ahead.sound & ~m->ahead.parts) return "a part is sound that did not come";
    if (m->push.is_in_advance && !p->round.advanced) return "a gradient is in no advance";
    if (m->push.is_folded && (m->push.fate != PUSH_WAITS || m->push.step != p->step))
        return "a gradient is in a sum of no round of its own";
    if (m->push.fate != PUSH_WAITS) return NULL;
    if (m->ahead.parts) return "parts come ahead of a push that waits";
    if (!p->config.is_sync) return "a push waits for a round of asynchronous training";
    if (m->push.step < p->step) return "a push waits for a round that is over";
    if (m->ledger.taken != m->ledger.received) return "a push waits that was not the last";
    return m->push.gradients ? NULL : "a push without gradients waits";
}

static const char *check_windows(const struct ps_role *p)
{
    int used = 0;
    for (int w = 0; w < p->options.workers; w++) {
        const struct member *m = &p->members[w];
        const bool has_use = m->ahead.parts || (m->push.fate == PUSH_WAITS && !m->push.is_folded);
        used += m->window.use != WINDOW_NONE;
        if (m->window.use == WINDOW_HELD && !has_use) return "a window is held for nothing";
        if (m->window.turn && !member_is_here(m)) return "who is gone waits for a window";
    }
    if (used != p->pool.used) return "windows are counted wrong";
    return used > p->pool.count ? "more windows are used than there are" : NULL;
}

static const char *check_member(const struct ps_role *p, const struct member *m)
{
    bool gives_tickets = p->config.is_sync || p->options.task == 0;
    bool is_idle = m->standing == COUNTED_ON && m->push.fate == PUSH_TAKEN && !m->wants.values;
    bool may_be_new = m->presence == AWAY || m->presence == HERE;
    if (m->wants_fresh && !may_be_new) return "fresh windows are wanted by nobody new";
    const bool may_hold =
        m->standing == COUNTED_ON || (m->standing == EVICTED && !p->config.is_sync);
    if (m->ticket.is_held && !may_hold) return "a ticket is held by who has finished";
    if (m->ticket.is_held && !gives_tickets) return "a ticket of a ps that gives none";
    if (m->late_join.type && p->snapshot.phase != SNAPSHOT_MADE)
        return "a late JOIN waits for no snapshot";
    if (p->phase != SERVING && (!is_idle || m->ticket.is_held))
        return "a worker is at work too early";
    return check_push(p, m);
}

static const char *check_cut(const struct ps_role *p)
{
    const struct snapshot *c = &p->snapshot;
    bool is_first = p->options.task == 0;
    if (c->phase == SNAPSHOT_COMING && p->phase == EMPTY) return "a snapshot of nothing comes";
    if (c->phase == SNAPSHOT_MADE && (!is_first || p->phase != SERVING))
        return "a snapshot is kept open";
    if (c->phase == SNAPSHOT_MADE && c->writing && c->writing != c->tag)
        return "another shard is written than that of the snapshot";
    if (c->is_holding && (!is_first || c->phase == SNAPSHOT_NONE))
        return "held, and for no snapshot";
    return c->written && !is_first ? "another ps than ps/0 waits for RESUME" : NULL;
}

/* ps/0, asynchronous: every ticket is held by a worker that will push for it, or is returned. */
static const char *check_tickets(const struct ps_role *p)
{
    uint64_t held = 0;
    if (p->config.is_sync || p->options.task != 0 || p->phase != SERVING) return NULL;
    for (int w = 0; w < p->options.workers; w++) held += p->members[w].ticket.is_held;
    for (int w = 0; w < p->data.queue.workers; w++)
        if (p->data.queue.plans[w].is_committed != p->members[w].ticket.is_held)
            return "a ticket is for no batch, or a batch has none";
    if (p->data.queue.workers && batch_queue_check(&p->data.queue))
        return batch_queue_check(&p->data.queue);
    return p->tickets == p->step + held ? NULL : "tickets are not the steps and those held";
}

const char *ps_role_check(const struct role *role)
{
    const struct ps_role *p = (const struct ps_role *)role;
    const char *wrong = NULL;
    if (p->phase == ENDED) return NULL; /* it stays as it was */
    if (p->phase != EMPTY && (!p->was_set_up || !p->config.generation)) return "set up by nobody";
    if (p->phase == EMPTY && (p->step || p->round.gradients)) return "empty, and has steps";
    if (p->stopping.is_on && p->phase != SERVING) return "stops before it serves";
    if (p->round.advanced && (p->phase != SERVING || !(p->round.overlap & OVERLAP_ADVANCE)))
        return "advances where it may not";
    for (int w = 0; w < p->options.workers && !wrong; w++) wrong = check_member(p, &p->members[w]);
    if (!wrong) wrong = check_cut(p);
    if (!wrong) wrong = check_windows(p);
    return wrong ? wrong : check_tickets(p);
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
