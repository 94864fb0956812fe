/* early_stopping.c - ends training that no longer improves: TensorFlow's stop_if_no_decrease_hook
 * and stop_if_no_increase_hook.
 *
 * It looks at evaluations and counts global steps. Stopping is an ordinary end: the last checkpoint
 * is written and the exit code is 0.
 */
#include "core/train/hooks/early_stopping.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "core/base/log.h"
#include "core/train/hooks/values.h"

enum { MODE_AUTO = BETTER_NEAR_ONE }; /* the modes before it are those of enum better */

struct early_stopping {
    const char *metric; /* "loss" or a metric, of the evaluation */
    int mode;           /* BETTER_LESS, BETTER_MORE, or MODE_AUTO: as the metric says */
    int64_t max_steps;
    int64_t min_steps;
};

extern const struct hook hook_early_stopping;

struct state {
    const struct early_stopping *attributes;
    int metric; /* index for evaluation_value() */
    enum better better;
    bool has_best, has_stopped;
    double best;
    uint64_t best_step;
};

static const char *const mode_names[] = {
    [BETTER_LESS] = "decrease", [BETTER_MORE] = "increase", [MODE_AUTO] = "auto", NULL};
static const char *const better_words[] = {
    [BETTER_LESS] = "decrease", [BETTER_MORE] = "increase", [BETTER_NEAR_ONE] = "approach to 1"};

static const struct field fields[] = {
    FIELD_OF("metric", STRING, struct early_stopping, metric, .fallback = "\"loss\"",
             .help = "loss or a metric, of the evaluation"),
    FIELD_OF("mode", ENUM, struct early_stopping, mode, .fallback = "\"auto\"",
             .choices = mode_names,
             .help = "what counts as better; auto: lower for the loss and errors, higher for most "
                     "metrics, closer to 1 for calibration"),
    FIELD_OF("max_steps_without_decrease", INT, struct early_stopping, max_steps, .min = 1,
             .max = STEPS_MAX, .help = "global steps without a new best after which training ends"),
    FIELD_OF("min_steps", INT, struct early_stopping, min_steps, .fallback = "0", .min = 0,
             .max = STEPS_MAX, .help = "evaluations before this global step are ignored"),
    {0},
};

const char *early_stopping_metric(const struct spec *spec)
{
    const struct variant *list = spec->train.hooks.at;
    for (int i = 0; i < spec->train.hooks.count; i++) {
        const struct early_stopping *a = list[i].attributes;
        if (list[i].kind->descriptor == &hook_early_stopping) return a->metric;
    }
    return NULL;
}

/* Without evaluations it would never stop anything, and nobody would notice. */
static err check(const void *attributes, const struct spec *spec)
{
    if (hooks_evaluate_while_training(spec)) return OK;
    return fail(ERR_INPUT, "needs evaluations while training: set train.evaluate_every_steps or "
                           "train.evaluate_every_secs");
}

static err find_metric(const struct early_stopping *a, const struct run_view *view, int *ret)
{
    const char *names[HOOK_VALUES_MAX];
    const int count = evaluation_names(view->session, names);
    const struct name_list list = {names, count, "metric", "metric"};
    return hook_name_find(&list, a->metric, ret);
}

static err check_names(const void *attributes, const struct run_view *view)
{
    int metric;
    return find_metric(attributes, view, &metric);
}

static err begin(void *state, const void *attributes, const struct run_view *view)
{
    struct state *s = state;
    s->attributes = attributes;
    TRY(find_metric(s->attributes, view, &s->metric));
    s->better = s->attributes->mode == MODE_AUTO ? evaluation_better(view->session, s->metric)
                                                 : (enum better)s->attributes->mode;
    return OK;
}

/* A best step beyond the present one was undone by a recovery. */
static err adopted(void *state, const struct run_view *view, const struct occasion *o)
{
    struct state *s = state;
    if (view->global_step < s->best_step) s->has_best = false;
    return OK;
}

/* Equal is not better; NaN is better than having no value yet. An undefined metric is skipped. */
static bool is_better(const struct state *s, double value)
{
    if (!s->has_best) return true;
    if (isnan(s->best)) return !isnan(value);
    return better_is(s->better, value, s->best);
}

/* Logged once: steps under way may still bring evaluations. */
static void stop(struct state *s, const struct run_view *view)
{
    const struct early_stopping *a = s->attributes;
    char why[ERROR_TEXT_MAX];
    snprintf(why, sizeof why,
             "no %s of %.64s for %" PRIu64 " steps: the best is %.6g of step %" PRIu64,
             better_words[s->better], a->metric, view->global_step - s->best_step, s->best,
             s->best_step);
    log_line(LOG_INFO, "%s; training is stopped", why);
    s->has_stopped = true;
    view->asks->stop(view->asker, OK, why);
}

static err evaluated(void *state, const struct run_view *view, const struct occasion *o)
{
    struct state *s = state;
    const struct evaluation *evaluation = o->evaluated.evaluation;
    const uint64_t step = view->global_step;
    if (evaluation->rows == 0 || s->has_stopped || step < (uint64_t)s->attributes->min_steps)
        return OK;
    const double value = evaluation_value(evaluation, s->metric);
    if (metric_undefined_text(value)) return OK;
    if (is_better(s, value)) {
        s->has_best = true;
        s->best = value;
        s->best_step = step;
    } else if (step >= s->best_step + (uint64_t)s->attributes->max_steps) {
        stop(s, view);
    }
    return OK;
}

const struct hook hook_early_stopping = {
    .object = {.name = "early_stopping",
               .summary = "ends training when evaluations stop improving",
               .fields = fields,
               .size = sizeof(struct early_stopping)},
    .state_bytes = sizeof(struct state),
    .check = check,
    .check_names = check_names,
    .begin = begin,
    .on = {[OCCASION_ADOPTED] = adopted, [OCCASION_EVALUATED] = evaluated},
};
