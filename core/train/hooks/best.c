/* best.c - see best.h. */
#include "core/train/hooks/best.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/log.h"
#include "core/train/hooks/best_keeper.h"
#include "core/train/hooks/early_stopping.h"
#include "core/train/hooks/values.h"
#include "core/train/spec/day.h"

struct best {
    struct best_keeper keeper;
    int value; /* index for evaluation_value() */
    bool restores, knows_day;
    char newest[CHECKPOINT_PATH_MAX]; /* checkpoint; "": none yet */
    uint64_t newest_step;
    struct best_checkpoint alone; /* the newest evaluation without a checkpoint of the same step */
    bool has_alone;
    struct {
        bool is_open, is_saved, is_evaluated;
        char prefix[CHECKPOINT_PATH_MAX];
        double value;
    } pair;
    bool has_missed;
    struct best_checkpoint missed; /* the best evaluation of values that could not be saved */
};

static const struct best_checkpoints *kept_by(const struct best *b)
{
    return &b->keeper.kept;
}

err best_find_metric(const struct run_view *view, int *ret)
{
    const char *metric = view->spec->train.evaluation.best_metric, *names[HOOK_VALUES_MAX];
    if (!metric) metric = early_stopping_metric(view->spec);
    if (!metric) metric = "loss";
    const struct name_list list = {names, evaluation_names(view->session, names),
                                   "train.best_metric", "metric"};
    return hook_name_find(&list, metric, ret);
}

static err open_kept(const struct run_view *view, struct best *b)
{
    const struct train_spec *train = &view->spec->train;
    const char *names[HOOK_VALUES_MAX];
    TRY(best_find_metric(view, &b->value));
    evaluation_names(view->session, names);
    b->restores = train->evaluation.restore_best;
    best_keeper_open(&b->keeper, view->checkpoint_dir);
    return best_checkpoints_open(&b->keeper.kept, view->checkpoint_dir, names[b->value],
                                 evaluation_better(view->session, b->value),
                                 (int)train->evaluation.keep_best);
}

err best_open(const struct run_view *view, struct best **ret)
{
    *ret = NULL;
    if (!view->spec->train.evaluation.keep_best || !view->checkpoint_dir) return OK;
    struct best *b = calloc(1, sizeof *b);
    if (!b) return fail(ERR_MEMORY, "no memory for the best checkpoints");
    const err e = open_kept(view, b);
    if (e) {
        best_close(b);
        return e;
    }
    *ret = b;
    return OK;
}

void best_close(struct best *b)
{
    if (b) best_keeper_close(&b->keeper);
    free(b);
}

/* train.daily: evaluations of different days are not compared, for each day's files may come with
 * other evaluation data (data.eval). Nothing is compared until the step with which the present day
 * began is known. */
static err know_day(struct best *b, const struct run_view *view)
{
    int64_t step;
    if (!view->spec->train.daily || b->knows_day) return OK;
    TRY(day_step(view->checkpoint_dir, &step));
    b->knows_day = true;
    best_checkpoints_begin(&b->keeper.kept, step);
    return OK;
}

err best_adopted(struct best *b, const struct run_view *view, bool is_first)
{
    b->pair.is_open = b->has_alone = b->knows_day = false;
    const err e = know_day(b, view);
    if (e == ERR_IO)
        log_line(LOG_WARNING, "keep_best: %s; tries again with the next one", error_text());
    else if (e)
        return e;
    if (!is_first || view->global_step || !kept_by(b)->count) return OK;
    return fail(ERR_INPUT,
                "%s has the best checkpoints of another run, and this one starts over at step 0: "
                "move it away",
                kept_by(b)->folder);
}

static void set_path(char ret[CHECKPOINT_PATH_MAX], const char *prefix)
{
    snprintf(ret, CHECKPOINT_PATH_MAX, "%s", prefix);
}

/* If a checkpoint has just the values that this step began from, no other one is asked for. */
void best_begun(struct best *b, const struct run_view *view)
{
    b->pair.is_open = true;
    b->pair.is_evaluated = false;
    b->pair.is_saved = b->newest[0] && b->newest_step + 1 == view->global_step;
    if (b->pair.is_saved) set_path(b->pair.prefix, b->newest);
}

static struct best_checkpoint entry_of(const struct best *b, const struct run_view *view,
                                       const struct evaluation *e)
{
    return (struct best_checkpoint){.step = (int64_t)view->global_step,
                                    .value = evaluation_value(e, b->value)};
}

static void note_missed(struct best *b, struct best_checkpoint entry)
{
    if (!b->has_missed || better_is(kept_by(b)->better, entry.value, b->missed.value))
        b->missed = entry;
    b->has_missed = true;
}

bool best_missed(struct best *b, const struct run_view *view, const struct evaluation *e)
{
    const struct best_checkpoint entry = entry_of(b, view, e);
    if (e->rows == 0 || !best_checkpoints_wants(kept_by(b), entry.value)) return false;
    note_missed(b, entry);
    return true;
}

/* Explains a better number in the log than that of the best checkpoint. */
static void warn_of_missed(const struct best *b)
{
    const struct best_checkpoints *kept = kept_by(b);
    const bool is_better =
        b->has_missed &&
        (!kept->count || better_is(kept->better, b->missed.value, kept->at[0].value));
    if (is_better)
        log_line(LOG_WARNING,
                 "keep_best: %s %.6g at step %" PRId64 " was better than any that is kept, and was "
                 "not saved, as another checkpoint was being written: evaluate less often",
                 kept->metric, b->missed.value, b->missed.step);
}

static err offer(struct best *b, const struct run_view *view, const char *prefix, double value)
{
    struct best_offer offer = {.entry = {.step = checkpoint_step(prefix), .value = value}};
    if (offer.entry.step < 0) return OK;
    TRY(know_day(b, view));
    set_path(offer.prefix, prefix);
    return best_keeper_offer(&b->keeper, &offer);
}

static err keep_pair(struct best *b, const struct run_view *view)
{
    if (!b->pair.is_open || !b->pair.is_saved || !b->pair.is_evaluated) return OK;
    b->pair.is_open = false;
    return offer(b, view, b->pair.prefix, b->pair.value);
}

static err keep_alone(struct best *b, const struct run_view *view)
{
    if (!b->has_alone || !b->newest[0] || b->newest_step != (uint64_t)b->alone.step) return OK;
    b->has_alone = false;
    return offer(b, view, b->newest, b->alone.value);
}

err best_saved(struct best *b, const struct run_view *view, const char *prefix)
{
    const bool is_usable = prefix && strlen(prefix) < sizeof b->newest;
    const bool is_awaited = b->pair.is_open && !b->pair.is_saved;
    if (!is_usable) {
        b->pair.is_open &= !is_awaited; /* it failed */
        return OK;
    }
    set_path(b->newest, prefix);
    b->newest_step = view->global_step;
    TRY(keep_alone(b, view));
    if (!is_awaited) return OK;
    set_path(b->pair.prefix, prefix);
    b->pair.is_saved = true;
    return keep_pair(b, view);
}

/* The last checkpoint may have been written before this process was restarted. */
static void find_last(struct best *b, const struct run_view *view)
{
    char found[CHECKPOINT_PATH_MAX];
    if (b->newest[0] && b->newest_step == view->global_step) return;
    if (checkpoint_find(view->checkpoint_dir, found) || checkpoint_step(found) < 0) return;
    set_path(b->newest, found);
    b->newest_step = (uint64_t)checkpoint_step(found);
}

/* An error, where other failures of hooks to write are warnings: otherwise the last checkpoint
 * would be taken for the best one. */
static err restore(const struct best *b, const struct run_view *view)
{
    char prefix[CHECKPOINT_PATH_MAX];
    const struct best_checkpoints *kept = kept_by(b);
    const struct best_checkpoint *first = &kept->at[0];
    if (!kept->count || !view->asks->restore) {
        log_line(LOG_WARNING, "restore_best: no evaluation of a checkpoint gave a number: the last "
                              "values stay");
        return OK;
    }
    if ((uint64_t)first->step == view->global_step) {
        log_line(LOG_INFO, "restore_best: the last checkpoint is the best, %s %.6g", kept->metric,
                 first->value);
        return OK;
    }
    TRY(best_checkpoints_prefix(kept, first->step, prefix));
    if (view->asks->restore(view->asker, prefix))
        return fail(ERR_MEMORY, "restore_best: %s", error_text());
    log_line(LOG_INFO,
             "restore_best: the last checkpoint, of step %" PRIu64
             ", has the values of the best now: %s %.6g at step %" PRId64,
             view->global_step, kept->metric, first->value, first->step);
    return OK;
}

static err take(struct best *b, const struct run_view *view, const struct evaluation *e,
                enum best_kind kind)
{
    const struct best_checkpoint entry = entry_of(b, view, e);
    if (kind == BEST_OF_PAIR) {
        b->pair.value = entry.value;
        b->pair.is_evaluated = true;
        return keep_pair(b, view);
    }
    b->alone = entry;
    b->has_alone = true;
    return keep_alone(b, view);
}

err best_evaluated(struct best *b, const struct run_view *view, const struct evaluation *e,
                   enum best_kind kind)
{
    if (kind == BEST_LAST) find_last(b, view);
    const err taken = take(b, view, e, kind);
    if (kind != BEST_LAST) return taken;
    const err waited = best_keeper_wait(&b->keeper);
    warn_of_missed(b);
    const err last = b->restores ? restore(b, view) : taken;
    return last ? last : waited;
}
