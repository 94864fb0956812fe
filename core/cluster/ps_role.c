/* ps_role.c - see ps_role.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/cluster/ps_role.h"
#include "core/cluster/verdict.h"

enum phase { EMPTY, READY, SERVING, ENDED };
enum { TASK_TEXT_MAX = 24, NOBODY = -1 };

/* A worker as this ps knows it. */
struct member {
    bool is_up, wants_values, has_windows, has_pushed, has_finished;
    uint64_t incarnation;
    uint64_t sequence;    /* of its last push that was applied or dropped */
    uint64_t wanted_step; /* wants_values: not before this step */
    uint64_t push_step;   /* has_pushed: the round that the push is for, this one or a later one */
    uint32_t gradients;   /* in it */
};

struct ps_role {
    struct role role;
    struct ps_options options;
    struct ps_config config;
    enum phase phase;
    struct member *members;
    int *applying; /* workers of the updates of this call, one after the other */
    int applying_count;
    uint32_t gradients; /* of the current step, here */
    uint64_t step;      /* sync: rounds applied; async: updates applied */
    bool is_relaying;   /* the verdict is another task's, which the text names */
    uint64_t tickets;   /* async, ps/0: given out */
    struct ps_counters counters;
    struct patience patience;
    char name[TASK_TEXT_MAX];
};

static const int chief = 0;

static struct action *send(struct ps_role *p, int worker, enum message_type type,
                           struct outbox *out)
{
    struct action *a = outbox_add(out, ACTION_SEND);
    a->job = JOB_WORKER;
    a->task = worker;
    a->message = (struct message){
        .type = type,
        .task = (uint32_t)p->options.task,
        .job = JOB_PS,
        .incarnation = p->options.incarnation,
        .step = p->step,
        .version = p->counters.applied,
    };
    return a;
}

static void end(struct ps_role *p, int code, const char *text, int except, struct outbox *out)
{
    if (p->phase == ENDED) return;
    p->phase = ENDED;
    for (int w = 0; w < p->options.workers; w++) {
        if (!p->members[w].is_up || w == except) continue;
        action_verdict(send(p, w, MESSAGE_VERDICT, out), code, p->is_relaying ? "" : p->name, text);
    }
    outbox_end(out, code, text);
}

/* May the worker that is answered compute one more step? */
static bool give_ticket(struct ps_role *p)
{
    if (p->config.is_sync) return p->step < p->config.last_step;
    if (p->options.task != 0 || p->tickets >= p->config.last_step) return false;
    p->tickets++;
    return true;
}

static struct action *send_values(struct ps_role *p, int worker, struct outbox *out)
{
    struct action *a = send(p, worker, MESSAGE_VALUES, out);
    if (give_ticket(p)) a->message.code = VALUES_TICKET;
    a->message.length = UINT64_MAX; /* the whole block: the runner knows its size */
    p->members[worker].wants_values = false;
    return a;
}

/* Values as they are now. Where the worker has a copy of its own, that is made first. */
static struct action *answer(struct ps_role *p, int worker, struct outbox *out)
{
    if (!p->config.takes_all) outbox_add(out, ACTION_SNAPSHOT)->task = worker;
    return send_values(p, worker, out);
}

/* Whoever wants values of a step that is reached now. */
static void answer_waiting(struct ps_role *p, struct outbox *out)
{
    if (p->phase != SERVING) return;
    for (int w = 0; w < p->options.workers; w++) {
        const struct member *m = &p->members[w];
        bool is_reached = !p->config.is_sync || p->step >= m->wanted_step;
        if (m->wants_values && is_reached) answer(p, w, out);
    }
}

static void share(struct ps_role *p, int worker, struct outbox *out)
{
    struct member *m = &p->members[worker];
    if (m->has_windows) return;
    m->has_windows = true;
    outbox_add(out, ACTION_SHARE)->task = worker;
}

static void setup(struct ps_role *p, int worker, const struct message *m, struct outbox *out)
{
    if (worker != chief || p->phase != EMPTY) {
        end(p, EXIT_LOST_PEER, "SETUP from a task that may not send it now", NOBODY, out);
        return;
    }
    struct action *a = outbox_add(out, ACTION_SETUP);
    a->message = *m;
}

static void initialize(struct ps_role *p, int worker, struct outbox *out)
{
    if (worker != chief || p->phase != READY) {
        end(p, EXIT_LOST_PEER, "INIT from a task that may not send it now", NOBODY, out);
        return;
    }
    outbox_add(out, ACTION_INITIALIZE)->task = worker;
    p->phase = SERVING;
    outbox_log(out, "serving");
    answer_waiting(p, out);
}

static void join(struct ps_role *p, int worker, const struct message *m, struct outbox *out)
{
    p->members[worker].wants_values = true;
    p->members[worker].wanted_step = m->step;
    if (p->phase == EMPTY) return;
    share(p, worker, out);
    answer_waiting(p, out);
}

static void drop(struct ps_role *p, int worker, struct outbox *out)
{
    p->counters.dropped_stale++;
    if (!p->config.is_sync && p->options.task == 0) p->tickets--;
    answer(p, worker, out)->message.code |= VALUES_DROPPED;
}

static bool is_in_round(const struct ps_role *p, int worker)
{
    return p->members[worker].has_pushed && p->members[worker].push_step == p->step;
}

static void begin_round(struct ps_role *p)
{
    p->gradients = 0;
    for (int w = 0; w < p->options.workers; w++)
        if (is_in_round(p, w)) p->gradients += p->members[w].gradients;
}

static void apply_round(struct ps_role *p, struct outbox *out)
{
    int count = 0, *applying = p->applying + p->applying_count;
    for (int w = 0; w < p->options.workers; w++)
        if (is_in_round(p, w)) applying[count++] = w;
    p->applying_count += count;
    struct action *a = outbox_add(out, ACTION_APPLY);
    a->workers = applying;
    a->worker_count = count;
    a->gradients = p->gradients;
    a->step = p->step;
    p->step++;
    p->counters.applied++;
    for (int i = 0; i < count; i++) {
        p->members[applying[i]].has_pushed = false;
        answer(p, applying[i], out);
    }
    begin_round(p);
    answer_waiting(p, out);
}

static void push_sync(struct ps_role *p, int worker, const struct message *m, struct outbox *out)
{
    struct member *member = &p->members[worker];
    if (m->step < p->step || m->step >= p->config.last_step) {
        drop(p, worker, out);
        return;
    }
    member->has_pushed = true;
    member->push_step = m->step;
    member->gradients = m->code;
    if (is_in_round(p, worker)) p->gradients += m->code;
    /* at most one round per worker can be full */
    for (int i = 0; i < p->options.workers && p->gradients >= p->config.replicas_to_aggregate; i++)
        apply_round(p, out);
}

static void push_async(struct ps_role *p, int worker, const struct message *m, struct outbox *out)
{
    uint64_t staleness = p->counters.applied - m->version;
    bool decides = p->options.task == 0 && p->config.max_staleness >= 0;
    if (decides && staleness > (uint64_t)p->config.max_staleness) {
        drop(p, worker, out);
        return;
    }
    p->applying[0] = worker;
    struct action *a = outbox_add(out, ACTION_APPLY);
    a->workers = p->applying;
    a->worker_count = 1;
    a->gradients = m->code;
    a->step = m->step;
    p->step++;
    p->counters.applied++;
    send_values(p, worker, out); /* APPLY of one gradient makes the snapshot on the way */
}

static void push(struct ps_role *p, int worker, const struct message *m, struct outbox *out)
{
    struct member *member = &p->members[worker];
    bool is_next = m->incarnation == member->incarnation && m->sequence == member->sequence + 1;
    if (p->phase != SERVING || !is_next || member->has_pushed || m->version > p->counters.applied ||
        m->code == 0) {
        p->counters.dropped_repeated++;
        outbox_log(out, "a push of worker/%d that is not its next one was not applied", worker);
        return;
    }
    member->sequence = m->sequence;
    p->applying_count = 0;
    patience_renew(&p->patience);
    if (p->config.is_sync)
        push_sync(p, worker, m, out);
    else
        push_async(p, worker, m, out);
}

/* The chief gets the final values when nobody can change them any more. */
static void finished(struct ps_role *p, int worker, struct outbox *out)
{
    p->members[worker].has_finished = true;
    patience_renew(&p->patience);
    for (int w = 0; w < p->options.workers; w++)
        if (!p->members[w].has_finished) return;
    answer(p, chief, out);
}

static void verdict(struct ps_role *p, int worker, const struct message *m, struct outbox *out)
{
    char text[ACTION_TEXT_MAX];
    message_text(m, text);
    p->is_relaying = true;
    end(p, (int)m->code, text, worker, out);
}

static void on_message(struct role *role, enum job job, int worker, const struct message *m,
                       struct outbox *out)
{
    struct ps_role *p = (struct ps_role *)role;
    if (p->phase == ENDED || job != JOB_WORKER) return;
    switch (m->type) {
    case MESSAGE_SETUP:
        setup(p, worker, m, out);
        break;
    case MESSAGE_INIT:
        initialize(p, worker, out);
        break;
    case MESSAGE_JOIN:
        join(p, worker, m, out);
        break;
    case MESSAGE_PUSH:
        push(p, worker, m, out);
        break;
    case MESSAGE_FINISHED:
        finished(p, worker, out);
        break;
    case MESSAGE_VERDICT:
        verdict(p, worker, m, out);
        break;
    default:
        outbox_log(out, "worker/%d sent message %u, which is not for a ps", worker, m->type);
    }
}

static void on_done(struct role *role, enum action_type done, err result, const char *text,
                    struct outbox *out)
{
    struct ps_role *p = (struct ps_role *)role;
    if (done != ACTION_SETUP || p->phase != EMPTY) return;
    if (result) {
        end(p, exit_code_of(result), text, NOBODY, out);
        return;
    }
    p->phase = READY;
    share(p, chief, out);
    send(p, chief, MESSAGE_READY, out);
    for (int w = 0; w < p->options.workers; w++)
        if (p->members[w].wants_values) share(p, w, out);
}

static void on_start(struct role *role, uint64_t now_ms, struct outbox *out)
{
    struct ps_role *p = (struct ps_role *)role;
    p->patience.now_ms = now_ms;
    patience_renew(&p->patience);
}

static void on_peer_up(struct role *role, enum job job, int worker, uint64_t incarnation,
                       struct outbox *out)
{
    struct ps_role *p = (struct ps_role *)role;
    p->members[worker] = (struct member){.is_up = true, .incarnation = incarnation};
    patience_renew(&p->patience);
}

static void on_peer_lost(struct role *role, enum job job, int worker, const char *why,
                         struct outbox *out)
{
    struct ps_role *p = (struct ps_role *)role;
    struct member *m = &p->members[worker];
    if (p->phase == ENDED || !m->is_up) return;
    bool was_at_work = p->phase != EMPTY || m->has_windows;
    *m = (struct member){.has_finished = m->has_finished};
    if (!was_at_work || (m->has_finished && worker != chief)) {
        outbox_log(out, "worker/%d is gone: %s", worker, why);
        return;
    }
    char text[ACTION_TEXT_MAX];
    snprintf(text, sizeof text, "lost worker/%d: %s", worker, why);
    end(p, EXIT_LOST_PEER, text, worker, out);
}

static void on_stop(struct role *role, int code, const char *why, struct outbox *out)
{
    end((struct ps_role *)role, code, why, NOBODY, out);
}

/* Who has neither pushed nor finished while others have: "worker/1, worker/4". */
static int name_missing(const struct ps_role *p, char *text, size_t size)
{
    int missing = 0;
    size_t used = 0;
    text[0] = '\0';
    for (int w = 0; w < p->options.workers; w++) {
        const struct member *m = &p->members[w];
        if (m->has_pushed || m->has_finished) continue;
        if (used + TASK_TEXT_MAX < size)
            used += (size_t)snprintf(text + used, size - used, "%sworker/%d", used ? ", " : "", w);
        missing++;
    }
    return missing;
}

static bool somebody_waits(const struct ps_role *p)
{
    for (int w = 0; w < p->options.workers; w++)
        if (p->members[w].has_pushed || p->members[w].has_finished) return true;
    return false;
}

static void watch_wait(struct ps_role *p, const char *what, uint64_t limit_ms, struct outbox *out)
{
    char text[ACTION_TEXT_MAX];
    if (patience_is_over(&p->patience, what, limit_ms, out, text))
        end(p, EXIT_TIMEOUT, text, NOBODY, out);
}

static void on_tick(struct role *role, uint64_t now_ms, struct outbox *out)
{
    struct ps_role *p = (struct ps_role *)role;
    p->patience.now_ms = now_ms;
    if (p->phase != SERVING) return;
    if (!somebody_waits(p)) {
        patience_renew(&p->patience);
        return;
    }
    char missing[ACTION_TEXT_MAX / 2], what[ACTION_TEXT_MAX];
    if (!name_missing(p, missing, sizeof missing)) {
        watch_wait(p, "worker/0 to evaluate (--end_timeout)", p->options.end_timeout_ms, out);
        return;
    }
    snprintf(what, sizeof what, "%s at step %llu (--step_timeout)", missing,
             (unsigned long long)p->step + 1);
    watch_wait(p, what, p->options.step_timeout_ms, out);
}

static const struct role_ops ops = {
    .name = "ps",
    .start = on_start,
    .peer_up = on_peer_up,
    .peer_lost = on_peer_lost,
    .message = on_message,
    .done = on_done,
    .stop = on_stop,
    .tick = on_tick,
};

struct role *ps_role_new(const struct ps_options *options)
{
    struct ps_role *p = calloc(1, sizeof *p);
    if (!p) return NULL;
    p->role.ops = &ops;
    p->options = *options;
    snprintf(p->name, sizeof p->name, "ps/%d", options->task);
    p->members = calloc((size_t)options->workers, sizeof *p->members);
    p->applying = calloc((size_t)options->workers, sizeof *p->applying);
    if (p->members && p->applying) return &p->role;
    ps_role_free(&p->role);
    return NULL;
}

void ps_role_free(struct role *role)
{
    struct ps_role *p = (struct ps_role *)role;
    if (!p) return;
    free(p->members);
    free(p->applying);
    free(p);
}

void ps_role_configure(struct role *role, const struct ps_config *config)
{
    ((struct ps_role *)role)->config = *config;
}

struct ps_counters ps_role_counters(const struct role *role)
{
    return ((const struct ps_role *)role)->counters;
}

bool ps_role_is_set_up(const struct role *role)
{
    return ((const struct ps_role *)role)->phase != EMPTY;
}
