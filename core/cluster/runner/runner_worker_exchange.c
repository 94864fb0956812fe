/* runner_worker_exchange.c - receives values and sends gradients while a step is computed. */
#include "core/base/log.h"
#include "core/cluster/role/parts.h"
#include "core/cluster/runner/runner_worker_inside.h"

enum { LACKS_UNTOLD = 4 }; /* failed attempts logged at debug level only */

/* ---- meanwhile ---- */

void runner_worker_plan_overlap(struct runner_worker *w, int ps)
{
    const unsigned rounds = worker_role_overlap(w->task.role, ps);
    const struct overlap_link facts = {.rounds = rounds,
                                       .all_are_far = true}; /* REST: it decides */
    if (w->task.peers[ps].link) task_plan_overlap(&w->task, ps, facts);
}

void runner_worker_lend_loop(struct runner_worker *w)
{
    if (!w->lending.is_computing || w->lending.is_impossible ||
        !task_overlaps(&w->task, OVERLAP_IN_PARTS))
        return;
    w->lending.is_impossible = loop_lend(w->options.task.loop) != OK;
    if (w->lending.is_impossible)
        log_line(LOG_WARNING, "%s; bytes are moved only between computations, so steps are slower",
                 error_text());
}

void runner_worker_reclaim_loop(struct runner_worker *w)
{
    loop_reclaim(w->options.task.loop);
}

/* ---- values ---- */

struct parts runner_worker_block(const struct runner_worker *w, int ps)
{
    return parts_of(w->session.layout->block_floats[ps]);
}

void runner_worker_note_values(struct runner_worker *w, int ps, const struct message *m)
{
    struct arrival *a = &w->incoming.values[ps];
    const struct parts block = runner_worker_block(w, ps);
    if (m->values.flags & VALUES_HELD) return;
    const uint64_t brought = parts_in(&block, m->range);
    runner_worker_doubt_speculation(w, ps, brought | ~a->ahead);
    const uint64_t missing = parts_all(&block) & ~(a->ahead | brought);
    *a = (struct arrival){.missing = missing, .is_next = true, .used = a->used};
}

/* Values can only be of the next step: before a worker has all of them it pushes nothing for a
 * later one. */
void runner_worker_note_ahead(struct runner_worker *w, int ps, const struct message *m)
{
    struct arrival *a = &w->incoming.values[ps];
    const struct parts block = runner_worker_block(w, ps);
    const uint64_t brought = parts_in(&block, m->range);
    runner_worker_doubt_speculation(w, ps, range_is_empty(m->range) ? UINT64_MAX : brought);
    if (range_is_empty(m->range))
        a->ahead = 0;
    else if (a->missing)
        a->missing &= ~brought;
    else
        a->ahead |= brought;
}

static bool is_there(const struct runner_worker *w, int ps, struct range range)
{
    const struct parts block = runner_worker_block(w, ps);
    return !(w->incoming.values[ps].missing & parts_touched(&block, range));
}

/* Now and then a ps sends another message in between, which is normal: only repetition is logged.
 */
void runner_worker_lack_values(struct runner_worker *w, const char *what)
{
    const int tries = w->lack.tries + 1;
    w->lack.is_now = true;
    if (tries & (tries - 1)) return;
    log_line(tries < LACKS_UNTOLD ? LOG_DEBUG : LOG_INFO,
             "%s did not arrive (%s): fetches all values again%s", what, error_text(),
             tries > 1 ? ", as before" : "");
}

/* Signals are handled between steps: waiting ends when one has come. */
err runner_worker_await_link(struct runner_worker *w, int ps)
{
    struct link *const link = w->task.peers[ps].link;
    const int limit_ms = w->options.task.replay ? AWAIT_TURN_MS : AWAIT_MS;
    err e = link ? ERR_TIMEOUT : fail(ERR_PEER, "ps/%d is gone", ps);
    for (int ms = 0; e == ERR_TIMEOUT && ms < limit_ms; ms += TASK_TICK_MS) {
        e = loop_await(w->options.task.loop, link, TASK_TICK_MS);
        if (e == ERR_TIMEOUT && task_signal_waits())
            return fail(ERR_PEER, "ps/%d: interrupted by a signal", ps);
        if (e == ERR_TIMEOUT) e = fail(e, "nothing came for %d ms", limit_ms);
    }
    return e && link ? fail_prefix(e, "ps/%d", ps) : e;
}

/* If nothing comes, the step is given up, once: the role requests all values again. */
static void await_range(struct runner_worker *w, int ps, struct range range)
{
    struct trace *const trace = w->session.trace;
    if (w->lack.is_now || is_there(w, ps, range)) return;
    const uint64_t begin_ns = clock_ns();
    runner_worker_reclaim_loop(w);
    for (int i = 0; i < AWAIT_LOOKS_MAX && !w->lack.is_now && !is_there(w, ps, range); i++)
        if (runner_worker_await_link(w, ps)) runner_worker_lack_values(w, "values");
    trace_end(trace, SPAN_AWAIT, ps, begin_ns);
    w->task.counting.counters.at[COUNTER_TIME_PULL] += (double)(clock_ns() - begin_ns) * 1e-9;
    w->lack.is_now |= !is_there(w, ps, range);
    runner_worker_lend_loop(w);
}

static bool await(void *context, int ps, struct range values)
{
    struct runner_worker *w = context;
    await_range(w, runner_worker_source(w, ps), values);
    return !w->lack.is_now;
}

err runner_worker_await_all(struct runner_worker *w)
{
    for (int ps = 0; ps < w->task.peer_count; ps++)
        if (runner_worker_reads(w, ps))
            await_range(w, ps, (struct range){0, w->session.layout->block_floats[ps]});
    return w->lack.is_now ? fail(ERR_PEER, "not all values arrived") : OK;
}

/* ---- gradients ---- */

static void send_parts(struct runner_worker *w, int ps, struct range gradients)
{
    const struct peer *peer = &w->task.peers[ps];
    const int before = w->task.outbox.count;
    const struct parts moved =
        parts_front(runner_worker_block(w, ps), w->session.layout->moved_floats[ps]);
    uint64_t left = worker_role_left(w->task.role, ps) & parts_before(&moved, gradients.end);
    if (!peer->link || !left || !(peer->overlap & OVERLAP_GRADIENTS)) return;
    const err e = runner_worker_await_all(w);
    runner_worker_reclaim_loop(w); /* waiting lends the loop again */
    if (e) return;
    while (left) { /* one by one, so that they can be overtaken */
        const uint64_t leaves = peer->overlap & OVERLAP_IN_PARTS ? parts_last(left) : left;
        worker_role_part(w->task.role, ps, leaves, &w->task.outbox);
        left &= ~leaves;
    }
    task_flush_since(&w->task, before);
}

static void leave(void *context, int ps, struct range gradients)
{
    struct runner_worker *w = context;
    runner_worker_reclaim_loop(w);
    for (int to = ps; to < w->task.peer_count; to++)
        if (layout_home(w->session.layout, to) == ps) send_parts(w, to, gradients);
    runner_worker_lend_loop(w);
}

static bool takes(void *context)
{
    const struct runner_worker *w = context;
    return task_overlaps(&w->task, OVERLAP_GRADIENTS);
}

const struct exchange *runner_worker_open_exchange(struct runner_worker *w)
{
    w->exchange = (struct exchange){await, leave, runner_worker_has_come, takes, w};
    return &w->exchange;
}
