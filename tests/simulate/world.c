/* world.c - see world.h. */
#include "tests/simulate/world.h"

#include <assert.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/random.h"

enum { NAMES = 8, NAME_MAX_BYTES = 16 };

uint64_t draw(struct world *world, uint64_t below)
{
    return random_u64(world->options.seed, world->draws++) % below;
}

bool chance(struct world *world, int percent)
{
    return draw(world, 100) < (uint64_t)percent;
}

uint64_t soon(struct world *world, uint64_t most_us)
{
    return most_us ? 1 + draw(world, most_us) : 0;
}

struct event *actor_add(struct world *world, struct actor *actor, enum event_kind kind,
                        uint64_t after_us)
{
    const struct event event = {.at_us = world->now_us + after_us,
                                .kind = kind,
                                .actor = actor->number,
                                .life = actor->life};
    return events_add(&world->events, &event);
}

struct memory *world_map(struct world *world)
{
    struct memory *memory = calloc(1, sizeof *memory);
    assert(memory);
    memory->next = world->memory;
    memory->node = memory->windows.copy = NOTHING;
    return world->memory = memory;
}

void world_trace(struct world *world, const char *format, ...)
{
    fprintf(world->options.trace, "%4llu.%06llu ", (unsigned long long)(world->now_us / 1000000),
            (unsigned long long)(world->now_us % 1000000));
    va_list list;
    va_start(list, format);
    vfprintf(world->options.trace, format, list);
    va_end(list);
    fputc('\n', world->options.trace);
}

void blame(struct world *world, const char *format, ...)
{
    if (world->blame[0]) return;
    va_list list;
    va_start(list, format);
    vsnprintf(world->blame, sizeof world->blame, format, list);
    va_end(list);
    TRACE(world, "WRONG: %s", world->blame);
}

const char *actor_name(const struct actor *actor)
{
    static char names[NAMES][NAME_MAX_BYTES];
    static int next;
    char *name = names[next++ % NAMES];
    snprintf(name, NAME_MAX_BYTES, "%s/%d", job_name(actor->job), actor->index);
    return name;
}

struct actor *ps_at(struct world *world, int ps)
{
    return &world->actors[actor_of(JOB_PS, ps)];
}

struct actor *worker_at(struct world *world, int worker)
{
    return &world->actors[actor_of(JOB_WORKER, worker)];
}

struct actor *peer_of(struct world *world, const struct actor *actor, int index)
{
    return actor->job == JOB_PS ? worker_at(world, index) : ps_at(world, index);
}

int peer_count(const struct world *world, const struct actor *actor)
{
    return actor->job == JOB_PS ? world->profile.workers : world->profile.ps_count;
}

/* As the runner does. */
static void leave_out(const struct world *world, struct actor *actor)
{
    const uint64_t passed_us = world->now_us - actor->ticked_us;
    if (passed_us <= STANDSTILL_MS * UINT64_C(1000)) return;
    for (int i = 0; i < PEERS_MAX; i++) {
        uint64_t *const times[] = {&actor->lost_us[i], &actor->told_us[i], &actor->came_us[i]};
        for (size_t k = 0; k < sizeof times / sizeof *times; k++)
            *times[k] =
                *times[k] + passed_us < world->now_us ? *times[k] + passed_us : world->now_us;
    }
    actor->started_us += passed_us;
}

void world_is_to_stop(struct world *world)
{
    if (!world->is_to_stop) world->stop_us = world->now_us;
    world->is_to_stop = true;
}

void world_tick(struct world *world, struct actor *actor)
{
    leave_out(world, actor);
    if (actor->job == JOB_PS)
        ps_watch_peers(world, actor);
    else
        worker_watch_peers(world, actor);
    if (!actor_is_running(actor)) return;
    actor->ticked_us = world->now_us;
    actor->role->ops->tick(actor->role, world->now_us / 1000, &actor->outbox);
    actor_flush(world, actor);
}

static void save(struct world *world, struct actor *chief)
{
    if (!worker_role_leads(chief->role)) return;
    actor_add(world, chief, EVENT_SAVE, world->profile.save_interval_us);
    if (!worker_role_can_save(chief->role)) return;
    const bool is_delta = world->profile.saves_changes && ++world->saves % 3 != 0;
    if (is_delta)
        worker_role_save_changes(chief->role, &chief->outbox);
    else
        worker_role_save(chief->role, &chief->outbox);
    actor_flush(world, chief);
}

/* A life begins, and looks for the others. */
static void start(struct world *world, struct actor *actor)
{
    const struct profile *p = &world->profile;
    actor_start(world, actor);
    if (!actor->is_alive) return;
    actor_add(world, actor, EVENT_TICK, soon(world, TICK_US));
    if (actor->job == JOB_PS) return;
    for (int i = 0; i < p->ps_count; i++) network_connect(world, actor, i);
}

/* Values that go ahead come while a worker computes, and rows that it has asked for. */
static bool brings_part(const struct actor *actor, const struct event *event)
{
    const bool computes = actor_is_at(actor, ACTION_COMPUTE);
    if (event->kind != EVENT_DELIVER || !(computes || actor->wanted)) return false;
    const struct parcel *next = event->link->queues[event->number].first;
    return next && next->kind == PARCEL_MESSAGE && message_is_part(next->message.type);
}

/* A task that is busy hears of it later. */
static bool must_wait(struct world *world, const struct actor *actor, const struct event *event)
{
    const bool is_of_work = event->kind == EVENT_RESUME || event->kind == EVENT_PART;
    const bool is_frozen = actor->frozen_until_us > world->now_us && event->kind != EVENT_RESUME;
    const bool goes_on = is_of_work || brings_part(actor, event);
    if (!actor_is_busy(world, actor) || (goes_on && !is_frozen)) return false;
    struct event again = *event;
    again.at_us = actor->busy_until_us;
    events_add(&world->events, &again);
    return true;
}

static void happen_to_actor(struct world *world, const struct event *event)
{
    struct actor *actor = &world->actors[event->actor];
    if (event->kind == EVENT_START) {
        if (world->stands_until_us > world->now_us)
            actor_add(world, actor, EVENT_START, world->stands_until_us - world->now_us);
        else if (!actor->is_alive)
            start(world, actor);
        return;
    }
    if (event->life != actor->life || !actor->is_alive) return;
    if (event->kind == EVENT_LEAVE && must_wait(world, actor, event)) return;
    if (event->kind == EVENT_LEAVE && actor_lingers(world, actor)) return;
    if (event->kind == EVENT_LEAVE) {
        actor->has_left = true;
        network_leave(world, actor, true);
        if (actor->departs) actor_departed(world, actor);
        return;
    }
    const bool tells_again = event->kind == EVENT_CONNECT && !actor->has_left;
    if ((actor->has_ended && !tells_again) || must_wait(world, actor, event)) return;
    if (event->kind == EVENT_TICK) {
        actor_add(world, actor, EVENT_TICK, TICK_US);
        world_tick(world, actor);
    } else if (event->kind == EVENT_RESUME)
        actor_resume(world, actor, (enum action_type)event->number);
    else if (event->kind == EVENT_CONNECT)
        network_connect(world, actor, event->number);
    else if (event->kind == EVENT_WRITTEN)
        ps_written(world, actor);
    else if (event->kind == EVENT_PART)
        worker_part(world, actor, event->number);
    else if (event->kind == EVENT_SAVE)
        save(world, actor);
    else if (event->kind == EVENT_EVALUATE)
        rows_evaluate_again(world, actor);
    else if (event->kind == EVENT_OPEN)
        worker_folder_is_open(world, actor, event->number);
}

static void happen_to_link(struct world *world, const struct event *event)
{
    struct link *link = event->link;
    enum direction end = (enum direction)event->number;
    struct actor *actor = end == TO_PS ? ps_at(world, link->ps) : worker_at(world, link->worker);
    bool is_same_life = actor->is_alive && actor->incarnation == link->incarnations[end];
    if (is_same_life && !actor->has_ended && must_wait(world, actor, event)) return;
    if (event->kind == EVENT_NOTICE)
        network_notice(world, link, end);
    else
        network_deliver(world, link, end);
}

/* Over the life of a ps. */
static void check_term(struct world *world, const struct actor *ps)
{
    const uint64_t term = ps_role_term(ps->role);
    uint64_t *last = &world->terms[ps->index];
    if (world->lives[ps->index] == ps->incarnation && term < *last)
        blame(world, "%s goes back from term %llu to %llu", actor_name(ps),
              (unsigned long long)*last, (unsigned long long)term);
    world->lives[ps->index] = ps->incarnation;
    *last = term;
}

void world_check_roles(struct world *world)
{
    for (int i = 0; i < ACTORS_MAX; i++) {
        const struct actor *actor = &world->actors[i];
        if (!actor->role) continue;
        if (actor->job == JOB_PS) check_term(world, actor);
        const char *wrong =
            actor->job == JOB_PS ? ps_role_check(actor->role) : worker_role_check(actor->role);
        if (wrong) blame(world, "%s: %s", actor_name(actor), wrong);
    }
    replicas_note(world);
}

void world_happen(struct world *world, const struct event *event)
{
    world->now_us = event->at_us;
    world->counters.events++;
    world->log_hash = mix(world->log_hash, mix(event->at_us, (uint64_t)event->kind));
    if (event->kind == EVENT_FAULT)
        faults_happen(world, event->number);
    else if (event->link)
        happen_to_link(world, event);
    else
        happen_to_actor(world, event);
    world_check_roles(world);
}

static bool is_over(const struct world *world)
{
    for (int i = 0; i < ACTORS_MAX; i++) {
        const struct actor *actor = &world->actors[i];
        if (actor->life == 0 && !actor->is_gone) return false; /* not yet started */
        if (!actor->is_gone && !actor->has_ended) return false;
    }
    return true;
}

void world_open(struct world *world, const struct run_options *options,
                const struct profile *profile)
{
    *world = (struct world){
        .options = *options,
        .profile = *profile,
        .folder.newest = NOTHING,
        .first_ended = NOTHING,
    };
    if (!profile->homes) world->profile.homes = profile->ps_count;
    for (int i = 0; i < ACTORS_MAX; i++) {
        struct actor *actor = &world->actors[i];
        actor->job = i < PS_MAX ? JOB_PS : JOB_WORKER;
        actor->index = i < PS_MAX ? i : i - PS_MAX;
        actor->number = i;
        actor->is_gone =
            actor->index >= (actor->job == JOB_PS ? profile->ps_count : profile->workers);
    }
}

#define OF_PROFILE(NAME, ...) p->limits.NAME##_ms

/* After everything that can go wrong has, no wait may be longer than all limits together. */
static uint64_t deadline_us(const struct world *world)
{
    const struct profile *p = &world->profile;
    const uint64_t limits[] = {p->config.worker_timeout_ms, WAIT_LIMITS(OF_PROFILE)};
    uint64_t limits_ms = 0;
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) limits_ms += limits[i];
    uint64_t work_us = (p->config.last_step + 1) * (uint64_t)p->workers *
                       (p->compute_us + 6 * p->delay_us + p->write_us);
    return world->last_fault_us + p->start_us + 2 * limits_ms * 1000 + 2 * work_us;
}

static void open_drawn(struct world *world, const struct run_options *options)
{
    struct profile profile;
    profile_draw(options->seed, &profile);
    world_open(world, options, &profile);
    char text[BLAME_MAX];
    profile_describe(&profile, text, sizeof text);
    TRACE(world, "%s", text);
    for (int i = 0; i < ACTORS_MAX; i++)
        if (!world->actors[i].is_gone)
            actor_add(world, &world->actors[i], EVENT_START, draw(world, profile.start_us));
}

void world_run(struct world *world, const struct run_options *options)
{
    open_drawn(world, options);
    faults_begin(world);
    while (!world->blame[0] && !is_over(world)) {
        if (!world->events.count) {
            blame(world, "nothing is left to happen, and not everybody has ended");
            break;
        }
        const struct event event = events_take(&world->events, 0);
        world_happen(world, &event);
        if (world->counters.events >= EVENTS_MAX)
            blame(world, "%d events and no end", EVENTS_MAX);
        else if (world->now_us > deadline_us(world))
            blame(world, "no end %llu s after the last fault",
                  (unsigned long long)(world->now_us - world->last_fault_us) / 1000000);
    }
    if (!world->blame[0]) check_end(world);
}

void world_close(struct world *world)
{
    for (int i = 0; i < ACTORS_MAX; i++) {
        struct actor *actor = &world->actors[i];
        if (actor->job == JOB_PS)
            ps_role_free(actor->role);
        else
            worker_role_free(actor->role);
        outbox_free(&actor->outbox);
    }
    network_free(world);
    nodes_free(&world->nodes);
    for (struct memory *memory = world->memory, *next; memory; memory = next) {
        next = memory->next;
        free(memory);
    }
    free(world->folder.at);
    free(world->events.at);
}
