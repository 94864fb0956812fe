/* worker_chief.c - what a generation begins from: a checkpoint of this run, another run's
 * values, or the spec's initial values; and what each ps is told and brought of it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/cluster/task/greeting.h"
#include "core/cluster/task/worker_inside.h"
#include "core/train/checkpoint/shard.h"

static const struct optimizers *optimizers_of(const struct worker_task *w)
{
    return &w->options.spec->optimizers;
}

static int workers_of(const struct worker_task *w)
{
    return w->options.task.cluster->hosts[JOB_WORKER].count;
}

static void forget_arrays(struct origin *o)
{
    for (int i = 0; i < 1 + SLOTS_MAX; i++) {
        free(o->arrays[i]);
        o->arrays[i] = NULL;
    }
    o->filling = -1;
}

void worker_origin_close(struct worker_task *w)
{
    struct origin *o = &w->origin;
    forget_arrays(o);
    bundle_close(o->bundle);
    arena_free(&o->arena);
    *o = (struct origin){.filling = -1};
}

/* A shard of a ps as the bundle is asked for it; arrays are the caller's. */
static void describe_shard(const struct worker_task *w, int ps, struct shard *ret)
{
    *ret = (struct shard){.ps = ps, .ps_count = w->task.peer_count, .workers = workers_of(w)};
    shard_name_state(ret, optimizers_of(w));
}

/* ---- a checkpoint of this run ---- */

/* Step, powers and ledger of one ps; its arrays it reads for itself where it can. */
static err read_numbers(struct worker_task *w, int ps)
{
    struct origin *o = &w->origin;
    struct shard shard;
    size_t workers = (size_t)workers_of(w);
    struct ledger *ledger = arena_array(&o->arena, workers, sizeof *ledger);
    describe_shard(w, ps, &shard);
    shard.ledger = arena_array(&o->arena, workers * LEDGER_COLUMNS, sizeof *shard.ledger);
    int64_t coverage[COVERAGE_NUMBERS];
    shard.coverage = coverage;
    TRY(shard_read(o->bundle, NULL, &shard));
    for (size_t i = 0; i < workers; i++) ledger[i] = ledger_of(shard.ledger + i * LEDGER_COLUMNS);
    if (ps == 0) o->is_counted = coverage_of(coverage, &o->plan.coverage);
    o->ledgers[ps] = ledger;
    o->plan.step = shard.global_step;
    for (int i = 0; i < shard.power_count; i++) o->powers[i] = shard.powers[i];
    return OK;
}

/* A ps that cannot see the folder reports nothing that is bad, so with a policy that goes on from
 * an older checkpoint all is read beforehand. */
static err open_checkpoint(struct worker_task *w, const char *prefix)
{
    struct origin *o = &w->origin;
    bundle_close(o->bundle);
    o->bundle = NULL;
    TRY(bundle_open(prefix, &o->bundle));
    if (w->options.spec->train.on_corrupt == CORRUPT_PREVIOUS) TRY(bundle_verify(o->bundle));
    o->ledgers = arena_array(&o->arena, (size_t)w->task.peer_count, sizeof *o->ledgers);
    for (int ps = 0; ps < w->task.peer_count; ps++) TRY(read_numbers(w, ps));
    o->plan.restore = arena_string(&o->arena, prefix);
    o->plan.powers = o->powers;
    o->plan.power_count = optimizers_of(w)->power_count;
    o->plan.arrays = 1 + optimizers_of(w)->slot_count;
    return OK;
}

/* ---- which rows are in the values ---- */

static struct data_share share_of(const struct worker_task *w)
{
    const struct spec *spec = w->options.spec;
    return (struct data_share){
        .rows = (uint64_t)w->session.train_data->rows,
        .batch = (uint64_t)spec->data.batch_size,
        .workers = (uint64_t)workers_of(w),
        .replicas = (uint64_t)spec_replicas(spec, workers_of(w)),
    };
}

/* The same pushes would be of other rows. */
static void share_anew(struct worker_task *w, const struct data_share *share)
{
    struct origin *o = &w->origin;
    const struct data_share was = o->plan.coverage.share;
    struct ledger *ledger = arena_array(&o->arena, share->workers, sizeof *ledger);
    const uint64_t epoch = coverage_begin_anew(&o->plan.coverage, share, o->plan.step, ledger);
    for (int ps = 0; ps < w->task.peer_count; ps++) o->ledgers[ps] = ledger;
    log_line(LOG_WARNING,
             "the checkpoint is of %llu worker%s with batches of %llu of %llu rows and "
             "replicas_to_aggregate %llu, now there are %llu with %llu of %llu and %llu: the run "
             "goes on with epoch %llu",
             (unsigned long long)was.workers, was.workers == 1 ? "" : "s",
             (unsigned long long)was.batch, (unsigned long long)was.rows,
             (unsigned long long)was.replicas, (unsigned long long)share->workers,
             (unsigned long long)share->batch, (unsigned long long)share->rows,
             (unsigned long long)share->replicas, (unsigned long long)epoch + 1);
}

/* Of a checkpoint that tells of no rows, as of TensorFlow's, the ledger does. */
static void count_rows(struct worker_task *w)
{
    struct origin *o = &w->origin;
    const struct data_share share = share_of(w);
    const bool is_known = o->ledgers && o->is_counted && o->plan.coverage.share.rows;
    if (!data_share_is_countable(&share))
        o->plan.coverage = (struct coverage){0};
    else if (!is_known)
        coverage_begin(&o->plan.coverage, &share, o->ledgers ? o->ledgers[0] : NULL);
    else if (!data_share_is_same(&o->plan.coverage.share, &share))
        share_anew(w, &share);
}

/* Damage is what an older one may be free of; what does not fit the spec does not fit it there. */
static bool is_damaged(const char *prefix)
{
    struct bundle *bundle = NULL;
    err e = bundle_open(prefix, &bundle);
    if (!e) e = bundle_verify(bundle);
    bundle_close(bundle);
    return e != OK;
}

/* Others are told of it in ACTION_TEXT_MAX bytes: the prefix, with which most reasons begin, stands
 * there once, and of the one before it the name. */
static err bad_checkpoint(const char *prefix, const char *why, const char *outlook,
                          const char *previous)
{
    const size_t length = strlen(prefix);
    if (strncmp(why, prefix, length) == 0 && why[length] == ':') why += length + strlen(": ");
    const char *slash = previous ? strrchr(previous, '/') : NULL;
    return fail(ERR_INPUT, "cannot restore %s: %s; %s%s", prefix, why, outlook,
                slash ? slash + 1 : "");
}

static const char *outlook_of(bool is_whole, bool has_previous, bool goes_on)
{
    if (is_whole) return "it is not damaged; -o OTHER_DIR begins anew";
    if (!has_previous) return "there is none before it";
    return goes_on ? "goes on from " : "--set train.on_corrupt=previous goes on from ";
}

/* Goes on to the one before it, or ends the job. */
static err pass_over(struct worker_task *w, const char *why, const char **prefix)
{
    struct origin *o = &w->origin;
    const bool is_whole = *prefix && !is_damaged(*prefix);
    const char *previous = is_whole ? NULL : checkpoints_newest(w->checkpoints, o->bad + 1);
    const bool goes_on = w->options.spec->train.on_corrupt == CORRUPT_PREVIOUS && previous;
    err e = bad_checkpoint(*prefix ? *prefix : "the checkpoint", why,
                           outlook_of(is_whole, previous != NULL, goes_on), previous);
    if (!goes_on) return e;
    log_line(LOG_WARNING, "%s", error_text());
    *prefix = previous;
    o->bad++;
    return OK;
}

/* The newest checkpoint that can be opened, of those that have not proved bad. */
static err choose_checkpoint(struct worker_task *w, const char *why_bad)
{
    struct origin *o = &w->origin;
    char why[ERROR_TEXT_MAX];
    snprintf(why, sizeof why, "%s", why_bad);
    for (;;) { /* ends: each turn passes over one more of those that there are */
        const char *prefix = checkpoints_newest(w->checkpoints, o->bad);
        if (why[0]) TRY(pass_over(w, why, &prefix));
        if (!prefix) return OK;
        err e = open_checkpoint(w, prefix);
        if (e != ERR_INPUT && e != ERR_IO) return e;
        snprintf(why, sizeof why, "%s", error_text());
    }
}

/* ---- another run's values ---- */

static struct warm_start warm_start_of(const struct worker_task *w)
{
    const struct warm_start_spec *spec = &w->options.spec->train.warm_start;
    return (struct warm_start){
        .maps = spec->maps.at,
        .map_count = spec->maps.count,
        .skips = spec->skip.at,
        .skip_count = spec->skip.count,
        .slots = spec->slots,
    };
}

/* They go with SETUP, before any array; one that is skipped is as it begins. */
static err read_warm_powers(struct worker_task *w)
{
    struct origin *o = &w->origin;
    const struct warm_start warm = warm_start_of(w);
    struct shard shard;
    describe_shard(w, 0, &shard);
    shard.slot_count = shard.workers = 0;
    shard.ledger = arena_array(&o->arena, LEDGER_COLUMNS, sizeof *shard.ledger);
    optimizers_powers(optimizers_of(w), shard.powers);
    TRY(shard_read(o->bundle, &warm, &shard));
    for (int i = 0; i < shard.power_count; i++) o->powers[i] = shard.powers[i];
    o->plan.powers = o->powers;
    o->plan.power_count = shard.power_count;
    return OK;
}

/* A ps may have been started elsewhere. */
static const char *absolute(const char *path, struct arena *arena)
{
    char folder[CHECKPOINT_PATH_MAX];
    if (path[0] == '/' || !getcwd(folder, sizeof folder)) return arena_string(arena, path);
    return arena_format(arena, "%s/%s", folder, path);
}

static err open_warm_start(struct worker_task *w)
{
    struct origin *o = &w->origin;
    const struct warm_start_spec *warm = &w->options.spec->train.warm_start;
    char prefix[CHECKPOINT_PATH_MAX];
    err e = checkpoint_find(warm->checkpoint, prefix);
    if (!e) e = bundle_open(prefix, &o->bundle);
    if (!e && warm->slots) e = read_warm_powers(w);
    if (e) return fail_prefix(e, "train.warm_start");
    log_line(LOG_INFO, "begins with values of %s", prefix);
    o->plan.warm_from = absolute(prefix, &o->arena);
    o->plan.arrays = warm->slots ? 1 + optimizers_of(w)->slot_count : 1;
    return OK;
}

/* ---- the choice ---- */

static err choose(struct worker_task *w, const struct action_choose *a)
{
    struct origin *o = &w->origin;
    int bad = a->why_again[0] ? o->bad : 0;
    worker_origin_close(w);
    o->bad = bad;
    o->plan.arrays = 1;
    if (w->checkpoints) TRY(checkpoints_token_write(w->checkpoints, w->token)); /* one of today */
    if (w->checkpoints) TRY(choose_checkpoint(w, a->why_again));
    if (o->plan.restore) {
        log_line(LOG_INFO, "begins from %s, step %llu", o->plan.restore,
                 (unsigned long long)o->plan.step);
        return OK;
    }
    if (a->generation && !w->checkpoints)
        return fail(ERR_PEER, "a ps came back empty and there is nothing to go back to: "
                              "set train.checkpoint_dir");
    return w->options.spec->train.warm_start.checkpoint ? open_warm_start(w) : OK;
}

/* With num_steps the run ends so many steps after where this process first began. */
static void find_last_step(struct worker_task *w, uint64_t step)
{
    if (w->has_last_step) return;
    w->has_last_step = true;
    if (w->options.spec->train.num_steps) w->last_step += step;
}

void worker_choose(struct worker_task *w, const struct action_choose *a)
{
    struct choice choice = {.result = choose(w, a)};
    w->has_chosen = true;
    struct setup_plan *plan = &w->origin.plan;
    choice.text = choice.result ? error_text() : "";
    choice.generation = greeting_draw_incarnation();
    choice.step = plan->step;
    choice.is_saved = plan->restore != NULL;
    choice.arrays = plan->arrays;
    find_last_step(w, plan->step);
    if (!choice.result) count_rows(w);
    plan->spec = w->options.spec;
    plan->layout = w->session.layout;
    plan->workers = workers_of(w);
    plan->wire = w->task.wire;
    plan->last_step = (int64_t)w->last_step;
    plan->generation = choice.generation;
    plan->directory = w->checkpoints ? checkpoints_directory(w->checkpoints) : NULL;
    plan->token = w->token;
    worker_role_chosen(w->task.role, &choice, &w->task.outbox);
}

err worker_describe(struct worker_task *w, int ps)
{
    struct origin *o = &w->origin;
    o->plan.ledger = o->ledgers ? o->ledgers[ps] : NULL;
    char *text = setup_write(&o->plan, ps);
    if (!text) return fail(ERR_MEMORY, "no memory for the setup of ps/%d", ps);
    const struct message m = {
        .type = MESSAGE_SETUP,
        .job = JOB_WORKER,
        .task = (uint32_t)w->task.index,
        .generation = o->plan.generation,
        .body = text,
        .body_bytes = (uint32_t)strlen(text),
    };
    err e = w->task.peers[ps].link ? link_send(w->task.peers[ps].link, &m) : OK;
    free(text);
    return e == ERR_PEER ? OK : e; /* the link closes, and the role hears of it */
}

/* ---- what a ps does not read for itself ---- */

static err allocate_arrays(struct worker_task *w, int ps)
{
    struct origin *o = &w->origin;
    size_t floats = (size_t)w->session.layout->block_floats[ps];
    for (int i = 0; i < o->plan.arrays; i++) {
        o->arrays[i] = calloc(floats, sizeof(float));
        if (!o->arrays[i]) return fail(ERR_MEMORY, "no memory to fill ps/%d", ps);
    }
    o->filling = ps;
    return OK;
}

/* The gap behind the slice too: it is updated, and must stay finite. */
static void initial_slots(struct origin *o, const struct slice *slice,
                          const struct optimizer_spec *spec)
{
    const struct optimizer *optimizer = optimizer_of(spec);
    const void *attributes = spec->optimizer.attributes;
    const int64_t gap = -slice->count & (LAYOUT_ALIGN - 1);
    for (int i = 0; i + 1 < o->plan.arrays && i < optimizer_slots(optimizer, attributes); i++) {
        float *slot = o->arrays[i + 1] + slice->offset;
        const float initial = optimizer_initial(optimizer, attributes, i);
        for (int64_t k = 0; k < slice->count + gap; k++) slot[k] = initial;
    }
}

static err read_arrays(struct worker_task *w, int ps)
{
    struct origin *o = &w->origin;
    const struct warm_start warm = warm_start_of(w);
    struct shard shard;
    describe_shard(w, ps, &shard);
    if (o->plan.arrays == 1) shard.slot_count = 0;
    shard.values = o->arrays[0];
    for (int i = 0; i < shard.slot_count; i++) shard.slots[i] = o->arrays[i + 1];
    shard.slice_count = setup_slices(w->session.layout, ps, &o->arena, &shard.slices);
    TRY(optimizers_of_slices(optimizers_of(w), shard.slices, shard.slice_count, &o->arena,
                             &shard.optimizer_of));
    for (int i = 0; i < shard.slice_count; i++)
        initial_slots(o, &shard.slices[i], &optimizers_of(w)->at[shard.optimizer_of[i]]);
    shard.ledger =
        arena_array(&o->arena, (size_t)shard.workers * LEDGER_COLUMNS, sizeof *shard.ledger);
    return shard_read(o->bundle, o->plan.restore ? NULL : &warm, &shard);
}

static err begin_filling(struct worker_task *w, int ps)
{
    forget_arrays(&w->origin);
    TRY(allocate_arrays(w, ps));
    if (!w->origin.plan.restore) TRY(session_initial_values(&w->session, ps, w->origin.arrays[0]));
    return read_arrays(w, ps);
}

/* Values travel where gradients will. The arrays of one ps are held at a time: where another one
 * asks in between, they are read once more, so that the chief need not have room for all. */
err worker_fill(struct worker_task *w, int ps, int array)
{
    struct origin *o = &w->origin;
    uint64_t bytes = worker_block_bytes(&w->task, ps);
    if (!bytes) return OK;
    if (!w->session.replica.gradients[ps]) return fail(ERR_PROTOCOL, "ps/%d shared no windows", ps);
    if (!o->bundle) return session_put_initial_values(&w->session, ps);
    if (array == 0 || o->filling != ps) TRY(begin_filling(w, ps));
    session_put_gradients(&w->session, ps, o->arrays[array]);
    if (array + 1 == o->plan.arrays) forget_arrays(o);
    return OK;
}
