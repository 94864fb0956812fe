/* ps_snapshot.c - one consistent state of all ps, while training continues (ps_role.h,
 * "Snapshots").
 *
 * SAVE: the body is the
 * number of shards and, but for ps/0, the ledger that ps/0 had. SNAPSHOT: code 0 and the ledger, or
 * why there is none.
 */
#include <stdio.h>
#include <string.h>

#include "core/cluster/role/ps_role_inside.h"
#include "core/cluster/role/verdict.h"

/* A gradient for an older round, which ended without it, will be dropped; and who wants values of a
 * later step brings nothing for this one. */
static bool computes(const struct ps_role *p, const struct member *m)
{
    const bool is_past = m->wants.values && m->wants.step > p->step;
    return m->ticket.is_held && member_is_here(m) &&
           (!p->config.is_sync || (m->ticket.step == p->step && !is_past));
}

/* Somebody has pushed for the current step, or computes it: then whoever comes is needed for the
 * round to end. Whoever had no batch for it is needed once there is a push: the others may have
 * none either, each as long as it has a ticket. */
static bool is_needed(const struct ps_role *p, int worker)
{
    for (int w = 0; w < p->options.workers; w++) {
        const struct member *m = &p->members[w];
        if (computes(p, m) && !p->members[worker].ticket.has_returned) return true;
        if (ps_is_in_round(p, w)) return true;
    }
    return false;
}

bool ps_is_holding(const struct ps_role *p, int worker)
{
    if (p->options.task != 0 || p->snapshot.phase == SNAPSHOT_NONE) return false;
    if (p->members[worker].makes_good && !p->snapshot.is_kept) return false;
    return p->snapshot.phase == SNAPSHOT_MADE || !p->config.is_sync || !is_needed(p, worker);
}

void ps_note_held(struct ps_role *p, struct outbox *out)
{
    if (p->snapshot.is_holding) return;
    p->snapshot.is_holding = true;
    outbox_add_held(out, (struct action_held){.begins = true});
}

static void end_holding(struct ps_role *p, struct outbox *out)
{
    ps_set_snapshot(p, SNAPSHOT_NONE);
    if (!p->snapshot.is_holding) return;
    p->snapshot.is_holding = false;
    outbox_add_held(out, (struct action_held){.begins = false});
}

void ps_snapshot_reset(struct ps_role *p, struct outbox *out)
{
    end_holding(p, out);
}

void ps_refuse_save(struct ps_role *p, int worker, uint64_t tag, const char *why,
                    struct outbox *out)
{
    struct message *m = ps_send(p, worker, MESSAGE_SNAPSHOT, out);
    m->snapshot = (struct message_snapshot){EXIT_FAILED, tag, p->step, p->counters.applied};
    message_say(m, why, out);
}

static bool read_save(struct ps_role *p, const struct message *m)
{
    uint64_t shards;
    if (!m->body || m->body_bytes < sizeof shards) return false;
    memcpy(&shards, m->body, sizeof shards);
    if (shards == 0 || m->save.shard >= shards || shards > INT32_MAX) return false;
    struct message rest = *m;
    rest.body = (const char *)m->body + sizeof shards;
    rest.body_bytes -= sizeof shards;
    bool is_read = p->options.task == 0
                       ? rest.body_bytes == 0
                       : ledger_unpack(&rest, p->options.workers, p->snapshot.target);
    p->snapshot.shard = (int)m->save.shard;
    p->snapshot.shards = (int)shards;
    return is_read;
}

void ps_save(struct ps_role *p, const struct message *m, struct outbox *out)
{
    bool is_before = p->phase == READY; /* the first: made before anybody gets values */
    if (p->phase != SERVING && !is_before) return;
    bool is_writing =
        p->snapshot.writing && !ps_all_finished(p); /* else nobody waits for the disk */
    if (is_writing || p->snapshot.phase != SNAPSHOT_NONE) {
        ps_refuse_save(p, ps_chief(p), m->save.tag, "is still writing the last checkpoint", out);
        return;
    }
    if (p->counters.applied && ps_turns_are_left(p)) { /* the first is made before anything */
        ps_refuse_save(p, ps_chief(p), m->save.tag,
                       "a record is replayed, which says what comes next", out);
        return;
    }
    if (!read_save(p, m)) {
        ps_refuse_save(p, ps_chief(p), m->save.tag, "cannot read what is to be saved", out);
        return;
    }
    ps_set_snapshot(p, SNAPSHOT_COMING);
    p->snapshot.since_ms = p->patience.now_ms;
    p->snapshot.is_kept = false;
    p->snapshot.tag = m->save.tag;
    p->snapshot.step = m->save.step;
    p->snapshot.since = m->save.since;
    ps_apply_ready_rounds(p, out);
}

/* ps/0: nobody computes, and nothing waits for its round. */
static bool is_quiet(const struct ps_role *p)
{
    for (int w = 0; w < p->options.workers; w++) {
        const struct member *m = &p->members[w];
        if (computes(p, m) || m->push.fate == PUSH_WAITS) return false;
    }
    return true;
}

enum worker_arrival { ARRIVED, COMING, MISSED };

/* Has everything of this worker come that ps/0 took, and nothing else? Of one that is not waited
 * for the ledgers of the shards say what each has, and it makes that good when it is back. */
static enum worker_arrival arrival(const struct ps_role *p, int worker)
{
    const struct member *m = &p->members[worker];
    const struct ledger *wanted = &p->snapshot.target[worker];
    /* what ps/0 has received and not taken it had no ticket for: the worker had been evicted */
    bool is_same = m->ledger.taken == wanted->taken || m->ledger.received == wanted->received;
    bool is_over = ps_all_finished(p) && m->ledger.taken > wanted->taken;
    if (is_same || m->standing == EVICTED || is_over)
        return ARRIVED; /* nothing will make them the same */
    return m->ledger.taken < wanted->taken && member_is_here(m) ? COMING : MISSED;
}

bool ps_snapshot_awaits(const struct ps_role *p, int worker)
{
    if (p->snapshot.phase != SNAPSHOT_COMING || p->snapshot.writing || p->config.is_sync)
        return false;
    return p->options.task == 0 ? computes(p, &p->members[worker]) : arrival(p, worker) == COMING;
}

static enum worker_arrival all_arrived(const struct ps_role *p)
{
    enum worker_arrival all = ARRIVED;
    if (p->config.is_sync)
        return p->step == p->snapshot.step ? ARRIVED : p->step < p->snapshot.step ? COMING : MISSED;
    for (int w = 0; w < p->options.workers && all != MISSED; w++) {
        enum worker_arrival one = arrival(p, w);
        if (one != ARRIVED) all = one;
    }
    return all;
}

/* What ps/0 has dropped does not come here any more; what it has taken does. */
static void note_dropped(struct ledger *here, const struct ledger *first)
{
    const bool lacks = here->received < first->taken;
    const uint64_t come = lacks ? first->taken - 1 : first->received;
    if (here->received < come) here->received = come;
}

/* A push that waits for a later round is not in the values yet: it must come again after a restore.
 */
static void note_ledger(struct ps_role *p)
{
    for (int w = 0; w < p->options.workers; w++) {
        const struct member *m = &p->members[w];
        p->snapshot.as_of[w] = m->push.fate == PUSH_WAITS ? m->push.before : m->ledger;
        if (p->options.task != 0 && ps_config_drops(&p->config))
            note_dropped(&p->snapshot.as_of[w], &p->snapshot.target[w]);
    }
    p->snapshot.covers = p->data.coverage;
    ps_note_queue(p);
}

static void make_snapshot(struct ps_role *p, struct outbox *out)
{
    bool is_first = p->options.task == 0;
    note_ledger(p);
    ps_set_snapshot(p, is_first ? SNAPSHOT_MADE : SNAPSHOT_NONE);
    p->snapshot.writing = p->snapshot.tag;
    const uint64_t step = is_first ? p->step : p->snapshot.step; /* names the checkpoint */
    ps_take_back(p, out);
    const struct action_snapshot snapshot = {step, p->snapshot.tag, p->snapshot.since,
                                             p->snapshot.shard, p->snapshot.shards};
    outbox_add_snapshot(out, snapshot);
    struct message *m = ps_tell_chief(p, MESSAGE_SNAPSHOT, out);
    m->snapshot = (struct message_snapshot){0, p->snapshot.tag, p->step, p->counters.applied};
    ledger_pack(p->snapshot.as_of, p->options.workers, p->snapshot.numbers);
    m->body = p->snapshot.numbers;
    m->body_bytes = (uint32_t)(p->options.workers * LEDGER_NUMBERS) * sizeof *p->snapshot.numbers;
    if (is_first) ps_tell_coverage_at_snapshot(p, out);
}

void ps_try_snapshot(struct ps_role *p, struct outbox *out)
{
    if (p->snapshot.phase != SNAPSHOT_COMING || p->snapshot.writing) return;
    if (p->options.task == 0) {
        if (is_quiet(p)) make_snapshot(p, out);
        return;
    }
    enum worker_arrival all = all_arrived(p);
    if (all == ARRIVED) make_snapshot(p, out);
    if (all != MISSED) return;
    ps_refuse_save(p, ps_chief(p), p->snapshot.tag, "a worker was lost at the snapshot", out);
    ps_set_snapshot(p, SNAPSHOT_NONE);
}

static void late_joins(struct ps_role *p, struct outbox *out)
{
    for (int w = 0; w < p->options.workers; w++) {
        struct member *m = &p->members[w];
        const struct message join = m->late_join;
        m->late_join = (struct message){0};
        if (join.type && member_is_here(m)) ps_join(p, w, &join, out);
    }
}

static void tell_saved(struct ps_role *p, struct outbox *out)
{
    uint64_t tag = p->snapshot.written;
    p->snapshot.written = 0;
    if (!tag || !ps_chief_is_here(p)) return;
    struct message *m = ps_tell_chief(p, MESSAGE_SAVED, out);
    m->saved.tag = tag;
    m->saved.exit_code = p->snapshot.written_code;
    message_say(m, p->snapshot.written_text, out);
}

void ps_resume(struct ps_role *p, struct outbox *out)
{
    if (p->snapshot.phase == SNAPSHOT_NONE) return;
    end_holding(p, out);
    tell_saved(p, out);
    late_joins(p, out);
    ps_apply_ready_rounds(p, out);
    ps_answer_waiting(p, out);
}

/* Whoever is lost from here on has what the checkpoint has, and all shards are of one state. */
void ps_stay(struct ps_role *p, struct outbox *out)
{
    if (p->snapshot.phase != SNAPSHOT_MADE) return;
    p->snapshot.is_kept = true;
    tell_saved(p, out);
}

/* ps/0 says so when RESUME has come: it continues by itself where it has lost the chief, which must
 * not take what the others snapshot after that for a part of the same checkpoint. */
void ps_snapshot_written(struct ps_role *p, err result, const char *text, struct outbox *out)
{
    p->snapshot.written = p->snapshot.writing;
    p->snapshot.written_code = result ? (uint32_t)exit_code_of(result) : 0;
    snprintf(p->snapshot.written_text, sizeof p->snapshot.written_text, "%s", result ? text : "");
    p->snapshot.writing = 0;
    if (p->snapshot.phase != SNAPSHOT_MADE || p->snapshot.is_kept || result) tell_saved(p, out);
    ps_try_snapshot(p, out);
}
