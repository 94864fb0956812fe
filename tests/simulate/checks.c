/* checks.c - what must hold of a checkpoint when it is published, and of a run when it is over. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/cluster/role/ps_role_inside.h"
#include "core/cluster/role/verdict.h"
#include "tests/simulate/world.h"

static bool is_well(enum story story)
{
    return story == STORY_CALM || story == STORY_DISTURBED || story == STORY_SLOW_RETURN ||
           story == STORY_WORKER_GONE;
}

/* ---- who is here ---- */

bool is_linked(struct world *world, int ps, int worker)
{
    const struct actor *p = ps_at(world, ps), *w = worker_at(world, worker);
    const struct link *link = p->links[worker];
    return p->is_alive && w->is_alive && link && link == w->links[ps] && !link->is_cut &&
           link->is_open[TO_PS] && link->is_open[TO_WORKER];
}

static bool all_linked(struct world *world)
{
    for (int ps = 0; ps < world->profile.ps_count; ps++)
        for (int w = 0; w < world->profile.workers; w++)
            if (!is_linked(world, ps, w)) return false;
    return true;
}

/* ---- checkpoints ---- */

static void check_ledger(struct world *world, const struct shard *first, const struct shard *shard,
                         int worker)
{
    const struct node *node = node_of(world, shard->node);
    const struct ledger *ledger = &shard->ledger[worker];
    const uint64_t owed = first->ledger[worker].taken;
    const bool is_written_off = ledger->taken < owed && ledger->received >= owed;
    if (world->profile.drops_gradients && is_written_off)
        blame(world,
              "the shard of ps/%d lacks push %llu of worker/%d, and its ledger says that it is not "
              "to come",
              shard->home, (unsigned long long)owed, worker);
    if (ledger->taken != node->sequences[worker] || ledger->received < ledger->taken)
        blame(world,
              "the shard of ps/%d has push %llu of worker/%d, and its ledger says %llu taken of "
              "%llu received",
              shard->home, (unsigned long long)node->sequences[worker], worker,
              (unsigned long long)ledger->taken, (unsigned long long)ledger->received);
}

/* ---- batches that are handed out ---- */

/* How often each was used on the way to a state of ps/0: [count], freed by the caller. */
static int *count_uses(const struct world *world, int node, uint64_t *ret_count)
{
    uint64_t count = 0;
    for (int at = node; at != NOTHING; at = node_of(world, at)->parent)
        if (node_of(world, at)->used > count) count = node_of(world, at)->used;
    int *uses = calloc((size_t)count + 1, sizeof *uses);
    assert(uses);
    for (int at = node; at != NOTHING; at = node_of(world, at)->parent)
        if (node_of(world, at)->used) uses[node_of(world, at)->used - 1]++;
    *ret_count = count;
    return uses;
}

/* Each of those before the front was used once, unless it is open. */
static void check_open(struct world *world, const struct shard *shard)
{
    struct batch_queue queue;
    uint64_t count, used = 0, again = 0;
    if (!batch_queue_open(&queue, world->profile.workers, 1)) return;
    const bool is_one = batch_queue_read(&queue, shard->queue, shard->queue_count);
    int *uses = count_uses(world, shard->node, &count);
    if (!is_one) blame(world, "a checkpoint tells of no open batches");
    for (uint64_t b = 0; is_one && (b < count || b < queue.front); b++) {
        const bool is_used = batch_queue_used(&queue, 1, b, b + 1);
        const int uses_there = b < count ? uses[b] : 0;
        used += (uint64_t)uses_there;
        again += (uint64_t)(uses_there > 1 ? uses_there - 1 : 0);
        if ((uses_there > 0) != is_used)
            blame(world, "batch %llu is in the values %d times, and %s", (unsigned long long)b,
                  uses_there, is_used ? "counted as used" : "is open");
    }
    if (used * shard->coverage.share.batch != shard->coverage.total)
        blame(world, "%llu rows are counted, of %llu batches",
              (unsigned long long)shard->coverage.total, (unsigned long long)used);
    if (again * shard->coverage.share.batch != shard->coverage.twice)
        blame(world, "%llu batches are in the values twice, and %llu rows are counted",
              (unsigned long long)again, (unsigned long long)shard->coverage.twice);
    if (shard->coverage.lost || shard->coverage.late)
        blame(world, "rows of batches that are handed out are lost or late");
    free(uses);
    batch_queue_free(&queue);
}

/* At the end none is left out, and none comes twice but a push that some ps had already, for which
 * there is a step more. */
static void check_all_used(struct world *world, const struct node *last, uint64_t last_step)
{
    uint64_t count, again = 0;
    int *uses = count_uses(world, (int)(last - world->nodes.at), &count);
    for (uint64_t b = 0; b < count; b++) {
        again += (uint64_t)(uses[b] > 1 ? uses[b] - 1 : 0);
        if (!uses[b])
            blame(world, "at the end batch %llu of %llu is in no values", (unsigned long long)b,
                  (unsigned long long)count);
    }
    if (count && last->step - again != last_step)
        blame(world, "at the end %llu batches are in the values twice at step %llu of %llu",
              (unsigned long long)again, (unsigned long long)last->step,
              (unsigned long long)last_step);
    free(uses);
}

/* What ps/0 has counted is what is in the values, whoever was lost meanwhile. */
static void check_coverage(struct world *world, const struct shard *shard)
{
    const struct node *node = node_of(world, shard->node);
    const struct coverage *c = &shard->coverage;
    uint64_t used = 0, open = 0;
    bool may_lose = false;
    if (data_share_is_queue(&c->share)) {
        check_open(world, shard);
        return;
    }
    for (int w = 0; w < world->profile.workers; w++) {
        const uint64_t pushes = node->sequences[w] - node->missing[w];
        used += pushes * c->share.batch * world->profile.gradients_per_push[w];
        may_lose |=
            node->missing[w] || node->dropped[w] || world->was_left_out[w] || world->asked[w];
    }
    for (int i = 0; i < COVERAGE_EPOCHS; i++) open += c->applied[i];
    if (c->total != used)
        blame(world, "%llu rows are in the values, and %llu are counted", (unsigned long long)used,
              (unsigned long long)c->total);
    else if (c->first * c->share.rows + c->twice - c->lost + open != used)
        blame(world, "the rows of epochs are not %llu", (unsigned long long)used);
    else if (c->twice || ((c->lost || c->late) && !may_lose))
        blame(world, "%llu rows counted twice, %llu lost, %llu late", (unsigned long long)c->twice,
              (unsigned long long)c->lost, (unsigned long long)c->late);
}

static void check_shards(struct world *world, const struct shard *first, const struct shard *shard,
                         uint64_t step)
{
    const struct node *a = node_of(world, first->node), *b = node_of(world, shard->node);
    if (a->generation != b->generation)
        blame(world, "the shards of ps/%d and ps/%d are of two generations", first->home,
              shard->home);
    bool all_same = true;
    for (int w = 0; w < world->profile.workers; w++) {
        if (a->sets[w] == b->sets[w]) continue;
        all_same = false;
        if (!worker_may_differ(world, w))
            blame(world, "of worker/%d, the shard of ps/%d has push %llu and that of ps/%d %llu", w,
                  first->home, (unsigned long long)a->sequences[w], shard->home,
                  (unsigned long long)b->sequences[w]);
    }
    if (all_same && (a->step != step || b->step != step))
        blame(world, "the shards of step %llu are of step %llu and %llu", (unsigned long long)step,
              (unsigned long long)a->step, (unsigned long long)b->step);
}

static void check_step(struct world *world, const struct shard *shard, uint64_t wanted)
{
    const struct actor *ps = ps_at(world, shard->home);
    uint64_t step = node_of(world, shard->node)->step, apart = (uint64_t)steps_apart(world, ps);
    if (step > wanted + apart || step + apart < wanted)
        blame(world, "%s made its snapshot of step %llu at step %llu", actor_name(ps),
              (unsigned long long)wanted, (unsigned long long)step);
}

void check_publish(struct world *world, const struct checkpoint *checkpoint)
{
    bool is_there[HOMES_MAX] = {false};
    for (int i = 0; i < checkpoint->count; i++) {
        const struct shard *shard = &checkpoint->shards[i];
        if (!shard->is_there || shard->node == NOTHING || is_there[shard->home]) {
            blame(world, "a checkpoint without its shard %d is published", i);
            return;
        }
        is_there[shard->home] = true;
        check_step(world, shard, checkpoint->step);
        if (shard->home == 0) check_coverage(world, shard);
        check_shards(world, &checkpoint->shards[0], shard, checkpoint->step);
        for (int w = 0; w < world->profile.workers; w++)
            check_ledger(world, &checkpoint->shards[0], shard, w);
    }
    for (int ps = 0; ps < world->profile.homes; ps++)
        if (!is_there[ps] && (world->profile.has_variables[ps] || ps == 0))
            blame(world, "a checkpoint without ps/%d is published", ps);
}

/* What all do for one: the last one and this one are written, this one is published; workers come
 * to one step, some without a batch at first. 0: what takes no time is made to wait by who says
 * what happens. */
static uint64_t save_limit_us(const struct profile *p)
{
    enum { WRITES = 4, STEPS = 20 };
    return WRITES * p->write_us + STEPS * (p->compute_us + 6 * p->delay_us);
}

void check_save_end(struct world *world, const struct actor *chief)
{
    const uint64_t limit_us = save_limit_us(&world->profile);
    uint64_t since_us = chief->save_us;
    if (since_us < world->met_us) since_us = world->met_us;
    if (since_us < world->last_fault_us) since_us = world->last_fault_us;
    if (!limit_us || !all_linked(world) || world->now_us <= since_us + limit_us) return;
    blame(world, "a checkpoint takes %llu ms though everybody is here",
          (unsigned long long)(world->now_us - since_us) / 1000);
}

/* ---- the verdict ---- */

/* It may come to its own end before it listens again. */
static bool is_concluding(const struct actor *actor)
{
    return actor_is_at(actor, ACTION_PUBLISH) || actor_is_at(actor, ACTION_EVALUATE);
}

static bool is_worth_another_try(int code)
{
    return code >= EXIT_LOST_PEER;
}

/* A ps that the job is done without: a signal, or who did not come to set it up. */
static bool ends_alone(const struct world *world, const struct actor *actor)
{
    const int code = actor->code;
    const bool has_reason =
        is_worth_another_try(code) || (actor->asked_us && code == EXIT_TERMINATED);
    return actor->job == JOB_PS && replicas_have(world->was_without, actor->index) && has_reason;
}

/* Whoever cannot hear of the verdict over links that are there need not have it. */
void check_first_end(struct world *world, const struct actor *actor)
{
    if (world->first_ended != NOTHING || ends_alone(world, actor)) return;
    world->first_ended = actor->number;
    bool hears[ACTORS_MAX] = {false};
    hears[actor->number] = true;
    for (int round = 0; round < ACTORS_MAX; round++)
        for (int ps = 0; ps < world->profile.ps_count; ps++)
            for (int w = 0; w < world->profile.workers; w++)
                if (is_linked(world, ps, w) && (hears[ps] || hears[PS_MAX + w]))
                    hears[ps] = hears[PS_MAX + w] = true;
    for (int i = 0; i < ACTORS_MAX; i++)
        world->actors[i].is_severed |= !hears[i] || is_concluding(&world->actors[i]);
}

/* A worker leaves a job that continues. One that could not ask in time is like one that died. */
void check_departure(struct world *world, struct actor *worker)
{
    if (!worker->is_departing) blame(world, "%s leaves unasked", actor_name(worker));
    world->counters.departed++;
    worker->departs = true;
    const bool has_died = worker->departures + 1 < worker->life; /* what that life pushed to some
                                                                   ps only, this one need not have
                                                                   brought the others */
    worker->departures += worker->is_granted && !has_died;
}

/* Nobody waits for a worker that was granted to leave. */
void check_patience(struct world *world, const struct actor *actor, const char *text)
{
    int worker;
    if (world->profile.story != STORY_CALM || strstr(text, "it has left")) return;
    if (sscanf(text, "continues without worker/%d", &worker) == 1 &&
        worker_at(world, worker)->is_granted)
        blame(world, "%s waits for worker/%d, which has left", actor_name(actor), worker);
}

/* Nothing else goes wrong: whoever asks may leave where others are at work, and somebody can lead.
 */
void check_refusal(struct world *world, int worker)
{
    const struct profile *p = &world->profile;
    const bool can_lead = p->limits.chief_ms && !p->feed_ahead;
    int others = 0;
    for (int w = 0; w < p->workers; w++)
        others += w != worker && is_linked(world, 0, w) && !worker_at(world, w)->is_departing;
    const bool is_early = world->counters.computed < 2 * p->workers;
    if (p->story != STORY_CALM || is_early || world->is_to_stop) return;
    const bool is_chief = ps_role_chief(ps_at(world, 0)->role) == worker;
    if (others >= (p->config.min_workers > 1 ? p->config.min_workers : 1) &&
        (can_lead || !is_chief))
        blame(world, "worker/%d may not leave, though %d others are here", worker, others);
}

static bool may_end_with(const struct world *world, int code)
{
    /* The last checkpoint could not be written. */
    bool may_fail = world->has_failed_to_write || world->profile.story == STORY_HARSH;
    if (code == EXIT_FAILED && world->profile.saves && may_fail) return true;
    if (code == EXIT_TERMINATED && world->was_asked_to_leave) return true;
    if (world->was_asked_to_leave && world->profile.story != STORY_CALM)
        return code == EXIT_DONE || is_worth_another_try(code); /* too few are left */
    switch (world->profile.story) {
    case STORY_CALM:
    case STORY_DISTURBED:
    case STORY_SLOW_RETURN:
    case STORY_FINISH:
        return code == EXIT_DONE;
    case STORY_WORKER_GONE: /* nobody takes the place of a chief that goes before the job begins */
        return code == EXIT_DONE || (code == EXIT_TIMEOUT && world->counters.generations == 0);
    case STORY_LEAVE:
        return code == EXIT_DONE || code == EXIT_TERMINATED;
    case STORY_TOO_FEW:
    case STORY_PS_GONE:
    case STORY_CHIEF_GONE: /* the job may have been done before */
    case STORY_HARSH:
        return code == EXIT_DONE || is_worth_another_try(code);
    case STORIES:
        break;
    }
    return false;
}

/* A verdict that is on its way crosses another one: two limits run out at the same time. */
static bool is_crossing(const struct world *world, const struct actor *actor)
{
    enum { HOPS_MAX = 4 };
    const struct actor *first = &world->actors[world->first_ended];
    return actor->ended_us <= first->ended_us + HOPS_MAX * world->profile.delay_us;
}

/* A worker that came late and took no part yet ends at once on a signal: what becomes of the job it
 * does not learn. */
static bool has_ended_alone(const struct actor *actor)
{
    return actor->job == JOB_WORKER && actor->asked_us && actor->ended_us == actor->asked_us;
}

/* Alone, by what check_departure() looks at. */
static bool has_departed(const struct actor *actor)
{
    return actor->job == JOB_WORKER && actor->role && worker_role_has_left(actor->role);
}

static void check_verdicts(struct world *world)
{
    const struct actor *first = &world->actors[world->first_ended];
    if (!may_end_with(world, first->code))
        blame(world, "%s ends with %d: %s", actor_name(first), first->code, first->text);
    for (int i = 0; i < ACTORS_MAX; i++) {
        const struct actor *actor = &world->actors[i];
        if (!actor->has_ended || actor->code == first->code || has_departed(actor)) continue;
        bool is_fine_alone = is_worth_another_try(actor->code) || may_end_with(world, actor->code);
        if (ends_alone(world, actor)) continue;
        bool has_own_reason = world->counters.moved || actor->is_severed ||
                              is_crossing(world, actor) || has_ended_alone(first) ||
                              world->profile.story == STORY_HARSH;
        if (has_own_reason && is_fine_alone) continue;
        blame(world, "%s ends with %d (%s), but %s with %d (%s)", actor_name(first), first->code,
              first->text, actor_name(actor), actor->code, actor->text);
    }
}

/* ---- what was trained ---- */

static const struct node *final_state(struct world *world, int ps)
{
    const struct actor *actor = ps_at(world, ps);
    if (!actor->is_alive || !actor->has_ended) return NULL; /* killed after the verdict */
    if (!actor->store || *actor->store == NOTHING || is_done_without(world, ps)) return NULL;
    return node_of(world, *actor->store);
}

/* At the end it had brought everything, here as well as at the other ps. */
static bool has_finished(struct world *world, int ps, int worker)
{
    const struct ps_role *role = (const struct ps_role *)ps_at(world, ps)->role;
    return role && role->members[worker].standing == FINISHED;
}

/* Whoever was gone when the job ended may have shown its last push to some ps only. */
static bool may_end_apart(struct world *world, int ps, int worker)
{
    const bool is_gone = !has_finished(world, 0, worker) || !has_finished(world, ps, worker);
    return world->came_too_late[worker] || (is_gone && worker_may_differ(world, worker));
}

/* All ps hold the same pushes, as many as there are steps. */
static void check_states(struct world *world)
{
    const struct node *first = final_state(world, 0);
    for (int ps = 0; ps < world->profile.ps_count; ps++) {
        const struct node *node = final_state(world, ps);
        if (!world->profile.has_variables[ps] && ps != 0) continue;
        if (!first || !ps_at(world, ps)->is_alive || is_done_without(world, ps)) continue;
        bool gave_all = world->final_generation[ps] == world->final_generation[0];
        if (!node && gave_all && ps_at(world, ps)->life > 1)
            continue; /* killed when all was done */
        if (!node) {
            blame(world, "all is well at the end, but ps/%d has no values", ps);
            return;
        }
        for (int w = 0; w < world->profile.workers; w++)
            if (node->sets[w] != first->sets[w] && !may_end_apart(world, ps, w))
                blame(world, "at the end ps/%d has push %llu of worker/%d, and ps/0 %llu", ps,
                      (unsigned long long)node->sequences[w], w,
                      (unsigned long long)first->sequences[w]);
        const uint64_t last_step = profile_last_step(&world->profile);
        const uint64_t apart = (uint64_t)steps_apart(world, ps_at(world, ps));
        const uint64_t more = steps_more(world, ps_at(world, ps));
        const bool has_moved = world->counters.moved > 0;
        bool is_exact = !has_moved && world->profile.story != STORY_FINISH &&
                        world->profile.story != STORY_LEAVE;
        if (is_exact && ps == 0 && node) check_all_used(world, node, last_step);
        if (is_exact && (node->step > last_step + more || node->step + apart < last_step))
            blame(world, "ps/%d ends at step %llu, not %llu", ps, (unsigned long long)node->step,
                  (unsigned long long)last_step);
    }
}

/* Gradients are of the values of all ps, be they done without since. */
static bool lacks_somebody(struct world *world)
{
    for (int w = 0; w < world->profile.workers && world->was_without; w++)
        if (world->was_left_out[w]) return true;
    for (int ps = 0; ps < world->profile.ps_count; ps++) {
        const struct node *node = final_state(world, ps);
        const bool counts = world->profile.has_variables[ps] || ps == 0; /* says the step of all */
        if (counts && node && !node->has_everybody) return true;
    }
    return false;
}

/* The same bits as if nothing had happened. */
static void check_bits(struct world *world)
{
    const struct profile *profile = &world->profile;
    const struct node *first = final_state(world, 0);
    if (!profile->config.takes_all || world->was_recomputed || !first) return;
    if (lacks_somebody(world)) return;
    const struct undisturbed undisturbed = {profile->homes, profile->workers,
                                            profile->has_variables, first->step};
    uint64_t hashes[HOMES_MAX];
    undisturbed_hashes(&undisturbed, hashes);
    for (int ps = 0; ps < profile->ps_count; ps++) {
        const struct node *node = final_state(world, ps);
        if (!profile->has_variables[ps] || !node) continue;
        if (node->hash != hashes[home_of(world, ps)])
            blame(world, "ps/%d does not end with the bits of the undisturbed run", ps);
    }
}

/* The last checkpoint is of the end. */
static void check_last_checkpoint(struct world *world)
{
    const struct node *first = final_state(world, 0);
    const uint64_t last_step = first ? first->step : profile_last_step(&world->profile);
    bool must_save = world->profile.saves && is_well(world->profile.story) &&
                     !world->has_failed_to_write && !world->counters.moved;
    if (!must_save) return;
    const struct folder *folder = &world->folder;
    if (folder->newest == NOTHING || folder->at[folder->newest].step != last_step)
        blame(world, "the run ends at step %llu, its last checkpoint is of %lld",
              (unsigned long long)last_step,
              folder->newest == NOTHING ? -1LL : (long long)folder->at[folder->newest].step);
}

/* It had brought everything everywhere before the chief had nothing more to save. */
static bool was_in_time(struct world *world, int ps, int worker)
{
    const uint64_t until_us = world->concluded_us, delay_us = 2 * world->profile.delay_us;
    return has_finished(world, ps, worker) && !world->came_too_late[worker] &&
           world->finished_us[ps][worker] + delay_us < until_us;
}

/* What is in the last checkpoint of one ps is in that of all. */
static void check_last_shards(struct world *world)
{
    const struct folder *folder = &world->folder;
    if (!world->profile.saves || world->has_failed_to_write || folder->newest == NOTHING) return;
    const struct checkpoint *last = &folder->at[folder->newest];
    const struct shard *first = disk_shard(world, folder->newest, 0);
    for (int i = 0; i < last->count && first; i++) {
        const struct shard *shard = &last->shards[i];
        const struct node *a = node_of(world, first->node), *b = node_of(world, shard->node);
        for (int w = 0; w < world->profile.workers; w++) {
            const bool is_in_time = was_in_time(world, 0, w) && was_in_time(world, shard->home, w);
            const bool is_told =
                world->torn_tag != last->tag || world->torn[w].lacking || world->torn[w].more;
            if (a->sets[w] != b->sets[w] && !world->profile.config.is_sync && !is_told)
                blame(world, "a push of worker/%d is not in all of the last checkpoint, untold", w);
            if (a->sets[w] != b->sets[w] && is_in_time)
                blame(world,
                      "of worker/%d the last checkpoint has push %llu at ps/0, %llu at ps/%d", w,
                      (unsigned long long)a->sequences[w], (unsigned long long)b->sequences[w],
                      shard->home);
        }
    }
}

bool goes_without(const struct actor *ps, int worker)
{
    return ((const struct ps_role *)ps->role)->members[worker].standing == EVICTED;
}

/* Whoever moves continues from a checkpoint that has of all who were counted on then what ps/0 has
 * taken. A synchronous worker that is back may be about to make something good. */
void check_resize(struct world *world, const struct actor *chief)
{
    const struct folder *folder = &world->folder;
    const struct shard *first = disk_shard(world, folder->newest, 0);
    if (!first) {
        blame(world, "%s moves without a checkpoint", actor_name(chief));
        return;
    }
    const struct checkpoint *last = &folder->at[folder->newest];
    for (int i = 0; i < last->count; i++) {
        const struct shard *shard = &last->shards[i];
        for (int w = 0; w < world->profile.workers; w++) {
            const bool may_differ = first->goes_without[w] || shard->goes_without[w] ||
                                    (world->profile.config.is_sync && worker_may_differ(world, w));
            const uint64_t has = node_of(world, shard->node)->sets[w];
            if (!may_differ && has != node_of(world, first->node)->sets[w])
                blame(world, "all move, and ps/%d has not of worker/%d what ps/0 has", shard->home,
                      w);
        }
    }
}

/* Where nothing goes wrong no step is computed in vain. */
static void check_tickets(struct world *world)
{
    const struct profile *profile = &world->profile;
    if (profile->story != STORY_CALM || profile->config.is_sync) return;
    uint64_t expected = profile_last_step(profile) + (uint64_t)world->counters.dropped;
    if ((uint64_t)world->counters.computed != expected)
        blame(world, "%d steps were computed for %llu", world->counters.computed,
              (unsigned long long)expected);
}

/* Who hears of no ps any more leaves in the end, if it is to, and then there may be nobody. */
static bool have_all_left(const struct world *world)
{
    bool has_left = false;
    for (int i = 0; i < ACTORS_MAX; i++) {
        const struct actor *actor = &world->actors[i];
        if (actor->is_alive && !actor->has_ended) return false;
        has_left |= actor->has_ended && actor->departs;
    }
    return has_left;
}

void check_end(struct world *world)
{
    if (world->first_ended == NOTHING && have_all_left(world)) return;
    if (world->first_ended == NOTHING) {
        blame(world, "nobody has ended");
        return;
    }
    check_verdicts(world);
    if (world->actors[world->first_ended].code != EXIT_DONE) return;
    check_states(world);
    check_bits(world);
    check_last_checkpoint(world);
    check_last_shards(world);
    check_tickets(world);
}
