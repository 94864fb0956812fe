/* stage.c - see stage.h. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/random.h"
#include "tests/cluster/stage.h"

enum { TO_WORKER, TO_PS };
enum { FINISH_MS = 1000 };

struct parcel {
    struct parcel *next;
    struct message message;
    char body[ACTION_TEXT_MAX];
};

static void flush_ps(struct stage *s, int ps);
static void flush_worker(struct stage *s, int worker);

static uint64_t draw(struct stage *s, uint64_t below)
{
    return random_u64(s->options.seed, s->draws++) % below;
}

static void post(struct stage *s, int ps, int worker, int direction, const struct action *a)
{
    struct parcel *parcel = calloc(1, sizeof *parcel);
    assert(parcel);
    parcel->message = a->message;
    if (a->text[0]) {
        snprintf(parcel->body, sizeof parcel->body, "%s", a->text);
        parcel->message.body_bytes = (uint32_t)strlen(parcel->body);
    }
    struct parcel **end = &s->first[ps][worker][direction];
    while (*end) end = &(*end)->next;
    *end = parcel;
}

static void drop_queue(struct stage *s, int ps, int worker)
{
    for (int direction = 0; direction < 2; direction++)
        for (struct parcel *p = s->first[ps][worker][direction], *next; p; p = next) {
            next = p->next;
            free(p);
        }
    s->first[ps][worker][TO_WORKER] = s->first[ps][worker][TO_PS] = NULL;
}

static void note_end(struct actor *actor, const struct action *a)
{
    assert(!actor->has_ended);
    actor->has_ended = true;
    actor->code = a->code;
    snprintf(actor->text, sizeof actor->text, "%s", a->text);
}

static void note_applied(struct actor *actor, const struct action *a)
{
    assert(actor->applied_count < STAGE_APPLIED_MAX);
    struct applied *applied = &actor->applied[actor->applied_count++];
    *applied = (struct applied){
        .step = a->step, .gradients = a->gradients, .worker_count = a->worker_count};
    for (int i = 0; i < a->worker_count; i++) {
        applied->workers[i] = a->workers[i];
        applied->sequences[i] = actor->pushed[a->workers[i]];
    }
}

static void setup(struct stage *s, struct actor *actor)
{
    ps_role_configure(actor->role, &s->options.config);
    actor->role->ops->done(actor->role, ACTION_SETUP, OK, "", &actor->outbox);
}

static void flush_ps(struct stage *s, int ps)
{
    struct actor *actor = &s->ps[ps];
    for (int i = 0; i < actor->outbox.count && !actor->has_ended; i++) {
        const struct action a = actor->outbox.at[i];
        if (a.type == ACTION_SEND && s->workers[a.task].is_alive)
            post(s, ps, a.task, TO_WORKER, &a);
        else if (a.type == ACTION_SETUP)
            setup(s, actor);
        else if (a.type == ACTION_APPLY)
            note_applied(actor, &a);
        else if (a.type == ACTION_END)
            note_end(actor, &a);
    }
    actor->outbox.count = 0;
}

static void describe(struct stage *s, int ps, int worker)
{
    const struct action a = {
        .type = ACTION_SEND,
        .message = {.type = MESSAGE_SETUP, .job = JOB_WORKER, .task = (uint32_t)worker},
    };
    post(s, ps, worker, TO_PS, &a);
}

static void flush_worker(struct stage *s, int worker)
{
    struct actor *actor = &s->workers[worker];
    for (int i = 0; i < actor->outbox.count && !actor->has_ended; i++) {
        const struct action a = actor->outbox.at[i];
        if (a.type == ACTION_SEND && s->ps[a.task].is_alive)
            post(s, a.task, worker, TO_PS, &a);
        else if (a.type == ACTION_DESCRIBE)
            describe(s, a.task, worker);
        else if (a.type == ACTION_COMPUTE)
            actor->is_computing = true;
        else if (a.type == ACTION_EVALUATE) {
            actor->evaluated++;
            actor->role->ops->done(actor->role, ACTION_EVALUATE, OK, "", &actor->outbox);
        } else if (a.type == ACTION_END)
            note_end(actor, &a);
    }
    actor->outbox.count = 0;
}

void stage_open(struct stage *s, const struct stage_options *options)
{
    *s = (struct stage){.options = *options};
    for (int i = 0; i < options->ps_count; i++) {
        struct actor *actor = &s->ps[i];
        const struct ps_options o = {i, options->workers, 100 + (uint64_t)i, FINISH_MS, FINISH_MS};
        actor->role = ps_role_new(&o);
        actor->is_alive = true;
        actor->applied = calloc(STAGE_APPLIED_MAX, sizeof *actor->applied);
        actor->role->ops->start(actor->role, s->now_ms, &actor->outbox);
    }
    for (int i = 0; i < options->workers; i++) {
        struct actor *actor = &s->workers[i];
        const struct worker_options o = {
            .task = i,
            .ps_count = options->ps_count,
            .incarnation = 200 + (uint64_t)i,
            .block_bytes = options->block_bytes,
            .gradients_per_push = options->gradients_per_push,
            .drops_gradients = options->drops_gradients,
            .start_timeout_ms = FINISH_MS,
            .step_timeout_ms = FINISH_MS,
            .end_timeout_ms = FINISH_MS,
        };
        actor->role = worker_role_new(&o);
        actor->is_alive = true;
        actor->role->ops->start(actor->role, s->now_ms, &actor->outbox);
    }
}

void stage_close(struct stage *s)
{
    for (int i = 0; i < s->options.ps_count; i++) {
        for (int w = 0; w < s->options.workers; w++) drop_queue(s, i, w);
        ps_role_free(s->ps[i].role);
        outbox_free(&s->ps[i].outbox);
        free(s->ps[i].applied);
    }
    for (int i = 0; i < s->options.workers; i++) {
        worker_role_free(s->workers[i].role);
        outbox_free(&s->workers[i].outbox);
    }
}

static void greet_pair(struct stage *s, int ps, int worker)
{
    struct actor *p = &s->ps[ps], *w = &s->workers[worker];
    p->role->ops->peer_up(p->role, JOB_WORKER, worker, 200 + (uint64_t)worker, &p->outbox);
    flush_ps(s, ps);
    w->role->ops->peer_up(w->role, JOB_PS, ps, 100 + (uint64_t)ps, &w->outbox);
    flush_worker(s, worker);
}

void stage_greet(struct stage *s)
{
    uint64_t pairs = (uint64_t)(s->options.ps_count * s->options.workers);
    for (uint64_t i = 0; i < pairs; i++) {
        int pair = (int)random_permute(s->options.seed, pairs, i);
        greet_pair(s, pair / s->options.workers, pair % s->options.workers);
        if (draw(s, 2)) stage_step(s);
    }
}

static void deliver(struct stage *s, int ps, int worker, int direction)
{
    struct parcel *parcel = s->first[ps][worker][direction];
    s->first[ps][worker][direction] = parcel->next;
    struct message m = parcel->message;
    if (m.body_bytes) m.body = parcel->body;
    if (direction == TO_PS) {
        struct actor *p = &s->ps[ps];
        if (m.type == MESSAGE_PUSH) p->pushed[worker] = m.sequence;
        p->role->ops->message(p->role, JOB_WORKER, worker, &m, &p->outbox);
        flush_ps(s, ps);
    } else {
        struct actor *w = &s->workers[worker];
        w->role->ops->message(w->role, JOB_PS, ps, &m, &w->outbox);
        flush_worker(s, worker);
    }
    free(parcel);
}

static void finish_computing(struct stage *s, int worker)
{
    struct actor *w = &s->workers[worker];
    w->is_computing = false;
    w->computed++;
    w->role->ops->done(w->role, ACTION_COMPUTE, OK, "", &w->outbox);
    flush_worker(s, worker);
}

/* Everything that may happen next, counted; the chosen one happens. choice -1 only counts. */
static int events(struct stage *s, int choice)
{
    int count = 0;
    for (int w = 0; w < s->options.workers; w++) {
        if (s->workers[w].is_computing && s->workers[w].is_alive && count++ == choice) {
            finish_computing(s, w);
            return count;
        }
        for (int ps = 0; ps < s->options.ps_count; ps++)
            for (int direction = 0; direction < 2; direction++)
                if (s->first[ps][w][direction] && count++ == choice) {
                    deliver(s, ps, w, direction);
                    return count;
                }
    }
    return count;
}

bool stage_step(struct stage *s)
{
    int count = events(s, -1);
    if (!count) return false;
    events(s, (int)draw(s, (uint64_t)count));
    s->deliveries++;
    return true;
}

int stage_run(struct stage *s, int events_max)
{
    int happened = 0;
    while (happened < events_max && stage_step(s)) happened++;
    return happened;
}

void stage_pass_time(struct stage *s, uint64_t ms)
{
    s->now_ms += ms;
    for (int i = 0; i < s->options.ps_count; i++) {
        struct actor *p = &s->ps[i];
        if (p->is_alive && !p->has_ended) p->role->ops->tick(p->role, s->now_ms, &p->outbox);
        flush_ps(s, i);
    }
    for (int i = 0; i < s->options.workers; i++) {
        struct actor *w = &s->workers[i];
        if (w->is_alive && !w->has_ended) w->role->ops->tick(w->role, s->now_ms, &w->outbox);
        flush_worker(s, i);
    }
}

void stage_kill_worker(struct stage *s, int worker)
{
    s->workers[worker].is_alive = false;
    for (int i = 0; i < s->options.ps_count; i++) {
        struct actor *p = &s->ps[i];
        drop_queue(s, i, worker);
        if (p->has_ended) continue;
        p->role->ops->peer_lost(p->role, JOB_WORKER, worker, "killed", &p->outbox);
        flush_ps(s, i);
    }
}

void stage_kill_ps(struct stage *s, int ps)
{
    s->ps[ps].is_alive = false;
    for (int i = 0; i < s->options.workers; i++) {
        struct actor *w = &s->workers[i];
        drop_queue(s, ps, i);
        if (w->has_ended) continue;
        w->role->ops->peer_lost(w->role, JOB_PS, ps, "killed", &w->outbox);
        flush_worker(s, i);
    }
}

void stage_send_to_ps(struct stage *s, int ps, int worker, const struct message *m)
{
    const struct action a = {.type = ACTION_SEND, .message = *m};
    post(s, ps, worker, TO_PS, &a);
}
