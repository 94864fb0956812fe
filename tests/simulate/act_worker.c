/* act_worker.c - what a worker's runner does with memory and disks, in the model. */
#include <assert.h>
#include <string.h>

#include "core/cluster/role/parts.h"
#include "core/cluster/role/verdict.h"
#include "tests/simulate/world.h"

/* ---- steps ---- */

/* Where a worker sees the store itself, that may change while it computes if the others go on
 * without it: nothing is wrong as long as what comes of it is not applied. A copy of its own
 * changes only when it is answered. */
static bool is_coherent(struct world *world, const struct actor *worker, int home,
                        const struct action_compute *action)
{
    int seen = worker->seen[home];
    bool is_of_step = world->profile.config.takes_all || home == 0;
    bool is_good = seen != NOTHING && node_of(world, seen)->ps == home &&
                   node_of(world, seen)->generation == worker_role_generation(worker->role) &&
                   (!is_of_step || node_of(world, seen)->step == action->step);
    if (!is_good && !world->profile.config.takes_all)
        blame(world, "%s computes step %llu with values of ps/%d that are not of it",
              actor_name(worker), (unsigned long long)action->step, home);
    return is_good;
}

/* Where it sees the store itself, that may have gone on for others; else, what came ahead. */
static bool is_advanced(struct world *world, const struct actor *worker, int ps)
{
    const struct view *view = &worker->views[ps];
    const struct actor *server = ps_at(world, ps);
    if (world->profile.shares_memory) return server->store == view->values && server->advanced > 0;
    for (int i = 0; i < PIECES; i++)
        if (view->ahead[i]) return true;
    return false;
}

/* Pieces of the gradient for each ps, at any time until the end of the step or later. */
static void plan_parts(struct world *world, struct actor *worker)
{
    for (int ps = 0; ps < world->profile.ps_count && world->profile.has_parts; ps++)
        for (uint64_t i = draw(world, PIECES + 1); i > 0; i--)
            actor_add(world, worker, EVENT_PART, soon(world, world->profile.compute_us))->number =
                ps;
}

enum { UNFED_US = 20000 }; /* a worker waits for a batch before it gives up the step, at most */

static bool feeds(const struct world *world, const struct actor *chief, const struct actor *worker)
{
    return actor_is_running(chief) && chief->unplugged_until_us <= world->now_us &&
           worker->unplugged_until_us <= world->now_us;
}

/* Whether the batch lies ready where the chief reads for all. It sends those behind the one that a
 * worker wants, as long as it can; what was sent may be used without it. */
static bool is_fed(struct world *world, struct actor *worker, uint64_t batch)
{
    const struct actor *chief = worker_at(world, 0);
    if (!world->profile.feed_ahead || worker == chief) return true;
    if (batch < worker->fed || batch > worker->remote_input_end) worker->remote_input_end = batch;
    worker->fed = batch;
    if (feeds(world, chief, worker))
        worker->remote_input_end = batch + (uint64_t)world->profile.feed_ahead;
    if (is_broken(world, DEFECT_FED_AGAIN) && chief->life > 1) worker->computed.batch = 0;
    world->counters.unfed += batch == worker->remote_input_end;
    return batch < worker->remote_input_end;
}

uint64_t worker_planned(const struct actor *worker, uint64_t number)
{
    uint64_t left = number - worker->plan_first;
    for (int i = 0; i < 2 * worker->plan_count && number >= worker->plan_first; i += 2) {
        const uint64_t count = worker->plan[i + 1] - worker->plan[i];
        if (left < count) return 1 + worker->plan[i] + left;
        left -= count;
    }
    return 0;
}

/* 1 + the batch of the data that this push is of; 0: rows are shared. */
static uint64_t data_of(struct world *world, struct actor *worker, uint64_t number)
{
    if (!data_share_is_queue(&world->profile.config.coverage.share)) return 0;
    const uint64_t data = worker_planned(worker, number);
    if (!data)
        blame(world, "%s was not told which batch its push %llu is of", actor_name(worker),
              (unsigned long long)number + 1);
    return data;
}

/* Files that are followed have ended before the batch that it was given. */
static bool has_no_data(const struct world *world, const struct actor *worker)
{
    return world->profile.data_end && worker->computed.data > world->profile.data_end;
}

static void begin_step(struct world *world, struct actor *worker, const struct action *action)
{
    uint64_t seen = 0;
    worker->computed = (struct content){
        .kind = CONTENT_WRITING,
        .worker = worker->index,
        .generation = worker_role_generation(worker->role),
        .batch = action->compute.batch,
        .step = action->compute.step,
    };
    if (is_broken(world, DEFECT_BATCH_AGAIN) && worker->life > 1) worker->computed.batch = 0;
    worker->computed.data = data_of(world, worker, action->compute.batch);
    replicas_turn_to(world, worker);
    replicas_check_acknowledged(world, worker, action->compute.batch);
    for (int home = 0; home < world->profile.homes; home++) {
        const int ps = source_of(world, worker, home);
        struct view *view = &worker->views[ps];
        if (!world->profile.has_variables[ps]) continue;
        if (!view->values) {
            blame(world, "%s computes without values of ps/%d", actor_name(worker), ps);
            return;
        }
        worker->seen[home] = *view->values;
        seen = mix(seen, *view->values == NOTHING ? 0 : node_of(world, *view->values)->hash);
        for (int i = 0; i < WINDOW_PIECES; i++) view->gradient[i].kind = CONTENT_WRITING;
        worker->computed.is_mixed |=
            !is_coherent(world, worker, home, &action->compute) || is_advanced(world, worker, ps);
    }
    const int starved_percent = world->profile.starved_percent;
    const bool is_ready = is_fed(world, worker, action->compute.batch);
    worker->is_starved = (starved_percent && chance(world, starved_percent)) || !is_ready ||
                         has_no_data(world, worker);
    worker->computed.hash = gradient_hash(worker->index, worker->computed.batch, seen);
    world->counters.starved += worker->is_starved;
    worker->wanted = 0;
    const uint64_t came = action->compute.batch + 1;
    const uint64_t wanted = worker->computed.data ? worker->computed.data : came;
    if (!worker->is_starved && !rows_have_come(world, worker, came)) {
        rows_ask_all(world, worker, action, wanted);
        return;
    }
    actor_work(world, worker, action, is_ready ? world->profile.compute_us : UNFED_US);
    if (worker->is_starved) return;
    rows_take(world, worker, wanted);
    plan_parts(world, worker);
}

void worker_computes(struct world *world, struct actor *worker)
{
    const struct action compute = worker->works[ACTION_COMPUTE];
    plan_parts(world, worker);
    actor_work(world, worker, &compute, world->profile.compute_us);
}

/* The window may have been lost meanwhile, or filled for another generation. */
static void write_gradient(struct actor *worker, int ps)
{
    struct view *view = &worker->views[ps];
    struct content *window = view->gradient ? view->gradient : view->kept;
    for (int i = 0; i < WINDOW_PIECES; i++)
        if (window[i].kind == CONTENT_WRITING) window[i] = worker->computed;
}

/* Some of these. */
static uint64_t draw_parts(struct world *world, uint64_t left)
{
    const uint64_t parts = left & draw(world, 1 << PIECES);
    return parts ? parts : parts_last(left);
}

void worker_part(struct world *world, struct actor *worker, int ps)
{
    const int before = worker->outbox.count;
    struct view *view = &worker->views[ps];
    if (!actor_is_at(worker, ACTION_COMPUTE) || worker->wanted) return;
    const uint64_t left = worker_role_left(worker->role, ps);
    if (!left || !view->gradient) return;
    const uint64_t parts = draw_parts(world, left);
    for (int i = 0; i < PIECES; i++) {
        if (!(parts >> i & 1)) continue;
        view->gradient[i] = worker->computed;
        view->gradient[i].kind = CONTENT_GRADIENT;
    }
    worker_role_part(worker->role, ps, parts, &worker->outbox);
    actor_act_since(world, worker, before);
}

/* What it has used for the last time may change: nothing else before it has ended its step. */
void worker_sees_change(struct world *world, struct actor *worker, int ps, int first, int count)
{
    const struct view *view = &worker->views[ps];
    if (!actor_is_at(worker, ACTION_COMPUTE) || !view->gradient || !is_read(world, worker, ps))
        return;
    for (int i = first; i < first + count; i++)
        worker->computed.is_torn |= view->gradient[i].kind == CONTENT_WRITING;
}

static void end_step(struct world *world, struct actor *worker)
{
    struct content gradient = worker->computed;
    gradient.kind = CONTENT_GRADIENT;
    for (int home = 0; home < world->profile.homes; home++) {
        if (!world->profile.has_variables[home]) continue;
        int node = worker->seen[home], source = source_of(world, worker, home);
        bool is_deaf = !world->profile.hears_at_work; /* else the next values may come already */
        gradient.is_torn |= is_deaf && *worker->views[source].values != node;
    }
    worker->computed = gradient;
    for (int home = 0; home < world->profile.homes; home++)
        if (world->profile.has_variables[home])
            write_gradient(worker, source_of(world, worker, home));
    rows_name_next(world, worker);
    world->counters.computed++;
}

/* ---- the chief ---- */

/* A new generation undoes work; there must be a reason. What a ps does that this chief has no link
 * to any more, it may not have heard. */
static void check_reason(struct world *world, const struct actor *chief)
{
    uint64_t generation = ps_at(world, 0)->config.generation;
    for (int i = 0; i < world->profile.ps_count; i++) {
        const struct actor *ps = ps_at(world, i);
        if (worker_role_is_without(chief->role, i)) return;
        const bool is_void = ps->role && ps_role_term(ps->role) > worker_role_term(chief->role);
        const bool is_heard = is_linked(world, i, chief->index);
        if (is_void || !is_heard || !ps->is_serving || ps->config.generation != generation) return;
    }
    blame(world, "%s begins another generation though all ps serve one", actor_name(chief));
}

static void choose(struct world *world, struct actor *chief, bool is_again)
{
    if (chief->opens_folder) return;
    check_reason(world, chief);
    if (!worker_role_leads(chief->role))
        blame(world, "%s chooses, and does not lead", actor_name(chief));
    if (++world->counters.generations > GENERATIONS_MAX)
        blame(world, "%d generations", world->counters.generations);
    chief->chosen = is_again ? disk_readable(world) : world->folder.newest;
    if (is_broken(world, DEFECT_OLD_CHECKPOINT) && chief->chosen != NOTHING)
        chief->chosen = disk_oldest(world);
    disk_lead(world, chief);
    bool is_restored = chief->chosen != NOTHING;
    int arrays = world->profile.arrays_restored;
    if (is_broken(world, DEFECT_ARRAYS_MISSING)) arrays = 1;
    chief->choice = (struct choice){
        .text = "",
        .generation = 1 + draw(world, UINT64_MAX - 1),
        .step = is_restored ? world->folder.at[chief->chosen].step : 0,
        .is_saved = is_restored,
        .arrays = is_restored ? arrays : 1,
    };
    if (is_restored && !is_again && chief->chosen != world->folder.newest)
        blame(world, "%s restores step %llu though step %llu was saved", actor_name(chief),
              (unsigned long long)chief->choice.step,
              (unsigned long long)world->folder.at[world->folder.newest].step);
    replicas_check_choice(world, chief);
    TRACE(world, "%s begins generation %04llx at step %llu", actor_name(chief),
          (unsigned long long)chief->choice.generation & 0xffff,
          (unsigned long long)chief->choice.step);
    world->begun = chief->choice.generation;
    worker_role_chosen(chief->role, &chief->choice, &chief->outbox);
}

static void describe(struct world *world, struct actor *chief, int ps)
{
    struct description description = {.config = world->profile.config,
                                      .checkpoint = chief->chosen,
                                      .term = worker_role_term(chief->role)};
    if (chief->chosen != NOTHING && world->folder.at[chief->chosen].tag == chief->own_tag)
        description.snapshot = chief->own_tag;
    description.config.generation = chief->choice.generation;
    description.config.step = chief->choice.step;
    description.config.arrays = chief->choice.arrays;
    const struct shard *first = disk_shard(world, chief->chosen, 0);
    if (first && !is_broken(world, DEFECT_COVERAGE_LOST))
        description.config.coverage = first->coverage;
    if (first && !is_broken(world, DEFECT_QUEUE_LOST)) {
        description.config.queue = first->queue;
        description.config.queue_numbers = first->queue_count;
    }
    const struct action_send send = {
        .peer = ps,
        .message = {.type = MESSAGE_SETUP,
                    .job = JOB_WORKER,
                    .task = (uint32_t)chief->index,
                    .generation = chief->choice.generation,
                    .body = &description,
                    .body_bytes = sizeof description},
    };
    network_send(world, chief, &send);
}

static void fill(struct world *world, struct actor *chief, int ps, int array)
{
    if (!world->profile.has_variables[ps]) return;
    if (!chief->views[ps].gradient) {
        blame(world, "%s fills ps/%d, which shared no windows", actor_name(chief), ps);
        return;
    }
    const struct shard *shard = disk_shard(world, chief->chosen, home_of(world, ps));
    for (int i = 0; i < PIECES; i++)
        chief->views[ps].gradient[i] = (struct content){
            .kind = CONTENT_ARRAY,
            .worker = chief->index,
            .generation = chief->choice.generation,
            .node = shard ? shard->node : NOTHING,
            .array = array,
        };
}

/* Epochs are told in their order. */
static void hear_coverage(struct world *world, struct actor *worker,
                          const struct action_covered *action)
{
    const struct covered *c = &action->covered;
    const uint64_t generation = worker_role_generation(worker->role);
    const bool is_only = world->profile.data_end > 0; /* which has no end, and is told as it is */
    const bool is_later =
        is_only || worker->covered_generation != generation || c->epoch >= worker->covered;
    if (!worker_role_leads(worker->role) || !is_later || c->applied > c->rows)
        blame(world, "%s hears of %llu of %llu rows of epoch %llu", actor_name(worker),
              (unsigned long long)c->applied, (unsigned long long)c->rows,
              (unsigned long long)c->epoch);
    worker->covered_generation = generation;
    worker->covered = c->epoch + action->is_over;
}

/* Of the checkpoint that is being made */
static void hear_torn(struct world *world, const struct actor *chief,
                      const struct torn_pushes *of_workers)
{
    world->torn_tag = chief->save_tag;
    memcpy(world->torn, of_workers, (size_t)world->profile.workers * sizeof *of_workers);
}

/* ---- who leads ---- */

static void lead(struct world *world, struct actor *chief, const struct action_lead *action)
{
    const struct profile *p = &world->profile;
    TRACE(world, "%s leads, term %llu", actor_name(chief), (unsigned long long)action->term);
    world->counters.elected += action->term > 0;
    disk_lead(world, chief);
    chief->opens_folder = p->saves && p->write_us && action->term;
    if (chief->opens_folder) {
        worker_role_folder_opens(chief->role);
        actor_add(world, chief, EVENT_OPEN, p->write_us)->number = (int)action->term;
    }
    if (p->saves && p->save_interval_us) actor_add(world, chief, EVENT_SAVE, p->save_interval_us);
}

void worker_folder_is_open(struct world *world, struct actor *chief, int term)
{
    const bool leads = worker_role_leads(chief->role);
    if (!leads || worker_role_term(chief->role) != (uint64_t)term) return;
    chief->opens_folder = false;
    worker_role_folder_is_open(chief->role, &chief->outbox);
    actor_flush(world, chief);
}

static void claim(struct world *world, struct actor *chief, const struct action_claim *action)
{
    network_send(world, chief, &(struct action_send){action->ps, action->message});
}

/* ---- what the runner calls ---- */

static void chief_acts(struct world *world, struct actor *worker, const struct action *action)
{
    switch (action->type) {
    case ACTION_LEAD:
        lead(world, worker, &action->lead);
        break;
    case ACTION_CLAIM:
        claim(world, worker, &action->claim);
        break;
    case ACTION_YIELD:
        break;
    case ACTION_CHOOSE:
        choose(world, worker, action->choose.why_again[0]);
        break;
    case ACTION_DESCRIBE:
        describe(world, worker, action->describe.ps);
        break;
    case ACTION_FILL:
        fill(world, worker, action->fill.ps, action->fill.array);
        break;
    case ACTION_BEGIN:
        if (worker->opens_folder)
            blame(world, "%s saves, and its folder is not open", actor_name(worker));
        if (disk_begin(world, &action->begin))
            worker->role->ops->done(worker->role, ACTION_BEGIN, ERR_IO, "no space left",
                                    &worker->outbox);
        break;
    case ACTION_COVERED:
        hear_coverage(world, worker, &action->covered);
        break;
    case ACTION_TORN:
        hear_torn(world, worker, action->torn.of_workers);
        break;
    case ACTION_PUBLISH:
        actor_work(world, worker, action, world->profile.write_us);
        break;
    case ACTION_EVALUATE:
        world->concluded_us = world->now_us;
        replicas_turn_to(world, worker);
        rows_evaluate(world, worker, action, 0);
        break;
    case ACTION_ABANDON:
        check_save_end(world, worker);
        world->counters.abandoned++;
        actor_end_work(worker, ACTION_PUBLISH);
        disk_abandon(world, &action->abandon);
        break;
    default:
        blame(world, "%s wants %s, which is not for a worker", actor_name(worker),
              action_name(action->type));
    }
}

void worker_act(struct world *world, struct actor *worker, const struct action *action)
{
    switch (action->type) {
    case ACTION_COMPUTE:
        begin_step(world, worker, action);
        break;
    case ACTION_PLAN:
        worker->plan_first = action->plan.first;
        worker->plan_count = action->plan.count;
        memcpy(worker->plan, action->plan.ranges,
               2 * (size_t)action->plan.count * sizeof *worker->plan);
        rows_planned(world, worker);
        break;
    case ACTION_ADOPTED:
        TRACE(world, "%s takes part from step %llu on", actor_name(worker),
              (unsigned long long)action->adopted.step);
        worker->adopted++;
        replicas_turn_to(world, worker);
        break;
    case ACTION_STAND_IN:
        replicas_stand_in(world, worker, action->stand_in.gone);
        break;
    case ACTION_REMAKE:
        network_remake(world, worker, action->remake.ps);
        break;
    default:
        chief_acts(world, worker, action);
    }
}

void worker_end_work(struct world *world, struct actor *worker, const struct action *work)
{
    err e = OK;
    const bool lacks_rows = worker->wanted != 0;
    worker->wanted = 0;
    if (work->type == ACTION_EVALUATE && lacks_rows) {
        rows_evaluate_later(world, worker, work);
        return;
    }
    if (work->type == ACTION_COMPUTE && has_no_data(world, worker))
        worker_role_note_end(worker->role, world->profile.data_end);
    if (work->type == ACTION_COMPUTE && lacks_rows)
        e = ERR_PEER;
    else if (work->type == ACTION_COMPUTE && has_no_data(world, worker))
        e = ERR_STOPPED;
    else if (work->type == ACTION_COMPUTE && worker->is_starved) /* at the end none is waited for */
        e = worker_role_is_stopping(worker->role) ? ERR_STOPPED : ERR_PEER;
    else if (work->type == ACTION_COMPUTE)
        end_step(world, worker);
    if (work->type == ACTION_PUBLISH) e = disk_publish(world, worker, &work->publish);
    if (work->type == ACTION_PUBLISH) check_save_end(world, worker);
    world->counters.evaluated += work->type == ACTION_EVALUATE;
    if (world->blame[0]) return;
    worker->role->ops->done(worker->role, work->type, e,
                            e == ERR_IO ? "no space left"
                            : e         ? "another chief"
                                        : "",
                            &worker->outbox);
}

/* The rename of a publish that was under way may have happened. */
void worker_died(struct world *world, struct actor *worker)
{
    const struct action work = actor_end_work(worker, ACTION_PUBLISH);
    if (work.type == ACTION_PUBLISH && chance(world, 50) &&
        disk_publish(world, worker, &work.publish))
        TRACE(world, "%s dies in a publish that would have failed", actor_name(worker));
}

static void check_push(struct world *world, struct actor *worker, int ps, struct parcel *parcel)
{
    const struct message *m = &parcel->message;
    const struct content *content = &parcel->content;
    struct view *view = &worker->views[ps];
    const uint64_t push = m->type == MESSAGE_PUSH ? m->push.push : m->part.push;
    if (content->kind != CONTENT_GRADIENT || content->batch + 1 != push)
        blame(world, "%s pushes batch %llu to ps/%d as its push %llu (%d)", actor_name(worker),
              (unsigned long long)content->batch, ps, (unsigned long long)push, content->kind);
    else if (content->generation != m->generation)
        blame(world, "%s pushes a gradient of another generation", actor_name(worker));
    for (int i = 0; i < parcel->pieces && parcel->source; i++)
        if (parcel->source[i].kind != content->kind || parcel->source[i].hash != content->hash)
            blame(world, "%s pushes pieces that do not belong together", actor_name(worker));
    if (m->type != MESSAGE_PUSH) return;
    view->pushed = push;
    view->pushed_generation = m->generation;
}

static void note_save(const struct world *world, struct actor *chief, const struct message *m)
{
    chief->save_generation = m->generation;
    if (m->save.tag == chief->save_tag) return;
    chief->save_tag = m->save.tag;
    chief->save_us = world->now_us;
}

/* Where nothing is saved yet, what all begin with is, before anybody changes it. */
void worker_says(struct world *world, struct actor *worker, const struct message *m)
{
    if (m->type == MESSAGE_SAVE) note_save(world, worker, m);
    bool is_due = m->type == MESSAGE_SERVE && world->profile.saves && !worker->choice.is_saved;
    if (is_due && worker->save_generation != m->generation)
        blame(world, "%s begins generation %04llx and does not save it", actor_name(worker),
              (unsigned long long)m->generation & 0xffff);
}

void worker_sends(struct world *world, struct actor *worker, int ps, struct parcel *parcel)
{
    uint32_t type = parcel->message.type;
    if (type != MESSAGE_PUSH && type != MESSAGE_PART && type != MESSAGE_INIT) return;
    bool has_window = world->profile.has_variables[ps];
    parcel->first = (int)(parcel->message.range.begin / PIECE_FLOATS);
    parcel->pieces = has_window ? (int)(range_count(parcel->message.range) / PIECE_FLOATS) : PIECES;
    const bool is_over = !actor_is_at(worker, ACTION_COMPUTE); /* else a part brings its own */
    if (has_window && type != MESSAGE_INIT && is_over)
        replicas_copy_push(world, worker, ps, parcel->first, parcel->pieces);
    parcel->source = has_window ? worker->views[ps].gradient + parcel->first : NULL;
    parcel->content = has_window ? *parcel->source : worker->computed;
    if (type != MESSAGE_INIT) check_push(world, worker, ps, parcel);
}

void worker_is_shared(struct world *world, struct actor *worker, int ps,
                      const struct parcel *parcel)
{
    struct view *view = &worker->views[ps];
    bool is_mapped = world->profile.shares_memory;
    if (!view->own) view->own = &world_map(world)->windows;
    view->values = is_mapped ? parcel->values : &view->own->copy;
    view->gradient = is_mapped ? parcel->windows->gradient : view->own->gradient;
    view->back = is_mapped ? &parcel->windows->back : &view->own->back;
    if (!is_read(world, worker, ps)) return;
    if (view->kept[0].kind != CONTENT_NONE) memcpy(view->gradient, view->kept, sizeof view->kept);
    view->kept[0].kind = CONTENT_NONE;
}

/* A gradient that was not answered may have to be sent again. */
void worker_loses_windows(struct world *world, struct actor *worker, int ps)
{
    struct view *view = &worker->views[ps];
    if (view->gradient && is_read(world, worker, ps))
        memcpy(view->kept, view->gradient, sizeof view->kept);
    if (is_broken(world, DEFECT_ROWS_NOT_KEPT)) view->kept[ROWS_AT].kind = CONTENT_NONE;
    memset(view->ahead, 0, sizeof view->ahead);
    view->rows_of = view->asked.came = 0;
    view->was_brought = false;
    view->back = NULL;
    view->gradient = NULL;
    view->values = NULL;
    view->own = NULL;
}

/* An answer to a push says truly what has become of it. */
static void check_answer(struct world *world, struct actor *worker, int ps,
                         const struct parcel *parcel)
{
    const struct message *m = &parcel->message;
    struct view *view = &worker->views[ps];
    bool is_answer = m->values.push && m->values.push == view->pushed &&
                     m->generation == view->pushed_generation;
    if (!is_answer) return;
    bool is_applied = node_of(world, parcel->node)->sequences[worker->index] == m->values.push;
    bool is_dropped = m->values.flags & VALUES_DROPPED;
    if (is_dropped && view->dropped != m->values.push) world->counters.dropped++;
    if (is_dropped) view->dropped = m->values.push;
    if (is_applied == is_dropped)
        blame(world, "ps/%d answers push %llu of %s as %s", ps, (unsigned long long)m->values.push,
              actor_name(worker), is_dropped ? "dropped, but applied it" : "applied, and lost it");
}

static void take_ahead(struct world *world, struct actor *worker, int ps,
                       const struct parcel *parcel)
{
    struct view *view = &worker->views[ps];
    if (world->profile.shares_memory || !view->own) return;
    if (!parcel->pieces) memset(view->ahead, 0, sizeof view->ahead); /* they are void */
    for (int i = parcel->first; i < parcel->first + parcel->pieces; i++)
        view->ahead[i] = parcel->ahead[i];
    worker_sees_change(world, worker, ps, parcel->first, parcel->pieces);
}

/* What does not come with the values must have come ahead of them, and be of them. */
static void check_ahead(struct world *world, struct actor *worker, int ps,
                        const struct parcel *parcel)
{
    struct view *view = &worker->views[ps];
    for (int i = 0; i < PIECES; i++)
        if ((i < parcel->first || i >= parcel->first + parcel->pieces) &&
            view->ahead[i] != node_of(world, parcel->node)->hash)
            blame(world, "ps/%d completes values of %s of which piece %d is of others", ps,
                  actor_name(worker), i);
    memset(view->ahead, 0, sizeof view->ahead);
}

bool worker_receives(struct world *world, struct actor *worker, int ps, struct parcel *parcel)
{
    uint32_t type = parcel->message.type;
    if (type == MESSAGE_AHEAD) {
        take_ahead(world, worker, ps, parcel);
        return false;
    }
    if (type == MESSAGE_ROWS) {
        rows_heard_by_worker(world, worker, ps, parcel);
        return false;
    }
    if (type == MESSAGE_SHARD) {
        struct carried_shard file;
        memcpy(&file, parcel->body, sizeof file);
        if (disk_write(world, &file)) TRACE(world, "%s cannot write", actor_name(worker));
        return false;
    }
    if (type != MESSAGE_VALUES) return true;
    check_answer(world, worker, ps, parcel);
    if (parcel->message.values.flags & VALUES_FINAL)
        world->final_generation[ps] = parcel->message.generation;
    struct view *view = &worker->views[ps];
    if (!(parcel->message.values.flags & VALUES_HELD)) rows_hear_values(world, worker, ps);
    bool travels = !range_is_empty(parcel->message.range) && !world->profile.shares_memory;
    if (!travels || !world->profile.has_variables[ps]) return true;
    check_ahead(world, worker, ps, parcel);
    /* A stretch is read from memory while it leaves: what was there last is what arrives. */
    if (view->own) view->own->copy = *parcel->node_source;
    return true;
}

/* Who is not there is the runner's business: it tries to connect, and gives up. */
void worker_watch_peers(struct world *world, struct actor *worker)
{
    const struct profile *p = &world->profile;
    for (int ps = 0; ps < p->ps_count && actor_is_running(worker); ps++) {
        if (worker->links[ps] || worker_role_is_without(worker->role, ps)) continue;
        uint64_t limit_ms = worker->met[ps] ? p->limits.restart_ms : p->limits.start_ms;
        if (world->now_us - worker->lost_us[ps] < limit_ms * 1000) continue;
        char why[ACTION_TEXT_MAX];
        snprintf(why, sizeof why, "ps/%d did not come within %llu ms", ps,
                 (unsigned long long)limit_ms);
        worker->role->ops->stop(worker->role, EXIT_TIMEOUT, why, &worker->outbox);
        actor_flush(world, worker);
    }
}
