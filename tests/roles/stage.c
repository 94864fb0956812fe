/* stage.c - see stage.h. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/random.h"
#include "tests/roles/stage.h"

enum { TO_WORKER, TO_PS };
enum { GENERATION_SHIFT = 32, LIFE_SHIFT = 16 }; /* names are far apart, as tags are made of them */

struct parcel {
    struct parcel *next;
    bool has_windows; /* they were shared before it */
    struct message message;
    char body[];
};

static void flush_ps(struct stage *s, int ps);
static void flush_worker(struct stage *s, int worker);

uint64_t stage_draw(struct stage *s, uint64_t below)
{
    return random_u64(s->options.seed, s->draws++) % below;
}

/* ---- queues ---- */

/* A link would refuse it and end. */
static void check_stretch(const struct stage *s, int ps, int worker, int direction,
                          const struct message *m)
{
    if (!m->length || !s->options.block_bytes[ps]) return;
    assert(direction == TO_PS ? s->has_windows[ps][worker] : s->has_shared[ps][worker]);
}

static void post(struct stage *s, int ps, int worker, int direction, const struct message *m)
{
    if (!s->is_linked[ps][worker]) return;
    check_stretch(s, ps, worker, direction, m);
    struct parcel *parcel = calloc(1, sizeof *parcel + m->body_bytes + 1);
    assert(parcel);
    parcel->has_windows = s->has_shared[ps][worker];
    parcel->message = *m;
    if (m->body_bytes) memcpy(parcel->body, m->body, m->body_bytes);
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

/* ---- what every role may ask for ---- */

static void note(struct actor *actor, const struct action *a)
{
    if (a->type == ACTION_LOG) snprintf(actor->log, sizeof actor->log, "%s", a->log.text);
    if (a->type != ACTION_END) return;
    assert(!actor->has_ended);
    actor->has_ended = true;
    actor->code = a->end.code;
    snprintf(actor->text, sizeof actor->text, "%s", a->end.text);
}

/* ---- what a ps asks for ---- */

static void note_applied(struct actor *actor, const struct action_apply *a)
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

static uint64_t generation_of(int number)
{
    return (uint64_t)number << GENERATION_SHIFT;
}

static const struct checkpoint *origin_of(const struct stage *s, uint64_t generation)
{
    int origin = s->origin[generation >> GENERATION_SHIFT];
    return origin < 0 ? NULL : &s->checkpoints[origin];
}

static void set_up(struct stage *s, int ps, uint64_t generation)
{
    struct actor *actor = &s->ps[ps];
    const struct checkpoint *c = origin_of(s, generation);
    struct setup_result r = {.text = "", .config = s->options.config};
    r.config.generation = generation;
    r.config.is_empty = s->options.block_bytes[ps] == 0;
    r.config.arrays = c ? STAGE_ARRAYS : 1;
    r.config.is_restored = c && actor->sees_folder;
    r.config.step = c ? c->step : 0;
    r.config.ledger = c ? c->shards[ps].ledger : NULL;
    bool is_bad = c && c - s->checkpoints >= s->checkpoint_count - s->bad_checkpoints;
    if (is_bad && actor->sees_folder) {
        r.result = ERR_INPUT;
        r.is_bad_checkpoint = true;
        r.text = "the checksum differs";
    }
    actor->arrays = 0;
    actor->applied_count = c ? c->shards[ps].applied_count : 0; /* lists only grow until here */
    ps_role_set_up(actor->role, &r, &actor->outbox);
}

static void cut(struct stage *s, int ps, const struct action_cut *a)
{
    struct actor *actor = &s->ps[ps];
    assert(!actor->is_writing);
    actor->is_writing = true;
    actor->shard =
        (struct shard){.tag = a->tag, .step = a->step, .applied_count = actor->applied_count};
    for (int w = 0; w < s->options.workers; w++)
        actor->shard.ledger[w] = *ps_role_ledger(actor->role, w);
}

static void share(struct stage *s, int ps, int worker)
{
    assert(!s->has_shared[ps][worker]); /* once on a link */
    s->has_shared[ps][worker] = true;
}

static void hold(struct actor *actor, bool is_held)
{
    assert(actor->is_held != is_held);
    actor->is_held = is_held;
    actor->held += is_held;
}

static void act_ps(struct stage *s, int ps, const struct action *a)
{
    struct actor *actor = &s->ps[ps];
    if (a->type == ACTION_SEND)
        post(s, ps, a->send.peer, TO_WORKER, &a->send.message);
    else if (a->type == ACTION_SETUP)
        set_up(s, ps, a->setup.message.generation);
    else if (a->type == ACTION_SHARE)
        share(s, ps, a->share.worker);
    else if (a->type == ACTION_INITIALIZE)
        actor->arrays++;
    else if (a->type == ACTION_APPLY)
        note_applied(actor, &a->apply);
    else if (a->type == ACTION_CUT)
        cut(s, ps, &a->cut);
    else if (a->type == ACTION_HELD)
        hold(actor, a->held.begins);
    else
        note(actor, a);
}

static void flush_ps(struct stage *s, int ps)
{
    struct actor *actor = &s->ps[ps];
    for (int i = 0; i < actor->outbox.count && !actor->has_ended; i++) {
        const struct action a = actor->outbox.at[i];
        act_ps(s, ps, &a);
    }
    assert(!ps_role_check(actor->role));
    outbox_empty(&actor->outbox);
}

/* ---- what a worker asks for ---- */

static void choose(struct stage *s, struct actor *chief, const struct action_choose *a)
{
    assert(s->generations + 1 < STAGE_GENERATIONS_MAX);
    int passed_over = a->why_again[0] ? s->bad_checkpoints : 0;
    int origin = s->checkpoint_count - 1 - passed_over, number = ++s->generations;
    s->origin[number] = origin;
    const struct choice choice = {
        .text = "",
        .generation = generation_of(number),
        .step = origin < 0 ? 0 : s->checkpoints[origin].step,
        .is_saved = origin >= 0,
        .arrays = origin < 0 ? 1 : STAGE_ARRAYS,
    };
    worker_role_chosen(chief->role, &choice, &chief->outbox);
}

static void describe(struct stage *s, int worker, int ps)
{
    const struct message m = {
        .type = MESSAGE_SETUP,
        .job = JOB_WORKER,
        .task = (uint32_t)worker,
        .generation = generation_of(s->generations),
    };
    post(s, ps, worker, TO_PS, &m);
}

static void publish(struct actor *chief, uint64_t tag)
{
    chief->is_publishing = true;
    chief->publish_tag = tag;
}

static void abandon(struct actor *chief)
{
    chief->is_publishing = false;
    chief->abandoned++;
}

static void act_worker(struct stage *s, int worker, const struct action *a)
{
    struct actor *actor = &s->workers[worker];
    if (a->type == ACTION_SEND)
        post(s, a->send.peer, worker, TO_PS, &a->send.message);
    else if (a->type == ACTION_CHOOSE)
        choose(s, actor, &a->choose);
    else if (a->type == ACTION_DESCRIBE)
        describe(s, worker, a->describe.ps);
    else if (a->type == ACTION_COMPUTE)
        actor->is_computing = true;
    else if (a->type == ACTION_ADOPTED)
        actor->adopted++;
    else if (a->type == ACTION_EVALUATE)
        actor->is_evaluating = true;
    else if (a->type == ACTION_PUBLISH)
        publish(actor, a->publish.tag);
    else if (a->type == ACTION_ABANDON)
        abandon(actor);
    else
        note(actor, a);
}

static void flush_worker(struct stage *s, int worker)
{
    struct actor *actor = &s->workers[worker];
    for (int i = 0; i < actor->outbox.count && !actor->has_ended; i++) {
        const struct action a = actor->outbox.at[i];
        act_worker(s, worker, &a);
    }
    assert(!worker_role_check(actor->role));
    outbox_empty(&actor->outbox);
}

void stage_flush(struct stage *s)
{
    for (int i = 0; i < s->options.ps_count; i++) flush_ps(s, i);
    for (int i = 0; i < s->options.workers; i++) flush_worker(s, i);
}

/* ---- lives ---- */

static const struct wait_limits limits = {
    .start_ms = STAGE_LIMIT_MS,
    .step_ms = STAGE_LIMIT_MS,
    .end_ms = STAGE_END_LIMIT_MS,
    .restart_ms = STAGE_RESTART_LIMIT_MS,
    .stop_ms = STAGE_STOP_LIMIT_MS,
    .save_ms = STAGE_LIMIT_MS,
};

static void begin_ps(struct stage *s, int ps)
{
    struct actor *actor = &s->ps[ps];
    actor->incarnation = ++s->lives << LIFE_SHIFT;
    const struct ps_options o = {
        .task = ps,
        .workers = s->options.workers,
        .incarnation = actor->incarnation,
        .limits = limits,
    };
    actor->role = ps_role_new(&o);
    assert(actor->role);
    actor->is_alive = true;
    actor->role->ops->start(actor->role, s->now_ms, &actor->outbox);
    flush_ps(s, ps);
}

static void begin_worker(struct stage *s, int worker)
{
    struct actor *actor = &s->workers[worker];
    actor->incarnation = ++s->lives << LIFE_SHIFT;
    const struct worker_options o = {
        .task = worker,
        .ps_count = s->options.ps_count,
        .workers = s->options.workers,
        .incarnation = actor->incarnation,
        .block_bytes = s->options.block_bytes,
        .gradients_per_push = s->options.gradients_per_push,
        .is_sync = s->options.config.is_sync,
        .drops_gradients = s->options.drops_gradients,
        .saves = s->options.saves && worker == 0,
        .limits = limits,
        .worker_timeout_ms = s->options.config.worker_timeout_ms,
    };
    actor->role = worker_role_new(&o);
    assert(actor->role);
    actor->is_alive = true;
    actor->role->ops->start(actor->role, s->now_ms, &actor->outbox);
    flush_worker(s, worker);
}

void stage_open(struct stage *s, const struct stage_options *options)
{
    *s = (struct stage){.options = *options};
    for (int i = 0; i < options->ps_count; i++) {
        s->ps[i].sees_folder = (options->seed + (uint64_t)i) % 2;
        s->ps[i].applied = calloc(STAGE_APPLIED_MAX, sizeof *s->ps[i].applied);
        assert(s->ps[i].applied);
        begin_ps(s, i);
    }
    for (int i = 0; i < options->workers; i++) begin_worker(s, i);
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

void stage_connect(struct stage *s, int ps, int worker)
{
    struct actor *p = &s->ps[ps], *w = &s->workers[worker];
    bool can = p->is_alive && w->is_alive && !p->has_ended && !w->has_ended;
    if (s->is_linked[ps][worker] || !can) return;
    s->is_linked[ps][worker] = true;
    p->role->ops->peer_up(p->role, JOB_WORKER, worker, w->incarnation, &p->outbox);
    flush_ps(s, ps);
    w->role->ops->peer_up(w->role, JOB_PS, ps, p->incarnation, &w->outbox);
    flush_worker(s, worker);
}

void stage_greet(struct stage *s)
{
    uint64_t pairs = (uint64_t)(s->options.ps_count * s->options.workers);
    for (uint64_t i = 0; i < pairs; i++) {
        int pair = (int)random_permute(s->options.seed, pairs, i);
        stage_connect(s, pair / s->options.workers, pair % s->options.workers);
        if (stage_draw(s, 2)) stage_step(s);
    }
}

static void lose(struct actor *actor, enum job job, int task, const char *why)
{
    if (actor->is_alive && !actor->has_ended)
        actor->role->ops->peer_lost(actor->role, job, task, why, &actor->outbox);
}

static void unlink_pair(struct stage *s, int ps, int worker, const char *why)
{
    if (!s->is_linked[ps][worker]) return;
    s->is_linked[ps][worker] = s->has_shared[ps][worker] = s->has_windows[ps][worker] = false;
    drop_queue(s, ps, worker);
    lose(&s->ps[ps], JOB_WORKER, worker, why);
    lose(&s->workers[worker], JOB_PS, ps, why);
    flush_ps(s, ps);
    flush_worker(s, worker);
}

void stage_cut(struct stage *s, int ps, int worker)
{
    unlink_pair(s, ps, worker, "cut");
}

void stage_kill_worker(struct stage *s, int worker)
{
    struct actor *actor = &s->workers[worker];
    actor->is_alive = actor->is_computing = actor->is_evaluating = actor->is_publishing = false;
    for (int i = 0; i < s->options.ps_count; i++) unlink_pair(s, i, worker, "killed");
}

void stage_kill_ps(struct stage *s, int ps)
{
    s->ps[ps].is_alive = s->ps[ps].is_writing = s->ps[ps].is_held = false;
    for (int i = 0; i < s->options.workers; i++) unlink_pair(s, ps, i, "killed");
}

void stage_restart_worker(struct stage *s, int worker)
{
    worker_role_free(s->workers[worker].role);
    begin_worker(s, worker);
    for (int i = 0; i < s->options.ps_count; i++) stage_connect(s, i, worker);
}

void stage_restart_ps(struct stage *s, int ps)
{
    ps_role_free(s->ps[ps].role);
    begin_ps(s, ps);
    for (int i = 0; i < s->options.workers; i++) stage_connect(s, ps, i);
}

/* ---- events ---- */

static void deliver(struct stage *s, int ps, int worker, int direction)
{
    struct parcel *parcel = s->first[ps][worker][direction];
    s->first[ps][worker][direction] = parcel->next;
    struct message m = parcel->message;
    if (m.body_bytes) m.body = parcel->body;
    if (direction == TO_PS) {
        struct actor *p = &s->ps[ps];
        if (m.type == MESSAGE_PUSH) p->pushed[worker] = m.sequence;
        if (!p->has_ended) p->role->ops->message(p->role, JOB_WORKER, worker, &m, &p->outbox);
        flush_ps(s, ps);
    } else {
        struct actor *w = &s->workers[worker];
        s->has_windows[ps][worker] |= parcel->has_windows;
        if (!w->has_ended) w->role->ops->message(w->role, JOB_PS, ps, &m, &w->outbox);
        flush_worker(s, worker);
    }
    free(parcel);
}

static void end_publish(struct stage *s, struct actor *chief)
{
    assert(s->checkpoint_count < STAGE_CHECKPOINTS_MAX);
    struct checkpoint *c = &s->checkpoints[s->checkpoint_count++];
    *c = (struct checkpoint){.step = s->ps[0].shard.step};
    for (int i = 0; i < s->options.ps_count; i++) {
        if (i > 0 && !s->options.block_bytes[i]) continue;
        assert(s->ps[i].shard.tag == chief->publish_tag && s->ps[i].shard.step == c->step);
        c->shards[i] = s->ps[i].shard;
    }
}

/* A worker is done with one of the things that take long. */
static void finish(struct stage *s, int worker, enum action_type what)
{
    struct actor *w = &s->workers[worker];
    bool *is_busy = what == ACTION_COMPUTE    ? &w->is_computing
                    : what == ACTION_EVALUATE ? &w->is_evaluating
                                              : &w->is_publishing;
    *is_busy = false;
    w->computed += what == ACTION_COMPUTE;
    w->evaluated += what == ACTION_EVALUATE;
    if (what == ACTION_PUBLISH) end_publish(s, w);
    w->role->ops->done(w->role, what, OK, "", &w->outbox);
    flush_worker(s, worker);
}

static void finish_writing(struct stage *s, int ps)
{
    struct actor *p = &s->ps[ps];
    p->is_writing = false;
    p->role->ops->done(p->role, ACTION_CUT, OK, "", &p->outbox);
    flush_ps(s, ps);
}

/* Each of these counts what may happen next; the event with the number `choice`, counted from
 * `count` on, happens. Returns the count. */
static int deliveries(struct stage *s, int choice, int count)
{
    for (int pair = 0; pair < s->options.ps_count * s->options.workers; pair++) {
        int ps = pair / s->options.workers, worker = pair % s->options.workers;
        for (int direction = 0; direction < 2; direction++)
            if (s->first[ps][worker][direction] && count++ == choice) {
                deliver(s, ps, worker, direction);
                return count;
            }
    }
    return count;
}

static int completions(struct stage *s, int choice, int count)
{
    for (int i = 0; i < s->options.workers; i++) {
        const struct actor *w = &s->workers[i];
        const struct busy {
            bool is_so;
            enum action_type what;
        } busy[] = {{w->is_computing, ACTION_COMPUTE},
                    {w->is_evaluating, ACTION_EVALUATE},
                    {w->is_publishing, ACTION_PUBLISH}};
        for (int k = 0; k < 3; k++)
            if (busy[k].is_so && !w->has_ended && count++ == choice) {
                finish(s, i, busy[k].what);
                return count;
            }
    }
    for (int i = 0; i < s->options.ps_count; i++)
        if (s->ps[i].is_writing && !s->ps[i].has_ended && count++ == choice) {
            finish_writing(s, i);
            return count;
        }
    return count;
}

bool stage_step(struct stage *s)
{
    enum { ONLY_COUNT = -1 };
    int count = completions(s, ONLY_COUNT, deliveries(s, ONLY_COUNT, 0));
    if (!count) return false;
    int choice = (int)stage_draw(s, (uint64_t)count), sent = deliveries(s, choice, 0);
    if (sent <= choice) completions(s, choice, sent);
    return true;
}

int stage_run(struct stage *s, int events_max)
{
    int happened = 0;
    while (happened < events_max && stage_step(s)) happened++;
    return happened;
}

static void tick(struct stage *s, struct actor *actor)
{
    if (actor->is_alive && !actor->has_ended)
        actor->role->ops->tick(actor->role, s->now_ms, &actor->outbox);
}

void stage_pass_time(struct stage *s, uint64_t ms)
{
    s->now_ms += ms;
    for (int i = 0; i < s->options.ps_count; i++) tick(s, &s->ps[i]);
    for (int i = 0; i < s->options.workers; i++) tick(s, &s->workers[i]);
    stage_flush(s);
}

/* ---- from outside ---- */

void stage_leave(struct stage *s, struct actor *actor, int code, const char *why)
{
    actor->role->ops->leave(actor->role, code, why, &actor->outbox);
    stage_flush(s);
}

void stage_save(struct stage *s)
{
    worker_role_save(s->workers[0].role, &s->workers[0].outbox);
    flush_worker(s, 0);
}

void stage_fail_step(struct stage *s, int worker, err why, const char *text)
{
    struct actor *w = &s->workers[worker];
    w->is_computing = false;
    w->role->ops->done(w->role, ACTION_COMPUTE, why, text, &w->outbox);
    flush_worker(s, worker);
}

void stage_send_to_ps(struct stage *s, int ps, int worker, const struct message *m)
{
    post(s, ps, worker, TO_PS, m);
}
