/* visited.c - see visited.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/cluster/visit/body.h"
#include "tests/core/cluster/visit/visited.h"

#include <cmocka.h> /* after error.h: it has a macro named fail */

static const struct slice slices[] = {
    {"w", {2, {5, 2}}, 0, 0, 3, 0, 6},
    {"w", {2, {5, 2}}, 0, 4, 1, 16, 2},
    {"v", {2, {2, 4}}, 1, 1, 2, 32, 4},
    {"b", {0}, 0, 0, 1, 48, 1},
    {"big", {1, {LARGE_ROWS}}, 0, 0, LARGE_ROWS, 64, LARGE_ROWS},
};

enum { SLICES = sizeof slices / sizeof *slices, FLOATS = 64 + LARGE_ROWS + 15 };

static void take(void *context, int visitor, const struct message *m)
{
    struct ps *ps = context;
    assert_int_equal(m->type, MESSAGE_ANSWER);
    assert_true(m->body_bytes <= MESSAGE_BODY_MAX);
    json_decref(ps->answer[visitor]);
    ps->answer[visitor] = visit_body_answer(m->body, m->body_bytes);
    assert_non_null(ps->answer[visitor]);
    ps->sequence[visitor] = m->answer.number;
    ps->answers++;
}

static int chief(void *context)
{
    return ((struct ps *)context)->chief;
}

static const char *request(void *context, int visitor, const struct ask *ask)
{
    struct ps *ps = context;
    ps->request_id = ask->request_id;
    return ps->refuses ? "that worker is not here" : NULL;
}

void show(struct ps *ps, bool has_values, bool is_in_use)
{
    const struct visit_view view = {slices, SLICES, ps->values, has_values, is_in_use};
    visits_show(ps->visits, &view);
}

void empty_ps(struct ps *ps)
{
    *ps = (struct ps){0};
    const struct visits_options options = {
        .has_step = true,
        .change_limit_ms = CHANGE_LIMIT_MS,
        .setting_limit_ms = SETTING_LIMIT_MS,
        .answer = take,
        .chief = chief,
        .request = request,
        .context = ps,
    };
    assert_int_equal(visits_open(&options, &ps->visits), OK);
    assert_int_equal(visits_enter(ps->visits, true, 0), 0);
    assert_int_equal(visits_enter(ps->visits, true, 0), 1);
    ps->values = calloc(FLOATS, sizeof *ps->values);
    assert_non_null(ps->values);
    for (int i = 0; i < 48; i++) ps->values[i] = (float)i;
}

void serving_ps(struct ps *ps)
{
    empty_ps(ps);
    show(ps, true, false);
}

void close_ps(struct ps *ps)
{
    visits_close(ps->visits);
    for (int i = 0; i < VISITORS_MAX; i++) json_decref(ps->answer[i]);
    free(ps->values);
}

void work(struct ps *ps, uint64_t now_ms)
{
    for (int i = 0; visits_work(ps->visits, now_ms); i++) assert_true(i < WORK_MAX);
}

/* What a visitor would send for this text; what is no ask goes as it is. */
static void send_ask(struct ps *ps, int visitor, uint64_t now_ms, const char *text)
{
    unsigned char *body = NULL;
    size_t bytes = 0;
    json_t *json = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    if (json_is_object(json)) assert_int_equal(visit_body_of_ask(json, &body, &bytes), OK);
    json_decref(json);
    const struct message m = {.type = MESSAGE_ASK,
                              .ask.number = ++ps->asked,
                              .body = body ? (const void *)body : text,
                              .body_bytes = (uint32_t)(body ? bytes : strlen(text))};
    visits_ask(ps->visits, visitor, &m, now_ms);
    free(body);
}

json_t *ask_at(struct ps *ps, int visitor, uint64_t now_ms, const char *text)
{
    json_decref(ps->answer[visitor]);
    ps->answer[visitor] = NULL;
    send_ask(ps, visitor, now_ms, text);
    work(ps, now_ms);
    if (ps->answer[visitor]) assert_int_equal(ps->sequence[visitor], ps->asked);
    return ps->answer[visitor];
}

json_t *ask(struct ps *ps, const char *text)
{
    return ask_at(ps, 0, 0, text);
}

void assert_error(struct ps *ps, const char *text, const char *error, int code)
{
    json_t *answer = ask(ps, text);
    assert_non_null(answer);
    const char *said = json_string_value(json_object_get(answer, "error"));
    assert_non_null(said);
    assert_string_equal(said, error);
    assert_int_equal(json_integer_value(json_object_get(answer, "code")), code);
}

void assert_answer(json_t *answer, const char *expected)
{
    assert_non_null(answer);
    json_object_del(answer, "version");
    json_t *wanted = json_loads(expected, 0, NULL);
    assert_non_null(wanted);
    if (!json_equal(answer, wanted)) {
        char *text = json_dumps(answer, JSON_COMPACT);
        assert_string_equal(text, expected);
    }
    json_decref(wanted);
}

void assert_asked(struct ps *ps, const char *text, const char *expected)
{
    assert_answer(ask(ps, text), expected);
}

json_int_t version(json_t *answer)
{
    return json_integer_value(json_object_get(answer, "version"));
}
