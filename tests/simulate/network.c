/* network.c - links: messages in order or not at all, and ends that are noticed late.
 *
 * A worker connects; its HELLO and the ps' WELCOME are the first parcels, as the runner's are, and
 * with each the role at that end learns of the link. A cut loses what is under way in both
 * directions. The end of a process closes its links behind what it has sent, of which a kill loses
 * the last part.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "tests/simulate/world.h"

enum { RETRY_FIRST_US = 10000, RETRY_DOUBLINGS = 6, RETRY_MAX_US = 500000 };

static struct actor *actor_at(struct world *world, const struct link *link, enum direction end)
{
    return end == TO_PS ? ps_at(world, link->ps) : worker_at(world, link->worker);
}

static int index_of_peer(const struct link *link, enum direction end)
{
    return end == TO_PS ? link->worker : link->ps;
}

/* Is the process at that end the one that opened the link? */
static bool holds(struct world *world, const struct link *link, enum direction end)
{
    const struct actor *actor = actor_at(world, link, end);
    return link->is_open[end] && actor->is_alive && actor->incarnation == link->incarnations[end];
}

static void drop_from(struct queue *queue, int kept)
{
    struct parcel **at = &queue->first;
    if (kept == 0) queue->is_held = false;
    queue->last = NULL;
    for (int i = 0; i < kept && *at; i++) {
        queue->last = *at;
        at = &(*at)->next;
    }
    for (struct parcel *parcel = *at, *next; parcel; parcel = next) {
        next = parcel->next;
        free(parcel);
        queue->count--;
    }
    *at = NULL;
}

static void schedule(struct world *world, struct link *link, enum direction direction)
{
    struct queue *queue = &link->queues[direction];
    if (queue->is_scheduled || queue->is_held || !queue->first) return;
    uint64_t at_us = queue->first->at_us;
    if (at_us < queue->stalled_until_us) at_us = queue->stalled_until_us;
    if (at_us < world->now_us) at_us = world->now_us;
    queue->is_scheduled = true;
    events_add(&world->events,
               &(struct event){
                   .at_us = at_us, .kind = EVENT_DELIVER, .link = link, .number = (int)direction});
}

struct parcel *network_post(struct world *world, struct link *link, enum direction direction,
                            enum parcel_kind kind)
{
    struct queue *queue = &link->queues[direction];
    struct parcel *parcel = calloc(1, sizeof *parcel);
    assert(parcel);
    parcel->kind = kind;
    parcel->at_us = world->now_us + soon(world, world->profile.delay_us);
    if (parcel->at_us < queue->last_us) parcel->at_us = queue->last_us;
    queue->last_us = parcel->at_us;
    if (queue->last)
        queue->last->next = parcel;
    else
        queue->first = parcel;
    queue->last = parcel;
    if (++queue->count > QUEUE_MAX)
        blame(world, "%d messages wait between ps/%d and worker/%d", queue->count, link->ps,
              link->worker);
    schedule(world, link, direction);
    return parcel;
}

static void plan_retry(struct world *world, struct actor *worker, int ps)
{
    int tries = worker->tries[ps]++;
    uint64_t pause_us = RETRY_FIRST_US << (tries < RETRY_DOUBLINGS ? tries : RETRY_DOUBLINGS);
    const struct event event = {
        .at_us = world->now_us + (pause_us < RETRY_MAX_US ? pause_us : RETRY_MAX_US),
        .kind = EVENT_CONNECT,
        .actor = worker->number,
        .life = worker->life,
        .number = ps,
    };
    events_add(&world->events, &event);
}

void network_connect(struct world *world, struct actor *worker, int ps)
{
    const struct actor *server = ps_at(world, ps);
    bool is_unplugged = server->unplugged_until_us > world->now_us ||
                        worker->unplugged_until_us > world->now_us ||
                        world->severed_until_us[ps][worker->index] > world->now_us;
    if (!actor_is_listening(server) || is_unplugged) {
        plan_retry(world, worker, ps);
        return;
    }
    struct link *link = calloc(1, sizeof *link);
    assert(link);
    *link = (struct link){
        .next = world->links,
        .number = world->link_count++,
        .ps = ps,
        .worker = worker->index,
        .incarnations = {[TO_WORKER] = worker->incarnation, [TO_PS] = server->incarnation},
        .is_open = {true, true},
    };
    world->links = link;
    worker->attempts[ps] = link;
    network_post(world, link, TO_PS, PARCEL_HELLO);
}

/* One end lets go, and the other will see it behind what is under way. kept: parcels of what it
 * sent that still arrive. */
static void let_go(struct world *world, struct link *link, enum direction end, int kept)
{
    enum direction away = end == TO_PS ? TO_WORKER : TO_PS;
    link->is_open[end] = false;
    drop_from(&link->queues[end], 0);
    if (link->is_cut || !link->is_open[away]) return;
    drop_from(&link->queues[away], kept);
    struct parcel *close = network_post(world, link, away, PARCEL_CLOSE);
    if (kept < QUEUE_MAX) close->at_us += draw(world, world->profile.notice_us);
    link->queues[away].last_us = close->at_us;
}

void network_leave(struct world *world, struct actor *actor, bool is_orderly)
{
    enum direction end = actor->job == JOB_PS ? TO_PS : TO_WORKER;
    for (struct link *link = world->links; link; link = link->next) {
        if (actor_at(world, link, end) != actor || !holds(world, link, end)) continue;
        enum direction away = end == TO_PS ? TO_WORKER : TO_PS;
        int sent = link->queues[away].count;
        let_go(world, link, end, is_orderly ? QUEUE_MAX : (int)draw(world, (uint64_t)sent + 1));
    }
}

/* A worker tries again where the ps may not have heard how the job ended. */
static void lose_at_end(struct world *world, struct actor *actor, int peer, bool was_up)
{
    if (was_up && actor->frozen_until_us > world->now_us)
        actor->lost_us[peer] = actor->frozen_until_us;
    if (was_up && actor->job == JOB_WORKER && actor_awaits(actor, peer))
        plan_retry(world, actor, peer);
}

/* The role hears that its link has ended, and a worker tries again. */
static void lose(struct world *world, struct link *link, enum direction end, const char *why)
{
    struct actor *actor = actor_at(world, link, end);
    int peer = index_of_peer(link, end);
    link->is_open[end] = false;
    bool was_attempt = end == TO_WORKER && actor->attempts[peer] == link;
    if (was_attempt) actor->attempts[peer] = NULL;
    bool was_up = actor->links[peer] == link;
    if (was_up) actor->links[peer] = NULL;
    if (was_up) actor->lost_us[peer] = world->now_us;
    if (was_up) actor->told_us[peer] = actor->ticked_us;
    if (was_up && end == TO_WORKER) worker_loses_windows(world, actor, peer);
    if (actor->has_ended) {
        lose_at_end(world, actor, peer, was_up);
        return;
    }
    if (end == TO_PS) defects_lose_worker(world, actor, peer);
    if (end == TO_WORKER && (was_attempt || was_up)) plan_retry(world, actor, peer);
    if (!was_up) return;
    TRACE(world, "%s loses %s: %s", actor_name(actor), actor_name(peer_of(world, actor, peer)),
          why);
    enum job job = actor->job == JOB_PS ? JOB_WORKER : JOB_PS;
    actor->role->ops->peer_lost(actor->role, job, peer, why, &actor->outbox);
    actor_flush(world, actor);
}

void network_cut(struct world *world, struct link *link)
{
    if (link->is_cut || !link->is_open[TO_PS] || !link->is_open[TO_WORKER]) return;
    TRACE(world, "link %d of ps/%d and worker/%d is cut", link->number, link->ps, link->worker);
    world->counters.cuts++;
    link->is_cut = true;
    actors_sever(world);
    for (int end = 0; end < DIRECTIONS; end++) {
        drop_from(&link->queues[end], 0);
        const struct event event = {
            .at_us = world->now_us + soon(world, world->profile.notice_us),
            .kind = EVENT_NOTICE,
            .link = link,
            .number = end,
        };
        events_add(&world->events, &event);
    }
}

/* Of what it sent a part may still arrive; what comes to it is lost. */
void network_reset(struct world *world, struct link *link, enum direction end)
{
    if (link->is_cut || !link->is_open[TO_PS] || !link->is_open[TO_WORKER]) return;
    TRACE(world, "link %d of ps/%d and worker/%d is reset", link->number, link->ps, link->worker);
    world->counters.cuts++;
    events_add(&world->events, &(struct event){.at_us = world->now_us + 1,
                                               .kind = EVENT_NOTICE,
                                               .link = link,
                                               .number = (int)end});
}

void network_notice(struct world *world, struct link *link, enum direction end)
{
    if (!holds(world, link, end)) return;
    enum direction away = end == TO_PS ? TO_WORKER : TO_PS;
    uint64_t sent = (uint64_t)link->queues[away].count;
    if (!link->is_cut) {
        if (!actor_at(world, link, end)->has_ended) actors_sever(world); /* who has tells again */
        let_go(world, link, end, (int)draw(world, sent + 1));
    }
    lose(world, link, end, link->is_cut ? "the link was cut" : "the link was reset");
}

static struct link *forget(struct world *world, struct actor *actor, int peer)
{
    struct link *link = actor->links[peer];
    if (!link) return NULL;
    actor->links[peer] = NULL;
    actor->lost_us[peer] = world->now_us;
    actor->told_us[peer] = actor->ticked_us;
    actors_sever(world);
    return link;
}

void network_hang_up(struct world *world, struct actor *ps, int worker)
{
    struct link *link = forget(world, ps, worker);
    if (!link) return;
    defects_lose_worker(world, ps, worker);
    let_go(world, link, TO_PS, QUEUE_MAX);
}

/* What it has sent may arrive, or a part of it. */
void network_remake(struct world *world, struct actor *worker, int ps)
{
    struct link *link = forget(world, worker, ps);
    if (!link) return;
    TRACE(world, "%s makes its link to ps/%d anew", actor_name(worker), ps);
    worker_loses_windows(world, worker, ps);
    let_go(world, link, TO_WORKER, (int)draw(world, (uint64_t)link->queues[TO_PS].count + 1));
    plan_retry(world, worker, ps);
}

void network_stall(struct world *world, struct link *link, uint64_t for_us)
{
    TRACE(world, "link %d of ps/%d and worker/%d stalls", link->number, link->ps, link->worker);
    for (int i = 0; i < DIRECTIONS; i++) link->queues[i].stalled_until_us = world->now_us + for_us;
}

/* A worker is here. An older link of it has not been seen to end: of the same life it is hung up,
 * another life is refused until it has, or takes its place. false: refused. */
static bool make_room(struct world *world, struct actor *ps, const struct link *link)
{
    struct link *old = ps->links[link->worker];
    if (!old) return true;
    bool is_same_life = old->incarnations[TO_WORKER] == link->incarnations[TO_WORKER];
    if (!is_same_life && !world->profile.replaces_links) return false;
    if (is_same_life)
        ps->links[link->worker] = NULL;
    else
        lose(world, old, TO_PS, "another life of it is here");
    let_go(world, old, TO_PS, QUEUE_MAX);
    return true;
}

static void greet(struct world *world, struct link *link)
{
    struct actor *ps = ps_at(world, link->ps);
    if (!actor_is_listening(ps) || !make_room(world, ps, link)) {
        let_go(world, link, TO_PS, QUEUE_MAX);
        return;
    }
    if (!actor_is_listening(ps)) return;
    TRACE(world, "%s meets worker/%d, link %d", actor_name(ps), link->worker, link->number);
    const uint64_t life = link->incarnations[TO_WORKER];
    ps->links[link->worker] = link;
    ps->met[link->worker] = true;
    if (ps->came_life[link->worker] != life) ps->came_us[link->worker] = world->now_us;
    ps->came_life[link->worker] = life;
    network_post(world, link, TO_WORKER, PARCEL_WELCOME);
    ps->role->ops->peer_up(ps->role, JOB_WORKER, link->worker, life, &ps->outbox);
    actor_flush(world, ps);
}

static void welcome(struct world *world, struct link *link)
{
    struct actor *worker = worker_at(world, link->worker);
    if (worker->attempts[link->ps] != link || worker->has_left) return;
    TRACE(world, "%s meets ps/%d, link %d", actor_name(worker), link->ps, link->number);
    worker->attempts[link->ps] = NULL;
    worker->links[link->ps] = link;
    world->met_us = world->now_us;
    worker->met[link->ps] = true;
    worker->tries[link->ps] = 0;
    worker->role->ops->peer_up(worker->role, JOB_PS, link->ps, link->incarnations[TO_PS],
                               &worker->outbox);
    actor_flush(world, worker);
}

static void trace_message(struct world *world, const struct actor *to, const struct actor *from,
                          const struct message *m)
{
    char text[MESSAGE_TEXT_MAX];
    TRACE(world, "%s -> %s generation %04llx %s", actor_name(from), actor_name(to),
          (unsigned long long)m->generation & 0xffff, message_show(m, text));
}

static void tell(struct world *world, struct actor *actor, int peer, const struct message *m)
{
    bool is_ps = actor->job == JOB_PS;
    uint64_t dropped = is_ps ? ps_role_counters(actor->role).dropped_stale : 0;
    actor->role->ops->message(actor->role, is_ps ? JOB_WORKER : JOB_PS, peer, m, &actor->outbox);
    const struct ps_config *config = &world->profile.config;
    if (is_ps && ps_role_counters(actor->role).dropped_stale > dropped && !config->is_sync &&
        config->max_staleness < 0)
        blame(world, "%s drops a gradient of worker/%d for no reason", actor_name(actor), peer);
    if (is_ps && ps_role_counters(actor->role).dropped_stale > dropped)
        ps_dropped(world, actor, peer);
}

static void hand_over(struct world *world, struct link *link, enum direction end,
                      struct parcel *parcel)
{
    struct actor *actor = actor_at(world, link, end);
    int peer = index_of_peer(link, end);
    const bool is_answer = parcel->message.type == MESSAGE_VERDICT;
    if ((actor->has_ended && !is_answer) || actor->links[peer] != link) return;
    struct message m = parcel->message;
    if (m.body_bytes) m.body = parcel->body;
    trace_message(world, actor, peer_of(world, actor, peer), &m);
    world->counters.deliveries++;
    world->counters.saves += m.type == MESSAGE_SAVE;
    for (int place = 0; place < MESSAGE_PLACES; place++)
        world->log_hash = mix(world->log_hash, mix(m.type, message_number(&m, place)));
    bool is_for_role = end == TO_PS ? ps_receives(world, actor, peer, parcel)
                                    : worker_receives(world, actor, peer, parcel);
    if (is_for_role && defects_touch_message(world, actor, &m)) {
        tell(world, actor, peer, &m);
        actor_flush(world, actor);
    }
    faults_look(world);
}

static void be_shared(struct world *world, struct link *link, const struct parcel *parcel)
{
    struct actor *worker = worker_at(world, link->worker);
    if (worker->links[link->ps] != link) return;
    link->has_windows[TO_WORKER] = true;
    worker_is_shared(world, worker, link->ps, parcel);
}

void network_go_on(struct world *world, struct actor *ps, int worker)
{
    struct link *link = ps->links[worker];
    if (!link || !link->queues[TO_PS].is_held) return;
    link->queues[TO_PS].is_held = false;
    schedule(world, link, TO_PS);
}

/* As a link that is not read: what is behind it waits as well. */
static bool must_hold(struct world *world, struct link *link, enum direction end)
{
    struct actor *ps = ps_at(world, link->ps);
    struct queue *queue = &link->queues[end];
    const struct parcel *parcel = queue->first;
    const struct message *m = &parcel->message;
    const bool is_gradient = end == TO_PS && parcel->kind == PARCEL_MESSAGE &&
                             !range_is_empty(m->range) && message_has_stretch(m->type);
    if (!is_gradient || ps->has_ended || ps->links[link->worker] != link || !ps->config.windows)
        return false;
    if (ps_finds_window(world, ps, link->worker, m)) return queue->first != parcel;
    world->counters.held++;
    queue->is_held = true;
    return true;
}

void network_deliver(struct world *world, struct link *link, enum direction end)
{
    struct queue *queue = &link->queues[end];
    queue->is_scheduled = false;
    struct parcel *parcel = queue->first;
    if (!parcel || link->is_cut || !holds(world, link, end)) return;
    if (parcel->at_us > world->now_us || queue->stalled_until_us > world->now_us) {
        schedule(world, link, end);
        return;
    }
    if (must_hold(world, link, end)) return;
    queue->first = parcel->next;
    if (!queue->first) queue->last = NULL;
    queue->count--;
    if (parcel->kind == PARCEL_HELLO)
        greet(world, link);
    else if (parcel->kind == PARCEL_WELCOME)
        welcome(world, link);
    else if (parcel->kind == PARCEL_SHARE)
        be_shared(world, link, parcel);
    else if (parcel->kind == PARCEL_CLOSE)
        lose(world, link, end, "it closed the link");
    else
        hand_over(world, link, end, parcel);
    free(parcel);
    schedule(world, link, end);
}

/* The real link would refuse it and end, and be made anew, and might refuse it again. */
static bool can_send_stretch(struct world *world, const struct link *link, enum direction away)
{
    enum direction end = away == TO_PS ? TO_WORKER : TO_PS;
    if (link->has_windows[end] || !world->profile.has_variables[link->ps]) return true;
    const struct actor *from = actor_at(world, link, end), *to = actor_at(world, link, away);
    blame(world, "%s sends a stretch to %s over link %d, on which no windows are shared",
          actor_name(from), actor_name(to), link->number);
    return false;
}

struct link *network_link(struct world *world, const struct actor *actor, int peer)
{
    struct link *link = actor->links[peer];
    const enum direction away = actor->job == JOB_PS ? TO_WORKER : TO_PS;
    return link && !link->is_cut && holds(world, link, away) ? link : NULL;
}

/* The answers that it waits for lie behind what it cannot hear amid a step. */
static void check_hears(struct world *world, const struct actor *ps, int peer)
{
    const struct actor *worker = worker_at(world, peer);
    if (!ps->config.is_sync && actor_is_at(worker, ACTION_COMPUTE))
        blame(world, "%s tells %s of an epoch while it computes", actor_name(ps),
              actor_name(worker));
}

void network_send(struct world *world, struct actor *actor, const struct action_send *send)
{
    if (actor->job == JOB_WORKER) worker_says(world, actor, &send->message);
    struct link *link = network_link(world, actor, send->peer);
    enum direction away = actor->job == JOB_PS ? TO_WORKER : TO_PS;
    if (!link) return;
    const struct message *m = &send->message;
    if (actor->job == JOB_PS && m->type == MESSAGE_LEAVE && m->leave.what == LEAVE_REFUSED)
        check_refusal(world, send->peer);
    if (actor->job == JOB_PS && m->type == MESSAGE_LEAVE && m->leave.what == LEAVE_GRANTED)
        worker_at(world, send->peer)->is_granted = true;
    if (actor->job == JOB_WORKER && m->type == MESSAGE_STOP) world_is_to_stop(world);
    if (m->type == MESSAGE_COVERED && m->covered.is_over) check_hears(world, actor, send->peer);
    if (!range_is_empty(m->range) && !can_send_stretch(world, link, away)) return;
    assert(m->body_bytes <= BODY_MAX);
    if (actor->job == JOB_WORKER)
        rows_before_push(world, actor, send->peer, m);
    else
        rows_before_values(world, actor, send->peer, m);
    struct parcel *parcel = network_post(world, link, away, PARCEL_MESSAGE);
    parcel->message = *m;
    if (m->body_bytes) memcpy(parcel->body, m->body, m->body_bytes);
    if (actor->job == JOB_PS)
        ps_sends(world, actor, send->peer, parcel);
    else
        worker_sends(world, actor, send->peer, parcel);
    defects_touch_parcel(world, link, away, parcel);
}

void network_free(struct world *world)
{
    for (struct link *link = world->links, *next; link; link = next) {
        next = link->next;
        drop_from(&link->queues[TO_PS], 0);
        drop_from(&link->queues[TO_WORKER], 0);
        free(link);
    }
}
