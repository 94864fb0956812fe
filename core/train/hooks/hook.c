/* hook.c - all hooks of one process: which there are, their order, and what their errors mean.
 *
 * Hooks do not see the runner's view but a copy of it, in which the writer of events is theirs and
 * what they ask for goes through here.
 */
#include "core/train/hooks/hook.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/log.h"

enum { WARNINGS_MAX = 5, LABEL_MAX = 96 };

struct instance {
    const struct hook *hook;
    const void *attributes;
    void *state;
    int index;         /* in the spec's list; -1: made from the keys of "train" */
    uint64_t failures; /* ERR_IO */
};

struct hooks {
    struct arena arena;
    struct instance *at;
    int count;
    struct events *events;        /* owned; NULL: none */
    const struct run_view *outer; /* as the runner gave it, in the call that is running */
};

/* What the runner says beside its view. */
struct occasion {
    const char *prefix, *why;            /* saved */
    const struct evaluation *evaluation; /* evaluated */
    const struct timeline *timeline;     /* traced */
    int code;                            /* end */
};

typedef err invoke_hook(const struct instance *, const struct run_view *, const struct occasion *);

/* ---- errors ---- */

/* As a person finds it in the spec; those of the keys have no place of their own there. */
static void label(const struct instance *i, char text[LABEL_MAX])
{
    const char *name = i->hook->object.name;
    if (i->index < 0)
        snprintf(text, LABEL_MAX, "%s", name);
    else
        snprintf(text, LABEL_MAX, "train.hooks[%d]: %s", i->index, name);
}

/* A disk that is full today may be empty tomorrow; training does not end for it. */
static err settle(struct instance *i, err e)
{
    char name[LABEL_MAX];
    if (!e) return OK;
    label(i, name);
    if (e != ERR_IO) return fail_prefix(e, "%s", name);
    if (++i->failures <= WARNINGS_MAX)
        log_line(LOG_WARNING, "%s: %s%s", name, error_text(),
                 i->failures == WARNINGS_MAX ? " (what follows is not told)" : "");
    return OK;
}

/* ---- the calls ---- */

static err invoke_begin(const struct instance *i, const struct run_view *view,
                        const struct occasion *o)
{
    return i->hook->begin ? i->hook->begin(i->state, i->attributes, view) : OK;
}

static err invoke_adopted(const struct instance *i, const struct run_view *view,
                          const struct occasion *o)
{
    return i->hook->adopted ? i->hook->adopted(i->state, view) : OK;
}

static err invoke_before(const struct instance *i, const struct run_view *view,
                         const struct occasion *o)
{
    return i->hook->before ? i->hook->before(i->state, view) : OK;
}

static err invoke_computed(const struct instance *i, const struct run_view *view,
                           const struct occasion *o)
{
    return i->hook->computed ? i->hook->computed(i->state, view) : OK;
}

static err invoke_stepped(const struct instance *i, const struct run_view *view,
                          const struct occasion *o)
{
    return i->hook->stepped ? i->hook->stepped(i->state, view) : OK;
}

static err invoke_saved(const struct instance *i, const struct run_view *view,
                        const struct occasion *o)
{
    return i->hook->saved ? i->hook->saved(i->state, view, o->prefix, o->why) : OK;
}

static err invoke_evaluated(const struct instance *i, const struct run_view *view,
                            const struct occasion *o)
{
    return i->hook->evaluated ? i->hook->evaluated(i->state, view, o->evaluation) : OK;
}

static err invoke_traced(const struct instance *i, const struct run_view *view,
                         const struct occasion *o)
{
    return i->hook->traced ? i->hook->traced(i->state, view, o->timeline) : OK;
}

static err invoke_end(const struct instance *i, const struct run_view *view,
                      const struct occasion *o)
{
    return i->hook->end ? i->hook->end(i->state, view, o->code) : OK;
}

/* ---- what hooks ask, passed on to the runner ---- */

static void ask_save(void *asker)
{
    const struct run_view *outer = ((struct hooks *)asker)->outer;
    outer->asks->save(outer->asker);
}

static void ask_stop(void *asker, err kind, const char *why)
{
    const struct run_view *outer = ((struct hooks *)asker)->outer;
    outer->asks->stop(outer->asker, kind, why);
}

/* Every hook learns of an evaluation, whoever asked for it. */
static err ask_evaluate(void *asker, struct evaluation *ret)
{
    struct hooks *hooks = asker;
    TRY(hooks->outer->asks->evaluate(hooks->outer->asker, ret));
    return hooks_evaluated(hooks, hooks->outer, ret);
}

static bool ask_trace(void *asker, uint64_t first_step, int steps)
{
    const struct run_view *outer = ((struct hooks *)asker)->outer;
    return outer->asks->trace && outer->asks->trace(outer->asker, first_step, steps);
}

static const struct run_asks asks = {
    .save = ask_save, .stop = ask_stop, .evaluate = ask_evaluate, .trace = ask_trace};

static struct run_view inner_view(struct hooks *hooks, const struct run_view *outer)
{
    struct run_view view = *outer;
    view.asks = &asks;
    view.asker = hooks;
    if (!view.events) view.events = hooks->events;
    return view;
}

/* One call of every hook in order, up to the first that fails. One may lie within another: an
 * evaluation is told while `before` runs. */
static err each(struct hooks *hooks, const struct run_view *outer, invoke_hook *invoke,
                const struct occasion *occasion)
{
    const struct run_view view = inner_view(hooks, outer), *const before = hooks->outer;
    err e = OK;
    hooks->outer = outer;
    for (int i = 0; i < hooks->count && !e; i++) {
        struct instance *instance = &hooks->at[i];
        e = settle(instance, invoke(instance, &view, occasion));
    }
    hooks->outer = before;
    return e;
}

err hooks_adopted(struct hooks *hooks, const struct run_view *view)
{
    return each(hooks, view, invoke_adopted, NULL);
}

err hooks_before(struct hooks *hooks, const struct run_view *view)
{
    return each(hooks, view, invoke_before, NULL);
}

err hooks_computed(struct hooks *hooks, const struct run_view *view)
{
    return each(hooks, view, invoke_computed, NULL);
}

err hooks_stepped(struct hooks *hooks, const struct run_view *view)
{
    return each(hooks, view, invoke_stepped, NULL);
}

err hooks_saved(struct hooks *hooks, const struct run_view *view, const char *prefix,
                const char *why)
{
    return each(hooks, view, invoke_saved, &(struct occasion){.prefix = prefix, .why = why});
}

err hooks_evaluated(struct hooks *hooks, const struct run_view *view,
                    const struct evaluation *evaluation)
{
    return each(hooks, view, invoke_evaluated, &(struct occasion){.evaluation = evaluation});
}

err hooks_traced(struct hooks *hooks, const struct run_view *view, const struct timeline *timeline)
{
    return each(hooks, view, invoke_traced, &(struct occasion){.timeline = timeline});
}

/* An end that fails does not take away the others' ends; the first failure is told. */
err hooks_end(struct hooks *hooks, const struct run_view *outer, int code)
{
    const struct run_view view = inner_view(hooks, outer);
    const struct occasion occasion = {.code = code};
    char why[ERROR_TEXT_MAX] = "";
    err first = OK;
    hooks->outer = outer;
    for (int i = 0; i < hooks->count; i++) {
        const err e = settle(&hooks->at[i], invoke_end(&hooks->at[i], &view, &occasion));
        if (!e || first) continue;
        first = e;
        snprintf(why, sizeof why, "%s", error_text());
    }
    hooks->outer = NULL;
    return first ? fail(first, "%s", why) : OK;
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

/* What belongs to the run as a whole is done once, by the chief. */
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
    if (hook->standard(view, attributes)) add(hooks, hook, attributes, -1);
    return OK;
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

/* Without a place for summaries a run is still a run. */
static err open_events(struct hooks *hooks, const struct run_view *view)
{
    if (!view->is_chief || !view->summary_dir || view->events) return OK;
    const err e = events_open(view->summary_dir, view->wall_s, "", &hooks->events);
    if (e != ERR_IO) return e;
    log_line(LOG_WARNING, "no summaries are written: %s", error_text());
    return OK;
}

/* Events first: a hook may write when it begins. */
static err open_all(struct hooks *hooks, const struct run_view *view)
{
    TRY(open_events(hooks, view));
    TRY(add_all(hooks, view));
    return each(hooks, view, invoke_begin, NULL);
}

err hooks_open(const struct run_view *view, struct hooks **ret)
{
    struct hooks *hooks = calloc(1, sizeof *hooks);
    if (!hooks) return fail(ERR_MEMORY, "no memory for hooks");
    const err e = open_all(hooks, view);
    if (e) {
        hooks_close(hooks);
        return e;
    }
    *ret = hooks;
    return OK;
}

/* States are zeroed before begin(), so that close() may see one that never began. */
void hooks_close(struct hooks *hooks)
{
    if (!hooks) return;
    for (int i = 0; i < hooks->count; i++)
        if (hooks->at[i].hook->close) hooks->at[i].hook->close(hooks->at[i].state);
    events_close(hooks->events);
    arena_free(&hooks->arena);
    free(hooks);
}
