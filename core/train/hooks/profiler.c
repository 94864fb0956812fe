/* profiler.c - timelines of all tasks, at intervals: where the time of a step goes.
 *
 * Like TensorFlow's ProfilerHook, but for the whole cluster on one clock. The chief's hook chooses
 * the steps a little ahead, so that every task hears of them in time; with save_steps they are
 * multiples of it, or a little later if other workers had passed one meanwhile. The first step of a
 * process is never chosen: it takes longer than others. There is one timeline at a time: the next
 * is asked for when the one before it is written.
 */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "core/base/files/file_system.h"
#include "core/base/log.h"
#include "core/train/hooks/values.h"

struct profiler {
    int64_t save_steps;
    double save_secs;
    int64_t steps;
    const char *output_dir;
};

struct state {
    const struct profiler *attributes;
    struct hook_timer timer; /* save_secs */
    uint64_t next_step;      /* save_steps: the next multiple */
    uint64_t asked_step;     /* of the timeline being made; 0: none */
};

static const struct field fields[] = {
    FIELD_OF("save_steps", INT, struct profiler, save_steps, .fallback = "0", .min = 0,
             .max = STEPS_MAX, .help = "global steps between two timelines"),
    FIELD_OF("save_secs", FLOAT, struct profiler, save_secs, .fallback = "0", .min = 0, .max = 1e9,
             .help = "seconds between two timelines"),
    FIELD_OF("steps", INT, struct profiler, steps, .fallback = "1", .min = 1,
             .max = TIMELINE_STEPS_MAX, .help = "consecutive steps of each worker in one timeline"),
    FIELD_OF("output_dir", STRING, struct profiler, output_dir, .fallback = "null",
             .help = "folder for timeline-<step>.json; null: the folder of the summaries"),
    {0},
};

static err check(const void *attributes, const struct spec *spec)
{
    const struct profiler *a = attributes;
    if (!spec->trains_nothing && !a->output_dir && !spec->train.summary.dir &&
        !spec->train.checkpoint.dir)
        return fail(ERR_INPUT, "needs output_dir, train.summary_dir or train.checkpoint_dir");
    return hook_check_every(
        &(struct every){"save_secs", "save_steps", a->save_secs, a->save_steps});
}

static err begin(void *state, const void *attributes, const struct run_view *view)
{
    struct state *s = state;
    s->attributes = attributes;
    s->timer.every_secs = s->attributes->save_secs;
    return OK;
}

/* ---- when ---- */

/* With save_steps: the next multiple after this step. */
static void plan_next(struct state *s, const struct run_view *view, uint64_t step)
{
    const uint64_t every = (uint64_t)s->attributes->save_steps;
    hook_timer_fired(&s->timer, step, view->now_ns);
    if (every) s->next_step = (step / every + 1) * every;
    s->asked_step = 0;
}

/* The step that is about to be computed, number global_step + 1, is the first of them. */
static err adopted(void *state, const struct run_view *view, const struct occasion *o)
{
    plan_next(state, view, view->global_step + 1);
    return OK;
}

static err before(void *state, const struct run_view *view, const struct occasion *o)
{
    struct state *s = state;
    const uint64_t number = view->global_step + 1;
    const uint64_t lead = timeline_lead(view->spec->train.mode == MODE_SYNC, view->workers);
    const bool by_steps = s->attributes->save_steps > 0;
    if (s->asked_step) return OK;
    if (by_steps ? number + lead < s->next_step
                 : !hook_timer_is_due(&s->timer, number, view->now_ns))
        return OK;
    const uint64_t first = by_steps && s->next_step > number ? s->next_step : number + lead;
    if (view->last_step && first > view->last_step) return OK;
    const struct run_asks *asks = view->asks;
    if (asks->trace && asks->trace(view->asker, first, (int)s->attributes->steps))
        s->asked_step = first;
    return OK;
}

/* ---- the file ---- */

static err path_of(const struct state *s, const struct run_view *view, uint64_t step,
                   char ret[PATH_MAX])
{
    const char *folder = s->attributes->output_dir ? s->attributes->output_dir : view->summary_dir;
    if (!path_is_url(folder) && mkdir(folder, 0777) != 0 && errno != EEXIST)
        return fail(ERR_IO, "%s: %s", folder, strerror(errno));
    const int length = snprintf(ret, PATH_MAX, "%s/timeline-%" PRIu64 ".json", folder, step);
    return length < PATH_MAX ? OK : fail(ERR_IO, "%s: %s", folder, strerror(ENAMETOOLONG));
}

static double percent(double part, double whole)
{
    return whole > 0 ? 100 * part / whole : 0;
}

/* A summary for the log: what the chief's own steps were made of. */
static void log_shares(const struct timeline *t, const char *path)
{
    const struct timeline_shares s = timeline_shares(&t->parts[0]);
    log_line(LOG_INFO,
             "%s: %d step%s in %.2f ms: compute %.0f %%, data %.0f %%, push %.0f %%, wait %.0f %%, "
             "hooks %.0f %%; hidden %.0f %% of the exchange",
             path, s.count, s.count == 1 ? "" : "s", s.steps * 1e3, percent(s.compute, s.steps),
             percent(s.data, s.steps), percent(s.push, s.steps), percent(s.wait, s.steps),
             percent(s.hooks, s.steps), percent(s.hidden, s.hidden + s.push + s.wait));
    for (int i = 0; i < t->part_count; i++)
        if (t->parts[i].missing)
            log_line(LOG_WARNING, "%s: %s/%d is missing: %s", path,
                     t->parts[i].is_ps ? "ps" : "worker", t->parts[i].task, t->parts[i].missing);
}

static err traced(void *state, const struct run_view *view, const struct occasion *o)
{
    struct state *s = state;
    const struct timeline *t = o->traced;
    char path[PATH_MAX];
    if (t->first_step != s->asked_step) return OK; /* another hook's */
    plan_next(s, view, view->global_step > s->asked_step ? view->global_step : s->asked_step);
    TRY(path_of(s, view, t->first_step, path));
    TRY(timeline_write(t, path));
    log_shares(t, path);
    return OK;
}

const struct hook hook_profiler = {
    .object = {.name = "profiler",
               .summary = "writes timelines of all tasks for chrome://tracing and Perfetto",
               .fields = fields,
               .size = sizeof(struct profiler)},
    .state_bytes = sizeof(struct state),
    .check = check,
    .begin = begin,
    .on = {[OCCASION_ADOPTED] = adopted, [OCCASION_BEFORE] = before, [OCCASION_TRACED] = traced},
};
