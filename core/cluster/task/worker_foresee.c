/* worker_foresee.c - the forward pass of the next step, while the values that it is of still come.
 *
 * Parts that came ahead of VALUES may be taken back until these are there. What was computed from
 * such a part is thrown away as soon as it comes again, or is void: then the pass begins anew. So
 * what a step goes on from when COMPUTE comes is of its own values alone, and nobody has seen or
 * counted any of it before.
 *
 * The loop is lent while nodes are run, and served as ever as soon as the next one lacks a value.
 */
#include "core/base/log.h"
#include "core/cluster/role/parts/parts.h"
#include "core/cluster/task/worker_inside.h"

enum { FORESEEN_LOOKS = 256 }; /* in a row; the next byte that comes is a reason for more */

/* For this worker or for another one */
static bool are_values_ahead(const struct worker_task *w)
{
    for (int ps = 0; ps < w->task.peer_count; ps++)
        if (worker_role_helps(w->task.role, ps)) return true;
    return worker_sends_parts(w);
}

static bool may_foresee(const struct worker_task *w)
{
    const uint64_t last = worker_last_step(w);
    return !w->has_stepped && !w->task.has_ended && (!last || w->step < last) &&
           worker_role_awaits_next(w->task.role) && are_values_ahead(w);
}

bool worker_has_come(void *context, const struct bucket *values)
{
    struct worker_task *w = context;
    struct arrival *a = &w->arrivals[values->ps];
    const struct parts block = worker_block(w, values->ps);
    const uint64_t wanted = parts_touched(&block, worker_stretch_of(values));
    const uint64_t there = a->is_next ? ~a->missing : a->ahead;
    if (!w->task.peers[values->ps].link || wanted & ~there) return false;
    a->used |= wanted;
    if (!w->is_computing) {
        w->is_computing = true;
        worker_lend_loop(w);
    }
    return true;
}

/* Its spans are the next step's. */
static bool run_on(struct worker_task *w)
{
    struct trace *const trace = w->session.trace;
    if (trace) trace->step++;
    const bool has_run = session_foresee(&w->session);
    if (trace) trace->step--;
    w->is_computing = false;
    worker_reclaim_loop(w);
    return has_run;
}

void worker_foresee(struct worker_task *w)
{
    bool goes_on = may_foresee(w);
    for (int i = 0; i < FORESEEN_LOOKS && goes_on; i++) goes_on = run_on(w);
}

static bool are_used(const struct worker_task *w)
{
    uint64_t used = 0;
    for (int ps = 0; ps < w->task.peer_count; ps++) used |= w->arrivals[ps].used;
    return used != 0;
}

void worker_forget_foreseen(struct worker_task *w)
{
    w->foreseen_in_vain += are_used(w);
    for (int ps = 0; ps < w->task.peer_count; ps++) w->arrivals[ps].used = 0;
    session_forget_foreseen(&w->session);
}

void worker_doubt_foreseen(struct worker_task *w, int ps, uint64_t parts)
{
    if (w->arrivals[ps].used & parts) worker_forget_foreseen(w);
}

void worker_take_foreseen(struct worker_task *w)
{
    w->foreseen += are_used(w);
    for (int ps = 0; ps < w->task.peer_count; ps++) {
        w->arrivals[ps].used = 0;
        w->arrivals[ps].is_next = false;
    }
}

void worker_report_foreseen(const struct worker_task *w)
{
    log_line(LOG_DEBUG, "%llu steps went on from what was foreseen, which was void %llu times",
             (unsigned long long)w->foreseen, (unsigned long long)w->foreseen_in_vain);
}
