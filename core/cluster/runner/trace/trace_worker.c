/* trace_worker.c - see trace_worker.h: a worker's own spans.
 *
 * The steps are the worker's first ones from the planned step on. A step lasts until the next one
 * could begin, so it is ended by the one after it, or by FINISHED.
 */
#include "core/cluster/runner/trace/trace_worker.h"

#include <stdlib.h>

#include "core/base/log.h"
#include "core/cluster/runner/trace/trace_worker_inside.h"

/* ---- memory: taken with the first plan, and kept ---- */

static struct runner_worker_trace *trace_new(const struct runner_worker *w)
{
    struct runner_worker_trace *t = calloc(1, sizeof *t);
    if (!t) return NULL;
    t->servers = calloc((size_t)w->task.peer_count, sizeof *t->servers);
    if (t->servers && !trace_open(&t->spans, TRACE_SPANS_MAX)) return t;
    free(t->servers);
    free(t);
    return NULL;
}

void runner_worker_trace_close(struct runner_worker *w)
{
    if (!w->trace) return;
    trace_gather_close(w);
    trace_close(&w->trace->spans);
    free(w->trace->servers);
    free(w->trace);
    w->trace = NULL;
}

bool runner_worker_trace_plan(struct runner_worker *w, uint64_t first_step, int steps)
{
    if (!w->trace) w->trace = trace_new(w);
    if (!w->trace || w->trace->phase != RESTING) return false;
    struct runner_worker_trace *t = w->trace;
    t->phase = PLANNED;
    t->first_step = first_step;
    t->generation = worker_role_generation(w->task.role);
    t->steps_left = steps;
    return true;
}

/* ---- messages ---- */

void runner_worker_trace_send(struct runner_worker *w, int ps, const struct message *what)
{
    struct link *link = w->task.peers[ps].link;
    struct message m = *what;
    m.type = MESSAGE_TRACE;
    m.job = JOB_WORKER;
    m.task = (uint32_t)w->task.index;
    m.generation = w->trace->generation;
    m.trace.first_step = w->trace->first_step;
    if (link && link_send(link, &m)) log_line(LOG_DEBUG, "%s", error_text()); /* the link closes */
}

void runner_worker_trace_send_all(struct runner_worker *w, enum trace_code code)
{
    for (int ps = 0; ps < w->task.peer_count; ps++)
        runner_worker_trace_send(w, ps, &(struct message){.trace = {code, clock_ns()}});
}

static void send_part(struct runner_worker *w)
{
    const struct runner_worker_trace *t = w->trace;
    const size_t bytes = trace_part_bytes(t->spans.count);
    void *body = malloc(bytes);
    if (!body) return; /* the chief reports what is missing */
    trace_part_pack(&t->spans, &t->servers[0].clock, body);
    runner_worker_trace_send(
        w, 0,
        &(struct message){.trace.what = TRACE_PART, .body = body, .body_bytes = (uint32_t)bytes});
    free(body);
}

/* ---- the steps ---- */

static void begin(struct runner_worker *w)
{
    struct runner_worker_trace *t = w->trace;
    t->phase = RECORDING;
    trace_clear(&t->spans);
    for (int ps = 0; ps < w->task.peer_count; ps++) t->servers[ps] = (struct traced_server){0};
    session_watch(&w->session, &t->spans);
    t->begin_ns = clock_ns();
    runner_worker_trace_send_all(w, TRACE_MARK);
}

static void end(struct runner_worker *w)
{
    struct runner_worker_trace *t = w->trace;
    session_watch(&w->session, NULL);
    runner_worker_trace_send_all(w, TRACE_END);
    if (runner_worker_leads(w)) {
        trace_gather_wait(w);
        return;
    }
    send_part(w);
    t->phase = RESTING;
}

/* The step that was computed is over; perhaps it was the last one. */
static void end_step(struct runner_worker *w, bool is_last)
{
    struct runner_worker_trace *t = w->trace;
    if (t->step_ns) trace_end(&t->spans, SPAN_STEP, 0, t->step_ns);
    t->step_ns = 0;
    if (is_last || t->steps_left == 0) end(w);
}

void runner_worker_trace_step(struct runner_worker *w, uint64_t step)
{
    struct runner_worker_trace *t = w->trace;
    if (t->phase == RECORDING) end_step(w, false);
    if (t->phase == PLANNED && step + 1 >= t->first_step) begin(w);
    if (t->phase != RECORDING) return;
    t->spans.step = step + 1;
    t->step_ns = clock_ns();
    t->steps_left--;
}

void runner_worker_trace_abandon(struct runner_worker *w)
{
    struct runner_worker_trace *t = w->trace;
    session_watch(&w->session, NULL);
    t->phase = RESTING;
    t->step_ns = 0;
    trace_gather_close(w);
    runner_worker_trace_ask_again(w);
}

/* ---- the exchange with each ps ---- */

static void add_span(struct runner_worker_trace *t, int ps, enum span_kind kind, uint64_t begin_ns,
                     uint64_t end_ns)
{
    trace_add(&t->spans, &(struct span){.begin_ns = begin_ns,
                                        .end_ns = end_ns,
                                        .step = t->spans.step,
                                        .bytes = t->servers[ps].bytes,
                                        .subject = (uint32_t)ps,
                                        .kind = (uint16_t)kind});
}

static void add_moment(struct runner_worker_trace *t, int ps, enum span_kind kind, uint64_t bytes)
{
    const uint64_t now_ns = clock_ns();
    trace_add(&t->spans, &(struct span){.begin_ns = now_ns,
                                        .end_ns = now_ns,
                                        .step = t->spans.step,
                                        .bytes = bytes,
                                        .subject = (uint32_t)ps,
                                        .kind = (uint16_t)kind});
}

void runner_worker_trace_back(struct runner_worker *w, int ps, const struct message *m)
{
    struct runner_worker_trace *t = w->trace;
    if (t->phase == RECORDING && t->step_ns) add_moment(t, ps, SPAN_BACK, m->length);
}

/* A push is announced just before it, which also asks for the time. */
static void begin_push(struct runner_worker *w, int ps, const struct message *m)
{
    struct traced_server *s = &w->trace->servers[ps];
    const uint64_t now_ns = clock_ns();
    runner_worker_trace_send(
        w, ps, &(struct message){.trace = {TRACE_PUSHING, now_ns, .bytes = m->length}});
    s->pushed_ns = now_ns;
    s->left_ns = 0;
    s->push = m->push.push;
    s->bytes = m->length;
}

void runner_worker_trace_sending(struct runner_worker *w, int ps, const struct message *m)
{
    if (w->trace->phase != RECORDING) return;
    if (m->type == MESSAGE_PART) add_moment(w->trace, ps, SPAN_PART, m->length);
    if (m->type == MESSAGE_PUSH) begin_push(w, ps, m);
    if (m->type == MESSAGE_FINISHED) end_step(w, true);
}

static void note_left(struct runner_worker_trace *t, int ps, uint64_t now_ns)
{
    t->servers[ps].left_ns = now_ns;
    add_span(t, ps, SPAN_PUSH, t->servers[ps].pushed_ns, now_ns);
}

void runner_worker_trace_pump(struct runner_worker *w)
{
    struct runner_worker_trace *t = w->trace;
    if (t->phase != RECORDING) return;
    for (int ps = 0; ps < w->task.peer_count; ps++) {
        const struct traced_server *s = &t->servers[ps];
        const struct link *link = w->task.peers[ps].link;
        if (s->pushed_ns && !s->left_ns && link && link_is_idle(link)) note_left(t, ps, clock_ns());
    }
}

void runner_worker_trace_values(struct runner_worker *w, int ps, const struct message *m)
{
    struct runner_worker_trace *t = w->trace;
    struct traced_server *s = &t->servers[ps];
    if (t->phase != RECORDING || !s->pushed_ns || m->values.push < s->push) return;
    if (m->generation != t->generation || m->values.flags & VALUES_HELD) return;
    const uint64_t now_ns = clock_ns();
    if (!s->left_ns) note_left(t, ps, now_ns);
    s->bytes = m->length;
    add_span(t, ps, SPAN_WAIT, s->left_ns, now_ns);
    s->pushed_ns = 0;
}

/* ---- what comes from a ps ---- */

static void hear_clock(struct runner_worker_trace *t, int ps, const struct message *m,
                       uint64_t now_ns)
{
    struct round_trip trip;
    if (!trace_clock_unpack(m, &trip) || trip.sent_ns < t->begin_ns) return;
    trip.back_ns = now_ns;
    clock_bounds_add(&t->servers[ps].clock, &trip);
}

static void hear_plan(struct runner_worker *w, int ps, const struct message *m)
{
    const bool is_sane =
        m->trace.first_step && m->trace.steps >= 1 && m->trace.steps <= TIMELINE_STEPS_MAX;
    if (ps != 0 || runner_worker_leads(w) || !is_sane) return;
    if (m->generation != worker_role_generation(w->task.role)) return;
    if (w->trace && w->trace->phase != RESTING)
        runner_worker_trace_abandon(w); /* the chief gave it up */
    if (!runner_worker_trace_plan(w, m->trace.first_step, (int)m->trace.steps))
        log_line(LOG_WARNING, "no memory for a timeline");
}

void runner_worker_trace_message(struct runner_worker *w, int ps, const struct message *m)
{
    const uint64_t now_ns = clock_ns();
    if (m->trace.what == TRACE_PLAN) {
        hear_plan(w, ps, m);
        return;
    }
    struct runner_worker_trace *t = w->trace;
    if (!t || m->trace.first_step != t->first_step || m->generation != t->generation) return;
    if (m->trace.what == TRACE_CLOCK) hear_clock(t, ps, m, now_ns);
    if (m->trace.what == TRACE_PART) trace_gather_part(w, ps, m);
}
