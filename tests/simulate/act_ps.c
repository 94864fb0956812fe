/* act_ps.c - what a ps' runner does with memory and disks, in the model. */
#include <assert.h>
#include <string.h>

#include "core/cluster/role/parts.h"
#include "core/cluster/role/verdict.h"
#include "tests/simulate/world.h"

enum { START_GRACE_MS = 10000 };

/* ---- setting up ---- */

/* Without rounds the steps are those of ps/0: another one may have one push more. */
static void begin_store(struct world *world, struct actor *ps, const struct ps_config *config)
{
    *ps->store =
        nodes_begin(&world->nodes, ps->restored, home_of(world, ps->index), config->generation);
    if (!config->is_sync) world->nodes.at[*ps->store].step = config->step;
}

/* Of two ps the follower is to have the values of the other one as well. */
static bool has_pushes_of(const struct world *world, const struct actor *ps,
                          const struct shard *shard)
{
    const struct node *node = node_of(world, *ps->store);
    bool is_same = node->generation == node_of(world, shard->node)->generation;
    for (int w = 0; w < world->profile.workers; w++)
        is_same = is_same && node->sequences[w] == shard->ledger[w].taken;
    return is_same;
}

/* What the chief would have it read is what it has (runner_ps_store.c). */
static bool has_these(struct world *world, const struct actor *ps, const struct shard *shard,
                      uint64_t snapshot)
{
    if (!shard || !ps->store || *ps->store == NOTHING || ps->snapshot.is_active) return false;
    const bool has = is_broken(world, DEFECT_KEPT_BY_LEDGER)
                         ? !ps->advanced && has_pushes_of(world, ps, shard)
                         : snapshot && snapshot == ps->as_of;
    if (!has) return false;
    world->counters.kept++;
    if (ps->advanced || node_of(world, *ps->store)->hash != node_of(world, shard->node)->hash)
        blame(world, "%s keeps other values than those of its checkpoint", actor_name(ps));
    return true;
}

/* Reads its part of the checkpoint, or learns what it will be brought. */
static void set_up(struct world *world, struct actor *ps, const struct action_setup *action)
{
    struct description description;
    memcpy(&description, action->message.body, sizeof description);
    struct ps_config *config = &description.config;
    const int home = home_of(world, ps->index);
    const struct shard *shard = disk_shard(world, description.checkpoint, home);
    const bool has_all = has_these(world, ps, shard, description.snapshot);
    if (!has_all) ps->as_of = 0;
    if (!ps->store) ps->store = &world_map(world)->node;
    *ps->store = NOTHING;
    ps->arrays = ps->advanced = 0;
    ps->is_serving = false;
    ps->snapshot.noted = 0;
    memset(ps->is_folded, 0, sizeof ps->is_folded);
    memset(ps->told, 0, sizeof ps->told);
    memset(ps->ids, 0, sizeof ps->ids);
    ps->restored = shard ? shard->node : NOTHING;
    config->block_floats = world->profile.has_variables[ps->index] ? PIECES * PIECE_FLOATS : 0;
    config->moved_floats = config->block_floats ? profile_moved_floats(&world->profile) : 0;
    config->windows = config->block_floats ? world->profile.windows : 0;
    config->is_restored = has_all || (shard && world->profile.sees_folder[ps->index]);
    config->homes = world->profile.homes;
    config->ps_count = world->profile.ps_count;
    config->follows = home != ps->index;
    if (shard && !is_broken(world, DEFECT_LEDGER_LOST)) config->ledger = shard->ledger;
    if (!config->block_floats || config->is_restored) begin_store(world, ps, config);
    if (is_broken(world, DEFECT_RESTORED_OFF) && shard && ps->index == 0) config->step++;
    ps->config = *config;
    struct setup_result result = {.text = "", .config = *config};
    if (config->is_restored && !has_all && world->folder.at[description.checkpoint].is_bad) {
        result.result = ERR_INPUT;
        result.is_bad_checkpoint = true;
        result.text = "the checksum differs";
    }
    ps_role_set_up(ps->role, &result, &ps->outbox);
}

static void begin_set_up(struct world *world, struct actor *ps, const struct action *action)
{
    struct description description;
    memcpy(&description, action->setup.message.body, sizeof description);
    if (description.term < ps_role_term(ps->role))
        blame(world, "%s is set up by a chief of term %llu, and knows of term %llu", actor_name(ps),
              (unsigned long long)description.term, (unsigned long long)ps_role_term(ps->role));
    memcpy(ps->setup, &description, sizeof description);
    struct action kept = *action;
    kept.setup.message.body = ps->setup;
    if (world->profile.read_us)
        actor_work(world, ps, &kept, world->profile.read_us);
    else
        set_up(world, ps, &kept.setup);
}

static void initialize(struct world *world, struct actor *ps,
                       const struct action_initialize *action)
{
    if (!ps->config.block_floats) return;
    const struct windows *windows = ps->windows[action->worker];
    const struct content *content = windows ? windows->gradient : NULL;
    if (!content || content->kind != CONTENT_ARRAY || content->array != action->array ||
        content->generation != ps->config.generation || content->node != ps->restored) {
        blame(world, "%s is filled with what is not its array %d", actor_name(ps), action->array);
        return;
    }
    ps->arrays++;
    ps->as_of = 0;
    if (ps->arrays == world->profile.arrays_restored || ps->restored == NOTHING)
        begin_store(world, ps, &ps->config);
}

void ps_forget(struct world *world, struct actor *ps)
{
    ps->store = NULL;
    ps->as_of = ps->advanced = 0;
    ps->is_serving = false;
    memset(ps->windows, 0, sizeof ps->windows);
    memset(ps->is_folded, 0, sizeof ps->is_folded);
}

/* ---- windows ---- */

static void share(struct world *world, struct actor *ps, const struct action_share *action)
{
    struct windows **windows = &ps->windows[action->worker];
    if (!*windows || action->is_fresh) *windows = &world_map(world)->windows;
    if (action->is_fresh) rows_told_forget(&ps->told[action->worker]);
    struct link *link = ps->links[action->worker];
    if (!link || link->is_cut || !link->is_open[TO_WORKER] || !ps->config.block_floats) return;
    if (link->has_windows[TO_PS])
        blame(world, "%s shares windows twice over link %d", actor_name(ps), link->number);
    link->has_windows[TO_PS] = true;
    struct parcel *parcel = network_post(world, link, TO_WORKER, PARCEL_SHARE);
    parcel->windows = *windows;
    parcel->values = ps->config.takes_all ? ps->store : &(*windows)->copy;
}

bool ps_finds_window(struct world *world, struct actor *ps, int worker, const struct message *m)
{
    const struct link *link = ps->links[worker];
    ps_role_announce(ps->role, worker, m, &ps->outbox);
    actor_flush(world, ps);
    return ps->links[worker] != link || ps_role_has_window(ps->role, worker);
}

void ps_flushed(struct world *world, struct actor *ps)
{
    for (int w = 0; w < world->profile.workers && ps->config.windows; w++) {
        if (ps->has_ended) network_go_on(world, ps, w);
        if (!ps->windows[w] || ps_role_has_window(ps->role, w)) continue;
        for (int i = 0; i < PIECES; i++) ps->windows[w]->gradient[i].kind = CONTENT_NONE;
    }
    if (ps->has_ended || !ps->config.windows) return;
    for (int w; (w = ps_role_grant(ps->role)) != NOBODY;) network_go_on(world, ps, w);
}

static void refresh(struct world *world, struct actor *ps, int worker)
{
    if (is_broken(world, DEFECT_VALUES_OLD) && world->now_us % 4 == 0) return;
    if (ps->windows[worker]) ps->windows[worker]->copy = *ps->store;
}

/* ---- updates ---- */

/* A worker that died or was given up after it had shown a push to some ps makes it good for the
 * others, from what the values are by then: the one case where a gradient is not of the step that
 * it is applied at. */
bool worker_may_differ(struct world *world, int worker)
{
    const struct actor *actor = worker_at(world, worker);
    const int left = actor->departures; /* with all that it had pushed at every ps */
    const bool is_away = !actor->is_alive && !(actor->departs && actor->is_granted);
    return is_away || actor->life - left > 1 || world->was_left_out[worker];
}

static void note_hash(struct world *world, const struct content *gradient)
{
    struct applied *seen = &world->applied[gradient->worker][gradient->batch % APPLIED_KEPT];
    const struct applied now = {gradient->generation, gradient->batch + 1, gradient->hash};
    if (gradient->is_mixed) world->was_recomputed = true;
    bool is_same = seen->generation == now.generation && seen->sequence == now.sequence;
    if (is_same && seen->hash != now.hash) {
        if (!worker_may_differ(world, gradient->worker))
            blame(world, "two ps applied different gradients of worker/%d as its push %llu",
                  gradient->worker, (unsigned long long)now.sequence);
        world->was_recomputed = true;
    }
    *seen = now;
}

/* A chief has begun another generation: what this ps applies until it hears of that is lost. */
static bool is_outlived(struct world *world, const struct actor *ps)
{
    return world->begun && world->begun != ps->config.generation;
}

/* What no gradient that is applied may be. */
static void check_gradient(struct world *world, const struct actor *ps, int worker,
                           const struct content *gradient)
{
    const struct node *node = node_of(world, *ps->store);
    const char *name = actor_name(ps);
    unsigned long long sequence = gradient->batch + 1, last = node->sequences[worker];
    const bool decides = ps->config.takes_all || ps->index == 0; /* else it takes what that has */
    bool must_match = ps->config.is_sync && decides && !worker_may_differ(world, worker);
    /* Other ps have forgotten the values; or one has gone on without the worker while that computed
     * from memory of the ps, and it brings the others what has come of it. */
    bool may_tear = is_outlived(world, ps) || world->was_left_out[worker];
    bool may_mix = worker_may_differ(world, worker) || may_tear;
    if (gradient->kind != CONTENT_GRADIENT)
        blame(world, "%s applies what is no gradient (%d) of worker/%d", name, gradient->kind,
              worker);
    else if (gradient->worker != worker)
        blame(world, "%s applies a gradient of worker/%d as worker/%d's", name, gradient->worker,
              worker);
    else if (gradient->generation != ps->config.generation)
        blame(world, "%s applies a gradient of another generation", name);
    else if (sequence <= last)
        blame(world, "%s applies push %llu of worker/%d after its push %llu", name, sequence,
              worker, last);
    else if ((gradient->is_torn && !may_tear) || (gradient->is_mixed && !may_mix))
        blame(world, "%s applies push %llu of worker/%d, of values that do not belong together",
              name, sequence, worker);
    else if (must_match && gradient->step != node->step)
        blame(world, "%s applies push %llu of worker/%d, of step %llu, at step %llu", name,
              sequence, worker, (unsigned long long)gradient->step, (unsigned long long)node->step);
}

/* The longest that a gradient may have been on its way; ps/0 sees to it. */
static void check_staleness(struct world *world, const struct actor *ps,
                            const struct content *gradient)
{
    const struct node *node = node_of(world, *ps->store);
    int64_t limit = ps->config.max_staleness;
    if (ps->config.is_sync || ps->index != 0 || limit < 0) return;
    if (node->step > gradient->step + (uint64_t)limit)
        blame(world, "%s applies a gradient that is %llu updates old", actor_name(ps),
              (unsigned long long)(node->step - gradient->step));
}

/* A synchronous ps leaves out a round whose gradients died with a worker that had shown them to
 * other ps only. The role says so by the step of what comes next. */
static void leave_out_rounds(struct world *world, struct actor *ps, uint64_t step)
{
    const struct node *node = node_of(world, *ps->store);
    uint64_t from = node->step, may_differ = 0;
    for (int w = 0; w < world->profile.workers; w++) may_differ += worker_may_differ(world, w);
    if (!ps->config.is_sync || step <= from || step > from + may_differ) return;
    int left = *ps->store;
    *ps->store = nodes_leave_out(&world->nodes, left, step);
    for (int w = 0; w < world->profile.workers; w++)
        if (ps->windows[w] && ps->windows[w]->copy == left) ps->windows[w]->copy = *ps->store;
}

/* ps/0 counts the steps. Another ps may have the last push of a worker that ps/0 never got. */
int steps_apart(struct world *world, const struct actor *ps)
{
    int count = 0;
    for (int w = 0; w < world->profile.workers && ps->index; w++)
        count += worker_may_differ(world, w);
    return count;
}

/* What another ps has is taken beyond the last step. */
uint64_t steps_more(struct world *world, const struct actor *ps)
{
    return (uint64_t)steps_apart(world, ps) + (uint64_t)world->counters.owed;
}

static void check_divisor(struct world *world, const struct actor *ps, const int *workers,
                          int count, uint32_t divisor)
{
    uint32_t gradients = 0;
    for (int i = 0; i < count; i++) gradients += world->profile.gradients_per_push[workers[i]];
    if (gradients != divisor || count == 0)
        blame(world, "%s divides by %u where %u gradients are summed", actor_name(ps), divisor,
              gradients);
}

/* Where ps/0 decides: it has taken a gradient in a round that this ps was through without it. */
static bool is_late(struct world *world, const struct actor *ps, const struct action_apply *action)
{
    return ps->index && world->profile.drops_gradients && ps->config.is_sync &&
           action->step < node_of(world, *ps->store)->step;
}

static void check_round(struct world *world, const struct actor *ps,
                        const struct action_apply *action)
{
    const struct node *node = node_of(world, *ps->store);
    check_divisor(world, ps, action->workers, action->worker_count, action->gradients);
    if (is_late(world, ps, action)) return;
    if (ps->config.is_sync && action->step != node->step)
        blame(world, "%s applies round %llu at step %llu", actor_name(ps),
              (unsigned long long)action->step, (unsigned long long)node->step);
    if (node->step >= ps->config.last_step + steps_more(world, ps))
        blame(world, "%s goes beyond the last step %llu", actor_name(ps),
              (unsigned long long)ps->config.last_step);
}

/* Over all restores: whatever was pushed to it was applied or dropped. Where ps/0 drops some, the
 * others never see them. */
static void check_complete(struct world *world, const struct actor *ps)
{
    const struct node *node = node_of(world, *ps->store);
    if (world->profile.drops_gradients && ps->index) return;
    for (int w = 0; w < world->profile.workers; w++)
        if (node->missing[w] > node->dropped[w])
            blame(world, "%s has lost %llu of the pushes of worker/%d", actor_name(ps),
                  (unsigned long long)(node->missing[w] - node->dropped[w]), w);
}

/* What a ps has of the worker's gradient. */
static const struct content *gradient_of(const struct actor *ps, int worker)
{
    static const struct content nothing = {.kind = CONTENT_NONE};
    if (ps->is_folded[worker]) return &ps->folded[worker];
    return ps->windows[worker] ? &ps->windows[worker]->gradient[0] : &nothing;
}

static bool has_advanced(const struct actor *ps, int piece)
{
    return ps->advanced >> piece & 1;
}

static bool is_frozen(const struct world *world, int piece)
{
    return piece < PIECES && piece >= PIECES - world->profile.frozen;
}

/* Every piece becomes what all together become, and rows are applied with their block. */
static void check_pieces(struct world *world, const struct actor *ps,
                         const struct action_apply *action, uint64_t hash)
{
    for (int i = 0; i < PIECES; i++)
        if (has_advanced(ps, i) && ps->advanced_hashes[i] != hash)
            blame(world, "%s advanced its piece %d by other gradients than it applies",
                  actor_name(ps), i);
    for (int i = 0; i < action->worker_count && ps->config.block_floats; i++) {
        const struct content *gradient = ps->windows[action->workers[i]]->gradient;
        const bool is_folded = ps->is_folded[action->workers[i]];
        const uint64_t of_all = gradient_of(ps, action->workers[i])->hash;
        const int end = world->profile.has_rows ? WINDOW_PIECES : PIECES;
        for (int piece = is_folded ? PIECES : 0; piece < end; piece++)
            if (!has_advanced(ps, piece) && !is_frozen(world, piece) &&
                (gradient[piece].kind != CONTENT_GRADIENT || gradient[piece].hash != of_all))
                blame(world, "%s applies a gradient of worker/%d whose piece %d is of another",
                      actor_name(ps), action->workers[i], piece);
    }
}

static void apply_now(struct world *world, struct actor *ps, const struct action_apply *action)
{
    if (*ps->store == NOTHING) {
        blame(world, "%s applies gradients before it has values", actor_name(ps));
        return;
    }
    if (ps->config.is_sync) leave_out_rounds(world, ps, action->step);
    check_round(world, ps, action);
    const struct content *gradients[WORKERS_MAX];
    for (int i = 0; i < action->worker_count; i++) {
        int w = action->workers[i];
        gradients[i] = gradient_of(ps, w);
        check_gradient(world, ps, w, gradients[i]);
        rows_check_applied(world, ps, w, gradients[i]);
        check_staleness(world, ps, gradients[i]);
        if (ps->config.takes_all && !world->blame[0]) note_hash(world, gradients[i]);
    }
    if (world->blame[0]) return;
    const struct update update = {gradients, action->worker_count, world->profile.workers,
                                  is_late(world, ps, action)};
    check_pieces(world, ps, action, nodes_hash(&world->nodes, *ps->store, &update));
    *ps->store = nodes_apply(&world->nodes, *ps->store, &update);
    ps->advanced = 0;
    for (int i = 0; i < action->worker_count; i++) ps->is_folded[action->workers[i]] = false;
    memset(ps->has_joined, 0, sizeof ps->has_joined);
    check_complete(world, ps);
    replicas_check_same(world, ps);
}

/* ---- summed before the round is whole ---- */

/* The bits are those of a sum in the order of the workers, but where one of them has asked for
 * values again amid the round. */
static void check_order(struct world *world, const struct actor *ps, int worker)
{
    bool is_disturbed = !ps->config.takes_all || ps->has_joined[worker];
    for (int w = 0; w < world->profile.workers; w++)
        is_disturbed |= worker_may_differ(world, w) || world->was_left_out[w] ||
                        worker_at(world, w)->departures > 0;
    for (int w = worker; w < world->profile.workers && !is_disturbed; w++)
        if (ps->is_folded[w])
            blame(world, "%s sums the gradient of worker/%d behind that of worker/%d",
                  actor_name(ps), worker, w);
}

static void fold(struct world *world, struct actor *ps, const struct action_fold *action)
{
    const struct node *node = *ps->store == NOTHING ? NULL : node_of(world, *ps->store);
    if (!node || !ps->config.is_sync || action->worker_count == 0)
        blame(world, "%s sums gradients of no round", actor_name(ps));
    for (int i = 0; i < action->worker_count && !world->blame[0]; i++) {
        const int w = action->workers[i];
        const struct content *gradient = ps->windows[w] ? ps->windows[w]->gradient : NULL;
        check_order(world, ps, w);
        for (int piece = 0; piece < PIECES - world->profile.frozen && gradient; piece++)
            if (gradient[piece].hash != gradient[0].hash ||
                gradient[piece].kind != CONTENT_GRADIENT)
                blame(world, "%s sums a gradient of worker/%d that is not whole", actor_name(ps),
                      w);
        world->counters.folded++;
        ps->is_folded[w] = true;
        ps->folded[w] = (struct content){.kind = CONTENT_NONE};
        if (gradient && !is_broken(world, DEFECT_SUM_LOST)) ps->folded[w] = *gradient;
    }
}

static void unfold(struct world *world, struct actor *ps)
{
    world->counters.unfolded++;
    memset(ps->is_folded, 0, sizeof ps->is_folded);
}

/* ---- ahead of the round ---- */

/* Workers that map the store see it change. */
static void show_change(struct world *world, const struct actor *ps, int first, int count)
{
    for (int w = 0; w < world->profile.workers && world->profile.shares_memory; w++) {
        struct actor *worker = worker_at(world, w);
        const struct view *view = &worker->views[ps->index];
        if (worker->is_alive && view->values == ps->store)
            worker_sees_change(world, worker, ps->index, first, count);
    }
}

static void advance(struct world *world, struct actor *ps, const struct action_advance *action)
{
    static const struct content nothing = {.kind = CONTENT_NONE};
    const struct parts block = {PIECES * PIECE_FLOATS, PIECE_FLOATS};
    const uint64_t parts = parts_in(&block, action->range);
    if (*ps->store == NOTHING || action->step != node_of(world, *ps->store)->step || !parts ||
        parts & ps->advanced || !ps->config.takes_all) {
        blame(world, "%s advances pieces %llx, of which %llx have, at step %llu", actor_name(ps),
              (unsigned long long)parts, (unsigned long long)ps->advanced,
              (unsigned long long)action->step);
        return;
    }
    check_divisor(world, ps, action->workers, action->worker_count, action->gradients);
    const int first = (int)(action->range.begin / PIECE_FLOATS),
              count = (int)(range_count(action->range) / PIECE_FLOATS);
    for (int piece = first; piece < first + count; piece++) {
        const struct content *gradients[WORKERS_MAX];
        for (int i = 0; i < action->worker_count; i++) {
            const struct windows *windows = ps->windows[action->workers[i]];
            gradients[i] = windows ? &windows->gradient[piece] : &nothing;
        }
        const struct update update = {gradients, action->worker_count, world->profile.workers};
        ps->advanced_hashes[piece] = nodes_hash(&world->nodes, *ps->store, &update);
    }
    ps->advanced |= parts;
    show_change(world, ps, first, count);
}

static void take_back(struct world *world, struct actor *ps)
{
    if (!ps->advanced) blame(world, "%s takes back what has not advanced", actor_name(ps));
    if (!is_broken(world, DEFECT_ADVANCE_KEPT)) ps->advanced = 0;
}

/* Whoever reads all values reads those of one step. */
static void check_whole(struct world *world, const struct actor *ps, const char *for_what)
{
    if (ps->advanced)
        blame(world, "%s has advanced pieces %llx at %s", actor_name(ps),
              (unsigned long long)ps->advanced, for_what);
}

void ps_dropped(struct world *world, struct actor *ps, int worker)
{
    if (ps->store && *ps->store != NOTHING) world->nodes.at[*ps->store].dropped[worker]++;
}

static void apply(struct world *world, struct actor *ps, const struct action_apply *action)
{
    const bool loses = is_broken(world, DEFECT_FOLLOWER_LOSES) && ps->config.follows;
    bool is_later = (loses || is_broken(world, DEFECT_APPLIED_LATER)) && chance(world, 10);
    if (!is_later) apply_now(world, ps, action);
    if (!ps->config.is_sync && !world->blame[0]) refresh(world, ps, action->workers[0]);
}

/* ---- snapshots ---- */

static void snapshot(struct world *world, struct actor *ps, const struct action_snapshot *action)
{
    if (ps->snapshot.is_active) {
        blame(world, "%s makes a snapshot while it writes another", actor_name(ps));
        return;
    }
    check_whole(world, ps, "a snapshot");
    if (action->since && action->since != ps->snapshot.noted) {
        ps->role->ops->done(ps->role, ACTION_SNAPSHOT, ERR_INPUT, "since then nothing was noted",
                            &ps->outbox);
        return;
    }
    if (!action->since) ps->as_of = action->tag;
    const int from = ps->snapshot.noted_node;
    ps->snapshot = (struct snapshot_write){
        .is_active = true,
        .tag = action->tag,
        .step = action->step,
        .since = action->since,
        .from = from,
        .noted = action->tag,
        .shard = action->shard,
        .count = action->shards,
        .node = nodes_begin(&world->nodes, *ps->store, home_of(world, ps->index),
                            ps->config.generation),
    };
    const bool forgets = action->since && is_broken(world, DEFECT_DELTA_OF_OLD);
    ps->snapshot.noted_node = forgets ? from : ps->snapshot.node;
    for (int w = 0; w < world->profile.workers; w++) {
        ps->snapshot.ledger[w] = *ps_role_ledger(ps->role, w);
        ps->snapshot.goes_without[w] = goes_without(ps, w);
    }
    ps->snapshot.coverage = *ps_role_coverage(ps->role);
    const int64_t *queue = ps_role_queue(ps->role, &ps->snapshot.queue_count);
    if (ps->snapshot.queue_count > OPEN_MAX)
        blame(world, "%d numbers are open", ps->snapshot.queue_count);
    if (!world->blame[0] && ps->snapshot.queue_count)
        memcpy(ps->snapshot.queue, queue, (size_t)ps->snapshot.queue_count * sizeof *queue);
    actor_add(world, ps, EVENT_WRITTEN, soon(world, world->profile.write_us));
}

static err send_shard(struct world *world, struct actor *ps, const struct carried_shard *file)
{
    const int chief = ps_role_chief(ps->role);
    if (!ps->links[chief]) return ERR_PEER;
    const struct action_send send = {
        .peer = chief,
        .message = {.type = MESSAGE_SHARD,
                    .task = (uint32_t)ps->index,
                    .job = JOB_PS,
                    .shard.tag = file->tag,
                    .body = file,
                    .body_bytes = sizeof *file},
    };
    network_send(world, ps, &send);
    return OK;
}

void ps_written(struct world *world, struct actor *ps)
{
    struct snapshot_write *snapshot = &ps->snapshot;
    if (is_broken(world, DEFECT_SHARD_OF_ANOTHER) && ps->index == 0) snapshot->node = *ps->store;
    struct carried_shard file = {.tag = snapshot->tag,
                                 .step = snapshot->step,
                                 .number = snapshot->shard,
                                 .count = snapshot->count};
    file.shard = (struct shard){.is_there = true,
                                .home = home_of(world, ps->index),
                                .node = snapshot->node,
                                .from = snapshot->from};
    memcpy(file.shard.ledger, snapshot->ledger, sizeof file.shard.ledger);
    memcpy(file.shard.goes_without, snapshot->goes_without, sizeof file.shard.goes_without);
    file.shard.coverage = snapshot->coverage;
    file.shard.queue_count = snapshot->queue_count;
    memcpy(file.shard.queue, snapshot->queue, sizeof snapshot->queue);
    snapshot->is_active = false;
    bool is_here = world->profile.sees_folder[ps->index];
    err e = is_here ? disk_write(world, &file) : send_shard(world, ps, &file);
    const char *why = e == ERR_IO ? "no space left" : e ? "the chief is gone" : "";
    ps->role->ops->done(ps->role, ACTION_SNAPSHOT, e, why, &ps->outbox);
    actor_flush(world, ps);
}

static void hold(struct world *world, struct actor *ps, bool begins)
{
    TRACE(world, "%s %s", actor_name(ps), begins ? "holds" : "continues");
    if (ps->is_held == begins) blame(world, "%s holds or continues twice", actor_name(ps));
    ps->is_held = begins;
}

/* ---- what the runner calls ---- */

void ps_act(struct world *world, struct actor *ps, const struct action *action)
{
    switch (action->type) {
    case ACTION_SETUP:
        begin_set_up(world, ps, action);
        break;
    case ACTION_HANG_UP:
        network_hang_up(world, ps, action->hang_up.worker);
        break;
    case ACTION_SHARE:
        share(world, ps, &action->share);
        break;
    case ACTION_INITIALIZE:
        initialize(world, ps, &action->initialize);
        break;
    case ACTION_REFRESH:
        refresh(world, ps, action->refresh.worker);
        break;
    case ACTION_APPLY:
        ps->as_of = 0;
        apply(world, ps, &action->apply);
        break;
    case ACTION_FOLD:
        ps->as_of = 0;
        fold(world, ps, &action->fold);
        break;
    case ACTION_UNFOLD:
        unfold(world, ps);
        break;
    case ACTION_ADVANCE:
        ps->as_of = 0;
        advance(world, ps, &action->advance);
        break;
    case ACTION_TAKE_BACK:
        take_back(world, ps);
        break;
    case ACTION_SNAPSHOT:
        snapshot(world, ps, &action->snapshot);
        break;
    case ACTION_DROP:
        disk_drop(world, ps, action->drop.tag);
        break;
    case ACTION_HELD:
        hold(world, ps, action->held.begins);
        break;
    case ACTION_SCALED:
        TRACE(world, "%s: not moved: %s", actor_name(ps), action->scaled.text);
        ps->refused++;
        break;
    default:
        blame(world, "%s wants %s, which is not for a ps", actor_name(ps),
              action_name(action->type));
    }
}

void ps_end_work(struct world *world, struct actor *ps, const struct action *work)
{
    set_up(world, ps, &work->setup);
}

void ps_sends(struct world *world, struct actor *ps, int worker, struct parcel *parcel)
{
    const struct message *m = &parcel->message;
    if (m->type == MESSAGE_STATE) ps->is_serving = m->state.state == PS_SERVING;
    parcel->first = (int)(m->range.begin / PIECE_FLOATS);
    parcel->pieces = (int)(range_count(m->range) / PIECE_FLOATS);
    for (int i = 0; i < PIECES && m->type == MESSAGE_AHEAD; i++)
        parcel->ahead[i] = has_advanced(ps, i) || *ps->store == NOTHING
                               ? ps->advanced_hashes[i]
                               : node_of(world, *ps->store)->hash;
    if (m->type != MESSAGE_VALUES) return;
    if (!range_is_empty(m->range)) check_whole(world, ps, "an answer");
    struct windows *windows = ps->windows[worker];
    if (!ps->config.block_floats && ps->index != 0) return; /* it has no values, and no step */
    bool sees_store = ps->config.takes_all || !ps->config.block_floats;
    if (!sees_store && !range_is_empty(m->range) && !windows) {
        blame(world, "%s sends values that it has not shared", actor_name(ps));
        return;
    }
    if (*ps->store != NOTHING) leave_out_rounds(world, ps, m->values.step);
    parcel->node_source = sees_store || range_is_empty(m->range) ? ps->store : &windows->copy;
    parcel->node = *parcel->node_source;
    if (parcel->node != *ps->store || parcel->node == NOTHING)
        blame(world, "%s sends old values to worker/%d", actor_name(ps), worker);
    else if (m->values.step != node_of(world, parcel->node)->step)
        blame(world, "%s says step %llu of values of step %llu", actor_name(ps),
              (unsigned long long)m->values.step,
              (unsigned long long)node_of(world, parcel->node)->step);
}

/* The runner breaks with a worker whose stretches do not meet. */
static void check_stretch(struct world *world, const struct actor *ps, int worker,
                          const struct message *m)
{
    const struct parts moved = {profile_moved_floats(&world->profile), PIECE_FLOATS};
    const uint64_t parts = parts_in(&moved, m->range);
    if (m->type != MESSAGE_PUSH) return;
    const uint64_t ahead = ps_role_ahead(ps->role, worker, m->push.push), all = parts_all(&moved);
    const bool is_void = m->generation != ps->config.generation;
    if (is_void || !ps->config.block_floats || parts == all || (parts ^ ahead) == all) return;
    blame(world, "%s gets pieces %llx with a push of worker/%d, and %llx ahead of it",
          actor_name(ps), (unsigned long long)parts, worker, (unsigned long long)ahead);
}

/* Synchronous: once all rounds are over there is none to make anything good in. */
static void note_join(struct world *world, struct actor *ps, int worker, const struct message *m)
{
    const bool is_done = world->is_to_stop || ps_role_step(ps->role) >= ps->config.last_step;
    world->counters.owed += m->join.what == JOIN_COMPLETES;
    ps->has_joined[worker] = true;
    if (ps->config.is_sync && is_done && ps_role_is_serving(ps->role))
        world->came_too_late[worker] = true;
}

/* A stretch travels unless memory is shared; a ps without variables has no windows, but is told. */
bool ps_receives(struct world *world, struct actor *ps, int worker, struct parcel *parcel)
{
    uint32_t type = parcel->message.type;
    if (type == MESSAGE_FINISHED) world->finished_us[ps->index][worker] = world->now_us;
    if (type == MESSAGE_JOIN) note_join(world, ps, worker, &parcel->message);
    if (type == MESSAGE_ROWS) {
        rows_heard_by_ps(world, ps, worker, parcel);
        return false;
    }
    rows_check_told(world, ps, worker, &parcel->message);
    if (type != MESSAGE_PUSH && type != MESSAGE_PART && type != MESSAGE_INIT) return true;
    check_stretch(world, ps, worker, &parcel->message);
    if (!ps->config.block_floats && !ps->windows[worker])
        ps->windows[worker] = &world_map(world)->windows;
    if (!ps->windows[worker] || (world->profile.shares_memory && ps->config.block_floats))
        return true;
    const bool is_lost = type == MESSAGE_PART && is_broken(world, DEFECT_PART_LOST);
    for (int i = 0; i < parcel->pieces && !is_lost; i++) {
        struct content *piece = &ps->windows[worker]->gradient[parcel->first + i];
        *piece = parcel->content;
        if (parcel->source && memcmp(&parcel->source[i], piece, sizeof *piece) != 0)
            piece->kind = CONTENT_TORN;
    }
    return true;
}

/* Whom the role may go on without. */
static void note_absent(struct world *world, const struct actor *ps)
{
    const struct profile *p = &world->profile;
    for (int w = 0; w < p->workers; w++) {
        const bool was_there = ps->met[w] || ps->life > 1; /* the job may have gone on meanwhile */
        uint64_t limit_ms = was_there ? p->config.worker_timeout_ms : p->limits.start_ms;
        uint64_t hurried_ms = p->limits.stop_ms / PS_STOP_PARTS;
        if (world->is_to_stop && hurried_ms < limit_ms) limit_ms = hurried_ms;
        bool is_absent =
            !ps->links[w] && world->now_us - ps->told_us[w] + TICK_US >= limit_ms * 1000;
        const uint64_t silence_ms =
            ps_silence_limit_ms(&p->limits, ps_role_has_pushed(ps->role, w));
        const bool is_silent = world->is_to_stop && ps->links[w] && w != ps_role_chief(ps->role) &&
                               world->now_us - world->stop_us + TICK_US >= silence_ms * 1000;
        uint64_t waited_ms;
        const bool is_late =
            ps_role_snapshot_awaits(ps->role, w, &waited_ms) &&
            1000 * waited_ms + 2 * TICK_US >=
                1000 * ps_snapshot_limit_ms(&p->limits, ps_role_has_pushed(ps->role, w));
        world->was_left_out[w] |=
            (is_absent || is_silent || is_late) && !worker_at(world, w)->is_granted;
    }
}

void ps_watch_peers(struct world *world, struct actor *ps)
{
    note_absent(world, ps);
    const int chief = ps_role_chief(ps->role);
    const uint64_t away_us = ps->met[chief] ? ps->lost_us[chief] : ps->started_us;
    const uint64_t since_us = ps->links[chief] ? ps->came_us[chief] : away_us;
    const uint64_t grace_ms = ps->links[chief] ? START_GRACE_MS : 0; /* it waits for another ps */
    const uint64_t limit_us = (world->profile.limits.start_ms + grace_ms) * 1000;
    const bool is_passed_by = ps->links[chief] && ps_role_is_passed_by(ps->role);
    if (ps_role_is_set_up(ps->role) || is_passed_by || world->now_us - since_us < limit_us) return;
    ps->role->ops->stop(ps->role, EXIT_TIMEOUT, "the chief did not set this ps up", &ps->outbox);
    actor_flush(world, ps);
}
