/* ask.c - see ask.h. */
#include "core/cluster/visit/ask.h"

#include <ctype.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/json_foreign.h"
#include "core/cluster/visit/body.h"
#include "core/train/summary/timeline.h"

static const char *const verbs[VERB_COUNT] = {"list",    "get",     "set",  "add",   "scale",
                                              "status",  "stop",    "save", "leave", "absent",
                                              "profile", "setting", "log"};

/* The members as parsed; absent ones are zero. */
struct members {
    const char *verb, *name, *why, *to;
    json_t *index, *shape;
    json_int_t rows, since, every_ms, limit_ms, from, last, steps, ps, workers, worker;
    int makes;
};

static err read_verb(const char *name, enum verb *ret)
{
    const int verb = text_find(verbs, VERB_COUNT, name);
    *ret = (enum verb)verb;
    if (verb >= 0) return OK;
    return fail(ERR_INPUT, "do: expected list, get, set, add, scale, status, stop, save, "
                           "leave, absent, profile, setting or log");
}

/* Names are ASCII, ours and TensorFlow's; so texts that quote one can be cut anywhere. */
static err read_name(const char *name, char ret[VISIT_NAME_MAX])
{
    if (!name) return fail(ERR_INPUT, "name: missing");
    if (strlen(name) >= VISIT_NAME_MAX)
        return fail(ERR_INPUT, "name: longer than %d characters", VISIT_NAME_MAX - 1);
    for (const char *c = name; *c; c++)
        if (!isgraph((unsigned char)*c))
            return fail(ERR_INPUT, "name: a character that no name has");
    strcpy(ret, name);
    return OK;
}

static err read_index(json_t *index, struct selection *ret)
{
    if (!index) return OK;
    if (!json_is_array(index) || json_array_size(index) > RANK_MAX)
        return fail(ERR_INPUT, "index: expected a list of at most %d integers", RANK_MAX);
    for (size_t i = 0; i < json_array_size(index); i++) {
        json_t *number = json_array_get(index, i);
        if (!json_is_integer(number)) return fail(ERR_INPUT, "index: expected integers");
        ret->index[i] = json_integer_value(number);
    }
    ret->index_count = (int)json_array_size(index);
    return OK;
}

static err read_times(const struct members *m, struct ask *ask)
{
    if (m->since < 0 || m->every_ms < 0 || m->limit_ms < 0 || m->from < 0)
        return fail(ERR_INPUT, "since, every_ms, limit_ms and from are not negative");
    ask->since = (uint64_t)m->since;
    ask->every_ms = (uint64_t)m->every_ms;
    ask->limit_ms = (uint64_t)m->limit_ms;
    if (ask->limit_ms > VISIT_WAIT_MAX_MS) ask->limit_ms = VISIT_WAIT_MAX_MS;
    ask->from = (uint64_t)m->from;
    return OK;
}

/* One dimension after the other: their product stays within the limit. */
static err read_shape(json_t *list, struct value *value)
{
    value->count = 1;
    if (!list) return fail(ERR_INPUT, "shape: missing");
    if (!json_is_array(list) || json_array_size(list) > RANK_MAX)
        return fail(ERR_INPUT, "shape: expected a list of at most %d integers", RANK_MAX);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_int_t length = json_integer_value(json_array_get(list, i));
        if (length < 1 || length > VISIT_ELEMENTS_MAX / value->count)
            return fail(ERR_INPUT, "shape: no numbers, or more than %d", VISIT_ELEMENTS_MAX);
        value->shape.dim[value->shape.rank++] = length;
        value->count *= length;
    }
    return OK;
}

static err read_value(json_t *shape, const struct visit_body *body, struct value *value)
{
    TRY(read_shape(shape, value));
    if ((size_t)value->count != body->count)
        return fail(ERR_INPUT, "value: %zu numbers where the shape has %lld", body->count,
                    (long long)value->count);
    value->at = malloc(body->count * sizeof *value->at);
    if (!value->at) return fail(ERR_MEMORY, "no memory for %zu numbers", body->count);
    for (size_t i = 0; i < body->count; i++) {
        value->at[i] = visit_body_number(body, i);
        if (!isfinite(value->at[i])) return fail(ERR_INPUT, "value: not a finite number");
    }
    return OK;
}

static err read_counts(const struct members *m, struct ask *ask)
{
    if (m->ps < 0 || m->workers < 0 || m->ps > INT_MAX || m->workers > INT_MAX)
        return fail(ERR_INPUT, "ps, workers: expected how many there are to be");
    ask->count[JOB_PS] = (int)m->ps;
    ask->count[JOB_WORKER] = (int)m->workers;
    return OK;
}

static err read_worker(const struct members *m, struct ask *ask)
{
    const bool may_be_none =
        (ask->verb == VERB_LOG || ask->verb == VERB_STOP) && m->worker == NO_WORKER;
    if ((m->worker < 0 && !may_be_none) || m->worker > INT_MAX)
        return fail(ERR_INPUT, "worker: expected the index of one");
    if (m->last < 0) return fail(ERR_INPUT, "last: expected how many lines");
    ask->worker = (int)m->worker;
    ask->last = (uint64_t)m->last;
    return OK;
}

static err read_steps(const struct members *m, struct ask *ask)
{
    if (m->steps < 1 || m->steps > TIMELINE_STEPS_MAX)
        return fail(ERR_INPUT, "steps: expected 1 to %d", TIMELINE_STEPS_MAX);
    ask->steps = (int)m->steps;
    return OK;
}

/* The chief checks further; without name all settings are requested. */
static err read_setting(const struct members *m, struct ask *ask)
{
    if (!m->name) return OK;
    TRY(read_name(m->name, ask->name));
    if (!m->to || strlen(m->to) >= VISIT_SETTING_MAX)
        return fail(ERR_INPUT, "to: expected less than %d characters", VISIT_SETTING_MAX);
    for (const char *c = m->to; *c; c++)
        if (!isgraph((unsigned char)*c))
            return fail(ERR_INPUT, "to: a character that no value has");
    strcpy(ask->value, m->to);
    return OK;
}

/* Made printable, as it is logged and becomes part of verdicts. */
static void read_why(const char *why, char ret[VISIT_WHY_MAX])
{
    size_t used = 0;
    for (; why && why[used] && used < VISIT_WHY_MAX - 1; used++)
        ret[used] = isprint((unsigned char)why[used]) ? why[used] : '?';
    ret[used] = '\0';
}

static bool names_nothing(enum verb verb)
{
    return verb == VERB_LIST || verb == VERB_STATUS || verb == VERB_SAVE;
}

static err read_members(const struct members *m, const struct visit_body *body, struct ask *ask)
{
    TRY(read_verb(m->verb, &ask->verb));
    TRY(read_times(m, ask));
    if (ask->verb == VERB_SCALE) return read_counts(m, ask);
    if (ask->verb == VERB_ABSENT) read_why(m->why, ask->why);
    if (ask->verb == VERB_LEAVE || ask->verb == VERB_ABSENT || ask->verb == VERB_LOG ||
        ask->verb == VERB_STOP)
        return read_worker(m, ask);
    if (ask->verb == VERB_PROFILE) return read_steps(m, ask);
    if (ask->verb == VERB_SETTING) return read_setting(m, ask);
    if (names_nothing(ask->verb)) return OK;
    TRY(read_name(m->name, ask->name));
    TRY(read_index(m->index, &ask->change.selection));
    if (m->rows < 0 || (m->rows && ask->change.selection.index_count != 1))
        return fail(ERR_INPUT, "rows: expected how many from one index on");
    ask->change.selection.rows = m->rows;
    if (ask->verb == VERB_GET) return OK;
    ask->change.is_add = ask->verb == VERB_ADD;
    ask->makes = m->makes;
    return read_value(m->shape, body, &ask->change.value);
}

static err read_json(json_t *json, const struct visit_body *body, struct ask *ret)
{
    struct members m = {.worker = NO_WORKER};
    json_error_t error;
    int failed = json_unpack_ex(
        json, &error, JSON_STRICT,
        "{ss s?s s?o s?I s?o s?I s?I s?I s?I s?b s?I s?I s?I s?s s?s s?I s?I}", "do", &m.verb,
        "name", &m.name, "index", &m.index, "rows", &m.rows, "shape", &m.shape, "since", &m.since,
        "every_ms", &m.every_ms, "limit_ms", &m.limit_ms, "from", &m.from, "make", &m.makes, "ps",
        &m.ps, "workers", &m.workers, "worker", &m.worker, "why", &m.why, "to", &m.to, "last",
        &m.last, "steps", &m.steps);
    if (failed) return fail(ERR_INPUT, "%.200s", error.text);
    struct ask ask = {0};
    err e = read_members(&m, body, &ask);
    if (e)
        ask_free(&ask);
    else
        *ret = ask;
    return e;
}

err ask_read(const void *bytes, size_t count, struct ask *ret)
{
    struct visit_body body;
    json_t *json;
    TRY(visit_body_split(bytes, count, &body));
    if (body.text_bytes > VISIT_TEXT_MAX)
        return fail(ERR_INPUT, "the request has more than %d bytes of text", VISIT_TEXT_MAX);
    if (json_read_foreign(body.text, body.text_bytes, JSON_REJECT_DUPLICATES, &json))
        return fail(ERR_INPUT, "the request is not JSON");
    err e = read_json(json, &body, ret);
    json_decref(json);
    return e ? fail_prefix(e, "the request") : OK;
}

void ask_free(struct ask *ask)
{
    value_free(&ask->change.value);
}

bool ask_only_looks(const struct ask *ask)
{
    switch (ask->verb) {
    case VERB_LIST:
    case VERB_GET:
    case VERB_STATUS:
    case VERB_LOG:
    case VERB_PROFILE:
        return true;
    case VERB_SETTING:
        return !ask->name[0];
    default:
        return false;
    }
}
