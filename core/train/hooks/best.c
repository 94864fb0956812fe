/* best.c - see best.h. */
#include "core/train/hooks/best.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/log.h"
#include "core/train/checkpoint/best_checkpoints.h"
#include "core/train/hooks/early_stopping.h"
#include "core/train/hooks/values.h"

struct best {
    struct best_checkpoints kept;
    int value; /* index for evaluation_value() */
    bool restores;
    bool is_saved, is_evaluated; /* there is one that has not met its other half */
    char prefix[CHECKPOINT_PATH_MAX];
    uint64_t saved_step;
    struct best_checkpoint evaluated;
    bool has_missed;
    struct best_checkpoint missed; /* the best evaluation of values that could not be saved */
};

static err open_kept(const struct run_view *view, struct best *b)
{
    const struct train_spec *train = &view->spec->train;
    const char *metric = train->best_metric, *names[HOOK_VALUES_MAX];
    if (!metric) metric = early_stopping_metric(view->spec);
    if (!metric) metric = "loss";
    const struct name_list list = {names, evaluation_names(view->session, names),
                                   "train.best_metric", "metric"};
    TRY(hook_name_find(&list, metric, &b->value));
    b->restores = train->restore_best;
    return best_checkpoints_open(&b->kept, view->checkpoint_dir, names[b->value],
                                 evaluation_better(view->session, b->value), (int)train->keep_best);
}

err best_open(const struct run_view *view, struct best **ret)
{
    *ret = NULL;
    if (!view->spec->train.keep_best || !view->checkpoint_dir) return OK;
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
    free(b);
}

err best_begin(struct best *b, const struct run_view *view)
{
    if (view->global_step || !b->kept.count) return OK;
    return fail(ERR_INPUT,
                "%s has the best checkpoints of another run, and this one starts over at step 0: "
                "move it away",
                b->kept.folder);
}

static struct best_checkpoint entry_of(const struct best *b, const struct run_view *view,
                                       const struct evaluation *e)
{
    return (struct best_checkpoint){.step = (int64_t)view->global_step,
                                    .value = evaluation_value(e, b->value)};
}

bool best_missed(struct best *b, const struct run_view *view, const struct evaluation *e)
{
    const struct best_checkpoint entry = entry_of(b, view, e);
    if (e->rows == 0 || !best_checkpoints_wants(&b->kept, entry.value)) return false;
    if (!b->has_missed || better_is(b->kept.better, entry.value, b->missed.value))
        b->missed = entry;
    b->has_missed = true;
    return true;
}

/* So that nobody wonders why a better line of the log is not the best. */
static void warn_of_missed(const struct best *b)
{
    const bool is_better =
        b->has_missed &&
        (!b->kept.count || better_is(b->kept.better, b->missed.value, b->kept.at[0].value));
    if (is_better)
        log_line(LOG_WARNING,
                 "keep_best: %s %.6g at step %" PRId64 " was better than any that is kept, and was "
                 "not saved, as another checkpoint was being written: evaluate less often",
                 b->kept.metric, b->missed.value, b->missed.step);
}

/* The two halves, where they are of one step. */
static err keep(struct best *b, const struct run_view *view)
{
    const bool is_pair =
        b->is_saved && b->is_evaluated && b->saved_step == (uint64_t)b->evaluated.step;
    if (!is_pair) return OK;
    b->is_saved = b->is_evaluated = false;
    TRY(best_checkpoints_offer(&b->kept, b->prefix, &b->evaluated));
    return b->kept.count ? spec_copy_measured(view->checkpoint_dir, b->kept.folder) : OK;
}

err best_saved(struct best *b, const struct run_view *view, const char *prefix)
{
    if (!prefix || strlen(prefix) >= sizeof b->prefix) return OK; /* it failed */
    snprintf(b->prefix, sizeof b->prefix, "%s", prefix);
    b->saved_step = view->global_step;
    b->is_saved = true;
    return keep(b, view);
}

/* The last checkpoint may be one that another life has written. */
static void find_last(struct best *b, const struct run_view *view)
{
    if (b->is_saved && b->saved_step == view->global_step) return;
    if (checkpoint_find(view->checkpoint_dir, b->prefix)) return;
    const int64_t step = checkpoint_step(b->prefix);
    b->is_saved = step >= 0;
    b->saved_step = (uint64_t)step;
}

/* Not a warning, as what hooks cannot write is otherwise: whoever takes the last checkpoint must
 * not take it for the best. */
static err restore(const struct best *b, const struct run_view *view)
{
    char prefix[CHECKPOINT_PATH_MAX];
    const struct best_checkpoint *first = &b->kept.at[0];
    if (!b->kept.count || !view->asks->restore) {
        log_line(LOG_WARNING, "restore_best: no evaluation of a checkpoint gave a number: the last "
                              "values stay");
        return OK;
    }
    if ((uint64_t)first->step == view->global_step) {
        log_line(LOG_INFO, "restore_best: the last checkpoint is the best, %s %.6g", b->kept.metric,
                 first->value);
        return OK;
    }
    TRY(best_checkpoints_prefix(&b->kept, first->step, prefix));
    if (view->asks->restore(view->asker, prefix))
        return fail(ERR_MEMORY, "restore_best: %s", error_text());
    log_line(LOG_INFO,
             "restore_best: the last checkpoint, of step %" PRIu64
             ", has the values of the best now: %s %.6g at step %" PRId64,
             view->global_step, b->kept.metric, first->value, first->step);
    return OK;
}

err best_evaluated(struct best *b, const struct run_view *view, const struct evaluation *e,
                   bool is_last)
{
    b->evaluated = entry_of(b, view, e);
    b->is_evaluated = true;
    if (is_last) find_last(b, view);
    const err kept = keep(b, view);
    if (is_last) warn_of_missed(b);
    return is_last && b->restores ? restore(b, view) : kept;
}
