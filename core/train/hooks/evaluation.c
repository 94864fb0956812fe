/* evaluation.c - evaluations while training continues.
 *
 * The chief evaluates between two of its own steps, with the values that the next one will use,
 * while the others continue (async) or wait (sync). Initial values are not evaluated. All
 * evaluations, including the last one, are recorded in the folder `eval` below that of the
 * summaries, under the same names as the numbers of training: so TensorBoard draws both in one
 * chart, as with TensorFlow's Estimator.
 *
 * If the best checkpoints are kept, what is evaluated is what is saved (core/train/hooks/best.h).
 */
#include "core/base/files/file_system.h"
#include "core/base/log.h"
#include "core/train/hooks/best.h"
#include "core/train/hooks/values.h"

struct evaluation_attributes {
    int64_t every_n_steps; /* exactly one of the two; if made from the keys of "train", perhaps
                              neither */
    double every_n_secs;
};

/* Of the checkpoint whose values are to be evaluated, if the best ones are kept. */
enum best_saving {
    NOT_SAVING,
    SAVING_OWED,  /* to be asked for at the end of this step */
    SAVING_BEGUN, /* the next step begins from the values that are being saved */
    SAVING_BUSY,  /* it does not: another checkpoint is being written */
};

struct state {
    struct hook_timer timer;
    bool is_asking;    /* the evaluation that all hooks hear of was asked for by this one */
    struct best *best; /* NULL: none are kept */
    enum best_saving saving;
    struct events *events; /* of the folder eval; NULL: not opened yet */
    uint64_t recorded;     /* the newest step there; 0: none */
};

static const struct field fields[] = {
    FIELD_OF("every_n_steps", INT, struct evaluation_attributes, every_n_steps, .fallback = "0",
             .min = 0, .max = STEPS_MAX, .help = "global steps between two evaluations"),
    FIELD_OF("every_n_secs", FLOAT, struct evaluation_attributes, every_n_secs, .fallback = "0",
             .min = 0, .max = 1e9, .help = "seconds between two evaluations"),
    {0},
};

static err check(const void *attributes, const struct spec *spec)
{
    const struct evaluation_attributes *a = attributes;
    if (!spec->data.eval.format.kind) return fail(ERR_INPUT, "needs data.eval");
    return hook_check_every(
        &(struct every){"every_n_secs", "every_n_steps", a->every_n_secs, a->every_n_steps});
}

/* Used if only the last evaluation is to be recorded, too. */
static bool standard(const struct run_view *view, void *attributes)
{
    struct evaluation_attributes *a = attributes;
    a->every_n_steps = view->spec->train.evaluation.every_steps;
    a->every_n_secs = view->spec->train.evaluation.every_secs;
    const bool is_timed = a->every_n_steps > 0 || a->every_n_secs > 0;
    return view->spec->data.eval.format.kind && (is_timed || view->summary_dir);
}

static err begin(void *state, const void *attributes, const struct run_view *view)
{
    const struct evaluation_attributes *a = attributes;
    struct state *s = state;
    s->timer.every_steps = a->every_n_steps;
    s->timer.every_secs = a->every_n_secs;
    return best_open(view, &s->best);
}

static void close(void *state)
{
    struct state *s = state;
    events_close(s->events);
    best_close(s->best);
}

/* The clock starts with the run, and again after each recovery. */
static err adopted(void *state, const struct run_view *view, const struct occasion *o)
{
    struct state *s = state;
    s->saving = NOT_SAVING;
    if (s->best) TRY(best_adopted(s->best, view, o->adopted.is_first));
    if (!s->timer.has_fired || view->global_step < s->timer.fired_step)
        hook_timer_fired(&s->timer, view->global_step, view->now_ns);
    return OK;
}

static bool is_due(const struct state *s, const struct run_view *view)
{
    return hook_timer_is_due(&s->timer, view->global_step, view->now_ns);
}

static err computed(void *state, const struct run_view *view, const struct occasion *o)
{
    struct state *s = state;
    const bool is_wanted = s->saving == SAVING_OWED || (s->saving == NOT_SAVING && is_due(s, view));
    if (!s->best || !is_wanted) return OK;
    s->saving = view->asks->save(view->asker) ? SAVING_BEGUN : SAVING_BUSY;
    if (s->saving == SAVING_BEGUN) best_begun(s->best, view);
    return OK;
}

/* If the values could not be saved they are evaluated when that is due, and a checkpoint is asked
 * for later. */
static bool evaluates_now(struct state *s, const struct run_view *view)
{
    const bool is_due_now = is_due(s, view);
    if (!s->best || s->saving == SAVING_BEGUN) return is_due_now || s->saving == SAVING_BEGUN;
    if (s->saving == SAVING_BUSY && is_due_now) return true;
    if (s->saving == SAVING_BUSY || is_due_now) s->saving = SAVING_OWED;
    return false;
}

/* Noted as done first: an evaluation that fails is not repeated with every step. */
static err before(void *state, const struct run_view *view, const struct occasion *o)
{
    struct state *s = state;
    struct evaluation evaluation;
    const struct hook_timer timer = s->timer;
    if (!evaluates_now(s, view)) return OK;
    hook_timer_fired(&s->timer, view->global_step, view->now_ns);
    s->is_asking = true;
    const err e = hooks_evaluate(view, &evaluation);
    s->is_asking = false;
    if (e == ERR_PEER) {
        s->timer = timer; /* the step begins again, and so does the request */
        return e;
    }
    const bool is_owed =
        s->best && s->saving == SAVING_BUSY && best_missed(s->best, view, &evaluation);
    s->saving = is_owed ? SAVING_OWED : NOT_SAVING;
    return e;
}

/* The same words as in the last line of a run. */
static void write_line(const struct run_view *view, const struct evaluation *evaluation)
{
    char text[EVALUATION_TEXT_MAX];
    log_line(LOG_INFO, "%s",
             evaluation_text(view->session, evaluation, view->global_step, "test", text));
}

/* Opened late: a run without evaluations has no such folder. */
static err open_events(struct state *s, const struct run_view *view)
{
    char folder[PATH_BYTES_MAX];
    if (s->events) return OK;
    if (snprintf(folder, sizeof folder, "%s/eval", view->summary_dir) >= (int)sizeof folder)
        return fail(ERR_IO, "%.64s...: too long a path", view->summary_dir);
    TRY(events_own_folder(folder));
    TRY(events_open(folder, view->wall_s, "", &s->events));
    return events_write_beside(s->events);
}

/* What was recorded from this step on, before a restart or recovery, no longer holds. */
static err record(struct state *s, const struct run_view *view, const struct evaluation *evaluation)
{
    const bool begins = !s->events || view->global_step <= s->recorded;
    TRY(open_events(s, view));
    if (begins)
        TRY(events_session(s->events, view->wall_s, view->global_step, SESSION_START, NULL));
    s->recorded = view->global_step;
    return evaluation_record(view->session, evaluation, s->events, view->wall_s, s->recorded);
}

static enum best_kind kind_of(const struct state *s, bool is_last)
{
    if (is_last) return BEST_LAST;
    return s->saving == SAVING_BEGUN ? BEST_OF_PAIR : BEST_ALONE;
}

/* The best checkpoint first: it matters more than a line. */
static err evaluated(void *state, const struct run_view *view, const struct occasion *o)
{
    struct state *s = state;
    const struct evaluation *evaluation = o->evaluated.evaluation;
    if (evaluation->rows == 0) return OK;
    if (s->is_asking) write_line(view, evaluation);
    if (s->best) TRY(best_evaluated(s->best, view, evaluation, kind_of(s, o->evaluated.is_last)));
    return view->events ? record(s, view, evaluation) : OK;
}

static err saved(void *state, const struct run_view *view, const struct occasion *o)
{
    const struct state *s = state;
    return s->best ? best_saved(s->best, view, o->saved.prefix) : OK;
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
           [OCCASION_COMPUTED] = computed,
           [OCCASION_SAVED] = saved,
           [OCCASION_EVALUATED] = evaluated},
    .close = close,
};
