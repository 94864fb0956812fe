/* ps_wait.c - which workers are waited for, how long, and what happens after that. */
#include <stdio.h>

#include "core/cluster/role/ps_role_inside.h"
#include "core/cluster/role/verdict.h"

/* ---- workers that are gone ---- */

static int counted_on(const struct ps_role *p)
{
    int count = 0;
    for (int w = 0; w < p->options.workers; w++) count += p->members[w].standing != EVICTED;
    return count;
}

/* Whether the worker will not come again; false: it may, however late. */
static bool cannot_come(const struct member *m)
{
    return !member_is_here(m) && m->life.why_absent[0];
}

/* For a ps that returns to a running job, a worker that is not connected is lost, not late. */
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
    if (cannot_come(m) && lost_ms < limit) limit = lost_ms; /* it has connected, and left */
    uint64_t stop = p->options.limits.stop_ms / PS_STOP_PARTS;
    bool is_hurried = p->stopping.is_on && ps_chief_is_here(p);
    return is_hurried && stop < limit ? stop : limit;
}

/* Rounds, snapshots and the end of the job continue without the worker. */
static void go_on_without(struct ps_role *p, int worker, struct outbox *out)
{
    ps_leave_batches(p, worker);
    ps_apply_ready_rounds(p, out);
    if (ps_all_finished(p)) ps_finished(p, ps_chief(p), 0, out);
    ps_try_snapshot(p, out);
}

/* Each worker has rows that no other reads. */
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

/* All its rows are needed, even if the others have finished theirs. */
static bool is_missed(const struct ps_role *p, int worker)
{
    return p->config.needs_everybody && !p->stopping.is_on && !has_brought_share(p, worker);
}

/* It is too late for anything that it could push. A worker that is only slow to start is waited
 * for: it would find no ps, and wait for long. */
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

/* The others can do its part. */
static bool is_dispensable(const struct ps_role *p, const struct member *m)
{
    const int least = p->config.min_workers > 1 ? p->config.min_workers : 1;
    return cannot_come(m) && !has_share(p) && counted_on(p) > least;
}

/* Training on only a part of the rows is not what the job is for. */
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

/* It is connected, and the job, which is to end, waits for its push. */
static bool is_too_silent(const struct ps_role *p, int worker)
{
    const struct member *m = &p->members[worker];
    if (!p->stopping.is_on || worker == ps_chief(p) || !ps_chief_is_here(p)) return false;
    if (!member_is_here(m) || m->standing != COUNTED_ON || m->push.fate == PUSH_WAITS) return false;
    if (m->window.turn) return false; /* its push has come, and waits for a window */
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

/* Hangs up. If it is alive it returns, and pushes again what other ps already have. */
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

/* All others wait for it. A step that takes so long is not lost: the worker returns and pushes it.
 */
static bool keeps_snapshot(const struct ps_role *p, int worker)
{
    const bool has_pushed = p->members[worker].life.has_pushed;
    const uint64_t limit_ms = ps_snapshot_limit_ms(&p->options.limits, has_pushed);
    uint64_t waited_ms;
    return ps_role_snapshot_awaits(&p->role, worker, &waited_ms) && limit_ms &&
           waited_ms >= limit_ms;
}

/* Other ps may lack a push of its that ps/0 has: the first time it is to return and push that, and
 * the checkpoint is given up. If it does not, the shards say which pushes each has. */
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

bool ps_role_is_passed_by(const struct role *role)
{
    const struct ps_role *p = (const struct ps_role *)role;
    return !p->was_set_up && p->goes_on;
}

bool ps_role_cannot_begin_without(const struct role *role, int worker)
{
    const struct ps_role *p = (const struct ps_role *)role;
    return worker == ps_chief(p) && !p->was_set_up && !p->goes_on;
}

/* Enough workers are left to continue, and one to lead. Before the job has begun its chief may not
 * leave. */
static bool may_leave(const struct ps_role *p, int worker)
{
    const int least = p->config.min_workers > 1 ? p->config.min_workers : 1;
    const bool has_begun = p->was_set_up || p->goes_on, is_chief = worker == ps_chief(p);
    if (!has_begun) return !ps_role_cannot_begin_without(&p->role, worker);
    if (p->stopping.is_on || others_here(p, worker) < least) return false;
    return !is_chief || (p->options.limits.chief_ms && ps_has_other_to_lead(p));
}

/* Its earlier pushes count; it pushes no more, and returns its ticket. */
static void sign_off(struct ps_role *p, int worker, bool is_between_steps, struct outbox *out)
{
    struct member *m = &p->members[worker];
    m->life.has_left = true;
    if (is_between_steps) ps_return_ticket(p, worker);
    if (p->config.is_sync) m->ticket.is_held = false;
    m->lead.can_lead = m->wants.values = m->makes_good = false;
    m->late_join = (struct message){0};
    ps_forget_ahead(p, worker, out);
    if (p->phase != SERVING) return; /* no worker is waited for yet */
    outbox_log(out, "worker/%d leaves the job, which continues without it", worker);
    p->round.applying_count = 0;
    member_set_standing(m, EVICTED); /* left in order: not counted as an eviction */
    ps_renew_wait(p, worker);
    go_on_without(p, worker, out);
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

/* Only the chief can end the job in order. */
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

/* Names the workers that have neither pushed nor finished while others have: "worker/1 (gone),
 * worker/4". ret_here: how many of them are connected. */
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
    ps_watch_lead(p, out);
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
    bool is_slow = here > 0; /* else all are gone, and will be evicted before this limit */
    snprintf(what, sizeof what, "%s at step %llu (%s)", missing, (unsigned long long)p->step + 1,
             is_slow ? "--step_timeout" : "--start_timeout, and train.worker_timeout_secs");
    const uint64_t absent_ms = p->options.limits.start_ms + p->config.worker_timeout_ms;
    watch_wait(p, &(struct awaited){what, is_slow ? p->options.limits.step_ms : absent_ms, false},
               out);
}
