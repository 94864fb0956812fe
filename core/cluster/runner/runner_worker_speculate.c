/* runner_worker_speculate.c - runs the forward pass of the next step while its values still arrive.
 *
 * Parts that came ahead may be undone until VALUES come. When a part comes again, or is void,
 * results computed from it are discarded and the pass starts over. So when COMPUTE comes, the step
 * continues only from results of its own values, and none were visible or counted before.
 *
 * The loop is lent while nodes run, and polled as usual when the next node lacks a value.
 */
#include "core/base/log.h"
#include "core/cluster/role/parts.h"
#include "core/cluster/runner/runner_worker_inside.h"

enum { SPECULATED_LOOKS = 256 }; /* attempts in a row without new data */

static bool may_speculate(const struct runner_worker *w)
{
    const uint64_t last = runner_worker_last_step(w);
    return !w->done.is_new && !w->task.has_ended && (!last || w->done.step < last) &&
           worker_role_awaits_next(w->task.role) && task_overlaps(&w->task, OVERLAP_VALUES);
}

bool runner_worker_has_come(void *context, int ps, struct range values)
{
    struct runner_worker *w = context;
    const int source = runner_worker_source(w, ps);
    struct arrival *a = &w->incoming.values[source];
    const struct parts block = runner_worker_block(w, ps);
    const uint64_t wanted = parts_touched(&block, values);
    const uint64_t there = a->is_next ? ~a->missing : a->ahead;
    if (!w->task.peers[source].link || wanted & ~there) return false;
    a->used |= wanted;
    if (!w->lending.is_computing) {
        w->lending.is_computing = true;
        runner_worker_lend_loop(w);
    }
    return true;
}

/* Its spans belong to the next step. */
static bool run_on(struct runner_worker *w)
{
    struct trace *const trace = w->session.trace;
    if (trace) trace->step++;
    const bool has_run = session_speculate(&w->session);
    if (trace) trace->step--;
    w->lending.is_computing = false;
    runner_worker_reclaim_loop(w);
    return has_run;
}

void runner_worker_speculate(struct runner_worker *w)
{
    bool goes_on = may_speculate(w);
    for (int i = 0; i < SPECULATED_LOOKS && goes_on; i++) goes_on = run_on(w);
}

static bool are_used(const struct runner_worker *w)
{
    uint64_t used = 0;
    for (int ps = 0; ps < w->task.peer_count; ps++) used |= w->incoming.values[ps].used;
    return used != 0;
}

void runner_worker_forget_speculation(struct runner_worker *w)
{
    w->speculation.in_vain += are_used(w);
    for (int ps = 0; ps < w->task.peer_count; ps++) w->incoming.values[ps].used = 0;
    session_forget_speculation(&w->session);
}

void runner_worker_doubt_speculation(struct runner_worker *w, int ps, uint64_t parts)
{
    if (w->incoming.values[ps].used & parts) runner_worker_forget_speculation(w);
}

void runner_worker_use_speculation(struct runner_worker *w)
{
    w->speculation.used += are_used(w);
    for (int ps = 0; ps < w->task.peer_count; ps++) {
        w->incoming.values[ps].used = 0;
        w->incoming.values[ps].is_next = false;
    }
}

void runner_worker_report_speculation(const struct runner_worker *w)
{
    log_line(LOG_DEBUG,
             "%llu steps used their speculative forward pass, which was discarded %llu times",
             (unsigned long long)w->speculation.used, (unsigned long long)w->speculation.in_vain);
}
