/* replicas.c - ps that follow others (core/base/replicas.h), as a worker pushes to them and reads
 * them; and what holds of two that hold the same. */
#include <string.h>

#include "core/cluster/role/ps_role_inside.h"
#include "tests/simulate/world.h"

bool are_held_twice(const struct world *world)
{
    return world->profile.homes < world->profile.ps_count;
}

int home_of(const struct world *world, int ps)
{
    return replicas_home(world->profile.homes, ps);
}

int other_of(const struct world *world, int ps)
{
    return replicas_other(world->profile.homes, world->profile.ps_count, ps);
}

/* ---- of a worker ---- */

int source_of(const struct world *world, const struct actor *worker, int home)
{
    return replicas_have(worker->stood_in_for, home) ? other_of(world, home) : home;
}

bool is_read(const struct world *world, const struct actor *worker, int ps)
{
    return source_of(world, worker, home_of(world, ps)) == ps;
}

/* What was kept of a step that is over is nobody's, nor are rows that are still to come. */
static void part_from(struct view *view)
{
    view->kept[0].kind = CONTENT_NONE;
    view->rows_of = 0;
    view->was_brought = false;
    rows_asked_forget(&view->asked);
}

static void change(struct world *world, struct actor *worker, uint64_t gone)
{
    const uint64_t changed = gone ^ worker->stood_in_for;
    for (int home = 1; home < world->profile.homes; home++) {
        if (!replicas_have(changed, home)) continue;
        part_from(&worker->views[home]);
        part_from(&worker->views[other_of(world, home)]);
        world->counters.stood_in += replicas_have(gone, home);
    }
    worker->stood_in_for = gone;
}

/* A step that is being computed goes on with what it has. */
void replicas_stand_in(struct world *world, struct actor *worker, uint64_t gone)
{
    worker->stands_in_next = gone;
    change(world, worker, worker->stood_in_for & gone);
}

void replicas_turn_to(struct world *world, struct actor *worker)
{
    change(world, worker, worker->stands_in_next);
}

void replicas_copy_push(struct world *world, struct actor *worker, int ps, int first, int pieces)
{
    const struct view *from = &worker->views[source_of(world, worker, home_of(world, ps))];
    struct content *to = worker->views[ps].gradient;
    if (is_read(world, worker, ps) || !to || is_broken(world, DEFECT_COPY_OLD)) return;
    const struct content *gradient = from->gradient ? from->gradient : from->kept;
    memcpy(to + first, gradient + first, (size_t)pieces * sizeof *to);
    for (int i = first; i < first + pieces; i++) to[i].wanted = 0;
}

/* ---- what must hold ---- */

bool is_done_without(const struct world *world, int ps)
{
    return replicas_have(world->without, ps);
}

void replicas_note(struct world *world)
{
    const struct ps_role *first = (const struct ps_role *)ps_at(world, 0)->role;
    if (!are_held_twice(world) || !first || !first->config.generation) return;
    world->without = first->lead.gone;
    world->was_without |= world->without;
}

/* Of the generation that ps/0 serves, it has what all others have. */
static bool serves(struct world *world, int ps)
{
    const struct actor *actor = ps_at(world, ps), *first = ps_at(world, 0);
    return actor->is_alive && actor->is_serving && actor->store && *actor->store != NOTHING &&
           actor->config.generation == first->config.generation && !is_done_without(world, ps);
}

/* Its last push is in the values of each ps that may be read next. Where ps/0 drops some, it has
 * what the others are to have. */
void replicas_check_acknowledged(struct world *world, const struct actor *worker, uint64_t pushes)
{
    const int w = worker->index;
    const uint64_t generation = worker_role_generation(worker->role);
    if (worker_may_differ(world, w) || world->begun != generation) return;
    for (int ps = 0; ps < world->profile.ps_count; ps++) {
        const bool has_it = ps_at(world, ps)->config.generation == generation;
        if (!serves(world, ps) || !has_it || worker_role_is_without(worker->role, ps)) continue;
        if (!world->profile.has_variables[ps]) continue;
        const struct node *node = node_of(world, *ps_at(world, ps)->store);
        if (node->sequences[w] + node->dropped[w] < pushes && !world->profile.drops_gradients)
            blame(world, "%s has push %llu of worker/%d, of which push %llu was acknowledged",
                  actor_name(ps_at(world, ps)), (unsigned long long)node->sequences[w], w,
                  (unsigned long long)pushes);
    }
}

/* The bits of a round that takes all are the same at both. */
void replicas_check_same(struct world *world, const struct actor *ps)
{
    const int other = other_of(world, ps->index);
    if (other < 0 || !ps->config.takes_all || world->was_recomputed) return;
    if (!serves(world, ps->index) || !serves(world, other)) return;
    const struct node *a = node_of(world, *ps->store);
    const struct node *b = node_of(world, *ps_at(world, other)->store);
    const bool is_same_round = a->step == b->step && a->has_everybody && b->has_everybody;
    if (is_same_round && a->hash != b->hash)
        blame(world, "ps/%d and ps/%d have other bits of step %llu", ps->index, other,
              (unsigned long long)a->step);
}

/* What all homes have is somewhere: nothing is to be begun again but where all are held. They are
 * not where ps/0 has lost the chief meanwhile. */
void replicas_check_choice(struct world *world, const struct actor *chief)
{
    const bool is_last =
        ps_at(world, 0)->config.generation == world->begun && is_linked(world, 0, chief->index);
    if (!are_held_twice(world) || !is_last || !serves(world, 0)) return;
    for (int home = 0; home < world->profile.homes; home++)
        if (!serves(world, home) && (home == 0 || !serves(world, other_of(world, home)))) return;
    const struct node *first = node_of(world, *ps_at(world, 0)->store);
    const struct shard *shard = disk_shard(world, chief->chosen, 0);
    if ((shard ? node_of(world, shard->node)->updates : 0) != first->updates)
        blame(world, "%s goes back to step %llu of %llu though no values are lost",
              actor_name(chief), (unsigned long long)chief->choice.step,
              (unsigned long long)first->step);
}
