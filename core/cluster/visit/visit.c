/* visit.c - see visit.h. */
#include <stdlib.h>
#include <string.h>

#include "core/base/json_foreign.h"
#include "core/base/log_kept.h"
#include "core/cluster/role/verdict.h"
#include "core/cluster/visit/body.h"
#include "core/cluster/visit/visit_inside.h"

enum { SCAN_ELEMENTS = 1 << 18 }; /* in one piece */

static const char no_memory[] = "{\"error\": \"no memory for an answer\", \"code\": 1}";

/* ---- answers ---- */

static void send(struct visits *v, int visitor, const void *body, size_t bytes)
{
    const struct message m = {
        .type = MESSAGE_ANSWER,
        .answer.number = v->visitors[visitor].number,
        .body = body,
        .body_bytes = (uint32_t)bytes,
    };
    v->options.answer(v->options.context, visitor, &m);
}

static void forget(struct visits *v, int visitor)
{
    struct visit *visit = &v->visitors[visitor];
    if (visit->is_waiting) v->waiting--;
    visit->is_waiting = visit->is_scanning = false;
    ask_free(&visit->ask);
}

/* Takes ownership of body; NULL: no memory for it. */
static void answer_body(struct visits *v, int visitor, unsigned char *body, size_t bytes)
{
    const bool fits = body && bytes <= MESSAGE_BODY_MAX;
    send(v, visitor, fits ? (const void *)body : no_memory, fits ? bytes : strlen(no_memory));
    free(body);
    forget(v, visitor);
}

void visits_answer(struct visits *v, int visitor, json_t *json)
{
    size_t bytes = 0;
    unsigned char *numbers, *body = json ? visit_body_make(json, 0, &bytes, &numbers) : NULL;
    json_decref(json);
    answer_body(v, visitor, body, bytes);
}

/* The text may quote the request, and be cut within a character. */
static void answer_error(struct visits *v, int visitor, err e)
{
    json_t *text = json_string(error_text());
    if (!text) text = json_string("what was asked is wrong");
    visits_answer(v, visitor, json_pack("{so si}", "error", text, "code", exit_code_of(e)));
}

/* ---- values ---- */

static void wait_on(struct visits *v, int visitor)
{
    struct visit *visit = &v->visitors[visitor];
    if (!visit->is_waiting) v->waiting++;
    visit->is_waiting = true;
}

static void answer_values(struct visits *v, int visitor, const struct target *target)
{
    int64_t count = 0;
    size_t bytes = 0;
    unsigned char *numbers, *body = NULL;
    const struct selection *selection = &v->visitors[visitor].ask.change.selection;
    json_t *json = target_json(target, selection, &count);
    if (json) body = visit_body_make(json, (size_t)count, &bytes, &numbers);
    if (body) target_write(target, selection, numbers);
    json_decref(json);
    answer_body(v, visitor, body, bytes);
}

/* The summary of a large variable is made by visits_work(). */
static void answer_target(struct visits *v, int visitor)
{
    struct target target;
    struct visit *visit = &v->visitors[visitor];
    const struct selection *selection = &visit->ask.change.selection;
    err e = visits_find(v, visit->ask.name, &target);
    if (!e && target.kind != TARGET_NONE) e = target_check_index(&target, selection);
    if (e) {
        answer_error(v, visitor, e);
    } else if (target.kind == TARGET_NONE) {
        visits_answer_none(v, visitor);
    } else if (target_is_large(&target, selection)) {
        wait_on(v, visitor);
        visit->is_scanning = true;
        visit->scan = (struct scan){0};
    } else {
        answer_values(v, visitor, &target);
    }
    target_free(&target);
}

/* Trained variables have no values until the chief has filled them. */
static bool is_filled(const struct visits *v, const char *name)
{
    return v->view.has_values || !visits_names_trained(v, name);
}

static void scan_on(struct visits *v, int visitor)
{
    struct target target;
    struct visit *visit = &v->visitors[visitor];
    err e = visits_find(v, visit->ask.name, &target);
    if (e || !target_is_large(&target, &visit->ask.change.selection) ||
        !is_filled(v, visit->ask.name))
        answer_error(v, visitor, fail(ERR_PEER, "%s has left meanwhile", visit->ask.name));
    else if (target_scan(&target, &visit->scan, SCAN_ELEMENTS))
        visits_answer(v, visitor, target_summary(&target, &visit->scan));
    target_free(&target);
}

/* ---- changes ---- */

static bool changes(const struct ask *ask)
{
    return ask->verb == VERB_SET || ask->verb == VERB_ADD;
}

/* Setting a whole shared variable replaces it, so that it may get another shape. */
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

/* Makes the change and answers, after the remaining checks. */
static void make_change(struct visits *v, int visitor)
{
    struct ask *ask = &v->visitors[visitor].ask;
    const struct visits_options *o = &v->options;
    const struct shape shape = ask->change.value.shape;
    const double first = ask->change.value.count ? ask->change.value.at[0] : 0;
    struct target target;
    err e = visits_find(v, ask->name, &target);
    bool is_none = !e && target.kind == TARGET_NONE && !makes_anew(ask, target.kind);
    if (!e && !is_none) e = change(v, ask, &target);
    target_free(&target);
    if (e) {
        answer_error(v, visitor, e);
    } else if (is_none) {
        visits_answer_none(v, visitor);
    } else {
        if (o->changed) o->changed(o->context, visitor, ask, &shape, first);
        ask->verb = VERB_GET; /* only the answer is left */
        ask->since = 0;
        answer_target(v, visitor);
    }
}

/* ---- waiting ---- */

static uint64_t version_of(const struct visits *v, const char *name)
{
    const struct shared_variable *variable = shared_find(&v->shared, name);
    if (variable && !visits_names_trained(v, name)) return variable->version;
    return v->trained_version;
}

/* Whether a get can be answered now. */
static bool is_due(const struct visits *v, const struct visit *visit, uint64_t now_ms)
{
    const struct ask *ask = &visit->ask;
    if (ask->since == 0) return true;
    bool is_early = now_ms - visit->asked_ms < ask->every_ms;
    return !is_early && ask->since != version_of(v, ask->name) && is_filled(v, ask->name);
}

/* ---- another membership ---- */

static void scale(struct visits *v, int visitor)
{
    const struct visits_options *o = &v->options;
    const char *why = "ps/0 is to be asked for that";
    if (o->scale) why = o->scale(o->context, v->visitors[visitor].ask.count);
    if (why)
        answer_error(v, visitor, fail(ERR_PEER, "the job is not resized: %s", why));
    else
        wait_on(v, visitor);
}

static bool waits_for_scale(const struct visit *visit)
{
    return visit->is_waiting && visit->ask.verb == VERB_SCALE;
}

void visits_scaled(struct visits *v, const struct membership *r, uint64_t step)
{
    for (int i = 0; i < VISITORS_MAX; i++)
        if (waits_for_scale(&v->visitors[i]))
            visits_answer(v, i,
                          json_pack("{sI si si sI}", "resizes", (json_int_t)r->resizes, "ps",
                                    r->count[JOB_PS], "workers", r->count[JOB_WORKER], "step",
                                    (json_int_t)step));
}

void visits_refuse_scale(struct visits *v, int code, const char *why)
{
    for (int i = 0; i < VISITORS_MAX; i++)
        if (waits_for_scale(&v->visitors[i]))
            visits_answer(v, i,
                          json_pack("{so si}", "error",
                                    json_sprintf("the job is not resized: %s", why), "code", code));
}

/* ---- the job ---- */

static bool has_reply(const struct ask *ask)
{
    return ask->verb == VERB_LOG || ask->verb == VERB_PROFILE || ask->verb == VERB_SETTING;
}

static bool waits_for_reply(const struct visit *visit)
{
    return visit->is_waiting && has_reply(&visit->ask);
}

static uint64_t reply_limit_ms(const struct visits *v, const struct ask *ask)
{
    return ask->verb == VERB_SETTING ? v->options.setting_limit_ms : v->options.change_limit_ms;
}

/* NULL: too many pending replies. Those that a worker has not sent within the limit do not count.
 */
static struct due *find_due(struct visits *v, int worker, uint64_t now_ms)
{
    int of_worker = 0;
    struct due *free_one = NULL;
    for (int i = 0; i < DUE_MAX; i++) {
        struct due *due = &v->dues[i];
        if (due->request_id && now_ms >= due->until_ms) due->request_id = 0;
        if (!due->request_id)
            free_one = due;
        else if (due->worker == worker)
            of_worker++;
    }
    return of_worker < DUE_OF_WORKER_MAX ? free_one : NULL;
}

/* Requests to the chief do not name a worker yet. */
static const char *request_of(struct visits *v, int visitor)
{
    const struct visits_options *o = &v->options;
    struct visit *visit = &v->visitors[visitor];
    struct ask *ask = &visit->ask;
    if (!o->request) return "ps/0 is to be asked for that";
    const bool is_chiefs = ask->verb == VERB_SAVE || ask->verb == VERB_PROFILE;
    if (o->chief && (is_chiefs || ask->verb == VERB_SETTING)) ask->worker = o->chief(o->context);
    struct due *due = has_reply(ask) ? find_due(v, ask->worker, visit->asked_ms) : NULL;
    if (has_reply(ask) && !due) return "that worker is busy: try again";
    ask->request_id = ++v->asked;
    const char *why = o->request(o->context, visitor, ask);
    if (!why && due)
        *due = (struct due){ask->request_id, visit->asked_ms + reply_limit_ms(v, ask), ask->worker};
    return why;
}

/* The answer says how long it may take, if the task that does it is away. */
static json_t *asked_json(const struct visits *v)
{
    char text[VISIT_WHY_MAX] = "";
    const struct visits_options *o = &v->options;
    const uint64_t limit_ms = o->waits ? o->waits(o->context, text, sizeof text) : 0;
    if (!limit_ms) return json_pack("{sb}", "asked", 1);
    return json_pack("{sb ss sI}", "asked", 1, "waits", text, "limit_ms", (json_int_t)limit_ms);
}

static void request(struct visits *v, int visitor)
{
    const struct ask *ask = &v->visitors[visitor].ask;
    const char *why = request_of(v, visitor);
    if (why)
        answer_error(v, visitor, fail(ERR_PEER, "%s", why));
    else if (has_reply(ask))
        wait_on(v, visitor);
    else
        visits_answer(v, visitor, asked_json(v));
}

static bool take_due(struct visits *v, int worker, uint64_t request_id)
{
    for (int i = 0; i < DUE_MAX && request_id; i++)
        if (v->dues[i].request_id == request_id && v->dues[i].worker == worker) {
            v->dues[i].request_id = 0;
            return true;
        }
    return false;
}

void visits_replied(struct visits *v, int worker, uint64_t request_id, const void *text,
                    size_t bytes)
{
    if (!take_due(v, worker, request_id)) return;
    for (int i = 0; i < VISITORS_MAX && v->waiting; i++) {
        json_t *reply;
        if (!waits_for_reply(&v->visitors[i]) || v->visitors[i].ask.request_id != request_id)
            continue;
        const err e = json_read_foreign(text, bytes, 0, &reply);
        if (!e && json_is_object(reply)) {
            visits_answer(v, i, reply);
        } else {
            json_decref(reply);
            answer_error(v, i,
                         e ? fail_prefix(e, "the reply of the worker")
                           : fail(ERR_PEER, "the reply of the worker is no object"));
        }
        return;
    }
}

/* ---- all that is asked ---- */

static void attempt(struct visits *v, int visitor, uint64_t now_ms)
{
    struct visit *visit = &v->visitors[visitor];
    const struct ask *ask = &visit->ask;
    if (ask->verb == VERB_SCALE) {
        scale(v, visitor);
    } else if (ask->verb == VERB_STATUS) {
        const struct visits_options *o = &v->options;
        visits_answer(v, visitor, o->status ? o->status(o->context, ask->from) : NULL);
    } else if (ask->verb == VERB_LOG && ask->worker == NO_WORKER) {
        visits_answer(v, visitor, log_kept_json(ask->from, ask->last));
    } else if (ask->verb >= VERB_STOP) {
        request(v, visitor);
    } else if (ask->verb == VERB_LIST) {
        visits_answer_list(v, visitor);
    } else if (!is_filled(v, ask->name)) {
        err e = fail(ERR_PEER, "%s has no values yet: the chief has not filled it", ask->name);
        answer_error(v, visitor, e);
    } else if (changes(ask)) {
        if (v->view.is_in_use && visits_names_trained(v, ask->name)) {
            wait_on(v, visitor);
            return;
        }
        make_change(v, visitor);
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
    visit->number = m->ask.number;
    visit->asked_ms = visit->heard_ms = now_ms;
    err e = ask_read(m->body, m->body_bytes, &visit->ask);
    if (!e && !visit->may_change && !ask_only_looks(&visit->ask))
        e = fail(ERR_INPUT, "its certificate is that of a visitor that changes nothing "
                            "(URI:dtrain:reader)");
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
        visit->scan = (struct scan){0}; /* of the previous view */
        if (visit->is_waiting && changes(&visit->ask)) attempt(v, i, visit->asked_ms);
    }
}

/* Round robin, so that each visitor gets its turn. */
static int take_turn(struct visits *v)
{
    const int visitor = v->next;
    v->next = (visitor + 1) % VISITORS_MAX;
    return visitor;
}

static bool waits_for_round(const struct visit *visit)
{
    return visit->is_waiting && changes(&visit->ask);
}

bool visits_wait_for_round(const struct visits *v)
{
    for (int i = 0; i < VISITORS_MAX && v->waiting; i++)
        if (waits_for_round(&v->visitors[i])) return true;
    return false;
}

bool visits_round(struct visits *v)
{
    for (int i = 0; i < VISITORS_MAX; i++) {
        const int visitor = take_turn(v);
        if (!waits_for_round(&v->visitors[visitor])) continue;
        make_change(v, visitor);
        return true;
    }
    return false;
}

static bool waits_for_work(const struct visits *v, const struct visit *visit, uint64_t now_ms)
{
    if (!visit->is_waiting) return false;
    return visit->is_scanning || (visit->ask.verb == VERB_GET && is_due(v, visit, now_ms));
}

bool visits_wait_for_work(const struct visits *v, uint64_t now_ms)
{
    for (int i = 0; i < VISITORS_MAX && v->waiting; i++)
        if (waits_for_work(v, &v->visitors[i], now_ms)) return true;
    return false;
}

bool visits_work(struct visits *v, uint64_t now_ms)
{
    for (int i = 0; i < VISITORS_MAX && v->waiting; i++) {
        const int visitor = take_turn(v);
        const struct visit *visit = &v->visitors[visitor];
        if (!waits_for_work(v, visit, now_ms)) continue;
        (visit->is_scanning ? scan_on : answer_target)(v, visitor);
        return true;
    }
    return false;
}

void visits_changed(struct visits *v, uint64_t step)
{
    v->step = step;
    v->trained_version = ++v->version;
}

/* Answers a get whose limit is over with "unchanged", and a change with an error. */
static void expire(struct visits *v, int visitor)
{
    struct visit *visit = &v->visitors[visitor];
    if (waits_for_reply(visit)) {
        const uint64_t limit_ms = reply_limit_ms(v, &visit->ask);
        const bool is_of_steps = limit_ms == v->options.change_limit_ms;
        answer_error(v, visitor,
                     fail(ERR_TIMEOUT, "no worker has replied within %llu s (%s of the ps)",
                          (unsigned long long)limit_ms / 1000,
                          is_of_steps ? "--step_timeout" : "twice --save_timeout"));
        return;
    }
    if (visit->ask.verb == VERB_GET) {
        visits_answer(
            v, visitor,
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
    for (int i = 0; i < VISITORS_MAX && v->waiting; i++) {
        const struct visit *visit = &v->visitors[i];
        const bool has_limit = !visit->is_scanning && !waits_for_scale(visit);
        if (!visit->is_waiting || !has_limit) continue;
        const uint64_t limit_ms =
            visit->ask.verb == VERB_GET ? visit->ask.limit_ms : reply_limit_ms(v, &visit->ask);
        if (now_ms - visit->asked_ms >= limit_ms) expire(v, i);
    }
}

/* Gets with since need no answer: the verdict suffices. */
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

int visits_enter(struct visits *v, bool may_change, uint64_t now_ms)
{
    for (int i = 0; i < VISITORS_MAX; i++)
        if (!v->visitors[i].is_here) {
            v->visitors[i] =
                (struct visit){.is_here = true, .may_change = may_change, .heard_ms = now_ms};
            return i;
        }
    return -1;
}

/* Among visitors that wait for an answer, or among those that do not. */
static int find_silent(const struct visits *v, uint64_t now_ms, bool is_waiting)
{
    int silent = -1;
    uint64_t longest_ms = VISIT_SPARED_MS - 1;
    for (int i = 0; i < VISITORS_MAX; i++) {
        const struct visit *visit = &v->visitors[i];
        if (!visit->is_here || visit->is_waiting != is_waiting ||
            now_ms - visit->heard_ms <= longest_ms)
            continue;
        longest_ms = now_ms - visit->heard_ms;
        silent = i;
    }
    return silent;
}

int visits_silent(const struct visits *v, uint64_t now_ms)
{
    const int idle = find_silent(v, now_ms, false);
    return idle >= 0 ? idle : find_silent(v, now_ms, true);
}

void visits_leave(struct visits *v, int visitor)
{
    forget(v, visitor);
    v->visitors[visitor].is_here = false;
}
