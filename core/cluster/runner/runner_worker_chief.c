/* runner_worker_chief.c - coming to lead; what a generation begins from: a checkpoint of this run,
 * another run's values, or the spec's initial values; and what each ps is told and brought of it.
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/files/file_system.h"
#include "core/base/log.h"
#include "core/base/random.h"
#include "core/cluster/role/batch_queue.h"
#include "core/cluster/runner/greeting.h"
#include "core/cluster/runner/storage.h"
#include "core/cluster/runner/trace/trace_worker.h"
#include "core/train/checkpoint/shard.h"
#include "core/train/spec/day.h"

/* ---- who leads ---- */

/* Opens the folder, and the hooks that only a chief has; these hear so where the worker already
 * trains. */
static err lead(struct runner_worker *w)
{
    if (w->trace) runner_worker_trace_abandon(w);
    TRY(runner_worker_open_checkpoints(w));
    TRY(runner_worker_open_hooks(w));
    if (!w->has_adopted) return OK;
    return runner_worker_tell(w, w->hooks.view.global_step,
                              &(struct occasion){OCCASION_ADOPTED, .adopted = {.is_first = false}});
}

void runner_worker_lead(struct runner_worker *w)
{
    runner_worker_told(w, lead(w));
}

void runner_worker_yield(struct runner_worker *w)
{
    w->evaluation.again = 0;
    w->folder.is_asked_to_save = false;
    if (w->trace) runner_worker_trace_abandon(w);
    runner_worker_trace_refuse_asked(w, "that worker is not the chief any more: try again");
    runner_worker_close_checkpoints(w);
    runner_worker_told(w, runner_worker_open_hooks(w));
}

static err send_text(struct runner_worker *w, int ps, struct message m, char *text)
{
    if (!text) return fail(ERR_MEMORY, "no memory for %s to ps/%d", message_name(m.type), ps);
    m.body = text;
    m.body_bytes = (uint32_t)strlen(text);
    err e = w->task.peers[ps].link ? link_send(w->task.peers[ps].link, &m) : OK;
    free(text);
    return e == ERR_PEER ? OK : e; /* the link closes, and the role hears of it */
}

/* A ps looks for the folder when it is told of it: it is told when that is open. */
void runner_worker_claim(struct runner_worker *w, const struct action_claim *a)
{
    const char *directory = w->folder.directory[0] ? w->folder.directory : NULL;
    char *text = w->folder.jobs.opening.is_running ? strdup("")
                                                   : setup_write_folder(directory, w->folder.token);
    runner_worker_told(w, send_text(w, a->ps, a->message, text));
}

static const struct optimizers *optimizers_of(const struct runner_worker *w)
{
    return &w->options.spec->optimizers;
}

static int workers_of(const struct runner_worker *w)
{
    return w->options.task.cluster->hosts[JOB_WORKER].count;
}

static void forget_arrays(struct origin *o)
{
    for (int i = 0; i < 1 + BLOCK_SLOTS_MAX; i++) {
        free(o->arrays[i]);
        o->arrays[i] = NULL;
    }
    o->filling = -1;
}

void runner_worker_origin_close(struct runner_worker *w)
{
    struct origin *o = &w->origin;
    forget_arrays(o);
    bundle_close(o->bundle);
    arena_free(&o->arena);
    *o = (struct origin){.filling = -1};
}

/* A shard of a ps as the bundle is asked for it; arrays are the caller's. */
static void describe_shard(const struct runner_worker *w, int ps, struct shard *ret)
{
    const struct layout *layout = w->session.layout;
    *ret = (struct shard){
        .ps = layout_home(layout, ps), .ps_count = layout->ps_count, .workers = workers_of(w)};
    shard_name_state(ret, optimizers_of(w));
}

static struct ledger *ledgers_of(struct arena *arena, const int64_t *numbers, size_t workers)
{
    struct ledger *ret = arena_array(arena, workers + 1, sizeof *ret);
    for (size_t i = 0; i < workers; i++) ret[i] = ledger_of(numbers + i * LEDGER_COLUMNS);
    return ret;
}

/* ---- a checkpoint of this run ---- */

/* Step, powers and ledger of one ps; its arrays it reads for itself where it can. */
static err read_numbers(struct runner_worker *w, int ps)
{
    struct origin *o = &w->origin;
    struct shard shard;
    size_t workers = (size_t)workers_of(w);
    describe_shard(w, ps, &shard);
    shard.ledger = arena_array(&o->arena, workers * LEDGER_COLUMNS, sizeof *shard.ledger);
    int64_t coverage[COVERAGE_NUMBERS];
    shard.coverage = coverage;
    TRY(shard_read(o->bundle, NULL, &shard));
    if (ps == 0) o->is_counted = coverage_of(coverage, &o->plan.coverage);
    if (ps == 0) TRY(shard_read_data(o->bundle, &o->arena, &o->data, &o->data_numbers));
    o->ledgers[ps] = ledgers_of(&o->arena, shard.ledger, workers);
    o->plan.step = shard.global_step;
    for (int i = 0; i < shard.power_count; i++) o->powers[i] = shard.powers[i];
    return OK;
}

/* A ps that cannot see the folder reports nothing that is bad, so with a policy that continues from
 * an older checkpoint all is read beforehand. */
static err open_checkpoint(struct runner_worker *w, const char *prefix)
{
    struct origin *o = &w->origin;
    bundle_close(o->bundle);
    o->bundle = NULL;
    TRY(bundle_open(prefix, &o->bundle));
    if (w->options.spec->train.checkpoint.on_corrupt == CORRUPT_PREVIOUS)
        TRY(bundle_verify(o->bundle));
    o->ledgers = arena_array(&o->arena, (size_t)w->task.peer_count, sizeof *o->ledgers);
    for (int ps = 0; ps < w->task.peer_count; ps++) TRY(read_numbers(w, ps));
    o->plan.restore = arena_string(&o->arena, prefix);
    o->plan.powers = o->powers;
    o->plan.power_count = optimizers_of(w)->power_count;
    o->plan.arrays = 1 + optimizers_of(w)->slot_count;
    return OK;
}

/* ---- which rows are in the values ---- */

static struct data_share share_of(const struct runner_worker *w)
{
    const struct spec *spec = w->options.spec;
    const int64_t rows = w->session.data.train->rows;
    const bool is_one = spec_hands_out(spec);
    return (struct data_share){
        .rows = rows ? (uint64_t)rows : DATA_ROWS_ENDLESS,
        .batch = (uint64_t)spec->data.batch_size,
        .workers = is_one ? 1 : (uint64_t)workers_of(w),
        .replicas = is_one ? 0 : (uint64_t)spec_replicas(spec, workers_of(w)),
    };
}

void runner_worker_torn(struct runner_worker *w, const struct torn_pushes *of_workers)
{
    const struct data_share share = share_of(w);
    const struct torn_rows torn = data_share_torn(&share, of_workers, workers_of(w));
    runner_worker_note_torn(w, &torn);
}

/* *ret NULL: there was no such ps. */
static err read_ledger(struct bundle *bundle, struct arena *arena, int ps, struct ledger **ret,
                       int *ret_workers)
{
    int64_t *numbers;
    *ret = NULL;
    TRY(shard_stored_ledger(bundle, arena, ps, &numbers, ret_workers));
    if (!numbers) return OK;
    *ret = ledgers_of(arena, numbers, (size_t)*ret_workers);
    return OK;
}

/* By the ledgers of all ps that there were */
static err read_torn(struct bundle *bundle, struct arena *arena, const struct data_share *share,
                     struct torn_rows *ret, int *ret_ps)
{
    struct torn_pushes *torn = NULL;
    struct ledger *first, *ledger;
    int ps = 1, workers, count;
    *ret = (struct torn_rows){0};
    *ret_ps = 0;
    TRY(read_ledger(bundle, arena, 0, &first, &workers));
    if (first) torn = arena_array(arena, (size_t)workers, sizeof *torn);
    for (; torn && ps < PS_MAX; ps++) {
        TRY(read_ledger(bundle, arena, ps, &ledger, &count));
        if (!ledger) break;
        if (count < workers) workers = count;
        torn_pushes_note(torn, workers, first, ledger);
    }
    if (torn) *ret_ps = ps;
    if (torn) *ret = data_share_torn(share, torn, workers);
    return OK;
}

/* Some batches cost less where one worker reads those beside them, too. */
static int stretch_of(const struct runner_worker *w)
{
    if (!spec_hands_out(w->options.spec)) return 0;
    const int64_t stretch = batch_source_stretch(w->session.data.train, workers_of(w));
    return stretch < STRETCH_BATCHES_MAX ? (int)stretch : STRETCH_BATCHES_MAX;
}

/* All tasks read the same rows, in the same order. */
static struct data_identity identity_of(const struct runner_worker *w)
{
    const struct data_spec *data = &w->options.spec->data;
    const uint64_t seed = data->shuffle ? random_key((uint64_t)w->options.spec->seed, "data") : 0;
    return (struct data_identity){(int64_t)(w->task.data.digest >> 1), (int64_t)(seed >> 1)};
}

static struct data_identity identity_before(const struct origin *o)
{
    if (o->data_numbers < IDENTITY_NUMBERS) return (struct data_identity){0};
    return (struct data_identity){o->data[0], o->data[1]};
}

enum { ROWS_TEXT_MAX = 32 };
static const char *rows_text(const struct data_share *share, char text[ROWS_TEXT_MAX])
{
    if (share->rows == DATA_ROWS_ENDLESS) return "rows that come";
    snprintf(text, ROWS_TEXT_MAX, "%llu rows", (unsigned long long)share->rows);
    return text;
}

static_assert((int)SHARE_WORKERS_MAX == (int)WORKERS_MAX, "a share is of the workers of a job");

/* Of the workers that there were. */
static err read_ledgers_before(struct runner_worker *w, struct ledger **ret)
{
    struct origin *o = &w->origin;
    struct shard shard;
    const size_t workers = o->plan.coverage.share.workers;
    describe_shard(w, 0, &shard);
    shard.workers = (int)workers;
    shard.ledger = arena_array(&o->arena, workers * LEDGER_COLUMNS, sizeof *shard.ledger);
    TRY(shard_read(o->bundle, NULL, &shard));
    *ret = ledgers_of(&o->arena, shard.ledger, workers);
    return OK;
}

/* The batches that no values have, as the checkpoint says; of `workers` from now on. */
static err open_queue(struct runner_worker *w, int workers, struct batch_queue *ret)
{
    const struct origin *o = &w->origin;
    const int count = o->data_numbers - IDENTITY_NUMBERS;
    if (!batch_queue_open(ret, workers, 1)) return fail(ERR_MEMORY, "no memory for open batches");
    if (count > 0 && batch_queue_read(ret, o->data + IDENTITY_NUMBERS, count)) return OK;
    batch_queue_free(ret);
    return fail(ERR_INPUT, "%s: says nothing of the batches that were handed out",
                bundle_prefix(o->bundle));
}

/* From now on batches are handed out, and these are open. */
static void hand_out(struct runner_worker *w, const struct batch_queue *queue)
{
    struct setup_plan *plan = &w->origin.plan;
    plan->queue_numbers = batch_queue_count(queue);
    int64_t *numbers = arena_array(&w->origin.arena, (size_t)plan->queue_numbers, sizeof *numbers);
    batch_queue_numbers(queue, numbers);
    plan->queue = numbers;
}

static err hand_out_from(struct runner_worker *w, uint64_t front)
{
    struct batch_queue queue;
    if (!batch_queue_open(&queue, workers_of(w), 1))
        return fail(ERR_MEMORY, "no memory for open batches");
    queue.front = front;
    hand_out(w, &queue);
    batch_queue_free(&queue);
    return OK;
}

/* With num_steps the run ends so many steps after where this process first began; with epochs when
 * as many rows have been used, however many workers there were for each of them. */
static uint64_t last_step_of(const struct runner_worker *w)
{
    const struct spec *spec = w->options.spec;
    const struct setup_plan *plan = &w->origin.plan;
    const struct coverage *c = &plan->coverage;
    if (spec->train.epochs && w->origin.is_counted && c->share.rows &&
        c->share.rows != DATA_ROWS_ENDLESS) {
        const double left = spec->train.epochs * (double)c->share.rows - (double)c->total;
        return plan->step + (uint64_t)spec_steps_of(spec, left, workers_of(w));
    }
    return w->end.step + (spec->train.num_steps ? plan->step : 0);
}

static void find_last_step(struct runner_worker *w)
{
    uint64_t set;
    if (!w->end.is_known) w->end.unset = last_step_of(w);
    w->end.is_known = true;
    w->end.step = runner_worker_set_last_step(w, &set) ? set : w->end.unset;
}

static err tell_counts(struct runner_worker *w, const struct covered *covered)
{
    const struct setup_plan *plan = &w->origin.plan;
    const bool is_counted = covered->rows && covered->rows != DATA_ROWS_ENDLESS;
    w->hooks.view.global_step = plan->step;
    if (!w->has_adopted) w->hooks.view.first_step = plan->step;
    return plan->restore && is_counted ? runner_worker_tell_covered(w, plan->step, covered, false)
                                       : OK;
}

/* A job that ends before its values are there is where it began from. */
static err tell_origin(struct runner_worker *w)
{
    const struct setup_plan *plan = &w->origin.plan;
    struct batch_queue queue = {0};
    if (plan->queue_numbers && (!batch_queue_open(&queue, workers_of(w), 1) ||
                                !batch_queue_read(&queue, plan->queue, plan->queue_numbers)))
        return fail(ERR_MEMORY, "no memory for open batches");
    const struct covered covered =
        coverage_of_open(&plan->coverage, plan->queue_numbers ? &queue : NULL);
    batch_queue_free(&queue);
    return tell_counts(w, &covered);
}

/* What the checkpoint says, which is shared in another way from now on. */
static err count_before(struct runner_worker *w, struct covered *ret)
{
    const struct coverage *c = &w->origin.plan.coverage;
    struct batch_queue queue = {0};
    const bool is_queue = data_share_is_queue(&c->share);
    if (is_queue) TRY(open_queue(w, 1, &queue));
    *ret = coverage_of_open(c, is_queue ? &queue : NULL);
    batch_queue_free(&queue);
    return OK;
}

static err read_covered(struct runner_worker *w, struct bundle *bundle, struct arena *arena,
                        uint64_t *ret_step, struct covered *ret)
{
    struct shard shard;
    struct coverage coverage;
    struct batch_queue queue = {0};
    int64_t numbers[COVERAGE_NUMBERS];
    const int64_t *data;
    int count;
    describe_shard(w, 0, &shard);
    shard.coverage = numbers;
    shard.ledger = arena_array(arena, (size_t)shard.workers * LEDGER_COLUMNS, sizeof *shard.ledger);
    TRY(shard_read(bundle, NULL, &shard));
    TRY(shard_read_data(bundle, arena, &data, &count));
    *ret_step = shard.global_step;
    if (!coverage_of(numbers, &coverage)) return fail(ERR_INPUT, "it does not count its rows");
    const bool is_queue = data_share_is_queue(&coverage.share);
    if (is_queue &&
        (count <= IDENTITY_NUMBERS || !batch_queue_open(&queue, 1, 1) ||
         !batch_queue_read(&queue, data + IDENTITY_NUMBERS, count - IDENTITY_NUMBERS))) {
        batch_queue_free(&queue);
        return fail(ERR_INPUT, "it says nothing of the batches that were handed out");
    }
    *ret = coverage_of_open(&coverage, is_queue ? &queue : NULL);
    batch_queue_free(&queue);
    struct torn_rows torn;
    int ps;
    TRY(read_torn(bundle, arena, &coverage.share, &torn, &ps));
    ret->lost += torn.lost;
    ret->twice += torn.twice;
    return OK;
}

err runner_worker_read_covered(struct runner_worker *w, const char *prefix, uint64_t *ret_step,
                               struct covered *ret)
{
    struct arena arena = {0};
    struct bundle *bundle;
    TRY(bundle_open(prefix, &bundle));
    const err e = read_covered(w, bundle, &arena, ret_step, ret);
    bundle_close(bundle);
    arena_free(&arena);
    return e;
}

/* How the rows are shared from now on. */
struct new_share {
    struct data_share share;
    bool goes_on; /* the same rows, in the same order, each of which can be read at any time */
    struct ledger *ledger; /* [workers of the share] */
    uint64_t epoch, left;  /* where it begins; rows that are left out */
};

/* A push has no number of its worker's own where batches are handed out. */
static err go_on_from_queue(struct runner_worker *w, struct new_share *n)
{
    struct setup_plan *plan = &w->origin.plan;
    struct coverage *c = &plan->coverage;
    struct batch_queue before;
    TRY(open_queue(w, 1, &before));
    n->epoch = coverage_from_queue(c, &n->share, &before, plan->step, n->ledger, &n->left);
    batch_queue_free(&before);
    return data_share_is_queue(&n->share) ? hand_out_from(w, n->ledger[0].received) : OK;
}

static err go_on_from_shares(struct runner_worker *w, struct new_share *n)
{
    struct setup_plan *plan = &w->origin.plan;
    struct coverage *c = &plan->coverage;
    struct ledger *before;
    TRY(read_ledgers_before(w, &before));
    if (data_share_is_queue(&n->share)) {
        struct batch_queue queue;
        if (!batch_queue_open(&queue, workers_of(w), 1))
            return fail(ERR_MEMORY, "no memory for open batches");
        const bool has_all = coverage_to_queue(c, &n->share, before, &queue);
        if (has_all) hand_out(w, &queue);
        batch_queue_free(&queue);
        n->epoch = c->first;
        if (has_all) return OK;
    }
    n->epoch = coverage_go_on(c, &n->share, before, plan->step, n->ledger, &n->left);
    return data_share_is_queue(&n->share) ? hand_out_from(w, n->ledger[0].received) : OK;
}

/* With the next epoch. */
static err begin_anew(struct runner_worker *w, struct new_share *n)
{
    struct setup_plan *plan = &w->origin.plan;
    struct coverage *c = &plan->coverage;
    struct batch_queue before = {0};
    uint64_t behind, lost = c->lost;
    if (data_share_is_queue(&c->share)) {
        const struct data_share one = {c->share.rows, c->share.batch, 1, 1};
        struct ledger ledger;
        TRY(open_queue(w, 1, &before));
        coverage_from_queue(c, &one, &before, plan->step, &ledger, &behind);
        batch_queue_free(&before);
    }
    lost = c->lost - lost;
    n->epoch = coverage_begin_anew(c, &n->share, plan->step, n->ledger, &n->left);
    n->left += lost;
    return data_share_is_queue(&n->share) ? hand_out_from(w, n->ledger[0].received) : OK;
}

static err begin_share(struct runner_worker *w, struct new_share *n)
{
    if (!n->goes_on) return begin_anew(w, n);
    return data_share_is_queue(&w->origin.plan.coverage.share) ? go_on_from_queue(w, n)
                                                               : go_on_from_shares(w, n);
}

/* Of all ps the same, where the same pushes would be of other rows. */
static void set_ledgers(struct runner_worker *w, const struct new_share *n)
{
    struct origin *o = &w->origin;
    const struct ledger *all = data_share_is_queue(&n->share) ? o->ledgers[0] : n->ledger;
    for (int ps = 0; ps < w->task.peer_count; ps++) o->ledgers[ps] = all;
}

enum { SHARE_TEXT_MAX = 160 };
static const char *share_text(const struct data_share *s, char text[SHARE_TEXT_MAX])
{
    char rows[ROWS_TEXT_MAX];
    const unsigned long long workers = s->workers, batch = s->batch;
    if (data_share_is_queue(s))
        snprintf(text, SHARE_TEXT_MAX, "batches of %llu of %s for whoever comes", batch,
                 rows_text(s, rows));
    else
        snprintf(text, SHARE_TEXT_MAX,
                 "%llu worker%s with batches of %llu of %s and replicas_to_aggregate %llu", workers,
                 workers == 1 ? "" : "s", batch, rows_text(s, rows),
                 (unsigned long long)s->replicas);
    return text;
}

static void tell_share(const struct data_share *was, const struct new_share *n)
{
    char before[SHARE_TEXT_MAX], now[SHARE_TEXT_MAX];
    log_line(n->left ? LOG_WARNING : LOG_INFO,
             "the checkpoint is of %s, this run has %s: it continues with epoch %llu, %llu rows "
             "are left "
             "out",
             share_text(was, before), share_text(&n->share, now), (unsigned long long)n->epoch + 1,
             (unsigned long long)n->left);
}

/* What the checkpoint counts by is another order of rows, or they are of other files. */
static void tell_order(const struct new_share *n, bool is_same_data)
{
    log_line(LOG_WARNING,
             "%s since the checkpoint: the run continues with epoch %llu, %llu rows are left out",
             is_same_data ? "the order of the rows has changed (\"seed\" or \"shuffle\")"
                          : "the rows of data.train are others, or stand in another order,",
             (unsigned long long)n->epoch + 1, (unsigned long long)n->left);
}

/* Nobody brings the rest of them any more. */
static void leave_torn(struct runner_worker *w)
{
    struct torn_rows *torn = &w->hooks.rows.torn;
    w->origin.plan.coverage.lost += torn->lost;
    w->origin.plan.coverage.twice += torn->twice;
    *torn = (struct torn_rows){0};
}

static err share_anew(struct runner_worker *w, const struct data_share *share)
{
    struct origin *o = &w->origin;
    const struct data_share was = o->plan.coverage.share;
    const struct data_identity now = o->plan.data, before = identity_before(o);
    const bool is_same_data = !before.rows || !now.rows || before.rows == now.rows;
    const bool is_same_order = !before.rows || !now.rows || before.order == now.order;
    const bool is_one_order = batch_source_is_in_memory(w->session.data.train) ||
                              (data_share_is_queue(&was) && data_share_is_queue(share));
    struct new_share n = {
        .share = *share,
        .goes_on = is_same_data && is_same_order && was.rows == share->rows &&
                   share->rows != DATA_ROWS_ENDLESS && is_one_order,
        .ledger = arena_array(&o->arena, share->workers, sizeof *n.ledger),
    };
    struct covered before_it;
    TRY(count_before(w, &before_it));
    TRY(begin_share(w, &n));
    set_ledgers(w, &n);
    const uint64_t last_step = last_step_of(w);
    w->end.keeps_counts = last_step && o->plan.step >= last_step;
    if (w->end.keeps_counts) return tell_counts(w, &before_it);
    leave_torn(w);
    if ((is_same_data && is_same_order) || was.rows != share->rows)
        tell_share(&was, &n);
    else
        tell_order(&n, is_same_data);
    return OK;
}

/* Files that the checkpoint has no row of, of a run that trains day by day: nothing of them is in
 * the values, and nobody has pushed any. */
static err begin_day(struct runner_worker *w, bool *ret_begins)
{
    const struct spec *spec = w->options.spec;
    struct origin *o = &w->origin;
    *ret_begins = false;
    if (!spec->train.daily || !w->folder.checkpoints) return OK;
    const char *folder = checkpoints_directory(w->folder.checkpoints);
    struct day day;
    TRY(day_look(spec, folder, o->plan.step, &day));
    *ret_begins = day.begins != DAY_GOES_ON;
    if (!*ret_begins) return OK;
    /* in this order: a chief that dies in between finds that they are begun for the first time */
    if (day.begins == DAY_BEGINS) TRY(runner_worker_settings_begin_day(w));
    TRY(day_keep(folder, &day));
    if (!o->ledgers) return OK;
    struct ledger *none = arena_array(&o->arena, (size_t)workers_of(w), sizeof *none);
    for (int i = 0; i < workers_of(w); i++) none[i].taken_step = o->plan.step;
    for (int ps = 0; ps < w->task.peer_count; ps++) o->ledgers[ps] = none;
    return OK;
}

/* Of a checkpoint that tells of no rows, as of TensorFlow's, the ledger does. */
static err begin_counting(struct runner_worker *w, const struct data_share *share)
{
    struct origin *o = &w->origin;
    struct coverage *c = &o->plan.coverage;
    const bool is_one = data_share_is_queue(share);
    coverage_begin(c, share, o->ledgers && !is_one ? o->ledgers[0] : NULL);
    if (!is_one || !o->ledgers) return OK;
    for (int ps = 0; ps < w->task.peer_count; ps++) o->ledgers[ps] = o->ledgers[0];
    c->total = o->plan.step * share->batch;
    c->first = c->total / share->rows;
    return hand_out_from(w, o->plan.step);
}

static err count_from_first(struct runner_worker *w, const struct data_share *share)
{
    coverage_begin(&w->origin.plan.coverage, share, NULL);
    return w->origin.ledgers && data_share_is_queue(share) ? hand_out_from(w, 0) : OK;
}

/* The same rows are read in the same way. */
static bool is_as_before(const struct runner_worker *w, const struct data_share *share)
{
    const struct origin *o = &w->origin;
    const struct data_identity *now = &o->plan.data, before = identity_before(o);
    const bool is_known = before.rows && now->rows;
    return data_share_is_same(&o->plan.coverage.share, share) &&
           (!is_known || (before.rows == now->rows && before.order == now->order));
}

/* Notes pushes that only some ps have. With another number of ps nobody can bring them to the
 * others any more: each ps now has values of several. */
static err find_torn(struct runner_worker *w)
{
    struct origin *o = &w->origin;
    struct torn_rows torn;
    int ps;
    TRY(read_torn(o->bundle, &o->arena, &o->plan.coverage.share, &torn, &ps));
    runner_worker_note_torn(w, &torn);
    if (ps != w->session.layout->ps_count) leave_torn(w);
    return OK;
}

static err count_rows(struct runner_worker *w)
{
    struct origin *o = &w->origin;
    bool begins;
    TRY(begin_day(w, &begins));
    const struct data_share share = share_of(w);
    const bool is_known = o->ledgers && o->is_counted && o->plan.coverage.share.rows;
    o->plan.data = identity_of(w);
    o->plan.stretch = stretch_of(w);
    w->hooks.rows.torn = (struct torn_rows){0};
    if (!data_share_is_countable(&share)) {
        o->plan.coverage = (struct coverage){0};
        return OK;
    }
    if (begins) return count_from_first(w, &share);
    if (!is_known) return begin_counting(w, &share);
    TRY(find_torn(w));
    if (!is_as_before(w, &share)) return share_anew(w, &share);
    if (!data_share_is_queue(&share)) return OK;
    struct batch_queue queue;
    TRY(open_queue(w, workers_of(w), &queue));
    hand_out(w, &queue);
    batch_queue_free(&queue);
    return OK;
}

/* A server that does not answer says nothing of a checkpoint, and neither does a disk at first; one
 * that fails for long has damaged it. */
static bool is_away(const struct runner_worker *w, err e, const char *prefix)
{
    const uint64_t waited_ms = clock_ms() - w->origin.since_ms;
    return e == ERR_IO &&
           (path_is_url(prefix) || waited_ms < storage_wait_ms(prefix, &w->options.task.limits));
}

/* Is the checkpoint whole? An older one may be free of damage; what does not fit the spec does not
 * fit in an older one either. ERR_IO: it cannot be read now. */
static err find_damage(const struct runner_worker *w, const char *prefix, bool *ret_is_whole)
{
    struct bundle *bundle = NULL;
    err e = bundle_open(prefix, &bundle);
    if (!e) e = bundle_verify(bundle);
    bundle_close(bundle);
    *ret_is_whole = e == OK;
    return is_away(w, e, prefix) ? e : OK;
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
    if (is_whole) return "it is not damaged; -o OTHER_DIR starts over";
    if (!has_previous) return "there is none before it; -o OTHER_DIR starts over";
    return goes_on ? "continues from " : "--set train.on_corrupt=previous continues from ";
}

/* Goes on to the one before it, or ends the job. */
static err pass_over(struct runner_worker *w, const char *why, const char **prefix)
{
    struct origin *o = &w->origin;
    bool is_whole = false;
    if (*prefix) TRY(find_damage(w, *prefix, &is_whole));
    const char *previous = is_whole ? NULL : checkpoints_newest(w->folder.checkpoints, o->bad + 1);
    const bool goes_on =
        w->options.spec->train.checkpoint.on_corrupt == CORRUPT_PREVIOUS && previous;
    err e = bad_checkpoint(*prefix ? *prefix : "the checkpoint", why,
                           outlook_of(is_whole, previous != NULL, goes_on), previous);
    if (!goes_on) return e;
    log_line(LOG_WARNING, "%s", error_text());
    *prefix = previous;
    o->bad++;
    return OK;
}

/* The newest checkpoint that can be opened, of those that have not proved bad. why: why the newest
 * of these has; "" once it is passed over. */
static err choose_checkpoint(struct runner_worker *w, char why[ERROR_TEXT_MAX])
{
    struct origin *o = &w->origin;
    for (;;) { /* ends: each turn passes over one more of those that there are */
        const char *prefix = checkpoints_newest(w->folder.checkpoints, o->bad);
        if (why[0]) TRY(pass_over(w, why, &prefix));
        why[0] = '\0';
        if (!prefix) return OK;
        err e = open_checkpoint(w, prefix);
        if ((e != ERR_INPUT && e != ERR_IO) || is_away(w, e, prefix)) return e;
        snprintf(why, ERROR_TEXT_MAX, "%s", error_text());
    }
}

static err look_into_folder(struct runner_worker *w)
{
    if (!w->folder.checkpoints) return OK;
    runner_worker_end_files(w);
    TRY(checkpoints_own(w->folder.checkpoints, w->folder.token, w->options.task.cluster->resizes,
                        clock_unix_s()));
    TRY(choose_checkpoint(w, w->origin.why_bad));
    return runner_worker_settings_choose(w, w->origin.plan.step);
}

/* ---- another run's values ---- */

/* They go with SETUP, before any array; one that is skipped is as it begins. */
static err read_warm_powers(struct runner_worker *w)
{
    struct origin *o = &w->origin;
    struct shard shard;
    describe_shard(w, 0, &shard);
    shard.slot_count = shard.workers = 0;
    shard.ledger = arena_array(&o->arena, LEDGER_COLUMNS, sizeof *shard.ledger);
    optimizers_powers(optimizers_of(w), shard.powers);
    TRY(shard_read(o->bundle, &o->warm.how, &shard));
    for (int i = 0; i < shard.power_count; i++) o->powers[i] = shard.powers[i];
    o->plan.powers = o->powers;
    o->plan.power_count = shard.power_count;
    return OK;
}

/* A ps may have been started elsewhere. */
static const char *absolute(const char *path, struct arena *arena)
{
    char *whole = path_from_here(path);
    const char *kept = arena_string(arena, whole ? whole : path);
    free(whole);
    return kept;
}

static err open_warm_start(struct runner_worker *w)
{
    struct origin *o = &w->origin;
    const struct warm_start_spec *warm = &w->options.spec->train.warm_start;
    char prefix[CHECKPOINT_PATH_MAX];
    err e = checkpoint_find(warm->checkpoint, prefix);
    if (!e) e = bundle_open(prefix, &o->bundle);
    if (!e) e = session_plan_warm_start(&w->session, o->bundle, &o->arena, &o->warm);
    if (!e && warm->slots) e = read_warm_powers(w);
    if (e) return fail_prefix(e, "train.warm_start");
    warm_start_log(&o->warm, prefix);
    o->plan.warm = &o->warm.how;
    o->plan.warm_from = absolute(prefix, &o->arena);
    o->plan.arrays = warm->slots ? 1 + optimizers_of(w)->slot_count : 1;
    return OK;
}

/* ---- the choice ---- */

/* Of a job that was resized. */
static void note_mean(const struct runner_worker *w)
{
    const struct spec *spec = w->options.spec;
    const long long gradients = spec_replicas(spec, workers_of(w));
    if (!w->options.task.cluster->resizes || spec->train.mode != MODE_SYNC) return;
    log_line(LOG_INFO, "from here on a step is the mean of %lld gradient%s of %d worker%s",
             gradients, gradients == 1 ? "" : "s", workers_of(w), workers_of(w) == 1 ? "" : "s");
}

/* What is known of the checkpoints stays where the folder is looked into once more. */
static void begin_choice(struct runner_worker *w, const struct action_choose *a)
{
    struct origin *o = &w->origin;
    const bool is_again = w->folder.jobs.looks > 0;
    const int bad = a->why_again[0] || is_again ? o->bad : 0;
    const uint64_t since_ms = is_again ? o->since_ms : clock_ms();
    char why[ERROR_TEXT_MAX];
    snprintf(why, sizeof why, "%s", is_again && !a->why_again[0] ? o->why_bad : a->why_again);
    runner_worker_origin_close(w);
    o->bad = bad;
    w->end.keeps_counts = false;
    o->since_ms = since_ms;
    o->plan.arrays = 1;
    snprintf(o->why_bad, sizeof o->why_bad, "%s", why);
}

static err choose(struct runner_worker *w, const struct action_choose *a)
{
    const struct origin *o = &w->origin;
    if (o->plan.restore) {
        log_line(LOG_INFO, "begins from %s, step %llu", o->plan.restore,
                 (unsigned long long)o->plan.step);
        return OK;
    }
    if (a->generation && !w->folder.checkpoints)
        return fail(ERR_PEER, "a ps has lost its values, and there is no checkpoint to go back to: "
                              "set train.checkpoint_dir");
    return w->options.spec->train.warm_start.checkpoint ? open_warm_start(w) : OK;
}

/* That of the newest one, where that is this task's own. */
static uint64_t snapshot_of(const struct runner_worker *w, const char *restore)
{
    const bool is_own = restore && w->saving.own_step == (uint64_t)checkpoint_step(restore);
    return is_own ? w->saving.own_tag : 0;
}

/* Of a folder that is still being opened, or does not answer, the role hears when it is open, and
 * asks again. */
void runner_worker_choose(struct runner_worker *w, const struct action_choose *a)
{
    if (w->folder.jobs.opening.is_running) return;
    begin_choice(w, a);
    err e = look_into_folder(w);
    if (e && runner_worker_looks_again(w, &e)) return;
    w->folder.jobs.looks = 0;
    if (!e) e = choose(w, a);
    if (!e) e = count_rows(w);
    if (!e && !w->end.keeps_counts) e = tell_origin(w);
    struct choice choice = {.result = e};
    w->has_chosen = true;
    struct setup_plan *plan = &w->origin.plan;
    choice.text = choice.result ? error_text() : "";
    choice.generation = greeting_draw_incarnation();
    choice.step = plan->step;
    choice.is_saved = plan->restore != NULL;
    choice.arrays = plan->arrays;
    if (!e) find_last_step(w);
    if (!e) note_mean(w);
    plan->spec = w->options.spec;
    plan->layout = w->session.layout;
    plan->workers = workers_of(w);
    plan->wire = w->task.wire;
    plan->wire_values = w->task.wire_values;
    plan->last_step = (int64_t)w->end.step;
    plan->generation = choice.generation;
    plan->rates.factor = settings_rate_factor(&w->folder.set.kept, w->options.spec);
    plan->rates.steps_per_epoch =
        spec_steps_per_epoch(w->options.spec, w->session.data.train->rows, workers_of(w));
    plan->directory = w->folder.directory[0] ? w->folder.directory : NULL;
    plan->from.resumes = a->generation != 0;
    plan->from.set_in = runner_worker_settings_generation(w);
    plan->from.snapshot = snapshot_of(w, plan->restore);
    plan->token = w->folder.token;
    plan->resizes = w->folder.checkpoints ? checkpoints_resizes(w->folder.checkpoints) : 0;
    worker_role_chosen(w->task.role, &choice, &w->task.outbox);
}

err runner_worker_describe(struct runner_worker *w, int ps)
{
    struct origin *o = &w->origin;
    o->plan.ledger = o->ledgers ? o->ledgers[ps] : NULL;
    w->saving.is_looked_for = true;
    const struct message m = {
        .type = MESSAGE_SETUP,
        .job = JOB_WORKER,
        .task = (uint32_t)w->task.index,
        .generation = o->plan.generation,
    };
    return send_text(w, ps, m, setup_write(&o->plan, ps));
}

/* ---- what a ps does not read for itself ---- */

static err allocate_arrays(struct runner_worker *w, int ps)
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

/* Another run's are not taken over: they begin at the values. */
static void begin_averages(struct origin *o, const struct shard *shard)
{
    for (int i = 0; i < shard->slice_count; i++) {
        const struct slice *slice = &shard->slices[i];
        if (shard->optimizer_of[i] == OPTIMIZER_NONE) continue;
        const struct slot_names *names = &shard->slot_names[shard->optimizer_of[i]];
        if (names->is_averaged && names->count + 1 < o->plan.arrays)
            memcpy(o->arrays[1 + names->count] + slice->offset, o->arrays[0] + slice->offset,
                   (size_t)slice->count * sizeof(float));
    }
}

static err read_arrays(struct runner_worker *w, int ps)
{
    struct origin *o = &w->origin;
    struct shard shard;
    describe_shard(w, ps, &shard);
    if (o->plan.arrays == 1) shard.slot_count = 0;
    shard.values = o->arrays[0];
    for (int i = 0; i < shard.slot_count; i++) shard.slots[i] = o->arrays[i + 1];
    shard.slice_count = setup_slices(w->session.layout, ps, &o->arena, &shard.slices);
    TRY(optimizers_of_slices(optimizers_of(w), shard.slices, shard.slice_count, &o->arena,
                             &shard.optimizer_of));
    for (int i = 0; i < shard.slice_count; i++)
        if (shard.optimizer_of[i] != OPTIMIZER_NONE)
            initial_slots(o, &shard.slices[i], &optimizers_of(w)->at[shard.optimizer_of[i]]);
    shard.ledger =
        arena_array(&o->arena, (size_t)shard.workers * LEDGER_COLUMNS, sizeof *shard.ledger);
    TRY(shard_read(o->bundle, o->plan.restore ? NULL : &o->warm.how, &shard));
    if (!o->plan.restore) begin_averages(o, &shard);
    return OK;
}

static err begin_filling(struct runner_worker *w, int ps)
{
    forget_arrays(&w->origin);
    TRY(allocate_arrays(w, ps));
    const int home = layout_home(w->session.layout, ps);
    if (!w->origin.plan.restore)
        TRY(session_initial_values(&w->session, home, w->origin.arrays[0]));
    return read_arrays(w, ps);
}

/* Values travel where gradients will. The arrays of one ps are held at a time: where another one
 * asks in between, they are read once more, so that the chief need not have room for all. */
err runner_worker_fill(struct runner_worker *w, int ps, int array)
{
    struct origin *o = &w->origin;
    uint64_t bytes = runner_worker_block_bytes(w, ps);
    if (!bytes) return OK;
    float *const window = w->incoming.windows[ps].gradients;
    const bool is_bound = runner_worker_bound(w, ps) == ps;
    if (!window) return fail(ERR_PROTOCOL, "ps/%d shared no windows", ps);
    if (!o->bundle && is_bound) return session_put_initial_values(&w->session, ps);
    if (!o->bundle)
        return session_initial_values(&w->session, layout_home(w->session.layout, ps), window);
    if (array == 0 || o->filling != ps) TRY(begin_filling(w, ps));
    if (is_bound)
        session_put_gradients(&w->session, ps, o->arrays[array]);
    else
        memcpy(window, o->arrays[array], bytes);
    if (array + 1 == o->plan.arrays) forget_arrays(o);
    return OK;
}
