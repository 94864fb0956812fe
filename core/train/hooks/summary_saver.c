/* summary_saver.c - what TensorBoard shows of a run, at intervals of steps or time.
 *
 * Scalars: loss, each metric of the batch, learning_rate, gradient_norm. Histograms of all that
 * came between two summaries: staleness, push_seconds. On demand, histograms of every variable and
 * gradient, for which the other workers may have to wait. At the start, the graph and the spec.
 *
 * Each session START carries the step from which it continues: readers drop what was written for
 * later steps before the restart.
 */
#include <stdlib.h>
#include <string.h>

#include "core/train/hooks/values.h"

struct summary_saver {
    int64_t save_steps; /* exactly one of the two is above zero */
    double save_secs;
    bool gradient_norm, parameters, gradients;
};

struct state {
    const struct summary_saver *attributes;
    struct hook_timer timer;
    bool has_described;           /* graph and spec are written */
    bool is_due;                  /* a summary of this step is wanted: from computed to stepped */
    double gradient_norm;         /* of this step; 0: not known */
    struct histogram *histograms; /* [HISTOGRAMS] */
    float *values;                /* of one variable, in host memory; NULL: not wanted */
};

enum { STALENESS, PUSH_SECONDS, SCRATCH, HISTOGRAMS };
enum { TAG_MAX = 512 };

static const struct field fields[] = {
    FIELD_OF("save_steps", INT, struct summary_saver, save_steps, .fallback = "0", .min = 0,
             .max = STEPS_MAX, .help = "global steps between two summaries; 0: by time"),
    FIELD_OF("save_secs", FLOAT, struct summary_saver, save_secs, .fallback = "0", .min = 0,
             .max = 1e9, .help = "seconds between two summaries; 0: by steps"),
    FIELD_OF("gradient_norm", BOOL, struct summary_saver, gradient_norm, .fallback = "false",
             .help = "record the norm of all gradients together, after clipping; with clipping by "
                     "global_norm it is always recorded, and is the norm before clipping"),
    FIELD_OF("parameters", BOOL, struct summary_saver, parameters, .fallback = "false",
             .help = "record a histogram of each variable"),
    FIELD_OF("gradients", BOOL, struct summary_saver, gradients, .fallback = "false",
             .help = "record a histogram of each variable's gradient"),
    {0},
};

static err check(const void *attributes, const struct spec *spec)
{
    const struct summary_saver *a = attributes;
    if (!spec->trains_nothing && !spec->train.summary.dir && !spec->train.checkpoint.dir)
        return fail(ERR_INPUT, "needs train.summary_dir or train.checkpoint_dir");
    return hook_check_every(
        &(struct every){"save_secs", "save_steps", a->save_secs, a->save_steps});
}

static bool standard(const struct run_view *view, void *attributes)
{
    const struct train_spec *train = &view->spec->train;
    struct summary_saver *a = attributes;
    a->save_steps = train->summary.every_steps;
    a->save_secs = train->summary.every_secs;
    return view->summary_dir && (a->save_steps > 0 || a->save_secs > 0);
}

/* Everything is allocated here: steps allocate nothing. */
static err begin(void *state, const void *attributes, const struct run_view *view)
{
    struct state *s = state;
    const struct graph *graph = view->session->graph;
    int64_t largest = 1;
    s->attributes = attributes;
    s->timer.every_steps = s->attributes->save_steps;
    s->timer.every_secs = s->attributes->save_secs;
    for (int i = 0; i < graph->param_count; i++) {
        const int64_t count = param_floats(graph->params[i]);
        if (count > largest) largest = count;
    }
    s->histograms = calloc(HISTOGRAMS, sizeof *s->histograms);
    if (s->attributes->parameters || s->attributes->gradients)
        s->values = calloc((size_t)largest, sizeof *s->values);
    if (!s->histograms || (!s->values && (s->attributes->parameters || s->attributes->gradients)))
        return fail(ERR_MEMORY, "no memory for summaries");
    for (int i = 0; i < HISTOGRAMS; i++) histogram_clear(&s->histograms[i]);
    if (s->attributes->parameters) view->session->is_watched = true;
    return OK;
}

static void close(void *state)
{
    struct state *s = state;
    free(s->histograms);
    free(s->values);
}

/* ---- at the start ---- */

/* Lines indented by four are code in every dialect of Markdown. */
static char *indent(const char *text)
{
    size_t lines = 1;
    for (const char *c = text; *c; c++) lines += *c == '\n';
    char *indented = malloc(strlen(text) + 4 * lines + 1), *to = indented;
    bool at_start = true;
    for (; to && *text; text++) {
        if (at_start) to = (char *)memset(to, ' ', 4) + 4;
        *to++ = *text;
        at_start = *text == '\n';
    }
    if (to) *to = '\0';
    return indented;
}

static err write_spec(const struct run_view *view)
{
    char *text = spec_text(view->spec), *markdown = text ? indent(text) : NULL;
    err e = markdown ? OK : fail(ERR_MEMORY, "no memory for the spec's text");
    if (!e) {
        events_begin_step(view->events, view->wall_s, view->global_step);
        events_text(view->events, "spec", markdown);
        e = events_end_step(view->events);
    }
    free(markdown);
    free(text);
    return e;
}

static err write_graph(const struct run_view *view)
{
    struct arena arena = {0};
    struct graph_def graph;
    const struct session *session = view->session;
    graph_def_make(session->graph, session->layout, &view->spec->optimizers, &arena, &graph);
    const err e = events_graph(view->events, view->wall_s, &graph);
    arena_free(&arena);
    return e;
}

/* TensorBoard drops what was recorded from this step on. What was recorded for the step from which
 * a run continues, such as its last evaluation, stays valid. */
static uint64_t first_new_step(const struct run_view *view)
{
    return view->global_step ? view->global_step + 1 : 0;
}

/* After a recovery too, with the step that it went back to. */
static err adopted(void *state, const struct run_view *view, const struct occasion *o)
{
    struct state *s = state;
    if (!view->events) return OK;
    if (!s->has_described) TRY(write_graph(view));
    TRY(events_session(view->events, view->wall_s, first_new_step(view), SESSION_START, NULL));
    if (!s->has_described) TRY(write_spec(view));
    s->has_described = true;
    return events_flush(view->events);
}

/* ---- steps ---- */

/* Of the variable's values, or of its gradient. */
static void add_variable(struct state *s, const struct run_view *view, const struct param *p,
                         bool is_gradient)
{
    struct device *device = view->session->options.device;
    const int64_t count = param_floats(p);
    char tag[TAG_MAX];
    snprintf(tag, sizeof tag, "%s/%.400s", is_gradient ? "gradients" : "parameters", p->name);
    device->kernels->download(device, s->values, is_gradient ? p->gradient : p->value,
                              (size_t)count * sizeof(float));
    histogram_clear(&s->histograms[SCRATCH]);
    histogram_add_all(&s->histograms[SCRATCH], s->values, count);
    events_histogram(view->events, tag, &s->histograms[SCRATCH]);
}

static err write_variables(struct state *s, const struct run_view *view)
{
    const struct graph *graph = view->session->graph;
    if (!s->values) return OK;
    events_begin_step(view->events, view->wall_s, view->global_step);
    for (int i = 0; i < graph->param_count; i++) {
        if (s->attributes->parameters) add_variable(s, view, graph->params[i], false);
        if (s->attributes->gradients) add_variable(s, view, graph->params[i], true);
    }
    return events_end_step(view->events);
}

/* Values and gradients can be read here only, before the gradients leave. */
static err computed(void *state, const struct run_view *view, const struct occasion *o)
{
    struct state *s = state;
    s->is_due = view->events && hook_timer_is_due(&s->timer, view->global_step, view->now_ns);
    if (!s->is_due) return OK;
    s->gradient_norm =
        s->attributes->gradient_norm ? hook_gradient_norm(view) : view->gradient_norm;
    return write_variables(s, view);
}

static void add_exchange(const struct state *s, const struct run_view *view)
{
    if (view->own_steps < 2) return; /* the first push has no answer yet */
    histogram_add(&s->histograms[PUSH_SECONDS], view->push_seconds);
    if (view->spec->train.mode == MODE_ASYNC)
        histogram_add(&s->histograms[STALENESS], (double)view->staleness);
}

/* Then the histograms start over. */
static void write_exchange(const struct state *s, struct events *events)
{
    static const char *const tags[] = {[STALENESS] = "staleness", [PUSH_SECONDS] = "push_seconds"};
    for (int i = STALENESS; i <= PUSH_SECONDS; i++) {
        if (s->histograms[i].count > 0) events_histogram(events, tags[i], &s->histograms[i]);
        histogram_clear(&s->histograms[i]);
    }
}

/* The rate of the first optimizer; if there are more, learning_rate_1 ... */
static void write_rates(const struct run_view *view)
{
    const struct optimizers *optimizers = &view->spec->optimizers;
    events_scalar(view->events, "learning_rate", view->learning_rate);
    for (int i = 1; i < optimizers->count; i++) {
        char tag[32];
        snprintf(tag, sizeof tag, "learning_rate_%d", i);
        events_scalar(view->events, tag,
                      view->rate_factor * schedule_rate(optimizer_learning_rate(&optimizers->at[i]),
                                                        (int64_t)view->global_step - 1));
    }
}

/* Of this worker's own step and batch, as in TensorFlow. */
static void write_scalars(const struct state *s, const struct run_view *view)
{
    const struct graph *graph = view->session->graph;
    events_scalar(view->events, "loss", view->loss);
    for (int i = 0; i < graph->metric_count; i++)
        events_scalar(view->events, graph->metrics[i].name, session_metric(view->session, i));
    write_rates(view);
    if (s->gradient_norm > 0) events_scalar(view->events, "gradient_norm", s->gradient_norm);
}

static err stepped(void *state, const struct run_view *view, const struct occasion *o)
{
    struct state *s = state;
    if (!view->events) return OK;
    add_exchange(s, view);
    if (!s->is_due) return OK;
    s->is_due = false;
    hook_timer_fired(&s->timer, view->global_step, view->now_ns);
    events_begin_step(view->events, view->wall_s, view->global_step);
    write_scalars(s, view);
    write_exchange(s, view->events);
    TRY(events_end_step(view->events));
    return events_flush(view->events);
}

static err end(void *state, const struct run_view *view, const struct occasion *o)
{
    if (!view->events) return OK;
    TRY(events_session(view->events, view->wall_s, view->global_step, SESSION_STOP, NULL));
    return events_flush(view->events);
}

const struct hook hook_summary_saver = {
    .object = {.name = "summary_saver",
               .summary = "records loss, metrics, learning rate and more for TensorBoard",
               .fields = fields,
               .size = sizeof(struct summary_saver)},
    .state_bytes = sizeof(struct state),
    .check = check,
    .standard = standard,
    .begin = begin,
    .on = {[OCCASION_ADOPTED] = adopted,
           [OCCASION_COMPUTED] = computed,
           [OCCASION_STEPPED] = stepped,
           [OCCASION_END] = end},
    .close = close,
};
