/* actor.c - the life of a task: start, the outbox carried out, death. */
#include <assert.h>
#include <string.h>

#include "tests/simulate/world.h"

enum {
    OUTBOX_MAX = 64,    /* actions of one event, for each peer and once more */
    LINGER_US = 400000, /* a ps waits so long for its workers to hang up, */
    TELL_US = 5000000,  /* and to answer the verdict */
    LOOK_US = 100000,
};

/* Until what it is busy with was told to be done, which may be a later event of the same time. */
bool actor_is_busy(const struct world *world, const struct actor *actor)
{
    bool is_deaf = actor->works_count > 0 && !world->profile.hears_at_work;
    return is_deaf || actor->busy_until_us > world->now_us;
}

bool actor_is_running(const struct actor *actor)
{
    return actor->is_alive && !actor->has_ended;
}

bool actor_is_listening(const struct actor *actor)
{
    return actor->is_alive && !actor->has_left;
}

static struct role *open_ps(const struct world *world, const struct actor *actor)
{
    const struct profile *p = &world->profile;
    const struct ps_options options = {
        .task = actor->index,
        .workers = p->workers,
        .membership = {0, {p->ps_count, p->workers}},
        .incarnation = actor->incarnation,
        .limits = p->limits,
    };
    return ps_role_new(&options);
}

static struct role *open_worker(const struct world *world, const struct actor *actor)
{
    const struct profile *p = &world->profile;
    int64_t block_floats[PS_MAX], moved_floats[PS_MAX];
    for (int i = 0; i < p->ps_count; i++) {
        block_floats[i] = p->has_variables[i] ? PIECES * PIECE_FLOATS : 0;
        moved_floats[i] = p->has_variables[i] ? profile_moved_floats(p) : 0;
    }
    const struct worker_options options = {
        .task = actor->index,
        .ps_count = p->ps_count,
        .homes = p->homes,
        .workers = p->workers,
        .membership = {0, {p->ps_count, p->workers}},
        .incarnation = actor->incarnation,
        .block_floats = block_floats,
        .moved_floats = moved_floats,
        .gradients_per_push = p->gradients_per_push[actor->index],
        .is_sync = p->config.is_sync,
        .drops_gradients = p->drops_gradients,
        .lends_windows = p->windows > 0,
        .saves = p->saves,
        .keeps_chief = p->feed_ahead > 0,
        .limits = p->limits,
        .worker_timeout_ms = p->config.worker_timeout_ms,
    };
    return worker_role_new(&options);
}

/* What a process has in memory when it starts: nothing. */
static void reset(struct world *world, struct actor *actor)
{
    *actor = (struct actor){
        .job = actor->job,
        .index = actor->index,
        .number = actor->number,
        .life = actor->life + 1,
        .departures = actor->departures,
        .is_severed = actor->is_severed,
        .is_alive = true,
        .incarnation = 1 + mix(world->options.seed, draw(world, UINT64_MAX)) % (UINT64_MAX - 1),
        .started_us = world->now_us,
        .restored = NOTHING,
        .chosen = NOTHING,
    };
    for (int i = 0; i < PEERS_MAX; i++) actor->lost_us[i] = actor->told_us[i] = world->now_us;
}

void actor_start(struct world *world, struct actor *actor)
{
    if (world->first_ended != NOTHING &&
        actor->life) { /* nobody starts a task of a job that is over */
        actor->is_gone = true;
        return;
    }
    reset(world, actor);
    TRACE(world, "%s starts, life %d", actor_name(actor), actor->life);
    actor->role = actor->job == JOB_PS ? open_ps(world, actor) : open_worker(world, actor);
    assert(actor->role);
    if (world->first_ended != NOTHING) actor->is_severed = true;
    actor->ticked_us = world->now_us;
    actor->role->ops->start(actor->role, world->now_us / 1000, &actor->outbox);
    if (actor->job == JOB_PS)
        ps_role_plan_overlap(
            actor->role,
            &(struct overlap_rounds){.is_wanted = world->profile.advances, .can_undo = true},
            &actor->outbox);
    actor_flush(world, actor);
}

/* The verdict may die with a task or a link, and with it what others would have passed on. */
void actors_sever(struct world *world)
{
    for (int i = 0; i < ACTORS_MAX && world->first_ended != NOTHING; i++)
        world->actors[i].is_severed = true;
}

/* What the life had is no more; the next one begins in down_us, if at all. */
static void bury(struct world *world, struct actor *actor)
{
    if (actor->job == JOB_PS)
        ps_role_free(actor->role);
    else
        worker_role_free(actor->role);
    outbox_free(&actor->outbox);
    actor->role = NULL;
    actor->is_alive = false;
    actor->cursor = 0;
    actor->busy_until_us = 0;
    memset(actor->works, 0, sizeof actor->works);
    actor->works_count = 0;
    actor->dies_after_actions = 0;
    actor->is_gone = actor->down_us == 0;
    if (actor->down_us) actor_add(world, actor, EVENT_START, actor->down_us);
}

void actor_kill(struct world *world, struct actor *actor)
{
    if (!actor->is_alive) return;
    TRACE(world, "%s is killed", actor_name(actor));
    world->counters.kills++;
    if (actor->job == JOB_PS) ps_forget(world, actor);
    if (actor->job == JOB_WORKER) worker_died(world, actor);
    network_leave(world, actor, false);
    actor->is_severed = true;
    actors_sever(world);
    bury(world, actor);
}

void actor_departed(struct world *world, struct actor *actor)
{
    TRACE(world, "%s has left", actor_name(actor));
    worker_died(world, actor);
    actor->has_ended = false;
    bury(world, actor);
}

void actor_work(struct world *world, struct actor *actor, const struct action *action,
                uint64_t most_us)
{
    uint64_t for_us = soon(world, most_us);
    actor_end_work(actor, action->type);
    actor->works[action->type] = *action;
    actor->works_count++;
    actor->busy_until_us = world->now_us + for_us;
    actor_add(world, actor, EVENT_RESUME, for_us)->number = action->type;
}

bool actor_is_at(const struct actor *actor, enum action_type work)
{
    return actor->works[work].type != ACTION_SEND;
}

struct action actor_end_work(struct actor *actor, enum action_type type)
{
    const struct action work = actor->works[type];
    if (actor_is_at(actor, type)) actor->works_count--;
    actor->works[type].type = ACTION_SEND;
    return work;
}

bool actor_awaits(const struct actor *actor, int peer)
{
    return actor->job == JOB_PS ? ps_role_awaits(actor->role, peer)
                                : worker_role_awaits(actor->role, peer);
}

/* Its peers have not answered the verdict, and are there or about to be back. */
bool actor_lingers(struct world *world, struct actor *actor)
{
    bool waits = false;
    for (int i = 0; i < peer_count(world, actor); i++) {
        const bool is_near = actor->links[i] || world->now_us - actor->lost_us[i] < TELL_US;
        waits |= actor->met[i] && is_near && actor_awaits(actor, i);
    }
    if (actor->job == JOB_PS && is_broken(world, DEFECT_ANSWER_MISSED)) waits = false;
    if (actor->job == JOB_WORKER && is_broken(world, DEFECT_WORD_MISSED)) waits = false;
    waits = waits && world->now_us - actor->ended_us < TELL_US;
    if (waits) actor_add(world, actor, EVENT_LEAVE, LOOK_US);
    return waits;
}

/* With all that has not come yet. */
static void lose_verdict(struct world *world, struct actor *actor)
{
    const struct profile *p = &world->profile;
    const bool is_ps = actor->job == JOB_PS, loses = is_ps ? p->loses_verdict : p->loses_word;
    struct link *link = actor->links[is_ps ? p->loses_verdict_of : p->loses_word_to];
    if (loses && link) network_reset(world, link, is_ps ? TO_PS : TO_WORKER);
}

static void end(struct world *world, struct actor *actor, const struct action_end *action)
{
    lose_verdict(world, actor);
    actor->has_ended = true;
    actor->ended_us = world->now_us;
    actor->code = action->code;
    snprintf(actor->text, sizeof actor->text, "%s", action->text);
    TRACE(world, "%s ends: %d %s", actor_name(actor), actor->code, actor->text);
    if (actor->job == JOB_WORKER && worker_role_has_left(actor->role))
        check_departure(world, actor);
    else
        check_first_end(world, actor);
    actor_add(world, actor, EVENT_LEAVE, actor->job == JOB_PS ? LINGER_US : 1);
}

static void move(struct world *world, struct actor *actor, const struct action_resize *action)
{
    actor->resizes_to = action->membership;
    if (!world->counters.moved++) check_resize(world, actor);
    end(world, actor, &(struct action_end){.text = ""});
}

static void say(struct world *world, struct actor *actor, const char *text)
{
    TRACE(world, "%s says: %s", actor_name(actor), text);
    snprintf(actor->said, sizeof actor->said, "%s", text);
    check_patience(world, actor, text);
}

static void note_breach(struct world *world, struct actor *actor, const struct action_breach *a)
{
    say(world, actor, a->text);
    world->breaches++;
    if (a->is_of_number && !world->has_liars) blame(world, "%s: %s", actor_name(actor), a->text);
}

static void act(struct world *world, struct actor *actor, const struct action *action)
{
    if (action->type == ACTION_SEND)
        network_send(world, actor, &action->send);
    else if (action->type == ACTION_LOG)
        say(world, actor, action->log.text);
    else if (action->type == ACTION_BREACH)
        note_breach(world, actor, &action->breach);
    else if (action->type == ACTION_END)
        end(world, actor, &action->end);
    else if (action->type == ACTION_RESIZE)
        move(world, actor, &action->resize);
    else if (actor->job == JOB_PS)
        ps_act(world, actor, action);
    else
        worker_act(world, actor, action);
}

/* The fault that kills a task between two actions of one outbox. */
static bool dies_now(struct world *world, struct actor *actor)
{
    if (!actor->dies_after_actions || --actor->dies_after_actions) return false;
    actor_kill(world, actor);
    return true;
}

void actor_flush(struct world *world, struct actor *actor)
{
    if (actor->is_acting) return; /* acting may add actions */
    actor->is_acting = true;
    if (actor->outbox.count > OUTBOX_MAX * (1 + peer_count(world, actor)))
        blame(world, "%s wants %d actions at once", actor_name(actor), actor->outbox.count);
    while (actor_is_listening(actor) && !actor_is_busy(world, actor) &&
           actor->cursor < actor->outbox.count && !world->blame[0]) {
        const struct action action = actor->outbox.at[actor->cursor++];
        if (!actor->has_ended || action.type == ACTION_SEND) act(world, actor, &action);
        if (actor->is_alive && dies_now(world, actor)) break;
    }
    actor->is_acting = false;
    if (actor_is_busy(world, actor)) return;
    outbox_empty(&actor->outbox);
    actor->cursor = 0;
    if (actor->job == JOB_PS && actor->is_alive) ps_flushed(world, actor);
}

void actor_act_since(struct world *world, struct actor *actor, int before)
{
    for (int i = before; i < actor->outbox.count; i++) {
        const struct action action = actor->outbox.at[i];
        act(world, actor, &action);
    }
    actor->outbox.count = before;
}

static void finish(struct world *world, struct actor *actor, enum action_type type)
{
    if (!actor_is_at(actor, type)) return;
    const struct action work = actor_end_work(actor, type);
    if (actor->job == JOB_PS)
        ps_end_work(world, actor, &work);
    else
        worker_end_work(world, actor, &work);
}

void actor_resume(struct world *world, struct actor *actor, enum action_type work)
{
    if (actor->busy_until_us > world->now_us) return; /* it was frozen meanwhile */
    for (int type = ACTION_SEND + 1; type < ACTION_TYPES; type++)
        if (work == ACTION_SEND || work == (enum action_type)type)
            finish(world, actor, (enum action_type)type);
    actor_flush(world, actor);
}
