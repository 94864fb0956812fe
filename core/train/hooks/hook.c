/* hook.c - all hooks of one process: which there are, in which order they run, and what their
 * errors mean. */
#include "core/train/hooks/hook.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/log.h"
#include "core/train/hooks/best.h"

enum { WARNINGS_MAX = 5, LABEL_MAX = 96 };

struct instance {
    const struct hook *hook;
    const void *attributes;
    void *state;
    int index;         /* in the spec's list; KEYS: made from the keys of "train" */
    uint64_t failures; /* ERR_IO */
};
enum { KEYS = -1 };

struct hooks {
    struct arena arena;
    struct instance *at;
    int count;
    struct own_hook own;
    struct events *events; /* owned; NULL: none */
};

/* ---- errors ---- */

/* Hooks of the list are named by their place in it; those made from keys of "train" have none. */
static void label(const struct instance *i, char text[LABEL_MAX])
{
    const char *name = i->hook->object.name;
    if (i->index < 0)
        snprintf(text, LABEL_MAX, "%s", name);
    else
        snprintf(text, LABEL_MAX, "train.hooks[%d]: %s", i->index, name);
}

/* A disk that is full now may have room later; training does not end for it. */
static err forgive(struct instance *i, err e)
{
    char name[LABEL_MAX];
    if (!e) return OK;
    label(i, name);
    if (e != ERR_IO) return fail_prefix(e, "%s", name);
    if (++i->failures <= WARNINGS_MAX)
        log_line(LOG_WARNING, "%s: %s%s", name, error_text(),
                 i->failures == WARNINGS_MAX ? " (further failures of it are not logged)" : "");
    return OK;
}

/* ---- the calls ---- */

static err tell_one(struct instance *i, const struct run_view *view, const struct occasion *o)
{
    return i->hook->on[o->kind] ? forgive(i, i->hook->on[o->kind](i->state, view, o)) : OK;
}

static err tell_own(const struct run_view *view, const struct occasion *o)
{
    const struct own_hook *own = &view->hooks->own;
    return own->hook && own->hook->on[o->kind] ? own->hook->on[o->kind](own->state, view, o) : OK;
}

/* All hooks hear of the end, even if one fails; the first failure is returned. */
static err tell_end(const struct run_view *view, const struct occasion *o)
{
    char why[ERROR_TEXT_MAX] = "";
    err first = OK;
    for (int i = 0; i < view->hooks->count; i++) {
        const err e = tell_one(&view->hooks->at[i], view, o);
        if (!e || first) continue;
        first = e;
        snprintf(why, sizeof why, "%s", error_text());
    }
    const err last = tell_own(view, o);
    return first ? fail(first, "%s", why) : last;
}

err hooks_tell(const struct run_view *view, const struct occasion *o)
{
    const bool is_last = o->kind == OCCASION_EVALUATED && o->evaluated.is_last;
    if (o->kind == OCCASION_END) return tell_end(view, o);
    if (!is_last) TRY(tell_own(view, o)); /* Other errors end the run, after the other hooks */
    for (int i = 0; i < view->hooks->count; i++) TRY(tell_one(&view->hooks->at[i], view, o));
    return is_last ? tell_own(view, o) : OK;
}

err hooks_evaluate(const struct run_view *view, struct evaluation *ret)
{
    TRY(view->asks->evaluate(view->asker, ret));
    return hooks_tell(view, &(struct occasion){OCCASION_EVALUATED, .evaluated = {ret}});
}

uint64_t hooks_wait_step(const struct hooks *hooks)
{
    uint64_t latest = 0;
    for (int i = 0; i < hooks->count; i++) {
        const struct instance *instance = &hooks->at[i];
        if (!instance->hook->wait_step) continue;
        const uint64_t step = instance->hook->wait_step(instance->state);
        if (step > latest) latest = step;
    }
    return latest;
}

/* ---- which there are ---- */

/* What concerns the run as a whole is done once, by the chief. */
static bool runs_here(const struct hook *hook, const struct run_view *view)
{
    return view->is_chief || hook->on_every_worker;
}

/* The state lives as long as the hooks, in their arena, and begins as zeros. */
static void add(struct hooks *hooks, const struct hook *hook, const void *attributes, int index)
{
    void *state = arena_new(&hooks->arena, hook->state_bytes);
    hooks->at[hooks->count++] =
        (struct instance){.hook = hook, .attributes = attributes, .state = state, .index = index};
}

static bool is_listed(const struct objects *list, const struct kind *kind)
{
    const struct variant *variants = list->at;
    for (int i = 0; i < list->count; i++)
        if (variants[i].kind == kind) return true;
    return false;
}

/* One that the keys of "train" ask for, unless the list has one of its type. */
static err add_standard(struct hooks *hooks, const struct kind *kind, const struct run_view *view)
{
    const struct hook *hook = kind->descriptor;
    if (!hook->standard || !runs_here(hook, view)) return OK;
    if (is_listed(&view->spec->train.hooks, kind)) return OK;
    void *attributes = arena_new(&hooks->arena, hook->object.size);
    TRY(fields_defaults(&hook->object, &hooks->arena, attributes));
    if (hook->standard(view, attributes)) add(hooks, hook, attributes, KEYS);
    return OK;
}

bool hooks_evaluate_while_training(const struct spec *spec)
{
    const struct train_spec *train = &spec->train;
    const struct variant *list = train->hooks.at;
    bool evaluates = train->evaluation.every_steps > 0 || train->evaluation.every_secs > 0;
    for (int i = 0; i < train->hooks.count; i++)
        evaluates |= strcmp(list[i].kind->object->name, "evaluation") == 0;
    return evaluates;
}

static int count_kinds(void)
{
    int count = 0;
    while (hook_kinds.at(count)) count++;
    return count;
}

static err add_all(struct hooks *hooks, const struct run_view *view)
{
    const struct objects *list = &view->spec->train.hooks;
    const struct variant *variants = list->at;
    const int kinds = count_kinds();
    hooks->at = arena_array(&hooks->arena, (size_t)(kinds + list->count), sizeof *hooks->at);
    for (int i = 0; i < kinds; i++) TRY(add_standard(hooks, hook_kinds.at(i), view));
    for (int i = 0; i < list->count; i++) {
        const struct hook *hook = variants[i].kind->descriptor;
        if (runs_here(hook, view)) add(hooks, hook, variants[i].attributes, i);
    }
    return OK;
}

/* A run without a place for summaries is still a run. */
static err open_events(struct run_view *view)
{
    if (!view->is_chief || !view->summary_dir) return OK;
    err e = events_open(view->summary_dir, view->wall_s, "", &view->hooks->events);
    if (!e) e = events_write_beside(view->hooks->events);
    view->events = view->hooks->events;
    if (e != ERR_IO) return e;
    log_line(LOG_WARNING, "no summaries are written: %s", error_text());
    return OK;
}

static err begin(struct instance *i, const struct run_view *view)
{
    return i->hook->begin ? forgive(i, i->hook->begin(i->state, i->attributes, view)) : OK;
}

/* The events file first: a hook may write when it begins. */
static err open_all(struct run_view *view, const struct own_hook *own)
{
    struct hooks *hooks = view->hooks;
    TRY(open_events(view));
    TRY(add_all(hooks, view));
    hooks->own = *own;
    for (int i = 0; i < hooks->count; i++) TRY(begin(&hooks->at[i], view));
    return OK;
}

err hooks_open(struct run_view *view, const struct own_hook *own)
{
    view->hooks = calloc(1, sizeof *view->hooks);
    if (!view->hooks) return fail(ERR_MEMORY, "no memory for hooks");
    const err e = open_all(view, own);
    if (e) hooks_close(view);
    return e;
}

err hooks_check(const struct run_view *view)
{
    const struct objects *list = &view->spec->train.hooks;
    const struct variant *variants = list->at;
    for (int i = 0; i < list->count; i++) {
        const struct hook *hook = variants[i].kind->descriptor;
        const err e = hook->check_names ? hook->check_names(variants[i].attributes, view) : OK;
        if (e) return fail_prefix(e, "train.hooks[%d]: %s", i, hook->object.name);
    }
    int best;
    const bool is_best_wanted = view->spec->train.evaluation.keep_best > 0 ||
                                view->spec->train.evaluation.best_metric != NULL;
    return is_best_wanted ? best_find_metric(view, &best) : OK;
}

/* States are zeroed before begin(), so that close() may see one that never began. */
void hooks_close(struct run_view *view)
{
    struct hooks *hooks = view->hooks;
    if (!hooks) return;
    for (int i = 0; i < hooks->count; i++)
        if (hooks->at[i].hook->close) hooks->at[i].hook->close(hooks->at[i].state);
    events_close(hooks->events);
    arena_free(&hooks->arena);
    free(hooks);
    view->hooks = NULL;
    view->events = NULL;
}

/* ---- timers ---- */

bool hook_timer_is_due(const struct hook_timer *timer, uint64_t step, uint64_t now_ns)
{
    if (!timer->has_fired) return true;
    if (step == timer->fired_step) return false;
    if (step < timer->fired_step) return true; /* a recovery went back to before it */
    if (timer->every_steps > 0) return step - timer->fired_step >= (uint64_t)timer->every_steps;
    const double passed_s = (double)(now_ns - timer->fired_ns) / 1e9;
    return timer->every_secs > 0 && passed_s >= timer->every_secs;
}

double steps_per_second(struct step_time from, struct step_time to)
{
    if (to.ns <= from.ns || to.step < from.step) return 0;
    return (double)(to.step - from.step) * 1e9 / (double)(to.ns - from.ns);
}

void hook_timer_fired(struct hook_timer *timer, uint64_t step, uint64_t now_ns)
{
    timer->has_fired = true;
    timer->fired_step = step;
    timer->fired_ns = now_ns;
}
