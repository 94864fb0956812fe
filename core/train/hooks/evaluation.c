/* evaluation.c - evaluations while training goes on.
 *
 * The chief evaluates between two of its own steps, at the values that it is about to use, while
 * the others go on (async) or wait for it (sync). What training starts with is not evaluated. Every
 * evaluation, also that of the end, is recorded as eval/loss and eval/<metric>.
 */
#include "core/base/log.h"
#include "core/train/hooks/values.h"

struct evaluation_attributes {
    int64_t every_n_steps; /* exactly one of the two; made from "train": perhaps neither */
    double every_n_secs;
};

struct state {
    struct hook_timer timer;
    bool is_asking; /* the evaluation that is told is this hook's own */
};

enum { TAG_MAX = 128 };

static const struct field fields[] = {
    {.name = "every_n_steps",
     .type = FIELD_INT,
     .offset = offsetof(struct evaluation_attributes, every_n_steps),
     .fallback = "0",
     .min = 0,
     .max = STEPS_MAX,
     .help = "global steps between two evaluations"},
    {.name = "every_n_secs",
     .type = FIELD_FLOAT,
     .offset = offsetof(struct evaluation_attributes, every_n_secs),
     .fallback = "0",
     .min = 0,
     .max = 1e9,
     .help = "seconds between two evaluations"},
    {0},
};

static err check(const void *attributes, const struct spec *spec)
{
    const struct evaluation_attributes *a = attributes;
    if (!spec->data.eval.format.kind) return fail(ERR_INPUT, "needs data.eval");
    return hook_check_every(
        &(struct every){"every_n_secs", "every_n_steps", a->every_n_secs, a->every_n_steps});
}

/* Also where only the last evaluation is to be recorded. */
static bool standard(const struct run_view *view, void *attributes)
{
    struct evaluation_attributes *a = attributes;
    a->every_n_steps = view->spec->train.evaluate_every_steps;
    a->every_n_secs = view->spec->train.evaluate_every_secs;
    const bool is_timed = a->every_n_steps > 0 || a->every_n_secs > 0;
    return view->spec->data.eval.format.kind && (is_timed || view->summary_dir);
}

static err begin(void *state, const void *attributes, const struct run_view *view)
{
    const struct evaluation_attributes *a = attributes;
    struct state *s = state;
    s->timer.every_steps = a->every_n_steps;
    s->timer.every_secs = a->every_n_secs;
    return OK;
}

/* The clock starts with the run, and anew where a recovery went back. */
static err adopted(void *state, const struct run_view *view, const struct occasion *o)
{
    struct state *s = state;
    if (!s->timer.has_fired || view->global_step < s->timer.fired_step)
        hook_timer_fired(&s->timer, view->global_step, view->now_ns);
    return OK;
}

/* Marked as done before it is: an evaluation that fails is not tried with every step. */
static err before(void *state, const struct run_view *view, const struct occasion *o)
{
    struct state *s = state;
    struct evaluation evaluation;
    const struct hook_timer timer = s->timer;
    if (!hook_timer_is_due(&s->timer, view->global_step, view->now_ns)) return OK;
    hook_timer_fired(&s->timer, view->global_step, view->now_ns);
    s->is_asking = true;
    const err e = hooks_evaluate(view, &evaluation);
    s->is_asking = false;
    if (e == ERR_PEER) s->timer = timer; /* the step begins anew, and so does this */
    return e;
}

/* The same words as in the line with which a run ends. */
static void write_line(const struct run_view *view, const struct evaluation *evaluation)
{
    char text[EVALUATION_TEXT_MAX];
    log_line(LOG_INFO, "%s",
             evaluation_text(view->session, evaluation, view->global_step, "test", text));
}

static err record(const struct run_view *view, const struct evaluation *evaluation)
{
    const char *names[HOOK_VALUES_MAX];
    const int count = evaluation_names(view->session, names);
    events_begin_step(view->events, view->wall_s, view->global_step);
    for (int i = 0; i < count; i++) {
        char tag[TAG_MAX];
        snprintf(tag, sizeof tag, "eval/%.100s", names[i]);
        events_scalar(view->events, tag, evaluation_value(evaluation, i));
    }
    TRY(events_end_step(view->events));
    return events_flush(view->events);
}

static err evaluated(void *state, const struct run_view *view, const struct occasion *o)
{
    const struct state *s = state;
    const struct evaluation *evaluation = o->evaluated.evaluation;
    if (evaluation->rows == 0) return OK;
    if (s->is_asking) write_line(view, evaluation);
    return view->events ? record(view, evaluation) : OK;
}

const struct hook hook_evaluation = {
    .object = {.name = "evaluation",
               .summary = "evaluates every N steps or seconds, and records the results",
               .fields = fields,
               .size = sizeof(struct evaluation_attributes)},
    .state_bytes = sizeof(struct state),
    .check = check,
    .standard = standard,
    .begin = begin,
    .on = {[OCCASION_ADOPTED] = adopted,
           [OCCASION_BEFORE] = before,
           [OCCASION_EVALUATED] = evaluated},
};
