/* worker_task.c - see worker_task.h.
 *
 * A connection begins over tcp. If the WELCOME says that the ps runs on this very host (same boot
 * id) and listens for shared memory, a second connection is made there; the ps forgets the first
 * when it is greeted on the second. Where that fails, tcp stays.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/cluster/greeting.h"
#include "core/cluster/setup.h"
#include "core/cluster/verdict.h"
#include "core/cluster/worker_role.h"
#include "core/cluster/worker_task.h"

enum { RETRY_FIRST_MS = 10, RETRY_MAX_MS = 500, NOTE_MS = 10000 };

/* One attempt at a connection; the link's context. */
struct line {
    struct worker_task *worker;
    struct link *link; /* NULL: none */
    int ps;
};

struct worker_task {
    struct task task; /* first */
    struct worker_task_options options;
    struct session session;
    uint32_t gradients_per_push;
    uint64_t last_step;
    uint64_t noted_ms;
    bool has_stepped; /* a step whose event has not been told yet */
    uint64_t step;
    double loss;
    struct line *tcp, *shm; /* [ps] */
};

static uint64_t block_bytes(const struct task *t, int ps)
{
    const struct worker_task *w = (const struct worker_task *)t;
    return (uint64_t)w->session.layout->block_floats[ps] * sizeof(float);
}

/* ---- what the role asks for ---- */

static err describe(struct worker_task *w, int ps)
{
    char *text =
        setup_write(w->options.spec, w->session.layout, ps,
                    w->options.task.cluster->hosts[JOB_WORKER].count, (int64_t)w->last_step);
    if (!text) return fail(ERR_MEMORY, "no memory for the setup of ps/%d", ps);
    const struct message m = {
        .type = MESSAGE_SETUP,
        .job = JOB_WORKER,
        .task = (uint32_t)w->task.index,
        .incarnation = w->task.incarnation,
        .body = text,
        .body_bytes = (uint32_t)strlen(text),
    };
    err e = w->task.peers[ps].link ? link_send(w->task.peers[ps].link, &m) : OK;
    free(text);
    return e;
}

/* Initial values travel where gradients will. */
static err fill(struct worker_task *w, int ps)
{
    if (!block_bytes(&w->task, ps)) return OK;
    if (!w->session.gradients[ps]) return fail(ERR_PROTOCOL, "ps/%d shared no windows", ps);
    return session_initial_values(&w->session, ps, w->session.gradients[ps]);
}

static err check_bound(const struct worker_task *w)
{
    for (int ps = 0; ps < w->task.peer_count; ps++)
        if (block_bytes(&w->task, ps) && !w->session.values[ps])
            return fail(ERR_PROTOCOL, "ps/%d shared no windows", ps);
    return OK;
}

static void compute(struct worker_task *w, const struct action *a)
{
    err e = check_bound(w);
    if (!e && w->session.batches == 0 && w->options.events.placed)
        w->options.events.placed(w->options.context, &w->session);
    if (!e) {
        e = session_step(&w->session, &w->loss);
        if (e) e = fail_prefix(e, "step %llu", (unsigned long long)a->step + 1);
    }
    w->has_stepped = !e;
    w->step = a->step + 1;
    task_done(&w->task, ACTION_COMPUTE, e);
}

/* The gradients have left; what people want to see is done while others work. */
static void flushed(struct task *t)
{
    struct worker_task *w = (struct worker_task *)t;
    if (!w->has_stepped) return;
    w->has_stepped = false;
    if (w->options.events.stepped)
        w->options.events.stepped(w->options.context, &w->session, w->step, w->loss);
}

static void evaluate(struct worker_task *w, const struct action *a)
{
    struct evaluation evaluation = {0};
    err e = check_bound(w);
    if (!e) e = session_evaluate(&w->session, &evaluation);
    if (!e && w->options.events.evaluated)
        w->options.events.evaluated(w->options.context, &w->session, a->step, &evaluation);
    task_done(&w->task, ACTION_EVALUATE, e);
}

static void act(struct task *t, const struct action *a)
{
    struct worker_task *w = (struct worker_task *)t;
    err e = OK;
    switch (a->type) {
    case ACTION_DESCRIBE:
        e = describe(w, a->task);
        break;
    case ACTION_FILL:
        e = fill(w, a->task);
        break;
    case ACTION_COMPUTE:
        compute(w, a);
        break;
    case ACTION_EVALUATE:
        evaluate(w, a);
        break;
    default:
        break;
    }
    if (e) t->role->ops->stop(t->role, exit_code_of(e), error_text(), &t->outbox);
}

/* ---- connecting ---- */

static const struct link_events events;

static void note_trouble(struct worker_task *w, int ps, const char *why)
{
    snprintf(w->task.peers[ps].trouble, sizeof w->task.peers[ps].trouble, "%s", why);
}

static void plan_retry(struct worker_task *w, int ps)
{
    struct peer *peer = &w->task.peers[ps];
    uint64_t pause_ms = RETRY_FIRST_MS << (peer->tries < 6 ? peer->tries : 6);
    peer->tries++;
    peer->retry_ms = clock_ms() + (pause_ms < RETRY_MAX_MS ? pause_ms : RETRY_MAX_MS);
}

static void connect_line(struct worker_task *w, struct line *line,
                         const struct transport *transport, const char *address)
{
    if (transport->connect(w->options.task.loop, address, &events, line, &line->link)) {
        line->link = NULL;
        note_trouble(w, line->ps, error_text());
        plan_retry(w, line->ps);
        return;
    }
    link_expect(line->link, block_bytes(&w->task, line->ps), block_bytes(&w->task, line->ps));
}

static void connect_ps(struct worker_task *w, int ps)
{
    const struct transport *transport =
        w->options.task.transport == TRANSPORT_INPROC ? &transport_inproc : &transport_tcp;
    connect_line(w, &w->tcp[ps], transport, w->options.task.cluster->hosts[JOB_PS].at[ps]);
}

static void on_opened(void *context, struct link *link)
{
    struct line *line = context;
    if (greeting_send(&line->worker->task, link, MESSAGE_HELLO, NULL))
        log_line(LOG_WARNING, "%s", error_text());
}

static void accept_peer(struct line *line, uint64_t incarnation)
{
    struct worker_task *w = line->worker;
    struct peer *peer = &w->task.peers[line->ps];
    peer->link = line->link;
    peer->incarnation = incarnation;
    log_line(LOG_DEBUG, "ps/%d is here over %s (%s)", line->ps, link_transport(line->link)->name,
             link_peer_name(line->link));
    task_peer_up(&w->task, line->ps);
}

static bool offers_memory(const struct worker_task *w, const struct greeting *g)
{
    enum transport_choice choice = w->options.task.transport;
    if (choice != TRANSPORT_AUTO && choice != TRANSPORT_SHM) return false;
    return g->shm_name[0] && g->boot_id[0] && strcmp(g->boot_id, greeting_boot_id()) == 0;
}

static void welcome(struct line *line, const struct message *m)
{
    struct worker_task *w = line->worker;
    struct greeting g;
    err e = greeting_read(&w->task, m, &g);
    if (!e && g.task != line->ps)
        e = fail(ERR_INPUT, "ps/%d answers at the address of ps/%d", g.task, line->ps);
    if (e) {
        task_end(&w->task, e);
        return;
    }
    struct line *tcp = &w->tcp[line->ps], *shm = &w->shm[line->ps];
    if (line == shm) { /* the ps has hung up on the first connection */
        if (tcp->link) link_close(tcp->link);
        tcp->link = NULL;
    } else if (offers_memory(w, &g)) {
        w->task.peers[line->ps].incarnation = g.incarnation;
        connect_line(w, shm, &transport_shm, g.shm_name);
        if (shm->link) return;
    } else if (w->options.task.transport == TRANSPORT_SHM) {
        task_end(&w->task, fail(ERR_INPUT,
                                "--transport=shm, but ps/%d shares no memory with this "
                                "host",
                                line->ps));
        return;
    }
    accept_peer(line, g.incarnation);
}

static void refused(struct line *line, const struct message *m)
{
    char text[ACTION_TEXT_MAX];
    message_text(m, text);
    err kind = m->code == EXIT_INPUT ? ERR_INPUT : ERR_PEER;
    struct task *t = &line->worker->task;
    err e = fail(kind, "ps/%d refused this worker: %s", line->ps, text);
    /* The job is no business of a worker that does not belong to it: no verdict for the others. */
    for (int ps = 0; ps < t->peer_count; ps++) t->peers[ps].link = NULL;
    task_end(t, e);
}

static void on_message(void *context, struct link *link, const struct message *m)
{
    struct line *line = context;
    struct worker_task *w = line->worker;
    if (w->task.has_ended) return;
    if (m->type == MESSAGE_REFUSED) /* at once, or when the chief has come with another spec */
        refused(line, m);
    else if (w->task.peers[line->ps].link == link)
        task_message(&w->task, line->ps, m);
    else if (m->type == MESSAGE_WELCOME)
        welcome(line, m);
}

static void on_shared(void *context, struct link *link, const struct window *values,
                      const struct window *gradients)
{
    struct line *line = context;
    session_bind(&line->worker->session, line->ps, values->base, gradients->base);
}

static void on_closed(void *context, struct link *link, err why)
{
    struct line *line = context;
    struct worker_task *w = line->worker;
    struct peer *peer = &w->task.peers[line->ps];
    line->link = NULL;
    if (peer->link == link) {
        char reason[ACTION_TEXT_MAX];
        snprintf(reason, sizeof reason, "%s: %s",
                 w->options.task.cluster->hosts[JOB_PS].at[line->ps], error_text());
        task_peer_lost(&w->task, line->ps, reason);
        if (!w->task.has_ended) plan_retry(w, line->ps);
        return;
    }
    if (peer->is_up || w->task.has_ended) return;
    note_trouble(w, line->ps, error_text());
    if (line == &w->shm[line->ps] && w->tcp[line->ps].link) { /* no shared memory after all */
        log_line(LOG_INFO, "ps/%d: tcp, no shared memory: %s", line->ps, error_text());
        accept_peer(&w->tcp[line->ps], peer->incarnation);
        return;
    }
    if (line == &w->tcp[line->ps] && w->shm[line->ps].link) return; /* it moved there */
    plan_retry(w, line->ps);
}

static const struct link_events events = {
    .opened = on_opened,
    .message = on_message,
    .shared = on_shared,
    .closed = on_closed,
};

/* Who is not there yet, every 10 s, and the limit. */
static void watch_start(struct worker_task *w, int ps, uint64_t now_ms)
{
    const struct peer *peer = &w->task.peers[ps];
    uint64_t waited_ms = now_ms - w->task.started_ms, limit_ms = w->options.task.limits.start_ms;
    const char *address = w->options.task.cluster->hosts[JOB_PS].at[ps];
    if (waited_ms >= limit_ms)
        task_end(&w->task, fail(ERR_TIMEOUT,
                                "ps/%d at %s did not come within %llu s "
                                "(--start_timeout): %s",
                                ps, address, (unsigned long long)limit_ms / 1000, peer->trouble));
    else if (now_ms - w->noted_ms >= NOTE_MS)
        log_line(LOG_INFO, "waiting for ps/%d at %s: %s, %llu s of %llu s", ps, address,
                 peer->trouble[0] ? peer->trouble : "no answer yet",
                 (unsigned long long)waited_ms / 1000, (unsigned long long)limit_ms / 1000);
}

static void tick(struct task *t, uint64_t now_ms)
{
    struct worker_task *w = (struct worker_task *)t;
    bool is_noting = now_ms - w->noted_ms >= NOTE_MS;
    for (int ps = 0; ps < t->peer_count && !t->has_ended; ps++) {
        struct peer *peer = &t->peers[ps];
        if (peer->is_up) continue;
        bool is_idle = !w->tcp[ps].link && !w->shm[ps].link;
        if (is_idle && now_ms >= peer->retry_ms) connect_ps(w, ps);
        watch_start(w, ps, now_ms);
    }
    if (is_noting) w->noted_ms = now_ms;
}

static void hang_up(struct task *t)
{
    struct worker_task *w = (struct worker_task *)t;
    for (int ps = 0; ps < t->peer_count; ps++) {
        if (w->tcp[ps].link) link_close(w->tcp[ps].link);
        if (w->shm[ps].link) link_close(w->shm[ps].link);
        w->tcp[ps].link = w->shm[ps].link = t->peers[ps].link = NULL;
    }
}

static const struct task_ops ops = {
    .act = act, .flushed = flushed, .tick = tick, .hang_up = hang_up, .block_bytes = block_bytes};

/* ---- life ---- */

static err open_session(struct worker_task *w)
{
    const struct cluster_spec *cluster = w->options.task.cluster;
    int workers = cluster->hosts[JOB_WORKER].count;
    w->gradients_per_push = setup_gradients_per_push(w->options.spec, workers, cluster->task);
    const struct session_options options = {
        .spec = w->options.spec,
        .device = w->options.device,
        .worker = cluster->task,
        .workers = workers,
        .ps_count = cluster->hosts[JOB_PS].count,
        .batches_per_push = (int)w->gradients_per_push,
    };
    TRY(session_open(&options, &w->session));
    w->last_step = (uint64_t)spec_last_step(w->options.spec, w->session.train_data.rows, workers);
    return OK;
}

static err open_role(struct worker_task *w)
{
    const struct task_options *o = &w->options.task;
    int ps_count = o->cluster->hosts[JOB_PS].count;
    uint64_t *bytes = calloc((size_t)ps_count, sizeof *bytes);
    if (!bytes) return fail(ERR_MEMORY, "no memory for %d ps", ps_count);
    for (int ps = 0; ps < ps_count; ps++) bytes[ps] = block_bytes(&w->task, ps);
    w->task.incarnation = greeting_draw_incarnation();
    const struct worker_options options = {
        .task = o->cluster->task,
        .ps_count = ps_count,
        .incarnation = w->task.incarnation,
        .block_bytes = bytes,
        .gradients_per_push = w->gradients_per_push,
        .drops_gradients =
            setup_drops_gradients(w->options.spec, o->cluster->hosts[JOB_WORKER].count),
        .start_timeout_ms = o->limits.start_ms,
        .step_timeout_ms = o->limits.step_ms,
        .end_timeout_ms = o->limits.end_ms,
    };
    struct role *role = worker_role_new(&options);
    free(bytes);
    return task_open(&w->task, o, &ops, role);
}

static err open_parts(struct worker_task *w)
{
    int ps_count = w->options.task.cluster->hosts[JOB_PS].count;
    w->tcp = calloc((size_t)ps_count, sizeof *w->tcp);
    w->shm = calloc((size_t)ps_count, sizeof *w->shm);
    if (!w->tcp || !w->shm) return fail(ERR_MEMORY, "no memory for %d ps", ps_count);
    for (int ps = 0; ps < ps_count; ps++)
        w->tcp[ps] = w->shm[ps] = (struct line){.worker = w, .ps = ps};
    TRY(open_session(w));
    TRY(open_role(w));
    w->noted_ms = w->task.started_ms;
    for (int ps = 0; ps < ps_count; ps++) connect_ps(w, ps);
    return OK;
}

err worker_task_open(const struct worker_task_options *options, struct worker_task **ret)
{
    struct worker_task *w = calloc(1, sizeof *w);
    if (!w) return fail(ERR_MEMORY, "no memory for a worker");
    w->options = *options;
    err e = open_parts(w);
    if (e) {
        worker_task_close(w);
        return e;
    }
    *ret = w;
    return OK;
}

void worker_task_close(struct worker_task *w)
{
    if (!w) return;
    if (w->task.peers) hang_up(&w->task);
    worker_role_free(w->task.role);
    task_close(&w->task);
    if (w->session.options.device) session_close(&w->session);
    free(w->tcp);
    free(w->shm);
    free(w);
}

struct task *worker_task_task(struct worker_task *w)
{
    return &w->task;
}

struct session *worker_task_session(struct worker_task *w)
{
    return &w->session;
}

uint64_t worker_task_last_step(const struct worker_task *w)
{
    return w->last_step;
}
