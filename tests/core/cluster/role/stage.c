/* stage.c - see stage.h. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/base/random.h"
#include "tests/core/cluster/role/stage.h"

#include "core/cluster/role/verdict.h"

uint64_t stage_draw(struct stage *s, uint64_t below)
{
    return draw(&s->world, below);
}

static void end_if_wrong(const struct stage *s)
{
    if (!s->world.blame[0]) return;
    fprintf(stderr, "seed %llu: %s\n", (unsigned long long)s->world.options.seed, s->world.blame);
    abort();
}

/* After everything that was done by hand. */
static void look(struct stage *s)
{
    world_check_roles(&s->world);
    end_if_wrong(s);
}

/* ---- events ---- */

static void take(struct stage *s, int index)
{
    struct event event = events_take(&s->world.events, index);
    event.at_us = s->world.now_us;
    world_happen(&s->world, &event);
    end_if_wrong(s);
}

/* Everything else in the queue, such as another try to connect, is for the script to do. */
static bool may_happen(const struct stage *s, const struct event *event)
{
    const struct link *link = event->link;
    if (event->kind == EVENT_DELIVER)
        return link->queues[event->number].first && link->is_open[event->number] && !link->is_cut;
    const struct actor *actor = &s->world.actors[event->actor];
    if (event->life != actor->life || !actor_is_running(actor) || s->hangs[actor->number])
        return false;
    if (event->kind == EVENT_WRITTEN) return true;
    if (event->kind == EVENT_PART) return actor_is_at(actor, ACTION_COMPUTE);
    return event->kind == EVENT_RESUME && actor_is_at(actor, (enum action_type)event->number);
}

bool stage_step(struct stage *s)
{
    const struct events *events = &s->world.events;
    int count = 0, at = 0;
    for (int i = 0; i < events->count; i++) count += may_happen(s, &events->at[i]);
    if (!count) return false;
    for (int choice = (int)stage_draw(s, (uint64_t)count); choice >= 0; at++)
        choice -= may_happen(s, &events->at[at]);
    take(s, at - 1);
    return true;
}

int stage_run(struct stage *s, int events_max)
{
    int happened = 0;
    while (happened < events_max && stage_step(s)) happened++;
    return happened;
}

/* In steps as of tasks that run: a longer one is a standstill, which counts for no limit. */
void stage_pass_time(struct stage *s, uint64_t ms)
{
    while (ms) {
        const uint64_t step_ms = ms < STANDSTILL_MS ? ms : STANDSTILL_MS;
        ms -= step_ms;
        s->world.now_us += step_ms * 1000;
        for (int i = 0; i < ACTORS_MAX; i++)
            if (actor_is_running(&s->world.actors[i])) world_tick(&s->world, &s->world.actors[i]);
        look(s);
    }
}

/* ---- links ---- */

static void deliver_next(struct stage *s, const struct link *link, enum direction direction)
{
    const struct event *at = s->world.events.at;
    int i = 0;
    while (at[i].kind != EVENT_DELIVER || at[i].link != link || at[i].number != (int)direction) i++;
    take(s, i);
}

void stage_connect(struct stage *s, int ps, int worker)
{
    bool can = actor_is_running(&s->ps[ps]) && actor_is_running(&s->workers[worker]);
    if (s->ps[ps].links[worker] || !can) return;
    network_connect(&s->world, &s->workers[worker], ps);
    const struct link *link = s->workers[worker].attempts[ps];
    deliver_next(s, link, TO_PS);
    deliver_next(s, link, TO_WORKER);
}

void stage_greet(struct stage *s)
{
    const struct profile *p = &s->world.profile;
    uint64_t pairs = (uint64_t)(p->ps_count * p->workers);
    for (uint64_t i = 0; i < pairs; i++) {
        int pair = (int)random_permute(s->world.options.seed, pairs, i);
        stage_connect(s, pair / p->workers, pair % p->workers);
        if (stage_draw(s, 2)) stage_step(s);
    }
}

/* Whoever lives hears of it. */
static void end_link(struct stage *s, struct link *link)
{
    network_notice(&s->world, link, TO_PS);
    network_notice(&s->world, link, TO_WORKER);
}

void stage_cut(struct stage *s, int ps, int worker)
{
    struct link *link = s->ps[ps].links[worker];
    if (!link) return;
    network_cut(&s->world, link);
    end_link(s, link);
    look(s);
}

/* ---- lives ---- */

void stage_kill(struct stage *s, struct actor *actor)
{
    struct link *links[PEERS_MAX];
    int peers = peer_count(&s->world, actor);
    for (int i = 0; i < peers; i++) {
        links[i] = actor->links[i];
        if (links[i]) network_cut(&s->world, links[i]);
    }
    actor_kill(&s->world, actor);
    for (int i = 0; i < peers; i++)
        if (links[i]) end_link(s, links[i]);
    look(s);
}

void stage_restart(struct stage *s, struct actor *actor)
{
    actor_start(&s->world, actor);
    assert(actor->is_alive);
    for (int i = 0; i < peer_count(&s->world, actor); i++)
        if (actor->job == JOB_PS)
            stage_connect(s, actor->index, i);
        else
            stage_connect(s, i, actor->index);
    look(s);
}

void stage_hang(struct stage *s, const struct actor *actor)
{
    s->hangs[actor->number] = true;
}

void stage_go_on(struct stage *s, const struct actor *actor)
{
    s->hangs[actor->number] = false;
}

#define LIMIT(...) STAGE_LIMIT_MS

static void complete(struct profile *p, uint64_t seed)
{
    p->hears_at_work = true;
    p->arrays_restored = STAGE_ARRAYS;
    p->shares_memory = seed / 2 % 2;
    p->has_parts |= seed / 3 % 2;
    p->advances |= p->has_parts;
    for (int i = 0; i < p->ps_count; i++) p->sees_folder[i] = (seed + (uint64_t)i) % 2;
    p->limits = (struct wait_limits){WAIT_LIMITS(LIMIT)};
    p->limits.save_ms = STAGE_SAVE_LIMIT_MS;
    p->limits.end_ms = STAGE_END_LIMIT_MS;
    p->limits.restart_ms = STAGE_RESTART_LIMIT_MS;
    p->limits.stop_ms = STAGE_STOP_LIMIT_MS;
    p->limits.chief_ms = 0;
}

static bool is_traced(uint64_t seed)
{
    const char *traced = getenv("STAGE_TRACE");
    return traced && strtoull(traced, NULL, 10) == seed;
}

void stage_open(struct stage *s, const struct stage_options *options)
{
    struct profile profile = options->profile;
    complete(&profile, options->seed);
    const struct run_options run = {.seed = options->seed,
                                    .trace = is_traced(options->seed) ? stderr : NULL};
    world_open(&s->world, &run, &profile);
    s->ps = ps_at(&s->world, 0);
    s->workers = worker_at(&s->world, 0);
    for (int i = 0; i < ACTORS_MAX; i++) {
        s->hangs[i] = false;
        if (!s->world.actors[i].is_gone) actor_start(&s->world, &s->world.actors[i]);
    }
    look(s);
}

void stage_close(struct stage *s)
{
    world_close(&s->world);
}

/* ---- from outside ---- */

void stage_flush(struct stage *s)
{
    for (int i = 0; i < ACTORS_MAX; i++)
        if (s->world.actors[i].is_alive) actor_flush(&s->world, &s->world.actors[i]);
    look(s);
}

void stage_leave(struct stage *s, struct actor *actor, int code, const char *why)
{
    world_is_to_stop(&s->world);
    actor->role->ops->leave(actor->role, code, why, false, &actor->outbox);
    stage_flush(s);
}

void stage_depart(struct stage *s, struct actor *actor)
{
    actor->is_departing = true;
    actor->role->ops->leave(actor->role, EXIT_TERMINATED, "stopped by SIGTERM", true,
                            &actor->outbox);
    stage_flush(s);
}

void stage_save(struct stage *s)
{
    worker_role_save(s->workers[CHIEF].role, &s->workers[CHIEF].outbox);
    stage_flush(s);
}

const char *stage_scale(struct stage *s, int more)
{
    const int count[JOB_COUNT] = {[JOB_WORKER] = s->world.profile.workers + more};
    const char *why = ps_role_scale(s->ps[0].role, count, &s->ps[0].outbox);
    stage_flush(s);
    return why;
}

void stage_fail_step(struct stage *s, int worker, err why, const char *text)
{
    struct actor *w = &s->workers[worker];
    actor_end_work(w, ACTION_COMPUTE);
    w->role->ops->done(w->role, ACTION_COMPUTE, why, text, &w->outbox);
    stage_flush(s);
}

void stage_send_to_ps(struct stage *s, int ps, int worker, const struct message *m)
{
    struct parcel *parcel = network_post(&s->world, s->ps[ps].links[worker], TO_PS, PARCEL_MESSAGE);
    parcel->message = *m;
    parcel->source = s->workers[worker].views[ps].gradient;
    parcel->content = *parcel->source;
}

/* Whoever is hung up on hears of it at once. */
static void notice_ends(struct stage *s)
{
    for (struct link *link = s->world.links; link; link = link->next)
        if (link->is_open[TO_WORKER] && !link->is_open[TO_PS])
            network_notice(&s->world, link, TO_WORKER);
}

void stage_lie(struct stage *s, struct actor *actor, int peer, const struct message *m)
{
    const enum job job = actor->job == JOB_PS ? JOB_WORKER : JOB_PS;
    s->world.has_liars = true;
    actor->role->ops->message(actor->role, job, peer, m, &actor->outbox);
    stage_flush(s);
    notice_ends(s);
    look(s);
}

/* ---- what has come of it ---- */

int stage_updates(const struct stage *s, int ps)
{
    const int *store = s->ps[ps].store;
    return store && *store != NOTHING ? s->world.nodes.at[*store].updates : 0;
}

struct applied_update stage_update(const struct stage *s, int ps, int index)
{
    const struct node *nodes = s->world.nodes.at, *after = &nodes[*s->ps[ps].store];
    while (nodes[after->parent].updates > index) after = &nodes[after->parent];
    const struct node *before = &nodes[after->parent];
    struct applied_update update = {.step = before->step};
    for (int w = 0; w < s->world.profile.workers; w++) {
        if (after->sequences[w] == before->sequences[w]) continue;
        update.gradients += s->world.profile.gradients_per_push[w];
        update.workers[update.worker_count] = w;
        update.sequences[update.worker_count++] = after->sequences[w];
    }
    return update;
}

int stage_published(const struct stage *s, int index)
{
    const struct folder *folder = &s->world.folder;
    for (int i = 0; i < folder->count; i++)
        if (folder->at[i].is_published && index-- == 0) return i;
    return NOTHING;
}
