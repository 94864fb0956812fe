/* trace_worker_gather.c - the chief: which tasks have sent their spans, how far their clocks are
 * off, and when to stop waiting. */
#include <stdlib.h>
#include <string.h>

#include "core/base/log.h"
#include "core/cluster/runner/trace/trace_worker_inside.h"

static int workers_of(const struct runner_worker *w)
{
    return w->options.task.cluster->hosts[JOB_WORKER].count;
}

static int parts_of(const struct runner_worker *w)
{
    return workers_of(w) + w->task.peer_count;
}

/* ---- the plan ---- */

bool runner_worker_trace_begin(struct runner_worker *w, uint64_t first_step, int steps)
{
    if (!runner_worker_trace_plan(w, first_step, steps)) return false;
    struct runner_worker_trace *t = w->trace;
    trace_gather_close(w);
    t->parts = calloc((size_t)parts_of(w), sizeof *t->parts);
    if (!t->parts) {
        t->phase = RESTING;
        return false;
    }
    t->steps = steps;
    t->gathered_spans = 0;
    t->has_collected = false;
    runner_worker_trace_send(w, 0,
                             &(struct message){.trace = {TRACE_PLAN, .steps = (uint64_t)steps}});
    return true;
}

void trace_gather_close(struct runner_worker *w)
{
    struct runner_worker_trace *t = w->trace;
    for (int i = 0; t->parts && i < parts_of(w); i++) free(t->parts[i].part.spans);
    free(t->parts);
    t->parts = NULL;
}

/* ---- the timeline ---- */

/* How far the clock of a part is ahead of the chief's. */
static struct clock_bounds clock_of(const struct runner_worker *w, int index)
{
    const struct runner_worker_trace *t = w->trace;
    const int workers = workers_of(w);
    if (index == 0) return (struct clock_bounds){.is_known = true};
    if (index >= workers) return t->servers[index - workers].clock;
    const struct clock_bounds back = clock_bounds_turn(&t->parts[index].part.clock);
    return clock_bounds_chain(&t->servers[0].clock, &back);
}

static struct timeline_part describe(const struct runner_worker *w, int index)
{
    const struct gathered_part *g = &w->trace->parts[index];
    const int workers = workers_of(w);
    const struct clock_bounds clock = clock_of(w, index);
    struct timeline_part part = {
        .is_ps = index >= workers,
        .task = index < workers ? index : index - workers,
        .spans = index ? g->part.spans : w->trace->spans.spans,
        .span_count = index ? g->part.count : w->trace->spans.count,
        .dropped = index ? g->part.dropped : w->trace->spans.dropped,
        .shift_ns = -clock_bounds_middle_ns(&clock),
        .error_ns = index ? clock_bounds_error_ns(&clock) : 0,
    };
    if (index && !g->is_here)
        part.missing = "its spans did not come in time";
    else if (g->trouble)
        part.missing = g->trouble;
    else if (!clock.is_known)
        part.missing = "it is not known how its clock goes";
    return part;
}

static void tell(struct runner_worker *w)
{
    const struct runner_worker_trace *t = w->trace;
    const int count = parts_of(w);
    struct timeline_part *parts = calloc((size_t)count, sizeof *parts);
    if (!parts) {
        log_line(LOG_WARNING, "no memory for a timeline");
        return;
    }
    for (int i = 0; i < count; i++) parts[i] = describe(w, i);
    const struct timeline timeline = {
        .graph = w->session.graph,
        .first_step = t->first_step,
        .steps = t->steps,
        .parts = parts,
        .part_count = count,
    };
    runner_worker_trace_reply(w, &timeline);
    runner_worker_told(
        w, runner_worker_tell(w, w->hooks.view.global_step,
                              &(struct occasion){OCCASION_TRACED, .traced = &timeline}));
    free(parts);
}

/* Ends the timeline with the parts that have come. */
static void finish(struct runner_worker *w)
{
    tell(w);
    trace_gather_close(w);
    w->trace->phase = RESTING;
}

/* ---- waiting for the others ---- */

static bool all_here(const struct runner_worker *w)
{
    for (int i = 1; i < parts_of(w); i++)
        if (!w->trace->parts[i].is_here) return false;
    return true;
}

/* If steps are slow, waits as long as two rounds of them took here. */
void trace_gather_wait(struct runner_worker *w)
{
    struct runner_worker_trace *t = w->trace;
    const uint64_t now_ns = clock_ns(), window_ms = (now_ns - t->begin_ns) / 1000000;
    t->phase = GATHERING;
    t->deadline_ms =
        now_ns / 1000000 + (2 * window_ms > TRACE_PATIENCE_MS ? 2 * window_ms : TRACE_PATIENCE_MS);
    if (all_here(w)) finish(w);
}

/* At the first deadline tells the ps to wait for no worker; at the second finishes. */
void runner_worker_trace_tick(struct runner_worker *w, uint64_t now_ms)
{
    struct runner_worker_trace *t = w->trace;
    if (t->phase != GATHERING || now_ms < t->deadline_ms) return;
    if (t->has_collected) {
        finish(w);
        return;
    }
    t->has_collected = true;
    t->deadline_ms = now_ms + TRACE_COLLECT_PATIENCE_MS;
    runner_worker_trace_send_all(w, TRACE_COLLECT);
}

/* The index of the task whose part it is: ps/0 names the worker; otherwise the ps itself. -1: not
 * valid. */
static int index_of(const struct runner_worker *w, int ps, const struct message *m)
{
    const int workers = workers_of(w);
    if (m->job == JOB_PS) return workers + ps;
    const bool is_workers = m->job == JOB_WORKER && ps == 0;
    return is_workers && m->task > 0 && m->task < (uint32_t)workers ? (int)m->task : -1;
}

void trace_gather_part(struct runner_worker *w, int ps, const struct message *m)
{
    struct runner_worker_trace *t = w->trace;
    const int index = index_of(w, ps, m);
    if (!t->parts || index < 0 || t->parts[index].is_here) return;
    const struct trace_limits limits = {
        .nodes = w->session.graph->node_count,
        .ps_count = w->task.peer_count,
        .workers = workers_of(w),
    };
    struct gathered_part *g = &t->parts[index];
    g->is_here = true;
    if (trace_part_unpack(m, &limits, TRACE_GATHERED_MAX - t->gathered_spans, &g->part)) {
        log_line(LOG_WARNING, "a task's part of the timeline is lost: %s", error_text());
        g->trouble = "what it sent are no spans";
    }
    t->gathered_spans += g->part.count;
    if (t->phase == GATHERING && all_here(w)) finish(w);
}

void runner_worker_trace_finish(struct runner_worker *w)
{
    if (w->trace && w->trace->phase == GATHERING) finish(w);
}
