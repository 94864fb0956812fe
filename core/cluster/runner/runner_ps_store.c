/* runner_ps_store.c - the memory of a ps.
 *
 * Who sees which memory. Where every round takes every worker, all workers look at the store's own
 * values, or at what these are rounded to: nobody computes while they change. Otherwise each worker
 * has a copy of its own, written when it is answered, so that a step sees one version. Gradients
 * have a window for each worker. Many workers that are far away share both (runner_ps_pool.c,
 * runner_ps_copies.c).
 *
 * Where the device has memory of its own the ps is part of a single process, whose worker computes
 * on the same device: windows are memory of the device then, and nothing of them ever travels.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/files/url.h"
#include "core/base/log.h"
#include "core/cluster/runner/job.h"
#include "core/cluster/runner/storage.h"
#include "core/cluster/runner/runner_ps_inside.h"
#include "core/train/checkpoint/checkpoints.h"

void share_release(struct share *s)
{
    if (!s || --s->users) return;
    share_release(s->before);
    arena_free(&s->arena);
    free(s);
}

int64_t runner_ps_block_floats(const struct runner_ps *p)
{
    return p->share ? p->share->setup.floats : 0;
}

size_t runner_ps_block_bytes(const struct runner_ps *p)
{
    return (size_t)runner_ps_block_floats(p) * sizeof(float);
}

size_t runner_ps_shown_bytes(const struct runner_ps *p)
{
    return (size_t)runner_ps_block_floats(p) * number_bytes(p->task.wire_values);
}

static err open_window(const struct runner_ps *p, size_t bytes, struct window *ret)
{
    if (!p->device->is_separate) return window_new(bytes, ret);
    void *memory;
    TRY(p->device->kernels->allocate(p->device, bytes, &memory));
    *ret = (struct window){.base = memory, .bytes = bytes, .fd = -1};
    return OK;
}

/* Of one worker, those that are not there yet */
static err open_windows(const struct runner_ps *p, struct windows *w, const struct link *link)
{
    const size_t bytes = runner_ps_block_bytes(p);
    const size_t rows = runner_ps_tables_window_bytes(p);
    const bool has_own = !link || !runner_ps_pool_serves(p, link);
    if (has_own && !w->gradients.base) TRY(open_window(p, bytes, &w->gradients));
    if (w->rows.base && w->rows.bytes != rows) window_free(&w->rows);
    if (!w->rows.base && rows) TRY(window_new(rows, &w->rows));
    const bool has_copy = !link || !runner_ps_copies_serve(p, link);
    if (p->share->setup.config.takes_all || !has_copy || w->copy.base) return OK;
    return open_window(p, runner_ps_shown_bytes(p), &w->copy);
}

static void close_window(const struct runner_ps *p, struct window *window)
{
    if (!p->device->is_separate) {
        window_free(window);
        return;
    }
    if (window->base) p->device->kernels->release(p->device, window->base);
    *window = (struct window){0};
}

/* ---- SETUP ---- */

static err read_share(const struct runner_ps *p, const struct message *m, struct share **ret)
{
    struct share *s = calloc(1, sizeof *s);
    if (!s) return fail(ERR_MEMORY, "no memory for a setup");
    s->users = 1;
    err e = setup_read(m->body, m->body_bytes, &s->arena, &s->setup);
    const struct setup *old = p->share ? &p->share->setup : NULL;
    bool is_mine = e || (s->setup.ps == p->task.index && s->setup.workers == p->task.peer_count);
    bool is_same =
        e || !old || (old->floats == s->setup.floats && old->wire_values == s->setup.wire_values);
    if (!is_mine || !is_same)
        e = fail(ERR_PROTOCOL, "SETUP of another %s", is_mine ? "block" : "task");
    if (e) {
        share_release(s);
        return e;
    }
    *ret = s;
    return OK;
}

static err open_values(struct runner_ps *p, const struct setup *setup)
{
    const size_t floats = (size_t)setup->floats;
    const bool is_rounded = setup->wire_values != NUMBER_FLOAT32 && setup->config.takes_all;
    if (!p->values.window.base) TRY(open_window(p, floats * sizeof(float), &p->values.window));
    if (!is_rounded || p->values.rounded.base) return OK;
    return open_window(p, floats * number_bytes(setup->wire_values), &p->values.rounded);
}

err runner_ps_open_averages(struct runner_ps *p)
{
    if (p->values.averages.base) return OK;
    return open_window(p, runner_ps_block_bytes(p), &p->values.averages);
}

static void take_powers(struct runner_ps *p, const struct setup *s)
{
    for (int i = 0; i < s->power_count; i++) p->store.powers[i] = s->powers[i];
}

static err open_store(struct runner_ps *p, struct share *s)
{
    const bool is_alone = task_is_inside(&p->task.options);
    const size_t bytes = (size_t)s->setup.floats * sizeof(float);
    TRY(open_values(p, &s->setup));
    TRY(runner_ps_pool_open(p, is_alone ? 0 : ps_config_windows(bytes, s->setup.workers)));
    if (p->has_store) store_close(&p->store);
    p->has_store = false;
    p->saving.as_of = 0;
    runner_ps_unfold(p);
    TRY(store_open(&s->setup.optimizers, s->setup.sections, s->setup.section_count, p->device,
                   s->setup.floats, p->values.window.base, &p->store));
    p->has_store = true;
    p->store.number = p->task.wire = s->setup.wire;
    p->store.shown = p->task.wire_values = s->setup.wire_values;
    if (s->setup.config.arrays > 1 + p->store.slot_count) /* INIT would bring more than fits */
        return fail(ERR_PROTOCOL, "SETUP with %d arrays", s->setup.config.arrays);
    take_powers(p, &s->setup);
    share_release(p->share);
    p->share = s;
    TRY(runner_ps_copies_open(p));
    return runner_ps_tables_open(p);
}

/* What the chief would have it read is what it has. */
static bool has_these(const struct runner_ps *p, const struct setup *s)
{
    const bool is_same = p->has_store && strcmp(p->share->setup.part.layout, s->part.layout) == 0;
    return is_same && s->restore && s->from.snapshot && s->from.snapshot == p->saving.as_of &&
           !p->saving.job;
}

/* The first share stays for as long as its descriptions are those of store and tables. */
static err keep_store(struct runner_ps *p, struct share *s)
{
    const double factor = s->setup.optimizers.rate_factor;
    s->before = p->share->before ? p->share->before : p->share;
    s->before->users++;
    share_release(p->share);
    p->share = s;
    runner_ps_unfold(p);
    take_powers(p, &s->setup);
    p->store.rate_factor = factor > 0 ? factor : 1;
    runner_ps_tables_unname(p);
    return runner_ps_copies_open(p);
}

/* The arrays of this ps as a checkpoint names them. */
void runner_ps_describe_shard(const struct runner_ps *p, struct shard *ret)
{
    const struct setup *s = &p->share->setup;
    *ret = (struct shard){
        .ps = s->part.home,
        .ps_count = s->part.homes,
        .slices = s->slices,
        .slice_count = s->slice_count,
        .values = p->store.values,
        .optimizer_of = s->optimizer_of,
        .owns_powers = s->owns_powers,
        .workers = s->workers,
    };
    shard_name_state(ret, &s->optimizers);
    runner_ps_tables_describe(p, ret);
    for (int i = 0; i < ret->slot_count; i++) ret->slots[i] = p->store.slots[i];
    memcpy(ret->powers, p->store.powers, sizeof ret->powers);
}

/* All workers look at the one block, and it has changed. */
static void show_values(const struct runner_ps *p)
{
    if (p->values.rounded.base) store_show(&p->store, p->values.rounded.base);
}

/* Nobody trains meanwhile. */
static bool is_asked_again(const struct runner_ps *p, err e, const char *path, uint64_t since_ms)
{
    return storage_is_asked_again(e, path, &p->task.options.limits, since_ms);
}

/* Values and slots; powers, step and ledger came with SETUP. */
static err read_checkpoint(struct runner_ps *p)
{
    struct shard shard;
    struct bundle *bundle;
    runner_ps_describe_shard(p, &shard);
    shard.ledger = calloc((size_t)shard.workers * LEDGER_COLUMNS, sizeof *shard.ledger);
    if (!shard.ledger) return fail(ERR_MEMORY, "no memory for %d workers", shard.workers);
    err e = bundle_open(p->share->setup.restore, &bundle);
    if (!e) {
        e = shard_read_on(p->device, p->store.floats, bundle, NULL, &shard);
        bundle_close(bundle);
    }
    free(shard.ledger);
    if (!e) show_values(p);
    return e;
}

static err restore(struct runner_ps *p)
{
    const uint64_t since_ms = clock_ms();
    if (p->share->setup.from.resumes) url_folder_note(p->share->setup.directory);
    err e = read_checkpoint(p);
    while (is_asked_again(p, e, p->share->setup.restore, since_ms)) { /* ends: it has a limit */
        TRY(runner_ps_tables_open(p));                                /* empty again */
        e = read_checkpoint(p);
    }
    return e;
}

static err read_warm_tables(struct runner_ps *p)
{
    const struct setup *setup = &p->share->setup;
    struct shard shard;
    struct bundle *bundle;
    runner_ps_describe_shard(p, &shard);
    TRY(bundle_open(setup->warm.from, &bundle));
    const err e = shard_read_tables(bundle, &setup->warm.how, &shard);
    bundle_close(bundle);
    return e;
}

/* Checkpoint of a different run: dense values are sent by the chief, which has already read them.
 */
static err warm_tables(struct runner_ps *p)
{
    const struct setup *setup = &p->share->setup;
    const uint64_t since_ms = clock_ms();
    if (!setup->warm.from || !setup->table_count) return OK;
    err e = read_warm_tables(p);
    while (is_asked_again(p, e, setup->warm.from, since_ms)) { /* ends: it has a limit */
        TRY(runner_ps_tables_open(p));
        e = read_warm_tables(p);
    }
    return e ? fail_prefix(e, "train.warm_start, of which every ps reads its tables itself") : OK;
}

/* Rows take memory when they are made, and of one that grows nobody knows how many there will be.
 */
static const char *tables_text(const struct setup *setup, struct arena *arena)
{
    double bytes = 0;
    bool is_bounded = true;
    for (int i = 0; i < setup->table_count; i++) {
        const struct slice *slice = &setup->tables[i].slice;
        is_bounded = is_bounded && !setup->tables[i].spec.growth;
        bytes += (double)slice->length * (double)slice->shape.dim[1] * sizeof(float);
    }
    if (!setup->table_count) return "";
    if (!is_bounded)
        return arena_format(arena, "%d table%s, ", setup->table_count,
                            setup->table_count == 1 ? "" : "s");
    return arena_format(arena, "%d table%s of up to %.2f MB, ", setup->table_count,
                        setup->table_count == 1 ? "" : "s", bytes / 1e6);
}

/* What is behind a URL every ps must reach, and is not asked for: it may be away just now. */
static err find_folder(const char *directory, uint64_t token, bool *ret_is_seen)
{
    *ret_is_seen = directory && path_is_url(directory);
    return !directory || *ret_is_seen ? OK : checkpoints_token_find(directory, token, ret_is_seen);
}

/* What it has to read lies there. Where it may not read, and need not, it is brought its values. */
static bool is_waited_for(const struct setup *setup)
{
    return setup->restore && (setup->table_count || errno != EACCES);
}

static void look_for_folder(struct runner_ps *p)
{
    const struct setup *setup = &p->share->setup;
    const uint64_t since_ms = clock_ms();
    err e = find_folder(setup->directory, setup->mark.token, &p->saving.sees_folder);
    while (e && is_waited_for(setup) &&
           is_asked_again(p, e, setup->directory, since_ms)) /* in time */
        e = find_folder(setup->directory, setup->mark.token, &p->saving.sees_folder);
    if (e) p->saving.sees_folder = false;
}

/* Beside the loop: where the folder is, and how long its server takes, is the chief's word. */
struct folder_look {
    struct task_job job;
    struct runner_ps *ps;
    struct share *share; /* held, with the directory */
    const char *directory;
    uint64_t token;
    bool is_seen;
};

static void begin_look(struct runner_ps *p);

static err look_beside(void *context)
{
    struct folder_look *look = context;
    return find_folder(look->directory, look->token, &look->is_seen);
}

static void end_look(void *context, err result)
{
    struct folder_look *look = context;
    struct runner_ps *p = look->ps;
    const struct setup *now = p->share == look->share ? &look->share->setup : NULL;
    const bool is_that = now && now->directory == look->directory && now->mark.token == look->token;
    if (is_that) p->saving.sees_folder = look->is_seen;
    share_release(look->share);
    free(look);
    p->saving.look = NULL;
    if (now && !is_that) begin_look(p); /* another one has come to lead meanwhile */
}

/* Until it is known, shards go by way of the chief. */
static void begin_look(struct runner_ps *p)
{
    const char *directory = p->share->setup.directory;
    p->saving.sees_folder = directory && path_is_url(directory);
    if (p->saving.sees_folder || p->saving.look) return;
    struct folder_look *look = calloc(1, sizeof *look);
    if (!look) return;
    *look = (struct folder_look){
        .job = {.run = look_beside, .done = end_look, .loop = p->task.options.loop},
        .ps = p,
        .share = p->share,
        .directory = p->share->setup.directory,
        .token = p->share->setup.mark.token,
    };
    look->job.context = look;
    p->share->users++;
    p->saving.look = look;
    if (!task_job_start(&look->job)) return;
    log_line(LOG_WARNING, "%s", error_text());
    share_release(look->share);
    free(look);
    p->saving.look = NULL;
}

/* What was named before stays, for as long as somebody may look there. */
static err take_folder(struct share *s, const char *directory)
{
    enum { FOLDERS_MAX = 1024 };
    const char *now = s->setup.directory;
    if (directory && now && strcmp(directory, now) == 0) return OK;
    if (directory && s->folders == FOLDERS_MAX)
        return fail(ERR_PROTOCOL, "names more than %d folders for checkpoints", (int)FOLDERS_MAX);
    s->folders += directory != NULL;
    s->setup.directory = directory ? arena_string(&s->arena, directory) : NULL;
    return OK;
}

/* A chief that comes to lead writes checkpoints elsewhere, or seen from elsewhere. */
void runner_ps_claimed(struct runner_ps *p, int worker, const struct message *m)
{
    struct share *s = p->share;
    struct arena arena = {0};
    const char *directory;
    uint64_t token;
    if (!s || !m->body_bytes || !ps_role_obeys(p->task.role, worker)) return;
    err e = setup_read_folder(m->body, m->body_bytes, &arena, &directory, &token);
    if (!e) e = take_folder(s, directory);
    if (!e) s->setup.mark.token = token;
    if (!e) begin_look(p);
    arena_free(&arena);
    if (e)
        log_limited(&p->task.lines.breaches, clock_ms(), LOG_WARNING, "worker/%d: %s", worker,
                    error_text());
}

static err set_up(struct runner_ps *p, const struct message *m, bool *ret_is_bad_checkpoint)
{
    struct share *s = NULL;
    TRY(read_share(p, m, &s));
    const struct setup *setup = &s->setup;
    const bool has_all = has_these(p, setup);
    err e = has_all ? keep_store(p, s) : open_store(p, s);
    if (e && p->share != s) share_release(s);
    if (e) return e;
    TRY(runner_ps_turns_check(p));
    /* What a device lacks is told in the answer, before its one worker misses its windows. */
    if (p->device->is_separate && setup->floats) TRY(open_windows(p, &p->windows[0], NULL));
    look_for_folder(p);
    if (has_all) {
        s->setup.config.is_restored = true;
        log_line(LOG_INFO, "already has the values of step %llu, and reads no checkpoint",
                 (unsigned long long)setup->config.step);
        return OK;
    }
    TRY(warm_tables(p));
    if (setup->restore && !p->saving.sees_folder && setup->table_count)
        return fail(ERR_INPUT,
                    "ps/%d does not see the folder of the checkpoint %s, which it has to read its "
                    "tables from: share checkpoint_dir with every ps",
                    setup->ps, setup->restore);
    if (setup->restore && p->saving.sees_folder && setup->floats) {
        e = restore(p);
        *ret_is_bad_checkpoint = e == ERR_INPUT || e == ERR_IO;
        if (e) return e;
        s->setup.config.is_restored = true;
    }
    log_line(LOG_INFO, "holds %d variable%s in %.2f MB, %s%s", setup->slice_count,
             setup->slice_count == 1 ? "" : "s", (double)runner_ps_block_bytes(p) / 1e6,
             tables_text(setup, &s->arena), optimizers_text(&setup->optimizers, &s->arena));
    return OK;
}

void runner_ps_setup(struct runner_ps *p, const struct message *m)
{
    struct setup_result r = {0};
    const uint64_t before = p->share ? p->share->setup.config.generation : 0;
    r.result = set_up(p, m, &r.is_bad_checkpoint);
    if (!r.result && before && p->share->setup.from.set_in == before)
        p->task.counting.counters.at[COUNTER_SETTINGS]++;
    r.text = r.result ? error_text() : "";
    if (p->share) r.config = p->share->setup.config;
    r.config.windows = p->pool.count;
    if (!r.result) runner_ps_turns_begin(p);
    ps_role_set_up(p->task.role, &r, &p->task.outbox);
    runner_ps_plan_overlap(p);
}

/* ---- windows ---- */

/* What all workers look at, where none has a copy of its own */
static const struct window *shown_window(const struct runner_ps *p)
{
    return p->values.rounded.base ? &p->values.rounded : &p->values.window;
}

bool runner_ps_shares_memory(const struct runner_ps *p, int worker)
{
    const struct windows *w = &p->windows[worker];
    const struct window *values = w->copy.base ? &w->copy : shown_window(p);
    const bool has_rows = !w->rows.base || w->rows.fd >= 0;
    return !w->gradients.base || (w->gradients.fd >= 0 && values->fd >= 0 && has_rows);
}

err runner_ps_share(struct runner_ps *p, int worker, bool is_fresh)
{
    struct windows *w = &p->windows[worker];
    struct link *link = p->task.peers[worker].link;
    if (!runner_ps_block_bytes(p) || !link) return OK;
    if (is_fresh && !p->device->is_separate) { /* another life may still write to the old ones */
        close_window(p, &w->gradients);
        close_window(p, &w->copy);
        window_free(&w->rows);
        rows_told_forget(&w->named.told);
    }
    TRY(open_windows(p, w, link));
    const bool takes_all = p->share->setup.config.takes_all;
    const struct window lent = {.bytes = runner_ps_block_bytes(p), .fd = -1};
    const struct window seen = {.bytes = runner_ps_shown_bytes(p), .fd = -1};
    const bool is_served = runner_ps_copies_serve(p, link);
    const struct link_windows windows = {takes_all   ? *shown_window(p)
                                         : is_served ? seen
                                                     : w->copy,
                                         runner_ps_pool_serves(p, link) ? lent : w->gradients,
                                         w->rows};
    const err e = link_share(link, &windows);
    if (e == ERR_IO)
        log_line(LOG_WARNING, "worker/%d: %s; it may come back over tcp", worker, error_text());
    return e == ERR_INPUT ? e : OK; /* else the link closes, and the role hears of it */
}

void runner_ps_initialize(struct runner_ps *p, int worker, int array)
{
    const float *from = runner_ps_gradient(p, worker);
    float *to = store_array(&p->store, array);
    if (!runner_ps_block_bytes(p) || !from) return;
    p->device->kernels->copy(p->device, to, from, p->store.floats);
    runner_ps_copies_outdate(p);
    if (array > 0) return;
    if (p->share->setup.config.arrays == 1) store_begin_averages(&p->store);
    show_values(p);
}

void runner_ps_refresh(struct runner_ps *p, int worker)
{
    const struct window *copy = &p->windows[worker].copy;
    if (copy->base) store_show(&p->store, copy->base);
}

/* Of those that are not in the sum; returns how many. */
static int list_sources(struct runner_ps *p, const int workers[], int count)
{
    int listed = 0;
    for (int i = 0; i < count; i++)
        if (!p->windows[workers[i]].is_folded)
            p->sources[listed++] = runner_ps_gradient(p, workers[i]);
    return listed;
}

/* ---- updates ---- */

/* An update by the gradients of some workers, which are there in this range */
struct summed_gradients {
    const int *workers;
    int count;
    uint64_t step;
    struct range range;
};

/* Whose bits of the exponent are all ones is not finite. */
static bool are_finite(enum number number, const uint16_t *at, int64_t n)
{
    const uint16_t exponent = number == NUMBER_BF16 ? 0x7f80 : 0x7c00;
    for (int64_t i = 0; i < n; i++)
        if ((at[i] & exponent) == exponent) return false;
    return true;
}

static bool is_finite(const struct runner_ps *p, int worker, const struct slice *slice,
                      struct range range)
{
    const void *gradients = runner_ps_gradient(p, worker);
    range = range_meet(range, (struct range){slice->offset, slice->offset + slice->count});
    const int64_t begin = range.begin, n = range_count(range);
    if (n <= 0 || p->windows[worker].is_folded) return true; /* it was looked at before */
    if (p->store.number != NUMBER_FLOAT32)
        return are_finite(p->store.number, (const uint16_t *)gradients + begin, n);
    return p->device->kernels->all_finite(p->device, (const float *)gradients + begin, n);
}

/* On a device that has failed nothing looks finite, and no gradient is to blame. */
static err blame(const struct runner_ps *p, const struct summed_gradients *g)
{
    const struct setup *s = &p->share->setup;
    const struct range moved = range_meet(g->range, (struct range){0, ps_config_moved(&s->config)});
    const unsigned long long step = g->step + 1;
    TRY(p->device->kernels->synchronize(p->device));
    for (int w = 0; w < g->count; w++)
        for (int i = 0; i < s->slice_count; i++)
            if (!is_finite(p, g->workers[w], &s->slices[i], moved))
                return fail(ERR_NUMBER,
                            "worker/%d pushed a gradient that is not finite at step %llu: %s",
                            g->workers[w], step, s->slices[i].name);
    return fail(ERR_NUMBER, "the sum of the gradients at step %llu is not finite", step);
}

err runner_ps_apply(struct runner_ps *p, const struct action_apply *a)
{
    const struct summed_gradients g = {a->workers, a->worker_count, a->step, {0, p->store.floats}};
    if (!runner_ps_block_bytes(p)) return OK;
    const int listed = list_sources(p, a->workers, a->worker_count);
    TRY(runner_ps_tables_apply(p, a));
    const bool is_sync = p->share->setup.config.is_sync;
    runner_ps_copies_outdate(p);
    void *const begun = is_sync ? NULL : runner_ps_copies_begin(p, a->workers[0]);
    void *const copy = begun ? begun : p->windows[a->workers[0]].copy.base;
    void *const shown = is_sync ? p->values.rounded.base : copy;
    const err e = store_apply(&p->store, p->sources, listed, 1.0f / (float)a->gradients,
                              (int64_t)a->step, shown);
    if (e) return e == ERR_NUMBER ? blame(p, &g) : e;
    for (int i = 0; i < a->worker_count; i++) p->windows[a->workers[i]].is_folded = false;
    return OK;
}

err runner_ps_fold(struct runner_ps *p, const struct action_fold *a)
{
    const struct summed_gradients g = {a->workers, a->worker_count, a->step, {0, p->store.floats}};
    const bool is_first = !p->store.sum;
    if (!runner_ps_block_bytes(p)) return OK;
    const int listed = list_sources(p, a->workers, a->worker_count);
    const err e = store_fold(&p->store, p->sources, listed);
    if (e) return e == ERR_NUMBER ? blame(p, &g) : e;
    if (is_first) log_line(LOG_DEBUG, "sums gradients as they come: %d windows", p->pool.count);
    for (int i = 0; i < a->worker_count; i++) p->windows[a->workers[i]].is_folded = true;
    return OK;
}

void runner_ps_unfold(struct runner_ps *p)
{
    store_unfold(&p->store);
    for (int w = 0; w < p->task.peer_count; w++) p->windows[w].is_folded = false;
}

/* What is said ahead of the round is then what it was, and its VALUES bring all. */
static void give_up_advance(struct runner_ps *p)
{
    log_line(LOG_WARNING, "values are sent only after each round, not ahead of it: %s",
             error_text());
    p->cannot_advance = true;
    runner_ps_plan_overlap(p);
}

err runner_ps_advance(struct runner_ps *p, const struct action_advance *a)
{
    const struct summed_gradients g = {a->workers, a->worker_count, a->step, a->range};
    list_sources(p, a->workers, a->worker_count);
    const err e = store_advance(&p->store, p->sources, a->worker_count, 1.0f / (float)a->gradients,
                                (int64_t)a->step, a->range, p->values.rounded.base);
    if (e == ERR_NUMBER) return blame(p, &g);
    if (e) give_up_advance(p);
    return OK;
}

void runner_ps_take_back(struct runner_ps *p)
{
    store_take_back(&p->store, p->values.rounded.base);
}

static void plan_links(struct runner_ps *p)
{
    struct overlap_link facts = {.rounds = ps_role_overlap(p->task.role), .all_are_far = true};
    facts.is_sync = p->share && p->share->setup.config.is_sync;
    for (int w = 0; w < p->task.peer_count; w++) {
        const struct link *link = p->task.peers[w].link;
        if (link && link_is_near(link)) facts.all_are_far = false;
    }
    for (int w = 0; w < p->task.peer_count; w++)
        if (p->task.peers[w].link) task_plan_overlap(&p->task, w, facts);
}

static void plan_rounds(struct runner_ps *p, bool is_looked_at)
{
    const struct overlap_rounds facts = {
        .is_wanted = task_overlaps(&p->task, OVERLAP_IN_PARTS),
        .is_looked_at = is_looked_at,
        .can_undo = !p->cannot_advance && !p->device->is_separate,
    };
    ps_role_plan_overlap(p->task.role, &facts, &p->task.outbox);
}

/* A change by a visitor is made before the update of its round, to all or none of the values. */
void runner_ps_plan_overlap(struct runner_ps *p)
{
    plan_links(p); /* whether they are IN_PARTS */
    plan_rounds(p, visits_wait_for_round(p->visiting.visits));
    plan_links(p);
}

void runner_ps_settle(struct runner_ps *p)
{
    plan_rounds(p, true);
    task_flush(&p->task);
    runner_ps_copies_outdate(p); /* values may be changed */
}

void runner_ps_store_close(struct runner_ps *p)
{
    for (int w = 0; p->windows && w < p->task.peer_count; w++) {
        close_window(p, &p->windows[w].gradients);
        close_window(p, &p->windows[w].copy);
        window_free(&p->windows[w].rows);
    }
    runner_ps_copies_close(p);
    runner_ps_pool_close(p);
    if (p->saving.look) task_job_abandon(&p->saving.look->job);
    runner_ps_tables_close(p);
    if (p->has_store) store_close(&p->store);
    close_window(p, &p->values.window);
    close_window(p, &p->values.rounded);
    close_window(p, &p->values.averages);
    share_release(p->share);
    free(p->windows);
    free(p->sources);
}
