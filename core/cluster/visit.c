/* visit.c - see visit.h. */
#include "core/cluster/visit.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/fields.h"
#include "core/cluster/verdict.h"
#include "core/cluster/visit_shared.h"

static const char step_name[] = "global_step";
static const char no_memory[] = "{\"error\": \"no memory for an answer\", \"code\": 1}";

struct visit {
    bool is_here, is_waiting; /* waiting: `ask` is still to be answered */
    struct ask ask;
    uint64_t sequence, asked_ms;
};

struct visits {
    struct visits_options options;
    struct visit_view view; /* slices NULL: none */
    struct shared shared;
    struct visit visitors[VISITORS_MAX];
    int waiting;                       /* of them */
    uint64_t version, trained_version; /* counts all changes; of the last one to the block */
    uint64_t step;
    double step_value; /* what a target of the step points to */
};

/* ---- answers ---- */

static void send(struct visits *v, int visitor, const char *text)
{
    const struct message m = {
        .type = MESSAGE_ANSWER,
        .sequence = v->visitors[visitor].sequence,
        .body = text,
        .body_bytes = (uint32_t)strlen(text),
    };
    v->options.answer(v->options.context, visitor, &m);
}

static void forget(struct visits *v, int visitor)
{
    struct visit *visit = &v->visitors[visitor];
    if (visit->is_waiting) v->waiting--;
    visit->is_waiting = false;
    ask_free(&visit->ask);
}

/* Takes the reference; the ask is done with. */
static void answer(struct visits *v, int visitor, json_t *json)
{
    char *text = json ? json_dumps(json, JSON_COMPACT) : NULL;
    bool fits = text && strlen(text) <= MESSAGE_BODY_MAX;
    send(v, visitor, fits ? text : no_memory);
    free(text);
    json_decref(json);
    forget(v, visitor);
}

/* A text may quote what was asked, and be cut within a character. */
static void answer_error(struct visits *v, int visitor, err e)
{
    json_t *text = json_string(error_text());
    if (!text) text = json_string("what was asked is wrong");
    answer(v, visitor, json_pack("{so si}", "error", text, "code", exit_code_of(e)));
}

/* ---- finding ---- */

static bool is_cut(const struct shard_slice *slice)
{
    return slice->shape.rank > 0 && slice->length < slice->shape.dim[slice->axis];
}

/* All slices of the name; a variable of more parts than ps has several here. */
static err find_trained(const struct visits *v, const char *name, struct target *ret)
{
    const struct visit_view *view = &v->view;
    struct target target = {.kind = TARGET_TRAINED, .name = name, .version = v->trained_version};
    for (int i = 0; i < view->slice_count; i++) {
        const struct shard_slice *slice = &view->slices[i];
        if (strcmp(slice->name, name) != 0) continue;
        void *more = realloc(target.parts, (size_t)(target.part_count + 1) * sizeof *target.parts);
        if (!more) {
            target_free(&target);
            return fail(ERR_MEMORY, "no memory for the parts of %s", name);
        }
        target.parts = more;
        target.shape = slice->shape;
        target.axis = is_cut(slice) ? slice->axis : 0;
        bool is_scalar = slice->shape.rank == 0;
        target.parts[target.part_count++] = (struct part){
            .start = is_cut(slice) ? slice->start : 0,
            .length = is_scalar       ? 1
                      : is_cut(slice) ? slice->length
                                      : slice->shape.dim[0],
            .floats = view->values + slice->offset,
        };
    }
    if (target.part_count) *ret = target;
    return OK;
}

/* One part that is the whole. */
static err find_doubles(struct target target, double *at, struct target *ret)
{
    target.parts = malloc(sizeof *target.parts);
    if (!target.parts) return fail(ERR_MEMORY, "no memory to look at %s", target.name);
    int64_t length = target.shape.rank ? target.shape.dim[0] : 1;
    target.parts[0] = (struct part){.length = length, .doubles = at};
    target.part_count = 1;
    *ret = target;
    return OK;
}

/* Leaves a target of kind TARGET_NONE where nothing has the name. */
static err find(struct visits *v, const char *name, struct target *ret)
{
    *ret = (struct target){.kind = TARGET_NONE, .name = name};
    if (v->options.has_step && strcmp(name, step_name) == 0) {
        v->step_value = (double)v->step;
        const struct target step = {
            .kind = TARGET_STEP, .name = name, .version = v->trained_version};
        return find_doubles(step, &v->step_value, ret);
    }
    TRY(find_trained(v, name, ret));
    if (ret->part_count) return OK;
    const struct shared_variable *variable = shared_find(&v->shared, name);
    if (!variable) return OK;
    const struct target shared = {.kind = TARGET_SHARED,
                                  .name = name,
                                  .shape = variable->value.shape,
                                  .version = variable->version};
    return find_doubles(shared, variable->value.at, ret);
}

static void answer_none(struct visits *v, int visitor)
{
    const char **names = calloc((size_t)(v->view.slice_count + v->shared.count + 1), sizeof *names);
    int count = 0;
    for (int i = 0; names && i < v->view.slice_count; i++) names[count++] = v->view.slices[i].name;
    for (int i = 0; names && i < v->shared.count; i++) names[count++] = v->shared.at[i].name;
    const char *near = nearest_name(v->visitors[visitor].ask.name, names, count);
    answer(v, visitor,
           json_pack("{ss sI ss*}", "kind", "none", "version", (json_int_t)v->trained_version,
                     "near", near));
    free(names);
}

/* ---- changes ---- */

static bool names_trained(const struct visits *v, const char *name)
{
    for (int i = 0; i < v->view.slice_count; i++)
        if (strcmp(v->view.slices[i].name, name) == 0) return true;
    return false;
}

static bool changes(const struct ask *ask)
{
    return ask->verb == VERB_SET || ask->verb == VERB_ADD;
}

/* A whole value for a shared variable makes it anew, so that it may get another shape. */
static bool makes_anew(const struct ask *ask, enum target_kind kind)
{
    if (ask->verb != VERB_SET || ask->change.selection.index_count) return false;
    return kind == TARGET_NONE ? ask->makes
                               : kind == TARGET_SHARED && ask->change.value.shape.rank > 0;
}

static err change(struct visits *v, struct ask *ask, const struct target *target)
{
    struct shared_variable *variable = NULL;
    if (makes_anew(ask, target->kind)) {
        TRY(shared_set(&v->shared, ask->name, &ask->change.value, &variable));
    } else {
        TRY(target_check(target, &ask->change));
        target_change(target, &ask->change);
        if (target->kind == TARGET_SHARED) variable = shared_find(&v->shared, ask->name);
    }
    v->version++;
    if (variable)
        variable->version = v->version;
    else
        v->trained_version = v->version;
    return OK;
}

static void answer_target(struct visits *v, int visitor)
{
    struct target target;
    const struct ask *ask = &v->visitors[visitor].ask;
    err e = find(v, ask->name, &target);
    if (!e && target.kind != TARGET_NONE) e = target_check_index(&target, &ask->change.selection);
    if (e)
        answer_error(v, visitor, e);
    else if (target.kind == TARGET_NONE)
        answer_none(v, visitor);
    else
        answer(v, visitor, target_json(&target, &ask->change.selection));
    target_free(&target);
}

/* Changes and answers. What else can be wrong with the change is found here. */
static void make_change(struct visits *v, int visitor)
{
    struct ask *ask = &v->visitors[visitor].ask;
    struct target target;
    err e = find(v, ask->name, &target);
    bool is_none = !e && target.kind == TARGET_NONE && !makes_anew(ask, target.kind);
    if (!e && !is_none) e = change(v, ask, &target);
    target_free(&target);
    if (e)
        answer_error(v, visitor, e);
    else if (is_none)
        answer_none(v, visitor);
    else
        answer_target(v, visitor);
}

/* ---- list ---- */

/* A variable of several parts here is named by the first of them. */
static bool is_first_part(const struct visit_view *view, int index)
{
    for (int i = 0; i < index; i++)
        if (strcmp(view->slices[i].name, view->slices[index].name) == 0) return false;
    return true;
}

static void add_row(json_t *rows, const char *name, enum target_kind kind,
                    const struct shape *shape)
{
    json_array_append_new(rows, json_pack("{ss ss so}", "name", name, "kind",
                                          target_kind_name(kind), "shape", value_shape(shape)));
}

/* Everything here has a place: the step, then slices, then shared variables. */
static void add_place(const struct visits *v, uint64_t place, json_t *rows)
{
    const struct shape scalar = {0};
    uint64_t slices = (uint64_t)v->view.slice_count;
    if (place == 0) {
        if (v->options.has_step) add_row(rows, step_name, TARGET_STEP, &scalar);
    } else if (place <= slices) {
        const struct shard_slice *slice = &v->view.slices[place - 1];
        if (is_first_part(&v->view, (int)place - 1))
            add_row(rows, slice->name, TARGET_TRAINED, &slice->shape);
    } else {
        const struct shared_variable *variable = &v->shared.at[place - 1 - slices];
        add_row(rows, variable->name, TARGET_SHARED, &variable->value.shape);
    }
}

static void answer_list(struct visits *v, int visitor)
{
    uint64_t places = 1 + (uint64_t)v->view.slice_count + (uint64_t)v->shared.count;
    uint64_t from = v->visitors[visitor].ask.from, to = places;
    if (from > places) from = places;
    if (to - from > VISIT_PAGE_MAX) to = from + VISIT_PAGE_MAX;
    json_t *rows = json_array();
    for (uint64_t place = from; place < to; place++) add_place(v, place, rows);
    json_t *json = json_pack("{so}", "variables", rows);
    if (to < places) json_object_set_new(json, "next", json_integer((json_int_t)to));
    answer(v, visitor, json);
}

/* ---- waiting ---- */

static void wait_on(struct visits *v, int visitor)
{
    struct visit *visit = &v->visitors[visitor];
    if (!visit->is_waiting) v->waiting++;
    visit->is_waiting = true;
}

static uint64_t version_of(const struct visits *v, const char *name)
{
    const struct shared_variable *variable = shared_find(&v->shared, name);
    if (variable && !names_trained(v, name)) return variable->version;
    return v->trained_version;
}

/* Trained variables that are described and not filled yet have no values to show. */
static bool is_filled(const struct visits *v, const char *name)
{
    return v->view.has_values || !names_trained(v, name);
}

/* May a get be answered now? now_ms 0: no time has passed since it was last looked at. */
static bool is_due(const struct visits *v, const struct visit *visit, uint64_t now_ms)
{
    const struct ask *ask = &visit->ask;
    if (ask->since == 0) return true;
    bool is_early = ask->every_ms && (!now_ms || now_ms - visit->asked_ms < ask->every_ms);
    return !is_early && ask->since != version_of(v, ask->name) && is_filled(v, ask->name);
}

static void answer_watchers(struct visits *v, uint64_t now_ms)
{
    for (int i = 0; i < VISITORS_MAX && v->waiting; i++) {
        struct visit *visit = &v->visitors[i];
        if (visit->is_waiting && visit->ask.verb == VERB_GET && is_due(v, visit, now_ms))
            answer_target(v, i);
    }
}

static void attempt(struct visits *v, int visitor, uint64_t now_ms)
{
    struct visit *visit = &v->visitors[visitor];
    const struct ask *ask = &visit->ask;
    if (ask->verb == VERB_LIST) {
        answer_list(v, visitor);
    } else if (!is_filled(v, ask->name)) {
        err e = fail(ERR_PEER, "%s has no values yet: the chief has not filled it", ask->name);
        answer_error(v, visitor, e);
    } else if (changes(ask)) {
        if (v->view.is_in_use && names_trained(v, ask->name)) {
            wait_on(v, visitor);
            return;
        }
        make_change(v, visitor);
        answer_watchers(v, now_ms);
    } else if (is_due(v, visit, now_ms)) {
        answer_target(v, visitor);
    } else {
        wait_on(v, visitor);
    }
}

void visits_ask(struct visits *v, int visitor, const struct message *m, uint64_t now_ms)
{
    struct visit *visit = &v->visitors[visitor];
    forget(v, visitor);
    visit->sequence = m->sequence;
    visit->asked_ms = now_ms;
    err e = ask_read(m->body, m->body_bytes, &visit->ask);
    if (e)
        answer_error(v, visitor, e);
    else
        attempt(v, visitor, now_ms);
}

/* ---- what happens on the ps ---- */

void visits_show(struct visits *v, const struct visit_view *view)
{
    v->view = view ? *view : (struct visit_view){0};
    v->trained_version = ++v->version;
    for (int i = 0; i < VISITORS_MAX && v->waiting; i++) {
        struct visit *visit = &v->visitors[i];
        if (visit->is_waiting && changes(&visit->ask)) attempt(v, i, 0);
    }
}

void visits_round(struct visits *v)
{
    for (int i = 0; i < VISITORS_MAX && v->waiting; i++) {
        struct visit *visit = &v->visitors[i];
        if (visit->is_waiting && changes(&visit->ask)) make_change(v, i);
    }
}

void visits_changed(struct visits *v, uint64_t step)
{
    v->step = step;
    v->trained_version = ++v->version;
    answer_watchers(v, 0);
}

/* A get that waited long enough hears that nothing changed; a change, that it was not made. */
static void expire(struct visits *v, int visitor)
{
    struct visit *visit = &v->visitors[visitor];
    if (visit->ask.verb == VERB_GET) {
        answer(v, visitor,
               json_pack("{sI sb}", "version", (json_int_t)visit->ask.since, "unchanged", 1));
        return;
    }
    err e = fail(ERR_TIMEOUT,
                 "%s was not changed: no step ended within %llu s (--step_timeout of the ps)",
                 visit->ask.name, (unsigned long long)v->options.change_limit_ms / 1000);
    answer_error(v, visitor, e);
}

void visits_tick(struct visits *v, uint64_t now_ms)
{
    answer_watchers(v, now_ms);
    for (int i = 0; i < VISITORS_MAX && v->waiting; i++) {
        const struct visit *visit = &v->visitors[i];
        if (!visit->is_waiting) continue;
        uint64_t limit_ms =
            visit->ask.verb == VERB_GET ? visit->ask.limit_ms : v->options.change_limit_ms;
        if (now_ms - visit->asked_ms >= limit_ms) expire(v, i);
    }
}

/* Watchers need no answer: the verdict is one. */
void visits_end(struct visits *v)
{
    for (int i = 0; i < VISITORS_MAX && v->waiting; i++) {
        struct visit *visit = &v->visitors[i];
        if (!visit->is_waiting) continue;
        if (!changes(&visit->ask)) {
            forget(v, i);
            continue;
        }
        err e = fail(ERR_PEER, "%s was not changed: the job ends", visit->ask.name);
        answer_error(v, i, e);
    }
}

/* ---- life ---- */

err visits_open(const struct visits_options *options, struct visits **ret)
{
    struct visits *v = calloc(1, sizeof *v);
    if (!v) return fail(ERR_MEMORY, "no memory for visitors");
    v->options = *options;
    v->version = v->trained_version = 1;
    *ret = v;
    return OK;
}

void visits_close(struct visits *v)
{
    if (!v) return;
    for (int i = 0; i < VISITORS_MAX; i++) forget(v, i);
    shared_free(&v->shared);
    free(v);
}

int visits_enter(struct visits *v)
{
    for (int i = 0; i < VISITORS_MAX; i++)
        if (!v->visitors[i].is_here) {
            v->visitors[i] = (struct visit){.is_here = true};
            return i;
        }
    return -1;
}

void visits_leave(struct visits *v, int visitor)
{
    forget(v, visitor);
    v->visitors[visitor].is_here = false;
}
