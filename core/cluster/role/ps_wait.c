/* ps_wait.c - who is waited for, how long, and what happens then. */
#include <stdio.h>

#include "core/cluster/role/ps_inside.h"
#include "core/cluster/role/verdict.h"

/* ---- workers that are gone ---- */

static int counted_on(const struct ps_role *p)
{
    int count = 0;
    for (int w = 0; w < p->options.workers; w++) count += p->members[w].standing != EXCUSED;
    return count;
}

static uint64_t absence_limit_ms(const struct ps_role *p, const struct member *m)
{
    uint64_t limit =
        m->presence != NOT_YET ? p->config.worker_timeout_ms : p->options.limits.start_ms;
    uint64_t stop = p->options.limits.stop_ms / PS_STOP_PARTS;
    bool is_hurried = p->is_stopping && ps_chief_is_here(p);
    return is_hurried && stop < limit ? stop : limit;
}

/* Rounds, cuts and the end of the job go on without it. */
static void excuse(struct ps_role *p, int worker, struct outbox *out)
{
    struct member *m = &p->members[worker];
    uint64_t waited_s = (p->patience.now_ms - m->lost_ms) / 1000;
    const char *flag = p->is_stopping           ? "the job ends"
                       : m->presence != NOT_YET ? "train.worker_timeout_secs"
                                                : "--start_timeout";
    member_set_standing(m, EXCUSED);
    patience_renew(&p->patience);
    int left = counted_on(p);
    if ((left < p->config.min_workers && !p->is_stopping) || left == 0) {
        char text[ACTION_TEXT_MAX];
        snprintf(text, sizeof text,
                 "worker/%d is gone for %llu s (%s), and %d worker%s are fewer than %d "
                 "(train.min_workers)",
                 worker, (unsigned long long)waited_s, flag, left, left == 1 ? "" : "s",
                 p->config.min_workers > 1 ? p->config.min_workers : 1);
        ps_end(p, EXIT_LOST_PEER, text, NOBODY, out);
        return;
    }
    outbox_log(out, "goes on without worker/%d, gone for %llu s (%s)", worker,
               (unsigned long long)waited_s, flag);
    ps_return_ticket(p, worker, out);
    ps_apply_ready_rounds(p, out);
    if (ps_all_finished(p)) ps_finished(p, CHIEF, 0, out);
    ps_try_cut(p, out);
}

static void excuse_absent(struct ps_role *p, struct outbox *out)
{
    for (int w = 0; w < p->options.workers && p->phase == SERVING; w++) {
        const struct member *m = &p->members[w];
        if (member_is_here(m) || m->standing != COUNTED_ON) continue;
        if (p->patience.now_ms - m->lost_ms < absence_limit_ms(p, m)) continue;
        excuse(p, w, out);
    }
}

/* Only the chief can end the job well. */
static void watch_chief(struct ps_role *p, struct outbox *out)
{
    const struct member *m = &p->members[CHIEF];
    uint64_t limit_ms = p->options.limits.restart_ms;
    if (m->presence != AWAY || p->patience.now_ms - m->lost_ms < limit_ms) return;
    char text[ACTION_TEXT_MAX];
    snprintf(text, sizeof text, "the chief, worker/0, is gone for %llu s (--restart_timeout)",
             (unsigned long long)limit_ms / 1000);
    ps_end(p, EXIT_LOST_PEER, text, NOBODY, out);
}

/* ---- somebody is here and waits for somebody else ---- */

static bool is_done(const struct member *m)
{
    return m->push == PUSH_WAITS || m->standing != COUNTED_ON;
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
                                     member_is_here(m) ? "" : " (gone)");
        missing++;
        *ret_here += member_is_here(m);
    }
    return missing;
}

static bool somebody_waits(const struct ps_role *p)
{
    for (int w = 0; w < p->options.workers; w++) {
        const struct member *m = &p->members[w];
        if (member_is_here(m) && (m->push == PUSH_WAITS || m->standing == FINISHED)) return true;
    }
    return false;
}

static void watch_wait(struct ps_role *p, const char *what, uint64_t limit_ms, struct outbox *out)
{
    char text[ACTION_TEXT_MAX];
    if (patience_is_over(&p->patience, what, limit_ms, out, text))
        ps_end(p, EXIT_TIMEOUT, text, NOBODY, out);
}

void ps_watch(struct ps_role *p, struct outbox *out)
{
    if (p->phase == READY || p->phase == SERVING) watch_chief(p, out);
    if (p->phase != SERVING) return;
    excuse_absent(p, out);
    if (p->phase != SERVING) return;
    if (!somebody_waits(p)) {
        patience_renew(&p->patience);
        return;
    }
    char missing[ACTION_TEXT_MAX / 2], what[ACTION_TEXT_MAX];
    int here;
    if (!name_missing(p, missing, sizeof missing, &here)) {
        watch_wait(p, "worker/0 to evaluate (--end_timeout)", p->options.limits.end_ms, out);
        return;
    }
    bool is_slow = here > 0; /* else all are gone, and are excused before this limit */
    snprintf(what, sizeof what, "%s at step %llu (%s)", missing, (unsigned long long)p->step + 1,
             is_slow ? "--step_timeout" : "train.worker_timeout_secs");
    watch_wait(p, what,
               is_slow ? p->options.limits.step_ms
                       : p->options.limits.start_ms + p->config.worker_timeout_ms,
               out);
}

/* ---- for people ---- */

static const char *member_text(const struct member *m)
{
    if (m->standing == EXCUSED) return "gone, not waited for";
    if (!member_is_here(m)) return m->presence == AWAY ? "gone" : "not here yet";
    if (m->standing == FINISHED) return "has finished";
    if (m->push == PUSH_WAITS) return "has pushed, waits for the others";
    if (m->wants_values) return "waits for values";
    return m->holds_ticket ? "computes" : "is here";
}

void ps_report(const struct role *role, struct outbox *out)
{
    static const char *const phases[] = {[EMPTY] = "empty, waits for the chief",
                                         [READY] = "set up, waits for values",
                                         [SERVING] = "serving",
                                         [ENDED] = "ended"};
    const struct ps_role *p = (const struct ps_role *)role;
    outbox_log(out,
               "%s, generation %016llx, step %llu of %llu, %llu applied, %llu stale, %llu not "
               "next%s",
               phases[p->phase], (unsigned long long)p->config.generation,
               (unsigned long long)p->step, (unsigned long long)p->config.last_step,
               (unsigned long long)p->counters.applied,
               (unsigned long long)p->counters.dropped_stale,
               (unsigned long long)p->counters.dropped_repeated,
               p->cut.writing ? ", writes a checkpoint" : "");
    for (int w = 0; w < p->options.workers; w++)
        outbox_log(out, "worker/%d %s, %llu pushes", w, member_text(&p->members[w]),
                   (unsigned long long)p->members[w].ledger.received);
}
