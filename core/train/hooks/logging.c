/* logging.c - logs numbers of a step by name, as TensorFlow's LoggingTensorHook does:
 *
 *     loss = 0.25, accuracy = 0.9 (0.123 sec)
 *
 * Names are in the order of the spec, or sorted if it names none. Iterations are this worker's own
 * steps, of which the first is logged; the seconds are those since the line before.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/log.h"
#include "core/train/hooks/values.h"

struct logging {
    struct strings values; /* none: all */
    int64_t every_n_iter;  /* exactly one of the two, or neither with at_end */
    double every_n_secs;
    bool at_end;
};

struct state {
    const struct logging *attributes;
    struct hook_timer timer;
    uint64_t iterations; /* own steps seen */
    bool has_numbers;    /* the numbers of the last own step can still be read */
    bool has_norm;       /* gradient_norm is among the values */
    bool is_due;         /* the step that was computed gets a line */
    double gradient_norm;
    int count;
    int indices[HOOK_VALUES_MAX];
    const char *names[HOOK_VALUES_MAX];
};

enum { LINE_MAX_BYTES = 2048, NUMBER_MAX_BYTES = 32 };

static const struct field fields[] = {
    FIELD_OF(
        "values", STRINGS, struct logging, values, .fallback = "[]", .count_max = HOOK_VALUES_MAX,
        .help = "global_step, gradient_norm, learning_rate, loss, push_seconds, staleness, or a "
                "metric; none: all of them"),
    FIELD_OF("every_n_iter", INT, struct logging, every_n_iter, .fallback = "0", .min = 0,
             .max = STEPS_MAX, .help = "steps of this worker between two lines"),
    FIELD_OF("every_n_secs", FLOAT, struct logging, every_n_secs, .fallback = "0", .min = 0,
             .max = 1e9, .help = "seconds between two lines"),
    FIELD_OF("at_end", BOOL, struct logging, at_end, .fallback = "false",
             .help = "log a line at the end, with the values of this worker's last step"),
    {0},
};

static err check(const void *attributes, const struct spec *spec)
{
    const struct logging *a = attributes;
    if (a->at_end && a->every_n_iter == 0 && a->every_n_secs <= 0) return OK;
    return hook_check_every(
        &(struct every){"every_n_secs", "every_n_iter", a->every_n_secs, a->every_n_iter});
}

static int compare_names(const void *a, const void *b, void *names)
{
    const char *const *at = names;
    return strcmp(at[*(const int *)a], at[*(const int *)b]);
}

/* Sorted, or as the spec lists them; an unknown name is an error before the first step. */
static err choose(struct state *s, const char *names[], int count)
{
    const struct strings *values = &s->attributes->values;
    s->count = values->count ? values->count : count;
    for (int i = 0; i < s->count; i++) s->indices[i] = i;
    if (!values->count) qsort_r(s->indices, (size_t)count, sizeof(int), compare_names, names);
    for (int i = 0; i < values->count; i++) {
        char path[32];
        snprintf(path, sizeof path, "values[%d]", i);
        const struct name_list list = {names, count, path, "value"};
        TRY(hook_name_find(&list, values->at[i], &s->indices[i]));
    }
    for (int i = 0; i < s->count; i++) {
        s->names[i] = names[s->indices[i]];
        s->has_norm |= strcmp(s->names[i], "gradient_norm") == 0;
    }
    return OK;
}

static err check_names(const void *attributes, const struct run_view *view)
{
    struct state s = {.attributes = attributes};
    const char *names[HOOK_VALUES_MAX];
    const int count = hook_value_names(view, names);
    return choose(&s, names, count);
}

static err begin(void *state, const void *attributes, const struct run_view *view)
{
    struct state *s = state;
    s->attributes = attributes;
    s->timer.every_steps = s->attributes->every_n_iter;
    s->timer.every_secs = s->attributes->every_n_secs;
    const char *names[HOOK_VALUES_MAX];
    const int count = hook_value_names(view, names);
    return choose(s, names, count);
}

/* A global step of a billion is shown with all its digits. */
static void number_text(double value, char text[NUMBER_MAX_BYTES])
{
    const bool is_whole = value == floor(value) && fabs(value) < 1e15;
    if (isnan(value))
        value_text(value, text);
    else
        snprintf(text, NUMBER_MAX_BYTES, is_whole ? "%.0f" : "%.7g", value);
}

/* passed_s below zero: this is the first line. */
static void write_line(const struct state *s, const struct run_view *view, double passed_s)
{
    char line[LINE_MAX_BYTES] = "", number[NUMBER_MAX_BYTES];
    size_t used = 0;
    struct run_view seen = *view;
    seen.gradient_norm = s->gradient_norm;
    for (int i = 0; i < s->count && used < sizeof line; i++) {
        number_text(hook_value(&seen, s->indices[i]), number);
        used += (size_t)snprintf(line + used, sizeof line - used, "%s%s = %s", i ? ", " : "",
                                 s->names[i], number);
    }
    if (passed_s < 0)
        log_asked("%s", line);
    else
        log_asked("%s (%.3f sec)", line, passed_s);
}

static double passed_s(const struct hook_timer *timer, uint64_t now_ns)
{
    return timer->has_fired ? (double)(now_ns - timer->fired_ns) / 1e9 : -1;
}

/* A recovery moves the stream of batches; the last batch is gone with the old one. */
static err adopted(void *state, const struct run_view *view, const struct occasion *o)
{
    struct state *s = state;
    s->has_numbers = false;
    return OK;
}

/* Gradients can be read here only. Which step will be the last is not known beforehand. */
static err computed(void *state, const struct run_view *view, const struct occasion *o)
{
    struct state *s = state;
    const bool is_timed = s->timer.every_steps > 0 || s->timer.every_secs > 0;
    s->is_due = is_timed && hook_timer_is_due(&s->timer, s->iterations, view->now_ns);
    if (s->has_norm && (s->is_due || s->attributes->at_end))
        s->gradient_norm = hook_gradient_norm(view);
    return OK;
}

static err stepped(void *state, const struct run_view *view, const struct occasion *o)
{
    struct state *s = state;
    s->has_numbers = true;
    const uint64_t iteration = s->iterations++;
    if (!s->is_due) return OK;
    write_line(s, view, passed_s(&s->timer, view->now_ns));
    hook_timer_fired(&s->timer, iteration, view->now_ns);
    return OK;
}

/* The last batch's numbers are still there; the global step includes those of other workers. */
static err end(void *state, const struct run_view *view, const struct occasion *o)
{
    const struct state *s = state;
    if (s->attributes->at_end && s->has_numbers)
        write_line(s, view, passed_s(&s->timer, view->now_ns));
    return OK;
}

const struct hook hook_logging = {
    .object = {.name = "logging",
               .summary = "logs the values of a step every N steps or seconds",
               .fields = fields,
               .size = sizeof(struct logging)},
    .state_bytes = sizeof(struct state),
    .on_every_worker = true,
    .check = check,
    .check_names = check_names,
    .begin = begin,
    .on = {[OCCASION_ADOPTED] = adopted,
           [OCCASION_COMPUTED] = computed,
           [OCCASION_STEPPED] = stepped,
           [OCCASION_END] = end},
};
