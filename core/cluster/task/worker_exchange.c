/* worker_exchange.c - values that come and gradients that leave while a step is computed. */
#include "core/base/log.h"
#include "core/cluster/task/worker_inside.h"

/* ---- meanwhile ---- */

static bool sends_parts(const struct worker_task *w)
{
    for (int ps = 0; ps < w->task.peer_count; ps++)
        if (w->task.peers[ps].link && task_sends_parts(&w->task, w->task.peers[ps].link))
            return true;
    return false;
}

void worker_lend_loop(struct worker_task *w)
{
    if (!w->is_computing || w->cannot_lend || !sends_parts(w)) return;
    w->cannot_lend = loop_lend(w->options.task.loop) != OK;
    if (w->cannot_lend) log_line(LOG_WARNING, "%s; computing waits for bytes", error_text());
}

void worker_reclaim_loop(struct worker_task *w)
{
    loop_reclaim(w->options.task.loop);
}

/* ---- values ---- */

void worker_note_values(struct worker_task *w, int ps, const struct message *m)
{
    struct arrival *a = &w->arrivals[ps];
    const bool travels = !link_shares_memory(w->task.peers[ps].link);
    if (m->code & VALUES_HELD) return;
    *a = (struct arrival){m->offset, travels && m->code & VALUES_HAS_REST};
}

/* What does not go on from there is another ps' mistake, and makes the step wait in vain. */
void worker_note_rest(struct worker_task *w, int ps, const struct message *m)
{
    struct arrival *a = &w->arrivals[ps];
    if (!a->has_rest || !m->length || m->offset + m->length != a->from) return;
    *a = (struct arrival){m->offset, !m->code};
}

static bool is_there(const struct worker_task *w, int ps, uint64_t offset)
{
    const struct arrival *a = &w->arrivals[ps];
    return !a->has_rest || offset >= a->from;
}

static bool is_silent(const struct worker_task *w, int ps)
{
    struct link *const link = w->task.peers[ps].link;
    if (link && !loop_await(w->options.task.loop, link, AWAIT_MS)) return false;
    log_line(LOG_INFO, "values of ps/%d do not come on: asks for all of them again", ps);
    return true;
}

/* The step is given up where nothing comes, once: the role asks for all of the values again. */
static void await_from(struct worker_task *w, int ps, uint64_t offset)
{
    struct trace *const trace = w->session.trace;
    if (w->lacks_values || is_there(w, ps, offset)) return;
    const uint64_t begin_ns = trace_begin(trace);
    worker_reclaim_loop(w);
    for (int i = 0; i < AWAIT_LOOKS_MAX && !w->lacks_values && !is_there(w, ps, offset); i++)
        w->lacks_values = is_silent(w, ps);
    trace_end(trace, SPAN_AWAIT, ps, begin_ns);
    w->lacks_values |= !is_there(w, ps, offset);
    worker_lend_loop(w);
}

static bool await(void *context, const struct bucket *values)
{
    struct worker_task *w = context;
    await_from(w, values->ps, (uint64_t)values->offset * sizeof(float));
    return !w->lacks_values;
}

err worker_await_all(struct worker_task *w)
{
    for (int ps = 0; ps < w->task.peer_count; ps++) await_from(w, ps, 0);
    return w->lacks_values ? fail(ERR_PEER, "values were lost on their way") : OK;
}

/* ---- gradients ---- */

/* Within one host a part is work for nothing, unless it helps somebody far away. */
static void send_parts(struct worker_task *w, const struct bucket *bucket)
{
    const struct link *link = w->task.peers[bucket->ps].link;
    const bool is_cut = link && task_sends_parts(&w->task, link);
    const int before = w->task.outbox.count;
    const uint64_t block = worker_block_bytes(&w->task, bucket->ps), part = task_part_bytes(block);
    const uint64_t unfinished = block - (uint64_t)(bucket->offset + bucket->floats) * sizeof(float);
    const uint64_t stays = unfinished > part ? unfinished : part; /* the last goes with the push */
    uint64_t left = worker_role_left(w->task.role, bucket->ps);
    if (!link || (!is_cut && !worker_role_helps(w->task.role, bucket->ps))) return;
    const err e = worker_await_all(w);
    worker_reclaim_loop(w); /* waiting lends it again */
    if (e) return;
    while (left > stays && left - unfinished >= part) {
        const uint64_t bytes = !is_cut || left - stays < part ? left - stays : part;
        worker_role_part(w->task.role, bucket->ps, bytes, &w->task.outbox);
        left -= bytes;
    }
    task_flush_since(&w->task, before);
}

static void leave(void *context, const struct bucket *bucket)
{
    struct worker_task *w = context;
    worker_reclaim_loop(w);
    send_parts(w, bucket);
    worker_lend_loop(w);
}

const struct exchange *worker_open_exchange(struct worker_task *w)
{
    const bool is_alone = w->options.task.transport == TRANSPORT_INPROC;
    w->exchange = (struct exchange){await, leave, w};
    return is_alone || w->options.task.parts == PARTS_NEVER ? NULL : &w->exchange;
}
