/* step_counter.c - how fast the whole cluster trains: global steps and examples per second.
 *
 * It measures from the start of one of this worker's steps to the start of another. The first step
 * takes longer than the others, so the clock starts after it. If the global step does not grow over
 * several own steps, as when every gradient is dropped, a warning says so, at most five times; two
 * steps in a row may see the same number if a snapshot was taken between them.
 */
#include <inttypes.h>

#include "core/base/log.h"
#include "core/train/hooks/values.h"

enum { STANDSTILL_STEPS = 3, STANDSTILL_WARNINGS_MAX = 5 };

struct step_counter {
    int64_t every_n_steps; /* 0 with every_n_secs 0: EVERY_N_STEPS */
    double every_n_secs;
};
enum { EVERY_N_STEPS = 100 };

struct state {
    struct hook_timer timer;
    bool has_first, has_since;
    struct step_time begun, since; /* the own step being computed; that of the last measurement */
    uint64_t last_step;            /* of the last own step */
    int standing; /* own steps in a row during which the global step did not grow */
    int warnings;
    struct log_pace pace;
};

static const struct field fields[] = {
    FIELD_OF(
        "every_n_steps", INT, struct step_counter, every_n_steps, .fallback = "0", .min = 0,
        .max = STEPS_MAX,
        .help = "global steps between two measurements, 100 where neither this nor every_n_secs is "
                "given"),
    FIELD_OF("every_n_secs", FLOAT, struct step_counter, every_n_secs, .fallback = "0", .min = 0,
             .max = 1e9, .help = "seconds between two measurements"),
    {0},
};

static err check(const void *attributes, const struct spec *spec)
{
    const struct step_counter *a = attributes;
    if (a->every_n_steps == 0 && a->every_n_secs <= 0) return OK;
    return hook_check_every(
        &(struct every){"every_n_secs", "every_n_steps", a->every_n_secs, a->every_n_steps});
}

/* As in TensorFlow only if there is a folder for summaries. */
static bool standard(const struct run_view *view, void *attributes)
{
    struct step_counter *a = attributes;
    a->every_n_steps = view->spec->train.summary.log_step_count_steps;
    return view->summary_dir && a->every_n_steps > 0;
}

static err begin(void *state, const void *attributes, const struct run_view *view)
{
    const struct step_counter *a = attributes;
    struct state *s = state;
    const bool is_default = a->every_n_steps == 0 && a->every_n_secs <= 0;
    s->timer.every_secs = a->every_n_secs;
    s->timer.every_steps = is_default ? EVERY_N_STEPS : a->every_n_steps;
    return OK;
}

/* Own steps are compared, not the times at which the clock was read. */
static void warn_standstill(struct state *s, const struct run_view *view)
{
    const bool stands = view->own_steps > 1 && view->global_step == s->last_step;
    s->last_step = view->global_step;
    s->standing = stands ? s->standing + 1 : 0;
    if (s->standing < STANDSTILL_STEPS || s->warnings == STANDSTILL_WARNINGS_MAX) return;
    s->warnings++;
    log_line(LOG_WARNING,
             "the global step did not grow during the last %d steps of this worker: it is still "
             "%" PRIu64,
             s->standing, view->global_step);
}

/* Tags and the log line are TensorFlow's. */
static err report(struct state *s, const struct run_view *view, double steps_per_s)
{
    const double gradients = (double)spec_replicas(view->spec, view->workers);
    const double examples_per_s = steps_per_s * gradients * (double)view->spec->data.batch_size;
    if (log_is_due(&s->pace, view->now_ns)) log_asked("global_step/sec: %g", steps_per_s);
    if (!view->events) return OK;
    events_begin_step(view->events, view->wall_s, view->global_step);
    events_scalar(view->events, "global_step/sec", steps_per_s);
    events_scalar(view->events, "examples/sec", examples_per_s);
    TRY(events_end_step(view->events));
    return events_flush(view->events);
}

static err before(void *state, const struct run_view *view, const struct occasion *o)
{
    struct state *s = state;
    s->begun = (struct step_time){view->global_step, view->now_ns};
    if (s->has_first && !s->has_since) s->since = s->begun;
    s->has_since = s->has_first;
    return OK;
}

static err stepped(void *state, const struct run_view *view, const struct occasion *o)
{
    struct state *s = state;
    warn_standstill(s, view);
    s->has_first = true;
    if (!hook_timer_is_due(&s->timer, view->global_step, view->now_ns)) return OK;
    hook_timer_fired(&s->timer, view->global_step, view->now_ns);
    if (!s->has_since) return OK;
    const double steps_per_s = steps_per_second(s->since, s->begun);
    s->since = s->begun;
    return steps_per_s > 0 ? report(s, view, steps_per_s) : OK;
}

const struct hook hook_step_counter = {
    .object = {.name = "step_counter",
               .summary = "logs and records global steps and examples per second",
               .fields = fields,
               .size = sizeof(struct step_counter)},
    .state_bytes = sizeof(struct state),
    .check = check,
    .standard = standard,
    .begin = begin,
    .on = {[OCCASION_BEFORE] = before, [OCCASION_STEPPED] = stepped},
};
