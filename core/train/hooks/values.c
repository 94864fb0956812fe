/* values.c - see values.h. */
#include "core/train/hooks/values.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { TAG_MAX = 128 };
enum { VALUE_STEP, VALUE_NORM, VALUE_RATE, VALUE_LOSS, VALUE_PUSH, VALUE_STALENESS, VALUE_METRICS };

/* Sorted: shown in this order if the spec names none. */
static const char *const plain_names[VALUE_METRICS] = {
    [VALUE_STEP] = "global_step", [VALUE_NORM] = "gradient_norm", [VALUE_RATE] = "learning_rate",
    [VALUE_LOSS] = "loss",        [VALUE_PUSH] = "push_seconds",  [VALUE_STALENESS] = "staleness",
};

/* Appends the metrics; a spec has fewer of them than there is room for. */
static int add_metrics(const struct session *session, int count, const char *names[HOOK_VALUES_MAX])
{
    const struct graph *graph = session->graph;
    for (int i = 0; i < graph->metric_count && count < HOOK_VALUES_MAX; i++)
        names[count++] = graph->metrics[i].name;
    return count;
}

int hook_value_names(const struct run_view *view, const char *ret_names[HOOK_VALUES_MAX])
{
    memcpy(ret_names, plain_names, sizeof plain_names);
    return add_metrics(view->session, VALUE_METRICS, ret_names);
}

double hook_value(const struct run_view *view, int index)
{
    switch (index) {
    case VALUE_STEP:
        return (double)view->global_step;
    case VALUE_NORM:
        return view->gradient_norm;
    case VALUE_RATE:
        return view->learning_rate;
    case VALUE_LOSS:
        return view->loss;
    case VALUE_PUSH:
        return view->push_seconds;
    case VALUE_STALENESS:
        return (double)view->staleness;
    default:
        return session_metric(view->session, index - VALUE_METRICS);
    }
}

/* In creation order whatever the placement, like clipping by global_norm. */
double hook_gradient_norm(const struct run_view *view)
{
    if (view->gradient_norm != 0) return view->gradient_norm;
    const struct session *s = view->session;
    const int count = session_list_gradients(s, -1);
    return gradients_norm(s->options.device, s->clip.gradients, s->clip.sizes, count);
}

int evaluation_names(const struct session *session, const char *ret_names[HOOK_VALUES_MAX])
{
    ret_names[0] = plain_names[VALUE_LOSS];
    return add_metrics(session, 1, ret_names);
}

/* 0: the loss; others: metrics in the spec's order. */
double evaluation_value(const struct evaluation *evaluation, int index)
{
    return index == 0 ? evaluation->loss : evaluation->metrics[index - 1];
}

enum better evaluation_better(const struct session *session, int index)
{
    return index == 0 ? BETTER_LESS : session->graph->metrics[index - 1].metric->better;
}

static void record_curve(const struct metric_node *m, const float *curve, struct events *events)
{
    char tag[TAG_MAX];
    snprintf(tag, sizeof tag, "%.100s/pr_curve", m->name);
    events_pr_curve(events, tag, curve, m->metric->thresholds(m));
}

err evaluation_record(const struct session *session, const struct evaluation *e,
                      struct events *events, double wall_s, uint64_t step)
{
    const struct graph *graph = session->graph;
    const char *names[HOOK_VALUES_MAX];
    const int count = evaluation_names(session, names);
    events_begin_step(events, wall_s, step);
    for (int i = 0; i < count; i++) events_scalar(events, names[i], evaluation_value(e, i));
    const struct loss_node *drawn = NULL;
    for (int i = 0; e->curves && i < graph->metric_count; i++) {
        const struct metric_node *m = &graph->metrics[i];
        if (!e->curves[i] || m->loss == drawn) continue; /* that head has its curve */
        record_curve(m, e->curves[i], events);
        drawn = m->loss;
    }
    TRY(events_end_step(events));
    return events_flush(events);
}

/* Four decimals are enough around 1; other numbers get six digits. */
const char *value_text(double value, char text[VALUE_TEXT_MAX])
{
    const double size = fabs(value);
    const bool is_plain = size == 0 || (size >= 0.001 && size < 100);
    const char *const why = metric_undefined_text(value);
    if (why)
        snprintf(text, VALUE_TEXT_MAX, "undefined: %s", why);
    else if (isnan(value))
        snprintf(text, VALUE_TEXT_MAX, "nan");
    else
        snprintf(text, VALUE_TEXT_MAX, is_plain ? "%.4f" : size < 1 ? "%.3g" : "%.6g", value);
    return text;
}

err evaluation_check(const struct evaluation *evaluation)
{
    if (!evaluation->rows || isfinite(evaluation->loss)) return OK;
    return fail(ERR_NUMBER, "the loss is %s",
                isnan(evaluation->loss) ? "not a number" : "infinite");
}

const char *evaluation_text(const struct session *session, const struct evaluation *evaluation,
                            uint64_t step, const char *set, char text[EVALUATION_TEXT_MAX])
{
    const char *names[HOOK_VALUES_MAX];
    const int count = evaluation_names(session, names), size = EVALUATION_TEXT_MAX;
    int used = snprintf(text, (size_t)size, "step %" PRIu64, step);
    for (int i = 0; i < count && used < size; i++) {
        char value[VALUE_TEXT_MAX];
        used += snprintf(text + used, (size_t)(size - used), ", %s %.64s %s", set, names[i],
                         value_text(evaluation_value(evaluation, i), value));
    }
    if (used < size)
        snprintf(text + used, (size_t)(size - used), " (%" PRId64 " examples)", evaluation->rows);
    return text;
}

/* "a, b, c", cut to the room there is. */
static void join(const struct name_list *list, char *text, size_t size)
{
    size_t used = 0;
    *text = '\0';
    for (int i = 0; i < list->count && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%s", i ? ", " : "", list->at[i]);
}

/* "auc" most likely means auc_ranking, if that is the only longer name. */
static const char *only_longer(const struct name_list *list, const char *name)
{
    const char *found = NULL;
    const size_t length = strlen(name);
    for (int i = 0; i < list->count; i++) {
        if (strncmp(list->at[i], name, length) != 0 || list->at[i][length] != '_') continue;
        if (found) return NULL;
        found = list->at[i];
    }
    return found;
}

err hook_name_find(const struct name_list *list, const char *name, int *ret)
{
    *ret = text_find(list->at, list->count, name);
    if (*ret >= 0) return OK;
    char known[ERROR_TEXT_MAX / 2];
    join(list, known, sizeof known);
    struct suggestion near = suggest(name, list->at, list->count);
    const char *longer = only_longer(list, name);
    if (longer) snprintf(near.text, sizeof near.text, " (did you mean \"%.64s\"?)", longer);
    return fail(ERR_INPUT, "%s: unknown %s \"%.64s\"%s; known are %s", list->path, list->noun, name,
                near.text, known);
}

err hook_check_every(const struct every *every)
{
    const bool by_secs = every->secs > 0, by_steps = every->steps > 0;
    if (by_secs != by_steps) return OK;
    return fail(ERR_INPUT, "expected %s or %s, got %s", every->secs_name, every->steps_name,
                by_secs ? "both" : "neither");
}
