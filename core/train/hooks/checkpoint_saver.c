/* checkpoint_saver.c - when a checkpoint is asked for.
 *
 * As TensorFlow does: at once when the values are there, at the start and after each recovery, and
 * then by time or by steps. The last one, when every worker has ended, is the runner's.
 */
#include "core/train/checkpoint/checkpoints.h"
#include "core/base/files/url.h"
#include "core/train/hooks/values.h"

struct checkpoint_saver {
    double save_secs; /* exactly one of the two is above zero, unless is_of_train */
    int64_t save_steps;
    bool is_of_train; /* goes by the keys of "train", which may change while the job runs */
};

struct state {
    struct hook_timer timer;
    bool is_of_train;
    bool is_due;    /* the last request was not followed by a checkpoint */
    bool is_missed; /* one came due by time or steps, and no checkpoint has begun since */
};

static const struct field fields[] = {
    {.name = "save_secs",
     .type = FIELD_FLOAT,
     .offset = offsetof(struct checkpoint_saver, save_secs),
     .fallback = "0",
     .min = 0,
     .max = 1e9,
     .help = "seconds between two checkpoints; 0: by steps"},
    {.name = "save_steps",
     .type = FIELD_INT,
     .offset = offsetof(struct checkpoint_saver, save_steps),
     .fallback = "0",
     .min = 0,
     .max = STEPS_MAX,
     .help = "global steps between two checkpoints; 0: by time"},
    {0},
};

static err check(const void *attributes, const struct spec *spec)
{
    const struct checkpoint_saver *a = attributes;
    if (!spec->trains_nothing && !spec->train.checkpoint.dir)
        return fail(ERR_INPUT, "needs train.checkpoint_dir");
    return hook_check_every(
        &(struct every){"save_secs", "save_steps", a->save_secs, a->save_steps});
}

/* Both zero: only the last checkpoint is wanted, until an interval is set. */
static bool standard(const struct run_view *view, void *attributes)
{
    struct checkpoint_saver *a = attributes;
    a->is_of_train = true;
    return view->checkpoint_dir;
}

static err begin(void *state, const void *attributes, const struct run_view *view)
{
    const struct checkpoint_saver *a = attributes;
    struct state *s = state;
    s->timer.every_secs = a->save_secs;
    s->timer.every_steps = a->save_steps;
    s->is_of_train = a->is_of_train;
    return OK;
}

/* By the present settings of the spec. false: none but the last one. */
static bool saves_meanwhile(struct state *s, const struct run_view *view)
{
    const struct checkpoint_spec *keys = &view->spec->train.checkpoint;
    if (s->is_of_train) {
        s->timer.every_secs = keys->every_secs;
        s->timer.every_steps = keys->every_steps;
    }
    return s->timer.every_secs > 0 || s->timer.every_steps > 0;
}

/* Only the runner knows whether one is being written already. */
static err save(void *state, const struct run_view *view, const struct occasion *o)
{
    struct state *s = state;
    if (!saves_meanwhile(s, view)) return OK;
    hook_timer_fired(&s->timer, view->global_step, view->now_ns);
    s->is_due = !view->asks->save(view->asker);
    s->is_missed = s->is_missed && s->is_due;
    return OK;
}

/* Asked for before the gradients leave, so that it is of the step that they make if training is
 * synchronous or there is one worker, else of one soon after. One that came due while a delta was
 * being written is made up for; one that came due while a checkpoint was being written is not. */
static err computed(void *state, const struct run_view *view, const struct occasion *o)
{
    struct state *s = state;
    if (!saves_meanwhile(s, view)) return OK;
    const bool publishes = view->spec->train.checkpoint.publish.every_secs > 0;
    const bool is_due = hook_timer_is_due(&s->timer, view->global_step, view->now_ns);
    s->is_missed |= is_due && publishes;
    return is_due || s->is_missed ? save(state, view, o) : OK;
}

/* No batch comes: a request that was refused is repeated, that at the start, too. */
static err waited(void *state, const struct run_view *view, const struct occasion *o)
{
    const struct state *s = state;
    return s->is_due ? save(state, view, o) : computed(state, view, o);
}

/* The step is that of the checkpoint: training has gone on since its snapshot. */
static err saved(void *state, const struct run_view *view, const struct occasion *o)
{
    const char *prefix = o->saved.prefix;
    char shown[PATH_BYTES_MAX];
    if (!prefix || !view->events) return OK;
    const int64_t step = checkpoint_step(prefix);
    TRY(events_session(view->events, view->wall_s, step < 0 ? view->global_step : (uint64_t)step,
                       SESSION_CHECKPOINT, path_shown(prefix, shown)));
    return events_flush(view->events);
}

const struct hook hook_checkpoint_saver = {
    .object = {.name = "checkpoint_saver",
               .summary = "saves a checkpoint at the start and then by time or by steps",
               .fields = fields,
               .size = sizeof(struct checkpoint_saver)},
    .state_bytes = sizeof(struct state),
    .check = check,
    .standard = standard,
    .begin = begin,
    .on = {[OCCASION_ADOPTED] = save,
           [OCCASION_COMPUTED] = computed,
           [OCCASION_WAITED] = waited,
           [OCCASION_SAVED] = saved},
};
