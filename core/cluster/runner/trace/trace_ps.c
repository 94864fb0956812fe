/* trace_ps.c - see trace_ps.h. */
#include "core/cluster/runner/trace/trace_ps.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/log.h"
#include "core/cluster/runner/trace/trace.h"

enum {
    BURST_BYTES_MAX = 1 << 20, /* queued on a link at most */
    PART_LEAST_BYTES = 4096,   /* what a small part counts for, since the number of messages is
                                  limited, too */
};

/* A worker's part on its way to the chief. */
struct held_part {
    struct held_part *next;
    int worker;
    uint64_t first_step, generation;
    uint32_t bytes;
    char body[];
};

struct traced_worker {
    bool is_inside, has_ended;
    uint64_t pushing_ns; /* since when its push is being received; 0: none is announced */
};

struct runner_ps_trace {
    struct trace trace;
    uint64_t first_step, generation; /* of the timeline; step 0: none yet */
    bool is_due;                     /* own spans are to be sent */
    int inside;                      /* workers in their steps */
    uint64_t since_ns;
    struct traced_worker *workers;

    struct held_part *held, *held_last; /* in the order in which they came */
    size_t held_bytes, burst_bytes;
};

/* ---- messages ---- */

static void send_to(const struct runner_ps *p, int worker, const struct message *m)
{
    struct link *link = p->task.peers[worker].link;
    if (link && link_send(link, m)) log_line(LOG_DEBUG, "%s", error_text()); /* the link closes */
}

static struct message message_of(const struct runner_ps *p, enum trace_code code,
                                 const struct message *about)
{
    return (struct message){
        .type = MESSAGE_TRACE,
        .task = (uint32_t)p->task.index,
        .job = JOB_PS,
        .generation = about->generation,
        .trace = {code, about->trace.clock_ns, about->trace.first_step,
                  .steps = about->trace.steps},
    };
}

static void answer_clock(const struct runner_ps *p, int worker, const struct message *m,
                         uint64_t heard_ns)
{
    uint64_t numbers[TRACE_CLOCK_NUMBERS];
    trace_clock_pack(&(struct round_trip){m->trace.clock_ns, heard_ns, clock_ns(), 0}, numbers);
    struct message answer = message_of(p, TRACE_CLOCK, m);
    answer.body = numbers;
    answer.body_bytes = sizeof numbers;
    send_to(p, worker, &answer);
}

/* Only the chief plans, and only ps/0 is asked to tell the others. */
static void pass_on_plan(const struct runner_ps *p, int worker, const struct message *m)
{
    const struct message plan = message_of(p, TRACE_PLAN, m);
    if (worker != ps_role_chief(p->task.role) || p->task.index != 0) return;
    for (int w = 0; w < p->task.peer_count; w++)
        if (w != worker) send_to(p, w, &plan);
}

/* ---- recording ---- */

static struct runner_ps_trace *trace_new(int workers)
{
    struct runner_ps_trace *t = calloc(1, sizeof *t);
    if (!t) return NULL;
    t->workers = calloc((size_t)workers, sizeof *t->workers);
    if (t->workers && !trace_open(&t->trace, TRACE_SPANS_MAX)) return t;
    free(t->workers);
    free(t);
    return NULL;
}

static void begin(struct runner_ps *p, const struct message *m)
{
    struct runner_ps_trace *t = p->timeline.trace;
    memset(t->workers, 0, (size_t)p->task.peer_count * sizeof *t->workers);
    trace_clear(&t->trace);
    t->first_step = m->trace.first_step;
    t->generation = m->generation;
    t->is_due = false;
    t->inside = 0;
    t->since_ns = clock_ns();
}

static bool is_current(const struct runner_ps *p, const struct message *m)
{
    const struct runner_ps_trace *t = p->timeline.trace;
    return t && t->first_step == m->trace.first_step && t->generation == m->generation;
}

/* Memory is taken when the first worker of the first timeline begins. */
static void enter(struct runner_ps *p, int worker, const struct message *m)
{
    if (!p->share || m->generation != p->share->setup.config.generation || !m->trace.first_step)
        return;
    if (!p->timeline.trace) p->timeline.trace = trace_new(p->task.peer_count);
    if (!p->timeline.trace) return; /* the chief reports what is missing */
    if (!is_current(p, m)) begin(p, m);
    struct runner_ps_trace *t = p->timeline.trace;
    struct traced_worker *w = &t->workers[worker];
    if (w->is_inside || w->has_ended) return;
    w->is_inside = true;
    t->inside++;
    p->timeline.recording = &t->trace;
}

static void leave(struct runner_ps *p, int worker)
{
    struct runner_ps_trace *t = p->timeline.trace;
    struct traced_worker *w = &t->workers[worker];
    t->inside -= w->is_inside;
    w->is_inside = false;
    w->has_ended = true;
    if (!t->inside) p->timeline.recording = NULL;
}

void runner_ps_trace_took(struct runner_ps *p, int worker, const struct message *part)
{
    const uint64_t now_ns = clock_ns();
    trace_add(p->timeline.recording, &(struct span){.begin_ns = now_ns,
                                                    .end_ns = now_ns,
                                                    .step = part->part.step + 1,
                                                    .bytes = part->length,
                                                    .subject = (uint32_t)worker,
                                                    .kind = SPAN_TAKE});
}

void runner_ps_trace_received(struct runner_ps *p, int worker, const struct message *push)
{
    struct traced_worker *w = &p->timeline.trace->workers[worker];
    if (!w->pushing_ns) return;
    trace_add(p->timeline.recording, &(struct span){.begin_ns = w->pushing_ns,
                                                    .end_ns = clock_ns(),
                                                    .step = push->push.step + 1,
                                                    .bytes = push->length,
                                                    .subject = (uint32_t)worker,
                                                    .kind = SPAN_RECEIVE});
    w->pushing_ns = 0;
}

void runner_ps_trace_acted(struct runner_ps *p, const struct action *a, uint64_t begin_ns)
{
    struct span span = {
        .begin_ns = begin_ns, .end_ns = clock_ns(), .bytes = runner_ps_block_bytes(p)};
    switch (a->type) {
    case ACTION_APPLY:
        span.kind = SPAN_APPLY;
        span.subject = (uint32_t)a->apply.workers[0];
        span.count = (uint16_t)a->apply.worker_count;
        span.step = a->apply.step + 1;
        break;
    case ACTION_ADVANCE:
        span.kind = SPAN_ADVANCE;
        span.step = a->advance.step + 1;
        span.bytes = 0;
        break;
    case ACTION_REFRESH:
        span.kind = SPAN_REFRESH;
        span.subject = (uint32_t)a->refresh.worker;
        span.step = ps_role_step(p->task.role);
        break;
    case ACTION_SNAPSHOT:
        span.kind = SPAN_SNAPSHOT;
        span.step = a->snapshot.step;
        break;
    default:
        return;
    }
    trace_add(p->timeline.recording, &span);
}

void runner_ps_trace_held(struct runner_ps *p)
{
    const uint64_t since_ns = p->timeline.trace->since_ns;
    p->timeline.recording->step = ps_role_step(p->task.role);
    trace_end(p->timeline.recording, SPAN_HOLD, 0, p->held_ns > since_ns ? p->held_ns : since_ns);
}

/* ---- to the chief ---- */

/* A few small parts may be queued behind data still being sent; more would be too much for a link.
 */
static bool may_send(struct runner_ps *p, size_t bytes)
{
    const struct link *link = p->task.peers[ps_role_chief(p->task.role)].link;
    struct runner_ps_trace *t = p->timeline.trace;
    if (!link) return false;
    if (link_is_idle(link)) t->burst_bytes = 0;
    const size_t counted = bytes < PART_LEAST_BYTES ? PART_LEAST_BYTES : bytes;
    if (t->burst_bytes && t->burst_bytes + counted > BURST_BYTES_MAX) return false;
    t->burst_bytes += counted;
    return true;
}

static void send_own(struct runner_ps *p)
{
    struct runner_ps_trace *t = p->timeline.trace;
    const size_t bytes = trace_part_bytes(t->trace.count);
    if (!may_send(p, bytes)) return;
    t->is_due = false;
    void *body = malloc(bytes);
    if (!body) return; /* the chief reports what is missing */
    trace_part_pack(&t->trace, &(struct clock_bounds){0}, body);
    struct message m = message_of(
        p, TRACE_PART,
        &(struct message){.generation = t->generation, .trace.first_step = t->first_step});
    m.body = body;
    m.body_bytes = (uint32_t)bytes;
    send_to(p, ps_role_chief(p->task.role), &m);
    free(body);
}

static void send_held(struct runner_ps *p)
{
    struct runner_ps_trace *t = p->timeline.trace;
    const int chief = ps_role_chief(p->task.role);
    while (t->held && may_send(p, t->held->bytes)) {
        struct held_part *part = t->held;
        struct message m = message_of(p, TRACE_PART,
                                      &(struct message){.generation = part->generation,
                                                        .trace.first_step = part->first_step});
        m.job = JOB_WORKER;
        m.task = (uint32_t)part->worker;
        m.body = part->body;
        m.body_bytes = part->bytes;
        send_to(p, chief, &m);
        t->held = part->next;
        t->held_bytes -= sizeof *part + part->bytes;
        free(part);
    }
}

/* Parts that do not fit are dropped; the chief reports them as missing. */
static void hold_part(struct runner_ps *p, int worker, const struct message *m)
{
    struct runner_ps_trace *t = p->timeline.trace;
    if (p->task.index != 0 || worker == ps_role_chief(p->task.role) || !m->body) return;
    const size_t bytes = sizeof(struct held_part) + m->body_bytes;
    if (t->held_bytes + bytes > TRACE_HELD_BYTES_MAX) return;
    struct held_part *part = malloc(bytes);
    if (!part) return;
    *part = (struct held_part){.worker = worker,
                               .first_step = m->trace.first_step,
                               .generation = m->generation,
                               .bytes = m->body_bytes};
    memcpy(part->body, m->body, m->body_bytes);
    if (t->held)
        t->held_last->next = part;
    else
        t->held = part;
    t->held_last = part;
    t->held_bytes += bytes;
}

/* Lost workers are not waited for; the chief has its own limit, and ends the wait. */
static bool all_ended(const struct runner_ps *p)
{
    for (int w = 0; w < p->task.peer_count; w++)
        if (p->task.peers[w].is_up && !p->timeline.trace->workers[w].has_ended) return false;
    return true;
}

/* Workers that restart from a checkpoint give their timeline up without a message. */
static bool is_given_up(const struct runner_ps *p)
{
    return !p->share || p->share->setup.config.generation != p->timeline.trace->generation;
}

void runner_ps_trace_pump(struct runner_ps *p)
{
    struct runner_ps_trace *t = p->timeline.trace;
    for (int w = 0; t->inside && w < p->task.peer_count; w++)
        if (t->workers[w].is_inside && (!p->task.peers[w].is_up || is_given_up(p))) leave(p, w);
    if (t->is_due && all_ended(p)) send_own(p);
    send_held(p);
}

static void collect(struct runner_ps *p)
{
    for (int w = 0; w < p->task.peer_count; w++) leave(p, w);
}

/* Of a timeline that has begun here. */
static void on_current(struct runner_ps *p, int worker, const struct message *m)
{
    const bool is_chief = worker == ps_role_chief(p->task.role);
    switch (m->trace.what) {
    case TRACE_END:
        leave(p, worker);
        if (is_chief) p->timeline.trace->is_due = true;
        break;
    case TRACE_COLLECT:
        if (is_chief) collect(p);
        break;
    case TRACE_PART:
        hold_part(p, worker, m);
        break;
    default:
        break;
    }
    runner_ps_trace_pump(p);
}

void runner_ps_trace_message(struct runner_ps *p, int worker, const struct message *m)
{
    const uint64_t heard_ns = clock_ns();
    switch (m->trace.what) {
    case TRACE_PLAN:
        pass_on_plan(p, worker, m);
        return;
    case TRACE_MARK:
        answer_clock(p, worker, m, heard_ns);
        enter(p, worker, m);
        return;
    case TRACE_PUSHING:
        answer_clock(p, worker, m, heard_ns);
        if (is_current(p, m) && p->timeline.recording)
            p->timeline.trace->workers[worker].pushing_ns = heard_ns;
        return;
    default:
        if (is_current(p, m)) on_current(p, worker, m);
    }
}

void runner_ps_trace_close(struct runner_ps *p)
{
    struct runner_ps_trace *t = p->timeline.trace;
    if (!t) return;
    while (t->held) {
        struct held_part *part = t->held;
        t->held = part->next;
        free(part);
    }
    trace_close(&t->trace);
    free(t->workers);
    free(t);
    p->timeline.trace = NULL;
    p->timeline.recording = NULL;
}
