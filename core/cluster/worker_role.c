/* worker_role.c - see worker_role.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/cluster/verdict.h"
#include "core/cluster/worker_role.h"

enum phase { GREETING, DESCRIBING, ASKING, WAITING, COMPUTING, FINISHING, EVALUATING, ENDED };
enum { TASK_TEXT_MAX = 24, NOBODY = -1 };
/* A ps that waits for another worker has the same limit and knows whom to name: it goes first. */
enum { STEP_GRACE_MS = 1000 };

/* A ps as this worker knows it. */
struct server {
    bool is_up, is_ready, has_answered;
    uint64_t bytes;         /* of its block */
    uint64_t sequence;      /* of the last push to it */
    uint64_t step, version; /* of the values that came last */
};

struct worker_role {
    struct role role;
    struct worker_options options;
    struct server *servers;
    enum phase phase;
    bool has_ticket;
    bool is_relaying;       /* the verdict is another task's, which the text names */
    uint64_t global_step;   /* as ps/0 said last */
    uint64_t computed_step; /* of the values that the gradient in the windows comes from */
    struct patience patience;
    char name[TASK_TEXT_MAX];
};

static bool is_chief(const struct worker_role *w)
{
    return w->options.task == 0;
}

static struct action *send(struct worker_role *w, int ps, enum message_type type,
                           struct outbox *out)
{
    struct action *a = outbox_add(out, ACTION_SEND);
    a->job = JOB_PS;
    a->task = ps;
    a->message = (struct message){
        .type = type,
        .task = (uint32_t)w->options.task,
        .job = JOB_WORKER,
        .incarnation = w->options.incarnation,
        .step = w->servers[ps].step,
        .version = w->servers[ps].version,
    };
    return a;
}

static void end(struct worker_role *w, int code, const char *text, int except, struct outbox *out)
{
    if (w->phase == ENDED) return;
    w->phase = ENDED;
    for (int ps = 0; ps < w->options.ps_count; ps++) {
        if (!w->servers[ps].is_up || ps == except) continue;
        action_verdict(send(w, ps, MESSAGE_VERDICT, out), code, w->is_relaying ? "" : w->name,
                       text);
    }
    outbox_end(out, code, text);
}

static void enter(struct worker_role *w, enum phase phase)
{
    w->phase = phase;
    patience_renew(&w->patience);
    for (int ps = 0; ps < w->options.ps_count; ps++) w->servers[ps].has_answered = false;
}

/* ps/0 owns the global step; a ps without variables has nothing else to say. */
static bool is_asked(const struct worker_role *w, int ps)
{
    return ps == 0 || w->servers[ps].bytes > 0;
}

static bool all_answered(const struct worker_role *w)
{
    for (int ps = 0; ps < w->options.ps_count; ps++)
        if (is_asked(w, ps) && !w->servers[ps].has_answered) return false;
    return true;
}

static void join(struct worker_role *w, struct outbox *out)
{
    enter(w, WAITING);
    for (int ps = 0; ps < w->options.ps_count; ps++)
        if (is_asked(w, ps)) send(w, ps, MESSAGE_JOIN, out);
}

static void describe(struct worker_role *w, struct outbox *out)
{
    enter(w, DESCRIBING);
    for (int ps = 0; ps < w->options.ps_count; ps++) outbox_add(out, ACTION_DESCRIBE)->task = ps;
}

static void ready(struct worker_role *w, int ps, struct outbox *out)
{
    if (w->phase != DESCRIBING || w->servers[ps].is_ready) return;
    w->servers[ps].is_ready = true;
    for (int i = 0; i < w->options.ps_count; i++)
        if (!w->servers[i].is_ready) return;
    for (int i = 0; i < w->options.ps_count; i++) {
        outbox_add(out, ACTION_FILL)->task = i;
        send(w, i, MESSAGE_INIT, out)->message.length = w->servers[i].bytes;
    }
    join(w, out);
}

static void compute(struct worker_role *w, struct outbox *out)
{
    enter(w, COMPUTING);
    w->computed_step = w->global_step;
    outbox_add(out, ACTION_COMPUTE)->step = w->global_step;
}

static void finish(struct worker_role *w, struct outbox *out)
{
    enter(w, FINISHING);
    for (int ps = 0; ps < w->options.ps_count; ps++) send(w, ps, MESSAGE_FINISHED, out);
}

static void evaluate(struct worker_role *w, struct outbox *out)
{
    enter(w, EVALUATING);
    outbox_add(out, ACTION_EVALUATE)->step = w->global_step;
}

static void push_to(struct worker_role *w, int ps, struct outbox *out)
{
    struct server *s = &w->servers[ps];
    struct action *a = send(w, ps, MESSAGE_PUSH, out);
    a->message.sequence = ++s->sequence;
    a->message.step = w->computed_step;
    a->message.code = w->options.gradients_per_push;
    a->message.length = s->bytes;
}

static void push(struct worker_role *w, struct outbox *out)
{
    enter(w, w->options.drops_gradients ? ASKING : WAITING);
    push_to(w, 0, out);
    for (int ps = 1; ps < w->options.ps_count && w->phase == WAITING; ps++)
        if (is_asked(w, ps)) push_to(w, ps, out);
}

/* All values of a step are there, or nothing more is wanted of this worker. */
static void go_on(struct worker_role *w, struct outbox *out)
{
    if (!all_answered(w)) return;
    if (w->phase == FINISHING)
        evaluate(w, out);
    else if (w->has_ticket)
        compute(w, out);
    else
        finish(w, out);
}

/* ps/0 has taken the gradient or dropped it: now the others. */
static void pass_on(struct worker_role *w, bool is_dropped, struct outbox *out)
{
    enter(w, WAITING);
    w->servers[0].has_answered = true;
    if (is_dropped && !w->has_ticket) {
        finish(w, out);
        return;
    }
    for (int ps = 1; ps < w->options.ps_count; ps++) {
        if (!is_asked(w, ps)) continue;
        if (is_dropped)
            send(w, ps, MESSAGE_JOIN, out)->message.step = w->global_step;
        else
            push_to(w, ps, out);
    }
    go_on(w, out);
}

static void values(struct worker_role *w, int ps, const struct message *m, struct outbox *out)
{
    struct server *s = &w->servers[ps];
    bool is_expected = w->phase == WAITING || w->phase == FINISHING || (w->phase == ASKING && !ps);
    if (!is_expected || s->has_answered) return;
    s->has_answered = true;
    s->step = m->step;
    s->version = m->version;
    if (ps == 0) {
        w->global_step = m->step;
        w->has_ticket = m->code & VALUES_TICKET;
    }
    if (w->phase == ASKING)
        pass_on(w, m->code & VALUES_DROPPED, out);
    else
        go_on(w, out);
}

static void verdict(struct worker_role *w, int ps, const struct message *m, struct outbox *out)
{
    char text[ACTION_TEXT_MAX];
    message_text(m, text);
    w->is_relaying = true;
    end(w, (int)m->code, text, ps, out);
}

static void on_message(struct role *role, enum job job, int ps, const struct message *m,
                       struct outbox *out)
{
    struct worker_role *w = (struct worker_role *)role;
    if (w->phase == ENDED || job != JOB_PS) return;
    switch (m->type) {
    case MESSAGE_READY:
        ready(w, ps, out);
        break;
    case MESSAGE_VALUES:
        values(w, ps, m, out);
        break;
    case MESSAGE_VERDICT:
        verdict(w, ps, m, out);
        break;
    default:
        break;
    }
}

static void on_done(struct role *role, enum action_type done, err result, const char *text,
                    struct outbox *out)
{
    struct worker_role *w = (struct worker_role *)role;
    if (w->phase == ENDED) return;
    if (result)
        end(w, exit_code_of(result), text, NOBODY, out);
    else if (done == ACTION_COMPUTE)
        push(w, out);
    else if (done == ACTION_EVALUATE)
        end(w, EXIT_DONE, "", NOBODY, out);
}

static void on_start(struct role *role, uint64_t now_ms, struct outbox *out)
{
    struct worker_role *w = (struct worker_role *)role;
    w->patience.now_ms = now_ms;
    enter(w, GREETING);
}

static void on_peer_up(struct role *role, enum job job, int ps, uint64_t incarnation,
                       struct outbox *out)
{
    struct worker_role *w = (struct worker_role *)role;
    w->servers[ps].is_up = true;
    if (w->phase != GREETING) return;
    for (int i = 0; i < w->options.ps_count; i++)
        if (!w->servers[i].is_up) return;
    if (is_chief(w))
        describe(w, out);
    else
        join(w, out);
}

static void on_peer_lost(struct role *role, enum job job, int ps, const char *why,
                         struct outbox *out)
{
    struct worker_role *w = (struct worker_role *)role;
    if (w->phase == ENDED || !w->servers[ps].is_up) return;
    w->servers[ps].is_up = false;
    if (w->phase == GREETING) return; /* the runner goes on trying */
    char text[ACTION_TEXT_MAX];
    snprintf(text, sizeof text, "lost ps/%d: %s", ps, why);
    end(w, EXIT_LOST_PEER, text, ps, out);
}

static void on_stop(struct role *role, int code, const char *why, struct outbox *out)
{
    end((struct worker_role *)role, code, why, NOBODY, out);
}

/* "ps/0, ps/3" */
static void name_missing(const struct worker_role *w, char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    for (int ps = 0; ps < w->options.ps_count && used + TASK_TEXT_MAX < size; ps++) {
        const struct server *s = &w->servers[ps];
        bool is_there = w->phase == DESCRIBING ? s->is_ready : s->has_answered || !is_asked(w, ps);
        if (!is_there)
            used += (size_t)snprintf(text + used, size - used, "%sps/%d", used ? ", " : "", ps);
    }
}

struct wait {
    const char *what, *flag;
    uint64_t limit_ms;
};

/* What the phase waits for; limit 0: for nothing (the runner watches GREETING). */
static struct wait current_wait(const struct worker_role *w)
{
    const struct worker_options *o = &w->options;
    switch (w->phase) {
    case DESCRIBING:
        return (struct wait){"to get ready", "--start_timeout", o->start_timeout_ms};
    case ASKING:
    case WAITING:
        if (w->global_step == 0 && !w->has_ticket)
            return (struct wait){"to be initialised by the chief", "--start_timeout",
                                 o->start_timeout_ms};
        return (struct wait){"to answer", "--step_timeout", o->step_timeout_ms + STEP_GRACE_MS};
    case FINISHING:
        return (struct wait){"to end the job", "--end_timeout", o->end_timeout_ms};
    default:
        return (struct wait){0};
    }
}

static void on_tick(struct role *role, uint64_t now_ms, struct outbox *out)
{
    struct worker_role *w = (struct worker_role *)role;
    w->patience.now_ms = now_ms;
    const struct wait wait = current_wait(w);
    if (!wait.limit_ms) return;
    char missing[ACTION_TEXT_MAX / 2], what[ACTION_TEXT_MAX], text[ACTION_TEXT_MAX];
    name_missing(w, missing, sizeof missing);
    snprintf(what, sizeof what, "%s %s (%s)", missing, wait.what, wait.flag);
    if (patience_is_over(&w->patience, what, wait.limit_ms, out, text))
        end(w, EXIT_TIMEOUT, text, NOBODY, out);
}

static const struct role_ops ops = {
    .name = "worker",
    .start = on_start,
    .peer_up = on_peer_up,
    .peer_lost = on_peer_lost,
    .message = on_message,
    .done = on_done,
    .stop = on_stop,
    .tick = on_tick,
};

struct role *worker_role_new(const struct worker_options *options)
{
    struct worker_role *w = calloc(1, sizeof *w);
    if (!w) return NULL;
    w->role.ops = &ops;
    w->options = *options;
    snprintf(w->name, sizeof w->name, "worker/%d", options->task);
    w->servers = calloc((size_t)options->ps_count, sizeof *w->servers);
    if (!w->servers) {
        free(w);
        return NULL;
    }
    for (int ps = 0; ps < options->ps_count; ps++) w->servers[ps].bytes = options->block_bytes[ps];
    return &w->role;
}

void worker_role_free(struct role *role)
{
    struct worker_role *w = (struct worker_role *)role;
    if (!w) return;
    free(w->servers);
    free(w);
}

uint64_t worker_role_global_step(const struct role *role)
{
    return ((const struct worker_role *)role)->global_step;
}
