/* worker_save.c - the chief has a checkpoint made (worker_role.h, "Saving"). */
#include <endian.h>
#include <stdio.h>
#include <string.h>

#include "core/cluster/role/verdict.h"
#include "core/cluster/role/worker_role_inside.h"

/* Each comes of a worker that was back when all had finished, or was lost during the snapshot. */
enum { REFUSALS_MAX = 20 };
/* Between two attempts at the last checkpoint */
enum { AGAIN_MS = 2000 };

/* It has something to save, variables or the global step, and no other ps does that for it. */
static bool saves(const struct worker_role *w, int ps)
{
    return worker_is_asked(w, ps) && (ps < w->options.homes || worker_stands_in(w, ps));
}

static int choose_savers(struct worker_role *w)
{
    int shards = 0;
    for (int ps = 0; ps < w->options.ps_count; ps++) {
        struct server *s = &w->servers[ps];
        if (!saves(w, ps)) continue;
        server_set_shard(s, SHARD_WANTED);
        shards++;
    }
    return shards;
}

int worker_role_shard(const struct role *role, int ps)
{
    int shard = 0;
    for (int i = 0; i < ps; i++) shard += saves((const struct worker_role *)role, i);
    return shard;
}

static bool can_save(const struct worker_role *w)
{
    if (!worker_is_chief(w) || w->phase < JOINING || w->phase > SAVING_LAST ||
        w->participation != IN_CURRENT || w->saving.awaits_folder)
        return false;
    for (int ps = 0; ps < w->options.ps_count; ps++)
        if (worker_is_asked(w, ps) && w->servers[ps].join.inquiry == NOT_ASKED) return false;
    return w->saving.phase == SAVE_IDLE;
}

static void send_save(struct worker_role *w, int ps, struct outbox *out)
{
    struct saving *s = &w->saving;
    struct message *m = worker_send(w, ps, MESSAGE_SAVE, out);
    m->save.shard = (uint32_t)worker_role_shard(&w->role, ps);
    m->save.tag = s->tag;
    m->save.step = s->step;
    m->save.since = s->since;
    m->body = s->numbers;
    m->body_bytes = ps == 0 ? sizeof *s->numbers : s->number_bytes;
}

static void begin(struct worker_role *w, uint64_t since, bool is_last, struct outbox *out)
{
    struct saving *s = &w->saving;
    s->is_last = is_last;
    s->since = since;
    s->held_for = HELD_FOR_NOTHING;
    s->is_refused = false;
    s->shards = choose_savers(w);
    worker_set_save(w, SAVE_FIRST);
    s->generation = w->generation;
    s->tag = w->options.incarnation + ++s->count;
    s->since_ms = w->patience.now_ms;
    s->numbers[0] = htole64((uint64_t)s->shards);
    send_save(w, 0, out);
}

bool worker_role_save(struct role *role, struct outbox *out)
{
    struct worker_role *w = (struct worker_role *)role;
    bool is_there = w->saving.has_saved && w->saving.saved_step == w->global_step;
    bool begins = can_save(w) && !is_there;
    if (begins) begin(w, 0, false, out);
    return begins || is_there;
}

static bool has_last(const struct worker_role *w)
{
    return w->saving.last.tag && w->saving.last.generation == w->generation;
}

/* The last save was of the last step: nothing changes after that, though the global step that this
 * worker has heard of may be an earlier one. */
static bool has_last_changes(const struct worker_role *w)
{
    const uint64_t last_step = w->servers[0].said.last_step;
    return last_step && w->saving.last.step >= last_step;
}

bool worker_role_save_changes(struct role *role, struct outbox *out)
{
    struct worker_role *w = (struct worker_role *)role;
    struct saving *s = &w->saving;
    if (!has_last(w)) return worker_role_save(role, out);
    if (s->last.step == w->global_step || has_last_changes(w)) return true;
    if (!can_save(w)) return false;
    begin(w, s->last.tag, false, out);
    return true;
}

uint64_t worker_role_end_step(const struct role *role)
{
    return ((const struct worker_role *)role)->saving.end_step;
}

bool worker_role_can_save(const struct role *role)
{
    return can_save((const struct worker_role *)role);
}

/* All begin again from it, also those that this generation is done without. */
bool worker_save_held(struct worker_role *w, enum held_for held_for, struct outbox *out)
{
    if (!can_save(w) || (worker_gone(w) && !worker_knows_all(w))) return false;
    begin(w, 0, false, out);
    w->saving.held_for = held_for;
    return true;
}

/* SERVE follows SAVE, so that no worker gets values before the snapshot. */
void worker_save_first(struct worker_role *w, struct outbox *out)
{
    if (w->options.saves && !w->saving.has_saved && w->saving.phase == SAVE_IDLE)
        begin(w, 0, false, out);
}

/* A ps that was lost is back, or a worker has brought what some ps lacked: the final values are
 * asked for once more. */
static void finish_again(struct worker_role *w, struct outbox *out)
{
    worker_begin_phase(w, FINISHING);
    for (int ps = 0; ps < w->options.ps_count; ps++) worker_send(w, ps, MESSAGE_FINISHED, out);
}

/* The values that all ps have said last, and no other. */
static bool has_saved_these(const struct worker_role *w)
{
    for (int ps = 0; ps < w->options.ps_count; ps++) {
        const struct server *s = &w->servers[ps];
        if (saves(w, ps) && s->values.version != s->values.saved_version) return false;
    }
    return w->saving.has_saved;
}

/* A worker that was gone has come back since, and brought something. */
void worker_save_again(struct worker_role *w, struct outbox *out)
{
    if (w->phase == EVALUATING) finish_again(w, out);
}

/* One that is being made comes to its end first, and the folder is open. */
void worker_save_last(struct worker_role *w, struct outbox *out)
{
    struct saving *s = &w->saving;
    worker_set_phase(w, SAVING_LAST);
    if (!w->stop.code) s->end_step = w->global_step;
    patience_renew(&w->patience);
    if (s->phase != SAVE_IDLE || s->awaits_folder) return;
    const bool is_there = has_saved_these(w);
    if (w->options.saves && !is_there && can_save(w))
        begin(w, 0, true, out);
    else if (is_there || !w->options.saves)
        worker_conclude(w, out);
    else
        finish_again(w, out);
}

static void evaluate(struct worker_role *w, struct outbox *out)
{
    worker_set_phase(w, EVALUATING);
    worker_role_hold_lease(&w->role, out);
    outbox_add_evaluate(out, (struct action_evaluate){w->global_step});
}

void worker_conclude(struct worker_role *w, struct outbox *out)
{
    if (w->stop.code) {
        worker_end(w, w->stop.code, w->stop.text, out);
        return;
    }
    evaluate(w, out);
}

static void forget_shards(struct worker_role *w)
{
    for (int ps = 0; ps < w->options.ps_count; ps++) server_set_shard(&w->servers[ps], NO_SHARD);
}

static void resume(struct worker_role *w, enum resume_code code, struct outbox *out)
{
    if (!worker_is_chief(w)) return; /* another one: the ps go on by themselves */
    for (int ps = 0; ps < w->options.ps_count; ps++)
        if (w->servers[ps].shard_phase != NO_SHARD && w->servers[ps].contact != GONE)
            worker_send(w, ps, MESSAGE_RESUME, out)->resume =
                (struct message_resume){.tag = w->saving.tag, .stays = code};
}

/* Storage that is away may be back, and a disk have room: for so long others are kept waiting. */
static bool waits_to_save_again(struct worker_role *w)
{
    struct saving *s = &w->saving;
    const struct wait_limits *limits = &w->options.limits;
    const bool is_hasty = w->stop.code && limits->stop_ms < limits->save_ms;
    const uint64_t limit_ms = is_hasty ? limits->stop_ms : limits->save_ms;
    const uint64_t pause_ms = limit_ms / 10 < AGAIN_MS ? limit_ms / 10 : AGAIN_MS;
    if (!s->failing_ms) s->failing_ms = s->since_ms ? s->since_ms : 1;
    s->again_ms = w->patience.now_ms + pause_ms;
    if (s->again_ms - s->failing_ms < limit_ms) return true;
    s->failing_ms = s->again_ms = 0;
    return false;
}

/* The last checkpoint failed. When there is no time to try again the job ends, with an error unless
 * it has one already; an earlier checkpoint that fails does not end it. */
static void conclude_without(struct worker_role *w, const char *why, struct outbox *out)
{
    struct saving *s = &w->saving;
    bool can_come_yet = s->is_refused && s->refusals++ < REFUSALS_MAX;
    for (int ps = 0; ps < w->options.ps_count; ps++)
        can_come_yet |= worker_is_asked(w, ps) && w->servers[ps].contact == GONE;
    if (can_come_yet) {
        finish_again(w, out);
        return;
    }
    if (waits_to_save_again(w)) return;
    if (w->stop.code) {
        worker_conclude(w, out);
        return;
    }
    w->stop.code = EXIT_TIMEOUT; /* the same command may succeed */
    snprintf(w->stop.text, sizeof w->stop.text,
             "the last checkpoint failed for %llu s (--save_timeout): %.200s",
             (unsigned long long)w->options.limits.save_ms / 1000, why);
    evaluate(w, out);
}

void worker_abandon(struct worker_role *w, const char *why, struct outbox *out)
{
    struct saving *s = &w->saving;
    if (s->phase == SAVE_IDLE) return;
    const bool is_begun = s->phase != SAVE_FIRST;
    const bool may_be_yet = s->phase == SAVE_PUBLISHING; /* which comes to its end */
    const enum held_for held_for = s->held_for;
    s->held_for = HELD_FOR_NOTHING;
    s->last.tag = 0; /* a ps may have made this snapshot, and note what changes since then */
    worker_set_save(w, SAVE_IDLE);
    resume(w, may_be_yet ? RESUME_GO : RESUME_DROP, out);
    const char *kept = outbox_text(out, why);
    const struct action_abandon abandon = {s->step, s->tag, s->since, is_begun, kept};
    outbox_add_abandon(out, abandon);
    forget_shards(w);
    if (held_for == HELD_TO_RESIZE) worker_resize_failed(w, kept, out);
    if (held_for == HELD_TO_CHANGE) worker_change_failed(w, kept, out);
    if (w->phase != SAVING_LAST) return;
    if (s->is_last)
        conclude_without(w, kept, out);
    else
        worker_save_last(w, out);
}

static void abandon_by(struct worker_role *w, int ps, const struct message *m, struct outbox *out)
{
    char text[ACTION_TEXT_MAX], why[ACTION_TEXT_MAX];
    message_text(m, text);
    snprintf(why, sizeof why, "ps/%d: %.200s", ps, text);
    worker_abandon(w, why, out);
}

static void abandon_unreadable(struct worker_role *w, int ps, struct outbox *out)
{
    char why[ACTION_TEXT_MAX];
    snprintf(why, sizeof why, "ps/%d made a snapshot that cannot be read", ps);
    worker_abandon(w, why, out);
}

/* All shards are so far, or further. */
static bool all_shards(const struct worker_role *w, enum shard_phase least)
{
    for (int ps = 0; ps < w->options.ps_count; ps++) {
        enum shard_phase phase = w->servers[ps].shard_phase;
        if (phase != NO_SHARD && phase < least) return false;
    }
    return true;
}

/* A checkpoint is complete when every ps that has a shard of it has saved that; no other one is
 * published. */
static void publish_when_done(struct worker_role *w, struct outbox *out)
{
    struct saving *s = &w->saving;
    if (!all_shards(w, SHARD_SAVED)) return;
    worker_set_save(w, SAVE_PUBLISHING);
    outbox_add_publish(
        out, (struct action_publish){s->step, s->tag, s->since, s->held_for == HELD_TO_CHANGE});
}

/* ps/0 has the global step: that is where the others are to snapshot. */
static void begin_rest(struct worker_role *w, const struct message *m, struct outbox *out)
{
    struct saving *s = &w->saving;
    uint32_t bytes = (uint32_t)(w->options.workers * LEDGER_NUMBERS) * sizeof *s->numbers;
    memcpy(s->numbers + 1, m->body, bytes);
    s->number_bytes = bytes + sizeof *s->numbers;
    s->step = m->snapshot.step;
    worker_set_save(w, SAVE_REST);
    outbox_add_begin(out, (struct action_begin){s->step, s->tag, s->shards});
    for (int ps = 1; ps < w->options.ps_count; ps++)
        if (w->servers[ps].shard_phase != NO_SHARD) send_save(w, ps, out);
}

/* What this ps has beside ps/0, whose ledger is the one that SAVE brings the others. */
static bool note_torn(struct worker_role *w, int ps, const struct message *m)
{
    struct saving *s = &w->saving;
    const int workers = w->options.workers;
    struct ledger *first = s->ledgers, *other = s->ledgers + workers;
    struct ledger *const has = ps == 0 ? first : other;
    if (!ledger_unpack(m, workers, has)) return false;
    if (has[w->options.task].received >= w->servers[ps].push.unheard)
        w->servers[ps].push.unheard = 0;
    if (ps == 0)
        memset(s->torn, 0, (size_t)workers * sizeof *s->torn);
    else
        torn_pushes_note(s->torn, workers, first, other);
    return true;
}

static bool is_of_save(const struct worker_role *w, int ps, uint64_t tag)
{
    return w->saving.phase != SAVE_IDLE && tag == w->saving.tag &&
           w->servers[ps].shard_phase != NO_SHARD;
}

void worker_snapshot(struct worker_role *w, int ps, const struct message *m, struct outbox *out)
{
    struct server *s = &w->servers[ps];
    if (!is_of_save(w, ps, m->snapshot.tag) || s->shard_phase != SHARD_WANTED) return;
    if (m->snapshot.exit_code) {
        w->saving.is_refused = true;
        abandon_by(w, ps, m, out);
        return;
    }
    if (!note_torn(w, ps, m)) {
        abandon_unreadable(w, ps, out);
        return;
    }
    if (ps == 0) begin_rest(w, m, out);
    server_set_shard(s, SHARD_COPIED);
    s->values.snapshot_version = m->snapshot.updates;
    if (!all_shards(w, SHARD_COPIED)) return;
    outbox_add_torn(out, (struct action_torn){w->saving.torn});
    worker_send(w, 0, MESSAGE_RESUME, out)->resume.stays =
        w->saving.held_for ? RESUME_STAY : RESUME_GO;
}

void worker_saved(struct worker_role *w, int ps, const struct message *m, struct outbox *out)
{
    struct server *s = &w->servers[ps];
    if (!is_of_save(w, ps, m->saved.tag)) return;
    if (m->saved.exit_code) {
        abandon_by(w, ps, m, out);
        return;
    }
    if (s->shard_phase != SHARD_COPIED) return;
    server_set_shard(s, SHARD_SAVED);
    publish_when_done(w, out);
}

static void note_saved(struct worker_role *w)
{
    struct saving *s = &w->saving;
    s->last.generation = s->generation;
    s->last.tag = s->tag;
    s->last.step = s->step;
    if (s->since) return;
    s->failing_ms = 0;
    s->has_saved = true;
    s->saved_step = s->step;
    for (int ps = 0; ps < w->options.ps_count; ps++)
        w->servers[ps].values.saved_version = w->servers[ps].values.snapshot_version;
}

void worker_published(struct worker_role *w, err result, const char *text, struct outbox *out)
{
    if (w->saving.phase != SAVE_PUBLISHING) return;
    w->saving.is_refused |= result == ERR_PEER; /* by another chief, whose place this one has */
    if (result) {
        worker_abandon(w, text, out);
        return;
    }
    worker_set_save(w, SAVE_IDLE);
    note_saved(w);
    const enum held_for held_for = w->saving.held_for;
    w->saving.held_for = HELD_FOR_NOTHING;
    if (held_for == HELD_TO_RESIZE && worker_resize_job(w, out)) return;
    const bool takes_in = held_for == HELD_TO_TAKE_IN && !worker_is_ending(w);
    w->lead.gone.take_part_again = takes_in;
    if (takes_in) worker_outlive(w, w->generation, out);
    if (takes_in || (held_for == HELD_TO_CHANGE && worker_change(w, out))) {
        forget_shards(w);
        return;
    }
    if (held_for) resume(w, RESUME_GO, out);
    forget_shards(w);
    worker_watch_resize(w, out); /* which is told why nothing comes of it */
    if (w->phase == SAVING_LAST)
        finish_again(w, out); /* has anything changed since the snapshot? */
}

/* --save_timeout: a checkpoint that takes longer is given up. A last one that failed is begun again
 * after a pause (waits_to_save_again). */
void worker_watch_save(struct worker_role *w, struct outbox *out)
{
    struct saving *s = &w->saving;
    uint64_t limit_ms = w->options.limits.save_ms;
    if (w->phase == SAVING_LAST && s->again_ms && w->patience.now_ms >= s->again_ms) {
        s->again_ms = 0;
        worker_save_last(w, out);
        return;
    }
    if (s->phase == SAVE_IDLE || w->patience.now_ms - s->since_ms < limit_ms) return;
    char why[ACTION_TEXT_MAX];
    snprintf(why, sizeof why, "it took longer than %llu s (--save_timeout)",
             (unsigned long long)limit_ms / 1000);
    worker_abandon(w, why, out);
}
