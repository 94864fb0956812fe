/* faults.c - what the profile says goes wrong, at its time. */
#include "core/cluster/role/verdict.h"
#include "tests/simulate/world.h"

static void note_time(struct world *world, uint64_t for_us)
{
    uint64_t until_us = world->now_us + for_us;
    if (until_us > world->last_fault_us) world->last_fault_us = until_us;
}

/* Whoever is killed is started again later, if at all. */
static void plan_kill(struct world *world, struct actor *actor, const struct fault *fault)
{
    actor->down_us = fault->duration_us;
    if (fault->after_actions)
        actor->dies_after_actions = fault->after_actions;
    else
        actor_kill(world, actor);
}

static void freeze(struct world *world, struct actor *actor, uint64_t for_us)
{
    TRACE(world, "%s does nothing for %llu ms", actor_name(actor),
          (unsigned long long)for_us / 1000);
    if (actor->busy_until_us < world->now_us) actor->busy_until_us = world->now_us;
    actor->busy_until_us += for_us;
    actor->frozen_until_us = actor->busy_until_us;
    note_time(world, actor->busy_until_us - world->now_us);
    actor_add(world, actor, EVENT_RESUME, actor->busy_until_us - world->now_us);
}

/* As the runner does where it cannot tick any more. */
static void put_off_leaving(struct actor *actor, uint64_t for_us)
{
    actor->ended_us += for_us;
    for (int i = 0; i < PEERS_MAX; i++) actor->lost_us[i] += for_us;
}

static void stand_still(struct world *world, uint64_t for_us)
{
    world->stands_until_us = world->now_us + for_us;
    for (int i = 0; i < ACTORS_MAX; i++) {
        struct actor *actor = &world->actors[i];
        if (!actor->is_alive || actor->has_left) continue;
        if (actor->has_ended) put_off_leaving(actor, for_us);
        freeze(world, actor, for_us);
    }
}

static struct link *link_between(struct world *world, struct actor *actor, int peer)
{
    struct link *link = actor->links[peer];
    if (!link && actor->job == JOB_WORKER) link = actor->attempts[peer];
    return link;
}

static void unplug(struct world *world, struct actor *actor, uint64_t for_us)
{
    TRACE(world, "%s is unplugged for %llu ms", actor_name(actor),
          (unsigned long long)for_us / 1000);
    actor->unplugged_until_us = world->now_us + for_us;
    for (int i = 0; i < peer_count(world, actor); i++) {
        struct link *link = link_between(world, actor, i);
        if (link) network_cut(world, link);
    }
}

static void sever(struct world *world, struct actor *actor, int peer, uint64_t for_us)
{
    const bool is_ps = actor->job == JOB_PS;
    const int ps = is_ps ? actor->index : peer, worker = is_ps ? peer : actor->index;
    TRACE(world, "ps/%d and worker/%d do not reach each other for %llu ms", ps, worker,
          (unsigned long long)for_us / 1000);
    world->severed_until_us[ps][worker] = world->now_us + for_us;
    struct link *link = link_between(world, actor, peer);
    if (link) network_cut(world, link);
}

static void scale(struct world *world, struct actor *ps)
{
    const int wanted[JOB_COUNT] = {[JOB_WORKER] = world->profile.workers + 1};
    const char *why = ps_role_scale(ps->role, wanted, &ps->outbox);
    TRACE(world, "the job is to have a worker more: %s", why ? why : "the chief is asked");
    actor_flush(world, ps);
}

static void leave(struct world *world, struct actor *actor)
{
    TRACE(world, "%s gets a signal", actor_name(actor));
    world_is_to_stop(world);
    actor->asked_us = world->now_us;
    actor->role->ops->leave(actor->role, EXIT_TERMINATED, "stopped by SIGTERM", false,
                            &actor->outbox);
    actor_flush(world, actor);
}

static void depart(struct world *world, struct actor *actor, uint64_t down_us)
{
    TRACE(world, "%s gets a signal of its own", actor_name(actor));
    world->was_asked_to_leave = world->asked[actor->index] = true;
    actor->is_departing = true;
    actor->down_us = down_us;
    if (!actor->asked_us) actor->asked_us = world->now_us;
    actor->role->ops->leave(actor->role, EXIT_TERMINATED, "stopped by SIGTERM", true,
                            &actor->outbox);
    actor_flush(world, actor);
}

static void finish(struct world *world, struct actor *chief)
{
    TRACE(world, "a hook ends the job");
    world_is_to_stop(world);
    worker_role_finish(chief->role, EXIT_DONE, "", &chief->outbox);
    actor_flush(world, chief);
}

static void strike(struct world *world, const struct fault *fault)
{
    struct actor *actor = &world->actors[fault->actor];
    if (fault->kind == FAULT_DISK) {
        TRACE(world, "the disk is full");
        world->disk_fails_until_us = world->now_us + fault->duration_us;
        return;
    }
    if (fault->kind == FAULT_STANDSTILL) {
        stand_still(world, fault->duration_us);
        return;
    }
    if (!actor_is_running(actor)) return;
    struct link *link = link_between(world, actor, fault->peer);
    if (fault->kind == FAULT_KILL)
        plan_kill(world, actor, fault);
    else if (fault->kind == FAULT_CUT && link)
        network_cut(world, link);
    else if (fault->kind == FAULT_RESET && link)
        network_reset(world, link, actor->job == JOB_PS ? TO_PS : TO_WORKER);
    else if (fault->kind == FAULT_STALL && link)
        network_stall(world, link, fault->duration_us);
    else if (fault->kind == FAULT_SEVER)
        sever(world, actor, fault->peer, fault->duration_us);
    else if (fault->kind == FAULT_UNPLUG)
        unplug(world, actor, fault->duration_us);
    else if (fault->kind == FAULT_FREEZE)
        freeze(world, actor, fault->duration_us);
    else if (fault->kind == FAULT_SCALE)
        scale(world, actor);
    else if (fault->kind == FAULT_LEAVE)
        leave(world, actor);
    else if (fault->kind == FAULT_DEPART)
        depart(world, actor, fault->duration_us);
    else if (fault->kind == FAULT_FINISH)
        finish(world, actor);
}

void faults_happen(struct world *world, int number)
{
    const struct fault *fault = &world->profile.faults[number];
    const struct actor *actor = &world->actors[fault->actor];
    const bool must_hear = fault->kind == FAULT_LEAVE || fault->kind == FAULT_DEPART ||
                           fault->kind == FAULT_FINISH || fault->kind == FAULT_SCALE;
    if (must_hear && actor_is_running(actor) && actor_is_busy(world, actor)) {
        const struct event event = {
            .at_us = actor->busy_until_us, .kind = EVENT_FAULT, .number = number};
        events_add(&world->events, &event);
        return;
    }
    note_time(world, fault->duration_us);
    strike(world, fault);
}

void faults_begin(struct world *world)
{
    note_time(world, world->profile.start_us);
    faults_look(world);
}

void faults_look(struct world *world)
{
    for (int i = 0; i < world->profile.fault_count; i++) {
        const struct fault *fault = &world->profile.faults[i];
        bool is_due = fault->saves ? world->counters.saves >= fault->saves
                                   : world->counters.deliveries >= fault->deliveries;
        if (world->has_happened[i] || !is_due) continue;
        world->has_happened[i] = true;
        const struct event event = {
            .at_us = world->now_us + fault->after_us, .kind = EVENT_FAULT, .number = i};
        events_add(&world->events, &event);
    }
}
